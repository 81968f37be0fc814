/* Where the largest or smallest element along an axis is.
 *
 * Vectors lie across the axis, a result a lane, where another axis is stored densest; else they run along it,
 * and the lanes' winners meet at the end. Elements compare as integer keys, so that NaN and signed zeros need
 * no thought.
 */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/order.h"

enum { P_LANES };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_arg_max && r->root->op != HN_OP_arg_min) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, hn_in(r->root, 0)->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 ? 2 : 1, lanes);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, w.flops, w.bytes, 0.1 * (double)p[P_LANES] / hn_lower_lanes(t, HN_F32), 0.6) +
           200;
}

typedef struct arg {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x;
    int axis, dense, lanes;
    bool last;
    hn_dtype key;
    hn_kv at[HN_MAX_RANK]; /* index into x */
    hn_kvar best, where;
} arg;

static void start(arg *d, int lanes)
{
    hn_kb *b = hn_lower_kb(d->l);
    d->best = hn_kb_var(b, hn_order_lowest(b, d->key, lanes));
    d->where = hn_kb_var(b, hn_kb_int(b, HN_I64, lanes, 0));
}

/* Does key x at place i win against the best so far? The order in which places come decides ties. */
static void take(arg *d, hn_kv key, hn_kv i, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv best = hn_kb_get(b, d->best);
    hn_kv win = d->last ? hn_kb_ge(b, key, best) : hn_kb_gt(b, key, best);
    if (hn_kv_is(mask)) win = hn_kb_and(b, win, mask);
    hn_kb_set(b, d->best, hn_kb_select(b, win, key, best));
    hn_kb_set(b, d->where, hn_kb_select(b, win, i, hn_kb_get(b, d->where)));
}

static hn_kv key_at(arg *d, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kidx idx;
    hn_kidx_init(&idx, d->x->type.rank, d->at);
    hn_kidx_vector(&idx, d->dense, lanes);
    idx.aligned = lanes > 1;
    hn_lower_forget(d->l);
    const hn_kv key = hn_order_key(b, hn_kb_splat(b, hn_lower_value(d->l, d->x, &idx, mask), lanes));
    hn_lower_forget(d->l);
    return d->r->root->op == HN_OP_arg_min ? hn_kb_not(b, key) : key;
}

static void store(arg *d, hn_kv where, int lanes, hn_kv mask)
{
    const bool keep = hn_attr_i(d->r->root, "keepdims");
    hn_kb *b = hn_lower_kb(d->l);
    hn_kv at[HN_MAX_RANK];
    int n = 0, dense = 0;
    for (int a = 0; a < d->x->type.rank; a++) {
        if (a == d->dense) dense = n;
        if (a != d->axis)
            at[n++] = d->at[a];
        else if (keep)
            at[n++] = hn_kb_i(b, 0);
    }
    hn_kidx idx;
    hn_kidx_init(&idx, n, at);
    if (lanes > 1) hn_kidx_vector(&idx, dense, lanes);
    hn_lower_seed(d->l, d->r->root->out[0], where);
    hn_lower_store(d->l, &idx, mask);
}

/* ---- the axis is densest: lanes along it ---- */
static void along_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    arg *d = user;
    d->at[d->dense] = i;
    const hn_kv key = key_at(d, lanes, mask);
    take(d, key, lanes > 1 ? hn_kb_ramp(b, i, 1, lanes) : i, mask);
}

/* The lanes' winners, in order of their places where keys are equal. */
static void meet(arg *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv keys = hn_kb_get(b, d->best), places = hn_kb_get(b, d->where);
    hn_kv best = hn_kb_extract(b, keys, 0), where = hn_kb_extract(b, places, 0);
    for (int i = 1; i < d->lanes; i++) {
        const hn_kv key = hn_kb_extract(b, keys, i), place = hn_kb_extract(b, places, i);
        const hn_kv tie = d->last ? hn_kb_gt(b, place, where) : hn_kb_lt(b, place, where);
        const hn_kv win = hn_kb_or(b, hn_kb_gt(b, key, best), hn_kb_and(b, hn_kb_eq(b, key, best), tie));
        best = hn_kb_select(b, win, key, best);
        where = hn_kb_select(b, win, place, where);
    }
    store(d, where, 1, HN_KV_NONE);
}

static void emit_along(arg *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const uint32_t kept = hn_loops_all(d->x) & ~(1u << d->axis);
    const hn_kv rows = hn_lower_dim(d->l, hn_loops_extent(d->r, d->x, kept));
    hn_loops_split(d->l, d->x, kept, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), d->at);
    start(d, d->lanes);
    const hn_kv n = hn_lower_dim(d->l, d->x->type.dim[d->axis]);
    /* One body shape only: the winners stand in vectors, so the tail is masked even without lanes to spare.
     */
    const hn_kv whole = hn_kb_sub(b, n, hn_kb_imod(b, n, hn_kb_i(b, d->lanes)));
    along_body(b, hn_kb_for(b, hn_kb_i(b, 0), whole, d->lanes), d->lanes, HN_KV_NONE, d);
    hn_kb_end(b);
    if (d->lanes > 1) {
        hn_kb_if(b, hn_kb_lt(b, whole, n));
        along_body(b, whole, d->lanes, hn_kb_tail_mask(b, whole, n, d->lanes), d);
        hn_kb_end(b);
    }
    if (d->lanes > 1)
        meet(d);
    else
        store(d, hn_kb_get(b, d->where), 1, HN_KV_NONE);
    hn_kb_end(b);
}

/* ---- lanes across it, a result each ---- */
static void across_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    arg *d = user;
    d->at[d->dense] = i;
    start(d, lanes);
    const hn_kv k = hn_kb_forn(b, hn_lower_dim(d->l, d->x->type.dim[d->axis]));
    d->at[d->axis] = k;
    take(d, key_at(d, lanes, mask), hn_kb_splat(b, k, lanes), HN_KV_NONE);
    hn_kb_end(b);
    store(d, hn_kb_get(b, d->where), lanes, mask);
}

static void emit_across(arg *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const uint32_t outer = hn_loops_all(d->x) & ~(1u << d->axis) & ~(1u << d->dense);
    const hn_kv rows = hn_lower_dim(d->l, hn_loops_extent(d->r, d->x, outer));
    hn_loops_split(d->l, d->x, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), d->at);
    hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(d->l, d->x->type.dim[d->dense]), d->lanes, HN_KTAIL_MASK,
                      across_body, d);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "arg_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    arg d = { .l = l, .r = r, .x = hn_in(r->root, 0), .lanes = (int)p[P_LANES] };
    hn_axis_resolve(hn_attr_i(r->root, "axis"), d.x->type.rank, &d.axis);
    d.last = hn_attr_i(r->root, "last");
    d.dense = hn_loops_dense_axis(d.x);
    d.key = hn_order_key_type(hn_lower_compute_type(d.x->type.dtype));
    if (d.dense == d.axis)
        emit_along(&d);
    else
        emit_across(&d);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_arg_any_loop__cpu = {
    .name = "arg_any_loop__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .cost = cost,
    .emit = emit,
};
