/* Values in working form: 8 bytes an element, reference counted, counted against the limit. */
#include "eval/eval_int.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1024 };

static hone_status charge(hn_run *r, int64_t bytes, const char *what, hn_diag *dg)
{
    const int64_t limit = r->opts->memory_limit_bytes;
    if (limit > 0 && bytes > limit - r->live_bytes)
        return HN_RAISE(dg, HONE_E_LIMIT, "evaluating \"%s\" needs %lld more bytes with %lld of %lld in use",
                        what, (long long)bytes, (long long)r->live_bytes, (long long)limit);
    r->live_bytes += bytes;
    return HONE_OK;
}

hone_status hn_cell_new(hn_run *r, const hn_tdesc *type, const char *what, hn_cell **ret, hn_diag *dg)
{
    int64_t bytes;
    const int64_t n = hn_tdesc_numel_static(type);
    if (n < 0 || !hn_mul_size(n, 8, &bytes))
        return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" has more elements than can be counted", what);
    HN_TRY(charge(r, bytes, what, dg));
    hn_cell *c = calloc(1, sizeof *c);
    int64_t *at = calloc((size_t)n + 1, 8);
    if (!c || !at) {
        free(c);
        free(at);
        r->live_bytes -= bytes;
        return HN_NOMEM(dg);
    }
    *c = (hn_cell){.refs = 1, .bytes = bytes, .view = {.type = *type, .numel = n}};
    if (hn_dtype_is_float(type->dtype))
        c->view.f = (double *)at;
    else
        c->view.i = at;
    *ret = c;
    return HONE_OK;
}

hone_status hn_cell_list(hn_run *r, hn_vkind kind, hn_dtype dtype, hn_cell *const *item, int n, hn_cell **ret,
                         hn_diag *dg)
{
    hn_cell *c = calloc(1, sizeof *c);
    hn_cell **at = calloc((size_t)n + 1, sizeof *at);
    (void)r;
    if (!c || !at) {
        free(c);
        free(at);
        return HN_NOMEM(dg);
    }
    *c = (hn_cell){.refs = 1, .kind = kind, .item = at, .n_item = n, .view = {.type = {.dtype = dtype}}};
    for (int i = 0; i < n; i++)
        at[i] = hn_cell_ref(item[i]);
    *ret = c;
    return HONE_OK;
}

hn_cell *hn_cell_ref(hn_cell *c)
{
    c->refs++;
    return c;
}

void hn_cell_unref(hn_run *r, hn_cell *c)
{
    if (!c || --c->refs > 0) return;
    for (int i = 0; i < c->n_item; i++)
        hn_cell_unref(r, c->item[i]);
    free(c->item);
    if (c->kind == HN_TENSOR) free(c->view.i);
    r->live_bytes -= c->bytes;
    free(c);
}

/* ---- to and from storage form ---- */

static hone_status list_from_tensor(hn_run *r, const hn_tensor *t, const char *what, hn_cell **ret,
                                    hn_diag *dg)
{
    HN_TRY(hn_cell_list(r, t->kind, t->type.dtype, NULL, 0, ret, dg));
    hn_cell **item = calloc((size_t)t->n_item + 1, sizeof *item);
    if (!item) {
        hn_cell_unref(r, *ret);
        return HN_NOMEM(dg);
    }
    free((*ret)->item);
    (*ret)->item = item;
    for (int i = 0; i < t->n_item; i++) {
        const hone_status st = hn_cell_from_tensor(r, &t->item[i], what, &item[i], dg);
        if (st != HONE_OK) {
            hn_cell_unref(r, *ret);
            return st;
        }
        (*ret)->n_item++;
    }
    return HONE_OK;
}

hone_status hn_cell_from_tensor(hn_run *r, const hn_tensor *t, const char *what, hn_cell **ret, hn_diag *dg)
{
    const hn_dtype dt = t->type.dtype;
    if (t->kind != HN_TENSOR) return list_from_tensor(r, t, what, ret, dg);
    const int64_t n = hn_tensor_numel(t), bytes = hn_dtype_bytes(dt, n);
    if (bytes < 0 || (uint64_t)bytes > t->bytes || (bytes > 0 && !t->data))
        return HN_RAISE(dg, HONE_E_INVALID, "\"%s\" holds %zu bytes where its type needs %lld", what,
                        t->bytes, (long long)bytes);
    HN_TRY(hn_cell_new(r, &t->type, what, ret, dg));
    if (n == 0) return HONE_OK;
    if (hn_dtype_is_float(dt))
        hn_widen_f64(dt, t->data, 0, n, (*ret)->view.f);
    else
        hn_widen_i64(dt, t->data, 0, n, (*ret)->view.i);
    return HONE_OK;
}

static hone_status list_to_tensor(const hn_cell *c, bool as_f64, hn_tensor *ret, hn_diag *dg)
{
    hn_tensor t = {.kind = c->kind, .type = c->view.type, .owned = true};
    t.item = calloc((size_t)c->n_item + 1, sizeof *t.item);
    if (!t.item) return HN_NOMEM(dg);
    for (; t.n_item < c->n_item; t.n_item++) {
        const hone_status st = hn_cell_to_tensor(c->item[t.n_item], as_f64, &t.item[t.n_item], dg);
        if (st != HONE_OK) {
            hn_tensor_done(&t);
            return st;
        }
    }
    *ret = t;
    return HONE_OK;
}

hone_status hn_cell_to_tensor(const hn_cell *c, bool as_f64, hn_tensor *ret, hn_diag *dg)
{
    hn_tdesc type = c->view.type;
    if (c->kind != HN_TENSOR) return list_to_tensor(c, as_f64, ret, dg);
    const bool is_float = hn_dtype_is_float(type.dtype);
    if (as_f64 && is_float) type.dtype = HN_F64;
    HN_TRY(hn_tensor_init(ret, &type, dg));
    if (c->view.numel == 0) return HONE_OK;
    if (is_float)
        hn_narrow_f64(type.dtype, c->view.f, c->view.numel, ret->data, 0, /* saturate= */ false);
    else
        hn_narrow_i64(type.dtype, c->view.i, c->view.numel, ret->data, 0);
    return HONE_OK;
}

/* ---- rounding ---- */

static void round_f32(double *f, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        f[i] = (double)(float)f[i];
}

static void round_f64s(hn_dtype t, double *f, int64_t n, bool saturate)
{
    uint8_t cell[CHUNK * 8];
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t k = HN_MIN((int64_t)CHUNK, n - at);
        hn_narrow_f64(t, f + at, k, cell, 0, saturate);
        hn_widen_f64(t, cell, 0, k, f + at);
    }
}

static void wrap_i64s(hn_dtype t, int64_t *v, int64_t n)
{
    uint8_t cell[CHUNK * 8];
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t k = HN_MIN((int64_t)CHUNK, n - at);
        memset(cell, 0, sizeof cell); /* packed types leave the tail of the last byte */
        hn_narrow_i64(t, v + at, k, cell, 0);
        hn_widen_i64(t, cell, 0, k, v + at);
    }
}

void hn_cell_round(hn_cell *c, bool saturate)
{
    const hn_dtype t = c->view.type.dtype;
    switch (t) {
    case HN_F64:
    case HN_I64:
    case HN_U64:
        return;
    case HN_F32:
        round_f32(c->view.f, c->view.numel);
        return;
    default:
        if (hn_dtype_is_float(t))
            round_f64s(t, c->view.f, c->view.numel, saturate);
        else
            wrap_i64s(t, c->view.i, c->view.numel);
    }
}

hone_status hn_cell_scalar(hn_run *r, hn_dtype t, int64_t v, hn_cell **ret, hn_diag *dg)
{
    HN_TRY(hn_cell_new(r, &(hn_tdesc){.dtype = t}, "a scalar", ret, dg));
    (*ret)->view.i[0] = v;
    return HONE_OK;
}
