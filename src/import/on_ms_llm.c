/* com.microsoft: what its builders of language models write - rotary embedding, grouped attention with a
 * cache. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>

/* ---- rotary embedding ---- */

/* Rows of a table [n,r] for positions: [1] is where the first token stands, [b,s] one each. */
static hn_value *rows_at(hn_im_call *c, hn_value *table, hn_value *at, hn_dim tokens)
{
    if (at->type.rank == 2) return hn_im_gather(c, table, at, 0);
    hn_value *i = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, tokens }, 1);
    return hn_im_gather(c, table, hn_im_binary(c, HN_OP_add, i, hn_im_i64(c, at)), 0);
}

static hn_value *rotate(hn_im_call *c, hn_value *x, hn_value *cos, hn_value *sin, int64_t interleaved)
{
    if (!x || !cos || !sin) return NULL;
    const hn_dim half = cos->type.dim[cos->type.rank - 1];
    const hn_dim dim = hn_im_dmul(c, half, 2) == x->type.dim[3] ? 0 : hn_im_dmul(c, half, 2);
    if (!hn_dim_is_const(dim)) {
        hn_im_refuse(c, "a rotary size known only while running is not supported");
        return NULL;
    }
    return hn_b3(c->b, HN_OP_rotary, x, cos, sin,
                 HN_ATTRS_ARG(HN_A_I("interleaved", interleaved != 0), HN_A_I("rotary_dim", dim)));
}

hone_status hn_im_on_ms_rotary(hn_im_call *c)
{
    hn_value *x = c->in[0], *at = c->in[1];
    int64_t heads = hn_im_i(c, "num_heads", 0);
    const int64_t interleaved = hn_im_i(c, "interleaved", 0), dim = hn_im_i(c, "rotary_embedding_dim", 0);
    hn_im_ignore(c, "is_packed_batching");
    if (hn_im_f(c, "scale", 1) != 1) return hn_im_refuse(c, "a scale is not supported");
    if (!hn_im_in(c, 2) || !hn_im_in(c, 3)) return HN_IM_RAISE(c, HONE_E_MODEL, "the tables are absent");
    const bool flat = x->type.rank == 3;
    if (flat && heads == 0) { /* the tables say how long a head is, when it turns as a whole */
        const hn_dim n = hn_im_ddiv(c, x->type.dim[2], hn_im_dmul(c, c->in[2]->type.dim[1], 2));
        if (dim != 0 || !hn_dim_is_const(n)) return HN_IM_RAISE(c, HONE_E_MODEL, "num_heads is missing");
        heads = n;
    }
    if (flat) x = hn_im_split_heads(c, x, heads);
    if (!x) return c->dg->code;
    hn_value *cos = rows_at(c, c->in[2], at, x->type.dim[2]), *sin = rows_at(c, c->in[3], at, x->type.dim[2]);
    hn_value *y = rotate(c, x, cos, sin, interleaved);
    return hn_im_done(c, flat ? hn_im_merge_heads(c, y) : y);
}

/* ---- grouped attention ---- */

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, BIAS };

/* query, key, value as [b,h,s,d], from three operands or one packed */
static hone_status read_heads(hn_im_call *c, int64_t hq, int64_t hk, hn_value *x[3])
{
    const int64_t heads[3] = { hq, hk, hk };
    for (int i = 0; i < 3; i++)
        x[i] = hn_im_in(c, i);
    if (!x[0] || x[0]->type.rank != 3) return HN_IM_RAISE(c, HONE_E_SHAPE, "the query is not of rank 3");
    if (!x[KEY]) {
        hn_value *all = x[0];
        const hn_dim d = hn_im_ddiv(c, all->type.dim[2], hq + 2 * hk);
        hn_dim at = 0;
        for (int i = 0; i < 3; i++) {
            x[i] = hn_slice(c->b, all, 2, at, hn_im_dmul(c, d, heads[i]));
            at = hn_im_dadd(c, at, hn_im_dmul(c, d, heads[i]));
        }
    }
    for (int i = 0; i < 3; i++) {
        x[i] = hn_im_split_heads(c, x[i], heads[i]);
        HN_TRY(c->dg->code);
    }
    return c->b->status;
}

/* New tokens stand behind the cache, unless positions are given. */
static hone_status turn(hn_im_call *c, hn_value *x[3], hn_dim past)
{
    const int64_t interleaved = hn_im_i(c, "rotary_interleaved", 0);
    hn_value *table[2] = { hn_im_in(c, COS), hn_im_in(c, SIN) }, *at = hn_im_in(c, POSITIONS);
    for (int i = 0; i < 2; i++) {
        if (!table[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "do_rotary without its tables");
        table[i] = at ? rows_at(c, table[i], at, x[0]->type.dim[2])
                      : hn_im_unsqueeze(c, hn_slice(c->b, table[i], 0, past, x[0]->type.dim[2]), 0);
    }
    for (int i = 0; i < 2; i++)
        x[i] = rotate(c, x[i], table[0], table[1], interleaved);
    HN_TRY(c->dg->code);
    return c->b->status;
}

/*
 * What is hidden beyond the causal rule: keys past each sequence's length, and those further back than a
 * local window. Batches whose caches are filled to different lengths are taken as padded on the right, which
 * is how prompts are.
 */
static hn_value *hidden(hn_im_call *c, hn_dim s, hn_dim t, hn_dim past, bool one)
{
    const int64_t window = hn_im_i(c, "local_window_size", -1);
    hn_value *lengths = hn_im_in(c, LENGTHS), *seen = NULL;
    hn_value *key = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, 1, t }, 3);
    if (lengths && !one) { /* they hold the index of the last key */
        hn_value *last = hn_reshape(c->b, hn_im_i64(c, lengths), 4,
                                    (hn_dim[]){ hn_tdesc_numel(hn_im_syms(c), &lengths->type), 1, 1, 1 });
        seen = hn_im_binary(c, HN_OP_le, key, last);
    }
    if (window < 0) return seen;
    hn_value *query = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, s, 1 }, 2);
    hn_value *back = hn_im_binary(c, HN_OP_sub, query, key); /* how far back, less the cache's length */
    hn_value *limit =
        hn_im_binary(c, HN_OP_sub, hn_const_i(c->b, HN_I64, window), hn_const_dims(c->b, 1, &past));
    hn_value *near = hn_im_binary(c, HN_OP_lt, back, limit);
    return seen ? hn_im_binary(c, HN_OP_and, seen, near) : near;
}

hone_status hn_im_on_ms_gqa(hn_im_call *c)
{
    const int64_t hq = hn_im_i(c, "num_heads", 0), hk = hn_im_i(c, "kv_num_heads", 0);
    hn_value *x[3], *past[2] = { hn_im_in(c, PAST_KEY), hn_im_in(c, PAST_VALUE) }, *bias = hn_im_in(c, BIAS);
    const double scale = hn_im_f(c, "scale", 0), softcap = hn_im_f(c, "softcap", 0);
    if (hq < 1 || hk < 1 || hq % hk)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%" PRId64 " query heads over %" PRId64 " key heads", hq, hk);
    if (hn_im_i(c, "smooth_softmax", 0) == 1 || c->n_in > BIAS + 1)
        return hn_im_refuse(c, "a smooth softmax is not supported");
    if (hn_im_i(c, "qk_output", 0) != 0) return hn_im_refuse(c, "the scores as an output are not supported");
    if (!past[0] != !past[1]) return HN_IM_RAISE(c, HONE_E_MODEL, "past_key and past_value come together");
    HN_TRY(read_heads(c, hq, hk, x));
    const hn_dim s = x[0]->type.dim[2], before = past[0] ? past[0]->type.dim[2] : 0;
    if (hn_im_i(c, "do_rotary", 0))
        HN_TRY(turn(c, x, before));
    else
        hn_im_ignore(c, "rotary_interleaved");
    for (int i = 0; i < 2; i++)
        if (past[i]) x[1 + i] = hn_im_concat(c, 2, 2, (hn_value *[]){ past[i], x[1 + i] });
    HN_TRY(c->b->status);
    hn_value *mask = hidden(c, s, x[1]->type.dim[2], before, x[0]->type.dim[0] == 1);
    if (mask && bias)
        mask =
            hn_im_binary(c, HN_OP_add, bias,
                         hn_im_select(c, mask, hn_im_like_f(c, bias, 0), hn_im_like_f(c, bias, -INFINITY)));
    if (!mask) mask = bias;
    hn_node *n =
        hn_build(c->b, HN_OP_attention, mask ? 4 : 3, (hn_value *[]){ x[0], x[1], x[2], mask },
                 HN_ATTRS_ARG(HN_A_F("scale", scale), HN_A_I("causal", 2), HN_A_F("softcap", softcap)), 1);
    if (c->n_out > 1) c->out[1] = x[1];
    if (c->n_out > 2) c->out[2] = x[2];
    return hn_im_done(c, n ? hn_im_merge_heads(c, n->out[0]) : NULL);
}

/* ---- embeddings ---- */

hn_value *hn_im_kept_tokens(hn_im_call *c, hn_value *mask, const hn_value *ids)
{
    hn_value *kept = mask ? hn_im_reduce(c, HN_OP_reduce_sum, mask, 1, (int64_t[]){ 1 }, false)
                          : hn_im_fill(c, hn_const_i(c->b, HN_I32, 0), 1, ids->type.dim);
    return kept ? hn_cast(c->b, kept, HN_I32) : NULL;
}

/* Lookups of words, positions and segments, summed and normalised; output 1 counts the tokens that the mask keeps. */
hone_status hn_im_on_ms_embed_norm(hn_im_call *c)
{
    enum { IDS, SEGMENT_IDS, WORDS, PLACES, SEGMENTS, GAMMA, BETA, MASK, PLACE_IDS };
    hn_value *ids = c->in[IDS], *mask = hn_im_in(c, MASK), *at = hn_im_in(c, PLACE_IDS), *segment = hn_im_in(c, SEGMENTS);
    const double eps = hn_im_f(c, "epsilon", (double)1e-12f);
    hn_im_ignore(c, "mask_index_type");
    for (int i = WORDS; i <= BETA; i++)
        if (i != SEGMENTS && !hn_im_in(c, i)) return HN_IM_RAISE(c, HONE_E_MODEL, "input %d is absent", i);
    if (ids->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the ids are no matrix");
    const hn_dim *d = ids->type.dim;
    if (!at) at = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, d[1] }, 1);
    hn_value *sum = hn_im_binary(c, HN_OP_add, hn_im_gather(c, c->in[WORDS], ids, 0), hn_im_gather(c, c->in[PLACES], at, 0));
    if (segment && hn_im_in(c, SEGMENT_IDS)) sum = hn_im_binary(c, HN_OP_add, sum, hn_im_gather(c, segment, c->in[SEGMENT_IDS], 0));
    hn_node *n = sum ? hn_build(c->b, HN_OP_layer_norm, 3, (hn_value *[]){ sum, c->in[GAMMA], c->in[BETA] },
                                HN_ATTRS_ARG(HN_A_I("axis", 2), HN_A_F("eps", eps)), 1) : NULL;
    c->out[0] = n ? n->out[0] : NULL;
    if (hn_im_wants(c, 1)) c->out[1] = hn_im_kept_tokens(c, mask, ids);
    if (hn_im_wants(c, 2)) c->out[2] = sum;
    return c->b->status;
}
