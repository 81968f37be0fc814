/* Functions expanded into kernels, against libm one precision up, and compiled code against the interpreter.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "jit.h"
#include "kir/kir.h"

typedef long double (*oracle)(long double x);

static long double o_sigmoid(long double x)
{
    return 1 / (1 + expl(-x));
}

static long double o_rsqrt(long double x)
{
    return 1 / sqrtl(x);
}

static const oracle oracles[] = {
    [HN_KMATH_EXP] = expl,     [HN_KMATH_EXP2] = exp2l,        [HN_KMATH_EXPM1] = expm1l,
    [HN_KMATH_LOG] = logl,     [HN_KMATH_LOG2] = log2l,        [HN_KMATH_LOG1P] = log1pl,
    [HN_KMATH_SIN] = sinl,     [HN_KMATH_COS] = cosl,          [HN_KMATH_TAN] = tanl,
    [HN_KMATH_ASIN] = asinl,   [HN_KMATH_ACOS] = acosl,        [HN_KMATH_ATAN] = atanl,
    [HN_KMATH_SINH] = sinhl,   [HN_KMATH_COSH] = coshl,        [HN_KMATH_TANH] = tanhl,
    [HN_KMATH_ASINH] = asinhl, [HN_KMATH_ACOSH] = acoshl,      [HN_KMATH_ATANH] = atanhl,
    [HN_KMATH_ERF] = erfl,     [HN_KMATH_SIGMOID] = o_sigmoid, [HN_KMATH_RSQRT] = o_rsqrt,
    [HN_KMATH_CBRT] = cbrtl,
};

enum { CHUNK = 4096 };

static hn_kfunc unary_kernel(hn_test *t, hn_kmath fn, hn_dtype dt, int lanes)
{
    hn_kb *b = hn_kb_new(t->arena, hn_kmath_name(fn));
    const int x = hn_kb_in(b, "x", dt), y = hn_kb_out(b, "y", dt);
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, CHUNK), lanes);
    hn_kb_store(b, y, i, hn_kb_math(b, fn, hn_kb_load(b, x, i, lanes)));
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

/* Error of got in units of the type's last place at the true value; 1e30 for a wrong special value. */
static double ulps(long double want, double got, hn_dtype dt)
{
    const int digits = dt == HN_F32 ? 24 : 53, least = dt == HN_F32 ? -149 : -1074;
    const double as_type = dt == HN_F32 ? (double)(float)want : (double)want;
    int e;

    if (want != want) return got != got ? 0 : 1e30;
    if (got != got) return 1e30;
    if (isinf(got) || isinf(as_type)) { /* rounding at the edge may go either way */
        if (got == as_type) return 0;
        const double edge = dt == HN_F32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
        return isinf(got) != isinf(as_type) && fabs(isinf(got) ? as_type : got) == edge &&
                       signbit(got) == signbit(as_type)
                   ? 1
                   : 1e30;
    }
    if (got == 0 && want == 0) return signbit(got) == !!signbit(want) ? 0 : 1e30;
    if (want == 0) return 1e30;
    frexpl(want, &e);
    return (double)(fabsl((long double)got - want) / ldexpl(1, HN_MAX(e - digits, least)));
}

static double at(const void *p, hn_dtype dt, int i)
{
    return dt == HN_F32 ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

static void put(void *p, hn_dtype dt, int i, double v)
{
    if (dt == HN_F32)
        ((float *)p)[i] = (float)v;
    else
        ((double *)p)[i] = v;
}

static const double hostile[] = { 0.0,
                                  -0.0,
                                  1,
                                  -1,
                                  0.5,
                                  -0.5,
                                  2,
                                  -2,
                                  INFINITY,
                                  -INFINITY,
                                  NAN,
                                  0x1p-149,
                                  -0x1p-149,
                                  0x1p-126,
                                  0x1.fffffep127,
                                  -0x1.fffffep127,
                                  88.7228,
                                  88.72284,
                                  89,
                                  -87.3,
                                  -103.9,
                                  -104.1,
                                  127.999,
                                  128,
                                  -126.5,
                                  -149.5,
                                  -150,
                                  709.78,
                                  709.7828,
                                  710.47,
                                  -708.4,
                                  -745.2,
                                  -746,
                                  1024,
                                  -1022.5,
                                  -1074.9,
                                  -1075,
                                  1.5707963267948966,
                                  3.141592653589793,
                                  0x1.921fb6p0,
                                  0x1p22,
                                  0x1p24,
                                  1e6,
                                  1000001,
                                  1e7,
                                  0x1p52,
                                  0x1p53,
                                  1e15,
                                  1e22,
                                  1e30,
                                  0x1p-1022,
                                  0x1p-1074,
                                  0x1.fffffffffffffp1023,
                                  1e300,
                                  1e-300,
                                  6381956970095103.0 * 0x1p797 /* the double nearest to a multiple of pi/2 */,
                                  16367173.0 * 0x1p72 /* the float */,
                                  0.9999999,
                                  1.0000001,
                                  -0.9999999,
                                  -0.99999994,
                                  0.99999994,
                                  1e-10,
                                  -1e-10,
                                  1e-5,
                                  0.4375,
                                  0.6875,
                                  1.1875,
                                  2.4375,
                                  0.625,
                                  0.9277,
                                  3.99,
                                  4.01,
                                  6,
                                  5.99,
                                  22,
                                  22.1,
                                  9,
                                  17.3,
                                  0.84375,
                                  0.70710678,
                                  0.70710677,
                                  1.4142135,
                                  0x1p28,
                                  0x1p29,
                                  1e10,
                                  -3.5,
                                  8,
                                  -27,
                                  1000 };

/* Chunk 0: hostile values; odd chunks: random bits; even ones: spread over a range where the function lives.
 */
static void make_inputs(void *x, hn_dtype dt, int chunk, hn_rng *r)
{
    for (int i = 0; i < CHUNK; i++) {
        const uint64_t bits = hn_rng_u64(r);
        if (chunk == 0 && i < HN_COUNT(hostile)) {
            put(x, dt, i, hostile[i]);
        } else if (chunk % 2) {
            memcpy((char *)x + i * (dt == HN_F32 ? 4 : 8), &bits, dt == HN_F32 ? 4 : 8);
        } else {
            static const double span[] = { 1, 10, 100, 700, 1.5, 3 };
            put(x, dt, i, hn_rng_normal(r) * span[chunk / 2 % HN_COUNT(span)]);
        }
    }
}

static void check_chunk(const char *name, const char *target, oracle want, hn_dtype dt, const void *x,
                        const void *y, double bound, double *worst)
{
    for (int i = 0; i < CHUNK; i++) {
        const double v = at(x, dt, i), got = at(y, dt, i), err = ulps(want((long double)v), got, dt);
        if (err > *worst) *worst = err;
        if (err > bound)
            FAIL("%s(%a = %.9g) in %s on %s is %a, must be %La: %.3g ulp", name, v, v, hn_dtype_name(dt),
                 target, got, want((long double)v), err);
    }
}

static void check_function(hn_test *t, hn_kmath fn, hn_dtype dt, int chunks)
{
    static double x[CHUNK], y[CHUNK], z[CHUNK];
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    const hn_kfunc f = unary_kernel(t, fn, dt, dt == HN_F32 ? 16 : 8);
    double worst = 0;

    for (int k = 0; k < n_target; k++) {
        const bool fused = target[k].feat & HN_FEAT_FMA;
        jit j = jit_make(t, &f, &target[k]);
        hn_rng r;
        hn_rng_init(&r, 17);
        for (int c = 0; c < (k == n_target - 1 ? chunks : 3); c++) {
            make_inputs(x, dt, c, &r);
            jit_run(&j, &f, (void *[]){ x, y }, NULL);
            check_chunk(f.name, target[k].name, oracles[fn], dt, x, y, hn_kmath_ulp(fn, dt), &worst);
            if (c || !fused) continue;
            hn_diag dg = { 0 };
            const int64_t bytes = CHUNK * (dt == HN_F32 ? 4 : 8);
            CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { x, bytes }, { z, bytes } }, NULL, 0, 1, 0, &dg), &dg);
            for (int i = 0; i < CHUNK; i++) {
                const double a = at(y, dt, i), b = at(z, dt, i);
                if (memcmp(&a, &b, 8) && !(a != a && b != b))
                    FAIL("%s(%a) on %s is %a, interpreted %a", f.name, at(x, dt, i), target[k].name, a, b);
            }
        }
        jit_done(&j);
    }
    if (getenv("HONE_TEST_VERBOSE")) printf("%-8s %s  %.3f ulp\n", f.name, hn_dtype_name(dt), worst);
}

#define MATH_TEST(name)                                                                                      \
    TEST(math_##name##_f32)                                                                                  \
    {                                                                                                        \
        check_function(t, HN_KMATH_##name, HN_F32, 100);                                                     \
    }                                                                                                        \
    TEST(math_##name##_f64)                                                                                  \
    {                                                                                                        \
        check_function(t, HN_KMATH_##name, HN_F64, 50);                                                      \
    }
#define X(name, number, text, ulp32, ulp64) MATH_TEST(name)
#include "kir/kmath.def"
#undef X

/* ---- two operands ---- */
static void check_binary(hn_test *t, const char *name, bool power, hn_dtype dt, double bound)
{
    static double x[CHUNK], y[CHUNK], got[CHUNK];
    hn_target target[8];
    const int n_target = jit_targets(target, 8), lanes = dt == HN_F32 ? 16 : 8;
    hn_kb *b = hn_kb_new(t->arena, name);
    const int bx = hn_kb_in(b, "x", dt), by = hn_kb_in(b, "y", dt), out = hn_kb_out(b, "z", dt);
    double worst = 0;
    hn_diag dg = { 0 };
    hn_kfunc f;
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, CHUNK), lanes);
    const hn_kv vx = hn_kb_load(b, bx, i, lanes), vy = hn_kb_load(b, by, i, lanes);

    hn_kb_store(b, out, i, power ? hn_kb_pow(b, vx, vy) : hn_kb_fmod(b, vx, vy));
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    for (int k = 0; k < n_target; k++) {
        jit j = jit_make(t, &f, &target[k]);
        hn_rng r;
        hn_rng_init(&r, 23);
        for (int c = 0; c < (k == n_target - 1 ? 40 : 8); c++) {
            const int some = HN_COUNT(hostile);
            make_inputs(x, dt, c, &r);
            make_inputs(y, dt, c, &r);
            for (int n = 0; c < 3 && n < CHUNK; n++) { /* every hostile pair */
                put(x, dt, n, hostile[(c * CHUNK + n) / some % some]);
                put(y, dt, n, hostile[(c * CHUNK + n) % some]);
            }
            for (int n = 0; c > 3 && power && n < CHUNK; n++)
                put(x, dt, n, fabs(at(x, dt, n)));
            jit_run(&j, &f, (void *[]){ x, y, got }, NULL);
            for (int n = 0; n < CHUNK; n++) {
                const double a = at(x, dt, n), e = at(y, dt, n);
                const long double want =
                    power ? powl((long double)a, (long double)e) : fmodl((long double)a, (long double)e);
                const double err = ulps(want, at(got, dt, n), dt);
                if (err > worst) worst = err;
                if (err > bound)
                    FAIL("%s(%a, %a) in %s on %s is %a, must be %La: %.3g ulp", name, a, e, hn_dtype_name(dt),
                         target[k].name, at(got, dt, n), want, err);
            }
        }
        jit_done(&j);
    }
    if (getenv("HONE_TEST_VERBOSE")) printf("%-8s %s  %.3f ulp\n", name, hn_dtype_name(dt), worst);
}

TEST(math_pow_f32)
{
    check_binary(t, "pow", true, HN_F32, 1);
}

TEST(math_pow_f64)
{
    check_binary(t, "pow", true, HN_F64, 2);
}

TEST(math_fmod_f32)
{
    check_binary(t, "fmod", false, HN_F32, 0);
}

TEST(math_fmod_f64)
{
    check_binary(t, "fmod", false, HN_F64, 0);
}

TEST(odd_lane_counts_work)
{
    hn_target target[8];
    const int n = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "sin3");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
    const float in[3] = { 1, 1e9f, 3 };
    float out[3];
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_math(b, HN_KMATH_SIN, hn_kb_load(b, x, hn_kb_i(b, 0), 3)));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    jit j = jit_make(t, &f, &target[n - 1]);
    jit_run(&j, &f, (void *[]){ (void *)(uintptr_t)in, out }, NULL);
    for (int i = 0; i < 3; i++)
        CHECK_NEAR((double)out[i], sin((double)in[i]), 1e-7);
    jit_done(&j);
}

/* HONE_BENCH=1: nanoseconds an element, input in the nearest cache. */
TEST(math_throughput)
{
    static double x[CHUNK], y[CHUNK];
    hn_target target[8];
    const int n_target = jit_targets(target, 8);

    if (!getenv("HONE_BENCH")) SKIP("set HONE_BENCH=1");
    for (int k = 1; k < n_target; k++) {
        for (int fn = HN_KMATH_EXP; fn <= HN_KMATH_CBRT; fn++) {
            const hn_kfunc f = unary_kernel(t, (hn_kmath)fn, HN_F32, target[k].vec_bytes / 4);
            jit j = jit_make(t, &f, &target[k]);
            double best = 1e9;
            for (int i = 0; i < CHUNK; i++)
                put(x, HN_F32, i, 0.1 + 0.0002 * i);
            for (int round = 0; round < 50; round++) {
                const int64_t start = hn_now_ns();
                for (int i = 0; i < 4; i++)
                    jit_run(&j, &f, (void *[]){ x, y }, NULL);
                best = fmin(best, (double)(hn_now_ns() - start) / (4 * CHUNK));
            }
            printf("{\"function\": \"%s\", \"target\": \"%s\", \"ns\": %.3f, \"stack_refs\": %d}\n", f.name,
                   target[k].name, best, j.code.n_stack_ref);
            jit_done(&j);
        }
    }
}
