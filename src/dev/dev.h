/* Devices: memory, code, queues, launches, time. One vtable; cpu, cuda and null. */
#ifndef HN_DEV_DEV_H
#define HN_DEV_DEV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/str.h"
#include "core/libcall.h"
#include "core/target.h"

/**
 * Every CPU kernel: runs trips [lo, hi) of its outermost parallel loop (a kernel without one is called once
 * with [0, 1)). buf and arg are in the order the kernel declared; scratch is this thread's own, 64-byte
 * aligned, NULL when none is needed. Slices may run at once on different threads in any order. Same as
 * src/kir/kir.h states.
 */
typedef void (*hn_kernel_fn)(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch);

typedef struct hn_device hn_device;
typedef struct hn_module hn_module; /* loaded code */
/** Where one context's work goes: a stream, or the caller with leased workers. */
typedef struct hn_queue hn_queue;
/** A recorded run that the device repeats by itself: a CUDA graph. */
typedef struct hn_replay hn_replay;

/** One kernel call. Everything is borrowed for the call alone. */
typedef struct hn_launch {
    const char *name; /* for messages about faults, which come later on some devices; outlives the queue's next sync */
    uint64_t entry;   /* offset in the module's code, or index in its function table */
    void *const *buf;
    const int64_t *arg;
    uint32_t n_buf, n_arg;
    int64_t extent;        /* trips of the parallel loop, or blocks, > 0 */
    int64_t grain;         /* >= 1; slices are multiples of it except the last */
    int64_t trip_ps;       /* estimate of one trip on one core; 0: unknown, split evenly */
    int64_t scratch_bytes; /* a thread; at most what hn_device_queue_reserve was told */
    int max_threads;       /* 0: no limit */
} hn_launch;

typedef struct hn_queue_opts {
    int max_threads; /* CPU: threads of one run, the caller included; 0: the device's default */
} hn_queue_opts;

typedef struct hn_device_vt {
    const char *name; /* "cpu" */
    bool host_memory; /* pointers may be read by the host */
    bool executes;    /* false: kernels are counted, not run (null) */
    hone_status (*check_target)(hn_device *d, const hn_target *t, hn_diag *dg);
    hone_status (*alloc)(hn_device *d, size_t bytes, size_t align, void **ret, hn_diag *dg);
    void (*free)(hn_device *d, void *p, size_t bytes);
    hone_status (*load_code)(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg);
    void (*unload)(hn_device *d, hn_module *m);
    hone_status (*queue_create)(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg);
    void (*queue_destroy)(hn_device *d, hn_queue *q);
    hone_status (*queue_reserve)(hn_queue *q, size_t scratch_bytes, hn_diag *dg);
    void (*begin)(hn_queue *q);
    void (*end)(hn_queue *q);
    hone_status (*launch)(hn_queue *q, const hn_module *m, const hn_launch *l, hn_diag *dg);
    hone_status (*copy)(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg);
    hone_status (*read)(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
    hone_status (*write)(hn_queue *q, void *dst, const void *host, size_t bytes, hn_diag *dg);
    hone_status (*read_later)(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
    hone_status (*sync)(hn_queue *q, hn_diag *dg);
    int64_t (*now_ns)(hn_queue *q);
    /* Devices with memory of their own; NULL where host_memory. */
    bool (*owns)(hn_device *d, const void *p);
    hone_status (*host_alloc)(hn_device *d, size_t bytes, void **ret, hn_diag *dg);
    void (*host_free)(hn_device *d, void *p);
    /* Recording; NULL: the device has none. */
    hone_status (*record)(hn_queue *q, hn_diag *dg);
    hone_status (*record_end)(hn_queue *q, hn_replay **ret, hn_diag *dg);
    hone_status (*replay)(hn_queue *q, hn_replay *r, hn_diag *dg);
    void (*replay_destroy)(hn_device *d, hn_replay *r);
    hone_status (*mark)(hn_queue *q, void **ret, hn_diag *dg);
    hone_status (*after)(hn_queue *q, void *const *mark, size_t n, hn_diag *dg);
    /* Libraries; NULL: the device has none. */
    hone_status (*library)(hn_device *d, hn_library which, hn_str *ret_version, hn_diag *dg);
    hone_status (*choose_call)(hn_device *d, hn_libcall *c, hn_str *ret_plan, hn_diag *dg);
    int (*clock_mhz)(hn_device *d); /* NULL: unknown */
} hn_device_vt;

struct hn_device {
    const hn_device_vt *vt; /* first member of every device's own struct */
};

/** Process-wide, never destroyed. */
hn_device *hn_device_cpu(void);
hn_device *hn_device_null(void);
/**
 * The first NVIDIA GPU that the driver shows (CUDA_VISIBLE_DEVICES chooses), opened when first asked for.
 *
 * Errors: HONE_E_NOTFOUND no driver, or it shows no GPU; HONE_E_VERSION the driver is too old; HONE_E_DEVICE it fails, or an
 *         earlier fault killed this process's context
 */
hone_status hn_device_cuda(hn_device **ret, hn_diag *dg);
/** What hn_device_cuda found, for people: "NVIDIA H200, compute capability 9.0, 132 multiprocessors, ..., driver 13.0". */
void hn_device_cuda_print(const hn_device *d, hn_str *out);
/** The device that runs code of this architecture. */
hone_status hn_device_for(hn_arch arch, hn_device **ret, hn_diag *dg);
/** By name; HONE_E_NOTFOUND lists the known ones. */
hone_status hn_device_get(const char *name, hn_device **ret, hn_diag *dg);

/* Thin calls through the vtable; the docstrings are the contract of each slot. */

/** Can code for t run here? HONE_E_TARGET names what is missing. */
hone_status hn_device_check_target(hn_device *d, const hn_target *t, hn_diag *dg);
/** Uninitialised memory; align is a power of two up to 4096 (a GPU's is 256 at least, and no more is held to). bytes 0 yields a valid pointer. HONE_E_NOMEM
 * says how much. */
hone_status hn_device_alloc(hn_device *d, size_t bytes, size_t align, void **ret, hn_diag *dg);
void hn_device_free(hn_device *d, void *p, size_t bytes); /* NULL is fine; bytes as allocated */
/** Copy position-independent code into fresh pages, then make them read-execute. The module holds no
 * reference to `code`. */
hone_status hn_device_load_code(hn_device *d, const void *code, size_t bytes, hn_module **ret, hn_diag *dg);
/** A module over functions of this process (cpu and null only): entry is an index. The table must outlive the
 * module. */
hone_status hn_device_load_functions(hn_device *d, const hn_kernel_fn *fn, size_t n, hn_module **ret,
                                     hn_diag *dg);
void hn_device_unload(hn_device *d, hn_module *m); /* NULL is fine */

/** One context's queue. Thread: one thread at a time. */
hone_status hn_queue_create(hn_device *d, const hn_queue_opts *o, hn_queue **ret, hn_diag *dg);
void hn_queue_destroy(hn_queue *q); /* NULL is fine */
/** Make sure each thread has this much scratch; allocates, so before a run. */
hone_status hn_queue_reserve(hn_queue *q, size_t scratch_bytes, hn_diag *dg);
/** Bracket of a run. CPU: sets the float environment (round to nearest, denormals kept); the first launch
 * that pays for more than one thread leases idle workers of the process pool, never waiting for any; both are
 * undone at the end. No allocation, no lock. */
void hn_queue_begin(hn_queue *q);
void hn_queue_end(hn_queue *q);
/** Between begin and end. CPU: done on return. Results do not depend on how many workers took part. */
hone_status hn_queue_launch(hn_queue *q, const hn_module *m, const hn_launch *l, hn_diag *dg);
/** dst and src on the device, not overlapping. */
hone_status hn_queue_copy(hn_queue *q, void *dst, const void *src, size_t bytes, hn_diag *dg);
/** Device to host, and wait for it; host to device, where `host` may be reused on return unless it came from
 * hn_device_host_alloc: then the copy is under way until the next sync. */
hone_status hn_queue_read(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
hone_status hn_queue_write(hn_queue *q, void *dst, const void *host, size_t bytes, hn_diag *dg);
/** As hn_queue_read into memory of hn_device_host_alloc, without waiting. */
hone_status hn_queue_read_later(hn_queue *q, void *host, const void *src, size_t bytes, hn_diag *dg);
hone_status hn_queue_sync(hn_queue *q, hn_diag *dg);

/** Does a pointer name this device's memory, rather than the host's? Always where they are one. */
bool hn_device_owns(hn_device *d, const void *p);
/** Host memory that the device copies from and to at full speed. */
hone_status hn_device_host_alloc(hn_device *d, size_t bytes, void **ret, hn_diag *dg);
void hn_device_host_free(hn_device *d, void *p); /* NULL is fine */

/** Can the device record runs? */
bool hn_device_records(const hn_device *d);
/** From here to the end launches and copies are taken down, not run. Between begin and end. */
hone_status hn_queue_record(hn_queue *q, hn_diag *dg);
/** While recording: a name for what was taken down last, until the recording ends. */
hone_status hn_queue_mark(hn_queue *q, void **ret, hn_diag *dg);
/** While recording: what is taken down next waits for these n marks alone, rather than for what was taken down last. */
hone_status hn_queue_after(hn_queue *q, void *const *mark, size_t n, hn_diag *dg);
/** The recording, complete after errors too: *ret is NULL then. */
hone_status hn_queue_record_end(hn_queue *q, hn_replay **ret, hn_diag *dg);
hone_status hn_queue_replay(hn_queue *q, hn_replay *r, hn_diag *dg);
void hn_device_replay_destroy(hn_device *d, hn_replay *r); /* NULL is fine */

/**
 * Is a vendor's library here? Opened when first asked for. ret_version may be NULL: "cuBLASLt 13.1.0" is added.
 *
 * Errors: HONE_E_NOTFOUND, HONE_E_VERSION too old, HONE_E_UNSUPPORTED the device has no libraries
 */
hone_status hn_device_library(hn_device *d, hn_library which, hn_str *ret_version, hn_diag *dg);
/**
 * Fill in the algorithm that the library proposes at place c->rank.
 *
 * ret_plan: what it compiled for that is added, which the call's image holds behind the call, so that loading compiles nothing
 *
 * Errors: HONE_E_UNSUPPORTED it proposes fewer, or cannot do this
 */
hone_status hn_device_choose_call(hn_device *d, hn_libcall *c, hn_str *ret_plan, hn_diag *dg);

/** What its processors are clocked at just now; 0: not known here. Any thread; a GPU takes some microseconds to tell. */
int hn_device_clock_mhz(hn_device *d);

int64_t hn_queue_now_ns(hn_queue *q); /* monotonic */
hn_device *hn_queue_device(const hn_queue *q);
/** Threads the running lease has, the caller included; 1 outside begin and end. */
int hn_queue_threads(const hn_queue *q);

/**
 * How a launch is cut: number of slices and trips in each (the last may be shorter) for up to n_threads. One
 * slice below the cost of a fork; an even split for short work; about 4 slices a thread, handed out by an
 * atomic counter, above 100 us.
 */
void hn_launch_split(const hn_launch *l, int n_threads, int64_t *ret_slices, int64_t *ret_trips);

#endif
