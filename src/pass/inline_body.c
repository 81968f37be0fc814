/* Copying the nodes of a body into the graph around it. */
#include "pass/pass_int.h"

bool hn_pass_can_inline(const hn_graph *body)
{
    HN_FOR_NODES (n, body)
        if (n->n_body || n->n_in > HN_INLINE_IN || (hn_op_of(n)->traits & HN_TRAIT_DYNAMIC)) return false;
    return true;
}

hn_value *hn_pass_inlined(hn_builder *b, const hn_graph *body, hn_value **at, hn_value *v)
{
    if (!v || v->graph != body) return v;
    if (!at[v->id] && v->data) at[v->id] = hn_graph_const(b->g, v->name, &v->type, v->data->at, v->data->bytes);
    return at[v->id];
}

bool hn_pass_inline(hn_builder *b, const hn_graph *body, hn_value **at)
{
    HN_FOR_NODES (n, body) {
        hn_value *in[HN_INLINE_IN];
        for (int i = 0; i < n->n_in; i++) in[i] = hn_pass_inlined(b, body, at, hn_in(n, i));
        hn_node *copy = hn_build_like(b, n, n->n_in, in);
        if (!copy) return false;
        for (int i = 0; i < n->n_out; i++) at[n->out[i]->id] = copy->out[i];
    }
    return true;
}
