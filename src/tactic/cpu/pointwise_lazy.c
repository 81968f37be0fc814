/* Any region of pointwise and view nodes: walk the results' index space, vectors along the innermost stored axis, evaluate
 * each result lazily at every place, store. Always fits such regions. */
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"

enum { P_LANES, P_UNROLL, P_CHUNK };
enum { CHUNK = 16384 }; /* elements a parallel slice of a flat region covers: 64 KiB of f32, half an L1 line budget */

/* Results of less than a byte an element. */
static bool packs(const hn_region *r)
{
    for (int i = 0; i < r->g->n_out; i++)
        if (hn_dtype_bits(r->g->out[i].value->type.dtype) < 8) return true;
    return false;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (!hn_lower_can(r, NULL)) return HN_FIT_OP;
    const hn_value *first = r->g->out[0].value;
    for (int i = 0; i < r->g->n_out; i++) {
        const hn_value *v = r->g->out[i].value;
        if (packs(r) && !hn_layout_is_plain(&v->layout)) return HN_FIT_LAYOUT;
        if (v->type.rank != first->type.rank) return HN_FIT_SHAPE;
        for (int a = 0; a < v->type.rank; a++)
            if (v->type.dim[a] != first->type.dim[a]) return HN_FIT_SHAPE;
    }
    return HN_FIT_YES;
}

/* The axis that lies densest in the first result's storage. */
static int vector_axis(const hn_value *v)
{
    if (v->layout.n) return v->layout.at[v->layout.n - 1].axis;
    return v->type.rank - 1;
}

/* Widest lanes that every computed type fills one register with; scalar where the run is short. */
static int widest_lanes(const hn_region *r, const hn_target *t)
{
    int lanes = hn_lower_lanes(t, HN_F32);
    bool small = true;
    for (int i = 0; i < r->g->n_out; i++) small &= hn_dtype_bits(r->g->out[i].value->type.dtype) <= 16;
    if (small && t->arch == HN_ARCH_SM) lanes *= 2; /* registers hold f32, but memory moves in whole vectors */
    for (int i = 0; i < r->g->n_out; i++) {
        const hn_dtype d = r->g->out[i].value->type.dtype;
        if (hn_dtype_bits(d) == 64) lanes = HN_MIN(lanes, hn_lower_lanes(t, HN_F64));
    }
    return lanes;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int wide = widest_lanes(r, t);
    const int64_t lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 && !packs(r) ? 2 : 1, lanes);
    hn_space_add_settled(ret, "unroll", packs(r) ? 1 : 3, (const int64_t[]){ 1, 2, 4 });
    const bool flat = packs(r) || r->g->out[0].value->type.rank == 1;
    hn_space_add_settled(ret, "chunk", flat ? 4 : 1, (const int64_t[]){ CHUNK, 1024, 4096, 65536 });
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    const hn_value *v = r->g->out[0].value;
    if (p[P_LANES] == 1) return true;
    if (v->type.rank == 0) return false;
    const hn_dim d = v->type.dim[vector_axis(v)];
    return !hn_dim_is_const(d) || d >= p[P_LANES] / 2;
}

/* A GPU's threads that take few bytes each leave bandwidth unused. */
static double share_of_bandwidth(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const int64_t bytes = p[P_LANES] * hn_dtype_bits(r->g->out[0].value->type.dtype) / 8;
    if (t->arch != HN_ARCH_SM || bytes >= 8) return 0.8;
    return bytes >= 4 ? 0.6 : 0.4;
}

/* A cycle for each element or vector that a processor's loop goes through: moves without arithmetic would weigh the same at any width,
 * though single elements hold up what memory could deliver. */
static double steps_ns(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_value *v = r->g->out[0].value;
    double n = 1;
    if (t->arch == HN_ARCH_SM) return 0;
    for (int a = 0; a < v->type.rank; a++) n *= (double)hn_region_opt(r, v->type.dim[a]);
    return n / (double)p[P_LANES] / hn_cycles_ghz(t);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double wide = hn_lower_lanes(t, HN_F32);
    const double eff = 0.25 * (double)p[P_LANES] / wide; /* chains of dependent arithmetic: a quarter of the peak */
    return hn_roofline_ns(t, w.flops, w.bytes, eff, share_of_bandwidth(r, t, p)) + steps_ns(r, t, p) + 100;
}

typedef struct walk {
    hn_lower *l;
    hn_kidx idx;
    int axis;
} walk;

static void body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    (void)b;
    walk *w = user;
    hn_kidx idx = w->idx;
    idx.at[w->axis] = i;
    idx.aligned = lanes > 1;
    hn_kidx_vector(&idx, w->axis, lanes);
    hn_lower_store(w->l, &idx, mask);
}

/* A line of results, `unroll` vectors a turn: more stores and chains under way at once. */
static void emit_line(walk *w, hn_kv lo, hn_kv hi, int lanes, int unroll)
{
    hn_kb *b = hn_lower_kb(w->l);
    if (unroll > 1) {
        const int64_t step = (int64_t)lanes * unroll;
        const hn_kv n = hn_kb_max(b, hn_kb_sub(b, hi, lo), hn_kb_i(b, 0));
        const hn_kv mid = hn_kb_add(b, lo, hn_kb_muli(b, hn_kb_idiv(b, n, hn_kb_i(b, step)), step));
        const hn_kv i = hn_kb_for(b, lo, mid, step);
        for (int u = 0; u < unroll; u++) body(b, hn_kb_addi(b, i, (int64_t)u * lanes), lanes, HN_KV_NONE, w);
        hn_kb_end(b);
        lo = mid;
    }
    hn_kb_vector_loop(b, lo, hi, lanes, HN_KTAIL_MASK, body, w);
}

static hn_dim outer_extent(const hn_region *r, const hn_value *v, int axis)
{
    hn_dim n = 1;
    for (int a = 0; a < v->type.rank; a++)
        if (a != axis) n = hn_dim_mul(r->g->syms, n, v->type.dim[a]);
    return n;
}

/* Split the flat outer index over every axis but `axis`, in logical order. */
static void outer_index(hn_lower *l, const hn_value *v, int axis, hn_kv flat, hn_kidx *idx)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv at[HN_MAX_RANK];
    for (int a = v->type.rank - 1; a >= 0; a--) {
        if (a == axis) {
            at[a] = HN_KV_NONE;
            continue;
        }
        const hn_kv n = hn_lower_dim(l, v->type.dim[a]);
        at[a] = hn_kb_imod(b, flat, n);
        flat = hn_kb_idiv(b, flat, n);
    }
    hn_kidx_init(idx, v->type.rank, at);
}

static void emit_flat(hn_lower *l, const hn_value *v, const int64_t *p)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_kv n = hn_lower_dim(l, v->type.dim[0]);
    const hn_kv chunk = hn_kb_parallel(b, hn_kb_ext(b, n, p[P_CHUNK]));
    const hn_kv lo = hn_kb_muli(b, chunk, p[P_CHUNK]);
    const hn_kv hi = hn_kb_min(b, hn_kb_addi(b, lo, p[P_CHUNK]), n);
    walk w = { .l = l, .axis = 0 };
    const hn_kv none = HN_KV_NONE;
    hn_kidx_init(&w.idx, 1, &none);
    emit_line(&w, lo, hi, (int)p[P_LANES], (int)p[P_UNROLL]);
    hn_kb_end(b);
}

/* In storage order, a chunk of whole bytes a trip: bytes that rows would share belong to one trip. */
static void emit_packed(hn_lower *l, const hn_region *r, const hn_value *v, int64_t size)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kv at[HN_MAX_RANK];
    const hn_kv n = hn_lower_dim(l, hn_loops_extent(r, v, hn_loops_all(v)));
    const hn_kv chunk = hn_kb_parallel(b, hn_kb_ext(b, n, size));
    const hn_kv lo = hn_kb_muli(b, chunk, size), i = hn_kb_for(b, lo, hn_kb_min(b, hn_kb_addi(b, lo, size), n), 1);
    hn_loops_split(l, v, hn_loops_all(v), i, at);
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    hn_lower_store(l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    hn_kb_end(b);
}

static void emit_rows(hn_lower *l, const hn_region *r, const hn_value *v, const int64_t *p)
{
    hn_kb *b = hn_lower_kb(l);
    walk w = { .l = l, .axis = vector_axis(v) };
    const hn_dim rows = outer_extent(r, v, w.axis);
    const hn_kv n = hn_lower_dim(l, rows);
    const hn_kv row = hn_kb_parallel(b, hn_kb_ext(b, n, 1));
    outer_index(l, v, w.axis, row, &w.idx);
    emit_line(&w, hn_kb_i(b, 0), hn_lower_dim(l, v->type.dim[w.axis]), (int)p[P_LANES], (int)p[P_UNROLL]);
    hn_kb_end(b);
}

/* Each trip reads all operands at its places before it stores there. */
static bool allow_in_place(const hn_region *r, hn_emission *ret)
{
    for (int o = 0; o < r->g->n_out; o++)
        for (int i = 0; i < r->g->n_in; i++)
            if (hn_region_in_place(r, i, o) && !hn_vec_push(ret->arena, &ret->inplace, ((struct hn_inplace){ o, i }))) return false;
    return true;
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "pointwise_any_lazy__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l || !allow_in_place(r, ret)) return HN_NOMEM(dg);
    const hn_value *v = r->g->out[0].value;
    if (v->type.rank == 0) {
        hn_kidx idx;
        hn_kidx_init(&idx, 0, NULL);
        hn_lower_store(l, &idx, HN_KV_NONE);
    } else if (packs(r)) {
        emit_packed(l, r, v, p[P_CHUNK]);
    } else if (v->type.rank == 1) {
        emit_flat(l, v, p);
    } else {
        emit_rows(l, r, v, p);
    }
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_pointwise_any_lazy__cpu = {
    .name = "pointwise_any_lazy__cpu", .rev = 1, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .space = space, .legal = legal, .cost = cost, .emit = emit,
    .pin = { [P_LANES] = HN_KNOB_pointwise_lanes, [P_CHUNK] = HN_KNOB_pointwise_chunk,
             [P_UNROLL] = HN_KNOB_pointwise_unroll },
};
