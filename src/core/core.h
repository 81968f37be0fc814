/* Ground nouns shared by building and running: dtypes, symbolic dims, tensor descriptions, physical layouts. */
#ifndef HN_CORE_CORE_H
#define HN_CORE_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"

/* ---- dtypes ---- */
typedef enum hn_dtype {
    HN_NONE = 0, /* an absent optional operand */
#define X(name, number, text, bits, cls) HN_##name = number,
#include "core/dtypes.def"
#undef X
} hn_dtype;
enum { HN_NDTYPES = 24 }; /* one past the largest number */

const char *hn_dtype_name(hn_dtype t); /* "f32"; "none" for HN_NONE; NULL never */
hn_dtype hn_dtype_parse(const char *text, size_t n); /* HN_NONE when unknown */
int hn_dtype_bits(hn_dtype t);
bool hn_dtype_is_float(hn_dtype t);
bool hn_dtype_is_int(hn_dtype t);    /* signed or unsigned, not bool */
bool hn_dtype_is_signed(hn_dtype t); /* signed integers and floats */
/** Bytes that n elements take, sub-byte types packed; negative n or overflow gives -1. */
int64_t hn_dtype_bytes(hn_dtype t, int64_t n);
/**
 * Widen storage to working form and back. Floats are worked on as double, every other dtype as int64 (u64 as its bit
 * pattern). Narrowing rounds floats to nearest even, wraps integers, and makes any non-zero bool 1. `first` is an element
 * index, so packed nibbles work; neighbours in a shared byte are kept. Storage may be unaligned.
 *
 * Overflow, as ONNX Cast has it: f16, bf16 and f32 go to infinity whatever `saturate` says; float8 goes to its largest
 * value when `saturate`, else to infinity where the format has one, else to NaN; f4e2m1 always saturates and stores NaN
 * as -0. f8e8m0 drops the sign and rounds to the nearest power of two here (hn_e8m0_from_f64 has the other modes).
 *
 * Across the two forms: widen_f64 of an integer is its value; narrow_f64 to an integer truncates, takes what int64 (uint64
 * for u64) cannot hold, NaN included, as INT64_MIN, and wraps; to bool, non-zero and NaN are 1. widen_i64 of a float
 * truncates likewise; narrow_i64 to a float converts.
 */
void hn_widen_f64(hn_dtype t, const void *src, int64_t first, int64_t n, double *dst);
void hn_narrow_f64(hn_dtype t, const double *src, int64_t n, void *dst, int64_t first, bool saturate);
void hn_widen_i64(hn_dtype t, const void *src, int64_t first, int64_t n, int64_t *dst);
void hn_narrow_i64(hn_dtype t, const int64_t *src, int64_t n, void *dst, int64_t first);
typedef enum hn_e8m0_round { HN_E8M0_UP, HN_E8M0_DOWN, HN_E8M0_NEAREST } hn_e8m0_round; /* of magnitudes; ties up */
unsigned hn_e8m0_from_f64(double v, hn_e8m0_round mode, bool saturate);
/** What storing v in dtype t and loading it again yields. */
double hn_round_f64(hn_dtype t, double v, bool saturate);
int64_t hn_wrap_i64(hn_dtype t, int64_t v);
/** Of extents. Beside one of 0 the others may be anything: their product wraps, and no element is there to be found by it. */
static inline int64_t hn_extent_times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}
/** Truncated; what int64 cannot hold becomes its nearest end, NaN 0. */
int64_t hn_f64_to_i64(double v);

/* ---- dims: constants or interned expressions over symbols ---- */
/** >= 0: a constant extent. < 0: a handle into a hn_symtab. Equal handles of one table mean equal expressions. */
typedef int64_t hn_dim;

typedef enum hn_sym_kind {
    HN_SYM_INPUT, /* bound from a graph input's extent when shapes are set */
    HN_SYM_VALUE, /* bound while running from element `elem` of an int64 value (see ir: hn_graph_value_dim) */
} hn_sym_kind;

typedef enum hn_expr_op {
    HN_EX_SYM,
    HN_EX_ADD, /* n-ary canonical sums: a + b */
    HN_EX_MUL,
    HN_EX_FLOORDIV, /* toward minus infinity; division by 0 evaluates to an error */
    HN_EX_MOD,      /* sign of the divisor */
    HN_EX_MIN,
    HN_EX_MAX,
    HN_EX_EQ,     /* 1 or 0 */
    HN_EX_LT,     /* 1 or 0 */
    HN_EX_SELECT, /* a ? b : c */
} hn_expr_op;

typedef struct hn_sym {
    const char *name; /* unique within the table */
    hn_sym_kind kind;
    int64_t min, opt, max; /* inclusive bounds and the value to optimise for; max INT64_MAX when unbounded */
} hn_sym;

typedef struct hn_symtab hn_symtab;
/** The table lives in the arena. Not thread-safe. Table-full and out-of-memory set the arena's sticky bit and yield 0. */
hn_symtab *hn_symtab_new(hn_arena *a);
/** A known name gives its handle again, whatever the kind. */
hn_dim hn_sym_add(hn_symtab *t, const char *name, hn_sym_kind kind);
/** The handle of a named symbol or 0. */
hn_dim hn_sym_find(const hn_symtab *t, const char *name);
int hn_sym_count(const hn_symtab *t);
int64_t hn_dim_count(const hn_symtab *t); /* expressions so far: handles reach from -1 down to -hn_dim_count() */
hn_dim hn_sym_at(const hn_symtab *t, int i); /* i-th symbol's handle */
const hn_sym *hn_sym_get(const hn_symtab *t, hn_dim d); /* NULL unless d is a plain symbol */
int hn_sym_index(const hn_symtab *t, hn_dim d);         /* hn_sym_at the other way round; -1 unless d is a plain symbol */
/** Changes a plain symbol's bounds; what is known of expressions over it is worked out anew. */
void hn_sym_set_bounds(hn_symtab *t, hn_dim sym, int64_t min, int64_t opt, int64_t max);
void hn_sym_set_kind(hn_symtab *t, hn_dim sym, hn_sym_kind kind);

/**
 * Builders fold constants and canonicalise sums of products, so that (n+1)-1 == n and 2*n == n*2. What they build may be
 * defined where the plain reading fails (n*m / m at m == 0, sums that pass int64 on the way); it never has another value.
 * They use the symbols' bounds: tighten bounds after building if you like, never widen them. Default bounds: 0.. for
 * HN_SYM_INPUT, none for HN_SYM_VALUE; opt 1.
 */
hn_dim hn_dim_add(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_sub(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_mul(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_floordiv(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_ceildiv(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_mod(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_min(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_max(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_select(hn_symtab *t, hn_dim cond, hn_dim a, hn_dim b);
hn_dim hn_dim_eq(hn_symtab *t, hn_dim a, hn_dim b);
hn_dim hn_dim_lt(hn_symtab *t, hn_dim a, hn_dim b);
/** A constant that may be negative (strides, starts): dims themselves are >= 0, contents of shape tensors need not be. */
hn_dim hn_dim_const(hn_symtab *t, int64_t v);
/** True when d is a known number, negative ones included; *ret gets it. */
bool hn_dim_known(const hn_symtab *t, hn_dim d, int64_t *ret);
static inline bool hn_dim_is_const(hn_dim d)
{
    return d >= 0;
}
/** Inspect an expression: operator and operands (unused ones 0). d must not be a constant (hn_dim_known). A symbol's
 *  operand[0] is its index. Sums and products come as left-leaning chains of two operands. */
hn_expr_op hn_dim_expr(const hn_symtab *t, hn_dim d, hn_dim operand[3]);
/** Inclusive bounds by interval arithmetic over the symbols' bounds. */
void hn_dim_bounds(const hn_symtab *t, hn_dim d, int64_t *ret_lo, int64_t *ret_hi);
/** Evaluate with one value per symbol (indexed as hn_sym_at); false on overflow or division by zero. */
bool hn_dim_eval(const hn_symtab *t, hn_dim d, const int64_t *sym_value, int64_t *ret);
/** Replace symbols by dims (rebuilds canonically): sub[i] stands for symbol i. */
hn_dim hn_dim_subst(hn_symtab *t, hn_dim d, const hn_dim *sub);
void hn_dim_print(const hn_symtab *t, hn_dim d, hn_str *out); /* "7", "n", "2*n+1", "floordiv(n+3,4)", "min(n,4)" */
/** Names that are no identifiers print in double quotes with \\ and \" escapes.
 *  Parse what hn_dim_print writes, spaces allowed; unknown names become HN_SYM_INPUT symbols. 0 chars consumed on error. */
size_t hn_dim_parse(hn_symtab *t, const char *s, hn_dim *ret);

/* ---- tensor descriptions ---- */
enum { HN_MAX_RANK = 10 };

typedef struct hn_tdesc {
    hn_dtype dtype; /* HN_NONE: absent */
    int rank;
    hn_dim dim[HN_MAX_RANK];
} hn_tdesc;

bool hn_tdesc_eq(const hn_tdesc *a, const hn_tdesc *b);
bool hn_tdesc_same_dims(const hn_tdesc *a, const hn_tdesc *b); /* dtypes apart */
bool hn_tdesc_is_static(const hn_tdesc *d);
hn_dim hn_tdesc_numel(hn_symtab *t, const hn_tdesc *d);
/** Element count of a static description; -1 when symbolic or overflowing. */
int64_t hn_tdesc_numel_static(const hn_tdesc *d);
void hn_tdesc_print(const hn_symtab *t, const hn_tdesc *d, hn_str *out); /* "f32[1,3,n]" */
/** NumPy broadcasting, dtype of a; raises HONE_E_SHAPE naming both shapes. Of two different symbolic dims, one that is at
 *  least 2 wins; else the result is select(eq(a,1),b,a). That they fit at all is for the caller's run-time guard. */
hone_status hn_broadcast_dims(hn_symtab *t, const hn_tdesc *a, const hn_tdesc *b, hn_tdesc *ret, hn_diag *dg);
/** Normalise a possibly negative axis: -rank <= axis < rank. */
bool hn_axis_resolve(int64_t axis, int rank, int *ret);

/* ---- physical layouts ---- */
/**
 * Order of storage, outermost first: each entry is an axis, whole (block 0) or its inner block of `block` elements.
 * A blocked axis appears twice: once with block 0 (its outer part, ceil(extent/block) long) and once with the block.
 * NCHW is {0,1,2,3}; NHWC {0,2,3,1}; nChw16c {0,1,2,3,1:16}. n == 0 means row-major of the value's rank.
 * Lanes that pad a block hold zero.
 */
typedef struct hn_layout {
    int n;
    struct {
        int8_t axis;
        int16_t block;
    } at[HN_MAX_RANK + 2];
} hn_layout;

bool hn_layout_eq(const hn_layout *a, const hn_layout *b);
/** Elements of the inner block of an axis; 0 where it is whole. */
int hn_layout_block_of(const hn_layout *l, int axis);
bool hn_layout_is_plain(const hn_layout *l); /* row-major, however written */
hn_layout hn_layout_blocked(int rank, int axis, int block); /* row-major with `axis` blocked innermost */
hn_layout hn_layout_channels_last(int rank);                /* N, spatial..., C */
/** The last axis cut into pieces of `width`, each with all its rows before the next piece begins; rank < HN_MAX_RANK. */
hn_layout hn_layout_in_pieces(int rank, int width);
/** Width of such pieces; 0: it is another layout. */
int64_t hn_layout_piece(const hn_layout *l, int rank);
void hn_layout_print(const hn_layout *l, int rank, hn_str *out); /* "ncdhw" letters by axis: "abcd", "acdb", "abcd16b" */
bool hn_layout_parse(const char *s, size_t n, hn_layout *ret);
/** Physical extents of d stored as l (rank l->n, or d's own when n == 0); padding included. l->n <= HN_MAX_RANK. */
void hn_layout_dims(hn_symtab *t, const hn_layout *l, const hn_tdesc *d, hn_tdesc *ret);

/* ---- faults: how a kernel tells of an index outside its axis ---- */
enum {
    HN_FAULT_SITES = 4, /* indexed reads or writes of one kernel that are told apart; the last stands for all further ones */
    HN_FAULT_BYTES = 64, /* the record of a launch: i64 pairs, one a site: extent + 1 (0: nothing to tell), index */
};

#endif
