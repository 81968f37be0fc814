/**
 * Make one op of spelled-out rotary embedding: features turn in pairs by angles that both halves share.
 *
 *     h = concat(-x[.., d/2:], x[.., :d/2]);  y = x * c + h * s   =>   y = rotary(x, c[.., :d/2], s[.., :d/2])
 *
 * Fires where x is [b,h,s,d] and both halves of c and of s are known to be the same. Not exact: halves are rounded once.
 */
#include "pass/found.h"

#include <string.h>

enum { RANK = 4, HEADS = 1, ROWS = 2, FEATURES = 3, MOST_STEPS = 12 /* from angles back to where both halves are written */ };

/* ---- halves that are the same ---- */
static bool same_halves_of_data(const hn_value *v)
{
    const int64_t d = v->type.dim[v->type.rank - 1], bits = hn_dtype_bits(v->type.dtype);
    const int64_t n = hn_tdesc_numel_static(&v->type);
    if (bits % 8 || n <= 0 || d % 2) return false;
    const size_t half = (size_t)(d / 2 * bits / 8);
    const uint8_t *at = v->data->at;
    for (int64_t row = 0; row < n / d; row++, at += 2 * half)
        if (memcmp(at, at + half, half) != 0) return false;
    return true;
}

static bool keeps_last_axis(const hn_node *n)
{
    const hn_tdesc *x = &hn_in(n, 0)->type, *y = &n->out[0]->type;
    return x->rank > 0 && y->rank > 0 && x->dim[x->rank - 1] == y->dim[y->rank - 1];
}

static bool gathers_rows(const hn_node *n)
{
    int axis;
    return hn_axis_resolve(hn_attr_i(n, "axis"), hn_in(n, 0)->type.rank, &axis) && axis < hn_in(n, 0)->type.rank - 1 && keeps_last_axis(n);
}

/* The operand whose halves n's result has; NULL: that is not known. */
static const hn_value *halves_of(const hn_node *n)
{
    hn_value *x;
    double c;
    int i;

    switch (n->op) {
    case HN_OP_cos: case HN_OP_sin: case HN_OP_cast: return hn_in(n, 0);
    case HN_OP_reshape: return keeps_last_axis(n) ? hn_in(n, 0) : NULL;
    case HN_OP_gather: return gathers_rows(n) ? hn_in(n, 0) : NULL;
    case HN_OP_mul: return hn_scalar_operand(n, &x, &c, &i) ? x : NULL;
    default: return NULL;
    }
}

static bool has_same_halves(const hn_value *v)
{
    for (int step = 0; step < MOST_STEPS && v && v->type.rank > 0 && hn_dim_is_const(v->type.dim[v->type.rank - 1]); step++) {
        if (v->data) return same_halves_of_data(v);
        const hn_node *n = hn_producer(v);
        int axis;
        if (!n) return false;
        if (n->op == HN_OP_concat)
            return n->n_in == 2 && hn_in(n, 0) == hn_in(n, 1) && hn_axis_resolve(hn_attr_i(n, "axis"), v->type.rank, &axis) &&
                   axis == v->type.rank - 1;
        v = halves_of(n);
    }
    return false;
}

/* ---- the pattern ---- */
/* v = x[.., start : start + d/2], all else of it. */
static bool is_half(hn_found *f, const hn_value *v, const hn_value *x, int64_t start)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_slice);
    int rank;
    if (!n || hn_in(n, 0) != x) return false;
    const hn_dim *from = hn_attr_is(n, "start", &rank);
    const int64_t *step = hn_attr_is(n, "step", &rank);
    for (int a = 0; a < RANK; a++) {
        if (from[a] != (a == FEATURES ? start : 0) || step[a] != 1) return false;
        if (a != FEATURES && v->type.dim[a] != x->type.dim[a]) return false;
    }
    return v->type.dim[FEATURES] == x->type.dim[FEATURES] / 2;
}

static bool is_turned(hn_found *f, const hn_value *v, const hn_value *x)
{
    const hn_node *n = hn_found_op(f, v, HN_OP_concat);
    int axis;
    if (!n || n->n_in != 2 || !hn_axis_resolve(hn_attr_i(n, "axis"), RANK, &axis) || axis != FEATURES) return false;
    const hn_node *neg = hn_found_op(f, hn_in(n, 0), HN_OP_neg);
    return neg && is_half(f, hn_in(neg, 0), x, x->type.dim[FEATURES] / 2) && is_half(f, hn_in(n, 1), x, 0);
}

/* The same angles for all heads, a row of them for each row of x. */
static bool are_angles(const hn_value *v, const hn_value *x)
{
    const int shift = RANK - v->type.rank;
    if (shift < 0 || shift > ROWS || v->type.dtype != x->type.dtype) return false;
    for (int a = shift; a < RANK; a++) {
        const hn_dim d = v->type.dim[a - shift];
        if (a == HEADS ? d != 1 : a == 0 ? d != 1 && d != x->type.dim[0] : d != x->type.dim[a]) return false;
    }
    return has_same_halves(v);
}

typedef struct rotary {
    hn_value *x, *cos, *sin;
} rotary;

/* n = x * cos + turned * sin, each product's operands in either order; i says which of n's is the first product. */
static bool is_rotary(hn_found *f, const hn_node *n, int i, rotary *ret)
{
    const hn_node *plain = hn_found_op(f, hn_in(n, i), HN_OP_mul), *turned = hn_found_op(f, hn_in(n, !i), HN_OP_mul);
    const int noted = f->n;
    if (!plain || !turned) return false;
    for (int order = 0; order < 4; order++) {
        *ret = (rotary){ hn_in(plain, order & 1), hn_in(plain, !(order & 1)), hn_in(turned, order >> 1) };
        f->n = noted;
        if (ret->x->type.rank != RANK || !hn_dim_is_const(ret->x->type.dim[FEATURES]) || ret->x->type.dim[FEATURES] % 2) continue;
        if (are_angles(ret->cos, ret->x) && are_angles(ret->sin, ret->x) && is_turned(f, hn_in(turned, !(order >> 1)), ret->x)) return true;
    }
    return false;
}

/* The first half of v, which has the same ones, made anew from where they are written: what makes the other half is dead then. */
static hn_value *halved(hn_builder *b, hn_value *v)
{
    const hn_node *n = hn_producer(v);
    const int last = v->type.rank - 1;
    hn_value *in[2];
    hn_dim dim[HN_MAX_RANK];

    if (v->data || !n) return hn_slice(b, v, last, 0, v->type.dim[last] / 2);
    if (n->op == HN_OP_concat) return hn_in(n, 0);
    const hn_value *whole = halves_of(n);
    for (int i = 0; i < n->n_in; i++) in[i] = hn_in(n, i) == whole ? halved(b, hn_in(n, i)) : hn_in(n, i);
    if (n->op == HN_OP_reshape) {
        memcpy(dim, v->type.dim, sizeof dim);
        dim[last] /= 2;
        return hn_reshape(b, in[0], v->type.rank, dim);
    }
    const hn_node *y = hn_build_like(b, n, n->n_in, in);
    return y ? y->out[0] : NULL;
}

/* As the op takes them: [b or 1, s, d/2]. */
static hn_value *first_half(hn_builder *b, hn_value *v)
{
    const int shift = RANK - v->type.rank, last = v->type.rank - 1;
    const hn_dim dim[] = { shift == 0 ? v->type.dim[0] : 1, v->type.dim[last - 1], v->type.dim[last] / 2 };

    return hn_reshape(b, halved(b, v), RANK - 1, dim);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    for (int i = 0; i < 2; i++) {
        hn_found f;
        rotary r;
        hn_found_init(&f, n);
        if (!is_rotary(&f, n, i, &r) || !hn_found_is_closed(&f) || !hn_tdesc_eq(&r.x->type, &n->out[0]->type)) continue;
        if (!hn_pass_knob(c, HN_KNOB_fuse_rotary, n)) return false;
        hn_found_origins(&f, b);
        hn_value *y = hn_b3(b, HN_OP_rotary, r.x, first_half(b, r.cos), first_half(b, r.sin), HN_NO_ATTRS);
        if (y) hn_replace(b, n->out[0], y);
        return y != NULL;
    }
    return false;
}

const hn_pass_def hn_pass_fuse_rotary = {
    .name = "fuse_rotary", .summary = "run spelled-out rotary embedding as one operation",
    .on = HN_OP_add, .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
