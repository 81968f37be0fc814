/**
 * Compute powers and quotients with constants by cheaper operations.
 *
 *     x ^ 2     =>   x * x                       x ^ -1    =>   1 / x
 *     x ^ 0.5   =>   sqrt(x) where x is no less than 0
 *     x / 4     =>   x * 0.25                    exactly, for powers of two
 *     x / 3     =>   x * (1/3)   x ^ 3  =>  x * x * x   one rounding more: where inexact rewrites are allowed
 *
 * sqrt stands for a power only where it has the same result: -inf ^ 0.5 is inf and the root of it is NaN.
 */
#include "pass/pass_int.h"

#include <math.h>
#include <stdlib.h>

enum { MAX_POWER = 8, DEPTH = 8 };

/* Another rounding, or a rounded constant, is small against the dtype's own error only here. */
static bool is_wide(hn_dtype t)
{
    return t == HN_F32 || t == HN_F64;
}

/* Never negative (nor -0), whatever the model's inputs are; NaN may be. */
static bool never_negative(const hn_value *v, int depth)
{
    double k;
    if (hn_const_scalar(v, &k)) return k >= 0 && !signbit(k);
    const hn_node *n = hn_producer(v);
    if (!n || depth == 0) return false;
    switch (n->op) {
    case HN_OP_exp: case HN_OP_abs: case HN_OP_sigmoid: case HN_OP_dims: return true;
    case HN_OP_mul:
        if (hn_in(n, 0) == hn_in(n, 1)) return true;
        return never_negative(hn_in(n, 0), depth - 1) && never_negative(hn_in(n, 1), depth - 1);
    case HN_OP_add: case HN_OP_div:
        return never_negative(hn_in(n, 0), depth - 1) && never_negative(hn_in(n, 1), depth - 1);
    case HN_OP_cast:
        return hn_dtype_is_float(v->type.dtype) && never_negative(hn_in(n, 0), depth - 1);
    case HN_OP_reduce_sum: case HN_OP_reduce_mean: case HN_OP_reshape: case HN_OP_transpose: case HN_OP_sqrt:
        return never_negative(hn_in(n, 0), depth - 1);
    default: return false;
    }
}

static hn_value *power(hn_builder *b, hn_value *x, int n)
{
    if (n == 1) return x;
    hn_value *half = power(b, x, n / 2), *square = hn_b2(b, HN_OP_mul, half, half, HN_NO_ATTRS);
    return n % 2 ? hn_b2(b, HN_OP_mul, square, x, HN_NO_ATTRS) : square;
}

static hn_value *cheaper_pow(hn_builder *b, const hn_node *n, double e, hn_pass_ctx *c)
{
    hn_value *x = hn_in(n, 0);
    if (e == 2) return power(b, x, 2);
    if (e == -1) return hn_b1(b, HN_OP_reciprocal, x, HN_NO_ATTRS);
    if (e == 0.5 && never_negative(x, DEPTH)) return hn_b1(b, HN_OP_sqrt, x, HN_NO_ATTRS);
    if (!c->allow_inexact || !is_wide(x->type.dtype)) return NULL;
    if (e == -0.5 && never_negative(x, DEPTH))
        return hn_b1(b, HN_OP_reciprocal, hn_b1(b, HN_OP_sqrt, x, HN_NO_ATTRS), HN_NO_ATTRS);
    if (e >= 3 && e <= MAX_POWER && e == floor(e)) return power(b, x, (int)e);
    return NULL;
}

/* 1/v is a normal number, and so is v; *exact stays true for powers of two. */
static bool has_inverse(hn_dtype t, double v, bool *exact)
{
    const int limit = t == HN_F64 ? 1000 : 120;
    int exponent;
    if (v == 0 || !isfinite(v)) return false;
    if (fabs(frexp(v, &exponent)) != 0.5) *exact = false;
    return abs(exponent) < limit;
}

static bool all_inverse(const hn_value *d, bool *exact)
{
    const int64_t n = hn_tdesc_numel_static(&d->type);
    double x[256];
    *exact = true;
    for (int64_t i = 0; i < n; i += HN_COUNT(x)) {
        const int64_t k = HN_MIN((int64_t)HN_COUNT(x), n - i);
        hn_widen_f64(d->type.dtype, d->data->at, i, k, x);
        for (int64_t j = 0; j < k; j++)
            if (!has_inverse(d->type.dtype, x[j], exact)) return false;
    }
    return n > 0;
}

/* A mean: one division for many elements costs nothing, and rounding once is right. */
static bool is_sum(const hn_value *v)
{
    const hn_node *n = hn_producer(v);
    while (n && n->op == HN_OP_reshape) n = hn_producer(hn_in(n, 0));
    return n && n->op == HN_OP_reduce_sum;
}

static hn_value *cheaper_div(hn_builder *b, const hn_node *n, hn_pass_ctx *c)
{
    bool exact;
    hn_value *d = hn_in(n, 1);
    if (!is_wide(d->type.dtype) || !hn_is_const(d) || !all_inverse(d, &exact) || !(exact || (c->allow_inexact && !is_sum(hn_in(n, 0))))) return NULL;
    if (!hn_pass_knob(c, HN_KNOB_pass_cheaper_math, n)) return NULL;
    return hn_b2(b, HN_OP_mul, hn_in(n, 0), hn_b1(b, HN_OP_reciprocal, d, HN_NO_ATTRS), HN_NO_ATTRS);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    double e;
    hn_value *y = NULL;
    if (!n->out[0]->n_uses || hn_is_const(hn_in(n, 0))) return false;
    if (n->op == HN_OP_div) y = cheaper_div(b, n, c);
    else if (n->op == HN_OP_pow && hn_dtype_is_float(n->out[0]->type.dtype) && hn_const_scalar(hn_in(n, 1), &e) &&
             hn_tdesc_eq(&hn_in(n, 0)->type, &n->out[0]->type))
        y = cheaper_pow(b, n, e, c);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_cheaper_math = {
    .name = "cheaper_math", .summary = "compute powers and quotients by cheaper operations",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
