/* hone bench: latency percentiles and throughput of an engine, one or several contexts at once. */
#include "cli.h"

#include <stdlib.h>

static void print_result(const cli_options *o, const cli_times *t, const double *sorted)
{
    static const struct {
        const char *name;
        double q;
    } cut[] = { { "min", 0 }, { "p50", 0.5 }, { "p90", 0.9 }, { "p95", 0.95 }, { "p99", 0.99 }, { "max", 1 } };
    enum { N = sizeof cut / sizeof cut[0] };
    double sum = 0, ms[N];
    for (int i = 0; i < t->n; i++) sum += sorted[i];
    for (int i = 0; i < N; i++) ms[i] = sorted[(int)(cut[i].q * (t->n - 1) + 0.5)];
    if (o->json) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddNumberToObject(j, "runs", t->n);
        cJSON_AddNumberToObject(j, "streams", t->streams);
        cJSON_AddNumberToObject(j, "mean_ms", sum / t->n);
        for (int i = 0; i < N; i++) cJSON_AddNumberToObject(j, cli_text("%s_ms", cut[i].name), ms[i]);
        cJSON_AddNumberToObject(j, "per_second", t->n / t->wall_s);
        cli_print_json(j);
        return;
    }
    printf("%d runs on %d stream%s: %.1f a second\n", t->n, t->streams, t->streams > 1 ? "s" : "", t->n / t->wall_s);
    printf("latency ms: mean %.4f", sum / t->n);
    for (int i = 0; i < N; i++) printf("  %s %.4f", cut[i].name, ms[i]);
    printf("\n");
}

int cli_bench_engine(const cli_options *o)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    cli_times t;
    if (!o->positional) return cli_misuse(o, "which engine? usage: hone bench ENGINE");
    if (cli_open(o, &e, &err)) return cli_fail(o, err);
    const int status = cli_measure(o, e, &t);
    double *sorted = status ? NULL : cli_sorted(t.ms, t.n);
    if (sorted) print_result(o, &t, sorted);
    free(sorted);
    cli_times_free(&t);
    hone_engine_free(e);
    return status;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    if (!cli_parse(&cli_bench, argc, argv, &o, &status)) return status;
    return o.worker ? cli_bench_worker() : cli_bench_engine(&o);
}

const cli_command cli_bench = {
    "bench", "measure an engine's latency and throughput",
    "Usage: hone bench ENGINE [--streams N] [--duration S]\n",
    run, CLI_BENCH,
};
