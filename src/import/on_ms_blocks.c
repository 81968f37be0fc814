/* com.microsoft: what its quantisers and optimisers make of embeddings, diffusion models and mixtures of experts. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- lookups in quantised tables ---- */

/* The last axis of a constant of bytes seen as entries of fewer bits, the least first. */
static hn_value *unpacked(hn_im_call *c, hn_value *v, int64_t bits)
{
    if (!v || bits == 8 || v->type.dtype != HN_U8) return v;
    hn_tdesc d = v->type;
    if (!hn_is_const(v) || d.rank < 1) {
        hn_im_refuse(c, "packed weights must be constants");
        return NULL;
    }
    d.dtype = bits == 4 ? HN_U4 : HN_U2;
    d.dim[d.rank - 1] = d.dim[d.rank - 1] * 8 / bits;
    return hn_graph_const(c->b->g, NULL, &d, v->data->at, v->data->bytes);
}

static hn_value *middle(hn_im_call *c, hn_dtype t, int64_t bits, const hn_value *like)
{
    const int64_t zero = hn_dtype_is_signed(t) ? 0 : (int64_t)1 << (bits - 1);
    return hn_im_fill(c, hn_const_i(c->b, t, zero), like->type.rank, like->type.dim);
}

/* Rows of the table, of its scales and of its zero points are looked up, then widened: the table stays small. */
hone_status hn_im_on_ms_gather_block(hn_im_call *c)
{
    const int64_t block = hn_im_i(c, "block_size", 128), bits = hn_im_i(c, "bits", 4);
    hn_value *data = c->in[0], *index = c->in[1], *scale = c->in[2], *zero = hn_im_in(c, 3);
    int along, axis;
    if (bits != 2 && bits != 4 && bits != 8) return hn_im_refuse(c, "tables of %" PRId64 " bits are not supported", bits);
    HN_TRY(hn_im_axis(c, hn_im_i(c, "gather_axis", 0), data->type.rank, &along));
    HN_TRY(hn_im_axis(c, hn_im_i(c, "quantize_axis", 1), data->type.rank, &axis));
    if (along == axis) return HN_IM_RAISE(c, HONE_E_MODEL, "gather_axis and quantize_axis are both %d", axis);
    if (data->type.dtype == HN_U8 && bits < 8 && axis != data->type.rank - 1)
        return hn_im_refuse(c, "a packed axis that is not the last is not supported");
    data = unpacked(c, data, bits);
    zero = unpacked(c, zero, bits);
    if (!data || (hn_im_in(c, 3) && !zero)) return c->dg->code ? c->dg->code : HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (!zero) zero = middle(c, data->type.dtype, bits, scale);
    if (zero && zero->type.dim[axis] != scale->type.dim[axis]) /* stored padded to whole bytes */
        zero = hn_slice(c->b, zero, axis, 0, scale->type.dim[axis]);
    hn_value *part[3] = { data, scale, zero };
    for (int i = 0; i < 3; i++)
        part[i] = hn_im_gather(c, part[i], index, along);
    HN_TRY(c->b->status);
    const int at = axis > along ? axis - 1 + index->type.rank : axis;
    return hn_im_done(c, hn_im_dequantize_with(c, part[0], part[1], part[2], at, block));
}

/* One scale and zero point a table. */
static hn_value *row_of(hn_im_call *c, int table, hn_value *index)
{
    hn_value *scale = hn_im_in(c, table + 6), *zero = hn_im_in(c, table + 11);
    if (!hn_im_in(c, table) || !scale) return NULL;
    hn_value *rows = index ? hn_im_gather(c, c->in[table], index, 0) : c->in[table];
    return hn_im_dequantize_with(c, rows, hn_reshape(c->b, scale, 0, NULL), zero ? hn_reshape(c->b, zero, 0, NULL) : NULL, 0, 0);
}

/* Tables, gamma and beta stand at 2 to 6, their scales at 8 to 12, their zero points at 13 to 17. */
hone_status hn_im_on_ms_q_embed_norm(hn_im_call *c)
{
    enum { IDS, SEGMENT_IDS, WORDS, PLACES, SEGMENTS, GAMMA, BETA, MASK };
    hn_value *ids = c->in[IDS], *kinds = hn_im_in(c, SEGMENT_IDS);
    const double eps = hn_im_f(c, "epsilon", (double)1e-12f);
    if (ids->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the ids are no matrix");
    hn_value *at = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, ids->type.dim[1] }, 1);
    hn_value *sum = hn_im_binary(c, HN_OP_add, row_of(c, WORDS, ids), row_of(c, PLACES, at));
    hn_value *kind = kinds ? row_of(c, SEGMENTS, kinds) : NULL;
    if (kind) sum = hn_im_binary(c, HN_OP_add, sum, kind);
    hn_value *gamma = row_of(c, GAMMA, NULL), *beta = row_of(c, BETA, NULL);
    if (!sum || !gamma || !beta) return c->b->status ? c->b->status : HN_IM_RAISE(c, HONE_E_MODEL, "a table or its scale is absent");
    hn_node *n = hn_build(c->b, HN_OP_layer_norm, 3, (hn_value *[]){ sum, gamma, beta },
                          HN_ATTRS_ARG(HN_A_I("axis", 2), HN_A_F("eps", eps)), 1);
    if (hn_im_wants(c, 1)) c->out[1] = hn_im_kept_tokens(c, hn_im_in(c, MASK), ids);
    return hn_im_done(c, n ? n->out[0] : NULL);
}

/* ---- group normalisation of diffusion models ---- */

/* [n,c] or [n,1,1,c] beside [n,h,w,c]. */
static hn_value *over_image(hn_im_call *c, hn_value *v)
{
    if (!v || v->type.rank != 2) return v;
    return hn_reshape(c->b, v, 4, (hn_dim[]){ v->type.dim[0], 1, 1, v->type.dim[1] });
}

/* inputs: x, gamma, beta; entry 1 adds skip and bias? first and yields the sum as output 1 */
hone_status hn_im_on_ms_group_norm(hn_im_call *c)
{
    const bool skips = c->entry->arg == 1, last = hn_im_i(c, "channels_last", 1) != 0, swish = hn_im_i(c, "activation", 0) != 0;
    const int64_t groups = hn_im_i(c, "groups", 0);
    const double eps = hn_im_f(c, "epsilon", (double)1e-5f);
    hn_value *x = c->in[0];
    if (groups < 1) return HN_IM_RAISE(c, HONE_E_MODEL, "groups is %" PRId64, groups);
    if (skips && !last) return hn_im_refuse(c, "a skip needs the channels last");
    if (skips) x = hn_im_binary(c, HN_OP_add, x, over_image(c, hn_im_in(c, 3)));
    if (skips && hn_im_in(c, 4)) x = hn_im_binary(c, HN_OP_add, x, c->in[4]);
    if (skips && hn_im_wants(c, 1)) c->out[1] = x;
    hn_value *y = hn_b3(c->b, HN_OP_group_norm, last ? hn_im_channels_first(c, x) : x, c->in[1], c->in[2],
                        HN_ATTRS_ARG(HN_A_I("groups", groups), HN_A_F("eps", eps)));
    if (swish && y) y = hn_im_unary(c, HN_OP_silu, y);
    return hn_im_done(c, last ? hn_im_channels_last(c, y) : y);
}

/* ---- mixtures of experts: every expert computes every token; what a token's router did not choose counts 0 ---- */

typedef struct expert_layer {
    hn_value *w, *bias; /* [e, out, in], [e, out]; NULL: no such layer */
} expert_layer;

/* Shares [t, e] of the k experts with the largest router values, 0 for the others. */
static hn_value *shares(hn_im_call *c, hn_value *router, int64_t k)
{
    const hn_dim *d = router->type.dim;
    hn_value *p = hn_b1(c->b, HN_OP_softmax, router, HN_ATTRS_ARG(HN_A_I("axis", 1)));
    hn_node *top = p ? hn_build(c->b, HN_OP_topk, 1, &p, HN_ATTRS_ARG(HN_A_I("axis", 1), HN_A_DIM("dim", k)), 2) : NULL;
    if (!top) return NULL;
    hn_value *best = top->out[0];
    if (hn_im_i(c, "normalize_routing_weights", 0))
        best = hn_im_binary(c, HN_OP_div, best, hn_im_reduce(c, HN_OP_reduce_sum, best, 1, (int64_t[]){ 1 }, true));
    return hn_b3(c->b, HN_OP_scatter_elements, hn_im_fill(c, hn_im_like_f(c, p, 0), 2, d), top->out[1], best,
                 HN_ATTRS_ARG(HN_A_I("axis", 1)));
}

/* [e, t, in] or [1, t, in] by each expert's matrix. */
static hn_value *layer(hn_im_call *c, hn_value *x, const expert_layer *l)
{
    hn_value *y = hn_im_matmul(c, x, l->w, false, true);
    return y && l->bias ? hn_im_binary(c, HN_OP_add, y, hn_im_unsqueeze(c, l->bias, 1)) : y;
}

/* Every second element of the last axis, from the first or the second. */
static hn_value *every_second(hn_im_call *c, hn_value *x, int64_t first)
{
    const int last = x->type.rank - 1;
    return hn_im_slice(c, x, last, first, 2, hn_im_ddiv(c, x->type.dim[last], 2));
}

/* gate * sigmoid(alpha gate) * (linear + beta), both within the limit. */
static hn_value *swiglu(hn_im_call *c, hn_value *gate, hn_value *linear)
{
    const double alpha = hn_im_f(c, "activation_alpha", 1), beta = hn_im_f(c, "activation_beta", 0);
    const double limit = hn_im_f(c, "swiglu_limit", INFINITY);
    if (!gate || !linear) return NULL;
    if (limit < INFINITY) {
        hn_value *hi = hn_im_like_f(c, gate, limit), *lo = hn_im_like_f(c, gate, -limit);
        gate = hn_im_binary(c, HN_OP_min, gate, hi);
        linear = hn_b3(c->b, HN_OP_clip, linear, lo, hi, HN_NO_ATTRS);
    }
    gate = hn_b1(c->b, HN_OP_silu, gate, HN_ATTRS_ARG(HN_A_F("beta", alpha)));
    return hn_im_binary(c, HN_OP_mul, gate, beta != 0 ? hn_im_binary(c, HN_OP_add, linear, hn_im_like_f(c, linear, beta)) : linear);
}

static hn_value *activated(hn_im_call *c, hn_value *x, const expert_layer fc[3])
{
    enum { RELU, GELU, SILU, SWIGLU, IDENTITY };
    const int kind = hn_im_choice(c, "activation_type", "relu|gelu|silu|swiglu|identity", RELU);
    const int64_t fusion = hn_im_i(c, "swiglu_fusion", 0);
    hn_value *h = layer(c, x, &fc[0]);
    if (!h) return NULL;
    if (kind == SWIGLU && fusion == 1) return swiglu(c, every_second(c, h, 0), every_second(c, h, 1));
    if (kind == SWIGLU && fusion == 2) {
        const hn_dim half = hn_im_ddiv(c, h->type.dim[2], 2);
        return swiglu(c, hn_slice(c->b, h, 2, 0, half), hn_slice(c->b, h, 2, half, half));
    }
    if (kind == SWIGLU) return fc[2].w ? swiglu(c, h, layer(c, x, &fc[2])) : NULL;
    if (kind == GELU) h = hn_b1(c->b, HN_OP_gelu, h, HN_ATTRS_ARG(HN_A_I("tanh", 1))); /* as ONNX Runtime's experts */
    else if (kind != IDENTITY) h = hn_im_unary(c, kind == SILU ? HN_OP_silu : HN_OP_relu, h);
    return fc[2].w ? hn_im_binary(c, HN_OP_mul, h, layer(c, x, &fc[2])) : h;
}

static hone_status mix(hn_im_call *c, const expert_layer fc[3])
{
    hn_value *x = c->in[0], *router = c->in[1];
    const int rank = x->type.rank;
    if (rank != 2 && rank != 3) return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d, not 2 or 3", rank);
    if (router->type.rank != 2) return HN_IM_RAISE(c, HONE_E_SHAPE, "the router's values have rank %d, not 2", router->type.rank);
    if (hn_im_i(c, "use_sparse_mixer", 0)) return hn_im_refuse(c, "a sparse mixer is not supported");
    if (hn_im_i(c, "swiglu_limit_after_activation", 0)) return hn_im_refuse(c, "a limit behind the activation is not supported");
    hn_value *share = shares(c, router, hn_im_i(c, "k", 1));
    const hn_dim rows[3] = { 1, router->type.dim[0], x->type.dim[rank - 1] };
    hn_value *h = activated(c, hn_reshape(c->b, x, 3, rows), fc);
    hn_value *y = h ? layer(c, h, &fc[1]) : NULL; /* [e, t, out] */
    if (!y || !share) return c->dg->code ? c->dg->code : c->b->status ? c->b->status : hn_im_refuse(c, "a layer of the experts is missing");
    hn_value *weight = hn_im_unsqueeze(c, hn_transpose(c->b, share, (int64_t[]){ 1, 0 }), 2);
    y = hn_im_reduce(c, HN_OP_reduce_sum, hn_im_binary(c, HN_OP_mul, y, weight), 1, (int64_t[]){ 0 }, false);
    return hn_im_done(c, y ? hn_reshape(c->b, y, rank, x->type.dim) : NULL);
}

/* inputs: x, router, then weights and bias? of each layer */
hone_status hn_im_on_ms_moe(hn_im_call *c)
{
    expert_layer fc[3];
    for (int i = 0; i < 3; i++)
        fc[i] = (expert_layer){ hn_im_in(c, 2 + 2 * i), hn_im_in(c, 3 + 2 * i) };
    if (!fc[0].w || !fc[1].w) return HN_IM_RAISE(c, HONE_E_MODEL, "the weights of a layer are absent");
    return mix(c, fc);
}

/* Weights [e, out, in / pack] with a scale a row, or one a block of it. */
static hn_value *wide_expert(hn_im_call *c, hn_value *w, hn_value *scale, hn_value *zero)
{
    const int64_t bits = hn_im_i(c, "expert_weight_bits", 4), block = hn_im_i(c, "block_size", 0);
    if (bits != 2 && bits != 4 && bits != 8) {
        hn_im_refuse(c, "weights of %" PRId64 " bits are not supported", bits);
        return NULL;
    }
    w = unpacked(c, w, bits);
    zero = unpacked(c, zero, bits);
    if (!w || !scale || w->type.rank != 3) return NULL;
    hn_dim dim[3] = { scale->type.dim[0], scale->type.dim[1], scale->type.rank == 3 ? scale->type.dim[2] : 1 };
    scale = hn_reshape(c->b, scale, 3, dim);
    if (!zero) zero = middle(c, w->type.dtype, bits, scale);
    else if (zero->type.rank == 3) zero = hn_slice(c->b, zero, 2, 0, dim[2]);
    else zero = hn_reshape(c->b, zero, 3, dim);
    const hn_dim n = w->type.dim[2];
    return hn_im_dequantize_with(c, w, scale, zero, 2, block > 0 ? block : n);
}

/* inputs: x, router, then weights, scales, bias? of each layer, then the zero points of each */
hone_status hn_im_on_ms_qmoe(hn_im_call *c)
{
    const char *type = hn_im_s(c, "quant_type", "int");
    expert_layer fc[3] = { 0 };
    hn_im_ignore(c, "accuracy_level");
    if (strcmp(type, "int") != 0) return hn_im_refuse(c, "weights of type \"%s\" are not supported", type);
    if (c->n_in > 14 || hn_im_i(c, "weights_prepacked", -1) == 1) return hn_im_refuse(c, "this form of its weights is not supported");
    for (int i = 0; i < 3; i++) {
        if (!hn_im_in(c, 2 + 3 * i)) continue;
        fc[i].w = wide_expert(c, c->in[2 + 3 * i], hn_im_in(c, 3 + 3 * i), hn_im_in(c, 11 + i));
        fc[i].bias = hn_im_in(c, 4 + 3 * i);
        if (!fc[i].w) return c->dg->code ? c->dg->code : HN_IM_RAISE(c, HONE_E_MODEL, "layer %d has no scales", i + 1);
    }
    if (!fc[0].w || !fc[1].w) return HN_IM_RAISE(c, HONE_E_MODEL, "the weights of a layer are absent");
    return mix(c, fc);
}

/* ---- softmax of scores with a bias ---- */

/* Over all axes from `axis` on; the bias broadcasts along inner axes, or repeats as a whole along the outer one. */
hone_status hn_im_on_ms_bias_softmax(hn_im_call *c)
{
    hn_value *x = c->in[0], *bias = c->in[1];
    const bool inner = hn_im_i(c, "is_inner_broadcast", 1) != 0;
    const int rank = x->type.rank;
    int axis;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 1), rank, &axis));
    if (!inner && bias->type.rank > rank) return HN_IM_RAISE(c, HONE_E_SHAPE, "the bias has rank %d", bias->type.rank);
    hn_value *sum = hn_im_binary(c, HN_OP_add, x, bias);
    if (!sum) return c->b->status;
    hn_dim rows[2] = { 1, 1 };
    for (int i = 0; i < rank; i++)
        rows[i >= axis] = hn_im_dmul(c, rows[i >= axis], x->type.dim[i]);
    hn_value *y = axis == rank - 1 ? sum : hn_reshape(c->b, sum, 2, rows);
    y = y ? hn_b1(c->b, HN_OP_softmax, y, HN_ATTRS_ARG(HN_A_I("axis", y->type.rank - 1))) : NULL;
    return hn_im_done(c, y && axis != rank - 1 ? hn_reshape(c->b, y, rank, x->type.dim) : y);
}

/* ---- products with weights of four bits by a table ---- */

enum { CODES = 16 };

/* Values of the codes: bitsandbytes' FP4, and NF4, whose codes are quantiles of the normal distribution. */
static const float four_bits[2][CODES] = {
    { 0.0f, 0.005208333333f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f, -0.005208333333f, -0.66666667f, -1.0f,
      -0.33333333f, -0.5f, -0.16666667f, -0.25f },
    { -1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
      -0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
      0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f },
};

static hn_value *table_of(hn_im_call *c, int64_t type)
{
    float *at = hn_arena_memdup(c->m->arena, four_bits[type], sizeof four_bits[type]);
    return at ? hn_graph_const(c->b->g, NULL, &(hn_tdesc){ .dtype = HN_F32, .rank = 1, .dim = { CODES } }, at, sizeof four_bits[type]) : NULL;
}

/* Codes [n] from bytes, the upper half first. */
static hn_value *codes_of(hn_im_call *c, hn_value *bytes, hn_dim n)
{
    const hn_dim count = hn_tdesc_numel(hn_im_syms(c), &bytes->type);
    hn_value *flat = hn_reshape(c->b, bytes, 2, (hn_dim[]){ count, 1 });
    hn_value *half[2] = { hn_im_binary(c, HN_OP_shift_right, flat, hn_const_i(c->b, HN_U8, 4)),
                          hn_im_binary(c, HN_OP_bit_and, flat, hn_const_i(c->b, HN_U8, CODES - 1)) };
    hn_value *both = half[0] && half[1] ? hn_im_concat(c, 1, 2, half) : NULL;
    both = both ? hn_reshape(c->b, both, 1, (hn_dim[]){ hn_im_dmul(c, count, 2) }) : NULL;
    return both ? hn_slice(c->b, hn_cast(c->b, both, HN_I32), 0, 0, n) : NULL;
}

/* y = a W^T: W [n, k] in runs of `block` codes along its rows laid end to end, each with its largest magnitude. */
hone_status hn_im_on_ms_matmul_bnb4(hn_im_call *c)
{
    const int64_t k = hn_im_i(c, "K", 0), n = hn_im_i(c, "N", 0), block = hn_im_i(c, "block_size", 0), type = hn_im_i(c, "quant_type", 1);
    hn_im_ignore(c, "training_mode");
    if (k < 1 || n < 1 || block < 1 || n > INT32_MAX || k > INT32_MAX || type < 0 || type > 1)
        return HN_IM_RAISE(c, HONE_E_MODEL, "K, N, block_size or quant_type is missing or out of range");
    if (hn_im_i(c, "transB", 1) != 1) return hn_im_refuse(c, "transB 0 is not supported");
    const int64_t blocks = (n * k + block - 1) / block;
    hn_value *table = table_of(c, type), *codes = codes_of(c, c->in[1], n * k);
    if (!table || !codes) return c->b->status ? c->b->status : HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    hn_value *most = hn_reshape(c->b, hn_cast(c->b, c->in[2], HN_F32), 2, (hn_dim[]){ blocks, 1 });
    if (blocks * block != n * k) return hn_im_refuse(c, "a last block that is not full is not supported");
    hn_value *w = hn_reshape(c->b, hn_im_gather(c, table, codes, 0), 2, (hn_dim[]){ blocks, block });
    w = hn_im_binary(c, HN_OP_mul, w, most);
    w = w ? hn_cast(c->b, hn_reshape(c->b, w, 2, (hn_dim[]){ n, k }), c->in[0]->type.dtype) : NULL;
    return hn_im_done(c, hn_im_matmul(c, c->in[0], w, false, true));
}

/* ---- T5's bias by distance ---- */

/* Bucket of every distance [q, k]: exact when near, by its logarithm when far. n is what one direction has. */
static hn_value *bucket_of(hn_im_call *c, hn_value *away, int64_t n, int64_t farthest)
{
    const int64_t exact = n / 2;
    const double steps = (double)(n - exact) / log((double)farthest / (double)exact);
    hn_value *f = hn_cast(c->b, away, HN_F32);
    hn_value *far = hn_im_unary(c, HN_OP_log, hn_im_scale(c, hn_im_binary(c, HN_OP_max, f, hn_im_like_f(c, f, 1)), 1.0 / (double)exact));
    far = hn_im_scale(c, far, steps);
    far = far ? hn_im_binary(c, HN_OP_add, hn_cast(c->b, far, HN_I64), hn_const_i(c->b, HN_I64, exact)) : NULL;
    far = hn_im_binary(c, HN_OP_min, far, hn_const_i(c->b, HN_I64, n - 1));
    return hn_im_select(c, hn_im_binary(c, HN_OP_lt, away, hn_const_i(c->b, HN_I64, exact)), away, far);
}

/* inputs: table [buckets, heads], lengths of query and key -> [1, heads, q, k] */
hone_status hn_im_on_ms_relative_bias(hn_im_call *c)
{
    hn_value *table = c->in[0];
    const int64_t farthest = hn_im_i(c, "max_distance", 0), both = hn_im_i(c, "is_bidirectional", 0);
    int64_t buckets;
    if (table->type.rank != 2 || !hn_dim_known(hn_im_syms(c), table->type.dim[0], &buckets))
        return hn_im_refuse(c, "the number of buckets must be known before the run");
    const int64_t n = both ? buckets / 2 : buckets;
    if (n < 2 || farthest <= n / 2) return HN_IM_RAISE(c, HONE_E_MODEL, "%" PRId64 " buckets for distances to %" PRId64, buckets, farthest);
    const hn_dim q = hn_im_dim(c, c->in[1], 0), k = hn_im_dim(c, c->in[2], 0);
    hn_value *key = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ 1, k }, 1), *query = hn_im_iota(c, HN_I64, 2, (hn_dim[]){ q, 1 }, 0);
    hn_value *ahead = hn_im_binary(c, HN_OP_sub, key, query), *zero = hn_const_i(c->b, HN_I64, 0);
    hn_value *away = both ? hn_im_unary(c, HN_OP_abs, ahead) : hn_im_binary(c, HN_OP_max, hn_im_unary(c, HN_OP_neg, ahead), zero);
    hn_value *bucket = away ? bucket_of(c, away, n, farthest) : NULL;
    if (both && bucket)
        bucket = hn_im_binary(c, HN_OP_add, bucket, hn_im_select(c, hn_im_binary(c, HN_OP_gt, ahead, zero), hn_const_i(c->b, HN_I64, n), zero));
    hn_value *y = bucket ? hn_im_gather(c, table, bucket, 0) : NULL; /* [q, k, heads] */
    return hn_im_done(c, y ? hn_im_unsqueeze(c, hn_transpose(c->b, y, (int64_t[]){ 2, 0, 1 }), 0) : NULL);
}
