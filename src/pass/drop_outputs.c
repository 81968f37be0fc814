/**
 * Leave out optional results that nobody reads.
 *
 *     y, where = max_pool(x)   =>   y = max_pool(x)          nobody reads `where`
 *
 * Work can follow a node of one result, and tactics need not compute what is not read.
 */
#include "pass/pass_int.h"

/* How many results are left when unread ones at the end go. */
static int results_read(const hn_node *n)
{
    int k = n->n_out;
    while (k > HN_MAX(hn_op_of(n)->min_out, 1) && !n->out[k - 1]->n_uses && !hn_value_defines(n->out[k - 1])) k--;
    return k;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_op_def *op = hn_op_of(n);
    hn_attr_set attrs[HN_MAX_ATTR + 1] = { 0 };
    hn_value *in[16];
    if (n->n_out < 2 || n->n_in > HN_COUNT(in) || n->n_body || !(op->traits & HN_TRAIT_PURE) || (op->traits & HN_TRAIT_DYNAMIC)) return false;
    const int keep = results_read(n);
    if (keep == n->n_out || !n->out[0]->n_uses) return false;
    int n_set = 0;
    for (int i = 0; i < op->n_attr; i++)
        if (n->attr[i].set) attrs[n_set++] = (hn_attr_set){ .name = op->attrs[i].name, .kind = op->attrs[i].kind, .v = n->attr[i] };
    for (int i = 0; i < n->n_in; i++) in[i] = hn_in(n, i);
    hn_node *y = hn_build(b, n->op, n->n_in, in, attrs, keep);
    for (int i = 0; y && i < keep; i++) hn_replace(b, n->out[i], y->out[i]);
    return y != NULL;
}

const hn_pass_def hn_pass_drop_outputs = {
    .name = "drop_outputs", .summary = "leave out optional results that nobody reads",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
