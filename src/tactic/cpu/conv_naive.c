/* Convolutions of any rank, dtype and layout, plain loops with bounds checks a tap: the fallback. Vectors lie along output
 * channels where the result stores them densest, else there are none. */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/totals.h"

#include <math.h>

enum { NS_A_TAP = 30 }; /* on a GPU: index arithmetic and two reads */

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_conv && r->root->op != HN_OP_conv_int) return HN_FIT_OP;
    if (!hn_lower_dtype_ok(r->root->out[0]->type.dtype) || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    return HN_FIT_YES;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    const hn_value *y = r->root->out[0], *f = hn_in(r->root, 1);
    const double results = (double)hn_region_opt(r, hn_loops_extent(r, y, hn_loops_all(y)));
    const double taps = (double)hn_region_opt(r, hn_loops_extent(r, f, hn_loops_all(f) & ~1u));
    return fmax(hn_roofline_ns(t, w.flops, w.bytes, 0.02, 0.3) + 200, hn_threads_ns(t, results, taps, NS_A_TAP));
}

typedef struct cv {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *w, *bias, *y;
    bool integer;             /* conv_int */
    const hn_value *xz, *wz;  /* its zero points or NULL */
    hn_loops_window win;
    int64_t group;
    hn_kv at[HN_MAX_RANK]; /* result */
} cv;

static hn_kv zero_of(hn_kb *b, hn_dtype t)
{
    return hn_dtype_is_float(t) ? hn_kb_float(b, t, 1, 0) : hn_kb_int(b, t, 1, 0);
}

static hn_kv value_at(cv *c, const hn_value *v, const hn_kv *at, hn_kv mask)
{
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    return hn_lower_value(c->l, v, &idx, mask);
}

/* 8-bit operands less their zero points, in i32; a filter's own where `filter` is given and there is one each. */
static hn_kv centred(cv *c, hn_kv x, const hn_value *zero, const hn_kv *filter)
{
    hn_kb *b = hn_lower_kb(c->l);
    x = hn_kb_cast(b, x, HN_I32);
    if (!zero) return x;
    hn_kv at[HN_MAX_RANK];
    for (int a = 0; a < zero->type.rank; a++) at[a] = filter && zero->type.dim[a] != 1 ? *filter : hn_kb_i(b, 0);
    return hn_kb_sub(b, x, hn_kb_cast(b, value_at(c, zero, at, HN_KV_NONE), HN_I32));
}

/* Each tap's channels are summed apart, in blocks. */
static void accumulate(cv *c, hn_kvar total)
{
    hn_kb *b = hn_lower_kb(c->l);
    hn_kv tap[HN_MAX_RANK], at[HN_MAX_RANK];
    tap[0] = c->at[1];
    /* taps outside, channels inside: one bounds check serves all channels of a tap */
    const uint32_t axes = hn_loops_all(c->w) & ~3u;
    const int open = hn_loops_open(c->l, c->w, axes, tap);
    const hn_kv ok = hn_loops_tap(c->l, &c->win, c->x, c->at, tap, at);
    if (hn_kv_is(ok)) hn_kb_if(b, ok);
    const hn_kv zero = zero_of(b, hn_lower_compute_type(c->y->type.dtype)), channels = hn_lower_dim(c->l, c->w->type.dim[1]);
    const hn_kv from = hn_kb_for(b, hn_kb_i(b, 0), channels, HN_TOTALS_BLOCK);
    const hn_kvar acc = hn_kb_var(b, zero);
    hn_kb_set(b, acc, zero);
    tap[1] = hn_kb_for(b, from, hn_kb_min(b, hn_kb_addi(b, from, HN_TOTALS_BLOCK), channels), 1);
    hn_lower_forget(c->l);
    const hn_kv per_group = hn_kb_idiv(b, hn_lower_dim(c->l, c->w->type.dim[0]), hn_kb_i(b, c->group));
    const hn_kv first = hn_kb_mul(b, hn_kb_idiv(b, c->at[1], per_group), hn_lower_dim(c->l, c->w->type.dim[1]));
    at[0] = c->at[0];
    at[1] = hn_kb_add(b, first, tap[1]);
    hn_kv x = value_at(c, c->x, at, HN_KV_NONE), w = value_at(c, c->w, tap, HN_KV_NONE);
    if (c->integer) {
        x = centred(c, x, c->xz, NULL);
        w = centred(c, w, c->wz, &c->at[1]);
    }
    const hn_kv sum = hn_kb_get(b, acc);
    hn_kb_set(b, acc, hn_dtype_is_float(hn_kb_dtype(b, x)) ? hn_kb_fma(b, x, w, sum) : hn_kb_add(b, sum, hn_kb_mul(b, x, w)));
    hn_kb_end(b);
    hn_kb_set(b, total, hn_kb_add(b, hn_kb_get(b, total), hn_kb_get(b, acc)));
    hn_kb_end(b);
    if (hn_kv_is(ok)) hn_kb_end(b);
    hn_loops_close(c->l, open);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "conv_any_naive__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    cv c = { .l = l, .r = r, .x = hn_in(r->root, 0), .w = hn_in(r->root, 1), .y = r->root->out[0] };
    c.integer = r->root->op == HN_OP_conv_int;
    c.bias = c.integer ? NULL : hn_in(r->root, 2);
    c.xz = c.integer ? hn_in(r->root, 2) : NULL;
    c.wz = c.integer ? hn_in(r->root, 3) : NULL;
    c.group = hn_attr_i(r->root, "group");
    hn_loops_window_of(r->root, &c.win);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, c.y, hn_loops_all(c.y)));
    hn_loops_split(l, c.y, hn_loops_all(c.y), hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), c.at);
    const hn_kv init = c.bias ? value_at(&c, c.bias, &c.at[1], HN_KV_NONE) : zero_of(b, hn_lower_compute_type(c.y->type.dtype));
    const hn_kvar acc = hn_kb_var(b, init);
    accumulate(&c, acc);
    hn_kidx idx;
    hn_kidx_init(&idx, c.y->type.rank, c.at);
    hn_lower_seed(l, c.y, hn_kb_get(b, acc));
    hn_lower_store(l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_conv_any_naive__cpu = {
    .name = "conv_any_naive__cpu", .rev = 2, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .cost = cost, .emit = emit,
};
