/**
 * Compute a shape at once instead of element by element.
 *
 *     s = shape arithmetic with known content [n, 4*m]   =>   s = dims() {dim=[n, 4*m]}
 *
 * Fires where every element is an expression over the inputs' extents.
 */
#include "pass/pass_int.h"

static bool from_input(void *user, hn_dim sym)
{
    const hn_sym *s = hn_sym_get(user, sym);
    return s && s->kind == HN_SYM_INPUT;
}

static bool all_from_inputs(hn_symtab *t, const hn_value *v)
{
    for (int i = 0; i < v->n_content; i++)
        if (!hn_dim_each_sym(t, v->content[i], from_input, t)) return false;
    return true;
}

/* dims, and the scalar form of it below, are what this pass makes. */
static bool done_already(const hn_node *n)
{
    return n->op == HN_OP_dims || (n->op == HN_OP_reshape && hn_is_op(hn_in(n, 0), HN_OP_dims));
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    if (n->n_out != 1 || n->n_body || !(hn_op_of(n)->traits & HN_TRAIT_PURE) || done_already(n)) return false;
    hn_value *v = n->out[0];
    if (!v->n_uses || !v->content || v->type.dtype != HN_I64 || v->type.rank > 1 || !hn_tdesc_is_static(&v->type)) return false;
    if (!all_from_inputs(b->g->syms, v)) return false;
    hn_value *y = hn_const_dims(b, v->n_content, v->content);
    y = y ? hn_reshape(b, y, v->type.rank, v->type.dim) : NULL;
    if (y) hn_replace(b, v, y);
    return y != NULL;
}

const hn_pass_def hn_pass_fold_dims = {
    .name = "fold_dims", .summary = "compute shapes at once instead of element by element",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
