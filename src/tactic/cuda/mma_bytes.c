#include "tactic/cuda/mma_bytes.h"

#include <string.h>

static bool is_zero(const hn_value *v)
{
    return v->data && *(const uint8_t *)v->data->at == 0;
}

hn_fit hn_mma_bytes_fit(const hn_region *r, int64_t rows, int64_t groups, hn_mma_bytes *ret)
{
    const hn_value *a = hn_in(r->root, 0), *w = hn_in(r->root, 1);
    const int operand = hn_region_operand(r, w);
    *ret = (hn_mma_bytes){ .rows = rows, .groups = groups, .sums = -1, .zeros = -1 };
    if ((a->type.dtype != HN_I8 && a->type.dtype != HN_U8) || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    if (!hn_tdesc_is_static(&w->type)) return HN_FIT_SYMBOLIC;
    if (operand < 0 || !r->data[operand]) return HN_FIT_NOT_CONST;
    if (!hn_layout_is_plain(&w->layout)) return HN_FIT_LAYOUT;
    const hn_fit fit = hn_int8_of(r, rows * groups, &ret->q);
    ret->moves = ret->q.za && !is_zero(ret->q.za);
    return fit;
}

hone_status hn_mma_bytes_add(const hn_region *r, const hn_mma_bytes *q, hn_emission *e, const char *what, hn_diag *dg)
{
    const int64_t all = q->rows * q->groups;
    const char *recipe = hn_arena_printf(e->arena, "%s_sums_%s_n%lld", what, q->q.b_signed ? "s8" : "u8", (long long)all);
    const hn_blob sums = { .operand = hn_region_operand(r, hn_in(r->root, 1)), .recipe = recipe, .bytes = (size_t)all * 4 };
    if (!recipe || !hn_vec_push(e->arena, &e->blobs, sums)) return HN_NOMEM(dg);
    if (q->q.row_sums && !hn_int8_add_zeros(r, &q->q, all, q->rows, q->rows, e)) return HN_NOMEM(dg);
    return HONE_OK;
}

static void pack_sums(const hn_mma_source *from, int32_t *dst)
{
    const uint8_t *src = from->data->at;
    for (int64_t n = 0; n < from->rows; n++) {
        uint32_t sum = 0; /* wraps, as all sums do */
        for (int64_t k = 0; k < from->depth; k++) sum += (uint32_t)(int8_t)(src[from->at(from->user, n, k)] ^ from->flip);
        memcpy(&dst[n], &sum, sizeof sum);
    }
}

void hn_mma_bytes_pack(const hn_region *r, const hn_mma_bytes *q, const hn_mma_source *from, int i, void *dst)
{
    hn_mma_source bytes = *from;
    bytes.flip = q->q.b_signed ? 0 : 0x80;
    if (i == HN_MMA_BLOB_ROWS) hn_mma_store_rows(&bytes, dst);
    else if (i == HN_MMA_BLOB_SUMS) pack_sums(&bytes, dst);
    else hn_int8_pack_zeros(r, &q->q, q->rows * q->groups, q->rows, q->rows, dst);
}

/* ---- in a kernel ---- */
void hn_mma_bytes_start(hn_mma_bytes *q, hn_lower *l)
{
    q->l = l;
    q->sums = q->zeros = -1;
    q->za = HN_KV_NONE;
}

void hn_mma_bytes_ready(hn_mma_bytes *q)
{
    hn_kb *b = hn_lower_kb(q->l);
    const hn_kv at[HN_MAX_RANK] = { hn_kb_i(b, 0) };
    hn_kidx idx;
    q->za = hn_kb_int(b, HN_I32, 1, 0);
    if (!q->moves) return;
    hn_kidx_init(&idx, q->q.za->type.rank, at);
    hn_lower_forget(q->l);
    q->za = hn_kb_cast(b, hn_lower_value(q->l, q->q.za, &idx, HN_KV_NONE), HN_I32);
    hn_lower_forget(q->l);
}

hn_kv hn_mma_bytes_fill(const hn_mma_bytes *q)
{
    return hn_kb_cast(hn_lower_kb(q->l), q->za, q->q.a_signed ? HN_I8 : HN_U8);
}

static int table(hn_mma_bytes *q, int *buf, int blob)
{
    if (*buf < 0) *buf = hn_lower_blob(q->l, blob, HN_I32);
    return *buf;
}

hn_kv hn_mma_bytes_settle(hn_mma_bytes *q, hn_kv g, hn_kv n, hn_kv sums, hn_kv row_sum)
{
    hn_kb *b = hn_lower_kb(q->l);
    const int lanes = hn_kb_lanes(b, sums);
    if (!q->moves && !q->q.row_sums) return sums;
    const hn_kv at = q->groups == 1 ? n : hn_kb_add(b, hn_kb_muli(b, g, q->rows), n);
    const hn_kv of_b = q->moves ? hn_kb_load_aligned(b, table(q, &q->sums, HN_MMA_BLOB_SUMS), at, lanes) : hn_kb_int(b, HN_I32, lanes, 0);
    const hn_kv zeros = q->q.row_sums ? hn_kb_load_aligned(b, table(q, &q->zeros, HN_MMA_BLOB_ZEROS), at, lanes) : HN_KV_NONE;
    if (q->q.row_sums) row_sum = hn_kb_splat(b, row_sum, lanes);
    return hn_int8_corrected(b, &q->q, sums, q->za, of_b, zeros, row_sum, q->depth);
}
