/**
 * Reducing axes of extent 1 changes the shape alone.
 *
 *     y = reduce_max(x [n,1,m]) {axes=[1], keepdims=0}   =>   y = reshape(x, [n,m])
 *
 * A sum of -0 alone may come out as -0 now, where adding it to 0 gave +0.
 */
#include "pass/pass_int.h"

static bool takes_one_as_it_is(hn_op op)
{
    return op == HN_OP_reduce_sum || op == HN_OP_reduce_prod || op == HN_OP_reduce_max || op == HN_OP_reduce_min ||
           op == HN_OP_reduce_mean;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    int n_axes;
    if (!takes_one_as_it_is(n->op) || !n->out[0]->n_uses) return false;
    hn_value *x = hn_in(n, 0);
    const hn_tdesc *d = &n->out[0]->type;
    const int64_t *axes = hn_attr_is(n, "axes", &n_axes);
    for (int i = 0; i < n_axes; i++)
        if (x->type.dim[axes[i]] != 1) return false;
    hn_value *y = d->dtype == x->type.dtype ? hn_reshape(b, x, d->rank, d->dim) : NULL;
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_fold_unit_axes = {
    .name = "fold_unit_axes", .summary = "make reshapes of reductions over single elements",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
