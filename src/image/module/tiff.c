/* TIFF by libtiff, the first page, through its RGBA interface: every photometric and compression that the library reads. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "image/module/module.h"

typedef struct memory {
    const uint8_t *at;
    uint64_t n, pos;
} memory;

static tmsize_t take(thandle_t h, void *dst, tmsize_t n)
{
    memory *m = h;
    const uint64_t left = m->pos < m->n ? m->n - m->pos : 0, got = (uint64_t)n < left ? (uint64_t)n : left;
    memcpy(dst, m->at + m->pos, got);
    m->pos += got;
    return (tmsize_t)got;
}

static tmsize_t put(thandle_t h, void *src, tmsize_t n)
{
    (void)h, (void)src, (void)n;
    return -1;
}

static toff_t seek(thandle_t h, toff_t to, int whence)
{
    memory *m = h;
    m->pos = whence == SEEK_SET ? to : whence == SEEK_CUR ? m->pos + to : m->n + to;
    return m->pos;
}

static int leave(thandle_t h)
{
    (void)h;
    return 0;
}

static toff_t length(thandle_t h)
{
    return ((memory *)h)->n;
}

static TIFF *open_memory(memory *m)
{
    TIFFSetErrorHandler(NULL); /* what it would print; the result says enough */
    TIFFSetWarningHandler(NULL);
    return TIFFClientOpen("image", "rm", m, take, put, seek, leave, length, NULL, NULL); /* m: no mapping */
}

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    memory m = { bytes, n, 0 };
    uint32_t h = 0, w = 0;
    TIFF *t = open_memory(&m);
    if (!t) return hn_image_fail(why, "");
    const bool ok = TIFFGetField(t, TIFFTAG_IMAGELENGTH, &h) && TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &w);
    TIFFClose(t);
    *ret_h = h;
    *ret_w = w;
    return ok;
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    char text[1024] = ""; /* as libtiff asks for */
    memory m = { bytes, n, 0 };
    uint32_t *raster = malloc((size_t)(h * w) * sizeof *raster);
    TIFF *t = raster ? open_memory(&m) : NULL;
    bool ok = t && TIFFRGBAImageOK(t, text) && TIFFReadRGBAImageOriented(t, (uint32_t)w, (uint32_t)h, raster, ORIENTATION_TOPLEFT, 1);
    for (int64_t i = 0; ok && i < h * w; i++) {
        ret[3 * i] = (uint8_t)TIFFGetR(raster[i]);
        ret[3 * i + 1] = (uint8_t)TIFFGetG(raster[i]);
        ret[3 * i + 2] = (uint8_t)TIFFGetB(raster[i]);
    }
    if (t) TIFFClose(t);
    free(raster);
    return ok ? true : hn_image_fail(why, raster ? text : "out of memory");
}

const hn_image_codec hn_image_tiff = { .name = "TIFF", .size = size, .rgb = rgb };
