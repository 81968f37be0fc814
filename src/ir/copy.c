/* Copying values, nodes and bodies between graphs. */
#include "ir/copy.h"

#include <string.h>

bool hn_copier_init(hn_copier *c, hn_graph *to, const hn_graph *from)
{
    *c = (hn_copier){.to = to, .from = from, .n_map = from->next_id};
    c->map = HN_NEW_N(to->arena, hn_value *, c->n_map + 1);
    return c->map != NULL;
}

/* ---- dims ---- */

static bool grow_moved(hn_copier *c, int64_t need)
{
    const int64_t n = HN_MAX(need + 1, 2 * c->n_moved);
    hn_dim *at = HN_NEW_N(c->to->arena, hn_dim, n);
    if (!at) return false;
    for (int64_t i = 0; i < n; i++)
        at[i] = i < c->n_moved ? c->moved[i] : INT64_MIN;
    c->moved = at;
    c->n_moved = n;
    return true;
}

/* Expressions share parts, so every handle is moved once. */
hn_dim hn_copy_dim(hn_copier *c, hn_dim d)
{
    const hn_symtab *from = c->from->syms;
    hn_symtab *to = c->to->syms;
    hn_dim x[3] = {0};
    int64_t known;
    if (d >= 0) return d;
    if (from == to) return c->sub ? hn_dim_subst(to, d, c->sub) : d;
    if (-d >= c->n_moved && !grow_moved(c, -d)) {
        c->oom = true;
        return 0;
    }
    if (c->moved[-d] != INT64_MIN) return c->moved[-d];

    hn_dim r;
    if (hn_dim_known(from, d, &known))
        r = hn_dim_const(to, known);
    else if (hn_dim_expr(from, d, x) == HN_EX_SYM)
        r = hn_sym_find(to, hn_sym_name(from, d));
    else {
        const hn_expr_op op = hn_dim_expr(from, d, x);
        for (int i = 0; i < 3; i++)
            x[i] = hn_copy_dim(c, x[i]);
        r = hn_dim_make(to, op, x);
    }
    c->moved[-d] = r;
    return r;
}

static const hn_dim *copy_dims(hn_copier *c, const hn_dim *d, int n)
{
    hn_dim *to = HN_NEW_N(c->to->arena, hn_dim, n + 1);
    if (!to) {
        c->oom = true;
        return NULL;
    }
    for (int i = 0; i < n; i++)
        to[i] = hn_copy_dim(c, d[i]);
    return to;
}

void hn_copy_type(hn_copier *c, const hn_tdesc *from, hn_tdesc *ret)
{
    *ret = *from;
    for (int i = 0; i < from->rank; i++)
        ret->dim[i] = hn_copy_dim(c, from->dim[i]);
}

/* ---- values ---- */

static void fill_value(hn_copier *c, hn_value *to, const hn_value *v)
{
    to->auto_name = v->auto_name;
    to->kind = v->kind;
    to->layout = v->layout;
    hn_copy_type(c, &v->type, &to->type);
    if (v->content) {
        to->content = copy_dims(c, v->content, v->n_content);
        to->n_content = to->content ? v->n_content : 0;
    }
    if (v->data) {
        to->data = hn_arena_memdup(c->to->arena, v->data, sizeof *v->data);
        if (!to->data) c->oom = true;
    }
    if (v->id < c->n_map) c->map[v->id] = to;
}

hn_value *hn_copy_value(hn_copier *c, hn_graph *g, const hn_value *v)
{
    hn_value *to = hn_value_new(g, v->name, "v");
    if (to)
        fill_value(c, to, v);
    else
        c->oom = true;
    return to;
}

hn_value *hn_copy_input(hn_copier *c, hn_graph *g, const hn_value *v)
{
    hn_value *to = hn_graph_input(g, v->name, &v->type);
    if (to)
        fill_value(c, to, v);
    else
        c->oom = true;
    if (to) to->data = NULL;
    return to;
}

hn_value *hn_copy_const(hn_copier *c, hn_graph *g, const hn_value *v)
{
    hn_value *to = hn_copy_value(c, g, v);
    if (to && !hn_vec_push(g->arena, &g->consts, to)) c->oom = true;
    return to;
}

static hn_value *mapped(const hn_copier *c, hn_value *v)
{
    if (!v) return NULL;
    if (v->id < c->n_map && c->map[v->id]) return c->map[v->id];
    return c->outer_is_same ? v : NULL;
}

/* ---- nodes ---- */

static void copy_attrs(hn_copier *c, hn_node *to, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; i < op->n_attr; i++) {
        if (!hn_attr_copy(c->to->arena, op->attrs[i].kind, &n->attr[i], &to->attr[i])) c->oom = true;
        hn_attr *a = &to->attr[i];
        if (!a->set || c->oom) continue;
        if (op->attrs[i].kind == HN_ATTR_DIM) a->i = hn_copy_dim(c, a->i);
        if (op->attrs[i].kind == HN_ATTR_DIMS) a->is = copy_dims(c, a->is, a->n);
    }
}

static void copy_origins(hn_copier *c, hn_node *to, const hn_node *n)
{
    if (c->to->arena == c->from->arena) {
        to->origin = n->origin;
        to->n_origin = n->n_origin;
        return;
    }
    const char **origin = HN_NEW_N(c->to->arena, const char *, n->n_origin + 1);
    for (int i = 0; origin && i < n->n_origin; i++)
        origin[i] = hn_arena_strdup(c->to->arena, n->origin[i]);
    to->origin = origin;
    to->n_origin = origin ? n->n_origin : 0;
}

static void copy_bodies(hn_copier *c, hn_node *to, const hn_node *n)
{
    for (int i = 0; i < n->n_body; i++) {
        hn_graph *body = n->body[i] ? hn_subgraph_new(to->graph, n->body[i]->name) : NULL;
        if (!body) continue;
        body->owner = to;
        to->body[i] = body;
        hn_copy_graph(c, body, n->body[i]);
    }
}

hn_node *hn_copy_node(hn_copier *c, hn_graph *g, const hn_node *n)
{
    hn_node *to = hn_node_alloc(g, hn_op_of(n), n->n_in, n->n_out);
    if (!to) {
        c->oom = true;
        return NULL;
    }
    copy_attrs(c, to, n);
    copy_origins(c, to, n);
    for (int i = 0; i < n->n_in; i++) {
        to->in[i].node = to;
        to->in[i].index = i;
        hn_use_link(&to->in[i], mapped(c, n->in[i].value));
    }
    copy_bodies(c, to, n);
    for (int i = 0; i < n->n_out; i++) {
        to->out[i] = hn_copy_value(c, g, n->out[i]);
        if (!to->out[i]) return NULL;
        to->out[i]->def = to;
        to->out[i]->def_index = i;
    }
    to->name = hn_arena_strdup(g->arena, n->name ? n->name : "");
    hn_node_insert(g, NULL, to);
    return to;
}

void hn_copy_graph(hn_copier *c, hn_graph *g, const hn_graph *src)
{
    for (int i = 0; i < src->n_in; i++)
        hn_copy_input(c, g, src->in[i]);
    for (int i = 0; i < src->consts.n; i++)
        hn_copy_const(c, g, src->consts.at[i]);
    HN_FOR_NODES (n, src) {
        if (c->oom) return;
        hn_copy_node(c, g, n);
    }
    for (int i = 0; i < src->n_out && !c->oom; i++)
        hn_graph_output(g, mapped(c, src->out[i].value), src->out_name[i]);
}

void hn_copy_value_dims(hn_copier *c)
{
    const int n = c->from->value_dims.n;
    for (int i = 0; i < n; i++) {
        const hn_value_dim d = c->from->value_dims.at[i];
        if (d.value->id >= c->n_map || !c->map[d.value->id]) continue;
        if (!hn_value_dim_add(c->to, hn_copy_dim(c, d.sym), c->map[d.value->id], d.elem)) c->oom = true;
    }
}

/* ---- bodies within one root ---- */

static hn_dim twin_symbol(hn_graph *root, hn_dim sym)
{
    const hn_sym *s = hn_sym_get(root->syms, sym);
    const char *name = hn_sym_fresh_name(root->syms, root->arena, s->name);
    const hn_dim d = name ? hn_sym_add(root->syms, name, s->kind) : 0;
    if (d) hn_sym_set_bounds(root->syms, d, s->min, s->opt, s->max);
    return d;
}

/* Two bodies that bind one symbol would disagree, so the copy gets symbols of its own. */
static bool plan_symbols(hn_copier *c, const hn_graph *src)
{
    hn_graph *root = c->to;
    const int n = hn_sym_count(root->syms);
    for (int i = 0; i < root->value_dims.n; i++) {
        const hn_value_dim d = root->value_dims.at[i];
        if (!hn_graph_encloses(src, d.value->graph)) continue;
        if (!c->sub) {
            c->sub = HN_NEW_N(root->arena, hn_dim, n + root->value_dims.n + 1);
            if (!c->sub) return false;
            for (int k = 0; k < n; k++)
                c->sub[k] = hn_sym_at(root->syms, k);
        }
        c->sub[hn_sym_index(root->syms, d.sym)] = twin_symbol(root, d.sym);
    }
    for (int k = n; c->sub && k < hn_sym_count(root->syms); k++)
        c->sub[k] = hn_sym_at(root->syms, k);
    return true;
}

hn_graph *hn_copy_body(hn_graph *parent, const hn_graph *src)
{
    hn_copier c;
    hn_graph *g = hn_subgraph_new(parent, src->name);
    if (!g || !hn_copier_init(&c, parent->root, src->root)) return NULL;
    c.outer_is_same = true;
    if (!plan_symbols(&c, src)) return NULL;
    hn_copy_graph(&c, g, src);
    hn_copy_value_dims(&c);
    return c.oom ? NULL : g;
}
