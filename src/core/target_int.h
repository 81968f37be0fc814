#ifndef HN_CORE_TARGET_INT_H
#define HN_CORE_TARGET_INT_H

#include "core/target.h"

/** feat less what a $HONE_CPU_FEATURES text takes away, and less what then lacks its prerequisites. */
uint64_t hn_target_mask_(uint64_t feat, const char *mask);

/** f32 multiply-add peak of one core with these features, GFLOP/s; measured anew (about 10 ms). */
double hn_probe_peak_(uint64_t feat);
/** One core's streaming read bandwidth, GB/s, over a buffer of twice l3_bytes within 32..128 MiB; 0 without
 * memory. */
double hn_probe_bandwidth_(int64_t l3_bytes);

#endif
