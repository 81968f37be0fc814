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
/** Element of v at an index of one entry an axis, lowered anew: nothing is remembered from before, nor for what follows. */
hn_kv hn_loops_element(hn_lower *l, const hn_value *v, const hn_kv *at);
/** Number of the stored element of v at an index of one entry an axis; v's layout has no blocks. */
hn_kv hn_loops_place(hn_lower *l, const hn_value *v, const hn_kv *at);
/** How far apart, in stored elements, neighbours along the axis are; v's layout has no blocks. */
hn_kv hn_loops_stride(hn_lower *l, const hn_value *v, int axis);
/** No axis of v is cut into blocks. */
bool hn_loops_unblocked(const hn_value *v);
/**
 * Cover the places [lo, hi) with tiles of `most` places. Where both ends are constants the rest has a tile of its own size; else the
 * last tile moves back over places that are done (tiles must store the same values twice), and fewer than `most` are done singly.
 */
void hn_loops_cover(hn_kb *b, hn_kv lo, hn_kv hi, int most, void (*tile)(void *user, int places, hn_kv at), void *user);
/** Window attributes of a convolution or pool, one entry a spatial axis; absent lists read as 1, 1 and 0. */
typedef struct hn_loops_window {
    int n; /* spatial axes */
    int64_t stride[HN_MAX_RANK], dilation[HN_MAX_RANK];
    hn_dim pad[HN_MAX_RANK]; /* at the beginning */
} hn_loops_window;
void hn_loops_window_of(const hn_node *n, hn_loops_window *ret);
/**
 * Input index of every spatial axis (entries 2..) for a result index and a tap; yields whether all are inside, or
 * HN_KV_NONE when no axis needs a check.
 */
hn_kv hn_loops_tap(hn_lower *l, const hn_loops_window *w, const hn_value *x, const hn_kv *result, const hn_kv *tap, hn_kv *at);
/** Which of the region's results output k of the root is; -1: none, nobody reads it. */
int hn_loops_result(const hn_region *r, int k);
/** Bits of all axes of v. */
uint32_t hn_loops_all(const hn_value *v);

/** What a reduction combines with: a KIR op; -1 for other ops. */
int hn_loops_reduction(int op);
/** Bits of the axes that reduction n folds. */
uint32_t hn_loops_reduced_axes(const hn_node *n);
/** Index of the result of reduction n that at[], an index of its operand, belongs to; lanes 1. */
void hn_loops_reduced_idx(hn_lower *l, const hn_node *n, const hn_kv *at, hn_kidx *ret);
/** The value that changes nothing when a reduction's KIR op combines it with any other. */
hn_kv hn_loops_identity(hn_kb *b, int op, hn_dtype t, int lanes);

#endif
