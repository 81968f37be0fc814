/*
 * resize (x, optional given f64[3 * rank]) -> y of extents `dim`: interpolation along each axis on its own.
 *
 *     given              what only a run shows: scales, then roi's starts, then its ends, of all axes. A scale here counts where the
 *                        attribute has 0, a roi where there is no attribute
 *     dim DIMS           y's extents
 *     scale FLOATS       per axis as the model gave them; none or 0: dim / x's extent. `width` below is scale * extent, which need
 *                        not be whole
 *     roi FLOATS         starts of all axes, then ends, in [0, 1]: tf_crop_and_resize only
 *     mode               nearest | linear | cubic
 *     coord              place of output o in the input:
 *         half_pixel           (o + 1/2) / scale - 1/2
 *         pytorch_half_pixel   the same, 0 for an extent of 1
 *         align_corners        o (n - 1) / (width - 1), 0 for a width of 1
 *         asymmetric           o / scale
 *         tf_crop_and_resize   start (n-1) + o (end - start) (n-1) / (width - 1), the middle for a width of 1; a place outside
 *                              [0, n-1] on any axis yields `extrapolation`
 *         half_pixel_symmetric half_pixel + n/2 (1 - dim / width)
 *     nearest            round_prefer_floor | round_prefer_ceil | floor | ceil
 *     cubic_a            coefficient of the cubic
 *     exclude_outside    weights of places outside x are 0 and the rest sums to 1; otherwise the edge repeats
 *     antialias          linear and cubic: stretch the filter when shrinking
 *
 * Integers interpolate in real numbers, are clamped to their range and truncated, as a cast would.
 */
#include "op/resize_int.h"

static bool is_given(const hn_call *c)
{
    return c->n_in > 1 && c->in[1].dtype != HN_NONE;
}

static hone_status check_lists(const hn_call *c, int rank, hn_diag *dg)
{
    int n_scale, n_roi;
    const double *scale = hn_call_fs(c, "scale", &n_scale);

    HN_TRY(hn_op_want_list(c, RS_DIM, rank, dg));
    if (n_scale) HN_TRY(hn_op_want_list(c, RS_SCALE, rank, dg));
    for (int i = 0; i < n_scale; i++)
        if (!(scale[i] >= 0) || isinf(scale[i]))
            return HN_RAISE(dg, HONE_E_SHAPE, "scale %g of axis %d is no positive number", scale[i], i);
    (void)hn_call_fs(c, "roi", &n_roi);
    if (hn_call_i(c, "coord") == RS_TF_CROP && n_roi != 2 * rank && !is_given(c))
        return HN_RAISE(dg, HONE_E_SHAPE, "tf_crop_and_resize needs %d region bounds, not %d", 2 * rank,
                        n_roi);
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const int rank = c->in[0].rank;

    HN_TRY(hn_op_want(c, 0, dg));
    if (hn_call_i(c, "mode") != RS_MODE_NEAREST) HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(check_lists(c, rank, dg));
    if (is_given(c) && (c->in[1].dtype != HN_F64 || c->in[1].rank != 1 || c->in[1].dim[0] != 3 * rank))
        return HN_RAISE(dg, HONE_E_SHAPE, "scales and region are no f64[%d]", 3 * rank);
    c->out[0].dtype = c->in[0].dtype;
    HN_TRY(hn_op_dims_attr(c, RS_DIM, &c->out[0], dg));
    for (int i = 0; i < rank; i++)
        if (c->in[0].dim[i] == 0 && hn_dim_is_const(c->out[0].dim[i]) && c->out[0].dim[i] != 0)
            return HN_RAISE(dg, HONE_E_SHAPE, "axis %d is empty and cannot grow to %lld", i,
                            (long long)c->out[0].dim[i]);
    return HONE_OK;
}

/* ---- reference ---- */

/* One axis: for output o, input elements lo[o]..hi[o] with weights in row o of a dense matrix. */
typedef struct axis_map {
    int64_t n_in, n_out;
    double scale, width, start, end;
    double *weight; /* [n_out][n_in] */
    int64_t *lo, *hi;
    bool *outside; /* extrapolated */
} axis_map;

static double place(const axis_map *m, int64_t coord, double o)
{
    const double n = (double)m->n_in;

    switch (coord) {
    case RS_PYTORCH_HALF_PIXEL:
        return m->n_out > 1 ? (o + 0.5) / m->scale - 0.5 : 0;
    case RS_ALIGN_CORNERS:
        return m->width == 1 ? 0 : o * (n - 1) / (m->width - 1);
    case RS_ASYMMETRIC:
        return o / m->scale;
    case RS_TF_CROP:
        if (m->width == 1) return 0.5 * (m->start + m->end) * (n - 1);
        return m->start * (n - 1) + o * (m->end - m->start) * (n - 1) / (m->width - 1);
    case RS_HALF_PIXEL_SYMMETRIC:
        return n / 2 * (1 - (double)m->n_out / m->width) + (o + 0.5) / m->scale - 0.5;
    default:
        return (o + 0.5) / m->scale - 0.5;
    }
}

static double kernel(int64_t mode, double a, double t)
{
    t = fabs(t);
    if (mode == RS_MODE_LINEAR) return t < 1 ? 1 - t : 0;
    if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
    return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

static double pick(int64_t rule, double x)
{
    const double low = floor(x);

    switch (rule) {
    case RS_PREFER_FLOOR:
        return x - low <= 0.5 ? low : low + 1;
    case RS_PREFER_CEIL:
        return x - low < 0.5 ? low : low + 1;
    case RS_FLOOR:
        return low;
    default:
        return ceil(x);
    }
}

static int64_t clamp(double x, int64_t n)
{
    return x < 0 ? 0 : x > (double)(n - 1) ? n - 1 : (int64_t)x;
}

static void weigh(const hn_call *c, axis_map *m, int64_t o)
{
    const int64_t mode = hn_call_i(c, "mode");
    const bool exclude = hn_call_i(c, "exclude_outside") != 0;
    const double x = place(m, hn_call_i(c, "coord"), (double)o), a = hn_call_f(c, "cubic_a");
    const double stretch = hn_call_i(c, "antialias") && m->scale < 1 ? m->scale : 1, reach = 2 / stretch + 1;
    double *w = m->weight + o * m->n_in, sum = 0;

    m->outside[o] = hn_call_i(c, "coord") == RS_TF_CROP && (x < 0 || x > (double)(m->n_in - 1));
    if (mode == RS_MODE_NEAREST) {
        m->lo[o] = m->hi[o] = clamp(pick(hn_call_i(c, "nearest"), x), m->n_in);
        w[m->lo[o]] = 1;
        return;
    }
    for (double p = floor(x - reach); p <= ceil(x + reach); p++) {
        const double k = kernel(mode, a, stretch * (p - x));
        if (exclude && (p < 0 || p > (double)(m->n_in - 1))) continue;
        w[clamp(p, m->n_in)] += k;
        sum += k;
    }
    m->lo[o] = clamp(floor(x - reach), m->n_in);
    m->hi[o] = clamp(ceil(x + reach), m->n_in);
    for (int64_t i = m->lo[o]; i <= m->hi[o]; i++)
        w[i] /= sum;
}

static hone_status map_init(const hn_call *c, const hn_view *in, const hn_view *out, int axis, axis_map *m,
                            hn_diag *dg)
{
    int n_scale, n_roi;
    const double *scale = hn_call_fs(c, "scale", &n_scale), *roi = hn_call_fs(c, "roi", &n_roi);
    const int rank = in->type.rank;

    *m = (axis_map){.n_in = in->type.dim[axis], .n_out = out->type.dim[axis], .end = 1};
    const double *given = is_given(c) ? in[1].f : NULL;
    const double told = n_scale && scale[axis] > 0 ? scale[axis] : given ? given[axis] : 0;
    m->scale = told > 0 ? told : (double)m->n_out / (double)m->n_in;
    m->width = told > 0 ? m->scale * (double)m->n_in : (double)m->n_out;
    if (n_roi == 2 * rank) m->start = roi[axis], m->end = roi[rank + axis];
    else if (given) m->start = given[rank + axis], m->end = given[2 * rank + axis];
    HN_TRY(hn_op_scratch(m->n_in * m->n_out + 1, sizeof(double), (void **)&m->weight, dg));
    HN_TRY(hn_op_scratch(2 * m->n_out + 1, sizeof(int64_t), (void **)&m->lo, dg));
    HN_TRY(hn_op_scratch(m->n_out + 1, sizeof(bool), (void **)&m->outside, dg));
    m->hi = m->lo + m->n_out;
    for (int64_t o = 0; o < m->n_out; o++)
        weigh(c, m, o);
    return HONE_OK;
}

static void map_done(axis_map *m)
{
    free(m->weight);
    free(m->lo);
    free(m->outside);
}

/* x [outer][n_in][inner] to y [outer][n_out][inner]. Zero weights must not turn an infinity into NaN. */
static void apply_f(const axis_map *m, const double *x, double *y, int64_t outer, int64_t inner)
{
    for (int64_t r = 0; r < outer * m->n_out; r++) {
        const int64_t o = r % m->n_out;
        const double *w = m->weight + o * m->n_in, *from = x + r / m->n_out * m->n_in * inner;
        for (int64_t j = 0; j < inner; j++)
            y[r * inner + j] = 0;
        for (int64_t i = m->lo[o]; i <= m->hi[o]; i++)
            for (int64_t j = 0; w[i] != 0 && j < inner; j++)
                y[r * inner + j] += w[i] * from[i * inner + j];
    }
}

/* Nearest on integers moves them unchanged: 64-bit values would not survive double. */
static void apply_i(const axis_map *m, const int64_t *x, int64_t *y, int64_t outer, int64_t inner)
{
    for (int64_t r = 0; r < outer * m->n_out; r++)
        for (int64_t j = 0; j < inner; j++)
            y[r * inner + j] = x[(r / m->n_out * m->n_in + m->lo[r % m->n_out]) * inner + j];
}

static void extrapolate(const axis_map *m, hn_view *y, int axis, double value)
{
    const hn_split3 s = hn_op_split(&y->type, axis);

    for (int64_t e = 0; e < y->numel; e++) {
        if (!m->outside[e / s.inner % s.n]) continue;
        if (hn_dtype_is_float(y->type.dtype))
            y->f[e] = value;
        else
            y->i[e] = (int64_t)value;
    }
}

static void store(const double *from, hn_view *out)
{
    double lo, hi;

    if (hn_dtype_is_float(out->type.dtype)) {
        if (out->numel) memcpy(out->f, from, (size_t)out->numel * sizeof(double));
        return;
    }
    rs_int_range(out->type.dtype, &lo, &hi);
    for (int64_t i = 0; i < out->numel; i++)
        out->i[i] = from[i] >= hi ? (int64_t)fmin(hi, 0x1.fffffffffffffp62) : (int64_t)fmax(from[i], lo);
}

/* Axis by axis through buffers of 8-byte elements; `whole` says that they hold integers. */
static hone_status through_axes(const hn_call *c, const hn_view *in, hn_view *out, bool whole, hn_diag *dg)
{
    hn_tdesc at = in[0].type;
    void *have, *next;

    HN_TRY(hn_op_scratch(in[0].numel + 1, 8, &have, dg));
    for (int64_t i = 0; i < in[0].numel; i++) {
        if (whole)
            ((int64_t *)have)[i] = in[0].i[i];
        else
            ((double *)have)[i] = hn_dtype_is_float(at.dtype) ? in[0].f[i] : hn_op_to_f(at.dtype, in[0].i[i]);
    }
    for (int axis = 0; axis < at.rank; axis++) {
        axis_map m;
        HN_TRY(map_init(c, in, out, axis, &m, dg));
        const hn_split3 s = hn_op_split(&at, axis);
        at.dim[axis] = m.n_out;
        HN_TRY(hn_op_scratch(hn_tdesc_numel_static(&at) + 1, 8, &next, dg));
        if (whole)
            apply_i(&m, have, next, s.outer, s.inner);
        else
            apply_f(&m, have, next, s.outer, s.inner);
        free(have);
        have = next;
        map_done(&m);
    }
    if (!whole) store(have, out);
    for (int64_t i = 0; whole && i < out[0].numel; i++)
        out[0].i[i] = ((int64_t *)have)[i];
    free(have);
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool whole = hn_call_i(c, "mode") == RS_MODE_NEAREST && !hn_dtype_is_float(in[0].type.dtype);

    if (out[0].numel == 0) return HONE_OK;
    HN_TRY(through_axes(c, in, out, whole, dg));
    for (int axis = 0; hn_call_i(c, "coord") == RS_TF_CROP && axis < in[0].type.rank; axis++) {
        axis_map m;
        HN_TRY(map_init(c, in, out, axis, &m, dg));
        extrapolate(&m, &out[0], axis, hn_call_f(c, "extrapolation"));
        map_done(&m);
    }
    return HONE_OK;
}

/* Taps of one axis, for each axis that changes. */
static void work(const hn_call *c, hn_work *ret)
{
    const int64_t mode = hn_call_i(c, "mode");
    const double taps = mode == RS_MODE_NEAREST ? 0 : mode == RS_MODE_LINEAR ? 2 : 4;
    int changed = 0;

    for (int i = 0; i < c->in[0].rank; i++)
        changed += c->in[0].dim[i] != c->out[0].dim[i];
    ret->flops = 2 * taps * changed * hn_op_count(c, &c->out[0]);
    ret->bytes = hn_op_bytes(c);
}

/*
 * Weights are products of a few roundings each (8 u for the cubic's polynomial, whose values stay below 1.2),
 * at most 4 axes deep on values within [-1, 1]; antialiasing sums more taps with weights that sum to 1.
 * Integers: the exact value may lie a rounding away from a whole number, and truncation then differs by one.
 */
const hn_op_def hn_op_resize = {
    HN_OP_ID(resize, 1, 2, 1, 1),
    .doc = "resample along every axis",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(
        HN_S_DIMS_REQ("dim"), HN_S_FLOATS("scale"), HN_S_FLOATS("roi"),
        HN_S_ENUM("mode", 0, "nearest|linear|cubic"),
        HN_S_ENUM(
            "coord", 0,
            "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize|half_pixel_symmetric"),
        HN_S_ENUM("nearest", 0, "round_prefer_floor|round_prefer_ceil|floor|ceil"),
        HN_S_FLOAT("cubic_a", -0.75), HN_S_INT("exclude_outside", 0), HN_S_FLOAT("extrapolation", 0),
        HN_S_INT("antialias", 0)),
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = rs_expand,
    .tol =
        {
            [HN_F64] = {.rel = 0x1p-49, .abs = 0x1p-47},
            [HN_F32] = {.rel = 0x1p-20, .abs = 0x1p-18},
            [HN_F16] = {.rel = 0x1p-9, .abs = 0x1p-9},
            [HN_BF16] = {.rel = 0x1p-6, .abs = 0x1p-6},
            [HN_I8] = {.abs = 1},
            [HN_U8] = {.abs = 1},
            [HN_I16] = {.abs = 1},
            [HN_U16] = {.abs = 1},
            [HN_I32] = {.abs = 1},
            [HN_U32] = {.abs = 1},
            [HN_I64] = {.abs = 1},
            [HN_U64] = {.abs = 1},
        },
};
