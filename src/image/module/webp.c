/* WebP, still images, by libwebp. */
#include <webp/decode.h>

#include "image/module/module.h"

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    int h, w;
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(bytes, n, &f) == VP8_STATUS_OK && f.has_animation) return hn_image_fail(why, "animations are not read");
    if (!WebPGetInfo(bytes, n, &w, &h)) return false;
    *ret_h = h;
    *ret_w = w;
    return true;
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    (void)why;
    return WebPDecodeRGBInto(bytes, n, ret, (size_t)(h * w * 3), (int)(w * 3)) != NULL;
}

const hn_image_codec hn_image_webp = { .name = "WebP", .size = size, .rgb = rgb };
