/**
 * Repeat an element, or axes, once and to the final shape.
 *
 *     y = slice(broadcast(x [1,m], [n,m]), [2:4, :])      =>   y = broadcast(x, [2,m])
 *     y = broadcast(broadcast(x, d), e)                   =>   y = broadcast(x, e)
 *     y = reshape(broadcast(x, d), e)                     =>   y = broadcast(reshape(x, []), e)      x of one element
 *
 * Slices fire where they cut repeated axes alone; reshapes and transposes where x is a single element.
 */
#include "pass/pass_int.h"

/* Every axis that the slice cuts is one that the broadcast repeats. */
static bool cuts_repeats_alone(const hn_node *slice, const hn_value *x)
{
    int rank;
    const hn_dim *start = hn_attr_is(slice, "start", &rank);
    const int64_t *step = hn_attr_is(slice, "step", &rank);
    for (int i = 0; i < rank; i++) {
        const int k = i - (rank - x->type.rank);
        const bool whole = start[i] == 0 && step[i] == 1 && slice->out[0]->type.dim[i] == hn_in(slice, 0)->type.dim[i];
        if (!whole && k >= 0 && x->type.dim[k] != 1) return false;
    }
    return true;
}

static bool fits(const hn_node *n, const hn_value *x)
{
    switch (n->op) {
    case HN_OP_slice: return cuts_repeats_alone(n, x);
    case HN_OP_broadcast: return true;
    case HN_OP_reshape:
    case HN_OP_transpose: return hn_tdesc_numel_static(&x->type) == 1;
    default: return false;
    }
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *p = hn_producer(hn_in(n, 0));
    if (!p || p->op != HN_OP_broadcast || p->graph != n->graph || !n->out[0]->n_uses) return false;
    hn_value *x = hn_in(p, 0);
    const hn_tdesc *d = &n->out[0]->type;
    if (!fits(n, x)) return false;
    if (n->op == HN_OP_reshape || n->op == HN_OP_transpose) x = hn_reshape(b, x, 0, NULL);
    hn_value *y = x ? hn_broadcast_to(b, x, d->rank, d->dim) : NULL;
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_broadcast = {
    .name = "merge_broadcast", .summary = "repeat elements once, to the final shape",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
