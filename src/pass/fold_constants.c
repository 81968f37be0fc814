/**
 * Compute nodes whose operands are all constants, and integer results whose elements are known dims.
 *
 *     c = add({1,2}, {3,4})           =>   const c = {4,6}
 *     s = dims() {dim=[2,3]}          =>   const s = {2,3}
 *
 * Results much larger than their operands stay (a broadcast constant is cheaper to recompute than to store).
 */
#include "eval/eval.h"
#include "pass/pass.h"

enum {
    MAX_GROWTH = 4,               /* result bytes over operand bytes */
    SMALL_BYTES = 64 << 10,       /* below this growth does not matter */
    MAX_BYTES = 512 << 20,
};

static bool foldable(const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    if (!(op->traits & HN_TRAIT_PURE) || (op->traits & (HN_TRAIT_CONTROL | HN_TRAIT_RANDOM)) || n->n_body) return false;
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i) && !hn_is_const(hn_in(n, i))) return false;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->kind != HN_TENSOR || (!hn_tdesc_is_static(&n->out[i]->type) && !(op->traits & HN_TRAIT_DYNAMIC)))
            return false;
    return true;
}

static bool grows_too_much(const hn_node *n)
{
    int64_t in = 0, out = 0;
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i)) in += (int64_t)hn_in(n, i)->data->bytes;
    for (int i = 0; i < n->n_out; i++) {
        const int64_t e = hn_tdesc_numel_static(&n->out[i]->type);
        out += e < 0 ? 0 : hn_dtype_bytes(n->out[i]->type.dtype, e);
    }
    return out > MAX_BYTES || (out > SMALL_BYTES && out > MAX_GROWTH * in);
}

static void replace_output(hn_builder *b, hn_node *n, int i, const hn_tensor *t)
{
    void *bytes = hn_arena_memdup(b->g->arena, t->data, t->bytes);
    if (!bytes && t->bytes) return;
    static const char none[1] = { 0 };
    hn_value *c = hn_graph_const(b->g, n->out[i]->name, &t->type, bytes ? bytes : none, t->bytes);
    if (c) hn_replace(b, n->out[i], c);
}

static bool fold_node(hn_builder *b, hn_node *n)
{
    hn_tensor out[8] = { 0 };
    hn_diag why = { 0 };
    if (n->n_out > 8 || !foldable(n) || grows_too_much(n)) return false;
    if (hn_eval_node(n, out, &why) != HONE_OK) return false; /* an error belongs to the run, not to the build */
    for (int i = 0; i < n->n_out; i++) {
        replace_output(b, n, i, &out[i]);
        hn_tensor_done(&out[i]);
    }
    return true;
}

/* Shape arithmetic: every element is a known number although operands are not constants. */
static bool fold_content(hn_builder *b, hn_node *n)
{
    if (n->n_out != 1 || !(hn_op_of(n)->traits & HN_TRAIT_PURE)) return false;
    hn_value *v = n->out[0];
    if (!v->content || !hn_tdesc_is_static(&v->type) || v->type.rank > 1) return false;
    int64_t x[64];
    for (int i = 0; i < v->n_content; i++)
        if (!hn_dim_known(b->g->syms, v->content[i], &x[i])) return false;
    const int64_t bytes = hn_dtype_bytes(v->type.dtype, v->n_content);
    void *data = hn_arena_alloc(b->g->arena, (size_t)bytes + 1, 1);
    if (!data) return false;
    hn_narrow_i64(v->type.dtype, x, v->n_content, data, 0);
    hn_value *c = hn_graph_const(b->g, v->name, &v->type, data, (size_t)bytes);
    if (c) hn_replace(b, v, c);
    return c != NULL;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    (void)c;
    for (int i = 0; i < n->n_out; i++)
        if (n->out[i]->n_uses) return fold_node(b, n) || fold_content(b, n);
    return false;
}

const hn_pass_def hn_pass_fold_constants = {
    .name = "fold_constants", .summary = "compute what depends on constants alone",
    .keeps = HN_KEEP_SHAPES, .exact = true, .visit = visit,
};
