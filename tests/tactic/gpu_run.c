#include "gpu_run.h"

#include <stdlib.h>
#include <string.h>

#include "codegen/codegen.h"
#include "dev/dev.h"
#include "harness.h"

enum { MAX_BUF = 24 };

bool gpu_is_wanted(void)
{
    const char *target = getenv("HONE_TEST_TARGET");
    return target && strncmp(target, "sm_", 3) == 0;
}

/* The process's own: a case is a process. */
static hn_compile_pool *pool_of_this_case(void)
{
    static hn_compile_pool *pool;
    hn_diag dg = { 0 };
    if (!pool)
        CHECK_OK(hn_compile_pool_create(&(hn_compile_options){ .n_worker = 1, .cache.dir = getenv("HONE_CACHE_DIR") }, &pool, &dg), &dg);
    return pool;
}

typedef struct buffers {
    void *at[MAX_BUF];
    const void *host[MAX_BUF];
    size_t bytes[MAX_BUF];
    int n;
} buffers;

/* Parameters that name the same memory share it on the device as well. */
static void *put(hn_queue *q, buffers *b, hn_kmem mem, size_t tail)
{
    hn_diag dg = { 0 };
    for (int i = 0; i < b->n; i++)
        if (b->host[i] == mem.at) return b->at[i];
    CHECK(b->n < MAX_BUF);
    const int i = b->n++;
    b->host[i] = mem.at;
    b->bytes[i] = (size_t)mem.bytes;
    CHECK_OK(hn_device_alloc(hn_queue_device(q), b->bytes[i] + tail, 256, &b->at[i], &dg), &dg);
    CHECK_OK(hn_queue_write(q, b->at[i], mem.at, b->bytes[i], &dg), &dg);
    return b->at[i];
}

static void take_back(hn_queue *q, buffers *b, const hn_kmem *mem, int n)
{
    hn_diag dg = { 0 };
    for (int i = 0; i < n; i++)
        for (int k = 0; k < b->n; k++)
            if (b->host[k] == mem[i].at && b->at[k]) CHECK_OK(hn_queue_read(q, mem[i].at, b->at[k], b->bytes[k], &dg), &dg);
    for (int k = 0; k < b->n; k++) hn_device_free(hn_queue_device(q), b->at[k], b->bytes[k]);
}

void gpu_call(const hn_kfunc *f, const hn_target *t, const hn_kmem *mem, const int64_t *arg)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    hn_device *d;
    hn_queue *q;
    hn_module *m;
    hn_code code;
    buffers b = { .n = 0 };
    void *buf[MAX_BUF];
    const int n = hn_kfunc_n_params(f);

    CHECK_OK(hn_compile(pool_of_this_case(), f, t, a, &code, &dg), &dg);
    CHECK_OK(hn_device_cuda(&d, &dg), &dg);
    CHECK_OK(hn_queue_create(d, &(hn_queue_opts){ 0 }, &q, &dg), &dg);
    CHECK_OK(hn_device_load_code(d, code.at, code.n, &m, &dg), &dg);
    for (int i = 0; i < n; i++) buf[i] = put(q, &b, mem[i], (size_t)f->buf[i].tail_bytes);
    const hn_launch l = { .name = f->name, .entry = code.entry, .buf = buf, .n_buf = (uint32_t)n, .arg = arg, .n_arg = (uint32_t)f->n_arg,
                          .extent = hn_kfunc_blocks(f, arg), .grain = 1 };
    if (l.extent > 0) CHECK_OK(hn_queue_launch(q, m, &l, &dg), &dg);
    CHECK_OK(hn_queue_sync(q, &dg), &dg);
    take_back(q, &b, mem, n);
    hn_device_unload(d, m);
    hn_queue_destroy(q);
    hn_arena_destroy(a);
}
