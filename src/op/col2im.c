/*
 * Scatters of known pattern back into an image.
 *
 *     col2im (x [n, c*prod(block), l]) {image, block, stride, dilation, pad_begin, pad_end} -> [n, c,
 * image...] Column j holds the block at output position j of the matching im2col; overlapping elements add
 * up. max_unpool (x, index i64 as x) {dim} -> y of extents dim y[index] = x with index counting through all
 * of y row-major, 0 elsewhere; of equal indices the last wins.
 */
#include "op/expand_int.h"

enum { CI_IMAGE, CI_BLOCK, CI_STRIDE, CI_DILATION, CI_PAD_BEGIN, CI_PAD_END };
enum { MU_DIM };

/* ---- col2im ---- */

typedef struct fold {
    int k; /* spatial axes */
    int64_t block[HN_MAX_RANK], stride[HN_MAX_RANK], dilation[HN_MAX_RANK], begin[HN_MAX_RANK],
        end[HN_MAX_RANK];
    int64_t block_size;                            /* product of block */
    hn_dim image[HN_MAX_RANK], count[HN_MAX_RANK]; /* block positions along each axis */
} fold;

static int64_t entry(const int64_t *list, int n, int i, int64_t dflt)
{
    return i < n ? list[i] : dflt;
}

static hone_status list_fits(const hn_call *c, const char *name, int k, hn_diag *dg)
{
    int n;
    (void)hn_call_is(c, name, &n);
    if (n != 0 && n != k) return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" has %d entries for %d axes", name, n, k);
    return HONE_OK;
}

typedef const int64_t *(*list_of)(const void *from, const char *name, int *ret_n);
static const int64_t *of_call(const void *c, const char *name, int *ret_n)
{
    return hn_call_is(c, name, ret_n);
}
static const int64_t *of_node(const void *n, const char *name, int *ret_n)
{
    return hn_attr_is(n, name, ret_n);
}

static void fold_of(hn_symtab *t, list_of get, const void *from, fold *f)
{
    int n_image, n[5];
    const hn_dim *image = get(from, "image", &n_image);
    const int64_t *block = get(from, "block", &n[0]), *stride = get(from, "stride", &n[1]);
    const int64_t *dilation = get(from, "dilation", &n[2]);
    const int64_t *begin = get(from, "pad_begin", &n[3]), *end = get(from, "pad_end", &n[4]);

    *f = (fold){.k = n_image, .block_size = 1};
    for (int i = 0; i < f->k; i++) {
        f->image[i] = image[i];
        f->block[i] = entry(block, n[0], i, 1);
        f->stride[i] = entry(stride, n[1], i, 1);
        f->dilation[i] = entry(dilation, n[2], i, 1);
        f->begin[i] = entry(begin, n[3], i, 0);
        f->end[i] = entry(end, n[4], i, 0);
        f->block_size *= f->block[i];
        const int64_t slack = f->begin[i] + f->end[i] - f->dilation[i] * (f->block[i] - 1) - 1;
        const hn_dim room = hn_dim_add(t, image[i], hn_dim_const(t, slack));
        f->count[i] = hn_dim_add(t, hn_dim_floordiv(t, room, f->stride[i]), 1);
    }
}

static hone_status check_fold(const hn_call *c, int k, hn_diag *dg)
{
    static const char *const lists[] = {"stride", "dilation", "pad_begin", "pad_end"};
    int n;
    const int64_t *block = hn_call_is(c, "block", &n);

    if (k < 1 || k > HN_MAX_RANK - 2 || n != k)
        return HN_RAISE(dg, HONE_E_SHAPE, "an image of %d axes and blocks of %d do not fit", k, n);
    for (int i = 0; i < k; i++)
        if (block[i] < 1)
            return HN_RAISE(dg, HONE_E_SHAPE, "block extent %lld is not positive", (long long)block[i]);
    for (int l = 0; l < 4; l++) {
        HN_TRY(list_fits(c, lists[l], k, dg));
        const int64_t *v = hn_call_is(c, lists[l], &n);
        for (int i = 0; i < n; i++)
            if (v[i] < (l < 2 ? 1 : 0))
                return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" holds %lld", lists[l], (long long)v[i]);
    }
    return HONE_OK;
}

static hone_status infer_col2im(hn_call *c, hn_diag *dg)
{
    hn_tdesc image = {0};
    hn_dim columns = 1, d;
    int64_t channels;
    fold f;

    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 3, dg));
    HN_TRY(hn_op_dims_attr(c, CI_IMAGE, &image, dg));
    HN_TRY(check_fold(c, image.rank, dg));
    fold_of(c->syms, of_call, c, &f);
    for (int i = 0; i < f.k; i++)
        columns = hn_dim_mul(c->syms, columns, f.count[i]);
    if (!hn_op_meet(c, c->in[0].dim[2], columns, &d))
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld columns where the image has %lld block positions",
                        (long long)c->in[0].dim[2], (long long)columns);
    if (hn_op_known(c, c->in[0].dim[1], &channels) && channels % f.block_size)
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld rows do not split into blocks of %lld", (long long)channels,
                        (long long)f.block_size);
    c->out[0] = (hn_tdesc){c->in[0].dtype, 2 + f.k, {c->in[0].dim[0], 0}};
    c->out[0].dim[1] = hn_dim_floordiv(c->syms, c->in[0].dim[1], f.block_size);
    for (int i = 0; i < f.k; i++)
        c->out[0].dim[2 + i] = image.dim[i];
    return HONE_OK;
}

/* Where element `cell` of the block at position `column` lies in one image plane; -1 in the padding. */
static int64_t fold_at(const fold *f, int64_t cell, int64_t column)
{
    int64_t at = 0, stride = 1;

    for (int i = f->k - 1; i >= 0; i--) {
        const int64_t p =
            column % f->count[i] * f->stride[i] + cell % f->block[i] * f->dilation[i] - f->begin[i];
        if (p < 0 || p >= f->image[i]) return -1;
        at += p * stride;
        stride *= f->image[i];
        column /= f->count[i];
        cell /= f->block[i];
    }
    return at;
}

static hone_status ref_col2im(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *d = in[0].type.dim;
    int64_t plane = 1;
    fold f;

    (void)dg;
    fold_of(c->syms, of_call, c, &f);
    for (int i = 0; i < f.k; i++)
        plane *= f.image[i];
    memset(out[0].f, 0, (size_t)out[0].numel * sizeof(double)); /* 0 in both working forms */
    for (int64_t e = 0; e < in[0].numel; e++) {
        const int64_t column = e % d[2], cell = e / d[2] % f.block_size,
                      ch = e / d[2] / f.block_size; /* image and channel */
        const int64_t at = fold_at(&f, cell, column);
        if (at < 0) continue;
        if (hn_dtype_is_float(in[0].type.dtype))
            out[0].f[ch * plane + at] += in[0].f[e];
        else
            out[0].i[ch * plane + at] = (int64_t)((uint64_t)out[0].i[ch * plane + at] + (uint64_t)in[0].i[e]);
    }
    return HONE_OK;
}

static void work_col2im(const hn_call *c, hn_work *ret)
{
    ret->flops = hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

/*
 * x4 [n, cells, counts] as a transposed convolution whose filters are the unit vectors: channel j of a block goes to its
 * cell j and nowhere else.
 */
static hn_value *x_fold_by_filters(hn_builder *b, hn_value *x4, const fold *f, hn_dtype t)
{
    int64_t filter[HN_MAX_RANK] = {f->block_size, 1}, none[HN_MAX_RANK] = {0};
    double *unit = HN_NEW_N(b->g->arena, double, f->block_size *f->block_size);

    if (!unit) return NULL;
    for (int64_t i = 0; i < f->block_size; i++)
        unit[i * f->block_size + i] = 1;
    for (int i = 0; i < f->k; i++)
        filter[2 + i] = f->block[i];
    hn_value *y = hn_b2(b, HN_OP_conv_transpose, x4, hn_const_fs(b, t, 2 + f->k, filter, unit),
                        HN_ATTRS_ARG(HN_A_IS("stride", f->k, f->stride), HN_A_IS("dilation", f->k, f->dilation),
                                     HN_A_DIMS("pad_begin", f->k, f->begin), HN_A_DIMS("pad_end", f->k, none)));
    /* Crop the end padding, or pad: strides may leave a rest of the image that no block reaches. */
    for (int i = 0; y && i < f->k; i++)
        y = x_pad0(b, y, 2 + i, 0, x_dsub(b, f->image[i], y->type.dim[2 + i]));
    return y;
}

/* One cell of all blocks, [n, 1, counts], where it goes: its elements a stride apart in [n, 1, image]. */
static hn_value *x_cell_in_image(hn_builder *b, hn_value *x, const fold *f, const int64_t *cell)
{
    for (int i = 0; x && i < f->k; i++) {
        const int axis = 2 + i;
        hn_dim apart[HN_MAX_RANK];
        if (f->stride[i] > 1) {
            x = x_pad0(b, x_unsqueeze(b, x, axis + 1), axis + 1, 0, f->stride[i] - 1);
            for (int k = 0; x && k < x->type.rank - 1; k++)
                apart[k] = k < axis    ? x->type.dim[k]
                           : k == axis ? x_dmul(b, x->type.dim[k], f->stride[i])
                                       : x->type.dim[k + 1];
            x = x ? hn_reshape(b, x, x->type.rank - 1, apart) : NULL;
        }
        const hn_dim before = hn_dim_const(b->g->syms, cell[i] * f->dilation[i] - f->begin[i]);
        if (x) x = x_pad0(b, x, axis, before, x_dsub(b, f->image[i], x_dadd(b, x->type.dim[axis], before)));
    }
    return x;
}

/* The same as a sum over cells: no 0 of a filter meets an infinity. */
static hn_value *x_fold_by_cells(hn_builder *b, hn_value *x4, const fold *f)
{
    hn_value *sum = NULL;

    for (int64_t c = 0; c < f->block_size; c++) {
        int64_t cell[HN_MAX_RANK], rest = c;
        for (int i = f->k - 1; i >= 0; i--) {
            cell[i] = rest % f->block[i];
            rest /= f->block[i];
        }
        hn_value *part = x_cell_in_image(b, hn_slice(b, x4, 1, c, 1), f, cell);
        sum = sum ? x_add(b, sum, part) : part;
    }
    return sum;
}

/* A cell is a node or three, so that very large blocks take the filters. Convolution is for floats: integers of up to 32
 * bits go through f64, which adds them exactly. */
enum { MOST_CELLS = 64 };

static hone_status expand_col2im(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc x = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const hn_dtype t = hn_dtype_is_float(x.dtype) ? x_ctype(x.dtype) : HN_F64;
    hn_dim cols[HN_MAX_RANK];
    fold f;

    fold_of(b->g->syms, of_node, n, &f);
    cols[0] = x_dmul(b, to.dim[0], to.dim[1]);
    cols[1] = f.block_size;
    for (int i = 0; i < f.k; i++)
        cols[2 + i] = f.count[i];
    hn_value *x4 = hn_reshape(b, x_cast(b, hn_in(n, 0), t), 2 + f.k, cols);
    hn_value *y = f.block_size <= MOST_CELLS ? x_fold_by_cells(b, x4, &f) : x_fold_by_filters(b, x4, &f, t);
    out[0] = x_cast(b, hn_reshape(b, y, to.rank, to.dim), x.dtype);
    return x_done(b);
}

/* ---- max_unpool ---- */

static hone_status infer_unpool(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_dtype(c, 1, HN_I64, dg));
    HN_TRY(hn_op_want_rank(c, 1, c->in[0].rank, dg));
    for (int i = 0; i < c->in[0].rank; i++)
        HN_TRY(hn_op_want_meet(c, 0, i, 1, i, NULL, dg));
    HN_TRY(hn_op_want_list(c, MU_DIM, c->in[0].rank, dg));
    c->out[0].dtype = c->in[0].dtype;
    return hn_op_dims_attr(c, MU_DIM, &c->out[0], dg);
}

static hone_status ref_unpool(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c;
    memset(out[0].f, 0, (size_t)out[0].numel * sizeof(double));
    for (int64_t e = 0; e < in[0].numel; e++) {
        const int64_t at = in[1].i[e] < 0 ? in[1].i[e] + out[0].numel : in[1].i[e];
        if (at < 0 || at >= out[0].numel)
            return HN_RAISE(dg, HONE_E_MODEL, "index %lld is outside the %lld elements of the result",
                            (long long)in[1].i[e], (long long)out[0].numel);
        memcpy(&out[0].f[at], &in[0].f[e], sizeof(double));
    }
    return HONE_OK;
}

static hone_status expand_unpool(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc x = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const hn_dim have = x_dprod(b, &x, 0, x.rank), want = x_dprod(b, &to, 0, to.rank);
    hn_value *flat = hn_reshape(b, hn_in(n, 0), 1, &have), *index = hn_reshape(b, hn_in(n, 1), 1, &have);
    hn_value *y = hn_b3(b, HN_OP_scatter_elements, x_full(b, x.dtype, 1, &want, 0), index, flat,
                        HN_ATTRS_ARG(HN_A_I("axis", 0)));

    out[0] = hn_reshape(b, y, to.rank, to.dim);
    return x_done(b);
}

/* An element sums at most prod(block) values within [-1, 1]. */
const hn_op_def hn_op_col2im = {
    HN_OP_ID(col2im, 1, 1, 1, 1),
    .doc = "add columns of blocks back into an image",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_DIMS_REQ("image"), HN_S_INTS_REQ("block"), HN_S_INTS("stride"), HN_S_INTS("dilation"),
                HN_S_INTS("pad_begin"), HN_S_INTS("pad_end")),
    .infer = infer_col2im,
    .ref = ref_col2im,
    .work = work_col2im,
    .expand = expand_col2im,
    .tol = HN_OP_TOL_SUM(8, 64),
};

/* Moves elements: exact. */
const hn_op_def hn_op_max_unpool = {
    HN_OP_ID(max_unpool, 2, 2, 1, 1),
    .doc = "put pooled elements back where their indices say",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_DIMS_REQ("dim")),
    .infer = infer_unpool,
    .ref = ref_unpool,
    .work = hn_op_work_move,
    .expand = expand_unpool,
};
