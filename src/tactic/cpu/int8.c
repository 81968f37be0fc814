/* Signs and zero points of products of bytes. */
#include "tactic/cpu/int8.h"

static const void *constant_of(const hn_region *r, const hn_value *v)
{
    const int at = hn_region_operand(r, v);
    if (v->data) return v->data->at;
    return at >= 0 && r->data[at] ? r->data[at]->at : NULL;
}

static int64_t zero_of(const hn_region *r, const hn_int8 *q, int64_t j)
{
    if (!q->zb) return q->b_signed ? 0 : -128;
    const int64_t i = hn_tdesc_numel_static(&q->zb->type) > 1 ? j : 0;
    const uint8_t *at = constant_of(r, q->zb);
    return q->b_signed ? (int8_t)at[i] : (int64_t)at[i] - 128;
}

/* Emissions are shared by regions whose operands hold other bytes: only a constant inside the region's graph may decide. */
static bool may_differ_from_zero(const hn_region *r, const hn_int8 *q)
{
    return (q->zb && !q->zb->data) || zero_of(r, q, 0) != 0;
}

hn_fit hn_int8_of(const hn_region *r, int64_t n, hn_int8 *ret)
{
    *ret = (hn_int8){ .za = hn_in(r->root, 2), .zb = hn_in(r->root, 3) };
    ret->a_signed = hn_in(r->root, 0)->type.dtype == HN_I8;
    ret->b_signed = hn_in(r->root, 1)->type.dtype == HN_I8;
    if (ret->za && hn_tdesc_numel_static(&ret->za->type) != 1) return HN_FIT_SHAPE;
    if (ret->zb) {
        const int64_t n_zb = hn_tdesc_numel_static(&ret->zb->type);
        if (!constant_of(r, ret->zb)) return HN_FIT_NOT_CONST;
        if (n_zb != 1 && n_zb != n) return HN_FIT_SHAPE;
    }
    ret->row_sums = may_differ_from_zero(r, ret);
    return HN_FIT_YES;
}

bool hn_int8_has_dot(const hn_target *t)
{
    return hn_target_has(t, HN_FEAT_AVX512 | HN_FEAT_AVX512_VNNI) || hn_target_has(t, HN_FEAT_AVX_VNNI);
}

int8_t hn_int8_signed(const hn_int8 *q, uint8_t stored)
{
    return (int8_t)(q->b_signed ? stored : stored - 128);
}

hn_kv hn_int8_zero_of_a(hn_lower *l, const hn_int8 *q)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv z = hn_kb_int(b, HN_I32, 1, 0);
    if (q->za) {
        const hn_kv at[1] = { hn_kb_i(b, 0) };
        hn_kidx idx;
        hn_kidx_init(&idx, q->za->type.rank, at);
        z = hn_kb_cast(b, hn_lower_value(l, q->za, &idx, HN_KV_NONE), HN_I32);
        hn_lower_forget(l);
    }
    return q->a_signed ? hn_kb_addi(b, z, 128) : z;
}

hn_kv hn_int8_unsigned(hn_kb *b, const hn_int8 *q, hn_kv x, int count)
{
    const uint32_t flip = 0x80808080u >> (8 * (HN_INT8_QUAD - count));
    return q->a_signed ? hn_kb_bin(b, HN_KOP_XOR, x, hn_kb_int(b, HN_I32, 1, (int32_t)flip)) : x;
}

hn_kv hn_int8_corrected(hn_kb *b, const hn_int8 *q, hn_kv acc, hn_kv za, hn_kv sums, hn_kv zeros, hn_kv sum,
                        int64_t depth)
{
    const int lanes = hn_kb_lanes(b, acc);
    za = hn_kb_splat(b, za, lanes);
    const hn_kv x = hn_kb_sub(b, acc, hn_kb_mul(b, za, sums));
    if (!q->row_sums) return x;
    const hn_kv all = hn_kb_mul(b, za, hn_kb_int(b, HN_I32, lanes, depth));
    return hn_kb_sub(b, x, hn_kb_mul(b, zeros, hn_kb_sub(b, sum, all)));
}

bool hn_int8_add_zeros(const hn_region *r, const hn_int8 *q, int64_t n, int64_t group, int64_t columns, hn_emission *ret)
{
    const int operand = q->zb && !q->zb->data ? hn_region_operand(r, q->zb) : -1;
    const int64_t all = n / group * columns;
    const char *recipe = hn_arena_printf(ret->arena, "int8_zeros_%lld_g%lld_n%lld_%s", (long long)n, (long long)group,
                                         (long long)columns, q->b_signed ? "s8" : "u8");
    if (operand < 0) recipe = hn_arena_printf(ret->arena, "%s_all%lld", recipe, (long long)zero_of(r, q, 0));
    return recipe && hn_vec_push(ret->arena, &ret->blobs, ((hn_blob){ operand, recipe, (size_t)all * 4 }));
}

void hn_int8_pack_zeros(const hn_region *r, const hn_int8 *q, int64_t n, int64_t group, int64_t columns, int32_t *dst)
{
    for (int64_t at = 0; at < n / group * columns; at++) {
        const int64_t j = at % columns;
        dst[at] = j < group ? (int32_t)zero_of(r, q, at / columns * group + j) : 0;
    }
}
