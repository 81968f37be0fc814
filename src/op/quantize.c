/*
 * Quantisation with explicit parameters:
 *
 *     quantize (x, scale, zero?) {axis, block, to, saturate}      saturate(round(x / scale) + zero), half to
 * even dequantize (x, scale, zero?) {axis, block, to}              (x - zero) * scale; to: none = scale's
 * dtype dynamic_quantize (x f32) -> y u8, scale f32[], zero u8[]    range of x widened to hold 0, over 0..255
 *
 * scale and zero hold one element (any rank), or one per index of `axis` (rank 1), or with block > 0 one per
 * `block` neighbours along the axis: x's shape with ceil(extent / block) there. Floats as targets (f8, f4)
 * round the quotient and take no offset; saturate says whether they clamp at their largest number.
 *
 * The quotient is rounded to f32 (f64 for f64 x) before it is rounded to an integer, as every runtime does: a
 * quotient that lies on a bin's edge in f32 and beside it in double would flip the bin. NaN becomes integer
 * 0.
 */
#include "op/expand_int.h"

enum { AXIS, BLOCK, TO, SATURATE };
enum { X, SCALE, ZERO };

typedef enum spread { PER_TENSOR, PER_AXIS, PER_BLOCK } spread;

static bool one_element(const hn_tdesc *t)
{
    for (int i = 0; i < t->rank; i++)
        if (t->dim[i] != 1) return false;
    return true;
}

static spread spread_of(const hn_tdesc *scale, int64_t block)
{
    return one_element(scale) ? PER_TENSOR : block > 0 ? PER_BLOCK : PER_AXIS;
}

static bool quantum_type(hn_dtype t)
{
    return t != HN_BOOL && t != HN_NONE && t != HN_F8E8M0 &&
           hn_dtype_bits(t) <= (hn_dtype_is_int(t) ? 16 : 8);
}

/* ---- inference ---- */

static hone_status check_block_shape(const hn_call *c, int axis, int64_t block, hn_diag *dg)
{
    HN_TRY(hn_op_want_rank(c, SCALE, c->in[X].rank, dg));
    for (int i = 0; i < c->in[X].rank; i++) {
        const hn_dim n = c->in[X].dim[i];
        hn_dim d;
        if (!hn_op_meet(c, c->in[SCALE].dim[i], i == axis ? hn_dim_ceildiv(c->syms, n, block) : n, &d))
            return HN_RAISE(dg, HONE_E_SHAPE,
                            "axis %d of the scale has extent %lld, which does not fit blocks of %lld", i,
                            (long long)c->in[SCALE].dim[i], (long long)block);
    }
    return HONE_OK;
}

static hone_status check_params(const hn_call *c, hn_diag *dg)
{
    const int64_t block = hn_call_i(c, "block");
    int axis = 0;

    HN_TRY(hn_op_want_float(c, SCALE, dg));
    HN_TRY(hn_op_want_attr(c, BLOCK, 0, INT64_MAX, dg));
    const spread s = spread_of(&c->in[SCALE], block);
    if (s != PER_TENSOR) HN_TRY(hn_op_want_axis(c, AXIS, c->in[X].rank, false, &axis, dg));
    if (s == PER_AXIS) {
        HN_TRY(hn_op_want_rank(c, SCALE, 1, dg));
        HN_TRY(hn_op_want_meet(c, X, axis, SCALE, 0, NULL, dg));
    }
    if (s == PER_BLOCK) HN_TRY(check_block_shape(c, axis, block, dg));
    if (!hn_op_has(c, ZERO)) return HONE_OK;
    if (one_element(&c->in[ZERO]) && s == PER_TENSOR) return HONE_OK;
    HN_TRY(hn_op_want_rank(c, ZERO, c->in[SCALE].rank, dg));
    for (int i = 0; i < c->in[SCALE].rank; i++)
        HN_TRY(hn_op_want_meet(c, SCALE, i, ZERO, i, NULL, dg));
    return HONE_OK;
}

static hone_status infer_quantize(hn_call *c, hn_diag *dg)
{
    const hn_dtype to = (hn_dtype)hn_call_i(c, "to");

    if (c->in[X].dtype != HN_I32) HN_TRY(hn_op_want_float(c, X, dg));
    HN_TRY(hn_op_want_dtype_attr(c, TO, dg));
    if (!quantum_type(to))
        return HN_RAISE(dg, HONE_E_TYPE, "quantising to %s is not defined", hn_dtype_name(to));
    HN_TRY(check_params(c, dg));
    if (hn_op_has(c, ZERO)) HN_TRY(hn_op_want_dtype(c, ZERO, to, dg));
    c->out[0] = c->in[X];
    c->out[0].dtype = to;
    return HONE_OK;
}

static hone_status infer_dequantize(hn_call *c, hn_diag *dg)
{
    const hn_dtype to = (hn_dtype)hn_call_i(c, "to");

    HN_TRY(hn_op_want(c, X, dg));
    if (c->in[X].dtype != HN_I32 && !quantum_type(c->in[X].dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "dequantising from %s is not defined",
                        hn_dtype_name(c->in[X].dtype));
    HN_TRY(check_params(c, dg));
    if (to != HN_NONE && !hn_dtype_is_float(to))
        return HN_RAISE(dg, HONE_E_TYPE, "dequantising to %s is not defined", hn_dtype_name(to));
    if (hn_op_has(c, ZERO)) HN_TRY(hn_op_want_same(c, X, ZERO, dg));
    c->out[0] = c->in[X];
    c->out[0].dtype = to != HN_NONE ? to : c->in[SCALE].dtype;
    return HONE_OK;
}

static hone_status infer_dynamic(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, X, HN_F32, dg));
    c->out[0] = c->in[X];
    c->out[0].dtype = HN_U8;
    if (c->n_out > 1) c->out[1] = (hn_tdesc){.dtype = HN_F32};
    if (c->n_out > 2) c->out[2] = (hn_tdesc){.dtype = HN_U8};
    return HONE_OK;
}

/* ---- references ---- */

typedef struct param_index {
    spread how;
    hn_split3 s;
    int64_t block;
} param_index;

static param_index param_index_of(const hn_call *c, const hn_view *in)
{
    param_index p = {.block = hn_call_i(c, "block")};
    int axis = 0;

    p.how = spread_of(&in[SCALE].type, p.block);
    if (p.how == PER_TENSOR) return p;
    hn_axis_resolve(hn_call_i(c, "axis"), in[X].type.rank, &axis);
    p.s = hn_op_split(&in[X].type, axis);
    return p;
}

/* Which element of scale and zero belongs to element i of x. */
static int64_t param_at(const param_index *p, int64_t i)
{
    if (p->how == PER_TENSOR) return 0;
    const int64_t a = i / p->s.inner % p->s.n;
    if (p->how == PER_AXIS) return a;
    const int64_t blocks = (p->s.n + p->block - 1) / p->block;
    return (i / p->s.inner / p->s.n * blocks + a / p->block) * p->s.inner + i % p->s.inner;
}

static double load(const hn_view *v, int64_t i)
{
    return hn_dtype_is_float(v->type.dtype) ? v->f[i] : hn_op_to_f(v->type.dtype, v->i[i]);
}

static void int_range(hn_dtype t, double *lo, double *hi)
{
    const int bits = hn_dtype_bits(t);
    *lo = hn_dtype_is_signed(t) ? -ldexp(1, bits - 1) : 0;
    *hi = hn_dtype_is_signed(t) ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1;
}

static int64_t to_int(hn_dtype t, double quotient, double zero)
{
    double lo, hi;

    int_range(t, &lo, &hi);
    if (isnan(quotient)) return 0;
    return (int64_t)fmin(fmax(rint(quotient) + zero, lo), hi);
}

static hone_status ref_quantize(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const param_index p = param_index_of(c, in);
    const hn_dtype to = out[0].type.dtype, wide = x_ctype(in[X].type.dtype);
    const bool has_zero = c->n_in > ZERO && in[ZERO].type.dtype != HN_NONE;

    (void)dg;
    for (int64_t i = 0; i < out[0].numel; i++) {
        const int64_t at = param_at(&p, i);
        const double q = hn_round_f64(wide, load(&in[X], i) / in[SCALE].f[at], false);
        if (hn_dtype_is_float(to))
            out[0].f[i] = hn_round_f64(to, q, hn_call_i(c, "saturate") != 0);
        else
            out[0].i[i] = to_int(to, q, has_zero ? load(&in[ZERO], at) : 0);
    }
    return HONE_OK;
}

static hone_status ref_dequantize(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const param_index p = param_index_of(c, in);
    const bool has_zero = c->n_in > ZERO && in[ZERO].type.dtype != HN_NONE;

    (void)dg;
    for (int64_t i = 0; i < out[0].numel; i++) {
        const int64_t at = param_at(&p, i);
        out[0].f[i] = (load(&in[X], i) - (has_zero ? load(&in[ZERO], at) : 0)) * in[SCALE].f[at];
    }
    return HONE_OK;
}

static double f32(double v)
{
    return hn_round_f64(HN_F32, v, false);
}

static hone_status ref_dynamic(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    double lo = 0, hi = 0;
    bool undefined = false;

    (void)dg;
    for (int64_t i = 0; i < in[X].numel; i++) {
        lo = fmin(lo, in[X].f[i]);
        hi = fmax(hi, in[X].f[i]);
        undefined |= isnan(in[X].f[i]);
    }
    if (undefined) lo = hi = NAN; /* as the extremes of ReduceMin and ReduceMax are */
    double scale = f32(f32(hi - lo) / 255);
    if (scale == 0) scale = 1; /* all zeros: any scale does; 0 would divide by itself */
    const int64_t zero = to_int(HN_U8, f32(-lo / scale), 0);
    for (int64_t i = 0; i < in[X].numel; i++)
        out[0].i[i] = to_int(HN_U8, f32(in[X].f[i] / scale), (double)zero);
    if (c->n_out > 1) out[1].f[0] = scale;
    if (c->n_out > 2) out[2].i[0] = zero;
    return HONE_OK;
}

/* Divide, round, add, clamp, convert. */
static void work(const hn_call *c, hn_work *ret)
{
    ret->flops = (c->op->id == HN_OP_dequantize ? 2 : 4) * hn_op_count(c, &c->in[X]);
    ret->bytes = hn_op_bytes(c);
}

/* ---- expansions ---- */

/* A per-block parameter repeated to x's extent along the axis. */
static hn_value *x_repeat(hn_builder *b, hn_value *p, int axis, int64_t block, hn_dim extent)
{
    hn_dim d[HN_MAX_RANK + 1], flat[HN_MAX_RANK];
    const int rank = p->type.rank;

    if (x_dmul(b, p->type.dim[axis], block) != extent || rank == HN_MAX_RANK) {
        hn_value *i = x_iota(b, HN_I64, 1, 0, extent);
        return x_gather(b, p, x_div_k(b, i, (double)block), axis);
    }
    for (int i = 0; i <= rank; i++)
        d[i] = i <= axis ? p->type.dim[i] : i == axis + 1 ? block : p->type.dim[i - 1];
    for (int i = 0; i < rank; i++)
        flat[i] = i == axis ? extent : p->type.dim[i];
    return hn_reshape(b, hn_broadcast_to(b, x_unsqueeze(b, p, axis + 1), rank + 1, d), rank, flat);
}

/* scale or zero, in dtype t, shaped to broadcast against x. */
static hn_value *x_param(hn_builder *b, const hn_node *n, hn_value *p, hn_dtype t)
{
    const hn_tdesc *x = &hn_in(n, X)->type;
    const int64_t block = hn_attr_i(n, "block");
    int axis = 0;

    if (!p) return NULL;
    const spread how = spread_of(&hn_in(n, SCALE)->type, block);
    p = x_cast(b, p, t);
    if (how == PER_TENSOR || !p) return hn_reshape(b, p, 0, (hn_dim[]){0});
    hn_axis_resolve(hn_attr_i(n, "axis"), x->rank, &axis);
    return how == PER_AXIS ? x_along(b, p, x->rank, axis) : x_repeat(b, p, axis, block, x->dim[axis]);
}

static hn_value *x_to_int(hn_builder *b, hn_value *quotient, hn_value *zero, hn_dtype to)
{
    double lo, hi;

    int_range(to, &lo, &hi);
    hn_value *r = x_round(b, quotient);
    if (zero) r = x_add(b, r, zero);
    return x_cast(b, x_clip(b, r, lo, hi), to);
}

static hone_status expand_quantize(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_dtype to = (hn_dtype)hn_attr_i(n, "to"), t = x_ctype(hn_in(n, X)->type.dtype);
    hn_value *x = x_cast(b, hn_in(n, X), t);
    hn_value *q = x_div(b, x, x_param(b, n, hn_in(n, SCALE), t));

    out[0] = hn_dtype_is_float(to)
                 ? hn_b1(b, HN_OP_cast, q,
                         HN_ATTRS_ARG(HN_A_T("to", to), HN_A_I("saturate", hn_attr_i(n, "saturate"))))
                 : x_to_int(b, q, x_param(b, n, hn_in(n, ZERO), t), to);
    return x_done(b);
}

static hone_status expand_dequantize(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_dtype given = (hn_dtype)hn_attr_i(n, "to"), to = given ? given : hn_in(n, SCALE)->type.dtype;
    const hn_dtype t = to == HN_F64 || hn_in(n, SCALE)->type.dtype == HN_F64 ? HN_F64 : HN_F32;
    hn_value *x = x_cast(b, hn_in(n, X), t), *zero = x_param(b, n, hn_in(n, ZERO), t);

    if (zero) x = x_sub(b, x, zero);
    out[0] = x_cast(b, x_mul(b, x, x_param(b, n, hn_in(n, SCALE), t)), to);
    return x_done(b);
}

static hone_status expand_dynamic(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, X);
    hn_value *lo = x_min_k(b, x_reduce_from(b, HN_OP_reduce_min, x, 0, false), 0);
    hn_value *hi = x_max_k(b, x_reduce_from(b, HN_OP_reduce_max, x, 0, false), 0);
    hn_value *scale = x_div_k(b, x_sub(b, hi, lo), 255);

    scale = x_select(b, x_eq_k(b, scale, 0), x_k(b, scale, 1), scale);
    hn_value *zero = x_to_int(b, x_div(b, x_neg(b, lo), scale), NULL, HN_U8);
    out[0] = x_to_int(b, x_div(b, x, scale), x_cast(b, zero, HN_F32), HN_U8);
    if (n->n_out > 1) out[1] = scale;
    if (n->n_out > 2) out[2] = zero;
    return x_done(b);
}

enum { TRAITS = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE };

/* Exact: the arithmetic is fixed down to the rounding of the quotient. */
const hn_op_def hn_op_quantize = {
    HN_OP_ID(quantize, 2, 3, 1, 1),
    .doc = "divide by a scale, round, offset and saturate into a narrow dtype",
    .traits = TRAITS,
    HN_OP_ATTRS(HN_S_INT("axis", 1), HN_S_INT("block", 0), HN_S_DTYPE_REQ("to"), HN_S_INT("saturate", 1)),
    .infer = infer_quantize,
    .ref = ref_quantize,
    .work = work,
    .expand = expand_quantize,
};

/* x - zero is exact up to 24 bits (one rounding for i32), the product rounds once, the store to a half once
 * more. */
const hn_op_def hn_op_dequantize = {
    HN_OP_ID(dequantize, 2, 3, 1, 1),
    .doc = "subtract the zero point and multiply by the scale",
    .traits = TRAITS,
    HN_OP_ATTRS(HN_S_INT("axis", 1), HN_S_INT("block", 0), HN_S_DTYPE("to", HN_NONE)),
    .infer = infer_dequantize,
    .ref = ref_dequantize,
    .work = work,
    .expand = expand_dequantize,
    .tol = HN_OP_TOL(3),
};

/* Exact, as quantize. */
const hn_op_def hn_op_dynamic_quantize = {
    HN_OP_ID(dynamic_quantize, 1, 1, 1, 3),
    .doc = "quantise to u8 over the range that the data takes",
    .traits = TRAITS,
    .infer = infer_dynamic,
    .ref = ref_dynamic,
    .work = work,
    .expand = expand_dynamic,
};
