#include "lib_built.h"

#include <stdlib.h>
#include <string.h>

#include "simulate.h"

hn_gpu_build hn_build_for_gpu(hn_test *t, const char *text, const char *route, bool frozen)
{
    return hn_build_for_gpu_by(t, text, route, frozen, /* timing_cache= */ NULL);
}

hn_gpu_build hn_build_for_gpu_by(hn_test *t, const char *text, const char *route, bool frozen, const char *timing_cache)
{
    hn_diag dg = { 0 };
    hn_target g;
    hn_graph *graph;
    hn_route parsed = { 0 };
    hn_gpu_build b = { 0 };
    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, text, &graph, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &parsed, &dg), &dg);
    const hn_build_opts o = { .target = &g, .threads = 1, .model_name = "test", .route = &parsed, .frozen = frozen,
                              .timing_cache = timing_cache, .cache_dir = getenv("HONE_CACHE_DIR") };
    CHECK_OK(hn_build_engine(t->arena, graph, &o, &b.data, &b.bytes, &b.r, &dg), &dg);
    return b;
}

bool hn_calls_library(const hn_build_report *r)
{
    return strstr(r->region[0].tactic, "__lib") != NULL;
}

const char *hn_why_not(const hn_build_report *r, const char *tactic)
{
    for (int i = 0; i < r->region[0].n_candidate; i++)
        if (strncmp(r->region[0].candidate[i].tactic, tactic, strlen(tactic)) == 0) return r->region[0].candidate[i].reason;
    return NULL;
}

void hn_check_calls(const char *text, const char *route, int n_call, int n_kernel)
{
    const sim_counts before = *hn_sim_counts();
    hn_test_note("%s, %s", text, route);
    hn_check_graph(text, &(hn_run_opts){ .target = "sm_90a", .route = route, .tol = strstr(text, "f32") ? 1e-5 : 3e-3 });
    CHECK_EQ(hn_sim_counts()->library_calls - before.library_calls, n_call);
    CHECK_EQ(hn_sim_counts()->launches - before.launches, n_kernel);
}
