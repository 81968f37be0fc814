/* LSTM and GRU in f32, whole: one launch multiplies all inputs by W, a second walks the steps.
 *
 * The gates of `lanes` hidden units lie side by side in the packed weights,
 * [direction][block][k][gate][lane], so that a block's gates meet in registers and the cell is updated there.
 * The walk keeps h (twice: read and written) and c in scratch and runs directions and tiles of the batch in
 * parallel. Weights that are no constants are packed by launches of their own.
 */
#include "tactic/cpu/loops.h"

#include <string.h>
#include <strings.h>

enum { P_NB, P_MB, P_MR };
enum { MAX_NB = 2, MAX_MB = 4, MAX_MR = 6, MAX_GATE = 4 };
enum { X, W, R, B, LENS, H0, C0, PEEP }; /* operands; gru ends at H0 */
enum { PACK_W, PACK_R, PACK_BIAS, PACK_RB, N_PACK };

static bool is_lstm(const hn_region *r)
{
    return r->root->op == HN_OP_lstm;
}

static int n_gate(const hn_region *r)
{
    return is_lstm(r) ? 4 : 3;
}

/* Sigmoid and tanh, by default or by name. */
static bool usual_activations(const hn_node *n)
{
    static const char *const lstm[] = { "sigmoid", "tanh", "tanh" }, *const gru[] = { "sigmoid", "tanh" };
    const int period = n->op == HN_OP_lstm ? 3 : 2;
    const char *s = hn_attr_s(n, "acts");
    for (int i = 0; s && *s; i++) {
        const char *want = n->op == HN_OP_lstm ? lstm[i % period] : gru[i % period];
        const size_t len = strcspn(s, ", ");
        if (len != strlen(want) || strncasecmp(s, want, len) != 0) return false;
        s += len;
        s += strspn(s, ", ");
    }
    return true;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_lstm && n->op != HN_OP_gru) return HN_FIT_OP;
    if (r->g->n_node != 1) return HN_FIT_EPILOGUE;
    if (n->out[0]->type.dtype != HN_F32) return HN_FIT_DTYPE;
    if (!usual_activations(n) || hn_attr_f(n, "clip") != 0 || hn_in(n, LENS)) return HN_FIT_ATTRIBUTE;
    if (is_lstm(r) && (hn_attr_i(n, "input_forget") || hn_in(n, PEEP))) return HN_FIT_ATTRIBUTE;
    if (!is_lstm(r) && !hn_attr_i(n, "linear_before_reset")) return HN_FIT_ATTRIBUTE;
    if (!hn_tdesc_is_static(&hn_in(n, W)->type) || !hn_tdesc_is_static(&hn_in(n, R)->type))
        return HN_FIT_SYMBOLIC;
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *v = hn_in(n, i);
        if (v && !hn_layout_is_plain(&v->layout)) return HN_FIT_LAYOUT;
        if (v && hn_region_operand(r, v) < 0)
            return HN_FIT_TOO_SMALL; /* one-element constants stand inside the region */
    }
    return HN_FIT_YES;
}

typedef struct cell {
    const hn_region *r;
    const hn_value *x, *w, *rec;
    int64_t i, h, hp, d, blocks; /* blocks of a direction */
    int gates, lanes, nb, mb, mr;
} cell;

static void shape_of(const hn_region *r, const hn_target *t, const int64_t *p, cell *c)
{
    *c = (cell){
        .r = r, .x = hn_in(r->root, X), .w = hn_in(r->root, W), .rec = hn_in(r->root, R), .gates = n_gate(r)
    };
    c->lanes = hn_lower_lanes(t, HN_F32);
    c->d = c->w->type.dim[0];
    c->i = c->w->type.dim[2];
    c->h = c->rec->type.dim[2];
    c->blocks = (c->h + c->lanes - 1) / c->lanes;
    c->hp = c->blocks * c->lanes;
    c->nb = (int)p[P_NB];
    c->mb = (int)p[P_MB];
    c->mr = (int)p[P_MR];
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r;
    (void)t;
    hn_space_add_list(ret, "nb", 2, (const int64_t[]){ 1, 2 });
    hn_space_add_list(ret, "mb", 3, (const int64_t[]){ 1, 2, 4 });
    hn_space_add_list(ret, "mr", 3, (const int64_t[]){ 1, 2, 6 });
}

/* Sums, one vector of weights and one broadcast must fit the registers. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    cell c;
    shape_of(r, t, p, &c);
    const hn_dim batch = c.x->type.dim[1];
    if (c.blocks % c.nb) return false;
    if (hn_dim_is_const(batch) && c.mb > 1 && batch < c.mb) return false;
    return c.gates * c.nb * c.mb + 2 <= t->n_vreg && c.gates * c.mr + 2 <= t->n_vreg;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    cell c;
    shape_of(r, t, p, &c);
    const double steps = (double)hn_region_opt(r, c.x->type.dim[0]),
                 batch = (double)hn_region_opt(r, c.x->type.dim[1]);
    const double per = 2.0 * (double)c.gates * (double)c.hp * (double)c.d;
    /* A sum a chain of additions: few of them leave the multipliers idle. */
    const double sums = c.gates * c.nb * c.mb, rows = c.gates * c.mr;
    const double tiles = (double)((int64_t)(batch + c.mb - 1) / c.mb) * c.mb;
    const double row_tiles = (double)((int64_t)(steps * batch + c.mr - 1) / c.mr) * c.mr;
    const double walk = hn_roofline_ns(t, steps * tiles * per * (double)c.h, 0,
                                       0.7 * sums / (sums + 6) * c.mb / (c.mb + 1), 1);
    const double project = hn_roofline_ns(t, row_tiles * per * (double)c.i, 0, 0.7 * rows / (rows + 6), 1);
    return walk + project + 40 * steps * batch * (double)(c.d * c.blocks) + 500;
}

/* ---- packed weights ---- */
/* Element of what a pack holds: direction, block, k, gate, lane; zero for units past the last. */
static int64_t pack_k(const cell *c, int which)
{
    return which == PACK_W ? c->i : which == PACK_R ? c->h : 1;
}

static int pack_gates(const cell *c, int which)
{
    return which == PACK_RB ? 1 : c->gates;
}

static int64_t pack_elems(const cell *c, int which)
{
    return c->d * c->blocks * pack_k(c, which) * pack_gates(c, which) * c->lanes;
}

static const hn_value *pack_source(const cell *c, int which)
{
    return which == PACK_W ? c->w : which == PACK_R ? c->rec : hn_in(c->r->root, B);
}

static const hn_data *pack_data(const cell *c, int which)
{
    const hn_value *v = pack_source(c, which);
    const int operand = v ? hn_region_operand(c->r, v) : -1;
    return operand >= 0 ? c->r->data[operand] : NULL;
}

static bool pack_used(const cell *c, int which)
{
    return which != PACK_RB || c->gates == 3;
}

/* Biases add up, but a gru's last gate adds the recurrent one behind its product. */
static float bias_at(const cell *c, const float *b, int which, int64_t dir, int gate, int64_t unit)
{
    const float *of_dir = b + dir * 2 * c->gates * c->h;
    if (which == PACK_RB) return of_dir[(2 * c->gates - 1) * c->h + unit];
    const float wb = of_dir[gate * c->h + unit], rb = of_dir[(c->gates + gate) * c->h + unit];
    return c->gates == 3 && gate == 2 ? wb : wb + rb;
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int n, void *dst,
                        hn_diag *dg)
{
    cell c;
    (void)dg;
    shape_of(r, t, p, &c);
    int which = -1; /* the n-th pack that is a blob */
    for (int left = n; left >= 0; left--)
        do
            which++;
        while (!pack_used(&c, which) || (pack_source(&c, which) && !pack_data(&c, which)));
    const hn_data *data = pack_data(&c, which);
    float *out = dst;
    const int64_t ks = pack_k(&c, which);
    for (int64_t dir = 0; dir < c.d; dir++)
        for (int64_t at = 0; at < c.blocks * ks; at++)
            for (int gl = 0; gl < pack_gates(&c, which) * c.lanes; gl++) {
                const int64_t unit = at / ks * c.lanes + gl % c.lanes, k = at % ks;
                const int gate = gl / c.lanes;
                float v = 0;
                if (data && unit < c.h) {
                    if (which >= PACK_BIAS)
                        v = bias_at(&c, data->at, which, dir, gate, unit);
                    else
                        v = ((const float *)data->at)[((dir * c.gates + gate) * c.h + unit) * ks + k];
                }
                *out++ = v;
            }
    return HONE_OK;
}

/* ---- packing while running ---- */
static hn_kv source_at(hn_lower *l, const hn_value *v, hn_kv dir, hn_kv row, hn_kv k)
{
    const hn_kv at[3] = { dir, row, k };
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    hn_lower_forget(l);
    return hn_lower_value(l, v, &idx, HN_KV_NONE);
}

static hn_kv packed_value(const cell *c, hn_lower *l, int which, hn_kv dir, hn_kv gate, hn_kv unit, hn_kv k)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_value *v = pack_source(c, which);
    const hn_kv row = hn_kb_add(b, hn_kb_muli(b, gate, c->h), unit);
    if (which == PACK_W || which == PACK_R) return source_at(l, v, dir, row, k);
    if (which == PACK_RB) return source_at(l, v, dir, hn_kb_addi(b, unit, (2 * c->gates - 1) * c->h), k);
    const hn_kv wb = source_at(l, v, dir, row, k),
                rb = source_at(l, v, dir, hn_kb_addi(b, row, c->gates * c->h), k);
    const hn_kv both = hn_kb_add(b, wb, rb);
    return c->gates == 3 ? hn_kb_select(b, hn_kb_eq(b, gate, hn_kb_i(b, 2)), wb, both) : both;
}

static hone_status emit_pack(const cell *c, const hn_target *t, int which, int temp, hn_emission *ret,
                             hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "recurrent_f32_cell__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, c->r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const int buf = hn_lower_temp(l, temp, HN_F32, true);
    const int64_t ks = pack_k(c, which), gates = pack_gates(c, which);
    const hn_kv trip = hn_kb_parallel(b, hn_kext_const(c->d * c->blocks));
    const hn_kv dir = hn_kb_idiv(b, trip, hn_kb_i(b, c->blocks)),
                block = hn_kb_imod(b, trip, hn_kb_i(b, c->blocks));
    const hn_kv gate = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, gates), 1),
                lane = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, c->lanes), 1);
    const hn_kv k = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, ks), 1);
    const hn_kv unit = hn_kb_add(b, hn_kb_muli(b, block, c->lanes), lane);
    const hn_kv row = hn_kb_add(b, hn_kb_muli(b, trip, ks), k);
    const hn_kv to =
        hn_kb_add(b, hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, row, gates), gate), c->lanes), lane);
    const hn_kvar v = hn_kb_var(b, hn_kb_f(b, 0));
    hn_kb_if(b, hn_kb_lt(b, unit, hn_kb_i(b, c->h)));
    hn_kb_set(b, v, packed_value(c, l, which, dir, gate, unit, k));
    hn_kb_end(b);
    hn_kb_store(b, buf, to, hn_kb_get(b, v));
    for (int i = 0; i < 4; i++)
        hn_kb_end(b);
    return hn_lower_finish(l, ret, 0, 8.0 * (double)pack_elems(c, which), dg);
}

/* Where a launch finds each pack: a blob, or a temporary that a launch before filled. */
typedef struct packs {
    bool is_temp[N_PACK];
    int index[N_PACK];
} packs;

static hone_status add_packs(const cell *c, const hn_target *t, hn_emission *ret, packs *at, hn_diag *dg)
{
    static const char *const name[] = { "w", "r", "bias", "rb" };
    for (int which = 0; which < N_PACK; which++) {
        if (!pack_used(c, which)) continue;
        const hn_value *v = pack_source(c, which);
        const int64_t bytes = pack_elems(c, which) * 4;
        at->is_temp[which] = v && !pack_data(c, which);
        if (at->is_temp[which]) {
            at->index[which] = ret->temp_bytes.n;
            if (!hn_vec_push(ret->arena, &ret->temp_bytes, bytes)) return HN_NOMEM(dg);
            HN_TRY(emit_pack(c, t, which, at->index[which], ret, dg));
            continue;
        }
        const hn_blob blob = { v ? hn_region_operand(c->r, v) : -1,
                               hn_arena_printf(ret->arena, "recurrent_%s_f32_g%d_n%d_%lld", name[which],
                                               c->gates, c->lanes, (long long)bytes),
                               (size_t)bytes };
        at->index[which] = ret->blobs.n;
        if (!blob.recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

static int pack_buf(hn_lower *l, const packs *at, int which)
{
    return at->is_temp[which] ? hn_lower_temp(l, at->index[which], HN_F32, false)
                              : hn_lower_blob(l, at->index[which], HN_F32);
}

/* ---- first launch: x W + bias, row tiles by blocks ---- */
static hone_status emit_project(const cell *c, const hn_target *t, const packs *at, int temp,
                                hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "recurrent_f32_cell__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, c->r, t);
    if (!b || !l) return HN_NOMEM(dg);
    hn_symtab *syms = c->r->g->syms;
    const int64_t all = c->d * c->blocks, wide = (int64_t)c->gates * c->lanes;
    const hn_dim rows_dim = hn_dim_mul(syms, c->x->type.dim[0], c->x->type.dim[1]);
    const hn_kv rows = hn_lower_dim(l, rows_dim);
    const hn_kv trips = hn_lower_dim(l, hn_dim_mul(syms, hn_dim_ceildiv(syms, rows_dim, c->mr), all));
    const int x = hn_lower_in(l, hn_region_operand(c->r, c->x)), w = pack_buf(l, at, PACK_W),
              bias = pack_buf(l, at, PACK_BIAS);
    const int out = hn_lower_temp(l, temp, HN_F32, true);
    const hn_kv trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1)),
                block = hn_kb_imod(b, trip, hn_kb_i(b, all));
    const hn_kv first = hn_kb_muli(b, hn_kb_idiv(b, trip, hn_kb_i(b, all)), c->mr);
    hn_kv row[MAX_MR];
    hn_kvar acc[MAX_MR][MAX_GATE];
    for (int m = 0; m < c->mr; m++) /* rows past the last repeat it */
        row[m] = m ? hn_kb_min(b, hn_kb_addi(b, first, m), hn_kb_addi(b, rows, -1)) : first;
    for (int g = 0; g < c->gates; g++) {
        const hn_kv v =
            hn_kb_load(b, bias, hn_kb_addi(b, hn_kb_muli(b, block, wide), (int64_t)g * c->lanes), c->lanes);
        for (int m = 0; m < c->mr; m++)
            acc[m][g] = hn_kb_var(b, v);
    }
    const hn_kv k = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, c->i), 1);
    const hn_kv panel = hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, block, c->i), k), wide);
    hn_kv xs[MAX_MR];
    for (int m = 0; m < c->mr; m++)
        xs[m] = hn_kb_load_splat(b, x, hn_kb_add(b, hn_kb_muli(b, row[m], c->i), k), c->lanes);
    for (int g = 0; g < c->gates; g++) {
        const hn_kv v = hn_kb_load(b, w, hn_kb_addi(b, panel, (int64_t)g * c->lanes), c->lanes);
        for (int m = 0; m < c->mr; m++)
            hn_kb_set(b, acc[m][g], hn_kb_fma(b, xs[m], v, hn_kb_get(b, acc[m][g])));
    }
    hn_kb_end(b);
    for (int m = 0; m < c->mr; m++)
        for (int g = 0; g < c->gates; g++) {
            const hn_kv to = hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, row[m], all), block), wide);
            hn_kb_store(b, out, hn_kb_addi(b, to, (int64_t)g * c->lanes), hn_kb_get(b, acc[m][g]));
        }
    hn_kb_end(b);
    const double n = (double)hn_region_opt(c->r, rows_dim);
    return hn_lower_finish(l, ret, 2.0 * n * (double)(all * wide * c->i), 4.0 * n * (double)c->i, dg);
}

/* ---- second launch: the steps ---- */
typedef struct walk {
    const cell *c;
    hn_lower *l;
    int g, r, rb;            /* buffers: projected inputs, recurrent weights, gru's recurrent bias */
    int h, cs;               /* scratch: [mb][2][hp], [mb][hp] */
    hn_kv steps, batch, dir; /* sizes; this trip's direction */
    hn_kv row[MAX_MB];       /* ... and rows of the batch */
} walk;

static hn_kv state_at(walk *w, int m, hn_kv half, hn_kv unit)
{
    hn_kb *b = hn_lower_kb(w->l);
    return hn_kb_add(b, hn_kb_addi(b, hn_kb_muli(b, half, w->c->hp), (int64_t)m * 2 * w->c->hp), unit);
}

static hn_kv unit_mask(walk *w, hn_kv unit)
{
    hn_kb *b = hn_lower_kb(w->l);
    return w->c->h % w->c->lanes ? hn_kb_tail_mask(b, unit, hn_kb_i(b, w->c->h), w->c->lanes) : HN_KV_NONE;
}

/* Place in a [d, b, h] tensor. */
static hn_kv outer_at(walk *w, int m, hn_kv unit)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_kv line = hn_kb_add(b, hn_kb_mul(b, w->dir, w->batch), w->row[m]);
    return hn_kb_add(b, hn_kb_muli(b, line, w->c->h), unit);
}

static hn_kv first_state(walk *w, int operand, int m, hn_kv unit)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_value *v = hn_in(w->c->r->root, operand);
    if (!v) return hn_kb_float(b, HN_F32, w->c->lanes, 0);
    const int buf = hn_lower_in(w->l, hn_region_operand(w->c->r, v));
    return hn_kb_loadm(b, buf, outer_at(w, m, unit), w->c->lanes, unit_mask(w, unit));
}

static void start_states(walk *w)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_kv unit = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, w->c->hp), w->c->lanes);
    for (int m = 0; m < w->c->mb; m++) {
        hn_kb_store(b, w->h, state_at(w, m, hn_kb_i(b, 0), unit), first_state(w, H0, m, unit));
        if (w->c->gates == 4)
            hn_kb_store(b, w->cs, hn_kb_addi(b, unit, (int64_t)m * w->c->hp), first_state(w, C0, m, unit));
    }
    hn_kb_end(b);
}

/* Gates in ONNX's order i o f c; yields the new h. */
static hn_kv lstm_cell(walk *w, int m, hn_kv unit, const hn_kv *gate)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_kv at = hn_kb_addi(b, unit, (int64_t)m * w->c->hp), old = hn_kb_load(b, w->cs, at, w->c->lanes);
    const hn_kv i = hn_kb_math(b, HN_KMATH_SIGMOID, gate[0]), o = hn_kb_math(b, HN_KMATH_SIGMOID, gate[1]);
    const hn_kv f = hn_kb_math(b, HN_KMATH_SIGMOID, gate[2]), g = hn_kb_math(b, HN_KMATH_TANH, gate[3]);
    const hn_kv c = hn_kb_fma(b, f, old, hn_kb_mul(b, i, g));
    hn_kb_store(b, w->cs, at, c);
    return hn_kb_mul(b, o, hn_kb_math(b, HN_KMATH_TANH, c));
}

/* Gates z r, and h R + Rb for the third; `in` is its x W + Wb. */
static hn_kv gru_cell(walk *w, hn_kv old, hn_kv in, const hn_kv *gate)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_kv z = hn_kb_math(b, HN_KMATH_SIGMOID, gate[0]), r = hn_kb_math(b, HN_KMATH_SIGMOID, gate[1]);
    const hn_kv g = hn_kb_math(b, HN_KMATH_TANH, hn_kb_fma(b, r, gate[2], in));
    return hn_kb_fma(b, z, hn_kb_sub(b, old, g), g);
}

typedef struct step {
    hn_kv time, from, to; /* step of the sequence; halves of h read and written */
    hn_kv block;          /* first block within the direction */
    hn_kvar acc[MAX_MB][MAX_NB][MAX_GATE];
} step;

/* Where x W of row m, block n stands. */
static hn_kv projected_at(walk *w, const step *s, int m, int n)
{
    hn_kb *b = hn_lower_kb(w->l);
    const cell *c = w->c;
    const hn_kv row = hn_kb_add(b, hn_kb_mul(b, s->time, w->batch), w->row[m]);
    const hn_kv block = hn_kb_add(b, hn_kb_muli(b, w->dir, c->blocks), hn_kb_addi(b, s->block, n));
    return hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, row, c->d * c->blocks), block),
                      (int64_t)c->gates * c->lanes);
}

static hn_kv first_sum(walk *w, const step *s, int m, int n, int g)
{
    hn_kb *b = hn_lower_kb(w->l);
    const cell *c = w->c;
    if (c->gates == 4 || g < 2)
        return hn_kb_load(b, w->g, hn_kb_addi(b, projected_at(w, s, m, n), (int64_t)g * c->lanes), c->lanes);
    const hn_kv block = hn_kb_add(b, hn_kb_muli(b, w->dir, c->blocks), hn_kb_addi(b, s->block, n));
    return hn_kb_load(b, w->rb, hn_kb_muli(b, block, c->lanes), c->lanes);
}

static void multiply_state(walk *w, step *s)
{
    hn_kb *b = hn_lower_kb(w->l);
    const cell *c = w->c;
    const hn_kv k = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, c->h), 1);
    hn_kv h[MAX_MB];
    for (int m = 0; m < c->mb; m++)
        h[m] = hn_kb_load_splat(b, w->h, state_at(w, m, s->from, k), c->lanes);
    for (int n = 0; n < c->nb; n++) {
        const hn_kv block = hn_kb_add(b, hn_kb_muli(b, w->dir, c->blocks), hn_kb_addi(b, s->block, n));
        const hn_kv panel =
            hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, block, c->h), k), (int64_t)c->gates * c->lanes);
        for (int g = 0; g < c->gates; g++) {
            const hn_kv v = hn_kb_load(b, w->r, hn_kb_addi(b, panel, (int64_t)g * c->lanes), c->lanes);
            for (int m = 0; m < c->mb; m++)
                hn_kb_set(b, s->acc[m][n][g], hn_kb_fma(b, h[m], v, hn_kb_get(b, s->acc[m][n][g])));
        }
    }
    hn_kb_end(b);
}

static void finish_block(walk *w, step *s, int m, int n, int y)
{
    hn_kb *b = hn_lower_kb(w->l);
    const cell *c = w->c;
    const hn_kv unit = hn_kb_muli(b, hn_kb_addi(b, s->block, n), c->lanes);
    hn_kv gate[MAX_GATE], h;
    for (int g = 0; g < c->gates; g++)
        gate[g] = hn_kb_get(b, s->acc[m][n][g]);
    if (c->gates == 4) {
        h = lstm_cell(w, m, unit, gate);
    } else {
        const hn_kv old = hn_kb_load(b, w->h, state_at(w, m, s->from, unit), c->lanes);
        const hn_kv in =
            hn_kb_load(b, w->g, hn_kb_addi(b, projected_at(w, s, m, n), 2LL * c->lanes), c->lanes);
        h = gru_cell(w, old, in, gate);
    }
    hn_kb_store(b, w->h, state_at(w, m, s->to, unit), h);
    if (y < 0) return;
    const hn_kv line = hn_kb_add(b, hn_kb_muli(b, s->time, c->d), w->dir);
    const hn_kv row = hn_kb_add(b, hn_kb_mul(b, line, w->batch), w->row[m]);
    hn_kb_storem(b, y, hn_kb_add(b, hn_kb_muli(b, row, c->h), unit), h, unit_mask(w, unit));
}

static void one_step(walk *w, step *s, int y)
{
    hn_kb *b = hn_lower_kb(w->l);
    const cell *c = w->c;
    s->block = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, c->blocks), c->nb);
    for (int m = 0; m < c->mb; m++)
        for (int n = 0; n < c->nb; n++)
            for (int g = 0; g < c->gates; g++)
                s->acc[m][n][g] = hn_kb_var(b, first_sum(w, s, m, n, g));
    multiply_state(w, s);
    for (int m = 0; m < c->mb; m++)
        for (int n = 0; n < c->nb; n++)
            finish_block(w, s, m, n, y);
    hn_kb_end(b);
}

static void store_last(walk *w, hn_kv half, int yh, int yc)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_kv unit = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, w->c->hp), w->c->lanes),
                mask = unit_mask(w, unit);
    for (int m = 0; m < w->c->mb; m++) {
        const hn_kv to = outer_at(w, m, unit);
        if (yh >= 0)
            hn_kb_storem(b, yh, to, hn_kb_load(b, w->h, state_at(w, m, half, unit), w->c->lanes), mask);
        if (yc >= 0)
            hn_kb_storem(b, yc, to,
                         hn_kb_load(b, w->cs, hn_kb_addi(b, unit, (int64_t)m * w->c->hp), w->c->lanes), mask);
    }
    hn_kb_end(b);
}

static int result_buf(hn_lower *l, const hn_region *r, int k)
{
    const int result = k < r->root->n_out ? hn_loops_result(r, k) : -1;
    return result >= 0 ? hn_lower_out(l, result) : -1;
}

/* direction: forward 0, reverse 1, bidirectional 2, forward first. */
static hn_kv is_reverse(walk *w)
{
    hn_kb *b = hn_lower_kb(w->l);
    const int64_t how = hn_attr_i(w->c->r->root, "direction");
    return how == 2 ? hn_kb_eq(b, w->dir, hn_kb_i(b, 1)) : hn_kb_int(b, HN_BOOL, 1, how == 1);
}

static void walk_steps(walk *w)
{
    hn_kb *b = hn_lower_kb(w->l);
    const hn_region *r = w->c->r;
    const int y = result_buf(w->l, r, 0), yh = result_buf(w->l, r, 1),
              yc = is_lstm(r) ? result_buf(w->l, r, 2) : -1;
    const hn_kv tiles = hn_lower_dim(w->l, hn_dim_ceildiv(r->g->syms, w->c->x->type.dim[1], w->c->mb));
    const hn_kv trips = hn_lower_dim(
        w->l, hn_dim_mul(r->g->syms, hn_dim_ceildiv(r->g->syms, w->c->x->type.dim[1], w->c->mb), w->c->d));
    const hn_kv trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1)), tile = hn_kb_imod(b, trip, tiles);
    w->dir = hn_kb_idiv(b, trip, tiles);
    for (int m = 0; m < w->c->mb; m++) /* rows past the last repeat it */
        w->row[m] =
            hn_kb_min(b, hn_kb_addi(b, hn_kb_muli(b, tile, w->c->mb), m), hn_kb_addi(b, w->batch, -1));
    start_states(w);
    const hn_kvar half = hn_kb_var(b, hn_kb_i(b, 0));
    const hn_kv t = hn_kb_forn(b, w->steps), back = hn_kb_sub(b, hn_kb_addi(b, w->steps, -1), t);
    step s = { .time = hn_kb_select(b, is_reverse(w), back, t), .from = hn_kb_get(b, half) };
    s.to = hn_kb_sub(b, hn_kb_i(b, 1), s.from);
    one_step(w, &s, y);
    hn_kb_set(b, half, s.to);
    hn_kb_end(b);
    store_last(w, hn_kb_get(b, half), yh, yc);
    hn_kb_end(b);
}

static hone_status emit_walk(const cell *c, const hn_target *t, const packs *at, int temp, hn_emission *ret,
                             hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "recurrent_f32_cell__cpu");
    walk w = { .c = c, .l = hn_lower_new(ret->arena, b, c->r, t) };
    if (!b || !w.l) return HN_NOMEM(dg);
    w.steps = hn_lower_dim(w.l, c->x->type.dim[0]);
    w.batch = hn_lower_dim(w.l, c->x->type.dim[1]);
    w.g = hn_lower_temp(w.l, temp, HN_F32, false);
    w.r = pack_buf(w.l, at, PACK_R);
    if (c->gates == 3) w.rb = pack_buf(w.l, at, PACK_RB);
    w.h = hn_kb_scratch(b, "h", HN_F32, hn_kext_const(2 * c->mb * c->hp));
    if (c->gates == 4) w.cs = hn_kb_scratch(b, "c", HN_F32, hn_kext_const(c->mb * c->hp));
    walk_steps(&w);
    const double n =
        (double)hn_region_opt(c->r, c->x->type.dim[0]) * (double)hn_region_opt(c->r, c->x->type.dim[1]);
    return hn_lower_finish(w.l, ret, 2.0 * n * (double)(c->d * c->hp * c->gates * c->h),
                           4.0 * n * (double)(c->d * c->h), dg);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    cell c;
    packs at = { 0 };
    shape_of(r, t, p, &c);
    hn_symtab *syms = r->g->syms;
    const hn_dim rows = hn_dim_mul(syms, c.x->type.dim[0], c.x->type.dim[1]);
    const int temp = ret->temp_bytes.n;
    if (!hn_vec_push(ret->arena, &ret->temp_bytes, hn_dim_mul(syms, rows, c.d * c.hp * c.gates * 4)))
        return HN_NOMEM(dg);
    HN_TRY(add_packs(&c, t, ret, &at, dg));
    HN_TRY(emit_project(&c, t, &at, temp, ret, dg));
    return emit_walk(&c, t, &at, temp, ret, dg);
}

const hn_tactic_def hn_tactic_recurrent_f32_cell__cpu = {
    .name = "recurrent_f32_cell__cpu",
    .rev = 1,
    .arch = HN_ARCH_X86_64,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .pack = pack,
    .source = HN_KNOB_tactic_recurrent,
    .pin = { [P_NB] = HN_KNOB_recurrent_nb, [P_MB] = HN_KNOB_recurrent_mb, [P_MR] = HN_KNOB_recurrent_mr },
};
