/*
 * Softmax family along one axis {axis = -1}:
 *
 *     softmax       e^(x - max x) / sum e^(x - max x)
 *     log_softmax   (x - max x) - log sum e^(x - max x)
 *     hardmax       1 at the first maximum, else 0 (NaN compares as largest)
 *
 * A slice that holds NaN or +inf, or only -inf, is NaN throughout, as inf - inf makes it. A zero-length axis
 * yields nothing.
 */
#include "op/expand_int.h"

enum { AXIS };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 1, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

static void one(hn_op op, const double *x, double *y, int64_t n, int64_t step)
{
    double top = -INFINITY, sum = 0;
    int64_t at = 0;

    for (int64_t i = 0; i < n; i++) {
        if (isnan(x[i * step])) {
            if (!isnan(top)) at = i;
            top = x[i * step];
        } else if (x[i * step] > top) {
            top = x[i * step];
            at = i;
        }
    }
    for (int64_t i = 0; i < n; i++)
        sum += exp(x[i * step] - top);
    for (int64_t i = 0; i < n; i++) {
        const double d = x[i * step] - top;
        y[i * step] = op == HN_OP_softmax       ? exp(d) / sum
                      : op == HN_OP_log_softmax ? d - log(sum)
                                                : (double)(i == at);
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    for (int64_t o = 0; o < s.outer; o++)
        for (int64_t i = 0; i < s.inner; i++) {
            const int64_t at = o * s.n * s.inner + i;
            one(c->op->id, in[0].f + at, out[0].f + at, s.n, s.inner);
        }
    return HONE_OK;
}

/* max, subtract, exp, sum, divide */
static void work(const hn_call *c, hn_work *ret)
{
    ret->flops = (c->op->id == HN_OP_hardmax ? 2 : 14) * hn_op_count(c, &c->in[0]);
    ret->bytes = hn_op_bytes(c);
}

static hn_value *x_hardmax(hn_builder *b, hn_value *x, int axis)
{
    hn_value *top = hn_b1(b, HN_OP_arg_max, x, HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("keepdims", 1)));
    hn_value *i = x_iota(b, HN_I64, x->type.rank, axis, x->type.dim[axis]);
    return x_cast(b, x_eq(b, i, top), x->type.dtype);
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const hn_dtype t = x->type.dtype;
    int axis = 0;

    hn_axis_resolve(hn_attr_i(n, "axis"), x->type.rank, &axis);
    if (n->op == HN_OP_hardmax) { /* of a known empty axis nothing is the maximum, and nothing is asked for */
        out[0] = x->type.dim[axis] == 0 ? x : x_hardmax(b, x, axis);
        return x_done(b);
    }
    x = x_up(b, x);
    hn_value *d = x_sub(b, x, x_reduce1(b, HN_OP_reduce_max, x, axis, true));
    hn_value *e = x_exp(b, d);
    hn_value *sum = x_reduce1(b, HN_OP_reduce_sum, e, axis, true);
    hn_value *y = n->op == HN_OP_softmax ? x_div(b, e, sum) : x_sub(b, d, x_log(b, sum));
    out[0] = x_cast(b, y, t);
    return x_done(b);
}

#define SOFTMAX(name_, doc_, tol_)                                                                           \
    const hn_op_def hn_op_##name_ = {                                                                        \
        .id = HN_OP_##name_,                                                                                 \
        .name = #name_,                                                                                      \
        .doc = doc_,                                                                                         \
        .min_in = 1,                                                                                         \
        .max_in = 1,                                                                                         \
        .min_out = 1,                                                                                        \
        .max_out = 1,                                                                                        \
        .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE | HN_TRAIT_INPLACE,                                     \
        HN_OP_ATTRS(HN_S_INT("axis", -1)),                                                                   \
        .infer = infer,                                                                                      \
        .ref = ref,                                                                                          \
        .work = work,                                                                                        \
        .expand = expand,                                                                                    \
        .tol = tol_,                                                                                         \
    };

/*
 * x - max is exact to one rounding, an absolute error of |x - max| u in the exponent: with |x - max| up to 40
 * (beyond, terms are below u of the largest) that is up to 40u relative, plus 4u for exp, some u for the sum,
 * 1 for the quotient. Terms so small that flush-to-zero or the exponent's error matters are covered by the
 * absolute part. log_softmax: the result's own size is |x - max|, so relative 8 holds; absolute 8 near zero
 * (sum near 1).
 */
SOFTMAX(softmax, "exp(x - max) normalised to sum 1 along an axis", HN_OP_TOL_SUM(64, 2))
SOFTMAX(log_softmax, "logarithm of softmax", HN_OP_TOL_SUM(8, 16))
SOFTMAX(hardmax, "one at the first maximum along an axis", {{.rel = 0}})
