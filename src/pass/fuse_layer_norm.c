/**
 * Make one op of a spelled-out layer normalisation.
 *
 *     d = x - mean(x)   s = mean(d*d) + eps   y = d / sqrt(s)          =>   y = layer_norm(x) {eps}
 *     y = layer_norm(x)   z = y * w                                    =>   z = layer_norm(x, w)
 *     y = layer_norm(x, w)   z = y + b                                 =>   z = layer_norm(x, w, b)
 *     k = w / sqrt(s)   y = x*k + (b - mean(x)*k)                      =>   y = layer_norm(x, w, b)
 *
 * Means are over the last axes. The last form is how TensorFlow spells it; without w and b it is the same.
 */
#include "pass/found.h"

/* d = x - mean(x) over the form's axes */
static hn_value *centred(hn_found *f, hn_value *d, int axis)
{
    hn_value *x;
    int mean_axis;
    const hn_node *sub = hn_found_op(f, d, HN_OP_sub);
    if (!sub || !hn_found_mean(f, hn_in(sub, 1), &x, &mean_axis) || mean_axis != axis) return NULL;
    return hn_found_through_widening(f, x) == hn_in(sub, 0) || x == hn_in(sub, 0) ? hn_in(sub, 0) : NULL;
}

static bool replace(hn_builder *b, const hn_found *f, int n_in, hn_value *const *in, const hn_norm_form *form)
{
    hn_found_origins(f, b);
    const hn_attr_set attrs[] = { HN_A_I("axis", form->axis), HN_A_F("eps", form->eps), { .name = NULL } };
    const hn_node *made = hn_build(b, HN_OP_layer_norm, n_in, in, attrs, 1);
    if (made) hn_replace(b, f->node[0]->out[0], made->out[0]);
    return made != NULL;
}

static bool normalise(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_found f;
    hn_norm_form form;
    hn_found_init(&f, n);
    if (!hn_found_normalised(&f, n, &form)) return false;
    hn_value *x = centred(&f, form.x, form.axis);
    if (!x || !hn_found_is_closed(&f) || !hn_tdesc_eq(&x->type, &n->out[0]->type)) return false;
    return hn_pass_knob(c, HN_KNOB_fuse_layer_norm, n) && replace(b, &f, 1, &x, &form);
}

/* k = 1/sqrt(mean(d^2) + eps), or that times w; yields d. */
static hn_value *factor(hn_found *f, hn_value *k, hn_norm_form *form, hn_value **ret_w)
{
    *ret_w = NULL;
    if (hn_found_inverse_rms(f, k, form)) return form->x;
    const hn_node *mul = hn_found_op(f, k, HN_OP_mul);
    for (int i = 0; mul && i < 2; i++) {
        *ret_w = hn_in(mul, !i);
        if (hn_found_inverse_rms(f, hn_in(mul, i), form)) return form->x;
    }
    return NULL;
}

/* p = x*k and q = b - mean(x)*k, or -(mean(x)*k) taken off */
static bool scaled_parts(hn_found *f, hn_value *p, hn_value *q, hn_norm_form *form, hn_value *in[3])
{
    const hn_node *xk = hn_found_op(f, p, HN_OP_mul), *mk = hn_found_op(f, q, HN_OP_mul);
    for (int i = 0; xk && mk && i < 2; i++)
        for (int j = 0; j < 2; j++) {
            const int was = f->n;
            hn_value *mean_of;
            int axis;
            in[0] = hn_in(xk, i);
            if (hn_in(xk, !i) == hn_in(mk, !j) && hn_found_mean(f, hn_in(mk, j), &mean_of, &axis) && mean_of == in[0]) {
                const hn_value *d = factor(f, hn_in(xk, !i), form, &in[1]);
                if (d && form->axis == axis && centred(f, form->x, axis) == in[0]) return true;
            }
            f->n = was;
        }
    return false;
}

static bool spread_out(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    for (int i = 0; i < (n->op == HN_OP_add ? 2 : 1); i++) {
        hn_found f;
        hn_norm_form form;
        hn_value *in[3] = { 0 }, *q = hn_in(n, !i);
        hn_found_init(&f, n);
        const hn_node *shift = n->op == HN_OP_add ? hn_found_op(&f, q, HN_OP_sub) : NULL;
        if (n->op == HN_OP_add && !shift) continue;
        if (shift) in[2] = hn_in(shift, 0), q = hn_in(shift, 1);
        if (!scaled_parts(&f, hn_in(n, i), q, &form, in) || !hn_found_is_closed(&f)) continue;
        if (!hn_tdesc_eq(&in[0]->type, &n->out[0]->type) || (in[1] && !hn_norm_takes(in[1], in[0], form.axis)) ||
            (in[2] && !hn_norm_takes(in[2], in[0], form.axis)))
            continue;
        return hn_pass_knob(c, HN_KNOB_fuse_layer_norm, n) && replace(b, &f, in[2] ? 3 : in[1] ? 2 : 1, in, &form);
    }
    return false;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    if (!n->out[0]->n_uses) return false;
    switch (n->op) {
    case HN_OP_div: return normalise(b, n, c);
    case HN_OP_mul: return normalise(b, n, c) || hn_norm_absorb(b, n, c, HN_OP_layer_norm, HN_KNOB_fuse_layer_norm);
    case HN_OP_sub: return spread_out(b, n, c);
    case HN_OP_add:
        return spread_out(b, n, c) || hn_norm_absorb(b, n, c, HN_OP_layer_norm, HN_KNOB_fuse_layer_norm);
    default: return false;
    }
}

const hn_pass_def hn_pass_fuse_layer_norm = {
    .name = "fuse_layer_norm", .summary = "recognise layer normalisations",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
