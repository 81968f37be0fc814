/* Trigonometric functions and their inverses. Arguments are reduced by pi/2 in three parts; beyond 2^20 by
 * all the bits of 2/pi that can matter (Payne and Hanek), in a branch that is taken when a lane needs it. */
#include "kir/math_int.h"

#include <math.h>

/* pi/2 in parts of 33 bits, so that a part times a quadrant number below 2^20 is exact; then what is left of
 * it. */
static const double part1 = 0x1.921fb544p+0, part2 = 0x1.0b4611a6p-34, part3 = 0x1.3198a2ep-69,
                    rest3 = 8.4784276603688996e-32;
static const double pi_2 = 1.5707963267948966, pi_2_lo = 6.123233995736766e-17;
static const double most_plain = 1e6; /* below 2^20 * pi/2 */

/* 2/pi, 64 zero bits ahead of 1,216 bits of it: what an exponent of 1023 can reach. */
static const uint64_t two_over_pi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

/* x = q * pi/2 + hi + lo, |hi| <= pi/4; q as integer, modulo 4. Always in double. */
typedef struct quadrant {
    hn_kv hi, lo, q;
} quadrant;

static hn_kv u64(const mctx *m, int64_t v)
{
    return hn_kb_int(m->b, HN_U64, m->lanes, v);
}

/* 64 bits of 2/pi from bit `word`*64 + `shift` of the table on. */
static hn_kv window(const mctx *m, int table, hn_kv word, hn_kv shift, int k)
{
    hn_kb *b = m->b;
    const hn_kv a = hn_kb_gather(b, table, hn_kb_addi(b, word, k), HN_KV_NONE);
    const hn_kv next = hn_kb_gather(b, table, hn_kb_addi(b, word, k + 1), HN_KV_NONE);
    const hn_kv right =
        hn_kb_bin(b, HN_KOP_SHR, next, hn_kb_sub(b, u64(m, 64), shift)); /* 0 where shift is 0 */

    return hn_kb_or(b, hn_kb_bin(b, HN_KOP_SHL, a, shift), right);
}

/* The 192-bit product's top words: fraction * 2^192 = mant * (w[0] w[1] w[2]) modulo 2^192. */
static void multiply(const mctx *m, hn_kv mant, const hn_kv w[3], hn_kv *ret_top, hn_kv *ret_mid)
{
    hn_kb *b = m->b;
    const hn_kv mid_lo = M_MUL(mant, w[1]), mid = M_ADD(mid_lo, hn_kb_bin(b, HN_KOP_MULHI, mant, w[2]));
    const hn_kv carry = M_SEL(M_LT(mid, mid_lo), u64(m, 1), u64(m, 0));

    *ret_mid = mid;
    *ret_top = M_ADD(M_ADD(M_MUL(mant, w[0]), hn_kb_bin(b, HN_KOP_MULHI, mant, w[1])), carry);
}

/* For |x| > most_plain, as x = mant * 2^e: of mant * 2/pi * 2^e only bits worth less than 4 count. */
static quadrant reduce_huge(const mctx *m, hn_kv x)
{
    hn_kb *b = m->b;
    const int table = hn_kb_table(b, "two_over_pi", HN_U64, two_over_pi, HN_COUNT(two_over_pi));
    const hn_kv bits = hn_kb_bitcast(b, M_ABS(x), HN_U64, m->lanes);
    const hn_kv biased = hn_kb_bitcast(b, hn_kb_shr(b, bits, 52), HN_I64, m->lanes);
    const hn_kv mant = hn_kb_or(b, hn_kb_and(b, bits, u64(m, (1ll << 52) - 1)), u64(m, 1ll << 52));
    /* bit 64 of the table is worth 1/2; the first bit to count is worth 2, so it is bit e + 62. Lanes that
     * need none of this, and infinities, read some place inside. */
    const hn_kv first =
        hn_kb_min(b, hn_kb_max(b, hn_kb_addi(b, biased, -1075 + 62), hn_m_int(m, 0)), hn_m_int(m, 1033));
    const hn_kv word = hn_kb_shr(b, first, 6),
                shift = hn_kb_bitcast(b, hn_kb_and(b, first, hn_m_int(m, 63)), HN_U64, m->lanes);
    hn_kv w[3], top, mid;

    for (int k = 0; k < 3; k++)
        w[k] = window(m, table, word, shift, k);
    multiply(m, mant, w, &top, &mid);
    /* the two top bits are the quadrant, the rest a fraction read as signed, so that it lies in [-1/2, 1/2)
     */
    const hn_kv frac = hn_kb_or(b, hn_kb_shl(b, top, 2), hn_kb_shr(b, mid, 62));
    const hn_kv sfrac = hn_kb_bitcast(b, frac, HN_I64, m->lanes), low = hn_kb_shl(b, mid, 2);
    const hn_kv head = hn_kb_and(b, sfrac, hn_m_int(m, -2048)), tail = hn_kb_and(b, sfrac, hn_m_int(m, 2047));
    const hn_kv fh = M_MUL(hn_kb_cast(b, head, HN_F64), M_C(0x1p-64));
    const hn_kv fl = M_ADD(M_MUL(hn_kb_cast(b, tail, HN_F64), M_C(0x1p-64)),
                           M_MUL(hn_kb_cast(b, low, HN_F64), M_C(0x1p-128)));
    const hn_kv q = hn_kb_addi(b, hn_kb_bitcast(b, hn_kb_shr(b, top, 62), HN_I64, m->lanes), 0);
    const hn_kv qn = M_ADD(q, M_SEL(M_LT(sfrac, hn_m_int(m, 0)), hn_m_int(m, 1), hn_m_int(m, 0)));
    /* (fh + fl) * pi/2, with fh * pi_2 split exactly */
    const hn_kv f = M_ADD(fh, fl), f_lo = M_SUB(fl, M_SUB(f, fh));
    const hn_kv mask = hn_m_int(m, -(1ll << 27));
    const hn_kv fa = hn_m_float(m, hn_kb_and(b, hn_m_bits(m, f), mask)), fb = M_SUB(f, fa);
    const hn_kv pa = M_C(0x1.921fb5p+0), pb = M_C(pi_2 - 0x1.921fb5p+0), p = M_MUL(f, M_C(pi_2));
    const hn_kv err =
        M_ADD(M_ADD(M_ADD(M_SUB(M_MUL(fa, pa), p), M_MUL(fa, pb)), M_MUL(fb, pa)), M_MUL(fb, pb));
    const hn_kv lo = M_ADD(err, M_ADD(M_MUL(f, M_C(pi_2_lo)), M_MUL(f_lo, M_C(pi_2))));
    const hn_kv neg = M_LT(x, M_C(0));
    return (quadrant){ M_SEL(neg, M_NEG(p), p), M_SEL(neg, M_NEG(lo), lo), M_SEL(neg, hn_kb_neg(b, qn), qn) };
}

static quadrant reduce_plain(const mctx *m, hn_kv x)
{
    const hn_kv magic = M_C(0x1.8p52), t = M_FMA(x, M_C(0.63661977236758138), magic), n = M_SUB(t, magic);
    const hn_kv q = M_SUB(hn_m_bits(m, t), hn_m_bits(m, magic));
    /* each product but the last is exact, so every step keeps what the one before lost */
    const hn_kv a = M_SUB(x, M_MUL(n, M_C(part1)));
    const hn_kv w2 = M_MUL(n, M_C(part2)), b = M_SUB(a, w2), lost2 = M_SUB(M_SUB(a, b), w2);
    const hn_kv w3 = M_MUL(n, M_C(part3)), c = M_SUB(b, w3), lost3 = M_SUB(M_SUB(b, c), w3);
    const hn_kv lo = M_SUB(M_ADD(lost2, lost3), M_MUL(n, M_C(rest3))), hi = M_ADD(c, lo);

    return (quadrant){ hi, M_SUB(lo, M_SUB(hi, c)), q };
}

static quadrant reduce(const mctx *m, hn_kv x)
{
    hn_kb *b = m->b;
    const hn_kv huge = M_GT(M_ABS(x), M_C(most_plain));
    const quadrant plain = reduce_plain(m, M_SEL(huge, M_C(0), x));
    const hn_kvar hi = hn_kb_var(b, plain.hi), lo = hn_kb_var(b, plain.lo), q = hn_kb_var(b, plain.q);

    hn_kb_if(b, hn_m_any(m, huge));
    const quadrant h = reduce_huge(m, x);
    hn_kb_set(b, hi, M_SEL(huge, h.hi, plain.hi));
    hn_kb_set(b, lo, M_SEL(huge, h.lo, plain.lo));
    hn_kb_set(b, q, M_SEL(huge, h.q, plain.q));
    hn_kb_end(b);
    /* infinities and NaN: no angle */
    const hn_kv none = hn_kb_not(b, M_LT(M_ABS(x), M_C(INFINITY)));
    return (quadrant){ M_SEL(none, M_C(NAN), hn_kb_get(b, hi)), hn_kb_get(b, lo), hn_kb_get(b, q) };
}

/* ---- on [-pi/4, pi/4] ---- */
/* sin(hi + lo) = sin(hi) + lo cos(hi), cos to first order being 1 - hi^2/2 */
static hn_kv sin_core(const mctx *m, hn_kv hi, hn_kv lo)
{
    static const double c64[] = { -0.16666666666666663,   0.0083333333333304276,   -0.00019841269835985584,
                                  2.7557315709635293e-06, -2.5051051586846909e-08, 1.5912461499839467e-10 };
    const hn_kv z = M_MUL(hi, hi);
    const hn_kv correction = M_FMA(M_MUL(z, M_C(-0.5)), lo, lo);

    return M_ADD(hi, M_FMA(M_MUL(hi, z), M_POLY(z, c64), correction));
}

static hn_kv cos_core(const mctx *m, hn_kv hi, hn_kv lo)
{
    static const double c64[] = { 0.041666666666666664,    -0.001388888888888707,  2.4801587298282115e-05,
                                  -2.7557317025923458e-07, 2.0876096058995368e-09, -1.1379086634729478e-11 };
    const hn_kv z = M_MUL(hi, hi), half = M_MUL(z, M_C(0.5)), w = M_SUB(M_C(1), half);
    const hn_kv tail = M_SUB(M_MUL(M_MUL(z, z), M_POLY(z, c64)), M_MUL(hi, lo));

    return M_ADD(w, M_ADD(M_SUB(M_SUB(M_C(1), w), half), tail));
}

static hn_kv sin32_core(const mctx *m, hn_kv r, hn_kv z)
{
    static const double c[] = { -0.166666672, 0.00833333191, -0.000198399895, 2.72375769e-06 };
    return M_FMA(M_MUL(r, z), M_POLY(z, c), r);
}

static hn_kv cos32_core(const mctx *m, hn_kv z)
{
    static const double c[] = { 0.0416666679, -0.00138888881, 2.48005199e-05, -2.72906533e-07 };
    return M_FMA(M_MUL(z, z), M_POLY(z, c), M_FMA(z, M_C(-0.5), M_C(1)));
}

static hn_kv bit(hn_kb *b, hn_kv q, int64_t which)
{
    return hn_kb_ne(b, hn_kb_and(b, q, hn_kb_like(b, q, (double)which)), hn_kb_like(b, q, 0));
}

/* sin(x + shift quarter turns) */
static hn_kv wave64(const mctx *m, hn_kv x, int shift)
{
    const quadrant r = reduce(m, x);
    const hn_kv q = hn_kb_addi(m->b, r.q, shift);
    const hn_kv v = M_SEL(bit(m->b, q, 1), cos_core(m, r.hi, r.lo), sin_core(m, r.hi, r.lo));

    return M_SEL(bit(m->b, q, 2), M_NEG(v), v);
}

static hn_kv wave32(const mctx *m, hn_kv x, int shift)
{
    const mctx wide = hn_m_ctx(m->b, HN_F64, m->lanes);
    const quadrant w = reduce(&wide, hn_kb_cast(m->b, x, HN_F64));
    const hn_kv r = hn_kb_cast(m->b, hn_kb_add(m->b, w.hi, w.lo), HN_F32), z = M_MUL(r, r);
    const hn_kv q = hn_kb_addi(m->b, hn_kb_cast(m->b, w.q, HN_I32), shift);
    const hn_kv v = M_SEL(bit(m->b, q, 1), cos32_core(m, z), sin32_core(m, r, z));

    return M_SEL(bit(m->b, q, 2), M_NEG(v), v);
}

hn_kv hn_m_sin(const mctx *m, hn_kv x)
{
    const hn_kv v = m->t == HN_F32 ? wave32(m, x, 0) : wave64(m, x, 0);
    return M_SEL(M_EQ(x, M_C(0)), x, v); /* -0 */
}

hn_kv hn_m_cos(const mctx *m, hn_kv x)
{
    return m->t == HN_F32 ? wave32(m, x, 1) : wave64(m, x, 1);
}

hn_kv hn_m_tan(const mctx *m, hn_kv x)
{
    const quadrant r = reduce(m, x);
    const hn_kv s = sin_core(m, r.hi, r.lo), c = cos_core(m, r.hi, r.lo), odd = bit(m->b, r.q, 1);
    const hn_kv v = M_DIV(M_SEL(odd, c, s), M_SEL(odd, M_NEG(s), c));

    return M_SEL(M_EQ(x, M_C(0)), x, v);
}

/* ---- inverses ---- */
/* arctan by the nearest of five points: (x - p)/(1 + x p) is at most 7/16. */
hn_kv hn_m_atan(const mctx *m, hn_kv x)
{
    /* (atan(t)/t - 1) / t^2 on t <= 7/16 */
    static const double c[] = { -0.3333333333333332,   0.19999999999985343,   -0.14285714282699905,
                                0.11111110868552225,   -0.090908990420530716, 0.076920635787944044,
                                -0.066629422773858193, 0.058454356241684081,  -0.050233148407995649,
                                0.037552789817764796,  -0.017251187306319703 };
    static const struct {
        double above, point, hi, lo; /* atan(point) = hi + lo */
    } step[] = { { 0.4375, 0.5, 0.46364760900080609, 2.2698777452961687e-17 },
                 { 0.6875, 1.0, 0.78539816339744828, 3.061616997868383e-17 },
                 { 1.1875, 1.5, 0.98279372324732905, 1.3903311031230998e-17 } };
    const hn_kv a = M_ABS(x), one = M_C(1);
    hn_kv num = a, den = one, hi = M_C(0), lo = M_C(0);

    for (int i = 0; i < HN_COUNT(step); i++) {
        const hn_kv from = M_GT(a, M_C(step[i].above));
        num = M_SEL(from, M_SUB(a, M_C(step[i].point)), num);
        den = M_SEL(from, M_FMA(a, M_C(step[i].point), one), den);
        hi = M_SEL(from, M_C(step[i].hi), hi);
        lo = M_SEL(from, M_C(step[i].lo), lo);
    }
    const hn_kv far = M_GT(a, M_C(2.4375));
    num = M_SEL(far, M_C(-1), num);
    den = M_SEL(far, a, den);
    hi = M_SEL(far, M_C(pi_2), hi);
    lo = M_SEL(far, M_C(pi_2_lo), lo);
    const hn_kv t = M_DIV(num, den), z = M_MUL(t, t);
    const hn_kv v = M_ADD(hi, M_ADD(t, M_FMA(M_MUL(t, z), M_POLY(z, c), lo)));
    return hn_m_with_sign(m, v, x);
}

/* (asin(x)/x - 1) / x^2 on |x| <= 1/2, in x^2, times x^2 */
static hn_kv asin_tail(const mctx *m, hn_kv z)
{
    static const double c[] = { 0.16666666666666666,   0.075000000000001218, 0.044642857142543263,
                                0.030381944476347046,  0.02237215740373685,  0.01735281769074104,
                                0.013963758735074137,  0.01156672237119713,  0.0096196292036874725,
                                0.0093323271561656651, 0.002995311657156326, 0.019678367430161998,
                                -0.019421498763363361, 0.029727286869498975 };
    return M_MUL(z, M_POLY(z, c));
}

/* For 1/2 < a <= 1: asin(a) = pi/2 - 2 asin(root), root = sqrt((1-a)/2) = head + rest with an exact square of
 * head. */
typedef struct upper {
    hn_kv head, rest; /* asin(root) = head + rest */
} upper;

static upper upper_half(const mctx *m, hn_kv a)
{
    const hn_kv z = M_MUL(M_SUB(M_C(1), a), M_C(0.5)), s = hn_kb_sqrt(m->b, z);
    const hn_kv head = hn_m_float(m, hn_kb_and(m->b, hn_m_bits(m, s), hn_m_int(m, -(1ll << 32))));
    const hn_kv lost = M_DIV(M_SUB(z, M_MUL(head, head)), M_ADD(s, head));
    const hn_kv kept = M_SEL(M_EQ(s, M_C(0)), M_C(0), lost);

    return (upper){ head, M_FMA(s, asin_tail(m, z), kept) };
}

hn_kv hn_m_asin(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), low = M_LT(a, M_C(0.5));
    const hn_kv small = M_FMA(a, asin_tail(m, M_MUL(a, a)), a);
    const upper u = upper_half(m, a);
    const hn_kv quarter = M_C(pi_2 / 2), two = M_C(2);
    const hn_kv rest = M_SUB(M_MUL(two, u.rest), M_C(pi_2_lo));
    const hn_kv large = M_SUB(quarter, M_SUB(rest, M_SUB(quarter, M_MUL(two, u.head))));

    return hn_m_with_sign(m, M_SEL(low, small, large), x);
}

hn_kv hn_m_acos(const mctx *m, hn_kv x)
{
    const hn_kv a = M_ABS(x), low = M_LT(a, M_C(0.5)), neg = M_LT(x, M_C(0)), two = M_C(2);
    const upper u = upper_half(m, a);
    const hn_kv tail = M_MUL(x, asin_tail(m, M_MUL(x, x)));
    const hn_kv small = M_SUB(M_C(pi_2), M_SUB(x, M_SUB(M_C(pi_2_lo), tail)));
    const hn_kv whole = M_MUL(two, M_ADD(u.head, u.rest));
    const hn_kv turned = M_MUL(two, M_SUB(M_C(pi_2), M_ADD(u.head, M_SUB(u.rest, M_C(pi_2_lo)))));

    return M_SEL(low, small, M_SEL(neg, turned, whole));
}
