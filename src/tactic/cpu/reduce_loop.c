/* Sums, products, maxima and minima over any axes.
 *
 * Two forms: where the densest axis is reduced, vectors of partial results run along it and fold at the end ("along"); else
 * vectors lie across it and each lane is a result of its own ("across"). Pointwise work before and after is evaluated in place.
 *
 * Long runs are taken in blocks with a partial result each (N. Higham, "The accuracy of floating point summation", SIAM J. Sci.
 * Comput. 14(4), 1993, section 4). Where there are many of them, what adding a block rounds away is kept beside the total, so that
 * the error of a sum is a block's and does not grow with their number.
 */
#include "tactic/cpu/loops.h"

#include <math.h>

enum { P_LANES, P_CHAINS, P_SLICE };
enum { MAX_CHAINS = 4, BLOCK_STEPS = 64 /* steps of the innermost loop that share a partial result */ };
enum { SLICE = 256 }; /* results of a row that one parallel trip covers */
enum { NS_A_TERM = 25 }; /* of a GPU's thread that waits for its loads, a few at a time */

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (hn_loops_reduction(r->root->op) < 0) return HN_FIT_OP;
    if (!hn_lower_dtype_ok(r->root->out[0]->type.dtype) || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    return HN_FIT_YES;
}

static bool along(const hn_region *r)
{
    const hn_value *x = hn_in(r->root, 0);
    const int dense = hn_loops_dense_axis(x);
    return dense < 0 || (hn_loops_reduced_axes(r->root) >> dense & 1);
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, hn_in(r->root, 0)->type.dtype), lanes[] = { 1, wide }, chains[] = { 1, 4 };
    hn_space_add_list(ret, "lanes", wide > 1 ? 2 : 1, lanes);
    hn_space_add_list(ret, "chains", 2, chains);
    if (!along(r)) hn_space_add_settled(ret, "slice", 3, (const int64_t[]){ SLICE, 64, 1024 });
}

/* The axis that the innermost loop runs over, the densest of those reduced; -1: none is. */
static int inner_axis(const hn_region *r)
{
    const uint32_t axes = hn_loops_reduced_axes(r->root);
    if (axes == 0) return -1;
    return along(r) ? hn_loops_dense_axis(hn_in(r->root, 0)) : 31 - __builtin_clz(axes);
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    const hn_value *x = hn_in(r->root, 0);
    if (p[P_LANES] == 1) return p[P_CHAINS] == 1;
    if (x->type.rank == 0) return false;
    const hn_dim d = x->type.dim[hn_loops_dense_axis(x)];
    if (hn_dim_is_const(d) && d < p[P_LANES] / 2) return false;
    if (p[P_CHAINS] == 1 || inner_axis(r) < 0) return p[P_CHAINS] == 1;
    const hn_dim run = x->type.dim[inner_axis(r)];
    const int64_t step = p[P_CHAINS] * (along(r) ? p[P_LANES] : 1);
    return !hn_dim_is_const(run) || run >= step;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double eff = (double)p[P_LANES] / hn_lower_lanes(t, HN_F32) * (p[P_CHAINS] > 1 ? 0.4 : 0.12);
    const double ns = hn_roofline_ns(t, w.flops, w.bytes, eff, 0.8) + 100;
    const hn_value *x = hn_in(r->root, 0);
    const uint32_t axes = hn_loops_reduced_axes(r->root);
    const double results = (double)hn_region_opt(r, hn_loops_extent(r, x, hn_loops_all(x) & ~axes));
    return fmax(ns, hn_threads_ns(t, results, (double)hn_region_opt(r, hn_loops_extent(r, x, axes)), NS_A_TERM));
}

static hn_kv combine(hn_kb *b, int op, hn_kv x, hn_kv y)
{
    if (hn_kb_dtype(b, x) == HN_BOOL) return hn_kb_bin(b, op == HN_KOP_MIN || op == HN_KOP_MUL ? HN_KOP_AND : HN_KOP_OR, x, y);
    return hn_kb_bin(b, (hn_kop)op, x, y);
}

/* Fold lanes by halves, as RADD does. */
static hn_kv fold(hn_kb *b, int op, hn_kv x)
{
    for (int lanes = hn_kb_lanes(b, x); lanes > 1; lanes /= 2)
        x = combine(b, op, hn_kb_slice(b, x, 0, lanes / 2), hn_kb_slice(b, x, lanes / 2, lanes / 2));
    return x;
}

typedef struct red {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x;
    uint32_t axes;
    int op, lanes, chains, dense, inner;
    hn_dtype type;
    hn_kv at[HN_MAX_RANK]; /* index into x */
    hn_kvar total, part[MAX_CHAINS];
    bool keeps_rest; /* of sums in f32: what the total lacks */
    hn_kvar rest;
} red;

static hn_kv element(red *d, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kidx idx;
    hn_kidx_init(&idx, d->x->type.rank, d->at);
    if (lanes > 1) {
        hn_kidx_vector(&idx, d->dense, lanes);
        idx.aligned = true;
    }
    hn_lower_forget(d->l);
    const hn_kv x = hn_kb_splat(b, hn_lower_value(d->l, d->x, &idx, mask), lanes);
    hn_lower_forget(d->l);
    return hn_kv_is(mask) ? hn_kb_select(b, mask, x, hn_loops_identity(b, d->op, d->type, lanes)) : x;
}

static void accumulate(red *d, int chain, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv x = element(d, lanes, mask);
    hn_kb_set(b, d->part[chain], combine(b, d->op, hn_kb_get(b, d->part[chain]), x));
}

static int result_axis(const red *d, int axis)
{
    if (hn_attr_i(d->r->root, "keepdims")) return axis;
    return axis - __builtin_popcount(d->axes & ((1u << axis) - 1));
}

/* One step for every chain at index i of the inner axis. */
static void step_at(red *d, hn_kv i, int chains, int lanes, int stride, hn_kv mask)
{
    for (int c = 0; c < chains; c++) {
        d->at[d->inner] = hn_kb_addi(hn_lower_kb(d->l), i, c * stride);
        accumulate(d, c, lanes, mask);
    }
}

static void start_parts(red *d, int lanes)
{
    hn_kb *b = hn_lower_kb(d->l);
    for (int c = 0; c < d->chains; c++) hn_kb_set(b, d->part[c], hn_loops_identity(b, d->op, d->type, lanes));
}

/* total + x, and what that rounds away: exact whatever the operands' order (D. Knuth, The Art of Computer Programming, 4.2.2). */
static void add_exactly(red *d, hn_kv x)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv a = hn_kb_get(b, d->total), sum = hn_kb_add(b, a, x), back = hn_kb_sub(b, sum, a);
    const hn_kv lost = hn_kb_add(b, hn_kb_sub(b, a, hn_kb_sub(b, sum, back)), hn_kb_sub(b, x, back));
    hn_kb_set(b, d->rest, hn_kb_add(b, hn_kb_get(b, d->rest), lost));
    hn_kb_set(b, d->total, sum);
}

/* With an infinity the rest is NaN and says nothing. */
static void add_rest(red *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv total = hn_kb_get(b, d->total), rest = hn_kb_get(b, d->rest);
    hn_kb_set(b, d->total, hn_kb_select(b, hn_kb_eq(b, rest, rest), hn_kb_add(b, total, rest), total));
}

static void finish_parts(red *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kv sum = hn_kb_get(b, d->part[0]);
    for (int c = 1; c < d->chains; c++) sum = combine(b, d->op, sum, hn_kb_get(b, d->part[c]));
    if (d->keeps_rest) add_exactly(d, sum);
    else hn_kb_set(b, d->total, combine(b, d->op, hn_kb_get(b, d->total), sum));
}

/* Are there blocks enough for their number to matter? */
static bool has_many_blocks(const red *d, int lanes)
{
    const hn_dim n = d->x->type.dim[d->inner];
    const int64_t block = (int64_t)d->chains * BLOCK_STEPS * (d->inner == d->dense ? lanes : 1);
    if (d->op != HN_KOP_ADD || d->type != HN_F32) return false;
    return (d->axes & ~(1u << d->inner)) || !hn_dim_is_const(n) || n > 2 * block;
}

/*
 * Reduce the inner axis into d->total: blocks of whole steps, a partial result each, then what is left. A step is one index for
 * each chain, or `lanes` of them where the vectors run along the axis.
 */
static void reduce_inner(red *d, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    const bool vector = d->inner == d->dense;
    const int stride = vector ? lanes : 1, step = stride * d->chains;
    const hn_kv n = hn_lower_dim(d->l, d->x->type.dim[d->inner]);
    const hn_kv whole = hn_kb_sub(b, n, hn_kb_imod(b, n, hn_kb_i(b, step)));
    const hn_kv lo = hn_kb_for(b, hn_kb_i(b, 0), whole, (int64_t)step * BLOCK_STEPS);
    start_parts(d, lanes);
    const hn_kv i = hn_kb_for(b, lo, hn_kb_min(b, hn_kb_addi(b, lo, (int64_t)step * BLOCK_STEPS), whole), step);
    step_at(d, i, d->chains, lanes, stride, mask);
    hn_kb_end(b);
    finish_parts(d);
    hn_kb_end(b);
    if (step == 1) return;
    start_parts(d, lanes);
    const hn_kv k = hn_kb_for(b, whole, n, stride);
    step_at(d, k, 1, lanes, stride, vector && lanes > 1 ? hn_kb_tail_mask(b, k, n, lanes) : mask);
    hn_kb_end(b);
    finish_parts(d);
}

/* All reduced axes, for the kept index in d->at. */
static void reduce(red *d, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (d->inner < 0) {
        d->total = hn_kb_var(b, element(d, lanes, mask));
        return;
    }
    d->total = hn_kb_var(b, hn_loops_identity(b, d->op, d->type, lanes));
    d->keeps_rest = has_many_blocks(d, lanes);
    if (d->keeps_rest) d->rest = hn_kb_var(b, hn_loops_identity(b, d->op, d->type, lanes));
    for (int c = 0; c < d->chains; c++) d->part[c] = hn_kb_var(b, hn_loops_identity(b, d->op, d->type, lanes));
    const int open = hn_loops_open(d->l, d->x, d->axes & ~(1u << d->inner), d->at);
    reduce_inner(d, lanes, mask);
    hn_loops_close(d->l, open);
    if (d->keeps_rest) add_rest(d);
}

/* ---- the densest axis is reduced ---- */
static void emit_along(red *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const uint32_t kept = hn_loops_all(d->x) & ~d->axes;
    const hn_kv rows = hn_lower_dim(d->l, hn_loops_extent(d->r, d->x, kept));
    const hn_kv row = hn_kb_parallel(b, hn_kb_ext(b, rows, 1));
    hn_loops_split(d->l, d->x, kept, row, d->at);
    reduce(d, d->lanes, HN_KV_NONE);
    hn_kidx idx;
    hn_loops_reduced_idx(d->l, d->r->root, d->at, &idx);
    hn_lower_seed(d->l, d->r->root->out[0], fold(b, d->op, hn_kb_get(b, d->total)));
    hn_lower_store(d->l, &idx, HN_KV_NONE);
}

/* ---- it is kept: a lane a result ---- */
static void across_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    red *d = user;
    d->at[d->dense] = i;
    reduce(d, lanes, mask);
    hn_kidx idx;
    hn_loops_reduced_idx(d->l, d->r->root, d->at, &idx);
    hn_kidx_vector(&idx, result_axis(d, d->dense), lanes);
    idx.aligned = lanes > 1;
    hn_lower_seed(d->l, d->r->root->out[0], hn_kb_get(b, d->total));
    hn_lower_store(d->l, &idx, mask);
}

static void emit_across(red *d, int64_t slice)
{
    hn_kb *b = hn_lower_kb(d->l);
    const uint32_t kept = hn_loops_all(d->x) & ~d->axes & ~(1u << d->dense);
    const hn_dim rows = hn_loops_extent(d->r, d->x, kept), n = d->x->type.dim[d->dense];
    const hn_dim slices = hn_dim_ceildiv(d->r->g->syms, n, slice);
    const hn_kv trips = hn_lower_dim(d->l, hn_dim_mul(d->r->g->syms, rows, slices));
    const hn_kv per_row = hn_lower_dim(d->l, slices), extent = hn_lower_dim(d->l, n);
    const hn_kv trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1));
    hn_loops_split(d->l, d->x, kept, hn_kb_idiv(b, trip, per_row), d->at);
    const hn_kv lo = hn_kb_muli(b, hn_kb_imod(b, trip, per_row), slice);
    const hn_kv hi = hn_kb_min(b, hn_kb_addi(b, lo, slice), extent);
    hn_kb_vector_loop(b, lo, hi, d->lanes, HN_KTAIL_MASK, across_body, d);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "reduce_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    red d = { .l = l, .r = r, .x = hn_in(r->root, 0), .axes = hn_loops_reduced_axes(r->root), .op = hn_loops_reduction(r->root->op),
              .lanes = (int)p[P_LANES], .chains = (int)p[P_CHAINS] };
    d.dense = hn_loops_dense_axis(d.x);
    d.inner = inner_axis(r);
    d.type = hn_lower_compute_type(d.x->type.dtype);
    if (along(r)) emit_along(&d);
    else emit_across(&d, p[P_SLICE]);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_reduce_any_loop__cpu = {
    .name = "reduce_any_loop__cpu", .rev = 3, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .space = space, .legal = legal, .cost = cost, .emit = emit,
    .pin = { [P_CHAINS] = HN_KNOB_reduce_chains, [P_SLICE] = HN_KNOB_reduce_slice },
};
