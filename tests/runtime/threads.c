/* Workers and contexts at once. Built with ThreadSanitizer as well. */
#include <fenv.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "core/core.h"
#include "handmade.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define R(buf) ((buf) | HN_ARG_READ)
#define W(buf) ((buf) | HN_ARG_WRITE)

/* y = x + 1 by n trips of stated cost and grain. */
static hn_engine *spin_engine(hn_test *t, int64_t n, int64_t trip_ps, uint32_t grain)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t len = hn_pb_const(b, n), idle = hn_pb_const(b, 10);
    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &len), y = hn_pb_output(b, "y", HN_F32, 1, &len);
    const uint32_t buf[] = { R(hn_pb_io_buf(b, x)), W(hn_pb_io_buf(b, y)) };

    for (int k = 0; k < 4; k++)
        hn_pb_step_kernel(b, &(hn_pb_call){ .kernel = hn_pb_kernel(b, "spin", HM_SPIN, 2, 1),
                                            .buf = buf,
                                            .n_buf = 2,
                                            .arg = &idle,
                                            .n_arg = 1,
                                            .extent = len,
                                            .grain = grain,
                                            .trip_ps = hn_pb_const(b, trip_ps),
                                            .scratch = HN_NO });
    return hm_engine(t, b, NULL);
}

static void run_and_check(hn_context *c, const float *x, float *y, int64_t n)
{
    hn_diag dg = { 0 };

    memset(y, 0, (size_t)n * sizeof(*y));
    CHECK_OK(hn_context_run(c, &dg), &dg);
    for (int64_t i = 0; i < n; i++)
        CHECK(y[i] == x[i] + 1);
}

TEST(runtime_slices_cover_everything_once)
{
    static float x[5000], y[5000];
    hn_diag dg = { 0 };

    for (int i = 0; i < 5000; i++)
        x[i] = (float)i;
    static const int64_t cost[] = { 0, 1, 1000, 10000, 1000000 };
    for (int k = 0; k < HN_COUNT(cost); k++)
        for (int threads = 1; threads <= 8; threads *= 2) {
            hn_engine *const e = spin_engine(t, 4999 - k, cost[k], threads == 4 ? 16 : 1);
            hn_context *const c = hm_context(e, &(hn_context_opts){ .max_threads = threads });
            CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
            CHECK_OK(hn_context_bind(c, 1, y, sizeof(y), &dg), &dg);
            for (int r = 0; r < 20; r++)
                run_and_check(c, x, y, 4999 - k);
            hn_context_destroy(c);
            hn_engine_unref(e);
        }
}

TEST(runtime_split)
{
    int64_t slices, trips;
    uint64_t seed = 1;

    for (int k = 0; k < 20000; k++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const hn_launch l = { .extent = 1 + (int64_t)(seed >> 40) % (k % 3 ? 100 : 1000000),
                              .grain = 1 + (int64_t)(seed >> 33) % 20,
                              .trip_ps = k % 5 ? (int64_t)(seed >> 30) % 1000000 : 0,
                              .max_threads = k % 4 ? 0 : 3 };
        const int threads = 1 + (int)(seed >> 50) % 64;
        hn_launch_split(&l, threads, &slices, &trips);
        CHECK(trips >= 1 && slices >= 1 && slices <= 4 * threads);
        CHECK((slices - 1) * trips < l.extent && slices * trips >= l.extent);
        CHECK(slices == 1 || trips % l.grain == 0);
        if (l.trip_ps > 0 && l.extent * l.trip_ps < 4000000) CHECK_EQ(slices, 1);
        if (l.max_threads) CHECK(slices <= 12);
    }
    hn_launch_split(&(hn_launch){ .extent = INT64_MAX, .grain = INT64_MAX, .trip_ps = INT64_MAX }, 64,
                    &slices, &trips);
    CHECK_EQ(slices, 1);
    hn_launch_split(&(hn_launch){ .extent = INT64_MAX, .grain = 1, .trip_ps = INT64_MAX }, 64, &slices,
                    &trips);
    CHECK_EQ(slices, 256);
}

/* ---- scratch ---- */
TEST(runtime_scratch_is_each_threads_own)
{
    enum { TRIPS = 200, WIDE = 500 };
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t trips = hn_pb_const(b, TRIPS), wide = hn_pb_const(b, WIDE),
                   n = hn_pb_const(b, TRIPS * WIDE);
    const uint32_t x = hn_pb_input(b, "x", HN_F32, 1, &n), y = hn_pb_output(b, "y", HN_F32, 1, &n);
    static float in[TRIPS * WIDE];
    hn_diag dg = { 0 };

    hn_pb_step_kernel(b, &(hn_pb_call){ .kernel = hn_pb_kernel(b, "scratch", HM_SCRATCH, 2, 1),
                                        .n_buf = 2,
                                        .arg = &wide,
                                        .n_arg = 1,
                                        .extent = trips,
                                        .buf = (uint32_t[]){ R(hn_pb_io_buf(b, x)), W(hn_pb_io_buf(b, y)) },
                                        .trip_ps = hn_pb_const(b, 1000000),
                                        .scratch = hn_pb_const(b, 4 * WIDE) });
    hn_engine *const e = hm_engine(t, b, NULL);
    hn_context *const c = hm_context(e, &(hn_context_opts){ .max_threads = 4 });
    for (int i = 0; i < TRIPS * WIDE; i++)
        in[i] = (float)i;
    CHECK_OK(hn_context_bind(c, 0, in, sizeof(in), &dg), &dg);
    for (int r = 0; r < 50; r++) {
        CHECK_OK(hn_context_run(c, &dg), &dg);
        const float *out = hn_context_output_data(c, 1);
        for (int i = 0; i < TRIPS * WIDE; i++)
            CHECK(out[i] == 2 * in[i]);
    }
    CHECK_EQ(hn_context_get_memory(c).scratch_bytes, 4 * WIDE);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* ---- float environment ---- */
TEST(runtime_float_environment)
{
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t y = hn_pb_output(b, "y", HN_I64, 0, NULL);
    hn_diag dg = { 0 };

    hm_call(b, HM_FTZ, (uint32_t[]){ W(hn_pb_io_buf(b, y)) }, 1, NULL, 0, hn_pb_const(b, 1));
    hn_engine *const e = hm_engine(t, b, NULL);
    hn_context *const c = hm_context(e, NULL);
    fesetround(FE_UPWARD);
#if defined(__x86_64__)
    _mm_setcsr(_mm_getcsr() | 0x8040); /* flush to zero, denormals are zero */
    const unsigned before = _mm_getcsr();
#endif
    CHECK_OK(hn_context_run(c, &dg), &dg);
#if defined(__x86_64__)
    CHECK_EQ(_mm_getcsr(), before);
#endif
    CHECK_EQ(fegetround(), FE_UPWARD);
    CHECK_EQ(*(const int64_t *)hn_context_output_data(c, 0), 1);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* ---- contexts at once ---- */
typedef struct run_caller {
    hn_engine *engine;
    int id;
    bool ok;
} run_caller;

static bool call_once(hn_context *c, int64_t n, float *x, const float *y, int id)
{
    hn_diag dg = { 0 };

    for (int64_t i = 0; i < n; i++)
        x[i] = (float)(i % 100 + id);
    if (hn_context_set_input_shape(c, 0, 1, &n, &dg) || hn_context_set_input_shape(c, 1, 1, &n, &dg) ||
        hn_context_run(c, &dg))
        return false;
    const float *z = hn_context_output_data(c, 2);
    for (int64_t i = 0; i < n; i++)
        if (z[i] != (x[i] + y[i]) * 3) return false;
    return true;
}

static void *call_many(void *user)
{
    run_caller *const me = user;
    float x[4096], y[4096] = { 1, 2, 3 };
    hn_diag dg = { 0 };
    hn_context *c;

    me->ok = true;
    for (int round = 0; round < 5 && me->ok; round++) { /* made and dropped while others run */
        me->ok =
            !hn_context_create(me->engine, &(hn_context_opts){ .max_threads = 1 + me->id % 4 }, &c, &dg) &&
            !hn_context_bind(c, 0, x, sizeof(x), &dg) && !hn_context_bind(c, 1, y, sizeof(y), &dg);
        for (int r = 0; r < 40 && me->ok; r++)
            me->ok = call_once(c, 1 + (r * 97 + me->id * 13) % 4096, x, y, me->id);
        hn_context_destroy(c);
    }
    hn_engine_unref(me->engine);
    return NULL;
}

TEST(runtime_contexts_at_once)
{
    enum { N = 8 };
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    run_caller caller[N];
    pthread_t thread[N];

    for (int i = 0; i < N; i++) {
        caller[i] = (run_caller){ hn_engine_ref(e), i, false };
        CHECK(pthread_create(&thread[i], NULL, call_many, &caller[i]) == 0);
    }
    hn_engine_unref(e); /* the callers hold it */
    for (int i = 0; i < N; i++) {
        pthread_join(thread[i], NULL);
        CHECK(caller[i].ok);
    }
}

/* ---- cancelling ---- */
static void *cancel_soon(void *user)
{
    hn_sleep_ns(20 * 1000 * 1000);
    hn_context_cancel(user);
    return NULL;
}

TEST(runtime_cancel)
{
    hn_engine *const e =
        hm_engine(t, hm_loop(t), hn_device_null()); /* nothing executes, so memory is what it costs */
    hn_context *const c = hm_context(e, NULL);
    int64_t trip = INT64_MAX, v;
    hn_diag dg = { 0 };
    pthread_t thread;

    CHECK_OK(hn_context_bind(c, 0, &trip, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, 8, &dg), &dg);
    CHECK(pthread_create(&thread, NULL, cancel_soon, c) == 0);
    CHECK_ERR(hn_context_run(c, &dg), HONE_E_CANCELLED, &dg, "cancelled");
    pthread_join(thread, NULL);
    trip = 2;
    CHECK_OK(hn_context_run(c, &dg), &dg);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* ---- large copies ---- */
TEST(runtime_large_copy)
{
    enum { N = 1000003 };
    hn_pb *const b = hn_pb_new(t->arena);
    const uint32_t n = hn_pb_const(b, N);
    const uint32_t x = hn_pb_input(b, "x", HN_U8, 1, &n), y = hn_pb_output(b, "y", HN_U8, 1, &n);
    static uint8_t in[N], out[N + 64];
    hn_diag dg = { 0 };

    hn_pb_step_copy(b, hn_pb_io_buf(b, y), HN_NO, hn_pb_io_buf(b, x), HN_NO, n);
    hn_engine *const e = hm_engine(t, b, NULL);
    for (int i = 0; i < N; i++)
        in[i] = (uint8_t)(i * 7 + i / 256);
    for (int threads = 1; threads <= 4; threads++) {
        hn_context *const c = hm_context(e, &(hn_context_opts){ .max_threads = threads });
        memset(out, 0xee, sizeof(out));
        CHECK_OK(hn_context_bind(c, 0, in, sizeof(in), &dg), &dg);
        CHECK_OK(hn_context_bind(c, 1, out, N, &dg), &dg);
        CHECK_OK(hn_context_run(c, &dg), &dg);
        CHECK(memcmp(in, out, N) == 0);
        for (int i = N; i < N + 64; i++)
            CHECK(out[i] == 0xee);
        hn_context_destroy(c);
    }
    hn_engine_unref(e);
}
