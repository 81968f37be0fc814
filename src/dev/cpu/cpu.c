/* The CPU: the caller is worker 0, others are leased from the process pool for one run. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/os.h"
#include "dev/cpu/cpu_int.h"
#include "dev/cpu/pool.h"
#include "dev/dev_int.h"

/* ---- float environment ---- */
uint64_t hn_cpu_float_get(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#elif defined(__aarch64__)
    uint64_t v;
    __asm__ volatile("mrs %0, fpcr" : "=r"(v));
    return v;
#else
#error "no float environment for this processor"
#endif
}

void hn_cpu_float_set(uint64_t v)
{
#if defined(__x86_64__)
    _mm_setcsr((unsigned)v);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(v));
#endif
}

void hn_cpu_float_default(void)
{
#if defined(__x86_64__)
    hn_cpu_float_set(0x1F80); /* MXCSR at reset: all exceptions masked, round to nearest, no FTZ, no DAZ */
#elif defined(__aarch64__)
    hn_cpu_float_set(0);
#endif
}

/* ---- memory and code ---- */
static hone_status check_target(hn_device *d, const hn_target *t, hn_diag *dg)
{
    (void)d;
    return hn_target_check_runs_here(t, dg);
}

static hone_status cpu_alloc(hn_device *d, size_t bytes, size_t align, void **ret, hn_diag *dg)
{
    (void)d;
    return hn_host_alloc(bytes, align, /* zero= */ false, ret, dg);
}

static void cpu_free(hn_device *d, void *p, size_t bytes)
{
    (void)d;
    hn_host_free(p, bytes);
}

/* Pages are never writable and executable at once. */
static const uint8_t *map_code(const void *code, size_t bytes, size_t *ret_mapped)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t mapped = (bytes + page - 1) & ~(page - 1);
    void *const at = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) return NULL;
    memcpy(at, code, bytes);
    if (mprotect(at, mapped, PROT_READ | PROT_EXEC)) {
        munmap(at, mapped);
        return NULL;
    }
    __builtin___clear_cache((char *)at, (char *)at + bytes);
    *ret_mapped = mapped;
    return at;
}

static hone_status load_code(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg)
{
    hn_module *const m = calloc(1, sizeof(*m));

    (void)d;
    if (!m) return HN_NOMEM(dg);
    if (bytes > 0 && !(m->code = map_code(code, bytes, &m->mapped))) {
        free(m);
        return HN_RAISE(dg, HONE_E_DEVICE, "cannot map %zu bytes of code as executable", bytes);
    }
    m->bytes = bytes;
    *ret = m;
    return HONE_OK;
}

static void unload(hn_device *d, hn_module *m)
{
    (void)d;
    if (m->code) munmap((void *)m->code, m->mapped);
    free(m);
}

/* ---- queues ---- */
typedef struct cpu_queue {
    struct hn_queue q;
    int max_threads;
    uint8_t *scratch; /* max_threads blocks of stride bytes */
    size_t stride, reserved;
    uint64_t user_float;
    int n_leased;
    uint8_t leased[HN_CPU_MAX_WORKERS];
} cpu_queue;

/* Slices are claimed one by one. Up to 64 by bits, each thread from its own place on, so that a thread meets
 * the same part of the data from kernel to kernel; more by a counter. */
typedef struct job {
    const hn_launch *l;
    hn_kernel_fn fn;
    const cpu_queue *q;
    int64_t slices, trips;
    int n_threads;
    _Alignas(128) _Atomic uint64_t taken;
    _Atomic int64_t next;
} job;

static hone_status queue_create(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg)
{
    const int asked = o && o->max_threads > 0 ? o->max_threads : hn_cpu_count();
    const int threads = HN_MIN(asked, HN_CPU_MAX_WORKERS);
    cpu_queue *q;

    if (threads > 1)
        HN_TRY(hn_cpu_pool_ensure(threads, dg)); /* one more than needed: the one on our core is not used */
    if (!(q = calloc(1, sizeof(*q)))) return HN_NOMEM(dg);
    q->q = (struct hn_queue){ d, 1 };
    q->max_threads = threads;
    *ret = &q->q;
    return HONE_OK;
}

static void queue_destroy(hn_device *d, hn_queue *hq)
{
    cpu_queue *const q = (cpu_queue *)hq;

    (void)d;
    hn_host_free(q->scratch, q->stride * (size_t)q->max_threads);
    free(q);
}

static hone_status queue_reserve(hn_queue *hq, size_t bytes, hn_diag *dg)
{
    cpu_queue *const q = (cpu_queue *)hq;
    void *p;

    if (bytes <= q->reserved) return HONE_OK;
    if (bytes > SIZE_MAX / 1024)
        return HN_RAISE(dg, HONE_E_NOMEM, "out of memory: %zu bytes of scratch a thread", bytes);
    /* Whole pages, plus a line so that equal offsets in two blocks do not fall into one cache set. */
    const size_t stride = ((bytes + 4095) & ~(size_t)4095) + 64;
    HN_TRY(hn_host_alloc(stride * (size_t)q->max_threads, 4096, false, &p, dg));
    hn_host_free(q->scratch, q->stride * (size_t)q->max_threads);
    q->scratch = p, q->stride = stride, q->reserved = bytes;
    return HONE_OK;
}

static void begin(hn_queue *hq)
{
    cpu_queue *const q = (cpu_queue *)hq;

    q->user_float = hn_cpu_float_get();
    hn_cpu_float_default();
}

static void end(hn_queue *hq)
{
    cpu_queue *const q = (cpu_queue *)hq;

    hn_cpu_pool_release(q->leased, q->n_leased);
    q->n_leased = 0;
    q->q.threads = 1;
    hn_cpu_float_set(q->user_float);
}

static void run_slice(const job *j, int64_t slice, int slot)
{
    const int64_t lo = slice * j->trips, hi = HN_MIN(lo + j->trips, j->l->extent);
    void *const scratch = j->l->scratch_bytes > 0 ? j->q->scratch + (size_t)slot * j->q->stride : NULL;

    j->fn(j->l->buf, j->l->arg, lo, hi, scratch);
}

static void run_by_bits(job *j, int slot)
{
    const int64_t start = slot * j->slices / j->n_threads;

    for (int64_t k = 0; k < j->slices; k++) {
        const int64_t s = start + k < j->slices ? start + k : start + k - j->slices;
        const uint64_t bit = (uint64_t)1 << s;
        if (atomic_load_explicit(&j->taken, memory_order_relaxed) & bit) continue;
        if (atomic_fetch_or_explicit(&j->taken, bit, memory_order_relaxed) & bit) continue;
        run_slice(j, s, slot);
    }
}

static void run_share(void *user, int slot)
{
    job *const j = user;
    int64_t s;

    if (j->slices <= 64) {
        run_by_bits(j, slot);
        return;
    }
    while ((s = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed)) < j->slices)
        run_slice(j, s, slot);
}

/* Cut the launch for the threads there are, leasing on first need. */
static void split(cpu_queue *q, job *j)
{
    hn_launch_split(j->l, q->n_leased ? q->q.threads : q->max_threads, &j->slices, &j->trips);
    if (j->slices == 1 || q->n_leased > 0) return;
    q->n_leased = hn_cpu_pool_lease(q->max_threads - 1, q->leased);
    q->q.threads = 1 + q->n_leased;
    if (q->q.threads < q->max_threads) hn_launch_split(j->l, q->q.threads, &j->slices, &j->trips);
}

static void run_parallel(cpu_queue *q, job *j)
{
    const int helpers = (int)HN_MIN((int64_t)q->n_leased, j->slices - 1);

    j->n_threads = helpers + 1;
    atomic_init(&j->taken, 0);
    atomic_init(&j->next, 0);
    for (int i = 0; i < helpers; i++)
        hn_cpu_pool_post(q->leased[i], run_share, j, i + 1);
    run_share(j, 0);
    for (int i = 0; i < helpers; i++)
        hn_cpu_pool_wait(q->leased[i]);
}

static hn_kernel_fn entry_point(const hn_module *m, uint64_t entry)
{
    union {
        const void *data;
        hn_kernel_fn fn;
    } u;

    if (m->fn) return m->fn[entry];
    u.data = m->code + entry;
    return u.fn;
}

static hone_status launch(hn_queue *hq, const hn_module *m, const hn_launch *l, hn_diag *dg)
{
    cpu_queue *const q = (cpu_queue *)hq;
    job j;

    j.l = l, j.fn = entry_point(m, l->entry),
    j.q = q; /* not all of it: this is on the path of every kernel */
    if (HN_NEVER(l->scratch_bytes > (int64_t)q->reserved))
        return HN_RAISE(dg, HONE_E_INTERNAL, "a kernel wants %lld bytes of scratch, %zu are reserved",
                        (long long)l->scratch_bytes, q->reserved);
    split(q, &j);
    if (j.slices > 1)
        run_parallel(q, &j);
    else
        run_slice(&j, 0, 0);
    return HONE_OK;
}

static hone_status move(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    (void)q, (void)dg;
    if (bytes) memcpy(dst, src, bytes);
    return HONE_OK;
}

/* A trip copies this many bytes in about as many ps as one core needs at 10 GB/s; two cores reach twice that
 * from cache and half as much again from memory. */
enum { COPY_TRIP = 4096, COPY_TRIP_PS = 400 * 1000 };

static void copy_trips(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch)
{
    const int64_t at = lo * COPY_TRIP, end = HN_MIN(hi * COPY_TRIP, arg[0]);

    (void)scratch;
    memcpy((uint8_t *)buf[0] + at, (const uint8_t *)buf[1] + at, (size_t)(end - at));
}

static hone_status copy(hn_queue *hq, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    static const hn_kernel_fn fn[] = { copy_trips };
    static const hn_module copier = { .fn = fn, .n_fn = 1 };
    void *const buf[] = { dst, (void *)src };
    const int64_t n = (int64_t)bytes;

    if (bytes == 0) return HONE_OK;
    return launch(hq, &copier,
                  &(hn_launch){ .buf = buf,
                                .arg = &n,
                                .n_buf = 2,
                                .n_arg = 1,
                                .extent = (n - 1) / COPY_TRIP + 1,
                                .grain = 1,
                                .trip_ps = COPY_TRIP_PS },
                  dg);
}

static hone_status sync_queue(hn_queue *q, hn_diag *dg)
{
    (void)q, (void)dg;
    return HONE_OK;
}

static int64_t now_ns(hn_queue *q)
{
    (void)q;
    return hn_now_ns();
}

static const hn_device_vt cpu_vt = {
    .name = "cpu",
    .host_memory = true,
    .executes = true,
    .check_target = check_target,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .load_code = load_code,
    .unload = unload,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_reserve = queue_reserve,
    .begin = begin,
    .end = end,
    .launch = launch,
    .copy = copy,
    .read = move,
    .write = move,
    .sync = sync_queue,
    .now_ns = now_ns,
};

hn_device *hn_device_cpu(void)
{
    static hn_device device = { &cpu_vt };
    return &device;
}
