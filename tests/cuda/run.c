/* Engines for a GPU from end to end on a simulated one: built, loaded, run by the driver layer, compared with evaluation. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../build/run_graph.h"
#include "simulate.h"
#include "harness.h"
#include "runtime/runtime.h"

static void check(const char *text)
{
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a" });
}

TEST(cuda_pointwise_and_views)
{
    hn_simulate(/* libraries= */ false);
    check("in x f32[3,700]  in y f32[700]\na = add(x, y)  b = exp(a)  c = transpose(b) {perm=[1,0]}\nout b  out c");
    hn_check_graph("in x f16[5,33]\na = sigmoid(x)  b = cast(a) {to=f32}\nout a  out b",
                   &(hn_run_opts){ .target = "sm_90a", .tol = 1e-3 });
    check("in x f32[7,12]  in i i64[5]\ny = gather(x, i) {axis=1}\nout y");
}

TEST(cuda_reductions_and_lines)
{
    hn_simulate(/* libraries= */ false);
    check("in x f32[4,300]\na = reduce_sum(x) {axes=[1]}  b = reduce_max(x) {axes=[0]}\nout a  out b");
    check("in x f32[4,130]  in s f32[130]  in c f32[130]\na = softmax(x) {axis=1}  b = layer_norm(x, s, c)\nout a  out b");
}

TEST(cuda_rotary)
{
    hn_simulate(/* libraries= */ false);
    check("in x f32[2,5,3,16]  in c f32[1,5,8]  in s f32[1,5,8]\nt = transpose(x) {perm=[0,2,1,3]}  y = rotary(t, c, s)\nout y");
    check("in x f32[2,3,5,24]  in c f32[2,5,8]  in s f32[2,5,8]\ny = rotary(x, c, s) {rotary_dim=16}  z = exp(y)\nout z");
    hn_check_graph("in x f16[2,3,5,64]  in c f16[1,5,32]  in s f16[1,5,32]\ny = rotary(x, c, s)\nout y", &(hn_run_opts){ .target = "sm_90a", .tol = 1e-3 });
}

TEST(cuda_products_convolutions_pools)
{
    hn_simulate(/* libraries= */ false);
    check("in x f32[33,20]  const w f32[20,47]\ny = matmul(x, w)  z = relu(y)\nout z");
    check("in x f32[1,8,11,9]  const w f32[12,8,3,3]  const b f32[12]\ny = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1], "
          "stride=[2,2]}  z = relu(y)\nout z");
    check("in x f32[1,6,9,8]\ny = max_pool(x) {kernel=[3,3], stride=[2,2], dim=[4,3]}\nout y");
}

static void check_half(const char *text)
{
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .tol = 3e-3 });
}

TEST(cuda_matrix_units)
{
    hn_simulate(/* libraries= */ false);
    check_half("in x f16[33,40]  const w f16[40,48]  const b f16[48]\ny = matmul(x, w)  c = add(y, b)  z = relu(c)\nout z");
    check_half("in x f16[2,9,40]  in y f16[2,17,40]\nz = matmul(x, y) {trans_b=1}\nout z");
    check_half("in x f16[1,16,11,9]  const w f16[24,16,3,3]  const b f16[24]\ny = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1], "
               "stride=[2,2]}  z = relu(y)\nout z");
    check_half("in q f16[1,2,40,32]  in k f16[1,2,70,32]  in v f16[1,2,70,32]\ny = attention(q, k, v)\nout y");
    hn_check_graph("in x f32[33,40]  const w f32[40,48]\ny = matmul(x, w)\nout y",
                   &(hn_run_opts){ .target = "sm_90a", .tol = 1e-3, .route = "-math:tf32=1" });
}

/* Scales are powers of two: no bin may differ. */
TEST(cuda_bytes_on_matrix_units)
{
    static const char image[] = "in f u8[1,16,9,10]  const w i8[24,16,3,3]  const v u8[16,24,1,1]  const s f32[] = {0.0625}  const t f32[] = {0.25}\n"
                                "const u f32[] = {16}  const z u8[] = {131}  const o u8[] = {128}\n"
                                "x = dequantize(f, s, z)  a = dequantize(w, t)  p = conv(x, a) {pad_begin=[1,1], pad_end=[1,1]}\n"
                                "q = quantize(p, u, z) {to=u8}  d = dequantize(q, u, z)  b = dequantize(v, t, o)  c = conv(d, b)\n"
                                "e = quantize(c, u, z) {to=u8}\nout e  out q";
    static const char dynamic[] = "in x f32[17,48]  const w i8[48,40]  const c f32[] = {0.5}\nq, s, z = dynamic_quantize(x)\n"
                                  "y = matmul_int(q, w, z)  f = cast(y) {to=f32}  e = mul(s, c)  r = mul(f, e)\nout r";
    hn_simulate(/* libraries= */ false);
    hn_check_graph(image, &(hn_run_opts){ .target = "sm_90a", .tol = 1e-9 });
    hn_check_graph(image, &(hn_run_opts){ .target = "sm_90a", .tol = 1e-9, .route = "-layout:image=0" });
    check(dynamic);
    check("sym n [1,9,64]\nin x u8[n,33]  const w i8[33,24]  const z u8[] = {7}\ny = matmul_int(x, w, z)\nout y");
}

TEST(cuda_halves_kept_wide_or_rounded)
{
    static const char text[] = "in x f16[9,33]\na = exp(x)  b = sigmoid(a)  c = tanh(x)  d = mul(b, c)  e = sub(d, x)\nout e  out c";
    hn_simulate(/* libraries= */ false);
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .tol = 4e-4 }); /* one rounding of 11 bits */
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .tol = 2e-3, .route = "-core:exact=1" });
}

/* Sums split over blocks, in parts that a second launch adds. */
TEST(cuda_split_products)
{
    hn_simulate(/* libraries= */ false);
    check_half("in x f16[5,1600]  const w f16[1600,16]\ny = matmul(x, w)  z = relu(y)\nout z");
}

TEST(cuda_what_data_decides)
{
    hn_simulate(/* libraries= */ false);
    check("in x f32[3,5,7]\na, n = nonzero(x)\nout a  out n");
    check("in x f32[3,40]\nv, i = topk(x) {axis=1, dim=5}\nout v  out i");
    check("in x f32[4,9]\na = cumsum(x) {axis=1}\nout a");
}

/* Constants that are read as indices are what they are, not numbers made up for timing. */
TEST(cuda_raced_gathers_read_inside)
{
    hn_simulate(/* libraries= */ false);
    hn_check_graph("in x f32[9,64]  const i i64[3] = {8, 0, 3}\ng = gather(x, i) {axis=0}  a = softmax(g) {axis=1}\nout a",
                   &(hn_run_opts){ .target = "sm_90a", .measure = true, .route = "-core:opt_level=1" });
}

/* ---- one engine, looked at closely ---- */
typedef struct fixture {
    hn_engine *e;
    hn_context *c;
    float x[64], y[64];
} fixture;

static void build(hn_test *t, const char *text, const char *route, void **ret, size_t *ret_bytes)
{
    hn_diag dg = { 0 };
    hn_route how = { 0 };
    hn_target g;
    hn_graph *graph;
    hn_build_report r;

    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, text, &graph, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &how, &dg), &dg);
    const hn_build_opts o = { .target = &g, .threads = 1, .model_name = "test", .cache_dir = getenv("HONE_CACHE_DIR"), .route = &how };
    CHECK_OK(hn_build_engine(t->arena, graph, &o, ret, ret_bytes, &r, &dg), &dg);
}

static void make_with(hn_test *t, fixture *f, const char *text, const char *route, const hn_engine_opts *engine, hn_context_opts opts)
{
    hn_diag dg = { 0 };
    void *data = NULL;
    size_t bytes = 0;

    memset(f, 0, sizeof(*f));
    build(t, text, route, &data, &bytes);
    CHECK_OK(hn_engine_from_memory(data, bytes, engine, &f->e, &dg), &dg);
    CHECK_STR(hn_engine_get_device(f->e)->vt->name, "cuda");
    CHECK_OK(hn_context_create(f->e, &opts, &f->c, &dg), &dg);
    for (int i = 0; i < 64; i++)
        f->x[i] = (float)i - 20;
}

static void make(hn_test *t, fixture *f, const char *text, hn_context_opts opts)
{
    make_with(t, f, text, "", NULL, opts);
}

static void done(fixture *f)
{
    hn_context_destroy(f->c);
    hn_engine_unref(f->e);
    CHECK_EQ(hn_sim_counts()->live_allocations, 0);
    CHECK_EQ(hn_sim_counts()->modules, 0);
}

static void run(fixture *f)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_context_run(f->c, &dg), &dg);
}

static void bind(fixture *f, int io, void *p, size_t bytes)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_context_bind(f->c, io, p, bytes, &dg), &dg);
}

static const char two_steps[] = "in x f32[8]  const w f32[8,8]\na = relu(x)  r = reshape(a) {dim=[1,8]}  y = matmul(r, w)\nout y  out a";
static const char negate[] = "sym n [1,8,64]\nin x f32[n]\ny = neg(x)\nout y";

TEST(cuda_static_runs_are_one_graph)
{
    fixture f;
    hn_simulate(/* libraries= */ false);
    make(t, &f, two_steps, (hn_context_opts){ 0 });
    bind(&f, 0, f.x, sizeof(f.x));
    for (int i = 0; i < 3; i++)
        run(&f);
    CHECK_EQ(hn_sim_counts()->graphs, 1);
    CHECK_EQ(hn_sim_counts()->graph_launches, 3);
    CHECK(hn_sim_counts()->captured >= 2);
    CHECK_EQ(hn_sim_counts()->launches, hn_sim_counts()->captured);
    /* another output's place: recorded again; the same one: not */
    bind(&f, 1, f.y, sizeof(f.y));
    run(&f);
    CHECK_EQ(hn_sim_counts()->graphs, 1); /* host memory is copied to, so the kernels' own places stay */
    done(&f);
}

/* ---- weights over a budget ---- */
/* Five of 64 KiB, one of them read twice, and a small one that stays. */
static const char layers[] = "in x f32[1,128]  const w f32[128,128]  const v f32[128,128]  const u f32[128,128]  const s f32[128,128]\n"
                             "const r f32[128,128]  const b f32[128]\na = matmul(x, w)  c = matmul(a, v)  d = matmul(c, u)  e = matmul(d, s)\n"
                             "f = matmul(e, w)  g = matmul(f, r)  h = add(g, b)\nout h";
enum { LAYER = (128 * 128 * 4 + HN_TAIL_BYTES + 255) / 256 * 256, SMALL = (128 * 4 + HN_TAIL_BYTES + 255) / 256 * 256 };

static void run_layers(hn_test *t, const char *route, int64_t budget, bool profiled, float y[128])
{
    fixture f;
    hn_diag dg = { 0 };
    float x[128];
    const int before = hn_sim_counts()->overtakings;

    make_with(t, &f, layers, route, &(hn_engine_opts){ .weight_budget = budget }, (hn_context_opts){ 0 });
    for (int i = 0; i < 128; i++)
        x[i] = (float)(i % 9) - 4;
    bind(&f, 0, x, sizeof(x));
    if (profiled) CHECK_OK(hn_context_set_profiling(f.c, true, &dg), &dg);
    for (int i = 0; i < 3; i++) {
        run(&f);
        if (i) CHECK(memcmp(y, hn_context_output_data(f.c, 1), 128 * sizeof(*y)) == 0);
        memcpy(y, hn_context_output_data(f.c, 1), 128 * sizeof(*y));
    }
    /* copies are ahead of steps recorded before them exactly where there is room to be */
    const bool ahead = budget >= 2 * LAYER + SMALL && budget < 5 * LAYER + SMALL && !profiled;
    CHECK_EQ(hn_sim_counts()->overtakings - before > 0, ahead);
    done(&f);
}

TEST(cuda_weights_over_a_budget)
{
    static const int64_t budget[] = { LAYER + SMALL, 2 * LAYER + SMALL, 3 * LAYER + SMALL + 256, 4 * LAYER + SMALL, 5 * LAYER + SMALL, INT64_MAX };
    float want[128], got[128];

    hn_simulate(/* libraries= */ false);
    run_layers(t, "", 0, false, want);
    for (int i = 0; i < HN_COUNT(budget); i++) {
        hn_test_note("budget %lld", (long long)budget[i]);
        run_layers(t, "", budget[i], false, got);
        CHECK(memcmp(want, got, sizeof(want)) == 0);
    }
    run_layers(t, "", 2 * LAYER + SMALL, /* profiled= */ true, got);
    CHECK(memcmp(want, got, sizeof(want)) == 0);
    run_layers(t, "-plan:streams=4", 3 * LAYER + SMALL, false, got);
    CHECK(memcmp(want, got, sizeof(want)) == 0);
}

TEST(cuda_budgets_that_are_too_small)
{
    hn_diag dg = { 0 };
    hn_engine *e = NULL;
    void *data = NULL;
    size_t bytes = 0;
    char least[64];

    hn_simulate(/* libraries= */ false);
    build(t, layers, "", &data, &bytes);
    snprintf(least, sizeof(least), "at least %d bytes", LAYER + SMALL);
    CHECK_ERR(hn_engine_from_memory(data, bytes, &(hn_engine_opts){ .weight_budget = LAYER + SMALL - 1 }, &e, &dg), HONE_E_LIMIT, &dg, least);
    free(data);
    CHECK_EQ(hn_sim_counts()->live_allocations, 0);
}

/* ---- recordings are cut where data decides ---- */
/* Four steps that do not depend on data, what is found, what depends on how much that is, four more that do not. */
static const char counting[] = "in x f32[64]\na = cumsum(x)  b = softmax(a)  c = cumsum(b)  d = softmax(c)  i, n = nonzero(x)\n"
                               "f = cast(i) {to=f32}  g = exp(f)  p = cumsum(d)  q = softmax(p)  r = cumsum(q)  s = softmax(r)\nout d  out g  out s";

static void run_counting(fixture *f, int n_found)
{
    static float got[64];
    for (int i = 0; i < 64; i++)
        f->x[i] = i < n_found ? 0.125F : 0;
    run(f);
    const float *g = hn_context_output_data(f->c, 2), *s = hn_context_output_data(f->c, 3);
    CHECK_EQ(hn_context_io_bytes(f->c, 2), 4 * n_found);
    for (int i = 0; i < n_found; i++)
        CHECK(fabs((double)g[i] - exp(i)) <= 1e-5 * exp(i));
    double sum = 0;
    for (int i = 0; i < 64; i++)
        sum += (double)s[i];
    CHECK(fabs(sum - 1) < 1e-5);
    if (n_found == 9 && got[63] != 0) CHECK(memcmp(got, s, sizeof(got)) == 0);
    if (n_found == 9) memcpy(got, s, sizeof(got));
}

TEST(cuda_recordings_are_cut_where_data_decides)
{
    static const int found[] = { 9, 3, 9, 40, 0, 9 };
    fixture f;
    hn_diag dg = { 0 };

    hn_simulate(/* libraries= */ false);
    make(t, &f, counting, (hn_context_opts){ 0 });
    bind(&f, 0, f.x, sizeof(f.x));
    for (int i = 0; i < HN_COUNT(found); i++)
        run_counting(&f, found[i]);
    CHECK_EQ(hn_sim_counts()->graphs, 2);
    CHECK_EQ(hn_sim_counts()->graph_launches, 2 * HN_COUNT(found));
    CHECK(hn_sim_counts()->captured >= 8 && hn_sim_counts()->launches > hn_sim_counts()->captured);
    CHECK_OK(hn_context_set_profiling(f.c, true, &dg), &dg); /* every step by itself */
    run_counting(&f, 9);
    CHECK_EQ(hn_sim_counts()->graph_launches, 2 * HN_COUNT(found));
    done(&f);
}

/* A knob: the same numbers, another engine. */
TEST(cuda_kernels_may_be_launched_early)
{
    static const char text[] = "in x f32[3,70]\na = softmax(x) {axis=1}  b = exp(a)  c = reduce_sum(b) {axes=[0]}\nout b  out c";
    hn_simulate(/* libraries= */ false);
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a" });
    CHECK_EQ(hn_sim_counts()->early, 0);
    const int before = hn_sim_counts()->launches;
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .route = "-plan:early=1" });
    CHECK_EQ(hn_sim_counts()->early, hn_sim_counts()->launches - before);
    CHECK(hn_sim_counts()->early > 0);
}

static int early_of(const char *text, const char *route)
{
    const int before = hn_sim_counts()->early;
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .route = route });
    return hn_sim_counts()->early - before;
}

/* Regions that share a kernel need not be launched alike. */
TEST(cuda_launched_early_by_region)
{
    static const char text[] = "in x f32[3,70]\na = cumsum(x)  b = cumsum(a) from \"/b\"  c = cumsum(b)  d = softmax(c) {axis=1}\nout d";
    hn_simulate(/* libraries= */ false);
    const int all = early_of(text, "-plan:early=1");
    CHECK_EQ(all, early_of(text, "-plan:early@region:*=1"));
    const int one = early_of(text, "-plan:early@/b=1"), others = early_of(text, "-plan:early=1 -plan:early@/b=0");
    CHECK(one > 0 && one < all);
    CHECK_EQ(one + others, all);
    CHECK_EQ(early_of(text, "-plan:early=1 -plan:early@region:*=0"), 0);
}

/* Branches of a recording run in any order that what they touch allows: the simulator takes the latest that it may. */
static int overtakings(const char *text, const char *route)
{
    const int before = hn_sim_counts()->overtakings;
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .route = route, .tol = 1e-4, .cache_dir = getenv("HONE_CACHE_DIR") });
    return hn_sim_counts()->overtakings - before;
}

TEST(cuda_branches_run_side_by_side)
{
    static const struct branchy {
        const char *text;
        bool apart; /* there are branches */
    } all[] = {
        /* a diamond, and one whose arms are chains of different lengths */
        { "in x f32[9,70]\na = cumsum(x)  b = softmax(a) {axis=1}  c = cumsum(a)  d = matmul(b, c) {trans_b=1}  e = cumsum(d)\nout e", true },
        { "in x f32[9,70]\na = cumsum(x)  b = softmax(a) {axis=1}  c = cumsum(a)  d = softmax(c) {axis=1}  e = cumsum(d)  f = matmul(b, e) {trans_b=1}\n"
          "g = cumsum(f)\nout g", true },
        /* no branch at all */
        { "in x f32[9,70]\na = cumsum(x)  b = softmax(a) {axis=1}  c = cumsum(b)\nout c", false },
        /* an output that others read, and parts of one buffer written apart */
        { "in x f32[9,70]  in y f32[9,70]\na = softmax(x) {axis=1}  b = softmax(y) {axis=1}  c = concat(a, b) {axis=0}  d = cumsum(c)\nout a  out d", true },
        /* results over operands: what reads the operand comes first */
        { "in x f32[40,96]\na = cumsum(x)  b = exp(a)  c = cumsum(b)  d = softmax(x) {axis=1}  e = exp(d)  f = cumsum(e)  g = matmul(c, f) {trans_b=1}\nout g", true },
        { "sym n [1,9,64]\nin x f32[n,33]\na = cumsum(x)  b = softmax(a) {axis=1}  c = cumsum(a)  d = matmul(b, c) {trans_b=1}  e = cumsum(d)\nout e", true },
    };
    hn_simulate(/* libraries= */ false);
    CHECK_EQ(overtakings(all[0].text, "-plan:streams=1"), 0);
    for (int i = 0; i < HN_COUNT(all); i++) {
        const char *route = i % 2 ? "-plan:streams=8" : "-plan:streams=2";
        hn_test_note("%s %s", route, all[i].text);
        CHECK_EQ(overtakings(all[i].text, route) > 0, all[i].apart);
    }
}

/* Several streams wait for one kernel at a time, or are joined: a kernel that starts early waits for one. */
TEST(cuda_branches_and_early_launches)
{
    static const char text[] = "in x f32[9,70]\na = cumsum(x)  b = softmax(a) {axis=1}  c = cumsum(a)  d = matmul(b, c) {trans_b=1}  e = cumsum(d)\nout e";
    hn_simulate(/* libraries= */ false);
    const int before = hn_sim_counts()->launches;
    CHECK(overtakings(text, "-plan:streams=2 -plan:early=1") > 0);
    CHECK(hn_sim_counts()->early > 0 && hn_sim_counts()->early < hn_sim_counts()->launches - before);
}

static int launches_of(const char *text, const char *route)
{
    const int before = hn_sim_counts()->launches;
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .route = route, .tol = 3e-3 });
    return hn_sim_counts()->launches - before;
}

#define HEAD(name, x) "  " name "_ = reshape(" x ") {dim=[1,16,4,16]}  " name " = transpose(" name "_) {perm=[0,2,1,3]}"

TEST(cuda_heads_are_read_where_one_product_left_them)
{
    static const char text[] =
        "in x f16[1,16,64]  const w f16[64,192]  const b f16[192]\nm = matmul(x, w)  y = add(m, b)\n"
        "qs = slice(y) {start=[0,0,0], step=[1,1,1], dim=[1,16,64]}  ks = slice(y) {start=[0,0,64], step=[1,1,1], dim=[1,16,64]}\n"
        "vs = slice(y) {start=[0,0,128], step=[1,1,1], dim=[1,16,64]}\n" HEAD("q", "qs") HEAD("k", "ks") HEAD("v", "vs")
        "\na = attention(q, k, v) {scale=0.25}  z = transpose(a) {perm=[0,2,1,3]}  o = reshape(z) {dim=[1,16,64]}\nout o";
    hn_simulate(/* libraries= */ false);
    CHECK_EQ(launches_of(text, ""), 2);
    CHECK_EQ(launches_of(text, "-layout:columns=0"), 5);
    CHECK(launches_of(text, "-layout:columns=0 -layout:heads=0") > 5);
}

TEST(cuda_concatenations_are_one_launch)
{
    hn_simulate(/* libraries= */ false);
    CHECK_EQ(launches_of("in x f32[3,5]  in y f32[3,8]  in z f32[3,1]\na = concat(x, y, z) {axis=1}\nout a", ""), 1);
    CHECK_EQ(launches_of("in x f16[3,16,4]  in y f16[3,8,4]\na = concat(x, y) {axis=1}\nout a", ""), 1);
    CHECK_EQ(launches_of("in x i64[7]  in y i64[1]\na = concat(x, y, x) {axis=0}\nout a", ""), 1);
    CHECK_EQ(launches_of("in x u8[3,16]  in y u8[3,48]  in z u8[0,16]\nb = concat(x, y) {axis=1}\nout b", ""), 1);
    CHECK_EQ(launches_of("in x f16[2,3,4]\nt = transpose(x) {perm=[0,2,1]}  in y f16[2,5,3]\na = concat(t, y) {axis=1}\nout a", ""), 1);
    launches_of("in x f32[0,5]  in y f32[0,8]\na = concat(x, y) {axis=1}\nout a", "");
    /* channels last, between convolutions */
    launches_of("in x f16[1,16,5,4]  const w f16[24,16,1,1]  const v f16[8,32,1,1]\nc = conv(x, w)  d = max_pool(x) {kernel=[3,3], "
                "pad_begin=[1,1], pad_end=[1,1], dim=[5,4]}  s = slice(c) {start=[0,0,0,0], step=[1,1,1,1], dim=[1,16,5,4]}\n"
                "a = concat(s, d) {axis=1}  y = conv(a, v)\nout y", "");
}

TEST(cuda_columns_apart_have_other_readers_or_widths)
{
    hn_simulate(/* libraries= */ false);
    launches_of("in x f32[5,33]  const w f32[33,192]\ny = matmul(x, w)  a = slice(y) {start=[0,0], step=[1,1], dim=[5,64]}\n"
                "b = slice(y) {start=[0,64], step=[1,1], dim=[5,64]}\nout a  out b", "");
    launches_of("in x f32[5,192]\ny = exp(x)  a = slice(y) {start=[0,64], step=[1,1], dim=[5,64]}  b = softmax(a) {axis=1}\n"
                "c = slice(y) {start=[0,0], step=[1,1], dim=[5,64]}  d = cumsum(c) {axis=1}\nout b  out d", "");
    launches_of("in x f32[5,192]\ny = exp(x)  a = slice(y) {start=[0,64], step=[1,1], dim=[5,128]}  b = softmax(a) {axis=1}\nout b  out y", "");
    launches_of("in x f32[2,3,128]\ny = neg(x)  a = slice(y) {start=[0,0,64], step=[1,1,1], dim=[2,2,64]}  s = cumsum(a) {axis=2}\nout s", "");
}

TEST(cuda_shapes_and_bindings_change)
{
    fixture f;
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    make(t, &f, negate, (hn_context_opts){ .profile = -1 });
    for (int64_t n = 1; n <= 64; n *= 4) {
        CHECK_OK(hn_context_set_input_shape(f.c, 0, 1, &n, &dg), &dg);
        bind(&f, 0, f.x, (size_t)n * 4);
        bind(&f, 1, n == 16 ? f.y : NULL, n == 16 ? sizeof(f.y) : 0);
        run(&f);
        const float *y = hn_context_output_data(f.c, 1);
        CHECK(y != NULL && (y == f.y) == (n == 16));
        for (int i = 0; i < n; i++)
            CHECK(y[i] == -f.x[i]);
    }
    done(&f);
}

TEST(cuda_device_memory_is_used_as_it_is)
{
    fixture f;
    hn_diag dg = { 0 };
    void *x, *y;
    hn_simulate(/* libraries= */ false);
    make(t, &f, negate, (hn_context_opts){ .profile = -1 });
    hn_device *d = hn_engine_get_device(f.e);
    hn_queue *q;
    CHECK_OK(hn_queue_create(d, NULL, &q, &dg), &dg);
    CHECK_OK(hn_device_alloc(d, 256, 64, &x, &dg), &dg);
    CHECK_OK(hn_device_alloc(d, 256, 64, &y, &dg), &dg);
    CHECK(hn_device_owns(d, x) && !hn_device_owns(d, f.x));
    CHECK_OK(hn_queue_write(q, x, f.x, 256, &dg), &dg);
    const int64_t n = 64;
    CHECK_OK(hn_context_set_input_shape(f.c, 0, 1, &n, &dg), &dg);
    bind(&f, 0, x, 256);
    bind(&f, 1, y, 256);
    const int sent = hn_sim_counts()->to_device;
    run(&f);
    CHECK_EQ(hn_sim_counts()->to_device, sent);
    CHECK_EQ(hn_sim_counts()->to_host, 0);
    CHECK(hn_context_output_data(f.c, 1) == y);
    CHECK_OK(hn_queue_read(q, f.y, y, 256, &dg), &dg);
    for (int i = 0; i < 64; i++)
        CHECK(f.y[i] == -f.x[i]);
    hn_device_free(d, x, 256);
    hn_device_free(d, y, 256);
    hn_queue_destroy(q);
    done(&f);
}

/* For measuring: what was sent stays, until something else is bound or given; what is asked for comes back. */
TEST(cuda_runs_without_transfers)
{
    fixture f;
    hn_diag dg = { 0 };
    const int64_t n = 64;
    hn_simulate(/* libraries= */ false);
    make(t, &f, negate, (hn_context_opts){ .profile = -1 });
    CHECK_OK(hn_context_set_input_shape(f.c, 0, 1, &n, &dg), &dg);
    bind(&f, 0, f.x, sizeof(f.x));
    bind(&f, 1, f.y, sizeof(f.y));
    hn_context_set_transfers(f.c, false);
    run(&f);
    const int sent = hn_sim_counts()->to_device;
    f.x[0] = 77;
    for (int i = 0; i < 3; i++)
        run(&f);
    CHECK_EQ(hn_sim_counts()->to_device, sent);
    CHECK_EQ(hn_sim_counts()->to_host, 0);
    bind(&f, 0, f.x, sizeof(f.x));
    run(&f);
    CHECK_EQ(hn_sim_counts()->to_device, sent + 1);
    hn_context_set_transfers(f.c, true);
    f.x[0] = 78;
    run(&f);
    CHECK_EQ(hn_sim_counts()->to_device, sent + 2);
    CHECK_EQ(hn_sim_counts()->to_host, 1);
    CHECK(hn_context_output_data(f.c, 1) == f.y);
    for (int i = 0; i < 64; i++)
        CHECK(f.y[i] == -f.x[i]);
    done(&f);
}

/* Kernels read and copy in pieces of 16 bytes: buffers start there, be they the caller's or parts of others. */
TEST(cuda_buffers_start_at_whole_pieces)
{
    fixture f;
    hn_diag dg = { 0 };
    void *x;
    hn_simulate(/* libraries= */ false);
    make(t, &f, negate, (hn_context_opts){ .profile = -1 });
    CHECK_OK(hn_device_alloc(hn_engine_get_device(f.e), 256, 64, &x, &dg), &dg);
    CHECK_ERR(hn_context_bind(f.c, 0, (char *)x + 4, 252, &dg), HONE_E_INVALID, &dg, "aligned to 16 bytes");
    hn_device_free(hn_engine_get_device(f.e), x, 256);
    done(&f);
    check("in x f32[9,5]\na = exp(x)  b = slice(a) {start=[1,0], step=[1,1], dim=[8,5]}  c = cumsum(b)  d = neg(a)\nout c  out d");
    check("in x f32[9,8]\na = exp(x)  b = slice(a) {start=[3,0], step=[1,1], dim=[4,8]}  c = cumsum(b)  d = neg(a)\nout c  out d");
}

TEST(cuda_profiling_times_each_step)
{
    fixture f;
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    make(t, &f, two_steps, (hn_context_opts){ 0 });
    bind(&f, 0, f.x, sizeof(f.x));
    CHECK_OK(hn_context_set_profiling(f.c, true, &dg), &dg);
    run(&f);
    CHECK_EQ(hn_sim_counts()->graphs, 0);
    for (int i = 0; i < hn_context_n_step_time(f.c); i++)
        CHECK_EQ(hn_context_step_time(f.c, i).n_run, 1);
    done(&f);
}

TEST(cuda_wrong_bindings)
{
    fixture f;
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    make(t, &f, two_steps, (hn_context_opts){ 0 });
    CHECK_ERR(hn_context_run(f.c, &dg), HONE_E_UNBOUND, &dg, "\"x\"");
    bind(&f, 0, f.x, 5);
    CHECK_ERR(hn_context_run(f.c, &dg), HONE_E_INVALID, &dg, "32 bytes");
    bind(&f, 0, f.x, sizeof(f.x));
    bind(&f, 1, f.y, 5);
    CHECK_ERR(hn_context_run(f.c, &dg), HONE_E_INVALID, &dg, "32 bytes");
    done(&f);
}

/* A fault ends GPU engines of this process, and nothing else. */
TEST(cuda_a_fault_names_its_kernels_and_ends_the_context)
{
    fixture f;
    hn_diag dg = { 0 };
    hn_device *d;
    hn_simulate(/* libraries= */ false);
    make(t, &f, negate, (hn_context_opts){ .profile = -1 });
    const int64_t n = 8;
    CHECK_OK(hn_context_set_input_shape(f.c, 0, 1, &n, &dg), &dg);
    bind(&f, 0, f.x, sizeof(f.x));
    run(&f);
    CHECK_OK(hn_context_set_profiling(f.c, true, &dg), &dg);
    hn_sim_fail_next_wait(700);
    CHECK(hn_context_run(f.c, &dg) == HONE_E_DEVICE);
    hn_diag_clear(&dg);
    CHECK_ERR(hn_context_run(f.c, &dg), HONE_E_DEVICE, &dg, "illegal memory access");
    CHECK_ERR(hn_device_cuda(&d, &dg), HONE_E_DEVICE, &dg, "earlier fault");
    hn_context_destroy(f.c);
    hn_engine_unref(f.e);
    hn_check_graph(negate, NULL); /* on the CPU */
}

TEST(cuda_a_fault_in_a_graph_names_what_ran)
{
    fixture f;
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    make(t, &f, two_steps, (hn_context_opts){ 0 });
    bind(&f, 0, f.x, sizeof(f.x));
    run(&f);
    run(&f);
    hn_sim_fail_next_wait(719);
    CHECK(hn_context_run(f.c, &dg) == HONE_E_DEVICE);
    CHECK(strstr(dg.hint, "matmul_any_naive") != NULL);
    hn_context_destroy(f.c);
    hn_engine_unref(f.e);
}

TEST(cuda_absent_driver_is_said)
{
    hn_diag dg = { 0 };
    hn_device *d;
    CHECK(setenv("HONE_CUDA_DRIVER", "/nonexistent/libcuda.so", 1) == 0);
    if (hn_device_cuda(&d, &dg) == HONE_OK) SKIP("this machine has a GPU");
    CHECK(dg.code == HONE_E_NOTFOUND || dg.code == HONE_E_DEVICE);
    CHECK(strstr(dg.message, "CUDA driver") != NULL);
}

TEST(cuda_device_describes_itself)
{
    hn_diag dg = { 0 };
    hn_device *d;
    hn_str s = { 0 };
    hn_simulate(/* libraries= */ false);
    CHECK_OK(hn_device_get("cuda", &d, &dg), &dg);
    hn_device_cuda_print(d, &s);
    CHECK(strstr(hn_str_get(&s), "simulated GPU, compute capability 9.0, 132 multiprocessors") != NULL);
    hn_str_done(&s);
    CHECK_EQ(hn_device_clock_mhz(d), SIM_CLOCK_MHZ);
    CHECK_EQ(hn_device_clock_mhz(hn_device_cpu()), 0);
    hn_target g;
    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_device_check_target(d, &g, &dg), &dg);
    CHECK_OK(hn_target_get("sm_80", &g, &dg), &dg);
    CHECK_ERR(hn_device_check_target(d, &g, &dg), HONE_E_TARGET, &dg, "8.x");
    CHECK_OK(hn_target_get("x86-64-v3", &g, &dg), &dg);
    CHECK_ERR(hn_device_check_target(d, &g, &dg), HONE_E_TARGET, &dg, "not for a GPU");
}

TEST(cuda_damaged_code_is_refused)
{
    static const uint8_t junk[256] = { 1, 2, 3 };
    hn_diag dg = { 0 };
    hn_device *d;
    hn_module *m;
    hn_simulate(/* libraries= */ false);
    CHECK_OK(hn_device_get("cuda", &d, &dg), &dg);
    CHECK_ERR(hn_device_load_code(d, junk, sizeof(junk), &m, &dg), HONE_E_FORMAT, &dg, "no kernel image");
    CHECK_ERR(hn_device_load_code(d, junk, 10, &m, &dg), HONE_E_FORMAT, &dg, "no kernel image");
    CHECK_OK(hn_device_load_code(d, junk, 0, &m, &dg), &dg);
    hn_device_unload(d, m);
}
