/* Tensor descriptions, broadcasting and physical layouts. */
#include <string.h>

#include "core/core.h"

bool hn_tdesc_eq(const hn_tdesc *a, const hn_tdesc *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

bool hn_tdesc_is_static(const hn_tdesc *d)
{
    for (int i = 0; i < d->rank; i++)
        if (!hn_dim_is_const(d->dim[i])) return false;
    return true;
}

hn_dim hn_tdesc_numel(hn_symtab *t, const hn_tdesc *d)
{
    hn_dim n = 1;
    for (int i = 0; i < d->rank; i++)
        n = hn_dim_mul(t, n, d->dim[i]);
    return n;
}

int64_t hn_tdesc_numel_static(const hn_tdesc *d)
{
    int64_t n = 1;
    if (!hn_tdesc_is_static(d)) return -1;
    for (int i = 0; i < d->rank; i++)
        if (d->dim[i] == 0) return 0; /* before the product: other extents may overflow it */
    for (int i = 0; i < d->rank; i++)
        if (!hn_mul_size(n, d->dim[i], &n)) return -1;
    return n;
}

void hn_tdesc_print(const hn_symtab *t, const hn_tdesc *d, hn_str *out)
{
    hn_str_add(out, hn_dtype_name(d->dtype));
    if (d->dtype == HN_NONE) return;
    hn_str_add(out, "[");
    for (int i = 0; i < d->rank; i++) {
        if (i) hn_str_add(out, ",");
        hn_dim_print(t, d->dim[i], out);
    }
    hn_str_add(out, "]");
}

bool hn_axis_resolve(int64_t axis, int rank, int *ret)
{
    if (axis < -(int64_t)rank || axis >= rank) return false;
    *ret = (int)(axis < 0 ? axis + rank : axis);
    return true;
}

/* The extent of one broadcast axis; false when both are known and clash. */
static bool broadcast_dim(hn_symtab *t, hn_dim a, hn_dim b, hn_dim *ret)
{
    int64_t lo_a, lo_b, hi;
    if (a == b || b == 1)
        *ret = a;
    else if (a == 1)
        *ret = b;
    else if (hn_dim_is_const(a) && hn_dim_is_const(b))
        return false;
    else if (hn_dim_is_const(a))
        *ret = a; /* not 1: whatever b turns out to be, only a can come out */
    else if (hn_dim_is_const(b))
        *ret = b;
    else {
        hn_dim_bounds(t, a, &lo_a, &hi);
        hn_dim_bounds(t, b, &lo_b, &hi);
        if (lo_a > 1)
            *ret = a;
        else if (lo_b > 1)
            *ret = b;
        else
            *ret = hn_dim_select(t, hn_dim_eq(t, a, 1), b, a);
    }
    return true;
}

static hone_status shapes_clash(const hn_symtab *t, const hn_tdesc *a, const hn_tdesc *b, int axis,
                                hn_diag *dg)
{
    hn_str text = { 0 };
    hn_tdesc_print(t, a, &text);
    hn_str_add(&text, " and ");
    hn_tdesc_print(t, b, &text);
    const hone_status s =
        HN_RAISE(dg, HONE_E_SHAPE, "%s do not broadcast: extents differ at axis %d from the last",
                 hn_str_get(&text), axis);
    hn_str_done(&text);
    return s;
}

hone_status hn_broadcast_dims(hn_symtab *t, const hn_tdesc *a, const hn_tdesc *b, hn_tdesc *ret, hn_diag *dg)
{
    hn_tdesc r = { .dtype = a->dtype, .rank = HN_MAX(a->rank, b->rank) };
    for (int i = 1; i <= r.rank; i++) {
        const hn_dim da = i <= a->rank ? a->dim[a->rank - i] : 1, db = i <= b->rank ? b->dim[b->rank - i] : 1;
        if (!broadcast_dim(t, da, db, &r.dim[r.rank - i])) return shapes_clash(t, a, b, i, dg);
    }
    *ret = r;
    return HONE_OK;
}

/* ---- layouts ---- */
bool hn_layout_is_plain(const hn_layout *l)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].axis != i || l->at[i].block != 0) return false;
    return true;
}

bool hn_layout_eq(const hn_layout *a, const hn_layout *b)
{
    if (a->n != b->n) return (a->n == 0 || b->n == 0) && hn_layout_is_plain(a) && hn_layout_is_plain(b);
    for (int i = 0; i < a->n; i++)
        if (a->at[i].axis != b->at[i].axis || a->at[i].block != b->at[i].block) return false;
    return true;
}

hn_layout hn_layout_blocked(int rank, int axis, int block)
{
    hn_layout l = { .n = rank + 1 };
    for (int i = 0; i < rank; i++)
        l.at[i].axis = (int8_t)i;
    l.at[rank].axis = (int8_t)axis;
    l.at[rank].block = (int16_t)block;
    return l;
}

hn_layout hn_layout_in_pieces(int rank, int width)
{
    hn_layout l = { .n = rank + 1 };

    l.at[0].axis = (int8_t)(rank - 1);
    for (int a = 0; a < rank; a++)
        l.at[a + 1].axis = (int8_t)a;
    l.at[rank].block = (int16_t)width;
    return l;
}

int64_t hn_layout_piece(const hn_layout *l, int rank)
{
    if (rank < 1 || l->n != rank + 1) return 0;
    const hn_layout like = hn_layout_in_pieces(rank, l->at[rank].block);
    return l->at[rank].block && hn_layout_eq(l, &like) ? l->at[rank].block : 0;
}

hn_layout hn_layout_channels_last(int rank)
{
    hn_layout l = { .n = 0 };
    if (rank < 3) return l; /* N, C is its own order */
    l.n = rank;
    for (int i = 1; i < rank - 1; i++)
        l.at[i].axis = (int8_t)(i + 1);
    l.at[rank - 1].axis = 1;
    return l;
}

void hn_layout_print(const hn_layout *l, int rank, hn_str *out)
{
    if (l->n == 0) {
        for (int i = 0; i < rank; i++)
            hn_str_addf(out, "%c", 'a' + i);
        return;
    }
    for (int i = 0; i < l->n; i++) {
        if (l->at[i].block) hn_str_addf(out, "%d", l->at[i].block);
        hn_str_addf(out, "%c", 'a' + l->at[i].axis);
    }
}

/* Every axis once without a block, at most once with one, the block after its outer part; axes 0..rank-1 all
 * there. */
static bool is_well_formed(const hn_layout *l)
{
    bool outer[HN_MAX_RANK] = { false }, inner[HN_MAX_RANK] = { false };
    int rank = 0;
    for (int i = 0; i < l->n; i++) {
        const int axis = l->at[i].axis;
        bool *seen = l->at[i].block ? inner : outer;
        if (seen[axis] || (l->at[i].block && !outer[axis])) return false;
        seen[axis] = true;
        rank += l->at[i].block == 0;
    }
    for (int i = 0; i < rank; i++)
        if (!outer[i]) return false;
    return true;
}

bool hn_layout_parse(const char *s, size_t n, hn_layout *ret)
{
    hn_layout l = { .n = 0 };
    for (size_t i = 0; i < n; i++) {
        int block = 0;
        const size_t start = i;
        for (; i < n && s[i] >= '0' && s[i] <= '9'; i++) {
            block = block * 10 + (s[i] - '0');
            if (block > INT16_MAX) return false;
        }
        if (i == n || s[i] < 'a' || s[i] >= 'a' + HN_MAX_RANK) return false;
        if (i > start && block == 0) return false;
        if (l.n == HN_COUNT(l.at)) return false;
        l.at[l.n].axis = (int8_t)(s[i] - 'a');
        l.at[l.n++].block = (int16_t)block;
    }
    if (!is_well_formed(&l)) return false;
    *ret = l;
    return true;
}

void hn_layout_dims(hn_symtab *t, const hn_layout *l, const hn_tdesc *d, hn_tdesc *ret)
{
    int block[HN_MAX_RANK] = { 0 };
    hn_tdesc r = { .dtype = d->dtype, .rank = l->n };
    if (l->n == 0 || HN_NEVER(l->n > HN_MAX_RANK)) {
        *ret = *d;
        return;
    }
    for (int i = 0; i < l->n; i++)
        if (l->at[i].block) block[l->at[i].axis] = l->at[i].block;
    for (int i = 0; i < l->n; i++) {
        const int axis = l->at[i].axis;
        if (l->at[i].block)
            r.dim[i] = l->at[i].block;
        else
            r.dim[i] = block[axis] ? hn_dim_ceildiv(t, d->dim[axis], block[axis]) : d->dim[axis];
    }
    *ret = r;
}

bool hn_tdesc_same_dims(const hn_tdesc *a, const hn_tdesc *b)
{
    if (a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (a->dim[i] != b->dim[i]) return false;
    return true;
}

int hn_layout_block_of(const hn_layout *l, int axis)
{
    for (int i = 0; i < l->n; i++)
        if (l->at[i].axis == axis && l->at[i].block) return l->at[i].block;
    return 0;
}
