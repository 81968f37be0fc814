/* Convolutions of one tap by cuBLASLt: of images with their channels last they are products, rows the pixels. */
#include "tactic/cpu/loops.h"
#include "tactic/lib/lib.h"

/* One tap, at every place, without padding. */
static bool is_product(const hn_node *n)
{
    const hn_value *x = hn_in(n, 0), *w = hn_in(n, 1), *y = n->out[0];
    if (hn_attr_i(n, "group") != 1) return false;
    for (int a = 2; a < w->type.rank; a++)
        if (w->type.dim[a] != 1 || x->type.dim[a] != y->type.dim[a]) return false;
    hn_loops_window win;
    hn_loops_window_of(n, &win);
    for (int a = 0; a < win.n; a++)
        if (win.stride[a] != 1 || win.pad[a] != 0) return false;
    return true;
}

hn_lib_product hn_lib_conv_product(const hn_region *r, hn_lib_lines lines)
{
    const hn_value *w = hn_in(r->root, 1), *y = r->root->out[0];
    const int64_t columns = w->type.dim[0];
    hn_lib_product c = { .m = { .m = hn_lib_elems(y) / columns, .n = columns, .k = w->type.dim[1], .groups = 1, .trans_b = 1 } };
    const bool filled = lines == HN_LIB_LINES_FILLED && hn_lib_fill_lines(r, &c);
    hn_lib_match(r, filled ? HN_LIB_FILLED_FUSES : HN_LIB_PRODUCT_FUSES, 1, hn_in(r->root, 2), &c.f);
    c.f.whole &= !filled;
    return c;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_conv) return HN_FIT_OP;
    const hn_value *x = hn_in(n, 0), *w = hn_in(n, 1), *bias = hn_in(n, 2), *y = n->out[0];
    if (!hn_lib_product_type(y->type.dtype) || x->type.dtype != y->type.dtype || w->type.dtype != y->type.dtype) return HN_FIT_DTYPE;
    if (!hn_lib_is_fixed(x) || !hn_lib_is_fixed(y)) return HN_FIT_SYMBOLIC;
    if (!is_product(n)) return HN_FIT_SHAPE;
    if (hn_region_operand(r, x) < 0 || hn_region_operand(r, w) < 0 || (bias && hn_region_operand(r, bias) < 0)) return HN_FIT_LAYOUT;
    if (!hn_lib_rows_of_channels(x) || !hn_lib_rows_of_channels(y) || !hn_layout_is_plain(&w->layout)) return HN_FIT_LAYOUT;
    return hn_lib_conv_product(r, HN_LIB_LINES_AS_THEY_ARE).f.whole || hn_lower_can(r, n) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static hn_fit fits_tf32(const hn_region *r, const hn_target *t)
{
    return hn_lib_fit_tf32(r, fits(r, t));
}

const hn_tactic_def hn_tactic_conv_float_cublaslt__lib = {
    .name = "conv_float_cublaslt__lib", .rev = 4, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits, .space = hn_lib_product_space, .cost = hn_lib_product_cost, .emit = hn_lib_product_emit, .pack = hn_lib_product_pack,
    .source = HN_KNOB_tactic_cublaslt, .pin = { [HN_LIB_LINES] = HN_KNOB_gemm_lines },
};

const hn_tactic_def hn_tactic_conv_tf32_cublaslt__lib = {
    .name = "conv_tf32_cublaslt__lib", .rev = 2, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits_tf32, .space = hn_lib_product_space, .cost = hn_lib_product_cost_tf32, .emit = hn_lib_product_emit_tf32,
    .pack = hn_lib_product_pack, .changes_numbers = true, .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_cublaslt,
    .pin = { [HN_LIB_LINES] = HN_KNOB_gemm_lines },
};
