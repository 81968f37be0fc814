/* Running an engine on several streams at once, timed. */
#include "cli.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct stream {
    const cli_options *o;
    hone_engine *e;
    pthread_barrier_t *ready;
    double *start, *ms; /* seconds; milliseconds */
    int n, cap;
    hone_error *err;
    pthread_t thread;
} stream;

static bool keep(stream *s, double start, double ms)
{
    if (s->n == s->cap) {
        const size_t cap = s->cap ? 2 * (size_t)s->cap : 1024;
        double *a = realloc(s->start, sizeof *a * cap), *b = a ? realloc(s->ms, sizeof *b * cap) : NULL;
        if (a) s->start = a;
        if (!b) return false;
        s->ms = b;
        s->cap = (int)cap;
    }
    s->start[s->n] = start;
    s->ms[s->n++] = ms;
    return true;
}

static bool go_on(stream *s)
{
    if (cli_interrupted()) s->err = hone_error_create(HONE_E_CANCELLED, "measuring was interrupted");
    return !s->err;
}

/* Once at least: all memory is taken. */
static void warm_up(stream *s, hone_context *c)
{
    const double start = cli_now();
    do
        if (hone_context_run(c, &s->err)) return;
    while (go_on(s) && cli_now() - start < s->o->warmup_s);
}

static void measure(stream *s, hone_context *c)
{
    const int least = s->o->least > 0 ? s->o->least : 1;
    const double start = cli_now();
    while (go_on(s)) {
        const double t = cli_now();
        if (s->o->iterations ? s->n >= s->o->iterations : t - start >= s->o->seconds && s->n >= least) return;
        if (hone_context_run(c, &s->err)) return;
        if (!keep(s, t, 1e3 * (cli_now() - t))) {
            s->err = hone_error_create(HONE_E_NOMEM, "no memory for the times");
            return;
        }
    }
}

static void *stream_main(void *user)
{
    stream *s = user;
    hone_context *c = NULL;
    hone_tensor in[CLI_MAX_IO] = { 0 };
    const hone_context_options co = { sizeof co, s->o->build.threads, 0 };
    const bool ready = !hone_context_create(s->e, &co, &c, &s->err) && !cli_engine_inputs(s->o, s->e, c, in, &s->err);
    if (ready) warm_up(s, c);
    pthread_barrier_wait(s->ready); /* the clock starts when every stream can run */
    if (!s->err) measure(s, c);
    hone_context_free(c);
    cli_free_tensors(in, CLI_MAX_IO);
    return NULL;
}

/* All streams into one list; yields the seconds from first start to last end. */
static int gather(stream *s, int n, cli_times *ret)
{
    int total = 0, at = 0;
    double first = 0, last = 0;
    for (int i = 0; i < n; i++) total += s[i].n;
    *ret = (cli_times){ calloc((size_t)total + 1, sizeof(double)), calloc((size_t)total + 1, sizeof(double)), total, n, 0 };
    if (!ret->start_ms || !ret->ms || total == 0) return HONE_E_NOMEM;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < s[i].n; k++) {
            const double end = s[i].start[k] + 1e-3 * s[i].ms[k];
            if (at == 0 || s[i].start[k] < first) first = s[i].start[k];
            if (at == 0 || end > last) last = end;
            ret->start_ms[at] = s[i].start[k];
            ret->ms[at++] = s[i].ms[k];
        }
    for (int i = 0; i < total; i++) ret->start_ms[i] = 1e3 * (ret->start_ms[i] - first);
    ret->wall_s = last - first;
    return 0;
}

static int join(const cli_options *o, stream *s, int n, cli_times *ret)
{
    int status = 0;
    for (int i = 0; i < n; i++) {
        if (n > 1) pthread_join(s[i].thread, NULL);
        if (s[i].err && !status) status = cli_fail(o, s[i].err);
        else hone_error_free(s[i].err);
    }
    if (!status && gather(s, n, ret)) status = cli_fail(o, hone_error_create(HONE_E_NOMEM, "no memory for the times"));
    for (int i = 0; i < n; i++) {
        free(s[i].start);
        free(s[i].ms);
    }
    return status;
}

int cli_measure(const cli_options *o, hone_engine *e, cli_times *ret)
{
    const int n = o->streams ? o->streams : 1;
    stream *s = calloc((size_t)n, sizeof *s);
    pthread_barrier_t ready;
    *ret = (cli_times){ 0 };
    if (!s) return cli_fail(o, hone_error_create(HONE_E_NOMEM, "no memory for the streams"));
    pthread_barrier_init(&ready, NULL, (unsigned)n);
    int made = 0;
    for (; made < n; made++) {
        s[made] = (stream){ .o = o, .e = e, .ready = &ready };
        if (n == 1) stream_main(&s[made]);
        else if (pthread_create(&s[made].thread, NULL, stream_main, &s[made])) break;
    }
    if (made < n) { /* those that run wait for ever at the barrier: end with them */
        cli_fail(o, hone_error_create(HONE_E_NOMEM, "no thread could be started for a stream"));
        exit(HONE_E_NOMEM);
    }
    const int status = join(o, s, n, ret);
    pthread_barrier_destroy(&ready);
    free(s);
    return status;
}

void cli_times_free(cli_times *t)
{
    free(t->start_ms);
    free(t->ms);
    *t = (cli_times){ 0 };
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double *cli_sorted(const double *x, int n)
{
    double *p = malloc(sizeof *p * (size_t)(n + 1));
    if (!p) return NULL;
    memcpy(p, x, sizeof *p * (size_t)n);
    qsort(p, (size_t)n, sizeof *p, by_value);
    return p;
}
