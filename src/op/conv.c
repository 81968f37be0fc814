/*
 * conv: y[n, m, o] = bias[m] + sum over c, k of x[n, c, o * stride + k * dilation - pad] * w[m, c, k], zero
 * in the padding; the channels of group j of x meet the filters of group j only. conv_int: the same on 8-bit
 * integers less their zero points, into i32; padding there is the zero point, so that it counts as zero.
 */
#include "op/window.h"

enum { STRIDE, DILATION, PAD_BEGIN, PAD_END, GROUP };
static const hn_window_attrs AT = { STRIDE, DILATION, PAD_BEGIN, PAD_END };

/* ---- inference ---- */
static hone_status infer_axis(hn_call *c, int axis, hn_diag *dg)
{
    const hn_dim k = c->in[1].dim[2 + axis];
    const int64_t d = hn_window_dilation(c, AT, axis), s = hn_window_stride(c, AT, axis);
    hn_symtab *t = c->syms;
    int64_t v;

    /* floor((in + pads - ((k - 1) * dilation + 1)) / stride) + 1 */
    const hn_dim reach = hn_dim_mul(t, hn_dim_sub(t, k, 1), d);
    const hn_dim room =
        hn_dim_sub(t, hn_dim_add(t, c->in[0].dim[2 + axis], hn_window_pads(c, AT, axis)), reach);
    const hn_dim out = hn_dim_add(t, hn_dim_floordiv(t, hn_dim_sub(t, room, 1), s), 1);
    if (hn_op_known(c, room, &v) && v < 1)
        return HN_RAISE(dg, HONE_E_SHAPE,
                        "the kernel reaches %lld elements beyond the padded input on spatial axis %d",
                        (long long)(1 - v), axis);
    if (!hn_op_known(c, room, &v)) hn_op_promise(c, 1, room, /* at_most= */ true);
    c->out[0].dim[2 + axis] = out;
    return HONE_OK;
}

static hone_status infer_channels(const hn_call *c, hn_diag *dg)
{
    const int64_t group = c->attr[GROUP].i;
    int64_t cx, cw, m;

    if (group < 1)
        return HN_RAISE(dg, HONE_E_SHAPE, "group is %lld; it must be at least 1", (long long)group);
    if (hn_op_known(c, c->in[0].dim[1], &cx) && hn_op_known(c, c->in[1].dim[1], &cw) &&
        (cx % group != 0 || cw != cx / group))
        return HN_RAISE(dg, HONE_E_SHAPE,
                        "the input has %lld channels but the filters take %lld in %lld groups", (long long)cx,
                        (long long)cw, (long long)group);
    (void)hn_op_meet(c, c->in[0].dim[1], hn_dim_mul(c->syms, c->in[1].dim[1], group), &(hn_dim){ 0 });
    if (hn_op_known(c, c->in[1].dim[0], &m) && m % group != 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld filters do not divide into %lld groups", (long long)m,
                        (long long)group);
    return HONE_OK;
}

static hone_status infer_conv(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_ranks(c, 0, 3, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_rank(c, 1, c->in[0].rank, dg));
    const int n = c->in[0].rank - 2;
    HN_TRY(hn_window_check(c, AT, n, dg));
    HN_TRY(infer_channels(c, dg));
    c->out[0].rank = n + 2;
    c->out[0].dim[0] = c->in[0].dim[0];
    c->out[0].dim[1] = c->in[1].dim[0];
    for (int i = 0; i < n; i++)
        HN_TRY(infer_axis(c, i, dg));
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    c->out[0].dtype = c->in[0].dtype;
    HN_TRY(infer_conv(c, dg));
    if (!hn_op_has(c, 2)) return HONE_OK;
    HN_TRY(hn_op_want_same(c, 0, 2, dg));
    HN_TRY(hn_op_want_rank(c, 2, 1, dg));
    return hn_op_want_meet(c, 2, 0, 1, 0, NULL, dg);
}

/* ---- reference: patches times filters, a block of output positions at a time ---- */
typedef struct conv_shape {
    int64_t batch, group, c, m; /* c, m: channels and filters of one group */
    hn_window w;
    int64_t block; /* output positions at a time: the patches of a block stay near 1 MB */
} conv_shape;

static hone_status shape_of(const hn_call *c, const hn_view *in, const hn_view *out, conv_shape *s,
                            hn_diag *dg)
{
    HN_TRY(hn_window_of(c, AT, &in[0].type, &out[0].type, in[1].type.dim + 2, &s->w, dg));
    s->batch = in[0].type.dim[0];
    s->group = c->attr[GROUP].i;
    s->c = in[1].type.dim[1];
    s->m = in[1].type.dim[0] / s->group;
    s->block = HN_MAX(64, (1 << 17) / HN_MAX(s->c * s->w.n_k, 1));
    s->block = HN_MIN(s->block, HN_MAX(s->w.n_out, 1));
    return HONE_OK;
}

/* y starts as the bias; x [batch, group*c, in], w [group*m, c, k], y [batch, group*m, out]. */
static void convolve(const conv_shape *s, const double *x, const double *w, double *patches, double *y)
{
    const int64_t depth = s->c * s->w.n_k;

    for (int64_t g = 0; g < s->batch * s->group; g++) {
        const double *wg = w + g % s->group * s->m * depth;
        for (int64_t at = 0; at < s->w.n_out; at += s->block) {
            const int64_t n = HN_MIN(s->block, s->w.n_out - at);
            hn_window_patches(&s->w, x + g * s->c * s->w.n_in, s->c, at, n, patches);
            hn_op_gemm(s->m, n, depth, wg, depth, 1, patches, n, y + g * s->m * s->w.n_out + at, s->w.n_out);
        }
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    conv_shape s;
    void *patches;

    HN_TRY(shape_of(c, in, out, &s, dg));
    HN_TRY(hn_op_scratch(s.c * s.w.n_k * s.block, sizeof(double), &patches, dg));
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].f[i] = hn_op_has(c, 2) ? in[2].f[i / s.w.n_out % (s.group * s.m)] : 0;
    convolve(&s, in[0].f, in[1].f, patches, out[0].f);
    free(patches);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    double taps = 1;

    for (int i = 1; i < c->in[1].rank; i++)
        taps *= hn_op_extent(c, c->in[1].dim[i]);
    *ret = (hn_work){ .flops = 2 * taps * hn_op_count(c, &c->out[0]), .bytes = hn_op_bytes(c) };
}

#define CONV_ATTRS                                                                                           \
    HN_OP_ATTRS(HN_S_INTS("stride"), HN_S_INTS("dilation"), HN_S_DIMS("pad_begin"), HN_S_DIMS("pad_end"),    \
                HN_S_INT("group", 1))

const hn_op_def hn_op_conv = {
    HN_OP_ID(conv, 2, 3, 1, 1),
    .doc = "convolution (correlation) over the spatial axes of [n, c, s...]",
    .traits = HN_TRAIT_PURE,
    CONV_ATTRS,
    .infer = infer,
    .ref = ref,
    .work = work,
    .tol = HN_OP_TOL_SUM(64, 2048), /* as reduce_sum, whose terms the products are */
};

/* ---- conv_int ---- */
static hone_status check_zero(const hn_call *c, int zero, int of, hn_diag *dg)
{
    if (!hn_op_has(c, zero)) return HONE_OK;
    HN_TRY(hn_op_want_same(c, zero, of, dg));
    if (zero == 2) return hn_op_want_scalar(c, zero, dg);
    HN_TRY(hn_op_want_ranks(c, zero, 0, 1, dg));
    if (c->in[zero].rank == 0 ||
        hn_op_broadcasts_to(c, &c->in[zero], &(hn_tdesc){ .rank = 1, .dim = { c->in[1].dim[0] } }))
        return HONE_OK;
    return HN_RAISE(dg, HONE_E_SHAPE, "the filters' zero point needs one element or one per filter");
}

static hone_status infer_int(hn_call *c, hn_diag *dg)
{
    for (int i = 0; i < 2; i++) {
        HN_TRY(hn_op_want(c, i, dg));
        if (c->in[i].dtype != HN_I8 && c->in[i].dtype != HN_U8)
            return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where i8 or u8 is needed", i,
                            hn_dtype_name(c->in[i].dtype));
    }
    c->out[0].dtype = HN_I32;
    HN_TRY(infer_conv(c, dg));
    HN_TRY(check_zero(c, 2, 0, dg));
    return check_zero(c, 3, 1, dg);
}

static hone_status ref_int(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t zx = hn_op_has(c, 2) ? in[2].i[0] : 0;
    const bool per_filter = hn_op_has(c, 3) && in[3].numel > 1;
    conv_shape s;
    void *scratch;

    HN_TRY(shape_of(c, in, out, &s, dg));
    const int64_t depth = s.c * s.w.n_k;
    HN_TRY(hn_op_scratch(in[0].numel + in[1].numel + out[0].numel + depth * s.block, sizeof(double), &scratch,
                         dg));
    double *x = scratch, *w = x + in[0].numel, *y = w + in[1].numel, *patches = y + out[0].numel;
    for (int64_t i = 0; i < in[0].numel; i++)
        x[i] = (double)(in[0].i[i] - zx);
    for (int64_t i = 0; i < in[1].numel; i++)
        w[i] = (double)(in[1].i[i] - (hn_op_has(c, 3) ? in[3].i[per_filter ? i / depth : 0] : 0));
    convolve(&s, x, w, patches, y);
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].i[i] = (int64_t)y[i]; /* exact: sums of 17-bit products stay far below 2^53 */
    free(scratch);
    return HONE_OK;
}

const hn_op_def hn_op_conv_int = {
    HN_OP_ID(conv_int, 2, 4, 1, 1),
    .doc = "convolution of 8-bit integers less their zero points, in i32",
    .traits = HN_TRAIT_PURE,
    CONV_ATTRS,
    .infer = infer_int,
    .ref = ref_int,
    .work = work,
};
