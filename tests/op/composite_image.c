/* Resize, sampling, regions, folding, deformable convolution. */
#include "composite_test.h"

#include <stdio.h>

static const char *const COORDS[] = { "half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric",
                                      "half_pixel_symmetric" };

TEST(resize_expands)
{
    static const struct {
        const char *in, *attrs;
    } shapes[] = {
        { "[1,2,4,5]", "dim=[1,2,7,3]" },
        { "[1,2,4,5]", "dim=[1,2,8,10]" },
        { "[1,2,4,5]", "dim=[1,2,1,1]" },
        { "[2,3,5,4]", "dim=[2,3,3,2], scale=[1,1,0.6,0.6]" },
        { "[2,3,5,4]", "dim=[2,3,11,4], scale=[0,0,2.3,1.1]" },
        { "[1,1,9]", "dim=[1,1,2]" },
    };
    static const char *const modes[] = {
        "mode=nearest, nearest=round_prefer_floor",
        "mode=nearest, nearest=round_prefer_ceil",
        "mode=nearest, nearest=floor",
        "mode=nearest, nearest=ceil",
        "mode=linear",
        "mode=linear, antialias=1",
        "mode=linear, exclude_outside=1",
        "mode=cubic",
        "mode=cubic, cubic_a=-0.5, exclude_outside=1",
        "mode=cubic, antialias=1",
        "mode=cubic, antialias=1, exclude_outside=1",
    };
    char text[512];

    for (int s = 0; s < HN_COUNT(shapes); s++)
        for (int m = 0; m < HN_COUNT(modes); m++)
            for (int c = 0; c < HN_COUNT(COORDS); c++) {
                snprintf(text, sizeof(text), "in x f32%s  y = resize(x) {%s, %s, coord=%s}  out y",
                         shapes[s].in, shapes[s].attrs, modes[m], COORDS[c]);
                EXPANDS(text, "", s == 0 && c == 0 ? E_HALF : 0);
            }
}

/* The same through symbolic extents: growing, shrinking, to and from 1. */
TEST(resize_expands_symbolic)
{
    static const char *const specs[] = { "h=4 w=5 p=7 q=3", "h=4 w=3 p=8 q=6", "h=5 w=1 p=1 q=4",
                                         "h=9 w=2 p=2 q=2" };
    static const char *const modes[] = {
        "mode=nearest, nearest=round_prefer_floor",
        "mode=nearest, nearest=round_prefer_ceil",
        "mode=nearest, nearest=floor",
        "mode=nearest, nearest=ceil",
        "mode=linear",
        "mode=linear, antialias=1",
        "mode=cubic, exclude_outside=1",
        "mode=cubic, antialias=1, exclude_outside=1",
    };
    char text[512];

    for (int s = 0; s < HN_COUNT(specs); s++)
        for (int m = 0; m < HN_COUNT(modes); m++)
            for (int c = 0; c < HN_COUNT(COORDS); c++) {
                snprintf(text, sizeof(text),
                         "sym h  sym w  sym p  sym q  in x f32[1,2,h,w]  in pin f32[p,q]  y = resize(x) "
                         "{dim=[1,2,p,q], %s, coord=%s}  out y  out pin",
                         modes[m], COORDS[c]);
                EXPANDS(text, specs[s], 0);
            }
    EXPANDS("sym h  in x f32[1,1,h]  y = resize(x) {dim=[1,1,2*h], scale=[1,1,2], mode=linear}  out y", "h=5",
            E_HALF);
    EXPANDS("sym h  in pin f32[h]  in x f32[1,1,2*h]  y = resize(x) {dim=[1,1,h], scale=[1,1,0.5], "
            "mode=cubic, antialias=1}  out y  out pin",
            "h=5", 0);
    EXPANDS("sym h  in x i32[1,1,h]  y = resize(x) {dim=[1,1,3*h], mode=nearest, coord=asymmetric, "
            "nearest=floor}  out y",
            "h=4", E_AS_IS);
}

TEST(resize_crops)
{
    char text[512];
    static const char *const modes[] = { "nearest", "linear", "cubic" };

    for (int m = 0; m < 3; m++) {
        snprintf(text, sizeof(text),
                 "in x f32[1,1,4,5]  y = resize(x) {dim=[1,1,3,6], roi=[0,0,0.4,0.6,1,1,0.63,1.7], mode=%s, "
                 "coord=tf_crop_and_resize,"
                 " extrapolation=10}  out y",
                 modes[m]);
        EXPANDS(text, "", 0);
        snprintf(text, sizeof(text),
                 "sym h  in x f32[1,1,h,5]  y = resize(x) {dim=[1,1,3,1], roi=[0,0,0.41,-0.2,1,1,0.63,1.2], "
                 "mode=%s,"
                 " coord=tf_crop_and_resize}  out y",
                 modes[m]);
        EXPANDS(text, "h=7", 0);
    }
    EXPANDS("sym p  in pin f32[p]  in x f32[6]  y = resize(x) {dim=[p], roi=[0.1,0.7], mode=linear, "
            "coord=tf_crop_and_resize}  "
            "out y  out pin",
            "p=1", 0);
    REFUSES("in x f32[1,2]  y = resize(x) {dim=[1,2], coord=tf_crop_and_resize}  out y", "region");
}

TEST(resize_integers)
{
    static const char *const types[] = { "u8", "i8", "i16", "i32", "i64", "bool" };
    char text[256];

    for (int i = 0; i < HN_COUNT(types); i++) {
        snprintf(text, sizeof(text), "in x %s[1,3,4]  y = resize(x) {dim=[1,7,2]}  out y", types[i]);
        EXPANDS(text, "", E_AS_IS);
        if (i == 5) continue;
        snprintf(text, sizeof(text), "in x %s[1,3,4]  y = resize(x) {dim=[1,7,2], mode=cubic}  out y",
                 types[i]);
        EXPANDS(text, "x=0..100", E_AS_IS);
    }
    REFUSES("in x bool[1,3]  y = resize(x) {dim=[1,7], mode=linear}  out y", "");
}

/* Known answers, most of them reports of other runtimes getting them wrong. */
TEST(resize_by_hand)
{
    static const char x[] = "const x f32[1,1,2,4] = {1, 2, 3, 4, 5, 6, 7, 8}  y = resize(x) ";
    char text[512];

    snprintf(text, sizeof(text), "%s{dim=[1,1,1,2], scale=[1,1,0.6,0.6], mode=linear}  out y", x);
    EXPECT_NEAR(text, "const y f32[1,1,1,2] = {2.6666665, 4.3333331}", 1e-6);
    snprintf(text, sizeof(text),
             "%s{dim=[1,1,1,2], scale=[1,1,0.6,0.6], mode=linear, coord=align_corners}  out y", x);
    EXPECT_NEAR(text, "const y f32[1,1,1,2] = {1, 3.142857}", 1e-6);
    snprintf(text, sizeof(text), "%s{dim=[1,1,1,3], mode=nearest}  out y", x);
    EXPECT(text, "const y f32[1,1,1,3] = {1, 2, 4}");
    EXPECT("const x f32[1,1,2,2] = {1, 2, 3, 4}  y = resize(x) {dim=[1,1,4,6], scale=[1,1,2,3], "
           "mode=nearest}  out y",
           "const y f32[1,1,4,6] = {1,1,1,2,2,2, 1,1,1,2,2,2, 3,3,3,4,4,4, 3,3,3,4,4,4}");
    EXPECT_NEAR("const x f32[1,1,2,2] = {1, 2, 3, 4}  y = resize(x) {dim=[1,1,4,4], scale=[1,1,2,2], "
                "mode=linear}  out y",
                "const y f32[1,1,4,4] = {1,1.25,1.75,2, 1.5,1.75,2.25,2.5, 2.5,2.75,3.25,3.5, 3,3.25,3.75,4}",
                1e-6);
    EXPECT_NEAR("const x f32[1,1,4,4] = {1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}\n"
                "y = resize(x) {dim=[1,1,3,3], scale=[1,1,0.8,0.8], mode=cubic}  out y",
                "const y f32[1,1,3,3] = {1.47119141, 2.78125, 4.08251953, 6.71142578, 8.02148438, "
                "9.32275391, 11.91650391, 13.2265625, 14.52783203}",
                1e-5);
    /* an extent of 1 lies in the middle under half_pixel, at 0 under pytorch_half_pixel */
    EXPECT_NEAR("const x f32[4] = {1, 2, 3, 4}  y = resize(x) {dim=[1], mode=linear}  z = resize(x) "
                "{dim=[1], mode=linear, coord=pytorch_half_pixel}  out y  out z",
                "const y f32[1] = {2.5}  const z f32[1] = {1}", 1e-6);
    EXPECT("const x u8[4] = {0, 255, 0, 255}  y = resize(x) {dim=[8], mode=cubic}  out y",
           "const y u8[8] = {0, 66, 224, 215, 39, 30, 188, 255}");
}

/* A scale of the attribute goes before what only a run shows; 0 there is the quotient of the extents. */
TEST(resize_of_what_a_run_shows)
{
    static const char *const modes[] = { "nearest", "linear", "cubic", "linear, antialias=1", "cubic, antialias=1, exclude_outside=1" },
                      *const coords[] = { "half_pixel",   "pytorch_half_pixel",   "align_corners",
                                          "asymmetric",   "tf_crop_and_resize",   "half_pixel_symmetric" };
    char text[256];

    for (int m = 0; m < HN_COUNT(modes); m++)
        for (int c = 0; c < HN_COUNT(coords); c++) {
            snprintf(text, sizeof(text), "in x f32[2,3,5]  in g f64[9]  y = resize(x, g) {dim=[2,4,7], scale=[1,1.4,0], mode=%s, coord=%s}  out y",
                     modes[m], coords[c]);
            EXPANDS(text, "g=0.4..1.9", 0);
        }
    EXPANDS("sym h  in x f32[1,h]  in g f64[6]  y = resize(x, g) {dim=[1,2*h], scale=[1,0], mode=linear}  out y", "h=5 g=1..3", 0);
    EXPECT_NEAR("const x f32[3] = {1, 2, 4}  const g f64[3] = {2, 0, 1}  const z f64[3] = {0, 0, 1}\n"
                "y = resize(x, g) {dim=[6], mode=linear}  w = resize(x, z) {dim=[6], mode=linear}  out y  out w",
                "const y f32[6] = {1, 1.25, 1.75, 2.5, 3.5, 4}  const w f32[6] = {1, 1.25, 1.75, 2.5, 3.5, 4}", 1e-6);
    EXPECT_NEAR("const x f32[4] = {1, 2, 3, 4}  const g f64[3] = {0, 0.5, 1.5}\n"
                "y = resize(x, g) {dim=[4], mode=linear, coord=tf_crop_and_resize, extrapolation=9}  out y",
                "const y f32[4] = {2.5, 3.5, 9, 9}", 1e-6);
    REFUSES("in x f32[1,2]  in g f64[2]  y = resize(x, g) {dim=[1,2]}  out y", "f64[6]");
    REFUSES("in x f32[1,2]  in g f32[6]  y = resize(x, g) {dim=[1,2]}  out y", "f64[6]");
}

TEST(resize_refuses)
{
    REFUSES("in x f32[1,2]  y = resize(x) {dim=[1]}  out y", "");
    REFUSES("in x f32[1,2]  y = resize(x) {dim=[1,2], scale=[1]}  out y", "");
    REFUSES("in x f32[1,2]  y = resize(x) {dim=[1,2], scale=[1,-1]}  out y", "scale");
    REFUSES("in x f32[1,0]  y = resize(x) {dim=[1,2]}  out y", "empty");
    EXPANDS("in x f32[0,2]  y = resize(x) {dim=[0,5], mode=linear}  out y", "", 0);
    EXPANDS("in x f32[3,2]  y = resize(x) {dim=[3,0], mode=linear}  out y", "", 0);
}

/* ---- sampling ---- */

TEST(grid_sample_expands)
{
    static const char *const modes[] = { "linear", "nearest", "cubic" }, *const pads[] = { "zeros", "border",
                                                                                           "reflection" };
    char text[256];

    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 3; p++)
            for (int align = 0; align < 2; align++) {
                snprintf(text, sizeof(text),
                         "sym n  sym h  in x f32[n,2,h,5]  in g f32[n,3,4,2]  y = grid_sample(x, g) "
                         "{mode=%s, padding=%s, align_corners=%d}  out y",
                         modes[m], pads[p], align);
                EXPANDS(text, "n=2 h=4 g=-1.9..1.7", 0);
                EXPANDS(text, "n=1 h=1 g=-3..3", 0);
                snprintf(text, sizeof(text),
                         "in x f32[1,2,3,4,2]  in g f32[1,2,3,2,3]  y = grid_sample(x, g) {mode=%s, "
                         "padding=%s, align_corners=%d}  out y",
                         modes[m], pads[p], align);
                EXPANDS(text, "g=-1.4..1.3", 0);
            }
    EXPANDS("in x f32[1,2,3]  in g f32[1,4,1]  y = grid_sample(x, g)  out y", "", 0);
    EXPANDS("in x f16[1,2,3,4]  in g f32[1,2,3,2]  y = grid_sample(x, g)  out y", "", E_AS_IS);
    EXPECT_NEAR("const x f32[1,1,2,2] = {1, 2, 3, 4}  const g f32[1,1,3,2] = {0, 0, -1, -1, 1, 0}\n"
                "y = grid_sample(x, g)  z = grid_sample(x, g) {align_corners=1}  out y  out z",
                "const y f32[1,1,1,3] = {2.5, 0.25, 1.5}  const z f32[1,1,1,3] = {2.5, 1, 3}", 1e-6);
    REFUSES("in x f32[1,2,3,4]  in g f32[1,2,3,3]  y = grid_sample(x, g)  out y", "coordinates");
    REFUSES("in x f32[1,2,3,4]  in g f32[2,2,3,2]  y = grid_sample(x, g)  out y", "");
    REFUSES("in x f32[1,2,3,4]  in g f32[1,2,3]  y = grid_sample(x, g)  out y", "rank");
}

TEST(affine_grid_expands)
{
    for (int align = 0; align < 2; align++) {
        char text[256];
        snprintf(text, sizeof(text),
                 "sym h  in a f32[2,2,3]  in pin f32[h]  y = affine_grid(a) {dim=[2,3,h,5], "
                 "align_corners=%d}  out y  out pin",
                 align);
        EXPANDS(text, "h=4", E_HALF);
        EXPANDS(text, "h=1", 0);
        snprintf(text, sizeof(text),
                 "in a f32[2,3,4]  y = affine_grid(a) {dim=[2,3,2,1,3], align_corners=%d}  out y", align);
        EXPANDS(text, "", 0);
    }
    EXPECT_NEAR("const a f32[1,2,3] = {1, 0, 0, 0, 1, 0}  y = affine_grid(a) {dim=[1,1,1,2]}  z = "
                "affine_grid(a) {dim=[1,1,1,2], align_corners=1}  out y  out z",
                "const y f32[1,1,2,2] = {-0.5, 0, 0.5, 0}  const z f32[1,1,2,2] = {-1, 0, 1, 0}", 1e-6);
    REFUSES("in a f32[1,2,3]  y = affine_grid(a) {dim=[1,1]}  out y", "spatial");
    REFUSES("in a f32[1,2,3]  y = affine_grid(a) {dim=[2,1,2,2]}  out y", "maps");
}

TEST(roi_align_expands)
{
    static const char *const attrs[] = {
        "",
        "mode=max",
        "coord=output_half_pixel",
        "mode=max, coord=output_half_pixel, sampling_ratio=2",
        "sampling_ratio=3, spatial_scale=0.5",
        "sampling_ratio=5",
        "spatial_scale=0.25, mode=max",
    };
    char text[512];

    for (int i = 0; i < HN_COUNT(attrs); i++) {
        snprintf(text, sizeof(text),
                 "sym r  sym h  in x f32[2,3,h,6]  in roi f32[r,4]  in b i64[r]  y = roi_align(x, roi, b) "
                 "{out_h=2, out_w=3%s%s}  out y",
                 *attrs[i] ? ", " : "", attrs[i]);
        EXPANDS(text, "r=4 h=7 roi=-3..11 b=0..1", 0);
        EXPANDS(text, "r=0 h=7 roi=0..1 b=0", 0);
    }
    REFUSES("in x f32[2,3,4,6]  in roi f32[3,5]  in b i64[3]  y = roi_align(x, roi, b)  out y", "region");
    REFUSES("in x f32[2,3,4,6]  in roi f32[3,4]  in b i64[2]  y = roi_align(x, roi, b)  out y", "");
    FAILS("const x f32[1,1,1,1] = {1}  const roi f32[1,4] = {0, 0, 1, 1}  const b i64[1] = {1}  y = "
          "roi_align(x, roi, b)  out y",
          "image");
}

TEST(max_roi_pool_expands)
{
    EXPANDS("sym r  in x f32[1,3,5,6]  in roi f32[r,4]  in b f32[r,1]  in pin f32[r]\n"
            "c = concat(b, roi) {axis=1}  y = max_roi_pool(x, c) {out_h=2, out_w=3}  out y  out pin",
            "r=5 roi=0..7 b=0", 0);
    EXPANDS("in x f32[2,3,5,6]  const roi f32[3,5] = {0, 0, 0, 5, 4, 1, 2, 1, 1, 1, 1, -7, 3, 9, 30}\n"
            "y = max_roi_pool(x, roi) {out_h=3, out_w=2, spatial_scale=0.5}  out y",
            "", 0);
    EXPECT("const x f32[1,1,2,2] = {1, 2, 3, 4}  const roi f32[1,5] = {0, 0, 0, 1, 1}  y = max_roi_pool(x, "
           "roi) {out_h=1, out_w=2}  out y",
           "const y f32[1,1,1,2] = {3, 4}");
    REFUSES("in x f32[2,3,4,6]  in roi f32[3,4]  y = max_roi_pool(x, roi) {out_h=1, out_w=1}  out y",
            "region");
    REFUSES("in x f32[2,3,4,6]  in roi f32[3,5]  y = max_roi_pool(x, roi) {out_h=0, out_w=1}  out y", "");
}

/* ---- folding ---- */

TEST(col2im_expands)
{
    EXPANDS("in x f32[1,5,5]  y = col2im(x) {image=[5,5], block=[1,5]}  out y", "", E_HALF);
    EXPANDS("in x f32[2,12,9]  y = col2im(x) {image=[4,4], block=[2,2]}  out y", "", 0);
    EXPANDS("in x f32[2,8,9]  y = col2im(x) {image=[5,6], block=[2,2], stride=[2,2], pad_begin=[1,0]}  out y",
            "", 0);
    EXPANDS("in x f32[1,6,12]  y = col2im(x) {image=[5,7], block=[3,1], stride=[2,2], dilation=[1,3], "
            "pad_begin=[1,0], pad_end=[1,0]}  out y",
            "", 0);
    EXPANDS("sym n  sym w  in x f32[n,4,w]  y = col2im(x) {image=[w+1], block=[2]}  out y", "n=2 w=5", 0);
    EXPANDS("in x f32[2,6,5]  y = col2im(x) {image=[16], block=[3], stride=[3], pad_begin=[1]}  out y", "", 0);
    EXPANDS("sym w  in x f32[2,6,w]  y = col2im(x) {image=[3*w+1], block=[3], stride=[3], pad_begin=[1]}  out y", "w=5", 0);
    EXPANDS("in x f32[1,98,9]  y = col2im(x) {image=[9,9], block=[7,7]}  out y", "", 0);
    EXPANDS("in x f32[1,81,9]  y = col2im(x) {image=[11,11], block=[9,9]}  out y", "", 0);
    EXPANDS("in x f32[1,10,12]  y = col2im(x) {image=[3,4,5], block=[1,1,5]}  out y", "", 0);
    EXPANDS("in x i32[1,4,4]  y = col2im(x) {image=[3,3], block=[2,2]}  out y", "", E_AS_IS);
    EXPECT("const x f32[1,2,3] = {1, 2, 3, 10, 20, 30}  y = col2im(x) {image=[4], block=[2]}  out y",
           "const y f32[1,1,4] = {1, 12, 23, 30}");
    REFUSES("in x f32[1,5,5]  y = col2im(x) {image=[5,5], block=[1,4]}  out y", "");
    REFUSES("in x f32[1,4,9]  y = col2im(x) {image=[4,4], block=[3,3]}  out y", "");
    REFUSES("in x f32[1,4,9]  y = col2im(x) {image=[4,4], block=[2]}  out y", "blocks");
    REFUSES("in x f32[1,4,9]  y = col2im(x) {image=[4,4], block=[2,2], stride=[0,1]}  out y", "stride");
}

TEST(max_unpool_expands)
{
    EXPANDS("in x f32[1,1,2,2]  const i i64[1,1,2,2] = {5, 7, 13, 15}  y = max_unpool(x, i) {dim=[1,1,4,4]}  "
            "out y",
            "", E_HOSTILE);
    EXPANDS("sym n  in x f32[n,2]  in i i64[n,2]  y = max_unpool(x, i) {dim=[n,9]}  out y", "n=1 i=0..3", 0);
    EXPANDS("in x u8[3]  const i i64[3] = {4, 0, 2}  y = max_unpool(x, i) {dim=[5]}  out y", "", E_AS_IS);
    EXPECT("const x f32[1,1,2,2] = {1, 2, 3, 4}  const i i64[1,1,2,2] = {5, 7, 13, 15}  y = max_unpool(x, i) "
           "{dim=[1,1,4,4]}  out y",
           "const y f32[1,1,4,4] = {0,0,0,0, 0,1,0,2, 0,0,0,0, 0,3,0,4}");
    FAILS("const x f32[1] = {1}  const i i64[1] = {3}  y = max_unpool(x, i) {dim=[3]}  out y", "outside");
    REFUSES("in x f32[2]  in i i64[3]  y = max_unpool(x, i) {dim=[5]}  out y", "");
    REFUSES("in x f32[2]  in i i32[2]  y = max_unpool(x, i) {dim=[5]}  out y", "");
}

TEST(deform_conv_expands)
{
    EXPANDS("in x f32[1,1,3,3]  in w f32[1,1,2,2]  in o f32[1,8,2,2]  y = deform_conv(x, w, o)  out y",
            "o=-1.3..1.3", E_HALF);
    EXPANDS(
        "sym n  in x f32[n,4,5,6]  in w f32[6,2,3,2]  in o f32[n,48,3,5]  in b f32[6]  in m f32[n,24,3,5]\n"
        "y = deform_conv(x, w, o, b, m) {stride=[2,1], pad_begin=[1,0], pad_end=[1,0], group=2, "
        "offset_group=4}  out y",
        "n=2 o=-2..2", 0);
    EXPANDS("sym h  in x f32[1,2,h,4]  in w f32[2,2,2,2]  in o f32[1,8,h-2,2]  in m f32[1,4,h-2,2]  y = "
            "deform_conv(x, w, o, _, m) {dilation=[2,2]}  out y",
            "h=6 o=-1..1", 0);
    EXPECT_NEAR("const x f32[1,1,3,3] = {0,1,2,3,4,5,6,7,8}  const w f32[1,1,2,2] = {1,1,1,1}\n"
                "const o f32[1,8,2,2] = {0.5,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,0, 0,0,0,0, "
                "0,0,0,-0.1}\n"
                "y = deform_conv(x, w, o)  out y",
                "const y f32[1,1,2,2] = {9.5, 12, 20, 23.9}", 1e-5);
    REFUSES("in x f32[1,3,3,3]  in w f32[1,3,2,2]  in o f32[1,16,2,2]  y = deform_conv(x, w, o) "
            "{offset_group=2}  out y",
            "offset groups");
    REFUSES("in x f32[1,1,3,3]  in w f32[1,1,2,2]  in o f32[1,6,2,2]  y = deform_conv(x, w, o)  out y",
            "channels");
    REFUSES("in x f32[1,1,3,3]  in w f32[1,1,2,2]  in o f32[1,8,3,3]  y = deform_conv(x, w, o)  out y",
            "offsets");
    REFUSES(
        "in x f32[1,3,3,3]  in w f32[2,1,2,2]  in o f32[1,8,2,2]  y = deform_conv(x, w, o) {group=2}  out y",
        "groups");
}
