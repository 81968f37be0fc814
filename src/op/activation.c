/*
 * Composite activations, one operand of a float dtype to a result of the same shape:
 *
 *     gelu {tanh}          x/2 (1 + erf(x/sqrt 2)), or x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
 *     silu {beta}          x sigmoid(beta x)
 *     hard_swish           x max(0, min(1, x/6 + 1/2))
 *     hard_sigmoid {a, b}  max(0, min(1, a x + b))
 *     leaky_relu {a}       x < 0 ? a x : x
 *     elu {a}              x < 0 ? a (e^x - 1) : x
 *     selu {a, g}          g (x > 0 ? x : a (e^x - 1))
 *     celu {a}             max(0, x) + min(0, a (e^(x/a) - 1))
 *     softplus             log(1 + e^x)
 *     softsign             x / (1 + |x|)
 *     mish                 x tanh(softplus(x))
 *     thresholded_relu {a} x > a ? x : 0
 *     shrink {bias, l}     x < -l ? x + bias : x > l ? x - bias : 0      (integers too)
 *
 * NaN yields NaN except where a comparison decides (thresholded_relu and shrink give 0, as ONNX writes them).
 */
#include "op/expand_int.h"

static const double SQRT1_2 = 0.70710678118654752440, SQRT_2_PI = 0.79788456080286535588;

static double softplus(double x)
{
    return isnan(x) ? x : fmax(x, 0) + log1p(exp(-fabs(x)));
}

/* The parameters of a use, in schema order. */
typedef struct act_param {
    double a, b;
} act_param;

static double gelu(double x, act_param p)
{
    if (p.a != 0) return 0.5 * x * (1 + tanh(SQRT_2_PI * (x + 0.044715 * x * x * x)));
    return 0.5 * x * erfc(-x * SQRT1_2);
}
static double silu(double x, act_param p)
{
    return x / (1 + exp(-p.a * x));
}
static double hard_swish(double x, act_param p)
{
    (void)p;
    return isnan(x) ? x : x * fmax(0, fmin(1, x / 6 + 0.5));
}
static double hard_sigmoid(double x, act_param p)
{
    return isnan(x) ? x : fmax(0, fmin(1, p.a * x + p.b));
}
static double leaky_relu(double x, act_param p)
{
    return x < 0 ? p.a * x : x;
}
static double elu(double x, act_param p)
{
    return x < 0 ? p.a * expm1(x) : x;
}
static double selu(double x, act_param p)
{
    return x > 0 ? p.b * x : p.b * (p.a * expm1(x));
}
static double celu(double x, act_param p)
{
    return isnan(x) ? x : fmax(0, x) + fmin(0, p.a * expm1(x / p.a));
}
static double softplus_of(double x, act_param p)
{
    (void)p;
    return softplus(x);
}
static double softsign(double x, act_param p)
{
    (void)p;
    return x / (1 + fabs(x));
}
static double mish(double x, act_param p)
{
    (void)p;
    return x * tanh(softplus(x));
}
static double thresholded_relu(double x, act_param p)
{
    return x > p.a ? x : 0;
}
static double shrink(double x, act_param p)
{
    return x < -p.b ? x + p.a : x > p.b ? x - p.a : 0;
}

static double param(const hn_call *c, int i)
{
    const hn_attr_schema *s = &c->op->attrs[i];
    const hn_attr *at = &c->attr[i];

    if (i >= c->op->n_attr) return 0;
    if (s->kind == HN_ATTR_INT) return (double)(at->set ? at->i : s->dflt_i);
    return at->set ? at->f : s->dflt_f;
}

static double (*function_of(hn_op op))(double, act_param)
{
    switch ((int)op) {
    case HN_OP_gelu:
        return gelu;
    case HN_OP_silu:
        return silu;
    case HN_OP_hard_swish:
        return hard_swish;
    case HN_OP_hard_sigmoid:
        return hard_sigmoid;
    case HN_OP_leaky_relu:
        return leaky_relu;
    case HN_OP_elu:
        return elu;
    case HN_OP_selu:
        return selu;
    case HN_OP_celu:
        return celu;
    case HN_OP_softplus:
        return softplus_of;
    case HN_OP_softsign:
        return softsign;
    case HN_OP_mish:
        return mish;
    case HN_OP_thresholded_relu:
        return thresholded_relu;
    default:
        return shrink;
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    double (*const f)(double, act_param) = function_of(c->op->id);
    const act_param p = {param(c, 0), param(c, 1)};

    (void)dg;
    if (hn_dtype_is_float(in[0].type.dtype))
        for (int64_t i = 0; i < out->numel; i++)
            out->f[i] = f(in[0].f[i], p);
    else
        for (int64_t i = 0; i < out->numel; i++)
            out->i[i] = (int64_t)f(hn_op_to_f(in[0].type.dtype, in[0].i[i]), p);
    return HONE_OK;
}

/* ---- expansions ---- */

static hn_value *x_softplus(hn_builder *b, hn_value *x)
{
    hn_value *e = x_exp(b, x_neg(b, x_abs(b, x)));
    return x_add(b, x_relu(b, x), x_log(b, x_add_k(b, e, 1)));
}

static hn_value *x_gelu(hn_builder *b, hn_value *x, bool tanh_form)
{
    hn_value *t;

    if (tanh_form) {
        hn_value *slope = x_add_k(b, x_mul_k(b, x_mul(b, x, x), 0.044715 * SQRT_2_PI), SQRT_2_PI);
        t = x_tanh(b, x_mul(b, x, slope));
    } else {
        t = x_erf(b, x_mul_k(b, x, SQRT1_2));
    }
    return x_mul(b, x_mul_k(b, x, 0.5), x_add_k(b, t, 1));
}

/* Overflow of the power gives a result of -0, where the true one is below the smallest normal number. */
static hn_value *x_silu(hn_builder *b, hn_value *x, double beta)
{
    hn_value *e = x_exp(b, x_mul_k(b, x, -beta));
    return x_div(b, x, x_add_k(b, e, 1));
}

/* tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2). From x = 20 on the quotient rounds to 1 in double too. */
static hn_value *x_mish(hn_builder *b, hn_value *x)
{
    hn_value *e = x_exp(b, x_min_k(b, x, 20));
    hn_value *n = x_mul(b, e, x_add_k(b, e, 2));
    return x_mul(b, x, x_div(b, n, x_add_k(b, n, 2)));
}

/* a (e^x - 1) */
static hn_value *x_exp_branch(hn_builder *b, hn_value *x, double a)
{
    return x_mul_k(b, x_add_k(b, x_exp(b, x), -1), a);
}

static hn_value *x_shrink(hn_builder *b, hn_value *x, double bias, double lambd)
{
    hn_value *high = x_select(b, x_gt(b, x, x_k(b, x, lambd)), x_add_k(b, x, -bias), x_k(b, x, 0));
    return x_select(b, x_lt(b, x, x_k(b, x, -lambd)), x_add_k(b, x, bias), high);
}

static hn_value *build(hn_builder *b, const hn_node *n, hn_value *x)
{
    switch ((int)n->op) {
    case HN_OP_gelu:
        return x_gelu(b, x, hn_attr_i(n, "tanh") != 0);
    case HN_OP_silu:
        return x_silu(b, x, hn_attr_f(n, "beta"));
    case HN_OP_hard_swish:
        return x_mul(b, x, x_clip(b, x_add_k(b, x_mul_k(b, x, 1.0 / 6), 0.5), 0, 1));
    case HN_OP_hard_sigmoid:
        return x_clip(b, x_add_k(b, x_mul_k(b, x, hn_attr_f(n, "alpha")), hn_attr_f(n, "beta")), 0, 1);
    case HN_OP_leaky_relu:
        return x_select(b, x_lt_k(b, x, 0), x_mul_k(b, x, hn_attr_f(n, "alpha")), x);
    case HN_OP_elu:
        return x_select(b, x_lt_k(b, x, 0), x_exp_branch(b, x, hn_attr_f(n, "alpha")), x);
    case HN_OP_selu: {
        hn_value *neg = x_exp_branch(b, x, hn_attr_f(n, "alpha"));
        return x_mul_k(b, x_select(b, x_gt_k(b, x, 0), x, neg), hn_attr_f(n, "gamma"));
    }
    case HN_OP_celu: {
        const double a = hn_attr_f(n, "alpha");
        return x_add(b, x_relu(b, x), x_min_k(b, x_exp_branch(b, x_div_k(b, x, a), a), 0));
    }
    case HN_OP_softplus:
        return x_softplus(b, x);
    case HN_OP_softsign:
        return x_div(b, x, x_add_k(b, x_abs(b, x), 1));
    case HN_OP_mish:
        return x_mish(b, x);
    case HN_OP_thresholded_relu:
        return x_select(b, x_gt_k(b, x, hn_attr_f(n, "alpha")), x, x_k(b, x, 0));
    default:
        return x_shrink(b, x, hn_attr_f(n, "bias"), hn_attr_f(n, "lambd"));
    }
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const hn_dtype t = x->type.dtype;
    /* shrink on integers: f64 holds every value that a float bias could change exactly */
    hn_value *wide = hn_dtype_is_float(t) ? x_up(b, x) : x_cast(b, x, HN_F64);

    out[0] = x_cast(b, build(b, n, wide), t);
    return x_done(b);
}

#define ACT(name_, doc_, infer_, tol_, ...)                                                                  \
    const hn_op_def hn_op_##name_ = {                                                                        \
        .id = HN_OP_##name_,                                                                                 \
        .name = #name_,                                                                                      \
        .doc = doc_,                                                                                         \
        .min_in = 1,                                                                                         \
        .max_in = 1,                                                                                         \
        .min_out = 1,                                                                                        \
        .max_out = 1,                                                                                        \
        .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE | HN_TRAIT_COMPOSITE | HN_TRAIT_INPLACE,                \
        __VA_ARGS__.infer = infer_,                                                                          \
        .ref = ref,                                                                                          \
        .work = hn_op_work_math,                                                                             \
        .expand = expand,                                                                                    \
        .tol = tol_,                                                                                         \
    };

/*
 * Tolerances, in unit roundoffs u. Relative: 4 for each transcendental function (vector math is good to 2
 * ulp) and one a rounding. Absolute where terms cancel: 1 + erf(..) and e^x - 1 are wrong by up to u (1
 * rounding of a value near 1) and 2u (function error), times the factor in front: |x|/2 up to 6 for gelu
 * (beyond, erf is -1 exactly); 1.76 for selu.
 */
ACT(gelu, "Gaussian error linear unit", hn_op_infer_same_float, HN_OP_TOL_SUM(16, 24),
    HN_OP_ATTRS(HN_S_INT("tanh", 0)), )
ACT(silu, "x * sigmoid(beta * x)", hn_op_infer_same_float, HN_OP_TOL_SUM(16, 1),
    HN_OP_ATTRS(HN_S_FLOAT("beta", 1)), )
ACT(hard_swish, "x * clip(x/6 + 1/2, 0, 1)", hn_op_infer_same_float, HN_OP_TOL_SUM(4, 12), )
ACT(hard_sigmoid, "clip(alpha*x + beta, 0, 1)", hn_op_infer_same_float, HN_OP_TOL_SUM(4, 4),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 0.2), HN_S_FLOAT("beta", 0.5)), )
ACT(leaky_relu, "x, or alpha*x where negative", hn_op_infer_same_float, HN_OP_TOL(3),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 0.01)), )
ACT(elu, "x, or alpha*(exp(x)-1) where negative", hn_op_infer_same_float, HN_OP_TOL_SUM(8, 6),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 1)), )
ACT(selu, "scaled elu", hn_op_infer_same_float, HN_OP_TOL_SUM(8, 12),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 1.67326319217681884765625),
                HN_S_FLOAT("gamma", 1.05070102214813232421875)), )
ACT(celu, "continuously differentiable elu", hn_op_infer_same_float, HN_OP_TOL_SUM(8, 6),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 1)), )
ACT(softplus, "log(1 + exp(x))", hn_op_infer_same_float, HN_OP_TOL_SUM(12, 8), )
ACT(softsign, "x / (1 + |x|)", hn_op_infer_same_float, HN_OP_TOL(4), )
ACT(mish, "x * tanh(softplus(x))", hn_op_infer_same_float, HN_OP_TOL_SUM(24, 48), )
ACT(thresholded_relu, "x where above alpha, else 0", hn_op_infer_same_float, HN_OP_TOL(1),
    HN_OP_ATTRS(HN_S_FLOAT("alpha", 1)), )
ACT(shrink, "toward zero by bias outside [-lambd, lambd], 0 inside", hn_op_infer_same_number,
    HN_OP_TOL_SUM(2, 2), HN_OP_ATTRS(HN_S_FLOAT("bias", 0), HN_S_FLOAT("lambd", 0.5)), )
