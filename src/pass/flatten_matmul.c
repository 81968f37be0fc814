/**
 * Make one product of a batch of products with the same right operand.
 *
 *     y = matmul(a [b,s,k], w [k,n])   =>   y = reshape(matmul(reshape(a, [b*s,k]), w), [b,s,n])
 *
 * Fires where w is computed: kernels for constant weights take the rows of all batches together as it is, and let more work
 * follow on the result than a reshape does.
 */
#include "pass/pass_int.h"

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_value *a = hn_in(n, 0), *w = hn_in(n, 1);
    hn_symtab *t = b->g->syms;
    const hn_tdesc *d = &n->out[0]->type;
    if (!n->out[0]->n_uses || a->type.rank < 3 || w->type.rank != 2 || hn_is_const(w) || hn_attr_i(n, "trans_a")) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_flatten_matmul, n)) return false;
    hn_dim flat[2] = { 1, a->type.dim[a->type.rank - 1] };
    for (int i = 0; i < a->type.rank - 1; i++) flat[0] = hn_dim_mul(t, flat[0], a->type.dim[i]);
    a = hn_reshape(b, a, 2, flat);
    const hn_node *y = hn_build_like(b, n, 2, (hn_value *[]){ a, w });
    hn_value *z = y ? hn_reshape(b, y->out[0], d->rank, d->dim) : NULL;
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

const hn_pass_def hn_pass_flatten_matmul = {
    .name = "flatten_matmul", .summary = "make one product of a batch that shares its right operand",
    .on = HN_OP_matmul, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
