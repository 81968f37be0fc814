/* A call's work as cuDNN describes it: descriptors of tensors, operations over them, a graph of operations. */
#include "dev/cuda/dnn_int.h"

#include <stdio.h>

#include "core/core.h"

enum { ALIGN = 16 /* what every buffer starts at */, RANK = 4 };

/* ---- descriptors ---- */
bool hn_dnn_failed(dnn_maker *m, int answer, const char *doing)
{
    enum { NO_HOST_MEMORY = 4003 };
    char why[200] = "";

    if (answer == 0) return false;
    if (m->status != HONE_OK) return true;
    hn_dnn.error_detail(why, sizeof(why));
    const hone_status s = answer == NO_HOST_MEMORY ? HONE_E_NOMEM : m->means ? m->means : HONE_E_UNSUPPORTED;
    m->status = HN_RAISE(m->dg, s, "cuDNN failed while %s (%s%s%s)", doing, hn_dnn.error_text(answer), why[0] ? ": " : "", why);
    return true;
}

dnn_desc *hn_dnn_new(dnn_maker *m, int kind)
{
    dnn_desc *d = NULL;

    if (m->status != HONE_OK) return NULL;
    if (m->n == HN_DNN_MOST) {
        m->status = HN_RAISE(m->dg, HONE_E_UNSUPPORTED, "cuDNN would take more than %d descriptors", HN_DNN_MOST);
        return NULL;
    }
    if (hn_dnn_failed(m, hn_dnn.desc_create(kind, &d), "making a descriptor")) return NULL;
    return m->at[m->n++] = d;
}

void hn_dnn_set(dnn_maker *m, dnn_desc *d, int attribute, int type, int64_t n, const void *v)
{
    char doing[64];

    if (m->status != HONE_OK) return;
    const int r = hn_dnn.desc_set(d, attribute, type, n, v);
    if (r == 0) return;
    snprintf(doing, sizeof(doing), "setting attribute %d", attribute);
    hn_dnn_failed(m, r, doing);
}

void hn_dnn_set_int(dnn_maker *m, dnn_desc *d, int attribute, int type, int v)
{
    hn_dnn_set(m, d, attribute, type, 1, &v);
}

void hn_dnn_set_desc(dnn_maker *m, dnn_desc *d, int attribute, dnn_desc *v)
{
    hn_dnn_set(m, d, attribute, DNN_OF_DESC, 1, &v);
}

dnn_desc *hn_dnn_finish(dnn_maker *m, dnn_desc *d, const char *what)
{
    if (m->status == HONE_OK) hn_dnn_failed(m, hn_dnn.desc_finish(d), what);
    return m->status == HONE_OK ? d : NULL;
}

int64_t hn_dnn_get(dnn_maker *m, dnn_desc *d, int attribute, int type, int64_t n, void *ret)
{
    int64_t have = 0;

    if (m->status != HONE_OK || hn_dnn.desc_get(d, attribute, type, n, &have, ret) != 0) return -1;
    return have;
}

void hn_dnn_drop_all(dnn_maker *m)
{
    while (m->n > 0) hn_dnn.desc_destroy(m->at[--m->n]);
    m->status = HONE_OK;
}

/* ---- tensors ---- */
static int type_of(uint32_t dtype)
{
    return dtype == HN_F16 ? DNN_HALF : dtype == HN_BF16 ? DNN_BFLOAT16 : DNN_FLOAT;
}

/* flag: an attribute that is yes or no. */
static dnn_desc *described(dnn_maker *m, int type, int64_t id, int64_t align, const int64_t *dim, const int64_t *stride, int flag, bool on)
{
    dnn_desc *t = hn_dnn_new(m, DNN_TENSOR);

    hn_dnn_set(m, t, DNN_TENSOR_ID, DNN_OF_INT64, 1, &id);
    hn_dnn_set_int(m, t, DNN_TENSOR_DTYPE, DNN_OF_DTYPE, type);
    hn_dnn_set(m, t, DNN_TENSOR_ALIGN, DNN_OF_INT64, 1, &align);
    hn_dnn_set(m, t, DNN_TENSOR_DIMS, DNN_OF_INT64, RANK, dim);
    hn_dnn_set(m, t, DNN_TENSOR_STRIDES, DNN_OF_INT64, RANK, stride);
    hn_dnn_set(m, t, flag, DNN_OF_BOOL, 1, &on);
    return hn_dnn_finish(m, t, "describing a tensor");
}

/* A float that is handed over when the work is done. */
static dnn_desc *number(dnn_maker *m, int64_t id)
{
    static const int64_t one[RANK] = { 1, 1, 1, 1 };
    return described(m, DNN_FLOAT, id, sizeof(float), one, one, DNN_TENSOR_BY_VALUE, true);
}

/* Virtual ones pass between operations and are stored nowhere. */
static dnn_desc *tensor(dnn_maker *m, int type, int64_t id, const int64_t *dim, const int64_t *stride, bool is_virtual)
{
    return described(m, type, id, ALIGN, dim, stride, DNN_TENSOR_VIRTUAL, is_virtual);
}

/* ---- a convolution and what is fused behind it ---- */
typedef struct chain {
    dnn_maker *m;
    const hn_libcall *c;
    dnn_desc *op[4]; /* the convolution, + addend, + bias, relu: the order that the library has kernels for */
    int n_op, left;  /* operations to come */
    int64_t n_virtual;
    dnn_desc *last;
} chain;

enum { VIRTUAL_ID = 100 };

/* What the next operation yields: the last one the call's result, others sums in f32. */
static dnn_desc *result(chain *k)
{
    const hn_libcall_conv *v = &k->c->u.conv;

    if (--k->left == 0) return tensor(k->m, type_of(k->c->dtype), HN_DNN_ID + k->c->n_buf - 2, v->y, v->y_stride, /* is_virtual= */ false);
    return tensor(k->m, DNN_FLOAT, VIRTUAL_ID + k->n_virtual++, v->y, v->y_stride, /* is_virtual= */ true);
}

static void convolve(chain *k, dnn_desc *x, dnn_desc *w)
{
    const hn_libcall_conv *v = &k->c->u.conv;
    const int64_t axes = 2;
    const float one = 1, zero = 0;
    dnn_desc *by = hn_dnn_new(k->m, DNN_CONVOLUTION), *op;

    hn_dnn_set_int(k->m, by, DNN_CONVOLUTION_COMPUTE, DNN_OF_DTYPE, DNN_FLOAT);
    hn_dnn_set_int(k->m, by, DNN_CONVOLUTION_MODE, DNN_OF_CONVOLUTION_MODE, DNN_CROSS_CORRELATION);
    hn_dnn_set(k->m, by, DNN_CONVOLUTION_AXES, DNN_OF_INT64, 1, &axes);
    hn_dnn_set(k->m, by, DNN_CONVOLUTION_DILATION, DNN_OF_INT64, axes, v->dilation);
    hn_dnn_set(k->m, by, DNN_CONVOLUTION_STRIDE, DNN_OF_INT64, axes, v->stride);
    hn_dnn_set(k->m, by, DNN_CONVOLUTION_BEFORE, DNN_OF_INT64, axes, v->before);
    hn_dnn_set(k->m, by, DNN_CONVOLUTION_AFTER, DNN_OF_INT64, axes, v->after);
    hn_dnn_finish(k->m, by, "describing a convolution");
    k->last = result(k);
    op = hn_dnn_new(k->m, DNN_OP_CONVOLUTION);
    hn_dnn_set_desc(k->m, op, DNN_CONVOLVE_BY, by);
    hn_dnn_set_desc(k->m, op, DNN_CONVOLVE_X, x);
    hn_dnn_set_desc(k->m, op, DNN_CONVOLVE_W, w);
    hn_dnn_set_desc(k->m, op, DNN_CONVOLVE_Y, k->last);
    hn_dnn_set(k->m, op, DNN_CONVOLVE_ALPHA, DNN_OF_FLOAT, 1, &one);
    hn_dnn_set(k->m, op, DNN_CONVOLVE_BETA, DNN_OF_FLOAT, 1, &zero);
    k->op[k->n_op++] = hn_dnn_finish(k->m, op, "describing a convolution");
}

/* last = last + b, or an activation of it where b is NULL. */
static void apply(chain *k, int mode, dnn_desc *b)
{
    dnn_desc *by = hn_dnn_new(k->m, DNN_POINTWISE), *y, *op;

    hn_dnn_set_int(k->m, by, DNN_POINTWISE_MODE, DNN_OF_POINTWISE_MODE, mode);
    hn_dnn_set_int(k->m, by, DNN_POINTWISE_COMPUTE, DNN_OF_DTYPE, DNN_FLOAT);
    if (mode == DNN_RELU) hn_dnn_set_int(k->m, by, DNN_POINTWISE_NAN, DNN_OF_NAN, DNN_NAN_GOES_ON);
    hn_dnn_finish(k->m, by, "describing pointwise work");
    y = result(k);
    op = hn_dnn_new(k->m, DNN_OP_POINTWISE);
    hn_dnn_set_desc(k->m, op, DNN_APPLY_BY, by);
    hn_dnn_set_desc(k->m, op, DNN_APPLY_X, k->last);
    if (b) hn_dnn_set_desc(k->m, op, DNN_APPLY_B, b);
    hn_dnn_set_desc(k->m, op, DNN_APPLY_Y, y);
    k->op[k->n_op++] = hn_dnn_finish(k->m, op, "describing pointwise work");
    k->last = y;
}

static bool has(const hn_libcall *c, uint32_t flag)
{
    return (c->flags & flag) != 0;
}

static void convolution(chain *k)
{
    const hn_libcall *c = k->c;
    const hn_libcall_conv *v = &c->u.conv;
    const int type = type_of(c->dtype);
    const int64_t n = v->y[1], bias[RANK] = { 1, n, 1, 1 }, bias_stride[RANK] = { n, 1, n, n };
    int64_t id = HN_DNN_ID;
    dnn_desc *b = NULL;

    k->left = 1 + has(c, HN_CALL_BIAS) + has(c, HN_CALL_ADD) + has(c, HN_CALL_RELU);
    dnn_desc *x = tensor(k->m, type, id++, v->x, v->x_stride, false), *w = tensor(k->m, type, id++, v->w, v->w_stride, false);
    convolve(k, x, w);
    if (has(c, HN_CALL_BIAS)) b = tensor(k->m, type, id++, bias, bias_stride, false);
    if (has(c, HN_CALL_ADD)) apply(k, DNN_ADD, tensor(k->m, type, id++, v->y, v->y_stride, false));
    if (has(c, HN_CALL_BIAS)) apply(k, DNN_ADD, b);
    if (has(c, HN_CALL_RELU)) apply(k, DNN_RELU, NULL);
}

/* ---- attention, one operation ---- */
static void attention(chain *k)
{
    const hn_libcall_attention *a = &k->c->u.attention;
    const int type = type_of(k->c->dtype);
    dnn_desc *op;

    dnn_desc *q = tensor(k->m, type, HN_DNN_ID, a->q, a->q_stride, false), *key = tensor(k->m, type, HN_DNN_ID + 1, a->k, a->k_stride, false);
    dnn_desc *v = tensor(k->m, type, HN_DNN_ID + 2, a->v, a->v_stride, false), *y = tensor(k->m, type, HN_DNN_ID + 3, a->y, a->y_stride, false);
    dnn_desc *scale = number(k->m, HN_DNN_SCALE_ID);
    op = hn_dnn_new(k->m, DNN_OP_ATTENTION);
    hn_dnn_set_desc(k->m, op, DNN_ATTEND_Q, q);
    hn_dnn_set_desc(k->m, op, DNN_ATTEND_K, key);
    hn_dnn_set_desc(k->m, op, DNN_ATTEND_V, v);
    hn_dnn_set_desc(k->m, op, DNN_ATTEND_Y, y);
    hn_dnn_set_desc(k->m, op, DNN_ATTEND_SCALE, scale);
    k->op[k->n_op++] = hn_dnn_finish(k->m, op, "describing attention");
}

dnn_desc *hn_dnn_graph(dnn_maker *m, const hn_libcall *c)
{
    chain k = { .m = m, .c = c };

    if (c->kind == HN_CALL_ATTENTION) attention(&k);
    else convolution(&k);
    dnn_desc *g = hn_dnn_new(m, DNN_GRAPH);
    hn_dnn_set(m, g, DNN_GRAPH_HANDLE, DNN_OF_HANDLE, 1, &hn_dnn.handle);
    hn_dnn_set(m, g, DNN_GRAPH_OPS, DNN_OF_DESC, k.n_op, k.op);
    return hn_dnn_finish(m, g, "describing a graph of operations");
}
