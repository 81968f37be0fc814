/*
 * Loops. A carried value of one shape lives in two arena buffers that trade places; one whose shape changes lives in two heap
 * buffers, and registers hold its extents from turn to turn. Scan outputs grow by one slice a turn.
 */
#include "build/plan_control.h"

typedef struct carried {
    hn_value *param;
    uint32_t in, out;
    bool flexible;      /* out is in *next, and so are the extents that the body reads of its parameter */
    hn_flexible next;
} carried;

typedef struct scan {
    hn_value *result, *slice; /* stacked; one turn's */
    uint32_t buf;
    uint32_t dim[HN_MAX_RANK]; /* of a slice: variable registers */
} scan;

typedef struct looping {
    hn_node *n;
    hn_graph *body;
    int n_carried, n_scan;
    uint32_t trip, cond, iter, iter_buf;
    bool cond_param;    /* the body reads its condition: the first of carry */
    carried *carry;
    int n_carry;
    scan *scan;
} looping;

/* ---- carried values ---- */
/* One shape for all turns, known before the first. */
static bool keeps_shape(hn_planner *p, const hn_value *param, const hn_value *from, const hn_value *next)
{
    if (!hn_tdesc_eq(&param->type, &from->type) || !hn_tdesc_eq(&param->type, &next->type)) return false;
    const uint32_t size = hn_plan_bytes(p, param);
    return size != HN_NO && hn_pb_in_prefix(p->pb, size);
}

static hone_status start_fixed(hn_planner *p, carried *c, hn_value *from, hn_diag *dg)
{
    const uint32_t size = hn_plan_bytes(p, c->param);
    c->in = hn_plan_new_buf(p, c->param, size);
    c->out = hn_pb_arena_buf(p->pb, c->param->name, size, 64);
    return hn_plan_copy(p, from, c->in, dg);
}

static hone_status start_flexible(hn_planner *p, carried *c, hn_value *from, hn_diag *dg)
{
    hn_flexible first;
    c->flexible = true;
    hn_plan_flexible(p, c->param, &c->next);
    first = c->next; /* the same extents, another buffer */
    first.size = hn_pb_var(p->pb, 0);
    first.buf = hn_pb_heap_buf(p->pb, c->param->name, first.size);
    c->in = first.buf;
    c->out = c->next.buf;
    p->buf[c->param->id] = c->in;
    return hn_plan_fill(p, c->param, &first, from, dg);
}

static hone_status start(hn_planner *p, looping *l, hn_value *param, hn_value *from, const hn_value *next, hn_diag *dg)
{
    carried *c = &l->carry[l->n_carry++];
    c->param = param;
    return keeps_shape(p, param, from, next) ? start_fixed(p, c, from, dg) : start_flexible(p, c, from, dg);
}

/* A loop without a first condition starts with true. */
static hn_value *constant_true(hn_graph *g)
{
    static const uint8_t yes = 1;
    const hn_tdesc scalar = { .dtype = HN_BOOL };
    return hn_graph_const(g, "true", &scalar, &yes, 1);
}

static hone_status first_condition(hn_planner *p, looping *l, hn_value *cond, hn_diag *dg)
{
    l->cond = hn_pb_var(p->pb, 0);
    if (!cond) {
        hn_pb_calc_to(p->pb, l->cond, HN_S_MOVE, hn_pb_const(p->pb, 1), 0, 0);
        return HONE_OK;
    }
    const uint32_t buf = hn_plan_value(p, cond, dg);
    if (buf == HN_NO) return dg->code;
    hn_pb_step_read_to(p->pb, l->cond, buf, HN_NO, HN_BOOL);
    return HONE_OK;
}

/* The turn's number, and behind the loop how many there were. */
static void make_count(hn_planner *p, looping *l)
{
    hn_value *iter = l->body->in[0], *trips = l->n->out[l->n->n_out - 1];
    l->iter = hn_pb_var(p->pb, 0);
    l->iter_buf = HN_NO;
    if (!iter->n_uses && !trips->n_uses) return;
    l->iter_buf = hn_pb_arena_buf(p->pb, trips->name, hn_pb_const(p->pb, 8), 64);
    p->buf[iter->id] = p->buf[trips->id] = l->iter_buf;
}

static hone_status loop_head(hn_planner *p, looping *l, hn_diag *dg)
{
    hn_node *n = l->n;
    hn_graph *body = l->body;
    hn_value *trip = hn_in(n, 0), *cond = hn_in(n, 1);
    l->trip = HN_NO;
    if (trip) HN_TRY(hn_plan_read(p, trip, &l->trip, dg));
    HN_TRY(first_condition(p, l, cond, dg));
    make_count(p, l);
    l->cond_param = body->in[1]->n_uses > 0;
    if (l->cond_param && !cond) cond = constant_true(n->graph);
    if (l->cond_param && !cond) return HN_NOMEM(dg);
    if (l->cond_param) HN_TRY(start(p, l, body->in[1], cond, body->out[0].value, dg));
    for (int i = 0; i < l->n_carried; i++)
        HN_TRY(start(p, l, body->in[2 + i], hn_in(n, 2 + i), body->out[1 + i].value, dg));
    return HONE_OK;
}

/*
 * All values first, then all extents: what a turn hands on may be computed from the extents that it was given, and one carried
 * value may become another's next.
 */
static hone_status hand_on(hn_planner *p, looping *l, hn_value *const *next, hn_diag *dg)
{
    hn_flexible *last = HN_NEW_N(p->b->a, hn_flexible, l->n_carry + 1);
    if (!last) return HN_NOMEM(dg);
    for (int i = 0; i < l->n_carry; i++) {
        carried *c = &l->carry[i];
        last[i] = c->next;
        if (!c->flexible) {
            HN_TRY(hn_plan_copy(p, next[i], c->out, dg));
            continue;
        }
        for (int a = 0; a < c->param->type.rank; a++)
            if (c->next.dim[a] != HN_NO) last[i].dim[a] = hn_pb_var(p->pb, 0);
        HN_TRY(hn_plan_fill(p, c->param, &last[i], next[i], dg));
    }
    for (int i = 0; i < l->n_carry; i++)
        for (int a = 0; l->carry[i].flexible && a < l->carry[i].param->type.rank; a++)
            if (last[i].dim[a] != HN_NO)
                hn_pb_calc_to(p->pb, l->carry[i].next.dim[a], HN_S_MOVE, last[i].dim[a], 0, 0);
    return HONE_OK;
}

/* ---- scan outputs ---- */
static hone_status scan_begin(hn_planner *p, looping *l, hn_diag *dg)
{
    const uint32_t zero = hn_pb_const(p->pb, 0);
    uint32_t *buf = HN_NEW_N(p->b->a, uint32_t, l->n_scan + 1);
    if (!buf) return HN_NOMEM(dg);
    for (int i = 0; i < l->n_scan; i++) {
        scan *s = &l->scan[i];
        s->result = l->n->out[l->n_carried + i];
        s->slice = l->body->out[1 + l->n_carried + i].value;
        p->buf[s->result->id] = s->buf = buf[i] = hn_pb_heap_buf(p->pb, s->result->name, zero);
        for (int a = 0; a < s->slice->type.rank; a++) {
            s->dim[a] = hn_pb_var(p->pb, 0);
            hn_pb_calc_to(p->pb, s->dim[a], HN_S_MOVE, zero, 0, 0); /* an enclosing loop may come here again */
        }
    }
    if (l->n_scan) hn_pb_step_alloc(p->pb, buf, (uint32_t)l->n_scan);
    return HONE_OK;
}

/* Slices have one shape, which the first shows. */
static hone_status scan_turn(hn_planner *p, looping *l, scan *s, hn_diag *dg)
{
    uint32_t dim[HN_MAX_RANK], bytes = HN_NO;
    const uint32_t src = hn_plan_value(p, s->slice, dg), first = hn_plan_calc(p, HN_S_EQ, l->iter, hn_pb_const(p->pb, 0));
    if (src == HN_NO) return dg->code;
    HN_TRY(hn_plan_dims(p, s->slice, dim, dg));
    HN_TRY(hn_plan_known_bytes(p, s->slice, &bytes, dg));
    for (int a = 0; a < s->slice->type.rank; a++) {
        if (!hn_pb_in_prefix(p->pb, dim[a]))
            hn_plan_check_axis(p, s->slice, a, dim[a], hn_pb_calc(p->pb, HN_S_SELECT, first, dim[a], s->dim[a]));
        hn_pb_calc_to(p->pb, s->dim[a], HN_S_MOVE, dim[a], 0, 0);
    }
    hn_pb_step_append(p->pb, s->buf, src, bytes);
    return HONE_OK;
}

/* ---- the loop ---- */
static hone_status loop_body(hn_planner *p, looping *l, hn_diag *dg)
{
    const int before = p->regs.n;
    hn_value **next = HN_NEW_N(p->b->a, hn_value *, l->n_carry + 1);
    if (!next) return HN_NOMEM(dg);
    for (int i = 0; i < l->n_carry; i++)
        if (l->carry[i].flexible) hn_plan_know_flexible(p, l->carry[i].param, &l->carry[i].next);
    HN_TRY(hn_plan_graph(p, l->body, dg));
    hn_value *cond = l->body->out[0].value;
    const uint32_t buf = hn_plan_value(p, cond, dg);
    if (buf == HN_NO) return dg->code;
    hn_pb_step_read_to(p->pb, l->cond, buf, HN_NO, HN_BOOL);
    for (int i = 0; i < l->n_scan; i++) HN_TRY(scan_turn(p, l, &l->scan[i], dg));
    for (int i = 0; i < l->n_carry; i++) next[i] = l->body->out[l->cond_param ? i : 1 + i].value;
    HN_TRY(hand_on(p, l, next, dg));
    hn_plan_forget(p, before);
    return HONE_OK;
}

/* Results are what the last turn handed on; the hidden last one counts the turns, and its symbol is the loop's own counter. */
static void know_results(hn_planner *p, const looping *l)
{
    const hn_node *n = l->n;
    for (int i = 0; i < l->n_carried; i++) {
        const carried *c = &l->carry[(l->cond_param ? 1 : 0) + i];
        p->buf[n->out[i]->id] = c->in;
        for (int a = 0; c->flexible && a < n->out[i]->type.rank; a++) {
            const hn_dim own = hn_plan_own_symbol(p, n->out[i], a);
            if (own && c->next.dim[a] != HN_NO) hn_plan_know(p, own, c->next.dim[a]);
        }
    }
    for (int i = 0; i < l->n_scan; i++)
        for (int a = 0; a < l->scan[i].slice->type.rank; a++) {
            const hn_dim own = hn_plan_own_symbol(p, l->scan[i].result, 1 + a);
            if (own) hn_plan_know(p, own, l->scan[i].dim[a]);
        }
    HN_FOR_DIMS_OF_VALUE (d, n->out[n->n_out - 1])
        hn_plan_know(p, d->sym, l->iter);
}

static hone_status begin(hn_planner *p, const looping *l, hn_diag *dg)
{
    uint32_t *pair = HN_NEW_N(p->b->a, uint32_t, 2 * l->n_carry + 1);
    if (!pair) return HN_NOMEM(dg);
    for (int i = 0; i < l->n_carry; i++) pair[2 * i] = l->carry[i].in, pair[2 * i + 1] = l->carry[i].out;
    hn_pb_loop_begin(p->pb, &(hn_pb_loop){ .trip = l->trip, .cond = l->cond, .iter = l->iter, .iter_buf = l->iter_buf,
                                           .carry = pair, .n_carry = (uint32_t)l->n_carry,
                                           .origin = hn_plan_origin(l->n) });
    return HONE_OK;
}

hone_status hn_plan_loop(hn_planner *p, hn_node *n, hn_diag *dg)
{
    looping l = { .n = n, .body = n->body[0], .n_carried = n->n_in - 2 };
    l.n_scan = l.body->n_out - 1 - l.n_carried;
    l.carry = HN_NEW_N(p->b->a, carried, l.n_carried + 2);
    l.scan = HN_NEW_N(p->b->a, scan, l.n_scan + 1);
    if (!l.carry || !l.scan) return HN_NOMEM(dg);
    HN_TRY(loop_head(p, &l, dg));
    HN_TRY(scan_begin(p, &l, dg));
    HN_TRY(begin(p, &l, dg));
    HN_TRY(loop_body(p, &l, dg));
    hn_pb_loop_end(p->pb);
    know_results(p, &l);
    return HONE_OK;
}
