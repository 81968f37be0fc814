/* Order of elements as the ops that search and sort see it, and sorting loops. */
#ifndef HN_TACTIC_CPU_ORDER_H
#define HN_TACTIC_CPU_ORDER_H

#include "tactic/lower.h"

/** Dtype of the keys of elements of this computing type: i32 where that is enough, else i64. */
hn_dtype hn_order_key_type(hn_dtype t);
/**
 * Signed integers that compare as the elements do: NaN largest and equal to itself, -0 equal to +0. The
 * bitwise complement of a key orders the other way round.
 */
hn_kv hn_order_key(hn_kb *b, hn_kv x);
/** Lowest integer of a key type. */
hn_kv hn_order_lowest(hn_kb *b, hn_dtype key, int lanes);

/**
 * Yields whether element `y` must come before `x`, which stands before it now; both are i64 element numbers.
 * A sort with it is stable.
 */
typedef hn_kv (*hn_order_before)(hn_kb *b, hn_kv y, hn_kv x, void *user);
/**
 * Sort the n numbers in scratch buffer `a` (i64) by merging runs of 1, 2, 4 ...; `t` is as large. Yields, as
 * a variable, 0 when the result is in a, 1 when it is in t.
 */
hn_kvar hn_order_sort(hn_kb *b, int a, int t, hn_kv n, hn_order_before before, void *user);
/** Element i of whichever of two buffers `which` names. */
hn_kv hn_order_at(hn_kb *b, int a, int t, hn_kvar which, hn_kv i);

#endif
