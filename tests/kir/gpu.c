/* GPU programs in the interpreter: grids, threads, shared memory, barriers, warp shuffles. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kir/kir.h"

static void finish(hn_kb *b, hn_kfunc *f)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_kb_finish(b, f, &dg), &dg);
}

/* Transpose by 8x4 tiles through shared memory: wrong without the barrier. */
static hn_kfunc transpose_kernel(hn_test *t, bool with_barrier)
{
    hn_kb *b = hn_kb_new(t->arena, "transpose");
    const int x = hn_kb_in(b, "x", HN_I32), y = hn_kb_out(b, "y", HN_I32);
    const int tile = hn_kb_shared(b, "tile", HN_I32, 64);
    const hn_kv n = hn_kb_arg(b, "n", 8, 64, 8);
    hn_kfunc f;

    const hn_kv by = hn_kb_grid(b, 1, hn_kb_ext(b, n, 8)), bx = hn_kb_grid(b, 0, hn_kb_ext(b, n, 8));
    const hn_kv ty = hn_kb_threads(b, 1, 8), tx = hn_kb_threads(b, 0, 8);
    const hn_kv row = hn_kb_add(b, hn_kb_muli(b, by, 8), ty), col = hn_kb_add(b, hn_kb_muli(b, bx, 8), tx);
    hn_kb_store(b, tile, hn_kb_add(b, hn_kb_muli(b, ty, 8), tx),
                hn_kb_load(b, x, hn_kb_add(b, hn_kb_mul(b, row, n), col), 1));
    if (with_barrier) hn_kb_barrier(b);
    const hn_kv row2 = hn_kb_add(b, hn_kb_muli(b, bx, 8), ty), col2 = hn_kb_add(b, hn_kb_muli(b, by, 8), tx);
    hn_kb_store(b, y, hn_kb_add(b, hn_kb_mul(b, row2, n), col2),
                hn_kb_load(b, tile, hn_kb_add(b, hn_kb_muli(b, tx, 8), ty), 1));
    for (int i = 0; i < 4; i++)
        hn_kb_end(b);
    finish(b, &f);
    return f;
}

TEST(gpu_transpose_through_shared_memory)
{
    enum { N = 24 };
    static int32_t x[N * N], y[N * N];
    const int64_t n = N;
    hn_diag dg = { 0 };
    hn_kfunc f = transpose_kernel(t, true);
    const hn_kmem mem[] = { { x, sizeof(x) }, { y, sizeof(y) } };

    for (int i = 0; i < N * N; i++)
        x[i] = i;
    CHECK_EQ(hn_kext_eval(&f.grid[0], &n), 3);
    CHECK_EQ(f.threads[0] * f.threads[1] * f.threads[2], 64);
    CHECK_OK(hn_kfunc_run(&f, mem, &n, 0, 1, 0, &dg), &dg);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            CHECK_EQ(y[i * N + j], x[j * N + i]);
    f = transpose_kernel(t, false);
    CHECK_ERR(hn_kfunc_run(&f, mem, &n, 0, 1, 0, &dg), HONE_E_INTERNAL, &dg, "never written");
}

/* Sum of 96 numbers by three warps: butterflies inside a warp, shared memory across. */
TEST(gpu_block_sum)
{
    hn_kb *b = hn_kb_new(t->arena, "sum");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32),
              part = hn_kb_shared(b, "part", HN_F32, 3);
    float in[96], out[1] = { 0 }, want = 0;
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv tx = hn_kb_threads(b, 0, 96);
    hn_kv v = hn_kb_load(b, x, tx, 1);
    for (int mask = 16; mask; mask /= 2)
        v = hn_kb_add(b, v, hn_kb_shfl_xor(b, v, mask));
    hn_kb_if(b, hn_kb_eq(b, hn_kb_imod(b, tx, hn_kb_i(b, 32)), hn_kb_i(b, 0)));
    hn_kb_store(b, part, hn_kb_idiv(b, tx, hn_kb_i(b, 32)), v);
    hn_kb_end(b);
    hn_kb_barrier(b);
    hn_kb_if(b, hn_kb_eq(b, tx, hn_kb_i(b, 0)));
    const hn_kvar sum = hn_kb_var(b, hn_kb_f(b, 0));
    const hn_kv i = hn_kb_fori(b, 3);
    hn_kb_set(b, sum, hn_kb_add(b, hn_kb_get(b, sum), hn_kb_load(b, part, i, 1)));
    hn_kb_end(b);
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_get(b, sum));
    hn_kb_end(b);
    hn_kb_end(b);
    finish(b, &f);
    for (int k = 0; k < 96; k++)
        want += in[k] = (float)(k % 13);
    CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { in, sizeof(in) }, { out, sizeof(out) } }, NULL, 0, 1, 0, &dg),
             &dg);
    CHECK(out[0] == want);
}

TEST(gpu_divergence_is_found)
{
    hn_kb *b = hn_kb_new(t->arena, "diverge");
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv tx = hn_kb_threads(b, 0, 8);
    hn_kb_if(b, hn_kb_lt(b, tx, hn_kb_i(b, 4)));
    hn_kb_barrier(b);
    hn_kb_end(b);
    hn_kb_end(b);
    finish(b, &f);
    CHECK_ERR(hn_kfunc_run(&f, NULL, NULL, 0, 1, 0, &dg), HONE_E_INTERNAL, &dg, "part ways");
}

TEST(gpu_rules_are_kept)
{
    hn_diag dg = { 0 };
    hn_kfunc f;
    hn_kb *b = hn_kb_new(t->arena, "outside");

    hn_kb_barrier(b);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "outside a thread loop");

    b = hn_kb_new(t->arena, "carried");
    const hn_kvar v = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv i = hn_kb_parallel(b, hn_kext_const(4));
    hn_kb_set(b, v, i);
    hn_kb_end(b);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "across a parallel");

    b = hn_kb_new(t->arena, "order");
    hn_kb_threads(b, 0, 4);
    hn_kb_grid(b, 0, hn_kext_const(2));
    hn_kb_end(b);
    hn_kb_end(b);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "inside another kind");

    b = hn_kb_new(t->arena, "after");
    const int y = hn_kb_out(b, "y", HN_I64);
    const hn_kv ty = hn_kb_threads(b, 1, 4);
    hn_kb_threads(b, 0, 4);
    hn_kb_end(b);
    hn_kb_store(b, y, ty, ty);
    hn_kb_end(b);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "after an inner thread loop");
}

/* One warp: a [16][32 bytes] and b [8][32 bytes] come through shared memory as matrices, c = a * b + 1. */
static hn_kfunc tile_kernel(hn_test *t, hn_dtype type, hn_dtype acc, bool turned)
{
    hn_kb *b = hn_kb_new(t->arena, "tile");
    const int x = hn_kb_in(b, "x", HN_U8), y = hn_kb_in(b, "y", HN_U8), z = hn_kb_out(b, "z", acc);
    const int s = hn_kb_shared(b, "s", HN_F32, (16 + 16) * 8);
    hn_kfunc f;

    const hn_kv tx = hn_kb_threads(b, 0, 32), four = hn_kb_i(b, 4), eight = hn_kb_i(b, 8);
    hn_kb_copy(b, s, hn_kb_muli(b, tx, 4), x, hn_kb_muli(b, tx, 16), 16, HN_KV_NONE);
    const hn_kv few = hn_kb_lt(b, tx, hn_kb_i(b, 16));
    hn_kb_copy(b, s, hn_kb_addi(b, hn_kb_muli(b, tx, 4), 128), y, hn_kb_muli(b, tx, 16), 16, few);
    hn_kb_commit(b);
    hn_kb_await(b, 0);
    hn_kb_barrier(b);
    const hn_kv row = hn_kb_imod(b, tx, hn_kb_i(b, 16)), half = hn_kb_idiv(b, tx, hn_kb_i(b, 16));
    const hn_kv xs = hn_kb_ldmatrix(b, s, hn_kb_add(b, hn_kb_muli(b, row, 8), hn_kb_mul(b, half, four)), 4, false);
    const hn_kv part = hn_kb_imod(b, hn_kb_idiv(b, tx, eight), hn_kb_i(b, 2));
    /* b as columns of 32 bytes, or as 16 rows of 16 bytes */
    const hn_kv at = turned ? hn_kb_muli(b, hn_kb_imod(b, tx, hn_kb_i(b, 16)), 4)
                            : hn_kb_add(b, hn_kb_muli(b, hn_kb_imod(b, tx, eight), 8), hn_kb_mul(b, part, four));
    const hn_kv ys = hn_kb_ldmatrix(b, s, hn_kb_addi(b, at, 128), 2, turned);
    const hn_kv one = acc == HN_I32 ? hn_kb_int(b, HN_I32, 4, 1) : hn_kb_float(b, HN_F32, 4, 1);
    const hn_kv c = hn_kb_mma(b, type, xs, ys, one);
    const hn_kv first = hn_kb_add(b, hn_kb_muli(b, hn_kb_idiv(b, tx, four), 8), hn_kb_muli(b, hn_kb_imod(b, tx, four), 2));
    hn_kb_store(b, z, first, hn_kb_slice(b, c, 0, 2));
    hn_kb_store(b, z, hn_kb_addi(b, first, 64), hn_kb_slice(b, c, 2, 2));
    hn_kb_end(b);
    finish(b, &f);
    return f;
}

static double part_of(hn_dtype type, const uint8_t *p, int k)
{
    double v;
    int64_t i;

    if (hn_dtype_is_float(type)) {
        hn_widen_f64(type, p, k, 1, &v);
        return v;
    }
    hn_widen_i64(type, p, k, 1, &i);
    return (double)i;
}

static void check_tile(hn_test *t, hn_dtype type, hn_dtype acc, bool turned)
{
    const hn_dtype other = type == HN_U8 ? HN_I8 : type;
    const int n = 256 / hn_dtype_bits(type);
    uint8_t x[16 * 32], y[8 * 32], z[16 * 8 * 4];
    const hn_kfunc f = tile_kernel(t, type, acc, turned);
    const hn_kmem mem[] = { { x, sizeof(x) }, { y, sizeof(y) }, { z, sizeof(z) } };
    hn_diag dg = { 0 };

    for (int i = 0; i < 16 * n; i++) { /* small whole numbers: every sum is exact */
        const double v = i * 7 % 11 - 5, w = i * 5 % 13 - 6;
        const int64_t vi = (int64_t)v, wi = (int64_t)w;
        if (hn_dtype_is_float(type)) hn_narrow_f64(type, &v, 1, x, i, true);
        else hn_narrow_i64(type, &vi, 1, x, i);
        if (i >= 8 * n) continue;
        if (hn_dtype_is_float(type)) hn_narrow_f64(type, &w, 1, y, i, true);
        else hn_narrow_i64(type, &wi, 1, y, i);
    }
    CHECK_OK(hn_kfunc_run(&f, mem, NULL, 0, 1, 0, &dg), &dg);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            double want = 1;
            for (int k = 0; k < n; k++)
                want += part_of(type, x, i * n + k) * part_of(other, y, turned ? k * 8 + j : j * n + k);
            CHECK(part_of(acc, z, i * 8 + j) == want);
        }
}

TEST(gpu_warps_multiply_tiles)
{
    check_tile(t, HN_F16, HN_F32, false);
    check_tile(t, HN_F16, HN_F32, true);
    check_tile(t, HN_BF16, HN_F32, false);
    check_tile(t, HN_BF16, HN_F32, true);
    check_tile(t, HN_F32, HN_F32, false);
    check_tile(t, HN_I8, HN_I32, false);
    check_tile(t, HN_U8, HN_I32, false);
}

TEST(gpu_near_functions)
{
    static const float x[] = { 0, -3, 0.5F, 10, -INFINITY, INFINITY };
    float y[2][6];
    hn_kb *b = hn_kb_new(t->arena, "near");
    const int in = hn_kb_in(b, "x", HN_F32), e = hn_kb_out(b, "e", HN_F32), r = hn_kb_out(b, "r", HN_F32);
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv tx = hn_kb_threads(b, 0, 6), v = hn_kb_load(b, in, tx, 1);
    hn_kb_store(b, e, tx, hn_kb_exp2a(b, v));
    hn_kb_store(b, r, tx, hn_kb_rcpa(b, v));
    hn_kb_end(b);
    finish(b, &f);
    const hn_kmem mem[] = { { (void *)(uintptr_t)x, sizeof(x) }, { y[0], sizeof(y[0]) }, { y[1], sizeof(y[1]) } };
    CHECK_OK(hn_kfunc_run(&f, mem, NULL, 0, 1, 0, &dg), &dg);
    for (int i = 0; i < 6; i++)
        CHECK(y[0][i] == exp2f(x[i]) && y[1][i] == 1 / x[i]);
    b = hn_kb_new(t->arena, "double");
    hn_kb_exp2a(b, hn_kb_float(b, HN_F64, 1, 2));
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "takes and yields f32");
}

/* What is on its way is not there yet, and what it will overwrite is gone already. */
TEST(gpu_copies_must_be_awaited)
{
    uint8_t x[64] = { 0 }, y[64];
    const hn_kmem mem[] = { { x, sizeof(x) }, { y, sizeof(y) } };

    for (int wrong = 0; wrong < 4; wrong++) {
        hn_kb *b = hn_kb_new(t->arena, "copies");
        const int in = hn_kb_in(b, "x", HN_F32), out = hn_kb_out(b, "y", HN_F32), s = hn_kb_shared(b, "s", HN_F32, 16);
        const hn_kv tx = hn_kb_threads(b, 0, 4), at = hn_kb_muli(b, tx, 4);
        hn_diag dg = { 0 };
        hn_kfunc f;
        hn_kb_copy(b, s, at, in, wrong == 3 ? tx : at, 16, HN_KV_NONE);
        if (wrong != 1) hn_kb_commit(b);
        hn_kb_await(b, wrong == 2 ? 1 : 0);
        hn_kb_store(b, out, at, hn_kb_load_aligned(b, s, at, 4));
        hn_kb_end(b);
        finish(b, &f);
        if (!wrong) CHECK_OK(hn_kfunc_run(&f, mem, NULL, 0, 1, 0, &dg), &dg);
        else CHECK_ERR(hn_kfunc_run(&f, mem, NULL, 0, 1, 0, &dg), HONE_E_INTERNAL, &dg, wrong == 3 ? "not aligned" : "never written");
    }
}
