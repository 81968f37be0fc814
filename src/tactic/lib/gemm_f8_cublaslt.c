/*
 * Products of 8-bit floats by cuBLASLt, at twice the rate of halves. The library wants both operands with k innermost: the left one is
 * stored so, constant weights are when building.
 *
 * On compute capability 9.0 a sum keeps some 14 bits from one step of k to the next, however exact its products are (an H200's f32
 * results err by 1.3e-4, rms, for k of 128 to 4096): beside a result of 16 bits that is nothing, for f32 it is what tf32 costs, and the
 * route allows it as it does tf32.
 */
#include "tactic/lib/lib.h"

enum { WHOLE = 16 }; /* what k must be a multiple of; lines of the result are whole 16 bytes */

hn_lib_product hn_lib_f8_product(const hn_region *r)
{
    const hn_node *n = r->root;
    const hn_value *a = hn_in(n, 0), *b = hn_in(n, 1), *y = n->out[0];
    const int64_t columns = y->type.dim[y->type.rank - 1];
    const bool f32 = y->type.dtype == HN_F32; /* beside it the library knows no bias of its dtype */
    hn_lib_product c = { .m = { .m = hn_lib_elems(y) / columns, .n = columns, .k = a->type.dim[a->type.rank - 1], .groups = 1, .trans_b = 1,
                                .a_dtype = (uint32_t)a->type.dtype, .b_dtype = (uint32_t)b->type.dtype,
                                .scale = hn_attr_f(n, "a_scale") * hn_attr_f(n, "b_scale") },
                         .exchange = !hn_attr_i(n, "trans_b") };
    hn_lib_match(r, HN_LIB_PRODUCT_FUSES & ~(f32 ? (uint32_t)HN_CALL_BIAS : 0), y->type.rank - 1, NULL, &c.f);
    c.f.whole &= hn_layout_is_plain(&y->layout);
    return c;
}

static bool direct(const hn_region *r, const hn_value *v)
{
    return hn_region_operand(r, v) >= 0 && hn_layout_is_plain(&v->layout);
}

static hn_fit fits_any(const hn_region *r)
{
    const hn_node *n = r->root;
    if (n->op != HN_OP_matmul_f8) return HN_FIT_OP;
    const hn_value *a = hn_in(n, 0), *b = hn_in(n, 1), *y = n->out[0];
    if (a->type.dtype == HN_F8E5M2 && b->type.dtype == HN_F8E5M2) return HN_FIT_DTYPE;
    if (!hn_lib_is_fixed(y) || !hn_lib_is_fixed(a)) return HN_FIT_SYMBOLIC;
    if (!direct(r, a) || !direct(r, b)) return HN_FIT_LAYOUT;
    if (!hn_attr_i(n, "trans_b") && !hn_lib_can_store(r, b)) return HN_FIT_NOT_CONST;
    if (a->type.dim[a->type.rank - 1] % WHOLE || y->type.dim[y->type.rank - 1] % hn_lib_line_elems(r)) return HN_FIT_SHAPE;
    return hn_lib_f8_product(r).f.whole || hn_lower_can(r, n) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_fit fit = fits_any(r);
    return fit == HN_FIT_YES && r->root->out[0]->type.dtype == HN_F32 ? HN_FIT_DTYPE : fit;
}

static hn_fit fits_f32(const hn_region *r, const hn_target *t)
{
    (void)t;
    return hn_lib_fit_tf32(r, fits_any(r));
}

const hn_tactic_def hn_tactic_gemm_f8_cublaslt__lib = {
    .name = "gemm_f8_cublaslt__lib", .rev = 1, .needs = HN_FEAT_SM_90A, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits, .space = hn_lib_product_space, .cost = hn_lib_product_cost, .emit = hn_lib_product_emit, .pack = hn_lib_product_pack,
    .source = HN_KNOB_tactic_cublaslt,
};

const hn_tactic_def hn_tactic_gemm_f8_f32_cublaslt__lib = {
    .name = "gemm_f8_f32_cublaslt__lib", .rev = 1, .needs = HN_FEAT_SM_90A, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits_f32, .space = hn_lib_product_space, .cost = hn_lib_product_cost, .emit = hn_lib_product_emit, .pack = hn_lib_product_pack,
    .changes_numbers = true, .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_cublaslt,
};
