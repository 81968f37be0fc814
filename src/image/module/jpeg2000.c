/* JPEG 2000 files and bare codestreams by OpenJPEG: one to four components of one size, unsigned or signed. */
#include <stdlib.h>
#include <string.h>

#include <openjpeg.h>

#include "image/module/module.h"

typedef struct memory {
    const uint8_t *at;
    size_t n, pos;
} memory;

static OPJ_SIZE_T take(void *dst, OPJ_SIZE_T n, void *user)
{
    memory *m = user;
    const size_t left = m->n - m->pos, got = n < left ? n : left;
    if (got == 0) return (OPJ_SIZE_T)-1;
    memcpy(dst, m->at + m->pos, got);
    m->pos += got;
    return got;
}

static OPJ_OFF_T skip(OPJ_OFF_T n, void *user)
{
    memory *m = user;
    const size_t left = m->n - m->pos;
    if (n < 0 || (size_t)n > left) return -1;
    m->pos += (size_t)n;
    return n;
}

static OPJ_BOOL seek(OPJ_OFF_T to, void *user)
{
    memory *m = user;
    if (to < 0 || (size_t)to > m->n) return OPJ_FALSE;
    m->pos = (size_t)to;
    return OPJ_TRUE;
}

typedef struct decoder {
    memory m;
    opj_codec_t *codec;
    opj_stream_t *stream;
    opj_image_t *image;
} decoder;

static bool open_header(decoder *d)
{
    opj_dparameters_t p;
    opj_set_default_decoder_parameters(&p);
    d->codec = opj_create_decompress(d->m.at[0] ? OPJ_CODEC_J2K : OPJ_CODEC_JP2); /* a box begins with its length */
    d->stream = opj_stream_create(1 << 16, OPJ_TRUE);
    if (!d->codec || !d->stream) return false;
    opj_stream_set_user_data(d->stream, &d->m, NULL);
    opj_stream_set_user_data_length(d->stream, d->m.n);
    opj_stream_set_read_function(d->stream, take);
    opj_stream_set_skip_function(d->stream, skip);
    opj_stream_set_seek_function(d->stream, seek);
    return opj_setup_decoder(d->codec, &p) && opj_read_header(d->stream, d->codec, &d->image) && d->image->numcomps > 0;
}

static void done(decoder *d)
{
    if (d->image) opj_image_destroy(d->image);
    if (d->stream) opj_stream_destroy(d->stream);
    if (d->codec) opj_destroy_codec(d->codec);
}

static bool size(const uint8_t *bytes, size_t n, int64_t *ret_h, int64_t *ret_w, char *why)
{
    decoder d = { .m = { bytes, n, 0 } };
    const bool ok = open_header(&d);
    (void)why;
    if (ok) {
        *ret_h = d.image->comps[0].h;
        *ret_w = d.image->comps[0].w;
    }
    done(&d);
    return ok;
}

static bool component_ok(const opj_image_comp_t *c, int64_t h, int64_t w)
{
    return c->data && c->h == h && c->w == w && c->prec >= 1 && c->prec <= 16;
}

static uint8_t sample(const opj_image_comp_t *c, int64_t i)
{
    int32_t v = c->data[i] + (c->sgnd ? 1 << (c->prec - 1) : 0);
    const int32_t most = (1 << c->prec) - 1;
    v = v < 0 ? 0 : v > most ? most : v;
    return (uint8_t)(c->prec > 8 ? v >> (c->prec - 8) : c->prec == 8 ? v : v * 255 / most);
}

static bool copy(const opj_image_t *m, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    const int colours = m->numcomps >= 3 ? 3 : 1;
    if (m->color_space == OPJ_CLRSPC_SYCC || m->color_space == OPJ_CLRSPC_EYCC || m->color_space == OPJ_CLRSPC_CMYK)
        return hn_image_fail(why, "only gray and RGB colours are read");
    for (int k = 0; k < colours; k++)
        if (!component_ok(&m->comps[k], h, w)) return hn_image_fail(why, "its components differ in size or are deeper than 16 bits");
    for (int64_t i = 0; i < h * w; i++)
        for (int k = 0; k < 3; k++)
            ret[3 * i + k] = sample(&m->comps[colours == 3 ? k : 0], i);
    return true;
}

static bool rgb(const uint8_t *bytes, size_t n, int64_t h, int64_t w, uint8_t *ret, char *why)
{
    decoder d = { .m = { bytes, n, 0 } };
    const bool ok = open_header(&d) && opj_decode(d.codec, d.stream, d.image) && opj_end_decompress(d.codec, d.stream) &&
                    copy(d.image, h, w, ret, why);
    done(&d);
    return ok;
}

const hn_image_codec hn_image_jpeg2000 = { .name = "JPEG 2000", .size = size, .rgb = rgb };
