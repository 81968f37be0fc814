/* Lowering of a region's pointwise and view nodes into kernel IR, shared by every generated tactic.
 *
 * A value is evaluated lazily at an index: pointwise nodes evaluate their operands at the same index (broadcast axes at 0),
 * views rewrite the index (transpose permutes, slice scales and shifts, broadcast drops, reshape linearises and splits, pad
 * and concat select), operands load. The root's value is seeded by the tactic (accumulators), so the same call applies
 * epilogues of any kind:
 *
 *     acc = ...;  hn_lower_seed(l, root_out, acc);  hn_lower_store(l, &idx, mask);
 */
#ifndef HN_TACTIC_LOWER_H
#define HN_TACTIC_LOWER_H

#include "tactic/tactic.h"

/**
 * A place in a value's logical index space, for `lanes` elements at once. Axis a is at[a] + lane * step[a] with a scalar
 * i64 at[a]; where an index is no such progression (split by a reshape, read from a tensor) it stands in vec[a], i64 of
 * `lanes`, and at[a] is unused. A tactic that walks blocked storage says so: at[a] == outer[a] * block[a] + inner, which
 * spares divisions where a layout has that block.
 */
typedef struct hn_kidx {
    int rank, lanes;
    bool aligned; /* at[] of the axis with step 1 is a multiple of lanes */
    hn_kv at[HN_MAX_RANK];
    int64_t step[HN_MAX_RANK];
    hn_kv vec[HN_MAX_RANK];
    int block[HN_MAX_RANK]; /* 0: unknown */
    hn_kv outer[HN_MAX_RANK], inner[HN_MAX_RANK];
} hn_kidx;

typedef struct hn_lower hn_lower;

/** Declares the parameter buffers (operands, then results) and one i64 argument per symbol that the region uses. */
hn_lower *hn_lower_new(hn_arena *a, hn_kb *b, const hn_region *r, const hn_target *t);
hn_kb *hn_lower_kb(hn_lower *l);
/** Buffer numbers for hand-written loads and stores. An operand's declared on first request. */
int hn_lower_in(hn_lower *l, int operand);
int hn_lower_out(hn_lower *l, int result);
int hn_lower_temp(hn_lower *l, int temp, hn_dtype t, bool write);
int hn_lower_blob(hn_lower *l, int blob, hn_dtype t);
/**
 * Where `good` does not hold, index i (an i64 of the same lanes) lies outside an axis of this extent: the run will fail and name both.
 * node and axis tell this place from others of the kernel.
 */
void hn_lower_check(hn_lower *l, const hn_node *node, int axis, hn_kv i, hn_kv good, hn_kv extent);
/** A dim as an i64 value (constants fold; symbols become arguments; expressions become arguments of their own). */
hn_kv hn_lower_dim(hn_lower *l, hn_dim d);
/** Place `at` along an axis of the result in an operand whose extent is `own` where the result's is `whole`: 0 where that is 1,
 * which the run may show. (The plan checks that it is nothing else.) */
hn_kv hn_lower_stretch(hn_lower *l, hn_kv at, hn_dim own, hn_dim whole);
/** Row-major physical strides in elements of a value under its layout, one per layout entry, as i64 values. */
void hn_lower_strides(hn_lower *l, const hn_value *v, hn_kv *ret);

/** Arithmetic type in which a dtype is computed: f16, bf16 and smaller floats as f32; others as themselves. */
hn_dtype hn_lower_compute_type(hn_dtype t);
/** Element(s) of v at idx in its compute type. mask: bool of idx->lanes or HN_KV_NONE; masked-off lanes are not loaded. */
hn_kv hn_lower_value(hn_lower *l, const hn_value *v, const hn_kidx *idx, hn_kv mask);
/** Drop remembered subexpressions: call when the block they were made in ends. Seeds stay. */
void hn_lower_forget(hn_lower *l);
/** From here on v evaluates to x wherever asked (the tactic guarantees that it asks at x's index only). Forget with NONE. */
void hn_lower_seed(hn_lower *l, const hn_value *v, hn_kv x);
/** Evaluate every result at idx and store it. idx is in the results' common logical index space. */
void hn_lower_store(hn_lower *l, const hn_kidx *idx, hn_kv mask);
/** Store x as element(s) of result `out` (converts to its dtype, places by its layout). */
void hn_lower_store_value(hn_lower *l, int out, const hn_kidx *idx, hn_kv x, hn_kv mask);
/** One pointwise op on computed operands (arithmetic as ops.def defines it); NONE when the op is not pointwise. */
hn_kv hn_lower_op(hn_lower *l, const hn_node *n, const hn_kv *operand);
/** Uniform number in [0,1) for element number i (i64) of a random tensor with this seed, as src/op defines it; type t. */
hn_kv hn_lower_uniform(hn_lower *l, int64_t seed, hn_kv i, hn_dtype t);
/** Dtypes that lowering loads, computes and stores. */
bool hn_lower_dtype_ok(hn_dtype t);
/** Primitive pointwise ops, and views (gathers and generators too) that lowering rewrites into index arithmetic. */
bool hn_lower_is_pointwise(const hn_node *n);
bool hn_lower_is_view(const hn_node *n);
/** True when every node but `root` is pointwise or a foldable view, over dtypes that lowering knows. */
bool hn_lower_can(const hn_region *r, const hn_node *root);
/** Vector lanes for a dtype on a target: vec_bytes over the compute type's size, on a GPU over that of halves as stored. */
int hn_lower_lanes(const hn_target *t, hn_dtype dtype);

/** An index over a rank-n space from loop variables; all scalar, lanes 1. */
void hn_kidx_init(hn_kidx *i, int rank, const hn_kv *at);
/** The same with `lanes` along `axis`. */
void hn_kidx_vector(hn_kidx *i, int axis, int lanes);

/** Finish the kernel and append it to the emission as a launch with its buffer and argument lists. */
hone_status hn_lower_finish(hn_lower *l, hn_emission *e, double flops, double bytes, hn_diag *dg);
/** The same for the only launch of a region: its work is the region's. */
hone_status hn_lower_finish_whole(hn_lower *l, hn_emission *e, hn_diag *dg);

#endif
