/*
 * Transforms as products with matrices of cosines and sines. A known length N = p q splits (Cooley-Tukey):
 * with j = j1 q + j2 and k = k1 + p k2,
 *
 *     X[k1 + p k2] = sum_j2 W_q^(j2 k2)  [ W_N^(j2 k1)  sum_j1 W_p^(j1 k1) x[j1 q + j2] ]
 *
 * so that no matrix is larger than SMALL unless N has a larger prime factor. Symbolic lengths compute one
 * full matrix.
 */
#include "op/dft_int.h"

enum { SMALL = 64 }; /* below, one product costs less than the twiddles of a split */

static const double TWO_PI = 6.28318530717958647693;

/* A complex value as two tensors; im NULL: zero. */
typedef struct cpx {
    hn_value *re, *im;
} cpx;

static cpx x_cmul(hn_builder *b, cpx x, cpx y)
{
    if (!x.im) return (cpx){x_mul(b, x.re, y.re), x_mul(b, x.re, y.im)};
    return (cpx){x_sub(b, x_mul(b, x.re, y.re), x_mul(b, x.im, y.im)),
                 x_add(b, x_mul(b, x.re, y.im), x_mul(b, x.im, y.re))};
}

/* x [..,rows] times w [rows,cols] along the last axis. */
static cpx x_cmatmul(hn_builder *b, cpx x, cpx w)
{
    hn_value *rr = x_matmul(b, x.re, w.re, false, false), *ri = x_matmul(b, x.re, w.im, false, false);
    if (!x.im) return (cpx){rr, ri};
    return (cpx){x_sub(b, rr, x_matmul(b, x.im, w.im, false, false)),
                 x_add(b, ri, x_matmul(b, x.im, w.re, false, false))};
}

/* W_N^(r c) for r < rows, c < cols; sign -1 forward. */
static cpx x_roots(hn_builder *b, hn_dtype t, int64_t rows, int64_t cols, int64_t n, double sign)
{
    const int64_t shape[2] = {rows, cols};
    double *re = HN_NEW_N(b->g->arena, double, rows *cols + 1),
           *im = HN_NEW_N(b->g->arena, double, rows *cols + 1);

    if (!re || !im) return (cpx){0};
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < cols; c++) {
            const double angle = sign * TWO_PI * (double)(r * c % n) / (double)n;
            re[r * cols + c] = cos(angle);
            im[r * cols + c] = sin(angle);
        }
    return (cpx){hn_const_fs(b, t, 2, shape, re), hn_const_fs(b, t, 2, shape, im)};
}

/* As x_roots for extents that are not known: angles from (r c) mod n, exact in integers, in f64. */
static cpx x_symbolic_roots(hn_builder *b, hn_dtype t, hn_dim rows, hn_dim cols, hn_dim n, double sign)
{
    hn_value *r = x_iota(b, HN_I64, 2, 0, rows), *c = x_iota(b, HN_I64, 2, 1, cols);
    hn_value *turns =
        x_div(b, x_cast(b, x_mod(b, x_mul(b, r, c), x_dim(b, HN_I64, n)), HN_F64), x_dim(b, HN_F64, n));
    hn_value *angle = x_mul_k(b, turns, sign * TWO_PI);

    return (cpx){x_cast(b, x_cos(b, angle), t), x_cast(b, x_sin(b, angle), t)};
}

/* The largest factor of n up to SMALL, or n itself when it has none above 1. */
static int64_t factor_of(int64_t n)
{
    for (int64_t f = SMALL; f > 1; f--)
        if (n % f == 0) return f;
    return n;
}

typedef struct plan {
    hn_dtype t;
    hn_dim lines; /* x is [lines, N] */
    double sign;
} plan;

static cpx x_each(hn_builder *b, cpx x, hn_value *(*f)(hn_builder *, hn_value *, const void *),
                  const void *user)
{
    return (cpx){f(b, x.re, user), x.im ? f(b, x.im, user) : NULL};
}
static hn_value *x_to_shape(hn_builder *b, hn_value *v, const void *user)
{
    const hn_tdesc *d = user;
    return hn_reshape(b, v, d->rank, d->dim);
}
static hn_value *x_swap12(hn_builder *b, hn_value *v, const void *user)
{
    (void)user;
    return x_swap(b, v, 1, 2);
}

/* x [lines, n] to its whole transform [lines, n]. */
static cpx x_fft(hn_builder *b, const plan *p, cpx x, hn_dim lines, int64_t n)
{
    const int64_t f = n > SMALL ? factor_of(n) : n, q = n / f;
    if (q == 1) return x_cmatmul(b, x, x_roots(b, p->t, n, n, n, p->sign));

    const hn_tdesc split = {p->t, 3, {lines, f, q}}, flat_q = {p->t, 2, {x_dmul(b, lines, f), q}};
    const hn_tdesc whole = {p->t, 2, {lines, n}};
    x = x_each(b, x_each(b, x, x_to_shape, &split), x_swap12, NULL); /* [lines, j2, j1] */
    x = x_cmatmul(b, x, x_roots(b, p->t, f, f, f, p->sign));         /* [lines, j2, k1] */
    x = x_cmul(b, x, x_roots(b, p->t, q, f, n, p->sign));
    x = x_each(b, x_each(b, x, x_swap12, NULL), x_to_shape, &flat_q); /* [lines k1, j2] */
    x = x_fft(b, p, x, flat_q.dim[0], q);                             /* [lines k1, k2] */
    x = x_each(b, x_each(b, x, x_to_shape, &split), x_swap12, NULL);  /* [lines, k2, k1] */
    return x_each(b, x, x_to_shape, &whole);
}

/* The first m outputs of the transform of x [lines, n]. */
static cpx x_transform(hn_builder *b, const plan *p, cpx x, hn_dim n, hn_dim m)
{
    int64_t kn, km;

    if (!hn_dim_known(b->g->syms, n, &kn) || !hn_dim_known(b->g->syms, m, &km))
        return x_cmatmul(b, x, x_symbolic_roots(b, p->t, n, m, n, p->sign));
    if (kn <= SMALL || factor_of(kn) == kn) return x_cmatmul(b, x, x_roots(b, p->t, kn, km, kn, p->sign));
    x = x_fft(b, p, x, p->lines, kn);
    return (cpx){hn_slice(b, x.re, 1, 0, km), x.im ? hn_slice(b, x.im, 1, 0, km) : NULL};
}

/* Cut or pad the last axis of [lines, n] to `want`. */
static hn_value *x_fit(hn_builder *b, hn_value *v, hn_dim want)
{
    if (!v || v->type.dim[1] == want) return v;
    return x_pad0(b, v, 1, 0, x_dsub(b, want, v->type.dim[1])); /* a negative pad crops */
}

/* The other half of a Hermitian spectrum of length n: elements n - n/2 - 1 .. 1 of the given half,
 * conjugated. */
static cpx x_mirror(hn_builder *b, cpx x, hn_dim n)
{
    hn_symtab *t = b->g->syms;
    const hn_dim half = x_dadd(b, hn_dim_floordiv(t, n, 2), 1), rest = x_dsub(b, n, half);
    cpx head = {x_fit(b, x.re, half), x_fit(b, x.im, half)};

    cpx tail = {x_slice_step(b, head.re, 1, rest, -1, rest), x_slice_step(b, head.im, 1, rest, -1, rest)};
    return (cpx){x_concat2(b, head.re, tail.re, 1),
                 head.im ? x_concat2(b, head.im, x_neg(b, tail.im), 1) : NULL};
}

/* x of rank r with its transform axis swapped to r-2, as real and imaginary [lines, n]. */
static cpx x_lines(hn_builder *b, hn_value *x, hn_dim lines)
{
    if (!x) return (cpx){0};
    const int last = x->type.rank - 1;
    const hn_dim flat[2] = {lines, x->type.dim[last - 1]};
    cpx c = {hn_reshape(b, hn_slice(b, x, last, 0, 1), 2, flat), NULL};

    if (x->type.dim[last] == 2) c.im = hn_reshape(b, hn_slice(b, x, last, 1, 1), 2, flat);
    return c;
}

hone_status dft_expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc xt = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const bool inverse = hn_attr_i(n, "inverse") != 0, onesided = hn_attr_i(n, "onesided") != 0;
    const int before = xt.rank - 2;
    int axis = 0;

    hn_axis_resolve(hn_attr_i(n, "axis"), xt.rank, &axis);
    hn_tdesc moved = to; /* the result before its axis swaps back */
    moved.dim[axis] = to.dim[before];
    moved.dim[before] = to.dim[axis];
    const plan p = {x_ctype(xt.dtype), x_dprod(b, &moved, 0, before), inverse ? 1 : -1};
    const hn_dim total = dft_length(b->g->syms, hn_attr_i(n, "dim"), xt.dim[axis], inverse, onesided);
    cpx x = x_lines(b, x_swap(b, x_up(b, hn_in(n, 0)), axis, before), p.lines);

    if (inverse && onesided)
        x = x_mirror(b, x, total);
    else
        x = (cpx){x_fit(b, x.re, total), x_fit(b, x.im, total)};
    x = x_transform(b, &p, x, total, to.dim[axis]);
    hn_tdesc part = moved;
    part.dim[xt.rank - 1] = 1;
    hn_value *y = hn_reshape(b, x.re, part.rank, part.dim);
    if (!(inverse && onesided)) y = x_concat2(b, y, hn_reshape(b, x.im, part.rank, part.dim), xt.rank - 1);
    if (inverse && y) y = x_div(b, y, x_dim(b, p.t, total));
    out[0] = x_cast(b, x_swap(b, y, axis, before), xt.dtype);
    return x_done(b);
}

/* Frames by gathering f step + i, then the window and a dft of each. */
hone_status stft_expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc xt = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const hn_dim step = hn_attr_i(n, "step"), length = hn_attr_i(n, "length");
    hn_value *x = x_up(b, hn_in(n, 0));

    if (xt.rank == 2) x = x_unsqueeze(b, x, 2);
    hn_value *start = x_mul(b, x_iota(b, HN_I64, 2, 0, to.dim[1]), x_dim(b, HN_I64, step));
    hn_value *frames =
        x_gather(b, x, x_add(b, start, x_iota(b, HN_I64, 2, 1, length)), 1); /* [b,frames,l,parts] */
    if (hn_in(n, 1)) frames = x_mul(b, frames, x_along(b, x_up(b, hn_in(n, 1)), 4, 2));
    hn_value *y = hn_b1(b, HN_OP_dft, frames,
                        HN_ATTRS_ARG(HN_A_I("axis", 2), HN_A_I("onesided", hn_attr_i(n, "onesided"))));
    out[0] = x_cast(b, y, xt.dtype);
    return x_done(b);
}
