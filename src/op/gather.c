/* gather, gather_elements, gather_nd: reads at computed places. Negative indices count from the end. */
#include "op/op_int.h"

enum { AXIS };

static hone_status resolve(int64_t index, int64_t n, int64_t *ret, hn_diag *dg)
{
    if (index < -n || index >= n)
        return HN_RAISE(dg, HONE_E_MODEL, "index %lld is out of range for extent %lld", (long long)index,
                        (long long)n);
    *ret = index < 0 ? index + n : index;
    return HONE_OK;
}

/* ---- gather: the index's dims replace the axis ---- */
static hone_status infer_gather(hn_call *c, hn_diag *dg)
{
    const hn_tdesc *x = &c->in[0], *index = &c->in[1];
    int axis, n = 0;

    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_int(c, 1, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, x->rank, false, &axis, dg));
    if (x->rank - 1 + index->rank > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_SHAPE, "the result would have rank %d; %d is the most",
                        x->rank - 1 + index->rank, HN_MAX_RANK);
    c->out[0].dtype = x->dtype;
    for (int d = 0; d < axis; d++)
        c->out[0].dim[n++] = x->dim[d];
    for (int d = 0; d < index->rank; d++)
        c->out[0].dim[n++] = index->dim[d];
    for (int d = axis + 1; d < x->rank; d++)
        c->out[0].dim[n++] = x->dim[d];
    c->out[0].rank = n;
    hn_op_promise_some(c, &c->out[0], x->dim[axis]);
    return HONE_OK;
}

static hone_status ref_gather(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    if (out[0].numel == 0) return HONE_OK;
    for (int64_t k = 0; k < in[1].numel; k++) {
        int64_t at = 0;
        HN_TRY(resolve(in[1].i[k], s.n, &at, dg));
        for (int64_t o = 0; o < s.outer; o++)
            memcpy(out[0].i + (o * in[1].numel + k) * s.inner, in[0].i + (o * s.n + at) * s.inner,
                   (size_t)s.inner * sizeof(int64_t));
    }
    return HONE_OK;
}

static bool content_gather(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim x[64], index[64];
    int n;

    if (out != 0 || c->in[0].rank != 1) return false;
    if (!hn_op_content(c, 0, x, &n) || !hn_op_content(c, 1, index, ret_n)) return false;
    for (int i = 0; i < *ret_n; i++) {
        int64_t k;
        if (!hn_op_known(c, index[i], &k) || k < -n || k >= n) return false;
        ret[i] = x[k < 0 ? k + n : k];
    }
    return true;
}

const hn_op_def hn_op_gather = {
    HN_OP_ID(gather, 2, 2, 1, 1),
    .doc = "slices of x along an axis, chosen by index",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("in_range", 0)),
    .infer = infer_gather,
    .content = content_gather,
    .ref = ref_gather,
    .work = hn_op_work_move,
};

/* ---- gather_elements: y[.., i, ..] = x[.., index[.., i, ..], ..] ---- */
static hone_status infer_elements(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_int(c, 1, dg));
    HN_TRY(hn_op_want_rank(c, 1, c->in[0].rank, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    for (int d = 0; d < c->in[0].rank; d++) {
        if (d != axis) HN_TRY(hn_op_want_index_within(c, d, c->in[1].dim[d], c->in[0].dim[d], dg));
    }
    c->out[0] = c->in[1];
    c->out[0].dtype = c->in[0].dtype;
    hn_op_promise_some(c, &c->out[0], c->in[0].dim[axis]);
    return HONE_OK;
}

static hone_status ref_elements(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int64_t stride[HN_MAX_RANK];
    hn_walk w;
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    hn_op_strides(&in[0].type, stride);
    const int64_t along = stride[axis];
    stride[axis] = 0;
    hn_walk_init(&w, &out[0].type);
    hn_walk_add_strided(&w, 0, stride);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t at = 0;
            HN_TRY(resolve(in[1].i[w.pos + i], in[0].type.dim[axis], &at, dg));
            out[0].i[w.pos + i] = in[0].i[w.at[0] + i * w.step[0] + at * along];
        }
    return HONE_OK;
}

const hn_op_def hn_op_gather_elements = {
    HN_OP_ID(gather_elements, 2, 2, 1, 1),
    .doc = "one element of x for each index, along an axis",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("in_range", 0)),
    .infer = infer_elements,
    .ref = ref_elements,
    .work = hn_op_work_move,
};

/* ---- gather_nd: the index's last axis holds places in x after batch_dims ---- */
enum { BATCH_DIMS };

static hone_status infer_nd(hn_call *c, hn_diag *dg)
{
    const hn_tdesc *x = &c->in[0], *index = &c->in[1];
    const int64_t batch = c->attr[BATCH_DIMS].i;
    int64_t depth;
    int n = 0;

    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_int(c, 1, dg));
    HN_TRY(hn_op_want_ranks(c, 1, 1, HN_MAX_RANK, dg));
    if (batch < 0 || batch >= index->rank || batch > x->rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "batch_dims %lld is too many for ranks %d and %d", (long long)batch,
                        x->rank, index->rank);
    if (!hn_op_known(c, index->dim[index->rank - 1], &depth))
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the length of the index tuples must be known");
    if (depth < 0 || depth > x->rank - batch)
        return HN_RAISE(dg, HONE_E_SHAPE, "index tuples of %lld entries exceed rank %d", (long long)depth,
                        x->rank);
    const int64_t rank = index->rank - 1 + x->rank - batch - depth;
    if (rank > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_SHAPE, "the result would have rank %lld", (long long)rank);
    c->out[0].dtype = x->dtype;
    for (int d = 0; d < index->rank - 1; d++) {
        c->out[0].dim[n] = index->dim[d];
        if (d < batch) HN_TRY(hn_op_want_meet(c, 0, d, 1, d, &c->out[0].dim[n], dg));
        n++;
    }
    for (int d = (int)(batch + depth); d < x->rank; d++)
        c->out[0].dim[n++] = x->dim[d];
    c->out[0].rank = n;
    for (int d = (int)batch; d < batch + depth; d++)
        hn_op_promise_some(c, &c->out[0], x->dim[d]);
    return HONE_OK;
}

static hone_status ref_nd(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_tdesc *x = &in[0].type, *index = &in[1].type;
    const int batch = (int)c->attr[BATCH_DIMS].i;
    const int64_t depth = index->dim[index->rank - 1];
    int64_t stride[HN_MAX_RANK], batches = 1, slice = 1;

    hn_op_strides(x, stride);
    for (int d = 0; d < batch; d++)
        batches = hn_extent_times(batches, x->dim[d]);
    for (int d = batch + (int)depth; d < x->rank; d++)
        slice = hn_extent_times(slice, x->dim[d]);
    if (out[0].numel == 0) return HONE_OK;
    const int64_t tuples = out[0].numel / slice, per_batch = tuples / batches;
    const int64_t block = in[0].numel / batches;
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at = t / per_batch * block;
        for (int64_t k = 0; k < depth; k++) {
            int64_t p = 0;
            HN_TRY(resolve(in[1].i[t * depth + k], x->dim[batch + k], &p, dg));
            at += p * stride[batch + k];
        }
        memcpy(out[0].i + t * slice, in[0].i + at, (size_t)slice * sizeof(int64_t));
    }
    return HONE_OK;
}

const hn_op_def hn_op_gather_nd = {
    HN_OP_ID(gather_nd, 2, 2, 1, 1),
    .doc = "slices of x at index tuples",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("batch_dims", 0), HN_S_INT("in_range", 0)),
    .infer = infer_nd,
    .ref = ref_nd,
    .work = hn_op_work_move,
};
