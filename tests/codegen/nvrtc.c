/* NVRTC, where there is one: code for the GPUs we name, what the assembler says of it, errors. No GPU needed. */
#include <string.h>

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_text.h"
#include "core/image.h"
#include "harness.h"

static hn_target target(const char *name)
{
    hn_target t;
    hn_diag dg = { 0 };

    CHECK_OK(hn_target_get(name, &t, &dg), &dg);
    return t;
}

static void need_nvrtc(void)
{
    if (!hn_codegen_cuda.version()[0]) SKIP("no NVRTC");
}

/* Sum of each row by one warp through shared memory, scaled by a table. */
static hn_kfunc sums(hn_test *t, int64_t shared_elems)
{
    static const float factor[] = { 2, 3 };
    hn_kb *b = hn_kb_new(t->arena, "sums");
    const int x = hn_kb_in(b, "x", HN_F16), y = hn_kb_out(b, "y", HN_F32),
              part = hn_kb_shared(b, "part", HN_F32, shared_elems), table = hn_kb_table(b, "factor", HN_F32, factor, 2);
    const hn_kv n = hn_kb_arg(b, "n", 1, 1 << 20, 1);
    hn_kfunc f;
    hn_diag dg = { 0 };

    const hn_kv row = hn_kb_grid(b, 0, hn_kb_ext(b, n, 1)), tx = hn_kb_threads(b, 0, 64);
    hn_kv v = hn_kb_load(b, x, hn_kb_add(b, hn_kb_muli(b, row, 64), tx), 1);
    for (int mask = 16; mask; mask /= 2)
        v = hn_kb_add(b, v, hn_kb_shfl_xor(b, v, mask));
    hn_kb_if(b, hn_kb_eq(b, hn_kb_imod(b, tx, hn_kb_i(b, 32)), hn_kb_i(b, 0)));
    hn_kb_store(b, part, hn_kb_idiv(b, tx, hn_kb_i(b, 32)), v);
    hn_kb_end(b);
    hn_kb_barrier(b);
    hn_kb_if(b, hn_kb_eq(b, tx, hn_kb_i(b, 0)));
    const hn_kv sum = hn_kb_add(b, hn_kb_load(b, part, hn_kb_i(b, 0), 1), hn_kb_load(b, part, hn_kb_i(b, 1), 1));
    hn_kb_store(b, y, row, hn_kb_mul(b, sum, hn_kb_load(b, table, hn_kb_imod(b, row, hn_kb_i(b, 2)), 1)));
    for (int i = 0; i < 3; i++)
        hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    return f;
}

TEST(nvrtc_makes_code_for_each_named_gpu)
{
    static const char *const name[] = { "sm_80", "sm_90a" };
    need_nvrtc();
    for (int i = 0; i < 2; i++) {
        const hn_target g = target(name[i]);
        const hn_kfunc f = sums(t, 2);
        hn_code code;
        hn_image h;
        hn_diag dg = { 0 };
        CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &code, &dg), &dg);
        memcpy(&h, code.at, sizeof(h));
        CHECK_EQ(h.magic, HN_IMAGE_MAGIC);
        CHECK_EQ(h.bytes + sizeof(h), code.n);
        CHECK(memcmp(code.at + sizeof(h), "\177ELF", 4) == 0);
        CHECK_EQ(h.threads[0], 64);
        CHECK_EQ(h.threads[1], 1);
        CHECK_EQ(h.n_buf, 2);
        CHECK_EQ(h.n_arg, 1);
        CHECK_EQ(h.shared_bytes, 0);
        CHECK(h.n_reg > 0 && h.n_reg < 64);
        CHECK_EQ(h.spill_bytes, 0);
    }
}

TEST(nvrtc_same_program_same_bytes)
{
    const hn_target g = target("sm_90a");
    const hn_kfunc f = sums(t, 2);
    hn_code one, two;
    hn_diag dg = { 0 };

    need_nvrtc();
    CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &one, &dg), &dg);
    CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &two, &dg), &dg);
    CHECK_EQ(one.n, two.n);
    CHECK(memcmp(one.at, two.at, one.n) == 0);
}

/* Above 48 KiB a block has to ask. */
TEST(nvrtc_large_shared_memory_is_asked_for)
{
    const hn_target g = target("sm_90a");
    const hn_kfunc f = sums(t, 20000);
    hn_code code;
    hn_image h;
    hn_diag dg = { 0 };

    need_nvrtc();
    CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &code, &dg), &dg);
    memcpy(&h, code.at, sizeof(h));
    CHECK_EQ(h.shared_bytes, 80000);
}

/* 120 values live at once, 1,024 threads: the assembler must spill, and we must hear of it. */
TEST(nvrtc_reports_spills)
{
    enum { LIVE = 120 };
    const hn_target g = target("sm_90a");
    hn_kb *b = hn_kb_new(t->arena, "many");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
    hn_kvar v[LIVE];
    hn_kfunc f;
    hn_code code;
    hn_diag dg = { 0 };

    need_nvrtc();
    const hn_kv tx = hn_kb_threads(b, 0, 1024);
    for (int i = 0; i < LIVE; i++)
        v[i] = hn_kb_var(b, hn_kb_load(b, x, hn_kb_addi(b, tx, i * 1024), 1));
    hn_kb_forn(b, hn_kb_cast(b, hn_kb_load(b, x, tx, 1), HN_I64));
    for (int i = 0; i < LIVE; i++)
        hn_kb_set(b, v[i], hn_kb_fma(b, hn_kb_get(b, v[i]), hn_kb_get(b, v[(i + 7) % LIVE]), hn_kb_f(b, 1)));
    hn_kb_end(b);
    for (int i = 0; i < LIVE; i++)
        hn_kb_store(b, y, hn_kb_addi(b, tx, i * 1024), hn_kb_get(b, v[i]));
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &code, &dg), &dg);
    CHECK(code.n_stack_ref > 0);
    CHECK(code.frame_bytes > 0);
}

TEST(nvrtc_refuses_what_is_not_a_gpus)
{
    hn_kb *b = hn_kb_new(t->arena, "cpu");
    const int y = hn_kb_out(b, "y", HN_F32);
    hn_target g = target("sm_90a");
    hn_kfunc f;
    hn_code code;
    hn_diag dg = { 0 };

    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_f(b, 1));
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    CHECK_ERR(hn_codegen_cuda.compile(&f, &g, t->arena, &code, &dg), HONE_E_UNSUPPORTED, &dg, "for the CPU");
    const hn_target cpu = target("x86-64-v3");
    CHECK_ERR(hn_codegen_cuda.compile(&f, &cpu, t->arena, &code, &dg), HONE_E_UNSUPPORTED, &dg, "x86-64-v3");
    need_nvrtc();
    f = sums(t, 2);
    strcpy(g.name, "sm_1");
    CHECK_ERR(hn_codegen_cuda.compile(&f, &g, t->arena, &code, &dg), HONE_E_VERSION, &dg, "sm_1");
}

/* What passes through a worker, cached, is what comes out here. */
TEST(nvrtc_through_a_worker)
{
    const hn_target g = target("sm_80");
    const hn_kfunc f = sums(t, 2);
    hn_compile_pool *pool;
    hn_code here, there;
    hn_str text = { 0 };
    hn_diag dg = { 0 };

    need_nvrtc();
    CHECK_OK(hn_compile_pool_create(&(hn_compile_options){ .n_worker = 1 }, &pool, &dg), &dg);
    CHECK_OK(hn_compile(pool, &f, &g, t->arena, &there, &dg), &dg);
    CHECK_OK(hn_codegen_cuda.compile(&f, &g, t->arena, &here, &dg), &dg);
    CHECK_EQ(here.n, there.n);
    CHECK(memcmp(here.at, there.at, here.n) == 0);
    CHECK_OK(hn_compile_dump(pool, &f, &g, false, &text, &dg), &dg);
    CHECK(strstr(hn_str_get(&text), "__global__") != NULL);
    hn_str_done(&text);
    hn_compile_pool_destroy(pool);
}

/* A program says where it waits for the kernels before it; else it begins by waiting. */
TEST(cuda_text_waits_where_it_says)
{
    for (int early = 0; early < 2; early++) {
        hn_kb *b = hn_kb_new(t->arena, "early");
        const int w = hn_kb_in(b, "w", HN_F32), x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
        int64_t shared;
        hn_kfunc f;
        hn_diag dg = { 0 };
        hn_str text = { 0 };
        const hn_kv tx = hn_kb_threads(b, 0, 32), k = hn_kb_load(b, w, tx, 1);
        if (early) hn_kb_depend(b);
        hn_kb_store(b, y, tx, hn_kb_mul(b, k, hn_kb_load(b, x, tx, 1)));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        CHECK_OK(hn_cu_emit(&f, t->arena, &text, &shared, &dg), &dg);
        const char *first = strstr(hn_str_get(&text), "*(b0"), *wait = strstr(hn_str_get(&text), "hn_depend();"),
                   *other = strstr(hn_str_get(&text), "*(b1");
        CHECK(first && wait && other && wait < other && (early ? first < wait : wait < first));
        CHECK(!strstr(wait + 1, "hn_depend();"));
        hn_str_done(&text);
    }
}
