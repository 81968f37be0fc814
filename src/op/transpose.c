/* y[i[perm[0]], i[perm[1]], ...] = x[i]: axis k of the result is axis perm[k] of the operand. */
#include "op/op_int.h"

enum { PERM };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const int64_t *perm = c->attr[PERM].is;
    unsigned seen = 0;

    HN_TRY(hn_op_want(c, 0, dg));
    const int rank = c->in[0].rank;
    HN_TRY(hn_op_want_list(c, PERM, rank, dg));
    c->out[0].dtype = c->in[0].dtype;
    c->out[0].rank = rank;
    for (int i = 0; i < rank; i++) {
        if (perm[i] < 0 || perm[i] >= rank || (seen >> perm[i] & 1))
            return HN_RAISE(dg, HONE_E_SHAPE, "perm is no permutation of 0 to %d: entry %d is %lld", rank - 1,
                            i, (long long)perm[i]);
        seen |= 1U << perm[i];
        c->out[0].dim[i] = c->in[0].dim[perm[i]];
    }
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int64_t own[HN_MAX_RANK], stride[HN_MAX_RANK] = { 0 };
    hn_walk w;
    (void)dg;

    hn_op_strides(&in[0].type, own);
    for (int i = 0; i < out[0].type.rank; i++)
        stride[i] = own[c->attr[PERM].is[i]];
    hn_walk_init(&w, &out[0].type);
    hn_walk_add_strided(&w, 0, stride);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            out[0].i[w.pos + i] = in[0].i[w.at[0] + i * w.step[0]];
    return HONE_OK;
}

const hn_op_def hn_op_transpose = {
    HN_OP_ID(transpose, 1, 1, 1, 1),
    .doc = "axes in another order",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW,
    HN_OP_ATTRS(HN_S_INTS("perm")),
    .infer = infer,
    .content = hn_op_content_same, /* of rank 1 or 0: nothing moves */
    .ref = ref,
    .work = hn_op_work_move,
};
