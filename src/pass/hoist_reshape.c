/**
 * Move a reshape that adds or drops axes of extent 1 before the padding in front of it, so that the padding stands beside the
 * convolution that can do it.
 *
 *     y = conv(reshape(pad(x [1,n], 3), [1,1,1,n+6]), w)   =>   y = conv(pad(reshape(x, [1,1,1,n]), 3), w)
 *
 * Fires where a convolution is the only reader; absorb_pad does the rest.
 */
#include "pass/pass_int.h"

/* For each axis of the reshaped tensor the axis of x it is, or -1 for a new axis of extent 1; false when axes are merged or split. */
static bool match_axes(const hn_tdesc *x, const hn_tdesc *y, int *from)
{
    int k = 0;
    for (int i = 0; i < y->rank; i++) {
        while (k < x->rank && x->dim[k] == 1 && y->dim[i] != 1) k++;
        from[i] = -1;
        if (k < x->rank && x->dim[k] == y->dim[i]) from[i] = k++;
        else if (y->dim[i] != 1) return false;
    }
    while (k < x->rank && x->dim[k] == 1) k++;
    return k == x->rank;
}

static bool is_read_by_conv(const hn_value *v)
{
    return hn_has_one_use(v) && v->uses->node && v->uses->node->op == HN_OP_conv && hn_in(v->uses->node, 0) == v;
}

/* Axes that are dropped must not be padded: they are 1 before and after. */
static bool pads_fit(const hn_node *p, const int *from, int rank, hn_dim *before, hn_dim *after)
{
    int n, padded = 0, kept = 0;
    const hn_dim *b0 = hn_attr_is(p, "before", &n), *a0 = hn_attr_is(p, "after", &n);
    for (int i = 0; i < n; i++) padded += b0[i] != 0 || a0[i] != 0;
    for (int i = 0; i < rank; i++) {
        before[i] = from[i] < 0 ? 0 : b0[from[i]];
        after[i] = from[i] < 0 ? 0 : a0[from[i]];
        kept += before[i] != 0 || after[i] != 0;
    }
    return padded == kept;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    int from[HN_MAX_RANK];
    hn_dim before[HN_MAX_RANK], after[HN_MAX_RANK], dim[HN_MAX_RANK];
    const hn_node *p = hn_producer(hn_in(n, 0));
    const hn_tdesc *d = &n->out[0]->type;
    if (!p || p->op != HN_OP_pad || p->graph != n->graph || !hn_has_one_use(hn_in(n, 0)) || !is_read_by_conv(n->out[0])) return false;
    if (!match_axes(&p->out[0]->type, d, from) || !pads_fit(p, from, d->rank, before, after)) return false;
    for (int i = 0; i < d->rank; i++) dim[i] = from[i] < 0 ? 1 : hn_in(p, 0)->type.dim[from[i]];
    hn_value *x = hn_reshape(b, hn_in(p, 0), d->rank, dim);
    const hn_node *y = hn_build_changed(b, p, p->n_in, (hn_value *[]){ x, hn_in(p, 1) },
                                        HN_ATTRS_ARG(HN_A_DIMS("before", d->rank, before), HN_A_DIMS("after", d->rank, after)));
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_hoist_reshape = {
    .name = "hoist_reshape", .summary = "move reshapes before the padding that a convolution could do",
    .on = HN_OP_reshape, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
