/* Streams: launches, copies, waiting, and whole runs recorded as graphs. */
#include <limits.h>
#include <stdlib.h>

#include "base/os.h"
#include "dev/cuda/call.h"

enum { MAX_PARAMS = 512 }; /* 4 KiB of eight-byte parameters, what every GPU takes */

static cuda_queue *queue_of(hn_queue *q)
{
    return (cuda_queue *)q;
}

static cuda_device *device_of(hn_queue *q)
{
    return hn_cuda_of(q->device);
}

hone_status hn_cuda_queue_create(hn_device *hd, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg)
{
    cuda_device *d = hn_cuda_of(hd);

    (void)o;
    HN_TRY(hn_cuda_enter(d, dg));
    cuda_queue *q = calloc(1, sizeof(*q));
    if (!q) return HN_NOMEM(dg);
    q->q = (struct hn_queue){ hd, 1 };
    const hone_status s =
        hn_cuda_check(d, d->c->stream_create(&q->stream, CU_STREAM_NON_BLOCKING), "making a stream", dg);
    if (s != HONE_OK) {
        free(q);
        return s;
    }
    *ret = &q->q;
    return HONE_OK;
}

void hn_cuda_queue_destroy(hn_device *hd, hn_queue *q)
{
    cuda_device *d = hn_cuda_of(hd);

    if (hn_cuda_enter(d, NULL) == HONE_OK) d->c->stream_destroy(queue_of(q)->stream);
    free(q);
}

hone_status hn_cuda_queue_reserve(hn_queue *q, size_t bytes, hn_diag *dg)
{
    (void)q;
    if (bytes == 0) return HONE_OK;
    return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernels for a GPU have no scratch");
}

void hn_cuda_begin(hn_queue *q)
{
    /* a failure shows at the first launch */
    (void)hn_cuda_enter(device_of(q), NULL);
}

void hn_cuda_end(hn_queue *q)
{
    (void)q;
}

/* ---- faults show when waiting: say which kernels may be at fault ---- */
static void remember(cuda_queue *q, const char *name)
{
    q->recent.name[q->recent.n++ % HN_CUDA_RECENT] = name ? name : "unnamed";
}

static void name_suspects(const cuda_queue *q, hn_diag *dg)
{
    const unsigned n = HN_MIN(q->recent.n, (unsigned)HN_CUDA_RECENT);
    hn_str s = { 0 };

    for (unsigned i = 1; i <= n; i++)
        hn_str_addf(&s, "%s%s", i > 1 ? ", " : "", q->recent.name[(q->recent.n - i) % HN_CUDA_RECENT]);
    if (n) hn_hint(dg, "Launched last, newest first: %s. Profiling waits for each kernel and so names the one.", hn_str_get(&s));
    hn_str_done(&s);
}

static hone_status checked(hn_queue *q, int result, const char *doing, hn_diag *dg)
{
    if (result == 0) return HONE_OK;
    name_suspects(queue_of(q), dg);
    return hn_cuda_check(device_of(q), result, doing, dg);
}

/* ---- launches ---- */
static hone_status check_launch(const cuda_kernel *k, const hn_launch *l, hn_diag *dg)
{
    const char *name = l->name ? l->name : "";

    if (!k)
        return HN_RAISE(dg, HONE_E_FORMAT, "no kernel \"%s\" at offset %llu", name, (unsigned long long)l->entry);
    if (k->image.n_buf != l->n_buf || k->image.n_arg != l->n_arg || l->n_buf + l->n_arg > MAX_PARAMS)
        return HN_RAISE(dg, HONE_E_FORMAT, "kernel \"%s\" takes %u buffers and %u arguments, not %u and %u", name, k->image.n_buf,
                        k->image.n_arg, l->n_buf, l->n_arg);
    if (l->extent > INT32_MAX)
        return HN_RAISE(dg, HONE_E_LIMIT, "kernel \"%s\" would need %lld blocks", name, (long long)l->extent);
    return HONE_OK;
}

/* A kernel that waits by itself need not be held back until the one before it has ended; one that waits for several is. */
static int start(const cu_driver *c, const cuda_kernel *k, unsigned blocks, const cuda_queue *q, void **param)
{
    static const cu_launch_attribute early = { .id = CU_LAUNCH_PROGRAMMATIC_SERIALIZATION, .value.on = 1 };
    const uint32_t *t = k->image.threads;
    cu_stream *const s = q->stream;

    if (!(k->image.flags & HN_IMAGE_EARLY) || q->joins)
        return c->launch(k->fn, blocks, 1, 1, t[0], t[1], t[2], k->image.shared_bytes, s, param, NULL);
    const cu_launch l = { .grid = { blocks, 1, 1 }, .block = { t[0], t[1], t[2] }, .shared_bytes = k->image.shared_bytes, .stream = s,
                          .attribute = &early, .n_attribute = 1 };
    return c->launch_with(&l, k->fn, param, NULL);
}

hone_status hn_cuda_launch(hn_queue *hq, const hn_module *m, const hn_launch *l, hn_diag *dg)
{
    cuda_queue *q = queue_of(hq);
    const cu_driver *c = device_of(hq)->c;
    const cuda_kernel *k = hn_cuda_kernel_at((const cuda_module *)m, l->entry);
    void *param[MAX_PARAMS];

    HN_TRY(check_launch(k, l, dg));
    for (uint32_t i = 0; i < l->n_buf; i++)
        param[i] = (void *)(uintptr_t)&l->buf[i];
    for (uint32_t i = 0; i < l->n_arg; i++)
        param[l->n_buf + i] = (void *)(uintptr_t)&l->arg[i];
    remember(q, l->name);
    if (k->call) return hn_cuda_call_run(device_of(hq), k->call, l->buf, q->stream, dg);
    const int r = start(c, k, (unsigned)l->extent, q, param);
    return r == 0 ? HONE_OK : checked(hq, r, "launching a kernel", dg);
}

/* ---- copies ---- */
hone_status hn_cuda_copy(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg)
{
    if (bytes == 0) return HONE_OK;
    const cu_driver *c = device_of(q)->c;
    return checked(q, c->copy_within((uintptr_t)dst, (uintptr_t)src, bytes, queue_of(q)->stream), "copying", dg);
}

hone_status hn_cuda_read_later(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg)
{
    if (bytes == 0) return HONE_OK;
    const cu_driver *c = device_of(q)->c;
    return checked(q, c->copy_from(host, (uintptr_t)src, bytes, queue_of(q)->stream), "copying to the host", dg);
}

hone_status hn_cuda_read(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg)
{
    HN_TRY(hn_cuda_read_later(q, host, src, bytes, dg));
    return hn_cuda_sync(q, dg);
}

hone_status hn_cuda_write(hn_queue *q, void *dst, const void *host, size_t bytes, hn_diag *dg)
{
    if (bytes == 0) return HONE_OK;
    const cu_driver *c = device_of(q)->c;
    return checked(q, c->copy_to((uintptr_t)dst, host, bytes, queue_of(q)->stream), "copying from the host", dg);
}

hone_status hn_cuda_sync(hn_queue *hq, hn_diag *dg)
{
    cuda_queue *q = queue_of(hq);

    HN_TRY(checked(hq, device_of(hq)->c->stream_wait(q->stream), "running kernels", dg));
    q->recent.n = 0;
    return HONE_OK;
}

/* Only meaningful when nothing is under way, so wait; a fault shows at the caller's next call. */
int64_t hn_cuda_now_ns(hn_queue *q)
{
    hn_diag dg = { 0 };
    (void)hn_cuda_sync(q, &dg);
    return hn_now_ns();
}

/* ---- recordings ---- */
hone_status hn_cuda_record(hn_queue *q, hn_diag *dg)
{
    const cu_driver *c = device_of(q)->c;
    queue_of(q)->joins = false;
    return checked(q, c->capture_begin(queue_of(q)->stream, CU_CAPTURE_THREAD_LOCAL), "beginning a recording", dg);
}

/* The stream's place in its capture is the set of nodes that what comes next waits for: any graph is recorded on one stream. */
hone_status hn_cuda_mark(hn_queue *q, void **ret, hn_diag *dg)
{
    const cu_driver *c = device_of(q)->c;
    cu_graph_node *const *node = NULL;
    cu_graph_node *join = NULL;
    cu_graph *g = NULL;
    size_t n = 0;
    int state = 0;

    HN_TRY(checked(q, c->capture_info(queue_of(q)->stream, &state, NULL, &g, &node, &n), "reading a recording", dg));
    if (state != CU_CAPTURE_ACTIVE) return HN_RAISE(dg, HONE_E_DEVICE, "a recording ended before its time");
    if (n != 1) HN_TRY(checked(q, c->graph_join(&join, g, node, n), "joining branches of a recording", dg));
    *ret = n == 1 ? node[0] : join;
    return HONE_OK;
}

hone_status hn_cuda_after(hn_queue *q, void *const *mark, size_t n, hn_diag *dg)
{
    const cu_driver *c = device_of(q)->c;

    queue_of(q)->joins = n != 1;
    return checked(q, c->capture_update(queue_of(q)->stream, (cu_graph_node *const *)mark, n, CU_CAPTURE_SET_DEPENDENCIES),
                   "branching a recording", dg);
}

hone_status hn_cuda_record_end(hn_queue *q, hn_replay **ret, hn_diag *dg)
{
    cuda_device *d = device_of(q);
    hn_replay *r = calloc(1, sizeof(*r));
    cu_graph *g = NULL;

    *ret = NULL;
    queue_of(q)->joins = false;
    hone_status s = checked(q, d->c->capture_end(queue_of(q)->stream, &g), "ending a recording", dg);
    if (s == HONE_OK && !r) s = HN_NOMEM(dg);
    if (s == HONE_OK) s = checked(q, d->c->graph_instantiate(&r->exec, g, 0), "making a graph", dg);
    if (g) d->c->graph_destroy(g);
    if (s != HONE_OK) {
        free(r);
        return s;
    }
    r->recent = queue_of(q)->recent;
    *ret = r;
    return HONE_OK;
}

hone_status hn_cuda_replay(hn_queue *q, hn_replay *r, hn_diag *dg)
{
    queue_of(q)->recent = r->recent;
    return checked(q, device_of(q)->c->graph_launch(r->exec, queue_of(q)->stream), "starting a graph", dg);
}

void hn_cuda_replay_destroy(hn_device *hd, hn_replay *r)
{
    cuda_device *d = hn_cuda_of(hd);

    if (hn_cuda_enter(d, NULL) == HONE_OK) d->c->graph_exec_destroy(r->exec);
    free(r);
}
