/* Views that keep or repeat whole elements in order: reshape and broadcast; and dims, which makes shapes
 * values. */
#include "op/op_int.h"

enum { DIM };

/* ---- reshape ---- */
static hone_status infer_reshape(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_dims_attr(c, DIM, &c->out[0], dg));
    c->out[0].dtype = c->in[0].dtype;
    const int64_t have = hn_tdesc_numel_static(&c->in[0]), want = hn_tdesc_numel_static(&c->out[0]);
    if (have >= 0 && want >= 0 && have != want)
        return HN_RAISE(dg, HONE_E_SHAPE, "a tensor of %lld elements does not reshape to %lld",
                        (long long)have, (long long)want);
    return HONE_OK;
}

static hone_status ref_reshape(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c;
    if (in[0].numel != out[0].numel)
        return HN_RAISE(dg, HONE_E_SHAPE, "a tensor of %lld elements does not reshape to %lld",
                        (long long)in[0].numel, (long long)out[0].numel);
    memcpy(out[0].i, in[0].i, (size_t)out[0].numel * sizeof(int64_t));
    return HONE_OK;
}

const hn_op_def hn_op_reshape = {
    HN_OP_ID(reshape, 1, 1, 1, 1),
    .doc = "the same elements in another shape",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_DIMS("dim")),
    .infer = infer_reshape,
    .content = hn_op_content_same,
    .ref = ref_reshape,
    .work = hn_op_work_move,
};

/* ---- broadcast ---- */
static hone_status infer_broadcast(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_dims_attr(c, DIM, &c->out[0], dg));
    c->out[0].dtype = c->in[0].dtype;
    if (!hn_op_broadcasts_to(c, &c->in[0], &c->out[0]))
        return HN_RAISE(dg, HONE_E_SHAPE,
                        "the operand's shape of rank %d does not broadcast to the one asked for",
                        c->in[0].rank);
    return HONE_OK;
}

static hone_status ref_broadcast(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    hn_walk w;

    if (!hn_op_broadcasts_to(c, &in[0].type, &out[0].type))
        return HN_RAISE(dg, HONE_E_SHAPE, "the operand's shape does not broadcast to the one asked for");
    hn_walk_init(&w, &out[0].type);
    hn_walk_add(&w, &in[0].type);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            out[0].i[w.pos + i] = in[0].i[w.at[0] + i * w.step[0]];
    return HONE_OK;
}

static bool content_broadcast(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    int64_t n;

    if (!hn_op_content_same(c, out, ret, ret_n)) return false;
    if (c->out[0].rank == 0) return true;
    if (!hn_op_known(c, c->out[0].dim[0], &n) || n > 64 || (n != *ret_n && *ret_n != 1)) return false;
    for (int i = *ret_n; i < (int)n; i++)
        ret[i] = ret[0];
    *ret_n = (int)n;
    return true;
}

const hn_op_def hn_op_broadcast = {
    HN_OP_ID(broadcast, 1, 1, 1, 1),
    .doc = "x repeated along its axes of extent 1 and new leading axes",
    .traits = HN_TRAIT_PURE | HN_TRAIT_VIEW,
    HN_OP_ATTRS(HN_S_DIMS("dim")),
    .infer = infer_broadcast,
    .content = content_broadcast,
    .ref = ref_broadcast,
    .work = hn_op_work_move,
};

/* ---- dims ---- */
static hone_status infer_dims(hn_call *c, hn_diag *dg)
{
    (void)dg;
    c->out[0] = (hn_tdesc){ .dtype = HN_I64, .rank = 1, .dim = { c->attr[DIM].n } };
    return HONE_OK;
}

static hone_status ref_dims(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)in;
    return hn_op_dims_known(c, DIM, out[0].i, dg);
}

static bool content_dims(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    if (out != 0 || c->attr[DIM].n > 64) return false;
    *ret_n = c->attr[DIM].n;
    for (int i = 0; i < *ret_n; i++)
        ret[i] = c->attr[DIM].is[i];
    return true;
}

const hn_op_def hn_op_dims = {
    HN_OP_ID(dims, 0, HN_VARIADIC, 1, 1),
    .doc = "an i64 vector of dims; operands only pin the shapes they come from",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_DIMS("dim")),
    .infer = infer_dims,
    .content = content_dims,
    .ref = ref_dims,
};
