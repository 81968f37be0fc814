/**
 * Let ops that move or select elements work on the bytes.
 *
 *     y = quantize(op(dequantize(x, s, z)), s, z)   =>   y = op(x)
 *
 * Fires for chains of such ops with one reader each, none at all included, and parameters that are one constant each: what
 * was dequantised falls back into its own bin. The scale must be above 0, or the largest element would be the smallest
 * byte.
 */
#include "pass/pass_int.h"

#include <string.h>

enum { LONGEST_CHAIN = 4 };

static bool moves_elements(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_reshape: case HN_OP_transpose: case HN_OP_slice: case HN_OP_broadcast: case HN_OP_gather: case HN_OP_max_pool:
        return n->n_out == 1;
    default:
        return false;
    }
}

static bool same_constant(const hn_value *a, const hn_value *b)
{
    if (!a || !b) return a == b;
    if (!hn_is_const(a) || !hn_is_const(b) || a->type.dtype != b->type.dtype || a->data->bytes != b->data->bytes) return false;
    return hn_tdesc_numel_static(&a->type) == 1 && memcmp(a->data->at, b->data->at, a->data->bytes) == 0;
}

/* (x - z) * s / s is near enough to x - z for every byte: no product overflows or is denormal. */
static bool keeps_bins(const hn_value *scale)
{
    double s;
    return scale->type.dtype == HN_F32 && hn_const_scalar(scale, &s) && s > 1e-30 && s < 1e30;
}

/* The dequantize node with q's parameters that v comes from through ops that move elements; NULL: none. */
static hn_node *source_of(const hn_node *q, const hn_value *v)
{
    for (int i = 0; i <= LONGEST_CHAIN; i++) {
        hn_node *n = hn_producer(v);
        if (!n || n->graph != q->graph) return NULL;
        if (n->op == HN_OP_dequantize) {
            const bool same = !hn_attr_i(n, "block") && same_constant(hn_in(n, 1), hn_in(q, 1)) &&
                              same_constant(hn_in(n, 2), hn_in(q, 2)) && hn_in(n, 0)->type.dtype == q->out[0]->type.dtype;
            return same ? n : NULL;
        }
        if (!moves_elements(n) || !hn_has_one_use(v)) return NULL;
        v = hn_in(n, 0);
    }
    return NULL;
}

/* What v is as bytes. */
static hn_value *on_bytes(hn_builder *b, const hn_node *source, hn_value *v)
{
    hn_value *chain[LONGEST_CHAIN + 1], *x = hn_in(source, 0);
    int n = 0;
    for (; hn_producer(v) != source; v = hn_in(hn_producer(v), 0)) chain[n++] = v;
    while (n && x) {
        const hn_node *op = hn_producer(chain[--n]);
        hn_value *in[8] = { x };
        for (int i = 1; i < op->n_in && i < HN_COUNT(in); i++) in[i] = hn_in(op, i);
        const hn_node *made = hn_build_like(b, op, op->n_in, in);
        x = made ? made->out[0] : NULL;
    }
    return x;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    const hn_dtype t = n->out[0]->type.dtype;
    if (!n->out[0]->n_uses || (t != HN_U8 && t != HN_I8) || hn_attr_i(n, "block") || !hn_is_const(hn_in(n, 1)) ||
        !keeps_bins(hn_in(n, 1)))
        return false;
    const hn_node *source = source_of(n, hn_in(n, 0));
    if (!source || !hn_pass_knob(c, HN_KNOB_pass_quantized, n)) return false;
    hn_value *x = on_bytes(b, source, hn_in(n, 0));
    if (x) hn_replace(b, n->out[0], x);
    return x != NULL;
}

const hn_pass_def hn_pass_drop_requantize = {
    .name = "drop_requantize", .summary = "move and select quantised elements as bytes",
    .on = HN_OP_quantize, .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
