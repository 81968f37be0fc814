/*
 * Extents that must agree. Where two symbols meet, or a symbol and a number, only the run shows whether they do, and kernels take it
 * for granted: the plan checks that they do, or, where kernels can do it, that the operand's is 1 (hn_lower_broadcast_idx).
 */
#include "build/plan_control.h"

static bool may_stretch(const hn_node *n)
{
    return n->op == HN_OP_broadcast || (hn_op_of(n)->traits & HN_TRAIT_POINTWISE);
}

/* Trailing axes of the operands that do not broadcast; -1: none does. */
static int own_axes(const hn_node *n)
{
    if (n->op == HN_OP_matmul || n->op == HN_OP_matmul_int) return 2;
    return may_stretch(n) ? 0 : -1;
}

static void check_axis(hn_planner *p, const hn_node *n, const hn_value *x, int axis, hn_dim result)
{
    const hn_dim own = x->type.dim[axis];
    if (own == result || own == 1) return;
    const uint32_t got = hn_plan_dim(p, own), want = hn_plan_dim(p, result);
    if (got == HN_NO || want == HN_NO || got == want) return;
    hn_str what = { 0 };
    hn_str_addf(&what, "node \"%s\": axis %d of operand \"%s\" does not broadcast", hn_plan_origin(n), axis, x->name);
    if (may_stretch(n)) { /* (own - 1) * (own - result) = 0 */
        const uint32_t one = hn_plan_calc(p, HN_S_SUB, got, hn_pb_const(p->pb, 1)), apart = hn_plan_calc(p, HN_S_SUB, got, want);
        hn_pb_check(p->pb, HN_S_CHECK_EQ, hn_plan_calc(p, HN_S_MUL, one, apart), hn_pb_const(p->pb, 0), hn_str_get(&what));
    } else {
        hn_pb_check(p->pb, HN_S_CHECK_EQ, got, want, hn_str_get(&what));
    }
    hn_str_done(&what);
}

static void check_equal(hn_planner *p, const hn_node *n, hn_dim x, hn_dim y, const char *which)
{
    if (x == y) return;
    const uint32_t got = hn_plan_dim(p, x), want = hn_plan_dim(p, y);
    if (got == HN_NO || want == HN_NO || got == want) return;
    hn_str what = { 0 };
    hn_str_addf(&what, "node \"%s\": the operands' %s differ", hn_plan_origin(n), which);
    hn_pb_check(p->pb, HN_S_CHECK_EQ, got, want, hn_str_get(&what));
    hn_str_done(&what);
}

/* What a product contracts. */
static void check_contracted(hn_planner *p, const hn_node *n)
{
    const hn_tdesc *a = &hn_in(n, 0)->type, *b = &hn_in(n, 1)->type;
    const bool plain = n->op == HN_OP_matmul;
    const int ta = plain && hn_attr_i(n, "trans_a") ? 2 : 1, tb = plain && hn_attr_i(n, "trans_b") ? 1 : 2;
    check_equal(p, n, a->dim[a->rank - ta], b->dim[b->rank - tb], "contracted axes");
}

/* All axes but the one along which operands are joined. */
static void check_joined(hn_planner *p, const hn_node *n)
{
    int axis;
    const hn_tdesc *y = &n->out[0]->type;
    if (!hn_axis_resolve(hn_attr_i(n, "axis"), y->rank, &axis)) return;
    for (int i = 0; i < n->n_in; i++)
        for (int a = 0; a < y->rank; a++)
            if (a != axis) check_equal(p, n, hn_in(n, i)->type.dim[a], y->dim[a], "other axes");
}

static void check_channels(hn_planner *p, const hn_node *n)
{
    hn_symtab *t = p->b->g->syms;
    const hn_dim all = hn_dim_mul(t, hn_in(n, 1)->type.dim[1], hn_dim_const(t, hn_attr_i(n, "group")));
    check_equal(p, n, hn_in(n, 0)->type.dim[1], all, "channels");
}

static void check_others(hn_planner *p, const hn_node *n)
{
    switch (n->op) {
    case HN_OP_matmul:
    case HN_OP_matmul_int: check_contracted(p, n); break;
    case HN_OP_concat: check_joined(p, n); break;
    case HN_OP_conv:
    case HN_OP_conv_int: check_channels(p, n); break;
    default: break;
    }
}

void hn_plan_check_extents(hn_planner *p, const hn_group *group)
{
    for (int k = 0; k < group->nodes.n; k++) {
        const hn_node *n = group->nodes.at[k];
        const int own = own_axes(n);
        check_others(p, n);
        for (int i = 0; own >= 0 && i < n->n_in; i++) {
            const hn_value *x = hn_in(n, i);
            if (!x || x->kind != HN_TENSOR || (own && i > 1)) continue;
            const int shift = n->out[0]->type.rank - x->type.rank;
            for (int a = 0; a < x->type.rank - own; a++)
                if (a + shift >= 0) check_axis(p, n, x, a, n->out[0]->type.dim[a + shift]);
        }
    }
}
