/*
 * grid_sample (x [n,c,d1..dk], grid [n,o1..ok,k]) {mode, padding, align_corners} -> [n,c,o1..ok]
 *
 * The grid's last axis holds a place as (last axis, .., first axis), -1..1 across x: with align_corners 1
 * between the centres of the edge elements, else between their outer borders. mode: linear | nearest (half to
 * even) | cubic (a = -0.75). padding: zeros | border (the place is clamped, of a cubic its taps) | reflection
 * (the place, and a cubic's taps, are mirrored).
 *
 *     affine_grid (theta [n,k,k+1]) {dim: n,c,d1..dk, align_corners} -> grid [n,d1..dk,k]
 *
 * is the grid of an affine map: theta (place, 1). An axis of extent 1 has its place at 0.
 *
 * A place that is NaN reads element 0 with weight NaN (zeros: gives 0).
 */
#include "op/sample_int.h"

enum { GS_MODE, GS_PADDING, GS_ALIGN };
enum { AG_DIM, AG_ALIGN };

/* ---- grid_sample ---- */

static hone_status infer_sample(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_float(c, 1, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 3, 2 + SAMPLE_MAX_AXES, dg));
    HN_TRY(hn_op_want_rank(c, 1, c->in[0].rank, dg));
    HN_TRY(hn_op_want_meet(c, 0, 0, 1, 0, &c->out[0].dim[0], dg));
    const int k = c->in[0].rank - 2;
    hn_dim d;
    if (!hn_op_meet(c, c->in[1].dim[k + 1], k, &d))
        return HN_RAISE(dg, HONE_E_SHAPE, "the grid's places have %lld coordinates for %d axes",
                        (long long)c->in[1].dim[k + 1], k);
    c->out[0].dtype = c->in[0].dtype;
    c->out[0].rank = c->in[0].rank;
    c->out[0].dim[1] = c->in[0].dim[1];
    for (int i = 0; i < k; i++)
        c->out[0].dim[2 + i] = c->in[1].dim[1 + i];
    return HONE_OK;
}

typedef struct sample_job {
    int k;
    int64_t mode, padding, size[SAMPLE_MAX_AXES], stride[SAMPLE_MAX_AXES];
    bool align;
} sample_job;

static double reflect(double x, double lo, double hi)
{
    const double range = hi - lo;

    if (range <= 0) return lo;
    const double over = x < lo ? lo - x : x > hi ? x - hi : 0, n = floor(over / range), r = over - n * range;
    const bool even = fmod(n, 2) == 0;
    if (x < lo) return even ? lo + r : hi - r;
    if (x > hi) return even ? hi - r : lo + r;
    return x;
}

static double place(const sample_job *j, int axis, double g)
{
    const double n = (double)j->size[axis];
    double x = j->align ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2;

    if (j->mode == SAMPLE_NEAREST) x = rint(x);
    if (j->padding == SAMPLE_BORDER && j->mode != SAMPLE_CUBIC && !isnan(x)) x = fmin(fmax(x, 0), n - 1);
    if (j->padding == SAMPLE_REFLECTION) x = reflect(x, j->align ? 0 : -0.5, j->align ? n - 1 : n - 0.5);
    return x;
}

/* Where tap `at` reads along an axis, or -1 for outside. */
static int64_t read_at(const sample_job *j, int axis, double at)
{
    const double n = (double)j->size[axis];

    if (j->padding == SAMPLE_ZEROS && !(at >= 0 && at < n)) return -1;
    if (j->padding == SAMPLE_REFLECTION) at = reflect(at, j->align ? 0 : -0.5, j->align ? n - 1 : n - 0.5);
    return !(at >= 0) ? 0 : at > n - 1 ? (int64_t)n - 1 : (int64_t)at;
}

static double cubic(double t)
{
    const double a = -0.75;

    t = fabs(t);
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return ((a * t - 5 * a) * t + 8 * a) * t - 4 * a;
}

/* The sum over taps of axis `axis` and those after it. */
static double interpolate(const sample_job *j, int axis, const double *x, const double *at)
{
    if (axis == j->k) return *x;
    const double low = floor(at[axis]), f = at[axis] - low;
    const int first = j->mode == SAMPLE_CUBIC ? -1 : 0,
              last = j->mode == SAMPLE_CUBIC ? 2 : j->mode == SAMPLE_LINEAR;
    double sum = 0;
    for (int k = first; k <= last; k++) {
        const int64_t i = read_at(j, axis, low + k);
        if (i < 0) continue;
        const double v = interpolate(j, axis + 1, x + i * j->stride[axis], at);
        const double w = j->mode == SAMPLE_NEAREST  ? 1
                         : j->mode == SAMPLE_LINEAR ? (k ? f : 1 - f)
                                                    : cubic(f - k);
        sum += w * v;
    }
    return sum;
}

static hone_status ref_sample(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *d = in[0].type.dim, channels = d[1];
    sample_job j = {.k = in[0].type.rank - 2,
                    .mode = hn_call_i(c, "mode"),
                    .padding = hn_call_i(c, "padding"),
                    .align = hn_call_i(c, "align_corners") != 0};
    int64_t plane = 1, points = 1;

    (void)dg;
    for (int a = j.k - 1; a >= 0; a--) {
        j.size[a] = d[2 + a];
        j.stride[a] = plane;
        plane *= d[2 + a];
        points = hn_extent_times(points, out[0].type.dim[2 + a]);
    }
    for (int64_t e = 0; e < out[0].numel; e++) {
        const int64_t p = e % points, ch = e / points % channels, n = e / points / channels;
        double at[SAMPLE_MAX_AXES];
        for (int a = 0; a < j.k; a++)
            at[a] = place(&j, a, in[1].f[(n * points + p) * j.k + j.k - 1 - a]);
        out[0].f[e] = plane ? interpolate(&j, 0, in[0].f + (n * channels + ch) * plane, at) : 0;
    }
    return HONE_OK;
}

static void work_sample(const hn_call *c, hn_work *ret)
{
    const int64_t mode = hn_call_i(c, "mode");
    const double taps = mode == SAMPLE_NEAREST ? 1 : mode == SAMPLE_LINEAR ? 2 : 4;

    ret->flops =
        2 * pow(taps, c->in[0].rank - 2) * hn_op_count(c, &c->out[0]) + 6 * hn_op_count(c, &c->in[1]);
    ret->bytes = hn_op_bytes(c);
}

/* Places along an axis in elements, [n, points, 1]. */
static hn_value *x_place(hn_builder *b, hn_value *grid, int coordinate, hn_value *size, bool align)
{
    hn_value *g = x_add_k(b, hn_slice(b, grid, 2, coordinate, 1), 1);

    if (align) return x_mul(b, x_mul_k(b, g, 0.5), x_add_k(b, size, -1));
    return x_mul_k(b, x_add_k(b, x_mul(b, g, size), -1), 0.5);
}

static hone_status expand_sample(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc xt = hn_in(n, 0)->type, gt = hn_in(n, 1)->type, to = hn_out(n, 0)->type;
    const hn_dtype t = xt.dtype == HN_F64 || gt.dtype == HN_F64 ? HN_F64 : HN_F32;
    sampler s = {.n_axis = xt.rank - 2,
                 .mode = hn_attr_i(n, "mode"),
                 .padding = hn_attr_i(n, "padding"),
                 .align_corners = hn_attr_i(n, "align_corners") != 0};
    const hn_dim flat[3] = {gt.dim[0], x_dprod(b, &gt, 1, gt.rank - 1), s.n_axis};
    int64_t to_last[HN_MAX_RANK], to_second[3] = {0, 2, 1};

    for (int i = 0; i < xt.rank; i++)
        to_last[i] = i == 0 ? 0 : i == xt.rank - 1 ? 1 : i + 1;
    hn_value *grid = hn_reshape(b, x_cast(b, hn_in(n, 1), t), 3, flat);
    hn_value *data = hn_transpose(b, x_cast(b, hn_in(n, 0), t), to_last);
    for (int a = 0; a < s.n_axis; a++) {
        s.size[a] = x_dim(b, t, xt.dim[2 + a]);
        s.place[a] = x_place(b, grid, s.n_axis - 1 - a, s.size[a], s.align_corners);
    }
    hn_value *y = hn_transpose(b, x_sample(b, &s, data), to_second);
    out[0] = x_cast(b, hn_reshape(b, y, to.rank, to.dim), xt.dtype);
    return x_done(b);
}

/* ---- affine_grid ---- */

static hone_status infer_affine(hn_call *c, hn_diag *dg)
{
    hn_tdesc size = {0};
    hn_dim d;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 3, dg));
    HN_TRY(hn_op_dims_attr(c, AG_DIM, &size, dg));
    const int k = size.rank - 2;
    if (k < 1) return HN_RAISE(dg, HONE_E_SHAPE, "a size of %d entries has no spatial axes", size.rank);
    if (!hn_op_meet(c, c->in[0].dim[0], size.dim[0], &d) || !hn_op_meet(c, c->in[0].dim[1], k, &d) ||
        !hn_op_meet(c, c->in[0].dim[2], k + 1, &d))
        return HN_RAISE(dg, HONE_E_SHAPE, "the maps are not [batch, %d, %d]", k, k + 1);
    c->out[0] = (hn_tdesc){c->in[0].dtype, k + 2, {0}};
    hn_op_meet(c, c->in[0].dim[0], size.dim[0], &c->out[0].dim[0]);
    for (int i = 0; i < k; i++)
        c->out[0].dim[1 + i] = size.dim[2 + i];
    c->out[0].dim[k + 1] = k;
    return HONE_OK;
}

static double grid_line(int64_t i, int64_t n, bool align)
{
    if (n == 1) return 0;
    return align ? -1 + 2 * (double)i / (double)(n - 1) : (2 * (double)i + 1) / (double)n - 1;
}

static hone_status ref_affine(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int k = out[0].type.rank - 2;
    const bool align = hn_call_i(c, "align_corners") != 0;
    const int64_t *d = out[0].type.dim;

    (void)dg;
    for (int64_t e = 0; e < out[0].numel / k; e++) {
        double at[HN_MAX_RANK]; /* coordinates, last axis first, then 1 */
        int64_t rest = e;
        for (int a = 0; a < k; a++) {
            at[a] = grid_line(rest % d[k - a], d[k - a], align);
            rest /= d[k - a];
        }
        at[k] = 1;
        for (int r = 0; r < k; r++) {
            double sum = 0;
            for (int a = 0; a <= k; a++)
                sum += in[0].f[(rest * k + r) * (k + 1) + a] * at[a];
            out[0].f[e * k + r] = sum;
        }
    }
    return HONE_OK;
}

static void work_affine(const hn_call *c, hn_work *ret)
{
    ret->flops = 2.0 * (c->out[0].rank - 1) * hn_op_count(c, &c->out[0]);
    ret->bytes = hn_op_bytes(c);
}

/* Coordinates along axis `axis` of k, laid along it in a tensor of rank k + 1. */
static hn_value *x_grid_line(hn_builder *b, hn_dtype t, int k, int axis, hn_dim n, bool align)
{
    hn_value *i = x_iota(b, t, k + 1, axis, n), *size = x_dim(b, t, n);

    if (n == 1) return x_mul_k(b, i, 0);
    if (!align) return x_add_k(b, x_div(b, x_add_k(b, x_mul_k(b, i, 2), 1), size), -1);
    hn_value *one = x_eq_k(b, size, 1), *steps = x_select(b, one, size, x_add_k(b, size, -1));
    hn_value *v = x_add_k(b, x_div(b, x_mul_k(b, i, 2), steps), -1);
    return x_select(b, one, x_k(b, v, 0), v);
}

/* grid = base theta^T with base [points, k+1] of places and ones. */
static hone_status expand_affine(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc to = hn_out(n, 0)->type;
    const hn_dtype t = x_ctype(to.dtype);
    const int k = to.rank - 2;
    hn_value *part[HN_MAX_RANK];
    hn_dim column[HN_MAX_RANK];

    for (int i = 0; i < k; i++)
        column[i] = to.dim[1 + i];
    column[k] = 1;
    for (int a = 0; a < k; a++) {
        const int axis = k - 1 - a;
        hn_value *line = x_grid_line(b, t, k, axis, to.dim[1 + axis], hn_attr_i(n, "align_corners") != 0);
        part[a] = hn_broadcast_to(b, line, k + 1, column);
    }
    part[k] = x_full(b, t, k + 1, column, 1);
    const hn_dim flat[2] = {x_dprod(b, &to, 1, k + 1), k + 1};
    hn_value *base = hn_reshape(b, x_concat(b, k + 1, part, k), 2, flat);
    hn_value *y = x_matmul(b, base, x_up(b, hn_in(n, 0)), false, true);
    out[0] = x_cast(b, hn_reshape(b, y, to.rank, to.dim), to.dtype);
    return x_done(b);
}

/*
 * A place errs by 3 roundings of a value up to the extent n, and the sample by that times the slope between
 * neighbours, up to 2 for operands within [-1, 1]: 6 n u; n up to 32 in tests. Weights and products add 8 u a
 * tap.
 */
const hn_op_def hn_op_grid_sample = {
    HN_OP_ID(grid_sample, 2, 2, 1, 1),
    .doc = "sample at places that a grid gives",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_ENUM("mode", 0, "linear|nearest|cubic"),
                HN_S_ENUM("padding", 0, "zeros|border|reflection"), HN_S_INT("align_corners", 0)),
    .infer = infer_sample,
    .ref = ref_sample,
    .work = work_sample,
    .expand = expand_sample,
    .tol = HN_OP_TOL_SUM(16, 256),
};

/* k + 1 products of values within [-1, 1], each place with 3 roundings. */
const hn_op_def hn_op_affine_grid = {
    HN_OP_ID(affine_grid, 1, 1, 1, 1),
    .doc = "places of an affine map's output grid",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_DIMS_REQ("dim"), HN_S_INT("align_corners", 0)),
    .infer = infer_affine,
    .ref = ref_affine,
    .work = work_affine,
    .expand = expand_affine,
    .tol = HN_OP_TOL_SUM(4, 24),
};
