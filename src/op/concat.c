/* Operands one after the other along an axis; the other extents agree. */
#include "op/op_int.h"

enum { AXIS };

static hone_status join(hn_call *c, int i, int axis, hn_diag *dg)
{
    HN_TRY(hn_op_want_same(c, 0, i, dg));
    HN_TRY(hn_op_want_rank(c, i, c->in[0].rank, dg));
    for (int d = 0; d < c->in[0].rank; d++) {
        if (d == axis)
            c->out[0].dim[d] = hn_dim_add(c->syms, c->out[0].dim[d], c->in[i].dim[d]);
        else if (!hn_op_meet(c, c->out[0].dim[d], c->in[i].dim[d], &c->out[0].dim[d]))
            return HN_RAISE(dg, HONE_E_SHAPE,
                            "operand %d has extent %lld on axis %d where the others have %lld", i,
                            (long long)c->in[i].dim[d], d, (long long)c->out[0].dim[d]);
    }
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want(c, 0, dg));
    if (c->in[0].rank == 0) return HN_RAISE(dg, HONE_E_SHAPE, "scalars have no axis to concatenate along");
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    c->out[0] = c->in[0];
    for (int i = 1; i < c->n_in; i++)
        HN_TRY(join(c, i, axis, dg));
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;
    int64_t done = 0;

    HN_TRY(hn_op_want_axis(c, AXIS, out[0].type.rank, false, &axis, dg));
    const hn_split3 o = hn_op_split(&out[0].type, axis);
    for (int i = 0; i < c->n_in; i++) {
        const int64_t run = in[i].type.dim[axis] * o.inner;
        for (int64_t k = 0; k < o.outer; k++)
            memcpy(out[0].i + k * o.n * o.inner + done, in[i].i + k * run, (size_t)run * sizeof(int64_t));
        done += run;
    }
    return HONE_OK;
}

static bool content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim part[64];
    int n, total = 0;

    if (out != 0) return false;
    for (int i = 0; i < c->n_in; i++) {
        if (!hn_op_content(c, i, part, &n) || total + n > 64) return false;
        memcpy(ret + total, part, (size_t)n * sizeof(*part));
        total += n;
    }
    *ret_n = total;
    return true;
}

const hn_op_def hn_op_concat = {
    HN_OP_ID(concat, 1, HN_VARIADIC, 1, 1),
    .doc = "operands joined along an axis",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW,
    HN_OP_ATTRS(HN_S_INT_REQ("axis")),
    .infer = infer,
    .content = content,
    .ref = ref,
    .work = hn_op_work_move,
};
