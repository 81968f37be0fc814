/* com.microsoft: small sums that converters and fusions write, in ops of ours. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- integers ---- */

static hn_value *centred(hn_im_call *c, hn_value *x, hn_value *zero)
{
    x = hn_cast(c->b, x, HN_I32);
    return zero ? hn_im_binary(c, HN_OP_sub, x, hn_cast(c->b, zero, HN_I32)) : x;
}

hone_status hn_im_on_ms_mul_integer(hn_im_call *c)
{
    return hn_im_done(c, hn_im_binary(c, HN_OP_mul, centred(c, c->in[0], c->in[1]), centred(c, c->in[2], hn_im_in(c, 3))));
}

hone_status hn_im_on_ms_reduce_sum_integer(hn_im_call *c)
{
    int64_t axes[HN_MAX_RANK];
    int n;
    bool given;
    HN_TRY(hn_im_axes(c, "axes", -1, c->in[0]->type.rank, true, axes, &n, &given));
    for (int i = 0; !given && i < c->in[0]->type.rank; i++)
        axes[n++] = i;
    const hn_dtype to = hn_dtype_is_signed(c->in[0]->type.dtype) ? HN_I32 : HN_U32;
    return hn_im_done(c, hn_im_reduce(c, HN_OP_reduce_sum, hn_cast(c->b, c->in[0], to), n, axes, hn_im_i(c, "keepdims", 1) != 0));
}

/* Operands of 16 bits; wraps in 32. */
hone_status hn_im_on_ms_matmul_integer16(hn_im_call *c)
{
    const bool is_signed = hn_dtype_is_signed(c->in[0]->type.dtype) || hn_dtype_is_signed(c->in[1]->type.dtype);
    const hn_dtype to = is_signed ? HN_I32 : HN_U32;
    return hn_im_done(c, hn_im_matmul_numpy(c, hn_cast(c->b, c->in[0], to), hn_cast(c->b, c->in[1], to)));
}

/* ---- shapes ---- */

hone_status hn_im_on_ms_expand_dims(hn_im_call *c)
{
    int64_t at;
    int axis;
    if (!hn_im_int(c, c->in[1], &at)) return hn_im_refuse(c, "an axis that only a run shows is not supported");
    HN_TRY(hn_im_axis(c, at, c->in[0]->type.rank + 1, &axis));
    return hn_im_done(c, hn_im_unsqueeze(c, c->in[0], axis));
}

/* y[..., i, ..., k] = x[..., i * step + k, ...] */
hone_status hn_im_on_ms_unfold(hn_im_call *c)
{
    const int64_t size = hn_im_i(c, "size", 0), step = hn_im_i(c, "step", 1);
    hn_value *x = c->in[0];
    int axis;
    if (size < 1 || step < 1) return HN_IM_RAISE(c, HONE_E_MODEL, "size is %" PRId64 ", step %" PRId64, size, step);
    HN_TRY(hn_im_axis(c, hn_im_i(c, "dim", -1), x->type.rank, &axis));
    const hn_dim n = hn_im_dadd(c, hn_im_ddiv(c, hn_im_dsub(c, x->type.dim[axis], size), step), 1);
    hn_value *first = hn_im_scale(c, hn_im_iota(c, HN_I64, 2, (hn_dim[]){ n, 1 }, 0), (double)step);
    hn_value *at = hn_im_binary(c, HN_OP_add, first, hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, size }, 1));
    hn_value *y = hn_im_gather(c, x, at, axis); /* size stands right behind the axis */
    int64_t perm[HN_MAX_RANK];
    for (int i = 0; y && i < y->type.rank; i++)
        perm[i] = i <= axis ? i : i == y->type.rank - 1 ? axis + 1 : i + 1;
    return hn_im_done(c, y ? hn_transpose(c->b, y, perm) : NULL);
}

/* ---- distances ---- */

/* Rows of a [m,n] from rows of b [k,n]: as root of the sum of squared differences, which no cancellation spoils. */
hone_status hn_im_on_ms_cdist(hn_im_call *c)
{
    const char *metric = hn_im_s(c, "metric", "sqeuclidean");
    const bool root = strcmp(metric, "euclidean") == 0;
    if (!root && strcmp(metric, "sqeuclidean") != 0) return hn_im_refuse(c, "the distance \"%s\" is not supported", metric);
    if (c->in[0]->type.rank != 2 || c->in[1]->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the operands are no matrices");
    hn_value *d = hn_im_binary(c, HN_OP_sub, hn_im_unsqueeze(c, c->in[0], 1), hn_im_unsqueeze(c, c->in[1], 0));
    return hn_im_done(c, hn_im_reduce(c, root ? HN_OP_reduce_l2 : HN_OP_reduce_sum_square, d, 1, (int64_t[]){ 2 }, false));
}

/* ---- complex numbers, real and imaginary part along the last axis ---- */

/* a b, or a conj(b) */
hone_status hn_im_on_ms_complex_mul(hn_im_call *c)
{
    hn_value *part[4];
    for (int i = 0; i < 4; i++) {
        hn_value *x = c->in[i / 2];
        if (x->type.rank < 1) return HN_IM_RAISE(c, HONE_E_SHAPE, "operand %d is a scalar", i / 2);
        part[i] = hn_slice(c->b, x, x->type.rank - 1, i % 2, 1);
    }
    const hn_op plus = c->entry->arg ? HN_OP_add : HN_OP_sub, minus = c->entry->arg ? HN_OP_sub : HN_OP_add;
    hn_value *re = hn_im_binary(c, plus, hn_im_binary(c, HN_OP_mul, part[0], part[2]), hn_im_binary(c, HN_OP_mul, part[1], part[3]));
    hn_value *im = hn_im_binary(c, minus, hn_im_binary(c, HN_OP_mul, part[1], part[2]), hn_im_binary(c, HN_OP_mul, part[0], part[3]));
    if (!re || !im) return c->b->status;
    return hn_im_done(c, hn_im_concat(c, re->type.rank - 1, 2, (hn_value *[]){ re, im }));
}

static hone_status one_signal_axis(hn_im_call *c)
{
    if (hn_im_i(c, "signal_ndim", 1) != 1) return hn_im_refuse(c, "transforms over several axes are not supported");
    if (!hn_im_i(c, "onesided", 1) || hn_im_i(c, "normalized", 0)) return hn_im_refuse(c, "only onesided transforms without a norm are known");
    return HONE_OK;
}

hone_status hn_im_on_ms_rfft(hn_im_call *c)
{
    HN_TRY(one_signal_axis(c));
    const int rank = c->in[0]->type.rank;
    hn_value *x = hn_im_unsqueeze(c, c->in[0], rank);
    return hn_im_done(c, hn_b1(c->b, HN_OP_dft, x, HN_ATTRS_ARG(HN_A_I("axis", rank - 1), HN_A_I("onesided", 1))));
}

hone_status hn_im_on_ms_irfft(hn_im_call *c)
{
    HN_TRY(one_signal_axis(c));
    const int axis = c->in[0]->type.rank - 2;
    if (axis < 0) return HN_IM_RAISE(c, HONE_E_SHAPE, "there is no axis of real and imaginary parts");
    hn_value *y = hn_b1(c->b, HN_OP_dft, c->in[0], HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("inverse", 1), HN_A_I("onesided", 1)));
    return hn_im_done(c, y ? hn_im_squeeze(c, y, axis + 1) : NULL);
}

/* ---- gates ---- */

/* Gates are computed in f32 at least, and cast back. */
static hone_status done_as(hn_im_call *c, hn_value *y, hn_dtype t)
{
    return hn_im_done(c, y ? hn_cast(c->b, y, t) : NULL);
}

static hn_value *silu(hn_im_call *c, hn_value *x, double beta)
{
    return hn_b1(c->b, HN_OP_silu, x, HN_ATTRS_ARG(HN_A_F("beta", beta)));
}

/* Both halves clamped, gate * sigmoid(alpha gate) * (up + beta). */
hone_status hn_im_on_ms_swiglu(hn_im_call *c)
{
    const double limit = hn_im_f(c, "limit", 0), alpha = hn_im_f(c, "activation_alpha", 1), beta = hn_im_f(c, "activation_beta", 0);
    const hn_dtype t = c->in[0]->type.dtype;
    hn_value *gate = hn_im_wide(c, c->in[0]), *up = hn_im_wide(c, hn_im_in(c, 1));
    if (!gate || gate->type.rank < 1) return HN_IM_RAISE(c, HONE_E_SHAPE, "the gate is a scalar");
    if (!up) {
        const int last = gate->type.rank - 1;
        const hn_dim half = hn_im_ddiv(c, gate->type.dim[last], 2);
        up = hn_slice(c->b, gate, last, half, half);
        gate = hn_slice(c->b, gate, last, 0, half);
    }
    if (limit > 0) {
        hn_value *most = hn_im_like_f(c, gate, limit);
        up = hn_b3(c->b, HN_OP_clip, up, hn_im_like_f(c, gate, -limit), most, HN_NO_ATTRS);
        gate = hn_im_binary(c, HN_OP_min, gate, most);
    }
    hn_value *g = silu(c, gate, alpha);
    if (g && hn_im_i(c, "round_activation", 0)) g = hn_im_wide(c, hn_cast(c->b, g, t));
    if (beta != 0) up = hn_im_binary(c, HN_OP_add, up, hn_im_like_f(c, up, beta));
    return done_as(c, hn_im_binary(c, HN_OP_mul, g, up), t);
}

/* Groups of as many elements of the last axis as `scale` has, each normalised by its own mean square. */
static hn_value *grouped_rms(hn_im_call *c, hn_value *x, hn_value *scale, hn_dim group, double eps)
{
    hn_dim dim[HN_MAX_RANK];
    if (!x || x->type.rank < 1 || x->type.rank >= HN_MAX_RANK) return NULL;
    const int last = x->type.rank - 1;
    memcpy(dim, x->type.dim, sizeof dim);
    dim[last] = hn_im_ddiv(c, x->type.dim[last], group);
    dim[last + 1] = group;
    hn_value *g = hn_reshape(c->b, x, last + 2, dim);
    hn_value *y = hn_b2(c->b, HN_OP_rms_norm, g, scale, HN_ATTRS_ARG(HN_A_I("axis", last + 1), HN_A_F("eps", eps)));
    return y ? hn_reshape(c->b, y, last + 1, x->type.dim) : NULL;
}

hone_status hn_im_on_ms_gated_rms_norm(hn_im_call *c)
{
    const hn_dtype t = c->in[0]->type.dtype;
    const int act = hn_im_choice(c, "activation", "silu|swish|sigmoid", 0);
    hn_value *gate = hn_im_wide(c, c->in[2]), *scale = hn_im_wide(c, c->in[1]);
    if (!scale || scale->type.rank != 1) return HN_IM_RAISE(c, HONE_E_SHAPE, "the scale is no vector");
    gate = act == 2 ? hn_im_unary(c, HN_OP_sigmoid, gate) : silu(c, gate, 1);
    hn_value *y = grouped_rms(c, hn_im_wide(c, c->in[0]), scale, scale->type.dim[0], hn_im_f(c, "epsilon", (double)1e-5f));
    return done_as(c, y ? hn_im_binary(c, HN_OP_mul, y, gate) : NULL, t);
}

hone_status hn_im_on_ms_gated_add(hn_im_call *c)
{
    if (hn_im_in(c, 3)) return hn_im_refuse(c, "a projected gate is not supported");
    return hn_im_done(c, hn_im_binary(c, HN_OP_add, c->in[0], hn_im_binary(c, HN_OP_mul, c->in[1], c->in[2])));
}

hone_status hn_im_on_ms_scaled_silu(hn_im_call *c)
{
    hn_value *scale = hn_im_in(c, 1) ? hn_cast(c->b, c->in[1], c->in[0]->type.dtype) : hn_im_like_f(c, c->in[0], hn_im_f(c, "alpha", 1));
    hn_value *x = hn_im_binary(c, HN_OP_mul, c->in[0], scale);
    return hn_im_done(c, hn_im_binary(c, HN_OP_mul, x, hn_im_unary(c, HN_OP_sigmoid, x)));
}

/* decay = decay_scale softplus(a + dt_bias), beta = sigmoid(b), in f32 */
hone_status hn_im_on_ms_linear_attention_gate(hn_im_call *c)
{
    const hn_dtype t = c->in[0]->type.dtype;
    hn_value *a = hn_im_binary(c, HN_OP_add, hn_cast(c->b, c->in[0], HN_F32), c->in[1]), *b = hn_im_in(c, 3);
    hn_value *decay = hn_im_binary(c, HN_OP_mul, hn_im_unary(c, HN_OP_softplus, a), c->in[2]);
    if (c->n_out > 1 && !b) return HN_IM_RAISE(c, HONE_E_MODEL, "beta is asked for without its projection");
    if (c->n_out > 1) c->out[1] = hn_cast(c->b, hn_im_unary(c, HN_OP_sigmoid, hn_cast(c->b, b, HN_F32)), t);
    return done_as(c, decay, t);
}

/* ---- the standard's later ops under this domain ---- */

hone_status hn_im_on_ms_linear_attention(hn_im_call *c)
{
    if (hn_im_i(c, "state_window", 0)) return hn_im_refuse(c, "a window of states is not supported");
    return hn_im_on_linear_attention(c);
}

hone_status hn_im_on_ms_causal_conv(hn_im_call *c)
{
    static const char *const off[] = { "state_window", "state_update_capacity", "state_length", "input_channel_offset", "input_channels",
                                       "channels_last" };
    for (int i = 0; i < HN_COUNT(off); i++)
        if (hn_im_i(c, off[i], 0)) return hn_im_refuse(c, "attribute \"%s\" is not supported", off[i]);
    if (hn_im_i(c, "dilation", 1) != 1) return hn_im_refuse(c, "a dilation is not supported");
    if (hn_im_i(c, "ndim", 1) != 1) return hn_im_refuse(c, "more than one spatial axis is not supported");
    hn_im_ignore(c, "state_channels_last");
    return hn_im_on_causal_conv(c);
}

/* ---- is everything finite? ---- */

hone_status hn_im_on_ms_is_all_finite(hn_im_call *c)
{
    const bool nan_only = hn_im_i(c, "isnan_only", 0) != 0, inf_only = hn_im_i(c, "isinf_only", 0) != 0;
    hn_value *bad = NULL;
    for (int i = 0; i < c->n_in; i++) {
        hn_value *x = c->in[i], *nan = inf_only ? NULL : hn_im_unary(c, HN_OP_is_nan, x), *inf = nan_only ? NULL : hn_im_unary(c, HN_OP_is_inf, x);
        hn_value *either = !nan ? inf : !inf ? nan : hn_im_binary(c, HN_OP_or, nan, inf);
        if (!either) return c->b->status ? c->b->status : HN_IM_RAISE(c, HONE_E_MODEL, "isnan_only and isinf_only are both set");
        const hn_dim n = hn_tdesc_numel(hn_im_syms(c), &either->type);
        hn_value *flat = hn_cast(c->b, hn_reshape(c->b, either, 1, &n), HN_I32);
        hn_value *some = hn_im_binary(c, HN_OP_gt, hn_im_reduce(c, HN_OP_reduce_sum, flat, 1, (int64_t[]){ 0 }, false), hn_const_i(c->b, HN_I32, 0));
        bad = bad ? hn_im_binary(c, HN_OP_or, bad, some) : some;
    }
    return hn_im_done(c, bad ? hn_im_unary(c, HN_OP_not, bad) : NULL);
}
