/* Engines for a simulated GPU: built by the cost model and looked at, or run with their library calls counted. */
#ifndef HN_TESTS_CUDA_LIB_BUILT_H
#define HN_TESTS_CUDA_LIB_BUILT_H

#include "../build/run_graph.h"
#include "harness.h"

typedef struct hn_gpu_build {
    hn_build_report r;
    void *data; /* the caller's to free */
    size_t bytes;
} hn_gpu_build;

hn_gpu_build hn_build_for_gpu(hn_test *t, const char *text, const char *route, bool frozen);
hn_gpu_build hn_build_for_gpu_by(hn_test *t, const char *text, const char *route, bool frozen, const char *timing_cache);
/** The first region is a library's. */
bool hn_calls_library(const hn_build_report *r);
/** Why the first region did not get the tactic whose name begins so; NULL: it did, or was not asked. */
const char *hn_why_not(const hn_build_report *r, const char *tactic);
/** The graph runs as evaluation says, with so many library calls and other kernels a run. */
void hn_check_calls(const char *text, const char *route, int n_call, int n_kernel);

#endif
