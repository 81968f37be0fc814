/*
 * cast and bitcast.
 *
 * Float to integer, where ONNX leaves it open (docs/onnx-decisions.md): the fraction is dropped; 32- and
 * 64-bit results saturate; narrower ones keep the low bits of the 32-bit integer, which is 0 for what no
 * int32 holds. NaN gives 0.
 */
#include "op/op_int.h"

enum { TO, SATURATE };

static hone_status infer_cast(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_dtype_attr(c, TO, dg));
    c->out[0] = c->in[0];
    c->out[0].dtype = (hn_dtype)c->attr[TO].i;
    return HONE_OK;
}

static int64_t saturated(double v, double lo, double hi, int64_t at_lo, int64_t at_hi)
{
    if (v <= lo) return at_lo;
    return v >= hi ? at_hi : (int64_t)v;
}

static int64_t float_to_int(hn_dtype to, double v)
{
    if (isnan(v)) return 0;
    switch (to) {
    case HN_I64:
        return hn_f64_to_i64(v);
    case HN_I32:
        return saturated(v, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX);
    case HN_U32:
        return saturated(v, 0, UINT32_MAX, 0, UINT32_MAX);
    case HN_U64:
        if (v <= 0) return 0;
        return v >= 0x1p64 ? -1 : (int64_t)(uint64_t)v;
    case HN_BOOL:
        return v != 0;
    default:
        return v > -0x1p31 - 1 && v < 0x1p31 ? hn_wrap_i64(to, (int64_t)v) : 0;
    }
}

static double int_to_float(hn_dtype from, hn_dtype to, int64_t v, bool saturate)
{
    /* One rounding, not two: double cannot hold every 64-bit integer. */
    if (to == HN_F32) return from == HN_U64 ? (double)(float)(uint64_t)v : (double)(float)v;
    return hn_round_f64(to, hn_op_to_f(from, v), saturate);
}

static hone_status ref_cast(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype from = in[0].type.dtype, to = out[0].type.dtype;
    const bool ff = hn_dtype_is_float(from), tf = hn_dtype_is_float(to), saturate = c->attr[SATURATE].i;
    (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++) {
        if (ff && tf)
            out[0].f[i] = hn_round_f64(to, in[0].f[i], saturate);
        else if (tf)
            out[0].f[i] = int_to_float(from, to, in[0].i[i], saturate);
        else if (ff)
            out[0].i[i] = to == HN_BOOL ? in[0].f[i] != 0 : float_to_int(to, in[0].f[i]);
        else
            out[0].i[i] = to == HN_BOOL ? in[0].i[i] != 0 : hn_wrap_i64(to, in[0].i[i]);
    }
    return HONE_OK;
}

static bool fits(const hn_call *c, hn_dtype t, hn_dim d)
{
    int64_t lo, hi;

    hn_dim_bounds(c->syms, d, &lo, &hi);
    return t == HN_I64 || (lo >= 0 && (t == HN_U64 || hn_wrap_i64(t, hi) == hi));
}

static bool content_cast(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    const hn_dtype to = c->out[0].dtype;

    if (hn_dtype_is_float(to) || !hn_op_content_same(c, out, ret, ret_n)) return false;
    for (int i = 0; i < *ret_n; i++) {
        int64_t v;
        if (hn_op_known(c, ret[i], &v))
            ret[i] = hn_dim_const(c->syms, to == HN_BOOL ? v != 0 : hn_wrap_i64(to, v));
        else if (to == HN_BOOL)
            ret[i] = hn_dim_sub(c->syms, 1, hn_dim_eq(c->syms, ret[i], 0));
        /* A shape passing through int32, as exporters do: extents beyond it do not occur. */
        else if (to != HN_I32 && !fits(c, to, ret[i]))
            return false;
    }
    return true;
}

const hn_op_def hn_op_cast = {
    HN_OP_ID(cast, 1, 1, 1, 1),
    .doc = "x in another dtype",
    .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE,
    HN_OP_ATTRS(HN_S_DTYPE_REQ("to"), HN_S_INT("saturate", 1)),
    .infer = infer_cast,
    .content = content_cast,
    .ref = ref_cast,
    .work = hn_op_work_pointwise,
};

/* ---- bitcast ---- */
static hone_status infer_bitcast(hn_call *c, hn_diag *dg)
{
    HN_TRY(infer_cast(c, dg));
    if (hn_dtype_bits(c->in[0].dtype) != hn_dtype_bits(c->out[0].dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "%s has %d bits but %s has %d", hn_dtype_name(c->in[0].dtype),
                        hn_dtype_bits(c->in[0].dtype), hn_dtype_name(c->out[0].dtype),
                        hn_dtype_bits(c->out[0].dtype));
    return HONE_OK;
}

static hone_status ref_bitcast(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype from = in[0].type.dtype, to = out[0].type.dtype;
    (void)c, (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++) {
        uint64_t bits = 0;
        if (hn_dtype_is_float(from))
            hn_narrow_f64(from, &in[0].f[i], 1, &bits, 0, false);
        else
            hn_narrow_i64(from, &in[0].i[i], 1, &bits, 0);
        if (hn_dtype_is_float(to))
            hn_widen_f64(to, &bits, 0, 1, &out[0].f[i]);
        else
            hn_widen_i64(to, &bits, 0, 1, &out[0].i[i]);
    }
    return HONE_OK;
}

const hn_op_def hn_op_bitcast = {
    HN_OP_ID(bitcast, 1, 1, 1, 1),
    .doc = "the same bits read as another dtype of the same width",
    .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_DTYPE_REQ("to")),
    .infer = infer_bitcast,
    .ref = ref_bitcast,
    .work = hn_op_work_move,
};
