/**
 * Move a reshape behind the pointwise work on its result, which can then follow what made the elements.
 *
 *     y = relu(reshape(conv(..), d))                  =>   y = reshape(relu(conv(..)), d)
 *     y = add(reshape(a, d), reshape(b, d))           =>   y = reshape(add(a, b), d)        a and b of one shape
 *     y = add(reshape(matmul(..) [n,k]), c [k])       =>   y = reshape(add(matmul(..), c))  trailing axes kept
 *
 * With one reshape it pays where its operand comes from a node that lets work follow (or is a single element).
 */
#include "pass/pass_int.h"

static bool lets_follow(const hn_value *x)
{
    const hn_node *p = hn_producer(x);
    if (!p || !hn_has_one_use(x)) return false;
    if (hn_op_of(p)->traits & (HN_TRAIT_POINTWISE | HN_TRAIT_REDUCE)) return true;
    switch (p->op) {
    case HN_OP_matmul: case HN_OP_matmul_int: case HN_OP_matmul_f8: case HN_OP_conv: case HN_OP_conv_int: case HN_OP_conv_transpose:
    case HN_OP_max_pool: case HN_OP_avg_pool: case HN_OP_attention: return true;
    default: return false;
    }
}

static int common_tail(const hn_tdesc *a, const hn_tdesc *b)
{
    int n = 0;
    while (n < a->rank && n < b->rank && a->dim[a->rank - 1 - n] == b->dim[b->rank - 1 - n]) n++;
    return n;
}

/* v, which broadcasts to the reshaped space, for the space before it; NULL when it varies along axes that changed. */
static hn_value *before_reshape(hn_builder *b, hn_value *v, int tail)
{
    const int drop = HN_MAX(v->type.rank - tail, 0);
    if (!hn_is_const(v)) return v->type.rank == 0 ? v : NULL;
    for (int i = 0; i < drop; i++)
        if (v->type.dim[i] != 1) return NULL;
    return hn_reshape(b, v, v->type.rank - drop, v->type.dim + drop);
}

static hn_value *reshaped(const hn_node *n, int i)
{
    const hn_node *p = hn_producer(hn_in(n, i));
    const bool fits = p && p->op == HN_OP_reshape && p->graph == n->graph && hn_has_one_use(p->out[0]) &&
                      hn_tdesc_same_dims(&p->out[0]->type, &n->out[0]->type);
    return fits ? hn_in(p, 0) : NULL;
}

/* The operand that gives the space before; NULL when there is none or the reshaped ones differ. */
static hn_value *space_before(const hn_node *n, int *ret_count)
{
    hn_value *space = NULL;
    *ret_count = 0;
    for (int i = 0; i < n->n_in; i++) {
        hn_value *x = hn_in(n, i) ? reshaped(n, i) : NULL;
        if (!x) continue;
        if (space && !hn_tdesc_same_dims(&space->type, &x->type)) return NULL;
        space = x;
        ++*ret_count;
    }
    return space;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_value *in[4];
    int count;
    if (!(hn_op_of(n)->traits & HN_TRAIT_POINTWISE) || n->n_in > 4 || n->n_out != 1 || !n->out[0]->n_uses) return false;
    hn_value *space = space_before(n, &count);
    if (!space || (count < 2 && !lets_follow(space) && hn_tdesc_numel_static(&space->type) != 1)) return false;
    const hn_tdesc *d = &n->out[0]->type;
    const int tail = common_tail(&space->type, d);
    for (int i = 0; i < n->n_in; i++) {
        hn_value *x = hn_in(n, i) ? reshaped(n, i) : NULL;
        in[i] = x || !hn_in(n, i) ? x : before_reshape(b, hn_in(n, i), tail);
        if (hn_in(n, i) && !in[i]) return false;
    }
    if (!hn_pass_knob(c, HN_KNOB_pass_sink_reshape, n)) return false;
    const hn_node *y = hn_build_like(b, n, n->n_in, in);
    hn_value *z = y && hn_tdesc_same_dims(&y->out[0]->type, &space->type) ? hn_reshape(b, y->out[0], d->rank, d->dim) : NULL;
    if (z) hn_replace(b, n->out[0], z);
    return z != NULL;
}

const hn_pass_def hn_pass_sink_reshape = {
    .name = "sink_reshape", .summary = "move reshapes behind pointwise work",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
