/*
 * Fork-join pool. A run publishes {generation, number of workers} in one 64-bit word; workers spin on that
 * word and those it counts in take the job. A worker that is counted in keeps the caller waiting, so the job
 * cannot change under it; one that is not never looks at the job. Parking is per worker, so runs of few
 * workers leave the others asleep.
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os.h"

enum { LINE = 64, GEN_BITS = 48, MAX_WORKERS = 0xFFFE, STOP = 0xFFFF };

struct slot {
    _Alignas(LINE) atomic_uint parked; /* futex word: 1 while the worker sleeps or is about to */
    hn_pool *pool;
    pthread_t thread;
    int index;
};

struct hn_pool {
    _Alignas(LINE) _Atomic uint64_t state; /* workers << GEN_BITS | generation */
    _Alignas(LINE) atomic_uint remaining;  /* futex word for the caller */
    _Alignas(LINE) atomic_uint caller_parked;
    hn_pool_fn fn;
    void *user;
    int n, n_workers;
    int64_t spin_ns;
    int n_started;
    struct slot *slot; /* 1..n-1; 0 is the caller */
};

static void futex_wait(atomic_uint *word, unsigned expected)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, NULL, NULL, 0);
}

static void futex_wake(atomic_uint *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Bounded spinning; the clock is looked at once in 32 pauses, which take about a microsecond. */
struct spinner {
    int64_t until, ns;
    unsigned n;
};

static inline bool keep_spinning(struct spinner *s)
{
    relax();
    if (++s->n % 32) return s->ns > 0;
    const int64_t now = hn_now_ns();
    if (!s->until) s->until = now + s->ns;
    return now < s->until;
}

/* Waits for a state other than seen that counts worker `index` in. */
static uint64_t next_state(hn_pool *p, struct slot *s, uint64_t seen)
{
    struct spinner spin = { .ns = p->spin_ns };
    for (;;) {
        uint64_t now = atomic_load_explicit(&p->state, memory_order_acquire);
        if (now != seen && (int)(now >> GEN_BITS) > s->index) return now;
        if (keep_spinning(&spin)) continue;
        atomic_store(&s->parked, 1);
        now =
            atomic_load(&p->state); /* after the store: either we see the run or its caller sees us parked */
        if (now != seen && (int)(now >> GEN_BITS) > s->index) {
            atomic_store(&s->parked, 0);
            return now;
        }
        while (atomic_load(&s->parked))
            futex_wait(&s->parked, 1);
    }
}

static void *worker(void *arg)
{
    struct slot *s = arg;
    hn_pool *p = s->pool;
    uint64_t state = 0;
    for (;;) {
        state = next_state(p, s, state);
        if (state >> GEN_BITS == STOP) return NULL;
        p->fn(p->user, s->index, p->n_workers);
        if (atomic_fetch_sub(&p->remaining, 1) == 1 && atomic_load(&p->caller_parked))
            futex_wake(&p->remaining);
    }
}

static void publish(hn_pool *p, int n_workers)
{
    const uint64_t gen =
        (atomic_load_explicit(&p->state, memory_order_relaxed) + 1) & (((uint64_t)1 << GEN_BITS) - 1);
    atomic_store(&p->state, (uint64_t)n_workers << GEN_BITS | gen);
    for (int i = 1; i < HN_MIN(n_workers, p->n_started); i++) {
        atomic_uint *parked = &p->slot[i].parked;
        if (!atomic_load(parked)) continue;
        atomic_store(parked, 0);
        futex_wake(parked);
    }
}

static void join(hn_pool *p)
{
    struct spinner spin = { .ns = p->spin_ns };
    unsigned left;
    while (atomic_load_explicit(&p->remaining, memory_order_acquire))
        if (!keep_spinning(&spin)) break;
    if (!atomic_load_explicit(&p->remaining, memory_order_acquire)) return;
    atomic_store(&p->caller_parked, 1);
    while ((left = atomic_load(&p->remaining)) != 0)
        futex_wait(&p->remaining, left);
    atomic_store(&p->caller_parked, 0);
}

void hn_pool_run(hn_pool *p, int n_workers, hn_pool_fn fn, void *user)
{
    if (n_workers <= 0 || n_workers > p->n) n_workers = p->n;
    if (n_workers > 1) {
        p->fn = fn;
        p->user = user;
        p->n_workers = n_workers;
        atomic_store_explicit(&p->remaining, (unsigned)n_workers - 1, memory_order_relaxed);
        publish(p, n_workers);
    }
    fn(user, 0, n_workers);
    if (n_workers > 1) join(p);
}

int hn_pool_size(const hn_pool *p)
{
    return p->n;
}

/* ---- placement ---- */
static bool is_first_sibling(int cpu)
{
    char path[96];
    int first = cpu;
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu);
    FILE *f = fopen(path, "re");
    if (!f) return true;
    if (fscanf(f, "%d", &first) != 1) first = cpu;
    fclose(f);
    return first == cpu;
}

/*
 * CPUs for workers 0..n-1 in order of preference: the one the caller is on (kept free for it), then one
 * hardware thread of each core, then the siblings. Returns how many there are.
 */
static int place(int *cpu, int n)
{
    cpu_set_t set;
    const int here = sched_getcpu();
    int count = 0;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
    if (here >= 0 && here < CPU_SETSIZE && CPU_ISSET(here, &set) && n > 0) cpu[count++] = here;
    for (int siblings = 0; siblings < 2; siblings++)
        for (int c = 0; c < CPU_SETSIZE && count < n; c++)
            if (CPU_ISSET(c, &set) && c != here && is_first_sibling(c) == !siblings) cpu[count++] = c;
    return count;
}

static void pin(pthread_t thread, int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    pthread_setaffinity_np(thread, sizeof set,
                           &set); /* refused: the scheduler places it, which is only slower */
}

static bool start_workers(hn_pool *p, bool pinned)
{
    sigset_t all, before;
    int *cpu = calloc((size_t)p->n, sizeof *cpu);
    if (!cpu) return false;
    const int n_cpu = pinned ? place(cpu, p->n) : 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the host's signal handlers stay on the host's threads */
    for (; p->n_started < p->n; p->n_started++) {
        char name[16];
        struct slot *s = &p->slot[p->n_started];
        s->pool = p;
        s->index = p->n_started;
        if (pthread_create(&s->thread, NULL, worker, s) != 0) break;
        snprintf(name, sizeof name, "hone-%d", s->index);
        pthread_setname_np(s->thread, name);
        if (s->index < n_cpu) pin(s->thread, cpu[s->index]);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    free(cpu);
    return p->n_started == p->n;
}

hn_pool *hn_pool_create(int n_threads, int64_t spin_ns, bool pin_workers)
{
    if (n_threads <= 0) n_threads = hn_cpu_count();
    n_threads = HN_MIN(n_threads, MAX_WORKERS);
    hn_pool *p = aligned_alloc(LINE, sizeof *p);
    struct slot *slot = aligned_alloc(LINE, sizeof *slot * (size_t)n_threads);
    if (!p || !slot) {
        free(p);
        free(slot);
        return NULL;
    }
    memset(p, 0, sizeof *p);
    memset(slot, 0, sizeof *slot * (size_t)n_threads);
    p->n = n_threads;
    p->spin_ns = spin_ns;
    p->slot = slot;
    p->n_started = 1; /* worker 0 is whoever calls */
    if (start_workers(p, pin_workers)) return p;
    hn_pool_destroy(p);
    return NULL;
}

void hn_pool_destroy(hn_pool *p)
{
    if (!p) return;
    publish(p, STOP);
    for (int i = 1; i < p->n_started; i++)
        pthread_join(p->slot[i].thread, NULL);
    free(p->slot);
    free(p);
}
