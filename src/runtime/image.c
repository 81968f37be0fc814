/* Images: read on the host, from and to where the device's memory is. The one kind of step that may allocate besides those that size
 * buffers: decoders do. */
#include "image/image.h"

#include <stdlib.h>

#include "runtime/runtime_int.h"

int64_t hn_image_job_bytes(const hn_image_job *j)
{
    return j->decode ? j->h * j->w * hn_image_channels((hn_image_order)j->order) : (int64_t)(2 * sizeof(int64_t));
}

static hone_status on_host(const hn_image_job *j, hn_diag *dg)
{
    int64_t *const size = (int64_t *)(void *)j->dst;

    if (j->decode) return hn_image_decode(j->src, (size_t)j->n, (hn_image_order)j->order, j->h, j->w, j->dst, dg);
    return hn_image_size(j->src, (size_t)j->n, &size[0], &size[1], dg);
}

static hone_status through_host(hn_context *c, const hn_image_job *j, hn_image_job *host, hn_diag *dg)
{
    const size_t bytes = (size_t)hn_image_job_bytes(j);

    HN_TRY(hn_queue_read(c->queue, host->src, j->src, (size_t)j->n, dg));
    HN_TRY(on_host(host, dg));
    HN_TRY(hn_queue_write(c->queue, j->dst, host->dst, bytes, dg));
    return hn_queue_sync(c->queue, dg);
}

hone_status hn_image_run(hn_context *c, const hn_image_job *j, hn_diag *dg)
{
    if (c->engine->device->vt->host_memory) return on_host(j, dg);
    hn_image_job host = *j;
    host.src = malloc((size_t)j->n + 1);
    host.dst = malloc((size_t)hn_image_job_bytes(j) + 1);
    const hone_status s = host.src && host.dst ? through_host(c, j, &host, dg) : HN_NOMEM(dg);
    free(host.src);
    free(host.dst);
    return s;
}
