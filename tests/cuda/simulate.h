/* The simulated GPU (tests/cuda_sim) for a test: the driver is opened once a process, and each case has one. */
#ifndef HN_TESTS_CUDA_SIMULATE_H
#define HN_TESTS_CUDA_SIMULATE_H

#include <stdbool.h>

#include "../cuda_sim/sim.h"

/** Driver, NVRTC and, if asked for, libraries of this process are the simulator's; skips the test where there is no C++ compiler. */
void hn_simulate(bool libraries);
const sim_counts *hn_sim_counts(void);
void hn_sim_fail_next_wait(int result);

#endif
