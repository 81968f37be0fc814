/*
 * Removing what nobody needs.
 *
 * A node lives if it is not pure, if something alive reads one of its results, or if an extent or attribute
 * that is alive mentions a symbol that one of its results defines: data-dependent extents are reads without a
 * use.
 */
#include "ir/ir_int.h"

#include <string.h>

typedef struct sweep {
    hn_graph *root;
    hn_arena *arena;
    uint8_t *alive; /* by node id */
    hn_dim_seen seen;
    HN_VEC(hn_node *) todo;
    bool oom;
} sweep;

static void mark_node(sweep *s, hn_node *n)
{
    for (; n; n = n->graph->owner) { /* a node in a body keeps the whole chain of owners */
        if (!n->graph || s->alive[n->id]) return;
        s->alive[n->id] = 1;
        if (!hn_vec_push(s->arena, &s->todo, n)) s->oom = true;
    }
}

static bool mark_symbol(void *user, hn_dim sym)
{
    sweep *s = user;
    HN_FOR_DIMS_OF_SYM (d, s->root, sym)
        if (d->value->def) mark_node(s, d->value->def);
    return true;
}

static void mark_dims(sweep *s, const hn_dim *d, int n)
{
    for (int i = 0; i < n; i++)
        if (d[i] < 0) hn_dim_each_new_sym(s->root->syms, d[i], &s->seen, mark_symbol, s);
}

static void mark_type(sweep *s, const hn_value *v)
{
    mark_dims(s, v->type.dim, v->type.rank);
}

static void mark_attrs(sweep *s, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; op && i < op->n_attr; i++) {
        const hn_attr *a = &n->attr[i];
        if (!a->set) continue;
        if (op->attrs[i].kind == HN_ATTR_DIM) mark_dims(s, &a->i, 1);
        if (op->attrs[i].kind == HN_ATTR_DIMS) mark_dims(s, a->is, a->n);
    }
}

static void mark_value(sweep *s, const hn_value *v)
{
    if (!v) return;
    mark_type(s, v);
    if (v->def) mark_node(s, v->def);
}

static bool is_pure(const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    return op && (op->traits & (HN_TRAIT_PURE | HN_TRAIT_CONTROL | HN_TRAIT_RANDOM));
}

/* Impure nodes of every level, and the outputs of the root; bodies' outputs follow when their owner is alive.
 */
static void mark_roots(sweep *s, const hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        if (!is_pure(n)) mark_node(s, n);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) mark_roots(s, n->body[i]);
    }
}

static void mark_body(sweep *s, const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        mark_type(s, g->in[i]);
    for (int i = 0; i < g->n_out; i++)
        mark_value(s, g->out[i].value);
}

static void mark_all(sweep *s)
{
    mark_roots(s, s->root);
    mark_body(s, s->root);
    while (s->todo.n > 0) {
        const hn_node *n = s->todo.at[--s->todo.n];
        mark_attrs(s, n);
        for (int i = 0; i < n->n_in; i++)
            mark_value(s, n->in[i].value);
        for (int i = 0; i < n->n_out; i++)
            mark_type(s, n->out[i]);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) mark_body(s, n->body[i]);
    }
}

/* Last to first, so that readers go before what they read. */
static int remove_dead(const sweep *s, hn_graph *g)
{
    int n_gone = 0;
    for (hn_node *n = g->last, *prev; n; n = prev) {
        prev = n->prev;
        if (!s->alive[n->id]) {
            hn_unlink(n);
            n_gone++;
            continue;
        }
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) n_gone += remove_dead(s, n->body[i]);
    }
    return n_gone;
}

static void drop_unread_consts(hn_graph *g)
{
    int n = 0;
    for (int i = 0; i < g->consts.n; i++)
        if (g->consts.at[i]->n_uses) g->consts.at[n++] = g->consts.at[i];
    g->consts.n = n;
    HN_FOR_NODES (node, g)
        for (int i = 0; i < node->n_body; i++)
            if (node->body[i]) drop_unread_consts(node->body[i]);
}

/* A body of a dead node goes with it, at once, when the graph around it is swept. */
static bool in_living(const sweep *s, const hn_graph *g)
{
    for (const hn_node *n = g->owner; n; n = n->graph->owner)
        if (!s->alive[n->id]) return false;
    return true;
}

int hn_sweep_dead(hn_graph *g)
{
    sweep s = {.root = g->root, .arena = hn_arena_create()};
    int n_gone = 0;
    if (!s.arena) return 0;
    s.alive = HN_NEW_N(s.arena, uint8_t, g->root->next_id + 1);
    if (!hn_dim_seen_init(&s.seen, s.arena, g->root->syms)) s.oom = true;
    if (s.alive && !s.oom) mark_all(&s);
    if (s.alive && !s.oom) {
        if (in_living(&s, g)) n_gone = remove_dead(&s, g);
        drop_unread_consts(g);
        hn_value_dims_sweep(g->root); /* nothing alive mentions their symbols */
    }
    hn_arena_destroy(s.arena);
    return n_gone;
}
