/* Building, printing, verifying and interpreting programs. */
#include <math.h>
#include <string.h>

#include "harness.h"
#include "kir/kir.h"

static void finish(hn_kb *b, hn_kfunc *f)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_kb_finish(b, f, &dg), &dg);
}

static void scale_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    const int *buf = user;
    hn_kb_storem(b, buf[1], i, hn_kb_mul(b, hn_kb_loadm(b, buf[0], i, lanes, mask), hn_kb_f(b, 2)), mask);
}

/* y = 2x over n elements, split by blocks of 16 */
static hn_kfunc scale_kernel(hn_test *t, hn_ktail tail)
{
    hn_kb *b = hn_kb_new(t->arena, "scale");
    int buf[2] = { hn_kb_in(b, "x", HN_F32), hn_kb_out(b, "y", HN_F32) };
    const hn_kv n = hn_kb_arg(b, "n", 0, 1000, 1);
    const hn_kv blk = hn_kb_parallel(b, hn_kb_ext(b, n, 16));
    const hn_kv lo = hn_kb_muli(b, blk, 16);
    hn_kfunc f;

    hn_kb_vector_loop(b, lo, hn_kb_min(b, hn_kb_addi(b, lo, 16), n), 8, tail, scale_body, buf);
    hn_kb_end(b);
    finish(b, &f);
    return f;
}

TEST(scale_any_size_any_split)
{
    for (int tail = HN_KTAIL_MASK; tail <= HN_KTAIL_SCALAR; tail++) {
        const hn_kfunc f = scale_kernel(t, (hn_ktail)tail);
        for (int64_t n = 0; n < 50; n++) {
            float x[64], y[64];
            hn_diag dg = { 0 };
            for (int i = 0; i < 64; i++) {
                x[i] = (float)i;
                y[i] = -1;
            }
            const int64_t blocks = hn_kfunc_parallel(&f, &n), cut = blocks / 2;
            const hn_kmem mem[] = { { x, n * 4 }, { y, n * 4 } };
            CHECK_EQ(blocks, (n + 15) / 16);
            CHECK_OK(hn_kfunc_run(&f, mem, &n, cut, blocks, 0, &dg), &dg);
            CHECK_OK(hn_kfunc_run(&f, mem, &n, 0, cut, 0, &dg), &dg);
            for (int i = 0; i < 64; i++)
                CHECK(y[i] == (i < n ? 2.0f * (float)i : -1.0f));
        }
    }
}

TEST(prints_and_roundtrips)
{
    const hn_kfunc f = scale_kernel(t, HN_KTAIL_MASK);
    hn_str one = { 0 }, two = { 0 };
    hn_kfunc g;
    hn_diag dg = { 0 };

    const hn_bytes bytes = hn_kfunc_write(t->arena, &f);
    CHECK(bytes.n > 0);
    CHECK_OK(hn_kfunc_read(t->arena, bytes.at, bytes.n, &g, &dg), &dg);
    hn_kfunc_print(&f, &one);
    hn_kfunc_print(&g, &two);
    CHECK_STR(hn_str_get(&one), hn_str_get(&two));
    CHECK(strstr(hn_str_get(&one), "parallel ceil(n/16)"));
    CHECK(strstr(hn_str_get(&one), "store y["));
    CHECK(hn_digest_eq(hn_kfunc_digest(&f), hn_kfunc_digest(&g)));
    hn_str_done(&one);
    hn_str_done(&two);
}

/* Every truncation and every single damaged byte is refused or still verifies; none crashes. */
TEST(read_survives_damage)
{
    const hn_kfunc f = scale_kernel(t, HN_KTAIL_SCALAR);
    const hn_bytes bytes = hn_kfunc_write(t->arena, &f);
    uint8_t *copy = hn_arena_memdup(t->arena, bytes.at, bytes.n);
    int refused = 0;

    for (size_t n = 0; n < bytes.n; n += 7) {
        hn_diag dg = { 0 };
        hn_kfunc g;
        CHECK(hn_kfunc_read(t->arena, copy, n, &g, &dg) != HONE_OK);
    }
    for (size_t i = 0; i < bytes.n; i++) {
        for (int v = 1; v < 256; v *= 4) {
            hn_diag dg = { 0 };
            hn_kfunc g;
            hn_arena *a = hn_arena_create();
            copy[i] ^= (uint8_t)v;
            refused += hn_kfunc_read(a, copy, bytes.n, &g, &dg) != HONE_OK;
            copy[i] ^= (uint8_t)v;
            hn_arena_destroy(a);
        }
    }
    CHECK(refused > 100);
}

TEST(out_of_bounds_is_found)
{
    const hn_kfunc f = scale_kernel(t, HN_KTAIL_MASK);
    float x[32] = { 0 }, y[32];
    const int64_t n = 20;
    hn_diag dg = { 0 };

    CHECK_ERR(hn_kfunc_run(&f, (hn_kmem[]){ { x, 76 }, { y, 80 } }, &n, 0, 2, 0, &dg), HONE_E_INTERNAL, &dg,
              "read past the end of buffer \"x\"");
    CHECK_ERR(hn_kfunc_run(&f, (hn_kmem[]){ { x, 80 }, { y, 76 } }, &n, 0, 2, 0, &dg), HONE_E_INTERNAL, &dg,
              "write past the end of buffer \"y\"");
    const int64_t bad = 1001;
    CHECK_ERR(hn_kfunc_run(&f, (hn_kmem[]){ { x, 80 }, { y, 80 } }, &bad, 0, 1, 0, &dg), HONE_E_INVALID, &dg,
              "outside [0, 1000]");
}

TEST(tail_licence_is_honoured)
{
    hn_kb *b = hn_kb_new(t->arena, "tail");
    const int x = hn_kb_in(b, "x", HN_F32), y = hn_kb_out(b, "y", HN_F32);
    float in[8] = { 1, 2, 3, 4 }, out[8];
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_kb_tail(b, x, 16);
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_load(b, x, hn_kb_i(b, 0), 8));
    finish(b, &f);
    CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { in, 16 }, { out, 32 } }, NULL, 0, 1, 0, &dg), &dg);
    CHECK_ERR(hn_kfunc_run(&f, (hn_kmem[]){ { in, 12 }, { out, 32 } }, NULL, 0, 1, 0, &dg), HONE_E_INTERNAL,
              &dg, "read past");
}

TEST(unwritten_scratch_is_found)
{
    hn_kb *b = hn_kb_new(t->arena, "scratch");
    const int y = hn_kb_out(b, "y", HN_I32);
    const int s = hn_kb_scratch(b, "s", HN_I32, hn_kext_const(4));
    int32_t out[4];
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_kb_store(b, s, hn_kb_i(b, 0), hn_kb_int(b, HN_I32, 2, 7));
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_load(b, s, hn_kb_i(b, 0), 4));
    finish(b, &f);
    CHECK_EQ(hn_kfunc_scratch_bytes(&f, NULL), 64);
    CHECK_ERR(hn_kfunc_run(&f, (hn_kmem[]){ { out, 16 } }, NULL, 0, 1, 0, &dg), HONE_E_INTERNAL, &dg,
              "never written");
}

/* Insertion sort: loop, break, if, variables, scratch. */
TEST(sorts_with_while_and_break)
{
    hn_kb *b = hn_kb_new(t->arena, "sort");
    const int x = hn_kb_in(b, "x", HN_I32), y = hn_kb_out(b, "y", HN_I32);
    const hn_kv n = hn_kb_arg(b, "n", 0, 64, 1);
    int32_t in[33], out[33];
    const int64_t count = 33;
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv i = hn_kb_forn(b, n);
    const hn_kv v = hn_kb_load(b, x, i, 1);
    const hn_kvar j = hn_kb_var(b, i);
    hn_kb_loop(b);
    hn_kb_break_if(b, hn_kb_le(b, hn_kb_get(b, j), hn_kb_i(b, 0)));
    const hn_kv before = hn_kb_addi(b, hn_kb_get(b, j), -1);
    const hn_kv prev = hn_kb_load(b, y, before, 1);
    hn_kb_break_if(b, hn_kb_le(b, prev, v));
    hn_kb_store(b, y, hn_kb_get(b, j), prev);
    hn_kb_set(b, j, before);
    hn_kb_end(b);
    hn_kb_store(b, y, hn_kb_get(b, j), v);
    hn_kb_end(b);
    finish(b, &f);

    for (int k = 0; k < 33; k++)
        in[k] = k * 7919 % 33 - 10;
    CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { in, 132 }, { out, 132 } }, &count, 0, 1, 0, &dg), &dg);
    for (int k = 0; k < 33; k++)
        CHECK_EQ(out[k], k - 10);
}

TEST(endless_loop_hits_the_limit)
{
    hn_kb *b = hn_kb_new(t->arena, "endless");
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_kb_loop(b);
    hn_kb_end(b);
    finish(b, &f);
    CHECK_ERR(hn_kfunc_run(&f, NULL, NULL, 0, 1, 1000, &dg), HONE_E_LIMIT, &dg, "ran past 1000");
}

TEST(mistakes_are_kept_and_named)
{
    hn_diag dg = { 0 };
    hn_kfunc f;
    hn_kb *b = hn_kb_new(t->arena, "types");
    const int y = hn_kb_out(b, "y", HN_F32);

    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_add(b, hn_kb_f(b, 1), hn_kb_load(b, y, hn_kb_i(b, 0), 4)));
    hn_kb_store(b, y, hn_kb_i(b, 0), hn_kb_add(b, hn_kb_i(b, 1), hn_kb_f(b, 1)));
    hn_kb_end(b);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "differ in type");

    b = hn_kb_new(t->arena, "open");
    hn_kb_fori(b, 3);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "still open");

    b = hn_kb_new(t->arena, "scope");
    const int z = hn_kb_out(b, "z", HN_I64);
    const hn_kv i = hn_kb_fori(b, 3);
    hn_kb_end(b);
    hn_kb_store(b, z, hn_kb_i(b, 0), i);
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "out of scope");

    b = hn_kb_new(t->arena, "readonly");
    const int in = hn_kb_in(b, "x", HN_I64);
    hn_kb_store(b, in, hn_kb_i(b, 0), hn_kb_i(b, 1));
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "read-only");

    b = hn_kb_new(t->arena, "outside");
    const int o = hn_kb_out(b, "o", HN_I64);
    hn_kb_parallel(b, hn_kext_const(4));
    hn_kb_end(b);
    hn_kb_store(b, o, hn_kb_i(b, 0), hn_kb_i(b, 1));
    CHECK_ERR(hn_kb_finish(b, &f, &dg), HONE_E_INTERNAL, &dg, "outside the parallel loop");
}

TEST(index_arithmetic_folds)
{
    hn_kb *b = hn_kb_new(t->arena, "fold");
    const int y = hn_kb_out(b, "y", HN_F32);
    const hn_kv n = hn_kb_arg(b, "n", 4, 8, 1), fixed = hn_kb_arg(b, "m", 6, 6, 1);
    int64_t c;

    CHECK(hn_kb_is_const(b, fixed, &c) && c == 6);
    CHECK(hn_kb_is_const(b, hn_kb_add(b, hn_kb_muli(b, hn_kb_i(b, 5), 3), hn_kb_i(b, 1)), &c) && c == 16);
    CHECK_EQ(hn_kb_addi(b, n, 0).at, n.at);
    CHECK_EQ(hn_kb_muli(b, n, 1).at, n.at);
    CHECK(hn_kb_is_const(b, hn_kb_muli(b, n, 0), &c) && c == 0);
    CHECK_EQ(hn_kb_addi(b, hn_kb_addi(b, n, 3), -3).at, n.at);
    CHECK(hn_kb_is_const(b, hn_kb_floordiv(b, hn_kb_i(b, -7), hn_kb_i(b, 2)), &c) && c == -4);
    CHECK(hn_kb_is_const(b, hn_kb_floormod(b, hn_kb_i(b, -7), hn_kb_i(b, 3)), &c) && c == 2);
    CHECK(hn_kb_is_const(b, hn_kb_idiv(b, hn_kb_i(b, 7), hn_kb_i(b, 4)), &c) && c == 1);
    CHECK(hn_kb_is_const(b, hn_kb_imod(b, hn_kb_i(b, 7), hn_kb_i(b, 5)), &c) && c == 2);
    CHECK(hn_kb_is_const(b, hn_kb_cast(b, hn_kb_f(b, -3.7f), HN_U8), &c) && c == 0);
    CHECK(hn_kb_is_const(b, hn_kb_cast(b, hn_kb_f(b, 1e30f), HN_I32), &c) && c == INT32_MAX);
    CHECK(hn_kb_is_const(b, hn_kb_cast(b, hn_kb_f(b, NAN), HN_I32), &c) && c == 0);
    (void)y;
}

TEST(halves_convert_every_pattern)
{
    hn_kb *b = hn_kb_new(t->arena, "half");
    const int x = hn_kb_in(b, "x", HN_U16), f16 = hn_kb_out(b, "f16", HN_F16),
              f32 = hn_kb_out(b, "f32", HN_F32);
    static uint16_t in[65536], out[65536];
    static float wide[65536];
    hn_diag dg = { 0 };
    hn_kfunc f;

    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, 65536), 32);
    const hn_kv v = hn_kb_unhalf(b, hn_kb_load(b, x, i, 32), HN_F16);
    hn_kb_store(b, f32, i, v);
    hn_kb_store(b, f16, i, v);
    hn_kb_end(b);
    finish(b, &f);
    for (int k = 0; k < 65536; k++)
        in[k] = (uint16_t)k;
    CHECK_OK(hn_kfunc_run(&f, (hn_kmem[]){ { in, sizeof(in) }, { out, sizeof(out) }, { wide, sizeof(wide) } },
                          NULL, 0, 1, 0, &dg),
             &dg);
    for (int k = 0; k < 65536; k++) {
        const int e = k >> 10 & 31, m = k & 1023;
        const double want = e == 31 ? (m ? NAN : INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
        if (isnan(want)) {
            CHECK(isnan(wide[k]) && (out[k] & 0x7e00) == 0x7e00 && (out[k] | 0x200) == (k | 0x200));
        } else {
            CHECK((double)wide[k] == (k & 0x8000 ? -want : want));
            CHECK_EQ(out[k], k);
        }
    }
}
