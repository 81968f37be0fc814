/* Convolutions by cuDNN, of images with their channels last and constant weights. Other images a kernel ahead of the call stores
 * so, with few channels filled up to 8 or 4, as networks' first layers want it. With a bias the library also adds a tensor and does
 * relu: those chains are what it has ready-made kernels for. Whatever else is fused, a kernel behind the call does. */
#include <math.h>
#include <string.h>

#include "tactic/cpu/loops.h"
#include "tactic/lib/lib.h"

enum { ALGO, CHANNELS, WORKSPACE = 64 << 20, PROPOSALS = 8 };
enum { IMAGE_RANK = 4 };

/* ---- what the call is to do ---- */
static void fused_by_call(const hn_region *r, hn_lib_fused *ret)
{
    const uint32_t sums = r->exact ? HN_CALL_BIAS : HN_CALL_BIAS | HN_CALL_ADD; /* an addend goes before the bias, whatever the model says */

    hn_lib_match(r, sums | HN_CALL_RELU, /* bias_axis= */ 1, hn_in(r->root, 2), ret);
    if (!(ret->flags & HN_CALL_BIAS)) hn_lib_match(r, /* can= */ 0, 1, NULL, ret);
}

/* The image is not an operand that the library can read. */
static bool is_copied(const hn_region *r)
{
    const hn_value *x = hn_in(r->root, 0);
    return hn_region_operand(r, x) < 0 || !hn_lib_rows_of_channels(x);
}

/* Channels of a group, with those that fill up. */
static int64_t channels_of(const hn_region *r, const int64_t *p)
{
    return p[CHANNELS] ? p[CHANNELS] : hn_in(r->root, 1)->type.dim[1];
}

/* Extents and strides of an image, channels densest; one without rows has one. */
static void image_of(const hn_value *v, int64_t channels, int64_t *ret, int64_t *ret_stride)
{
    const int first = IMAGE_RANK - v->type.rank;

    ret[2] = 1;
    for (int a = 0; a < v->type.rank; a++) ret[a < 2 ? a : a + first] = v->type.dim[a];
    ret[1] = channels;
    ret_stride[1] = 1;
    ret_stride[3] = ret[1];
    ret_stride[2] = ret[3] * ret_stride[3];
    ret_stride[0] = ret[2] * ret_stride[2];
}

static void spatial_of(const hn_node *n, const char *name, int64_t dflt, int64_t *ret)
{
    const int first = IMAGE_RANK - hn_in(n, 0)->type.rank;
    int have;
    const int64_t *list = hn_attr_is(n, name, &have);

    for (int s = 0; s < 2; s++) ret[s] = s >= first && s - first < have ? list[s - first] : dflt;
}

static hn_libcall_conv conv_of(const hn_region *r, const int64_t *p)
{
    const hn_node *n = r->root;
    const int64_t channels = channels_of(r, p);
    hn_libcall_conv c = { .group = hn_attr_i(n, "group") };

    image_of(hn_in(n, 0), channels * c.group, c.x, c.x_stride);
    image_of(hn_in(n, 1), channels, c.w, c.w_stride);
    image_of(n->out[0], n->out[0]->type.dim[1], c.y, c.y_stride);
    spatial_of(n, "stride", 1, c.stride);
    spatial_of(n, "dilation", 1, c.dilation);
    spatial_of(n, "pad_begin", 0, c.before);
    spatial_of(n, "pad_end", 0, c.after);
    return c;
}

static int64_t taps_of(const hn_value *w)
{
    int64_t n = 1;
    for (int a = 2; a < w->type.rank; a++) n *= w->type.dim[a];
    return n;
}

/* ---- whether ---- */
static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_conv) return HN_FIT_OP;
    const hn_value *x = hn_in(n, 0), *w = hn_in(n, 1), *bias = hn_in(n, 2), *y = n->out[0];
    if (!hn_lib_product_type(y->type.dtype) || x->type.dtype != y->type.dtype || w->type.dtype != y->type.dtype) return HN_FIT_DTYPE;
    if (!hn_lib_is_fixed(x) || !hn_lib_is_fixed(w) || !hn_lib_is_fixed(y)) return HN_FIT_SYMBOLIC;
    if (x->type.rank < 3 || x->type.rank > IMAGE_RANK) return HN_FIT_SHAPE;
    if (hn_region_operand(r, w) < 0 || (bias && hn_region_operand(r, bias) < 0)) return HN_FIT_LAYOUT;
    if (!r->data[hn_region_operand(r, w)]) return HN_FIT_NOT_CONST;
    if (!hn_lib_rows_of_channels(y) || !hn_layout_is_plain(&w->layout) || (is_copied(r) && !hn_lower_can(r, n))) return HN_FIT_LAYOUT;
    hn_lib_fused f;
    fused_by_call(r, &f);
    return f.whole || hn_lower_can(r, n) ? HN_FIT_YES : HN_FIT_EPILOGUE;
}

static hn_fit fits_tf32(const hn_region *r, const hn_target *t)
{
    return hn_lib_fit_tf32(r, fits(r, t));
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)t;
    const int64_t channels = hn_in(r->root, 1)->type.dim[1], filled[] = { (channels + 7) / 8 * 8, (channels + 3) / 4 * 4, channels };
    const int first = filled[0] == filled[1], last = filled[1] == filled[2]; /* each once */
    hn_space_add(ret, "algo", 0, PROPOSALS - 1, 1);
    if (is_copied(r) && hn_attr_i(r->root, "group") == 1 && filled[0] != channels)
        hn_space_add_list(ret, "channels", HN_COUNT(filled) - first - last, filled + first);
}

/* Tiles of 128 pixels keep multiprocessors busy; lines of few channels and groups of few columns are padding in good part; a step along
 * the sum takes so long however few there are, and a call however small it is; lines that are no whole 16 bytes the library copies
 * itself. The numbers are fitted to layers of ResNet-50 timed on an H200: within a tenth for 3x3 of 64 channels, a third for 3x3 of
 * others, two thirds for one tap and the first layer. Proposals come best first, as cuBLASLt's do. */
static double cost(const hn_region *r, const hn_target *t, const int64_t *p, double speed)
{
    enum { TILE = 128, STEP_CHANNELS = 64, NS_STEP = 110, NS_CALL = 4000, NS_ODD = 3000, NS_COPIES = 12000, FULL_COLUMNS = 96, FEW_CHANNELS = 8, FULL_CHANNELS = 16 };
    const hn_value *w = hn_in(r->root, 1), *y = r->root->out[0];
    const double groups = (double)hn_attr_i(r->root, "group"), columns = (double)w->type.dim[0] / groups, channels = (double)w->type.dim[1];
    const double pixels = (double)hn_lib_elems(y) / (double)w->type.dim[0], depth = channels * (double)taps_of(w);
    const double tiles = ceil(pixels / TILE) * ceil(columns / TILE) * groups, rate = t->peak_gflops * speed * fmin(1, tiles / t->n_core);
    const double padded = fmax(1, FULL_COLUMNS / columns) * (channels < FEW_CHANNELS ? FULL_CHANNELS / channels : 1);
    const double bytes = (double)hn_dtype_bytes(y->type.dtype, hn_lib_elems(y)), moving = t->bandwidth_gbs * 0.7;
    hn_lib_fused f;
    hn_work work;

    fused_by_call(r, &f);
    hn_region_work(r, &work);
    const double steps = ceil(depth / STEP_CHANNELS) * NS_STEP * t->n_core;
    const double copied = (double)hn_dtype_bytes(y->type.dtype, hn_lib_elems(hn_in(r->root, 0))) / channels * (double)channels_of(r, p);
    const double copy = is_copied(r) ? 2 * copied / moving + 1500 * t->n_core : 0;
    const int64_t line = channels_of(r, p);
    const double odd = t->n_core * (line % 8 && !is_copied(r) ? NS_COPIES : line % 4 ? NS_ODD : 0);
    const double call = fmax(fmax(padded * work.flops / rate, steps), work.bytes / moving) + NS_CALL * t->n_core + odd;
    return call * (1 + 0.1 * (double)p[ALGO]) + copy + (f.whole ? 0 : 2 * bytes / moving + 1000 * t->n_core);
}

static double cost_float(const hn_region *r, const hn_target *t, const int64_t *p)
{
    return cost(r, t, p, r->root->out[0]->type.dtype == HN_F32 ? 0.6 : 8);
}

static double cost_tf32(const hn_region *r, const hn_target *t, const int64_t *p)
{
    return cost(r, t, p, 4);
}

/* ---- the call ---- */
/* [column][channel][tap] to [column][tap][channel], channels that fill up zero. */
static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)i, (void)dg;
    const hn_value *w = hn_in(r->root, 1);
    const int64_t columns = w->type.dim[0], channels = w->type.dim[1], taps = taps_of(w), filled = channels_of(r, p);
    const size_t size = (size_t)hn_dtype_bits(w->type.dtype) / 8;
    const uint8_t *src = r->data[hn_region_operand(r, w)]->at;
    uint8_t *at = dst;

    memset(dst, 0, (size_t)(columns * taps * filled) * size);
    for (int64_t row = 0; row < columns * taps; row++, at += (size_t)(filled - channels) * size)
        for (int64_t c = 0; c < channels; c++, at += size)
            memcpy(at, src + (size_t)((row / taps * channels + c) * taps + row % taps) * size, size);
    return HONE_OK;
}

static hone_status add_weights(const hn_region *r, const int64_t *p, hn_ref *weights, hn_emission *ret, hn_diag *dg)
{
    const hn_value *w = hn_in(r->root, 1);
    const int64_t filled = channels_of(r, p);
    const hn_blob blob = { .operand = weights->index, .recipe = hn_arena_printf(ret->arena, "conv_taps_channels_%lld", (long long)filled),
                           .bytes = (size_t)hn_dtype_bytes(w->type.dtype, hn_lib_elems(w) / w->type.dim[1] * filled) };

    if (filled == w->type.dim[1] && (taps_of(w) == 1 || filled == 1)) return HONE_OK; /* both orders are one */
    if (!blob.recipe || !hn_vec_push(ret->arena, &ret->blobs, blob)) return HN_NOMEM(dg);
    *weights = (hn_ref){ HN_REF_BLOB, 0 };
    return HONE_OK;
}

/* Neighbouring channels of one pixel. */
static hn_kv channels_at(hn_lower *l, const hn_value *x, hn_kv pixel, hn_kv first, int64_t filled, int lanes)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_kv channels = hn_kb_i(b, x->type.dim[1]);
    hn_kv at[HN_MAX_RANK], v = hn_kb_float(b, HN_F32, lanes, 0);
    hn_kidx idx;

    hn_loops_split(l, x, hn_loops_all(x) & ~2u, pixel, at);
    for (int i = 0; i < lanes; i++) {
        at[1] = hn_kb_addi(b, first, i);
        const hn_kv there = hn_kb_lt(b, at[1], channels);
        hn_lower_forget(l);
        hn_kidx_init(&idx, x->type.rank, at);
        const hn_kv e = hn_lower_value(l, x, &idx, filled == x->type.dim[1] ? HN_KV_NONE : there);
        v = hn_kb_insert(b, v, filled == x->type.dim[1] ? e : hn_kb_select(b, there, e, hn_kb_f(b, 0)), i);
    }
    return v;
}

/* The image as the library reads it, into a temporary. */
static hone_status emit_copy(const hn_region *r, const hn_target *t, const int64_t *p, hn_ref *image, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "conv_any_image__lib");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    const hn_value *x = hn_in(r->root, 0);
    const hn_dtype type = hn_in(r->root, 1)->type.dtype;
    const int64_t filled = channels_of(r, p) * hn_attr_i(r->root, "group"), pixels = hn_lib_elems(x) / x->type.dim[1];
    const int most = 16 * 8 / hn_dtype_bits(type);
    int lanes = most;

    while (filled % lanes) lanes /= 2;
    const double bytes = (double)hn_dtype_bytes(type, pixels * filled);
    if (!b || !l || !hn_lib_temp(r, ret, (int64_t)bytes, image)) return HN_NOMEM(dg);
    const int to = hn_lower_temp(l, image->index, type, /* write= */ true);
    const hn_kv place = hn_kb_muli(b, hn_kb_parallel(b, hn_kext_const(pixels * filled / lanes)), lanes), extent = hn_kb_i(b, filled);
    const hn_kv v = channels_at(l, x, hn_kb_idiv(b, place, extent), hn_kb_imod(b, place, extent), filled, lanes);
    if (lanes > 1) hn_kb_store_aligned(b, to, place, v);
    else hn_kb_store(b, to, place, v);
    hn_kb_end(b);
    return hn_lower_finish(l, ret, bytes, 2 * bytes, dg);
}

static hone_status emit_as(const hn_region *r, const hn_target *t, const int64_t *p, uint32_t flags, hn_emission *ret, hn_diag *dg)
{
    const hn_value *w = hn_in(r->root, 1);
    hn_ref operand[] = { { HN_REF_IN, hn_region_operand(r, hn_in(r->root, 0)) }, { HN_REF_IN, hn_region_operand(r, w) } };
    const hn_libcall call = { .kind = HN_CALL_CONV, .library = HN_LIB_CUDNN, .rank = (uint32_t)p[ALGO], .dtype = (uint32_t)w->type.dtype,
                              .flags = flags, .workspace_bytes = WORKSPACE, .u.conv = conv_of(r, p) };
    hn_lib_fused f;

    fused_by_call(r, &f);
    if (is_copied(r)) HN_TRY(emit_copy(r, t, p, &operand[0], ret, dg));
    HN_TRY(add_weights(r, p, &operand[1], ret, dg));
    return hn_lib_emit(r, t, &call, &f, operand, HN_COUNT(operand), /* line= */ 0, ret, dg);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    return emit_as(r, t, p, 0, ret, dg);
}

static hone_status emit_tf32(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    return emit_as(r, t, p, HN_CALL_TF32, ret, dg);
}

const hn_tactic_def hn_tactic_conv_float_cudnn__lib = {
    .name = "conv_float_cudnn__lib", .rev = 2, .arch = HN_ARCH_SM, .library = HN_LIB_CUDNN,
    .fits = fits, .space = space, .cost = cost_float, .emit = emit, .pack = pack, .source = HN_KNOB_tactic_cudnn,
};

const hn_tactic_def hn_tactic_conv_tf32_cudnn__lib = {
    .name = "conv_tf32_cudnn__lib", .rev = 2, .arch = HN_ARCH_SM, .library = HN_LIB_CUDNN,
    .fits = fits_tf32, .space = space, .cost = cost_tf32, .emit = emit_tf32, .pack = pack, .changes_numbers = true,
    .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_cudnn,
};
