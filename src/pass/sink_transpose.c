/**
 * Move a transpose behind the work on its result, where it meets another, a product that turns operands, or fewer elements.
 *
 *     y = add(transpose(a, p), transpose(b, p))          =>   y = transpose(add(a, b), p)
 *     y = transpose(relu(transpose(x, p)), q)            =>   y = transpose(transpose(relu(x), p), q)
 *     y = reduce_sum(transpose(x, [0,2,1])) {axes=[1]}   =>   y = reduce_sum(x) {axes=[2]}
 *     y = relu(transpose(conv(..), p))                   =>   y = transpose(relu(conv(..)), p)
 *     y = add(transpose(a, p), t), t = transpose(b, p) read elsewhere, too   =>   y = transpose(add(a, b), p)
 *     y = add(transpose(matmul(..), [0,3,1,2]), conv(..))                    =>   y = transpose(add(matmul(..), turned(conv(..))), ..)
 *
 * With one transpose it fires only where that pays: see pays(). Each moves down, and their number never grows but for the last
 * rule: images are stored channels last, so that turning one so moves nothing.
 */
#include "pass/pass_int.h"

#include <string.h>

enum { DEPTH = 16 };

/* The transpose that operand i of n is. */
static const hn_node *transposed(const hn_node *n, int i)
{
    const hn_node *t = hn_producer(hn_in(n, i));
    return t && t->op == HN_OP_transpose && t->graph == n->graph ? t : NULL;
}

static bool only_reader(const hn_node *n, const hn_value *v)
{
    HN_FOR_USES (u, v)
        if (u->node != n) return false;
    return true;
}

/* The transpose that operand i of n is, and that n alone reads. */
static const hn_node *turned(const hn_node *n, int i)
{
    const hn_node *t = transposed(n, i);
    return t && only_reader(n, t->out[0]) ? t : NULL;
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
    if (!p) return false;
    switch (p->op) {
    case HN_OP_matmul: case HN_OP_matmul_int: case HN_OP_matmul_f8: case HN_OP_conv: case HN_OP_conv_transpose: return true;
    default: return false;
    }
}

/* A contraction's result, perhaps in another shape, or what pointwise work with constants makes of it: one kernel yields it. */
static bool comes_from_contraction(const hn_value *v, int depth)
{
    const hn_node *p = hn_has_one_use(v) ? hn_producer(v) : NULL;
    if (!p || depth == 0) return false;
    if (is_contraction(p)) return true;
    if (p->op == HN_OP_reshape) return comes_from_contraction(hn_in(p, 0), depth - 1);
    for (int i = 0; i < p->n_in; i++) {
        const hn_value *x = hn_in(p, i);
        if (x && hn_tdesc_same_dims(&x->type, &v->type) && lets_through(p, x)) return comes_from_contraction(x, depth - 1);
    }
    return false;
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
    return comes_from_contraction(hn_in(t, 0), DEPTH) && !feeds_reduction(n);
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

/* A convolution's result, and t moves channels from behind the image to before it. */
static bool is_image_beside(const hn_value *v, const hn_node *t)
{
    const hn_node *p = hn_producer(v);
    int rank;
    const int64_t *perm = hn_attr_is(t, "perm", &rank);
    if (!p || (p->op != HN_OP_conv && p->op != HN_OP_conv_transpose) || v->type.rank != rank || rank < 3) return false;
    if (perm[0] != 0 || perm[1] != rank - 1) return false;
    for (int a = 2; a < rank; a++)
        if (perm[a] != a - 1) return false;
    return true;
}

/* Can v, beside the result of t, be turned back for nothing? */
static bool turns_back(const hn_value *v, const hn_node *t)
{
    if (!v || is_single(v) || hn_is_const(v)) return true;
    return t && is_image_beside(v, t) && comes_from_contraction(hn_in(t, 0), DEPTH);
}

/* The permutation that all full operands of n went through: a transpose by it that n alone reads. count: of those. */
static const hn_node *common_transpose(const hn_node *n, int *ret_count)
{
    const hn_node *t = NULL, *own = NULL; /* any; the last one that n alone reads */
    *ret_count = 0;
    for (int i = 0; i < n->n_in; i++) {
        const hn_node *u = hn_in(n, i) ? transposed(n, i) : NULL;
        if (!u) continue;
        if (t && !same_perm(t, u)) return NULL;
        t = u;
        if (!only_reader(n, u->out[0])) continue;
        *ret_count += !own || own->out[0] != u->out[0];
        own = u;
    }
    for (int i = 0; i < n->n_in; i++)
        if (!(hn_in(n, i) && transposed(n, i)) && !turns_back(hn_in(n, i), own)) return NULL;
    return own;
}

static bool sink_pointwise(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_value *in[4];
    int count = 0, rank;
    const hn_node *t = n->n_in <= 4 ? common_transpose(n, &count) : NULL;
    if (!t || t->out[0]->type.rank != n->out[0]->type.rank || !pays(n, t, count)) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_sink_transpose, n)) return false;
    const int64_t *perm = hn_attr_is(t, "perm", &rank);
    for (int i = 0; i < n->n_in; i++) {
        const hn_node *u = hn_in(n, i) ? transposed(n, i) : NULL;
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
