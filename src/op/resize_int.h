/* Shared by resize.c and resize_expand.c. */
#ifndef HN_OP_RESIZE_INT_H
#define HN_OP_RESIZE_INT_H

#include "op/expand_int.h"

enum {
    RS_DIM,
    RS_SCALE,
    RS_ROI,
    RS_MODE,
    RS_COORD,
    RS_NEAREST,
    RS_CUBIC_A,
    RS_EXCLUDE,
    RS_EXTRAPOLATION,
    RS_ANTIALIAS
};
enum { RS_MODE_NEAREST, RS_MODE_LINEAR, RS_MODE_CUBIC };
enum {
    RS_HALF_PIXEL,
    RS_PYTORCH_HALF_PIXEL,
    RS_ALIGN_CORNERS,
    RS_ASYMMETRIC,
    RS_TF_CROP,
    RS_HALF_PIXEL_SYMMETRIC
};
enum { RS_PREFER_FLOOR, RS_PREFER_CEIL, RS_FLOOR, RS_CEIL };

/** Bounds of an integer dtype as doubles. */
static inline void rs_int_range(hn_dtype t, double *lo, double *hi)
{
    const int bits = hn_dtype_bits(t);
    *lo = hn_dtype_is_signed(t) ? -ldexp(1, bits - 1) : 0;
    *hi = hn_dtype_is_signed(t) ? ldexp(1, bits - 1) - 1 : ldexp(1, bits) - 1;
}

hone_status rs_expand(hn_builder *b, const hn_node *n, hn_value **out);

#endif
