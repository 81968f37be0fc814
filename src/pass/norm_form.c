/* The ways exporters spell x / sqrt(mean(x^2) + eps). */
#include "pass/found.h"

/* Reduced over trailing axes alone, as layer_norm and rms_norm take them. */
static bool reduced(hn_found *f, hn_value *v, hn_op op, hn_value **ret_x, int *ret_axis)
{
    const int64_t *axes;
    int n;
    if (!hn_found_reduced(f, v, op, ret_x, &axes, &n)) return false;
    const int rank = (*ret_x)->type.rank;
    for (int i = 0; i < n; i++)
        if (axes[i] != rank - n + i) return false;
    *ret_axis = rank - n;
    return true;
}

static bool line_length(const hn_value *x, int axis, double *ret)
{
    *ret = 1;
    for (int i = axis; i < x->type.rank; i++) {
        if (!hn_dim_is_const(x->type.dim[i])) return false;
        *ret *= (double)x->type.dim[i];
    }
    return *ret > 0;
}

/* A sum over its count. */
static bool mean_of_sum(hn_found *f, hn_value *v, hn_value **ret_x, int *ret_axis)
{
    hn_value *sum;
    double c, n;
    const bool by = hn_found_with_scalar(f, v, HN_OP_mul, &sum, &c) != NULL;
    if (!by && !hn_found_with_scalar(f, v, HN_OP_div, &sum, &c)) return false;
    if (!reduced(f, sum, HN_OP_reduce_sum, ret_x, ret_axis) || !line_length(*ret_x, *ret_axis, &n)) return false;
    return by ? (float)c == (float)(1 / n) : c == n;
}

bool hn_found_mean(hn_found *f, hn_value *v, hn_value **ret_x, int *ret_axis)
{
    const int was = f->n;
    if (reduced(f, v, HN_OP_reduce_mean, ret_x, ret_axis)) return true;
    f->n = was;
    if (mean_of_sum(f, v, ret_x, ret_axis)) return true;
    f->n = was;
    return false;
}

/* mean(x^2) + eps */
static bool mean_square_plus(hn_found *f, hn_value *v, hn_norm_form *ret)
{
    hn_value *mean, *square;
    if (!hn_found_with_scalar(f, v, HN_OP_add, &mean, &ret->eps) || !(ret->eps >= 0)) return false;
    if (!hn_found_mean(f, mean, &square, &ret->axis)) return false;
    ret->x = hn_found_square(f, square);
    return ret->x != NULL;
}

/* sqrt(mean(x^2) + eps) */
static bool rms(hn_found *f, hn_value *v, hn_norm_form *ret)
{
    const int was = f->n;
    hn_value *e;
    const hn_node *root = hn_found_op(f, v, HN_OP_sqrt);
    if (root) e = hn_in(root, 0);
    else if (!hn_found_with(f, v, HN_OP_pow, 0.5, &e)) return false;
    if (mean_square_plus(f, e, ret)) return true;
    f->n = was;
    return false;
}

bool hn_found_inverse_rms(hn_found *f, hn_value *v, hn_norm_form *ret)
{
    const double largest_f16 = 65504; /* of a result cast down, 1 / sqrt(eps) is the most that comes */
    const int was = f->n;
    hn_value *wide = hn_found_through_narrowing(f, v), *e;
    const hn_node *n = hn_producer(wide);
    bool ok = false;
    if (n && n->op == HN_OP_reciprocal) ok = hn_found_op(f, wide, HN_OP_reciprocal) && rms(f, hn_in(n, 0), ret);
    else if (n && n->op == HN_OP_div && hn_is_number(hn_in(n, 0), 1) && hn_tdesc_eq(&hn_in(n, 1)->type, &wide->type))
        ok = hn_found_op(f, wide, HN_OP_div) && rms(f, hn_in(n, 1), ret);
    else ok = hn_found_with(f, wide, HN_OP_pow, -0.5, &e) && mean_square_plus(f, e, ret);
    if (wide != v && v->type.dtype == HN_F16) ok = ok && ret->eps * largest_f16 * largest_f16 > 1;
    if (!ok) f->n = was;
    return ok;
}

/* The square may have been taken in a wider type. */
static bool squared(hn_found *f, hn_value *x, hn_norm_form *ret)
{
    if (ret->x != x && hn_found_through_widening(f, ret->x) != x) return false;
    ret->x = x;
    return true;
}

bool hn_found_normalised(hn_found *f, const hn_node *n, hn_norm_form *ret)
{
    if (n->op == HN_OP_div) return rms(f, hn_in(n, 1), ret) && squared(f, hn_in(n, 0), ret);
    if (n->op != HN_OP_mul) return false;
    for (int i = 0; i < 2; i++) {
        const int was = f->n;
        if (hn_found_inverse_rms(f, hn_in(n, i), ret) && squared(f, hn_in(n, !i), ret)) return true;
        f->n = was;
    }
    return false;
}

bool hn_norm_takes(const hn_value *w, const hn_value *x, int axis)
{
    if (w->type.dtype != x->type.dtype || w->type.rank > x->type.rank) return false;
    for (int i = 0; i < w->type.rank; i++) {
        const int at = x->type.rank - w->type.rank + i;
        if (w->type.dim[i] != 1 && (at < axis || w->type.dim[i] != x->type.dim[at])) return false;
    }
    return true;
}

/* Which operand of the normalisation n's other operand becomes: 1 scale, 2 bias; 0 when it cannot. */
static int affine_place(const hn_node *n, const hn_node *norm)
{
    const bool scaled = hn_in(norm, 1), shifted = hn_in(norm, 2);
    if (norm->n_out > 1 && norm->out[1]->n_uses) return 0;
    if (n->op == HN_OP_mul && !scaled && !shifted) return 1;
    return n->op == HN_OP_add && norm->op == HN_OP_layer_norm && !shifted ? 2 : 0;
}

bool hn_norm_absorb(hn_builder *b, hn_node *n, hn_pass_ctx *c, hn_op op, hn_knob knob)
{
    for (int i = 0; i < 2; i++) {
        const hn_node *norm = hn_producer(hn_in(n, i));
        hn_value *w = hn_in(n, !i);
        if (!norm || norm->op != op || norm->graph != n->graph || !hn_has_one_use(norm->out[0])) continue;
        const int place = affine_place(n, norm);
        int axis;
        hn_axis_resolve(hn_attr_i(norm, "axis"), hn_in(norm, 0)->type.rank, &axis);
        if (!place || !hn_norm_takes(w, hn_in(norm, 0), axis) || !hn_pass_knob(c, knob, n)) continue;
        hn_value *in[3] = { hn_in(norm, 0), hn_in(norm, 1), hn_in(norm, 2) };
        in[place] = w;
        hn_builder_origin_of(b, norm);
        const hn_node *made = hn_build_like(b, norm, place + 1, in);
        if (made) hn_replace(b, n->out[0], made->out[0]);
        return made != NULL;
    }
    return false;
}
