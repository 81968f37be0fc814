/* Shared by passes. */
#ifndef HN_PASS_PASS_INT_H
#define HN_PASS_PASS_INT_H

#include "pass/pass.h"

/** s is a finite float constant that varies along `axis` of y at most, and broadcasting it to y leaves y's type alone. */
bool hn_pass_per_axis(const hn_value *s, const hn_value *y, int axis);
/** A constant of hn_pass_per_axis as [1, .., n or 1, .., 1] of that rank, its elements along `axis`. */
hn_value *hn_pass_along(hn_builder *b, hn_value *s, int rank, int axis);
/** Split the operands of a two-operand node into a computed one and a constant, whichever way round; false when not so. */
bool hn_pass_with_const(const hn_node *n, hn_value **ret_x, hn_value **ret_const);

/* ---- bodies (inline_body.c) ---- */
enum { HN_INLINE_IN = 256 }; /* most operands of a node that is copied */
/** No body of its own, no result whose extents depend on data, no longer operand list. */
bool hn_pass_can_inline(const hn_graph *body);
/**
 * Copy the body's nodes to the builder's cursor. at[] maps ids of the body's values to values of the builder's graph: the
 * caller sets the parameters', this the results'. False when building failed.
 */
bool hn_pass_inline(hn_builder *b, const hn_graph *body, hn_value **at);
/** What stands for v, a value of the body or one around it. Constants of the body are copied once. */
hn_value *hn_pass_inlined(hn_builder *b, const hn_graph *body, hn_value **at, hn_value *v);

#endif
