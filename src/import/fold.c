/*
 * Constants computed on the way in: shapes, pads, scales, axes. Handlers ask for such values by content, so
 * nothing small that follows from constants stays a node.
 */
#include "import/import_int.h"

#include <string.h>

#include "eval/eval.h"

enum {
    FOLD_IN_ELEMS = 1 << 16,
    FOLD_OUT_ELEMS = 1 << 12,
};

static bool small_static(const hn_value *v, int64_t limit)
{
    const int64_t n = v->kind == HN_TENSOR ? hn_tdesc_numel_static(&v->type) : -1;
    return n >= 0 && n <= limit;
}

static bool foldable(const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    if (!op || !(op->traits & HN_TRAIT_PURE) ||
        (op->traits & (HN_TRAIT_CONTROL | HN_TRAIT_RANDOM | HN_TRAIT_DYNAMIC)))
        return false;
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i) && !(hn_is_const(hn_in(n, i)) && small_static(hn_in(n, i), FOLD_IN_ELEMS)))
            return false;
    for (int i = 0; i < n->n_out; i++)
        if (!small_static(n->out[i], FOLD_OUT_ELEMS)) return false;
    return true;
}

/* A quantised constant stays small: whoever uses it decides when to widen it. */
static bool is_widening(const hn_node *n)
{
    return n->op == HN_OP_dequantize && hn_tdesc_numel_static(&n->out[0]->type) > 64;
}

static void take_constant(hn_im_call *c, hn_value *old, hn_value *v)
{
    hn_replace(c->b, old, v);
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i] == old) c->out[i] = v;
}

static hn_value *constant(hn_graph *g, const hn_tensor *t)
{
    void *at = hn_arena_alloc(g->arena, t->bytes + 1, 1); /* an empty tensor has an address too */
    if (at && t->bytes) memcpy(at, t->data, t->bytes);
    return at ? hn_graph_const(g, NULL, &t->type, at, t->bytes) : NULL;
}

/* Folding is done again for every copy of a body or function, and constants take memory that the file does not. */
static void spend_on(const hn_im_call *c, const hn_node *n)
{
    int64_t words = 0;
    for (int i = 0; i < n->n_in; i++)
        if (hn_in(n, i)) words += hn_tdesc_numel_static(&hn_in(n, i)->type);
    for (int i = 0; i < n->n_out; i++) words += hn_tdesc_numel_static(&n->out[i]->type);
    hn_im_spend(c->m, c->scope, (size_t)words / HN_IM_NUMBERS_A_NODE);
}

static bool fold_by_eval(hn_im_call *c, hn_node *n)
{
    spend_on(c, n);
    hn_tensor *t = HN_NEW_N(c->m->scratch, hn_tensor, n->n_out);
    hn_diag dg = { 0 };
    bool done = true;
    if (!t || hn_eval_node(n, t, &dg) != HONE_OK) return false; /* the node stays and says so when it runs */
    for (int i = 0; i < n->n_out; i++) {
        hn_value *v = constant(n->graph, &t[i]);
        if (v) take_constant(c, n->out[i], v);
        done &= v != NULL;
        hn_tensor_done(&t[i]);
    }
    return done;
}

/* Content that is known though the operands are not, such as the extents of a static tensor. */
static bool fold_by_content(hn_im_call *c, hn_node *n)
{
    int64_t x[64];
    const hn_value *v = n->out[0];
    if (n->n_out != 1 || !v->content || v->n_content > HN_COUNT(x) || n->n_body) return false;
    if (hn_op_of(n)->traits & HN_TRAIT_RANDOM) return false;
    for (int i = 0; i < v->n_content; i++)
        if (!hn_dim_known(n->graph->syms, v->content[i], &x[i])) return false;
    const int64_t bytes = hn_dtype_bytes(v->type.dtype, v->n_content);
    void *at = hn_arena_alloc(n->graph->arena, (size_t)bytes + 1, 1);
    if (!at) return false;
    hn_narrow_i64(v->type.dtype, x, v->n_content, at, 0);
    hn_value *w = hn_graph_const(n->graph, NULL, &v->type, at, (size_t)bytes);
    if (w) take_constant(c, n->out[0], w);
    return w != NULL;
}

/* A folded node goes at once; what else nobody reads is swept at the end, when it is known what symbols need.
 */
void hn_im_fold_since(hn_im_call *c, hn_node *mark)
{
    hn_node *next;
    for (hn_node *n = mark ? mark->next : c->b->g->first; n; n = next) {
        next = n->next;
        const bool done = foldable(n) && !is_widening(n) ? fold_by_eval(c, n) : fold_by_content(c, n);
        if (done) hn_unlink(n);
    }
}

hn_value *hn_im_folded(hn_value *v)
{
    hn_node *n = hn_producer(v);
    hn_tensor t = { 0 };
    hn_diag dg = { 0 };
    if (!n || n->n_out != 1 || v->n_uses || !foldable(n) || is_widening(n)) return v;
    if (hn_eval_node(n, &t, &dg) != HONE_OK) return v;
    hn_value *w = constant(n->graph, &t);
    hn_tensor_done(&t);
    if (!w) return v;
    hn_unlink(n);
    return w;
}
