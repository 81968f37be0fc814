/* Inside libhone-image.so. */
#ifndef HN_IMAGE_MODULE_H
#define HN_IMAGE_MODULE_H

#include "image/codec.h"

extern const hn_image_codec hn_image_png, hn_image_jpeg, hn_image_tiff, hn_image_webp, hn_image_jpeg2000;

/** Set why and yield false. */
bool hn_image_fail(char *why, const char *text);
/** Rows of `channels` samples a pixel to RGB: one or two channels are gray, a fourth is dropped. */
void hn_image_to_rgb(const uint8_t *from, int64_t pixels, int channels, uint8_t *ret);

#endif
