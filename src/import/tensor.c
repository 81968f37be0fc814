/* TensorProto to bytes: every dtype, raw or typed fields, dense or sparse. Sizes are checked before memory is
 * asked for. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

/* By ONNX number; "" where there is none. */
static const struct {
    hn_dtype type;
    const char *name;
} dtypes[] = {
    { HN_NONE, "undefined" },
    { HN_F32, "float" },
    { HN_U8, "uint8" },
    { HN_I8, "int8" },
    { HN_U16, "uint16" },
    { HN_I16, "int16" },
    { HN_I32, "int32" },
    { HN_I64, "int64" },
    { HN_NONE, "string" },
    { HN_BOOL, "bool" },
    { HN_F16, "float16" },
    { HN_F64, "double" },
    { HN_U32, "uint32" },
    { HN_U64, "uint64" },
    { HN_NONE, "complex64" },
    { HN_NONE, "complex128" },
    { HN_BF16, "bfloat16" },
    { HN_F8E4M3FN, "float8e4m3fn" },
    { HN_F8E4M3FNUZ, "float8e4m3fnuz" },
    { HN_F8E5M2, "float8e5m2" },
    { HN_F8E5M2FNUZ, "float8e5m2fnuz" },
    { HN_U4, "uint4" },
    { HN_I4, "int4" },
    { HN_F4E2M1, "float4e2m1" },
    { HN_F8E8M0, "float8e8m0" },
    { HN_U2, "uint2" },
    { HN_I2, "int2" },
    { HN_NONE, "float6e2m3" },
    { HN_NONE, "float6e3m2" },
};

hn_dtype hn_im_dtype_of(int32_t onnx)
{
    return onnx >= 0 && onnx < HN_COUNT(dtypes) ? dtypes[onnx].type : HN_NONE;
}

const char *hn_im_onnx_type_name(int32_t onnx)
{
    return onnx >= 0 && onnx < HN_COUNT(dtypes) ? dtypes[onnx].name : "of an unknown type";
}

static hone_status describe(const int64_t *dims, size_t n_dim, int32_t onnx, hn_tdesc *ret, int64_t *ret_n,
                            hn_diag *dg)
{
    hn_tdesc d = { .dtype = hn_im_dtype_of(onnx), .rank = (int)n_dim };
    int64_t n = 1;

    if (d.dtype == HN_NONE) {
        if (onnx == 8)
            hn_hint(dg,
                    "strings are not numbers: take the string ops out of the model and do them before it");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "tensors of type %s (%" PRId32 ") are not supported",
                        hn_im_onnx_type_name(onnx), onnx);
    }
    if (n_dim > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "rank %zu is above the limit of %d", n_dim, HN_MAX_RANK);
    for (size_t i = 0; i < n_dim; i++) {
        if (dims[i] < 0)
            return HN_RAISE(dg, HONE_E_MODEL, "extent %zu of the tensor is %" PRId64, i, dims[i]);
        d.dim[i] = dims[i];
    }
    for (size_t i = 0; i < n_dim; i++)
        if (!hn_mul_size(n, dims[i], &n))
            return HN_RAISE(dg, HONE_E_LIMIT, "the tensor's element count overflows");
    if (hn_dtype_bytes(d.dtype, n) < 0) return HN_RAISE(dg, HONE_E_LIMIT, "the tensor's size overflows");
    *ret = d;
    *ret_n = n;
    return HONE_OK;
}

/* int32_data holds every type of 32 bits and less; packed types one storage byte an entry. */
static void narrow_int32(hn_dtype t, const int32_t *src, size_t n, uint8_t *dst)
{
    const int bits = hn_dtype_bits(t);
    for (size_t i = 0; i < n; i++) {
        const uint32_t v = (uint32_t)src[i];
        if (t == HN_BOOL)
            dst[i] = v != 0;
        else if (bits <= 8)
            dst[i] = (uint8_t)v;
        else if (bits == 16)
            memcpy(dst + 2 * i, &(uint16_t){ (uint16_t)v }, 2);
        else
            memcpy(dst + 4 * i, &v, 4);
    }
}

typedef struct field {
    const void *at;
    size_t n;     /* entries */
    size_t bytes; /* of an entry in the field */
    const char *name;
} field;

/* Which typed field holds a dtype. */
static field typed_field(const Onnx__TensorProto *t, hn_dtype type)
{
    switch (type) {
    case HN_F32:
        return (field){ t->float_data, t->n_float_data, 4, "float_data" };
    case HN_F64:
        return (field){ t->double_data, t->n_double_data, 8, "double_data" };
    case HN_I64:
        return (field){ t->int64_data, t->n_int64_data, 8, "int64_data" };
    case HN_U32:
    case HN_U64:
        return (field){ t->uint64_data, t->n_uint64_data, 8, "uint64_data" };
    default:
        return (field){ t->int32_data, t->n_int32_data, 4, "int32_data" };
    }
}

/* raw bytes into the graph's arena, unless protobuf-c put them there already */
static const void *keep(hn_arena *a, const void *at, size_t n)
{
    return n >= HN_IM_KEEP_BYTES ? at : hn_arena_memdup(a, at, n);
}

static hone_status typed(hn_arena *a, const Onnx__TensorProto *t, hn_dtype type, int64_t n, size_t bytes,
                         const void **ret, hn_diag *dg)
{
    const field f = typed_field(t, type);
    const size_t want = hn_dtype_bits(type) < 8 ? bytes : (size_t)n;

    if (f.n != want) {
        return HN_RAISE(dg, HONE_E_MODEL, "%s has %zu entries where the shape asks for %zu", f.name, f.n,
                        want);
    }
    if (f.bytes * want == bytes) {
        *ret = keep(a, f.at, bytes);
        return *ret ? HONE_OK : HN_NOMEM(dg);
    }
    uint8_t *dst = hn_arena_alloc(a, bytes, 1);
    if (!dst) return HN_NOMEM(dg);
    if (type == HN_U32)
        for (size_t i = 0; i < want; i++)
            memcpy(dst + 4 * i, &(uint32_t){ (uint32_t)t->uint64_data[i] }, 4);
    else
        narrow_int32(type, t->int32_data, want, dst);
    *ret = dst;
    return HONE_OK;
}

/* A bool is stored as 0 or 1; files hold any byte. */
static const void *clean_bools(hn_arena *a, const uint8_t *at, size_t n)
{
    size_t i = 0;
    while (i < n && at[i] <= 1)
        i++;
    if (i == n) return at;
    uint8_t *dst = hn_arena_alloc(a, n, 1);
    for (i = 0; dst && i < n; i++)
        dst[i] = at[i] != 0;
    return dst;
}

static hone_status dense(hn_im *m, const Onnx__TensorProto *t, hn_tdesc *ret_type, const void **ret_at,
                         size_t *ret_bytes, hn_diag *dg)
{
    static const uint64_t nothing[8];
    hn_tdesc d;
    int64_t n;
    const void *at = nothing;

    HN_TRY(describe(t->dims, t->n_dims, t->data_type, &d, &n, dg));
    const size_t bytes = (size_t)hn_dtype_bytes(d.dtype, n);
    if (t->segment) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "tensors stored in segments are not supported");
    if (bytes == 0) {
        ;
    } else if (t->data_location == 1) {
        HN_TRY(hn_im_external(m, t, bytes, &at, dg));
    } else if (t->has_raw_data) {
        if (t->raw_data.len != bytes)
            return HN_RAISE(dg, HONE_E_MODEL, "raw data take %zu bytes where the shape asks for %zu",
                            t->raw_data.len, bytes);
        at = keep(m->arena, t->raw_data.data, bytes);
    } else {
        HN_TRY(typed(m->arena, t, d.dtype, n, bytes, &at, dg));
    }
    if (at && d.dtype == HN_BOOL) at = clean_bools(m->arena, at, bytes);
    if (!at) return HN_NOMEM(dg);
    *ret_type = d;
    *ret_at = at;
    *ret_bytes = bytes;
    return HONE_OK;
}

hone_status hn_im_tensor(hn_im *m, const Onnx__TensorProto *t, hn_tdesc *ret_type, const void **ret_at,
                         size_t *ret_bytes, hn_diag *dg)
{
    HN_TRY_IN(dg, dense(m, t, ret_type, ret_at, ret_bytes, dg), "tensor \"%s\"", t->name ? t->name : "");
    return HONE_OK;
}

/* Flat position of stored value i: indices are one flat number a value, or one row of coordinates. */
static bool position(const hn_tdesc *d, const int64_t *index, bool rows, size_t i, int64_t n, int64_t *ret)
{
    int64_t at = 0;
    if (!rows) {
        at = index[i];
    } else {
        for (int k = 0; k < d->rank; k++) {
            const int64_t x = index[i * (size_t)d->rank + (size_t)k];
            if (x < 0 || x >= d->dim[k]) return false;
            at = at * d->dim[k] + x;
        }
    }
    *ret = at;
    return at >= 0 && at < n;
}

hone_status hn_im_sparse(hn_im *m, const Onnx__SparseTensorProto *t, hn_tdesc *ret_type, const void **ret_at,
                         size_t *ret_bytes, hn_diag *dg)
{
    hn_tdesc d, vt, it;
    const void *values, *index;
    size_t value_bytes, index_bytes;
    int64_t n;

    if (!t->values || !t->indices)
        return HN_RAISE(dg, HONE_E_MODEL, "a sparse tensor lacks its values or indices");
    HN_TRY(hn_im_tensor(m, t->values, &vt, &values, &value_bytes, dg));
    HN_TRY(hn_im_tensor(m, t->indices, &it, &index, &index_bytes, dg));
    HN_TRY(describe(t->dims, t->n_dims, t->values->data_type, &d, &n, dg));
    const int64_t nnz = hn_tdesc_numel_static(&vt), n_index = hn_tdesc_numel_static(&it);
    const bool rows = it.rank == 2;
    if (it.dtype != HN_I64 || n_index != (rows ? nnz * d.rank : nnz))
        return HN_RAISE(dg, HONE_E_MODEL,
                        "a sparse tensor of %" PRId64 " values needs int64 indices for each", nnz);
    if (hn_dtype_bits(d.dtype) < 8)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "sparse tensors of packed types are not supported");
    if (n > (int64_t)1 << 31)
        return HN_RAISE(dg, HONE_E_LIMIT, "a sparse tensor of %" PRId64 " elements is too large", n);

    const size_t size = (size_t)hn_dtype_bits(d.dtype) / 8;
    uint8_t *dst = hn_arena_alloc(m->arena, (size_t)HN_MAX(n, 1), size);
    if (!dst) return HN_NOMEM(dg);
    for (size_t i = 0; i < (size_t)nnz; i++) {
        int64_t at;
        if (!position(&d, index, rows, i, n, &at))
            return HN_RAISE(dg, HONE_E_MODEL, "index %zu of a sparse tensor is out of range", i);
        memcpy(dst + (size_t)at * size, (const uint8_t *)values + i * size, size);
    }
    *ret_type = d;
    *ret_at = dst;
    *ret_bytes = (size_t)n * size;
    return HONE_OK;
}
