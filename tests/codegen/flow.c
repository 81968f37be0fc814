/* Control flow, memory and the calling convention in compiled code. */
#include <stdlib.h>
#include <string.h>

#include "jit.h"
#include "kir/kir.h"

static void finish(hn_kb *b, hn_kfunc *f)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_kb_finish(b, f, &dg), &dg);
}

static void axpy(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const int *buf = user;
    const hn_kv x = hn_kb_loadm(b, buf[0], i, lanes, mask), y = hn_kb_loadm(b, buf[1], i, lanes, mask);
    hn_kb_storem(b, buf[1], i, hn_kb_fma(b, x, hn_kb_f(b, 3), y), mask);
}

TEST(vector_loops_with_tails)
{
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    enum { MOST = 200 };

    for (int tail = 0; tail < 2; tail++) {
        for (int lanes = 4; lanes <= 32; lanes *= 2) {
            hn_kb *b = hn_kb_new(t->arena, "axpy");
            int buf[] = { hn_kb_in(b, "x", HN_F32), hn_kb_out(b, "y", HN_F32) };
            const hn_kv n = hn_kb_arg(b, "n", 0, MOST, 1);
            hn_kfunc f;
            const hn_kv blk = hn_kb_parallel(b, hn_kb_ext(b, n, 64)), lo = hn_kb_muli(b, blk, 64);
            hn_kb_vector_loop(b, lo, hn_kb_min(b, hn_kb_addi(b, lo, 64), n), lanes, (hn_ktail)tail, axpy,
                              buf);
            hn_kb_end(b);
            finish(b, &f);
            for (int k = 0; k < n_target; k++) {
                jit j = jit_make(t, &f, &target[k]);
                for (int64_t count = 0; count < MOST; count++) {
                    float x[MOST], y[MOST];
                    for (int i = 0; i < MOST; i++) {
                        x[i] = (float)i;
                        y[i] = 1;
                    }
                    jit_run(&j, &f, (void *[]){ x, y }, &count);
                    for (int i = 0; i < MOST; i++)
                        CHECK(y[i] == (i < count ? 3 * (float)i + 1 : 1));
                }
                jit_done(&j);
            }
        }
    }
}

/* Sort by insertion with loop, break and mutable variables, through scratch whose size depends on an
 * argument. */
TEST(sorts_through_scratch)
{
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "sort");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
    const hn_kv n = hn_kb_arg(b, "n", 0, 64, 1);
    const int pad = hn_kb_scratch(b, "pad", HN_I8, hn_kb_ext(b, n, 1)),
              s = hn_kb_scratch(b, "s", HN_F32, hn_kb_ext(b, n, 1));
    hn_kfunc f;

    hn_kb_store(b, pad, hn_kb_i(b, 0), hn_kb_int(b, HN_I8, 1, 0));
    const hn_kv i = hn_kb_forn(b, n);
    const hn_kv v = hn_kb_load(b, x, i, 1);
    const hn_kvar j = hn_kb_var(b, i);
    hn_kb_loop(b);
    hn_kb_break_if(b, hn_kb_le(b, hn_kb_get(b, j), hn_kb_i(b, 0)));
    const hn_kv before = hn_kb_addi(b, hn_kb_get(b, j), -1), prev = hn_kb_load(b, s, before, 1);
    hn_kb_if(b, hn_kb_le(b, prev, v));
    hn_kb_break_if(b, hn_kb_le(b, prev, v));
    hn_kb_else(b);
    hn_kb_store(b, s, hn_kb_get(b, j), prev);
    hn_kb_end(b);
    hn_kb_set(b, j, before);
    hn_kb_end(b);
    hn_kb_store(b, s, hn_kb_get(b, j), v);
    hn_kb_end(b);
    const hn_kv k = hn_kb_forn(b, n);
    hn_kb_store(b, y, k, hn_kb_load(b, s, k, 1));
    hn_kb_end(b);
    finish(b, &f);
    for (int g = 0; g < n_target; g++) {
        jit jt = jit_make(t, &f, &target[g]);
        float in[37], out[37];
        const int64_t count = 37;
        CHECK_EQ(hn_kfunc_scratch_bytes(&f, &count), 64 + 192);
        for (int m = 0; m < 37; m++)
            in[m] = (float)(m * 7919 % 37);
        jit_run(&jt, &f, (void *[]){ in, out }, &count);
        for (int m = 0; m < 37; m++)
            CHECK(out[m] == (float)m);
        jit_done(&jt);
    }
}

/* Gather, scatter, strides, tables, unrolled loops. */
TEST(indexed_access)
{
    static const int32_t perm[8] = { 3, 1, 4, 0, 5, 7, 2, 6 };
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "indexed");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32), z = hn_kb_out(b, "z", HN_F32);
    const int p = hn_kb_table(b, "perm", HN_I32, perm, 8);
    float in[64], gathered[16], scattered[16];
    hn_kfunc f;

    const hn_kv i = hn_kb_for_kind(b, HN_KFOR_UNROLL, hn_kb_i(b, 0), hn_kb_i(b, 2), hn_kb_i(b, 1));
    const hn_kv at = hn_kb_muli(b, i, 8), idx = hn_kb_load(b, p, hn_kb_i(b, 0), 8);
    const hn_kv strided = hn_kb_load_strided(b, x, at, hn_kb_i(b, 3), 8, HN_KV_NONE);
    hn_kb_store(b, y, at, hn_kb_add(b, strided, hn_kb_gather(b, x, idx, HN_KV_NONE)));
    hn_kb_scatter(b, z, hn_kb_add(b, hn_kb_cast(b, idx, HN_I64), at), strided, HN_KV_NONE);
    hn_kb_end(b);
    finish(b, &f);
    for (int k = 0; k < 64; k++)
        in[k] = (float)k;
    for (int g = 0; g < n_target; g++) {
        jit j = jit_make(t, &f, &target[g]);
        memset(gathered, 0, sizeof(gathered));
        jit_run(&j, &f, (void *[]){ in, gathered, scattered }, NULL);
        for (int k = 0; k < 16; k++) {
            CHECK(gathered[k] == (float)(k / 8 * 8 + 3 * (k % 8) + perm[k % 8]));
            CHECK(scattered[k / 8 * 8 + perm[k % 8]] == (float)(k / 8 * 8 + 3 * (k % 8)));
        }
        jit_done(&j);
    }
}

/* Raw access: bytes as dwords, u16 of an f16 buffer, 4-byte lanes at odd addresses; at even ones without a look at them. */
TEST(raw_access)
{
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "raw");
    const int x = hn_kb_in(b, "x", HN_I8), h = hn_kb_in(b, "h", HN_F16), y = hn_kb_out(b, "y", HN_I32),
              z = hn_kb_out(b, "z", HN_I8);
    int8_t in[64], bytes[16];
    uint16_t half[8] = { 1, 2, 3, 4, 5, 6, 7, 0x3c00 };
    int32_t want[4], got[4];
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv v = hn_kb_load_as(b, x, hn_kb_i(b, 3), HN_I32, 4, HN_KV_NONE);
    const hn_kv u = hn_kb_cast(b, hn_kb_load_as_aligned(b, h, hn_kb_i(b, 4), HN_U16, 4), HN_I32);
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_add(b, v, u));
    hn_kb_store_as(b, z, hn_kb_i(b, 0), v, HN_KV_NONE);
    finish(b, &f);
    for (int i = 0; i < 64; i++)
        in[i] = (int8_t)(i * 37);
    CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { in, 19 }, { half, 16 }, { want, 16 }, { bytes, 16 } }, NULL, 0,
                          1, 0, &dg),
             &dg);
    CHECK(memcmp(bytes, in + 3, 16) == 0);
    for (int g = 0; g < n_target; g++) {
        jit j = jit_make(t, &f, &target[g]);
        memset(bytes, 0, sizeof(bytes));
        jit_run(&j, &f, (void *[]){ in, half, got, bytes }, NULL);
        CHECK(memcmp(got, want, sizeof(got)) == 0 && memcmp(bytes, in + 3, 16) == 0);
        jit_done(&j);
    }
}

/* Masked lanes touch nothing: the masked part lies on a page that traps. */
TEST(masked_lanes_touch_nothing)
{
    static const hn_dtype types[] = { HN_F32, HN_I64, HN_I8, HN_U16, HN_F16 };
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    uint8_t *page = hn_arena_alloc(t->arena, 1, 64);

    for (int k = 0; k < HN_COUNT(types); k++) {
        hn_kb *b = hn_kb_new(t->arena, "masked");
        const int x = hn_kb_in(b, "x", types[k]), y = hn_kb_out(b, "y", types[k]);
        const hn_kv n = hn_kb_arg(b, "n", 0, 8, 1);
        hn_kfunc f;
        const hn_kv m = hn_kb_tail_mask(b, hn_kb_i(b, 0), n, 8);
        hn_kb_storem(b, y, hn_kb_i(b, 0), hn_kb_loadm(b, x, hn_kb_i(b, 0), 8, m), m);
        finish(b, &f);
        for (int g = 0; g < n_target; g++) {
            jit j = jit_make(t, &f, &target[g]);
            const int64_t none = 0;
            jit_run(&j, &f, (void *[]){ NULL, NULL }, &none); /* nothing at all may be read or written */
            for (int64_t c = 1; c <= 8; c++) {
                uint8_t in[64], out[64];
                const size_t bytes = (size_t)c * (size_t)hn_dtype_bits(types[k]) / 8;
                memset(in, 0x31, sizeof(in));
                memset(out, 0xee, sizeof(out));
                jit_run(&j, &f, (void *[]){ in, out }, &c);
                CHECK(memcmp(in, out, bytes) == 0);
                for (size_t i = bytes; i < sizeof(out); i++)
                    CHECK(out[i] == 0xee);
            }
            jit_done(&j);
        }
    }
    (void)page;
}

TEST(code_is_deterministic_and_flat)
{
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "flat");
    int buf[] = { hn_kb_in(b, "x", HN_F32), hn_kb_out(b, "y", HN_F32) };
    const hn_kv n = hn_kb_arg(b, "n", 0, 1 << 20, 8);
    hn_diag dg = { 0 };
    hn_str text = { 0 };
    hn_kfunc f;

    hn_kb_vector_loop(b, hn_kb_i(b, 0), n, 8, HN_KTAIL_MASK, axpy, buf);
    finish(b, &f);
    for (int g = 0; g < n_target; g++) {
        hn_code one, two;
        CHECK_OK(hn_codegen_llvm.compile(&f, &target[g], t->arena, &one, &dg), &dg);
        CHECK_OK(hn_codegen_llvm.compile(&f, &target[g], t->arena, &two, &dg), &dg);
        CHECK(one.n == two.n && one.entry == two.entry && memcmp(one.at, two.at, one.n) == 0);
        CHECK_EQ(one.n_stack_ref, 0);
        hn_str_clear(&text);
        CHECK_OK(hn_codegen_llvm.dump(&f, &target[g], false, &text, &dg), &dg);
        CHECK(strstr(hn_str_get(&text), "ret"));
    }
    hn_str_done(&text);
}

TEST(foreign_targets_are_refused)
{
    hn_target target[8];
    hn_kb *b = hn_kb_new(t->arena, "none");
    hn_diag dg = { 0 };
    hn_code code;
    hn_kfunc f;

    jit_targets(target, 8);
    finish(b, &f);
    target[0].feat = 0;
    CHECK_ERR(hn_codegen_llvm.compile(&f, &target[0], t->arena, &code, &dg), HONE_E_TARGET, &dg, "sse4.2");
    target[0].arch = HN_ARCH_AARCH64;
    CHECK_ERR(hn_codegen_llvm.compile(&f, &target[0], t->arena, &code, &dg), HONE_E_UNSUPPORTED, &dg,
              "x86-64");
}
