/* CUDA C run without a GPU: the emitted text is compiled for the host as C++, and its threads run one after another.
 * Good for programs whose threads do not wait for each other. */
#ifndef HN_TESTS_CODEGEN_CUDA_HOST_H
#define HN_TESTS_CODEGEN_CUDA_HOST_H

#include "harness.h"
#include "kir/kir.h"

/** A run to repeat: a program's gpu form, its input and what the interpreter made of it. */
typedef struct cuda_case {
    hn_kfunc f;
    int n_buf, n_in; /* inputs first */
    void *in[16];
    const void *want[16];  /* of each output */
    int64_t bytes[16];     /* of each buffer */
    hn_dtype out_type[16]; /* for comparing: NaNs are equal */
} cuda_case;

typedef struct cuda_batch {
    HN_VEC(cuda_case) at;
} cuda_batch;

/** Keep a run for later; inputs and results are copied, outputs start as `before`. */
void cuda_later(hn_test *t, cuda_batch *b, const hn_kfunc *cpu, const hn_kmem *mem, int n_in, int n_buf,
                const hn_dtype *out_type, const void *const *before);
/** Compile all, run all, compare all. Nothing where no C++ compiler is found: cuda_host_compiler says. */
void cuda_check(hn_test *t, cuda_batch *b);
const char *cuda_host_compiler(void);

#endif
