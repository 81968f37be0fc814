/* Building expansions: one short call a primitive. Every helper passes NULL through once the builder has
 * failed. */
#ifndef HN_OP_EXPAND_INT_H
#define HN_OP_EXPAND_INT_H

#include "op/op_int.h"

#define HN_X_UNARY(name_)                                                                                    \
    static inline hn_value *x_##name_(hn_builder *b, hn_value *x)                                            \
    {                                                                                                        \
        return hn_b1(b, HN_OP_##name_, x, HN_NO_ATTRS);                                                      \
    }
HN_X_UNARY(neg)
HN_X_UNARY(abs)
HN_X_UNARY(floor)
HN_X_UNARY(ceil)
HN_X_UNARY(round)
HN_X_UNARY(sqrt)
HN_X_UNARY(exp)
HN_X_UNARY(log)
HN_X_UNARY(sin)
HN_X_UNARY(cos)
HN_X_UNARY(tanh)
HN_X_UNARY(erf)
HN_X_UNARY(relu)
HN_X_UNARY(sigmoid)
HN_X_UNARY(not )
#undef HN_X_UNARY

#define HN_X_BINARY(name_)                                                                                   \
    static inline hn_value *x_##name_(hn_builder *b, hn_value *x, hn_value *y)                               \
    {                                                                                                        \
        return hn_b2(b, HN_OP_##name_, x, y, HN_NO_ATTRS);                                                   \
    }                                                                                                        \
    static inline hn_value *x_##name_##_k(hn_builder *b, hn_value *x, double k)                              \
    {                                                                                                        \
        return hn_b2(b, HN_OP_##name_, x, x_k(b, x, k), HN_NO_ATTRS);                                        \
    }

/** A rank-0 constant of x's dtype. */
static inline hn_value *x_k(hn_builder *b, const hn_value *x, double k)
{
    if (!x) return NULL;
    return hn_dtype_is_float(x->type.dtype) ? hn_const_f(b, x->type.dtype, k)
                                            : hn_const_i(b, x->type.dtype, (int64_t)k);
}
HN_X_BINARY(add)
HN_X_BINARY(sub)
HN_X_BINARY(mul)
HN_X_BINARY(div)
HN_X_BINARY(mod)
HN_X_BINARY(pow)
HN_X_BINARY(min)
HN_X_BINARY(max)
HN_X_BINARY(eq)
HN_X_BINARY(lt)
HN_X_BINARY(le)
HN_X_BINARY(gt)
HN_X_BINARY(ge)
#undef HN_X_BINARY
static inline hn_value *x_and(hn_builder *b, hn_value *x, hn_value *y)
{
    return hn_b2(b, HN_OP_and, x, y, HN_NO_ATTRS);
}
static inline hn_value *x_or(hn_builder *b, hn_value *x, hn_value *y)
{
    return hn_b2(b, HN_OP_or, x, y, HN_NO_ATTRS);
}
static inline hn_value *x_select(hn_builder *b, hn_value *cond, hn_value *x, hn_value *y)
{
    return hn_b3(b, HN_OP_select, cond, x, y, HN_NO_ATTRS);
}
/** min(max(x, lo), hi) with constant bounds. */
static inline hn_value *x_clip(hn_builder *b, hn_value *x, double lo, double hi)
{
    return hn_b3(b, HN_OP_clip, x, x_k(b, x, lo), x_k(b, x, hi), HN_NO_ATTRS);
}

/** The dtype that expansions compute in: f64 stays, narrower floats become f32. */
static inline hn_dtype x_ctype(hn_dtype t)
{
    return t == HN_F64 ? HN_F64 : HN_F32;
}
/** Cast unless it is of that dtype already. */
hn_value *x_cast(hn_builder *b, hn_value *x, hn_dtype t);
/** x in its computing dtype. */
hn_value *x_up(hn_builder *b, hn_value *x);

/** Reduction over one axis / over n axes. */
hn_value *x_reduce1(hn_builder *b, hn_op op, hn_value *x, int axis, bool keep);
hn_value *x_reduce(hn_builder *b, hn_op op, hn_value *x, int n, const int64_t *axes, bool keep);
/** Axes first..rank-1. */
hn_value *x_reduce_from(hn_builder *b, hn_op op, hn_value *x, int first, bool keep);

/** A vector laid along one axis of a tensor of this rank: [1,..,n,..,1]. */
hn_value *x_along(hn_builder *b, hn_value *vec, int rank, int axis);
/** Insert / drop a 1-long axis. */
hn_value *x_unsqueeze(hn_builder *b, hn_value *x, int axis);
hn_value *x_squeeze(hn_builder *b, hn_value *x, int axis);
/** Swap two axes. */
hn_value *x_swap(hn_builder *b, hn_value *x, int i, int j);
/** x[start + i*step] along an axis, `len` long. */
hn_value *x_slice_step(hn_builder *b, hn_value *x, int axis, hn_dim start, int64_t step, hn_dim len);
hn_value *x_reverse(hn_builder *b, hn_value *x, int axis);
/** Zero padding of one axis. */
hn_value *x_pad0(hn_builder *b, hn_value *x, int axis, hn_dim before, hn_dim after);
hn_value *x_concat(hn_builder *b, int n, hn_value *const *x, int axis);
hn_value *x_concat2(hn_builder *b, hn_value *x, hn_value *y, int axis);
hn_value *x_gather(hn_builder *b, hn_value *x, hn_value *index, int axis);
hn_value *x_matmul(hn_builder *b, hn_value *x, hn_value *y, bool trans_x, bool trans_y);
/** 0, 1, ... n-1 laid along one axis of a tensor of this rank. */
hn_value *x_iota(hn_builder *b, hn_dtype t, int rank, int axis, hn_dim n);
/** A filled tensor. */
hn_value *x_full(hn_builder *b, hn_dtype t, int rank, const hn_dim *dim, double v);
/** A symbolic or known dim as a rank-0 value of dtype t. */
hn_value *x_dim(hn_builder *b, hn_dtype t, hn_dim d);

/** Dim shorthands over the builder's symbols. */
static inline hn_dim x_dmul(hn_builder *b, hn_dim p, hn_dim q)
{
    return hn_dim_mul(b->g->syms, p, q);
}
static inline hn_dim x_dadd(hn_builder *b, hn_dim p, hn_dim q)
{
    return hn_dim_add(b->g->syms, p, q);
}
static inline hn_dim x_dsub(hn_builder *b, hn_dim p, hn_dim q)
{
    return hn_dim_sub(b->g->syms, p, q);
}
/** Product of dims [first, end). */
hn_dim x_dprod(hn_builder *b, const hn_tdesc *t, int first, int end);

/** One round of a loop while it is built: see x_loop. */
enum { X_MAX_CARRIED = 8 };
typedef struct x_loop_ctx {
    hn_builder *b;      /* building inside the body */
    hn_value *iter;     /* i64[] */
    hn_value **carried; /* the round's values */
    hn_value *
        *next; /* what the round makes of them, then one round of each scan output; the callback fills it */
    const void *user;
} x_loop_ctx;
typedef struct x_loop_spec {
    hn_value *trip;             /* i64[] rounds */
    int n_carried, n_scan;      /* together at most X_MAX_CARRIED */
    hn_value *const *init;      /* carried values; their types must not change */
    void (*fill)(x_loop_ctx *); /* builds one round; may read values from outside */
    const void *user;
} x_loop_spec;
/** Final carried values, then scan outputs stacked on a new axis 0; NULL entries once the builder has failed.
 */
void x_loop(hn_builder *b, const x_loop_spec *spec, hn_value **ret);

/** Finish an expansion: the builder's status. */
static inline hone_status x_done(hn_builder *b)
{
    return b->status;
}

#endif
