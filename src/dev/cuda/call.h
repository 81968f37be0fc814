/* Library calls: one interface over the libraries, for modules that hold such calls and for building, which chooses. */
#ifndef HN_DEV_CUDA_CALL_H
#define HN_DEV_CUDA_CALL_H

#include "core/libcall.h"
#include "dev/cuda/cuda_int.h"

/** A call made ready on this device. */
typedef struct cuda_call cuda_call;

/** What one library does; `state` is a call's own. */
typedef struct cuda_library {
    const char *name; /* "cuBLASLt" */
    /** Open it; called once a process, in a device's context. HONE_E_NOTFOUND, HONE_E_VERSION. */
    hone_status (*load)(hn_diag *dg);
    uint32_t (*version)(void); /* 0: not open */
    void (*print_version)(uint32_t version, char *dst, size_t n);
    /** Fill in version, algo and n_algo: proposal number c->rank; add to plan what was compiled for it. HONE_E_UNSUPPORTED: none. */
    hone_status (*choose)(cuda_device *d, hn_libcall *c, hn_str *plan, hn_diag *dg);
    hone_status (*make)(cuda_device *d, const hn_libcall *c, const hn_str *plan, void **ret_state, hn_diag *dg);
    void (*drop)(cuda_device *d, void *state);
    hone_status (*run)(cuda_device *d, void *state, const hn_libcall *c, void *const *buf, cu_stream *s, hn_diag *dg);
} cuda_library;

extern const cuda_library hn_cuda_lt, hn_cuda_dnn;

hone_status hn_cuda_call_make(cuda_device *d, const void *bytes, size_t n, cuda_call **ret, hn_diag *dg);
void hn_cuda_call_drop(cuda_device *d, cuda_call *c); /* NULL is fine */
hone_status hn_cuda_call_run(cuda_device *d, cuda_call *c, void *const *buf, cu_stream *s, hn_diag *dg);
/** The vtable's slots. */
hone_status hn_cuda_call_choose(hn_device *d, hn_libcall *c, hn_str *ret_plan, hn_diag *dg);
hone_status hn_cuda_library(hn_device *d, hn_library which, hn_str *ret_version, hn_diag *dg);

#endif
