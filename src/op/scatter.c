/*
 * scatter_elements and scatter_nd: a copy of x with updates written or combined at computed places, in the
 * order of the updates: the last of equal places wins where nothing combines.
 */
#include "op/op_int.h"

enum { NONE, ADD, MUL, MIN, MAX };
#define REDUCTIONS "none|add|mul|min|max"

static double combine_f(int64_t how, double a, double b)
{
    switch (how) {
    case ADD:
        return a + b;
    case MUL:
        return a * b;
    case MIN:
        return isnan(a) || isnan(b) ? NAN : a < b ? a : b;
    case MAX:
        return isnan(a) || isnan(b) ? NAN : a > b ? a : b;
    default:
        return b;
    }
}

static int64_t combine_i(hn_dtype t, int64_t how, int64_t a, int64_t b)
{
    switch (how) {
    case ADD:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case MUL:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case MIN:
        return hn_op_cmp_i(t, a, b) < 0 ? a : b;
    case MAX:
        return hn_op_cmp_i(t, a, b) > 0 ? a : b;
    default:
        return b;
    }
}

static void put(const hn_view *update, int64_t from, int64_t how, hn_view *out, int64_t at)
{
    const hn_dtype t = out->type.dtype;

    if (hn_dtype_is_float(t))
        out->f[at] = combine_f(how, out->f[at], update->f[from]);
    else
        out->i[at] = hn_wrap_i64(t, combine_i(t, how, out->i[at], update->i[from]));
}

static hone_status resolve(int64_t index, int64_t n, int64_t *ret, hn_diag *dg)
{
    if (index < -n || index >= n)
        return HN_RAISE(dg, HONE_E_MODEL, "index %lld is out of range for extent %lld", (long long)index,
                        (long long)n);
    *ret = index < 0 ? index + n : index;
    return HONE_OK;
}

static hone_status check_common(const hn_call *c, int reduction, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_int(c, 1, dg));
    HN_TRY(hn_op_want_same(c, 0, 2, dg));
    HN_TRY(hn_op_want_attr(c, reduction, NONE, MAX, dg));
    if (c->attr[reduction].i != NONE && c->in[0].dtype == HN_BOOL)
        return HN_RAISE(dg, HONE_E_TYPE, "bools do not combine");
    return HONE_OK;
}

/* ---- scatter_elements ---- */
enum { AXIS, ELEMENTS_REDUCTION };

static hone_status infer_elements(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(check_common(c, ELEMENTS_REDUCTION, dg));
    const int rank = c->in[0].rank;
    HN_TRY(hn_op_want_rank(c, 1, rank, dg));
    HN_TRY(hn_op_want_rank(c, 2, rank, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, rank, false, &axis, dg));
    for (int d = 0; d < rank; d++) {
        HN_TRY(hn_op_want_meet(c, 1, d, 2, d, NULL, dg));
        if (d != axis) HN_TRY(hn_op_want_index_within(c, d, c->in[1].dim[d], c->in[0].dim[d], dg));
    }
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref_elements(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int64_t stride[HN_MAX_RANK];
    hn_walk w;
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    memcpy(out[0].i, in[0].i, (size_t)out[0].numel * sizeof(int64_t));
    hn_op_strides(&in[0].type, stride);
    const int64_t along = stride[axis];
    stride[axis] = 0;
    hn_walk_init(&w, &in[1].type);
    hn_walk_add_strided(&w, 0, stride);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            int64_t at = 0;
            HN_TRY(resolve(in[1].i[w.pos + i], in[0].type.dim[axis], &at, dg));
            put(&in[2], w.pos + i, c->attr[ELEMENTS_REDUCTION].i, &out[0],
                w.at[0] + i * w.step[0] + at * along);
        }
    return HONE_OK;
}

/* Adds and products of up to 64 updates on one element, a rounding each. */
const hn_op_def hn_op_scatter_elements = {
    HN_OP_ID(scatter_elements, 3, 3, 1, 1),
    .doc = "x with elements replaced or combined along an axis",
    .traits = HN_TRAIT_PURE | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_ENUM("reduction", NONE, REDUCTIONS), HN_S_INT("in_range", 0)),
    .infer = infer_elements,
    .ref = ref_elements,
    .work = hn_op_work_move,
    .tol = HN_OP_TOL_SUM(64, 64),
};

/* ---- scatter_nd ---- */
enum { ND_REDUCTION };

/* Update dims: the index's but the last, then x's behind the tuple. */
static hone_status check_update(const hn_call *c, int64_t depth, hn_diag *dg)
{
    const hn_tdesc *x = &c->in[0], *index = &c->in[1], *update = &c->in[2];
    const int lead = index->rank - 1;

    HN_TRY(hn_op_want_rank(c, 2, lead + x->rank - (int)depth, dg));
    for (int d = 0; d < update->rank; d++) {
        if (d < lead)
            HN_TRY(hn_op_want_meet(c, 2, d, 1, d, NULL, dg));
        else
            HN_TRY(hn_op_want_meet(c, 2, d, 0, (int)depth + d - lead, NULL, dg));
    }
    return HONE_OK;
}

static hone_status infer_nd(hn_call *c, hn_diag *dg)
{
    int64_t depth;

    HN_TRY(check_common(c, ND_REDUCTION, dg));
    HN_TRY(hn_op_want_ranks(c, 1, 1, HN_MAX_RANK, dg));
    if (!hn_op_known(c, c->in[1].dim[c->in[1].rank - 1], &depth))
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the length of the index tuples must be known");
    if (depth < 0 || depth > c->in[0].rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "index tuples of %lld entries exceed rank %d", (long long)depth,
                        c->in[0].rank);
    HN_TRY(check_update(c, depth, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref_nd(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_tdesc *x = &in[0].type, *index = &in[1].type;
    const int64_t depth = index->dim[index->rank - 1];
    int64_t stride[HN_MAX_RANK], slice = 1, tuples = 1;

    memcpy(out[0].i, in[0].i, (size_t)out[0].numel * sizeof(int64_t));
    hn_op_strides(x, stride);
    for (int d = (int)depth; d < x->rank; d++)
        slice = hn_extent_times(slice, x->dim[d]);
    for (int d = 0; d < index->rank - 1; d++)
        tuples = hn_extent_times(tuples, index->dim[d]);
    if (slice == 0) return HONE_OK;
    for (int64_t t = 0; t < tuples; t++) {
        int64_t at = 0;
        for (int64_t k = 0; k < depth; k++) {
            int64_t p = 0;
            HN_TRY(resolve(in[1].i[t * depth + k], x->dim[k], &p, dg));
            at += p * stride[k];
        }
        for (int64_t e = 0; e < slice; e++)
            put(&in[2], t * slice + e, c->attr[ND_REDUCTION].i, &out[0], at + e);
    }
    return HONE_OK;
}

const hn_op_def hn_op_scatter_nd = {
    HN_OP_ID(scatter_nd, 3, 3, 1, 1),
    .doc = "x with slices at index tuples replaced or combined",
    .traits = HN_TRAIT_PURE | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_ENUM("reduction", NONE, REDUCTIONS), HN_S_INT("in_range", 0)),
    .infer = infer_nd,
    .ref = ref_nd,
    .work = hn_op_work_move,
    .tol = HN_OP_TOL_SUM(64, 64),
};
