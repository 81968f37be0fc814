/*
 * Random tensors. Element i of a node with a seed is a pure function of (seed, i): the bits are SplitMix64's
 * output for counter i (Steele, Lea, Flood 2014), so references and kernels agree in any order and on any
 * number of threads.
 *
 *     uniform in [0, 1): top 24 bits / 2^24
 *     normal: Box and Muller's transform of the uniforms 2i (moved to (0, 1]) and 2i + 1
 */
#include "op/op_int.h"

static uint64_t bits_of(int64_t seed, uint64_t i)
{
    uint64_t z = (uint64_t)seed + (i + 1) * 0x9E3779B97F4A7C15U;

    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27) * 0x94D049BB133111EBU;
    return z ^ z >> 31;
}

static double uniform(int64_t seed, uint64_t i)
{
    return (double)(bits_of(seed, i) >> 40) * 0x1p-24;
}

static double normal(int64_t seed, uint64_t i)
{
    const double two_pi = 6.283185307179586;
    const double u = uniform(seed, 2 * i) + 0x1p-24, v = uniform(seed, 2 * i + 1);

    return sqrt(-2 * log(u)) * cos(two_pi * v);
}

static hone_status infer_shaped(hn_call *c, hn_diag *dg)
{
    enum { DTYPE, DIM };

    HN_TRY(hn_op_want_dtype_attr(c, DTYPE, dg));
    if (!hn_dtype_is_float((hn_dtype)c->attr[DTYPE].i))
        return HN_RAISE(dg, HONE_E_TYPE, "random numbers are floats, not %s",
                        hn_dtype_name((hn_dtype)c->attr[DTYPE].i));
    HN_TRY(hn_op_dims_attr(c, DIM, &c->out[0], dg));
    c->out[0].dtype = (hn_dtype)c->attr[DTYPE].i;
    return HONE_OK;
}

/* ---- random_uniform, random_normal ---- */
static hone_status ref_uniform(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    enum { LO = 2, HI, SEED };
    const double lo = c->attr[LO].f, hi = c->attr[HI].f;
    (void)in, (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].f[i] = lo + (hi - lo) * uniform(c->attr[SEED].i, (uint64_t)i);
    return HONE_OK;
}

static hone_status ref_normal(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    enum { MEAN = 2, SCALE, SEED };
    const double mean = c->attr[MEAN].f, scale = c->attr[SCALE].f;
    (void)in, (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].f[i] = mean + scale * normal(c->attr[SEED].i, (uint64_t)i);
    return HONE_OK;
}

/* Two roundings for the affine map; ten half-ulps of sqrt, log and cos on top for the normal, whose small
 * values are differences of nothing. */
const hn_op_def hn_op_random_uniform = {
    HN_OP_ID(random_uniform, 0, 0, 1, 1),
    .doc = "uniform in [lo, hi)",
    .traits = HN_TRAIT_RANDOM,
    HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_F32), HN_S_DIMS_REQ("dim"), HN_S_FLOAT("lo", 0), HN_S_FLOAT("hi", 1),
                HN_S_INT("seed", 0)),
    .infer = infer_shaped,
    .ref = ref_uniform,
    .work = hn_op_work_pointwise,
    .tol = HN_OP_TOL_SUM(2, 2),
};

const hn_op_def hn_op_random_normal = {
    HN_OP_ID(random_normal, 0, 0, 1, 1),
    .doc = "normally distributed around mean",
    .traits = HN_TRAIT_RANDOM,
    HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_F32), HN_S_DIMS_REQ("dim"), HN_S_FLOAT("mean", 0),
                HN_S_FLOAT("scale", 1), HN_S_INT("seed", 0)),
    .infer = infer_shaped,
    .ref = ref_normal,
    .work = hn_op_work_math,
    .tol = HN_OP_TOL_SUM(12, 12),
};

/* ---- bernoulli(p): 1 with probability p ---- */
static hone_status infer_bernoulli(hn_call *c, hn_diag *dg)
{
    enum { DTYPE };

    HN_TRY(hn_op_want_float(c, 0, dg));
    c->out[0] = c->in[0];
    if (c->attr[DTYPE].i == HN_NONE) return HONE_OK;
    HN_TRY(hn_op_want_dtype_attr(c, DTYPE, dg));
    c->out[0].dtype = (hn_dtype)c->attr[DTYPE].i;
    return HONE_OK;
}

static hone_status ref_bernoulli(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    enum { SEED = 1 };
    const bool is_float = hn_dtype_is_float(out[0].type.dtype);
    (void)dg;

    for (int64_t i = 0; i < out[0].numel; i++) {
        const bool hit = uniform(c->attr[SEED].i, (uint64_t)i) < in[0].f[i];
        if (is_float)
            out[0].f[i] = hit;
        else
            out[0].i[i] = hit;
    }
    return HONE_OK;
}

const hn_op_def hn_op_bernoulli = {
    HN_OP_ID(bernoulli, 1, 1, 1, 1), .doc = "1 with the probability the operand gives, else 0",
    .traits = HN_TRAIT_RANDOM,       HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_NONE), HN_S_INT("seed", 0)),
    .infer = infer_bernoulli,        .ref = ref_bernoulli,
    .work = hn_op_work_pointwise,
};

/* ---- multinomial(logits [b, c]): class indices drawn with probability softmax(logits) ---- */
static hone_status infer_multinomial(hn_call *c, hn_diag *dg)
{
    enum { DTYPE, DIM };

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_rank(c, 0, 2, dg));
    if (c->attr[DTYPE].i != HN_I32 && c->attr[DTYPE].i != HN_I64)
        return HN_RAISE(dg, HONE_E_TYPE, "class numbers are i32 or i64");
    HN_TRY(hn_op_want_extent(c, c->attr[DIM].i, "the sample count", dg));
    c->out[0] = (hn_tdesc){ .dtype = (hn_dtype)c->attr[DTYPE].i,
                            .rank = 2,
                            .dim = { c->in[0].dim[0], c->attr[DIM].i } };
    return HONE_OK;
}

/* The first class whose cumulated weight exceeds u of the total. */
static int64_t draw(const double *logit, int64_t n, double u)
{
    double top = -INFINITY, total = 0, sum = 0;

    for (int64_t k = 0; k < n; k++)
        top = fmax(top, logit[k]);
    for (int64_t k = 0; k < n; k++)
        total += exp(logit[k] - top);
    for (int64_t k = 0; k < n; k++) {
        sum += exp(logit[k] - top);
        if (sum > u * total) return k;
    }
    return n - 1;
}

static hone_status ref_multinomial(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    enum { SEED = 2 };
    const int64_t classes = in[0].type.dim[1], samples = out[0].type.dim[1];

    if (classes == 0 && out[0].numel) return HN_RAISE(dg, HONE_E_SHAPE, "there is no class to draw from");
    for (int64_t i = 0; i < out[0].numel; i++)
        out[0].i[i] = draw(in[0].f + i / samples * classes, classes, uniform(c->attr[SEED].i, (uint64_t)i));
    return HONE_OK;
}

const hn_op_def hn_op_multinomial = {
    HN_OP_ID(multinomial, 1, 1, 1, 1),
    .doc = "classes drawn by unnormalised log-probabilities",
    .traits = HN_TRAIT_RANDOM,
    HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_I32), HN_S_DIM_REQ("dim"), HN_S_INT("seed", 0)),
    .infer = infer_multinomial,
    .ref = ref_multinomial,
    .work = hn_op_work_math,
};
