/* Sequences and optionals as the two tensors that stand for them in models and engines. */
#include "api/api_int.h"

#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 1 + HONE_MAX_RANK };

static int64_t numel(int rank, const int64_t *dim)
{
    hn_tdesc d = { .dtype = HN_I64, .rank = rank };
    if (rank < 0 || rank > HONE_MAX_RANK) return -1;
    for (int i = 0; i < rank; i++) {
        if (dim[i] < 0) return -1;
        d.dim[i] = dim[i];
    }
    return hn_tdesc_numel_static(&d);
}

/* n elements of src from `from` on to dst at `to`; types below a byte are packed. */
static void move(hn_dtype t, const void *src, int64_t from, int64_t n, void *dst, int64_t to)
{
    const int bits = hn_dtype_bits(t);
    if (n > 0 && bits % 8 == 0) {
        memcpy((char *)dst + to * (bits / 8), (const char *)src + from * (bits / 8), (size_t)(n * (bits / 8)));
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t sb = (from + i) * bits, db = (to + i) * bits;
        const unsigned mask = (1U << bits) - 1, v = ((const uint8_t *)src)[sb / 8] >> sb % 8 & mask;
        uint8_t *d = (uint8_t *)dst + db / 8;
        *d = (uint8_t)((*d & ~(mask << db % 8)) | v << db % 8);
    }
}

static hone_status check_items(const hone_tensor *item, int n, hone_dtype t, int64_t *ret_total, hn_diag *dg)
{
    *ret_total = 0;
    if (n < -1 || (int)t <= HN_NONE || (int)t >= HN_NDTYPES || (n > 0 && !item)) return HN_RAISE(dg, HONE_E_INVALID, "a list of %d elements", n);
    for (int i = 0; i < n; i++) {
        const int64_t k = numel(item[i].rank, item[i].dim);
        if (item[i].dtype != t) return HN_RAISE(dg, HONE_E_TYPE, "element %d is %s in a list of %s", i, hone_dtype_name(item[i].dtype), hone_dtype_name(t));
        if (k < 0 || hn_dtype_bytes((hn_dtype)t, k) != (int64_t)item[i].bytes || (item[i].bytes && !item[i].data))
            return HN_RAISE(dg, HONE_E_INVALID, "element %d has %zu bytes, which its shape does not take", i, item[i].bytes);
        if (__builtin_add_overflow(*ret_total, k, ret_total)) return HN_RAISE(dg, HONE_E_LIMIT, "too many elements");
    }
    return HONE_OK;
}

static hone_status make(hone_tensor *ret, hone_dtype t, int rank, int64_t rows, int64_t columns, hn_diag *dg)
{
    *ret = (hone_tensor){ .dtype = t, .rank = rank, .dim = { rows, columns } };
    const int64_t bytes = hn_dtype_bytes((hn_dtype)t, rows * (rank == 2 ? columns : 1));
    if (bytes < 0) return HN_RAISE(dg, HONE_E_LIMIT, "too many elements");
    ret->bytes = (size_t)bytes;
    ret->data = calloc(1, ret->bytes + 1);
    return ret->data ? HONE_OK : HN_NOMEM(dg);
}

static hone_status pack(const hone_tensor *item, int n, hone_dtype t, hone_tensor *ret, hn_diag *dg)
{
    int64_t total, at = 0;
    HN_TRY(check_items(item, n, t, &total, dg));
    HN_TRY(make(&ret[0], t, 1, total, 0, dg));
    HN_TRY(make(&ret[1], HONE_DTYPE_I64, 2, n < 0 ? 1 : n, COLUMNS, dg));
    int64_t *row = ret[1].data;
    if (n < 0) row[0] = -1;
    for (int i = 0; i < n; i++, row += COLUMNS) {
        row[0] = item[i].rank;
        for (int k = 0; k < HONE_MAX_RANK; k++) row[1 + k] = k < item[i].rank ? item[i].dim[k] : 1;
        const int64_t k = numel(item[i].rank, item[i].dim);
        move((hn_dtype)t, item[i].data, 0, k, ret[0].data, at);
        at += k;
    }
    return HONE_OK;
}

hone_status hone_list_pack(const hone_tensor *item, int n, hone_dtype dtype, hone_tensor ret[2], hone_error **err)
{
    hn_diag dg = { 0 };
    hone_tensor made[2] = { { .data = NULL }, { .data = NULL } };
    if (pack(item, n, dtype, made, &dg) != HONE_OK) {
        free(made[0].data);
        free(made[1].data);
        return hn_api_fail(err, &dg, NULL);
    }
    ret[0] = made[0];
    ret[1] = made[1];
    return HONE_OK;
}

static hone_status unpack_one(const hone_tensor *flat, const int64_t *row, int64_t *at, hone_tensor *ret, hn_diag *dg)
{
    const int64_t have = flat->dim[0], n = row[0] < 0 || row[0] > HONE_MAX_RANK ? -1 : numel((int)row[0], row + 1);
    if (n < 0 || n > have - *at) return HN_RAISE(dg, HONE_E_SHAPE, "a row of shapes does not fit the elements");
    *ret = (hone_tensor){ .dtype = flat->dtype, .rank = (int)row[0], .bytes = (size_t)hn_dtype_bytes((hn_dtype)flat->dtype, n) };
    for (int i = 0; i < ret->rank; i++) ret->dim[i] = row[1 + i];
    ret->data = calloc(1, ret->bytes + 1);
    if (!ret->data) return HN_NOMEM(dg);
    move((hn_dtype)flat->dtype, flat->data, *at, n, ret->data, 0);
    *at += n;
    return HONE_OK;
}

static hone_status unpack(const hone_tensor *packed, hone_tensor **ret, int *ret_n, hn_diag *dg)
{
    const hone_tensor *flat = &packed[0], *shapes = &packed[1];
    const int64_t *row = shapes->data;
    int64_t at = 0;
    if (flat->rank != 1 || flat->dim[0] < 0 || hn_dtype_bytes((hn_dtype)flat->dtype, flat->dim[0]) != (int64_t)flat->bytes)
        return HN_RAISE(dg, HONE_E_INVALID, "the elements of a list are a vector");
    if (shapes->dtype != HONE_DTYPE_I64 || shapes->rank != 2 || shapes->dim[1] != COLUMNS || shapes->dim[0] < 0 ||
        shapes->dim[0] > INT32_MAX || shapes->bytes != (size_t)shapes->dim[0] * COLUMNS * sizeof *row)
        return HN_RAISE(dg, HONE_E_INVALID, "the shapes of a list are i64 with %d columns", COLUMNS);
    const int n = (int)shapes->dim[0];
    *ret = calloc((size_t)n + 1, sizeof **ret);
    if (!*ret) return HN_NOMEM(dg);
    *ret_n = n == 1 && row[0] == -1 ? -1 : n;
    for (int i = 0; i < *ret_n; i++) HN_TRY(unpack_one(flat, row + (size_t)i * COLUMNS, &at, &(*ret)[i], dg));
    return at == flat->dim[0] ? HONE_OK : HN_RAISE(dg, HONE_E_SHAPE, "the shapes of a list leave elements over");
}

hone_status hone_list_unpack(const hone_tensor packed[2], hone_tensor **ret, int *ret_n, hone_error **err)
{
    hn_diag dg = { 0 };
    hone_tensor *item = NULL;
    int n = 0;
    if (unpack(packed, &item, &n, &dg) != HONE_OK) {
        hone_list_free(item, n);
        return hn_api_fail(err, &dg, NULL);
    }
    *ret = item;
    *ret_n = n;
    return HONE_OK;
}

void hone_list_free(hone_tensor *item, int n)
{
    for (int i = 0; item && i < n; i++) free(item[i].data);
    free(item);
}
