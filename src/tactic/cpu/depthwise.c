/* Depthwise convolution over channels-last or blocked images: vectors along channels, a row of output places
 * in registers.
 *
 *     for each tile (image, block of rows, group of channels)        parallel
 *         [copy: the group's channels of those rows, with padding, into scratch of one group's width]
 *         for each row, for each px places
 *             for each kernel row, for each input column that the places reach
 *                 every place under which the column lies takes it: one load feeds up to kw multiply-adds
 *
 * Without a copy, places whose taps all lie inside the row run unguarded and those at its ends run one by one
 * over the taps that exist. The copy pays where the ends are much of the row, or where many channels put all
 * columns into few cache sets.
 */
#include "tactic/cpu/conv.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"

#include <math.h>

enum { P_PX, P_NV, P_VL, P_COPY, P_TILES };
enum { MAX_PX = 14, MAX_NV = 2, MAX_KW = 32, TILES_PER_CORE = 4 };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    hn_conv c;
    (void)t;
    const hn_fit fit = hn_conv_of(r, &c);
    if (fit != HN_FIT_YES) return fit;
    if (c.cg != 1 || c.og != 1) return HN_FIT_SHAPE;
    if (c.c < 4) return HN_FIT_TOO_SMALL;
    if (c.xi.planes > 1 && !c.xi.block) return HN_FIT_LAYOUT;
    return c.kw > MAX_KW ? HN_FIT_SHAPE : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t px[] = { 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14 }, nv[] = { 1, 2 }, copy[] = { 0, 1 };
    const int64_t lanes = t->vec_bytes / 4, vl[] = { lanes, lanes / 2 };
    (void)r;
    hn_space_add_list(ret, "px", HN_COUNT(px), px);
    hn_space_add_list(ret, "nv", 2, nv);
    hn_space_add_list(ret, "vl", lanes > 8 ? 2 : 1, vl);
    hn_space_add_list(ret, "copy", 2, copy);
    hn_space_add_settled(ret, "tiles", 5, (const int64_t[]){ TILES_PER_CORE, 1, 2, 8, 16 });
}

static int64_t group_count(const hn_conv *c, const int64_t *p)
{
    return (c->c + p[P_NV] * p[P_VL] - 1) / (p[P_NV] * p[P_VL]);
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    if (hn_conv_of(r, &c) != HN_FIT_YES) return false;
    const int64_t width = p[P_NV] * p[P_VL], places = c.has_columns ? c.ow_opt : 1;
    if (p[P_PX] > places || (p[P_PX] == 1 && places > 3)) return false;
    if (width > p[P_VL] && width / 2 >= c.c) return false;
    if (p[P_VL] > 8 && p[P_VL] / 2 >= c.c) return false;
    if ((c.xi.block && c.xi.block % p[P_VL]) || (c.yi.block && c.yi.block % p[P_VL])) return false;
    if (p[P_COPY] && !c.padded && c.c <= width) return false;
    return (p[P_PX] + HN_MIN(c.kw, 5)) * p[P_NV] + 2 <= t->n_vreg;
}

static int64_t rows_of(const hn_conv *c, const hn_target *t, const int64_t *p)
{
    const int64_t row = 4 * p[P_NV] * p[P_VL] * (c->ow_opt * c->sw + c->kw) * c->sh;
    int64_t most = HN_MAX(1, (p[P_COPY] ? t->l1d_bytes : t->l2_bytes) / 2 / row - (c->kh - 1) / c->sh);
    const int64_t want = p[P_TILES] * HN_MAX(1, t->n_core), have = c->n_opt * group_count(c, p);
    if (have < want) most = HN_MIN(most, HN_MAX(1, c->oh_opt * have / want));
    const int64_t blocks = (c->oh_opt + most - 1) / most;
    return (c->oh_opt + blocks - 1) / blocks;
}

/* Output columns whose taps all lie inside a row, at optimal sizes. */
static int64_t inner_columns(const hn_conv *c)
{
    const int64_t ends = 2 * ((c->kw - 1) * c->dw / 2 + c->sw - 1) / c->sw;
    return c->padded ? HN_MAX(0, c->ow_opt - ends) : c->ow_opt;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv c;
    hn_conv_of(r, &c);
    const double ghz = hn_cycles_ghz(t);
    const double unit = (double)p[P_NV] * (p[P_VL] > 8 ? 1 : 0.5), kw = (double)c.kw;
    const int64_t inner = p[P_COPY] ? c.ow_opt : inner_columns(&c), rows = rows_of(&c, t, p);
    const int64_t sizes[2] = { p[P_PX], inner % p[P_PX] },
                  count[2] = { inner / p[P_PX], inner % p[P_PX] > 0 };
    double cycles =
        (double)(c.ow_opt - inner) * kw * (double)c.kh * fmax(4, unit) + (double)(c.ow_opt - inner) * 12;
    for (int i = 0; i < 2; i++) {
        const double px = (double)sizes[i], loads = (px * (double)c.sw + 2 * kw) * unit;
        cycles += (double)count[i] *
                  ((double)c.kh * (fmax(fmax(px * kw * unit, loads), 4 * kw) + 2) + 2 * px * unit + 10);
    }
    if (p[P_COPY])
        cycles +=
            (double)hn_conv_rows_in(&c, rows) / (double)rows * (double)(c.ow_opt * c.sw + c.kw) * (unit + 1);
    const double memory =
        4.0 * (double)(c.n_opt * c.c * c.ow_opt) * (double)(c.sw * c.sh + 1) / (4 * t->bandwidth_gbs);
    const double lines =
        p[P_COPY] || c.xi.block || c.c * 4 % 2048 || c.ow_opt < 8 ? 1 : 1.3; /* columns share cache sets */
    return (double)(c.n_opt * c.oh_opt * group_count(&c, p)) * cycles * lines / ghz / 0.8 +
           memory * (double)c.oh_opt + 200;
}

/* ---- emission ---- */
typedef struct depthwise {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    hn_conv c;
    int px, nv, vl;
    bool copy, last; /* last: channels of the group end inside it */
    int64_t rows, groups;
    int weights;
    hn_conv_source src;
    hn_kv n, row0, ch0, w_base;
    hn_kv x_base[MAX_NV]; /* of the vectors' channels, at the block's first row; for no copy at row 0, column
                             0 */
    hn_kv k_lo, k_hi;     /* kernel rows that meet the image */
    hn_kv row, x_row;     /* output row; offset of the input row under kernel row 0 */
} depthwise;

static hn_kv mask_of(const depthwise *d, int v)
{
    const int64_t left = d->c.c % ((int64_t)d->nv * d->vl) - (int64_t)v * d->vl;
    if (!d->last || left >= d->vl) return HN_KV_NONE;
    return hn_kb_tail_mask(d->b, hn_kb_i(d->b, 0), hn_kb_i(d->b, HN_MAX(left, 0)), d->vl);
}

static int vectors(const depthwise *d)
{
    const int64_t left = d->c.c % ((int64_t)d->nv * d->vl);
    return d->last ? (int)((left + d->vl - 1) / d->vl) : d->nv;
}

static hn_kv load_x(const depthwise *d, int v, hn_kv at)
{
    const hn_kv i = hn_kb_add(d->b, d->x_base[v], at);
    return d->copy ? hn_kb_load(d->b, d->src.buf, i, d->vl)
                   : hn_kb_loadm(d->b, d->src.buf, i, d->vl, mask_of(d, v));
}

static hn_kv load_w(const depthwise *d, int v, hn_kv tap)
{
    const int64_t width = (int64_t)d->nv * d->vl;
    const hn_kv at = hn_kb_add(d->b, d->w_base, hn_kb_muli(d->b, tap, width));
    return hn_kb_load(d->b, d->weights, hn_kb_addi(d->b, at, (int64_t)v * d->vl), d->vl);
}

static void multiply_add(const depthwise *d, hn_kvar acc, hn_kv x, hn_kv w)
{
    hn_kb_set(d->b, acc, hn_kb_fma(d->b, x, w, hn_kb_get(d->b, acc)));
}

/* Kernel row k over px places that start at output column col: input columns in order, each to the places it
 * lies under. */
static void kernel_row(const depthwise *d, int px, hn_kv k, hn_kv col, hn_kvar *acc)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    const hn_kv line = hn_kb_add(b, d->x_row, hn_kb_mul(b, hn_kb_muli(b, k, c->dh), d->src.row));
    const hn_kv start = hn_kb_add(b, line, hn_kb_muli(b, col, c->sw * d->src.column));
    for (int v = 0; v < vectors(d); v++) {
        hn_kv w[MAX_KW];
        for (int j = 0; j < c->kw; j++)
            w[j] = load_w(d, v, hn_kb_addi(b, hn_kb_muli(b, k, c->kw), j));
        for (int64_t at = 0; at <= (px - 1) * c->sw + (c->kw - 1) * c->dw; at++) {
            hn_kv x = HN_KV_NONE;
            for (int i = 0; i < px; i++) {
                const int64_t off = at - i * c->sw;
                if (off < 0 || off % c->dw || off / c->dw >= c->kw) continue;
                if (!hn_kv_is(x)) x = load_x(d, v, hn_kb_addi(b, start, at * d->src.column));
                multiply_add(d, acc[i * d->nv + v], x, w[off / c->dw]);
            }
        }
    }
}

static void store(const depthwise *d, int px, hn_kv col, const hn_kvar *acc)
{
    hn_kb *b = d->b;
    for (int v = 0; v < vectors(d); v++) {
        const hn_kv ch = hn_kb_addi(b, d->ch0, (int64_t)v * d->vl), mask = mask_of(d, v);
        hn_kv bias = HN_KV_NONE;
        if (d->c.bias) {
            hn_kidx at;
            hn_kidx_init(&at, 1, &ch);
            hn_kidx_vector(&at, 0, d->vl);
            hn_lower_forget(d->l);
            bias = hn_lower_value(d->l, d->c.bias, &at, mask);
        }
        for (int i = 0; i < px; i++) {
            hn_kidx idx;
            hn_kv sum = hn_kb_get(b, acc[i * d->nv + v]);
            if (hn_kv_is(bias)) sum = hn_kb_add(b, sum, bias);
            hn_conv_index(&d->c, d->n, ch, hn_kb_add(b, d->row0, d->row), hn_kb_addi(b, col, i), &idx);
            hn_kidx_vector(&idx, 1, d->vl);
            idx.aligned = true;
            hn_lower_seed(d->l, d->c.y, sum);
            hn_lower_store(d->l, &idx, mask);
        }
    }
}

static void start(const depthwise *d, int px, hn_kvar *acc)
{
    for (int i = 0; i < px * d->nv; i++)
        acc[i] = hn_kb_var(d->b, hn_kb_float(d->b, HN_F32, d->vl, 0));
}

enum { UNROLL_OPS = 160 };

/* px places whose taps all lie inside the row. */
static void tile(const depthwise *d, int px, hn_kv col)
{
    hn_kb *b = d->b;
    hn_kvar acc[MAX_PX * MAX_NV];
    start(d, px, acc);
    int64_t lo, hi;
    if (hn_kb_is_const(b, d->k_lo, &lo) && hn_kb_is_const(b, d->k_hi, &hi) &&
        (hi - lo) * d->c.kw * px * d->nv <= UNROLL_OPS) {
        for (int64_t k = lo; k < hi; k++)
            kernel_row(d, px, hn_kb_i(b, k), col, acc);
    } else {
        const hn_kv k = hn_kb_for(b, d->k_lo, d->k_hi, 1);
        kernel_row(d, px, k, col, acc);
        hn_kb_end(b);
    }
    store(d, px, col, acc);
}

/* First multiple of `step` steps that brings `from` to 0 or above; how many steps keep it below `end`. */
static hn_kv steps_up(hn_kb *b, hn_kv from, int64_t step)
{
    const hn_kv lack = hn_kb_max(b, hn_kb_sub(b, hn_kb_i(b, 0), from), hn_kb_i(b, 0));
    return hn_kb_idiv(b, hn_kb_addi(b, lack, step - 1), hn_kb_i(b, step));
}

static hn_kv steps_below(hn_kb *b, hn_kv from, int64_t step, hn_kv end, int64_t most)
{
    const hn_kv room = hn_kb_max(b, hn_kb_sub(b, end, from), hn_kb_i(b, 0));
    return hn_kb_min(b, hn_kb_idiv(b, hn_kb_addi(b, room, step - 1), hn_kb_i(b, step)), hn_kb_i(b, most));
}

/* One place at the end of a row: only the kernel columns that exist. */
static void edge(const depthwise *d, hn_kv col)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    hn_kvar acc[MAX_NV];
    const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, col, c->sw), hn_lower_dim(d->l, c->pw));
    const hn_kv lo = steps_up(b, first, c->dw),
                hi = steps_below(b, first, c->dw, hn_lower_dim(d->l, c->xw), c->kw);
    start(d, 1, acc);
    const hn_kv k = hn_kb_for(b, d->k_lo, d->k_hi, 1), j = hn_kb_for(b, lo, hi, 1);
    const hn_kv line = hn_kb_add(b, d->x_row, hn_kb_mul(b, hn_kb_muli(b, k, c->dh), d->src.row));
    const hn_kv at = hn_kb_add(b, hn_kb_muli(b, col, c->sw), hn_kb_muli(b, j, c->dw));
    for (int v = 0; v < vectors(d); v++) {
        const hn_kv x = load_x(d, v, hn_kb_add(b, line, hn_kb_muli(b, at, d->src.column)));
        multiply_add(d, acc[v], x, load_w(d, v, hn_kb_add(b, hn_kb_muli(b, k, c->kw), j)));
    }
    hn_kb_end(b);
    hn_kb_end(b);
    store(d, 1, col, acc);
}

static void edges(const depthwise *d, hn_kv lo, hn_kv hi)
{
    const hn_kv col = hn_kb_for(d->b, lo, hi, 1);
    edge(d, col);
    hn_kb_end(d->b);
}

static void tile_inside(void *user, int places, hn_kv col)
{
    tile(user, places, col);
}

/* Columns [lo, hi), taps inside. */
static void inner(depthwise *d, hn_kv lo, hn_kv hi)
{
    hn_loops_cover(d->b, lo, hi, d->px, tile_inside, d);
}

static void row_copied(depthwise *d, hn_kv row)
{
    hn_kb *b = d->b;
    d->row = row;
    d->x_row = hn_kb_mul(b, hn_kb_muli(b, row, d->c.sh), d->src.row);
    d->k_lo = hn_kb_i(b, 0);
    d->k_hi = hn_kb_i(b, d->c.kh);
    inner(d, hn_kb_i(b, 0), hn_lower_dim(d->l, d->c.ow));
}

static void row_guarded(depthwise *d, hn_kv row)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    const hn_kv pw = hn_lower_dim(d->l, c->pw), zero = hn_kb_i(b, 0), ow = hn_lower_dim(d->l, c->ow);
    const hn_kv top =
        hn_kb_sub(b, hn_kb_muli(b, hn_kb_add(b, d->row0, row), c->sh), hn_lower_dim(d->l, c->ph));
    d->row = row;
    /* May point before the image: only taps inside are read. */
    d->x_row = hn_kb_sub(b, hn_kb_mul(b, top, d->src.row), hn_kb_muli(b, pw, d->src.column));
    d->k_lo = c->padded ? steps_up(b, top, c->dh) : zero;
    d->k_hi = c->padded ? steps_below(b, top, c->dh, hn_lower_dim(d->l, c->xh), c->kh) : hn_kb_i(b, c->kh);
    if (!c->padded) {
        inner(d, zero, ow);
        return;
    }
    const hn_kv lo = hn_kb_min(b, hn_kb_idiv(b, hn_kb_addi(b, pw, c->sw - 1), hn_kb_i(b, c->sw)), ow);
    const hn_kv room =
        hn_kb_sub(b, hn_kb_add(b, hn_lower_dim(d->l, c->xw), pw), hn_kb_i(b, (c->kw - 1) * c->dw));
    const hn_kv end = hn_kb_idiv(b, hn_kb_addi(b, hn_kb_max(b, room, zero), c->sw - 1), hn_kb_i(b, c->sw));
    const hn_kv hi = hn_kb_max(b, hn_kb_min(b, end, ow), lo);
    edges(d, zero, lo);
    inner(d, lo, hi);
    edges(d, hi, ow);
}

/* Offset of the vectors' channels within one image. */
static void channel_bases(depthwise *d, hn_kv image, int64_t planes_block)
{
    hn_kb *b = d->b;
    for (int v = 0; v < vectors(d); v++) {
        const hn_kv ch = hn_kb_addi(b, d->ch0, (int64_t)v * d->vl),
                    block = hn_kb_i(b, HN_MAX(planes_block, 1));
        const hn_kv off = planes_block ? hn_kb_add(b, hn_kb_mul(b, hn_kb_idiv(b, ch, block), d->src.plane),
                                                   hn_kb_imod(b, ch, block))
                                       : ch;
        d->x_base[v] = hn_kb_add(b, image, off);
    }
}

/* One group's channels of the input rows, padding as zeros: [row][column][nv*vl]. */
static void copy_group(depthwise *d, int scratch, hn_kv count)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->c;
    const int64_t width = (int64_t)d->nv * d->vl;
    const bool copy = d->copy;
    d->copy = false; /* loads below read the image, masked */
    hn_conv_direct(d->l, c, d->n, hn_kb_i(b, 0), &d->src);
    channel_bases(d, d->src.base, c->xi.block);
    hn_conv_source to;
    hn_conv_copied(d->l, c, scratch, width, d->rows, &to);
    const hn_kv columns = hn_kb_idiv(b, to.row, hn_kb_i(b, width));
    const hn_kv need = hn_kb_addi(b, hn_kb_muli(b, count, c->sh), (c->kh - 1) * c->dh + 1 - c->sh);
    const hn_kv top = hn_kb_sub(b, hn_kb_muli(b, d->row0, c->sh), hn_lower_dim(d->l, c->ph));
    const hn_kv r = hn_kb_forn(b, need), row = hn_kb_add(b, top, r),
                left = hn_kb_min(b, hn_lower_dim(d->l, c->pw), columns);
    const hn_kv inside =
        hn_kb_and(b, hn_kb_ge(b, row, hn_kb_i(b, 0)), hn_kb_lt(b, row, hn_lower_dim(d->l, c->xh)));
    const hn_kv end = hn_kb_min(b, columns, hn_kb_add(b, left, hn_lower_dim(d->l, c->xw)));
    const hn_kv from = hn_kb_select(b, inside, left, columns), until = hn_kb_select(b, inside, end, columns);
    const hn_kv line = hn_kb_mul(b, r, to.row),
                src = hn_kb_sub(b, hn_kb_mul(b, row, d->src.row), hn_kb_muli(b, left, d->src.column));
    const hn_kv lo[3] = { hn_kb_i(b, 0), from, until }, hi[3] = { from, until, columns };
    for (int part = 0; part < 3; part++) {
        const hn_kv j = hn_kb_for(b, lo[part], hi[part], 1);
        for (int v = 0; v < vectors(d); v++) {
            const hn_kv x = part == 1 ? load_x(d, v, hn_kb_add(b, src, hn_kb_muli(b, j, d->src.column)))
                                      : hn_kb_float(b, HN_F32, d->vl, 0);
            hn_kb_store(b, scratch,
                        hn_kb_addi(b, hn_kb_add(b, line, hn_kb_muli(b, j, width)), (int64_t)v * d->vl), x);
        }
        hn_kb_end(b);
    }
    hn_kb_end(b);
    d->copy = copy;
    d->src = to;
    for (int v = 0; v < d->nv; v++)
        d->x_base[v] = hn_kb_i(b, (int64_t)v * d->vl);
}

static void group(depthwise *d, int scratch, hn_kv count, bool last)
{
    hn_kb *b = d->b;
    d->last = last;
    if (d->copy) {
        copy_group(d, scratch, count);
    } else {
        hn_conv_direct(d->l, &d->c, d->n, hn_kb_i(b, 0), &d->src);
        channel_bases(d, d->src.base, d->c.xi.block);
    }
    const hn_kv row = hn_kb_forn(b, count);
    if (d->copy)
        row_copied(d, row);
    else
        row_guarded(d, row);
    hn_kb_end(b);
}

static void tiles(depthwise *d, int scratch)
{
    hn_kb *b = d->b;
    hn_symtab *syms = d->r->g->syms;
    const int64_t width = (int64_t)d->nv * d->vl;
    const hn_dim n_blocks = hn_dim_ceildiv(syms, d->c.oh, d->rows);
    const hn_kv total = hn_lower_dim(d->l, hn_dim_mul(syms, hn_dim_mul(syms, d->c.n, n_blocks), d->groups));
    const hn_kv per_image = hn_lower_dim(d->l, n_blocks), oh = hn_lower_dim(d->l, d->c.oh);
    const hn_kv t = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv at = hn_kb_idiv(b, t, hn_kb_i(b, d->groups)), g = hn_kb_imod(b, t, hn_kb_i(b, d->groups));
    d->n = hn_kb_idiv(b, at, per_image);
    d->row0 = hn_kb_muli(b, hn_kb_imod(b, at, per_image), d->rows);
    d->ch0 = hn_kb_muli(b, g, width);
    d->w_base = hn_kb_muli(b, g, width * d->c.kh * d->c.kw);
    const hn_kv count = hn_kb_min(b, hn_kb_i(b, d->rows), hn_kb_sub(b, oh, d->row0));
    if (d->c.c % width == 0) {
        group(d, scratch, count, false);
    } else if (d->groups == 1) {
        group(d, scratch, count, true);
    } else {
        hn_kb_if(b, hn_kb_eq(b, g, hn_kb_i(b, d->groups - 1)));
        group(d, scratch, count, true);
        hn_kb_else(b);
        group(d, scratch, count, false);
        hn_kb_end(b);
    }
    hn_kb_end(b);
}

static int group_scratch(depthwise *d)
{
    hn_conv one = d->c;
    one.xi.planes = 1;
    return hn_conv_scratch(d->l, &one, d->rows, (int64_t)d->nv * d->vl);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "depthwise_f32_rows__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    depthwise d = {
        .l = l, .b = b, .r = r, .px = (int)p[P_PX], .nv = (int)p[P_NV], .vl = (int)p[P_VL], .copy = p[P_COPY]
    };
    hn_conv_of(r, &d.c);
    d.rows = rows_of(&d.c, t, p);
    d.groups = group_count(&d.c, p);
    const int64_t width = (int64_t)d.nv * d.vl;
    const char *recipe = hn_arena_printf(ret->arena, "depthwise_w_f32_n%lld", (long long)width);
    const hn_blob blob = { d.c.w_operand, recipe, (size_t)(4 * width * d.groups * d.c.kh * d.c.kw) };
    if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    d.weights = hn_lower_blob(l, 0, HN_F32);
    hn_kb_align(b, d.weights, 64);
    tiles(&d, d.copy ? group_scratch(&d) : -1);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [group of channels][kh][kw][nv*vl] */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst,
                        hn_diag *dg)
{
    hn_conv c;
    (void)t;
    (void)blob;
    (void)dg;
    hn_conv_of(r, &c);
    const int64_t width = p[P_NV] * p[P_VL], area = c.kh * c.kw;
    const float *w = r->data[c.w_operand]->at;
    float *out = dst;
    for (int64_t g = 0; g < group_count(&c, p); g++)
        for (int64_t k = 0; k < area; k++)
            for (int64_t j = 0; j < width; j++)
                *out++ = g * width + j < c.c ? w[(g * width + j) * area + k] : 0;
    return HONE_OK;
}

const hn_tactic_def hn_tactic_depthwise_f32_rows__cpu = {
    .name = "depthwise_f32_rows__cpu",
    .rev = 2,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2 | HN_FEAT_FMA,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_depthwise,
    .pin = { [P_PX] = HN_KNOB_depthwise_places, [P_NV] = HN_KNOB_depthwise_nv, [P_VL] = HN_KNOB_depthwise_lanes,
             [P_COPY] = HN_KNOB_depthwise_copy, [P_TILES] = HN_KNOB_depthwise_tiles },
};
