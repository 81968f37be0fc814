/*
 * Recognising ops that an exporter spelled out.
 *
 * A pattern is followed upwards from its last node. Every node on the way is noted; at the end the noted nodes must have no
 * reader outside the pattern, or fusing would compute them twice. A failed alternative is undone by putting `n` back.
 */
#ifndef HN_PASS_FOUND_H
#define HN_PASS_FOUND_H

#include "pass/pass.h"

enum { HN_MAX_FOUND = 24 }; /* the longest pattern, attention with casts, has 15 nodes */

typedef struct hn_found {
    const hn_graph *g; /* nodes of other graphs are operands of the pattern */
    const hn_node *node[HN_MAX_FOUND];
    int n;
} hn_found;

/** Start at the pattern's last node. */
void hn_found_init(hn_found *f, const hn_node *last);
/** The node of that op that yields v, noted; NULL when something else does. */
const hn_node *hn_found_op(hn_found *f, const hn_value *v, hn_op op);
/** The same, for an op of two operands of which one is a constant that holds one number; the other operand has the result's
 *  type. Only commutative ops may have the constant first. */
const hn_node *hn_found_with_scalar(hn_found *f, const hn_value *v, hn_op op, hn_value **ret_x, double *ret_c);
/** The same, for a given number: c is what the nearest value of v's dtype to `want` is. */
const hn_node *hn_found_with(hn_found *f, const hn_value *v, hn_op op, double want, hn_value **ret_x);
/** The producer of v, whatever it is, noted once; NULL when it stands elsewhere or is none. */
const hn_node *hn_found_any(hn_found *f, const hn_value *v);
/** Through a cast that loses nothing, from a narrower float type; v itself otherwise. */
hn_value *hn_found_through_widening(hn_found *f, hn_value *v);
/** Through a cast from f32 down to a half type; v itself otherwise. */
hn_value *hn_found_through_narrowing(hn_found *f, hn_value *v);
/** x's square, as x*x or x^2; NULL when v is none. */
hn_value *hn_found_square(hn_found *f, hn_value *v);
/** No noted node has a reader outside the pattern; all results but that of the last node are inside it. */
bool hn_found_is_closed(const hn_found *f);
/** Give what is built from here on the origins of all noted nodes. */
void hn_found_origins(const hn_found *f, hn_builder *b);

/** One number, equal to `want` as the constant's own dtype holds it. */
bool hn_is_number(const hn_value *v, double want);
/** One number; the node's result has the type of its operand x. ret_i is which operand the number is. */
bool hn_scalar_operand(const hn_node *n, hn_value **ret_x, double *ret_c, int *ret_i);

/**
 * v = the reduction of *ret_x by that op, over at least one axis; the reduced axes are there as 1s, kept or put back by a
 * reshape. The axes are the reduction's own list.
 */
bool hn_found_reduced(hn_found *f, hn_value *v, hn_op op, hn_value **ret_x, const int64_t **ret_axes, int *ret_n);

/* ---- normalisation over the last axes ---- */
typedef struct hn_norm_form {
    hn_value *x; /* what is divided by its root mean square */
    int axis;    /* the first axis of the mean */
    double eps;
} hn_norm_form;

/** v = the mean of *ret_x over its last axes, kept as 1s. */
bool hn_found_mean(hn_found *f, hn_value *v, hn_value **ret_x, int *ret_axis);
/** v = 1 / sqrt(mean(x^2) + eps), in any spelling; x as the square reads it. */
bool hn_found_inverse_rms(hn_found *f, hn_value *v, hn_norm_form *ret);
/** The noted node n = x / sqrt(mean(x^2) + eps); the mean may be taken in a wider type than x has. */
bool hn_found_normalised(hn_found *f, const hn_node *n, hn_norm_form *ret);
/** w may be a scale or bias of a normalisation of x from `axis` on: of x's dtype, and alike in every line. */
bool hn_norm_takes(const hn_value *w, const hn_value *x, int axis);

/**
 * n = norm(x) * w or norm(x, w?) + b, where the normalisation (of that op) has no other reader: let it scale or shift by
 * itself. True when it did.
 */
bool hn_norm_absorb(hn_builder *b, hn_node *n, hn_pass_ctx *c, hn_op op, hn_knob knob);

#endif
