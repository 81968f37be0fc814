/* Code sections: images one after another, each loaded as a module of its own. */
#include <stdlib.h>
#include <string.h>

#include "dev/cuda/call.h"

/* What codegen/cuda calls every kernel. */
static const char kernel_name[] = "hn_kernel";

static uint64_t round_up(uint64_t n)
{
    return (n + HN_IMAGE_ALIGN - 1) / HN_IMAGE_ALIGN * HN_IMAGE_ALIGN;
}

/* The image at an offset, checked against the section; false when there is none. */
static bool image_at(const uint8_t *code, size_t bytes, uint64_t at, hn_image *ret)
{
    if (at > bytes || bytes - at < sizeof(*ret)) return false;
    memcpy(ret, code + at, sizeof(*ret));
    const uint64_t threads = (uint64_t)ret->threads[0] * ret->threads[1] * ret->threads[2];
    return (ret->magic == HN_IMAGE_MAGIC || ret->magic == HN_CALL_MAGIC) && ret->bytes <= bytes - at - sizeof(*ret) && threads >= 1 && threads <= 1024;
}

static hone_status load_kernel(cuda_device *d, const uint8_t *code, uint64_t at, const hn_image *h, cuda_kernel *k,
                               hn_diag *dg)
{
    *k = (cuda_kernel){ .entry = at, .image = *h };
    if (h->magic == HN_CALL_MAGIC) return hn_cuda_call_make(d, code + at + sizeof(*h), h->bytes, &k->call, dg);
    HN_TRY(hn_cuda_check(d, d->c->module_load(&k->module, code + at + sizeof(*h)), "loading a kernel", dg));
    HN_TRY(hn_cuda_check(d, d->c->module_function(&k->fn, k->module, kernel_name), "finding a kernel", dg));
    if (h->shared_bytes == 0) return HONE_OK;
    return hn_cuda_check(d, d->c->function_set(k->fn, CU_FUNCTION_MAX_DYNAMIC_SHARED, (int)h->shared_bytes),
                         "asking for a kernel's shared memory", dg);
}

static hone_status load_all(cuda_device *d, const uint8_t *code, size_t bytes, cuda_module *m, hn_diag *dg)
{
    hn_image h;
    size_t n = 0;

    for (uint64_t at = 0; at < bytes; at = round_up(at + sizeof(h) + h.bytes), n++)
        if (!image_at(code, bytes, at, &h))
            return HN_RAISE(dg, HONE_E_FORMAT, "no kernel image at offset %llu of the code section", (unsigned long long)at);
    if (!(m->kernel = calloc(n + 1, sizeof(*m->kernel)))) return HN_NOMEM(dg);
    for (uint64_t at = 0; at < bytes; at = round_up(at + sizeof(h) + h.bytes)) {
        image_at(code, bytes, at, &h);
        HN_TRY(load_kernel(d, code, at, &h, &m->kernel[m->n++], dg));
    }
    return HONE_OK;
}

hone_status hn_cuda_load_code(hn_device *hd, const void *code, size_t bytes, hn_module **ret, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);

    HN_TRY(hn_cuda_enter(d, dg));
    cuda_module *m = calloc(1, sizeof(*m));
    if (!m) return HN_NOMEM(dg);
    const hone_status s = load_all(d, code, bytes, m, dg);
    if (s != HONE_OK) {
        hn_cuda_unload(hd, (hn_module *)m);
        return s;
    }
    *ret = (hn_module *)m;
    return HONE_OK;
}

void hn_cuda_unload(hn_device *hd, hn_module *hm)
{
    cuda_device *d = hn_cuda_of(hd);
    cuda_module *m = (cuda_module *)hm;

    if (hn_cuda_enter(d, NULL) == HONE_OK)
        for (size_t i = 0; i < m->n; i++) {
            if (m->kernel[i].module) d->c->module_unload(m->kernel[i].module);
            hn_cuda_call_drop(d, m->kernel[i].call);
        }
    free(m->kernel);
    free(m);
}

const cuda_kernel *hn_cuda_kernel_at(const cuda_module *m, uint64_t entry)
{
    size_t lo = 0, hi = m->n;

    while (lo < hi) {
        const size_t mid = (lo + hi) / 2;
        if (m->kernel[mid].entry == entry) return &m->kernel[mid];
        if (m->kernel[mid].entry < entry) lo = mid + 1;
        else hi = mid;
    }
    return NULL;
}
