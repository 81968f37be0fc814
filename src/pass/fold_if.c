/**
 * Replace an `if` whose condition is known by the branch it takes.
 *
 *     y = if({true}) { t = exp(x)  out t } { out x }   =>   t = exp(x)  y = t
 *
 * Nodes of the branch move into the enclosing graph; its constants are shared.
 */
#include "pass/pass.h"

static bool known_condition(const hn_node *n, bool *ret)
{
    int64_t x;
    if (!hn_const_i64(hn_in(n, 0), 0, &x)) return false;
    *ret = x != 0;
    return true;
}

/* Values of the branch to values of the enclosing graph. */
typedef struct map {
    hn_value **at; /* by id */
} map;

static hn_value *mapped(hn_builder *b, const hn_graph *body, map *m, hn_value *v)
{
    if (!v || v->graph != body) return v;
    if (!m->at[v->id] && v->data) m->at[v->id] = hn_graph_const(b->g, v->name, &v->type, v->data->at, v->data->bytes);
    return m->at[v->id];
}

static hn_node *copy_node(hn_builder *b, const hn_graph *body, map *m, hn_node *n)
{
    hn_value *in[256];
    if (n->n_in > 256 || n->n_body) return NULL;
    for (int i = 0; i < n->n_in; i++) in[i] = mapped(b, body, m, hn_in(n, i));
    return hn_build_like(b, n, n->n_in, in);
}

static bool plain_branch(const hn_graph *body)
{
    HN_FOR_NODES (n, body)
        if (n->n_body || n->n_in > 256 || (hn_op_of(n)->traits & HN_TRAIT_DYNAMIC)) return false;
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    bool cond;
    if (!known_condition(n, &cond)) return false;
    hn_graph *body = n->body[cond ? 0 : 1];
    if (!plain_branch(body)) return false;
    map m = { HN_NEW_N(c->scratch, hn_value *, b->g->root->next_id + 1) };
    if (!m.at) return false;
    HN_FOR_NODES (x, body) {
        hn_node *copy = copy_node(b, body, &m, x);
        if (!copy) return false;
        for (int i = 0; i < x->n_out; i++) m.at[x->out[i]->id] = copy->out[i];
    }
    for (int i = 0; i < n->n_out; i++) hn_replace(b, n->out[i], mapped(b, body, &m, body->out[i].value));
    return true;
}

const hn_pass_def hn_pass_fold_if = {
    .name = "fold_if", .summary = "take the branch that a known condition takes",
    .on = HN_OP_if, .keeps = HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
