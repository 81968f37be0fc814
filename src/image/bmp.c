/* Windows and OS/2 bitmaps: 1, 4, 8 bits with a palette, 16, 24, 32 bits with or without masks; not compressed. */
#include <stdio.h>
#include <string.h>

#include "image/codec.h"

enum { FILE_HEADER = 14, CORE_HEADER = 12, INFO_HEADER = 40, RGB = 0, BITFIELDS = 3, ALPHA_BITFIELDS = 6 };

typedef struct bmp {
    const uint8_t *bytes;
    size_t n;
    size_t pixels, palette; /* offsets */
    int64_t h, w, row_bytes;
    int bits, entry_bytes, n_colour;
    bool top_down;
    uint32_t mask[3]; /* of red, green, blue; 16 and 32 bits */
} bmp;

static uint32_t le(const uint8_t *p, int bytes)
{
    uint32_t v = 0;
    for (int i = 0; i < bytes; i++)
        v |= (uint32_t)p[i] << (8 * i);
    return v;
}

static bool fail(char *why, const char *text)
{
    snprintf(why, HN_IMAGE_WHY, "%s", text);
    return false;
}

static bool read_masks(bmp *b, uint32_t how, uint32_t header, char *why)
{
    static const uint32_t plain[2][3] = { { 0x7c00, 0x03e0, 0x001f }, { 0xff0000, 0xff00, 0xff } };
    memcpy(b->mask, plain[b->bits == 32], sizeof b->mask);
    if (how == RGB) return true;
    if ((how != BITFIELDS && how != ALPHA_BITFIELDS) || (b->bits != 16 && b->bits != 32))
        return fail(why, "compressed bitmaps are not read");
    if (b->n < FILE_HEADER + INFO_HEADER + 12) return fail(why, "");
    for (int i = 0; i < 3; i++)
        if (!(b->mask[i] = le(b->bytes + FILE_HEADER + INFO_HEADER + 4 * i, 4))) return fail(why, "a colour mask is empty");
    if (header == INFO_HEADER) b->palette += how == BITFIELDS ? 12 : 16;
    return true;
}

static bool read_info(bmp *b, uint32_t header, char *why)
{
    const uint8_t *p = b->bytes + FILE_HEADER;
    if (b->n < FILE_HEADER + INFO_HEADER) return fail(why, "");
    const int64_t h = (int32_t)le(p + 8, 4);
    b->w = (int32_t)le(p + 4, 4);
    b->h = h < 0 ? -h : h;
    b->top_down = h < 0;
    b->bits = (int)le(p + 14, 2);
    b->entry_bytes = 4;
    const uint32_t used = le(p + 32, 4);
    b->n_colour = b->bits > 8 ? 0 : used && used <= 256 ? (int)used : 1 << b->bits;
    return read_masks(b, le(p + 16, 4), header, why);
}

static bool parse(const uint8_t *bytes, size_t n, bmp *b, char *why)
{
    *b = (bmp){ .bytes = bytes, .n = n, .entry_bytes = 3 };
    if (n < FILE_HEADER + CORE_HEADER) return fail(why, "");
    const uint32_t header = le(bytes + FILE_HEADER, 4);
    b->pixels = le(bytes + 10, 4);
    b->palette = (size_t)FILE_HEADER + header;
    if (header == CORE_HEADER) {
        b->w = le(bytes + 18, 2), b->h = le(bytes + 20, 2), b->bits = (int)le(bytes + 24, 2);
        b->n_colour = b->bits > 8 ? 0 : 1 << b->bits;
    } else if (header < INFO_HEADER || header > 1024 || !read_info(b, header, why)) {
        return why[0] ? false : fail(why, "its header is none that is known");
    }
    if (b->bits != 1 && b->bits != 4 && b->bits != 8 && b->bits != 16 && b->bits != 24 && b->bits != 32)
        return fail(why, "it has an odd number of bits a pixel");
    if (b->w < 1 || b->h < 1) return fail(why, "it has no pixels");
    b->row_bytes = (b->w * b->bits + 31) / 32 * 4;
    return true;
}

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    bmp b;
    if (!parse(bytes, n, &b, why)) return false;
    *ret_h = b.h;
    *ret_w = b.w;
    return true;
}

/* The masked bits as a number from 0 to 255. */
static uint8_t masked(uint32_t v, uint32_t mask)
{
    const int low = __builtin_ctz(mask);
    const uint64_t most = mask >> low, x = (v & mask) >> low;
    return (uint8_t)((x * 255 + most / 2) / most);
}

static bool pixel(const bmp *b, const uint8_t *row, int64_t x, uint8_t *ret)
{
    if (b->bits == 24) {
        for (int i = 0; i < 3; i++)
            ret[i] = row[3 * x + 2 - i];
        return true;
    }
    if (b->bits > 8) {
        const uint32_t v = le(row + x * b->bits / 8, b->bits / 8);
        for (int i = 0; i < 3; i++)
            ret[i] = masked(v, b->mask[i]);
        return true;
    }
    const int per = 8 / b->bits, shift = 8 - b->bits * (int)(x % per + 1);
    const int entry = row[x / per] >> shift & ((1 << b->bits) - 1);
    if (entry >= b->n_colour) return false;
    for (int i = 0; i < 3; i++)
        ret[i] = b->bytes[b->palette + (size_t)(entry * b->entry_bytes + 2 - i)];
    return true;
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    bmp b;
    if (!parse(bytes, n, &b, why)) return false;
    if (b.palette + (size_t)(b.n_colour * b.entry_bytes) > n) return fail(why, "");
    if (b.pixels > n || (n - b.pixels) / (size_t)b.row_bytes < (size_t)h) return fail(why, "");
    for (int64_t y = 0; y < h; y++) {
        const uint8_t *row = bytes + b.pixels + (size_t)((b.top_down ? y : h - 1 - y) * b.row_bytes);
        for (int64_t x = 0; x < w; x++)
            if (!pixel(&b, row, x, ret + 3 * (y * w + x))) return fail(why, "a pixel is beyond the palette");
    }
    return true;
}

const hn_image_codec hn_image_bmp = { .name = "BMP", .size = size, .rgb = rgb };
