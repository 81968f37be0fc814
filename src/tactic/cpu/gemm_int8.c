/* Products of bytes by constant weights, in i32: four products an instruction. B lies as [panel][K/4][nr][4], K filled
 * up with zeros; signs and zero points are int8.h's. */
#include "tactic/cpu/ahead.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/int8.h"
#include "tactic/cpu/loops.h"

#include <math.h>

enum { P_MR, P_NV, P_TILES };
enum { UNROLL = 2, MAX_ROWS = 12, MAX_NV = 4, USUAL_ROWS = 32, QUAD = HN_INT8_QUAD, TILES_PER_CORE = 4 };
enum { BLOB_B, BLOB_SUMS, BLOB_ZEROS };

typedef struct shape {
    const hn_value *a, *b, *y;
    hn_int8 q;
    int64_t n, k;
    hn_dim m;
    int64_t m_opt;
} shape;

static hn_fit shape_of(const hn_region *r, shape *s)
{
    if (r->root->op != HN_OP_matmul_int) return HN_FIT_OP;
    *s = (shape){ .a = hn_in(r->root, 0), .b = hn_in(r->root, 1), .y = r->root->out[0] };
    const int ia = hn_region_operand(r, s->a), ib = hn_region_operand(r, s->b);
    if (ia < 0) return HN_FIT_EPILOGUE;
    if (ib < 0 || !r->data[ib]) return HN_FIT_NOT_CONST;
    if (s->b->type.rank != 2 || s->a->type.rank < 2) return HN_FIT_SHAPE;
    if (!hn_layout_is_plain(&s->a->layout) || !hn_layout_is_plain(&s->y->layout)) return HN_FIT_LAYOUT;
    s->k = s->b->type.dim[0];
    s->n = s->b->type.dim[1];
    if (s->k <= 0 || s->n <= 0) return HN_FIT_SHAPE;
    const hn_fit fit = hn_int8_of(r, s->n, &s->q);
    if (fit != HN_FIT_YES) return fit;
    s->m = hn_loops_extent(r, s->a, hn_loops_all(s->a) & ~(1u << (s->a->type.rank - 1)));
    s->m_opt = HN_MAX(1, hn_region_opt(r, s->m));
    if (!hn_dim_is_const(s->m) && s->m_opt == 1) s->m_opt = USUAL_ROWS;
    return HN_FIT_YES;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    shape s;
    (void)t;
    const hn_fit fit = shape_of(r, &s);
    if (fit != HN_FIT_YES) return fit;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t mr[] = { 1, 2, 3, 4, 5, 6, 8, 10, 12 }, nv[] = { 1, 2, 3, 4 };
    (void)r;
    hn_space_add_list(ret, "mr", t->n_vreg >= 32 ? 9 : 6, mr);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 4 : 2, nv);
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ TILES_PER_CORE, 1, 2, 8, 16 });
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    if (shape_of(r, &s) != HN_FIT_YES) return false;
    const int64_t lanes = t->vec_bytes / 4, acc = p[P_MR] * p[P_NV] + (s.q.row_sums ? p[P_MR] : 0);
    const int64_t other =
        p[P_NV] + 1 + (s.q.row_sums ? 1 : 0) + (hn_int8_has_dot(t) ? 0 : 4); /* the fallback splits bytes into words */
    if (acc + other > t->n_vreg || (p[P_MR] > s.m_opt && p[P_MR] > 1)) return false;
    if (p[P_NV] > 1 && (p[P_NV] - 1) * lanes >= s.n) return false;
    return acc >= 8 || p[P_MR] >= s.m_opt || (p[P_NV] + 1) * lanes > s.n || !hn_int8_has_dot(t);
}

static int64_t row_block(const shape *s, const hn_target *t, const int64_t *p)
{
    enum { MOST = 256, LEAST = 24 };
    const int64_t fit = HN_MAX(LEAST, HN_MIN(MOST, t->l2_bytes / 3 / s->k)),
                  blocks = (s->m_opt + fit - 1) / fit;
    const int64_t mc = hn_dim_is_const(s->m) || s->m_opt > fit ? (s->m_opt + blocks - 1) / blocks : fit;
    return (mc + p[P_MR] - 1) / p[P_MR] * p[P_MR];
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    shape_of(r, &s);
    const int64_t lanes = t->vec_bytes / 4, nr = p[P_NV] * lanes, quads = (s.k + QUAD - 1) / QUAD,
                  nv = p[P_NV] + s.q.row_sums;
    const double per = hn_int8_has_dot(t) ? 1 : 5; /* instructions for one */
    const double step = hn_cycles_step(t, p[P_MR], nv, lanes, quads, 1) * per;
    const double tile = (double)quads * step + 6.0 * (double)(p[P_MR] * p[P_NV]) + 20;
    const double tiles = (double)((s.m_opt + p[P_MR] - 1) / p[P_MR]) * (double)((s.n + nr - 1) / nr);
    const double memory = (double)(s.k * s.n) / t->bandwidth_gbs;
    return fmax(tiles * tile / hn_cycles_ghz(t) / 0.9, memory) + 150;
}

/* ---- emission ---- */
typedef struct bytes {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    shape s;
    int mr, nv, lanes;
    int a, panel, sums, zeros; /* buffers */
    hn_kv m, za;               /* rows in all; zero point of A as unsigned, i32 */
    hn_kv col0, b_base;
    hn_ahead ahead;
} bytes;

typedef struct tile {
    int rows, nv;
    hn_kvar acc[MAX_ROWS * MAX_NV], sum[MAX_ROWS];
} tile;

/* Bytes k .. k+3 of a row in every lane, unsigned; past K zero. */
static hn_kv quad_of(const bytes *g, hn_kv row, hn_kv k, int count)
{
    hn_kb *b = g->b;
    const hn_kv at = hn_kb_add(b, hn_kb_muli(b, row, g->s.k), k);
    hn_kv x;
    if (count == QUAD) {
        x = hn_kb_load_as(b, g->a, at, HN_I32, 1, HN_KV_NONE);
    } else {
        x = hn_kb_int(b, HN_I32, 1, 0);
        for (int i = 0; i < count; i++) {
            const hn_kv byte = hn_kb_load_as(b, g->a, hn_kb_addi(b, at, i), HN_U8, 1, HN_KV_NONE);
            x = hn_kb_or(b, x, hn_kb_shl(b, hn_kb_cast(b, byte, HN_I32), 8 * i));
        }
    }
    x = hn_int8_unsigned(b, &g->s.q, x, count);
    return hn_kb_bitcast(b, hn_kb_splat(b, x, g->lanes), HN_U8, QUAD * g->lanes);
}

static void step(const bytes *g, tile *t, hn_kv row0, hn_kv quad, int count)
{
    hn_kb *b = g->b;
    const int64_t nr = (int64_t)g->nv * g->lanes;
    const hn_kv at = hn_kb_add(b, g->b_base, hn_kb_muli(b, quad, nr * QUAD));
    hn_kv bv[MAX_NV];
    for (int v = 0; v < t->nv; v++)
        bv[v] = hn_kb_load(b, g->panel, hn_kb_addi(b, at, (int64_t)v * g->lanes * QUAD), g->lanes * QUAD);
    const hn_kv one = hn_kb_int(b, HN_I8, g->lanes * QUAD, 1);
    for (int i = 0; i < t->rows; i++) {
        const hn_kv a = quad_of(g, hn_kb_addi(b, row0, i), hn_kb_muli(b, quad, QUAD), count);
        for (int v = 0; v < t->nv; v++) {
            hn_kvar *x = &t->acc[i * t->nv + v];
            hn_kb_set(b, *x, hn_kb_dot4(b, hn_kb_get(b, *x), a, bv[v]));
        }
        if (g->s.q.row_sums) hn_kb_set(b, t->sum[i], hn_kb_dot4(b, hn_kb_get(b, t->sum[i]), a, one));
    }
}

static void store(bytes *g, const tile *t, hn_kv row0, bool last_panel)
{
    hn_kb *b = g->b;
    const int rank = g->s.y->type.rank;
    const uint32_t outer = hn_loops_all(g->s.y) & ~(1u << (rank - 1));
    for (int v = 0; v < t->nv; v++) {
        const int64_t left = g->s.n % ((int64_t)g->nv * g->lanes) - (int64_t)v * g->lanes;
        const hn_kv col = hn_kb_addi(b, g->col0, (int64_t)v * g->lanes);
        const hn_kv mask = last_panel && left < g->lanes
                               ? hn_kb_tail_mask(b, hn_kb_i(b, 0), hn_kb_i(b, left), g->lanes)
                               : HN_KV_NONE;
        const hn_kv sums = hn_kb_load(b, g->sums, col, g->lanes);
        const hn_kv zeros = g->s.q.row_sums ? hn_kb_load(b, g->zeros, col, g->lanes) : HN_KV_NONE;
        for (int i = 0; i < t->rows; i++) {
            hn_kv at[HN_MAX_RANK];
            hn_kidx idx;
            hn_loops_split(g->l, g->s.y, outer, hn_kb_addi(b, row0, i), at);
            at[rank - 1] = col;
            hn_kidx_init(&idx, rank, at);
            hn_kidx_vector(&idx, rank - 1, g->lanes);
            idx.aligned = true;
            const hn_kv sum = g->s.q.row_sums ? hn_kb_get(b, t->sum[i]) : HN_KV_NONE;
            hn_lower_seed(g->l, g->s.y,
                          hn_int8_corrected(b, &g->s.q, hn_kb_get(b, t->acc[i * t->nv + v]), g->za, sums, zeros, sum, g->s.k));
            hn_lower_store(g->l, &idx, mask);
        }
    }
}

/* row: first of the tile, within the block. */
static void compute(bytes *g, int rows, hn_kv first, hn_kv row, bool last_panel)
{
    hn_kb *b = g->b;
    const int64_t nr = (int64_t)g->nv * g->lanes, quads = g->s.k / QUAD, whole = quads / UNROLL * UNROLL;
    const int64_t panel = nr * QUAD * ((g->s.k + QUAD - 1) / QUAD);
    const hn_kv row0 = hn_kb_add(b, first, row);
    hn_ahead_tile(b, &g->ahead, panel, hn_kb_addi(b, g->b_base, panel),
                  hn_kb_idiv(b, row, hn_kb_i(b, g->mr)));
    tile t = { .rows = rows, .nv = last_panel ? (int)((g->s.n % nr + g->lanes - 1) / g->lanes) : g->nv };
    const hn_kv zero = hn_kb_int(b, HN_I32, g->lanes, 0);
    for (int i = 0; i < rows * t.nv; i++)
        t.acc[i] = hn_kb_var(b, zero);
    for (int i = 0; i < rows && g->s.q.row_sums; i++)
        t.sum[i] = hn_kb_var(b, zero);
    const hn_kv q = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, whole), UNROLL);
    hn_ahead_step(b, &g->ahead, hn_kb_muli(b, q, nr * QUAD));
    for (int u = 0; u < UNROLL; u++)
        step(g, &t, row0, hn_kb_addi(b, q, u), QUAD);
    hn_kb_end(b);
    for (int64_t u = whole; u < quads; u++)
        step(g, &t, row0, hn_kb_i(b, u), QUAD);
    if (g->s.k % QUAD) step(g, &t, row0, hn_kb_i(b, quads), (int)(g->s.k % QUAD));
    store(g, &t, row0, last_panel);
}

/* Rows first .. first+count: whole tiles, then one of what is left, or one moved back, or single rows. */
static void rows(bytes *g, hn_kv first, hn_kv count, bool last_panel)
{
    hn_kb *b = g->b;
    const hn_kv whole = hn_kb_sub(b, count, hn_kb_imod(b, count, hn_kb_i(b, g->mr)));
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), whole, g->mr);
    compute(g, g->mr, first, i, last_panel);
    hn_kb_end(b);
    if (g->mr == 1 || (hn_dim_is_const(g->s.m) && g->s.m % g->mr == 0)) return;
    hn_kb_if(b, hn_kb_lt(b, whole, count));
    if (hn_dim_is_const(g->s.m)) {
        compute(g, (int)(g->s.m % g->mr), first, whole, last_panel);
    } else {
        hn_kb_if(b, hn_kb_ge(b, g->m, hn_kb_i(b, g->mr)));
        compute(g, g->mr, first, hn_kb_addi(b, count, -g->mr), last_panel);
        hn_kb_else(b);
        const hn_kv j = hn_kb_for(b, whole, count, 1);
        compute(g, 1, first, j, last_panel);
        hn_kb_end(b);
        hn_kb_end(b);
    }
    hn_kb_end(b);
}

static void tiles(bytes *g, const hn_target *t, int64_t mc, int64_t per_core)
{
    hn_kb *b = g->b;
    hn_symtab *syms = g->r->g->syms;
    const int64_t nr = (int64_t)g->nv * g->lanes, panels = (g->s.n + nr - 1) / nr,
                  quads = (g->s.k + QUAD - 1) / QUAD;
    const int64_t want = per_core * HN_MAX(1, t->n_core), blocks = (g->s.m_opt + mc - 1) / mc;
    const int64_t runs = HN_MIN(panels, (want + blocks - 1) / blocks), per = (panels + runs - 1) / runs;
    const int64_t n_run = (panels + per - 1) / per;
    const hn_kv total = hn_lower_dim(g->l, hn_dim_mul(syms, hn_dim_ceildiv(syms, g->s.m, mc), n_run));
    g->m = hn_lower_dim(g->l, g->s.m);
    const hn_kv at = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv first = hn_kb_muli(b, hn_kb_idiv(b, at, hn_kb_i(b, n_run)), mc);
    const hn_kv count = hn_kb_min(b, hn_kb_i(b, mc), hn_kb_sub(b, g->m, first));
    const hn_kv p0 = hn_kb_muli(b, hn_kb_imod(b, at, hn_kb_i(b, n_run)), per);
    g->za = hn_int8_zero_of_a(g->l, &g->s.q);
    const hn_kv panel = hn_kb_for(b, p0, hn_kb_min(b, hn_kb_addi(b, p0, per), hn_kb_i(b, panels)), 1);
    g->col0 = hn_kb_muli(b, panel, nr);
    g->b_base = hn_kb_muli(b, panel, nr * quads * QUAD);
    if (g->s.n % nr == 0 || panels == 1) {
        rows(g, first, count, g->s.n % nr != 0);
    } else {
        hn_kb_if(b, hn_kb_eq(b, panel, hn_kb_i(b, panels - 1)));
        rows(g, first, count, true);
        hn_kb_else(b);
        rows(g, first, count, false);
        hn_kb_end(b);
    }
    hn_kb_end(b);
    hn_kb_end(b);
}

static bool add_blob(const bytes *g, hn_emission *ret, const char *what, size_t n)
{
    const char *recipe =
        hn_arena_printf(ret->arena, "gemm_%s_%s_n%d", what, g->s.q.b_signed ? "s8" : "u8", g->nv * g->lanes);
    const hn_blob blob = { hn_region_operand(g->r, g->s.b), recipe, n };
    return recipe && hn_vec_push(ret->arena, &ret->blobs, blob);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "gemm_int8_dot__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    bytes g = { .l = l, .b = b, .r = r, .mr = (int)p[P_MR], .nv = (int)p[P_NV], .lanes = t->vec_bytes / 4 };
    shape_of(r, &g.s);
    const int64_t nr = (int64_t)g.nv * g.lanes, columns = (g.s.n + nr - 1) / nr * nr;
    if (!add_blob(&g, ret, "b", (size_t)(columns * ((g.s.k + QUAD - 1) / QUAD * QUAD))) ||
        !add_blob(&g, ret, "sums", (size_t)columns * 4) ||
        (g.s.q.row_sums && !hn_int8_add_zeros(r, &g.s.q, g.s.n, g.s.n, columns, ret)))
        return HN_NOMEM(dg);
    g.a = hn_lower_in(l, hn_region_operand(r, g.s.a));
    g.panel = hn_lower_blob(l, BLOB_B, HN_I8);
    g.sums = hn_lower_blob(l, BLOB_SUMS, HN_I32);
    if (g.s.q.row_sums) g.zeros = hn_lower_blob(l, BLOB_ZEROS, HN_I32);
    hn_kb_align(b, g.panel, 64);
    const int64_t mc = row_block(&g.s, t, p), passes = (HN_MIN(mc, g.s.m_opt) + g.mr - 1) / g.mr,
                  quads = (g.s.k + QUAD - 1) / QUAD;
    hn_ahead_init(&g.ahead, t, g.panel, 1, nr * quads * QUAD, columns / nr, passes, UNROLL * nr * QUAD);
    tiles(&g, t, mc, p[P_TILES]);
    return hn_lower_finish_whole(l, ret, dg);
}

static int8_t weight(const hn_region *r, const shape *s, int64_t k, int64_t j)
{
    const uint8_t *b = r->data[hn_region_operand(r, s->b)]->at;
    return hn_int8_signed(&s->q, b[k * s->n + j]);
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst,
                        hn_diag *dg)
{
    shape s;
    (void)dg;
    shape_of(r, &s);
    const int64_t nr = p[P_NV] * (t->vec_bytes / 4), columns = (s.n + nr - 1) / nr * nr,
                  quads = (s.k + QUAD - 1) / QUAD;
    if (blob == BLOB_B) {
        int8_t *out = dst;
        for (int64_t q = 0; q < columns / nr; q++)
            for (int64_t at = 0; at < quads * nr * QUAD; at++) {
                const int64_t k = at / (nr * QUAD) * QUAD + at % QUAD, j = q * nr + at / QUAD % nr;
                *out++ = k < s.k && j < s.n ? weight(r, &s, k, j) : 0;
            }
        return HONE_OK;
    }
    int32_t *out = dst;
    if (blob == BLOB_ZEROS) {
        hn_int8_pack_zeros(r, &s.q, s.n, s.n, columns, out);
        return HONE_OK;
    }
    for (int64_t j = 0; j < columns; j++) {
        int64_t x = 0;
        for (int64_t k = 0; j < s.n && k < s.k; k++)
            x += weight(r, &s, k, j);
        out[j] = (int32_t)x;
    }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_gemm_int8_dot__cpu = {
    .name = "gemm_int8_dot__cpu",
    .rev = 3,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_gemm_int8,
    .pin = { [P_MR] = HN_KNOB_int8_mr, [P_NV] = HN_KNOB_int8_nv, [P_TILES] = HN_KNOB_int8_tiles },
};
