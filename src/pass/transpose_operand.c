/**
 * Let a product read an operand the other way round instead of transposing it first.
 *
 *     y = matmul(a, transpose(k, [0,2,1]))      =>   y = matmul(a, k) {trans_b=1}
 *     y = matmul(a, transpose(k, [0,2,3,1]))    =>   y = matmul(a, transpose(k, [0,2,1,3])) {trans_b=1}
 *
 * The second form moves whole rows: k's innermost axis stays innermost. Fires where that axis has become the last but one.
 * A left operand stays as it is beside constant weights, because kernels that pack weights read rows.
 */
#include "pass/pass.h"

/* The operand without its last transpose; NULL when that is of no use. */
static hn_value *turned(hn_builder *b, hn_value *v)
{
    const hn_node *t = hn_producer(v);
    int64_t perm[HN_MAX_RANK];
    int rank;
    if (!t || t->op != HN_OP_transpose) return NULL;
    const int64_t *was = hn_attr_is(t, "perm", &rank);
    if (rank < 2 || was[rank - 2] != rank - 1) return NULL;
    bool same = was[rank - 1] == rank - 2;
    for (int i = 0; i < rank - 2; i++) same = same && was[i] == i;
    if (same) return hn_in(t, 0);
    if (!hn_has_one_use(v)) return NULL;
    for (int i = 0; i < rank; i++) perm[i] = was[i];
    perm[rank - 2] = was[rank - 1];
    perm[rank - 1] = was[rank - 2];
    return hn_transpose(b, hn_in(t, 0), perm);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    if (!n->out[0]->n_uses || n->out[0]->type.dtype != HN_F32) return false; /* others have no kernel that turns */
    hn_value *x = hn_is_const(hn_in(n, 1)) ? NULL : turned(b, hn_in(n, 0));
    hn_value *y = turned(b, hn_in(n, 1));
    if ((!x && !y) || !hn_pass_knob(c, HN_KNOB_pass_transpose_operand, n)) return false;
    const int64_t ta = hn_attr_i(n, "trans_a") ^ (x != NULL), tb = hn_attr_i(n, "trans_b") ^ (y != NULL);
    hn_value *z = hn_b2(b, HN_OP_matmul, x ? x : hn_in(n, 0), y ? y : hn_in(n, 1),
                        HN_ATTRS_ARG(HN_A_I("trans_a", ta), HN_A_I("trans_b", tb)));
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

const hn_pass_def hn_pass_transpose_operand = {
    .name = "transpose_operand", .summary = "let products read operands the other way round",
    .on = HN_OP_matmul, .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
