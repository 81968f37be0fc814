/**
 * Leave out operands that change nothing, and pairs that undo each other.
 *
 *     x * 1, x / 1, x ^ 1, x - 0, x and true, x or false   =>   x
 *     -(-x), not not x                                     =>   x
 *     select({true}, a, b)                                 =>   a
 *     select(not c, a, b)                                  =>   select(c, b, a)
 *
 * x + 0 stays x where x is no float: -0 + 0 is +0.
 */
#include "pass/pass_int.h"

#include <math.h>

/* op(x, v) == x for the second operand, and for the first when the op is commutative. */
static bool is_neutral(hn_op op, hn_dtype t, double v)
{
    switch (op) {
    case HN_OP_mul: case HN_OP_div: case HN_OP_pow: return v == 1;
    case HN_OP_sub: return v == 0 && !signbit(v);
    case HN_OP_add: return v == 0 && (!hn_dtype_is_float(t) || signbit(v));
    case HN_OP_and: return v != 0;
    case HN_OP_or: case HN_OP_xor: case HN_OP_bit_or: case HN_OP_bit_xor: return v == 0;
    case HN_OP_shift_left: case HN_OP_shift_right: return v == 0;
    default: return false;
    }
}

static hn_value *without_neutral(const hn_node *n)
{
    double v;
    const bool swaps = hn_op_of(n)->traits & HN_TRAIT_COMMUTATIVE;
    if (n->n_in != 2) return NULL;
    for (int i = 1; i >= (swaps ? 0 : 1); i--) {
        hn_value *x = hn_in(n, !i);
        if (hn_const_scalar(hn_in(n, i), &v) && is_neutral(n->op, x->type.dtype, v) && hn_tdesc_eq(&x->type, &n->out[0]->type))
            return x;
    }
    return NULL;
}

/* The inner operand of op(op(x)) for ops that undo themselves. */
static hn_value *undone(const hn_node *n)
{
    const hn_node *p = hn_producer(hn_in(n, 0));
    const bool undoes = n->op == HN_OP_neg || n->op == HN_OP_not || n->op == HN_OP_bit_not;
    return undoes && p && p->op == n->op && p->graph == n->graph ? hn_in(p, 0) : NULL;
}

static hn_value *chosen(hn_builder *b, const hn_node *n)
{
    double v;
    const hn_tdesc *d = &n->out[0]->type;
    if (n->op != HN_OP_select) return NULL;
    if (hn_const_scalar(hn_in(n, 0), &v)) return hn_broadcast_to(b, hn_in(n, v != 0 ? 1 : 2), d->rank, d->dim);
    if (!hn_is_op(hn_in(n, 0), HN_OP_not) || hn_in(n, 0)->def->graph != n->graph) return NULL;
    return hn_b3(b, HN_OP_select, hn_in(hn_in(n, 0)->def, 0), hn_in(n, 2), hn_in(n, 1), HN_NO_ATTRS);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    if (n->n_out != 1 || !n->out[0]->n_uses) return false;
    hn_value *x = without_neutral(n);
    if (!x) x = undone(n);
    if (!x) x = chosen(b, n);
    if (x) hn_replace(b, n->out[0], x);
    return x != NULL;
}

const hn_pass_def hn_pass_fold_neutral = {
    .name = "fold_neutral", .summary = "leave out operands that change nothing and pairs that undo each other",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
