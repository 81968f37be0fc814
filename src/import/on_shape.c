/* Shapes and views: reshape and its relatives, slice, pad, split, tile, constants by shape. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- constants ---- */

static hone_status const_tensor(hn_im_call *c, const Onnx__TensorProto *t, const Onnx__SparseTensorProto *sp)
{
    hn_tdesc type;
    const void *at;
    size_t bytes;
    if (sp)
        HN_TRY(hn_im_sparse(c->m, sp, &type, &at, &bytes, c->dg));
    else
        HN_TRY(hn_im_tensor(c->m, t, &type, &at, &bytes, c->dg));
    c->out[0] = hn_graph_const(c->b->g, NULL, &type, at, bytes);
    return c->out[0] ? HONE_OK : HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
}

hone_status hn_im_on_constant(hn_im_call *c)
{
    const Onnx__AttributeProto *a;
    int n;
    if ((a = hn_im_attr(c, "value")) && a->t) return const_tensor(c, a->t, NULL);
    if ((a = hn_im_attr(c, "sparse_value")) && a->sparse_tensor)
        return const_tensor(c, NULL, a->sparse_tensor);
    if (hn_im_has(c, "value_float"))
        return hn_im_ret(c, hn_const_f(c->b, HN_F32, hn_im_f(c, "value_float", 0)));
    if (hn_im_has(c, "value_int")) return hn_im_ret(c, hn_const_i(c->b, HN_I64, hn_im_i(c, "value_int", 0)));
    if (hn_im_has(c, "value_ints")) {
        const int64_t *v = hn_im_is(c, "value_ints", &n);
        return hn_im_ret(c, hn_const_is(c->b, n, v));
    }
    if (hn_im_has(c, "value_floats")) {
        const double *v = hn_im_fs(c, "value_floats", &n);
        return hn_im_ret(c, hn_const_fs(c->b, HN_F32, 1, (int64_t[]){ n }, v));
    }
    if (hn_im_has(c, "value_string") || hn_im_has(c, "value_strings"))
        return hn_im_refuse(c, "string constants are not supported");
    return HN_IM_RAISE(c, HONE_E_MODEL, "the constant has no value");
}

hone_status hn_im_on_constant_of_shape(hn_im_call *c)
{
    const Onnx__AttributeProto *a = hn_im_attr(c, "value");
    hn_dim dim[HN_MAX_RANK];
    int n;
    hn_value *v = NULL;
    if (a && a->t) {
        HN_TRY(const_tensor(c, a->t, NULL));
        v = c->out[0];
        if (hn_tdesc_numel_static(&v->type) != 1)
            return HN_IM_RAISE(c, HONE_E_MODEL, "the value has more than one element");
    } else {
        v = hn_const_f(c->b, HN_F32, 0);
    }
    HN_TRY(hn_im_dims(c, c->in[0], dim, HN_MAX_RANK, &n));
    return hn_im_ret(c, hn_im_fill(c, v, n, dim));
}

hone_status hn_im_on_eye_like(hn_im_call *c)
{
    const hn_value *x = c->in[0];
    const hn_dtype t = hn_im_dtype(c, "dtype", x->type.dtype);
    if (x->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d, not 2", x->type.rank);
    hn_value *row = hn_im_iota(c, HN_I64, 2, x->type.dim, 0), *col = hn_im_iota(c, HN_I64, 2, x->type.dim, 1);
    hn_value *diag = hn_im_binary(c, HN_OP_add, row, hn_const_i(c->b, HN_I64, hn_im_i(c, "k", 0)));
    return hn_im_ret(c, hn_cast(c->b, hn_im_binary(c, HN_OP_eq, diag, col), t));
}

/* ---- extents as values ---- */

hone_status hn_im_on_shape(hn_im_call *c)
{
    const hn_value *x = c->in[0];
    const int64_t rank = x->type.rank;
    int64_t from = hn_im_i(c, "start", 0), to = hn_im_i(c, "end", rank);
    if (x->kind != HN_TENSOR) return hn_im_refuse(c, "the shape of a sequence is not defined");
    from = from < 0 ? HN_MAX(from + rank, 0) : HN_MIN(from, rank);
    to = to < 0 ? HN_MAX(to + rank, 0) : HN_MIN(to, rank);
    return hn_im_ret(c, hn_const_dims(c->b, (int)HN_MAX(to - from, 0), x->type.dim + from));
}

hone_status hn_im_on_size(hn_im_call *c)
{
    const hn_dim n = hn_tdesc_numel(hn_im_syms(c), &c->in[0]->type);
    return hn_im_ret(c, hn_reshape(c->b, hn_const_dims(c->b, 1, &n), 0, NULL));
}

/* ---- reshape ---- */

hone_status hn_im_on_reshape(hn_im_call *c)
{
    const bool allow_zero = hn_im_i(c, "allowzero", 0) != 0;
    if (!c->in[1]) return HN_IM_RAISE(c, HONE_E_MODEL, "the shape is absent");
    return hn_im_ret(c, hn_im_reshape_onnx(c, c->in[0], c->in[1], allow_zero));
}

hone_status hn_im_on_reshape_attr(hn_im_call *c)
{
    int n;
    hn_im_ignore(c, "consumed_inputs");
    const int64_t *shape = hn_im_is(c, "shape", &n);
    if (!shape) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"shape\" is missing");
    return hn_im_ret(c, hn_im_reshape_onnx(c, c->in[0], hn_const_is(c->b, n, shape), false));
}

static hn_dim product(hn_im_call *c, const hn_dim *d, int from, int to)
{
    hn_dim p = 1;
    for (int i = from; i < to; i++)
        p = hn_im_dmul(c, p, d[i]);
    return p;
}

hone_status hn_im_on_flatten(hn_im_call *c)
{
    hn_value *x = c->in[0];
    const int rank = x->type.rank;
    int64_t axis = hn_im_i(c, "axis", 1);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "axis %" PRId64 " is out of range for rank %d", axis, rank);
    const hn_dim d[2] = { product(c, x->type.dim, 0, (int)axis), product(c, x->type.dim, (int)axis, rank) };
    return hn_im_ret(c, hn_reshape(c->b, x, 2, d));
}

hone_status hn_im_on_squeeze(hn_im_call *c)
{
    hn_value *x = c->in[0];
    int64_t axes[HN_MAX_RANK];
    hn_dim d[HN_MAX_RANK];
    bool drop[HN_MAX_RANK] = { false }, given;
    int n, rank = 0;
    HN_TRY(hn_im_axes(c, c->entry->since < 13 ? "axes" : NULL, c->entry->since < 13 ? -1 : 1, x->type.rank,
                      true, axes, &n, &given));
    for (int i = 0; i < n; i++)
        drop[axes[i]] = true;
    for (int i = 0; i < x->type.rank; i++) {
        const hn_dim e = x->type.dim[i];
        if (given && drop[i] && hn_dim_is_const(e) && e != 1)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "axis %d has extent %" PRId64 " and cannot be squeezed", i,
                               e);
        if (!given && !hn_dim_is_const(e)) {
            hn_hint(c->dg, "name the axes to squeeze, or fix the input's extents");
            return hn_im_refuse(c, "whether axis %d has extent 1 is known only while running", i);
        }
        if (given ? !drop[i] : e != 1) d[rank++] = e;
    }
    return hn_im_ret(c, hn_reshape(c->b, x, rank, d));
}

hone_status hn_im_on_unsqueeze(hn_im_call *c)
{
    hn_value *x = c->in[0];
    const int64_t *raw = NULL;
    int64_t axes[HN_MAX_RANK];
    hn_dim d[HN_MAX_RANK];
    bool is_new[HN_MAX_RANK] = { false }, given;
    int n = 0, k = 0;
    const bool by_attr = c->entry->since < 13;
    /* The axes count in the result, whose rank is their number more. */
    if (by_attr)
        raw = hn_im_is(c, "axes", &n);
    else if (c->in[1] && !hn_im_ints(c, c->in[1], &raw, &n))
        return hn_im_refuse(c, "the axes are known only while running");
    if (!raw) return HN_IM_RAISE(c, HONE_E_MODEL, "the axes are absent");
    const int rank = x->type.rank + n;
    if (rank > HN_MAX_RANK) return hn_im_refuse(c, "rank %d is above the limit of %d", rank, HN_MAX_RANK);
    HN_TRY(hn_im_axes(c, by_attr ? "axes" : NULL, by_attr ? -1 : 1, rank, true, axes, &n, &given));
    for (int i = 0; i < n; i++)
        is_new[axes[i]] = true;
    for (int i = 0; i < rank; i++)
        d[i] = is_new[i] ? 1 : x->type.dim[k++];
    return hn_im_ret(c, hn_reshape(c->b, x, rank, d));
}

hone_status hn_im_on_transpose(hn_im_call *c)
{
    hn_value *x = c->in[0];
    int64_t perm[HN_MAX_RANK];
    bool seen[HN_MAX_RANK] = { false };
    int n;
    const int64_t *p = hn_im_is(c, "perm", &n);
    if (p && n != x->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "perm has %d entries for rank %d", n, x->type.rank);
    for (int i = 0; i < x->type.rank; i++) {
        perm[i] = p ? p[i] : x->type.rank - 1 - i;
        if (perm[i] < 0 || perm[i] >= x->type.rank || seen[perm[i]])
            return HN_IM_RAISE(c, HONE_E_SHAPE, "perm is not a permutation of %d axes", x->type.rank);
        seen[perm[i]] = true;
    }
    return hn_im_ret(c, hn_transpose(c->b, x, perm));
}

/* ---- broadcast ---- */

hone_status hn_im_on_expand(hn_im_call *c)
{
    hn_value *x = c->in[0];
    hn_tdesc to = { .dtype = x->type.dtype }, d;
    HN_TRY(hn_im_dims(c, c->in[1], to.dim, HN_MAX_RANK, &to.rank));
    HN_TRY(hn_broadcast_dims(hn_im_syms(c), &x->type, &to, &d, c->dg));
    return hn_im_ret(c, hn_broadcast_to(c->b, x, d.rank, d.dim));
}

/* Each repeated axis a becomes (times, a): broadcast over the new axis, then merge. */
static hn_value *tile(hn_im_call *c, hn_value *x, const hn_dim *times)
{
    for (int i = 0; x && i < x->type.rank; i++) {
        hn_dim d[HN_MAX_RANK + 1], merged[HN_MAX_RANK];
        if (times[i] == 1) continue;
        const int rank = x->type.rank;
        memcpy(merged, x->type.dim, sizeof merged);
        merged[i] = hn_im_dmul(c, times[i], x->type.dim[i]);
        if (x->type.dim[i] == 1) {
            x = hn_broadcast_to(c->b, x, rank, merged);
            continue;
        }
        if (rank == HN_MAX_RANK) {
            hn_im_refuse(c, "a tile of rank %d is above the limit", rank);
            return NULL;
        }
        x = hn_im_unsqueeze(c, x, i);
        if (!x) return NULL;
        memcpy(d, x->type.dim, (size_t)(rank + 1) * sizeof *d);
        d[i] = times[i];
        x = hn_reshape(c->b, hn_broadcast_to(c->b, x, rank + 1, d), rank, merged);
    }
    return x;
}

hone_status hn_im_on_tile(hn_im_call *c)
{
    hn_dim times[HN_MAX_RANK];
    int n;
    HN_TRY(hn_im_dims(c, c->in[1], times, HN_MAX_RANK, &n));
    if (n != c->in[0]->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "%d repeats are given for rank %d", n, c->in[0]->type.rank);
    return hn_im_ret(c, tile(c, c->in[0], times));
}

hone_status hn_im_on_tile1(hn_im_call *c)
{
    hn_dim times[HN_MAX_RANK];
    const double *tiles, *at;
    int n, n_at, axis;
    if (!hn_im_floats(c, c->in[1], &tiles, &n) || !hn_im_floats(c, c->in[2], &at, &n_at) || n != 1 ||
        n_at != 1)
        return hn_im_refuse(c, "tiles and axis must be constants");
    HN_TRY(hn_im_axis(c, (int64_t)at[0], c->in[0]->type.rank, &axis));
    for (int i = 0; i < c->in[0]->type.rank; i++)
        times[i] = i == axis ? (int64_t)tiles[0] : 1;
    return hn_im_ret(c, tile(c, c->in[0], times));
}

/* ---- concat, split ---- */

hone_status hn_im_on_concat(hn_im_call *c)
{
    int axis;
    if (!hn_im_has(c, "axis") && !c->entry->arg)
        return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"axis\" is missing");
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 1), c->in[0] ? c->in[0]->type.rank : 0, &axis));
    return hn_im_ret(c, hn_im_concat(c, axis, c->n_in, c->in));
}

/* Lengths of n even parts: all of ceil(d/n) but a shorter last one. */
static hone_status even_parts(hn_im_call *c, hn_dim d, int n, hn_dim *len)
{
    hn_symtab *t = hn_im_syms(c);
    const hn_dim part = hn_dim_ceildiv(t, d, n);
    if (c->opset < 18 && hn_dim_is_const(d) && d % n)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "extent %" PRId64 " does not split into %d equal parts", d, n);
    for (int i = 0; i < n - 1; i++)
        len[i] = part;
    len[n - 1] = hn_im_dsub(c, d, hn_im_dmul(c, part, n - 1));
    if (hn_dim_is_const(d)) /* more parts than elements: the last ones are empty */
        for (int i = 0; i < n; i++)
            len[i] = HN_MAX(HN_MIN(part, d - part * i), 0);
    return HONE_OK;
}

hone_status hn_im_on_split(hn_im_call *c)
{
    hn_value *x = c->in[0];
    const int n = c->n_out;
    int axis, n_len = 0;
    hn_dim *len = HN_NEW_N(c->m->scratch, hn_dim, n + 1);
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), x->type.rank, &axis));
    const int64_t *split = c->entry->arg < 13 ? hn_im_is(c, "split", &n_len) : NULL;
    const int64_t want = hn_im_i(c, "num_outputs", n);
    if (!len || n < 1) return HN_IM_RAISE(c, HONE_E_MODEL, "the node has no outputs");
    if (want != n)
        return HN_IM_RAISE(c, HONE_E_MODEL, "num_outputs is %" PRId64 ", the node names %d", want, n);
    if (split) {
        if (n_len != n) return HN_IM_RAISE(c, HONE_E_MODEL, "%d lengths are given for %d outputs", n_len, n);
        for (int i = 0; i < n; i++)
            if (split[i] < 0)
                return HN_IM_RAISE(c, HONE_E_SHAPE, "length %" PRId64 " of output %d is negative", split[i],
                                   i);
        memcpy(len, split, (size_t)n * sizeof *len);
    } else if (hn_im_in(c, 1)) {
        HN_TRY(hn_im_dims(c, c->in[1], len, n, &n_len));
        if (n_len != n) return HN_IM_RAISE(c, HONE_E_MODEL, "%d lengths are given for %d outputs", n_len, n);
    } else {
        HN_TRY(even_parts(c, x->type.dim[axis], n, len));
    }
    hn_dim at = 0;
    for (int i = 0; i < n; i++) {
        if (hn_dim_is_const(at) && hn_dim_is_const(len[i]) && hn_dim_is_const(x->type.dim[axis]) &&
            len[i] > x->type.dim[axis] - at)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "the lengths sum to more than extent %" PRId64,
                               x->type.dim[axis]);
        if (hn_im_wants(c, i)) c->out[i] = hn_slice(c->b, x, axis, at, len[i]);
        at = hn_im_dadd(c, at, len[i]);
    }
    if (hn_dim_is_const(at) && hn_dim_is_const(x->type.dim[axis]) && at != x->type.dim[axis])
        return HN_IM_RAISE(c, HONE_E_SHAPE, "the lengths sum to %" PRId64 ", the extent is %" PRId64, at,
                           x->type.dim[axis]);
    return c->b->status;
}

/* ---- slice ---- */

/* Beyond this a start or end stands for "all the way" (INT_MAX, INT64_MIN + 1, ...). */
static const int64_t far_away = (int64_t)1 << 30;

/* One bound of a slice: negative counts from the end, then held within lo..hi. */
static hn_dim bound(hn_im_call *c, hn_dim x, hn_dim extent, hn_dim lo, hn_dim hi)
{
    hn_symtab *t = hn_im_syms(c);
    int64_t k, max_lo, max_hi;
    hn_dim_bounds(t, extent, &max_lo, &max_hi);
    if (hn_dim_known(t, x, &k)) {
        if (k >= far_away && (k >= max_hi || max_hi == INT64_MAX)) return hi;
        if (k <= -far_away && (-(k + 1) >= max_hi || max_hi == INT64_MAX)) return lo;
        if (k >= 0) return hn_dim_min(t, x, hi);
        return hn_dim_max(t, hn_dim_add(t, x, extent), lo);
    }
    if (!hn_im_dim_nonneg(c, x)) {
        const hn_dim from_end = hn_dim_add(t, x, extent);
        x = hn_im_dim_neg(c, x) ? from_end : hn_dim_select(t, hn_dim_lt(t, x, 0), from_end, x);
    }
    return hn_dim_min(t, hn_dim_max(t, x, lo), hi);
}

static void slice_known(hn_im_call *c, hn_dim start, hn_dim end, int64_t step, hn_dim d, hn_dim *ret_start,
                        hn_dim *ret_len)
{
    hn_symtab *t = hn_im_syms(c);
    hn_dim span;
    if (step > 0) {
        start = bound(c, start, d, 0, d);
        end = bound(c, end, d, 0, d);
        span = hn_dim_sub(t, end, start);
    } else {
        const hn_dim last = hn_dim_sub(t, d, 1);
        start = bound(c, start, d, 0, last);
        end = bound(c, end, d, hn_dim_const(t, -1), last);
        span = hn_dim_sub(t, start, end);
    }
    hn_dim len = hn_dim_ceildiv(t, span, step > 0 ? step : -step);
    if (step < 0) len = hn_dim_min(t, len, d); /* nothing of nothing, though the last of none is -1 */
    *ret_len = hn_im_dim_nonneg(c, len) ? len : hn_dim_max(t, len, 0);
    *ret_start = hn_im_dim_nonneg(c, start) ? start : hn_dim_max(t, start, 0);
}

static hn_value *element(hn_im_call *c, hn_value *v, int i)
{
    v = hn_im_i64(c, v);
    return hn_im_folded(v && v->type.rank ? hn_slice(c->b, v, 0, i, 1)
                                          : hn_reshape(c->b, v, 1, (hn_dim[]){ 1 }));
}

static hn_value *bound_value(hn_im_call *c, hn_value *x, hn_value *extent, hn_value *lo, hn_value *hi)
{
    hn_value *zero = hn_const_i(c->b, HN_I64, 0);
    hn_value *from_end = hn_im_binary(c, HN_OP_add, x, extent);
    x = hn_im_select(c, hn_im_binary(c, HN_OP_lt, x, zero), from_end, x);
    return hn_im_binary(c, HN_OP_min, hn_im_binary(c, HN_OP_max, x, lo), hi);
}

/* Bounds that only a run shows: the same arithmetic in nodes. */
static void slice_running(hn_im_call *c, hn_value *start, hn_value *end, int64_t step, hn_dim d,
                          hn_dim *ret_start, hn_dim *ret_len)
{
    hn_value *extent = hn_const_dims(c->b, 1, &d);
    hn_value *zero = hn_const_i(c->b, HN_I64, 0), *one = hn_const_i(c->b, HN_I64, 1), *span;
    if (step > 0) {
        start = bound_value(c, start, extent, zero, extent);
        end = bound_value(c, end, extent, zero, extent);
        span = hn_im_binary(c, HN_OP_sub, end, start);
    } else {
        hn_value *last = hn_im_binary(c, HN_OP_sub, extent, one);
        start = bound_value(c, start, extent, zero, last);
        end = bound_value(c, end, extent, hn_const_i(c->b, HN_I64, -1), last);
        span = hn_im_binary(c, HN_OP_sub, start, end);
    }
    const int64_t by = step > 0 ? step : -step;
    span = hn_im_binary(c, HN_OP_min, hn_im_binary(c, HN_OP_max, span, zero), extent);
    if (by > 1)
        span = hn_im_binary(c, HN_OP_div, hn_im_binary(c, HN_OP_add, span, hn_const_i(c->b, HN_I64, by - 1)),
                            hn_const_i(c->b, HN_I64, by));
    start = hn_im_binary(c, HN_OP_max, start, zero);
    if (c->b->status != HONE_OK) return;
    *ret_start = hn_im_dim(c, start, 0);
    *ret_len = hn_im_dim(c, span, 0);
    hn_symtab *syms = hn_im_syms(c);
    int64_t lo, hi;
    hn_dim_bounds(syms, d, &lo, &hi);
    for (int i = 0; i < 2; i++) {
        const hn_dim sym = i ? *ret_len : *ret_start;
        const hn_sym *s = hn_sym_get(syms, sym);
        if (s && hi < s->max) hn_sym_set_bounds(syms, sym, s->min, s->opt, hi);
    }
}

typedef struct slice_args {
    hn_value *starts, *ends;
    int64_t axes[HN_MAX_RANK], steps[HN_MAX_RANK];
    int n;
} slice_args;

static hone_status slice(hn_im_call *c, const slice_args *s)
{
    hn_value *x = c->in[0];
    const int rank = x->type.rank;
    hn_dim start[HN_MAX_RANK] = { 0 }, dim[HN_MAX_RANK];
    int64_t step[HN_MAX_RANK];
    bool whole = true;
    for (int i = 0; i < rank; i++) {
        dim[i] = x->type.dim[i];
        step[i] = 1;
    }
    for (int i = 0; i < s->n; i++) {
        const int64_t a = s->axes[i];
        hn_dim from, to;
        if (s->steps[i] == 0) return HN_IM_RAISE(c, HONE_E_MODEL, "step %d is zero", i);
        if (s->steps[i] < -INT32_MAX)
            return HN_IM_RAISE(c, HONE_E_LIMIT, "step %d is %" PRId64, i, s->steps[i]);
        step[a] = s->steps[i];
        if (hn_im_known_dim(c, s->starts, i, &from) && hn_im_known_dim(c, s->ends, i, &to))
            slice_known(c, from, to, step[a], x->type.dim[a], &start[a], &dim[a]);
        else
            slice_running(c, element(c, s->starts, i), element(c, s->ends, i), step[a], x->type.dim[a],
                          &start[a], &dim[a]);
        whole &= step[a] == 1 && start[a] == 0 && dim[a] == x->type.dim[a];
    }
    HN_TRY(c->b->status);
    if (whole) return hn_im_ret(c, x);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_slice, x,
                              HN_ATTRS_ARG(HN_A_DIMS("start", rank, start), HN_A_IS("step", rank, step),
                                           HN_A_DIMS("dim", rank, dim))));
}

hone_status hn_im_on_slice(hn_im_call *c)
{
    slice_args s = { c->in[1], c->in[2], { 0 }, { 0 }, 0 };
    const int64_t *steps = NULL;
    int n_end, n_axes, n_steps = 0;
    bool given;
    const int rank = c->in[0] ? c->in[0]->type.rank : 0;
    HN_TRY(hn_im_vector_len(c, s.starts, "starts", HN_MAX_RANK, &s.n));
    HN_TRY(hn_im_vector_len(c, s.ends, "ends", HN_MAX_RANK, &n_end));
    HN_TRY(hn_im_axes(c, NULL, 3, rank, false, s.axes, &n_axes, &given));
    if (!given && s.n > rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "%d starts are given for rank %d", s.n, rank);
    for (int i = 0; !given && i < s.n; i++)
        s.axes[i] = i;
    if (hn_im_in(c, 4) && !hn_im_ints(c, c->in[4], &steps, &n_steps))
        return hn_im_refuse(c, "steps that only a run shows are not supported");
    if (n_end != s.n || (given && n_axes != s.n) || (steps && n_steps != s.n))
        return HN_IM_RAISE(c, HONE_E_SHAPE, "starts, ends, axes and steps differ in length");
    for (int i = 0; i < s.n; i++)
        s.steps[i] = steps ? steps[i] : 1;
    return slice(c, &s);
}

hone_status hn_im_on_slice_attr(hn_im_call *c)
{
    slice_args s = { 0 };
    int n_end, n_axes;
    bool given;
    const int64_t *starts = hn_im_is(c, "starts", &s.n), *ends = hn_im_is(c, "ends", &n_end);
    const int rank = c->in[0] ? c->in[0]->type.rank : 0;
    HN_TRY(hn_im_axes(c, "axes", -1, rank, false, s.axes, &n_axes, &given));
    if (!starts || !ends || n_end != s.n || s.n > HN_MAX_RANK || (given ? n_axes != s.n : s.n > rank))
        return HN_IM_RAISE(c, HONE_E_MODEL, "starts, ends and axes differ in length");
    for (int i = 0; i < s.n; i++) {
        if (!given) s.axes[i] = i;
        s.steps[i] = 1;
    }
    s.starts = hn_const_is(c->b, s.n, starts);
    s.ends = hn_const_is(c->b, s.n, ends);
    HN_TRY(c->b->status);
    return slice(c, &s);
}

/* ---- pad ---- */

static hone_status pad(hn_im_call *c, const hn_dim *before, const hn_dim *after, hn_value *value)
{
    hn_value *x = c->in[0];
    const int mode = hn_im_choice(c, "mode", "constant|reflect|edge|wrap", 0);
    bool none = true;
    for (int i = 0; i < x->type.rank; i++)
        none &= before[i] == 0 && after[i] == 0;
    if (none) return hn_im_ret(c, x);
    if (value && value->type.rank) value = hn_reshape(c->b, value, 0, NULL);
    if (value && value->type.dtype != x->type.dtype) value = hn_cast(c->b, value, x->type.dtype);
    hn_node *n = hn_build(c->b, HN_OP_pad, value ? 2 : 1, (hn_value *[]){ x, value },
                          HN_ATTRS_ARG(HN_A_I("mode", mode), HN_A_DIMS("before", x->type.rank, before),
                                       HN_A_DIMS("after", x->type.rank, after)),
                          1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

hone_status hn_im_on_pad(hn_im_call *c)
{
    hn_value *x = c->in[0], *pads = c->in[1];
    hn_dim before[HN_MAX_RANK] = { 0 }, after[HN_MAX_RANK] = { 0 };
    int64_t axes[HN_MAX_RANK];
    int n, n_axes;
    bool given;
    HN_TRY(hn_im_vector_len(c, pads, "pads", 2 * HN_MAX_RANK, &n));
    HN_TRY(hn_im_axes(c, NULL, 3, x->type.rank, false, axes, &n_axes, &given));
    for (int i = 0; !given && i < x->type.rank; i++)
        axes[i] = i;
    if (!given) n_axes = x->type.rank;
    if (n != 2 * n_axes) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d pads are given for %d axes", n, n_axes);
    for (int i = 0; i < n_axes; i++) {
        before[axes[i]] = hn_im_dim(c, pads, i);
        after[axes[i]] = hn_im_dim(c, pads, n_axes + i);
    }
    HN_TRY(c->b->status);
    return pad(c, before, after, hn_im_in(c, 2));
}

hone_status hn_im_on_pad_attr(hn_im_call *c)
{
    hn_dim before[HN_MAX_RANK], after[HN_MAX_RANK];
    hn_value *x = c->in[0];
    int n;
    const int64_t *pads = hn_im_is(c, c->entry->arg == 1 ? "paddings" : "pads", &n);
    const double value = hn_im_f(c, "value", 0);
    if (!pads || n != 2 * x->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "%d pads are given for rank %d", n, x->type.rank);
    for (int i = 0; i < x->type.rank; i++) {
        before[i] = hn_im_dconst(c, pads[i]);
        after[i] = hn_im_dconst(c, pads[x->type.rank + i]);
    }
    return pad(c, before, after, value != 0 ? hn_im_like_f(c, x, value) : NULL);
}

/* Cropped or padded about the centre; the odd element goes to the end. */
hone_status hn_im_on_center_crop_pad(hn_im_call *c)
{
    hn_value *x = c->in[0];
    hn_dim to[HN_MAX_RANK], before[HN_MAX_RANK] = { 0 }, after[HN_MAX_RANK] = { 0 };
    int64_t axes[HN_MAX_RANK];
    int n, n_axes;
    bool given;
    HN_TRY(hn_im_dims(c, c->in[1], to, HN_MAX_RANK, &n));
    HN_TRY(hn_im_axes(c, "axes", -1, x->type.rank, false, axes, &n_axes, &given));
    if (!given) n_axes = x->type.rank;
    if (n != n_axes) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d extents are given for %d axes", n, n_axes);
    hn_symtab *t = hn_im_syms(c);
    for (int i = 0; i < n; i++) {
        const int a = given ? (int)axes[i] : i;
        const hn_dim d = x->type.dim[a], two = 2;
        const hn_dim crop = hn_dim_max(t, hn_dim_sub(t, d, to[i]), 0),
                     grow = hn_dim_max(t, hn_dim_sub(t, to[i], d), 0);
        const hn_dim crop0 = hn_dim_floordiv(t, crop, two), grow0 = hn_dim_floordiv(t, grow, two);
        before[a] = hn_dim_sub(t, grow0, crop0);
        after[a] = hn_dim_sub(t, hn_dim_sub(t, grow, grow0), hn_dim_sub(t, crop, crop0));
    }
    return pad(c, before, after, NULL);
}

/* ---- triangles ---- */

hone_status hn_im_on_trilu(hn_im_call *c)
{
    hn_value *k = hn_im_in(c, 1);
    const hn_dim d = k ? hn_im_dim(c, k, 0) : 0;
    return hn_im_ret(c, hn_b1(c->b, HN_OP_diag_mask, c->in[0],
                              HN_ATTRS_ARG(HN_A_I("upper", hn_im_i(c, "upper", 1) != 0), HN_A_DIM("k", d))));
}
