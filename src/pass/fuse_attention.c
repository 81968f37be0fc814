/**
 * Make one op of spelled-out attention.
 *
 *     s = matmul(q * a, transpose(k * a))   w = softmax(s + m)   y = matmul(w, v)   =>   y = attention(q, k, v, m) {scale=a*a}
 *
 * The scale may stand on the queries, the keys or the scores, as product or quotient. The keys may have been turned by any
 * transpose, also with heads merged into the batch meanwhile, and repeated for grouped queries. Masks may be added (twice), or
 * selected; a soft cap may come first; where(is_nan(w), 0, w) may follow. Heads may stand in an axis of their own, be merged
 * into the batch everywhere but around the mask, or not be there. Not exact: the scale is applied once, to the scores, which halves then keep in f32.
 */
#include "pass/found.h"

#include <math.h>

enum { ROWS_NAN = 1, ROWS_GUARD = 2 };

typedef struct form {
    hn_value *q, *k, *v;
    bool turned;       /* k is [.., d, t] */
    hn_value *mask[2]; /* added, outermost first; or a bool, alone */
    int n_mask;
    bool hides;        /* a bool mask that is true where keys are hidden */
    double scale, cap, hide;
    int64_t rows;
    int rank;
    hn_dim lead[2];    /* batch and heads that the mask sees where operands have them merged; 0: they have not */
    int n_core;        /* found nodes up to the product that makes the scores; operands stand behind */
} form;

/* ---- operands ---- */
static void peel_scale(hn_found *f, hn_value **v, double *scale)
{
    hn_value *x;
    double c;
    for (bool more = true; more;) {
        more = false;
        if (hn_found_with_scalar(f, *v, HN_OP_mul, &x, &c)) *scale *= c, *v = x, more = true;
        else if (hn_found_with_scalar(f, *v, HN_OP_div, &x, &c)) *scale /= c, *v = x, more = true;
    }
}

/* Same axes but for the last two, which have changed places. */
static bool swaps_last_two(const hn_value *x, const hn_value *y)
{
    const int r = x->type.rank;
    if (r < 2 || y->type.rank != r) return false;
    for (int i = 0; i < r - 2; i++)
        if (x->type.dim[i] != y->type.dim[i]) return false;
    return x->type.dim[r - 1] == y->type.dim[r - 2] && x->type.dim[r - 2] == y->type.dim[r - 1];
}

static bool is_last_two_swap(const hn_node *t)
{
    int rank;
    const int64_t *perm = hn_attr_is(t, "perm", &rank);
    for (int i = 0; i < rank - 2; i++)
        if (perm[i] != i) return false;
    return rank >= 2 && perm[rank - 1] == rank - 2;
}

/* What turned keys were before: through a transpose of the last two axes, alone or between reshapes that merge and split the
 * others. NULL when something else turned them. */
static hn_value *before_turn(const hn_value *k)
{
    const hn_node *n = hn_producer(k);
    const hn_node *t = n && n->op == HN_OP_reshape ? hn_producer(hn_in(n, 0)) : n;
    if (!t || t->op != HN_OP_transpose || !is_last_two_swap(t)) return NULL;
    if (t == n) return hn_in(t, 0);
    const hn_node *merge = hn_producer(hn_in(t, 0));
    const hn_value *flat = hn_in(t, 0);
    if (!merge || merge->op != HN_OP_reshape || !swaps_last_two(hn_in(merge, 0), k)) return NULL;
    const hn_tdesc *whole = &hn_in(merge, 0)->type;
    for (int i = 1; i <= 2; i++)
        if (flat->type.dim[flat->type.rank - i] != whole->dim[whole->rank - i]) return NULL;
    return hn_in(merge, 0);
}

static void peel_keys(hn_found *f, form *m)
{
    for (;;) {
        peel_scale(f, &m->k, &m->scale);
        hn_value *k = m->turned ? before_turn(m->k) : NULL;
        if (!k) return;
        m->k = k;
        m->turned = false;
    }
}

/* x of  reshape(broadcast(reshape(x [b,h,t,d], [b,h,1,t,d]), [b,h,n,t,d]), [b,h*n,t,d]) */
static hn_value *before_repeat(const hn_value *v, hn_dim *ret_n)
{
    const hn_node *join = hn_producer(v), *spread = join && join->op == HN_OP_reshape ? hn_producer(hn_in(join, 0)) : NULL;
    const hn_node *open = spread && spread->op == HN_OP_broadcast ? hn_producer(hn_in(spread, 0)) : NULL;
    if (!open || open->op != HN_OP_reshape) return NULL;
    const hn_tdesc *x = &hn_in(open, 0)->type, *one = &open->out[0]->type, *many = &spread->out[0]->type;
    if (x->rank != 4 || one->rank != 5 || many->rank != 5 || v->type.rank != 4 || one->dim[2] != 1) return NULL;
    for (int i = 0; i < 4; i++) {
        const int at = i < 2 ? i : i + 1;
        if (one->dim[at] != x->dim[i] || many->dim[at] != x->dim[i]) return NULL;
        if (i != 1 && v->type.dim[i] != x->dim[i]) return NULL;
    }
    *ret_n = many->dim[2];
    return hn_in(open, 0);
}

static void peel_groups(form *m)
{
    hn_dim nk, nv;
    if (m->turned) return;
    hn_value *k = before_repeat(m->k, &nk), *v = before_repeat(m->v, &nv);
    if (k && v && nk == nv) m->k = k, m->v = v;
}

/* ---- scores, outermost first ---- */
static bool scaled_product(hn_found *f, hn_value *v, form *m)
{
    hn_value *x = v;
    peel_scale(f, &x, &m->scale);
    const hn_node *n = hn_found_op(f, x, HN_OP_matmul);
    if (!n || hn_attr_i(n, "trans_a")) return false;
    m->q = hn_in(n, 0);
    m->k = hn_in(n, 1);
    m->turned = !hn_attr_i(n, "trans_b");
    m->n_core = f->n;
    return true;
}

/* [b*h,s,t] and [b,h,s,t] */
static bool merges_heads(hn_symtab *t, const hn_value *merged, const hn_value *split)
{
    const hn_tdesc *a = &merged->type, *b = &split->type;
    return a->rank == 3 && b->rank == 4 && a->dim[1] == b->dim[2] && a->dim[2] == b->dim[3] &&
           hn_dim_mul(t, b->dim[0], b->dim[1]) == a->dim[0];
}

/* c tanh(x / c) */
static bool capped(hn_found *f, hn_value *v, form *m)
{
    hn_value *t, *x;
    double by;
    if (!hn_found_with_scalar(f, v, HN_OP_mul, &t, &m->cap) || !(m->cap > 0) || !hn_found_op(f, t, HN_OP_tanh)) return false;
    hn_value *arg = hn_in(hn_producer(t), 0);
    if (hn_found_with_scalar(f, arg, HN_OP_div, &x, &by)) return by == m->cap && scaled_product(f, x, m);
    return hn_found_with_scalar(f, arg, HN_OP_mul, &x, &by) && (float)by == (float)(1 / m->cap) && scaled_product(f, x, m);
}

/* v [b,h,s,t] = reshape(scores [b*h,s,t]) */
static bool split_heads(hn_found *f, hn_value *v, form *m)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_reshape);
    if (!n || !merges_heads(v->graph->syms, hn_in(n, 0), v) || !scaled_product(f, hn_in(n, 0), m)) return false;
    m->lead[0] = v->type.dim[0];
    m->lead[1] = v->type.dim[1];
    return true;
}

/* The first of the ways that matches; what the others left behind is undone. */
typedef bool (*way)(hn_found *, hn_value *, form *);
static bool either(hn_found *f, hn_value *v, form *m, const way *ways, int n)
{
    const form before = *m;
    const int was = f->n;
    for (int i = 0; i < n; i++) {
        if (ways[i](f, v, m)) return true;
        *m = before;
        f->n = was;
    }
    return false;
}

static bool unmasked(hn_found *f, hn_value *v, form *m)
{
    return either(f, v, m, (const way[]){ scaled_product, capped, split_heads }, 3);
}

static bool selected(hn_found *f, hn_value *v, form *m)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_select);
    for (int i = 1; n && i <= 2; i++) {
        if (!hn_const_scalar(hn_in(n, 3 - i), &m->hide) || !hn_tdesc_eq(&hn_in(n, i)->type, &v->type)) continue;
        if (!unmasked(f, hn_in(n, i), m)) continue;
        m->mask[m->n_mask++] = hn_in(n, 0);
        m->hides = i == 2;
        return true;
    }
    return false;
}

static bool added(hn_found *f, hn_value *v, form *m)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_add);
    for (int i = 0; n && i < 2; i++) {
        hn_value *x = hn_in(n, i);
        if (!hn_tdesc_eq(&x->type, &v->type)) continue;
        m->mask[m->n_mask++] = hn_in(n, !i);
        if (unmasked(f, x, m) || (m->n_mask == 1 && either(f, x, m, (const way[]){ added }, 1))) return true;
        m->n_mask--;
    }
    return false;
}

/* v [b*h,s,t] = reshape(masked scores [b,h,s,t]) */
static bool merged_heads(hn_found *f, hn_value *v, form *m)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_reshape);
    if (!n || !merges_heads(v->graph->syms, v, hn_in(n, 0))) return false;
    return either(f, hn_in(n, 0), m, (const way[]){ selected, added }, 2) && m->lead[0];
}

/* where(is_nan(w), 0, w) */
static hn_value *guarded(hn_found *f, hn_value *v)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_select);
    const hn_node *nan = n ? hn_found_op(f, hn_in(n, 0), HN_OP_is_nan) : NULL;
    return nan && hn_in(nan, 0) == hn_in(n, 2) && hn_is_number(hn_in(n, 1), 0) ? hn_in(n, 2) : NULL;
}

static bool match(hn_found *f, const hn_node *n, form *m)
{
    if (hn_attr_i(n, "trans_a") || hn_attr_i(n, "trans_b")) return false;
    hn_value *w = hn_found_through_narrowing(f, hn_in(n, 0)), *plain = NULL;
    const int was = f->n;
    *m = (form){ .v = hn_in(n, 1), .scale = 1, .hide = -INFINITY, .rows = ROWS_NAN, .rank = n->out[0]->type.rank };
    if ((plain = guarded(f, w))) w = plain, m->rows = ROWS_GUARD;
    else f->n = was;
    w = plain ? hn_found_through_narrowing(f, w) : w;
    const hn_node *softmax = hn_found_op(f, w, HN_OP_softmax);
    int axis;
    if (!softmax || !hn_axis_resolve(hn_attr_i(softmax, "axis"), w->type.rank, &axis) || axis != w->type.rank - 1) return false;
    hn_value *scores = hn_found_through_widening(f, hn_in(softmax, 0));
    if (!either(f, scores, m, (const way[]){ scaled_product, capped, selected, added, merged_heads }, 5)) return false;
    peel_scale(f, &m->q, &m->scale);
    peel_keys(f, m);
    peel_groups(m);
    return isfinite(m->scale) && m->scale != 0;
}

/* ---- do the shapes fit the op? ---- */
/* Heads that broadcast are one key head for all queries; other extents must be equal. */
static bool heads_fit(hn_symtab *t, hn_dim q, hn_dim k)
{
    int64_t a, b;
    if (q == k || k == 1) return true;
    return hn_dim_known(t, q, &a) && hn_dim_known(t, k, &b) && b > 0 && a % b == 0;
}

static bool fits(hn_symtab *t, const form *m, const hn_tdesc *y)
{
    const hn_tdesc *q = &m->q->type, *k = &m->k->type, *v = &m->v->type;
    if (m->lead[0] && m->rank != 3) return false;
    if (m->rank < 2 || m->rank > 4 || q->rank != m->rank || k->rank != m->rank || v->rank != m->rank) return false;
    if (q->dtype != y->dtype || k->dtype != y->dtype || v->dtype != y->dtype || !hn_dtype_is_float(y->dtype)) return false;
    for (int i = 0; i < m->rank - 2; i++) {
        const bool heads = m->rank == 4 && i == 1;
        if (k->dim[i] != v->dim[i] || q->dim[i] != y->dim[i]) return false;
        if (heads ? !heads_fit(t, q->dim[i], k->dim[i]) : q->dim[i] != k->dim[i]) return false;
    }
    for (int i = 0; i < m->n_mask; i++) {
        const hn_dtype d = m->mask[i]->type.dtype;
        if (m->mask[i]->type.rank > (m->lead[0] ? 4 : m->rank) || (d != y->dtype && (d != HN_BOOL || m->n_mask > 1))) return false;
    }
    return true;
}

/* ---- building ---- */
/* [b*h,s,d] as [b,h,s,d], [b,s,d] as [b,1,s,d], [s,d] as [1,1,s,d]. */
static hn_value *with_heads(hn_builder *b, hn_value *x, const form *m)
{
    if (!x || m->rank == 4) return x;
    const hn_tdesc t = x->type;
    if (m->lead[0]) return hn_reshape(b, x, 4, (hn_dim[]){ m->lead[0], m->lead[1], t.dim[1], t.dim[2] });
    if (m->rank == 2) return hn_reshape(b, x, 4, (hn_dim[]){ 1, 1, t.dim[0], t.dim[1] });
    return hn_reshape(b, x, 4, (hn_dim[]){ t.dim[0], 1, t.dim[1], t.dim[2] });
}

static hn_value *turn_back(hn_builder *b, hn_value *k)
{
    int64_t perm[4] = { 0, 1, 2, 3 };
    const int r = k->type.rank;
    perm[r - 2] = r - 1;
    perm[r - 1] = r - 2;
    return hn_transpose(b, k, perm);
}

static hn_value *build_mask(hn_builder *b, const form *m)
{
    hn_value *x = m->n_mask ? m->mask[0] : NULL;
    if (m->n_mask == 2) x = hn_b2(b, HN_OP_add, m->mask[1], x, HN_NO_ATTRS);
    if (m->hides) x = hn_b1(b, HN_OP_not, x, HN_NO_ATTRS);
    return x && m->rank == 3 && x->type.rank == 3 && !m->lead[0] ? with_heads(b, x, m) : x;
}

static hn_value *build(hn_builder *b, const form *m, const hn_tdesc *y)
{
    hn_value *k = with_heads(b, m->turned ? turn_back(b, m->k) : m->k, m), *q = with_heads(b, m->q, m), *mask = build_mask(b, m);
    if (!q || !k) return NULL;
    /* Sums and selections let the run show that a mask's extent is 1. */
    mask = hn_settle_to(b, mask, 4, (hn_dim[]){ q->type.dim[0], q->type.dim[1], q->type.dim[2], k->type.dim[2] });
    hn_value *in[4] = { q, k, with_heads(b, m->v, m), mask };
    const hn_attr_set attrs[] = { HN_A_F("scale", m->scale), HN_A_F("softcap", m->cap), HN_A_F("hide", m->hide),
                                  HN_A_I("rows", m->rows), { .name = NULL } };
    const hn_node *n = hn_build(b, HN_OP_attention, mask ? 4 : 3, in, attrs, 1);
    if (!n) return NULL;
    return m->rank == 4 ? n->out[0] : hn_reshape(b, n->out[0], y->rank, y->dim);
}

/* Operands may have other readers: taking a scale or a turn off them copies nothing. */
static bool scores_are_closed(const hn_found *f, const form *m)
{
    hn_found core = *f;
    core.n = m->n_core;
    return hn_found_is_closed(&core);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_found f;
    form m;
    if (!n->out[0]->n_uses) return false;
    hn_found_init(&f, n);
    if (!match(&f, n, &m) || !scores_are_closed(&f, &m)) return false;
    const hn_tdesc y = n->out[0]->type;
    if (!fits(b->g->syms, &m, &y) || !hn_pass_knob(c, HN_KNOB_fuse_attention, n)) return false;
    hn_found_origins(&f, b);
    hn_value *r = build(b, &m, &y);
    if (r) hn_replace(b, n->out[0], r);
    return r != NULL;
}

const hn_pass_def hn_pass_fuse_attention = {
    .name = "fuse_attention", .summary = "recognise attention",
    .on = HN_OP_matmul, .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
