/* Regions: operands, digest, sizes and work at the symbols' opt values. */
#include "tactic/lower.h"

#include <math.h>

void hn_region_init(hn_region *r, hn_graph *g, hn_node *root, hn_data *const *data, const char *name)
{
    *r = (hn_region){ .g = g, .root = root, .data = data, .name = name };
    hn_hasher h;
    hn_hasher_init(&h);
    const hn_digest body = hn_graph_digest(g);
    hn_hasher_bytes(&h, &body, sizeof body);
    int at = 0;
    HN_FOR_NODES (n, g) {
        if (n == root) hn_hasher_i64(&h, at);
        at++;
    }
    for (int i = 0; i < g->n_in; i++) hn_hasher_i64(&h, data && data[i] != NULL);
    r->digest = hn_hasher_end(&h);
}

int hn_region_operand(const hn_region *r, const hn_value *v)
{
    for (int i = 0; i < r->g->n_in; i++)
        if (r->g->in[i] == v) return i;
    return -1;
}

/* Every node on the way from v looks at its operands' elements at its own index. */
static bool read_in_place(const hn_region *r, const hn_value *v)
{
    enum { MOST = 128 };
    const hn_value *from[MOST] = { v };
    int n_from = 1;
    HN_FOR_NODES (n, r->g) {
        bool depends = false;
        for (int i = 0; i < n->n_in; i++)
            for (int k = 0; k < n_from; k++) depends |= hn_in(n, i) == from[k];
        if (!depends) continue;
        if (!hn_lower_is_pointwise(n) || n_from == MOST) return false;
        from[n_from++] = n->out[0];
    }
    return true;
}

bool hn_region_in_place(const hn_region *r, int in, int out)
{
    const hn_value *x = r->g->in[in], *y = r->g->out[out].value;
    if (x->type.dtype != y->type.dtype || hn_dtype_bits(x->type.dtype) < 8) return false;
    return hn_tdesc_same_dims(&x->type, &y->type) && hn_layout_eq(&x->layout, &y->layout) && read_in_place(r, x);
}

int64_t hn_region_opt(const hn_region *r, hn_dim d)
{
    if (hn_dim_is_const(d)) return d;
    int64_t opt[256], v;
    const int n = HN_MIN(hn_sym_count(r->g->syms), 256);
    for (int i = 0; i < n; i++) opt[i] = hn_sym_get(r->g->syms, hn_sym_at(r->g->syms, i))->opt;
    return hn_dim_eval(r->g->syms, d, opt, &v) ? v : 1;
}

static double value_bytes(const hn_region *r, const hn_value *v)
{
    double n = hn_dtype_bits(v->type.dtype) / 8.0;
    for (int a = 0; a < v->type.rank; a++) n *= (double)hn_region_opt(r, v->type.dim[a]);
    return n;
}

static double node_flops(const hn_region *r, const hn_node *n, hn_arena *a)
{
    hn_call c;
    hn_work w = { 0 };
    hn_diag dg = { 0 };
    if (!hn_op_of(n)->work || hn_call_of_node(n, a, &c, &dg) != HONE_OK) return 0;
    hn_tdesc in[16], out[8];
    for (int i = 0; i < c.n_in && i < 16; i++) {
        in[i] = c.in[i];
        for (int k = 0; k < in[i].rank; k++) in[i].dim[k] = hn_region_opt(r, in[i].dim[k]);
    }
    for (int i = 0; i < c.n_out && i < 8; i++) {
        out[i] = n->out[i]->type;
        for (int k = 0; k < out[i].rank; k++) out[i].dim[k] = hn_region_opt(r, out[i].dim[k]);
    }
    if (c.n_in > 16 || c.n_out > 8) return 0;
    c.in = in;
    c.out = out;
    hn_op_of(n)->work(&c, &w);
    return w.flops;
}

void hn_region_work(const hn_region *r, hn_work *ret)
{
    hn_arena *a = hn_arena_create();
    *ret = (hn_work){ 0 };
    for (int i = 0; i < r->g->n_in; i++) ret->bytes += value_bytes(r, r->g->in[i]);
    for (int i = 0; i < r->g->n_out; i++) ret->bytes += value_bytes(r, r->g->out[i].value);
    HN_FOR_NODES (n, r->g) ret->flops += node_flops(r, n, a);
    hn_arena_destroy(a);
}

double hn_threads_ns(const hn_target *t, double threads, double steps, double ns_step)
{
    enum { THREADS_A_CORE = 2048, NS_LAUNCH = 800 };
    if (t->arch != HN_ARCH_SM) return 0;
    return (NS_LAUNCH + fmax(1, threads / (t->n_core * (double)THREADS_A_CORE)) * steps * ns_step) * t->n_core;
}
