/* Depthwise convolution of bytes, in i32: vectors along channels, four columns an instruction.
 *
 *     for each tile (image, block of rows)                           parallel
 *         copy the rows, unsigned, with zero points around them      conv_bytes.h
 *         for each row, each vector of channels, each unit of places along the row
 *             for each kernel row, each four columns the unit reaches
 *                 x = the columns' bytes, channel by channel         one shuffle
 *                 acc[place] += x * w[place]                         weights of taps that lie in those columns, else 0
 *
 * Two places of a 3-wide window of stride 1 reach four columns: one shuffle serves both. Weights are packed
 * [vector][kernel row][place][four columns][lane][4].
 */
#include "tactic/cpu/conv_bytes.h"
#include "tactic/cpu/cycles.h"
#include "tactic/cpu/loops.h"

enum { P_PLACES, P_VL };
enum { MAX_PLACES = 4, MAX_QUADS = 8, QUAD = HN_INT8_QUAD, TILES_PER_CORE = 4 };
enum { BLOB_W, BLOB_SUMS, BLOB_ZEROS };

/* Columns that `places` neighbours reach. */
static int64_t span_of(const hn_conv *c, int64_t places)
{
    return (places - 1) * c->sw + (c->kw - 1) * c->dw + 1;
}

static int64_t quads_of(const hn_conv *c, int64_t places)
{
    return (span_of(c, places) + QUAD - 1) / QUAD;
}

/* Kernel column whose tap of this place lies in column `at` of the unit; -1: none. */
static int64_t tap_of(const hn_conv *c, int64_t place, int64_t at)
{
    const int64_t off = at - place * c->sw;
    return off < 0 || off % c->dw || off / c->dw >= c->kw ? -1 : off / c->dw;
}

static bool meets(const hn_conv *c, int64_t place, int64_t quad)
{
    for (int64_t i = 0; i < QUAD; i++)
        if (tap_of(c, place, quad * QUAD + i) >= 0) return true;
    return false;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    hn_conv_bytes s;
    (void)t;
    const hn_fit fit = hn_conv_bytes_of(r, &s);
    if (fit != HN_FIT_YES) return fit;
    if (s.c.cg != 1 || s.c.og != 1 || quads_of(&s.c, 1) > MAX_QUADS) return HN_FIT_SHAPE;
    return s.c.c < QUAD ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    static const int64_t places[] = { 1, 2, 4 };
    const int64_t lanes = t->vec_bytes / 4, vl[] = { lanes, lanes / 2 };
    (void)r;
    hn_space_add_list(ret, "places", 3, places);
    hn_space_add_list(ret, "vl", lanes > 4 ? 2 : 1, vl);
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv_bytes s;
    if (hn_conv_bytes_of(r, &s) != HN_FIT_YES) return false;
    if (quads_of(&s.c, p[P_PLACES]) > MAX_QUADS || p[P_PLACES] > HN_MAX(1, s.c.ow_opt)) return false;
    if (s.c.yi.block && s.c.yi.block % p[P_VL]) return false;
    return p[P_VL] == t->vec_bytes / 4 || s.c.c <= p[P_VL] || s.c.c % (t->vec_bytes / 4) != 0;
}

/* Rows whose input stays in half the second-level cache; fewer where threads would idle. */
static int64_t rows_of(const hn_conv_bytes *s, const hn_target *t)
{
    const hn_conv *c = &s->c;
    const int64_t row = hn_conv_bytes_row_opt(s) * c->sh, want = TILES_PER_CORE * HN_MAX(1, t->n_core);
    int64_t most = HN_MAX(1, t->l2_bytes / 2 / HN_MAX(row, 1) - (c->kh - 1) / c->sh);
    if (c->n_opt < want) most = HN_MIN(most, HN_MAX(1, c->oh_opt * c->n_opt / want));
    const int64_t blocks = (c->oh_opt + most - 1) / most;
    return (c->oh_opt + blocks - 1) / blocks;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_conv_bytes s;
    hn_conv_bytes_of(r, &s);
    const hn_conv *c = &s.c;
    const double dot = hn_int8_has_dot(t) ? 1 : 8, shuffle = 6; /* instructions for one */
    int64_t dots = 0;
    for (int64_t i = 0; i < p[P_PLACES]; i++)
        for (int64_t q = 0; q < quads_of(c, p[P_PLACES]); q++)
            dots += meets(c, i, q);
    const double unit = (double)c->kh * ((double)quads_of(c, p[P_PLACES]) * shuffle + (double)dots * dot) +
                        12.0 * (double)p[P_PLACES] + 6;
    const double units = (double)((c->ow_opt + p[P_PLACES] - 1) / p[P_PLACES]) * (double)((c->c + p[P_VL] - 1) / p[P_VL]);
    const double copied = (double)(c->n_opt * hn_conv_bytes_row_opt(&s) * c->oh_opt * c->sh) * 0.05;
    return (double)(c->n_opt * c->oh_opt) * units * unit / hn_cycles_ghz(t) / 0.8 + copied + 200;
}

/* ---- emission ---- */
typedef struct depthwise {
    hn_lower *l;
    hn_kb *b;
    const hn_region *r;
    hn_conv_bytes s;
    int places, vl;
    int64_t quads, rows;
    int x, weights, sums, zeros;
    hn_kv n, row0, za, row_bytes;
    hn_kv ch, w_base; /* of the vector of channels */
} depthwise;

static int64_t weight_at(const depthwise *d, int64_t i, int64_t place, int64_t quad)
{
    return ((i * d->places + place) * d->quads + quad) * d->vl * QUAD;
}

/* Bytes of four columns from `at`, channel by channel; columns from `end` on are not read and hold another's bytes. */
static hn_kv four_columns(const depthwise *d, hn_kv at, int64_t quad, int64_t end)
{
    hn_kb *b = d->b;
    hn_kv x[QUAD];
    for (int64_t i = 0; i < QUAD; i++) {
        const int64_t col = HN_MIN(quad * QUAD + i, end - 1);
        x[i] = i && col == HN_MIN(quad * QUAD + i - 1, end - 1)
                   ? x[i - 1]
                   : hn_kb_load(b, d->x, hn_kb_addi(b, at, col * d->s.c.c), d->vl);
    }
    int lane[64];
    for (int i = 0; i < d->vl * QUAD; i++)
        lane[i] = i % QUAD * d->vl + i / QUAD;
    return hn_kb_shuffle(b, hn_kb_concat(b, x[0], x[1]), hn_kb_concat(b, x[2], x[3]), lane, d->vl * QUAD);
}

/* Ones where a tap of the place lies in these columns. */
static hn_kv ones(const depthwise *d, int64_t place, int64_t quad)
{
    uint32_t bits = 0;
    for (int i = 0; i < QUAD; i++)
        if (tap_of(&d->s.c, place, quad * QUAD + i) >= 0) bits |= 1u << (8 * i);
    return hn_kb_bitcast(d->b, hn_kb_int(d->b, HN_I32, d->vl, (int32_t)bits), HN_I8, QUAD * d->vl);
}

typedef struct unit {
    int places;
    hn_kvar acc[MAX_PLACES], sum[MAX_PLACES];
} unit;

static void kernel_row(const depthwise *d, const unit *u, int64_t i, hn_kv at)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->s.c;
    const int64_t end = span_of(c, u->places);
    for (int64_t q = 0; q * QUAD < end; q++) {
        const hn_kv x = four_columns(d, at, q, end);
        for (int p = 0; p < u->places; p++) {
            if (!meets(c, p, q)) continue;
            const hn_kv w = hn_kb_load(b, d->weights, hn_kb_addi(b, d->w_base, weight_at(d, i, p, q)), d->vl * QUAD);
            hn_kb_set(b, u->acc[p], hn_kb_dot4(b, hn_kb_get(b, u->acc[p]), x, w));
            if (d->s.q.row_sums) hn_kb_set(b, u->sum[p], hn_kb_dot4(b, hn_kb_get(b, u->sum[p]), x, ones(d, p, q)));
        }
    }
}

static void store(const depthwise *d, const unit *u, hn_kv row, hn_kv col, hn_kv mask)
{
    hn_kb *b = d->b;
    const hn_kv sums = hn_kb_load(b, d->sums, d->ch, d->vl);
    const hn_kv zeros = d->s.q.row_sums ? hn_kb_load(b, d->zeros, d->ch, d->vl) : HN_KV_NONE;
    for (int p = 0; p < u->places; p++) {
        hn_kidx idx;
        hn_conv_bytes_index(d->l, &d->s, d->n, d->ch, hn_kb_add(b, d->row0, row), hn_kb_addi(b, col, p), &idx);
        hn_kidx_vector(&idx, 1, d->vl);
        idx.aligned = true;
        const hn_kv sum = d->s.q.row_sums ? hn_kb_get(b, u->sum[p]) : HN_KV_NONE;
        hn_lower_seed(d->l, d->s.c.y,
                      hn_int8_corrected(b, &d->s.q, hn_kb_get(b, u->acc[p]), d->za, sums, zeros, sum, d->s.c.kh * d->s.c.kw));
        hn_lower_store(d->l, &idx, mask);
    }
}

/* Places col .. col+places of a row. */
static void compute(const depthwise *d, int places, hn_kv row, hn_kv col, hn_kv mask)
{
    hn_kb *b = d->b;
    const hn_conv *c = &d->s.c;
    unit u = { .places = places };
    const hn_kv zero = hn_kb_int(b, HN_I32, d->vl, 0);
    for (int p = 0; p < places; p++) {
        u.acc[p] = hn_kb_var(b, zero);
        if (d->s.q.row_sums) u.sum[p] = hn_kb_var(b, zero);
    }
    const hn_kv at = hn_kb_add(b, hn_kb_add(b, hn_kb_mul(b, hn_kb_muli(b, row, c->sh), d->row_bytes), d->ch),
                               hn_kb_muli(b, col, c->sw * c->c));
    for (int64_t i = 0; i < c->kh; i++)
        kernel_row(d, &u, i, hn_kb_add(b, at, hn_kb_muli(b, d->row_bytes, i * c->dh)));
    store(d, &u, row, col, mask);
}

typedef struct row_part {
    const depthwise *d;
    hn_kv row, mask;
} row_part;

static void unit_of_row(void *user, int places, hn_kv col)
{
    const row_part *r = user;
    compute(r->d, places, r->row, col, r->mask);
}

static void row_of(const depthwise *d, hn_kv row, hn_kv mask)
{
    row_part r = { d, row, mask };
    hn_loops_cover(d->b, hn_kb_i(d->b, 0), hn_lower_dim(d->l, d->s.c.ow), d->places, unit_of_row, &r);
}

/* All rows of the block for the channels at d->ch. */
static void channels(depthwise *d, hn_kv vector, hn_kv count, hn_kv mask)
{
    hn_kb *b = d->b;
    d->ch = hn_kb_muli(b, vector, d->vl);
    d->w_base = hn_kb_muli(b, vector, weight_at(d, d->s.c.kh, 0, 0));
    const hn_kv row = hn_kb_forn(b, count);
    row_of(d, row, mask);
    hn_kb_end(b);
}

static void tiles(depthwise *d, const hn_target *t)
{
    hn_kb *b = d->b;
    hn_symtab *syms = d->r->g->syms;
    const hn_conv *c = &d->s.c;
    const hn_dim n_blocks = hn_dim_ceildiv(syms, c->oh, d->rows);
    const int64_t whole = c->c / d->vl, left = c->c % d->vl;
    const hn_kv total = hn_lower_dim(d->l, hn_dim_mul(syms, c->n, n_blocks)), per_image = hn_lower_dim(d->l, n_blocks);
    d->x = hn_conv_bytes_scratch(d->l, &d->s, d->rows);
    const hn_kv at = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    d->n = hn_kb_idiv(b, at, per_image);
    d->row0 = hn_kb_muli(b, hn_kb_imod(b, at, per_image), d->rows);
    const hn_kv count = hn_kb_min(b, hn_kb_i(b, d->rows), hn_kb_sub(b, hn_lower_dim(d->l, c->oh), d->row0));
    d->za = hn_int8_zero_of_a(d->l, &d->s.q);
    d->row_bytes = hn_conv_bytes_row(d->l, &d->s);
    hn_conv_bytes_copy(d->l, &d->s, t, d->x, d->n, d->row0, count, d->za);
    if (whole) {
        const hn_kv v = hn_kb_fori(b, whole);
        channels(d, v, count, HN_KV_NONE);
        hn_kb_end(b);
    }
    if (left) channels(d, hn_kb_i(b, whole), count, hn_kb_tail_mask(b, hn_kb_i(b, 0), hn_kb_i(b, left), d->vl));
    hn_kb_end(b);
}

static bool add_blob(const depthwise *d, hn_emission *ret, const char *what, int64_t n)
{
    const hn_conv *c = &d->s.c;
    const char *recipe = hn_arena_printf(ret->arena, "depthwise_%s_%s_p%d_v%d_s%lld_d%lld", what, d->s.q.b_signed ? "s8" : "u8",
                                         d->places, d->vl, (long long)c->sw, (long long)c->dw);
    return recipe && hn_vec_push(ret->arena, &ret->blobs, ((hn_blob){ c->w_operand, recipe, (size_t)n }));
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "depthwise_int8_columns__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    depthwise d = { .l = l, .b = b, .r = r, .places = (int)p[P_PLACES], .vl = (int)p[P_VL] };
    hn_conv_bytes_of(r, &d.s);
    d.quads = quads_of(&d.s.c, d.places);
    d.rows = rows_of(&d.s, t);
    const int64_t vectors = (d.s.c.c + d.vl - 1) / d.vl, all = vectors * d.vl;
    if (!add_blob(&d, ret, "w", vectors * weight_at(&d, d.s.c.kh, 0, 0)) || !add_blob(&d, ret, "sums", all * 4) ||
        (d.s.q.row_sums && !hn_int8_add_zeros(r, &d.s.q, d.s.c.c, d.s.c.c, all, ret)))
        return HN_NOMEM(dg);
    d.weights = hn_lower_blob(l, BLOB_W, HN_I8);
    d.sums = hn_lower_blob(l, BLOB_SUMS, HN_I32);
    if (d.s.q.row_sums) d.zeros = hn_lower_blob(l, BLOB_ZEROS, HN_I32);
    hn_kb_align(b, d.weights, 64);
    tiles(&d, t);
    return hn_lower_finish_whole(l, ret, dg);
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int blob, void *dst, hn_diag *dg)
{
    hn_conv_bytes s;
    (void)t;
    (void)dg;
    hn_conv_bytes_of(r, &s);
    const hn_conv *c = &s.c;
    const uint8_t *w = r->data[c->w_operand]->at;
    const int64_t vl = p[P_VL], all = (c->c + vl - 1) / vl * vl, area = c->kh * c->kw, quads = quads_of(c, p[P_PLACES]);
    if (blob == BLOB_ZEROS) {
        hn_int8_pack_zeros(r, &s.q, c->c, c->c, all, dst);
        return HONE_OK;
    }
    int32_t *sums = dst;
    for (int64_t ch = 0; blob == BLOB_SUMS && ch < all; ch++) {
        sums[ch] = 0;
        for (int64_t k = 0; ch < c->c && k < area; k++)
            sums[ch] += hn_int8_signed(&s.q, w[ch * area + k]);
    }
    if (blob == BLOB_SUMS) return HONE_OK;
    int8_t *out = dst;
    for (int64_t at = 0; at < all * c->kh * p[P_PLACES] * quads * QUAD; at++) {
        const int64_t lane = at / QUAD % vl, quad = at / (QUAD * vl) % quads, place = at / (QUAD * vl * quads) % p[P_PLACES];
        const int64_t i = at / (QUAD * vl * quads * p[P_PLACES]) % c->kh;
        const int64_t ch = at / (QUAD * vl * quads * p[P_PLACES] * c->kh) * vl + lane, j = tap_of(c, place, quad * QUAD + at % QUAD);
        out[at] = ch < c->c && j >= 0 ? hn_int8_signed(&s.q, w[ch * area + i * c->kw + j]) : 0;
    }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_depthwise_int8_columns__cpu = {
    .name = "depthwise_int8_columns__cpu",
    .rev = 2,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_depthwise,
    .pin = { [P_PLACES] = HN_KNOB_depthwise_places },
};
