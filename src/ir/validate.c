/* Every invariant of a graph, each with its own message; what is wrong is listed, not just the first. */
#include "ir/ir_int.h"

#include <stdlib.h>
#include <string.h>

typedef struct checker {
    hn_diags *list;
    const hn_graph *root;
    hn_arena *arena;
    hn_arena *scratch;
    bool full, clean;
    uint8_t *seen;      /* by id, values: 1 listed as an input, constant or result */
    uint8_t *node_seen; /* by id, nodes already passed in order */
    int64_t *n_use;     /* by value id: uses met */
    const hn_value **by_name;
    uint32_t n_name;
    hn_dim_seen dims;
    uint64_t *use_sum; /* by value id: of the places of the uses met */
} checker;

/* Add one problem; where says which node or value. */
#define BAD(c, code, where_fmt, where, ...)                                                                  \
    do {                                                                                                     \
        hn_diag bad_ = {0};                                                                                  \
        (void)HN_RAISE(&bad_, code, __VA_ARGS__);                                                            \
        hn_diag_frame(&bad_, where_fmt, where);                                                              \
        add(c, &bad_);                                                                                       \
    } while (0)
#define BAD_NODE(c, n, ...)  BAD(c, HONE_E_INTERNAL, "node \"%s\"", (n)->name ? (n)->name : "", __VA_ARGS__)
#define BAD_VALUE(c, v, ...) BAD(c, HONE_E_INTERNAL, "value \"%s\"", (v)->name ? (v)->name : "", __VA_ARGS__)

static void add(checker *c, const hn_diag *dg)
{
    c->clean = false;
    if (c->list) hn_diags_add(c->list, dg);
}

static bool id_fits(const checker *c, uint32_t id)
{
    return id < c->root->next_id;
}

/* ---- values ---- */

static void check_layout(checker *c, const hn_value *v)
{
    const hn_layout *l = &v->layout;
    int whole = 0;
    if (l->n == 0) return;
    for (int i = 0; i < l->n; i++) {
        if (l->at[i].axis < 0 || l->at[i].axis >= v->type.rank || l->at[i].block < 0 || l->at[i].block == 1) {
            BAD_VALUE(c, v, "entry %d of the layout is no axis or block of the value", i);
            return;
        }
        if (l->at[i].block == 0) whole |= 1 << l->at[i].axis;
    }
    if (whole != (1 << v->type.rank) - 1) BAD_VALUE(c, v, "the layout leaves an axis out");
}

/* Symbols of extents exist, and those bound while running have a definer that is still there. */
static bool symbol_is_defined(void *user, hn_dim sym)
{
    const checker *c = user;
    const hn_sym *s = hn_sym_get(c->root->syms, sym);
    if (s->kind != HN_SYM_VALUE) return true;
    HN_FOR_DIMS_OF_SYM (d, c->root, sym)
        if (hn_value_is_live(d->value)) return true;
    return false;
}

static void check_type(checker *c, const hn_value *v)
{
    if (v->type.dtype == HN_NONE || (int)v->type.dtype >= HN_NDTYPES) BAD_VALUE(c, v, "it has no dtype");
    if (v->type.rank < 0 || v->type.rank > HN_MAX_RANK) {
        BAD_VALUE(c, v, "rank %d is not within 0 to %d", v->type.rank, HN_MAX_RANK);
        return;
    }
    for (int i = 0; i < v->type.rank; i++) {
        int64_t known;
        if (hn_dim_known(c->root->syms, v->type.dim[i], &known) && known < 0)
            BAD_VALUE(c, v, "extent %d is %lld", i, (long long)known);
        else if (v->kind == HN_TENSOR &&
                 !hn_dim_each_new_sym(c->root->syms, v->type.dim[i], &c->dims, symbol_is_defined, c))
            BAD_VALUE(c, v, "extent %d mentions a symbol whose definer is gone", i);
    }
    check_layout(c, v);
}

static void check_content(checker *c, const hn_value *v)
{
    if (!v->content) return;
    if (v->kind != HN_TENSOR || hn_dtype_is_float(v->type.dtype) || v->type.rank > 1 ||
        hn_tdesc_numel_static(&v->type) != v->n_content)
        BAD_VALUE(c, v, "%d elements are known of a value that does not have so many", v->n_content);
}

/* Anything that lists a value comes here once: identity, place, name, type. */
static void check_value(checker *c, const hn_graph *g, const hn_value *v)
{
    if (!id_fits(c, v->id) || c->seen[v->id]) {
        BAD_VALUE(c, v, "its id %u is out of range or taken", (unsigned)v->id);
        return;
    }
    c->seen[v->id] = 1;
    if (v->graph != g) BAD_VALUE(c, v, "it is listed by a graph that it does not belong to");
    if (!v->name || !*v->name)
        BAD_VALUE(c, v, "it has no name");
    else
        c->by_name[c->n_name++] = v;
    if (v->kind != HN_TENSOR && v->kind != HN_SEQUENCE && v->kind != HN_OPTIONAL)
        BAD_VALUE(c, v, "it is of no known kind");
    check_type(c, v);
    check_content(c, v);
}

static void check_const(checker *c, const hn_graph *g, const hn_value *v)
{
    check_value(c, g, v);
    if (v->def) BAD_VALUE(c, v, "it is a constant with a producer");
    if (!v->data) {
        BAD_VALUE(c, v, "it is a constant without data");
        return;
    }
    const int64_t n = hn_tdesc_numel_static(&v->type), bytes = n < 0 ? -1 : hn_dtype_bytes(v->type.dtype, n);
    if (bytes < 0 || (uint64_t)bytes != v->data->bytes)
        BAD_VALUE(c, v, "it holds %zu bytes where its type needs %lld", v->data->bytes, (long long)bytes);
}

/* ---- uses ---- */

/* Sums of these are equal for equal sets of uses alone, as far as 64 bits tell. */
static uint64_t use_mark(const hn_use *u)
{
    return hn_hash64(&u, sizeof u, 0);
}

/* The value is listed by its graph, and was made before the reader's place in it. */
static bool is_visible(const checker *c, const hn_value *v, const hn_graph *g)
{
    if (!id_fits(c, v->id) || !c->seen[v->id] || !hn_graph_encloses(v->graph, g)) return false;
    return !v->def || (id_fits(c, v->def->id) && c->node_seen[v->def->id]);
}

static void check_use(checker *c, const hn_use *u, const hn_graph *g, const hn_node *n)
{
    const hn_value *v = u->value;
    if (n && (u->node != n || u->index != (int)(u - n->in)))
        BAD_NODE(c, n, "operand %d does not know its place", (int)(u - n->in));
    if (!n && (u->node || u->graph != g || u->index != (int)(u - g->out)))
        BAD_VALUE(c, v, "its use as output %d does not know its place", (int)(u - g->out));
    if (!is_visible(c, v, g)) {
        BAD_VALUE(c, v, "it is read where it cannot be seen or before it is made");
        return;
    }
    c->n_use[v->id]++;
    c->use_sum[v->id] += use_mark(u);
}

static void check_use_counts(checker *c, const hn_value *v)
{
    int n = 0;
    uint64_t sum = 0;
    for (const hn_use *u = v->uses; u && n <= v->n_uses; u = u->next) {
        n++;
        sum += use_mark(u);
    }
    if (n != v->n_uses || c->n_use[v->id] != v->n_uses)
        BAD_VALUE(c, v, "it says %d uses, lists %d and has %lld", v->n_uses, n, (long long)c->n_use[v->id]);
    if (sum != c->use_sum[v->id])
        BAD_VALUE(c, v, "a reader is missing from its list of uses");
}

/* ---- nodes ---- */

static void check_counts(checker *c, const hn_node *n, const hn_op_def *op)
{
    if (n->n_in < op->min_in || n->n_in > op->max_in)
        BAD_NODE(c, n, "%s cannot have %d operands", op->name, n->n_in);
    if (n->n_out < op->min_out || n->n_out > op->max_out)
        BAD_NODE(c, n, "%s cannot have %d results", op->name, n->n_out);
    for (int i = 0; i < op->min_in && i < n->n_in && !(op->traits & HN_TRAIT_CONTROL); i++)
        if (!n->in[i].value) BAD_NODE(c, n, "operand %d of %s is missing", i, op->name);
    for (int i = 0; i < op->n_attr; i++)
        if (op->attrs[i].required && !n->attr[i].set)
            BAD_NODE(c, n, "attribute \"%s\" is missing", op->attrs[i].name);
    for (int i = 1; i < n->n_origin; i++)
        if (strcmp(n->origin[i - 1], n->origin[i]) >= 0)
            BAD_NODE(c, n, "its origins are not sorted and unique");
}

typedef struct infer_hook {
    const hn_node *n;
    bool missing;
} infer_hook;

/* Answers from the table alone: validation adds no symbols. */
static hn_dim known_value_dim(void *user, int out, int elem)
{
    infer_hook *h = user;
    const hn_dim d = hn_value_dim_find(h->n->out[out], elem);
    if (!d) h->missing = true;
    return d;
}

static void check_inference(checker *c, const hn_node *n)
{
    hn_diag dg = {0};
    hn_call call;
    infer_hook hook = {.n = n};
    hone_status st = hn_call_of_node(n, c->scratch, &call, &dg);
    if (st == HONE_OK && call.op->infer) {
        for (int i = 0; i < n->n_out; i++) {
            call.out[i] = (hn_tdesc){0};
            call.out_kind[i] = HN_TENSOR;
        }
        call.value_dim = known_value_dim;
        call.user = &hook;
        st = call.op->infer(&call, &dg);
    }
    if (st != HONE_OK) {
        hn_diag_frame(&dg, "node \"%s\"", n->name ? n->name : "");
        add(c, &dg);
        return;
    }
    for (int i = 0; i < n->n_out && !hook.missing; i++)
        if (call.out_kind[i] != n->out[i]->kind || !hn_tdesc_eq(&call.out[i], &n->out[i]->type))
            BAD_NODE(c, n, "result %d is not of the type that inference gives", i);
    if (hook.missing) BAD_NODE(c, n, "an extent of its results has no symbol");
}

static void check_graph(checker *c, const hn_graph *g, int depth);

static void check_bodies(checker *c, const hn_node *n, int depth)
{
    if (n->n_body != hn_op_n_body(n->op)) BAD_NODE(c, n, "it has %d bodies", n->n_body);
    for (int i = 0; i < n->n_body; i++) {
        const hn_graph *g = n->body[i];
        if (!g)
            BAD_NODE(c, n, "body %d is missing", i);
        else if (g->owner != n || g->parent != n->graph || g->root != c->root)
            BAD_NODE(c, n, "body %d does not know its owner", i);
        else if (depth >= HN_MAX_NESTING)
            BAD_NODE(c, n, "bodies are nested more than %d deep", HN_MAX_NESTING);
        else
            check_graph(c, g, depth + 1);
    }
}

static void check_results(checker *c, const hn_graph *g, const hn_node *n)
{
    for (int i = 0; i < n->n_out; i++) {
        const hn_value *v = n->out[i];
        if (!v) {
            BAD_NODE(c, n, "result %d is missing", i);
            continue;
        }
        if (v->def != n || v->def_index != i) BAD_VALUE(c, v, "it does not know its producer");
        if (v->data) BAD_VALUE(c, v, "it has both a producer and data");
        check_value(c, g, v);
    }
}

static void check_node(checker *c, const hn_graph *g, const hn_node *n, int depth)
{
    const hn_op_def *op = hn_op_of(n);
    if (!id_fits(c, n->id) || c->node_seen[n->id]) {
        BAD_NODE(c, n, "its id %u is out of range or taken", (unsigned)n->id);
        return;
    }
    if (!op) {
        BAD_NODE(c, n, "op %d is not known", (int)n->op);
        return;
    }
    if (n->graph != g) BAD_NODE(c, n, "it is listed by a graph that it does not belong to");
    check_counts(c, n, op);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].value) check_use(c, &n->in[i], g, n);
    check_bodies(c, n, depth);
    check_results(c, g, n);
    c->node_seen[n->id] = 1;
}

/* Inference is asked only where nothing else is wrong, since it trusts what it is given. */
static void check_node_fully(checker *c, const hn_graph *g, const hn_node *n, int depth)
{
    const bool before = c->clean;
    c->clean = true;
    check_node(c, g, n, depth);
    if (c->full && c->clean) check_inference(c, n);
    c->clean = c->clean && before;
    hn_arena_reset(c->scratch);
}

/* ---- graphs ---- */

static void check_list(checker *c, const hn_graph *g)
{
    const hn_node *prev = NULL;
    int n = 0;
    for (const hn_node *x = g->first; x && n <= g->n_node; prev = x, x = x->next, n++)
        if (x->prev != prev) BAD_NODE(c, x, "the list of nodes is broken before it");
    if (n != g->n_node || g->last != prev)
        BAD(c, HONE_E_INTERNAL, "graph \"%s\"", g->name, "the list of nodes has %d of %d, or another end", n,
            g->n_node);
}

static void check_outputs(checker *c, const hn_graph *g)
{
    for (int i = 0; i < g->n_out; i++) {
        if (!g->out[i].value)
            BAD(c, HONE_E_INTERNAL, "graph \"%s\"", g->name, "output %d is missing", i);
        else
            check_use(c, &g->out[i], g, NULL);
        if (!g->out_name[i] || !*g->out_name[i])
            BAD(c, HONE_E_INTERNAL, "graph \"%s\"", g->name, "output %d has no name", i);
    }
}

static void check_graph(checker *c, const hn_graph *g, int depth)
{
    const bool clean = c->clean;
    c->clean = true;
    check_list(c, g);
    const bool list_ok = c->clean;
    c->clean = clean && list_ok;
    if (!list_ok) return; /* walking it might not end */
    for (int i = 0; i < g->n_in; i++) {
        check_value(c, g, g->in[i]);
        if (g->in[i]->def || g->in[i]->data) BAD_VALUE(c, g->in[i], "it is an input with a producer or data");
    }
    for (int i = 0; i < g->consts.n; i++)
        check_const(c, g, g->consts.at[i]);
    for (const hn_node *n = g->first; n; n = n->next)
        check_node_fully(c, g, n, depth);
    check_outputs(c, g);
}

static void count_uses(checker *c, const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        check_use_counts(c, g->in[i]);
    for (int i = 0; i < g->consts.n; i++)
        check_use_counts(c, g->consts.at[i]);
    for (const hn_node *n = g->first; n; n = n->next) {
        for (int i = 0; i < n->n_out; i++)
            check_use_counts(c, n->out[i]);
        for (int i = 0; i < n->n_body; i++)
            count_uses(c, n->body[i]);
    }
}

static int order_by_name(const void *a, const void *b)
{
    return strcmp((*(const hn_value *const *)a)->name, (*(const hn_value *const *)b)->name);
}

static void check_names(checker *c)
{
    qsort(c->by_name, c->n_name, sizeof(*c->by_name), order_by_name);
    for (uint32_t i = 1; i < c->n_name; i++)
        if (strcmp(c->by_name[i - 1]->name, c->by_name[i]->name) == 0)
            BAD_VALUE(c, c->by_name[i], "another value has the same name");
}

/* Both ways into the table lead to the entry. */
static bool is_found(const hn_graph *root, const hn_value_dim *d)
{
    bool by_value = false, by_symbol = false;
    HN_FOR_DIMS_OF_VALUE (x, d->value)
        by_value |= x == d;
    HN_FOR_DIMS_OF_SYM (x, root, d->sym)
        by_symbol |= x == d;
    return by_value && by_symbol;
}

static void check_value_dims(checker *c)
{
    for (int i = 0; i < c->root->value_dims.n; i++) {
        const hn_value_dim *d = &c->root->value_dims.at[i];
        if (!hn_value_is_live(d->value)) continue;
        const hn_sym *s = hn_sym_get(c->root->syms, d->sym);
        if (!s || s->kind != HN_SYM_VALUE)
            BAD_VALUE(c, d->value, "it defines something that is no run-time symbol");
        else if (d->elem >= 0 && (d->value->kind != HN_TENSOR || hn_dtype_is_float(d->value->type.dtype)))
            BAD_VALUE(c, d->value, "it defines symbol \"%s\" by an element but holds no integers", s->name);
        else if (d->elem < 0 && -1 - d->elem >= d->value->type.rank && d->value->kind == HN_TENSOR)
            BAD_VALUE(c, d->value, "it defines symbol \"%s\" by an axis that it does not have", s->name);
        else if (!is_found(c->root, d))
            BAD_VALUE(c, d->value, "it defines symbol \"%s\", and nothing leads there", s->name);
    }
}

static bool checker_init(checker *c, const hn_graph *root)
{
    const uint32_t n = root->next_id + 1;
    c->arena = hn_arena_create();
    c->scratch = hn_arena_create();
    if (!c->arena || !c->scratch) return false;
    c->seen = HN_NEW_N(c->arena, uint8_t, n);
    c->node_seen = HN_NEW_N(c->arena, uint8_t, n);
    c->n_use = HN_NEW_N(c->arena, int64_t, n);
    c->by_name = HN_NEW_N(c->arena, const hn_value *, n);
    c->use_sum = HN_NEW_N(c->arena, uint64_t, n);
    return c->seen && c->node_seen && c->n_use && c->by_name && c->use_sum && hn_dim_seen_init(&c->dims, c->arena, root->syms);
}

bool hn_validate(const hn_graph *g, bool full, hn_diags *list)
{
    checker c = {.list = list, .root = g->root, .full = full, .clean = true};
    hn_diag dg = {0};
    if (!checker_init(&c, g->root) || hn_arena_oom(g->arena)) {
        (void)HN_NOMEM(&dg);
        add(&c, &dg);
    } else {
        check_graph(&c, g->root, 0);
        if (c.clean) count_uses(&c, g->root);
        check_names(&c);
        check_value_dims(&c);
    }
    hn_arena_destroy(c.scratch);
    hn_arena_destroy(c.arena);
    return c.clean;
}
