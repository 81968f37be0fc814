/* Inputs: from files, or made to fit. Outputs as numbers. */
#include "cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The inputs of a model or an engine. */
typedef struct inputs {
    hone_io at[CLI_MAX_IO];
    int index[CLI_MAX_IO]; /* in the owner's list */
    int n;
} inputs;

static hone_status add_input(inputs *s, const hone_io *io, int i, hone_error **err)
{
    if (io->is_output) return HONE_OK;
    if (i >= CLI_MAX_IO) {
        *err = cli_error("there are more than %d inputs", CLI_MAX_IO);
        return HONE_E_INVALID;
    }
    s->index[s->n] = i;
    s->at[s->n++] = *io;
    return HONE_OK;
}

static hone_status model_inputs(const hone_model *m, inputs *ret, hone_error **err)
{
    hone_io io;
    ret->n = 0;
    for (int i = 0; i < hone_model_io_count(m); i++)
        if (hone_model_io(m, i, &io, err) || add_input(ret, &io, i, err)) return hone_error_status(*err);
    return HONE_OK;
}

static hone_status engine_inputs(const hone_engine *e, inputs *ret, hone_error **err)
{
    hone_io io;
    ret->n = 0;
    for (int i = 0; i < hone_engine_io_count(e); i++)
        if (hone_engine_io(e, i, &io, err) || add_input(ret, &io, i, err)) return hone_error_status(*err);
    return HONE_OK;
}

static bool has(const inputs *s, const char *name)
{
    for (int i = 0; i < s->n; i++)
        if (strcmp(s->at[i].name, name) == 0) return true;
    return false;
}

static hone_status no_such_input(const inputs *s, const char *option, const char *name, hone_error **err)
{
    const char *names[CLI_MAX_IO];
    for (int i = 0; i < s->n; i++) names[i] = s->at[i].name;
    const char *near = cli_nearest(name, names, s->n);
    if (near) *err = cli_error("%s: there is no input \"%s\"; \"%s\" is one", option, name, near);
    else if (s->n > 0) *err = cli_error("%s: there is no input \"%s\"; the first is \"%s\"", option, name, names[0]);
    else *err = cli_error("%s: there is no input \"%s\": there are none", option, name);
    return HONE_E_INVALID;
}

/* Every name that was given must be an input's: a slip would otherwise run on made-up values. */
static hone_status check_names(const cli_options *o, const inputs *s, hone_error **err)
{
    for (int i = 0; i < o->n_input; i++)
        if (o->input_name[i] && !has(s, o->input_name[i])) return no_such_input(s, "--input", o->input_name[i], err);
    for (int i = 0; i < o->model.n_profile; i++)
        if (!has(s, o->profile[i].input)) return no_such_input(s, "--shape", o->profile[i].input, err);
    return HONE_OK;
}

/* ---- files ---- */
static const hone_profile *shape_of(const cli_options *o, const char *name)
{
    for (int i = 0; i < o->model.n_profile; i++)
        if (strcmp(o->profile[i].input, name) == 0) return &o->profile[i];
    return NULL;
}

/* A file that is no .npy holds the bare bytes of the input's type: its shape must be known. */
static const char *raw_read(const cli_options *o, const hone_io *io, FILE *f, hone_tensor *ret)
{
    const hone_profile *p = shape_of(o, io->name);
    hone_tensor t = { .dtype = io->dtype, .rank = io->rank };
    size_t n = 1;
    for (int a = 0; a < io->rank; a++) {
        t.dim[a] = p && p->rank == io->rank ? p->opt[a] : io->dim[a];
        if (t.dim[a] < 0) return cli_text("it is no .npy file and axis %d is open: give --shape", a);
        if (__builtin_mul_overflow(n, (size_t)t.dim[a], &n)) return "its shape is too large";
    }
    if (n > SIZE_MAX / 64) return "its shape is too large";
    t.bytes = (n * (size_t)hone_dtype_bits(io->dtype) + 7) / 8;
    t.data = malloc(t.bytes + 64);
    if (!t.data) return "there is no memory for it";
    rewind(f);
    const size_t got = fread(t.data, 1, t.bytes, f);
    if (got != t.bytes || fgetc(f) != EOF) {
        free(t.data);
        return cli_text("it is no .npy file and has %s than the %zu bytes of its tensor", got < t.bytes ? "less" : "more",
                        t.bytes);
    }
    *ret = t;
    return NULL;
}

static const char *any_read(const cli_options *o, const hone_io *io, const char *path, hone_tensor *ret)
{
    char magic[6] = { 0 };
    struct stat st;
    FILE *f = fopen(path, "rb");
    if (!f) return strerror(errno);
    if (fstat(fileno(f), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(f);
        return "it is a folder";
    }
    const size_t n = fread(magic, 1, sizeof magic, f);
    const bool npy = n == sizeof magic && memcmp(magic, "\x93NUMPY", 6) == 0, zip = n >= 4 && memcmp(magic, "PK\3\4", 4) == 0;
    const char *why = npy ? cli_npy_read(path, ret) : zip ? cli_npz_read(path, io->name, ret) : raw_read(o, io, f, ret);
    fclose(f);
    return why || ret->data ? why : "the archive has no array of that name";
}

static hone_status check_type(const hone_io *io, const char *path, hone_tensor *t, hone_error **err)
{
    if (t->dtype == io->dtype) return HONE_OK;
    *err = hone_error_create(HONE_E_TYPE, cli_text("input \"%s\" from \"%s\" is %s, the model wants %s", io->name, path,
                                                   hone_dtype_name(t->dtype), hone_dtype_name(io->dtype)));
    hone_tensor_free(t);
    return HONE_E_TYPE;
}

static hone_status unreadable(const hone_io *io, const char *path, const char *why, hone_error **err)
{
    *err = hone_error_create(HONE_E_IO, cli_text("input \"%s\" from \"%s\": %s", io->name, path, why));
    return HONE_E_IO;
}

/* A file of the input's own goes before an archive that happens to hold its name. */
static hone_status file_input(const cli_options *o, const hone_io *io, hone_tensor *ret, hone_error **err)
{
    for (int i = 0; i < o->n_input; i++) {
        if (!o->input_name[i] || strcmp(o->input_name[i], io->name) != 0) continue;
        const char *why = any_read(o, io, o->input_file[i], ret);
        return why ? unreadable(io, o->input_file[i], why, err) : check_type(io, o->input_file[i], ret, err);
    }
    for (int i = 0; i < o->n_input; i++) {
        if (o->input_name[i]) continue;
        const char *why = cli_npz_read(o->input_file[i], io->name, ret);
        if (why) return unreadable(io, o->input_file[i], why, err);
        if (ret->data) return check_type(io, o->input_file[i], ret, err);
    }
    return HONE_OK;
}

void cli_free_tensors(hone_tensor *t, int n)
{
    for (int i = 0; i < n; i++) hone_tensor_free(&t[i]);
}

hone_status cli_model_files(const cli_options *o, const hone_model *m, hone_tensor *ret, hone_error **err)
{
    inputs in;
    hone_status s = model_inputs(m, &in, err);
    if (s == HONE_OK) s = check_names(o, &in, err);
    for (int i = 0; s == HONE_OK && i < in.n; i++) s = file_input(o, &in.at[i], &ret[in.index[i]], err);
    return s;
}

static int find_output(const hone_model *m, const char *name, hone_io *ret)
{
    int output = 0;
    for (int i = 0; i < hone_model_io_count(m); i++) {
        if (hone_model_io(m, i, ret, NULL) || !ret->is_output) continue;
        if (strcmp(ret->name, name) == 0) return output;
        output++;
    }
    return -1;
}

hone_status cli_model_references(const cli_options *o, const hone_model *m, hone_tensor *ret, hone_error **err)
{
    if (o->n_reference && hone_model_io_count(m) > CLI_MAX_IO) {
        *err = cli_error("--reference: the model has more than %d inputs and outputs", CLI_MAX_IO);
        return HONE_E_INVALID;
    }
    for (int i = 0; i < o->n_reference; i++) {
        hone_io io;
        const int k = find_output(m, o->reference_name[i], &io);
        if (k < 0) {
            *err = cli_error("--reference: there is no output \"%s\"", o->reference_name[i]);
            return HONE_E_INVALID;
        }
        const char *why = any_read(o, &io, o->reference_file[i], &ret[k]);
        if (!why) continue;
        *err = hone_error_create(HONE_E_IO, cli_text("reference \"%s\" from \"%s\": %s", io.name, o->reference_file[i], why));
        return HONE_E_IO;
    }
    return HONE_OK;
}

hone_status cli_model_inputs(const cli_options *o, hone_model *m, hone_tensor *ret, char **ret_note, hone_error **err)
{
    const hone_status s = cli_model_files(o, m, ret, err);
    return s == HONE_OK ? hone_model_make_inputs(m, (uint64_t)o->seed, ret, ret_note, err) : s;
}

/* ---- engines ---- */
static void say_made(const char *note)
{
    static atomic_flag said = ATOMIC_FLAG_INIT; /* once, however many streams make theirs */
    if (!atomic_flag_test_and_set(&said)) fprintf(stderr, "made up: %s\n", note);
}

static hone_status set_shapes(const cli_options *o, const inputs *in, hone_context *c, const hone_tensor *t, hone_error **err)
{
    hone_status s = HONE_OK;
    for (int i = 0; s == HONE_OK && i < in->n; i++) {
        const int at = in->index[i];
        const hone_profile *p = shape_of(o, in->at[i].name);
        if (t[at].data) s = hone_context_set_shape(c, at, t[at].rank, t[at].dim, err);
        else if (p) s = hone_context_set_shape(c, at, p->rank, p->opt, err);
    }
    return s == HONE_OK ? hone_context_choose_shapes(c, err) : s;
}

hone_status cli_open(const cli_options *o, hone_engine **ret, hone_error **err)
{
    hone_engine_options how = HONE_ENGINE_OPTIONS_INIT;
    how.weight_budget = o->weight_budget;
    return hone_engine_open(o->positional, &how, ret, err);
}

hone_status cli_engine_inputs(const cli_options *o, hone_engine *e, hone_context *c, hone_tensor *ret, hone_error **err)
{
    inputs in;
    char *all = NULL, *note = NULL;
    hone_status s = engine_inputs(e, &in, err);
    if (s == HONE_OK) s = check_names(o, &in, err);
    for (int i = 0; s == HONE_OK && i < in.n; i++) s = file_input(o, &in.at[i], &ret[in.index[i]], err);
    if (s == HONE_OK) s = set_shapes(o, &in, c, ret, err);
    for (int i = 0; s == HONE_OK && i < in.n; i++) {
        hone_tensor *t = &ret[in.index[i]];
        if (!t->data) {
            s = hone_context_make_input(c, in.index[i], (uint64_t)o->seed, t, &note, err);
            if (s == HONE_OK) all = all ? cli_text("%s; %s", all, note) : cli_text("%s", note);
            hone_string_free(s == HONE_OK ? note : NULL);
        }
        if (s == HONE_OK) s = hone_context_bind(c, in.index[i], t->data, t->bytes, err);
    }
    if (s == HONE_OK && all && !o->json) say_made(all);
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

/* ---- numbers ---- */
static double half(uint16_t h)
{
    const int e = h >> 10 & 31, m = h & 1023;
    const double sign = h >> 15 ? -1 : 1;
    if (e == 31) return m ? (double)__builtin_nanf("") : sign * (double)__builtin_inff();
    return sign * (e ? __builtin_ldexp(1024 + m, e - 25) : __builtin_ldexp(m, -24));
}

static double brain(uint16_t h)
{
    const uint32_t bits = (uint32_t)h << 16;
    float f;
    memcpy(&f, &bits, sizeof f);
    return (double)f;
}

bool cli_element(const hone_tensor *t, size_t i, double *ret)
{
    const void *p = t->data;
    switch (t->dtype) {
    case HONE_DTYPE_F32: *ret = (double)((const float *)p)[i]; return true;
    case HONE_DTYPE_F64: *ret = ((const double *)p)[i]; return true;
    case HONE_DTYPE_F16: *ret = half(((const uint16_t *)p)[i]); return true;
    case HONE_DTYPE_BF16: *ret = brain(((const uint16_t *)p)[i]); return true;
    case HONE_DTYPE_I64: *ret = (double)((const int64_t *)p)[i]; return true;
    case HONE_DTYPE_I32: *ret = ((const int32_t *)p)[i]; return true;
    case HONE_DTYPE_I16: *ret = ((const int16_t *)p)[i]; return true;
    case HONE_DTYPE_I8: *ret = ((const int8_t *)p)[i]; return true;
    case HONE_DTYPE_U64: *ret = (double)((const uint64_t *)p)[i]; return true;
    case HONE_DTYPE_U32: *ret = ((const uint32_t *)p)[i]; return true;
    case HONE_DTYPE_U16: *ret = ((const uint16_t *)p)[i]; return true;
    case HONE_DTYPE_U8: *ret = ((const uint8_t *)p)[i]; return true;
    case HONE_DTYPE_BOOL: *ret = ((const uint8_t *)p)[i] != 0; return true;
    default: return false;
    }
}

size_t cli_count(const hone_tensor *t)
{
    size_t n = 1;
    for (int a = 0; a < t->rank; a++) n *= (size_t)t->dim[a];
    return n;
}

cJSON *cli_io_json(const hone_io *io)
{
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "name", io->name);
    cJSON_AddStringToObject(j, "dtype", hone_dtype_name(io->dtype));
    cJSON *dims = cJSON_AddArrayToObject(j, "dims");
    for (int a = 0; a < io->rank; a++)
        cJSON_AddItemToArray(dims, io->dim[a] < 0 && io->symbol[a][0] ? cJSON_CreateString(io->symbol[a])
                                                                      : cJSON_CreateNumber((double)io->dim[a]));
    return j;
}

hone_error *cli_error(const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return hone_error_create(HONE_E_INVALID, text);
}
