/*
 * Branches that cannot run: a gather whose index, given the condition that led here, lies outside its operand. Import writes
 * such branches in the place of those that contradict the model's shapes. Kernels clamp indices, so the plan says so.
 */
#include "build/plan_control.h"

/* What is known of a branch: its condition. */
typedef struct known {
    const hn_value *cond;
    int64_t yes;
} known;

static bool value_of(const known *k, const hn_value *v, int64_t *ret)
{
    int64_t x, y;
    if (v == k->cond) {
        *ret = k->yes;
        return true;
    }
    if (!v || hn_dtype_is_float(v->type.dtype)) return false;
    if (v->data) return hn_tdesc_numel_static(&v->type) == 1 && hn_const_i64(v, 0, ret);
    if (!v->def) return false;
    switch (v->def->op) {
    case HN_OP_cast:
    case HN_OP_identity:
    case HN_OP_reshape: return value_of(k, hn_in(v->def, 0), ret);
    case HN_OP_not:
        if (!value_of(k, hn_in(v->def, 0), &x)) return false;
        *ret = !x;
        return true;
    case HN_OP_sub:
        if (!value_of(k, hn_in(v->def, 0), &x) || !value_of(k, hn_in(v->def, 1), &y)) return false;
        return !__builtin_sub_overflow(x, y, ret);
    default: return false;
    }
}

static bool is_outside(const known *k, const hn_node *n)
{
    int axis;
    int64_t at;
    if (n->op != HN_OP_gather || !hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis)) return false;
    const hn_dim extent = hn_in(n, 0)->type.dim[axis];
    return hn_dim_is_const(extent) && value_of(k, hn_in(n, 1), &at) && (at >= extent || at < -extent);
}

void hn_plan_trap(hn_planner *p, const hn_node *n, const hn_graph *body)
{
    const known k = { .cond = hn_in(n, 0), .yes = body == n->body[0] };
    HN_FOR_NODES (x, body) {
        if (!is_outside(&k, x)) continue;
        hn_str what = { 0 };
        hn_str_addf(&what, "node \"%s\": this branch does not fit the model's shapes", hn_plan_origin(n));
        hn_pb_check(p->pb, HN_S_CHECK_EQ, hn_pb_const(p->pb, k.yes), hn_pb_const(p->pb, !k.yes), hn_str_get(&what));
        hn_str_done(&what);
        return;
    }
}
