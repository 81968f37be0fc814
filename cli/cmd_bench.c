/* hone bench: latency percentiles and throughput of an engine, one or several contexts at once. */
#include "cli.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    const cli_options *o;
    hone_engine *e;
    double *ms;
    int n, cap;
    hone_error *err;
    pthread_t thread;
} stream;

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static bool keep(stream *s, double ms)
{
    if (s->n == s->cap) {
        const int cap = s->cap ? 2 * s->cap : 1024;
        double *p = realloc(s->ms, sizeof *p * (size_t)cap);
        if (!p) return false;
        s->ms = p;
        s->cap = cap;
    }
    s->ms[s->n++] = ms;
    return true;
}

static void measure(stream *s, hone_context *c)
{
    const double seconds = s->o->seconds > 0 ? s->o->seconds : 3;
    if (hone_context_run(c, &s->err)) return;
    const double start = cli_now();
    for (;;) {
        const double t = cli_now();
        if (s->o->iterations ? s->n >= s->o->iterations : t - start >= seconds && s->n > 0) return;
        if (hone_context_run(c, &s->err)) return;
        if (!keep(s, 1e3 * (cli_now() - t))) return;
    }
}

static void *stream_main(void *user)
{
    stream *s = user;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    int n = 0;
    const hone_context_options co = { sizeof co, s->o->build.threads, 0 };
    if (!hone_context_create(s->e, &co, &c, &s->err) && !cli_engine_inputs(s->o, s->e, c, in, &n, &s->err)) measure(s, c);
    hone_context_free(c);
    cli_free_tensors(in, CLI_MAX_IO);
    return NULL;
}

static double at(const stream *all, double q)
{
    const int i = (int)(q * (all->n - 1) + 0.5);
    return all->ms[i];
}

static void print_result(const cli_options *o, const stream *all, double wall, int n_stream)
{
    double sum = 0;
    for (int i = 0; i < all->n; i++) sum += all->ms[i];
    const double mean = sum / all->n, rate = all->n / wall;
    if (o->json) {
        cJSON *j = cJSON_CreateObject();
        cJSON_AddNumberToObject(j, "runs", all->n);
        cJSON_AddNumberToObject(j, "streams", n_stream);
        cJSON_AddNumberToObject(j, "mean_ms", mean);
        cJSON_AddNumberToObject(j, "min_ms", at(all, 0));
        cJSON_AddNumberToObject(j, "p50_ms", at(all, 0.5));
        cJSON_AddNumberToObject(j, "p90_ms", at(all, 0.9));
        cJSON_AddNumberToObject(j, "p99_ms", at(all, 0.99));
        cJSON_AddNumberToObject(j, "max_ms", at(all, 1));
        cJSON_AddNumberToObject(j, "per_second", rate);
        cli_print_json(j);
        return;
    }
    printf("%d runs on %d stream%s: %.1f a second\n", all->n, n_stream, n_stream > 1 ? "s" : "", rate);
    printf("latency ms: min %.4f  mean %.4f  p50 %.4f  p90 %.4f  p99 %.4f  max %.4f\n", at(all, 0), mean, at(all, 0.5),
           at(all, 0.9), at(all, 0.99), at(all, 1));
}

static int race(const cli_options *o, hone_engine *e)
{
    const int n = o->streams ? o->streams : 1;
    stream *s = calloc((size_t)n, sizeof *s), all = { 0 };
    int status = 0;
    const double start = cli_now();
    for (int i = 0; i < n; i++) {
        s[i] = (stream){ .o = o, .e = e };
        if (n == 1) stream_main(&s[i]);
        else pthread_create(&s[i].thread, NULL, stream_main, &s[i]);
    }
    for (int i = 0; i < n; i++) {
        if (n > 1) pthread_join(s[i].thread, NULL);
        if (s[i].err && !status) status = cli_fail(o, s[i].err);
        for (int k = 0; k < s[i].n; k++) keep(&all, s[i].ms[k]);
        free(s[i].ms);
    }
    const double wall = cli_now() - start;
    if (!status && all.n == 0) status = cli_misuse(o, "nothing was measured");
    if (!status) {
        qsort(all.ms, (size_t)all.n, sizeof(double), by_value);
        print_result(o, &all, wall, n);
    }
    free(all.ms);
    free(s);
    return status;
}

static int run(int argc, char **argv)
{
    cli_options o;
    int status;
    hone_error *err = NULL;
    hone_engine *e = NULL;
    if (!cli_parse(&cli_bench, argc, argv, &o, &status)) return status;
    if (o.worker) return cli_bench_worker();
    if (!o.positional) return cli_misuse(&o, "which engine? usage: hone bench ENGINE");
    if (hone_engine_open(o.positional, NULL, &e, &err)) return cli_fail(&o, err);
    status = race(&o, e);
    hone_engine_free(e);
    return status;
}

const cli_command cli_bench = {
    "bench", "measure an engine's latency and throughput",
    "Usage: hone bench ENGINE\n"
    "  --duration S            measure for S seconds (default 3)\n"
    "  --iterations N          or for N runs\n"
    "  --streams N             contexts that run at once, each on a thread of its own\n"
    "  --threads N             threads of one run\n"
    "  --input NAME=FILE.npy   an input; those not given are made up\n"
    "  --shape NAME=1x64       shape of a made-up input whose extents are open\n"
    "  --worker                take commands as JSON lines on stdin (docs/benchmarking.md)\n"
    "  --json                  one JSON object on stdout\n",
    run,
};
