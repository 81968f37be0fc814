/* Attention whole: a first launch transposes the keys into panels of nv vectors, [batch head][panel][d][key],
 * a second one takes mr queries at a time: scores of all keys into scratch, softmax over them there, then
 * their sum over the values.
 *
 * Scores never reach memory, and keys past a causal limit are not computed.
 */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/square.h"

enum { P_MR, P_NV };
enum { MAX_MR = 6, MAX_NV = 4 };
enum { Q, K, V, MASK };
enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT };
enum { ROWS_ZERO, ROWS_NAN, ROWS_GUARD };

/* The last axis lies densest, the others in any order: [b,h,s,d] and [b,s,h,d] alike. */
static bool has_whole_rows(const hn_value *v)
{
    const hn_layout *l = &v->layout;
    return hn_layout_is_plain(l) || (l->n == 4 && l->at[3].axis == 3 && !l->at[3].block);
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_attention) return HN_FIT_OP;
    const hn_dtype d = n->out[0]->type.dtype;
    if (d != HN_F32 && d != HN_F16 && d != HN_BF16) return HN_FIT_DTYPE;
    if (!hn_lower_can(r, n)) return HN_FIT_DTYPE;
    for (int i = Q; i <= V; i++) {
        if (hn_region_operand(r, hn_in(n, i)) < 0) return HN_FIT_TOO_SMALL;
        if (!has_whole_rows(hn_in(n, i))) return HN_FIT_LAYOUT;
        if (!hn_dim_is_const(hn_in(n, i)->type.dim[3])) return HN_FIT_SYMBOLIC;
    }
    return has_whole_rows(n->out[0]) ? HN_FIT_YES : HN_FIT_LAYOUT;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r;
    (void)t;
    hn_space_add_list(ret, "mr", 4, (const int64_t[]){ 1, 2, 4, 6 });
    hn_space_add_list(ret, "nv", 3, (const int64_t[]){ 1, 2, 4 });
}

/* Sums, a row of keys or values and one broadcast must fit the registers. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_dim s = r->root->out[0]->type.dim[2];
    if (hn_dim_is_const(s) && p[P_MR] > 1 && s < p[P_MR]) return false;
    return p[P_MR] * p[P_NV] + p[P_NV] + 1 <= t->n_vreg;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_value *q = hn_in(r->root, Q), *k = hn_in(r->root, K), *y = r->root->out[0];
    double lines = 1;
    for (int a = 0; a < 3; a++)
        lines *= (double)hn_region_opt(r, q->type.dim[a]);
    const double keys = (double)hn_region_opt(r, k->type.dim[2]);
    const double flops = 2 * lines * keys * (double)(q->type.dim[3] + y->type.dim[3]) + 20 * lines * keys;
    const double tile = (double)(p[P_MR] * p[P_NV]);
    const double moved = 8 * keys * (double)k->type.dim[3] * (double)hn_region_opt(r, k->type.dim[0]);
    return hn_roofline_ns(t, flops, moved, 0.8 * tile / (tile + 8), 0.5) + 500;
}

typedef struct att {
    const hn_region *r;
    const hn_value *q, *k, *v, *mask, *y;
    int lanes, mr, nv;
    int64_t d, dv, wide; /* wide: keys a panel */
    hn_dim panels;       /* of one head */
    /* the second launch */
    hn_lower *l;
    int qb, kb, vb, sb;    /* buffers: queries, panels, values; scratch: scores */
    hn_kv t, stride;       /* keys; scores a row in scratch */
    hn_kv batch, head, key_head;
    hn_kv kv; /* batch and key head as one number */
    hn_kv row[MAX_MR], limit[MAX_MR];
    hn_kvar acc[MAX_MR][MAX_NV], top[MAX_MR]; /* top: the largest score of a row, a vector of maxima */
} att;

static void shape_of(const hn_region *r, const hn_target *t, const int64_t *p, att *a)
{
    *a = (att){ .r = r,
                .q = hn_in(r->root, Q),
                .k = hn_in(r->root, K),
                .v = hn_in(r->root, V),
                .mask = hn_in(r->root, MASK),
                .y = r->root->out[0],
                .lanes = hn_lower_lanes(t, HN_F32),
                .mr = (int)p[P_MR],
                .nv = (int)p[P_NV] };
    a->d = a->q->type.dim[3];
    a->dv = a->v->type.dim[3];
    a->wide = (int64_t)a->lanes * a->nv;
    a->panels = hn_dim_ceildiv(r->g->syms, a->k->type.dim[2], a->wide);
}

static hn_dim product(const att *a, hn_dim x, hn_dim y)
{
    return hn_dim_mul(a->r->g->syms, x, y);
}

/* Where row `row` of a head starts. */
static hn_kv row_at(hn_lower *l, const hn_value *v, hn_kv batch, hn_kv head, hn_kv row)
{
    static const hn_layout plain = { .n = 4, .at = { { 0, 0 }, { 1, 0 }, { 2, 0 }, { 3, 0 } } };
    const hn_layout *lay = v->layout.n ? &v->layout : &plain;
    const hn_kv index[3] = { batch, head, row };
    hn_kb *b = hn_lower_kb(l);
    hn_kv stride[HN_MAX_RANK], at = hn_kb_i(b, 0);
    hn_lower_strides(l, v, stride);
    for (int i = 0; i < 3; i++)
        at = hn_kb_add(b, at, hn_kb_mul(b, index[lay->at[i].axis], stride[i]));
    return at;
}

/* ---- first launch: keys to panels ---- */
typedef struct turn {
    hn_kb *b;
    int in, out;            /* buffers */
    hn_kv row[HN_SQUARE_MAX]; /* where the rows of a square start */
    hn_kv to;               /* where its first element goes */
    int lanes;
    int64_t wide;
} turn;

/* Elements [j, j + count) of the rows, turned over: a row of the panel each. */
static void turn_square(const turn *s, hn_kv j, int count)
{
    hn_kb *b = s->b;
    hn_kv x[HN_SQUARE_MAX];
    const hn_kv on = count < s->lanes ? hn_kb_tail_mask(b, hn_kb_i(b, 0), hn_kb_i(b, count), s->lanes) : HN_KV_NONE;
    for (int i = 0; i < s->lanes; i++)
        x[i] = hn_kb_loadm(b, s->in, hn_kb_add(b, s->row[i], j), s->lanes, on);
    hn_square_transpose(b, x, s->lanes);
    for (int i = 0; i < count; i++)
        hn_kb_store(b, s->out, hn_kb_add(b, s->to, hn_kb_muli(b, hn_kb_addi(b, j, i), s->wide)), x[i]);
}

/* Keys past the last repeat it: their scores are hidden later. */
static hn_kv panel_row(const att *a, hn_lower *l, hn_kv head, hn_kv key)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_kv one = hn_kb_i(b, 1), heads = hn_kb_max(b, hn_lower_dim(l, a->k->type.dim[1]), one);
    const hn_kv last = hn_kb_addi(b, hn_lower_dim(l, a->k->type.dim[2]), -1);
    return row_at(l, a->k, hn_kb_idiv(b, head, heads), hn_kb_imod(b, head, heads), hn_kb_min(b, key, last));
}

static hone_status emit_panels(const att *a, const hn_target *t, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "attention_float_rows__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, a->r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_dim heads = product(a, a->k->type.dim[0], a->k->type.dim[1]);
    const hn_kv per = hn_lower_dim(l, a->panels), trips = hn_lower_dim(l, product(a, heads, a->panels));
    turn s = { .b = b, .in = hn_lower_in(l, hn_region_operand(a->r, a->k)), .out = hn_lower_temp(l, 0, HN_F32, true),
               .lanes = a->lanes, .wide = a->wide };
    const hn_kv trip = hn_kb_parallel(b, hn_kb_ext(b, trips, 1)), head = hn_kb_idiv(b, trip, per);
    const hn_kv first = hn_kb_muli(b, hn_kb_imod(b, trip, per), a->wide);
    const hn_kv v = hn_kb_muli(b, hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, a->nv), 1), a->lanes);
    for (int i = 0; i < a->lanes; i++) s.row[i] = panel_row(a, l, head, hn_kb_addi(b, hn_kb_add(b, first, v), i));
    s.to = hn_kb_add(b, hn_kb_muli(b, trip, a->d * a->wide), v);
    const int64_t left = a->d % a->lanes;
    turn_square(&s, hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, a->d - left), a->lanes), a->lanes);
    hn_kb_end(b);
    if (left) turn_square(&s, hn_kb_i(b, a->d - left), (int)left);
    hn_kb_end(b);
    hn_kb_end(b);
    const double n =
        (double)hn_region_opt(a->r, heads) * (double)hn_region_opt(a->r, a->k->type.dim[2]) * (double)a->d;
    return hn_lower_finish(l, ret, 0, 8 * n, dg);
}

/* ---- second launch: scores ---- */
static hn_kv query_at(att *a, int m, hn_kv j)
{
    return hn_kb_add(hn_lower_kb(a->l), row_at(a->l, a->q, a->batch, a->head, a->row[m]), j);
}

static hn_kv score_at(att *a, int m, hn_kv key)
{
    hn_kb *b = hn_lower_kb(a->l);
    return hn_kb_add(b, hn_kb_muli(b, a->stride, m), key);
}

static hn_kv f32(att *a, double x)
{
    return hn_kb_float(hn_lower_kb(a->l), HN_F32, a->lanes, x);
}

/* The mask at keys [key, key + lanes) of row m; `on`: lanes that are keys. */
static hn_kv mask_at(att *a, int m, hn_kv key, hn_kv on)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_tdesc *t = &a->mask->type;
    const hn_kv full[4] = { a->batch, a->head, a->row[m], key };
    hn_kv at[4];
    for (int i = 0; i < t->rank; i++)
        at[i] = t->dim[i] == 1 ? hn_kb_i(b, 0) : full[4 - t->rank + i];
    hn_kidx idx;
    hn_kidx_init(&idx, t->rank, at);
    idx.lanes = a->lanes;
    if (t->rank && t->dim[t->rank - 1] != 1) hn_kidx_vector(&idx, t->rank - 1, a->lanes);
    hn_lower_forget(a->l);
    const hn_kv x = hn_kb_splat(b, hn_lower_value(a->l, a->mask, &idx, on), a->lanes);
    hn_lower_forget(a->l);
    return x;
}

static hn_kv finish_score(att *a, int m, hn_kv key, hn_kv x)
{
    hn_kb *b = hn_lower_kb(a->l);
    const double cap = hn_attr_f(a->r->root, "softcap"), given = hn_attr_f(a->r->root, "scale");
    const hn_kv on = hn_kb_tail_mask(b, key, a->limit[m], a->lanes);
    x = hn_kb_mul(b, x, f32(a, given != 0 ? given : 1 / __builtin_sqrt((double)a->d)));
    if (cap != 0) x = hn_kb_mul(b, hn_kb_math(b, HN_KMATH_TANH, hn_kb_div(b, x, f32(a, cap))), f32(a, cap));
    if (a->mask) {
        const hn_kv k = mask_at(a, m, key, on);
        x = a->mask->type.dtype == HN_BOOL ? hn_kb_select(b, k, x, f32(a, hn_attr_f(a->r->root, "hide")))
                                           : hn_kb_add(b, x, k);
    }
    return hn_kb_select(b, on, x, f32(a, -__builtin_inf()));
}

/* How many panels hold keys that row m, or any row before it, sees. */
static hn_kv panels_of(att *a)
{
    hn_kb *b = hn_lower_kb(a->l);
    return hn_kb_idiv(b, hn_kb_addi(b, a->limit[a->mr - 1], a->wide - 1), hn_kb_i(b, a->wide));
}

static void scores(att *a)
{
    hn_kb *b = hn_lower_kb(a->l);
    for (int m = 0; m < a->mr; m++)
        a->top[m] = hn_kb_var(b, f32(a, -__builtin_inf()));
    const hn_kv panel = hn_kb_forn(b, panels_of(a)), all = hn_lower_dim(a->l, a->panels);
    for (int m = 0; m < a->mr; m++)
        for (int v = 0; v < a->nv; v++)
            a->acc[m][v] = hn_kb_var(b, f32(a, 0));
    const hn_kv at = hn_kb_muli(b, hn_kb_add(b, hn_kb_mul(b, a->kv, all), panel), a->d * a->wide);
    const hn_kv j = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, a->d), 1);
    hn_kv k[MAX_NV];
    for (int v = 0; v < a->nv; v++)
        k[v] = hn_kb_load(b, a->kb,
                          hn_kb_addi(b, hn_kb_add(b, at, hn_kb_muli(b, j, a->wide)), (int64_t)v * a->lanes),
                          a->lanes);
    for (int m = 0; m < a->mr; m++) {
        const hn_kv q = hn_kb_load_splat(b, a->qb, query_at(a, m, j), a->lanes);
        for (int v = 0; v < a->nv; v++)
            hn_kb_set(b, a->acc[m][v], hn_kb_fma(b, q, k[v], hn_kb_get(b, a->acc[m][v])));
    }
    hn_kb_end(b);
    for (int m = 0; m < a->mr; m++)
        for (int v = 0; v < a->nv; v++) {
            const hn_kv key = hn_kb_addi(b, hn_kb_muli(b, panel, a->wide), (int64_t)v * a->lanes);
            const hn_kv x = finish_score(a, m, key, hn_kb_get(b, a->acc[m][v]));
            hn_kb_store(b, a->sb, score_at(a, m, key), x);
            hn_kb_set(b, a->top[m], hn_kb_max(b, hn_kb_get(b, a->top[m]), x));
        }
    hn_kb_end(b);
}

/* ---- softmax over a row of scratch ---- */
/* Where the sum of weights is NaN the weights become 0; yields the sum to divide by. */
static hn_kv clear_undefined(att *a, int m, hn_kv n, hn_kv sum)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_kv undefined = hn_kb_ne(b, sum, sum);
    hn_kb_if(b, undefined);
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), n, a->lanes);
    hn_kb_store(b, a->sb, score_at(a, m, i), f32(a, 0));
    hn_kb_end(b);
    hn_kb_end(b);
    return hn_kb_select(b, undefined, hn_kb_like(b, sum, 1), sum);
}

/* What is taken off the scores of row m. A row that sees no key has -inf there: taking 0 off leaves weights of 0. */
static hn_kv offset_of(att *a, int m)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_kv t = hn_kb_un(b, HN_KOP_RMAX, hn_kb_get(b, a->top[m]));
    if (hn_attr_i(a->r->root, "rows") != ROWS_ZERO) return t;
    return hn_kb_select(b, hn_kb_eq(b, t, hn_kb_like(b, t, -__builtin_inf())), hn_kb_like(b, t, 0), t);
}

/* Weights stay in scratch; `factor` becomes what they must be divided by, as a factor. The rows go through one loop together:
 * an exponential alone is one long chain. */
static void weights(att *a, hn_kv n, hn_kv *factor)
{
    hn_kb *b = hn_lower_kb(a->l);
    hn_kv off[MAX_MR];
    hn_kvar sum[MAX_MR];
    for (int m = 0; m < a->mr; m++) {
        off[m] = hn_kb_splat(b, offset_of(a, m), a->lanes);
        sum[m] = hn_kb_var(b, f32(a, 0));
    }
    const hn_kv i = hn_kb_for(b, hn_kb_i(b, 0), n, a->lanes);
    for (int m = 0; m < a->mr; m++) {
        const hn_kv at = score_at(a, m, i);
        const hn_kv e = hn_kb_math(b, HN_KMATH_EXP, hn_kb_sub(b, hn_kb_load(b, a->sb, at, a->lanes), off[m]));
        hn_kb_store(b, a->sb, at, e);
        hn_kb_set(b, sum[m], hn_kb_add(b, hn_kb_get(b, sum[m]), e));
    }
    hn_kb_end(b);
    for (int m = 0; m < a->mr; m++) {
        hn_kv s = hn_kb_un(b, HN_KOP_RADD, hn_kb_get(b, sum[m]));
        if (hn_attr_i(a->r->root, "rows") == ROWS_GUARD) s = clear_undefined(a, m, n, s);
        const hn_kv zero = hn_kb_like(b, s, 0);
        factor[m] = hn_kb_select(b, hn_kb_eq(b, s, zero), zero, hn_kb_div(b, hn_kb_like(b, s, 1), s));
    }
}

/* ---- weighted sum of the values ---- */
static void store_part(att *a, int m, int v, hn_kv first, hn_kv factor)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_kv col = hn_kb_addi(b, first, (int64_t)v * a->lanes),
                at[4] = { a->batch, a->head, a->row[m], col };
    hn_kidx idx;
    hn_kidx_init(&idx, 4, at);
    hn_kidx_vector(&idx, 3, a->lanes);
    const hn_kv on = a->dv % a->wide ? hn_kb_tail_mask(b, col, hn_kb_i(b, a->dv), a->lanes) : HN_KV_NONE;
    hn_lower_seed(a->l, a->y, hn_kb_mul(b, hn_kb_get(b, a->acc[m][v]), hn_kb_splat(b, factor, a->lanes)));
    hn_lower_store(a->l, &idx, on);
}

static void values(att *a, hn_kv n, const hn_kv *factor)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_kv first = hn_kb_for(b, hn_kb_i(b, 0), hn_kb_i(b, a->dv), a->wide);
    for (int m = 0; m < a->mr; m++)
        for (int v = 0; v < a->nv; v++)
            a->acc[m][v] = hn_kb_var(b, f32(a, 0));
    const hn_kv key = hn_kb_forn(b, n), line = row_at(a->l, a->v, a->batch, a->key_head, key);
    hn_kv x[MAX_NV];
    for (int v = 0; v < a->nv; v++) {
        const hn_kv col = hn_kb_addi(b, first, (int64_t)v * a->lanes);
        const hn_kv on = a->dv % a->wide ? hn_kb_tail_mask(b, col, hn_kb_i(b, a->dv), a->lanes) : HN_KV_NONE;
        x[v] = hn_kb_loadm(b, a->vb, hn_kb_add(b, line, col), a->lanes, on);
    }
    for (int m = 0; m < a->mr; m++) {
        const hn_kv w = hn_kb_load_splat(b, a->sb, score_at(a, m, key), a->lanes);
        for (int v = 0; v < a->nv; v++)
            hn_kb_set(b, a->acc[m][v], hn_kb_fma(b, w, x[v], hn_kb_get(b, a->acc[m][v])));
    }
    hn_kb_end(b);
    for (int m = 0; m < a->mr; m++)
        for (int v = 0; v < a->nv; v++)
            store_part(a, m, v, first, factor[m]);
    hn_kb_end(b);
}

/* Keys that row m sees, [0, limit). */
static hn_kv limit_of(att *a, int m)
{
    hn_kb *b = hn_lower_kb(a->l);
    const int64_t how = hn_attr_i(a->r->root, "causal");
    if (how == NO_CAUSAL) return a->t;
    hn_kv n = hn_kb_addi(b, a->row[m], 1);
    if (how == LOWER_RIGHT) n = hn_kb_add(b, n, hn_kb_sub(b, a->t, hn_lower_dim(a->l, a->q->type.dim[2])));
    return hn_kb_max(b, hn_kb_min(b, n, a->t), hn_kb_i(b, 0));
}

/* This trip's batch, head and rows; rows past the last repeat it. */
static void place(att *a, hn_kv trip, hn_kv tiles)
{
    hn_kb *b = hn_lower_kb(a->l);
    const hn_kv heads = hn_lower_dim(a->l, a->q->type.dim[1]),
                key_heads = hn_lower_dim(a->l, a->k->type.dim[1]);
    const hn_kv last = hn_kb_addi(b, hn_lower_dim(a->l, a->q->type.dim[2]), -1),
                line = hn_kb_idiv(b, trip, tiles);
    a->batch = hn_kb_idiv(b, line, heads);
    a->head = hn_kb_imod(b, line, heads);
    const hn_kv group = hn_kb_idiv(b, heads, hn_kb_max(b, key_heads, hn_kb_i(b, 1)));
    a->key_head = hn_kb_idiv(b, a->head, hn_kb_max(b, group, hn_kb_i(b, 1)));
    a->kv = hn_kb_add(b, hn_kb_mul(b, a->batch, key_heads), a->key_head);
    const hn_kv first = hn_kb_muli(b, hn_kb_imod(b, trip, tiles), a->mr);
    for (int m = 0; m < a->mr; m++) {
        a->row[m] = m ? hn_kb_min(b, hn_kb_addi(b, first, m), last) : first;
        a->limit[m] = limit_of(a, m);
    }
}

static hn_kext scratch_extent(att *a, hn_kv panels)
{
    hn_kb *b = hn_lower_kb(a->l);
    int64_t n;
    const int64_t per = a->wide * a->mr;
    if (hn_kb_is_const(b, panels, &n)) return hn_kext_const(n * per);
    hn_kext e = hn_kb_ext(b, panels, 1);
    e.mul *= per;
    return e;
}

static hone_status emit_rows(att *a, const hn_target *t, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "attention_float_rows__cpu");
    a->l = hn_lower_new(ret->arena, b, a->r, t);
    if (!b || !a->l) return HN_NOMEM(dg);
    hn_symtab *syms = a->r->g->syms;
    const hn_dim tiles_dim = hn_dim_ceildiv(syms, a->q->type.dim[2], a->mr);
    const hn_dim lines = product(a, a->q->type.dim[0], a->q->type.dim[1]);
    const hn_kv tiles = hn_lower_dim(a->l, tiles_dim),
                trips = hn_lower_dim(a->l, product(a, lines, tiles_dim));
    const hn_kv panels = hn_lower_dim(a->l, a->panels);
    a->t = hn_lower_dim(a->l, a->k->type.dim[2]);
    a->stride = hn_kb_muli(b, panels, a->wide);
    a->qb = hn_lower_in(a->l, hn_region_operand(a->r, a->q));
    a->vb = hn_lower_in(a->l, hn_region_operand(a->r, a->v));
    a->kb = hn_lower_temp(a->l, 0, HN_F32, false);
    a->sb = hn_kb_scratch(b, "scores", HN_F32, scratch_extent(a, panels));
    place(a, hn_kb_parallel(b, hn_kb_ext(b, trips, 1)), tiles);
    scores(a);
    hn_kv factor[MAX_MR];
    const hn_kv n = hn_kb_muli(b, panels_of(a), a->wide);
    weights(a, n, factor);
    values(a, a->limit[a->mr - 1], factor);
    hn_kb_end(b);
    hn_work w;
    hn_region_work(a->r, &w);
    return hn_lower_finish(a->l, ret, w.flops, w.bytes, dg);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    att a;
    shape_of(r, t, p, &a);
    const hn_dim heads = product(&a, a.k->type.dim[0], a.k->type.dim[1]);
    const hn_dim bytes = product(&a, product(&a, heads, a.panels), a.d * a.wide * 4);
    if (!hn_vec_push(ret->arena, &ret->temp_bytes, bytes)) return HN_NOMEM(dg);
    HN_TRY(emit_panels(&a, t, ret, dg));
    return emit_rows(&a, t, ret, dg);
}

const hn_tactic_def hn_tactic_attention_float_rows__cpu = {
    .name = "attention_float_rows__cpu",
    .rev = 3,
    .arch = HN_ARCH_X86_64,
    .fits = fits,
    .space = space,
    .legal = legal,
    .cost = cost,
    .emit = emit,
    .source = HN_KNOB_tactic_attention,
    .pin = { [P_MR] = HN_KNOB_attention_mr, [P_NV] = HN_KNOB_attention_nv },
};
