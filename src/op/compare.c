/* Comparisons: two operands of one dtype, a bool result. Any comparison with NaN is false. */
#include "op/op_int.h"

static hone_status finish(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    c->out[0].dtype = HN_BOOL;
    return hn_op_want_broadcast(c, 2, &c->out[0], dg);
}

static hone_status infer_eq(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    return finish(c, dg);
}

static hone_status infer_order(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    return finish(c, dg);
}

static bool holds_f(hn_op op, double a, double b)
{
    switch (op) {
    case HN_OP_eq:
        return a == b;
    case HN_OP_lt:
        return a < b;
    case HN_OP_le:
        return a <= b;
    case HN_OP_gt:
        return a > b;
    default:
        return a >= b;
    }
}

static bool holds_i(hn_op op, hn_dtype t, int64_t a, int64_t b)
{
    return holds_f(op, hn_op_cmp_i(t, a, b), 0);
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    const bool is_float = hn_dtype_is_float(t);
    hn_walk w;
    (void)dg;

    hn_walk_init(&w, &out[0].type);
    hn_walk_add(&w, &in[0].type);
    hn_walk_add(&w, &in[1].type);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const int64_t a = w.at[0] + i * w.step[0], b = w.at[1] + i * w.step[1];
            out[0].i[w.pos + i] = is_float ? holds_f(c->op->id, in[0].f[a], in[1].f[b])
                                           : holds_i(c->op->id, t, in[0].i[a], in[1].i[b]);
        }
    return HONE_OK;
}

static hn_dim holds_dim(const hn_call *c, hn_dim a, hn_dim b)
{
    switch (c->op->id) {
    case HN_OP_eq:
        return hn_dim_eq(c->syms, a, b);
    case HN_OP_lt:
        return hn_dim_lt(c->syms, a, b);
    case HN_OP_gt:
        return hn_dim_lt(c->syms, b, a);
    case HN_OP_le:
        return hn_dim_sub(c->syms, 1, hn_dim_lt(c->syms, b, a));
    default:
        return hn_dim_sub(c->syms, 1, hn_dim_lt(c->syms, a, b));
    }
}

static bool content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim a[64], b[64];
    int na, nb;

    if (out != 0 || c->out[0].rank > 1 || c->in[0].dtype == HN_U64) return false;
    if (!hn_op_content(c, 0, a, &na) || !hn_op_content(c, 1, b, &nb)) return false;
    if (na != nb && na != 1 && nb != 1) return false;
    *ret_n = na == 1 ? nb : na;
    for (int i = 0; i < *ret_n; i++)
        ret[i] = holds_dim(c, a[na == 1 ? 0 : i], b[nb == 1 ? 0 : i]);
    return true;
}

#define COMPARE(name_, doc_, infer_, commutes_)                                                              \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 2, 2, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = HN_TRAIT_PURE | HN_TRAIT_POINTWISE | (commutes_),                                          \
        .infer = infer_,                                                                                     \
        .content = content,                                                                                  \
        .ref = ref,                                                                                          \
        .work = hn_op_work_pointwise,                                                                        \
    };
COMPARE(eq, "a == b", infer_eq, HN_TRAIT_COMMUTATIVE)
COMPARE(lt, "a < b", infer_order, 0)
COMPARE(le, "a <= b", infer_order, 0)
COMPARE(gt, "a > b", infer_order, 0)
COMPARE(ge, "a >= b", infer_order, 0)
