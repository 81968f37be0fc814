/* Predicting register-blocked kernels in cycles. */
#include "tactic/cpu/cycles.h"

#include <math.h>

/* 512-bit registers: one multiply-add a cycle on the cores we know (two halves on Zen 4); narrower ones: two.
 */
static double fma_per_cycle(const hn_target *t)
{
    return t->vec_bytes > 32 ? 1 : 2;
}

double hn_cycles_ghz(const hn_target *t)
{
    return t->peak_gflops / (2 * fma_per_cycle(t) * t->vec_bytes / 4);
}

/* Multiply-adds, their latency, the loads that feed them, and panel vectors that come from the second level
 * because a panel is more than half the first. A small share of the loads shows even where they hide. */
double hn_cycles_step(const hn_target *t, int64_t mr, int64_t nv, int64_t vl, int64_t depth, int split)
{
    enum { LATENCY = 4, L2_BYTES_PER_CYCLE = 20 };
    const double fma = (double)(mr * nv) * (double)vl * 4 / t->vec_bytes / fma_per_cycle(t);
    const double load = ((double)mr + (double)nv * (vl > 8 ? 2 : 1)) / 2;
    const double l2 = 4 * depth * nv * vl > t->l1d_bytes / 2 ? (double)(nv * vl * 4) / L2_BYTES_PER_CYCLE : 0;
    return fmax(fmax(fma, l2), fmax((double)LATENCY / split, load)) + 0.02 * load;
}

int hn_cycles_split(int64_t chains, int64_t depth)
{
    enum { ENOUGH = 8, LEAST_DEPTH = 16 };
    int split = 1;
    while (chains * split < ENOUGH && split * LEAST_DEPTH <= depth)
        split *= 2;
    return split;
}

double hn_cycles_conflict(const hn_target *t, int64_t mr, int64_t stride)
{
    enum { WAYS = 8, LEFT_FOR_STREAMS = 6 };
    const int64_t span = t->l1d_bytes / WAYS, low = stride & -stride;
    const int64_t sets = HN_MAX(1, span / HN_MIN(span, HN_MAX(low, t->line_bytes)));
    return (mr + sets - 1) / sets > LEFT_FOR_STREAMS ? 3 : 1;
}
