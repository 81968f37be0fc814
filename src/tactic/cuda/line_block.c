/* Softmax, log-softmax, layer and RMS normalisation along the densest axis, and reductions along it, on a GPU: a block a line.
 *
 * Threads stride along the line; totals fold in a warp by shuffles, across warps through shared memory. Each pass reads the line
 * anew: what the first pass brought in lies in the caches.
 */
#include "tactic/cpu/loops.h"
#include "tactic/lower_int.h"

enum { P_THREADS };

static bool is_softmax(int op)
{
    return op == HN_OP_softmax || op == HN_OP_log_softmax;
}

static bool is_norm(int op)
{
    return op == HN_OP_layer_norm || op == HN_OP_rms_norm;
}

static int reduction(int op)
{
    switch (op) {
    case HN_OP_reduce_sum: return HN_KOP_ADD;
    case HN_OP_reduce_max: return HN_KOP_MAX;
    case HN_OP_reduce_min: return HN_KOP_MIN;
    default: return -1;
    }
}

static int axis_of(const hn_region *r)
{
    int axis = 0, n;
    if (reduction(r->root->op) >= 0) return (int)hn_attr_is(r->root, "axes", &n)[0];
    hn_axis_resolve(hn_attr_i(r->root, "axis"), hn_in(r->root, 0)->type.rank, &axis);
    return axis;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    const hn_value *x = n->n_in ? hn_in(n, 0) : NULL;
    int n_axes = 1;
    if (!is_softmax(n->op) && !is_norm(n->op) && reduction(n->op) < 0) return HN_FIT_OP;
    if (n->n_out > 1) return HN_FIT_ATTRIBUTE;
    if (reduction(n->op) >= 0) hn_attr_is(n, "axes", &n_axes);
    if (n_axes != 1 || x->type.rank < 1 || axis_of(r) != hn_loops_dense_axis(x)) return HN_FIT_SHAPE;
    if (!hn_dtype_is_float(hn_lower_compute_type(n->out[0]->type.dtype)) || !hn_lower_can(r, n)) return HN_FIT_DTYPE;
    const hn_dim len = x->type.dim[axis_of(r)];
    return hn_dim_is_const(len) && len < 16 ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add_list(ret, "threads", 3, (const int64_t[]){ 32, 128, 512 });
}

/* Bytes at a share of the bandwidth that grows with the threads at work on a line, until they outnumber its elements. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double n = (double)hn_region_opt(r, hn_in(r->root, 0)->type.dim[axis_of(r)]), threads = (double)p[P_THREADS];
    const double turns = n / threads, idle = turns < 2 ? turns / 2 : 1;
    return hn_roofline_ns(t, w.flops, w.bytes, 0.2, (0.4 + 0.3 * idle) / (1 + turns / 64)) + 50;
}

typedef struct line {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *y;
    int axis, threads, part;
    hn_dtype t;
    hn_kv n, tid;
    hn_kv at[HN_MAX_RANK];
} line;

static hn_kv element(line *d, hn_kv i)
{
    d->at[d->axis] = i;
    return hn_loops_element(d->l, d->x, d->at);
}

/* Every thread of the block gets the total. */
static hn_kv across(line *d, hn_kop op, hn_kv v)
{
    hn_kb *b = hn_lower_kb(d->l);
    for (int mask = 16; mask; mask /= 2)
        v = hn_kb_bin(b, op, v, hn_kb_shfl_xor(b, v, mask));
    if (d->threads == 32) return v;
    const hn_kv warp = hn_kb_i(b, 32);
    hn_kb_barrier(b); /* the last total has been read */
    hn_kb_if(b, hn_kb_eq(b, hn_kb_imod(b, d->tid, warp), hn_kb_i(b, 0)));
    hn_kb_store(b, d->part, hn_kb_idiv(b, d->tid, warp), v);
    hn_kb_end(b);
    hn_kb_barrier(b);
    v = hn_kb_load(b, d->part, hn_kb_i(b, 0), 1);
    for (int w = 1; w < d->threads / 32; w++)
        v = hn_kb_bin(b, op, v, hn_kb_load(b, d->part, hn_kb_i(b, w), 1));
    return v;
}

typedef hn_kv (*term)(line *d, hn_kv x, hn_kv with);

static hn_kv as_is(line *d, hn_kv x, hn_kv with)
{
    (void)d, (void)with;
    return x;
}

static hn_kv squared_off(line *d, hn_kv x, hn_kv with)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (hn_kv_is(with)) x = hn_kb_sub(b, x, with);
    return hn_kb_mul(b, x, x);
}

static hn_kv exp_off(line *d, hn_kv x, hn_kv with)
{
    hn_kb *b = hn_lower_kb(d->l);
    return hn_kb_math(b, HN_KMATH_EXP, hn_kb_sub(b, x, with));
}

static hn_kv total(line *d, hn_kop op, double nothing, term f, hn_kv with)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kvar acc = hn_kb_var(b, hn_kb_float(b, d->t, 1, nothing));
    const hn_kv i = hn_kb_for(b, d->tid, d->n, d->threads);
    hn_kb_set(b, acc, hn_kb_bin(b, op, hn_kb_get(b, acc), f(d, element(d, i), with)));
    hn_kb_end(b);
    return across(d, op, hn_kb_get(b, acc));
}

/* Operand k of a normalisation where the line is, or NONE. */
static hn_kv affine(line *d, int k, const hn_kidx *idx)
{
    const hn_value *v = is_norm(d->r->root->op) ? hn_in(d->r->root, k) : NULL;
    hn_kidx at;
    if (!v) return HN_KV_NONE;
    hn_lower_broadcast_idx(d->l, v, d->y, idx, &at);
    return hn_lower_value(d->l, v, &at, HN_KV_NONE);
}

/* y = (x - shift) * scale, e^(x - shift) * scale, or (x - shift) - less; then the normalisation's own factors; stored along the line. */
static void store_line(line *d, hn_kv shift, hn_kv scale, hn_kv less, bool exponent)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv i = hn_kb_for(b, d->tid, d->n, d->threads);
    hn_kv y = element(d, i);
    hn_kidx idx;
    hn_kidx_init(&idx, d->y->type.rank, d->at);
    if (hn_kv_is(shift)) y = hn_kb_sub(b, y, shift);
    if (exponent) y = hn_kb_math(b, HN_KMATH_EXP, y);
    if (hn_kv_is(scale)) y = hn_kb_mul(b, y, scale);
    if (hn_kv_is(less)) y = hn_kb_sub(b, y, less);
    hn_lower_forget(d->l);
    const hn_kv factor = affine(d, 1, &idx), bias = affine(d, 2, &idx);
    if (hn_kv_is(factor)) y = hn_kb_mul(b, y, factor);
    if (hn_kv_is(bias)) y = hn_kb_add(b, y, bias);
    hn_lower_seed(d->l, d->y, y);
    hn_lower_store(d->l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    hn_lower_forget(d->l);
}

static void softmax_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv top = total(d, HN_KOP_MAX, -__builtin_inf(), as_is, HN_KV_NONE);
    const hn_kv sum = total(d, HN_KOP_ADD, 0, exp_off, top);
    if (d->r->root->op == HN_OP_softmax) store_line(d, top, hn_kb_div(b, hn_kb_like(b, sum, 1), sum), HN_KV_NONE, true);
    else store_line(d, top, HN_KV_NONE, hn_kb_math(b, HN_KMATH_LOG, sum), false);
}

static void normalised_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv count = hn_kb_cast(b, d->n, d->t);
    hn_kv mean = HN_KV_NONE;
    if (d->r->root->op == HN_OP_layer_norm) mean = hn_kb_div(b, total(d, HN_KOP_ADD, 0, as_is, HN_KV_NONE), count);
    const hn_kv var = hn_kb_div(b, total(d, HN_KOP_ADD, 0, squared_off, mean), count);
    const hn_kv root = hn_kb_sqrt(b, hn_kb_add(b, var, hn_kb_like(b, var, hn_attr_f(d->r->root, "eps"))));
    store_line(d, mean, hn_kb_div(b, hn_kb_like(b, root, 1), root), HN_KV_NONE, false);
}

static void reduced_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kop op = (hn_kop)reduction(d->r->root->op);
    const double nothing = op == HN_KOP_ADD ? 0 : op == HN_KOP_MAX ? -__builtin_inf() : __builtin_inf();
    const hn_kv sum = total(d, op, nothing, as_is, HN_KV_NONE);
    hn_kidx idx;
    hn_kb_if(b, hn_kb_eq(b, d->tid, hn_kb_i(b, 0)));
    hn_loops_reduced_idx(d->l, d->r->root, d->at, &idx);
    hn_lower_seed(d->l, d->r->root->out[0], sum);
    hn_lower_store(d->l, &idx, HN_KV_NONE);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "line_float_block__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    line d = { .l = l, .r = r, .x = hn_in(r->root, 0), .y = r->root->out[0], .axis = axis_of(r), .threads = (int)p[P_THREADS] };
    d.t = hn_lower_compute_type(d.y->type.dtype);
    d.n = hn_lower_dim(l, d.x->type.dim[d.axis]);
    if (d.threads > 32) d.part = hn_kb_shared(b, "part", d.t, d.threads / 32);
    const uint32_t outer = hn_loops_all(d.x) & ~(1u << d.axis);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, d.x, outer)), row = hn_kb_grid(b, 0, hn_kb_ext(b, rows, 1));
    d.tid = hn_kb_threads(b, 0, d.threads);
    hn_loops_split(l, d.x, outer, row, d.at);
    if (reduction(r->root->op) >= 0) reduced_line(&d);
    else if (is_softmax(r->root->op)) softmax_line(&d);
    else normalised_line(&d);
    hn_kb_end(b);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_line_float_block__cuda = {
    .name = "line_float_block__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .space = space, .cost = cost, .emit = emit,
};
