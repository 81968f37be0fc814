/* Lowering of pointwise ops to kernel IR: one operand tuple in, one value out, arithmetic as ops.def defines it. */
#include "tactic/lower_int.h"

bool hn_lower_is_pointwise(const hn_node *n)
{
    const uint32_t t = hn_op_of(n)->traits;
    return (t & HN_TRAIT_POINTWISE) && !(t & (HN_TRAIT_COMPOSITE | HN_TRAIT_RANDOM));
}

static hn_kv same_lanes(hn_lower *l, hn_kv x, hn_kv like)
{
    return hn_kb_splat(l->b, x, hn_kb_lanes(l->b, like));
}

static bool is_float(hn_lower *l, hn_kv x)
{
    return hn_dtype_is_float(hn_kb_dtype(l->b, x));
}

static int math_of(hn_op op)
{
    switch (op) {
    case HN_OP_exp: return HN_KMATH_EXP;
    case HN_OP_log: return HN_KMATH_LOG;
    case HN_OP_sin: return HN_KMATH_SIN;
    case HN_OP_cos: return HN_KMATH_COS;
    case HN_OP_tan: return HN_KMATH_TAN;
    case HN_OP_asin: return HN_KMATH_ASIN;
    case HN_OP_acos: return HN_KMATH_ACOS;
    case HN_OP_atan: return HN_KMATH_ATAN;
    case HN_OP_sinh: return HN_KMATH_SINH;
    case HN_OP_cosh: return HN_KMATH_COSH;
    case HN_OP_tanh: return HN_KMATH_TANH;
    case HN_OP_asinh: return HN_KMATH_ASINH;
    case HN_OP_acosh: return HN_KMATH_ACOSH;
    case HN_OP_atanh: return HN_KMATH_ATANH;
    case HN_OP_erf: return HN_KMATH_ERF;
    case HN_OP_sigmoid: return HN_KMATH_SIGMOID;
    default: return -1;
    }
}

/* ---- functions whose result is rounded to 16 bits anyway: the processor's own powers of two and reciprocals will do ---- */
static bool is_rough(const hn_lower *l, const hn_node *n)
{
    const hn_dtype t = n->out[0]->type.dtype;
    return l->t->arch == HN_ARCH_SM && (t == HN_F16 || t == HN_BF16);
}

static hn_kv rough_exp(hn_kb *b, hn_kv x, double factor)
{
    return hn_kb_exp2a(b, hn_kb_mul(b, x, hn_kb_like(b, x, 1.4426950408889634 * factor)));
}

/* 1 - 2 / (e^2x + 1), which near zero is the difference of two equals: there x - x^3/3 + 2x^5/15. */
static hn_kv rough_tanh(hn_kb *b, hn_kv x)
{
    const hn_kv one = hn_kb_like(b, x, 1), far = hn_kb_sub(b, one, hn_kb_mul(b, hn_kb_like(b, x, 2), hn_kb_rcpa(b, hn_kb_add(b, rough_exp(b, x, 2), one))));
    const hn_kv s = hn_kb_mul(b, x, x);
    const hn_kv near = hn_kb_mul(b, x, hn_kb_fma(b, s, hn_kb_fma(b, s, hn_kb_like(b, x, 2.0 / 15), hn_kb_like(b, x, -1.0 / 3)), one));
    return hn_kb_select(b, hn_kb_lt(b, s, hn_kb_like(b, x, 0.01)), near, far);
}

/* NONE: no such function. */
static hn_kv rough(hn_lower *l, const hn_node *n, hn_kv x)
{
    hn_kb *b = l->b;
    if (!is_rough(l, n) || hn_kb_dtype(b, x) != HN_F32) return HN_KV_NONE;
    switch (n->op) {
    case HN_OP_exp: return rough_exp(b, x, 1);
    case HN_OP_sigmoid: return hn_kb_rcpa(b, hn_kb_add(b, rough_exp(b, x, -1), hn_kb_like(b, x, 1)));
    case HN_OP_tanh: return rough_tanh(b, x);
    default: return HN_KV_NONE;
    }
}

static int unary_of(hn_op op)
{
    switch (op) {
    case HN_OP_neg: return HN_KOP_NEG;
    case HN_OP_abs: return HN_KOP_ABS;
    case HN_OP_floor: return HN_KOP_FLOOR;
    case HN_OP_ceil: return HN_KOP_CEIL;
    case HN_OP_round: return HN_KOP_RINT;
    case HN_OP_trunc: return HN_KOP_TRUNC;
    case HN_OP_sqrt: return HN_KOP_SQRT;
    case HN_OP_not:
    case HN_OP_bit_not: return HN_KOP_NOT;
    default: return -1;
    }
}

static int binary_of(hn_op op)
{
    switch (op) {
    case HN_OP_add: return HN_KOP_ADD;
    case HN_OP_sub: return HN_KOP_SUB;
    case HN_OP_mul: return HN_KOP_MUL;
    case HN_OP_div: return HN_KOP_DIV;
    case HN_OP_min: return HN_KOP_MIN;
    case HN_OP_max: return HN_KOP_MAX;
    case HN_OP_eq: return HN_KOP_EQ;
    case HN_OP_lt: return HN_KOP_LT;
    case HN_OP_le: return HN_KOP_LE;
    case HN_OP_gt: return HN_KOP_GT;
    case HN_OP_ge: return HN_KOP_GE;
    case HN_OP_and:
    case HN_OP_bit_and: return HN_KOP_AND;
    case HN_OP_or:
    case HN_OP_bit_or: return HN_KOP_OR;
    case HN_OP_xor:
    case HN_OP_bit_xor: return HN_KOP_XOR;
    case HN_OP_shift_left: return HN_KOP_SHL;
    case HN_OP_shift_right: return HN_KOP_SHR;
    default: return -1;
    }
}

static hn_kv lower_sign(hn_lower *l, hn_kv x)
{
    hn_kb *b = l->b;
    const hn_kv zero = hn_kb_like(b, x, 0), one = hn_kb_like(b, x, 1);
    hn_kv y = hn_kb_select(b, hn_kb_gt(b, x, zero), one, zero);
    if (!hn_dtype_is_signed(hn_kb_dtype(b, x))) return y;
    y = hn_kb_select(b, hn_kb_lt(b, x, zero), hn_kb_like(b, x, -1), y);
    return is_float(l, x) ? hn_kb_select(b, hn_kb_ne(b, x, x), x, y) : y;
}

/* MAXR(0, x) yields x where they are unordered, so NaN propagates in one instruction. */
static hn_kv lower_relu(hn_lower *l, hn_kv x)
{
    return hn_kb_bin(l->b, is_float(l, x) ? HN_KOP_MAXR : HN_KOP_MAX, hn_kb_like(l->b, x, 0), x);
}

static hn_kv lower_clip(hn_lower *l, const hn_kv *o, int n_in)
{
    hn_kv x = o[0];
    const bool fl = is_float(l, x);
    if (n_in > 1 && hn_kv_is(o[1])) x = hn_kb_bin(l->b, fl ? HN_KOP_MAXR : HN_KOP_MAX, same_lanes(l, o[1], x), x);
    if (n_in > 2 && hn_kv_is(o[2])) x = hn_kb_bin(l->b, fl ? HN_KOP_MINR : HN_KOP_MIN, same_lanes(l, o[2], x), x);
    return x;
}

static hn_kv lower_is_inf(hn_lower *l, const hn_node *n, hn_kv x)
{
    hn_kb *b = l->b;
    const bool pos = hn_attr_i(n, "positive"), neg = hn_attr_i(n, "negative");
    const hn_kv inf = hn_kb_like(b, x, __builtin_inf()), minus = hn_kb_like(b, x, -__builtin_inf());
    if (pos && neg) return hn_kb_eq(b, hn_kb_abs(b, x), inf);
    if (pos) return hn_kb_eq(b, x, inf);
    if (neg) return hn_kb_eq(b, x, minus);
    return hn_kb_ne(b, hn_kb_eq(b, x, inf), hn_kb_eq(b, x, inf));
}

/* docs/onnx-decisions.md: 32 and 64 bits saturate, as the IR's cast does; narrower ones keep the low bits of the i32, which
 * is 0 for what none holds (the lowest i32, where small numbers end, has low bits 0). */
static hn_kv lower_float_to_int(hn_lower *l, hn_kv x, hn_dtype to)
{
    hn_kb *b = l->b;
    if (hn_dtype_bits(to) >= 32) return hn_kb_cast(b, x, to);
    const hn_kv i = hn_kb_cast(b, x, HN_I32), fits = hn_kb_lt(b, x, hn_kb_like(b, x, 0x1p31));
    return hn_kb_cast(b, hn_kb_select(b, fits, i, hn_kb_like(b, i, 0)), to);
}

/* Clipped before to what the type holds, as quantisation does: only NaN is left to think of, which gives 0. */
static bool clipped_to(const hn_value *v, hn_dtype to)
{
    const hn_node *n = v->def;
    double lo, hi;
    if (!n || n->op != HN_OP_clip || hn_dtype_bits(to) > 16) return false;
    if (!hn_const_scalar(hn_in(n, 1), &lo) || !hn_const_scalar(hn_in(n, 2), &hi)) return false;
    const bool is_signed = hn_dtype_is_signed(to);
    const double range = (double)(1 << hn_dtype_bits(to)), low = is_signed ? -range / 2 : 0;
    return lo >= low && hi < low + range && lo <= hi;
}

static hn_kv lower_clipped_to_int(hn_lower *l, hn_kv x, hn_dtype to)
{
    hn_kb *b = l->b;
    x = hn_kb_select(b, hn_kb_eq(b, x, x), x, hn_kb_like(b, x, 0));
    return hn_kb_cast(b, hn_kb_cast_in_range(b, x, HN_I32), to);
}

static hn_kv lower_cast(hn_lower *l, const hn_node *n, hn_kv x)
{
    hn_kb *b = l->b;
    const hn_dtype to = (hn_dtype)hn_attr_i(n, "to"), from = hn_kb_dtype(b, x);
    const hn_dtype c = hn_lower_compute_type(to);
    if (hn_dtype_is_float(from) && hn_dtype_is_int(c) && clipped_to(hn_in(n, 0), to)) x = lower_clipped_to_int(l, x, c);
    else if (hn_dtype_is_float(from) && hn_dtype_is_int(c)) x = lower_float_to_int(l, x, c);
    else x = hn_kb_cast(b, x, c);
    if (hn_small_is(to)) return hn_small_round(l, x, to, hn_attr_i(n, "saturate"));
    return to == HN_F16 || to == HN_BF16 ? hn_kb_round_to(b, x, to) : x;
}

/* An element's bits as they are stored, and back. */
static hn_kv bits_of(hn_lower *l, hn_kv x, hn_dtype t)
{
    if (t == HN_F16 || t == HN_BF16) return hn_kb_half(l->b, x, t);
    if (t == HN_BOOL) return hn_kb_cast(l->b, x, HN_U8);
    return hn_small_is(t) ? hn_small_encode(l, x, t, false) : x;
}

static hn_kv lower_bitcast(hn_lower *l, const hn_node *n, hn_kv x)
{
    const hn_dtype from = hn_in(n, 0)->type.dtype, to = (hn_dtype)hn_attr_i(n, "to");
    x = bits_of(l, x, from);
    if (to == HN_F16 || to == HN_BF16) return hn_kb_unhalf(l->b, hn_kb_bitcast(l->b, x, HN_U16, hn_kb_lanes(l->b, x)), to);
    if (hn_small_is(to)) return hn_small_decode(l, hn_kb_cast(l->b, x, HN_U8), to);
    if (to == HN_BOOL) return hn_kb_ne(l->b, x, hn_kb_like(l->b, x, 0));
    return hn_kb_bitcast(l->b, x, to, hn_kb_lanes(l->b, x));
}

static hn_kv lower_mod(hn_lower *l, const hn_node *n, hn_kv x, hn_kv y)
{
    const bool c_rule = hn_attr_i(n, "fmod");
    if (is_float(l, x)) return c_rule ? hn_kb_fmod(l->b, x, y) : hn_kb_floor_fmod(l->b, x, y);
    const hn_kv r = c_rule ? hn_kb_bin(l->b, HN_KOP_REM, x, y) : hn_kb_floormod(l->b, x, y);
    const hn_kv zero = hn_kb_like(l->b, y, 0);
    return hn_kb_select(l->b, hn_kb_eq(l->b, y, zero), zero, r); /* x mod 0 is 0, docs/onnx-decisions.md */
}

static hn_kv lower_pow(hn_lower *l, const hn_node *n, hn_kv x, hn_kv y)
{
    hn_kb *b = l->b;
    double e;
    const hn_dtype t = hn_kb_dtype(b, x);
    if (hn_const_scalar(hn_in(n, 1), &e) && hn_dtype_is_float(t)) {
        if (e == 2.0) return hn_kb_mul(b, x, x);
        if (e == 3.0) return hn_kb_mul(b, hn_kb_mul(b, x, x), x);
        if (e == 1.0) return x;
    }
    if (hn_dtype_is_float(t)) return hn_kb_pow(b, x, hn_kb_cast(b, y, t));
    const hn_kv r = hn_kb_pow(b, hn_kb_cast(b, x, HN_F64), hn_kb_cast(b, y, HN_F64));
    return hn_kb_cast(b, hn_kb_cast(b, r, HN_I64), t);
}

/* atan2(y, x) by quadrant from atan(y/x); signed zeros and infinities as IEEE 754 recommends. */
static hn_kv lower_atan2(hn_lower *l, hn_kv y, hn_kv x)
{
    hn_kb *b = l->b;
    const double pi = 3.14159265358979323846;
    const hn_kv zero = hn_kb_like(b, x, 0), ay = hn_kb_abs(b, y), ax = hn_kb_abs(b, x);
    const hn_kv swap = hn_kb_gt(b, ay, ax);
    const hn_kv hi = hn_kb_select(b, swap, ay, ax), lo = hn_kb_select(b, swap, ax, ay);
    hn_kv q = hn_kb_div(b, lo, hi);
    q = hn_kb_select(b, hn_kb_eq(b, hi, zero), zero, q);
    const hn_kv inf = hn_kb_like(b, x, __builtin_inf());
    q = hn_kb_select(b, hn_kb_eq(b, lo, inf), hn_kb_like(b, x, 1), q);
    hn_kv r = hn_kb_math(b, HN_KMATH_ATAN, q);
    r = hn_kb_select(b, swap, hn_kb_sub(b, hn_kb_like(b, x, pi / 2), r), r);
    const hn_kv x_neg = hn_kb_lt(b, hn_kb_select(b, hn_kb_eq(b, x, zero), hn_kb_div(b, hn_kb_like(b, x, 1), x), x), zero);
    r = hn_kb_select(b, x_neg, hn_kb_sub(b, hn_kb_like(b, x, pi), r), r);
    const hn_kv y_neg = hn_kb_lt(b, hn_kb_select(b, hn_kb_eq(b, y, zero), hn_kb_div(b, hn_kb_like(b, y, 1), y), y), zero);
    r = hn_kb_select(b, y_neg, hn_kb_neg(b, r), r);
    const hn_kv nan = hn_kb_or(b, hn_kb_ne(b, x, x), hn_kb_ne(b, y, y));
    return hn_kb_select(b, nan, hn_kb_add(b, x, y), r);
}

static hn_kv lower_special(hn_lower *l, const hn_node *n, const hn_kv *o)
{
    hn_kb *b = l->b;
    switch (n->op) {
    case HN_OP_identity: return o[0];
    case HN_OP_sign: return lower_sign(l, o[0]);
    case HN_OP_reciprocal: return hn_kb_div(b, hn_kb_like(b, o[0], 1), o[0]);
    case HN_OP_relu: return lower_relu(l, o[0]);
    case HN_OP_is_nan: return hn_kb_ne(b, o[0], o[0]);
    case HN_OP_is_inf: return lower_is_inf(l, n, o[0]);
    case HN_OP_cast: return lower_cast(l, n, o[0]);
    case HN_OP_bitcast: return lower_bitcast(l, n, o[0]);
    case HN_OP_mod: return lower_mod(l, n, o[0], o[1]);
    case HN_OP_pow: return lower_pow(l, n, o[0], o[1]);
    case HN_OP_prelu:
        return hn_kb_select(b, hn_kb_lt(b, o[0], hn_kb_like(b, o[0], 0)), hn_kb_mul(b, o[0], o[1]), o[0]);
    case HN_OP_atan2: return lower_atan2(l, o[0], o[1]);
    case HN_OP_select: return hn_kb_select(b, o[0], o[1], o[2]);
    case HN_OP_clip: return lower_clip(l, o, n->n_in);
    default: return HN_KV_NONE;
    }
}

static hn_kv lower_any(hn_lower *l, const hn_node *n, const hn_kv *o)
{
    const int un = unary_of(n->op), bin = binary_of(n->op), math = math_of(n->op);
    const hn_kv near = un < 0 && bin < 0 ? rough(l, n, o[0]) : HN_KV_NONE;
    if (hn_kv_is(near)) return near;
    if (un >= 0) return hn_kb_un(l->b, (hn_kop)un, o[0]);
    if (bin >= 0) return hn_kb_bin(l->b, (hn_kop)bin, o[0], o[1]);
    if (math >= 0) return hn_kb_math(l->b, (hn_kmath)math, o[0]);
    return lower_special(l, n, o);
}

/* Results narrower than what they are computed in are rounded at each op, so that a fused chain gives what the ops one by one would.
 * A GPU's chains of halves, which cost as much in single precision, are rounded where they are stored alone unless the route
 * wants the model's own numbers: closer to exact arithmetic, and two conversions an op less. */
static bool stays_wide(const hn_lower *l, const hn_node *n)
{
    return is_rough(l, n) && !l->r->exact;
}

hn_kv hn_lower_op(hn_lower *l, const hn_node *n, const hn_kv *operand)
{
    const hn_kv x = lower_any(l, n, operand);
    const hn_dtype t = n->out[0]->type.dtype;
    if (!hn_kv_is(x) || n->op == HN_OP_cast || n->op == HN_OP_bitcast) return x;
    if (t == HN_F16 || t == HN_BF16) return stays_wide(l, n) ? x : hn_kb_round_to(l->b, x, t);
    return hn_small_is(t) && n->op != HN_OP_identity && n->op != HN_OP_select ? hn_small_round(l, x, t, true) : x;
}
