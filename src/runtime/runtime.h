/*
 * Running engines. An engine is shared and counted; a context is one caller's: shapes, bindings, activations,
 * queue.
 *
 *     HN_TRY(hn_engine_open("m.hone", NULL, &e, dg));
 *     HN_TRY(hn_context_create(e, NULL, &c, dg));
 *     hn_context_set_input_shape(c, 0, 2, (int64_t[]){ 8, 64 }, dg);
 *     hn_context_bind(c, 0, x, sizeof(x), dg);
 *     hn_context_run(c, dg);                       outputs that were not bound: hn_context_output_data
 */
#ifndef HN_RUNTIME_RUNTIME_H
#define HN_RUNTIME_RUNTIME_H

#include "dev/dev.h"
#include "engine/engine.h"

typedef struct hn_engine hn_engine;
typedef struct hn_context hn_context;

/* ---- engines ---- */
typedef struct hn_engine_opts {
    hn_device *device;  /* NULL: the one that the engine was built for */
    bool trust_weights; /* as hn_engine_read_opts */
    int64_t weight_budget; /* devices with memory of their own: bytes of it for weights and one context's ring; weights over it wait with
                              the host and come ahead of their steps. 0: all of them are there */
    bool inspect;       /* read alone, whatever machine it is for: no device is asked, and it has no contexts */
    const char *store_dir;
    const hn_kernel_fn *fn; /* tests: kernels are fn[kernel.entry] instead of the code section */
    size_t n_fn;
} hn_engine_opts;

/**
 * Open an engine file and load its code.
 *
 * Owns:   *ret holds one reference
 * Errors: as hn_engine_file_open; HONE_E_TARGET the machine lacks features the code needs;
 *         HONE_E_LIMIT weights do not fit the budget
 */
hone_status hn_engine_open(const char *path, const hn_engine_opts *o, hn_engine **ret, hn_diag *dg);
/** As hn_engine_open over an opened file, closed with the engine's last reference. */
hone_status hn_engine_from_file(hn_engine_file *take_file, const hn_engine_opts *o, hn_engine **ret,
                                hn_diag *dg);
/** As hn_engine_open over bytes in memory (hn_engine_writer_finish_memory), freed with the engine's last
 * reference. */
hone_status hn_engine_from_memory(void *take_data, size_t n, const hn_engine_opts *o, hn_engine **ret,
                                  hn_diag *dg);
hn_engine *hn_engine_ref(hn_engine *e);
void hn_engine_unref(hn_engine *e); /* NULL is fine. Thread: any */
const hn_engine_file *hn_engine_get_file(const hn_engine *e);
const hn_plan *hn_engine_get_plan(const hn_engine *e);
hn_device *hn_engine_get_device(const hn_engine *e);

/** Index of an input or output by name; -1 when there is none. I/O entries are plan.io, inputs first. */
int hn_engine_find_io(const hn_engine *e, const char *name);

/* ---- contexts ---- */
typedef struct hn_context_opts {
    int max_threads; /* 0: the device's default (cgroup and affinity respected) */
    int profile;     /* which profile bounds the shapes; -1: any one that fits. Default 0 is the first */
    bool poison;     /* debug: arena buffers read as NaN before their first and after their last step */
    int64_t memory_ceiling; /* bytes of arena, heap and outputs of the context's own together; 0: none */
} hn_context_opts;

/**
 * One caller's state. Holds a reference to the engine. Inputs whose dims are constants have their shapes
 * already; others start at the profile's optimum if there is a profile.
 *
 * Thread: one thread at a time; contexts of one engine are independent and may be made and dropped while
 *         others run
 * Errors: HONE_E_NOMEM; HONE_E_LIMIT the ceiling is too low, naming the largest tensor;
 *         HONE_E_INVALID no such profile
 */
hone_status hn_context_create(hn_engine *e, const hn_context_opts *o, hn_context **ret, hn_diag *dg);
void hn_context_destroy(hn_context *c);
hn_engine *hn_context_engine(const hn_context *c);

/**
 * State an input's shape; takes effect at hn_context_prepare or the next run.
 *
 * Errors: HONE_E_SHAPE wrong rank, fixed extent, negative, or outside the profile: names input, axis, bounds
 */
hone_status hn_context_set_input_shape(hn_context *c, int io, int rank, const int64_t *dim, hn_diag *dg);
/**
 * Compute all sizes and place memory for the shapes as set; no-op when nothing changed. hn_context_run does
 * it when needed, so call this where allocation is welcome.
 *
 * Errors: HONE_E_SHAPE an input has no shape, inputs disagree, or sizes overflow; HONE_E_LIMIT names the
 *         tensor responsible; HONE_E_NOMEM
 */
hone_status hn_context_prepare(hn_context *c, hn_diag *dg);
/**
 * Give inputs that have no shape one that works, and prepare: extents that other inputs fix are kept, the rest are the least of
 * some usual ones that leave every tensor a size.
 *
 * Errors: as hn_context_prepare; HONE_E_SHAPE none of them works
 */
hone_status hn_context_choose_shapes(hn_context *c, hn_diag *dg);
/**
 * Shape of an input or output. Outputs: after prepare; those whose size is known only while running, after
 * run.
 *
 * Errors: HONE_E_INVALID when it is not known yet
 */
hone_status hn_context_shape(const hn_context *c, int io, int *ret_rank, int64_t *ret_dim, hn_diag *dg);
/** Bytes of an input or output at its present shape; -1 when not known yet. */
int64_t hn_context_io_bytes(const hn_context *c, int io);

/**
 * Use caller memory for an input or output; NULL unbinds. Outputs left unbound are the context's own.
 *
 * One memory may serve an input and an output (a cache updated in place) when the engine was built for it. An engine on a
 * device with memory of its own takes that device's memory as it is, and copies to and from the host's.
 * Owns:   the caller keeps it and must keep it alive until it is unbound or the context is destroyed
 * Errors: HONE_E_INVALID no such entry. Too small a buffer shows when running: HONE_E_INVALID with both sizes
 */
hone_status hn_context_bind(hn_context *c, int io, void *data, size_t capacity_bytes, hn_diag *dg);
/** Bytes of an output after run, bound or not, in the host's memory unless the device's was bound; NULL before the first run or while unknown. */
void *hn_context_output_data(const hn_context *c, int io);

/**
 * Run one inference; done on return.
 *
 * Errors: HONE_E_UNBOUND an input has no buffer; as hn_context_prepare; HONE_E_SHAPE a check failed while
 *         running; HONE_E_LIMIT the heap would pass the ceiling; HONE_E_DEVICE
 * Cost:   no allocation and no process-wide lock once prepared, except the heap of data-dependent steps while
 *         it grows
 */
hone_status hn_context_run(hn_context *c, hn_diag *dg);
/** Ask a run in progress to end at the next step with HONE_E_CANCELLED. Thread: any. The flag is cleared when
 * a run starts. */
void hn_context_cancel(hn_context *c);

/* ---- measurement ---- */
/**
 * Off: on a device with memory of its own an input that was sent since it was bound is not sent again, and no output is brought
 * back, so that a run takes what the engine alone takes. Outputs in host memory are undefined until a run with transfers on.
 */
void hn_context_set_transfers(hn_context *c, bool on);
/** Time every step: two clock reads a step, so the total is a little longer. Counters restart at zero. */
hone_status hn_context_set_profiling(hn_context *c, bool on, hn_diag *dg);
typedef struct hn_step_time {
    uint32_t step; /* index in plan.step */
    int64_t n_run; /* times it ran since profiling was switched on */
    int64_t sum_ns, min_ns;
    int threads; /* of its last run */
} hn_step_time;
/** Number of steps timed; entry i is step i (IF and LOOP include what they ran). */
int hn_context_n_step_time(const hn_context *c);
hn_step_time hn_context_step_time(const hn_context *c, int i);

typedef struct hn_context_memory {
    int64_t arena_bytes;
    int64_t arena_bound_bytes; /* lower bound of the arena: the largest total of tensors live at once */
    int64_t heap_bytes;        /* retained by data-dependent steps */
    int64_t output_bytes;      /* outputs the context owns */
    int64_t scratch_bytes;     /* all threads */
} hn_context_memory;
hn_context_memory hn_context_get_memory(const hn_context *c);

#endif
