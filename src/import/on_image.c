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
    hn_value *given; /* what only a run shows of scales and roi, as op resize wants it; NULL: nothing */
    bool open_roi;
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
                                  HN_A_FS("roi", r->coord == CROP_AND_RESIZE && !r->open_roi ? 2 * rank : 0, r->roi),
                                  HN_A_I("mode", r->mode),
                                  HN_A_I("coord", r->coord),
                                  HN_A_I("nearest", r->nearest),
                                  HN_A_F("cubic_a", r->cubic_a),
                                  HN_A_I("exclude_outside", r->exclude_outside),
                                  HN_A_F("extrapolation", r->extrapolation),
                                  HN_A_I("antialias", r->antialias),
                                  { .name = NULL } };
    return hn_im_ret(c, r->given ? hn_b2(c->b, HN_OP_resize, x, r->given, attrs) : hn_b1(c->b, HN_OP_resize, x, attrs));
}

/* floor(d * scale) of vectors in float64, whose product is rounded to float32 (evaluation in float64 keeps the rounding of casts alone). */
static hn_value *scaled_down(hn_im_call *c, hn_value *d, hn_value *scale)
{
    scale = scale ? hn_cast(c->b, hn_cast(c->b, scale, HN_F32), HN_F64) : NULL;
    hn_value *n = hn_im_binary(c, HN_OP_mul, d, scale);
    n = hn_im_unary(c, HN_OP_floor, n ? hn_cast(c->b, n, HN_F32) : NULL);
    return n ? hn_cast(c->b, n, HN_I64) : NULL;
}

/* floor(d * scale), the product in float32 as ONNX's inference and ONNX Runtime have it: an exporter's quotient of extents times one of
 * them is the other then, and 0.7 * 10 is 7. An expression for whole numbers and small fractions, else computed while running. */
static hone_status scaled(hn_im_call *c, hn_dim d, double scale, double crop, hn_dim *ret)
{
    if (!(scale > 0) || !isfinite(scale)) return HN_IM_RAISE(c, HONE_E_MODEL, "a scale is %g", scale);
    if (hn_dim_is_const(d)) {
        const double n = floor((double)((float)d * (float)(crop * scale)));
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
    hn_value *n = scaled_down(c, hn_cast(c->b, hn_const_dims(c->b, 1, &d), HN_F64), hn_const_f(c->b, HN_F64, crop * scale));
    if (!n) return c->b->status;
    *ret = hn_im_dim(c, n, 0);
    return c->dg->code;
}

/* ---- what only a run shows ---- */
/* Element i of a vector of floats where it is a constant, whatever the others are. */
static bool known_float(hn_im_call *c, hn_value *v, int64_t i, double *ret)
{
    const double *all;
    int n;
    if (hn_im_floats(c, v, &all, &n)) {
        if (i < n) *ret = all[i];
        return i < n;
    }
    const hn_node *p = hn_producer(v);
    if (!p || p->op != HN_OP_concat || v->type.rank != 1) return false;
    for (int k = 0; k < p->n_in; k++) {
        hn_value *part = hn_in(p, k);
        if (!hn_dim_is_const(part->type.dim[0])) return false;
        if (i < part->type.dim[0]) return known_float(c, part, i, ret);
        i -= part->type.dim[0];
    }
    return false;
}

/* f64[rank]: v[from + i] on axis axes[i], `other` elsewhere. */
static hn_value *on_axes(hn_im_call *c, hn_value *v, int from, int n, const int64_t *axes, double other)
{
    const int rank = c->in[0]->type.rank;
    const hn_dim one = 1;
    hn_value *part[HN_MAX_RANK];
    for (int a = 0; a < rank; a++) part[a] = hn_im_fill(c, hn_const_f(c->b, HN_F64, other), 1, &one);
    for (int i = 0; v && i < n; i++) part[axes[i]] = hn_cast(c->b, hn_im_slice(c, v, 0, from + i, 1, 1), HN_F64);
    return hn_im_concat(c, 0, rank, part);
}

/* Extents of axes whose scale, or whose part of the image, only a run shows: the product in float32, as in scaled(). */
static hone_status scaled_running(hn_im_call *c, hn_value *scale, hn_value *start, hn_value *end, int n, const int64_t *axes, resize_args *r)
{
    hn_value *x = c->in[0], *d = hn_cast(c->b, hn_const_dims(c->b, x->type.rank, x->type.dim), HN_F64);
    if (r->coord == CROP_AND_RESIZE) scale = hn_im_binary(c, HN_OP_mul, scale, hn_im_binary(c, HN_OP_sub, end, start));
    d = scaled_down(c, d, scale);
    if (!d) return c->b->status;
    for (int i = 0; i < n; i++)
        if (r->open_roi || r->scale[axes[i]] == 0) r->dim[axes[i]] = hn_im_dim(c, d, (int)axes[i]);
    return c->dg->code;
}

static hone_status want_vector(hn_im_call *c, const hn_value *v, int64_t n, const char *what)
{
    if (v->type.rank != 1 || !hn_dim_is_const(v->type.dim[0])) return hn_im_refuse(c, "how many %s there are only a run shows", what);
    if (v->type.dim[0] != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d %s are given for %d axes", (int)v->type.dim[0], what, (int)n);
    return HONE_OK;
}

/* Where the part of the image starts on every axis, or ends (1). */
static hn_value *bounds(hn_im_call *c, hn_value *roi, int which, int n, const int64_t *axes, const resize_args *r)
{
    const int64_t rank = c->in[0]->type.rank;
    return r->open_roi ? on_axes(c, roi, which * n, n, axes, which) : hn_const_fs(c->b, HN_F64, 1, &rank, r->roi + which * rank);
}

/* scales NULL: sizes are given, and r->dim is set. */
static hone_status by_run(hn_im_call *c, hn_value *scales, hn_value *roi, int n, const int64_t *axes, resize_args *r)
{
    const int rank = c->in[0]->type.rank;
    if (scales) HN_TRY(want_vector(c, scales, n, "scales"));
    if (r->open_roi) HN_TRY(want_vector(c, roi, 2 * (int64_t)n, "bounds of roi"));
    for (int a = 0; a < rank; a++) {
        r->scale[a] = scales ? 1 : 0;
        if (scales) r->dim[a] = c->in[0]->type.dim[a];
    }
    for (int i = 0; scales && i < n; i++)
        if (!known_float(c, scales, i, &r->scale[axes[i]])) r->scale[axes[i]] = 0;
    hn_value *part[3] = { on_axes(c, scales, 0, n, axes, scales ? 1 : 0), bounds(c, roi, 0, n, axes, r), bounds(c, roi, 1, n, axes, r) };
    r->given = hn_im_concat(c, 0, 3, part);
    for (int i = 0; scales && !r->open_roi && i < n; i++) {
        const double crop = r->coord == CROP_AND_RESIZE ? r->roi[rank + axes[i]] - r->roi[axes[i]] : 1;
        if (r->scale[axes[i]] > 0) HN_TRY(scaled(c, c->in[0]->type.dim[axes[i]], r->scale[axes[i]], crop, &r->dim[axes[i]]));
    }
    return scales ? scaled_running(c, part[0], part[1], part[2], n, axes, r) : c->b->status;
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

/* One scale for all axes, of extents that only a run shows. */
static hone_status keep_aspect_running(hn_im_call *c, const hn_dim *size, int n, const int64_t *axes, int policy, resize_args *r)
{
    const int rank = c->in[0]->type.rank;
    const int64_t all = n;
    const hn_op least = policy == 1 ? HN_OP_reduce_min : HN_OP_reduce_max;
    hn_dim d[HN_MAX_RANK];
    for (int i = 0; i < n; i++) d[i] = c->in[0]->type.dim[axes[i]];
    hn_value *from = hn_cast(c->b, hn_const_dims(c->b, n, d), HN_F64), *to = hn_cast(c->b, hn_const_dims(c->b, n, size), HN_F64);
    hn_value *one = hn_im_reduce(c, least, hn_im_binary(c, HN_OP_div, to, from), 1, (int64_t[]){ 0 }, true);
    one = one ? hn_broadcast_to(c->b, one, 1, &all) : NULL;
    hn_value *y = hn_im_binary(c, HN_OP_add, hn_im_binary(c, HN_OP_mul, from, one), one ? hn_im_like_f(c, one, 0.5) : NULL);
    y = hn_im_unary(c, HN_OP_floor, y);
    y = y ? hn_cast(c->b, y, HN_I64) : NULL;
    if (!y) return c->b->status;
    for (int a = 0; a < rank; a++) r->scale[a] = 1;
    for (int i = 0; i < n; i++) {
        r->scale[axes[i]] = 0;
        r->dim[axes[i]] = hn_im_dim(c, y, i);
    }
    hn_value *part[3] = { on_axes(c, one, 0, n, axes, 1), bounds(c, NULL, 0, n, axes, r), bounds(c, NULL, 1, n, axes, r) };
    r->given = hn_im_concat(c, 0, 3, part);
    return c->dg->code ? c->dg->code : c->b->status;
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
        if (!hn_dim_is_const(d) || !hn_dim_is_const(size[i]) || d == 0) {
            if (r->open_roi) return hn_im_refuse(c, "keeping the aspect ratio of a part of the image that only a run shows");
            return keep_aspect_running(c, size, n, axes, policy, r);
        }
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
    if (!roi) return HN_IM_RAISE(c, HONE_E_MODEL, "tf_crop_and_resize needs a roi");
    r->open_roi = !hn_im_floats(c, roi, &v, &have);
    if (r->open_roi) return HONE_OK;
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
    hn_value *roi = hn_im_in(c, 1);
    HN_TRY(read_roi(c, roi, axes, n, &r));
    if (!is_empty(scales) && (r.open_roi || !hn_im_floats(c, scales, &scale, &have))) {
        HN_TRY(by_run(c, scales, roi, n, axes, &r));
    } else if (!is_empty(scales)) {
        if (have != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d scales are given for %d axes", have, n);
        HN_TRY(by_scales(c, scale, n, axes, &r));
    } else if (!is_empty(sizes)) {
        HN_TRY(hn_im_dims(c, sizes, size, HN_MAX_RANK, &have));
        if (have != n) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d sizes are given for %d axes", have, n);
        HN_TRY(by_sizes(c, size, n, axes, policy, &r));
        if (r.open_roi) HN_TRY(by_run(c, NULL, roi, n, axes, &r));
    } else {
        return HN_IM_RAISE(c, HONE_E_MODEL, "neither scales nor sizes are given");
    }
    return resize(c, &r);
}

/* Opset 10 and Upsample: coordinates are x / scale, nearest takes the floor. scale NULL: only a run shows them. */
static hone_status resize_simple(hn_im_call *c, hn_value *scales, const double *scale, int n)
{
    const int rank = c->in[0]->type.rank;
    int64_t axes[HN_MAX_RANK];
    resize_args r = { .coord = ASYMMETRIC, .nearest = 2, .cubic_a = -0.75 };
    r.mode = hn_im_choice(c, "mode", "nearest|linear|bilinear", 0);
    if (r.mode == 2) r.mode = 1;
    if (scale && n != rank) return HN_IM_RAISE(c, HONE_E_SHAPE, "%d scales are given for rank %d", n, rank);
    for (int i = 0; i < rank; i++)
        axes[i] = i;
    HN_TRY(scale ? by_scales(c, scale, n, axes, &r) : by_run(c, scales, NULL, rank, axes, &r));
    return resize(c, &r);
}

hone_status hn_im_on_resize10(hn_im_call *c)
{
    const double *scale;
    int n = 0;
    if (!hn_im_floats(c, c->in[1], &scale, &n)) scale = NULL;
    return resize_simple(c, c->in[1], scale, n);
}

hone_status hn_im_on_upsample(hn_im_call *c)
{
    const double *scale;
    int n;
    if (c->entry->arg == 9) return hn_im_on_resize10(c);
    if (c->entry->arg == 7) {
        if (!(scale = hn_im_fs(c, "scales", &n)))
            return HN_IM_RAISE(c, HONE_E_MODEL, "attribute \"scales\" is missing");
        return resize_simple(c, NULL, scale, n);
    }
    const double hw[4] = { 1, 1, hn_im_f(c, "height_scale", 1), hn_im_f(c, "width_scale", 1) };
    return resize_simple(c, NULL, hw, 4);
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
    for (int i = 0; i < 2; i++) {
        const hn_sym *s = hn_sym_get(hn_im_syms(c), dim[i]);
        if (s) hn_sym_set_bounds(hn_im_syms(c), dim[i], 1, s->opt, s->max);
    }
    return hn_im_ret(c, hn_b1(c->b, HN_OP_image_decode, c->in[0], HN_ATTRS_ARG(HN_A_I("order", order), HN_A_DIMS("dim", 3, dim))));
}
