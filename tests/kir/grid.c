/* Programs for the CPU in their gpu form: the interpreter must get the same bytes from both. */
#include <string.h>

#include "harness.h"
#include "kir/kir.h"

typedef struct made {
    hn_kfunc cpu;
    hn_kgrid gpu;
} made;

static made finish(hn_test *t, hn_kb *b, int64_t max_threads)
{
    made m;
    hn_diag dg = { 0 };

    CHECK_OK(hn_kb_finish(b, &m.cpu, &dg), &dg);
    CHECK_OK(hn_kfunc_to_grid(t->arena, &m.cpu, max_threads, &m.gpu, &dg), &dg);
    return m;
}

/* Run both forms on the same input; the gpu's scratch is made here. */
static void same(hn_test *t, const made *m, const int32_t *x, int n_x, int n_y, const int64_t *arg)
{
    int32_t *cpu = HN_NEW_N(t->arena, int32_t, n_y + 1), *gpu = HN_NEW_N(t->arena, int32_t, n_y + 1);
    hn_kmem mem[2 + HN_KGRID_MAX_SCRATCH] = { { (void *)(uintptr_t)x, n_x * 4 }, { cpu, n_y * 4 } };
    hn_diag dg = { 0 };

    memset(cpu, 0x55, (size_t)n_y * 4);
    memset(gpu, 0xaa, (size_t)n_y * 4);
    CHECK_OK(hn_kfunc_run(&m->cpu, mem, arg, 0, hn_kfunc_parallel(&m->cpu, arg), 0, &dg), &dg);
    mem[1].at = gpu;
    for (int i = 0; i < m->gpu.n_scratch; i++) {
        const hn_kgrid_scratch *s = &m->gpu.scratch[i];
        const int64_t bytes = s->copies * hn_kext_eval(&s->elems, arg) * (hn_dtype_bits(s->dtype) / 8);
        mem[2 + i] = (hn_kmem){ hn_arena_alloc(t->arena, 1, (size_t)bytes + 1), bytes };
    }
    CHECK_OK(hn_kfunc_run(&m->gpu.func, mem, arg, 0, 1, 0, &dg), &dg);
    CHECK(memcmp(cpu, gpu, (size_t)n_y * 4) == 0);
}

static void fill(int32_t *x, int n)
{
    for (int i = 0; i < n; i++)
        x[i] = i * 2654435761u % 1000;
}

typedef struct row {
    int x, y;
    hn_kv base;
} row;

static void twice(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const row *r = user;
    const hn_kv at = hn_kb_add(b, r->base, i), v = hn_kb_loadm(b, r->x, at, lanes, mask);
    hn_kb_storem(b, r->y, at, hn_kb_add(b, v, v), mask);
}

/* y[p*m + i] = 2 x[p*m + i] */
static hn_kb *rows_kernel(hn_test *t, bool known, int64_t m_max, int lanes)
{
    hn_kb *b = hn_kb_new(t->arena, "rows");
    row r = { hn_kb_in(b, "x", HN_I32), hn_kb_out(b, "y", HN_I32), HN_KV_NONE };
    const hn_kv n = hn_kb_arg(b, "n", 0, 1000, 1), m = hn_kb_arg(b, "m", known ? m_max : 0, m_max, 1);
    const hn_kv p = hn_kb_parallel(b, hn_kb_ext(b, n, 1));
    r.base = hn_kb_mul(b, p, m);
    hn_kb_vector_loop(b, hn_kb_i(b, 0), m, lanes, HN_KTAIL_MASK, twice, &r);
    hn_kb_end(b);
    return b;
}

TEST(grid_rows_of_any_length)
{
    static const int64_t lens[] = { 1, 3, 4, 7, 31, 33, 64, 197, 300, 2500 };
    static int32_t x[3 * 2500];

    fill(x, HN_COUNT(x));
    for (int i = 0; i < HN_COUNT(lens); i++)
        for (int k = 0; k < 4; k++) {
            const made m = finish(t, rows_kernel(t, k & 1, lens[i], k & 2 ? 4 : 1), 1000);
            const int64_t arg[] = { 3, lens[i] };
            hn_test_note("length %d, %s, lanes %d", (int)lens[i], k & 1 ? "known" : "an argument", k & 2 ? 4 : 1);
            same(t, &m, x, HN_COUNT(x), 3 * (int)lens[i], arg);
        }
}

TEST(grid_shape_follows_the_loops)
{
    const int64_t arg[] = { 10, 0 };
    made m = finish(t, rows_kernel(t, true, 7, 1), 1000);
    CHECK_EQ(m.gpu.func.threads[0], 8);
    CHECK_EQ(m.gpu.func.threads[1], 32);
    CHECK_EQ(hn_kfunc_blocks(&m.gpu.func, arg), 1);
    m = finish(t, rows_kernel(t, true, 4096, 1), 1000);
    CHECK_EQ(m.gpu.func.threads[0], 256);
    CHECK_EQ(m.gpu.func.threads[1], 1);
    CHECK_EQ(hn_kfunc_blocks(&m.gpu.func, arg), 10 * 4);
}

/* A total in front of the loop that uses it, stored once: y[p] = sum, then y[n + p*m + i] = x - sum. */
TEST(grid_stores_outside_each_happen_once)
{
    enum { N = 5, M = 40 };
    static int32_t x[N * M];
    hn_kb *b = hn_kb_new(t->arena, "total");
    const int xb = hn_kb_in(b, "x", HN_I32), yb = hn_kb_out(b, "y", HN_I32);
    const hn_kv p = hn_kb_parallel(b, hn_kext_const(N)), base = hn_kb_muli(b, p, M);
    const hn_kvar sum = hn_kb_var(b, hn_kb_int(b, HN_I32, 1, 0));
    hn_kv i = hn_kb_fori(b, M);
    hn_kb_set(b, sum, hn_kb_add(b, hn_kb_get(b, sum), hn_kb_load(b, xb, hn_kb_add(b, base, i), 1)));
    hn_kb_end(b);
    const hn_kv total = hn_kb_get(b, sum);
    hn_kb_store(b, yb, p, total);
    i = hn_kb_each(b, hn_kb_i(b, 0), hn_kb_i(b, M), 1);
    const hn_kv at = hn_kb_add(b, base, i);
    hn_kb_store(b, yb, hn_kb_addi(b, at, N), hn_kb_sub(b, hn_kb_load(b, xb, at, 1), total));
    hn_kb_end(b);
    hn_kb_end(b);
    const made m = finish(t, b, 100);
    CHECK(m.gpu.func.threads[0] > 1);
    fill(x, N * M);
    same(t, &m, x, N * M, N + N * M, NULL);
}

/* Reverse each row through scratch: more rows than copies. */
TEST(grid_scratch_has_a_copy_a_thread)
{
    enum { N = 300, M = 9 };
    static int32_t x[N * M];
    const int64_t n = N;
    hn_kb *b = hn_kb_new(t->arena, "reverse");
    const int s = hn_kb_scratch(b, "line", HN_I32, hn_kext_const(M)), xb = hn_kb_in(b, "x", HN_I32),
              yb = hn_kb_out(b, "y", HN_I32);
    const hn_kv p = hn_kb_parallel(b, hn_kb_ext(b, hn_kb_arg(b, "n", 0, 1000, 1), 1)), base = hn_kb_muli(b, p, M);
    hn_kv i = hn_kb_each(b, hn_kb_i(b, 0), hn_kb_i(b, M), 1);
    hn_kb_store(b, s, i, hn_kb_load(b, xb, hn_kb_add(b, base, i), 1));
    hn_kb_end(b);
    i = hn_kb_fori(b, M);
    hn_kb_store(b, yb, hn_kb_add(b, base, i), hn_kb_load(b, s, hn_kb_sub(b, hn_kb_i(b, M - 1), i), 1));
    hn_kb_end(b);
    hn_kb_end(b);
    const made m = finish(t, b, 128);
    CHECK_EQ(m.gpu.n_scratch, 1);
    CHECK_EQ(m.gpu.scratch[0].copies, 128);
    fill(x, N * M);
    same(t, &m, x, N * M, N * M, &n);
}

/* y[i] += y[i - 1]: a trip that reads what it wrote stays on one thread. */
TEST(grid_keeps_order_where_a_trip_reads_its_results)
{
    static int32_t x[64];
    hn_kb *b = hn_kb_new(t->arena, "chain");
    const int xb = hn_kb_in(b, "x", HN_I32), yb = hn_kb_out(b, "y", HN_I32);
    hn_kv i = hn_kb_each(b, hn_kb_i(b, 0), hn_kb_i(b, 64), 1);
    hn_kb_store(b, yb, i, hn_kb_load(b, xb, i, 1));
    hn_kb_end(b);
    i = hn_kb_for(b, hn_kb_i(b, 1), hn_kb_i(b, 64), 1);
    hn_kb_store(b, yb, i, hn_kb_add(b, hn_kb_load(b, yb, i, 1), hn_kb_load(b, yb, hn_kb_addi(b, i, -1), 1)));
    hn_kb_end(b);
    const made m = finish(t, b, 100);
    CHECK_EQ(m.gpu.func.threads[0], 1);
    fill(x, 64);
    same(t, &m, x, 64, 64, NULL);
}

TEST(grid_refuses_gpu_programs)
{
    hn_kb *b = hn_kb_new(t->arena, "gpu");
    const int y = hn_kb_out(b, "y", HN_I32);
    hn_kgrid g;
    hn_kfunc f;
    hn_diag dg = { 0 };

    const hn_kv i = hn_kb_threads(b, 0, 32);
    hn_kb_store(b, y, i, hn_kb_int(b, HN_I32, 1, 7));
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    CHECK_ERR(hn_kfunc_to_grid(t->arena, &f, 1, &g, &dg), HONE_E_UNSUPPORTED, &dg, "already");
}

TEST(grid_each_hands_nothing_on)
{
    hn_kb *b = hn_kb_new(t->arena, "carry");
    const int y = hn_kb_out(b, "y", HN_I32);
    hn_kfunc f;
    hn_diag dg = { 0 };
    const hn_kvar v = hn_kb_var(b, hn_kb_int(b, HN_I32, 1, 0));

    hn_kb_each(b, hn_kb_i(b, 0), hn_kb_i(b, 9), 1);
    hn_kb_set(b, v, hn_kb_int(b, HN_I32, 1, 1));
    hn_kb_end(b);
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_get(b, v));
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "across a parallel, each");
}
