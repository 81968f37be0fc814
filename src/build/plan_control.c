/* If, and what it shares with loop: child blocks whose captures are by reference. */
#include "build/plan_control.h"

hone_status hn_plan_read(hn_planner *p, hn_value *v, uint32_t *ret, hn_diag *dg)
{
    const uint32_t buf = hn_plan_value(p, v, dg);
    if (buf == HN_NO) return dg->code;
    *ret = hn_pb_step_read(p->pb, buf, HN_NO, v->type.dtype);
    return HONE_OK;
}

void hn_plan_forget(hn_planner *p, int n_before)
{
    int n = n_before;
    for (int i = n_before; i < p->regs.n; i++)
        if (hn_pb_in_prefix(p->pb, p->regs.at[i].reg)) p->regs.at[n++] = p->regs.at[i];
    p->regs.n = n;
}

hone_status hn_plan_known_bytes(hn_planner *p, const hn_value *v, uint32_t *ret, hn_diag *dg)
{
    *ret = hn_plan_bytes(p, v);
    if (*ret != HN_NO) return HONE_OK;
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the size of \"%s\" is not known when it is copied", v->name);
}

hone_status hn_plan_copy(hn_planner *p, hn_value *from, uint32_t to, hn_diag *dg)
{
    uint32_t bytes = HN_NO;
    const uint32_t src = hn_plan_value(p, from, dg);
    if (src == HN_NO) return dg->code;
    HN_TRY(hn_plan_known_bytes(p, from, &bytes, dg));
    hn_pb_step_copy(p->pb, to, HN_NO, src, HN_NO, bytes);
    return HONE_OK;
}

const char *hn_plan_origin(const hn_node *n)
{
    return n->n_origin ? n->origin[0] : n->name;
}

/* ---- values whose shape the run decides ---- */
hn_dim hn_plan_own_symbol(const hn_planner *p, const hn_value *v, int axis)
{
    (void)p;
    return hn_value_dim_find(v, HN_DIM_OF_AXIS(axis));
}

bool hn_plan_is_flexible(const hn_planner *p, const hn_value *v)
{
    for (int a = 0; a < v->type.rank; a++)
        if (hn_plan_own_symbol(p, v, a)) return true;
    return false;
}

void hn_plan_flexible(hn_planner *p, const hn_value *v, hn_flexible *ret)
{
    ret->size = hn_pb_var(p->pb, 0);
    for (int a = 0; a < v->type.rank; a++) ret->dim[a] = hn_plan_own_symbol(p, v, a) ? hn_pb_var(p->pb, 0) : HN_NO;
    ret->buf = hn_pb_heap_buf(p->pb, v->name, ret->size);
}

void hn_plan_know_flexible(hn_planner *p, const hn_value *v, const hn_flexible *f)
{
    for (int a = 0; a < v->type.rank; a++)
        if (f->dim[a] != HN_NO) hn_plan_know(p, hn_plan_own_symbol(p, v, a), f->dim[a]);
}

hone_status hn_plan_dims(hn_planner *p, const hn_value *v, uint32_t *ret, hn_diag *dg)
{
    for (int a = 0; a < v->type.rank; a++) {
        ret[a] = hn_plan_dim(p, v->type.dim[a]);
        if (ret[a] == HN_NO)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "axis %d of \"%s\" is not known when it is copied", a, v->name);
    }
    return HONE_OK;
}

void hn_plan_check_axis(hn_planner *p, const hn_value *v, int axis, uint32_t got, uint32_t want)
{
    hn_str what = { 0 };
    if (got == want) return;
    hn_str_addf(&what, "axis %d of \"%s\"", axis, v->name);
    hn_pb_check(p->pb, HN_S_CHECK_EQ, got, want, hn_str_get(&what));
    hn_str_done(&what);
}

hone_status hn_plan_fill(hn_planner *p, const hn_value *to, const hn_flexible *f, hn_value *from, hn_diag *dg)
{
    uint32_t dim[HN_MAX_RANK], bytes = HN_NO;
    const uint32_t src = hn_plan_value(p, from, dg);
    if (src == HN_NO) return dg->code;
    HN_TRY(hn_plan_dims(p, from, dim, dg));
    HN_TRY(hn_plan_known_bytes(p, from, &bytes, dg));
    hn_pb_calc_to(p->pb, f->size, HN_S_MOVE, bytes, 0, 0);
    hn_pb_step_alloc(p->pb, &f->buf, 1);
    hn_pb_step_copy(p->pb, f->buf, HN_NO, src, HN_NO, f->size);
    for (int a = 0; a < to->type.rank; a++) {
        const uint32_t want = f->dim[a] == HN_NO ? hn_plan_dim(p, to->type.dim[a]) : HN_NO;
        if (f->dim[a] != HN_NO) hn_pb_calc_to(p->pb, f->dim[a], HN_S_MOVE, dim[a], 0, 0);
        else if (want != HN_NO) hn_plan_check_axis(p, to, a, dim[a], want);
    }
    return HONE_OK;
}

/* ---- if ---- */
static hone_status plan_branch(hn_planner *p, hn_node *n, hn_graph *body, const hn_flexible *f, hn_diag *dg)
{
    const int before = p->regs.n;
    hn_plan_trap(p, n, body);
    HN_TRY(hn_plan_graph(p, body, dg));
    for (int i = 0; i < n->n_out; i++) {
        hn_value *v = n->out[i], *from = body->out[i].value;
        if (!v->n_uses) continue;
        if (f[i].buf != HN_NO) HN_TRY(hn_plan_fill(p, v, &f[i], from, dg));
        else HN_TRY(hn_plan_copy(p, from, p->buf[v->id], dg));
    }
    hn_plan_forget(p, before);
    return HONE_OK;
}

/* Room before the branches where both give one known size, else made by the branch taken. */
static void make_result(hn_planner *p, hn_value *v, hn_flexible *ret)
{
    const uint32_t size = hn_plan_is_flexible(p, v) ? HN_NO : hn_plan_bytes(p, v);
    ret->buf = HN_NO;
    if (!v->n_uses) return;
    if (size != HN_NO) {
        hn_plan_new_buf(p, v, size);
        return;
    }
    hn_plan_flexible(p, v, ret);
    p->buf[v->id] = ret->buf;
}

static hone_status plan_if(hn_planner *p, hn_node *n, hn_diag *dg)
{
    uint32_t cond = HN_NO;
    hn_flexible *f = HN_NEW_N(p->b->a, hn_flexible, n->n_out + 1);
    if (!f) return HN_NOMEM(dg);
    HN_TRY(hn_plan_read(p, hn_in(n, 0), &cond, dg));
    for (int i = 0; i < n->n_out; i++) make_result(p, n->out[i], &f[i]);
    hn_pb_if_begin(p->pb, cond, hn_plan_origin(n));
    HN_TRY(plan_branch(p, n, n->body[0], f, dg));
    hn_pb_if_else(p->pb);
    HN_TRY(plan_branch(p, n, n->body[1], f, dg));
    hn_pb_if_end(p->pb);
    for (int i = 0; i < n->n_out; i++)
        if (f[i].buf != HN_NO) hn_plan_know_flexible(p, n->out[i], &f[i]);
    return HONE_OK;
}

hone_status hn_plan_control(hn_planner *p, hn_node *n, hn_diag *dg)
{
    if (n->op == HN_OP_if) return plan_if(p, n, dg);
    if (n->op == HN_OP_loop) return hn_plan_loop(p, n, dg);
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "operation \"%s\" has no plan on this target", hn_op_of(n)->name);
}
