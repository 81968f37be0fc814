/* hone build: a model in, an engine out. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

static const char *default_output(const char *model)
{
    const char *slash = strrchr(model, '/'), *base = slash ? slash + 1 : model, *dot = strrchr(base, '.');
    const size_t n = dot ? (size_t)(dot - base) : strlen(base);
    char *s = cli_keep(malloc(n + 6));
    if (s) snprintf(s, n + 6, "%.*s.hone", (int)n, base);
    return s;
}

/* Each knob that the build read, once, in the order of first reading. */
static cJSON *knobs_read(const cJSON *report)
{
    cJSON *list = cJSON_CreateArray(), *seen = cJSON_CreateObject();
    const cJSON *r;
    cJSON_ArrayForEach(r, cJSON_GetObjectItem(report, "knobs_read"))
    {
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(r, "knob"));
        if (cJSON_GetObjectItem(seen, name)) continue;
        cJSON_AddTrueToObject(seen, name);
        cJSON_AddItemToArray(list, cJSON_CreateString(name));
    }
    cJSON_Delete(seen);
    return list;
}

/* Where the time went. */
static void add_costs(cJSON *to, const cJSON *report)
{
    static const char *const key[] = { "build_s", "compile_s", "race_s", "library_s", "plan_s", "kernels_compiled", "timings_measured" };
    for (size_t i = 0; i < sizeof key / sizeof *key; i++)
        cJSON_AddNumberToObject(to, key[i], cJSON_GetNumberValue(cJSON_GetObjectItem(report, key[i])));
}

static int by_number(const void *x, const void *y)
{
    const double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* Times of a region's candidates, least first. */
static int candidate_times(const cJSON *region, double *ret, int cap)
{
    int n = 0;
    const cJSON *c;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(region, "candidates"))
        if (n < cap && cJSON_GetObjectItem(c, "measured_us") && !cJSON_GetObjectItem(c, "reason"))
            ret[n++] = cJSON_GetNumberValue(cJSON_GetObjectItem(c, "measured_us"));
    qsort(ret, (size_t)n, sizeof *ret, by_number);
    return n;
}

/* {label: [share of the time of all regions, times of the second, third, ... candidate over that of the first]}; a label stands for
 * all regions that are equal. */
static cJSON *runners_up(const cJSON *report)
{
    enum { MOST = 96 };
    const cJSON *regions = cJSON_GetObjectItem(report, "regions"), *r;
    cJSON *all = cJSON_CreateObject();
    double whole = 0, us[MOST];
    cJSON_ArrayForEach(r, regions) whole += cJSON_GetNumberValue(cJSON_GetObjectItem(r, "us"));
    cJSON_ArrayForEach(r, regions)
    {
        const char *label = cJSON_GetStringValue(cJSON_GetObjectItem(r, "label"));
        cJSON *row = cJSON_GetObjectItem(all, label);
        const double share = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "us")) / whole;
        if (row) {
            cJSON_SetNumberValue(cJSON_GetArrayItem(row, 0), cJSON_GetArrayItem(row, 0)->valuedouble + share);
            continue;
        }
        const int n = candidate_times(r, us, MOST);
        row = cJSON_AddArrayToObject(all, label);
        cJSON_AddItemToArray(row, cJSON_CreateNumber(share));
        for (int i = 1; i < n; i++) cJSON_AddItemToArray(row, cJSON_CreateNumber(us[i] / us[0]));
    }
    return all;
}

static void print_summary(const cli_options *o, const hone_model *m, const char *path, const char *report)
{
    cJSON *r = cJSON_Parse(report);
    cJSON *regions = cJSON_GetObjectItem(r, "regions");
    const double build_s = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "build_s"));
    const double peak = cJSON_GetNumberValue(cJSON_GetObjectItem(r, "peak_rss_bytes"));
    if (o->json) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "engine", path);
        cJSON_AddNumberToObject(j, "nodes", hone_model_node_count(m));
        add_costs(j, r);
        cJSON_AddNumberToObject(j, "peak_rss_bytes", peak);
        cJSON_AddStringToObject(j, "payload", cJSON_GetStringValue(cJSON_GetObjectItem(r, "payload")));
        cJSON_AddItemToObject(j, "knobs", knobs_read(r));
        cJSON_AddItemToObject(j, "runners_up", runners_up(r));
        if (o->verbose) cJSON_AddItemToObject(j, "report", cJSON_Duplicate(r, true));
        cli_print_json(j);
    } else {
        printf("%s: %d operations, %d regions, %.0f kernels, built in %.1f s with at most %.0f MiB\n", path,
               hone_model_node_count(m), cJSON_GetArraySize(regions), cJSON_GetNumberValue(cJSON_GetObjectItem(r, "kernels")),
               build_s, peak / (1 << 20));
        printf("next: hone bench %s\n", path);
    }
    cJSON_Delete(r);
}

static void build_route(const cli_options *o, hone_model *m, const cJSON *cmd)
{
    hone_build_options b = o->build;
    hone_error *err = NULL;
    hone_report *r = NULL;
    const char *path = cJSON_GetStringValue(cJSON_GetObjectItem(cmd, "engine"));
    b.route = cJSON_GetStringValue(cJSON_GetObjectItem(cmd, "route"));
    b.keep_tools = true;
    b.draft = cJSON_IsTrue(cJSON_GetObjectItem(cmd, "draft"));
    if (!path) {
        cli_misuse(o, "a line {\"engine\": PATH, \"route\": TEXT} is needed");
        return;
    }
    if (hone_build(m, &b, path, &r, &err)) cli_fail(o, err);
    else print_summary(o, m, path, hone_report_json(r));
    hone_report_free(r);
}

/* One build a line, by compilers that stay: {"engine": PATH, "route": TEXT, "draft": true} in, what --json prints out. */
static int serve(cli_options *o, hone_model *m)
{
    char *line = NULL;
    size_t cap = 0;
    o->json = true;
    while (!cli_interrupted() && getline(&line, &cap, stdin) > 0) {
        cJSON *cmd = cJSON_Parse(line);
        build_route(o, m, cmd);
        cJSON_Delete(cmd);
    }
    free(line);
    return 0;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    hone_model *m = NULL;
    hone_report *r = NULL;
    if (!cli_parse(&cli_build, argc, argv, &o, &status)) return status;
    if (!o.positional) return cli_misuse(&o, "which model? usage: hone build MODEL.onnx [-o ENGINE]");
    const char *path = o.output ? o.output : default_output(o.positional);
    if (hone_model_load(o.positional, &o.model, &m, &err)) return cli_fail(&o, err);
    if (o.worker) {
        status = serve(&o, m);
        hone_model_free(m);
        return status;
    }
    if (hone_build(m, &o.build, path, &r, &err)) {
        hone_model_free(m);
        return cli_fail(&o, err);
    }
    print_summary(&o, m, path, hone_report_json(r));
    hone_report_free(r);
    hone_model_free(m);
    return 0;
}

const cli_command cli_build = {
    "build", "compile an ONNX model into an engine for this machine",
    "Usage: hone build MODEL.onnx [-o ENGINE]\n",
    run, CLI_BUILD,
};
