/* image_size, image_decode: encoded images to pixels, by the libraries behind src/image. Two ops, so that the size, which only the
 * run shows, is known when room for the pixels is made. */
#include "image/image.h"
#include "op/op_int.h"

static hone_status check_bytes(const hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, 0, HN_U8, dg));
    return hn_op_want_rank(c, 0, 1, dg);
}

/* The working form of bytes is int64. Release with free(). */
static hone_status bytes_of(const hn_view *x, uint8_t **ret, hn_diag *dg)
{
    void *p;
    HN_TRY(hn_op_scratch(x->numel + 1, 1, &p, dg));
    *ret = p;
    for (int64_t i = 0; i < x->numel; i++)
        (*ret)[i] = (uint8_t)x->i[i];
    return HONE_OK;
}

/* ---- image_size(bytes) -> [height, width] ---- */
static hone_status infer_size(hn_call *c, hn_diag *dg)
{
    HN_TRY(check_bytes(c, dg));
    c->out[0] = (hn_tdesc){ .dtype = HN_I64, .rank = 1, .dim = { 2 } };
    return HONE_OK;
}

static hone_status ref_size(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    uint8_t *bytes;
    (void)c;
    HN_TRY(bytes_of(&in[0], &bytes, dg));
    const hone_status s = hn_image_size(bytes, (size_t)in[0].numel, &out[0].i[0], &out[0].i[1], dg);
    free(bytes);
    return s;
}

const hn_op_def hn_op_image_size = {
    HN_OP_ID(image_size, 1, 1, 1, 1),
    .doc = "height and width of an encoded image",
    .traits = HN_TRAIT_PURE | HN_TRAIT_HOST,
    .infer = infer_size,
    .ref = ref_size,
    .work = hn_op_work_move,
};

/* ---- image_decode(bytes) {order, dim} -> pixels ---- */
enum { ORDER, DIM };

static hone_status infer_decode(hn_call *c, hn_diag *dg)
{
    HN_TRY(check_bytes(c, dg));
    HN_TRY(hn_op_want_attr(c, ORDER, HN_IMAGE_RGB, HN_IMAGE_GRAY, dg));
    HN_TRY(hn_op_want_list(c, DIM, 3, dg));
    HN_TRY(hn_op_dims_attr(c, DIM, &c->out[0], dg));
    if (c->out[0].dim[2] != hn_image_channels((hn_image_order)c->attr[ORDER].i))
        return HN_RAISE(dg, HONE_E_SHAPE, "pixels of this order have %d channels",
                        hn_image_channels((hn_image_order)c->attr[ORDER].i));
    c->out[0].dtype = HN_U8;
    return HONE_OK;
}

static hone_status ref_decode(const hn_call *c, const hn_view *in, hn_view *out, hn_diag *dg)
{
    uint8_t *bytes;
    void *pixels = NULL;
    HN_TRY(bytes_of(&in[0], &bytes, dg));
    hone_status s = hn_op_scratch(out[0].numel + 1, 1, &pixels, dg);
    if (s == HONE_OK)
        s = hn_image_decode(bytes, (size_t)in[0].numel, (hn_image_order)c->attr[ORDER].i, out[0].type.dim[0], out[0].type.dim[1],
                            pixels, dg);
    for (int64_t i = 0; s == HONE_OK && i < out[0].numel; i++)
        out[0].i[i] = ((uint8_t *)pixels)[i];
    free(pixels);
    free(bytes);
    return s;
}

const hn_op_def hn_op_image_decode = {
    HN_OP_ID(image_decode, 1, 1, 1, 1),
    .doc = "pixels of an encoded image",
    .traits = HN_TRAIT_PURE | HN_TRAIT_HOST,
    HN_OP_ATTRS(HN_S_ENUM("order", HN_IMAGE_RGB, "rgb|bgr|gray"), HN_S_DIMS_REQ("dim")),
    .infer = infer_decode,
    .ref = ref_decode,
    .work = hn_op_work_move,
};
