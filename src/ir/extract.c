/* Cutting nodes out as a graph of their own: regions, and small pieces to measure or print. */
#include "ir/copy.h"

typedef struct extraction {
    hn_copier c;
    hn_graph *to;
    uint8_t *inside;            /* by value id: 1 yielded by a chosen node or within its bodies */
    HN_VEC(hn_value *) outside; /* what each input stands for */
} extraction;

static bool is_single(const hn_value *v)
{
    return v->data && hn_tdesc_numel_static(&v->type) == 1;
}

static void mark_inside(extraction *x, const hn_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        x->inside[n->out[i]->id] = 1;
    for (int b = 0; b < n->n_body; b++) {
        const hn_graph *g = n->body[b];
        if (!g) continue;
        for (int i = 0; i < g->n_in; i++)
            x->inside[g->in[i]->id] = 1;
        for (int i = 0; i < g->consts.n; i++)
            x->inside[g->consts.at[i]->id] = 1;
        HN_FOR_NODES (m, g)
            mark_inside(x, m);
    }
}

static void bring_in(extraction *x, hn_value *v)
{
    if (!v || x->inside[v->id] || x->c.map[v->id]) return;
    if (is_single(v)) {
        hn_copy_const(&x->c, x->to, v);
        return;
    }
    hn_copy_input(&x->c, x->to, v);
    if (!hn_vec_push(x->to->arena, &x->outside, v)) x->c.oom = true;
}

/* Operands first, then what the bodies capture. */
static void bring_operands(extraction *x, const hn_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        bring_in(x, n->in[i].value);
    for (int b = 0; b < n->n_body; b++) {
        const hn_graph *g = n->body[b];
        if (!g) continue;
        HN_FOR_NODES (m, g)
            bring_operands(x, m);
        for (int i = 0; i < g->n_out; i++)
            bring_in(x, g->out[i].value);
    }
}

static bool is_ready(const extraction *x, const hn_node *n)
{
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *v = n->in[i].value;
        if (v && x->inside[v->id] && !x->c.map[v->id]) return false;
    }
    for (int b = 0; b < n->n_body; b++) {
        if (!n->body[b]) continue;
        HN_FOR_NODES (m, n->body[b])
            for (int i = 0; i < m->n_in; i++) {
                const hn_value *v = m->in[i].value;
                if (v && v->graph == n->graph && x->inside[v->id] && !x->c.map[v->id]) return false;
            }
    }
    return true;
}

/* The list may come in any order: take what is ready until nothing is left. Regions are small. */
static bool copy_nodes(extraction *x, hn_node *const *node, int n_node)
{
    uint8_t *done = HN_NEW_N(x->to->arena, uint8_t, n_node + 1);
    int left = n_node;
    while (done && left > 0) {
        const int before = left;
        for (int i = 0; i < n_node; i++) {
            if (done[i] || !is_ready(x, node[i])) continue;
            bring_operands(x, node[i]);
            if (!hn_copy_node(&x->c, x->to, node[i])) return false;
            done[i] = 1;
            left--;
        }
        if (left == before) return false; /* a cycle through nodes that were not chosen */
    }
    return done != NULL;
}

/* Run-time symbols that nothing inside defines are known from outside: inputs of the piece. */
static void settle_symbols(extraction *x)
{
    const hn_graph *from = x->c.from;
    for (int i = 0; i < from->value_dims.n; i++) {
        const hn_value_dim *d = &from->value_dims.at[i];
        const hn_dim s = hn_sym_find(x->to->syms, hn_sym_name(from->syms, d->sym));
        if (s && !x->c.map[d->value->id]) hn_sym_set_kind(x->to->syms, s, HN_SYM_INPUT);
    }
}

hn_graph *hn_extract(hn_arena *a, hn_node *const *node, int n_node, hn_value *const *out, int n_out,
                     hn_value ***ret_in)
{
    extraction x = {0};
    if (n_node < 1) return NULL;
    const hn_graph *root = node[0]->graph->root;
    x.to = hn_graph_new(a, "");
    if (!x.to || !hn_syms_copy(root->syms, x.to->syms) || !hn_copier_init(&x.c, x.to, root)) return NULL;
    x.inside = HN_NEW_N(a, uint8_t, root->next_id + 1);
    if (!x.inside) return NULL;
    for (int i = 0; i < n_node; i++)
        mark_inside(&x, node[i]);
    if (!copy_nodes(&x, node, n_node)) return NULL;
    for (int i = 0; i < n_out; i++) {
        if (HN_NEVER(!x.c.map[out[i]->id])) return NULL;
        hn_graph_output(x.to, x.c.map[out[i]->id], NULL);
    }
    settle_symbols(&x);
    hn_copy_value_dims(&x.c);
    if (x.c.oom || hn_arena_oom(a)) return NULL;
    if (ret_in) *ret_in = x.outside.at;
    return x.to;
}
