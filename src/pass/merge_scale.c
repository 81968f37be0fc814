/**
 * Scale once by constants, and after sums.
 *
 *     y = x * k / c                  =>   y = x * (k/c)
 *     y = (x * k + a) * c            =>   y = x * (k*c) + (a*c)
 *     y = sum of (x * k)             =>   y = (sum of x) * k          k one number; averages as well
 *
 * Fires where the product has no other reader and the constants are of sizes whose products stay normal. Not exact: a
 * rounding less. Quantised models average integers this way: a mean that lies between two bins goes where the model's
 * arithmetic sends it.
 */
#include "pass/pass_int.h"

#include <math.h>

static bool is_scale(const hn_node *n)
{
    return n && (n->op == HN_OP_mul || n->op == HN_OP_div);
}

static bool is_shift(const hn_node *n)
{
    return n && (n->op == HN_OP_add || n->op == HN_OP_sub);
}

/* All elements zero or between 1e-15 and 1e15; `or_zero` false: no zero. */
static bool moderate(const hn_value *k, bool or_zero)
{
    const int64_t n = hn_tdesc_numel_static(&k->type);
    for (int64_t i = 0; i < n; i++) {
        double x;
        hn_widen_f64(k->type.dtype, k->data->at, i, 1, &x);
        if (!(or_zero && x == 0) && !(fabs(x) > 1e-15 && fabs(x) < 1e15)) return false;
    }
    return true;
}

/* The computed operand of x op k, k on the right of a quotient or difference. */
static hn_value *split(const hn_node *n, hn_value **ret_k)
{
    hn_value *x;
    if (!hn_pass_with_const(n, &x, ret_k) || !hn_tdesc_eq(&x->type, &n->out[0]->type)) return NULL;
    if ((n->op == HN_OP_div || n->op == HN_OP_sub) && hn_in(n, 1) != *ret_k) return NULL;
    if (n->out[0]->type.dtype != HN_F32 && n->out[0]->type.dtype != HN_F64) return NULL;
    if ((*ret_k)->type.rank > x->type.rank || !moderate(*ret_k, n->op != HN_OP_div)) return NULL;
    return x;
}

static hn_node *only_producer(const hn_node *reader, const hn_value *v)
{
    hn_node *n = hn_producer(v);
    return n && n->graph == reader->graph && hn_has_one_use(v) ? n : NULL;
}

/* first(x, k) then second(., c) as one product. */
static hn_value *scaled_once(hn_builder *b, hn_value *x, const hn_node *first, hn_value *k, const hn_node *second, hn_value *c)
{
    hn_value *f;
    const hn_op op = second->op;
    if (first->op == HN_OP_mul) {
        f = hn_b2(b, op, k, c, HN_NO_ATTRS);
    } else if (op == HN_OP_mul) {
        f = hn_b2(b, HN_OP_div, c, k, HN_NO_ATTRS);
    } else {
        return hn_b2(b, HN_OP_div, x, hn_b2(b, HN_OP_mul, k, c, HN_NO_ATTRS), HN_NO_ATTRS);
    }
    return hn_b2(b, HN_OP_mul, x, f, HN_NO_ATTRS);
}

static bool merge(hn_builder *b, hn_node *n)
{
    hn_value *c, *k, *a, *v = split(n, &c);
    const hn_node *p = v ? only_producer(n, v) : NULL;
    if (is_scale(p)) {
        hn_value *x = split(p, &k);
        if (!x) return false;
        hn_builder_origin_of(b, p);
        hn_replace(b, n->out[0], scaled_once(b, x, p, k, n, c));
        return true;
    }
    if (!is_shift(p)) return false;
    hn_value *w = split(p, &a);
    const hn_node *q = w ? only_producer(p, w) : NULL;
    hn_value *x = is_scale(q) ? split(q, &k) : NULL;
    if (!x) return false;
    hn_builder_origin_of(b, p);
    hn_builder_origin_of(b, q);
    hn_replace(b, n->out[0], hn_b2(b, p->op, scaled_once(b, x, q, k, n, c), hn_b2(b, n->op, a, c, HN_NO_ATTRS), HN_NO_ATTRS));
    return true;
}

static bool after_sum(hn_builder *b, hn_node *n)
{
    hn_value *k;
    const hn_node *p = only_producer(n, hn_in(n, 0));
    hn_value *x = is_scale(p) ? split(p, &k) : NULL;
    if (!x || n->n_out != 1 || hn_tdesc_numel_static(&k->type) != 1) return false;
    hn_builder_origin_of(b, p);
    hn_value *in[8] = { x };
    for (int i = 1; i < n->n_in && i < HN_COUNT(in); i++) in[i] = hn_in(n, i);
    const hn_node *sum = hn_build_like(b, n, n->n_in, in);
    if (!sum) return false;
    hn_replace(b, n->out[0], hn_b2(b, p->op, sum->out[0], hn_reshape(b, k, 0, NULL), HN_NO_ATTRS));
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    if (!n->out[0]->n_uses) return false;
    if (n->op == HN_OP_avg_pool || n->op == HN_OP_reduce_sum) return after_sum(b, n);
    return is_scale(n) && merge(b, n);
}

const hn_pass_def hn_pass_merge_scale = {
    .name = "merge_scale", .summary = "scale once by constants, and after sums",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
