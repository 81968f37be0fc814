/* cuBLASLt without a GPU: three proposals a product, each with more workspace than the one before, and products by plain loops.
 * Wrong use is answered as the library answers it; and, as happens with the true one, a proposal may not run: the second does not
 * where rows are odd. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim_int.h"

enum { OK = 0, NO_MEMORY = 3, INVALID = 7, UNSUPPORTED = 15 };
enum { TF32 = 77 /* a way to compute */, F32 = SIM_F32, PROPOSALS = 3, VERSION = 130100 };

typedef struct desc {
    int compute, scale, trans_a, trans_b, bias_type;
    uint32_t epilogue;
    uint64_t bias;
    int64_t bias_step;
} desc;

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld, step;
    int32_t groups;
} layout;

typedef struct wish {
    size_t workspace;
    uint32_t align[4], reduction;
} wish;

typedef struct algo {
    uint64_t data[8]; /* place, alignment that it takes */
} algo;

typedef struct proposal {
    algo a;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} proposal;

API size_t cublasLtGetVersion(void);
size_t cublasLtGetVersion(void)
{
    return VERSION;
}

DRIVER(cublasLtCreate, void **ret)
{
    static int handle;
    *ret = &handle;
    return OK;
}

/* ---- descriptions ---- */
DRIVER(cublasLtMatmulDescCreate, desc **ret, int compute, int scale)
{
    *ret = calloc(1, sizeof(**ret));
    if (*ret) **ret = (desc){ .compute = compute, .scale = scale, .bias_type = -1, .epilogue = 1 };
    return *ret ? OK : NO_MEMORY;
}

DRIVER(cublasLtMatmulDescDestroy, desc *d)
{
    free(d);
    return OK;
}

static int put(void *to, size_t size, const void *v, size_t n)
{
    if (n != size) return INVALID;
    memcpy(to, v, n);
    return OK;
}

DRIVER(cublasLtMatmulDescSetAttribute, desc *d, int attribute, const void *v, size_t n)
{
    switch (attribute) {
    case 3: return put(&d->trans_a, sizeof(d->trans_a), v, n);
    case 4: return put(&d->trans_b, sizeof(d->trans_b), v, n);
    case 7: return put(&d->epilogue, sizeof(d->epilogue), v, n);
    case 8: return put(&d->bias, sizeof(d->bias), v, n);
    case 10: return put(&d->bias_step, sizeof(d->bias_step), v, n);
    case 26: return put(&d->bias_type, sizeof(d->bias_type), v, n);
    default: return INVALID;
    }
}

DRIVER(cublasLtMatrixLayoutCreate, layout **ret, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    if (ld < (int64_t)rows) return INVALID;
    *ret = calloc(1, sizeof(**ret));
    if (*ret) **ret = (layout){ .type = type, .rows = rows, .columns = columns, .ld = ld, .groups = 1 };
    return *ret ? OK : NO_MEMORY;
}

DRIVER(cublasLtMatrixLayoutDestroy, layout *l)
{
    free(l);
    return OK;
}

DRIVER(cublasLtMatrixLayoutSetAttribute, layout *l, int attribute, const void *v, size_t n)
{
    switch (attribute) {
    case 5: return put(&l->groups, sizeof(l->groups), v, n);
    case 6: return put(&l->step, sizeof(l->step), v, n);
    default: return INVALID;
    }
}

DRIVER(cublasLtMatmulPreferenceCreate, wish **ret)
{
    *ret = calloc(1, sizeof(**ret));
    return *ret ? OK : NO_MEMORY;
}

DRIVER(cublasLtMatmulPreferenceDestroy, wish *w)
{
    free(w);
    return OK;
}

DRIVER(cublasLtMatmulPreferenceSetAttribute, wish *w, int attribute, const void *v, size_t n)
{
    if (attribute == 1) return put(&w->workspace, sizeof(w->workspace), v, n);
    if (attribute == 3) return put(&w->reduction, sizeof(w->reduction), v, n);
    return attribute >= 5 && attribute <= 8 ? put(&w->align[attribute - 5], sizeof(w->align[0]), v, n) : INVALID;
}

/* ---- what it can do ---- */
static uint64_t rows_of(const layout *l, int trans)
{
    return trans ? l->columns : l->rows;
}

static uint64_t columns_of(const layout *l, int trans)
{
    return trans ? l->rows : l->columns;
}

static int is_f8(int type)
{
    return type == SIM_E4M3 || type == SIM_E5M2;
}

/* Both k innermost, lines of whole 16 bytes, one of them of E4M3; a bias beside f32 is of bf16. */
static int check_f8(const desc *d, const layout *a, const layout *b, const layout *y)
{
    const int line = y->type == F32 ? 4 : 8;

    if (!is_f8(b->type) || (a->type == SIM_E5M2 && b->type == SIM_E5M2) || is_f8(y->type)) return UNSUPPORTED;
    if (!d->trans_a || d->trans_b || d->compute != 68) return UNSUPPORTED;
    if (a->rows % 16 || a->ld % 16 || b->ld % 16 || y->rows % line || y->ld % line) return UNSUPPORTED;
    return (d->epilogue & 4) && d->bias_type != (y->type == F32 ? SIM_BF16 : y->type) ? UNSUPPORTED : OK;
}

static int check_types(const desc *d, const layout *a, const layout *b, const layout *c, const layout *y)
{
    if (d->scale != F32 || c->type != y->type) return UNSUPPORTED;
    if (is_f8(a->type)) return check_f8(d, a, b, y);
    return (d->compute != 68 && (d->compute != TF32 || a->type != F32)) || a->type != b->type || a->type != y->type ? UNSUPPORTED : OK;
}

static int check_shapes(const desc *d, const layout *a, const layout *b, const layout *c, const layout *y)
{
    if (rows_of(a, d->trans_a) != y->rows || columns_of(b, d->trans_b) != y->columns) return INVALID;
    if (columns_of(a, d->trans_a) != rows_of(b, d->trans_b) || c->rows != y->rows || c->columns != y->columns) return INVALID;
    if (a->groups != y->groups || b->groups != y->groups) return INVALID;
    if (check_types(d, a, b, c, y) != OK) return UNSUPPORTED;
    if (d->epilogue != 1 && (d->epilogue & ~38u || (d->epilogue & 34) == 34)) return UNSUPPORTED;
    return (d->epilogue & 4) && (!d->bias || (d->bias_type != y->type && !is_f8(a->type))) ? INVALID : OK;
}

static proposal propose(int i, uint32_t align)
{
    return (proposal){ .a.data = { 100 + (uint64_t)i, align }, .workspace = (size_t)i << 20, .waves = 1 };
}

DRIVER(cublasLtMatmulAlgoGetHeuristic, void *h, const desc *d, const layout *a, const layout *b, const layout *c, const layout *y,
       const wish *w, int most, proposal *ret, int *ret_n)
{
    const int r = check_shapes(d, a, b, c, y);

    *ret_n = 0;
    if (!h || r != OK || w->reduction != 2) return r ? r : INVALID; /* sums of halves are for nobody here */
    for (int i = 0; i < PROPOSALS && i < most; i++)
        if (((size_t)i << 20) <= w->workspace) ret[(*ret_n)++] = propose(i, w->align[0]);
    return OK;
}

DRIVER(cublasLtMatmulAlgoCheck, void *h, const desc *d, const layout *a, const layout *b, const layout *c, const layout *y,
       const algo *x, proposal *ret)
{
    if (x->data[0] < 100 || x->data[0] >= 100 + PROPOSALS) return UNSUPPORTED;
    *ret = propose((int)x->data[0] - 100, (uint32_t)x->data[1]);
    return h ? check_shapes(d, a, b, c, y) : INVALID;
}

/* ---- the work ---- */
typedef struct job {
    desc d;
    layout a, b, y;
    const uint8_t *at_a, *at_b, *at_c, *bias;
    uint8_t *at_y;
    float alpha, beta;
} job;

static float element(const job *j, const uint8_t *at, const layout *l, int trans, int64_t g, int64_t r, int64_t c)
{
    const float f = sim_get(at, l->type, g * l->step + (trans ? c + r * l->ld : r + c * l->ld));
    return j->d.compute == TF32 ? sim_tf32(f) : f;
}

static float finish(const job *j, float sum, int64_t group, int64_t row, int64_t place)
{
    float v = j->alpha * sum;
    if (j->beta != 0) v += j->beta * sim_get(j->at_c, j->y.type, place);
    if (j->d.epilogue & 4) v += sim_get(j->bias, j->d.bias_type, group * j->d.bias_step + row);
    if (j->d.epilogue & 2) v = v < 0 ? 0 : v;
    if (j->d.epilogue & 32) v = 0.5f * v * (1 + tanhf(0.7978845608f * (v + 0.044715f * v * v * v)));
    return v;
}

static void multiply(const void *arg)
{
    job j;
    memcpy(&j, arg, sizeof(j));
    const int64_t depth = (int64_t)columns_of(&j.a, j.d.trans_a);
    for (int64_t g = 0; g < j.y.groups; g++)
        for (int64_t c = 0; c < (int64_t)j.y.columns; c++)
            for (int64_t r = 0; r < (int64_t)j.y.rows; r++) {
                float sum = 0;
                for (int64_t k = 0; k < depth; k++)
                    sum += element(&j, j.at_a, &j.a, j.d.trans_a, g, r, k) * element(&j, j.at_b, &j.b, j.d.trans_b, g, k, c);
                const int64_t place = g * j.y.step + r + c * j.y.ld;
                sim_set(j.at_y, j.y.type, place, finish(&j, sum, g, r, place));
            }
}

static const uint8_t *host(uint64_t p)
{
    return (const uint8_t *)(uintptr_t)(p & ~MARK);
}

DRIVER(cublasLtMatmul, void *h, const desc *d, const float *alpha, uint64_t a, const layout *la, uint64_t b, const layout *lb,
       const float *beta, uint64_t c, const layout *lc, uint64_t y, const layout *ly, const algo *x, uint64_t work, size_t work_bytes,
       void *stream)
{
    const uint64_t place = x ? x->data[0] - 100 : PROPOSALS;

    (void)stream;
    if (!h || place >= PROPOSALS || work_bytes < (size_t)place << 20 || (place && (!(work & MARK) || work % 256))) return sim_refuse(INVALID);
    if (!(a & b & c & y & MARK) || ((d->epilogue & 4) && !(d->bias & MARK))) return sim_refuse(INVALID);
    if ((a | b | c | y | (d->epilogue & 4 ? d->bias : 0)) % x->data[1]) return sim_refuse(INVALID);
    const int r = check_shapes(d, la, lb, lc, ly);
    if (r != OK || (place == 1 && ly->rows % 2)) return sim_refuse(r ? r : INVALID);
    const job j = { .d = *d, .a = *la, .b = *lb, .y = *ly, .at_a = host(a), .at_b = host(b), .at_c = host(c), .bias = host(d->bias),
                    .at_y = (uint8_t *)(uintptr_t)(y & ~MARK), .alpha = *alpha, .beta = *beta };
    return sim_take_library(multiply, &j, sizeof(j)) ? INVALID : OK;
}
