/**
 * Make one reshape of two, and call a transpose that moves no element a reshape.
 *
 *     y = reshape(reshape(x, a), b)                  =>   y = reshape(x, b)
 *     y = transpose(x [n,1,m], [1,0,2])              =>   y = reshape(x, [1,n,m])
 *
 * A chain that ends in x's own shape becomes x.
 */
#include "pass/pass_int.h"

/* Axes longer than one keep their order. */
static bool moves_nothing(const hn_node *t)
{
    int rank, last = -1;
    const int64_t *perm = hn_attr_is(t, "perm", &rank);
    for (int i = 0; i < rank; i++) {
        if (hn_in(t, 0)->type.dim[perm[i]] == 1) continue;
        if (perm[i] < last) return false;
        last = (int)perm[i];
    }
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *x = hn_in(n, 0);
    if (!n->out[0]->n_uses) return false;
    if (n->op == HN_OP_reshape) {
        const hn_node *p = hn_producer(x);
        if (!p || p->op != HN_OP_reshape || p->graph != n->graph) return false;
        x = hn_in(p, 0);
    } else if (n->op != HN_OP_transpose || !moves_nothing(n)) {
        return false;
    }
    const hn_tdesc *d = &n->out[0]->type;
    hn_value *y = hn_reshape(b, x, d->rank, d->dim);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_reshape = {
    .name = "merge_reshape", .summary = "make one reshape of several",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
