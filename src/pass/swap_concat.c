/**
 * Join many pairs by joining many twice.
 *
 *     y = concat(concat(a, b), concat(c, d), concat(e, f)) along other axes   =>   y = concat(concat(a, c, e), concat(b, d, f))
 *
 * Fires when the inner concats are as many operands each, alike along their axis, fewer than the outer one has, and read by
 * nobody else: a step an inner concat becomes a step an operand of one.
 */
#include "pass/pass_int.h"

enum { MAX_OPERANDS = 64 };

/* The inner concat that operand i is, along another axis than the outer one; NULL when it is none. */
static const hn_node *inner_of(const hn_node *n, int i, int outer_axis, int *ret_axis)
{
    const hn_node *p = hn_producer(hn_in(n, i));
    if (!p || p->op != HN_OP_concat || p->graph != n->graph || !hn_has_one_use(hn_in(n, i))) return NULL;
    if (!hn_axis_resolve(hn_attr_i(p, "axis"), p->out[0]->type.rank, ret_axis) || *ret_axis == outer_axis) return NULL;
    return p;
}

static bool alike(const hn_node *a, const hn_node *b, int axis)
{
    if (a->n_in != b->n_in) return false;
    for (int i = 0; i < a->n_in; i++)
        if (hn_in(a, i)->type.dim[axis] != hn_in(b, i)->type.dim[axis]) return false;
    return true;
}

/* All operands are concats of one kind: the first of them; NULL otherwise. */
static const hn_node *common_inner(const hn_node *n, int outer_axis, int *ret_axis)
{
    const hn_node *first = inner_of(n, 0, outer_axis, ret_axis);
    for (int i = 1; first && i < n->n_in; i++) {
        int axis;
        const hn_node *p = inner_of(n, i, outer_axis, &axis);
        if (!p || axis != *ret_axis || !alike(first, p, axis)) return NULL;
    }
    return first;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *part[MAX_OPERANDS], *across[MAX_OPERANDS];
    int outer, axis;
    if (n->n_in < 2 || n->n_in > MAX_OPERANDS || !n->out[0]->n_uses) return false;
    if (!hn_axis_resolve(hn_attr_i(n, "axis"), n->out[0]->type.rank, &outer)) return false;
    const hn_node *first = common_inner(n, outer, &axis);
    if (!first || first->n_in >= n->n_in) return false;
    for (int k = 0; k < first->n_in; k++) {
        for (int i = 0; i < n->n_in; i++) across[i] = hn_in(hn_producer(hn_in(n, i)), k);
        const hn_node *j = hn_build_like(b, n, n->n_in, across);
        if (!j) return false;
        part[k] = j->out[0];
    }
    const hn_node *y = hn_build_like(b, first, first->n_in, part);
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_swap_concat = {
    .name = "swap_concat", .summary = "join many pairs by joining many twice",
    .on = HN_OP_concat, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
