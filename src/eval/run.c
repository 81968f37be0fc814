/* Running a graph: lifetimes, inputs, the node loop. */
#include "eval/eval_int.h"

#include <stdlib.h>
#include <string.h>

/* ---- lifetimes: after which node a value is read no more ---- */

static hn_node keep_mark; /* only its address counts: a value that its graph yields */

typedef struct lifetimes {
    const hn_graph *root;
    const hn_node **last; /* by value id */
} lifetimes;

/* Constants of bodies outlive the iterations, so they hang on the outermost node that reads them. */
static const hn_graph *home(const lifetimes *t, const hn_value *v)
{
    return v->data ? t->root : v->graph;
}

static const hn_node *ancestor_in(const hn_graph *g, const hn_node *n)
{
    while (n && n->graph != g)
        n = n->graph->owner;
    return n;
}

static void note_use(lifetimes *t, const hn_value *v, const hn_node *reader)
{
    if (!v) return;
    const hn_node *n = ancestor_in(home(t, v), reader);
    if (n) t->last[v->id] = n;
}

static void note_graph(lifetimes *t, const hn_graph *g)
{
    HN_FOR_NODES (n, g) {
        for (int i = 0; i < n->n_in; i++)
            note_use(t, n->in[i].value, n);
        for (int i = 0; i < n->n_out; i++)
            if (!t->last[n->out[i]->id]) t->last[n->out[i]->id] = n;
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) note_graph(t, n->body[i]);
    }
    for (int i = 0; i < g->n_out; i++) {
        const hn_value *v = g->out[i].value;
        if (home(t, v) == g)
            t->last[v->id] = &keep_mark;
        else
            note_use(t, v, g->owner);
    }
}

static hone_status plan_lifetimes(hn_run *r, hn_diag *dg)
{
    const uint32_t n = r->n_slot;
    lifetimes t = {.root = r->root, .last = HN_NEW_N(r->scratch, const hn_node *, n + 1)};
    if (!t.last) return HN_NOMEM(dg);
    note_graph(&t, r->root);
    for (uint32_t v = 0; v < n; v++) {
        if (!t.last[v] || t.last[v] == &keep_mark) continue;
        const uint32_t node = t.last[v]->id;
        r->free_next[v] = r->free_head[node];
        r->free_head[node] = v + 1;
    }
    hn_arena_reset(r->scratch);
    return HONE_OK;
}

/* ---- the state of a run ---- */

static void run_done(hn_run *r)
{
    for (uint32_t i = 0; r->slot && i < r->n_slot; i++)
        hn_cell_unref(r, r->slot[i]);
    hn_arena_destroy(r->scratch);
    hn_arena_destroy(r->arena);
}

/* Enough for a single node, which reads constants and no symbols: what there is of the graph around it costs nothing. */
static hone_status state_init(hn_run *r, const hn_graph *root, const hn_eval_opts *opts, hn_diag *dg)
{
    *r = (hn_run){.opts = opts, .root = root};
    r->arena = hn_arena_create();
    r->scratch = hn_arena_create();
    return r->arena && r->scratch ? HONE_OK : HN_NOMEM(dg);
}

static hone_status run_init(hn_run *r, const hn_graph *root, const hn_eval_opts *opts, hn_diag *dg)
{
    HN_TRY(state_init(r, root, opts, dg));
    const uint32_t n = root->next_id + 1;
    r->n_slot = root->next_id;
    r->total = root->n_node;
    r->n_sym = hn_sym_count(root->syms);
    r->slot = HN_NEW_N(r->arena, hn_cell *, n);
    r->free_head = HN_NEW_N(r->arena, uint32_t, n);
    r->free_next = HN_NEW_N(r->arena, uint32_t, n);
    r->sym = HN_NEW_N(r->arena, int64_t, r->n_sym + 1);
    r->bound = HN_NEW_N(r->arena, bool, r->n_sym + 1);
    if (!r->slot || !r->free_head || !r->free_next || !r->sym || !r->bound)
        return HN_NOMEM(dg);
    return HONE_OK;
}

/* ---- values ---- */

static hone_status cell_of_const(hn_run *r, const hn_value *v, hn_cell **ret, hn_diag *dg)
{
    const hn_tensor t = {
        .type = v->type, .data = (void *)(uintptr_t)v->data->at, .bytes = v->data->bytes};
    return hn_cell_from_tensor(r, &t, v->name, ret, dg);
}

hone_status hn_run_get(hn_run *r, const hn_value *v, hn_cell **ret, hn_diag *dg)
{
    hn_cell **slot = &r->slot[v->id];
    if (!*slot && v->data) HN_TRY(cell_of_const(r, v, slot, dg));
    if (!*slot) return HN_RAISE(dg, HONE_E_INTERNAL, "value \"%s\" is read before it is there", v->name);
    *ret = *slot;
    return HONE_OK;
}

static hone_status check_type(const hn_run *r, const hn_value *v, const hn_cell *c, hn_diag *dg)
{
    const hn_tdesc *want = &v->type, *got = &c->view.type;
    if (v->kind != c->kind)
        return HN_RAISE(dg, HONE_E_TYPE, "\"%s\" is of another kind than promised", v->name);
    if (c->kind != HN_TENSOR) return HONE_OK;
    if (want->dtype != got->dtype || want->rank != got->rank)
        return HN_RAISE(dg, HONE_E_TYPE, "\"%s\" is %s of rank %d where %s of rank %d was promised", v->name,
                        hn_dtype_name(got->dtype), got->rank, hn_dtype_name(want->dtype), want->rank);
    for (int i = 0; i < want->rank; i++) {
        int64_t x;
        if (hn_run_dim(r, want->dim[i], &x) && x != got->dim[i])
            return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of \"%s\" is %lld where %lld was promised", i,
                            v->name, (long long)got->dim[i], (long long)x);
    }
    return HONE_OK;
}

hone_status hn_run_set(hn_run *r, const hn_value *v, hn_cell *take_cell, hn_diag *dg)
{
    hn_cell_unref(r, r->slot[v->id]);
    r->slot[v->id] = take_cell;
    HN_TRY(hn_run_bind(r, v, take_cell, dg));
    HN_TRY(check_type(r, v, take_cell, dg));
    if (r->opts->tap && v->def && take_cell->kind == HN_TENSOR)
        r->opts->tap(r->opts->user, v, &take_cell->view);
    return HONE_OK;
}

/* ---- the node loop ---- */

static hone_status gather_operands(hn_run *r, const hn_node *n, hn_cell **in, hn_diag *dg)
{
    for (int i = 0; i < n->n_in; i++) {
        in[i] = NULL;
        if (n->in[i].value) HN_TRY(hn_run_get(r, n->in[i].value, &in[i], dg));
    }
    return HONE_OK;
}

static hone_status store_results(hn_run *r, const hn_node *n, hn_cell **out, hn_diag *dg)
{
    hone_status st = HONE_OK;
    for (int i = 0; i < n->n_out; i++) {
        if (st == HONE_OK)
            st = hn_run_set(r, n->out[i], out[i], dg);
        else
            hn_cell_unref(r, out[i]);
    }
    return st;
}

static hone_status run_node(hn_run *r, const hn_node *n, hn_diag *dg)
{
    hn_cell **in = calloc((size_t)n->n_in + (size_t)n->n_out + 1, sizeof *in);
    if (!in) return HN_NOMEM(dg);
    hn_cell **out = in + n->n_in;
    hone_status st = gather_operands(r, n, in, dg);
    if (st == HONE_OK) st = hn_apply(r, n, in, out, dg);
    if (st == HONE_OK) st = store_results(r, n, out, dg);
    free(in);
    hn_arena_reset(r->scratch);
    return st;
}

static void free_after(hn_run *r, const hn_node *n)
{
    for (uint32_t v = r->free_head[n->id]; v; v = r->free_next[v - 1]) {
        hn_cell_unref(r, r->slot[v - 1]);
        r->slot[v - 1] = NULL;
    }
}

hone_status hn_run_graph(hn_run *r, const hn_graph *g, hn_diag *dg)
{
    HN_FOR_NODES (n, g) {
        const hn_op_def *op = hn_op_of(n);
        HN_TRY_IN(dg, run_node(r, n, dg), "node \"%s\" (%s)", n->name ? n->name : "", op ? op->name : "?");
        free_after(r, n);
        if (g->parent) continue;
        r->done++;
        if (r->opts->progress && !r->opts->progress(r->opts->user, r->done, r->total))
            return HN_RAISE(dg, HONE_E_CANCELLED, "evaluation was cancelled");
    }
    return HONE_OK;
}

/* ---- inputs and outputs ---- */

static hone_status bind_extent(hn_run *r, const hn_value *v, int axis, int64_t extent, hn_diag *dg)
{
    const hn_dim d = v->type.dim[axis];
    const int k = hn_sym_index(r->root->syms, d);
    if (k < 0) return HONE_OK; /* a constant or an expression: checked once every symbol is bound */
    if (r->bound[k] && r->sym[k] != extent)
        return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" is %lld, but \"%s\" is already %lld",
                        axis, v->name, (long long)extent, hn_sym_get(r->root->syms, d)->name,
                        (long long)r->sym[k]);
    r->sym[k] = extent;
    r->bound[k] = true;
    return HONE_OK;
}

static hone_status check_input(const hn_value *v, const hn_tensor *t, hn_diag *dg)
{
    if (t->kind != v->kind)
        return HN_RAISE(dg, HONE_E_TYPE, "input \"%s\" is of another kind than declared", v->name);
    if (t->kind != HN_TENSOR) return HONE_OK;
    if (t->type.dtype != v->type.dtype)
        return HN_RAISE(dg, HONE_E_TYPE, "input \"%s\" is %s where %s is declared", v->name,
                        hn_dtype_name(t->type.dtype), hn_dtype_name(v->type.dtype));
    if (t->type.rank != v->type.rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" has rank %d where %d is declared", v->name,
                        t->type.rank, v->type.rank);
    return HONE_OK;
}

static hone_status set_inputs(hn_run *r, const hn_tensor *in, hn_diag *dg)
{
    const hn_graph *g = r->root;
    for (int i = 0; i < g->n_in; i++) {
        HN_TRY(check_input(g->in[i], &in[i], dg));
        for (int k = 0; in[i].kind == HN_TENSOR && k < in[i].type.rank; k++)
            HN_TRY(bind_extent(r, g->in[i], k, in[i].type.dim[k], dg));
    }
    for (int i = 0; i < g->n_in; i++) {
        hn_cell *c;
        HN_TRY(hn_cell_from_tensor(r, &in[i], g->in[i]->name, &c, dg));
        HN_TRY_IN(dg, hn_run_set(r, g->in[i], c, dg), "input %d", i);
    }
    return HONE_OK;
}

static hone_status get_outputs(hn_run *r, hn_tensor *out, hn_diag *dg)
{
    for (int i = 0; i < r->root->n_out; i++) {
        hn_cell *c;
        HN_TRY(hn_run_get(r, r->root->out[i].value, &c, dg));
        HN_TRY(hn_cell_to_tensor(c, r->opts->mode == HN_EVAL_F64, &out[i], dg));
    }
    return HONE_OK;
}

hone_status hn_eval_run(const hn_graph *g, const hn_eval_opts *opts, const hn_tensor *in, hn_tensor *out,
                        hn_diag *dg)
{
    static const hn_eval_opts dflt = {.mode = HN_EVAL_OWN};
    hn_run r;
    hn_tensor *got = calloc((size_t)g->n_out + 1, sizeof *got);
    if (!got) return HN_NOMEM(dg);
    hone_status st = run_init(&r, g, opts ? opts : &dflt, dg);
    if (st == HONE_OK) st = plan_lifetimes(&r, dg);
    if (st == HONE_OK) st = set_inputs(&r, in, dg);
    if (st == HONE_OK) st = hn_run_graph(&r, g, dg);
    if (st == HONE_OK) st = get_outputs(&r, got, dg);
    run_done(&r);
    for (int i = 0; i < g->n_out; i++) {
        if (st == HONE_OK)
            out[i] = got[i];
        else
            hn_tensor_done(&got[i]);
    }
    free(got);
    return st;
}

/* ---- one node of constants ---- */

static hone_status constant_operands(hn_run *r, const hn_node *n, hn_cell **cell, hn_diag *dg)
{
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *v = n->in[i].value;
        if (v) HN_TRY(cell_of_const(r, v, &cell[i], dg));
    }
    return HONE_OK;
}

static hone_status eval_node(hn_run *r, const hn_node *n, hn_cell **cell, hn_tensor *out, hn_diag *dg)
{
    hn_cell **res = cell + n->n_in;
    hone_status st = constant_operands(r, n, cell, dg);
    if (st == HONE_OK) st = hn_apply(r, n, cell, res, dg);
    for (int i = 0; i < n->n_in; i++)
        if (cell[i]) hn_cell_unref(r, cell[i]);
    if (st != HONE_OK) return st;
    for (int i = 0; i < n->n_out; i++) {
        if (st == HONE_OK) st = hn_cell_to_tensor(res[i], false, &out[i], dg);
        hn_cell_unref(r, res[i]);
    }
    return st;
}

hone_status hn_eval_node(const hn_node *n, hn_tensor *out, hn_diag *dg)
{
    static const hn_eval_opts opts = {.mode = HN_EVAL_OWN};
    hn_run r;
    if (n->n_body) return HN_RAISE(dg, HONE_E_INVALID, "a node with bodies is not folded");
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].value && !n->in[i].value->data)
            return HN_RAISE(dg, HONE_E_INVALID, "operand %d of node \"%s\" is not constant", i, n->name);
    hone_status st = state_init(&r, n->graph->root, &opts, dg);
    hn_cell **cell = calloc((size_t)n->n_in + (size_t)n->n_out + 1, sizeof *cell);
    hn_tensor *got = calloc((size_t)n->n_out + 1, sizeof *got);
    if (st == HONE_OK) st = cell && got ? eval_node(&r, n, cell, got, dg) : HN_NOMEM(dg);
    for (int i = 0; got && i < n->n_out; i++) {
        if (st == HONE_OK)
            out[i] = got[i];
        else
            hn_tensor_done(&got[i]);
    }
    free(got);
    free(cell);
    run_done(&r);
    return st;
}
