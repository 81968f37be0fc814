/**
 * Take tensors out of lists whose elements are known, and what lists and optionals tell about themselves.
 *
 *     s = seq_construct(a, b)  y = seq_at(s, {1})         =>   y = b
 *     s = seq_split(x f32[6,n]) {axis=0}  z = seq_at(s, {-1})   =>   z = slice(x) {start=[5,0]}
 *     s = seq_insert(r, c)  k = seq_length(s)             =>   k = {length of r, and one}
 *     s = seq_construct(a, b)  y = seq_concat(s) {axis=0} =>   y = concat(a, b)
 *     o = opt_make(x)  y = opt_get(o)  h = opt_has(o)     =>   y = x  h = {true}
 *
 * An element taken from a list had extents of its own, found while running; they become those of the tensor that it is. Every
 * change takes the last uses from a list op or from one of its readers, so it ends.
 */
#include "pass/pass.h"

enum { MANY = 4096 };

/* A tensor, or elements [from, from + len) of one along an axis, which is dropped if `drop`. */
typedef struct item {
    hn_value *x;
    int axis; /* -1: the tensor itself */
    hn_dim from, len;
    bool drop;
} item;

typedef struct list {
    hn_arena *a;
    HN_VEC(item) at;
} list;

static bool find(list *l, hn_value *v);

/* ---- what is in a list ---- */
static bool insert(list *l, int at, item x)
{
    if (at < 0 || at > l->at.n || l->at.n >= MANY || !hn_vec_push(l->a, &l->at, x)) return false;
    for (int i = l->at.n - 1; i > at; i--) l->at.at[i] = l->at.at[i - 1];
    l->at.at[at] = x;
    return true;
}

/* A constant position; -1 counts from the end. absent: what no operand means. */
static bool position(const list *l, const hn_node *n, int operand, int absent, int *ret)
{
    int64_t at = absent;
    if (hn_in(n, operand) && !hn_const_i64(hn_in(n, operand), 0, &at)) return false;
    if (at < 0) at += l->at.n;
    *ret = (int)at;
    return at >= 0 && at <= l->at.n;
}

static bool find_construct(list *l, const hn_node *n)
{
    for (int i = 0; i < n->n_in; i++)
        if (!insert(l, i, (item){ .x = hn_in(n, i), .axis = -1 })) return false;
    return true;
}

static bool find_insert(list *l, const hn_node *n)
{
    int at;
    if (!find(l, hn_in(n, 0)) || !position(l, n, 2, l->at.n, &at)) return false;
    return insert(l, at, (item){ .x = hn_in(n, 1), .axis = -1 });
}

static bool find_erase(list *l, const hn_node *n)
{
    int at;
    if (!find(l, hn_in(n, 0)) || !position(l, n, 1, l->at.n - 1, &at) || at >= l->at.n) return false;
    for (int i = at; i + 1 < l->at.n; i++) l->at.at[i] = l->at.at[i + 1];
    l->at.n--;
    return true;
}

/* Parts of one size, the last perhaps shorter. */
static bool cut_evenly(list *l, item part, int64_t each)
{
    const hn_dim extent = part.x->type.dim[part.axis];
    if (!hn_dim_is_const(extent) || each < 1 || extent / each >= MANY) return false;
    for (part.from = 0; part.from < extent; part.from += part.len) {
        part.len = HN_MIN(each, extent - part.from);
        if (!insert(l, l->at.n, part)) return false;
    }
    return true;
}

static bool find_split(list *l, const hn_node *n)
{
    const hn_value *size = hn_in(n, 1);
    item part = { .x = hn_in(n, 0), .drop = !size && !hn_attr_i(n, "keepdims") };
    int64_t each = 1;
    if (!part.x || !hn_axis_resolve(hn_attr_i(n, "axis"), part.x->type.rank, &part.axis)) return false;
    if (!size) return cut_evenly(l, part, 1);
    if (!hn_is_const(size) || !hn_tdesc_is_static(&size->type)) return false;
    if (size->type.rank == 0) return hn_const_i64(size, 0, &each) && cut_evenly(l, part, each);
    for (int i = 0; i < size->type.dim[0]; i++, part.from += part.len)
        if (!hn_const_i64(size, i, &part.len) || part.len < 0 || !insert(l, i, part)) return false;
    return part.from == part.x->type.dim[part.axis];
}

static bool find(list *l, hn_value *v)
{
    if (!v || !v->def || v->kind != HN_SEQUENCE) return false;
    switch (v->def->op) {
    case HN_OP_identity: return find(l, hn_in(v->def, 0));
    case HN_OP_seq_construct: return find_construct(l, v->def);
    case HN_OP_seq_insert: return find_insert(l, v->def);
    case HN_OP_seq_erase: return find_erase(l, v->def);
    case HN_OP_seq_split: return find_split(l, v->def);
    default: return false;
    }
}

/* ---- taking out ---- */
static hn_value *take(hn_builder *b, const item *x)
{
    hn_dim dim[HN_MAX_RANK];
    int rank = 0;
    if (x->axis < 0) return x->x;
    hn_value *y = hn_slice(b, x->x, x->axis, x->from, x->len);
    if (!y || !x->drop) return y;
    for (int i = 0; i < y->type.rank; i++)
        if (i != x->axis) dim[rank++] = y->type.dim[i];
    return hn_reshape(b, y, rank, dim);
}

static hn_value *take_at(hn_builder *b, list *l, const hn_node *n)
{
    int at;
    if (!position(l, n, 1, 0, &at) || at >= l->at.n) return NULL; /* out of range: for the run to say */
    return take(b, &l->at.at[at]);
}

static hn_value *unsqueeze(hn_builder *b, hn_value *x, int axis)
{
    hn_dim dim[HN_MAX_RANK];
    if (!x || x->type.rank >= HN_MAX_RANK) return NULL;
    for (int i = 0; i <= x->type.rank; i++) dim[i] = i < axis ? x->type.dim[i] : i == axis ? 1 : x->type.dim[i - 1];
    return hn_reshape(b, x, x->type.rank + 1, dim);
}

static hn_value *take_joined(hn_builder *b, list *l, const hn_node *n)
{
    const bool grow = hn_attr_i(n, "new_axis");
    hn_value **x = HN_NEW_N(l->a, hn_value *, l->at.n + 1);
    int axis;
    if (!x || l->at.n == 0 || !hn_axis_resolve(hn_attr_i(n, "axis"), n->out[0]->type.rank, &axis)) return NULL;
    for (int i = 0; i < l->at.n; i++) {
        x[i] = take(b, &l->at.at[i]);
        if (grow) x[i] = unsqueeze(b, x[i], axis);
        if (!x[i]) return NULL;
    }
    hn_node *y = hn_build(b, HN_OP_concat, l->at.n, x, HN_ATTRS_ARG(HN_A_I("axis", axis)), 0);
    return y ? y->out[0] : NULL;
}

/* ---- optionals ---- */
static const hn_node *made_by(hn_value *v)
{
    while (v && v->def && v->def->op == HN_OP_identity) v = hn_in(v->def, 0);
    return v && v->def && v->def->op == HN_OP_opt_make ? v->def : NULL;
}

static hn_value *take_optional(hn_builder *b, const hn_node *n)
{
    hn_value *v = hn_in(n, 0);
    const hn_node *make = made_by(v);
    const bool known = make || !v || v->kind == HN_TENSOR;
    if (n->op == HN_OP_opt_has) return known ? hn_const_i(b, HN_BOOL, make ? hn_in(make, 0) != NULL : v != NULL) : NULL;
    return make ? hn_in(make, 0) : v && v->kind == HN_TENSOR ? v : NULL;
}

static hn_value *replacement(hn_builder *b, hn_arena *a, const hn_node *n)
{
    list l = { .a = a };
    switch (n->op) {
    case HN_OP_seq_at: return find(&l, hn_in(n, 0)) ? take_at(b, &l, n) : NULL;
    case HN_OP_seq_concat: return find(&l, hn_in(n, 0)) ? take_joined(b, &l, n) : NULL;
    case HN_OP_seq_length: return find(&l, hn_in(n, 0)) ? hn_const_i(b, HN_I64, l.at.n) : NULL;
    case HN_OP_opt_get:
    case HN_OP_opt_has: return take_optional(b, n);
    default: return NULL;
    }
}

/* ---- extents that are known now ---- */
/* Symbols that v's own extents define, to the extents of w. False when there are none. */
static bool own_extents(const hn_graph *root, const hn_value *v, const hn_value *w, hn_dim *sub)
{
    bool any = false;
    for (int i = 0; i < hn_sym_count(root->syms); i++) sub[i] = hn_sym_at(root->syms, i);
    HN_FOR_DIMS_OF_VALUE (d, v) {
        const int axis = -1 - d->elem;
        if (axis < 0 || axis >= w->type.rank || w->type.dim[axis] == d->sym) continue;
        sub[hn_sym_index(root->syms, d->sym)] = w->type.dim[axis];
        any = true;
    }
    return any;
}

static hone_status replace(hn_builder *b, hn_pass_ctx *c, hn_value *v, hn_value *w, hn_diag *dg)
{
    hn_graph *root = b->g->root;
    hn_dim *sub = HN_NEW_N(c->scratch, hn_dim, hn_sym_count(root->syms) + 1);
    if (!sub) return HN_NOMEM(dg);
    const bool any = own_extents(root, v, w, sub);
    hn_replace(b, v, w);
    return any ? hn_graph_subst(root, sub, dg) : HONE_OK;
}

static hone_status run(hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg)
{
    HN_FOR_NODES (n, g) {
        hn_builder b;
        hn_builder_init(&b, g, dg);
        hn_at(&b, n);
        hn_value *w = n->n_out == 1 && n->out[0]->n_uses ? replacement(&b, c->scratch, n) : NULL;
        HN_TRY(b.status);
        if (!w) continue;
        HN_TRY(replace(&b, c, n->out[0], w, dg));
        ++*fired;
    }
    return HONE_OK;
}

const hn_pass_def hn_pass_fold_sequence = {
    .name = "fold_sequence", .summary = "take tensors out of lists whose elements are known",
    .keeps = HN_KEEP_NUMBERS, .exact = true, .run = run,
};
