/* Keeps the upper (j >= i + k) or lower (j <= i + k) triangle of the last two axes; the rest becomes zero. */
#include "op/op_int.h"

enum { UPPER, K };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int rank = in[0].type.rank;
    const int64_t rows = in[0].type.dim[rank - 2], cols = in[0].type.dim[rank - 1];
    const bool upper = c->attr[UPPER].i;
    int64_t k;

    HN_TRY(hn_op_dim_known(c, K, &k, dg));
    /* Beyond the matrix every k acts alike; clamping keeps i + k from overflowing. */
    k = HN_MAX(HN_MIN(k, cols), -rows);
    for (int64_t o = 0; o < out[0].numel; o++) {
        const int64_t i = o / cols % rows, j = o % cols;
        out[0].i[o] = (upper ? j >= i + k : j <= i + k) ? in[0].i[o] : 0;
    }
    return HONE_OK;
}

const hn_op_def hn_op_diag_mask = {
    HN_OP_ID(diag_mask, 1, 1, 1, 1),
    .doc = "one triangle of each matrix, zero elsewhere",
    .traits = HN_TRAIT_PURE | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_INT("upper", 1), HN_S_DIM("k", 0)),
    .infer = infer,
    .ref = ref,
    .work = hn_op_work_move,
};
