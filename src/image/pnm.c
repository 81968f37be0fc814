/* Portable bitmaps, graymaps and pixmaps (P1 to P6), and portable arbitrary maps (P7) of 1 to 4 channels. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image/codec.h"

typedef struct pnm {
    const uint8_t *at, *end;
    int kind;          /* 1 to 7 */
    int64_t w, h, max; /* largest sample */
    int channels;
    bool plain, bitmap; /* samples in decimal; a bit a sample, 1 is black */
} pnm;

static bool fail(char *why, const char *text)
{
    snprintf(why, HN_IMAGE_WHY, "%s", text);
    return false;
}

static void skip_space(pnm *p)
{
    while (p->at < p->end && (isspace(*p->at) || *p->at == '#')) {
        if (*p->at++ != '#') continue;
        while (p->at < p->end && *p->at != '\n')
            p->at++;
    }
}

static bool number(pnm *p, int64_t *ret)
{
    int64_t v = 0;
    skip_space(p);
    if (p->at == p->end || !isdigit(*p->at)) return false;
    for (; p->at < p->end && isdigit(*p->at) && v < INT32_MAX; p->at++)
        v = v * 10 + (*p->at - '0');
    *ret = v;
    return v <= INT32_MAX;
}

/* Lines of a word and its value, up to ENDHDR. */
static bool read_pam(pnm *p)
{
    int64_t channels = 0;
    for (;;) {
        char word[16] = "";
        size_t n = 0;
        skip_space(p);
        while (p->at < p->end && isupper(*p->at) && n < sizeof word - 1)
            word[n++] = (char)*p->at++;
        if (strcmp(word, "ENDHDR") == 0) break;
        if (strcmp(word, "TUPLTYPE") == 0) {
            while (p->at < p->end && *p->at != '\n')
                p->at++;
            continue;
        }
        int64_t *to = strcmp(word, "WIDTH") == 0 ? &p->w : strcmp(word, "HEIGHT") == 0 ? &p->h : strcmp(word, "DEPTH") == 0 ? &channels
                    : strcmp(word, "MAXVAL") == 0 ? &p->max : NULL;
        if (!to || !number(p, to)) return false;
    }
    p->channels = channels >= 1 && channels <= 4 ? (int)channels : 0;
    return p->channels > 0;
}

static bool parse(const uint8_t *bytes, size_t n, pnm *p, char *why)
{
    *p = (pnm){ .at = bytes + 2, .end = bytes + n, .kind = bytes[1] - '0', .max = 1 };
    p->plain = p->kind <= 3;
    p->bitmap = p->kind == 1 || p->kind == 4;
    p->channels = p->kind == 3 || p->kind == 6 ? 3 : 1;
    if (p->kind == 7 ? !read_pam(p) : !number(p, &p->w) || !number(p, &p->h) || (!p->bitmap && !number(p, &p->max)))
        return fail(why, "its header is damaged");
    if (p->max < 1 || p->max > 65535 || p->w < 1 || p->h < 1) return fail(why, "its header is damaged");
    if (!p->plain) p->at++; /* one white space */
    return true;
}

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    pnm p;
    if (!parse(bytes, n, &p, why)) return false;
    *ret_h = p.h;
    *ret_w = p.w;
    return true;
}

/* Binary samples: is all of them there? */
static bool complete(const pnm *p)
{
    if (p->plain) return true;
    if (p->at > p->end) return false;
    const int64_t bytes = p->max > 255 ? 2 : 1, row = p->bitmap ? (p->w + 7) / 8 : p->w * p->channels * bytes;
    return (p->end - p->at) / row >= p->h;
}

/* Bits of a plain bitmap need no space between them. */
static bool plain_bit(pnm *p, int64_t *ret)
{
    skip_space(p);
    if (p->at == p->end || (*p->at != '0' && *p->at != '1')) return false;
    *ret = *p->at++ - '0';
    return true;
}

static bool sample(pnm *p, int64_t x, int64_t *ret)
{
    if (p->kind == 1) return plain_bit(p, ret);
    if (p->plain) return number(p, ret);
    if (p->bitmap) {
        *ret = *p->at >> (7 - x % 8) & 1;
        p->at += x % 8 == 7 || x == p->w - 1;
        return true;
    }
    *ret = *p->at++;
    if (p->max > 255) *ret = *ret << 8 | *p->at++;
    return true;
}

static bool pixel(pnm *p, int64_t x, uint8_t *ret)
{
    int64_t v[4] = { 0 };
    for (int i = 0; i < p->channels; i++) {
        if (!sample(p, x, &v[i])) return false;
        if (v[i] > p->max) v[i] = p->max;
        if (p->bitmap) v[i] = 1 - v[i];
    }
    for (int i = 0; i < 3; i++)
        ret[i] = (uint8_t)((v[p->channels >= 3 ? i : 0] * 255 + p->max / 2) / p->max);
    return true;
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    pnm p;
    if (!parse(bytes, n, &p, why)) return false;
    if (!complete(&p)) return false;
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            if (!pixel(&p, x, ret + 3 * (y * w + x))) return false;
    return true;
}

const hn_image_codec hn_image_pnm = { .name = "portable", .size = size, .rgb = rgb };
