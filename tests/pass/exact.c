/* What inexact rewrites may do under -core:exact=1: nothing. */
#include "pass/pass_test.h"

static int fired(hn_test *t, const char *text, bool allow_inexact)
{
    hn_graph *g = hn_test_graph(t, text);
    hn_diag dg = { 0 };
    hn_pass_stat stat[64];
    int n = HN_COUNT(stat), sum = 0;
    hn_pass_ctx c = { .knobs = hn_knobs_new(t->arena, NULL), .scratch = hn_arena_create(), .allow_inexact = allow_inexact };
    CHECK_OK(hn_pipeline_run(g, hn_pipeline_find("default"), &c, NULL, stat, &n, &dg), &dg);
    hn_arena_destroy(c.scratch);
    for (int i = 0; i < n; i++) sum += stat[i].fired;
    return sum;
}

TEST(exact_keeps_roundings)
{
    static const char *const text[] = {
        "in x f32[4]\nconst k f32[] = {3}\ny = div(x, k)\nout y",
        "in x f32[4]\nconst k f32[] = {3}\ny = pow(x, k)\nout y",
        "in x f32[2,3]  const w f32[3,4]  const k f32[] = {3}\nm = matmul(x, w)\ny = mul(m, k)\nout y",
        "in x f32[2,3]  const w f32[3,4]  const k f32[] = {3}\nm = mul(x, k)\ny = matmul(m, w)\nout y",
        "in x f32[2,3,4]\np = transpose(x) {perm=[1,2,0]}\ny = reduce_sum(p) {axes=[0]}\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_test_note("row %d", i);
        CHECK(fired(t, text[i], true) > 0);
        CHECK_EQ(fired(t, text[i], false), 0);
    }
}

TEST(exact_still_simplifies)
{
    CHECK(fired(t, "in x f32[4]\nconst k f32[] = {4}\ny = div(x, k)\nout y", false) > 0);
    CHECK(fired(t, "in x f32[4]\nconst k f32[] = {2}\ny = pow(x, k)\nout y", false) > 0);
}
