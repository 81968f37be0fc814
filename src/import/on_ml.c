/* ai.onnx.ml: the few ops that are tensor arithmetic. */
#include "import/import_int.h"

hone_status hn_im_on_ml_extract(hn_im_call *c)
{
    hn_value *x = c->in[0], *at = c->in[1];
    if (at && at->type.rank != 1)
        at = hn_reshape(c->b, at, 1, (hn_dim[]){ hn_tdesc_numel(hn_im_syms(c), &at->type) });
    if (x && x->type.rank == 1) x = hn_im_unsqueeze(c, x, 0);
    return hn_im_ret(c, hn_im_gather(c, x, at, x ? x->type.rank - 1 : 0));
}

hone_status hn_im_on_ml_binarizer(hn_im_call *c)
{
    hn_value *x = c->in[0];
    hn_value *above = hn_im_binary(c, HN_OP_gt, x, hn_im_like_f(c, x, hn_im_f(c, "threshold", 0)));
    return hn_im_ret(c, hn_cast(c->b, above, x->type.dtype));
}

hone_status hn_im_on_ml_scaler(hn_im_call *c)
{
    int n_offset, n_scale;
    const double *offset = hn_im_fs(c, "offset", &n_offset), *scale = hn_im_fs(c, "scale", &n_scale);
    hn_value *x = hn_cast(c->b, c->in[0], HN_F32);
    if (n_offset)
        x = hn_im_binary(c, HN_OP_sub, x, hn_const_fs(c->b, HN_F32, 1, (int64_t[]){ n_offset }, offset));
    if (n_scale)
        x = hn_im_binary(c, HN_OP_mul, x, hn_const_fs(c->b, HN_F32, 1, (int64_t[]){ n_scale }, scale));
    return hn_im_ret(c, x);
}
