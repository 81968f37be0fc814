/*
 * matmul: [.., m, k] x [.., k, n] -> [.., m, n], leading axes broadcast; trans_a and trans_b say that the
 * stored matrix is the transpose. matmul_int: the same on 8-bit integers less their zero points, into i32.
 */
#include "op/window.h"

enum { TRANS_A, TRANS_B };

/* ---- inference ---- */
/* out = broadcast of the leading axes with m and n. */
static hone_status infer_product(hn_call *c, bool ta, bool tb, hn_diag *dg)
{
    const hn_tdesc *a = &c->in[0], *b = &c->in[1];
    hn_tdesc la, lb, lead;

    HN_TRY(hn_op_want_ranks(c, 0, 2, HN_MAX_RANK, dg));
    HN_TRY(hn_op_want_ranks(c, 1, 2, HN_MAX_RANK, dg));
    HN_TRY_IN(dg, hn_op_want_meet(c, 0, a->rank - (ta ? 2 : 1), 1, b->rank - (tb ? 1 : 2), NULL, dg),
              "the contracted axes");
    la = *a;
    la.rank -= 2;
    lb = *b;
    lb.rank -= 2;
    HN_TRY(hn_broadcast_dims(c->syms, &la, &lb, &lead, dg));
    lead.dim[lead.rank] = a->dim[a->rank - (ta ? 1 : 2)];
    lead.dim[lead.rank + 1] = b->dim[b->rank - (tb ? 2 : 1)];
    lead.rank += 2;
    lead.dtype = c->out[0].dtype;
    c->out[0] = lead;
    return HONE_OK;
}

static hone_status infer(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    HN_TRY(hn_op_want_same(c, 0, 1, dg));
    c->out[0].dtype = c->in[0].dtype;
    return infer_product(c, c->attr[TRANS_A].i, c->attr[TRANS_B].i, dg);
}

/* ---- references ---- */
typedef struct matrices {
    int64_t m, n, k;
    int64_t ai, ak, bk, bj; /* element strides */
} matrices;

static matrices shape_of(const hn_tdesc *a, const hn_tdesc *b, bool ta, bool tb)
{
    const int64_t *da = a->dim + a->rank - 2, *db = b->dim + b->rank - 2;
    matrices s;

    s.m = da[ta ? 1 : 0];
    s.k = da[ta ? 0 : 1];
    s.n = db[tb ? 0 : 1];
    s.ai = ta ? 1 : da[1];
    s.ak = ta ? da[1] : 1;
    s.bk = tb ? 1 : db[1];
    s.bj = tb ? db[1] : 1;
    return s;
}

/* Rows of b made contiguous. */
static void pack(const matrices *s, const double *b, double *dst)
{
    for (int64_t k = 0; k < s->k; k++)
        for (int64_t j = 0; j < s->n; j++)
            dst[k * s->n + j] = b[k * s->bk + j * s->bj];
}

static void product_f(const matrices *s, const double *a, const double *b, double *scratch, double *y)
{
    memset(y, 0, (size_t)(s->m * s->n) * sizeof(*y));
    if (s->bj != 1) {
        pack(s, b, scratch);
        b = scratch;
    }
    hn_op_gemm(s->m, s->n, s->k, a, s->ai, s->ak, b, s->n, y, s->n);
}

static void product_i(const matrices *s, const int64_t *a, const int64_t *b, int64_t *y)
{
    for (int64_t i = 0; i < s->m; i++)
        for (int64_t j = 0; j < s->n; j++) {
            uint64_t sum = 0;
            for (int64_t k = 0; k < s->k; k++)
                sum += (uint64_t)a[i * s->ai + k * s->ak] * (uint64_t)b[k * s->bk + j * s->bj];
            y[i * s->n + j] = (int64_t)sum;
        }
}

/* Walks the batches: operand offsets in units of whole matrices. */
static void walk_batches(hn_walk *w, const hn_tdesc *a, const hn_tdesc *b, const hn_tdesc *y)
{
    hn_tdesc la = *a, lb = *b, ly = *y;

    la.rank -= 2;
    lb.rank -= 2;
    ly.rank -= 2;
    hn_walk_init(w, &ly);
    hn_walk_add(w, &la);
    hn_walk_add(w, &lb);
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const matrices s = shape_of(&in[0].type, &in[1].type, c->attr[TRANS_A].i, c->attr[TRANS_B].i);
    void *scratch = NULL;
    hn_walk w;

    HN_TRY(hn_op_scratch(s.bj == 1 ? 0 : s.k * s.n, sizeof(double), &scratch, dg));
    walk_batches(&w, &in[0].type, &in[1].type, &out[0].type);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            const int64_t a = (w.at[0] + i * w.step[0]) * s.m * s.k,
                          b = (w.at[1] + i * w.step[1]) * s.k * s.n;
            const int64_t y = (w.pos + i) * s.m * s.n;
            if (hn_dtype_is_float(in[0].type.dtype))
                product_f(&s, in[0].f + a, in[1].f + b, scratch, out[0].f + y);
            else
                product_i(&s, in[0].i + a, in[1].i + b, out[0].i + y);
        }
    free(scratch);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const hn_tdesc *a = &c->in[0];
    const bool ta = c->op->id == HN_OP_matmul && c->attr[TRANS_A].i;

    *ret =
        (hn_work){ .flops = 2 * hn_op_count(c, &c->out[0]) * hn_op_extent(c, a->dim[a->rank - (ta ? 2 : 1)]),
                   .bytes = hn_op_bytes(c) };
}

const hn_op_def hn_op_matmul = {
    HN_OP_ID(matmul, 2, 2, 1, 1),
    .doc = "matrix product, batched over broadcast leading axes",
    .traits = HN_TRAIT_PURE,
    HN_OP_ATTRS(HN_S_INT("trans_a", 0), HN_S_INT("trans_b", 0)),
    .infer = infer,
    .ref = ref,
    .work = work,
    .tol = HN_OP_TOL_SUM(64, 2048), /* as reduce_sum, whose terms the products are */
};

/* ---- matmul_int ---- */
/* A zero point: one for all, or one per row of a (column of b), with any leading axes that broadcast. */
static hone_status check_zero(const hn_call *c, int zero, int of, bool per_row, hn_diag *dg)
{
    hn_dim d;

    if (!hn_op_has(c, zero)) return HONE_OK;
    HN_TRY(hn_op_want_same(c, zero, of, dg));
    if (c->in[zero].rank == 0) return HONE_OK;
    if (c->in[zero].rank == 1) {
        const hn_dim lane = c->in[of].dim[c->in[of].rank - (per_row ? 2 : 1)];
        int64_t n;
        if (hn_op_known(c, c->in[zero].dim[0], &n) && n == 1) return HONE_OK;
        if (hn_op_meet(c, c->in[zero].dim[0], lane, &d)) return HONE_OK;
    } else {
        /* [.., m, 1] or [.., 1, n] */
        if (hn_op_broadcasts_to(c, &c->in[zero], &c->in[of])) return HONE_OK;
    }
    return HN_RAISE(dg, HONE_E_SHAPE, "zero point (operand %d) fits neither the tensor nor its %s", zero,
                    per_row ? "rows" : "columns");
}

static hone_status want_byte(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (c->in[i].dtype != HN_I8 && c->in[i].dtype != HN_U8)
        return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where i8 or u8 is needed", i,
                        hn_dtype_name(c->in[i].dtype));
    return HONE_OK;
}

static hone_status infer_int(hn_call *c, hn_diag *dg)
{
    HN_TRY(want_byte(c, 0, dg));
    HN_TRY(want_byte(c, 1, dg));
    c->out[0].dtype = HN_I32;
    HN_TRY(infer_product(c, false, false, dg));
    HN_TRY(check_zero(c, 2, 0, true, dg));
    return check_zero(c, 3, 1, false, dg);
}

/* x less its zero points, as doubles: exact, and so are sums of fewer than 2^36 products of theirs. */
static void centre(const hn_view *x, const hn_view *zero, bool per_row, double *dst)
{
    hn_tdesc z = zero->type;
    hn_walk w;

    if (zero->type.dtype == HN_NONE) {
        for (int64_t i = 0; i < x->numel; i++)
            dst[i] = (double)x->i[i];
        return;
    }
    if (per_row && z.rank == 1) z = (hn_tdesc){ .dtype = z.dtype, .rank = 2, .dim = { z.dim[0], 1 } };
    hn_walk_init(&w, &x->type);
    hn_walk_add(&w, &z);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++)
            dst[w.pos + i] = (double)(x->i[w.pos + i] - zero->i[w.at[0] + i * w.step[0]]);
}

static hone_status ref_int(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    static const hn_view none = { .numel = 0 };
    const matrices s = shape_of(&in[0].type, &in[1].type, false, false);
    const int64_t part = in[0].numel + in[1].numel;
    void *scratch;
    hn_walk w;

    HN_TRY(hn_op_scratch(part + s.m * s.n, sizeof(double), &scratch, dg));
    double *a = scratch, *b = a + in[0].numel, *y = a + part;
    centre(&in[0], hn_op_has(c, 2) ? &in[2] : &none, true, a);
    centre(&in[1], hn_op_has(c, 3) ? &in[3] : &none, false, b);
    walk_batches(&w, &in[0].type, &in[1].type, &out[0].type);
    while (hn_walk_next(&w))
        for (int64_t i = 0; i < w.run; i++) {
            product_f(&s, a + (w.at[0] + i * w.step[0]) * s.m * s.k,
                      b + (w.at[1] + i * w.step[1]) * s.k * s.n, NULL, y);
            for (int64_t e = 0; e < s.m * s.n; e++)
                out[0].i[(w.pos + i) * s.m * s.n + e] = (int64_t)y[e];
        }
    free(scratch);
    return HONE_OK;
}

const hn_op_def hn_op_matmul_int = {
    HN_OP_ID(matmul_int, 2, 4, 1, 1),
    .doc = "matrix product of 8-bit integers less their zero points, in i32",
    .traits = HN_TRAIT_PURE,
    .infer = infer_int,
    .ref = ref_int,
    .work = work,
};
