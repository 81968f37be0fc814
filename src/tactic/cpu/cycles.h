/* Predicting register-blocked kernels in cycles: ranks the points of a space, measured time decides. */
#ifndef HN_TACTIC_CPU_CYCLES_H
#define HN_TACTIC_CPU_CYCLES_H

#include "tactic/tactic.h"

/** Clock that the measured multiply-add peak stands for, in cycles a nanosecond. */
double hn_cycles_ghz(const hn_target *t);
/** One reduction step of a tile: mr broadcasts times nv vectors of vl lanes, over `depth` steps in all, into `split` sums an
 *  accumulator. */
double hn_cycles_step(const hn_target *t, int64_t mr, int64_t nv, int64_t vl, int64_t depth, int split);
/** Sums that each accumulator of a tile of `chains` is split into, a power of two: eight chains hide the latency of two
 *  multiply-add pipes. Many short sums also round less than one long one. */
int hn_cycles_split(int64_t chains, int64_t depth);
/** Slowdown when mr streams lie `stride` bytes apart: those that share a cache set drive each other out. */
double hn_cycles_conflict(const hn_target *t, int64_t mr, int64_t stride);

#endif
