/* Building: a graph and a route in, an engine out. Pipeline, region forming, tactic choice, plan, engine file. */
#ifndef HN_BUILD_BUILD_H
#define HN_BUILD_BUILD_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "core/knob.h"
#include "core/target.h"
#include "ir/ir.h"
#include "pass/pass.h"

/** Progress of long work: done of total in arbitrary units; total 0 while unknown. Return false to cancel. */
typedef bool (*hn_build_progress)(void *user, const char *phase, int64_t done, int64_t total);

typedef struct hn_build_opts {
    const hn_target *target;       /* required; of this machine the peaks come from the timing cache */
    const hn_route *route;         /* NULL: every knob at its default */
    int threads;                   /* built for and measured with; 0: the target's cores */
    const char *cache_dir;         /* compiled kernels; NULL: none kept */
    const char *timing_cache;      /* file of measured tactic times; NULL: none kept */
    bool frozen;                   /* a timing-cache miss is answered by the cost model; the cache is not written */
    bool measure;                  /* false: no device; the cost model decides */
    int64_t workspace_bytes;       /* candidates that need more temporary memory are skipped with a reason; 0: no limit */
    const char *worker;            /* compiler worker program; NULL: found beside the library */
    struct hn_compile_pool *pool;  /* compiles for one build after another, with its own worker and cache; NULL: one for this build */
    struct hn_heat_worker *heat;   /* times candidates of one build after another on a GPU, with a time limit of its own; NULL: one for this build */
    int64_t candidate_timeout_ns;  /* of one run of a candidate on a GPU; 0: 30 s */
    const char *store_dir;         /* external weight store of trial engines; NULL: weights inside the engine */
    const char *out_path;          /* engine file; NULL: engine in memory */
    bool draft;                    /* that file need not outlast a power cut */
    const char *model_name;        /* for the manifest and messages */
    hn_digest model_digest;
    const hn_pass_debug *debug;    /* NULL: none */
    hn_build_progress progress;
    void *progress_user;
} hn_build_opts;

/** Why one candidate was or was not taken. */
typedef struct hn_candidate_report {
    const char *tactic; /* with parameters */
    const char *reason; /* not taken because; NULL: compiled and timed, or ranked by the model */
    double predicted_ns, measured_ns; /* measured_ns 0: not measured */
} hn_candidate_report;

typedef struct hn_region_report {
    const char *name;      /* import path of its root */
    const char *ops;       /* "conv+add+relu" */
    const char *tactic;    /* chosen, with parameters */
    double ns;             /* measured, or predicted when measured is false */
    bool measured, cached; /* cached: the time came from the timing cache */
    double flops, bytes;
    hn_digest digest;
    const char *label; /* "region:" and the start of the digest: what routes call it, and all that are equal to it */
    const hn_candidate_report *candidate;
    int n_candidate;
} hn_region_report;

typedef struct hn_build_report {
    hn_digest payload;
    const hn_region_report *region;
    int n_region, n_kernel;
    const hn_pass_stat *pass;
    int n_pass;
    const hn_knob_read *read; /* the read-trace */
    int n_read;
    int n_node_in, n_node_out;
    int64_t total_ns, pass_ns, choose_ns, compile_ns, plan_ns;
    int64_t race_ns, library_ns; /* of choose_ns: timing candidates; libraries proposing algorithms */
    int64_t engine_bytes, code_bytes, weight_bytes, arena_bytes, arena_bound_bytes, peak_rss_bytes;
    int64_t kernels_compiled, kernels_cached, timings_measured, timings_cached;
} hn_build_report;

/**
 * Build an engine.
 *
 * The graph is rewritten in place and belongs to the build afterwards. Report strings live in `a`.
 *
 * Owns:    *ret_data (when out_path is NULL) is 64-byte aligned heap memory for hn_engine_from_memory
 * Errors:  HONE_E_UNSUPPORTED a region that no tactic takes, with every tactic's reason; HONE_E_CRASH the compiler died on a
 *          kernel, named; HONE_E_CANCELLED; HONE_E_LIMIT; HONE_E_IO; HONE_E_NOMEM
 * Thread:  one build a thread; several at once are fine
 */
hone_status hn_build_engine(hn_arena *a, hn_graph *g, const hn_build_opts *o, void **ret_data, size_t *ret_bytes,
                            hn_build_report *ret, hn_diag *dg);

/* ---- what inputs want when nobody says (inputs.c) ---- */
/** Which values of an input of a model as imported make sense: HN_HINT_* of engine/plan.h. */
uint32_t hn_input_hint(const hn_value *v);
/**
 * Extents at which every size of the model is there and every op takes its operands. value[i], written, belongs to symbol i: given[i] where
 * that is no -1 (given may be NULL: none is), the optimum where a profile bounds it, else what is usual where it stands (a batch of
 * one, the side of an image, a short text), or what of a list of such extents fits.
 *
 * Errors: HONE_E_SHAPE no usual extent works: names a tensor without a size and the axes to give
 */
hone_status hn_input_extents(const hn_graph *g, const int64_t *given, int64_t *value, hn_diag *dg);

#endif
