/* one_hot: a new axis of extent depth that holds values[1] where the index points and values[0] elsewhere. */
#include "op/op_int.h"

enum { AXIS, DIM };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int axis;
    int64_t n;

    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 1, 1, dg));
    if (hn_op_known(c, c->in[1].dim[0], &n) && n != 2)
        return HN_RAISE(dg, HONE_E_SHAPE, "values holds %lld elements where off and on are needed",
                        (long long)n);
    if (c->in[0].rank + 1 > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_SHAPE, "the result would have rank %d", c->in[0].rank + 1);
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank + 1, false, &axis, dg));
    HN_TRY(hn_op_want_extent(c, c->attr[DIM].i, "the depth", dg));
    c->out[0].dtype = c->in[1].dtype;
    c->out[0].rank = c->in[0].rank + 1;
    for (int d = 0; d < c->out[0].rank; d++)
        c->out[0].dim[d] = d == axis ? c->attr[DIM].i : c->in[0].dim[d < axis ? d : d - 1];
    return HONE_OK;
}

/* -1 when the index is outside [-depth, depth - 1] or no integer. */
static int64_t place(const hn_view *index, int64_t i, int64_t depth)
{
    int64_t k;

    if (hn_dtype_is_float(index->type.dtype)) {
        const double v = index->f[i];
        if (!(v >= -(double)depth && v < (double)depth) || v != floor(v)) return -1;
        k = (int64_t)v;
    } else
        k = index->i[i];
    if (k < -depth || k >= depth) return -1;
    return k < 0 ? k + depth : k;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, out[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&out[0].type, axis);
    for (int64_t o = 0; o < out[0].numel; o++)
        out[0].i[o] = in[1].i[0];
    if (s.n == 0) return HONE_OK;
    for (int64_t i = 0; i < in[0].numel; i++) {
        const int64_t k = place(&in[0], i, s.n);
        if (k >= 0) out[0].i[(i / s.inner * s.n + k) * s.inner + i % s.inner] = in[1].i[1];
    }
    return HONE_OK;
}

const hn_op_def hn_op_one_hot = {
    HN_OP_ID(one_hot, 2, 2, 1, 1),
    .doc = "on where the index points along a new axis, off elsewhere",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("axis", -1), HN_S_DIM_REQ("dim")),
    .infer = infer,
    .ref = ref,
    .work = hn_op_work_move,
};
