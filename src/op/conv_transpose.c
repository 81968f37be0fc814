/*
 * The transpose of conv as a linear map: x[n, c, i] adds x * w[c, m, k] to y[n, m, i * stride + k * dilation
 * - pad]. Extent: (in - 1) * stride + out_pad + (k - 1) * dilation + 1 - pads. Filters are [c, m / group,
 * k...].
 */
#include "op/window.h"

enum { STRIDE, DILATION, PAD_BEGIN, PAD_END, GROUP, OUT_PAD };
static const hn_window_attrs AT = { STRIDE, DILATION, PAD_BEGIN, PAD_END };

static hone_status infer_axis(hn_call *c, int axis, hn_diag *dg)
{
    const int64_t d = hn_window_dilation(c, AT, axis), s = hn_window_stride(c, AT, axis);
    const int64_t extra = c->attr[OUT_PAD].n ? c->attr[OUT_PAD].is[axis] : 0;
    hn_symtab *t = c->syms;

    if (extra < 0 || extra > INT32_MAX)
        return HN_RAISE(dg, HONE_E_SHAPE, "out_pad of spatial axis %d is %lld", axis, (long long)extra);
    const hn_dim span = hn_dim_mul(t, hn_dim_sub(t, c->in[0].dim[2 + axis], 1), s);
    const hn_dim reach = hn_dim_add(t, hn_dim_mul(t, hn_dim_sub(t, c->in[1].dim[2 + axis], 1), d), 1 + extra);
    const hn_dim out = hn_dim_sub(t, hn_dim_add(t, span, reach), hn_window_pads(c, AT, axis));
    HN_TRY(hn_op_want_extent(c, out, "an output extent", dg));
    c->out[0].dim[2 + axis] = out;
    return HONE_OK;
}

static hone_status infer_channels(hn_call *c, hn_diag *dg)
{
    const int64_t group = c->attr[GROUP].i;
    int64_t n;

    if (group < 1)
        return HN_RAISE(dg, HONE_E_SHAPE, "group is %lld; it must be at least 1", (long long)group);
    HN_TRY(hn_op_want_meet(c, 0, 1, 1, 0, NULL, dg));
    if (hn_op_known(c, c->in[1].dim[0], &n) && n % group != 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld channels do not divide into %lld groups", (long long)n,
                        (long long)group);
    c->out[0].dim[0] = c->in[0].dim[0];
    c->out[0].dim[1] = hn_dim_mul(c->syms, c->in[1].dim[1], group);
    if (!hn_op_has(c, 2)) return HONE_OK;
    HN_TRY(hn_op_want_same(c, 0, 2, dg));
    HN_TRY(hn_op_want_rank(c, 2, 1, dg));
    if (!hn_op_meet(c, c->in[2].dim[0], c->out[0].dim[1], &(hn_dim){ 0 }))
        return HN_RAISE(dg, HONE_E_SHAPE, "the bias has %lld elements for %lld filters",
                        (long long)c->in[2].dim[0], (long long)c->out[0].dim[1]);
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 3, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_rank(c, 1, c->in[0].rank, dg));
    const int n = c->in[0].rank - 2;
    HN_TRY(hn_window_check(c, AT, n, dg));
    if (c->attr[OUT_PAD].n) HN_TRY(hn_op_want_list(c, OUT_PAD, n, dg));
    c->out[0].dtype = c->in[0].dtype;
    c->out[0].rank = n + 2;
    HN_TRY(infer_channels(c, dg));
    for (int i = 0; i < n; i++)
        HN_TRY(infer_axis(c, i, dg));
    return HONE_OK;
}

/* Where input position i lands for kernel position k; -1 outside the output. */
static int64_t landing(const hn_window *w, int64_t i, int64_t k)
{
    int64_t at = 0, scale = 1;

    for (int d = w->n - 1; d >= 0; d--) {
        const int64_t p = i % w->in[d] * w->stride[d] + k % w->k[d] * w->dilation[d] - w->pad[d];
        if (p < 0 || p >= w->out[d]) return -1;
        i /= w->in[d];
        k /= w->k[d];
        at += p * scale;
        scale *= w->out[d];
    }
    return at;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    hn_window w;
    void *scratch;

    HN_TRY(hn_window_of(c, AT, &in[0].type, &out[0].type, in[1].type.dim + 2, &w, dg));
    const int64_t group = c->attr[GROUP].i, m = in[1].type.dim[1], depth = in[0].type.dim[1] / group;
    const int64_t filters = group * m;
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].f[i] = hn_op_has(c, 2) ? in[2].f[i / w.n_out % filters] : 0;
    /* Per group: [m * k, in] = w^T [m * k, c] x [c, in], then each row is added where it lands. */
    HN_TRY(hn_op_scratch(m * w.n_k * w.n_in, sizeof(double), &scratch, dg));
    double *rows = scratch;
    for (int64_t g = 0; g < in[0].type.dim[0] * group; g++) {
        const double *x = in[0].f + g * depth * w.n_in, *f = in[1].f + g % group * depth * m * w.n_k;
        double *y = out[0].f + g * m * w.n_out;
        memset(rows, 0, (size_t)(m * w.n_k * w.n_in) * sizeof(*rows));
        hn_op_gemm(m * w.n_k, w.n_in, depth, f, 1, m * w.n_k, x, w.n_in, rows, w.n_in);
        for (int64_t r = 0; r < m * w.n_k; r++)
            for (int64_t i = 0; i < w.n_in; i++) {
                const int64_t at = landing(&w, i, r % w.n_k);
                if (at >= 0) y[r / w.n_k * w.n_out + at] += rows[r * w.n_in + i];
            }
    }
    free(scratch);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    double taps = 1;

    for (int i = 1; i < c->in[1].rank; i++)
        taps *= hn_op_extent(c, c->in[1].dim[i]);
    *ret = (hn_work){ .flops = 2 * taps * hn_op_count(c, &c->in[0]), .bytes = hn_op_bytes(c) };
}

const hn_op_def hn_op_conv_transpose = {
    HN_OP_ID(conv_transpose, 2, 3, 1, 1),
    .doc = "the transpose of a convolution",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INTS("stride"), HN_S_INTS("dilation"), HN_S_DIMS("pad_begin"), HN_S_DIMS("pad_end"),
                HN_S_INT("group", 1), HN_S_INTS("out_pad")),
    .infer = infer,
    .ref = ref,
    .work = work,
    .tol = HN_OP_TOL_SUM(64, 2048), /* as conv */
};
