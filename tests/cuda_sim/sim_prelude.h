/* What stands for a GPU's instructions when emitted CUDA C is compiled for the host. */
#ifndef HN_TESTS_CUDA_SIM_PRELUDE_H
#define HN_TESTS_CUDA_SIM_PRELUDE_H

#include <stdbool.h>

/** Before the kernel, in place of the PTX. Threads that wait for each other are fibers, one block at a time. */
extern const char sim_prelude[];
/** After that: what a warp does together beyond shuffles, and copies to shared memory. */
extern const char sim_warps[];
/**
 * After the kernel, for each kernel of a source: `sim_go(kernel, grid x, block, parameters)` runs it, parameters as
 * cuLaunchKernel takes them.
 */
extern const char sim_launcher[];
/** Run a program of $PATH, argv[0], to its end; whether it succeeded. */
bool sim_run_program(const char *const *argv);

#endif
