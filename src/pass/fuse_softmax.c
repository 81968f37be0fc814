/**
 * Make one op of spelled-out softmax and log-softmax.
 *
 *     d = x - max(x)   e = exp(d)   y = e / sum(e)      =>   y = softmax(x)
 *     d = x - max(x)   e = exp(d)   y = d - log(sum(e)) =>   y = log_softmax(x)
 *
 * The maximum must be taken off: without it large elements overflow, which the op would not do. Both reductions are over the
 * same one axis.
 */
#include "pass/found.h"

#include <math.h>

/* v = the reduction of *ret_x over one axis, which *axis becomes unless it is known (not -1). */
static bool along_one_axis(hn_found *f, hn_value *v, hn_op op, hn_value **ret_x, int *axis)
{
    const int64_t *axes;
    int n;
    if (!hn_found_reduced(f, v, op, ret_x, &axes, &n) || n != 1 || (*axis >= 0 && axes[0] != *axis)) return false;
    *axis = (int)axes[0];
    return true;
}

/* x of x - max(x); jax writes max(max(x), -inf) */
static hn_value *lowered(hn_found *f, hn_value *d, int axis)
{
    hn_value *x, *top;
    const hn_node *sub = hn_found_op(f, d, HN_OP_sub);
    if (!sub) return NULL;
    top = hn_in(sub, 1);
    hn_found_with(f, top, HN_OP_max, -INFINITY, &top);
    return along_one_axis(f, top, HN_OP_reduce_max, &x, &axis) && x == hn_in(sub, 0) ? x : NULL;
}

static hn_value *exponent(hn_found *f, hn_value *e)
{
    const hn_node *n = hn_found_op(f, e, HN_OP_exp);
    return n ? hn_in(n, 0) : NULL;
}

/* e and s of e / s, or of e * (1 / s) */
static bool quotient(hn_found *f, const hn_node *n, int swap, hn_value **ret_e, hn_value **ret_s)
{
    *ret_e = hn_in(n, swap);
    *ret_s = hn_in(n, !swap);
    if (n->op == HN_OP_div) return !swap;
    const hn_node *r = n->op == HN_OP_mul ? hn_found_op(f, *ret_s, HN_OP_reciprocal) : NULL;
    if (r) *ret_s = hn_in(r, 0);
    return r;
}

static hn_value *match_softmax(hn_found *f, const hn_node *n, int *ret_axis)
{
    for (int swap = 0; swap < 2; swap++) {
        hn_value *e, *s, *summed;
        f->n = 1;
        *ret_axis = -1;
        if (!quotient(f, n, swap, &e, &s) || !along_one_axis(f, s, HN_OP_reduce_sum, &summed, ret_axis) || summed != e) continue;
        hn_value *d = exponent(f, e), *x = d ? lowered(f, d, *ret_axis) : NULL;
        if (x) return x;
    }
    return NULL;
}

static hn_value *match_log_softmax(hn_found *f, const hn_node *n, int *ret_axis)
{
    hn_value *d = hn_in(n, 0), *e;
    const hn_node *log = hn_found_op(f, hn_in(n, 1), HN_OP_log);
    *ret_axis = -1;
    if (!log || !along_one_axis(f, hn_in(log, 0), HN_OP_reduce_sum, &e, ret_axis) || exponent(f, e) != d) return NULL;
    return lowered(f, d, *ret_axis);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_found f;
    int axis;
    if ((n->op != HN_OP_div && n->op != HN_OP_mul && n->op != HN_OP_sub) || !n->out[0]->n_uses) return false;
    hn_found_init(&f, n);
    hn_value *x = n->op == HN_OP_sub ? match_log_softmax(&f, n, &axis) : match_softmax(&f, n, &axis);
    if (!x || !hn_found_is_closed(&f) || !hn_tdesc_eq(&x->type, &n->out[0]->type)) return false;
    if (!hn_pass_knob(c, HN_KNOB_fuse_softmax, n)) return false;
    hn_found_origins(&f, b);
    hn_value *y = hn_b1(b, n->op == HN_OP_sub ? HN_OP_log_softmax : HN_OP_softmax, x, HN_ATTRS_ARG(HN_A_I("axis", axis)));
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_fuse_softmax = {
    .name = "fuse_softmax", .summary = "recognise softmax and log-softmax",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
