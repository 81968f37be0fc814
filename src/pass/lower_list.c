/**
 * Spell lists as tensors, so that they run: no tactic knows lists.
 *
 *     s = seq_construct(a, b)  y = seq_at(s, i)
 *         =>   flat = concat(a, b)  shapes = {shapes of a and b}  y = reshape(slice(flat) at element i)
 *     if, loop that yield or carry a list        =>   ... that yield or carry its two tensors
 *     list_unpack(flat, shapes), list_pack(s)    =>   flat, shapes
 *
 * fold_sequence goes first and takes out what is known of lists while building; this is for the rest. The whole graph is rewritten
 * in one go, after which no list is left. A graph whose own inputs or outputs are lists stays as it is.
 */
#include "pass/list_form.h"
#include "pass/pass.h"

typedef struct known {
    hn_dim sym, is;
} known;

typedef struct lowering {
    hn_graph *root;
    hn_diag *dg;
    hn_arena *a;
    hn_list *of; /* by value id */
    HN_VEC(hn_node *) dead;
    HN_VEC(known) known; /* extents of elements that were found while running */
} lowering;

static hone_status lower_graph(lowering *l, hn_graph *g);

static bool is_list(const hn_value *v)
{
    return v && v->kind != HN_TENSOR;
}

static hn_list *of(lowering *l, const hn_value *v)
{
    return &l->of[v->id];
}

/* v gives way to w; extents that were v's own are w's. */
static void exchange(lowering *l, hn_builder *b, hn_value *v, hn_value *w)
{
    if (!w) return;
    HN_FOR_DIMS_OF_VALUE (d, v) {
        const int axis = -1 - d->elem;
        if (axis < 0 || axis >= w->type.rank || w->type.dim[axis] == d->sym) continue;
        hn_vec_push(l->a, &l->known, ((known){ d->sym, w->type.dim[axis] }));
    }
    hn_replace(b, v, w);
}

/* ---- list ops ---- */
static hn_value *lower_join(lowering *l, hn_builder *b, const hn_node *n)
{
    int axis;
    if (!hn_axis_resolve(hn_attr_i(n, "axis"), n->out[0]->type.rank, &axis)) return NULL;
    return hn_list_join(b, *of(l, hn_in(n, 0)), &hn_in(n, 0)->type, axis, hn_attr_i(n, "new_axis") != 0);
}

static hn_list lower_cut(hn_builder *b, const hn_node *n)
{
    int axis;
    if (!hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis)) return (hn_list){ NULL, NULL };
    return hn_list_cut(b, hn_in(n, 0), hn_in(n, 1), axis, !hn_in(n, 1) && !hn_attr_i(n, "keepdims"));
}

static hn_list lower_maker(hn_builder *b, const hn_node *n)
{
    hn_value **x = HN_NEW_N(b->g->arena, hn_value *, n->n_in + 1);
    if (!x) return (hn_list){ NULL, NULL };
    int k = 0;
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i)) x[k++] = hn_in(n, i);
    if (n->op == HN_OP_seq_construct && hn_attr_i(n, "absent")) return hn_list_absent(b, n->out[0]->type.dtype);
    return hn_list_make(b, n->out[0]->type.dtype, k, x);
}

/* True when n was a list op: its tensors are exchanged, its lists known. */
static bool lower_op(lowering *l, hn_builder *b, hn_node *n)
{
    hn_value *x = hn_in(n, 0), *y = n->n_out ? n->out[0] : NULL;
    switch (n->op) {
    case HN_OP_seq_construct:
    case HN_OP_opt_make: *of(l, y) = lower_maker(b, n); return true;
    case HN_OP_seq_split: *of(l, y) = lower_cut(b, n); return true;
    case HN_OP_list_unpack: *of(l, y) = (hn_list){ x, hn_in(n, 1) }; return true;
    case HN_OP_seq_insert: *of(l, y) = hn_list_insert(b, *of(l, x), hn_in(n, 1), hn_in(n, 2)); return true;
    case HN_OP_seq_erase: *of(l, y) = hn_list_erase(b, *of(l, x), hn_in(n, 1)); return true;
    case HN_OP_seq_at: exchange(l, b, y, hn_list_at(b, *of(l, x), hn_in(n, 1), &y->type)); return true;
    case HN_OP_seq_concat: exchange(l, b, y, lower_join(l, b, n)); return true;
    case HN_OP_seq_length: exchange(l, b, y, hn_list_length(b, *of(l, x))); return true;
    case HN_OP_list_pack:
        exchange(l, b, n->out[0], of(l, x)->flat);
        exchange(l, b, n->out[1], of(l, x)->shapes);
        return true;
    default: break;
    }
    if (!is_list(x)) return false;
    switch (n->op) {
    case HN_OP_identity: *of(l, y) = *of(l, x); return true;
    case HN_OP_opt_has: exchange(l, b, y, hn_list_is_there(b, *of(l, x), x->kind)); return true;
    case HN_OP_opt_get:
        if (is_list(y)) *of(l, y) = hn_list_or_empty(b, *of(l, x));
        else exchange(l, b, y, hn_list_at(b, *of(l, x), NULL, &y->type));
        return true;
    default: return false;
    }
}

/* ---- control flow ---- */
/* Put both tensors where a list stands. */
static int expanded(lowering *l, hn_value *const *v, int n, hn_value **ret)
{
    int k = 0;
    for (int i = 0; i < n; i++) {
        if (!is_list(v[i])) {
            ret[k++] = v[i];
            continue;
        }
        ret[k++] = of(l, v[i])->flat;
        ret[k++] = of(l, v[i])->shapes;
    }
    return k;
}

/* A body's results: its own values, no two the same. */
static hone_status expand_outputs(lowering *l, hn_graph *body)
{
    hn_value **v = HN_NEW_N(l->a, hn_value *, body->n_out + 1), **w = HN_NEW_N(l->a, hn_value *, 2 * body->n_out + 1);
    hn_builder b;
    if (!v || !w) return HN_NOMEM(l->dg);
    hn_builder_init(&b, body, l->dg);
    const int n = body->n_out;
    for (int i = 0; i < n; i++) v[i] = body->out[i].value;
    const int m = expanded(l, v, n, w);
    if (m == n) return HONE_OK;
    for (int i = 0; i < m; i++) {
        w[i] = hn_b1(&b, HN_OP_identity, w[i], HN_NO_ATTRS);
        HN_TRY(b.status);
        if (i < n) hn_graph_set_output(body, i, w[i]);
        else hn_graph_output(body, w[i], NULL);
    }
    return HONE_OK;
}

/* A parameter for one of a list's tensors; how long it is shows when it is there. */
static hn_value *add_param(hn_graph *body, hn_tdesc type)
{
    hn_value *v = hn_graph_input(body, NULL, &type);
    if (v) v->type.dim[0] = hn_graph_value_dim(body, v, HN_DIM_OF_AXIS(0));
    return v;
}

static hone_status expand_params(lowering *l, hn_graph *body)
{
    const int n = body->n_in;
    hn_value **v = HN_NEW_N(l->a, hn_value *, n + 1), **w = HN_NEW_N(l->a, hn_value *, 2 * n + 1);
    if (!v || !w) return HN_NOMEM(l->dg);
    for (int i = 0; i < n; i++) {
        v[i] = body->in[i];
        if (!is_list(v[i])) continue;
        of(l, v[i])->flat = add_param(body, (hn_tdesc){ .dtype = v[i]->type.dtype, .rank = 1 });
        of(l, v[i])->shapes = add_param(body, (hn_tdesc){ .dtype = HN_I64, .rank = 2, .dim = { 0, HN_LIST_COLUMNS } });
        if (!of(l, v[i])->flat || !of(l, v[i])->shapes) return HN_NOMEM(l->dg);
    }
    body->n_in = expanded(l, v, n, w);
    for (int i = 0; i < body->n_in; i++) body->in[i] = w[i];
    return HONE_OK;
}

static bool has_lists(const hn_node *n)
{
    for (int i = 0; i < n->n_out; i++)
        if (is_list(n->out[i])) return true;
    for (int i = 0; i < n->n_in; i++)
        if (is_list(hn_in(n, i))) return true;
    return false;
}

/* The node anew over its own bodies, in the place of the old one. */
static hone_status rebuild(lowering *l, hn_builder *b, hn_node *n)
{
    hn_value **v = HN_NEW_N(l->a, hn_value *, n->n_in + 1), **in = HN_NEW_N(l->a, hn_value *, 2 * n->n_in + 1);
    hn_graph *body[2] = { NULL, NULL };
    if (!v || !in) return HN_NOMEM(l->dg);
    for (int i = 0; i < n->n_in; i++) v[i] = hn_in(n, i);
    const int n_in = expanded(l, v, n->n_in, in), n_body = n->n_body;
    for (int i = 0; i < n_body; i++) {
        body[i] = n->body[i];
        body[i]->owner = NULL;
    }
    n->n_body = 0;
    const hn_attr_set *attrs = n->op == HN_OP_loop ? HN_ATTRS_ARG(HN_A_I("n_carried", n_in - 2)) : HN_NO_ATTRS;
    hn_node *y = hn_build_bodies(b, n->op, n_in, in, attrs, 0, n_body, body);
    HN_TRY(b->status);
    for (int i = 0, k = 0; i < n->n_out; i++) {
        if (is_list(n->out[i])) *of(l, n->out[i]) = (hn_list){ y->out[k], y->out[k + 1] };
        else exchange(l, b, n->out[i], y->out[k]);
        k += is_list(n->out[i]) ? 2 : 1;
    }
    return HONE_OK;
}

static hone_status lower_control(lowering *l, hn_builder *b, hn_node *n)
{
    const bool lists = has_lists(n);
    for (int i = 0; i < n->n_body; i++) {
        if (lists) HN_TRY(expand_params(l, n->body[i]));
        HN_TRY(lower_graph(l, n->body[i]));
        if (lists) HN_TRY(expand_outputs(l, n->body[i]));
    }
    if (!lists) return HONE_OK;
    HN_TRY(rebuild(l, b, n));
    return hn_vec_push(l->a, &l->dead, n) ? HONE_OK : HN_NOMEM(l->dg);
}

static hone_status lower_graph(lowering *l, hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        hn_builder b;
        hn_builder_init(&b, g, l->dg);
        hn_at(&b, n);
        if (n->n_body) {
            HN_TRY_IN(l->dg, lower_control(l, &b, n), "node \"%s\"", n->name);
        } else if (lower_op(l, &b, n)) {
            HN_TRY_IN(l->dg, b.status, "node \"%s\"", n->name);
            if (!hn_vec_push(l->a, &l->dead, n)) return HN_NOMEM(l->dg);
        }
    }
    return HONE_OK;
}

/* ---- the whole ---- */
static bool any_list(const hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        if (n->op >= HN_OP_seq_construct && n->op <= HN_OP_list_pack) return true;
        for (int i = 0; i < n->n_body; i++)
            if (any_list(n->body[i])) return true;
    }
    return false;
}

static bool own_lists(const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        if (is_list(g->in[i])) return true;
    for (int i = 0; i < g->n_out; i++)
        if (is_list(g->out[i].value)) return true;
    return false;
}

static hone_status tell_extents(lowering *l)
{
    hn_graph *g = l->root;
    for (int i = 0; i < l->known.n; i++) {
        const int n = hn_sym_count(g->syms);
        hn_dim *sub = HN_NEW_N(l->a, hn_dim, n + 1);
        if (!sub) return HN_NOMEM(l->dg);
        for (int k = 0; k < n; k++) sub[k] = hn_sym_at(g->syms, k) == l->known.at[i].sym ? l->known.at[i].is : hn_sym_at(g->syms, k);
        for (int k = i + 1; k < l->known.n; k++) l->known.at[k].is = hn_dim_subst(g->syms, l->known.at[k].is, sub);
        HN_TRY(hn_graph_subst(g, sub, l->dg));
    }
    return HONE_OK;
}

static hone_status run(hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg)
{
    lowering l = { .root = g, .dg = dg, .a = c->scratch };
    if (g->parent || own_lists(g) || !any_list(g)) return HONE_OK;
    l.of = HN_NEW_N(l.a, hn_list, g->next_id + 1);
    if (!l.of) return HN_NOMEM(dg);
    HN_TRY(lower_graph(&l, g));
    for (int i = l.dead.n - 1; i >= 0; i--) hn_unlink(l.dead.at[i]);
    HN_TRY(tell_extents(&l));
    *fired += l.dead.n;
    return HONE_OK;
}

const hn_pass_def hn_pass_lower_list = {
    .name = "lower_list", .summary = "spell sequences and optionals as tensors",
    .keeps = HN_KEEP_NUMBERS, .exact = true, .run = run,
};
