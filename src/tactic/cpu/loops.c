/* Loop shapes that several tactics share. */
#include "tactic/cpu/loops.h"

int hn_loops_dense_axis(const hn_value *v)
{
    if (v->layout.n) return v->layout.at[v->layout.n - 1].axis;
    return v->type.rank - 1;
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
