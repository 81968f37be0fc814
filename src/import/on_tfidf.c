/*
 * TfIdfVectorizer over integer tokens: how often each n-gram of a pool occurs, with gaps of up to
 * max_skip_count.
 *
 *     for each length n and gap s: hit[w,g] = all_k x[w + k (s + 1)] == pool[g,k];  count[g] += sum_w
 * hit[w,g]
 *
 * Counts go to the columns that ngram_indexes names, weighted as the mode says.
 */
#include "import/import_int.h"

#include <inttypes.h>

typedef struct pool {
    const int64_t *token, *start, *column;
    const double *weight;
    int n_token, n_start, n_gram, n_weight;
    int64_t lo, hi, skip;
} pool;

static hone_status read_pool(hn_im_call *c, pool *p)
{
    if (hn_im_has(c, "pool_strings")) return hn_im_refuse(c, "tokens that are strings are not supported");
    p->token = hn_im_is(c, "pool_int64s", &p->n_token);
    p->start = hn_im_is(c, "ngram_counts", &p->n_start);
    p->column = hn_im_is(c, "ngram_indexes", &p->n_gram);
    p->weight = hn_im_fs(c, "weights", &p->n_weight);
    p->lo = hn_im_i(c, "min_gram_length", 1);
    p->hi = hn_im_i(c, "max_gram_length", 1);
    p->skip = hn_im_i(c, "max_skip_count", 0);
    if (!p->token || !p->start || !p->column || p->n_gram < 1)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the pool is missing");
    if (p->lo < 1 || p->hi < p->lo || p->hi > 64 || p->skip < 0 || p->skip > 64)
        return HN_IM_RAISE(c, HONE_E_MODEL, "n-grams of %" PRId64 " to %" PRId64 " with gaps to %" PRId64,
                           p->lo, p->hi, p->skip);
    if (p->n_weight && p->n_weight != p->n_gram)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%d weights for %d n-grams", p->n_weight, p->n_gram);
    for (int i = 0; i < p->n_gram; i++)
        if (p->column[i] < 0 || p->column[i] > 1 << 20)
            return HN_IM_RAISE(c, HONE_E_MODEL, "column %" PRId64 " of n-gram %d", p->column[i], i);
    return HONE_OK;
}

/* One gap: [.., tokens] -> how often each of the grams occurs [.., grams]; NULL where no window fits. */
static hn_value *count_gap(hn_im_call *c, hn_value *x, const int64_t *gram, int64_t n_gram, int64_t n,
                           int64_t gap)
{
    const int axis = x->type.rank - 1;
    const hn_dim windows = hn_im_dsub(c, x->type.dim[axis], (n - 1) * (gap + 1));
    hn_value *hit = NULL;
    int64_t known;
    if (hn_dim_known(hn_im_syms(c), windows, &known) && known <= 0) return NULL;
    int64_t *column = HN_NEW_N(c->m->scratch, int64_t, n_gram);
    if (!column) return NULL;
    for (int64_t k = 0; k < n; k++) {
        for (int64_t g = 0; g < n_gram; g++)
            column[g] = gram[g * n + k];
        hn_value *at = hn_im_unsqueeze(c, hn_slice(c->b, x, axis, k * (gap + 1), windows), axis + 1);
        hn_value *same = hn_im_binary(c, HN_OP_eq, at, hn_const_is(c->b, (int)n_gram, column));
        hit = hit ? hn_im_binary(c, HN_OP_and, hit, same) : same;
    }
    return hn_im_reduce(c, HN_OP_reduce_sum, hn_cast(c->b, hit, HN_F32), 1, (int64_t[]){ axis }, false);
}

/* Grams of one length; gaps mean nothing for single tokens. */
static hn_value *count_length(hn_im_call *c, hn_value *x, const pool *p, const int64_t *gram, int64_t n_gram,
                              int64_t n)
{
    hn_value *sum = NULL;
    for (int64_t gap = 0; gap <= (n == 1 ? 0 : p->skip); gap++) {
        hn_value *v = count_gap(c, x, gram, n_gram, n, gap);
        if (v) sum = sum ? hn_im_binary(c, HN_OP_add, sum, v) : v;
    }
    if (sum || c->b->status != HONE_OK) return sum;
    hn_dim d[HN_MAX_RANK];
    for (int i = 0; i < x->type.rank; i++)
        d[i] = i == x->type.rank - 1 ? n_gram : x->type.dim[i];
    return hn_im_fill(c, hn_const_f(c->b, HN_F32, 0), x->type.rank, d);
}

/* Column of each gram as a matrix of ones and zeros, times its weight where counts are weighted. */
static hn_value *placement(hn_im_call *c, const pool *p, const int *gram, int n, bool weighted,
                           int64_t *ret_width)
{
    int64_t width = 0;
    for (int i = 0; i < p->n_gram; i++)
        width = HN_MAX(width, p->column[i] + 1);
    *ret_width = width;
    double *m = HN_NEW_N(c->m->scratch, double, width *HN_MAX(n, 1));
    for (int i = 0; m && i < n; i++)
        m[(int64_t)i * width + p->column[gram[i]]] = weighted && p->n_weight ? p->weight[gram[i]] : 1;
    return m ? hn_const_fs(c->b, HN_F32, 2, (int64_t[]){ n, width }, m) : NULL;
}

hone_status hn_im_on_tfidf(hn_im_call *c)
{
    pool p;
    const int mode = hn_im_choice(c, "mode", "TF|IDF|TFIDF", 0);
    hn_value *x = hn_im_i64(c, c->in[0]), *part[64];
    int n_part = 0, used = 0, first = 0;
    HN_TRY(read_pool(c, &p));
    int *gram = HN_NEW_N(c->m->scratch, int, p.n_gram);
    if (!gram) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (x->type.rank < 1 || x->type.rank > 2)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d", x->type.rank);
    for (int64_t n = 1; n <= p.n_start; n++) {
        const int64_t from = p.start[n - 1], to = n < p.n_start ? p.start[n] : p.n_token;
        if (from < 0 || to < from || to > p.n_token || (to - from) % n)
            return HN_IM_RAISE(c, HONE_E_MODEL,
                               "the pool of %" PRId64 "-grams goes from %" PRId64 " to %" PRId64, n, from,
                               to);
        const int count = (int)((to - from) / n);
        if (first + count > p.n_gram)
            return HN_IM_RAISE(c, HONE_E_MODEL, "the pool has more n-grams than ngram_indexes");
        if (n >= p.lo && n <= p.hi && count) {
            part[n_part++] = count_length(c, x, &p, p.token + from, count, n);
            for (int i = 0; i < count; i++)
                gram[used++] = first + i;
        }
        first += count;
    }
    int64_t width;
    hn_value *place = placement(c, &p, gram, used, mode != 0, &width);
    hn_dim d[2] = { x->type.dim[0], width };
    if (x->type.rank == 1) d[0] = width;
    if (n_part == 0) return hn_im_ret(c, hn_im_fill(c, hn_const_f(c->b, HN_F32, 0), x->type.rank, d));
    hn_value *count = hn_im_concat(c, x->type.rank - 1, n_part, part);
    if (mode == 1) { /* whether, not how often */
        hn_value *zero = hn_const_f(c->b, HN_F32, 0);
        count = hn_cast(c->b, hn_im_binary(c, HN_OP_gt, count, zero), HN_F32);
    }
    return hn_im_ret(c, hn_im_matmul_numpy(c, count, place));
}
