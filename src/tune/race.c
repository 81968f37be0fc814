/* Confidence sequences over paired log-ratios. */
#include "tune/tune.h"

#include <math.h>

void hn_race_add(hn_race *r, double x)
{
    const double d = x - r->mean;
    r->n++;
    r->mean += d / r->n;
    r->m2 += d * (x - r->mean);
}

bool hn_race_interval(const hn_race *r, double alpha, double *ret_lo, double *ret_hi)
{
    if (r->n < HN_RACE_LEAST) return false;
    const double n = r->n, sd = sqrt(r->m2 / (n - 1));
    /* rho^2 that is tightest at HN_RACE_TUNED rounds (section 2.3): (-2 log a + log(-2 log a + 1)) / n */
    const double l = -2 * log(alpha), rho2 = (l + log(l + 1)) / HN_RACE_TUNED;
    const double half = sd * sqrt(2 * (n * rho2 + 1) / (n * n * rho2) * log(sqrt(n * rho2 + 1) / alpha));
    *ret_lo = r->mean - half;
    *ret_hi = r->mean + half;
    return true;
}
