/* nonzero, compress and unique: how much they yield is known only while running, and is their last output. */
#include "op/op_int.h"

static hn_tdesc scalar_i64(void)
{
    return (hn_tdesc){ .dtype = HN_I64 };
}

static bool is_set(const hn_view *x, int64_t i)
{
    return hn_dtype_is_float(x->type.dtype) ? x->f[i] != 0 : x->i[i] != 0;
}

/* Shrink an output to what was found. */
static void set_extent(hn_view *v, int axis, int64_t n)
{
    v->type.dim[axis] = n;
    v->numel = hn_tdesc_numel_static(&v->type);
}

/* ---- nonzero(x) -> index i64[rank, count], count ---- */
static hone_status infer_nonzero(hn_call *c, hn_diag *dg)
{
    hn_dim n;

    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_value_dim(c, 1, 0, hn_tdesc_numel(c->syms, &c->in[0]), &n, dg));
    c->out[0] = (hn_tdesc){ .dtype = HN_I64, .rank = 2, .dim = { c->in[0].rank, n } };
    c->out[1] = scalar_i64();
    return HONE_OK;
}

static hone_status ref_nonzero(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int rank = in[0].type.rank;
    int64_t n = 0, k = 0;
    (void)c, (void)dg;

    for (int64_t i = 0; i < in[0].numel; i++)
        n += is_set(&in[0], i);
    set_extent(&out[0], 1, n);
    out[1].i[0] = n;
    for (int64_t i = 0; i < in[0].numel; i++) {
        int64_t rest = i;
        if (!is_set(&in[0], i)) continue;
        for (int d = rank - 1; d >= 0; d--) {
            out[0].i[d * n + k] = rest % in[0].type.dim[d];
            rest /= in[0].type.dim[d];
        }
        k++;
    }
    return HONE_OK;
}

const hn_op_def hn_op_nonzero = {
    HN_OP_ID(nonzero, 1, 1, 2, 2),
    .doc = "where x is not zero, in row-major order, and how often",
    .traits = HN_TRAIT_PURE | HN_TRAIT_DYNAMIC,
    .infer = infer_nonzero,
    .ref = ref_nonzero,
    .work = hn_op_work_move,
};

/* ---- compress(x, cond bool[n]) -> y, count: slices of x where cond holds; a short cond drops the rest ----
 */
enum { COMPRESS_AXIS, COMPRESS_FLAT };

static hone_status infer_compress(hn_call *c, hn_diag *dg)
{
    const bool flat = c->attr[COMPRESS_FLAT].i;
    int64_t n, m;
    int axis = 0;
    hn_dim count;

    HN_TRY(hn_op_want(c, 0, dg));
    HN_TRY(hn_op_want_dtype(c, 1, HN_BOOL, dg));
    HN_TRY(hn_op_want_rank(c, 1, 1, dg));
    if (!flat) HN_TRY(hn_op_want_axis(c, COMPRESS_AXIS, c->in[0].rank, false, &axis, dg));
    const hn_dim extent = flat ? hn_tdesc_numel(c->syms, &c->in[0]) : c->in[0].dim[axis];
    if (hn_op_known(c, extent, &n) && hn_op_known(c, c->in[1].dim[0], &m) && m > n)
        return HN_RAISE(dg, HONE_E_SHAPE, "the condition has %lld entries for %lld elements", (long long)m,
                        (long long)n);
    HN_TRY(hn_op_value_dim(c, 1, 0, hn_dim_min(c->syms, extent, c->in[1].dim[0]), &count, dg));
    c->out[0] = c->in[0];
    if (flat) c->out[0].rank = 1;
    c->out[0].dim[axis] = count;
    c->out[1] = scalar_i64();
    return HONE_OK;
}

static hone_status ref_compress(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    hn_split3 s = { 1, in[0].numel, 1 };
    int64_t n = 0, k = 0;
    int axis = 0;

    if (!c->attr[COMPRESS_FLAT].i) {
        HN_TRY(hn_op_want_axis(c, COMPRESS_AXIS, in[0].type.rank, false, &axis, dg));
        s = hn_op_split(&in[0].type, axis);
    }
    if (in[1].numel > s.n)
        return HN_RAISE(dg, HONE_E_MODEL, "the condition has %lld entries for %lld elements",
                        (long long)in[1].numel, (long long)s.n);
    for (int64_t i = 0; i < in[1].numel; i++)
        n += in[1].i[i] != 0;
    set_extent(&out[0], axis, n);
    out[1].i[0] = n;
    for (int64_t i = 0; i < in[1].numel; i++) {
        if (!in[1].i[i]) continue;
        for (int64_t o = 0; o < s.outer; o++)
            memcpy(out[0].i + (o * n + k) * s.inner, in[0].i + (o * s.n + i) * s.inner,
                   (size_t)s.inner * sizeof(int64_t));
        k++;
    }
    return HONE_OK;
}

const hn_op_def hn_op_compress = {
    HN_OP_ID(compress, 2, 2, 2, 2),
    .doc = "the slices of x where the condition holds, and how many",
    .traits = HN_TRAIT_PURE | HN_TRAIT_DYNAMIC,
    HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("flat", 0)),
    .infer = infer_compress,
    .ref = ref_compress,
    .work = hn_op_work_move,
};

/* ---- unique(x) -> y, first, inverse, counts, count ---- */
enum { UNIQUE_AXIS, UNIQUE_FLAT, UNIQUE_SORTED };

static hone_status infer_unique(hn_call *c, hn_diag *dg)
{
    const bool flat = c->attr[UNIQUE_FLAT].i;
    int axis = 0;
    hn_dim n;

    HN_TRY(hn_op_want(c, 0, dg));
    if (!flat) HN_TRY(hn_op_want_axis(c, UNIQUE_AXIS, c->in[0].rank, false, &axis, dg));
    const hn_dim extent = flat ? hn_tdesc_numel(c->syms, &c->in[0]) : c->in[0].dim[axis];
    HN_TRY(hn_op_value_dim(c, 4, 0, extent, &n, dg));
    c->out[0] = c->in[0];
    if (flat) c->out[0].rank = 1;
    c->out[0].dim[axis] = n;
    c->out[1] = c->out[3] = (hn_tdesc){ .dtype = HN_I64, .rank = 1, .dim = { n } };
    c->out[2] = (hn_tdesc){ .dtype = HN_I64, .rank = 1, .dim = { extent } };
    c->out[4] = scalar_i64();
    return HONE_OK;
}

/* Slices of x along an axis, told apart element by element. */
typedef struct slices {
    const hn_view *x;
    hn_split3 s;
} slices;

static int compare_slices(const slices *sl, int64_t a, int64_t b)
{
    const hn_view *x = sl->x;

    for (int64_t o = 0; o < sl->s.outer; o++)
        for (int64_t i = 0; i < sl->s.inner; i++) {
            const int64_t p = (o * sl->s.n + a) * sl->s.inner + i, q = (o * sl->s.n + b) * sl->s.inner + i;
            const int cmp = hn_dtype_is_float(x->type.dtype) ? hn_op_cmp_f(x->f[p], x->f[q])
                                                             : hn_op_cmp_i(x->type.dtype, x->i[p], x->i[q]);
            if (cmp) return cmp;
        }
    return 0;
}

static int slice_order(const void *pa, const void *pb, void *user)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
    const int cmp = compare_slices(user, a, b);

    return cmp ? cmp : a < b ? -1 : a > b;
}

static int by_value(const void *pa, const void *pb)
{
    const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

/* order: slices sorted, ties by index. Marks each slice with the first of its equals; yields how many differ.
 */
static int64_t mark_first(const slices *sl, const int64_t *order, int64_t *first_of, int64_t *firsts)
{
    int64_t n = 0;

    for (int64_t i = 0; i < sl->s.n; i++) {
        if (i == 0 || compare_slices(sl, order[i - 1], order[i]) != 0) firsts[n++] = order[i];
        first_of[order[i]] = firsts[n - 1];
    }
    return n;
}

static void write_unique(const slices *sl, const int64_t *first_of, const int64_t *firsts, int64_t *rank,
                         int64_t n, hn_view *out)
{
    const hn_split3 s = sl->s;

    for (int64_t k = 0; k < n; k++) {
        rank[firsts[k]] = k;
        out[1].i[k] = firsts[k];
        out[3].i[k] = 0;
        for (int64_t o = 0; o < s.outer; o++)
            memcpy(out[0].i + (o * n + k) * s.inner, sl->x->i + (o * s.n + firsts[k]) * s.inner,
                   (size_t)s.inner * sizeof(int64_t));
    }
    for (int64_t i = 0; i < s.n; i++) {
        out[2].i[i] = rank[first_of[i]];
        out[3].i[out[2].i[i]]++;
    }
}

static hone_status ref_unique(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    slices sl = { &in[0], { 1, in[0].numel, 1 } };
    void *scratch;
    int axis = 0;

    if (!c->attr[UNIQUE_FLAT].i) {
        HN_TRY(hn_op_want_axis(c, UNIQUE_AXIS, in[0].type.rank, false, &axis, dg));
        sl.s = hn_op_split(&in[0].type, axis);
    }
    HN_TRY(hn_op_scratch(4 * sl.s.n, sizeof(int64_t), &scratch, dg));
    int64_t *order = scratch, *first_of = order + sl.s.n, *firsts = first_of + sl.s.n,
            *rank = firsts + sl.s.n;
    for (int64_t i = 0; i < sl.s.n; i++)
        order[i] = i;
    qsort_r(order, (size_t)sl.s.n, sizeof(*order), slice_order, &sl);
    const int64_t n = mark_first(&sl, order, first_of, firsts);
    if (!c->attr[UNIQUE_SORTED].i) qsort(firsts, (size_t)n, sizeof(*firsts), by_value);
    set_extent(&out[0], axis, n);
    set_extent(&out[1], 0, n);
    set_extent(&out[3], 0, n);
    out[4].i[0] = n;
    write_unique(&sl, first_of, firsts, rank, n, out);
    free(scratch);
    return HONE_OK;
}

const hn_op_def hn_op_unique = {
    HN_OP_ID(unique, 1, 1, 5, 5),
    .doc = "distinct elements or slices, their first places, the inverse, how often, how many",
    .traits = HN_TRAIT_PURE | HN_TRAIT_DYNAMIC,
    HN_OP_ATTRS(HN_S_INT("axis", -1), HN_S_INT("flat", 1), HN_S_INT("sorted", 1)),
    .infer = infer_unique,
    .ref = ref_unique,
    .work = hn_op_work_move,
};
