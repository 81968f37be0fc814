/*
 * Reductions over a set of axes, in double or wrapping int64. Empty axes reduce nothing: every element alone.
 *
 *     [a, b, c] over axes {0, 2}: kept space [b], reduced space [a, c]
 */
#include "op/expand_int.h"

enum { AXES, KEEPDIMS };

static hone_status infer(hn_call *c, hn_diag *dg)
{
    const int64_t *axes = c->attr[AXES].is;
    const int n_axes = c->attr[AXES].n, rank = c->in[0].rank;
    int n = 0, next = 0;

    for (int i = 0; i < n_axes; i++)
        if (axes[i] < 0 || axes[i] >= rank || (i && axes[i] <= axes[i - 1]))
            return HN_RAISE(dg, HONE_E_SHAPE, "axes must rise within 0 to %d; entry %d is %lld", rank - 1, i,
                            (long long)axes[i]);
    c->out[0].dtype = c->in[0].dtype;
    for (int d = 0; d < rank; d++) {
        const bool reduced = next < n_axes && axes[next] == d;
        if (reduced) next++;
        if (!reduced)
            c->out[0].dim[n++] = c->in[0].dim[d];
        else if (c->attr[KEEPDIMS].i)
            c->out[0].dim[n++] = 1;
    }
    c->out[0].rank = n;
    return HONE_OK;
}

static hone_status infer_number(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    return infer(c, dg);
}

static hone_status infer_any(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg)); /* bool too: false < true */
    return infer(c, dg);
}

/* ---- the walk: calls visit(state, x, n, step) for each run of each kept element, then its result is stored
 * ---- */
typedef struct spaces {
    hn_tdesc kept, reduced;
    int64_t kept_stride[HN_MAX_RANK], reduced_stride[HN_MAX_RANK];
} spaces;

static void split_axes(const hn_call *c, const hn_tdesc *x, spaces *s)
{
    int64_t stride[HN_MAX_RANK];
    int next = 0;

    memset(s, 0, sizeof(*s));
    hn_op_strides(x, stride);
    for (int d = 0; d < x->rank; d++) {
        const bool reduced = next < c->attr[AXES].n && c->attr[AXES].is[next] == d;
        hn_tdesc *t = reduced ? &s->reduced : &s->kept;
        (reduced ? s->reduced_stride : s->kept_stride)[t->rank] = stride[d];
        t->dim[t->rank++] = x->dim[d];
        next += reduced;
    }
}

/* What one kept element gathers; which fields matter depends on the op. */
typedef struct acc {
    double f, top;
    int64_t i, n;
    bool nan;
} acc;

/* sum(exp(x - top)) rescaled when a larger top appears: one pass, no overflow. */
static void add_exp(acc *a, double x)
{
    if (x > a->top) {
        a->f = isinf(a->top) && a->top < 0 ? 0 : a->f * exp(a->top - x);
        a->top = x;
    }
    if (x == a->top)
        a->f += 1; /* infinities: not inf - inf */
    else if (!isnan(x))
        a->f += exp(x - a->top);
    a->nan |= isnan(x) != 0;
}

static void gather_f(hn_op op, acc *a, const double *x, int64_t n, int64_t step)
{
    switch (op) {
    case HN_OP_reduce_sum:
    case HN_OP_reduce_mean:
    case HN_OP_reduce_log_sum:
        for (int64_t i = 0; i < n; i++)
            a->f += x[i * step];
        break;
    case HN_OP_reduce_prod:
        for (int64_t i = 0; i < n; i++)
            a->f *= x[i * step];
        break;
    case HN_OP_reduce_l1:
        for (int64_t i = 0; i < n; i++)
            a->f += fabs(x[i * step]);
        break;
    case HN_OP_reduce_l2:
    case HN_OP_reduce_sum_square:
        for (int64_t i = 0; i < n; i++)
            a->f += x[i * step] * x[i * step];
        break;
    case HN_OP_reduce_max:
        for (int64_t i = 0; i < n; i++)
            if (isnan(x[i * step]) || x[i * step] > a->f)
                a->f = x[i * step], a->nan |= isnan(x[i * step]) != 0;
        break;
    case HN_OP_reduce_min:
        for (int64_t i = 0; i < n; i++)
            if (isnan(x[i * step]) || x[i * step] < a->f)
                a->f = x[i * step], a->nan |= isnan(x[i * step]) != 0;
        break;
    default:
        for (int64_t i = 0; i < n; i++)
            add_exp(a, x[i * step]);
        break;
    }
    a->n += n;
}

static void gather_i(hn_op op, hn_dtype t, acc *a, const int64_t *x, int64_t n, int64_t step)
{
    uint64_t u = (uint64_t)a->i;

    for (int64_t i = 0; i < n; i++) {
        const int64_t v = x[i * step];
        const bool minus = v < 0 && t != HN_U64;
        switch (op) {
        case HN_OP_reduce_prod:
            u *= (uint64_t)v;
            break;
        case HN_OP_reduce_l1:
            u += minus ? 0 - (uint64_t)v : (uint64_t)v;
            break;
        case HN_OP_reduce_l2:
        case HN_OP_reduce_sum_square:
            u += (uint64_t)v * (uint64_t)v;
            break;
        case HN_OP_reduce_max:
            u = hn_op_cmp_i(t, v, (int64_t)u) > 0 ? (uint64_t)v : u;
            break;
        case HN_OP_reduce_min:
            u = hn_op_cmp_i(t, v, (int64_t)u) < 0 ? (uint64_t)v : u;
            break;
        default:
            u += (uint64_t)v;
            break;
        }
        const double d = hn_op_to_f(t, v);
        if (op == HN_OP_reduce_l2) a->f += d * d;
        if (op == HN_OP_reduce_log_sum) a->f += d;
        if (op == HN_OP_reduce_log_sum_exp) add_exp(a, d);
    }
    a->i = (int64_t)u;
    a->n += n;
}

/* The extreme values of an integer dtype, where empty maxima and minima start. */
static int64_t int_extreme(hn_dtype t, bool low)
{
    const int bits = hn_dtype_bits(t);

    if (t == HN_BOOL) return !low;
    if (!hn_dtype_is_signed(t)) return low ? 0 : bits == 64 ? -1 : (int64_t)((1ULL << bits) - 1);
    const int64_t top = (int64_t)((1ULL << (bits - 1)) - 1);
    return low ? -top - 1 : top;
}

static acc start(hn_op op, hn_dtype t)
{
    acc a = { .top = -INFINITY };

    if (op == HN_OP_reduce_prod) a.f = 1, a.i = 1;
    if (op == HN_OP_reduce_max) a.f = -INFINITY, a.i = hn_dtype_is_float(t) ? 0 : int_extreme(t, true);
    if (op == HN_OP_reduce_min) a.f = INFINITY, a.i = hn_dtype_is_float(t) ? 0 : int_extreme(t, false);
    return a;
}

static double result_f(hn_op op, const acc *a)
{
    switch (op) {
    case HN_OP_reduce_mean:
        return a->f / (double)a->n;
    case HN_OP_reduce_l2:
        return sqrt(a->f);
    case HN_OP_reduce_log_sum:
        return log(a->f);
    case HN_OP_reduce_log_sum_exp:
        return a->nan ? NAN : a->top + log(a->f);
    case HN_OP_reduce_max:
    case HN_OP_reduce_min:
        return a->nan ? NAN : a->f;
    default:
        return a->f;
    }
}

static int64_t result_i(hn_op op, hn_dtype t, const acc *a)
{
    switch (op) {
    case HN_OP_reduce_mean:
        if (a->n == 0) return 0;
        return t == HN_U64 ? (int64_t)((uint64_t)a->i / (uint64_t)a->n) : a->i / a->n;
    case HN_OP_reduce_l2:
        return hn_f64_to_i64(sqrt(a->f));
    case HN_OP_reduce_log_sum:
        return hn_f64_to_i64(log(a->f));
    case HN_OP_reduce_log_sum_exp:
        return hn_f64_to_i64(a->top + log(a->f));
    default:
        return a->i;
    }
}

static hone_status ref(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    const hn_dtype t = in[0].type.dtype;
    const bool is_float = hn_dtype_is_float(t);
    spaces s;
    hn_walk outer;
    (void)dg;

    split_axes(c, &in[0].type, &s);
    hn_walk_init(&outer, &s.kept);
    hn_walk_add_strided(&outer, 0, s.kept_stride);
    while (hn_walk_next(&outer))
        for (int64_t k = 0; k < outer.run; k++) {
            acc a = start(c->op->id, t);
            hn_walk w;
            hn_walk_init(&w, &s.reduced);
            hn_walk_add_strided(&w, outer.at[0] + k * outer.step[0], s.reduced_stride);
            while (hn_walk_next(&w)) {
                if (is_float)
                    gather_f(c->op->id, &a, in[0].f + w.at[0], w.run, w.step[0]);
                else
                    gather_i(c->op->id, t, &a, in[0].i + w.at[0], w.run, w.step[0]);
            }
            if (is_float)
                out[0].f[outer.pos + k] = result_f(c->op->id, &a);
            else
                out[0].i[outer.pos + k] = result_i(c->op->id, t, &a);
        }
    return HONE_OK;
}

static void work(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = hn_op_count(c, &c->in[0]), .bytes = hn_op_bytes(c) };
}

static void work2(const hn_call *c, hn_work *ret)
{
    work(c, ret);
    ret->flops *= c->op->id == HN_OP_reduce_log_sum_exp ? 12 : 2;
}

/* Over a vector's contents: sums and products of shapes. */
static bool content(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    hn_dim x[64], acc_dim = c->op->id == HN_OP_reduce_prod ? 1 : 0;
    int n;

    if (out != 0 || c->in[0].rank != 1 || c->attr[AXES].n != 1 || !hn_op_content(c, 0, x, &n)) return false;
    if (n == 0 && (c->op->id == HN_OP_reduce_max || c->op->id == HN_OP_reduce_min)) return false;
    for (int i = 0; i < n; i++)
        switch (c->op->id) {
        case HN_OP_reduce_prod:
            acc_dim = hn_dim_mul(c->syms, acc_dim, x[i]);
            break;
        case HN_OP_reduce_max:
            acc_dim = i ? hn_dim_max(c->syms, acc_dim, x[i]) : x[0];
            break;
        case HN_OP_reduce_min:
            acc_dim = i ? hn_dim_min(c->syms, acc_dim, x[i]) : x[0];
            break;
        default:
            acc_dim = hn_dim_add(c->syms, acc_dim, x[i]);
            break;
        }
    ret[0] = acc_dim;
    *ret_n = 1;
    return true;
}

/*
 * Tolerances. Sums of up to 4096 terms within [-1, 1]: rounding errors of half an ulp of partial sums that
 * grow like a random walk to sqrt(n) = 64 add, again as a random walk, to 64 * 64 / 2 half-ulps of 1 in the
 * worst order of a plain loop; blocked kernels stay far inside. Products: one rounding a factor, 64 factors.
 * Halves accumulate in f32, so that only the last rounding counts, which the same figures cover. log halves
 * relative into absolute error.
 */
#define SUM  HN_OP_TOL_SUM(64, 2048)
#define PROD HN_OP_TOL(64)
#define NONE HN_OP_TOL(0)
#define REDUCE(name_, doc_, infer_, content_, work_, traits_, expand_, ...)                                  \
    const hn_op_def hn_op_##name_ = {                                                                        \
        HN_OP_ID(name_, 1, 1, 1, 1),                                                                         \
        .doc = doc_,                                                                                         \
        .traits = HN_TRAIT_PURE | HN_TRAIT_REDUCE | (traits_),                                               \
        HN_OP_ATTRS(HN_S_INTS("axes"), HN_S_INT("keepdims", 1)),                                             \
        .infer = infer_,                                                                                     \
        .content = content_,                                                                                 \
        .ref = ref,                                                                                          \
        .work = work_,                                                                                       \
        .expand = expand_,                                                                                   \
        .tol = __VA_ARGS__,                                                                                  \
    };
#define PRIMITIVE(name_, doc_, infer_, ...) REDUCE(name_, doc_, infer_, content, work, 0, NULL, __VA_ARGS__)
#define COMPOSITE(name_, doc_, work_)                                                                        \
    REDUCE(name_, doc_, infer_number, NULL, work_, HN_TRAIT_COMPOSITE, expand_sum_of, SUM)
PRIMITIVE(reduce_sum, "sum; 0 of nothing", infer_number, SUM)
PRIMITIVE(reduce_prod, "product; 1 of nothing", infer_number, PROD)
PRIMITIVE(reduce_max, "largest; the lowest value of nothing; NaN propagates", infer_any, NONE)
PRIMITIVE(reduce_min, "smallest; the highest value of nothing; NaN propagates", infer_any, NONE)

/* ---- pointwise work around a sum ---- */

/* Roots and logarithms of integers are computed in f64 and cut off; halves are summed in f32. */
static hn_dtype sum_dtype(hn_op op, hn_dtype t)
{
    const bool exact = op == HN_OP_reduce_l1 || op == HN_OP_reduce_sum_square;

    if (hn_dtype_is_float(t)) return x_ctype(t);
    return exact ? t : HN_F64;
}

/* Where all is finite the largest term, so that no exp overflows; else 0, which the infinities then decide. */
static hn_value *finite_top(hn_builder *b, hn_value *x, int n_axes, const int64_t *axes)
{
    hn_value *top = x_reduce(b, HN_OP_reduce_max, x, n_axes, axes, true);
    return x_select(b, x_lt_k(b, x_abs(b, top), INFINITY), top, x_k(b, x, 0));
}

static hone_status expand_sum_of(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0), *top = NULL;
    const hn_tdesc *type = &n->out[0]->type;
    int n_axes;
    const int64_t *axes = hn_attr_is(n, "axes", &n_axes);

    x = x_cast(b, x, sum_dtype(n->op, type->dtype));
    if (n->op == HN_OP_reduce_l1) x = x_abs(b, x);
    if (n->op == HN_OP_reduce_l2 || n->op == HN_OP_reduce_sum_square) x = x_mul(b, x, x);
    if (n->op == HN_OP_reduce_log_sum_exp) {
        top = finite_top(b, x, n_axes, axes);
        x = x_exp(b, x_sub(b, x, top));
        top = hn_reshape(b, top, type->rank, type->dim);
    }
    hn_value *y = x_reduce(b, HN_OP_reduce_sum, x, n_axes, axes, hn_attr_i(n, "keepdims") != 0);
    if (n->op == HN_OP_reduce_l2) y = x_sqrt(b, y);
    if (n->op == HN_OP_reduce_log_sum || top) y = x_log(b, y);
    if (top) y = x_add(b, y, top);
    out[0] = x_cast(b, y, type->dtype);
    return x_done(b);
}

COMPOSITE(reduce_l1, "sum of magnitudes", work2)
COMPOSITE(reduce_l2, "root of the sum of squares", work2)
COMPOSITE(reduce_log_sum, "logarithm of the sum", work)
COMPOSITE(reduce_log_sum_exp, "log(sum(exp(x))), without overflow", work2)
COMPOSITE(reduce_sum_square, "sum of squares", work2)

/* ---- reduce_mean: sum / count ---- */
static hone_status expand_mean(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const hn_dtype t = x->type.dtype;
    const hn_dtype ct = hn_dtype_is_float(t) && hn_dtype_bits(t) < 32 ? HN_F32 : t; /* halves sum in f32 */
    int n_axes;
    const int64_t *axes = hn_attr_is(n, "axes", &n_axes);
    hn_dim count = 1;

    for (int i = 0; i < n_axes; i++)
        count = hn_dim_mul(b->g->syms, count, x->type.dim[axes[i]]);
    if (ct != t) x = hn_cast(b, x, ct);
    hn_value *sum =
        hn_b1(b, HN_OP_reduce_sum, x,
              HN_ATTRS_ARG(HN_A_IS("axes", n_axes, axes), HN_A_I("keepdims", hn_attr_i(n, "keepdims"))));
    hn_value *d = hn_reshape(b, hn_const_dims(b, 1, &count), 0, NULL);
    hn_value *y = hn_b2(b, HN_OP_div, sum, hn_cast(b, d, ct), HN_NO_ATTRS);
    out[0] = ct != t ? hn_cast(b, y, t) : y;
    return b->status;
}

const hn_op_def hn_op_reduce_mean = {
    HN_OP_ID(reduce_mean, 1, 1, 1, 1),
    .doc = "mean; NaN of nothing",
    .traits = HN_TRAIT_PURE | HN_TRAIT_REDUCE | HN_TRAIT_COMPOSITE,
    HN_OP_ATTRS(HN_S_INTS("axes"), HN_S_INT("keepdims", 1)),
    .infer = infer_number,
    .ref = ref,
    .work = work,
    .expand = expand_mean,
    .tol = HN_OP_TOL_SUM(64, 64), /* the sum's error divided by the count is below that of one term */
};
