/* Shared by passes that fold per-channel constants. */
#ifndef HN_PASS_PASS_INT_H
#define HN_PASS_PASS_INT_H

#include "pass/pass.h"

/** s is a finite float constant that varies along `axis` of y at most, and broadcasting it to y leaves y's type alone. */
bool hn_pass_per_axis(const hn_value *s, const hn_value *y, int axis);
/** A constant of hn_pass_per_axis as [1, .., n or 1, .., 1] of that rank, its elements along `axis`. */
hn_value *hn_pass_along(hn_builder *b, hn_value *s, int rank, int axis);
/** Split the operands of a two-operand node into a computed one and a constant, whichever way round; false when not so. */
bool hn_pass_with_const(const hn_node *n, hn_value **ret_x, hn_value **ret_const);

#endif
