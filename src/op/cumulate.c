/* cumsum and cumprod: each element becomes the sum or product of those up to it; exclusive leaves itself out.
 */
#include "op/op_int.h"

enum { AXIS, EXCLUSIVE, REVERSE };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

/* One line of n elements, `step` apart, from p on. */
static void line_f(const hn_call *c, const double *x, double *y, int64_t n, int64_t step)
{
    const bool product = c->op->id == HN_OP_cumprod, exclusive = c->attr[EXCLUSIVE].i;
    double a = product ? 1 : 0;

    for (int64_t i = 0; i < n; i++) {
        const double v = x[i * step], next = product ? a * v : a + v;
        y[i * step] = exclusive ? a : next;
        a = next;
    }
}

static void line_i(const hn_call *c, const int64_t *x, int64_t *y, int64_t n, int64_t step)
{
    const bool product = c->op->id == HN_OP_cumprod, exclusive = c->attr[EXCLUSIVE].i;
    uint64_t a = product ? 1 : 0;

    for (int64_t i = 0; i < n; i++) {
        const uint64_t v = (uint64_t)x[i * step], next = product ? a * v : a + v;
        y[i * step] = (int64_t)(exclusive ? a : next);
        a = next;
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    const int64_t step = c->attr[REVERSE].i ? -s.inner : s.inner;
    const int64_t first = c->attr[REVERSE].i ? (s.n - 1) * s.inner : 0;
    if (s.n == 0) return HONE_OK;
    for (int64_t o = 0; o < s.outer * s.inner; o++) {
        const int64_t at = o / s.inner * s.n * s.inner + o % s.inner + first;
        if (hn_dtype_is_float(in[0].type.dtype))
            line_f(c, in[0].f + at, out[0].f + at, s.n, step);
        else
            line_i(c, in[0].i + at, out[0].i + at, s.n, step);
    }
    return HONE_OK;
}

/* As reduce_sum and reduce_prod, whose partial results these are. */
#define CUMULATE(name_, doc_, tol_)                                                                          \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 1, 1, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = HN_TRAIT_PURE,                                                                             \
        HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("exclusive", 0), HN_S_INT("reverse", 0)),                  \
        .infer = infer,                                                                                      \
        .ref = ref,                                                                                          \
        .work = hn_op_work_pointwise,                                                                        \
        .tol = tol_,                                                                                         \
    };
CUMULATE(cumsum, "running sum along an axis", HN_OP_TOL_SUM(64, 2048))
CUMULATE(cumprod, "running product along an axis", HN_OP_TOL(64))
