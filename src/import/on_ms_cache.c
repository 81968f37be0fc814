/*
 * com.microsoft: attention with a cache of keys and values, as builders of language models write it.
 *
 * The cache given is `room` long. It holds what the steps before left in front; the new tokens go behind that, and what comes out
 * is as long as the cache or as the longest sequence, whichever is more:
 *
 *     room 6, shared by past and present   k k k . . .   ->   k k k n . .      attended: k k k n
 *     room 3, growing                      k k k         ->   k k k n
 */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- the cache ---- */

/* What a step of decoding adds to a cache of keys or values [b,h,room,d], and where. */
typedef struct step_spec {
    hn_dim room, total; /* extent of the cache given; tokens that the longest sequence has after the step */
    hn_dim before;      /* where all sequences' new tokens go, where first is NULL */
    hn_value *first;    /* i64 [b,1]: where each sequence's go */
} step_spec;

/* One place for all sequences: what was in front, the new tokens, what the cache has behind them. */
static hn_value *put_at_once(hn_im_call *c, const step_spec *step, hn_value *past, hn_value *x, hn_dim present)
{
    hn_symtab *t = hn_im_syms(c);
    const hn_dim behind = hn_im_dsub(c, present, step->total);
    hn_value *part[3] = { hn_slice(c->b, past, 2, 0, step->before), x };
    if (behind == 0) return hn_im_concat(c, 2, 2, part);
    part[2] = hn_slice(c->b, past, 2, hn_dim_min(t, step->total, step->room), behind);
    return hn_im_concat(c, 2, 3, part);
}

/* A place for each sequence: index tuples (sequence, head, place) [b,h,s,3]. */
static hn_value *put_apart(hn_im_call *c, const step_spec *step, hn_value *past, hn_value *x, hn_dim present)
{
    const hn_dim *d = x->type.dim, more = hn_im_dsub(c, present, step->room), each[4] = { d[0], d[1], d[2], 1 };
    hn_value *at = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, d[2], 1 }, 2);
    hn_value *part[3] = { hn_im_iota(c, HN_I64, 4, each, 0), hn_im_iota(c, HN_I64, 4, each, 1) };
    at = hn_im_binary(c, HN_OP_add, at, hn_reshape(c->b, step->first, 4, (hn_dim[]){ d[0], 1, 1, 1 }));
    part[2] = at ? hn_broadcast_to(c->b, at, 4, each) : NULL;
    if (more != 0) {
        const hn_dim none[4] = { 0 }, after[4] = { 0, 0, more, 0 };
        past = hn_b1(c->b, HN_OP_pad, past, HN_ATTRS_ARG(HN_A_DIMS("before", 4, none), HN_A_DIMS("after", 4, after)));
    }
    return hn_b3(c->b, HN_OP_scatter_nd, past, hn_im_concat(c, 3, 3, part), x, HN_NO_ATTRS);
}

static hn_dim longer(hn_im_call *c, hn_dim a, hn_dim b)
{
    if (hn_im_dim_nonneg(c, hn_im_dsub(c, a, b))) return a;
    return hn_im_dim_nonneg(c, hn_im_dsub(c, b, a)) ? b : hn_dim_max(hn_im_syms(c), a, b);
}

/* The cache after the step; without one, x itself. */
static hn_value *cache_put(hn_im_call *c, const step_spec *step, hn_value *past, hn_value *x)
{
    if (!past || !x) return x;
    const hn_dim present = longer(c, step->room, step->total);
    return step->first ? put_apart(c, step, past, x, present) : put_at_once(c, step, past, x, present);
}

/* What of it is filled for some sequence. */
static hn_value *cache_filled(hn_im_call *c, const step_spec *step, hn_value *present)
{
    return present ? hn_slice(c->b, present, 2, 0, step->total) : NULL;
}

/* ---- grouped attention ---- */

enum { QUERY, KEY, VALUE, PAST_KEY, PAST_VALUE, LENGTHS, TOTAL, COS, SIN, POSITIONS, BIAS, SINK, K_SCALE, V_SCALE, Q_NORM, K_NORM, NEW };

/* query, key, value as [b,h,s,d], from three operands or one packed */
static hone_status read_heads(hn_im_call *c, int64_t hq, int64_t hk, hn_value *x[3])
{
    const int64_t heads[3] = { hq, hk, hk };
    for (int i = 0; i < 3; i++)
        x[i] = hn_im_in(c, i);
    if (!x[0] || x[0]->type.rank != 3) return HN_IM_RAISE(c, HONE_E_SHAPE, "the query is not of rank 3");
    if (!x[KEY]) {
        const hn_dim d = hn_im_ddiv(c, x[0]->type.dim[2], hq + 2 * hk);
        hn_im_split3(c, x[0], 2, (hn_dim[]){ hn_im_dmul(c, d, hq), hn_im_dmul(c, d, hk), hn_im_dmul(c, d, hk) }, x);
    }
    for (int i = 0; i < 3; i++) {
        x[i] = hn_im_split_heads(c, x[i], heads[i]);
        HN_TRY(c->dg->code);
    }
    return c->b->status;
}

/* Heads of query and key normalised, each by its own mean square. */
static hone_status normalise(hn_im_call *c, hn_value *x[3])
{
    const double both = hn_im_f(c, "qk_norm_epsilon", (double)1e-6f);
    const double eps[2] = { hn_im_f(c, "q_norm_epsilon", both), hn_im_f(c, "k_norm_epsilon", both) };
    for (int i = 0; i < 2; i++) {
        hn_value *scale = hn_im_in(c, Q_NORM + i);
        if (scale) x[i] = hn_b2(c->b, HN_OP_rms_norm, x[i], scale, HN_ATTRS_ARG(HN_A_I("axis", 3), HN_A_F("eps", eps[i])));
    }
    return c->b->status;
}

/* What each sequence has before the step, [b,1]; NULL where `before` says it for all. */
static hone_status read_step(hn_im_call *c, hn_dim s, bool one, step_spec *ret)
{
    hn_value *lengths = hn_im_in(c, LENGTHS), *added = hn_im_in(c, NEW), *past = hn_im_in(c, PAST_KEY);
    *ret = (step_spec){ .room = past ? past->type.dim[2] : 0, .total = s };
    if (!past) return HONE_OK;
    if (!hn_im_known_dim(c, c->in[TOTAL], 0, &ret->total)) ret->total = hn_im_dim(c, c->in[TOTAL], 0);
    HN_TRY(c->dg->code);
    ret->before = hn_im_dsub(c, ret->total, s);
    if ((one && !added) || !lengths) return HONE_OK;
    const hn_dim column[2] = { lengths->type.rank ? lengths->type.dim[0] : 1, 1 }; /* the index of the last key */
    hn_value *last = hn_reshape(c->b, hn_im_i64(c, lengths), 2, column);
    hn_value *now = added ? hn_reshape(c->b, hn_im_i64(c, added), 2, column) : hn_const_dims(c->b, 1, &s);
    hn_value *first = hn_im_binary(c, HN_OP_sub, hn_im_binary(c, HN_OP_add, last, hn_const_i(c->b, HN_I64, 1)), now);
    ret->first = hn_im_binary(c, HN_OP_max, first, hn_const_i(c->b, HN_I64, 0)); /* prompts shorter than the longest */
    return c->b->status;
}

/* Query and key turned by their places: positions given, or behind the cache. */
static hone_status turn(hn_im_call *c, hn_value *x[3], const step_spec *step)
{
    const int64_t interleaved = hn_im_i(c, "rotary_interleaved", 0);
    const hn_dim s = x[0]->type.dim[2];
    hn_value *table[2] = { hn_im_in(c, COS), hn_im_in(c, SIN) }, *at = hn_im_in(c, POSITIONS);
    if (!at && step->first) at = hn_im_binary(c, HN_OP_add, step->first, hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, s }, 1));
    for (int i = 0; i < 2; i++) {
        if (!table[i]) return HN_IM_RAISE(c, HONE_E_MODEL, "do_rotary without its tables");
        table[i] = at ? hn_im_rotary_rows(c, table[i], at, s) : hn_im_unsqueeze(c, hn_slice(c->b, table[i], 0, step->before, s), 0);
    }
    for (int i = 0; i < 2; i++)
        x[i] = hn_im_rotate(c, x[i], table[0], table[1], interleaved);
    HN_TRY(c->dg->code);
    return c->b->status;
}

/* Which keys [t] each query sees, as far as the op's own causal rule does not say it: [b,1,s,t]. */
static hn_value *seen_by(hn_im_call *c, const step_spec *step, hn_dim s, bool causal, bool one)
{
    const int64_t window = hn_im_i(c, "local_window_size", -1);
    hn_value *lengths = one ? NULL : hn_im_in(c, LENGTHS);
    if (window < 0 && !step->first && (causal || !lengths)) return NULL;
    hn_value *key = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, 1, step->total }, 3);
    hn_value *query = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, s, 1 }, 2), *seen = NULL;
    hn_value *first = step->first ? hn_reshape(c->b, step->first, 4, (hn_dim[]){ step->first->type.dim[0], 1, 1, 1 })
                                  : hn_const_dims(c->b, 1, &step->before);
    hn_value *place = hn_im_binary(c, HN_OP_add, query, first);
    if (step->first && causal) seen = hn_im_binary(c, HN_OP_le, key, place);
    if (!causal && lengths) {
        const hn_dim n = lengths->type.rank ? lengths->type.dim[0] : 1;
        seen = hn_im_binary(c, HN_OP_le, key, hn_reshape(c->b, hn_im_i64(c, lengths), 4, (hn_dim[]){ n, 1, 1, 1 }));
    }
    if (window < 0) return seen;
    hn_value *near = hn_im_binary(c, HN_OP_lt, hn_im_binary(c, HN_OP_sub, place, key), hn_const_i(c->b, HN_I64, window));
    return seen ? hn_im_binary(c, HN_OP_and, seen, near) : near;
}

hn_value *hn_im_mask_and_bias(hn_im_call *c, hn_value *seen, hn_value *bias)
{
    if (!seen || !bias) return seen ? seen : bias;
    hn_value *hidden = hn_im_select(c, seen, hn_im_like_f(c, bias, 0), hn_im_like_f(c, bias, -INFINITY));
    return hn_im_binary(c, HN_OP_add, bias, hidden);
}

/* With a sink: spelled out, in f32 at least. */
static hn_value *attend_with_sink(hn_im_call *c, hn_im_attend a)
{
    const hn_dtype t = a.q ? a.q->type.dtype : HN_F32;
    a.q = hn_im_wide(c, a.q);
    a.k = hn_im_wide(c, a.k);
    a.v = hn_im_wide(c, a.v);
    if (a.mask && a.mask->type.dtype != HN_BOOL) a.mask = hn_im_wide(c, a.mask);
    if (!a.sink && a.q) a.sink = hn_im_fill(c, hn_const_f(c->b, a.q->type.dtype, 0), 1, &a.q->type.dim[1]);
    hn_value *y = a.sink ? hn_im_attend_open(c, &a, 0, NULL) : NULL;
    return y ? hn_cast(c->b, y, t) : NULL;
}

static hone_status refuse_forms(hn_im_call *c)
{
    static const char *const quant[] = { "k_quant_type", "v_quant_type" };
    if (hn_im_i(c, "qk_output", 0) != 0) return hn_im_refuse(c, "the scores as an output are not supported");
    if (hn_im_i(c, "sliding_window_cache", 0)) return hn_im_refuse(c, "a cache that holds a window alone is not supported");
    hn_im_ignore(c, "kv_cache_bit_width");
    for (int i = 0; i < 2; i++)
        if (strcmp(hn_im_s(c, quant[i], "NONE"), "NONE") != 0) return hn_im_refuse(c, "a quantised cache is not supported");
    return HONE_OK;
}

hone_status hn_im_on_ms_gqa(hn_im_call *c)
{
    const int64_t hq = hn_im_i(c, "num_heads", 0), hk = hn_im_i(c, "kv_num_heads", 0);
    const bool causal = hn_im_i(c, "causal", 1) != 0, smooth = hn_im_i(c, "smooth_softmax", 0) == 1;
    hn_value *x[3], *past[2] = { hn_im_in(c, PAST_KEY), hn_im_in(c, PAST_VALUE) };
    hn_im_attend a = { .scale = hn_im_f(c, "scale", 0), .softcap = hn_im_f(c, "softcap", 0), .sink = hn_im_in(c, SINK) };
    step_spec step;
    if (hq < 1 || hk < 1 || hq % hk)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%" PRId64 " query heads over %" PRId64 " key heads", hq, hk);
    HN_TRY(refuse_forms(c));
    if (!past[0] != !past[1]) return HN_IM_RAISE(c, HONE_E_MODEL, "past_key and past_value come together");
    HN_TRY(read_heads(c, hq, hk, x));
    HN_TRY(normalise(c, x));
    const hn_dim s = x[0]->type.dim[2];
    const bool one = x[0]->type.dim[0] == 1;
    HN_TRY(read_step(c, s, one, &step));
    if (hn_im_i(c, "do_rotary", 0)) HN_TRY(turn(c, x, &step));
    else hn_im_ignore(c, "rotary_interleaved");
    for (int i = 0; i < 2; i++) {
        x[1 + i] = cache_put(c, &step, past[i], x[1 + i]);
        if (c->n_out > 1 + i) c->out[1 + i] = x[1 + i];
    }
    a.q = x[0];
    a.k = cache_filled(c, &step, x[1]);
    a.v = cache_filled(c, &step, x[2]);
    a.causal = causal && !step.first ? 2 : 0;
    a.mask = hn_im_mask_and_bias(c, seen_by(c, &step, s, causal, one), hn_im_in(c, BIAS));
    HN_TRY(c->b->status);
    return hn_im_done(c, hn_im_merge_heads(c, a.sink || smooth ? attend_with_sink(c, a) : hn_im_attend_op(c, &a)));
}

/* ---- one token a step, beams ---- */

/*
 * Keys or values of the beam that each token came from. indirection [batch,beams,room]: element (b, i, j) is the beam, among those of
 * b, whose token j beam i continues; the newest token is its own.
 */
static hn_value *follow_beams(hn_im_call *c, const step_spec *step, hn_value *x, hn_value *indirection)
{
    static const int64_t turned[] = { 0, 2, 1, 3 };
    if (!x || !indirection) return x;
    if (indirection->type.rank != 3) {
        HN_IM_RAISE(c, HONE_E_SHAPE, "the cache indirection has rank %d, not 3", indirection->type.rank);
        return NULL;
    }
    const hn_dim *d = x->type.dim, flat[2] = { d[0], indirection->type.dim[2] }, each[3] = { d[0], step->total, 1 };
    hn_value *beams = hn_const_dims(c->b, 1, &indirection->type.dim[1]);
    hn_value *row = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ d[0], 1 }, 0), *at = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, step->total }, 1);
    hn_value *base = hn_im_binary(c, HN_OP_mul, hn_im_binary(c, HN_OP_div, row, beams), beams);
    hn_value *from = hn_slice(c->b, hn_reshape(c->b, hn_im_i64(c, indirection), 2, flat), 1, 0, step->total);
    hn_value *old = hn_im_binary(c, HN_OP_lt, at, hn_const_dims(c->b, 1, &step->before));
    from = hn_im_select(c, old, hn_im_binary(c, HN_OP_add, from, base), row);
    if (!from || !at) return NULL;
    hn_value *place[2] = { hn_reshape(c->b, from, 3, each), hn_reshape(c->b, hn_broadcast_to(c->b, at, 2, each), 3, each) };
    hn_value *y = hn_b2(c->b, HN_OP_gather_nd, hn_transpose(c->b, x, turned), hn_im_concat(c, 2, 2, place), HN_NO_ATTRS);
    return y ? hn_transpose(c->b, y, turned) : NULL;
}

/* The new token or tokens behind what the cache holds: `length` of it, or all. */
static hone_status place_behind(hn_im_call *c, hn_value *past, hn_value *length, hn_dim s, step_spec *ret)
{
    *ret = (step_spec){ .room = past ? past->type.dim[2] : 0, .total = s };
    if (!past) return HONE_OK;
    ret->before = ret->room;
    if (length && !hn_im_known_dim(c, length, 0, &ret->before)) ret->before = hn_im_dim(c, length, 0);
    ret->total = hn_im_dadd(c, ret->before, s);
    return c->dg->code;
}

hone_status hn_im_extend_cache(hn_im_call *c, const hn_im_past *past, hn_value *x[3], hn_value *ret_present[2])
{
    step_spec step;
    if (past->of[0] && past->of[0]->type.rank != 4)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "the cache has rank %d, not 4", past->of[0]->type.rank);
    HN_TRY(place_behind(c, past->of[0], past->length, x[1]->type.dim[2], &step));
    for (int i = 0; i < 2; i++) {
        ret_present[i] = cache_put(c, &step, past->of[i], x[1 + i]);
        if (past->of[i]) x[1 + i] = follow_beams(c, &step, cache_filled(c, &step, ret_present[i]), past->indirection);
    }
    HN_TRY(c->dg->code);
    return c->b->status;
}
