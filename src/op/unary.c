/* Elementwise ops of one operand that keep its dtype, and the two float predicates. */
#include "op/op_int.h"

typedef double unary_f(double x);
typedef int64_t unary_i(int64_t x);

static double neg_f(double x)
{
    return -x;
}

static int64_t neg_i(int64_t x)
{
    return (int64_t)(0 - (uint64_t)x);
}

static int64_t abs_i(int64_t x)
{
    return x < 0 ? neg_i(x) : x;
}

static double sign_f(double x)
{
    return isnan(x) ? x : (x > 0) - (x < 0);
}

static int64_t sign_i(int64_t x)
{
    return (x > 0) - (x < 0);
}

static double reciprocal_f(double x)
{
    return 1.0 / x;
}

static double relu_f(double x)
{
    return isnan(x) || x > 0 ? x : 0.0;
}

static int64_t relu_i(int64_t x)
{
    return x > 0 ? x : 0;
}

static double sigmoid_f(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

/* By op id. Ops without an integer row take floats only. */
static const struct {
    unary_f *f;
    unary_i *i;
} fn[HN_OP_trunc + 1] = {
    [HN_OP_neg] = { neg_f, neg_i },
    [HN_OP_abs] = { fabs, abs_i },
    [HN_OP_sign] = { sign_f, sign_i },
    [HN_OP_floor] = { floor, NULL },
    [HN_OP_ceil] = { ceil, NULL },
    [HN_OP_round] = { nearbyint, NULL }, /* in the default rounding mode: half to even */
    [HN_OP_sqrt] = { sqrt, NULL },
    [HN_OP_reciprocal] = { reciprocal_f, NULL },
    [HN_OP_exp] = { exp, NULL },
    [HN_OP_log] = { log, NULL },
    [HN_OP_sin] = { sin, NULL },
    [HN_OP_cos] = { cos, NULL },
    [HN_OP_tan] = { tan, NULL },
    [HN_OP_asin] = { asin, NULL },
    [HN_OP_acos] = { acos, NULL },
    [HN_OP_atan] = { atan, NULL },
    [HN_OP_sinh] = { sinh, NULL },
    [HN_OP_cosh] = { cosh, NULL },
    [HN_OP_tanh] = { tanh, NULL },
    [HN_OP_asinh] = { asinh, NULL },
    [HN_OP_acosh] = { acosh, NULL },
    [HN_OP_atanh] = { atanh, NULL },
    [HN_OP_erf] = { erf, NULL },
    [HN_OP_relu] = { relu_f, relu_i },
    [HN_OP_sigmoid] = { sigmoid_f, NULL },
    [HN_OP_trunc] = { trunc, NULL },
};

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    unary_f *f = fn[c->op->id].f;
    unary_i *k = fn[c->op->id].i;
    (void)dg;

    if (hn_dtype_is_float(t)) {
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].f[i] = f(in[0].f[i]);
    } else if (!hn_dtype_is_signed(t) && c->op->id != HN_OP_neg) {
        /* Unsigned: never below zero, u64 above the int64 range included. */
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].i[i] = c->op->id == HN_OP_sign ? in[0].i[i] != 0 : in[0].i[i];
    } else {
        for (int64_t i = 0; i < out[0].numel; i++)
            out[0].i[i] = k(in[0].i[i]);
    }
    return HONE_OK;
}

static bool neg_content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    if (!hn_op_content_same(c, out, ret, ret_n)) return false;
    for (int i = 0; i < *ret_n; i++)
        ret[i] = hn_dim_sub(c->syms, 0, ret[i]);
    return true;
}

enum { POINTWISE = HN_TRAIT_PURE | HN_TRAIT_POINTWISE | HN_TRAIT_INPLACE };

/* k: tolerance in half-ulps. 0: exact in every float dtype. 2: one rounding, and one more for a refined
 * estimate. 5 and 9: our vector functions' 2 and 4 ulp (kir/kmath.def), and the rounding of the reference's
 * result. */
#define UNARY(name_, doc_, infer_, work_, k_)                                                                \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 1, 1, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = POINTWISE,                                                                                 \
        .infer = infer_,                                                                                     \
        .ref = ref,                                                                                          \
        .work = work_,                                                                                       \
        .tol = HN_OP_TOL(k_),                                                                                \
    };
#define EXACT 0
#define ONE   2
#define ULP2  5
#define ULP4  9

const hn_op_def hn_op_neg = {
    HN_OP_ID(neg, 1, 1, 1, 1),        .doc = "-x; integers wrap", .traits = POINTWISE,
    .infer = hn_op_infer_same_number, .content = neg_content,     .ref = ref,
    .work = hn_op_work_pointwise,
};
UNARY(abs, "|x|; the lowest integer wraps to itself", hn_op_infer_same_number, hn_op_work_pointwise, EXACT)
UNARY(sign, "-1, 0 or 1; NaN stays NaN", hn_op_infer_same_number, hn_op_work_pointwise, EXACT)
UNARY(floor, "largest integer not above x", hn_op_infer_same_float, hn_op_work_pointwise, EXACT)
UNARY(ceil, "smallest integer not below x", hn_op_infer_same_float, hn_op_work_pointwise, EXACT)
UNARY(round, "nearest integer, halves to even", hn_op_infer_same_float, hn_op_work_pointwise, EXACT)
UNARY(trunc, "nearest integer toward zero", hn_op_infer_same_float, hn_op_work_pointwise, EXACT)
UNARY(sqrt, "square root; NaN below zero", hn_op_infer_same_float, hn_op_work_pointwise, ONE)
UNARY(reciprocal, "1 / x", hn_op_infer_same_float, hn_op_work_pointwise, ONE)
UNARY(exp, "e to the x", hn_op_infer_same_float, hn_op_work_math, ULP2)
UNARY(log, "natural logarithm; NaN below zero", hn_op_infer_same_float, hn_op_work_math, ULP2)
UNARY(sin, "sine", hn_op_infer_same_float, hn_op_work_math, ULP2)
UNARY(cos, "cosine", hn_op_infer_same_float, hn_op_work_math, ULP2)
UNARY(tan, "tangent", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(asin, "inverse sine", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(acos, "inverse cosine", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(atan, "inverse tangent", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(sinh, "hyperbolic sine", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(cosh, "hyperbolic cosine", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(tanh, "hyperbolic tangent", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(asinh, "inverse hyperbolic sine", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(acosh, "inverse hyperbolic cosine; NaN below 1", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(atanh, "inverse hyperbolic tangent", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(erf, "error function", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(sigmoid, "1 / (1 + exp(-x))", hn_op_infer_same_float, hn_op_work_math, ULP4)
UNARY(relu, "max(x, 0); NaN propagates", hn_op_infer_same_number, hn_op_work_pointwise, EXACT)

/* ---- bits ---- */
static hone_status infer_bool(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, 0, HN_BOOL, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status infer_int(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_int(c, 0, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static hone_status ref_not(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool logical = c->op->id == HN_OP_not;
    (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].i[i] = logical ? !in[0].i[i] : ~in[0].i[i];
    return HONE_OK;
}

static bool not_content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    if (!hn_op_content_same(c, out, ret, ret_n)) return false;
    for (int i = 0; i < *ret_n; i++)
        ret[i] = hn_dim_sub(c->syms, 1, ret[i]);
    return true;
}

const hn_op_def hn_op_not = {
    HN_OP_ID(not, 1, 1, 1, 1),
    .doc = "logical negation",
    .traits = POINTWISE,
    .infer = infer_bool,
    .content = not_content,
    .ref = ref_not,
    .work = hn_op_work_pointwise,
};

const hn_op_def hn_op_bit_not = {
    HN_OP_ID(bit_not, 1, 1, 1, 1),
    .doc = "every bit inverted",
    .traits = POINTWISE,
    .infer = infer_int,
    .ref = ref_not,
    .work = hn_op_work_pointwise,
};

/* ---- predicates ---- */
enum { POSITIVE, NEGATIVE };

static hone_status infer_predicate(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    c->out[0] = c->in[0];
    c->out[0].dtype = HN_BOOL;
    return HONE_OK;
}

static hone_status ref_is_nan(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c, (void)dg;
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].i[i] = isnan(in[0].f[i]) != 0;
    return HONE_OK;
}

static hone_status ref_is_inf(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const bool pos = c->attr[POSITIVE].i, neg = c->attr[NEGATIVE].i;
    (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++) {
        const double x = in[0].f[i];
        out[0].i[i] = isinf(x) && (x > 0 ? pos : neg);
    }
    return HONE_OK;
}

const hn_op_def hn_op_is_nan = {
    HN_OP_ID(is_nan, 1, 1, 1, 1), .doc = "x is not a number", .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE,
    .infer = infer_predicate,     .ref = ref_is_nan,          .work = hn_op_work_pointwise,
};

const hn_op_def hn_op_is_inf = {
    HN_OP_ID(is_inf, 1, 1, 1, 1),
    .doc = "x is infinite, of the signs asked for",
    .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE,
    HN_OP_ATTRS(HN_S_INT("positive", 1), HN_S_INT("negative", 1)),
    .infer = infer_predicate,
    .ref = ref_is_inf,
    .work = hn_op_work_pointwise,
};

/* ---- identity ---- */
static hone_status infer_identity(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_infer_same(c, dg));
    c->out_kind[0] = c->in_kind ? c->in_kind[0] : HN_TENSOR;
    return HONE_OK;
}

static hone_status ref_identity(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    (void)c, (void)dg;
    memcpy(out[0].i, in[0].i, (size_t)out[0].numel * sizeof(int64_t));
    return HONE_OK;
}

const hn_op_def hn_op_identity = {
    HN_OP_ID(identity, 1, 1, 1, 1),
    .doc = "x itself",
    .traits = POINTWISE | HN_TRAIT_VIEW | HN_TRAIT_LISTS,
    .infer = infer_identity,
    .content = hn_op_content_same,
    .ref = ref_identity,
    .work = hn_op_work_move,
};
