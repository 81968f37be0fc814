/* How many steps small graphs take: work that could happen where it is read must not be a step of its own. */
#include "build/build.h"
#include "codegen/codegen.h"
#include "core/core.h"
#include "harness.h"
#include "run_graph.h"

#include <stdlib.h>

static hn_build_report build_with(hn_test *t, const char *text, const char *cache_dir, hn_compile_pool *pool)
{
    hn_diag dg = { 0 };
    hn_graph *g;
    const hn_target target = hn_test_target();
    hn_build_report report;
    void *data;
    size_t bytes;
    CHECK_OK(hn_parse(t->arena, text, &g, &dg), &dg);
    const hn_build_opts o = { .target = &target, .threads = 1, .frozen = true, .model_name = "test", .cache_dir = cache_dir, .pool = pool };
    CHECK_OK(hn_build_engine(t->arena, g, &o, &data, &bytes, &report, &dg), &dg);
    free(data);
    return report;
}

static int n_regions(hn_test *t, const char *text)
{
    return build_with(t, text, getenv("HONE_CACHE_DIR"), /* pool= */ NULL).n_region;
}

/* One pool for many builds: engines are what they are with a pool each, and each build reports its own kernels. */
TEST(builds_share_a_compile_pool)
{
    static const char *const text[] = { "in x f32[7]\ny = exp(x)\nout y", "in x f32[7]\ny = reduce_sum(x) {axes=[0]}\nout y" };
    hn_compile_pool *pool;
    hn_diag dg = { 0 };
    CHECK_OK(hn_compile_pool_create(&(hn_compile_options){ .n_worker = 1 }, &pool, &dg), &dg);
    for (int i = 0; i < 4; i++) {
        const hn_build_report shared = build_with(t, text[i % 2], NULL, pool), own = build_with(t, text[i % 2], NULL, NULL);
        CHECK(hn_digest_eq(shared.payload, own.payload));
        CHECK_EQ(shared.kernels_compiled, 1);
        CHECK_EQ(own.kernels_compiled, 1);
    }
    CHECK_EQ(hn_compile_pool_stats(pool).n_compiled, 4);
    hn_compile_pool_destroy(pool);
}

TEST(steps_of_small_graphs)
{
    static const struct {
        const char *text;
        int steps;
    } row[] = {
        { "sym n [1,9,64]\nin x f32[3,n]\ny = reduce_mean(x) {axes=[1]}\nout y", 1 },
        { "sym n [1,9,64]\nin x f32[3,n]\ny = reduce_mean(x) {axes=[1]}\nz = sub(x, y)\nq = mul(z, z)\nv = reduce_mean(q) {axes=[1]}\nout v", 2 },
        { "in x f32[2,3,8]  in z f32[2,5,8]\na = slice(x) {start=[0,0,7], step=[1,1,-1], dim=[2,3,8]}\nb = exp(z)\ny = concat(a, b) {axis=1}\nout y", 1 },
        { "in x f32[2,8,3]  in z f32[2,3,4]\na = transpose(x) {perm=[0,2,1]}\nb = pad(z) {before=[0,0,1], after=[0,0,3]}\ny = concat(a, b) {axis=1}\nout y", 1 },
        { "in x f32[2,8]  in z f32[2,8]\na = exp(x)\ny = concat(a, z) {axis=0}\nout y\nout a", 2 }, /* others read it too */
        { "in x f32[6,5]  const w f32[5,8]\nm = matmul(x, w)\nr = reshape(m) {dim=[2,3,8]}\ny = relu(r)\nout y", 1 },
    };
    for (int i = 0; i < HN_COUNT(row); i++) {
        hn_test_note("row %d", i);
        CHECK_EQ(n_regions(t, row[i].text), row[i].steps);
        hn_check_graph(row[i].text, &(hn_run_opts){ .sym = 1 });
        hn_check_graph(row[i].text, &(hn_run_opts){ .sym = 17 });
    }
}
