/* Candidates raced on a simulated GPU, in a worker process: what is timed, and what becomes of those that fault, hang or crash. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../build/run_graph.h"
#include "base/os.h"
#include "build/heat.h"
#include "codegen/codegen.h"
#include "harness.h"
#include "simulate.h"

static struct hn_heat_worker *kept; /* for builds that share one; NULL: each has its own */

/* timing_cache: NULL: none. */
static hn_build_report race(hn_test *t, const char *text, const char *route, int64_t timeout_ns, const char *timing_cache)
{
    hn_diag dg = { 0 };
    hn_target g;
    hn_graph *graph;
    hn_route parsed = { 0 };
    hn_build_report r;
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, text, &graph, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &parsed, &dg), &dg);
    const hn_build_opts o = { .target = &g, .threads = 1, .model_name = "test", .route = &parsed, .measure = true,
                              .candidate_timeout_ns = timeout_ns, .timing_cache = timing_cache, .heat = kept,
                              .cache_dir = getenv("HONE_CACHE_DIR") };
    CHECK_OK(hn_build_engine(t->arena, graph, &o, &data, &bytes, &r, &dg), &dg);
    free(data);
    return r;
}

static int n_timed(const hn_build_report *r)
{
    int n = 0;
    for (int i = 0; i < r->region[0].n_candidate; i++) n += r->region[0].candidate[i].measured_ns > 0;
    return n;
}

/* Candidates that are out for a reason that holds the text. */
static int n_out(const hn_build_report *r, const char *text)
{
    int n = 0;
    for (int i = 0; i < r->region[0].n_candidate; i++) {
        const char *reason = r->region[0].candidate[i].reason;
        n += reason && strstr(reason, text);
    }
    return n;
}

TEST(race_candidates_are_timed)
{
    hn_simulate(/* libraries= */ false);
    const hn_build_report r = race(t, "in x f32[3,20]\na = softmax(x) {axis=1}\nout a", "-core:opt_level=1", 0, NULL);
    CHECK_EQ(n_timed(&r), 2);
    CHECK(r.region[0].measured);
    CHECK_EQ(hn_sim_counts()->launches, 0); /* of this process */
    for (int i = 0; i < r.n_read; i++) CHECK(r.read[i].knob != HN_KNOB_code_passes); /* LLVM's: a route with it would time everything anew */
}

TEST(race_operands_are_numbers)
{
    enum { BYTES = 1 << 16 };
    uint8_t *at = hn_arena_alloc(t->arena, BYTES, 8);
    double *v = HN_NEW_N(t->arena, double, 2 * BYTES);
    hn_heat_fill(at, BYTES);
    for (int d = 0; d < HN_NDTYPES; d++) {
        if (!hn_dtype_is_float((hn_dtype)d)) continue;
        const int64_t n = (int64_t)BYTES * 8 / hn_dtype_bits((hn_dtype)d);
        int below = 0;
        hn_widen_f64((hn_dtype)d, at, 0, n, v);
        for (int64_t i = 0; i < n; i++) {
            CHECK(isfinite(v[i]) && fabs(v[i]) <= 0x1p64);
            below += v[i] < 0;
        }
        if (hn_dtype_bits((hn_dtype)d) >= 16) CHECK(below > n / 4 && below < n - n / 4);
    }
    double least = 2;
    hn_widen_f64(HN_F16, at, 0, BYTES / 2, v);
    for (int i = 0; i < BYTES / 2; i++) least = fmin(least, fabs(v[i]));
    CHECK(least >= 0.5 && least < 0.51);
}

/* ---- libraries ---- */
TEST(race_proposals_of_a_library)
{
    hn_simulate(/* libraries= */ true);
    const hn_build_report r = race(t, "in x f16[8,64]  const w f16[64,32]\ny = matmul(x, w)\nout y", "-tactic:matrix_units=0", 0, NULL);
    CHECK_EQ(n_timed(&r), 3);
    CHECK(n_out(&r, "no such algorithm") > 0); /* fewer are proposed than asked for */
}

/* Operands of a race lie as planned ones do: no proposal that runs is refused. */
TEST(race_calls_with_a_kernel_behind)
{
    hn_simulate(/* libraries= */ true);
    const hn_build_report r = race(t, "in x f16[1,96]  const w f16[96,130]  const b f16[130]\nm = matmul(x, w)  a = add(m, b)  y = sigmoid(a)\n"
                                      "out y", "-tactic:matrix_units=0", 0, NULL);
    CHECK(n_timed(&r) >= 3);
    CHECK_EQ(n_out(&r, "refused"), 0);
}

TEST(race_a_proposal_that_does_not_run_is_out)
{
    hn_simulate(/* libraries= */ true);
    const hn_build_report r = race(t, "in x f16[8,64]  const w f16[64,33]\ny = matmul(x, w)\nout y", "-tactic:matrix_units=0", 0, NULL);
    CHECK_EQ(n_out(&r, "refused"), 1);
    CHECK_EQ(n_timed(&r), 2);
}

/* ---- accidents ---- */
#define PRODUCT "in x f16[40,64]  const w f16[64,96]\ny = matmul(x, w)\nout y"

/* Kernels of 128 threads meet it, others do not: those are timed, and one of them is taken. */
static void with_accident(hn_test *t, const char *what, const char *reason, int64_t timeout_ns)
{
    hn_simulate(/* libraries= */ false);
    CHECK(setenv("HONE_SIM_ACCIDENT", what, 1) == 0);
    const hn_build_report r = race(t, PRODUCT, "-core:opt_level=2", timeout_ns, NULL);
    CHECK(n_out(&r, reason) > 0);
    CHECK(n_timed(&r) > 0);
    CHECK(r.region[0].measured);
    CHECK_EQ(n_out(&r, reason) + n_timed(&r), 4);
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
    hn_check_graph(PRODUCT, &(hn_run_opts){ .target = "sm_90a", .tol = 3e-3 }); /* this process's own context lives */
}

TEST(race_a_candidate_that_faults_is_out)
{
    with_accident(t, "fault:128", "crashed: the GPU failed while running kernels: an illegal memory access", 0);
}

TEST(race_a_candidate_that_crashes_is_out)
{
    with_accident(t, "crash:128", "crashed: its process ended, signal 6", 0);
}

TEST(race_a_candidate_that_hangs_is_out)
{
    with_accident(t, "hang:128", "timed out", /* timeout_ns= */ 4000000000);
}

/* A GPU that takes one process alone is raced on from that one. */
TEST(race_without_a_worker)
{
    hn_simulate(/* libraries= */ false);
    CHECK(setenv("HONE_SIM_ACCIDENT", hn_arena_printf(t->arena, "exclusive:%d", (int)getpid()), 1) == 0);
    const hn_build_report r = race(t, PRODUCT, "-core:opt_level=1", 0, NULL);
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
    CHECK_EQ(n_timed(&r), 2);
    CHECK(hn_sim_counts()->launches > 0);
    CHECK_EQ(hn_sim_counts()->live_allocations, 0);
    CHECK_EQ(hn_sim_counts()->modules, 0);
}

/* Runs of a lane are recorded once, or twice where the first round says that more turns are wanted, and repeated. */
TEST(race_recordings_are_repeated)
{
    enum { LANES = 2, ROUNDS = 9 };
    hn_simulate(/* libraries= */ false);
    CHECK(setenv("HONE_SIM_ACCIDENT", hn_arena_printf(t->arena, "exclusive:%d", (int)getpid()), 1) == 0);
    const hn_build_report r = race(t, "in x f16[3,20]\na = softmax(x) {axis=1}\nout a", "-core:opt_level=1", 0, NULL);
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
    CHECK_EQ(n_timed(&r), LANES);
    CHECK(hn_sim_counts()->graphs >= LANES && hn_sim_counts()->graphs <= 2 * LANES);
    CHECK_EQ(hn_sim_counts()->graph_launches, 2 * LANES * (1 + ROUNDS));
    CHECK_EQ(hn_sim_counts()->early, 0);
}

/* How the engine launches kernels is no matter of their race: a route with plan:early times nothing anew. */
TEST(race_times_stand_for_early_launches)
{
    char dir[] = "/tmp/hone_race_XXXXXX";
    hn_simulate(/* libraries= */ false);
    CHECK(mkdtemp(dir));
    const char *cache = hn_arena_printf(t->arena, "%s/timing", dir), *text = "in x f16[3,20]\na = softmax(x) {axis=1}\nout a";
    CHECK_EQ(race(t, text, "-core:opt_level=1", 0, cache).timings_measured, 2);
    const hn_build_report r = race(t, text, "-core:opt_level=1 -plan:early=1", 0, cache);
    CHECK_EQ(r.timings_measured, 0);
    CHECK_EQ(r.timings_cached, 2);
    remove(cache);
    remove(dir);
}

/* Nothing is left to take: the error says what became of one of them. */
TEST(race_without_a_survivor)
{
    hn_diag dg = { 0 };
    hn_target g;
    hn_graph *graph;
    hn_build_report r;
    void *data;
    size_t bytes;
    hn_simulate(/* libraries= */ false);
    CHECK(setenv("HONE_SIM_ACCIDENT", "crash:256", 1) == 0);
    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, "in x f32[3000]\ny = exp(x)\nout y", &graph, &dg), &dg);
    const hn_build_opts o = { .target = &g, .threads = 1, .model_name = "test", .measure = true, .cache_dir = getenv("HONE_CACHE_DIR") };
    CHECK_ERR(hn_build_engine(t->arena, graph, &o, &data, &bytes, &r, &dg), HONE_E_CRASH, &dg, "signal 6");
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
}

/* Failures are remembered like times: the next build neither meets them again nor chooses otherwise. */
TEST(race_failures_are_remembered)
{
    char dir[] = "/tmp/hone_race_XXXXXX";
    hn_simulate(/* libraries= */ false);
    CHECK(mkdtemp(dir));
    const char *cache = hn_arena_printf(t->arena, "%s/timing", dir);
    CHECK(setenv("HONE_SIM_ACCIDENT", "fault:128", 1) == 0);
    hn_build_report r = race(t, PRODUCT, "-core:opt_level=2", 0, cache);
    const int failed = n_out(&r, "crashed");
    const char *won = r.region[0].tactic;
    CHECK(failed > 0);
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
    r = race(t, PRODUCT, "-core:opt_level=2", 0, cache);
    CHECK_EQ(n_out(&r, "earlier build"), failed);
    CHECK_EQ(r.timings_measured, 0);
    CHECK_STR(r.region[0].tactic, won);
    remove(cache);
    remove(dir);
}

/* ---- where operands lie ---- */
/* The lines of a timing cache with other times. */
static void replace_times(hn_test *t, const char *cache, const int *ns, int n)
{
    hn_bytes file = { 0 };
    hn_diag dg = { 0 };
    hn_str text = { 0 };
    CHECK_OK(hn_map_file(cache, &file, &dg), &dg);
    const char *at = hn_arena_strndup(t->arena, (const char *)file.at, file.n);
    hn_unmap(&file);
    hn_str_add(&text, "hone-timing 1\n");
    at = strchr(at, '\n') + 1;
    for (int i = 0; i < n; i++, at = strchr(at, '\n') + 1) {
        char key[64], name[128];
        CHECK_EQ(sscanf(at, "%63s %*s %127s", key, name), 2);
        hn_str_addf(&text, "%s %d %s\n", key, ns[i], name);
    }
    CHECK_OK(hn_write_file_atomic(cache, text.s, text.n, &dg), &dg);
    hn_str_done(&text);
}

/* Each way is timed by itself and chooses by its own times: here the first candidate is the faster one but for -tactic:operands=cold. */
TEST(race_each_way_of_timing_has_times_of_its_own)
{
    static const char rows[] = "in x f16[4,40]  const w f16[40,24]\ny = matmul(x, w)\nout y";
    static const char *const route[] = { "-core:opt_level=1", "-core:opt_level=1 -tactic:operands=cold", "-core:opt_level=1 -tactic:operands=warm" };
    static const int ns[] = { 100, 200, 200, 100, 100, 200 };
    char dir[] = "/tmp/hone_race_XXXXXX";
    hn_simulate(/* libraries= */ false);
    CHECK(mkdtemp(dir));
    const char *cache = hn_arena_printf(t->arena, "%s/timing", dir);
    for (int i = 0; i < HN_COUNT(route); i++) CHECK_EQ(race(t, rows, route[i], 0, cache).timings_measured, 2);
    replace_times(t, cache, ns, HN_COUNT(ns));
    const hn_build_report rotating = race(t, rows, route[0], 0, cache), cold = race(t, rows, route[1], 0, cache), warm = race(t, rows, route[2], 0, cache);
    CHECK_EQ(rotating.timings_measured + cold.timings_measured + warm.timings_measured, 0);
    CHECK_STR(rotating.region[0].tactic, warm.region[0].tactic);
    CHECK(strcmp(rotating.region[0].tactic, cold.region[0].tactic) != 0);
    remove(cache);
    remove(dir);
}

/* More candidates of one region, and a fast one among them. */
TEST(race_a_region_can_be_searched_more_widely)
{
    static const int ns[] = { 200, 300, 100, 400 };
    char dir[] = "/tmp/hone_race_XXXXXX";
    hn_simulate(/* libraries= */ false);
    CHECK(mkdtemp(dir));
    const char *cache = hn_arena_printf(t->arena, "%s/timing", dir);
    hn_build_report r = race(t, PRODUCT, "-core:opt_level=1", 0, cache);
    CHECK_EQ(r.timings_measured, 2);
    const char *route = hn_arena_printf(t->arena, "-core:opt_level=1 -tactic:width@%s=4", r.region[0].label);
    CHECK_EQ(race(t, PRODUCT, route, 0, cache).timings_measured, 2); /* the others are known */
    replace_times(t, cache, ns, HN_COUNT(ns));
    r = race(t, PRODUCT, "-core:opt_level=1", 0, cache);
    const hn_build_report wide = race(t, PRODUCT, route, 0, cache);
    CHECK(strcmp(r.region[0].tactic, wide.region[0].tactic) != 0);
    CHECK(wide.region[0].ns == 100);
    CHECK_EQ(race(t, PRODUCT, "-core:opt_level=1 -tactic:width@region:0=4", 0, cache).timings_cached, 2); /* another region's */
    remove(cache);
    remove(dir);
}

/* ---- one worker for several builds ---- */
TEST(race_builds_share_a_worker)
{
    hn_diag dg = { 0 };
    hn_build_report r;
    char *program = NULL;
    hn_simulate(/* libraries= */ false);
    CHECK_OK(hn_worker_find(NULL, &program, &dg), &dg);
    CHECK_OK(hn_heat_worker_create(program, 0, &kept, &dg), &dg);
    for (int i = 0; i < 2; i++) {
        r = race(t, PRODUCT, "-core:opt_level=2", 0, NULL);
        CHECK_EQ(n_timed(&r), 4);
        CHECK(setenv("HONE_SIM_ACCIDENT", "fault:128", 1) == 0); /* of processes that start from here on: the worker is none of them */
    }
    CHECK(unsetenv("HONE_SIM_ACCIDENT") == 0);
    hn_heat_worker_destroy(kept);
    kept = NULL;
    free(program);
}
