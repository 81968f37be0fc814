/* Direct convolution: a tile of output places times a panel of output channels stays in registers over all
 * taps.
 *
 *     for each tile (image, block of rows, panels of channels)        parallel
 *         [copy the rows with their padding into scratch]             unless nothing is padded
 *         for each panel
 *             for each mr places of the block                         along a row, or through the rows when
 * flat acc[mr][nr] += x[place, tap] * w[tap][nr]           taps run contiguously where storage allows
 *                 epilogue(acc + bias) -> y
 *
 * Weights are packed [panel][plane][kh][kw][element][nr] in the order in which the image is stored, so that
 * one loop nest serves channels-last, blocked and plain images; neighbouring loops whose strides fit merge (a
 * 3x3 window over channels-last storage is three runs of 3*C elements). A transposed convolution is one whose
 * panels belong to phases (conv.h). No im2col: Zhang et al., "High performance zero-memory overhead direct
 * convolutions" (2018), with padding moved to a copy that stays in the second-level cache.
 */
#include "tactic/cpu/ahead.h"
#include "tactic/cpu/conv.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"
#include "tactic/cpu/totals.h"

enum { P_MR, P_NV, P_VL, P_FLAT, P_TILES, P_AHEAD };
enum { MAX_ROWS = 28, MAX_NV = 6, MAX_ACC = 31, TILES_PER_CORE = 4 };
/* Peers cut all sums of convolutions into 128 taps. Whole sums of up to 511 round 1.7 times as much and are cut so too; from 512 on
 * blocks of 256 round 1.4 times as much, at half the cost. */
enum { SHORT_BLOCK = 128 };

static bool pointwise_linear(const hn_conv *c)
{
    return !c->padded && c->kh == 1 && c->kw == 1 && c->sh == 1 && c->sw == 1;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    hn_conv c;
    (void)t;
    const hn_fit fit = hn_conv_any_of(r, &c);
    if (fit != HN_FIT_YES) return fit;
    if (c.og < 4 && c.cg < 4 && (c.group > 1 || c.cg * c.kh * c.kw < 16)) return HN_FIT_TOO_SMALL;
    if (!c.transposed && c.group > 1 && c.xi.block && c.cg % c.xi.block) return HN_FIT_SHAPE;
    return HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t wide[] = { 1, 2, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 25, 28 };
    static const int64_t narrow[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 12 };
    static const int64_t nv[] = { 1, 2, 3, 4, 6 }, flat[] = { 0, 1 };
    const int64_t lanes = t->vec_bytes / 4, vl[] = { lanes, lanes / 2, lanes / 4 };
    (void)r;
    if (t->n_vreg >= 32)
        hn_space_add_list(ret, "mr", HN_COUNT(wide), wide);
    else
        hn_space_add_list(ret, "mr", HN_COUNT(narrow), narrow);
    hn_space_add_list(ret, "nv", t->n_vreg >= 32 ? 5 : 3, nv);
    hn_space_add_list(ret, "vl", lanes > 8 ? 3 : lanes > 4 ? 2 : 1, vl);
    hn_space_add_list(ret, "flat", 2, flat);
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ TILES_PER_CORE, 1, 2, 8, 16 });
    hn_space_add_settled(ret, "ahead", 2, (const int64_t[]){ 1, 0 });
}

/* Places of one run of tiles: a row, or a block of rows. */
typedef struct blocks {
    int64_t rows;   /* output rows a block; in linear mode, places */
    int64_t n;      /* blocks an image, at optimal sizes */
    int64_t strip;  /* places in a run of tiles, at optimal sizes */
    int64_t panels; /* of one group */
    int64_t per;    /* panels a tile: the rows are copied once for all of them */
    bool linear;
} blocks;

/* Rows whose input stays in half the second-level cache while the panels pass over it; fewer where threads
 * would idle. */
static blocks blocks_of(const hn_conv *c, const hn_target *t, const int64_t *p)
{
    blocks k = { .linear = pointwise_linear(c) && p[P_FLAT] };
    const int64_t nr = p[P_NV] * p[P_VL], total = k.linear ? c->oh_opt * c->ow_opt : c->oh_opt;
    const int64_t row = 4 * c->c * (k.linear ? 1 : (c->ow_opt * c->sw + c->kw) * c->sh);
    k.panels = (c->og + nr - 1) / nr;
    int64_t most = HN_MAX(1, t->l2_bytes / 2 / HN_MAX(row, 1) - (k.linear ? 0 : (c->kh - 1) / c->sh));
    const int64_t want = p[P_TILES] * HN_MAX(1, t->n_core), have = c->n_opt * c->group * k.panels;
    if (have < want) most = HN_MIN(most, HN_MAX(1, total * have / want));
    if (k.linear) most = HN_MAX(p[P_MR], most / p[P_MR] * p[P_MR]);
    k.n = (total + most - 1) / most;
    k.rows = k.linear ? HN_MIN(most, HN_MAX(total, 1)) : (total + k.n - 1) / k.n;
    k.n = (total + k.rows - 1) / k.rows;
    const int64_t tiles = HN_MAX(1, (want + c->n_opt * k.n - 1) / (c->n_opt * k.n));
    k.per = c->padded ? HN_MAX(1, (c->group * k.panels + tiles - 1) / tiles) : 1;
    k.strip = k.linear ? k.rows : p[P_FLAT] ? HN_MIN(k.rows, c->oh_opt) * c->ow_opt : c->ow_opt;
    return k;
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    if (hn_conv_any_of(r, &c) != HN_FIT_YES) return false;
    const int64_t acc = p[P_MR] * p[P_NV], lanes = t->vec_bytes / 4;
    if (acc + (p[P_NV] > 1 ? p[P_NV] + 1 : 2) > t->n_vreg) return false;
    if (p[P_VL] > 4 && p[P_VL] / 2 >= c.og) return false;
    if (p[P_VL] < HN_MIN(8, lanes) && c.og > 4) return false;
    if ((p[P_NV] - 1) * p[P_VL] >= c.og && p[P_NV] > 1) return false;
    if (c.yi.block && c.yi.block % p[P_VL]) return false;
    if (p[P_FLAT] && !pointwise_linear(&c) && c.ow_opt >= 48) return false; /* rows are long enough */
    if (!p[P_FLAT] && pointwise_linear(&c)) return false;
    if (!p[P_FLAT] && !c.has_columns) return false;
    const blocks k = blocks_of(&c, t, p);
    if (p[P_MR] > k.strip) return false;
    return acc >= 8 || p[P_MR] >= k.strip || p[P_VL] < lanes;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    hn_conv_any_of(r, &c);
    const blocks k = blocks_of(&c, t, p);
    const double ghz = hn_cycles_ghz(t);
    const double taps = (double)(c.cg * c.kh * c.kw), nr = (double)(p[P_NV] * p[P_VL]);
    const int64_t strips = c.n_opt * k.n * (p[P_FLAT] ? 1 : k.rows), full = k.strip / p[P_MR],
                  rest = k.strip % p[P_MR];
    const int64_t whole = c.og / (p[P_NV] * p[P_VL]), left = c.og % (p[P_NV] * p[P_VL]);
    const double shared = hn_cycles_conflict(t, p[P_MR], 4 * c.xi.elems * c.sw);
    double cycles = 0;
    for (int last = 0; last < 2; last++) {
        const int64_t nv = last ? (left + p[P_VL] - 1) / p[P_VL] : p[P_NV], count = last ? left > 0 : whole;
        if (!count) continue;
        const double tile = taps * hn_cycles_step(t, p[P_MR], nv, p[P_VL], (int64_t)taps, 1) * shared +
                            (double)(p[P_MR] * nv) * 2 + 20 +
                            (p[P_FLAT] && !k.linear ? 6.0 * (double)p[P_MR] : 0);
        const double end = rest ? taps * hn_cycles_step(t, rest, nv, p[P_VL], (int64_t)taps, 1) * shared +
                                      (double)(rest * nv) * 2 + 20
                                : 0;
        cycles += (double)count * ((double)full * tile + end);
    }
    const double copied = c.padded ? (double)(c.n_opt * k.n * hn_conv_rows_in(&c, k.rows) * c.c *
                                              ((k.panels * c.group + k.per - 1) / k.per)) *
                                         (double)(c.ow_opt * c.sw + c.kw)
                                   : 0;
    const double weights = 4 * taps * nr * (double)(k.panels * c.group) / t->bandwidth_gbs;
    return (double)(c.group * strips) * cycles / ghz / 0.93 + copied * 0.12 + weights * 0.3 + 200;
}

/* ---- emission ---- */
enum { FIRST_ALWAYS, FIRST_ROW, FIRST_COLUMN };

typedef struct step_loop {
    int64_t count;
    hn_kv stride;
    int first; /* whether tap 0 is there: d->has_first of FIRST_ROW, FIRST_COLUMN */
} step_loop;

typedef struct direct {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    hn_conv c;
    blocks k;
    int mr, nv, vl;
    bool flat;
    int weights, scratch;
    hn_conv_source src;
    step_loop nest[4];
    int n_nest;
    int64_t taps;
    hn_kv n, row0, oc0, w_base; /* of the tile */
    hn_kv phase_h, phase_w;     /* transposed: of the panel, less what is cropped */
    hn_kv has_first[3];         /* of the panel's phase, by FIRST_* */
    hn_ahead ahead;
    hn_totals totals;
    hn_kv x_base;          /* group's first element in src */
    hn_kv place[MAX_ROWS]; /* flat: offsets of the places of the tile; else only the first */
} direct;

/* Phases of a transposed convolution have one tap less than others where the stride does not divide the kernel.
 * That tap has to be left out: a weight of 0 would make NaN of an infinity. */
static int first_row(const hn_conv *c)
{
    return c->transposed && c->full_kh % c->up_h ? FIRST_ROW : FIRST_ALWAYS;
}

static int first_column(const hn_conv *c)
{
    return c->transposed && c->full_kw % c->up_w ? FIRST_COLUMN : FIRST_ALWAYS;
}

/* The loops over taps, those whose storage is one run merged. */
static void make_nest(direct *d)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    const int64_t planes = c->xi.planes > 1 ? c->cg / HN_MAX(c->xi.block, 1) : 1;
    const int64_t elems = c->xi.planes > 1 ? HN_MAX(c->xi.block, 1) : c->xi.elems > 1 ? c->cg : 1;
    const step_loop all[4] = {
        { planes, d->src.plane, FIRST_ALWAYS },
        { c->kh, hn_kb_muli(b, d->src.row, c->dh), first_row(c) },
        { c->kw, hn_kb_i(b, d->src.column * c->dw), first_column(c) },
        { elems, hn_kb_i(b, 1), FIRST_ALWAYS },
    };
    d->n_nest = 0;
    for (int i = 0; i < 4; i++) {
        if (all[i].count == 1 && !all[i].first && (i < 3 || d->n_nest > 0)) continue;
        int64_t outer, inner;
        step_loop *before = d->n_nest ? &d->nest[d->n_nest - 1] : NULL;
        if (before && !before->first && !all[i].first && hn_kb_is_const(d->b, before->stride, &outer) &&
            hn_kb_is_const(d->b, all[i].stride, &inner) && outer == inner * all[i].count) {
            before->count *= all[i].count;
            before->stride = all[i].stride;
            continue;
        }
        d->nest[d->n_nest++] = all[i];
    }
}

typedef struct micro {
    int rows, nv;
    hn_kvar acc[MAX_ACC];
} micro;

/* One tap: nv loads of weights, a broadcast for each place. */
static void tap(direct *d, micro *m, hn_kv x_at, hn_kv w_at)
{
    hn_kb *b = d->b;
    hn_kv wv[MAX_NV];
    for (int v = 0; v < m->nv; v++)
        wv[v] = hn_kb_load(b, d->weights, hn_kb_addi(b, w_at, (int64_t)v * d->vl), d->vl);
    for (int i = 0; i < m->rows; i++) {
        const hn_kv at = d->flat && !d->k.linear
                             ? hn_kb_add(b, d->place[i], x_at)
                             : hn_kb_addi(b, hn_kb_add(b, d->place[0], x_at), i * d->c.sw * d->src.column);
        const hn_kv x = hn_kb_load_splat(b, d->src.buf, at, d->vl);
        for (int v = 0; v < m->nv; v++) {
            hn_kvar *a = &m->acc[i * m->nv + v];
            hn_kb_set(b, *a, hn_kb_fma(b, x, wv[v], hn_kb_get(b, *a)));
        }
    }
}

enum { UNROLL = 4, UNROLL_WHOLE = 8, UNROLL_BODY = 24 };

static void taps(direct *d, micro *m, int level, hn_kv x_at, hn_kv w_at);

static void taps_once(direct *d, micro *m, int level, hn_kv i, hn_kv x_at, hn_kv w_at, int64_t inner)
{
    hn_kb *b = d->b;
    const int64_t nr = (int64_t)d->nv * d->vl;
    const hn_kv x = hn_kb_add(b, x_at, hn_kb_mul(b, i, d->nest[level].stride)),
                w = hn_kb_add(b, w_at, hn_kb_muli(b, i, inner * nr));
    const int first = d->nest[level].first;
    int64_t at;
    const bool may_lack = first && (!hn_kb_is_const(b, i, &at) || at == 0);
    if (may_lack) hn_kb_if(b, hn_kb_or(b, d->has_first[first], hn_kb_gt(b, i, hn_kb_i(b, 0))));
    if (level == d->n_nest - 1)
        tap(d, m, x, w);
    else
        taps(d, m, level + 1, x, w);
    if (may_lack) hn_kb_end(b);
}

/* One loop of the nest; small ones are written out. */
static void taps(direct *d, micro *m, int level, hn_kv x_at, hn_kv w_at)
{
    hn_kb *b = d->b;
    const int64_t count = d->nest[level].count;
    int64_t inner = 1;
    for (int i = level + 1; i < d->n_nest; i++)
        inner *= d->nest[i].count;
    const bool innermost = level == d->n_nest - 1;
    if (innermost ? count <= UNROLL_WHOLE : count * inner <= UNROLL_BODY) {
        for (int64_t i = 0; i < count; i++)
            taps_once(d, m, level, hn_kb_i(b, i), x_at, w_at, inner);
        return;
    }
    const int64_t step = innermost ? UNROLL : 1, whole = count / step * step;
    const bool cut = d->totals.buf >= 0 && inner <= d->totals.block && count * inner > d->totals.block;
    hn_kv from = hn_kb_i(b, 0), to = hn_kb_i(b, whole);
    if (cut) {
        const int64_t block = HN_MAX(step, d->totals.block / inner / step * step);
        from = hn_kb_for(b, from, to, block);
        to = hn_kb_min(b, hn_kb_addi(b, from, block), to);
    }
    const hn_kv i = hn_kb_for(b, from, to, step);
    if (innermost)
        hn_ahead_step(b, &d->ahead,
                      hn_kb_sub(b, hn_kb_add(b, w_at, hn_kb_muli(b, i, (int64_t)d->nv * d->vl)), d->w_base));
    for (int64_t u = 0; u < step; u++)
        taps_once(d, m, level, hn_kb_addi(b, i, u), x_at, w_at, inner);
    hn_kb_end(b);
    if (cut) {
        hn_totals_add(&d->totals, m->acc, m->rows * m->nv);
        hn_kb_end(b);
    }
    for (int64_t u = whole; u < count; u++)
        taps_once(d, m, level, hn_kb_i(b, u), x_at, w_at, inner);
}

/* Rows and columns of the places of a tile that starts at place p of its strip. */
static void places(direct *d, hn_kv strip_row, hn_kv p, int rows, hn_kv *row, hn_kv *col)
{
    hn_kb *b = d->b;
    if (!d->flat) {
        for (int i = 0; i < rows; i++) {
            row[i] = strip_row;
            col[i] = hn_kb_addi(b, p, i);
        }
        return;
    }
    const hn_kv ow = hn_lower_dim(d->l, d->c.ow);
    row[0] = hn_kb_idiv(b, p, ow);
    col[0] = hn_kb_sub(b, p, hn_kb_mul(b, row[0], ow));
    for (int i = 1; i < rows; i++) {
        const hn_kv next = hn_kb_addi(b, col[i - 1], 1), wrap = hn_kb_eq(b, next, ow);
        col[i] = hn_kb_select(b, wrap, hn_kb_i(b, 0), next);
        row[i] = hn_kb_select(b, wrap, hn_kb_addi(b, row[i - 1], 1), row[i - 1]);
    }
}

/* Lanes of vector v in a group's last panel that are channels; NONE: all. */
static hn_kv channel_mask(direct *d, int v)
{
    const int64_t left = d->c.og % ((int64_t)d->nv * d->vl) - (int64_t)v * d->vl;
    return left < d->vl ? hn_kb_tail_mask(d->b, hn_kb_i(d->b, 0), hn_kb_i(d->b, left), d->vl) : HN_KV_NONE;
}

/* From a place to the output of the panel's phase there; yields whether the image has it, NONE where it
 * always does. */
static hn_kv output_of_place(direct *d, hn_kv *row, hn_kv *col)
{
    hn_kb *b = d->b;
    hn_symtab *syms = d->r->g->syms;
    const hn_conv *c = &d->c;
    const hn_dim oh = c->y->type.dim[2], ow = c->has_columns ? c->y->type.dim[3] : 1;
    *row = hn_kb_add(b, hn_kb_muli(b, *row, c->up_h), d->phase_h);
    *col = hn_kb_add(b, hn_kb_muli(b, *col, c->up_w), d->phase_w);
    if (c->crop_h == 0 && c->crop_w == 0 && oh == hn_dim_mul(syms, c->oh, c->up_h) &&
        ow == hn_dim_mul(syms, c->ow, c->up_w))
        return HN_KV_NONE;
    const hn_kv low = hn_kb_and(b, hn_kb_ge(b, *row, hn_kb_i(b, 0)), hn_kb_ge(b, *col, hn_kb_i(b, 0)));
    const hn_kv high =
        hn_kb_and(b, hn_kb_lt(b, *row, hn_lower_dim(d->l, oh)), hn_kb_lt(b, *col, hn_lower_dim(d->l, ow)));
    return hn_kb_and(b, low, high);
}

static void store(direct *d, const micro *m, const hn_kv *row, const hn_kv *col, bool last_panel)
{
    hn_kb *b = d->b;
    hn_kv bias[MAX_NV];
    for (int v = 0; d->c.bias && v < m->nv; v++) {
        const hn_kv oc = hn_kb_addi(b, d->oc0, (int64_t)v * d->vl);
        hn_kidx at;
        hn_kidx_init(&at, 1, &oc);
        hn_kidx_vector(&at, 0, d->vl);
        hn_lower_forget(d->l);
        bias[v] = hn_lower_value(d->l, d->c.bias, &at, last_panel ? channel_mask(d, v) : HN_KV_NONE);
    }
    for (int i = 0; i < m->rows; i++) {
        hn_kv at_row = row[i], at_col = col[i];
        const hn_kv exists = d->c.transposed ? output_of_place(d, &at_row, &at_col) : HN_KV_NONE;
        if (hn_kv_is(exists)) hn_kb_if(b, exists);
        for (int v = 0; v < m->nv; v++) {
            hn_kidx idx;
            const hn_kv oc = hn_kb_addi(b, d->oc0, (int64_t)v * d->vl);
            hn_kv sum = hn_kb_get(b, m->acc[i * m->nv + v]);
            const hn_kv mask = last_panel ? channel_mask(d, v) : HN_KV_NONE;
            if (d->c.bias) sum = hn_kb_add(b, sum, bias[v]);
            hn_conv_index(&d->c, d->n, oc, at_row, at_col, &idx);
            hn_kidx_vector(&idx, 1, d->vl);
            idx.aligned = d->c.og % d->vl == 0 || d->c.group == 1 || d->c.transposed;
            hn_lower_seed(d->l, d->c.y, sum);
            hn_lower_store(d->l, &idx, mask);
        }
        if (hn_kv_is(exists)) hn_kb_end(b);
    }
}

static int64_t tiles_of_strip(const direct *d)
{
    return (d->k.strip + d->mr - 1) / d->mr;
}

static void begin_ahead(direct *d, hn_kv strip_row, hn_kv p)
{
    hn_kb *b = d->b;
    const int64_t panel_elems = (int64_t)d->nv * d->vl * d->taps;
    hn_kv number = hn_kb_idiv(b, p, hn_kb_i(b, d->mr));
    if (!d->flat) number = hn_kb_add(b, number, hn_kb_muli(b, strip_row, tiles_of_strip(d)));
    hn_ahead_tile(b, &d->ahead, panel_elems, hn_kb_addi(b, d->w_base, panel_elems), number);
}

/* `rows` places from place p of the strip, nv vectors of channels. strip_row: output row of the strip, within
 * the block. */
static void tile(direct *d, int rows, hn_kv strip_row, hn_kv p, bool last_panel)
{
    hn_kb *b = d->b;
    const int64_t nr = (int64_t)d->nv * d->vl, left = d->c.og % nr;
    micro m = { .rows = rows, .nv = last_panel ? (int)((left + d->vl - 1) / d->vl) : d->nv };
    hn_kv row[MAX_ROWS], col[MAX_ROWS];
    if (d->k.linear) {
        d->place[0] = hn_kb_add(b, d->x_base, hn_kb_muli(b, p, d->src.column));
    } else {
        places(d, strip_row, p, rows, row, col);
        for (int i = 0; i < (d->flat ? rows : 1); i++) {
            const hn_kv down = hn_kb_mul(b, hn_kb_muli(b, row[i], d->c.sh), d->src.row);
            d->place[i] =
                hn_kb_add(b, d->x_base, hn_kb_add(b, down, hn_kb_muli(b, col[i], d->c.sw * d->src.column)));
        }
    }
    for (int i = 0; i < m.rows * m.nv; i++)
        m.acc[i] = hn_kb_var(b, hn_kb_float(b, HN_F32, d->vl, 0));
    begin_ahead(d, strip_row, p);
    hn_totals_clear(&d->totals, m.rows * m.nv);
    taps(d, &m, 0, hn_kb_i(b, 0), d->w_base);
    hn_totals_take(&d->totals, m.acc, m.rows * m.nv);
    if (d->k.linear)
        places(d, HN_KV_NONE, hn_kb_add(b, d->row0, p), rows, row, col);
    else
        for (int i = 0; i < rows; i++)
            row[i] = hn_kb_add(b, d->row0, row[i]);
    store(d, &m, row, col, last_panel);
}

typedef struct strip_of {
    direct *d;
    hn_kv row;
    bool last_panel;
} strip_of;

static void tile_of_strip(void *user, int places, hn_kv at)
{
    const strip_of *s = user;
    tile(s->d, places, s->row, at, s->last_panel);
}

static void strip(direct *d, hn_kv row, hn_kv length, bool last_panel)
{
    strip_of s = { d, row, last_panel };
    hn_loops_cover(d->b, hn_kb_i(d->b, 0), length, d->mr, tile_of_strip, &s);
}

static void block(direct *d, hn_kv count, bool last_panel)
{
    hn_kb *b = d->b;
    if (d->flat) {
        strip(d, HN_KV_NONE, d->k.linear ? count : hn_kb_mul(b, count, hn_lower_dim(d->l, d->c.ow)),
              last_panel);
        return;
    }
    const hn_kv row = hn_kb_forn(b, count);
    strip(d, row, hn_lower_dim(d->l, d->c.ow), last_panel);
    hn_kb_end(b);
}

static void panel(direct *d, hn_kv count, hn_kv q)
{
    const int64_t nr = (int64_t)d->nv * d->vl;
    if (d->c.og % nr == 0) {
        block(d, count, false);
    } else if (d->k.panels == 1) {
        block(d, count, true);
    } else {
        hn_kb_if(d->b, hn_kb_eq(d->b, q, hn_kb_i(d->b, d->k.panels - 1)));
        block(d, count, true);
        hn_kb_else(d->b);
        block(d, count, false);
        hn_kb_end(d->b);
    }
}

static hn_kv group_offset(direct *d, hn_kv g)
{
    if (d->c.transposed) return hn_kb_i(d->b, 0);
    const int64_t per = d->c.xi.block ? d->c.cg / d->c.xi.block : d->c.cg;
    return d->c.xi.planes > 1 ? hn_kb_mul(d->b, hn_kb_muli(d->b, g, per), d->src.plane)
                              : hn_kb_muli(d->b, g, per);
}

/* Where the rows of the tile under way are read. */
static void open_source(direct *d, hn_kv count)
{
    hn_kb *b = d->b;
    if (d->c.padded) {
        hn_conv_copied(d->l, &d->c, d->scratch, d->src.column, d->k.rows, &d->src);
        hn_conv_copy(d->l, &d->c, d->scratch, d->src.column, d->k.rows, d->n, d->row0, count);
    } else if (d->k.linear) {
        hn_conv_direct(d->l, &d->c, d->n, hn_kb_i(b, 0), &d->src);
        d->src.base = hn_kb_add(b, d->src.base, hn_kb_muli(b, d->row0, d->src.column));
    } else {
        hn_conv_direct(d->l, &d->c, d->n, d->row0, &d->src);
    }
    make_nest(d);
}

static void phase(direct *d, hn_kv g)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    const hn_kv row = hn_kb_idiv(b, g, hn_kb_i(b, c->up_w)), column = hn_kb_imod(b, g, hn_kb_i(b, c->up_w));
    d->phase_h = hn_kb_addi(b, row, -c->crop_h);
    d->phase_w = hn_kb_addi(b, column, -c->crop_w);
    d->has_first[FIRST_ROW] = hn_kb_lt(b, row, hn_kb_i(b, c->full_kh - c->up_h * (c->kh - 1)));
    d->has_first[FIRST_COLUMN] = hn_kb_lt(b, column, hn_kb_i(b, c->full_kw - c->up_w * (c->kw - 1)));
}

static void panels_of_tile(direct *d, hn_kv first, hn_kv count)
{
    hn_kb *b = d->b;
    const int64_t nr = (int64_t)d->nv * d->vl, all = d->k.panels * d->c.group;
    const hn_kv end = hn_kb_min(b, hn_kb_addi(b, first, d->k.per), hn_kb_i(b, all));
    const hn_kv pq = d->k.per > 1 ? hn_kb_for(b, first, end, 1) : first;
    const hn_kv g = hn_kb_idiv(b, pq, hn_kb_i(b, d->k.panels)),
                q = hn_kb_imod(b, pq, hn_kb_i(b, d->k.panels));
    d->x_base = hn_kb_add(b, d->src.base, group_offset(d, g));
    d->oc0 = hn_kb_add(b, d->c.transposed ? hn_kb_i(b, 0) : hn_kb_muli(b, g, d->c.og), hn_kb_muli(b, q, nr));
    if (d->c.transposed) phase(d, g);
    d->w_base = hn_kb_muli(b, pq, nr * d->taps);
    panel(d, count, q);
    if (d->k.per > 1) hn_kb_end(b);
}

static void tiles(direct *d)
{
    hn_kb *b = d->b;
    hn_symtab *syms = d->r->g->syms;
    const int64_t runs = (d->k.panels * d->c.group + d->k.per - 1) / d->k.per; /* of panels */
    const hn_dim rows = d->k.linear ? hn_dim_mul(syms, d->c.oh, d->c.ow) : d->c.oh;
    const hn_dim n_blocks = hn_dim_ceildiv(syms, rows, d->k.rows);
    const hn_kv total = hn_lower_dim(d->l, hn_dim_mul(syms, hn_dim_mul(syms, d->c.n, n_blocks), runs));
    const hn_kv per_image = hn_lower_dim(d->l, n_blocks), n_rows = hn_lower_dim(d->l, rows);
    const hn_kv t = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv at = hn_kb_idiv(b, t, hn_kb_i(b, runs)), run = hn_kb_imod(b, t, hn_kb_i(b, runs));
    d->n = hn_kb_idiv(b, at, per_image);
    d->row0 = hn_kb_muli(b, hn_kb_imod(b, at, per_image), d->k.rows);
    int64_t known;
    hn_kv count = hn_kb_min(b, hn_kb_i(b, d->k.rows), hn_kb_sub(b, n_rows, d->row0));
    if (hn_dim_known(syms, rows, &known) && known % d->k.rows == 0) count = hn_kb_i(b, d->k.rows);
    open_source(d, count);
    panels_of_tile(d, hn_kb_muli(b, run, d->k.per), count);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_f32_direct__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    direct d = {
        .l = l, .b = b, .r = r, .mr = (int)p[P_MR], .nv = (int)p[P_NV], .vl = (int)p[P_VL], .flat = p[P_FLAT]
    };
    hn_conv_any_of(r, &d.c);
    d.k = blocks_of(&d.c, t, p);
    d.taps = d.c.cg * d.c.kh * d.c.kw;
    const int64_t nr = (int64_t)d.nv * d.vl;
    const hn_conv_image *im = &d.c.xi;
    const char *recipe = hn_arena_printf(ret->arena, "conv_w_f32_n%lld_g%lld_%s%d", (long long)nr,
                                         (long long)(d.c.transposed ? d.c.up_h : d.c.group),
                                         d.c.transposed   ? im->planes > 1 ? "tp" : "te"
                                         : im->planes > 1 ? "p"
                                                          : "e",
                                         im->block);
    const hn_blob blob = { d.c.w_operand, recipe, (size_t)(4 * nr * d.taps * d.k.panels * d.c.group) };
    if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    d.weights = hn_lower_blob(l, 0, HN_F32);
    hn_kb_align(b, d.weights, 64);
    d.totals = hn_totals_new(b, d.mr * d.nv, d.vl, d.taps, d.taps < 2 * HN_TOTALS_BLOCK ? SHORT_BLOCK : HN_TOTALS_BLOCK);
    hn_ahead_init(&d.ahead, t, d.weights, sizeof(float), nr * d.taps, d.k.panels * d.c.group,
                  tiles_of_strip(&d) * (d.flat ? 1 : d.k.rows), UNROLL * nr);
    d.ahead.on &= p[P_AHEAD] != 0;
    d.src.column = d.c.xi.elems;
    if (d.c.padded) d.scratch = hn_conv_scratch(l, &d.c, d.k.rows, d.src.column);
    tiles(&d);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [group][panel][plane][kh][kw][element][nr]; channels past the group's are zero. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst,
                        hn_diag *dg)
{
    hn_conv c;
    (void)blob;
    (void)dg;
    hn_conv_any_of(r, &c);
    const blocks k = blocks_of(&c, t, p);
    const int64_t nr = p[P_NV] * p[P_VL], area = c.kh * c.kw;
    const int64_t elems = c.xi.planes > 1 ? HN_MAX(c.xi.block, 1) : c.cg, planes = c.cg / elems;
    const float *w = r->data[c.w_operand]->at;
    float *out = dst;
    for (int64_t pq = 0; pq < k.panels * c.group; pq++)
        for (int64_t at = 0; at < planes * area * elems; at++) {
            const int64_t ic = at / (area * elems) * elems + at % elems, tap_at = at / elems % area;
            for (int64_t j = 0; j < nr; j++) {
                const int64_t o = pq % k.panels * nr + j;
                *out++ =
                    o < c.og ? hn_conv_weight(&c, w, pq / k.panels, o, ic, tap_at / c.kw, tap_at % c.kw) : 0;
            }
        }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_conv_f32_direct__cpu = {
    .name = "conv_f32_direct__cpu",
    .rev = 5,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2 | HN_FEAT_FMA,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_conv_direct,
    .pin = { [P_MR] = HN_KNOB_conv_mr, [P_NV] = HN_KNOB_conv_nv, [P_VL] = HN_KNOB_conv_lanes,
             [P_FLAT] = HN_KNOB_conv_flat, [P_TILES] = HN_KNOB_conv_tiles, [P_AHEAD] = HN_KNOB_conv_ahead },
};
