/* Inside lowering: state shared by lower.c, lower_op.c and lower_view.c. */
#ifndef HN_TACTIC_LOWER_INT_H
#define HN_TACTIC_LOWER_INT_H

#include "tactic/lower.h"

typedef struct hn_memo {
    const hn_value *value;
    hn_kidx idx;
    hn_kv mask, x;
} hn_memo;

typedef struct hn_fault_site {
    const hn_node *node;
    int axis;
} hn_fault_site;

typedef struct hn_dim_arg {
    hn_dim dim;
    hn_kv value;
} hn_dim_arg;

struct hn_lower {
    hn_arena *a;
    hn_kb *b;
    const hn_region *r;
    const hn_target *t;
    int *in_buf, *out_buf; /* -1: not declared yet */
    HN_VEC(hn_ref) params; /* in declaration order */
    HN_VEC(hn_dim) args;
    HN_VEC(hn_dim_arg) dims;
    HN_VEC(hn_memo) memo, seeds;
    HN_VEC(hn_fault_site) faults;
    int fault_buf; /* -1: not declared yet */
    int small_table[HN_NDTYPES]; /* decoding tables: buffer + 1 */
};

/** Index of operand `i` of pointwise node n when n's result is asked at idx. */
void hn_lower_broadcast_idx(hn_lower *l, const hn_value *operand, const hn_value *result, const hn_kidx *idx, hn_kidx *ret);
/** Evaluate a view, gather or generator at idx; NONE when the op is no such thing. */
hn_kv hn_lower_view(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask);
/** Axis a of idx as an i64 vector of idx->lanes (a scalar when lanes is 1). */
hn_kv hn_kidx_axis(hn_lower *l, const hn_kidx *idx, int a);
/** True when axis a is the same for all lanes. */
bool hn_kidx_uniform(const hn_kidx *idx, int a);
/** Make axis a all-lanes-equal at x, or the vector x. */
void hn_kidx_set(hn_kidx *idx, int a, hn_kv x, int64_t step, bool is_vec);

/* lower_small.c: floats of 8 and 4 bits, integers of 4 and 2 */
bool hn_small_is(hn_dtype t);
/** Several elements share a byte. */
bool hn_small_is_packed(hn_dtype t);
/** u8 codes to values of the computing type, and back. */
hn_kv hn_small_decode(hn_lower *l, hn_kv code, hn_dtype t);
hn_kv hn_small_encode(hn_lower *l, hn_kv x, hn_dtype t, bool saturate);
/** What storing x as t and loading it again yields. */
hn_kv hn_small_round(hn_lower *l, hn_kv x, hn_dtype t, bool saturate);
/** Element(s) number `at` of a packed buffer. */
hn_kv hn_small_load_packed(hn_lower *l, int buf, hn_kv at, hn_dtype t, hn_kv mask);
/** One element. The elements of a byte must be stored in order, by one call: the first one clears the byte. */
void hn_small_store_packed(hn_lower *l, int buf, hn_kv at, hn_kv x, hn_dtype t);

#endif
