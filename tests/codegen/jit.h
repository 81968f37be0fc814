/* For tests: targets that this machine can run, and calling compiled kernels. */
#ifndef HN_TESTS_CODEGEN_JIT_H
#define HN_TESTS_CODEGEN_JIT_H

#include "codegen/codegen.h"
#include "harness.h"

typedef void (*jit_fn)(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch);

typedef struct jit {
    jit_fn fn;
    hn_code code;
    void *map;
    size_t map_bytes;
} jit;

/** Targets by growing features: 0 is SSE4.2 alone, then AVX2 with FMA, AVX-512, all that the machine has.
 * Returns how many run here. */
int jit_targets(hn_target *ret, int cap);
/** Compile and map; fails the test on any error. */
jit jit_make(hn_test *t, const hn_kfunc *f, const hn_target *target);
void jit_done(jit *j);
/** Call with scratch of the right size, poisoned, over the whole parallel range. */
void jit_run(const jit *j, const hn_kfunc *f, void *const *buf, const int64_t *arg);
/** Is the element at p a NaN, whatever its bits? */
bool jit_is_nan(const void *p, hn_dtype t);

#endif
