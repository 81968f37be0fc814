/* Matrix products of two computed operands, batched, either transposed: what attention does.
 *
 *     for each tile (batch, block of rows, panel of columns)         parallel
 *         [pack the panel of B as [K][nr]]                           where B is transposed or a copy reads
 * better for each mr rows of the block acc[mr][nr] += A[row, k] * B[k, panel] epilogue(acc) -> y
 *
 * Any extent may be symbolic. Rows that mr does not divide are covered by a tile moved back over finished
 * rows; columns past N are masked in the last panel.
 */
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"
#include "tactic/cpu/square.h"
#include "tactic/cpu/totals.h"

enum { P_MR, P_NV, P_PACK };
enum { UNROLL = 4, MAX_ROWS = 14, MAX_NV = 4, MAX_BATCH = HN_MAX_RANK };

typedef struct shape {
    const hn_value *a, *b, *y;
    bool ta, tb;
    hn_dim m, n, k;
    int64_t m_opt, n_opt, k_opt, batch_opt;
} shape;

static int64_t usual(const hn_region *r, hn_dim d)
{
    enum { USUAL_EXTENT = 64 };
    const int64_t v = hn_region_opt(r, d);
    return hn_dim_is_const(d) || v > 1 ? HN_MAX(v, 1) : USUAL_EXTENT;
}

static bool shape_of(const hn_region *r, shape *s)
{
    s->a = hn_in(r->root, 0);
    s->b = hn_in(r->root, 1);
    s->y = r->root->out[0];
    const int ra = s->a->type.rank, rb = s->b->type.rank, ry = s->y->type.rank;
    if (ra < 2 || rb < 2 || ry != HN_MAX(ra, rb)) return false;
    s->ta = hn_attr_i(r->root, "trans_a");
    s->tb = hn_attr_i(r->root, "trans_b");
    s->m = s->y->type.dim[ry - 2];
    s->n = s->y->type.dim[ry - 1];
    s->k = s->a->type.dim[s->ta ? ra - 2 : ra - 1];
    s->m_opt = usual(r, s->m);
    s->n_opt = usual(r, s->n);
    s->k_opt = usual(r, s->k);
    s->batch_opt = 1;
    for (int i = 0; i < ry - 2; i++)
        s->batch_opt *= HN_MAX(1, hn_region_opt(r, s->y->type.dim[i]));
    return true;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    shape s;
    (void)t;
    if (r->root->op != HN_OP_matmul) return HN_FIT_OP;
    if (hn_in(r->root, 0)->type.dtype != HN_F32 || hn_in(r->root, 1)->type.dtype != HN_F32)
        return HN_FIT_DTYPE;
    if (!shape_of(r, &s)) return HN_FIT_SHAPE;
    const hn_value *v[3] = { s.a, s.b, s.y };
    for (int i = 0; i < 3; i++) {
        if (i < 2 && hn_region_operand(r, v[i]) < 0) return HN_FIT_EPILOGUE;
        if (!hn_layout_is_plain(&v[i]->layout)) return HN_FIT_LAYOUT;
    }
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t wide[] = { 1, 2, 4, 6, 7, 8, 10, 12, 14 }, narrow[] = { 1, 2, 4, 6 },
                         nv[] = { 1, 2, 3, 4 }, pack[] = { 0, 1 };
    (void)r;
    if (t->n_vreg >= 32)
        hn_space_add_list(ret, "mr", HN_COUNT(wide), wide);
    else
        hn_space_add_list(ret, "mr", HN_COUNT(narrow), narrow);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 4 : 3, nv);
    hn_space_add_list(ret, "pack", 2, pack);
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    if (!shape_of(r, &s)) return false;
    const int64_t lanes = t->vec_bytes / 4, acc = p[P_MR] * p[P_NV];
    if (acc + p[P_NV] + 1 > t->n_vreg || (p[P_MR] > s.m_opt && p[P_MR] > 1)) return false;
    if (p[P_NV] > 1 && (p[P_NV] - 1) * lanes >= s.n_opt) return false;
    if (s.tb ? !p[P_PACK] : p[P_PACK] && s.m_opt < 4 * p[P_MR]) return false;
    return acc >= 8 || p[P_MR] >= s.m_opt || (p[P_NV] + 1) * lanes > s.n_opt;
}

enum { TILES_PER_CORE = 4, LEAST_ROWS = 24 };

/* Rows of a tile: all of them unless threads would idle; a packed panel wants many. */
static int64_t row_block(const shape *s, const hn_target *t, const int64_t *p)
{
    const int64_t panels = (s->n_opt + p[P_NV] * t->vec_bytes / 4 - 1) / (p[P_NV] * t->vec_bytes / 4);
    const int64_t have = s->batch_opt * panels, want = TILES_PER_CORE * HN_MAX(1, t->n_core);
    int64_t mc = have >= want ? HN_MAX(s->m_opt, LEAST_ROWS) : HN_MAX(LEAST_ROWS, s->m_opt * have / want);
    mc = HN_MIN(mc, 512);
    return (mc + p[P_MR] - 1) / p[P_MR] * p[P_MR];
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    shape_of(r, &s);
    const int64_t lanes = t->vec_bytes / 4, nr = p[P_NV] * lanes, panels = (s.n_opt + nr - 1) / nr;
    const int64_t mc = row_block(&s, t, p), tiles = (s.m_opt + p[P_MR] - 1) / p[P_MR];
    const double shared =
        hn_cycles_conflict(t, p[P_MR], 4 * (s.ta ? 1 : s.k_opt)) * (p[P_PACK] || s.n_opt % 1024 ? 1 : 1.3);
    const double tile = (double)s.k_opt * hn_cycles_step(t, p[P_MR], p[P_NV], lanes, s.k_opt, 1) * shared +
                        2.0 * (double)(p[P_MR] * p[P_NV]) + 25;
    const double packs =
        p[P_PACK] ? (double)((s.m_opt + mc - 1) / mc * panels * nr * s.k_opt) * (s.tb ? 0.5 : 0.1) : 0;
    const double tail = s.n_opt % nr ? 1.1 : 1; /* masked loads and stores */
    return (double)s.batch_opt * ((double)(panels * tiles) * tile * tail + packs) / hn_cycles_ghz(t) / 0.9 +
           150;
}

/* ---- emission ---- */
typedef struct product {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    shape s;
    int mr, nv, lanes;
    bool pack, tail; /* tail: the panel may reach past N */
    hn_totals totals;
    int a, bb, scratch;
    hn_kv m, n, k;
    hn_kv a_base, b_base, a_row, a_k, b_row,
        b_k;               /* strides: rows of the product, steps of the reduction, columns */
    hn_kv at[HN_MAX_RANK]; /* batch indices of the tile */
    hn_kv col;
} product;

static hn_kv column_mask(const product *g, int v)
{
    if (!g->tail) return HN_KV_NONE;
    return hn_kb_tail_mask(g->b, hn_kb_addi(g->b, g->col, (int64_t)v * g->lanes), g->n, g->lanes);
}

static void step(const product *g, int rows, hn_kvar *acc, hn_kv row0, hn_kv k)
{
    hn_kb *b = g->b;
    hn_kv bv[MAX_NV];
    for (int v = 0; v < g->nv; v++) {
        const int64_t off = (int64_t)v * g->lanes;
        if (g->pack)
            bv[v] = hn_kb_load(b, g->scratch, hn_kb_addi(b, hn_kb_muli(b, k, (int64_t)g->nv * g->lanes), off),
                               g->lanes);
        else
            bv[v] = hn_kb_loadm(
                b, g->bb,
                hn_kb_addi(b, hn_kb_add(b, hn_kb_add(b, g->b_base, g->col), hn_kb_mul(b, k, g->b_k)), off),
                g->lanes, column_mask(g, v));
    }
    const hn_kv at = hn_kb_add(b, g->a_base, hn_kb_mul(b, k, g->a_k));
    for (int i = 0; i < rows; i++) {
        const hn_kv a = hn_kb_load_splat(
            b, g->a, hn_kb_add(b, at, hn_kb_mul(b, hn_kb_addi(b, row0, i), g->a_row)), g->lanes);
        for (int v = 0; v < g->nv; v++) {
            hn_kvar *x = &acc[i * g->nv + v];
            hn_kb_set(b, *x, hn_kb_fma(b, a, bv[v], hn_kb_get(b, *x)));
        }
    }
}

/* Steps [from, to), UNROLL at a time. */
static void steps(const product *g, int rows, hn_kvar *acc, hn_kv row0, hn_kv from, hn_kv to)
{
    hn_kb *b = g->b;
    const hn_kv k = hn_kb_for(b, from, to, UNROLL);
    for (int u = 0; u < UNROLL; u++)
        step(g, rows, acc, row0, hn_kb_addi(b, k, u));
    hn_kb_end(b);
}

/* The sums of a tile over all of K. */
static void sums(const product *g, int rows, hn_kvar *acc, hn_kv row0)
{
    hn_kb *b = g->b;
    const int n = rows * g->nv;
    const hn_kv whole = hn_kb_sub(b, g->k, hn_kb_imod(b, g->k, hn_kb_i(b, UNROLL)));
    for (int i = 0; i < n; i++)
        acc[i] = hn_kb_var(b, hn_kb_float(b, HN_F32, g->lanes, 0));
    hn_totals_clear(&g->totals, n);
    if (g->totals.buf < 0) {
        steps(g, rows, acc, row0, hn_kb_i(b, 0), whole);
    } else {
        const hn_kv from = hn_kb_for(b, hn_kb_i(b, 0), whole, HN_TOTALS_BLOCK);
        steps(g, rows, acc, row0, from, hn_kb_min(b, hn_kb_addi(b, from, HN_TOTALS_BLOCK), whole));
        hn_totals_add(&g->totals, acc, n);
        hn_kb_end(b);
    }
    const hn_kv rest = hn_kb_for(b, whole, g->k, 1);
    step(g, rows, acc, row0, rest);
    hn_kb_end(b);
    hn_totals_take(&g->totals, acc, n);
}

static void tile(product *g, int rows, hn_kv row0)
{
    hn_kb *b = g->b;
    const int rank = g->s.y->type.rank;
    hn_kvar acc[MAX_ROWS * MAX_NV];
    sums(g, rows, acc, row0);
    for (int i = 0; i < rows; i++)
        for (int v = 0; v < g->nv; v++) {
            hn_kidx idx;
            g->at[rank - 2] = hn_kb_addi(b, row0, i);
            g->at[rank - 1] = hn_kb_addi(b, g->col, (int64_t)v * g->lanes);
            hn_kidx_init(&idx, rank, g->at);
            hn_kidx_vector(&idx, rank - 1, g->lanes);
            idx.aligned = true;
            hn_lower_seed(g->l, g->s.y, hn_kb_get(b, acc[i * g->nv + v]));
            hn_lower_store(g->l, &idx, column_mask(g, v));
        }
}

/* Square block of a transposed panel: rows of B in, columns out. */
static void pack_square(const product *g, hn_kv k, int v)
{
    hn_kb *b = g->b;
    hn_kv x[HN_SQUARE_MAX];
    const int64_t nr = (int64_t)g->nv * g->lanes;
    for (int j = 0; j < g->lanes; j++) {
        const hn_kv column = hn_kb_addi(b, g->col, (int64_t)v * g->lanes + j);
        x[j] = hn_kb_load(b, g->bb, hn_kb_add(b, hn_kb_add(b, g->b_base, hn_kb_mul(b, column, g->b_row)), k),
                          g->lanes);
    }
    hn_square_transpose(b, x, g->lanes);
    for (int j = 0; j < g->lanes; j++)
        hn_kb_store(b, g->scratch,
                    hn_kb_addi(b, hn_kb_muli(b, hn_kb_addi(b, k, j), nr), (int64_t)v * g->lanes), x[j]);
}

/* One reduction step of the panel, as it comes. */
static void pack_step(const product *g, hn_kv k)
{
    hn_kb *b = g->b;
    const int64_t nr = (int64_t)g->nv * g->lanes;
    for (int v = 0; v < g->nv; v++) {
        const hn_kv column = hn_kb_addi(b, g->col, (int64_t)v * g->lanes);
        const hn_kv at =
            hn_kb_add(b, hn_kb_add(b, g->b_base, hn_kb_mul(b, k, g->b_k)), hn_kb_mul(b, column, g->b_row));
        const hn_kv x = hn_kb_load_strided(b, g->bb, at, g->b_row, g->lanes, column_mask(g, v));
        hn_kb_store(b, g->scratch, hn_kb_addi(b, hn_kb_muli(b, k, nr), (int64_t)v * g->lanes), x);
    }
}

static void pack_panel(const product *g)
{
    hn_kb *b = g->b;
    hn_kv from = hn_kb_i(b, 0);
    if (g->s.tb && !g->tail) {
        const hn_kv whole = hn_kb_sub(b, g->k, hn_kb_imod(b, g->k, hn_kb_i(b, g->lanes)));
        const hn_kv k = hn_kb_for(b, from, whole, g->lanes);
        for (int v = 0; v < g->nv; v++)
            pack_square(g, k, v);
        hn_kb_end(b);
        from = whole;
    }
    const hn_kv k = hn_kb_for(b, from, g->k, 1);
    pack_step(g, k);
    hn_kb_end(b);
}

/* Rows [first, end) of the product in one panel. */
static void rows(product *g, hn_kv first, hn_kv end)
{
    hn_kb *b = g->b;
    int64_t m;
    if (g->pack) pack_panel(g);
    const bool known = hn_kb_is_const(b, g->m, &m);
    if (known && m < g->mr) {
        tile(g, (int)m, hn_kb_i(b, 0));
        return;
    }
    if (!known) hn_kb_if(b, hn_kb_ge(b, g->m, hn_kb_i(b, g->mr)));
    const hn_kv i = hn_kb_for(b, first, end, g->mr);
    tile(g, g->mr, hn_kb_min(b, i, hn_kb_addi(b, g->m, -g->mr)));
    hn_kb_end(b);
    if (known) return;
    hn_kb_else(b);
    const hn_kv one = hn_kb_for(b, first, end, 1);
    tile(g, 1, one);
    hn_kb_end(b);
    hn_kb_end(b);
}

/* Offset of the batch element that at[] points to, in elements. */
static hn_kv batch_base(product *g, const hn_value *v)
{
    hn_kb *b = g->b;
    const int ry = g->s.y->type.rank, rv = v->type.rank;
    hn_kv base = hn_kb_i(b, 0);
    for (int i = 0; i < rv - 2; i++) {
        base = hn_kb_mul(b, base, hn_lower_dim(g->l, v->type.dim[i]));
        base = hn_kb_add(b, base, hn_lower_stretch(g->l, g->at[ry - rv + i], v->type.dim[i], g->s.y->type.dim[ry - rv + i]));
    }
    for (int i = rv - 2; i < rv; i++)
        base = hn_kb_mul(b, base, hn_lower_dim(g->l, v->type.dim[i]));
    return base;
}

static void operands(product *g)
{
    hn_kb *b = g->b;
    const hn_kv one = hn_kb_i(b, 1);
    g->a_base = batch_base(g, g->s.a);
    g->b_base = batch_base(g, g->s.b);
    g->a_row = g->s.ta ? one : g->k;
    g->a_k = g->s.ta ? g->m : one;
    g->b_row = g->s.tb ? g->k : one;
    g->b_k = g->s.tb ? one : g->n;
}

static void panels(product *g, hn_kv first, hn_kv end)
{
    hn_kb *b = g->b;
    int64_t n;
    const int64_t nr = (int64_t)g->nv * g->lanes;
    const bool known = hn_kb_is_const(b, g->n, &n);
    g->tail = known && n < nr;
    if (known && (n % nr == 0 || n < nr)) {
        rows(g, first, end);
        return;
    }
    hn_kb_if(b, hn_kb_le(b, hn_kb_addi(b, g->col, nr), g->n));
    rows(g, first, end);
    hn_kb_else(b);
    g->tail = true;
    rows(g, first, end);
    hn_kb_end(b);
}

static void tiles(product *g, int64_t mc)
{
    hn_kb *b = g->b;
    hn_symtab *syms = g->r->g->syms;
    const int rank = g->s.y->type.rank;
    const int64_t nr = (int64_t)g->nv * g->lanes;
    const uint32_t batch_axes = hn_loops_all(g->s.y) & ~(3u << (rank - 2));
    const hn_dim n_panel = hn_dim_ceildiv(syms, g->s.n, nr), n_block = hn_dim_ceildiv(syms, g->s.m, mc);
    const hn_dim batch = hn_loops_extent(g->r, g->s.y, batch_axes);
    const hn_kv total = hn_lower_dim(g->l, hn_dim_mul(syms, hn_dim_mul(syms, batch, n_block), n_panel));
    const hn_kv per_row = hn_lower_dim(g->l, n_panel), per_batch = hn_lower_dim(g->l, n_block);
    g->m = hn_lower_dim(g->l, g->s.m);
    g->n = hn_lower_dim(g->l, g->s.n);
    g->k = hn_lower_dim(g->l, g->s.k);
    if (g->pack) {
        hn_kext e = hn_kb_ext(b, g->k, 1);
        e.mul *= nr;
        e.add *= nr;
        g->scratch = hn_kb_scratch(b, "panel", HN_F32, e);
    }
    const hn_kv t = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv row = hn_kb_idiv(b, t, per_row), first = hn_kb_muli(b, hn_kb_imod(b, row, per_batch), mc);
    g->col = hn_kb_muli(b, hn_kb_imod(b, t, per_row), nr);
    if (batch_axes) hn_loops_split(g->l, g->s.y, batch_axes, hn_kb_idiv(b, row, per_batch), g->at);
    operands(g);
    panels(g, first, hn_kb_min(b, hn_kb_addi(b, first, mc), g->m));
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "gemm_f32_runtime__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    product g = { .l = l,
                  .b = b,
                  .r = r,
                  .mr = (int)p[P_MR],
                  .nv = (int)p[P_NV],
                  .lanes = t->vec_bytes / 4,
                  .pack = p[P_PACK] };
    shape_of(r, &g.s);
    g.a = hn_lower_in(l, hn_region_operand(r, g.s.a));
    g.bb = hn_lower_in(l, hn_region_operand(r, g.s.b));
    g.totals = hn_totals_new(b, g.mr * g.nv, g.lanes, hn_region_opt(r, g.s.k), HN_TOTALS_BLOCK);
    tiles(&g, row_block(&g.s, t, p));
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_gemm_f32_runtime__cpu = {
    .name = "gemm_f32_runtime__cpu",
    .rev = 2,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2 | HN_FEAT_FMA,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .source = HN_KNOB_tactic_gemm_runtime,
    .pin = { [P_MR] = HN_KNOB_matmul_mr, [P_NV] = HN_KNOB_matmul_nv, [P_PACK] = HN_KNOB_matmul_pack },
};
