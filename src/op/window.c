/* Sliding windows, and the double-precision product that contractions and convolutions share. */
#include "op/window.h"

/* Beyond this no tensor reaches, and sums and products of two stay within 64 bits. */
static const int64_t MOST = INT32_MAX;

static hone_status check_one(const hn_call *c, int attr, int i, int64_t v, int64_t least, hn_diag *dg)
{
    if (v < least)
        return HN_RAISE(dg, HONE_E_SHAPE, "%s of spatial axis %d is %lld; it must be at least %lld",
                        c->op->attrs[attr].name, i, (long long)v, (long long)least);
    if (v > MOST)
        return HN_RAISE(dg, HONE_E_SHAPE, "%s of spatial axis %d is %lld; %lld is the most",
                        c->op->attrs[attr].name, i, (long long)v, (long long)MOST);
    return HONE_OK;
}

static hone_status check_dims(const hn_call *c, int attr, int n, hn_diag *dg)
{
    const hn_attr *a = &c->attr[attr];

    if (a->n != 0) HN_TRY(hn_op_want_list(c, attr, n, dg));
    for (int i = 0; i < a->n; i++) {
        int64_t v;
        if (hn_op_known(c, a->is[i], &v)) HN_TRY(check_one(c, attr, i, v, 0, dg));
    }
    return HONE_OK;
}

/* INTS lists hold plain numbers, which may be negative and are no dims. */
static hone_status check_ints(const hn_call *c, int attr, int n, hn_diag *dg)
{
    const hn_attr *a = &c->attr[attr];

    if (a->n != 0) HN_TRY(hn_op_want_list(c, attr, n, dg));
    for (int i = 0; i < a->n; i++)
        HN_TRY(check_one(c, attr, i, a->is[i], 1, dg));
    return HONE_OK;
}

hone_status hn_window_kernel(const hn_call *c, int attr, int n, hn_diag *dg)
{
    HN_TRY(hn_op_want_list(c, attr, n, dg));
    return check_ints(c, attr, n, dg);
}

hone_status hn_window_check(const hn_call *c, hn_window_attrs at, int n, hn_diag *dg)
{
    HN_TRY(check_ints(c, at.stride, n, dg));
    HN_TRY(check_ints(c, at.dilation, n, dg));
    HN_TRY(check_dims(c, at.pad_begin, n, dg));
    return check_dims(c, at.pad_end, n, dg);
}

static int64_t int_of(const hn_call *c, int attr, int axis, int64_t dflt)
{
    return c->attr[attr].n ? c->attr[attr].is[axis] : dflt;
}

int64_t hn_window_stride(const hn_call *c, hn_window_attrs at, int axis)
{
    return int_of(c, at.stride, axis, 1);
}

int64_t hn_window_dilation(const hn_call *c, hn_window_attrs at, int axis)
{
    return int_of(c, at.dilation, axis, 1);
}

hn_dim hn_window_pads(const hn_call *c, hn_window_attrs at, int axis)
{
    return hn_dim_add(c->syms, int_of(c, at.pad_begin, axis, 0), int_of(c, at.pad_end, axis, 0));
}

hone_status hn_window_of(const hn_call *c, hn_window_attrs at, const hn_tdesc *in, const hn_tdesc *out,
                         const int64_t *k, hn_window *ret, hn_diag *dg)
{
    memset(ret, 0, sizeof(*ret));
    ret->n = in->rank - 2;
    ret->n_in = ret->n_out = ret->n_k = 1;
    HN_TRY(hn_op_dims_known(c, at.pad_begin, ret->pad, dg));
    HN_TRY(hn_op_dims_known(c, at.pad_end, ret->pad_end, dg));
    for (int i = 0; i < ret->n; i++) {
        ret->in[i] = in->dim[2 + i];
        ret->out[i] = out->dim[2 + i];
        ret->k[i] = k[i];
        ret->stride[i] = hn_window_stride(c, at, i);
        ret->dilation[i] = hn_window_dilation(c, at, i);
        ret->n_in *= ret->in[i];
        ret->n_out *= ret->out[i];
        if (!hn_mul_size(ret->n_k, k[i], &ret->n_k))
            ret->n_k = INT64_MAX; /* pools walk what is in range only */
    }
    return HONE_OK;
}

/* ---- patches ---- */
/* Offset of the input row that output row `row` (all axes but the last) meets at kernel position kpos; -1 in
 * the padding. */
static int64_t input_row(const hn_window *w, const int64_t *kpos, int64_t row)
{
    int64_t at = 0, scale = w->in[w->n - 1];

    for (int i = w->n - 2; i >= 0; i--) {
        const int64_t o = row % w->out[i], p = o * w->stride[i] + kpos[i] * w->dilation[i] - w->pad[i];
        if (p < 0 || p >= w->in[i]) return -1;
        row /= w->out[i];
        at += p * scale;
        scale *= w->in[i];
    }
    return at;
}

/* Outputs [from, to) of one row: zeros, then input elements `stride` apart, then zeros. */
static void fill_span(const hn_window *w, int64_t kpos, const double *x, int64_t from, int64_t to,
                      double *dst)
{
    const int last = w->n - 1;
    const int64_t s = w->stride[last], shift = kpos * w->dilation[last] - w->pad[last];
    int64_t lo = shift >= 0 ? 0 : (-shift + s - 1) / s;
    int64_t hi = w->in[last] - shift <= 0 ? 0 : (w->in[last] - shift + s - 1) / s;

    lo = HN_MIN(HN_MAX(lo, from), to);
    hi = HN_MAX(HN_MIN(hi, to), lo);
    for (int64_t o = from; o < lo; o++)
        dst[o - from] = 0;
    for (int64_t o = lo; o < hi; o++)
        dst[o - from] = x[o * s + shift];
    for (int64_t o = hi; o < to; o++)
        dst[o - from] = 0;
}

static void patch_row(const hn_window *w, const int64_t *kpos, const double *x, int64_t first, int64_t n,
                      double *dst)
{
    const int64_t width = w->out[w->n - 1];

    for (int64_t done = 0; done < n;) {
        const int64_t row = (first + done) / width, from = (first + done) % width;
        const int64_t to = HN_MIN(width, from + n - done), at = input_row(w, kpos, row);
        if (at < 0)
            memset(dst + done, 0, (size_t)(to - from) * sizeof(*dst));
        else
            fill_span(w, kpos[w->n - 1], x + at, from, to, dst + done);
        done += to - from;
    }
}

void hn_window_patches(const hn_window *w, const double *x, int64_t channels, int64_t first, int64_t n,
                       double *dst)
{
    for (int64_t ch = 0; ch < channels; ch++) {
        int64_t kpos[HN_MAX_RANK] = { 0 };
        for (int64_t k = 0; k < w->n_k; k++) {
            patch_row(w, kpos, x + ch * w->n_in, first, n, dst + (ch * w->n_k + k) * n);
            for (int i = w->n - 1; i >= 0 && ++kpos[i] == w->k[i]; i--)
                kpos[i] = 0;
        }
    }
}

/* ---- product ---- */
/* Four rows at a time, so that each row of b is read once for four of c; the j loop is what vectorises. */
static void gemm4(int64_t n, int64_t k, const double *a, int64_t ai, int64_t ak, const double *b, int64_t ldb,
                  double *c, int64_t ldc)
{
    double *restrict c0 = c, *restrict c1 = c + ldc, *restrict c2 = c + 2 * ldc, *restrict c3 = c + 3 * ldc;

    for (int64_t p = 0; p < k; p++, a += ak, b += ldb) {
        const double a0 = a[0], a1 = a[ai], a2 = a[2 * ai], a3 = a[3 * ai];
        for (int64_t j = 0; j < n; j++) {
            c0[j] += a0 * b[j];
            c1[j] += a1 * b[j];
            c2[j] += a2 * b[j];
            c3[j] += a3 * b[j];
        }
    }
}

static void gemm1(int64_t n, int64_t k, const double *a, int64_t ak, const double *b, int64_t ldb,
                  double *restrict c)
{
    for (int64_t p = 0; p < k; p++, a += ak, b += ldb) {
        const double a0 = a[0];
        for (int64_t j = 0; j < n; j++)
            c[j] += a0 * b[j];
    }
}

void hn_op_gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t ai, int64_t ak, const double *b,
                int64_t ldb, double *c, int64_t ldc)
{
    enum { WIDTH = 256 }; /* four rows of c stay in 8 kB of the first cache */

    for (int64_t j = 0; j < n; j += WIDTH) {
        const int64_t w = HN_MIN(n - j, WIDTH);
        int64_t i = 0;
        for (; i + 4 <= m; i += 4)
            gemm4(w, k, a + i * ai, ai, ak, b + j, ldb, c + i * ldc + j, ldc);
        for (; i < m; i++)
            gemm1(w, k, a + i * ai, ak, b + j, ldb, c + i * ldc + j);
    }
}
