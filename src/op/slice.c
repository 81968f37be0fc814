/* y[i] = x[start + i * step] per axis; every index lies in range. */
#include "op/op_int.h"

enum { START, STEP, DIM };

static hone_status check_axis(const hn_call *c, int axis, hn_diag *dg)
{
    const int64_t step = c->attr[STEP].is[axis];
    int64_t n, start, len;

    if (step == 0) return HN_RAISE(dg, HONE_E_INVALID, "step of axis %d is 0", axis);
    if (!hn_op_known(c, c->in[0].dim[axis], &n) || !hn_op_known(c, c->attr[START].is[axis], &start) ||
        !hn_op_known(c, c->attr[DIM].is[axis], &len))
        return HONE_OK;
    if (len == 0) return HONE_OK;
    int64_t span, last;
    if (__builtin_mul_overflow(len - 1, step, &span) || __builtin_add_overflow(start, span, &last)) last = -1;
    if (start < 0 || start >= n || last < 0 || last >= n)
        return HN_RAISE(
            dg, HONE_E_SHAPE,
            "slice of axis %d takes %lld elements from %lld in steps of %lld, but the extent is %lld", axis,
            (long long)len, (long long)start, (long long)step, (long long)n);
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    const int rank = c->in[0].rank;
    HN_TRY(hn_op_want_list(c, START, rank, dg));
    HN_TRY(hn_op_want_list(c, STEP, rank, dg));
    HN_TRY(hn_op_want_list(c, DIM, rank, dg));
    HN_TRY(hn_op_dims_attr(c, DIM, &c->out[0], dg));
    c->out[0].dtype = c->in[0].dtype;
    for (int i = 0; i < rank; i++)
        HN_TRY(check_axis(c, i, dg));
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int64_t start[HN_MAX_RANK], own[HN_MAX_RANK], stride[HN_MAX_RANK] = { 0 }, at = 0;
    hn_walk w;

    HN_TRY(hn_op_dims_known(c, START, start, dg));
    hn_op_strides(&in[0].type, own);
    for (int i = 0; i < in[0].type.rank; i++) {
        HN_TRY(check_axis(c, i, dg));
        at += start[i] * own[i];
        stride[i] = own[i] * c->attr[STEP].is[i];
    }
    hn_walk_init(&w, &out[0].type);
    hn_walk_add_strided(&w, at, stride);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            out[0].i[w.pos + i] = in[0].i[w.at[0] + i * w.step[0]];
    return HONE_OK;
}

static bool content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim x[64];
    int64_t start, len;
    int n;

    if (out != 0 || !hn_op_content(c, 0, x, &n)) return false;
    if (c->in[0].rank == 0) {
        ret[0] = x[0];
        *ret_n = 1;
        return true;
    }
    if (!hn_op_known(c, c->attr[START].is[0], &start) || !hn_op_known(c, c->attr[DIM].is[0], &len))
        return false;
    for (int64_t i = 0; i < len; i++) {
        const int64_t at = start + i * c->attr[STEP].is[0];
        if (at < 0 || at >= n || i >= 64) return false;
        ret[i] = x[at];
    }
    *ret_n = (int)len;
    return true;
}

const hn_op_def hn_op_slice = {
    HN_OP_ID(slice, 1, 1, 1, 1),
    .doc = "evenly spaced elements of each axis",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW,
    HN_OP_ATTRS(HN_S_DIMS("start"), HN_S_INTS("step"), HN_S_DIMS("dim")),
    .infer = infer,
    .content = content,
    .ref = ref,
    .work = hn_op_work_move,
};
