/* Which format it is, who reads it, and the order of channels. */
#include "image/image.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dl.h"
#include "base/os.h"
#include "base/str.h"
#include "image/codec.h"

/* ---- the module ---- */
static struct {
    pthread_once_t once;
    const hn_image_module *module;
    hn_diag why;
} opened = { .once = PTHREAD_ONCE_INIT };

/* Beside the library or program that this code is in, installed or in a build folder. */
static void beside(const char *relative, hn_str *ret)
{
    static const char here;
    char self[1024] = "";
    Dl_info info;
    const char *file = dladdr(&here, &info) ? info.dli_fname : NULL;
    if (!file || !strchr(file, '/')) { /* a program found through $PATH */
        if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return;
        file = self;
    }
    const char *slash = strrchr(file, '/');
    hn_str_addf(ret, "%.*s/%s", slash ? (int)(slash - file) : 0, file, relative);
}

static hone_status open_module(hn_diag *dg)
{
    static const char *const places[] = { "libhone-image.so", "hone/libhone-image.so", "src/image/module/libhone-image.so",
                                          "../image/module/libhone-image.so", "../src/image/module/libhone-image.so",
                                          "../../src/image/module/libhone-image.so" };
    hn_str place[HN_COUNT(places)] = { 0 };
    const char *path[HN_COUNT(places) + 1] = { hn_env("HONE_IMAGE_MODULE") };
    const hn_image_module *(*get)(void) = NULL;
    void *lib;

    for (int i = 0; i < HN_COUNT(places); i++) {
        beside(places[i], &place[i]);
        path[i + 1] = hn_str_get(&place[i]);
    }
    hone_status s = hn_dl_open("libhone-image.so", path, path[0] ? 1 : HN_COUNT(path), &lib, NULL, dg);
    for (int i = 0; i < HN_COUNT(places); i++)
        hn_str_done(&place[i]);
    HN_TRY(s);
    const hn_dl_fn fn = { "hone_image_module", (void (**)(void))(void *)&get, false };
    HN_TRY(hn_dl_bind("libhone-image.so", lib, &fn, 1, dg));
    opened.module = get();
    if (opened.module->abi == HN_IMAGE_MODULE_ABI) return HONE_OK;
    return HN_RAISE(dg, HONE_E_VERSION, "libhone-image.so is of another Hone");
}

static void open_once(void)
{
    (void)open_module(&opened.why);
}

static hone_status from_module(const char *format, const hn_image_codec **ret, hn_diag *dg)
{
    pthread_once(&opened.once, open_once);
    const hn_image_module *m = opened.why.code ? NULL : opened.module;
    for (int i = 0; m && i < m->n; i++)
        if (strcmp(m->codec[i]->name, format) == 0) {
            *ret = m->codec[i];
            return HONE_OK;
        }
    if (opened.why.code == HONE_E_VERSION) {
        if (dg) *dg = opened.why;
        return HONE_E_VERSION;
    }
    hn_hint(dg, "Install libpng-dev, libjpeg62-turbo-dev, libtiff-dev, libwebp-dev and libopenjp2-7-dev (Debian) and build Hone again; "
                "keep libhone-image.so beside its libraries or name it in HONE_IMAGE_MODULE.");
    return HN_RAISE(dg, HONE_E_NOTFOUND, "reading %s images needs libhone-image.so%s", format,
                    m ? " with that format, which this one was built without" : ", which is not there");
}

/* ---- formats by their first bytes ---- */
static bool starts(const uint8_t *p, size_t n, const char *with, size_t bytes)
{
    return n >= bytes && memcmp(p, with, bytes) == 0;
}

static const char *module_format(const uint8_t *p, size_t n)
{
    if (starts(p, n, "\x89PNG\r\n\x1a\n", 8)) return "PNG";
    if (starts(p, n, "\xff\xd8\xff", 3)) return "JPEG";
    if (starts(p, n, "II*\0", 4) || starts(p, n, "MM\0*", 4) || starts(p, n, "II+\0", 4) || starts(p, n, "MM\0+", 4)) return "TIFF";
    if (n >= 12 && starts(p, n, "RIFF", 4) && memcmp(p + 8, "WEBP", 4) == 0) return "WebP";
    if (starts(p, n, "\0\0\0\x0cjP  \r\n\x87\n", 12) || starts(p, n, "\xff\x4f\xff\x51", 4)) return "JPEG 2000";
    return NULL;
}

static hone_status codec_of(const uint8_t *p, size_t n, const hn_image_codec **ret, hn_diag *dg)
{
    const char *format = module_format(p, n);
    if (format) return from_module(format, ret, dg);
    *ret = starts(p, n, "BM", 2) ? &hn_image_bmp : n > 2 && p[0] == 'P' && p[1] >= '1' && p[1] <= '7' ? &hn_image_pnm : NULL;
    if (*ret) return HONE_OK;
    return HN_RAISE(dg, HONE_E_UNSUPPORTED,
                    "%zu bytes are no image in BMP, JPEG, JPEG 2000, PNG, a portable format, TIFF or WebP", n);
}

static hone_status damaged(const hn_image_codec *c, const char *why, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_FORMAT, "%s image: %s", c->name, why[0] ? why : "damaged or cut short");
}

static hone_status size_by(const hn_image_codec *c, const void *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, hn_diag *dg)
{
    char why[HN_IMAGE_WHY] = "";
    int64_t h = 0, w = 0;

    if (!c->size(bytes, n, &h, &w, why)) return damaged(c, why, dg);
    if (h < 1 || w < 1) return damaged(c, "it has no pixels", dg);
    if (h > HN_IMAGE_MAX_PIXELS / w)
        return HN_RAISE(dg, HONE_E_LIMIT, "%s image of %lld by %lld pixels; %d pixels are allowed", c->name, (long long)h,
                        (long long)w, HN_IMAGE_MAX_PIXELS);
    *ret_h = h;
    *ret_w = w;
    return HONE_OK;
}

hone_status hn_image_size(const void *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, hn_diag *dg)
{
    const hn_image_codec *c;

    HN_TRY(codec_of(bytes, n, &c, dg));
    return size_by(c, bytes, n, ret_h, ret_w, dg);
}

/* ---- channels ---- */
static void swap_red_blue(uint8_t *p, int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++) {
        const uint8_t red = p[3 * i];
        p[3 * i] = p[3 * i + 2];
        p[3 * i + 2] = red;
    }
}

/* 0.299 R + 0.587 G + 0.114 B in 16 bits of fraction. */
static void to_gray(const uint8_t *rgb, int64_t pixels, uint8_t *ret)
{
    for (int64_t i = 0; i < pixels; i++)
        ret[i] = (uint8_t)((rgb[3 * i] * 19595u + rgb[3 * i + 1] * 38470u + rgb[3 * i + 2] * 7471u + 0x8000u) >> 16);
}

static hone_status decode_gray(const hn_image_codec *c, const void *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, hn_diag *dg)
{
    char why[HN_IMAGE_WHY] = "";
    uint8_t *rgb = malloc((size_t)(h * w * 3));

    if (!rgb) return HN_NOMEM(dg);
    const hone_status s = c->rgb(bytes, n, h, w, rgb, why) ? HONE_OK : damaged(c, why, dg);
    if (s == HONE_OK) to_gray(rgb, h * w, ret);
    free(rgb);
    return s;
}

hone_status hn_image_decode(const void *bytes, size_t n, hn_image_order o, int64_t h, int64_t w, uint8_t *ret, hn_diag *dg)
{
    char why[HN_IMAGE_WHY] = "";
    int64_t own_h = 0, own_w = 0;
    const hn_image_codec *c;

    HN_TRY(codec_of(bytes, n, &c, dg));
    HN_TRY(size_by(c, bytes, n, &own_h, &own_w, dg));
    if (own_h != h || own_w != w)
        return HN_RAISE(dg, HONE_E_SHAPE, "an image of %lld by %lld pixels where %lld by %lld were expected", (long long)own_h,
                        (long long)own_w, (long long)h, (long long)w);
    if (o == HN_IMAGE_GRAY) return decode_gray(c, bytes, n, h, w, ret, dg);
    if (!c->rgb(bytes, n, h, w, ret, why)) return damaged(c, why, dg);
    if (o == HN_IMAGE_BGR) swap_red_blue(ret, h * w);
    return HONE_OK;
}
