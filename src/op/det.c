/*
 * det (x [..,m,m]) -> [..]: determinants. Up to 3x3 by the formula, beyond by elimination with row pivoting,
 * in a loop over the columns. m = 0 gives 1.
 */
#include "op/expand_int.h"

static hone_status infer(hn_call *c, hn_diag *dg)
{
    hn_dim m;

    HN_TRY(hn_op_want_float(c, 0, dg));
    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    const int rank = c->in[0].rank;
    if (!hn_op_meet(c, c->in[0].dim[rank - 2], c->in[0].dim[rank - 1], &m))
        return HN_RAISE(dg, HONE_E_SHAPE, "the matrices are %lld by %lld, not square",
                        (long long)c->in[0].dim[rank - 2], (long long)c->in[0].dim[rank - 1]);
    c->out[0] = c->in[0];
    c->out[0].rank = rank - 2;
    for (int i = rank - 2; i < rank; i++)
        c->out[0].dim[i] = 0;
    return HONE_OK;
}

/* Complete pivoting: unlike the expansion's, so that the two check each other. */
static double det(double *a, int64_t m)
{
    double d = 1;

    for (int64_t k = 0; k < m; k++) {
        int64_t p = k, q = k;
        for (int64_t i = k; i < m; i++)
            for (int64_t j = k; j < m; j++)
                if (fabs(a[i * m + j]) > fabs(a[p * m + q])) p = i, q = j;
        for (int64_t j = 0; j < m && p != k; j++) {
            const double t = a[p * m + j];
            a[p * m + j] = a[k * m + j];
            a[k * m + j] = t;
        }
        for (int64_t i = 0; i < m && q != k; i++) {
            const double t = a[i * m + q];
            a[i * m + q] = a[i * m + k];
            a[i * m + k] = t;
        }
        if ((p != k) != (q != k)) d = -d;
        const double pivot = a[k * m + k];
        d *= pivot;
        if (pivot == 0) return 0;
        for (int64_t i = k + 1; i < m; i++)
            for (int64_t j = m - 1; j >= k; j--)
                a[i * m + j] -= a[i * m + k] / pivot * a[k * m + j];
    }
    return d;
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t m = in[0].type.dim[in[0].type.rank - 1];
    double *a;

    (void)c;
    HN_TRY(hn_op_scratch(m * m + 1, sizeof(double), (void **)&a, dg));
    for (int64_t n = 0; n < out[0].numel; n++) {
        if (m) memcpy(a, in[0].f + n * m * m, (size_t)(m * m) * sizeof(double));
        out[0].f[n] = det(a, m);
    }
    free(a);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const double m = hn_op_extent(c, c->in[0].dim[c->in[0].rank - 1]);

    ret->flops = hn_op_count(c, &c->out[0]) * 2 / 3 * m * m * m;
    ret->bytes = hn_op_bytes(c);
}

/* ---- expansion, on [n,m,m] ---- */

static hn_value *x_at(hn_builder *b, hn_value *a, int i, int j)
{
    return x_squeeze(b, x_squeeze(b, hn_slice(b, hn_slice(b, a, 1, i, 1), 2, j, 1), 2), 1);
}

static hn_value *x_det2(hn_builder *b, hn_value *a, int i, int j, int p, int q)
{
    return x_sub(b, x_mul(b, x_at(b, a, i, p), x_at(b, a, j, q)),
                 x_mul(b, x_at(b, a, i, q), x_at(b, a, j, p)));
}

static hn_value *x_small(hn_builder *b, hn_value *a, int64_t m)
{
    if (m == 1) return x_at(b, a, 0, 0);
    if (m == 2) return x_det2(b, a, 0, 1, 0, 1);
    hn_value *x = x_mul(b, x_at(b, a, 0, 0), x_det2(b, a, 1, 2, 1, 2));
    hn_value *y = x_mul(b, x_at(b, a, 0, 1), x_det2(b, a, 1, 2, 0, 2));
    hn_value *z = x_mul(b, x_at(b, a, 0, 2), x_det2(b, a, 1, 2, 0, 1));
    return x_add(b, x_sub(b, x, y), z);
}

/*
 * Round k: the largest of column k from row k down becomes the pivot, its row swaps with row k, and the rows
 * below lose their multiple of it. carried: the matrices, the product of pivots so far [n,1].
 */
static void fill(x_loop_ctx *l)
{
    hn_builder *b = l->b;
    hn_value *a = l->carried[0], *k = l->iter;
    const hn_dim m = a->type.dim[1], n = a->type.dim[0], whole[3] = {n, m, m};
    hn_value *row = x_iota(b, HN_I64, 2, 1, m), *below = x_gt(b, row, k); /* [1,m] */

    hn_value *column = x_gather(b, a, k, 2); /* [n,m] */
    hn_value *size = x_select(b, x_ge(b, row, k), x_abs(b, column), x_k(b, column, -1));
    hn_value *p =
        hn_b1(b, HN_OP_arg_max, size, HN_ATTRS_ARG(HN_A_I("axis", 1), HN_A_I("keepdims", 1))); /* [n,1] */
    hn_value *swap = x_select(b, x_eq(b, row, k), p, x_select(b, x_eq(b, row, p), k, row));    /* [n,m] */
    hn_value *from = hn_broadcast_to(b, x_unsqueeze(b, swap, 2), 3, whole);
    a = hn_b2(b, HN_OP_gather_elements, a, from, HN_ATTRS_ARG(HN_A_I("axis", 1)));

    hn_value *top = x_gather(b, a, k, 1),
             *pivot = x_gather(b, top, hn_reshape(b, k, 1, (hn_dim[]){1}), 1); /* [n,m], [n,1] */
    hn_value *safe = x_select(b, x_eq_k(b, pivot, 0), x_k(b, pivot, 1), pivot);
    hn_value *times = x_div(b, x_gather(b, a, k, 2), safe);
    times = x_select(b, below, times, x_k(b, times, 0));
    hn_value *d = x_mul(b, l->carried[1], pivot);
    l->next[0] = x_sub(b, a, x_mul(b, x_unsqueeze(b, times, 2), x_unsqueeze(b, top, 1)));
    l->next[1] = x_select(b, x_eq(b, p, k), d, x_neg(b, d));
}

static hn_value *x_eliminate(hn_builder *b, hn_value *a, hn_dim n, hn_dim m)
{
    const hn_dim column[2] = {n, 1};
    hn_value *init[2] = {a, NULL}, *ret[2];

    if (!a) return NULL;
    if (m == 0) return x_full(b, a->type.dtype, 1, &n, 1);
    init[1] = x_full(b, a->type.dtype, 2, column, 1);
    x_loop(b, &(x_loop_spec){x_dim(b, HN_I64, m), 2, 0, init, fill, NULL}, ret);
    return ret[1];
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc x = hn_in(n, 0)->type, to = hn_out(n, 0)->type;
    const hn_dim m = x.dim[x.rank - 1], batch = x_dprod(b, &x, 0, x.rank - 2), flat[3] = {batch, m, m};
    hn_value *a = hn_reshape(b, x_up(b, hn_in(n, 0)), 3, flat);
    int64_t known;

    hn_value *d = hn_dim_known(b->g->syms, m, &known) && known >= 1 && known <= 3
                      ? x_small(b, a, known)
                      : x_eliminate(b, a, batch, m);
    out[0] = x_cast(b, hn_reshape(b, d, to.rank, to.dim), x.dtype);
    return x_done(b);
}

/*
 * Backward error of elimination: m u times the growth, on a determinant of m! terms within [-1, 1] that
 * cancel; absolute 512 u holds for m up to 8 with operands within [-1, 1].
 */
const hn_op_def hn_op_det = {
    HN_OP_ID(det, 1, 1, 1, 1),
    .doc = "determinants of the last two axes",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = expand,
    .tol = HN_OP_TOL_SUM(64, 512),
};
