/* Order of elements as the ops that search and sort see it, and sorting loops. */
#include "tactic/cpu/order.h"

hn_dtype hn_order_key_type(hn_dtype t)
{
    return hn_dtype_bits(t) == 64 ? HN_I64 : HN_I32;
}

hn_kv hn_order_lowest(hn_kb *b, hn_dtype key, int lanes)
{
    return hn_kb_int(b, key, lanes, key == HN_I64 ? INT64_MIN : INT32_MIN);
}

/* Sign and magnitude to two's complement: negative floats have their other bits flipped. */
static hn_kv float_key(hn_kb *b, hn_kv x, hn_dtype key)
{
    const int lanes = hn_kb_lanes(b, x), bits = hn_dtype_bits(key);
    const int64_t most = key == HN_I64 ? INT64_MAX : INT32_MAX;
    const hn_kv i = hn_kb_bitcast(b, x, key, lanes);
    const hn_kv flip = hn_kb_and(b, hn_kb_shr(b, i, bits - 1), hn_kb_int(b, key, lanes, most));
    hn_kv k = hn_kb_bin(b, HN_KOP_XOR, i, flip);
    k = hn_kb_select(b, hn_kb_eq(b, x, hn_kb_like(b, x, 0)), hn_kb_int(b, key, lanes, 0), k);
    return hn_kb_select(b, hn_kb_ne(b, x, x), hn_kb_int(b, key, lanes, most), k);
}

hn_kv hn_order_key(hn_kb *b, hn_kv x)
{
    const hn_dtype t = hn_kb_dtype(b, x), key = hn_order_key_type(t);
    if (hn_dtype_is_float(t)) return float_key(b, x, key);
    const hn_kv k = hn_kb_cast(b, x, key);
    if (t != HN_U32 && t != HN_U64) return k;
    return hn_kb_bin(b, HN_KOP_XOR, k, hn_order_lowest(b, key, hn_kb_lanes(b, x)));
}

hn_kv hn_order_at(hn_kb *b, int a, int t, hn_kvar which, hn_kv i)
{
    const hn_kv in_a = hn_kb_eq(b, hn_kb_get(b, which), hn_kb_i(b, 0));
    const hn_kv x = hn_kb_loadm(b, a, i, 1, in_a), y = hn_kb_loadm(b, t, i, 1, hn_kb_not(b, in_a));
    return hn_kb_select(b, in_a, x, y);
}

typedef struct merge {
    hn_kb *b;
    int from, to;
    hn_order_before before;
    void *user;
} merge;

/* Runs [lo,mid) and [mid,hi) of `from` into `to`: the right one's head goes first only where it must. */
static void merge_runs(const merge *m, hn_kv lo, hn_kv mid, hn_kv hi)
{
    hn_kb *b = m->b;
    const hn_kvar i = hn_kb_var(b, lo), j = hn_kb_var(b, mid);
    const hn_kv k = hn_kb_for(b, lo, hi, 1), left = hn_kb_get(b, i), right = hn_kb_get(b, j);
    const hn_kv has_left = hn_kb_lt(b, left, mid), has_right = hn_kb_lt(b, right, hi);
    const hn_kv x = hn_kb_loadm(b, m->from, left, 1, has_left),
                y = hn_kb_loadm(b, m->from, right, 1, has_right);
    const hn_kvar take_right = hn_kb_var(b, has_right);
    hn_kb_if(b, hn_kb_and(b, has_left, has_right));
    hn_kb_set(b, take_right, m->before(b, y, x, m->user));
    hn_kb_end(b);
    const hn_kv r = hn_kb_get(b, take_right), one = hn_kb_i(b, 1), zero = hn_kb_i(b, 0);
    hn_kb_store(b, m->to, k, hn_kb_select(b, r, y, x));
    hn_kb_set(b, i, hn_kb_add(b, left, hn_kb_select(b, r, zero, one)));
    hn_kb_set(b, j, hn_kb_add(b, right, hn_kb_select(b, r, one, zero)));
    hn_kb_end(b);
}

static void merge_pass(const merge *m, hn_kv width, hn_kv n)
{
    hn_kb *b = m->b;
    const hn_kvar at = hn_kb_var(b, hn_kb_i(b, 0));
    hn_kb_loop(b);
    const hn_kv lo = hn_kb_get(b, at);
    hn_kb_break_if(b, hn_kb_ge(b, lo, n));
    const hn_kv mid = hn_kb_min(b, hn_kb_add(b, lo, width), n),
                hi = hn_kb_min(b, hn_kb_add(b, mid, width), n);
    merge_runs(m, lo, mid, hi);
    hn_kb_set(b, at, hi);
    hn_kb_end(b);
}

hn_kvar hn_order_sort(hn_kb *b, int a, int t, hn_kv n, hn_order_before before, void *user)
{
    const hn_kvar which = hn_kb_var(b, hn_kb_i(b, 0)), width = hn_kb_var(b, hn_kb_i(b, 1));
    hn_kb_loop(b);
    const hn_kv w = hn_kb_get(b, width);
    hn_kb_break_if(b, hn_kb_ge(b, w, n));
    hn_kb_if(b, hn_kb_eq(b, hn_kb_get(b, which), hn_kb_i(b, 0)));
    merge_pass(&(merge){ b, a, t, before, user }, w, n);
    hn_kb_else(b);
    merge_pass(&(merge){ b, t, a, before, user }, w, n);
    hn_kb_end(b);
    hn_kb_set(b, which, hn_kb_sub(b, hn_kb_i(b, 1), hn_kb_get(b, which)));
    hn_kb_set(b, width, hn_kb_shl(b, w, 1));
    hn_kb_end(b);
    return which;
}
