/* Loop, Scan, SequenceMap: all become loops. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

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

static hn_dim any_extent(hn_im_call *c)
{
    return hn_sym_add(hn_im_syms(c), HN_SYM_ANY, HN_SYM_VALUE);
}

/* What is known of a list's elements once those of another come in; false when nothing changes. Rank 0: not known yet. */
static bool widen_element(hn_im_call *c, hn_tdesc *have, const hn_tdesc *more)
{
    const hn_dim any = any_extent(c);
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

/* What the body at a place was found to change. A loop around it that is tried again starts its inner loops with that, so that
   tries add up over levels and do not multiply. */
typedef struct findings {
    int n_carried;
    bool (*loose)[HN_MAX_RANK];
    hn_tdesc *element; /* of carried lists; rank 0: nothing found */
} findings;

static findings *findings_of(loop_spec *l)
{
    hn_im *m = l->c->m;
    const char *place = hn_im_place(l->c, "loop");
    findings *f = place ? hn_im_map_get(&m->loops, place) : NULL;
    if (f && f->n_carried == l->n_carried) return f;
    f = HN_NEW(m->scratch, findings);
    if (!f || !place) return NULL;
    f->n_carried = l->n_carried;
    f->loose = hn_arena_alloc(m->scratch, (size_t)l->n_carried + 1, sizeof *f->loose);
    f->element = HN_NEW_N(m->scratch, hn_tdesc, l->n_carried + 1);
    if (!f->loose || !f->element) return NULL;
    (void)hn_im_map_put(m->scratch, &m->loops, place, f);
    return f;
}

/* Elements of a list at the start of a try: what starts it, and what earlier tries around this one found. */
static hn_tdesc element_at_start(hn_im_call *c, const hn_tdesc *start, const hn_tdesc *found)
{
    const hn_dim any = any_extent(c);
    hn_tdesc t = *start;
    if (!found->rank) return t;
    if (!t.rank) return *found;
    for (int k = 0; k < t.rank && t.rank == found->rank; k++)
        if (found->dim[k] == any) t.dim[k] = any;
    return t;
}

/* Kept for later tries: symbols of a body that may be dropped mean nothing there. */
static hn_tdesc lasting_element(hn_im_call *c, const hn_tdesc *element)
{
    hn_tdesc t = *element;
    for (int k = 0; k < t.rank; k++)
        if (!hn_im_dim_of_inputs(c, t.dim[k])) t.dim[k] = any_extent(c);
    return t;
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
        hn_im_body_drop(b.g);
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
    findings *found = findings_of(l);
    hn_value **in = HN_NEW_N(c->m->scratch, hn_value *, 2 + l->n_carried);
    hn_tdesc *element = HN_NEW_N(c->m->scratch, hn_tdesc, l->n_carried + 1);
    hn_graph *body = NULL;
    bool again = true;

    if (!found || !in || !element) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    for (int i = 0; i < l->n_carried; i++) element[i] = element_at_start(c, &l->start[i]->type, &found->element[i]);
    while (again)
        HN_TRY(try_body(l, found->loose, element, &body, &again));
    for (int i = 0; i < l->n_carried; i++)
        if (l->start[i]->kind != HN_TENSOR) found->element[i] = lasting_element(c, &element[i]);
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
