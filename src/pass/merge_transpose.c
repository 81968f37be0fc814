/**
 * Make one transpose of two.
 *
 *     y = transpose(transpose(x, p), q)   =>   y = transpose(x, p o q)
 *
 * A pair that cancels becomes the identity, which fold_identity removes.
 */
#include "pass/pass.h"

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *p = hn_producer(hn_in(n, 0));
    int64_t perm[HN_MAX_RANK];
    int rank;
    if (!p || p->op != HN_OP_transpose || !n->out[0]->n_uses) return false;
    const int64_t *outer = hn_attr_is(n, "perm", &rank), *inner = hn_attr_is(p, "perm", &rank);
    for (int i = 0; i < rank; i++) perm[i] = inner[outer[i]];
    hn_value *y = hn_transpose(b, hn_in(p, 0), perm);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_transpose = {
    .name = "merge_transpose", .summary = "make one transpose of two",
    .on = HN_OP_transpose, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
