/* Pooling of any rank and layout: vectors along the densest axis where that is not a spatial one, else one
 * result at a time. Windows that lie inside the image run unguarded, taps written out; in others, taps outside are skipped. Where the largest element stands is found by integer keys
 * (order.h), the first of equals. */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/order.h"

#include <math.h>

enum { NS_A_TAP = 25 }; /* on a GPU: a read and its checks */
enum { P_LANES };

static bool is_max(const hn_node *n)
{
    return n->op == HN_OP_max_pool;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_max_pool && r->root->op != HN_OP_avg_pool && r->root->op != HN_OP_lp_pool)
        return HN_FIT_OP;
    if (!hn_lower_dtype_ok(r->root->out[0]->type.dtype) || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    return HN_FIT_YES;
}

/* Lanes may lie along batch or channels: every lane then has the same taps. */
static bool channels_dense(const hn_region *r)
{
    return hn_loops_dense_axis(r->root->out[0]) < 2;
}

/* Narrow elements come in wider vectors too: few channels leave less of narrow ones to the tail. */
static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    enum { MOST = 4 };
    const hn_dtype x = hn_lower_compute_type(r->root->out[0]->type.dtype);
    const int64_t wide = channels_dense(r) ? hn_lower_lanes(t, r->root->out[0]->type.dtype) : 1, most = t->vec_bytes * 8 / hn_dtype_bits(x);
    int64_t lanes[MOST] = { 1, wide };
    int n = wide > 1 ? 2 : 1;
    for (int64_t w = wide * 2; wide > 1 && w <= most && n < MOST; w *= 2)
        lanes[n++] = w;
    hn_space_add_list(ret, "lanes", n, lanes);
}

/* Masked vectors of bytes are one instruction with AVX-512 alone. */
static hn_ktail tail_of(const hn_region *r, const hn_target *t)
{
    const bool narrow = hn_dtype_bits(r->root->out[0]->type.dtype) < 32;
    return narrow && !hn_target_has(t, HN_FEAT_AVX512) ? HN_KTAIL_SCALAR : HN_KTAIL_MASK;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    const int64_t c = r->root->out[0]->type.dim[HN_MIN(1, r->root->out[0]->type.rank - 1)], lanes = p[P_LANES];
    const double used = lanes > 1 && hn_dim_is_const(c) && c > 0 ? (double)c / (double)((c + lanes - 1) / lanes * lanes) : 1;
    const double ns = hn_roofline_ns(t, w.flops, w.bytes, 0.1 * used * (double)lanes / hn_lower_lanes(t, HN_F32), 0.6) + 200;
    const hn_value *y = r->root->out[0];
    const double results = (double)hn_region_opt(r, hn_loops_extent(r, y, hn_loops_all(y))) / (double)lanes;
    int n_axis;
    double taps = 1;
    const int64_t *kernel = hn_attr_is(r->root, "kernel", &n_axis);
    for (int i = 0; i < n_axis; i++) taps *= (double)kernel[i];
    return fmax(ns, hn_threads_ns(t, results, taps, NS_A_TAP));
}

typedef struct pool {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x, *y;
    hn_loops_window win;
    const int64_t *kernel;
    const hn_dim *pad_end;
    int n_pad_end, dense;
    hn_kv at[HN_MAX_RANK];
    hn_kvar acc, key, where; /* key, where: with an index output */
} pool;

static bool has_index(const hn_region *r)
{
    return r->root->n_out > 1;
}

static hn_kv first_value(pool *p, hn_dtype t, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    if (!is_max(p->r->root)) return hn_kb_float(b, t, lanes, 0);
    if (hn_dtype_is_float(t)) return hn_kb_float(b, t, lanes, -__builtin_inf());
    const int bits = hn_dtype_bits(t);
    return hn_kb_int(b, t, lanes, hn_dtype_is_signed(t) ? -(int64_t)(1ull << (bits - 1)) : 0);
}

/* How many taps of axis s count: inside the input, or inside input and padding. */
static hn_kv axis_count(pool *p, int s, bool with_pad)
{
    hn_kb *b = hn_lower_kb(p->l);
    const hn_loops_window *w = &p->win;
    const hn_kv pad = hn_lower_dim(p->l, w->pad[s - 2]), n = hn_lower_dim(p->l, p->x->type.dim[s]);
    const hn_kv start = hn_kb_sub(b, hn_kb_muli(b, p->at[s], w->stride[s - 2]), pad);
    const int64_t d = w->dilation[s - 2];
    hn_kv lo = with_pad ? hn_kb_neg(b, pad) : hn_kb_i(b, 0), hi = n;
    if (with_pad && s - 2 < p->n_pad_end) hi = hn_kb_add(b, n, hn_lower_dim(p->l, p->pad_end[s - 2]));
    /* taps k in [0, kernel) with lo <= start + k*d < hi */
    const hn_kv zero = hn_kb_i(b, 0), dd = hn_kb_i(b, d);
    const hn_kv first = hn_kb_idiv(b, hn_kb_addi(b, hn_kb_max(b, hn_kb_sub(b, lo, start), zero), d - 1), dd);
    hn_kv end = hn_kb_idiv(b, hn_kb_addi(b, hn_kb_max(b, hn_kb_sub(b, hi, start), zero), d - 1), dd);
    end = hn_kb_min(b, end, hn_kb_i(b, p->kernel[s - 2]));
    return hn_kb_max(b, hn_kb_sub(b, end, first), zero);
}

static hn_kv divisor(pool *p, hn_dtype t, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    const bool with_pad = hn_attr_i(p->r->root, "count_include_pad");
    hn_kv n = hn_kb_i(b, 1);
    for (int s = 2; s < 2 + p->win.n; s++)
        n = hn_kb_mul(b, n, axis_count(p, s, with_pad));
    n = hn_kb_max(b, n, hn_kb_i(b, 1));
    return hn_kb_splat(b, hn_kb_cast(b, n, t), lanes);
}

static hn_kv tap_value(pool *p, const hn_kv *at, int lanes, hn_kv mask)
{
    hn_kidx idx;
    hn_kidx_init(&idx, p->x->type.rank, at);
    if (lanes > 1) {
        hn_kidx_vector(&idx, p->dense, lanes);
        idx.aligned = true;
    }
    return hn_lower_value(p->l, p->x, &idx, mask);
}

/* |x|^p */
static hn_kv powered(pool *p, hn_kv x)
{
    hn_kb *b = hn_lower_kb(p->l);
    const int64_t e = hn_attr_i(p->r->root, "p");
    if (e == 2) return hn_kb_mul(b, x, x);
    x = hn_kb_abs(b, x);
    return e == 1 ? x : hn_kb_pow(b, x, hn_kb_like(b, x, (double)e));
}

static hn_kv root_of(pool *p, hn_kv x)
{
    hn_kb *b = hn_lower_kb(p->l);
    const int64_t e = hn_attr_i(p->r->root, "p");
    if (e == 2) return hn_kb_sqrt(b, x);
    return e == 1 ? x : hn_kb_pow(b, x, hn_kb_like(b, x, 1 / (double)e));
}

/* Number of a tap's element within its plane: row-major, or with the first spatial axis fastest. */
static hn_kv number_in_plane(pool *p, const hn_kv *at)
{
    hn_kb *b = hn_lower_kb(p->l);
    const bool columns = hn_attr_i(p->r->root, "column_major");
    hn_kv n = hn_kb_i(b, 0);
    for (int k = 0; k < p->win.n; k++) {
        const int s = columns ? 1 + p->win.n - k : 2 + k;
        n = hn_kb_add(b, hn_kb_mul(b, n, hn_lower_dim(p->l, p->x->type.dim[s])), at[s]);
    }
    return n;
}

static void take_with_index(pool *p, hn_kv x, hn_kv number, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    const hn_kv key = hn_order_key(b, x), best = hn_kb_get(b, p->key), where = hn_kb_get(b, p->where);
    const hn_kv none = hn_kb_lt(b, where, hn_kb_int(b, HN_I64, lanes, 0)),
                win = hn_kb_or(b, hn_kb_gt(b, key, best), none);
    hn_kb_set(b, p->key, hn_kb_select(b, win, key, best));
    hn_kb_set(b, p->where, hn_kb_select(b, win, hn_kb_splat(b, number, lanes), where));
    hn_kb_set(b, p->acc, hn_kb_select(b, win, x, hn_kb_get(b, p->acc)));
}

static void take(pool *p, hn_kv x, const hn_kv *at, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    const hn_kv old = hn_kb_get(b, p->acc);
    if (has_index(p->r))
        take_with_index(p, x, number_in_plane(p, at), lanes);
    else if (is_max(p->r->root))
        hn_kb_set(b, p->acc, hn_kb_max(b, old, x));
    else
        hn_kb_set(b, p->acc, hn_kb_add(b, old, p->r->root->op == HN_OP_lp_pool ? powered(p, x) : x));
}

/* The index counts from the start of the operand; windows without an element say where their plane starts. */
static void seed_index(pool *p, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    hn_kv size = hn_kb_i(b, 1), at[2];
    for (int s = 2; s < 2 + p->win.n; s++)
        size = hn_kb_mul(b, size, hn_lower_dim(p->l, p->x->type.dim[s]));
    for (int a = 0; a < 2; a++)
        at[a] = a == p->dense ? hn_kb_ramp(b, p->at[a], 1, lanes) : hn_kb_splat(b, p->at[a], lanes);
    const hn_kv c = hn_kb_splat(b, hn_lower_dim(p->l, p->x->type.dim[1]), lanes);
    const hn_kv plane = hn_kb_add(b, hn_kb_mul(b, at[0], c), at[1]);
    const hn_kv first = hn_kb_mul(b, plane, hn_kb_splat(b, size, lanes));
    const hn_kv inside = hn_kb_max(b, hn_kb_get(b, p->where), hn_kb_int(b, HN_I64, lanes, 0));
    hn_lower_seed(p->l, p->r->root->out[1], hn_kb_add(b, first, inside));
}

static void start(pool *p, hn_dtype t, int lanes)
{
    hn_kb *b = hn_lower_kb(p->l);
    p->acc = hn_kb_var(b, first_value(p, t, lanes));
    if (!has_index(p->r)) return;
    p->key = hn_kb_var(b, hn_order_lowest(b, hn_order_key_type(t), lanes));
    p->where = hn_kb_var(b, hn_kb_int(b, HN_I64, lanes, -1));
}

static void take_tap(pool *p, const hn_kv *at, int lanes, hn_kv mask)
{
    hn_lower_forget(p->l);
    take(p, hn_kb_splat(hn_lower_kb(p->l), tap_value(p, at, lanes, mask), lanes), at, lanes);
}

static void guarded_taps(pool *p, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(p->l);
    hn_kv tap[HN_MAX_RANK], at[HN_MAX_RANK];
    at[0] = p->at[0];
    at[1] = p->at[1];
    for (int s = 2; s < 2 + p->win.n; s++)
        tap[s] = hn_kb_fori(b, p->kernel[s - 2]);
    hn_lower_forget(p->l);
    hn_kb_if(b, hn_loops_tap(p->l, &p->win, p->x, p->at, tap, at));
    take_tap(p, at, lanes, mask);
    hn_kb_end(b);
    hn_loops_close(p->l, p->win.n);
}

enum { WRITTEN_OUT = 32 };

/* All taps of a window inside the image, from spatial axis s on. */
static void inner_taps(pool *p, int s, hn_kv *at, int64_t written, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(p->l);
    if (s == 2 + p->win.n) {
        take_tap(p, at, lanes, mask);
        return;
    }
    const int64_t k = p->kernel[s - 2], d = p->win.dilation[s - 2];
    const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, p->at[s], p->win.stride[s - 2]), hn_lower_dim(p->l, p->win.pad[s - 2]));
    const bool out = written * k <= WRITTEN_OUT;
    for (int64_t i = 0; i < (out ? k : 1); i++) {
        const hn_kv tap = out ? hn_kb_i(b, i) : hn_kb_fori(b, k);
        at[s] = hn_kb_add(b, first, hn_kb_muli(b, tap, d));
        inner_taps(p, s + 1, at, out ? written * k : WRITTEN_OUT + 1, lanes, mask);
        if (!out) hn_kb_end(b);
    }
}

/* Whether the window of the place under way lies inside the image; NONE: all windows do. */
static hn_kv window_inside(pool *p)
{
    hn_kb *b = hn_lower_kb(p->l);
    hn_symtab *syms = p->r->g->syms;
    hn_kv inside = HN_KV_NONE;
    for (int s = 2; s < 2 + p->win.n; s++) {
        const int64_t reach = (p->kernel[s - 2] - 1) * p->win.dilation[s - 2], stride = p->win.stride[s - 2];
        int64_t pad, n, o;
        if (hn_dim_known(syms, p->win.pad[s - 2], &pad) && pad <= 0 && hn_dim_known(syms, p->x->type.dim[s], &n) &&
            hn_dim_known(syms, p->y->type.dim[s], &o) && (o - 1) * stride - pad + reach < n)
            continue;
        const hn_kv first = hn_kb_sub(b, hn_kb_muli(b, p->at[s], stride), hn_lower_dim(p->l, p->win.pad[s - 2]));
        const hn_kv in = hn_kb_and(b, hn_kb_ge(b, first, hn_kb_i(b, 0)),
                                   hn_kb_lt(b, hn_kb_addi(b, first, reach), hn_lower_dim(p->l, p->x->type.dim[s])));
        inside = hn_kv_is(inside) ? hn_kb_and(b, inside, in) : in;
    }
    return inside;
}

static hn_kv finished(pool *p, hn_dtype t, int lanes, bool inside)
{
    hn_kb *b = hn_lower_kb(p->l);
    const hn_kv y = hn_kb_get(b, p->acc);
    if (p->r->root->op == HN_OP_lp_pool) return root_of(p, y);
    if (p->r->root->op != HN_OP_avg_pool) return y;
    int64_t area = 1;
    for (int i = 0; i < p->win.n; i++)
        area *= p->kernel[i];
    return hn_kb_div(b, y, inside ? hn_kb_like(b, y, (double)area) : divisor(p, t, lanes));
}

/* Every tap of the place under way, and the result into p->acc. */
static void all_taps(pool *p, hn_dtype t, int lanes, hn_kv mask)
{
    hn_kb *b = hn_lower_kb(p->l);
    const hn_kv inside = window_inside(p);
    hn_kv at[HN_MAX_RANK] = { p->at[0], p->at[1] };
    if (hn_kv_is(inside)) hn_kb_if(b, inside);
    inner_taps(p, 2, at, 1, lanes, mask);
    hn_kb_set(b, p->acc, finished(p, t, lanes, true));
    if (!hn_kv_is(inside)) return;
    hn_kb_else(b);
    guarded_taps(p, lanes, mask);
    hn_kb_set(b, p->acc, finished(p, t, lanes, false));
    hn_kb_end(b);
}

static void body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    pool *p = user;
    if (p->dense >= 0) p->at[p->dense] = i;
    const hn_dtype t = hn_lower_compute_type(p->y->type.dtype);
    start(p, t, lanes);
    all_taps(p, t, lanes, mask);
    hn_lower_forget(p->l);
    hn_kidx idx;
    hn_kidx_init(&idx, p->y->type.rank, p->at);
    if (lanes > 1) {
        hn_kidx_vector(&idx, p->dense, lanes);
        idx.aligned = true;
    }
    hn_lower_seed(p->l, p->y, hn_kb_get(b, p->acc));
    if (has_index(p->r)) seed_index(p, lanes);
    hn_lower_store(p->l, &idx, mask);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *prm, hn_emission *ret,
                        hn_diag *dg)
{
    int n;
    hn_kb *b = hn_kb_new(ret->arena, "pool_any_loop__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    pool p = { .l = l, .r = r, .x = hn_in(r->root, 0), .y = r->root->out[0] };
    hn_loops_window_of(r->root, &p.win);
    p.kernel = hn_attr_is(r->root, "kernel", &n);
    p.pad_end = hn_attr_is(r->root, "pad_end", &p.n_pad_end);
    p.dense = channels_dense(r) ? hn_loops_dense_axis(p.y) : p.y->type.rank - 1;
    /* Places along a row share the division that finds the row; on a GPU every place has threads of its own. */
    const int along = p.y->type.rank - 1;
    const bool strip = p.dense != along && p.win.n > 1 && t->arch != HN_ARCH_SM;
    const uint32_t outer = hn_loops_all(p.y) & ~(1u << p.dense) & ~(strip ? 1u << along : 0);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, p.y, outer));
    hn_loops_split(l, p.y, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), p.at);
    if (strip) p.at[along] = hn_kb_forn(b, hn_lower_dim(l, p.y->type.dim[along]));
    hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, p.y->type.dim[p.dense]), (int)prm[P_LANES], tail_of(r, t),
                      body, &p);
    if (strip) hn_kb_end(b);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_pool_any_loop__cpu = {
    .name = "pool_any_loop__cpu",
    .rev = 5,
    .arch = HN_ARCH_X86_64,
    .portable = true,
    .fits = fits,
    .space = space,
    .cost = cost,
    .emit = emit,
    .pin = { [P_LANES] = HN_KNOB_pool_lanes },
};
