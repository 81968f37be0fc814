/*
 * Indices out of range. Kernels that read or write at computed places read another element or leave out what lies outside, and tell of it in a
 * record of the launch's own (core.h); the run ends with an error then. The records are zero but for that, so that looking at
 * them is all that a run without such an index pays.
 */
#include <string.h>

#include "core/core.h"
#include "runtime/runtime_int.h"

enum { WORDS = HN_FAULT_BYTES / 8 };

static bool on_host(const hn_context *c)
{
    return c->engine->device->vt->host_memory;
}

/* Zeros on the device, waited for. */
static hone_status clear(hn_context *c, hn_diag *dg)
{
    memset(c->fault_host, 0, (size_t)c->fault_bytes);
    if (on_host(c)) return HONE_OK;
    HN_TRY(hn_queue_write(c->queue, c->fault, c->fault_host, (size_t)c->fault_bytes, dg));
    return hn_queue_sync(c->queue, dg);
}

static hone_status make_room(hn_context *c, hn_diag *dg)
{
    hn_device *const d = c->engine->device;
    void *p;

    HN_TRY(hn_device_alloc(d, (size_t)c->fault_bytes, 64, &p, dg));
    c->fault = p;
    if (!on_host(c)) HN_TRY(hn_device_host_alloc(d, (size_t)c->fault_bytes, &p, dg));
    c->fault_host = p;
    hn_queue_begin(c->queue);
    const hone_status s = clear(c, dg);
    hn_queue_end(c->queue);
    return s;
}

hone_status hn_faults_create(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;
    int64_t at = 0;

    for (uint32_t i = 0; i < p->n_buf; i++)
        if (p->buf[i].kind == HN_BUF_FAULT) c->fault_bytes += HN_FAULT_BYTES;
    if (c->fault_bytes == 0) return HONE_OK;
    HN_TRY(make_room(c, dg));
    for (uint32_t i = 0; i < p->n_buf; i++) {
        if (p->buf[i].kind != HN_BUF_FAULT) continue;
        c->buf[i] = (hn_buf_state){ .ptr = c->fault + at, .bytes = HN_FAULT_BYTES };
        at += HN_FAULT_BYTES;
    }
    return HONE_OK;
}

void hn_faults_destroy(hn_context *c)
{
    hn_device *const d = c->engine->device;

    if (!on_host(c)) hn_device_host_free(d, c->fault_host);
    hn_device_free(d, c->fault, (size_t)c->fault_bytes);
}

hone_status hn_faults_fetch(hn_context *c, hn_diag *dg)
{
    if (c->fault_bytes == 0 || on_host(c)) return HONE_OK;
    return hn_queue_read_later(c->queue, c->fault_host, c->fault, (size_t)c->fault_bytes, dg);
}

/* The first pair that tells something, NULL: none does. */
static const int64_t *first_fault(const hn_context *c)
{
    for (int64_t i = 0; i < c->fault_bytes / 8; i += 2)
        if (HN_UNLIKELY(c->fault_host[i])) return c->fault_host + i;
    return NULL;
}

static bool passes(const hn_context *c, const hn_step *s, uint32_t buf)
{
    for (uint32_t k = 0; s->kind == HN_STEP_KERNEL && k < s->u.kernel.n_buf; k++)
        if (HN_ARG_BUF(c->plan->list[s->u.kernel.buf + k]) == buf) return true;
    return false;
}

/* The step whose kernel was given this record; HN_NO: none. */
static uint32_t step_of(const hn_context *c, const int64_t *fault)
{
    const hn_plan *p = c->plan;
    int64_t left = (fault - c->fault_host) / WORDS;
    uint32_t buf = 0;

    while (buf < p->n_buf && (p->buf[buf].kind != HN_BUF_FAULT || left-- > 0))
        buf++;
    for (uint32_t i = 0; i < p->n_step; i++)
        if (passes(c, &p->step[i], buf)) return i;
    return HN_NO;
}

static hone_status raise_fault(const hn_context *c, const int64_t *fault, hn_diag *dg)
{
    const long long extent = (long long)fault[0] - 1, index = (long long)fault[1];
    const uint32_t step = step_of(c, fault);

    if (extent > 0) hn_hint(dg, "Indices from %lld to %lld are allowed here; look at the inputs that they come from.", -extent, extent - 1);
    const hone_status s = HN_RAISE(dg, HONE_E_MODEL, "index %lld is out of range for extent %lld", index, extent);
    if (step != HN_NO) hn_step_frame(c, step, dg);
    return s;
}

hone_status hn_faults_check(hn_context *c, hn_diag *dg)
{
    const int64_t *fault = first_fault(c);

    return HN_UNLIKELY(fault != NULL) ? raise_fault(c, fault, dg) : HONE_OK;
}

void hn_faults_explain(hn_context *c, hn_diag *dg)
{
    if (c->fault_bytes == 0) return;
    if (!on_host(c) && hn_queue_read(c->queue, c->fault_host, c->fault, (size_t)c->fault_bytes, NULL)) return;
    const int64_t *fault = first_fault(c);
    if (!fault) return;
    if (dg && dg->code != HONE_E_MODEL)
        hn_diag_frame(dg, "a run with index %lld for extent %lld, which is out of range", (long long)fault[1], (long long)fault[0] - 1);
    (void)clear(c, NULL);
}
