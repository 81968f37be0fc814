/* Graphs and values: creation, inputs, outputs, constants, names, symbols bound while running. */
#include "ir/ir_int.h"

#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Open addressing. A slot whose value has been renamed since is stale: it matches no name and is dropped on
 * growth. */
struct hn_names {
    hn_value **slot;
    uint32_t n, cap; /* stale slots count in n; cap is a power of two */
};

static uint32_t name_hash(const char *s)
{
    return (uint32_t)hn_hash64(s, strlen(s), 0);
}

/* The slot that holds name, or the empty one where it would go. */
static hn_value **name_slot(const struct hn_names *t, const char *name)
{
    uint32_t i = name_hash(name) & (t->cap - 1);
    while (t->slot[i] && strcmp(t->slot[i]->name, name) != 0)
        i = (i + 1) & (t->cap - 1);
    return &t->slot[i];
}

static bool names_grow(hn_arena *a, struct hn_names *t)
{
    struct hn_names next = {.cap = t->cap ? 2 * t->cap : 64};
    next.slot = HN_NEW_N(a, hn_value *, next.cap);
    if (!next.slot) return false;
    for (uint32_t i = 0; i < t->cap; i++) {
        if (!t->slot[i]) continue;
        hn_value **at = name_slot(&next, t->slot[i]->name);
        if (*at) continue;
        *at = t->slot[i];
        next.n++;
    }
    *t = next;
    return true;
}

static void names_add(hn_graph *root, hn_value *v)
{
    struct hn_names *t = root->names;
    if (2 * (t->n + 1) > t->cap && !names_grow(root->arena, t)) return;
    hn_value **at = name_slot(t, v->name);
    if (!*at) t->n++;
    *at = v;
}

static hn_value *names_find(const hn_graph *root, const char *name)
{
    const struct hn_names *t = root->names;
    return t->cap ? *name_slot(t, name) : NULL;
}

hn_value *hn_graph_find(const hn_graph *g, const char *name)
{
    return names_find(g->root, name);
}

/* A free name made of stem and the value's id, which no other value shares; a model may still have used it.
 */
static const char *fresh_name(hn_value *v, const char *stem)
{
    const hn_graph *root = v->graph->root;
    const char *name = hn_arena_printf(root->arena, "%s_%u", stem, (unsigned)v->id);
    for (int k = 1; name && names_find(root, name); k++)
        name = hn_arena_printf(root->arena, "%s_%u_%d", stem, (unsigned)v->id, k);
    return name;
}

void hn_value_rename(hn_value *v, const char *name)
{
    hn_graph *root = v->graph->root;
    const hn_value *has = names_find(root, name);
    const char *text;
    if (has == v) {
        v->auto_name = false;
        return;
    }
    text = has ? fresh_name(v, name) : hn_arena_strdup(root->arena, name);
    if (!text) return;
    v->name = text;
    v->auto_name = false;
    names_add(root, v);
}

void hn_value_swap_names(hn_value *a, hn_value *b)
{
    const char *name = a->name;
    const bool auto_name = a->auto_name;
    a->name = b->name;
    a->auto_name = b->auto_name;
    b->name = name;
    b->auto_name = auto_name;
    names_add(a->graph->root, a);
    names_add(b->graph->root, b);
}

/* ---- values ---- */

/* A text names the definer of a symbol before the value is there. */
static void bind_pending(hn_graph *root, hn_value *v)
{
    for (int i = 0; i < root->pending.n; i++) {
        const struct hn_pending_dim *p = &root->pending.at[i];
        if (strcmp(p->name, v->name) == 0) (void)hn_value_dim_add(root, p->sym, v, p->elem);
    }
}

hn_value *hn_value_new(hn_graph *g, const char *name, const char *stem)
{
    hn_value *v = HN_NEW(g->arena, hn_value);
    if (!v) return NULL;
    v->id = g->root->next_id++;
    v->graph = g;
    v->auto_name = !name || !*name;
    if (v->auto_name)
        v->name = fresh_name(v, stem);
    else
        v->name = names_find(g->root, name) ? fresh_name(v, name) : hn_arena_strdup(g->arena, name);
    if (!v->name) return NULL;
    names_add(g->root, v);
    bind_pending(g->root, v);
    return v;
}

bool hn_graph_encloses(const hn_graph *outer, const hn_graph *inner)
{
    while (inner && inner != outer)
        inner = inner->parent;
    return inner != NULL;
}

bool hn_value_is_live(const hn_value *v)
{
    if (v->def && !v->def->graph) return false;
    for (const hn_graph *g = v->graph; g->parent; g = g->parent)
        if (!g->owner || !g->owner->graph) return false;
    return true;
}

/* ---- graphs ---- */

static hn_graph *graph_alloc(hn_arena *a, const char *name)
{
    hn_graph *g = HN_NEW(a, hn_graph);
    if (!g) return NULL;
    g->arena = a;
    g->root = g;
    g->name = hn_arena_strdup(a, name ? name : "");
    return g->name ? g : NULL;
}

hn_graph *hn_graph_new(hn_arena *a, const char *name)
{
    hn_graph *g = graph_alloc(a, name);
    if (!g) return NULL;
    g->syms = hn_symtab_new(a);
    g->names = HN_NEW(a, struct hn_names);
    return g->syms && g->names ? g : NULL;
}

hn_graph *hn_subgraph_new(hn_graph *parent, const char *name)
{
    hn_graph *g = parent ? graph_alloc(parent->arena, name) : NULL;
    if (!g) return NULL;
    g->parent = parent;
    g->root = parent->root;
    g->syms = parent->syms;
    return g;
}

hn_value *hn_graph_input(hn_graph *g, const char *name, const hn_tdesc *type)
{
    hn_value *v = hn_value_new(g, name, "in");
    if (!v) return NULL;
    if (g->n_in == g->cap_in && !hn_vec_grow_(g->arena, (void **)&g->in, &g->cap_in, sizeof *g->in))
        return NULL;
    v->type = *type;
    v->def_index = g->n_in;
    g->in[g->n_in++] = v;
    return v;
}

/* Uses are list nodes: when their array moves, the lists are told. */
static bool grow_outputs(hn_graph *g)
{
    const int cap = g->cap_out ? 2 * g->cap_out : 4;
    hn_use *out = HN_NEW_N(g->arena, hn_use, cap);
    const char **name = HN_NEW_N(g->arena, const char *, cap);
    if (!out || !name) return false;
    for (int i = 0; i < g->n_out; i++) {
        hn_value *v = g->out[i].value;
        hn_use_drop(&g->out[i]);
        out[i] = (hn_use){.graph = g, .index = i};
        hn_use_link(&out[i], v);
        name[i] = g->out_name[i];
    }
    g->out = out;
    g->out_name = name;
    g->cap_out = cap;
    return true;
}

void hn_graph_output(hn_graph *g, hn_value *v, const char *name)
{
    if (!v || (g->n_out == g->cap_out && !grow_outputs(g))) return;
    const char *text = hn_arena_strdup(g->arena, name ? name : v->name);
    if (!text) return;
    const int i = g->n_out++;
    g->out_name[i] = text;
    g->out[i] = (hn_use){.graph = g, .index = i};
    hn_use_link(&g->out[i], v);
}

void hn_graph_set_output(hn_graph *g, int i, hn_value *v)
{
    if (HN_NEVER(i < 0 || i >= g->n_out) || !v) return;
    hn_use_drop(&g->out[i]);
    hn_use_link(&g->out[i], v);
}

hn_value *hn_graph_const(hn_graph *g, const char *name, const hn_tdesc *type, const void *bytes, size_t n)
{
    hn_value *v = hn_value_new(g, name, "c");
    hn_data *d = v ? HN_NEW(g->arena, hn_data) : NULL;
    if (!d || !hn_vec_push(g->arena, &g->consts, v)) return NULL;
    d->at = bytes;
    d->bytes = n;
    v->data = d;
    v->type = *type;
    hn_content_of_const(v);
    return v;
}

hn_digest hn_data_digest(hn_data *d)
{
    if (!d->digest.lo && !d->digest.hi) d->digest = hn_hash128(d->at, d->bytes);
    return d->digest;
}

/* ---- symbols bound while running ---- */

/* Symbol names are words of [A-Za-z0-9_] so that expressions print and parse; values have any name. */
static hn_dim add_value_symbol(hn_graph *root, const hn_value *v, int elem)
{
    char *word =
        hn_arena_printf(root->arena, elem < 0 ? "%s_d%d" : "%s_%d", v->name, elem < 0 ? -1 - elem : elem);
    if (!word) return 0;
    for (char *s = word; *s; s++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *s)) *s = '_';
    const char *name = hn_arena_printf(root->arena, "%s%s", *word >= '0' && *word <= '9' ? "v" : "", word);
    if (name && hn_sym_find(root->syms, name)) name = hn_sym_fresh_name(root->syms, root->arena, hn_arena_printf(root->arena, "v%s", word));
    return name ? hn_sym_add(root->syms, name, HN_SYM_VALUE) : 0;
}

hn_dim hn_graph_value_dim(hn_graph *g, hn_value *v, int elem)
{
    hn_graph *root = g->root;
    const hn_dim known = hn_value_dim_find(v, elem);
    if (known) return known;
    const hn_dim d = add_value_symbol(root, v, elem);
    return d && hn_value_dim_add(root, d, v, elem) ? d : 0;
}

int hn_graph_count_nodes(const hn_graph *g)
{
    int n = 0;

    HN_FOR_NODES (x, g) {
        n++;
        for (int i = 0; i < x->n_body; i++)
            n += hn_graph_count_nodes(x->body[i]);
    }
    return n;
}
