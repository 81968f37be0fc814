/* Attention by cuDNN, without a mask or a causal one. What is fused behind it, a kernel does. */
#include <math.h>

#include "tactic/cpu/loops.h"
#include "tactic/lib/lib.h"

enum { ALGO, WORKSPACE = 16 << 20, PROPOSALS = 2 /* each of them is compiled when it is tried */ };
enum { Q, K, V, MASK, RANK = 4, WIDTH_STEP = 8, MOST_WIDTH = 256, MOST_WIDTH_BEFORE = 128 /* 9.0 */ };
enum { NO_CAUSAL, UPPER_LEFT, LOWER_RIGHT, ROWS_GUARD = 2 }; /* src/op/attention.c */

/* Elements between neighbours along each axis; plain: row-major, whatever the layout is. */
static void strides_of(const hn_value *v, bool plain, int64_t *ret)
{
    int64_t step = 1;
    for (int i = RANK - 1; i >= 0; i--) {
        const int axis = plain || !v->layout.n ? i : v->layout.at[i].axis;
        ret[axis] = step;
        step *= v->type.dim[axis];
    }
}

static void extents_of(const hn_value *v, int64_t *ret)
{
    for (int a = 0; a < RANK; a++) ret[a] = v->type.dim[a];
}

static hn_fit fits_operand(const hn_region *r, const hn_value *v, hn_dtype t, int64_t most_width)
{
    if (v->type.dtype != t) return HN_FIT_DTYPE;
    if (!hn_lib_is_fixed(v)) return HN_FIT_SYMBOLIC;
    if (hn_region_operand(r, v) < 0 || !hn_loops_unblocked(v) || hn_loops_dense_axis(v) != RANK - 1) return HN_FIT_LAYOUT;
    return v->type.dim[3] % WIDTH_STEP || v->type.dim[3] > most_width ? HN_FIT_SHAPE : HN_FIT_YES;
}

/* The mask as flags of the call. */
static uint32_t mask_of(const hn_node *n)
{
    const int64_t causal = hn_attr_i(n, "causal"), queries = hn_in(n, Q)->type.dim[2], keys = hn_in(n, K)->type.dim[2];

    if (causal == NO_CAUSAL || (causal == LOWER_RIGHT && queries == 1)) return 0; /* the one query sees all keys */
    return HN_CALL_CAUSAL | (causal == LOWER_RIGHT && queries != keys ? HN_CALL_CAUSAL_LATE : 0);
}

/* The library does not say what becomes of queries that see no key. */
static bool hides_rows(const hn_node *n)
{
    return hn_attr_i(n, "causal") == LOWER_RIGHT && hn_in(n, Q)->type.dim[2] > hn_in(n, K)->type.dim[2];
}

/* Keys of each query, on average, of all. */
static double seen(const hn_node *n)
{
    const double queries = (double)hn_in(n, Q)->type.dim[2], keys = (double)hn_in(n, K)->type.dim[2];
    const uint32_t mask = mask_of(n);

    if (!mask) return 1;
    if (mask & HN_CALL_CAUSAL_LATE) return 1 - queries / keys / 2;
    return queries <= keys ? queries / keys / 2 : 1 - keys / queries / 2;
}

static void fused_by_call(const hn_region *r, hn_lib_fused *ret)
{
    hn_lib_match(r, /* can= */ 0, /* bias_axis= */ 0, NULL, ret);
}

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    const hn_node *n = r->root;
    if (n->op != HN_OP_attention) return HN_FIT_OP;
    const hn_value *y = n->out[0];
    const int64_t most = hn_target_has(t, HN_FEAT_SM_90A) ? MOST_WIDTH : MOST_WIDTH_BEFORE;
    if (y->type.dtype != HN_F16 && y->type.dtype != HN_BF16) return HN_FIT_DTYPE;
    if (hn_in(n, MASK) || hn_attr_f(n, "softcap") != 0 || hn_attr_i(n, "rows") == ROWS_GUARD) return HN_FIT_ATTRIBUTE;
    for (int i = Q; i <= V; i++) {
        const hn_fit fit = fits_operand(r, hn_in(n, i), y->type.dtype, most);
        if (fit != HN_FIT_YES) return fit;
    }
    if (hn_in(n, Q)->type.dim[0] != hn_in(n, K)->type.dim[0] || hn_in(n, Q)->type.dim[0] != hn_in(n, V)->type.dim[0]) return HN_FIT_SHAPE;
    if (hides_rows(n)) return HN_FIT_ATTRIBUTE;
    hn_lib_fused f;
    fused_by_call(r, &f);
    const bool stores = hn_loops_unblocked(y) && hn_loops_dense_axis(y) == RANK - 1;
    return (f.whole && stores) || hn_lower_can(r, n) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add(ret, "algo", 0, PROPOSALS - 1, 1);
}

static double whole_tiles(double n)
{
    enum { TILE = 128 };
    return ceil(n / TILE) * TILE;
}

/* A step of keys takes so long, and a call; tiles that are cut, by an edge or by a causal mask, take as long as whole ones. Fitted to
 * what an H200 took: 12 heads of 64 with 197 queries 32 at a time 29.4 us (30.3 predicted), of 512 under a mask 63.0 (67.4) and 10.4
 * alone (10.6), 16 heads of 128 with 512 eight at a time 32.4 (34.4), 100 queries of 333 keys 11.2 (10.1); the reverse under a mask, of
 * whose queries most see all keys, 18.8 (10.1). */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { NS_CALL = 5500, WIDE = 128 };
    const double step_ns = 10, times_f32 = 4.1, times_f32_wide = 5.7; /* a step is a key; rates over the f32 rate that targets state */
    const hn_value *q = hn_in(r->root, Q), *k = hn_in(r->root, K);
    const double keys = whole_tiles((double)k->type.dim[2]), queries = whole_tiles((double)q->type.dim[2]);
    const double padded = keys * queries / ((double)k->type.dim[2] * (double)q->type.dim[2]), part = fmin(1, seen(r->root) + 64 / keys);
    const double rate = t->peak_gflops * (q->type.dim[3] < WIDE ? times_f32 : times_f32_wide);
    const double bytes = (double)hn_dtype_bytes(r->root->out[0]->type.dtype, hn_lib_elems(r->root->out[0]));
    hn_lib_fused f;
    hn_work work;

    fused_by_call(r, &f);
    hn_region_work(r, &work);
    const double call = fmax(keys * step_ns * t->n_core, part * padded * work.flops / rate) + NS_CALL * t->n_core;
    return call * (1 + 0.1 * (double)p[ALGO]) + (f.whole ? 0 : 2 * bytes / (t->bandwidth_gbs * 0.7) + 1000 * t->n_core);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    const hn_node *n = r->root;
    const hn_value *y = n->out[0];
    const double given = hn_attr_f(n, "scale");
    hn_libcall call = { .kind = HN_CALL_ATTENTION, .library = HN_LIB_CUDNN, .rank = (uint32_t)p[ALGO], .dtype = (uint32_t)y->type.dtype,
                        .flags = mask_of(n), .workspace_bytes = WORKSPACE };
    hn_libcall_attention *a = &call.u.attention;
    hn_ref operand[3];
    hn_lib_fused f;

    fused_by_call(r, &f);
    for (int i = Q; i <= V; i++) operand[i] = (hn_ref){ HN_REF_IN, hn_region_operand(r, hn_in(n, i)) };
    extents_of(hn_in(n, Q), a->q), strides_of(hn_in(n, Q), false, a->q_stride);
    extents_of(hn_in(n, K), a->k), strides_of(hn_in(n, K), false, a->k_stride);
    extents_of(hn_in(n, V), a->v), strides_of(hn_in(n, V), false, a->v_stride);
    extents_of(y, a->y), strides_of(y, /* plain= */ !f.whole, a->y_stride);
    a->scale = given != 0 ? given : 1 / sqrt((double)a->q[3]);
    return hn_lib_emit(r, t, &call, &f, operand, HN_COUNT(operand), /* line= */ 0, ret, dg);
}

const hn_tactic_def hn_tactic_attention_half_cudnn__lib = {
    .name = "attention_half_cudnn__lib", .rev = 2, .arch = HN_ARCH_SM, .library = HN_LIB_CUDNN,
    .fits = fits, .space = space, .cost = cost, .emit = emit, .source = HN_KNOB_tactic_cudnn,
};
