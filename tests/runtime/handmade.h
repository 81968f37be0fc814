/* Engines made by hand from C functions, for tests of everything that runs. */
#ifndef HN_TESTS_RUNTIME_HANDMADE_H
#define HN_TESTS_RUNTIME_HANDMADE_H

#include "engine/plan_builder.h"
#include "harness.h"
#include "runtime/runtime.h"

enum { /* entries of hm_kernels */
    HM_ADD,     /* c[i] = a[i] + b[i], f32: buffers a, b, c; a trip an element */
    HM_SCALE,   /* b[i] = a[i] * arg0, f32: a, b; arg0 an integer */
    HM_NONZERO, /* b[0..*c) = indices of a's non-zero elements: a f32, b i64, c i64 scalar; arg0 elements; one trip */
    HM_IADD,    /* *b = *a + arg0, i64 scalars; one trip */
    HM_SUM,     /* *b = sum of a, f32, in order: a, b; arg0 elements; one trip */
    HM_FTZ,     /* a[0] = 1 if denormals survive and rounding is to nearest, else 0; i64 */
    HM_SCRATCH, /* b[i] = 2 * a[i] by way of scratch: a, b; arg0 elements a trip, 4 * arg0 bytes of scratch */
    HM_GATHER,  /* c[i] = a[b[i]], f32: a, b i64, c; a trip an element */
    HM_LESS,    /* *b = *a < arg0: a i64, b bool; one trip */
    HM_SPIN,    /* b[i] = a[i] + 1 after arg0 steps of idle arithmetic; a trip an element */
    HM_FILL,    /* a[i] = arg0, i64; a trip an element */
    HM_N
};
extern const hn_kernel_fn hm_kernels[HM_N];

/** A call with cost unknown and one trip an element. */
void hm_call(hn_pb *b, int kernel, const uint32_t *buf, uint32_t n_buf, const uint32_t *arg, uint32_t n_arg,
             uint32_t extent);
/** Finish, write to memory, open on a device (NULL: cpu) with hm_kernels. */
hn_engine *hm_engine(hn_test *t, hn_pb *b, hn_device *d);
/** Finish and write to memory; the caller frees. `w` may hold weights; NULL: none. It is destroyed. */
void hm_image(hn_test *t, hn_pb *b, hn_engine_writer *w, void **ret, size_t *ret_bytes);
hn_context *hm_context(hn_engine *e, const hn_context_opts *o);

/** z = (x + y) * 3, all f32[n], n in [1, 4096], by two kernels with one activation; dynamic. */
hn_pb *hm_add_scale(hn_test *t);
/** out = x[nonzero(x)], x f32[n]; the output's size depends on data. */
hn_pb *hm_compact(hn_test *t);
/** v = 0; steps = []; for i < trip: v += 5, steps.append(v). trip is an i64 input. Outputs: v i64[], steps i64[k]. */
hn_pb *hm_loop(hn_test *t);

#endif
