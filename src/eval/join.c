/* Joining and cutting tensors in working form: scan outputs, sequences to tensors and back. */
#include "eval/eval_int.h"

#include <string.h>

/* Elements of working form are 8 bytes whatever they are. */
static char *bytes_of(const hn_cell *c)
{
    return (char *)c->view.i;
}

static int64_t product(const hn_tdesc *t, int from, int to)
{
    int64_t n = 1;
    for (int i = from; i < to; i++)
        n = hn_extent_times(n, t->dim[i]);
    return n;
}

static void add_axis(hn_tdesc *t, int axis)
{
    memmove(&t->dim[axis + 1], &t->dim[axis], (size_t)(t->rank - axis) * sizeof t->dim[0]);
    t->dim[axis] = 1;
    t->rank++;
}

static void drop_axis_of(hn_tdesc *t, int axis)
{
    t->rank--;
    memmove(&t->dim[axis], &t->dim[axis + 1], (size_t)(t->rank - axis) * sizeof t->dim[0]);
}

/* The shape that each part has, axes as in the result. */
static hone_status part_type(const hn_cell *c, int axis, bool new_axis, hn_tdesc *ret, hn_diag *dg)
{
    *ret = c->view.type;
    if (c->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "a list cannot be joined like a tensor");
    if (!new_axis) return HONE_OK;
    if (ret->rank == HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_SHAPE, "joining would give more than %d axes", HN_MAX_RANK);
    add_axis(ret, axis);
    return HONE_OK;
}

static bool same_but(const hn_tdesc *a, const hn_tdesc *b, int axis)
{
    if (a->rank != b->rank || a->dtype != b->dtype) return false;
    for (int i = 0; i < a->rank; i++)
        if (i != axis && a->dim[i] != b->dim[i]) return false;
    return true;
}

hone_status hn_cells_concat(hn_run *r, hn_cell *const *c, int n, int axis, bool new_axis, hn_cell **ret,
                            hn_diag *dg)
{
    hn_tdesc type, part;
    int64_t at = 0, extent = 0;
    HN_TRY(part_type(c[0], axis, new_axis, &type, dg));
    for (int i = 0; i < n; i++) {
        HN_TRY(part_type(c[i], axis, new_axis, &part, dg));
        if (!same_but(&type, &part, axis))
            return HN_RAISE(dg, HONE_E_SHAPE,
                            "item %d differs in shape or dtype from the first it is joined with", i);
        if (!hn_add_size(extent, part.dim[axis], &extent))
            return HN_RAISE(dg, HONE_E_SHAPE, "the joined extent overflows");
    }
    type.dim[axis] = extent;
    HN_TRY(hn_cell_new(r, &type, "a joined tensor", ret, dg));

    const int64_t outer = product(&type, 0, axis), inner = product(&type, axis + 1, type.rank);
    for (int i = 0; i < n; i++) {
        const int64_t len = new_axis ? 1 : c[i]->view.type.dim[axis], run = len * inner;
        for (int64_t o = 0; o < outer && run > 0; o++)
            memcpy(bytes_of(*ret) + 8 * ((o * extent + at) * inner), bytes_of(c[i]) + 8 * (o * run),
                   (size_t)(8 * run));
        at += len;
    }
    return HONE_OK;
}

hone_status hn_cell_cut(hn_run *r, const hn_cell *c, int axis, int64_t from, int64_t len, bool drop_axis,
                        hn_cell **ret, hn_diag *dg)
{
    hn_tdesc type = c->view.type;
    const int64_t extent = type.dim[axis];
    const int64_t outer = product(&type, 0, axis), inner = product(&type, axis + 1, type.rank),
                  run = len * inner;
    if (from < 0 || len < 0 || len > extent - from)
        return HN_RAISE(dg, HONE_E_SHAPE, "cutting %lld elements from %lld leaves the %lld there are",
                        (long long)len, (long long)from, (long long)extent);
    type.dim[axis] = len;
    if (drop_axis) drop_axis_of(&type, axis);
    HN_TRY(hn_cell_new(r, &type, "a part of a tensor", ret, dg));
    for (int64_t o = 0; o < outer && run > 0; o++)
        memcpy(bytes_of(*ret) + 8 * (o * run), bytes_of(c) + 8 * ((o * extent + from) * inner),
               (size_t)(8 * run));
    return HONE_OK;
}
