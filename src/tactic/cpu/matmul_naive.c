/* Matrix products of any dtype, and of 8-bit integers less their zero points, plain loops: the fallback. Vectors lie along the result's columns where b is row-major. */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/totals.h"

#include <math.h>

enum { NS_A_TERM = 25 }; /* on a GPU: two reads that follow on each other */

enum { P_LANES };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_matmul && r->root->op != HN_OP_matmul_int) return HN_FIT_OP;
    if (!hn_lower_dtype_ok(r->root->out[0]->type.dtype) || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    return HN_FIT_YES;
}

static bool trans(const hn_region *r, const char *name)
{
    return r->root->op == HN_OP_matmul && hn_attr_i(r->root, name);
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, r->root->out[0]->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 ? 2 : 1, lanes);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double gather = trans(r, "trans_b") && p[P_LANES] > 1 ? 0.2 : 1;
    const double ns = hn_roofline_ns(t, w.flops, w.bytes, gather * 0.1 * (double)p[P_LANES] / hn_lower_lanes(t, HN_F32), 0.5) + 200;
    const hn_value *a = hn_in(r->root, 0), *y = r->root->out[0];
    const int k = a->type.rank - (a->type.rank > 1 && trans(r, "trans_a") ? 2 : 1);
    const double results = (double)hn_region_opt(r, hn_loops_extent(r, y, hn_loops_all(y))) / (double)p[P_LANES];
    return fmax(ns, hn_threads_ns(t, results, (double)hn_region_opt(r, a->type.dim[k]), NS_A_TERM));
}

typedef struct mm {
    hn_lower *l;
    const hn_region *r;
    const hn_value *a, *b, *y;
    const hn_value *az, *bz; /* matmul_int: zero points or NULL */
    bool ta, tb;
    hn_kv at[HN_MAX_RANK]; /* index of the result */
} mm;

/* Operand index: batch axes of the result broadcast, then the two matrix axes. */
static hn_kv operand(mm *m, const hn_value *v, hn_kv row, hn_kv col, int vec_axis, int lanes, hn_kv mask)
{
    const int rank = v->type.rank, shift = m->y->type.rank - rank;
    hn_kv at[HN_MAX_RANK];
    for (int a = 0; a < rank - 2; a++) at[a] = hn_lower_stretch(m->l, m->at[a + shift], v->type.dim[a], m->y->type.dim[a + shift]);
    at[rank - 2] = row;
    at[rank - 1] = col;
    hn_kidx idx;
    hn_kidx_init(&idx, rank, at);
    idx.lanes = lanes;
    if (vec_axis >= 0 && lanes > 1) hn_kidx_vector(&idx, vec_axis, lanes);
    return hn_lower_value(m->l, v, &idx, mask);
}

/* A zero point: one for all, one a row of a or column of b, or with batch axes of its own. */
static hn_kv zero_point(mm *m, const hn_value *z, hn_kv lane, bool per_row, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(m->l);
    const int rank = z->type.rank, shift = m->y->type.rank - rank;
    hn_kv at[HN_MAX_RANK];
    for (int a = 0; a < rank; a++) at[a] = z->type.dim[a] == 1 ? hn_kb_i(b, 0) : m->at[HN_MAX(a + shift, 0)];
    const int axis = rank == 1 ? 0 : per_row ? rank - 2 : rank - 1;
    const bool varies = rank > 0 && z->type.dim[axis] != 1;
    if (varies) at[axis] = lane;
    hn_kidx idx;
    hn_kidx_init(&idx, rank, at);
    idx.lanes = lanes;
    if (varies && !per_row) hn_kidx_vector(&idx, axis, lanes);
    return hn_kb_splat(b, hn_kb_cast(b, hn_lower_value(m->l, z, &idx, varies && !per_row ? mask : HN_KV_NONE), HN_I32), lanes);
}

static hn_kv centred(mm *m, hn_kv x, const hn_value *z, hn_kv lane, bool per_row, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(m->l);
    x = hn_kb_cast(b, hn_kb_splat(b, x, lanes), HN_I32);
    return z ? hn_kb_sub(b, x, zero_point(m, z, lane, per_row, lanes, mask)) : x;
}

static hn_kv multiply_add(hn_kb *b, hn_kv x, hn_kv y, hn_kv acc)
{
    if (hn_dtype_is_float(hn_kb_dtype(b, x))) return hn_kb_fma(b, x, y, acc);
    return hn_kb_add(b, hn_kb_mul(b, x, y), acc);
}

static void body(hn_kb *b, hn_kv j, int lanes, hn_kv mask, void *user)
{
    mm *m = user;
    const int ra = m->a->type.rank, rb = m->b->type.rank, ry = m->y->type.rank;
    const hn_dtype t = hn_lower_compute_type(m->y->type.dtype);
    const hn_kv zero = hn_dtype_is_float(t) ? hn_kb_float(b, t, lanes, 0) : hn_kb_int(b, t, lanes, 0);
    const hn_kvar total = hn_kb_var(b, zero), acc = hn_kb_var(b, zero);
    const hn_kv depth = hn_lower_dim(m->l, m->a->type.dim[m->ta ? ra - 2 : ra - 1]);
    const hn_kv from = hn_kb_for(b, hn_kb_i(b, 0), depth, HN_TOTALS_BLOCK);
    hn_kb_set(b, acc, zero);
    const hn_kv k = hn_kb_for(b, from, hn_kb_min(b, hn_kb_addi(b, from, HN_TOTALS_BLOCK), depth), 1);
    hn_lower_forget(m->l);
    const hn_kv i = m->at[ry - 2];
    hn_kv x = operand(m, m->a, m->ta ? k : i, m->ta ? i : k, -1, lanes, HN_KV_NONE);
    hn_kv y = operand(m, m->b, m->tb ? j : k, m->tb ? k : j, m->tb ? rb - 2 : rb - 1, lanes, mask);
    if (m->r->root->op == HN_OP_matmul_int) {
        x = centred(m, x, m->az, i, true, lanes, HN_KV_NONE);
        y = centred(m, y, m->bz, j, false, lanes, mask);
    }
    hn_kb_set(b, acc, multiply_add(b, hn_kb_splat(b, x, lanes), hn_kb_splat(b, y, lanes), hn_kb_get(b, acc)));
    hn_kb_end(b);
    hn_kb_set(b, total, hn_kb_add(b, hn_kb_get(b, total), hn_kb_get(b, acc)));
    hn_kb_end(b);
    hn_kidx idx;
    m->at[ry - 1] = j;
    hn_kidx_init(&idx, ry, m->at);
    hn_kidx_vector(&idx, ry - 1, lanes);
    hn_lower_seed(m->l, m->y, hn_kb_get(b, total));
    hn_lower_store(m->l, &idx, mask);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "matmul_any_naive__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    mm m = { .l = l, .r = r, .a = hn_in(r->root, 0), .b = hn_in(r->root, 1), .y = r->root->out[0],
             .ta = trans(r, "trans_a"), .tb = trans(r, "trans_b"),
             .az = hn_in(r->root, 2), .bz = hn_in(r->root, 3) };
    const uint32_t outer = hn_loops_all(m.y) & ~(1u << (m.y->type.rank - 1));
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, m.y, outer));
    hn_loops_split(l, m.y, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), m.at);
    hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, m.y->type.dim[m.y->type.rank - 1]), (int)p[P_LANES], HN_KTAIL_MASK,
                      body, &m);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_matmul_any_naive__cpu = {
    .name = "matmul_any_naive__cpu", .rev = 2, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .space = space, .cost = cost, .emit = emit,
};
