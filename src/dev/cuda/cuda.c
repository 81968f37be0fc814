/* The GPU: found once a process, its memory, and what it can run. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "dev/cuda/call.h"

/* ---- errors ---- */
static hone_status died(const cuda_device *d, int result, hn_diag *dg)
{
    char text[160];

    hn_cu_error_text(d->c, result, text, sizeof(text));
    hn_hint(dg, "Engines on the GPU are of no use in this process any more; engines on the CPU go on.");
    return HN_RAISE(dg, HONE_E_DEVICE, "an earlier fault killed this process's GPU context: %s", text);
}

hone_status hn_cuda_check(cuda_device *d, int result, const char *doing, hn_diag *dg)
{
    char text[160];

    if (result == 0) return HONE_OK;
    if (hn_cu_is_sticky(result)) atomic_store(&d->dead, result);
    hn_cu_error_text(d->c, result, text, sizeof(text));
    return HN_RAISE(dg, HONE_E_DEVICE, "the GPU failed while %s: %s", doing, text);
}

hone_status hn_cuda_enter(cuda_device *d, hn_diag *dg)
{
    const int dead = atomic_load(&d->dead);

    if (dead) return died(d, dead, dg);
    return hn_cuda_check(d, d->c->context_set(d->context), "making its context current", dg);
}

/* ---- targets ---- */
static hone_status check_target(hn_device *hd, const hn_target *t, hn_diag *dg)
{
    const cuda_device *d = hn_cuda_of(hd);
    const char *need = t->feat & HN_FEAT_SM_90A ? "9.0" : "8.x";

    if (t->arch != HN_ARCH_SM)
        return HN_RAISE(dg, HONE_E_TARGET, "code for target \"%s\" is not for a GPU", t->name);
    if (t->feat & HN_FEAT_SM_90A ? d->major == 9 && d->minor == 0 : d->major == 8) return HONE_OK;
    hn_hint(dg, "Build the engine for this GPU.");
    return HN_RAISE(dg, HONE_E_TARGET, "the engine needs a GPU of compute capability %s; \"%s\" has %d.%d", need, d->name, d->major,
                    d->minor);
}

/* ---- memory ---- */
static hone_status cuda_alloc(hn_device *hd, size_t bytes, size_t align, void **ret, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);
    cu_address p = 0;

    (void)align; /* the driver's own is 256 */
    HN_TRY(hn_cuda_enter(d, dg));
    const int r = d->c->memory_alloc(&p, bytes ? bytes : 1);
    if (r == CU_OUT_OF_MEMORY)
        return HN_RAISE(dg, HONE_E_NOMEM, "out of GPU memory: %zu bytes were asked for", bytes);
    HN_TRY(hn_cuda_check(d, r, "allocating memory", dg));
    *ret = (void *)(uintptr_t)p;
    return HONE_OK;
}

static void cuda_free(hn_device *hd, void *p, size_t bytes)
{
    cuda_device *d = hn_cuda_of(hd);

    (void)bytes;
    if (hn_cuda_enter(d, NULL) == HONE_OK) d->c->memory_free((uintptr_t)p);
}

static bool owns(hn_device *hd, const void *p)
{
    static const int attribute = CU_POINTER_MEMORY_TYPE;
    cuda_device *d = hn_cuda_of(hd);
    unsigned type = 0;
    void *const ret = &type;

    /* the call for several: memory that the driver does not know is no error to it, which compute-sanitizer would count */
    return p && hn_cuda_enter(d, NULL) == HONE_OK &&
           d->c->pointer_attributes(1, &attribute, (void **)(uintptr_t)&ret, (uintptr_t)p) == 0 && type == CU_MEMORY_TYPE_DEVICE;
}

static hone_status host_alloc(hn_device *hd, size_t bytes, void **ret, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);

    HN_TRY(hn_cuda_enter(d, dg));
    const int r = d->c->host_alloc(ret, bytes ? bytes : 1, 0);
    if (r == CU_OUT_OF_MEMORY) return HN_RAISE(dg, HONE_E_NOMEM, "out of memory: %zu bytes were to be pinned", bytes);
    return hn_cuda_check(d, r, "pinning memory", dg);
}

static void host_free(hn_device *hd, void *p)
{
    cuda_device *d = hn_cuda_of(hd);

    if (hn_cuda_enter(d, NULL) == HONE_OK) d->c->host_free(p);
}

static const hn_device_vt cuda_vt = {
    .name = "cuda",
    .host_memory = false,
    .executes = true,
    .check_target = check_target,
    .alloc = cuda_alloc,
    .free = cuda_free,
    .load_code = hn_cuda_load_code,
    .unload = hn_cuda_unload,
    .queue_create = hn_cuda_queue_create,
    .queue_destroy = hn_cuda_queue_destroy,
    .queue_reserve = hn_cuda_queue_reserve,
    .begin = hn_cuda_begin,
    .end = hn_cuda_end,
    .launch = hn_cuda_launch,
    .copy = hn_cuda_copy,
    .read = hn_cuda_read,
    .write = hn_cuda_write,
    .read_later = hn_cuda_read_later,
    .sync = hn_cuda_sync,
    .now_ns = hn_cuda_now_ns,
    .owns = owns,
    .host_alloc = host_alloc,
    .host_free = host_free,
    .record = hn_cuda_record,
    .record_end = hn_cuda_record_end,
    .replay = hn_cuda_replay,
    .replay_destroy = hn_cuda_replay_destroy,
    .mark = hn_cuda_mark,
    .after = hn_cuda_after,
    .library = hn_cuda_library,
    .choose_call = hn_cuda_call_choose,
    .clock_mhz = hn_cuda_clock_mhz,
};

/* ---- opening ---- */
static struct {
    pthread_once_t once;
    cuda_device device;
    hn_diag why;
} gpu = { .once = PTHREAD_ONCE_INIT };

static int attribute(const cuda_device *d, int which)
{
    int v = 0;
    return d->c->device_attribute(&v, which, d->ordinal) == 0 ? v : 0;
}

static hone_status open_gpu(cuda_device *d, hn_diag *dg)
{
    int n = 0;
    size_t bytes = 0;

    d->d.vt = &cuda_vt;
    HN_TRY(hn_cu_driver(&d->c, &d->version, dg));
    HN_TRY(hn_cuda_check(d, d->c->device_count(&n), "counting GPUs", dg));
    if (n == 0) return HN_RAISE(dg, HONE_E_NOTFOUND, "the CUDA driver shows no GPU");
    HN_TRY(hn_cuda_check(d, d->c->device_get(&d->ordinal, 0), "opening GPU 0", dg));
    HN_TRY(hn_cuda_check(d, d->c->device_name(d->name, sizeof(d->name), d->ordinal), "asking for its name", dg));
    HN_TRY(hn_cuda_check(d, d->c->device_memory(&bytes, d->ordinal), "asking for its memory", dg));
    d->memory_bytes = (int64_t)bytes;
    d->major = attribute(d, CU_DEVICE_MAJOR);
    d->minor = attribute(d, CU_DEVICE_MINOR);
    d->n_multiprocessor = attribute(d, CU_DEVICE_MULTIPROCESSORS);
    d->l2_bytes = attribute(d, CU_DEVICE_L2_BYTES);
    d->shared_bytes = attribute(d, CU_DEVICE_SHARED_OPTIN);
    HN_TRY(hn_cuda_check(d, d->c->context_retain(&d->context, d->ordinal), "making its context", dg));
    return hn_cuda_enter(d, dg);
}

static void open_once(void)
{
    (void)open_gpu(&gpu.device, &gpu.why);
}

hone_status hn_device_cuda(hn_device **ret, hn_diag *dg)
{
    pthread_once(&gpu.once, open_once);
    if (gpu.why.code != HONE_OK) {
        if (dg) *dg = gpu.why;
        return gpu.why.code;
    }
    HN_TRY(hn_cuda_enter(&gpu.device, dg));
    *ret = &gpu.device.d;
    return HONE_OK;
}

void hn_device_cuda_print(const hn_device *hd, hn_str *out)
{
    const cuda_device *d = (const cuda_device *)hd;

    hn_str_addf(out, "%s, compute capability %d.%d, %d multiprocessors, %lld MiB, L2 %lld MiB, driver for CUDA %d.%d", d->name,
                d->major, d->minor, d->n_multiprocessor, (long long)(d->memory_bytes >> 20), (long long)(d->l2_bytes >> 20),
                d->version / 1000, d->version % 1000 / 10);
}
