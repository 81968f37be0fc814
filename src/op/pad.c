/*
 * Each axis is first cropped by the negative entries, then grown by the positive ones:
 *
 *     constant   0 0 | a b c | 0 0        edge   a a | a b c | c c
 *     reflect    c b | a b c | b a        wrap   b c | a b c | a b
 *
 * Reflections repeat when a pad is longer than the axis, as NumPy's do. Reflecting fewer than two elements,
 * and edge or wrap of none, is an error.
 */
#include "op/op_int.h"

enum { MODE, BEFORE, AFTER };
enum { CONSTANT, REFLECT, EDGE, WRAP };

/* One axis: what is left after cropping, and how index i of the result maps to it. */
typedef struct pad_axis {
    int64_t crop, n, before; /* elements cropped at the front, left, added at the front */
} pad_axis;

static hone_status resolve(int64_t mode, int axis, int64_t n, const int64_t pads[2], pad_axis *ret,
                           hn_diag *dg)
{
    if (pads[0] < -n || pads[1] < -n)
        return HN_RAISE(dg, HONE_E_SHAPE, "pads %lld and %lld crop more than the %lld elements of axis %d",
                        (long long)pads[0], (long long)pads[1], (long long)n, axis);
    ret->crop = pads[0] < 0 ? -pads[0] : 0;
    ret->before = HN_MAX(pads[0], 0);
    ret->n = n - ret->crop + HN_MIN(pads[1], 0);
    if (ret->n < 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "pads %lld and %lld crop more than the %lld elements of axis %d",
                        (long long)pads[0], (long long)pads[1], (long long)n, axis);
    const bool grows = pads[0] > 0 || pads[1] > 0;
    if (grows && mode != CONSTANT && ret->n < (mode == REFLECT ? 2 : 1))
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %d has too few elements (%lld) to %s", axis,
                        (long long)ret->n,
                        mode == REFLECT ? "reflect"
                        : mode == EDGE  ? "repeat its edge"
                                        : "wrap around");
    return HONE_OK;
}

static hone_status check_axis(const hn_call *c, int axis, hn_diag *dg)
{
    int64_t n, pads[2];
    pad_axis a;

    if (!hn_op_known(c, c->in[0].dim[axis], &n) || !hn_op_known(c, c->attr[BEFORE].is[axis], &pads[0]) ||
        !hn_op_known(c, c->attr[AFTER].is[axis], &pads[1]))
        return HONE_OK;
    return resolve(c->attr[MODE].i, axis, n, pads, &a, dg);
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    const int rank = c->in[0].rank;
    HN_TRY(hn_op_want_attr(c, MODE, CONSTANT, WRAP, dg));
    HN_TRY(hn_op_want_list(c, BEFORE, rank, dg));
    HN_TRY(hn_op_want_list(c, AFTER, rank, dg));
    if (hn_op_has(c, 1)) {
        HN_TRY(hn_op_want_same(c, 0, 1, dg));
        HN_TRY(hn_op_want_scalar(c, 1, dg));
    }
    c->out[0] = c->in[0];
    for (int i = 0; i < rank; i++) {
        HN_TRY(check_axis(c, i, dg));
        const hn_dim grown = hn_dim_add(c->syms, c->in[0].dim[i], c->attr[BEFORE].is[i]);
        c->out[0].dim[i] = hn_dim_add(c->syms, grown, c->attr[AFTER].is[i]);
    }
    return HONE_OK;
}

/* Index within the cropped axis, or -1: the constant. */
static int64_t source(int64_t mode, const pad_axis *a, int64_t i)
{
    const int64_t k = i - a->before;

    if (k >= 0 && k < a->n) return k;
    if (mode == CONSTANT) return -1;
    if (mode == EDGE) return k < 0 ? 0 : a->n - 1;
    const int64_t period = mode == WRAP ? a->n : 2 * (a->n - 1), m = (k % period + period) % period;
    return m < a->n ? m : period - m;
}

static int64_t locate(int64_t mode, const pad_axis *axis, const int64_t *stride, const int64_t *index,
                      int rank)
{
    int64_t at = 0;

    for (int i = 0; i < rank; i++) {
        const int64_t k = source(mode, &axis[i], index[i]);
        if (k < 0) return -1;
        at += (axis[i].crop + k) * stride[i];
    }
    return at;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int rank = in[0].type.rank;
    const int64_t fill = hn_op_has(c, 1) ? in[1].i[0] : 0; /* as bits: 0.0 is all zeros */
    int64_t before[HN_MAX_RANK], after[HN_MAX_RANK], stride[HN_MAX_RANK], index[HN_MAX_RANK] = { 0 };
    pad_axis axis[HN_MAX_RANK];

    HN_TRY(hn_op_dims_known(c, BEFORE, before, dg));
    HN_TRY(hn_op_dims_known(c, AFTER, after, dg));
    hn_op_strides(&in[0].type, stride);
    for (int i = 0; i < rank; i++) {
        const int64_t pads[2] = { before[i], after[i] };
        HN_TRY(resolve(c->attr[MODE].i, i, in[0].type.dim[i], pads, &axis[i], dg));
    }
    for (int64_t o = 0; o < out[0].numel; o++) {
        const int64_t at = locate(c->attr[MODE].i, axis, stride, index, rank);
        out[0].i[o] = at < 0 ? fill : in[0].i[at];
        for (int i = rank - 1; i >= 0 && ++index[i] == out[0].type.dim[i]; i--)
            index[i] = 0;
    }
    return HONE_OK;
}

const hn_op_def hn_op_pad = {
    HN_OP_ID(pad, 1, 2, 1, 1),
    .doc = "axes grown or cropped at both ends",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW,
    HN_OP_ATTRS(HN_S_ENUM("mode", 0, "constant|reflect|edge|wrap"), HN_S_DIMS("before"), HN_S_DIMS("after")),
    .infer = infer,
    .ref = ref,
    .work = hn_op_work_move,
};
