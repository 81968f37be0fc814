/* A call's work as cuDNN describes it: descriptors of tensors, operations over them, a graph of operations. */
#include "dev/cuda/dnn_int.h"

#include <stdio.h>

#include "core/core.h"

enum { ALIGN = 16 /* what every buffer starts at */, RANK = HN_DNN_RANK };

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
int hn_dnn_type(uint32_t dtype)
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

dnn_desc *hn_dnn_number(dnn_maker *m, int type, int64_t id)
{
    static const int64_t one[RANK] = { 1, 1, 1, 1 };
    return described(m, type, id, sizeof(dnn_number), one, one, DNN_TENSOR_BY_VALUE, true);
}

dnn_desc *hn_dnn_tensor(dnn_maker *m, int type, int64_t id, const int64_t *dim, const int64_t *stride, bool is_virtual)
{
    return described(m, type, id, ALIGN, dim, stride, DNN_TENSOR_VIRTUAL, is_virtual);
}

/* ---- work on elements ---- */
static dnn_desc *pointwise_of(dnn_maker *m, const dnn_pointwise *p, const char *what)
{
    dnn_desc *by = hn_dnn_new(m, DNN_POINTWISE);

    hn_dnn_set_int(m, by, DNN_POINTWISE_MODE, DNN_OF_POINTWISE_MODE, p->mode);
    hn_dnn_set_int(m, by, DNN_POINTWISE_COMPUTE, DNN_OF_DTYPE, p->compute);
    if (p->mode == DNN_RELU) hn_dnn_set_int(m, by, DNN_POINTWISE_NAN, DNN_OF_NAN, DNN_NAN_GOES_ON);
    if (p->mode == DNN_INDEX) hn_dnn_set(m, by, DNN_POINTWISE_AXIS, DNN_OF_INT64, 1, &p->axis);
    return hn_dnn_finish(m, by, what);
}

dnn_desc *hn_dnn_pointwise(dnn_maker *m, const dnn_pointwise *p)
{
    char what[48];

    snprintf(what, sizeof(what), "describing pointwise work, mode %d", p->mode);
    dnn_desc *by = pointwise_of(m, p, what), *op = hn_dnn_new(m, DNN_OP_POINTWISE);
    hn_dnn_set_desc(m, op, DNN_APPLY_BY, by);
    hn_dnn_set_desc(m, op, DNN_APPLY_X, p->x);
    if (p->b) hn_dnn_set_desc(m, op, DNN_APPLY_B, p->b);
    if (p->t) hn_dnn_set_desc(m, op, DNN_APPLY_T, p->t);
    hn_dnn_set_desc(m, op, DNN_APPLY_Y, p->y);
    return hn_dnn_finish(m, op, what);
}

/* ---- a convolution and what is fused behind it ---- */
typedef struct chain {
    dnn_maker *m;
    const hn_libcall *c;
    dnn_desc **op; /* the convolution, + addend, + bias, relu: the order that the library has kernels for */
    int n_op, left;  /* operations to come */
    int64_t n_virtual;
    dnn_desc *last;
} chain;

/* What the next operation yields: the last one the call's result, others sums in f32. */
static dnn_desc *result(chain *k)
{
    const hn_libcall_conv *v = &k->c->u.conv;

    if (--k->left == 0) return hn_dnn_tensor(k->m, hn_dnn_type(k->c->dtype), HN_DNN_ID + k->c->n_buf - 2, v->y, v->y_stride, /* is_virtual= */ false);
    return hn_dnn_tensor(k->m, DNN_FLOAT, HN_DNN_VIRTUAL_ID + k->n_virtual++, v->y, v->y_stride, /* is_virtual= */ true);
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
    const dnn_pointwise p = { .mode = mode, .compute = DNN_FLOAT, .x = k->last, .b = b, .y = result(k) };

    k->op[k->n_op++] = hn_dnn_pointwise(k->m, &p);
    k->last = p.y;
}

static bool has(const hn_libcall *c, uint32_t flag)
{
    return (c->flags & flag) != 0;
}

static void convolution(chain *k)
{
    const hn_libcall *c = k->c;
    const hn_libcall_conv *v = &c->u.conv;
    const int type = hn_dnn_type(c->dtype);
    const int64_t n = v->y[1], bias[RANK] = { 1, n, 1, 1 }, bias_stride[RANK] = { n, 1, n, n };
    int64_t id = HN_DNN_ID;
    dnn_desc *b = NULL;

    k->left = 1 + has(c, HN_CALL_BIAS) + has(c, HN_CALL_ADD) + has(c, HN_CALL_RELU);
    dnn_desc *x = hn_dnn_tensor(k->m, type, id++, v->x, v->x_stride, false), *w = hn_dnn_tensor(k->m, type, id++, v->w, v->w_stride, false);
    convolve(k, x, w);
    if (has(c, HN_CALL_BIAS)) b = hn_dnn_tensor(k->m, type, id++, bias, bias_stride, false);
    if (has(c, HN_CALL_ADD)) apply(k, DNN_ADD, hn_dnn_tensor(k->m, type, id++, v->y, v->y_stride, false));
    if (has(c, HN_CALL_BIAS)) apply(k, DNN_ADD, b);
    if (has(c, HN_CALL_RELU)) apply(k, DNN_RELU, NULL);
}

int hn_dnn_operations(dnn_maker *m, const hn_libcall *c, dnn_desc **op)
{
    chain k = { .m = m, .c = c, .op = op };

    if (c->kind == HN_CALL_ATTENTION) return hn_dnn_attention(m, c, op);
    convolution(&k);
    return k.n_op;
}

dnn_desc *hn_dnn_graph(dnn_maker *m, const hn_libcall *c)
{
    dnn_desc *op[HN_DNN_MOST_OPS];
    const int n = hn_dnn_operations(m, c, op);
    dnn_desc *g = hn_dnn_new(m, DNN_GRAPH);

    hn_dnn_set(m, g, DNN_GRAPH_HANDLE, DNN_OF_HANDLE, 1, &hn_dnn.handle);
    hn_dnn_set(m, g, DNN_GRAPH_OPS, DNN_OF_DESC, n, op);
    return hn_dnn_finish(m, g, "describing a graph of operations");
}
