/* Copies whose storage is a batch of matrices turned over: an image from planes to channels-last or to blocks
 * and back, attention heads, any transpose that comes to [b, p, q] -> [b, q, p] once neighbouring axes are
 * taken together.
 *
 *     for each tile (batch, vector of p, run of q)                parallel
 *         for each square of the run: load rows of x, turn them over in registers, store rows of y
 *
 * Both sides move whole vectors. Rows of y are claimed two squares ahead: a third less time on cold images.
 */
#include "tactic/cpu/loops.h"
#include "tactic/cpu/square.h"

#include <math.h>

/* One axis of storage: a logical axis, or the outer or inner part of one that either side blocks. */
typedef struct part {
    int id;
    hn_dim extent;
} part;

typedef struct shape {
    hn_dim batch, p, q; /* x is [batch, p, q] */
    int x_operand;
} shape;

enum { MAX_PARTS = HN_MAX_RANK + 1 };

/* Storage axes of v in order. axis_of: the axis of x that each axis of v is. block: of that axis, on either
 * side. */
static int parts_of(const hn_value *v, const int *axis_of, const int *block, part *ret)
{
    int n = 0;
    for (int i = 0; i < (v->layout.n ? v->layout.n : v->type.rank); i++) {
        const int own = v->layout.n ? v->layout.at[i].axis : i, axis = axis_of[own], b = block[axis];
        const hn_dim d = v->type.dim[own];
        if (!b) {
            if (d != 1) ret[n++] = (part){ 2 * axis, d };
            continue;
        }
        if (!hn_dim_is_const(d) || d % b) return -1;
        /* Where this side blocks the axis its two entries stand apart; else they follow each other. */
        const bool blocked = hn_layout_block_of(&v->layout, own) != 0, inner = blocked && v->layout.at[i].block;
        if (!inner && d != b) ret[n++] = (part){ 2 * axis, d / b };
        if (inner || !blocked) ret[n++] = (part){ 2 * axis + 1, b };
    }
    return n;
}

static int place_of(const part *y, int n, int id)
{
    for (int i = 0; i < n; i++)
        if (y[i].id == id) return i;
    return -1;
}

static void drop(part *v, int *n, int at)
{
    for (int i = at; i + 1 < *n; i++)
        v[i] = v[i + 1];
    --*n;
}

/* Axes that follow each other on both sides become one. */
static bool merge(hn_symtab *t, part *x, part *y, int *n)
{
    int left = *n;
    for (int i = 0; i + 1 < left;) {
        const int at = place_of(y, left, x[i].id);
        if (at < 0) return false;
        if (at + 1 >= left || y[at + 1].id != x[i + 1].id) {
            i++;
            continue;
        }
        x[i].extent = y[at].extent = hn_dim_mul(t, x[i].extent, x[i + 1].extent);
        int n_x = left, n_y = left;
        drop(x, &n_x, i + 1);
        drop(y, &n_y, at + 1);
        left--;
    }
    *n = left;
    return true;
}

static hn_fit shape_of(const hn_region *r, shape *s)
{
    const hn_node *n = r->root;
    if (n->op != HN_OP_reorder && n->op != HN_OP_transpose) return HN_FIT_OP;
    const hn_value *x = hn_in(n, 0), *y = n->out[0];
    s->x_operand = hn_region_operand(r, x);
    if (s->x_operand < 0 || r->g->n_node != 1) return HN_FIT_EPILOGUE;
    if (hn_dtype_bits(x->type.dtype) != 32) return HN_FIT_DTYPE;
    int rank = x->type.rank, same[HN_MAX_RANK], from[HN_MAX_RANK], block[HN_MAX_RANK] = { 0 };
    const int64_t *perm = n->op == HN_OP_transpose ? hn_attr_is(n, "perm", &rank) : NULL;
    for (int i = 0; i < rank; i++) {
        same[i] = i;
        from[i] = perm ? (int)perm[i] : i;
    }
    for (int i = 0; i < rank; i++) {
        const int bx = hn_layout_block_of(&x->layout, from[i]), by = hn_layout_block_of(&y->layout, i);
        if (bx && by && bx != by) return HN_FIT_LAYOUT;
        block[from[i]] = HN_MAX(bx, by);
    }
    part px[2 * MAX_PARTS], py[2 * MAX_PARTS];
    int nx = parts_of(x, same, block, px);
    const int ny = parts_of(y, from, block, py);
    if (nx < 0 || nx != ny) return HN_FIT_LAYOUT;
    if (!merge(r->g->syms, px, py, &nx)) return HN_FIT_LAYOUT;
    if (nx < 2 || nx > 3 || py[nx - 1].id != px[nx - 2].id || (nx == 3 && py[0].id != px[0].id))
        return HN_FIT_SHAPE;
    s->batch = nx == 3 ? px[0].extent : 1;
    s->p = px[nx - 2].extent;
    s->q = px[nx - 1].extent;
    return HN_FIT_YES;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    shape s;
    (void)t;
    const hn_fit fit = shape_of(r, &s);
    if (fit != HN_FIT_YES) return fit;
    return hn_region_opt(r, s.p) < 3 || hn_region_opt(r, s.q) < 3 ? HN_FIT_TOO_SMALL : HN_FIT_YES;
}

static int lanes_of(const hn_target *t)
{
    return HN_MIN(t->vec_bytes / 4, HN_SQUARE_MAX);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    shape s;
    (void)p;
    shape_of(r, &s);
    const double lanes = lanes_of(t), rows = ceil((double)hn_region_opt(r, s.p) / lanes),
                 columns = ceil((double)hn_region_opt(r, s.q) / lanes);
    const double square = lanes * (log2(lanes) + 2) * 0.35; /* ns: shuffles, a load and a store a row */
    return (double)hn_region_opt(r, s.batch) * rows * columns * square + 100;
}

/* ---- emission ---- */
typedef struct turn {
    hn_kb *b;
    int x, y, lanes;
    hn_kv p, q, base; /* extents; first element of the matrix */
} turn;

/* The square at (p0, q0); partly: it may reach past either extent. */
static void square(const turn *g, hn_kv p0, hn_kv q0, bool partly)
{
    hn_kb *b = g->b;
    hn_kv v[HN_SQUARE_MAX];
    const hn_kv across = partly ? hn_kb_tail_mask(b, q0, g->q, g->lanes) : HN_KV_NONE;
    for (int i = 0; i < g->lanes; i++) {
        const hn_kv row = hn_kb_addi(b, p0, i);
        const hn_kv at = hn_kb_add(b, g->base, hn_kb_add(b, hn_kb_mul(b, row, g->q), q0));
        const hn_kv mask =
            partly ? hn_kb_and(b, across, hn_kb_splat(b, hn_kb_lt(b, row, g->p), g->lanes)) : HN_KV_NONE;
        v[i] = hn_kb_loadm(b, g->x, at, g->lanes, mask);
    }
    hn_square_transpose(b, v, g->lanes);
    const hn_kv down = partly ? hn_kb_tail_mask(b, p0, g->p, g->lanes) : HN_KV_NONE;
    for (int i = 0; i < g->lanes; i++) {
        const hn_kv row = hn_kb_addi(b, q0, i);
        const hn_kv at = hn_kb_add(b, g->base, hn_kb_add(b, hn_kb_mul(b, row, g->p), p0));
        const hn_kv mask =
            partly ? hn_kb_and(b, down, hn_kb_splat(b, hn_kb_lt(b, row, g->q), g->lanes)) : HN_KV_NONE;
        hn_kb_storem(b, g->y, at, v[i], mask);
    }
}

enum { AHEAD = 2 }; /* squares */

/* Rows of y lie apart, so no stream announces them: claim those of a later square. */
static void fetch_rows(const turn *g, hn_kv p0, hn_kv q0)
{
    hn_kb *b = g->b;
    for (int i = 0; i < g->lanes; i++) {
        const hn_kv row = hn_kb_addi(b, q0, i);
        hn_kb_prefetch(b, g->y, hn_kb_add(b, g->base, hn_kb_add(b, hn_kb_mul(b, row, g->p), p0)), 3, true);
    }
}

/* Squares of one vector of p over columns [lo, hi): whole ones, then what is left. */
static void run(const turn *g, hn_kv p0, hn_kv lo, hn_kv hi)
{
    hn_kb *b = g->b;
    hn_kv left = lo;
    const hn_kv room = hn_kb_sub(b, hi, lo),
                whole = hn_kb_sub(b, hi, hn_kb_imod(b, room, hn_kb_i(b, g->lanes)));
    const hn_kvar from = hn_kb_var(b, lo);
    hn_kb_if(b, hn_kb_le(b, hn_kb_addi(b, p0, g->lanes), g->p));
    const hn_kv q0 = hn_kb_for(b, lo, whole, g->lanes);
    fetch_rows(g, p0, hn_kb_addi(b, q0, AHEAD * g->lanes));
    square(g, p0, q0, false);
    hn_kb_end(b);
    hn_kb_set(b, from, whole);
    hn_kb_end(b);
    left = hn_kb_get(b, from);
    const hn_kv rest = hn_kb_for(b, left, hi, g->lanes);
    square(g, p0, rest, true);
    hn_kb_end(b);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret,
                        hn_diag *dg)
{
    enum { RUN = 512 }; /* columns a tile: a few dozen squares, so that small images still feed all threads */
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "transpose_b32_square__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    shape s;
    shape_of(r, &s);
    turn g = { .b = b, .x = hn_lower_in(l, s.x_operand), .y = hn_lower_out(l, 0), .lanes = lanes_of(t) };
    hn_symtab *syms = r->g->syms;
    const hn_dim down = hn_dim_ceildiv(syms, s.p, g.lanes), across = hn_dim_ceildiv(syms, s.q, RUN);
    const hn_kv total = hn_lower_dim(l, hn_dim_mul(syms, hn_dim_mul(syms, s.batch, across), down));
    const hn_kv n_down = hn_lower_dim(l, down), n_across = hn_lower_dim(l, across);
    g.p = hn_lower_dim(l, s.p);
    g.q = hn_lower_dim(l, s.q);
    const hn_kv at = hn_kb_parallel(b, hn_kb_ext(b, total, 1));
    const hn_kv p0 = hn_kb_muli(b, hn_kb_imod(b, at, n_down), g.lanes), outer = hn_kb_idiv(b, at, n_down);
    const hn_kv q0 = hn_kb_muli(b, hn_kb_imod(b, outer, n_across), RUN);
    g.base = hn_kb_mul(b, hn_kb_idiv(b, outer, n_across), hn_kb_mul(b, g.p, g.q));
    run(&g, p0, q0, hn_kb_min(b, hn_kb_addi(b, q0, RUN), g.q));
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_transpose_b32_square__cpu = {
    .name = "transpose_b32_square__cpu",
    .rev = 2,
    .arch = HN_ARCH_X86_64,
    .needs = HN_FEAT_AVX2,
    .fits = fits,
    .cost = cost,
    .emit = emit,
    .source = HN_KNOB_tactic_transpose,
};
