/* topk: the k largest (or smallest) elements along an axis, best first; of equals the lower index; NaN is the
 * largest. */
#include "op/op_int.h"

enum { AXIS, LARGEST, SORTED, DIM };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    int64_t k, n;
    int axis;

    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    HN_TRY(hn_op_want_extent(c, c->attr[DIM].i, "k", dg));
    if (hn_op_known(c, c->attr[DIM].i, &k) && hn_op_known(c, c->in[0].dim[axis], &n) && k > n)
        return HN_RAISE(dg, HONE_E_SHAPE, "k is %lld but axis %d has %lld elements", (long long)k, axis,
                        (long long)n);
    for (int o = 0; o < c->n_out; o++) {
        c->out[o] = c->in[0];
        c->out[o].dim[axis] = c->attr[DIM].i;
    }
    if (c->n_out > 1) c->out[1].dtype = HN_I64;
    return HONE_OK;
}

typedef struct item {
    union {
        double f;
        int64_t i;
    };
    int64_t at;
    hn_dtype dtype;
    int sign; /* 1: large first */
} item;

static int better_first(const void *pa, const void *pb)
{
    const item *a = pa, *b = pb;
    const int cmp = hn_dtype_is_float(a->dtype) ? hn_op_cmp_f(a->f, b->f) : hn_op_cmp_i(a->dtype, a->i, b->i);

    if (cmp) return -cmp * a->sign;
    return a->at < b->at ? -1 : a->at > b->at;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    void *scratch;
    int axis;

    HN_TRY(hn_op_want_axis(c, AXIS, in[0].type.rank, false, &axis, dg));
    const hn_split3 s = hn_op_split(&in[0].type, axis);
    const int64_t k = out[0].type.dim[axis];
    if (k > s.n)
        return HN_RAISE(dg, HONE_E_MODEL, "k is %lld but axis %d has %lld elements", (long long)k, axis,
                        (long long)s.n);
    HN_TRY(hn_op_scratch(s.n, sizeof(item), &scratch, dg));
    item *list = scratch;
    for (int64_t line = 0; line < s.outer * s.inner; line++) {
        const int64_t o = line / s.inner, i = line % s.inner;
        for (int64_t e = 0; e < s.n; e++)
            list[e] = (item){ .i = in[0].i[(o * s.n + e) * s.inner + i],
                              .at = e,
                              .dtype = in[0].type.dtype,
                              .sign = c->attr[LARGEST].i ? 1 : -1 };
        qsort(list, (size_t)s.n, sizeof(*list), better_first);
        for (int64_t e = 0; e < k; e++) {
            const int64_t at = (o * k + e) * s.inner + i;
            out[0].i[at] = list[e].i;
            if (c->n_out > 1) out[1].i[at] = list[e].at;
        }
    }
    free(scratch);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = 4 * hn_op_count(c, &c->in[0]), .bytes = hn_op_bytes(c) };
}

const hn_op_def hn_op_topk = {
    HN_OP_ID(topk, 1, 1, 2, 2),
    .doc = "the k best elements along an axis and their indices",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("axis", -1), HN_S_INT("largest", 1), HN_S_INT("sorted", 1), HN_S_DIM_REQ("dim")),
    .infer = infer,
    .ref = ref,
    .work = work,
};
