/* What tactics that call libraries share: the fused work that a library does itself, and a kernel for the rest. */
#ifndef HN_TACTIC_LIB_LIB_H
#define HN_TACTIC_LIB_LIB_H

#include "tactic/lower.h"

/** The work behind a region's root that goes into the call. */
typedef struct hn_lib_fused {
    uint32_t flags;       /* HN_CALL_* */
    int bias, addend;     /* operands of the region; -1 */
    const hn_value *last; /* what the call yields */
    bool only;            /* that is the region's only result */
    bool whole;           /* and stored as the root's is, or as the call can: no kernel follows */
} hn_lib_fused;

/** Follow the root's result through what the library can do (can: flags), as long as nobody else reads it. bias_axis: of the root's
 *  result; bias: an operand of the root's own, or NULL. */
void hn_lib_match(const hn_region *r, uint32_t can, int bias_axis, const hn_value *bias, hn_lib_fused *ret);
/** All extents of the value are known. */
bool hn_lib_is_fixed(const hn_value *v);
/** An image: channels lie densest, pixels behind one another. */
bool hn_lib_rows_of_channels(const hn_value *v);
/** Elements of a value with known extents. */
int64_t hn_lib_elems(const hn_value *v);
/** A temporary of the emission; false: out of memory. */
bool hn_lib_temp(const hn_region *r, hn_emission *e, int64_t bytes, hn_ref *ret);
/**
 * Append the call. Buffers are the operands given, bias and addend, the result or a temporary, the workspace; where the call does
 * not do all of the region's work, a kernel follows that reads the temporary and does the rest. line: elements of the temporary from
 * one line along the densest axis to the next; 0: they lie behind one another.
 */
hone_status hn_lib_emit(const hn_region *r, const hn_target *t, const hn_libcall *c, const hn_lib_fused *f, const hn_ref *operand,
                        int n_operand, int64_t line, hn_emission *ret, hn_diag *dg);

/* ---- products by cuBLASLt ---- */
enum {
    HN_LIB_FILLED_FUSES = HN_CALL_RELU | HN_CALL_GELU, /* where lines are filled up: a bias and an addend have other ones */
    HN_LIB_PRODUCT_FUSES = HN_LIB_FILLED_FUSES | HN_CALL_BIAS | HN_CALL_ADD,
};

/**
 * The library's quick kernels want lines of whole 16 bytes. Where n is none (50257 words, say) the call may compute more columns, of
 * a constant right operand that is filled up when building, and the kernel behind it leaves them out; or it may compute rows in turns:
 * those that begin at the same place of 16 bytes have lines of whole 16 bytes, and columns that begin there as well.
 */
typedef enum hn_lib_lines { HN_LIB_LINES_AS_THEY_ARE = 0, HN_LIB_LINES_FILLED = 1, HN_LIB_LINES_IN_TURNS = 2 } hn_lib_lines;

/** The root's operands 0 and 1 multiplied. */
typedef struct hn_lib_product {
    hn_libcall_matmul m;
    hn_lib_fused f;
    int64_t fill_from; /* columns that the result has; 0: all that the call computes */
    bool exchange;     /* the right operand is stored with its axes exchanged when building */
} hn_lib_product;

bool hn_lib_product_type(hn_dtype t);
/** What a tactic that rounds f32 to tf32 makes of the fit of the one that does not. */
hn_fit hn_lib_fit_tf32(const hn_region *r, hn_fit fit);
/** What the call for a matmul, or a convolution of one tap, multiplies and fuses; as they are where lines cannot be as asked. */
hn_lib_product hn_lib_gemm_product(const hn_region *r, hn_lib_lines lines);
hn_lib_product hn_lib_conv_product(const hn_region *r, hn_lib_lines lines);
/** What the call for a matmul_f8 multiplies and fuses. */
hn_lib_product hn_lib_f8_product(const hn_region *r);
/** Elements of the result in 16 bytes. */
int64_t hn_lib_line_elems(const hn_region *r);
/** A constant matrix, which can be stored otherwise when building. */
bool hn_lib_can_store(const hn_region *r, const hn_value *v);
/** Compute more columns, if that helps and can be done. */
bool hn_lib_fill_lines(const hn_region *r, hn_lib_product *c);
/** Where parameters stand. */
enum { HN_LIB_ALGO, HN_LIB_LINES };
/** Slots of a tactic. Parameters: "algo", the place among the library's proposals; "lines" where there is more than one way. */
void hn_lib_product_space(const hn_region *r, const hn_target *t, hn_space *ret);
double hn_lib_product_cost(const hn_region *r, const hn_target *t, const int64_t *p);
hone_status hn_lib_product_pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg);
hone_status hn_lib_product_emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg);
/** The same for f32 that may be rounded to tf32. */
double hn_lib_product_cost_tf32(const hn_region *r, const hn_target *t, const int64_t *p);
hone_status hn_lib_product_emit_tf32(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg);

#endif
