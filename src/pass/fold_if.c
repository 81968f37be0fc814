/**
 * Replace an `if` whose condition is known by the branch it takes.
 *
 *     y = if({true}) { t = exp(x)  out t } { out x }   =>   t = exp(x)  y = t
 *
 * Nodes of the branch move into the enclosing graph; its constants are shared.
 */
#include "pass/pass_int.h"

static bool known_condition(const hn_node *n, bool *ret)
{
    int64_t x;
    if (!hn_const_i64(hn_in(n, 0), 0, &x)) return false;
    *ret = x != 0;
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    bool cond;
    if (!known_condition(n, &cond)) return false;
    hn_graph *body = n->body[cond ? 0 : 1];
    if (!hn_pass_can_inline(body)) return false;
    hn_value **at = HN_NEW_N(c->scratch, hn_value *, b->g->root->next_id + 1);
    if (!at || !hn_pass_inline(b, body, at)) return false;
    for (int i = 0; i < n->n_out; i++) hn_replace(b, n->out[i], hn_pass_inlined(b, body, at, body->out[i].value));
    return true;
}

const hn_pass_def hn_pass_fold_if = {
    .name = "fold_if", .summary = "take the branch that a known condition takes",
    .on = HN_OP_if, .keeps = HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
