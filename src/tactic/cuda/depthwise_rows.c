/* Depthwise convolutions of channels-last images on a GPU: a thread takes a vector of channels at a few neighbouring places of a row,
 * and reads each input column that they reach once for all of them. Weights are stored [tap][channel] when building. Bytes are widened
 * as they are read, less their zero points, and add up in i32. */
#include "tactic/cpu/loops.h"

#include <math.h>
#include <string.h>

enum { P_PLACES, P_THREADS };
enum { MAX_PLACES = 8, MAX_TAPS = 11 /* of a row */ };

/* One or two spatial axes: [rows, ]columns. */
typedef struct depthwise {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *w, *bias, *y;
    hn_loops_window win;
    int lanes, places, weights;
    int64_t channels, kh, kw, row_dilation, column_dilation, row_stride, column_stride;
    const hn_value *x_zero, *w_zero; /* of bytes, or NULL */
    hn_kv less_x, less_w;            /* i32 of `lanes` */
    bool bytes;
    bool rows; /* there is an axis of rows */
    int col;   /* the axis of columns */
} depthwise;

static void depthwise_of(const hn_region *r, depthwise *d)
{
    *d = (depthwise){ .r = r, .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .y = r->root->out[0], .bytes = r->root->op == HN_OP_conv_int };
    if (d->bytes) d->x_zero = hn_in(r->root, 2), d->w_zero = hn_in(r->root, 3);
    else d->bias = hn_in(r->root, 2);
    hn_loops_window_of(r->root, &d->win);
    d->rows = d->win.n == 2;
    d->col = d->x->type.rank - 1;
    d->channels = d->w->type.dim[0];
    d->kh = d->rows ? d->w->type.dim[2] : 1;
    d->kw = d->w->type.dim[d->col];
    d->row_stride = d->rows ? d->win.stride[0] : 1;
    d->row_dilation = d->rows ? d->win.dilation[0] : 1;
    d->column_stride = d->win.stride[d->win.n - 1];
    d->column_dilation = d->win.dilation[d->win.n - 1];
    d->lanes = HN_MIN(8, 128 / hn_dtype_bits(d->bytes ? d->x->type.dtype : d->y->type.dtype));
    while (d->channels % d->lanes) d->lanes /= 2;
}

static hn_fit shape_fits(const hn_region *r)
{
    const hn_node *n = r->root;
    const hn_value *x = hn_in(n, 0), *w = hn_in(n, 1);
    if (w->type.rank < 3 || w->type.rank > 4) return HN_FIT_SHAPE;
    for (int a = 0; a < w->type.rank; a++)
        if (!hn_dim_is_const(w->type.dim[a])) return HN_FIT_SYMBOLIC;
    const int operand = hn_region_operand(r, w);
    if (operand < 0 || !r->data[operand]) return HN_FIT_NOT_CONST;
    if (hn_attr_i(n, "group") != w->type.dim[0] || w->type.dim[1] != 1 || w->type.dim[w->type.rank - 1] > MAX_TAPS) return HN_FIT_SHAPE;
    if (!hn_layout_is_plain(&w->layout) || !hn_loops_unblocked(x) || hn_loops_dense_axis(x) != 1) return HN_FIT_LAYOUT;
    return HN_FIT_YES;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_conv) return HN_FIT_OP;
    if (hn_lower_compute_type(r->root->out[0]->type.dtype) != HN_F32 || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    return shape_fits(r);
}

/* One for all, or one a channel. */
static bool zero_fits(const hn_value *v, hn_dim channels)
{
    if (!v || !hn_tdesc_is_static(&v->type)) return !v;
    return hn_tdesc_numel_static(&v->type) == 1 || (v->type.rank == 1 && v->type.dim[0] == channels);
}

static hn_fit fits_bytes(const hn_region *r, const hn_target *t)
{
    const hn_node *n = r->root;
    (void)t;
    if (n->op != HN_OP_conv_int) return HN_FIT_OP;
    if (!hn_lower_can(r, n)) return HN_FIT_DTYPE;
    if (!zero_fits(hn_in(n, 2), 1) || !zero_fits(hn_in(n, 3), hn_in(n, 1)->type.dim[0])) return HN_FIT_SHAPE;
    return shape_fits(r);
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add_list(ret, "places", 4, (const int64_t[]){ 1, 2, 4, 7 });
    hn_space_add_list(ret, "threads", 2, (const int64_t[]){ 128, 64 });
}

/* Sums, a row of weights and a column fit the registers. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { OTHER_REGISTERS = 40 };
    depthwise d;
    depthwise_of(r, &d);
    const hn_dim wide = d.y->type.dim[d.col];
    if (hn_dim_is_const(wide) && p[P_PLACES] > 1 && p[P_PLACES] > wide) return false;
    return d.lanes * (p[P_PLACES] + d.kw + 1) + OTHER_REGISTERS <= HN_MIN(t->n_vreg, 160);
}

static int64_t columns_of(const depthwise *d, int64_t places)
{
    return (places - 1) * d->column_stride + (d->kw - 1) * d->column_dilation + 1;
}

/* A row of taps waits for its loads; enough threads hide that behind arithmetic. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { NS_FRAME = 900, NS_ROW = 300, OPS_A_NS = 180 /* of a multiprocessor */, THREADS_A_CORE = 1024 };
    depthwise d;
    hn_work w;
    depthwise_of(r, &d);
    hn_region_work(r, &w);
    double results = (double)d.channels / d.lanes;
    for (int a = 0; a < d.y->type.rank; a++) {
        const double n = (double)hn_region_opt(r, d.y->type.dim[a]);
        if (a != 1) results *= a == d.col ? ceil(n / (double)p[P_PLACES]) : n;
    }
    const double columns = (double)columns_of(&d, p[P_PLACES]), taps = (double)d.kw;
    const double ops = (double)d.kh * (columns * (d.lanes * 1.5 + 10) + taps * (d.lanes + 4) + taps * (double)p[P_PLACES] * d.lanes);
    const double waves = fmax(1, results / ((double)t->n_core * THREADS_A_CORE));
    const double ns = NS_FRAME + fmax(waves * (double)d.kh * NS_ROW, results * ops / (OPS_A_NS * (double)t->n_core));
    return fmax(hn_roofline_ns(t, 0, w.bytes, 1, 0.7), ns * t->n_core);
}

/* Channels [channel, channel + lanes) of the input at a place; zero where there is none. */
static hn_kv column(depthwise *d, const hn_kv *place, hn_kv row, hn_kv col)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv n = hn_lower_dim(d->l, d->x->type.dim[d->col]), last = hn_kb_addi(b, n, -1), zero = hn_kb_i(b, 0);
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    at[0] = place[0];
    at[1] = place[1];
    if (d->rows) at[2] = row;
    at[d->col] = hn_kb_max(b, hn_kb_min(b, col, last), zero);
    hn_kidx_init(&idx, d->x->type.rank, at);
    hn_kidx_vector(&idx, 1, d->lanes);
    idx.aligned = true;
    hn_lower_forget(d->l);
    hn_kv x = hn_lower_value(d->l, d->x, &idx, HN_KV_NONE);
    hn_lower_forget(d->l);
    if (d->bytes) x = hn_kb_sub(b, hn_kb_cast(b, x, HN_I32), d->less_x);
    return hn_kb_select(b, hn_kb_and(b, hn_kb_ge(b, col, zero), hn_kb_le(b, col, last)), x, hn_kb_like(b, x, 0));
}

/* One row of taps, for all places. */
static void add_row(depthwise *d, const hn_kv *place, hn_kv tap_row, hn_kv row, hn_kvar *sum)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kv w[MAX_TAPS];
    const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, place[d->col], d->column_stride), hn_lower_dim(d->l, d->win.pad[d->win.n - 1]));
    for (int64_t j = 0; j < d->kw; j++) {
        const hn_kv tap = hn_kb_addi(b, hn_kb_muli(b, tap_row, d->kw), j);
        w[j] = hn_kb_load_aligned(b, d->weights, hn_kb_add(b, hn_kb_muli(b, tap, d->channels), place[1]), d->lanes);
        if (d->bytes) w[j] = hn_kb_sub(b, hn_kb_cast(b, w[j], HN_I32), d->less_w);
    }
    for (int64_t u = 0; u < columns_of(d, d->places); u++) {
        hn_kv x = HN_KV_NONE;
        for (int64_t p = 0; p < d->places; p++) {
            const int64_t ahead = u - p * d->column_stride, j = ahead / d->column_dilation;
            if (ahead < 0 || ahead % d->column_dilation || j >= d->kw) continue;
            if (!hn_kv_is(x)) x = column(d, place, row, hn_kb_addi(b, first, u));
            hn_kb_set(b, sum[p], hn_kb_fma(b, x, w[j], hn_kb_get(b, sum[p])));
        }
    }
}

static void add_rows(depthwise *d, const hn_kv *place, hn_kvar *sum)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (!d->rows) {
        add_row(d, place, hn_kb_i(b, 0), HN_KV_NONE, sum);
        return;
    }
    const hn_kv i = hn_kb_fori(b, d->kh);
    const hn_kv top = hn_kb_sub(b, hn_kb_muli(b, place[2], d->row_stride), hn_lower_dim(d->l, d->win.pad[0]));
    const hn_kv row = hn_kb_add(b, top, hn_kb_muli(b, i, d->row_dilation));
    hn_kb_if(b, hn_kb_and(b, hn_kb_ge(b, row, hn_kb_i(b, 0)), hn_kb_lt(b, row, hn_lower_dim(d->l, d->x->type.dim[2]))));
    add_row(d, place, i, row, sum);
    hn_kb_end(b);
    hn_kb_end(b);
}

static void store_place(depthwise *d, const hn_kv *place, int p, hn_kv sum)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    memcpy(at, place, sizeof(at));
    at[d->col] = hn_kb_addi(b, place[d->col], p);
    hn_kb_if(b, hn_kb_lt(b, at[d->col], hn_lower_dim(d->l, d->y->type.dim[d->col])));
    if (d->bias) {
        hn_kidx one;
        hn_kidx_init(&one, 1, &at[1]);
        hn_kidx_vector(&one, 0, d->lanes);
        one.aligned = true;
        hn_lower_forget(d->l);
        sum = hn_kb_add(b, sum, hn_lower_value(d->l, d->bias, &one, HN_KV_NONE));
    }
    hn_kidx_init(&idx, d->y->type.rank, at);
    hn_kidx_vector(&idx, 1, d->lanes);
    idx.aligned = true;
    hn_lower_seed(d->l, d->y, sum);
    hn_lower_store(d->l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    hn_lower_forget(d->l);
}

/* Zero points of these channels. */
static hn_kv less(depthwise *d, const hn_value *zero, hn_kv channel)
{
    hn_kb *b = hn_lower_kb(d->l);
    if (!zero) return hn_kb_int(b, HN_I32, d->lanes, 0);
    const bool each = hn_tdesc_numel_static(&zero->type) > 1;
    const hn_kv at[HN_MAX_RANK] = { each ? channel : hn_kb_i(b, 0) };
    hn_kidx idx;
    hn_kidx_init(&idx, zero->type.rank, at);
    if (each) hn_kidx_vector(&idx, 0, d->lanes);
    idx.aligned = true;
    hn_lower_forget(d->l);
    const hn_kv x = hn_lower_value(d->l, zero, &idx, HN_KV_NONE);
    hn_lower_forget(d->l);
    return hn_kb_splat(b, hn_kb_cast(b, x, HN_I32), d->lanes);
}

/* This thread's channels and first place; channels fastest. */
static void place_of(depthwise *d, hn_kv thread, hn_kv groups, hn_kv tiles, hn_kv *place)
{
    hn_kb *b = hn_lower_kb(d->l);
    const hn_kv rest = hn_kb_idiv(b, thread, groups);
    for (int i = 0; i < HN_MAX_RANK; i++) place[i] = HN_KV_NONE;
    place[1] = hn_kb_muli(b, hn_kb_imod(b, thread, groups), d->lanes);
    place[d->col] = hn_kb_muli(b, hn_kb_imod(b, rest, tiles), d->places);
    const hn_kv line = hn_kb_idiv(b, rest, tiles);
    if (!d->rows) {
        place[0] = line;
        return;
    }
    const hn_kv high = hn_lower_dim(d->l, d->y->type.dim[2]);
    place[2] = hn_kb_imod(b, line, high);
    place[0] = hn_kb_idiv(b, line, high);
}

static void body(depthwise *d, int64_t n_thread)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_symtab *syms = d->r->g->syms;
    const int64_t groups = d->channels / d->lanes;
    const hn_dim tiles = hn_dim_ceildiv(syms, d->y->type.dim[d->col], d->places);
    hn_dim total = hn_dim_mul(syms, hn_dim_mul(syms, d->y->type.dim[0], tiles), groups);
    if (d->rows) total = hn_dim_mul(syms, total, d->y->type.dim[2]);
    const hn_kv all = hn_lower_dim(d->l, total), n_tiles = hn_lower_dim(d->l, tiles);
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, all, n_thread)), tid = hn_kb_threads(b, 0, n_thread);
    const hn_kv thread = hn_kb_add(b, hn_kb_muli(b, block, n_thread), tid);
    hn_kv place[HN_MAX_RANK];
    hn_kvar sum[MAX_PLACES];
    hn_kb_if(b, hn_kb_lt(b, thread, all));
    place_of(d, thread, hn_kb_i(b, groups), n_tiles, place);
    if (d->bytes) d->less_x = less(d, d->x_zero, place[1]), d->less_w = less(d, d->w_zero, place[1]);
    const hn_kv none = d->bytes ? hn_kb_int(b, HN_I32, d->lanes, 0) : hn_kb_float(b, HN_F32, d->lanes, 0);
    for (int p = 0; p < d->places; p++) sum[p] = hn_kb_var(b, none);
    add_rows(d, place, sum);
    for (int p = 0; p < d->places; p++) store_place(d, place, p, hn_kb_get(b, sum[p]));
    for (int i = 0; i < 3; i++) hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    depthwise d;
    depthwise_of(r, &d);
    hn_kb *b = hn_kb_new(ret->arena, d.bytes ? "depthwise_int8_rows__cuda" : "depthwise_float_rows__cuda");
    d.l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !d.l) return HN_NOMEM(dg);
    d.places = (int)p[P_PLACES];
    const hn_blob blob = { .operand = hn_region_operand(r, d.w), .recipe = "depthwise_rows",
                           .bytes = (size_t)hn_dtype_bytes(d.w->type.dtype, d.channels * d.kh * d.kw) };
    if (!hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    d.weights = hn_lower_blob(d.l, 0, d.w->type.dtype);
    body(&d, p[P_THREADS]);
    return hn_lower_finish_whole(d.l, ret, dg);
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)p, (void)i, (void)dg;
    depthwise d;
    depthwise_of(r, &d);
    const uint8_t *src = r->data[hn_region_operand(r, d.w)]->at;
    const size_t size = (size_t)hn_dtype_bits(d.w->type.dtype) / 8;
    const int64_t taps = d.kh * d.kw;
    uint8_t *at = dst;
    for (int64_t k = 0; k < taps; k++)
        for (int64_t c = 0; c < d.channels; c++, at += size) memcpy(at, src + (size_t)(c * taps + k) * size, size);
    return HONE_OK;
}

const hn_tactic_def hn_tactic_depthwise_float_rows__cuda = {
    .name = "depthwise_float_rows__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .space = space, .legal = legal, .cost = cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_depthwise,
};

const hn_tactic_def hn_tactic_depthwise_int8_rows__cuda = {
    .name = "depthwise_int8_rows__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits_bytes, .space = space, .legal = legal, .cost = cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_depthwise,
};
