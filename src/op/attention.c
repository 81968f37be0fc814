/*
 * attention (q [b,h,s,d], k [b,hk,t,d], v [b,hk,t,dv], mask?) {scale, causal, softcap, hide, rows} -> y [b,h,s,dv]
 *
 *     score = softcap(q k^T scale) + mask          softcap(z) = c tanh(z / c), before the mask (ONNX from
 * opset 23 on) y     = softmax(score over t) v              h is a multiple of hk: query head i reads key
 * head i / (h/hk)
 *
 * scale 0 means 1/sqrt(d). causal: none, upper_left (key j reads as j <= query i), lower_right (j <= i + t -
 * s). The mask broadcasts to [b,h,s,t]: bool (where false, the score is `hide`, usually -inf) or of q's dtype
 * (added). A key whose score is -inf has weight 0. Softmax of a row without a score above -inf, or with NaN or
 * +inf, is NaN; `rows` says what becomes of it:
 *
 *     zero    a row that hides every key yields zeros (models pad rows so, and ONNX's cases ask for it); NaN stays
 *     nan     as softmax has it
 *     guard   weights that are NaN count as 0, as PyTorch's exporter writes where(is_nan(w), 0, w)
 */
#include "op/expand_int.h"

enum { SCALE, CAUSAL, SOFTCAP, HIDE, ROWS };
enum { Q, K, V, MASK };
enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT };
enum { ROWS_ZERO, ROWS_NAN, ROWS_GUARD };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    hn_dim batch, heads;
    int64_t h, hk;

    HN_TRY(hn_op_want_float(c, Q, dg));
    for (int i = Q; i <= V; i++) {
        HN_TRY(hn_op_want_same(c, Q, i, dg));
        HN_TRY(hn_op_want_rank(c, i, 4, dg));
    }
    HN_TRY(hn_op_want_meet(c, Q, 0, K, 0, &batch, dg));
    HN_TRY(hn_op_want_meet(c, Q, 0, V, 0, NULL, dg));
    HN_TRY(hn_op_want_meet(c, K, 1, V, 1, &heads, dg));
    HN_TRY(hn_op_want_meet(c, Q, 3, K, 3, NULL, dg));
    HN_TRY(hn_op_want_meet(c, K, 2, V, 2, NULL, dg));
    if (hn_op_known(c, c->in[Q].dim[1], &h) && hn_op_known(c, heads, &hk) && (hk < 1 || h % hk))
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld query heads are no multiple of %lld key heads", (long long)h,
                        (long long)hk);
    c->out[0] = c->in[Q];
    c->out[0].dim[0] = batch;
    c->out[0].dim[3] = c->in[V].dim[3];
    if (!hn_op_has(c, MASK)) return HONE_OK;

    hn_tdesc scores = c->out[0];
    scores.dim[3] = c->in[K].dim[2];
    if (c->in[MASK].dtype != HN_BOOL) HN_TRY(hn_op_want_same(c, Q, MASK, dg));
    if (!hn_op_broadcasts_to(c, &c->in[MASK], &scores))
        return HN_RAISE(dg, HONE_E_SHAPE, "the mask does not broadcast to [batch, heads, queries, keys]");
    return HONE_OK;
}

/* The mask's value at a row (b,h,s): pointer offset and the stride along keys. */
static int64_t mask_row(const hn_tdesc *m, const int64_t at[3], int64_t *ret_step)
{
    int64_t stride = 1, pos = 0;

    *ret_step = 0;
    for (int i = m->rank - 1; i >= 0; i--) {
        const int axis = i + 4 - m->rank;
        if (m->dim[i] != 1) {
            if (axis == 3)
                *ret_step = stride;
            else
                pos += at[axis] * stride;
        }
        stride = hn_extent_times(stride, m->dim[i]);
    }
    return pos;
}

typedef struct row_job {
    const double *q, *k, *v;
    double *y, *score;
    int64_t s, t, d, dv, limit; /* keys from limit on are hidden */
    double scale, cap, hide;
    int64_t rows;
} row_job;

/* Scores to weights. */
static void softmax(const row_job *r, double top)
{
    double sum = 0;

    for (int64_t j = 0; j < r->t; j++)
        sum += exp(r->score[j] - top);
    for (int64_t j = 0; j < r->t; j++)
        r->score[j] = isnan(sum) && r->rows == ROWS_GUARD ? 0 : exp(r->score[j] - top) / sum;
}

static void row(const row_job *r, const hn_view *mask, int64_t mask_at, int64_t mask_step)
{
    double top = -INFINITY;

    for (int64_t j = 0; j < r->t; j++) {
        double z = 0;
        for (int64_t i = 0; i < r->d; i++)
            z += r->q[i] * r->k[j * r->d + i];
        z *= r->scale;
        if (r->cap != 0) z = r->cap * tanh(z / r->cap);
        if (mask && mask->type.dtype == HN_BOOL)
            z = mask->i[mask_at + j * mask_step] ? z : r->hide;
        else if (mask)
            z += mask->f[mask_at + j * mask_step];
        if (j >= r->limit) z = -INFINITY;
        r->score[j] = z;
        top = isnan(z) || isnan(top) ? NAN : fmax(top, z);
    }
    for (int64_t i = 0; i < r->dv; i++)
        r->y[i] = 0;
    if (top == -INFINITY && r->rows == ROWS_ZERO) /* times v all the same: an infinity makes NaN, as where one key is hidden */
        memset(r->score, 0, (size_t)r->t * sizeof(double));
    else
        softmax(r, top);
    for (int64_t j = 0; j < r->t; j++)
        for (int64_t i = 0; i < r->dv; i++)
            r->y[i] += r->score[j] * r->v[j * r->dv + i];
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const int64_t *qd = in[Q].type.dim, *kd = in[K].type.dim;
    const int64_t causal = hn_call_i(c, "causal"), heads = qd[1], hk = kd[1];
    const hn_view *mask = c->n_in > MASK && in[MASK].type.dtype != HN_NONE ? &in[MASK] : NULL;
    row_job r = {
        .s = qd[2], .t = kd[2], .d = qd[3], .dv = out[0].type.dim[3], .cap = hn_call_f(c, "softcap"),
        .hide = hn_call_f(c, "hide"), .rows = hn_call_i(c, "rows")};

    r.scale = hn_call_f(c, "scale") != 0 ? hn_call_f(c, "scale") : 1 / sqrt((double)r.d);
    if (out[0].numel == 0) return HONE_OK;
    HN_TRY(hn_op_scratch(r.t + 1, sizeof(double), (void **)&r.score, dg));
    for (int64_t n = 0; n < qd[0] * heads * r.s; n++) {
        const int64_t at[3] = {n / r.s / heads, n / r.s % heads, n % r.s};
        const int64_t kv = at[0] * hk + at[1] / (heads / hk);
        int64_t mask_at = 0, step = 0;
        r.q = in[Q].f + n * r.d;
        r.k = in[K].f + kv * r.t * r.d;
        r.v = in[V].f + kv * r.t * r.dv;
        r.y = out[0].f + n * r.dv;
        r.limit = causal == NO_CAUSAL ? r.t : causal == UPPER_LEFT ? at[2] + 1 : at[2] + 1 + r.t - r.s;
        if (mask) mask_at = mask_row(&mask->type, at, &step);
        row(&r, mask, mask_at, step);
    }
    free(r.score);
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    const double pairs =
        hn_op_count(c, &c->in[Q]) / hn_op_extent(c, c->in[Q].dim[3]) * hn_op_extent(c, c->in[K].dim[2]);

    ret->flops = pairs * (2 * hn_op_extent(c, c->in[Q].dim[3]) + 2 * hn_op_extent(c, c->in[V].dim[3]) + 14);
    ret->bytes = hn_op_bytes(c);
}

/* ---- expansion ---- */

/* The mask at rank 5, [b,hk,g,s,t], where queries were split into [b,hk,g,s,d]. */
static hn_value *x_split_mask_heads(hn_builder *b, hn_value *mask, hn_dim hk, hn_dim group)
{
    hn_dim d[5] = {1, 1, 1, 1, 1};
    const int rank = mask->type.rank;

    for (int i = 0; i < rank; i++) {
        const int axis = i + 4 - rank;
        if (axis == 1 && mask->type.dim[i] != 1)
            d[1] = hk, d[2] = group;
        else
            d[axis > 1 ? axis + 1 : axis] = mask->type.dim[i];
    }
    return hn_reshape(b, mask, 5, d);
}

static hn_value *x_causal(hn_builder *b, hn_value *score, int64_t kind, hn_dim s, hn_dim t)
{
    hn_value *i = x_iota(b, HN_I64, 2, 0, s), *j = x_iota(b, HN_I64, 2, 1, t);

    if (kind == NO_CAUSAL) return score;
    if (kind == LOWER_RIGHT) i = x_add(b, i, x_sub(b, x_dim(b, HN_I64, t), x_dim(b, HN_I64, s)));
    return x_select(b, x_le(b, j, i), score, x_k(b, score, -INFINITY));
}

static hn_value *x_weights(hn_builder *b, hn_value *score, int64_t rows)
{
    if (!score) return NULL;
    const int last = score->type.rank - 1;
    if (rows != ROWS_ZERO) {
        hn_value *w = hn_b1(b, HN_OP_softmax, score, HN_ATTRS_ARG(HN_A_I("axis", last)));
        return rows == ROWS_NAN ? w : x_select(b, hn_b1(b, HN_OP_is_nan, w, HN_NO_ATTRS), x_k(b, w, 0), w);
    }
    hn_value *top = x_reduce1(b, HN_OP_reduce_max, score, last, true);
    hn_value *none = x_eq_k(b, top, -INFINITY);
    hn_value *e = x_exp(b, x_sub(b, score, x_select(b, none, x_k(b, top, 0), top)));
    hn_value *sum = x_reduce1(b, HN_OP_reduce_sum, e, last, true);
    return x_div(b, e, x_select(b, none, x_k(b, sum, 1), sum));
}

static hone_status expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    const hn_tdesc qt = hn_in(n, Q)->type, kt = hn_in(n, K)->type, vt = hn_in(n, V)->type;
    const double cap = hn_attr_f(n, "softcap");
    hn_value *q = x_up(b, hn_in(n, Q)), *k = x_up(b, hn_in(n, K)), *v = x_up(b, hn_in(n, V)),
             *mask = hn_in(n, MASK);
    double scale = hn_attr_f(n, "scale");
    int64_t d;

    if (qt.dim[1] != kt.dim[1]) { /* grouped heads: broadcast keys and values over the group */
        const hn_dim group = hn_dim_floordiv(b->g->syms, qt.dim[1], kt.dim[1]);
        const hn_dim split[5] = {qt.dim[0], kt.dim[1], group, qt.dim[2], qt.dim[3]};
        q = hn_reshape(b, q, 5, split);
        k = x_unsqueeze(b, k, 2);
        v = x_unsqueeze(b, v, 2);
        if (mask) mask = x_split_mask_heads(b, mask, kt.dim[1], group);
    }
    hn_value *score = x_matmul(b, q, k, false, true);
    if (scale != 0)
        score = x_mul_k(b, score, scale);
    else if (hn_dim_known(b->g->syms, qt.dim[3], &d))
        score = x_mul_k(b, score, 1 / sqrt((double)d));
    else if (score)
        score = x_div(b, score, x_sqrt(b, x_dim(b, score->type.dtype, qt.dim[3])));
    if (cap != 0) score = x_mul_k(b, x_tanh(b, x_div_k(b, score, cap)), cap);
    if (mask && score)
        score = mask->type.dtype == HN_BOOL ? x_select(b, mask, score, x_k(b, score, hn_attr_f(n, "hide")))
                                            : x_add(b, score, x_cast(b, mask, score->type.dtype));
    score = x_causal(b, score, hn_attr_i(n, "causal"), qt.dim[2], kt.dim[2]);
    hn_value *y = x_matmul(b, x_weights(b, score, hn_attr_i(n, "rows")), v, false, false);
    const hn_dim joined[4] = {qt.dim[0], qt.dim[1], qt.dim[2], vt.dim[3]};
    out[0] = x_cast(b, hn_reshape(b, y, 4, joined), qt.dtype);
    return x_done(b);
}

/*
 * Scores of operands within [-1, 1] err by up to 64 u d^(1/2) scale (HN_OP_TOL_SUM), so weights by that
 * relatively, and y is an average of v within [-1, 1].
 */
const hn_op_def hn_op_attention = {
    HN_OP_ID(attention, 3, 4, 1, 1),
    .doc = "scaled dot-product attention with grouped heads, mask, causality and soft cap",
    .traits = HN_TRAIT_PURE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_FLOAT("scale", 0), HN_S_ENUM("causal", 0, "none|upper_left|lower_right"),
                HN_S_FLOAT("softcap", 0), HN_S_FLOAT("hide", -INFINITY), HN_S_ENUM("rows", 0, "zero|nan|guard")),
    .infer = infer,
    .ref = ref,
    .work = work,
    .expand = expand,
    .tol = HN_OP_TOL_SUM(64, 128),
};
