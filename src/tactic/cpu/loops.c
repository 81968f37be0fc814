/* Loop shapes that several tactics share. */
#include "tactic/cpu/loops.h"

int hn_loops_dense_axis(const hn_value *v)
{
    if (v->layout.n) return v->layout.at[v->layout.n - 1].axis;
    return v->type.rank - 1;
}

int hn_loops_result(const hn_region *r, int k)
{
    for (int i = 0; k < r->root->n_out && i < r->g->n_out; i++)
        if (r->g->out[i].value == r->root->out[k]) return i;
    return -1;
}

uint32_t hn_loops_all(const hn_value *v)
{
    return (1u << v->type.rank) - 1;
}

hn_dim hn_loops_extent(const hn_region *r, const hn_value *v, uint32_t axes)
{
    hn_dim n = 1;
    for (int a = 0; a < v->type.rank; a++)
        if (axes >> a & 1) n = hn_dim_mul(r->g->syms, n, v->type.dim[a]);
    return n;
}

void hn_loops_split(hn_lower *l, const hn_value *v, uint32_t axes, hn_kv flat, hn_kv *at)
{
    hn_kb *b = hn_lower_kb(l);
    int left = __builtin_popcount(axes);
    for (int a = v->type.rank - 1; a >= 0; a--) {
        if (!(axes >> a & 1)) continue;
        if (--left == 0) {
            at[a] = flat;
            return;
        }
        const hn_kv n = hn_lower_dim(l, v->type.dim[a]);
        at[a] = hn_kb_imod(b, flat, n);
        flat = hn_kb_idiv(b, flat, n);
    }
}

int hn_loops_open(hn_lower *l, const hn_value *v, uint32_t axes, hn_kv *at)
{
    int n = 0;
    for (int a = 0; a < v->type.rank; a++) {
        if (!(axes >> a & 1)) continue;
        at[a] = hn_kb_forn(hn_lower_kb(l), hn_lower_dim(l, v->type.dim[a]));
        n++;
    }
    hn_lower_forget(l);
    return n;
}

void hn_loops_close(hn_lower *l, int n)
{
    for (int i = 0; i < n; i++) hn_kb_end(hn_lower_kb(l));
    hn_lower_forget(l);
}

hn_kv hn_loops_element(hn_lower *l, const hn_value *v, const hn_kv *at)
{
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    hn_lower_forget(l);
    const hn_kv x = hn_lower_value(l, v, &idx, HN_KV_NONE);
    hn_lower_forget(l);
    return x;
}

static int stored_axis(const hn_value *v, int i)
{
    return v->layout.n ? v->layout.at[i].axis : i;
}

hn_kv hn_loops_place(hn_lower *l, const hn_value *v, const hn_kv *at)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv stride[HN_MAX_RANK + 2], place = hn_kb_i(b, 0);
    hn_lower_strides(l, v, stride);
    for (int i = 0; i < v->type.rank; i++) place = hn_kb_add(b, place, hn_kb_mul(b, at[stored_axis(v, i)], stride[i]));
    return place;
}

hn_kv hn_loops_stride(hn_lower *l, const hn_value *v, int axis)
{
    hn_kv stride[HN_MAX_RANK + 2];
    hn_lower_strides(l, v, stride);
    for (int i = 0; i < v->type.rank; i++)
        if (stored_axis(v, i) == axis) return stride[i];
    return hn_kb_i(hn_lower_kb(l), 0);
}

bool hn_loops_unblocked(const hn_value *v)
{
    for (int i = 0; i < v->layout.n; i++)
        if (v->layout.at[i].block) return false;
    return true;
}

static void cover_known(hn_kb *b, int64_t lo, int64_t hi, int most, void (*tile)(void *user, int places, hn_kv at), void *user)
{
    const int64_t rest = (hi - lo) % most, whole = hi - rest;
    if (whole - lo > most) {
        tile(user, most, hn_kb_for(b, hn_kb_i(b, lo), hn_kb_i(b, whole), most));
        hn_kb_end(b);
    } else if (whole > lo) {
        tile(user, most, hn_kb_i(b, lo));
    }
    if (rest) tile(user, (int)rest, hn_kb_i(b, whole));
}

void hn_loops_cover(hn_kb *b, hn_kv lo, hn_kv hi, int most, void (*tile)(void *user, int places, hn_kv at), void *user)
{
    int64_t first, end;
    if (hn_kb_is_const(b, lo, &first) && hn_kb_is_const(b, hi, &end)) {
        if (end > first) cover_known(b, first, end, most, tile, user);
        return;
    }
    hn_kb_if(b, hn_kb_ge(b, hn_kb_sub(b, hi, lo), hn_kb_i(b, most)));
    const hn_kv at = hn_kb_for(b, lo, hi, most);
    tile(user, most, hn_kb_min(b, at, hn_kb_addi(b, hi, -most)));
    hn_kb_end(b);
    hn_kb_else(b);
    tile(user, 1, hn_kb_for(b, lo, hi, 1));
    hn_kb_end(b);
    hn_kb_end(b);
}

static void list_or(const hn_node *n, const char *name, int count, int64_t dflt, int64_t *ret)
{
    int have;
    const int64_t *list = hn_attr_is(n, name, &have);
    for (int i = 0; i < count; i++) ret[i] = i < have ? list[i] : dflt;
}

void hn_loops_window_of(const hn_node *n, hn_loops_window *ret)
{
    ret->n = hn_in(n, 0)->type.rank - 2;
    list_or(n, "stride", ret->n, 1, ret->stride);
    list_or(n, "dilation", ret->n, 1, ret->dilation);
    list_or(n, "pad_begin", ret->n, 0, ret->pad);
}

hn_kv hn_loops_tap(hn_lower *l, const hn_loops_window *w, const hn_value *x, const hn_kv *result, const hn_kv *tap, hn_kv *at)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv ok = HN_KV_NONE;
    for (int s = 2; s < 2 + w->n; s++) {
        const hn_kv o = hn_kb_muli(b, result[s], w->stride[s - 2]), k = hn_kb_muli(b, tap[s], w->dilation[s - 2]);
        at[s] = hn_kb_sub(b, hn_kb_add(b, o, k), hn_lower_dim(l, w->pad[s - 2]));
        const hn_kv in = hn_kb_and(b, hn_kb_ge(b, at[s], hn_kb_i(b, 0)),
                                   hn_kb_lt(b, at[s], hn_lower_dim(l, x->type.dim[s])));
        ok = hn_kv_is(ok) ? hn_kb_and(b, ok, in) : in;
    }
    return ok;
}

int hn_loops_reduction(int op)
{
    switch (op) {
    case HN_OP_reduce_sum: return HN_KOP_ADD;
    case HN_OP_reduce_prod: return HN_KOP_MUL;
    case HN_OP_reduce_max: return HN_KOP_MAX;
    case HN_OP_reduce_min: return HN_KOP_MIN;
    default: return -1;
    }
}

uint32_t hn_loops_reduced_axes(const hn_node *n)
{
    int count;
    uint32_t bits = 0;
    const int64_t *ax = hn_attr_is(n, "axes", &count);
    for (int i = 0; i < count; i++) bits |= 1u << ax[i];
    return bits;
}

void hn_loops_reduced_idx(hn_lower *l, const hn_node *n, const hn_kv *at, hn_kidx *ret)
{
    hn_kb *b = hn_lower_kb(l);
    const uint32_t axes = hn_loops_reduced_axes(n);
    const bool keep = hn_attr_i(n, "keepdims");
    hn_kv kept[HN_MAX_RANK];
    int rank = 0;
    for (int a = 0; a < hn_in(n, 0)->type.rank; a++) {
        if (!(axes >> a & 1)) kept[rank++] = at[a];
        else if (keep) kept[rank++] = hn_kb_i(b, 0);
    }
    hn_kidx_init(ret, rank, kept);
}

hn_kv hn_loops_identity(hn_kb *b, int op, hn_dtype t, int lanes)
{
    const bool fl = hn_dtype_is_float(t);
    switch (op) {
    case HN_KOP_ADD: return fl ? hn_kb_float(b, t, lanes, 0) : hn_kb_int(b, t, lanes, 0);
    case HN_KOP_MUL: return fl ? hn_kb_float(b, t, lanes, 1) : hn_kb_int(b, t, lanes, 1);
    default: break;
    }
    const bool max = op == HN_KOP_MAX;
    if (fl) return hn_kb_float(b, t, lanes, max ? -__builtin_inf() : __builtin_inf());
    if (t == HN_BOOL) return hn_kb_int(b, t, lanes, !max);
    const int bits = hn_dtype_bits(t);
    const int64_t top = hn_dtype_is_signed(t) ? (int64_t)(~0ull >> (65 - bits)) : (int64_t)(~0ull >> (64 - bits));
    if (max) return hn_kb_int(b, t, lanes, hn_dtype_is_signed(t) ? -top - 1 : 0);
    return hn_kb_int(b, t, lanes, top);
}
