/* Matrix products on a GPU's matrix units: the kernel. */
#include <string.h>

#include "tactic/cpu/loops.h"
#include "tactic/cuda/mma_int.h"

enum { CHUNK = HN_MMA_CHUNK, WORDS = CHUNK / 4, STEP = 2 * CHUNK /* bytes of k that one instruction takes */ };

int hn_mma_elems(hn_dtype type)
{
    return CHUNK * 8 / hn_dtype_bits(type);
}

int64_t hn_mma_row_elems(hn_dtype type, int64_t k)
{
    const int64_t elems = hn_mma_elems(type);
    return (k + elems - 1) / elems * elems;
}

hn_fit hn_mma_weights_fit(const hn_region *r, hn_dtype one, hn_dtype other)
{
    const hn_node *n = r->root;
    const hn_value *w = hn_in(n, 1);
    const hn_dtype t = hn_in(n, 0)->type.dtype;
    if ((t != one && t != other) || w->type.dtype != t || hn_lower_compute_type(n->out[0]->type.dtype) != HN_F32 || !hn_lower_can(r, n))
        return HN_FIT_DTYPE;
    for (int a = 0; a < w->type.rank; a++)
        if (!hn_dim_is_const(w->type.dim[a])) return HN_FIT_SYMBOLIC;
    const int operand = hn_region_operand(r, w);
    if (operand < 0 || !r->data[operand]) return HN_FIT_NOT_CONST;
    return hn_layout_is_plain(&w->layout) ? HN_FIT_YES : HN_FIT_LAYOUT;
}

uint32_t hn_mma_pixels(const hn_value *image)
{
    return hn_loops_all(image) & ~2u;
}

bool hn_mma_channels_lie(const hn_region *r, const hn_value *image, hn_dtype type, int64_t channels)
{
    return hn_region_operand(r, image) >= 0 && hn_loops_unblocked(image) && hn_loops_dense_axis(image) == 1 && channels % hn_mma_elems(type) == 0;
}

/* ---- rows stored when building ---- */
static void begin_row(void *user, int slot, hn_kv g, hn_kv row)
{
    hn_mma_rows *p = user;
    hn_kb *b = hn_lower_kb(p->l);
    p->live[slot] = hn_kb_lt(b, row, hn_kb_i(b, p->rows));
    if (p->grouped) row = hn_kb_add(b, hn_kb_muli(b, g, p->rows), row);
    p->base[slot] = hn_kb_muli(b, row, p->stride);
}

static hn_kv place_row(void *user, int slot, hn_kv k, hn_kv *ok)
{
    hn_mma_rows *p = user;
    hn_kb *b = hn_lower_kb(p->l);
    *ok = hn_kb_and(b, p->live[slot], hn_kb_lt(b, k, hn_kb_i(b, p->stride)));
    return hn_kb_add(b, p->base[slot], k);
}

hn_mma_operand hn_mma_stored_rows(hn_mma_rows *rows, int buf)
{
    return (hn_mma_operand){ .user = rows, .buf = buf, .constant = true, .begin = begin_row, .place = place_row };
}

hone_status hn_mma_add_rows(hn_emission *e, int operand, const char *recipe, hn_dtype type, int64_t rows, int64_t row, hn_diag *dg)
{
    const hn_blob blob = { .operand = operand, .recipe = hn_arena_printf(e->arena, "%s_k%lld", recipe, (long long)row),
                           .bytes = (size_t)hn_dtype_bytes(type, rows * row) };
    return blob.recipe && hn_vec_push(e->arena, &e->blobs, blob) ? HONE_OK : HN_NOMEM(dg);
}

void hn_mma_store_rows(const hn_mma_source *from, void *dst)
{
    const int64_t row = hn_mma_row_elems(from->type, from->depth);
    const uint8_t *src = from->data->at;
    const size_t size = (size_t)hn_dtype_bits(from->type) / 8;
    uint8_t *at = dst;
    for (int64_t n = 0; n < from->rows; n++) {
        for (int64_t k = 0; k < from->depth; k++, at += size) memcpy(at, src + (size_t)from->at(from->user, n, k) * size, size);
        for (uint8_t *x = at - (size_t)from->depth * size; from->flip && x < at; x++) *x ^= from->flip;
        memset(at, 0, (size_t)(row - from->depth) * size);
        at += (size_t)(row - from->depth) * size;
    }
}

hn_kv hn_mma_read_chunk(hn_lower *l, const hn_value *v, const hn_kv *at, int k_axis, int elems, hn_kv ok)
{
    hn_kb *b = hn_lower_kb(l);
    hn_kidx idx;
    hn_kidx_init(&idx, v->type.rank, at);
    hn_kidx_vector(&idx, k_axis, elems);
    const hn_kv inside = hn_kb_tail_mask(b, at[k_axis], hn_lower_dim(l, v->type.dim[k_axis]), elems);
    const hn_kv on = hn_kb_and(b, inside, hn_kb_splat(b, ok, elems));
    const hn_kv x = hn_kb_splat(b, hn_lower_value(l, v, &idx, on), elems);
    return hn_kb_select(b, on, x, hn_kb_like(b, x, 0));
}

/* ---- how an operand lies in a stage ---- */
/* Lines of `line_bytes`; the chunk c of line r lies at c ^ (a part of r), so that eight lines' chunks meet all banks. */
static hn_kv chunk_word(hn_kb *b, const side *s, hn_kv line, hn_kv chunk)
{
    const int per = s->line_bytes / CHUNK;
    const hn_kv key = per >= 8 ? hn_kb_imod(b, line, hn_kb_i(b, 8))
                               : hn_kb_imod(b, hn_kb_idiv(b, line, hn_kb_i(b, 8 / per)), hn_kb_i(b, per));
    const hn_kv at = hn_kb_bin(b, HN_KOP_XOR, chunk, key);
    return hn_kb_add(b, hn_kb_muli(b, line, s->line_bytes / 4), hn_kb_muli(b, at, WORDS));
}

static void side_of(const hn_mma *d, const tile *w, bool is_a, side *ret)
{
    const int rows = is_a ? w->bm : w->bn, each = hn_dtype_bits(d->type) / 8;
    *ret = (side){ .op = is_a ? &d->a : &d->b, .rows = rows, .first_word = is_a ? 0 : w->bm * w->bk / 4 };
    ret->turned = ret->op->buf >= 0 && ret->op->turned;
    ret->line_bytes = ret->turned ? rows * each : w->bk;
    ret->slots = rows * w->bk / CHUNK / w->threads;
}

/* Line and chunk of this thread's slot i. */
static void slot_at(const kernel *k, const side *s, int i, hn_kv *line, hn_kv *chunk)
{
    hn_kb *b = k->b;
    const int per = s->line_bytes / CHUNK, lines = s->rows * k->w.bk / s->line_bytes;
    const hn_kv e = hn_kb_addi(b, k->tid, (int64_t)i * k->w.threads);
    if (s->op->buf < 0 && s->op->row_fast) {
        *line = hn_kb_imod(b, e, hn_kb_i(b, lines));
        *chunk = hn_kb_idiv(b, e, hn_kb_i(b, lines));
        return;
    }
    *line = hn_kb_idiv(b, e, hn_kb_i(b, per));
    *chunk = hn_kb_imod(b, e, hn_kb_i(b, per));
}

/* ---- filling a stage ---- */
static void begin_side(kernel *k, side *s, hn_kv first_row)
{
    hn_kb *b = k->b;
    const int elems = hn_mma_elems(k->d->type);
    for (int i = 0; i < s->slots; i++) {
        hn_kv line, chunk;
        slot_at(k, s, i, &line, &chunk);
        const hn_kv along = hn_kb_muli(b, chunk, elems);
        s->word[i] = hn_kb_addi(b, chunk_word(b, s, line, chunk), s->first_word);
        s->row[i] = hn_kb_add(b, first_row, s->turned ? along : line);
        s->k[i] = s->turned ? line : along;
        if (s->op->buf >= 0) s->op->begin(s->op->user, i, k->g, s->row[i]);
    }
}

static void copy_or_fill(kernel *k, hn_kv to, int buf, hn_kv from, hn_kv ok)
{
    hn_kb *b = k->b;
    hn_kb_if(b, ok);
    hn_kb_copy(b, k->shared, to, buf, from, CHUNK, HN_KV_NONE);
    hn_kb_else(b);
    hn_kb_store_aligned(b, k->shared, to, k->fill);
    hn_kb_end(b);
}

/* Copies of step `step` begin, into the stage at word `stage`. */
static void copy_side(kernel *k, side *s, hn_kv step, hn_kv stage)
{
    hn_kb *b = k->b;
    const hn_kv k0 = hn_kb_muli(b, step, k->step_elems);
    for (int i = 0; i < s->slots && s->op->buf >= 0; i++) {
        hn_kv ok = HN_KV_NONE;
        const hn_kv from = s->op->place(s->op->user, i, hn_kb_add(b, k0, s->k[i]), &ok);
        const hn_kv to = hn_kb_add(b, stage, s->word[i]);
        if (s == &k->side[0] && hn_kv_is(k->fill)) copy_or_fill(k, to, s->op->buf, from, ok);
        else hn_kb_copy(b, k->shared, to, s->op->buf, from, CHUNK, ok);
    }
}

/* `first`, `end`: which operands. */
static void copy_sides(kernel *k, int first, int end, hn_kv step, hn_kv stage)
{
    hn_kb_if(k->b, hn_kb_lt(k->b, step, k->step_end));
    for (int i = first; i < end; i++) copy_side(k, &k->side[i], step, stage);
    hn_kb_end(k->b);
}

static void copy_step(kernel *k, hn_kv step, hn_kv stage)
{
    if (k->side[0].op->buf < 0 && k->side[1].op->buf < 0) return;
    copy_sides(k, 0, 2, step, stage);
    hn_kb_commit(k->b);
}

static void read_zero_point(kernel *k)
{
    hn_kb *b = k->b;
    hn_mma_bytes *q = k->d->bytes;
    if (!q) return;
    hn_mma_bytes_ready(q);
    if (q->moves && q->padded) k->fill = hn_kb_bitcast(b, hn_kb_splat(b, hn_mma_bytes_fill(q), CHUNK), HN_F32, WORDS);
}

/* The first stages. Constant weights are on their way before the kernels that make the rest have ended. */
static void copy_first_steps(kernel *k)
{
    hn_kb *b = k->b;
    const int ahead = k->w.stages - 1;
    const bool early = k->side[1].op->constant && k->side[1].op->buf >= 0;
    hn_kv step[MAX_STAGES], stage[MAX_STAGES];
    for (int s = 0; s < ahead; s++) {
        step[s] = hn_kb_addi(b, k->step_first, s);
        stage[s] = hn_kb_i(b, (int64_t)s * k->w.stage_bytes / 4);
        if (early) copy_sides(k, 1, 2, step[s], stage[s]);
    }
    hn_kb_depend(b);
    read_zero_point(k);
    for (int s = 0; s < ahead; s++) {
        if (!early) copy_step(k, step[s], stage[s]);
        else copy_sides(k, 0, 1, step[s], stage[s]);
        if (early) hn_kb_commit(b);
    }
}

/* Computed chunks of step `step`, as words that put_side stores. */
static void compute_side(kernel *k, side *s, hn_kv step)
{
    hn_kb *b = k->b;
    const hn_mma *d = k->d;
    const int elems = hn_mma_elems(d->type);
    const hn_kv k0 = hn_kb_muli(b, step, k->step_elems), live = hn_kb_lt(b, step, k->step_end);
    for (int i = 0; i < s->slots && s->op->buf < 0; i++) {
        const hn_kv at = hn_kb_add(b, k0, s->k[i]);
        const hn_kv ok = hn_kb_and(b, live, hn_kb_lt(b, s->row[i], s == &k->side[0] ? k->m : k->n));
        hn_lower_forget(d->l);
        hn_kv x = s->op->chunk(s->op->user, k->g, s->row[i], at, elems, ok);
        hn_lower_forget(d->l);
        if (d->type != HN_F32) x = hn_kb_bitcast(b, d->bytes ? x : hn_kb_half(b, x, d->type), HN_F32, WORDS);
        s->held[i] = x;
    }
}

static void put_side(kernel *k, side *s, hn_kv stage)
{
    hn_kb *b = k->b;
    for (int i = 0; i < s->slots && s->op->buf < 0; i++)
        hn_kb_store_aligned(b, k->shared, hn_kb_add(b, stage, s->word[i]), s->held[i]);
}

/* ---- multiplying a stage ---- */
/* Sums of a's rows, by another tile whose b is ones. */
static bool has_row_sums(const hn_mma *d)
{
    return d->bytes && d->bytes->q.row_sums;
}

/* Four matrices: of a, two eights of rows by two chunks of k; of b, rows of two tiles in turn. Yields the words in the order of
 * the instruction. */
static hn_kv load_words(kernel *k, const side *s, bool is_a, hn_kv stage, hn_kv row, int step)
{
    hn_kb *b = k->b;
    const hn_kv eight = hn_kb_i(b, 8), lane8 = hn_kb_imod(b, k->lane, eight), quarter = hn_kb_idiv(b, k->lane, eight);
    const hn_kv low = hn_kb_imod(b, quarter, hn_kb_i(b, 2)), high = hn_kb_idiv(b, quarter, hn_kb_i(b, 2));
    const hn_kv by_row = is_a ? low : high, by_k = is_a ? high : low;
    hn_kv line, chunk;
    if (s->turned) {
        line = hn_kb_addi(b, hn_kb_add(b, hn_kb_mul(b, by_k, eight), lane8), (int64_t)step * STEP / (CHUNK / 8));
        chunk = hn_kb_add(b, hn_kb_idiv(b, row, eight), by_row);
    } else {
        line = hn_kb_add(b, hn_kb_add(b, row, hn_kb_mul(b, by_row, eight)), lane8);
        chunk = hn_kb_addi(b, by_k, 2 * step);
    }
    const hn_kv at = hn_kb_addi(b, hn_kb_add(b, stage, chunk_word(b, s, line, chunk)), s->first_word);
    return hn_kb_ldmatrix(b, k->shared, at, 4, s->turned);
}

static void multiply_step(kernel *k, hn_kv stage, int step)
{
    hn_kb *b = k->b;
    hn_kv x[MAX_TILES], y[MAX_TILES];
    for (int i = 0; i < k->w.mi; i++) x[i] = load_words(k, &k->side[0], true, stage, hn_kb_addi(b, k->warp_m, 16 * i), step);
    for (int j = 0; j < k->w.ni; j += 2) {
        const hn_kv two = load_words(k, &k->side[1], false, stage, hn_kb_addi(b, k->warp_n, 8 * j), step);
        y[j] = hn_kb_slice(b, two, 0, 2);
        y[j + 1] = hn_kb_slice(b, two, 2, 2);
    }
    for (int i = 0; i < k->w.mi && has_row_sums(k->d); i++)
        hn_kb_set(b, k->row_sum[i], hn_kb_mma(b, k->d->type, x[i], k->ones, hn_kb_get(b, k->row_sum[i])));
    for (int i = 0; i < k->w.mi; i++)
        for (int j = 0; j < k->w.ni; j++)
            hn_kb_set(b, k->acc[i][j], hn_kb_mma(b, k->d->type, x[i], y[j], hn_kb_get(b, k->acc[i][j])));
}

/* ---- the loop over k ---- */
static hn_kv stage_word(kernel *k, hn_kv step)
{
    hn_kb *b = k->b;
    const hn_kv turn = hn_kb_imod(b, hn_kb_sub(b, step, k->step_first), hn_kb_i(b, k->w.stages));
    return hn_kb_muli(b, turn, (int64_t)k->w.stage_bytes / 4);
}

static void loop(kernel *k)
{
    hn_kb *b = k->b;
    const int ahead = k->w.stages - 1;
    copy_first_steps(k);
    for (int i = 0; i < 2; i++) {
        compute_side(k, &k->side[i], k->step_first);
        put_side(k, &k->side[i], hn_kb_i(b, 0));
    }
    const hn_kv step = hn_kb_for(b, k->step_first, k->step_end, 1);
    const hn_kv now = stage_word(k, step), next = hn_kb_addi(b, step, 1), far = hn_kb_addi(b, step, ahead);
    if (k->side[0].op->buf >= 0 || k->side[1].op->buf >= 0) hn_kb_await(b, ahead - 1);
    hn_kb_barrier(b);
    copy_step(k, far, stage_word(k, far));
    for (int i = 0; i < 2; i++) compute_side(k, &k->side[i], next);
    for (int s = 0; s < k->w.bk / STEP; s++) multiply_step(k, now, s);
    for (int i = 0; i < 2; i++) put_side(k, &k->side[i], stage_word(k, next));
    hn_kb_end(b);
}

/* ---- results ---- */
/* Place of lanes 2h, 2h + 1 of tile (i, j) in the block. */
static void pair_at(kernel *k, int i, int j, int h, hn_kv *row, hn_kv *col)
{
    hn_kb *b = k->b;
    const hn_kv four = hn_kb_i(b, 4);
    *row = hn_kb_addi(b, hn_kb_add(b, k->warp_m, hn_kb_idiv(b, k->lane, four)), 16 * i + 8 * h);
    *col = hn_kb_addi(b, hn_kb_add(b, k->warp_n, hn_kb_muli(b, hn_kb_imod(b, k->lane, four), 2)), 8 * j);
}

typedef void (*take_pair)(kernel *k, hn_kv row, hn_kv col, hn_kv two);

static void each_pair(kernel *k, take_pair take)
{
    for (int i = 0; i < k->w.mi; i++)
        for (int j = 0; j < k->w.ni; j++)
            for (int h = 0; h < 2; h++) {
                hn_kv row, col;
                pair_at(k, i, j, h, &row, &col);
                take(k, row, col, hn_kb_slice(k->b, hn_kb_get(k->b, k->acc[i][j]), 2 * h, 2));
            }
}

static void to_shared(kernel *k, hn_kv row, hn_kv col, hn_kv two)
{
    hn_kb *b = k->b;
    if (k->d->bytes) two = hn_kb_bitcast(b, two, HN_F32, 2);
    hn_kb_store_aligned(b, k->shared, hn_kb_add(b, hn_kb_muli(b, row, k->w.bn + PAD), col), two);
}

/* Behind a row's sums, where there is room for the banks' sake. All warps of these rows have them; one tells. */
static void row_sums_to_shared(kernel *k)
{
    hn_kb *b = k->b;
    if (!has_row_sums(k->d)) return;
    const hn_kv zero = hn_kb_i(b, 0), first = hn_kb_eq(b, hn_kb_imod(b, k->lane, hn_kb_i(b, 4)), zero);
    hn_kb_if(b, hn_kb_and(b, first, hn_kb_eq(b, k->warp_n, zero)));
    for (int i = 0; i < k->w.mi; i++)
        for (int h = 0; h < 2; h++) {
            hn_kv row, col;
            pair_at(k, i, 0, h, &row, &col);
            const hn_kv sum = hn_kb_bitcast(b, hn_kb_slice(b, hn_kb_get(b, k->row_sum[i]), 2 * h, 1), HN_F32, 1);
            hn_kb_store(b, k->shared, hn_kb_addi(b, hn_kb_muli(b, row, k->w.bn + PAD), k->w.bn), sum);
        }
    hn_kb_end(b);
}

/* Lanes of sums from (row, col) of the block; col = bn: the row's own. */
static hn_kv from_shared(kernel *k, hn_kv row, hn_kv col, int lanes)
{
    hn_kb *b = k->b;
    const hn_kv x = hn_kb_load_aligned(b, k->shared, hn_kb_add(b, hn_kb_muli(b, row, k->w.bn + PAD), col), lanes);
    return k->d->bytes ? hn_kb_bitcast(b, x, HN_I32, lanes) : x;
}

/* Parts lie [part][group][m][n]. */
static void to_parts(kernel *k, hn_kv row, hn_kv col, hn_kv two)
{
    hn_kb *b = k->b;
    const hn_kv m = hn_kb_add(b, k->m0, row), n = hn_kb_add(b, k->n0, col);
    const hn_kv line = hn_kb_add(b, hn_kb_mul(b, hn_kb_add(b, hn_kb_mul(b, k->part, k->groups), k->g), k->m), m);
    const hn_kv at = hn_kb_add(b, hn_kb_mul(b, line, k->n), n);
    hn_kb_if(b, hn_kb_and(b, hn_kb_lt(b, m, k->m), hn_kb_lt(b, n, k->n)));
    if (k->even_n) {
        hn_kb_store(b, k->parts, at, two);
    } else {
        hn_kb_store(b, k->parts, at, hn_kb_extract(b, two, 0));
        hn_kb_if(b, hn_kb_lt(b, hn_kb_addi(b, n, 1), k->n));
        hn_kb_store(b, k->parts, hn_kb_addi(b, at, 1), hn_kb_extract(b, two, 1));
        hn_kb_end(b);
    }
    hn_kb_end(b);
}

/* Fused work on sums of `lanes` neighbouring n; values of all results, before any is stored. */
static void finish_run(const hn_mma *d, hn_kv g, hn_kv m, hn_kv n, hn_kv sums, hn_kv row_sum, run *ret)
{
    hn_kb *b = hn_lower_kb(d->l);
    const int lanes = hn_kb_lanes(b, sums);
    hn_kv at[HN_MAX_RANK];
    d->index(d->user, d->l, g, m, n, at);
    hn_kidx_init(&ret->idx, d->y->type.rank, at);
    hn_kidx_vector(&ret->idx, d->n_axis, lanes);
    ret->idx.aligned = true;
    if (d->bias) {
        hn_kidx one;
        hn_kidx_init(&one, 1, &at[d->n_axis]);
        hn_kidx_vector(&one, 0, lanes);
        one.aligned = true;
        hn_lower_forget(d->l);
        sums = hn_kb_add(b, sums, hn_lower_value(d->l, d->bias, &one, HN_KV_NONE));
    }
    if (d->bytes) sums = hn_mma_bytes_settle(d->bytes, g, n, sums, row_sum);
    hn_lower_seed(d->l, d->y, sums);
    for (int o = 0; o < d->r->g->n_out; o++) ret->x[o] = hn_lower_value(d->l, d->r->g->out[o].value, &ret->idx, HN_KV_NONE);
    hn_lower_forget(d->l);
}

static void store_run(const hn_mma *d, const run *x)
{
    hn_lower_forget(d->l);
    for (int o = 0; o < d->r->g->n_out; o++) hn_lower_store_value(d->l, o, &x->idx, x->x[o], HN_KV_NONE);
    hn_lower_forget(d->l);
}

/* Neighbouring n that a thread finishes at once: what divides n, where n lies densest. */
static int run_lanes(const hn_mma *d)
{
    const int most = d->r->g->n_node > MANY_NODES ? 4 : 8;
    const hn_dim together = d->run ? d->run : d->n;
    if (!hn_dim_is_const(together) || hn_loops_dense_axis(d->y) != d->n_axis) return 1;
    for (int v = most; v > 1; v /= 2)
        if (together % v == 0) return v;
    return 1;
}

/* Row and column in the block of run number e: columns fastest, or rows where they lie densest. */
static void run_at(kernel *k, hn_kv e, int lanes, hn_kv *row, hn_kv *col)
{
    hn_kb *b = k->b;
    const bool rows_fast = lanes == 1 && hn_loops_dense_axis(k->d->y) != k->d->n_axis;
    const hn_kv by = hn_kb_i(b, rows_fast ? k->w.bm : k->w.bn / lanes), fast = hn_kb_imod(b, e, by), slow = hn_kb_idiv(b, e, by);
    *row = rows_fast ? fast : slow;
    *col = hn_kb_muli(b, rows_fast ? slow : fast, lanes);
}

/* A few runs at a time, so that what they read is under way together; runs outside repeat the last one inside and store nothing. */
static void finish_batch(kernel *k, hn_kv first, int lanes, int count)
{
    hn_kb *b = k->b;
    run x[MAX_BATCH];
    hn_kv ok[MAX_BATCH];
    for (int u = 0; u < count; u++) {
        hn_kv row, col;
        run_at(k, hn_kb_addi(b, first, (int64_t)u * k->w.threads), lanes, &row, &col);
        const hn_kv sums = from_shared(k, row, col, lanes);
        const hn_kv row_sum = has_row_sums(k->d) ? from_shared(k, row, hn_kb_i(b, k->w.bn), 1) : HN_KV_NONE;
        const hn_kv m = hn_kb_add(b, k->m0, row), n = hn_kb_add(b, k->n0, col);
        ok[u] = hn_kb_and(b, hn_kb_lt(b, m, k->m), hn_kb_lt(b, n, k->n));
        finish_run(k->d, k->g, hn_kb_min(b, m, hn_kb_addi(b, k->m, -1)), hn_kb_min(b, n, hn_kb_addi(b, k->n, -lanes)), sums, row_sum, &x[u]);
    }
    for (int u = 0; u < count; u++) {
        hn_kb_if(b, ok[u]);
        store_run(k->d, &x[u]);
        hn_kb_end(b);
    }
}

static void finish(kernel *k)
{
    hn_kb *b = k->b;
    const int lanes = run_lanes(k->d), runs = k->w.bm * k->w.bn / lanes / k->w.threads;
    int batch = k->d->r->g->n_node > MANY_NODES ? 1 : MAX_BATCH;
    while (runs % batch) batch /= 2;
    if (k->parts >= 0) {
        each_pair(k, to_parts);
        return;
    }
    hn_kb_barrier(b); /* the last stage has been read */
    each_pair(k, to_shared);
    row_sums_to_shared(k);
    hn_kb_barrier(b);
    if (runs == batch) {
        finish_batch(k, k->tid, lanes, batch);
        return;
    }
    const hn_kv i = hn_kb_fori(b, runs / batch);
    finish_batch(k, hn_kb_add(b, hn_kb_muli(b, i, (int64_t)batch * k->w.threads), k->tid), lanes, batch);
    hn_kb_end(b);
}

/* ---- the frame ---- */
/* Blocks of one column of tiles stand side by side: they read the same of b. */
static void open_block(kernel *k)
{
    hn_kb *b = k->b;
    const hn_mma *d = k->d;
    hn_symtab *syms = d->r->g->syms;
    const hn_dim tiles_m = hn_dim_ceildiv(syms, d->m, k->w.bm), tiles_n = hn_dim_ceildiv(syms, d->n, k->w.bn);
    const hn_dim steps = hn_dim_ceildiv(syms, d->k, k->step_elems);
    const hn_dim all = hn_dim_mul(syms, hn_dim_mul(syms, d->groups, k->w.split), hn_dim_mul(syms, tiles_m, tiles_n));
    const hn_kv total = hn_lower_dim(d->l, all), tall = hn_lower_dim(d->l, tiles_m), wide = hn_lower_dim(d->l, tiles_n);
    const hn_kv n_steps = hn_lower_dim(d->l, steps), per = hn_lower_dim(d->l, hn_dim_ceildiv(syms, steps, k->w.split));
    k->m = hn_lower_dim(d->l, d->m);
    k->n = hn_lower_dim(d->l, d->n);
    k->groups = hn_lower_dim(d->l, d->groups);
    const hn_kv block = hn_kb_grid(b, 0, hn_kb_ext(b, total, 1));
    k->tid = hn_kb_threads(b, 0, k->w.threads);
    k->m0 = hn_kb_muli(b, hn_kb_imod(b, block, tall), k->w.bm);
    hn_kv rest = hn_kb_idiv(b, block, tall);
    k->n0 = hn_kb_muli(b, hn_kb_imod(b, rest, wide), k->w.bn);
    rest = hn_kb_idiv(b, rest, wide);
    k->part = hn_kb_imod(b, rest, hn_kb_i(b, k->w.split));
    k->g = hn_kb_idiv(b, rest, hn_kb_i(b, k->w.split));
    k->step_first = hn_kb_mul(b, k->part, per);
    k->step_end = k->w.split == 1 ? n_steps : hn_kb_min(b, hn_kb_add(b, k->step_first, per), n_steps);
}

static void place_warp(kernel *k)
{
    hn_kb *b = k->b;
    const hn_kv none = k->d->bytes ? hn_kb_int(b, HN_I32, 4, 0) : hn_kb_float(b, HN_F32, 4, 0);
    const hn_kv warp = hn_kb_idiv(b, k->tid, hn_kb_i(b, 32)), across = hn_kb_i(b, k->w.wm);
    k->lane = hn_kb_imod(b, k->tid, hn_kb_i(b, 32));
    k->warp_m = hn_kb_muli(b, hn_kb_imod(b, warp, across), 16 * k->w.mi);
    k->warp_n = hn_kb_muli(b, hn_kb_idiv(b, warp, across), 8 * k->w.ni);
    for (int i = 0; i < k->w.mi; i++)
        for (int j = 0; j < k->w.ni; j++) k->acc[i][j] = hn_kb_var(b, none);
    if (!has_row_sums(k->d)) return;
    k->ones = hn_kb_int(b, HN_U32, 2, 0x01010101);
    for (int i = 0; i < k->w.mi; i++) k->row_sum[i] = hn_kb_var(b, none);
}

static void product(hn_mma *d, const tile *w, int parts)
{
    hn_kb *b = hn_lower_kb(d->l);
    kernel k = { .d = d, .b = b, .w = *w, .step_elems = w->bk * 8 / hn_dtype_bits(d->type), .parts = parts, .fill = HN_KV_NONE };
    if (d->bytes && d->bytes->padded) d->bytes->depth = (d->k + k.step_elems - 1) / k.step_elems * k.step_elems;
    k.even_n = hn_dim_is_const(d->n) && d->n % 2 == 0;
    k.shared = hn_kb_shared(b, "stages", HN_F32, w->shared_bytes / 4);
    side_of(d, w, true, &k.side[0]);
    side_of(d, w, false, &k.side[1]);
    open_block(&k);
    begin_side(&k, &k.side[0], k.m0);
    begin_side(&k, &k.side[1], k.n0);
    place_warp(&k);
    loop(&k);
    finish(&k);
    hn_kb_end(b);
    hn_kb_end(b);
}

/* ---- the sum of parts ---- */
typedef struct adder {
    hn_mma *d;
    int parts, split;
    hn_kv g, row, n, whole; /* group, row, extent of n, elements of a part */
} adder;

static void add_run(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    adder *a = user;
    (void)mask;
    const hn_kv m = hn_lower_dim(a->d->l, a->d->m);
    hn_kv at = hn_kb_add(b, hn_kb_mul(b, hn_kb_add(b, hn_kb_mul(b, a->g, m), a->row), a->n), i);
    hn_kv sum = hn_kb_load(b, a->parts, at, lanes);
    for (int s = 1; s < a->split; s++) {
        at = hn_kb_add(b, at, a->whole);
        sum = hn_kb_add(b, sum, hn_kb_load(b, a->parts, at, lanes));
    }
    run x;
    finish_run(a->d, a->g, a->row, i, sum, /* row_sum= */ HN_KV_NONE, &x);
    store_run(a->d, &x);
}

static void sum_parts(hn_mma *d, int parts, int split)
{
    hn_kb *b = hn_lower_kb(d->l);
    hn_symtab *syms = d->r->g->syms;
    const hn_dim rows = hn_dim_mul(syms, d->groups, d->m);
    adder a = { .d = d, .parts = parts, .split = split, .n = hn_lower_dim(d->l, d->n) };
    const hn_kv m = hn_lower_dim(d->l, d->m), n_rows = hn_lower_dim(d->l, rows);
    a.whole = hn_lower_dim(d->l, hn_dim_mul(syms, rows, d->n));
    const hn_kv row = hn_kb_parallel(b, hn_kb_ext(b, n_rows, 1));
    a.g = hn_kb_idiv(b, row, m);
    a.row = hn_kb_imod(b, row, m);
    if (d->bytes) hn_mma_bytes_ready(d->bytes);
    hn_kb_vector_loop(b, hn_kb_i(b, 0), a.n, run_lanes(d), HN_KTAIL_SCALAR, add_run, &a);
    hn_kb_end(b);
}

static hone_status one_launch(const hn_mma_maker *how, const hn_region *r, const hn_target *t, const tile *w, int which,
                              hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, how->name);
    hn_mma d = { .r = r, .t = t, .l = hn_lower_new(ret->arena, b, r, t) };
    hn_work work;
    if (!b || !d.l) return HN_NOMEM(dg);
    how->start(how->user, d.l, which, &d);
    const int parts = w->split > 1 ? hn_lower_temp(d.l, 0, d.bytes ? HN_I32 : HN_F32, which == 0) : -1;
    if (which == 0 && w->split > 1) {
        hn_symtab *syms = r->g->syms;
        const hn_dim elems = hn_dim_mul(syms, hn_dim_mul(syms, d.groups, d.m), d.n);
        if (!hn_vec_push(ret->arena, &ret->temp_bytes, hn_dim_mul(syms, elems, 4 * w->split))) return HN_NOMEM(dg);
    }
    if (which == 0) product(&d, w, parts);
    else sum_parts(&d, parts, w->split);
    hn_region_work(r, &work);
    return hn_lower_finish(d.l, ret, which ? 0 : work.flops, work.bytes, dg);
}

hone_status hn_mma_emit(const hn_mma_maker *how, const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    tile w;
    hn_mma_tile_of(p, &w);
    HN_TRY(one_launch(how, r, t, &w, 0, ret, dg));
    return w.split > 1 ? one_launch(how, r, t, &w, 1, ret, dg) : HONE_OK;
}
