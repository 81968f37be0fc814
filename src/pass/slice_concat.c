/**
 * Slice the operand that holds the elements instead of the concat of all.
 *
 *     y = slice(concat(a [n,2], b [n,3]), [:, 2:5])   =>   y = b
 *     y = slice(concat(a [n,2], b [n,3]), [:, 3:5])   =>   y = slice(b, [:, 1:3])
 */
#include "pass/pass_int.h"

#include <string.h>

/* Elements start.. start+len of the result lie in an operand that begins at `first`. */
static bool within(hn_symtab *t, hn_dim start, hn_dim len, hn_dim first, hn_dim extent)
{
    int64_t s, e, n;
    const hn_dim at = hn_dim_sub(t, start, first);
    if (at == 0 && len == extent) return true;
    return hn_dim_known(t, at, &s) && hn_dim_known(t, len, &n) && hn_dim_known(t, extent, &e) && s >= 0 && s + n <= e;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *p = hn_producer(hn_in(n, 0));
    hn_symtab *t = n->graph->syms;
    hn_dim from[HN_MAX_RANK], first = 0;
    int rank, axis;
    if (!n->out[0]->n_uses || !p || p->op != HN_OP_concat || p->graph != n->graph) return false;
    const hn_dim *start = hn_attr_is(n, "start", &rank), *dim = n->out[0]->type.dim;
    const int64_t *step = hn_attr_is(n, "step", &rank);
    if (!hn_axis_resolve(hn_attr_i(p, "axis"), rank, &axis) || step[axis] != 1) return false;
    int i = 0;
    while (i < p->n_in && !within(t, start[axis], dim[axis], first, hn_in(p, i)->type.dim[axis]))
        first = hn_dim_add(t, first, hn_in(p, i++)->type.dim[axis]);
    if (i == p->n_in) return false;
    memcpy(from, start, sizeof *from * (size_t)rank);
    from[axis] = hn_dim_sub(t, start[axis], first);
    hn_value *x = hn_in(p, i); /* fold_identity takes the whole of it */
    const hn_node *y = hn_build_changed(b, n, 1, &x, HN_ATTRS_ARG(HN_A_DIMS("start", rank, from)));
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_slice_concat = {
    .name = "slice_concat", .summary = "slice the one operand of a concat that holds the elements",
    .on = HN_OP_slice, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
