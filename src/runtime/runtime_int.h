/* Engines and contexts from inside. */
#ifndef HN_RUNTIME_RUNTIME_INT_H
#define HN_RUNTIME_RUNTIME_INT_H

#include <stdatomic.h>

#include "memplan/memplan.h"
#include "runtime/runtime.h"
#include "runtime/streams.h"

/* Steps [first, end), outermost ones whole: recorded and repeated, or run each time. */
typedef struct hn_segment {
    uint32_t first, end;
    bool recorded;
} hn_segment;

struct hn_engine {
    atomic_int n_ref;
    hn_engine_file *file;
    void *data; /* bytes the file was opened over, or NULL */
    const hn_plan *plan;
    hn_device *device;
    hn_module *module;
    void **weight;  /* by buffer: where WEIGHT buffers lie on the device, else NULL */
    /* devices with memory of their own: */
    void *uploaded; /* weights that stay there, one block */
    size_t uploaded_bytes;
    uint8_t *waiting;     /* weights over the budget, in host memory that copies fast */
    uint64_t *waiting_at; /* by weight: offset there, UINT64_MAX for those that stay; NULL: all do */
    int64_t ring_bytes;   /* of each context, where such weights come ahead of their steps; 0: none do */
    struct hn_segment *segment; /* all steps, in order */
    uint32_t n_segment;
    bool *reg_late; /* by register: written while running */
    bool has_late;  /* some register is: each run starts from a copy */
    uint32_t
        *carried; /* ARENA pairs (in, out) of all loops, n_carried of them, for the check of equal sizes */
    uint32_t n_carried;
};

/* Where a buffer is now. */
typedef struct hn_buf_state {
    uint8_t *ptr;  /* NULL while it has no bytes */
    int64_t bytes; /* its size now; PART: unused */
    void *own;     /* memory of the context: HEAP, and outputs that are not bound */
    int64_t own_bytes;
} hn_buf_state;

typedef struct hn_io_state {
    bool has_shape; /* inputs */
    int64_t dim[HN_PLAN_MAX_RANK];
    void *bound;
    int64_t capacity;
    bool remote;   /* the kernels cannot use `bound`, or nothing is bound, and copies go between */
    const void *sent; /* where on the device the bound input lies, of which nothing changed since; NULL: nowhere */
    void *staging; /* devices with memory of their own: host memory that copies fast */
    int64_t staging_bytes;
} hn_io_state;

/* Where weights pass through, block by block, each where the one before ended or at the start again. */
typedef struct hn_ring {
    uint8_t *at;
    int64_t next;
    int64_t *place; /* by weight: where its bytes are, -1: they are not */
} hn_ring;

/* A recording that spreads over streams, while it is made. */
typedef struct hn_branching {
    hn_streams streams;
    HN_VEC(void *) mark; /* by step of the streams */
} hn_branching;

struct hn_context {
    hn_engine *engine;
    const hn_plan *plan;
    hn_queue *queue;
    int profile;
    int64_t ceiling; /* INT64_MAX: none */
    bool prepared, ran, poison, without_transfers;
    atomic_bool cancelled;
    int64_t *reg;  /* now */
    int64_t *reg0; /* as the prefix left them */
    hn_io_state *io;
    hn_buf_state *buf;
    uint8_t *arena;
    int64_t arena_room; /* allocated */
    int64_t arena_bytes, arena_bound;
    int64_t heap_bytes, output_bytes, scratch_bytes;
    hn_mp_item *item; /* dynamic plans: one per ARENA buffer, in buffer order */
    void *item_work;
    int n_item;
    uint8_t *fault;      /* on the device: records of all FAULT buffers, in buffer order */
    int64_t *fault_host; /* what was read of them; the same memory where the device's is the host's */
    int64_t fault_bytes;
    hn_replay **replay;  /* by segment, NULL until one is recorded; for these addresses: */
    void **replay_at;    /* by I/O entry */
    hn_ring ring;
    hn_branching *branching; /* NULL: what runs, or is recorded, runs in order */
    bool profiling;
    hn_step_time *time; /* by step; NULL until profiling was asked for */
    void *arg_buf[HN_PLAN_MAX_ARGS];
    int64_t arg_reg[HN_PLAN_MAX_ARGS];
};

/** Run n instructions from `first`. Errors: HONE_E_SHAPE. */
hone_status hn_shape_run(hn_context *c, uint32_t first, uint32_t n, hn_diag *dg);
/** Make own memory of a HEAP or GROWS buffer hold `bytes`, keeping the first `keep`; grows by half when it
 * keeps any. */
hone_status hn_heap_resize(hn_context *c, uint32_t buf, int64_t bytes, int64_t keep, hn_diag *dg);
/** Memory for outputs whose size is known and that are not bound; checks sizes of bound ones. */
hone_status hn_outputs_ready(hn_context *c, hn_diag *dg);
/** Hint why, if anything, and the extents that can be given, with their present values; dg may be NULL. */
void hn_hint_sizes(const hn_context *c, const char *why, hn_diag *dg);
/** HONE_E_SHAPE: a tensor would have a negative size; the hint names the extents that can be given. */
hone_status hn_negative_size(const hn_context *c, uint32_t buf, int64_t bytes, hn_diag *dg);
/** Inputs to where kernels find them; checks that they are bound and large enough. */
hone_status hn_inputs_ready(hn_context *c, hn_diag *dg);
/** Outputs to where the caller finds them; waits for the device. Errors: as hn_faults_check. */
hone_status hn_outputs_fetch(hn_context *c, hn_diag *dg);
/** Memory for what kernels tell of indices out of range. Errors: HONE_E_NOMEM, HONE_E_DEVICE. */
hone_status hn_faults_create(hn_context *c, hn_diag *dg);
void hn_faults_destroy(hn_context *c);
/** Queue reading what the run's kernels told. */
hone_status hn_faults_fetch(hn_context *c, hn_diag *dg);
/** After the queue was waited for. Errors: HONE_E_MODEL an index was out of range; says which, and where. */
hone_status hn_faults_check(hn_context *c, hn_diag *dg);
/** After a run that failed otherwise: the index that may have led there, as a frame. */
void hn_faults_explain(hn_context *c, hn_diag *dg);
/** Weights to where kernels find them; those over `budget` bytes, where it is not 0, to memory of the host's. Errors: HONE_E_LIMIT. */
hone_status hn_weights_place(hn_engine *e, int64_t budget, hn_diag *dg);
void hn_weights_drop(hn_engine *e);
bool hn_weight_waits(const hn_engine *e, uint32_t weight);
/** Bytes that a weight takes on a device, with what kernels may read behind it. */
int64_t hn_weight_room(const hn_plan *p, uint32_t weight);
/** Memory for a context's ring; nothing where all weights stay. */
hone_status hn_ring_create(hn_context *c, hn_diag *dg);
void hn_ring_destroy(hn_context *c);
/** A segment, or a recording of one, begins: nothing is in the ring. */
void hn_ring_reset(hn_context *c);
/** Queue what brings the weights that step s reads, and point its buffers there. Call before the step. */
hone_status hn_ring_fetch(hn_context *c, const hn_step *s, hn_diag *dg);
/** Buffers that a KERNEL or COPY step reads, parts as their wholes: entry k, HN_NO after the last. */
uint32_t hn_step_reads(const hn_plan *p, const hn_step *s, uint32_t k);
/** Steps of an IF's or LOOP's blocks, which follow it. */
uint32_t hn_steps_inside(const hn_step *s);
/** Which steps are recorded. Errors: HONE_E_NOMEM. */
hone_status hn_segments_find(hn_engine *e, hn_diag *dg);
/** Forget recordings that hold for other places of inputs and outputs than now. */
void hn_recordings_check(hn_context *c);
void hn_recordings_drop(hn_context *c);
/** Record steps of segment k if there is no recording, and queue it. Errors: the device's; those of steps. */
hone_status hn_segment_replay(hn_context *c, uint32_t k, hn_diag *dg);
/** Around what one step queues, after hn_streams_touch for what it touches; nothing unless branches are being recorded. apart: as
 * hn_streams_add. */
hone_status hn_branch_begin(hn_context *c, bool apart, hn_diag *dg);
hone_status hn_branch_end(hn_context *c, hn_diag *dg);
/** Steps of segment k as they come, queued or recorded. */
hone_status hn_segment_run(hn_context *c, uint32_t k, hn_diag *dg);
/** An encoded image of n bytes, where kernels find it, and the place of its size (i64[2]) or, to decode, of its pixels. */
typedef struct hn_image_job {
    bool decode;
    uint32_t order; /* hn_image_order */
    uint8_t *src, *dst;
    int64_t n, h, w;
} hn_image_job;
int64_t hn_image_job_bytes(const hn_image_job *j); /* at dst */
/** Errors: as hn_image_size and hn_image_decode; HONE_E_NOMEM. */
hone_status hn_image_run(hn_context *c, const hn_image_job *j, hn_diag *dg);
/** Say in which step an error arose. */
void hn_step_frame(const hn_context *c, uint32_t step, hn_diag *dg);
/** Name of buffer's tensor for messages. */
const char *hn_buf_name(const hn_context *c, uint32_t buf);

#endif
