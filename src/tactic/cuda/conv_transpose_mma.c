/* Transposed convolutions whose taps do not overlap (stride as long as the kernel, no padding) on a GPU's matrix units: each pixel of
 * the image makes a tile of the result of its own. m are pixels of the image, n taps by output channels, channels fastest, k input
 * channels. Weights are stored [n][k] when building. */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/mma.h"

enum { MAX_SLOT = 16 };

typedef struct image {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *w, *bias, *y;
    hn_dtype type;
    int64_t channels, columns, taps, row; /* in, out; row: elements of a row of packed weights */
    hn_kv base[MAX_SLOT], live[MAX_SLOT];
    hn_mma_rows weights;
} image;

static void image_of(const hn_region *r, image *c)
{
    *c = (image){ .r = r, .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .bias = hn_in(r->root, 2), .y = r->root->out[0], .taps = 1 };
    c->type = c->w->type.dtype;
    c->channels = c->w->type.dim[0];
    c->columns = c->w->type.dim[1];
    for (int a = 2; a < c->w->type.rank; a++) c->taps *= c->w->type.dim[a];
    c->row = hn_mma_row_elems(c->type, c->channels);
}

static bool all_are(const hn_node *n, const char *name, int64_t value)
{
    int count;
    const int64_t *list = hn_attr_is(n, name, &count);
    for (int i = 0; i < count; i++)
        if (list[i] != value) return false;
    return true;
}

/* No two taps of different pixels meet, and none is cut off. */
static bool is_apart(const hn_node *n)
{
    int count;
    const int64_t *stride = hn_attr_is(n, "stride", &count);
    const hn_value *w = hn_in(n, 1);
    for (int s = 0; s < w->type.rank - 2; s++)
        if (w->type.dim[s + 2] != (s < count ? stride[s] : 1)) return false;
    return hn_attr_i(n, "group") == 1 && all_are(n, "pad_begin", 0) && all_are(n, "pad_end", 0) && all_are(n, "out_pad", 0) &&
           all_are(n, "dilation", 1);
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_conv_transpose) return HN_FIT_OP;
    const hn_fit fit = hn_mma_weights_fit(r, HN_F16, HN_BF16);
    if (fit != HN_FIT_YES) return fit;
    return is_apart(n) ? HN_FIT_YES : HN_FIT_SHAPE;
}

static bool is_copied(const image *c)
{
    return hn_mma_channels_lie(c->r, c->x, c->type, c->channels);
}

void hn_mma_conv_transpose_size(const hn_region *r, hn_mma_size *ret)
{
    image c;
    hn_work w;
    image_of(r, &c);
    hn_region_work(r, &w);
    *ret = (hn_mma_size){ .type = c.type, .groups = 1, .n = (double)(c.taps * c.columns), .k = (double)c.channels, .bytes = w.bytes,
                          .m = (double)hn_region_opt(r, hn_loops_extent(r, c.x, hn_mma_pixels(c.x))), .computed = { !is_copied(&c), false } };
}

/* ---- operands ---- */
static hn_kv pixels(const image *c)
{
    return hn_lower_dim(c->l, hn_loops_extent(c->r, c->x, hn_mma_pixels(c->x)));
}

static void begin_x(void *user, int slot, hn_kv g, hn_kv m)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv at[HN_MAX_RANK];
    (void)g;
    hn_loops_split(c->l, c->x, hn_mma_pixels(c->x), m, at);
    at[1] = hn_kb_i(b, 0);
    c->base[slot] = hn_loops_place(c->l, c->x, at);
    c->live[slot] = hn_kb_lt(b, m, pixels(c));
}

static hn_kv place_x(void *user, int slot, hn_kv k, hn_kv *ok)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    *ok = hn_kb_and(b, c->live[slot], hn_kb_lt(b, k, hn_kb_i(b, c->channels)));
    return hn_kb_add(b, c->base[slot], k);
}

static hn_kv chunk_x(void *user, hn_kv g, hn_kv m, hn_kv k, int elems, hn_kv ok)
{
    image *c = user;
    hn_kv at[HN_MAX_RANK];
    (void)g;
    hn_loops_split(c->l, c->x, hn_mma_pixels(c->x), m, at);
    at[1] = k;
    return hn_mma_read_chunk(c->l, c->x, at, 1, elems, ok);
}

static int64_t weight_at(const void *user, int64_t n, int64_t k)
{
    const image *c = user;
    return (k * c->columns + n % c->columns) * c->taps + n / c->columns;
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)p, (void)i, (void)dg;
    image c;
    image_of(r, &c);
    const hn_mma_source from = { .data = r->data[hn_region_operand(r, c.w)], .type = c.type, .rows = c.taps * c.columns,
                                 .depth = c.channels, .user = &c, .at = weight_at };
    hn_mma_store_rows(&from, dst);
    return HONE_OK;
}

/* ---- the kernel ---- */
static void index_y(void *user, hn_lower *l, hn_kv g, hn_kv m, hn_kv n, hn_kv *at)
{
    const image *c = user;
    hn_kb *b = hn_lower_kb(l);
    (void)g;
    hn_loops_split(l, c->x, hn_mma_pixels(c->x), m, at);
    at[1] = hn_kb_imod(b, n, hn_kb_i(b, c->columns));
    hn_kv tap = hn_kb_idiv(b, n, hn_kb_i(b, c->columns));
    for (int a = c->x->type.rank - 1; a >= 2; a--) {
        const hn_kv taps = hn_kb_i(b, c->w->type.dim[a]);
        at[a] = hn_kb_add(b, hn_kb_mul(b, at[a], taps), hn_kb_imod(b, tap, taps));
        tap = hn_kb_idiv(b, tap, taps);
    }
}

static void start(void *user, hn_lower *l, int which, hn_mma *d)
{
    image *c = user;
    c->l = l;
    d->type = c->type;
    d->groups = 1;
    d->m = hn_loops_extent(c->r, c->x, hn_mma_pixels(c->x));
    d->n = c->taps * c->columns;
    d->run = c->columns;
    d->k = c->channels;
    d->y = c->y;
    d->bias = c->bias;
    d->n_axis = 1;
    d->user = c;
    d->index = index_y;
    if (which) return;
    d->a = (hn_mma_operand){ .user = c, .buf = is_copied(c) ? hn_lower_in(l, hn_region_operand(c->r, c->x)) : -1,
                             .row_fast = hn_loops_dense_axis(c->x) != 1, .begin = begin_x, .place = place_x, .chunk = chunk_x };
    c->weights = (hn_mma_rows){ .l = l, .rows = c->taps * c->columns, .stride = c->row };
    d->b = hn_mma_stored_rows(&c->weights, hn_lower_blob(l, 0, c->type));
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    image c;
    image_of(r, &c);
    const hn_mma_maker how = { .user = &c, .start = start, .name = "conv_transpose_half_mma__cuda" };
    HN_TRY(hn_mma_add_rows(ret, hn_region_operand(r, c.w), "conv_transpose_mma", c.type, c.taps * c.columns, c.row, dg));
    return hn_mma_emit(&how, r, t, p, ret, dg);
}

const hn_tactic_def hn_tactic_conv_transpose_half_mma__cuda = {
    .name = "conv_transpose_half_mma__cuda", .rev = 4, .arch = HN_ARCH_SM,
    .fits = fits, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_matrix_units,
};
