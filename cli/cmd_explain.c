/* hone explain: what was chosen, and why. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_region(const cJSON *r, bool verbose)
{
    const double us = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "us"));
    printf("%10.1f us %-9s %s\n              %s\n", us, cJSON_IsTrue(cJSON_GetObjectItem(r, "measured")) ? "measured" : "predicted",
           cJSON_GetStringValue(cJSON_GetObjectItem(r, "ops")), cJSON_GetStringValue(cJSON_GetObjectItem(r, "tactic")));
    const cJSON *c;
    if (!verbose) return;
    printf("              %s\n", cJSON_GetStringValue(cJSON_GetObjectItem(r, "label")));
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(r, "candidates"))
    {
        const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(c, "reason"));
        const cJSON *m = cJSON_GetObjectItem(c, "measured_us"), *p = cJSON_GetObjectItem(c, "predicted_us");
        printf("                %s: ", cJSON_GetStringValue(cJSON_GetObjectItem(c, "tactic")));
        if (reason) printf("%s\n", reason);
        else if (m) printf("%.1f us measured\n", cJSON_GetNumberValue(m));
        else printf("%.1f us predicted\n", cJSON_GetNumberValue(p));
    }
}

static const char *text_of(const cJSON *x, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(x, key));
    return s ? s : "";
}

/* How many reads of this setting stand from x on; -1 when one stands before it. */
static int count_reads(const cJSON *list, const cJSON *x)
{
    const char *setting = text_of(x, "setting");
    const cJSON *r;
    int n = 0;
    bool from_here = false;
    cJSON_ArrayForEach(r, list)
    {
        from_here |= r == x;
        if (strcmp(text_of(r, "setting"), setting) != 0) continue;
        if (!from_here) return -1;
        n++;
    }
    return n;
}

static void print_reads(const cJSON *list, bool verbose)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, list)
    {
        const char *setting = text_of(x, "setting"), *where = text_of(x, "where");
        const int n = verbose ? 1 : count_reads(list, x);
        if (verbose || n == 1) printf("  %s  %s\n", setting, where);
        else if (n > 1) printf("  %s  at %d nodes\n", setting, n);
    }
}

static int explain_model(const cli_options *o)
{
    hone_error *err = NULL;
    hone_model *m = NULL;
    hone_report *r = NULL;
    char path[] = "/tmp/hone-explain-XXXXXX";
    const int fd = mkstemp(path);
    if (fd < 0) return cli_misuse(o, "no temporary file can be made for the engine");
    close(fd);
    const bool bad = hone_model_load(o->positional, &o->model, &m, &err) || hone_build(m, &o->build, path, &r, &err);
    remove(path);
    if (bad) {
        hone_model_free(m);
        return cli_fail(o, err);
    }
    if (o->json) {
        printf("%s\n", hone_report_json(r));
    } else {
        cJSON *j = cJSON_Parse(hone_report_json(r));
        const cJSON *x;
        cJSON_ArrayForEach(x, cJSON_GetObjectItem(j, "regions")) print_region(x, o->verbose);
        printf("\nknobs read (a knob that is not read cannot matter):\n");
        print_reads(cJSON_GetObjectItem(j, "knobs_read"), o->verbose);
        cJSON_Delete(j);
    }
    hone_report_free(r);
    hone_model_free(m);
    return 0;
}

/* An engine knows what runs: steps with their kernels, timed. */
static int explain_engine(const cli_options *o)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    char *text = NULL;
    int status = 0;
    const hone_context_options co = { sizeof co, o->build.threads, 0 };
    hone_status s = hone_engine_open(o->positional, NULL, &e, &err);
    if (!s) s = hone_context_create(e, &co, &c, &err);
    if (!s) s = cli_engine_inputs(o, e, c, in, &err);
    if (!s) s = hone_context_set_profiling(c, true, &err);
    for (int i = 0; !s && i < 10; i++) s = hone_context_run(c, &err);
    if (!s) s = hone_context_profile_json(c, &text, &err);
    if (s) {
        status = cli_fail(o, err);
    } else if (o->json) {
        printf("%s\n", text);
    } else {
        cJSON *j = cJSON_Parse(text);
        const cJSON *x;
        printf("%s\n", hone_engine_manifest(e));
        cJSON_ArrayForEach(x, j)
        {
            const char *kernel = cJSON_GetStringValue(cJSON_GetObjectItem(x, "kernel"));
            printf("%10.2f us  %-44s %s\n", cJSON_GetNumberValue(cJSON_GetObjectItem(x, "mean_us")),
                   kernel ? kernel : cJSON_GetStringValue(cJSON_GetObjectItem(x, "kind")),
                   cJSON_GetStringValue(cJSON_GetObjectItem(x, "origin")));
        }
        cJSON_Delete(j);
    }
    hone_string_free(text);
    hone_context_free(c);
    hone_engine_free(e);
    cli_free_tensors(in, CLI_MAX_IO);
    return status;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    if (!cli_parse(&cli_explain, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which model or engine? usage: hone explain MODEL.onnx | ENGINE");
    const char *dot = strrchr(o.positional, '.');
    return dot && strcmp(dot, ".onnx") == 0 ? explain_model(&o) : explain_engine(&o);
}

const cli_command cli_explain = {
    "explain", "say what was chosen for a model or runs in an engine, and why",
    "Usage: hone explain MODEL.onnx [--set ROUTE] [-v] | hone explain ENGINE\n"
    "A model is built and its regions are listed with the kernel taken, its time, and (-v) every candidate with the\n"
    "reason it was not taken. An engine is run and its steps are listed with their times.\n",
    run, CLI_EXPLAIN,
};
