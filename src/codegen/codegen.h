/* Kernel programs to machine code: what a code generator is, worker processes that run one, and the cache of
 * what they made. */
#ifndef HN_CODEGEN_CODEGEN_H
#define HN_CODEGEN_CODEGEN_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "core/target.h"
#include "kir/kir.h"

/** Machine code of one kernel, ready to be mapped anywhere: text and constants in one piece, nothing to link. For a
 * GPU: an hn_image; frame_bytes and n_stack_ref are a thread's stack and the bytes it spills. */
typedef struct hn_code {
    const uint8_t *at; /* in the arena that the caller gave */
    size_t n;
    uint32_t entry;      /* offset of the kernel's first instruction; the signature stands in kir/kir.h */
    uint32_t align;      /* the blob's first byte must be placed at a multiple of this (64 today) */
    int32_t frame_bytes; /* stack that the kernel takes */
    int32_t n_stack_ref; /* instructions that touch that stack: spills and reloads */
    int64_t compile_ns;  /* 0 when it came from the cache */
} hn_code;

/** A code generator. Pure: the same program and target give the same bytes. Thread: one call at a time. */
typedef struct hn_codegen {
    const char *name; /* "llvm" */
    /** Of the compiler behind it: "19.1.7"; "" when there is none. */
    const char *(*version)(void);
    int rev; /* bump when emitted code changes */
    /** From here on call back once before a fatal error of the compiler ends the process. NULL: it has none. */
    void (*on_fatal)(void (*say)(const char *reason));
    hone_status (*compile)(const hn_kfunc *f, const hn_target *t, hn_arena *a, hn_code *ret, hn_diag *dg);
    /** Assembly text of what compile makes, for `inspect` and debugging. NULL if it has none. */
    hone_status (*dump)(const hn_kfunc *f, const hn_target *t, bool optimised_ir, hn_str *out, hn_diag *dg);
} hn_codegen;

/** Links LLVM: only worker processes and the code generator's own tests use it. */
extern const hn_codegen hn_codegen_llvm;
/** Opens NVRTC when first used; its code is an hn_image (core/image.h). Worker processes and tests use it. */
extern const hn_codegen hn_codegen_cuda;

/* ---- cache on disk: content-addressed, safe for several processes ---- */
typedef struct hn_code_cache {
    const char *dir;   /* NULL: no cache. Made when missing */
    int64_t max_bytes; /* oldest-used files go beyond this; 0: 512 MiB */
} hn_code_cache;

/** Key of a compilation: program, target's code-relevant part, generator revision and version. */
hn_digest hn_code_key(const hn_kfunc *f, const hn_target *t);
bool hn_code_cache_get(const hn_code_cache *c, hn_digest key, hn_arena *a, hn_code *ret);
/** Failure to store is no error. */
void hn_code_cache_put(const hn_code_cache *c, hn_digest key, const hn_code *code);
/** Delete least recently used entries until the bound holds; called by the pool's destroy. */
void hn_code_cache_trim(const hn_code_cache *c);

/* ---- worker processes ---- */
/** The worker program, as a heap string. HONE_E_NOTFOUND says where it was looked for. */
hone_status hn_worker_find(const char *given, char **ret, hn_diag *dg);
/** Exit status of a worker that another build of hone started. */
enum { HN_WORKER_FOREIGN = 72 };
/** HONE_E_VERSION and what to do, if a worker of this program ended (`how`: of hn_proc_end) because it is of another build. */
hone_status hn_worker_check_build(const char *program, const char *how, hn_diag *dg);
/** What that program does when it compiles: answers requests until its input ends. Yields the exit status. */
int hn_worker_serve(int reply_fd);

typedef struct hn_compile_pool hn_compile_pool;

typedef struct hn_compile_options {
    int n_worker;            /* 0: one a core, at most 16 */
    const char *worker_path; /* NULL: $HONE_WORKER, beside this library or program, ../libexec/hone */
    hn_code_cache cache;
    int64_t timeout_ns;   /* for one kernel; 0: 60 s */
    int64_t memory_bytes; /* of one worker; 0: no limit */
} hn_compile_options;

/**
 * A pool of workers; they start when first needed.
 *
 * Owns:   the handle; destroy ends the workers and drops uncollected results
 * Thread: one thread per pool; the one that made it must live as long, or the workers end with it
 * Errors: HONE_E_NOTFOUND no worker program
 */
hone_status hn_compile_pool_create(const hn_compile_options *o, hn_compile_pool **ret, hn_diag *dg);
void hn_compile_pool_destroy(hn_compile_pool *p);
/** Forget what was handed in and not collected; idle workers stay for the next. NULL is none. */
void hn_compile_pool_drop(hn_compile_pool *p);

/**
 * Hand in one kernel; returns a ticket >= 0 at once, or -1 when out of memory. The program is copied. Equal
 * programs in flight are compiled once.
 */
int hn_compile_submit(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t);

/**
 * Wait for a ticket. Each ticket is collected once; the code lives in `a`.
 *
 * Errors: HONE_E_CRASH    the worker died twice on this kernel; HONE_E_TIMEOUT it hung; both name the kernel
 *         others          as the code generator raised them
 */
hone_status hn_compile_collect(hn_compile_pool *p, int ticket, hn_arena *a, hn_code *ret, hn_diag *dg);

/** Submit and collect. */
hone_status hn_compile(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t, hn_arena *a, hn_code *ret,
                       hn_diag *dg);

/**
 * What the code generator makes of a program, as text: assembly, or its own IR after optimisation. Not
 * cached.
 *
 * Errors: as hn_compile_collect
 */
hone_status hn_compile_dump(hn_compile_pool *p, const hn_kfunc *f, const hn_target *t, bool optimised_ir,
                            hn_str *out, hn_diag *dg);

/** Counters since creation. */
typedef struct hn_compile_stats {
    int64_t n_compiled, n_cached, n_joined, n_failed, n_worker_death;
    int64_t compile_ns; /* summed over workers */
} hn_compile_stats;
hn_compile_stats hn_compile_pool_stats(const hn_compile_pool *p);

#endif
