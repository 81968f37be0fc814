/* Rotary embedding in one walk: a trip reads neighbours of both halves, turns them and puts both in their places. Features behind
 * those that turn are moved by trips of their own. What made the operand, a transpose above all, happens on the way. */
#include "tactic/cpu/loops.h"

enum { X, COS, SIN, RANK = 4, FEATURES = 3, SHORT_FEATURES = 2 /* of cosines and sines, which have no heads */ };

static int64_t turning(const hn_node *n)
{
    const int64_t given = hn_attr_i(n, "rotary_dim");
    return given ? given : hn_in(n, X)->type.dim[FEATURES];
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_rotary) return HN_FIT_OP;
    if (hn_attr_i(n, "interleaved")) return HN_FIT_ATTRIBUTE; /* neighbours that lie apart in vectors */
    if (!hn_lower_can(r, n)) return HN_FIT_EPILOGUE;
    const hn_value *y = n->out[0];
    if (!hn_lower_dtype_ok(y->type.dtype)) return HN_FIT_DTYPE;
    if (!hn_dim_is_const(y->type.dim[FEATURES])) return HN_FIT_SYMBOLIC;
    return turning(n) < 2 ? HN_FIT_SHAPE : HN_FIT_YES;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, w.flops, w.bytes, 0.25, 0.8) + 100;
}

/* Neighbours of one trip, as many as divide what turns and what does not. */
static int lanes_of(const hn_region *r, const hn_target *t)
{
    const hn_dtype d = r->root->out[0]->type.dtype;
    const int64_t half = turning(r->root) / 2, rest = r->root->out[0]->type.dim[FEATURES] - 2 * half;
    int lanes = t->arch == HN_ARCH_SM ? 16 * 8 / (int)hn_dtype_bits(d) : hn_lower_lanes(t, hn_lower_compute_type(d));

    while (half % lanes || rest % lanes) lanes /= 2;
    return lanes;
}

typedef struct turn {
    hn_lower *l;
    const hn_region *r;
    int lanes;
    hn_kv at[RANK]; /* the row, and features from at[FEATURES] on */
} turn;

static hn_kidx place(const turn *d, int64_t further)
{
    hn_kidx idx;
    hn_kidx_init(&idx, RANK, d->at);
    idx.at[FEATURES] = hn_kb_addi(hn_lower_kb(d->l), d->at[FEATURES], further);
    idx.aligned = d->lanes > 1;
    if (d->lanes > 1) hn_kidx_vector(&idx, FEATURES, d->lanes);
    return idx;
}

static hn_kv read(const turn *d, const hn_value *v, const hn_kidx *idx)
{
    hn_lower_forget(d->l);
    const hn_kv x = hn_lower_value(d->l, v, idx, HN_KV_NONE);
    hn_lower_forget(d->l);
    return x;
}

/* Batches may share their angles. */
static hn_kv angle(const turn *d, int operand)
{
    const hn_value *v = hn_in(d->r->root, operand), *x = hn_in(d->r->root, X);
    const hn_kv at[] = { hn_lower_stretch(d->l, d->at[0], v->type.dim[0], x->type.dim[0]), d->at[2], d->at[FEATURES] };
    hn_kidx idx;

    hn_kidx_init(&idx, RANK - 1, at);
    idx.aligned = d->lanes > 1;
    if (d->lanes > 1) hn_kidx_vector(&idx, SHORT_FEATURES, d->lanes);
    return read(d, v, &idx);
}

static void store(const turn *d, const hn_kidx *idx, hn_kv y)
{
    const hn_value *root = d->r->root->out[0];

    hn_lower_forget(d->l);
    hn_lower_seed(d->l, root, y);
    hn_lower_store(d->l, idx, HN_KV_NONE);
    hn_lower_seed(d->l, root, HN_KV_NONE);
    hn_lower_forget(d->l);
}

static void turn_pairs(const turn *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kidx first = place(d, 0), second = place(d, turning(d->r->root) / 2);
    const hn_value *x = hn_in(d->r->root, X);
    const hn_kv u = read(d, x, &first), v = read(d, x, &second), c = angle(d, COS), s = angle(d, SIN);

    const hn_kv u2 = hn_kb_sub(b, hn_kb_mul(b, u, c), hn_kb_mul(b, v, s));
    const hn_kv v2 = hn_kb_add(b, hn_kb_mul(b, u, s), hn_kb_mul(b, v, c));
    store(d, &first, u2);
    store(d, &second, v2);
}

static void pass_through(const turn *d)
{
    const hn_kidx idx = place(d, turning(d->r->root) / 2);
    store(d, &idx, read(d, hn_in(d->r->root, X), &idx));
}

/* Trip number `trip` of a row. */
static void body(turn *d, hn_kv trip)
{
    hn_kb *b = hn_lower_kb(d->l);
    const int64_t r = turning(d->r->root);

    d->at[FEATURES] = hn_kb_muli(b, trip, d->lanes);
    if (r == d->r->root->out[0]->type.dim[FEATURES]) {
        turn_pairs(d);
        return;
    }
    hn_kb_if(b, hn_kb_lt(b, trip, hn_kb_i(b, r / 2 / d->lanes)));
    turn_pairs(d);
    hn_kb_else(b);
    pass_through(d);
    hn_kb_end(b);
}

/* A GPU's threads take a trip each, a processor's a row. */
static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "rotary_any_pairs__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *y = r->root->out[0];
    const uint32_t rows_axes = hn_loops_all(y) & ~(1u << FEATURES);
    turn d = { .l = l, .r = r, .lanes = lanes_of(r, t) };
    const int64_t trips = (y->type.dim[FEATURES] - turning(r->root) / 2) / d.lanes;
    const bool flat = t->arch == HN_ARCH_SM;
    const hn_dim rows = hn_loops_extent(r, y, rows_axes), all = hn_dim_mul(r->g->syms, rows, hn_dim_const(r->g->syms, trips));
    const hn_kv i = hn_kb_parallel(b, hn_kb_ext(b, hn_lower_dim(l, flat ? all : rows), 1));

    hn_loops_split(l, y, rows_axes, flat ? hn_kb_idiv(b, i, hn_kb_i(b, trips)) : i, d.at);
    body(&d, flat ? hn_kb_imod(b, i, hn_kb_i(b, trips)) : hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, trips), 1));
    if (!flat) hn_kb_end(b);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_rotary_any_pairs__cpu = {
    .name = "rotary_any_pairs__cpu", .rev = 1, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .cost = cost, .emit = emit,
};
