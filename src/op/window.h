/* Sliding windows, and the double-precision product that contractions and convolutions share. */
#ifndef HN_OP_WINDOW_H
#define HN_OP_WINDOW_H

#include "op/op_int.h"

/** Windows over the spatial axes of [n, c, s...]: input index = out * stride + k * dilation - pad. All
 * numbers known. */
typedef struct hn_window {
    int n; /* spatial axes */
    int64_t in[HN_MAX_RANK], out[HN_MAX_RANK], k[HN_MAX_RANK];
    int64_t stride[HN_MAX_RANK], dilation[HN_MAX_RANK], pad[HN_MAX_RANK], pad_end[HN_MAX_RANK];
    int64_t n_in, n_out, n_k; /* products */
} hn_window;

/** Where an op keeps its window attributes: schema indices. Empty lists mean stride 1, dilation 1, no pads.
 */
typedef struct hn_window_attrs {
    int stride, dilation, pad_begin, pad_end;
} hn_window_attrs;

/** Lengths (0 or n) and bounds of the lists: steps at least 1, pads at least 0, none beyond 2^31 - 1. */
hone_status hn_window_check(const hn_call *c, hn_window_attrs at, int n, hn_diag *dg);
/** A kernel list: n entries with the same bounds. */
hone_status hn_window_kernel(const hn_call *c, int attr, int n, hn_diag *dg);
int64_t hn_window_stride(const hn_call *c, hn_window_attrs at, int axis);
int64_t hn_window_dilation(const hn_call *c, hn_window_attrs at, int axis);
hn_dim hn_window_pads(const hn_call *c, hn_window_attrs at, int axis); /* begin + end */
/** For references: in, out are static [n, c, s...]; k gives the kernel extents. */
hone_status hn_window_of(const hn_call *c, hn_window_attrs at, const hn_tdesc *in, const hn_tdesc *out,
                         const int64_t *k, hn_window *ret, hn_diag *dg);

/**
 * Columns [first, first + n) of the patch matrix of one channel block: row (ch, k...) holds for each output
 * position the element of x [channels, s...] that kernel position k meets, zero in the padding. dst is
 * [channels * n_k, n].
 */
void hn_window_patches(const hn_window *w, const double *x, int64_t channels, int64_t first, int64_t n,
                       double *dst);

/** c[i, j] += sum over k of a[i * ai + k * ak] * b[k * ldb + j], for m, n, k; c has rows ldc apart. Sums in k
 * order. */
void hn_op_gemm(int64_t m, int64_t n, int64_t k, const double *a, int64_t ai, int64_t ak, const double *b,
                int64_t ldb, double *c, int64_t ldc);

#endif
