/* Gather, scatter, search, order, ranges, sequences and optionals. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int rank_of(const hn_value *v)
{
    return v ? v->type.rank : 0;
}

/* ---- gather and scatter ---- */

hone_status hn_im_on_gather(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    return hn_im_ret(c, hn_im_gather(c, c->in[0], c->in[1], axis));
}

hone_status hn_im_on_gather_elements(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    return hn_im_same(c, HN_OP_gather_elements, HN_ATTRS_ARG(HN_A_I("axis", axis)));
}

hone_status hn_im_on_gather_nd(hn_im_call *c)
{
    return hn_im_same(c, HN_OP_gather_nd, HN_ATTRS_ARG(HN_A_I("batch_dims", hn_im_i(c, "batch_dims", 0))));
}

hone_status hn_im_on_scatter_elements(hn_im_call *c)
{
    int axis;
    const int reduction = hn_im_choice(c, "reduction", "none|add|mul|min|max", 0);
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    return hn_im_same(c, HN_OP_scatter_elements,
                      HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("reduction", reduction)));
}

hone_status hn_im_on_scatter_nd(hn_im_call *c)
{
    const int reduction = hn_im_choice(c, "reduction", "none|add|mul|min|max", 0);
    return hn_im_same(c, HN_OP_scatter_nd, HN_ATTRS_ARG(HN_A_I("reduction", reduction)));
}

/* The rows of `update` written into the cache at index[b] (0 without) along an axis, wrapping round in
 * circular mode. */
hone_status hn_im_on_tensor_scatter(hn_im_call *c)
{
    hn_value *x = c->in[0], *update = c->in[1], *start = hn_im_in(c, 2);
    const bool circular = hn_im_choice(c, "mode", "linear|circular", 0) == 1;
    hn_dim dim[HN_MAX_RANK];
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -2), x->type.rank, &axis));
    if (axis == 0) return HN_IM_RAISE(c, HONE_E_MODEL, "the axis is the batch axis");
    if (update->type.rank != x->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "cache and update differ in rank");
    hn_value *at = hn_im_iota(c, HN_I64, x->type.rank, update->type.dim, axis);
    if (start) {
        for (int i = 0; i < x->type.rank; i++)
            dim[i] = i == 0 ? start->type.dim[0] : 1;
        at = hn_im_binary(c, HN_OP_add, at, hn_reshape(c->b, hn_im_i64(c, start), x->type.rank, dim));
    }
    if (circular) {
        hn_value *len = hn_reshape(c->b, hn_const_dims(c->b, 1, &x->type.dim[axis]), 0, NULL);
        at = hn_b2(c->b, HN_OP_mod, at, len, HN_ATTRS_ARG(HN_A_I("fmod", 0)));
    }
    return hn_im_ret(c, hn_b3(c->b, HN_OP_scatter_elements, x, at, update,
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("reduction", 0))));
}

hone_status hn_im_on_one_hot(hn_im_call *c)
{
    hn_value *index = c->in[0], *depth = c->in[1];
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), rank_of(index) + 1, &axis));
    if (depth && hn_dtype_is_float(depth->type.dtype)) depth = hn_cast(c->b, depth, HN_I64);
    if (depth && depth->def && !depth->content) { /* a float constant's cast is folded only later */
        double d;
        if (hn_const_scalar(c->in[1], &d)) depth = hn_const_i(c->b, HN_I64, hn_f64_to_i64(d));
    }
    HN_TRY(c->b->status);
    const hn_dim d = hn_im_dim(c, depth, 0);
    if (hn_dtype_is_float(index->type.dtype)) index = hn_cast(c->b, index, HN_I64);
    return hn_im_ret(c, hn_b2(c->b, HN_OP_one_hot, index, c->in[2],
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_DIM("dim", d))));
}

/* y[t,b] = x[len[b] - 1 - t, b] before len[b], x[t,b] from there on */
hone_status hn_im_on_reverse_sequence(hn_im_call *c)
{
    hn_value *x = c->in[0];
    const int rank = rank_of(x);
    int time, batch;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "time_axis", 0), rank, &time));
    HN_TRY(hn_im_axis(c, hn_im_i(c, "batch_axis", 1), rank, &batch));
    hn_value *len = hn_im_along(c, hn_im_i64(c, c->in[1]), rank, batch);
    hn_value *t = hn_im_iota(c, HN_I64, rank, x->type.dim, time);
    hn_value *back =
        hn_im_binary(c, HN_OP_sub, hn_im_binary(c, HN_OP_sub, len, hn_const_i(c->b, HN_I64, 1)), t);
    hn_value *at = hn_im_select(c, hn_im_binary(c, HN_OP_lt, t, len), back, t);
    return hn_im_ret(c, hn_b2(c->b, HN_OP_gather_elements, x, at, HN_ATTRS_ARG(HN_A_I("axis", time))));
}

/* ---- search and order ---- */

static hone_status outputs_of(hn_im_call *c, const hn_node *n)
{
    for (int i = 0; n && i < c->n_out && i < n->n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

hone_status hn_im_on_topk(hn_im_call *c)
{
    int axis;
    hn_dim k = 0;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), rank_of(c->in[0]), &axis));
    const int64_t largest = hn_im_i(c, "largest", 1), sorted = hn_im_i(c, "sorted", 1);
    if (c->entry->arg == 1) {
        if (!hn_im_has(c, "k")) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"k\" is missing");
        k = hn_im_dconst(c, hn_im_i(c, "k", 0));
    } else {
        k = hn_im_dim(c, c->in[1], 0);
    }
    HN_TRY(c->b->status);
    return outputs_of(c, hn_build(c->b, HN_OP_topk, 1, c->in,
                                  HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("largest", largest != 0),
                                               HN_A_I("sorted", sorted != 0), HN_A_DIM("dim", k)),
                                  2));
}

hone_status hn_im_on_nonzero(hn_im_call *c)
{
    return outputs_of(c, hn_build(c->b, HN_OP_nonzero, 1, c->in, HN_NO_ATTRS, 2));
}

hone_status hn_im_on_unique(hn_im_call *c)
{
    int axis = 0;
    const bool flat = !hn_im_has(c, "axis");
    if (!flat) HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    const hn_attr_set attrs[] = { HN_A_I("axis", flat ? -1 : axis),
                                  HN_A_I("flat", flat),
                                  HN_A_I("sorted", hn_im_i(c, "sorted", 1) != 0),
                                  { .name = NULL } };
    return outputs_of(c, hn_build(c->b, HN_OP_unique, 1, c->in, attrs, 5));
}

hone_status hn_im_on_compress(hn_im_call *c)
{
    int axis = 0;
    const bool flat = !hn_im_has(c, "axis");
    if (!flat) HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    return outputs_of(c, hn_build(c->b, HN_OP_compress, 2, c->in,
                                  HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("flat", flat)), 2));
}

hone_status hn_im_on_nms(hn_im_call *c)
{
    hn_value *in[5];
    const int64_t center = hn_im_i(c, "center_point_box", 0);
    for (int i = 0; i < 5; i++) {
        in[i] = hn_im_in(c, i);
        if (i >= 2 && in[i] && in[i]->type.rank) in[i] = hn_reshape(c->b, in[i], 0, NULL);
    }
    return outputs_of(c,
                      hn_build(c->b, HN_OP_nms, 5, in, HN_ATTRS_ARG(HN_A_I("center_point_box", center)), 2));
}

/* ---- range ---- */

static double number(const hn_value *v)
{
    double x = NAN;
    (void)hn_const_scalar(v, &x);
    return x;
}

/* A whole number as a dim, though it may have passed through a float: extents do on their way to an arange of
 * floats. */
static bool whole(hn_im_call *c, hn_value *v, hn_dim *ret)
{
    const double x = number(v);
    if (!hn_dtype_is_float(v->type.dtype)) return hn_im_known_dim(c, v, 0, ret);
    if (isfinite(x) && x == trunc(x) && fabs(x) < 0x1p24) {
        *ret = hn_im_dconst(c, (int64_t)x);
        return true;
    }
    while (v->def && (v->def->op == HN_OP_reshape || v->def->op == HN_OP_identity))
        v = hn_in(v->def, 0);
    if (!hn_is_op(v, HN_OP_cast)) return false;
    hn_value *from = hn_in(v->def, 0);
    return hn_dtype_bits(v->type.dtype) >= 32 && hn_dtype_is_int(from->type.dtype) &&
           hn_im_known_dim(c, from, 0, ret);
}

/* Of numbers that are known. */
static hone_status fixed_range(hn_im_call *c, double start, double limit, double delta, hn_dim *ret)
{
    const double n = ceil((limit - start) / delta);
    if (n >= 0x1p62) return HN_IM_RAISE(c, HONE_E_SHAPE, "from %g to %g by %g are too many elements", start, limit, delta);
    *ret = n > 0 ? (int64_t)n : 0;
    return HONE_OK;
}

static hn_dim range_count(hn_im_call *c, hn_value *start, hn_value *limit, hn_value *delta)
{
    hn_symtab *t = hn_im_syms(c);
    hn_dim x[3];
    int64_t by;
    if (whole(c, start, &x[0]) && whole(c, limit, &x[1]) && whole(c, delta, &x[2]) &&
        hn_dim_known(t, x[2], &by) && by) {
        const hn_dim span = by > 0 ? hn_dim_sub(t, x[1], x[0]) : hn_dim_sub(t, x[0], x[1]);
        const hn_dim n = hn_dim_ceildiv(t, span, by > 0 ? by : -by);
        return hn_im_dim_nonneg(c, n) ? n : hn_dim_max(t, n, 0);
    }
    /* By nodes, in the numbers' own dtype widened: ceil((limit - start) / delta), at least 0. */
    hn_value *span = hn_im_binary(c, HN_OP_sub, hn_cast(c->b, limit, HN_F64), hn_cast(c->b, start, HN_F64));
    hn_value *n = hn_im_unary(c, HN_OP_ceil, hn_im_binary(c, HN_OP_div, span, hn_cast(c->b, delta, HN_F64)));
    n = hn_cast(c->b, hn_im_binary(c, HN_OP_max, n, hn_const_f(c->b, HN_F64, 0)), HN_I64);
    return n ? hn_im_dim(c, n, 0) : 0;
}

hone_status hn_im_on_range(hn_im_call *c)
{
    hn_value *in[3];
    hn_im_ignore(c, "stash_type");
    for (int i = 0; i < 3; i++) {
        in[i] = c->in[i];
        if (!in[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "input %d is absent", i);
        if (in[i]->type.rank) in[i] = hn_reshape(c->b, in[i], 0, NULL);
    }
    HN_TRY(c->b->status);
    const double start = number(in[0]), limit = number(in[1]), delta = number(in[2]);
    hn_dim n = 0;
    if (isfinite(start) && isfinite(limit) && isfinite(delta) && delta != 0)
        HN_TRY(fixed_range(c, start, limit, delta, &n));
    else
        n = range_count(c, in[0], in[1], in[2]);
    return hn_im_ret(c, hn_b2(c->b, HN_OP_range, in[0], in[2], HN_ATTRS_ARG(HN_A_DIM("dim", n))));
}

/* ---- sequences and optionals ---- */

hone_status hn_im_on_seq(hn_im_call *c)
{
    hn_value *in[3];
    if (c->n_in > 3 || c->entry->arg == HN_OP_seq_construct)
        return hn_im_same(c, (hn_op)c->entry->arg, HN_NO_ATTRS);
    for (int i = 0; i < c->n_in; i++) { /* positions are scalars */
        in[i] = c->in[i];
        const bool position = i == (c->entry->arg == HN_OP_seq_insert ? 2 : 1);
        if (position && in[i] && in[i]->type.rank) in[i] = hn_reshape(c->b, in[i], 0, NULL);
        if (position && in[i]) in[i] = hn_im_i64(c, in[i]);
    }
    hn_node *n = hn_build(c->b, (hn_op)c->entry->arg, c->n_in, in, HN_NO_ATTRS, 1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

static hn_value *sequence_of_none(hn_im_call *c, hn_dtype t, bool absent)
{
    hn_node *n = hn_build(c->b, HN_OP_seq_construct, 0, NULL, HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_I("absent", absent)), 1);
    return n ? n->out[0] : NULL;
}

hn_value *hn_im_empty_sequence(hn_im_call *c, hn_dtype t)
{
    return sequence_of_none(c, t, false);
}

hone_status hn_im_on_seq_empty(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_empty_sequence(c, hn_im_dtype(c, "dtype", HN_F32)));
}

hone_status hn_im_on_seq_concat(hn_im_call *c)
{
    if (!hn_im_has(c, "axis")) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"axis\" is missing");
    const int64_t axis = hn_im_i(c, "axis", 0), new_axis = hn_im_i(c, "new_axis", 0);
    return hn_im_same(c, HN_OP_seq_concat,
                      HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("new_axis", new_axis != 0)));
}

hone_status hn_im_on_seq_split(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), rank_of(c->in[0]), &axis));
    const int64_t keep = hn_im_i(c, "keepdims", 1);
    return hn_im_same(c, HN_OP_seq_split, HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("keepdims", keep != 0)));
}

hone_status hn_im_on_optional(hn_im_call *c)
{
    const Onnx__AttributeProto *a = hn_im_attr(c, "type");
    hn_tdesc t = { 0 };
    hn_vkind kind = HN_TENSOR;
    if (hn_im_in(c, 0)) {
        if (c->in[0]->kind == HN_SEQUENCE)
            return hn_im_ret(c, c->in[0]); /* an optional sequence that is there */
        return hn_im_same(c, HN_OP_opt_make, HN_NO_ATTRS);
    }
    if (!a || !a->tp) return HN_IM_RAISE(c, HONE_E_MODEL, "an empty optional needs its type");
    HN_TRY(hn_im_type(c->m, a->tp, "type", &kind, &t, c->dg));
    if (kind == HN_SEQUENCE) return hn_im_ret(c, sequence_of_none(c, t.dtype, true));
    hn_node *n = hn_build(c->b, HN_OP_opt_make, 0, NULL, HN_ATTRS_ARG(HN_A_T("dtype", t.dtype)), 1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

/* Known to be there: no optional. Of what comes out of control flow only the run knows. */
static bool is_there(const hn_value *v)
{
    while (v && v->def && v->def->op == HN_OP_identity) v = hn_in(v->def, 0);
    if (!v || v->kind == HN_OPTIONAL) return false;
    if (v->kind == HN_TENSOR) return true;
    if (!v->def) return false;
    switch (v->def->op) {
    case HN_OP_seq_construct: return !hn_attr_i(v->def, "absent");
    case HN_OP_list_unpack: return hn_attr_i(v->def, "kind") != HN_LIST_MAYBE_SEQUENCE;
    default: return v->def->n_body == 0;
    }
}

hone_status hn_im_on_optional_get(hn_im_call *c)
{
    if (is_there(c->in[0])) return hn_im_ret(c, c->in[0]);
    return hn_im_same(c, HN_OP_opt_get, HN_NO_ATTRS);
}

hone_status hn_im_on_optional_has(hn_im_call *c)
{
    const hn_value *x = hn_im_in(c, 0);
    if (!x || is_there(x)) return hn_im_ret(c, hn_im_const_bool(c, x != NULL));
    return hn_im_same(c, HN_OP_opt_has, HN_NO_ATTRS);
}
