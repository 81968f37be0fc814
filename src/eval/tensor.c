/* Tensors in storage form. */
#include "eval/eval.h"

#include <stdlib.h>
#include <string.h>

hone_status hn_tensor_init(hn_tensor *t, const hn_tdesc *type, hn_diag *dg)
{
    const int64_t n = hn_tdesc_numel_static(type), bytes = hn_dtype_bytes(type->dtype, n);
    if (n < 0 || bytes < 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "a tensor's extents are not known or too large");
    void *data = calloc(1, (size_t)bytes + 1);
    if (!data) return HN_NOMEM(dg);
    *t = (hn_tensor){.type = *type, .data = data, .bytes = (size_t)bytes, .owned = true};
    return HONE_OK;
}

void hn_tensor_done(hn_tensor *t)
{
    if (!t) return;
    if (t->owned) {
        for (int i = 0; i < t->n_item; i++)
            hn_tensor_done(&t->item[i]);
        free(t->item);
        free(t->data);
    }
    memset(t, 0, sizeof *t);
}

int64_t hn_tensor_numel(const hn_tensor *t)
{
    return hn_tdesc_numel_static(&t->type);
}

void hn_tensor_to_f64(const hn_tensor *t, double *dst)
{
    enum { CHUNK = 512 };
    const hn_dtype type = t->type.dtype;
    const int64_t n = hn_tensor_numel(t);
    int64_t x[CHUNK];
    if (hn_dtype_is_float(type)) {
        hn_widen_f64(type, t->data, 0, n, dst);
        return;
    }
    for (int64_t at = 0; at < n; at += CHUNK) {
        const int64_t k = HN_MIN((int64_t)CHUNK, n - at);
        hn_widen_i64(type, t->data, at, k, x);
        for (int64_t i = 0; i < k; i++)
            dst[at + i] = type == HN_U64 ? (double)(uint64_t)x[i] : (double)x[i];
    }
}
