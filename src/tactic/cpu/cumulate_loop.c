/* Running sums and products: a serial walk along the axis, lines in parallel; a line a lane where another
 * axis is densest. */
#include "tactic/cpu/loops.h"

enum { P_LANES };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_cumsum && r->root->op != HN_OP_cumprod) return HN_FIT_OP;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static int axis_of(const hn_region *r)
{
    int axis = 0;
    hn_axis_resolve(hn_attr_i(r->root, "axis"), hn_in(r->root, 0)->type.rank, &axis);
    return axis;
}

static bool across(const hn_region *r)
{
    return hn_loops_dense_axis(r->root->out[0]) != axis_of(r);
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, r->root->out[0]->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 && across(r) ? 2 : 1, lanes);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    /* An addition's latency an element: a sixteenth of one lane's peak. */
    return hn_roofline_ns(t, w.flops, w.bytes, (double)p[P_LANES] / hn_lower_lanes(t, HN_F32) / 16, 0.5) +
           200;
}

typedef struct cum {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *y;
    int axis, dense;
    bool product, exclusive, reverse;
    hn_kv at[HN_MAX_RANK];
} cum;

static void line(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    cum *c = user;
    if (hn_kv_is(i)) c->at[c->dense] = i;
    const hn_dtype t = hn_lower_compute_type(c->y->type.dtype);
    const hn_kv n = hn_lower_dim(c->l, c->x->type.dim[c->axis]),
                unit = hn_kb_int(b, HN_I32, lanes, c->product);
    const hn_kvar acc = hn_kb_var(b, hn_kb_cast(b, unit, t));
    hn_kv k = hn_kb_forn(b, n);
    if (c->reverse) k = hn_kb_sub(b, hn_kb_addi(b, n, -1), k);
    c->at[c->axis] = k;
    hn_kidx idx;
    hn_kidx_init(&idx, c->x->type.rank, c->at);
    if (lanes > 1) {
        hn_kidx_vector(&idx, c->dense, lanes);
        idx.aligned = true;
    }
    hn_lower_forget(c->l);
    const hn_kv x = hn_kb_splat(b, hn_lower_value(c->l, c->x, &idx, mask), lanes), old = hn_kb_get(b, acc);
    const hn_kv next = c->product ? hn_kb_mul(b, old, x) : hn_kb_add(b, old, x);
    hn_kb_set(b, acc, next);
    hn_lower_seed(c->l, c->y, c->exclusive ? old : next);
    hn_lower_store(c->l, &idx, mask);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "cumulate_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    cum c = { .l = l, .r = r, .x = hn_in(r->root, 0), .y = r->root->out[0], .axis = axis_of(r) };
    c.dense = hn_loops_dense_axis(c.y);
    c.product = r->root->op == HN_OP_cumprod;
    c.exclusive = hn_attr_i(r->root, "exclusive");
    c.reverse = hn_attr_i(r->root, "reverse");
    uint32_t outer = hn_loops_all(c.y) & ~(1u << c.axis);
    if (across(r)) outer &= ~(1u << c.dense);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, c.y, outer));
    hn_loops_split(l, c.y, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), c.at);
    if (across(r))
        hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, c.y->type.dim[c.dense]), (int)p[P_LANES],
                          HN_KTAIL_MASK, line, &c);
    else
        line(b, HN_KV_NONE, 1, HN_KV_NONE, &c);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_cumulate_any_loop__cpu = {
    .name = "cumulate_any_loop__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .cost = cost,
    .emit = emit,
};
