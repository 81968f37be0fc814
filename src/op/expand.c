/* Helpers of the expansions. */
#include "op/expand_int.h"

hn_value *x_cast(hn_builder *b, hn_value *x, hn_dtype t)
{
    if (!x || x->type.dtype == t) return x;
    return hn_cast(b, x, t);
}

hn_value *x_up(hn_builder *b, hn_value *x)
{
    return x ? x_cast(b, x, x_ctype(x->type.dtype)) : NULL;
}

hn_value *x_reduce(hn_builder *b, hn_op op, hn_value *x, int n, const int64_t *axes, bool keep)
{
    return hn_b1(b, op, x, HN_ATTRS_ARG(HN_A_IS("axes", n, axes), HN_A_I("keepdims", keep)));
}

hn_value *x_reduce1(hn_builder *b, hn_op op, hn_value *x, int axis, bool keep)
{
    const int64_t a = axis;
    return x_reduce(b, op, x, 1, &a, keep);
}

hn_value *x_reduce_from(hn_builder *b, hn_op op, hn_value *x, int first, bool keep)
{
    int64_t axes[HN_MAX_RANK];
    int n = 0;

    if (!x) return NULL;
    for (int i = first; i < x->type.rank; i++)
        axes[n++] = i;
    return x_reduce(b, op, x, n, axes, keep);
}

hn_value *x_along(hn_builder *b, hn_value *vec, int rank, int axis)
{
    hn_dim d[HN_MAX_RANK];

    if (!vec) return NULL;
    for (int i = 0; i < rank; i++)
        d[i] = 1;
    if (rank > 0) d[axis] = vec->type.rank ? vec->type.dim[0] : 1;
    return hn_reshape(b, vec, rank, d);
}

hn_value *x_unsqueeze(hn_builder *b, hn_value *x, int axis)
{
    hn_dim d[HN_MAX_RANK + 1];
    int n = 0;

    if (!x) return NULL;
    for (int i = 0; i <= x->type.rank; i++) {
        if (i == axis) d[n++] = 1;
        if (i < x->type.rank) d[n++] = x->type.dim[i];
    }
    return hn_reshape(b, x, n, d);
}

hn_value *x_squeeze(hn_builder *b, hn_value *x, int axis)
{
    hn_dim d[HN_MAX_RANK];
    int n = 0;

    if (!x) return NULL;
    for (int i = 0; i < x->type.rank; i++)
        if (i != axis) d[n++] = x->type.dim[i];
    return hn_reshape(b, x, n, d);
}

hn_value *x_swap(hn_builder *b, hn_value *x, int i, int j)
{
    int64_t perm[HN_MAX_RANK];

    if (!x || i == j) return x;
    for (int k = 0; k < x->type.rank; k++)
        perm[k] = k == i ? j : k == j ? i : k;
    return hn_transpose(b, x, perm);
}

hn_value *x_slice_step(hn_builder *b, hn_value *x, int axis, hn_dim start, int64_t step, hn_dim len)
{
    hn_dim starts[HN_MAX_RANK], dims[HN_MAX_RANK];
    int64_t steps[HN_MAX_RANK];

    if (!x) return NULL;
    for (int i = 0; i < x->type.rank; i++) {
        starts[i] = i == axis ? start : 0;
        steps[i] = i == axis ? step : 1;
        dims[i] = i == axis ? len : x->type.dim[i];
    }
    return hn_b1(b, HN_OP_slice, x,
                 HN_ATTRS_ARG(HN_A_DIMS("start", x->type.rank, starts), HN_A_IS("step", x->type.rank, steps),
                              HN_A_DIMS("dim", x->type.rank, dims)));
}

hn_value *x_reverse(hn_builder *b, hn_value *x, int axis)
{
    if (!x) return NULL;
    const hn_dim n = x->type.dim[axis];
    return x_slice_step(b, x, axis, x_dsub(b, n, 1), -1, n);
}

hn_value *x_pad0(hn_builder *b, hn_value *x, int axis, hn_dim before, hn_dim after)
{
    hn_dim lo[HN_MAX_RANK] = {0}, hi[HN_MAX_RANK] = {0};

    if (!x || (before == 0 && after == 0)) return x;
    lo[axis] = before;
    hi[axis] = after;
    return hn_b1(b, HN_OP_pad, x,
                 HN_ATTRS_ARG(HN_A_DIMS("before", x->type.rank, lo), HN_A_DIMS("after", x->type.rank, hi)));
}

hn_value *x_concat(hn_builder *b, int n, hn_value *const *x, int axis)
{
    if (n == 1) return x[0];
    hn_node *node = hn_build(b, HN_OP_concat, n, x, HN_ATTRS_ARG(HN_A_I("axis", axis)), 1);
    return node ? hn_out(node, 0) : NULL;
}

hn_value *x_concat2(hn_builder *b, hn_value *x, hn_value *y, int axis)
{
    hn_value *const both[2] = {x, y};
    return x_concat(b, 2, both, axis);
}

hn_value *x_gather(hn_builder *b, hn_value *x, hn_value *index, int axis)
{
    return hn_b2(b, HN_OP_gather, x, index, HN_ATTRS_ARG(HN_A_I("axis", axis)));
}

hn_value *x_matmul(hn_builder *b, hn_value *x, hn_value *y, bool trans_x, bool trans_y)
{
    return hn_b2(b, HN_OP_matmul, x, y, HN_ATTRS_ARG(HN_A_I("trans_a", trans_x), HN_A_I("trans_b", trans_y)));
}

hn_value *x_iota(hn_builder *b, hn_dtype t, int rank, int axis, hn_dim n)
{
    hn_dim d[HN_MAX_RANK];

    for (int i = 0; i < rank; i++)
        d[i] = i == axis ? n : 1;
    hn_node *node =
        hn_build(b, HN_OP_iota, 0, NULL,
                 HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_DIMS("dim", rank, d), HN_A_I("axis", axis)), 1);
    return node ? hn_out(node, 0) : NULL;
}

hn_value *x_full(hn_builder *b, hn_dtype t, int rank, const hn_dim *dim, double v)
{
    hn_value *k = hn_dtype_is_float(t) ? hn_const_f(b, t, v) : hn_const_i(b, t, hn_f64_to_i64(v));
    return hn_broadcast_to(b, k, rank, dim);
}

hn_value *x_dim(hn_builder *b, hn_dtype t, hn_dim d)
{
    int64_t v;

    if (hn_dim_known(b->g->syms, d, &v))
        return hn_dtype_is_float(t) ? hn_const_f(b, t, (double)v) : hn_const_i(b, t, v);
    return x_cast(b, hn_reshape(b, hn_const_dims(b, 1, &d), 0, NULL), t);
}

hn_dim x_dprod(hn_builder *b, const hn_tdesc *t, int first, int end)
{
    hn_dim p = 1;

    for (int i = first; i < end; i++)
        p = x_dmul(b, p, t->dim[i]);
    return p;
}

/* ---- loops ---- */

static hn_graph *loop_body(hn_builder *b, const x_loop_spec *spec)
{
    const int n = spec->n_carried, n_out = n + spec->n_scan;
    hn_graph *g = hn_subgraph_new(b->g, NULL);
    hn_value **carried = HN_NEW_N(b->g->arena, hn_value *, n + n_out + 1);
    const hn_tdesc iter = {.dtype = HN_I64}, cond = {.dtype = HN_BOOL};
    hn_builder inner;

    if (!g || !carried) return NULL;
    hn_builder_init(&inner, g, b->dg);
    inner.origin = b->origin;
    inner.n_origin = b->n_origin;
    x_loop_ctx ctx = {.b = &inner, .carried = carried, .next = carried + n, .user = spec->user};
    ctx.iter = hn_graph_input(g, NULL, &iter);
    hn_value *go = hn_graph_input(g, NULL, &cond);
    for (int i = 0; i < n; i++)
        carried[i] = hn_graph_input(g, NULL, &spec->init[i]->type);
    spec->fill(&ctx);
    if (inner.status != HONE_OK) {
        b->status = inner.status;
        return NULL;
    }
    hn_graph_output(g, go, NULL);
    for (int i = 0; i < n_out; i++)
        hn_graph_output(g, ctx.next[i], NULL);
    return g;
}

void x_loop(hn_builder *b, const x_loop_spec *spec, hn_value **ret)
{
    const int n = spec->n_carried, n_out = n + spec->n_scan;
    hn_value *in[2 + X_MAX_CARRIED] = {spec->trip, NULL};

    for (int i = 0; i < n_out; i++)
        ret[i] = NULL;
    if (b->status != HONE_OK || HN_NEVER(n_out > X_MAX_CARRIED)) return;
    for (int i = 0; i < n; i++)
        in[2 + i] = spec->init[i];
    hn_graph *body = loop_body(b, spec);
    if (!body) {
        if (b->status == HONE_OK) b->status = HN_NOMEM(b->dg);
        return;
    }
    hn_node *node =
        hn_build_bodies(b, HN_OP_loop, 2 + n, in, HN_ATTRS_ARG(HN_A_I("n_carried", n)), 0, 1, &body);
    for (int i = 0; node && i < n_out; i++)
        ret[i] = hn_out(node, i);
}
