/* Builders: the cursor, constants, shorthands. */
#include "ir/ir_int.h"

#include <string.h>

void hn_builder_init(hn_builder *b, hn_graph *g, hn_diag *dg)
{
    *b = (hn_builder){.g = g, .dg = dg};
    if (!g) b->status = HN_NOMEM(dg);
}

void hn_at(hn_builder *b, hn_node *n)
{
    b->g = n->graph;
    b->before = n;
    b->origin = n->origin;
    b->n_origin = n->n_origin;
}

void hn_builder_origin_of(hn_builder *b, const hn_node *n)
{
    if (b->g)
        b->origin =
            hn_origin_union(b->g->arena, b->origin, b->n_origin, n->origin, n->n_origin, &b->n_origin);
}

/* An operand that an earlier failure left NULL is caught by the sticky status; any other NULL is an absent
 * one. */
static hn_value *first(hn_node *n)
{
    return n && n->n_out ? n->out[0] : NULL;
}

hn_value *hn_b1(hn_builder *b, hn_op op, hn_value *x, const hn_attr_set *attrs)
{
    return first(hn_build(b, op, 1, (hn_value *[]){x}, attrs, 0));
}

hn_value *hn_b2(hn_builder *b, hn_op op, hn_value *x, hn_value *y, const hn_attr_set *attrs)
{
    return first(hn_build(b, op, 2, (hn_value *[]){x, y}, attrs, 0));
}

hn_value *hn_b3(hn_builder *b, hn_op op, hn_value *x, hn_value *y, hn_value *z, const hn_attr_set *attrs)
{
    return first(hn_build(b, op, 3, (hn_value *[]){x, y, z}, attrs, 0));
}

/* ---- constants ---- */

static hn_value *fail(hn_builder *b)
{
    if (b->status == HONE_OK) b->status = HN_NOMEM(b->dg);
    return NULL;
}

static void *const_storage(hn_builder *b, hn_dtype t, int64_t n, int64_t *ret_bytes)
{
    *ret_bytes = hn_dtype_bytes(t, n);
    if (b->status != HONE_OK) return NULL;
    return *ret_bytes < 0 ? NULL : hn_arena_alloc(b->g->arena, (size_t)*ret_bytes + 1, 1);
}

static hn_value *add_const(hn_builder *b, const hn_tdesc *type, const void *at, int64_t bytes)
{
    hn_value *v = hn_graph_const(b->g, NULL, type, at, (size_t)bytes);
    return v ? v : fail(b);
}

static hn_value *const_i64s(hn_builder *b, const hn_tdesc *type, int64_t n, const int64_t *v)
{
    int64_t bytes;
    void *at = const_storage(b, type->dtype, n, &bytes);
    if (!at) return fail(b);
    hn_narrow_i64(type->dtype, v, n, at, 0);
    return add_const(b, type, at, bytes);
}

static hn_value *const_f64s(hn_builder *b, const hn_tdesc *type, int64_t n, const double *v)
{
    int64_t bytes;
    void *at = const_storage(b, type->dtype, n, &bytes);
    if (!at) return fail(b);
    hn_narrow_f64(type->dtype, v, n, at, 0, /* saturate= */ true);
    return add_const(b, type, at, bytes);
}

hn_value *hn_const_f(hn_builder *b, hn_dtype t, double v)
{
    return const_f64s(b, &(hn_tdesc){.dtype = t}, 1, &v);
}

hn_value *hn_const_i(hn_builder *b, hn_dtype t, int64_t v)
{
    if (!hn_dtype_is_float(t)) return const_i64s(b, &(hn_tdesc){.dtype = t}, 1, &v);
    return hn_const_f(b, t, (double)v);
}

hn_value *hn_const_is(hn_builder *b, int n, const int64_t *v)
{
    return const_i64s(b, &(hn_tdesc){.dtype = HN_I64, .rank = 1, .dim = {n}}, n, v);
}

hn_value *hn_const_fs(hn_builder *b, hn_dtype t, int rank, const int64_t *dim, const double *v)
{
    hn_tdesc d = {.dtype = t, .rank = rank};
    if (HN_NEVER(rank < 0 || rank > HN_MAX_RANK)) return NULL;
    memcpy(d.dim, dim, (size_t)rank * sizeof *dim);
    return const_f64s(b, &d, hn_tdesc_numel_static(&d), v);
}

hn_value *hn_const_dims(hn_builder *b, int n, const hn_dim *d)
{
    if (b->status != HONE_OK) return NULL;
    int64_t *v = HN_NEW_N(b->g->arena, int64_t, n + 1);
    if (!v) return fail(b);
    bool known = true;
    for (int i = 0; i < n && known; i++)
        known = hn_dim_known(b->g->syms, d[i], &v[i]);
    if (known) return hn_const_is(b, n, v);
    return first(hn_build(b, HN_OP_dims, 0, NULL, HN_ATTRS_ARG(HN_A_DIMS("dim", n, d)), 1));
}

/* ---- what a constant holds ---- */

/* Elements whose bytes are whole, compared as bytes; stops at the first difference. */
static bool all_equal(const hn_value *v, int64_t n)
{
    const int bits = hn_dtype_bits(v->type.dtype);
    const uint8_t *at = v->data->at;
    if (bits % 8) {
        int64_t x0, x;
        if (hn_dtype_is_float(v->type.dtype)) return false; /* packed floats: nobody folds with them */
        hn_widen_i64(v->type.dtype, at, 0, 1, &x0);
        for (int64_t i = 1; i < n; i++) {
            hn_widen_i64(v->type.dtype, at, i, 1, &x);
            if (x != x0) return false;
        }
        return true;
    }
    const size_t size = (size_t)bits / 8;
    return n <= 1 || memcmp(at, at + size, (size_t)(n - 1) * size) == 0;
}

bool hn_const_scalar(const hn_value *v, double *ret)
{
    int64_t i;
    if (!hn_is_const(v)) return false;
    const int64_t n = hn_tdesc_numel_static(&v->type);
    if (n < 1 || hn_dtype_bytes(v->type.dtype, n) > (int64_t)v->data->bytes || !all_equal(v, n)) return false;
    if (hn_dtype_is_float(v->type.dtype)) {
        hn_widen_f64(v->type.dtype, v->data->at, 0, 1, ret);
        return true;
    }
    hn_widen_i64(v->type.dtype, v->data->at, 0, 1, &i);
    *ret = v->type.dtype == HN_U64 ? (double)(uint64_t)i : (double)i;
    return true;
}

bool hn_const_i64(const hn_value *v, int64_t i, int64_t *ret)
{
    if (!hn_is_const(v) || hn_dtype_is_float(v->type.dtype) || i < 0) return false;
    if (i >= hn_tdesc_numel_static(&v->type) ||
        hn_dtype_bytes(v->type.dtype, i + 1) > (int64_t)v->data->bytes)
        return false;
    hn_widen_i64(v->type.dtype, v->data->at, i, 1, ret);
    return true;
}

/* ---- shorthands ---- */

static bool same_dims(const hn_value *x, int rank, const hn_dim *dim)
{
    return x && x->type.rank == rank && (rank == 0 || memcmp(x->type.dim, dim, (size_t)rank * sizeof *dim) == 0);
}

hn_value *hn_reshape(hn_builder *b, hn_value *x, int rank, const hn_dim *dim)
{
    if (same_dims(x, rank, dim)) return x;
    return hn_b1(b, HN_OP_reshape, x, HN_ATTRS_ARG(HN_A_DIMS("dim", rank, dim)));
}

hn_value *hn_transpose(hn_builder *b, hn_value *x, const int64_t *perm)
{
    const int rank = x ? x->type.rank : 0;
    int i = 0;
    while (i < rank && perm[i] == i)
        i++;
    if (x && i == rank) return x;
    return hn_b1(b, HN_OP_transpose, x, HN_ATTRS_ARG(HN_A_IS("perm", rank, perm)));
}

hn_value *hn_broadcast_to(hn_builder *b, hn_value *x, int rank, const hn_dim *dim)
{
    if (same_dims(x, rank, dim)) return x;
    return hn_b1(b, HN_OP_broadcast, x, HN_ATTRS_ARG(HN_A_DIMS("dim", rank, dim)));
}

hn_value *hn_settle_to(hn_builder *b, hn_value *x, int rank, const hn_dim *whole)
{
    hn_dim dim[HN_MAX_RANK];
    if (!x || x->type.rank > rank) return x;
    for (int i = 0; i < x->type.rank; i++)
        dim[i] = hn_dim_is_const(x->type.dim[i]) ? x->type.dim[i] : whole[rank - x->type.rank + i];
    return hn_broadcast_to(b, x, x->type.rank, dim);
}

hn_value *hn_cast(hn_builder *b, hn_value *x, hn_dtype t)
{
    if (x && x->type.dtype == t) return x;
    return hn_b1(b, HN_OP_cast, x, HN_ATTRS_ARG(HN_A_T("to", t)));
}

hn_value *hn_slice(hn_builder *b, hn_value *x, int axis, hn_dim start, hn_dim len)
{
    hn_dim from[HN_MAX_RANK] = {0}, dim[HN_MAX_RANK] = {0};
    int64_t step[HN_MAX_RANK];
    if (!x) return NULL;
    const int rank = x->type.rank;
    if (HN_NEVER(axis < 0 || axis >= rank)) return NULL;
    for (int i = 0; i < rank; i++) {
        dim[i] = x->type.dim[i];
        step[i] = 1;
    }
    if (start == 0 && len == dim[axis]) return x;
    from[axis] = start;
    dim[axis] = len;
    return hn_b1(b, HN_OP_slice, x,
                 HN_ATTRS_ARG(HN_A_DIMS("start", rank, from), HN_A_IS("step", rank, step),
                              HN_A_DIMS("dim", rank, dim)));
}
