/* A CUDA driver, an NVRTC and an NVML that need no GPU: kernels are compiled for the host and run when launched. Device addresses are
 * marked, so that a host access to device memory faults. $HONE_CUDA_DRIVER and $HONE_NVRTC name the library.
 *
 * $HONE_SIM_CUDNN and $HONE_SIM_CUDART are cuDNN's version and that of the CUDA it was built for, in place of 9.19.0 and none.
 * $HONE_SIM_ACCIDENT says what becomes of kernels of so many threads a block: "fault:128" kills the context, "hang:128" never ends,
 * "crash:128" aborts the process. "exclusive:PID" lets no other process have a context. */
#ifndef HN_TESTS_CUDA_SIM_H
#define HN_TESTS_CUDA_SIM_H

#include <stdbool.h>

enum { SIM_CLOCK_MHZ = 1980 };

/** What the driver was asked to do since the process began. */
typedef struct sim_counts {
    int launches, captured, graphs, graph_launches, to_device, to_host, modules, live_allocations, library_calls, library_refusals, compiled, early;
    int branchings, overtakings; /* places of a recording that waits were stated for; launches of a graph out of their recorded order */
} sim_counts;

/** The counters of a loaded simulator, by dlsym. */
const sim_counts *sim_counts_get(void);
/** The next wait answers this CUresult, and every call after it too when it is a fault. */
void sim_fail_next_wait(int result);

#endif
