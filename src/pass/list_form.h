/*
 * Lists as tensors. A list of tensors, or an optional, is two of them:
 *
 *     flat [total]         the elements one after another, each row-major
 *     shapes i64[n, 11]    a row an element: its rank, its extents, ones to the end
 *
 * A sequence that is absent (of an optional one) has one row of rank -1 with zeros behind it. The same form carries lists into and
 * out of an engine (docs/onnx-decisions.md).
 */
#ifndef HN_PASS_LIST_FORM_H
#define HN_PASS_LIST_FORM_H

#include "ir/ir.h"

typedef struct hn_list {
    hn_value *flat, *shapes; /* NULL: building failed */
} hn_list;

/** Elements x[0..n), tensors of the dtype. */
hn_list hn_list_make(hn_builder *b, hn_dtype t, int n, hn_value *const *x);
hn_list hn_list_absent(hn_builder *b, hn_dtype t);
/** The element at a position (NULL: the first) as a tensor of `type`, whose known extents stay. */
hn_value *hn_list_at(hn_builder *b, hn_list l, hn_value *position, const hn_tdesc *type);
/** With x before a position; NULL: at the end. */
hn_list hn_list_insert(hn_builder *b, hn_list l, hn_value *x, hn_value *position);
/** Without the element at a position; NULL: the last. */
hn_list hn_list_erase(hn_builder *b, hn_list l, hn_value *position);
hn_value *hn_list_length(hn_builder *b, hn_list l);
/** Bool: has elements (an optional), or is not absent (a sequence). */
hn_value *hn_list_is_there(hn_builder *b, hn_list l, hn_vkind kind);
/** A sequence that may be absent as one that is not: no elements instead. */
hn_list hn_list_or_empty(hn_builder *b, hn_list l);
/** All elements joined along an axis, or stacked on a new one; `element` is what is known of them. */
hn_value *hn_list_join(hn_builder *b, hn_list l, const hn_tdesc *element, int axis, bool new_axis);
/** x cut along an axis: by lengths (rank 1), evenly (rank 0), or into single slices (NULL) whose axis goes when `drop`. */
hn_list hn_list_cut(hn_builder *b, hn_value *x, hn_value *length, int axis, bool drop);

#endif
