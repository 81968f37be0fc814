/* range and iota: tensors made from nothing or from scalars. */
#include "op/op_int.h"

/* ---- range(start, delta) {dim}: start + i * delta ---- */
enum { DIM };

static hone_status infer_range(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    HN_TRY(hn_op_want_scalar(c, 0, dg));
    HN_TRY(hn_op_want_scalar(c, 1, dg));
    HN_TRY(hn_op_want_extent(c, c->attr[DIM].i, "the length", dg));
    c->out[0] = (hn_tdesc){ .dtype = c->in[0].dtype, .rank = 1, .dim = { c->attr[DIM].i } };
    return HONE_OK;
}

static hone_status ref_range(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c, (void)dg;
    if (hn_dtype_is_float(out[0].type.dtype))
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].f[i] = in[0].f[0] + (double)i * in[1].f[0];
    else
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].i[i] = (int64_t)((uint64_t)in[0].i[0] + (uint64_t)i * (uint64_t)in[1].i[0]);
    return HONE_OK;
}

static bool content_range(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim start[64], delta[64];
    int64_t n;
    int one;

    if (out != 0 || !hn_op_known(c, c->attr[DIM].i, &n) || n > 64) return false;
    if (!hn_op_content(c, 0, start, &one) || !hn_op_content(c, 1, delta, &one)) return false;
    for (int64_t i = 0; i < n; i++)
        ret[i] = hn_dim_add(c->syms, start[0], hn_dim_mul(c->syms, i, delta[0]));
    *ret_n = (int)n;
    return true;
}

const hn_op_def hn_op_range = {
    HN_OP_ID(range, 2, 2, 1, 1),
    .doc = "start + i * delta",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_DIM_REQ("dim")),
    .infer = infer_range,
    .content = content_range,
    .ref = ref_range,
    .work = hn_op_work_pointwise,
    .tol = HN_OP_TOL(2), /* a product and a sum */
};

/* ---- iota() {dtype, dim, axis}: the index along axis ---- */
enum { IOTA_DTYPE, IOTA_DIM, IOTA_AXIS };

static hone_status infer_iota(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_dtype_attr(c, IOTA_DTYPE, dg));
    HN_TRY(hn_op_dims_attr(c, IOTA_DIM, &c->out[0], dg));
    HN_TRY(hn_op_want_axis(c, IOTA_AXIS, c->out[0].rank, false, &axis, dg));
    c->out[0].dtype = (hn_dtype)c->attr[IOTA_DTYPE].i;
    if (c->out[0].dtype == HN_BOOL) return HN_RAISE(dg, HONE_E_TYPE, "an index does not fit bool");
    return HONE_OK;
}

static hone_status ref_iota(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;
    (void)in;

    HN_TRY(hn_op_want_axis(c, IOTA_AXIS, out[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&out[0].type, axis);
    const bool is_float = hn_dtype_is_float(out[0].type.dtype);
    for (int64_t o = 0; o < out[0].numel; o++) {
        const int64_t i = o / s.inner % s.n;
        if (is_float)
            out[0].f[o] = (double)i;
        else
            out[0].i[o] = i;
    }
    return HONE_OK;
}

static bool content_iota(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    int64_t n;

    if (out != 0 || c->out[0].rank != 1 || !hn_op_known(c, c->out[0].dim[0], &n) || n > 64) return false;
    for (int64_t i = 0; i < n; i++)
        ret[i] = i;
    *ret_n = (int)n;
    return !hn_dtype_is_float(c->out[0].dtype);
}

const hn_op_def hn_op_iota = {
    HN_OP_ID(iota, 0, 0, 1, 1),
    .doc = "the index along an axis",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_I64), HN_S_DIMS_REQ("dim"), HN_S_INT("axis", 0)),
    .infer = infer_iota,
    .content = content_iota,
    .ref = ref_iota,
    .work = hn_op_work_move,
};
