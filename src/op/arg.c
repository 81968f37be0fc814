/* arg_max and arg_min: where along an axis the extreme element is. NaN compares as the largest value. */
#include "op/op_int.h"

enum { AXIS, KEEPDIMS, LAST };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int axis, n = 0;
    int64_t extent;

    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    if (hn_op_known(c, c->in[0].dim[axis], &extent) && extent == 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %d is empty: no element is extreme", axis);
    c->out[0].dtype = HN_I64;
    for (int d = 0; d < c->in[0].rank; d++) {
        if (d != axis)
            c->out[0].dim[n++] = c->in[0].dim[d];
        else if (c->attr[KEEPDIMS].i)
            c->out[0].dim[n++] = 1;
    }
    c->out[0].rank = n;
    return HONE_OK;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    const bool is_float = hn_dtype_is_float(t), last = c->attr[LAST].i;
    const int sign = c->op->id == HN_OP_arg_max ? 1 : -1;
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    if (s.n == 0 && out[0].numel)
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %d is empty: no element is extreme", axis);
    for (int64_t o = 0; o < out[0].numel; o++) {
        const int64_t base = o / s.inner * s.n * s.inner + o % s.inner;
        int64_t best = 0;
        for (int64_t k = 1; k < s.n; k++) {
            const int64_t p = base + k * s.inner, q = base + best * s.inner;
            const int cmp = sign * (is_float ? hn_op_cmp_f(in[0].f[p], in[0].f[q])
                                             : hn_op_cmp_i(t, in[0].i[p], in[0].i[q]));
            if (cmp > 0 || (cmp == 0 && last)) best = k;
        }
        out[0].i[o] = best;
    }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = hn_op_count(c, &c->in[0]), .bytes = hn_op_bytes(c) };
}

#define ARG(name_, doc_)                                                                                     \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 1, 1, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = HN_TRAIT_PURE | HN_TRAIT_REDUCE,                                                           \
        HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("keepdims", 1), HN_S_INT("last", 0)),                      \
        .infer = infer,                                                                                      \
        .ref = ref,                                                                                          \
        .work = work,                                                                                        \
    };
ARG(arg_max, "index of the largest element along an axis")
ARG(arg_min, "index of the smallest element along an axis")
