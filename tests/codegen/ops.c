/* Every operation in every type: compiled code against the interpreter, to the bit. */
#include <string.h>

#include "base/os.h"
#include "cuda_host.h"
#include "jit.h"
#include "kir/kir.h"

enum { N = 256 };

static cuda_batch later; /* the same runs as CUDA C, compiled together at the end of a case */

static const hn_dtype ints[] = { HN_I8, HN_U8, HN_I16, HN_U16, HN_I32, HN_U32, HN_I64, HN_U64 };
static const int lane_counts[] = { 1, 3, 8, 16, 64 };

/* Values that break careless code come first, random bits after. */
static void fill(void *at, hn_dtype t, hn_rng *r)
{
    static const uint32_t f32[] = { 0,          0x80000000, 0x7f800000, 0xff800000, 0x7fc00000, 1,
                                    0x80000001, 0x7f7fffff, 0x3f800000, 0xbf800000, 0x4effffff, 0x4f000000,
                                    0xcf000000, 0x5f000000, 0x4b000001, 0x3f000000, 0x3fc00000, 0x40200000,
                                    0xc0200000, 0x38800000, 0x33000001, 0x477fefff, 0x477ff000 };
    const int bytes = hn_dtype_bits(t) / 8;
    uint8_t *p = at;

    for (int i = 0; i < N; i++, p += bytes) {
        uint64_t v = hn_rng_u64(r);
        if (t == HN_F32 && i < HN_COUNT(f32))
            v = f32[i];
        else if (t == HN_F32 && i % 3 == 0)
            v = 0x3f800000u + (v & 0x83ffffff); /* moderate numbers */
        else if (t == HN_F64 && i < HN_COUNT(f32)) {
            float f;
            memcpy(&f, &f32[i], 4);
            const double d = (double)f;
            memcpy(&v, &d, 8);
        } else if (t == HN_BOOL)
            v &= 1;
        else if (hn_dtype_is_int(t) && i < 16)
            v = (uint64_t)(i - 4);
        else if (hn_dtype_is_int(t) && i < 24)
            v = (uint64_t)1 << (8 * bytes - 1); /* the most negative */
        memcpy(p, &v, (size_t)bytes);
    }
}

static uint64_t bits_at(const uint8_t *p, int bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, (size_t)bytes);
    return v;
}

/* Run both ways; NaNs are equal whatever their payload. */
static void compare(hn_test *t, const hn_kfunc *f, void *const *in, const hn_dtype *in_type, int n_in,
                    hn_dtype out_type, int from)
{
    hn_target target[8];
    const int bytes = hn_dtype_bits(out_type) / 8, n_target = jit_targets(target, 8);
    uint8_t want[N * 8], got[N * 8];
    hn_kmem mem[4];
    void *buf[4];
    hn_diag dg = { 0 };

    for (int i = 0; i < n_in; i++) {
        mem[i] = (hn_kmem){ in[i], N * hn_dtype_bits(in_type[i]) / 8 };
        buf[i] = in[i];
    }
    mem[n_in] = (hn_kmem){ want, N * bytes };
    buf[n_in] = got;
    memset(want, 0xcc, sizeof(want));
    memset(got, 0xcc, sizeof(got));
    CHECK_OK(hn_kfunc_run(f, mem, NULL, 0, 1, 0, &dg), &dg);
    cuda_later(t, &later, f, mem, n_in, n_in + 1, &out_type, (const void *[]){ got });
    for (int k = from; k < n_target; k++) {
        memset(got, 0xcc, sizeof(got));
        jit j = jit_make(t, f, &target[k]);
        jit_run(&j, f, buf, NULL);
        for (int i = 0; i < N; i++) {
            const uint8_t *a = want + i * bytes, *b = got + i * bytes;
            if (memcmp(a, b, (size_t)bytes) && !(jit_is_nan(a, out_type) && jit_is_nan(b, out_type)))
                FAIL("%s on %s: element %d is %llx, must be %llx; inputs %llx %llx %llx", f->name,
                     target[k].name, i, (unsigned long long)bits_at(b, bytes),
                     (unsigned long long)bits_at(a, bytes),
                     (unsigned long long)bits_at((const uint8_t *)in[0] + i * (hn_dtype_bits(in_type[0]) / 8),
                                                 hn_dtype_bits(in_type[0]) / 8),
                     (unsigned long long)(n_in > 1 ? bits_at((const uint8_t *)in[1] +
                                                                 i * (hn_dtype_bits(in_type[1]) / 8),
                                                             hn_dtype_bits(in_type[1]) / 8)
                                                   : 0),
                     (unsigned long long)(n_in > 2 ? bits_at((const uint8_t *)in[2] +
                                                                 i * (hn_dtype_bits(in_type[2]) / 8),
                                                             hn_dtype_bits(in_type[2]) / 8)
                                                   : 0));
        }
        jit_done(&j);
    }
}

/* out[i] = several operations of one type on in[i], each stored to its own kernel to keep failures readable.
 */
static void run_ops(hn_test *t, hn_dtype dt, const int *ops, int n_op, bool binary, bool yields_bool)
{
    static uint8_t x[N * 8], y[N * 8];
    hn_rng r;

    hn_rng_init(&r, 7);
    fill(x, dt, &r);
    fill(y, dt, &r);
    for (int i = 0; i < 16; i++)
        memmove(y + i * hn_dtype_bits(dt) / 8, y + (15 - i) * hn_dtype_bits(dt) / 8,
                (size_t)hn_dtype_bits(dt) / 8);
    for (int k = 0; k < n_op; k++) {
        const int lanes = lane_counts[(k + (int)dt) % HN_COUNT(lane_counts)];
        hn_kb *b = hn_kb_new(
            t->arena, hn_arena_printf(t->arena, "%s_%sx%d", hn_kop_name(ops[k]), hn_dtype_name(dt), lanes));
        const int bx = hn_kb_in(b, "x", dt), by = hn_kb_in(b, "y", dt);
        const int out = hn_kb_out(b, "out", yields_bool ? HN_BOOL : dt);
        hn_diag dg = { 0 };
        hn_kfunc f;
        const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N / lanes * lanes), lanes);
        const hn_kv vx = hn_kb_load(b, bx, i, lanes), vy = hn_kb_load(b, by, i, lanes);
        hn_kb_store(b, out, i,
                    binary ? hn_kb_bin(b, (hn_kop)ops[k], vx, vy) : hn_kb_un(b, (hn_kop)ops[k], vx));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        compare(t, &f, (void *[]){ x, y }, (hn_dtype[]){ dt, dt }, 2, yields_bool ? HN_BOOL : dt, 0);
    }
}

TEST(int_arithmetic)
{
    static const int bin[] = { HN_KOP_ADD, HN_KOP_SUB, HN_KOP_MUL,  HN_KOP_DIV, HN_KOP_REM,
                               HN_KOP_MIN, HN_KOP_MAX, HN_KOP_AND,  HN_KOP_OR,  HN_KOP_XOR,
                               HN_KOP_SHL, HN_KOP_SHR, HN_KOP_MULHI };
    static const int un[] = { HN_KOP_NEG, HN_KOP_ABS, HN_KOP_NOT, HN_KOP_CLZ, HN_KOP_POPCNT };

    for (int i = 0; i < HN_COUNT(ints); i++) {
        run_ops(t, ints[i], bin, HN_COUNT(bin), true, false);
        run_ops(t, ints[i], un, HN_COUNT(un), false, false);
    }
    cuda_check(t, &later);
}

TEST(comparisons)
{
    static const int cmp[] = { HN_KOP_EQ, HN_KOP_NE, HN_KOP_LT, HN_KOP_LE, HN_KOP_GT, HN_KOP_GE };

    for (int i = 0; i < HN_COUNT(ints); i++)
        run_ops(t, ints[i], cmp, HN_COUNT(cmp), true, true);
    run_ops(t, HN_F32, cmp, HN_COUNT(cmp), true, true);
    run_ops(t, HN_F64, cmp, HN_COUNT(cmp), true, true);
    cuda_check(t, &later);
}

TEST(float_arithmetic)
{
    static const int bin[] = { HN_KOP_ADD, HN_KOP_SUB, HN_KOP_MUL,  HN_KOP_DIV,
                               HN_KOP_MIN, HN_KOP_MAX, HN_KOP_MINR, HN_KOP_MAXR };
    static const int un[] = { HN_KOP_NEG,  HN_KOP_ABS,  HN_KOP_SQRT, HN_KOP_FLOOR,
                              HN_KOP_CEIL, HN_KOP_RINT, HN_KOP_TRUNC };

    for (int k = 0; k < 2; k++) {
        run_ops(t, k ? HN_F64 : HN_F32, bin, HN_COUNT(bin), true, false);
        run_ops(t, k ? HN_F64 : HN_F32, un, HN_COUNT(un), false, false);
    }
    cuda_check(t, &later);
}

TEST(fma_is_fused)
{
    static uint8_t in[3][N * 8];
    hn_rng r;

    hn_rng_init(&r, 3);
    for (int k = 0; k < 2; k++) {
        const hn_dtype dt = k ? HN_F64 : HN_F32;
        hn_kb *b = hn_kb_new(t->arena, "fma");
        int buf[4];
        hn_kv v[3];
        hn_diag dg = { 0 };
        hn_kfunc f;
        for (int i = 0; i < 3; i++) {
            fill(in[i], dt, &r);
            buf[i] = hn_kb_in(b, "x", dt);
        }
        buf[3] = hn_kb_out(b, "out", dt);
        const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), 8);
        for (int n = 0; n < 3; n++)
            v[n] = hn_kb_load(b, buf[n], i, 8);
        hn_kb_store(b, buf[3], i, hn_kb_fma(b, v[0], v[1], v[2]));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        compare(t, &f, (void *[]){ in[0], in[1], in[2] }, (hn_dtype[]){ dt, dt, dt }, 3, dt, 1);
    }
    cuda_check(t, &later);
}

TEST(casts)
{
    static const hn_dtype all[] = { HN_I8,  HN_U8,  HN_I16, HN_U16, HN_I32, HN_U32,
                                    HN_I64, HN_U64, HN_F32, HN_F64, HN_BOOL };
    static uint8_t x[N * 8];
    hn_rng r;

    hn_rng_init(&r, 11);
    for (int i = 0; i < HN_COUNT(all); i++) {
        for (int k = 0; k < HN_COUNT(all); k++) {
            const int lanes = lane_counts[(i + k) % HN_COUNT(lane_counts)];
            hn_kb *b = hn_kb_new(t->arena, hn_arena_printf(t->arena, "cast_%s_%s", hn_dtype_name(all[i]),
                                                           hn_dtype_name(all[k])));
            const int in = hn_kb_in(b, "x", all[i]), out = hn_kb_out(b, "y", all[k]);
            hn_diag dg = { 0 };
            hn_kfunc f;
            fill(x, all[i], &r);
            const hn_kv at = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N / lanes * lanes), lanes);
            hn_kb_store(b, out, at, hn_kb_cast(b, hn_kb_load(b, in, at, lanes), all[k]));
            hn_kb_end(b);
            CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
            compare(t, &f, (void *[]){ x }, &all[i], 1, all[k], 0);
        }
    }
    cuda_check(t, &later);
}

TEST(quantising_casts)
{
    static const hn_dtype to[] = { HN_I8, HN_U8, HN_I16, HN_U16, HN_I32 };
    static uint8_t x[N * 8];
    hn_rng r;

    hn_rng_init(&r, 12);
    for (int i = 0; i < HN_COUNT(to); i++) {
        hn_kb *b = hn_kb_new(t->arena, "cast_rint");
        const int in = hn_kb_in(b, "x", HN_F32), out = hn_kb_out(b, "y", to[i]);
        const hn_dtype from = HN_F32;
        hn_diag dg = { 0 };
        hn_kfunc f;
        fill(x, HN_F32, &r);
        const hn_kv at = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), 16);
        hn_kb_store(b, out, at, hn_kb_cast_rint(b, hn_kb_load(b, in, at, 16), to[i]));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        compare(t, &f, (void *[]){ x }, &from, 1, to[i], 0);
    }
    cuda_check(t, &later);
}

/* Numbers that LLVM's narrowing of min and max to halves got wrong. */
TEST(min_and_max_of_halves)
{
    static const uint16_t some[] = { 0, 0x8000, 0x7e00, 0x7c00, 0xfc00, 0x3c00, 0xbc00, 1 }; /* zeros, NaN, infinities, ones */
    enum { LANES = 8 };
    static uint16_t x[N], y[N];

    for (int i = 0; i < N; i++) x[i] = some[i % 8], y[i] = some[i / 8 % 8];
    for (int lanes = 1; lanes <= LANES; lanes *= LANES)
        for (int max = 0; max < 2; max++) {
            const hn_dtype from[] = { HN_F16, HN_F16 };
            hn_kb *b = hn_kb_new(t->arena, max ? "max" : "min");
            const int in = hn_kb_in(b, "x", HN_F16), other = hn_kb_in(b, "y", HN_F16), out = hn_kb_out(b, "z", HN_F16);
            hn_diag dg = { 0 };
            hn_kfunc f;
            const hn_kv at = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), lanes);
            const hn_kv p = hn_kb_load(b, in, at, lanes), q = hn_kb_load(b, other, at, lanes);
            hn_kb_store(b, out, at, max ? hn_kb_max(b, p, q) : hn_kb_min(b, p, q));
            hn_kb_end(b);
            CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
            compare(t, &f, (void *[]){ x, y }, from, 2, HN_F16, 0);
        }
    cuda_check(t, &later);
}

TEST(half_storage)
{
    static uint16_t halves[65536], back[65536];
    static float wide[65536], ref[65536];
    static uint8_t x[N * 8];
    hn_target target[8];
    const int n_target = jit_targets(target, 8);

    for (int k = 0; k < 2; k++) {
        const hn_dtype half = k ? HN_BF16 : HN_F16;
        hn_kb *b = hn_kb_new(t->arena, k ? "bf16" : "f16");
        const int in = hn_kb_in(b, "h", half), out = hn_kb_out(b, "w", HN_F32),
                  again = hn_kb_out(b, "b", half);
        hn_diag dg = { 0 };
        hn_kfunc f;
        const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, 65536), 16);
        const hn_kv v = hn_kb_load(b, in, i, 16);
        hn_kb_store(b, out, i, v);
        hn_kb_store(b, again, i, v);
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        for (int n = 0; n < 65536; n++)
            halves[n] = (uint16_t)n;
        CHECK_OK(hn_kfunc_run(
                     &f,
                     (hn_kmem[]){ { halves, sizeof(halves) }, { ref, sizeof(ref) }, { back, sizeof(back) } },
                     NULL, 0, 1, 0, &dg),
                 &dg);
        for (int g = 0; g < n_target; g++) {
            jit j = jit_make(t, &f, &target[g]);
            jit_run(&j, &f, (void *[]){ halves, wide, back }, NULL);
            for (int n = 0; n < 65536; n++) {
                if (memcmp(&wide[n], &ref[n], 4) && !(wide[n] != wide[n] && ref[n] != ref[n]))
                    FAIL("%s widens %x to %a on %s", f.name, n, (double)wide[n], target[g].name);
                if (ref[n] == ref[n]) CHECK_EQ(back[n], n);
            }
            jit_done(&j);
        }
        /* narrowing numbers that halves cannot hold */
        b = hn_kb_new(t->arena, k ? "to_bf16" : "to_f16");
        const int from = hn_kb_in(b, "x", HN_F32), to = hn_kb_out(b, "y", HN_U16);
        const hn_kv at = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), 8);
        hn_kb_store(b, to, at, hn_kb_half(b, hn_kb_load(b, from, at, 8), half));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        const hn_dtype f32 = HN_F32;
        hn_rng r;
        hn_rng_init(&r, 5);
        for (int round = 0; round < 8; round++) {
            fill(x, HN_F32, &r);
            for (int n = 0; round && n < N; n++) { /* scales where halves are normal, subnormal, gone */
                const float v32 = (float)(hn_rng_normal(&r) *
                                          (double[]){ 1, 1e4, 1e-4, 1e-5, 1e-7, 3e-8, 7e4, 1e38 }[round]);
                memcpy(x + 4 * n, &v32, 4);
            }
            compare(t, &f, (void *[]){ x }, &f32, 1, HN_U16, 0);
        }
    }
    cuda_check(t, &later);
}

static hn_kv one_reduce(hn_kb *b, int op, hn_kv x)
{
    return hn_kb_un(b, (hn_kop)op, x);
}

TEST(reductions)
{
    static const int ops[] = { HN_KOP_RADD, HN_KOP_RMIN, HN_KOP_RMAX };
    static const hn_dtype types[] = { HN_F32, HN_F64, HN_I32, HN_U8, HN_I64 };
    static uint8_t x[N * 8];
    hn_rng r;

    hn_rng_init(&r, 21);
    for (int k = 0; k < HN_COUNT(types); k++) {
        for (int op = 0; op < HN_COUNT(ops); op++) {
            for (int lanes = 2; lanes <= 64; lanes *= 2) {
                hn_kb *b = hn_kb_new(t->arena, hn_kop_name(ops[op]));
                const int in = hn_kb_in(b, "x", types[k]), out = hn_kb_out(b, "y", types[k]);
                hn_diag dg = { 0 };
                hn_kfunc f;
                fill(x, types[k], &r);
                const hn_kv i = hn_kb_fori(b, N / lanes);
                hn_kb_store(b, out, i,
                            one_reduce(b, ops[op], hn_kb_load(b, in, hn_kb_muli(b, i, lanes), lanes)));
                hn_kb_end(b);
                CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
                compare(t, &f, (void *[]){ x }, &types[k], 1, types[k], 0);
            }
        }
    }
    cuda_check(t, &later);
}

TEST(any_and_all)
{
    static uint8_t x[N * 8];
    hn_rng r;
    const hn_dtype dt = HN_BOOL;

    hn_rng_init(&r, 22);
    for (int op = HN_KOP_RAND; op <= HN_KOP_ROR; op++) {
        hn_kb *b = hn_kb_new(t->arena, hn_kop_name(op));
        const int in = hn_kb_in(b, "x", HN_BOOL), out = hn_kb_out(b, "y", HN_BOOL);
        hn_diag dg = { 0 };
        hn_kfunc f;
        fill(x, HN_BOOL, &r);
        memset(x, 1, 64);
        memset(x + 64, 0, 64);
        const hn_kv i = hn_kb_fori(b, N / 16);
        hn_kb_store(b, out, i, hn_kb_un(b, (hn_kop)op, hn_kb_load(b, in, hn_kb_muli(b, i, 16), 16)));
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        compare(t, &f, (void *[]){ x }, &dt, 1, HN_BOOL, 0);
    }
    cuda_check(t, &later);
}

TEST(dot_products)
{
    static uint8_t acc[N * 8], x[N * 8], y[N * 8];
    static const int counts[] = { 1, 2, 4, 5, 8, 16 };
    hn_rng r;

    hn_rng_init(&r, 31);
    for (int op = HN_KOP_DOT4; op <= HN_KOP_MADDUBS; op++) {
        for (int k = 0; k < HN_COUNT(counts); k++) {
            const int n = counts[k], per = op == HN_KOP_DOT4 ? 4 : 2;
            const hn_dtype tx = op == HN_KOP_DOT2 ? HN_I16 : HN_U8, ty = op == HN_KOP_DOT2 ? HN_I16 : HN_I8;
            const hn_dtype to = op == HN_KOP_MADDUBS ? HN_I16 : HN_I32;
            hn_kb *b = hn_kb_new(t->arena, hn_arena_printf(t->arena, "%s_%d", hn_kop_name(op), n));
            const int ba = hn_kb_in(b, "acc", to), bx = hn_kb_in(b, "x", tx), by = hn_kb_in(b, "y", ty),
                      out = hn_kb_out(b, "o", to);
            hn_diag dg = { 0 };
            hn_kfunc f;
            fill(acc, to, &r);
            fill(x, tx, &r);
            fill(y, ty, &r);
            memset(x + 32, 255, 16);
            memset(y + 32, 127, 8);
            memset(y + 40, 128, 8);
            const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N / 4 / n * n), n);
            const hn_kv va = hn_kb_load(b, ba, i, n), at = hn_kb_muli(b, i, per);
            const hn_kv vx = hn_kb_load(b, bx, at, n * per), vy = hn_kb_load(b, by, at, n * per);
            hn_kb_store(b, out, i,
                        op == HN_KOP_DOT4   ? hn_kb_dot4(b, va, vx, vy)
                        : op == HN_KOP_DOT2 ? hn_kb_dot2(b, va, vx, vy)
                                            : hn_kb_maddubs(b, vx, vy));
            hn_kb_end(b);
            CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
            compare(t, &f, (void *[]){ acc, x, y }, (hn_dtype[]){ to, tx, ty }, 3, to, 0);
        }
    }
    cuda_check(t, &later);
}

TEST(dot_of_bf16_is_close)
{
    static uint16_t x[N], y[N];
    static float acc[N], want[N], got[N];
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    hn_kb *b = hn_kb_new(t->arena, "dot2bf");
    const int ba = hn_kb_in(b, "acc", HN_F32), bx = hn_kb_in(b, "x", HN_U16), by = hn_kb_in(b, "y", HN_U16),
              out = hn_kb_out(b, "o", HN_F32);
    hn_rng r;
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_rng_init(&r, 41);
    for (int i = 0; i < N; i++) {
        const float fx = (float)hn_rng_normal(&r), fy = (float)hn_rng_normal(&r);
        uint32_t u;
        memcpy(&u, &fx, 4);
        x[i] = (uint16_t)(u >> 16);
        memcpy(&u, &fy, 4);
        y[i] = (uint16_t)(u >> 16);
        acc[i] = (float)hn_rng_normal(&r);
    }
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N / 2), 16);
    const hn_kv at = hn_kb_muli(b, i, 2);
    hn_kb_store(
        b, out, i,
        hn_kb_dot2bf(b, hn_kb_load(b, ba, i, 16), hn_kb_load(b, bx, at, 32), hn_kb_load(b, by, at, 32)));
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    CHECK_OK(
        hn_kfunc_run(
            &f,
            (hn_kmem[]){ { acc, sizeof(acc) }, { x, sizeof(x) }, { y, sizeof(y) }, { want, sizeof(want) } },
            NULL, 0, 1, 0, &dg),
        &dg);
    for (int k = 0; k < n_target; k++) {
        jit j = jit_make(t, &f, &target[k]);
        jit_run(&j, &f, (void *[]){ acc, x, y, got }, NULL);
        for (int n = 0; n < N / 2; n++)
            CHECK_NEAR((double)got[n], (double)want[n], 4e-6);
        jit_done(&j);
    }
}

TEST(lane_moves)
{
    static uint8_t x[N * 8], y[N * 8];
    static const int reverse[] = { 7, 6, 5, 4, 3, 2, 1, 0 }, weave[] = { 0, 8, 1, 9, 2, 10, 3, 11 };
    hn_rng r;
    hn_diag dg = { 0 };

    hn_rng_init(&r, 51);
    for (int k = 0; k < 3; k++) {
        const hn_dtype dt = k == 0 ? HN_F32 : k == 1 ? HN_I8 : HN_I64;
        hn_kb *b = hn_kb_new(t->arena, "lanes");
        const int bx = hn_kb_in(b, "x", dt), by = hn_kb_in(b, "y", dt), out = hn_kb_out(b, "o", dt);
        hn_kfunc f;
        fill(x, dt, &r);
        fill(y, dt, &r);
        const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), 8);
        const hn_kv vx = hn_kb_load(b, bx, i, 8), vy = hn_kb_load(b, by, i, 8);
        hn_kv v = hn_kb_shuffle(b, hn_kb_shuffle(b, vx, vx, reverse, 8), vy, weave, 8);
        v = hn_kb_insert(b, v, hn_kb_extract(b, vy, 5), 2);
        v = hn_kb_slice(
            b,
            hn_kb_concat(
                b, v,
                hn_kb_slice(b, hn_kb_concat(b, hn_kb_slice(b, vx, 1, 4), hn_kb_slice(b, vy, 2, 4)), 0, 8)),
            3, 8);
        hn_kb_store(b, out, i, v);
        hn_kb_end(b);
        CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
        compare(t, &f, (void *[]){ x, y }, (hn_dtype[]){ dt, dt }, 2, dt, 0);
    }
    cuda_check(t, &later);
}

TEST(bitcasts_change_lanes)
{
    static uint8_t x[N * 8];
    hn_rng r;
    hn_diag dg = { 0 };
    const hn_dtype dt = HN_U8;
    hn_kb *b = hn_kb_new(t->arena, "bitcast");
    const int in = hn_kb_in(b, "x", HN_U8), out = hn_kb_out(b, "o", HN_U8);
    hn_kfunc f;

    hn_rng_init(&r, 61);
    fill(x, HN_U8, &r);
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, N), 32);
    hn_kv v = hn_kb_bitcast(b, hn_kb_load(b, in, i, 32), HN_I32, 8);
    v = hn_kb_bitcast(b, hn_kb_addi(b, v, 12345), HN_I16, 16);
    v = hn_kb_bitcast(b, hn_kb_muli(b, v, -7), HN_U64, 4);
    v = hn_kb_bitcast(b, hn_kb_shr(b, v, 3), HN_U8, 32);
    hn_kb_store(b, out, i, v);
    hn_kb_end(b);
    CHECK_OK(hn_kb_finish(b, &f, &dg), &dg);
    compare(t, &f, (void *[]){ x }, &dt, 1, HN_U8, 0);
    cuda_check(t, &later);
}

TEST(cuda_c_was_compared)
{
    if (!cuda_host_compiler()) SKIP("no C++ compiler: emitted CUDA C is not run");
}
