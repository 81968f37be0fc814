/* Engines and contexts through the public API: shapes, bindings, threads, errors, memory. */
#include "models.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(run_binds_and_owns)
{
    float x[6] = { -1, 2, -3, 4, -5, 6 }, y[6] = { 0 };
    const int64_t two[] = { 2, 3 }, one[] = { 1, 3 };
    int64_t dim[10];
    int rank;
    size_t n;
    hone_error *err = NULL;
    hone_engine *e = engine_of(relu_model(), NULL);
    hone_context *c = context_of(e);
    hone_engine_free(e); /* the context holds its own reference */
    EXPECT_ERROR(hone_context_run(c, &err), HONE_E_SHAPE, "x");
    EXPECT_OK(hone_context_set_shape(c, 0, 2, two, &err));
    EXPECT_OK(hone_context_prepare(c, &err));
    EXPECT_ERROR(hone_context_run(c, &err), HONE_E_UNBOUND, "x");
    EXPECT_OK(hone_context_shape(c, 1, &rank, dim, &err));
    CHECK(rank == 2 && dim[0] == 2 && dim[1] == 3);
    CHECK(!hone_context_output(c, 1, &n));
    EXPECT_OK(hone_context_bind(c, 0, x, sizeof x, &err));
    EXPECT_OK(hone_context_run(c, &err));
    const float *own = hone_context_output(c, 1, &n);
    CHECK(own && n == sizeof y && own[1] == 2 && own[2] == 0);
    EXPECT_OK(hone_context_bind(c, 1, y, sizeof y, &err));
    EXPECT_OK(hone_context_run(c, &err));
    CHECK(y[5] == 6 && hone_context_output(c, 1, NULL) == y);
    EXPECT_OK(hone_context_bind(c, 1, y, 8, &err));
    EXPECT_ERROR(hone_context_run(c, &err), HONE_E_INVALID, "24");
    EXPECT_OK(hone_context_bind(c, 1, NULL, 0, &err));
    EXPECT_OK(hone_context_bind(c, 0, x, 8, &err));
    EXPECT_ERROR(hone_context_run(c, &err), HONE_E_INVALID, "24");
    EXPECT_OK(hone_context_bind(c, 0, x, sizeof x, &err));
    EXPECT_OK(hone_context_set_shape(c, 0, 2, one, &err)); /* another shape on the fly */
    EXPECT_OK(hone_context_run(c, &err));
    (void)hone_context_output(c, 1, &n);
    CHECK_EQ(n, 12);
    hone_context_free(c);
}

TEST(inputs_by_name_and_by_index)
{
    hone_io io;
    hone_error *err = NULL;
    hone_engine *e = engine_of(lookup_model(), NULL);
    CHECK_EQ(hone_engine_io_count(e), 3);
    CHECK_EQ(hone_engine_find_io(e, "mask"), 1);
    CHECK_EQ(hone_engine_find_io(e, "z"), 2);
    CHECK_EQ(hone_engine_find_io(e, "nope"), -1);
    EXPECT_OK(hone_engine_io(e, 1, &io, &err));
    CHECK_STR(io.name, "mask");
    CHECK(io.dtype == HONE_DTYPE_I64 && !io.is_output && io.dim[0] == -1);
    EXPECT_ERROR(hone_engine_io(e, 3, &io, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_engine_io(e, -1, &io, &err), HONE_E_INVALID, NULL);
    CHECK(strstr(hone_engine_manifest(e), "\"model\""));
    CHECK_EQ(strlen(hone_engine_payload(e)), 32);
    CHECK(hone_engine_bytes(e) > 4096);
    hone_engine_free(e);
}

TEST(tensors_that_are_there_are_kept)
{
    static int64_t mask[] = { 1, 0, 1, 1, 0, 1 };
    hone_error *err = NULL;
    hone_model *m = load(lookup_model(), NULL);
    hone_tensor in[2] = { [1] = { HONE_DTYPE_I64, 2, { 2, 3 }, mask, sizeof mask } };
    char *note = NULL;
    EXPECT_OK(hone_model_make_inputs(m, 1, in, &note, &err));
    CHECK(in[1].data == mask && in[0].rank == 2 && in[0].dim[0] == 2 && in[0].dim[1] == 3);
    CHECK(strstr(note, "\"ids\"") && !strstr(note, "\"mask\""));
    hone_string_free(note);
    EXPECT_OK(hone_model_make_inputs(m, 1, in, &note, &err)); /* nothing is left to make */
    CHECK_STR(note, "");
    hone_string_free(note);
    in[0].dim[1] = 2;
    EXPECT_ERROR(hone_model_make_inputs(m, 1, in, NULL, &err), HONE_E_SHAPE, "extent 1 of input \"mask\" is 3");
    in[0].dim[1] = 3;
    in[1].rank = 1;
    EXPECT_ERROR(hone_model_make_inputs(m, 1, in, NULL, &err), HONE_E_SHAPE, "rank 1");
    in[1].rank = 2;
    in[1].dtype = HONE_DTYPE_F32;
    EXPECT_ERROR(hone_model_make_inputs(m, 1, in, NULL, &err), HONE_E_TYPE, "\"mask\" is f32");
    hone_tensor_free(&in[0]);
    hone_model_free(m);
}

TEST(made_up_inputs_fit_and_agree_with_the_models)
{
    const int64_t shape[] = { 3, 5 };
    hone_error *err = NULL;
    hone_tensor from_model[2] = { 0 }, x;
    char *note = NULL;
    int64_t lo[] = { 3, 5 };
    hone_profile p[] = { { "ids", 2, lo, lo, lo }, { "mask", 2, lo, lo, lo } };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    o.profile = p;
    o.n_profile = 2;
    const char *path = lookup_model();
    hone_engine *e = engine_of(path, NULL);
    hone_context *c = context_of(e);
    hone_model *m = load(path, &o);
    EXPECT_OK(hone_model_make_inputs(m, 7, from_model, NULL, &err));
    EXPECT_ERROR(hone_context_make_input(c, 0, 7, &x, NULL, &err), HONE_E_INVALID, "ids"); /* no shape yet */
    for (int i = 0; i < 2; i++) {
        EXPECT_OK(hone_context_set_shape(c, i, 2, shape, &err));
        EXPECT_OK(hone_context_make_input(c, i, 7, &x, &note, &err));
        CHECK(x.dtype == HONE_DTYPE_I64 && x.rank == 2 && x.bytes == 120 && from_model[i].bytes == 120);
        CHECK(memcmp(x.data, from_model[i].data, 120) == 0);
        for (int k = 0; k < 15; k++) {
            const int64_t v = ((int64_t *)x.data)[k];
            CHECK(i == 1 ? v == 1 : v >= 0 && v < 16);
        }
        CHECK(strstr(note, i == 1 ? "ones" : "below 16"));
        hone_string_free(note);
        hone_tensor_free(&x);
        hone_tensor_free(&from_model[i]);
    }
    EXPECT_ERROR(hone_context_make_input(c, 2, 7, &x, NULL, &err), HONE_E_INVALID, NULL);
    hone_context_free(c);
    hone_engine_free(e);
    hone_model_free(m);
}

TEST(shapes_are_chosen_where_none_is_given)
{
    const int64_t shape[] = { 3, 5 };
    int64_t dim[10];
    int rank;
    hone_error *err = NULL;
    hone_engine *e = engine_of(lookup_model(), NULL);
    hone_context *c = context_of(e);
    EXPECT_OK(hone_context_choose_shapes(c, &err));
    EXPECT_OK(hone_context_shape(c, 1, &rank, dim, &err));
    CHECK(dim[0] == 1 && dim[1] == 1);
    hone_context_free(c);
    c = context_of(e);
    EXPECT_OK(hone_context_set_shape(c, 1, 2, shape, &err));
    EXPECT_OK(hone_context_choose_shapes(c, &err)); /* ids must follow the mask */
    EXPECT_OK(hone_context_shape(c, 0, &rank, dim, &err));
    CHECK(dim[0] == 3 && dim[1] == 5);
    EXPECT_OK(hone_context_choose_shapes(c, &err)); /* nothing is left to choose */
    hone_context_free(c);
    hone_engine_free(e);
}

TEST(shapes_that_do_not_fit)
{
    const int64_t lo[] = { 1, 3 }, mid[] = { 2, 3 }, hi[] = { 4, 3 }, five[] = { 5, 3 }, wide[] = { 2, 4 }, neg[] = { -1, 3 };
    hone_profile p = { "x", 2, lo, mid, hi };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    hone_error *err = NULL;
    int64_t dim[10];
    int rank;
    o.profile = &p;
    o.n_profile = 1;
    hone_engine *e = engine_of(relu_model(), &o);
    hone_context *c = context_of(e);
    EXPECT_OK(hone_context_shape(c, 0, &rank, dim, &err)); /* the profile's optimum */
    CHECK_EQ(dim[0], 2);
    EXPECT_ERROR(hone_context_set_shape(c, 0, 2, five, &err), HONE_E_SHAPE, "1 to 4");
    EXPECT_ERROR(hone_context_set_shape(c, 0, 2, wide, &err), HONE_E_SHAPE, "axis 1");
    EXPECT_ERROR(hone_context_set_shape(c, 0, 2, neg, &err), HONE_E_SHAPE, "x");
    EXPECT_ERROR(hone_context_set_shape(c, 0, 1, mid, &err), HONE_E_SHAPE, "rank");
    EXPECT_ERROR(hone_context_set_shape(c, 1, 2, mid, &err), HONE_E_INVALID, "output");
    EXPECT_ERROR(hone_context_set_shape(c, 9, 2, mid, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_set_shape(c, 0, 2, NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_bind(c, 9, dim, 8, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_shape(c, 9, &rank, dim, &err), HONE_E_INVALID, NULL);
    hone_context_free(c);
    hone_engine_free(e);
}

TEST(sizes_that_depend_on_data)
{
    float x[] = { 0, 1, 0, 2 };
    int64_t dim[10];
    int rank;
    size_t n;
    hone_error *err = NULL;
    hone_engine *e = engine_of(nonzero_model(), NULL);
    hone_context *c = context_of(e);
    EXPECT_OK(hone_context_bind(c, 0, x, sizeof x, &err));
    EXPECT_ERROR(hone_context_shape(c, 1, &rank, dim, &err), HONE_E_INVALID, "run");
    EXPECT_OK(hone_context_run(c, &err));
    EXPECT_OK(hone_context_shape(c, 1, &rank, dim, &err));
    CHECK(rank == 2 && dim[0] == 1 && dim[1] == 2);
    const int64_t *y = hone_context_output(c, 1, &n);
    CHECK(n == 16 && y[0] == 1 && y[1] == 3);
    hone_context_free(c);
    hone_engine_free(e);
}

TEST(a_memory_ceiling_names_the_tensor)
{
    hone_error *err = NULL;
    hone_context *c = NULL;
    hone_context_options o = HONE_CONTEXT_OPTIONS_INIT;
    hone_engine *e = engine_of(deep_model(64, 4), NULL);
    o.memory_ceiling = 4096;
    const hone_status s = hone_context_create(e, &o, &c, &err);
    expect_error(s, err, HONE_E_LIMIT, "4096");
    CHECK(c == NULL);
    o.memory_ceiling = 1 << 24;
    EXPECT_OK(hone_context_create(e, &o, &c, &err));
    hone_context_free(c);
    o.memory_ceiling = -1;
    EXPECT_ERROR(hone_context_create(e, &o, &c, &err), HONE_E_INVALID, NULL);
    o = (hone_context_options){ sizeof o, -5, 0 };
    EXPECT_ERROR(hone_context_create(e, &o, &c, &err), HONE_E_INVALID, NULL);
    o = (hone_context_options){ 0, 1, 0 };
    EXPECT_ERROR(hone_context_create(e, &o, &c, &err), HONE_E_INVALID, "size");
    hone_engine_free(e);
}

/* ---- threads ---- */
typedef struct job {
    hone_engine *e;
    int batch, rounds;
    bool good;
} job;

static void *work(void *user)
{
    job *j = user;
    float x[32 * 3], want[32 * 3];
    const int64_t dim[] = { j->batch, 3 };
    const size_t bytes = sizeof(float) * 3 * (size_t)j->batch;
    j->good = true;
    for (int i = 0; i < 3 * j->batch; i++) {
        x[i] = (float)(i % 7 - 3) * (float)j->batch;
        want[i] = x[i] > 0 ? x[i] : 0;
    }
    for (int r = 0; r < j->rounds; r++) { /* contexts come and go while others run */
        hone_context *c = NULL;
        size_t n = 0;
        if (hone_context_create(j->e, NULL, &c, NULL) || hone_context_set_shape(c, 0, 2, dim, NULL) ||
            hone_context_bind(c, 0, x, bytes, NULL))
            j->good = false;
        for (int k = 0; j->good && k < 20; k++) {
            j->good &= hone_context_run(c, NULL) == HONE_OK;
            const void *y = hone_context_output(c, 1, &n);
            j->good &= y && n == bytes && memcmp(y, want, n) == 0;
        }
        hone_context_free(c);
    }
    return NULL;
}

TEST(contexts_run_at_once_each_with_its_own_batch)
{
    enum { N = 6 };
    pthread_t thread[N];
    job j[N];
    hone_engine *e = engine_of(relu_model(), NULL);
    for (int i = 0; i < N; i++) {
        j[i] = (job){ e, 1 + 5 * i, 20, false };
        CHECK_EQ(pthread_create(&thread[i], NULL, work, &j[i]), 0);
    }
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        CHECK(j[i].good);
    }
    hone_engine_free(e);
}

typedef struct endless {
    hone_context *c;
    volatile bool done;
} endless;

static void *keep_cancelling(void *user)
{
    endless *x = user;
    const struct timespec ms = { 0, 1000000 };
    while (!x->done) {
        hone_context_cancel(x->c);
        nanosleep(&ms, NULL);
    }
    return NULL;
}

TEST(a_run_is_cancelled_from_another_thread)
{
    pthread_t thread;
    hone_error *err = NULL;
    hone_tensor x;
    hone_status s = HONE_OK;
    hone_engine *e = engine_of(deep_model(256, 60), NULL);
    hone_context *c = context_of(e);
    endless cancelling = { c, false };
    EXPECT_OK(hone_context_make_input(c, 0, 1, &x, NULL, &err));
    EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
    CHECK_EQ(pthread_create(&thread, NULL, keep_cancelling, &cancelling), 0);
    for (int i = 0; i < 2000 && s == HONE_OK; i++) s = hone_context_run(c, i < 1999 ? &err : NULL);
    cancelling.done = true;
    pthread_join(thread, NULL);
    expect_error(s, err, HONE_E_CANCELLED, NULL);
    err = NULL;
    EXPECT_OK(hone_context_run(c, &err)); /* and goes on afterwards */
    hone_context_free(c);
    hone_engine_free(e);
    hone_tensor_free(&x);
}

/* ---- files ---- */
static hone_status open_patched(const char *path, long at, int value, long cut, hone_error **err)
{
    hone_engine *e = NULL;
    char *bytes = malloc(1 << 20);
    FILE *f = fopen(path, "rb");
    CHECK(bytes && f);
    size_t n = fread(bytes, 1, 1 << 20, f);
    fclose(f);
    if (at >= 0) bytes[at] = (char)value;
    if (cut >= 0) n = (size_t)cut;
    const char *bad = scratch("bad.hone");
    f = fopen(bad, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0);
    free(bytes);
    const hone_status s = hone_engine_open(bad, NULL, &e, err);
    CHECK(s == HONE_OK || e == NULL);
    hone_engine_free(e);
    return s;
}

TEST(engine_files_that_are_not_whole)
{
    hone_engine *e = NULL;
    hone_error *err = NULL;
    hone_engine_options o = HONE_ENGINE_OPTIONS_INIT;
    hone_engine_free(engine_of(relu_model(), NULL));
    const char *path = scratch("engine.hone");
    CHECK_EQ(open_patched(path, -1, 0, -1, &err), HONE_OK);
    EXPECT_ERROR(open_patched(path, 0, 'x', -1, &err), HONE_E_FORMAT, "bad.hone");
    EXPECT_ERROR(open_patched(path, 8, 99, -1, &err), HONE_E_VERSION, "99");
    EXPECT_ERROR(open_patched(path, 200, 77, -1, &err), HONE_E_FORMAT, "bad.hone");
    EXPECT_ERROR(open_patched(path, -1, 0, 5000, &err), HONE_E_FORMAT, "bad.hone");
    EXPECT_ERROR(open_patched(path, -1, 0, 10, &err), HONE_E_FORMAT, "bad.hone");
    EXPECT_ERROR(open_patched(path, -1, 0, 0, &err), HONE_E_FORMAT, "bad.hone");
    EXPECT_ERROR(hone_engine_open(scratch("none.hone"), NULL, &e, &err), HONE_E_NOTFOUND, "none.hone");
    EXPECT_ERROR(hone_engine_open("/tmp", NULL, &e, &err), HONE_E_IO, "/tmp");
    EXPECT_ERROR(hone_engine_open("/dev/null", NULL, &e, &err), HONE_E_IO, "/dev/null");
    EXPECT_ERROR(hone_engine_open(relu_model(), NULL, &e, &err), HONE_E_FORMAT, "relu.onnx");
    EXPECT_ERROR(hone_engine_open(NULL, NULL, &e, &err), HONE_E_INVALID, NULL);
    o.size = 0;
    EXPECT_ERROR(hone_engine_open(path, &o, &e, &err), HONE_E_INVALID, "size");
    o = (hone_engine_options){ sizeof o, true, false, -1 };
    EXPECT_ERROR(hone_engine_open(path, &o, &e, &err), HONE_E_INVALID, "-1 bytes");
    o = (hone_engine_options){ sizeof o, true, false, 1 }; /* of a GPU's memory: here weights lie where the file is mapped */
    EXPECT_OK(hone_engine_open(path, &o, &e, &err));
    hone_engine_free(e);
}

TEST(an_engine_of_another_processor)
{
    hone_error *err = NULL;
    hone_engine *e = NULL;
    hone_context *c = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(relu_model(), NULL);
    const char *path = scratch("foreign.hone");
    b.opt_level = 0;
    b.target = "x86-64-v4";
    setenv("HONE_CPU_FEATURES", "avx2", 1); /* what this process may use from here on */
    EXPECT_OK(hone_build(m, &b, path, NULL, &err));
    EXPECT_ERROR(hone_engine_open(path, NULL, &e, &err), HONE_E_TARGET, "avx512");
    hone_engine_options look = HONE_ENGINE_OPTIONS_INIT;
    look.inspect = true;
    CHECK_EQ(hone_engine_open(path, &look, &e, NULL), HONE_OK);
    CHECK(strstr(hone_engine_manifest(e), "x86-64-v4"));
    EXPECT_ERROR(hone_context_create(e, NULL, &c, &err), HONE_E_INVALID, "inspected");
    hone_engine_free(e);
    hone_model_free(m);
}

TEST(profiling_tells_steps)
{
    hone_error *err = NULL;
    hone_tensor x;
    char *text = NULL;
    hone_engine *e = engine_of(deep_model(8, 4), NULL);
    hone_context *c = context_of(e);
    EXPECT_OK(hone_context_make_input(c, 0, 1, &x, NULL, &err));
    EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
    EXPECT_OK(hone_context_set_profiling(c, true, &err));
    EXPECT_OK(hone_context_set_transfers(c, false, &err)); /* there are none on a processor */
    for (int i = 0; i < 3; i++) EXPECT_OK(hone_context_run(c, &err));
    EXPECT_OK(hone_context_profile_json(c, &text, &err));
    CHECK(strstr(text, "\"runs\": 3") || strstr(text, "\"runs\":3"));
    hone_string_free(text);
    hone_context_free(c);
    hone_engine_free(e);
    hone_tensor_free(&x);
}

TEST(no_context_no_crash)
{
    hone_error *err = NULL;
    hone_context *c = NULL;
    hone_io io;
    char *text;
    int64_t dim[10];
    int rank;
    size_t n = 5;
    EXPECT_ERROR(hone_context_create(NULL, NULL, &c, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_set_shape(NULL, 0, 1, dim, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_choose_shapes(NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_prepare(NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_shape(NULL, 0, &rank, dim, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_bind(NULL, 0, dim, 8, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_run(NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_set_profiling(NULL, true, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_set_transfers(NULL, false, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_profile_json(NULL, &text, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_context_make_input(NULL, 0, 0, NULL, NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_engine_io(NULL, 0, &io, &err), HONE_E_INVALID, NULL);
    CHECK(hone_context_output(NULL, 0, &n) == NULL && n == 0);
    CHECK_EQ(hone_engine_io_count(NULL), 0);
    CHECK_EQ(hone_engine_find_io(NULL, "x"), -1);
    CHECK_STR(hone_engine_manifest(NULL), "");
    CHECK_STR(hone_engine_payload(NULL), "");
    CHECK_EQ(hone_engine_bytes(NULL), 0);
    hone_context_cancel(NULL);
    hone_context_free(NULL);
    hone_engine_free(NULL);
}
