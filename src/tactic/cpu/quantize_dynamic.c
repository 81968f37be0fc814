/* Dynamic quantisation whole: x is read twice and written once as bytes, instead of read three times.
 *
 *     launch 1   least and greatest element of each of at most PARTS equal parts, with 0 among them
 *     launch 2   every part folds those, derives scale and zero point, and quantises its own elements
 *
 * The same steps in the same order as the expansion has, so that results are its bits.
 */
#include "tactic/cpu/loops.h"

enum { PARTS = 32, CHAINS = 4, BYTE_TOP = 255 };
enum { LEAST_PART = 2048 }; /* elements: what a thread does in about a microsecond */
enum { Y, SCALE, ZERO };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_dynamic_quantize) return HN_FIT_OP;
    if (r->g->n_node != 1 || hn_region_operand(r, hn_in(n, 0)) < 0) return HN_FIT_EPILOGUE;
    if (hn_in(n, 0)->type.dtype != HN_F32) return HN_FIT_DTYPE;
    if (!hn_layout_is_plain(&hn_in(n, 0)->layout) || !hn_layout_is_plain(&n->out[Y]->layout)) return HN_FIT_LAYOUT;
    return HN_FIT_YES;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, w.flops, 2 * w.bytes, 0.3, 0.6) + 300;
}

typedef struct part {
    hn_lower *l;
    hn_kb *b;
    int lanes, x, ends; /* ends: PARTS minima, then PARTS maxima */
    hn_kv parts, number, from, to;
} part;

/* Opens the loop over parts of one launch. */
static hone_status open_part(const hn_region *r, const hn_target *t, hn_emission *e, bool first, part *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(e->arena, "dynamic_quantize_f32_parts__cpu");
    hn_lower *l = hn_lower_new(e->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *x = hn_in(r->root, 0);
    *ret = (part){ .l = l, .b = b, .lanes = hn_lower_lanes(t, HN_F32) };
    ret->x = hn_lower_in(l, hn_region_operand(r, x));
    ret->ends = hn_lower_temp(l, 0, HN_F32, first);
    const hn_dim all = hn_loops_extent(r, x, hn_loops_all(x));
    hn_symtab *syms = r->g->syms;
    const hn_dim share = hn_dim_ceildiv(syms, all, (int64_t)PARTS * ret->lanes);
    const hn_dim size = hn_dim_mul(syms, hn_dim_max(syms, share, LEAST_PART / ret->lanes), ret->lanes);
    const hn_dim parts = hn_dim_floordiv(syms, hn_dim_sub(syms, hn_dim_add(syms, all, size), 1), size);
    const hn_kv n = hn_lower_dim(l, all), step = hn_lower_dim(l, size);
    ret->parts = hn_lower_dim(l, hn_dim_max(syms, parts, 1));
    ret->number = hn_kb_parallel(b, hn_kb_ext(b, ret->parts, 1));
    ret->from = hn_kb_min(b, hn_kb_mul(b, ret->number, step), n);
    ret->to = hn_kb_min(b, hn_kb_add(b, ret->from, step), n);
    return HONE_OK;
}

/* Calls step for every vector of the part, CHAINS at a time; the last one masked. */
typedef void (*step_fn)(part *d, hn_kv at, hn_kv mask, int chain, void *user);

static void over_part(part *d, step_fn step, void *user)
{
    hn_kb *b = d->b;
    const int64_t stride = (int64_t)CHAINS * d->lanes;
    const hn_kv run = hn_kb_sub(b, d->to, d->from);
    const hn_kv whole = hn_kb_add(b, d->from, hn_kb_muli(b, hn_kb_idiv(b, run, hn_kb_i(b, stride)), stride));
    hn_kv i = hn_kb_for(b, d->from, whole, stride);
    for (int c = 0; c < CHAINS; c++) step(d, hn_kb_addi(b, i, (int64_t)c * d->lanes), HN_KV_NONE, c, user);
    hn_kb_end(b);
    i = hn_kb_for(b, whole, d->to, d->lanes);
    step(d, i, d->lanes > 1 ? hn_kb_tail_mask(b, i, d->to, d->lanes) : HN_KV_NONE, 0, user);
    hn_kb_end(b);
}

/* ---- first launch ---- */
typedef struct ends {
    hn_kvar low[CHAINS], high[CHAINS];
    hn_kvar undefined; /* lanes that saw NaN: minima that pass it on by themselves take twice as long */
} ends;

/* Lanes that are off read 0, which is among the elements anyway. */
static void step_ends(part *d, hn_kv at, hn_kv mask, int chain, void *user)
{
    hn_kb *b = d->b;
    const ends *e = user;
    const hn_kv x = hn_kb_loadm(b, d->x, at, d->lanes, mask);
    hn_kb_set(b, e->low[chain], hn_kb_bin(b, HN_KOP_MINR, hn_kb_get(b, e->low[chain]), x));
    hn_kb_set(b, e->high[chain], hn_kb_bin(b, HN_KOP_MAXR, hn_kb_get(b, e->high[chain]), x));
    hn_kb_set(b, e->undefined, hn_kb_or(b, hn_kb_get(b, e->undefined), hn_kb_ne(b, x, x)));
}

static hone_status emit_ends(const hn_region *r, const hn_target *t, hn_emission *ret, hn_diag *dg)
{
    part d;
    ends e;
    HN_TRY(open_part(r, t, ret, true, &d, dg));
    hn_kb *b = d.b;
    const hn_kv zero = hn_kb_float(b, HN_F32, d.lanes, 0);
    for (int c = 0; c < CHAINS; c++) e.low[c] = hn_kb_var(b, zero), e.high[c] = hn_kb_var(b, zero);
    e.undefined = hn_kb_var(b, hn_kb_int(b, HN_BOOL, d.lanes, 0));
    over_part(&d, step_ends, &e);
    const hn_kv undefined = hn_kb_get(b, e.undefined), nan = hn_kb_float(b, HN_F32, d.lanes, __builtin_nan(""));
    hn_kv low = hn_kb_get(b, e.low[0]), high = hn_kb_get(b, e.high[0]);
    for (int c = 1; c < CHAINS; c++) {
        low = hn_kb_min(b, low, hn_kb_get(b, e.low[c]));
        high = hn_kb_max(b, high, hn_kb_get(b, e.high[c]));
    }
    low = hn_kb_select(b, undefined, nan, low);
    high = hn_kb_select(b, undefined, nan, high);
    hn_kb_store(b, d.ends, d.number, d.lanes > 1 ? hn_kb_un(b, HN_KOP_RMIN, low) : low);
    hn_kb_store(b, d.ends, hn_kb_addi(b, d.number, PARTS), d.lanes > 1 ? hn_kb_un(b, HN_KOP_RMAX, high) : high);
    hn_kb_end(b);
    hn_work w;
    hn_region_work(r, &w);
    return hn_lower_finish(d.l, ret, 0, w.bytes, dg);
}

/* ---- second launch ---- */
/* Entries that no part wrote count as 0. */
static hn_kv end_at(part *d, int first, int i)
{
    hn_kb *b = d->b;
    return hn_kb_loadm(b, d->ends, hn_kb_i(b, first + i), d->lanes, hn_kb_tail_mask(b, hn_kb_i(b, i), d->parts, d->lanes));
}

static hn_kv folded(part *d, int first, hn_kop op, hn_kop across)
{
    hn_kv x = end_at(d, first, 0);
    for (int i = d->lanes; i < PARTS; i += d->lanes) x = hn_kb_bin(d->b, op, x, end_at(d, first, i));
    return d->lanes > 1 ? hn_kb_un(d->b, across, x) : x;
}

/* round(x / scale) + zero within a byte; NaN gives 0 */
static hn_kv to_byte(hn_kb *b, hn_kv x)
{
    x = hn_kb_bin(b, HN_KOP_MAXR, hn_kb_like(b, x, 0), x);
    x = hn_kb_bin(b, HN_KOP_MINR, hn_kb_like(b, x, BYTE_TOP), x);
    x = hn_kb_select(b, hn_kb_eq(b, x, x), x, hn_kb_like(b, x, 0));
    return hn_kb_cast(b, hn_kb_cast_in_range(b, x, HN_I32), HN_U8);
}

typedef struct params {
    hn_kv scale, zero; /* vectors, f32 */
    int y;
} params;

static void step_bytes(part *d, hn_kv at, hn_kv mask, int chain, void *user)
{
    (void)chain;
    hn_kb *b = d->b;
    const params *p = user;
    const hn_kv q = hn_kb_un(b, HN_KOP_RINT, hn_kb_div(b, hn_kb_loadm(b, d->x, at, d->lanes, mask), p->scale));
    hn_kb_storem(b, p->y, at, to_byte(b, hn_kb_add(b, q, p->zero)), mask);
}

static void store_one(part *d, const hn_region *r, int k, hn_kv x)
{
    const int result = hn_loops_result(r, k);
    if (result >= 0) hn_kb_store(d->b, hn_lower_out(d->l, result), hn_kb_i(d->b, 0), x);
}

static hone_status emit_bytes(const hn_region *r, const hn_target *t, hn_emission *ret, hn_diag *dg)
{
    part d;
    HN_TRY(open_part(r, t, ret, false, &d, dg));
    hn_kb *b = d.b;
    const hn_kv first = hn_kb_eq(b, d.number, hn_kb_i(b, 0));
    const hn_kv low = folded(&d, 0, HN_KOP_MIN, HN_KOP_RMIN), high = folded(&d, PARTS, HN_KOP_MAX, HN_KOP_RMAX);
    const hn_kv none = hn_kb_like(b, low, 0);
    hn_kv scale = hn_kb_div(b, hn_kb_sub(b, high, low), hn_kb_like(b, low, BYTE_TOP));
    scale = hn_kb_select(b, hn_kb_eq(b, scale, none), hn_kb_like(b, low, 1), scale);
    const hn_kv zero = to_byte(b, hn_kb_un(b, HN_KOP_RINT, hn_kb_div(b, hn_kb_neg(b, low), scale)));
    hn_kb_if(b, first);
    store_one(&d, r, SCALE, scale);
    store_one(&d, r, ZERO, zero);
    hn_kb_end(b);
    const int y = hn_loops_result(r, Y);
    params p = { .scale = hn_kb_splat(b, scale, d.lanes), .zero = hn_kb_splat(b, hn_kb_cast(b, zero, HN_F32), d.lanes) };
    if (y >= 0) {
        p.y = hn_lower_out(d.l, y);
        over_part(&d, step_bytes, &p);
    }
    hn_kb_end(b);
    hn_work w;
    hn_region_work(r, &w);
    return hn_lower_finish(d.l, ret, w.flops, w.bytes, dg);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    (void)p;
    if (!hn_vec_push(ret->arena, &ret->temp_bytes, 2 * PARTS * 4)) return HN_NOMEM(dg);
    HN_TRY(emit_ends(r, t, ret, dg));
    return emit_bytes(r, t, ret, dg);
}

const hn_tactic_def hn_tactic_dynamic_quantize_f32_parts__cpu = {
    .name = "dynamic_quantize_f32_parts__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .source = HN_KNOB_tactic_dynamic_quantize,
    .fits = fits,
    .cost = cost,
    .emit = emit,
};
