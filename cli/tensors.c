/* Inputs: from files, or made to fit. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *file_of(const cli_options *o, const char *name)
{
    for (int i = 0; i < o->n_input; i++)
        if (strcmp(o->input_name[i], name) == 0) return o->input_file[i];
    return NULL;
}

/* Extents of an input: its own, then what --shape says, else 1 where they are open. */
static int64_t take_shape(const cli_options *o, const hone_io *io, hone_tensor *t)
{
    int64_t n = 1;
    t->dtype = io->dtype;
    t->rank = io->rank;
    for (int a = 0; a < io->rank; a++) t->dim[a] = io->dim[a] < 0 ? 1 : io->dim[a];
    for (int i = 0; i < o->model.n_profile; i++)
        if (strcmp(o->profile[i].input, io->name) == 0 && o->profile[i].rank == io->rank)
            memcpy(t->dim, o->profile[i].opt, sizeof(int64_t) * (size_t)io->rank);
    for (int a = 0; a < io->rank; a++) n *= t->dim[a];
    t->bytes = ((size_t)n * (size_t)hone_dtype_bits(io->dtype) + 7) / 8;
    return n;
}

/* A file that is no .npy holds the bare bytes of the input's type. */
static const char *raw_read(const cli_options *o, const hone_io *io, FILE *f, hone_tensor *ret)
{
    hone_tensor t = { 0 };
    take_shape(o, io, &t);
    t.data = malloc(t.bytes + 64);
    if (!t.data) return "out of memory";
    rewind(f);
    if (fread(t.data, 1, t.bytes, f) != t.bytes || fgetc(f) != EOF) {
        free(t.data);
        return "neither a .npy file nor as many bytes as the input has";
    }
    *ret = t;
    return NULL;
}

static const char *any_read(const cli_options *o, const hone_io *io, const char *path, hone_tensor *ret)
{
    char magic[6] = { 0 };
    FILE *f = fopen(path, "rb");
    if (!f) return "it cannot be opened";
    const bool npy = fread(magic, 1, sizeof magic, f) == sizeof magic && memcmp(magic, "\x93NUMPY", 6) == 0;
    const char *why = npy ? cli_npy_read(path, ret) : raw_read(o, io, f, ret);
    fclose(f);
    return why;
}

static hone_status from_file(const cli_options *o, const hone_io *io, const char *path, hone_tensor *ret, hone_error **err)
{
    const char *why = any_read(o, io, path, ret);
    if (why) {
        *err = cli_error("input \"%s\" from \"%s\": %s", io->name, path, why);
        return HONE_E_INVALID;
    }
    if (ret->dtype == io->dtype) return HONE_OK;
    *err = cli_error("input \"%s\" from \"%s\" is %s, the model wants %s", io->name, path, hone_dtype_name(ret->dtype),
                     hone_dtype_name(io->dtype));
    hone_tensor_free(ret);
    return HONE_E_TYPE;
}

hone_status cli_file_input(const cli_options *o, const hone_io *io, hone_tensor *ret, hone_error **err)
{
    const char *path = file_of(o, io->name);
    return path ? from_file(o, io, path, ret, err) : HONE_OK;
}

void cli_free_tensors(hone_tensor *t, int n)
{
    for (int i = 0; i < n; i++) hone_tensor_free(&t[i]);
}

hone_status cli_model_inputs(const cli_options *o, hone_model *m, hone_tensor *ret, char **ret_note, hone_error **err)
{
    hone_status s = hone_model_make_inputs(m, o->seed, ret, ret_note, err);
    hone_io io;
    for (int i = 0; s == HONE_OK && hone_model_io(m, i, &io, NULL) == HONE_OK && !io.is_output; i++) {
        const char *path = file_of(o, io.name);
        if (!path) continue;
        hone_tensor_free(&ret[i]);
        s = from_file(o, &io, path, &ret[i], err);
    }
    return s;
}

/* An engine does not say what its integers mean: zeros fit any table. */
static hone_status made_up(const cli_options *o, const hone_io *io, hone_tensor *ret, hone_error **err)
{
    hone_tensor t = { 0 };
    const int64_t n = take_shape(o, io, &t);
    t.data = calloc(1, t.bytes + 64);
    if (!t.data) {
        *err = cli_error("no memory for input \"%s\"", io->name);
        return HONE_E_NOMEM;
    }
    uint64_t x = o->seed * 0x9e3779b97f4a7c15u + 1;
    for (int64_t i = 0; io->dtype == HONE_DTYPE_F32 && i < n; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        ((float *)t.data)[i] = (float)(x >> 40) * 0x1p-24f;
    }
    *ret = t;
    return HONE_OK;
}

hone_status cli_engine_inputs(const cli_options *o, hone_engine *e, hone_context *c, hone_tensor *ret, int *ret_n,
                              hone_error **err)
{
    hone_io io;
    hone_status s = HONE_OK;
    *ret_n = 0;
    for (int i = 0; i < hone_engine_io_count(e) && s == HONE_OK; i++) {
        s = hone_engine_io(e, i, &io, err);
        if (s != HONE_OK || io.is_output) continue;
        const char *path = file_of(o, io.name);
        s = path ? from_file(o, &io, path, &ret[i], err) : made_up(o, &io, &ret[i], err);
        if (s != HONE_OK) break;
        ++*ret_n;
        s = hone_context_set_shape(c, i, ret[i].rank, ret[i].dim, err);
        if (s == HONE_OK) s = hone_context_bind(c, i, ret[i].data, ret[i].bytes, err);
    }
    return s;
}

hone_status cli_output(hone_engine *e, hone_context *c, int i, hone_tensor *ret, hone_error **err)
{
    hone_io io;
    hone_tensor t = { 0 };
    hone_status s = hone_engine_io(e, i, &io, err);
    if (s == HONE_OK) s = hone_context_shape(c, i, &t.rank, t.dim, err);
    if (s != HONE_OK) return s;
    t.dtype = io.dtype;
    t.data = (void *)(uintptr_t)hone_context_output(c, i, &t.bytes);
    *ret = t;
    return HONE_OK;
}

hone_error *cli_error(const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return hone_error_create(HONE_E_INVALID, text);
}
