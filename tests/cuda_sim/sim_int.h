/* Inside the simulator: what driver and libraries share. */
#ifndef HN_TESTS_CUDA_SIM_INT_H
#define HN_TESTS_CUDA_SIM_INT_H

#include <stddef.h>
#include <stdint.h>

#include "sim.h"

#define API __attribute__((visibility("default")))
#define MARK ((uint64_t)1 << 62) /* of device addresses: no host pointer has it, and the processor refuses it */
#define DRIVER(name, ...) API int name(__VA_ARGS__); int name(__VA_ARGS__)

/** Run a library's work in the order of the stream, or record it; the n <= 4096 bytes at arg are copied. A CUresult. */
int sim_take_library(void (*work)(const void *arg), const void *arg, size_t n);
/** Count a call that a library refuses; yields the result. */
int sim_refuse(int result);

/** The counters, to add to. */
sim_counts *sim_counted(void);

/** Types of elements; values of cudaDataType. */
enum { SIM_F32 = 0, SIM_F16 = 2, SIM_BF16 = 14, SIM_E4M3 = 28, SIM_E5M2 = 29 };
float sim_get(const uint8_t *at, int type, int64_t i);
void sim_set(uint8_t *at, int type, int64_t i, float f);
/** Half up, as matrix units' operands are rounded: 11 significant bits. */
float sim_tf32(float f);

#endif
