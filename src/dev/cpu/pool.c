/*
 * A worker's state word goes IDLE -> POSTED -> RUNNING -> IDLE. Whoever leases it posts; the worker claims
 * the post, or the lessee takes it back: all slices may be done before a parked or descheduled worker wakes,
 * and nobody should wait for it.
 *
 * Workers spin while leased and for SPIN_NS after, then park on the state word (futex).
 */
#include "dev/cpu/pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os.h"
#include "dev/cpu/cpu_int.h"

enum { IDLE, POSTED, RUNNING };
enum { SPIN_NS = 100 * 1000, SPINS_PER_LOOK = 256, WAIT_SPINS = 20000 };

typedef struct worker {
    _Alignas(128) atomic_uint state; /* two lines: the neighbour-line prefetcher must not share it */
    atomic_bool leased, parked;
    int slot;
    hn_cpu_job_fn fn;
    void *user;
    int cpu; /* core it is pinned to; -1: none */
} worker;

static worker workers[HN_CPU_MAX_WORKERS];
static _Atomic uint64_t idle[4]; /* bit set: may be leased */
static int n_worker;             /* made so far; under lock */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool fork_handled;

static void futex(atomic_uint *word, int op, unsigned value)
{
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Spin, then park, until something is posted. */
static void await_post(worker *w)
{
    int64_t since = 0;

    for (;;) {
        for (int i = 0; i < SPINS_PER_LOOK; i++) {
            if (atomic_load_explicit(&w->state, memory_order_relaxed) == POSTED) return;
            hn_cpu_pause();
        }
        if (atomic_load_explicit(&w->leased, memory_order_relaxed)) {
            since = 0;
            continue;
        }
        const int64_t now = hn_now_ns();
        if (since == 0) since = now;
        if (now - since < SPIN_NS) continue;
        atomic_store(&w->parked, true);
        if (atomic_load(&w->state) == IDLE) futex(&w->state, FUTEX_WAIT, IDLE);
        atomic_store(&w->parked, false);
        since = 0;
    }
}

static void *work(void *user)
{
    worker *const w = user;

    hn_cpu_float_default();
    for (;;) {
        unsigned want = POSTED;
        await_post(w);
        if (!atomic_compare_exchange_strong_explicit(&w->state, &want, RUNNING, memory_order_acquire,
                                                     memory_order_relaxed))
            continue; /* taken back */
        w->fn(w->user, w->slot);
        atomic_store_explicit(&w->state, IDLE, memory_order_release);
    }
    return NULL;
}

/* ---- making ---- */
/* The i-th core of the affinity mask, -1 when there are fewer. */
static int nth_cpu(int i)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set)) return -1;
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &set) && i-- == 0) return c;
    return -1;
}

static void pin(pthread_t t, int cpu)
{
    cpu_set_t set;

    if (cpu < 0) return;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(t, sizeof(set), &set);
}

static bool start(int i)
{
    worker *const w = &workers[i];
    pthread_attr_t attr;
    pthread_t t;

    atomic_init(&w->state, IDLE);
    w->cpu = nth_cpu(i);
    if (pthread_attr_init(&attr)) return false;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    const int err = pthread_create(&t, &attr, work, w);
    pthread_attr_destroy(&attr);
    if (err) return false;
    pin(t, w->cpu);
    atomic_fetch_or(&idle[i / 64], (uint64_t)1 << i % 64);
    return true;
}

/* Threads do not survive fork: a child starts with no workers. */
static void forget_workers(void)
{
    for (int i = 0; i < HN_COUNT(idle); i++)
        atomic_store(&idle[i], 0);
    for (int i = 0; i < n_worker; i++) {
        atomic_store(&workers[i].leased, false);
        atomic_store(&workers[i].parked, false);
    }
    n_worker = 0;
    pthread_mutex_init(&lock, NULL);
}

hone_status hn_cpu_pool_ensure(int n, hn_diag *dg)
{
    bool ok = true;

    pthread_mutex_lock(&lock);
    if (!fork_handled) fork_handled = pthread_atfork(NULL, NULL, forget_workers) == 0;
    for (; ok && n_worker < HN_MIN(n, HN_CPU_MAX_WORKERS); n_worker += ok)
        ok = start(n_worker);
    pthread_mutex_unlock(&lock);
    return ok ? HONE_OK : HN_RAISE(dg, HONE_E_NOMEM, "cannot start %d threads", n);
}

/* ---- leasing ---- */
static bool take(int i)
{
    const uint64_t bit = (uint64_t)1 << i % 64;
    return atomic_fetch_and_explicit(&idle[i / 64], ~bit, memory_order_acquire) & bit;
}

int hn_cpu_pool_lease(int n, uint8_t *ret_worker)
{
    const int here = sched_getcpu();
    int got = 0;

    for (int word = 0; word < HN_COUNT(idle) && got < n; word++) {
        uint64_t free = atomic_load_explicit(&idle[word], memory_order_relaxed);
        for (; free && got < n; free &= free - 1) {
            const int i = 64 * word + __builtin_ctzll(free);
            if (workers[i].cpu >= 0 && workers[i].cpu == here) continue; /* its core is ours */
            if (!take(i)) continue;
            atomic_store_explicit(&workers[i].leased, true, memory_order_relaxed);
            ret_worker[got++] = (uint8_t)i;
        }
    }
    return got;
}

void hn_cpu_pool_release(const uint8_t *worker_no, int n)
{
    for (int k = 0; k < n; k++) {
        const int i = worker_no[k];
        atomic_store_explicit(&workers[i].leased, false, memory_order_relaxed);
        atomic_fetch_or_explicit(&idle[i / 64], (uint64_t)1 << i % 64, memory_order_release);
    }
}

void hn_cpu_pool_post(uint8_t i, hn_cpu_job_fn fn, void *user, int slot)
{
    worker *const w = &workers[i];

    w->fn = fn, w->user = user, w->slot = slot;
    atomic_store(&w->state, POSTED); /* in one order with `parked`: either it sees this, or we see that */
    if (atomic_load(&w->parked)) futex(&w->state, FUTEX_WAKE, 1);
}

void hn_cpu_pool_wait(uint8_t i)
{
    worker *const w = &workers[i];
    unsigned seen = POSTED;

    if (atomic_compare_exchange_strong_explicit(&w->state, &seen, IDLE, memory_order_acquire,
                                                memory_order_acquire))
        return;
    for (int spins = 0; atomic_load_explicit(&w->state, memory_order_acquire) != IDLE; spins++) {
        hn_cpu_pause();
        if (spins > WAIT_SPINS) sched_yield(); /* it was descheduled: give it our core */
    }
}
