/*
 * Normalisations of shapes of their own:
 *
 *     lp_norm {axis, p}                  x / ||x||_p along an axis, p 1 or 2; a zero norm gives zeros
 *     lrn {size, alpha, beta, bias}      x / (bias + alpha/size * sum of x^2 over `size` neighbouring
 * channels)^beta, the window reaching (size-1)/2 rounded down before and rounded up after mvn {axes, eps} (x
 * - mean) / (deviation + eps) over axes; none given: 0, 2, 3
 */
#include "op/expand_int.h"

enum { LP_AXIS, LP_P };
enum { LRN_SIZE };
enum { MVN_AXES, MVN_EPS };

/* ---- lp_norm ---- */

static hone_status infer_lp(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 1, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_axis(c, LP_AXIS, c->in[0].rank, false, &axis, dg));
    HN_TRY(hn_op_want_attr(c, LP_P, 1, 2, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref_lp(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool l1 = hn_call_i(c, "p") == 1;
    int axis;

    HN_TRY(hn_op_want_axis(c, LP_AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
            const double *x = in[0].f + o * s.n * s.inner + i;
            double *y = out[0].f + o * s.n * s.inner + i, sum = 0;
            for (int64_t k = 0; k < s.n; k++)
                sum += l1 ? fabs(x[k * s.inner]) : x[k * s.inner] * x[k * s.inner];
            const double norm = l1 ? sum : sqrt(sum);
            for (int64_t k = 0; k < s.n; k++)
                y[k * s.inner] = norm == 0 ? 0 : x[k * s.inner] / norm;
        }
    return HONE_OK;
}

static hone_status expand_lp(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = x_up(b, hn_in(n, 0));
    int axis = 0;

    hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis);
    const hn_op op = hn_attr_i(n, "p") == 1 ? HN_OP_reduce_l1 : HN_OP_reduce_l2;
    hn_value *norm = x_reduce1(b, op, x, axis, true);
    hn_value *y = x_select(b, x_eq_k(b, norm, 0), x_k(b, x, 0), x_div(b, x, norm));
    out[0] = x_cast(b, y, hn_in(n, 0)->type.dtype);
    return x_done(b);
}

/* ---- lrn ---- */

static hone_status infer_lrn(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_attr(c, LRN_SIZE, 1, 1 << 20, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref_lrn(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t size = hn_call_i(c, "size"), before = (size - 1) / 2, after = size - 1 - before;
    const double alpha = hn_call_f(c, "alpha"), beta = hn_call_f(c, "beta"), bias = hn_call_f(c, "bias");
    const hn_split3 s = hn_op_split(&in[0].type, 1);

    (void)dg;
    for (int64_t i = 0; i < in[0].numel; i++) {
        const int64_t k = i / s.inner % s.n;
        double sum = 0;
        for (int64_t j = HN_MAX(k - before, 0); j <= HN_MIN(k + after, s.n - 1); j++) {
            const double x = in[0].f[i + (j - k) * s.inner];
            sum += x * x;
        }
        out[0].f[i] = in[0].f[i] / pow(bias + alpha / (double)size * sum, beta);
    }
    return HONE_OK;
}

static void work_lrn(const hn_call *c, hn_work *ret)
{
    ret->flops = (double)(hn_call_i(c, "size") + 24) * hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

/* A window of ones along the channels is a convolution in which they are a spatial axis. */
static hn_value *x_window_sum(hn_builder *b, hn_value *x, int64_t size)
{
    const hn_tdesc type = x->type;
    const hn_dim as[4] = {type.dim[0], 1, type.dim[1], x_dprod(b, &type, 2, type.rank)};
    const int64_t kernel[4] = {1, 1, size, 1}, ones[2] = {1, 1};
    const hn_dim before[2] = {(size - 1) / 2, 0}, after[2] = {size - 1 - (size - 1) / 2, 0};
    double *w = HN_NEW_N(b->g->arena, double, size);

    if (!w) return NULL;
    for (int64_t i = 0; i < size; i++)
        w[i] = 1;
    hn_value *y = hn_b2(b, HN_OP_conv, hn_reshape(b, x, 4, as), hn_const_fs(b, type.dtype, 4, kernel, w),
                        HN_ATTRS_ARG(HN_A_IS("stride", 2, ones), HN_A_IS("dilation", 2, ones),
                                     HN_A_DIMS("pad_begin", 2, before), HN_A_DIMS("pad_end", 2, after)));
    return hn_reshape(b, y, type.rank, type.dim);
}

static hone_status expand_lrn(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = x_up(b, hn_in(n, 0));
    const int64_t size = hn_attr_i(n, "size");

    if (!x) return x_done(b);
    hn_value *sum = x_window_sum(b, x_mul(b, x, x), size);
    hn_value *base = x_add_k(b, x_mul_k(b, sum, hn_attr_f(n, "alpha") / (double)size), hn_attr_f(n, "bias"));
    out[0] = x_cast(b, x_div(b, x, x_pow_k(b, base, hn_attr_f(n, "beta"))), hn_in(n, 0)->type.dtype);
    return x_done(b);
}

/* ---- mvn ---- */

/* Sorted, unique, non-negative axes. */
static hone_status mvn_axes(const int64_t *given, int n_given, int rank, int64_t *ret, int *ret_n,
                            hn_diag *dg)
{
    bool on[HN_MAX_RANK] = {false};

    for (int i = 0; i < n_given; i++) {
        int axis;
        if (!hn_axis_resolve(given[i], rank, &axis))
            return HN_RAISE(dg, HONE_E_SHAPE, "axis %lld is out of range for rank %d", (long long)given[i],
                            rank);
        on[axis] = true;
    }
    for (int i = 0; n_given == 0 && i < rank && i < 4; i++)
        on[i] = i != 1;
    *ret_n = 0;
    for (int i = 0; i < rank; i++)
        if (on[i]) ret[(*ret_n)++] = i;
    return HONE_OK;
}

static hone_status infer_mvn(hn_call *c, hn_diag *dg)
{
    int64_t axes[HN_MAX_RANK];
    int n, n_given;
    const int64_t *given = hn_call_is(c, "axes", &n_given);

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(mvn_axes(given, n_given, c->in[0].rank, axes, &n, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

/* The statistics of one slice, walked with zero strides along the reduced axes. */
static hone_status ref_mvn(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_tdesc *t = &in[0].type;
    int64_t axes[HN_MAX_RANK];
    int n, n_given;
    const int64_t *given = hn_call_is(c, "axes", &n_given);
    double *mean, *dev;
    hn_tdesc kept = *t;

    HN_TRY(mvn_axes(given, n_given, t->rank, axes, &n, dg));
    for (int i = 0; i < n; i++)
        kept.dim[axes[i]] = 1;
    const int64_t slices = hn_tdesc_numel_static(&kept);
    HN_TRY(hn_op_scratch(2 * slices + 1, sizeof(double), (void **)&mean, dg));
    dev = mean + slices;
    const double each = slices ? (double)(in[0].numel / slices) : 1;
    for (int phase = 0; phase < 3; phase++) {
        hn_walk w;
        hn_walk_init(&w, t);
        hn_walk_add(&w, &kept);
        while (hn_walk_next(&w))
            for (int64_t i = 0; i < w.run; i++) {
                const int64_t s = w.at[0] + i * w.step[0];
                const double x = in[0].f[w.pos + i], d = x - mean[s] / each;
                if (phase == 0)
                    mean[s] += x;
                else if (phase == 1)
                    dev[s] += d * d;
                else
                    out[0].f[w.pos + i] = d / (sqrt(dev[s] / each) + hn_call_f(c, "eps"));
            }
    }
    free(mean);
    return HONE_OK;
}

static void work_two_pass(const hn_call *c, hn_work *ret)
{
    ret->flops = 6 * hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

static hone_status expand_mvn(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = x_up(b, hn_in(n, 0));
    int64_t axes[HN_MAX_RANK];
    int n_axes, n_given;
    const int64_t *given = hn_attr_is(n, "axes", &n_given);

    HN_TRY(mvn_axes(given, n_given, hn_in(n, 0)->type.rank, axes, &n_axes, b->dg));
    x = x_sub(b, x, x_reduce(b, HN_OP_reduce_mean, x, n_axes, axes, true));
    hn_value *var = x_reduce(b, HN_OP_reduce_mean, x_mul(b, x, x), n_axes, axes, true);
    hn_value *y = x_div(b, x, x_add_k(b, x_sqrt(b, var), hn_attr_f(n, "eps")));
    out[0] = x_cast(b, y, hn_in(n, 0)->type.dtype);
    return x_done(b);
}

enum { TRAITS = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE };

/* The sum's error halves in the root; squares of halves must not overflow, so compute in f32: 3 roundings and
 * the sum. */
const hn_op_def hn_op_lp_norm = {
    HN_OP_ID(lp_norm, 1, 1, 1, 1),
    .doc = "divide by the 1- or 2-norm along an axis",
    .traits = TRAITS | HN_TRAIT_INPLACE,
    HN_OP_ATTRS(HN_S_INT("axis", -1), HN_S_INT("p", 2)),
    .infer = infer_lp,
    .ref = ref_lp,
    .work = work_two_pass,
    .expand = expand_lp,
    .tol = HN_OP_TOL_SUM(72, 1),
};

/* pow good to 4 ulp (8 half-ulps), the base's error times beta, the quotient. */
const hn_op_def hn_op_lrn = {
    HN_OP_ID(lrn, 1, 1, 1, 1),
    .doc = "local response normalisation across channels",
    .traits = TRAITS,
    HN_OP_ATTRS(HN_S_INT_REQ("size"), HN_S_FLOAT("alpha", 1e-4), HN_S_FLOAT("beta", 0.75),
                HN_S_FLOAT("bias", 1)),
    .infer = infer_lrn,
    .ref = ref_lrn,
    .work = work_lrn,
    .expand = expand_lrn,
    .tol = HN_OP_TOL(32),
};

/* As layer_norm: the mean's error is absolute, scaled by the deviation. */
const hn_op_def hn_op_mvn = {
    HN_OP_ID(mvn, 1, 1, 1, 1),
    .doc = "subtract the mean and divide by the deviation over axes",
    .traits = TRAITS,
    HN_OP_ATTRS(HN_S_INTS("axes"), HN_S_FLOAT("eps", 1e-9)),
    .infer = infer_mvn,
    .ref = ref_mvn,
    .work = work_two_pass,
    .expand = expand_mvn,
    .tol = HN_OP_TOL_SUM(32, 64),
};
