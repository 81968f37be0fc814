/*
 * Extents that must agree: those that broadcast, and what inference promised of others (hn_node_promises). Where two symbols meet, or
 * a symbol and a number, only the run shows whether they do, and kernels take it for granted: the plan checks that they do, or,
 * where kernels can do it, that the operand's is 1 (hn_lower_broadcast_idx).
 */
#include "build/plan_control.h"

static bool may_stretch(const hn_node *n)
{
    return n->op == HN_OP_broadcast || n->op == HN_OP_matmul || n->op == HN_OP_matmul_int || (hn_op_of(n)->traits & HN_TRAIT_POINTWISE);
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

typedef struct promises {
    hn_planner *p;
    const hn_node *n;
} promises;

static void keep_promise(void *user, hn_dim a, hn_dim b, bool at_most)
{
    const promises *k = user;
    const uint32_t x = hn_plan_dim(k->p, a), y = hn_plan_dim(k->p, b);
    if (x == HN_NO || y == HN_NO || x == y) return;
    hn_str what = { 0 };
    hn_str_addf(&what, "node \"%s\": extents of its operands do not fit: ", hn_plan_origin(k->n));
    hn_dim_print(k->p->b->g->syms, a, &what);
    hn_str_add(&what, at_most ? " is to be at most " : " is to be ");
    hn_dim_print(k->p->b->g->syms, b, &what);
    hn_pb_check(k->p->pb, at_most ? HN_S_CHECK_LE : HN_S_CHECK_EQ, x, y, hn_str_get(&what));
    hn_str_done(&what);
}

hone_status hn_plan_check_promises(hn_planner *p, hn_node *n, hn_diag *dg)
{
    promises k = { p, n };
    bool open = false;
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *x = hn_in(n, i);
        open |= x && x->kind == HN_TENSOR && hn_tdesc_numel_static(&x->type) <= 0; /* none: there may be nothing to read */
    }
    return open ? hn_node_promises(n, keep_promise, &k, dg) : HONE_OK;
}

void hn_plan_check_extents(hn_planner *p, const hn_group *group)
{
    for (int k = 0; k < group->nodes.n; k++) {
        const hn_node *n = group->nodes.at[k];
        const int own = own_axes(n);
        for (int i = 0; own >= 0 && i < n->n_in; i++) {
            const hn_value *x = hn_in(n, i);
            if (!x || x->kind != HN_TENSOR || (own && i > 1)) continue;
            const int shift = n->out[0]->type.rank - x->type.rank;
            for (int a = 0; a < x->type.rank - own; a++)
                if (a + shift >= 0) check_axis(p, n, x, a, n->out[0]->type.dim[a + shift]);
        }
    }
}
