/*
 * ai.onnx.preview.training: one step of an optimiser, plain arithmetic on any number of tensors. Operands are the rate, the count
 * of steps so far, then a row each of tensors, gradients and what the optimiser remembers; results are the tensors' new values,
 * then what to remember.
 */
#include "import/import_int.h"

#include <math.h>

typedef struct step {
    hn_value *rate, *count; /* scalars */
    int n;                  /* tensors */
    int n_kept;             /* what is remembered of each */
} step;

static hone_status open_step(hn_im_call *c, int n_kept, step *ret)
{
    const int n_row = 2 + n_kept;
    if ((c->n_in - 2) % n_row || c->n_in < 2 + n_row)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%d inputs are no rate, count and rows of %d tensors", c->n_in, n_row);
    *ret = (step){ .rate = c->in[0], .count = c->in[1], .n = (c->n_in - 2) / n_row, .n_kept = n_kept };
    if (c->n_out > ret->n * (1 + n_kept))
        return HN_IM_RAISE(c, HONE_E_MODEL, "%d outputs for %d tensors", c->n_out, ret->n);
    for (int i = 0; i < c->n_in; i++)
        if (!c->in[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "input %d is absent", i);
    for (int i = 0; i < 2; i++)
        if (c->in[i]->type.rank) c->in[i] = hn_reshape(c->b, c->in[i], 0, NULL);
    ret->rate = c->in[0], ret->count = c->in[1];
    return c->b->status;
}

/* Row 0: tensors, 1: gradients, then what is remembered. */
static hn_value *row(const hn_im_call *c, const step *s, int r, int i)
{
    return c->in[2 + r * s->n + i];
}

static void set(hn_im_call *c, const step *s, int r, int i, hn_value *v)
{
    if (r * s->n + i < c->n_out) c->out[r * s->n + i] = v;
}

static hn_value *add(hn_im_call *c, hn_value *x, hn_value *y)
{
    return hn_im_binary(c, HN_OP_add, x, y);
}

static hn_value *mul(hn_im_call *c, hn_value *x, hn_value *y)
{
    return hn_im_binary(c, HN_OP_mul, x, y);
}

/* Scalars in the tensor's own dtype; of what could not be made, nothing. */
static hn_value *like(hn_im_call *c, hn_value *scalar, const hn_value *x)
{
    return x ? hn_cast(c->b, scalar, x->type.dtype) : NULL;
}

/* The gradient with the pull of the norm: norm_coefficient * x + g. */
static hn_value *pulled(hn_im_call *c, hn_value *x, hn_value *g)
{
    const double k = hn_im_f(c, "norm_coefficient", 0);
    return k == 0 ? g : add(c, hn_im_scale(c, x, k), g);
}

/* x - rate * by */
static hn_value *moved(hn_im_call *c, hn_value *x, hn_value *rate, hn_value *by)
{
    return hn_im_binary(c, HN_OP_sub, x, mul(c, like(c, rate, x), by));
}

/* scalar x > 0, for counts of steps */
static hn_value *positive(hn_im_call *c, hn_value *x)
{
    return hn_im_binary(c, HN_OP_gt, x, hn_const_i(c->b, HN_I64, 0));
}

/* 1 - base ^ count */
static hn_value *decayed(hn_im_call *c, double base, hn_value *count)
{
    hn_value *p = hn_im_binary(c, HN_OP_pow, hn_const_f(c->b, HN_F32, base), hn_cast(c->b, count, HN_F32));
    return hn_im_binary(c, HN_OP_sub, hn_const_f(c->b, HN_F32, 1), p);
}

/* sqrt(h) + eps */
static hn_value *spread(hn_im_call *c, hn_value *h, double eps)
{
    hn_value *r = hn_im_unary(c, HN_OP_sqrt, h);
    return r ? add(c, r, hn_im_like_f(c, r, eps)) : NULL;
}

hone_status hn_im_on_adagrad(hn_im_call *c)
{
    const double decay = hn_im_f(c, "decay_factor", 0), eps = hn_im_f(c, "epsilon", 1e-6);
    step s;
    HN_TRY(open_step(c, 1, &s));
    hn_value *t = hn_cast(c->b, s.count, HN_F32), *one = hn_const_f(c->b, HN_F32, 1);
    hn_value *rate = hn_im_binary(c, HN_OP_div, hn_cast(c->b, s.rate, HN_F32), add(c, one, hn_im_scale(c, t, decay)));
    for (int i = 0; i < s.n && c->b->status == HONE_OK; i++) {
        hn_value *x = row(c, &s, 0, i), *g = pulled(c, x, row(c, &s, 1, i));
        hn_value *h = add(c, row(c, &s, 2, i), mul(c, g, g));
        set(c, &s, 0, i, moved(c, x, rate, hn_im_binary(c, HN_OP_div, g, spread(c, h, eps))));
        set(c, &s, 1, i, h);
    }
    return c->b->status;
}

/* a * x + (1 - a) * y */
static hn_value *mixed(hn_im_call *c, double a, hn_value *x, hn_value *y)
{
    return add(c, hn_im_scale(c, x, a), hn_im_scale(c, y, 1 - a));
}

hone_status hn_im_on_adam(hn_im_call *c)
{
    const double alpha = hn_im_f(c, "alpha", 0.9), beta = hn_im_f(c, "beta", 0.999), eps = hn_im_f(c, "epsilon", 1e-6);
    const double post = hn_im_f(c, "norm_coefficient_post", 0);
    step s;
    HN_TRY(open_step(c, 2, &s));
    hn_value *rate = hn_cast(c->b, s.rate, HN_F32);
    hn_value *k = hn_im_binary(c, HN_OP_div, hn_im_unary(c, HN_OP_sqrt, decayed(c, beta, s.count)), decayed(c, alpha, s.count));
    rate = hn_im_select(c, positive(c, s.count), mul(c, rate, k), rate);
    for (int i = 0; i < s.n && c->b->status == HONE_OK; i++) {
        hn_value *x = row(c, &s, 0, i), *g = pulled(c, x, row(c, &s, 1, i));
        hn_value *v = mixed(c, alpha, row(c, &s, 2, i), g), *h = mixed(c, beta, row(c, &s, 3, i), mul(c, g, g));
        hn_value *y = moved(c, x, rate, hn_im_binary(c, HN_OP_div, v, spread(c, h, eps)));
        set(c, &s, 0, i, hn_im_scale(c, y, 1 - post));
        set(c, &s, 1, i, v);
        set(c, &s, 2, i, h);
    }
    return c->b->status;
}

hone_status hn_im_on_momentum(hn_im_call *c)
{
    enum { STANDARD, NESTEROV };
    const int mode = hn_im_choice(c, "mode", "standard|nesterov", STANDARD);
    const double alpha = hn_im_f(c, "alpha", 0), beta = hn_im_f(c, "beta", 1);
    step s;
    HN_TRY(open_step(c, 1, &s));
    hn_value *share = hn_im_select(c, positive(c, s.count), hn_const_f(c->b, HN_F32, beta), hn_const_f(c->b, HN_F32, 1));
    for (int i = 0; i < s.n && c->b->status == HONE_OK; i++) {
        hn_value *x = row(c, &s, 0, i), *g = pulled(c, x, row(c, &s, 1, i));
        hn_value *v = add(c, hn_im_scale(c, row(c, &s, 2, i), alpha), mul(c, like(c, share, g), g));
        set(c, &s, 0, i, moved(c, x, s.rate, mode == NESTEROV ? add(c, g, hn_im_scale(c, v, alpha)) : v));
        set(c, &s, 1, i, v);
    }
    return c->b->status;
}
