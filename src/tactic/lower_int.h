/* Inside lowering: state shared by lower.c, lower_op.c and lower_view.c. */
#ifndef HN_TACTIC_LOWER_INT_H
#define HN_TACTIC_LOWER_INT_H

#include "tactic/lower.h"

typedef struct hn_memo {
    const hn_value *value;
    hn_kidx idx;
    hn_kv mask, x;
} hn_memo;

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


#endif
