/* hone run: one inference. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum { SHOWN = 8 };

static void print_tensor(const char *name, const hone_tensor *t)
{
    double x;
    printf("%s: %s[", name, hone_dtype_name(t->dtype));
    for (int a = 0; a < t->rank; a++) printf("%s%lld", a ? "," : "", (long long)t->dim[a]);
    printf("]");
    const size_t n = cli_count(t);
    for (size_t i = 0; i < n && i < SHOWN && cli_element(t, i, &x); i++) printf(" %.9g", x);
    printf(n > SHOWN ? " ...\n" : "\n");
}

static cJSON *describe(const char *name, const hone_tensor *t, const char *file)
{
    double x;
    hone_io io = { .name = name, .dtype = t->dtype, .rank = t->rank };
    memcpy(io.dim, t->dim, sizeof io.dim);
    cJSON *j = cli_io_json(&io), *values = cJSON_AddArrayToObject(j, "values"); /* the first few; null: NaN or infinite */
    for (size_t i = 0; i < cli_count(t) && i < SHOWN && cli_element(t, i, &x); i++)
        cJSON_AddItemToArray(values, cJSON_CreateNumber(x));
    if (file) cJSON_AddStringToObject(j, "file", file);
    return j;
}

static bool is_archive(const char *path)
{
    const size_t n = strlen(path);
    return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* What run leaves behind. */
typedef struct results {
    const char *name[CLI_MAX_IO];
    hone_tensor at[CLI_MAX_IO];
    const char *file[CLI_MAX_IO]; /* NULL: not written */
    int n;
} results;

static int collect(const cli_options *o, hone_engine *e, hone_context *c, results *r)
{
    hone_error *err = NULL;
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io io;
        if (hone_engine_io(e, i, &io, &err)) return cli_fail(o, err);
        if (!io.is_output) continue;
        if (r->n == CLI_MAX_IO) return cli_misuse(o, "the engine has more than %d outputs", CLI_MAX_IO);
        r->name[r->n] = io.name;
        if (cli_output(e, c, i, &r->at[r->n++], &err)) return cli_fail(o, err);
    }
    return 0;
}

static int save(const cli_options *o, results *r)
{
    if (is_archive(o->output)) {
        const char *why = cli_npz_write(o->output, r->name, r->at, r->n);
        for (int i = 0; i < r->n; i++) r->file[i] = o->output;
        return why ? cli_unwritable(o, o->output, why) : 0;
    }
    const char *why = cli_make_folder(o->output);
    if (why) return cli_unwritable(o, o->output, why);
    for (int i = 0; i < r->n; i++) {
        r->file[i] = cli_text("%s/output_%d.npy", o->output, i);
        why = r->file[i] ? cli_npy_write(r->file[i], &r->at[i]) : "there is no memory for it";
        if (why) return cli_unwritable(o, r->file[i] ? r->file[i] : o->output, why);
    }
    return 0;
}

static int outputs(const cli_options *o, hone_engine *e, hone_context *c)
{
    static results r;
    r.n = 0;
    int status = collect(o, e, c, &r);
    if (!status && o->output) status = save(o, &r);
    if (status) return status;
    cJSON *j = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(j, "outputs");
    for (int i = 0; i < r.n; i++) {
        if (o->json) cJSON_AddItemToArray(list, describe(r.name[i], &r.at[i], o->output ? r.file[i] : NULL));
        else print_tensor(r.name[i], &r.at[i]);
    }
    if (o->json) cli_print_json(j);
    else cJSON_Delete(j);
    return 0;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    if (!cli_parse(&cli_run, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which engine? usage: hone run ENGINE [--input NAME=FILE.npy]");
    const hone_context_options co = { sizeof co, o.build.threads, 0 };
    if (cli_open(&o, &e, &err)) return cli_fail(&o, err);
    if (hone_context_create(e, &co, &c, &err) || cli_engine_inputs(&o, e, c, in, &err) || hone_context_run(c, &err))
        status = cli_fail(&o, err);
    else
        status = outputs(&o, e, c);
    hone_context_free(c);
    hone_engine_free(e);
    cli_free_tensors(in, CLI_MAX_IO);
    return status;
}

const cli_command cli_run = {
    "run", "run an engine once",
    "Usage: hone run ENGINE [--input NAME=FILE]... [-o DIR|FILE.npz]\n",
    run, CLI_RUN,
};
