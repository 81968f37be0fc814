/**
 * Multiply quantised operands as the bytes they are.
 *
 *     y = conv(dequantize(x, s, z), dequantize(w, t, u), c)    =>   a = conv_int(x, w, z, u)     y = cast(a) * (s*t) + c
 *     y = matmul(dequantize(x, s, z), dequantize(w, t, u))     =>   a = matmul_int(x, w, z, u)   y = cast(a) * (s*t)
 *     y = matmul(dequantize(x, s), dequantize(w, t))               =>   y = matmul_f8(x, w) {a_scale=s, b_scale=t}
 *
 * Fires for integers: w, t, u, s and z constant, s and z one for all of x, t and u one for all of w or one an output channel.
 * For floats: w, s and t constant, s and t one for all of a tensor, and only where a tactic takes the product: few targets have one, and
 * elsewhere the model stays as it is. The weights may come through a transpose of their own.
 * Not exact: products add up exactly and are scaled once, where the model rounds operands and sums.
 */
#include "pass/pass_int.h"

#include <math.h>

/* A dequantised tensor: bytes, scale, zero point or NULL. */
typedef struct quantised {
    hn_value *q, *scale, *zero;
    int axis; /* of a scale for each channel; -1: one for all */
} quantised;

static bool is_byte(hn_dtype t)
{
    return t == HN_I8 || t == HN_U8;
}

static bool all_zero(const hn_value *z)
{
    const uint8_t *at = z->data->at;
    for (size_t i = 0; i < z->data->bytes; i++)
        if (at[i]) return false;
    return true;
}

static const hn_node *dequantizer(const hn_value *v, const hn_graph *g)
{
    const hn_node *n = hn_producer(v);
    return n && n->graph == g && n->op == HN_OP_dequantize && !hn_attr_i(n, "block") ? n : NULL;
}

static bool quantised_of(const hn_value *v, const hn_graph *g, quantised *ret)
{
    const hn_node *n = dequantizer(v, g);
    if (!n || v->type.dtype != HN_F32) return false;
    *ret = (quantised){ .q = hn_in(n, 0), .scale = hn_in(n, 1), .zero = hn_in(n, 2), .axis = -1 };
    if (!is_byte(ret->q->type.dtype) || !hn_is_const(ret->scale) || ret->scale->type.dtype != HN_F32) return false;
    if (ret->zero && !hn_is_const(ret->zero)) return false;
    if (ret->zero && all_zero(ret->zero)) ret->zero = NULL;
    if (hn_tdesc_numel_static(&ret->scale->type) == 1 && (!ret->zero || hn_tdesc_numel_static(&ret->zero->type) == 1))
        return true;
    return ret->scale->type.rank == 1 && hn_axis_resolve(hn_attr_i(n, "axis"), v->type.rank, &ret->axis);
}

/* Sums of more products may not fit i32: 255 * 255 * 2^15 does. */
enum { MOST_PRODUCTS = 1 << 15 };

static bool sums_fit(const hn_node *n)
{
    const hn_tdesc *w = &hn_in(n, 1)->type;
    const int64_t all = hn_tdesc_numel_static(w);
    const int channels = n->op == HN_OP_conv ? 0 : hn_attr_i(n, "trans_b") ? 0 : 1;
    return all > 0 && all / w->dim[channels] <= MOST_PRODUCTS;
}

static hn_value *one_element(hn_builder *b, hn_value *v)
{
    return v && v->type.rank && hn_tdesc_numel_static(&v->type) == 1 ? hn_reshape(b, v, 0, NULL) : v;
}

/* cast(acc) * (s*t), t along `axis` of the result. */
static hn_value *scaled(hn_builder *b, hn_value *acc, hn_value *s, hn_value *t, int axis)
{
    if (!acc) return NULL;
    t = hn_tdesc_numel_static(&t->type) == 1 ? one_element(b, t) : hn_pass_along(b, t, acc->type.rank, axis);
    return hn_b2(b, HN_OP_mul, hn_cast(b, acc, HN_F32), hn_b2(b, HN_OP_mul, one_element(b, s), t, HN_NO_ATTRS), HN_NO_ATTRS);
}

static hn_value *convolved(hn_builder *b, const hn_node *n, const quantised *x, const quantised *w)
{
    int ns, nd, nb, ne;
    const int64_t *stride = hn_attr_is(n, "stride", &ns), *dilation = hn_attr_is(n, "dilation", &nd);
    const hn_dim *begin = hn_attr_is(n, "pad_begin", &nb), *end = hn_attr_is(n, "pad_end", &ne);
    hn_value *in[] = { x->q, w->q, one_element(b, x->zero), one_element(b, w->zero) };
    const hn_node *a = hn_build(b, HN_OP_conv_int, 4, in,
                                HN_ATTRS_ARG(HN_A_IS("stride", ns, stride), HN_A_IS("dilation", nd, dilation),
                                             HN_A_DIMS("pad_begin", nb, begin), HN_A_DIMS("pad_end", ne, end),
                                             HN_A_I("group", hn_attr_i(n, "group"))),
                                1);
    hn_value *y = scaled(b, a ? a->out[0] : NULL, x->scale, w->scale, 1), *c = hn_in(n, 2);
    if (!y || !c) return y;
    hn_dim dim[HN_MAX_RANK];
    for (int i = 0; i < y->type.rank; i++) dim[i] = i == 1 ? c->type.dim[0] : 1;
    return hn_b2(b, HN_OP_add, y, hn_reshape(b, c, y->type.rank, dim), HN_NO_ATTRS);
}

static hn_value *multiplied(hn_builder *b, const hn_node *n, const quantised *x, const quantised *w)
{
    hn_value *m = hn_attr_i(n, "trans_b") ? hn_transpose(b, w->q, (const int64_t[]){ 1, 0 }) : w->q;
    hn_value *in[] = { x->q, m, one_element(b, x->zero), one_element(b, w->zero) };
    const hn_node *a = hn_build(b, HN_OP_matmul_int, 4, in, HN_NO_ATTRS, 1);
    return scaled(b, a ? a->out[0] : NULL, x->scale, w->scale, n->out[0]->type.rank - 1);
}

/* ---- floats of 8 bits ---- */
/* Of one scale for all, and no zero point but 0, which is there to name the dtype. */
static hn_value *scaled_f8(const hn_value *v, const hn_graph *g, double *ret_scale)
{
    const hn_node *n = dequantizer(v, g);
    hn_value *q = n ? hn_in(n, 0) : NULL, *zero = n ? hn_in(n, 2) : NULL;
    if (!q || (q->type.dtype != HN_F8E4M3FN && q->type.dtype != HN_F8E5M2)) return NULL;
    if (zero && !(hn_is_const(zero) && all_zero(zero))) return NULL;
    return hn_const_scalar(hn_in(n, 1), ret_scale) ? q : NULL;
}

/* The matrix that v is the transpose of, if it is one. */
static const hn_value *turned_matrix(const hn_value *v, const hn_graph *g)
{
    const hn_node *n = hn_producer(v);
    int rank;
    if (!n || n->graph != g || n->op != HN_OP_transpose || v->type.rank != 2) return NULL;
    return hn_attr_is(n, "perm", &rank)[0] == 1 ? hn_in(n, 0) : NULL;
}

static bool sums_as(hn_dtype t)
{
    return t == HN_F16 || t == HN_BF16 || t == HN_F32;
}

static bool multiply_f8(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    double s, t;
    if (!c->keep || n->op != HN_OP_matmul || hn_attr_i(n, "trans_a") || hn_in(n, 1)->type.rank != 2) return false;
    if (!sums_as(n->out[0]->type.dtype)) return false;
    const hn_value *turned = turned_matrix(hn_in(n, 1), n->graph);
    hn_value *in[] = { scaled_f8(hn_in(n, 0), n->graph, &s), scaled_f8(turned ? turned : hn_in(n, 1), n->graph, &t) };
    if (!in[0] || !in[1] || !hn_is_const(in[1]) || !isnormal((float)(s * t))) return false;
    const int64_t trans_b = (hn_attr_i(n, "trans_b") != 0) ^ (turned != NULL);
    const hn_node *y = hn_build(b, HN_OP_matmul_f8, 2, in,
                                HN_ATTRS_ARG(HN_A_F("a_scale", s), HN_A_F("b_scale", t), HN_A_T("to", n->out[0]->type.dtype),
                                             HN_A_I("trans_b", trans_b)),
                                1);
    if (!y || !c->keep(c->keep_user, y) || !hn_pass_knob(c, HN_KNOB_pass_quantized, n)) return false;
    hn_replace(b, n->out[0], y->out[0]);
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    quantised x, w;
    const bool conv = n->op == HN_OP_conv;
    if (!conv && (n->op != HN_OP_matmul || hn_attr_i(n, "trans_a") || hn_in(n, 1)->type.rank != 2)) return false;
    if (n->out[0]->n_uses && multiply_f8(b, n, c)) return true;
    if (!n->out[0]->n_uses || !quantised_of(hn_in(n, 0), n->graph, &x) || !quantised_of(hn_in(n, 1), n->graph, &w)) return false;
    const int channels = conv || hn_attr_i(n, "trans_b") ? 0 : 1;
    if (!hn_is_const(w.q) || x.axis >= 0 || (w.axis >= 0 && w.axis != channels) || !sums_fit(n)) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_quantized, n)) return false;
    hn_builder_origin_of(b, hn_producer(hn_in(n, 0)));
    hn_value *y = conv ? convolved(b, n, &x, &w) : multiplied(b, n, &x, &w);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_quantized = {
    .name = "quantized", .summary = "multiply quantised operands as integers",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
