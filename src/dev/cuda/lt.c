/* Matrix products by cuBLASLt. The library thinks in columns: d' = b' a' is our d = a b, so operands trade places. */
#include "dev/cuda/lt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_find.h"
#include "base/dl.h"
#include "core/core.h"
#include "dev/cuda/call.h"

enum { LEAST_VERSION = 120000, MOST_PROPOSALS = 16, ALIGN = 16 }; /* 12.0: the descriptions that are declared here; what every buffer starts at */

static struct {
    lt_handle *handle;
    size_t version_seen;
#define X(field, type, symbol, parameters) type(*field) parameters;
#include "dev/cuda/lt.def"
#undef X
} lt;

static hone_status load(hn_diag *dg)
{
    static const hn_dl_fn fn[] = {
#define X(field, type, symbol, parameters) { symbol, (void (**)(void))(void *)&lt.field, false },
#include "dev/cuda/lt.def"
#undef X
    };
    hn_cuda_paths p;
    void *lib;

    hn_cuda_find("libcublasLt", "HONE_CUBLASLT", 13, 12, &p);
    HN_TRY(hn_dl_open("cuBLASLt, NVIDIA's library of matrix products,", p.path, HN_CUDA_N_PATH, &lib, NULL, dg));
    HN_TRY(hn_dl_bind("cuBLASLt", lib, fn, HN_COUNT(fn), dg));
    lt.version_seen = lt.version();
    if (lt.version_seen < LEAST_VERSION)
        return HN_RAISE(dg, HONE_E_VERSION, "cuBLASLt %zu is too old: 12.0 or newer is needed", lt.version_seen);
    const int r = lt.create(&lt.handle);
    return r == 0 ? HONE_OK : HN_RAISE(dg, HONE_E_DEVICE, "cuBLASLt does not start (status %d)", r);
}

static uint32_t version(void)
{
    return (uint32_t)lt.version_seen;
}

static void print_version(uint32_t v, char *dst, size_t n)
{
    snprintf(dst, n, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

/* ---- products of a call ---- */
typedef struct product {
    lt_desc *desc;
    lt_layout *a, *b, *y; /* the library's: our b, our a, our result */
    lt_algo algo;
} product;

enum { MAIN, EDGES, MOST_PARTS };

/* A call in turns multiplies the columns at both edges of every row, then, a turn at a time, those of whole 16 bytes in between, which
 * begin at another column each turn; the edges are as wide as the last of them needs. */
static int n_parts(const hn_libcall *c)
{
    return c->u.matmul.turns ? MOST_PARTS : 1;
}

static int64_t whole_line(const hn_libcall *c)
{
    return ALIGN * 8 / hn_dtype_bits((hn_dtype)c->dtype);
}

static hn_libcall_matmul main_of(const hn_libcall *c)
{
    hn_libcall_matmul m = c->u.matmul;
    const int64_t whole = whole_line(c);
    if (!m.turns) return m;
    m.a_line = m.turns * m.k;
    m.d_line = m.turns * m.n;
    m.m /= m.turns;
    m.n = (m.n - (whole - 1)) / whole * whole;
    return m;
}

static hn_libcall_matmul edges_of(const hn_libcall *c)
{
    hn_libcall_matmul m = c->u.matmul;
    m.groups = 2;
    m.a_step = 0;
    m.d_step = main_of(c).n;
    m.b_step = m.d_step * m.k;
    m.d_line = m.n;
    m.n -= m.d_step;
    return m;
}

static hn_libcall_matmul part_of(const hn_libcall *c, int part)
{
    return part == EDGES ? edges_of(c) : main_of(c);
}

/* Rows of each turn begin at one place of 16 bytes, as many of each; rows of b are whole ones; no size that follows is too large. */
static bool can_turn(const hn_libcall *c)
{
    const hn_libcall_matmul *m = &c->u.matmul;
    const int64_t whole = whole_line(c);
    if (!m->trans_b || m->trans_a || m->groups != 1 || (c->flags & (HN_CALL_BIAS | HN_CALL_ADD))) return false;
    if (m->turns < 2 || whole % m->turns || m->n % (whole / m->turns) || m->m % m->turns || m->k % whole) return false;
    return m->n >= 2 * whole && m->n <= INT64_MAX / whole && m->k <= INT64_MAX / m->n;
}

static bool is_f8(uint32_t dtype)
{
    return dtype == HN_F8E4M3FN || dtype == HN_F8E5M2;
}

static hone_status check_call(const hn_libcall *c, hn_diag *dg)
{
    const hn_libcall_matmul *m = &c->u.matmul;
    if (c->kind != HN_CALL_MATMUL || m->groups < 1 || m->groups > INT32_MAX)
        return HN_RAISE(dg, HONE_E_FORMAT, "cuBLASLt computes products alone");
    if ((m->a_dtype || m->b_dtype) && (!is_f8(m->a_dtype) || !is_f8(m->b_dtype) || m->turns))
        return HN_RAISE(dg, HONE_E_FORMAT, "damaged library call: a product of dtypes %u and %u", m->a_dtype, m->b_dtype);
    if (!m->turns || can_turn(c)) return HONE_OK;
    return HN_RAISE(dg, HONE_E_FORMAT, "damaged library call: %lld rows of %lld columns in %lld turns", (long long)m->m,
                    (long long)m->n, (long long)m->turns);
}

static hone_status check_status(int r, const char *doing, hn_diag *dg)
{
    if (r == 0) return HONE_OK;
    return HN_RAISE(dg, r == 3 ? HONE_E_NOMEM : HONE_E_UNSUPPORTED, "cuBLASLt failed while %s (status %d)", doing, r);
}

static int type_of(uint32_t dtype)
{
    switch (dtype) {
    case HN_F16: return LT_R_16F;
    case HN_BF16: return LT_R_16BF;
    case HN_F8E4M3FN: return LT_R_8F_E4M3;
    case HN_F8E5M2: return LT_R_8F_E5M2;
    default: return LT_R_32F;
    }
}

/* A row-major matrix of rows x columns, each so many elements behind the one before. */
typedef struct matrix {
    uint32_t dtype;
    int64_t rows, columns, line, step; /* step: to the next group's */
} matrix;

/* It is the library's columns x rows. */
static hone_status layout(lt_layout **ret, matrix x, int64_t groups, hn_diag *dg)
{
    const int32_t g = (int32_t)groups;
    const int64_t line = x.line ? x.line : x.columns;
    HN_TRY(check_status(lt.layout_create(ret, type_of(x.dtype), (uint64_t)x.columns, (uint64_t)x.rows, line), "describing an operand", dg));
    if (g == 1) return HONE_OK;
    HN_TRY(check_status(lt.layout_set(*ret, LT_LAYOUT_GROUPS, &g, sizeof(g)), "describing a batch", dg));
    return check_status(lt.layout_set(*ret, LT_LAYOUT_STEP, &x.step, sizeof(x.step)), "describing a batch", dg);
}

static hone_status set_desc(product *p, int attribute, const void *v, size_t n, hn_diag *dg)
{
    return check_status(lt.desc_set(p->desc, attribute, v, n), "describing a product", dg);
}

static uint32_t epilogue_of(const hn_libcall *c)
{
    const uint32_t act = c->flags & HN_CALL_RELU ? LT_EPILOGUE_RELU : c->flags & HN_CALL_GELU ? LT_EPILOGUE_GELU : 0;
    const uint32_t bits = act | (c->flags & HN_CALL_BIAS ? LT_EPILOGUE_BIAS : 0);
    return bits ? bits : LT_EPILOGUE_NONE;
}

static hone_status describe_layouts(const hn_libcall *c, const hn_libcall_matmul *m, product *p, hn_diag *dg)
{
    const matrix a = { m->a_dtype ? m->a_dtype : c->dtype, m->trans_a ? m->k : m->m, m->trans_a ? m->m : m->k, m->a_line, m->a_step };
    const matrix b = { m->b_dtype ? m->b_dtype : c->dtype, m->trans_b ? m->n : m->k, m->trans_b ? m->k : m->n, m->b_line, m->b_step };
    const matrix d = { c->dtype, m->m, m->n, m->d_line, m->d_step };

    HN_TRY(layout(&p->a, b, m->groups, dg));
    HN_TRY(layout(&p->b, a, m->groups, dg));
    return layout(&p->y, d, m->groups, dg);
}

static hone_status describe(const hn_libcall *c, const hn_libcall_matmul *m, product *p, hn_diag *dg)
{
    const int transposed = LT_OP_T, bias_type = type_of(c->dtype);
    const uint32_t epilogue = epilogue_of(c);
    const void *some = (const void *)(uintptr_t)4096; /* proposals depend on its alignment alone; the true one comes with a run */

    const int compute = c->flags & HN_CALL_TF32 ? LT_COMPUTE_32F_TF32 : LT_COMPUTE_32F;

    HN_TRY(check_status(lt.desc_create(&p->desc, compute, LT_R_32F), "describing a product", dg));
    if (m->trans_b) HN_TRY(set_desc(p, LT_DESC_TRANS_A, &transposed, sizeof(transposed), dg));
    if (m->trans_a) HN_TRY(set_desc(p, LT_DESC_TRANS_B, &transposed, sizeof(transposed), dg));
    HN_TRY(set_desc(p, LT_DESC_EPILOGUE, &epilogue, sizeof(epilogue), dg));
    if (c->flags & HN_CALL_BIAS) {
        HN_TRY(set_desc(p, LT_DESC_BIAS_TYPE, &bias_type, sizeof(bias_type), dg));
        HN_TRY(set_desc(p, LT_DESC_BIAS, &some, sizeof(some), dg));
        if (m->bias_step) HN_TRY(set_desc(p, LT_DESC_BIAS_STEP, &m->bias_step, sizeof(m->bias_step), dg));
    }
    return describe_layouts(c, m, p, dg);
}

static void drop_product(product *p)
{
    if (p->desc) lt.desc_destroy(p->desc);
    if (p->a) lt.layout_destroy(p->a);
    if (p->b) lt.layout_destroy(p->b);
    if (p->y) lt.layout_destroy(p->y);
    *p = (product){ 0 };
}

/* ---- algorithms ---- */
static int wish_for(lt_wish *w, size_t workspace)
{
    /* parts of a split sum are added in f32 and in their order: not in the result's type, as other schemes do */
    const uint32_t align = ALIGN, reduction = LT_REDUCE_AS_COMPUTED;
    int r = lt.wish_set(w, LT_WISH_WORKSPACE, &workspace, sizeof(workspace));
    if (r == 0) r = lt.wish_set(w, LT_WISH_REDUCTION, &reduction, sizeof(reduction));
    for (int i = LT_WISH_ALIGN_A; i <= LT_WISH_ALIGN_D && r == 0; i++)
        r = lt.wish_set(w, i, &align, sizeof(align));
    return r;
}

static hone_status propose(const hn_libcall *c, const product *p, uint32_t rank, lt_algo *ret, hn_diag *dg)
{
    lt_proposal all[MOST_PROPOSALS];
    lt_wish *w = NULL;
    int n = 0;

    memset(all, 0, sizeof(all));
    int r = lt.wish_create(&w);
    if (r == 0) r = wish_for(w, (size_t)c->workspace_bytes);
    if (r == 0) r = lt.propose(lt.handle, p->desc, p->a, p->b, p->y, p->y, w, MOST_PROPOSALS, all, &n);
    if (w) lt.wish_destroy(w);
    for (int i = 0; r == 0 && i < n; i++)
        if (all[i].state == 0 && all[i].workspace_bytes <= (size_t)c->workspace_bytes && rank-- == 0) {
            *ret = all[i].algo;
            return HONE_OK;
        }
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "cuBLASLt has no such algorithm for a product of %lldx%lldx%lld (%d proposed, status %d)",
                    (long long)c->u.matmul.m, (long long)c->u.matmul.n, (long long)c->u.matmul.k, n, r);
}

/* Edges are narrow: the first proposal does. */
static hone_status choose_part(const hn_libcall *c, int part, lt_algo *ret, hn_diag *dg)
{
    const hn_libcall_matmul m = part_of(c, part);
    product p = { 0 };
    hone_status s = describe(c, &m, &p, dg);
    if (s == HONE_OK) s = propose(c, &p, part == MAIN ? c->rank : 0, ret, dg);
    drop_product(&p);
    return s;
}

static hone_status choose(cuda_device *d, hn_libcall *c, hn_str *plan, hn_diag *dg)
{
    lt_algo algo[MOST_PARTS];

    (void)d, (void)plan;
    HN_TRY(check_call(c, dg));
    for (int i = 0; i < n_parts(c); i++) HN_TRY(choose_part(c, i, &algo[i], dg));
    c->n_algo = (uint32_t)n_parts(c) * (uint32_t)sizeof(algo[0]);
    memcpy(c->algo, algo, c->n_algo);
    c->version = version();
    return HONE_OK;
}

static hone_status take_algo(const hn_libcall *c, int part, product *p, hn_diag *dg)
{
    lt_proposal got = { 0 };

    memcpy(&p->algo, c->algo + (size_t)part * sizeof(p->algo), sizeof(p->algo));
    const int r = lt.check(lt.handle, p->desc, p->a, p->b, p->y, p->y, &p->algo, &got);
    if (r == 0 && got.workspace_bytes <= (size_t)c->workspace_bytes) return HONE_OK;
    if (!(c->flags & HN_CALL_FIXED)) return propose(c, p, 0, &p->algo, dg); /* another GPU: its own best one */
    hn_hint(dg, "Build it anew here, or without -core:deterministic=1.");
    return HN_RAISE(dg, HONE_E_DEVICE, "the engine keeps to an algorithm of cuBLASLt that this GPU does not take");
}

static void drop(cuda_device *d, void *state)
{
    product *p = state;
    (void)d;
    for (int i = 0; i < MOST_PARTS; i++) drop_product(&p[i]);
    free(p);
}

static hone_status make_parts(const hn_libcall *c, product *p, hn_diag *dg)
{
    for (int i = 0; i < n_parts(c); i++) {
        const hn_libcall_matmul m = part_of(c, i);
        HN_TRY(describe(c, &m, &p[i], dg));
        HN_TRY(take_algo(c, i, &p[i], dg));
    }
    return HONE_OK;
}

static hone_status make(cuda_device *d, const hn_libcall *c, const hn_str *plan, void **ret, hn_diag *dg)
{
    (void)plan;
    HN_TRY(check_call(c, dg));
    if (c->n_algo != (size_t)n_parts(c) * sizeof(lt_algo)) return HN_RAISE(dg, HONE_E_FORMAT, "an algorithm of %u bytes", c->n_algo);
    product *p = calloc(MOST_PARTS, sizeof(*p));
    if (!p) return HN_NOMEM(dg);
    const hone_status s = make_parts(c, p, dg);
    if (s == HONE_OK) *ret = p;
    else drop(d, p);
    return s;
}

/* ---- runs ---- */
typedef struct operands {
    const uint8_t *a, *b, *addend; /* addend: NULL where nothing is added */
    uint8_t *y;
} operands;

static hone_status multiply(const product *p, const hn_libcall *c, operands o, void *const *buf, cu_stream *s, hn_diag *dg)
{
    const float one = 1, zero = 0, scale = c->u.matmul.scale != 0 ? (float)c->u.matmul.scale : 1;
    const uintptr_t low = HN_CALL_WORKSPACE_ALIGN - 1;
    void *const workspace = (void *)(((uintptr_t)buf[c->n_buf - 1] + low) & ~low);
    const int r = lt.multiply(lt.handle, p->desc, &scale, o.b, p->a, o.a, p->b, o.addend ? &one : &zero, o.addend ? o.addend : o.y, p->y, o.y, p->y,
                              &p->algo, workspace, (size_t)c->workspace_bytes, s);
    if (r == 0) return HONE_OK;
    const hn_libcall_matmul *m = &c->u.matmul;
    return HN_RAISE(dg, HONE_E_DEVICE, "cuBLASLt refused %lld products of %lldx%lldx%lld (status %d, proposal %u, flags %u)",
                    (long long)m->groups, (long long)m->m, (long long)m->n, (long long)m->k, r, c->rank, c->flags);
}

/* A turn's columns begin where its rows meet 16 bytes. */
static operands turn_of(const hn_libcall *c, operands o, int64_t turn)
{
    const hn_libcall_matmul *m = &c->u.matmul;
    const int64_t whole = whole_line(c), column = (whole - turn * m->n % whole) % whole, bytes = hn_dtype_bits((hn_dtype)c->dtype) / 8;
    return (operands){ .a = o.a + turn * m->k * bytes, .b = o.b + column * m->k * bytes, .y = o.y + (turn * m->n + column) * bytes };
}

static hone_status run(cuda_device *d, void *state, const hn_libcall *c, void *const *buf, cu_stream *s, hn_diag *dg)
{
    product *p = state;
    operands o = { .a = buf[0], .b = buf[1], .y = buf[c->n_buf - 2] };
    uint32_t at = 2;

    (void)d;
    if (c->flags & HN_CALL_BIAS) HN_TRY(set_desc(p, LT_DESC_BIAS, &buf[at++], sizeof(buf[0]), dg));
    if (c->flags & HN_CALL_ADD) o.addend = buf[at];
    if (!c->u.matmul.turns) return multiply(&p[MAIN], c, o, buf, s, dg);
    HN_TRY(multiply(&p[EDGES], c, o, buf, s, dg));
    for (int64_t i = 0; i < c->u.matmul.turns; i++) HN_TRY(multiply(&p[MAIN], c, turn_of(c, o, i), buf, s, dg));
    return HONE_OK;
}

const cuda_library hn_cuda_lt = {
    .name = "cuBLASLt",
    .load = load,
    .version = version,
    .print_version = print_version,
    .choose = choose,
    .make = make,
    .drop = drop,
    .run = run,
};
