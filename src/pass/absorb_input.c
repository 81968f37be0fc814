/**
 * Fold a constant per-channel multiply or addend into the weights that read it.
 *
 *     y = conv(x * s, w, c)      =>   y = conv(x, w*s, c)                  any padding: 0 * s is 0
 *     y = conv(x + a, w, c)      =>   y = conv(x, w, c + sum of w*a)       no padding
 *     y = matmul(x * s, w)       =>   y = matmul(x, s*w)
 *     y = matmul(x + a, w)       =>   y = matmul(x, w) + a@w               the addend may join the product's kernel
 *
 * Fires when the contraction is the only reader and w, c, s and a are constant. Not exact: weights are rounded once more.
 */
#include "pass/pass_int.h"

/* The input channels' axis of n's operand; -1 when n has no plain constant weights. */
static int channel_axis(const hn_node *n)
{
    const hn_value *x = hn_in(n, 0), *w = hn_in(n, 1);
    if (!hn_is_const(w) || w->type.dtype != x->type.dtype) return -1;
    if (n->op == HN_OP_conv) return hn_in(n, 2) && !hn_is_const(hn_in(n, 2)) ? -1 : 1;
    if (n->op == HN_OP_matmul && w->type.rank == 2 && !hn_attr_i(n, "trans_a")) return x->type.rank - 1;
    return -1;
}

static bool no_padding(const hn_node *n)
{
    int rank;
    const hn_dim *begin = hn_attr_is(n, "pad_begin", &rank), *end = hn_attr_is(n, "pad_end", &rank);
    for (int i = 0; i < rank; i++)
        if (begin[i] || end[i]) return false;
    return true;
}

/* Convolution weights as [group, filters, channels, kernel] times a constant of each input channel. */
static hn_value *weights_times(hn_builder *b, const hn_node *n, hn_value *s)
{
    hn_value *w = hn_in(n, 1);
    const int64_t g = hn_attr_i(n, "group"), m = w->type.dim[0], c = w->type.dim[1], all = hn_tdesc_numel_static(&w->type);
    const bool one = hn_tdesc_numel_static(&s->type) == 1;
    const hn_dim dim[] = { g, m / g, c, all / HN_MAX(m * c, 1) }, sdim[] = { one ? 1 : g, 1, one ? 1 : c, 1 };
    return hn_b2(b, HN_OP_mul, hn_reshape(b, w, 4, dim), hn_reshape(b, s, 4, sdim), HN_NO_ATTRS);
}

static hn_value *conv_scaled(hn_builder *b, const hn_node *n, hn_value *x, hn_value *s)
{
    const hn_tdesc *d = &hn_in(n, 1)->type;
    hn_value *w = weights_times(b, n, s);
    const hn_node *y = hn_build_like(b, n, n->n_in, (hn_value *[]){ x, w ? hn_reshape(b, w, d->rank, d->dim) : NULL, hn_in(n, 2) });
    return y ? y->out[0] : NULL;
}

static hn_value *conv_shifted(hn_builder *b, const hn_node *n, hn_value *x, hn_value *a)
{
    const hn_dim filters = hn_in(n, 1)->type.dim[0];
    hn_value *sum = hn_b1(b, HN_OP_reduce_sum, weights_times(b, n, a),
                          HN_ATTRS_ARG(HN_A_IS("axes", 2, ((const int64_t[]){ 2, 3 })), HN_A_I("keepdims", 0)));
    sum = sum ? hn_reshape(b, sum, 1, &filters) : NULL;
    if (hn_in(n, 2)) sum = hn_b2(b, HN_OP_add, sum, hn_in(n, 2), HN_NO_ATTRS);
    const hn_node *y = hn_build_like(b, n, 3, (hn_value *[]){ x, hn_in(n, 1), sum });
    return y ? y->out[0] : NULL;
}

static hn_value *matmul_scaled(hn_builder *b, const hn_node *n, hn_value *x, hn_value *s)
{
    hn_value *w = hn_b2(b, HN_OP_mul, hn_in(n, 1), hn_pass_along(b, s, 2, hn_attr_i(n, "trans_b") ? 1 : 0), HN_NO_ATTRS);
    const hn_node *y = hn_build_like(b, n, 2, (hn_value *[]){ x, w });
    return y ? y->out[0] : NULL;
}

static hn_value *matmul_shifted(hn_builder *b, const hn_node *n, hn_value *x, hn_value *a)
{
    const hn_dim row[] = { 1, x->type.dim[x->type.rank - 1] }, columns = n->out[0]->type.dim[n->out[0]->type.rank - 1];
    const hn_node *y = hn_build_like(b, n, 2, (hn_value *[]){ x, hn_in(n, 1) });
    hn_value *v = hn_broadcast_to(b, hn_pass_along(b, a, 2, 1), 2, row);
    const hn_node *shift = hn_build_like(b, n, 2, (hn_value *[]){ v, hn_in(n, 1) });
    return y && shift ? hn_b2(b, HN_OP_add, y->out[0], hn_reshape(b, shift->out[0], 1, &columns), HN_NO_ATTRS) : NULL;
}

static hn_value *rebuilt(hn_builder *b, const hn_node *n, hn_op op, hn_value *x, hn_value *k)
{
    if (op == HN_OP_sub) k = hn_b1(b, HN_OP_neg, k, HN_NO_ATTRS);
    if (!k) return NULL;
    if (n->op == HN_OP_conv) return op == HN_OP_mul ? conv_scaled(b, n, x, k) : conv_shifted(b, n, x, k);
    return op == HN_OP_mul ? matmul_scaled(b, n, x, k) : matmul_shifted(b, n, x, k);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_value *x, *k;
    if (!n->out[0]->n_uses || (n->op != HN_OP_conv && n->op != HN_OP_matmul)) return false;
    const int axis = channel_axis(n);
    const hn_node *p = hn_producer(hn_in(n, 0));
    if (axis < 0 || !p || p->graph != n->graph || !hn_has_one_use(hn_in(n, 0))) return false;
    if ((p->op != HN_OP_mul && p->op != HN_OP_add && p->op != HN_OP_sub) || !hn_pass_with_const(p, &x, &k)) return false;
    if (p->op == HN_OP_sub && hn_in(p, 0) != x) return false;
    if (!hn_tdesc_eq(&x->type, &hn_in(n, 0)->type) || !hn_dim_is_const(x->type.dim[axis]) || !hn_pass_per_axis(k, x, axis)) return false;
    if (p->op != HN_OP_mul && n->op == HN_OP_conv && !no_padding(n)) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_absorb_input, n)) return false;
    hn_builder_origin_of(b, p);
    hn_value *y = rebuilt(b, n, p->op, x, k);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_absorb_input = {
    .name = "absorb_input", .summary = "fold per-channel multiplies and addends into the weights that read them",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
