/* How far two tensors are apart. */
#include "eval/eval.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct sums {
    double abs, sq, max, want_sq, got_sq, dot;
    int64_t n, n_out, worst;
    double worst_got, worst_want;
    int64_t n_bad, first_bad;
    double bad_got, bad_want;
} sums;

static bool same_nonfinite(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b;
}

static void add_element(sums *s, int64_t i, double got, double want, double judge, double atol, double rtol)
{
    if (!isfinite(judge) || !isfinite(got)) {
        if (same_nonfinite(got, judge)) return;
        if (s->n_bad++ == 0) {
            s->first_bad = i;
            s->bad_got = got;
            s->bad_want = judge;
        }
        return;
    }
    if (!isfinite(want)) return; /* the judge says finite and it is: nothing to compare with */
    const double e = fabs(got - want);
    s->n++;
    s->abs += e;
    s->sq += e * e;
    s->want_sq += want * want;
    s->got_sq += got * got;
    s->dot += got * want;
    s->n_out += !(e <= atol + rtol * fabs(want));
    if (e > s->max) {
        s->max = e;
        s->worst = i;
        s->worst_got = got;
        s->worst_want = want;
    }
}

static void conclude(const sums *s, int64_t n, hn_metric *m)
{
    const double count = s->n ? (double)s->n : 1;
    *m = (hn_metric){.n = n,
                     .n_nonfinite = s->n_bad,
                     .worst = s->worst,
                     .worst_got = s->worst_got,
                     .worst_want = s->worst_want};
    m->l0 = n ? (double)(s->n_out + s->n_bad) / (double)n : 0;
    if (s->n_bad) {
        m->worst = s->first_bad;
        m->worst_got = s->bad_got;
        m->worst_want = s->bad_want;
        m->l1 = m->l2 = m->linf = m->rel_l2 = INFINITY;
        m->cosine = -1;
        m->snr_db = -INFINITY;
        return;
    }
    m->l1 = s->abs / count;
    m->l2 = sqrt(s->sq / count);
    m->linf = s->max;
    m->rel_l2 = s->sq == 0 ? 0 : s->want_sq == 0 ? INFINITY : sqrt(s->sq / s->want_sq);
    if (s->want_sq > 0 && s->got_sq > 0)
        m->cosine = s->sq == 0 ? 1 : s->dot / (sqrt(s->want_sq) * sqrt(s->got_sq));
    else
        m->cosine = s->want_sq == s->got_sq ? 1 : 0;
    m->snr_db = s->sq == 0 ? INFINITY : s->want_sq == 0 ? -INFINITY : 10 * log10(s->want_sq / s->sq);
}

static void merge(sums *s, const sums *x)
{
    const sums old = *s;
    *s = (sums){.abs = old.abs + x->abs,
                .sq = old.sq + x->sq,
                .want_sq = old.want_sq + x->want_sq,
                .got_sq = old.got_sq + x->got_sq,
                .dot = old.dot + x->dot,
                .n = old.n + x->n,
                .n_out = old.n_out + x->n_out,
                .n_bad = old.n_bad + x->n_bad,
                .max = old.max,
                .worst = old.worst,
                .worst_got = old.worst_got,
                .worst_want = old.worst_want,
                .first_bad = old.first_bad,
                .bad_got = old.bad_got,
                .bad_want = old.bad_want};
    if (x->max > old.max) {
        s->max = x->max;
        s->worst = x->worst;
        s->worst_got = x->worst_got;
        s->worst_want = x->worst_want;
    }
    if (!old.n_bad) {
        s->first_bad = x->first_bad;
        s->bad_got = x->bad_got;
        s->bad_want = x->bad_want;
    }
}

static hone_status same_shape(const hn_tensor *a, const hn_tensor *b, hn_diag *dg)
{
    if (a->kind != b->kind || a->n_item != b->n_item)
        return HN_RAISE(dg, HONE_E_TYPE, "one is a list and the other is not, or their lengths differ");
    if (a->kind != HN_TENSOR) return HONE_OK;
    if (hn_dtype_is_float(a->type.dtype) != hn_dtype_is_float(b->type.dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "%s cannot be compared with %s", hn_dtype_name(a->type.dtype),
                        hn_dtype_name(b->type.dtype));
    if (a->type.rank != b->type.rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "rank %d against %d", a->type.rank, b->type.rank);
    for (int i = 0; i < a->type.rank; i++)
        if (a->type.dim[i] != b->type.dim[i])
            return HN_RAISE(dg, HONE_E_SHAPE, "extent %d is %lld against %lld", i, (long long)a->type.dim[i],
                            (long long)b->type.dim[i]);
    return HONE_OK;
}

static hone_status compare(const hn_tensor *got, const hn_tensor *want, const hn_tensor *own, double atol,
                           double rtol, sums *s, int64_t *n, hn_diag *dg);

static hone_status compare_items(const hn_tensor *got, const hn_tensor *want, const hn_tensor *own,
                                 double atol, double rtol, sums *s, int64_t *n, hn_diag *dg)
{
    for (int i = 0; i < got->n_item; i++)
        HN_TRY_IN(dg,
                  compare(&got->item[i], &want->item[i], own ? &own->item[i] : NULL, atol, rtol, s, n, dg),
                  "item %d", i);
    return HONE_OK;
}

static hone_status compare(const hn_tensor *got, const hn_tensor *want, const hn_tensor *own, double atol,
                           double rtol, sums *s, int64_t *n, hn_diag *dg)
{
    HN_TRY(same_shape(got, want, dg));
    if (own) HN_TRY(same_shape(got, own, dg));
    if (got->kind != HN_TENSOR) return compare_items(got, want, own, atol, rtol, s, n, dg);
    const int64_t k = hn_tensor_numel(got);
    double *x = calloc((size_t)k + 1, 3 * sizeof *x);
    if (!x) return HN_NOMEM(dg);
    double *w = x + k, *judge = own ? w + k : w;
    hn_tensor_to_f64(got, x);
    hn_tensor_to_f64(want, w);
    if (own) hn_tensor_to_f64(own, judge);
    sums part = {.worst = -1};
    for (int64_t i = 0; i < k; i++)
        add_element(&part, i, x[i], w[i], judge[i], atol, rtol);
    free(x);
    merge(s, &part);
    *n += k;
    return HONE_OK;
}

hone_status hn_metric_compare(const hn_tensor *got, const hn_tensor *want, const hn_tensor *own, double atol,
                              double rtol, hn_metric *ret, hn_diag *dg)
{
    sums s = {.worst = -1};
    int64_t n = 0;
    HN_TRY(compare(got, want, own, atol, rtol, &s, &n, dg));
    conclude(&s, n, ret);
    return HONE_OK;
}

/* ---- bounds ---- */
static const char *const norm_name[] = { "rel_l2", "l0", "l1", "l2", "linf", "cosine", "snr" };

bool hn_norm_find(const char *name, hn_norm *ret)
{
    for (int i = 0; i < HN_COUNT(norm_name); i++) {
        if (strcmp(norm_name[i], name) != 0) continue;
        *ret = (hn_norm)i;
        return true;
    }
    return false;
}

const char *hn_norm_name(hn_norm n)
{
    return norm_name[n];
}

double hn_norm_of(const hn_metric *m, hn_norm n)
{
    switch (n) {
    case HN_NORM_REL_L2: return m->rel_l2;
    case HN_NORM_L0: return m->l0;
    case HN_NORM_L1: return m->l1;
    case HN_NORM_L2: return m->l2;
    case HN_NORM_LINF: return m->linf;
    case HN_NORM_COSINE: return m->cosine;
    case HN_NORM_SNR: return m->snr_db;
    }
    return NAN;
}

bool hn_norm_is_least(hn_norm n)
{
    return n == HN_NORM_COSINE || n == HN_NORM_SNR;
}

bool hn_norm_keeps(hn_norm n, double value, double bound)
{
    return hn_norm_is_least(n) ? value >= bound : value <= bound;
}
