/**
 * Read evenly spaced constant positions as a slice.
 *
 *     y = gather(x [n,9], {2,4,6}) {axis=1}   =>   y = slice(x, [:, 2:8:2])
 *     y = gather(x [n,9], -1) {axis=1}        =>   y = reshape(slice(x, [:, 8:9]), [n])
 *
 * Fires where every position is known to lie in range: an index out of range is an error that must stay one.
 */
#include "pass/pass_int.h"

/* Position i of the index counted from the front, as a dim; false when it may lie outside the axis. */
static bool position(const hn_node *n, hn_dim extent, int64_t i, hn_dim *ret)
{
    hn_symtab *t = n->graph->syms;
    int64_t at, lo, hi;
    if (!hn_const_i64(hn_in(n, 1), i, &at)) return false;
    hn_dim_bounds(t, extent, &lo, &hi);
    if (at >= 0 ? at >= lo : -at > lo) return false;
    *ret = at < 0 ? hn_dim_add(t, extent, hn_dim_const(t, at)) : at;
    return true;
}

/* First position and distance of the index's elements; false unless they are evenly spaced. */
static bool progression(const hn_node *n, hn_dim extent, int64_t count, hn_dim *ret_start, int64_t *ret_step)
{
    hn_dim at, last = 0;
    hn_symtab *t = n->graph->syms;
    *ret_step = 1;
    for (int64_t i = 0; i < count; i++) {
        int64_t step;
        if (!position(n, extent, i, &at)) return false;
        if (i == 0) *ret_start = at;
        else if (!hn_dim_known(t, hn_dim_sub(t, at, last), &step) || step == 0 || (i > 1 && step != *ret_step)) return false;
        else *ret_step = step;
        last = at;
    }
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    const hn_value *x = hn_in(n, 0), *index = hn_in(n, 1);
    const hn_tdesc *d = &n->out[0]->type;
    int axis;
    hn_dim from[HN_MAX_RANK] = { 0 }, dim[HN_MAX_RANK];
    int64_t step[HN_MAX_RANK];
    if (!n->out[0]->n_uses || !hn_is_const(index) || !hn_axis_resolve(hn_attr_i(n, "axis"), x->type.rank, &axis)) return false;
    const int64_t count = hn_tdesc_numel_static(&index->type);
    if (count < 1) return false;
    for (int i = 0; i < x->type.rank; i++) dim[i] = x->type.dim[i], step[i] = 1;
    if (!progression(n, dim[axis], count, &from[axis], &step[axis])) return false;
    dim[axis] = count;
    hn_value *y = hn_b1(b, HN_OP_slice, hn_in(n, 0),
                        HN_ATTRS_ARG(HN_A_DIMS("start", x->type.rank, from), HN_A_IS("step", x->type.rank, step),
                                     HN_A_DIMS("dim", x->type.rank, dim)));
    y = y ? hn_reshape(b, y, d->rank, d->dim) : NULL;
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_slice_gather = {
    .name = "slice_gather", .summary = "read evenly spaced constant positions as a slice",
    .on = HN_OP_gather, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
