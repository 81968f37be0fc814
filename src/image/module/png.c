/* PNG by libpng: palettes and low depths widened, 16 bits cut to 8, alpha dropped. No colour management, as the standard's reference. */
#include <png.h>
#include <stdlib.h>
#include <string.h>

#include "image/module/module.h"

typedef struct source {
    const uint8_t *at;
    size_t left;
    char *why;
    uint8_t **row;
} source;

static void take(png_structp png, png_bytep dst, png_size_t n)
{
    source *s = png_get_io_ptr(png);
    if (n > s->left) png_error(png, "the file is cut short");
    memcpy(dst, s->at, n);
    s->at += n;
    s->left -= n;
}

static void on_error(png_structp png, png_const_charp text)
{
    hn_image_fail(((source *)png_get_error_ptr(png))->why, text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
    (void)png, (void)text;
}

static void to_rgb8(png_structp png)
{
    png_set_expand(png);
    png_set_scale_16(png);
    png_set_gray_to_rgb(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
}

/* Everything that may jump out; all it needs afterwards is in *s. rgb NULL: the size alone. */
static bool read(png_structp png, png_infop info, source *s, int64_t *h, int64_t *w, uint8_t *rgb)
{
    if (setjmp(png_jmpbuf(png))) return false;
    png_set_read_fn(png, s, take);
    png_read_info(png, info);
    if (!rgb) {
        *h = png_get_image_height(png, info);
        *w = png_get_image_width(png, info);
        return true;
    }
    to_rgb8(png);
    png_read_update_info(png, info);
    if (png_get_rowbytes(png, info) != (size_t)*w * 3) return hn_image_fail(s->why, "an odd form of pixels");
    for (int64_t y = 0; y < *h; y++)
        s->row[y] = rgb + (size_t)(y * *w * 3);
    png_read_image(png, s->row);
    return true;
}

static bool run(const uint8_t *bytes, size_t n, int64_t *h, int64_t *w, uint8_t *rgb, char *why)
{
    source s = { bytes, n, why, rgb ? malloc((size_t)*h * sizeof *s.row) : NULL };
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &s, on_error, on_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    const bool ok = info && (s.row || !rgb) ? read(png, info, &s, h, w, rgb) : hn_image_fail(why, "out of memory");
    png_destroy_read_struct(&png, &info, NULL);
    free(s.row);
    return ok;
}

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    return run(bytes, n, ret_h, ret_w, NULL, why);
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    return run(bytes, n, &h, &w, ret, why);
}

const hn_image_codec hn_image_png = { .name = "PNG", .size = size, .rgb = rgb };
