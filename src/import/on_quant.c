/* Quantisation: linear, dynamic, and the ops that compute on quantised operands. */
#include "import/import_int.h"

#include <inttypes.h>

hn_value *hn_im_quantize_with(hn_im_call *c, hn_value *x, hn_value *scale, hn_value *zero, int64_t axis,
                              hn_dtype to)
{
    if (zero) to = zero->type.dtype;
    hn_node *n = hn_build(c->b, HN_OP_quantize, zero ? 3 : 2, (hn_value *[]){ x, scale, zero },
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_T("to", to)), 1);
    return n ? n->out[0] : NULL;
}

hn_value *hn_im_dequantize_with(hn_im_call *c, hn_value *x, hn_value *scale, hn_value *zero, int64_t axis,
                                int64_t block)
{
    hn_node *n = hn_build(c->b, HN_OP_dequantize, zero ? 3 : 2, (hn_value *[]){ x, scale, zero },
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("block", block)), 1);
    return n ? n->out[0] : NULL;
}

/* The axis counts only for scales that lie along it. */
static hone_status scale_axis(hn_im_call *c, int64_t *ret)
{
    int axis = 0;
    const int64_t at = hn_im_i(c, "axis", 1);
    const hn_value *scale = c->in[1];
    *ret = 0;
    if (!scale || scale->type.rank == 0 || (scale->type.rank == 1 && scale->type.dim[0] == 1)) return HONE_OK;
    HN_TRY(hn_im_axis(c, at, c->in[0]->type.rank, &axis));
    *ret = axis;
    return HONE_OK;
}

hone_status hn_im_on_quantize(hn_im_call *c)
{
    int64_t axis;
    hn_value *x = c->in[0], *zero = hn_im_in(c, 2);
    const int64_t block = hn_im_i(c, "block_size", 0), saturate = hn_im_i(c, "saturate", 1);
    const int64_t precision = hn_im_i(c, "precision", 0);
    HN_TRY(scale_axis(c, &axis));
    const hn_dtype to = hn_im_dtype(c, "output_dtype", zero ? zero->type.dtype : HN_U8);
    if (zero && zero->type.dtype != to)
        return HN_IM_RAISE(c, HONE_E_MODEL, "output_dtype is %s, the zero point %s", hn_dtype_name(to),
                           hn_dtype_name(zero->type.dtype));
    if (precision != 0 && precision != 1)
        return hn_im_refuse(c, "a precision other than float is not supported");
    if (!hn_dtype_is_float(x->type.dtype)) x = hn_cast(c->b, x, c->in[1]->type.dtype);
    hn_node *n = hn_build(c->b, HN_OP_quantize, zero ? 3 : 2, (hn_value *[]){ x, c->in[1], zero },
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("block", block), HN_A_T("to", to),
                                       HN_A_I("saturate", saturate != 0)),
                          1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

hone_status hn_im_on_dequantize(hn_im_call *c)
{
    int64_t axis;
    const int64_t block = hn_im_i(c, "block_size", 0);
    HN_TRY(scale_axis(c, &axis));
    const hn_dtype to = hn_im_dtype(c, "output_dtype", c->in[1]->type.dtype);
    hn_node *n = hn_build(c->b, HN_OP_dequantize, c->n_in, c->in,
                          HN_ATTRS_ARG(HN_A_I("axis", axis), HN_A_I("block", block), HN_A_T("to", to)), 1);
    return hn_im_ret(c, n ? n->out[0] : NULL);
}

hone_status hn_im_on_dynamic_quantize(hn_im_call *c)
{
    hn_node *n = hn_build(c->b, HN_OP_dynamic_quantize, 1, c->in, HN_NO_ATTRS, 3);
    for (int i = 0; n && i < c->n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

static bool is_single(const hn_value *v)
{
    return v && (v->type.rank == 0 || hn_tdesc_numel_static(&v->type) == 1);
}

static hn_value *scalar(hn_im_call *c, hn_value *v)
{
    return v && is_single(v) && v->type.rank ? hn_reshape(c->b, v, 0, NULL) : v;
}

/* acc * (sa sb), where sa may be one a row and sb one a column: what an int32 product stands for. */
hn_value *hn_im_scale_acc(hn_im_call *c, hn_value *acc, hn_value *sa, hn_value *sb)
{
    if (!acc || !sa || !sb) return NULL;
    const int rank = acc->type.rank;
    sa = scalar(c, sa);
    sb = scalar(c, sb);
    if (sa && sa->type.rank == 1 && rank > 1) sa = hn_im_unsqueeze(c, sa, 1);
    hn_value *s = hn_im_binary(c, HN_OP_mul, sa, sb);
    if (!s) return NULL;
    if (s->type.rank <= 1) return hn_im_dequantize_with(c, acc, s, NULL, s->type.rank ? rank - 1 : 0, 0);
    return hn_im_binary(c, HN_OP_mul, hn_cast(c->b, acc, s->type.dtype), s);
}

hone_status hn_im_on_qlinear_matmul(hn_im_call *c)
{
    hn_value **in = c->in;
    hn_value *acc = hn_im_matmul_int(c, in[0], in[3], scalar(c, in[2]), scalar(c, in[5]));
    hn_value *y = hn_im_scale_acc(c, acc, in[1], in[4]);
    hn_value *ys = scalar(c, in[6]);
    if (!y || !ys) return c->b->status;
    /* The result's scale lies along its rows when it is not one number. */
    if (ys->type.rank == 1 && y->type.rank > 1 && ys->type.dim[0] != 1)
        return hn_im_ret(c, hn_im_quantize_with(c, y, ys, in[7], y->type.rank - 2, HN_U8));
    return hn_im_ret(c, hn_im_quantize_with(c, y, ys, scalar(c, in[7]), 0, HN_U8));
}

hone_status hn_im_on_qlinear_conv(hn_im_call *c)
{
    hn_value **in = c->in, *bias = hn_im_in(c, 8);
    hn_value *acc = hn_im_conv_with(c, HN_OP_conv_int, 4,
                                    (hn_value *[]){ in[0], in[3], scalar(c, in[2]), scalar(c, in[5]) });
    if (acc && bias) acc = hn_im_binary(c, HN_OP_add, acc, hn_im_along(c, bias, acc->type.rank, 1));
    hn_value *s = hn_im_binary(c, HN_OP_mul, scalar(c, in[1]), scalar(c, in[4]));
    hn_value *y = s ? hn_im_dequantize_with(c, acc, s, NULL, s->type.rank ? 1 : 0, 0) : NULL;
    return hn_im_ret(c, y ? hn_im_quantize_with(c, y, scalar(c, in[6]), scalar(c, in[7]), 0, HN_U8) : NULL);
}
