/*
 * Discrete Fourier transforms.
 *
 *     dft (x [..,n,1 or 2]) {axis, inverse, onesided, dim} -> [..,m,2]
 *         X[k] = sum_j x[j] e^(-2 pi i j k / N); inverse: + and / N. N = dim (0: n; inverse onesided: 2 (n -
 * 1)); x is cut or padded with zeros to N. onesided forward gives the first N/2 + 1; onesided inverse takes
 * such a half, whose rest is the conjugate mirror, and gives real [..,N,1]. stft (signal [b,n] or [b,n,1 or
 * 2], window? [l]) {step, length, onesided} -> [b,frames,l/2+1 or l,2] frames = (n - l) / step + 1 pieces,
 * each times the window, transformed.
 */
#include "op/dft_int.h"

static const double TWO_PI = 6.28318530717958647693;

/* ---- dft ---- */

hn_dim dft_length(hn_symtab *t, hn_dim given, hn_dim n, bool inverse, bool onesided)
{
    if (given != 0) return given;
    return inverse && onesided ? hn_dim_mul(t, hn_dim_sub(t, n, 1), 2) : n;
}

/* How many parts each number has: a real one 1, a complex one 2. */
static hone_status want_parts(const hn_call *c, int axis, int64_t *ret, hn_diag *dg)
{
    if (!hn_op_known(c, c->in[0].dim[axis], ret)) {
        hn_hint(dg, "Fix that axis with a shape for the model's input: 1 for real numbers, 2 for complex ones.");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the last axis must hold a known number of parts of each number, 1 or 2");
    }
    if (*ret < 1 || *ret > 2) return HN_RAISE(dg, HONE_E_SHAPE, "the last axis must hold 1 or 2 parts of each number");
    return HONE_OK;
}

static hone_status infer_dft(hn_call *c, hn_diag *dg)
{
    const bool inverse = hn_call_i(c, "inverse") != 0, onesided = hn_call_i(c, "onesided") != 0;
    int64_t parts;
    int axis;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    const int last = c->in[0].rank - 1;
    HN_TRY(hn_op_want_axis(c, DFT_AXIS, c->in[0].rank, false, &axis, dg));
    if (axis == last) return HN_RAISE(dg, HONE_E_SHAPE, "axis %d holds the real and imaginary parts", axis);
    HN_TRY(want_parts(c, last, &parts, dg));
    if (onesided && !inverse && parts == 2)
        return HN_RAISE(dg, HONE_E_SHAPE, "a onesided transform of complex numbers loses half of it");
    const hn_dim n = dft_length(c->syms, c->attr[DFT_DIM].i, c->in[0].dim[axis], inverse, onesided);
    HN_TRY(hn_op_want_extent(c, n, "the transform's length", dg));
    c->out[0] = c->in[0];
    c->out[0].dim[last] = onesided && inverse ? 1 : 2;
    c->out[0].dim[axis] = onesided && !inverse ? hn_dim_add(c->syms, hn_dim_floordiv(c->syms, n, 2), 1) : n;
    return HONE_OK;
}

/* Strided complex numbers; im NULL: real. */
typedef struct signal {
    const double *re, *im;
    int64_t n, step;
} signal;

/* Term j of a transform of length `total`: beyond the data zero, or mirrored from the given half. */
static void term(const signal *s, int64_t j, int64_t total, bool mirror, double *re, double *im)
{
    const bool flip = mirror && j > total / 2;
    const int64_t at = flip ? total - j : j;

    *re = *im = 0;
    if (at >= s->n) return;
    *re = s->re[at * s->step];
    if (s->im) *im = flip ? -s->im[at * s->step] : s->im[at * s->step];
}

static void transform(const signal *s, int64_t total, int64_t k, bool inverse, bool mirror, double ret[2])
{
    ret[0] = ret[1] = 0;
    for (int64_t j = 0; j < total; j++) {
        /* (j k) mod N keeps the angle exact */
        const double angle = (inverse ? 1 : -1) * TWO_PI * (double)(j * k % total) / (double)total;
        double re, im;
        term(s, j, total, mirror, &re, &im);
        ret[0] += re * cos(angle) - im * sin(angle);
        ret[1] += re * sin(angle) + im * cos(angle);
    }
    for (int i = 0; inverse && i < 2; i++)
        ret[i] /= (double)total;
}

static hone_status ref_dft(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool inverse = hn_call_i(c, "inverse") != 0, onesided = hn_call_i(c, "onesided") != 0;
    const int last = in[0].type.rank - 1;
    const int64_t parts = in[0].type.dim[last], out_parts = out[0].type.dim[last];
    int64_t total;
    int axis;

    HN_TRY(hn_op_want_axis(c, DFT_AXIS, in[0].type.rank, false, &axis, dg));
    HN_TRY(hn_op_dim_known(c, DFT_DIM, &total, dg));
    total = dft_length(c->syms, total, in[0].type.dim[axis], inverse, onesided);
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    const int64_t inner = s.inner / parts, m = out[0].type.dim[axis];
    for (int64_t e = 0; e < s.outer * m * inner; e++) {
        const int64_t i = e % inner, k = e / inner % m, o = e / inner / m;
        const double *x = in[0].f + (o * s.n * inner + i) * parts;
        const signal from = {x, parts == 2 ? x + 1 : NULL, s.n, inner * parts};
        double v[2];
        transform(&from, total, k, inverse, inverse && onesided, v);
        for (int64_t p = 0; p < out_parts; p++)
            out[0].f[e * out_parts + p] = v[p];
    }
    return HONE_OK;
}

/* As a fast transform would: 5 N log2 N a line. */
static double fft_flops(double lines, double n)
{
    return lines * 5 * n * log2(fmax(n, 2));
}

static void work_dft(const hn_call *c, hn_work *ret)
{
    const int last = c->in[0].rank - 1;
    int axis = 0;

    hn_axis_resolve(hn_call_i(c, "axis"), c->in[0].rank, &axis);
    const double n = hn_op_extent(c, c->in[0].dim[axis]);
    ret->flops =
        fft_flops(hn_op_count(c, &c->in[0]) / fmax(n, 1) / fmax(hn_op_extent(c, c->in[0].dim[last]), 1), n);
    ret->bytes = hn_op_bytes(c);
}

/* ---- stft ---- */

static hone_status infer_stft(hn_call *c, hn_diag *dg)
{
    const hn_dim step = c->attr[STFT_STEP].i, length = c->attr[STFT_LENGTH].i;
    const bool onesided = hn_call_i(c, "onesided") != 0;
    int64_t parts = 1, v;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 2, 3, dg));
    if (c->in[0].rank == 3) HN_TRY(want_parts(c, 2, &parts, dg));
    if (onesided && parts == 2)
        return HN_RAISE(dg, HONE_E_SHAPE, "a onesided transform of complex numbers loses half of it");
    if (hn_op_known(c, step, &v) && v < 1)
        return HN_RAISE(dg, HONE_E_SHAPE, "frame step %lld is not positive", (long long)v);
    if (hn_op_known(c, length, &v) && v < 1)
        return HN_RAISE(dg, HONE_E_SHAPE, "frame length %lld is not positive", (long long)v);
    if (hn_op_has(c, 1)) {
        hn_dim d;
        HN_TRY(hn_op_want_same(c, 0, 1, dg));
        HN_TRY(hn_op_want_rank(c, 1, 1, dg));
        if (!hn_op_meet(c, c->in[1].dim[0], length, &d))
            return HN_RAISE(dg, HONE_E_SHAPE, "the window has %lld elements for frames of %lld",
                            (long long)c->in[1].dim[0], (long long)length);
    }
    const hn_dim room = hn_dim_sub(c->syms, c->in[0].dim[1], length);
    const hn_dim frames = hn_dim_add(c->syms, hn_dim_floordiv(c->syms, room, step), 1);
    HN_TRY(hn_op_want_extent(c, frames, "the number of frames", dg));
    const hn_dim bins = onesided ? hn_dim_add(c->syms, hn_dim_floordiv(c->syms, length, 2), 1) : length;
    c->out[0] = (hn_tdesc){c->in[0].dtype, 4, {c->in[0].dim[0], frames, bins, 2}};
    return HONE_OK;
}

static hone_status ref_stft(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t n = in[0].type.dim[1], parts = in[0].type.rank == 3 ? in[0].type.dim[2] : 1;
    const int64_t frames = out[0].type.dim[1], bins = out[0].type.dim[2];
    int64_t step, length;
    double *piece;

    HN_TRY(hn_op_dim_known(c, STFT_STEP, &step, dg));
    HN_TRY(hn_op_dim_known(c, STFT_LENGTH, &length, dg));
    HN_TRY(hn_op_scratch(length * parts + 1, sizeof(double), (void **)&piece, dg));
    for (int64_t f = 0; f < in[0].type.dim[0] * frames; f++) {
        const double *x = in[0].f + (f / frames * n + f % frames * step) * parts;
        for (int64_t i = 0; i < length * parts; i++)
            piece[i] = x[i] * (c->n_in > 1 && in[1].type.dtype != HN_NONE ? in[1].f[i / parts] : 1);
        const signal from = {piece, parts == 2 ? piece + 1 : NULL, length, parts};
        for (int64_t k = 0; k < bins; k++)
            transform(&from, length, k, false, false, out[0].f + (f * bins + k) * 2);
    }
    free(piece);
    return HONE_OK;
}

static void work_stft(const hn_call *c, hn_work *ret)
{
    const double lines = hn_op_extent(c, c->out[0].dim[0]) * hn_op_extent(c, c->out[0].dim[1]);

    ret->flops = fft_flops(lines, hn_op_extent(c, c->attr[STFT_LENGTH].i));
    ret->bytes = hn_op_bytes(c);
}

/* N terms within [-1, 1] as products with cosines and sines good to 1 ulp: HN_OP_TOL_SUM's random walk, both
 * parts. */
const hn_op_def hn_op_dft = {
    HN_OP_ID(dft, 1, 1, 1, 1),
    .doc = "discrete Fourier transform along an axis",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INT_REQ("axis"), HN_S_INT("inverse", 0), HN_S_INT("onesided", 0), HN_S_DIM("dim", 0)),
    .infer = infer_dft,
    .ref = ref_dft,
    .work = work_dft,
    .expand = dft_expand,
    .tol = HN_OP_TOL_SUM(8, 256),
};

const hn_op_def hn_op_stft = {
    HN_OP_ID(stft, 1, 2, 1, 1),
    .doc = "Fourier transforms of windowed frames",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_DIM_REQ("step"), HN_S_DIM_REQ("length"), HN_S_INT("onesided", 1)),
    .infer = infer_stft,
    .ref = ref_stft,
    .work = work_stft,
    .expand = stft_expand,
    .tol = HN_OP_TOL_SUM(8, 256),
};
