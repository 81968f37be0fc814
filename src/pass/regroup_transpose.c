/**
 * Make one transpose of two that stand around a reshape which merges or splits axes.
 *
 *     y = transpose(reshape(transpose(x [s,2,b,h], [0,2,1,3]), [s,b,2*h]), [1,0,2])
 *         =>   y = reshape(transpose(x, [2,0,1,3]), [b,s,2*h])
 *
 * Axes are taken at their finest: x is split as far as the reshape splits, transposed once, and merged as far as it merges.
 */
#include "pass/pass_int.h"

/* The reshape between, as fine axes: in axis i holds n_in[i] of them, out axis i n_out[i]; their extents in order. */
typedef struct groups {
    int n_in[HN_MAX_RANK], n_out[HN_MAX_RANK], n;
    hn_dim dim[2 * HN_MAX_RANK];
} groups;

/* Axes of `many` from *k on whose product is `one`; how many, or 0 when there are none. */
static int run_of(hn_symtab *t, const hn_tdesc *many, int k, hn_dim one)
{
    hn_dim product = 1;
    for (int i = k; i < many->rank; i++) {
        product = hn_dim_mul(t, product, many->dim[i]);
        if (product == one) return i - k + 1;
    }
    return 0;
}

static bool find_groups(hn_symtab *t, const hn_tdesc *in, const hn_tdesc *out, groups *g)
{
    int i = 0, o = 0;
    *g = (groups){ .n = 0 };
    while (i < in->rank && o < out->rank) {
        const int merged = run_of(t, in, i, out->dim[o]), split = merged ? 0 : run_of(t, out, o, in->dim[i]);
        if (!merged && !split) return false;
        for (int k = 0; k < merged; k++) g->n_in[i + k] = 1, g->dim[g->n++] = in->dim[i + k];
        for (int k = 0; k < split; k++) g->n_out[o + k] = 1, g->dim[g->n++] = out->dim[o + k];
        if (merged) g->n_out[o] = merged;
        else g->n_in[i] = split;
        i += merged ? merged : 1;
        o += merged ? 1 : split;
    }
    return i == in->rank && o == out->rank && g->n <= HN_MAX_RANK;
}

/* Fine axes in the order that `perm` puts the coarse ones in: ret[i] is the fine axis, as numbered before. */
static int fine_order(const int64_t *perm, const int *count, int rank, int *ret)
{
    int first[HN_MAX_RANK + 1] = { 0 }, n = 0;
    for (int i = 0; i < rank; i++) first[i + 1] = first[i] + count[i];
    for (int i = 0; i < rank; i++)
        for (int k = 0; k < count[perm[i]]; k++) ret[n++] = first[perm[i]] + k;
    return n;
}

/* x's own fine axes: how many each axis of x holds. */
static void counts_before(const int64_t *perm, const int *count, int rank, int *ret)
{
    for (int i = 0; i < rank; i++) ret[perm[i]] = count[i];
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_node *r = hn_producer(hn_in(n, 0)), *t = r && r->op == HN_OP_reshape ? hn_producer(hn_in(r, 0)) : NULL;
    groups g;
    int rx, ry, before[HN_MAX_RANK], first[HN_MAX_RANK], second[HN_MAX_RANK];
    int64_t perm[HN_MAX_RANK];
    hn_dim fine[HN_MAX_RANK];
    if (!t || t->op != HN_OP_transpose || r->graph != n->graph || t->graph != n->graph || !n->out[0]->n_uses) return false;
    if (!hn_has_one_use(r->out[0]) || !hn_has_one_use(t->out[0])) return false;
    if (!find_groups(b->g->syms, &t->out[0]->type, &r->out[0]->type, &g)) return false;
    const int64_t *p = hn_attr_is(t, "perm", &rx), *q = hn_attr_is(n, "perm", &ry);
    counts_before(p, g.n_in, rx, before);
    fine_order(p, before, rx, first);
    fine_order(q, g.n_out, ry, second);
    for (int i = 0; i < g.n; i++) fine[first[i]] = g.dim[i];
    for (int i = 0; i < g.n; i++) perm[i] = first[second[i]];
    hn_value *y = hn_reshape(b, hn_in(t, 0), g.n, fine);
    y = y ? hn_transpose(b, y, perm) : NULL;
    y = y ? hn_reshape(b, y, ry, n->out[0]->type.dim) : NULL;
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_regroup_transpose = {
    .name = "regroup_transpose", .summary = "make one transpose of two around a reshape",
    .on = HN_OP_transpose, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
