/**
 * Compute and store f32 in 16 bits where the route says so: contractions, and what follows them.
 *
 *     y = matmul(x, w)   =>   y = cast(matmul(cast(x, f16), cast(w, f16)), f32)
 *     z = relu(y)        =>   z = cast(relu(cast(y, f16)), f32)                   y: of a node that was narrowed
 *
 * Casts there and back meet and go (merge_cast), those of constants are folded: between narrowed nodes values are 16 bits. What comes
 * before the first contraction, and what sums many numbers up, stays as the model has it. Not exact: that is what it is for.
 *
 * On GPUs, whose matrix units multiply 16 bits several times as fast; CPUs that we know gain nothing.
 */
#include "pass/pass_int.h"

static bool is_contraction(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_matmul: case HN_OP_conv: case HN_OP_conv_transpose: case HN_OP_attention: return true;
    default: return false;
    }
}

/* Results lie where operands do, or are means of them: 16 bits that held those hold these. */
static bool follows(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_cast: case HN_OP_bitcast: return false;
    case HN_OP_reduce_mean: case HN_OP_reduce_max: case HN_OP_reduce_min: case HN_OP_max_pool: case HN_OP_avg_pool: case HN_OP_resize:
    case HN_OP_softmax: case HN_OP_log_softmax: case HN_OP_layer_norm: case HN_OP_rms_norm: case HN_OP_batch_norm:
    case HN_OP_instance_norm: case HN_OP_group_norm: case HN_OP_rotary: case HN_OP_depth_to_space: case HN_OP_space_to_depth:
        return true;
    default: return hn_op_get(n->op)->traits & (HN_TRAIT_POINTWISE | HN_TRAIT_VIEW);
    }
}

/* An operand that was widened from this dtype. */
static bool reads(const hn_node *n, hn_dtype narrow)
{
    for (int i = 0; i < n->n_in; i++) {
        const hn_node *p = hn_in(n, i) ? hn_producer(hn_in(n, i)) : NULL;
        if (p && p->op == HN_OP_cast && p->graph == n->graph && hn_in(p, 0)->type.dtype == narrow && p->out[0]->type.dtype == HN_F32)
            return true;
    }
    return false;
}

static hn_value *narrowed(hn_builder *b, const hn_node *n, hn_dtype to, hn_arena *scratch)
{
    hn_value **in = HN_NEW_N(scratch, hn_value *, n->n_in + 1);
    if (!in) return NULL;
    for (int i = 0; i < n->n_in; i++) {
        in[i] = hn_in(n, i);
        if (in[i] && in[i]->type.dtype == HN_F32) in[i] = hn_cast(b, in[i], to);
    }
    const hn_node *y = hn_build_like(b, n, n->n_in, in);
    return y ? hn_cast(b, y->out[0], HN_F32) : NULL;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    enum { OFF, AS_F16 };
    if (!c->target || c->target->arch != HN_ARCH_SM) return false;
    if (n->n_out != 1 || n->n_body || n->out[0]->type.dtype != HN_F32 || !n->out[0]->n_uses) return false;
    const bool first = is_contraction(n);
    if (!first && (!follows(n) || (!reads(n, HN_F16) && !reads(n, HN_BF16)))) return false;
    const int64_t how = hn_pass_knob(c, HN_KNOB_math_half, n);
    const hn_dtype to = how == AS_F16 ? HN_F16 : HN_BF16;
    if (how == OFF || (!first && !reads(n, to))) return false;
    hn_value *y = narrowed(b, n, to, c->scratch);
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_narrow_float = {
    .name = "narrow_float", .summary = "compute and store f32 in 16 bits where the route says so",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
