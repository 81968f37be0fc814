/**
 * Remove nodes that pass their operand on unchanged.
 *
 *     y = reshape(x) {dim = x's own}   =>   x
 *     y = transpose(x) {perm=[0,1,2]}  =>   x
 *     y = cast(x f32) {to=f32}         =>   x
 */
#include "pass/pass.h"

static bool same_type(const hn_value *a, const hn_value *b)
{
    return hn_tdesc_eq(&a->type, &b->type);
}

static bool identity_perm(const hn_node *n)
{
    int rank;
    const int64_t *perm = hn_attr_is(n, "perm", &rank);
    for (int i = 0; i < rank; i++)
        if (perm[i] != i) return false;
    return true;
}

static bool unit_steps(const hn_node *n)
{
    int rank;
    const int64_t *step = hn_attr_is(n, "step", &rank);
    for (int i = 0; i < rank; i++)
        if (step[i] != 1) return false;
    return true;
}

static bool no_padding(const hn_node *n)
{
    int rank;
    const hn_dim *before = hn_attr_is(n, "before", &rank), *after = hn_attr_is(n, "after", &rank);
    for (int i = 0; i < rank; i++)
        if (before[i] || after[i]) return false;
    return true;
}

static bool passes_on(const hn_node *n)
{
    const hn_value *x = hn_in(n, 0);
    if (!x || n->n_out != 1 || x->kind != n->out[0]->kind) return false;
    if (n->op == HN_OP_identity) return true;
    if (!same_type(x, n->out[0])) return false;
    switch (n->op) {
    case HN_OP_reshape:
    case HN_OP_broadcast:
    case HN_OP_cast: return true;
    case HN_OP_transpose: return identity_perm(n);
    case HN_OP_slice: return unit_steps(n);
    case HN_OP_pad: return no_padding(n);
    case HN_OP_concat: return n->n_in == 1;
    default: return false;
    }
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    if (!passes_on(n) || !n->out[0]->n_uses) return false;
    hn_replace(b, n->out[0], hn_in(n, 0));
    return true;
}

const hn_pass_def hn_pass_fold_identity = {
    .name = "fold_identity", .summary = "remove nodes that pass their operand on",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
