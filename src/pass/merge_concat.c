/**
 * Make one concat of several, without operands that hold nothing.
 *
 *     y = concat(concat(a, b), c)            =>   y = concat(a, b, c)
 *     y = concat(a, e [n,0])                 =>   y = a
 *     y = concat(x[:, 0:2], x[:, 2:5], c)    =>   y = concat(x[:, 0:5], c)
 *
 * An inner concat that others read as well stays: its result is needed anyway.
 */
#include "pass/pass_int.h"

enum { MAX_OPERANDS = 64 };

typedef struct operands {
    hn_value *at[MAX_OPERANDS];
    int n;
    bool changed;
} operands;

/* The slice that v is, along `axis` alone and in steps of one. */
static const hn_node *plain_slice(const hn_value *v, int axis, hn_dim *ret_start)
{
    const hn_node *s = hn_producer(v);
    int rank;
    if (!s || s->op != HN_OP_slice) return NULL;
    const hn_dim *start = hn_attr_is(s, "start", &rank);
    const int64_t *step = hn_attr_is(s, "step", &rank);
    for (int i = 0; i < rank; i++)
        if (step[i] != 1 || (i != axis && v->type.dim[i] != hn_in(s, 0)->type.dim[i])) return NULL;
    *ret_start = start[axis];
    return s;
}

/* a and b stand side by side in one tensor: that stretch of it. */
static hn_value *rejoin(hn_builder *b, hn_value *x, hn_value *y, int axis)
{
    hn_dim from, mid;
    const hn_node *s = plain_slice(x, axis, &from), *u = plain_slice(y, axis, &mid);
    hn_symtab *t = b->g->syms;
    if (!s || !u || hn_in(s, 0) != hn_in(u, 0) || hn_dim_add(t, from, x->type.dim[axis]) != mid) return NULL;
    return hn_slice(b, hn_in(s, 0), axis, from, hn_dim_add(t, x->type.dim[axis], y->type.dim[axis]));
}

static bool push(hn_builder *b, operands *o, hn_value *v, int axis)
{
    if (v->type.dim[axis] == 0) {
        o->changed = true;
        return true;
    }
    hn_value *both = o->n ? rejoin(b, o->at[o->n - 1], v, axis) : NULL;
    if (both) {
        o->at[o->n - 1] = both;
        o->changed = true;
        return true;
    }
    if (o->n == MAX_OPERANDS) return false;
    o->at[o->n++] = v;
    return true;
}

static bool inlines(const hn_node *n, const hn_value *v, int axis)
{
    const hn_node *p = hn_producer(v);
    int own;
    return p && p->op == HN_OP_concat && p->graph == n->graph && hn_has_one_use(v) &&
           hn_axis_resolve(hn_attr_i(p, "axis"), v->type.rank, &own) && own == axis;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    operands *o = HN_NEW(c->scratch, operands);
    int axis;
    if (!o || !n->out[0]->n_uses || !hn_axis_resolve(hn_attr_i(n, "axis"), n->out[0]->type.rank, &axis)) return false;
    for (int i = 0; i < n->n_in; i++) {
        hn_value *v = hn_in(n, i);
        const hn_node *p = inlines(n, v, axis) ? hn_producer(v) : NULL;
        for (int k = 0; k < (p ? p->n_in : 1); k++)
            if (!push(b, o, p ? hn_in(p, k) : v, axis)) return false;
        o->changed = o->changed || p;
    }
    if (!o->changed || o->n == 0) return false;
    hn_value *y = o->at[0];
    if (o->n > 1) {
        const hn_node *made = hn_build_like(b, n, o->n, o->at);
        y = made ? made->out[0] : NULL;
    }
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

const hn_pass_def hn_pass_merge_concat = {
    .name = "merge_concat", .summary = "make one concat of several, and one piece of pieces that were one",
    .on = HN_OP_concat, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
