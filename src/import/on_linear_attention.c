/*
 * LinearAttention: attention by a running state instead of a cache, as a loop over time.
 *
 *     S  = S * exp(g)                 gated rules
 *     v' = beta (v - S^T k)           delta rules, else v
 *     S  = S + k v'^T
 *     o  = scale q S
 *
 * Sums are in f32, results in the dtypes of query and state.
 */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>

typedef struct linear {
    hn_value *q, *k, *v, *decay, *beta, *state; /* [b,h,t,d] in f32; beta [b,h|1,t,1]; decay [b,h,t,1|d] */
    int64_t hq, hk;
    double scale;
} linear;

static hn_value *split(hn_im_call *c, hn_value *x, int64_t heads)
{
    return hn_im_split_heads(c, x ? hn_cast(c->b, x, HN_F32) : NULL, heads);
}

static hone_status read_linear(hn_im_call *c, linear *l)
{
    const int rule = hn_im_choice(c, "update_rule", "linear|gated|delta|gated_delta", 3);
    const bool gated = rule & 1, delta = rule & 2;
    hn_value *decay = hn_im_in(c, 4), *beta = hn_im_in(c, 5), *past = hn_im_in(c, 3);
    l->hq = hn_im_i(c, "q_num_heads", 0);
    l->hk = hn_im_i(c, "kv_num_heads", 0);
    l->scale = hn_im_f(c, "scale", 0);
    hn_im_ignore(c, "chunk_size");
    if (l->hq < 1 || l->hk < 1 || l->hq % l->hk)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%" PRId64 " query heads over %" PRId64 " key heads", l->hq,
                           l->hk);
    if (gated != (decay != NULL) || delta != (beta != NULL))
        return HN_IM_RAISE(c, HONE_E_MODEL, "decay and beta do not match the update rule");
    l->q = split(c, c->in[0], l->hq);
    l->k = split(c, c->in[1], l->hk);
    l->v = split(c, c->in[2], l->hk);
    HN_TRY(c->dg->code);
    if (!l->q || !l->k || !l->v) return c->b->status;
    if (decay)
        l->decay = split(c, decay, l->hk); /* one a head, or one a key dimension: the split yields either */
    if (beta) {
        const hn_dim each[3] = { beta->type.dim[0], beta->type.dim[1], l->hk };
        if (!hn_dim_is_const(beta->type.dim[2])) beta = hn_broadcast_to(c->b, beta, 3, each); /* the run shows whether it is 1 */
        l->beta = beta ? split(c, beta, beta->type.dim[2]) : NULL;
    }
    HN_TRY(c->dg->code);
    int64_t d;
    if (l->scale == 0) {
        if (!hn_dim_known(hn_im_syms(c), l->q->type.dim[3], &d))
            return hn_im_refuse(c, "the head size is known only while running");
        l->scale = 1 / sqrt((double)d);
    }
    const hn_dim state[4] = { l->k->type.dim[0], l->hk, l->k->type.dim[3], l->v->type.dim[3] };
    l->state = past ? hn_cast(c->b, past, HN_F32) : hn_im_fill(c, hn_const_f(c->b, HN_F32, 0), 4, state);
    return c->b->status;
}

/* One step: [b,h,d] slices at time t. Yields the read-out [b,hq,dv]; *state moves on. */
static hn_value *step(hn_im_call *c, const linear *l, hn_value *t, hn_value **state)
{
    hn_value *q = hn_im_gather(c, l->q, t, 2), *k = hn_im_gather(c, l->k, t, 2),
             *v = hn_im_gather(c, l->v, t, 2);
    hn_value *s = *state;
    if (!q || !k || !v) return NULL;
    if (l->decay) {
        hn_value *g = hn_im_unary(c, HN_OP_exp, hn_im_gather(c, l->decay, t, 2));
        s = hn_im_binary(c, HN_OP_mul, s, hn_im_unsqueeze(c, g, 3));
    }
    hn_value *key = hn_im_unsqueeze(c, k, 3), *row = hn_im_unsqueeze(c, v, 2); /* [b,h,d,1], [b,h,1,dv] */
    if (l->beta) {
        hn_value *known = hn_im_matmul(c, key, s, true, false); /* k^T S */
        hn_value *beta = hn_im_unsqueeze(c, hn_im_gather(c, l->beta, t, 2), 3);
        row = hn_im_binary(c, HN_OP_mul, beta, hn_im_binary(c, HN_OP_sub, row, known));
    }
    s = hn_im_binary(c, HN_OP_add, s, hn_im_binary(c, HN_OP_mul, key, row));
    *state = s = s ? hn_reshape(c->b, s, 4, l->state->type.dim) : NULL; /* what is carried keeps its extents */
    if (!s) return NULL;
    /* Query heads read in groups: [b,hk,group,d] x [b,hk,d,dv]. */
    const hn_dim grouped[4] = { q->type.dim[0], l->hk, l->hq / l->hk, q->type.dim[2] };
    hn_value *o = hn_im_matmul(c, hn_reshape(c->b, q, 4, grouped), s, false, false);
    if (!o) return NULL;
    const hn_dim flat[3] = { q->type.dim[0], l->hq, o->type.dim[3] };
    return hn_im_scale(c, hn_reshape(c->b, o, 3, flat), l->scale);
}

hone_status hn_im_on_linear_attention(hn_im_call *c)
{
    linear l = { 0 };
    hn_im_body body;
    HN_TRY(read_linear(c, &l));
    HN_TRY(hn_im_body_new(c, "time", &body));
    hn_value *t = hn_graph_input(body.g, "t", &(hn_tdesc){ .dtype = HN_I64 });
    hn_value *cond = hn_graph_input(body.g, "go", &(hn_tdesc){ .dtype = HN_BOOL });
    hn_value *s = hn_graph_input(body.g, "state", &l.state->type);
    if (!t || !cond || !s) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    hn_value *o = step(&body.c, &l, t, &s);
    hn_im_body_output(&body, hn_im_const_bool(&body.c, true), NULL);
    hn_im_body_output(&body, s, NULL);
    hn_im_body_output(&body, o, NULL);
    HN_TRY(body.b.status);
    hn_value *trip = hn_reshape(c->b, hn_const_dims(c->b, 1, &l.q->type.dim[2]), 0, NULL);
    hn_node *n = hn_build_bodies(c->b, HN_OP_loop, 3, (hn_value *[]){ trip, NULL, l.state },
                                 HN_ATTRS_ARG(HN_A_I("n_carried", 1)), 0, 1, &body.g);
    if (!n) return c->b->status;
    /* [t,b,hq,dv] -> [b,t,hq*dv] */
    hn_value *y = hn_transpose(c->b, n->out[1], (int64_t[]){ 1, 0, 2, 3 });
    if (!y) return c->b->status;
    const hn_dim d[3] = { y->type.dim[0], l.q->type.dim[2], hn_im_dmul(c, y->type.dim[2], y->type.dim[3]) };
    c->out[0] = hn_cast(c->b, hn_reshape(c->b, y, 3, d), c->in[0]->type.dtype);
    if (hn_im_wants(c, 1))
        c->out[1] = hn_cast(c->b, n->out[0], hn_im_in(c, 3) ? c->in[3]->type.dtype : c->in[0]->type.dtype);
    return c->b->status;
}
