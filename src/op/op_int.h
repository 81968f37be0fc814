/* Shared by the op files: schema rows, checks for inference, walking of working-form tensors, tolerances,
 * work. */
#ifndef HN_OP_OP_INT_H
#define HN_OP_OP_INT_H

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ir/op.h"

/* Every op's definition, hn_op_<name>, each in its own file; declared here so that each file sees a
 * prototype. */
#define X(id_, name_) extern const hn_op_def hn_op_##name_;
#include "ir/ops.def"
#undef X

/** The first fields of a definition: `const hn_op_def hn_op_neg = { HN_OP_ID(neg, 1, 1, 1, 1), .doc = ... };`
 */
#define HN_OP_ID(name_, min_in_, max_in_, min_out_, max_out_)                                                \
    .id = HN_OP_##name_, .name = #name_, .min_in = (min_in_), .max_in = (max_in_), .min_out = (min_out_),    \
    .max_out = (max_out_)

/* ---- schema rows: .attrs and .n_attr at once; enumerate the indices beside it (`enum { AXIS, KEEP };`) ----
 */
#define HN_OP_ATTRS(...)                                                                                     \
    .attrs = { __VA_ARGS__ },                                                                                \
    .n_attr = (int)(sizeof((hn_attr_schema[]){ __VA_ARGS__ }) / sizeof(hn_attr_schema))
#define HN_S_INT(name_, d_)                                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_INT, .dflt_i = (d_)                                                 \
    }
#define HN_S_INT_REQ(name_)                                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_INT, .required = true                                               \
    }
#define HN_S_ENUM(name_, d_, values_)                                                                        \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_INT, .dflt_i = (d_), .values = (values_)                            \
    }
#define HN_S_FLOAT(name_, d_)                                                                                \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_FLOAT, .dflt_f = (d_)                                               \
    }
#define HN_S_INTS(name_)                                                                                     \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_INTS                                                                \
    } /* default: empty */
#define HN_S_INTS_REQ(name_)                                                                                 \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_INTS, .required = true                                              \
    }
#define HN_S_FLOATS(name_)                                                                                   \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_FLOATS                                                              \
    }
#define HN_S_DIM_REQ(name_)                                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DIM, .required = true                                               \
    }
#define HN_S_DIM(name_, d_)                                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DIM, .dflt_i = (d_)                                                 \
    }
#define HN_S_DIMS(name_)                                                                                     \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DIMS                                                                \
    }
#define HN_S_DIMS_REQ(name_)                                                                                 \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DIMS, .required = true                                              \
    }
#define HN_S_DTYPE(name_, d_)                                                                                \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DTYPE, .dflt_i = (d_)                                               \
    }
#define HN_S_DTYPE_REQ(name_)                                                                                \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_DTYPE, .required = true                                             \
    }
#define HN_S_STR(name_, d_)                                                                                  \
    {                                                                                                        \
        .name = (name_), .kind = HN_ATTR_STR, .dflt_s = (d_)                                                 \
    }

/* ---- tolerances ---- */
/**
 * k correctly rounded steps in the output's dtype: rel = k * unit roundoff, abs = k * half the subnormal
 * spacing. For an op whose reference is exact up to double rounding, k counts the roundings (and, for
 * transcendental functions, the allowance in half-ulps) of a kernel computing in that dtype. Kernels
 * computing halves in f32 stay well inside.
 */
#define HN_OP_TOL(k_)                                                                                        \
    {                                                                                                        \
        [HN_F64] = { .rel = (k_)*0x1p-53, .abs = (k_)*0x1p-1074 },                                           \
        [HN_F32] = { .rel = (k_)*0x1p-24, .abs = (k_)*0x1p-150 },                                            \
        [HN_F16] = { .rel = (k_)*0x1p-11, .abs = (k_)*0x1p-25 },                                             \
        [HN_BF16] = { .rel = (k_)*0x1p-8, .abs = (k_)*0x1p-134 },                                            \
        [HN_F8E4M3FN] = { .rel = (k_)*0x1p-4, .abs = (k_)*0x1p-10 },                                         \
        [HN_F8E4M3FNUZ] = { .rel = (k_)*0x1p-4, .abs = (k_)*0x1p-11 },                                       \
        [HN_F8E5M2] = { .rel = (k_)*0x1p-3, .abs = (k_)*0x1p-17 },                                           \
        [HN_F8E5M2FNUZ] = { .rel = (k_)*0x1p-3, .abs = (k_)*0x1p-18 },                                       \
        [HN_F8E8M0] = { .rel = (k_)*0x1p-1, .abs = 0 },                                                      \
        [HN_F4E2M1] = { .rel = (k_)*0x1p-2, .abs = (k_)*0.25 },                                              \
    }
/**
 * A sum of products or terms done in the dtype or wider: rel_ of the magnitude that the operands' scale
 * gives. Since sums cancel, the bound is absolute: abs_ roundings of a value of the size of 1, for test
 * operands within [-1, 1] and up to 4096 terms whose rounding errors add like a random walk (sqrt(4096) = 64
 * half-ulps).
 */
#define HN_OP_TOL_SUM(rel_, abs_)                                                                            \
    {                                                                                                        \
        [HN_F64] = { .rel = (rel_)*0x1p-53, .abs = (abs_)*0x1p-53 },                                         \
        [HN_F32] = { .rel = (rel_)*0x1p-24, .abs = (abs_)*0x1p-24 },                                         \
        [HN_F16] = { .rel = (rel_)*0x1p-11, .abs = (abs_)*0x1p-11 },                                         \
        [HN_BF16] = { .rel = (rel_)*0x1p-8, .abs = (abs_)*0x1p-8 },                                          \
        [HN_F8E4M3FN] = { .rel = (rel_)*0x1p-4, .abs = (abs_)*0x1p-4 },                                      \
        [HN_F8E4M3FNUZ] = { .rel = (rel_)*0x1p-4, .abs = (abs_)*0x1p-4 },                                    \
        [HN_F8E5M2] = { .rel = (rel_)*0x1p-3, .abs = (abs_)*0x1p-3 },                                        \
        [HN_F8E5M2FNUZ] = { .rel = (rel_)*0x1p-3, .abs = (abs_)*0x1p-3 },                                    \
    }

/* ---- checks for inference; operands are counted from 0 in messages ---- */
static inline bool hn_op_has(const hn_call *c, int i)
{
    return i < c->n_in && c->in[i].dtype != HN_NONE;
}
/** Operand i is present. */
hone_status hn_op_want(const hn_call *c, int i, hn_diag *dg);
/** Operand i is present, and no sequence or optional. Those below that ask for a rank ask for a tensor. */
hone_status hn_op_want_tensor(const hn_call *c, int i, hn_diag *dg);
/** Operand i is present and of a float dtype / an integer dtype (bool excluded) / float or integer / exactly
 * t. */
hone_status hn_op_want_float(const hn_call *c, int i, hn_diag *dg);
hone_status hn_op_want_int(const hn_call *c, int i, hn_diag *dg);
hone_status hn_op_want_number(const hn_call *c, int i, hn_diag *dg);
hone_status hn_op_want_dtype(const hn_call *c, int i, hn_dtype t, hn_diag *dg);
/** Operands i and j are present and of one dtype. */
hone_status hn_op_want_same(const hn_call *c, int i, int j, hn_diag *dg);
/** Operand i is present and has this rank / a rank within [lo, hi]. */
hone_status hn_op_want_rank(const hn_call *c, int i, int rank, hn_diag *dg);
hone_status hn_op_want_ranks(const hn_call *c, int i, int lo, int hi, hn_diag *dg);
/** Operand i is present and holds one element, of rank 0 or of shape [1]. */
hone_status hn_op_want_scalar(const hn_call *c, int i, hn_diag *dg);
/** Integer attribute `attr` (schema index) as an axis of a tensor of this rank; end_ok also allows axis ==
 * rank. */
hone_status hn_op_want_axis(const hn_call *c, int attr, int rank, bool end_ok, int *ret, hn_diag *dg);
/** Integer attribute `attr` within [lo, hi]. */
hone_status hn_op_want_attr(const hn_call *c, int attr, int64_t lo, int64_t hi, hn_diag *dg);
/** The extent in which elements of a list may differ (HN_SYM_ANY). */
hn_dim hn_op_any(const hn_call *c);
/** List attribute `attr` has n entries. */
hone_status hn_op_want_list(const hn_call *c, int attr, int n, hn_diag *dg);
/** Attribute `attr` names a dtype. */
hone_status hn_op_want_dtype_attr(const hn_call *c, int attr, hn_diag *dg);

/** The extent two dims that must be equal have: the known one where one is; false when both are known and
 * differ. */
bool hn_op_meet(const hn_call *c, hn_dim a, hn_dim b, hn_dim *ret);
/** Tell whoever asks that a is b, or no greater: a plan checks it when shapes are set. */
void hn_op_promise(const hn_call *c, hn_dim a, hn_dim b, bool at_most);
/** A result with elements reads from an axis of this extent, so that there must be one to read. */
void hn_op_promise_some(const hn_call *c, const hn_tdesc *result, hn_dim extent);
/** An index of gather_elements and its like has no more elements on axis d than what it reads or writes. */
hone_status hn_op_want_index_within(const hn_call *c, int d, hn_dim index, hn_dim x, hn_diag *dg);
/** Axis x of operand i and axis y of operand j agree (hn_op_meet), else a raise naming both; ret may be NULL.
 */
hone_status hn_op_want_meet(const hn_call *c, int i, int x, int j, int y, hn_dim *ret, hn_diag *dg);
/** An extent known to be negative is an error; one that may be, a promise. */
hone_status hn_op_want_extent(const hn_call *c, hn_dim d, const char *what, hn_diag *dg);
/** dims [0, n) of the attribute list as extents, each checked by hn_op_want_extent; rank at most HN_MAX_RANK.
 */
hone_status hn_op_dims_attr(const hn_call *c, int attr, hn_tdesc *ret, hn_diag *dg);
/** NumPy broadcast of the present operands among the first n; dtype is left alone. */
hone_status hn_op_want_broadcast(const hn_call *c, int n, hn_tdesc *ret, hn_diag *dg);
/** x broadcasts to exactly `to` (ranks may differ); dims that cannot be told apart are taken to fit. */
bool hn_op_broadcasts_to(const hn_call *c, const hn_tdesc *x, const hn_tdesc *to);

/** out[0] = in[0]; of any dtype / a float dtype / a float or integer dtype. */
hone_status hn_op_infer_same(hn_call *c, hn_diag *dg);
hone_status hn_op_infer_same_float(hn_call *c, hn_diag *dg);
hone_status hn_op_infer_same_number(hn_call *c, hn_diag *dg);

/**
 * The symbol for element `elem` of int64 output `out`, bounded to [0, hi] (hi's own upper bound when
 * symbolic). Without a value_dim callback it raises HONE_E_INTERNAL.
 */
hone_status hn_op_value_dim(const hn_call *c, int out, int elem, hn_dim hi, hn_dim *ret, hn_diag *dg);

/* ---- known values ---- */
/** A dim's number; ref() gets attributes whose dims the evaluator made known, so false there is our bug. */
static inline bool hn_op_known(const hn_call *c, hn_dim d, int64_t *ret)
{
    return hn_dim_known(c->syms, d, ret);
}
/** A list attribute's entries as numbers; raises HONE_E_INTERNAL when one is symbolic. For references. */
hone_status hn_op_dims_known(const hn_call *c, int attr, int64_t *ret, hn_diag *dg);
hone_status hn_op_dim_known(const hn_call *c, int attr, int64_t *ret, hn_diag *dg);
/** Elements of integer operand i (rank <= 1) as dims, from its content or its constant bytes; at most 64. */
bool hn_op_content(const hn_call *c, int i, hn_dim *ret, int *ret_n);
/** content() of ops whose elements stay in order. */
bool hn_op_content_same(const hn_call *c, int out, hn_dim *ret, int *ret_n);
/** Element `elem` of constant operand i as double / int64; false when it is not constant. */
bool hn_op_const_f(const hn_call *c, int i, int64_t elem, double *ret);
bool hn_op_const_i(const hn_call *c, int i, int64_t elem, int64_t *ret);

/* ---- walking ---- */
/** Row-major strides in elements of a static description. */
void hn_op_strides(const hn_tdesc *t, int64_t *ret);
/** A static tensor seen as [outer, n, inner] around an axis. */
typedef struct hn_split3 {
    int64_t outer, n, inner;
} hn_split3;
hn_split3 hn_op_split(const hn_tdesc *t, int axis);

/**
 * Walks an index space in row-major order, in runs along the innermost (merged) axis, for up to HN_WALK_MAX
 * operands with strides of their own:
 *
 *     hn_walk w;
 *     hn_walk_init(&w, &out->type);
 *     hn_walk_add(&w, &in[0].type);              operand 0, broadcast against the space
 *     while (hn_walk_next(&w))
 *         for (int64_t i = 0; i < w.run; i++)
 *             out->f[w.pos + i] = f(in[0].f[w.at[0] + i * w.step[0]]);
 */
enum { HN_WALK_MAX = 6 };
typedef struct hn_walk {
    int64_t run;               /* elements of this run */
    int64_t pos;               /* its first element's row-major number in the space */
    int64_t at[HN_WALK_MAX];   /* operand offsets at the run's start */
    int64_t step[HN_WALK_MAX]; /* operand strides along the run */
    /* private */
    int rank, n_op;
    bool started;
    int64_t dim[HN_MAX_RANK], index[HN_MAX_RANK], stride[HN_WALK_MAX][HN_MAX_RANK];
} hn_walk;
void hn_walk_init(hn_walk *w, const hn_tdesc *space);
/** Row-major operand broadcast against the space (axes aligned at the end). */
void hn_walk_add(hn_walk *w, const hn_tdesc *operand);
/** An operand with a start and one stride per axis of the space. */
void hn_walk_add_strided(hn_walk *w, int64_t start, const int64_t *stride);
bool hn_walk_next(hn_walk *w);
/** Working storage for references, zeroed; raises HONE_E_NOMEM. Release with free(). */
hone_status hn_op_scratch(int64_t n, size_t size, void **ret, hn_diag *dg);

/* ---- unsigned 64-bit values travel as int64 bit patterns ---- */
static inline int hn_op_cmp_i(hn_dtype t, int64_t a, int64_t b)
{
    if (t == HN_U64) return (uint64_t)a < (uint64_t)b ? -1 : (uint64_t)a > (uint64_t)b;
    return a < b ? -1 : a > b;
}
static inline double hn_op_to_f(hn_dtype t, int64_t v)
{
    return t == HN_U64 ? (double)(uint64_t)v : (double)v;
}
/** Three-way order in which NaN is the largest and equals itself. */
static inline int hn_op_cmp_f(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) - isnan(b);
    return a < b ? -1 : a > b;
}

/* ---- work ---- */
/** Element count; symbols count at their `opt` values. */
double hn_op_count(const hn_call *c, const hn_tdesc *t);
double hn_op_extent(const hn_call *c, hn_dim d);
/** Bytes of all operands and results. */
double hn_op_bytes(const hn_call *c);
/** One / ten flops per element of output 0. */
void hn_op_work_pointwise(const hn_call *c, hn_work *ret);
void hn_op_work_math(const hn_call *c, hn_work *ret);
/** No flops. */
void hn_op_work_move(const hn_call *c, hn_work *ret);

#endif
