/* Random programs: compiled code and interpreter agree to the bit. A failure names the seed. */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "cuda_host.h"
#include "jit.h"
#include "kir/kir.h"

enum { ELEMS = 64, MAX_VALUE = 64, N_DTYPE = 6 };

static const hn_dtype dtypes[N_DTYPE] = { HN_F32, HN_F64, HN_I8, HN_U16, HN_I32, HN_I64 };

/* Values of one dtype, all of `lanes`, that are in scope. */
typedef struct pool {
    hn_kv at[N_DTYPE][MAX_VALUE];
    int n[N_DTYPE];
    hn_kv mask[MAX_VALUE];
    int n_mask;
} pool;

typedef struct maker {
    hn_kb *b;
    hn_rng r;
    int lanes, in[N_DTYPE], out[N_DTYPE], depth;
    hn_kv row; /* 0 .. ELEMS-lanes in steps of lanes */
    pool p;
} maker;

static int below(maker *m, int n)
{
    return (int)hn_rng_below(&m->r, n);
}

static void keep(maker *m, int d, hn_kv v)
{
    if (m->p.n[d] < MAX_VALUE)
        m->p.at[d][m->p.n[d]++] = v;
    else
        m->p.at[d][below(m, MAX_VALUE)] = v;
}

static hn_kv any_of(maker *m, int d)
{
    return m->p.at[d][below(m, m->p.n[d])];
}

static hn_kv any_mask(maker *m)
{
    return m->p.mask[below(m, m->p.n_mask)];
}

static void keep_mask(maker *m, hn_kv v)
{
    if (m->p.n_mask < MAX_VALUE) m->p.mask[m->p.n_mask++] = v;
}

static void arithmetic(maker *m, int d)
{
    static const int ints[] = { HN_KOP_ADD, HN_KOP_SUB, HN_KOP_MUL,  HN_KOP_DIV, HN_KOP_REM,
                                HN_KOP_MIN, HN_KOP_MAX, HN_KOP_AND,  HN_KOP_OR,  HN_KOP_XOR,
                                HN_KOP_SHL, HN_KOP_SHR, HN_KOP_MULHI };
    static const int floats[] = { HN_KOP_ADD, HN_KOP_SUB,  HN_KOP_MUL, HN_KOP_DIV,
                                  HN_KOP_MIN, HN_KOP_MINR, HN_KOP_MAX, HN_KOP_MAXR };
    const bool f = hn_dtype_is_float(dtypes[d]);
    const int op = f ? floats[below(m, HN_COUNT(floats))] : ints[below(m, HN_COUNT(ints))];
    hn_kv y = any_of(m, d);

    if (below(m, 4) == 0) y = hn_kb_like(m->b, y, (double)(below(m, 21) - 5));
    keep(m, d, hn_kb_bin(m->b, (hn_kop)op, any_of(m, d), y));
}

static void unary(maker *m, int d)
{
    static const int ints[] = { HN_KOP_NEG, HN_KOP_ABS, HN_KOP_NOT, HN_KOP_CLZ, HN_KOP_POPCNT };
    static const int floats[] = { HN_KOP_NEG,  HN_KOP_ABS,  HN_KOP_SQRT, HN_KOP_FLOOR,
                                  HN_KOP_CEIL, HN_KOP_RINT, HN_KOP_TRUNC };
    const bool f = hn_dtype_is_float(dtypes[d]);
    const int op = f ? floats[below(m, HN_COUNT(floats))] : ints[below(m, HN_COUNT(ints))];

    keep(m, d, hn_kb_un(m->b, (hn_kop)op, any_of(m, d)));
}

static void lanes_op(maker *m, int d)
{
    int lane[64];
    const hn_kv x = any_of(m, d), y = any_of(m, d);

    switch (below(m, 4)) {
    case 0:
        for (int i = 0; i < m->lanes; i++)
            lane[i] = below(m, 2 * m->lanes);
        keep(m, d, hn_kb_shuffle(m->b, x, y, lane, m->lanes));
        break;
    case 1:
        keep(m, d, hn_kb_insert(m->b, x, hn_kb_extract(m->b, y, below(m, m->lanes)), below(m, m->lanes)));
        break;
    case 2:
        keep(m, d, hn_kb_splat(m->b, hn_kb_un(m->b, below(m, 2) ? HN_KOP_RADD : HN_KOP_RMAX, x), m->lanes));
        break;
    default:
        if (hn_dtype_is_float(dtypes[d])) break;
        keep(m, d, hn_kb_ramp(m->b, hn_kb_extract(m->b, x, below(m, m->lanes)), below(m, 9) - 4, m->lanes));
        break;
    }
}

static void memory(maker *m, int d)
{
    const hn_kv mask = below(m, 2) ? any_mask(m) : HN_KV_NONE;

    switch (below(m, 3)) {
    case 0:
        keep(m, d, hn_kb_loadm(m->b, m->in[d], m->row, m->lanes, mask));
        break;
    case 1:
        hn_kb_storem(m->b, m->out[d], m->row, any_of(m, d), mask);
        break;
    default: { /* wrap any i32 into range */
        const hn_kv at = hn_kb_and(m->b, any_of(m, 4), hn_kb_like(m->b, any_of(m, 4), ELEMS - 1));
        if (below(m, 2))
            keep(m, d, hn_kb_gather(m->b, m->in[d], at, mask));
        else
            hn_kb_scatter(m->b, m->out[d], at, any_of(m, d), mask);
    }
    }
}

static void body(maker *m, int steps);

static void control(maker *m, int d)
{
    if (m->depth == 3) return;
    const hn_kvar v = hn_kb_var(m->b, any_of(m, d));
    const pool saved = m->p;
    const int kind = below(m, 3);

    m->depth++;
    if (kind == 0) {
        const hn_kv i =
            hn_kb_for(m->b, hn_kb_i(m->b, below(m, 3)), hn_kb_i(m->b, below(m, 6)), 1 + below(m, 2));
        keep(m, 5, hn_kb_splat(m->b, i, m->lanes));
    } else if (kind == 1) {
        hn_kb_for_kind(m->b, HN_KFOR_UNROLL, hn_kb_i(m->b, 0), hn_kb_i(m->b, below(m, 4)), hn_kb_i(m->b, 1));
    } else {
        hn_kb_if(m->b, hn_kb_un(m->b, below(m, 2) ? HN_KOP_ROR : HN_KOP_RAND, any_mask(m)));
    }
    keep(m, d, hn_kb_get(m->b, v));
    body(m, 2 + below(m, 5));
    hn_kb_set(m->b, v, any_of(m, d));
    if (kind < 2 && below(m, 2)) {
        hn_kb_break_if(m->b, hn_kb_un(m->b, HN_KOP_ROR, any_mask(m)));
        hn_kb_set(m->b, v, any_of(m, d));
    }
    if (kind == 2 && below(m, 2)) {
        m->p = saved;
        hn_kb_else(m->b);
        body(m, 1 + below(m, 3));
        hn_kb_set(m->b, v, any_of(m, d));
    }
    hn_kb_end(m->b);
    m->depth--;
    m->p = saved;
    keep(m, d, hn_kb_get(m->b, v));
}

static void body(maker *m, int steps)
{
    for (int s = 0; s < steps; s++) {
        const int d = below(m, N_DTYPE), other = below(m, N_DTYPE);
        switch (below(m, 9)) {
        case 0:
        case 1:
            arithmetic(m, d);
            break;
        case 2:
            unary(m, d);
            break;
        case 3:
            lanes_op(m, d);
            break;
        case 4:
            memory(m, d);
            break;
        case 5:
            control(m, d);
            break;
        case 6:
            keep(m, other, hn_kb_cast(m->b, any_of(m, d), dtypes[other]));
            break;
        case 7:
            keep(m, d, hn_kb_select(m->b, any_mask(m), any_of(m, d), any_of(m, d)));
            break;
        default:
            keep_mask(m, hn_kb_bin(m->b, (hn_kop)(HN_KOP_EQ + below(m, 6)), any_of(m, d), any_of(m, d)));
            break;
        }
    }
}

static hn_kfunc random_program(hn_test *t, uint64_t seed)
{
    static const int lane_choice[] = { 1, 2, 4, 8, 16, 32 };
    maker m = { .b = hn_kb_new(t->arena, "random") };
    hn_diag dg = { 0 };
    hn_kfunc f;

    hn_rng_init(&m.r, seed);
    m.lanes = lane_choice[below(&m, HN_COUNT(lane_choice))];
    for (int d = 0; d < N_DTYPE; d++)
        m.in[d] = hn_kb_in(m.b, "in", dtypes[d]);
    for (int d = 0; d < N_DTYPE; d++)
        m.out[d] = hn_kb_out(m.b, "out", dtypes[d]);
    m.row = hn_kb_for(m.b, hn_kb_i(m.b, 0), hn_kb_i(m.b, ELEMS), m.lanes);
    for (int d = 0; d < N_DTYPE; d++)
        keep(&m, d, hn_kb_load(m.b, m.in[d], m.row, m.lanes));
    keep_mask(&m, hn_kb_lt(m.b, any_of(&m, 2), hn_kb_like(m.b, any_of(&m, 2), 5)));
    body(&m, 24);
    for (int d = 0; d < N_DTYPE; d++)
        hn_kb_store(m.b, m.out[d], m.row, any_of(&m, d));
    hn_kb_end(m.b);
    CHECK_OK(hn_kb_finish(m.b, &f, &dg), &dg);
    return f;
}

typedef struct data {
    uint8_t in[N_DTYPE][ELEMS * 8], out[N_DTYPE][ELEMS * 8];
} data;

static void fill(data *x, uint64_t seed)
{
    hn_rng r;

    hn_rng_init(&r, seed);
    memset(x, 0, sizeof(*x));
    for (int d = 0; d < N_DTYPE; d++) {
        for (int i = 0; i < ELEMS; i++) {
            const double v = hn_rng_normal(&r) * (i % 5 ? 20 : 1e12);
            const float f = (float)v;
            const int64_t n = i % 5 ? (int64_t)v : (int64_t)hn_rng_u64(&r);
            const int bytes = hn_dtype_bits(dtypes[d]) / 8;
            memcpy(x->in[d] + i * bytes,
                   dtypes[d] == HN_F32 ? (const void *)&f
                   : d == 1            ? (const void *)&v
                                       : &n,
                   (size_t)bytes);
        }
    }
}

static bool both_nan(const uint8_t *a, const uint8_t *b, hn_dtype t)
{
    float f[2];
    double d[2];

    if (t == HN_F32) {
        memcpy(&f[0], a, 4);
        memcpy(&f[1], b, 4);
        return f[0] != f[0] && f[1] != f[1];
    }
    if (t != HN_F64) return false;
    memcpy(&d[0], a, 8);
    memcpy(&d[1], b, 8);
    return d[0] != d[0] && d[1] != d[1];
}

static void compare(const data *a, const data *b, uint64_t seed, const char *target)
{
    for (int d = 0; d < N_DTYPE; d++) {
        const int bytes = hn_dtype_bits(dtypes[d]) / 8;
        for (int i = 0; i < ELEMS; i++) {
            const uint8_t *x = a->out[d] + i * bytes, *y = b->out[d] + i * bytes;
            if (memcmp(x, y, (size_t)bytes) && !both_nan(x, y, dtypes[d]))
                FAIL("seed %llu: %s element %d differs on %s", (unsigned long long)seed,
                     hn_dtype_name(dtypes[d]), i, target);
        }
    }
}

TEST(random_programs)
{
    static data want, got;
    hn_target target[8];
    const int n_target = jit_targets(target, 8);
    const char *from = getenv("HONE_TEST_SEED"), *many = getenv("HONE_TEST_PROGRAMS");
    const uint64_t first = from ? strtoull(from, NULL, 10) : 1;
    const int n = many ? atoi(many) : 60;
    cuda_batch later = { 0 };

    for (uint64_t seed = first; seed < first + (uint64_t)n; seed++) {
        const hn_kfunc f = random_program(t, seed);
        hn_kmem mem[2 * N_DTYPE];
        void *buf[2 * N_DTYPE];
        hn_diag dg = { 0 };
        hn_test_note("seed %llu", (unsigned long long)seed);
        fill(&want, seed);
        for (int d = 0; d < 2 * N_DTYPE; d++) {
            const int64_t bytes = ELEMS * hn_dtype_bits(dtypes[d % N_DTYPE]) / 8;
            mem[d] = (hn_kmem){ d < N_DTYPE ? want.in[d] : want.out[d - N_DTYPE], bytes };
            buf[d] = d < N_DTYPE ? got.in[d] : got.out[d - N_DTYPE];
        }
        CHECK_OK(hn_kfunc_run(&f, mem, NULL, 0, 1, 0, &dg), &dg);
        fill(&got, seed);
        cuda_later(t, &later, &f, mem, N_DTYPE, 2 * N_DTYPE, dtypes, (const void *const *)buf + N_DTYPE);
        for (int k = (int)(seed % 2); k < n_target; k += 2) {
            fill(&got, seed);
            jit j = jit_make(t, &f, &target[k]);
            jit_run(&j, &f, buf, NULL);
            compare(&want, &got, seed, target[k].name);
            jit_done(&j);
        }
    }
    cuda_check(t, &later);
}
