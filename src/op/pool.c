/*
 * Pooling over the spatial axes of [n, c, s...]. The output extents are given: whoever builds the node has
 * applied the rounding mode. Padding never takes part in a maximum; a window that meets padding alone gives
 * the lowest value (max) or 0.
 */
#include "op/window.h"

enum { KERNEL, STRIDE, DILATION, PAD_BEGIN, PAD_END, CEIL_MODE, DIM, EXTRA };
static const hn_window_attrs AT = { STRIDE, DILATION, PAD_BEGIN, PAD_END };

/* ---- inference ---- */
static hone_status check_axis(const hn_call *c, int axis, hn_diag *dg)
{
    int64_t in, pads, out;

    HN_TRY(hn_op_want_extent(c, c->attr[DIM].is[axis], "an output extent", dg));
    if (!hn_op_known(c, c->in[0].dim[2 + axis], &in) || !hn_op_known(c, hn_window_pads(c, AT, axis), &pads) ||
        !hn_op_known(c, c->attr[DIM].is[axis], &out))
        return HONE_OK;
    in = HN_MIN(in, INT64_MAX / 2);
    if (out > 0 && (in + pads < 1 || out - 1 > (in + pads - 1) / hn_window_stride(c, AT, axis)))
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld windows on spatial axis %d run past the %lld padded elements",
                        (long long)out, axis, (long long)(in + pads));
    return HONE_OK;
}

static hone_status infer_pool(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_ranks(c, 0, 3, HN_MAX_RANK, dg));
    const int n = c->in[0].rank - 2;
    HN_TRY(hn_window_kernel(c, KERNEL, n, dg));
    HN_TRY(hn_op_want_list(c, DIM, n, dg));
    HN_TRY(hn_window_check(c, AT, n, dg));
    c->out[0] = c->in[0];
    for (int i = 0; i < n; i++) {
        HN_TRY(check_axis(c, i, dg));
        c->out[0].dim[2 + i] = c->attr[DIM].is[i];
    }
    return HONE_OK;
}

static hone_status infer_max(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(infer_pool(c, dg));
    if (c->n_out > 1) {
        c->out[1] = c->out[0];
        c->out[1].dtype = HN_I64;
    }
    return HONE_OK;
}

static hone_status infer_avg(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    return infer_pool(c, dg);
}

static hone_status infer_lp(hn_call *c, hn_diag *dg)
{
    HN_TRY(infer_avg(c, dg));
    return hn_op_want_attr(c, EXTRA, 1, INT32_MAX, dg);
}

/* ---- references ---- */
/* The window of one output position, clipped to the input: kernel positions [lo, hi) per axis meet elements.
 */
typedef struct clipped {
    int64_t lo[HN_MAX_RANK], hi[HN_MAX_RANK], base[HN_MAX_RANK];
    int64_t n, n_padded; /* kernel positions within the input, within the padded input */
} clipped;

/* How many of k positions from p in steps of d lie below end. */
static int64_t below(int64_t p, int64_t d, int64_t k, int64_t end)
{
    const int64_t n = p >= end ? 0 : (end - p + d - 1) / d;

    return HN_MIN(n, k);
}

static void clip_window(const hn_window *w, int64_t o, clipped *ret)
{
    ret->n = ret->n_padded = 1;
    for (int i = w->n - 1; i >= 0; i--) {
        const int64_t p = o % w->out[i] * w->stride[i] - w->pad[i], d = w->dilation[i];
        o /= w->out[i];
        ret->base[i] = p;
        ret->hi[i] = below(p, d, w->k[i], w->in[i]);
        ret->lo[i] = below(p, d, w->k[i], 0);
        ret->n *= HN_MAX(ret->hi[i] - ret->lo[i], 0);
        ret->n_padded *= below(p, d, w->k[i], w->in[i] + w->pad_end[i]);
    }
}

/* Row-major offset of element e of the clipped window. */
static int64_t element(const hn_window *w, const clipped *cl, int64_t e)
{
    int64_t at = 0, scale = 1;

    for (int i = w->n - 1; i >= 0; i--) {
        const int64_t n = cl->hi[i] - cl->lo[i], k = cl->lo[i] + e % n;
        e /= n;
        at += (cl->base[i] + k * w->dilation[i]) * scale;
        scale *= w->in[i];
    }
    return at;
}

/* Number of the element at row-major offset `at`, counted with the first spatial axis fastest. */
static int64_t column_major(const hn_window *w, int64_t at)
{
    int64_t index[HN_MAX_RANK], r = 0;

    for (int i = w->n - 1; i >= 0; i--) {
        index[i] = at % w->in[i];
        at /= w->in[i];
    }
    for (int i = w->n - 1; i >= 0; i--)
        r = r * w->in[i] + index[i];
    return r;
}

static hone_status window_of(const hn_call *c, const hn_view *in, const hn_view *out, hn_window *w,
                             hn_diag *dg)
{
    return hn_window_of(c, AT, &in[0].type, &out[0].type, c->attr[KERNEL].is, w, dg);
}

static int64_t lowest(hn_dtype t)
{
    return hn_dtype_is_signed(t) ? (int64_t)(~0ULL << (hn_dtype_bits(t) - 1)) : 0;
}

/* Offset of the largest element (the first of equals; NaN largest), or -1. */
static int64_t largest(const hn_view *x, const hn_window *w, const clipped *cl, int64_t plane)
{
    int64_t best = -1;

    for (int64_t e = 0; e < cl->n; e++) {
        const int64_t at = plane + element(w, cl, e);
        if (best < 0 ||
            (hn_dtype_is_float(x->type.dtype) ? hn_op_cmp_f(x->f[at], x->f[best])
                                              : hn_op_cmp_i(x->type.dtype, x->i[at], x->i[best])) > 0)
            best = at;
    }
    return best;
}

static hone_status ref_max(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    const bool columns = c->attr[EXTRA].i;
    hn_window w;

    HN_TRY(window_of(c, in, out, &w, dg));
    for (int64_t o = 0; o < out[0].numel; o++) {
        const int64_t plane = o / w.n_out * w.n_in;
        clipped cl;
        clip_window(&w, o % w.n_out, &cl);
        const int64_t best = largest(&in[0], &w, &cl, plane);
        if (hn_dtype_is_float(t))
            out[0].f[o] = best < 0 ? -INFINITY : in[0].f[best];
        else
            out[0].i[o] = best < 0 ? lowest(t) : in[0].i[best];
        if (c->n_out > 1)
            out[1].i[o] = best < 0 ? plane : columns ? plane + column_major(&w, best - plane) : best;
    }
    return HONE_OK;
}

static hone_status ref_avg(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool include_pad = c->attr[EXTRA].i;
    hn_window w;

    HN_TRY(window_of(c, in, out, &w, dg));
    for (int64_t o = 0; o < out[0].numel; o++) {
        clipped cl;
        double sum = 0;
        clip_window(&w, o % w.n_out, &cl);
        for (int64_t e = 0; e < cl.n; e++)
            sum += in[0].f[o / w.n_out * w.n_in + element(&w, &cl, e)];
        const int64_t n = include_pad ? cl.n_padded : cl.n;
        out[0].f[o] = n > 0 ? sum / (double)n : 0;
    }
    return HONE_OK;
}

static hone_status ref_lp(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const double p = (double)c->attr[EXTRA].i;
    hn_window w;

    HN_TRY(window_of(c, in, out, &w, dg));
    for (int64_t o = 0; o < out[0].numel; o++) {
        clipped cl;
        double sum = 0;
        clip_window(&w, o % w.n_out, &cl);
        for (int64_t e = 0; e < cl.n; e++)
            sum += pow(fabs(in[0].f[o / w.n_out * w.n_in + element(&w, &cl, e)]), p);
        out[0].f[o] = pow(sum, 1 / p);
    }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    double taps = 1;

    for (int i = 0; i < c->attr[KERNEL].n; i++)
        taps *= (double)c->attr[KERNEL].is[i];
    *ret = (hn_work){ .flops = taps * hn_op_count(c, &c->out[0]), .bytes = hn_op_bytes(c) };
}

#define POOL_ATTRS(extra_)                                                                                   \
    HN_OP_ATTRS(HN_S_INTS_REQ("kernel"), HN_S_INTS("stride"), HN_S_INTS("dilation"), HN_S_DIMS("pad_begin"), \
                HN_S_DIMS("pad_end"), HN_S_INT("ceil_mode", 0), HN_S_DIMS_REQ("dim"), extra_)

const hn_op_def hn_op_max_pool = {
    HN_OP_ID(max_pool, 1, 1, 1, 2),
    .doc = "largest element of each window, and where it stands in the flattened operand",
    .traits = HN_TRAIT_PURE,
    POOL_ATTRS(HN_S_INT("column_major", 0)),
    .infer = infer_max,
    .ref = ref_max,
    .work = work,
};

const hn_op_def hn_op_avg_pool = {
    HN_OP_ID(avg_pool, 1, 1, 1, 1),
    .doc = "mean of each window, over the padding too or not",
    .traits = HN_TRAIT_PURE,
    POOL_ATTRS(HN_S_INT("count_include_pad", 0)),
    .infer = infer_avg,
    .ref = ref_avg,
    .work = work,
    .tol = HN_OP_TOL_SUM(64, 64), /* a sum's error divided by its count is below that of one term */
};

const hn_op_def hn_op_lp_pool = {
    HN_OP_ID(lp_pool, 1, 1, 1, 1),
    .doc = "p-norm of each window",
    .traits = HN_TRAIT_PURE,
    POOL_ATTRS(HN_S_INT("p", 2)),
    .infer = infer_lp,
    .ref = ref_lp,
    .work = work,
    .tol = HN_OP_TOL_SUM(64, 64),
};
