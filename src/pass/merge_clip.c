/**
 * Make one clip of relu, clip, min and max with constants in a row.
 *
 *     y = clip(relu(x), -1, 6)      =>   y = clip(x, 0, 6)
 *     y = min(max(x, 0), 6)         =>   y = clip(x, 0, 6)
 *     y = relu(relu(x))             =>   y = relu(x)
 *
 * Each is min(max(x, lo), hi) and hands NaN on, so the outer one clips the inner one's bounds.
 */
#include "pass/pass_int.h"

#include <math.h>

enum { EXACT_INT = 53 }; /* bits of an integer that a double holds */

typedef struct bounds {
    double lo, hi; /* lo <= hi; infinite: none */
} bounds;

static bool bound(const hn_value *v, double absent, double *ret)
{
    *ret = absent;
    if (!v) return true;
    return hn_const_scalar(v, ret) && !isnan(*ret) && (isinf(*ret) || fabs(*ret) < (double)(1ll << EXACT_INT));
}

/* What n clips and to which bounds. */
static bool bounds_of(const hn_node *n, hn_value **ret_x, bounds *ret)
{
    hn_value *limit;
    *ret_x = hn_in(n, 0);
    *ret = (bounds){ -INFINITY, INFINITY };
    switch (n->op) {
    case HN_OP_relu: ret->lo = 0; return true;
    case HN_OP_clip:
        if (!bound(hn_in(n, 1), -INFINITY, &ret->lo) || !bound(hn_in(n, 2), INFINITY, &ret->hi)) return false;
        ret->lo = fmin(ret->lo, ret->hi); /* lo > hi gives hi */
        return true;
    case HN_OP_max:
    case HN_OP_min:
        if (n->n_in != 2 || !hn_pass_with_const(n, ret_x, &limit)) return false;
        if (!hn_tdesc_eq(&(*ret_x)->type, &n->out[0]->type)) return false;
        return bound(limit, 0, n->op == HN_OP_max ? &ret->lo : &ret->hi);
    default: return false;
    }
}

static hn_value *scalar(hn_builder *b, hn_dtype t, double v)
{
    if (isinf(v)) return NULL;
    return hn_dtype_is_float(t) ? hn_const_f(b, t, v) : hn_const_i(b, t, (int64_t)v);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *x, *y;
    bounds outer, inner;
    if (n->n_out != 1 || !n->out[0]->n_uses || !bounds_of(n, &y, &outer)) return false;
    const hn_node *p = hn_producer(y);
    if (!p || p->graph != n->graph || !hn_has_one_use(y) || !bounds_of(p, &x, &inner)) return false;
    const double lo = fmin(fmax(inner.lo, outer.lo), outer.hi), hi = fmin(fmax(inner.hi, outer.lo), outer.hi);
    const hn_dtype t = x->type.dtype;
    hn_builder_origin_of(b, p);
    hn_value *z = lo == 0 && isinf(hi) ? hn_b1(b, HN_OP_relu, x, HN_NO_ATTRS)
                                       : hn_b3(b, HN_OP_clip, x, scalar(b, t, lo), scalar(b, t, hi), HN_NO_ATTRS);
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

const hn_pass_def hn_pass_merge_clip = {
    .name = "merge_clip", .summary = "make one clip of several",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
