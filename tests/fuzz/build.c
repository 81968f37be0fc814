/*
 * Damaged ONNX files through everything: import, evaluation, a build by the cost model, loading, running. Whatever imports must
 * be evaluated and built, or refused with a reason; whatever is built must run, or say why not; and the two must agree.
 */
#include <hone/hone.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "harness.h"
#include "mutate.h"
#include "seeds.h"

enum { MAX_IO = 64, STEP_MS = 2000 };
enum { MAX_INPUT = 1 << 20, MAX_ARENA = 64 << 20 }; /* bytes: a mutated extent may be anything */

typedef struct tally {
    int64_t imported, evaluated, built, ran, agreed;
} tally;

typedef struct files {
    char model[64], engine[64];
} files;

/* A refusal has a reason, and is no fault of ours. */
static void check_refusal(hone_status s, hone_error *err, const char *doing)
{
    if (s == HONE_E_INTERNAL || s == HONE_E_CRASH || !hone_error_message(err)[0])
        FAIL("%s: status %d: %s", doing, (int)s, hone_error_text(err));
    hone_error_free(err);
}

static bool in_time(void *user, const char *phase HN_UNUSED, int64_t done HN_UNUSED, int64_t total HN_UNUSED, double elapsed_s,
                    double remaining_s HN_UNUSED)
{
    (void)user;
    return elapsed_s < 1e-3 * STEP_MS;
}

/* Inputs whose sizes are stated and vast are not worth their memory. */
static bool small_inputs(const hone_model *m)
{
    const int n = hone_model_io_count(m);
    for (int i = 0; i < n; i++) {
        hone_io io;
        int64_t size = 8;
        if (hone_model_io(m, i, &io, NULL) || io.is_output) continue;
        for (int a = 0; a < io.rank; a++)
            if (io.dim[a] > 0 && (__builtin_mul_overflow(size, io.dim[a], &size) || size > MAX_INPUT)) return false;
    }
    return n <= MAX_IO;
}

static bool evaluate(hone_model *m, const hone_tensor *in, hone_tensor *out)
{
    hone_error *err = NULL;
    const hone_status s = hone_model_evaluate(m, false, in, out, in_time, NULL, &err);
    if (s) check_refusal(s, err, "evaluate");
    return s == HONE_OK;
}

static bool build(hone_model *m, const files *f)
{
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    b.opt_level = 0;
    b.threads = 1;
    b.timing_cache = "";
    b.progress = in_time;
    const hone_status s = hone_build(m, &b, f->engine, NULL, &err);
    if (s) check_refusal(s, err, "build");
    return s == HONE_OK;
}

static bool run(const files *f, const hone_tensor *in, hone_context **ret)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    const hone_context_options co = { sizeof co, 1, MAX_ARENA };
    hone_io io;
    hone_status s = hone_engine_open(f->engine, NULL, &e, &err);
    if (s) FAIL("an engine just built does not open: %s", hone_error_text(err));
    s = hone_context_create(e, &co, ret, &err);
    for (int i = 0; s == HONE_OK && i < hone_engine_io_count(e); i++) {
        if (hone_engine_io(e, i, &io, NULL) || io.is_output) break;
        s = hone_context_set_shape(*ret, i, in[i].rank, in[i].dim, &err);
        if (s == HONE_OK) s = hone_context_bind(*ret, i, in[i].data, in[i].bytes, &err);
    }
    if (s == HONE_OK) s = hone_context_run(*ret, &err);
    hone_engine_free(e);
    if (s) check_refusal(s, err, "run");
    return s == HONE_OK;
}

/* Both succeeded: shapes and types are the same. Values are the business of tests that know the ops. */
static void compare(const hone_model *m, const hone_context *c, const hone_tensor *want, int n_in)
{
    for (int i = n_in; i < hone_model_io_count(m); i++) {
        int64_t dim[10];
        int rank;
        size_t bytes;
        const hone_tensor *w = &want[i - n_in];
        CHECK_EQ(hone_context_shape(c, i, &rank, dim, NULL), HONE_OK);
        (void)hone_context_output(c, i, &bytes);
        CHECK_EQ(rank, w->rank);
        for (int a = 0; a < rank; a++) CHECK_EQ(dim[a], w->dim[a]);
        CHECK_EQ(bytes, w->bytes);
    }
}

static void try_model(hone_model *m, const files *f, tally *n)
{
    hone_tensor in[MAX_IO] = { 0 }, want[MAX_IO] = { 0 };
    hone_context *c = NULL;
    hone_error *err = NULL;
    hone_io io;
    int n_in = 0;
    while (n_in < hone_model_io_count(m) && !hone_model_io(m, n_in, &io, NULL) && !io.is_output) n_in++;
    const hone_status s = hone_model_make_inputs(m, 1, in, NULL, &err);
    if (s) check_refusal(s, err, "make inputs");
    const bool fed = s == HONE_OK, evaluated = fed && evaluate(m, in, want), built = build(m, f);
    const bool ran = fed && built && run(f, in, &c);
    if (evaluated && ran) compare(m, c, want, n_in);
    n->evaluated += evaluated;
    n->built += built;
    n->ran += ran;
    n->agreed += evaluated && ran;
    hone_context_free(c);
    for (int i = 0; i < MAX_IO; i++) {
        hone_tensor_free(&in[i]);
        hone_tensor_free(&want[i]);
    }
}

typedef struct work {
    files f;
    tally n;
} work;

static void one(void *user, const fuzz_buf *b)
{
    work *w = user;
    hone_model *m = NULL;
    hone_error *err = NULL;
    CHECK_OK(hn_write_file_atomic(w->f.model, b->at, b->n, NULL), NULL);
    const hone_status s = hone_model_load(w->f.model, NULL, &m, &err);
    if (s) {
        check_refusal(s, err, "import");
        return;
    }
    w->n.imported++;
    if (small_inputs(m)) try_model(m, &w->f, &w->n);
    hone_model_free(m);
}

static void fuzz_kind(const char *kind, off_t max_bytes, int64_t rounds, int64_t salt)
{
    static fuzz_seeds s;
    char dir[] = "/tmp/hone-fuzz-XXXXXX";
    work w = { .n = { 0 } };
    fuzz_find_seeds(&s, kind, max_bytes);
    CHECK(mkdtemp(dir));
    snprintf(w.f.model, sizeof w.f.model, "%s/m.onnx", dir);
    snprintf(w.f.engine, sizeof w.f.engine, "%s/m.hone", dir);
    rounds = fuzz_mutated(&s, rounds, salt, 2, one, &w);
    unlink(w.f.model);
    unlink(w.f.engine);
    rmdir(dir);
    printf("    of %lld: %lld imported, %lld evaluated, %lld built, %lld ran, %lld compared\n", (long long)rounds,
           (long long)w.n.imported, (long long)w.n.evaluated, (long long)w.n.built, (long long)w.n.ran, (long long)w.n.agreed);
    if (rounds >= 100 && w.n.agreed == 0) FAIL("nothing came through to the end");
}

TEST(build_mutated_nodes)
{
    fuzz_kind("node", 16 << 10, 150, 5000000);
}

TEST(build_mutated_operators)
{
    fuzz_kind("pytorch-operator", 16 << 10, 50, 6000000);
}
