/*
 * A tuner of one's own on the C API: build the routes given, drop those that are not accurate enough, time the others
 * against the default in turn, and keep the fastest.
 *
 *     cc own_tuner.c $(pkg-config --cflags --libs hone) -lm -o own_tuner
 *     ./own_tuner model.onnx "-gemm:split_k=2" "-pass:fuse=0"
 *
 * hone_tune() does this with isolation, statistics and a store; this is the bare loop.
 */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_IO = 32, MAX_ROUTES = 16, ROUNDS = 20 };

static const double max_error = 1e-4; /* relative L2 against the float64 evaluation, worst output */

typedef struct candidate {
    const char *route;
    hone_engine *e;
    hone_context *c;
    double best_ns, error;
} candidate;

static hone_model *model;
static hone_tensor in[MAX_IO], want[MAX_IO];
static int n_in, n_out;

static int fail(const char *doing, hone_error *err)
{
    fprintf(stderr, "%s: %s\n", doing, hone_error_text(err));
    hone_error_free(err);
    return 1;
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* The model's i-th input or output in the engine; -1 when the engine needs no such input. */
static int find(const candidate *k, int i)
{
    hone_io io;
    return hone_model_io(model, i, &io, NULL) == HONE_OK ? hone_engine_find_io(k->e, io.name) : -1;
}

static int bind(candidate *k)
{
    hone_error *err = NULL;
    for (int i = 0; i < n_in; i++) {
        const int at = find(k, i);
        if (at < 0) continue;
        if (hone_context_set_shape(k->c, at, in[i].rank, in[i].dim, &err) != HONE_OK ||
            hone_context_bind(k->c, at, in[i].data, in[i].bytes, &err) != HONE_OK)
            return fail("bind", err);
    }
    return 0;
}

/* Run once and set the error: the worst output against the reference. */
static int judge(candidate *k)
{
    hone_error *err = NULL;
    if (hone_context_run(k->c, &err) != HONE_OK) return fail("run", err);
    k->error = 0;
    for (int i = 0; i < n_out; i++) {
        const int at = find(k, n_in + i);
        hone_io io;
        hone_tensor got = { 0 };
        hone_difference d;
        if (at < 0 || hone_engine_io(k->e, at, &io, &err) != HONE_OK ||
            hone_context_shape(k->c, at, &got.rank, got.dim, &err) != HONE_OK)
            return fail("output", err);
        got.dtype = io.dtype;
        got.data = (void *)(uintptr_t)hone_context_output(k->c, at, &got.bytes);
        if (hone_compare(&got, &want[i], 0, 0, &d, &err) != HONE_OK) return fail("compare", err);
        if (d.n_nonfinite > 0) d.rel_l2 = 1e9;
        if (d.rel_l2 > k->error) k->error = d.rel_l2;
    }
    return 0;
}

static int make(candidate *k, int number)
{
    char path[64];
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_error *err = NULL;
    snprintf(path, sizeof path, "own_tuner_%d.hone", number);
    b.route = k->route;
    if (hone_build(model, &b, path, NULL, &err) != HONE_OK) return fail(k->route, err);
    if (hone_engine_open(path, NULL, &k->e, &err) != HONE_OK) return fail("open", err);
    if (hone_context_create(k->e, NULL, &k->c, &err) != HONE_OK) return fail("context", err);
    return bind(k) || judge(k);
}

/* In turn, so that a slow moment of the machine hits all of them alike. */
static void race(candidate *k, int n)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++) {
            if (!k[i].c || k[i].error > max_error) continue;
            const double t0 = now_ns();
            if (hone_context_run(k[i].c, NULL) != HONE_OK) continue;
            const double t = now_ns() - t0;
            if (k[i].best_ns <= 0 || t < k[i].best_ns) k[i].best_ns = t;
        }
}

static int report(const candidate *k, int n)
{
    int best = -1;
    for (int i = 0; i < n; i++) {
        const bool good = k[i].best_ns > 0;
        printf("%-40s error %.1e  %s", *k[i].route ? k[i].route : "(default)", k[i].error, good ? "" : "rejected");
        if (good) printf("%.3f ms", k[i].best_ns / 1e6);
        printf("\n");
        if (good && (best < 0 || k[i].best_ns < k[best].best_ns)) best = i;
    }
    if (best < 0) return 1;
    printf("best: %s\n", *k[best].route ? k[best].route : "(default)");
    return 0;
}

static int prepare(const char *path)
{
    hone_error *err = NULL;
    if (hone_model_load(path, NULL, &model, &err) != HONE_OK) return fail("load", err);
    const int n = hone_model_io_count(model);
    for (int i = 0; i < n; i++) {
        hone_io io;
        if (hone_model_io(model, i, &io, &err) != HONE_OK) return fail("model", err);
        n_in += !io.is_output;
        n_out += io.is_output;
    }
    if (n_in > MAX_IO || n_out > MAX_IO) return fprintf(stderr, "too many inputs or outputs\n"), 1;
    if (hone_model_make_inputs(model, 1, in, NULL, &err) != HONE_OK) return fail("inputs", err);
    if (hone_model_evaluate(model, /* f64= */ true, in, want, NULL, NULL, &err) != HONE_OK)
        return fail("evaluate", err);
    return 0;
}

int main(int argc, char **argv)
{
    candidate k[MAX_ROUTES] = { { .route = "" } };
    int n = 1, rc;

    if (argc < 2 || argc - 1 > MAX_ROUTES) {
        fprintf(stderr, "usage: %s MODEL.onnx [ROUTE ...]  (up to %d)\n", argv[0], MAX_ROUTES - 1);
        return 2;
    }
    for (int i = 2; i < argc; i++)
        k[n++].route = argv[i];
    rc = prepare(argv[1]);
    for (int i = 0; i < n && rc == 0; i++)
        if (make(&k[i], i) != 0) k[i].error = 1e9; /* a route that fails is out, the others go on */
    if (rc == 0) {
        race(k, n);
        rc = report(k, n);
    }
    for (int i = 0; i < n; i++) {
        hone_context_free(k[i].c);
        hone_engine_free(k[i].e);
    }
    for (int i = 0; i < MAX_IO; i++) {
        hone_tensor_free(&in[i]);
        hone_tensor_free(&want[i]);
    }
    hone_model_free(model);
    return rc;
}
