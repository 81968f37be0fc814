/* Sequences and optionals: lists of cells. */
#include "eval/eval_int.h"

#include <stdlib.h>
#include <string.h>

bool hn_is_list_op(hn_op op)
{
    return op >= HN_OP_seq_construct && op <= HN_OP_list_pack;
}

static hone_status want_list(const hn_cell *c, hn_diag *dg)
{
    if (!c || c->kind == HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "operand 0 is not a sequence");
    return HONE_OK;
}

/* A position, negative ones from the end; absent: dflt. */
static hone_status position(const hn_cell *c, int64_t n, int64_t dflt, int64_t last, int64_t *ret,
                            hn_diag *dg)
{
    *ret = dflt;
    if (!c) return HONE_OK;
    if (c->kind != HN_TENSOR || hn_dtype_is_float(c->view.type.dtype) || c->view.numel != 1)
        return HN_RAISE(dg, HONE_E_TYPE, "the position is not one integer");
    *ret = c->view.i[0] < 0 ? c->view.i[0] + n : c->view.i[0];
    if (*ret < 0 || *ret > last)
        return HN_RAISE(dg, HONE_E_MODEL, "position %lld is outside a sequence of %lld",
                        (long long)c->view.i[0], (long long)n);
    return HONE_OK;
}

/* A list with item `at` left out (drop) or with x put before it. */
static hone_status edited(hn_run *r, const hn_cell *list, int64_t at, bool drop, hn_cell *x, hn_cell **ret,
                          hn_diag *dg)
{
    hn_cell **item = calloc((size_t)list->n_item + 2, sizeof *item);
    int n = 0;
    if (!item) return HN_NOMEM(dg);
    for (int i = 0; i <= list->n_item; i++) {
        if (i == at && x) item[n++] = x;
        if (i < list->n_item && !(drop && i == at)) item[n++] = list->item[i];
    }
    const hone_status st = hn_cell_list(r, HN_SEQUENCE, list->view.type.dtype, item, n, ret, dg);
    free(item);
    return st;
}

static hone_status at(hn_run *r, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    int64_t i;
    (void)r;
    HN_TRY(want_list(in[0], dg));
    HN_TRY(position(in[1], in[0]->n_item, 0, (int64_t)in[0]->n_item - 1, &i, dg));
    if (i >= in[0]->n_item) return HN_RAISE(dg, HONE_E_MODEL, "the sequence is empty");
    out[0] = hn_cell_ref(in[0]->item[i]);
    return HONE_OK;
}

static hone_status insert(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    int64_t i;
    HN_TRY(want_list(in[0], dg));
    if (!in[1]) return HN_RAISE(dg, HONE_E_INVALID, "nothing to insert");
    HN_TRY(position(n->n_in > 2 ? in[2] : NULL, in[0]->n_item, in[0]->n_item, in[0]->n_item, &i, dg));
    return edited(r, in[0], i, false, in[1], out, dg);
}

static hone_status erase(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    int64_t i;
    HN_TRY(want_list(in[0], dg));
    const int64_t last = (int64_t)in[0]->n_item - 1;
    if (last < 0) return HN_RAISE(dg, HONE_E_MODEL, "the sequence is empty");
    HN_TRY(position(n->n_in > 1 ? in[1] : NULL, in[0]->n_item, last, last, &i, dg));
    return edited(r, in[0], i, true, NULL, out, dg);
}

static int64_t attr_or(const hn_node *n, const char *name, int64_t dflt)
{
    return hn_attr_index(hn_op_of(n), name) >= 0 ? hn_attr_i(n, name) : dflt;
}

static hone_status concat(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    int axis;
    const bool new_axis = attr_or(n, "new_axis", 0) != 0;
    HN_TRY(want_list(in[0], dg));
    if (!in[0]->n_item) return HN_RAISE(dg, HONE_E_MODEL, "an empty sequence cannot be joined");
    const int rank = in[0]->item[0]->view.type.rank + new_axis;
    if (!hn_axis_resolve(attr_or(n, "axis", 0), rank, &axis))
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %lld is out of range for rank %d",
                        (long long)attr_or(n, "axis", 0), rank);
    return hn_cells_concat(r, in[0]->item, in[0]->n_item, axis, new_axis, out, dg);
}

/* ---- split ---- */

typedef struct split_plan {
    int axis;
    bool drop_axis;
    int n;
    int64_t each; /* part length when lens is NULL; the last may be shorter */
    const int64_t *lens;
} split_plan;

static hone_status plan_split(const hn_node *n, hn_cell *const *in, split_plan *p, hn_diag *dg)
{
    const hn_cell *s = n->n_in > 1 ? in[1] : NULL;
    *p = (split_plan){.each = 1};
    if (!in[0] || in[0]->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "operand 0 is not a tensor");
    if (!hn_axis_resolve(attr_or(n, "axis", 0), in[0]->view.type.rank, &p->axis))
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %lld is out of range", (long long)attr_or(n, "axis", 0));
    const int64_t extent = in[0]->view.type.dim[p->axis];
    p->drop_axis = !s && !attr_or(n, "keepdims", 1);
    if (s && (s->kind != HN_TENSOR || hn_dtype_is_float(s->view.type.dtype) || s->view.numel > INT32_MAX))
        return HN_RAISE(dg, HONE_E_TYPE, "the split sizes are not integers");
    if (s && s->view.type.rank == 1) {
        p->n = (int)s->view.numel;
        p->lens = s->view.i;
        return HONE_OK;
    }
    if (s) p->each = s->view.i[0];
    if (p->each < 1) return HN_RAISE(dg, HONE_E_MODEL, "a split size of %lld", (long long)p->each);
    const int64_t parts = extent / p->each + (extent % p->each != 0);
    if (parts > INT32_MAX) return HN_RAISE(dg, HONE_E_LIMIT, "too many parts");
    p->n = (int)parts;
    return HONE_OK;
}

static hone_status cut_parts(hn_run *r, const hn_cell *x, const split_plan *p, hn_cell **part, hn_diag *dg)
{
    const int64_t extent = x->view.type.dim[p->axis];
    int64_t from = 0;
    for (int i = 0; i < p->n; i++) {
        const int64_t len = p->lens ? p->lens[i] : HN_MIN(p->each, extent - from);
        HN_TRY(hn_cell_cut(r, x, p->axis, from, len, p->drop_axis, &part[i], dg));
        from += len;
    }
    if (from != extent)
        return HN_RAISE(dg, HONE_E_MODEL, "the split sizes add up to %lld of %lld", (long long)from,
                        (long long)extent);
    return HONE_OK;
}

static hone_status split(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    split_plan p;
    HN_TRY(plan_split(n, in, &p, dg));
    hn_cell **part = calloc((size_t)p.n + 1, sizeof *part);
    if (!part) return HN_NOMEM(dg);
    hone_status st = cut_parts(r, in[0], &p, part, dg);
    if (st == HONE_OK) st = hn_cell_list(r, HN_SEQUENCE, in[0]->view.type.dtype, part, p.n, out, dg);
    for (int i = 0; i < p.n; i++)
        hn_cell_unref(r, part[i]);
    free(part);
    return st;
}

/* ---- optionals ---- */

static hone_status opt_get(hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    if (!in[0]) return HN_RAISE(dg, HONE_E_MODEL, "an absent optional has no element");
    if (in[0]->absent || (in[0]->kind == HN_OPTIONAL && !in[0]->n_item))
        return HN_RAISE(dg, HONE_E_MODEL, "the optional is empty");
    out[0] = hn_cell_ref(in[0]->kind == HN_OPTIONAL ? in[0]->item[0] : in[0]);
    return HONE_OK;
}

static bool opt_has(const hn_node *n, hn_cell *const *in)
{
    const hn_cell *c = n->n_in > 0 ? in[0] : NULL;
    return c && !c->absent && (c->kind != HN_OPTIONAL || c->n_item > 0);
}

/* ---- lists as two tensors ---- */
static hone_status row_type(const int64_t *row, hn_tdesc *ret, hn_diag *dg)
{
    if (row[0] < 0 || row[0] > HN_MAX_RANK) return HN_RAISE(dg, HONE_E_SHAPE, "an element of rank %lld", (long long)row[0]);
    ret->rank = (int)row[0];
    for (int d = 0; d < ret->rank; d++)
        if ((ret->dim[d] = row[1 + d]) < 0) return HN_RAISE(dg, HONE_E_SHAPE, "an extent of %lld", (long long)row[1 + d]);
    return HONE_OK;
}

/* One element from `from` on; *ret_n gets how many numbers it takes. */
static hone_status unpack_one(hn_run *r, const hn_cell *flat, const int64_t *row, int64_t from, hn_cell **ret, hn_diag *dg)
{
    hn_tdesc type = { .dtype = flat->view.type.dtype };
    HN_TRY(row_type(row, &type, dg));
    const int64_t n = hn_tdesc_numel_static(&type);
    if (n < 0 || n > flat->view.numel - from)
        return HN_RAISE(dg, HONE_E_SHAPE, "the elements' shapes need more than the %lld numbers there are", (long long)flat->view.numel);
    HN_TRY(hn_cell_new(r, &type, "an element", ret, dg));
    memcpy((*ret)->view.i, flat->view.i + from, (size_t)n * sizeof *flat->view.i);
    return HONE_OK;
}

static hone_status unpack(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    const int64_t *rows = in[1]->view.i, count = in[1]->view.type.dim[0], kind = hn_attr_i(n, "kind");
    const bool absent = kind == HN_LIST_MAYBE_SEQUENCE && count == 1 && rows[0] == -1;
    if (count > INT32_MAX || (n->out[0]->kind == HN_OPTIONAL && count > 1))
        return HN_RAISE(dg, HONE_E_SHAPE, "%lld elements", (long long)count);
    hn_cell **part = calloc((size_t)count + 1, sizeof *part);
    if (!part) return HN_NOMEM(dg);
    hone_status st = HONE_OK;
    int64_t from = 0;
    for (int64_t i = 0; i < count && !absent && st == HONE_OK; i++) {
        st = unpack_one(r, in[0], rows + i * HN_LIST_COLUMNS, from, &part[i], dg);
        if (st == HONE_OK) from += part[i]->view.numel;
    }
    if (st == HONE_OK && from != in[0]->view.numel)
        st = HN_RAISE(dg, HONE_E_SHAPE, "the elements' shapes need %lld of %lld numbers", (long long)from, (long long)in[0]->view.numel);
    if (st == HONE_OK) st = hn_cell_list(r, n->out[0]->kind, in[0]->view.type.dtype, part, absent ? 0 : (int)count, out, dg);
    if (st == HONE_OK) out[0]->absent = absent;
    for (int64_t i = 0; i < count; i++)
        hn_cell_unref(r, part[i]);
    free(part);
    return st;
}

static void pack_row(const hn_cell *c, int64_t *row)
{
    row[0] = c ? c->view.type.rank : -1;
    for (int d = 0; d < HN_MAX_RANK; d++)
        row[1 + d] = !c ? 0 : d < c->view.type.rank ? c->view.type.dim[d] : 1;
}

static hone_status pack(hn_run *r, const hn_cell *list, hn_cell **out, hn_diag *dg)
{
    hn_tdesc flat = { .dtype = list->view.type.dtype, .rank = 1 };
    const int64_t rows = list->absent ? 1 : list->n_item;
    for (int i = 0; i < list->n_item; i++)
        flat.dim[0] += list->item[i]->view.numel;
    HN_TRY(hn_cell_new(r, &flat, "a list's elements", &out[0], dg));
    HN_TRY(hn_cell_new(r, &(hn_tdesc){.dtype = HN_I64, .rank = 2, .dim = {rows, HN_LIST_COLUMNS}}, "a list's shapes", &out[1], dg));
    int64_t *to = out[0]->view.i;
    for (int i = 0; i < list->n_item; i++) {
        const hn_view *x = &list->item[i]->view;
        memcpy(to, x->i, (size_t)x->numel * sizeof *to);
        to += x->numel;
        pack_row(list->item[i], out[1]->view.i + (int64_t)i * HN_LIST_COLUMNS);
    }
    if (list->absent) pack_row(NULL, out[1]->view.i);
    return HONE_OK;
}

hone_status hn_apply_list_op(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    const hn_dtype dtype = n->out[0]->type.dtype;
    switch (n->op) {
    case HN_OP_seq_construct:
        HN_TRY(hn_cell_list(r, HN_SEQUENCE, dtype, in, n->n_in, out, dg));
        out[0]->absent = attr_or(n, "absent", 0) != 0;
        return HONE_OK;
    case HN_OP_seq_at:
        return at(r, in, out, dg);
    case HN_OP_seq_insert:
        return insert(r, n, in, out, dg);
    case HN_OP_seq_erase:
        return erase(r, n, in, out, dg);
    case HN_OP_seq_length:
        HN_TRY(want_list(in[0], dg));
        return hn_cell_scalar(r, HN_I64, in[0]->n_item, out, dg);
    case HN_OP_seq_concat:
        return concat(r, n, in, out, dg);
    case HN_OP_seq_split:
        return split(r, n, in, out, dg);
    case HN_OP_opt_make:
        return hn_cell_list(r, HN_OPTIONAL, dtype, in, n->n_in > 0 && in[0] ? 1 : 0, out, dg);
    case HN_OP_opt_get:
        return opt_get(in, out, dg);
    case HN_OP_opt_has:
        return hn_cell_scalar(r, HN_BOOL, opt_has(n, in), out, dg);
    case HN_OP_list_unpack:
        return unpack(r, n, in, out, dg);
    case HN_OP_list_pack:
        HN_TRY(want_list(in[0], dg));
        return pack(r, in[0], out, dg);
    default:
        return HN_RAISE(dg, HONE_E_INTERNAL, "op %d is no list op", (int)n->op);
    }
}
