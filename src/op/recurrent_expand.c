/*
 * Expansion of the recurrent layers. The input's share of the gates is one product over all steps; then a
 * loop over time (or, for up to UNROLL known steps, straight code) adds the state's share and applies the
 * cell.
 */
#include "op/recurrent_int.h"

enum {
    UNROLL = 32
}; /* steps; longer layers would make graphs that cost more to compile than the loop costs to run */

/* One direction's values, in the computing dtype. */
typedef struct cell {
    const rnn_spec *s;
    const rnn_act *act;
    bool reverse;
    hn_dim steps, batch, h;
    hn_value *xw;      /* [s,b,gates*h] with every bias that may be added there */
    hn_value *r;       /* [gates*h,h]; of a gru that resets before the product: [2h,h] of z and r */
    hn_value *r_cand;  /* ... and its candidate's [h,h] */
    hn_value *r_bias;  /* gru with linear_before_reset: the candidate's own, [h] */
    hn_value *peep[3]; /* [h]: i o f */
    hn_value *lens;    /* i64[b,1] */
    hn_value *h0, *c0; /* [b,h] */
} cell;

static hn_value *x_act(hn_builder *b, const rnn_act *a, hn_value *x)
{
    switch (a->fn) {
    case RNN_RELU:
        return x_relu(b, x);
    case RNN_TANH:
        return x_tanh(b, x);
    case RNN_SIGMOID:
        return x_sigmoid(b, x);
    case RNN_AFFINE:
        return x_add_k(b, x_mul_k(b, x, a->alpha), a->beta);
    case RNN_LEAKY_RELU:
        return x_select(b, x_lt_k(b, x, 0), x_mul_k(b, x, a->alpha), x);
    case RNN_THRESHOLDED_RELU:
        return x_select(b, x_gt_k(b, x, a->alpha), x, x_k(b, x, 0));
    case RNN_SCALED_TANH:
        return x_mul_k(b, x_tanh(b, x_mul_k(b, x, a->beta)), a->alpha);
    case RNN_HARD_SIGMOID:
        return x_clip(b, x_add_k(b, x_mul_k(b, x, a->alpha), a->beta), 0, 1);
    case RNN_ELU:
        return x_select(b, x_lt_k(b, x, 0), x_mul_k(b, x_add_k(b, x_exp(b, x), -1), a->alpha), x);
    case RNN_SOFTSIGN:
        return x_div(b, x, x_add_k(b, x_abs(b, x), 1));
    case RNN_SOFTPLUS:
        return x_add(b, x_relu(b, x), x_log(b, x_add_k(b, x_exp(b, x_neg(b, x_abs(b, x))), 1)));
    }
    return NULL;
}

static hn_value *x_gate(hn_builder *b, const cell *c, int fn, hn_value *x)
{
    if (c->s->clip != 0) x = x_clip(b, x, -c->s->clip, c->s->clip);
    return x_act(b, &c->act[fn], x);
}

/* Gates [first, first + n) of something whose axis holds all gates. */
static hn_value *x_part(hn_builder *b, const cell *c, hn_value *x, int axis, int first, int n)
{
    return hn_slice(b, x, axis, x_dmul(b, c->h, first), x_dmul(b, c->h, n));
}

static hn_value *x_peep(hn_builder *b, const cell *c, int k, hn_value *gate, hn_value *mem)
{
    return c->peep[k] ? x_add(b, gate, x_mul(b, c->peep[k], mem)) : gate;
}

static void lstm_step(hn_builder *b, const cell *c, hn_value *xw, hn_value *state[2])
{
    hn_value *g = x_add(b, xw, x_matmul(b, state[0], c->r, false, true)), *mem = state[1];
    hn_value *i = x_gate(b, c, 0, x_peep(b, c, 0, x_part(b, c, g, 1, 0, 1), mem)), *f;

    if (c->s->input_forget)
        f = x_sub(b, x_k(b, i, 1), i);
    else
        f = x_gate(b, c, 0, x_peep(b, c, 2, x_part(b, c, g, 1, 2, 1), mem));
    hn_value *candidate = x_gate(b, c, 1, x_part(b, c, g, 1, 3, 1));
    mem = x_add(b, x_mul(b, f, mem), x_mul(b, i, candidate));
    hn_value *o = x_gate(b, c, 0, x_peep(b, c, 1, x_part(b, c, g, 1, 1, 1), mem));
    state[0] = x_mul(b, o, x_act(b, &c->act[2], mem));
    state[1] = mem;
}

static void gru_step(hn_builder *b, const cell *c, hn_value *xw, hn_value *state[2])
{
    hn_value *h = state[0], *zr, *back;

    if (c->s->linear_before_reset) {
        hn_value *all = x_matmul(b, h, c->r, false, true);
        zr = x_part(b, c, all, 1, 0, 2);
        back = x_part(b, c, all, 1, 2, 1);
        if (c->r_bias) back = x_add(b, back, c->r_bias);
    } else {
        zr = x_matmul(b, h, c->r, false, true);
        back = NULL;
    }
    zr = x_gate(b, c, 0, x_add(b, x_part(b, c, xw, 1, 0, 2), zr));
    hn_value *z = x_part(b, c, zr, 1, 0, 1), *r = x_part(b, c, zr, 1, 1, 1);
    if (back)
        back = x_mul(b, r, back);
    else
        back = x_matmul(b, x_mul(b, r, h), c->r_cand, false, true);
    hn_value *candidate = x_gate(b, c, 1, x_add(b, x_part(b, c, xw, 1, 2, 1), back));
    state[0] = x_add(b, x_mul(b, x_sub(b, x_k(b, z, 1), z), candidate), x_mul(b, z, h));
}

static void rnn_step(hn_builder *b, const cell *c, hn_value *xw, hn_value *state[2])
{
    state[0] = x_gate(b, c, 0, x_add(b, xw, x_matmul(b, state[0], c->r, false, true)));
}

/* One step at time t (i64[]) over xw [b,gates*h]: replaces the state and yields the step's output. */
static hn_value *x_step(hn_builder *b, const cell *c, hn_value *t, hn_value *xw, hn_value *state[2])
{
    hn_value *old[2] = {state[0], state[1]};

    if (c->s->op == HN_OP_lstm)
        lstm_step(b, c, xw, state);
    else if (c->s->op == HN_OP_gru)
        gru_step(b, c, xw, state);
    else
        rnn_step(b, c, xw, state);
    if (!c->lens) return state[0];
    hn_value *live = x_lt(b, t, c->lens); /* [b,1] */
    hn_value *y = x_select(b, live, state[0], x_k(b, state[0], 0));
    for (int i = 0; i < 2; i++)
        if (old[i]) state[i] = x_select(b, live, state[i], old[i]);
    return y;
}

static hn_value *x_unrolled(hn_builder *b, const cell *c, hn_value *state[2])
{
    hn_value *y[UNROLL];

    for (int64_t i = 0; i < c->steps; i++) {
        const int64_t t = c->reverse ? c->steps - 1 - i : i;
        hn_value *xw = x_squeeze(b, hn_slice(b, c->xw, 0, t, 1), 0);
        y[t] = x_unsqueeze(b, x_step(b, c, hn_const_i(b, HN_I64, t), xw, state), 0);
    }
    return x_concat(b, (int)c->steps, y, 0);
}

static void fill(x_loop_ctx *l)
{
    const cell *c = l->user;
    hn_builder *b = l->b;
    hn_value *state[2] = {l->carried[0], c->c0 ? l->carried[1] : NULL}, *t = l->iter;

    if (c->reverse) t = x_sub(b, x_dim(b, HN_I64, x_dsub(b, c->steps, 1)), t);
    hn_value *y = x_step(b, c, t, x_gather(b, c->xw, t, 0), state);
    l->next[0] = state[0];
    if (c->c0) l->next[1] = state[1];
    l->next[c->c0 ? 2 : 1] = y;
}

static hn_value *x_looped(hn_builder *b, const cell *c, hn_value *state[2])
{
    const int n = c->c0 ? 2 : 1;
    const hn_dim dim[3] = {c->steps, c->batch, c->h};
    hn_value *ret[3];

    x_loop(b, &(x_loop_spec){x_dim(b, HN_I64, c->steps), n, 1, state, fill, c}, ret);
    state[0] = ret[0];
    if (n == 2) state[1] = ret[1];
    hn_value *y = hn_reshape(b, ret[n], 3, dim);
    return c->reverse ? x_reverse(b, y, 0) : y;
}

/* Direction d of operand i in dtype t, without its leading axis; NULL when absent. */
static hn_value *x_of_dir(hn_builder *b, const hn_node *n, int i, int d, hn_dtype t)
{
    hn_value *v = hn_in(n, i);
    return v ? x_cast(b, x_squeeze(b, hn_slice(b, v, 0, d, 1), 0), t) : NULL;
}

/* The same with the extents that inference promised, so that what is carried keeps its own. */
static hn_value *x_shaped(hn_builder *b, const hn_node *n, int i, int d, hn_dtype t, hn_dim rows, hn_dim columns)
{
    const hn_dim dim[2] = {rows, columns};
    hn_value *v = x_of_dir(b, n, i, d, t);
    return v ? hn_reshape(b, v, v->type.rank, dim) : NULL;
}

/* Wb + Rb, except the candidate's Rb of a gru that resets after the product: that one goes to r_bias. */
static hn_value *x_bias(hn_builder *b, cell *c, hn_value *both)
{
    const int g = c->s->n_gate;

    if (!both) return NULL;
    hn_value *w = x_part(b, c, both, 0, 0, g), *r = x_part(b, c, both, 0, g, g);
    if (!c->s->linear_before_reset) return x_add(b, w, r);
    c->r_bias = x_part(b, c, r, 0, 2, 1);
    hn_value *zr = x_add(b, x_part(b, c, w, 0, 0, 2), x_part(b, c, r, 0, 0, 2));
    return x_concat2(b, zr, x_part(b, c, w, 0, 2, 1), 0);
}

static cell x_cell(hn_builder *b, const hn_node *n, const rnn_spec *s, int d)
{
    const hn_dim *x = hn_in(n, RNN_X)->type.dim;
    const hn_dtype t = x_ctype(hn_in(n, RNN_X)->type.dtype);
    cell c = {.s = s, .act = s->act[d], .reverse = s->reverse[d], .steps = x[0], .batch = x[1]};

    c.h = hn_out(n, 0)->type.dim[3];
    const hn_dim state[2] = {c.batch, c.h}, column[2] = {c.batch, 1};
    const hn_dim gates = x_dmul(b, c.h, s->n_gate), inputs = hn_in(n, RNN_W)->type.dim[2];
    c.xw = x_matmul(b, x_up(b, hn_in(n, RNN_X)), x_shaped(b, n, RNN_W, d, t, gates, inputs), false, true);
    c.r = x_shaped(b, n, RNN_R, d, t, gates, c.h);
    if (s->op == HN_OP_gru && !s->linear_before_reset) {
        c.r_cand = x_part(b, &c, c.r, 0, 2, 1);
        c.r = x_part(b, &c, c.r, 0, 0, 2);
    }
    hn_value *bias = x_bias(b, &c, x_shaped(b, n, RNN_B, d, t, x_dmul(b, gates, 2), 0));
    hn_value *p = x_shaped(b, n, RNN_P, d, t, x_dmul(b, c.h, 3), 0);
    if (bias) c.xw = x_add(b, c.xw, bias);
    for (int k = 0; p && k < 3; k++)
        c.peep[k] = x_part(b, &c, p, 0, k, 1);
    if (hn_in(n, RNN_LENS)) c.lens = hn_reshape(b, x_cast(b, hn_in(n, RNN_LENS), HN_I64), 2, column);
    c.h0 = hn_in(n, RNN_H0) ? x_shaped(b, n, RNN_H0, d, t, c.batch, c.h) : x_full(b, t, 2, state, 0);
    if (s->op == HN_OP_lstm)
        c.c0 = hn_in(n, RNN_C0) ? x_shaped(b, n, RNN_C0, d, t, c.batch, c.h) : x_full(b, t, 2, state, 0);
    return c;
}

/* Both directions side by side along `axis`, back in the model's dtype. */
static hn_value *x_join(hn_builder *b, hn_value *const *each, int n, int axis, hn_dtype t)
{
    hn_value *part[2];

    for (int d = 0; d < n; d++)
        part[d] = x_unsqueeze(b, each[d], axis);
    return x_cast(b, x_concat(b, n, part, axis), t);
}

hone_status rnn_expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_dtype t = hn_in(n, RNN_X)->type.dtype;
    hn_value *y[2], *yh[2], *yc[2];
    int64_t steps;
    rnn_spec s;

    HN_TRY(rnn_spec_of_node(n, &s, b->dg));
    for (int d = 0; d < s.n_dir; d++) {
        cell c = x_cell(b, n, &s, d);
        hn_value *state[2] = {c.h0, c.c0};
        if (b->status != HONE_OK) return b->status;
        const bool unroll = hn_dim_known(b->g->syms, c.steps, &steps) && steps >= 1 && steps <= UNROLL;
        y[d] = unroll ? x_unrolled(b, &c, state) : x_looped(b, &c, state);
        yh[d] = state[0];
        yc[d] = state[1];
    }
    out[0] = x_join(b, y, s.n_dir, 1, t);
    if (n->n_out > 1) out[1] = x_join(b, yh, s.n_dir, 0, t);
    if (n->n_out > 2) out[2] = x_join(b, yc, s.n_dir, 0, t);
    return x_done(b);
}
