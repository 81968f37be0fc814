/**
 * Mark gathers and scatters whose indices cannot lie outside their axes, so that no kernel looks.
 *
 *     i = arg_max(x [n,9]) {axis=1}  y = gather(t [9,4], i)   =>   y = gather(t, i) {in_range=1}
 *
 * A range is followed through what moves integers about and through simple arithmetic; extents may be symbols. What arithmetic
 * reads must be able to be 0: wherever a kernel begins, the zeros that it is timed with give indices in range too.
 */
#include "pass/pass_int.h"

enum { DEPTH = 12, MOST_ELEMENTS = 1 << 22 };

/* lo <= x < end for every element. */
typedef struct range {
    int64_t lo; /* INT64_MIN: unknown */
    hn_dim end;
    bool ends; /* end is known */
} range;

static const range anything = { .lo = INT64_MIN };

static range range_of(hn_symtab *t, const hn_value *v, int depth);

static range below(hn_dim end)
{
    return (range){ .lo = 0, .end = end, .ends = true };
}

static range either(hn_symtab *t, range a, range b)
{
    if (!a.ends || !b.ends) return (range){ .lo = HN_MIN(a.lo, b.lo) };
    return (range){ .lo = HN_MIN(a.lo, b.lo), .end = hn_dim_max(t, a.end, b.end), .ends = true };
}

static range of_constant(hn_symtab *t, const hn_value *v)
{
    const int64_t n = hn_tdesc_numel_static(&v->type);
    int64_t lo = INT64_MAX, hi = INT64_MIN, x;
    if (hn_dtype_is_float(v->type.dtype) || n > MOST_ELEMENTS) return anything;
    for (int64_t i = 0; i < n; i++) {
        if (!hn_const_i64(v, i, &x)) return anything;
        lo = HN_MIN(lo, x), hi = HN_MAX(hi, x);
    }
    if (n == 0) return below(0);
    return hi == INT64_MAX ? (range){ .lo = lo } : (range){ .lo = lo, .end = hn_dim_const(t, hi + 1), .ends = true };
}

static range of_content(hn_symtab *t, const hn_value *v)
{
    range r = { 0 };
    for (int i = 0; i < v->n_content; i++) {
        int64_t lo, hi;
        hn_dim_bounds(t, v->content[i], &lo, &hi);
        const range x = { .lo = lo, .end = hn_dim_add(t, v->content[i], 1), .ends = true };
        r = i ? either(t, r, x) : x;
    }
    return r;
}

/* The turn of a loop that stops at a known one. */
static range of_parameter(hn_symtab *t, const hn_value *v)
{
    const hn_node *loop = v->graph->owner;
    if (!loop || loop->op != HN_OP_loop || v != v->graph->in[0] || !hn_in(loop, 0)) return anything;
    range trip = range_of(t, hn_in(loop, 0), DEPTH);
    if (!trip.ends) return (range){ .lo = 0 };
    return below(hn_dim_sub(t, trip.end, 1));
}

static range of_cast(hn_symtab *t, const hn_node *n, int depth)
{
    int64_t lo, hi;
    const hn_value *x = hn_in(n, 0);
    const range r = range_of(t, x, depth);
    if (hn_dtype_is_float(x->type.dtype) || hn_dtype_is_float(n->out[0]->type.dtype) || !r.ends || r.lo < 0) return anything;
    hn_dim_bounds(t, r.end, &lo, &hi);
    const int bits = hn_dtype_bits(n->out[0]->type.dtype) - hn_dtype_is_signed(n->out[0]->type.dtype);
    return bits >= 63 || (bits > 0 && hi <= (int64_t)1 << bits) ? r : anything; /* nothing wraps */
}

static range of_sum(hn_symtab *t, range a, range b)
{
    range r = anything;
    if (a.lo == INT64_MIN || b.lo == INT64_MIN || __builtin_add_overflow(a.lo, b.lo, &r.lo)) r.lo = INT64_MIN;
    r.ends = a.ends && b.ends;
    if (r.ends) r.end = hn_dim_sub(t, hn_dim_add(t, a.end, b.end), 1);
    return r;
}

/* By one known number. */
static bool one_number(hn_symtab *t, range r, int64_t *ret)
{
    int64_t end;
    if (r.lo == INT64_MIN || !r.ends || !hn_dim_known(t, r.end, &end) || end - 1 != r.lo) return false;
    *ret = r.lo;
    return true;
}

static range of_product(hn_symtab *t, range a, range b)
{
    int64_t k;
    range r = anything;
    if (!one_number(t, b, &k) || k < 0 || !a.ends || a.lo < 0 || __builtin_mul_overflow(a.lo, k, &r.lo)) return anything;
    r.end = hn_dim_add(t, hn_dim_mul(t, hn_dim_sub(t, a.end, 1), hn_dim_const(t, k)), 1);
    r.ends = true;
    return r;
}

static range of_least(hn_symtab *t, range a, range b)
{
    range r = { .lo = HN_MIN(a.lo, b.lo), .ends = a.ends || b.ends };
    if (r.ends) r.end = !a.ends ? b.end : !b.ends ? a.end : hn_dim_min(t, a.end, b.end);
    return r;
}

static range of_most(hn_symtab *t, range a, range b)
{
    range r = either(t, a, b);
    r.lo = HN_MAX(a.lo, b.lo);
    return r;
}

static range of_clip(hn_symtab *t, const hn_node *n, int depth)
{
    range r = range_of(t, hn_in(n, 0), depth);
    if (n->n_in > 1 && hn_in(n, 1)) r = of_most(t, r, range_of(t, hn_in(n, 1), depth));
    if (n->n_in > 2 && hn_in(n, 2)) r = of_least(t, r, range_of(t, hn_in(n, 2), depth));
    return r;
}

/* The remainder by a positive number, with its sign. */
static range of_mod(hn_symtab *t, const hn_node *n, int depth)
{
    const range by = range_of(t, hn_in(n, 1), depth);
    return hn_attr_i(n, "fmod") || by.lo < 1 || !by.ends ? anything : below(hn_dim_sub(t, by.end, 1));
}

/* Of what arithmetic reads: a constant, or something that may be 0. */
static range operand(hn_symtab *t, const hn_value *v, int depth)
{
    int64_t lo, hi;
    const range r = range_of(t, v, depth);
    if (v->data || !r.ends) return r.lo <= 0 || v->data ? r : anything;
    hn_dim_bounds(t, r.end, &lo, &hi);
    return r.lo <= 0 && lo >= 1 ? r : anything;
}

static range of_arithmetic(hn_symtab *t, const hn_node *n, int depth)
{
    int64_t k;
    const range a = operand(t, hn_in(n, 0), depth), b = operand(t, hn_in(n, 1), depth);
    switch (n->op) {
    case HN_OP_add: return of_sum(t, a, b);
    case HN_OP_sub:
        if (!one_number(t, b, &k) || k == INT64_MIN) return anything;
        return of_sum(t, a, (range){ .lo = -k, .end = hn_dim_const(t, 1 - k), .ends = true });
    case HN_OP_mul: return one_number(t, a, &k) ? of_product(t, b, a) : of_product(t, a, b);
    case HN_OP_min: return of_least(t, a, b);
    default: return of_most(t, a, b);
    }
}

static range of_axis(const hn_value *x, int64_t axis)
{
    int a;
    return hn_axis_resolve(axis, x->type.rank, &a) ? below(x->type.dim[a]) : anything;
}

static range of_range(hn_symtab *t, const hn_node *n, int depth)
{
    const range start = operand(t, hn_in(n, 0), depth), step = operand(t, hn_in(n, 1), depth);
    return of_sum(t, start, of_product(t, below(n->out[0]->type.dim[0]), step));
}

static range of_any_operand(hn_symtab *t, const hn_node *n, int first, int end, int depth)
{
    range r = range_of(t, hn_in(n, first), depth);
    for (int i = first + 1; i < end && r.ends; i++) r = either(t, r, range_of(t, hn_in(n, i), depth));
    return r;
}

static range of_node(hn_symtab *t, const hn_value *v, int depth)
{
    const hn_node *n = v->def;
    switch (n->op) {
    case HN_OP_reshape: case HN_OP_transpose: case HN_OP_broadcast: case HN_OP_slice: case HN_OP_identity:
    case HN_OP_gather: case HN_OP_gather_elements: case HN_OP_gather_nd:
        return range_of(t, hn_in(n, 0), depth);
    case HN_OP_concat: return of_any_operand(t, n, 0, n->n_in, depth);
    case HN_OP_select: return of_any_operand(t, n, 1, 3, depth);
    case HN_OP_cast: return of_cast(t, n, depth);
    case HN_OP_add: case HN_OP_sub: case HN_OP_mul: case HN_OP_min: case HN_OP_max:
        return of_arithmetic(t, n, depth);
    case HN_OP_clip: return of_clip(t, n, depth);
    case HN_OP_mod: return of_mod(t, n, depth);
    case HN_OP_arg_max: case HN_OP_arg_min: return of_axis(hn_in(n, 0), hn_attr_i(n, "axis"));
    case HN_OP_topk: return v->def_index == 1 ? of_axis(hn_in(n, 0), hn_attr_i(n, "axis")) : anything;
    case HN_OP_iota: return of_axis(v, hn_attr_i(n, "axis"));
    case HN_OP_range: return of_range(t, n, depth);
    default: return anything;
    }
}

static range range_of(hn_symtab *t, const hn_value *v, int depth)
{
    if (v->kind != HN_TENSOR || hn_dtype_is_float(v->type.dtype) || depth == 0) return anything;
    if (v->type.dtype == HN_BOOL) return below(2);
    if (v->data) return of_constant(t, v);
    if (v->n_content > 0) return of_content(t, v);
    return v->def ? of_node(t, v, depth - 1) : of_parameter(t, v);
}

static bool within(hn_symtab *t, range r, hn_dim extent)
{
    int64_t least, most, lo, hi;
    hn_dim_bounds(t, extent, &least, &most);
    if (!r.ends || r.lo < -least) return false;
    hn_dim_bounds(t, hn_dim_sub(t, r.end, extent), &lo, &hi);
    return hi <= 0;
}

/* ---- tuples ---- */
/* index is transpose(nonzero(y)) and y has x's extents: what a mask selects from its own tensor. */
static bool from_nonzero(const hn_value *index, const hn_value *x, int depth)
{
    const hn_node *turn = hn_producer(index), *found;
    if (!turn || turn->op != HN_OP_transpose) return false;
    found = hn_producer(hn_in(turn, 0));
    if (!found || found->op != HN_OP_nonzero || hn_in(found, 0)->type.rank != depth) return false;
    for (int k = 0; k < depth; k++)
        if (hn_in(found, 0)->type.dim[k] != x->type.dim[k]) return false;
    return true;
}

/* Entry k of every tuple: an operand where tuples are put together from single entries. */
static range entry(hn_symtab *t, const hn_value *index, int k, int depth)
{
    const hn_node *n = hn_producer(index);
    const int last = index->type.rank - 1;
    if (n && n->op == HN_OP_concat && n->n_in == depth && hn_attr_i(n, "axis") == last && hn_in(n, k)->type.dim[last] == 1)
        return range_of(t, hn_in(n, k), DEPTH);
    return range_of(t, index, DEPTH);
}

static bool proved_tuples(hn_symtab *t, const hn_node *n, int batch)
{
    const hn_value *x = hn_in(n, 0), *index = hn_in(n, 1);
    const int depth = (int)index->type.dim[index->type.rank - 1];
    if (batch == 0 && from_nonzero(index, x, depth)) return true;
    for (int k = 0; k < depth; k++)
        if (!within(t, entry(t, index, k, depth), x->type.dim[batch + k])) return false;
    return true;
}

static bool proved(hn_symtab *t, const hn_node *n)
{
    int axis;
    switch (n->op) {
    case HN_OP_gather: case HN_OP_gather_elements: case HN_OP_scatter_elements:
        return hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis) &&
               within(t, range_of(t, hn_in(n, 1), DEPTH), hn_in(n, 0)->type.dim[axis]);
    case HN_OP_gather_nd: return proved_tuples(t, n, (int)hn_attr_i(n, "batch_dims"));
    case HN_OP_scatter_nd: return proved_tuples(t, n, 0);
    default: return false;
    }
}

static bool is_indexed(hn_op op)
{
    return op == HN_OP_gather || op == HN_OP_gather_elements || op == HN_OP_gather_nd || op == HN_OP_scatter_elements ||
           op == HN_OP_scatter_nd;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    if (!is_indexed(n->op) || !n->out[0]->n_uses || hn_attr_i(n, "in_range") || !proved(b->g->syms, n)) return false;
    hn_value *in[3] = { 0 };
    for (int i = 0; i < n->n_in; i++) in[i] = hn_in(n, i);
    hn_node *y = hn_build_changed(b, n, n->n_in, in, HN_ATTRS_ARG(HN_A_I("in_range", 1)));
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_prove_index = {
    .name = "prove_index", .summary = "mark indices that cannot lie outside their axes",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
