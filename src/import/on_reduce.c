/* Reductions, softmax, normalisation. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

static hn_op arg(const hn_im_call *c)
{
    return (hn_op)c->entry->arg;
}

hone_status hn_im_on_reduce(hn_im_call *c)
{
    hn_value *x = c->in[0];
    int64_t axes[HN_MAX_RANK];
    int n;
    bool given;
    const bool by_input = c->entry->max_in == 2;
    const bool keep = hn_im_i(c, "keepdims", 1) != 0;
    const bool noop = hn_im_i(c, "noop_with_empty_axes", 0) != 0;
    HN_TRY(hn_im_axes(c, by_input ? NULL : "axes", by_input ? 1 : -1, x->type.rank, true, axes, &n, &given));
    if (n == 0 && !noop)
        for (n = 0; n < x->type.rank; n++)
            axes[n] = n;
    /* A noop passes x as it is; what the op would do to a lone element (squares, roots) is done all the same.
     */
    if (n == 0 && (arg(c) == HN_OP_reduce_sum || arg(c) == HN_OP_reduce_max || arg(c) == HN_OP_reduce_min ||
                   arg(c) == HN_OP_reduce_mean || arg(c) == HN_OP_reduce_prod))
        return hn_im_ret(c, x);
    return hn_im_ret(c, hn_im_reduce(c, arg(c), x, n, axes, keep));
}

hone_status hn_im_on_arg_extreme(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), c->in[0]->type.rank, &axis));
    const int64_t keep = hn_im_i(c, "keepdims", 1), last = hn_im_i(c, "select_last_index", 0);
    return hn_im_ret(c, hn_b1(c->b, arg(c), c->in[0],
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("keepdims", keep != 0),
                                           HN_A_I("last", last != 0))));
}

hone_status hn_im_on_cumulate(hn_im_call *c)
{
    int64_t at;
    int axis;
    if (!hn_im_int(c, c->in[1], &at))
        return hn_im_refuse(c, "an axis that only a run shows is not supported");
    HN_TRY(hn_im_axis(c, at, c->in[0]->type.rank, &axis));
    const int64_t exclusive = hn_im_i(c, "exclusive", 0), reverse = hn_im_i(c, "reverse", 0);
    return hn_im_ret(c, hn_b1(c->b, arg(c), c->in[0],
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("exclusive", exclusive != 0),
                                           HN_A_I("reverse", reverse != 0))));
}

hone_status hn_im_on_softmax(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), c->in[0]->type.rank, &axis));
    return hn_im_ret(c, hn_b1(c->b, arg(c), c->in[0], HN_ATTRS_ARG(HN_A_I("axis", axis))));
}

/* Before opset 13: over all axes from `axis` on, as if flattened to two dimensions. */
hone_status hn_im_on_softmax_old(hn_im_call *c)
{
    hn_value *x = c->in[0];
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 1), x->type.rank, &axis));
    if (axis == x->type.rank - 1)
        return hn_im_ret(c, hn_b1(c->b, arg(c), x, HN_ATTRS_ARG(HN_A_I("axis", axis))));
    hn_dim d[HN_MAX_RANK];
    memcpy(d, x->type.dim, sizeof d);
    d[axis] = 1;
    for (int i = axis; i < x->type.rank; i++)
        d[axis] = hn_im_dmul(c, d[axis], x->type.dim[i]);
    hn_value *flat = hn_reshape(c->b, x, axis + 1, d);
    flat = hn_b1(c->b, arg(c), flat, HN_ATTRS_ARG(HN_A_I("axis", axis)));
    return hn_im_ret(c, hn_reshape(c->b, flat, x->type.rank, x->type.dim));
}

/* ---- global pools ---- */

static hone_status spatial_axes(hn_im_call *c, int64_t *axes, int *n)
{
    const int rank = c->in[0]->type.rank;
    if (rank < 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d, at least 2 is needed", rank);
    for (*n = 0; *n < rank - 2; ++*n)
        axes[*n] = *n + 2;
    return HONE_OK;
}

hone_status hn_im_on_global_pool(hn_im_call *c)
{
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    HN_TRY(spatial_axes(c, axes, &n));
    return hn_im_ret(c, hn_im_reduce(c, arg(c), c->in[0], n, axes, true));
}

hone_status hn_im_on_global_lp_pool(hn_im_call *c)
{
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    const double p = c->entry->arg == 1 ? hn_im_f(c, "p", 2) : (double)hn_im_i(c, "p", 2);
    hn_value *x = c->in[0];
    HN_TRY(spatial_axes(c, axes, &n));
    if (p == 1 || p == 2)
        return hn_im_ret(c, hn_im_reduce(c, p == 1 ? HN_OP_reduce_l1 : HN_OP_reduce_l2, x, n, axes, true));
    x = hn_im_binary(c, HN_OP_pow, hn_im_unary(c, HN_OP_abs, x), hn_im_like_f(c, x, p));
    x = hn_im_reduce(c, HN_OP_reduce_sum, x, n, axes, true);
    return hn_im_ret(c, hn_im_binary(c, HN_OP_pow, x, hn_im_like_f(c, x, 1 / p)));
}

/* ---- normalisation ---- */

static double epsilon(hn_im_call *c)
{
    return hn_im_f(c, "epsilon", (double)1e-5f);
}

/* Batch statistics, for models exported in training mode: also the running mean and variance. */
static hone_status batch_norm_training(hn_im_call *c, double eps, double momentum)
{
    hn_value *x = c->in[0];
    const int rank = x->type.rank;
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < rank; i++)
        if (i != 1) axes[n++] = i;
    hn_value *mean = hn_im_reduce(c, HN_OP_reduce_mean, x, n, axes, true);
    hn_value *d = hn_im_binary(c, HN_OP_sub, x, mean);
    hn_value *var = hn_im_reduce(c, HN_OP_reduce_mean, hn_im_binary(c, HN_OP_mul, d, d), n, axes, true);
    if (!var) return c->b->status;
    const hn_dim channels = x->type.dim[1];
    hn_value *stat[2] = { hn_reshape(c->b, mean, 1, &channels), hn_reshape(c->b, var, 1, &channels) };
    hn_node *y =
        hn_build(c->b, HN_OP_batch_norm, 5, (hn_value *[]){ x, c->in[1], c->in[2], stat[0], stat[1] },
                 HN_ATTRS_ARG(HN_A_F("eps", eps)), 1);
    c->out[0] = y ? y->out[0] : NULL;
    for (int i = 0; i < 2; i++) {
        if (!hn_im_wants(c, 1 + i)) continue;
        hn_value *run = c->in[3 + i], *now = hn_cast(c->b, stat[i], run->type.dtype);
        c->out[1 + i] =
            hn_im_binary(c, HN_OP_add, hn_im_scale(c, run, momentum), hn_im_scale(c, now, 1 - momentum));
    }
    return c->b->status;
}

/* Statistics for every element of a sample (spatial = 0, before opset 9): plain broadcasting does it. */
static hone_status batch_norm_elements(hn_im_call *c, double eps)
{
    hn_value *x = hn_im_binary(c, HN_OP_sub, c->in[0], c->in[3]);
    hn_value *var = hn_im_binary(c, HN_OP_add, c->in[4], hn_im_like_f(c, c->in[4], eps));
    x = hn_im_binary(c, HN_OP_div, x, hn_im_unary(c, HN_OP_sqrt, var));
    return hn_im_ret(c, hn_im_binary(c, HN_OP_add, hn_im_binary(c, HN_OP_mul, x, c->in[1]), c->in[2]));
}

hone_status hn_im_on_batch_norm(hn_im_call *c)
{
    const double eps = epsilon(c), momentum = hn_im_f(c, "momentum", (double)0.9f);
    hn_im_ignore(c, "consumed_inputs");
    const bool training = c->opset >= 14 ? hn_im_i(c, "training_mode", 0) != 0
                          : c->opset < 7 ? hn_im_i(c, "is_test", 0) == 0 && hn_im_wants(c, 1)
                                         : hn_im_wants(c, 1);
    if (c->opset < 9 && hn_im_i(c, "spatial", 1) == 0) return batch_norm_elements(c, eps);
    if (training && c->opset < 14 && (hn_im_wants(c, 3) || hn_im_wants(c, 4)))
        return hn_im_refuse(c,
                            "saved statistics of a batch normalisation in training mode are not supported");
    if (training) return batch_norm_training(c, eps, momentum);
    hn_node *n = hn_build(c->b, HN_OP_batch_norm, 5, c->in, HN_ATTRS_ARG(HN_A_F("eps", eps)), 1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

hone_status hn_im_on_layer_norm(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), c->in[0]->type.rank, &axis));
    hn_im_ignore(c, "stash_type"); /* statistics are computed in f32 at least */
    const int n_out = hn_im_wants(c, 2) ? 3 : hn_im_wants(c, 1) ? 2 : 1;
    hn_node *n = hn_build(c->b, HN_OP_layer_norm, c->n_in, c->in,
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_F("eps", epsilon(c))), n_out);
    for (int i = 0; n && i < c->n_out && i < n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

hone_status hn_im_on_rms_norm(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), c->in[0]->type.rank, &axis));
    hn_im_ignore(c, "stash_type");
    hn_node *n = hn_build(c->b, HN_OP_rms_norm, 2, c->in,
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_F("eps", epsilon(c))), 1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

hone_status hn_im_on_instance_norm(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    return hn_im_same(c, HN_OP_instance_norm, HN_ATTRS_ARG(HN_A_F("eps", epsilon(c))));
}

/* Version 18 gave scale and bias by group; 21 by channel, as the op here. */
static hn_value *by_channel(hn_im_call *c, hn_value *v, hn_dim channels, int64_t groups)
{
    if (!v || v->type.rank != 1 || v->type.dim[0] == channels) return v;
    const hn_dim each = hn_im_ddiv(c, channels, groups), d[2] = { groups, each };
    return hn_reshape(c->b, hn_broadcast_to(c->b, hn_im_unsqueeze(c, v, 1), 2, d), 1, &channels);
}

hone_status hn_im_on_group_norm(hn_im_call *c)
{
    const int64_t groups = hn_im_i(c, "num_groups", 0);
    hn_value *x = c->in[0], *scale = c->in[1], *bias = c->in[2];
    hn_im_ignore(c, "stash_type");
    if (groups < 1) return HN_IM_RAISE(c, HONE_E_MODEL, "num_groups is %" PRId64, groups);
    if (x->type.rank < 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d", x->type.rank);
    if (c->entry->arg == 18) {
        scale = by_channel(c, scale, x->type.dim[1], groups);
        bias = by_channel(c, bias, x->type.dim[1], groups);
    }
    return hn_im_ret(c, hn_b3(c->b, HN_OP_group_norm, x, scale, bias,
                              HN_ATTRS_ARG(HN_A_I("groups", groups), HN_A_F("eps", epsilon(c)))));
}

hone_status hn_im_on_lp_norm(hn_im_call *c)
{
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", -1), c->in[0]->type.rank, &axis));
    return hn_im_ret(c, hn_b1(c->b, HN_OP_lp_norm, c->in[0],
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("p", hn_im_i(c, "p", 2)))));
}

hone_status hn_im_on_lrn(hn_im_call *c)
{
    const int64_t size = hn_im_i(c, "size", 0);
    if (size < 1) return HN_IM_RAISE(c, HONE_E_MODEL, "size is %" PRId64, size);
    return hn_im_ret(
        c,
        hn_b1(c->b, HN_OP_lrn, c->in[0],
              HN_ATTRS_ARG(HN_A_I("size", size), HN_A_F("alpha", hn_im_f(c, "alpha", (double)1e-4f)),
                           HN_A_F("beta", hn_im_f(c, "beta", 0.75)), HN_A_F("bias", hn_im_f(c, "bias", 1)))));
}

hone_status hn_im_on_mvn(hn_im_call *c)
{
    static const int64_t dflt[] = { 0, 2, 3 };
    int64_t axes[HN_MAX_RANK];
    int n;
    bool given;
    HN_TRY(hn_im_axes(c, "axes", -1, c->in[0]->type.rank, true, axes, &n, &given));
    if (!given)
        for (n = 0; n < 3 && dflt[n] < c->in[0]->type.rank; n++)
            axes[n] = dflt[n];
    return hn_im_ret(c, hn_b1(c->b, HN_OP_mvn, c->in[0], HN_ATTRS_ARG(HN_A_IS("axes", n, axes))));
}
