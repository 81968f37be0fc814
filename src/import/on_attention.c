/* Attention, rotary embedding, and the recurrent relatives of attention. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* [b,s,h*d] -> [b,h,s,d] */
hn_value *hn_im_split_heads(hn_im_call *c, hn_value *x, int64_t heads)
{
    if (!x) return NULL;
    if (x->type.rank != 3 || heads < 1) {
        hn_im_refuse(c, "rank %d with %" PRId64 " heads", x->type.rank, heads);
        return NULL;
    }
    const hn_dim d[4] = { x->type.dim[0], x->type.dim[1], heads, hn_im_ddiv(c, x->type.dim[2], heads) };
    return hn_transpose(c->b, hn_reshape(c->b, x, 4, d), (int64_t[]){ 0, 2, 1, 3 });
}

/* [b,h,s,d] -> [b,s,h*d] */
hn_value *hn_im_merge_heads(hn_im_call *c, hn_value *x)
{
    if (!x) return NULL;
    const hn_dim d[3] = { x->type.dim[0], x->type.dim[2], hn_im_dmul(c, x->type.dim[1], x->type.dim[3]) };
    return hn_reshape(c->b, hn_transpose(c->b, x, (int64_t[]){ 0, 2, 1, 3 }), 3, d);
}

/* ---- masks: true lets a query see a key ---- */

static hn_value *and_masks(hn_im_call *c, hn_value *a, hn_value *b)
{
    return !a ? b : !b ? a : hn_im_binary(c, HN_OP_and, a, b);
}

/* Both masks in one: two bools are and-ed, else hidden keys get -inf added. */
static hn_value *merge_masks(hn_im_call *c, hn_value *mask, hn_value *seen)
{
    if (!mask || !seen) return mask ? mask : seen;
    if (mask->type.dtype == HN_BOOL) return and_masks(c, mask, seen);
    hn_value *bias = hn_im_select(c, seen, hn_im_like_f(c, mask, 0), hn_im_like_f(c, mask, -INFINITY));
    return hn_im_binary(c, HN_OP_add, mask, bias);
}

/* What a position rule sees: query i stands at i + offset (a scalar, or [b,1,1,1]). */
typedef struct positions {
    hn_value *query; /* [s,1] or [b,1,s,1] */
    hn_value *key;   /* [1,t] */
} positions;

static positions place(hn_im_call *c, hn_dim s, hn_dim t, hn_value *offset)
{
    const hn_dim q[2] = { s, 1 }, k[2] = { 1, t };
    positions p = { hn_im_iota(c, HN_I64, 2, q, 0), hn_im_iota(c, HN_I64, 2, k, 1) };
    if (offset) p.query = hn_im_binary(c, HN_OP_add, p.query, offset);
    return p;
}

static hn_value *window_mask(hn_im_call *c, const positions *p, int64_t left, int64_t right)
{
    hn_value *seen = NULL;
    hn_value *ahead = hn_im_binary(c, HN_OP_sub, p->key, p->query); /* how far the key is ahead */
    if (left >= 0) seen = hn_im_binary(c, HN_OP_ge, ahead, hn_const_i(c->b, HN_I64, -left));
    if (right >= 0)
        seen = and_masks(c, seen, hn_im_binary(c, HN_OP_le, ahead, hn_const_i(c->b, HN_I64, right)));
    return seen;
}

/* A mask that is shorter than the keys hides the rest. */
static hn_value *lengthen(hn_im_call *c, hn_value *mask, hn_dim keys)
{
    hn_dim none[HN_MAX_RANK] = { 0 }, more[HN_MAX_RANK] = { 0 };
    hn_symtab *t = hn_im_syms(c);
    int64_t known;
    if (!mask || mask->type.rank < 1) return mask;
    const int last = mask->type.rank - 1;
    const hn_dim own = mask->type.dim[last], lack = hn_im_dsub(c, keys, own);
    if (own == 1 || (hn_dim_known(t, lack, &known) && known <= 0)) return mask;
    more[last] = hn_dim_select(t, hn_dim_eq(t, own, 1), 0, hn_dim_max(t, lack, 0)); /* 1 broadcasts */
    hn_value *fill =
        mask->type.dtype == HN_BOOL ? hn_im_const_bool(c, false) : hn_im_like_f(c, mask, -INFINITY);
    return hn_b2(c->b, HN_OP_pad, mask, fill,
                 HN_ATTRS_ARG(HN_A_DIMS("before", last + 1, none), HN_A_DIMS("after", last + 1, more)));
}

/* ---- attention ---- */

static hn_value *settled_mask(hn_builder *b, const hn_im_attend *a)
{
    if (!a->q || !a->k) return a->mask;
    return hn_settle_to(b, a->mask, 4, (hn_dim[]){ a->q->type.dim[0], a->q->type.dim[1], a->q->type.dim[2], a->k->type.dim[2] });
}

hn_value *hn_im_attend_op(hn_im_call *c, const hn_im_attend *a)
{
    hn_node *n = hn_build(
        c->b, HN_OP_attention, a->mask ? 4 : 3, (hn_value *[]){ a->q, a->k, a->v, settled_mask(c->b, a) },
        HN_ATTRS_ARG(HN_A_F("scale", a->scale), HN_A_I("causal", a->causal), HN_A_F("softcap", a->softcap)),
        1);
    return n ? n->out[0] : NULL;
}

hn_value *hn_im_attention_with(hn_im_call *c, hn_value *q, hn_value *k, hn_value *v, hn_value *mask,
                               double scale, int causal)
{
    const hn_im_attend a = { .q = q, .k = k, .v = v, .mask = mask, .scale = scale, .causal = causal };
    return hn_im_attend_op(c, &a);
}

/* Key heads repeated so that there is one for each query head. */
static hn_value *repeat_heads(hn_im_call *c, hn_value *x, hn_dim heads)
{
    if (!x || x->type.dim[1] == heads) return x;
    const hn_dim each = hn_im_ddiv(c, heads, x->type.dim[1]);
    hn_dim wide[5] = { x->type.dim[0], x->type.dim[1], each, x->type.dim[2], x->type.dim[3] };
    const hn_dim d[4] = { x->type.dim[0], heads, x->type.dim[2], x->type.dim[3] };
    return hn_reshape(c->b, hn_broadcast_to(c->b, hn_im_unsqueeze(c, x, 2), 5, wide), 4, d);
}

/* Softmax of scores [b,h,s,t]; a sink [h] is a key more, which takes its share and has no value. */
static hn_value *probabilities(hn_im_call *c, hn_value *scores, hn_value *sink)
{
    if (!scores || !sink) return hn_b1(c->b, HN_OP_softmax, scores, HN_ATTRS_ARG(HN_A_I("axis", 3)));
    hn_dim column[4];
    memcpy(column, scores->type.dim, sizeof column);
    column[3] = 1;
    hn_value *more = hn_cast(c->b, hn_reshape(c->b, sink, 4, (hn_dim[]){ 1, sink->type.dim[0], 1, 1 }), scores->type.dtype);
    hn_value *all = hn_im_concat(c, 3, 2, (hn_value *[]){ scores, hn_broadcast_to(c->b, more, 4, column) });
    return hn_slice(c->b, hn_b1(c->b, HN_OP_softmax, all, HN_ATTRS_ARG(HN_A_I("axis", 3))), 3, 0, scores->type.dim[3]);
}

hn_value *hn_im_attend_open(hn_im_call *c, const hn_im_attend *a, int want, hn_value **ret_scores)
{
    if (!a->q || !a->k || !a->v) return NULL;
    int64_t d;
    if (a->scale == 0 && !hn_dim_known(hn_im_syms(c), a->q->type.dim[3], &d)) {
        hn_im_refuse(c, "a head size known only while running is not supported");
        return NULL;
    }
    const double scale = a->scale != 0 ? a->scale : 1 / sqrt((double)d);
    hn_value *k = repeat_heads(c, a->k, a->q->type.dim[1]), *v = repeat_heads(c, a->v, a->q->type.dim[1]);
    hn_value *stage[4], *seen = NULL;
    stage[0] = hn_im_scale(c, hn_im_matmul(c, a->q, k, false, true), scale);
    stage[1] = stage[0];
    if (a->softcap != 0)
        stage[1] =
            hn_im_scale(c, hn_im_unary(c, HN_OP_tanh, hn_im_scale(c, stage[0], 1 / a->softcap)), a->softcap);
    hn_value *mask = a->mask;
    if (a->causal) {
        const hn_dim s = a->q->type.dim[2], t = a->k->type.dim[2];
        hn_value *offset = a->causal == 2 ? hn_const_dims(c->b, 1, (hn_dim[]){ hn_im_dsub(c, t, s) }) : NULL;
        const positions p = place(c, s, t, offset);
        mask = merge_masks(c, mask, window_mask(c, &p, -1, 0));
    }
    stage[2] = stage[1];
    hn_value *least = hn_im_like_f(c, stage[1], -INFINITY);
    if (mask && mask->type.dtype == HN_BOOL) {
        seen = mask;
        stage[2] = hn_im_select(c, mask, stage[1], least);
    } else if (mask) {
        seen = hn_im_binary(c, HN_OP_gt, mask, least);
        stage[2] = hn_im_binary(c, HN_OP_add, stage[1], mask);
    }
    stage[3] = probabilities(c, stage[2], a->sink);
    if (seen) { /* a query that sees no key yields zeros, not NaN */
        hn_value *one = hn_cast(c->b, seen, HN_I32);
        one = one ? hn_im_reduce(c, HN_OP_reduce_max, one, 1, (int64_t[]){ one->type.rank - 1 }, true) : NULL;
        hn_value *any = hn_im_binary(c, HN_OP_gt, one, hn_const_i(c->b, HN_I32, 0));
        stage[3] = hn_im_select(c, any, stage[3], hn_im_like_f(c, stage[3], 0));
    }
    if (ret_scores) *ret_scores = stage[want];
    return hn_im_matmul(c, stage[3], v, false, false);
}

/* Positions start after what the cache holds: a number for all, or nonpad - s for each batch. */
static hn_value *query_offset(hn_im_call *c, hn_value *past, hn_value *nonpad, hn_dim s)
{
    if (past) return hn_const_dims(c->b, 1, &past->type.dim[2]);
    if (!nonpad) return NULL;
    hn_value *len = hn_reshape(c->b, hn_im_i64(c, nonpad), 4, (hn_dim[]){ nonpad->type.dim[0], 1, 1, 1 });
    return hn_im_binary(c, HN_OP_sub, len, hn_const_dims(c->b, 1, &s));
}

static hone_status read_qkv(hn_im_call *c, hn_im_attend *a)
{
    const int64_t hq = hn_im_i(c, "q_num_heads", 0), hk = hn_im_i(c, "kv_num_heads", 0);
    a->q = c->in[0];
    a->k = c->in[1];
    a->v = c->in[2];
    if (!a->q || !a->k || !a->v) return HN_IM_RAISE(c, HONE_E_MODEL, "query, key or value is absent");
    if (a->q->type.rank == 3) {
        if (hq < 1 || hk < 1)
            return HN_IM_RAISE(c, HONE_E_MODEL, "inputs of rank 3 need q_num_heads and kv_num_heads");
        a->q = hn_im_split_heads(c, a->q, hq);
        a->k = hn_im_split_heads(c, a->k, hk);
        a->v = hn_im_split_heads(c, a->v, hk);
    } else if (a->q->type.rank != 4) {
        return HN_IM_RAISE(c, HONE_E_SHAPE, "the query has rank %d, not 3 or 4", a->q->type.rank);
    }
    HN_TRY(c->dg->code);
    return c->b->status;
}

/* Mask, causal rule, windows and padding; as much as possible as the op's own attributes. */
static void read_masks(hn_im_call *c, hn_im_attend *a, hn_value *past, hn_value *nonpad)
{
    const int64_t left = hn_im_i(c, "left_window_size", -1), right = hn_im_i(c, "right_window_size", -1);
    const bool causal = hn_im_i(c, "is_causal", 0) != 0;
    const hn_dim s = a->q->type.dim[2], t = a->k->type.dim[2];
    a->mask = lengthen(c, hn_im_in(c, 3), t);
    /* lower_right counts from the last key: the same as counting on from the cache when as many keys as
     * queries are new. */
    const bool even = !past || hn_im_dsub(c, t, past->type.dim[2]) == s;
    const bool by_mask = causal && (nonpad || !even);
    if (causal && !by_mask) a->causal = past ? 2 : 1;
    if (left >= 0 || right >= 0 || by_mask) {
        const positions p = place(c, s, t, query_offset(c, past, nonpad, s));
        a->mask = merge_masks(c, a->mask, window_mask(c, &p, left, by_mask ? 0 : right));
    }
    if (nonpad) {
        const positions p = place(c, s, t, NULL);
        hn_value *len = hn_reshape(c->b, hn_im_i64(c, nonpad), 4, (hn_dim[]){ nonpad->type.dim[0], 1, 1, 1 });
        a->mask = merge_masks(c, a->mask, hn_im_binary(c, HN_OP_lt, p.key, len));
    }
}

hone_status hn_im_on_attention(hn_im_call *c)
{
    hn_im_attend a = { 0 };
    hn_value *past_k = hn_im_in(c, 4), *past_v = hn_im_in(c, 5), *nonpad = hn_im_in(c, 6), *scores = NULL;
    const int64_t mode = hn_im_i(c, "qk_matmul_output_mode", 0);
    a.scale = hn_im_f(c, "scale", 0);
    a.softcap = hn_im_f(c, "softcap", 0);
    hn_im_ignore(c, "softmax_precision"); /* computed in f32 at least */
    HN_TRY(read_qkv(c, &a));
    if (!past_k != !past_v) return HN_IM_RAISE(c, HONE_E_MODEL, "past_key and past_value come together");
    if (past_k) {
        a.k = hn_im_concat(c, 2, 2, (hn_value *[]){ past_k, a.k });
        a.v = hn_im_concat(c, 2, 2, (hn_value *[]){ past_v, a.v });
        HN_TRY(c->b->status);
    }
    read_masks(c, &a, past_k, nonpad);
    HN_TRY(c->b->status);
    if (mode < 0 || mode > 3) return HN_IM_RAISE(c, HONE_E_MODEL, "qk_matmul_output_mode is %" PRId64, mode);
    hn_value *y = hn_im_wants(c, 3) ? hn_im_attend_open(c, &a, (int)mode, &scores) : hn_im_attend_op(c, &a);
    c->out[0] = c->in[0]->type.rank == 3 ? hn_im_merge_heads(c, y) : y;
    if (c->n_out > 1) c->out[1] = a.k;
    if (c->n_out > 2) c->out[2] = a.v;
    if (c->n_out > 3) c->out[3] = scores;
    HN_TRY(c->dg->code);
    return c->b->status;
}

/* ---- attention whose scores and probabilities the model changes by graphs of its own ---- */

/* The body's one output over x; NULL when it could not be built. */
static hn_value *modify(hn_im_call *c, const char *name, hn_value *x)
{
    const Onnx__GraphProto *p = hn_im_graph(c, name);
    hn_value *y = NULL;
    if (!p || !x) return x;
    return hn_im_inline(c, p, name, 1, &x, 1, &y) ? y : NULL;
}

hone_status hn_im_on_flex_attention(hn_im_call *c)
{
    hn_value *q = c->in[0], *k = c->in[1], *v = c->in[2];
    double scale = hn_im_f(c, "scale", 0);
    hn_im_ignore(c, "softmax_precision"); /* computed in f32 at least */
    if (!hn_im_has(c, "score_mod") && !hn_im_has(c, "prob_mod"))
        return hn_im_ret(c, hn_im_attention_with(c, q, k, v, NULL, scale, 0));
    int64_t d;
    if (q->type.rank != 4 || k->type.rank != 4 || v->type.rank != 4)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "query, key and value need rank 4");
    if (scale == 0) {
        if (!hn_dim_known(hn_im_syms(c), q->type.dim[3], &d))
            return hn_im_refuse(c, "a head size known only while running is not supported");
        scale = 1 / sqrt((double)d);
    }
    const hn_dtype t = hn_dtype_bits(q->type.dtype) < 32 ? HN_F32 : q->type.dtype;
    k = repeat_heads(c, k, q->type.dim[1]);
    v = repeat_heads(c, v, q->type.dim[1]);
    hn_value *scores = hn_im_matmul(c, hn_cast(c->b, q, t), hn_cast(c->b, k, t), false, true);
    scores = modify(c, "score_mod", hn_im_scale(c, scores, scale));
    if (!scores) return c->dg->code != HONE_OK ? c->dg->code : c->b->status ? c->b->status : HONE_E_MODEL;
    hn_value *probs = hn_b1(c->b, HN_OP_softmax, scores, HN_ATTRS_ARG(HN_A_I("axis", 3)));
    probs = modify(c, "prob_mod", probs);
    if (!probs) return c->dg->code != HONE_OK ? c->dg->code : c->b->status ? c->b->status : HONE_E_MODEL;
    hn_value *y = hn_im_matmul(c, probs, hn_cast(c->b, v, t), false, false);
    return hn_im_ret(c, hn_cast(c->b, y, c->in[2]->type.dtype));
}

/* ---- rotary embedding ---- */

hone_status hn_im_on_rotary(hn_im_call *c)
{
    hn_value *x = c->in[0], *cos = c->in[1], *sin = c->in[2], *at = hn_im_in(c, 3);
    const int64_t heads = hn_im_i(c, "num_heads", 0), dim = hn_im_i(c, "rotary_embedding_dim", 0);
    const int64_t interleaved = hn_im_i(c, "interleaved", 0);
    const bool flat = x->type.rank == 3;
    if (flat) x = hn_im_split_heads(c, x, heads);
    if (at) {
        cos = hn_im_gather(c, cos, at, 0);
        sin = hn_im_gather(c, sin, at, 0);
    }
    HN_TRY(c->dg->code);
    hn_value *y = hn_b3(c->b, HN_OP_rotary, x, cos, sin,
                        HN_ATTRS_ARG(HN_A_I("interleaved", interleaved != 0), HN_A_I("rotary_dim", dim)));
    return hn_im_ret(c, flat ? hn_im_merge_heads(c, y) : y);
}

/* ---- causal convolution over the state of the steps before ---- */

hone_status hn_im_on_causal_conv(hn_im_call *c)
{
    hn_value *x = c->in[0], *w = c->in[1], *bias = hn_im_in(c, 2), *past = hn_im_in(c, 3);
    const int act = hn_im_choice(c, "activation", "none|silu|swish", 0);
    int64_t channels;
    if (x->type.rank != 3 || w->type.rank != 3)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "input and weight need rank 3");
    if (!hn_dim_known(hn_im_syms(c), w->type.dim[0], &channels))
        return hn_im_refuse(c, "channels known only while running are not supported"); /* there are as many groups */
    const hn_dim kept = hn_im_dsub(c, w->type.dim[2], 1);
    const hn_dim state[3] = { x->type.dim[0], x->type.dim[1], kept };
    if (!past) past = hn_im_fill(c, hn_im_like_f(c, x, 0), 3, state);
    hn_value *padded = hn_im_concat(c, 2, 2, (hn_value *[]){ past, x });
    hn_node *n = hn_build(c->b, HN_OP_conv, bias ? 3 : 2, (hn_value *[]){ padded, w, bias },
                          HN_ATTRS_ARG(HN_A_I("group", channels)), 1);
    hn_value *y = n ? n->out[0] : NULL;
    if (act) y = hn_im_unary(c, HN_OP_silu, y);
    c->out[0] = y;
    if (padded && hn_im_wants(c, 1))
        c->out[1] = hn_slice(c->b, padded, 2, hn_im_dsub(c, padded->type.dim[2], kept), kept);
    return c->b->status;
}
