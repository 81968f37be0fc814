/* Confidence sequences over paired log-ratios.
 *
 * The inversion of the t-test martingale: a N(0, g sigma^2) mixture over the mean with the right Haar prior on sigma. Its
 * likelihood ratio is an e-process whatever sigma is, at small n as well, where asymptotic sequences are too sure. With
 * c = 1 + n g and q = (sqrt(c) / alpha)^(2/n), a mean is excluded when t^2 / (n - 1) >= (q - 1) / (1 - q / c), and none
 * while q >= c.
 */
#include "tune/tune.h"

#include <math.h>

static const double MIXTURE = 10;     /* g: gains of about three standard deviations; narrow for n = 8..20 */
static const double LEAST_SD = 1e-4;  /* equal readings of a coarse clock are no certainty */

void hn_race_add(hn_race *r, double x)
{
    const double d = x - r->mean;
    r->n++;
    r->mean += d / r->n;
    r->m2 += d * (x - r->mean);
}

double hn_race_sd(const hn_race *r)
{
    return r->n > 1 ? fmax(sqrt(r->m2 / (r->n - 1)), LEAST_SD) : HUGE_VAL;
}

bool hn_race_interval(const hn_race *r, double alpha, double *ret_lo, double *ret_hi)
{
    const double n = r->n, c = 1 + n * MIXTURE, q = n > 1 ? pow(sqrt(c) / alpha, 2 / n) : HUGE_VAL;
    if (!(q < c)) return false;
    const double half = sqrt((q - 1) / (1 - q / c) * (n - 1)) * hn_race_sd(r) / sqrt(n);
    *ret_lo = r->mean - half;
    *ret_hi = r->mean + half;
    return true;
}
