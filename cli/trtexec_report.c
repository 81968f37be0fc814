/* What trtexec prints and exports about a run, in its words, so that scripts that read them go on reading. */
#include "cli.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* [11/30/2026-08:26:09] [I] text */
static void info(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void info(const char *fmt, ...)
{
    char stamp[32];
    const time_t now = time(NULL);
    struct tm tm;
    va_list ap;
    strftime(stamp, sizeof stamp, "%m/%d/%Y-%H:%M:%S", localtime_r(&now, &tm));
    printf("[%s] [I] ", stamp);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    printf("\n");
}

/* ---- the summary ---- */
static double median(const double *sorted, int n)
{
    return n % 2 ? sorted[n / 2] : 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]);
}

static double percentile(const double *sorted, int n, double p)
{
    const int left_out = (int)((1 - p / 100) * n);
    return sorted[n - 1 - left_out < 0 ? 0 : n - 1 - left_out];
}

static void row(const trt_report *r, const char *what, const double *sorted, int n)
{
    char text[1024];
    double sum = 0;
    int at;
    for (int i = 0; i < n; i++) sum += sorted[i];
    at = snprintf(text, sizeof text, "%s: min = %g ms, max = %g ms, mean = %g ms, median = %g ms", what, sorted[0], sorted[n - 1],
                  sum / n, median(sorted, n));
    for (int i = 0; i < r->n_percentile; i++)
        at += snprintf(text + at, sizeof text - (size_t)at, ", percentile(%g%%) = %g ms", r->percentile[i],
                       percentile(sorted, n, r->percentile[i]));
    info("%s", text);
}

static bool summary(const trt_report *r, const cli_times *t)
{
    double *sorted = cli_sorted(t->ms, t->n), *zero = calloc((size_t)t->n, sizeof *zero), total = 0;
    for (int i = 0; i < t->n; i++) total += t->ms[i];
    if (sorted && zero) {
        info("Timing trace has %d queries over %g s", t->n, t->wall_s);
        info("=== Performance summary ===");
        info("Throughput: %g qps", t->n / t->wall_s);
        row(r, "Latency", sorted, t->n);
        row(r, "Enqueue Time", sorted, t->n);
        row(r, "H2D Latency", zero, t->n);
        row(r, "GPU Compute Time", sorted, t->n);
        row(r, "D2H Latency", zero, t->n);
        info("Total Host Walltime: %g s", t->wall_s);
        info("Total GPU Compute Time: %g s", 1e-3 * total);
        info("A call returns with its results: Enqueue and GPU Compute Time are the whole run's, what is copied included");
    }
    const bool ok = sorted && zero;
    free(sorted);
    free(zero);
    return ok;
}

/* ---- exports ---- */
static int export_json(const cli_options *o, const char *path, cJSON *take_j)
{
    char *text = cJSON_Print(take_j);
    const char *why = text ? cli_write_text(path, text) : "there is no memory for it";
    cJSON_Delete(take_j);
    free(text);
    return why ? cli_unwritable(o, path, why) : 0;
}

static int export_times(const cli_options *o, const char *path, const cli_times *t)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < t->n; i++) {
        const double start = t->start_ms[i], end = start + t->ms[i];
        const struct {
            const char *name;
            double ms;
        } at[] = { { "startEnqMs", start }, { "endEnqMs", end }, { "startH2dMs", start }, { "endH2dMs", start },
                   { "startComputeMs", start }, { "endComputeMs", end }, { "startD2hMs", end }, { "endD2hMs", end },
                   { "h2dMs", 0 }, { "computeMs", t->ms[i] }, { "d2hMs", 0 }, { "latencyMs", t->ms[i] },
                   { "enqueueMs", t->ms[i] } };
        cJSON *j = cJSON_CreateObject();
        for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) cJSON_AddNumberToObject(j, at[k].name, at[k].ms);
        cJSON_AddItemToArray(list, j);
    }
    return export_json(o, path, list);
}

static int export_outputs(const cli_options *o, const char *path, hone_engine *e, hone_context *c)
{
    hone_error *err = NULL;
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io io;
        hone_tensor t;
        char dims[256] = "";
        double x;
        if (hone_engine_io(e, i, &io, &err) || (io.is_output && cli_output(e, c, i, &t, &err))) {
            cJSON_Delete(list);
            return cli_fail(o, err);
        }
        if (!io.is_output) continue;
        for (int a = 0; a < t.rank; a++) sprintf(dims + strlen(dims), "%s%lld", a ? "x" : "", (long long)t.dim[a]);
        cJSON *j = cJSON_CreateObject(), *values;
        cJSON_AddStringToObject(j, "name", io.name);
        cJSON_AddStringToObject(j, "dimensions", dims);
        values = cJSON_AddArrayToObject(j, "values");
        for (size_t k = 0; k < cli_count(&t) && cli_element(&t, k, &x); k++)
            cJSON_AddItemToArray(values, cJSON_CreateNumber(x));
        cJSON_AddItemToArray(list, j);
    }
    return export_json(o, path, list);
}

/* ---- per-layer times ---- */
enum { PROFILE_RUNS = 20 };

typedef struct layer {
    char *name;
    double ms[PROFILE_RUNS]; /* one a run; a step in a branch not taken has none and counts as 0 */
} layer;

typedef struct profile {
    layer *at;
    int n;
    double total_ms;
} profile;

static const char *text_of(const cJSON *j, const char *key)
{
    const char *s = cJSON_GetStringValue(cJSON_GetObjectItem(j, key));
    return s ? s : "";
}

static bool add_run(profile *p, const cJSON *steps, int run)
{
    const cJSON *x;
    cJSON_ArrayForEach(x, steps)
    {
        const int step = (int)cJSON_GetNumberValue(cJSON_GetObjectItem(x, "step"));
        if (step >= p->n) {
            layer *at = realloc(p->at, sizeof *at * ((size_t)step + 1));
            if (!at) return false;
            memset(at + p->n, 0, sizeof *at * (size_t)(step + 1 - p->n));
            p->at = at;
            p->n = step + 1;
        }
        layer *l = &p->at[step];
        const char *origin = text_of(x, "origin"), *kernel = text_of(x, "kernel");
        if (!l->name) l->name = cli_text("%s", *origin ? origin : *kernel ? kernel : text_of(x, "kind"));
        l->ms[run] = 1e-3 * cJSON_GetNumberValue(cJSON_GetObjectItem(x, "mean_us")) *
                     cJSON_GetNumberValue(cJSON_GetObjectItem(x, "runs"));
        p->total_ms += l->ms[run];
    }
    return true;
}

static hone_status take_profile(hone_context *c, profile *p, hone_error **err)
{
    hone_status s = HONE_OK;
    for (int run = 0; s == HONE_OK && run < PROFILE_RUNS; run++) {
        char *text = NULL;
        s = hone_context_set_profiling(c, true, err); /* counters restart */
        if (s == HONE_OK) s = hone_context_run(c, err);
        if (s == HONE_OK) s = hone_context_profile_json(c, &text, err);
        cJSON *j = s == HONE_OK ? cJSON_Parse(text) : NULL;
        if (s == HONE_OK && (!j || !add_run(p, j, run))) {
            *err = hone_error_create(HONE_E_NOMEM, "no memory for the profile");
            s = HONE_E_NOMEM;
        }
        cJSON_Delete(j);
        hone_string_free(text);
    }
    return s;
}

static void sums(const layer *l, double *ret_total, double *ret_median)
{
    double *sorted = cli_sorted(l->ms, PROFILE_RUNS);
    *ret_total = 0;
    for (int i = 0; i < PROFILE_RUNS; i++) *ret_total += l->ms[i];
    *ret_median = sorted ? median(sorted, PROFILE_RUNS) : 0;
    free(sorted);
}

static void print_profile(const profile *p)
{
    double total, mid;
    info("=== Profile (%d iterations ) ===", PROFILE_RUNS);
    info("   Time(ms)     Avg.(ms)   Median(ms)   Time(%%)   Layer");
    for (int i = 0; i < p->n; i++) {
        if (!p->at[i].name) continue;
        sums(&p->at[i], &total, &mid);
        info("%11.3f %12.5f %12.5f %9.1f   %s", total, total / PROFILE_RUNS, mid, 100 * total / p->total_ms, p->at[i].name);
    }
    info("%11.3f %12.5f %12s %9.1f   Total", p->total_ms, p->total_ms / PROFILE_RUNS, "", 100.0);
}

static int export_profile(const cli_options *o, const char *path, const profile *p)
{
    cJSON *list = cJSON_CreateArray(), *count = cJSON_CreateObject();
    double total, mid;
    cJSON_AddNumberToObject(count, "count", PROFILE_RUNS);
    cJSON_AddItemToArray(list, count);
    for (int i = 0; i < p->n; i++) {
        if (!p->at[i].name) continue;
        sums(&p->at[i], &total, &mid);
        cJSON *j = cJSON_CreateObject();
        cJSON_AddStringToObject(j, "name", p->at[i].name);
        cJSON_AddNumberToObject(j, "timeMs", total);
        cJSON_AddNumberToObject(j, "averageMs", total / PROFILE_RUNS);
        cJSON_AddNumberToObject(j, "medianMs", mid);
        cJSON_AddNumberToObject(j, "percentage", 100 * total / p->total_ms);
        cJSON_AddItemToArray(list, j);
    }
    return export_json(o, path, list);
}

static int export_layers(const cli_options *o, const char *path, hone_engine *e, const profile *p)
{
    cJSON *j = cJSON_CreateObject(), *layers = cJSON_AddArrayToObject(j, "Layers"), *io = cJSON_AddArrayToObject(j, "Bindings");
    for (int i = 0; i < p->n; i++)
        if (p->at[i].name) cJSON_AddItemToArray(layers, cJSON_CreateString(p->at[i].name));
    for (int i = 0; i < hone_engine_io_count(e); i++) {
        hone_io x;
        if (hone_engine_io(e, i, &x, NULL) == HONE_OK) cJSON_AddItemToArray(io, cJSON_CreateString(x.name));
    }
    return export_json(o, path, j);
}

/* ---- all of it ---- */
static int after_one_run(const cli_options *o, const trt_report *r, hone_engine *e, hone_context *c)
{
    hone_error *err = NULL;
    profile p = { 0 };
    int status = r->outputs ? export_outputs(o, r->outputs, e, c) : 0;
    if (status || !(r->profile || r->layers || r->print_profile || r->print_layers)) return status;
    if (take_profile(c, &p, &err)) status = cli_fail(o, err);
    if (!status && r->print_profile) print_profile(&p);
    for (int i = 0; !status && r->print_layers && i < p.n; i++)
        if (p.at[i].name) info("Layer %d: %s", i, p.at[i].name);
    if (!status && r->profile) status = export_profile(o, r->profile, &p);
    if (!status && r->layers) status = export_layers(o, r->layers, e, &p);
    free(p.at);
    return status;
}

static int one_run(const cli_options *o, const trt_report *r, hone_engine *e)
{
    hone_error *err = NULL;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    const hone_context_options co = { sizeof co, o->build.threads, 0 };
    const bool bad = hone_context_create(e, &co, &c, &err) || cli_engine_inputs(o, e, c, in, &err) || hone_context_run(c, &err);
    const int status = bad ? cli_fail(o, err) : after_one_run(o, r, e, c);
    hone_context_free(c);
    cli_free_tensors(in, CLI_MAX_IO);
    return status;
}

int cli_trt_measure(const cli_options *o, const trt_report *r, const char *engine)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    cli_times t;
    if (hone_engine_open(engine, NULL, &e, &err)) return cli_fail(o, err);
    int status = cli_measure(o, e, &t);
    if (!status && !summary(r, &t)) status = cli_fail(o, hone_error_create(HONE_E_NOMEM, "no memory for the summary"));
    if (!status && r->times) status = export_times(o, r->times, &t);
    if (!status && (r->outputs || r->profile || r->layers || r->print_profile || r->print_layers)) status = one_run(o, r, e);
    cli_times_free(&t);
    hone_engine_free(e);
    return status;
}
