/* com.microsoft: fused and quantised ops that ONNX Runtime's tools write. Each is spelled out in ops of ours.
 */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- activations ---- */

static hn_value *gelu(hn_im_call *c, hn_value *x, bool tanh_form)
{
    return hn_b1(c->b, HN_OP_gelu, x, HN_ATTRS_ARG(HN_A_I("tanh", tanh_form)));
}

static hn_value *add_if(hn_im_call *c, hn_value *x, hn_value *y)
{
    return y ? hn_im_binary(c, HN_OP_add, x, y) : x;
}

hone_status hn_im_on_ms_bias_gelu(hn_im_call *c)
{
    return hn_im_ret(c, gelu(c, hn_im_binary(c, HN_OP_add, c->in[0], c->in[1]), false));
}

hone_status hn_im_on_ms_fast_gelu(hn_im_call *c)
{
    return hn_im_ret(c, gelu(c, add_if(c, c->in[0], hn_im_in(c, 1)), true));
}

hone_status hn_im_on_ms_quick_gelu(hn_im_call *c)
{
    return hn_im_ret(c, hn_b1(c->b, HN_OP_silu, c->in[0],
                              HN_ATTRS_ARG(HN_A_F("beta", hn_im_f(c, "alpha", (double)1.702f)))));
}

hone_status hn_im_on_ms_gemm_fast_gelu(hn_im_call *c)
{
    return hn_im_ret(c, gelu(c, add_if(c, hn_im_matmul_numpy(c, c->in[0], c->in[1]), hn_im_in(c, 2)), true));
}

hone_status hn_im_on_ms_bias_add(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_binary(c, HN_OP_add, hn_im_binary(c, HN_OP_add, c->in[0], c->in[1]), c->in[2]));
}

/* The half in front times the gelu of the other. */
hone_status hn_im_on_ms_bias_split_gelu(hn_im_call *c)
{
    hn_value *x = hn_im_binary(c, HN_OP_add, c->in[0], c->in[1]);
    if (!x || x->type.rank < 1) return c->b->status ? c->b->status : HN_IM_RAISE(c, HONE_E_SHAPE, "the input is a scalar");
    const int last = x->type.rank - 1;
    const hn_dim half = hn_im_ddiv(c, x->type.dim[last], 2);
    hn_value *left = hn_slice(c->b, x, last, 0, half), *right = hn_slice(c->b, x, last, half, half);
    return hn_im_ret(c, hn_im_binary(c, HN_OP_mul, left, gelu(c, right, false)));
}

/* The "activation" attribute of fused ops, with its parameters. */
static hn_value *activate(hn_im_call *c, hn_value *x)
{
    const char *name = hn_im_s(c, "activation", "");
    int n;
    const double *p = hn_im_fs(c, "activation_params", &n);
    const double a = n > 0 ? p[0] : hn_im_f(c, "activation_alpha", 0),
                 b = n > 1 ? p[1] : hn_im_f(c, "activation_beta", 0);
    hn_im_ignore(c, "activation_gamma");
    if (!name[0]) return x;
    if (strcmp(name, "Relu") == 0) return hn_im_unary(c, HN_OP_relu, x);
    if (strcmp(name, "Sigmoid") == 0) return hn_im_unary(c, HN_OP_sigmoid, x);
    if (strcmp(name, "Tanh") == 0) return hn_im_unary(c, HN_OP_tanh, x);
    if (strcmp(name, "LeakyRelu") == 0)
        return hn_b1(c->b, HN_OP_leaky_relu, x, HN_ATTRS_ARG(HN_A_F("alpha", a)));
    if (strcmp(name, "HardSigmoid") == 0)
        return hn_b1(c->b, HN_OP_hard_sigmoid, x, HN_ATTRS_ARG(HN_A_F("alpha", a), HN_A_F("beta", b)));
    if (strcmp(name, "Clip") == 0)
        return hn_b3(c->b, HN_OP_clip, x, hn_im_like_f(c, x, a), hn_im_like_f(c, x, b), HN_NO_ATTRS);
    hn_im_refuse(c, "the fused activation \"%s\" is not known here", name);
    return NULL;
}

static hn_value *scalar(hn_im_call *c, hn_value *v)
{
    return v && v->type.rank && hn_tdesc_numel_static(&v->type) == 1 ? hn_reshape(c->b, v, 0, NULL) : v;
}

hone_status hn_im_on_ms_fused_conv(hn_im_call *c)
{
    hn_value *y = hn_im_conv_with(c, HN_OP_conv, HN_MIN(c->n_in, 3), c->in);
    return hn_im_done(c, activate(c, add_if(c, y, hn_im_in(c, 3))));
}

hone_status hn_im_on_ms_fused_gemm(hn_im_call *c)
{
    HN_TRY(hn_im_on_gemm(c));
    return hn_im_done(c, activate(c, c->out[0]));
}

/* The first axis, which is a row's, moved behind the batch's: [m, batch..., k] as [batch..., m, k]. */
static hn_value *rows_inside(hn_im_call *c, hn_value *x)
{
    int64_t perm[HN_MAX_RANK];
    const int rank = x->type.rank;
    if (rank < 3) return x;
    for (int i = 0; i < rank; i++)
        perm[i] = i < rank - 2 ? i + 1 : i == rank - 2 ? 0 : i;
    return hn_transpose(c->b, x, perm);
}

/* arg 1: with an activation. */
hone_status hn_im_on_ms_fused_matmul(hn_im_call *c)
{
    const bool ta = hn_im_i(c, "transA", 0) != 0, tb = hn_im_i(c, "transB", 0) != 0;
    const double alpha = hn_im_f(c, "alpha", 1);
    hn_value *a = hn_im_i(c, "transBatchA", 0) ? rows_inside(c, c->in[0]) : c->in[0];
    hn_value *b = hn_im_i(c, "transBatchB", 0) ? rows_inside(c, c->in[1]) : c->in[1];
    if (!a || !b) return c->b->status;
    const bool vectors = a->type.rank < 2 || b->type.rank < 2;
    hn_value *y = vectors ? hn_im_matmul_numpy(c, a, b) : hn_im_matmul(c, a, b, ta, tb);
    y = hn_im_scale(c, y, alpha);
    return hn_im_done(c, y && c->entry->arg ? activate(c, y) : y);
}

/* ---- normalisation ---- */

/* sum = input + skip (+ bias), then layer or RMS norm; output 3 is the sum. */
hone_status hn_im_on_ms_skip_norm(hn_im_call *c)
{
    const bool rms = c->entry->arg == 1;
    const double eps = hn_im_f(c, "epsilon", (double)1e-12f);
    hn_value *beta = rms ? NULL : hn_im_in(c, 3), *bias = hn_im_in(c, rms ? 3 : 4);
    hn_value *sum = add_if(c, hn_im_binary(c, HN_OP_add, c->in[0], c->in[1]), bias);
    if (hn_im_wants(c, 1) || hn_im_wants(c, 2))
        return hn_im_refuse(c, "the statistics as outputs are not supported");
    if (!sum) return c->b->status;
    hn_node *n = hn_build(c->b, rms ? HN_OP_rms_norm : HN_OP_layer_norm, beta ? 3 : 2,
                          (hn_value *[]){ sum, c->in[2], beta },
                          HN_ATTRS_ARG(HN_A_I("axis", sum->type.rank - 1), HN_A_F("eps", eps)), 1);
    if (c->n_out > 3) c->out[3] = sum;
    return hn_im_done(c, n ? n->out[0] : NULL);
}

/* ---- attention ---- */

/* mask_index: lengths [b], raw 0/1 masks [b,t] or [b,s,t]; true lets a key be seen. */
static hn_value *raw_mask(hn_im_call *c, hn_value *mask, hn_dim keys)
{
    if (!mask) return NULL;
    const hn_dim *d = mask->type.dim;
    if (mask->type.rank == 1) {
        hn_value *at = hn_im_iota(c, HN_I64, 4, (hn_dim[]){ 1, 1, 1, keys }, 3);
        return hn_im_binary(c, HN_OP_lt, at,
                            hn_reshape(c->b, hn_im_i64(c, mask), 4, (hn_dim[]){ d[0], 1, 1, 1 }));
    }
    if (mask->type.rank != 2 && mask->type.rank != 3) {
        hn_im_refuse(c, "a mask of rank %d is not supported", mask->type.rank);
        return NULL;
    }
    const bool rows = mask->type.rank == 3;
    hn_value *m = hn_reshape(c->b, mask, 4, (hn_dim[]){ d[0], 1, rows ? d[1] : 1, rows ? d[2] : d[1] });
    return hn_cast(c->b, m, HN_BOOL);
}

/* A cache [2,b,h,t,d] of keys and values in one; output 1 is what the step leaves. */
static hone_status extend(hn_im_call *c, hn_value *past, hn_value *length, hn_value *part[3])
{
    hn_value *present[2], *both[2];
    hn_im_past of = { .length = length };
    if (past && past->type.rank != 5) return HN_IM_RAISE(c, HONE_E_SHAPE, "the cache has rank %d, not 5", past->type.rank);
    for (int i = 0; i < 2; i++)
        of.of[i] = past ? hn_im_squeeze(c, hn_slice(c->b, past, 0, i, 1), 0) : NULL;
    HN_TRY(c->b->status);
    HN_TRY(hn_im_extend_cache(c, &of, part, present));
    if (!hn_im_wants(c, 1)) return HONE_OK;
    for (int i = 0; i < 2; i++)
        both[i] = hn_im_unsqueeze(c, present[i], 0);
    c->out[1] = hn_im_concat(c, 0, 2, both);
    return c->b->status;
}

/* Attention over one product that holds query, key and value beside each other. */
static hone_status attend_packed(hn_im_call *c, hn_value *qkv, hn_value *mask_index, hn_value *past, hn_value *bias)
{
    hn_value *length = hn_im_i(c, "past_present_share_buffer", 0) ? hn_im_in(c, 6) : NULL;
    hn_value *part[3];
    const int64_t heads = hn_im_i(c, "num_heads", 0), causal = hn_im_i(c, "unidirectional", 0);
    hn_dim len[3];
    hn_im_ignore(c, "mask_filter_value");
    if (hn_im_i(c, "do_rotary", 0)) return hn_im_refuse(c, "do_rotary is not supported here");
    if (!qkv || qkv->type.rank != 3)
        return c->b->status ? c->b->status : HN_IM_RAISE(c, HONE_E_SHAPE, "the input is not of rank 3");
    HN_TRY(hn_im_qkv_lengths(c, qkv->type.dim[2], len));
    hn_im_split3(c, qkv, 2, len, part);
    for (int i = 0; i < 3; i++)
        part[i] = hn_im_split_heads(c, part[i], heads);
    HN_TRY(c->dg->code);
    HN_TRY(extend(c, past, length, part));
    hn_value *mask = hn_im_mask_and_bias(c, raw_mask(c, mask_index, part[1]->type.dim[2]), bias);
    HN_TRY(c->dg->code);
    hn_value *y = hn_im_attention_with(c, part[0], part[1], part[2], mask, hn_im_f(c, "scale", 0),
                                       causal ? (past ? 2 : 1) : 0);
    return hn_im_done(c, hn_im_merge_heads(c, y));
}

hone_status hn_im_on_ms_attention(hn_im_call *c)
{
    hn_value *qkv = add_if(c, hn_im_matmul(c, c->in[0], c->in[1], false, false), hn_im_in(c, 2));
    return attend_packed(c, qkv, hn_im_in(c, 3), hn_im_in(c, 4), hn_im_in(c, 5));
}

/* inputs: x, w, bias, scale of x, scale of w, mask?, zero of x?, zero of w?, cache? */
hone_status hn_im_on_ms_qattention(hn_im_call *c)
{
    hn_value *acc = hn_im_matmul_int(c, c->in[0], c->in[1], scalar(c, hn_im_in(c, 6)), scalar(c, hn_im_in(c, 7)));
    hn_value *qkv = add_if(c, hn_im_scale_acc(c, acc, scalar(c, c->in[3]), scalar(c, c->in[4])), hn_im_in(c, 2));
    return attend_packed(c, qkv, hn_im_in(c, 5), hn_im_in(c, 8), NULL);
}

/* Part i of operands packed beside each other, [b,s,h,n,d], as [b,s,h*d]. */
static hn_value *unpacked(hn_im_call *c, hn_value *x, int i)
{
    const hn_dim *d = x->type.dim;
    return hn_reshape(c->b, hn_slice(c->b, x, 3, i, 1), 3, (hn_dim[]){ d[0], d[1], hn_im_dmul(c, d[2], d[4]) });
}

/* Query, key and value as the model has them: three operands, or packed in one or two. */
static hone_status read_parts(hn_im_call *c, hn_value *x[3])
{
    for (int i = 0; i < 3; i++)
        x[i] = hn_im_in(c, i);
    if (!x[0]) return HN_IM_RAISE(c, HONE_E_MODEL, "the query is absent");
    if (!x[1] && x[0]->type.rank == 5) {
        for (int i = 2; i >= 0; i--)
            x[i] = unpacked(c, x[0], i);
    } else if (x[1] && !x[2] && x[1]->type.rank == 5) {
        for (int i = 1; i >= 0; i--)
            x[1 + i] = unpacked(c, x[1], i);
    } else if (!x[1] && x[0]->type.rank == 3) {
        const hn_dim third = hn_im_ddiv(c, x[0]->type.dim[2], 3);
        hn_im_split3(c, x[0], 2, (hn_dim[]){ third, third, third }, x);
    }
    if (!c->b->status && (!x[1] || !x[2])) return HN_IM_RAISE(c, HONE_E_MODEL, "key or value is absent");
    return c->b->status;
}

/* Which operands hold what, beside query, key and value. */
typedef struct mha_at {
    int bias, mask, score_bias, past, length, indirection;
} mha_at;

static hone_status attend_parts(hn_im_call *c, mha_at at, bool causal)
{
    hn_value *x[3], *bias = hn_im_in(c, at.bias), *b[3] = { NULL }, *present[2];
    const hn_im_past past = { { hn_im_in(c, at.past), hn_im_in(c, at.past + 1) }, hn_im_in(c, at.length), hn_im_in(c, at.indirection) };
    const int64_t heads = hn_im_i(c, "num_heads", 0);
    hn_im_ignore(c, "mask_filter_value");
    if (hn_im_wants(c, 3)) return hn_im_refuse(c, "the scores as an output are not supported");
    HN_TRY(read_parts(c, x));
    if (bias) { /* one vector for the three, each part as long as its operand's last axis */
        hn_value *row = hn_reshape(c->b, bias, 3, (hn_dim[]){ 1, 1, bias->type.dim[0] });
        const hn_dim len[3] = { x[0]->type.dim[2], x[0]->type.dim[2],
                                hn_im_dsub(c, bias->type.dim[0], hn_im_dmul(c, x[0]->type.dim[2], 2)) };
        hn_im_split3(c, row, 2, len, b);
    }
    for (int i = 0; i < 3; i++)
        if (x[i] && x[i]->type.rank == 3) x[i] = hn_im_split_heads(c, add_if(c, x[i], b[i]), heads);
    HN_TRY(c->dg->code);
    HN_TRY(hn_im_extend_cache(c, &past, x, present));
    for (int i = 0; i < 2; i++)
        if (c->n_out > 1 + i) c->out[1 + i] = present[i];
    hn_value *mask = hn_im_mask_and_bias(c, raw_mask(c, hn_im_in(c, at.mask), x[1]->type.dim[2]), hn_im_in(c, at.score_bias));
    HN_TRY(c->dg->code);
    hn_value *y = hn_im_attention_with(c, x[0], x[1], x[2], mask, hn_im_f(c, "scale", 0), causal ? (past.of[0] ? 2 : 1) : 0);
    return hn_im_done(c, hn_im_merge_heads(c, y));
}

hone_status hn_im_on_ms_mha(hn_im_call *c)
{
    const mha_at at = { .bias = 3, .mask = 4, .score_bias = 5, .past = 6, .length = 8, .indirection = 9 };
    return attend_parts(c, at, hn_im_i(c, "unidirectional", 0) != 0);
}

/* One token a step; with keys and values of rank 4, those of another sequence. */
hone_status hn_im_on_ms_decoder_mha(hn_im_call *c)
{
    const mha_at at = { .bias = 10, .mask = 3, .score_bias = 4, .past = 5, .length = 7, .indirection = 9 };
    hn_im_ignore(c, "past_present_share_buffer"); /* the length says how much is filled */
    hn_im_ignore(c, "output_qk");
    return attend_parts(c, at, false);
}

/* ---- quantised products ---- */

/* Bytes of a constant seen as another dtype and shape of the same size. */
static hn_value *recast_const(hn_im_call *c, hn_value *v, hn_dtype t, int rank, const hn_dim *dim)
{
    hn_tdesc d = { .dtype = t, .rank = rank };
    if (!hn_is_const(v)) {
        hn_im_refuse(c, "packed weights must be constants");
        return NULL;
    }
    memcpy(d.dim, dim, (size_t)rank * sizeof *dim);
    const int64_t bytes = hn_dtype_bytes(t, hn_tdesc_numel_static(&d));
    if (bytes < 0 || (size_t)bytes != v->data->bytes) {
        HN_IM_RAISE(c, HONE_E_SHAPE, "packed data take %zu bytes, the shape asks for %" PRId64,
                    v->data->bytes, bytes);
        return NULL;
    }
    hn_value *r = hn_graph_const(c->b->g, NULL, &d, v->data->at, v->data->bytes);
    if (!r && c->b->status == HONE_OK) c->b->status = HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    return r;
}

/* Rows of n entries of a packed dtype, stored padded to whole bytes. */
static hn_value *packed_rows(hn_im_call *c, hn_value *v, hn_dtype t, int64_t rows, int64_t n)
{
    const int64_t each = 8 / hn_dtype_bits(t), padded = (n + each - 1) / each * each;
    hn_value *r = recast_const(c, v, t, 2, (hn_dim[]){ rows, padded });
    return r && padded != n ? hn_slice(c->b, r, 1, 0, n) : r;
}

/*
 * Weights [n,k] whose columns are not of the block where they stand (group [k]: the block of each), or whose zero points are floats:
 * (w - zero) * scale, each looked up by column.
 */
static hn_value *columns_widened(hn_im_call *c, hn_value *w, hn_value *scale, hn_value *zero, hn_value *group, int64_t bits, int64_t block)
{
    if (!w || !scale) return NULL;
    const hn_dtype t = scale->type.dtype;
    const hn_dim columns = w->type.dim[1];
    hn_value *at = group ? hn_im_i64(c, group)
                         : hn_im_binary(c, HN_OP_div, hn_im_iota(c, HN_I64, 1, &columns, 0), hn_const_i(c->b, HN_I64, block));
    if (group && group->type.dim[0] != columns) w = hn_slice(c->b, w, 1, 0, group->type.dim[0]);
    hn_value *z = zero ? hn_im_gather(c, hn_cast(c->b, zero, t), at, 1) : hn_const_f(c->b, t, (double)((int64_t)1 << (bits - 1)));
    hn_value *from = hn_im_binary(c, HN_OP_sub, hn_cast(c->b, w, t), z);
    return hn_im_binary(c, HN_OP_mul, from, hn_im_gather(c, scale, at, 1));
}

/* y = a dequantize(B)^T: B [n, blocks, block * bits / 8], least bits first. */
hone_status hn_im_on_ms_matmul_nbits(hn_im_call *c)
{
    const int64_t k = hn_im_i(c, "K", 0), n = hn_im_i(c, "N", 0), bits = hn_im_i(c, "bits", 4),
                  block = hn_im_i(c, "block_size", 0);
    hn_value *zero = hn_im_in(c, 3), *bias = hn_im_in(c, 5);
    hn_im_ignore(c, "accuracy_level");
    const hn_dtype t = bits == 2 ? HN_U2 : bits == 4 ? HN_U4 : bits == 8 ? HN_U8 : HN_NONE;
    if (t == HN_NONE) return hn_im_refuse(c, "weights of %" PRId64 " bits are not supported", bits);
    if (k < 1 || n < 1 || k > INT32_MAX || n > INT32_MAX || block < 8 || block > 1 << 20)
        return HN_IM_RAISE(c, HONE_E_MODEL, "K, N or block_size is missing or out of range");
    const int64_t blocks = (k + block - 1) / block;
    hn_value *w = recast_const(c, c->in[1], t, 2, (hn_dim[]){ n, blocks * block });
    HN_TRY(c->dg->code);
    hn_value *scale = hn_reshape(c->b, c->in[2], 2, (hn_dim[]){ n, blocks }), *group = hn_im_in(c, 4);
    if (group || (zero && zero->type.dtype != HN_U8)) {
        zero = !zero ? NULL : zero->type.dtype == HN_U8 ? packed_rows(c, zero, t, n, blocks) : hn_reshape(c->b, zero, 2, (hn_dim[]){ n, blocks });
        HN_TRY(c->dg->code);
        w = columns_widened(c, w, scale, zero, group, bits, block);
        if (w && w->type.dim[1] != k) w = hn_slice(c->b, w, 1, 0, k);
        return hn_im_done(c, add_if(c, hn_im_matmul(c, c->in[0], w, false, true), bias));
    }
    zero = zero ? packed_rows(c, zero, t, n, blocks)
                : hn_im_fill(c, hn_const_i(c->b, t, (int64_t)1 << (bits - 1)), 2, (hn_dim[]){ n, blocks });
    HN_TRY(c->dg->code);
    w = hn_im_dequantize_with(c, w, scale, zero, 1, block);
    if (w && blocks * block != k) w = hn_slice(c->b, w, 1, 0, k);
    return hn_im_done(c, add_if(c, hn_im_matmul(c, c->in[0], w, false, true), bias));
}

/* inputs: A, B, scale of A, scale of B, zero of A?, zero of B?, bias? */
hone_status hn_im_on_ms_matmul_int_float(hn_im_call *c)
{
    hn_value *acc = hn_im_matmul_int(c, c->in[0], c->in[1], hn_im_in(c, 4), hn_im_in(c, 5));
    return hn_im_done(c, add_if(c, hn_im_scale_acc(c, acc, c->in[2], c->in[3]), hn_im_in(c, 6)));
}

/* inputs: A in float, B, scale of B, zero of B?, bias? */
hone_status hn_im_on_ms_dyn_matmul(hn_im_call *c)
{
    hn_node *q = hn_build(c->b, HN_OP_dynamic_quantize, 1, c->in, HN_NO_ATTRS, 3);
    if (!q) return c->b->status;
    hn_value *acc = hn_im_matmul_int(c, q->out[0], c->in[1], q->out[2], hn_im_in(c, 3));
    return hn_im_done(c, add_if(c, hn_im_scale_acc(c, acc, q->out[1], c->in[2]), hn_im_in(c, 4)));
}

/* [d,i,n] int8 with one scale a direction, or one a column of each -> [d,n,i] floats */
static hn_value *lstm_weight(hn_im_call *c, hn_value *w, hn_value *scale, hn_value *zero)
{
    if (!w || !scale || w->type.rank != 3) return NULL;
    hn_value *f = hn_cast(c->b, w, HN_F32);
    const hn_dim by_direction[3] = { scale->type.rank ? scale->type.dim[0] : 1, 1, 1 };
    const hn_dim by_column[3] = { scale->type.dim[0], 1, scale->type.rank == 2 ? scale->type.dim[1] : 1 };
    const hn_dim *d = scale->type.rank == 2 ? by_column : by_direction;
    if (zero) f = hn_im_binary(c, HN_OP_sub, f, hn_cast(c->b, hn_reshape(c->b, zero, 3, d), HN_F32));
    f = hn_im_binary(c, HN_OP_mul, f, hn_reshape(c->b, scale, 3, d));
    return f ? hn_transpose(c->b, f, (int64_t[]){ 0, 2, 1 }) : NULL;
}

/* One direction and one scale: the weights stay small, as a dequantize with its zero point. */
static hn_value *lstm_weight_small(hn_im_call *c, hn_value *w, hn_value *scale, hn_value *zero)
{
    const bool single = scale && hn_tdesc_numel_static(&scale->type) == 1 &&
                        (!zero || hn_tdesc_numel_static(&zero->type) == 1);
    if (!single || !w || w->type.rank != 3) return lstm_weight(c, w, scale, zero);
    hn_value *s = hn_reshape(c->b, scale, 0, NULL), *z = zero ? hn_reshape(c->b, zero, 0, NULL) : NULL;
    hn_value *f = hn_im_dequantize_with(c, w, s, z, 0, 0);
    return f ? hn_transpose(c->b, f, (int64_t[]){ 0, 2, 1 }) : NULL;
}

/* Weights are widened; ONNX Runtime also rounds x and h to 8 bits at each step, which adds noise and is not
 * imitated. */
hone_status hn_im_on_ms_quant_lstm(hn_im_call *c)
{
    hn_value *in[8] = { c->in[0], lstm_weight_small(c, c->in[1], hn_im_in(c, 8), hn_im_in(c, 9)),
                        lstm_weight_small(c, c->in[2], hn_im_in(c, 10), hn_im_in(c, 11)) };
    for (int i = 3; i < 8; i++)
        in[i] = hn_im_in(c, i);
    HN_TRY(c->b->status);
    if (!in[1] || !in[2]) return HN_IM_RAISE(c, HONE_E_MODEL, "weights or their scales are missing");
    return hn_im_recurrent_with(c, HN_OP_lstm, 8, in);
}

/* ---- quantised elementwise and pools: dequantize, compute, quantize ---- */

static hn_value *widen(hn_im_call *c, int i)
{
    return hn_im_dequantize_with(c, c->in[i], scalar(c, c->in[i + 1]), scalar(c, hn_im_in(c, i + 2)), 0, 0);
}

static hone_status narrow(hn_im_call *c, hn_value *y, int i)
{
    const hn_dtype t = c->in[0]->type.dtype;
    HN_TRY(c->dg->code);
    return hn_im_done(c, hn_im_quantize_with(c, y, scalar(c, c->in[i]), scalar(c, hn_im_in(c, i + 1)), 0, t));
}

hone_status hn_im_on_ms_qlinear_binary(hn_im_call *c)
{
    hn_value *a = widen(c, 0), *b = widen(c, 3);
    return narrow(c, hn_im_binary(c, (hn_op)c->entry->arg, a, b), 6);
}

hone_status hn_im_on_ms_qlinear_unary(hn_im_call *c)
{
    hn_value *x = widen(c, 0);
    const hn_op op = (hn_op)c->entry->arg;
    hn_value *y = op == HN_OP_leaky_relu
                      ? hn_b1(c->b, op, x, HN_ATTRS_ARG(HN_A_F("alpha", hn_im_f(c, "alpha", (double)0.01f))))
                      : hn_im_unary(c, op, x);
    return narrow(c, y, 3);
}

hone_status hn_im_on_ms_qlinear_softmax(hn_im_call *c)
{
    const int64_t opset = hn_im_i(c, "opset", 13);
    hn_value *x = widen(c, 0);
    int axis;
    if (!x) return c->b->status;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", opset < 13 ? 1 : -1), x->type.rank, &axis));
    if (opset < 13 && axis != x->type.rank - 1)
        return hn_im_refuse(c, "a softmax over several axes at once is not supported here");
    return narrow(c, hn_b1(c->b, HN_OP_softmax, x, HN_ATTRS_ARG(HN_A_I("axis", axis))), 3);
}

/* Pools of images whose channels stand where channels_last says. */
static hone_status pooled(hn_im_call *c, hn_value *(*pool)(hn_im_call *c, hn_value *x))
{
    const bool last = hn_im_i(c, "channels_last", 0) != 0;
    hn_value *x = widen(c, 0);
    hn_value *y = pool(c, last ? hn_im_channels_first(c, x) : x);
    return narrow(c, last ? hn_im_channels_last(c, y) : y, 3);
}

static hn_value *average(hn_im_call *c, hn_value *x)
{
    return hn_im_pool_with(c, HN_OP_avg_pool, x, 1, NULL);
}

static hn_value *average_all(hn_im_call *c, hn_value *x)
{
    int64_t axes[HN_MAX_RANK];
    int n = 0;
    for (int i = 2; x && i < x->type.rank; i++)
        axes[n++] = i;
    return x ? hn_im_reduce(c, HN_OP_reduce_mean, x, n, axes, true) : NULL;
}

hone_status hn_im_on_ms_qlinear_avg_pool(hn_im_call *c)
{
    return pooled(c, average);
}

hone_status hn_im_on_ms_qlinear_global_pool(hn_im_call *c)
{
    return pooled(c, average_all);
}

hone_status hn_im_on_ms_qlinear_reduce_mean(hn_im_call *c)
{
    int64_t axes[HN_MAX_RANK];
    int n;
    bool given;
    hn_value *x = widen(c, 0);
    if (!x) return c->b->status;
    HN_TRY(hn_im_axes(c, "axes", -1, x->type.rank, true, axes, &n, &given));
    for (int i = 0; !given && i < x->type.rank; i++)
        axes[n++] = i;
    return narrow(c, hn_im_reduce(c, HN_OP_reduce_mean, x, n, axes, hn_im_i(c, "keepdims", 1) != 0), 3);
}

/* inputs: cond, then (x, scale, zero) twice, then scale and zero of the result */
hone_status hn_im_on_ms_qlinear_where(hn_im_call *c)
{
    hn_value *y = hn_im_select(c, c->in[0], widen(c, 1), widen(c, 4));
    return narrow(c, y, 7);
}

/* inputs: scale and zero of the result, then (x, scale, zero) for each part */
hone_status hn_im_on_ms_qlinear_concat(hn_im_call *c)
{
    const int n = (c->n_in - 2) / 3;
    int axis;
    hn_value **part = HN_NEW_N(c->m->scratch, hn_value *, n + 1);
    if (!part) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (n < 1 || (c->n_in - 2) % 3)
        return HN_IM_RAISE(c, HONE_E_MODEL, "%d inputs are no triples", c->n_in - 2);
    for (int i = 0; i < n; i++)
        if (!(part[i] = widen(c, 2 + 3 * i))) return c->b->status;
    HN_TRY(hn_im_axis(c, hn_im_i(c, "axis", 0), part[0]->type.rank, &axis));
    hn_value *y = hn_im_concat(c, axis, n, part);
    return hn_im_done(c, hn_im_quantize_with(c, y, scalar(c, c->in[0]), scalar(c, c->in[1]), 0, HN_U8));
}

/* y = alpha * (a - za)(b - zb) sa sb + c * alpha sa sb, quantised where the result has a scale; b's lies along its columns. */
hone_status hn_im_on_ms_qgemm(hn_im_call *c)
{
    static const int64_t turned[] = { 1, 0 };
    hn_value *a = c->in[0], *b = c->in[3], *acc0 = hn_im_in(c, 6);
    for (int i = 0; i < 6; i += 3)
        if (c->in[i]->type.rank != 2)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "operand %d has rank %d, QGemm takes matrices", i, c->in[i]->type.rank);
    if (hn_im_i(c, "transA", 0)) a = hn_transpose(c->b, a, turned);
    if (hn_im_i(c, "transB", 0)) b = hn_transpose(c->b, b, turned);
    hn_value *acc = hn_im_matmul_int(c, a, b, scalar(c, c->in[2]), scalar(c, c->in[5]));
    if (acc && acc0) acc = hn_im_binary(c, HN_OP_add, acc, acc0);
    hn_value *y = hn_im_scale_acc(c, acc, hn_im_scale(c, c->in[1], hn_im_f(c, "alpha", 1)), c->in[4]);
    return y && hn_im_in(c, 7) ? narrow(c, y, 7) : hn_im_done(c, y);
}
