/* A register-blocked GEMM microkernel written with the builder: right, free of spills, and, with HONE_BENCH
 * set, near the machine's multiply-add peak. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "jit.h"
#include "kir/kir.h"

enum { K = 256, MAX_MR = 14, MAX_NR = 96, PANELS = 10 };

/* C[mr,nr] = A[k,mr]^T B[k,nr], both packed; k a multiple of unroll. */
static hn_kfunc gemm_kernel(hn_test *t, int mr, int nv, int vl, int unroll)
{
    hn_kb *b = hn_kb_new(t->arena, hn_arena_printf(t->arena, "gemm_f32_bcast__cpu_mr%d_nr%d", mr, nv * vl));
    const int pa = hn_kb_in(b, "a", HN_F32), pb = hn_kb_in(b, "b", HN_F32), pc = hn_kb_out(b, "c", HN_F32);
    const hn_kv k = hn_kb_arg(b, "k", 0, 1 << 20, unroll), ldc = hn_kb_arg(b, "ldc", 1, 1 << 20, 1);
    hn_kvar acc[MAX_MR][8];
    hn_diag dg = { 0 };
    hn_kfunc f;

    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            acc[i][j] = hn_kb_var(b, hn_kb_float(b, HN_F32, vl, 0));
    const hn_kv p = hn_kb_for(b, hn_kb_i(b, 0), k, unroll);
    const hn_kv at_a = hn_kb_muli(b, p, mr), at_b = hn_kb_muli(b, p, nv * vl);
    for (int u = 0; u < unroll; u++) {
        hn_kv row[8];
        for (int j = 0; j < nv; j++)
            row[j] = hn_kb_load(b, pb, hn_kb_addi(b, at_b, (u * nv + j) * vl), vl);
        for (int i = 0; i < mr; i++) {
            const hn_kv x = hn_kb_load_splat(b, pa, hn_kb_addi(b, at_a, u * mr + i), vl);
            for (int j = 0; j < nv; j++)
                hn_kb_set(b, acc[i][j], hn_kb_fma(b, x, row[j], hn_kb_get(b, acc[i][j])));
        }
    }
    hn_kb_end(b);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            hn_kb_store(b, pc, hn_kb_addi(b, hn_kb_muli(b, ldc, i), j * vl), hn_kb_get(b, acc[i][j]));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

/* Independent chains of multiply-add in registers: the roof. */
static hn_kfunc peak_kernel(hn_test *t, int chains, int vl)
{
    hn_kb *b = hn_kb_new(t->arena, "fma_peak");
    const int out = hn_kb_out(b, "out", HN_F32);
    const hn_kv n = hn_kb_arg(b, "n", 0, 1 << 30, 1);
    hn_kvar acc[32];
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv x = hn_kb_load_splat(b, out, hn_kb_i(b, 0), vl),
                y = hn_kb_load_splat(b, out, hn_kb_i(b, 1), vl);
    for (int i = 0; i < chains; i++)
        acc[i] = hn_kb_var(b, hn_kb_load(b, out, hn_kb_i(b, i), vl));
    hn_kb_forn(b, n);
    for (int u = 0; u < 4; u++)
        for (int i = 0; i < chains; i++)
            hn_kb_set(b, acc[i], hn_kb_fma(b, x, y, hn_kb_get(b, acc[i])));
    hn_kb_end(b);
    for (int i = 0; i < chains; i++)
        hn_kb_store(b, out, hn_kb_i(b, i * vl), hn_kb_get(b, acc[i]));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

static float *floats(hn_test *t, int n)
{
    float *p = hn_arena_alloc_aligned(t->arena, (size_t)n * 4, 64);
    CHECK(p != NULL);
    return p;
}

static void check_result(const float *a, const float *b, const float *c, int mr, int nr)
{
    for (int i = 0; i < mr; i++) {
        for (int j = 0; j < nr; j++) {
            double want = 0;
            for (int p = 0; p < K; p++)
                want += (double)a[p * mr + i] * (double)b[p * nr + j];
            CHECK_NEAR((double)c[i * nr + j], want, 1e-4);
        }
    }
}

static double best_seconds(const jit *j, void *const *buf, const int64_t *arg, int calls)
{
    double best = 1e9;

    for (int round = 0; round < 60; round++) {
        const int64_t start = hn_now_ns();
        for (int i = 0; i < calls; i++)
            j->fn(buf, arg, 0, 1, NULL);
        const double s = (double)(hn_now_ns() - start) * 1e-9;
        if (s < best) best = s;
    }
    return best;
}

static double measured_peak(hn_test *t, const hn_target *target)
{
    const int vl = target->vec_bytes / 4, chains = target->n_vreg == 32 ? 24 : 12;
    const hn_kfunc f = peak_kernel(t, chains, vl);
    float *out = floats(t, 1024);
    jit j = jit_make(t, &f, target);
    const int64_t n = 2000;
    const double s = best_seconds(&j, (void *[]){ out }, &n, 10);

    jit_done(&j);
    return 2.0 * 4 * chains * vl * (double)n * 10 / s * 1e-9;
}

static void run_tile(hn_test *t, const hn_target *target, int mr, int nv, double peak)
{
    const int vl = target->vec_bytes / 4, nr = nv * vl;
    const hn_kfunc f = gemm_kernel(t, mr, nv, vl, 4);
    float *a = floats(t, K * mr), *b = floats(t, K * nr), *c = floats(t, mr * nr);
    const int64_t arg[] = { K, nr };
    jit j = jit_make(t, &f, target);

    for (int i = 0; i < K * mr; i++)
        a[i] = (float)(i % 7) * 0.1f;
    for (int i = 0; i < K * nr; i++)
        b[i] = (float)(i % 11) * 0.1f - 0.5f;
    jit_run(&j, &f, (void *[]){ a, b, c }, arg);
    check_result(a, b, c, mr, nr);
    if (j.code.n_stack_ref)
        FAIL("%s on %s touches the stack %d times", f.name, target->name, j.code.n_stack_ref);
    if (peak > 0) {
        const double s = best_seconds(&j, (void *[]){ a, b, c }, arg, 50);
        const double rate = 2.0 * mr * nr * K * 50 / s * 1e-9;
        printf("{\"kernel\": \"%s\", \"target\": \"%s\", \"gflops\": %.1f, \"of_peak\": %.3f, "
               "\"compile_ms\": %.1f}\n",
               f.name, target->name, rate, rate / peak, (double)j.code.compile_ns * 1e-6);
        if (rate < 0.9 * peak)
            FAIL("%s reaches %.0f%% of the multiply-add peak %.1f", f.name, 100 * rate / peak, peak);
    }
    jit_done(&j);
}

TEST(gemm_microkernels_do_not_spill)
{
    static const struct {
        int vec_bytes, mr, nv;
    } tile[] = { { 32, 6, 2 }, { 32, 4, 3 }, { 64, 14, 2 }, { 64, 12, 2 },
                 { 64, 8, 3 }, { 64, 6, 4 }, { 64, 5, 5 },  { 64, 12, 1 } };
    hn_target target[8];
    const int n = jit_targets(target, 8);

    for (int k = 1; k < n; k++) {
        const double peak = getenv("HONE_BENCH") ? measured_peak(t, &target[k]) : 0;
        for (int i = 0; i < HN_COUNT(tile); i++)
            if (tile[i].vec_bytes == target[k].vec_bytes)
                run_tile(t, &target[k], tile[i].mr, tile[i].nv, peak);
    }
}

/* The same kernel interpreted gives the same bits: order of sums included. */
TEST(gemm_equals_interpreter)
{
    hn_target target[8];
    const int n = jit_targets(target, 8);
    const hn_kfunc f = gemm_kernel(t, 3, 2, 8, 4);
    float *a = floats(t, 64 * 3), *b = floats(t, 64 * 16), *c = floats(t, 3 * 16), *d = floats(t, 3 * 16);
    const int64_t arg[] = { 64, 16 };
    hn_diag dg = { 0 };
    hn_rng r;

    hn_rng_init(&r, 9);
    for (int i = 0; i < 64 * 3; i++)
        a[i] = (float)hn_rng_normal(&r);
    for (int i = 0; i < 64 * 16; i++)
        b[i] = (float)hn_rng_normal(&r);
    CHECK_OK(
        hn_kfunc_run(&f, (hn_kmem[]){ { a, 64 * 12 }, { b, 64 * 64 }, { d, 3 * 64 } }, arg, 0, 1, 0, &dg),
        &dg);
    for (int k = 1; k < n; k++) {
        jit j = jit_make(t, &f, &target[k]);
        jit_run(&j, &f, (void *[]){ a, b, c }, arg);
        CHECK(memcmp(c, d, 3 * 64) == 0);
        jit_done(&j);
    }
}

/* C[mr,nr] = A[k/4,mr,4] (u8) times B[k/4,nr,4] (i8), exact in i32. */
static hn_kfunc int8_kernel(hn_test *t, int mr, int nv, int vl)
{
    hn_kb *b =
        hn_kb_new(t->arena, hn_arena_printf(t->arena, "gemm_u8s8s32_bcast__cpu_mr%d_nr%d", mr, nv * vl));
    const int pa = hn_kb_in(b, "a", HN_U8), pb = hn_kb_in(b, "b", HN_I8), pc = hn_kb_out(b, "c", HN_I32);
    const hn_kv k4 = hn_kb_arg(b, "k4", 0, 1 << 20, 2);
    hn_kvar acc[MAX_MR][8];
    hn_diag dg = { 0 };
    hn_kfunc f;

    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            acc[i][j] = hn_kb_var(b, hn_kb_int(b, HN_I32, vl, 0));
    const hn_kv p = hn_kb_for(b, hn_kb_i(b, 0), k4, 2);
    const hn_kv at_a = hn_kb_muli(b, p, 4 * mr), at_b = hn_kb_muli(b, p, 4 * nv * vl);
    for (int u = 0; u < 2; u++) {
        hn_kv row[8];
        for (int j = 0; j < nv; j++)
            row[j] = hn_kb_load(b, pb, hn_kb_addi(b, at_b, 4 * (u * nv + j) * vl), 4 * vl);
        for (int i = 0; i < mr; i++) {
            const hn_kv four =
                hn_kb_load_as(b, pa, hn_kb_addi(b, at_a, 4 * (u * mr + i)), HN_I32, 1, HN_KV_NONE);
            const hn_kv x = hn_kb_bitcast(b, hn_kb_splat(b, four, vl), HN_U8, 4 * vl);
            for (int j = 0; j < nv; j++)
                hn_kb_set(b, acc[i][j], hn_kb_dot4(b, hn_kb_get(b, acc[i][j]), x, row[j]));
        }
    }
    hn_kb_end(b);
    for (int i = 0; i < mr; i++)
        for (int j = 0; j < nv; j++)
            hn_kb_store(b, pc, hn_kb_i(b, (i * nv + j) * vl), hn_kb_get(b, acc[i][j]));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

static void run_int8(hn_test *t, const hn_target *target, int mr, int nv)
{
    const int vl = target->vec_bytes / 4, nr = nv * vl;
    const hn_kfunc f = int8_kernel(t, mr, nv, vl);
    uint8_t *a = hn_arena_alloc_aligned(t->arena, (size_t)K * (size_t)mr, 64);
    int8_t *b = hn_arena_alloc_aligned(t->arena, (size_t)K * (size_t)nr, 64);
    int32_t *c = hn_arena_alloc_aligned(t->arena, (size_t)(mr * nr) * 4, 64);
    const int64_t k4 = K / 4;
    jit j = jit_make(t, &f, target);

    for (int i = 0; i < K * mr; i++)
        a[i] = (uint8_t)(i * 37);
    for (int i = 0; i < K * nr; i++)
        b[i] = (int8_t)(i * 91);
    jit_run(&j, &f, (void *[]){ a, b, c }, &k4);
    for (int i = 0; i < mr; i++) {
        for (int n = 0; n < nr; n++) {
            int32_t want = 0;
            for (int p = 0; p < K; p++)
                want += a[(p / 4 * mr + i) * 4 + p % 4] * b[(p / 4 * nr + n) * 4 + p % 4];
            CHECK_EQ(c[i * nr + n], want);
        }
    }
    if (getenv("HONE_BENCH")) {
        const double s = best_seconds(&j, (void *[]){ a, b, c }, &k4, 50);
        printf("{\"kernel\": \"%s\", \"target\": \"%s\", \"gmacs\": %.1f, \"stack_refs\": %d}\n", f.name,
               target->name, (double)mr * nr * K * 50 / s * 1e-9, j.code.n_stack_ref);
    }
    if (target->feat & HN_FEAT_AVX512_VNNI) CHECK_EQ(j.code.n_stack_ref, 0);
    jit_done(&j);
}

TEST(int8_microkernels_are_exact)
{
    hn_target target[8];
    const int n = jit_targets(target, 8);

    for (int k = 1; k < n; k++) {
        run_int8(t, &target[k], target[k].n_vreg == 32 ? 14 : 4, 2);
        run_int8(t, &target[k], 3, 1);
    }
}
