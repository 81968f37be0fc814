/* The CUDA driver, opened at run time and declared here. */
#ifndef HN_DEV_CUDA_DRIVER_H
#define HN_DEV_CUDA_DRIVER_H

#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"

typedef uint64_t cu_address; /* of device memory; the same number as the pointer */
typedef struct cu_context cu_context;
typedef struct cu_module cu_module;
typedef struct cu_function cu_function;
typedef struct cu_stream cu_stream;
typedef struct cu_graph cu_graph;
typedef struct cu_graph_exec cu_graph_exec;
typedef struct cu_graph_node cu_graph_node;

/* Values from NVIDIA's documentation of the driver interface; stable since CUDA 4. */
enum {
    CU_OUT_OF_MEMORY = 2,
    CU_NO_DEVICE = 100,
    CU_STREAM_NON_BLOCKING = 1,
    CU_CAPTURE_THREAD_LOCAL = 1,
    CU_CAPTURE_ACTIVE = 1,
    CU_CAPTURE_SET_DEPENDENCIES = 1,
    CU_FUNCTION_MAX_DYNAMIC_SHARED = 8,
    CU_POINTER_MEMORY_TYPE = 2,
    CU_MEMORY_TYPE_DEVICE = 2,
    CU_DEVICE_MULTIPROCESSORS = 16,
    CU_DEVICE_L2_BYTES = 38,
    CU_DEVICE_MAJOR = 75,
    CU_DEVICE_MINOR = 76,
    CU_DEVICE_SHARED_OPTIN = 97,
    CU_LAUNCH_PROGRAMMATIC_SERIALIZATION = 6,
};

/* CUlaunchAttribute: a number and a union of 64 bytes. */
typedef struct cu_launch_attribute {
    int id, pad;
    union {
        int on;
        uint64_t room[8];
    } value;
} cu_launch_attribute;

/* CUlaunchConfig. */
typedef struct cu_launch {
    unsigned grid[3], block[3], shared_bytes;
    cu_stream *stream;
    const cu_launch_attribute *attribute;
    unsigned n_attribute;
} cu_launch;

_Static_assert(sizeof(cu_launch_attribute) == 72 && sizeof(cu_launch) == 56, "the driver's layout");

typedef struct cu_driver {
#define X(field, symbol, parameters) int(*field) parameters;
#include "dev/cuda/driver.def"
#undef X
} cu_driver;

/** Opened once a process; the same answer ever after. HONE_E_NOTFOUND, HONE_E_VERSION, HONE_E_DEVICE. */
hone_status hn_cu_driver(const cu_driver **ret, int *ret_version, hn_diag *dg);
/** "an illegal memory access was encountered (CUDA_ERROR_ILLEGAL_ADDRESS)" */
void hn_cu_error_text(const cu_driver *c, int result, char *dst, size_t n);
/** Errors after which no call in this process's context succeeds. */
bool hn_cu_is_sticky(int result);

#endif
