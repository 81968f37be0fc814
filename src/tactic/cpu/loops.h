/* Loop shapes that several tactics share. */
#ifndef HN_TACTIC_CPU_LOOPS_H
#define HN_TACTIC_CPU_LOOPS_H

#include "tactic/lower.h"

/** Axis that lies densest in v's storage; -1 for rank 0. */
int hn_loops_dense_axis(const hn_value *v);
/** Product of the extents of the axes whose bit is set. */
hn_dim hn_loops_extent(const hn_region *r, const hn_value *v, uint32_t axes);
/** Split a flat index over the axes of v whose bit is set, in logical order; other entries of at[] are left alone. */
void hn_loops_split(hn_lower *l, const hn_value *v, uint32_t axes, hn_kv flat, hn_kv *at);
/** Open one loop per set axis of v, outermost first; fills at[]. Yields how many to close. */
int hn_loops_open(hn_lower *l, const hn_value *v, uint32_t axes, hn_kv *at);
void hn_loops_close(hn_lower *l, int n);
/** Bits of all axes of v. */
uint32_t hn_loops_all(const hn_value *v);

#endif
