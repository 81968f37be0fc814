/**
 * Move a transpose behind the work on its result, where it meets another, a product that turns operands, or fewer elements.
 *
 *     y = add(transpose(a, p), transpose(b, p))          =>   y = transpose(add(a, b), p)
 *     y = transpose(relu(transpose(x, p)), q)            =>   y = transpose(transpose(relu(x), p), q)
 *     y = reduce_sum(transpose(x, [0,2,1])) {axes=[1]}   =>   y = reduce_sum(x) {axes=[2]}
 *     y = relu(transpose(conv(..), p))                   =>   y = transpose(relu(conv(..)), p)
 *
 * With one transpose it fires only where that pays: see pays(). The number of transposes never grows, and each moves down.
 */
#include "pass/pass_int.h"

#include <string.h>

enum { DEPTH = 16 };

/* The one-reader transpose that operand i of n is. */
static const hn_node *turned(const hn_node *n, int i)
{
    const hn_node *t = hn_producer(hn_in(n, i));
    if (!t || t->op != HN_OP_transpose || t->graph != n->graph) return NULL;
    HN_FOR_USES (u, t->out[0])
        if (u->node != n) return NULL;
    return t;
}

static bool is_single(const hn_value *v)
{
    return hn_tdesc_numel_static(&v->type) == 1;
}

static bool same_perm(const hn_node *a, const hn_node *b)
{
    int ra, rb;
    const int64_t *p = hn_attr_is(a, "perm", &ra), *q = hn_attr_is(b, "perm", &rb);
    return ra == rb && memcmp(p, q, (size_t)ra * sizeof *p) == 0;
}

/* Does u let a transpose of operand v through: are its other operands single elements or constants? */
static bool lets_through(const hn_node *u, const hn_value *v)
{
    if (!(hn_op_of(u)->traits & HN_TRAIT_POINTWISE) || u->n_out != 1) return false;
    for (int i = 0; i < u->n_in; i++)
        if (hn_in(u, i) && hn_in(u, i) != v && !is_single(hn_in(u, i)) && !hn_is_const(hn_in(u, i))) return false;
    return true;
}

/* Going down from v through pointwise work: is there a transpose to merge with, or a product that reads rows as columns? */
static bool meets_another(const hn_value *v, const hn_node *t, int depth)
{
    const hn_node *u = hn_has_one_use(v) ? v->uses->node : NULL;
    int rank;
    if (!u || u->graph != t->graph || depth == 0) return false;
    if (u->op == HN_OP_transpose) return true;
    if (u->op == HN_OP_matmul) {
        const int64_t *perm = hn_attr_is(t, "perm", &rank);
        return rank >= 2 && perm[rank - 2] == rank - 1 && v->type.dtype == HN_F32;
    }
    return lets_through(u, v) && meets_another(u->out[0], t, depth - 1);
}

static bool is_contraction(const hn_node *p)
{
    return p && (p->op == HN_OP_conv || p->op == HN_OP_matmul || p->op == HN_OP_conv_transpose || p->op == HN_OP_matmul_int);
}

/* Work that could start with a pointwise prologue but not with a transpose. */
static bool feeds_reduction(const hn_node *n)
{
    const hn_node *u = hn_has_one_use(n->out[0]) ? n->out[0]->uses->node : NULL;
    return u && ((hn_op_of(u)->traits & HN_TRAIT_REDUCE) || u->op == HN_OP_softmax || u->op == HN_OP_log_softmax ||
                 u->op == HN_OP_layer_norm || u->op == HN_OP_rms_norm);
}

static bool pays(const hn_node *n, const hn_node *t, int count)
{
    if (count > 1 || meets_another(n->out[0], t, DEPTH)) return true;
    return is_contraction(hn_producer(hn_in(t, 0))) && hn_has_one_use(hn_in(t, 0)) && !feeds_reduction(n);
}

static void inverse(const int64_t *perm, int rank, int64_t *ret)
{
    for (int i = 0; i < rank; i++) ret[perm[i]] = i;
}

/* Operand v of a pointwise node as it stood before the transpose: constants are turned back. */
static hn_value *turned_back(hn_builder *b, hn_value *v, const int64_t *perm, int rank)
{
    hn_dim dim[HN_MAX_RANK];
    int64_t back[HN_MAX_RANK];
    if (is_single(v)) return v;
    for (int i = 0; i < rank; i++) {
        const int k = i - (rank - v->type.rank);
        dim[i] = k < 0 ? 1 : v->type.dim[k];
    }
    inverse(perm, rank, back);
    return hn_transpose(b, hn_reshape(b, v, rank, dim), back);
}

static bool sink_pointwise(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    const hn_node *t = NULL;
    hn_value *in[4];
    int count = 0, rank;
    if (n->n_in > 4) return false;
    for (int i = 0; i < n->n_in; i++) {
        const hn_node *u = hn_in(n, i) ? turned(n, i) : NULL;
        if (u && t && !same_perm(t, u)) return false;
        if (u && (!t || t->out[0] != u->out[0])) count++;
        if (u) t = u;
        if (!u && hn_in(n, i) && !is_single(hn_in(n, i)) && !hn_is_const(hn_in(n, i))) return false;
    }
    if (!t || t->out[0]->type.rank != n->out[0]->type.rank || !pays(n, t, count)) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_sink_transpose, n)) return false;
    const int64_t *perm = hn_attr_is(t, "perm", &rank);
    for (int i = 0; i < n->n_in; i++) {
        const hn_node *u = hn_in(n, i) ? turned(n, i) : NULL;
        in[i] = u ? hn_in(u, 0) : hn_in(n, i) ? turned_back(b, hn_in(n, i), perm, rank) : NULL;
    }
    const hn_node *y = hn_build_like(b, n, n->n_in, in);
    hn_value *z = y && y->out[0]->type.rank == rank ? hn_transpose(b, y->out[0], perm) : NULL;
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

/* Axes of x that t's result calls axes[], sorted. */
static void axes_before(const int64_t *perm, const int64_t *axes, int n, int rank, int64_t *ret)
{
    bool reduced[HN_MAX_RANK] = { false };
    for (int i = 0; i < n; i++) reduced[perm[axes[i]]] = true;
    for (int a = 0, k = 0; a < rank; a++)
        if (reduced[a]) ret[k++] = a;
}

/* The order of the axes that are left: perm without the reduced ones, counted anew. */
static void perm_of_rest(const int64_t *perm, const int64_t *axes, int n_axes, int rank, int64_t *ret)
{
    bool reduced[HN_MAX_RANK] = { false };
    int place[HN_MAX_RANK], k = 0;
    for (int i = 0; i < n_axes; i++) reduced[perm[axes[i]]] = true;
    for (int a = 0; a < rank; a++)
        if (!reduced[a]) place[a] = k++;
    k = 0;
    for (int i = 0; i < rank; i++)
        if (!reduced[perm[i]]) ret[k++] = place[perm[i]];
}

static bool sink_reduce(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    const hn_node *t = turned(n, 0);
    int64_t before[HN_MAX_RANK], rest[HN_MAX_RANK];
    int rank, n_axes;
    if (!t || (n->op != HN_OP_reduce_max && n->op != HN_OP_reduce_min && !c->allow_inexact)) return false; /* sums in another order */
    const int64_t *perm = hn_attr_is(t, "perm", &rank), *axes = hn_attr_is(n, "axes", &n_axes);
    if (n_axes == 0 || !hn_pass_knob(c, HN_KNOB_pass_sink_transpose, n)) return false;
    hn_value *x = hn_in(t, 0);
    axes_before(perm, axes, n_axes, rank, before);
    const hn_node *y = hn_build_changed(b, n, 1, &x, HN_ATTRS_ARG(HN_A_IS("axes", n_axes, before)));
    if (!y) return false;
    perm_of_rest(perm, axes, n_axes, rank, rest);
    hn_value *z = hn_transpose(b, y->out[0], hn_attr_i(n, "keepdims") ? perm : rest);
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    const uint32_t traits = hn_op_of(n)->traits;
    if (n->n_out != 1 || !n->out[0]->n_uses) return false;
    if (traits & HN_TRAIT_POINTWISE) return sink_pointwise(b, n, c);
    return (traits & HN_TRAIT_REDUCE) && hn_attr_index(hn_op_of(n), "axes") >= 0 && sink_reduce(b, n, c);
}

const hn_pass_def hn_pass_sink_transpose = {
    .name = "sink_transpose", .summary = "move transposes behind the work on their results",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
