/*
 * matmul_f8: matmul(a * a_scale, b * b_scale) of floats of 8 bits, [.., m, k] x [k, n] -> [.., m, n], in the dtype `to`; trans_b says that
 * b is stored as [n, k]. The scales are of whole tensors, so that sums of the operands as they are can be scaled once. NaN and infinities
 * spread as in matmul.
 */
#include "op/expand_int.h"

enum { A_SCALE, B_SCALE, TO, TRANS_B };

/* ---- inference ---- */
static hone_status want_f8(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (c->in[i].dtype == HN_F8E4M3FN || c->in[i].dtype == HN_F8E5M2) return HONE_OK;
    return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where f8e4m3fn or f8e5m2 is needed", i, hn_dtype_name(c->in[i].dtype));
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const hn_tdesc *a = &c->in[0], *b = &c->in[1];
    const bool tb = c->attr[TRANS_B].i != 0;
    const hn_dtype to = (hn_dtype)c->attr[TO].i;

    HN_TRY(want_f8(c, 0, dg));
    HN_TRY(want_f8(c, 1, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_rank(c, 1, 2, dg));
    HN_TRY_IN(dg, hn_op_want_meet(c, 0, a->rank - 1, 1, tb ? 1 : 0, NULL, dg), "the contracted axes");
    if (to != HN_F16 && to != HN_BF16 && to != HN_F32)
        return HN_RAISE(dg, HONE_E_TYPE, "a product of f8 in %s is not defined", hn_dtype_name(to));
    c->out[0] = *a;
    c->out[0].dtype = to;
    c->out[0].dim[a->rank - 1] = b->dim[tb ? 0 : 1];
    return HONE_OK;
}

/* ---- reference ---- */
static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool tb = c->attr[TRANS_B].i != 0;
    const int64_t k = in[0].type.dim[in[0].type.rank - 1], n = in[1].type.dim[tb ? 0 : 1];

    (void)dg;
    for (int64_t i = 0; i < out[0].numel; i++) {
        double sum = 0;
        for (int64_t e = 0; e < k; e++)
            sum += in[0].f[i / n * k + e] * in[1].f[tb ? i % n * k + e : e * n + i % n];
        out[0].f[i] = c->attr[A_SCALE].f * c->attr[B_SCALE].f * sum;
    }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const hn_tdesc *a = &c->in[0];

    *ret = (hn_work){ .flops = 2 * hn_op_count(c, &c->out[0]) * hn_op_extent(c, a->dim[a->rank - 1]), .bytes = hn_op_bytes(c) };
}

/* ---- expansion ---- */
static hn_value *scaled(hn_builder *b, hn_value *x, double scale, hn_dtype to)
{
    return hn_b2(b, HN_OP_dequantize, x, hn_const_f(b, HN_F32, scale), HN_ATTRS_ARG(HN_A_T("to", to)));
}

/* What the model says: products of numbers that have been scaled, and rounded to the result's dtype. */
static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_dtype to = (hn_dtype)hn_attr_i(n, "to");

    out[0] = x_matmul(b, scaled(b, hn_in(n, 0), hn_attr_f(n, "a_scale"), to), scaled(b, hn_in(n, 1), hn_attr_f(n, "b_scale"), to), false,
                      hn_attr_i(n, "trans_b") != 0);
    return x_done(b);
}

const hn_op_def hn_op_matmul_f8 = {
    HN_OP_ID(matmul_f8, 2, 2, 1, 1),
    .doc = "matrix product of 8-bit floats, each operand times a scale",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_FLOAT("a_scale", 1), HN_S_FLOAT("b_scale", 1), HN_S_DTYPE_REQ("to"), HN_S_INT("trans_b", 0)),
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = expand,
    .tol = HN_OP_TOL_SUM(64, 2048), /* as matmul, after two roundings of each product's factors */
};
