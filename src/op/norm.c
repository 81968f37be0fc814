/*
 * Normalisations over the last axes or the channels. Means and variances are biased (divide by n), two-pass.
 *
 *     layer_norm    (x, scale?, bias?) {axis, eps} -> y, mean?, inv_std?     over axes axis..rank-1
 *     rms_norm      (x, scale?) {axis, eps}          x / sqrt(mean x^2 + eps) * scale
 *     batch_norm    (x, scale, bias, mean, var) {eps}   per channel (axis 1) with given statistics
 *     instance_norm (x, scale, bias) {eps}           over all but axes 0, 1
 *     group_norm    (x, scale, bias) {groups, eps}   as instance_norm over groups of neighbouring channels
 *
 * layer_norm's scale and bias broadcast to x; the others' are [c]. Statistics come out in f32 (f64 for f64
 * x), of x's rank with 1s. An empty normalised range gives NaN statistics.
 */
#include "op/expand_int.h"

enum { LN_AXIS, LN_EPS };
enum { GN_GROUPS, GN_EPS };

static int first_axis(const hn_call *c)
{
    int axis = 0;
    hn_axis_resolve(hn_call_i(c, "axis"), c->in[0].rank, &axis);
    return axis;
}

/* ---- layer_norm, rms_norm ---- */

static hone_status infer_layer(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 1, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_axis(c, LN_AXIS, c->in[0].rank, false, &axis, dg));
    for (int i = 1; i < c->n_in; i++) {
        if (!hn_op_has(c, i)) continue;
        HN_TRY(hn_op_want_same(c, 0, i, dg));
        if (!hn_op_broadcasts_to(c, &c->in[i], &c->in[0]))
            return HN_RAISE(dg, HONE_E_SHAPE, "operand %d does not broadcast to the shape of operand 0", i);
    }
    c->out[0] = c->in[0];
    for (int o = 1; o < c->n_out; o++) {
        c->out[o] = c->in[0];
        c->out[o].dtype = x_ctype(c->in[0].dtype);
        for (int i = axis; i < c->in[0].rank; i++)
            c->out[o].dim[i] = 1;
    }
    return HONE_OK;
}

static void mean_var(const double *x, int64_t n, double *mean, double *var)
{
    double m = 0, v = 0;

    for (int64_t i = 0; i < n; i++)
        m += x[i];
    m /= (double)n;
    for (int64_t i = 0; i < n; i++)
        v += (x[i] - m) * (x[i] - m);
    *mean = m;
    *var = v / (double)n;
}

static void affine(const hn_call *c, const hn_view *in, hn_view *y)
{
    for (int k = 1; k < c->n_in; k++) {
        if (!hn_op_has(c, k)) continue;
        hn_walk w;
        hn_walk_init(&w, &y->type);
        hn_walk_add(&w, &in[k].type);
        while (hn_walk_next(&w))
            for (int64_t i = 0; i < w.run; i++) {
                const double s = in[k].f[w.at[0] + i * w.step[0]];
                if (k == 1)
                    y->f[w.pos + i] *= s;
                else
                    y->f[w.pos + i] += s;
            }
    }
}

static hone_status ref_layer(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const double eps = hn_call_f(c, "eps");
    const bool rms = c->op->id == HN_OP_rms_norm;
    int64_t n = 1;

    (void)dg;
    for (int i = first_axis(c); i < in[0].type.rank; i++)
        n = hn_extent_times(n, in[0].type.dim[i]);
    for (int64_t r = 0; n > 0 && r < in[0].numel / n; r++) {
        const double *x = in[0].f + r * n;
        double mean = 0, var = 0;
        if (!rms) mean_var(x, n, &mean, &var);
        for (int64_t i = 0; rms && i < n; i++)
            var += x[i] * x[i] / (double)n;
        const double inv = 1 / sqrt(var + eps);
        for (int64_t i = 0; i < n; i++)
            out[0].f[r * n + i] = (x[i] - mean) * inv;
        if (c->n_out > 1) out[1].f[r] = mean;
        if (c->n_out > 2) out[2].f[r] = inv;
    }
    for (int o = 1; n == 0 && o < c->n_out; o++)
        for (int64_t r = 0; r < out[o].numel; r++)
            out[o].f[r] = NAN;
    affine(c, in, &out[0]);
    return HONE_OK;
}

/* Passes for mean, variance, normalise, scale, shift. */
static void work(const hn_call *c, hn_work *ret)
{
    ret->flops = 8 * hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

static hn_value *x_inv_std(hn_builder *b, hn_value *var, double eps)
{
    return hn_b1(b, HN_OP_reciprocal, x_sqrt(b, x_add_k(b, var, eps)), HN_NO_ATTRS);
}

/* A scale or bias laid along the merged line; NULL when it differs between lines. */
static hn_value *x_merged_affine(hn_builder *b, hn_value *w, const hn_tdesc *x, int axis, hn_dim line)
{
    const int n = x->rank - axis;

    for (int i = 0; i < w->type.rank - n; i++)
        if (w->type.dim[i] != 1) return NULL;
    if (w->type.rank > n) w = hn_reshape(b, w, n, w->type.dim + w->type.rank - n);
    return hn_reshape(b, hn_broadcast_to(b, w, n, x->dim + axis), 1, &line);
}

/* Several axes as one, which kernels take whole. False when a scale or bias stands in the way. */
static bool merge_axes(hn_builder *b, const hn_node *n, int axis, hn_value **out)
{
    const hn_tdesc type = hn_in(n, 0)->type;
    const hn_dim line = x_dprod(b, &type, axis, type.rank);
    hn_tdesc merged = type;
    hn_value *in[3] = {NULL};

    merged.rank = axis + 1;
    merged.dim[axis] = line;
    for (int i = 1; i < n->n_in; i++) {
        if (!hn_in(n, i)) continue;
        in[i] = x_merged_affine(b, hn_in(n, i), &type, axis, line);
        if (!in[i]) return false;
    }
    in[0] = hn_reshape(b, hn_in(n, 0), merged.rank, merged.dim);
    const hn_node *y = hn_build(b, n->op, n->n_in, in,
                                HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_F("eps", hn_attr_f(n, "eps"))), 1);
    out[0] = y ? hn_reshape(b, y->out[0], type.rank, type.dim) : NULL;
    return true;
}

static hone_status expand_layer(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = x_up(b, hn_in(n, 0)), *scale = x_up(b, hn_in(n, 1)), *bias = x_up(b, hn_in(n, 2)),
             *mean = NULL;
    int axis = 0;

    hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis);
    if (n->n_out == 1 && axis < hn_in(n, 0)->type.rank - 1 && merge_axes(b, n, axis, out)) return x_done(b);
    if (n->op == HN_OP_layer_norm) {
        /* A mean that is asked for is a result: near 0 the roundings of its sum would show. */
        const hn_dtype t = n->n_out > 1 || !x ? HN_F64 : x->type.dtype;
        mean = x_reduce_from(b, HN_OP_reduce_mean, x_cast(b, x, t), axis, true);
        mean = x ? x_cast(b, mean, x->type.dtype) : NULL;
        x = x_sub(b, x, mean);
    }
    hn_value *var = x_reduce_from(b, HN_OP_reduce_mean, x_mul(b, x, x), axis, true);
    hn_value *inv = x_inv_std(b, var, hn_attr_f(n, "eps"));
    hn_value *y = x_mul(b, x, inv);
    if (scale) y = x_mul(b, y, scale);
    if (bias) y = x_add(b, y, bias);
    out[0] = x_cast(b, y, hn_in(n, 0)->type.dtype);
    if (n->n_out > 1) out[1] = mean;
    if (n->n_out > 2) out[2] = inv;
    return x_done(b);
}

/* ---- per channel: batch_norm, instance_norm, group_norm ---- */

static hone_status infer_channels(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, c->op->id == HN_OP_batch_norm ? 1 : 2, HN_MAX_RANK, dg));
    hn_dim channels = c->in[0].rank > 1 ? c->in[0].dim[1] : 1;
    for (int i = 1; i < c->n_in; i++) {
        HN_TRY(hn_op_want_float(c, i, dg));
        HN_TRY(hn_op_want_rank(c, i, 1, dg));
        if (!hn_op_meet(c, channels, c->in[i].dim[0], &channels))
            return HN_RAISE(dg, HONE_E_SHAPE, "operand %d has %lld elements for %lld channels", i,
                            (long long)c->in[i].dim[0], (long long)channels);
    }
    c->out[0] = c->in[0];
    if (c->in[0].rank > 1) c->out[0].dim[1] = channels;
    return HONE_OK;
}

static hone_status infer_group(hn_call *c, hn_diag *dg)
{
    int64_t channels;

    HN_TRY(infer_channels(c, dg));
    HN_TRY(hn_op_want_attr(c, GN_GROUPS, 1, INT64_MAX, dg));
    if (hn_op_known(c, c->out[0].dim[1], &channels) && channels % hn_call_i(c, "groups"))
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld channels do not split into %lld groups", (long long)channels,
                        (long long)hn_call_i(c, "groups"));
    return HONE_OK;
}

static hone_status ref_batch(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_split3 whole = {1, in[0].type.rank ? in[0].numel : 1, 1};
    const hn_split3 s = in[0].type.rank > 1 ? hn_op_split(&in[0].type, 1) : (hn_split3){whole.n, 1, 1};
    const double eps = hn_call_f(c, "eps");

    (void)dg;
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t k = 0; k < s.n; k++) {
            const double inv = in[1].f[k] / sqrt(in[4].f[k] + eps);
            const int64_t at = (o * s.n + k) * s.inner;
            for (int64_t i = at; i < at + s.inner; i++)
                out[0].f[i] = (in[0].f[i] - in[3].f[k]) * inv + in[2].f[k];
        }
    return HONE_OK;
}

/* Each group of channels of each sample is contiguous. */
static hone_status ref_groups(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t channels = in[0].type.dim[1];
    const int64_t groups = c->op->id == HN_OP_group_norm ? hn_call_i(c, "groups") : channels;
    const double eps = hn_call_f(c, "eps");
    int64_t inner = 1;

    (void)dg;
    for (int i = 2; i < in[0].type.rank; i++)
        inner = hn_extent_times(inner, in[0].type.dim[i]);
    if (in[0].numel == 0) return HONE_OK;
    const int64_t n = channels / groups * inner;
    for (int64_t g = 0; g < in[0].type.dim[0] * groups; g++) {
        double mean, var;
        mean_var(in[0].f + g * n, n, &mean, &var);
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = (g * n + i) / inner % channels;
            out[0].f[g * n + i] = (in[0].f[g * n + i] - mean) / sqrt(var + eps) * in[1].f[k] + in[2].f[k];
        }
    }
    return HONE_OK;
}

static hone_status expand_batch(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0), *k[4];
    const int rank = x->type.rank, axis = rank > 1 ? 1 : 0;

    for (int i = 0; i < 4; i++)
        k[i] = x_along(b, x_cast(b, hn_in(n, i + 1), x_ctype(x->type.dtype)), rank, axis);
    hn_value *inv = x_mul(b, k[0], x_inv_std(b, k[3], hn_attr_f(n, "eps")));
    hn_value *y = x_add(b, x_mul(b, x_sub(b, x_up(b, x), k[2]), inv), k[1]);
    out[0] = x_cast(b, y, x->type.dtype);
    return x_done(b);
}

/* Normalise [n, groups, rest], then scale the channels of x's own shape. */
static hone_status expand_groups(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const hn_dtype t = x_ctype(x->type.dtype);
    const hn_tdesc type = x->type;
    const hn_dim groups = n->op == HN_OP_group_norm ? hn_attr_i(n, "groups") : type.dim[1];
    const hn_dim each = hn_dim_floordiv(b->g->syms, x_dprod(b, &type, 1, type.rank), groups);
    const hn_dim rest = n->op == HN_OP_instance_norm ? x_dprod(b, &type, 2, type.rank) : each;
    const hn_dim grouped[3] = {type.dim[0], groups, rest};

    x = hn_reshape(b, x_up(b, x), 3, grouped);
    x = hn_b1(b, HN_OP_layer_norm, x, HN_ATTRS_ARG(HN_A_I("axis", 2), HN_A_F("eps", hn_attr_f(n, "eps"))));
    x = hn_reshape(b, x, type.rank, type.dim);
    hn_value *scale = x_along(b, x_cast(b, hn_in(n, 1), t), type.rank, 1);
    hn_value *bias = x_along(b, x_cast(b, hn_in(n, 2), t), type.rank, 1);
    out[0] = x_cast(b, x_add(b, x_mul(b, x, scale), bias), type.dtype);
    return x_done(b);
}

#define NORM(name_, doc_, lo_, hi_, outs_, infer_, ref_, expand_, traits_, ...)                              \
    const hn_op_def hn_op_##name_ = {                                                                        \
        .id = HN_OP_##name_,                                                                                 \
        .name = #name_,                                                                                      \
        .doc = doc_,                                                                                         \
        .min_in = lo_,                                                                                       \
        .max_in = hi_,                                                                                       \
        .min_out = 1,                                                                                        \
        .max_out = outs_,                                                                                    \
        .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE | HN_TRAIT_INPLACE | (traits_),                         \
        HN_OP_ATTRS(__VA_ARGS__),                                                                            \
        .infer = infer_,                                                                                     \
        .ref = ref_,                                                                                         \
        .work = work,                                                                                        \
        .expand = expand_,                                                                                   \
        .tol = HN_OP_TOL_SUM(32, 64),                                                                        \
    };

/*
 * The mean of n terms within [-1, 1] carries up to 64 u (HN_OP_TOL_SUM) in the worst case of a deviation near
 * 1; subtracting it makes that an absolute error of the normalised value, scaled by 1/deviation; the
 * variance's relative error halves in the root; 5 more roundings follow.
 */
NORM(layer_norm, "normalise the last axes to mean 0 and variance 1", 1, 3, 3, infer_layer, ref_layer,
     expand_layer, 0, HN_S_INT("axis", -1), HN_S_FLOAT("eps", 1e-5))
NORM(rms_norm, "divide the last axes by their root mean square", 1, 2, 1, infer_layer, ref_layer,
     expand_layer, 0, HN_S_INT("axis", -1), HN_S_FLOAT("eps", 1e-5))
NORM(batch_norm, "normalise channels with given statistics", 5, 5, 1, infer_channels, ref_batch, expand_batch,
     0, HN_S_FLOAT("eps", 1e-5))
NORM(instance_norm, "normalise each channel of each sample", 3, 3, 1, infer_channels, ref_groups,
     expand_groups, 0, HN_S_FLOAT("eps", 1e-5))
NORM(group_norm, "normalise groups of channels of each sample", 3, 3, 1, infer_group, ref_groups,
     expand_groups, 0, HN_S_INT_REQ("groups"), HN_S_FLOAT("eps", 1e-5))
