/* Deep copies, and nodes like another. */
#include "ir/copy.h"

#include <string.h>

hn_graph *hn_clone(hn_arena *a, const hn_graph *g, hn_value ***ret_map)
{
    hn_copier c;
    hn_graph *to = hn_graph_new(a, g->name);
    if (!to || !hn_syms_copy(g->syms, to->syms) || !hn_copier_init(&c, to, g->root)) return NULL;
    hn_copy_graph(&c, to, g);
    hn_copy_value_dims(&c);
    if (c.oom || hn_arena_oom(a)) return NULL;
    if (ret_map) *ret_map = c.map;
    return to;
}

hn_node *hn_build_like(hn_builder *b, const hn_node *n, int n_in, hn_value *const *in)
{
    hn_graph *body[2] = {NULL, NULL};
    hn_build_args args = {.op = n->op,
                          .n_in = n_in,
                          .in = in,
                          .attr = n->attr,
                          .n_out = n->n_out,
                          .n_body = n->n_body,
                          .body = body};
    if (b->status != HONE_OK) return NULL;
    for (int i = 0; i < n->n_body && i < HN_COUNT(body); i++) {
        body[i] = n->body[i] ? hn_copy_body(b->g, n->body[i]) : NULL;
        if (!body[i]) {
            b->status = HN_NOMEM(b->dg);
            return NULL;
        }
    }
    return hn_build_full(b, &args);
}

hn_node *hn_build_changed(hn_builder *b, const hn_node *n, int n_in, hn_value *const *in, const hn_attr_set *change)
{
    const hn_op_def *op = hn_op_of(n);
    hn_attr attr[HN_MAX_ATTR];
    if (b->status != HONE_OK || HN_NEVER(n->n_body)) return NULL;
    memcpy(attr, n->attr, (size_t)op->n_attr * sizeof *attr);
    for (; change && change->name; change++) {
        const int i = hn_attr_index(op, change->name);
        if (HN_NEVER(i < 0)) return NULL;
        attr[i] = change->v;
    }
    const hn_build_args args = {.op = n->op, .n_in = n_in, .in = in, .attr = attr, .n_out = n->n_out};
    return hn_build_full(b, &args);
}
