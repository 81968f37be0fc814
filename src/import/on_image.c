/* Images: resize in all its versions, sampling, regions of interest, block moves. */
#include "import/import_int.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- resize ---- */

typedef struct resize_args {
    int mode; /* nearest|linear|cubic */
    int coord, nearest;
    double cubic_a, extrapolation;
    bool exclude_outside, antialias;
    double scale[HN_MAX_RANK], roi[2 * HN_MAX_RANK]; /* per axis; roi starts, then ends */
    hn_dim dim[HN_MAX_RANK];
} resize_args;

enum {
    HALF_PIXEL,
    PYTORCH_HALF_PIXEL,
    ALIGN_CORNERS,
    ASYMMETRIC,
    CROP_AND_RESIZE,
    HALF_PIXEL_SYMMETRIC,
    TF_HALF_PIXEL_FOR_NN
};

static hone_status resize(hn_im_call *c, resize_args *r)
{
    hn_value *x = c->in[0];
    const int rank = x->type.rank;
    const hn_attr_set attrs[] = { HN_A_DIMS("dim", rank, r->dim),
                                  HN_A_FS("scale", rank, r->scale),
                                  HN_A_FS("roi", r->coord == CROP_AND_RESIZE ? 2 * rank : 0, r->roi),
                                  HN_A_I("mode", r->mode),
                                  HN_A_I("coord", r->coord),
                                  HN_A_I("nearest", r->nearest),
                                  HN_A_F("cubic_a", r->cubic_a),
                                  HN_A_I("exclude_outside", r->exclude_outside),
                                  HN_A_F("extrapolation", r->extrapolation),
                                  HN_A_I("antialias", r->antialias),
                                  { .name = NULL } };
    return hn_im_ret(c, hn_b1(c->b, HN_OP_resize, x, attrs));
}

/* floor(d * scale): an expression for whole numbers and small fractions, else computed while running. */
static hone_status scaled(hn_im_call *c, hn_dim d, double scale, double crop, hn_dim *ret)
{
    if (!(scale > 0) || !isfinite(scale)) return HN_IM_RAISE(c, HONE_E_MODEL, "a scale is %g", scale);
    if (hn_dim_is_const(d)) {
        const double n = floor((double)d * crop * scale);
        if (!(n >= 0 && n <= (double)INT32_MAX)) return HN_IM_RAISE(c, HONE_E_LIMIT, "the resized extent is %g", n);
        *ret = (int64_t)n;
        return HONE_OK;
    }
    if (crop == 1 && scale == floor(scale) && scale < 1e6) {
        *ret = hn_im_dmul(c, d, (int64_t)scale);
        return HONE_OK;
    }
    for (int64_t q = 2; crop == 1 && q <= 64; q++) { /* p / q in float32 or float64 */
        const double p = round(scale * (double)q);
        if (p < 1 || p > (double)INT32_MAX || fabs(p / (double)q - scale) > 1e-7 * scale) continue;
        *ret = hn_im_ddiv(c, hn_im_dmul(c, d, (int64_t)p), q);
        return HONE_OK;
    }
    hn_value *n = hn_im_scale(c, hn_cast(c->b, hn_const_dims(c->b, 1, &d), HN_F64), crop * scale);
    n = hn_im_unary(c, HN_OP_floor, n);
    n = n ? hn_cast(c->b, n, HN_I64) : NULL;
    if (!n) return c->b->status;
    *ret = hn_im_dim(c, n, 0);
    return c->dg->code;
}

static hone_status by_scales(hn_im_call *c, const double *scale, int n, const int64_t *axes, resize_args *r)
{
    hn_value *x = c->in[0];
    for (int i = 0; i < x->type.rank; i++) {
        r->scale[i] = 1;
        r->dim[i] = x->type.dim[i];
    }
    for (int i = 0; i < n; i++) {
        const int a = (int)axes[i], rank = x->type.rank;
        const double crop = r->coord == CROP_AND_RESIZE ? r->roi[rank + a] - r->roi[a] : 1;
        r->scale[a] = scale[i];
        HN_TRY(scaled(c, x->type.dim[a], scale[i], crop, &r->dim[a]));
    }
    return HONE_OK;
}

/* keep_aspect_ratio_policy: one scale for all the axes, the least or the greatest that the sizes ask for. */
static hone_status by_sizes(hn_im_call *c, const hn_dim *size, int n, const int64_t *axes, int policy,
                            resize_args *r)
{
    hn_value *x = c->in[0];
    for (int i = 0; i < x->type.rank; i++) {
        r->scale[i] = 0;
        r->dim[i] = x->type.dim[i];
    }
    double one = 0;
    for (int i = 0; i < n; i++) {
        const hn_dim d = x->type.dim[axes[i]];
        r->dim[axes[i]] = size[i];
        if (policy == 0) continue;
        if (!hn_dim_is_const(d) || !hn_dim_is_const(size[i]) || d == 0)
            return hn_im_refuse(c, "keeping the aspect ratio needs extents known before the run");
        const double s = (double)size[i] / (double)d;
        one = i == 0 ? s : policy == 1 ? fmin(one, s) : fmax(one, s);
    }
    for (int i = 0; policy && i < n; i++) {
        const int a = (int)axes[i];
        r->scale[a] = one;
        r->dim[a] = hn_f64_to_i64(floor(one * (double)x->type.dim[a] + 0.5));
    }
    return HONE_OK;
}

static hone_status read_roi(hn_im_call *c, hn_value *roi, const int64_t *axes, int n, resize_args *r)
{
    const double *v;
    int have;
    const int rank = c->in[0]->type.rank;
    for (int i = 0; i < rank; i++) {
        r->roi[i] = 0;
        r->roi[rank + i] = 1;
    }
    if (r->coord != CROP_AND_RESIZE) return HONE_OK;
    if (!roi || !hn_im_floats(c, roi, &v, &have))
        return hn_im_refuse(c, "tf_crop_and_resize needs a constant roi");
    if (have != 2 * n) return HN_IM_RAISE(c, HONE_E_SHAPE, "roi has %d entries for %d axes", have, n);
    for (int i = 0; i < n; i++) {
        r->roi[axes[i]] = v[i];
        r->roi[rank + axes[i]] = v[n + i];
    }
    return HONE_OK;
}

static bool is_empty(const hn_value *v)
{
    return !v || hn_tdesc_numel_static(&v->type) == 0;
}

/* Scales that are computed from shapes: constants by now, or a quotient that sizes say better. */
static hone_status read_scales(hn_im_call *c, hn_value *v, const double **ret, int *ret_n)
{
    if (hn_im_floats(c, v, ret, ret_n)) return HONE_OK;
    hn_hint(c->dg, "fix the input's extents, or export with sizes");
    return hn_im_refuse(c, "scales that only a run shows are not supported");
}

/*
 * Opset 11 alone: x = (i + 0.5) / scale, half a pixel above half_pixel's z. round_prefer_floor(z + 0.5) =
 * ceil(z) and floor(z + 0.5) = round_prefer_ceil(z); the other two roundings have no counterpart.
 */
static hone_status tf_half_pixel(hn_im_call *c, resize_args *r)
{
    if (r->mode != 0 || (r->nearest != 0 && r->nearest != 2))
        return hn_im_refuse(
            c, "tf_half_pixel_for_nn is supported for nearest with round_prefer_floor or floor alone");
    r->coord = HALF_PIXEL;
    r->nearest = r->nearest == 0 ? 3 : 1;
    return HONE_OK;
}

hone_status hn_im_on_resize(hn_im_call *c)
{
    hn_value *scales = hn_im_in(c, 2), *sizes = hn_im_in(c, 3);
    resize_args r = { 0 };
    int64_t axes[HN_MAX_RANK];
    hn_dim size[HN_MAX_RANK];
    const double *scale;
    int n, have;
    bool given;
    r.mode = hn_im_choice(c, "mode", "nearest|linear|cubic", 0);
    r.coord = hn_im_choice(
        c, "coordinate_transformation_mode",
        "half_pixel|pytorch_half_pixel|align_corners|asymmetric|tf_crop_and_resize|half_pixel_symmetric|"
        "tf_half_pixel_for_nn",
        0);
    r.nearest = hn_im_choice(c, "nearest_mode", "round_prefer_floor|round_prefer_ceil|floor|ceil", 0);
    r.cubic_a = hn_im_f(c, "cubic_coeff_a", -0.75);
    r.exclude_outside = hn_im_i(c, "exclude_outside", 0) != 0;
    r.extrapolation = hn_im_f(c, "extrapolation_value", 0);
    r.antialias = hn_im_i(c, "antialias", 0) != 0;
    const int policy = hn_im_choice(c, "keep_aspect_ratio_policy", "stretch|not_larger|not_smaller", 0);
    HN_TRY(c->attr_dg.code);
    if (r.coord == TF_HALF_PIXEL_FOR_NN) HN_TRY(tf_half_pixel(c, &r));
    HN_TRY(hn_im_axes(c, "axes", -1, c->in[0]->type.rank, false, axes, &n, &given));
    if (!given)
        for (n = 0; n < c->in[0]->type.rank; n++)
            axes[n] = n;
    HN_TRY(read_roi(c, hn_im_in(c, 1), axes, n, &r));
    if (!is_empty(scales)) {
        HN_TRY(read_scales(c, scales, &scale, &have));
        if (have != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d scales are given for %d axes", have, n);
        HN_TRY(by_scales(c, scale, n, axes, &r));
    } else if (!is_empty(sizes)) {
        HN_TRY(hn_im_dims(c, sizes, size, HN_MAX_RANK, &have));
        if (have != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d sizes are given for %d axes", have, n);
        HN_TRY(by_sizes(c, size, n, axes, policy, &r));
    } else {
        return HN_IM_RAISE(c, HONE_E_MODEL, "neither scales nor sizes are given");
    }
    return resize(c, &r);
}

/* Opset 10 and Upsample: coordinates are x / scale, nearest takes the floor. */
static hone_status resize_simple(hn_im_call *c, const double *scale, int n)
{
    int64_t axes[HN_MAX_RANK];
    resize_args r = { .coord = ASYMMETRIC, .nearest = 2, .cubic_a = -0.75 };
    r.mode = hn_im_choice(c, "mode", "nearest|linear|bilinear", 0);
    if (r.mode == 2) r.mode = 1;
    if (n != c->in[0]->type.rank)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "%d scales are given for rank %d", n, c->in[0]->type.rank);
    for (int i = 0; i < n; i++)
        axes[i] = i;
    HN_TRY(by_scales(c, scale, n, axes, &r));
    return resize(c, &r);
}

hone_status hn_im_on_resize10(hn_im_call *c)
{
    const double *scale;
    int n;
    HN_TRY(read_scales(c, c->in[1], &scale, &n));
    return resize_simple(c, scale, n);
}

hone_status hn_im_on_upsample(hn_im_call *c)
{
    const double *scale;
    int n;
    if (c->entry->arg == 9) return hn_im_on_resize10(c);
    if (c->entry->arg == 7) {
        if (!(scale = hn_im_fs(c, "scales", &n)))
            return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"scales\" is missing");
        return resize_simple(c, scale, n);
    }
    const double hw[4] = { 1, 1, hn_im_f(c, "height_scale", 1), hn_im_f(c, "width_scale", 1) };
    return resize_simple(c, hw, 4);
}

/* ---- sampling ---- */

hone_status hn_im_on_grid_sample(hn_im_call *c)
{
    static const int modes[] = { 0, 1, 2, 0, 2 };
    const int mode = hn_im_choice(c, "mode", "linear|nearest|cubic|bilinear|bicubic", 0);
    const int padding = hn_im_choice(c, "padding_mode", "zeros|border|reflection", 0);
    const int64_t align = hn_im_i(c, "align_corners", 0);
    return hn_im_same(c, HN_OP_grid_sample,
                      HN_ATTRS_ARG(HN_A_I("mode", modes[mode]), HN_A_I("padding", padding),
                                   HN_A_I("align_corners", align != 0)));
}

hone_status hn_im_on_affine_grid(hn_im_call *c)
{
    hn_dim dim[HN_MAX_RANK];
    int n;
    const int64_t align = hn_im_i(c, "align_corners", 0);
    HN_TRY(hn_im_dims(c, c->in[1], dim, HN_MAX_RANK, &n));
    return hn_im_ret(c, hn_b1(c->b, HN_OP_affine_grid, c->in[0],
                              HN_ATTRS_ARG(HN_A_DIMS("dim", n, dim), HN_A_I("align_corners", align != 0))));
}

hone_status hn_im_on_roi_align(hn_im_call *c)
{
    const int mode = hn_im_choice(c, "mode", "avg|max", 0);
    /* Before opset 16 coordinates had no half-pixel shift. */
    const int coord = c->entry->arg == 10 ? 1
                                          : hn_im_choice(c, "coordinate_transformation_mode",
                                                         "half_pixel|output_half_pixel", 0);
    const int64_t h = hn_im_i(c, "output_height", 1), w = hn_im_i(c, "output_width", 1),
                  ratio = hn_im_i(c, "sampling_ratio", 0);
    hn_value *batch = c->in[2];
    return hn_im_ret(c, hn_b3(c->b, HN_OP_roi_align, c->in[0], c->in[1], batch,
                              HN_ATTRS_ARG(HN_A_I("mode", mode), HN_A_I("coord", coord), HN_A_I("out_h", h),
                                           HN_A_I("out_w", w), HN_A_I("sampling_ratio", ratio),
                                           HN_A_F("spatial_scale", hn_im_f(c, "spatial_scale", 1)))));
}

hone_status hn_im_on_max_roi_pool(hn_im_call *c)
{
    int n;
    const int64_t *shape = hn_im_is(c, "pooled_shape", &n);
    if (!shape || n != 2) return HN_IM_RAISE(c, HONE_E_MODEL, "pooled_shape must have two entries");
    return hn_im_same(c, HN_OP_max_roi_pool,
                      HN_ATTRS_ARG(HN_A_I("out_h", shape[0]), HN_A_I("out_w", shape[1]),
                                   HN_A_F("spatial_scale", hn_im_f(c, "spatial_scale", 1))));
}

hone_status hn_im_on_col2im(hn_im_call *c)
{
    hn_dim image[HN_MAX_RANK];
    const int64_t *block;
    int64_t stride[HN_MAX_RANK], dilation[HN_MAX_RANK], begin[HN_MAX_RANK], end[HN_MAX_RANK];
    int n, n_block, k;
    HN_TRY(hn_im_dims(c, c->in[1], image, HN_MAX_RANK, &n));
    if (!hn_im_ints(c, c->in[2], &block, &n_block))
        return hn_im_refuse(c, "a block shape that only a run shows is not supported");
    if (n_block != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "image and block have %d and %d axes", n, n_block);
    const int64_t *s = hn_im_is(c, "strides", &k);
    if (s && k != n) return HN_IM_RAISE(c, HONE_E_MODEL, "strides has %d entries, %d are needed", k, n);
    const int64_t *d = hn_im_is(c, "dilations", &k);
    if (d && k != n) return HN_IM_RAISE(c, HONE_E_MODEL, "dilations has %d entries, %d are needed", k, n);
    const int64_t *p = hn_im_is(c, "pads", &k);
    if (p && k != 2 * n) return HN_IM_RAISE(c, HONE_E_MODEL, "pads has %d entries, %d are needed", k, 2 * n);
    for (int i = 0; i < n; i++) {
        stride[i] = s ? s[i] : 1;
        dilation[i] = d ? d[i] : 1;
        begin[i] = p ? p[i] : 0;
        end[i] = p ? p[n + i] : 0;
    }
    return hn_im_ret(c, hn_b1(c->b, HN_OP_col2im, c->in[0],
                              HN_ATTRS_ARG(HN_A_DIMS("image", n, image), HN_A_IS("block", n, block),
                                           HN_A_IS("stride", n, stride), HN_A_IS("dilation", n, dilation),
                                           HN_A_IS("pad_begin", n, begin), HN_A_IS("pad_end", n, end))));
}

/* ---- block moves ---- */

hone_status hn_im_on_depth_to_space(hn_im_call *c)
{
    const int mode = hn_im_choice(c, "mode", "DCR|CRD", 0);
    return hn_im_ret(c,
                     hn_b1(c->b, HN_OP_depth_to_space, c->in[0],
                           HN_ATTRS_ARG(HN_A_I("block", hn_im_i(c, "blocksize", 0)), HN_A_I("mode", mode))));
}

/* [n,c,h,w] -> [n,c,h/k,k,w/k,k] -> channels in front of the block (CRD) */
static hone_status space_to_depth_crd(hn_im_call *c, int64_t k)
{
    hn_value *x = c->in[0];
    if (x->type.rank != 4 || k < 1 || k > 1 << 15)
        return HN_IM_RAISE(c, HONE_E_SHAPE, "rank %d with block %" PRId64, x->type.rank, k);
    const hn_dim *d = x->type.dim;
    const hn_dim h = hn_im_ddiv(c, d[2], k), w = hn_im_ddiv(c, d[3], k);
    const hn_dim split[6] = { d[0], d[1], h, k, w, k };
    const hn_dim merged[4] = { d[0], hn_im_dmul(c, d[1], k * k), h, w };
    x = hn_transpose(c->b, hn_reshape(c->b, x, 6, split), (int64_t[]){ 0, 1, 3, 5, 2, 4 });
    return hn_im_ret(c, hn_reshape(c->b, x, 4, merged));
}

hone_status hn_im_on_space_to_depth(hn_im_call *c)
{
    const int64_t block = hn_im_i(c, "blocksize", 0);
    if (hn_im_choice(c, "mode", "DCR|CRD", 0) == 1) return space_to_depth_crd(c, block);
    return hn_im_ret(c, hn_b1(c->b, HN_OP_space_to_depth, c->in[0], HN_ATTRS_ARG(HN_A_I("block", block))));
}

/* ---- decoding ---- */

static int order_of(const char *format)
{
    static const char *const names[] = { "RGB", "BGR", "Grayscale" }; /* as image_decode's orders */
    for (int i = 0; i < HN_COUNT(names); i++)
        if (strcmp(format, names[i]) == 0) return i;
    return -1;
}

/* The size is computed apart, so that extents are known when the pixels are. */
hone_status hn_im_on_image_decoder(hn_im_call *c)
{
    const char *format = hn_im_s(c, "pixel_format", "RGB");
    const int order = order_of(format);
    if (order < 0) return HN_IM_RAISE(c, HONE_E_MODEL, "pixel_format is \"%s\", not RGB, BGR or Grayscale", format);
    hn_value *size = hn_b1(c->b, HN_OP_image_size, c->in[0], HN_NO_ATTRS);
    if (!size) return c->b->status;
    hn_dim dim[3] = { hn_im_dim(c, size, 0), hn_im_dim(c, size, 1), order == 2 ? 1 : 3 };
    for (int i = 0; i < 2; i++)
        if (hn_sym_get(hn_im_syms(c), dim[i])) hn_sym_get(hn_im_syms(c), dim[i])->min = 1;
    return hn_im_ret(c, hn_b1(c->b, HN_OP_image_decode, c->in[0], HN_ATTRS_ARG(HN_A_I("order", order), HN_A_DIMS("dim", 3, dim))));
}
