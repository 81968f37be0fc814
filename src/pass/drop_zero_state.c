/**
 * Leave out initial states of zeros: a recurrent layer starts from zeros as it is.
 *
 *     y = lstm(x, w, r, b, _, broadcast({0}), {0,0,..})   =>   y = lstm(x, w, r, b)
 */
#include "pass/pass_int.h"

enum { H0 = 5, C0 = 6, MAX_IN = 8 };

static bool is_zero(const hn_value *v)
{
    double x;
    if (hn_is_op(v, HN_OP_broadcast)) v = hn_in(v->def, 0);
    return hn_const_scalar(v, &x) && x == 0;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    hn_value *in[MAX_IN];
    bool changed = false;
    if ((n->op != HN_OP_lstm && n->op != HN_OP_gru && n->op != HN_OP_rnn) || n->n_in > MAX_IN) return false;
    for (int i = 0; i < n->n_in; i++) {
        in[i] = hn_in(n, i);
        if ((i != H0 && i != C0) || !in[i] || !is_zero(in[i])) continue;
        in[i] = NULL;
        changed = true;
    }
    const hn_node *y = changed ? hn_build_like(b, n, n->n_in, in) : NULL;
    for (int i = 0; y && i < n->n_out; i++) hn_replace(b, n->out[i], y->out[i]);
    return y != NULL;
}

const hn_pass_def hn_pass_drop_zero_state = {
    .name = "drop_zero_state", .summary = "leave out initial states of zeros",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
