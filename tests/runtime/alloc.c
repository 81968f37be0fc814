/* A run allocates nothing. */
#include <stdlib.h>
#include <unistd.h>

#include "count_alloc.h"
#include "handmade.h"

TEST(runtime_run_does_not_allocate)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, &(hn_context_opts){ .max_threads = 4 });
    static float x[4096];
    hn_diag dg = { 0 };

    CHECK(count_alloc_calls > 0); /* the counter counts */
    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg); /* makes its output */
    const int before = count_alloc_calls;
    for (int k = 0; k < 1000; k++)
        CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(count_alloc_calls, before);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_heap_is_kept_between_runs)
{
    hn_engine *const e = hm_engine(t, hm_loop(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t trip = 1000, v;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &trip, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, 8, &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    const int before = count_alloc_calls;
    for (trip = 1000; trip > 0; trip -= 50)
        CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(count_alloc_calls, before);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Nothing is lost by sizes that shrink and grow again within what was allocated. */
TEST(runtime_set_shape_allocates_only_to_grow)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    static float x[4096];
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    int before = 0;
    for (int64_t n = 4096; n > 0; n = n * 2 / 3) {
        CHECK_OK(hn_context_set_input_shape(c, 0, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_set_input_shape(c, 1, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_run(c, &dg), &dg);
        if (n == 4096) before = count_alloc_calls;
        CHECK_EQ(count_alloc_calls, before);
    }
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Out of memory at any point is one clear error and loses nothing. */
static hone_status open_and_run(void *data, size_t n, hn_diag *dg)
{
    const hn_engine_opts o = { .fn = hm_kernels, .n_fn = HM_N };
    static float x[64];
    hn_engine_file *f;
    hn_engine *e;
    hn_context *c;

    HN_TRY(hn_engine_file_open_memory(data, n, NULL, &f, dg));
    hone_status s = hn_engine_from_file(f, &o, &e, dg);
    if (s) {
        hn_engine_file_close(f);
        return s;
    }
    s = hn_context_create(e, &(hn_context_opts){ .max_threads = 1 }, &c, dg);
    hn_engine_unref(e);
    if (s) return s;
    s = hn_context_set_input_shape(c, 0, 1, &(int64_t){ 64 }, dg);
    if (!s) s = hn_context_bind(c, 0, x, sizeof(x), dg);
    if (!s) s = hn_context_set_profiling(c, true, dg);
    if (!s) s = hn_context_run(c, dg);
    hn_context_destroy(c);
    return s;
}

TEST(runtime_out_of_memory_anywhere)
{
    hn_diag dg = { 0 };
    void *data;
    size_t n;
    int k = 1;

    hm_image(t, hm_compact(t), NULL, &data, &n);
    for (; k < 1000; k++) {
        hn_test_note("allocation %d fails", k);
        count_alloc_fail_in = k;
        const hone_status s = open_and_run(data, n, &dg);
        count_alloc_fail_in = 0;
        if (!s) break;
        CHECK_EQ(s, HONE_E_NOMEM);
        CHECK(dg.message[0]);
        hn_diag_clear(&dg);
    }
    CHECK(k > 8 && k < 1000);
    free(data);
}
