/**
 * Let a convolution or maximum pooling do the padding before it.
 *
 *     y = conv(pad(x, 1 each side with 0), w)      =>   y = conv(x, w) {pads grown by 1}
 *     y = max_pool(pad(x, .. with -inf))           =>   y = max_pool(x) {pads grown}
 *
 * Fires on spatial axes alone, for pads that crop nothing and hold what the reader's own padding stands for.
 */
#include "pass/pass_int.h"

#include <math.h>

/* The value that n's own padding stands for. */
static bool own_padding(const hn_node *n, double *ret)
{
    if (n->op == HN_OP_conv) *ret = 0;
    else if (n->op == HN_OP_max_pool && n->n_out == 1 && hn_dtype_is_float(n->out[0]->type.dtype)) *ret = -INFINITY;
    else return false;
    return true;
}

static bool pads_with(const hn_node *p, double want)
{
    double v = 0;
    if (hn_attr_i(p, "mode") != 0) return false; /* constant */
    return (!hn_in(p, 1) || hn_const_scalar(hn_in(p, 1), &v)) && v == want;
}

/* Pads of spatial axis a (0 for batch and channels), where none may crop. */
static bool grows_only(hn_symtab *t, const hn_dim *pad, int rank)
{
    for (int i = 0; i < rank; i++) {
        int64_t lo, hi;
        hn_dim_bounds(t, pad[i], &lo, &hi);
        if (lo < 0 || (i < 2 && pad[i] != 0)) return false;
    }
    return true;
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    double want;
    hn_value *in[3];
    hn_dim begin[HN_MAX_RANK], end[HN_MAX_RANK];
    int rank, n_spatial;
    if (!own_padding(n, &want) || !n->out[0]->n_uses || n->n_in > 3) return false;
    const hn_node *p = hn_producer(hn_in(n, 0));
    if (!p || p->op != HN_OP_pad || p->graph != n->graph || !pads_with(p, want)) return false;
    const hn_dim *before = hn_attr_is(p, "before", &rank), *after = hn_attr_is(p, "after", &rank);
    if (!grows_only(b->g->syms, before, rank) || !grows_only(b->g->syms, after, rank)) return false;
    if (!hn_pass_knob(c, HN_KNOB_pass_absorb_pad, n)) return false;
    const hn_dim *b0 = hn_attr_is(n, "pad_begin", &n_spatial), *e0 = hn_attr_is(n, "pad_end", &n_spatial);
    for (int i = 0; i < rank - 2; i++) {
        begin[i] = hn_dim_add(b->g->syms, n_spatial ? b0[i] : 0, before[2 + i]);
        end[i] = hn_dim_add(b->g->syms, n_spatial ? e0[i] : 0, after[2 + i]);
    }
    for (int i = 0; i < n->n_in; i++) in[i] = i ? hn_in(n, i) : hn_in(p, 0);
    hn_builder_origin_of(b, p);
    const hn_node *y = hn_build_changed(b, n, n->n_in, in, HN_ATTRS_ARG(HN_A_DIMS("pad_begin", rank - 2, begin),
                                                                         HN_A_DIMS("pad_end", rank - 2, end)));
    if (y) hn_replace(b, n->out[0], y->out[0]);
    return y != NULL;
}

const hn_pass_def hn_pass_absorb_pad = {
    .name = "absorb_pad", .summary = "let convolutions and maximum pooling do the padding before them",
    .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
