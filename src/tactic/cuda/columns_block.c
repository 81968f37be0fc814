/* Reductions that keep the densest axis, on a GPU: a block a strip of columns.
 *
 * Threads along x take neighbouring columns, threads along y share the terms of each. A thread keeps a few chains, so that
 * as many loads are under way, and starts them anew every BLOCK_STEPS, as reduce_any_loop does for the sake of rounding.
 * Partial results fold by halves in shared memory: always in the same order.
 */
#include "tactic/cpu/loops.h"

#include <math.h>

enum { P_COLUMNS, P_THREADS };
enum { CHAINS = 4, BLOCK_STEPS = 64, LEAST_TERMS = 16, THREADS_A_CORE = 2048 };
enum { NS_STEP = 300, NS_FOLD = 40, NS_BLOCK = 300 }; /* a step of all chains, a fold with its barrier, the rest of a block */

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (hn_loops_reduction(n->op) < 0) return HN_FIT_OP;
    const hn_value *x = hn_in(n, 0);
    const uint32_t axes = hn_loops_reduced_axes(n);
    const int dense = hn_loops_dense_axis(x);
    if (dense < 0 || axes == 0 || axes >> dense & 1) return HN_FIT_SHAPE;
    if (!hn_dtype_is_float(hn_lower_compute_type(x->type.dtype)) || !hn_lower_can(r, n)) return HN_FIT_DTYPE;
    const hn_dim terms = hn_loops_extent(r, x, axes);
    return hn_dim_is_const(terms) && terms < LEAST_TERMS ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add_list(ret, "columns", 2, (const int64_t[]){ 32, 8 });
    hn_space_add_list(ret, "threads", 2, (const int64_t[]){ 512, 128 });
}

/* Blocks of one wave work side by side; each waits for its loads a step at a time. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const hn_value *x = hn_in(r->root, 0);
    const uint32_t axes = hn_loops_reduced_axes(r->root), dense = 1u << hn_loops_dense_axis(x);
    const double terms = (double)hn_region_opt(r, hn_loops_extent(r, x, axes));
    const double rows = (double)hn_region_opt(r, hn_loops_extent(r, x, hn_loops_all(x) & ~axes & ~dense));
    const double n = (double)hn_region_opt(r, hn_loops_extent(r, x, dense)), tall = (double)(p[P_THREADS] / p[P_COLUMNS]);
    const double blocks = rows * ceil(n / (double)p[P_COLUMNS]);
    const double at_once = (double)t->n_core * (THREADS_A_CORE / (double)p[P_THREADS]);
    const double block = ceil(terms / (tall * CHAINS)) * NS_STEP + log2(tall) * NS_FOLD + NS_BLOCK;
    const double eff = p[P_COLUMNS] == 8 ? 0.5 : 0.7;
    return fmax(hn_roofline_ns(t, w.flops, w.bytes, 0.2, eff), fmax(1, blocks / at_once) * block * t->n_core) + 50;
}

typedef struct strip {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x;
    uint32_t axes;
    int op, columns, tall, part;
    hn_dtype type;
    hn_kv tx, ty, column;
    hn_kv at[HN_MAX_RANK]; /* index into x */
    hn_kvar total, chain[CHAINS];
} strip;

static void add(strip *d, hn_kvar to, hn_kv x)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kb_set(b, to, hn_kb_bin(b, (hn_kop)d->op, hn_kb_get(b, to), x));
}

/* Term k of this thread's column. */
static hn_kv term(strip *d, hn_kv k)
{
    hn_kidx idx;
    hn_lower_forget(d->l);
    hn_loops_split(d->l, d->x, d->axes, k, d->at);
    hn_kidx_init(&idx, d->x->type.rank, d->at);
    const hn_kv x = hn_lower_value(d->l, d->x, &idx, HN_KV_NONE);
    hn_lower_forget(d->l);
    return x;
}

/* This thread's terms into d->total: blocks of whole steps, then what is left. */
static void total(strip *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const int64_t step = (int64_t)d->tall * CHAINS, block = step * BLOCK_STEPS;
    const hn_kv none = hn_loops_identity(b, d->op, d->type, 1);
    const hn_kv n = hn_lower_dim(d->l, hn_loops_extent(d->r, d->x, d->axes));
    const hn_kv whole = hn_kb_sub(b, n, hn_kb_imod(b, n, hn_kb_i(b, step)));

    d->total = hn_kb_var(b, none);
    for (int c = 0; c < CHAINS; c++) d->chain[c] = hn_kb_var(b, none);
    const hn_kv lo = hn_kb_for(b, hn_kb_i(b, 0), whole, block);
    for (int c = 0; c < CHAINS; c++) hn_kb_set(b, d->chain[c], none);
    const hn_kv k = hn_kb_for(b, hn_kb_add(b, lo, d->ty), hn_kb_min(b, hn_kb_addi(b, lo, block), whole), step);
    for (int c = 0; c < CHAINS; c++) add(d, d->chain[c], term(d, hn_kb_addi(b, k, (int64_t)c * d->tall)));
    hn_kb_end(b);
    for (int c = 0; c < CHAINS; c++) add(d, d->total, hn_kb_get(b, d->chain[c]));
    hn_kb_end(b);
    const hn_kv left = hn_kb_for(b, hn_kb_add(b, whole, d->ty), n, d->tall);
    add(d, d->total, term(d, left));
    hn_kb_end(b);
}

/* Totals of the threads of a column into the first one's place. */
static void fold(strip *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv mine = hn_kb_add(b, hn_kb_muli(b, d->ty, d->columns), d->tx);

    hn_kb_store(b, d->part, mine, hn_kb_get(b, d->total));
    hn_kb_barrier(b);
    for (int half = d->tall / 2; half; half /= 2) {
        hn_kb_if(b, hn_kb_lt(b, d->ty, hn_kb_i(b, half)));
        const hn_kv theirs = hn_kb_addi(b, mine, (int64_t)half * d->columns);
        const hn_kv x = hn_kb_load(b, d->part, mine, 1), y = hn_kb_load(b, d->part, theirs, 1);
        hn_kb_store(b, d->part, mine, hn_kb_bin(b, (hn_kop)d->op, x, y));
        hn_kb_end(b);
        hn_kb_barrier(b);
    }
}

/* Opens the block. Threads past the last column repeat its work, and store nothing. */
static hn_kv open_block(strip *d)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_symtab *syms = d->r->g->syms;
    const int dense = hn_loops_dense_axis(d->x);
    const uint32_t outer = hn_loops_all(d->x) & ~d->axes & ~(1u << dense);
    const hn_dim n = d->x->type.dim[dense], strips = hn_dim_ceildiv(syms, n, d->columns);
    const hn_kv extent = hn_lower_dim(d->l, n), wide = hn_lower_dim(d->l, strips);
    const hn_kv blocks = hn_lower_dim(d->l, hn_dim_mul(syms, hn_loops_extent(d->r, d->x, outer), strips));
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, blocks, 1));

    d->ty = hn_kb_threads(b, 1, d->tall);
    d->tx = hn_kb_threads(b, 0, d->columns);
    d->column = hn_kb_add(b, hn_kb_muli(b, hn_kb_imod(b, block, wide), d->columns), d->tx);
    hn_loops_split(d->l, d->x, outer, hn_kb_idiv(b, block, wide), d->at);
    d->at[dense] = hn_kb_min(b, d->column, hn_kb_addi(b, extent, -1));
    return hn_kb_lt(b, d->column, extent);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "reduce_float_columns__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    strip d = { .l = l, .r = r, .x = hn_in(r->root, 0), .axes = hn_loops_reduced_axes(r->root),
                .op = hn_loops_reduction(r->root->op), .columns = (int)p[P_COLUMNS],
                .tall = (int)(p[P_THREADS] / p[P_COLUMNS]) };
    d.type = hn_lower_compute_type(d.x->type.dtype);
    d.part = hn_kb_shared(b, "part", d.type, (int64_t)d.tall * d.columns);
    const hn_kv inside = open_block(&d);
    hn_kidx idx;
    total(&d);
    fold(&d);
    hn_kb_if(b, hn_kb_and(b, inside, hn_kb_eq(b, d.ty, hn_kb_i(b, 0))));
    hn_loops_reduced_idx(l, r->root, d.at, &idx);
    hn_lower_seed(l, r->root->out[0], hn_kb_load(b, d.part, d.tx, 1));
    hn_lower_store(l, &idx, HN_KV_NONE);
    for (int i = 0; i < 4; i++) hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_reduce_float_columns__cuda = {
    .name = "reduce_float_columns__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .space = space, .cost = cost, .emit = emit,
};
