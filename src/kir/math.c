/* Functions as programs: shared pieces, the small functions, and the table of all. */
#include "kir/math_int.h"

#include <math.h>

mctx hn_m_ctx(hn_kb *b, hn_dtype t, int lanes)
{
    if (t == HN_F32) return (mctx){ b, t, HN_I32, HN_U32, lanes, 23, 127 };
    return (mctx){ b, HN_F64, HN_I64, HN_U64, lanes, 52, 1023 };
}

hn_kv hn_m_const(const mctx *m, double v)
{
    return hn_kb_float(m->b, m->t, m->lanes, v);
}

hn_kv hn_m_int(const mctx *m, int64_t v)
{
    return hn_kb_int(m->b, m->it, m->lanes, v);
}

hn_kv hn_m_poly(const mctx *m, hn_kv x, const double *c, int n)
{
    hn_kv v = M_C(c[n - 1]);

    for (int i = n - 2; i >= 0; i--)
        v = M_FMA(v, x, M_C(c[i]));
    return v;
}

hn_kv hn_m_bits(const mctx *m, hn_kv x)
{
    return hn_kb_bitcast(m->b, x, m->it, m->lanes);
}

hn_kv hn_m_float(const mctx *m, hn_kv i)
{
    return hn_kb_bitcast(m->b, i, m->t, m->lanes);
}

hn_kv hn_m_with_sign(const mctx *m, hn_kv mag, hn_kv sign)
{
    const hn_kv top = hn_kb_int(m->b, m->it, m->lanes, m->t == HN_F32 ? INT32_MIN : INT64_MIN);
    const hn_kv rest = hn_kb_not(m->b, top);

    return hn_m_float(m, hn_kb_or(m->b, hn_kb_and(m->b, hn_m_bits(m, mag), rest),
                                  hn_kb_and(m->b, hn_m_bits(m, sign), top)));
}

hn_kv hn_m_any(const mctx *m, hn_kv mask)
{
    int lane[HN_KIR_MAX_LANES], n = 1;

    if (m->lanes == 1) return mask;
    while (n < m->lanes)
        n *= 2;
    if (n != m->lanes) { /* repeat the first lane up to a power of two */
        for (int i = 0; i < n; i++)
            lane[i] = i < m->lanes ? i : 0;
        mask = hn_kb_shuffle(m->b, mask, mask, lane, n);
    }
    return hn_kb_un(m->b, HN_KOP_ROR, mask);
}

hn_kv hn_m_exp2i(const mctx *m, hn_kv i)
{
    return hn_m_float(m, hn_kb_shl(m->b, hn_kb_addi(m->b, i, m->bias), m->mant));
}

hn_kv hn_m_scale(const mctx *m, hn_kv p, hn_kv i)
{
    const hn_kv half = hn_kb_shr(m->b, i, 1);
    return M_MUL(M_MUL(p, hn_m_exp2i(m, half)), hn_m_exp2i(m, M_SUB(i, half)));
}

/* ---- hyperbolic ---- */
static hn_kv sinh64(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), h = hn_m_half_exp(m, a),
                e = hn_m_expm1(m, hn_kb_bin(m->b, HN_KOP_MINR, M_C(2), a));
    const hn_kv large = M_SUB(h, M_DIV(M_C(0.25), h));
    const hn_kv small = M_MUL(M_C(0.5), M_ADD(e, M_DIV(e, M_ADD(e, M_C(1)))));

    return hn_m_with_sign(m, M_SEL(M_LT(a, M_C(1)), small, large), x);
}

static hn_kv cosh64(const mctx *m, hn_kv x)
{
    const hn_kv h = hn_m_half_exp(m, M_ABS(x));
    return M_ADD(h, M_DIV(M_C(0.25), h));
}

static hn_kv tanh64(const mctx *m, hn_kv x)
{
    const hn_kv a = hn_kb_bin(m->b, HN_KOP_MINR, M_C(22), M_ABS(x)), e = hn_m_expm1(m, M_ADD(a, a));
    return hn_m_with_sign(m, M_DIV(e, M_ADD(e, M_C(2))), x);
}

/* |x| P(x^2) / Q(x^2) up to where the function rounds to 1, with x's sign: least relative error on the whole
 * range. */
static hn_kv saturating32(const mctx *m, hn_kv x, double end, const double *p, int n_p, const double *q,
                          int n_q)
{
    const hn_kv a = hn_kb_bin(m->b, HN_KOP_MINR, M_C(end), M_ABS(x)), z = M_MUL(a, a);
    const hn_kv v = M_DIV(M_MUL(a, hn_m_poly(m, z, p, n_p)), hn_m_poly(m, z, q, n_q));

    return hn_m_with_sign(m, hn_kb_bin(m->b, HN_KOP_MINR, M_C(1), v), x);
}

static hn_kv tanh32(const mctx *m, hn_kv x)
{
    static const double p[] = { 1, 0.137857959, 0.00400906056, 3.16010737e-05, 5.08045339e-08 };
    static const double q[] = {
        1, 0.471191287, 0.0277395044, 0.000420840515, 1.61841774e-06, 7.38296591e-10
    };
    return saturating32(m, x, 9.011, p, HN_COUNT(p), q, HN_COUNT(q));
}

static hn_kv asinh64(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), capped = hn_kb_bin(m->b, HN_KOP_MINR, M_C(0x1p30), a),
                z = M_MUL(capped, capped);
    const hn_kv root = hn_kb_sqrt(m->b, M_ADD(z, M_C(1)));
    const hn_kv small = hn_m_log1p(m, M_ADD(capped, M_DIV(z, M_ADD(root, M_C(1)))));
    const hn_kv large = M_ADD(hn_m_log(m, a), M_C(0.69314718055994529));

    return hn_m_with_sign(m, M_SEL(M_LT(a, M_C(0x1p28)), small, large), x);
}

static hn_kv acosh64(const mctx *m, hn_kv x)
{
    const hn_kv t = M_SUB(hn_kb_bin(m->b, HN_KOP_MINR, M_C(0x1p30), x), M_C(1));
    const hn_kv small = hn_m_log1p(m, M_ADD(t, hn_kb_sqrt(m->b, M_FMA(t, t, M_ADD(t, t)))));
    const hn_kv large = M_ADD(hn_m_log(m, x), M_C(0.69314718055994529));

    return M_SEL(M_LT(x, M_C(1)), M_C(NAN), M_SEL(M_GT(x, M_C(0x1p28)), large, small));
}

static hn_kv atanh64(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), t = M_ADD(a, a);
    const hn_kv v = M_MUL(M_C(0.5), hn_m_log1p(m, M_DIV(t, M_SUB(M_C(1), a))));

    return hn_m_with_sign(m, v, x);
}

/* ---- error function ---- */
/* Near 0 as x + x s(x^2); beyond as 1 - c(x), of which all but a tenth is exact: 0.33 units in the last place in the mean. */
static hn_kv erf32(const mctx *m, hn_kv x)
{
    static const double near0[] = { 0.128379154,   -0.376125488,    0.112827861,   -0.0268234668,
                                    0.00513612398, -0.000759489623, 6.60965972e-05 };
    /* of [1.1875, 4] as [-1, 1] */
    static const double far[] = { 0.000244339962, -0.00190004906,  0.00693106742,  -0.0156032951,    0.0238759556,
                                  -0.0255596406,  0.0185537273,    -0.00737859534, -0.00133008787,   0.00408836348,
                                  -0.00222739844, -5.43432931e-05, 0.000491551116, -0.000131572453 };
    const hn_kv a = hn_kb_bin(m->b, HN_KOP_MINR, M_C(4), M_ABS(x)), t = M_FMA(a, M_C(2 / 2.8125), M_C(-5.1875 / 2.8125));
    const hn_kv small = M_FMA(x, M_POLY(M_MUL(a, a), near0), x), large = M_SUB(M_C(1), M_POLY(t, far));

    return M_SEL(M_LT(a, M_C(1.1875)), small, hn_m_with_sign(m, large, x));
}

static hn_kv erf64(const mctx *m, hn_kv x)
{
    /* erf(x)/x - 1 on |x| <= 1, in x^2 */
    static const double near0[] = { 0.12837916709551259,     -0.37612638903183754,    0.11283791670955121,
                                    -0.02686617064512984,    0.0052239776254232985,   -0.00085483270219348297,
                                    0.00012055332902888736,  -1.4925647567519332e-05, 1.6462045441468418e-06,
                                    -1.6364642158167616e-07, 1.4792401209404813e-08,  -1.216456005728345e-09,
                                    8.7090451290531062e-11,  -4.2309458242953377e-12 };
    /* exp(x^2) erfc(x) on [0.99, 6.1], in 1/(x+3) - 0.18 */
    static const double far[] = { 0.20675157614059253, 2.2113854643084956,  10.242397946199057,
                                  37.72498650435314,   106.036470435407,    204.73636799658007,
                                  175.63310338914033,  -306.86724288786291, -1025.0372145664651,
                                  96.388606479939497,  4338.2671872350575,  1592.908076197768,
                                  -20465.008227451206, -7767.3261474661167, 110706.65304509251,
                                  4234.7904664710959,  -574656.05919287517 };
    const hn_kv a = hn_kb_bin(m->b, HN_KOP_MINR, M_C(6.0), M_ABS(x)), z = M_MUL(a, a);
    const hn_kv small = M_FMA(x, M_POLY(z, near0), x);
    const hn_kv t = M_SUB(M_DIV(M_C(1), M_ADD(a, M_C(3))), M_C(0.18));
    const hn_kv large = M_SUB(M_C(1), M_MUL(hn_m_exp(m, M_NEG(z)), M_POLY(t, far)));

    return M_SEL(M_LT(a, M_C(1)), small, hn_m_with_sign(m, large, x));
}

/* ---- the rest ---- */
/* With z = exp(-|x|) <= 1: 1/(1+z), times z for negative x; no overflow, and right down to subnormal results.
 */
static hn_kv sigmoid(const mctx *m, hn_kv x)
{
    const hn_kv z = hn_m_exp(m, M_NEG(M_ABS(x))), s = M_DIV(M_C(1), M_ADD(z, M_C(1)));
    return M_SEL(M_LT(x, M_C(0)), M_MUL(z, s), s);
}

static hn_kv rsqrt(const mctx *m, hn_kv x)
{
    return M_DIV(M_C(1), hn_kb_sqrt(m->b, x));
}

/* A third of the exponent by integer division as the guess, then three steps of Halley, each tripling the
 * digits. */
static hn_kv cbrt64(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), small = M_LT(a, M_C(0x1p-1022)), large = M_GT(a, M_C(0x1p1000));
    const hn_kv up = M_MUL(a, M_SEL(small, M_C(0x1p54), M_SEL(large, M_C(0x1p-54), M_C(1))));
    const hn_kv high = hn_kb_cast(m->b, hn_kb_shr(m->b, hn_m_bits(m, up), 32), HN_I32);
    const hn_kv third =
        hn_kb_addi(m->b, hn_kb_div(m->b, high, hn_kb_int(m->b, HN_I32, m->lanes, 3)), 715094163);
    hn_kv g = hn_m_float(m, hn_kb_shl(m->b, hn_kb_cast(m->b, third, HN_I64), 32));

    for (int i = 0; i < 3; i++) {
        const hn_kv c = M_MUL(M_MUL(g, g), g);
        g = M_SUB(g, M_MUL(g, M_DIV(M_SUB(c, up), M_ADD(M_ADD(c, c), up))));
    }
    g = M_MUL(g, M_SEL(small, M_C(0x1p-18), M_SEL(large, M_C(0x1p18), M_C(1))));
    const hn_kv ordinary = hn_kb_and(m->b, M_GT(a, M_C(0)), M_LT(a, M_C(INFINITY)));
    return M_SEL(ordinary, hn_m_with_sign(m, g, x), x);
}

typedef hn_kv (*expander)(const mctx *m, hn_kv x);

/* NULL: f32 goes through f64. */
static const struct {
    expander f32, f64;
} table[] = {
    [HN_KMATH_EXP] = { hn_m_exp, hn_m_exp },
    [HN_KMATH_EXP2] = { hn_m_exp2, hn_m_exp2 },
    [HN_KMATH_EXPM1] = { hn_m_expm1, hn_m_expm1 },
    [HN_KMATH_LOG] = { hn_m_log, hn_m_log },
    [HN_KMATH_LOG2] = { NULL, hn_m_log2 },
    [HN_KMATH_LOG1P] = { hn_m_log1p, hn_m_log1p },
    [HN_KMATH_SIN] = { hn_m_sin, hn_m_sin },
    [HN_KMATH_COS] = { hn_m_cos, hn_m_cos },
    [HN_KMATH_TAN] = { NULL, hn_m_tan },
    [HN_KMATH_ASIN] = { NULL, hn_m_asin },
    [HN_KMATH_ACOS] = { NULL, hn_m_acos },
    [HN_KMATH_ATAN] = { NULL, hn_m_atan },
    [HN_KMATH_SINH] = { NULL, sinh64 },
    [HN_KMATH_COSH] = { NULL, cosh64 },
    [HN_KMATH_TANH] = { tanh32, tanh64 },
    [HN_KMATH_ASINH] = { NULL, asinh64 },
    [HN_KMATH_ACOSH] = { NULL, acosh64 },
    [HN_KMATH_ATANH] = { NULL, atanh64 },
    [HN_KMATH_ERF] = { erf32, erf64 },
    [HN_KMATH_SIGMOID] = { sigmoid, sigmoid },
    [HN_KMATH_RSQRT] = { rsqrt, rsqrt },
    [HN_KMATH_CBRT] = { NULL, cbrt64 },
};

static bool float_operand(hn_kb *b, hn_kv x, const char *what)
{
    const hn_dtype t = hn_kb_dtype(b, x);

    if (!b || b->error[0]) return false;
    if (t == HN_F32 || t == HN_F64) return true;
    hn_kb_fail(b, "%s of %s", what, hn_dtype_name(t));
    return false;
}

hn_kv hn_kb_math(hn_kb *b, hn_kmath fn, hn_kv x)
{
    if (!float_operand(b, x, hn_kmath_name(fn))) return HN_KV_NONE;
    const mctx m = hn_m_ctx(b, hn_kb_dtype(b, x), hn_kb_lanes(b, x));
    if (m.t == HN_F64) return table[fn].f64(&m, x);
    if (table[fn].f32) return table[fn].f32(&m, x);
    const mctx wide = hn_m_ctx(b, HN_F64, m.lanes);
    return hn_kb_cast(b, table[fn].f64(&wide, hn_kb_cast(b, x, HN_F64)), HN_F32);
}

hn_kv hn_kb_pow(hn_kb *b, hn_kv x, hn_kv y)
{
    const int lanes = HN_MAX(hn_kb_lanes(b, x), hn_kb_lanes(b, y));

    if (!float_operand(b, x, "pow") || !float_operand(b, y, "pow")) return HN_KV_NONE;
    const mctx m = hn_m_ctx(b, hn_kb_dtype(b, x), lanes);
    x = hn_kb_splat(b, x, lanes);
    y = hn_kb_splat(b, y, lanes);
    return m.t == HN_F32 ? hn_m_pow32(&m, x, y) : hn_m_pow64(&m, x, y);
}

/* ---- fmod ---- */
typedef struct whole { /* |x| = m * 2^e with m of 53 bits, or 0 */
    hn_kv m, e;
} whole;

static whole take_apart(const mctx *m, hn_kv x)
{
    hn_kb *b = m->b;
    const hn_kv bits = hn_kb_bitcast(b, M_ABS(x), HN_U64, m->lanes), biased = hn_kb_shr(b, bits, 52);
    const hn_kv frac = hn_kb_and(b, bits, hn_kb_int(b, HN_U64, m->lanes, (1ll << 52) - 1));
    const hn_kv sub = hn_kb_eq(b, biased, hn_kb_like(b, biased, 0));
    const hn_kv shift = hn_kb_bin(b, HN_KOP_SUB, hn_kb_un(b, HN_KOP_CLZ, frac), hn_kb_like(b, frac, 11));
    const hn_kv normal = hn_kb_or(b, frac, hn_kb_int(b, HN_U64, m->lanes, 1ll << 52));

    return (whole){ hn_kb_select(b, sub, hn_kb_bin(b, HN_KOP_SHL, frac, shift), normal),
                    hn_kb_select(b, sub,
                                 hn_kb_sub(b, hn_kb_int(b, HN_I64, m->lanes, -1074),
                                           hn_kb_bitcast(b, shift, HN_I64, m->lanes)),
                                 hn_kb_addi(b, hn_kb_bitcast(b, biased, HN_I64, m->lanes), -1075)) };
}

/* Long division in base 2^11: the remainder times 2^11 still fits 64 bits. Runs as often as the furthest lane
 * needs. */
static hn_kv long_division(const mctx *m, whole x, whole y)
{
    hn_kb *b = m->b;
    const hn_kvar r = hn_kb_var(b, hn_kb_bin(b, HN_KOP_REM, x.m, y.m)),
                  left = hn_kb_var(b, hn_kb_sub(b, x.e, y.e));

    hn_kb_loop(b);
    const hn_kv n = hn_kb_get(b, left), zero = hn_m_int(m, 0);
    const hn_kv busy = hn_kb_gt(b, n, zero);
    hn_kb_break_if(b, hn_kb_not(b, hn_m_any(m, busy)));
    const hn_kv by = hn_kb_max(b, hn_kb_min(b, n, hn_m_int(m, 11)), zero);
    const hn_kv now = hn_kb_get(b, r);
    const hn_kv shifted = hn_kb_bin(b, HN_KOP_SHL, now, hn_kb_bitcast(b, by, HN_U64, m->lanes));
    hn_kb_set(b, r, hn_kb_select(b, busy, hn_kb_bin(b, HN_KOP_REM, shifted, y.m), now));
    hn_kb_set(b, left, hn_kb_sub(b, n, by));
    hn_kb_end(b);
    return hn_kb_get(b, r);
}

static hn_kv fmod64(const mctx *m, hn_kv x, hn_kv y)
{
    hn_kb *b = m->b;
    const whole wx = take_apart(m, x), wy = take_apart(m, y);
    const hn_kv rest = hn_kb_cast(b, hn_kb_bitcast(b, long_division(m, wx, wy), HN_I64, m->lanes), HN_F64);
    const hn_kv e = hn_kb_max(b, wy.e, hn_m_int(m, -1080)), half = hn_kb_shr(b, e, 1);
    const hn_kv mag = M_MUL(M_MUL(rest, hn_m_exp2i(m, half)), hn_m_exp2i(m, M_SUB(e, half)));
    const hn_kv ax = M_ABS(x), ay = M_ABS(y), inf = M_C(INFINITY);
    const hn_kv fits = hn_kb_and(b, M_LT(ax, inf), hn_kb_and(b, M_GT(ay, M_C(0)), hn_kb_le(b, ay, inf)));

    return M_SEL(fits, M_SEL(M_LT(ax, ay), x, hn_m_with_sign(m, mag, x)), M_C(NAN));
}

hn_kv hn_kb_fmod(hn_kb *b, hn_kv x, hn_kv y)
{
    const int lanes = HN_MAX(hn_kb_lanes(b, x), hn_kb_lanes(b, y));
    const hn_dtype t = hn_kb_dtype(b, x);

    if (!float_operand(b, x, "fmod") || !float_operand(b, y, "fmod")) return HN_KV_NONE;
    const mctx m = hn_m_ctx(b, HN_F64, lanes);
    x = hn_kb_cast(b, hn_kb_splat(b, x, lanes), HN_F64);
    y = hn_kb_cast(b, hn_kb_splat(b, y, lanes), HN_F64);
    return hn_kb_cast(b, fmod64(&m, x, y), t);
}

hn_kv hn_kb_floor_fmod(hn_kb *b, hn_kv x, hn_kv y)
{
    const hn_kv r = hn_kb_fmod(b, x, y);
    const int lanes = hn_kb_lanes(b, r);

    y = hn_kb_splat(b, y, lanes);
    if (!b || b->error[0]) return HN_KV_NONE;
    const mctx ctx = hn_m_ctx(b, hn_kb_dtype(b, r), lanes), *m = &ctx;
    const hn_kv zero = M_C(0), differ = hn_kb_ne(b, M_LT(r, zero), M_LT(y, zero));
    const hn_kv moved = M_SEL(differ, M_ADD(r, y), r);
    return M_SEL(M_EQ(r, zero), hn_m_with_sign(m, r, y), moved);
}

const char *hn_kmath_name(hn_kmath fn)
{
    switch (fn) {
#define X(name, number, text, ulp32, ulp64)                                                                  \
    case HN_KMATH_##name:                                                                                    \
        return text;
#include "kir/kmath.def"
#undef X
    default:
        return "?";
    }
}

double hn_kmath_ulp(hn_kmath fn, hn_dtype t)
{
    switch (fn) {
#define X(name, number, text, ulp32, ulp64)                                                                  \
    case HN_KMATH_##name:                                                                                    \
        return t == HN_F32 ? ulp32 : ulp64;
#include "kir/kmath.def"
#undef X
    default:
        return 0;
    }
}
