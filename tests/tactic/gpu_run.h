/* Kernels of a tactic on the GPU of this machine, where $HONE_TEST_TARGET names one (tests/gpu/run.py). */
#ifndef HN_TESTS_TACTIC_GPU_RUN_H
#define HN_TESTS_TACTIC_GPU_RUN_H

#include "core/target.h"
#include "kir/kir.h"

/** Is that where kernels are to run, rather than in the interpreter? */
bool gpu_is_wanted(void);
/**
 * As hn_kfunc_run() over all blocks, compiled by NVRTC and run by the driver; fails the test on any error. Each buffer lies in an
 * allocation of exactly its size, so that compute-sanitizer sees the first byte past it.
 */
void gpu_call(const hn_kfunc *f, const hn_target *t, const hn_kmem *mem, const int64_t *arg);

#endif
