/* Indices out of range: engines fail as evaluation does, wherever the gather or scatter ended up; no read or write outside. */
#include <stdio.h>
#include <string.h>

#include "harness.h"
#include "run_graph.h"
#include "runtime/runtime.h"

typedef struct bad_index {
    const char *text; /* its only input: i */
    int64_t index[8]; /* the wrong one among them */
    const char *fails;
} bad_index;

static void check(hn_test *t, const bad_index *c, const char *route)
{
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    hn_tensor in = { 0 };
    hn_test_note("%s", c->text);
    CHECK_OK(hn_parse(t->arena, c->text, &g, &dg), &dg);
    hn_tdesc d = g->in[0]->type;
    for (int a = 0; a < d.rank; a++)
        if (!hn_dim_is_const(d.dim[a])) d.dim[a] = 8;
    CHECK_OK(hn_tensor_init(&in, &d, &dg), &dg);
    CHECK(hn_tensor_numel(&in) <= 8);
    hn_narrow_i64(d.dtype, c->index, hn_tensor_numel(&in), in.data, 0);
    hn_check_graph_of(t->arena, g, &(hn_run_opts){ .in = &in, .fails = c->fails, .route = route });
    hn_tensor_done(&in);
}

#define TABLE "x = iota() {dtype=f32, dim=[10,33], axis=0}\n"

static const bad_index cases[] = {
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=0}\nout y", { 0, 1, 9, 3, -10, 5, 10, 2 }, "index 10 is out of range for extent 10" },
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=0}\nout y", { 0, 1, 9, 3, -10, 5, -11, 2 }, "index -11 is out of range for extent 10" },
    { "in i i32[8]\n" TABLE "y = gather(x, i) {axis=1}\nout y", { 0, 1, 9, 3, -33, 33, 10, 2 }, "index 33 is out of range for extent 33" },
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=1}\nout y",
      { 0, 1, 9, 3, 4, 5, INT64_MAX, 2 }, "index 9223372036854775807 is out of range for extent 33" },
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=1}\nout y",
      { 0, 1, 9, 3, 4, 5, INT64_MIN, 2 }, "index -9223372036854775808 is out of range for extent 33" },
    { "sym n\nin i i64[n]\n" TABLE "y = gather(x, i) {axis=1}\nout y", { 40, 1, 9, 3, 4, 5, 6, 2 }, "index 40 is out of range for extent 33" },
    { "in i i64[]\n" TABLE "y = gather(x, i) {axis=0}  z = exp(y)\nout z", { 17 }, "index 17 is out of range for extent 10" },
    /* folded into what reads it */
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=1}  m = mul(y, y)  s = reduce_sum(m) {axes=[1], keepdims=0}\nout s",
      { 0, 1, 9, 3, 4, 5, 6, 99 }, "index 99 is out of range for extent 33" },
    { "in i i64[8]\nconst w f32[33,4]\n" TABLE "y = gather(x, i) {axis=0}  m = matmul(y, w)\nout m",
      { 0, 1, 9, 3, 4, 5, 6, 12 }, "index 12 is out of range for extent 10" },
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=0}  s = softmax(y) {axis=1}\nout s",
      { 0, 1, 9, 3, 4, 5, 6, 12 }, "index 12 is out of range for extent 10" },
    { "in i i64[8]\n" TABLE "y = gather(x, i) {axis=1}  p = pad(y) {mode=constant, before=[1,3], after=[1,2]}\nout p",
      { 0, 1, 9, 3, 4, 5, 6, 34 }, "index 34 is out of range for extent 33" },
    /* through one index to the next */
    { "in i i64[8]\nj = iota() {dtype=i64, dim=[20], axis=0}\n" TABLE "k = gather(j, i)  y = gather(x, k) {axis=0}\nout y",
      { 0, 1, 9, 3, 4, 5, 6, 15 }, "index 15 is out of range for extent 10" },
    { "in i i64[1,8]\n" TABLE "y = gather_elements(x, i) {axis=0}\nout y", { 0, 1, 9, 3, 4, 5, 6, 10 }, "index 10 is out of range for extent 10" },
    { "in i i64[8,1]\n" TABLE "y = gather_elements(x, i) {axis=1}\nout y", { 0, 1, 9, 3, 4, 5, 6, 33 }, "index 33 is out of range for extent 33" },
    { "in i i64[4,2]\n" TABLE "y = gather_nd(x, i)\nout y", { 0, 1, 9, 32, 4, 33, 6, 3 }, "index 33 is out of range for extent 33" },
    { "in i i64[4,2]\n" TABLE "y = gather_nd(x, i)\nout y", { 0, 1, 9, 32, 10, 3, 6, 3 }, "index 10 is out of range for extent 10" },
    { "in i i64[8,1]\n" TABLE "y = gather_nd(x, i)\nout y", { 0, 1, 9, 2, 10, 3, 6, 3 }, "index 10 is out of range for extent 10" },
    { "in i i64[1,8]\nconst u f32[1,8]\n" TABLE "y = scatter_elements(x, i, u) {axis=0}\nout y",
      { 0, 1, 9, 3, 4, 5, 6, 10 }, "index 10 is out of range for extent 10" },
    { "in i i64[1,8]\nconst u f32[1,8]\n" TABLE "y = scatter_elements(x, i, u) {axis=1, reduction=add}\nout y",
      { 0, 1, 9, -34, 4, 5, 6, 10 }, "index -34 is out of range for extent 33" },
    { "in i i64[8,1]\nconst u f32[8,33]\n" TABLE "y = scatter_nd(x, i, u)\nout y",
      { 0, 1, 9, 3, 4, 5, 6, 10 }, "index 10 is out of range for extent 10" },
    { "in i i64[4,2]\nconst u f32[4]\n" TABLE "y = scatter_nd(x, i, u) {reduction=max}\nout y",
      { 0, 1, 9, 33, 4, 5, 6, 10 }, "index 33 is out of range for extent 33" },
};

TEST(engines_tell_of_indices_out_of_range)
{
    for (int i = 0; i < HN_COUNT(cases); i++) check(t, &cases[i], NULL);
}

TEST(nothing_fused_tells_too)
{
    for (int i = 0; i < HN_COUNT(cases); i++) check(t, &cases[i], "-region:views=0 -region:prologue=0 -region:chain=0");
}

TEST(an_axis_of_no_elements_has_no_index)
{
    static const bad_index none[] = {
        { "in i i64[2]\nconst x f32[0,3] = {}\ny = gather(x, i) {axis=0}\nout y", { 0, 0 }, "1 is to be at most 0" },
        { "in i i64[2]\nz, n = nonzero(i)  y = gather(z, i) {axis=1}\nout y", { 0, 0 }, "1 must be at most 0" },
        { "in i i64[2]\nconst x f32[0] = {}\ny = gather_elements(x, i) {axis=0}\nout y", { 0, 0 }, "1 is to be at most 0" },
        { "in i i64[2,1]\nconst x f32[0,3] = {}\ny = gather_nd(x, i)\nout y", { 0, -1 }, "1 is to be at most 0" },
        { "in i i64[2]\nconst x f32[0] = {}  const u f32[2]\ny = scatter_elements(x, i, u) {axis=0}\nout y", { 0, 0 }, "index 0 is out of range for extent 0" },
    };
    for (int i = 0; i < HN_COUNT(none); i++) check(t, &none[i], NULL);
}

/* A branch that is not taken tells nothing; a body tells in the turn that meets the index. */
TEST(control_flow_tells_what_runs)
{
    static const char branch[] = "in i i64[1]\n" TABLE
                                 "const zero i64[1] = {0}  c = lt(i, zero)  k = reshape(c) {dim=[]}\n"
                                 "y = if(k) { n = gather(x, zero) {axis=0}  out n } { m = gather(x, i) {axis=0}  out m }\nout y";
    check(t, &(bad_index){ branch, { 10 }, "index 10 is out of range for extent 10" }, NULL);
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    hn_tensor in = { 0 };
    CHECK_OK(hn_parse(t->arena, branch, &g, &dg), &dg);
    CHECK_OK(hn_tensor_init(&in, &g->in[0]->type, &dg), &dg);
    hn_narrow_i64(HN_I64, &(int64_t){ -99 }, 1, in.data, 0);
    hn_check_graph_of(t->arena, g, &(hn_run_opts){ .in = &in });
    hn_tensor_done(&in);
}

/* Kernels do not look at these indices; racing them must not make up others. */
TEST(proved_indices_are_raced)
{
    static const char *const texts[] = {
        "in x f32[64,9]\nconst t f32[9,33]\ni = arg_max(x) {axis=1, keepdims=0}\ny = gather(t, i) {axis=0}\nout y",
        ("in x f32[64,9]\nconst t f32[18,33]\nconst two i64[] = {2}\ni = arg_max(x) {axis=1, keepdims=0}  j = mul(i, two)\n"
         "y = gather(t, j) {axis=0}\nout y"),
        "in x f32[5,64]\nv, i = topk(x) {axis=1, dim=7}\ny = gather_elements(x, i) {axis=1}  z = exp(y)\nout z",
        "in x f32[40,50]\nz, n = nonzero(x)  i = transpose(z) {perm=[1,0]}\ny = gather_nd(x, i)  s = neg(y)\nout s",
    };
    for (int i = 0; i < HN_COUNT(texts); i++) hn_check_graph(texts[i], &(hn_run_opts){ .measure = true });
}

static void run(hn_context *c, const char *fails)
{
    hn_diag dg = { 0 };
    const hone_status s = hn_context_run(c, &dg);
    if (!fails) {
        CHECK_OK(s, &dg);
        return;
    }
    CHECK_EQ(s, HONE_E_MODEL);
    CHECK(strstr(dg.message, fails) && strstr(dg.frames, "step"));
    CHECK(strstr(dg.hint, "-10 to 9"));
}

/* An engine of the text, and a context of it. */
static hn_context *context_of(hn_test *t, const char *text, hn_engine **ret)
{
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    const hn_target target = hn_test_target();
    void *data = NULL;
    size_t bytes = 0;
    hn_build_report report;
    hn_context *c = NULL;
    CHECK_OK(hn_parse(t->arena, text, &g, &dg), &dg);
    const hn_build_opts b = { .target = &target, .route = &(hn_route){ 0 }, .threads = 2, .model_name = "test" };
    CHECK_OK(hn_build_engine(t->arena, g, &b, &data, &bytes, &report, &dg), &dg);
    CHECK_OK(hn_engine_from_memory(data, bytes, NULL, ret, &dg), &dg);
    CHECK_OK(hn_context_create(*ret, NULL, &c, &dg), &dg);
    return c;
}

TEST(a_context_recovers)
{
    hn_diag dg = { 0 };
    hn_engine *e = NULL;
    int64_t i[8] = { 0 };
    hn_context *c = context_of(t, cases[0].text, &e);
    CHECK_OK(hn_context_bind(c, 0, i, sizeof i, &dg), &dg);
    run(c, NULL);
    i[5] = 10;
    run(c, "index 10 is");
    i[5] = -12;
    run(c, "index -12 is");
    i[5] = 9;
    run(c, NULL);
    const float *y = hn_context_output_data(c, 1);
    CHECK_EQ((int)y[5 * 33], 9);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Whole vectors and the masked end of a row: neither may hide a wrong index, and the right ones beside it are read. */
TEST(every_lane_tells)
{
    enum { N = 43 };
    static const char *const texts[] = {
        "in i i64[43]  in x f32[10]\ny = gather(x, i) {axis=0}\nout y",
        "in i i64[43]  in x f64[10]\ny = gather(x, i) {axis=0}\nout y",
        "in i i64[43]  in x f16[10]\ny = gather(x, i) {axis=0}\nout y",
        "in i i64[43]  in x u8[10]\ny = gather(x, i) {axis=0}\nout y",
        "in i i64[43]  in x f32[3,10]\ny = gather(x, i) {axis=1}\nout y",
        "in i i64[1,43]  in x f32[10,43]\ny = gather_elements(x, i) {axis=0}\nout y",
    };
    static const int64_t wrong[] = { 10, -11, INT64_MAX, INT64_MIN, (1ll << 32) + 3 };
    static double x[10 * N];
    for (int k = 0; k < HN_COUNT(texts); k++) {
        hn_diag dg = { 0 };
        hn_engine *e = NULL;
        int64_t i[N];
        for (int j = 0; j < N; j++) i[j] = j % 20 - 10;
        hn_context *c = context_of(t, texts[k], &e);
        CHECK_OK(hn_context_bind(c, 0, i, sizeof i, &dg), &dg);
        CHECK_OK(hn_context_bind(c, 1, x, sizeof x, &dg), &dg);
        for (int j = 0; j < N; j++) {
            const int64_t was = i[j], bad = wrong[j % HN_COUNT(wrong)];
            char says[64];
            snprintf(says, sizeof says, "index %lld is", (long long)bad);
            i[j] = bad;
            run(c, says);
            i[j] = was;
            run(c, NULL);
        }
        hn_context_destroy(c);
        hn_engine_unref(e);
    }
}
