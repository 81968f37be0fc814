/**
 * Make one op of gates by sigmoid and of mish, which have cheaper formulas than their parts.
 *
 *     y = x * sigmoid(x)            =>   y = silu(x)               x / (1 + exp(-x))
 *     y = x * sigmoid(1.702 * x)    =>   y = silu(x) {beta=1.702}  also called quick gelu
 *     y = x * tanh(softplus(x))     =>   y = mish(x)               x n / (n + 2), n = exp(x) (exp(x) + 2)
 */
#include "pass/found.h"

#include <math.h>

static bool is_silu(hn_found *f, hn_value *x, hn_value *gate, double *ret_beta)
{
    const hn_node *s = hn_found_op(f, gate, HN_OP_sigmoid);
    hn_value *arg = s ? hn_in(s, 0) : NULL;
    *ret_beta = 1;
    if (!s || arg == x) return s;
    if (hn_found_with_scalar(f, arg, HN_OP_mul, &arg, ret_beta)) return arg == x && isfinite(*ret_beta);
    if (!hn_found_with_scalar(f, arg, HN_OP_div, &arg, ret_beta)) return false;
    *ret_beta = 1 / *ret_beta;
    return arg == x && isfinite(*ret_beta);
}

static bool is_mish(hn_found *f, const hn_value *x, hn_value *gate)
{
    const hn_node *t = hn_found_op(f, gate, HN_OP_tanh), *s = t ? hn_found_op(f, hn_in(t, 0), HN_OP_softplus) : NULL;
    return s && hn_in(s, 0) == x;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    for (int i = 0; i < 2 && n->out[0]->n_uses; i++) {
        hn_found f;
        hn_value *x = hn_in(n, i), *y;
        double beta;
        hn_found_init(&f, n);
        const bool silu = is_silu(&f, x, hn_in(n, !i), &beta);
        if (!silu) f.n = 1;
        if ((!silu && !is_mish(&f, x, hn_in(n, !i))) || !hn_found_is_closed(&f) || !hn_tdesc_eq(&x->type, &n->out[0]->type)) continue;
        if (!hn_pass_knob(c, HN_KNOB_fuse_silu, n)) return false;
        hn_found_origins(&f, b);
        y = silu ? hn_b1(b, HN_OP_silu, x, HN_ATTRS_ARG(HN_A_F("beta", beta))) : hn_b1(b, HN_OP_mish, x, HN_NO_ATTRS);
        if (y) hn_replace(b, n->out[0], y);
        return y != NULL;
    }
    return false;
}

const hn_pass_def hn_pass_fuse_silu = {
    .name = "fuse_silu", .summary = "recognise gates by sigmoid, and mish",
    .on = HN_OP_mul, .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
