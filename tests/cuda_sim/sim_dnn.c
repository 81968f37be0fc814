/* cuDNN's backend interface without a GPU: descriptors that keep what they are told and refuse wrong types and orders as the library
 * does, heuristics that propose good engines among such as nobody should take, and convolutions and attention by plain loops. As with the true one
 * there are engines for a convolution, or for one with an addend, a bias and relu in this order, and a proposal may not run: one does
 * not where rows of the result are odd. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/attr.h"
#include "sim_int.h"

enum { OK = 0, NO_MEMORY = 4003, NULL_POINTER = 2002, NOT_FINAL = 2004, BAD_SHAPE = 2008, BAD_TYPE = 2010, INVALID = 2000, UNSUPPORTED = 3000,
       FAILED = 5000 };
enum { POINTWISE, CONVOLUTION, ENGINE, CONFIG, HEURISTICS, PLAN, CHOICE = 7, OP_CONV = 10, OP_POINTWISE = 13, GRAPH = 15, PACK, TENSOR,
       MATMUL, OP_MATMUL, REDUCTION = 21, OP_REDUCTION };
enum { VERSION = 91900, FLOAT = 0, HALF = 2, INT32 = 4, BFLOAT16 = 9, BOOLEAN = 11, RANK = 4, MOST_APPLY = 4, MOST_OPS = 16 };
enum { ADD, MUL, DIV = 6, SUB = 9, EXP = 13, LOG = 15, RELU = 100, CMP_GE = 303, GEN_INDEX = 501, SELECT = 601 }; /* of elements */
enum { REDUCE_ADD = 0, REDUCE_MAX = 3 };
enum { BY_TREE = 3, BY_FALLBACK = 2 };

/* ---- what each kind of descriptor is told ---- */
static const struct rule {
    int kind, attribute, type, elem_bytes;
    int64_t most;
    bool needed;
} rules[] = {
    { POINTWISE, 0, 14, 4, 1, true },     { POINTWISE, 1, 1, 4, 1, true },      { POINTWISE, 2, 10, 4, 1, false },
    { POINTWISE, 9, 3, 8, 1, false },
    { CONVOLUTION, 100, 1, 4, 1, true },  { CONVOLUTION, 101, 7, 4, 1, true },  { CONVOLUTION, 102, 3, 8, 2, true },
    { CONVOLUTION, 103, 3, 8, 2, true },  { CONVOLUTION, 104, 3, 8, 2, true },  { CONVOLUTION, 105, 3, 8, 2, true },
    { CONVOLUTION, 106, 3, 8, 1, true },  { ENGINE, 1300, 15, 8, 1, true },     { ENGINE, 1301, 3, 8, 1, true },
    { CONFIG, 300, 15, 8, 1, true },      { CONFIG, 302, 15, 8, 8, false },     { HEURISTICS, 200, 8, 4, 1, true },
    { HEURISTICS, 201, 15, 8, 1, true },  { PLAN, 400, 0, 8, 1, true },         { PLAN, 401, 15, 8, 1, false },
    { CHOICE, 600, 9, 4, 1, true },       { CHOICE, 601, 3, 8, 1, true },       { OP_CONV, 700, 4, 4, 1, true },
    { OP_CONV, 701, 4, 4, 1, true },      { OP_CONV, 702, 15, 8, 1, true },     { OP_CONV, 703, 15, 8, 1, true },
    { OP_CONV, 704, 15, 8, 1, true },     { OP_CONV, 705, 15, 8, 1, true },     { OP_POINTWISE, 750, 15, 8, 1, true },
    { OP_POINTWISE, 751, 15, 8, 1, true }, { OP_POINTWISE, 752, 15, 8, 1, false }, { OP_POINTWISE, 753, 15, 8, 1, true },
    { OP_POINTWISE, 758, 15, 8, 1, false },
    { GRAPH, 800, 0, 8, 1, true },        { GRAPH, 801, 15, 8, MOST_OPS, true }, { PACK, 1000, 3, 8, 8, true },
    { PACK, 1001, 6, 8, 8, true },        { PACK, 1003, 6, 8, 1, true },        { TENSOR, 900, 3, 8, 1, true },
    { TENSOR, 901, 1, 4, 1, true },       { TENSOR, 902, 3, 8, RANK, true },    { TENSOR, 903, 3, 8, RANK, true },
    { TENSOR, 906, 3, 8, 1, true },       { TENSOR, 907, 2, 1, 1, false },      { TENSOR, 908, 2, 1, 1, false },
    { MATMUL, 1500, 1, 4, 1, true },      { OP_MATMUL, 1520, 15, 8, 1, true },  { OP_MATMUL, 1521, 15, 8, 1, true },
    { OP_MATMUL, 1522, 15, 8, 1, true },  { OP_MATMUL, 1523, 15, 8, 1, true },  { REDUCTION, 1600, 18, 4, 1, true },
    { REDUCTION, 1601, 1, 4, 1, true },   { OP_REDUCTION, 1610, 15, 8, 1, true }, { OP_REDUCTION, 1611, 15, 8, 1, true },
    { OP_REDUCTION, 1612, 15, 8, 1, true },
};

typedef struct attr {
    int64_t n; /* 0: not told */
    uint8_t data[MOST_OPS * 8];
} attr;

/* ---- engines ---- */
typedef struct engine {
    int64_t index, workspace;
    int mode;
    int n_numeric, numeric[2], n_behaviour, behaviour; /* behaviour 0: it is compiled */
    bool attends;
    int n_choice;
    struct { int knob; int64_t value; } choice[2];
} engine;

static const engine engines[] = {
    { .index = 20, .mode = BY_TREE, .n_numeric = 2, .numeric = { 0, 4 } }, /* other bits every time */
    { .index = 21, .mode = BY_TREE, .n_numeric = 2, .numeric = { 0, 7 } }, /* Winograd */
    { .index = 22, .mode = BY_TREE, .n_numeric = 1, .n_choice = 2, .choice = { { 2, 5 }, { 13, 1 } } },
    { .index = 23, .mode = BY_TREE, .n_numeric = 2, .numeric = { 0, 2 } }, /* sums of halves */
    { .index = 24, .mode = BY_TREE, .n_numeric = 1, .workspace = (int64_t)1 << 30 },
    { .index = 25, .mode = BY_TREE, .n_numeric = 1, .n_behaviour = 1 },
    { .index = 26, .mode = BY_TREE, .n_numeric = 1, .n_choice = 1, .choice = { { 2, 8 } }, .workspace = (int64_t)1 << 20 },
    { .index = 27, .mode = BY_FALLBACK },
    { .index = 28, .mode = BY_TREE, .n_numeric = 1, .n_behaviour = 1, .n_choice = 1, .choice = { { 24, 7 } }, .attends = true },
};
enum { FIRST_ENGINE = 20, ODD_ROWS_FAIL = 26 };

/* ---- a graph, taken apart ---- */
typedef struct tensor {
    int64_t id, dim[RANK], stride[RANK], align;
    int type;
    bool is_virtual, by_value;
} tensor;

typedef struct job {
    bool attends;
    tensor x, w, y; /* y: of all operations; of attention queries, keys, result */
    tensor v;       /* values */
    bool causal, late;
    int64_t scale_id, hidden_id, keys_id, queries_id; /* numbers of the host's; 0: the graph has none such */
    float scale, hidden;
    int32_t keys, queries;
    int64_t stride[2], dilation[2], before[2], after[2];
    int n_apply;
    struct { int mode; tensor b; } apply[MOST_APPLY];
    bool rounds; /* f32 operands, as tf32 */
    const uint8_t *at_x, *at_w, *at_v, *at_b[MOST_APPLY];
    uint8_t *at_y;
} job;

_Static_assert(sizeof(job) <= 4096, "what the driver takes");

typedef struct desc {
    int kind;
    bool final;
    attr at[HN_COUNT(rules)];
    job j;              /* GRAPH, PLAN */
    const engine *e;    /* ENGINE, CONFIG, PLAN */
    struct desc *graph; /* ENGINE, CONFIG */
    struct saved {
        int64_t index;
        job j;
    } text; /* PLAN: what another one is made of; not a text here */
    bool from_text;
} desc;

static const struct rule *rule_of(int kind, int attribute)
{
    for (int i = 0; i < HN_COUNT(rules); i++)
        if (rules[i].kind == kind && rules[i].attribute == attribute) return &rules[i];
    return NULL;
}

static const void *told(const desc *d, int attribute)
{
    const attr *a = &d->at[rule_of(d->kind, attribute) - rules];
    return a->n ? a->data : NULL;
}

static int64_t told_n(const desc *d, int attribute)
{
    return d->at[rule_of(d->kind, attribute) - rules].n;
}

static int int_of(const desc *d, int attribute)
{
    int v;
    memcpy(&v, told(d, attribute), sizeof(v));
    return v;
}

static void copy(void *to, const desc *d, int attribute)
{
    const struct rule *r = rule_of(d->kind, attribute);
    memcpy(to, told(d, attribute), (size_t)(told_n(d, attribute) * r->elem_bytes));
}

static desc *desc_of(const desc *d, int attribute, int i)
{
    desc *v = NULL;
    if (told(d, attribute)) memcpy(&v, (const uint8_t *)told(d, attribute) + sizeof(v) * (size_t)i, sizeof(v));
    return v;
}

/* ---- the library itself ---- */
static size_t number_or(const char *variable, size_t dflt)
{
    const char *v = getenv(variable);
    return v ? (size_t)atoi(v) : dflt;
}

API size_t cudnnGetVersion(void);
size_t cudnnGetVersion(void)
{
    return number_or("HONE_SIM_CUDNN", VERSION);
}

API size_t cudnnGetCudartVersion(void);
size_t cudnnGetCudartVersion(void)
{
    return number_or("HONE_SIM_CUDART", 0);
}

API const char *cudnnGetErrorString(int status);
const char *cudnnGetErrorString(int status)
{
    return status >= FAILED ? "EXECUTION_FAILED" : status >= UNSUPPORTED ? "NOT_SUPPORTED" : "BAD_PARAM";
}

API void cudnnGetLastErrorString(char *dst, size_t n);
void cudnnGetLastErrorString(char *dst, size_t n)
{
    if (n) dst[0] = 0;
}

DRIVER(cudnnCreate, void **ret)
{
    static int handle;
    *ret = &handle;
    return OK;
}

DRIVER(cudnnSetStream, void *h, void *stream)
{
    (void)stream;
    return h ? OK : NULL_POINTER;
}

/* ---- descriptors ---- */
DRIVER(cudnnBackendCreateDescriptor, int kind, desc **ret)
{
    *ret = calloc(1, sizeof(**ret));
    if (!*ret) return NO_MEMORY;
    (*ret)->kind = kind;
    return OK;
}

DRIVER(cudnnBackendDestroyDescriptor, desc *d)
{
    free(d);
    return OK;
}

static int take_text(desc *d, int type, int64_t n, const void *v)
{
    if (type != 24 || n != sizeof(d->text) || d->final) return sim_refuse(INVALID);
    memcpy(&d->text, v, sizeof(d->text));
    d->from_text = true;
    return OK;
}

DRIVER(cudnnBackendSetAttribute, desc *d, int attribute, int type, int64_t n, const void *v)
{
    const struct rule *r = d ? rule_of(d->kind, attribute) : NULL;

    if (d && d->kind == PLAN && attribute == 405) return take_text(d, type, n, v);
    if (!r || d->final || n < 1 || n > r->most || !v) return sim_refuse(INVALID);
    if (type != r->type) return sim_refuse(BAD_TYPE);
    attr *a = &d->at[r - rules];
    a->n = n;
    memcpy(a->data, v, (size_t)(n * r->elem_bytes));
    for (int i = 0; type == 15 && i < n; i++)
        if (!desc_of(d, attribute, i) || !desc_of(d, attribute, i)->final) return sim_refuse(NOT_FINAL);
    return OK;
}

static tensor tensor_of(const desc *d)
{
    tensor t = { .type = int_of(d, 901) };

    copy(&t.id, d, 906);
    copy(t.dim, d, 902);
    copy(t.stride, d, 903);
    copy(&t.align, d, 900);
    if (told(d, 907)) copy(&t.is_virtual, d, 907);
    if (told(d, 908)) copy(&t.by_value, d, 908);
    return t;
}

static bool same_dims(const tensor *a, const tensor *b)
{
    return memcmp(a->dim, b->dim, sizeof(a->dim)) == 0;
}

static bool channels_last(const tensor *t)
{
    return t->stride[1] == 1 && t->stride[3] == t->dim[1] && t->stride[2] == t->dim[1] * t->dim[3] && t->stride[0] == t->stride[2] * t->dim[2];
}

static int take_convolution(const desc *op, job *j)
{
    const desc *by = desc_of(op, 702, 0);
    float alpha, beta;

    j->x = tensor_of(desc_of(op, 704, 0)), j->w = tensor_of(desc_of(op, 703, 0)), j->y = tensor_of(desc_of(op, 705, 0));
    copy(&alpha, op, 700), copy(&beta, op, 701);
    copy(j->dilation, by, 102), copy(j->stride, by, 103), copy(j->after, by, 104), copy(j->before, by, 105);
    if (int_of(by, 100) != FLOAT || int_of(by, 101) != 1 || alpha != 1 || beta != 0) return UNSUPPORTED;
    if (!channels_last(&j->x) || !channels_last(&j->w) || !channels_last(&j->y) || j->x.type != j->w.type) return UNSUPPORTED;
    if (j->x.dim[1] % j->w.dim[1] || j->w.dim[0] % (j->x.dim[1] / j->w.dim[1]) || j->y.dim[1] != j->w.dim[0] || j->y.dim[0] != j->x.dim[0])
        return BAD_SHAPE;
    for (int s = 0; s < 2; s++) {
        const int64_t reach = j->dilation[s] * (j->w.dim[s + 2] - 1) + 1, room = j->x.dim[s + 2] + j->before[s] + j->after[s] - reach;
        if (room < 0 || j->y.dim[s + 2] != room / j->stride[s] + 1) return BAD_SHAPE;
    }
    return OK;
}

/* The chain goes on from the tensor that the operation before made, which nothing stores. */
static int take_pointwise(const desc *op, job *j)
{
    const desc *by = desc_of(op, 750, 0), *b = desc_of(op, 752, 0);
    const tensor x = tensor_of(desc_of(op, 751, 0));
    const int mode = int_of(by, 0);

    if (j->n_apply == MOST_APPLY || int_of(by, 1) != FLOAT || !j->y.is_virtual || j->y.type != FLOAT || x.id != j->y.id) return UNSUPPORTED;
    if (mode != ADD && mode != RELU) return UNSUPPORTED;
    if ((mode == ADD) != (b != NULL)) return INVALID;
    j->y = tensor_of(desc_of(op, 753, 0));
    if (!same_dims(&x, &j->y) || !channels_last(&j->y)) return BAD_SHAPE;
    j->apply[j->n_apply].mode = mode;
    if (b) j->apply[j->n_apply].b = tensor_of(b);
    j->n_apply++;
    return OK;
}

static bool same_dims_but(const tensor *a, const tensor *b, int axis)
{
    for (int i = 0; i < RANK; i++)
        if (i != axis && a->dim[i] != b->dim[i]) return false;
    return true;
}

/* ---- attention, of the operations that it consists of, in the one order ---- */
typedef struct reader {
    const desc *graph;
    int at;    /* operations taken */
    int wrong; /* the first thing that is not as it should be; OK */
} reader;

static void want(reader *r, bool as_it_should_be, int otherwise)
{
    if (r->wrong == OK && !as_it_should_be) r->wrong = otherwise;
}

/* The next operation; NULL: it is of another kind. */
static const desc *next_op(reader *r, int kind)
{
    const bool more = r->wrong == OK && r->at < told_n(r->graph, 801);
    const desc *op = more ? desc_of(r->graph, 801, r->at) : NULL;

    want(r, op && op->kind == kind, UNSUPPORTED);
    r->at++;
    return r->wrong == OK ? op : NULL;
}

static tensor operand_of(const desc *op, int attribute)
{
    return desc_of(op, attribute, 0) ? tensor_of(desc_of(op, attribute, 0)) : (tensor){ .id = 0 };
}

/* A tensor that nothing stores, of that type, which a later operation reads. */
static void want_between(reader *r, const tensor *t, int type)
{
    want(r, t->is_virtual && t->type == type, UNSUPPORTED);
}

/* y of the next operation: mode of x, and of b where it is not NULL. */
static tensor next_pointwise(reader *r, int mode, const tensor *x, const tensor *b, int type)
{
    const desc *op = next_op(r, OP_POINTWISE);
    if (!op) return (tensor){ .id = 0 };
    const tensor y = operand_of(op, 753);

    want(r, int_of(desc_of(op, 750, 0), 0) == mode && operand_of(op, 751).id == x->id && operand_of(op, 752).id == (b ? b->id : 0), UNSUPPORTED);
    want(r, y.dim[3] == (x->dim[3] == 1 && b ? b->dim[3] : x->dim[3]), BAD_SHAPE);
    want_between(r, &y, type);
    return y;
}

/* A number of the host's behind the last operation that was taken. */
static int64_t number_of(reader *r, const desc *op, int type)
{
    const tensor b = op ? operand_of(op, 752) : (tensor){ .id = 0 };

    want(r, b.by_value && b.type == type && b.dim[0] * b.dim[1] * b.dim[2] * b.dim[3] == 1, UNSUPPORTED);
    return b.id;
}

static const desc *op_at(const reader *r, int back)
{
    const int i = r->at - back;
    return i >= 0 && i < told_n(r->graph, 801) ? desc_of(r->graph, 801, i) : NULL;
}

/* y of the next operation: x and a number. */
static tensor next_with_number(reader *r, int mode, const tensor *x, int type, int64_t *ret_id)
{
    const desc *op = op_at(r, 0);
    const tensor b = op && op->kind == OP_POINTWISE ? operand_of(op, 752) : (tensor){ .id = 0 };
    const tensor y = next_pointwise(r, mode, x, &b, type);

    *ret_id = number_of(r, op_at(r, 1), type);
    return y;
}

static tensor next_index(reader *r, const tensor *x, int64_t axis)
{
    const tensor y = next_pointwise(r, GEN_INDEX, x, NULL, INT32);
    int64_t along = -1;

    if (r->wrong == OK && told(desc_of(op_at(r, 1), 750, 0), 9)) copy(&along, desc_of(op_at(r, 1), 750, 0), 9);
    want(r, along == axis, UNSUPPORTED);
    return y;
}

static tensor next_reduction(reader *r, int mode, const tensor *x)
{
    const desc *op = next_op(r, OP_REDUCTION);
    if (!op) return (tensor){ .id = 0 };
    const tensor y = operand_of(op, 1611);

    want(r, int_of(desc_of(op, 1612, 0), 1600) == mode && operand_of(op, 1610).id == x->id, UNSUPPORTED);
    want(r, y.dim[3] == 1 && same_dims_but(x, &y, 3), BAD_SHAPE);
    want_between(r, &y, FLOAT);
    return y;
}

static tensor next_product(reader *r, tensor *ret_a, tensor *ret_b)
{
    const desc *op = next_op(r, OP_MATMUL);
    if (!op) return (tensor){ .id = 0 };
    const tensor y = operand_of(op, 1522);

    *ret_a = operand_of(op, 1520), *ret_b = operand_of(op, 1521);
    want(r, int_of(desc_of(op, 1523, 0), 1500) == FLOAT, UNSUPPORTED);
    want(r, ret_a->dim[3] == ret_b->dim[2] && y.dim[2] == ret_a->dim[2] && y.dim[3] == ret_b->dim[3], INVALID);
    return y;
}

/* Rows that are not less than columns see them, others the number. */
static tensor take_mask(reader *r, const tensor *score, job *j)
{
    tensor row = next_index(r, score, 2);
    const tensor column = next_index(r, score, 3);
    const desc *op = op_at(r, 0);

    j->causal = true;
    j->late = op && op->kind == OP_POINTWISE && int_of(desc_of(op, 750, 0), 0) == ADD;
    if (j->late) {
        row = next_with_number(r, ADD, &row, INT32, &j->keys_id);
        row = next_with_number(r, SUB, &row, INT32, &j->queries_id);
    }
    const tensor sees = next_pointwise(r, CMP_GE, &row, &column, BOOLEAN), y = next_with_number(r, SELECT, score, FLOAT, &j->hidden_id);
    if (r->wrong == OK) want(r, operand_of(op_at(r, 1), 758).id == sees.id, UNSUPPORTED);
    return y;
}

/* As the true one it does not know attention without the logarithm of the sums, read or not. */
static tensor take_softmax(reader *r, const tensor *score, int type)
{
    const tensor top = next_reduction(r, REDUCE_MAX, score), less = next_pointwise(r, SUB, score, &top, FLOAT);
    const tensor power = next_pointwise(r, EXP, &less, NULL, FLOAT), sum = next_reduction(r, REDUCE_ADD, &power);
    const tensor log = next_pointwise(r, LOG, &sum, NULL, FLOAT);

    next_pointwise(r, ADD, &top, &log, FLOAT);
    return next_pointwise(r, DIV, &power, &sum, type);
}

static void exchange(tensor *t)
{
    const int64_t dim = t->dim[2], stride = t->stride[2];

    t->dim[2] = t->dim[3], t->stride[2] = t->stride[3];
    t->dim[3] = dim, t->stride[3] = stride;
}

static bool is_row_by_row(const tensor *t)
{
    return t->stride[3] == 1 && t->dim[3] % 8 == 0 && !t->is_virtual && (t->type == HALF || t->type == BFLOAT16);
}

static int take_attention(const desc *g, job *j)
{
    reader r = { .graph = g };
    tensor score = next_product(&r, &j->x, &j->w), weights = { .id = 0 };

    j->attends = true;
    want_between(&r, &score, FLOAT);
    score = next_with_number(&r, MUL, &score, FLOAT, &j->scale_id);
    if (r.wrong == OK && op_at(&r, 0) && op_at(&r, 0)->kind == OP_POINTWISE) score = take_mask(&r, &score, j);
    const tensor made = take_softmax(&r, &score, j->x.type);
    j->y = next_product(&r, &weights, &j->v);
    want(&r, weights.id == made.id && r.at == told_n(g, 801), UNSUPPORTED);
    exchange(&j->w);
    want(&r, is_row_by_row(&j->x) && is_row_by_row(&j->w) && is_row_by_row(&j->v) && is_row_by_row(&j->y), UNSUPPORTED);
    want(&r, j->w.type == j->x.type && j->v.type == j->x.type && j->y.type == j->x.type, UNSUPPORTED);
    want(&r, same_dims_but(&j->x, &j->y, 3) && same_dims_but(&j->w, &j->v, 3) && j->x.dim[0] == j->w.dim[0], BAD_SHAPE);
    want(&r, j->w.dim[1] > 0 && j->x.dim[1] % j->w.dim[1] == 0, BAD_SHAPE);
    return r.wrong;
}

static int finish_graph(desc *g)
{
    job *j = &g->j;
    const int64_t n = told_n(g, 801);

    if (desc_of(g, 801, 0)->kind == OP_MATMUL) return take_attention(g, j);
    if (desc_of(g, 801, 0)->kind != OP_CONV) return UNSUPPORTED;
    int r = take_convolution(desc_of(g, 801, 0), j);
    for (int i = 1; r == OK && i < n; i++)
        r = desc_of(g, 801, i)->kind == OP_POINTWISE ? take_pointwise(desc_of(g, 801, i), j) : UNSUPPORTED;
    return r != OK ? r : j->y.is_virtual || j->y.type != j->x.type ? INVALID : OK;
}

static bool is_bias(const job *j, const tensor *b)
{
    return b->dim[1] == j->y.dim[1] && b->dim[0] * b->dim[2] * b->dim[3] == 1;
}

/* [addend] bias [relu], or nothing. */
static bool is_served(const job *j)
{
    int n_add = 0;

    if (j->n_apply == 0) return true;
    while (n_add < j->n_apply && j->apply[n_add].mode == ADD) n_add++;
    if (n_add < 1 || n_add > 2 || !is_bias(j, &j->apply[n_add - 1].b)) return false;
    if (n_add == 2 && !same_dims(&j->apply[0].b, &j->y)) return false;
    return j->n_apply == n_add || (j->n_apply == n_add + 1 && j->apply[n_add].mode == RELU);
}

static bool serves(const engine *e, const job *j)
{
    return e->attends == j->attends && is_served(j);
}

static int finish_engine(desc *d)
{
    int64_t index;

    copy(&index, d, 1301);
    d->graph = desc_of(d, 1300, 0);
    if (index < FIRST_ENGINE || index >= FIRST_ENGINE + HN_COUNT(engines) || !serves(&engines[index - FIRST_ENGINE], &d->graph->j)) return UNSUPPORTED;
    d->e = &engines[index - FIRST_ENGINE];
    return OK;
}

static int finish_config(desc *d)
{
    int64_t value;

    d->e = desc_of(d, 300, 0)->e, d->graph = desc_of(d, 300, 0)->graph;
    if (told_n(d, 302) != d->e->n_choice) return UNSUPPORTED;
    for (int i = 0; i < d->e->n_choice; i++) {
        copy(&value, desc_of(d, 302, i), 601);
        if (int_of(desc_of(d, 302, i), 600) != d->e->choice[i].knob || value != d->e->choice[i].value) return UNSUPPORTED;
    }
    return OK;
}

static int finish_plan(desc *d)
{
    const int64_t index = d->text.index;

    if (d->from_text == (told(d, 401) != NULL)) return INVALID;
    if (d->from_text && (index < FIRST_ENGINE || index >= FIRST_ENGINE + HN_COUNT(engines))) return UNSUPPORTED;
    d->e = d->from_text ? &engines[index - FIRST_ENGINE] : desc_of(d, 401, 0)->e;
    d->j = d->from_text ? d->text.j : desc_of(d, 401, 0)->graph->j;
    if (!d->from_text && d->e->n_behaviour) sim_counted()->compiled++;
    d->text = (struct saved){ .index = d->e->index, .j = d->j };
    return OK;
}

DRIVER(cudnnBackendFinalize, desc *d)
{
    int r = d ? OK : NULL_POINTER;

    for (int i = 0; r == OK && i < HN_COUNT(rules); i++)
        if (rules[i].kind == d->kind && rules[i].needed && !d->at[i].n) r = INVALID;
    if (r != OK) return sim_refuse(r);
    switch (d->kind) {
    case GRAPH: r = finish_graph(d); break;
    case ENGINE: r = finish_engine(d); break;
    case CONFIG: r = finish_config(d); break;
    case PLAN: r = finish_plan(d); break;
    default: break;
    }
    d->final = r == OK;
    return r == OK ? OK : sim_refuse(r);
}

/* ---- questions ---- */
static void tell(desc *d, int attribute, const void *v)
{
    const struct rule *r = rule_of(d->kind, attribute);
    attr *a = &d->at[r - rules];
    a->n = 1;
    memcpy(a->data, v, (size_t)r->elem_bytes);
}

static int64_t give_configs(const desc *h, int64_t n, desc **ret)
{
    desc *graph = desc_of(h, 201, 0);
    int64_t have = 0;

    for (int i = 0; i < HN_COUNT(engines); i++) {
        if (engines[i].mode != int_of(h, 200) || !serves(&engines[i], &graph->j)) continue;
        if (have < n && ret[have]->final) return -1; /* it is somebody's already */
        if (have < n) ret[have]->e = &engines[i], ret[have]->graph = graph, ret[have]->final = true;
        have++;
    }
    return have;
}

static int64_t give_choices(const desc *config, int64_t n, desc **ret)
{
    for (int i = 0; i < config->e->n_choice && i < n; i++) {
        tell(ret[i], 600, &config->e->choice[i].knob);
        tell(ret[i], 601, &config->e->choice[i].value);
        ret[i]->final = true;
    }
    return config->e->n_choice;
}

static int64_t give_engine(const desc *config, desc *ret)
{
    ret->e = config->e, ret->graph = config->graph, ret->final = true;
    tell(ret, 1301, &config->e->index);
    tell(ret, 1300, &config->graph);
    return 1;
}

static int64_t give(int n_have, const void *have, size_t size, int64_t n, void *ret)
{
    if (n > 0) memcpy(ret, have, size * (size_t)HN_MIN(n_have, n));
    return n_have;
}

DRIVER(cudnnBackendGetAttribute, desc *d, int attribute, int type, int64_t n, int64_t *ret_n, void *ret)
{
    if (!d || !d->final) return sim_refuse(NOT_FINAL);
    const struct rule *r = rule_of(d->kind, attribute);
    switch (attribute) {
    case 202: *ret_n = give_configs(d, n, ret); return *ret_n < 0 ? sim_refuse(INVALID) : OK;
    case 300: *ret_n = give_engine(d, *(desc **)ret); return OK;
    case 302: *ret_n = give_choices(d, n, ret); return OK;
    case 405: *ret_n = give(sizeof(d->text), &d->text, 1, n, ret); return OK;
    case 402: *ret_n = give(1, &d->e->workspace, sizeof(int64_t), n, ret); return OK;
    case 1303: *ret_n = give(d->e->n_numeric, d->e->numeric, sizeof(int), n, ret); return OK;
    case 1305: *ret_n = give(d->e->n_behaviour, &d->e->behaviour, sizeof(int), n, ret); return OK;
    default: break;
    }
    if (!r || r->type != type) return sim_refuse(INVALID);
    *ret_n = give((int)told_n(d, attribute), told(d, attribute), (size_t)r->elem_bytes, n, ret);
    return OK;
}

/* ---- the work ---- */
static int sim_type(const tensor *t)
{
    return t->type == FLOAT ? SIM_F32 : t->type == HALF ? SIM_F16 : SIM_BF16;
}

static float element(const job *j, const tensor *t, const uint8_t *at, const int64_t *i)
{
    int64_t place = 0;
    for (int a = 0; a < RANK; a++) place += t->dim[a] == 1 ? 0 : i[a] * t->stride[a];
    const float f = sim_get(at, sim_type(t), place);
    return j->rounds ? sim_tf32(f) : f;
}

static float sum_at(const job *j, const int64_t *i)
{
    const int64_t channels = j->w.dim[1], columns = j->w.dim[0] / (j->x.dim[1] / channels);
    float sum = 0;

    for (int64_t r = 0; r < j->w.dim[2]; r++)
        for (int64_t s = 0; s < j->w.dim[3]; s++) {
            const int64_t h = i[2] * j->stride[0] - j->before[0] + r * j->dilation[0], w = i[3] * j->stride[1] - j->before[1] + s * j->dilation[1];
            if (h < 0 || h >= j->x.dim[2] || w < 0 || w >= j->x.dim[3]) continue;
            for (int64_t c = 0; c < channels; c++)
                sum += element(j, &j->x, j->at_x, (const int64_t[]){ i[0], i[1] / columns * channels + c, h, w }) *
                       element(j, &j->w, j->at_w, (const int64_t[]){ i[1], c, r, s });
        }
    return sum;
}

/* One row of the result, in two passes over the keys. */
static void attend_row(const job *j, const int64_t *at)
{
    const int64_t head = at[1] / (j->x.dim[1] / j->w.dim[1]), keys = j->w.dim[2], width = j->v.dim[3];
    float *score = calloc((size_t)(keys + width), sizeof(*score)), *sum = score + keys, top = -INFINITY, all = 0;

    if (!score) abort();
    for (int64_t k = 0; k < keys; k++) {
        if (j->causal && at[2] + (j->late ? j->keys - j->queries : 0) < k) {
            score[k] = j->hidden;
            continue;
        }
        for (int64_t d = 0; d < j->x.dim[3]; d++)
            score[k] += element(j, &j->x, j->at_x, (const int64_t[]){ at[0], at[1], at[2], d }) * element(j, &j->w, j->at_w, (const int64_t[]){ at[0], head, k, d });
        score[k] *= j->scale;
        top = fmaxf(top, score[k]);
    }
    for (int64_t k = 0; k < keys; k++) {
        const float p = expf(score[k] - top);
        all += p;
        for (int64_t d = 0; d < width; d++) sum[d] += p * element(j, &j->v, j->at_v, (const int64_t[]){ at[0], head, k, d });
    }
    for (int64_t d = 0; d < width; d++)
        sim_set(j->at_y, sim_type(&j->y), at[0] * j->y.stride[0] + at[1] * j->y.stride[1] + at[2] * j->y.stride[2] + d, sum[d] / all);
    free(score);
}

static void attend(const void *arg)
{
    job j;

    memcpy(&j, arg, sizeof(j));
    for (int64_t b = 0; b < j.y.dim[0]; b++)
        for (int64_t h = 0; h < j.y.dim[1]; h++)
            for (int64_t s = 0; s < j.y.dim[2]; s++) attend_row(&j, (const int64_t[]){ b, h, s });
}

static void compute(const void *arg)
{
    job j;
    int64_t elems = 1, i[RANK];

    memcpy(&j, arg, sizeof(j));
    const bool rounds = j.rounds;
    for (int a = 0; a < RANK; a++) elems *= j.y.dim[a];
    for (int64_t n = 0; n < elems; n++) {
        int64_t rest = n, place = 0;
        for (int a = RANK - 1; a >= 0; rest /= j.y.dim[a], a--) i[a] = rest % j.y.dim[a], place += i[a] * j.y.stride[a];
        j.rounds = rounds;
        float v = sum_at(&j, i);
        j.rounds = false;
        for (int k = 0; k < j.n_apply; k++)
            v = j.apply[k].mode == RELU ? (v < 0 ? 0 : v) : v + element(&j, &j.apply[k].b, j.at_b[k], i);
        sim_set(j.at_y, sim_type(&j.y), place, v);
    }
}

/* Where the tensor is; NULL: the pack does not say, or no such place will do. */
static uint8_t *find(const desc *pack, const tensor *t)
{
    for (int i = 0; i < told_n(pack, 1000); i++) {
        int64_t id;
        uint64_t at;
        memcpy(&id, (const uint8_t *)told(pack, 1000) + 8 * i, sizeof(id));
        memcpy(&at, (const uint8_t *)told(pack, 1001) + 8 * i, sizeof(at));
        if (id == t->id) return (at & MARK) && at % (uint64_t)t->align == 0 ? (uint8_t *)(uintptr_t)(at & ~MARK) : NULL;
    }
    return NULL;
}

/* What the host has there, 4 bytes; id 0: nothing is asked for. */
static bool find_number(const desc *pack, int64_t id, void *ret)
{
    for (int i = 0; id && i < told_n(pack, 1000); i++) {
        int64_t own;
        const void *at;
        memcpy(&own, (const uint8_t *)told(pack, 1000) + 8 * i, sizeof(own));
        memcpy(&at, (const uint8_t *)told(pack, 1001) + 8 * i, sizeof(at));
        if (own == id && at) return memcpy(ret, at, 4) != NULL;
    }
    return id == 0;
}

static bool find_numbers(const desc *pack, job *j)
{
    return find_number(pack, j->scale_id, &j->scale) && find_number(pack, j->hidden_id, &j->hidden) && find_number(pack, j->keys_id, &j->keys) &&
           find_number(pack, j->queries_id, &j->queries);
}

DRIVER(cudnnBackendExecute, void *h, const desc *plan, const desc *pack)
{
    uint64_t work;

    if (!h || !plan || !plan->final || !pack || !pack->final || told_n(pack, 1000) != told_n(pack, 1001)) return sim_refuse(INVALID);
    job j = plan->j;
    copy(&work, pack, 1003);
    if (plan->e->workspace && (!(work & MARK) || work % 256)) return sim_refuse(INVALID);
    if (plan->e->index == ODD_ROWS_FAIL && j.y.dim[3] % 2) return sim_refuse(FAILED);
    j.rounds = j.x.type == FLOAT && plan->e->n_numeric > 0;
    j.at_x = find(pack, &j.x), j.at_w = find(pack, &j.w), j.at_y = find(pack, &j.y);
    bool all = j.at_x && j.at_w && j.at_y;
    for (int i = 0; i < j.n_apply; i++)
        if (j.apply[i].mode == ADD) all &= (j.at_b[i] = find(pack, &j.apply[i].b)) != NULL;
    if (j.attends) all &= (j.at_v = find(pack, &j.v)) != NULL && find_numbers(pack, &j);
    return all ? sim_take_library(j.attends ? attend : compute, &j, sizeof(j)) ? FAILED : OK : sim_refuse(INVALID);
}
