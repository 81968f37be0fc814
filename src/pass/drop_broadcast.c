/**
 * Let operations that broadcast do it.
 *
 *     y = add(broadcast(x [m], [n,m]), z [n,m])        =>   y = add(x, z)
 *     y = matmul(a [b,n,k], broadcast(w, [b,k,m]))     =>   y = matmul(a, w)
 *
 *     y = add(reshape(s [1], []), z [n,m])             =>   y = add(s, z)
 *
 * Fires where the other operands alone give the result its shape.
 */
#include "pass/pass_int.h"

/* How many trailing axes must match as they are. */
static int fixed_axes(const hn_node *n)
{
    if (n->op == HN_OP_matmul) return 2;
    return n->n_in >= 2 && (hn_op_of(n)->traits & HN_TRAIT_POINTWISE) && n->op != HN_OP_clip ? 0 : -1;
}

/* The leading axes of v, all but the last `fixed`. */
static hn_tdesc leading(const hn_value *v, int fixed)
{
    hn_tdesc d = v->type;
    d.rank = HN_MAX(d.rank - fixed, 0);
    return d;
}

static bool others_suffice(const hn_node *n, int skip, const hn_value *x, int fixed)
{
    const hn_tdesc want = leading(n->out[0], fixed);
    hn_tdesc have = leading(x, fixed);
    hn_diag why = { 0 };
    if (x->type.rank < fixed) return false;
    for (int i = 0; i < fixed; i++)
        if (x->type.dim[x->type.rank - 1 - i] != hn_in(n, skip)->type.dim[hn_in(n, skip)->type.rank - 1 - i]) return false;
    for (int i = 0; i < n->n_in; i++) {
        if (i == skip || !hn_in(n, i)) continue;
        const hn_tdesc d = leading(hn_in(n, i), fixed);
        if (hn_broadcast_dims(n->graph->syms, &have, &d, &have, &why) != HONE_OK) return false;
    }
    return hn_tdesc_same_dims(&have, &want);
}

/* A broadcast, or a single element in another rank. */
static bool repeats(const hn_value *v)
{
    return hn_is_op(v, HN_OP_broadcast) || (hn_is_op(v, HN_OP_reshape) && hn_tdesc_numel_static(&v->type) == 1);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const int fixed = fixed_axes(n);
    hn_value *in[4];
    if (fixed < 0 || n->n_in > 4 || n->n_out != 1 || !n->out[0]->n_uses) return false;
    for (int i = 0; i < n->n_in; i++) {
        in[i] = hn_in(n, i);
        if (!in[i] || !repeats(in[i]) || in[i]->def->graph != n->graph) continue;
        hn_value *x = hn_in(in[i]->def, 0);
        if (!others_suffice(n, i, x, fixed)) continue;
        for (int k = i + 1; k < n->n_in; k++) in[k] = hn_in(n, k);
        in[i] = x;
        const hn_node *y = hn_build_like(b, n, n->n_in, in);
        if (y) hn_replace(b, n->out[0], y->out[0]);
        return y != NULL;
    }
    return false;
}

const hn_pass_def hn_pass_drop_broadcast = {
    .name = "drop_broadcast", .summary = "let operations that broadcast do it",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
