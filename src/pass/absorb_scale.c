/**
 * Fold a constant per-channel multiply into the weights before it.
 *
 *     y = conv(x, w, c) * s     =>   y = conv(x, w*s, c*s)
 *     y = matmul(x, w) * s      =>   y = matmul(x, w*s)
 *
 * Fires when the product has no other reader and w, c and s are constant. Not exact: w*s is rounded once here instead of
 * once per result. A scale that is not finite stays: it would turn weights of zero into NaN.
 */
#include "pass/pass_int.h"

/* Which axis of the result the output channels lie on, and of the weights; false when the node has no plain weights. */
static bool channels(const hn_node *n, int *ret_y, int *ret_w)
{
    const hn_value *w = hn_in(n, 1);
    switch (n->op) {
    case HN_OP_conv: *ret_y = 1, *ret_w = 0; return true;
    case HN_OP_conv_transpose: *ret_y = 1, *ret_w = 1; return hn_attr_i(n, "group") == 1;
    case HN_OP_matmul:
        *ret_y = n->out[0]->type.rank - 1;
        *ret_w = hn_attr_i(n, "trans_b") ? 0 : 1;
        return w->type.rank == 2;
    default: return false;
    }
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *y, *s, *in[3] = { 0 };
    int axis, axis_w;
    if (!n->out[0]->n_uses || !hn_pass_with_const(n, &y, &s)) return false;
    const hn_node *p = hn_producer(y);
    if (!p || p->graph != n->graph || !hn_has_one_use(y) || p->n_in > 3 || !channels(p, &axis, &axis_w)) return false;
    if (!hn_is_const(hn_in(p, 1)) || (hn_in(p, 2) && !hn_is_const(hn_in(p, 2)))) return false;
    if (!hn_pass_per_axis(s, y, axis)) return false;

    hn_builder_origin_of(b, p);
    in[0] = hn_in(p, 0);
    in[1] = hn_b2(b, HN_OP_mul, hn_in(p, 1), hn_pass_along(b, s, hn_in(p, 1)->type.rank, axis_w), HN_NO_ATTRS);
    if (hn_in(p, 2)) in[2] = hn_b2(b, HN_OP_mul, hn_in(p, 2), hn_pass_along(b, s, 1, 0), HN_NO_ATTRS);
    const hn_node *made = hn_build_like(b, p, p->n_in, in);
    if (!made) return false;
    hn_replace(b, n->out[0], made->out[0]);
    return true;
}

const hn_pass_def hn_pass_absorb_scale = {
    .name = "absorb_scale", .summary = "fold per-channel multiplies into the weights before them",
    .on = HN_OP_mul, .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
