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
/** Elements of a value with known extents. */
int64_t hn_lib_elems(const hn_value *v);
/**
 * Append the call. Buffers are the operands given, bias and addend, the result or a temporary, the workspace; where the call does
 * not do all of the region's work, a kernel follows that reads the temporary and does the rest.
 */
hone_status hn_lib_emit(const hn_region *r, const hn_target *t, const hn_libcall *c, const hn_lib_fused *f, const hn_ref *operand,
                        int n_operand, hn_emission *ret, hn_diag *dg);

/* ---- products by cuBLASLt ---- */
enum { HN_LIB_PRODUCT_FUSES = HN_CALL_BIAS | HN_CALL_ADD | HN_CALL_RELU };

/** The root's operands 0 and 1 multiplied. */
typedef struct hn_lib_product {
    hn_libcall_matmul m;
    hn_lib_fused f;
} hn_lib_product;

bool hn_lib_product_type(hn_dtype t);
/** What the call for a matmul, or a convolution of one tap, multiplies and fuses. */
hn_lib_product hn_lib_gemm_product(const hn_region *r);
hn_lib_product hn_lib_conv_product(const hn_region *r);
/** Slots of a tactic. One parameter, "algo": the place among the library's proposals. */
void hn_lib_product_space(const hn_region *r, const hn_target *t, hn_space *ret);
double hn_lib_product_cost(const hn_region *r, const hn_target *t, const int64_t *p);
hone_status hn_lib_product_emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg);

#endif
