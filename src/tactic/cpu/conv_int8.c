/* Convolution of bytes by constant filters, in i32: four products an instruction.
 *
 *     for each tile (image, block of rows, panels of channels)        parallel
 *         [copy the rows, unsigned, with zero points around them]     conv_bytes.h
 *         for each panel of nr channels
 *             for each mr places along a row
 *                 acc[mr][nr] += four bytes of each place (one broadcast) * w[quad][nr][4]
 *                 epilogue(acc less what zero points added) -> y
 *
 * Taps whose bytes lie side by side are one run: a kernel row of kw*C bytes, or a tap's channels in grouped and dilated
 * convolutions. Weights are packed [group][panel][run][quad][nr][4]; a run that does not fill its last quad meets zeros
 * there, so what is read past it does not matter.
 */
#include "tactic/cpu/ahead.h"
#include "tactic/cpu/conv_bytes.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"

#include <math.h>

enum { P_MR, P_NV, P_VL, P_TILES };
enum { MAX_ROWS = 14, MAX_NV = 4, MAX_ACC = 31, QUAD = HN_INT8_QUAD, TILES_PER_CORE = 4 };
enum { BLOB_W, BLOB_SUMS, BLOB_ZEROS };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    hn_conv_bytes s;
    (void)t;
    const hn_fit fit = hn_conv_bytes_of(r, &s);
    if (fit != HN_FIT_YES) return fit;
    return s.c.group > 1 && s.c.og < 4 ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t mr[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14 }, nv[] = { 1, 2, 3, 4 };
    const int64_t lanes = t->vec_bytes / 4, vl[] = { lanes, lanes / 2 };
    (void)r;
    hn_space_add_list(ret, "mr", t->n_vreg >= 32 ? 11 : 8, mr);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 4 : 2, nv);
    hn_space_add_list(ret, "vl", lanes > 4 ? 2 : 1, vl);
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ TILES_PER_CORE, 1, 2, 8, 16 });
}

typedef struct blocks {
    int64_t rows, n;     /* output rows a block, blocks an image at usual sizes */
    int64_t strip;       /* places in a run of tiles */
    int64_t panels, per; /* of one group; panels a tile */
    int64_t quads, runs; /* of one run; of one place */
    bool copy;
} blocks;

/* Rows whose input stays in half the second-level cache; fewer where threads would idle. */
static blocks blocks_of(const hn_conv_bytes *s, const hn_target *t, const int64_t *p)
{
    const hn_conv *c = &s->c;
    const int64_t nr = p[P_NV] * p[P_VL], row = hn_conv_bytes_row_opt(s) * c->sh;
    blocks k = { .quads = (s->run + QUAD - 1) / QUAD, .runs = c->kh * s->runs_row };
    k.panels = (c->og + nr - 1) / nr;
    const int64_t all = c->group * k.panels, want = p[P_TILES] * HN_MAX(1, t->n_core);
    k.copy = hn_conv_bytes_must_copy(s) || (s->q.a_signed && all > 1);
    int64_t most = HN_MAX(1, t->l2_bytes / 2 / HN_MAX(row, 1) - (c->kh - 1) / c->sh);
    if (c->n_opt * all < want) most = HN_MIN(most, HN_MAX(1, c->oh_opt * c->n_opt * all / want));
    if (s->linear) most = HN_MAX(p[P_MR], most / p[P_MR] * p[P_MR]);
    k.n = (c->oh_opt + most - 1) / most;
    k.rows = s->linear ? HN_MIN(most, c->oh_opt) : (c->oh_opt + k.n - 1) / k.n;
    k.n = (c->oh_opt + k.rows - 1) / k.rows;
    const int64_t tiles = HN_MAX(1, (want + c->n_opt * k.n - 1) / (c->n_opt * k.n));
    k.per = k.copy ? HN_MAX(1, (all + tiles - 1) / tiles) : 1;
    k.strip = s->linear ? k.rows : c->ow_opt;
    return k;
}

/* Accumulators, weights and one broadcast fit the registers; without the instruction its steps need four more. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv_bytes s;
    if (hn_conv_bytes_of(r, &s) != HN_FIT_YES) return false;
    const int64_t acc = p[P_MR] * p[P_NV] + (s.q.row_sums ? p[P_MR] : 0), lanes = t->vec_bytes / 4;
    const int64_t other = p[P_NV] + 1 + s.q.row_sums + (hn_int8_has_dot(t) ? 0 : 4);
    if (acc + other > t->n_vreg || acc > MAX_ACC) return false;
    if (p[P_VL] < lanes && p[P_VL] < s.c.og) return false;
    if (p[P_NV] > 1 && (p[P_NV] - 1) * p[P_VL] >= s.c.og) return false;
    if (s.c.yi.block && s.c.yi.block % p[P_VL]) return false;
    const blocks k = blocks_of(&s, t, p);
    if (p[P_MR] > k.strip) return false;
    return acc >= 8 || p[P_MR] >= k.strip || p[P_NV] * p[P_VL] >= s.c.og || !hn_int8_has_dot(t);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv_bytes s;
    hn_conv_bytes_of(r, &s);
    const blocks k = blocks_of(&s, t, p);
    const double per = hn_int8_has_dot(t) ? 1 : 5, depth = (double)(k.quads * k.runs); /* instructions for one */
    const int64_t sizes[2] = { p[P_MR], k.strip % p[P_MR] }, count[2] = { k.strip / p[P_MR], k.strip % p[P_MR] > 0 };
    double cycles = 0;
    for (int i = 0; i < 2; i++) {
        const double step = hn_cycles_step(t, sizes[i], p[P_NV] + s.q.row_sums, p[P_VL], (int64_t)depth, 1);
        cycles += (double)count[i] * (depth * step * per + 10.0 * (double)(sizes[i] * p[P_NV]) + 20);
    }
    const double strips = (double)(s.c.n_opt * k.n * (s.linear ? 1 : k.rows)), all = (double)(k.panels * s.c.group);
    const double copied = k.copy ? (double)(s.c.n_opt * k.n * hn_conv_rows_in(&s.c, k.rows) * hn_conv_bytes_row_opt(&s)) *
                                       ceil(all / (double)k.per)
                                 : 0;
    const double weights = depth * QUAD * (double)(p[P_NV] * p[P_VL]) * all / t->bandwidth_gbs;
    return strips * all * cycles / hn_cycles_ghz(t) / 0.9 + copied * (s.c.xi.planes > 1 ? 1 : 0.05) + weights * 0.3 + 200;
}

/* ---- emission ---- */
typedef struct product {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    const hn_target *t;
    hn_conv_bytes s;
    blocks k;
    int mr, nv, vl;
    int x, weights, sums, zeros; /* buffers; x: operand or scratch */
    hn_kv row_bytes, x_base;     /* stride of input rows; first byte of the group */
    hn_kv n, row0, oc0, w_base;  /* of the tile */
    hn_kv za;
    hn_ahead ahead;
} product;

typedef struct tile {
    int rows, nv;
    hn_kv at; /* first byte of the first place */
    hn_kvar acc[MAX_ACC], sum[MAX_ROWS];
} tile;

static hn_kv quad_of(const product *d, hn_kv at)
{
    hn_kb *b = d->b;
    hn_kv x = hn_kb_load_as(b, d->x, at, HN_I32, 1, HN_KV_NONE);
    if (!d->k.copy) x = hn_int8_unsigned(b, &d->s.q, x, QUAD);
    return hn_kb_bitcast(b, hn_kb_splat(b, x, d->vl), HN_U8, QUAD * d->vl);
}

/* Ones in the first `count` bytes of every quad. */
static hn_kv ones(const product *d, int count)
{
    const uint32_t bits = 0x01010101u >> (8 * (QUAD - count));
    return hn_kb_bitcast(d->b, hn_kb_int(d->b, HN_I32, d->vl, (int32_t)bits), HN_I8, QUAD * d->vl);
}

/* Bytes x_at .. x_at+3 of every place, of which `count` belong to the run. */
static void step(const product *d, tile *m, hn_kv x_at, hn_kv w_at, int count)
{
    hn_kb *b = d->b;
    const int64_t place = d->s.linear ? d->s.c.c : d->s.c.sw * d->s.c.c;
    hn_kv wv[MAX_NV];
    for (int v = 0; v < m->nv; v++)
        wv[v] = hn_kb_load(b, d->weights, hn_kb_addi(b, w_at, (int64_t)v * d->vl * QUAD), d->vl * QUAD);
    for (int i = 0; i < m->rows; i++) {
        const hn_kv x = quad_of(d, hn_kb_addi(b, x_at, i * place));
        for (int v = 0; v < m->nv; v++) {
            const hn_kvar acc = m->acc[i * m->nv + v];
            hn_kb_set(b, acc, hn_kb_dot4(b, hn_kb_get(b, acc), x, wv[v]));
        }
        if (d->s.q.row_sums) hn_kb_set(b, m->sum[i], hn_kb_dot4(b, hn_kb_get(b, m->sum[i]), x, ones(d, count)));
    }
}

enum { UNROLL = 2, UNROLL_WHOLE = 12 };

static void run(const product *d, tile *m, hn_kv x_at, hn_kv w_at)
{
    hn_kb *b = d->b;
    const int64_t step_bytes = (int64_t)d->nv * d->vl * QUAD, full = d->s.run / QUAD;
    int64_t at = 0;
    if (full > UNROLL_WHOLE) {
        at = full / UNROLL * UNROLL;
        const hn_kv q = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, at), UNROLL), w = hn_kb_add(b, w_at, hn_kb_muli(b, q, step_bytes));
        hn_ahead_step(b, &d->ahead, hn_kb_sub(b, w, d->w_base));
        for (int u = 0; u < UNROLL; u++)
            step(d, m, hn_kb_add(b, x_at, hn_kb_addi(b, hn_kb_muli(b, q, QUAD), u * QUAD)), hn_kb_addi(b, w, u * step_bytes),
                 QUAD);
        hn_kb_end(b);
    }
    for (; at < d->k.quads; at++)
        step(d, m, hn_kb_addi(b, x_at, at * QUAD), hn_kb_addi(b, w_at, at * step_bytes),
             at < full ? QUAD : (int)(d->s.run % QUAD));
}

/* All runs of a tile; short ones are written out. */
static void runs(const product *d, tile *m)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->s.c;
    const int64_t run_bytes = (int64_t)d->nv * d->vl * QUAD * d->k.quads, tap = c->dw * c->c;
    const hn_kv row = hn_kb_muli(b, d->row_bytes, c->dh);
    const bool flat = d->k.runs * d->k.quads <= UNROLL_WHOLE;
    const int64_t rows = flat ? c->kh : 1;
    for (int64_t i = 0; i < rows; i++) {
        const hn_kv k = flat ? hn_kb_i(b, i) : hn_kb_fori(b, c->kh), x = hn_kb_add(b, m->at, hn_kb_mul(b, k, row));
        for (int64_t j = 0; j < d->s.runs_row; j++)
            run(d, m, hn_kb_addi(b, x, j * tap),
                hn_kb_add(b, d->w_base, hn_kb_addi(b, hn_kb_muli(b, k, d->s.runs_row * run_bytes), j * run_bytes)));
        if (!flat) hn_kb_end(b);
    }
}

static hn_kv channel_mask(const product *d, int v)
{
    const int64_t left = d->s.c.og % ((int64_t)d->nv * d->vl) - (int64_t)v * d->vl;
    return left < d->vl ? hn_kb_tail_mask(d->b, hn_kb_i(d->b, 0), hn_kb_i(d->b, left), d->vl) : HN_KV_NONE;
}

static void store(product *d, const tile *m, hn_kv panel, hn_kv row, hn_kv col, bool last_panel)
{
    hn_kb *b = d->b;
    for (int v = 0; v < m->nv; v++) {
        const hn_kv mask = last_panel ? channel_mask(d, v) : HN_KV_NONE;
        const hn_kv packed = hn_kb_addi(b, hn_kb_muli(b, panel, (int64_t)d->nv * d->vl), (int64_t)v * d->vl);
        const hn_kv sums = hn_kb_load(b, d->sums, packed, d->vl), oc = hn_kb_addi(b, d->oc0, (int64_t)v * d->vl);
        const hn_kv zeros = d->s.q.row_sums ? hn_kb_load(b, d->zeros, packed, d->vl) : HN_KV_NONE;
        for (int i = 0; i < m->rows; i++) {
            hn_kidx idx;
            hn_conv_bytes_index(d->l, &d->s, d->n, oc, d->s.linear ? hn_kb_addi(b, row, i) : row,
                                d->s.linear ? col : hn_kb_addi(b, col, i), &idx);
            hn_kidx_vector(&idx, 1, d->vl);
            idx.aligned = d->s.c.og % d->vl == 0 || d->s.c.group == 1;
            const hn_kv sum = d->s.q.row_sums ? hn_kb_get(b, m->sum[i]) : HN_KV_NONE;
            const hn_kv acc = hn_kb_get(b, m->acc[i * m->nv + v]);
            hn_lower_seed(d->l, d->s.c.y,
                          hn_int8_corrected(b, &d->s.q, acc, d->za, sums, zeros, sum, d->s.run * d->k.runs));
            hn_lower_store(d->l, &idx, mask);
        }
    }
}

/* `rows` places from place p of the strip. strip_row: its output row within the block. */
static void compute(product *d, hn_kv panel, int rows, hn_kv strip_row, hn_kv p, bool last_panel)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->s.c;
    const int64_t nr = (int64_t)d->nv * d->vl, panel_bytes = nr * QUAD * d->k.quads * d->k.runs;
    tile m = { .rows = rows, .nv = last_panel ? (int)((c->og % nr + d->vl - 1) / d->vl) : d->nv };
    const hn_kv row = d->s.linear ? p : strip_row, col = d->s.linear ? hn_kb_i(b, 0) : p;
    m.at = hn_kb_add(b, hn_kb_add(b, d->x_base, hn_kb_mul(b, hn_kb_muli(b, row, c->sh), d->row_bytes)),
                     hn_kb_muli(b, col, c->sw * c->c));
    const hn_kv zero = hn_kb_int(b, HN_I32, d->vl, 0);
    for (int i = 0; i < rows * m.nv; i++)
        m.acc[i] = hn_kb_var(b, zero);
    for (int i = 0; i < rows && d->s.q.row_sums; i++)
        m.sum[i] = hn_kb_var(b, zero);
    hn_kv number = hn_kb_idiv(b, p, hn_kb_i(b, d->mr));
    if (!d->s.linear) number = hn_kb_add(b, number, hn_kb_muli(b, strip_row, (d->k.strip + d->mr - 1) / d->mr));
    hn_ahead_tile(b, &d->ahead, panel_bytes, hn_kb_addi(b, d->w_base, panel_bytes), number);
    runs(d, &m);
    store(d, &m, panel, hn_kb_add(b, d->row0, row), col, last_panel);
}

typedef struct strip_of {
    product *d;
    hn_kv panel, row;
    bool last_panel;
} strip_of;

static void tile_of_strip(void *user, int places, hn_kv at)
{
    const strip_of *s = user;
    compute(s->d, s->panel, places, s->row, at, s->last_panel);
}

static void strip(product *d, hn_kv panel, hn_kv row, hn_kv length, bool last_panel)
{
    strip_of s = { d, panel, row, last_panel };
    hn_loops_cover(d->b, hn_kb_i(d->b, 0), length, d->mr, tile_of_strip, &s);
}

static void block(product *d, hn_kv panel, hn_kv count, bool last_panel)
{
    if (d->s.linear) {
        strip(d, panel, HN_KV_NONE, count, last_panel);
        return;
    }
    const hn_kv row = hn_kb_forn(d->b, count);
    strip(d, panel, row, hn_lower_dim(d->l, d->s.c.ow), last_panel);
    hn_kb_end(d->b);
}

/* panel: number over all groups. */
static void one_panel(product *d, hn_kv panel, hn_kv count)
{
    hn_kb *b = d->b;
    const int64_t nr = (int64_t)d->nv * d->vl;
    const hn_kv g = hn_kb_idiv(b, panel, hn_kb_i(b, d->k.panels)), q = hn_kb_imod(b, panel, hn_kb_i(b, d->k.panels));
    const hn_kv base = d->x_base;
    d->x_base = hn_kb_add(b, base, hn_kb_muli(b, g, d->s.c.cg));
    d->oc0 = hn_kb_add(b, hn_kb_muli(b, g, d->s.c.og), hn_kb_muli(b, q, nr));
    d->w_base = hn_kb_muli(b, panel, nr * QUAD * d->k.quads * d->k.runs);
    if (d->s.c.og % nr == 0 || d->k.panels == 1) {
        block(d, panel, count, d->s.c.og % nr != 0);
    } else {
        hn_kb_if(b, hn_kb_eq(b, q, hn_kb_i(b, d->k.panels - 1)));
        block(d, panel, count, true);
        hn_kb_else(b);
        block(d, panel, count, false);
        hn_kb_end(b);
    }
    d->x_base = base;
}

/* Where the block's rows are read. */
static void open_source(product *d, int scratch, hn_kv count)
{
    hn_kb *b = d->b;
    if (d->k.copy) {
        hn_conv_bytes_copy(d->l, &d->s, d->t, scratch, d->n, d->row0, count, d->za);
        d->x = scratch;
        d->x_base = hn_kb_i(b, 0);
        d->row_bytes = hn_conv_bytes_row(d->l, &d->s);
        return;
    }
    hn_conv_source from;
    hn_conv_direct(d->l, &d->s.c, d->n, d->row0, &from);
    d->x = from.buf;
    d->x_base = from.base;
    d->row_bytes = from.row;
}

static void tiles(product *d)
{
    hn_kb *b = d->b;
    hn_symtab *syms = d->r->g->syms;
    const hn_conv *c = &d->s.c;
    const int64_t all = d->k.panels * c->group, n_run = (all + d->k.per - 1) / d->k.per;
    const int scratch = d->k.copy ? hn_conv_bytes_scratch(d->l, &d->s, d->k.rows) : -1;
    const hn_dim n_blocks = hn_dim_ceildiv(syms, c->oh, d->k.rows);
    const hn_kv total = hn_lower_dim(d->l, hn_dim_mul(syms, hn_dim_mul(syms, c->n, n_blocks), n_run));
    const hn_kv per_image = hn_lower_dim(d->l, n_blocks), n_rows = hn_lower_dim(d->l, c->oh);
    const hn_kv t = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv at = hn_kb_idiv(b, t, hn_kb_i(b, n_run));
    const hn_kv first = hn_kb_muli(b, hn_kb_imod(b, t, hn_kb_i(b, n_run)), d->k.per);
    d->n = hn_kb_idiv(b, at, per_image);
    d->row0 = hn_kb_muli(b, hn_kb_imod(b, at, per_image), d->k.rows);
    int64_t known;
    hn_kv count = hn_kb_min(b, hn_kb_i(b, d->k.rows), hn_kb_sub(b, n_rows, d->row0));
    if (hn_dim_known(syms, c->oh, &known) && known % d->k.rows == 0) count = hn_kb_i(b, d->k.rows);
    d->za = hn_int8_zero_of_a(d->l, &d->s.q);
    open_source(d, scratch, count);
    const hn_kv end = hn_kb_min(b, hn_kb_addi(b, first, d->k.per), hn_kb_i(b, all));
    const hn_kv panel = d->k.per > 1 ? hn_kb_for(b, first, end, 1) : first;
    one_panel(d, panel, count);
    if (d->k.per > 1) hn_kb_end(b);
    hn_kb_end(b);
}

static bool add_blob(const product *d, hn_emission *ret, const char *what, int64_t n)
{
    const char *recipe = hn_arena_printf(ret->arena, "conv_%s_%s_n%d_v%d_g%lld_r%lld", what, d->s.q.b_signed ? "s8" : "u8",
                                         d->nv * d->vl, d->vl, (long long)d->s.c.group, (long long)d->s.run);
    return recipe && hn_vec_push(ret->arena, &ret->blobs, ((hn_blob){ d->s.c.w_operand, recipe, (size_t)n }));
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_int8_dot__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    product d = { .l = l, .b = b, .r = r, .t = t, .mr = (int)p[P_MR], .nv = (int)p[P_NV], .vl = (int)p[P_VL] };
    hn_conv_bytes_of(r, &d.s);
    d.k = blocks_of(&d.s, t, p);
    const int64_t nr = (int64_t)d.nv * d.vl, all = d.k.panels * d.s.c.group, panel = nr * QUAD * d.k.quads * d.k.runs;
    if (!add_blob(&d, ret, "w", all * panel) || !add_blob(&d, ret, "sums", all * nr * 4) ||
        (d.s.q.row_sums && !hn_int8_add_zeros(r, &d.s.q, d.s.c.oc, d.s.c.og, nr * d.k.panels, ret)))
        return HN_NOMEM(dg);
    d.weights = hn_lower_blob(l, BLOB_W, HN_I8);
    d.sums = hn_lower_blob(l, BLOB_SUMS, HN_I32);
    if (d.s.q.row_sums) d.zeros = hn_lower_blob(l, BLOB_ZEROS, HN_I32);
    hn_kb_align(b, d.weights, 64);
    hn_ahead_init(&d.ahead, t, d.weights, 1, panel, all,
                  (d.k.strip + d.mr - 1) / d.mr * (d.s.linear ? 1 : d.k.rows), UNROLL * nr * QUAD);
    tiles(&d);
    return hn_lower_finish_whole(l, ret, dg);
}

/* Byte of place `at` within run `run` of output channel o of group g; zero past the run and past the group. */
static int8_t weight(const hn_conv_bytes *s, const uint8_t *w, int64_t g, int64_t o, int64_t run_at, int64_t at)
{
    const hn_conv *c = &s->c;
    if (o >= c->og || at >= s->run) return 0;
    const int64_t i = run_at / s->runs_row, j = run_at % s->runs_row + at / c->cg, ic = at % c->cg;
    return hn_int8_signed(&s->q, w[(((g * c->og + o) * c->cg + ic) * c->kh + i) * c->kw + j]);
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst, hn_diag *dg)
{
    hn_conv_bytes s;
    (void)dg;
    hn_conv_bytes_of(r, &s);
    const blocks k = blocks_of(&s, t, p);
    const int64_t nr = p[P_NV] * p[P_VL], all = k.panels * s.c.group;
    const uint8_t *w = r->data[s.c.w_operand]->at;
    if (blob == BLOB_ZEROS) {
        hn_int8_pack_zeros(r, &s.q, s.c.oc, s.c.og, nr * k.panels, dst);
        return HONE_OK;
    }
    int8_t *out = dst;
    int32_t *sums = dst;
    for (int64_t pq = 0; pq < all; pq++)
        for (int64_t j = 0; j < nr; j++) {
            const int64_t g = pq / k.panels, o = pq % k.panels * nr + j;
            int32_t sum = 0;
            for (int64_t at = 0; at < k.runs * k.quads * QUAD; at++) {
                const int64_t of_run = at / (k.quads * QUAD), quad = at / QUAD;
                const int8_t x = weight(&s, w, g, o, of_run, at % (k.quads * QUAD));
                sum += x;
                if (blob == BLOB_W) out[((pq * k.runs * k.quads + quad) * nr + j) * QUAD + at % QUAD] = x;
            }
            if (blob == BLOB_SUMS) sums[pq * nr + j] = sum;
        }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_conv_int8_dot__cpu = {
    .name = "conv_int8_dot__cpu",
    .rev = 2,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_conv_int8,
    .pin = { [P_MR] = HN_KNOB_int8_mr, [P_NV] = HN_KNOB_int8_nv, [P_TILES] = HN_KNOB_int8_tiles },
};
