/*
 * com.microsoft: batches of texts without their padding, and the bias that gates positions.
 *
 *     x [b,s,...], b = 3, s = 4:  0 . . .   4 5 . .   8 9 10 11      packed: rows 0 4 5 8 9 10 11
 *     token_offset [b,s]: the rows that are kept, then the padding's
 */
#include "import/import_int.h"

/* The first n entries of token_offset. */
static hn_value *kept_rows(hn_im_call *c, hn_value *offset, hn_dim n)
{
    const hn_dim all = hn_tdesc_numel(hn_im_syms(c), &offset->type);
    return hn_slice(c->b, hn_im_i64(c, hn_reshape(c->b, offset, 1, &all)), 0, 0, n);
}

/* Rows [n,w] where they stood among b * s, zeros elsewhere: [b,s,w]. */
static hn_value *restored(hn_im_call *c, hn_value *x, hn_value *offset)
{
    if (!x || !offset) return NULL;
    const hn_dim *d = offset->type.dim, n = x->type.dim[0], w = x->type.dim[1], full[2] = { hn_im_dmul(c, d[0], d[1]), w };
    hn_value *at = hn_im_unsqueeze(c, kept_rows(c, offset, n), 1), *none = hn_im_fill(c, hn_im_like_f(c, x, 0), 2, full);
    return hn_reshape(c->b, hn_b3(c->b, HN_OP_scatter_nd, none, at, x, HN_NO_ATTRS), 3, (hn_dim[]){ d[0], d[1], w });
}

/* The other way: the n kept rows of [b,s,w]. */
static hn_value *packed(hn_im_call *c, hn_value *x, hn_value *offset, hn_dim n)
{
    if (!x || !offset) return NULL;
    const hn_dim *d = x->type.dim, flat[2] = { hn_im_dmul(c, d[0], d[1]), d[2] };
    return hn_im_gather(c, hn_reshape(c->b, x, 2, flat), kept_rows(c, offset, n), 0);
}

static hone_status want_rank(hn_im_call *c, int i, int rank)
{
    if (hn_im_in(c, i) && c->in[i]->type.rank != rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "input %d has rank %d, not %d", i, c->in[i]->type.rank, rank);
    return HONE_OK;
}

/* outputs: kept rows, token_offset, where each text begins [b+1], the longest [1] */
hone_status hn_im_on_ms_remove_padding(hn_im_call *c)
{
    HN_TRY(want_rank(c, 0, 3));
    HN_TRY(want_rank(c, 1, 1));
    const hn_dim *d = c->in[0]->type.dim, all = hn_im_dmul(c, d[0], d[1]);
    hn_value *count = hn_im_i64(c, c->in[1]), *place = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, d[1] }, 1);
    hn_value *own = hn_im_binary(c, HN_OP_lt, place, hn_reshape(c->b, count, 2, (hn_dim[]){ d[0], 1 }));
    hn_value *row = hn_im_iota(c, HN_I64, 1, &all, 0), *n_row = hn_const_dims(c->b, 1, &all);
    /* Padding sorts behind what is kept. */
    hn_value *key = hn_im_select(c, hn_reshape(c->b, own, 1, &all), row, hn_im_binary(c, HN_OP_add, row, n_row));
    hn_node *sorted = hn_build(c->b, HN_OP_topk, 1, &key, HN_ATTRS_ARG(HN_A_I("axis", 0), HN_A_I("largest", 0), HN_A_DIM("dim", all)), 2);
    if (!sorted) return c->b->status;
    hn_value *offset = hn_reshape(c->b, hn_im_binary(c, HN_OP_mod, sorted->out[0], n_row), 2, d);
    hn_value *total = hn_im_reduce(c, HN_OP_reduce_sum, count, 1, (int64_t[]){ 0 }, false);
    HN_TRY(c->b->status);
    const hn_dim n = hn_im_dim(c, total, 0);
    c->out[0] = packed(c, c->in[0], offset, n);
    if (c->n_out > 1) c->out[1] = hn_cast(c->b, offset, HN_I32);
    if (hn_im_wants(c, 2)) {
        hn_value *ends = hn_b1(c->b, HN_OP_cumsum, count, HN_ATTRS_ARG(HN_A_I("axis", 0)));
        hn_value *none = hn_im_fill(c, hn_const_i(c->b, HN_I64, 0), 1, (hn_dim[]){ 1 });
        c->out[2] = hn_cast(c->b, hn_im_concat(c, 0, 2, (hn_value *[]){ none, ends }), HN_I32);
    }
    if (c->n_out > 3) c->out[3] = hn_cast(c->b, hn_im_reduce(c, HN_OP_reduce_max, count, 1, (int64_t[]){ 0 }, true), HN_I32);
    HN_TRY(c->dg->code);
    return c->b->status;
}

hone_status hn_im_on_ms_restore_padding(hn_im_call *c)
{
    HN_TRY(want_rank(c, 0, 2));
    HN_TRY(want_rank(c, 1, 2));
    return hn_im_done(c, restored(c, c->in[0], c->in[1]));
}

/* Keys of each text, from where the texts begin among the packed rows [b+1]: [b,1,1,s]. */
static hn_value *own_keys(hn_im_call *c, hn_value *begin, hn_dim b, hn_dim s)
{
    hn_value *at = hn_im_i64(c, begin);
    hn_value *len = hn_im_binary(c, HN_OP_sub, hn_slice(c->b, at, 0, 1, b), hn_slice(c->b, at, 0, 0, b));
    hn_value *key = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, 1, s }, 3);
    return hn_im_binary(c, HN_OP_lt, key, hn_reshape(c->b, len, 4, (hn_dim[]){ b, 1, 1, 1 }));
}

/* part: packed query, key and value [n,w], attended as the batch that they were. */
static hone_status attend_packed(hn_im_call *c, hn_value *part[3], hn_value *offset, hn_value *begin, hn_value *bias)
{
    const int64_t heads = hn_im_i(c, "num_heads", 0);
    if (!part[0] || !part[1] || !part[2]) return c->dg->code ? c->dg->code : c->b->status;
    const hn_dim n = part[0]->type.dim[0], b = offset->type.dim[0], s = offset->type.dim[1];
    for (int i = 0; i < 3; i++)
        part[i] = hn_im_split_heads(c, restored(c, part[i], offset), heads);
    HN_TRY(c->dg->code);
    hn_value *mask = hn_im_mask_and_bias(c, own_keys(c, begin, b, s), bias);
    hn_value *y = hn_im_attention_with(c, part[0], part[1], part[2], mask, hn_im_f(c, "scale", 0), 0);
    return hn_im_done(c, packed(c, hn_im_merge_heads(c, y), offset, n));
}

hone_status hn_im_on_ms_packed_attention(hn_im_call *c)
{
    hn_dim len[3];
    HN_TRY(want_rank(c, 0, 2));
    HN_TRY(want_rank(c, 3, 2));
    hn_value *all = hn_im_binary(c, HN_OP_add, hn_im_matmul(c, c->in[0], c->in[1], false, false), c->in[2]), *part[3];
    if (!all) return c->dg->code ? c->dg->code : c->b->status;
    HN_TRY(hn_im_qkv_lengths(c, all->type.dim[1], len));
    hn_im_split3(c, all, 1, len, part);
    return attend_packed(c, part, c->in[3], c->in[4], hn_im_in(c, 5));
}

hone_status hn_im_on_ms_packed_mha(hn_im_call *c)
{
    hn_value *part[3] = { c->in[0], hn_im_in(c, 1), hn_im_in(c, 2) }, *bias = hn_im_in(c, 3);
    hn_im_ignore(c, "mask_filter_value");
    HN_TRY(want_rank(c, 4, 2));
    if (!hn_im_in(c, 4) || !hn_im_in(c, 5)) return HN_IM_RAISE(c, HONE_E_MODEL, "token_offset or cumulative_sequence_length is absent");
    if (!part[1] && part[0]->type.rank == 4) {
        const hn_dim *d = part[0]->type.dim, flat[2] = { d[0], hn_im_dmul(c, d[1], d[3]) };
        for (int i = 2; i >= 0; i--)
            part[i] = hn_reshape(c->b, hn_slice(c->b, c->in[0], 2, i, 1), 2, flat);
    }
    hn_dim at = 0;
    for (int i = 0; i < 3; i++) {
        if (!part[i] || part[i]->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "operand %d is absent or no matrix", i);
        const hn_dim w = part[i]->type.dim[1];
        if (bias) part[i] = hn_im_binary(c, HN_OP_add, part[i], hn_slice(c->b, bias, 0, at, w));
        at = hn_im_dadd(c, at, w);
    }
    return attend_packed(c, part, c->in[4], c->in[5], hn_im_in(c, 6));
}

/*
 * What is added to the scores of query i and key j: a bias for their distance, as much of it as the query asks for.
 *
 *     [u, r] = sigmoid of the two halves' sums of (query + query_bias) weight + bias, a head each
 *     y = (u (r eco - 1) + 2) rel_pos
 */
hone_status hn_im_on_ms_gated_bias(hn_im_call *c)
{
    const int64_t heads = hn_im_i(c, "num_heads", 0);
    hn_value *q = hn_im_binary(c, HN_OP_add, c->in[0], c->in[1]), *one = hn_im_like_f(c, c->in[0], 1);
    if (q && hn_im_in(c, 6)) q = restored(c, q, c->in[6]);
    q = hn_im_split_heads(c, q, heads);
    hn_value *g = q ? hn_im_binary(c, HN_OP_add, hn_im_matmul_numpy(c, q, c->in[3]), c->in[4]) : NULL;
    if (!g) return c->dg->code ? c->dg->code : c->b->status;
    const hn_dim *d = g->type.dim, halves[5] = { d[0], d[1], d[2], 2, hn_im_ddiv(c, d[3], 2) };
    g = hn_im_unary(c, HN_OP_sigmoid, hn_im_reduce(c, HN_OP_reduce_sum, hn_reshape(c->b, g, 5, halves), 1, (int64_t[]){ 4 }, false));
    hn_value *u = hn_slice(c->b, g, 3, 0, 1), *r = hn_slice(c->b, g, 3, 1, 1);
    hn_value *gate = hn_im_binary(c, HN_OP_mul, u, hn_im_binary(c, HN_OP_sub, hn_im_binary(c, HN_OP_mul, r, c->in[5]), one));
    return hn_im_done(c, hn_im_binary(c, HN_OP_mul, hn_im_binary(c, HN_OP_add, gate, hn_im_like_f(c, c->in[0], 2)), c->in[2]));
}
