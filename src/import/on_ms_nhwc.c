/* com.microsoft: images with channels last. Transposed to channels first and back; passes take the transposes out again. */
#include "import/import_int.h"

static hn_value *moved(hn_im_call *c, hn_value *x, bool to_last)
{
    int64_t perm[HN_MAX_RANK];
    if (!x || x->type.rank < 3) return x;
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++)
        perm[i] = i == 0 ? 0 : to_last ? (i == rank - 1 ? 1 : i + 1) : (i == 1 ? rank - 1 : i - 1);
    return hn_transpose(c->b, x, perm);
}

hn_value *hn_im_channels_first(hn_im_call *c, hn_value *x)
{
    return moved(c, x, false);
}

hn_value *hn_im_channels_last(hn_im_call *c, hn_value *x)
{
    return moved(c, x, true);
}

/* Run a handler of channels first over image inputs 0 and, where there is one, `other`. */
static hone_status around(hn_im_call *c, hone_status (*handler)(hn_im_call *), int other)
{
    c->in[0] = hn_im_channels_first(c, c->in[0]);
    if (other > 0 && hn_im_in(c, other)) c->in[other] = hn_im_channels_first(c, c->in[other]);
    HN_TRY(c->b->status);
    HN_TRY(handler(c));
    c->out[0] = hn_im_channels_last(c, c->out[0]);
    return c->b->status;
}

hone_status hn_im_on_ms_nhwc_conv(hn_im_call *c)
{
    return around(c, hn_im_on_ms_fused_conv, 3);
}

hone_status hn_im_on_ms_nhwc_max_pool(hn_im_call *c)
{
    hn_value *x = hn_im_channels_first(c, c->in[0]);
    return hn_im_ret(c, hn_im_channels_last(c, hn_im_pool_with(c, HN_OP_max_pool, x, 1, NULL)));
}

hone_status hn_im_on_ms_qlinear_conv(hn_im_call *c)
{
    return hn_im_i(c, "channels_last", 0) ? around(c, hn_im_on_qlinear_conv, 0) : hn_im_on_qlinear_conv(c);
}
