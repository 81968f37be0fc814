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

/* ---- one product, described ---- */
typedef struct product {
    lt_desc *desc;
    lt_layout *a, *b, *y; /* the library's: our b, our a, our result */
    lt_algo algo;
} product;

static hone_status check_status(int r, const char *doing, hn_diag *dg)
{
    if (r == 0) return HONE_OK;
    return HN_RAISE(dg, r == 3 ? HONE_E_NOMEM : HONE_E_UNSUPPORTED, "cuBLASLt failed while %s (status %d)", doing, r);
}

static int type_of(uint32_t dtype)
{
    return dtype == HN_F16 ? LT_R_16F : dtype == HN_BF16 ? LT_R_16BF : LT_R_32F;
}

/* A row-major matrix of rows x columns is the library's columns x rows. */
static hone_status layout(lt_layout **ret, const hn_libcall *c, int64_t rows, int64_t columns, int64_t line, int64_t step, hn_diag *dg)
{
    const int32_t groups = (int32_t)c->u.matmul.groups;

    HN_TRY(check_status(lt.layout_create(ret, type_of(c->dtype), (uint64_t)columns, (uint64_t)rows, line), "describing an operand", dg));
    if (groups == 1) return HONE_OK;
    HN_TRY(check_status(lt.layout_set(*ret, LT_LAYOUT_GROUPS, &groups, sizeof(groups)), "describing a batch", dg));
    return check_status(lt.layout_set(*ret, LT_LAYOUT_STEP, &step, sizeof(step)), "describing a batch", dg);
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

static hone_status describe(const hn_libcall *c, product *p, hn_diag *dg)
{
    const hn_libcall_matmul *m = &c->u.matmul;
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
    const int64_t b_columns = m->trans_b ? m->k : m->n, a_columns = m->trans_a ? m->m : m->k;
    HN_TRY(layout(&p->a, c, m->trans_b ? m->n : m->k, b_columns, m->b_line ? m->b_line : b_columns, m->b_step, dg));
    HN_TRY(layout(&p->b, c, m->trans_a ? m->k : m->m, a_columns, a_columns, m->a_step, dg));
    return layout(&p->y, c, m->m, m->n, m->n, m->d_step, dg);
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

static hone_status choose(cuda_device *d, hn_libcall *c, hn_str *plan, hn_diag *dg)
{
    product p = { 0 };
    lt_algo algo;

    (void)d, (void)plan;
    hone_status s = describe(c, &p, dg);
    if (s == HONE_OK) s = propose(c, &p, c->rank, &algo, dg);
    drop_product(&p);
    if (s != HONE_OK) return s;
    memcpy(c->algo, &algo, sizeof(algo));
    c->n_algo = sizeof(algo);
    c->version = version();
    return HONE_OK;
}

static hone_status take_algo(const hn_libcall *c, product *p, hn_diag *dg)
{
    lt_proposal got = { 0 };

    if (c->n_algo != sizeof(p->algo)) return HN_RAISE(dg, HONE_E_FORMAT, "an algorithm of %u bytes", c->n_algo);
    memcpy(&p->algo, c->algo, sizeof(p->algo));
    const int r = lt.check(lt.handle, p->desc, p->a, p->b, p->y, p->y, &p->algo, &got);
    if (r == 0 && got.workspace_bytes <= (size_t)c->workspace_bytes) return HONE_OK;
    if (!(c->flags & HN_CALL_FIXED)) return propose(c, p, 0, &p->algo, dg); /* another GPU: its own best one */
    hn_hint(dg, "Build it anew here, or without -core:deterministic=1.");
    return HN_RAISE(dg, HONE_E_DEVICE, "the engine keeps to an algorithm of cuBLASLt that this GPU does not take");
}

static hone_status make(cuda_device *d, const hn_libcall *c, const hn_str *plan, void **ret, hn_diag *dg)
{
    (void)d, (void)plan;
    if (c->kind != HN_CALL_MATMUL || c->u.matmul.groups < 1 || c->u.matmul.groups > INT32_MAX)
        return HN_RAISE(dg, HONE_E_FORMAT, "cuBLASLt computes products alone");
    product *p = calloc(1, sizeof(*p));
    if (!p) return HN_NOMEM(dg);
    hone_status s = describe(c, p, dg);
    if (s == HONE_OK) s = take_algo(c, p, dg);
    if (s != HONE_OK) {
        drop_product(p);
        free(p);
        return s;
    }
    *ret = p;
    return HONE_OK;
}

static void drop(cuda_device *d, void *state)
{
    (void)d;
    drop_product(state);
    free(state);
}

/* ---- runs ---- */
static hone_status run(cuda_device *d, void *state, const hn_libcall *c, void *const *buf, cu_stream *s, hn_diag *dg)
{
    product *p = state;
    const float one = 1, zero = 0;
    uint32_t at = 2;

    (void)d;
    if (c->flags & HN_CALL_BIAS) HN_TRY(set_desc(p, LT_DESC_BIAS, &buf[at++], sizeof(buf[0]), dg));
    const bool adds = c->flags & HN_CALL_ADD;
    void *const y = buf[c->n_buf - 2];
    const uintptr_t low = HN_CALL_WORKSPACE_ALIGN - 1;
    void *const workspace = (void *)(((uintptr_t)buf[c->n_buf - 1] + low) & ~low);
    const void *const addend = adds ? buf[at] : y;
    const int r = lt.multiply(lt.handle, p->desc, &one, buf[1], p->a, buf[0], p->b, adds ? &one : &zero, addend, p->y, y, p->y, &p->algo,
                              workspace, (size_t)c->workspace_bytes, s);
    if (r == 0) return HONE_OK;
    const hn_libcall_matmul *m = &c->u.matmul;
    return HN_RAISE(dg, HONE_E_DEVICE, "cuBLASLt refused %lld products of %lldx%lldx%lld (status %d, proposal %u, flags %u)",
                    (long long)m->groups, (long long)m->m, (long long)m->n, (long long)m->k, r, c->rank, c->flags);
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
