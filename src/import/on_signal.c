/* Signals: Fourier transforms, windows, mel weights. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>

static const double pi = 3.14159265358979323846;

hone_status hn_im_on_dft(hn_im_call *c)
{
    hn_value *x = c->in[0], *len = hn_im_in(c, 1);
    const int64_t inverse = hn_im_i(c, "inverse", 0), onesided = hn_im_i(c, "onesided", 0);
    int64_t at = c->entry->arg == 17 ? hn_im_i(c, "axis", 1) : -2;
    int axis;
    if (hn_im_in(c, 2) && !hn_im_int(c, c->in[2], &at))
        return hn_im_refuse(c, "an axis that only a run shows is not supported");
    HN_TRY(hn_im_axis(c, at, x->type.rank, &axis));
    if (axis == x->type.rank - 1)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the axis is the one of real and imaginary parts");
    const hn_dim n = len ? hn_im_dim(c, len, 0) : 0;
    return hn_im_ret(c, hn_b1(c->b, HN_OP_dft, x,
                              HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("inverse", inverse != 0),
                                           HN_A_I("onesided", onesided != 0), HN_A_DIM("dim", n))));
}

hone_status hn_im_on_stft(hn_im_call *c)
{
    hn_value *window = hn_im_in(c, 2), *len = hn_im_in(c, 3);
    const int64_t onesided = hn_im_i(c, "onesided", 1);
    const hn_dim step = hn_im_dim(c, c->in[1], 0);
    if (!len && !window) return HN_IM_RAISE(c, HONE_E_MODEL, "neither a window nor a frame length is given");
    const hn_dim length = len ? hn_im_dim(c, len, 0) : window->type.dim[0];
    hn_node *n = hn_build(
        c->b, HN_OP_stft, window ? 2 : 1, (hn_value *[]){ c->in[0], window },
        HN_ATTRS_ARG(HN_A_DIM("step", step), HN_A_DIM("length", length), HN_A_I("onesided", onesided != 0)),
        1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

/* w = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N), N one less when not periodic. */
hone_status hn_im_on_window(hn_im_call *c)
{
    static const double coef[3][3] = { { 0.5, 0.5, 0 }, { 25.0 / 46, 21.0 / 46, 0 }, { 0.42, 0.5, 0.08 } };
    const double *a = coef[c->entry->arg];
    const hn_dtype to = hn_im_dtype(c, "output_datatype", HN_F32);
    const bool periodic = hn_im_i(c, "periodic", 1) != 0;
    const hn_dim size = hn_im_dim(c, c->in[0], 0);
    HN_TRY(c->b->status);
    hn_value *i = hn_cast(c->b, hn_im_iota(c, HN_I64, 1, &size, 0), HN_F64);
    const hn_dim span = periodic ? size : hn_im_dsub(c, size, 1);
    hn_value *n = hn_cast(c->b, hn_const_dims(c->b, 1, &span), HN_F64);
    hn_value *w = hn_const_f(c->b, HN_F64, a[0]);
    for (int k = 1; k <= 2; k++) {
        if (a[k] == 0) continue;
        hn_value *angle = hn_im_binary(c, HN_OP_div, hn_im_scale(c, i, 2 * pi * k), n);
        w = hn_im_binary(c, HN_OP_add, w,
                         hn_im_scale(c, hn_im_unary(c, HN_OP_cos, angle), k == 1 ? -a[1] : a[2]));
    }
    return hn_im_ret(c, hn_cast(c->b, w, to));
}

static double number(hn_im_call *c, int i)
{
    double x = NAN;
    (void)hn_const_scalar(c->in[i], &x);
    return x;
}

/* The triangles of the mel scale over the bins of a spectrum, as the standard's reference computes them. */
hone_status hn_im_on_mel_weights(hn_im_call *c)
{
    double v[5];
    const hn_dtype to = hn_im_dtype(c, "output_datatype", HN_F32);
    for (int i = 0; i < 5; i++) {
        v[i] = number(c, i);
        if (!isfinite(v[i])) return hn_im_refuse(c, "operands that only a run shows are not supported");
    }
    const int64_t n_mel = hn_f64_to_i64(v[0]), dft = hn_f64_to_i64(v[1]), n_bin = dft / 2 + 1;
    if (n_mel < 1 || dft < 1 || n_mel > 1 << 16 || dft > 1 << 20)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%" PRId64 " mel bins of %" PRId64 " points", n_mel, dft);
    double *w = HN_NEW_N(c->m->scratch, double, n_bin *n_mel);
    int64_t *at = HN_NEW_N(c->m->scratch, int64_t, n_mel + 2);
    if (!w || !at) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    const double lo = 2595 * log10(1 + v[3] / 700), hi = 2595 * log10(1 + v[4] / 700),
                 step = (hi - lo) / (double)(n_mel + 2);
    for (int64_t i = 0; i < n_mel + 2; i++) {
        const double hertz = 700 * (pow(10, ((double)i * step + lo) / 2595) - 1);
        at[i] = hn_f64_to_i64((double)(dft + 1) * hertz / trunc(v[2]));
        if (at[i] < 0 || at[i] >= n_bin)
            return HN_IM_RAISE(c, HONE_E_MODEL, "mel bin %" PRId64 " lies outside the spectrum", i);
    }
    for (int64_t i = 0; i < n_mel; i++) {
        const int64_t left = at[i], mid = at[i + 1], right = at[i + 2];
        if (mid == left) w[mid * n_mel + i] = 1;
        for (int64_t j = left; mid > left && j <= mid; j++)
            w[j * n_mel + i] = (double)(j - left) / (double)(mid - left);
        for (int64_t j = mid; right > mid && j < right; j++)
            w[j * n_mel + i] = (double)(right - j) / (double)(right - mid);
    }
    return hn_im_ret(c, hn_const_fs(c->b, to, 2, (int64_t[]){ n_bin, n_mel }, w));
}
