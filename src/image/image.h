/* Encoded images to pixels. BMP and the portable formats (PBM, PGM, PPM, PAM) are read here; what PNG, JPEG, JPEG 2000, TIFF and
 * WebP need is a module of its own, libhone-image.so, opened when such an image comes. */
#ifndef HN_IMAGE_IMAGE_H
#define HN_IMAGE_IMAGE_H

#include "base/diag.h"

/* Order of the channels; numbers reach files. */
typedef enum hn_image_order {
    HN_IMAGE_RGB = 0,
    HN_IMAGE_BGR = 1,
    HN_IMAGE_GRAY = 2,
} hn_image_order;

static inline int hn_image_channels(hn_image_order o)
{
    return o == HN_IMAGE_GRAY ? 1 : 3;
}

enum { HN_IMAGE_MAX_PIXELS = 1 << 28 };

/**
 * Height and width, from the header alone.
 *
 * Units:  n in bytes, *ret_h and *ret_w in pixels
 * Errors: HONE_E_FORMAT damaged; HONE_E_UNSUPPORTED no format known here, or a form of it that is not read; HONE_E_LIMIT
 *         more than HN_IMAGE_MAX_PIXELS; HONE_E_NOTFOUND the module, or its part for this format, is not there
 * Thread: any
 */
hone_status hn_image_size(const void *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, hn_diag *dg);
/**
 * The pixels, 8 bits a channel: alpha dropped, deeper samples cut to their upper byte, gray by ITU-R BT.601 (as Pillow's "L").
 * Orientation tags are not followed.
 *
 * Shapes: h and w as hn_image_size yields them; ret has h * w * hn_image_channels(o) bytes, rows top to bottom
 * Errors: as hn_image_size; HONE_E_SHAPE h and w are another image's; HONE_E_NOMEM
 */
hone_status hn_image_decode(const void *bytes, size_t n, hn_image_order o, int64_t h, int64_t w, uint8_t *ret, hn_diag *dg);

#endif
