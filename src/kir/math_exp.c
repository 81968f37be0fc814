/* Exponentials, logarithms and powers. */
#include "kir/math_int.h"

#include <math.h>

/* ln 2 in two parts; the first has trailing zeros, so that its product with a small integer is exact. */
static const double ln2_hi32 = 0.693359375, ln2_lo32 = -2.1219444005469057e-4;
static const double ln2_hi64 = 0.69314718036912382, ln2_lo64 = 1.9082149292705877e-10;
static const double log2e = 1.4426950408889634, ln2 = 0.69314718055994529;

typedef struct reduced {
    hn_kv r, n; /* x = n*ln2 + r; n as integer */
} reduced;

/* Adding 1.5 * 2^mant leaves the nearest integer in the low bits: no conversion, defined for every input. */
static hn_kv nearest(const mctx *m, hn_kv x, hn_kv factor, hn_kv *ret_int)
{
    const hn_kv magic = M_C(m->t == HN_F32 ? 0x1.8p23 : 0x1.8p52);
    const hn_kv t = M_FMA(x, factor, magic);

    *ret_int = M_SUB(hn_m_bits(m, t), hn_m_bits(m, magic));
    return M_SUB(t, magic);
}

static reduced reduce(const mctx *m, hn_kv x)
{
    const bool f32 = m->t == HN_F32;
    reduced e;
    const hn_kv n = nearest(m, x, M_C(log2e), &e.n);

    e.r = M_FMA(n, M_C(f32 ? -ln2_hi32 : -ln2_hi64), x);
    e.r = M_FMA(n, M_C(f32 ? -ln2_lo32 : -ln2_lo64), e.r);
    return e;
}

/* (e^r - 1 - r) / r^2 on |r| <= ln2/2 */
static hn_kv exp_tail(const mctx *m, hn_kv r)
{
    static const double c32[] = {
        0.5, 0.166666672, 0.0416664556, 0.00833331048, 0.00139345415, 0.000198919806
    };
    static const double c64[] = { 1. / 2,       1. / 6,        1. / 24,        1. / 120,
                                  1. / 720,     1. / 5040,     1. / 40320,     1. / 362880,
                                  1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800 };
    return m->t == HN_F32 ? M_POLY(r, c32) : M_POLY(r, c64);
}

/* Bounds where the result has become infinite or zero. MINR and MAXR yield their right operand for NaN, so it
 * goes through. */
static hn_kv clamp(const mctx *m, hn_kv x, double lo, double hi)
{
    return hn_kb_bin(m->b, HN_KOP_MAXR, M_C(lo), hn_kb_bin(m->b, HN_KOP_MINR, M_C(hi), x));
}

static hn_kv exp_scaled(const mctx *m, hn_kv x, int64_t shift)
{
    const bool f32 = m->t == HN_F32;
    const reduced e = reduce(m, clamp(m, x, f32 ? -104 : -746, f32 ? 90 : 711));
    const hn_kv p = M_ADD(M_FMA(M_MUL(e.r, e.r), exp_tail(m, e.r), e.r), M_C(1));

    return hn_m_scale(m, p, hn_kb_addi(m->b, e.n, shift));
}

hn_kv hn_m_exp(const mctx *m, hn_kv x)
{
    return exp_scaled(m, x, 0);
}

hn_kv hn_m_half_exp(const mctx *m, hn_kv x)
{
    return exp_scaled(m, x, -1);
}

hn_kv hn_m_exp2(const mctx *m, hn_kv x)
{
    /* (2^r - 1) / r on |r| <= 1/2 */
    static const double c32[] = { 0.693147182,   0.240226507,    0.0555041097,  0.00961805414,
                                  0.00133334997, 0.000154626105, 1.52982211e-05 };
    const bool f32 = m->t == HN_F32;
    const hn_kv y = clamp(m, x, f32 ? -151 : -1076, f32 ? 129 : 1025);
    hn_kv n, p;
    const hn_kv r = M_SUB(y, nearest(m, y, M_C(1), &n));

    if (f32) {
        p = M_FMA(r, M_POLY(r, c32), M_C(1));
    } else {
        const hn_kv q = M_MUL(r, M_C(ln2));
        p = M_ADD(M_FMA(M_MUL(q, q), exp_tail(m, q), q), M_C(1));
    }
    return hn_m_scale(m, p, n);
}

/* 2^n * (e^r - 1) + (2^n - 1), halved and doubled again so that 2^n itself cannot overflow. */
hn_kv hn_m_expm1(const mctx *m, hn_kv x)
{
    const bool f32 = m->t == HN_F32;
    const reduced e = reduce(m, clamp(m, x, f32 ? -20 : -40, f32 ? 89 : 710));
    const hn_kv p = M_FMA(M_MUL(e.r, e.r), exp_tail(m, e.r), e.r);
    const hn_kv half = hn_m_exp2i(m, hn_kb_addi(m->b, e.n, -1));
    const hn_kv v = M_MUL(M_FMA(half, p, M_SUB(half, M_C(0.5))), M_C(2));

    return hn_m_with_sign(m, v, x); /* -0 */
}

/* ---- logarithms ---- */
void hn_m_split(const mctx *m, hn_kv x, hn_kv *ret_r, hn_kv *ret_k)
{
    const bool f32 = m->t == HN_F32;
    const int64_t one = (int64_t)m->bias << m->mant,
                  root = f32 ? 0x3f3504f3 : 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
    const hn_kv small = M_LT(x, M_C(f32 ? 0x1p-126 : 0x1p-1022));
    const hn_kv up = M_SEL(small, M_MUL(x, M_C(f32 ? 0x1p24 : 0x1p54)), x);
    const hn_kv moved = hn_kb_addi(m->b, hn_m_bits(m, up), one - root);
    const hn_kv exponent =
        M_ADD(hn_kb_shr(m->b, moved, m->mant),
              M_SEL(small, hn_m_int(m, -m->bias - (f32 ? 24 : 54)), hn_m_int(m, -m->bias)));
    const hn_kv low = hn_kb_and(m->b, moved, hn_m_int(m, (1ll << m->mant) - 1));

    *ret_r = hn_m_float(m, hn_kb_addi(m->b, low, root));
    /* a small integer to float by the magic sum again: AVX2 has no 64-bit conversion */
    const hn_kv magic = M_C(f32 ? 0x1.8p23 : 0x1.8p52);
    *ret_k = M_SUB(hn_m_float(m, M_ADD(exponent, hn_m_bits(m, magic))), magic);
}

/* (2 atanh(s) - 2s) / s on s^2 = z <= (3 - 2 sqrt 2)^2 */
static hn_kv log_tail(const mctx *m, hn_kv z)
{
    static const double c32[] = { 0.666666687, 0.400001287, 0.285499692, 0.233534276 };
    static const double c64[] = { 0.66666666666666663, 0.40000000000001007, 0.28571428570723251,
                                  0.22222222409750114, 0.18181793732111753, 0.15386342449645143,
                                  0.13266048812203002, 0.131148348695975 };
    return M_MUL(z, m->t == HN_F32 ? M_POLY(z, c32) : M_POLY(z, c64));
}

/* What log and its kin answer outside (0, inf). */
static hn_kv log_edges(const mctx *m, hn_kv x, hn_kv v)
{
    const hn_kv inf = M_C(INFINITY), zero = M_C(0);
    const hn_kv edge = M_SEL(M_EQ(x, zero), M_C(-INFINITY), M_SEL(M_LT(x, zero), M_C(NAN), x));

    return M_SEL(hn_kb_and(m->b, M_GT(x, zero), M_LT(x, inf)), v, edge);
}

hn_kv hn_m_log(const mctx *m, hn_kv x)
{
    const bool f32 = m->t == HN_F32;
    hn_kv r, k;

    hn_m_split(m, x, &r, &k);
    const hn_kv f = M_SUB(r, M_C(1)), s = M_DIV(f, M_ADD(f, M_C(2)));
    const hn_kv half_sq = M_MUL(M_MUL(f, f), M_C(0.5)), tail = log_tail(m, M_MUL(s, s));
    /* k ln2 + f - (f^2/2 - s (f^2/2 + tail)), the small parts first */
    const hn_kv low = M_FMA(s, M_ADD(half_sq, tail), M_MUL(k, M_C(f32 ? ln2_lo32 : ln2_lo64)));
    const hn_kv v = M_SUB(M_MUL(k, M_C(f32 ? ln2_hi32 : ln2_hi64)), M_SUB(M_SUB(half_sq, low), f));
    return log_edges(m, x, v);
}

static hn_kv high_part(const mctx *m, hn_kv x, int zero_bits)
{
    return hn_m_float(m, hn_kb_and(m->b, hn_m_bits(m, x), hn_m_int(m, -(1ll << zero_bits))));
}

hn_kv hn_m_log2(const mctx *m, hn_kv x)
{
    /* 1/ln2 in two parts, the first of 21 bits: exact when multiplied by a head of 32 bits */
    const double inv_hi = 1.4426946640014648, inv_lo = 3.7688749856360991e-07;
    hn_kv r, k;

    hn_m_split(m, x, &r, &k);
    const hn_kv f = M_SUB(r, M_C(1)), s = M_DIV(f, M_ADD(f, M_C(2)));
    const hn_kv half_sq = M_MUL(M_MUL(f, f), M_C(0.5)), tail = log_tail(m, M_MUL(s, s));
    const hn_kv hi = high_part(m, M_SUB(f, half_sq), 32);
    const hn_kv lo = M_FMA(s, M_ADD(half_sq, tail), M_SUB(M_SUB(f, hi), half_sq));
    const hn_kv big = M_MUL(hi, M_C(inv_hi));
    const hn_kv small = M_FMA(M_ADD(lo, hi), M_C(inv_lo), M_MUL(lo, M_C(inv_hi)));
    const hn_kv sum = M_ADD(k, big);
    const hn_kv v = M_ADD(M_ADD(M_ADD(M_SUB(k, sum), big), small), sum);
    return log_edges(m, x, v);
}

/* log(1+x) = log(u) + (x - (u-1))/u where u = fl(1+x): the second term is what rounding u lost. */
hn_kv hn_m_log1p(const mctx *m, hn_kv x)
{
    const hn_kv u = M_ADD(x, M_C(1)), lost = M_DIV(M_SUB(x, M_SUB(u, M_C(1))), u);
    const hn_kv usable = hn_kb_and(m->b, M_GT(u, M_C(0)), M_LT(u, M_C(0x1p60)));
    const hn_kv v = M_ADD(hn_m_log(m, u), M_SEL(usable, lost, M_C(0)));

    return M_SEL(M_EQ(x, M_C(0)), x, v); /* -0 */
}

/* ---- powers ---- */
static hn_kv is_integer(const mctx *m, hn_kv y)
{
    return M_EQ(hn_kb_un(m->b, HN_KOP_FLOOR, y), y);
}

/* Sign, and C's rules for zeros, ones, infinities and NaNs, around |x|^y. */
static hn_kv pow_edges(const mctx *m, hn_kv x, hn_kv y, hn_kv mag)
{
    hn_kb *b = m->b;
    const hn_kv one = M_C(1), zero = M_C(0), ax = M_ABS(x);
    const hn_kv odd = hn_kb_and(b, is_integer(m, y), hn_kb_not(b, is_integer(m, M_MUL(y, M_C(0.5)))));
    const hn_kv negative = hn_kb_lt(b, hn_m_bits(m, x), hn_m_int(m, 0));
    const hn_kv finite_negative = hn_kb_and(b, M_LT(x, zero), M_LT(ax, M_C(INFINITY)));

    hn_kv v = M_SEL(hn_kb_and(b, M_EQ(ax, one), hn_kb_eq(b, M_ABS(y), M_C(INFINITY))), one, mag);
    v = M_SEL(hn_kb_and(b, negative, odd), M_NEG(v), v);
    v = M_SEL(hn_kb_and(b, finite_negative, hn_kb_and(b, hn_kb_eq(b, y, y), hn_kb_not(b, is_integer(m, y)))),
              M_C(NAN), v);
    return M_SEL(hn_kb_or(b, M_EQ(y, zero), M_EQ(x, one)), one, v);
}

/* In double the plain formula is exact enough: 128 * 2^-52 is far below half an ulp of f32. */
hn_kv hn_m_pow32(const mctx *m32, hn_kv x, hn_kv y)
{
    const mctx wide = hn_m_ctx(m32->b, HN_F64, m32->lanes), *m = &wide;
    const hn_kv wx = hn_kb_cast(m->b, x, HN_F64), wy = hn_kb_cast(m->b, y, HN_F64);
    const hn_kv mag = hn_m_exp2(m, M_MUL(wy, hn_m_log2(m, M_ABS(wx))));

    return hn_kb_cast(m->b, pow_edges(m, wx, wy, mag), HN_F32);
}

/* A number as the sum of two. */
typedef struct pair {
    hn_kv hi, lo;
} pair;

static pair sum_of(const mctx *m, hn_kv a, hn_kv b) /* |a| >= |b| */
{
    const hn_kv s = M_ADD(a, b);
    return (pair){ s, M_SUB(b, M_SUB(s, a)) };
}

/* Exact product, by halves of 26 and 27 bits: right with or without FMA. */
static pair product_of(const mctx *m, hn_kv a, hn_kv b)
{
    const hn_kv ah = high_part(m, a, 27), bh = high_part(m, b, 27), al = M_SUB(a, ah), bl = M_SUB(b, bh),
                p = M_MUL(a, b);
    const hn_kv e = M_ADD(M_ADD(M_ADD(M_SUB(M_MUL(ah, bh), p), M_MUL(ah, bl)), M_MUL(al, bh)), M_MUL(al, bl));

    return (pair){ p, e };
}

static pair times(const mctx *m, pair a, pair b)
{
    const pair p = product_of(m, a.hi, b.hi);
    return sum_of(m, p.hi, M_ADD(p.lo, M_ADD(M_MUL(a.hi, b.lo), M_MUL(a.lo, b.hi))));
}

static pair literal(const mctx *m, double hi, double lo)
{
    return (pair){ M_C(hi), M_C(lo) };
}

/* log2 to about 68 bits: the first two terms of 2 atanh(s) in pairs, the rest plain. */
static pair log2_pair(const mctx *m, hn_kv x)
{
    /* (2 atanh(s)/s - 2 - 2z/3) / z^2, z = s^2 */
    static const double c[] = { 0.40000000000000002, 0.28571428571429486, 0.2222222222158344,
                                0.18181818351651749, 0.15384593242579508, 0.13334897308547281,
                                0.11703780772944546, 0.1174860336565095 };
    hn_kv r, k;

    hn_m_split(m, x, &r, &k);
    const hn_kv f = M_SUB(r, M_C(1)), g = M_ADD(r, M_C(1)),
                g_lo = M_SUB(r, M_SUB(g, M_C(1))); /* r+1 = g + g_lo */
    const hn_kv s = M_DIV(f, g);
    const pair back = product_of(m, s, g);
    const hn_kv s_lo = M_DIV(M_SUB(M_SUB(M_SUB(f, back.hi), back.lo), M_MUL(s, g_lo)), g);
    const pair sp = sum_of(m, s, s_lo), z = times(m, sp, sp);
    const pair third = times(m, z, literal(m, 0.66666666666666663, 3.7007434154171883e-17));
    const pair inner = sum_of(m, third.hi, M_ADD(third.lo, M_MUL(M_MUL(z.hi, z.hi), M_POLY(z.hi, c))));
    const pair two = sum_of(m, M_C(2), inner.hi);
    const pair ln = times(m, sp, sum_of(m, two.hi, M_ADD(two.lo, inner.lo)));
    const pair l2 = times(m, ln, literal(m, 1.4426950408889634, 2.0355273740931033e-17));
    const pair sum = sum_of(m, k, l2.hi);
    const hn_kv zero_k = M_EQ(k, M_C(0)); /* then k is the smaller summand */
    return sum_of(m, M_SEL(zero_k, l2.hi, sum.hi), M_SEL(zero_k, l2.lo, M_ADD(sum.lo, l2.lo)));
}

static hn_kv exp2_pair(const mctx *m, pair e)
{
    hn_kv n;
    const hn_kv y = clamp(m, e.hi, -1080, 1025);
    const hn_kv f = M_SUB(y, nearest(m, y, M_C(1), &n));
    const pair r = product_of(m, f, M_C(ln2));
    const hn_kv lo = M_FMA(f, M_C(2.3190468138462996e-17), M_FMA(e.lo, M_C(ln2), r.lo));
    const hn_kv p = M_ADD(M_FMA(M_MUL(r.hi, r.hi), exp_tail(m, r.hi), r.hi), M_C(1));

    return hn_m_scale(m, M_FMA(p, lo, p), n);
}

hn_kv hn_m_pow64(const mctx *m, hn_kv x, hn_kv y)
{
    const hn_kv ax = M_ABS(x);
    const pair l = log2_pair(m, ax);
    const hn_kv log_hi = log_edges(m, ax, l.hi), whole = M_MUL(y, log_hi);
    pair e = product_of(m, y, l.hi);

    /* where the exponent is out of range or not a number its tail is noise */
    e.lo = M_SEL(M_LT(M_ABS(whole), M_C(2000)), M_ADD(e.lo, M_MUL(y, l.lo)), M_C(0));
    e.hi = whole;
    return pow_edges(m, x, y, exp2_pair(m, e));
}
