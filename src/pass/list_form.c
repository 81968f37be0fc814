/* Lists as tensors: what list ops are in tensor arithmetic. */
#include "pass/list_form.h"

static const hn_attr_set axis0[] = { HN_A_I("axis", 0), { .name = NULL } };

/* ---- small words ---- */
static hn_value *x2(hn_builder *b, hn_op op, hn_value *x, hn_value *y)
{
    return hn_b2(b, op, x, y, HN_NO_ATTRS);
}

static hn_value *scalar(hn_builder *b, hn_value *x)
{
    return x && x->type.rank ? hn_reshape(b, x, 0, NULL) : x;
}

static hn_value *int_of(hn_builder *b, hn_dim d)
{
    return scalar(b, hn_const_dims(b, 1, &d));
}

/* Element i of an integer vector or scalar as an extent. */
static hn_dim dim_at(hn_builder *b, hn_value *v, int i)
{
    int64_t known;
    if (!v) return 0;
    if (v->content && i < v->n_content) return v->content[i];
    if (hn_const_i64(v, i, &known)) return hn_dim_const(b->g->syms, known);
    return hn_graph_value_dim(b->g, v, i);
}

static hn_dim product(hn_builder *b, const hn_dim *d, int n)
{
    hn_dim p = 1;
    for (int i = 0; i < n; i++) p = hn_dim_mul(b->g->syms, p, d[i]);
    return p;
}

static hn_value *vector(hn_builder *b, hn_value *x)
{
    return x ? hn_reshape(b, x, 1, (hn_dim[]){ hn_tdesc_numel(b->g->syms, &x->type) }) : NULL;
}

static hn_value *total(hn_builder *b, hn_op op, hn_value *x, int axis)
{
    return hn_b1(b, op, x, HN_ATTRS_ARG(HN_A_IS("axes", 1, (int64_t[]){ axis }), HN_A_I("keepdims", 0)));
}

static hn_value *joined(hn_builder *b, int n, hn_value *const *x, int axis)
{
    for (int i = 0; i < n; i++)
        if (!x[i]) return NULL;
    hn_node *y = hn_build(b, HN_OP_concat, n, x, HN_ATTRS_ARG(HN_A_I("axis", axis)), 1);
    return y ? y->out[0] : NULL;
}

static hn_value *iota(hn_builder *b, int rank, const hn_dim *dim, int axis)
{
    hn_node *y = hn_build(b, HN_OP_iota, 0, NULL,
                          HN_ATTRS_ARG(HN_A_T("dtype", HN_I64), HN_A_DIMS("dim", rank, dim), HN_A_I("axis", axis)), 1);
    return y ? y->out[0] : NULL;
}

static hn_value *spread(hn_builder *b, hn_value *x, int rank, const hn_dim *dim)
{
    return hn_broadcast_to(b, x, rank, dim);
}

static hn_dim count(hn_list l)
{
    return l.shapes ? l.shapes->type.dim[0] : 0;
}

/* ---- rows ---- */
/* Elements of each row's tensor: [n]. */
static hn_value *sizes(hn_builder *b, hn_value *shapes)
{
    return shapes ? total(b, HN_OP_reduce_prod, hn_slice(b, shapes, 1, 1, HN_MAX_RANK), 1) : NULL;
}

static hn_value *column(hn_builder *b, hn_list l, int axis)
{
    return l.shapes ? vector(b, hn_slice(b, l.shapes, 1, 1 + axis, 1)) : NULL;
}

static hn_value *row_of(hn_builder *b, const hn_value *x)
{
    hn_dim d[HN_LIST_COLUMNS];
    if (!x) return NULL;
    d[0] = x->type.rank;
    for (int i = 0; i < HN_MAX_RANK; i++) d[1 + i] = i < x->type.rank ? x->type.dim[i] : 1;
    return hn_reshape(b, hn_const_dims(b, HN_LIST_COLUMNS, d), 2, (hn_dim[]){ 1, HN_LIST_COLUMNS });
}

static hn_value *no_rows(hn_builder *b)
{
    return hn_reshape(b, hn_const_is(b, 0, NULL), 2, (hn_dim[]){ 0, HN_LIST_COLUMNS });
}

/* ---- positions ---- */
/*
 * A position from the front, below `end`. One that is not shows as a reshape between different numbers of elements, which the run
 * refuses; clipping keeps everything in bounds until then.
 */
static hn_dim place(hn_builder *b, hn_list l, hn_value *position, hn_dim end)
{
    hn_symtab *t = b->g->syms;
    hn_value *n = int_of(b, count(l)), *zero = hn_const_i(b, HN_I64, 0);
    hn_value *at = position ? scalar(b, hn_cast(b, position, HN_I64)) : zero;
    at = hn_b3(b, HN_OP_select, x2(b, HN_OP_lt, at, zero), x2(b, HN_OP_add, at, n), at, HN_NO_ATTRS);
    const hn_dim d = dim_at(b, at, 0);
    int64_t known, limit;
    if (hn_dim_known(t, d, &known) && hn_dim_known(t, end, &limit) && known >= 0 && known < limit) return d;
    hn_value *inside = x2(b, HN_OP_and, x2(b, HN_OP_le, zero, at), x2(b, HN_OP_lt, at, int_of(b, end)));
    const hn_dim ok = dim_at(b, hn_cast(b, inside, HN_I64), 0);
    hn_value *checked = at ? hn_reshape(b, at, 1, &ok) : NULL;
    return dim_at(b, total(b, HN_OP_reduce_sum, checked, 0), 0);
}

/* Where element `at` begins in flat. */
static hn_dim offset(hn_builder *b, hn_list l, hn_dim at)
{
    hn_value *size = sizes(b, l.shapes);
    return size ? dim_at(b, total(b, HN_OP_reduce_sum, hn_slice(b, size, 0, 0, at), 0), 0) : 0;
}

/* [from, to) along axis 0. */
static hn_value *span(hn_builder *b, hn_value *x, hn_dim from, hn_dim to)
{
    return x ? hn_slice(b, x, 0, from, hn_dim_sub(b->g->syms, to, from)) : NULL;
}

/* x with [from, to) of axis 0 exchanged for `by` (NULL: for nothing). */
static hn_value *patched(hn_builder *b, hn_value *x, hn_dim from, hn_dim to, hn_value *by)
{
    if (!x) return NULL;
    hn_value *part[3] = { span(b, x, 0, from), by, NULL };
    int n = by ? 2 : 1;
    part[n++] = span(b, x, to, x->type.dim[0]);
    return joined(b, n, part, 0);
}

/* ---- making ---- */
hn_list hn_list_make(hn_builder *b, hn_dtype t, int n, hn_value *const *x)
{
    hn_value **part = HN_NEW_N(b->g->arena, hn_value *, 2 * n + 1);
    hn_list l = { NULL, NULL };
    if (!part) return l;
    if (n == 0) return (hn_list){ hn_const_fs(b, t, 1, (int64_t[]){ 0 }, (double[]){ 0 }), no_rows(b) };
    for (int i = 0; i < n; i++) {
        part[i] = vector(b, x[i]);
        part[n + i] = row_of(b, x[i]);
    }
    l.flat = joined(b, n, part, 0);
    l.shapes = joined(b, n, part + n, 0);
    return l;
}

hn_list hn_list_absent(hn_builder *b, hn_dtype t)
{
    static const int64_t row[HN_LIST_COLUMNS] = { -1 };
    hn_list l = hn_list_make(b, t, 0, NULL);
    l.shapes = hn_reshape(b, hn_const_is(b, HN_LIST_COLUMNS, row), 2, (hn_dim[]){ 1, HN_LIST_COLUMNS });
    return l;
}

hn_list hn_list_insert(hn_builder *b, hn_list l, hn_value *x, hn_value *position)
{
    hn_value *flat[2] = { l.flat, vector(b, x) }, *shapes[2] = { l.shapes, row_of(b, x) };
    if (!position) return (hn_list){ joined(b, 2, flat, 0), joined(b, 2, shapes, 0) };
    const hn_dim at = place(b, l, position, hn_dim_add(b->g->syms, count(l), 1)), from = offset(b, l, at);
    return (hn_list){ patched(b, l.flat, from, from, flat[1]), patched(b, l.shapes, at, at, shapes[1]) };
}

hn_list hn_list_erase(hn_builder *b, hn_list l, hn_value *position)
{
    hn_symtab *t = b->g->syms;
    if (!position) position = hn_const_i(b, HN_I64, -1);
    const hn_dim at = place(b, l, position, count(l)), next = hn_dim_add(t, at, 1);
    return (hn_list){ patched(b, l.flat, offset(b, l, at), offset(b, l, next), NULL), patched(b, l.shapes, at, next, NULL) };
}

/* ---- asking ---- */
hn_value *hn_list_at(hn_builder *b, hn_list l, hn_value *position, const hn_tdesc *type)
{
    const hn_dim at = place(b, l, position, count(l));
    hn_value *size = sizes(b, l.shapes);
    hn_dim dim[HN_MAX_RANK];
    if (!size || !l.flat) return NULL;
    hn_value *row = vector(b, hn_slice(b, l.shapes, 0, at, 1)), *own = vector(b, hn_slice(b, size, 0, at, 1));
    for (int i = 0; i < type->rank; i++) dim[i] = hn_dim_is_const(type->dim[i]) ? type->dim[i] : dim_at(b, row, 1 + i);
    return hn_reshape(b, hn_slice(b, l.flat, 0, offset(b, l, at), dim_at(b, own, 0)), type->rank, dim);
}

hn_value *hn_list_length(hn_builder *b, hn_list l)
{
    return int_of(b, count(l));
}

hn_value *hn_list_is_there(hn_builder *b, hn_list l, hn_vkind kind)
{
    hn_value *zero = hn_const_i(b, HN_I64, 0);
    if (kind == HN_OPTIONAL) return x2(b, HN_OP_lt, zero, hn_list_length(b, l));
    if (!l.shapes) return NULL;
    hn_value *rank[2] = { vector(b, hn_slice(b, l.shapes, 1, 0, 1)), hn_const_is(b, 1, (int64_t[]){ 0 }) };
    return x2(b, HN_OP_le, zero, total(b, HN_OP_reduce_min, joined(b, 2, rank, 0), 0));
}

hn_list hn_list_or_empty(hn_builder *b, hn_list l)
{
    if (!l.shapes) return l;
    hn_value *there = hn_cast(b, hn_list_is_there(b, l, HN_SEQUENCE), HN_I64);
    hn_value *n = x2(b, HN_OP_mul, there, hn_list_length(b, l));
    return (hn_list){ l.flat, span(b, l.shapes, 0, dim_at(b, n, 0)) };
}

/* ---- lying along an axis ---- */
/*
 * Parts of lengths len [n] side by side along an axis of [outer, extent, inner]; each lies in flat as [outer, len, inner]. For
 * every place there: where it lies in flat.
 *
 *     flat index = start * outer * inner + o * len * inner + (p - start) * inner + r      of the part that holds p
 */
static hn_value *places(hn_builder *b, hn_value *len, hn_dim outer, hn_dim extent, hn_dim inner)
{
    hn_symtab *t = b->g->syms;
    const hn_dim whole[] = { outer, extent, inner }, row[] = { 1, extent, 1 };
    if (!len) return NULL;
    hn_value *end = hn_b1(b, HN_OP_cumsum, len, axis0), *p = iota(b, 1, &extent, 0);
    hn_value *start = x2(b, HN_OP_sub, end, len);
    if (!end || !p) return NULL;
    hn_value *behind = x2(b, HN_OP_le, hn_reshape(b, end, 2, (hn_dim[]){ 1, len->type.dim[0] }), hn_reshape(b, p, 2, (hn_dim[]){ extent, 1 }));
    hn_value *part = total(b, HN_OP_reduce_sum, hn_cast(b, behind, HN_I64), 1);
    hn_value *first = hn_b2(b, HN_OP_gather, start, part, axis0), *width = int_of(b, inner);
    hn_value *base = x2(b, HN_OP_add, x2(b, HN_OP_mul, first, int_of(b, hn_dim_mul(t, outer, inner))),
                        x2(b, HN_OP_mul, x2(b, HN_OP_sub, p, first), width));
    hn_value *stride = x2(b, HN_OP_mul, hn_b2(b, HN_OP_gather, len, part, axis0), width);
    if (!base || !stride) return NULL;
    hn_value *o = iota(b, 3, whole, 0), *r = iota(b, 3, whole, 2);
    hn_value *at = x2(b, HN_OP_mul, o, hn_reshape(b, stride, 3, row));
    return x2(b, HN_OP_add, x2(b, HN_OP_add, at, hn_reshape(b, base, 3, row)), r);
}

static hn_value *stacked(hn_builder *b, hn_list l, const hn_tdesc *element, const hn_dim *dim, int axis)
{
    hn_dim shape[HN_MAX_RANK];
    int64_t perm[HN_MAX_RANK];
    if (element->rank >= HN_MAX_RANK) return NULL;
    shape[0] = count(l);
    for (int i = 0; i < element->rank; i++) shape[1 + i] = dim[i];
    for (int i = 0; i <= element->rank; i++) perm[i] = i == axis ? 0 : i < axis ? i + 1 : i;
    return hn_transpose(b, hn_reshape(b, l.flat, element->rank + 1, shape), perm);
}

hn_value *hn_list_join(hn_builder *b, hn_list l, const hn_tdesc *element, int axis, bool new_axis)
{
    const int rank = element->rank;
    hn_dim dim[HN_MAX_RANK];
    if (!l.shapes || !l.flat) return NULL;
    const hn_dim at = place(b, l, NULL, count(l)); /* there must be a first one */
    hn_value *row = vector(b, hn_slice(b, l.shapes, 0, at, 1));
    for (int i = 0; i < rank; i++) dim[i] = hn_dim_is_const(element->dim[i]) ? element->dim[i] : dim_at(b, row, 1 + i);
    if (new_axis) return stacked(b, l, element, dim, axis);
    hn_value *len = column(b, l, axis);
    dim[axis] = len ? dim_at(b, total(b, HN_OP_reduce_sum, len, 0), 0) : 0;
    hn_value *index = places(b, len, product(b, dim, axis), dim[axis], product(b, dim + axis + 1, rank - axis - 1));
    hn_value *flat = hn_reshape(b, l.flat, 1, (hn_dim[]){ product(b, dim, rank) }); /* as many elements as the result has */
    hn_value *y = hn_b2(b, HN_OP_gather, flat, index, axis0);
    return y ? hn_reshape(b, y, rank, dim) : NULL;
}

/* Lengths of the parts, [n]. */
static hn_value *lengths(hn_builder *b, hn_value *length, hn_dim extent)
{
    hn_symtab *t = b->g->syms;
    hn_value *v = length ? hn_cast(b, length, HN_I64) : hn_const_i(b, HN_I64, 1);
    if (!v || v->type.rank) return v;
    const hn_dim n = hn_dim_ceildiv(t, extent, dim_at(b, v, 0));
    hn_value *left = x2(b, HN_OP_sub, int_of(b, extent), x2(b, HN_OP_mul, iota(b, 1, &n, 0), v));
    return x2(b, HN_OP_min, left, v);
}

/* A row a part: x's own, with the part's length along the axis. */
static hn_value *part_rows(hn_builder *b, const hn_value *x, hn_value *len, int axis, bool drop)
{
    hn_value one = *x;
    int rank = 0;
    for (int i = 0; i < x->type.rank; i++)
        if (!(drop && i == axis)) one.type.dim[rank++] = x->type.dim[i];
    one.type.rank = rank;
    hn_value *row = row_of(b, &one);
    if (!row || !len) return NULL;
    const hn_dim n = len->type.dim[0];
    hn_value *rows = spread(b, row, 2, (hn_dim[]){ n, HN_LIST_COLUMNS });
    if (drop || !rows) return rows;
    hn_value *column[3] = { hn_slice(b, rows, 1, 0, 1 + axis), hn_reshape(b, len, 2, (hn_dim[]){ n, 1 }),
                            hn_slice(b, rows, 1, 2 + axis, HN_MAX_RANK - 1 - axis) };
    return joined(b, axis == HN_MAX_RANK - 1 ? 2 : 3, column, 1);
}

hn_list hn_list_cut(hn_builder *b, hn_value *x, hn_value *length, int axis, bool drop)
{
    hn_list l = { NULL, NULL };
    if (!x) return l;
    const hn_tdesc *d = &x->type;
    const hn_dim outer = product(b, d->dim, axis), inner = product(b, d->dim + axis + 1, d->rank - axis - 1);
    hn_value *len = lengths(b, length, d->dim[axis]);
    const hn_dim sum = len ? dim_at(b, total(b, HN_OP_reduce_sum, len, 0), 0) : 0;
    const hn_dim all = product(b, (hn_dim[]){ outer, sum, inner }, 3); /* the run refuses lengths that add up to anything else */
    hn_value *flat = hn_reshape(b, x, 1, &all);
    l.shapes = part_rows(b, x, len, axis, drop);
    l.flat = flat;
    if (outer == 1 || !flat) return l;
    hn_value *index = vector(b, places(b, len, outer, d->dim[axis], inner));
    hn_value *zero = spread(b, hn_const_i(b, d->dtype, 0), 1, (hn_dim[]){ all });
    if (index) index = hn_reshape(b, index, 1, &all);
    l.flat = hn_b3(b, HN_OP_scatter_elements, zero, index, flat, axis0);
    return l;
}
