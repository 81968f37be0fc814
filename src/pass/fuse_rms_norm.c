/**
 * Make one op of a spelled-out root-mean-square normalisation.
 *
 *     s = mean(x*x) + eps   y = x / sqrt(s)                 =>   y = rms_norm(x) {eps}
 *     y = rms_norm(x)       z = w * y                       =>   z = rms_norm(x, w)
 *
 * The mean is over the last axes; reciprocal, 1/sqrt, powers of -1/2 and squares by multiplication are the same thing. Halves
 * are computed in f32 from then on, so what overflowed in f16 no longer does.
 */
#include "pass/found.h"

static bool normalise(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    hn_found f;
    hn_norm_form form;
    hn_found_init(&f, n);
    if (!hn_found_normalised(&f, n, &form) || !hn_found_is_closed(&f)) return false;
    if (!hn_tdesc_eq(&form.x->type, &n->out[0]->type) || !hn_pass_knob(c, HN_KNOB_fuse_rms_norm, n)) return false;
    hn_found_origins(&f, b);
    hn_value *y = hn_b1(b, HN_OP_rms_norm, form.x, HN_ATTRS_ARG(HN_A_I("axis", form.axis), HN_A_F("eps", form.eps)));
    if (y) hn_replace(b, n->out[0], y);
    return y != NULL;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    if ((n->op != HN_OP_mul && n->op != HN_OP_div) || !n->out[0]->n_uses) return false;
    return normalise(b, n, c) || hn_norm_absorb(b, n, c, HN_OP_rms_norm, HN_KNOB_fuse_rms_norm);
}

const hn_pass_def hn_pass_fuse_rms_norm = {
    .name = "fuse_rms_norm", .summary = "recognise root-mean-square normalisations",
    .keeps = HN_KEEP_SHAPES, .exact = false, .visit = visit,
};
