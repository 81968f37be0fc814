/* Transposed convolutions of any rank, dtype and layout, as a gather: a result asks which taps reach it.
 *
 *     y[n, m, o] = bias[m] + sum over k, c of x[n, c, i] * w[c, m, k],   i = (o + pad - k * dilation) / stride
 *
 * where the division leaves nothing over and i is inside. With lanes, f32 results of up to four vectors of output channels
 * are made at once from filters packed [group][k][c][m], a broadcast of x a channel; without, one result at a time.
 */
#include "tactic/cpu/loops.h"

#include <string.h>

enum { P_LANES, P_NV };
enum { MAX_NV = 4 };

typedef struct tc {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *w, *bias, *y;
    hn_loops_window win;
    int64_t group, cg, og; /* channels a group in and out; with lanes alone, which need them known */
    hn_kv cg_v, og_v;      /* the same as values */
    int lanes, nv;
    int blob;
    hn_kv at[HN_MAX_RANK]; /* result; at[1] the first channel */
    hn_kvar acc[MAX_NV];
} tc;

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_conv_transpose) return HN_FIT_OP;
    return hn_lower_dtype_ok(r->root->out[0]->type.dtype) && hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static bool can_pack(const hn_region *r)
{
    const int w = hn_region_operand(r, hn_in(r->root, 1));
    return r->root->out[0]->type.dtype == HN_F32 && w >= 0 && r->data[w];
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t lanes[] = { 1, t->vec_bytes / 4 }, nv[] = { 1, 2, 4 };
    hn_space_add_list(ret, "lanes", can_pack(r) ? 2 : 1, lanes);
    hn_space_add_list(ret, "nv", 3, nv);
}

static int64_t group_out(const hn_region *r)
{
    return hn_in(r->root, 1)->type.dim[1];
}

static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)t;
    if (p[P_LANES] == 1) return p[P_NV] == 1;
    return p[P_NV] == 1 || group_out(r) > (p[P_NV] - 1) * p[P_LANES];
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const double waste = p[P_LANES] > 1 ? (double)group_out(r) / (double)((group_out(r) + p[P_LANES] - 1) / p[P_LANES] * p[P_LANES]) : 1;
    const double eff = p[P_LANES] > 1 ? 0.12 * (double)p[P_NV] * waste : 0.01;
    return hn_roofline_ns(t, w.flops, w.bytes, eff, 0.3) + 200;
}

/* x index of every spatial axis under a tap; yields whether the tap reaches the result. */
static hn_kv source(tc *c, const hn_kv *tap, hn_kv *at)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv ok = hn_kb_int(b, HN_BOOL, 1, 1);
    for (int s = 0; s < c->win.n; s++) {
        const hn_kv zero = hn_kb_i(b, 0), stride = hn_kb_i(b, c->win.stride[s]);
        const hn_kv t = hn_kb_sub(b, hn_kb_add(b, c->at[2 + s], hn_lower_dim(c->l, c->win.pad[s])),
                                  hn_kb_muli(b, tap[2 + s], c->win.dilation[s]));
        const hn_kv pos = hn_kb_max(b, t, zero);
        at[2 + s] = hn_kb_idiv(b, pos, stride);
        ok = hn_kb_and(b, ok, hn_kb_ge(b, t, zero));
        ok = hn_kb_and(b, ok, hn_kb_eq(b, hn_kb_imod(b, pos, stride), zero));
        ok = hn_kb_and(b, ok, hn_kb_lt(b, at[2 + s], hn_lower_dim(c->l, c->x->type.dim[2 + s])));
    }
    return ok;
}

static hn_kv value_at(tc *c, const hn_value *v, const hn_kv *at)
{
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    return hn_lower_value(c->l, v, &idx, HN_KV_NONE);
}

static int64_t padded_out(const tc *c)
{
    const int64_t nr = (int64_t)c->lanes * c->nv;
    return (c->og + nr - 1) / nr * nr;
}

/* One channel of one tap: x broadcast against nv vectors of filters, or against one filter. */
static void multiply(tc *c, hn_kv ch, const hn_kv *tap, hn_kv flat_tap, hn_kv m, hn_kv grp, const hn_kv *at)
{
    hn_kb *b = hn_lower_kb(c->l);
    const hn_kv x = value_at(c, c->x, at);
    if (c->lanes == 1) {
        hn_kv wat[HN_MAX_RANK];
        memcpy(wat, tap, sizeof wat);
        wat[0] = at[1];
        wat[1] = m;
        const hn_kv w = value_at(c, c->w, wat), sum = hn_kb_get(b, c->acc[0]);
        hn_kb_set(b, c->acc[0], hn_kb_fma(b, x, w, sum));
        return;
    }
    int64_t taps = 1;
    for (int s = 2; s < c->w->type.rank; s++) taps *= c->w->type.dim[s];
    const hn_kv row = hn_kb_add(b, hn_kb_muli(b, hn_kb_add(b, hn_kb_muli(b, grp, taps), flat_tap), c->cg), ch);
    const hn_kv base = hn_kb_add(b, hn_kb_muli(b, row, padded_out(c)), m);
    for (int v = 0; v < c->nv; v++) {
        const hn_kv w = hn_kb_load(b, c->blob, hn_kb_addi(b, base, (int64_t)v * c->lanes), c->lanes);
        hn_kb_set(b, c->acc[v], hn_kb_fma(b, hn_kb_splat(b, x, c->lanes), w, hn_kb_get(b, c->acc[v])));
    }
}

static void all_taps(tc *c, hn_kv m, hn_kv grp)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv tap[HN_MAX_RANK], at[HN_MAX_RANK], flat = hn_kb_i(b, 0);
    const int open = hn_loops_open(c->l, c->w, hn_loops_all(c->w) & ~3u, tap);
    for (int s = 2; s < c->w->type.rank; s++) flat = hn_kb_add(b, hn_kb_mul(b, flat, hn_lower_dim(c->l, c->w->type.dim[s])), tap[s]);
    hn_kb_if(b, source(c, tap, at));
    const hn_kv ch = hn_kb_forn(b, c->cg_v);
    hn_lower_forget(c->l);
    at[0] = c->at[0];
    at[1] = hn_kb_add(b, hn_kb_mul(b, grp, c->cg_v), ch);
    multiply(c, ch, tap, flat, m, grp, at);
    hn_kb_end(b);
    hn_kb_end(b);
    hn_loops_close(c->l, open);
}

static void store(tc *c, hn_kv m, hn_kv grp)
{
    hn_kb *b = hn_lower_kb(c->l);
    const bool part = c->lanes > 1 && c->og % (c->lanes * c->nv) != 0;
    for (int v = 0; v < c->nv; v++) {
        const hn_kv first = hn_kb_addi(b, m, (int64_t)v * c->lanes);
        hn_kv at[HN_MAX_RANK], mask = HN_KV_NONE;
        memcpy(at, c->at, sizeof at);
        at[1] = hn_kb_add(b, hn_kb_mul(b, grp, c->og_v), first);
        hn_kidx idx;
        hn_kidx_init(&idx, c->y->type.rank, at);
        hn_kidx_vector(&idx, 1, c->lanes);
        idx.aligned = c->lanes == 1 || c->og % c->lanes == 0;
        if (part) mask = hn_kb_tail_mask(b, first, hn_kb_i(b, c->og), c->lanes);
        hn_kv y = hn_kb_get(b, c->acc[v]);
        if (c->bias) {
            hn_kidx bi;
            hn_kidx_init(&bi, 1, &at[1]);
            hn_kidx_vector(&bi, 0, c->lanes);
            hn_lower_forget(c->l);
            y = hn_kb_add(b, y, hn_lower_value(c->l, c->bias, &bi, mask));
        }
        hn_lower_seed(c->l, c->y, y);
        hn_lower_store(c->l, &idx, mask);
    }
}

/* Parallel over image, place and channel block. */
static void places(tc *c)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_symtab *t = c->r->g->syms;
    const int64_t nr = (int64_t)c->lanes * c->nv;
    const uint32_t axes = hn_loops_all(c->y) & ~2u;
    const hn_dim blocks = hn_dim_ceildiv(t, c->w->type.dim[1], nr), all = hn_dim_mul(t, blocks, c->group);
    const hn_kv per = hn_lower_dim(c->l, all), per_group = hn_lower_dim(c->l, blocks);
    const hn_kv trips = hn_lower_dim(c->l, hn_dim_mul(t, hn_loops_extent(c->r, c->y, axes), all));
    const hn_kv trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1)), part = hn_kb_imod(b, trip, per);
    hn_loops_split(c->l, c->y, axes, hn_kb_idiv(b, trip, per), c->at);
    const hn_kv grp = hn_kb_idiv(b, part, per_group);
    const hn_kv m = hn_kb_muli(b, hn_kb_imod(b, part, per_group), nr);
    const hn_dtype sum = hn_lower_compute_type(c->y->type.dtype);
    for (int v = 0; v < c->nv; v++) c->acc[v] = hn_kb_var(b, hn_kb_float(b, sum, c->lanes, 0));
    all_taps(c, m, grp);
    store(c, m, grp);
    hn_kb_end(b);
}

static void shape_of(const hn_region *r, const int64_t *p, tc *c)
{
    c->r = r;
    c->x = hn_in(r->root, 0);
    c->w = hn_in(r->root, 1);
    c->bias = hn_in(r->root, 2);
    c->y = r->root->out[0];
    c->group = hn_attr_i(r->root, "group");
    c->cg = c->w->type.dim[0] / c->group;
    c->og = c->w->type.dim[1];
    c->lanes = (int)p[P_LANES];
    c->nv = (int)p[P_NV];
    hn_loops_window_of(r->root, &c->win);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_transpose_any_gather__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    tc c = { .l = l };
    shape_of(r, p, &c);
    c.cg_v = hn_lower_dim(l, hn_dim_floordiv(r->g->syms, c.w->type.dim[0], c.group));
    c.og_v = hn_lower_dim(l, c.w->type.dim[1]);
    if (c.lanes > 1) {
        const char *recipe = hn_arena_printf(ret->arena, "conv_transpose_w_f32_g%lld_n%lld", (long long)c.group,
                                             (long long)c.lanes * c.nv);
        const int64_t rows = hn_tdesc_numel_static(&c.w->type) / c.og;
        const hn_blob blob = { hn_region_operand(r, c.w), recipe, (size_t)(rows * padded_out(&c) * 4) };
        if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
        c.blob = hn_lower_blob(l, 0, HN_F32);
    }
    places(&c);
    return hn_lower_finish_whole(l, ret, dg);
}

/* [group][k][c][m], channels past the group's zero. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    tc c = { 0 };
    (void)t;
    (void)i;
    (void)dg;
    shape_of(r, p, &c);
    const float *src = r->data[hn_region_operand(r, c.w)]->at;
    float *out = dst;
    const int64_t taps = hn_tdesc_numel_static(&c.w->type) / (c.w->type.dim[0] * c.og), wide = padded_out(&c);
    for (int64_t g = 0; g < c.group; g++)
        for (int64_t k = 0; k < taps; k++)
            for (int64_t ch = 0; ch < c.cg; ch++)
                for (int64_t m = 0; m < wide; m++)
                    *out++ = m < c.og ? src[((g * c.cg + ch) * c.og + m) * taps + k] : 0;
    return HONE_OK;
}

const hn_tactic_def hn_tactic_conv_transpose_any_gather__cpu = {
    .name = "conv_transpose_any_gather__cpu", .rev = 1, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .space = space, .legal = legal, .cost = cost, .emit = emit, .pack = pack,
};
