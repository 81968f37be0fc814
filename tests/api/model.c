/* Models through the public API: loading, building, evaluating, made-up inputs, and what is refused. */
#include "models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST(model_says_what_it_has)
{
    hone_io io;
    hone_model *m = load(lookup_model(), NULL);
    CHECK_EQ(hone_model_io_count(m), 3);
    CHECK(hone_model_node_count(m) >= 3);
    CHECK_OK(hone_model_io(m, 0, &io, NULL), NULL);
    CHECK_STR(io.name, "ids");
    CHECK(!io.is_output && io.dtype == HONE_DTYPE_I64 && io.rank == 2 && io.dim[0] == -1);
    CHECK_STR(io.symbol[0], "b");
    CHECK_OK(hone_model_io(m, 2, &io, NULL), NULL);
    CHECK_STR(io.name, "z");
    CHECK(io.is_output && io.dtype == HONE_DTYPE_F32 && io.dim[2] == 4);
    CHECK_STR(io.symbol[2], "");
    hone_model_free(m);
}

TEST(load_errors)
{
    hone_model *m = NULL;
    hone_error *err = NULL;
    const char *junk = scratch("junk.onnx");
    FILE *f = fopen(junk, "wb");
    CHECK(f && fputs("this is no protobuf at all", f) >= 0 && fclose(f) == 0);
    EXPECT_ERROR(hone_model_load(junk, NULL, &m, &err), HONE_E_FORMAT, "junk.onnx");
    EXPECT_ERROR(hone_model_load(scratch("none.onnx"), NULL, &m, &err), HONE_E_NOTFOUND, "none.onnx");
    EXPECT_ERROR(hone_model_load("/", NULL, &m, &err), HONE_E_IO, NULL);
    EXPECT_ERROR(hone_model_load(NULL, NULL, &m, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_model_load(junk, NULL, NULL, &err), HONE_E_INVALID, NULL);
    CHECK_EQ(hone_model_load(junk, NULL, &m, NULL), HONE_E_FORMAT); /* nobody asked why */
    CHECK(m == NULL);
}

TEST(every_problem_is_listed)
{
    static wire g;
    hone_model *m = NULL;
    hone_error *err = NULL;
    onnx_node(&g, "Relu", "x", "a");
    onnx_node(&g, "NoSuchOp", "a", "b");
    onnx_node(&g, "NorThisOne", "b", "y");
    onnx_io(&g, false, "x", ONNX_F32, "2");
    onnx_io(&g, true, "y", ONNX_F32, "2");
    const hone_status s = hone_model_load(onnx_save(&g, "odd.onnx"), NULL, &m, &err);
    CHECK_EQ(s, HONE_E_UNSUPPORTED);
    CHECK_EQ(hone_error_count(err), 2);
    CHECK(strstr(hone_error_item(err, 0), "NoSuchOp") && strstr(hone_error_item(err, 1), "NorThisOne"));
    CHECK_STR(hone_error_item(err, 2), "");
    CHECK_STR(hone_error_item(err, -1), "");
    hone_error_free(err);
}

TEST(contradicting_models)
{
    static wire g;
    hone_model *m = NULL;
    hone_error *err = NULL;
    onnx_node(&g, "Relu", "nowhere", "y");
    onnx_io(&g, false, "x", ONNX_F32, "2");
    onnx_io(&g, true, "y", ONNX_F32, "2");
    EXPECT_ERROR(hone_model_load(onnx_save(&g, "open.onnx"), NULL, &m, &err), HONE_E_MODEL, "nowhere");
    g.n = 0;
    onnx_node(&g, "Relu", "x", "y");
    onnx_io(&g, false, "x", ONNX_F32, "2");
    onnx_io(&g, true, "", ONNX_F32, "2");
    EXPECT_ERROR(hone_model_load(onnx_save(&g, "nameless.onnx"), NULL, &m, &err), HONE_E_MODEL, "output has no name");
    g.n = 0;
    onnx_node(&g, "MatMul", "x x", "y");
    onnx_io(&g, false, "x", ONNX_F32, "2 3");
    onnx_io(&g, true, "y", ONNX_F32, "2 3");
    EXPECT_ERROR(hone_model_load(onnx_save(&g, "shape.onnx"), NULL, &m, &err), HONE_E_SHAPE, "MatMul");
    g.n = 0;
    onnx_node(&g, "And", "x x", "y");
    onnx_io(&g, false, "x", ONNX_F32, "2");
    onnx_io(&g, true, "y", ONNX_BOOL, "2");
    EXPECT_ERROR(hone_model_load(onnx_save(&g, "type.onnx"), NULL, &m, &err), HONE_E_TYPE, "And");
}

TEST(profiles_are_checked)
{
    hone_model *m = NULL;
    hone_error *err = NULL;
    const int64_t lo[] = { 1, 3 }, mid[] = { 2, 3 }, hi[] = { 8, 3 }, wrong[] = { 2, 5 };
    hone_profile p = { "x", 2, lo, mid, hi };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    const char *path = relu_model();
    o.profile = &p;
    o.n_profile = 1;
    hone_model_free(load(path, &o));
    p.input = "nope";
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "nope");
    p = (hone_profile){ "x", 3, lo, mid, hi };
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "rank");
    p = (hone_profile){ "x", 2, wrong, wrong, wrong };
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "axis 1");
    p = (hone_profile){ "x", 2, hi, mid, lo };
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "x");
    p = (hone_profile){ "x", 2, lo, NULL, hi };
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "profile 0");
    p = (hone_profile){ NULL, 2, lo, mid, hi };
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "profile 0");
    o.size = 0;
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "size");
    o = (hone_model_options){ offsetof(hone_model_options, profile), &p, 1, NULL, 0 }; /* from an older header */
    hone_model_free(load(path, &o));
}

TEST(values_become_constants)
{
    hone_model *m = NULL;
    hone_error *err = NULL;
    int64_t ids[] = { 1, 2 };
    hone_input_value v = { "ids", { HONE_DTYPE_I64, 2, { 1, 2 }, ids, sizeof ids } };
    hone_model_options o = HONE_MODEL_OPTIONS_INIT;
    o.value = &v;
    o.n_value = 1;
    const char *path = lookup_model();
    m = load(path, &o);
    CHECK_EQ(hone_model_io_count(m), 2);
    hone_model_free(m);
    v.value.bytes = 8;
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "ids");
    v.value.bytes = sizeof ids;
    v.value.dtype = HONE_DTYPE_F64;
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_TYPE, "ids");
    v.value.dtype = HONE_DTYPE_I64;
    v.input = "nope";
    EXPECT_ERROR(hone_model_load(path, &o, &m, &err), HONE_E_INVALID, "nope");
}

TEST(evaluation_is_the_reference)
{
    float x[] = { -1, 2, -3 };
    hone_tensor in = { HONE_DTYPE_F32, 2, { 1, 3 }, x, sizeof x }, out = { 0 };
    hone_error *err = NULL;
    hone_difference d;
    hone_model *m = load(relu_model(), NULL);
    EXPECT_OK(hone_model_evaluate(m, true, &in, &out, NULL, NULL, &err));
    CHECK(out.dtype == HONE_DTYPE_F64 && out.bytes == 24 && out.rank == 2);
    CHECK_NEAR(((double *)out.data)[1], 2, 0);
    EXPECT_OK(hone_compare(&out, &out, 0, 0, &d, &err));
    CHECK(d.n == 3 && d.rel_l2 == 0 && d.n_nonfinite == 0);
    EXPECT_ERROR(hone_compare(&in, NULL, 0, 0, &d, &err), HONE_E_INVALID, NULL);
    hone_tensor other = in;
    other.dim[1] = 1;
    other.bytes = 4;
    EXPECT_ERROR(hone_compare(&in, &other, 0, 0, &d, &err), HONE_E_SHAPE, NULL);
    hone_tensor_free(&out);
    in.dtype = HONE_DTYPE_I32;
    EXPECT_ERROR(hone_model_evaluate(m, true, &in, &out, NULL, NULL, &err), HONE_E_TYPE, "x");
    in = (hone_tensor){ HONE_DTYPE_F32, 2, { 1, 3 }, x, 4 };
    EXPECT_ERROR(hone_model_evaluate(m, true, &in, &out, NULL, NULL, &err), HONE_E_INVALID, "bytes");
    in = (hone_tensor){ HONE_DTYPE_F32, 2, { 3, 1 }, x, sizeof x };
    EXPECT_ERROR(hone_model_evaluate(m, true, &in, &out, NULL, NULL, &err), HONE_E_SHAPE, "x");
    in.rank = 99;
    EXPECT_ERROR(hone_model_evaluate(m, true, &in, &out, NULL, NULL, &err), HONE_E_INVALID, "x");
    hone_model_free(m);
}

static bool stop(void *user, const char *phase, int64_t done, int64_t total, double elapsed_s, double remaining_s)
{
    int *calls = user;
    CHECK(phase && *phase && elapsed_s >= 0 && (total == 0 || done <= total) && (remaining_s < 0 || remaining_s < 1e6));
    ++*calls;
    return false;
}

TEST(long_work_is_cancelled)
{
    int calls = 0;
    hone_error *err = NULL;
    hone_model *m = load(deep_model(16, 8), NULL);
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    const char *path = scratch("cancelled.hone");
    b.opt_level = 0;
    b.progress = stop;
    b.progress_user = &calls;
    EXPECT_ERROR(hone_build(m, &b, path, NULL, &err), HONE_E_CANCELLED, NULL);
    CHECK(calls > 0);
    CHECK(access(path, F_OK) != 0); /* nothing is left */
    hone_tensor in = { 0 }, out = { 0 };
    char *note = NULL;
    EXPECT_OK(hone_model_make_inputs(m, 1, &in, &note, &err));
    CHECK(strstr(note, "\"x\""));
    hone_string_free(note);
    calls = 0;
    EXPECT_ERROR(hone_model_evaluate(m, true, &in, &out, stop, &calls, &err), HONE_E_CANCELLED, NULL);
    CHECK(calls > 0);
    hone_tensor_free(&in);
    hone_model_free(m);
}

TEST(build_errors)
{
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(relu_model(), NULL);
    b.opt_level = 0;
    b.route = "-no:such=1";
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_INVALID, "no:such");
    b.route = NULL;
    b.opt_level = 9;
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_INVALID, "9");
    b.opt_level = 0;
    b.target = "z80";
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_NOTFOUND, "z80");
    b.target = NULL;
    EXPECT_ERROR(hone_build(m, &b, "/nowhere/at/all/e.hone", NULL, &err), HONE_E_IO, "/nowhere/at/all/e.hone");
    EXPECT_ERROR(hone_build(m, &b, "/dev/full", NULL, &err), HONE_E_IO, "/dev/full");
    EXPECT_ERROR(hone_build(m, &b, "/tmp", NULL, &err), HONE_E_IO, "/tmp");
    EXPECT_ERROR(hone_build(m, &b, NULL, NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_build(NULL, &b, "e.hone", NULL, &err), HONE_E_INVALID, NULL);
    b.cache_dir = "/dev/null/cache";
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_IO, "/dev/null/cache");
    hone_model_free(m);
}

/* By tools that stay, one engine as by new ones; after an error as well, and where another build keeps its kernels elsewhere. */
TEST(tools_stay_between_builds)
{
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(relu_model(), NULL);
    hone_engine *e = NULL;
    char want[64];
    const char *path = scratch("kept.hone");
    b.opt_level = 0;
    for (int i = 0; i < 5; i++) {
        b.keep_tools = i > 0;
        b.cache_dir = i == 4 ? "" : NULL;
        b.route = i == 2 ? "-no:such=1" : NULL;
        if (i == 2) {
            EXPECT_ERROR(hone_build(m, &b, path, NULL, &err), HONE_E_INVALID, "no:such");
            continue;
        }
        EXPECT_OK(hone_build(m, &b, path, NULL, &err));
        EXPECT_OK(hone_engine_open(path, NULL, &e, &err));
        if (i == 0) snprintf(want, sizeof want, "%s", hone_engine_payload(e));
        if (i < 4) CHECK_STR(hone_engine_payload(e), want); /* without a cache this machine's peaks are measured anew */
        hone_engine_free(e);
    }
    hone_model_free(m);
    unlink(path);
}

TEST(a_missing_compiler_is_said)
{
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(relu_model(), NULL);
    setenv("HONE_WORKER", "/nowhere/hone-worker", 1);
    b.cache_dir = "";
    b.opt_level = 0;
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_NOTFOUND, "/nowhere/hone-worker");
    setenv("HONE_WORKER", "/bin/false", 1);
    EXPECT_ERROR(hone_build(m, &b, scratch("e.hone"), NULL, &err), HONE_E_CRASH, "worker");
    hone_model_free(m);
}

TEST(report_and_knobs)
{
    hone_error *err = NULL;
    hone_report *r = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_model *m = load(relu_model(), NULL);
    char *text = NULL;
    b.opt_level = 0;
    EXPECT_OK(hone_build(m, &b, scratch("e.hone"), &r, &err));
    CHECK(strstr(hone_report_json(r), "\"regions\""));
    hone_report_free(r);
    EXPECT_OK(hone_model_knobs_json(m, &b, &text, &err));
    CHECK(strstr(text, "knobs_read"));
    hone_string_free(text);
    text = hone_knobs_json();
    CHECK(text && strstr(text, "region:chain"));
    hone_string_free(text);
    EXPECT_OK(hone_route_canonical("-region:chain=0  -core:opt_level=3", &text, &err));
    CHECK_STR(text, "-region:chain=0"); /* defaults dropped */
    hone_string_free(text);
    EXPECT_ERROR(hone_route_canonical("-region:chian=0", &text, &err), HONE_E_INVALID, "region:chain");
    EXPECT_ERROR(hone_route_canonical(NULL, &text, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_model_knobs_json(NULL, NULL, &text, &err), HONE_E_INVALID, NULL);
    EXPECT_OK(hone_doctor_json(&text, &err));
    CHECK(strstr(text, "\"features\""));
    hone_string_free(text);
    hone_model_free(m);
}

TEST(tune_refuses)
{
    hone_error *err = NULL;
    hone_build_options b = HONE_BUILD_OPTIONS_INIT;
    hone_tune_options o = HONE_TUNE_OPTIONS_INIT;
    const char *path = relu_model(), *out = scratch("t.hone");
    o.metric = "nope";
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "threshold");
    o.threshold = 1e-3;
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "nope");
    o.metric = NULL;
    o.strategy = "nope";
    b.opt_level = 0;
    o.build = &b;
    o.max_trials = 1;
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "nope");
    o.strategy = NULL;
    o.expression = "-no:such=[0|1]";
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "no:such");
    o.expression = NULL;
    EXPECT_ERROR(hone_tune(path, NULL, &o, NULL, NULL, &err), HONE_E_INVALID, "path");
    EXPECT_ERROR(hone_tune(NULL, NULL, &o, out, NULL, &err), HONE_E_INVALID, NULL);
    b.size = 0;
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "size");
    o.build = NULL;
    o.size = 0;
    EXPECT_ERROR(hone_tune(path, NULL, &o, out, NULL, &err), HONE_E_INVALID, "size");
}

static void count_lines(void *user, hone_log_level level, const char *text)
{
    CHECK(level <= HONE_LOG_VERBOSE && text);
    ++*(int *)user;
}

TEST(the_log_goes_where_it_is_told)
{
    int lines = 0;
    hone_set_log(count_lines, &lines, HONE_LOG_VERBOSE);
    hone_engine_free(engine_of(relu_model(), NULL));
    CHECK(lines > 0);
    const int before = lines;
    hone_set_log(NULL, NULL, HONE_LOG_DEBUG);
    hone_engine_free(engine_of(relu_model(), NULL));
    CHECK_EQ(lines, before);
}

TEST(nothing_is_asked_of_null)
{
    hone_io io;
    hone_error *err = NULL;
    CHECK_EQ(hone_model_io_count(NULL), 0);
    CHECK_EQ(hone_model_node_count(NULL), 0);
    EXPECT_ERROR(hone_model_io(NULL, 0, &io, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_model_make_inputs(NULL, 0, NULL, NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_model_evaluate(NULL, true, NULL, NULL, NULL, NULL, &err), HONE_E_INVALID, NULL);
    EXPECT_ERROR(hone_doctor_json(NULL, &err), HONE_E_INVALID, NULL);
    hone_model_free(NULL);
    hone_report_free(NULL);
    hone_tensor_free(NULL);
    hone_error_free(NULL);
    hone_string_free(NULL);
    CHECK_STR(hone_report_json(NULL), "");
    CHECK_STR(hone_error_message(NULL), "");
    CHECK_STR(hone_error_hint(NULL), "");
    CHECK_STR(hone_error_text(NULL), "");
    CHECK_EQ(hone_error_status(NULL), HONE_OK);
    CHECK_EQ(hone_error_count(NULL), 0);
    CHECK_STR(hone_error_item(NULL, 0), "");
    CHECK_STR(hone_dtype_name((hone_dtype)999), "none");
    CHECK_EQ(hone_dtype_bits((hone_dtype)999), 0);
    CHECK(*hone_status_text((hone_status)999) != 0);
    CHECK_STR(hone_version(), "0.1.0");
    err = hone_error_create(HONE_E_TIMEOUT, "mine");
    CHECK_STR(hone_error_message(err), "mine");
    CHECK_EQ(hone_error_status(err), HONE_E_TIMEOUT);
    hone_error_free(err);
}
