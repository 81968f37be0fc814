/* Inside src/dev/cuda: the device, its queues and modules. */
#ifndef HN_DEV_CUDA_INT_H
#define HN_DEV_CUDA_INT_H

#include <stdatomic.h>

#include "core/image.h"
#include "dev/cuda/driver.h"
#include "dev/dev_int.h"

typedef struct cuda_device {
    hn_device d;
    const cu_driver *c;
    cu_context *context; /* the primary one, shared with whoever else uses CUDA in this process; never released */
    int ordinal, version, major, minor, n_multiprocessor;
    int64_t memory_bytes, l2_bytes, shared_bytes;
    char name[64];
    atomic_int dead; /* the CUresult that killed the context; 0: alive */
} cuda_device;

struct cuda_call;

typedef struct cuda_kernel {
    uint64_t entry; /* offset of its image in the code section */
    struct cuda_call *call; /* of a library: no module */
    cu_module *module;
    cu_function *fn;
    hn_image image;
} cuda_kernel;

/** A code section's kernels by rising entry. */
typedef struct cuda_module {
    cuda_kernel *kernel;
    size_t n;
} cuda_module;

enum { HN_CUDA_RECENT = 8 };

/* Names of the kernels launched last, a ring. */
typedef struct cuda_recent {
    const char *name[HN_CUDA_RECENT];
    unsigned n;
} cuda_recent;

typedef struct cuda_queue {
    struct hn_queue q;
    cu_stream *stream;
    cuda_recent recent; /* since the last wait */
    bool joins; /* while recording: what comes next waits for several, or for none */
} cuda_queue;

struct hn_replay {
    cu_graph_exec *exec;
    cuda_recent recent; /* the last that it holds */
};

static inline cuda_device *hn_cuda_of(hn_device *d)
{
    return (cuda_device *)d;
}

/** Make the context current for this thread. HONE_E_DEVICE once it died. */
hone_status hn_cuda_enter(cuda_device *d, hn_diag *dg);
/** HONE_OK for 0; else raise what failed, and remember if the context is gone. */
hone_status hn_cuda_check(cuda_device *d, int result, const char *doing, hn_diag *dg);

hone_status hn_cuda_load_code(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg);
void hn_cuda_unload(hn_device *d, hn_module *m);
/** NULL when no kernel begins there. */
const cuda_kernel *hn_cuda_kernel_at(const cuda_module *m, uint64_t entry);

int hn_cuda_clock_mhz(hn_device *d); /* nvml.c */

/* queue.c, the vtable's slots */
hone_status hn_cuda_queue_create(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg);
void hn_cuda_queue_destroy(hn_device *d, hn_queue *q);
hone_status hn_cuda_queue_reserve(hn_queue *q, size_t bytes, hn_diag *dg);
void hn_cuda_begin(hn_queue *q);
void hn_cuda_end(hn_queue *q);
hone_status hn_cuda_launch(hn_queue *q, const hn_module *m, const hn_launch *l, hn_diag *dg);
hone_status hn_cuda_copy(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg);
hone_status hn_cuda_read(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
hone_status hn_cuda_read_later(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
hone_status hn_cuda_write(hn_queue *q, void *dst, const void *host, size_t bytes, hn_diag *dg);
hone_status hn_cuda_sync(hn_queue *q, hn_diag *dg);
int64_t hn_cuda_now_ns(hn_queue *q);
hone_status hn_cuda_record(hn_queue *q, hn_diag *dg);
hone_status hn_cuda_record_end(hn_queue *q, hn_replay **ret, hn_diag *dg);
hone_status hn_cuda_replay(hn_queue *q, hn_replay *r, hn_diag *dg);
void hn_cuda_replay_destroy(hn_device *d, hn_replay *r);
hone_status hn_cuda_mark(hn_queue *q, void **ret, hn_diag *dg);
hone_status hn_cuda_after(hn_queue *q, void *const *mark, size_t n, hn_diag *dg);

#endif
