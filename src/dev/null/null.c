/* The device that computes nothing: shapes, memory and control flow run, kernels and copies do not. Its
 * memory reads as zero. */
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "dev/dev_int.h"

static hone_status check_target(hn_device *d, const hn_target *t, hn_diag *dg)
{
    (void)d, (void)t, (void)dg;
    return HONE_OK; /* any code loads where none runs */
}

static hone_status null_alloc(hn_device *d, size_t bytes, size_t align, void **ret, hn_diag *dg)
{
    (void)d;
    return hn_host_alloc(bytes, align, /* zero= */ true, ret, dg);
}

static void null_free(hn_device *d, void *p, size_t bytes)
{
    (void)d;
    hn_host_free(p, bytes);
}

static hone_status load_code(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg)
{
    hn_module *const m = calloc(1, sizeof(*m));

    (void)d, (void)code;
    if (!m) return HN_NOMEM(dg);
    m->bytes = bytes;
    *ret = m;
    return HONE_OK;
}

static void unload(hn_device *d, hn_module *m)
{
    (void)d;
    free(m);
}

static hone_status queue_create(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg)
{
    hn_queue *const q = calloc(1, sizeof(*q));

    (void)o;
    if (!q) return HN_NOMEM(dg);
    *q = (hn_queue){ d, 1 };
    *ret = q;
    return HONE_OK;
}

static void queue_destroy(hn_device *d, hn_queue *q)
{
    (void)d;
    free(q);
}

static hone_status queue_reserve(hn_queue *q, size_t bytes, hn_diag *dg)
{
    (void)q, (void)bytes, (void)dg;
    return HONE_OK;
}

static void bracket(hn_queue *q)
{
    (void)q;
}

static hone_status launch(hn_queue *q, const hn_module *m, const hn_launch *l, hn_diag *dg)
{
    (void)q, (void)m, (void)l, (void)dg;
    return HONE_OK;
}

static hone_status skip_copy(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    (void)q, (void)dst, (void)src, (void)bytes, (void)dg;
    return HONE_OK;
}

static hone_status move(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    (void)q, (void)dg;
    if (bytes) memcpy(dst, src, bytes);
    return HONE_OK;
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

static const hn_device_vt null_vt = {
    .name = "null",
    .host_memory = true,
    .executes = false,
    .check_target = check_target,
    .alloc = null_alloc,
    .free = null_free,
    .load_code = load_code,
    .unload = unload,
    .queue_create = queue_create,
    .queue_destroy = queue_destroy,
    .queue_reserve = queue_reserve,
    .begin = bracket,
    .end = bracket,
    .launch = launch,
    .copy = skip_copy,
    .read = move,
    .write = move,
    .sync = sync_queue,
    .now_ns = now_ns,
};

hn_device *hn_device_null(void)
{
    static hn_device device = { &null_vt };
    return &device;
}
