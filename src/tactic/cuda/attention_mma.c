/* Attention on a GPU's matrix units, scores never in memory: a block takes rows of queries of one head, a warp 16 of them or two times
 * 16, which share what is read of keys and values, and walks along the keys a tile at a time; the next tile of keys and values is copied
 * while one is used.
 *
 *     s = q k' * scale, masked;   m' = max(m, rows of s);   p = e^(s - m');   o = o * e^(m - m') + p v;   l = l * e^(m - m') + rows of p
 *
 * What the product of queries and keys leaves in a thread's registers is what the product with the values wants there (kir.h).
 */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/mma.h"

#include <math.h>

enum { P_ROWS, P_KEYS, P_GROUPS };
enum { Q, K, V, MASK };
enum { HIDES = -1000000 /* no number hides better */ };
enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT };
enum { ROWS_ZERO, ROWS_NAN, ROWS_GUARD };
enum { CHUNK = HN_MMA_CHUNK, ELEMS = 8 /* of a chunk */, TILE = 16, MOST_WIDTH = 128, MOST_KEYS = 128, MOST_GROUPS = 2, STAGES = 2 };

/* The last axis lies densest, the others in any order. */
static bool has_whole_rows(const hn_value *v)
{
    return hn_loops_unblocked(v) && hn_loops_dense_axis(v) == 3;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_attention) return HN_FIT_OP;
    const hn_dtype d = n->out[0]->type.dtype;
    if ((d != HN_F16 && d != HN_BF16) || !hn_lower_can(r, n)) return HN_FIT_DTYPE;
    for (int i = Q; i <= V; i++) {
        const hn_value *v = hn_in(n, i);
        if (v->type.dtype != d) return HN_FIT_DTYPE;
        if (hn_region_operand(r, v) < 0) return HN_FIT_TOO_SMALL;
        if (!has_whole_rows(v)) return HN_FIT_LAYOUT;
        const hn_dim width = v->type.dim[3];
        if (!hn_dim_is_const(width)) return HN_FIT_SYMBOLIC;
        if (width % TILE || width > MOST_WIDTH || width < TILE) return HN_FIT_SHAPE;
    }
    return HN_FIT_YES;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add_list(ret, "rows", 4, (const int64_t[]){ 64, 32, 128, 16 });
    hn_space_add_list(ret, "keys", 3, (const int64_t[]){ 64, 32, 128 });
    hn_space_add_list(ret, "groups", 2, (const int64_t[]){ 1, 2 }); /* of 16 rows, to a warp */
}

/* Elements between lines in shared memory: an odd number of chunks apart, so that eight lines meet all banks. */
static int64_t line_of(int64_t width)
{
    return width + ELEMS;
}

static int64_t shared_bytes(int64_t d, int64_t dv, int64_t keys)
{
    return STAGES * keys * (line_of(d) + line_of(dv)) * 2;
}

static int64_t threads_of(const int64_t *p)
{
    return p[P_ROWS] / (TILE * p[P_GROUPS]) * 32;
}

static bool mask_tells_rows(const hn_value *m)
{
    const int r = m->type.rank;
    return r >= 2 && m->type.dim[r - 2] != 1;
}

/* Queries, scores and results of a warp must fit its registers, tiles the shared memory, chunks of a tile the threads. */
static bool legal(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { OTHER_REGISTERS = 40, OF_A_GROUP = 20, OF_A_MASK = 24, MOST_CHUNKS = 16 /* each has an address in registers */ };
    const int64_t d = hn_in(r->root, Q)->type.dim[3], dv = hn_in(r->root, V)->type.dim[3], threads = threads_of(p);
    const hn_value *m = hn_in(r->root, MASK);
    const int64_t mask = !m ? 0 : mask_tells_rows(m) ? OF_A_MASK : p[P_KEYS] / 4;
    if (threads < 32 || mask + p[P_GROUPS] * (d / 4 + dv / 2 + p[P_KEYS] / 2 + OF_A_GROUP) + OTHER_REGISTERS > t->n_vreg) return false;
    if (p[P_KEYS] * HN_MIN(d, dv) / ELEMS < threads || p[P_KEYS] * HN_MAX(d, dv) / ELEMS > threads * MOST_CHUNKS) return false;
    return shared_bytes(d, dv, p[P_KEYS]) <= t->shared_bytes - 1024;
}

/* Nanoseconds that a tile takes of a multiprocessor: products, instructions, and what goes through shared memory. Little of one hides
 * behind another, and the sum is within a tenth of what an H200 takes; a warp alone in its block waits for its own copies besides. */
static double tile_ns(const hn_target *t, const int64_t *p, double d, double dv)
{
    enum { PER_SCORE = 95, PER_RESULT = 11 /* tenths of an instruction of a thread */, HALF_BYTES = 2 };
    const bool hopper = hn_target_has(t, HN_FEAT_SM_90A);
    const double flops = hopper ? 4650 : 2700, lanes = hopper ? 225 : 180; /* a nanosecond; as many bytes of shared memory as lanes */
    const double scores = (double)(p[P_ROWS] * p[P_KEYS]), warps = (double)threads_of(p) / 32;
    const double code = (scores * PER_SCORE + (double)p[P_ROWS] * dv * PER_RESULT) / 10, alone = warps == 1 ? 1.25 : 1;
    return alone * (2 * scores * (d + dv) / flops + code / lanes + (warps + 1) * (double)p[P_KEYS] * (d + dv) * HALF_BYTES / lanes);
}

/* A tile takes its time or its share of the latency; blocks of a multiprocessor share the first. Blocks of a causal head are unequal: the
 * last ones are short. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { NS_FRAME = 1500, NS_TILE = 450, REGISTERS = 65536 };
    const hn_value *q = hn_in(r->root, Q), *k = hn_in(r->root, K), *y = r->root->out[0];
    const double rows = (double)hn_region_opt(r, q->type.dim[2]), keys = (double)hn_region_opt(r, k->type.dim[2]);
    const double d = (double)q->type.dim[3], dv = (double)y->type.dim[3];
    const double heads = (double)hn_region_opt(r, q->type.dim[0]) * (double)hn_region_opt(r, q->type.dim[1]);
    const bool causal = hn_attr_i(r->root, "causal") != NO_CAUSAL;
    const double blocks = heads * ceil(rows / (double)p[P_ROWS]);
    const double registers = (double)threads_of(p) * ((double)p[P_GROUPS] * (d / 4 + dv / 2 + (double)p[P_KEYS] / 2) + 80);
    const double room = fmax(1, fmin(floor(REGISTERS / registers),
                                     floor((double)t->shared_bytes / (double)shared_bytes(q->type.dim[3], y->type.dim[3], p[P_KEYS]))));
    const double side = fmin(room, ceil(blocks / t->n_core)), waves = fmax(1, blocks / (t->n_core * side));
    const double seen = causal ? 0.5 + 0.5 * fmin(1, (double)p[P_ROWS] / rows) : 1, tiles = fmax(1, ceil(keys / (double)p[P_KEYS]) * seen);
    const double ns = (causal ? waves : ceil(waves)) * (NS_FRAME + tiles * fmax(NS_TILE, side * tile_ns(t, p, d, dv)));
    return ns * t->n_core;
}

/* 16 rows of queries, two of them a thread's. */
typedef struct group {
    hn_kv row[2], limit[2], live[2]; /* limit: the keys each sees */
    hn_kv query[MOST_WIDTH / TILE];
    hn_kvar out[MOST_WIDTH / 8], top[2], sum[2]; /* top: the greatest score so far, times log2 e */
    hn_kv score[MOST_KEYS / 8]; /* then weights */
} group;

typedef struct att {
    const hn_region *r;
    const hn_value *q, *k, *v, *mask, *y;
    hn_lower *l;
    hn_kb *b;
    int rows, keys, groups, threads, ks, vs; /* ks, vs: shared arrays */
    int64_t d, dv;
    hn_dtype type;
    hn_kv t;                        /* keys there are */
    hn_kv batch, head, key_head, tid, lane;
    hn_kv warp_limit;               /* keys that the warp's last row sees */
    hn_kv key_mask[MOST_KEYS / 8];  /* of this thread's pairs of keys, where it is every row's */
    group of[MOST_GROUPS];
    double factor; /* of scores on their way into the exponential */
} att;

static hn_kv row_place(att *a, const hn_value *v, hn_kv head, hn_kv row)
{
    const hn_kv at[4] = { a->batch, head, row, hn_kb_i(a->b, 0) };
    return hn_loops_place(a->l, v, at);
}

/* ---- tiles of keys and values into shared memory ---- */
static bool is_causal(const att *a)
{
    return hn_attr_i(a->r->root, "causal") != NO_CAUSAL;
}

static bool keys_fill_tiles(const att *a)
{
    const hn_dim t = a->k->type.dim[2];
    return hn_dim_is_const(t) && t % a->keys == 0;
}

/* Where a thread's chunk lies in a tile, in shared memory, in memory; rows past the last one arrive as zeros. */
typedef struct chunk {
    hn_kv line, to, from;
} chunk;

static chunk chunk_at(att *a, hn_kv e, int64_t width, hn_kv stride, hn_kv stage, hn_kv start)
{
    hn_kb *b = a->b;
    const hn_kv per = hn_kb_i(b, width / ELEMS), line = hn_kb_idiv(b, e, per), col = hn_kb_muli(b, hn_kb_imod(b, e, per), ELEMS);
    return (chunk){ .line = line, .to = hn_kb_add(b, stage, hn_kb_add(b, hn_kb_muli(b, line, line_of(width)), col)),
                    .from = hn_kb_add(b, start, hn_kb_add(b, hn_kb_mul(b, line, stride), col)) };
}

/* So many lines on, in a form that leaves what is constant to the copy's own offset. */
static chunk chunk_below(att *a, chunk c, int64_t lines, int64_t width, hn_kv stride)
{
    hn_kb *b = a->b;
    return (chunk){ .line = hn_kb_addi(b, c.line, lines), .to = hn_kb_addi(b, c.to, lines * line_of(width)),
                    .from = hn_kb_add(b, c.from, hn_kb_muli(b, stride, lines)) };
}

static void copy_rows(att *a, const hn_value *v, int shared, int64_t width, hn_kv first, hn_kv stage)
{
    hn_kb *b = a->b;
    const int64_t chunks = width / ELEMS, all = a->keys * chunks;
    const int from = hn_lower_in(a->l, hn_region_operand(a->r, v));
    const hn_kv stride = hn_loops_stride(a->l, v, 2);
    const hn_kv start = hn_kb_add(b, row_place(a, v, a->key_head, hn_kb_i(b, 0)), hn_kb_mul(b, first, stride));
    const chunk top = chunk_at(a, a->tid, width, stride, stage, start);
    for (int64_t i = 0; i < all; i += a->threads) {
        const bool part = i + a->threads > all, below = a->threads % chunks == 0;
        const chunk c = below ? chunk_below(a, top, i / chunks, width, stride) : chunk_at(a, hn_kb_addi(b, a->tid, i), width, stride, stage, start);
        const hn_kv ok = keys_fill_tiles(a) ? HN_KV_NONE : hn_kb_lt(b, hn_kb_add(b, first, c.line), a->t);
        if (part) hn_kb_if(b, hn_kb_lt(b, hn_kb_addi(b, a->tid, i), hn_kb_i(b, all)));
        hn_kb_copy(b, shared, c.to, from, c.from, CHUNK, ok);
        if (part) hn_kb_end(b);
    }
}

static void copy_tile(att *a, hn_kv tile, hn_kv tiles)
{
    hn_kb *b = a->b;
    const hn_kv first = hn_kb_muli(b, tile, a->keys), turn = hn_kb_imod(b, tile, hn_kb_i(b, STAGES));
    hn_kb_if(b, hn_kb_lt(b, tile, tiles));
    copy_rows(a, a->k, a->ks, a->d, first, hn_kb_muli(b, turn, a->keys * line_of(a->d)));
    copy_rows(a, a->v, a->vs, a->dv, first, hn_kb_muli(b, turn, a->keys * line_of(a->dv)));
    hn_kb_end(b);
    hn_kb_commit(b);
}

/* ---- queries in registers ---- */
static void load_queries(att *a, group *g)
{
    hn_kb *b = a->b;
    const int from = hn_lower_in(a->l, hn_region_operand(a->r, a->q));
    const hn_kv pair = hn_kb_muli(b, hn_kb_imod(b, a->lane, hn_kb_i(b, 4)), 2);
    hn_kv at[2];
    for (int i = 0; i < 2; i++) at[i] = hn_kb_add(b, row_place(a, a->q, a->head, g->row[i]), pair);
    for (int s = 0; s < a->d / TILE; s++) {
        hn_kv words = hn_kb_int(b, HN_U32, 4, 0);
        for (int w = 0; w < 4; w++)
            words = hn_kb_insert(b, words, hn_kb_load_as_aligned(b, from, hn_kb_addi(b, at[w % 2], s * TILE + w / 2 * 8), HN_U32, 1), w);
        g->query[s] = words;
    }
}

/* ---- scores ---- */
static hn_kv quarter(att *a, bool high)
{
    hn_kb *b = a->b;
    const hn_kv q = hn_kb_idiv(b, a->lane, hn_kb_i(b, 8)), two = hn_kb_i(b, 2);
    return high ? hn_kb_idiv(b, q, two) : hn_kb_imod(b, q, two);
}

static void add_product(att *a, hn_kv x, hn_kv y, hn_kv *sum)
{
    *sum = hn_kb_mma(a->b, a->type, x, y, *sum);
}

static void multiply_keys(att *a, hn_kv stage)
{
    hn_kb *b = a->b;
    const hn_kv line = hn_kb_add(b, hn_kb_muli(b, quarter(a, true), 8), hn_kb_imod(b, a->lane, hn_kb_i(b, 8)));
    const hn_kv at = hn_kb_add(b, hn_kb_add(b, stage, hn_kb_muli(b, line, line_of(a->d))), hn_kb_muli(b, quarter(a, false), ELEMS));
    for (int j = 0; j < a->keys / 8; j += 2) {
        for (int g = 0; g < a->groups; g++)
            for (int h = 0; h < 2; h++) a->of[g].score[j + h] = hn_kb_float(b, HN_F32, 4, 0);
        for (int s = 0; s < a->d / TILE; s++) {
            const hn_kv two = hn_kb_ldmatrix(b, a->ks, hn_kb_addi(b, at, 8 * j * line_of(a->d) + s * TILE), 4, false);
            for (int g = 0; g < a->groups; g++)
                for (int h = 0; h < 2; h++) add_product(a, a->of[g].query[s], hn_kb_slice(b, two, 2 * h, 2), &a->of[g].score[j + h]);
        }
    }
}

/* What the mask has for that many keys from `key` on, of which more than one lie together. */
static hn_kv mask_at(att *a, hn_kv row, hn_kv key, int lanes, hn_kv on)
{
    hn_kb *b = a->b;
    const hn_tdesc *t = &a->mask->type;
    const hn_kv full[4] = { a->batch, a->head, row, key };
    hn_kv at[4];
    hn_kidx idx;
    for (int k = 0; k < t->rank; k++) at[k] = t->dim[k] == 1 ? hn_kb_i(b, 0) : full[4 - t->rank + k];
    hn_kidx_init(&idx, t->rank, at);
    if (lanes > 1) hn_kidx_vector(&idx, t->rank - 1, lanes);
    idx.aligned = lanes > 1;
    hn_lower_forget(a->l);
    const hn_kv x = hn_lower_value(a->l, a->mask, &idx, on);
    hn_lower_forget(a->l);
    return x;
}

/* Every key is seen, whole tiles of them. */
static bool sees_all(const att *a)
{
    return !is_causal(a) && keys_fill_tiles(a);
}

static double scale_of(const att *a)
{
    const double given = hn_attr_f(a->r->root, "scale");
    return given != 0 ? given : 1 / sqrt((double)a->d);
}

static double hide_of(const att *a)
{
    const double given = hn_attr_f(a->r->root, "hide");
    return isinf(given) ? given : fmax(given, HIDES);
}

/* Nothing but the scale, and what hides, stands between the products and the exponential, and the greatest stays the greatest. */
static bool scales_late(const att *a)
{
    if (hn_attr_f(a->r->root, "softcap") != 0 || scale_of(a) <= 0) return false;
    return !a->mask || (a->mask->type.dtype == HN_BOOL && (isinf(hide_of(a)) || fabs(hide_of(a) / scale_of(a)) <= -HIDES * 16));
}

/* Neighbouring keys lie behind one another at an even place, and all of a tile are there. */
static bool mask_has_pairs(const att *a)
{
    const hn_value *m = a->mask;
    const int last = m->type.rank - 1;
    return last >= 0 && keys_fill_tiles(a) && m->type.dim[last] == a->k->type.dim[2] && hn_loops_unblocked(m) && hn_loops_dense_axis(m) == last;
}

/* What the mask has for a row at two keys; keys past the last one count as the mask's zero. */
static hn_kv mask_pair(att *a, hn_kv row, hn_kv key)
{
    hn_kb *b = a->b;
    if (mask_has_pairs(a)) return mask_at(a, row, key, 2, HN_KV_NONE);
    hn_kv two = HN_KV_NONE;
    for (int i = 0; i < 2; i++) {
        const hn_kv at = hn_kb_addi(b, key, i), x = mask_at(a, row, at, 1, keys_fill_tiles(a) ? HN_KV_NONE : hn_kb_lt(b, at, a->t));
        two = i ? hn_kb_insert(b, two, x, 1) : hn_kb_splat(b, x, 2);
    }
    return two;
}

/* A mask that is every row's is on its way while keys are multiplied. */
static void load_mask(att *a, hn_kv pair)
{
    if (!a->mask || mask_tells_rows(a->mask)) return;
    for (int j = 0; j < a->keys / 8; j++) a->key_mask[j] = mask_pair(a, a->of[0].row[0], hn_kb_addi(a->b, pair, 8 * j));
}

/* Two scores of row i of this thread's two, masked. What a finite number hides keeps to one that exponents bear: a row that hides every
 * key by such numbers weighs them alike. */
static hn_kv masked(att *a, const group *g, int i, int j, hn_kv pair, hn_kv x)
{
    hn_kb *b = a->b;
    if (!a->mask) return x;
    const double hide = hide_of(a);
    const hn_kv m = mask_tells_rows(a->mask) ? mask_pair(a, g->row[i], hn_kb_addi(b, pair, 8 * j)) : a->key_mask[j];
    if (a->mask->type.dtype == HN_BOOL) return hn_kb_select(b, m, x, hn_kb_like(b, x, scales_late(a) ? hide / scale_of(a) : hide));
    x = hn_attr_f(a->r->root, "softcap") != 0 ? hn_kb_add(b, x, m) : hn_kb_fma(b, x, hn_kb_like(b, x, scale_of(a)), m);
    if (a->type != HN_BF16) return x;
    return hn_kb_select(b, hn_kb_eq(b, x, hn_kb_like(b, x, -__builtin_inff())), x, hn_kb_max(b, x, hn_kb_like(b, x, HIDES)));
}

/* x where row i sees the key. */
static hn_kv seen(att *a, const group *g, int i, hn_kv pair, int j, hn_kv x)
{
    hn_kb *b = a->b;
    for (int k = 0; k < 2; k++) {
        const hn_kv on = hn_kb_lt(b, hn_kb_addi(b, pair, 8 * j + k), g->limit[i]);
        x = hn_kb_insert(b, x, hn_kb_select(b, on, hn_kb_extract(b, x, k), hn_kb_f(b, -__builtin_inff())), k);
    }
    return x;
}

/* all: every row sees every key of the tile, whose first pair of this thread's is `pair`. */
static void finish_scores(att *a, group *g, hn_kv pair, bool all)
{
    hn_kb *b = a->b;
    const double cap = hn_attr_f(a->r->root, "softcap");
    const bool scales = !scales_late(a) && (cap != 0 || !a->mask || a->mask->type.dtype == HN_BOOL); /* else with the mask */
    const hn_kv scale = hn_kb_float(b, HN_F32, 4, scale_of(a)), most = hn_kb_float(b, HN_F32, 4, cap);
    for (int j = 0; j < a->keys / 8; j++) {
        hn_kv x = scales ? hn_kb_mul(b, g->score[j], scale) : g->score[j], half[2];
        if (cap != 0) x = hn_kb_mul(b, hn_kb_math(b, HN_KMATH_TANH, hn_kb_div(b, x, most)), most);
        for (int i = 0; i < 2; i++) {
            half[i] = masked(a, g, i, j, pair, hn_kb_slice(b, x, 2 * i, 2));
            if (!all) half[i] = seen(a, g, i, pair, j, half[i]);
        }
        g->score[j] = hn_kb_concat(b, half[0], half[1]);
    }
}

/* ---- weights ---- */
/* Of row i: what `op` makes of all its scores in this tile, by halves: a chain would be waited for. Four threads hold a row. */
static hn_kv across_row(att *a, const group *g, int i, hn_kop op)
{
    hn_kb *b = a->b;
    hn_kv x[MOST_KEYS / 4];
    int n = a->keys / 4;
    for (int j = 0; j < n; j++) x[j] = hn_kb_extract(b, g->score[j / 2], 2 * i + j % 2);
    for (; n > 1; n /= 2)
        for (int j = 0; j < n / 2; j++) x[j] = hn_kb_bin(b, op, x[2 * j], x[2 * j + 1]);
    return x[0];
}

static hn_kv over_quad(hn_kb *b, hn_kop op, hn_kv x)
{
    for (int mask = 1; mask <= 2; mask *= 2) x = hn_kb_bin(b, op, x, hn_kb_shfl_xor(b, x, mask));
    return x;
}

/* One number of each row where lanes 0, 1 are the first row's and 2, 3 the second's. */
static hn_kv by_lanes(hn_kb *b, const hn_kv *x)
{
    hn_kv v = hn_kb_splat(b, x[0], 4);
    for (int i = 2; i < 4; i++) v = hn_kb_insert(b, v, x[1], i);
    return v;
}

/* Scores become weights: e^x as 2^(x log2 e - top), by the processor's own powers of two: closer than weights of 16 bits are while scores
 * stay under 2^12. What was summed so far shrinks to the new maximum. A row that has seen no key yet has none: taking 0 off leaves
 * weights of 0. */
static void weigh(att *a, group *g)
{
    hn_kb *b = a->b;
    hn_kv off[2], shrink[2];
    const double log2e = 1.4426950408889634 * a->factor;
    const hn_kv least = hn_kb_f(b, -__builtin_inff()), to_two = hn_kb_float(b, HN_F32, 4, log2e);
    for (int i = 0; i < 2; i++) {
        const hn_kv most = over_quad(b, HN_KOP_MAX, across_row(a, g, i, HN_KOP_MAX)), old = hn_kb_get(b, g->top[i]);
        const hn_kv now = hn_kb_max(b, old, hn_kb_mul(b, most, hn_kb_f(b, (float)log2e)));
        off[i] = hn_kb_neg(b, hn_kb_select(b, hn_kb_eq(b, now, least), hn_kb_f(b, 0), now));
        shrink[i] = hn_kb_exp2a(b, hn_kb_add(b, old, off[i]));
        hn_kb_set(b, g->top[i], now);
    }
    const hn_kv offs = by_lanes(b, off), shrinks = by_lanes(b, shrink);
    for (int j = 0; j < a->keys / 8; j++) g->score[j] = hn_kb_exp2a(b, hn_kb_fma(b, g->score[j], to_two, offs));
    for (int i = 0; i < 2; i++)
        hn_kb_set(b, g->sum[i], hn_kb_fma(b, hn_kb_get(b, g->sum[i]), shrink[i], across_row(a, g, i, HN_KOP_ADD)));
    for (int n = 0; n < a->dv / 8; n++) hn_kb_set(b, g->out[n], hn_kb_mul(b, hn_kb_get(b, g->out[n]), shrinks));
}

/* Words of the left operand from two tiles of weights beside each other. */
static hn_kv weight_words(att *a, const group *g, int s)
{
    hn_kb *b = a->b;
    const hn_kv both = hn_kb_concat(b, g->score[2 * s], g->score[2 * s + 1]);
    return hn_kb_bitcast(b, hn_kb_half(b, both, a->type), HN_U32, 4);
}

static void multiply_values(att *a, hn_kv stage)
{
    hn_kb *b = a->b;
    const hn_kv line = hn_kb_add(b, hn_kb_muli(b, quarter(a, false), 8), hn_kb_imod(b, a->lane, hn_kb_i(b, 8)));
    const hn_kv at = hn_kb_add(b, hn_kb_add(b, stage, hn_kb_muli(b, line, line_of(a->dv))), hn_kb_muli(b, quarter(a, true), ELEMS));
    for (int s = 0; s < a->keys / TILE; s++) {
        hn_kv w[MOST_GROUPS];
        for (int g = 0; g < a->groups; g++) w[g] = weight_words(a, &a->of[g], s);
        for (int n = 0; n < a->dv / 8; n += 2) {
            const hn_kv two = hn_kb_ldmatrix(b, a->vs, hn_kb_addi(b, at, s * TILE * line_of(a->dv) + 8 * n), 4, true);
            for (int g = 0; g < a->groups; g++)
                for (int h = 0; h < 2; h++) {
                    const hn_kvar to = a->of[g].out[n + h];
                    hn_kb_set(b, to, hn_kb_mma(b, a->type, w[g], hn_kb_slice(b, two, 2 * h, 2), hn_kb_get(b, to)));
                }
        }
    }
}

/* ---- results ---- */
static void store_row(att *a, const group *g, int i)
{
    hn_kb *b = a->b;
    const int64_t rows = hn_attr_i(a->r->root, "rows");
    const hn_kv sum = over_quad(b, HN_KOP_ADD, hn_kb_get(b, g->sum[i])), zero = hn_kb_f(b, 0), none = hn_kb_eq(b, sum, zero);
    const hn_kv factor = hn_kb_select(b, none, rows == ROWS_NAN ? hn_kb_f(b, __builtin_nanf("")) : zero, hn_kb_rcpa(b, sum));
    const hn_kv undefined = hn_kb_ne(b, sum, sum), col = hn_kb_muli(b, hn_kb_imod(b, a->lane, hn_kb_i(b, 4)), 2);
    hn_kb_if(b, g->live[i]);
    for (int n = 0; n < a->dv / 8; n++) {
        const hn_kv at[4] = { a->batch, a->head, g->row[i], hn_kb_addi(b, col, 8 * n) };
        hn_kv x = hn_kb_mul(b, hn_kb_slice(b, hn_kb_get(b, g->out[n]), 2 * i, 2), hn_kb_splat(b, factor, 2));
        if (rows == ROWS_GUARD) x = hn_kb_select(b, undefined, hn_kb_like(b, x, 0), x);
        hn_kidx idx;
        hn_kidx_init(&idx, 4, at);
        hn_kidx_vector(&idx, 3, 2);
        idx.aligned = true;
        hn_lower_seed(a->l, a->y, x);
        hn_lower_store(a->l, &idx, HN_KV_NONE);
    }
    hn_kb_end(b);
}

/* ---- the frame ---- */
static hn_kv limit_of(att *a, hn_kv row)
{
    hn_kb *b = a->b;
    const int64_t how = hn_attr_i(a->r->root, "causal");
    if (how == NO_CAUSAL) return a->t;
    hn_kv n = hn_kb_addi(b, row, 1);
    if (how == LOWER_RIGHT) n = hn_kb_add(b, n, hn_kb_sub(b, a->t, hn_lower_dim(a->l, a->q->type.dim[2])));
    return hn_kb_max(b, hn_kb_min(b, n, a->t), hn_kb_i(b, 0));
}

/* This thread's rows of a group that begins at row `first`. Rows past the last query repeat it and store nothing. */
static void place_group(att *a, group *g, hn_kv first, hn_kv last)
{
    hn_kb *b = a->b;
    for (int i = 0; i < 2; i++) {
        const hn_kv row = hn_kb_addi(b, hn_kb_add(b, first, hn_kb_idiv(b, a->lane, hn_kb_i(b, 4))), 8 * i);
        g->live[i] = hn_kb_le(b, row, last);
        g->row[i] = hn_kb_min(b, row, last);
        g->limit[i] = limit_of(a, g->row[i]);
    }
}

/* Opens the block; tiles of keys that its first row sees whole, and that its last row sees any of. The last rows of a causal head, which
 * have most to do, come first. */
static void open_block(att *a, hn_kv *ret_whole, hn_kv *ret_any)
{
    hn_kb *b = a->b;
    hn_symtab *syms = a->r->g->syms;
    const hn_dim tiles_dim = hn_dim_ceildiv(syms, a->q->type.dim[2], a->rows);
    const hn_dim lines = hn_dim_mul(syms, a->q->type.dim[0], a->q->type.dim[1]);
    const hn_kv tiles = hn_lower_dim(a->l, tiles_dim), blocks = hn_lower_dim(a->l, hn_dim_mul(syms, lines, tiles_dim));
    const hn_kv heads = hn_lower_dim(a->l, a->q->type.dim[1]), key_heads = hn_lower_dim(a->l, a->k->type.dim[1]), one = hn_kb_i(b, 1);
    const hn_kv last = hn_kb_addi(b, hn_lower_dim(a->l, a->q->type.dim[2]), -1);
    a->t = hn_lower_dim(a->l, a->k->type.dim[2]);
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, blocks, 1)), line = hn_kb_idiv(b, block, tiles);
    a->tid = hn_kb_threads(b, 0, a->threads);
    a->lane = hn_kb_imod(b, a->tid, hn_kb_i(b, 32));
    a->batch = hn_kb_idiv(b, line, heads);
    a->head = hn_kb_imod(b, line, heads);
    a->key_head = hn_kb_idiv(b, a->head, hn_kb_max(b, hn_kb_idiv(b, heads, hn_kb_max(b, key_heads, one)), one));
    hn_kv tile = hn_kb_imod(b, block, tiles);
    if (is_causal(a)) tile = hn_kb_sub(b, hn_kb_addi(b, tiles, -1), tile);
    const hn_kv first = hn_kb_muli(b, tile, a->rows);
    const int64_t of_warp = (int64_t)TILE * a->groups;
    const hn_kv warp_first = hn_kb_add(b, first, hn_kb_muli(b, hn_kb_idiv(b, a->tid, hn_kb_i(b, 32)), of_warp));
    a->warp_limit = limit_of(a, hn_kb_min(b, hn_kb_addi(b, warp_first, of_warp - 1), last));
    for (int g = 0; g < a->groups; g++) place_group(a, &a->of[g], hn_kb_addi(b, warp_first, (int64_t)TILE * g), last);
    const hn_kv most = limit_of(a, hn_kb_min(b, hn_kb_addi(b, first, a->rows - 1), last));
    *ret_whole = hn_kb_idiv(b, limit_of(a, first), hn_kb_i(b, a->keys));
    *ret_any = hn_kb_idiv(b, hn_kb_addi(b, most, a->keys - 1), hn_kb_i(b, a->keys));
}

/* The tile has been asked for; the next one is before this one is used. Of a tile that is cut, a warp may see nothing. */
static void take_tile(att *a, hn_kv tile, hn_kv tiles, bool all)
{
    hn_kb *b = a->b;
    const hn_kv turn = hn_kb_imod(b, tile, hn_kb_i(b, STAGES));
    const bool skips = !all && is_causal(a);
    hn_kb_await(b, 0);
    hn_kb_barrier(b);
    copy_tile(a, hn_kb_addi(b, tile, 1), tiles);
    const hn_kv first = hn_kb_muli(b, tile, a->keys), pair = hn_kb_add(b, first, hn_kb_muli(b, hn_kb_imod(b, a->lane, hn_kb_i(b, 4)), 2));
    if (skips) hn_kb_if(b, hn_kb_lt(b, first, a->warp_limit));
    load_mask(a, pair);
    multiply_keys(a, hn_kb_muli(b, turn, a->keys * line_of(a->d)));
    for (int g = 0; g < a->groups; g++) {
        finish_scores(a, &a->of[g], pair, all);
        weigh(a, &a->of[g]);
    }
    multiply_values(a, hn_kb_muli(b, turn, a->keys * line_of(a->dv)));
    if (skips) hn_kb_end(b);
}

/* The first tile has been asked for. Tiles that every row of the block sees whole need no look at which keys it sees. */
static void walk_keys(att *a, hn_kv whole, hn_kv tiles)
{
    hn_kb *b = a->b;
    const hn_kv seen = hn_kb_forn(b, whole);
    take_tile(a, seen, tiles, /* all= */ true);
    hn_kb_end(b);
    if (sees_all(a)) return;
    const hn_kv cut = hn_kb_for(b, whole, tiles, 1);
    take_tile(a, cut, tiles, /* all= */ false);
    hn_kb_end(b);
}

static void begin_group(att *a, group *g)
{
    hn_kb *b = a->b;
    load_queries(a, g);
    for (int i = 0; i < 2; i++) {
        g->top[i] = hn_kb_var(b, hn_kb_f(b, -__builtin_inff()));
        g->sum[i] = hn_kb_var(b, hn_kb_f(b, 0));
    }
    for (int n = 0; n < a->dv / 8; n++) g->out[n] = hn_kb_var(b, hn_kb_float(b, HN_F32, 4, 0));
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "attention_half_mma__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    att a = { .r = r, .q = hn_in(r->root, Q), .k = hn_in(r->root, K), .v = hn_in(r->root, V), .mask = hn_in(r->root, MASK),
              .y = r->root->out[0], .l = l, .b = b, .rows = (int)p[P_ROWS], .keys = (int)p[P_KEYS], .groups = (int)p[P_GROUPS],
              .threads = (int)threads_of(p) };
    a.type = a.y->type.dtype;
    a.d = a.q->type.dim[3];
    a.dv = a.v->type.dim[3];
    a.ks = hn_kb_shared(b, "keys", a.type, STAGES * a.keys * line_of(a.d));
    a.vs = hn_kb_shared(b, "values", a.type, STAGES * a.keys * line_of(a.dv));
    a.factor = scales_late(&a) ? scale_of(&a) : 1;
    hn_kv whole, tiles;
    open_block(&a, &whole, &tiles);
    copy_tile(&a, hn_kb_i(b, 0), tiles);
    for (int g = 0; g < a.groups; g++) begin_group(&a, &a.of[g]);
    walk_keys(&a, whole, tiles);
    for (int i = 0; i < 2 * a.groups; i++) store_row(&a, &a.of[i / 2], i % 2);
    hn_kb_end(b);
    hn_kb_end(b);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_attention_half_mma__cuda = {
    .name = "attention_half_mma__cuda", .rev = 5, .arch = HN_ARCH_SM,
    .fits = fits, .space = space, .legal = legal, .cost = cost, .emit = emit,
    .source = HN_KNOB_tactic_attention,
};
