#include "harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/os.h"

enum { MAX_N = 8 };

struct job {
    int64_t round;
    int expect_workers;
    int64_t seen[MAX_N]; /* plain memory: each worker writes its own, the caller reads after the join */
};

static void mark(void *user, int worker, int n_workers)
{
    struct job *j = user;
    if (n_workers != j->expect_workers || worker < 0 || worker >= n_workers)
        j->seen[0] = -1;
    else
        j->seen[worker] = j->round;
}

static void run_rounds(hn_pool *p, int64_t rounds, uint64_t seed, int64_t max_pause_ns)
{
    struct job j = { 0 };
    hn_rng r;
    hn_rng_init(&r, seed);
    for (int64_t i = 1; i <= rounds; i++) {
        const int n = (int)hn_rng_below(&r, hn_pool_size(p) + 1);
        j.round = i;
        j.expect_workers = n ? n : hn_pool_size(p);
        hn_pool_run(p, n, mark, &j);
        for (int w = 0; w < j.expect_workers; w++)
            CHECK_EQ(j.seen[w], i);
        for (int w = j.expect_workers; w < MAX_N; w++)
            CHECK(j.seen[w] < i);
        if (max_pause_ns && i % 16 == 0) hn_sleep_ns(hn_rng_below(&r, max_pause_ns));
    }
}

TEST(pool_every_worker_once_spinning)
{
    for (int n = 1; n <= 4; n++) {
        hn_pool *p = hn_pool_create(n, 100000, false);
        CHECK(p != NULL);
        CHECK_EQ(hn_pool_size(p), n);
        run_rounds(p, 3000, 1, 0);
        hn_pool_destroy(p);
    }
}

TEST(pool_parking_at_once_and_at_the_edge)
{
    static const int64_t spins[] = { 0, 1000, 20000, 50000 };
    for (int k = 0; k < HN_COUNT(spins); k++) {
        hn_pool *p = hn_pool_create(5, spins[k], k % 2);
        CHECK(p != NULL);
        run_rounds(p, 1500, (uint64_t)k,
                   k ? 2 * spins[k] : 0); /* pauses around the limit hit the park race */
        hn_pool_destroy(p);
    }
}

TEST(pool_create_destroy_without_a_run)
{
    for (int i = 0; i < 100; i++)
        hn_pool_destroy(hn_pool_create(1 + i % 6, i % 2 ? 0 : 10000, i % 3 == 0));
    hn_pool_destroy(NULL);
    hn_pool *p = hn_pool_create(0, 0, true);
    CHECK_EQ(hn_pool_size(p), hn_cpu_count());
    hn_pool_destroy(p);
}

static void *one_pool(void *arg)
{
    hn_pool *p = hn_pool_create(3, 2000, false);
    run_rounds(p, 500, (uint64_t)(uintptr_t)arg, 4000);
    hn_pool_destroy(p);
    return NULL;
}

TEST(pool_several_pools_at_once)
{
    pthread_t thread[4];
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, one_pool, (void *)i), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
}

/* One pool may serve several threads in turn. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static hn_pool *shared;

static void *take_turns(void *arg)
{
    for (int i = 0; i < 200; i++) {
        pthread_mutex_lock(&turn);
        run_rounds(shared, 3, (uint64_t)(uintptr_t)arg + (uint64_t)i, 0);
        pthread_mutex_unlock(&turn);
    }
    return NULL;
}

TEST(pool_callers_take_turns)
{
    pthread_t thread[3];
    shared = hn_pool_create(3, 5000, true);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK_EQ(pthread_create(&thread[i], NULL, take_turns, (void *)i), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(thread[i], NULL);
    hn_pool_destroy(shared);
}

static void nothing(void *user, int worker, int n_workers)
{
    (void)user;
    (void)worker;
    (void)n_workers;
}

/* Prints what a fork-join costs; fails only when something is badly wrong, since other work may share the
 * cores. */
TEST(pool_fork_join_time)
{
    enum { N = 200 }; /* few enough for a machine with other work */
    const int n = HN_MIN(hn_cpu_count(), 4);
    if (n < 2) SKIP("one processor");
    hn_pool *p = hn_pool_create(n, 1000000, true);
    int64_t best = INT64_MAX;
    for (int k = 0; k < 20; k++) {
        const int64_t t0 = hn_now_ns();
        for (int i = 0; i < N; i++)
            hn_pool_run(p, n, nothing, NULL);
        best = HN_MIN(best, (hn_now_ns() - t0) / N);
    }
    printf("    fork-join of %d workers: %lld ns\n", n, (long long)best);
    CHECK(best < 200000);
    hn_pool_destroy(p);
}

TEST(pool_idle_workers_sleep)
{
    hn_pool *p = hn_pool_create(3, 100000, false);
    struct timespec a, b;
    hn_pool_run(p, 0, nothing, NULL);
    hn_sleep_ns(20 * 1000 * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    hn_sleep_ns(300 * 1000 * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    const int64_t used = (int64_t)(b.tv_sec - a.tv_sec) * 1000000000 + b.tv_nsec - a.tv_nsec;
    CHECK(used < 3 * 1000 * 1000); /* under 1% of a core */
    hn_pool_destroy(p);
}
