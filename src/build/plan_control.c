/* If and loop: child blocks whose captures are by reference. */
#include "build/build_int.h"

static hone_status read_scalar(hn_planner *p, hn_value *v, uint32_t *ret, hn_diag *dg)
{
    const uint32_t buf = hn_plan_value(p, v, dg);
    if (buf == HN_NO) return dg->code;
    *ret = hn_pb_step_read(p->pb, buf, HN_NO, v->type.dtype);
    return HONE_OK;
}

/* Registers computed inside a block may not have run outside it: keep those of the prefix alone. */
static void forget_block(hn_planner *p, int n_before)
{
    int n = n_before;
    for (int i = n_before; i < p->regs.n; i++)
        if (hn_pb_in_prefix(p->pb, p->regs.at[i].reg)) p->regs.at[n++] = p->regs.at[i];
    p->regs.n = n;
}

static hone_status copy_value(hn_planner *p, hn_value *from, uint32_t to, hn_diag *dg)
{
    const uint32_t src = hn_plan_value(p, from, dg), bytes = hn_plan_bytes(p, from);
    if (src == HN_NO) return dg->code;
    if (bytes == HN_NO) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the size of \"%s\" is not known when it is copied", from->name);
    hn_pb_step_copy(p->pb, to, HN_NO, src, HN_NO, bytes);
    return HONE_OK;
}

static const char *origin(const hn_node *n)
{
    return n->n_origin ? n->origin[0] : n->name;
}

/* ---- if ---- */
static hone_status plan_branch(hn_planner *p, hn_node *n, hn_graph *body, hn_diag *dg)
{
    const int before = p->regs.n;
    HN_TRY(hn_plan_graph(p, body, dg));
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->n_uses) HN_TRY(copy_value(p, body->out[i].value, p->buf[n->out[i]->id], dg));
    forget_block(p, before);
    return HONE_OK;
}

static hone_status plan_if(hn_planner *p, hn_node *n, hn_diag *dg)
{
    uint32_t cond = HN_NO;
    HN_TRY(read_scalar(p, hn_in(n, 0), &cond, dg));
    for (int i = 0; i < n->n_out; i++) {
        hn_value *v = n->out[i];
        if (!v->n_uses) continue;
        const uint32_t size = hn_plan_bytes(p, v);
        if (size == HN_NO) {
            hn_hint(dg, "give both branches results of one shape");
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "result \"%s\" has another size in each branch", v->name);
        }
        hn_plan_new_buf(p, v, size);
    }
    hn_pb_if_begin(p->pb, cond, origin(n));
    HN_TRY(plan_branch(p, n, n->body[0], dg));
    hn_pb_if_else(p->pb);
    HN_TRY(plan_branch(p, n, n->body[1], dg));
    hn_pb_if_end(p->pb);
    return HONE_OK;
}

/* ---- loop ---- */
typedef struct looping {
    hn_node *n;
    hn_graph *body;
    int n_carried, n_scan;
    uint32_t trip, cond, iter, iter_buf;
    uint32_t *carry; /* pairs in, out: the condition's first when the body reads it, then the carried values' */
    int n_carry;
    uint32_t *scan, *scan_bytes;
    bool cond_param;
} looping;

static bool same_type(const hn_value *a, const hn_value *b)
{
    return hn_tdesc_eq(&a->type, &b->type);
}

static hone_status carry_in(hn_planner *p, looping *l, hn_value *param, hn_value *from, hn_diag *dg)
{
    const uint32_t size = hn_plan_bytes(p, param);
    if (size == HN_NO || !same_type(param, from)) {
        hn_hint(dg, "loops whose carried values change shape are not built yet");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "carried value \"%s\" changes shape", param->name);
    }
    const uint32_t in = hn_plan_new_buf(p, param, size);
    HN_TRY(copy_value(p, from, in, dg));
    l->carry[2 * l->n_carry] = in;
    l->carry[2 * l->n_carry + 1] = hn_pb_arena_buf(p->pb, param->name, size, 64);
    l->n_carry++;
    return HONE_OK;
}

/* A loop without a first condition starts with true. */
static hn_value *constant_true(hn_graph *g)
{
    static const uint8_t yes = 1;
    const hn_tdesc scalar = { .dtype = HN_BOOL };
    return hn_graph_const(g, "true", &scalar, &yes, 1);
}

static hone_status loop_head(hn_planner *p, looping *l, hn_diag *dg)
{
    hn_node *n = l->n;
    hn_value *trip = hn_in(n, 0), *cond = hn_in(n, 1);
    l->trip = l->cond = l->iter_buf = HN_NO;
    l->iter = hn_pb_var(p->pb, 0);
    if (trip) HN_TRY(read_scalar(p, trip, &l->trip, dg));
    l->cond = hn_pb_var(p->pb, 0);
    if (cond) {
        const uint32_t buf = hn_plan_value(p, cond, dg);
        if (buf == HN_NO) return dg->code;
        hn_pb_step_read_to(p->pb, l->cond, buf, HN_NO, HN_BOOL);
    } else {
        hn_pb_calc_to(p->pb, l->cond, HN_S_MOVE, hn_pb_const(p->pb, 1), 0, 0);
    }
    if (l->body->in[0]->n_uses)
        p->buf[l->body->in[0]->id] = l->iter_buf = hn_pb_arena_buf(p->pb, l->body->in[0]->name, hn_pb_const(p->pb, 8), 64);
    l->cond_param = l->body->in[1]->n_uses > 0;
    if (l->cond_param && !cond) cond = constant_true(l->n->graph);
    if (l->cond_param && !cond) return HN_NOMEM(dg);
    if (l->cond_param) HN_TRY(carry_in(p, l, l->body->in[1], cond, dg));
    for (int i = 0; i < l->n_carried; i++) HN_TRY(carry_in(p, l, l->body->in[2 + i], hn_in(n, 2 + i), dg));
    return HONE_OK;
}

/* Scan outputs grow by one slice a turn. */
static hone_status scan_begin(hn_planner *p, looping *l, hn_diag *dg)
{
    for (int i = 0; i < l->n_scan; i++) {
        hn_value *v = l->n->out[l->n_carried + i];
        l->scan_bytes[i] = hn_plan_bytes(p, l->body->out[1 + l->n_carried + i].value);
        if (l->scan_bytes[i] == HN_NO) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "scan output \"%s\" has slices of changing size", v->name);
        p->buf[v->id] = l->scan[i] = hn_pb_heap_buf(p->pb, v->name, hn_pb_const(p->pb, 0));
    }
    if (l->n_scan) hn_pb_step_alloc(p->pb, l->scan, (uint32_t)l->n_scan);
    return HONE_OK;
}

static hone_status loop_body(hn_planner *p, looping *l, hn_diag *dg)
{
    const int before = p->regs.n;
    HN_TRY(hn_plan_graph(p, l->body, dg));
    const int first = l->cond_param ? 1 : 0;
    hn_value *cond = l->body->out[0].value;
    const uint32_t buf = hn_plan_value(p, cond, dg);
    if (buf == HN_NO) return dg->code;
    hn_pb_step_read_to(p->pb, l->cond, buf, HN_NO, HN_BOOL);
    if (l->cond_param) HN_TRY(copy_value(p, cond, l->carry[1], dg));
    for (int i = 0; i < l->n_carried; i++)
        HN_TRY(copy_value(p, l->body->out[1 + i].value, l->carry[2 * (first + i) + 1], dg));
    for (int i = 0; i < l->n_scan; i++) {
        const uint32_t src = hn_plan_value(p, l->body->out[1 + l->n_carried + i].value, dg);
        if (src == HN_NO) return dg->code;
        hn_pb_step_append(p->pb, l->scan[i], src, l->scan_bytes[i]);
    }
    forget_block(p, before);
    return HONE_OK;
}

/* The hidden last result counts the turns: its symbol is the loop's own counter. */
static void know_trips(hn_planner *p, const looping *l)
{
    const hn_value *trips = l->n->out[l->n->n_out - 1];
    const hn_graph *root = p->b->g;
    for (int i = 0; i < root->value_dims.n; i++)
        if (root->value_dims.at[i].value == trips) hn_plan_know(p, root->value_dims.at[i].sym, l->iter);
}

static hone_status plan_loop(hn_planner *p, hn_node *n, hn_diag *dg)
{
    looping l = { .n = n, .body = n->body[0], .n_carried = (int)hn_attr_i(n, "n_carried") };
    l.n_scan = l.body->n_out - 1 - l.n_carried;
    l.carry = HN_NEW_N(p->b->a, uint32_t, 2 * (l.n_carried + 1));
    l.scan = HN_NEW_N(p->b->a, uint32_t, l.n_scan + 1);
    l.scan_bytes = HN_NEW_N(p->b->a, uint32_t, l.n_scan + 1);
    if (!l.carry || !l.scan || !l.scan_bytes) return HN_NOMEM(dg);
    HN_TRY(loop_head(p, &l, dg));
    HN_TRY(scan_begin(p, &l, dg));
    hn_pb_loop_begin(p->pb, &(hn_pb_loop){ .trip = l.trip, .cond = l.cond, .iter = l.iter, .iter_buf = l.iter_buf,
                                           .carry = l.carry, .n_carry = (uint32_t)l.n_carry, .origin = origin(n) });
    HN_TRY(loop_body(p, &l, dg));
    hn_pb_loop_end(p->pb);
    const int first = l.cond_param ? 1 : 0;
    for (int i = 0; i < l.n_carried; i++) p->buf[n->out[i]->id] = l.carry[2 * (first + i)];
    know_trips(p, &l);
    return HONE_OK;
}

hone_status hn_plan_control(hn_planner *p, hn_node *n, hn_diag *dg)
{
    if (n->op == HN_OP_if) return plan_if(p, n, dg);
    if (n->op == HN_OP_loop) return plan_loop(p, n, dg);
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "operation \"%s\" has no plan on this target", hn_op_of(n)->name);
}
