/* Many small changes at once: which of them help is told by trials that make half of them each.
 *
 * A trial that makes one change of 0.5% says as much as the noise lets it and nothing of the others. In a two-level design of
 * R. L. Plackett and J. P. Burman, "The design of optimum multifactorial experiments" (1946), every trial makes about half of the
 * changes, each pair of them together and apart equally often, so that all trials tell of all changes: the error of each effect
 * is that of a difference between two halves of the trials. (Box, Hunter and Hunter, "Statistics for Experimenters", ch. 7, on
 * screening.) This needs effects that add: a region's time hardly depends on the kernels of others, and logarithms of small ones do.
 *
 * The effects are fitted by least squares with a prior, so that fewer trials than changes and trials in any order give an answer
 * that says how sure it is. Behind the design come the best guess and, while it stands, draws from what is still possible: a change
 * of which little is known is made as often as not, one that is known to hurt no more.
 */
#include "tune/tune.h"

#include <math.h>
#include <string.h>

static uint64_t bit(int i)
{
    return (uint64_t)1 << i;
}

bool hn_effects_add(hn_effects *e, int group, double mean, double sd)
{
    if (e->n == HN_EFFECTS_MOST) return false;
    e->group[e->n] = group;
    e->mean[e->n] = mean;
    e->sd[e->n++] = sd;
    if (group >= e->n_group) e->n_group = group + 1;
    return true;
}

/* ---- the design ---- */
/* Least prime of the form 4k + 3 that is not below n: there a Plackett-Burman design is the quadratic residues, shifted. */
static int order_for(int n)
{
    static const int prime[] = { 3, 7, 11, 19, 23, 31, 43, 47, 59, 67 };
    int i = 0;
    while (i < HN_COUNT(prime) - 1 && prime[i] < n) i++;
    return prime[i];
}

static bool is_residue(int x, int prime)
{
    for (int i = 1; i < prime; i++)
        if (i * i % prime == x) return true;
    return false;
}

int hn_effects_rows(const hn_effects *e)
{
    return e->n ? order_for(e->n) : 0;
}

/* Of several changes in a group one of those made least often, at random: in step, those of two groups would never tell apart. */
static int change_of(hn_effects *e, int group, hn_rng *rng)
{
    int best = -1, equal = 0;
    for (int i = 0; i < e->n; i++) {
        if (e->group[i] != group || (best >= 0 && e->made[i] > e->made[best])) continue;
        equal = best >= 0 && e->made[i] == e->made[best] ? equal + 1 : 1;
        if (hn_rng_below(rng, equal) == 0) best = i;
    }
    if (best >= 0) e->made[best]++;
    return best;
}

/* A row makes (p + 1) / 2 of the changes. The last row of a design makes none, and its time is known: it is what all are paired with. */
static uint64_t design_row(hn_effects *e, int row, hn_rng *rng)
{
    const int prime = order_for(e->n);
    uint64_t on = 0;
    for (int g = 0; g < e->n_group; g++) {
        const int x = (g - row + prime) % prime, change = x == 0 || !is_residue(x, prime) ? change_of(e, g, rng) : -1;
        if (change >= 0) on |= bit(change);
    }
    return on;
}

/* ---- the fit ---- */
static double difference(uint64_t on, uint64_t against, int i)
{
    return (double)((on >> i & 1)) - (double)(against >> i & 1);
}

void hn_effects_observe(hn_effects *e, uint64_t on, uint64_t against, double gain, double sd)
{
    const double w = 1 / (sd * sd);
    for (int i = 0; i < e->n; i++) {
        const double x = difference(on, against, i) * w;
        e->moment[i] += x * gain;
        for (int k = 0; x != 0 && k < e->n; k++) e->precision[i][k] += x * difference(on, against, k);
    }
    e->energy += w * gain * gain;
    e->seen |= on | against;
    e->fitted = false;
}

/* What the prior, its spread times e->scale, weighs. */
static double prior_weight(const hn_effects *e, int i)
{
    const double sd = e->sd[i] * e->scale;
    return 1 / (sd * sd);
}

/* Lower triangle l with l l' = precision of the posterior; positive definite, for the prior is. */
static void factor(hn_effects *e)
{
    for (int i = 0; i < e->n; i++)
        for (int k = 0; k <= i; k++) {
            double v = e->precision[i][k] + (i == k ? prior_weight(e, i) : 0);
            for (int m = 0; m < k; m++) v -= e->root[i][m] * e->root[k][m];
            e->root[i][k] = i == k ? sqrt(fmax(v, 1e-12)) : v / e->root[k][k];
        }
}

static void solve_lower(const hn_effects *e, double *x)
{
    for (int i = 0; i < e->n; i++) {
        for (int k = 0; k < i; k++) x[i] -= e->root[i][k] * x[k];
        x[i] /= e->root[i][i];
    }
}

static void solve_upper(const hn_effects *e, double *x)
{
    for (int i = e->n - 1; i >= 0; i--) {
        for (int k = i + 1; k < e->n; k++) x[i] -= e->root[k][i] * x[k];
        x[i] /= e->root[i][i];
    }
}

/* With e->scale; returns the log of the probability of what was observed, but for what does not depend on the scale. */
static double fit_scaled(hn_effects *e)
{
    double twice = e->energy;
    factor(e);
    for (int i = 0; i < e->n; i++) e->gain[i] = e->moment[i] + e->mean[i] * prior_weight(e, i);
    solve_lower(e, e->gain);
    for (int i = 0; i < e->n; i++) {
        twice += e->mean[i] * e->mean[i] * prior_weight(e, i) - e->gain[i] * e->gain[i];
        twice += 2 * log(e->root[i][i]) - log(prior_weight(e, i));
    }
    solve_upper(e, e->gain);
    return -twice / 2;
}

/* How large effects are is told by the trials: a prior that is too narrow takes large ones for noise and shares them out to others. The
 * i-th variance is the squared length of the solution of l x = unit vector i. */
static void fit(hn_effects *e)
{
    static const double scale[] = { 0.5, 1, 2, 4, 8 };
    double best = -HUGE_VAL, at = 1;
    if (e->fitted) return;
    for (int i = 0; i < HN_COUNT(scale); i++) {
        e->scale = scale[i];
        const double evidence = fit_scaled(e);
        if (evidence > best) at = e->scale, best = evidence;
    }
    e->scale = at;
    fit_scaled(e);
    for (int i = 0; i < e->n; i++) {
        double x[HN_EFFECTS_MOST] = { 0 }, sum = 0;
        x[i] = 1;
        solve_lower(e, x);
        for (int k = i; k < e->n; k++) sum += x[k] * x[k];
        e->gain_sd[i] = sqrt(sum);
    }
    e->fitted = true;
}

double hn_effects_gain(hn_effects *e, int i, double *ret_sd)
{
    fit(e);
    *ret_sd = e->gain_sd[i];
    return e->gain[i];
}

double hn_effects_sum(hn_effects *e, uint64_t on)
{
    double sum = 0;
    fit(e);
    for (int i = 0; i < e->n; i++) sum += on >> i & 1 ? e->gain[i] : 0;
    return sum;
}

/* ---- what to try ---- */
void hn_effects_broke(hn_effects *e, uint64_t on)
{
    for (int i = 0; i < e->n; i++) e->broke[i] += (int)(on >> i & 1);
}

/* A change that was in no trial which ran may be what breaks them. */
static bool may_make(const hn_effects *e, int i, int most_broken)
{
    return (e->seen >> i & 1) || e->broke[i] < most_broken;
}

/* Of each group the change that gains most, if any does. */
static uint64_t choose(const hn_effects *e, const double *gain, int most_broken)
{
    int best[HN_EFFECTS_MOST];
    uint64_t on = 0;
    memset(best, -1, sizeof best);
    for (int i = 0; i < e->n; i++) {
        int *b = &best[e->group[i]];
        if (may_make(e, i, most_broken) && gain[i] > 0 && (*b < 0 || gain[i] > gain[*b])) *b = i;
    }
    for (int g = 0; g < e->n_group; g++)
        if (best[g] >= 0) on |= bit(best[g]);
    return on;
}

uint64_t hn_effects_best(hn_effects *e)
{
    fit(e);
    return choose(e, e->gain, 0);
}

/* One of the possible truths, by its probability. */
static uint64_t draw(hn_effects *e, hn_rng *rng)
{
    enum { TOLERATED = 3 }; /* trials: by then it was most likely itself */
    double x[HN_EFFECTS_MOST];
    fit(e);
    for (int i = 0; i < e->n; i++) x[i] = hn_rng_normal(rng);
    solve_upper(e, x);
    for (int i = 0; i < e->n; i++) x[i] += e->gain[i];
    return choose(e, x, TOLERATED);
}

double hn_effects_left(hn_effects *e)
{
    double sum = 0;
    fit(e);
    for (int i = 0; i < e->n; i++) {
        if (!(e->seen >> i & 1)) continue;
        const double z = fabs(e->gain[i]) / e->gain_sd[i];
        sum += e->gain_sd[i] * (exp(-z * z / 2) / sqrt(2 * 3.141592653589793) - z * erfc(z / sqrt(2)) / 2);
    }
    return sum;
}

static bool is_new(hn_effects *e, uint64_t on)
{
    for (int i = 0; i < e->n_tried; i++)
        if (e->tried[i] == on) return false;
    return on != 0;
}

static bool take(hn_effects *e, uint64_t on, uint64_t *ret)
{
    if (!is_new(e, on) || e->n_tried == HN_COUNT(e->tried)) return false;
    e->tried[e->n_tried++] = on;
    *ret = on;
    return true;
}

bool hn_effects_next(hn_effects *e, hn_rng *rng, uint64_t *ret_on, bool *ret_designed)
{
    enum { DRAWS = 64 };
    *ret_designed = true;
    while (e->row < hn_effects_rows(e))
        if (take(e, design_row(e, e->row++, rng), ret_on)) return true;
    *ret_designed = false;
    if (e->n && take(e, hn_effects_best(e), ret_on)) return true;
    for (int i = 0; e->n && i < DRAWS; i++)
        if (take(e, draw(e, rng), ret_on)) return true;
    return false;
}
