/*
 * Regions of interest pooled to a fixed size.
 *
 *     roi_align (x [n,c,h,w], rois [r,4] as x1 y1 x2 y2, batch [r]) {mode, coord, out_h, out_w,
 * sampling_ratio, spatial_scale} -> [r,c,out_h,out_w] Each bin averages (or takes the largest weighted corner
 * of) a grid of bilinear samples: sampling_ratio a side, or with 0 ceil(region / bins) of them. half_pixel
 * shifts the region by -1/2; output_half_pixel does not, and makes regions at least 1 wide. Samples beyond
 * one element outside x are 0; nearer ones clamp to the edge.
 *
 *     max_roi_pool (x, rois [r,5] as image x1 y1 x2 y2) {out_h, out_w, spatial_scale} -> [r,c,out_h,out_w]
 *         The largest element of each bin, corners rounded half away from zero and inclusive; an empty bin
 * gives 0.
 *
 * Where a count or a bin's edge depends on a rounded quotient, references round to f32 step by step (f64 for
 * f64 x), as every kernel does: another quotient would be another bin.
 */
#include "op/expand_int.h"

enum { RA_MODE, RA_COORD, RA_H, RA_W, RA_RATIO, RA_SCALE };
enum { MP_H, MP_W, MP_SCALE };
enum { AVG, MAX };
enum { HALF_PIXEL, OUTPUT_HALF_PIXEL };
enum { UNROLL_SAMPLES = 16 }; /* a bin: beyond, a loop */

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const bool align = c->op->id == HN_OP_roi_align;
    const int64_t columns = align ? 4 : 5;
    hn_dim d;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 4, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    HN_TRY(hn_op_want_rank(c, 1, 2, dg));
    if (!hn_op_meet(c, c->in[1].dim[1], columns, &d))
        return HN_RAISE(dg, HONE_E_SHAPE, "a region has %lld numbers, not %lld", (long long)c->in[1].dim[1],
                        (long long)columns);
    hn_dim regions = c->in[1].dim[0];
    if (align) {
        HN_TRY(hn_op_want_int(c, 2, dg));
        HN_TRY(hn_op_want_rank(c, 2, 1, dg));
        HN_TRY(hn_op_want_meet(c, 1, 0, 2, 0, &regions, dg));
        HN_TRY(hn_op_want_attr(c, RA_RATIO, 0, 1 << 12, dg));
    }
    HN_TRY(hn_op_want_attr(c, align ? RA_H : MP_H, 1, 1 << 16, dg));
    HN_TRY(hn_op_want_attr(c, align ? RA_W : MP_W, 1, 1 << 16, dg));
    c->out[0] = (hn_tdesc){
        c->in[0].dtype, 4, {regions, c->in[0].dim[1], hn_call_i(c, "out_h"), hn_call_i(c, "out_w")}};
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const double n = hn_op_count(c, &c->out[0]);
    const double each =
        c->op->id == HN_OP_roi_align ? 9.0 * (double)HN_MAX(1, hn_call_i(c, "sampling_ratio")) : 4;

    ret->flops = n * each;
    ret->bytes = hn_op_bytes(c);
}

static hone_status check_image(double image, int64_t n, hn_diag *dg)
{
    if (image >= 0 && image < (double)n) return HONE_OK;
    return HN_RAISE(dg, HONE_E_MODEL, "a region names image %g of %lld", image, (long long)n);
}

/* ---- roi_align: reference ---- */

typedef struct span {
    double start, bin; /* in elements */
    int64_t samples;   /* a bin, <= 0: none */
} span;

static span span_of(const hn_call *c, hn_dtype t, double lo, double hi, int64_t bins)
{
    const double offset = hn_call_i(c, "coord") == HALF_PIXEL ? 0.5 : 0,
                 scale = hn_call_f(c, "spatial_scale");
    const int64_t ratio = hn_call_i(c, "sampling_ratio");
    span s;

    s.start = hn_round_f64(t, hn_round_f64(t, lo * scale, false) - offset, false);
    const double end = hn_round_f64(t, hn_round_f64(t, hi * scale, false) - offset, false);
    double size = hn_round_f64(t, end - s.start, false);
    if (hn_call_i(c, "coord") == OUTPUT_HALF_PIXEL) size = fmax(size, 1);
    s.bin = hn_round_f64(t, size / (double)bins, false);
    s.samples = ratio > 0 ? ratio : (int64_t)fmin(fmax(ceil(s.bin), -1), 1 << 20);
    return s;
}

static double sample_place(const span *s, int64_t bin, int64_t i)
{
    return s->start + (double)bin * s->bin + ((double)i + 0.5) * s->bin / (double)s->samples;
}

/* The two rows (or columns) that a place reads, and the far one's weight; false when it is outside. */
static bool corners(double at, int64_t n, int64_t i[2], double *far)
{
    if (!(at >= -1 && at <= (double)n)) return false;
    at = fmin(fmax(at, 0), (double)(n - 1));
    i[0] = (int64_t)at;
    i[1] = HN_MIN(i[0] + 1, n - 1);
    *far = at - (double)i[0];
    return true;
}

static double bilinear(const double *x, const int64_t *hw, double y, double xx, bool largest)
{
    int64_t r[2], q[2];
    double fr, fq, best = -INFINITY, sum = 0;

    if (!corners(y, hw[0], r, &fr) || !corners(xx, hw[1], q, &fq)) return 0;
    for (int a = 0; a < 2; a++)
        for (int e = 0; e < 2; e++) {
            const double v = (a ? fr : 1 - fr) * (e ? fq : 1 - fq) * x[r[a] * hw[1] + q[e]];
            sum += v;
            best = isnan(v) || v > best ? v : best;
        }
    return largest ? best : sum;
}

static double align_bin(const double *x, const int64_t *hw, const span *h, const span *w, const int64_t at[2],
                        bool largest)
{
    double sum = 0, best = -INFINITY;

    if (h->samples < 1 || w->samples < 1) return 0;
    for (int64_t i = 0; i < h->samples; i++)
        for (int64_t k = 0; k < w->samples; k++) {
            const double v = bilinear(x, hw, sample_place(h, at[0], i), sample_place(w, at[1], k), largest);
            sum += v;
            best = isnan(v) || v > best ? v : best;
        }
    return largest ? best : sum / (double)(h->samples * w->samples);
}

static hone_status ref_align(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *xd = in[0].type.dim, *yd = out[0].type.dim;
    const hn_dtype t = x_ctype(in[0].type.dtype);
    const bool largest = hn_call_i(c, "mode") == MAX;

    for (int64_t r = 0; r < yd[0]; r++) {
        const double *box = in[1].f + r * 4;
        const span w = span_of(c, t, box[0], box[2], yd[3]), h = span_of(c, t, box[1], box[3], yd[2]);
        HN_TRY(check_image((double)in[2].i[r], xd[0], dg));
        for (int64_t e = 0; e < yd[1] * yd[2] * yd[3]; e++) {
            const int64_t at[2] = {e / yd[3] % yd[2], e % yd[3]}, ch = e / yd[3] / yd[2];
            const double *x = in[0].f + (in[2].i[r] * xd[1] + ch) * xd[2] * xd[3];
            out[0].f[r * yd[1] * yd[2] * yd[3] + e] = align_bin(x, xd + 2, &h, &w, at, largest);
        }
    }
    return HONE_OK;
}

/* ---- roi_align: expansion ---- */

/* One axis of all regions; values are [r,1] but for the bins' numbers [1,bins]. */
typedef struct xspan {
    hn_value *start, *bin, *samples, *bins;
    hn_dim n; /* x's extent */
    hn_dim n_bins;
} xspan;

typedef struct align_job {
    const hn_node *n;
    hn_dtype t;
    hn_value *rows;  /* x as [n*h*w, c] */
    hn_value *image; /* i64[r,1,1] */
    xspan axis[2];   /* h, w */
    bool largest;
    hn_value *side_w; /* i64[]: samples across in the loop */
} align_job;

static xspan x_span(hn_builder *b, const hn_node *n, hn_value *rois, int axis, hn_dtype t)
{
    const double offset = hn_attr_i(n, "coord") == HALF_PIXEL ? 0.5 : 0,
                 scale = hn_attr_f(n, "spatial_scale");
    const int64_t ratio = hn_attr_i(n, "sampling_ratio"), column = axis == 0 ? 1 : 0;
    xspan s = {.n = hn_in(n, 0)->type.dim[2 + axis], .n_bins = hn_out(n, 0)->type.dim[2 + axis]};

    s.start = x_add_k(b, x_mul_k(b, hn_slice(b, rois, 1, column, 1), scale), -offset);
    hn_value *end = x_add_k(b, x_mul_k(b, hn_slice(b, rois, 1, column + 2, 1), scale), -offset);
    hn_value *size = x_sub(b, end, s.start);
    if (hn_attr_i(n, "coord") == OUTPUT_HALF_PIXEL) size = x_max_k(b, size, 1);
    s.bin = x_div_k(b, size, (double)s.n_bins);
    s.samples = ratio > 0 ? hn_const_f(b, t, (double)ratio) : x_ceil(b, s.bin);
    s.bins = x_iota(b, t, 2, 1, s.n_bins);
    return s;
}

typedef struct xcorners {
    hn_value *inside, *index[2], *weight[2]; /* [r,bins] */
} xcorners;

/* Sample i (a rank-0 value) of every bin of every region along one axis. */
static xcorners x_corners(hn_builder *b, const xspan *s, hn_value *i)
{
    hn_value *samples = x_max_k(b, s->samples, 1);
    hn_value *step = x_div(b, x_mul(b, x_add_k(b, i, 0.5), s->bin), samples);
    hn_value *at = x_add(b, x_add(b, s->start, x_mul(b, s->bins, s->bin)), step);
    hn_value *n = at ? x_dim(b, at->type.dtype, s->n) : NULL, *last = x_add_k(b, n, -1);
    xcorners c = {.inside = x_and(b, x_ge_k(b, at, -1), x_le(b, at, n))};

    at = x_min(b, x_max_k(b, at, 0), last);
    hn_value *low = x_floor(b, at);
    c.weight[1] = x_sub(b, at, low);
    c.weight[0] = x_sub(b, x_k(b, at, 1), c.weight[1]);
    c.index[0] = x_cast(b, low, HN_I64);
    c.index[1] = x_cast(b, x_min(b, x_add_k(b, low, 1), last), HN_I64);
    return c;
}

/* [r,oh,ow,c]: the samples numbered (iy, ix) of every bin; 0 outside x. */
static hn_value *x_align_sample(hn_builder *b, const align_job *j, hn_value *iy, hn_value *ix)
{
    const xcorners y = x_corners(b, &j->axis[0], iy), x = x_corners(b, &j->axis[1], ix);
    hn_value *h = x_dim(b, HN_I64, j->axis[0].n), *w = x_dim(b, HN_I64, j->axis[1].n), *sum = NULL;

    for (int k = 0; k < 4; k++) {
        hn_value *row = x_unsqueeze(b, y.index[k / 2], 2), *column = x_unsqueeze(b, x.index[k % 2], 1);
        hn_value *index = x_add(b, x_mul(b, x_add(b, x_mul(b, j->image, h), row), w), column);
        hn_value *weight = x_mul(b, x_unsqueeze(b, y.weight[k / 2], 2), x_unsqueeze(b, x.weight[k % 2], 1));
        hn_value *v = x_mul(b, x_gather(b, j->rows, index, 0), x_unsqueeze(b, weight, 3));
        sum = !sum ? v : j->largest ? x_max(b, sum, v) : x_add(b, sum, v);
    }
    hn_value *inside = x_and(b, x_unsqueeze(b, y.inside, 2), x_unsqueeze(b, x.inside, 1));
    return x_select(b, x_unsqueeze(b, inside, 3), sum, x_k(b, sum, 0));
}

static hn_value *x_accumulate(hn_builder *b, const align_job *j, hn_value *acc, hn_value *v)
{
    if (!acc) return v;
    return j->largest ? x_max(b, acc, v) : x_add(b, acc, v);
}

static void fill(x_loop_ctx *l)
{
    const align_job *j = l->user;
    hn_builder *b = l->b;
    hn_value *iy = x_cast(b, x_div(b, l->iter, j->side_w), j->t),
             *ix = x_cast(b, x_mod(b, l->iter, j->side_w), j->t);
    hn_value *v = x_align_sample(b, j, iy, ix);
    hn_value *live = x_and(b, x_lt(b, iy, j->axis[0].samples), x_lt(b, ix, j->axis[1].samples)); /* [r,1] */

    live = x_unsqueeze(b, x_unsqueeze(b, live, 2), 3);
    v = x_select(b, live, v, x_k(b, v, j->largest ? -INFINITY : 0));
    l->next[0] = x_accumulate(b, j, l->carried[0], v);
}

static hn_value *x_side(hn_builder *b, hn_value *samples)
{
    return x_cast(b, x_max_k(b, x_reduce_from(b, HN_OP_reduce_max, samples, 0, false), 0), HN_I64);
}

/* As many rounds as the largest grid has; smaller ones sit the rest out. */
static hn_value *x_align_loop(hn_builder *b, align_job *j, const hn_dim dim[4])
{
    hn_value *init = x_full(b, j->t, 4, dim, j->largest ? -INFINITY : 0), *ret;

    j->side_w = x_side(b, j->axis[1].samples);
    hn_value *trip = x_mul(b, x_side(b, j->axis[0].samples), j->side_w);
    x_loop(b, &(x_loop_spec){trip, 1, 0, &init, fill, j}, &ret);
    return ret;
}

/* [.., 1] of how many samples each region's bins have. */
static hn_value *x_count(hn_builder *b, const align_job *j)
{
    hn_value *n = x_mul(b, x_max_k(b, j->axis[0].samples, 0), x_max_k(b, j->axis[1].samples, 0));
    return n && n->type.rank ? x_unsqueeze(b, x_unsqueeze(b, n, 2), 3) : n;
}

static hone_status expand_align(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc x = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const int64_t ratio = hn_attr_i(n, "sampling_ratio"), to_last[4] = {0, 2, 3, 1},
                  to_second[4] = {0, 3, 1, 2};
    const hn_dim rows[2] = {x_dmul(b, x.dim[0], x_dmul(b, x.dim[2], x.dim[3])), x.dim[1]};
    const hn_dim column[3] = {to.dim[0], 1, 1}, acc_dim[4] = {to.dim[0], to.dim[2], to.dim[3], to.dim[1]};
    align_job j = {.n = n, .t = x_ctype(x.dtype), .largest = hn_attr_i(n, "mode") == MAX};
    hn_value *rois = x_up(b, hn_in(n, 1)), *acc = NULL;

    j.rows = hn_reshape(b, hn_transpose(b, x_up(b, hn_in(n, 0)), to_last), 2, rows);
    j.image = hn_reshape(b, x_cast(b, hn_in(n, 2), HN_I64), 3, column);
    for (int a = 0; a < 2; a++)
        j.axis[a] = x_span(b, n, rois, a, j.t);
    if (b->status != HONE_OK) return b->status;
    if (ratio > 0 && ratio * ratio <= UNROLL_SAMPLES) {
        for (int64_t k = 0; k < ratio * ratio; k++) {
            hn_value *iy = hn_const_f(b, j.t, (double)(k / ratio)),
                     *ix = hn_const_f(b, j.t, (double)(k % ratio));
            acc = x_accumulate(b, &j, acc, x_align_sample(b, &j, iy, ix));
        }
    } else {
        acc = x_align_loop(b, &j, acc_dim);
    }
    hn_value *count = x_count(b, &j);
    if (!j.largest)
        acc = x_div(b, acc, x_max_k(b, count, 1));
    else if (ratio == 0)
        acc = x_select(b, x_gt_k(b, count, 0), acc, x_k(b, acc, 0));
    out[0] = x_cast(b, hn_transpose(b, acc, to_second), x.dtype);
    return x_done(b);
}

/* ---- max_roi_pool ---- */

typedef struct bins {
    int64_t first, end; /* of one bin, clipped to x */
} bins;

static bins bin_of(hn_dtype t, double scale, const double corner[2], int64_t bin, const int64_t sizes[2])
{
    const double lo = round(hn_round_f64(t, corner[0] * scale, false));
    const double size = fmax(round(hn_round_f64(t, corner[1] * scale, false)) - lo + 1, 1),
                 n = (double)sizes[0];
    const double each = hn_round_f64(t, size / (double)sizes[1], false);
    const double first = floor(hn_round_f64(t, (double)bin * each, false)) + lo;
    const double end = ceil(hn_round_f64(t, (double)(bin + 1) * each, false)) + lo;

    return (bins){(int64_t)fmin(fmax(first, 0), n), (int64_t)fmin(fmax(end, 0), n)};
}

static hone_status ref_pool(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *xd = in[0].type.dim, *yd = out[0].type.dim;
    const hn_dtype t = x_ctype(in[0].type.dtype);
    const double scale = hn_call_f(c, "spatial_scale");

    for (int64_t e = 0; e < out[0].numel; e++) {
        const int64_t pw = e % yd[3], ph = e / yd[3] % yd[2], ch = e / yd[3] / yd[2] % yd[1],
                      r = e / yd[3] / yd[2] / yd[1];
        const double *roi = in[1].f + r * 5;
        HN_TRY(check_image(roi[0], xd[0], dg));
        const bins w = bin_of(t, scale, (double[]){roi[1], roi[3]}, pw, (int64_t[]){xd[3], yd[3]});
        const bins h = bin_of(t, scale, (double[]){roi[2], roi[4]}, ph, (int64_t[]){xd[2], yd[2]});
        const double *x = in[0].f + ((int64_t)roi[0] * xd[1] + ch) * xd[2] * xd[3];
        double best = h.end > h.first && w.end > w.first ? -INFINITY : 0;
        for (int64_t i = h.first; i < h.end; i++)
            for (int64_t k = w.first; k < w.end; k++)
                best = isnan(best) || x[i * xd[3] + k] <= best ? best : x[i * xd[3] + k];
        out[0].f[e] = best;
    }
    return HONE_OK;
}

/* Half away from zero. */
static hn_value *x_round_away(hn_builder *b, hn_value *x)
{
    hn_value *up = x_floor(b, x_add_k(b, x, 0.5)), *down = x_ceil(b, x_add_k(b, x, -0.5));
    return x_select(b, x_lt_k(b, x, 0), down, up);
}

typedef struct xbins {
    hn_value *member; /* bool [r,bins,n]: element belongs to bin */
    hn_value *empty;  /* bool [r,bins] */
} xbins;

static xbins x_bins(hn_builder *b, hn_value *rois, double scale, int column, hn_dim n, hn_dim n_bins)
{
    if (!rois) return (xbins){0};
    const hn_dtype t = rois->type.dtype;
    hn_value *lo = x_round_away(b, x_mul_k(b, hn_slice(b, rois, 1, column, 1), scale));
    hn_value *hi = x_round_away(b, x_mul_k(b, hn_slice(b, rois, 1, column + 2, 1), scale));
    hn_value *each = x_div_k(b, x_max_k(b, x_add_k(b, x_sub(b, hi, lo), 1), 1), (double)n_bins);
    hn_value *bin = x_iota(b, t, 2, 1, n_bins), *extent = x_dim(b, t, n);
    hn_value *first = x_add(b, x_floor(b, x_mul(b, bin, each)), lo);
    hn_value *end = x_add(b, x_ceil(b, x_mul(b, x_add_k(b, bin, 1), each)), lo);

    first = x_min(b, x_max_k(b, first, 0), extent);
    end = x_min(b, x_max_k(b, end, 0), extent);
    hn_value *i = x_iota(b, t, 3, 2, n);
    hn_value *member = x_and(b, x_ge(b, i, x_unsqueeze(b, first, 2)), x_lt(b, i, x_unsqueeze(b, end, 2)));
    return (xbins){member, x_le(b, end, first)};
}

/* Largest over w within each column of bins, then over h: [r,c,h,w] -> [r,c,h,ow] -> [r,c,oh,ow]. */
static hone_status expand_pool(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc x = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const double scale = hn_attr_f(n, "spatial_scale");
    hn_value *rois = x_up(b, hn_in(n, 1));
    hn_value *image = x_cast(b, x_squeeze(b, hn_slice(b, rois, 1, 0, 1), 1), HN_I64);
    const xbins w = x_bins(b, rois, scale, 1, x.dim[3], to.dim[3]),
                h = x_bins(b, rois, scale, 2, x.dim[2], to.dim[2]);
    hn_value *v = x_gather(b, x_up(b, hn_in(n, 0)), image, 0);

    hn_value *in_w = x_unsqueeze(b, x_unsqueeze(b, w.member, 1), 1); /* [r,1,1,ow,w] */
    v = x_unsqueeze(b, v, 3);
    v = x_reduce1(b, HN_OP_reduce_max, x_select(b, in_w, v, x_k(b, v, -INFINITY)), 4, false);
    hn_value *in_h = x_unsqueeze(b, x_unsqueeze(b, h.member, 1), 4); /* [r,1,oh,h,1] */
    v = x_unsqueeze(b, v, 2);
    v = x_reduce1(b, HN_OP_reduce_max, x_select(b, in_h, v, x_k(b, v, -INFINITY)), 3, false);
    hn_value *empty = x_or(b, x_unsqueeze(b, h.empty, 2), x_unsqueeze(b, w.empty, 1)); /* [r,oh,ow] */
    v = x_select(b, x_unsqueeze(b, empty, 1), x_k(b, v, 0), v);
    out[0] = x_cast(b, v, x.dtype);
    return x_done(b);
}

/* Places err like grid_sample's (extents up to 32 in tests, slopes up to 2); averages of samples within [-1,
 * 1]. */
const hn_op_def hn_op_roi_align = {
    HN_OP_ID(roi_align, 3, 3, 1, 1),
    .doc = "bilinear samples of regions pooled to a fixed size",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_ENUM("mode", 0, "avg|max"), HN_S_ENUM("coord", 0, "half_pixel|output_half_pixel"),
                HN_S_INT("out_h", 1), HN_S_INT("out_w", 1), HN_S_INT("sampling_ratio", 0),
                HN_S_FLOAT("spatial_scale", 1)),
    .infer = infer,
    .ref = ref_align,
    .work = work,
    .expand = expand_align,
    .tol = HN_OP_TOL_SUM(16, 256),
};

/* Moves elements: exact. */
const hn_op_def hn_op_max_roi_pool = {
    HN_OP_ID(max_roi_pool, 2, 2, 1, 1),
    .doc = "largest element of each bin of each region",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT_REQ("out_h"), HN_S_INT_REQ("out_w"), HN_S_FLOAT("spatial_scale", 1)),
    .infer = infer,
    .ref = ref_pool,
    .work = work,
    .expand = expand_pool,
    .tol = HN_OP_TOL(0),
};
