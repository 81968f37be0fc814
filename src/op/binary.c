/* Elementwise ops of two operands. They broadcast as NumPy does. */
#include "op/op_int.h"

typedef double binary_f(double a, double b);
typedef int64_t binary_i(hn_dtype t, int64_t a, int64_t b);

/* ---- arithmetic; integers wrap, which unsigned arithmetic on 64 bits does for every width ---- */
static double add_f(double a, double b)
{
    return a + b;
}

static int64_t add_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static double sub_f(double a, double b)
{
    return a - b;
}

static int64_t sub_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static double mul_f(double a, double b)
{
    return a * b;
}

static int64_t mul_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static double div_f(double a, double b)
{
    return a / b;
}

static int64_t div_i(hn_dtype t, int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (t == HN_U64) return (int64_t)((uint64_t)a / (uint64_t)b);
    return b == -1 ? sub_i(t, 0, a) : a / b; /* INT64_MIN / -1 wraps */
}

/* The remainder with the divisor's sign, NumPy's rule for zeros and infinities included. */
static double mod_f(double a, double b)
{
    const double r = fmod(a, b);

    if (r == 0) return copysign(0.0, b);
    return (r < 0) != (b < 0) ? r + b : r;
}

static int64_t fmod_i(hn_dtype t, int64_t a, int64_t b)
{
    if (b == 0) return 0;
    if (t == HN_U64) return (int64_t)((uint64_t)a % (uint64_t)b);
    return b == -1 ? 0 : a % b;
}

static int64_t mod_i(hn_dtype t, int64_t a, int64_t b)
{
    const int64_t r = fmod_i(t, a, b);

    return t != HN_U64 && r && (r < 0) != (b < 0) ? r + b : r;
}

static double min_f(double a, double b)
{
    if (isnan(a) || isnan(b)) return a + b;
    return a < b || (a == b && signbit(a)) ? a : b;
}

static double max_f(double a, double b)
{
    if (isnan(a) || isnan(b)) return a + b;
    return a > b || (a == b && !signbit(a)) ? a : b;
}

static int64_t min_i(hn_dtype t, int64_t a, int64_t b)
{
    return hn_op_cmp_i(t, a, b) < 0 ? a : b;
}

static int64_t max_i(hn_dtype t, int64_t a, int64_t b)
{
    return hn_op_cmp_i(t, a, b) > 0 ? a : b;
}

static double prelu_f(double x, double slope)
{
    return x < 0 ? x * slope : x;
}

static int64_t prelu_i(hn_dtype t, int64_t x, int64_t slope)
{
    return hn_dtype_is_signed(t) && x < 0 ? mul_i(t, x, slope) : x;
}

/* ---- bits ---- */
static int64_t and_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return a & b;
}

static int64_t or_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return a | b;
}

static int64_t xor_i(hn_dtype t, int64_t a, int64_t b)
{
    (void)t;
    return a ^ b;
}

static int64_t shl_i(hn_dtype t, int64_t a, int64_t b)
{
    return (uint64_t)b >= (uint64_t)hn_dtype_bits(t) ? 0 : (int64_t)((uint64_t)a << b);
}

static int64_t shr_i(hn_dtype t, int64_t a, int64_t b)
{
    return (uint64_t)b >= (uint64_t)hn_dtype_bits(t) ? 0 : (int64_t)((uint64_t)a >> b);
}

static const struct {
    binary_f *f;
    binary_i *i;
} fn[HN_OP_atan2 + 1] = {
    [HN_OP_add] = { add_f, add_i },        [HN_OP_sub] = { sub_f, sub_i },
    [HN_OP_mul] = { mul_f, mul_i },        [HN_OP_div] = { div_f, div_i },
    [HN_OP_mod] = { mod_f, mod_i },        [HN_OP_min] = { min_f, min_i },
    [HN_OP_max] = { max_f, max_i },        [HN_OP_and] = { NULL, and_i },
    [HN_OP_or] = { NULL, or_i },           [HN_OP_xor] = { NULL, xor_i },
    [HN_OP_bit_and] = { NULL, and_i },     [HN_OP_bit_or] = { NULL, or_i },
    [HN_OP_bit_xor] = { NULL, xor_i },     [HN_OP_shift_left] = { NULL, shl_i },
    [HN_OP_shift_right] = { NULL, shr_i }, [HN_OP_prelu] = { prelu_f, prelu_i },
    [HN_OP_atan2] = { atan2, NULL },
};

/* ---- inference ---- */
static hone_status finish(hn_call *c, hn_diag *dg)
{
    c->out[0].dtype = c->in[0].dtype;
    return hn_op_want_broadcast(c, 2, &c->out[0], dg);
}

static hone_status infer_number(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    return finish(c, dg);
}

static hone_status infer_float(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    return finish(c, dg);
}

static hone_status infer_int(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_int(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    return finish(c, dg);
}

static hone_status infer_shift(hn_call *c, hn_diag *dg)
{
    HN_TRY(infer_int(c, dg));
    if (hn_dtype_is_signed(c->in[0].dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "shifts take unsigned integers, not %s",
                        hn_dtype_name(c->in[0].dtype));
    return HONE_OK;
}

static hone_status infer_bool(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, 0, HN_BOOL, dg));
    HN_TRY(hn_op_want_dtype(c, 1, HN_BOOL, dg));
    return finish(c, dg);
}

/* ---- references ---- */
static void walk2(hn_walk *w, const hn_view *in, const hn_view *out)
{
    hn_walk_init(w, &out->type);
    hn_walk_add(w, &in[0].type);
    hn_walk_add(w, &in[1].type);
}

static void run_f(binary_f *f, const hn_view *in, hn_view *out)
{
    hn_walk w;

    walk2(&w, in, out);
    while (hn_walk_next(&w)) {
        const double *a = in[0].f + w.at[0], *b = in[1].f + w.at[1];
        for (int64_t i = 0; i < w.run; i++)
            out->f[w.pos + i] = f(a[i * w.step[0]], b[i * w.step[1]]);
    }
}

static void run_i(binary_i *f, const hn_view *in, hn_view *out)
{
    const hn_dtype t = in[0].type.dtype;
    hn_walk w;

    walk2(&w, in, out);
    while (hn_walk_next(&w)) {
        const int64_t *a = in[0].i + w.at[0], *b = in[1].i + w.at[1];
        for (int64_t i = 0; i < w.run; i++)
            out->i[w.pos + i] = f(t, a[i * w.step[0]], b[i * w.step[1]]);
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)dg;
    if (hn_dtype_is_float(in[0].type.dtype))
        run_f(fn[c->op->id].f, in, out);
    else
        run_i(fn[c->op->id].i, in, out);
    return HONE_OK;
}

enum { FMOD };

static hone_status ref_mod(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    if (!c->attr[FMOD].i) return ref(c, in, out, dg);
    if (hn_dtype_is_float(in[0].type.dtype))
        run_f(fmod, in, out);
    else
        run_i(fmod_i, in, out);
    return HONE_OK;
}

/* ---- contents ---- */
/* Both operands' elements, broadcast; n is the result's count. */
static bool content2(const hn_call *c, hn_dim *a, hn_dim *b, int *n)
{
    int na, nb;

    if (c->out[0].rank > 1 || !hn_op_content(c, 0, a, &na) || !hn_op_content(c, 1, b, &nb)) return false;
    if (na != nb && na != 1 && nb != 1) return false;
    *n = na == 1 ? nb : na;
    for (int i = na; i < *n; i++)
        a[i] = a[0];
    for (int i = nb; i < *n; i++)
        b[i] = b[0];
    return true;
}

static bool positive(const hn_call *c, hn_dim d, int64_t least)
{
    int64_t lo, hi;

    hn_dim_bounds(c->syms, d, &lo, &hi);
    return lo >= least;
}

static bool symbolic(const hn_call *c, hn_dim a, hn_dim b, hn_dim *ret)
{
    const bool natural = positive(c, a, 0) && positive(c, b, 1);

    switch (c->op->id) {
    case HN_OP_add:
        *ret = hn_dim_add(c->syms, a, b);
        return true;
    case HN_OP_sub:
        *ret = hn_dim_sub(c->syms, a, b);
        return true;
    case HN_OP_mul:
    case HN_OP_and:
        *ret = hn_dim_mul(c->syms, a, b);
        return true;
    case HN_OP_div:
        *ret = hn_dim_floordiv(c->syms, a, b);
        return natural; /* floor is truncation here */
    case HN_OP_mod:
        *ret = hn_dim_mod(c->syms, a, b);
        return c->attr[FMOD].i ? natural : positive(c, b, 1);
    case HN_OP_min:
        *ret = hn_dim_min(c->syms, a, b);
        return true;
    case HN_OP_max:
    case HN_OP_or:
        *ret = hn_dim_max(c->syms, a, b);
        return true;
    default:
        return false;
    }
}

static int64_t known(const hn_call *c, int64_t a, int64_t b)
{
    const hn_dtype t = c->in[0].dtype;

    if (c->op->id == HN_OP_mod && c->attr[FMOD].i) return fmod_i(t, a, b);
    return hn_wrap_i64(t, fn[c->op->id].i(t, a, b));
}

static bool content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim a[64], b[64];

    if (out != 0 || !content2(c, a, b, ret_n)) return false;
    for (int i = 0; i < *ret_n; i++) {
        int64_t x, y;
        if (hn_op_known(c, a[i], &x) && hn_op_known(c, b[i], &y))
            ret[i] = hn_dim_const(c->syms, known(c, x, y));
        else if (c->in[0].dtype == HN_U64 || !symbolic(c, a[i], b[i], &ret[i]))
            return false;
    }
    return true;
}

enum {
    POINTWISE = HN_TRAIT_PURE | HN_TRAIT_POINTWISE,
    INPLACE = POINTWISE | HN_TRAIT_INPLACE,
    COMMUTES = INPLACE | HN_TRAIT_COMMUTATIVE,
};

/* k: tolerance in half-ulps. 1: one rounding of the exact result. 2: a division that may be an estimate
 * refined, or one rounding after an exact remainder. 9: 4 ulp of our vector functions and the rounding. */
#define BINARY(name_, doc_, traits_, infer_, ref_, content_, k_)                                             \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 2, 2, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = traits_,                                                                                   \
        .infer = infer_,                                                                                     \
        .content = content_,                                                                                 \
        .ref = ref_,                                                                                         \
        .work = hn_op_work_pointwise,                                                                        \
        .tol = HN_OP_TOL(k_),                                                                                \
    };
BINARY(add, "a + b; integers wrap", COMMUTES, infer_number, ref, content, 1)
BINARY(sub, "a - b; integers wrap", INPLACE, infer_number, ref, content, 1)
BINARY(mul, "a * b; integers wrap", COMMUTES, infer_number, ref, content, 1)
BINARY(div, "a / b; integers truncate, and by zero give 0", INPLACE, infer_number, ref, content, 2)
BINARY(min, "the smaller; NaN propagates", COMMUTES, infer_number, ref, content, 0)
BINARY(max, "the larger; NaN propagates", COMMUTES, infer_number, ref, content, 0)
BINARY(and, "logical and", COMMUTES, infer_bool, ref, content, 0)
BINARY(or, "logical or", COMMUTES, infer_bool, ref, content, 0)
BINARY(xor, "logical exclusive or", COMMUTES, infer_bool, ref, content, 0)
BINARY(bit_and, "bitwise and", COMMUTES, infer_int, ref, NULL, 0)
BINARY(bit_or, "bitwise or", COMMUTES, infer_int, ref, NULL, 0)
BINARY(bit_xor, "bitwise exclusive or", COMMUTES, infer_int, ref, NULL, 0)
BINARY(shift_left, "a << b of unsigned integers; 0 from the width on", INPLACE, infer_shift, ref, NULL, 0)
BINARY(shift_right, "a >> b of unsigned integers; 0 from the width on", INPLACE, infer_shift, ref, NULL, 0)
BINARY(prelu, "x < 0 ? x * slope : x", INPLACE, infer_number, ref, NULL, 1)
BINARY(atan2, "angle of the point (b, a)", INPLACE, infer_float, ref, NULL, 9)

const hn_op_def hn_op_mod = {
    HN_OP_ID(mod, 2, 2, 1, 1),
    .doc = "remainder with the divisor's sign, or the dividend's with fmod; integers by zero give 0",
    .traits = INPLACE,
    HN_OP_ATTRS(HN_S_INT("fmod", 0)),
    .infer = infer_number,
    .content = content,
    .ref = ref_mod,
    .work = hn_op_work_pointwise,
    .tol = HN_OP_TOL(2),
};

/* ---- pow: the exponent's dtype is its own ---- */
static hone_status infer_pow(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_number(c, 1, dg));
    return finish(c, dg);
}

/* By squaring, wrapping. A negative exponent leaves 1 / base^n truncated: 0 but for bases 1 and -1. */
static int64_t ipow(hn_dtype te, int64_t base, int64_t e)
{
    uint64_t r = 1, b = (uint64_t)base;

    if (te != HN_U64 && e < 0) return base == 1 ? 1 : base == -1 ? (e & 1 ? -1 : 1) : 0;
    for (uint64_t n = (uint64_t)e; n; n >>= 1) {
        if (n & 1) r *= b;
        b *= b;
    }
    return (int64_t)r;
}

static hone_status ref_pow(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype tb = in[0].type.dtype, te = in[1].type.dtype;
    const bool fb = hn_dtype_is_float(tb), fe = hn_dtype_is_float(te);
    hn_walk w;
    (void)c, (void)dg;

    walk2(&w, in, out);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const int64_t p = w.at[0] + i * w.step[0], q = w.at[1] + i * w.step[1], o = w.pos + i;
            const double e = fe ? in[1].f[q] : hn_op_to_f(te, in[1].i[q]);
            if (fb)
                out[0].f[o] = pow(in[0].f[p], e);
            else if (fe)
                out[0].i[o] = hn_f64_to_i64(pow(hn_op_to_f(tb, in[0].i[p]), e));
            else
                out[0].i[o] = ipow(te, in[0].i[p], in[1].i[q]);
        }
    return HONE_OK;
}

const hn_op_def hn_op_pow = {
    HN_OP_ID(pow, 2, 2, 1, 1),
    .doc = "a to the b, in a's dtype",
    .traits = INPLACE,
    .infer = infer_pow,
    .ref = ref_pow,
    .work = hn_op_work_math,
    .tol = HN_OP_TOL(9),
};
