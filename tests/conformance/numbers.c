#include "numbers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* Half the distance between the float32 numbers around x: what rounding a result once may cost. */
static double half_place(double x)
{
    int e;
    (void)frexp(x, &e);
    return ldexp(0.5, (e < -125 ? -125 : e) - 24);
}

void add_errors(error_sums *sums, const hone_tensor *got, const hone_tensor *theirs, const hone_tensor *exact)
{
    const float *a = got->data, *b = theirs->data;
    const double *w = exact->data;
    const int64_t n = (int64_t)(got->bytes / sizeof *a);
    if (got->bytes != theirs->bytes || exact->bytes != 2 * got->bytes) return;
    for (int64_t i = 0; i < n; i++) {
        if (!isfinite(a[i]) || !isfinite(b[i]) || !isfinite(w[i])) continue;
        const double ours = (double)a[i] - w[i], other = (double)b[i] - w[i], half = half_place(w[i]);
        sums->ours += ours * ours;
        sums->theirs += other * other;
        sums->half += half * half;
        sums->n++;
    }
}

void say_errors(const error_sums *sums, const io_set *s, result *r)
{
    size_t at = 0;
    for (int i = s->n_in; i < s->n && at < sizeof r->reason; i++) {
        const error_sums *e = &sums[i];
        if (e->n == 0) continue;
        const double n = (double)e->n;
        at += (size_t)snprintf(r->reason + at, sizeof r->reason - at, "%s%.60s %.4e %.4e %.4e %lld", at ? ";" : "", s->io[i].name,
                               sqrt(e->ours / n), sqrt(e->theirs / n), sqrt(e->half / n), (long long)e->n);
    }
}
