/* com.microsoft: what its builders of language models write beside attention - rotary embedding, embeddings. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>

/* ---- rotary embedding ---- */

hn_value *hn_im_rotary_rows(hn_im_call *c, hn_value *table, hn_value *at, hn_dim tokens)
{
    if (at->type.rank == 2) return hn_im_gather(c, table, at, 0);
    hn_value *i = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, tokens }, 1);
    return hn_im_gather(c, table, hn_im_binary(c, HN_OP_add, i, hn_im_i64(c, at)), 0);
}

hn_value *hn_im_rotate(hn_im_call *c, hn_value *x, hn_value *cos, hn_value *sin, int64_t interleaved)
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
    hn_value *cos = hn_im_rotary_rows(c, c->in[2], at, x->type.dim[2]);
    hn_value *sin = hn_im_rotary_rows(c, c->in[3], at, x->type.dim[2]);
    hn_value *y = hn_im_rotate(c, x, cos, sin, interleaved);
    return hn_im_done(c, flat ? hn_im_merge_heads(c, y) : y);
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
