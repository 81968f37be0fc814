/* Products: matmul, gemm, convolutions, pools. */
#include "import/import_int.h"

#include <inttypes.h>
#include <string.h>

/* ---- matmul ---- */

/* NumPy's rule: a vector on the left is a row, on the right a column, and its axis goes away again. */
static hn_value *matmul_numpy(hn_im_call *c, hn_value *a, hn_value *b,
                              hn_value *(*multiply)(hn_im_call *, hn_value *, hn_value *, void *), void *user)
{
    if (!a || !b) return NULL;
    const bool row = a->type.rank == 1, column = b->type.rank == 1;
    if (a->type.rank == 0 || b->type.rank == 0) {
        HN_IM_RAISE(c, HONE_E_SHAPE, "an operand of MatMul is a scalar");
        return NULL;
    }
    if (row) a = hn_im_unsqueeze(c, a, 0);
    if (column) b = hn_im_unsqueeze(c, b, 1);
    hn_value *y = multiply(c, a, b, user);
    if (y && column) y = hn_im_squeeze(c, y, y->type.rank - 1);
    if (y && row) y = hn_im_squeeze(c, y, y->type.rank - (column ? 1 : 2));
    return y;
}

static hn_value *multiply_plain(hn_im_call *c, hn_value *a, hn_value *b, void *user)
{
    (void)user;
    return hn_im_matmul(c, a, b, false, false);
}

hn_value *hn_im_matmul_numpy(hn_im_call *c, hn_value *a, hn_value *b)
{
    return matmul_numpy(c, a, b, multiply_plain, NULL);
}

hone_status hn_im_on_matmul(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_matmul_numpy(c, c->in[0], c->in[1]));
}

/* A vector of open length is one zero point for all, or one each: the run shows which. */
static hn_value *zero_for(hn_im_call *c, hn_value *zero, hn_dim lanes)
{
    if (!zero || zero->type.rank != 1 || hn_dim_is_const(zero->type.dim[0]) || zero->type.dim[0] == lanes) return zero;
    return hn_broadcast_to(c->b, zero, 1, &lanes);
}

static hn_value *multiply_int(hn_im_call *c, hn_value *a, hn_value *b, void *user)
{
    hn_value **given = user;
    hn_value *zero[2] = { zero_for(c, given[0], a->type.dim[a->type.rank - 2]), zero_for(c, given[1], b->type.dim[b->type.rank - 1]) };
    const int n = zero[1] ? 4 : zero[0] ? 3 : 2;
    hn_node *r =
        hn_build(c->b, HN_OP_matmul_int, n, (hn_value *[]){ a, b, zero[0], zero[1] }, HN_NO_ATTRS, 1);
    return r ? r->out[0] : NULL;
}

hn_value *hn_im_matmul_int(hn_im_call *c, hn_value *a, hn_value *b, hn_value *a_zero, hn_value *b_zero)
{
    hn_value *zero[2] = { a_zero, b_zero };
    return matmul_numpy(c, a, b, multiply_int, zero);
}

hone_status hn_im_on_matmul_integer(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_matmul_int(c, c->in[0], c->in[1], hn_im_in(c, 2), hn_im_in(c, 3)));
}

hone_status hn_im_on_gemm(hn_im_call *c)
{
    const double alpha = hn_im_f(c, "alpha", 1), beta = hn_im_f(c, "beta", 1);
    const bool ta = hn_im_i(c, "transA", 0) != 0, tb = hn_im_i(c, "transB", 0) != 0;
    hn_im_ignore(c, "broadcast"); /* numpy broadcasting covers what the attribute asked for */
    for (int i = 0; i < 2; i++)
        if (c->in[i]->type.rank != 2)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "operand %d has rank %d, Gemm takes matrices", i,
                               c->in[i]->type.rank);
    hn_value *y = hn_im_scale(c, hn_im_matmul(c, c->in[0], c->in[1], ta, tb), alpha);
    if (hn_im_in(c, 2) && beta != 0) y = hn_im_binary(c, HN_OP_add, y, hn_im_scale(c, c->in[2], beta));
    return hn_im_ret(c, y);
}

/* ---- windows: what conv and pool share ---- */

typedef struct window {
    int n; /* spatial axes */
    hn_dim kernel[HN_MAX_RANK]; /* plain numbers where kernel_shape gives them; of weights, maybe symbols */
    int64_t stride[HN_MAX_RANK], dilation[HN_MAX_RANK];
    hn_dim begin[HN_MAX_RANK], end[HN_MAX_RANK];
    int auto_pad; /* 0 NOTSET, 1 SAME_UPPER, 2 SAME_LOWER, 3 VALID */
    bool ceil_mode;
} window;

enum { NOTSET, SAME_UPPER, SAME_LOWER, VALID };

static hone_status list(hn_im_call *c, const char *name, int n, int64_t dflt, int64_t lo, int64_t *ret,
                        bool *ret_given)
{
    int have;
    const int64_t *x = hn_im_is(c, name, &have);
    if (ret_given) *ret_given = x != NULL;
    if (x && have != n)
        return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"%s\" has %d entries, %d are needed", name, have, n);
    for (int i = 0; i < n; i++) {
        ret[i] = x ? x[i] : dflt;
        if (ret[i] < lo || ret[i] > INT32_MAX)
            return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"%s\" has the entry %" PRId64, name, ret[i]);
    }
    return HONE_OK;
}

/* Weights of open extents whose kernel the attribute gives: seen as having it, so that all that follows knows it. */
static hone_status fix_kernel(hn_im_call *c, hn_value **in)
{
    hn_value *w = in[1];
    hn_dim dim[HN_MAX_RANK];
    int64_t kernel[HN_MAX_RANK];
    bool open = false, given = false;
    if (!w || w->type.rank < 2) return HONE_OK;
    const int n = w->type.rank - 2;
    HN_TRY(list(c, "kernel_shape", n, 1, 1, kernel, &given));
    memcpy(dim, w->type.dim, sizeof dim);
    for (int i = 0; given && i < n; i++) {
        if (hn_dim_is_const(dim[2 + i])) continue;
        dim[2 + i] = kernel[i];
        open = true;
    }
    if (open) in[1] = hn_reshape(c->b, w, n + 2, dim);
    return c->b->status;
}

/* kernel from the weights (w) or, for pools, from kernel_shape */
static hone_status read_window(hn_im_call *c, const hn_value *x, const hn_value *w, window *ret)
{
    window v = { .n = x->type.rank - 2 };
    int64_t pads[2 * HN_MAX_RANK];
    bool given;
    if (v.n < 1)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "the input has rank %d, at least 3 is needed", x->type.rank);
    if (w && w->type.rank != x->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "input and weights have ranks %d and %d", x->type.rank,
                           w->type.rank);
    HN_TRY(list(c, "kernel_shape", v.n, 1, 1, v.kernel, &given));
    if (!w && !given) return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"kernel_shape\" is missing");
    for (int i = 0; w && i < v.n; i++) {
        const hn_dim k = w->type.dim[2 + i];
        const bool known = hn_dim_is_const(k);
        if (known && k > INT32_MAX) return HN_IM_RAISE(c, HONE_E_LIMIT, "a kernel of %" PRId64 " taps is too long", k);
        if (known && given && v.kernel[i] != k)
            return HN_IM_RAISE(c, HONE_E_MODEL, "kernel_shape says %" PRId64 ", the weights have %" PRId64,
                               v.kernel[i], k);
        v.kernel[i] = k;
    }
    HN_TRY(list(c, "strides", v.n, 1, 1, v.stride, NULL));
    HN_TRY(list(c, "dilations", v.n, 1, 1, v.dilation, NULL));
    HN_TRY(list(c, "pads", 2 * v.n, 0, INT32_MIN, pads, &given));
    v.auto_pad = hn_im_choice(c, "auto_pad", "NOTSET|SAME_UPPER|SAME_LOWER|VALID", NOTSET);
    for (int i = 0; i < v.n; i++) {
        v.begin[i] = v.auto_pad == NOTSET ? hn_im_dconst(c, pads[i]) : 0;
        v.end[i] = v.auto_pad == NOTSET ? hn_im_dconst(c, pads[v.n + i]) : 0;
    }
    *ret = v;
    return HONE_OK;
}

static hn_dim reach(hn_im_call *c, const window *w, int i)
{
    return hn_im_dadd(c, hn_im_dmul(c, hn_im_dsub(c, w->kernel[i], 1), w->dilation[i]), 1);
}

static void split_pad(hn_im_call *c, window *w, int i, hn_dim total)
{
    const hn_dim half = hn_im_ddiv(c, total, 2), rest = hn_im_dsub(c, total, half);
    w->begin[i] = w->auto_pad == SAME_LOWER ? rest : half;
    w->end[i] = w->auto_pad == SAME_LOWER ? half : rest;
}

/* SAME: as many outputs as ceil(in / stride), the pads that this takes. */
static void resolve_same(hn_im_call *c, window *w, const hn_value *x)
{
    hn_symtab *t = hn_im_syms(c);
    for (int i = 0; i < w->n; i++) {
        const hn_dim in = x->type.dim[2 + i], out = hn_dim_ceildiv(t, in, w->stride[i]);
        hn_dim total =
            hn_dim_sub(t, hn_dim_add(t, hn_dim_mul(t, hn_dim_sub(t, out, 1), w->stride[i]), reach(c, w, i)), in);
        if (!hn_im_dim_nonneg(c, total)) total = hn_dim_max(t, total, 0);
        split_pad(c, w, i, total);
    }
}

#define WINDOW_ATTRS(w)                                                                                      \
    HN_A_IS("stride", (w).n, (w).stride), HN_A_IS("dilation", (w).n, (w).dilation),                          \
        HN_A_DIMS("pad_begin", (w).n, (w).begin), HN_A_DIMS("pad_end", (w).n, (w).end)

hn_value *hn_im_conv_with(hn_im_call *c, hn_op op, int n_in, hn_value **in)
{
    window w;
    const int64_t group = hn_im_i(c, "group", 1);
    if (!in[0] || !in[1]) return NULL;
    if (fix_kernel(c, in) != HONE_OK) return NULL;
    if (!in[1] || read_window(c, in[0], in[1], &w) != HONE_OK) return NULL;
    if (w.auto_pad == SAME_UPPER || w.auto_pad == SAME_LOWER) resolve_same(c, &w, in[0]);
    hn_node *n = hn_build(c->b, op, n_in, in, HN_ATTRS_ARG(WINDOW_ATTRS(w), HN_A_I("group", group)), 1);
    return n ? n->out[0] : NULL;
}

hone_status hn_im_on_conv(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_conv_with(c, HN_OP_conv, c->n_in, c->in));
}

hone_status hn_im_on_conv_integer(hn_im_call *c)
{
    return hn_im_ret(c, hn_im_conv_with(c, HN_OP_conv_int, c->n_in, c->in));
}

hone_status hn_im_on_deform_conv(hn_im_call *c)
{
    window w;
    const int64_t group = hn_im_i(c, "group", 1), offset_group = hn_im_i(c, "offset_group", 1);
    HN_TRY(fix_kernel(c, c->in));
    HN_TRY(read_window(c, c->in[0], c->in[1], &w));
    return hn_im_same(
        c, HN_OP_deform_conv,
        HN_ATTRS_ARG(WINDOW_ATTRS(w), HN_A_I("group", group), HN_A_I("offset_group", offset_group)));
}

/* Pads of a transposed convolution crop its full result; what the wanted extent lacks is added at the end. */
static hone_status transpose_pads(hn_im_call *c, window *w, const hn_value *x, int64_t *out_pad)
{
    int64_t shape[HN_MAX_RANK];
    bool given;
    HN_TRY(list(c, "output_shape", w->n, 0, 0, shape, &given));
    for (int i = 0; i < w->n; i++) {
        const hn_dim in = x->type.dim[2 + i];
        hn_dim total;
        int64_t known, lack = given ? shape[i] : HN_MAX(w->stride[i] - 1 - out_pad[i], 0); /* at most, the kernel being open */
        if (!given && (w->auto_pad == NOTSET || w->auto_pad == VALID)) continue;
        if (given) {
            hn_dim full =
                hn_im_dadd(c, hn_im_dmul(c, hn_im_dsub(c, in, 1), w->stride[i]), hn_im_dadd(c, reach(c, w, i), out_pad[i]));
            total = hn_im_dsub(c, full, shape[i]);
        } else {
            total = hn_im_dsub(c, hn_im_dadd(c, reach(c, w, i), out_pad[i]), w->stride[i]); /* out = in * stride */
        }
        if (hn_dim_known(hn_im_syms(c), total, &known)) {
            out_pad[i] += known < 0 ? -known : 0;
            total = known < 0 ? 0 : total;
            lack = 0;
        } else if (hn_im_dim_nonneg(c, total)) {
            lack = 0;
        }
        split_pad(c, w, i, lack ? hn_dim_max(hn_im_syms(c), total, 0) : total);
        /* With explicit extents the standard gives the larger half to the front unless SAME_UPPER asks
         * otherwise. */
        if (given && w->auto_pad != SAME_UPPER && w->auto_pad != SAME_LOWER) {
            const hn_dim half = w->begin[i];
            w->begin[i] = w->end[i];
            w->end[i] = half;
        }
        if (lack > 0) { /* as much more at the end as may lack, of which the pads take away what does not */
            out_pad[i] += lack;
            w->end[i] = hn_im_dsub(c, hn_im_dadd(c, total, lack), w->begin[i]);
        }
    }
    return HONE_OK;
}

hone_status hn_im_on_conv_transpose(hn_im_call *c)
{
    window w;
    int64_t out_pad[HN_MAX_RANK];
    const int64_t group = hn_im_i(c, "group", 1);
    HN_TRY(fix_kernel(c, c->in));
    HN_TRY(read_window(c, c->in[0], c->in[1], &w));
    HN_TRY(list(c, "output_padding", w.n, 0, 0, out_pad, NULL));
    HN_TRY(transpose_pads(c, &w, c->in[0], out_pad));
    return hn_im_same(
        c, HN_OP_conv_transpose,
        HN_ATTRS_ARG(WINDOW_ATTRS(w), HN_A_I("group", group), HN_A_IS("out_pad", w.n, out_pad)));
}

/* ---- pools ---- */

/* Output extents. With ceil_mode a last window that starts in the end padding is dropped. */
static void pool_extents(hn_im_call *c, window *w, const hn_value *x, hn_dim *ret)
{
    hn_symtab *t = hn_im_syms(c);
    for (int i = 0; i < w->n; i++) {
        const hn_dim in = x->type.dim[2 + i];
        const hn_dim room = hn_dim_sub(t, hn_dim_add(t, in, hn_dim_add(t, w->begin[i], w->end[i])),
                                       reach(c, w, i));
        ret[i] = hn_dim_add(
            t, w->ceil_mode ? hn_dim_ceildiv(t, room, w->stride[i]) : hn_dim_floordiv(t, room, w->stride[i]),
            1);
        if (!w->ceil_mode) continue;
        const hn_dim last = hn_dim_mul(t, hn_dim_sub(t, ret[i], 1), w->stride[i]);
        const hn_dim inside = hn_dim_lt(t, last, hn_dim_add(t, in, w->begin[i]));
        ret[i] = hn_dim_sub(t, ret[i], hn_dim_sub(t, 1, inside));
    }
}

hn_value *hn_im_pool_with(hn_im_call *c, hn_op op, hn_value *x, int n_out, hn_value **ret_index)
{
    window w;
    hn_dim dim[HN_MAX_RANK];
    if (!x || read_window(c, x, NULL, &w) != HONE_OK) return NULL;
    /* VALID and SAME fix the extents by themselves; rounding up has nothing left to decide. */
    w.ceil_mode = hn_im_i(c, "ceil_mode", 0) != 0 && w.auto_pad == NOTSET;
    if (w.auto_pad == SAME_UPPER || w.auto_pad == SAME_LOWER) resolve_same(c, &w, x);
    pool_extents(c, &w, x, dim);
    const hn_attr_set extra =
        op == HN_OP_avg_pool
            ? (hn_attr_set)HN_A_I("count_include_pad", hn_im_i(c, "count_include_pad", 0) != 0)
        : op == HN_OP_lp_pool ? (hn_attr_set)HN_A_I("p", hn_im_i(c, "p", 2))
                              : (hn_attr_set)HN_A_I("column_major", hn_im_i(c, "storage_order", 0) != 0);
    hn_node *n = hn_build(c->b, op, 1, &x,
                          HN_ATTRS_ARG(HN_A_IS("kernel", w.n, w.kernel), WINDOW_ATTRS(w),
                                       HN_A_I("ceil_mode", w.ceil_mode), HN_A_DIMS("dim", w.n, dim), extra),
                          n_out);
    if (n && ret_index && n_out > 1) *ret_index = n->out[1];
    return n ? n->out[0] : NULL;
}

hone_status hn_im_on_pool(hn_im_call *c)
{
    const hn_op op = (hn_op)c->entry->arg;
    if (op == HN_OP_lp_pool && c->opset < 2) return hn_im_refuse(c, "LpPool before opset 2 is not supported");
    hn_value *index = NULL;
    c->out[0] = hn_im_pool_with(c, op, c->in[0], hn_im_wants(c, 1) ? 2 : 1, &index);
    if (c->n_out > 1) c->out[1] = index;
    return c->b->status;
}

hone_status hn_im_on_max_unpool(hn_im_call *c)
{
    window w;
    hn_value *x = c->in[0];
    hn_dim dim[HN_MAX_RANK] = { x->type.dim[0], x->type.dim[1] };
    int n;
    HN_TRY(read_window(c, x, NULL, &w));
    for (int i = 0; i < w.n;
         i++) { /* the extents that pooling with these attributes would have started from */
        const hn_dim full =
            hn_im_dadd(c, hn_im_dmul(c, hn_im_dsub(c, x->type.dim[2 + i], 1), w.stride[i]), w.kernel[i]);
        dim[2 + i] = hn_im_dsub(c, full, hn_im_dadd(c, w.begin[i], w.end[i]));
    }
    hn_value *y =
        hn_b2(c->b, HN_OP_max_unpool, x, c->in[1], HN_ATTRS_ARG(HN_A_DIMS("dim", x->type.rank, dim)));
    if (!hn_im_in(c, 2)) return hn_im_ret(c, y);
    /* Indices count in the extents above; a larger output_shape adds zeros at the end. */
    hn_dim want[HN_MAX_RANK], none[HN_MAX_RANK] = { 0 }, more[HN_MAX_RANK];
    HN_TRY(hn_im_dims(c, c->in[2], want, HN_MAX_RANK, &n));
    if (n != x->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "output_shape has %d entries for rank %d", n, x->type.rank);
    for (int i = 0; i < n; i++)
        more[i] = hn_im_dsub(c, want[i], dim[i]);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_pad, y,
                              HN_ATTRS_ARG(HN_A_DIMS("before", n, none), HN_A_DIMS("after", n, more))));
}
