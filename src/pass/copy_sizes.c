/**
 * Give each reduction the count that its result is divided by, instead of sharing one.
 *
 *     k = cast(dims [n*m])  a = sum(x) / k  b = sum(y) / k   =>   a = sum(x) / cast(dims [n*m])  b = sum(y) / cast(dims [n*m])
 *
 * A count is made of arguments that every kernel has; shared, it would be a step of its own. Runs after everything that merges.
 */
#include "pass/pass_int.h"

static bool scales_reduction(const hn_node *reader, const hn_value *count)
{
    if (!reader || (reader->op != HN_OP_div && reader->op != HN_OP_mul)) return false;
    const hn_node *p = hn_producer(hn_in(reader, hn_in(reader, 0) == count));
    return p && p->graph == reader->graph && (hn_op_of(p)->traits & HN_TRAIT_REDUCE) && hn_has_one_use(p->out[0]);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *k = n->out[0];
    bool copied = false;
    if (!hn_is_op(hn_in(n, 0), HN_OP_dims) || hn_in(n, 0)->def->n_in > 1 || hn_tdesc_numel_static(&k->type) != 1) return false;
    HN_FOR_USES (u, k) {
        if (k->n_uses < 2) break;
        if (!scales_reduction(u->node, k) || u->node->graph != n->graph) continue;
        const hn_node *dims = hn_build_like(b, hn_in(n, 0)->def, hn_in(n, 0)->def->n_in, (hn_value *[]){ hn_in(hn_in(n, 0)->def, 0) });
        const hn_node *own = dims ? hn_build_like(b, n, 1, (hn_value *[]){ dims->out[0] }) : NULL;
        if (!own) return false;
        hn_set_in(u->node, u->index, own->out[0]);
        copied = true;
    }
    return copied;
}

const hn_pass_def hn_pass_copy_sizes = {
    .name = "copy_sizes", .summary = "give each reduction its own count to divide by",
    .on = HN_OP_cast, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
