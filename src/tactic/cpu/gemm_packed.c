/* Matrix product with constant weights: B packed when building, A packed per row block, register-blocked
 * microkernel.
 *
 *     for each tile (row block of mc, run of panels)            parallel
 *         pack A[mc, K] as [mc/mr][K][mr]                       into this thread's scratch
 *         for each panel of nr columns
 *             for each mr rows: mr*nv accumulators over all K (totals.h), epilogue, store
 *
 * K is not split: the B panel (K*nr*4 bytes) and the A block stay in the second-level cache, whose bandwidth
 * is far above what mr*nv multiply-adds a step need; only registers and first-level lines are blocked for.
 * Goto and van de Geijn (2008) with kc = K. Rows of A are used in place of a packed copy where that is as
 * good (few column panels).
 */
#include "tactic/cpu/ahead.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"
#include "tactic/cpu/totals.h"

#include <string.h>

enum { P_MR, P_NV, P_PACK, P_UNROLL, P_AHEAD, P_ROWS, P_TILES };
enum { UNROLL = 4, PIECES = 8, MAX_ROWS = 16, MAX_NV = 8, MAX_SUMS = MAX_ROWS * MAX_NV, USUAL_ROWS = 32 };

/* ---- what fits ---- */
typedef struct shape {
    int64_t n, k;
    hn_dim m; /* rows: all leading axes of A together */
    int64_t m_opt;
    bool tb;
} shape;

static bool shape_of(const hn_region *r, shape *s)
{
    const hn_value *a = hn_in(r->root, 0), *b = hn_in(r->root, 1);
    s->tb = hn_attr_i(r->root, "trans_b");
    s->k = a->type.dim[a->type.rank - 1];
    s->n = r->root->out[0]->type.dim[r->root->out[0]->type.rank - 1];
    if (b->type.rank != 2 || s->k <= 0 || s->n <= 0) return false;
    s->m = hn_loops_extent(r, a, hn_loops_all(a) & ~(1u << (a->type.rank - 1)));
    s->m_opt = hn_region_opt(r, s->m);
    /* Nobody said how many rows are usual: tiles for some, single rows still run at one row's speed. */
    if (!hn_dim_is_const(s->m) && s->m_opt <= 1) s->m_opt = USUAL_ROWS;
    return true;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    shape s;
    (void)t;
    if (r->root->op != HN_OP_matmul) return HN_FIT_OP;
    const hn_value *a = hn_in(r->root, 0), *b = hn_in(r->root, 1);
    const int ib = hn_region_operand(r, b), ia = hn_region_operand(r, a);
    if (a->type.dtype != HN_F32 || b->type.dtype != HN_F32) return HN_FIT_DTYPE;
    if (hn_attr_i(r->root, "trans_a")) return HN_FIT_ATTRIBUTE;
    if (ib < 0 || !r->data[ib]) return HN_FIT_NOT_CONST;
    if (ia < 0 || !hn_layout_is_plain(&a->layout) || !hn_layout_is_plain(&r->root->out[0]->layout))
        return HN_FIT_LAYOUT;
    if (!shape_of(r, &s)) return HN_FIT_SHAPE;
    if (!hn_lower_can(r, r->root)) return HN_FIT_EPILOGUE;
    return s.k < 4 ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t wide[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14 }, narrow[] = { 1, 2, 3, 4, 5, 6 };
    static const int64_t nv[] = { 1, 2, 3, 4, 6 }, pack[] = { 0, 1 };
    (void)r;
    if (t->n_vreg >= 32)
        hn_space_add_list(ret, "mr", HN_COUNT(wide), wide);
    else
        hn_space_add_list(ret, "mr", HN_COUNT(narrow), narrow);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 5 : 3, nv);
    hn_space_add_list(ret, "pack", 2, pack);
    hn_space_add_settled(ret, "unroll", 4, (const int64_t[]){ UNROLL, 1, 2, 8 });
    hn_space_add_settled(ret, "ahead", 2, (const int64_t[]){ 1, 0 });
    hn_space_add_settled(ret, "rows", 6, (const int64_t[]){ 0, 24, 48, 96, 192, 384 });
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ PIECES, 1, 2, 4, 16 });
}

/* Rows of a tile: what the route says, or a third of the second-level cache, shared out evenly. */
static int64_t row_block(const shape *s, const hn_target *t, const int64_t *p)
{
    enum { MOST = 192, LEAST = 24 };
    const int64_t mr = p[P_MR], room = HN_MAX(LEAST, HN_MIN(MOST, t->l2_bytes / 3 / (4 * s->k))),
                  fit = p[P_ROWS] ? p[P_ROWS] : room;
    const int64_t blocks = (HN_MAX(s->m_opt, 1) + fit - 1) / fit,
                  even = (HN_MAX(s->m_opt, 1) + blocks - 1) / blocks;
    const int64_t mc = hn_dim_is_const(s->m) || s->m_opt > fit ? even : fit;
    return (mc + mr - 1) / mr * mr;
}

/* Accumulators, B vectors and one broadcast must fit the registers; ten chains hide the latency of two
 * multiply-add pipes. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    if (!shape_of(r, &s)) return false;
    const int64_t lanes = t->vec_bytes / 4, chains = p[P_MR] * p[P_NV];
    if (chains + p[P_NV] + 1 > t->n_vreg) return false;
    if (p[P_UNROLL] > s.k) return false;
    if (p[P_MR] > s.m_opt && p[P_MR] > 1) return false;
    if (p[P_NV] > 1 && (p[P_NV] - 1) * lanes >= s.n) return false;
    if (p[P_PACK] && (s.m_opt < 2 * p[P_MR] || hn_cycles_conflict(t, p[P_MR], 4 * s.k) <= 1)) return false;
    return chains >= 8 || p[P_MR] >= s.m_opt || (p[P_NV] + 1) * lanes > s.n;
}

static double tile_cycles(const hn_target *t, int64_t rows, int64_t nv, int64_t k, double shared)
{
    const double step = hn_cycles_step(t, rows, nv, t->vec_bytes / 4, k, hn_cycles_split(rows * nv, k));
    return (double)k * shared * step + 2.0 * (double)(rows * nv) + 20;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    shape_of(r, &s);
    const int64_t lanes = t->vec_bytes / 4, nr = p[P_NV] * lanes, mc = row_block(&s, t, p);
    const int64_t full = s.m_opt / p[P_MR], rest = s.m_opt % p[P_MR], left = s.n % nr;
    const double shared = p[P_PACK] ? 1 : hn_cycles_conflict(t, p[P_MR], 4 * s.k);
    double cycles = 0;
    for (int last = 0; last < 2; last++) {
        const int64_t nv = last ? (left + lanes - 1) / lanes : p[P_NV], count = last ? left > 0 : s.n / nr;
        cycles += (double)count * ((double)full * tile_cycles(t, p[P_MR], nv, s.k, shared) +
                                   (rest ? tile_cycles(t, rest, nv, s.k, shared) : 0));
    }
    const double columns = (double)((s.n + nr - 1) / nr * nr), blocks = (double)((s.m_opt + mc - 1) / mc);
    const double memory = 4 * (double)s.k * columns * (0.5 + 0.1 * blocks) / t->bandwidth_gbs;
    const double fma = cycles / hn_cycles_ghz(t) / 0.93;
    return (fma > memory ? fma + 0.2 * memory : memory + 0.2 * fma) +
           (p[P_PACK] ? (double)(s.m_opt * s.k) * 0.15 : 0) + 150;
}

/* ---- emission ---- */
typedef struct gemm {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    shape s;
    int mr, nv, lanes, unroll;
    bool pack;
    int a, panel, scratch; /* buffers */
    hn_kv m, row0, col0;   /* rows in all; first row and column of the tile under way */
    hn_ahead ahead;
    hn_totals totals;
    hn_kv a_base, b_base; /* element offsets of the microkernel's operands */
} gemm;

/* Vectors of a panel that hold columns. */
static int vectors(const gemm *g, bool last_panel)
{
    return last_panel ? (int)((g->s.n % (g->nv * g->lanes) + g->lanes - 1) / g->lanes) : g->nv;
}

/* One k step: nv loads of B, a broadcast of A for each row. */
static void step(gemm *g, int rows, int nv, hn_kvar *acc, hn_kv a_at, hn_kv b_at)
{
    hn_kb *b = g->b;
    hn_kv bv[MAX_NV];
    for (int v = 0; v < nv; v++)
        bv[v] = hn_kb_load(b, g->panel, hn_kb_addi(b, b_at, v * g->lanes), g->lanes);
    for (int i = 0; i < rows; i++) {
        const hn_kv at = hn_kb_addi(b, a_at, g->pack ? i : (int64_t)i * g->s.k);
        const hn_kv av = hn_kb_load_splat(b, g->pack ? g->scratch : g->a, at, g->lanes);
        for (int v = 0; v < nv; v++) {
            hn_kvar *x = &acc[i * g->nv + v];
            hn_kb_set(b, *x, hn_kb_fma(b, av, bv[v], hn_kb_get(b, *x)));
        }
    }
}

static void store_rows(gemm *g, int rows, const hn_kvar *acc, bool last_panel)
{
    hn_kb *b = g->b;
    const hn_value *y = g->r->root->out[0];
    const int rank = y->type.rank;
    const uint32_t outer = hn_loops_all(y) & ~(1u << (rank - 1));
    for (int i = 0; i < rows; i++) {
        hn_kv at[HN_MAX_RANK];
        if (rank > 1) hn_loops_split(g->l, y, outer, hn_kb_addi(b, g->row0, i), at);
        for (int v = 0; v < vectors(g, last_panel); v++) {
            const int64_t left = g->s.n % (g->nv * g->lanes) - (int64_t)v * g->lanes;
            at[rank - 1] = hn_kb_addi(b, g->col0, (int64_t)v * g->lanes);
            hn_kidx idx;
            hn_kidx_init(&idx, rank, at);
            hn_kidx_vector(&idx, rank - 1, g->lanes);
            idx.aligned = true;
            hn_kv mask = HN_KV_NONE;
            if (last_panel && left < g->lanes)
                mask = hn_kb_tail_mask(b, hn_kb_i(b, 0), hn_kb_i(b, left), g->lanes);
            hn_lower_seed(g->l, y, hn_kb_get(b, acc[i * g->nv + v]));
            hn_lower_store(g->l, &idx, mask);
        }
    }
}

/* Partial sums joined pairwise into the first `n` variables. */
static void join_sums(hn_kb *b, hn_kvar *acc, int n, int split)
{
    for (int half = split / 2; half > 0; half /= 2)
        for (int i = 0; i < n * half; i++)
            hn_kb_set(b, acc[i], hn_kb_add(b, hn_kb_get(b, acc[i]), hn_kb_get(b, acc[i + n * half])));
}

/* Steps [from, to) of a panel, `unroll` at a time, into `split` sums a result. */
static void steps(gemm *g, int rows, bool last_panel, hn_kvar *acc, int split, hn_kv from, hn_kv to)
{
    hn_kb *b = g->b;
    const int n = rows * g->nv, unroll = HN_MAX(g->unroll, split);
    const int64_t nr = (int64_t)g->nv * g->lanes, a_step = g->pack ? g->mr : 1;
    const hn_kv k = hn_kb_for(b, from, to, unroll);
    hn_ahead_step(b, &g->ahead, hn_kb_muli(b, k, nr));
    for (int u = 0; u < unroll; u++) {
        const hn_kv ku = hn_kb_addi(b, k, u);
        step(g, rows, vectors(g, last_panel), acc + u % split * n, hn_kb_add(b, g->a_base, hn_kb_muli(b, ku, a_step)),
             hn_kb_add(b, g->b_base, hn_kb_muli(b, ku, nr)));
    }
    hn_kb_end(b);
}

/* The same a block of steps after the other. */
static void blocks(gemm *g, int rows, bool last_panel, hn_kvar *acc, int split, int64_t whole)
{
    hn_kb *b = g->b;
    const int n = rows * g->nv;
    hn_totals_clear(&g->totals, n);
    const hn_kv from = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, whole), HN_TOTALS_BLOCK);
    for (int i = n; i < n * split; i++) hn_kb_set(b, acc[i], hn_kb_float(b, HN_F32, g->lanes, 0));
    steps(g, rows, last_panel, acc, split, from, hn_kb_min(b, hn_kb_addi(b, from, HN_TOTALS_BLOCK), hn_kb_i(b, whole)));
    join_sums(b, acc, n, split);
    hn_totals_add(&g->totals, acc, n);
    hn_kb_end(b);
    for (int i = n; i < n * split; i++) hn_kb_set(b, acc[i], hn_kb_float(b, HN_F32, g->lanes, 0));
}

/* rows x nr results over all of K. */
static void micro(gemm *g, int rows, bool last_panel)
{
    hn_kb *b = g->b;
    hn_kvar acc[MAX_SUMS];
    const int n = rows * g->nv, split = hn_cycles_split((int64_t)rows * vectors(g, last_panel), g->s.k);
    const int64_t unroll = HN_MAX(g->unroll, split), nr = (int64_t)g->nv * g->lanes, whole = g->s.k / unroll * unroll;
    for (int i = 0; i < n * split; i++)
        acc[i] = hn_kb_var(b, hn_kb_float(b, HN_F32, g->lanes, 0));
    if (g->totals.buf >= 0)
        blocks(g, rows, last_panel, acc, split, whole);
    else
        steps(g, rows, last_panel, acc, split, hn_kb_i(b, 0), hn_kb_i(b, whole));
    for (int64_t ku = whole; ku < g->s.k; ku++)
        step(g, rows, vectors(g, last_panel), acc + ku % split * n, hn_kb_addi(b, g->a_base, ku * (g->pack ? g->mr : 1)),
             hn_kb_addi(b, g->b_base, ku * nr));
    join_sums(b, acc, n, split);
    hn_totals_take(&g->totals, acc, n);
    store_rows(g, rows, acc, last_panel);
}

/* Columns: whole panels, then the one that N does not fill. */
static void both_panels(gemm *g, int rows, hn_kv is_last)
{
    const int64_t nr = (int64_t)g->nv * g->lanes;
    if (g->s.n % nr == 0) {
        micro(g, rows, false);
        return;
    }
    if (g->s.n < nr) {
        micro(g, rows, true);
        return;
    }
    hn_kb_if(g->b, is_last);
    micro(g, rows, true);
    hn_kb_else(g->b);
    micro(g, rows, false);
    hn_kb_end(g->b);
}

static void at_row(gemm *g, hn_kv first, hn_kv row)
{
    hn_kb *b = g->b;
    g->row0 = hn_kb_add(b, first, row);
    g->a_base = g->pack ? hn_kb_muli(b, row, g->s.k) : hn_kb_muli(b, g->row0, g->s.k);
    const int64_t panel = (int64_t)g->nv * g->lanes * g->s.k;
    hn_ahead_tile(b, &g->ahead, panel, hn_kb_addi(b, g->b_base, panel),
                  hn_kb_idiv(b, row, hn_kb_i(b, g->mr)));
}

/* Fewer than mr rows of a matrix whose extent is not known, or a tile moved back over finished ones. The
 * packed copy of a part block interleaves mr rows, so both read A itself. */
static void rest_of_block(gemm *g, hn_kv first, hn_kv whole, hn_kv count, hn_kv is_last)
{
    hn_kb *b = g->b;
    const bool pack = g->pack;
    g->pack = false;
    hn_kb_if(b, hn_kb_lt(b, whole, count));
    hn_kb_if(b, hn_kb_ge(b, g->m, hn_kb_i(b, g->mr)));
    at_row(g, first, hn_kb_addi(b, count, -g->mr));
    both_panels(g, g->mr, is_last);
    hn_kb_else(b);
    const hn_kv j = hn_kb_for(b, whole, count, 1);
    at_row(g, first, j);
    both_panels(g, 1, is_last);
    hn_kb_end(b);
    hn_kb_end(b);
    hn_kb_end(b);
    g->pack = pack;
}

/* Row blocks of mr, then what is left: a tile of its size when M is known. */
static void rows_of_block(gemm *g, hn_kv first, hn_kv count, hn_kv is_last)
{
    hn_kb *b = g->b;
    const hn_kv whole = hn_kb_sub(b, count, hn_kb_imod(b, count, hn_kb_i(b, g->mr)));
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), whole, g->mr);
    at_row(g, first, i);
    both_panels(g, g->mr, is_last);
    hn_kb_end(b);
    if (g->mr == 1) return;
    if (!hn_dim_is_const(g->s.m)) {
        rest_of_block(g, first, whole, count, is_last);
    } else if (g->s.m % g->mr) {
        hn_kb_if(b, hn_kb_lt(b, whole, count));
        at_row(g, first, whole);
        both_panels(g, (int)(g->s.m % g->mr), is_last);
        hn_kb_end(b);
    }
}

/* [mc/mr][K][mr]; rows past M repeat the last one, their results are never stored. */
static void pack_a(gemm *g, hn_kv first, hn_kv count)
{
    hn_kb *b = g->b;
    const hn_kv blocks = hn_kb_idiv(b, hn_kb_addi(b, count, g->mr - 1), hn_kb_i(b, g->mr));
    const hn_kv blk = hn_kb_forn(b, blocks);
    const hn_kv base = hn_kb_muli(b, blk, (int64_t)g->mr * g->s.k);
    hn_kv src[MAX_ROWS];
    for (int i = 0; i < g->mr; i++) {
        const hn_kv row = hn_kb_add(b, first, hn_kb_addi(b, hn_kb_muli(b, blk, g->mr), i));
        src[i] = hn_kb_muli(b, hn_kb_min(b, row, hn_kb_addi(b, g->m, -1)), g->s.k);
    }
    const hn_kv k = hn_kb_fori(b, g->s.k);
    const hn_kv dst = hn_kb_add(b, base, hn_kb_muli(b, k, g->mr));
    for (int i = 0; i < g->mr; i++)
        hn_kb_store(b, g->scratch, hn_kb_addi(b, dst, i), hn_kb_load(b, g->a, hn_kb_add(b, src[i], k), 1));
    hn_kb_end(b);
    hn_kb_end(b);
}

enum { PANELS_PER_TILE_BYTES = 512 << 10 };

/* Panels of one tile: enough tiles to balance threads, few enough to reuse the packed rows. */
static int64_t panels_per_tile(const gemm *g, int64_t mc, int64_t panels, int64_t pieces)
{
    const int64_t m_blocks = HN_MAX(1, (g->s.m_opt + mc - 1) / mc);
    const int64_t want = m_blocks >= pieces ? 1 : (pieces + m_blocks - 1) / m_blocks; /* column tiles a row block */
    return HN_MAX(1, (panels + want - 1) / want);
}

static void tiles(gemm *g, int64_t mc, int64_t pieces)
{
    hn_kb *b = g->b;
    hn_symtab *syms = g->r->g->syms;
    const int64_t nr = (int64_t)g->nv * g->lanes, panels = (g->s.n + nr - 1) / nr,
                  per = panels_per_tile(g, mc, panels, pieces);
    const int64_t col_tiles = (panels + per - 1) / per;
    const hn_kv total = hn_lower_dim(g->l, hn_dim_mul(syms, hn_dim_ceildiv(syms, g->s.m, mc), col_tiles));
    g->m = hn_lower_dim(g->l, g->s.m);
    const hn_kv tile = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv first = hn_kb_muli(b, hn_kb_idiv(b, tile, hn_kb_i(b, col_tiles)), mc);
    const hn_kv count = hn_kb_min(b, hn_kb_i(b, mc), hn_kb_sub(b, g->m, first));
    const hn_kv p0 = hn_kb_muli(b, hn_kb_imod(b, tile, hn_kb_i(b, col_tiles)), per);
    const hn_kv p1 = hn_kb_min(b, hn_kb_addi(b, p0, per), hn_kb_i(b, panels));
    if (g->pack) pack_a(g, first, count);
    const hn_kv panel = hn_kb_for(b, p0, p1, 1);
    g->col0 = hn_kb_muli(b, panel, nr);
    g->b_base = hn_kb_muli(b, panel, nr * g->s.k);
    rows_of_block(g, first, count, hn_kb_eq(b, panel, hn_kb_i(b, panels - 1)));
    hn_kb_end(b);
}

static size_t packed_bytes(const shape *s, int64_t nr)
{
    return (size_t)((s->n + nr - 1) / nr * nr * s->k * 4);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "gemm_f32_packed__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    gemm g = { .l = l,
               .b = b,
               .r = r,
               .mr = (int)p[P_MR],
               .nv = (int)p[P_NV],
               .lanes = t->vec_bytes / 4,
               .unroll = (int)p[P_UNROLL],
               .pack = p[P_PACK] };
    shape_of(r, &g.s);
    const int64_t mc = row_block(&g.s, t, p), nr = (int64_t)g.nv * g.lanes;
    const char *recipe = hn_arena_printf(ret->arena, "gemm_b_f32_n%lld_t%d", (long long)nr, g.s.tb);
    const hn_blob blob = { hn_region_operand(r, hn_in(r->root, 1)), recipe, packed_bytes(&g.s, nr) };
    if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    g.a = hn_lower_in(l, hn_region_operand(r, hn_in(r->root, 0)));
    g.panel = hn_lower_blob(l, 0, HN_F32);
    hn_kb_align(b, g.panel, 64);
    const int64_t passes = (HN_MIN(mc, g.s.m_opt) + g.mr - 1) / g.mr;
    hn_ahead_init(&g.ahead, t, g.panel, sizeof(float), nr * g.s.k, (g.s.n + nr - 1) / nr, passes,
                  g.unroll * nr);
    g.ahead.on &= p[P_AHEAD] != 0;
    if (g.pack) g.scratch = hn_kb_scratch(b, "a", HN_F32, hn_kext_const(mc * g.s.k));
    g.totals = hn_totals_new(b, g.mr * g.nv, g.lanes, g.s.k, HN_TOTALS_BLOCK);
    tiles(&g, mc, p[P_TILES]);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [N/nr][K][nr], columns past N zero. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst,
                        hn_diag *dg)
{
    shape s;
    (void)i;
    (void)dg;
    shape_of(r, &s);
    const int64_t nr = p[P_NV] * (t->vec_bytes / 4), panels = (s.n + nr - 1) / nr;
    const float *src = r->data[hn_region_operand(r, hn_in(r->root, 1))]->at;
    float *out = dst;
    for (int64_t q = 0; q < panels; q++)
        for (int64_t k = 0; k < s.k; k++)
            for (int64_t j = 0; j < nr; j++, out++) {
                const int64_t col = q * nr + j;
                *out = col >= s.n ? 0 : s.tb ? src[col * s.k + k] : src[k * s.n + col];
            }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_gemm_f32_packed__cpu = {
    .name = "gemm_f32_packed__cpu",
    .rev = 4,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2 | HN_FEAT_FMA,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_gemm_packed,
    .pin = { [P_MR] = HN_KNOB_gemm_mr, [P_NV] = HN_KNOB_gemm_nv, [P_PACK] = HN_KNOB_gemm_pack,
             [P_UNROLL] = HN_KNOB_gemm_unroll, [P_AHEAD] = HN_KNOB_gemm_ahead, [P_ROWS] = HN_KNOB_gemm_rows,
             [P_TILES] = HN_KNOB_gemm_tiles },
};
