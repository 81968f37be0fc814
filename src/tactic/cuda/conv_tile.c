/* Convolutions on a GPU as products: rows are pixels of the result, columns output channels of a group, the sum runs over taps
 * and input channels, channels fastest. Constant weights are stored in that order when building. */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/tile.h"

#include <string.h>

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_conv) return HN_FIT_OP;
    const hn_value *w = hn_in(n, 1), *y = n->out[0];
    if (hn_lower_compute_type(y->type.dtype) != HN_F32 || !hn_lower_can(r, n)) return HN_FIT_DTYPE;
    for (int a = 0; a < w->type.rank; a++)
        if (!hn_dim_is_const(w->type.dim[a])) return HN_FIT_SYMBOLIC;
    const int operand = hn_region_operand(r, w);
    if (operand < 0 || !r->data[operand]) return HN_FIT_NOT_CONST;
    if (!hn_layout_is_plain(&w->layout)) return HN_FIT_LAYOUT;
    if (w->type.dim[0] / hn_attr_i(n, "group") < 8) return HN_FIT_TOO_SMALL; /* columns of a tile would be padding */
    return HN_FIT_YES;
}

static int64_t taps_of(const hn_value *w)
{
    int64_t n = 1;
    for (int a = 2; a < w->type.rank; a++)
        n *= w->type.dim[a];
    return n;
}

/* Pixels of the result: every axis but the channels'. */
static uint32_t pixel_axes(const hn_value *y)
{
    return hn_loops_all(y) & ~2u;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_value *w = hn_in(r->root, 1), *y = r->root->out[0];
    const double groups = (double)hn_attr_i(r->root, "group");
    double pixels = 1;
    hn_work work;
    hn_region_work(r, &work);
    for (int a = 0; a < y->type.rank; a++)
        if (a != 1) pixels *= (double)hn_region_opt(r, y->type.dim[a]);
    return hn_tile_cost(t, p, groups, pixels, (double)w->type.dim[0] / groups, (double)(taps_of(w) * w->type.dim[1]), work.bytes);
}

typedef struct image {
    hn_lower *l;
    const hn_value *x, *w, *bias, *y;
    hn_loops_window win;
    int64_t group, columns, channels, depth; /* columns and channels of a group; depth = taps * channels */
    int blob;
} image;

static hn_kv element_x(void *user, hn_kv g, hn_kv m, hn_kv k, hn_kv ok)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv pixel[HN_MAX_RANK], tap[HN_MAX_RANK], at[HN_MAX_RANK];
    hn_kidx idx;
    hn_loops_split(c->l, c->y, pixel_axes(c->y), m, pixel);
    const hn_kv channels = hn_kb_i(b, c->channels);
    hn_loops_split(c->l, c->w, hn_loops_all(c->w) & ~3u, hn_kb_idiv(b, k, channels), tap);
    at[0] = pixel[0];
    at[1] = hn_kb_add(b, hn_kb_muli(b, g, c->channels), hn_kb_imod(b, k, channels));
    const hn_kv in = hn_loops_tap(c->l, &c->win, c->x, pixel, tap, at);
    if (hn_kv_is(in)) ok = hn_kb_and(b, ok, in);
    hn_kidx_init(&idx, c->x->type.rank, at);
    return hn_kb_select(b, ok, hn_lower_value(c->l, c->x, &idx, ok), hn_kb_f(b, 0)); /* padding is zero whatever is fused before */
}

static hn_kv element_w(void *user, hn_kv g, hn_kv k, hn_kv n, hn_kv ok)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    const hn_kv row = hn_kb_add(b, hn_kb_muli(b, g, c->depth), k);
    return hn_kb_loadm(b, c->blob, hn_kb_add(b, hn_kb_muli(b, row, c->columns), n), 1, ok);
}

static void store(void *user, hn_kv g, hn_kv m, hn_kv n, hn_kv sum)
{
    image *c = user;
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    hn_loops_split(c->l, c->y, pixel_axes(c->y), m, at);
    at[1] = hn_kb_add(b, hn_kb_muli(b, g, c->columns), n);
    if (c->bias) {
        hn_kidx_init(&idx, 1, &at[1]);
        sum = hn_kb_add(b, sum, hn_lower_value(c->l, c->bias, &idx, HN_KV_NONE));
    }
    hn_kidx_init(&idx, c->y->type.rank, at);
    hn_lower_seed(c->l, c->y, sum);
    hn_lower_store(c->l, &idx, HN_KV_NONE);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_float_tile__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    image c = { .l = l, .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .bias = hn_in(r->root, 2), .y = r->root->out[0],
                .group = hn_attr_i(r->root, "group") };
    hn_loops_window_of(r->root, &c.win);
    c.columns = c.w->type.dim[0] / c.group;
    c.channels = c.w->type.dim[1];
    c.depth = taps_of(c.w) * c.channels;
    const hn_blob blob = { .operand = hn_region_operand(r, c.w), .recipe = hn_arena_printf(ret->arena, "conv_tile_g%lld", (long long)c.group),
                           .bytes = (size_t)hn_dtype_bytes(c.w->type.dtype, c.group * c.depth * c.columns) };
    if (!hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    c.blob = hn_lower_blob(l, 0, c.w->type.dtype);
    hn_tile tile = { .l = l, .groups = c.group, .m = hn_loops_extent(r, c.y, pixel_axes(c.y)), .n = c.columns, .k = c.depth,
                     .bm = (int)p[0], .bn = (int)p[1], .a_m_dense = hn_loops_dense_axis(c.x) != 1,
                     .user = &c, .a = element_x, .b = element_w, .store = store };
    hn_tile_emit(b, &tile, r->g->syms);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [group][tap][channel][column] of [column of all][channel][tap]. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)p, (void)i, (void)dg;
    const hn_value *w = hn_in(r->root, 1);
    const uint8_t *src = r->data[hn_region_operand(r, w)]->at;
    const int64_t group = hn_attr_i(r->root, "group"), columns = w->type.dim[0] / group, channels = w->type.dim[1], taps = taps_of(w);
    const size_t size = (size_t)hn_dtype_bits(w->type.dtype) / 8;
    uint8_t *at = dst;
    for (int64_t row = 0; row < group * taps * channels; row++)
        for (int64_t n = 0; n < columns; n++, at += size) {
            const int64_t g = row / (taps * channels), tap = row / channels % taps, ci = row % channels;
            memcpy(at, src + (size_t)(((g * columns + n) * channels + ci) * taps + tap) * size, size);
        }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_conv_float_tile__cuda = {
    .name = "conv_float_tile__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .space = hn_tile_space, .legal = hn_tile_legal, .cost = cost, .emit = emit, .pack = pack,
};
