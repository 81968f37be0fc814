/* A heat: candidates of one region timed against each other, described flatly so that any process can run it. On the CPU it is run
 * where it is asked for; on a GPU in a worker process, because a kernel that faults or hangs takes its whole process along. */
#ifndef HN_BUILD_HEAT_H
#define HN_BUILD_HEAT_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/os.h"
#include "dev/dev.h"

typedef struct hn_heat_call {
    const void *code;
    size_t n_code;
    hn_launch l;       /* without buf and name */
    const int64_t *at; /* where its buffers lie: bytes from the start of a set of operands, l.n_buf of them */
} hn_heat_call;

typedef struct hn_heat_lane {
    const char *name; /* of the candidate, for messages about faults */
    int64_t constant_at; /* constants lie from here to the end of a set of operands */
    hn_heat_call *call;
    int n_call;
    double ns;   /* out: median of a run; 0 where it failed */
    hn_diag why; /* out: why it is out */
} hn_heat_lane;

enum { HN_HEAT_GPU_REV = 2 }; /* reaches the timing cache's keys: bump it when heats on GPUs come to say other times */

/** Where operands lie when a lane runs. */
typedef enum hn_heat_memory { /* numbers reach the timing cache's keys */
    HN_HEAT_ROTATING = 0, /* each run on another set, of eight at most */
    HN_HEAT_COLD = 1,     /* constants as in ROTATING, but nothing of them is in a cache; others where they were in the last run */
    HN_HEAT_WARM = 2,     /* all where they were in the last run */
} hn_heat_memory;

/** Bytes that every set of operands holds while the heat runs: indices. */
typedef struct hn_heat_put {
    int64_t at;
    const void *data;
    int64_t bytes;
} hn_heat_put;

typedef struct hn_heat {
    hn_arch arch;
    int n_core;
    hn_heat_memory memory;
    int64_t set_bytes; /* of one set of operands */
    hn_heat_lane *lane;
    int n_lane;
    hn_heat_put *put;
    int n_put;
} hn_heat;

/* ---- in this process ---- */
typedef struct hn_heater hn_heater;
/**
 * What a GPU's operands hold: numbers of both signs, finite as any float type, and normal as those of 16 bits and more.
 *
 * A GPU short of power slows down by what toggles: NaN and infinities, which are never anything else again, were summed a quarter
 * faster than numbers in six of GPT-2's layers at batch 32. n: a multiple of 8.
 */
void hn_heat_fill(uint8_t *p, size_t n);
hone_status hn_heater_create(hn_arch arch, int n_core, hn_heater **ret, hn_diag *dg);
void hn_heater_destroy(hn_heater *m); /* NULL is fine */
/**
 * Time every lane that is not out yet: interleaved, on operands that were not just touched, the median of a few rounds.
 *
 * A lane that the device refuses is out. tell(user, lane) comes before anything of a lane is loaded or run; NULL: nobody listens.
 *
 * Errors: HONE_E_DEVICE the device is of no use any more: the lane told of last is at fault
 */
hone_status hn_heat_run(hn_heater *m, hn_heat *h, void (*tell)(void *user, int lane), void *user, hn_diag *dg);

/* ---- in a worker process ---- */
typedef struct hn_heat_worker hn_heat_worker;
/** timeout_ns: of one run of a candidate; 0: 30 s. Starts nothing yet. */
hone_status hn_heat_worker_create(const char *program, int64_t timeout_ns, hn_heat_worker **ret, hn_diag *dg);
void hn_heat_worker_destroy(hn_heat_worker *w); /* NULL is fine */
/**
 * As hn_heat_run, but a lane that ends or hangs its process is out too (HONE_E_CRASH, HONE_E_TIMEOUT), and the others go on.
 *
 * Errors: HONE_E_DEVICE, HONE_E_NOMEM the worker has no use of the device, or not enough of it; HONE_E_VERSION another build's worker
 */
hone_status hn_heat_worker_run(hn_heat_worker *w, hn_heat *h, hn_diag *dg);
/** The worker's side: answers heats until its input ends. Yields the exit status. */
int hn_heat_serve(int in_fd, int out_fd);

#endif
