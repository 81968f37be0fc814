/**
 * Expand composite ops that no tactic takes whole.
 *
 *     y = silu(x)   =>   s = sigmoid(x)  y = mul(x, s)
 */
#include "pass/pass.h"

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    const hn_op_def *op = hn_op_of(n);
    hn_value *out[8] = { 0 };
    if (!(op->traits & HN_TRAIT_COMPOSITE) || !op->expand || n->n_out > 8) return false;
    if (c->keep && c->keep(c->keep_user, n)) return false;
    const hone_status s = op->expand(b, n, out);
    if (s != HONE_OK) {
        hn_diag_frame(b->dg, "expanding node \"%s\" (%s)", n->name, op->name);
        b->status = s;
        return false;
    }
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i] && n->out[i]->n_uses) hn_replace(b, n->out[i], out[i]);
    return true;
}

const hn_pass_def hn_pass_expand_composites = {
    .name = "expand_composites", .summary = "spell out composites that no tactic takes whole",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
