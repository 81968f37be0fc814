/* Scatters: one launch copies x, the next applies the updates in their order.
 *
 * Updates of scatter_elements meet only within a line along the axis, those of scatter_nd only within one
 * element of the slice: these are the parallel trips, and each takes its updates one after the other.
 * Updates at indices out of range are told and left out.
 */
#include "tactic/cpu/loops.h"

enum { P_LANES };
enum { NONE, ADD, MUL, MIN, MAX }; /* as src/op/scatter.c orders its reductions */

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_scatter_elements && r->root->op != HN_OP_scatter_nd) return HN_FIT_OP;
    if (r->g->n_node != 1) return HN_FIT_EPILOGUE;
    return hn_lower_can(r, r->root) && hn_lower_dtype_ok(r->root->out[0]->type.dtype) ? HN_FIT_YES
                                                                                      : HN_FIT_DTYPE;
}

/* Axes of the result that a scatter_nd tuple does not fix. */
static int tuple_depth(const hn_region *r)
{
    const hn_tdesc *ix = &hn_in(r->root, 1)->type;
    return r->root->op == HN_OP_scatter_nd ? (int)ix->dim[ix->rank - 1] : 0;
}

static bool slice_lanes(const hn_region *r)
{
    const hn_value *y = r->root->out[0];
    return r->root->op == HN_OP_scatter_nd && tuple_depth(r) < y->type.rank;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, r->root->out[0]->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 && r->root->out[0]->type.rank ? 2 : 1, lanes);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, w.flops, w.bytes, 0.05, p[P_LANES] > 1 ? 0.5 : 0.1) + 300;
}

typedef struct scat {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *ix, *up, *y;
    int64_t how;
    int axis, depth;
    hn_kv at[HN_MAX_RANK]; /* index of the update */
    hn_kv to[HN_MAX_RANK]; /* ... and of the result */
} scat;

static void fill(scat *s, hn_lower *l, const hn_region *r)
{
    *s = (scat){ .l = l,
                 .r = r,
                 .x = hn_in(r->root, 0),
                 .ix = hn_in(r->root, 1),
                 .up = hn_in(r->root, 2),
                 .y = r->root->out[0],
                 .how = hn_attr_i(r->root, "reduction"),
                 .depth = tuple_depth(r) };
    if (r->root->op == HN_OP_scatter_elements)
        hn_axis_resolve(hn_attr_i(r->root, "axis"), s->x->type.rank, &s->axis);
}

/* ---- copy ---- */
static void copy_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    (void)b;
    scat *s = user;
    const int last = s->y->type.rank - 1;
    if (last >= 0) s->to[last] = i;
    hn_kidx idx;
    hn_kidx_init(&idx, last + 1, s->to);
    if (lanes > 1) hn_kidx_vector(&idx, last, lanes);
    hn_lower_forget(s->l);
    hn_lower_store_value(s->l, 0, &idx, hn_lower_value(s->l, s->x, &idx, mask), mask);
    hn_lower_forget(s->l);
}

static hone_status emit_copy(const hn_region *r, const hn_target *t, int lanes, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "scatter_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    scat s;
    fill(&s, l, r);
    const int last = s.y->type.rank - 1;
    if (last < 0) {
        copy_body(b, HN_KV_NONE, 1, HN_KV_NONE, &s);
    } else {
        const uint32_t outer = hn_loops_all(s.y) & ~(1u << last);
        const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, s.y, outer));
        hn_loops_split(l, s.y, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), s.to);
        hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, s.y->type.dim[last]), lanes, HN_KTAIL_MASK,
                          copy_body, &s);
        hn_kb_end(b);
    }
    hn_work w;
    hn_region_work(r, &w);
    return hn_lower_finish(l, ret, 0, w.bytes, dg);
}

/* ---- updates ---- */
static hn_kv combine(hn_kb *b, int64_t how, hn_kv old, hn_kv x)
{
    switch (how) {
    case ADD:
        return hn_kb_add(b, old, x);
    case MUL:
        return hn_kb_mul(b, old, x);
    case MIN:
        return hn_kb_min(b, old, x);
    case MAX:
        return hn_kb_max(b, old, x);
    default:
        return x;
    }
}

static hn_kv scalar_at(scat *s, const hn_value *v, const hn_kv *at)
{
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    hn_lower_forget(s->l);
    return hn_lower_value(s->l, v, &idx, HN_KV_NONE);
}

/* An index brought into range from the end; and whether it is in range at all is added to *ok. */
static hn_kv resolve(scat *s, hn_kv index, int axis, hn_kv *ok)
{
    hn_kb *b = hn_lower_kb(s->l);
    const hn_kv n = hn_lower_dim(s->l, s->x->type.dim[axis]), zero = hn_kb_i(b, 0);
    index = hn_kb_cast(b, index, HN_I64);
    const hn_kv i = hn_kb_select(b, hn_kb_lt(b, index, zero), hn_kb_add(b, index, n), index);
    if (hn_attr_i(s->r->root, "in_range")) return i;
    const hn_kv in = hn_kb_lt(b, hn_kb_cast(b, i, HN_U64), hn_kb_cast(b, n, HN_U64)); /* negative ones are large */
    hn_lower_check(s->l, s->r->root, axis, index, in, n);
    *ok = hn_kv_is(*ok) ? hn_kb_and(b, *ok, in) : in;
    return i;
}

/* Row-major, as scatters are opaque to layout assignment. */
static hn_kv result_place(scat *s)
{
    hn_kb *b = hn_lower_kb(s->l);
    hn_kv at = hn_kb_i(b, 0);
    for (int a = 0; a < s->y->type.rank; a++)
        at = hn_kb_add(b, hn_kb_mul(b, at, hn_lower_dim(s->l, s->y->type.dim[a])), s->to[a]);
    return at;
}

static void apply(scat *s, hn_kv up, hn_kv mask, int lanes)
{
    hn_kb *b = hn_lower_kb(s->l);
    const int buf = hn_lower_out(s->l, 0);
    const hn_kv at = result_place(s), old = s->how == NONE ? up : hn_kb_loadm(b, buf, at, lanes, mask);
    hn_kb_storem(b, buf, at, combine(b, s->how, old, up), mask);
}

static void emit_elements(scat *s)
{
    hn_kb *b = hn_lower_kb(s->l);
    const uint32_t outer = hn_loops_all(s->ix) & ~(1u << s->axis);
    const hn_kv rows = hn_lower_dim(s->l, hn_loops_extent(s->r, s->ix, outer));
    hn_loops_split(s->l, s->ix, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), s->at);
    s->at[s->axis] = hn_kb_forn(b, hn_lower_dim(s->l, s->ix->type.dim[s->axis]));
    for (int a = 0; a < s->y->type.rank; a++)
        s->to[a] = s->at[a];
    hn_kv ok = HN_KV_NONE;
    s->to[s->axis] = resolve(s, scalar_at(s, s->ix, s->at), s->axis, &ok);
    if (hn_kv_is(ok)) hn_kb_if(b, ok);
    apply(s, scalar_at(s, s->up, s->at), HN_KV_NONE, 1);
    if (hn_kv_is(ok)) hn_kb_end(b);
    hn_kb_end(b);
    hn_kb_end(b);
}

/* All tuples for elements [i, i + lanes) of the slice's last axis. */
static void tuples_body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    scat *s = user;
    const int lead = s->ix->type.rank - 1, last = s->up->type.rank - 1;
    const int open = hn_loops_open(s->l, s->ix, hn_loops_all(s->ix) & ~(1u << lead), s->at);
    hn_kv tuple[HN_MAX_RANK], ok = HN_KV_NONE;
    for (int a = 0; a < lead; a++)
        tuple[a] = s->at[a];
    for (int k = 0; k < s->depth; k++) {
        tuple[lead] = hn_kb_i(b, k);
        s->to[k] = resolve(s, scalar_at(s, s->ix, tuple), k, &ok);
    }
    if (hn_kv_is(i)) s->to[s->y->type.rank - 1] = i;
    for (int a = lead; a <= last; a++)
        s->at[a] = s->to[s->depth + a - lead];
    if (hn_kv_is(ok)) hn_kb_if(b, ok);
    hn_kidx idx;
    hn_kidx_init(&idx, last + 1, s->at);
    if (lanes > 1) hn_kidx_vector(&idx, last, lanes);
    hn_lower_forget(s->l);
    apply(s, hn_kb_splat(b, hn_lower_value(s->l, s->up, &idx, mask), lanes), mask, lanes);
    hn_lower_forget(s->l);
    if (hn_kv_is(ok)) hn_kb_end(b);
    hn_loops_close(s->l, open);
}

enum { SLICE = 1024 }; /* elements of the slice's last axis that a trip covers */

static void emit_nd(scat *s, int lanes)
{
    hn_kb *b = hn_lower_kb(s->l);
    if (!slice_lanes(s->r)) {
        tuples_body(b, HN_KV_NONE, 1, HN_KV_NONE, s);
        return;
    }
    const int last = s->y->type.rank - 1;
    const uint32_t outer = hn_loops_all(s->y) & ~((1u << s->depth) - 1) & ~(1u << last);
    hn_symtab *t = s->r->g->syms;
    const hn_dim n = s->y->type.dim[last], parts = hn_dim_ceildiv(t, n, SLICE);
    const hn_kv trips = hn_lower_dim(s->l, hn_dim_mul(t, hn_loops_extent(s->r, s->y, outer), parts));
    const hn_kv per = hn_lower_dim(s->l, parts), trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1));
    hn_loops_split(s->l, s->y, outer, hn_kb_idiv(b, trip, per), s->to);
    const hn_kv lo = hn_kb_muli(b, hn_kb_imod(b, trip, per), SLICE);
    const hn_kv hi = hn_kb_min(b, hn_kb_addi(b, lo, SLICE), hn_lower_dim(s->l, n));
    hn_kb_vector_loop(b, lo, hi, lanes, HN_KTAIL_MASK, tuples_body, s);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    HN_TRY(emit_copy(r, t, (int)p[P_LANES], ret, dg));
    hn_kb *b = hn_kb_new(ret->arena, "scatter_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    scat s;
    fill(&s, l, r);
    if (r->root->op == HN_OP_scatter_elements)
        emit_elements(&s);
    else
        emit_nd(&s, (int)p[P_LANES]);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_scatter_any_loop__cpu = {
    .name = "scatter_any_loop__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .cost = cost,
    .emit = emit,
};
