/* Nodes: use lists, building, changing, inspecting. */
#include "ir/ir_int.h"

#include <string.h>

/* ---- the op table ---- */

const hn_op_def *hn_op_get(hn_op id)
{
    return id > HN_OP_NONE && id < HN_OP_END ? hn_op_table[id] : NULL;
}

const hn_op_def *hn_op_find(const char *name, size_t n)
{
    for (int i = 1; i < HN_OP_END; i++) {
        const hn_op_def *op = hn_op_table[i];
        if (op && strlen(op->name) == n && memcmp(op->name, name, n) == 0) return op;
    }
    return NULL;
}

int hn_op_n_body(hn_op id)
{
    return id == HN_OP_if ? 2 : id == HN_OP_loop ? 1 : 0;
}

int hn_attr_index(const hn_op_def *op, const char *name)
{
    for (int i = 0; i < op->n_attr; i++)
        if (strcmp(op->attrs[i].name, name) == 0) return i;
    return -1;
}

/* ---- uses ---- */

void hn_use_link(hn_use *u, hn_value *v)
{
    u->value = v;
    u->prev = NULL;
    u->next = v ? v->uses : NULL;
    if (!v) return;
    if (v->uses) v->uses->prev = u;
    v->uses = u;
    v->n_uses++;
}

void hn_use_drop(hn_use *u)
{
    hn_value *v = u->value;
    if (!v) return;
    if (u->prev) u->prev->next = u->next;
    if (u->next) u->next->prev = u->prev;
    if (v->uses == u) v->uses = u->next;
    v->n_uses--;
    u->value = NULL;
    u->prev = u->next = NULL;
}

/* ---- inspection ---- */

const hn_op_def *hn_op_of(const hn_node *n)
{
    return hn_op_get(n->op);
}

bool hn_is_op(const hn_value *v, hn_op op)
{
    return v && v->def && v->def->op == op;
}

bool hn_has_one_use(const hn_value *v)
{
    return v && v->n_uses == 1;
}

static const hn_attr *node_attr(const hn_node *n, const char *name, const hn_attr_schema **ret_schema)
{
    const hn_op_def *op = hn_op_of(n);
    const int i = op ? hn_attr_index(op, name) : -1;
    if (HN_NEVER(i < 0)) return NULL;
    *ret_schema = &op->attrs[i];
    return &n->attr[i];
}

int64_t hn_attr_i(const hn_node *n, const char *name)
{
    const hn_attr_schema *s;
    const hn_attr *a = node_attr(n, name, &s);
    return !a ? 0 : a->set ? a->i : s->dflt_i;
}

double hn_attr_f(const hn_node *n, const char *name)
{
    const hn_attr_schema *s;
    const hn_attr *a = node_attr(n, name, &s);
    return !a ? 0 : a->set ? a->f : s->dflt_f;
}

const int64_t *hn_attr_is(const hn_node *n, const char *name, int *ret_n)
{
    const hn_attr_schema *s;
    const hn_attr *a = node_attr(n, name, &s);
    *ret_n = a && a->set ? a->n : 0;
    return a && a->set ? a->is : NULL;
}

const double *hn_attr_fs(const hn_node *n, const char *name, int *ret_n)
{
    const hn_attr_schema *s;
    const hn_attr *a = node_attr(n, name, &s);
    *ret_n = a && a->set ? a->n : 0;
    return a && a->set ? a->fs : NULL;
}

const char *hn_attr_s(const hn_node *n, const char *name)
{
    const hn_attr_schema *s;
    const hn_attr *a = node_attr(n, name, &s);
    return !a ? NULL : a->set ? a->s : s->dflt_s;
}

/* ---- building ---- */

bool hn_attr_copy(hn_arena *a, hn_attr_kind kind, const hn_attr *from, hn_attr *ret)
{
    hn_attr to = *from;
    if (!from->set) {
        *ret = to;
        return true;
    }
    switch (kind) {
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
        to.is = from->n ? hn_arena_memdup(a, from->is, (size_t)from->n * sizeof *from->is) : NULL;
        if (from->n && !to.is) return false;
        break;
    case HN_ATTR_FLOATS:
        to.fs = from->n ? hn_arena_memdup(a, from->fs, (size_t)from->n * sizeof *from->fs) : NULL;
        if (from->n && !to.fs) return false;
        break;
    case HN_ATTR_STR:
        to.s = hn_arena_strdup(a, from->s ? from->s : "");
        if (!to.s) return false;
        break;
    case HN_ATTR_INT:
    case HN_ATTR_FLOAT:
    case HN_ATTR_DIM:
    case HN_ATTR_DTYPE:
        break;
    }
    *ret = to;
    return true;
}

static int n_named_values(const char *values)
{
    int n = 1;
    for (; *values; values++)
        n += *values == '|';
    return n;
}

static hone_status check_attr(const hn_op_def *op, const hn_attr_schema *s, const hn_attr *a, hn_diag *dg)
{
    if (s->kind == HN_ATTR_INT && s->values && (a->i < 0 || a->i >= n_named_values(s->values)))
        return HN_RAISE(dg, HONE_E_INVALID, "attribute \"%s\" of %s is %lld, which is none of %s", s->name,
                        op->name, (long long)a->i, s->values);
    if (s->kind == HN_ATTR_DTYPE && (a->i < 0 || a->i >= HN_NDTYPES))
        return HN_RAISE(dg, HONE_E_INVALID, "attribute \"%s\" of %s is %lld, which is no dtype", s->name,
                        op->name, (long long)a->i);
    return HONE_OK;
}

static hone_status set_attrs(hn_node *n, const hn_op_def *op, const hn_build_args *args, hn_diag *dg)
{
    hn_arena *a = n->graph->arena;
    for (const hn_attr_set *s = args->attrs; s && s->name; s++) {
        const int i = hn_attr_index(op, s->name);
        if (i < 0) return HN_RAISE(dg, HONE_E_INVALID, "%s has no attribute \"%s\"", op->name, s->name);
        if (op->attrs[i].kind != s->kind)
            return HN_RAISE(dg, HONE_E_INVALID, "attribute \"%s\" of %s is given with another kind", s->name,
                            op->name);
        if (!hn_attr_copy(a, s->kind, &s->v, &n->attr[i])) return HN_NOMEM(dg);
    }
    for (int i = 0; i < op->n_attr; i++) {
        if (args->attr && !hn_attr_copy(a, op->attrs[i].kind, &args->attr[i], &n->attr[i]))
            return HN_NOMEM(dg);
        if (n->attr[i].set) HN_TRY(check_attr(op, &op->attrs[i], &n->attr[i], dg));
        if (op->attrs[i].required && !n->attr[i].set)
            return HN_RAISE(dg, HONE_E_INVALID, "%s needs the attribute \"%s\"", op->name, op->attrs[i].name);
    }
    return HONE_OK;
}

static hone_status check_counts(const hn_op_def *op, const hn_build_args *args, int n_out, hn_diag *dg)
{
    if (args->n_in < op->min_in || args->n_in > op->max_in)
        return HN_RAISE(dg, HONE_E_INVALID, "%s takes %d to %d operands, not %d", op->name, op->min_in,
                        op->max_in, args->n_in);
    if (n_out < op->min_out || n_out > op->max_out)
        return HN_RAISE(dg, HONE_E_INVALID, "%s yields %d to %d results, not %d", op->name, op->min_out,
                        op->max_out, n_out);
    for (int i = 0; i < op->min_in && !(op->traits & HN_TRAIT_CONTROL); i++)
        if (!args->in[i]) return HN_RAISE(dg, HONE_E_INVALID, "operand %d of %s is missing", i, op->name);
    return HONE_OK;
}

/* The usual number of results: the op's least, or what the bodies' outputs give. */
static int usual_outputs(const hn_op_def *op, const hn_build_args *args)
{
    if (args->n_out > 0) return args->n_out;
    if (op->id == HN_OP_if && args->n_body) return args->body[0]->n_out;
    if (op->id == HN_OP_loop && args->n_body)
        return args->body[0]->n_out; /* less the condition, plus the trips */
    return op->min_out;
}

hn_node *hn_node_alloc(hn_graph *g, const hn_op_def *op, int n_in, int n_out)
{
    hn_node *n = HN_NEW(g->arena, hn_node);
    if (!n) return NULL;
    n->id = g->root->next_id++;
    n->op = op->id;
    n->graph = g;
    n->n_in = n_in;
    n->n_out = n_out;
    n->n_body = hn_op_n_body(op->id);
    n->in = HN_NEW_N(g->arena, hn_use, n_in ? n_in : 1);
    n->out = HN_NEW_N(g->arena, hn_value *, n_out ? n_out : 1);
    n->attr = HN_NEW_N(g->arena, hn_attr, op->n_attr ? op->n_attr : 1);
    n->body = HN_NEW_N(g->arena, hn_graph *, n->n_body ? n->n_body : 1);
    return n->in && n->out && n->attr && n->body ? n : NULL;
}

static bool make_outputs(hn_node *n, const hn_op_def *op, const char *const *name)
{
    for (int i = 0; i < n->n_out; i++) {
        hn_value *v = hn_value_new(n->graph, name ? name[i] : NULL, op->name);
        if (!v) return false;
        v->def = n;
        v->def_index = i;
        n->out[i] = v;
    }
    n->name = n->n_out ? n->out[0]->name : op->name;
    return true;
}

static void link_operands(hn_node *n, hn_value *const *in)
{
    for (int i = 0; i < n->n_in; i++) {
        n->in[i].node = n;
        n->in[i].index = i;
        hn_use_link(&n->in[i], in[i]);
    }
}

void hn_node_insert(hn_graph *g, hn_node *before, hn_node *n)
{
    n->next = before;
    n->prev = before ? before->prev : g->last;
    *(n->prev ? &n->prev->next : &g->first) = n;
    *(n->next ? &n->next->prev : &g->last) = n;
    g->n_node++;
}

static void drop_operands(hn_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        hn_use_drop(&n->in[i]);
}

static hone_status attach_bodies(hn_node *n, const hn_op_def *op, const hn_build_args *args, hn_diag *dg)
{
    if (!args->n_body) return HONE_OK; /* they follow by hn_node_set_body */
    if (args->n_body != n->n_body)
        return HN_RAISE(dg, HONE_E_INVALID, "%s has %d bodies, not %d", op->name, n->n_body, args->n_body);
    for (int i = 0; i < n->n_body; i++) {
        hn_graph *g = args->body[i];
        if (!g || g->owner || g->parent != n->graph)
            return HN_RAISE(dg, HONE_E_INVALID, "body %d of %s is missing, shared or belongs elsewhere", i,
                            op->name);
        n->body[i] = g;
    }
    return HONE_OK;
}

static bool has_all_bodies(const hn_node *n)
{
    for (int i = 0; i < n->n_body; i++)
        if (!n->body[i]) return false;
    return true;
}

static hone_status fill_node(hn_builder *b, hn_node *n, const hn_op_def *op, const hn_build_args *args)
{
    HN_TRY(set_attrs(n, op, args, b->dg));
    HN_TRY(attach_bodies(n, op, args, b->dg));
    if (!make_outputs(n, op, args->out_name)) return HN_NOMEM(b->dg);
    n->origin = b->origin;
    n->n_origin = b->n_origin;
    return has_all_bodies(n) ? hn_infer_node(n, b->dg) : HONE_OK;
}

hn_node *hn_build_full(hn_builder *b, const hn_build_args *args)
{
    const hn_op_def *op = hn_op_get(args->op);
    /* Whoever builds may have raised since: the first error stands, and nothing more is built. */
    if (b->status == HONE_OK && b->dg) b->status = b->dg->code;
    if (b->status != HONE_OK) return NULL;
    if (!op) {
        b->status = HN_RAISE(b->dg, HONE_E_UNSUPPORTED, "op %d is not known", (int)args->op);
        return NULL;
    }
    const int n_out = usual_outputs(op, args);
    b->status = check_counts(op, args, n_out, b->dg);
    if (b->status != HONE_OK) return NULL;

    hn_node *n = hn_node_alloc(b->g, op, args->n_in, n_out);
    if (!n) {
        b->status = HN_NOMEM(b->dg);
        return NULL;
    }
    link_operands(n, args->in);
    b->status = fill_node(b, n, op, args);
    if (b->status != HONE_OK) {
        drop_operands(n);
        return NULL;
    }
    for (int i = 0; i < args->n_body; i++)
        n->body[i]->owner = n;
    hn_node_insert(b->g, b->before, n);
    return n;
}

hn_node *hn_build(hn_builder *b, hn_op op, int n_in, hn_value *const *in, const hn_attr_set *attrs, int n_out)
{
    const hn_build_args args = {.op = op, .n_in = n_in, .in = in, .attrs = attrs, .n_out = n_out};
    return hn_build_full(b, &args);
}

hn_node *hn_build_bodies(hn_builder *b, hn_op op, int n_in, hn_value *const *in, const hn_attr_set *attrs,
                         int n_out, int n_body, hn_graph *const *take_body)
{
    const hn_build_args args = {.op = op,
                                .n_in = n_in,
                                .in = in,
                                .attrs = attrs,
                                .n_out = n_out,
                                .n_body = n_body,
                                .body = take_body};
    return hn_build_full(b, &args);
}

/* ---- changing ---- */

/* Sorted and unique; the lists are short (a handful of import paths). */
const char *const *hn_origin_union(hn_arena *a, const char *const *x, int n_x, const char *const *y, int n_y,
                                   int *ret_n)
{
    if (!n_y || (x == y && n_x == n_y)) {
        *ret_n = n_x;
        return x;
    }
    if (!n_x) {
        *ret_n = n_y;
        return y;
    }
    const char **to = HN_NEW_N(a, const char *, n_x + n_y);
    int n = 0, i = 0, j = 0;
    if (!to) {
        *ret_n = n_x;
        return x;
    }
    while (i < n_x || j < n_y) {
        const int c = i == n_x ? 1 : j == n_y ? -1 : strcmp(x[i], y[j]);
        to[n++] = c <= 0 ? x[i] : y[j];
        i += c <= 0;
        j += c >= 0;
    }
    *ret_n = n;
    return to;
}

static void move_uses(hn_value *v, hn_value *w)
{
    HN_FOR_USES (u, v) {
        if (u->node && u->node == w->def) continue;
        hn_use_drop(u);
        hn_use_link(u, w);
    }
}

void hn_replace(hn_builder *b, hn_value *v, hn_value *w)
{
    if (b->status != HONE_OK || !v || !w || v == w) return;
    move_uses(v, w);
    hn_value_dims_move(v, w);
    if (w->def && v->def)
        w->def->origin = hn_origin_union(w->graph->arena, w->def->origin, w->def->n_origin, v->def->origin,
                                         v->def->n_origin, &w->def->n_origin);
    if (w->auto_name && w->def && !v->auto_name && v->def) {
        hn_value_swap_names(v, w);
        if (w->def_index == 0) w->def->name = w->name;
    }
}

void hn_set_in(hn_node *n, int i, hn_value *v)
{
    if (HN_NEVER(i < 0 || i >= n->n_in)) return;
    hn_use_drop(&n->in[i]);
    hn_use_link(&n->in[i], v);
}

void hn_set_attr(hn_node *n, const char *name, hn_attr v)
{
    const hn_op_def *op = hn_op_of(n);
    const int i = op ? hn_attr_index(op, name) : -1;
    if (HN_NEVER(i < 0)) return;
    (void)hn_attr_copy(n->graph->arena, op->attrs[i].kind, &v,
                       &n->attr[i]); /* the arena remembers a failure */
}

hone_status hn_node_set_body(hn_node *n, int i, hn_graph *body)
{
    if (HN_NEVER(i < 0 || i >= n->n_body) || !body) return HONE_E_INVALID;
    if (body->owner || body->parent != n->graph) return HONE_E_INVALID;
    n->body[i] = body;
    body->owner = n;
    return has_all_bodies(n) ? hn_infer_node(n, NULL) : HONE_OK;
}

static void detach_graph(hn_graph *g);

static void detach_node(hn_node *n)
{
    drop_operands(n);
    for (int i = 0; i < n->n_body; i++)
        if (n->body[i]) detach_graph(n->body[i]);
}

/* A body that goes away no longer reads what it captured. */
static void detach_graph(hn_graph *g)
{
    HN_FOR_NODES (n, g)
        detach_node(n);
    for (int i = 0; i < g->n_out; i++)
        hn_use_drop(&g->out[i]);
}

void hn_unlink(hn_node *n)
{
    hn_graph *g = n->graph;
    for (int i = 0; i < n->n_out; i++)
        if (HN_NEVER(n->out[i]->n_uses != 0)) return;
    detach_node(n);
    *(n->prev ? &n->prev->next : &g->first) = n->next;
    *(n->next ? &n->next->prev : &g->last) = n->prev;
    g->n_node--;
    n->graph = NULL;
    n->prev = n->next = NULL;
}
