/**
 * Fold a constant per-channel addend into the bias of the convolution before it.
 *
 *     y = conv(x, w, c) + a   =>   y = conv(x, w, c+a)
 *     y = conv(x, w) - a      =>   y = conv(x, w, -a)
 *
 * Fires when the convolution has no other reader and its bias, if any, is constant. Not exact: c+a is rounded once here.
 */
#include "pass/pass_int.h"

static hn_value *addend(hn_builder *b, hn_op op, hn_value *a, hn_dim channels)
{
    if (op == HN_OP_sub) a = hn_b1(b, HN_OP_neg, a, HN_NO_ATTRS);
    return a ? hn_broadcast_to(b, hn_pass_along(b, a, 1, 0), 1, &channels) : NULL;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *y, *a;
    if ((n->op != HN_OP_add && n->op != HN_OP_sub) || !n->out[0]->n_uses || !hn_pass_with_const(n, &y, &a)) return false;
    if (n->op == HN_OP_sub && hn_in(n, 0) != y) return false;
    const hn_node *p = hn_producer(y);
    if (!p || (p->op != HN_OP_conv && p->op != HN_OP_conv_transpose) || p->graph != n->graph || !hn_has_one_use(y)) return false;
    if (hn_in(p, 2) && !hn_is_const(hn_in(p, 2))) return false;
    if (!hn_dim_is_const(y->type.dim[1]) || !hn_pass_per_axis(a, y, 1)) return false;

    hn_builder_origin_of(b, p);
    hn_value *bias = addend(b, n->op, a, y->type.dim[1]);
    if (hn_in(p, 2)) bias = hn_b2(b, HN_OP_add, hn_in(p, 2), bias, HN_NO_ATTRS);
    const hn_node *made = hn_build_like(b, p, 3, (hn_value *[]){ hn_in(p, 0), hn_in(p, 1), bias });
    if (!made) return false;
    hn_replace(b, n->out[0], made->out[0]);
    return true;
}

const hn_pass_def hn_pass_absorb_bias = {
    .name = "absorb_bias", .summary = "fold per-channel addends into the bias of the convolution before them",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
