/* Registers: dims and byte sizes as shape-program values. */
#include "build/build_int.h"

void hn_plan_know(hn_planner *p, hn_dim d, uint32_t reg)
{
    hn_vec_push(p->b->a, &p->regs, ((struct hn_dim_reg){ d, reg }));
}

uint32_t hn_plan_calc(hn_planner *p, hn_sop op, uint32_t x, uint32_t y)
{
    return hn_pb_calc(p->pb, op, x, y, 0);
}

static hn_sop sop_of(hn_expr_op op)
{
    switch (op) {
    case HN_EX_ADD: return HN_S_ADD;
    case HN_EX_MUL: return HN_S_MUL;
    case HN_EX_FLOORDIV: return HN_S_FLOORDIV;
    case HN_EX_MOD: return HN_S_MOD;
    case HN_EX_MIN: return HN_S_MIN;
    case HN_EX_MAX: return HN_S_MAX;
    case HN_EX_EQ: return HN_S_EQ;
    case HN_EX_LT: return HN_S_LT;
    default: return HN_S_SELECT;
    }
}

/* A symbol defined by an element of a computed value: read it where it is first needed. */
static uint32_t read_symbol(hn_planner *p, hn_dim d)
{
    const hn_graph *root = p->b->g;
    const hn_value_dim *definer = hn_sym_definer(root, d);
    if (!definer) return HN_NO;
    hn_value *v = definer->value;
    const int elem = definer->elem;
    hn_diag dg = { 0 };
    if (elem < 0) { /* an extent of the value itself: known from what it became, or set where it is made */
        const hn_dim now = -1 - elem < v->type.rank ? v->type.dim[-1 - elem] : d;
        return now == d ? HN_NO : hn_plan_dim(p, now);
    }
    const uint32_t buf = hn_plan_value(p, v, &dg);
    if (buf == HN_NO) return HN_NO;
    return hn_pb_step_read(p->pb, buf, hn_pb_const(p->pb, elem), v->type.dtype);
}

static uint32_t make_dim(hn_planner *p, hn_dim d)
{
    hn_dim x[3] = { 0 };
    const hn_expr_op op = hn_dim_expr(p->b->g->syms, d, x);
    if (op == HN_EX_SYM) return read_symbol(p, d);
    const uint32_t a = hn_plan_dim(p, x[0]), b = hn_plan_dim(p, x[1]);
    const uint32_t c = op == HN_EX_SELECT ? hn_plan_dim(p, x[2]) : 0;
    if (a == HN_NO || b == HN_NO || c == HN_NO) return HN_NO;
    return hn_pb_calc(p->pb, sop_of(op), a, b, c);
}

uint32_t hn_plan_dim(hn_planner *p, hn_dim d)
{
    int64_t known;
    if (hn_dim_known(p->b->g->syms, d, &known)) return hn_pb_const(p->pb, known);
    for (int i = p->regs.n - 1; i >= 0; i--)
        if (p->regs.at[i].dim == d) return p->regs.at[i].reg;
    const uint32_t r = make_dim(p, d);
    if (r != HN_NO) hn_plan_know(p, d, r);
    return r;
}

static hn_dim rebuild(hn_symtab *t, hn_expr_op op, const hn_dim *x)
{
    switch (op) {
    case HN_EX_ADD: return hn_dim_add(t, x[0], x[1]);
    case HN_EX_MUL: return hn_dim_mul(t, x[0], x[1]);
    case HN_EX_FLOORDIV: return hn_dim_floordiv(t, x[0], x[1]);
    case HN_EX_MOD: return hn_dim_mod(t, x[0], x[1]);
    case HN_EX_MIN: return hn_dim_min(t, x[0], x[1]);
    case HN_EX_MAX: return hn_dim_max(t, x[0], x[1]);
    case HN_EX_EQ: return hn_dim_eq(t, x[0], x[1]);
    case HN_EX_LT: return hn_dim_lt(t, x[0], x[1]);
    default: return hn_dim_select(t, x[0], x[1], x[2]);
    }
}

hn_dim hn_plan_translate(hn_symtab *to, const hn_symtab *from, hn_dim d)
{
    int64_t known;
    hn_dim x[3] = { 0 };
    if (hn_dim_known(from, d, &known)) return hn_dim_const(to, known);
    const hn_expr_op op = hn_dim_expr(from, d, x);
    if (op == HN_EX_SYM) return hn_sym_find(to, hn_sym_get(from, d)->name);
    const int n = op == HN_EX_SELECT ? 3 : 2;
    for (int i = 0; i < n; i++) x[i] = hn_plan_translate(to, from, x[i]);
    return rebuild(to, op, x);
}

/* Two extents that inputs made negative have a positive product, and a negative one times nothing is nothing: where an extent may
 * be negative, the number of elements is -1 when it is. */
static uint32_t guarded(hn_planner *p, const hn_tdesc *d, uint32_t n)
{
    uint32_t least = HN_NO;
    int n_open = 0;
    for (int a = 0; a < d->rank; a++) {
        int64_t lo, hi;
        if (hn_dim_is_const(d->dim[a])) continue;
        n_open++;
        hn_dim_bounds(p->b->g->syms, d->dim[a], &lo, &hi);
        const uint32_t reg = lo < 0 ? hn_plan_dim(p, d->dim[a]) : HN_NO;
        if (reg != HN_NO) least = least == HN_NO ? reg : hn_plan_calc(p, HN_S_MIN, least, reg);
    }
    if (least == HN_NO || n_open < 2) return n;
    return hn_pb_calc(p->pb, HN_S_SELECT, hn_plan_calc(p, HN_S_LT, least, hn_pb_const(p->pb, 0)), hn_pb_const(p->pb, -1), n);
}

uint32_t hn_plan_bytes(hn_planner *p, const hn_value *v)
{
    hn_tdesc stored;
    hn_layout_dims(p->b->g->syms, &v->layout, &v->type, &stored);
    uint32_t n = hn_plan_dim(p, hn_tdesc_numel(p->b->g->syms, &stored));
    if (n == HN_NO) return HN_NO;
    n = guarded(p, &stored, n);
    const int bits = hn_dtype_bits(v->type.dtype);
    if (bits % 8 == 0) return hn_plan_calc(p, HN_S_MUL, n, hn_pb_const(p->pb, bits / 8));
    return hn_plan_calc(p, HN_S_CEILDIV, hn_plan_calc(p, HN_S_MUL, n, hn_pb_const(p->pb, bits)), hn_pb_const(p->pb, 8));
}

/* ---- inputs bind symbols; axes that repeat one must agree ---- */
static bool bound(const hn_planner *p, hn_dim d)
{
    for (int i = 0; i < p->regs.n; i++)
        if (p->regs.at[i].dim == d) return true;
    return false;
}

static void bind_axis(hn_planner *p, uint32_t io, uint32_t axis, hn_dim d, uint32_t reg)
{
    const hn_sym *s = hn_sym_get(p->b->g->syms, d);
    if (!s || bound(p, d)) return;
    hn_pb_input_dim(p->pb, reg, io, axis);
    hn_plan_know(p, d, reg);
    hn_pb_sym(p->pb, s->name, reg, io, axis, s->opt);
}

static void check_axis(hn_planner *p, const char *name, uint32_t axis, hn_dim d, uint32_t reg)
{
    hn_str what = { 0 };
    hn_str_addf(&what, "input \"%s\" axis %u: expected ", name, axis);
    hn_dim_print(p->b->g->syms, d, &what);
    const uint32_t want = hn_plan_dim(p, d);
    if (want != HN_NO && want != reg) hn_pb_check(p->pb, HN_S_CHECK_EQ, reg, want, hn_str_get(&what));
    hn_str_done(&what);
}

void hn_plan_bind_inputs(hn_planner *p, hn_graph *g)
{
    uint32_t reg[HN_MAX_RANK];
    uint32_t *regs = HN_NEW_N(p->b->a, uint32_t, (g->n_in + 1) * HN_MAX_RANK);
    if (!regs) return;
    for (int i = 0; i < g->n_in; i++) {
        const hn_value *v = g->in[i];
        for (int a = 0; a < v->type.rank; a++) {
            reg[a] = hn_dim_is_const(v->type.dim[a]) ? hn_pb_const(p->pb, v->type.dim[a]) : hn_pb_reg(p->pb);
            regs[i * HN_MAX_RANK + a] = reg[a];
        }
        const uint32_t io = hn_pb_input(p->pb, v->name, v->type.dtype, (uint32_t)v->type.rank, reg);
        p->buf[v->id] = hn_pb_io_buf(p->pb, io);
        hn_pb_input_hint(p->pb, io, p->b->hint[i]);
        for (int a = 0; a < v->type.rank; a++)
            if (!hn_dim_is_const(v->type.dim[a])) bind_axis(p, io, (uint32_t)a, v->type.dim[a], reg[a]);
    }
    for (int i = 0; i < g->n_in; i++)
        for (int a = 0; a < g->in[i]->type.rank; a++) {
            const hn_dim d = g->in[i]->type.dim[a];
            const uint32_t r = regs[i * HN_MAX_RANK + a];
            if (hn_dim_is_const(d) || hn_plan_dim(p, d) == r) continue;
            hn_pb_input_dim(p->pb, r, (uint32_t)i, (uint32_t)a);
            check_axis(p, g->in[i]->name, (uint32_t)a, d, r);
        }
}
