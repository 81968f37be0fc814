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
