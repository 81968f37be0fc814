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

/* One of the two is given. */
static void print_all(const cli_options *o, const hone_model *m, const hone_engine *e, cJSON *j)
{
    const int n = m ? hone_model_io_count(m) : hone_engine_io_count(e);
    cJSON *in = cJSON_AddArrayToObject(j, "inputs"), *out = cJSON_AddArrayToObject(j, "outputs");
    for (int i = 0; i < n; i++) {
        hone_io io;
        if (m ? hone_model_io(m, i, &io, NULL) : hone_engine_io(e, i, &io, NULL)) continue;
        if (!o->json) print_io(&io);
        cJSON_AddItemToArray(io.is_output ? out : in, cli_io_json(&io));
    }
    if (o->json) cli_print_json(j);
    else cJSON_Delete(j);
}

static int inspect_model(const cli_options *o)
{
    hone_error *err = NULL;
    hone_model *m = NULL;
    if (hone_model_load(o->positional, &o->model, &m, &err)) return cli_fail(o, err);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "model", o->positional);
    cJSON_AddNumberToObject(j, "nodes", hone_model_node_count(m));
    if (!o->json) printf("model of %d operations\n", hone_model_node_count(m));
    print_all(o, m, NULL, j);
    hone_model_free(m);
    return 0;
}

static int inspect_engine(const cli_options *o)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_engine_options opts = HONE_ENGINE_OPTIONS_INIT;
    opts.inspect = true;
    if (hone_engine_open(o->positional, &opts, &e, &err)) return cli_fail(o, err);
    cJSON *j = cJSON_Parse(hone_engine_manifest(e));
    if (!j) j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "payload", hone_engine_payload(e));
    cJSON_AddNumberToObject(j, "bytes", (double)hone_engine_bytes(e));
    if (!o->json)
        printf("engine of %lld bytes, payload %s\n%s\n", (long long)hone_engine_bytes(e), hone_engine_payload(e),
               hone_engine_manifest(e));
    print_all(o, NULL, e, j);
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
    "Usage: hone inspect MODEL.onnx | ENGINE\n",
    run, CLI_INSPECT,
};
