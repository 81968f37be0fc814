/*
 * deform_conv (x [n,c,h,w], w [m,c/g,kh,kw], offset [n,og*kh*kw*2,oh,ow], bias? [m], mask?
 * [n,og*kh*kw,oh,ow]) {stride, dilation, pad_begin, pad_end, group, offset_group} -> [n,m,oh,ow]
 *
 * A convolution whose window element (i, j) at output (y, x) reads x bilinearly at
 *
 *     (y stride + i dilation - pad + dy,  x stride + j dilation - pad + dx),  times the mask
 *
 * with (dy, dx) = channels 2k, 2k+1 of the offsets, k = i kw + j, of the offset group that the input channel
 * belongs to. Elements outside x count as 0.
 */
#include "op/sample_int.h"
#include "op/window.h"

enum { STRIDE, DILATION, PAD_BEGIN, PAD_END, GROUP, OFFSET_GROUP };
enum { X, W, OFFSET, BIAS, MASK };
static const hn_window_attrs AT = {STRIDE, DILATION, PAD_BEGIN, PAD_END};

/* ---- inference ---- */

static hone_status infer_extent(hn_call *c, int axis, hn_diag *dg)
{
    hn_symtab *t = c->syms;
    const hn_dim reach =
        hn_dim_mul(t, hn_dim_sub(t, c->in[W].dim[2 + axis], 1), hn_window_dilation(c, AT, axis));
    const hn_dim room = hn_dim_sub(t, hn_dim_add(t, c->in[X].dim[2 + axis], hn_window_pads(c, AT, axis)),
                                   hn_dim_add(t, reach, 1));
    const hn_dim n = hn_dim_add(t, hn_dim_floordiv(t, room, hn_window_stride(c, AT, axis)), 1);

    HN_TRY(hn_op_want_extent(c, n, "an output extent", dg));
    if (!hn_op_meet(c, n, c->in[OFFSET].dim[2 + axis], &c->out[0].dim[2 + axis]))
        return HN_RAISE(dg, HONE_E_SHAPE, "the offsets are for %lld positions of axis %d, not %lld",
                        (long long)c->in[OFFSET].dim[2 + axis], 2 + axis, (long long)n);
    return HONE_OK;
}

static hone_status want_dim(const hn_call *c, int i, int axis, hn_dim want, const char *what, hn_diag *dg)
{
    hn_dim d;
    if (hn_op_meet(c, c->in[i].dim[axis], want, &d)) return HONE_OK;
    return HN_RAISE(dg, HONE_E_SHAPE, "operand %d has %lld %s where %lld are needed", i,
                    (long long)c->in[i].dim[axis], what, (long long)want);
}

static hone_status check_operands(const hn_call *c, hn_diag *dg)
{
    const int64_t groups = hn_call_i(c, "group"), og = hn_call_i(c, "offset_group");
    int64_t n;

    HN_TRY(hn_op_want_float(c, X, dg));
    for (int i = X; i < c->n_in; i++) {
        if (!hn_op_has(c, i) && (i == BIAS || i == MASK)) continue;
        HN_TRY(hn_op_want_same(c, X, i, dg));
        HN_TRY(hn_op_want_rank(c, i, i == BIAS ? 1 : 4, dg));
    }
    HN_TRY(hn_window_check(c, AT, 2, dg));
    HN_TRY(hn_op_want_attr(c, GROUP, 1, INT64_MAX, dg));
    HN_TRY(hn_op_want_attr(c, OFFSET_GROUP, 1, INT64_MAX, dg));
    if (hn_op_known(c, c->in[X].dim[1], &n) && (n % groups || n % og))
        return HN_RAISE(dg, HONE_E_SHAPE,
                        "%lld channels do not split into %lld groups and %lld offset groups", (long long)n,
                        (long long)groups, (long long)og);
    if (hn_op_known(c, c->in[W].dim[0], &n) && n % groups)
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld filters do not split into %lld groups", (long long)n,
                        (long long)groups);
    HN_TRY(want_dim(c, W, 1, hn_dim_floordiv(c->syms, c->in[X].dim[1], groups), "input channels", dg));
    const hn_dim cells = hn_dim_mul(c->syms, hn_dim_mul(c->syms, c->in[W].dim[2], c->in[W].dim[3]), og);
    HN_TRY(want_dim(c, OFFSET, 1, hn_dim_mul(c->syms, cells, 2), "channels", dg));
    if (hn_op_has(c, MASK)) HN_TRY(want_dim(c, MASK, 1, cells, "channels", dg));
    if (hn_op_has(c, BIAS)) HN_TRY(want_dim(c, BIAS, 0, c->in[W].dim[0], "elements", dg));
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(check_operands(c, dg));
    c->out[0] = (hn_tdesc){c->in[X].dtype, 4, {c->in[X].dim[0], c->in[W].dim[0]}};
    HN_TRY(hn_op_want_meet(c, X, 0, OFFSET, 0, &c->out[0].dim[0], dg));
    for (int i = 0; i < 2; i++)
        HN_TRY(infer_extent(c, i, dg));
    for (int i = 0; hn_op_has(c, MASK) && i < 4; i++)
        if (i != 1) HN_TRY(want_dim(c, MASK, i, c->out[0].dim[i], "entries", dg));
    return HONE_OK;
}

/* ---- reference ---- */

static double element(const double *plane, const hn_window *w, double y, double x)
{
    return y >= 0 && y < (double)w->in[0] && x >= 0 && x < (double)w->in[1]
               ? plane[(int64_t)y * w->in[1] + (int64_t)x]
               : 0;
}

static double bilinear(const double *plane, const hn_window *w, double y, double x)
{
    const double y0 = floor(y), x0 = floor(x), fy = y - y0, fx = x - x0;

    if (!(y > -1 && y < (double)w->in[0] && x > -1 && x < (double)w->in[1])) return 0;
    return (1 - fy) * ((1 - fx) * element(plane, w, y0, x0) + fx * element(plane, w, y0, x0 + 1)) +
           fy * ((1 - fx) * element(plane, w, y0 + 1, x0) + fx * element(plane, w, y0 + 1, x0 + 1));
}

typedef struct job {
    const hn_view *in;
    hn_window w;
    int64_t channels, per_group, per_offset, filters, group_filters;
    bool has_mask, has_bias;
} job;

/* Window element k of input channel ch of image n at output position p, masked. */
static double patch(const job *j, int64_t n, int64_t ch, int64_t k, int64_t p)
{
    const hn_window *w = &j->w;
    const int64_t og = ch / j->per_offset, groups = j->channels / j->per_offset,
                  cell = (n * groups + og) * w->n_k + k;
    const double *offset = j->in[OFFSET].f + 2 * cell * w->n_out + p;
    const int64_t i = k / w->k[1], q = k % w->k[1], oy = p / w->out[1], ox = p % w->out[1];
    const double y = (double)(oy * w->stride[0] + i * w->dilation[0] - w->pad[0]) + offset[0];
    const double x = (double)(ox * w->stride[1] + q * w->dilation[1] - w->pad[1]) + offset[w->n_out];
    const double v = bilinear(j->in[X].f + (n * j->channels + ch) * w->n_in, w, y, x);

    return j->has_mask ? v * j->in[MASK].f[cell * w->n_out + p] : v;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *xd = in[X].type.dim, *wd = in[W].type.dim, batch = xd[0];
    job j = {.in = in,
             .channels = xd[1],
             .per_group = wd[1],
             .per_offset = xd[1] / hn_call_i(c, "offset_group"),
             .filters = wd[0],
             .group_filters = wd[0] / hn_call_i(c, "group")};

    HN_TRY(hn_window_of(c, AT, &in[X].type, &out[0].type, wd + 2, &j.w, dg));
    j.has_bias = c->n_in > BIAS && in[BIAS].type.dtype != HN_NONE;
    j.has_mask = c->n_in > MASK && in[MASK].type.dtype != HN_NONE;
    for (int64_t e = 0; e < out[0].numel; e++)
        out[0].f[e] = j.has_bias ? in[BIAS].f[e / j.w.n_out % j.filters] : 0;
    for (int64_t r = 0; r < batch * j.channels * j.w.n_k * j.w.n_out; r++) {
        const int64_t p = r % j.w.n_out, k = r / j.w.n_out % j.w.n_k,
                      ch = r / j.w.n_out / j.w.n_k % j.channels;
        const int64_t n = r / j.w.n_out / j.w.n_k / j.channels, g = ch / j.per_group;
        const double v = patch(&j, n, ch, k, p);
        for (int64_t m = g * j.group_filters; m < (g + 1) * j.group_filters; m++)
            out[0].f[(n * j.filters + m) * j.w.n_out + p] +=
                v * in[W].f[(m * j.per_group + ch % j.per_group) * j.w.n_k + k];
    }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const double filter = hn_op_count(c, &c->in[W]) / hn_op_extent(c, c->in[W].dim[0]);

    ret->flops = 2 * hn_op_count(c, &c->out[0]) * filter + 8 * hn_op_count(c, &c->in[OFFSET]);
    ret->bytes = hn_op_bytes(c);
}

/* ---- expansion ---- */

/* Window places along one axis without offsets, [1,kh,kw,oh,ow] broadcastable. */
static hn_value *x_base(hn_builder *b, const hn_node *n, hn_dtype t, int axis)
{
    int n_stride, n_dilation, n_pad;
    const int64_t *stride = hn_attr_is(n, "stride", &n_stride),
                  *dilation = hn_attr_is(n, "dilation", &n_dilation);
    const hn_dim *pad = hn_attr_is(n, "pad_begin", &n_pad);
    hn_value *out = x_iota(b, t, 5, 3 + axis, hn_out(n, 0)->type.dim[2 + axis]);
    hn_value *k = x_iota(b, t, 5, 1 + axis, hn_in(n, W)->type.dim[2 + axis]);

    hn_value *v = x_add(b, x_mul_k(b, out, n_stride ? (double)stride[axis] : 1),
                        x_mul_k(b, k, n_dilation ? (double)dilation[axis] : 1));
    return n_pad ? x_sub(b, v, x_dim(b, t, pad[axis])) : v;
}

/* Places of every window element: [n*og, kh*kw*oh*ow, 1]. */
static hn_value *x_places(hn_builder *b, const hn_node *n, hn_value *offset, int axis, const hn_dim images,
                          const hn_dim points)
{
    const hn_dim *wd = hn_in(n, W)->type.dim, *od = hn_out(n, 0)->type.dim;
    const hn_dim split[6] = {images, wd[2], wd[3], 2, od[2], od[3]}, flat[3] = {images, points, 1};

    if (!offset) return NULL;
    hn_value *d = x_squeeze(b, hn_slice(b, hn_reshape(b, offset, 6, split), 3, axis, 1), 3);
    return hn_reshape(b, x_add(b, d, x_base(b, n, offset->type.dtype, axis)), 3, flat);
}

/* The sampled patches [n*og, kh*kw*oh*ow, c/og]. */
static hn_value *x_patches(hn_builder *b, const hn_node *n, hn_dtype t, hn_dim images, hn_dim points)
{
    const hn_dim *xd = hn_in(n, X)->type.dim;
    const hn_dim each = hn_dim_floordiv(b->g->syms, xd[1], hn_attr_i(n, "offset_group"));
    const hn_dim split[4] = {images, each, xd[2], xd[3]}, column[3] = {images, points, 1};
    const int64_t to_last[4] = {0, 2, 3, 1};
    hn_value *offset = x_cast(b, hn_in(n, OFFSET), t);
    sampler s = {.n_axis = 2, .mode = SAMPLE_LINEAR, .padding = SAMPLE_ZEROS};

    for (int a = 0; a < 2; a++) {
        s.size[a] = x_dim(b, t, xd[2 + a]);
        s.place[a] = x_places(b, n, offset, a, images, points);
    }
    hn_value *v =
        x_sample(b, &s, hn_transpose(b, hn_reshape(b, x_cast(b, hn_in(n, X), t), 4, split), to_last));
    hn_value *mask = hn_in(n, MASK);
    return mask ? x_mul(b, v, hn_reshape(b, x_cast(b, mask, t), 3, column)) : v;
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_dim *xd = hn_in(n, X)->type.dim, *wd = hn_in(n, W)->type.dim;
    const hn_tdesc to = hn_out(n, 0)->type;
    const hn_dtype t = x_ctype(to.dtype);
    const int64_t groups = hn_attr_i(n, "group"), swap[3] = {0, 2, 1};
    const hn_dim images = x_dmul(b, xd[0], hn_attr_i(n, "offset_group")), window = x_dmul(b, wd[2], wd[3]);
    const hn_dim positions = x_dmul(b, to.dim[2], to.dim[3]), points = x_dmul(b, window, positions);
    const hn_dim rows = x_dmul(b, wd[1], window), patches[4] = {xd[0], groups, rows, positions};
    const hn_dim filters[3] = {groups, hn_dim_floordiv(b->g->syms, wd[0], groups), rows};

    hn_value *v = hn_reshape(b, hn_transpose(b, x_patches(b, n, t, images, points), swap), 4, patches);
    hn_value *y = x_matmul(b, hn_reshape(b, x_cast(b, hn_in(n, W), t), 3, filters), v, false, false);
    y = hn_reshape(b, y, 4, to.dim);
    if (hn_in(n, BIAS)) y = x_add(b, y, x_along(b, x_cast(b, hn_in(n, BIAS), t), 4, 1));
    out[0] = x_cast(b, y, to.dtype);
    return x_done(b);
}

/* Samples err like grid_sample's with places up to 32; a window sums products within [-1, 1] of them. */
const hn_op_def hn_op_deform_conv = {
    HN_OP_ID(deform_conv, 3, 5, 1, 1),
    .doc = "convolution whose window elements are displaced by offsets",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INTS("stride"), HN_S_INTS("dilation"), HN_S_DIMS("pad_begin"), HN_S_DIMS("pad_end"),
                HN_S_INT("group", 1), HN_S_INT("offset_group", 1)),
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = expand,
    .tol = HN_OP_TOL_SUM(64, 1024),
};
