/* Names in scope, the constants behind them, and the order in which a graph's nodes can be built. */
#include "import/import_int.h"

#include <string.h>

hn_im_scope *hn_im_scope_new(hn_im *m, hn_im_scope *up, hn_graph *g, const char *path)
{
    hn_im_scope *s = HN_NEW(m->scratch, hn_im_scope);
    if (!s) return NULL;
    s->up = up;
    s->g = g;
    s->path = path;
    s->place = "";
    s->frame = up ? up->frame : NULL;
    s->depth = up ? up->depth + 1 : 0;
    return s;
}

static hn_im_name *new_name(hn_im *m, hn_im_scope *s, const char *name, hn_diag *dg)
{
    hn_im_name *n = HN_NEW(m->scratch, hn_im_name);
    if (n && hn_im_map_put(m->scratch, &s->names, name, n)) return n;
    if (n && hn_im_map_get(&s->names, name)) {
        hn_hint(dg, "every tensor of a graph is computed once; the model is damaged or badly edited");
        HN_RAISE(dg, HONE_E_MODEL, "the name \"%s\" is given to two tensors", name);
    } else {
        HN_NOMEM(dg);
    }
    return NULL;
}

bool hn_im_define(hn_im *m, hn_im_scope *s, const char *name, hn_value *v, hn_diag *dg)
{
    hn_im_name *have = hn_im_map_get(&s->names, name);
    if (have && have->kept && !have->v) {
        have->v = v;
        return true;
    }
    hn_im_name *n = new_name(m, s, name, dg);
    if (n) n->v = v;
    return n != NULL;
}

void hn_im_initializers(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *p)
{
    for (size_t i = 0; i < p->n_initializer + p->n_sparse_initializer && !m->stop; i++) {
        hn_diag dg = { 0 };
        const Onnx__SparseTensorProto *sp =
            i < p->n_initializer ? NULL : p->sparse_initializer[i - p->n_initializer];
        const Onnx__TensorProto *t = sp ? sp->values : p->initializer[i];
        hn_im_name *n = t && t->name ? new_name(m, s, t->name, &dg) : NULL;
        if (n) {
            n->tensor = sp ? NULL : t;
            n->sparse = sp;
            n->g = s->g;
        } else {
            if (dg.code == HONE_OK) HN_RAISE(&dg, HONE_E_MODEL, "initializer %zu has no name", i);
            hn_im_problem(m, &dg);
        }
    }
}

/* An initializer becomes a constant when somebody reads it: unused ones cost nothing. */
static void make_constant(hn_im *m, const hn_im_scope *s, hn_im_name *n, const char *name, hn_diag *dg)
{
    hn_tdesc type;
    const void *at;
    size_t bytes;
    const hone_status st = n->sparse ? hn_im_sparse(m, n->sparse, &type, &at, &bytes, dg)
                                    : hn_im_tensor(m, n->tensor, &type, &at, &bytes, dg);
    if (st == HONE_OK) {
        hn_im_spend(m, s, bytes / sizeof(int64_t) / HN_IM_NUMBERS_A_NODE);
        n->v = hn_graph_const(n->g, name, &type, at, bytes);
        if (!n->v) HN_NOMEM(dg);
    }
    if (dg->code == HONE_OK) return;
    hn_im_problem(m, dg);
    n->bad = true;
}

hn_value *hn_im_lookup(hn_im *m, hn_im_scope *s, const char *name, bool *ret_bad, hn_diag *dg)
{
    for (; s; s = s->up) {
        hn_im_name *n = hn_im_map_get(&s->names, name);
        if (!n) continue;
        if (!n->v && !n->bad && (n->tensor || n->sparse)) make_constant(m, s, n, name, dg);
        if (n->bad) *ret_bad = m->read_bad = true;
        return n->v;
    }
    hn_hint(dg, "the model is damaged: no input, initializer or earlier node gives this name");
    HN_RAISE(dg, HONE_E_MODEL, "\"%s\" is read but nothing computes it", name);
    return NULL;
}

/* ---- order ---- */

typedef struct sorter {
    hn_im *m;
    const hn_im_scope *scope;
    Onnx__NodeProto *const *node;
    size_t n;
    hn_im_map producer; /* output name -> index + 1 */
    uint8_t *state;     /* 0 new, 1 open, 2 done */
    size_t *order, n_order;
    HN_VEC(size_t) stack;
} sorter;

static size_t producer(const sorter *t, const char *name)
{
    return (size_t)(uintptr_t)hn_im_map_get(&t->producer, name);
}

/* Names that a body gives to values of its own although a node outside yields one of that name: both branches of an If may call
   what they yield as the If calls it (merged decoders do). Reads in the body mean the body's. */
typedef struct body {
    const struct body *up; /* the body around this one; NULL: the graph that is sorted */
    hn_im_map own;
    int depth;
} body;

static void hide(sorter *t, body *b, const char *name)
{
    if (name && *name && producer(t, name)) (void)hn_im_map_put(t->m->scratch, &b->own, name, b);
}

static void hide_own(sorter *t, body *b, const Onnx__GraphProto *g)
{
    for (size_t i = 0; i < g->n_input; i++) hide(t, b, g->input[i]->name);
    for (size_t i = 0; i < g->n_initializer; i++) hide(t, b, g->initializer[i]->name);
    for (size_t i = 0; i < g->n_node; i++)
        for (size_t k = 0; k < g->node[i]->n_output; k++) hide(t, b, g->node[i]->output[k]);
}

static bool graph_needs(sorter *t, const Onnx__GraphProto *g, const body *up);

/* Pushes what yields a name in the graph that is sorted, unless it is done or a body around the reader has the name itself. */
static bool name_needs(sorter *t, const char *name, const body *in)
{
    const size_t k = name ? producer(t, name) : 0;
    if (!k || t->state[k - 1] == 2) return false;
    for (const body *b = in; b; b = b->up)
        if (hn_im_map_get(&b->own, name)) return false;
    return hn_vec_push(t->m->scratch, &t->stack, k - 1);
}

/* Pushes producers that are not done yet; true when any is. */
static bool node_needs(sorter *t, const Onnx__NodeProto *p, const body *in)
{
    bool any = false;
    for (size_t i = 0; i < p->n_input; i++)
        if (name_needs(t, p->input[i], in)) any = true;
    for (size_t i = 0; i < p->n_attribute; i++)
        if (p->attribute[i]->g && graph_needs(t, p->attribute[i]->g, in)) any = true;
    return any;
}

static bool graph_needs(sorter *t, const Onnx__GraphProto *g, const body *up)
{
    bool any = false;
    body in = { .up = up, .depth = up ? up->depth + 1 : 1 };
    if (in.depth > HN_IM_MAX_SCOPES) return false;
    hn_im_spend(t->m, t->scope, g->n_node / 16); /* a branch that is not taken is read here alone */
    hide_own(t, &in, g);
    for (size_t i = 0; i < g->n_node; i++)
        if (node_needs(t, g->node[i], &in)) any = true;
    for (size_t i = 0; i < g->n_output; i++) /* a body may yield an outer value as it is */
        if (name_needs(t, g->output[i]->name, &in)) any = true;
    return any;
}

static bool cycle(sorter *t, size_t i)
{
    hn_diag dg = { 0 };
    const Onnx__NodeProto *p = t->node[i];
    hn_hint(&dg, "an ONNX graph has no cycles; loops are Loop and Scan nodes");
    HN_RAISE(&dg, HONE_E_MODEL, "node \"%s\" (%s) needs its own result", p->name ? p->name : "",
             p->op_type ? p->op_type : "");
    hn_im_problem(t->m, &dg);
    return false;
}

/* Depth first with a stack of its own: a node stays on the stack, open, until what it needs is done. */
static bool visit(sorter *t, size_t root)
{
    t->stack.n = 0;
    if (!hn_vec_push(t->m->scratch, &t->stack, root)) return false;
    while (t->stack.n) {
        const size_t i = t->stack.at[t->stack.n - 1];
        const int depth = t->stack.n;
        if (t->state[i] == 2) {
            t->stack.n--;
            continue;
        }
        const bool was_open = t->state[i] == 1;
        t->state[i] = 1;
        if (!node_needs(t, t->node[i], NULL)) {
            t->stack.n--;
            t->state[i] = 2;
            t->order[t->n_order++] = i;
            continue;
        }
        if (was_open) return cycle(t, i);
        for (int k = depth; k < t->stack.n; k++) /* what it needs is open already: a cycle */
            if (t->state[t->stack.at[k]] == 1) return cycle(t, t->stack.at[k]);
    }
    return true;
}

/* The order to build in: the file's own where that works. NULL when there is none (reported). */
static const size_t *node_order(hn_im *m, const hn_im_scope *s, Onnx__NodeProto *const *node, size_t n)
{
    sorter t = { .m = m, .scope = s, .node = node, .n = n };
    t.state = hn_arena_alloc(m->scratch, n + 1, 1);
    t.order = HN_NEW_N(m->scratch, size_t, n + 1);
    if (!t.state || !t.order) return NULL;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < node[i]->n_output; k++)
            if (node[i]->output[k][0])
                (void)hn_im_map_put(m->scratch, &t.producer, node[i]->output[k], (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < n; i++)
        if (!visit(&t, i)) return NULL;
    return t.order;
}

void hn_im_nodes(hn_im *m, hn_im_scope *s, Onnx__NodeProto *const *node, size_t n)
{
    const size_t *order = node_order(m, s, node, n);
    if (!order) {
        if (hn_arena_oom(m->scratch)) m->stop = true;
        for (size_t i = 0; i < n;
             i++) /* nothing of this graph can be built: its names are bad, not missing */
            for (size_t k = 0; k < node[i]->n_output; k++) {
                hn_im_name *bad = HN_NEW(m->scratch, hn_im_name);
                if (bad) bad->bad = true;
                (void)hn_im_map_put(m->scratch, &s->names, node[i]->output[k], bad);
            }
        return;
    }
    for (size_t i = 0; i < n && !m->stop; i++)
        hn_im_node(m, s, node[order[i]], order[i]);
}
