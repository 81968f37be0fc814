/* GPU programs in the interpreter: grids, threads, shared memory, barriers, warp shuffles. */
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
