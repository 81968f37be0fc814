/* Inside src/kir: what the function expansions share. A function is written once over a math context
 * (builder, float type, lanes) and emits straight-line code; only huge trigonometric arguments and fmod take
 * a branch or a loop.
 *
 * Coefficients: interpolation of the named function at the Chebyshev nodes of the named interval, computed
 * with 60 digits. */
#ifndef HN_KIR_MATH_INT_H
#define HN_KIR_MATH_INT_H

#include "kir/kir_int.h"

typedef struct mctx {
    hn_kb *b;
    hn_dtype t, it, ut; /* HN_F32 or HN_F64, and the integers of its width */
    int lanes, mant, bias;
} mctx;

mctx hn_m_ctx(hn_kb *b, hn_dtype t, int lanes);
/** Horner: c[0] + x*c[1] + ... in the context's type. */
hn_kv hn_m_poly(const mctx *m, hn_kv x, const double *c, int n);
hn_kv hn_m_const(const mctx *m, double v);
hn_kv hn_m_int(const mctx *m, int64_t v);                   /* of the integer type */
hn_kv hn_m_bits(const mctx *m, hn_kv x);                    /* float to its bits as int */
hn_kv hn_m_float(const mctx *m, hn_kv i);                   /* and back */
hn_kv hn_m_with_sign(const mctx *m, hn_kv mag, hn_kv sign); /* |mag| with sign's sign bit */
hn_kv hn_m_any(const mctx *m, hn_kv mask);                  /* any lane, whatever their number */
hn_kv hn_m_exp2i(const mctx *m, hn_kv i);                   /* 2^i for normal results */
/** p * 2^i in two exact steps and one rounding, so that results may be subnormal or overflow. */
hn_kv hn_m_scale(const mctx *m, hn_kv p, hn_kv i);

/* One operation on literals and values, short because formulas are long. */
#define M_ADD(x, y)    hn_kb_add(m->b, (x), (y))
#define M_SUB(x, y)    hn_kb_sub(m->b, (x), (y))
#define M_MUL(x, y)    hn_kb_mul(m->b, (x), (y))
#define M_DIV(x, y)    hn_kb_div(m->b, (x), (y))
#define M_FMA(x, y, z) hn_kb_fma(m->b, (x), (y), (z))
#define M_SEL(c, x, y) hn_kb_select(m->b, (c), (x), (y))
#define M_LT(x, y)     hn_kb_lt(m->b, (x), (y))
#define M_GT(x, y)     hn_kb_gt(m->b, (x), (y))
#define M_EQ(x, y)     hn_kb_eq(m->b, (x), (y))
#define M_ABS(x)       hn_kb_abs(m->b, (x))
#define M_NEG(x)       hn_kb_neg(m->b, (x))
#define M_C(v)         hn_m_const(m, (v))
#define M_POLY(x, c)   hn_m_poly(m, (x), (c), HN_COUNT(c))

/* math_exp.c */
hn_kv hn_m_exp(const mctx *m, hn_kv x);
hn_kv hn_m_half_exp(const mctx *m, hn_kv x); /* exp(x)/2 without early overflow */
hn_kv hn_m_exp2(const mctx *m, hn_kv x);
hn_kv hn_m_expm1(const mctx *m, hn_kv x);
hn_kv hn_m_log(const mctx *m, hn_kv x);
hn_kv hn_m_log2(const mctx *m, hn_kv x); /* f64 */
hn_kv hn_m_log1p(const mctx *m, hn_kv x);
hn_kv hn_m_pow32(const mctx *m, hn_kv x, hn_kv y); /* f32 context */
hn_kv hn_m_pow64(const mctx *m, hn_kv x, hn_kv y);
/** x = 2^k * r, r in [sqrt(1/2), sqrt(2)); k as float. x positive, finite. */
void hn_m_split(const mctx *m, hn_kv x, hn_kv *ret_r, hn_kv *ret_k);

/* math_trig.c */
hn_kv hn_m_sin(const mctx *m, hn_kv x);
hn_kv hn_m_cos(const mctx *m, hn_kv x);
hn_kv hn_m_tan(const mctx *m, hn_kv x);  /* f64 */
hn_kv hn_m_atan(const mctx *m, hn_kv x); /* f64 */
hn_kv hn_m_asin(const mctx *m, hn_kv x); /* f64 */
hn_kv hn_m_acos(const mctx *m, hn_kv x); /* f64 */

#endif
