/* Calls through the vtable, and what the host devices share. */
#include "dev/dev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dev/dev_int.h"

/* Above this a block is mapped by itself and asks for huge pages: fewer misses in the TLB when kernels stream
 * through it. */
#define HUGE_BYTES ((size_t)4 << 20)
#define HUGE_PAGE  ((size_t)2 << 20)

static hone_status no_memory(size_t bytes, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_NOMEM, "out of memory: %zu bytes were asked for", bytes);
}

static bool is_huge(size_t bytes)
{
    return bytes >= HUGE_BYTES;
}

/* Map one huge page more than needed and give back what lies outside the aligned block. */
static void *map_huge(size_t bytes)
{
    const size_t want = (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1);
    uint8_t *const at =
        mmap(NULL, want + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (at == MAP_FAILED) return NULL;
    const size_t head = (size_t)(-(uintptr_t)at & (HUGE_PAGE - 1));
    if (head) munmap(at, head);
    munmap(at + head + want, HUGE_PAGE - head);
    madvise(at + head, want, MADV_HUGEPAGE);
    return at + head;
}

hone_status hn_host_alloc(size_t bytes, size_t align, bool zero, void **ret, hn_diag *dg)
{
    if (bytes > PTRDIFF_MAX - 2 * HUGE_PAGE) return no_memory(bytes, dg);
    if (align < 64) align = 64;
    const size_t rounded = (bytes + align) & ~(align - 1); /* at least one byte */
    void *const p = is_huge(bytes) ? map_huge(bytes) : aligned_alloc(align, rounded);

    if (!p) return no_memory(bytes, dg);
    if (zero && !is_huge(bytes)) memset(p, 0, rounded);
    *ret = p;
    return HONE_OK;
}

void hn_host_free(void *p, size_t bytes)
{
    if (!p) return;
    if (is_huge(bytes))
        munmap(p, (bytes + HUGE_PAGE - 1) & ~(HUGE_PAGE - 1));
    else
        free(p);
}

hone_status hn_device_get(const char *name, hn_device **ret, hn_diag *dg)
{
    hn_device *const known[] = { hn_device_cpu(), hn_device_null() };

    if (strcmp(name, "cuda") == 0) return hn_device_cuda(ret, dg);
    for (int i = 0; i < HN_COUNT(known); i++)
        if (strcmp(known[i]->vt->name, name) == 0) {
            *ret = known[i];
            return HONE_OK;
        }
    hn_hint(dg, "Devices: cpu, cuda, null.");
    return HN_RAISE(dg, HONE_E_NOTFOUND, "there is no device \"%s\"", name);
}

hone_status hn_device_for(hn_arch arch, hn_device **ret, hn_diag *dg)
{
    if (arch == HN_ARCH_SM) return hn_device_cuda(ret, dg);
    *ret = hn_device_cpu();
    return HONE_OK;
}

hone_status hn_device_check_target(hn_device *d, const hn_target *t, hn_diag *dg)
{
    return d->vt->check_target(d, t, dg);
}

hone_status hn_device_alloc(hn_device *d, size_t bytes, size_t align, void **ret, hn_diag *dg)
{
    return d->vt->alloc(d, bytes, align, ret, dg);
}

void hn_device_free(hn_device *d, void *p, size_t bytes)
{
    if (p) d->vt->free(d, p, bytes);
}

hone_status hn_device_load_code(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg)
{
    return d->vt->load_code(d, code, bytes, ret, dg);
}

hone_status hn_device_load_functions(hn_device *d, const hn_kernel_fn *fn, size_t n, hn_module **ret,
                                     hn_diag *dg)
{
    if (!d->vt->host_memory)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "device \"%s\" runs no host functions", d->vt->name);
    hn_module *const m = calloc(1, sizeof(*m));
    if (!m) return HN_NOMEM(dg);
    m->fn = fn, m->n_fn = n;
    *ret = m;
    return HONE_OK;
}

void hn_device_unload(hn_device *d, hn_module *m)
{
    if (m) d->vt->unload(d, m);
}

hone_status hn_queue_create(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg)
{
    return d->vt->queue_create(d, o, ret, dg);
}

void hn_queue_destroy(hn_queue *q)
{
    if (q) q->device->vt->queue_destroy(q->device, q);
}

hone_status hn_queue_reserve(hn_queue *q, size_t scratch_bytes, hn_diag *dg)
{
    return q->device->vt->queue_reserve(q, scratch_bytes, dg);
}

void hn_queue_begin(hn_queue *q)
{
    q->device->vt->begin(q);
}

void hn_queue_end(hn_queue *q)
{
    q->device->vt->end(q);
}

hone_status hn_queue_launch(hn_queue *q, const hn_module *m, const hn_launch *l, hn_diag *dg)
{
    return q->device->vt->launch(q, m, l, dg);
}

hone_status hn_queue_copy(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    return q->device->vt->copy(q, dst, src, bytes, dg);
}

hone_status hn_queue_read(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg)
{
    return q->device->vt->read(q, host, src, bytes, dg);
}

hone_status hn_queue_write(hn_queue *q, void *dst, const void *host, size_t bytes, hn_diag *dg)
{
    return q->device->vt->write(q, dst, host, bytes, dg);
}

hone_status hn_queue_read_later(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg)
{
    return (q->device->vt->host_memory ? q->device->vt->read : q->device->vt->read_later)(q, host, src, bytes, dg);
}

bool hn_device_owns(hn_device *d, const void *p)
{
    return d->vt->host_memory || d->vt->owns(d, p);
}

hone_status hn_device_host_alloc(hn_device *d, size_t bytes, void **ret, hn_diag *dg)
{
    if (d->vt->host_alloc) return d->vt->host_alloc(d, bytes, ret, dg);
    *ret = malloc(bytes + 1);
    return *ret ? HONE_OK : no_memory(bytes, dg);
}

void hn_device_host_free(hn_device *d, void *p)
{
    if (p && d->vt->host_free) d->vt->host_free(d, p);
    else free(p);
}

bool hn_device_records(const hn_device *d)
{
    return d->vt->record != NULL;
}

hone_status hn_queue_record(hn_queue *q, hn_diag *dg)
{
    return q->device->vt->record(q, dg);
}

hone_status hn_queue_mark(hn_queue *q, void **ret, hn_diag *dg)
{
    return q->device->vt->mark(q, ret, dg);
}

hone_status hn_queue_after(hn_queue *q, void *const *mark, size_t n, hn_diag *dg)
{
    return q->device->vt->after(q, mark, n, dg);
}

hone_status hn_queue_record_end(hn_queue *q, hn_replay **ret, hn_diag *dg)
{
    return q->device->vt->record_end(q, ret, dg);
}

hone_status hn_queue_replay(hn_queue *q, hn_replay *r, hn_diag *dg)
{
    return q->device->vt->replay(q, r, dg);
}

void hn_device_replay_destroy(hn_device *d, hn_replay *r)
{
    if (r) d->vt->replay_destroy(d, r);
}

hone_status hn_queue_sync(hn_queue *q, hn_diag *dg)
{
    return q->device->vt->sync(q, dg);
}

int64_t hn_queue_now_ns(hn_queue *q)
{
    return q->device->vt->now_ns(q);
}

hn_device *hn_queue_device(const hn_queue *q)
{
    return q->device;
}

int hn_queue_threads(const hn_queue *q)
{
    return q->threads;
}

/* Origin of the times: fork-join with spinning workers costs 0.2 us and its imbalance about as much, so a
 * slice should last a few us; above 100 us another tenant of a core can hold up an even split for longer than
 * four slices a thread cost. */
enum { SLICE_NS = 2000, LONG_NS = 100 * 1000, SLICES_PER_THREAD = 4 };

static int64_t total_ns(const hn_launch *l)
{
    int64_t ps;
    if (l->trip_ps <= 0) return LONG_NS - 1; /* unknown */
    return __builtin_mul_overflow(l->extent, l->trip_ps, &ps) ? INT64_MAX : ps / 1000;
}

void hn_launch_split(const hn_launch *l, int n_threads, int64_t *ret_slices, int64_t *ret_trips)
{
    const int64_t ns = total_ns(l);
    const int64_t most = l->max_threads > 0 ? HN_MIN(n_threads, l->max_threads) : n_threads;
    const int64_t threads = HN_MIN(most, ns / SLICE_NS);

    *ret_slices = 1;
    *ret_trips = l->extent;
    if (threads <= 1 || l->extent <= l->grain) return;
    const int64_t want = ns >= LONG_NS ? threads * SLICES_PER_THREAD : threads;
    const int64_t grains = (l->extent - 1) / l->grain + 1;
    const int64_t per = (grains - 1) / want + 1;
    int64_t trips;
    if (__builtin_mul_overflow(per, l->grain, &trips) || trips >= l->extent) return;
    *ret_trips = trips;
    *ret_slices = (l->extent - 1) / trips + 1;
}

/* ---- libraries ---- */
static hone_status no_libraries(const hn_device *d, hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "device \"%s\" has no libraries", d->vt->name);
}

hone_status hn_device_library(hn_device *d, hn_library which, hn_str *ret_version, hn_diag *dg)
{
    return d->vt->library ? d->vt->library(d, which, ret_version, dg) : no_libraries(d, dg);
}

hone_status hn_device_choose_call(hn_device *d, hn_libcall *c, hn_str *ret_plan, hn_diag *dg)
{
    return d->vt->choose_call ? d->vt->choose_call(d, c, ret_plan, dg) : no_libraries(d, dg);
}

int hn_device_clock_mhz(hn_device *d)
{
    return d->vt->clock_mhz ? d->vt->clock_mhz(d) : 0;
}
