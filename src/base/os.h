/* The operating system: files, time, randomness, processes, threads. */
#ifndef HN_BASE_OS_H
#define HN_BASE_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/diag.h"

/* ---- files ---- */
typedef struct hn_bytes {
    const uint8_t *at;
    size_t n;
    bool mapped; /* true: release with munmap; false: heap */
} hn_bytes;

/** Map a whole regular file read-only. Errors name the path and the system's reason. */
hone_status hn_map_file(const char *path, hn_bytes *ret, hn_diag *dg);
void hn_unmap(hn_bytes *b);
/** Write to a temporary beside path, fsync, rename: readers see the old or the new file, never a part. */
hone_status hn_write_file_atomic(const char *path, const void *data, size_t n, hn_diag *dg);
/** Append one record with a single write() under an advisory lock. */
hone_status hn_append_file(const char *path, const void *data, size_t n, hn_diag *dg);
hone_status hn_make_dirs(const char *path, hn_diag *dg);
bool hn_file_exists(const char *path);
/** Cache folder: $HONE_CACHE_DIR, else $XDG_CACHE_HOME/hone, else ~/.cache/hone. Heap string, NULL if none can be named. */
char *hn_cache_dir(void);
/** getenv, allowed in base/ and api/ alone. */
const char *hn_env(const char *name);

/** A folder under $TMPDIR or /tmp whose name starts with prefix; what earlier runs with this prefix left there goes first. */
typedef struct hn_scratch {
    char *path;
    int lock_fd; /* held while the folder is in use */
} hn_scratch;
hone_status hn_scratch_create(const char *prefix, hn_scratch *ret, hn_diag *dg);
/** Remove the folder with everything in it. Accepts a zeroed one. */
void hn_scratch_remove(hn_scratch *s);

/* ---- time and randomness ---- */
int64_t hn_now_ns(void);      /* monotonic */
/** Middle of n numbers (the upper one of an even count), sorting them in place; 0 for none. */
double hn_median(double *v, int n);
int64_t hn_cpu_ns(void);      /* this thread's processor time */
void hn_sleep_ns(int64_t ns);
typedef struct hn_rng {
    uint64_t s[4]; /* xoshiro256** (Blackman and Vigna 2018) */
} hn_rng;
void hn_rng_init(hn_rng *r, uint64_t seed);
uint64_t hn_rng_u64(hn_rng *r);
double hn_rng_unit(hn_rng *r);   /* [0,1) */
double hn_rng_normal(hn_rng *r); /* mean 0, sd 1 */
int64_t hn_rng_below(hn_rng *r, int64_t n);

/* ---- log ---- */
typedef enum hn_log_level { HN_LOG_ERROR, HN_LOG_WARN, HN_LOG_INFO, HN_LOG_VERBOSE, HN_LOG_DEBUG } hn_log_level;
typedef void (*hn_log_fn)(void *user, hn_log_level level, const char *text);
/** Where messages go and how much; NULL fn drops them. The library itself never prints. */
void hn_log_set(hn_log_fn fn, void *user, hn_log_level max_level);
void hn_log(hn_log_level level, const char *fmt, ...) HN_PRINTF(2, 3);
bool hn_log_on(hn_log_level level);

/* ---- processes ---- */
/** The most memory that this program held at once, in bytes; 0 where the system does not say. Not getrusage's figure, which
 *  counts the parent's memory in. */
int64_t hn_peak_rss_bytes(void);
typedef struct hn_proc {
    int pid;
    int in_fd, out_fd; /* parent's ends: write to in_fd, read from out_fd */
} hn_proc;
typedef struct hn_proc_limits {
    int64_t memory_bytes; /* RLIMIT_AS; 0: none */
    int64_t cpu_s;        /* RLIMIT_CPU; 0: none */
} hn_proc_limits;
/** Start argv[0] (looked up in $PATH when it has no slash) in a process group of its own, with pipes to stdin and stdout;
 *  stderr is shared. Dies with the thread that called: spawn from one that outlives the worker. */
hone_status hn_proc_spawn(const char *const *argv, const hn_proc_limits *limits, hn_proc *ret, hn_diag *dg);
/** Exact reads and writes with a deadline on hn_now_ns (0: none); HONE_E_TIMEOUT, HONE_E_CRASH at end of stream. SIGPIPE-safe. */
hone_status hn_proc_write(hn_proc *p, const void *data, size_t n, int64_t deadline_ns, hn_diag *dg);
hone_status hn_proc_read(hn_proc *p, void *data, size_t n, int64_t deadline_ns, hn_diag *dg);
/** Close the pipes, kill the group if it still lives 0.2 s later, reap; *ret_how says "exit status 3" or "signal 11 (SIGSEGV)". */
void hn_proc_end(hn_proc *p, char *ret_how, size_t n);

/* ---- threads ---- */
/** Usable cores: affinity mask and cgroup quota both respected; at least 1. */
int hn_cpu_count(void);

/**
 * Pool of pinned workers that spin briefly, then park. The caller is worker 0.
 * Thread: hn_pool_run may be called by one thread at a time per pool; no allocation.
 */
typedef struct hn_pool hn_pool;
/** n_threads counts the caller; 0: hn_cpu_count(). NULL when memory or threads run out. spin_ns bounds each wait before it
 *  sleeps. Pinned workers avoid the core that the creating thread is on. */
hn_pool *hn_pool_create(int n_threads, int64_t spin_ns, bool pin);
void hn_pool_destroy(hn_pool *p);
int hn_pool_size(const hn_pool *p);
typedef void (*hn_pool_fn)(void *user, int worker, int n_workers);
/** Run fn once on each of n_workers workers (0: all) and wait. */
void hn_pool_run(hn_pool *p, int n_workers, hn_pool_fn fn, void *user);

#endif
