/* Softmax, log-softmax, layer and RMS normalisation, whole: a line of elements passes through scratch, read
 * from memory once.
 *
 *   softmax      x -> scratch, max;   e = exp(x - max) -> scratch, sum;   y = e / sum
 *   layer_norm   x -> scratch, sum;   sum of (x - mean)^2;                y = (x - mean) * inv * scale + bias
 *
 * Where the line lies densest, vectors run along it, and totals fold at the end ("along"); else a lane is a
 * line of its own. Pointwise work before is computed in the first pass, work behind in the last.
 */
#include "tactic/cpu/loops.h"
#include "tactic/lower_int.h"

#include <math.h>

enum { NS_AN_ELEMENT = 200 }; /* on a GPU: three passes through scratch in memory */
enum { P_LANES, P_CHAINS };
enum { MAX_CHAINS = 4 };

static bool is_softmax(const hn_node *n)
{
    return n->op == HN_OP_softmax || n->op == HN_OP_log_softmax;
}

static int axis_of(const hn_region *r)
{
    int axis = 0;
    hn_axis_resolve(hn_attr_i(r->root, "axis"), hn_in(r->root, 0)->type.rank, &axis);
    return axis;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (!is_softmax(n) && n->op != HN_OP_layer_norm && n->op != HN_OP_rms_norm) return HN_FIT_OP;
    if (n->n_out > 1) return HN_FIT_ATTRIBUTE;
    if (!hn_layout_is_plain(&n->out[0]->layout)) return HN_FIT_LAYOUT;
    if (!is_softmax(n) && axis_of(r) != n->out[0]->type.rank - 1) return HN_FIT_SHAPE;
    return hn_lower_can(r, n) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static bool along(const hn_region *r)
{
    return axis_of(r) == r->root->out[0]->type.rank - 1;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, r->root->out[0]->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 ? 2 : 1, lanes);
    hn_space_add_list(ret, "chains", along(r) ? 3 : 1, (const int64_t[]){ 1, 2, 4 });
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    const hn_dim n = r->root->out[0]->type.dim[axis_of(r)];
    if (p[P_LANES] == 1) return p[P_CHAINS] == 1;
    return p[P_CHAINS] == 1 || !hn_dim_is_const(n) || n >= p[P_LANES] * p[P_CHAINS];
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double wide = (double)p[P_LANES] / hn_lower_lanes(t, HN_F32);
    const double eff = (is_softmax(r->root) ? 0.3 : 0.15) * wide * (1 - 0.3 / (double)p[P_CHAINS]);
    const hn_value *x = hn_in(r->root, 0);
    const double n = (double)hn_region_opt(r, x->type.dim[axis_of(r)]);
    const double lines = (double)hn_region_opt(r, hn_loops_extent(r, x, hn_loops_all(x) & ~(1u << axis_of(r)))) / (double)p[P_LANES];
    return fmax(hn_roofline_ns(t, w.flops, w.bytes, eff, 0.6) + 100, hn_threads_ns(t, lines, n, NS_AN_ELEMENT));
}

typedef struct line {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *y;
    int axis, dense, lanes, chains;
    bool along;
    hn_dtype t;
    int buf; /* scratch: the line, one vector an element where lanes are lines */
    hn_kv n;
    hn_kv mask; /* of the lines, across */
    hn_kv at[HN_MAX_RANK];
    hn_kvar acc[MAX_CHAINS];
    hn_kv top, scale, shift; /* totals that later passes use; scalars along, vectors across */
    void (*step)(struct line *d, hn_kv i, hn_kv mask, int chain);
} line;

static hn_kv constant(line *d, double x)
{
    return hn_kb_float(hn_lower_kb(d->l), d->t, d->lanes, x);
}

static hn_kv wide(line *d, hn_kv x)
{
    return hn_kb_splat(hn_lower_kb(d->l), x, d->lanes);
}

static void index_at(line *d, hn_kv i, hn_kidx *idx)
{
    d->at[d->axis] = i;
    hn_kidx_init(idx, d->x->type.rank, d->at);
    if (d->lanes == 1) return;
    hn_kidx_vector(idx, d->along ? d->axis : d->dense, d->lanes);
    idx->aligned = true;
}

static hn_kv slot(line *d, hn_kv i)
{
    return d->along ? i : hn_kb_muli(hn_lower_kb(d->l), i, d->lanes);
}

static hn_kv kept(line *d, hn_kv i)
{
    return hn_kb_load(hn_lower_kb(d->l), d->buf, slot(d, i), d->lanes);
}

static void keep(line *d, hn_kv i, hn_kv x)
{
    hn_kb_store(hn_lower_kb(d->l), d->buf, slot(d, i), x);
}

/* Lanes past the end of the line count nothing. */
static void gather(line *d, int chain, hn_kop op, hn_kv x, double nothing, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (d->along && hn_kv_is(mask)) x = hn_kb_select(b, mask, x, constant(d, nothing));
    hn_kb_set(b, d->acc[chain], hn_kb_bin(b, op, hn_kb_get(b, d->acc[chain]), x));
}

/* ---- passes: a step a vector ---- */
static hn_kv read(line *d, hn_kv i, hn_kv mask)
{
    hn_kidx idx;
    index_at(d, i, &idx);
    hn_lower_forget(d->l);
    const hn_kv x = wide(d, hn_lower_value(d->l, d->x, &idx, mask));
    hn_lower_forget(d->l);
    keep(d, i, x);
    return x;
}

static void step_max(line *d, hn_kv i, hn_kv mask, int chain)
{
    gather(d, chain, HN_KOP_MAX, read(d, i, mask), -__builtin_inf(), mask);
}

static void step_sum(line *d, hn_kv i, hn_kv mask, int chain)
{
    gather(d, chain, HN_KOP_ADD, read(d, i, mask), 0, mask);
}

static void step_square(line *d, hn_kv i, hn_kv mask, int chain)
{
    const hn_kv x = read(d, i, mask);
    gather(d, chain, HN_KOP_ADD, hn_kb_mul(hn_lower_kb(d->l), x, x), 0, mask);
}

static void step_deviation(line *d, hn_kv i, hn_kv mask, int chain)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv x = hn_kb_sub(b, kept(d, i), wide(d, d->top));
    keep(d, i, x);
    gather(d, chain, HN_KOP_ADD, hn_kb_mul(b, x, x), 0, mask);
}

static void step_exp(line *d, hn_kv i, hn_kv mask, int chain)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv x = hn_kb_sub(b, kept(d, i), wide(d, d->top)), e = hn_kb_math(b, HN_KMATH_EXP, x);
    keep(d, i, d->r->root->op == HN_OP_softmax ? e : x);
    gather(d, chain, HN_KOP_ADD, e, 0, mask);
}

/* Operand k of a normalisation at the same place, or NONE. */
static hn_kv affine_part(line *d, int k, const hn_kidx *idx, hn_kv mask)
{
    const hn_value *v = is_softmax(d->r->root) ? NULL : hn_in(d->r->root, k);
    if (!v) return HN_KV_NONE;
    hn_kidx at;
    hn_lower_broadcast_idx(d->l, v, d->y, idx, &at);
    return wide(d, hn_lower_value(d->l, v, &at, mask));
}

static void step_store(line *d, hn_kv i, hn_kv mask, int chain)
{
    (void)chain;
    hn_kb *b = hn_lower_kb(d->l);
    hn_kidx idx;
    index_at(d, i, &idx);
    hn_lower_forget(d->l);
    hn_kv y = kept(d, i);
    if (d->r->root->op == HN_OP_log_softmax)
        y = hn_kb_sub(b, y, wide(d, d->shift));
    else
        y = hn_kb_mul(b, y, wide(d, d->scale));
    const hn_kv scale = affine_part(d, 1, &idx, mask), bias = affine_part(d, 2, &idx, mask);
    if (hn_kv_is(scale)) y = hn_kb_mul(b, y, scale);
    if (hn_kv_is(bias)) y = hn_kb_add(b, y, bias);
    hn_lower_seed(d->l, d->y, y);
    hn_lower_store(d->l, &idx, mask);
}

/* ---- the walk ---- */
/* Totals stand in vectors, so what is left over is one masked vector, whatever its length. */
static void rest_of_line(line *d, hn_kv first)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv left = hn_kb_imod(b, d->n, hn_kb_i(b, d->lanes)), whole = hn_kb_sub(b, d->n, left);
    int64_t n;
    d->step(d, hn_kb_for(b, first, whole, d->lanes), HN_KV_NONE, 0);
    hn_kb_end(b);
    if (d->lanes == 1 || (hn_kb_is_const(b, left, &n) && n == 0)) return;
    hn_kb_if(b, hn_kb_gt(b, left, hn_kb_i(b, 0)));
    d->step(d, whole, hn_kb_tail_mask(b, whole, d->n, d->lanes), 0);
    hn_kb_end(b);
}

static void pass(line *d, void (*step)(line *, hn_kv, hn_kv, int), double nothing)
{
    hn_kb *b = hn_lower_kb(d->l);
    d->step = step;
    for (int c = 0; c < d->chains; c++)
        d->acc[c] = hn_kb_var(b, constant(d, nothing));
    if (!d->along) {
        step(d, hn_kb_forn(b, d->n), d->mask, 0);
        hn_kb_end(b);
        return;
    }
    hn_kv first = hn_kb_i(b, 0);
    if (d->chains > 1) {
        const int stride = d->lanes * d->chains;
        const hn_kv whole = hn_kb_muli(b, hn_kb_idiv(b, d->n, hn_kb_i(b, stride)), stride);
        const hn_kv i = hn_kb_for(b, first, whole, stride);
        for (int c = 0; c < d->chains; c++)
            step(d, hn_kb_addi(b, i, (int64_t)c * d->lanes), HN_KV_NONE, c);
        hn_kb_end(b);
        first = whole;
    }
    rest_of_line(d, first);
}

static hn_kv total(line *d, hn_kop op, hn_kop across_lanes)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kv sum = hn_kb_get(b, d->acc[0]);
    for (int c = 1; c < d->chains; c++)
        sum = hn_kb_bin(b, op, sum, hn_kb_get(b, d->acc[c]));
    return d->along && d->lanes > 1 ? hn_kb_un(b, across_lanes, sum) : sum;
}

static void softmax_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    pass(d, step_max, -__builtin_inf());
    d->top = total(d, HN_KOP_MAX, HN_KOP_RMAX);
    pass(d, step_exp, 0);
    const hn_kv sum = total(d, HN_KOP_ADD, HN_KOP_RADD);
    if (d->r->root->op == HN_OP_softmax)
        d->scale = hn_kb_div(b, hn_kb_like(b, sum, 1), sum);
    else
        d->shift = hn_kb_math(b, HN_KMATH_LOG, sum);
    pass(d, step_store, 0);
}

static void normalised_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv count = hn_kb_cast(b, d->n, d->t);
    if (d->r->root->op == HN_OP_layer_norm) {
        pass(d, step_sum, 0);
        d->top = hn_kb_div(b, total(d, HN_KOP_ADD, HN_KOP_RADD), count);
        pass(d, step_deviation, 0);
    } else {
        pass(d, step_square, 0);
    }
    const hn_kv var = hn_kb_div(b, total(d, HN_KOP_ADD, HN_KOP_RADD), count);
    const hn_kv root = hn_kb_sqrt(b, hn_kb_add(b, var, hn_kb_like(b, var, hn_attr_f(d->r->root, "eps"))));
    d->scale = hn_kb_div(b, hn_kb_like(b, root, 1), root);
    pass(d, step_store, 0);
}

static void one_line(line *d)
{
    if (is_softmax(d->r->root))
        softmax_line(d);
    else
        normalised_line(d);
}

static void across_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    (void)b;
    line *d = user;
    const int usual = d->lanes;
    d->at[d->dense] = i;
    d->mask = mask;
    d->lanes = lanes; /* a tail of one line comes alone */
    one_line(d);
    d->lanes = usual;
}

static hn_kext scratch_extent(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    int64_t n;
    if (hn_kb_is_const(b, d->n, &n)) return hn_kext_const(d->along ? n + d->lanes : n * d->lanes);
    hn_kext e = hn_kb_ext(b, d->n, 1);
    if (d->along)
        e.add += d->lanes;
    else
        e.mul *= d->lanes;
    return e;
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "norm_float_line__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    line d = { .l = l,
               .r = r,
               .x = hn_in(r->root, 0),
               .y = r->root->out[0],
               .axis = axis_of(r),
               .along = along(r),
               .lanes = (int)p[P_LANES],
               .chains = (int)p[P_CHAINS],
               .mask = HN_KV_NONE };
    d.dense = d.y->type.rank - 1;
    d.t = hn_lower_compute_type(d.y->type.dtype);
    d.n = hn_lower_dim(l, d.x->type.dim[d.axis]);
    d.buf = hn_kb_scratch(b, "line", d.t, scratch_extent(&d));
    const uint32_t outer = hn_loops_all(d.y) & ~(1u << d.axis) & ~(1u << d.dense);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, d.y, outer));
    hn_loops_split(l, d.y, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), d.at);
    if (d.along)
        one_line(&d);
    else
        hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, d.y->type.dim[d.dense]), d.lanes, HN_KTAIL_MASK,
                          across_body, &d);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_norm_float_line__cpu = {
    .name = "norm_float_line__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .source = HN_KNOB_tactic_norm_line,
    .pin = { [P_CHAINS] = HN_KNOB_norm_chains },
};
