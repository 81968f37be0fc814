/*
 * rotary (x [b,h,s,d], cos [b|1,s,r/2], sin as cos) {interleaved, rotary_dim} -> x's shape
 *
 * The first r = rotary_dim (0: d) features are pairs (u, v), the two halves or, interleaved, neighbours:
 *
 *     u' = u cos - v sin        v' = u sin + v cos          the rest passes through
 */
#include "op/expand_int.h"

enum { INTERLEAVED, ROTARY_DIM };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const int64_t given = hn_call_i(c, "rotary_dim");
    const hn_dim r = given ? hn_dim_const(c->syms, given) : c->in[0].dim[3];
    int64_t n, have, half;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 4, dg));
    HN_TRY(hn_op_want_attr(c, ROTARY_DIM, 0, INT64_MAX, dg));
    for (int i = 1; i <= 2; i++) {
        hn_dim d;
        HN_TRY(hn_op_want_same(c, 0, i, dg));
        HN_TRY(hn_op_want_rank(c, i, 3, dg));
        if (c->in[i].dim[0] != 1) HN_TRY(hn_op_want_meet(c, 0, 0, i, 0, NULL, dg));
        HN_TRY(hn_op_want_meet(c, 0, 2, i, 1, NULL, dg));
        if (!hn_op_meet(c, c->in[i].dim[2], hn_dim_floordiv(c->syms, r, 2), &d))
            return HN_RAISE(dg, HONE_E_SHAPE,
                            "operand %d holds %lld angles where half the rotary features are needed", i,
                            (long long)(hn_op_known(c, c->in[i].dim[2], &half) ? half : -1));
    }
    if (hn_op_known(c, r, &n) && n % 2)
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld rotary features do not pair up", (long long)n);
    if (given && hn_op_known(c, c->in[0].dim[3], &have) && given > have)
        return HN_RAISE(dg, HONE_E_SHAPE, "rotary_dim %lld exceeds the %lld features", (long long)given,
                        (long long)have);
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *x = in[0].type.dim, given = hn_call_i(c, "rotary_dim"), r = given ? given : x[3],
                  half = r / 2;
    const bool pairs = hn_call_i(c, "interleaved") != 0;

    (void)dg;
    for (int64_t n = 0; n < x[0] * x[1] * x[2]; n++) {
        const int64_t s = n % x[2], b = in[1].type.dim[0] == 1 ? 0 : n / x[2] / x[1];
        const double *from = in[0].f + n * x[3];
        double *to = out[0].f + n * x[3];
        for (int64_t i = 0; i < half; i++) {
            const double cs = in[1].f[(b * x[2] + s) * half + i];
            const double sn = in[2].f[((in[2].type.dim[0] == 1 ? 0 : n / x[2] / x[1]) * x[2] + s) * half + i];
            const int64_t u = pairs ? 2 * i : i, v = pairs ? 2 * i + 1 : half + i;
            to[u] = from[u] * cs - from[v] * sn;
            to[v] = from[u] * sn + from[v] * cs;
        }
        for (int64_t i = r; i < x[3]; i++)
            to[i] = from[i];
    }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    ret->flops = 3 * hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = x_up(b, hn_in(n, 0)), *cs = x_unsqueeze(b, x_up(b, hn_in(n, 1)), 1);
    hn_value *sn = x_unsqueeze(b, x_up(b, hn_in(n, 2)), 1), *y;
    const hn_tdesc t = hn_in(n, 0)->type;
    const int64_t given = hn_attr_i(n, "rotary_dim");
    const hn_dim r = given ? given : t.dim[3], half = hn_dim_floordiv(b->g->syms, r, 2);
    const bool pairs = hn_attr_i(n, "interleaved") != 0;

    hn_value *u = pairs ? x_slice_step(b, x, 3, 0, 2, half) : hn_slice(b, x, 3, 0, half);
    hn_value *v = pairs ? x_slice_step(b, x, 3, 1, 2, half) : hn_slice(b, x, 3, half, half);
    hn_value *u2 = x_sub(b, x_mul(b, u, cs), x_mul(b, v, sn));
    hn_value *v2 = x_add(b, x_mul(b, u, sn), x_mul(b, v, cs));
    if (pairs) {
        const hn_dim flat[4] = {t.dim[0], t.dim[1], t.dim[2], r};
        y = hn_reshape(b, x_concat2(b, x_unsqueeze(b, u2, 4), x_unsqueeze(b, v2, 4), 4), 4, flat);
    } else {
        y = x_concat2(b, u2, v2, 3);
    }
    if (r != t.dim[3]) y = x_concat2(b, y, hn_slice(b, x, 3, r, x_dsub(b, t.dim[3], r)), 3);
    out[0] = x_cast(b, y, t.dtype);
    return x_done(b);
}

/* Two products and their sum, which may cancel: 3 roundings of values of the size of the operands. */
const hn_op_def hn_op_rotary = {
    HN_OP_ID(rotary, 3, 3, 1, 1),
    .doc = "rotary position embedding",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT("interleaved", 0), HN_S_INT("rotary_dim", 0)),
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = expand,
    .tol = HN_OP_TOL_SUM(3, 6),
};
