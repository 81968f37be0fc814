/* Encoded images: right pixels, and one clear error for whatever is damaged, foreign or too large. */
#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "harness.h"

enum { H = 3, W = 4, PIXELS = H * W };

typedef struct sample {
    const char *name;
    bool from_module;
    const char *hex;
    uint8_t rgb[PIXELS * 3];
} sample;

static const sample samples[] = {
#define X(name, from_module, hex, ...) { #name, from_module, hex, { __VA_ARGS__ } },
#include "samples.def"
#undef X
};

/* In memory of its own, so that a sanitizer sees every read past the end. */
static uint8_t *bytes_of(const char *hex, size_t *ret_n)
{
    const size_t n = strlen(hex) / 2;
    uint8_t *p = malloc(n);
    CHECK(p);
    for (size_t i = 0; i < n; i++) {
        unsigned v = 0;
        CHECK_EQ(sscanf(hex + 2 * i, "%2x", &v), 1);
        p[i] = (uint8_t)v;
    }
    *ret_n = n;
    return p;
}

static bool has_module(void)
{
    static const uint8_t none[] = { 0xff, 0xd8, 0xff };
    hn_diag dg = { 0 };
    int64_t h, w;
    return hn_image_size(none, sizeof none, &h, &w, &dg) != HONE_E_NOTFOUND;
}

static const sample *next(int *i)
{
    const bool all = has_module();
    while (*i < HN_COUNT(samples) && samples[*i].from_module && !all)
        ++*i;
    return *i < HN_COUNT(samples) ? &samples[(*i)++] : NULL;
}

TEST(the_module_is_there)
{
    if (!has_module()) SKIP("libhone-image.so reads no JPEG here: libraries of image formats were missing when it was built");
    for (int i = 0; i < HN_COUNT(samples); i++) {
        hn_diag dg = { 0 };
        int64_t h, w;
        size_t n;
        uint8_t *p = bytes_of(samples[i].hex, &n);
        CHECK_OK(hn_image_size(p, n, &h, &w, &dg), &dg);
        free(p);
    }
}

TEST(pixels)
{
    const sample *s;
    for (int i = 0; (s = next(&i));) {
        hn_diag dg = { 0 };
        int64_t h, w;
        size_t n;
        uint8_t *p = bytes_of(s->hex, &n), rgb[PIXELS * 3], bgr[PIXELS * 3], gray[PIXELS];
        hn_test_note("%s", s->name);
        CHECK_OK(hn_image_size(p, n, &h, &w, &dg), &dg);
        CHECK_EQ(h, H);
        CHECK_EQ(w, W);
        CHECK_OK(hn_image_decode(p, n, HN_IMAGE_RGB, h, w, rgb, &dg), &dg);
        CHECK_OK(hn_image_decode(p, n, HN_IMAGE_BGR, h, w, bgr, &dg), &dg);
        CHECK_OK(hn_image_decode(p, n, HN_IMAGE_GRAY, h, w, gray, &dg), &dg);
        CHECK(memcmp(rgb, s->rgb, sizeof rgb) == 0);
        for (int k = 0; k < PIXELS; k++) {
            const uint8_t *c = rgb + 3 * k;
            CHECK(bgr[3 * k] == c[2] && bgr[3 * k + 1] == c[1] && bgr[3 * k + 2] == c[0]);
            CHECK_NEAR(gray[k], 0.299 * c[0] + 0.587 * c[1] + 0.114 * c[2], 0.51);
        }
        CHECK_EQ(hn_image_decode(p, n, HN_IMAGE_RGB, h, w + 1, rgb, &(hn_diag){ 0 }), HONE_E_SHAPE);
        free(p);
    }
}

/* Whatever the bytes: pixels or an error, nothing outside them read, nothing outside the room written. */
static void any_bytes(const uint8_t *p, size_t n)
{
    enum { MOST = 1 << 20 };
    hn_diag dg = { 0 };
    int64_t h, w;
    if (hn_image_size(p, n, &h, &w, &dg) != HONE_OK) {
        CHECK(dg.message[0]);
        return;
    }
    if (h * w > MOST) return;
    uint8_t *room = malloc((size_t)(h * w * 3));
    CHECK(room);
    if (hn_image_decode(p, n, HN_IMAGE_RGB, h, w, room, &dg) != HONE_OK) CHECK(dg.message[0]);
    free(room);
}

TEST(cut_short)
{
    const sample *s;
    for (int i = 0; (s = next(&i));) {
        size_t n;
        uint8_t *p = bytes_of(s->hex, &n);
        hn_test_note("%s", s->name);
        for (size_t k = 0; k < n; k++) {
            uint8_t *part = malloc(k + !k);
            CHECK(part);
            memcpy(part, p, k);
            any_bytes(part, k);
            free(part);
        }
        free(p);
    }
}

TEST(damaged)
{
    enum { ROUNDS = 300 };
    const sample *s;
    hn_rng r;
    hn_rng_init(&r, 5);
    for (int i = 0; (s = next(&i));) {
        size_t n;
        uint8_t *p = bytes_of(s->hex, &n);
        hn_test_note("%s", s->name);
        for (int k = 0; k < ROUNDS; k++) {
            const size_t at = (size_t)hn_rng_below(&r, (int64_t)n);
            const uint8_t was = p[at];
            p[at] = (uint8_t)hn_rng_below(&r, 256);
            any_bytes(p, n);
            if (k % 4) p[at] = was; /* some faults pile up */
        }
        free(p);
    }
}

static void reads(const char *text, size_t n, const char *pixels)
{
    hn_diag dg = { 0 };
    int64_t h, w;
    uint8_t rgb[64 * 3];
    char got[800] = "";
    hn_test_note("%.40s", text);
    CHECK_OK(hn_image_size(text, n, &h, &w, &dg), &dg);
    CHECK(h * w <= 64);
    CHECK_OK(hn_image_decode(text, n, HN_IMAGE_RGB, h, w, rgb, &dg), &dg);
    for (int64_t i = 0; i < h * w; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%d,%d,%d", i ? " " : "", rgb[3 * i], rgb[3 * i + 1], rgb[3 * i + 2]);
    CHECK_STR(got, pixels);
}

#define READS(text, pixels) reads(text, sizeof(text) - 1, pixels)

TEST(portable_formats)
{
    READS("P1 # black is 1\n3 1\n101", "0,0,0 255,255,255 0,0,0");
    READS("P2\n2 1 15\n0 7", "0,0,0 119,119,119");
    READS("P3 1 1 255 1 2 3", "1,2,3");
    READS("P4\n9 1\n\x80\x80", "0,0,0 255,255,255 255,255,255 255,255,255 255,255,255 255,255,255 255,255,255 255,255,255 0,0,0");
    READS("P5 2 1 255\n\x01\xff", "1,1,1 255,255,255");
    READS("P5 1 1 65535\n\x80\x00", "128,128,128");
    READS("P6 1 2 255\n\x01\x02\x03\x04\x05\x06", "1,2,3 4,5,6");
    READS("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n\x07\x08\x09\x00", "7,8,9");
    READS("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\n\x07\x01", "7,7,7");
}

static void fails(const void *p, size_t n, hone_status code, const char *says, const char *hint)
{
    hn_diag dg = { 0 };
    int64_t h = 0, w = 0;
    hone_status s = hn_image_size(p, n, &h, &w, &dg);
    uint8_t room[256];
    if (s == HONE_OK) s = hn_image_decode(p, n, HN_IMAGE_RGB, h, w, room, &dg);
    CHECK_EQ(s, code);
    if (!strstr(dg.message, says)) FAIL("\"%s\" does not say \"%s\"", dg.message, says);
    CHECK(strstr(dg.hint, hint));
}

#define FAILS(text, code, says) fails(text, sizeof(text) - 1, code, says, "")

TEST(what_is_no_image)
{
    FAILS("", HONE_E_UNSUPPORTED, "no image");
    FAILS("hello", HONE_E_UNSUPPORTED, "no image in BMP");
    FAILS("P6 1 1 255\n\x01\x02", HONE_E_FORMAT, "portable image: damaged or cut short");
    FAILS("P5 100000 100000 255\n", HONE_E_LIMIT, "100000 by 100000 pixels");
    FAILS("P5 0 1 255\n", HONE_E_FORMAT, "header");
    FAILS("P7\nWIDTH 1\nNONSENSE 2\nENDHDR\n", HONE_E_FORMAT, "header");
}

/* Bits 24 to 30 of offset 30: how a bitmap is compressed. */
TEST(compressed_bitmaps)
{
    for (int i = 0; i < HN_COUNT(samples); i++) {
        size_t n;
        if (strcmp(samples[i].name, "bmp_pal") != 0) continue;
        uint8_t *p = bytes_of(samples[i].hex, &n);
        p[30] = 1;
        fails(p, n, HONE_E_FORMAT, "compressed bitmaps are not read", "");
        free(p);
    }
}

TEST(without_the_module)
{
    static const uint8_t png[] = "\x89PNG\r\n\x1a\n";
    CHECK(setenv("HONE_IMAGE_MODULE", "/nowhere/libhone-image.so", 1) == 0);
    fails(png, 8, HONE_E_NOTFOUND, "reading PNG images needs libhone-image.so, which is not there", "libpng-dev");
    READS("P3 1 1 255 1 2 3", "1,2,3");
}
