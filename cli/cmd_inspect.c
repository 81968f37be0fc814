/* hone inspect: inputs, outputs and manifest of an engine or a model. */
#include "cli.h"

#include <string.h>

static void print_io(const hone_io *io)
{
    printf("%-7s %s: %s[", io->is_output ? "output" : "input", io->name, hone_dtype_name(io->dtype));
    for (int a = 0; a < io->rank; a++) {
        if (io->dim[a] >= 0) printf("%s%lld", a ? "," : "", (long long)io->dim[a]);
        else printf("%s%s", a ? "," : "", io->symbol[a][0] ? io->symbol[a] : "?");
    }
    printf("]\n");
}

static int inspect_model(const cli_options *o)
{
    hone_error *err = NULL;
    hone_model *m = NULL;
    if (hone_model_load(o->positional, &o->model, &m, &err)) return cli_fail(o, err);
    printf("model of %d operations\n", hone_model_node_count(m));
    for (int i = 0; i < hone_model_io_count(m); i++) {
        hone_io io;
        if (hone_model_io(m, i, &io, NULL) == HONE_OK) print_io(&io);
    }
    hone_model_free(m);
    return 0;
}

static int inspect_engine(const cli_options *o)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    if (hone_engine_open(o->positional, NULL, &e, &err)) return cli_fail(o, err);
    if (o->json) {
        printf("%s\n", hone_engine_manifest(e));
    } else {
        printf("engine of %lld bytes, payload %s\n%s\n", (long long)hone_engine_bytes(e), hone_engine_payload(e),
               hone_engine_manifest(e));
        for (int i = 0; i < hone_engine_io_count(e); i++) {
            hone_io io;
            if (hone_engine_io(e, i, &io, NULL) == HONE_OK) print_io(&io);
        }
    }
    hone_engine_free(e);
    return 0;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    if (!cli_parse(&cli_inspect, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which model or engine? usage: hone inspect MODEL.onnx | ENGINE");
    const char *dot = strrchr(o.positional, '.');
    return dot && strcmp(dot, ".onnx") == 0 ? inspect_model(&o) : inspect_engine(&o);
}

const cli_command cli_inspect = {
    "inspect", "show inputs, outputs and manifest",
    "Usage: hone inspect MODEL.onnx | ENGINE [--json]\n",
    run,
};
