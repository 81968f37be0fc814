/* hone run: one inference. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_tensor(const char *name, const hone_tensor *t)
{
    printf("%s: %s[", name, hone_dtype_name(t->dtype));
    for (int a = 0; a < t->rank; a++) printf("%s%lld", a ? "," : "", (long long)t->dim[a]);
    printf("]");
    const size_t n = t->bytes / 4;
    for (size_t i = 0; t->dtype == HONE_DTYPE_F32 && t->data && i < n && i < 6; i++) printf(" %g", ((float *)t->data)[i]);
    printf("\n");
}

static int outputs(const cli_options *o, hone_engine *e, hone_context *c)
{
    hone_error *err = NULL;
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io io;
        hone_tensor t;
        if (hone_engine_io(e, i, &io, &err)) return cli_fail(o, err);
        if (!io.is_output) continue;
        if (cli_output(e, c, i, &t, &err)) return cli_fail(o, err);
        print_tensor(io.name, &t);
        if (!o->output) continue;
        char path[4096];
        mkdir(o->output, 0777);
        snprintf(path, sizeof path, "%s/output_%d.npy", o->output, i);
        const char *why = cli_npy_write(path, &t);
        if (why) return cli_misuse(o, "\"%s\": %s", path, why);
    }
    return 0;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status, n = 0;
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    if (!cli_parse(&cli_run, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which engine? usage: hone run ENGINE [--input NAME=FILE.npy]");
    const hone_context_options co = { sizeof co, o.build.threads, 0 };
    if (hone_engine_open(o.positional, NULL, &e, &err)) return cli_fail(&o, err);
    if (hone_context_create(e, &co, &c, &err) || cli_engine_inputs(&o, e, c, in, &n, &err) || hone_context_run(c, &err))
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
    "Usage: hone run ENGINE [--input NAME=FILE.npy]... [-o DIR]\n"
    "  --input NAME=FILE.npy   an input; those not given are made up (random floats, zero integers)\n"
    "  --shape NAME=1x64       shape of a made-up input whose extents are open\n"
    "  -o, --output DIR        write each output as DIR/output_I.npy\n"
    "  --threads N             threads to run on\n",
    run,
};
