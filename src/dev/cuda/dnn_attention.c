/* Attention as cuDNN takes it in every version 9: not one operation but those that it consists of, which the library finds again and
 * computes in one kernel. It knows them by their order and kinds, down to the logarithm that only training reads. */
#include <float.h>
#include <math.h>

#include "core/core.h"
#include "dev/cuda/dnn_int.h"

typedef struct attention {
    dnn_maker *m;
    dnn_desc **op;
    int n_op;
    int64_t n_virtual;
    int64_t scores[HN_DNN_RANK], scores_stride[HN_DNN_RANK]; /* of queries by keys */
    int64_t rows[HN_DNN_RANK], rows_stride[HN_DNN_RANK];     /* of a number for each query */
} attention;

/* ---- what is stored nowhere ---- */
static void row_major(const int64_t *dim, int64_t *ret)
{
    ret[HN_DNN_RANK - 1] = 1;
    for (int i = HN_DNN_RANK - 1; i > 0; i--) ret[i - 1] = ret[i] * dim[i];
}

static dnn_desc *scores(attention *k, int type)
{
    return hn_dnn_tensor(k->m, type, HN_DNN_VIRTUAL_ID + k->n_virtual++, k->scores, k->scores_stride, /* is_virtual= */ true);
}

static dnn_desc *rows(attention *k)
{
    return hn_dnn_tensor(k->m, DNN_FLOAT, HN_DNN_VIRTUAL_ID + k->n_virtual++, k->rows, k->rows_stride, /* is_virtual= */ true);
}

/* ---- operations ---- */
static dnn_desc *apply(attention *k, dnn_pointwise p)
{
    k->op[k->n_op++] = hn_dnn_pointwise(k->m, &p);
    return p.y;
}

static dnn_desc *applied(attention *k, int mode, dnn_desc *x, dnn_desc *b)
{
    return apply(k, (dnn_pointwise){ .mode = mode, .compute = DNN_FLOAT, .x = x, .b = b, .y = scores(k, DNN_FLOAT) });
}

static void multiply(attention *k, dnn_desc *a, dnn_desc *b, dnn_desc *c, const char *what)
{
    dnn_desc *by = hn_dnn_new(k->m, DNN_MATMUL), *op;

    hn_dnn_set_int(k->m, by, DNN_MATMUL_COMPUTE, DNN_OF_DTYPE, DNN_FLOAT);
    hn_dnn_finish(k->m, by, what);
    op = hn_dnn_new(k->m, DNN_OP_MATMUL);
    hn_dnn_set_desc(k->m, op, DNN_MULTIPLY_A, a);
    hn_dnn_set_desc(k->m, op, DNN_MULTIPLY_B, b);
    hn_dnn_set_desc(k->m, op, DNN_MULTIPLY_C, c);
    hn_dnn_set_desc(k->m, op, DNN_MULTIPLY_BY, by);
    k->op[k->n_op++] = hn_dnn_finish(k->m, op, what);
}

static dnn_desc *reduced(attention *k, int operator, dnn_desc *x)
{
    static const char what[] = "describing a reduction of attention's rows";
    dnn_desc *by = hn_dnn_new(k->m, DNN_REDUCTION), *y, *op;

    hn_dnn_set_int(k->m, by, DNN_REDUCTION_COMPUTE, DNN_OF_DTYPE, DNN_FLOAT);
    hn_dnn_set_int(k->m, by, DNN_REDUCTION_OPERATOR, DNN_OF_REDUCTION, operator);
    hn_dnn_finish(k->m, by, what);
    y = rows(k);
    op = hn_dnn_new(k->m, DNN_OP_REDUCTION);
    hn_dnn_set_desc(k->m, op, DNN_REDUCE_X, x);
    hn_dnn_set_desc(k->m, op, DNN_REDUCE_Y, y);
    hn_dnn_set_desc(k->m, op, DNN_REDUCE_BY, by);
    k->op[k->n_op++] = hn_dnn_finish(k->m, op, what);
    return y;
}

/* ---- parts ---- */
static dnn_desc *index_along(attention *k, dnn_desc *score, int64_t axis)
{
    return apply(k, (dnn_pointwise){ .mode = DNN_INDEX, .compute = DNN_FLOAT, .axis = axis, .x = score, .y = scores(k, DNN_INT32) });
}

static dnn_desc *shifted(attention *k, int mode, dnn_desc *row, int number)
{
    dnn_desc *by = hn_dnn_number(k->m, DNN_INT32, HN_DNN_NUMBER_ID + number);
    return apply(k, (dnn_pointwise){ .mode = mode, .compute = DNN_INT32, .x = row, .b = by, .y = scores(k, DNN_INT32) });
}

/* Query i sees keys up to i, or, where the last query is to see all of them, up to i + keys - queries. */
static dnn_desc *masked(attention *k, dnn_desc *score, bool is_late)
{
    dnn_desc *row = index_along(k, score, 2), *column = index_along(k, score, 3), *sees, *hidden;

    if (is_late) {
        row = shifted(k, DNN_ADD, row, HN_DNN_KEYS);
        row = shifted(k, DNN_SUBTRACT, row, HN_DNN_QUERIES);
    }
    sees = scores(k, DNN_BOOLEAN);
    apply(k, (dnn_pointwise){ .mode = DNN_NOT_LESS, .compute = DNN_BOOLEAN, .x = row, .b = column, .y = sees });
    hidden = hn_dnn_number(k->m, DNN_FLOAT, HN_DNN_NUMBER_ID + HN_DNN_HIDDEN);
    return apply(k, (dnn_pointwise){ .mode = DNN_SELECT, .compute = DNN_FLOAT, .x = score, .b = hidden, .t = sees,
                                     .y = scores(k, DNN_FLOAT) });
}

/* Weights, of the operands' type. Nobody reads the logarithm of the sum; without it the library does not know attention. */
static dnn_desc *softmax(attention *k, dnn_desc *score, int type)
{
    dnn_desc *top = reduced(k, DNN_MOST, score), *less = applied(k, DNN_SUBTRACT, score, top);
    dnn_desc *power = applied(k, DNN_EXPONENTIAL, less, NULL), *sum = reduced(k, DNN_SUM, power);
    dnn_desc *log = apply(k, (dnn_pointwise){ .mode = DNN_LOGARITHM, .compute = DNN_FLOAT, .x = sum, .y = rows(k) });

    apply(k, (dnn_pointwise){ .mode = DNN_ADD, .compute = DNN_FLOAT, .x = top, .b = log, .y = rows(k) });
    return apply(k, (dnn_pointwise){ .mode = DNN_DIVIDE, .compute = DNN_FLOAT, .x = power, .b = sum, .y = scores(k, type) });
}

/* Keys as the product wants them: their last two axes exchanged, where they lie. */
static dnn_desc *exchanged(dnn_maker *m, int type, int64_t id, const int64_t *dim, const int64_t *stride)
{
    const int64_t d[HN_DNN_RANK] = { dim[0], dim[1], dim[3], dim[2] }, s[HN_DNN_RANK] = { stride[0], stride[1], stride[3], stride[2] };
    return hn_dnn_tensor(m, type, id, d, s, /* is_virtual= */ false);
}

/* Masks that a version of the library takes and does not compute, by what NVIDIA's own front end keeps from it. */
static void check_version(dnn_maker *m, const hn_libcall *c)
{
    enum { LATE_SINCE = 90600, ONE_QUERY_SINCE = 91000 };
    const bool alone = c->u.attention.q[2] == 1;
    const int since = c->flags & HN_CALL_CAUSAL && alone ? ONE_QUERY_SINCE : c->flags & HN_CALL_CAUSAL_LATE ? LATE_SINCE : 0;

    if (hn_dnn.version() >= (size_t)since || m->status != HONE_OK) return;
    m->status = HN_RAISE(m->dg, HONE_E_UNSUPPORTED, "cuDNN computes attention under such a mask from version 9.%d on", since / 100 % 100);
}

int hn_dnn_attention(dnn_maker *m, const hn_libcall *c, dnn_desc **op)
{
    const hn_libcall_attention *a = &c->u.attention;
    const int type = hn_dnn_type(c->dtype);
    attention k = { .m = m, .op = op, .scores = { a->q[0], a->q[1], a->q[2], a->k[2] }, .rows = { a->q[0], a->q[1], a->q[2], 1 } };
    dnn_desc *score;

    check_version(m, c);
    row_major(k.scores, k.scores_stride);
    row_major(k.rows, k.rows_stride);
    dnn_desc *q = hn_dnn_tensor(m, type, HN_DNN_ID, a->q, a->q_stride, false);
    dnn_desc *key = exchanged(m, type, HN_DNN_ID + 1, a->k, a->k_stride);
    dnn_desc *v = hn_dnn_tensor(m, type, HN_DNN_ID + 2, a->v, a->v_stride, false);
    dnn_desc *y = hn_dnn_tensor(m, type, HN_DNN_ID + 3, a->y, a->y_stride, false);
    score = scores(&k, DNN_FLOAT);
    multiply(&k, q, key, score, "describing queries by keys");
    score = applied(&k, DNN_MULTIPLY, score, hn_dnn_number(m, DNN_FLOAT, HN_DNN_NUMBER_ID + HN_DNN_SCALE));
    if (c->flags & HN_CALL_CAUSAL) score = masked(&k, score, c->flags & HN_CALL_CAUSAL_LATE);
    multiply(&k, softmax(&k, score, type), v, y, "describing weights by values");
    return k.n_op;
}

int hn_dnn_attention_numbers(const hn_libcall *c, dnn_number *ret)
{
    enum { INFINITY_SINCE = 91000 }; /* the lowest number before, as NVIDIA's own front end has it */
    const hn_libcall_attention *a = &c->u.attention;

    ret[HN_DNN_SCALE].f = (float)a->scale;
    ret[HN_DNN_HIDDEN].f = hn_dnn.version() < INFINITY_SINCE ? -FLT_MAX : -INFINITY;
    ret[HN_DNN_KEYS].i = (int32_t)a->k[2];
    ret[HN_DNN_QUERIES].i = (int32_t)a->q[2];
    return !(c->flags & HN_CALL_CAUSAL) ? HN_DNN_HIDDEN : !(c->flags & HN_CALL_CAUSAL_LATE) ? HN_DNN_KEYS : HN_DNN_N_NUMBER;
}
