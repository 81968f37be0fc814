/* hone verify: the judge. Evaluate a model in float64, and compare an engine with it. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct verify {
    cli_options o;
    hone_model *m;
    hone_tensor in[CLI_MAX_IO], want[CLI_MAX_IO];
    char *note;
    int n_in, n_out;
} verify;

static int write_references(verify *v)
{
    cJSON *j = cJSON_CreateObject(), *files = cJSON_AddObjectToObject(j, "files");
    const char *no_folder = cli_make_folder(v->o.reference_out);
    if (no_folder) {
        cJSON_Delete(j);
        return cli_unwritable(&v->o, v->o.reference_out, no_folder);
    }
    for (int i = 0; i < v->n_out; i++) {
        hone_io io;
        char path[4096];
        hone_model_io(v->m, v->n_in + i, &io, NULL);
        snprintf(path, sizeof path, "%s/output_%d.npy", v->o.reference_out, i);
        const char *why = cli_npy_write(path, &v->want[i]);
        if (why) {
            cJSON_Delete(j);
            return cli_unwritable(&v->o, path, why);
        }
        cJSON_AddStringToObject(files, io.name, path);
        if (!v->o.json) printf("%s: %s\n", io.name, path);
    }
    if (v->o.json) cli_print_json(j);
    else cJSON_Delete(j);
    return 0;
}

/* Relative L2 above this is a failure, unless --threshold says another. */
static double threshold(const cli_options *o)
{
    return o->threshold > 0 ? o->threshold : 1e-3;
}

static int compare_one(verify *v, hone_engine *e, hone_context *c, int i, cJSON *list, bool *ok)
{
    hone_error *err = NULL;
    hone_io io;
    hone_tensor got;
    hone_difference d;
    hone_model_io(v->m, v->n_in + i, &io, NULL);
    if (cli_output(e, c, v->n_in + i, &got, &err) || hone_compare(&got, &v->want[i], 0, 0, &d, &err))
        return cli_fail(&v->o, err);
    const bool good = d.n_nonfinite == 0 && d.rel_l2 <= threshold(&v->o);
    *ok &= good;
    if (!v->o.json)
        printf("%-4s %s: relative L2 error %.3g, greatest %.3g, %lld mismatching non-finite values\n", good ? "ok" : "FAIL",
               io.name, d.rel_l2, d.linf, (long long)d.n_nonfinite);
    cJSON *j = cJSON_CreateObject();
    cJSON_AddStringToObject(j, "output", io.name);
    cJSON_AddNumberToObject(j, "rel_l2", d.rel_l2);
    cJSON_AddNumberToObject(j, "linf", d.linf);
    cJSON_AddNumberToObject(j, "nonfinite", (double)d.n_nonfinite);
    cJSON_AddBoolToObject(j, "ok", good);
    cJSON_AddItemToArray(list, j);
    return 0;
}

static int compare(verify *v, const char *path)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    const hone_context_options co = { sizeof co, v->o.build.threads, 0 };
    int status = 0;
    bool ok = true;
    if (hone_engine_open(path, NULL, &e, &err)) return cli_fail(&v->o, err);
    hone_status s = hone_context_create(e, &co, &c, &err);
    for (int i = 0; s == HONE_OK && i < v->n_in; i++) {
        s = hone_context_set_shape(c, i, v->in[i].rank, v->in[i].dim, &err);
        if (s == HONE_OK) s = hone_context_bind(c, i, v->in[i].data, v->in[i].bytes, &err);
    }
    if (s == HONE_OK) s = hone_context_run(c, &err);
    cJSON *j = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(j, "outputs");
    if (s != HONE_OK) status = cli_fail(&v->o, err);
    for (int i = 0; !status && i < v->n_out; i++) status = compare_one(v, e, c, i, list, &ok);
    if (!status && v->o.json) cli_print_json(j);
    else cJSON_Delete(j);
    hone_context_free(c);
    hone_engine_free(e);
    if (status) return status;
    return ok ? 0 : HONE_E_ACCURACY;
}

static int judge(verify *v)
{
    hone_error *err = NULL;
    char path[] = "/tmp/hone-verify-XXXXXX";
    if (cli_model_inputs(&v->o, v->m, v->in, &v->note, &err)) return cli_fail(&v->o, err);
    if (hone_model_evaluate(v->m, true, v->in, v->want, cli_progress, NULL, &err)) return cli_fail(&v->o, err);
    if (v->o.reference_out) return write_references(v);
    if (v->o.engine) return compare(v, v->o.engine);
    const int fd = mkstemp(path);
    if (fd < 0) return cli_misuse(&v->o, "no temporary file can be made for the engine");
    const int status = hone_build(v->m, &v->o.build, path, NULL, &err) ? cli_fail(&v->o, err) : compare(v, path);
    remove(path);
    return status;
}

static int run(int argc, char **argv)
{
    verify v = { .n_in = 0 };
    int status;
    hone_error *err = NULL;
    if (!cli_parse(&cli_verify, argc, argv, &v.o, &status)) return status;
    v.o.model.profile = v.o.profile; /* the copy's own */
    if (!v.o.positional) return cli_misuse(&v.o, "which model? usage: hone verify MODEL.onnx [--engine ENGINE]");
    if (hone_model_load(v.o.positional, &v.o.model, &v.m, &err)) return cli_fail(&v.o, err);
    const int n = hone_model_io_count(v.m);
    for (int i = 0; i < n; i++) {
        hone_io io;
        if (hone_model_io(v.m, i, &io, NULL) == HONE_OK) *(io.is_output ? &v.n_out : &v.n_in) += 1;
    }
    status = n > CLI_MAX_IO ? cli_misuse(&v.o, "the model has more than %d inputs and outputs", CLI_MAX_IO) : judge(&v);
    if (v.note && v.note[0] && !v.o.json) printf("made up: %s\n", v.note);
    hone_string_free(v.note);
    cli_free_tensors(v.in, CLI_MAX_IO);
    cli_free_tensors(v.want, CLI_MAX_IO);
    hone_model_free(v.m);
    return status;
}

const cli_command cli_verify = {
    "verify", "compare an engine with the model evaluated in float64",
    "Usage: hone verify MODEL.onnx [--engine ENGINE | --reference-out DIR]\n",
    run, CLI_VERIFY,
};
