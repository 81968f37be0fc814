/* What reads one format. Also what libhone-image.so hands over, so that it needs nothing of ours. */
#ifndef HN_IMAGE_CODEC_H
#define HN_IMAGE_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_IMAGE_WHY = 200, HN_IMAGE_MODULE_ABI = 1 };

/** Errors are text in why (HN_IMAGE_WHY bytes), lower case, no full stop. */
typedef struct hn_image_codec {
    const char *name; /* "PNG" */
    bool (*size)(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why);
    /** 8-bit RGB, h * w * 3 bytes. h and w are what size() yields for these bytes. */
    bool (*rgb)(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why);
} hn_image_codec;

typedef struct hn_image_module {
    int abi, n;
    const hn_image_codec *const *codec;
} hn_image_module;

/** The module's one function. */
const hn_image_module *hone_image_module(void);

extern const hn_image_codec hn_image_bmp, hn_image_pnm;

#endif
