#include "pass/random_graph.h"

#include <math.h>
#include <stdio.h>

enum { MAX_VALUES = 64, MOST_ELEMENTS = 2000 };

typedef struct maker {
    hn_test *t;
    hn_rng rng;
    hn_graph *g;
    hn_builder b;
    hn_diag dg;
    bool smooth;
    hn_value *pool[MAX_VALUES];
    int n;
} maker;

static int below(maker *m, int n)
{
    return (int)hn_rng_below(&m->rng, n);
}

static hn_value *pick(maker *m)
{
    /* Late values more often: chains rather than bushes. */
    return m->pool[below(m, 3) ? m->n - 1 - below(m, HN_MIN(m->n, 3)) : below(m, m->n)];
}

static hn_value *constant(maker *m, int rank, const hn_dim *dim)
{
    int64_t n = 1;
    double v[MOST_ELEMENTS];
    static const double usual[] = { 1, 2, -1, 0.5, 0.25, 3, -0.75, 4 };
    for (int i = 0; i < rank; i++) n *= dim[i];
    CHECK(n <= MOST_ELEMENTS);
    for (int64_t i = 0; i < n; i++) v[i] = below(m, 2) ? usual[below(m, HN_COUNT(usual))] : hn_rng_unit(&m->rng) * 2 - 1;
    return hn_const_fs(&m->b, HN_F32, rank, dim, v);
}

static hn_value *scalar(maker *m, double v)
{
    return hn_const_f(&m->b, HN_F32, v);
}

/* ---- arithmetic ---- */
static hn_value *unary(maker *m, hn_value *x)
{
    static const hn_op op[] = { HN_OP_neg, HN_OP_relu, HN_OP_tanh, HN_OP_sigmoid, HN_OP_abs, HN_OP_neg, HN_OP_floor };
    return hn_b1(&m->b, op[below(m, HN_COUNT(op) - m->smooth)], x, HN_NO_ATTRS);
}

/* A constant that broadcasts along with x: one element, along one axis, or whole. */
static hn_value *companion(maker *m, const hn_value *x)
{
    hn_dim dim[HN_MAX_RANK];
    const int rank = x->type.rank, axis = rank ? below(m, rank) : 0;
    if (!rank || below(m, 3) == 0) return scalar(m, below(m, 2) ? 1.0 : 2.0);
    for (int i = 0; i < rank; i++) dim[i] = i == axis && hn_dim_is_const(x->type.dim[i]) ? x->type.dim[i] : 1;
    const int skip = below(m, axis + 1); /* leading ones may be left out */
    return constant(m, rank - skip, dim + skip);
}

static bool broadcasts(const hn_value *x, const hn_value *y)
{
    for (int i = 1; i <= HN_MIN(x->type.rank, y->type.rank); i++) {
        const hn_dim a = x->type.dim[x->type.rank - i], b = y->type.dim[y->type.rank - i];
        if (a != b && a != 1 && b != 1) return false;
    }
    return true;
}

static hn_value *binary(maker *m, hn_value *x)
{
    static const hn_op op[] = { HN_OP_add, HN_OP_sub, HN_OP_mul, HN_OP_min, HN_OP_max };
    const hn_op o = op[below(m, HN_COUNT(op))];
    hn_value *y = pick(m);
    if (below(m, 2) || !broadcasts(x, y)) y = companion(m, x);
    return below(m, 2) ? hn_b2(&m->b, o, x, y, HN_NO_ATTRS) : hn_b2(&m->b, o, y, x, HN_NO_ATTRS);
}

static hn_value *with_constant(maker *m, hn_value *x)
{
    static const double power[] = { 1, 2, 3 };
    hn_value *lo = scalar(m, -0.5), *hi = scalar(m, below(m, 2) ? 0.75 : -0.75);
    switch (below(m, 4)) {
    case 0: return hn_b2(&m->b, HN_OP_div, x, scalar(m, below(m, 2) ? 4 : 3), HN_NO_ATTRS);
    case 1: return hn_b2(&m->b, HN_OP_pow, x, scalar(m, power[below(m, m->smooth ? 3 : 2)]), HN_NO_ATTRS);
    case 2: return hn_b3(&m->b, HN_OP_clip, x, below(m, 3) ? lo : NULL, below(m, 3) ? hi : NULL, HN_NO_ATTRS);
    default:
        x = hn_b1(&m->b, HN_OP_abs, x, HN_NO_ATTRS);
        if (m->smooth) x = hn_b2(&m->b, HN_OP_add, x, scalar(m, 0.5), HN_NO_ATTRS); /* the root is steep at 0 */
        return hn_b1(&m->b, HN_OP_sqrt, x, HN_NO_ATTRS);
    }
}

static hn_value *choice(maker *m, hn_value *x)
{
    if (m->smooth) return unary(m, x);
    hn_value *c = hn_b2(&m->b, HN_OP_gt, x, scalar(m, 0.1), HN_NO_ATTRS);
    if (below(m, 2)) c = hn_b1(&m->b, HN_OP_not, c, HN_NO_ATTRS);
    return hn_b3(&m->b, HN_OP_select, c, x, companion(m, x), HN_NO_ATTRS);
}

static hn_value *casts(maker *m, hn_value *x)
{
    static const hn_dtype wide[] = { HN_F64, HN_F32, HN_F16, HN_I32 };
    const hn_dtype t = wide[m->smooth ? 0 : below(m, HN_COUNT(wide))];
    return hn_cast(&m->b, hn_cast(&m->b, x, t), HN_F32);
}

/* ---- views ---- */
static hn_value *reshaped(maker *m, hn_value *x)
{
    hn_dim dim[HN_MAX_RANK];
    int n = 0;
    const int rank = x->type.rank, at = rank ? below(m, rank) : 0, how = below(m, 3);
    for (int i = 0; i < rank; i++) {
        const hn_dim d = x->type.dim[i];
        if (i == at && how == 0) dim[n++] = 1;                                  /* a new axis */
        if (i == at && how == 1 && d == 1) continue;                            /* an axis less */
        if (i == at && how == 2 && i + 1 < rank) dim[n++] = hn_dim_mul(m->g->syms, d, x->type.dim[++i]); /* two in one */
        else if (i == at && how == 1 && hn_dim_is_const(d) && d % 2 == 0 && d > 0) dim[n++] = 2, dim[n++] = d / 2;
        else dim[n++] = d;
    }
    return n <= 5 ? hn_reshape(&m->b, x, n, dim) : x;
}

static hn_value *turned(maker *m, hn_value *x)
{
    int64_t perm[HN_MAX_RANK];
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++) perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        const int k = below(m, i + 1);
        const int64_t p = perm[i];
        perm[i] = perm[k];
        perm[k] = p;
    }
    return hn_transpose(&m->b, x, perm);
}

static hn_value *turned_twice(maker *m, hn_value *x)
{
    return turned(m, reshaped(m, turned(m, x)));
}

static hn_value *sliced(maker *m, hn_value *x)
{
    hn_dim start[HN_MAX_RANK], dim[HN_MAX_RANK];
    int64_t step[HN_MAX_RANK];
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++) {
        const hn_dim d = x->type.dim[i];
        start[i] = 0, step[i] = 1, dim[i] = d;
        if (!hn_dim_is_const(d) || d < 2 || below(m, 2)) continue;
        step[i] = below(m, 4) ? 1 : -1;
        dim[i] = 1 + below(m, (int)d);
        start[i] = step[i] > 0 ? below(m, (int)(d - dim[i]) + 1) : dim[i] - 1 + below(m, (int)(d - dim[i]) + 1);
    }
    return hn_b1(&m->b, HN_OP_slice, x,
                 HN_ATTRS_ARG(HN_A_DIMS("start", rank, start), HN_A_IS("step", rank, step), HN_A_DIMS("dim", rank, dim)));
}

/* Two halves that may be put together again, or x beside itself. */
static hn_value *joined(maker *m, hn_value *x)
{
    if (x->type.rank == 0) return x;
    const int axis = below(m, x->type.rank);
    const hn_dim d = x->type.dim[axis];
    hn_value *in[3] = { x, unary(m, x), x };
    int n = 2 + below(m, 2);
    if (hn_dim_is_const(d) && d >= 2 && below(m, 2)) {
        in[0] = hn_slice(&m->b, x, axis, 0, d / 2);
        in[1] = hn_slice(&m->b, x, axis, d / 2, d - d / 2);
        n = 2;
    }
    const hn_node *y = hn_build(&m->b, HN_OP_concat, n, in, HN_ATTRS_ARG(HN_A_I("axis", axis)), 1);
    return y ? y->out[0] : NULL;
}

static hn_value *gathered(maker *m, hn_value *x)
{
    int64_t at[3];
    if (x->type.rank == 0) return x;
    const int axis = below(m, x->type.rank);
    const hn_dim d = x->type.dim[axis];
    if (!hn_dim_is_const(d) || d == 0) return x;
    for (int i = 0; i < 3; i++) at[i] = below(m, (int)d) - (below(m, 3) ? 0 : d);
    hn_value *index = below(m, 2) ? hn_const_i(&m->b, HN_I64, at[0]) : hn_const_is(&m->b, 1 + below(m, 3), at);
    return hn_b2(&m->b, HN_OP_gather, x, index, HN_ATTRS_ARG(HN_A_I("axis", axis)));
}

static hn_value *padded(maker *m, hn_value *x)
{
    hn_dim before[HN_MAX_RANK], after[HN_MAX_RANK];
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++) before[i] = below(m, 3) == 0, after[i] = below(m, 3) == 0;
    return hn_b2(&m->b, HN_OP_pad, x, below(m, 2) ? scalar(m, 0) : NULL,
                 HN_ATTRS_ARG(HN_A_DIMS("before", rank, before), HN_A_DIMS("after", rank, after)));
}

static hn_value *spread(maker *m, hn_value *x)
{
    hn_dim dim[HN_MAX_RANK];
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++) dim[i] = x->type.dim[i] == 1 && below(m, 2) ? 3 : x->type.dim[i];
    return hn_broadcast_to(&m->b, x, rank, dim);
}

/* ---- reductions and contractions ---- */
static hn_value *reduced(maker *m, hn_value *x)
{
    static const hn_op op[] = { HN_OP_reduce_sum, HN_OP_reduce_max, HN_OP_reduce_mean, HN_OP_reduce_min };
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    for (int i = 0; i < x->type.rank; i++)
        if (below(m, 2)) axes[n++] = i;
    return hn_b1(&m->b, op[below(m, HN_COUNT(op))], x, HN_ATTRS_ARG(HN_A_IS("axes", n, axes), HN_A_I("keepdims", below(m, 2))));
}

static hn_value *product(maker *m, hn_value *x)
{
    if (x->type.rank < 2) return unary(m, x);
    const hn_dim k = x->type.dim[x->type.rank - 1];
    if (hn_dim_is_const(k) && k > 0 && below(m, 3)) {
        const bool turn = below(m, 2);
        hn_value *w = constant(m, 2, turn ? (const hn_dim[]){ 3, k } : (const hn_dim[]){ k, 3 });
        return hn_b2(&m->b, HN_OP_matmul, x, w, HN_ATTRS_ARG(HN_A_I("trans_b", turn)));
    }
    int64_t perm[HN_MAX_RANK];
    for (int i = 0; i < x->type.rank; i++) perm[i] = i;
    perm[x->type.rank - 1] = x->type.rank - 2;
    perm[x->type.rank - 2] = x->type.rank - 1;
    return hn_b2(&m->b, HN_OP_matmul, x, hn_transpose(&m->b, unary(m, x), perm), HN_NO_ATTRS);
}

static hn_value *convolved(maker *m, hn_value *x)
{
    if (x->type.rank != 3 || !hn_dim_is_const(x->type.dim[1]) || x->type.dim[1] == 0) return product(m, x);
    const hn_dim c = x->type.dim[1], pad[] = { 1 };
    hn_value *w = constant(m, 3, (const hn_dim[]){ 2, c, 2 });
    const hn_dim filters[] = { 2 };
    hn_value *bias = below(m, 2) ? constant(m, 1, filters) : NULL;
    return hn_b3(&m->b, HN_OP_conv, x, w, bias,
                 HN_ATTRS_ARG(HN_A_IS("stride", 1, ((const int64_t[]){ 1 + below(m, 2) })), HN_A_DIMS("pad_begin", 1, pad),
                              HN_A_DIMS("pad_end", 1, pad)));
}

typedef hn_value *make_fn(maker *m, hn_value *x);

static hn_value *next_value(maker *m)
{
    static make_fn *const make[] = { unary, binary, binary, binary, with_constant, with_constant, choice, casts, reshaped,
                                     reshaped, turned, turned_twice, sliced, joined, gathered, padded, spread, reduced, product,
                                     convolved };
    return make[below(m, HN_COUNT(make))](m, pick(m));
}

/* Extents that grow without end would make tests slow, and values that grow would overflow. */
static bool small(const maker *m, const hn_value *v)
{
    int64_t n = 1;
    for (int i = 0; i < v->type.rank; i++) {
        int64_t at[2] = { 4, 4 }, d;
        if (!hn_dim_eval(m->g->syms, v->type.dim[i], at, &d)) return false;
        n *= d;
    }
    return n > 0 && n <= MOST_ELEMENTS / 4 && v->type.rank <= 5;
}

static void add_inputs(maker *m)
{
    const hn_dim n = hn_sym_add(m->g->syms, "n", HN_SYM_INPUT), k = hn_sym_add(m->g->syms, "k", HN_SYM_INPUT);
    const int count = 1 + below(m, 3);
    for (int i = 0; i < count; i++) {
        hn_tdesc d = { .dtype = HN_F32, .rank = i == 0 ? 3 : 1 + below(m, 4) };
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        for (int a = 0; a < d.rank; a++) d.dim[a] = below(m, 3) ? 1 + below(m, 4) : below(m, 2) ? n : k;
        m->pool[m->n++] = hn_graph_input(m->g, name, &d);
    }
}

hn_graph *hn_random_float_graph(hn_test *t, uint64_t seed, int n_node, bool smooth)
{
    maker *m = hn_arena_alloc(t->arena, 1, sizeof *m * 2);
    CHECK(m);
    *m = (maker){ .t = t, .smooth = smooth };
    hn_rng_init(&m->rng, seed);
    m->g = hn_graph_new(t->arena, "random");
    hn_builder_init(&m->b, m->g, &m->dg);
    add_inputs(m);
    for (int i = 0; i < n_node && m->n < MAX_VALUES; i++) {
        hn_value *v = next_value(m);
        CHECK_OK(m->b.status, &m->dg);
        if (v && v->def && small(m, v)) m->pool[m->n++] = v;
    }
    for (int i = 0; i < m->n; i++)
        if (m->pool[i]->def && (!m->pool[i]->n_uses || below(m, 10) == 0) && m->g->n_out < 8)
            hn_graph_output(m->g, m->pool[i], m->pool[i]->name);
    if (m->g->n_out == 0) hn_graph_output(m->g, unary(m, m->pool[0]), "y");
    hn_sweep_dead(m->g);
    return m->g;
}
