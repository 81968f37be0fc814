/* If, Loop, Scan, SequenceMap. A branch that is known now is built in place; Scan and SequenceMap become
 * loops. */
#include "import/import_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* ---- If ---- */

static bool known_bool(hn_im_call *c, hn_value *v, bool *ret)
{
    double x;
    int64_t i;
    if (hn_const_scalar(v, &x)) {
        *ret = x != 0;
        return true;
    }
    if (!hn_im_int(c, v, &i)) return false;
    *ret = i != 0;
    return true;
}

static hone_status branch(hn_im_call *c, const Onnx__GraphProto *p, const char *label, hn_graph **ret)
{
    hn_im_body body;
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, p->n_output + 1);
    if (!out) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    HN_TRY(hn_im_body_new(c, label, &body));
    *ret = body.g;
    if (!hn_im_body_run(&body, p, 0, NULL, out)) return c->dg->code != HONE_OK ? c->dg->code : HONE_E_MODEL;
    for (size_t i = 0; i < p->n_output; i++)
        hn_im_body_output(&body, out[i], p->output[i]->name);
    return body.b.status;
}

/* What a body read, bodies within it included, counts it as a reader no more. */
static void drop_body(hn_graph *g)
{
    for (hn_node *n = g->last; n; n = n->prev) {
        for (int i = 0; i < n->n_in; i++) hn_set_in(n, i, NULL);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) drop_body(n->body[i]);
    }
}

static bool ranks_differ(const hn_graph *a, const hn_graph *b)
{
    for (int i = 0; i < a->n_out && i < b->n_out; i++) {
        const hn_value *x = a->out[i].value, *y = b->out[i].value;
        if (x->kind == HN_TENSOR && y->kind == HN_TENSOR && x->type.rank != y->type.rank) return true;
    }
    return false;
}

static bool has_squeeze(const Onnx__GraphProto *p)
{
    for (size_t i = 0; i < p->n_node; i++)
        if (p->node[i]->op_type && strcmp(p->node[i]->op_type, "Squeeze") == 0) return true;
    return false;
}

static hone_status take_branch(hn_im_call *c, const Onnx__GraphProto *p, const char *label)
{
    const bool ok = hn_im_inline(c, p, label, 0, NULL, c->n_out, c->out);
    return ok ? HONE_OK : c->dg->code != HONE_OK ? c->dg->code : HONE_E_MODEL;
}

/*
 * Exporters write "squeeze the axis if its extent is 1" as a choice between results of two ranks. A compiled
 * graph has one: the squeezed, which the rest of such models is made for. A run whose extent is not 1 fails
 * there with an error.
 */
static hone_status choose_rank(hn_im_call *c, const Onnx__GraphProto *then_g, const Onnx__GraphProto *else_g)
{
    const bool squeeze_then = has_squeeze(then_g), squeeze_else = has_squeeze(else_g);
    if (squeeze_then == squeeze_else) {
        hn_hint(c->dg, "fix the input's extents or values that the condition depends on");
        return hn_im_refuse(
            c, "the branches give results of different ranks and the condition is known only while running");
    }
    hn_log(HN_LOG_WARN,
           "node \"%s\": the squeezed branch is compiled; other extents than 1 there will be an error",
           c->path);
    return take_branch(c, squeeze_then ? then_g : else_g, squeeze_then ? "then_branch" : "else_branch");
}

/* One branch on trial: its problems go to a list of their own. */
typedef struct trial {
    const Onnx__GraphProto *p;
    const char *label;
    hn_graph *body;
    hn_diags caught;
    bool ok;
} trial;

static void try_branch(hn_im_call *c, trial *r)
{
    hn_im *m = c->m;
    hn_diags *const list = m->problems;
    const hn_diag first = m->first;
    const int n = m->n_problem;
    m->problems = &r->caught;
    m->n_problem = 0;
    const hone_status s = branch(c, r->p, r->label, &r->body);
    if (c->dg->code != HONE_OK) hn_im_problem(m, c->dg);
    r->ok = s == HONE_OK && m->n_problem == 0;
    m->problems = list;
    m->first = first;
    m->n_problem = n;
}

/* A branch that the extents at hand contradict can only fail when it is taken. */
static bool only_shapes(const trial *r)
{
    bool shapes = r->caught.n > 0;
    for (int i = 0; i < r->caught.n; i++)
        shapes &= r->caught.at[i].code == HONE_E_SHAPE || r->caught.at[i].code == HONE_E_TYPE;
    return shapes;
}

static void report(hn_im_call *c, trial *r)
{
    for (int i = 0; i < r->caught.n; i++)
        hn_im_problem(c->m, &r->caught.at[i]);
}

static bool is_input_symbol(void *user, hn_dim sym)
{
    return hn_sym_get(user, sym)->kind == HN_SYM_INPUT;
}

/*
 * In its place a body of the other's result types that fails when run: it reads element 1 of one. The index
 * is made of the condition, so that nobody computes it beforehand.
 */
static hone_status trap_body(hn_im_call *c, trial *r, const hn_graph *like, hn_value *cond, bool when)
{
    hn_im_body b;
    drop_body(r->body);
    HN_TRY(hn_im_body_new(c, r->label, &b));
    hn_value *at = hn_cast(&b.b, cond, HN_I64), *one = hn_const_i(&b.b, HN_I64, 1);
    if (!when) at = hn_b2(&b.b, HN_OP_sub, one, at, HN_NO_ATTRS);
    for (int i = 0; i < like->n_out; i++) {
        const hn_value *v = like->out[i].value;
        hn_dim dim[HN_MAX_RANK];
        if (v->kind != HN_TENSOR)
            return hn_im_refuse(c, "a branch that yields a list contradicts the shapes");
        for (int k = 0; k < v->type.rank;
             k++) /* extents that the other branch finds while running are not known here */
            dim[k] = hn_dim_each_sym(hn_im_syms(c), v->type.dim[k], is_input_symbol, hn_im_syms(c))
                         ? v->type.dim[k]
                         : 0;
        hn_value *x = hn_reshape(&b.b, hn_const_i(&b.b, v->type.dtype, 0), 1, (hn_dim[]){ 1 });
        x = hn_b2(&b.b, HN_OP_gather, x, at, HN_ATTRS_ARG(HN_A_I("axis", 0)));
        hn_im_body_output(&b, hn_broadcast_to(&b.b, x, v->type.rank, dim), like->out_name[i]);
    }
    hn_log(HN_LOG_WARN, "node \"%s\": %s does not fit these shapes (%s); a run that takes it will fail",
           c->path, r->label, r->caught.at[0].message);
    r->body = b.g;
    return b.b.status;
}

static hone_status both_branches(hn_im_call *c, trial r[2], hn_value *cond)
{
    for (int i = 0; i < 2; i++)
        try_branch(c, &r[i]);
    if (c->m->stop) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (r[0].ok && r[1].ok) return HONE_OK;
    const int bad = r[0].ok ? 1 : 0;
    if (!r[1 - bad].ok || !only_shapes(&r[bad])) {
        report(c, &r[0]);
        report(c, &r[1]);
        return HONE_E_MODEL;
    }
    return trap_body(c, &r[bad], r[1 - bad].body, cond, /* when= */ bad == 0);
}

static hone_status build_if(hn_im_call *c, trial r[2], hn_value *cond)
{
    if (cond->type.rank) cond = hn_reshape(c->b, cond, 0, NULL);
    HN_TRY(c->b->status);
    HN_TRY(both_branches(c, r, cond));
    if (ranks_differ(r[0].body, r[1].body)) {
        drop_body(r[0].body);
        drop_body(r[1].body);
        return choose_rank(c, r[0].p, r[1].p);
    }
    hn_node *n =
        hn_build_bodies(c->b, HN_OP_if, 1, &cond, HN_NO_ATTRS, 0, 2, (hn_graph *[]){ r[0].body, r[1].body });
    for (int i = 0; n && i < c->n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

hone_status hn_im_on_if(hn_im_call *c)
{
    const Onnx__GraphProto *then_g = hn_im_graph(c, "then_branch"), *else_g = hn_im_graph(c, "else_branch");
    hn_value *cond = hn_im_in(c, 0);
    bool yes;

    if (!then_g || !else_g) return HN_IM_RAISE(c, HONE_E_MODEL, "a branch is missing");
    if (then_g->n_output != else_g->n_output || (size_t)c->n_out > then_g->n_output)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the branches give %zu and %zu outputs, the node %d",
                           then_g->n_output, else_g->n_output, c->n_out);
    if (known_bool(c, cond, &yes))
        return take_branch(c, yes ? then_g : else_g, yes ? "then_branch" : "else_branch");
    trial r[2] = { { .p = then_g, .label = "then_branch" }, { .p = else_g, .label = "else_branch" } };
    const hone_status s = build_if(c, r, cond);
    hn_diags_done(&r[0].caught);
    hn_diags_done(&r[1].caught);
    return s;
}

/* ---- loops in general ---- */

/*
 * What a loop runs: builds the body's nodes. param holds iter, cond, carried; fills next (cond, carried,
 * scans).
 */
typedef struct loop_spec {
    hn_im_call *c;
    const Onnx__GraphProto *body;
    int n_carried, n_scan;
    hn_value **start; /* carried, before the first iteration */
    bool (*run)(struct loop_spec *l, hn_im_body *b, hn_value *const *param, hn_value **next);
    void *user;
} loop_spec;

static hn_value *param(hn_im_body *b, const char *name, hn_vkind kind, const hn_tdesc *type)
{
    hn_value *v = hn_graph_input(b->g, name, type);
    if (v)
        v->kind = kind;
    else if (b->b.status == HONE_OK)
        b->b.status = HN_NOMEM(b->c.dg);
    return v;
}

/* A carried tensor whose extent changes gets that extent as a symbol of its own. */
static void loosen(hn_im_body *b, hn_value *v, const bool *loose)
{
    for (int k = 0; k < v->type.rank; k++)
        if (loose[k]) v->type.dim[k] = hn_graph_value_dim(b->g, v, HN_DIM_OF_AXIS(k));
}

/* What is known of a list's elements once those of another come in; false when nothing changes. Rank 0: not known yet. */
static bool widen_element(hn_im_call *c, hn_tdesc *have, const hn_tdesc *more)
{
    const hn_dim any = hn_sym_find(hn_im_syms(c), HN_SYM_ANY) ? hn_sym_find(hn_im_syms(c), HN_SYM_ANY)
                                                              : hn_sym_add(hn_im_syms(c), HN_SYM_ANY, HN_SYM_VALUE);
    bool changed = false;
    if (have->rank == 0 && more->rank) {
        *have = *more;
        return true;
    }
    for (int k = 0; k < have->rank && have->rank == more->rank; k++) {
        if (have->dim[k] == more->dim[k] || have->dim[k] == any) continue;
        have->dim[k] = any;
        changed = true;
    }
    return changed;
}

/* One try at the body with the extents marked loose; *ret_again when more of them turn out to change. */
static hone_status try_body(loop_spec *l, bool (*loose)[HN_MAX_RANK], hn_tdesc *element, hn_graph **ret, bool *ret_again)
{
    hn_im_call *c = l->c;
    const int n_next = 1 + l->n_carried + l->n_scan;
    hn_im_body b;
    hn_value **p = HN_NEW_N(c->m->scratch, hn_value *, 2 + l->n_carried);
    hn_value **next = HN_NEW_N(c->m->scratch, hn_value *, n_next);
    if (!p || !next) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    HN_TRY(hn_im_body_new(c, "body", &b));
    p[0] = param(&b, "iter", HN_TENSOR, &(hn_tdesc){ .dtype = HN_I64 });
    p[1] = param(&b, "cond", HN_TENSOR, &(hn_tdesc){ .dtype = HN_BOOL });
    for (int i = 0; i < l->n_carried; i++) {
        p[2 + i] = param(&b, NULL, l->start[i]->kind, &element[i]);
        if (p[2 + i] && p[2 + i]->kind == HN_TENSOR) loosen(&b, p[2 + i], loose[i]);
    }
    HN_TRY(b.b.status);
    if (!l->run(l, &b, p, next)) return c->dg->code != HONE_OK ? c->dg->code : HONE_E_MODEL;
    HN_TRY(b.b.status);
    *ret_again = false;
    for (int i = 0; i < l->n_carried; i++) {
        const hn_value *x = p[2 + i], *y = next[1 + i];
        if (x->kind != y->kind || x->type.dtype != y->type.dtype ||
            (x->kind == HN_TENSOR && x->type.rank != y->type.rank))
            return HN_RAISE(
                c->dg, HONE_E_UNSUPPORTED,
                "carried value %d starts as %s of rank %d and is %s of rank %d after an iteration", i,
                hn_dtype_name(x->type.dtype), x->type.rank, hn_dtype_name(y->type.dtype), y->type.rank);
        for (int k = 0; x->kind == HN_TENSOR && k < x->type.rank; k++)
            if (x->type.dim[k] != y->type.dim[k] && !loose[i][k]) loose[i][k] = *ret_again = true;
        if (x->kind != HN_TENSOR && widen_element(c, &element[i], &y->type)) *ret_again = true;
    }
    if (*ret_again) {
        drop_body(b.g);
        return HONE_OK;
    }
    hn_value *cond = next[0];
    if (cond && cond->type.rank) cond = hn_reshape(&b.b, cond, 0, NULL);
    next[0] = cond;
    for (int i = 0; i < n_next; i++)
        hn_im_body_output(&b, next[i], NULL);
    *ret = b.g;
    return b.b.status;
}

/* out: carried finals, then stacked scans. */
static hone_status build_loop(loop_spec *l, hn_value *trip, hn_value *cond, hn_value **out)
{
    hn_im_call *c = l->c;
    bool(*loose)[HN_MAX_RANK] = hn_arena_alloc(c->m->scratch, (size_t)l->n_carried + 1, sizeof *loose);
    hn_value **in = HN_NEW_N(c->m->scratch, hn_value *, 2 + l->n_carried);
    hn_tdesc *element = HN_NEW_N(c->m->scratch, hn_tdesc, l->n_carried + 1);
    hn_graph *body = NULL;
    bool again = true;

    if (!loose || !in || !element) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    for (int i = 0; i < l->n_carried; i++) element[i] = l->start[i]->type;
    while (again)
        HN_TRY(try_body(l, loose, element, &body, &again));
    in[0] = trip && trip->type.rank ? hn_reshape(c->b, trip, 0, NULL) : trip;
    in[1] = cond && cond->type.rank ? hn_reshape(c->b, cond, 0, NULL) : cond;
    in[0] = in[0] ? hn_im_i64(c, in[0]) : NULL;
    for (int i = 0; i < l->n_carried; i++)
        in[2 + i] = l->start[i];
    hn_node *n = hn_build_bodies(c->b, HN_OP_loop, 2 + l->n_carried, in,
                                 HN_ATTRS_ARG(HN_A_I("n_carried", l->n_carried)), 0, 1, &body);
    for (int i = 0; n && i < l->n_carried + l->n_scan; i++)
        out[i] = n->out[i];
    return c->b->status;
}

/* ---- Loop ---- */

static bool run_model_body(loop_spec *l, hn_im_body *b, hn_value *const *p, hn_value **next)
{
    return hn_im_body_run(b, l->body, 2 + l->n_carried, p, next);
}

hone_status hn_im_on_loop(hn_im_call *c)
{
    const Onnx__GraphProto *body = hn_im_graph(c, "body");
    loop_spec l = { .c = c, .body = body, .run = run_model_body };
    if (!body) return HN_IM_RAISE(c, HONE_E_MODEL, "the body is missing");
    l.n_carried = HN_MAX(c->n_in - 2, 0);
    if (body->n_input != (size_t)l.n_carried + 2 || body->n_output < (size_t)l.n_carried + 1)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the body has %zu inputs and %zu outputs for %d carried values",
                           body->n_input, body->n_output, l.n_carried);
    l.n_scan = (int)body->n_output - 1 - l.n_carried;
    if (c->n_out > l.n_carried + l.n_scan)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the body gives %d results, the node names %d",
                           l.n_carried + l.n_scan, c->n_out);
    l.start = c->in + 2;
    for (int i = 0; i < l.n_carried; i++)
        if (!l.start[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "carried value %d has no start", i);
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, l.n_carried + l.n_scan + 1);
    if (!out) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    HN_TRY(build_loop(&l, hn_im_in(c, 0), hn_im_in(c, 1), out));
    memcpy(c->out, out, (size_t)c->n_out * sizeof *out);
    return HONE_OK;
}

/* ---- Scan ---- */

typedef struct scan_spec {
    hn_value **seq; /* scanned inputs */
    int n_seq;
    int axis[64];
    bool reverse[64];
    hn_dim len;
} scan_spec;

static bool run_scan_body(loop_spec *l, hn_im_body *b, hn_value *const *p, hn_value **next)
{
    const scan_spec *s = l->user;
    hn_im_call *c = &b->c;
    hn_value **in = HN_NEW_N(c->m->scratch, hn_value *, l->n_carried + s->n_seq + 1);
    if (!in) return false;
    memcpy(in, p + 2, (size_t)l->n_carried * sizeof *in);
    for (int i = 0; i < s->n_seq; i++) {
        hn_value *at = p[0];
        if (s->reverse[i]) {
            hn_value *last =
                hn_reshape(&b->b, hn_const_dims(&b->b, 1, (hn_dim[]){ hn_im_dsub(c, s->len, 1) }), 0, NULL);
            at = hn_im_binary(c, HN_OP_sub, last, p[0]);
        }
        in[l->n_carried + i] = hn_im_gather(c, s->seq[i], at, s->axis[i]);
    }
    if (b->b.status != HONE_OK) return false;
    next[0] = hn_im_const_bool(c, true);
    return hn_im_body_run(b, l->body, l->n_carried + s->n_seq, in, next + 1);
}

/* Stacked on axis 0: moved to where the node wants them, turned round where asked. */
static hn_value *place_scan(hn_im_call *c, hn_value *v, int64_t axis, bool reverse)
{
    int64_t perm[HN_MAX_RANK];
    int to, k = 1;
    if (!v || hn_im_axis(c, axis, v->type.rank, &to) != HONE_OK) return NULL;
    if (reverse) v = hn_im_flip(c, v, 0);
    for (int i = 0; v && i < v->type.rank; i++)
        perm[i] = i == to ? 0 : k++;
    return hn_transpose(c->b, v, perm);
}

static int64_t entry(const int64_t *x, int n, int i)
{
    return i < n ? x[i] : 0;
}

static hone_status scan_shape(hn_im_call *c, scan_spec *s, const int64_t *axes, int n_axes,
                              const int64_t *dirs, int n_dirs)
{
    for (int i = 0; i < s->n_seq; i++) {
        if (!s->seq[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "scanned input %d is absent", i);
        HN_TRY(hn_im_axis(c, entry(axes, n_axes, i), s->seq[i]->type.rank, &s->axis[i]));
        s->reverse[i] = entry(dirs, n_dirs, i) != 0;
        const hn_dim d = s->seq[i]->type.dim[s->axis[i]];
        if (i == 0 || !hn_dim_is_const(s->len))
            s->len = d;
        else if (hn_dim_is_const(d) && d != s->len)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "scanned inputs are %" PRId64 " and %" PRId64 " long", s->len,
                               d);
    }
    return HONE_OK;
}

static hone_status scan(hn_im_call *c, const Onnx__GraphProto *body, hn_value **in, int n_in, scan_spec *s,
                        hn_value **out)
{
    loop_spec l = { .c = c, .body = body, .run = run_scan_body, .user = s };
    l.n_carried = n_in - s->n_seq;
    if (l.n_carried < 0 || body->n_input != (size_t)n_in || body->n_output < (size_t)l.n_carried)
        return HN_IM_RAISE(
            c, HONE_E_MODEL,
            "the body has %zu inputs and %zu outputs, the node %d inputs of which %d are scanned",
            body->n_input, body->n_output, n_in, s->n_seq);
    l.n_scan = (int)body->n_output - l.n_carried;
    l.start = in;
    for (int i = 0; i < l.n_carried; i++)
        if (!in[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "state %d has no start", i);
    hn_value *trip = hn_reshape(c->b, hn_const_dims(c->b, 1, &s->len), 0, NULL);
    return build_loop(&l, trip, NULL, out);
}

static hone_status begin_scan(hn_im_call *c, const Onnx__GraphProto **ret_body, scan_spec *s, hn_value **in,
                              int n_in)
{
    const int64_t n_seq = hn_im_i(c, "num_scan_inputs", 0);
    *ret_body = hn_im_graph(c, "body");
    if (!*ret_body) return HN_IM_RAISE(c, HONE_E_MODEL, "the body is missing");
    if (n_seq < 1 || n_seq > n_in || n_seq > HN_COUNT(s->axis))
        return HN_IM_RAISE(c, HONE_E_MODEL, "num_scan_inputs is %" PRId64 " with %d inputs", n_seq, n_in);
    s->n_seq = (int)n_seq;
    s->seq = in + n_in - n_seq;
    return HONE_OK;
}

hone_status hn_im_on_scan(hn_im_call *c)
{
    const Onnx__GraphProto *body;
    scan_spec s = { 0 };
    int n_ia, n_id, n_oa, n_od;
    HN_TRY(begin_scan(c, &body, &s, c->in, c->n_in));
    const int64_t *ia = hn_im_is(c, "scan_input_axes", &n_ia),
                  *id = hn_im_is(c, "scan_input_directions", &n_id);
    const int64_t *oa = hn_im_is(c, "scan_output_axes", &n_oa),
                  *od = hn_im_is(c, "scan_output_directions", &n_od);
    HN_TRY(scan_shape(c, &s, ia, n_ia, id, n_id));
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, body->n_output + 1);
    if (!out) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    HN_TRY(scan(c, body, c->in, c->n_in, &s, out));
    const int n_state = c->n_in - s.n_seq;
    for (int i = 0; i < c->n_out; i++) {
        if ((size_t)i >= body->n_output)
            return HN_IM_RAISE(c, HONE_E_MODEL, "the body gives no output %d", i);
        const int k = i - n_state;
        c->out[i] = k < 0 ? out[i] : place_scan(c, out[i], entry(oa, n_oa, k), entry(od, n_od, k) != 0);
    }
    return c->b->status;
}

/* A Scan of opset 8: everything has a batch axis in front, which the body does not see; scanned axes come second. */
typedef struct batch_spec {
    const Onnx__GraphProto *body;
    hn_value **in;
    int n_in, n_seq, n_dir;
    const int64_t *dirs;
} batch_spec;

/* The sample `at` of every input, scanned. */
static hone_status scan_sample(hn_im_call *c, const batch_spec *s, hn_value *at, hn_value **out)
{
    scan_spec one = { .n_seq = s->n_seq };
    hn_value **in = HN_NEW_N(c->m->scratch, hn_value *, s->n_in + 1);
    if (!in) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    for (int i = 0; i < s->n_in; i++)
        in[i] = s->in[i] ? hn_im_gather(c, s->in[i], at, 0) : NULL;
    HN_TRY(c->b->status);
    one.seq = in + s->n_in - s->n_seq;
    HN_TRY(scan_shape(c, &one, NULL, 0, s->dirs, s->n_dir));
    return scan(c, s->body, in, s->n_in, &one, out);
}

static bool run_batch_body(loop_spec *l, hn_im_body *b, hn_value *const *p, hn_value **next)
{
    next[0] = hn_im_const_bool(&b->c, true);
    return scan_sample(&b->c, l->user, p[0], next + 1) == HONE_OK;
}

hone_status hn_im_on_scan8(hn_im_call *c)
{
    scan_spec s = { 0 };
    batch_spec every = { .in = c->in + 1, .n_in = c->n_in - 1 };
    if (c->in[0]) return hn_im_refuse(c, "sequence lengths in Scan of opset 8 are not supported");
    HN_TRY(begin_scan(c, &every.body, &s, every.in, every.n_in));
    if (!s.seq[0] || s.seq[0]->type.rank < 2)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the first scanned input has no batch and sequence axes");
    every.n_seq = s.n_seq;
    every.dirs = hn_im_is(c, "directions", &every.n_dir);
    loop_spec l = { .c = c, .body = every.body, .run = run_batch_body, .user = &every, .n_scan = (int)every.body->n_output };
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, l.n_scan + 1);
    if (!out) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    hn_value *trip = hn_reshape(c->b, hn_const_dims(c->b, 1, &s.seq[0]->type.dim[0]), 0, NULL);
    HN_TRY(build_loop(&l, trip, NULL, out));
    for (int i = 0; i < c->n_out; i++)
        c->out[i] = i < l.n_scan ? out[i] : NULL;
    return c->b->status;
}

/* ---- SequenceMap: a loop that takes one element of every sequence and appends to the results ---- */

static bool run_map_body(loop_spec *l, hn_im_body *b, hn_value *const *p, hn_value **next)
{
    hn_im_call *owner = l->user, *c = &b->c;
    hn_value **in = HN_NEW_N(c->m->scratch, hn_value *, owner->n_in + 1);
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, l->body->n_output + 1);
    if (!in || !out) return false;
    for (int i = 0; i < owner->n_in; i++) {
        in[i] = owner->in[i];
        if (in[i] && in[i]->kind == HN_SEQUENCE) in[i] = hn_b2(&b->b, HN_OP_seq_at, in[i], p[0], HN_NO_ATTRS);
    }
    if (b->b.status != HONE_OK || !hn_im_body_run(b, l->body, owner->n_in, in, out)) return false;
    next[0] = hn_im_const_bool(c, true);
    for (int i = 0; i < l->n_carried; i++)
        next[1 + i] = hn_b2(&b->b, HN_OP_seq_insert, p[2 + i], out[i], HN_NO_ATTRS);
    return b->b.status == HONE_OK;
}

hone_status hn_im_on_seq_map(hn_im_call *c)
{
    const Onnx__GraphProto *body = hn_im_graph(c, "body");
    loop_spec l = { .c = c, .body = body, .run = run_map_body, .user = c, .n_carried = c->n_out };
    if (!body) return HN_IM_RAISE(c, HONE_E_MODEL, "the body is missing");
    if (!c->in[0] || c->in[0]->kind != HN_SEQUENCE)
        return HN_IM_RAISE(c, HONE_E_TYPE, "the first input is not a sequence");
    if (body->n_input != (size_t)c->n_in || body->n_output < (size_t)c->n_out)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the body has %zu inputs and %zu outputs", body->n_input,
                           body->n_output);
    l.start = HN_NEW_N(c->m->scratch, hn_value *, c->n_out + 1);
    if (!l.start) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    for (int i = 0; i < c->n_out; i++) {
        hn_tdesc t;
        hn_vkind kind;
        HN_TRY(hn_im_type(c->m, body->output[i]->type, body->output[i]->name ? body->output[i]->name : "",
                          &kind, &t, c->dg));
        l.start[i] = hn_im_empty_sequence(c, t.dtype);
    }
    hn_value *trip = hn_im_unary(c, HN_OP_seq_length, c->in[0]);
    return build_loop(&l, trip, NULL, c->out);
}
