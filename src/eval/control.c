/* if and loop: bodies read outer values by reference; carries and scan outputs may be of any shape and kind.
 */
#include "eval/eval_int.h"

#include <stdlib.h>
#include <string.h>

static void clear(hn_run *r, const hn_value *v)
{
    hn_cell_unref(r, r->slot[v->id]);
    r->slot[v->id] = NULL;
}

/* What a body leaves behind: parameters nobody read to the end, and its results. Constants and outer values
 * stay. */
static void leave_body(hn_run *r, const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        clear(r, g->in[i]);
    for (int i = 0; i < g->n_out; i++)
        if (g->out[i].value->graph == g && !g->out[i].value->data) clear(r, g->out[i].value);
}

static hone_status take_outputs(hn_run *r, const hn_graph *g, int from, int n, hn_cell **out, hn_diag *dg)
{
    for (int i = 0; i < n; i++) {
        hn_cell *c = NULL;
        HN_TRY(hn_run_get(r, g->out[from + i].value, &c, dg));
        out[i] = hn_cell_ref(c);
    }
    return HONE_OK;
}

static hone_status is_true(const hn_cell *c, const char *what, bool *ret, hn_diag *dg)
{
    if (c->kind != HN_TENSOR || hn_dtype_is_float(c->view.type.dtype) || c->view.numel != 1)
        return HN_RAISE(dg, HONE_E_MODEL, "%s is not one bool", what);
    *ret = c->view.i[0] != 0;
    return HONE_OK;
}

hone_status hn_apply_if(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    bool yes = false;
    if (!in[0]) return HN_RAISE(dg, HONE_E_INVALID, "if has no condition");
    HN_TRY(is_true(in[0], "the condition of if", &yes, dg));
    const hn_graph *g = n->body[yes ? 0 : 1];
    if (!g || g->n_out < n->n_out) return HN_RAISE(dg, HONE_E_INTERNAL, "a branch of if is incomplete");
    hone_status st = hn_run_graph(r, g, dg);
    if (st == HONE_OK) st = take_outputs(r, g, 0, n->n_out, out, dg);
    leave_body(r, g);
    if (st != HONE_OK) hn_diag_frame(dg, "%s branch", yes ? "then" : "else");
    return st;
}

/* ---- loop ---- */

typedef struct loop_state {
    const hn_node *n;
    const hn_graph *body;
    int n_carried, n_scan;
    hn_cell *cond;
    hn_cell **carried; /* n_carried */
    hn_cell **next;    /* one iteration's outputs: 1 + n_carried + n_scan */
    hn_cell ***scan;   /* n_scan lists of `trips` items */
    int64_t trips, cap;
} loop_state;

static bool alloc_state(loop_state *s)
{
    s->carried = calloc((size_t)s->n_carried + 1, sizeof *s->carried);
    s->next = calloc((size_t)(s->n_carried + s->n_scan + 1), sizeof *s->next);
    s->scan = calloc((size_t)s->n_scan + 1, sizeof *s->scan);
    return s->carried && s->next && s->scan;
}

static void free_state(hn_run *r, loop_state *s)
{
    hn_cell_unref(r, s->cond);
    for (int i = 0; s->carried && i < s->n_carried; i++)
        hn_cell_unref(r, s->carried[i]);
    for (int i = 0; s->next && i < 1 + s->n_carried + s->n_scan; i++)
        hn_cell_unref(r, s->next[i]);
    for (int i = 0; s->scan && i < s->n_scan; i++) {
        for (int64_t k = 0; k < s->trips && s->scan[i]; k++)
            hn_cell_unref(r, s->scan[i][k]);
        free(s->scan[i]);
    }
    free(s->carried);
    free(s->next);
    free(s->scan);
}

static bool grow_scans(loop_state *s)
{
    if (s->trips < s->cap) return true;
    const int64_t cap = s->cap ? 2 * s->cap : 16;
    for (int i = 0; i < s->n_scan; i++) {
        hn_cell **at = realloc(s->scan[i], (size_t)cap * sizeof(hn_cell *));
        if (!at) return false;
        s->scan[i] = at;
    }
    s->cap = cap;
    return true;
}

static hone_status set_params(hn_run *r, loop_state *s, hn_diag *dg)
{
    hn_cell *iter;
    HN_TRY(hn_cell_scalar(r, HN_I64, s->trips, &iter, dg));
    HN_TRY(hn_run_set(r, s->body->in[0], iter, dg));
    HN_TRY(hn_run_set(r, s->body->in[1], hn_cell_ref(s->cond), dg));
    for (int i = 0; i < s->n_carried; i++)
        HN_TRY(hn_run_set(r, s->body->in[2 + i], hn_cell_ref(s->carried[i]), dg));
    return HONE_OK;
}

/* Move one iteration's outputs to where the next one, and the end, look for them. */
static void advance(hn_run *r, loop_state *s)
{
    hn_cell_unref(r, s->cond);
    s->cond = s->next[0];
    for (int i = 0; i < s->n_carried; i++) {
        hn_cell_unref(r, s->carried[i]);
        s->carried[i] = s->next[1 + i];
    }
    for (int i = 0; i < s->n_scan; i++)
        s->scan[i][s->trips] = s->next[1 + s->n_carried + i];
    memset(s->next, 0, (size_t)(1 + s->n_carried + s->n_scan) * sizeof *s->next);
    s->trips++;
}

static hone_status iterate(hn_run *r, loop_state *s, hn_diag *dg)
{
    if (!grow_scans(s)) return HN_NOMEM(dg);
    hone_status st = set_params(r, s, dg);
    if (st == HONE_OK) st = hn_run_graph(r, s->body, dg);
    if (st == HONE_OK) st = take_outputs(r, s->body, 0, 1 + s->n_carried + s->n_scan, s->next, dg);
    leave_body(r, s->body);
    if (st != HONE_OK) {
        hn_diag_frame(dg, "iteration %lld", (long long)s->trips);
        return st;
    }
    advance(r, s);
    if (r->opts->progress && !r->opts->progress(r->opts->user, r->done, r->total))
        return HN_RAISE(dg, HONE_E_CANCELLED, "evaluation was cancelled");
    return HONE_OK;
}

static hone_status iterate_all(hn_run *r, loop_state *s, int64_t trip, hn_diag *dg)
{
    for (;;) {
        bool go = false;
        HN_TRY(is_true(s->cond, "the condition of loop", &go, dg));
        if (!go || s->trips >= trip) return HONE_OK;
        HN_TRY(iterate(r, s, dg));
    }
}

/* A loop that never ran has only the promised shape of a scan output; an extent that nothing binds is 0. */
static hone_status empty_scan(hn_run *r, const hn_value *v, hn_cell **ret, hn_diag *dg)
{
    hn_tdesc type = v->type;
    for (int i = 0; i < type.rank; i++)
        if (i == 0 || !hn_run_dim(r, type.dim[i], &type.dim[i])) type.dim[i] = 0;
    return hn_cell_new(r, &type, v->name, ret, dg);
}

static hone_status finish(hn_run *r, loop_state *s, hn_cell **out, hn_diag *dg)
{
    for (int i = 0; i < s->n_carried; i++)
        out[i] = hn_cell_ref(s->carried[i]);
    for (int i = 0; i < s->n_scan; i++) {
        hn_cell **to = &out[s->n_carried + i];
        if (s->trips > INT32_MAX) return HN_RAISE(dg, HONE_E_LIMIT, "loop ran more than %d times", INT32_MAX);
        if (s->trips)
            HN_TRY(hn_cells_concat(r, s->scan[i], (int)s->trips, 0, /* new_axis= */ true, to, dg));
        else
            HN_TRY(empty_scan(r, s->n->out[s->n_carried + i], to, dg));
    }
    return s->n->n_out > s->n_carried + s->n_scan
               ? hn_cell_scalar(r, HN_I64, s->trips, &out[s->n_carried + s->n_scan], dg)
               : HONE_OK;
}

static hone_status start(hn_run *r, loop_state *s, hn_cell *const *in, int64_t *ret_trip, hn_diag *dg)
{
    *ret_trip = INT64_MAX;
    if (!alloc_state(s)) return HN_NOMEM(dg);
    if (in[0] &&
        (in[0]->kind != HN_TENSOR || hn_dtype_is_float(in[0]->view.type.dtype) || in[0]->view.numel != 1))
        return HN_RAISE(dg, HONE_E_MODEL, "the trip count of loop is not one integer");
    if (in[0]) *ret_trip = in[0]->view.i[0];
    for (int i = 0; i < s->n_carried; i++) {
        if (!in[2 + i]) return HN_RAISE(dg, HONE_E_MODEL, "carried value %d of loop has no initial value", i);
        s->carried[i] = hn_cell_ref(in[2 + i]);
    }
    if (in[1]) {
        s->cond = hn_cell_ref(in[1]);
        return HONE_OK;
    }
    return hn_cell_scalar(r, HN_BOOL, 1, &s->cond, dg);
}

hone_status hn_apply_loop(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    loop_state s = {.n = n, .body = n->body[0], .n_carried = n->n_in - 2};
    int64_t trip;
    if (!s.body || s.n_carried < 0 || s.body->n_in != n->n_in || s.body->n_out < 1 + s.n_carried)
        return HN_RAISE(dg, HONE_E_INTERNAL, "loop and its body do not fit");
    s.n_scan = s.body->n_out - 1 - s.n_carried;
    if (n->n_out < s.n_carried + s.n_scan) return HN_RAISE(dg, HONE_E_INTERNAL, "loop has too few results");
    hone_status st = start(r, &s, in, &trip, dg);
    if (st == HONE_OK) st = iterate_all(r, &s, trip, dg);
    if (st == HONE_OK) st = finish(r, &s, out, dg);
    free_state(r, &s);
    return st;
}
