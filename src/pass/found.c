/* Following patterns upwards. */
#include "pass/found.h"

void hn_found_init(hn_found *f, const hn_node *last)
{
    *f = (hn_found){ .g = last->graph, .node = { last }, .n = 1 };
}

const hn_node *hn_found_op(hn_found *f, const hn_value *v, hn_op op)
{
    const hn_node *n = hn_producer(v);
    if (!n || n->op != op || n->graph != f->g || f->n == HN_MAX_FOUND) return NULL;
    f->node[f->n++] = n;
    return n;
}

static bool is_noted(const hn_found *f, const hn_node *n)
{
    for (int i = 0; i < f->n; i++)
        if (f->node[i] == n) return true;
    return false;
}

const hn_node *hn_found_any(hn_found *f, const hn_value *v)
{
    const hn_node *n = hn_producer(v);
    return n && is_noted(f, n) ? n : n ? hn_found_op(f, v, n->op) : NULL;
}

bool hn_scalar_operand(const hn_node *n, hn_value **ret_x, double *ret_c, int *ret_i)
{
    const bool either = hn_op_of(n)->traits & HN_TRAIT_COMMUTATIVE;
    for (int i = 1; i >= (either ? 0 : 1); i--) {
        hn_value *x = hn_in(n, !i);
        if (hn_is_const(x) || !hn_const_scalar(hn_in(n, i), ret_c)) continue;
        if (!hn_tdesc_eq(&x->type, &n->out[0]->type)) continue;
        *ret_x = x;
        *ret_i = i;
        return true;
    }
    return false;
}

bool hn_is_number(const hn_value *v, double want)
{
    double got, rounded;
    uint64_t bits = 0;
    if (!hn_const_scalar(v, &got)) return false;
    if (!hn_dtype_is_float(v->type.dtype)) return got == want;
    hn_narrow_f64(v->type.dtype, &want, 1, &bits, 0, false);
    hn_widen_f64(v->type.dtype, &bits, 0, 1, &rounded);
    return got == rounded;
}

const hn_node *hn_found_with_scalar(hn_found *f, const hn_value *v, hn_op op, hn_value **ret_x, double *ret_c)
{
    const int was = f->n;
    int i;
    const hn_node *n = hn_found_op(f, v, op);
    if (n && hn_scalar_operand(n, ret_x, ret_c, &i)) return n;
    f->n = was;
    return NULL;
}

const hn_node *hn_found_with(hn_found *f, const hn_value *v, hn_op op, double want, hn_value **ret_x)
{
    const int was = f->n;
    double c;
    int i;
    const hn_node *n = hn_found_op(f, v, op);
    if (n && hn_scalar_operand(n, ret_x, &c, &i) && hn_is_number(hn_in(n, i), want)) return n;
    f->n = was;
    return NULL;
}

hn_value *hn_found_through_widening(hn_found *f, hn_value *v)
{
    const hn_node *n = hn_producer(v);
    if (!n || n->op != HN_OP_cast || n->graph != f->g) return v;
    const hn_dtype from = hn_in(n, 0)->type.dtype, to = v->type.dtype;
    const bool half = from == HN_F16 || from == HN_BF16;
    if (!(half && (to == HN_F32 || to == HN_F64)) && !(from == HN_F32 && to == HN_F64)) return v;
    return hn_found_op(f, v, HN_OP_cast) ? hn_in(n, 0) : v;
}

hn_value *hn_found_through_narrowing(hn_found *f, hn_value *v)
{
    const hn_node *n = hn_producer(v);
    const bool narrows = n && n->op == HN_OP_cast && hn_in(n, 0)->type.dtype == HN_F32 &&
                         (v->type.dtype == HN_F16 || v->type.dtype == HN_BF16);
    return narrows && hn_found_op(f, v, HN_OP_cast) ? hn_in(n, 0) : v;
}

hn_value *hn_found_square(hn_found *f, hn_value *v)
{
    hn_value *x;
    if (hn_found_with(f, v, HN_OP_pow, 2, &x)) return x;
    const hn_node *n = hn_found_op(f, v, HN_OP_mul);
    if (!n) return NULL;
    if (hn_in(n, 0) == hn_in(n, 1)) return hn_in(n, 0);
    f->n--;
    return NULL;
}

/* The reduced axes are there as 1s. */
static bool keeps_axes(const hn_value *v, const hn_value *x, const int64_t *axes, int n)
{
    if (v->type.rank != x->type.rank) return false;
    for (int i = 0, k = 0; i < v->type.rank; i++) {
        const bool gone = k < n && axes[k] == i;
        if (v->type.dim[i] != (gone ? 1 : x->type.dim[i])) return false;
        k += gone;
    }
    return true;
}

bool hn_found_reduced(hn_found *f, hn_value *v, hn_op op, hn_value **ret_x, const int64_t **ret_axes, int *ret_n)
{
    const int was = f->n;
    hn_value *at = v;
    const hn_node *unsqueeze = hn_found_op(f, v, HN_OP_reshape);
    if (unsqueeze) at = hn_in(unsqueeze, 0);
    const hn_node *n = hn_found_op(f, at, op);
    if (n) *ret_axes = hn_attr_is(n, "axes", ret_n);
    if (n && *ret_n > 0 && keeps_axes(v, hn_in(n, 0), *ret_axes, *ret_n)) {
        *ret_x = hn_in(n, 0);
        return true;
    }
    f->n = was;
    return false;
}

bool hn_found_is_closed(const hn_found *f)
{
    for (int i = 1; i < f->n; i++)
        for (int k = 0; k < f->node[i]->n_out; k++)
            HN_FOR_USES (u, f->node[i]->out[k])
                if (!u->node || !is_noted(f, u->node)) return false;
    return true;
}

void hn_found_origins(const hn_found *f, hn_builder *b)
{
    for (int i = 0; i < f->n; i++) hn_builder_origin_of(b, f->node[i]);
}
