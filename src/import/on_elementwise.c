/* Elementwise ops: one operand, two, three, any number; casts; what reads only attributes. */
#include "import/import_int.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

static hn_op arg(const hn_im_call *c)
{
    return (hn_op)c->entry->arg;
}

hone_status hn_im_on_unary(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    return hn_im_ret(c, hn_im_unary(c, arg(c), c->in[0]));
}

hone_status hn_im_on_identity(hn_im_call *c)
{
    return hn_im_ret(c, c->in[0]);
}

hone_status hn_im_on_alpha_unary(hn_im_call *c)
{
    /* Defaults as the float32 numbers that the standard's defaults are. */
    const double dflt = arg(c) == HN_OP_leaky_relu ? (double)0.01f : 1;
    hn_im_ignore(c, "consumed_inputs");
    return hn_im_ret(c,
                     hn_b1(c->b, arg(c), c->in[0], HN_ATTRS_ARG(HN_A_F("alpha", hn_im_f(c, "alpha", dflt)))));
}

hone_status hn_im_on_selu(hn_im_call *c)
{
    const bool first = arg(c) == 1; /* version 1 had other digits */
    hn_im_ignore(c, "consumed_inputs");
    const double alpha = hn_im_f(c, "alpha", first ? (double)1.6732f : (double)1.67326319217681884765625f);
    const double gamma = hn_im_f(c, "gamma", first ? (double)1.0507f : (double)1.05070102214813232421875f);
    return hn_im_ret(
        c, hn_b1(c->b, HN_OP_selu, c->in[0], HN_ATTRS_ARG(HN_A_F("alpha", alpha), HN_A_F("gamma", gamma))));
}

hone_status hn_im_on_hard_sigmoid(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    const double alpha = hn_im_f(c, "alpha", (double)0.2f), beta = hn_im_f(c, "beta", 0.5);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_hard_sigmoid, c->in[0],
                              HN_ATTRS_ARG(HN_A_F("alpha", alpha), HN_A_F("beta", beta))));
}

hone_status hn_im_on_shrink(hn_im_call *c)
{
    const double bias = hn_im_f(c, "bias", 0), lambd = hn_im_f(c, "lambd", 0.5);
    return hn_im_ret(
        c, hn_b1(c->b, HN_OP_shrink, c->in[0], HN_ATTRS_ARG(HN_A_F("bias", bias), HN_A_F("lambd", lambd))));
}

hone_status hn_im_on_gelu(hn_im_call *c)
{
    const int tanh_form = hn_im_choice(c, "approximate", "none|tanh", 0);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_gelu, c->in[0], HN_ATTRS_ARG(HN_A_I("tanh", tanh_form))));
}

hone_status hn_im_on_swish(hn_im_call *c)
{
    return hn_im_ret(c,
                     hn_b1(c->b, HN_OP_silu, c->in[0], HN_ATTRS_ARG(HN_A_F("beta", hn_im_f(c, "alpha", 1)))));
}

/* y = a * sigmoid(alpha a) * b */
hone_status hn_im_on_swiglu(hn_im_call *c)
{
    hn_value *s = hn_b1(c->b, HN_OP_silu, c->in[0], HN_ATTRS_ARG(HN_A_F("beta", hn_im_f(c, "alpha", 1))));
    return hn_im_ret(c, hn_im_binary(c, HN_OP_mul, s, c->in[1]));
}

hone_status hn_im_on_is_inf(hn_im_call *c)
{
    const int64_t neg = hn_im_i(c, "detect_negative", 1), pos = hn_im_i(c, "detect_positive", 1);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_is_inf, c->in[0],
                              HN_ATTRS_ARG(HN_A_I("negative", neg != 0), HN_A_I("positive", pos != 0))));
}

hone_status hn_im_on_binary(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_binary(c, arg(c), c->in[0], c->in[1]));
}

/* Before opset 7 an attribute asks for broadcasting, and the second operand may lie along an axis in the
 * middle. */
static hn_value *spread(hn_im_call *c, hn_value *x, hn_value *y)
{
    hn_dim dim[HN_MAX_RANK];
    int axis;
    if (!hn_im_has(c, "axis") || !x || !y) return y;
    if (hn_im_axis(c, hn_im_i(c, "axis", 0), x->type.rank, &axis) != HONE_OK) return NULL;
    const int n = y->type.rank;
    if (axis + n > x->type.rank) {
        HN_IM_RAISE(c, HONE_E_SHAPE, "an operand of rank %d does not fit rank %d from axis %d on", n,
                    x->type.rank, axis);
        return NULL;
    }
    for (int i = 0; i < x->type.rank - axis; i++)
        dim[i] = i < n ? y->type.dim[i] : 1;
    return hn_reshape(c->b, y, x->type.rank - axis, dim);
}

hone_status hn_im_on_binary_old(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    hn_value *y = c->in[1];
    if (hn_im_i(c, "broadcast", 0))
        y = spread(c, c->in[0], y);
    else
        hn_im_ignore(c, "axis");
    HN_TRY(c->dg->code);
    return hn_im_ret(c, hn_im_binary(c, arg(c), c->in[0], y));
}

/* Before opset 7 the slope is one number or one a channel. */
hone_status hn_im_on_prelu_old(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    hn_value *slope = c->in[1];
    if (slope && slope->type.rank == 1 && slope->type.dim[0] != 1 && c->in[0]->type.rank > 1)
        slope = hn_im_along(c, slope, c->in[0]->type.rank, 1);
    return hn_im_ret(c, hn_im_binary(c, HN_OP_prelu, c->in[0], slope));
}

hone_status hn_im_on_mod(hn_im_call *c)
{
    return hn_im_ret(c, hn_b2(c->b, HN_OP_mod, c->in[0], c->in[1],
                              HN_ATTRS_ARG(HN_A_I("fmod", hn_im_i(c, "fmod", 0) != 0))));
}

hone_status hn_im_on_bit_shift(hn_im_call *c)
{
    if (!hn_im_has(c, "direction")) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"direction\" is missing");
    const int right = hn_im_choice(c, "direction", "LEFT|RIGHT", 0);
    return hn_im_ret(c, hn_im_binary(c, right ? HN_OP_shift_right : HN_OP_shift_left, c->in[0], c->in[1]));
}

hone_status hn_im_on_ternary(hn_im_call *c)
{
    return hn_im_same(c, arg(c), HN_NO_ATTRS);
}

hone_status hn_im_on_nary(hn_im_call *c)
{
    hn_value *v = c->in[0];
    hn_im_ignore(c, "consumed_inputs");
    for (int i = 1; i < c->n_in; i++)
        v = hn_im_binary(c, arg(c), v, c->in[i]);
    return hn_im_ret(c, v);
}

hone_status hn_im_on_mean(hn_im_call *c)
{
    hn_value *v = c->in[0];
    hn_im_ignore(c, "consumed_inputs");
    for (int i = 1; i < c->n_in; i++)
        v = hn_im_binary(c, HN_OP_add, v, c->in[i]);
    if (c->n_in > 1) v = hn_im_binary(c, HN_OP_div, v, hn_im_like_f(c, v, c->n_in));
    return hn_im_ret(c, v);
}

/* ---- clip ---- */

static hn_value *clip(hn_im_call *c, hn_value *x, hn_value *lo, hn_value *hi)
{
    if (!lo && !hi) return x;
    if (lo && lo->type.rank) lo = hn_reshape(c->b, lo, 0, NULL);
    if (hi && hi->type.rank) hi = hn_reshape(c->b, hi, 0, NULL);
    hn_node *n = hn_build(c->b, HN_OP_clip, hi ? 3 : 2, (hn_value *[]){ x, lo, hi }, HN_NO_ATTRS, 1);
    return n ? n->out[0] : NULL;
}

hone_status hn_im_on_clip(hn_im_call *c)
{
    return hn_im_ret(c, clip(c, c->in[0], hn_im_in(c, 1), hn_im_in(c, 2)));
}

hone_status hn_im_on_clip_attr(hn_im_call *c)
{
    hn_im_ignore(c, "consumed_inputs");
    const double lo = hn_im_f(c, "min", -(double)FLT_MAX), hi = hn_im_f(c, "max", (double)FLT_MAX);
    hn_value *x = c->in[0];
    return hn_im_ret(c, clip(c, x, lo > -(double)FLT_MAX ? hn_im_like_f(c, x, lo) : NULL,
                             hi < (double)FLT_MAX ? hn_im_like_f(c, x, hi) : NULL));
}

/* ---- casts ---- */

/*
 * float8e8m0 holds powers of two; the standard rounds to them upwards unless told otherwise, the op to the
 * nearest. On the bits of a float32: adding all mantissa bits carries into the exponent, clearing them is the
 * power of two at or below.
 */
static hn_value *to_power_of_two(hn_im_call *c, hn_value *x, int mode)
{
    if (mode == 2) return x;
    hn_value *f = hn_cast(c->b, x, HN_F32);
    hn_value *bits = hn_b1(c->b, HN_OP_bitcast, f, HN_ATTRS_ARG(HN_A_T("to", HN_U32)));
    if (mode == 0) bits = hn_im_binary(c, HN_OP_add, bits, hn_const_i(c->b, HN_U32, 0x007FFFFF));
    bits = hn_im_binary(c, HN_OP_bit_and, bits, hn_const_i(c->b, HN_U32, 0xFF800000));
    hn_value *y = hn_b1(c->b, HN_OP_bitcast, bits, HN_ATTRS_ARG(HN_A_T("to", HN_F32)));
    hn_value *special =
        hn_im_binary(c, HN_OP_or, hn_im_unary(c, HN_OP_is_nan, f), hn_im_unary(c, HN_OP_is_inf, f));
    return hn_im_select(c, special, f, y);
}

static hn_value *cast(hn_im_call *c, hn_value *x, hn_dtype to)
{
    const bool saturate = hn_im_i(c, "saturate", 1) != 0;
    const int mode = hn_im_choice(c, "round_mode", "up|down|nearest", 0);
    if (x && x->type.dtype == to) return x;
    if (x && to == HN_F8E8M0 && hn_dtype_is_float(x->type.dtype)) x = to_power_of_two(c, x, mode);
    return hn_b1(c->b, HN_OP_cast, x, HN_ATTRS_ARG(HN_A_T("to", to), HN_A_I("saturate", saturate)));
}

hone_status hn_im_on_cast(hn_im_call *c)
{
    const hn_dtype to = hn_im_dtype(c, "to", HN_NONE);
    if (to == HN_NONE)
        return c->attr_dg.code ? HONE_OK : HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"to\" is missing");
    return hn_im_ret(c, cast(c, c->in[0], to));
}

/* Version 1 names the type in words. */
hone_status hn_im_on_cast_old(hn_im_call *c)
{
    static const hn_dtype types[] = { HN_F32, HN_F64, HN_F16, HN_I64, HN_I32, HN_I16,
                                      HN_I8,  HN_U64, HN_U32, HN_U16, HN_U8,  HN_BOOL };
    const int i = hn_im_choice(
        c, "to", "FLOAT|DOUBLE|FLOAT16|INT64|INT32|INT16|INT8|UINT64|UINT32|UINT16|UINT8|BOOL", 0);
    return hn_im_ret(c, hn_cast(c->b, c->in[0], types[i]));
}

hone_status hn_im_on_cast_like(hn_im_call *c)
{
    return hn_im_ret(c, cast(c, c->in[0], c->in[1] ? c->in[1]->type.dtype : HN_NONE));
}

hone_status hn_im_on_bit_cast(hn_im_call *c)
{
    const hn_dtype to = hn_im_dtype(c, "to", HN_NONE);
    if (to == HN_NONE)
        return c->attr_dg.code ? HONE_OK : HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"to\" is missing");
    if (c->in[0]->type.dtype == to) return hn_im_ret(c, c->in[0]);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_bitcast, c->in[0], HN_ATTRS_ARG(HN_A_T("to", to))));
}

/* ---- dropout ---- */

static hone_status training_of(hn_im_call *c, int version, bool *ret_training, double *ret_ratio)
{
    double on = 0;
    *ret_training = version == 1 && hn_im_has(c, "is_test") && hn_im_i(c, "is_test", 0) == 0;
    *ret_ratio = version < 12 ? hn_im_f(c, "ratio", 0.5) : 0.5;
    if (version < 12 || !hn_im_in(c, 2)) return HONE_OK;
    if (!hn_const_scalar(c->in[2], &on)) return hn_im_refuse(c, "training mode that only a run decides is not supported");
    *ret_training = on != 0;
    if (*ret_training && c->in[1] && !hn_const_scalar(c->in[1], ret_ratio))
        return hn_im_refuse(c, "a dropout ratio that only a run decides is not supported");
    return HONE_OK;
}

static int64_t seed_from(const hn_im_call *c, bool given, const void *seed, size_t n)
{
    /* Without a seed every node gets its own from its path, the same in every build. */
    const uint64_t h = given ? hn_hash64(seed, n, 0) : hn_hash64(c->path, strlen(c->path), 1);
    return (int64_t)(h & INT64_MAX);
}

/* What training keeps, scaled so that the mean stays: x / (1 - ratio) where a draw in [0, 1) is at least the ratio, else 0. */
static hone_status drop(hn_im_call *c, double ratio)
{
    hn_value *x = c->in[0];
    const int64_t given = hn_im_i(c, "seed", 0), seed = seed_from(c, hn_im_has(c, "seed"), &given, sizeof given);
    if (!(ratio >= 0 && ratio < 1)) return HN_IM_RAISE(c, HONE_E_MODEL, "a dropout ratio of %g", ratio);
    hn_node *r = hn_build(c->b, HN_OP_random_uniform, 0, NULL,
                          HN_ATTRS_ARG(HN_A_T("dtype", HN_F32), HN_A_DIMS("dim", x->type.rank, x->type.dim),
                                       HN_A_F("lo", 0), HN_A_F("hi", 1), HN_A_I("seed", seed)),
                          1);
    hn_value *draw = r ? r->out[0] : NULL;
    hn_value *keep = draw ? hn_im_binary(c, HN_OP_ge, draw, hn_im_like_f(c, draw, ratio)) : NULL;
    c->out[0] = hn_im_select(c, keep, hn_im_scale(c, x, 1 / (1 - ratio)), hn_im_like_f(c, x, 0));
    if (hn_im_wants(c, 1)) c->out[1] = c->entry->arg >= 10 ? keep : hn_cast(c->b, keep, x->type.dtype);
    return c->b->status;
}

hone_status hn_im_on_dropout(hn_im_call *c)
{
    const int version = c->entry->arg;
    hn_value *x = c->in[0];
    bool training;
    double ratio;
    hn_im_ignore(c, "seed");
    hn_im_ignore(c, "consumed_inputs");
    HN_TRY(training_of(c, version, &training, &ratio));
    if (training && ratio != 0) return drop(c, ratio);
    c->out[0] = x;
    if (!hn_im_wants(c, 1)) return HONE_OK;
    hn_value *one = version >= 10 ? hn_im_const_bool(c, true) : hn_im_like_f(c, x, 1);
    c->out[1] = hn_im_fill(c, one, x->type.rank, x->type.dim);
    return c->b->status;
}

/* ---- random ---- */

/* The standard's seed is a float. */
static hone_status seed_of(hn_im_call *c, int64_t *ret)
{
    const double f = hn_im_f(c, "seed", 0);
    *ret = seed_from(c, hn_im_has(c, "seed"), &f, sizeof f);
    return HONE_OK;
}

hone_status hn_im_on_random(hn_im_call *c)
{
    const bool normal = arg(c) == HN_OP_random_normal;
    const hn_value *like = hn_im_in(c, 0);
    hn_dim dim[HN_MAX_RANK];
    int64_t seed;
    int n = like ? like->type.rank : 0;
    HN_TRY(seed_of(c, &seed));
    if (like) {
        memcpy(dim, like->type.dim, (size_t)n * sizeof *dim);
    } else {
        const int64_t *shape = hn_im_is(c, "shape", &n);
        if (!shape || n > HN_MAX_RANK)
            return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"shape\" is missing or too long");
        for (int i = 0; i < n; i++)
            if ((dim[i] = shape[i]) < 0)
                return HN_IM_RAISE(c, HONE_E_MODEL, "extent %d of the shape is %" PRId64, i, shape[i]);
    }
    const hn_dtype t = hn_im_dtype(c, "dtype", like ? like->type.dtype : HN_F32);
    const double a = normal ? hn_im_f(c, "mean", 0) : hn_im_f(c, "low", 0);
    const double b = normal ? hn_im_f(c, "scale", 1) : hn_im_f(c, "high", 1);
    hn_node *r =
        hn_build(c->b, arg(c), 0, NULL,
                 HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_DIMS("dim", n, dim), HN_A_F(normal ? "mean" : "lo", a),
                              HN_A_F(normal ? "scale" : "hi", b), HN_A_I("seed", seed)),
                 1);
    return hn_im_ret(c, r ? r->out[0] : NULL);
}

hone_status hn_im_on_bernoulli(hn_im_call *c)
{
    int64_t seed;
    HN_TRY(seed_of(c, &seed));
    const hn_dtype t = hn_im_dtype(c, "dtype", c->in[0]->type.dtype);
    return hn_im_ret(
        c, hn_b1(c->b, HN_OP_bernoulli, c->in[0], HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_I("seed", seed))));
}

hone_status hn_im_on_multinomial(hn_im_call *c)
{
    int64_t seed;
    const int64_t n = hn_im_i(c, "sample_size", 1);
    HN_TRY(seed_of(c, &seed));
    if (n < 0) return HN_IM_RAISE(c, HONE_E_MODEL, "sample_size is %" PRId64, n);
    const hn_dtype t = hn_im_dtype(c, "dtype", HN_I32);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_multinomial, c->in[0],
                              HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_DIM("dim", n),
                                           HN_A_I("seed", seed))));
}
