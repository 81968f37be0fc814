/*
 * Moves between channels and space, on [n,c,h,w]:
 *
 *     depth_to_space {block = k, mode dcr|crd}   [n, c, h, w] -> [n, c/k^2, h k, w k]
 *         dcr: channel (i k + j) c' + p goes to block cell (i, j) of channel p; crd: channel (p k + i) k + j
 *     space_to_depth {block = k}                 [n, c, h, w] -> [n, c k^2, h/k, w/k]: the inverse of dcr
 *     reorder                                    the same value in another physical layout
 */
#include "op/expand_int.h"

enum { BLOCK, MODE };

static hone_status check(const hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 4, dg));
    return hn_op_want_attr(c, BLOCK, 1, 1 << 15, dg);
}

static hone_status divides(const hn_call *c, int axis, int64_t by, hn_diag *dg)
{
    int64_t n;

    if (hn_op_known(c, c->in[0].dim[axis], &n) && n % by)
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %d of extent %lld does not split into %lld", axis,
                        (long long)n, (long long)by);
    return HONE_OK;
}

static hone_status infer_dts(hn_call *c, hn_diag *dg)
{
    HN_TRY(check(c, dg));
    const int64_t k = hn_call_i(c, "block");
    HN_TRY(divides(c, 1, k * k, dg));
    c->out[0] = c->in[0];
    c->out[0].dim[1] = hn_dim_floordiv(c->syms, c->in[0].dim[1], k * k);
    c->out[0].dim[2] = hn_dim_mul(c->syms, c->in[0].dim[2], k);
    c->out[0].dim[3] = hn_dim_mul(c->syms, c->in[0].dim[3], k);
    return HONE_OK;
}

static hone_status infer_std(hn_call *c, hn_diag *dg)
{
    HN_TRY(check(c, dg));
    const int64_t k = hn_call_i(c, "block");
    HN_TRY(divides(c, 2, k, dg));
    HN_TRY(divides(c, 3, k, dg));
    c->out[0] = c->in[0];
    c->out[0].dim[1] = hn_dim_mul(c->syms, c->in[0].dim[1], k * k);
    c->out[0].dim[2] = hn_dim_floordiv(c->syms, c->in[0].dim[2], k);
    c->out[0].dim[3] = hn_dim_floordiv(c->syms, c->in[0].dim[3], k);
    return HONE_OK;
}

/* Element `to` of the output is element `from` of the input; both working forms are 8 bytes wide. */
static void move(const hn_view *in, hn_view *out, int64_t from, int64_t to)
{
    memcpy(&out->i[to], &in->i[from], sizeof out->i[to]);
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool to_space = c->op->id == HN_OP_depth_to_space;
    const bool crd = to_space && hn_call_i(c, "mode") == 1;
    const int64_t k = hn_call_i(c, "block");
    const int64_t *deep = to_space ? in[0].type.dim : out[0].type.dim; /* the view with more channels */
    const int64_t few = deep[1] / (k * k), h = deep[2], w = deep[3];

    (void)dg;
    for (int64_t e = 0; e < in[0].numel; e++) {
        const int64_t x = e % w, y = e / w % h, ch = e / w / h % deep[1], n = e / w / h / deep[1];
        const int64_t cell = crd ? ch % (k * k) : ch / few, p = crd ? ch / (k * k) : ch % few;
        const int64_t wide = ((n * few + p) * h * k + y * k + cell / k) * w * k + x * k + cell % k;
        if (to_space)
            move(in, out, e, wide);
        else
            move(in, out, wide, e);
    }
    return HONE_OK;
}

static hone_status expand_dts(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const int64_t k = hn_attr_i(n, "block"), dcr_perm[6] = {0, 3, 4, 1, 5, 2},
                  crd_perm[6] = {0, 1, 4, 2, 5, 3};
    const bool crd = hn_attr_i(n, "mode") == 1;
    const hn_dim *o = hn_out(n, 0)->type.dim, *d = x->type.dim;
    const hn_dim dcr_dim[6] = {d[0], k, k, o[1], d[2], d[3]}, crd_dim[6] = {d[0], o[1], k, k, d[2], d[3]};

    hn_value *y = hn_transpose(b, hn_reshape(b, x, 6, crd ? crd_dim : dcr_dim), crd ? crd_perm : dcr_perm);
    out[0] = hn_reshape(b, y, 4, o);
    return x_done(b);
}

static hone_status expand_std(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const int64_t k = hn_attr_i(n, "block"), perm[6] = {0, 3, 5, 1, 2, 4};
    const hn_dim *o = hn_out(n, 0)->type.dim, *d = x->type.dim;
    const hn_dim split[6] = {d[0], d[1], o[2], k, o[3], k};

    out[0] = hn_reshape(b, hn_transpose(b, hn_reshape(b, x, 6, split), perm), 4, o);
    return x_done(b);
}

static hone_status ref_reorder(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c;
    (void)dg;
    for (int64_t i = 0; i < in[0].numel; i++)
        move(in, out, i, i);
    return HONE_OK;
}

const hn_op_def hn_op_depth_to_space = {
    HN_OP_ID(depth_to_space, 1, 1, 1, 1),
    .doc = "channels into square blocks of pixels",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT_REQ("block"), HN_S_ENUM("mode", 0, "dcr|crd")),
    .infer = infer_dts,
    .ref = ref,
    .work = hn_op_work_move,
    .expand = expand_dts,
};

const hn_op_def hn_op_space_to_depth = {
    HN_OP_ID(space_to_depth, 1, 1, 1, 1),
    .doc = "square blocks of pixels into channels",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT_REQ("block")),
    .infer = infer_std,
    .ref = ref,
    .work = hn_op_work_move,
    .expand = expand_std,
};

/* No expansion: it is what the layout choice inserts, and a copy is always there to run it. */
const hn_op_def hn_op_reorder = {
    HN_OP_ID(reorder, 1, 1, 1, 1), .doc = "the same value in another physical layout",
    .traits = HN_TRAIT_PURE,       .infer = hn_op_infer_same,
    .content = hn_op_content_same, .ref = ref_reorder,
    .work = hn_op_work_move,
};
