/* Losses, which models exported with their head still on hold. */
#include "import/import_int.h"

#include <inttypes.h>

/* -x[n, target, ...] weighted, targets equal to ignore_index left out; reduced as asked. */
static hn_value *nll(hn_im_call *c, hn_value *x, hn_value *target, hn_value *weight)
{
    const int reduction = hn_im_choice(c, "reduction", "none|sum|mean", 2);
    const bool has_ignore = hn_im_has(c, "ignore_index");
    if (!x || !target) return NULL;
    if (x->type.rank < 2 || target->type.rank != x->type.rank - 1) {
        hn_im_refuse(c, "scores of rank %d with targets of rank %d", x->type.rank, target->type.rank);
        return NULL;
    }
    target = hn_im_i64(c, target);
    hn_value *zero = hn_const_i(c->b, HN_I64, 0), *keep = NULL;
    if (has_ignore) { /* an ignored target may be no class at all: read class 0 and weigh it by nothing */
        hn_value *skip =
            hn_im_binary(c, HN_OP_eq, target, hn_const_i(c->b, HN_I64, hn_im_i(c, "ignore_index", 0)));
        keep = hn_im_select(c, skip, hn_im_like_f(c, x, 0), hn_im_like_f(c, x, 1));
        target = hn_im_select(c, skip, zero, target);
    }
    hn_value *at = hn_im_unsqueeze(c, target, 1);
    hn_value *loss = hn_b2(c->b, HN_OP_gather_elements, x, at, HN_ATTRS_ARG(HN_A_I("axis", 1)));
    loss = hn_im_unary(c, HN_OP_neg, hn_im_squeeze(c, loss, 1));
    hn_value *w = weight ? hn_im_gather(c, weight, target, 0) : NULL;
    if (w && keep) w = hn_im_binary(c, HN_OP_mul, w, keep);
    if (!w) w = keep;
    if (w)
        loss = keep ? hn_im_select(c, hn_im_binary(c, HN_OP_eq, keep, hn_im_like_f(c, keep, 0)),
                                   hn_im_like_f(c, loss, 0), hn_im_binary(c, HN_OP_mul, loss, w))
                    : hn_im_binary(c, HN_OP_mul, loss, w);
    if (!loss || reduction == 0) return loss;
    int64_t axes[HN_MAX_RANK];
    for (int i = 0; i < loss->type.rank; i++)
        axes[i] = i;
    const int n = loss->type.rank;
    if (reduction == 1) return hn_im_reduce(c, HN_OP_reduce_sum, loss, n, axes, false);
    if (!w) return hn_im_reduce(c, HN_OP_reduce_mean, loss, n, axes, false);
    return hn_im_binary(
        c, HN_OP_div, hn_im_reduce(c, HN_OP_reduce_sum, loss, n, axes, false),
        hn_im_reduce(c, HN_OP_reduce_sum, hn_broadcast_to(c->b, w, n, loss->type.dim), n, axes, false));
}

hone_status hn_im_on_nll_loss(hn_im_call *c)
{
    return hn_im_ret(c, nll(c, c->in[0], c->in[1], hn_im_in(c, 2)));
}

hone_status hn_im_on_cross_entropy_loss(hn_im_call *c)
{
    hn_value *log_prob = hn_b1(c->b, HN_OP_log_softmax, c->in[0], HN_ATTRS_ARG(HN_A_I("axis", 1)));
    c->out[0] = nll(c, log_prob, c->in[1], hn_im_in(c, 2));
    if (c->n_out > 1) c->out[1] = log_prob;
    return c->b->status;
}
