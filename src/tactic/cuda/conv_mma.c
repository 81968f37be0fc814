/* Convolutions on a GPU's matrix units as products: m are pixels of the result, n output channels of a group, k taps by input
 * channels, channels fastest. Images stored channels last are copied a chunk of channels at a time, padding arriving as zeros;
 * other images, and what is fused before, are computed a chunk at a time. Weights are stored [group][n][k] when building. */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/mma_bytes.h"

enum { MAX_SLOT = 16 };

typedef struct image {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *w, *bias, *y;
    hn_loops_window win;
    hn_dtype type;
    int64_t groups, columns, channels, taps; /* columns and channels of a group */
    int64_t depth, row;                      /* taps * channels; elements of a row of packed weights */
    bool checked[HN_MAX_RANK];               /* taps along this axis may fall outside */
    hn_kv corner[MAX_SLOT][HN_MAX_RANK], base[MAX_SLOT], live[MAX_SLOT]; /* of x: index of the first tap */
    hn_kv reach[MAX_SLOT]; /* bits of the rows and columns of taps that fall inside */
    hn_mma_rows weights;
    hn_mma_bytes bytes;
} image;

static bool of_bytes(const hn_region *r)
{
    return r->root->op == HN_OP_conv_int;
}

static void image_of(const hn_region *r, image *c)
{
    *c = (image){ .r = r, .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .bias = of_bytes(r) ? NULL : hn_in(r->root, 2), .y = r->root->out[0],
                  .groups = hn_attr_i(r->root, "group"), .taps = 1 };
    c->type = of_bytes(r) ? c->x->type.dtype : c->w->type.dtype;
    hn_loops_window_of(r->root, &c->win);
    for (int a = 2; a < c->w->type.rank; a++) c->taps *= c->w->type.dim[a];
    c->columns = c->w->type.dim[0] / c->groups;
    c->channels = c->w->type.dim[1];
    c->depth = c->taps * c->channels;
    c->row = hn_mma_row_elems(c->type, c->depth);
    int n_end;
    const int64_t *end = hn_attr_is(r->root, "pad_end", &n_end);
    for (int s = 0; s < c->win.n; s++) c->checked[s] = c->w->type.dim[s + 2] != 1 || c->win.pad[s] != 0 || (s < n_end && end[s] != 0);
}

enum { LEAST_COLUMNS = 8 };

static hn_fit fits(const hn_region *r, hn_dtype one, hn_dtype other)
{
    const hn_node *n = r->root;
    if (n->op != HN_OP_conv) return HN_FIT_OP;
    const hn_fit fit = hn_mma_weights_fit(r, one, other);
    if (fit != HN_FIT_YES) return fit;
    return hn_in(n, 1)->type.dim[0] / hn_attr_i(n, "group") < LEAST_COLUMNS ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static hn_fit fits_half(const hn_region *r, const hn_target *t)
{
    (void)t;
    return fits(r, HN_F16, HN_BF16);
}

static hn_fit fits_tf32(const hn_region *r, const hn_target *t)
{
    (void)t;
    return fits(r, HN_F32, HN_F32);
}

static hn_fit fits_bytes(const hn_region *r, const hn_target *t)
{
    image c;
    (void)t;
    if (!of_bytes(r)) return HN_FIT_OP;
    if (!hn_tdesc_is_static(&hn_in(r->root, 1)->type)) return HN_FIT_SYMBOLIC;
    image_of(r, &c);
    const hn_fit fit = hn_mma_bytes_fit(r, c.columns, c.groups, &c.bytes);
    return fit == HN_FIT_YES && c.columns < LEAST_COLUMNS ? HN_FIT_TOO_SMALL : fit;
}

/* As image_of, of bytes. */
static void byte_image_of(const hn_region *r, image *c)
{
    image_of(r, c);
    hn_mma_bytes_fit(r, c->columns, c->groups, &c->bytes);
    c->bytes.padded = true;
}

/* Every chunk of k is channels of one tap, which lie together. */
static bool is_copied(const image *c)
{
    return hn_mma_channels_lie(c->r, c->x, c->type, c->channels);
}

void hn_mma_conv_size(const hn_region *r, hn_mma_size *ret)
{
    image c;
    hn_work w;
    image_of(r, &c);
    hn_region_work(r, &w);
    *ret = (hn_mma_size){ .type = c.type, .groups = (double)c.groups, .m = 1, .n = (double)c.columns, .k = (double)c.depth,
                          .bytes = w.bytes, .computed = { !is_copied(&c), false } };
    for (int a = 0; a < c.y->type.rank; a++)
        if (a != 1) ret->m *= (double)hn_region_opt(r, c.y->type.dim[a]);
    if (!of_bytes(r)) return;
    byte_image_of(r, &c);
    ret->row_sums = c.bytes.q.row_sums;
}

/* ---- the image ---- */
/* Which taps fall inside is known once a pixel: bit i of a row of taps, bit REACH_COLUMN + j of a column. */
enum { REACH_COLUMN = 14, REACH_NEVER = 29 }; /* all of them fit 32 bits, sign apart */

static bool has_reach(const image *c)
{
    bool any = false;
    for (int s = 0; s < c->win.n; s++) {
        if (c->w->type.dim[s + 2] > REACH_COLUMN) return false;
        any |= c->checked[s];
    }
    return any && c->win.n <= 2;
}

static int reach_bit(int axis, int64_t tap)
{
    return (axis ? REACH_COLUMN : 0) + (int)tap;
}

static hn_kv reach_of(const image *c, const hn_kv *corner, hn_kv live)
{
    hn_kb *b = hn_lower_kb(c->l);
    const hn_kv zero = hn_kb_i(b, 0);
    hn_kv bits = zero;
    for (int s = 0; s < c->win.n; s++)
        for (int64_t k = 0; k < c->w->type.dim[s + 2]; k++) {
            const hn_kv at = hn_kb_addi(b, corner[s], k * c->win.dilation[s]), end = hn_lower_dim(c->l, c->x->type.dim[s + 2]);
            const hn_kv inside = hn_kb_and(b, hn_kb_ge(b, at, zero), hn_kb_lt(b, at, end)), bit = hn_kb_i(b, 1ll << reach_bit(s, k));
            bits = hn_kb_bin(b, HN_KOP_OR, bits, c->checked[s] ? hn_kb_select(b, inside, bit, zero) : bit);
        }
    return hn_kb_select(b, live, bits, zero);
}

/* What must be among the bits of a pixel for the tap at each spatial axis' index; past the last k nothing is. */
static hn_kv reach_needed(const image *c, const hn_kv *tap, hn_kv k)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv need = hn_kb_select(b, hn_kb_lt(b, k, hn_kb_i(b, c->depth)), hn_kb_i(b, 0), hn_kb_i(b, 1ll << REACH_NEVER));
    for (int s = 0; s < c->win.n; s++) {
        hn_kv bit = hn_kb_i(b, 1ll << reach_bit(s, 0));
        for (int64_t i = 1; i < c->w->type.dim[s + 2]; i++)
            bit = hn_kb_select(b, hn_kb_eq(b, tap[s], hn_kb_i(b, i * c->win.dilation[s])), hn_kb_i(b, 1ll << reach_bit(s, i)), bit);
        need = hn_kb_bin(b, HN_KOP_OR, need, bit);
    }
    return need;
}

static void begin_x(void *user, int slot, hn_kv g, hn_kv m)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv at[HN_MAX_RANK];
    const hn_kv pixels = hn_lower_dim(c->l, hn_loops_extent(c->r, c->y, hn_mma_pixels(c->y)));
    c->live[slot] = hn_kb_lt(b, m, pixels);
    hn_loops_split(c->l, c->y, hn_mma_pixels(c->y), m, at);
    at[1] = hn_kb_muli(b, g, c->channels);
    for (int s = 0; s < c->win.n; s++) {
        at[s + 2] = hn_kb_sub(b, hn_kb_muli(b, at[s + 2], c->win.stride[s]), hn_lower_dim(c->l, c->win.pad[s]));
        c->corner[slot][s] = at[s + 2];
    }
    c->base[slot] = hn_loops_place(c->l, c->x, at);
    if (has_reach(c)) c->reach[slot] = reach_of(c, c->corner[slot], c->live[slot]);
}

/* Index of a tap along each spatial axis. */
static void tap_at(const image *c, hn_kv tap, hn_kv *ret)
{
    hn_kb *b = hn_lower_kb(c->l);
    for (int s = c->win.n - 1; s >= 0; s--) {
        const hn_kv n = hn_kb_i(b, c->w->type.dim[s + 2]);
        ret[s] = hn_kb_muli(b, s ? hn_kb_imod(b, tap, n) : tap, c->win.dilation[s]);
        tap = hn_kb_idiv(b, tap, n);
    }
}

static hn_kv place_x(void *user, int slot, hn_kv k, hn_kv *ok)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    const hn_kv channels = hn_kb_i(b, c->channels), channel = c->taps == 1 ? k : hn_kb_imod(b, k, channels);
    hn_kv ahead = channel, tap[HN_MAX_RANK]; /* of the corner: alike for all pixels */
    const bool reach = has_reach(c);
    *ok = hn_kb_and(b, c->live[slot], hn_kb_lt(b, k, hn_kb_i(b, c->depth)));
    tap_at(c, c->taps == 1 ? hn_kb_i(b, 0) : hn_kb_idiv(b, k, channels), tap);
    if (reach) {
        const hn_kv need = reach_needed(c, tap, k);
        *ok = hn_kb_eq(b, hn_kb_and(b, c->reach[slot], need), need);
    }
    for (int s = 0; s < c->win.n; s++) {
        if (c->w->type.dim[s + 2] != 1) ahead = hn_kb_add(b, ahead, hn_kb_mul(b, tap[s], hn_loops_stride(c->l, c->x, s + 2)));
        if (!c->checked[s] || reach) continue;
        const hn_kv i = hn_kb_add(b, c->corner[slot][s], tap[s]);
        *ok = hn_kb_and(b, *ok, hn_kb_and(b, hn_kb_ge(b, i, hn_kb_i(b, 0)), hn_kb_lt(b, i, hn_lower_dim(c->l, c->x->type.dim[s + 2]))));
    }
    return hn_kb_add(b, c->base[slot], ahead);
}

/* What stands where there is no tap, or nothing but padding, whatever is fused before: zero, or the zero point of bytes. */
static hn_kv nothing(const image *c)
{
    hn_kb *b = hn_lower_kb(c->l);
    return of_bytes(c->r) ? hn_mma_bytes_fill(&c->bytes) : hn_kb_f(b, 0);
}

/* One element. */
static hn_kv element_x(const image *c, hn_kv g, const hn_kv *pixel, hn_kv k, hn_kv ok)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv tap[HN_MAX_RANK], at[HN_MAX_RANK];
    hn_kidx idx;
    const hn_kv channels = hn_kb_i(b, c->channels);
    ok = hn_kb_and(b, ok, hn_kb_lt(b, k, hn_kb_i(b, c->depth)));
    hn_loops_split(c->l, c->w, hn_loops_all(c->w) & ~3u, hn_kb_idiv(b, k, channels), tap);
    at[0] = pixel[0];
    at[1] = hn_kb_add(b, hn_kb_muli(b, g, c->channels), hn_kb_imod(b, k, channels));
    const hn_kv in = hn_loops_tap(c->l, &c->win, c->x, pixel, tap, at);
    if (hn_kv_is(in)) ok = hn_kb_and(b, ok, in);
    hn_kidx_init(&idx, c->x->type.rank, at);
    return hn_kb_select(b, ok, hn_lower_value(c->l, c->x, &idx, ok), nothing(c));
}

static hn_kv chunk_x(void *user, hn_kv g, hn_kv m, hn_kv k, int elems, hn_kv ok)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv pixel[HN_MAX_RANK], x = hn_kb_splat(b, nothing(c), elems);
    hn_loops_split(c->l, c->y, hn_mma_pixels(c->y), m, pixel);
    for (int i = 0; i < elems; i++) {
        hn_lower_forget(c->l);
        x = hn_kb_insert(b, x, element_x(c, g, pixel, hn_kb_addi(b, k, i), ok), i);
    }
    return x;
}

/* ---- weights ---- */
static int64_t weight_at(const void *user, int64_t n, int64_t k)
{
    const image *c = user;
    return (n * c->channels + k % c->channels) * c->taps + k / c->channels;
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)p, (void)dg;
    image c;
    image_of(r, &c);
    const hn_mma_source from = { .data = r->data[hn_region_operand(r, c.w)], .type = c.w->type.dtype, .rows = c.groups * c.columns,
                                 .depth = c.depth, .user = &c, .at = weight_at };
    if (!of_bytes(r)) {
        hn_mma_store_rows(&from, dst);
        return HONE_OK;
    }
    image bytes;
    byte_image_of(r, &bytes);
    hn_mma_bytes_pack(r, &bytes.bytes, &from, i, dst);
    return HONE_OK;
}

/* ---- the kernel ---- */
static void index_y(void *user, hn_lower *l, hn_kv g, hn_kv m, hn_kv n, hn_kv *at)
{
    const image *c = user;
    hn_kb *b = hn_lower_kb(l);
    hn_loops_split(l, c->y, hn_mma_pixels(c->y), m, at);
    at[1] = c->groups == 1 ? n : hn_kb_add(b, hn_kb_muli(b, g, c->columns), n);
}

static void start(void *user, hn_lower *l, int which, hn_mma *d)
{
    image *c = user;
    c->l = l;
    d->type = c->type;
    d->groups = c->groups;
    d->m = hn_loops_extent(c->r, c->y, hn_mma_pixels(c->y));
    d->n = c->columns;
    d->k = c->depth;
    d->y = c->y;
    d->bias = c->bias;
    d->n_axis = 1;
    d->user = c;
    d->index = index_y;
    if (of_bytes(c->r)) {
        d->bytes = &c->bytes;
        hn_mma_bytes_start(d->bytes, l);
    }
    if (which) return;
    d->a = (hn_mma_operand){ .user = c, .buf = is_copied(c) ? hn_lower_in(l, hn_region_operand(c->r, c->x)) : -1,
                             .row_fast = hn_loops_dense_axis(c->x) != 1, .begin = begin_x, .place = place_x, .chunk = chunk_x };
    c->weights = (hn_mma_rows){ .l = l, .rows = c->columns, .stride = c->row, .grouped = true };
    d->b = hn_mma_stored_rows(&c->weights, hn_lower_blob(l, HN_MMA_BLOB_ROWS, d->bytes ? HN_I8 : c->type));
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    image c;
    const bool bytes = of_bytes(r);
    if (bytes) byte_image_of(r, &c);
    else image_of(r, &c);
    const hn_mma_maker how = { .user = &c, .start = start,
                               .name = bytes ? "conv_int8_mma__cuda" : c.type == HN_F32 ? "conv_tf32_mma__cuda" : "conv_half_mma__cuda" };
    HN_TRY(hn_mma_add_rows(ret, hn_region_operand(r, c.w), c.w->type.dtype == HN_U8 ? "conv_mma_u8" : "conv_mma", c.type,
                           c.groups * c.columns, c.row, dg));
    if (bytes) HN_TRY(hn_mma_bytes_add(r, &c.bytes, ret, "conv_mma", dg));
    return hn_mma_emit(&how, r, t, p, ret, dg);
}

const hn_tactic_def hn_tactic_conv_half_mma__cuda = {
    .name = "conv_half_mma__cuda", .rev = 4, .arch = HN_ARCH_SM,
    .fits = fits_half, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_matrix_units,
};

const hn_tactic_def hn_tactic_conv_tf32_mma__cuda = {
    .name = "conv_tf32_mma__cuda", .rev = 4, .arch = HN_ARCH_SM,
    .fits = fits_tf32, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .changes_numbers = true, .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_matrix_units,
};

const hn_tactic_def hn_tactic_conv_int8_mma__cuda = {
    .name = "conv_int8_mma__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits_bytes, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_matrix_units,
};
