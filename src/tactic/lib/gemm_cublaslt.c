/* Matrix products by cuBLASLt: bias, an addend and relu go into the call, a kernel does whatever else is fused. */
#include "tactic/lib/lib.h"

static int64_t leading(const hn_value *v)
{
    int64_t n = 1;
    for (int a = 0; a < v->type.rank - 2; a++)
        n *= v->type.dim[a];
    return n;
}

/* Leading axes are the result's own, or all one. */
static bool leads(const hn_value *v, const hn_value *y)
{
    const int shift = y->type.rank - v->type.rank;
    if (leading(v) == 1) return true;
    for (int a = 0; a < y->type.rank - 2; a++)
        if (a < shift ? y->type.dim[a] != 1 : v->type.dim[a - shift] != y->type.dim[a]) return false;
    return true;
}

static bool direct(const hn_region *r, const hn_value *v, hn_dtype t)
{
    return hn_region_operand(r, v) >= 0 && v->type.dtype == t && hn_layout_is_plain(&v->layout) && v->type.rank >= 2 &&
           hn_lib_is_fixed(v);
}

/* Columns that are stored apart are a group each of one product. */
static void store_in_pieces(hn_lib_product *c)
{
    const hn_value *v = c->f.last;
    const int64_t width = hn_layout_piece(&v->layout, v->type.rank);
    hn_libcall_matmul *m = &c->m;
    if (!width || !c->f.only || m->groups != 1 || m->n % width || (c->f.flags & HN_CALL_ADD)) return;
    m->groups = m->n / width;
    m->a_step = 0;
    m->b_step = m->trans_b ? width * m->k : width;
    m->b_line = m->trans_b ? 0 : m->n;
    m->bias_step = width;
    m->d_step = m->m * width;
    m->n = width;
    c->f.whole = true;
}

/* Rows of one place of 16 bytes are a product each, if there are as many of each place, and nothing behind the call has columns of its
 * own. */
static bool take_turns(const hn_region *r, hn_lib_product *c)
{
    const int64_t whole = hn_lib_line_elems(r), turns = whole / HN_MIN(whole, c->m.n & -c->m.n); /* both powers of two */
    const hn_value *b = hn_in(r->root, 1);
    const hn_libcall_matmul *m = &c->m;
    if (turns == 1 || m->n < 2 * whole || m->m < turns || m->m % turns || m->k % whole || m->groups != 1 || m->trans_a) return false;
    if (!c->f.whole || (c->f.flags & ~(uint32_t)HN_LIB_FILLED_FUSES) || !(m->trans_b || hn_lib_can_store(r, b))) return false;
    c->exchange = !m->trans_b;
    c->m.trans_b = 1;
    c->m.turns = turns;
    return true;
}

/* One product where the right operand is shared and rows of the left lie behind one another, else a batch. */
hn_lib_product hn_lib_gemm_product(const hn_region *r, hn_lib_lines lines)
{
    const hn_value *a = hn_in(r->root, 0), *b = hn_in(r->root, 1), *y = r->root->out[0];
    const int rank = y->type.rank;
    const bool ta = hn_attr_i(r->root, "trans_a"), tb = hn_attr_i(r->root, "trans_b");
    hn_libcall_matmul m = { .m = y->type.dim[rank - 2], .n = y->type.dim[rank - 1], .k = a->type.dim[a->type.rank - (ta ? 2 : 1)],
                         .groups = leading(y), .trans_a = ta, .trans_b = tb };
    if (leading(b) == 1 && !ta && leading(a) == m.groups) {
        m.m *= m.groups;
        m.groups = 1;
    }
    m.a_step = leading(a) == 1 ? 0 : m.m * m.k;
    m.b_step = leading(b) == 1 ? 0 : m.n * m.k;
    m.d_step = m.m * m.n;
    hn_lib_product c = { .m = m };
    const bool plain = hn_layout_is_plain(&y->layout), filled = lines == HN_LIB_LINES_FILLED && plain && hn_lib_fill_lines(r, &c);
    hn_lib_match(r, filled ? HN_LIB_FILLED_FUSES : HN_LIB_PRODUCT_FUSES, rank - 1, NULL, &c.f);
    c.f.whole &= plain && !filled;
    if (lines == HN_LIB_LINES_IN_TURNS && take_turns(r, &c)) return c;
    if (!filled) store_in_pieces(&c);
    return c;
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_matmul) return HN_FIT_OP;
    const hn_value *a = hn_in(r->root, 0), *b = hn_in(r->root, 1), *y = r->root->out[0];
    if (!hn_lib_product_type(y->type.dtype)) return HN_FIT_DTYPE;
    if (!hn_lib_is_fixed(y)) return HN_FIT_SYMBOLIC;
    if (!direct(r, a, y->type.dtype) || !direct(r, b, y->type.dtype)) return HN_FIT_LAYOUT;
    if (!leads(a, y) || !leads(b, y)) return HN_FIT_SHAPE;
    if (hn_lib_gemm_product(r, HN_LIB_LINES_AS_THEY_ARE).f.whole) return HN_FIT_YES;
    if (!hn_layout_is_plain(&y->layout)) return HN_FIT_LAYOUT;
    return hn_lower_can(r, r->root) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static hn_fit fits_tf32(const hn_region *r, const hn_target *t)
{
    return hn_lib_fit_tf32(r, fits(r, t));
}

const hn_tactic_def hn_tactic_gemm_float_cublaslt__lib = {
    .name = "gemm_float_cublaslt__lib", .rev = 6, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits, .space = hn_lib_product_space, .cost = hn_lib_product_cost, .emit = hn_lib_product_emit, .pack = hn_lib_product_pack,
    .source = HN_KNOB_tactic_cublaslt, .pin = { [HN_LIB_LINES] = HN_KNOB_gemm_lines },
};

const hn_tactic_def hn_tactic_gemm_tf32_cublaslt__lib = {
    .name = "gemm_tf32_cublaslt__lib", .rev = 4, .arch = HN_ARCH_SM, .library = HN_LIB_CUBLASLT,
    .fits = fits_tf32, .space = hn_lib_product_space, .cost = hn_lib_product_cost_tf32, .emit = hn_lib_product_emit_tf32,
    .pack = hn_lib_product_pack, .changes_numbers = true, .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_cublaslt,
    .pin = { [HN_LIB_LINES] = HN_KNOB_gemm_lines },
};
