/**
 * Make one slice of two.
 *
 *     y = slice(slice(x, a.., step 2), b.., step 3)   =>   y = slice(x, a + 2*b.., step 6)
 */
#include "pass/pass_int.h"

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *p = hn_producer(hn_in(n, 0));
    hn_symtab *t = n->graph->syms;
    hn_dim start[HN_MAX_RANK];
    int64_t step[HN_MAX_RANK];
    int rank;
    if (!n->out[0]->n_uses || !p || p->op != HN_OP_slice || p->graph != n->graph) return false;
    const hn_dim *s0 = hn_attr_is(p, "start", &rank), *s1 = hn_attr_is(n, "start", &rank);
    const int64_t *t0 = hn_attr_is(p, "step", &rank), *t1 = hn_attr_is(n, "step", &rank);
    for (int i = 0; i < rank; i++) {
        if (__builtin_mul_overflow(t0[i], t1[i], &step[i])) return false;
        start[i] = hn_dim_add(t, s0[i], hn_dim_mul(t, s1[i], hn_dim_const(t, t0[i])));
    }
    hn_value *y = hn_b1(b, HN_OP_slice, hn_in(p, 0),
                        HN_ATTRS_ARG(HN_A_DIMS("start", rank, start), HN_A_IS("step", rank, step),
                                     HN_A_DIMS("dim", rank, n->out[0]->type.dim)));
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_slice = {
    .name = "merge_slice", .summary = "make one slice of two",
    .on = HN_OP_slice, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
