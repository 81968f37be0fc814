/* Softmax, log-softmax, layer and RMS normalisation along one axis, and reductions along the densest, on a GPU.
 *
 * Where the axis lies densest a block takes a line: threads stride along it, totals fold in a warp by shuffles, across warps through
 * shared memory. Of short lines, which less than a warp or one share, it takes as many as give each thread work. Else it takes a strip of neighbouring lines: threads along x take a line each, those along y share its elements.
 * A thread that takes few elements reads them once and holds them; else each pass reads them anew, from the caches.
 */
#include "tactic/cpu/loops.h"
#include "tactic/lower_int.h"

#include <math.h>

enum { P_THREADS };
enum { WARP = 32, COLUMNS = 32, BLOCK_THREADS = 128 /* of short lines */, BLOCKS_A_CORE = 32, MAX_HELD = 32, MOST_HELD = 64 /* elements of a thread */, LEAST_LINE = 16, THREADS_A_CORE = 2048 };

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

/* Along the densest axis; else lines lie beside each other. */
static bool is_along(const hn_region *r)
{
    return axis_of(r) == hn_loops_dense_axis(hn_in(r->root, 0));
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
    if (n_axes != 1 || x->type.rank < 1 || (is_norm(n->op) && axis_of(r) != x->type.rank - 1)) return HN_FIT_SHAPE;
    if (!is_along(r) && (reduction(n->op) >= 0 || !hn_loops_unblocked(x))) return HN_FIT_SHAPE;
    if (!hn_dtype_is_float(hn_lower_compute_type(n->out[0]->type.dtype)) || !hn_lower_can(r, n)) return HN_FIT_DTYPE;
    const hn_dim len = x->type.dim[axis_of(r)];
    return is_along(r) && hn_dim_is_const(len) && len < LEAST_LINE ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)t;
    static const int64_t threads[] = { 8, 16, 32, 128, 256, 512 }; /* of a line; of a strip, which is a warp wide */
    const int first = is_along(r) ? 0 : 2;
    hn_space_add_list(ret, "threads", HN_COUNT(threads) - first, threads + first);
}

/* Threads that share a line. */
static int64_t sharing_of(const hn_region *r, int64_t threads)
{
    return is_along(r) ? threads : threads / COLUMNS;
}

/* Lines of a block, where a warp or less shares one. Few lines are spread over all cores first. */
static int64_t lines_of(const hn_region *r, const hn_target *t, int64_t threads)
{
    const hn_value *x = hn_in(r->root, 0);
    const hn_dim lines = hn_loops_extent(r, x, hn_loops_all(x) & ~(1u << axis_of(r)));
    if (!is_along(r) || threads > WARP) return 1;
    int64_t n = BLOCK_THREADS / threads;
    while (hn_dim_is_const(lines) && n * threads > WARP && n * t->n_core > lines) n /= 2;
    return n;
}

/* Neighbours that a thread takes at once: whole vectors of 16 bytes, as long as most threads have one. */
static int lanes_of(const hn_region *r, int64_t threads)
{
    const hn_value *x = hn_in(r->root, 0);
    const hn_dim n = x->type.dim[axis_of(r)];
    if (!is_along(r) || !hn_dim_is_const(n) || !hn_loops_unblocked(r->root->out[0])) return 1;
    for (int v = HN_MIN(8, 128 / hn_dtype_bits(r->root->out[0]->type.dtype)); v > 1; v /= 2)
        if (n % v == 0 && 4 * (n / v) >= 3 * HN_MIN(threads, 64)) return v;
    return 1;
}

/* Vectors that each thread of a line holds; 0: too many, or nobody knows. */
static int held_of(const hn_region *r, int64_t threads)
{
    const hn_dim n = hn_in(r->root, 0)->type.dim[axis_of(r)];
    const int64_t sharing = sharing_of(r, threads), lanes = lanes_of(r, threads);
    if (!hn_dim_is_const(n)) return 0;
    const int64_t held = (n + sharing * lanes - 1) / (sharing * lanes);
    return held <= MAX_HELD && held * lanes <= MOST_HELD ? (int)held : 0;
}

/* Blocks of one wave work side by side; each waits for what it reads, then for a total or two. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { NS_BLOCK = 900, NS_FOLD = 60, NS_READ = 400, NS_ELEMENT = 6 };
    hn_work w;
    hn_region_work(r, &w);
    const hn_value *x = hn_in(r->root, 0);
    const double n = (double)hn_region_opt(r, x->type.dim[axis_of(r)]);
    const double sharing = (double)sharing_of(r, p[P_THREADS]), at_once = is_along(r) ? (double)lines_of(r, t, p[P_THREADS]) : COLUMNS;
    double lines = 1;
    for (int a = 0; a < x->type.rank; a++) lines *= a == axis_of(r) ? 1 : (double)hn_region_opt(r, x->type.dim[a]);
    const double passes = held_of(r, p[P_THREADS]) ? 1 : reduction(r->root->op) >= 0 ? 1 : 3, each = ceil(n / sharing);
    const double block = NS_BLOCK + 2 * NS_FOLD * log2(sharing + 1) + passes * (NS_READ + each * (passes > 1 ? 40 : NS_ELEMENT));
    const double resident = fmin(THREADS_A_CORE, BLOCKS_A_CORE * at_once * sharing);
    const double waves = fmax(1, lines * sharing / ((double)t->n_core * resident));
    return fmax(hn_roofline_ns(t, w.flops, w.bytes, 0.2, 0.75), waves * block * t->n_core);
}

typedef struct line {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *y;
    int axis, threads, sharing, lines, part, lanes, held; /* threads of a block, of a line; lines of a block */
    bool along;
    hn_dtype t;
    hn_kv n, tid, first;       /* elements of a line; this thread, its number among those that share the line */
    hn_kv tx, live;            /* this thread's line of the block, where it takes several; whether there is one, if that is not sure */
    hn_kv value[MAX_HELD], place[MAX_HELD], inside[MAX_HELD];
    hn_kv at[HN_MAX_RANK];
} line;

static void index_at(line *d, hn_kv i, hn_kidx *idx)
{
    d->at[d->axis] = i;
    hn_kidx_init(idx, d->x->type.rank, d->at);
    hn_kidx_vector(idx, d->axis, d->lanes);
    idx->aligned = d->lanes > 1;
}

static hn_kv element(line *d, hn_kv i)
{
    hn_kidx idx;
    index_at(d, i, &idx);
    hn_lower_forget(d->l);
    const hn_kv x = hn_lower_value(d->l, d->x, &idx, HN_KV_NONE);
    hn_lower_forget(d->l);
    return x;
}

/* Elements past the end repeat the last ones, and count nothing. */
static void hold(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    int64_t n = 0;
    hn_kb_is_const(b, d->n, &n);
    const int64_t sharing = d->sharing;
    for (int e = 0; e < d->held; e++) {
        const hn_kv i = hn_kb_addi(b, hn_kb_muli(b, d->first, d->lanes), e * sharing * d->lanes);
        const bool whole = (e + 1) * sharing * d->lanes <= n;
        d->inside[e] = whole ? HN_KV_NONE : hn_kb_lt(b, i, d->n);
        d->place[e] = whole ? i : hn_kb_min(b, i, hn_kb_addi(b, d->n, -d->lanes));
        d->value[e] = element(d, d->place[e]);
    }
}

/* Every thread of the line gets the total. */
static hn_kv across(line *d, hn_kop op, hn_kv v)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv warp = hn_kb_i(b, WARP);
    const int parts = d->along ? d->sharing / WARP : d->sharing;
    for (int mask = HN_MIN(d->sharing, WARP) / 2; d->along && mask; mask /= 2)
        v = hn_kb_bin(b, op, v, hn_kb_shfl_xor(b, v, mask));
    if (parts <= 1) return v;
    hn_kb_barrier(b); /* the last total has been read */
    if (d->along) hn_kb_if(b, hn_kb_eq(b, hn_kb_imod(b, d->tid, warp), hn_kb_i(b, 0)));
    hn_kb_store(b, d->part, d->along ? hn_kb_idiv(b, d->tid, warp) : d->tid, v);
    if (d->along) hn_kb_end(b);
    hn_kb_barrier(b);
    const hn_kv from = d->along ? hn_kb_i(b, 0) : d->tx;
    v = hn_kb_load(b, d->part, from, 1);
    for (int w = 1; w < parts; w++)
        v = hn_kb_bin(b, op, v, hn_kb_load(b, d->part, hn_kb_addi(b, from, (d->along ? 1 : COLUMNS) * w), 1));
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

static hn_kv fold_lanes(line *d, hn_kop op, hn_kv v)
{
    const hn_kop all = op == HN_KOP_ADD ? HN_KOP_RADD : op == HN_KOP_MAX ? HN_KOP_RMAX : HN_KOP_RMIN;
    return d->lanes == 1 ? v : hn_kb_un(hn_lower_kb(d->l), all, v);
}

static hn_kv total(line *d, hn_kop op, double nothing, term f, hn_kv with)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv none = hn_kb_float(b, d->t, d->lanes, nothing);
    if (!d->held) {
        const hn_kvar acc = hn_kb_var(b, none);
        const hn_kv i = hn_kb_for(b, hn_kb_muli(b, d->first, d->lanes), d->n, (int64_t)d->lanes * d->sharing);
        hn_kb_set(b, acc, hn_kb_bin(b, op, hn_kb_get(b, acc), f(d, element(d, i), with)));
        hn_kb_end(b);
        return across(d, op, fold_lanes(d, op, hn_kb_get(b, acc)));
    }
    hn_kv acc = none;
    for (int e = 0; e < d->held; e++) {
        hn_kv x = f(d, d->value[e], with);
        if (hn_kv_is(d->inside[e])) x = hn_kb_select(b, d->inside[e], x, none);
        acc = e ? hn_kb_bin(b, op, acc, x) : x;
    }
    return across(d, op, fold_lanes(d, op, acc));
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

/* y = (x - shift) * scale, e^(x - shift) * scale, or (x - shift) - less; then the normalisation's own factors. */
typedef struct change {
    hn_kv shift, scale, less;
    bool exponent;
} change;

static void store_at(line *d, hn_kv i, hn_kv y, const change *c)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kidx idx;
    index_at(d, i, &idx);
    if (hn_kv_is(c->shift)) y = hn_kb_sub(b, y, c->shift);
    if (c->exponent) y = hn_kb_math(b, HN_KMATH_EXP, y);
    if (hn_kv_is(c->scale)) y = hn_kb_mul(b, y, c->scale);
    if (hn_kv_is(c->less)) y = hn_kb_sub(b, y, c->less);
    hn_lower_forget(d->l);
    const hn_kv factor = affine(d, 1, &idx), bias = affine(d, 2, &idx);
    if (hn_kv_is(factor)) y = hn_kb_mul(b, y, factor);
    if (hn_kv_is(bias)) y = hn_kb_add(b, y, bias);
    hn_lower_seed(d->l, d->y, y);
    hn_lower_store(d->l, &idx, HN_KV_NONE);
    hn_lower_forget(d->l);
}

static void store_line(line *d, change c)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (hn_kv_is(d->live)) hn_kb_if(b, d->live);
    for (int e = 0; e < d->held; e++) {
        if (hn_kv_is(d->inside[e])) hn_kb_if(b, d->inside[e]);
        store_at(d, d->place[e], d->value[e], &c);
        if (hn_kv_is(d->inside[e])) hn_kb_end(b);
    }
    if (!d->held) {
        const hn_kv i = hn_kb_for(b, hn_kb_muli(b, d->first, d->lanes), d->n, (int64_t)d->lanes * d->sharing);
        store_at(d, i, element(d, i), &c);
        hn_kb_end(b);
    }
    if (hn_kv_is(d->live)) hn_kb_end(b);
}

static void softmax_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv top = total(d, HN_KOP_MAX, -__builtin_inf(), as_is, HN_KV_NONE);
    const hn_kv sum = total(d, HN_KOP_ADD, 0, exp_off, top);
    if (d->r->root->op == HN_OP_softmax) store_line(d, (change){ top, hn_kb_div(b, hn_kb_like(b, sum, 1), sum), HN_KV_NONE, true });
    else store_line(d, (change){ top, HN_KV_NONE, hn_kb_math(b, HN_KMATH_LOG, sum), false });
}

static void normalised_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv count = hn_kb_cast(b, d->n, d->t);
    hn_kv mean = HN_KV_NONE;
    if (d->r->root->op == HN_OP_layer_norm) mean = hn_kb_div(b, total(d, HN_KOP_ADD, 0, as_is, HN_KV_NONE), count);
    const hn_kv var = hn_kb_div(b, total(d, HN_KOP_ADD, 0, squared_off, mean), count);
    const hn_kv root = hn_kb_sqrt(b, hn_kb_add(b, var, hn_kb_like(b, var, hn_attr_f(d->r->root, "eps"))));
    store_line(d, (change){ mean, hn_kb_div(b, hn_kb_like(b, root, 1), root), HN_KV_NONE, false });
}

static void reduced_line(line *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kop op = (hn_kop)reduction(d->r->root->op);
    const double nothing = op == HN_KOP_ADD ? 0 : op == HN_KOP_MAX ? -__builtin_inf() : __builtin_inf();
    const hn_kv sum = total(d, op, nothing, as_is, HN_KV_NONE);
    hn_kidx idx;
    hn_kv stores = hn_kb_eq(b, d->first, hn_kb_i(b, 0));
    if (hn_kv_is(d->live)) stores = hn_kb_and(b, stores, d->live);
    hn_kb_if(b, stores);
    hn_loops_reduced_idx(d->l, d->r->root, d->at, &idx);
    hn_lower_seed(d->l, d->r->root->out[0], sum);
    hn_lower_store(d->l, &idx, HN_KV_NONE);
    hn_kb_end(b);
}

/* A block along its lines: d->lines of them, from the first to the last of all (rows). */
static void open_lines(line *d, hn_dim rows, uint32_t outer)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_symtab *syms = d->r->g->syms;
    const hn_kv blocks = hn_lower_dim(d->l, hn_dim_ceildiv(syms, rows, d->lines)), block = hn_kb_grid(b, 0, hn_kb_ext(b, blocks, 1));
    d->first = d->tid = hn_kb_threads(b, 0, d->threads);
    hn_kv row = block;
    if (d->lines > 1) {
        const hn_kv sharing = hn_kb_i(b, d->sharing);
        d->tx = hn_kb_idiv(b, d->tid, sharing);
        d->first = hn_kb_imod(b, d->tid, sharing);
        row = hn_kb_add(b, hn_kb_muli(b, block, d->lines), d->tx);
    }
    if (d->lines > 1 && (!hn_dim_is_const(rows) || rows % d->lines != 0)) {
        const hn_kv n = hn_lower_dim(d->l, rows);
        d->live = hn_kb_lt(b, row, n);
        row = hn_kb_min(b, row, hn_kb_addi(b, n, -1));
    }
    hn_loops_split(d->l, d->x, outer, row, d->at);
}

/* A block across neighbouring lines: a strip of them. */
static void open_strip(line *d, hn_dim rest, uint32_t outer, int dense)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_symtab *syms = d->r->g->syms;
    const hn_dim strips = hn_dim_ceildiv(syms, d->x->type.dim[dense], COLUMNS), blocks = hn_dim_mul(syms, rest, strips);
    const hn_kv all = hn_lower_dim(d->l, blocks), wide = hn_lower_dim(d->l, strips), extent = hn_lower_dim(d->l, d->x->type.dim[dense]);
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, all, 1));
    d->tid = hn_kb_threads(b, 0, d->threads);
    d->tx = hn_kb_imod(b, d->tid, hn_kb_i(b, COLUMNS));
    d->first = hn_kb_idiv(b, d->tid, hn_kb_i(b, COLUMNS));
    const hn_kv column = hn_kb_add(b, hn_kb_muli(b, hn_kb_imod(b, block, wide), COLUMNS), d->tx);
    d->live = hn_kb_lt(b, column, extent);
    hn_loops_split(d->l, d->x, outer, hn_kb_idiv(b, block, wide), d->at);
    d->at[dense] = hn_kb_min(b, column, hn_kb_addi(b, extent, -1));
}

/* Opens the block. Threads past the last line repeat it, and store nothing. */
static void open_block(line *d)
{
    const int dense = hn_loops_dense_axis(d->x);
    const uint32_t outer = hn_loops_all(d->x) & ~(1u << d->axis) & ~(1u << dense);
    const hn_dim rest = hn_loops_extent(d->r, d->x, outer);
    d->live = HN_KV_NONE;
    if (d->along) open_lines(d, rest, outer);
    else open_strip(d, rest, outer, dense);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "line_float_block__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    line d = { .l = l, .r = r, .x = hn_in(r->root, 0), .y = r->root->out[0], .axis = axis_of(r), .along = is_along(r),
               .sharing = (int)sharing_of(r, p[P_THREADS]), .lines = (int)lines_of(r, t, p[P_THREADS]),
               .lanes = lanes_of(r, p[P_THREADS]), .held = held_of(r, p[P_THREADS]) };
    d.threads = d.along ? d.lines * d.sharing : (int)p[P_THREADS];
    d.t = hn_lower_compute_type(d.y->type.dtype);
    d.n = hn_lower_dim(l, d.x->type.dim[d.axis]);
    if (d.along ? d.sharing > WARP : d.sharing > 1) d.part = hn_kb_shared(b, "part", d.t, d.along ? d.sharing / WARP : d.threads);
    open_block(&d);
    if (d.held) hold(&d);
    if (reduction(r->root->op) >= 0) reduced_line(&d);
    else if (is_softmax(r->root->op)) softmax_line(&d);
    else normalised_line(&d);
    hn_kb_end(b);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_line_float_block__cuda = {
    .name = "line_float_block__cuda", .rev = 3, .arch = HN_ARCH_SM,
    .fits = fits, .space = space, .cost = cost, .emit = emit,
};
