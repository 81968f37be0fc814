/* Devices by themselves: memory, code pages, leases. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/os.h"
#include "dev/cpu/pool.h"
#include "dev/dev.h"
#include "harness.h"

TEST(dev_by_name)
{
    hn_diag dg = { 0 };
    hn_device *d;

    CHECK_OK(hn_device_get("cpu", &d, &dg), &dg);
    CHECK(d == hn_device_cpu() && d->vt->executes);
    CHECK_OK(hn_device_get("null", &d, &dg), &dg);
    CHECK(d == hn_device_null() && !d->vt->executes);
    CHECK_ERR(hn_device_get("abacus", &d, &dg), HONE_E_NOTFOUND, &dg, "\"abacus\"");
}

TEST(dev_memory)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 4097, (4u << 20) - 1, 4u << 20, (9u << 20) + 5 };
    hn_device *const dev[] = { hn_device_cpu(), hn_device_null() };
    hn_diag dg = { 0 };

    for (int k = 0; k < 2; k++)
        for (int i = 0; i < HN_COUNT(sizes); i++)
            for (size_t align = 64; align <= 4096; align *= 8) {
                uint8_t *p;
                CHECK_OK(hn_device_alloc(dev[k], sizes[i], align, (void **)&p, &dg), &dg);
                CHECK((uintptr_t)p % align == 0);
                for (size_t b = 0; k == 1 && b < sizes[i]; b += 1 + sizes[i] / 100)
                    CHECK(p[b] == 0);
                memset(p, 0xab, sizes[i]);
                hn_device_free(dev[k], p, sizes[i]);
            }
    void *p;
    CHECK_ERR(hn_device_alloc(dev[0], SIZE_MAX - 100, 64, &p, &dg), HONE_E_NOMEM, &dg,
              "bytes were asked for");
    CHECK_ERR(hn_device_alloc(dev[0], (size_t)1 << 60, 64, &p, &dg), HONE_E_NOMEM, &dg,
              "1152921504606846976 bytes");
    hn_device_free(dev[0], NULL, 100);
}

/* Does writing to p kill a child? */
static bool write_faults(volatile uint8_t *p)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        signal(SIGSEGV, SIG_DFL);
        signal(SIGBUS, SIG_DFL);
        *p = 0;
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFSIGNALED(status);
}

TEST(dev_code_is_never_writable)
{
#if defined(__x86_64__)
    /* nop; lea rax, [rip - 8]; mov r9, [rdi]; mov [r9], rax; ret: tells where it lies */
    static const uint8_t code[] = { 0x90, 0x48, 0x8D, 0x05, 0xF8, 0xFF, 0xFF, 0xFF,
                                    0x4C, 0x8B, 0x0F, 0x49, 0x89, 0x01, 0xC3 };
    hn_device *const d = hn_device_cpu();
    hn_diag dg = { 0 };
    hn_module *m;
    hn_queue *q;
    uint8_t *where = NULL;
    void *buf[] = { &where };

    CHECK_OK(hn_device_load_code(d, code, sizeof(code), &m, &dg), &dg);
    CHECK_OK(hn_queue_create(d, &(hn_queue_opts){ .max_threads = 1 }, &q, &dg), &dg);
    hn_queue_begin(q);
    CHECK_OK(hn_queue_launch(
                 q, m, &(hn_launch){ .entry = 1, .buf = buf, .n_buf = 1, .extent = 1, .grain = 1 }, &dg),
             &dg);
    hn_queue_end(q);
    CHECK(where != NULL && memcmp(where, code, sizeof(code)) == 0);
    CHECK(write_faults(where));
    hn_queue_destroy(q);
    hn_device_unload(d, m);
    CHECK_OK(hn_device_load_code(d, code, 0, &m, &dg), &dg); /* an engine without kernels */
    hn_device_unload(d, m);
    hn_device_unload(d, NULL);
#else
    SKIP("machine code for x86-64");
#endif
}

/* ---- the pool ---- */
static void count(void *user, int slot)
{
    (void)slot;
    atomic_fetch_add((atomic_int *)user, 1);
}

TEST(pool_leases_are_exclusive)
{
    uint8_t a[8], b[8], seen[256] = { 0 };
    hn_diag dg = { 0 };

    CHECK_OK(hn_cpu_pool_ensure(8, &dg), &dg);
    const int na = hn_cpu_pool_lease(5, a), nb = hn_cpu_pool_lease(5, b);
    CHECK(na == 5 || hn_cpu_count() < 5);
    CHECK(na >= 4 && nb >= 1 && na + nb <= 8); /* the one on our core may be left out */
    for (int i = 0; i < na; i++)
        seen[a[i]]++;
    for (int i = 0; i < nb; i++)
        seen[b[i]]++;
    for (int i = 0; i < 256; i++)
        CHECK(seen[i] <= 1);
    hn_cpu_pool_release(a, na);
    hn_cpu_pool_release(b, nb);
    const int again = hn_cpu_pool_lease(8, a);
    CHECK(again >= 7);
    hn_cpu_pool_release(a, again);
}

/* A post is either run once or taken back, never both; the caller's count shows which. */
TEST(pool_posts_run_at_most_once)
{
    uint8_t w[3];
    hn_diag dg = { 0 };
    atomic_int ran = 0;

    CHECK_OK(hn_cpu_pool_ensure(4, &dg), &dg);
    const int n = hn_cpu_pool_lease(3, w);
    CHECK(n >= 1);
    for (int k = 0; k < 5000; k++) {
        const int before = ran;
        for (int i = 0; i < n; i++)
            hn_cpu_pool_post(w[i], count, &ran, i);
        if (k % 100 == 0) hn_sleep_ns(300 * 1000); /* time to begin, and time to park before */
        for (int i = 0; i < n; i++)
            hn_cpu_pool_wait(w[i]);
        CHECK(ran >= before && ran <= before + n);
    }
    CHECK(ran > 0);
    hn_cpu_pool_release(w, n);
}

TEST(pool_idle_costs_nothing)
{
    uint8_t w[3];
    hn_diag dg = { 0 };
    struct timespec a, b;

    CHECK_OK(hn_cpu_pool_ensure(4, &dg), &dg);
    hn_cpu_pool_release(w, hn_cpu_pool_lease(3, w));
    hn_sleep_ns(50 * 1000 * 1000); /* past the spinning */
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    hn_sleep_ns(300 * 1000 * 1000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    const double used_ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
    hn_test_note("%.3f ms of processor in 300 ms", used_ms);
    CHECK(used_ms < 3); /* 1% */
}

/* Threads do not survive fork; the child makes its own. */
TEST(pool_survives_fork)
{
    uint8_t w[3];
    hn_diag dg = { 0 };
    int status;

#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
    SKIP("ThreadSanitizer refuses threads after fork");
#endif
#endif
    CHECK_OK(hn_cpu_pool_ensure(3, &dg), &dg);
    hn_sleep_ns(50 * 1000 *
                1000); /* AddressSanitizer holds locks while a thread starts; a fork then would keep them */
    const pid_t pid = fork();
    if (pid == 0) {
        atomic_int ran = 0;
        if (hn_cpu_pool_lease(3, w) != 0 || hn_cpu_pool_ensure(3, &dg)) _exit(1);
        const int n = hn_cpu_pool_lease(2, w);
        for (int k = 0; k < 200 && !ran; k++) {
            for (int i = 0; i < n; i++)
                hn_cpu_pool_post(w[i], count, &ran, i);
            hn_sleep_ns(1000 * 1000);
            for (int i = 0; i < n; i++)
                hn_cpu_pool_wait(w[i]);
        }
        _exit(n >= 1 && ran > 0 ? 0 : 2);
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK(WIFEXITED(status));
    CHECK_EQ(WEXITSTATUS(status), 0);
}
