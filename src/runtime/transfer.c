/* Inputs and outputs: in place where the device can use the caller's memory, else copied through staging memory. */
#include <string.h>

#include "runtime/runtime_int.h"

static const char *io_name(const hn_context *c, uint32_t io)
{
    return hn_plan_str(c->plan, c->plan->io[io].name);
}

static bool has_own_memory(const hn_context *c)
{
    return !c->engine->device->vt->host_memory;
}

/* Room in the staging memory of an entry; only grows. */
static hone_status stage(hn_context *c, uint32_t io, int64_t bytes, hn_diag *dg)
{
    hn_io_state *const st = &c->io[io];

    if (bytes <= st->staging_bytes) return HONE_OK;
    hn_device_host_free(c->engine->device, st->staging);
    st->staging = NULL, st->staging_bytes = 0;
    HN_TRY(hn_device_host_alloc(c->engine->device, (size_t)bytes, &st->staging, dg));
    st->staging_bytes = bytes;
    return HONE_OK;
}

/* ---- inputs ---- */
static hone_status send(hn_context *c, uint32_t io, hn_diag *dg)
{
    const uint32_t b = c->plan->io[io].buf;
    const int64_t bytes = c->buf[b].bytes;

    HN_TRY(hn_heap_resize(c, b, bytes, 0, dg));
    if (bytes == 0 || (c->without_transfers && c->io[io].sent == c->buf[b].ptr)) return HONE_OK;
    HN_TRY(stage(c, io, bytes, dg));
    memcpy(c->io[io].staging, c->io[io].bound, (size_t)bytes);
    HN_TRY(hn_queue_write(c->queue, c->buf[b].ptr, c->io[io].staging, (size_t)bytes, dg));
    c->io[io].sent = c->buf[b].ptr;
    return HONE_OK;
}

static hone_status input_ready(hn_context *c, uint32_t i, hn_diag *dg)
{
    hn_buf_state *const st = &c->buf[c->plan->io[i].buf];
    const hn_io_state *io = &c->io[i];

    if (!io->bound && st->bytes > 0)
        return HN_RAISE(dg, HONE_E_UNBOUND, "input \"%s\" has no buffer", io_name(c, i));
    if (st->bytes > io->capacity)
        return HN_RAISE(dg, HONE_E_INVALID, "input \"%s\" needs %lld bytes, %lld are bound", io_name(c, i),
                        (long long)st->bytes, (long long)io->capacity);
    if (io->remote) return send(c, i, dg);
    st->ptr = io->bound;
    return HONE_OK;
}

hone_status hn_inputs_ready(hn_context *c, hn_diag *dg)
{
    for (uint32_t i = 0; i < c->plan->n_io; i++)
        if (c->plan->io[i].flags == HN_IO_INPUT) HN_TRY(input_ready(c, i, dg));
    return HONE_OK;
}

/* ---- outputs ---- */
hone_status hn_outputs_ready(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; i < p->n_io; i++) {
        const uint32_t b = p->io[i].buf;
        hn_buf_state *const st = &c->buf[b];
        if (p->io[i].flags != HN_IO_OUTPUT || (p->buf[b].flags & HN_BUF_GROWS)) continue;
        if (c->io[i].bound && st->bytes > c->io[i].capacity)
            return HN_RAISE(dg, HONE_E_INVALID, "output \"%s\" needs %lld bytes, %lld are bound", io_name(c, i),
                            (long long)st->bytes, (long long)c->io[i].capacity);
        if (!c->io[i].bound || c->io[i].remote)
            HN_TRY(hn_heap_resize(c, b, st->bytes, 0, dg));
        else
            st->ptr = c->io[i].bound;
    }
    return HONE_OK;
}

/* An output that stays in memory of the device's that the caller bound needs no copy; one that nobody asks for neither. */
static bool stays(const hn_context *c, uint32_t io)
{
    return c->plan->io[io].flags != HN_IO_OUTPUT || (c->io[io].bound && !c->io[io].remote) || c->without_transfers;
}

hone_status hn_outputs_fetch(hn_context *c, hn_diag *dg)
{
    const hn_plan *p = c->plan;

    for (uint32_t i = 0; has_own_memory(c) && i < p->n_io; i++) {
        const hn_buf_state *st = &c->buf[p->io[i].buf];
        if (stays(c, i)) continue;
        HN_TRY(stage(c, i, HN_MAX(st->bytes, 1), dg));
        HN_TRY(hn_queue_read_later(c->queue, c->io[i].staging, st->ptr, (size_t)st->bytes, dg));
    }
    HN_TRY(hn_faults_fetch(c, dg));
    HN_TRY(hn_queue_sync(c->queue, dg));
    HN_TRY(hn_faults_check(c, dg));
    for (uint32_t i = 0; has_own_memory(c) && i < p->n_io; i++)
        if (!stays(c, i) && c->io[i].bound)
            memcpy(c->io[i].bound, c->io[i].staging, (size_t)c->buf[p->io[i].buf].bytes);
    return HONE_OK;
}
