/* JPEG by libjpeg-turbo with its default transform and upsampling, which others use too. CMYK by the plain formula. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#include <jpeglib.h>

#include "image/module/module.h"

typedef struct errors {
    struct jpeg_error_mgr manager; /* first: libjpeg hands on a pointer to it */
    jmp_buf out;
    char *why;
} errors;

static void on_error(j_common_ptr c)
{
    errors *e = (errors *)(void *)c->err;
    char text[JMSG_LENGTH_MAX];
    c->err->format_message(c, text);
    hn_image_fail(e->why, text);
    longjmp(e->out, 1);
}

static void on_message(j_common_ptr c, int level)
{
    (void)c, (void)level;
}

/* Inverted where Adobe's marker stands, as Photoshop writes it. */
static void cmyk_to_rgb(uint8_t *cmyk, int64_t pixels, bool inverted, uint8_t *ret)
{
    for (int64_t i = 0; i < pixels; i++)
        for (int k = 0; k < 3; k++) {
            const int c = inverted ? cmyk[4 * i + k] : 255 - cmyk[4 * i + k], black = inverted ? cmyk[4 * i + 3] : 255 - cmyk[4 * i + 3];
            ret[3 * i + k] = (uint8_t)((c * black + 127) / 255);
        }
}

static void read_rows(struct jpeg_decompress_struct *d, uint8_t *line, int64_t w, uint8_t *rgb)
{
    const bool cmyk = d->out_color_space == JCS_CMYK;
    while (d->output_scanline < d->output_height) {
        uint8_t *to = rgb + (size_t)((int64_t)d->output_scanline * w * 3), *row = cmyk ? line : to;
        jpeg_read_scanlines(d, &row, 1);
        if (cmyk) cmyk_to_rgb(line, w, d->saw_Adobe_marker, to);
    }
}

/* Everything that may jump out. line has 4 bytes a pixel of a row; rgb NULL: the size alone. */
static bool read(struct jpeg_decompress_struct *d, errors *e, const uint8_t *bytes, size_t n, int64_t *h, int64_t *w, uint8_t *line,
                 uint8_t *rgb)
{
    if (setjmp(e->out)) return false;
    jpeg_create_decompress(d);
    jpeg_mem_src(d, bytes, n);
    jpeg_read_header(d, TRUE);
    if (!rgb) {
        *h = d->image_height;
        *w = d->image_width;
        return true;
    }
    d->out_color_space = d->num_components == 4 ? JCS_CMYK : JCS_RGB;
    jpeg_start_decompress(d);
    if ((int64_t)d->output_width != *w || (int64_t)d->output_height != *h) return hn_image_fail(e->why, "its size changed");
    read_rows(d, line, *w, rgb);
    jpeg_finish_decompress(d);
    return true;
}

static bool run(const uint8_t *bytes, size_t n, int64_t *h, int64_t *w, uint8_t *rgb, char *why)
{
    struct jpeg_decompress_struct d = { 0 };
    errors e = { .why = why };
    uint8_t *line = rgb ? malloc((size_t)*w * 4) : NULL;
    if (rgb && !line) return hn_image_fail(why, "out of memory");
    d.err = jpeg_std_error(&e.manager);
    e.manager.error_exit = on_error;
    e.manager.emit_message = on_message;
    const bool ok = read(&d, &e, bytes, n, h, w, line, rgb);
    jpeg_destroy_decompress(&d);
    free(line);
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

const hn_image_codec hn_image_jpeg = { .name = "JPEG", .size = size, .rgb = rgb };
