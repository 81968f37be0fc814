/* Winograd convolution F(m,3): 3x3 windows of stride 1 over channels-last images, m x m outputs a tile.
 *
 *     for each block of tiles and run of panels                       parallel
 *         V[pos][tile][C]  = B^T d B      of each tile's t x t input places, t = m + 2, zeros in the padding
 *         for each panel of nr output channels
 *             M[pos][tile][nr] = V[pos] U[pos]      t*t small matrix products, register-blocked over tiles
 *             y = A^T M A, bias, epilogue
 *
 * U = G g G^T is made when building. V and M of a block stay in the second-level cache; where few blocks
 * would leave threads idle the panels are shared out and V is made once for each share. Rounds differently
 * from a direct sum (measured: F(2,3) by 0.7, F(4,3) by 4-5, F(6,3) by 8-9 times its error), so the
 * knob math:winograd must allow it.
 */
#include "tactic/cpu/conv.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"
#include "tactic/cpu/wino.h"

#include <math.h>

enum { P_M, P_MR, P_NV, P_TILES };
enum { MAX_MR = 14, MAX_NV = 4, UNROLL = 4, TILES_PER_CORE = 4 };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    hn_conv c;
    (void)t;
    const hn_fit fit = hn_conv_of(r, &c);
    if (fit != HN_FIT_YES) return fit;
    if (!c.has_columns || c.kh != 3 || c.kw != 3 || c.sh != 1 || c.sw != 1 || c.dh != 1 || c.dw != 1 ||
        c.group != 1)
        return HN_FIT_SHAPE;
    if (c.xi.planes != 1 || c.xi.block) return HN_FIT_LAYOUT;
    return c.c < 8 || c.oc < 8 || c.oh_opt * c.ow_opt < 16 ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t m[] = { 2, 4, 6 }, wide[] = { 4, 6, 8, 9, 12, 14 }, narrow[] = { 3, 4, 6 },
                         nv[] = { 1, 2, 3, 4 };
    (void)r;
    hn_space_add_list(ret, "m", 3, m);
    if (t->n_vreg >= 32)
        hn_space_add_list(ret, "mr", HN_COUNT(wide), wide);
    else
        hn_space_add_list(ret, "mr", HN_COUNT(narrow), narrow);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 4 : 3, nv);
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ TILES_PER_CORE, 1, 2, 8, 16 });
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    if (hn_conv_of(r, &c) != HN_FIT_YES) return false;
    const int64_t lanes = t->vec_bytes / 4, acc = p[P_MR] * p[P_NV];
    const int64_t tiles = (c.oh_opt + p[P_M] - 1) / p[P_M] * ((c.ow_opt + p[P_M] - 1) / p[P_M]);
    if (acc + p[P_NV] + 1 > t->n_vreg || acc < 8) return false;
    if (p[P_M] > c.oh_opt || p[P_M] > c.ow_opt || p[P_MR] > tiles + 2) return false;
    return p[P_NV] == 1 || (p[P_NV] - 1) * lanes < c.oc;
}

/* ---- how the work is cut ---- */
typedef struct cut {
    int64_t lanes, nr, panels, row; /* row: floats of one tile's channels in V */
    int64_t block, n_block;         /* tiles a block; blocks an image at optimal sizes */
    int64_t per;                    /* panels a share */
    int64_t tiles;                  /* an image, at optimal sizes */
} cut;

enum { CONFLICT_BYTES = 2048 };

static cut cut_of(const hn_conv *c, const hn_target *t, const int64_t *p)
{
    const int64_t positions = (p[P_M] + 2) * (p[P_M] + 2);
    cut k = { .lanes = t->vec_bytes / 4 };
    k.nr = p[P_NV] * k.lanes;
    k.panels = (c->oc + k.nr - 1) / k.nr;
    k.row = (c->c + k.lanes - 1) / k.lanes * k.lanes;
    if (k.row * 4 % CONFLICT_BYTES == 0) k.row += k.lanes; /* tiles must not share cache sets */
    k.tiles = (c->oh_opt + p[P_M] - 1) / p[P_M] * ((c->ow_opt + p[P_M] - 1) / p[P_M]);
    const int64_t fit = t->l2_bytes * 5 / 8 / (4 * positions * (k.row + k.nr));
    int64_t block = HN_MAX(1, HN_MIN(fit, 8 * p[P_MR]) / p[P_MR]) * p[P_MR];
    const int64_t want = p[P_TILES] * HN_MAX(1, t->n_core);
    /* Weights that no core's cache holds are read once a block: rather share out the panels. */
    const bool heavy = 4 * positions * c->c * k.panels * k.nr > t->l2_bytes / 4;
    const int64_t want_blocks = heavy ? (want + k.panels - 1) / k.panels : want;
    const int64_t enough = (c->n_opt * k.tiles + want_blocks - 1) / want_blocks;
    block = HN_MIN(block, HN_MAX(1, (enough + p[P_MR] - 1) / p[P_MR]) * p[P_MR]);
    /* Shares of equal size: the last block is no stub. */
    k.n_block = (k.tiles + block - 1) / block;
    k.block = ((k.tiles + k.n_block - 1) / k.n_block + p[P_MR] - 1) / p[P_MR] * p[P_MR];
    k.n_block = (k.tiles + k.block - 1) / k.block;
    const int64_t shares = HN_MAX(1, (want + c->n_opt * k.n_block - 1) / (c->n_opt * k.n_block));
    k.per = HN_MAX(1, (k.panels + shares - 1) / shares);
    return k;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    hn_conv_of(r, &c);
    const cut k = cut_of(&c, t, p);
    const double t2 = (double)((p[P_M] + 2) * (p[P_M] + 2)), m2 = (double)(p[P_M] * p[P_M]),
                 unit = t->vec_bytes > 32 ? 1 : 0.5;
    const double blocks = (double)(c.n_opt * k.n_block), tiles = (double)(c.n_opt * k.tiles),
                 shares = (double)((k.panels + k.per - 1) / k.per);
    const double tile = (double)c.c * hn_cycles_step(t, p[P_MR], p[P_NV], k.lanes, c.c, 1) +
                        (double)(p[P_MR] * p[P_NV]) * 1.5 + 15;
    const double gemm = blocks * (double)(k.block / p[P_MR] * k.panels) * t2 * tile;
    const double in = tiles * shares * (double)((c.c + k.lanes - 1) / k.lanes) * (t2 * 8 * unit + 40);
    const double out = tiles * (double)((c.oc + k.lanes - 1) / k.lanes) * (t2 * 5 * unit + m2 * 4 + 40);
    const double weights = 4 * t2 * (double)(c.c * k.panels * k.nr);
    /* Weights beyond the second level come anew for every block from the third, at several times memory's
     * speed. */
    const double memory =
        weights / t->bandwidth_gbs +
        (weights > (double)t->l2_bytes / 4 ? (blocks - 1) * weights / (4 * t->bandwidth_gbs) : 0);
    const double compute = (gemm + in + out) / hn_cycles_ghz(t) / 0.93;
    return fmax(compute, memory) + 0.3 * fmin(compute, memory) + 300;
}

/* ---- emission ---- */
typedef struct wino {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    hn_conv c;
    cut k;
    hn_wino w;
    int mr, nv, lanes;
    int x, u, v, m, half;  /* buffers: half holds one direction of a transform */
    hn_kv n, first, count; /* image; first tile and tiles of the block */
    hn_kv wide;            /* tiles in a row of the image */
    hn_kv plane, row;      /* strides of the image */
    hn_kv ty, tx;          /* of the tile under way */
} wino;

static void at_tile(wino *g, hn_kv tile)
{
    const hn_kv at = hn_kb_add(g->b, g->first, tile);
    g->ty = hn_kb_idiv(g->b, at, g->wide);
    g->tx = hn_kb_sub(g->b, at, hn_kb_mul(g->b, g->ty, g->wide));
}

static hn_kv within(hn_kb *b, hn_kv i, hn_kv end)
{
    return hn_kb_and(b, hn_kb_ge(b, i, hn_kb_i(b, 0)), hn_kb_lt(b, i, end));
}

/* Both directions of B^T d B for channels ch.. of one tile whose first place is (row, col); guarded: places
 * may lie outside. */
static void transform_input(wino *g, hn_kv tile, hn_kv ch, hn_kv row, hn_kv col, bool guarded)
{
    hn_kb *b = g->b;
    const int t = g->w.t, lanes = g->lanes;
    hn_kv x[HN_WINO_MAX], y[HN_WINO_MAX];
    const hn_kv channels = g->c.c % lanes ? hn_kb_tail_mask(b, ch, hn_kb_i(b, g->c.c), lanes) : HN_KV_NONE;
    const hn_kv base =
        hn_kb_add(b, hn_kb_add(b, hn_kb_mul(b, g->n, g->plane), hn_kb_mul(b, row, g->row)), ch);
    hn_kv inside[HN_WINO_MAX];
    for (int i = 0; guarded && i < t; i++)
        inside[i] = within(b, hn_kb_addi(b, row, i), hn_lower_dim(g->l, g->c.xh));
    const hn_kv j = hn_kb_fori(b, t), at_col = hn_kb_add(b, col, j);
    const hn_kv column = guarded ? within(b, at_col, hn_lower_dim(g->l, g->c.xw)) : HN_KV_NONE;
    for (int i = 0; i < t; i++) {
        const hn_kv at =
            hn_kb_add(b, hn_kb_add(b, base, hn_kb_muli(b, g->row, i)), hn_kb_muli(b, at_col, g->c.c));
        hn_kv mask = channels;
        if (guarded) {
            const hn_kv here = hn_kb_splat(b, hn_kb_and(b, inside[i], column), lanes);
            mask = hn_kv_is(channels) ? hn_kb_and(b, here, channels) : here;
        }
        x[i] = hn_kb_loadm(b, g->x, at, lanes, mask);
    }
    hn_wino_input(b, &g->w, x, y);
    for (int i = 0; i < t; i++)
        hn_kb_store(b, g->half, hn_kb_muli(b, hn_kb_addi(b, j, (int64_t)i * t), lanes), y[i]);
    hn_kb_end(b);
    const hn_kv i = hn_kb_fori(b, t);
    for (int q = 0; q < t; q++)
        x[q] = hn_kb_load(b, g->half, hn_kb_muli(b, hn_kb_addi(b, hn_kb_muli(b, i, t), q), lanes), lanes);
    hn_wino_input(b, &g->w, x, y);
    for (int q = 0; q < t; q++) {
        const hn_kv pos = hn_kb_addi(b, hn_kb_muli(b, i, t), q);
        const hn_kv at = hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, pos, g->k.block), tile), g->k.row);
        hn_kb_store(b, g->v, hn_kb_add(b, at, ch), y[q]);
    }
    hn_kb_end(b);
}

static void input(wino *g)
{
    hn_kb *b = g->b;
    const hn_kv tile = hn_kb_forn(b, g->count), zero = hn_kb_i(b, 0);
    at_tile(g, tile);
    const hn_kv row = hn_kb_sub(b, hn_kb_muli(b, g->ty, g->w.m), hn_lower_dim(g->l, g->c.ph));
    const hn_kv col = hn_kb_sub(b, hn_kb_muli(b, g->tx, g->w.m), hn_lower_dim(g->l, g->c.pw));
    const hn_kv down = hn_kb_le(b, hn_kb_addi(b, row, g->w.t), hn_lower_dim(g->l, g->c.xh));
    const hn_kv right = hn_kb_le(b, hn_kb_addi(b, col, g->w.t), hn_lower_dim(g->l, g->c.xw));
    const hn_kv up = hn_kb_and(b, hn_kb_ge(b, row, zero), hn_kb_ge(b, col, zero));
    hn_kb_if(b, hn_kb_and(b, up, hn_kb_and(b, down, right)));
    hn_kv ch = hn_kb_for(b, zero, hn_kb_i(b, g->c.c), g->lanes);
    transform_input(g, tile, ch, row, col, false);
    hn_kb_end(b);
    hn_kb_else(b);
    ch = hn_kb_for(b, zero, hn_kb_i(b, g->c.c), g->lanes);
    transform_input(g, tile, ch, row, col, true);
    hn_kb_end(b);
    hn_kb_end(b);
    hn_kb_end(b);
}

static void multiply_step(wino *g, int nv, hn_kvar *acc, hn_kv v_at, hn_kv u_at)
{
    hn_kb *b = g->b;
    hn_kv uv[MAX_NV];
    for (int v = 0; v < nv; v++)
        uv[v] = hn_kb_load(b, g->u, hn_kb_addi(b, u_at, (int64_t)v * g->lanes), g->lanes);
    for (int i = 0; i < g->mr; i++) {
        const hn_kv x = hn_kb_load_splat(b, g->v, hn_kb_addi(b, v_at, i * g->k.row), g->lanes);
        for (int v = 0; v < nv; v++)
            hn_kb_set(b, acc[i * nv + v], hn_kb_fma(b, x, uv[v], hn_kb_get(b, acc[i * nv + v])));
    }
}

/* M[pos][tile] = V[pos][tile] U[panel][pos] for all positions and the block's tiles, mr at a time. */
static void multiply(wino *g, hn_kv panel, int nv)
{
    hn_kb *b = g->b;
    hn_kvar acc[MAX_MR * MAX_NV];
    const int64_t t2 = (int64_t)g->w.t * g->w.t, whole = g->c.c / UNROLL * UNROLL;
    const hn_kv pos = hn_kb_fori(b, t2), tile = hn_kb_for(b, hn_kb_i(b, 0), g->count, g->mr);
    const hn_kv place = hn_kb_add(b, hn_kb_muli(b, pos, g->k.block), tile),
                v0 = hn_kb_muli(b, place, g->k.row);
    const hn_kv u0 = hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, panel, t2), pos), g->c.c * g->k.nr);
    for (int i = 0; i < g->mr * nv; i++)
        acc[i] = hn_kb_var(b, hn_kb_float(b, HN_F32, g->lanes, 0));
    const hn_kv k = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, whole), UNROLL);
    for (int u = 0; u < UNROLL; u++)
        multiply_step(g, nv, acc, hn_kb_add(b, v0, hn_kb_addi(b, k, u)),
                      hn_kb_add(b, u0, hn_kb_muli(b, hn_kb_addi(b, k, u), g->k.nr)));
    hn_kb_end(b);
    for (int64_t u = whole; u < g->c.c; u++)
        multiply_step(g, nv, acc, hn_kb_addi(b, v0, u), hn_kb_addi(b, u0, u * g->k.nr));
    for (int i = 0; i < g->mr; i++)
        for (int v = 0; v < nv; v++) {
            const hn_kv at =
                hn_kb_addi(b, hn_kb_muli(b, hn_kb_addi(b, place, i), g->k.nr), (int64_t)v * g->lanes);
            hn_kb_store(b, g->m, at, hn_kb_get(b, acc[i * nv + v]));
        }
    hn_kb_end(b);
    hn_kb_end(b);
}

static void store_row(wino *g, hn_kv i, hn_kv ch, const hn_kv *y, hn_kv bias, hn_kv mask)
{
    hn_kb *b = g->b;
    hn_symtab *syms = g->r->g->syms;
    int64_t ow;
    const bool all = hn_dim_known(syms, g->c.ow, &ow) && ow % g->w.m == 0;
    for (int q = 0; q < g->w.m; q++) {
        hn_kidx idx;
        const hn_kv row = hn_kb_add(b, hn_kb_muli(b, g->ty, g->w.m), i),
                    col = hn_kb_addi(b, hn_kb_muli(b, g->tx, g->w.m), q);
        if (!all) hn_kb_if(b, hn_kb_lt(b, col, hn_lower_dim(g->l, g->c.ow)));
        hn_conv_index(&g->c, g->n, ch, row, col, &idx);
        hn_kidx_vector(&idx, 1, g->lanes);
        idx.aligned = true;
        hn_lower_seed(g->l, g->c.y, hn_kv_is(bias) ? hn_kb_add(b, y[q], bias) : y[q]);
        hn_lower_store(g->l, &idx, mask);
        if (!all) hn_kb_end(b);
    }
}

static void transform_output(wino *g, hn_kv tile, hn_kv oc0, int v, bool last)
{
    hn_kb *b = g->b;
    const int t = g->w.t, m = g->w.m, lanes = g->lanes;
    const int64_t left = g->c.oc % g->k.nr - (int64_t)v * lanes;
    const hn_kv mask =
        last && left < lanes ? hn_kb_tail_mask(b, hn_kb_i(b, 0), hn_kb_i(b, left), lanes) : HN_KV_NONE;
    const hn_kv ch = hn_kb_addi(b, oc0, (int64_t)v * lanes);
    hn_kv x[HN_WINO_MAX], y[HN_WINO_MAX], bias = HN_KV_NONE;
    const hn_kv j = hn_kb_fori(b, t);
    for (int i = 0; i < t; i++) {
        const hn_kv place = hn_kb_add(b, hn_kb_muli(b, hn_kb_addi(b, j, (int64_t)i * t), g->k.block), tile);
        x[i] = hn_kb_load(b, g->m, hn_kb_addi(b, hn_kb_muli(b, place, g->k.nr), (int64_t)v * lanes), lanes);
    }
    hn_wino_output(b, &g->w, x, y);
    for (int i = 0; i < m; i++)
        hn_kb_store(b, g->half, hn_kb_muli(b, hn_kb_addi(b, j, (int64_t)i * t), lanes), y[i]);
    hn_kb_end(b);
    const hn_kv rows = hn_kb_sub(b, hn_lower_dim(g->l, g->c.oh), hn_kb_muli(b, g->ty, m));
    const hn_kv i = hn_kb_forn(b, hn_kb_min(b, rows, hn_kb_i(b, m)));
    if (g->c.bias) {
        hn_kidx at;
        hn_kidx_init(&at, 1, &ch);
        hn_kidx_vector(&at, 0, lanes);
        hn_lower_forget(g->l);
        bias = hn_lower_value(g->l, g->c.bias, &at, mask);
    }
    for (int q = 0; q < t; q++)
        x[q] = hn_kb_load(b, g->half, hn_kb_muli(b, hn_kb_addi(b, hn_kb_muli(b, i, t), q), lanes), lanes);
    hn_wino_output(b, &g->w, x, y);
    store_row(g, i, ch, y, bias, mask);
    hn_kb_end(b);
}

static void panel_of(wino *g, hn_kv panel, bool last)
{
    hn_kb *b = g->b;
    const int nv = last ? (int)((g->c.oc % g->k.nr + g->lanes - 1) / g->lanes) : g->nv;
    multiply(g, panel, nv);
    const hn_kv tile = hn_kb_forn(b, g->count);
    at_tile(g, tile);
    for (int v = 0; v < nv; v++)
        transform_output(g, tile, hn_kb_muli(b, panel, g->k.nr), v, last);
    hn_kb_end(b);
}

static void panels(wino *g, hn_kv first)
{
    hn_kb *b = g->b;
    const hn_kv end = hn_kb_min(b, hn_kb_addi(b, first, g->k.per), hn_kb_i(b, g->k.panels));
    const hn_kv panel = hn_kb_for(b, first, end, 1);
    if (g->c.oc % g->k.nr == 0) {
        panel_of(g, panel, false);
    } else if (g->k.panels == 1) {
        panel_of(g, panel, true);
    } else {
        hn_kb_if(b, hn_kb_eq(b, panel, hn_kb_i(b, g->k.panels - 1)));
        panel_of(g, panel, true);
        hn_kb_else(b);
        panel_of(g, panel, false);
        hn_kb_end(b);
    }
    hn_kb_end(b);
}

static void blocks(wino *g)
{
    hn_kb *b = g->b;
    hn_symtab *syms = g->r->g->syms;
    const int64_t shares = (g->k.panels + g->k.per - 1) / g->k.per;
    const hn_dim wide = hn_dim_ceildiv(syms, g->c.ow, g->w.m),
                 tiles = hn_dim_mul(syms, hn_dim_ceildiv(syms, g->c.oh, g->w.m), wide);
    const hn_dim n_block = hn_dim_ceildiv(syms, tiles, g->k.block);
    const hn_kv total = hn_lower_dim(g->l, hn_dim_mul(syms, hn_dim_mul(syms, g->c.n, n_block), shares));
    const hn_kv per_image = hn_lower_dim(g->l, n_block), n_tile = hn_lower_dim(g->l, tiles);
    g->wide = hn_lower_dim(g->l, wide);
    g->row = hn_kb_muli(b, hn_lower_dim(g->l, g->c.xw), g->c.c);
    g->plane = hn_kb_mul(b, hn_lower_dim(g->l, g->c.xh), g->row);
    const hn_kv t = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv at = hn_kb_idiv(b, t, hn_kb_i(b, shares)), share = hn_kb_imod(b, t, hn_kb_i(b, shares));
    g->n = hn_kb_idiv(b, at, per_image);
    g->first = hn_kb_muli(b, hn_kb_imod(b, at, per_image), g->k.block);
    g->count = hn_kb_min(b, hn_kb_i(b, g->k.block), hn_kb_sub(b, n_tile, g->first));
    input(g);
    panels(g, hn_kb_muli(b, share, g->k.per));
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_f32_winograd__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    wino g = { .l = l, .b = b, .r = r, .mr = (int)p[P_MR], .nv = (int)p[P_NV], .lanes = t->vec_bytes / 4 };
    hn_conv_of(r, &g.c);
    hn_wino_of((int)p[P_M], &g.w);
    g.k = cut_of(&g.c, t, p);
    const int64_t t2 = (int64_t)g.w.t * g.w.t;
    const char *recipe = hn_arena_printf(ret->arena, "conv_w_f32_wino%d_n%lld", g.w.m, (long long)g.k.nr);
    const hn_blob blob = { g.c.w_operand, recipe, (size_t)(4 * t2 * g.c.c * g.k.panels * g.k.nr) };
    if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    g.x = hn_lower_in(l, g.c.x_operand);
    g.u = hn_lower_blob(l, 0, HN_F32);
    hn_kb_align(b, g.u, 64);
    g.v = hn_kb_scratch(b, "v", HN_F32, hn_kext_const(t2 * g.k.block * g.k.row));
    g.m = hn_kb_scratch(b, "m", HN_F32, hn_kext_const(t2 * g.k.block * g.k.nr));
    g.half = hn_kb_scratch(b, "half", HN_F32, hn_kext_const(t2 * g.lanes));
    blocks(&g);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [panel][pos][C][nr]; channels past OC are zero. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst,
                        hn_diag *dg)
{
    hn_conv c;
    hn_wino w;
    (void)blob;
    (void)dg;
    hn_conv_of(r, &c);
    hn_wino_of((int)p[P_M], &w);
    const cut k = cut_of(&c, t, p);
    const float *src = r->data[c.w_operand]->at;
    const int64_t t2 = (int64_t)w.t * w.t;
    float *out = dst;
    for (int64_t o = 0; o < k.panels * k.nr; o++)
        for (int64_t ic = 0; ic < c.c; ic++) {
            double g[3][3] = { { 0 } }, u[HN_WINO_MAX][HN_WINO_MAX];
            for (int i = 0; o < c.oc && i < 9; i++)
                g[i / 3][i % 3] = src[(o * c.c + ic) * 9 + i];
            hn_wino_filter(&w, g, u);
            for (int64_t q = 0; q < t2; q++)
                out[((o / k.nr * t2 + q) * c.c + ic) * k.nr + o % k.nr] = (float)u[q / w.t][q % w.t];
        }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_conv_f32_winograd__cpu = {
    .name = "conv_f32_winograd__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2 | HN_FEAT_FMA,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .changes_numbers = true,
    .source = HN_KNOB_math_winograd,
    .pin = { [P_M] = HN_KNOB_wino_tile, [P_MR] = HN_KNOB_wino_mr, [P_NV] = HN_KNOB_wino_nv,
             [P_TILES] = HN_KNOB_wino_tiles },
};
