/* Small models and their engines for tests of the public API: a writer of ONNX's wire format, and scratch files. */
#ifndef HN_TESTS_API_MODELS_H
#define HN_TESTS_API_MODELS_H

#include <hone/hone.h>

#include "harness.h"

/** A message being written. */
typedef struct wire {
    unsigned char at[1 << 16];
    size_t n;
} wire;

void wire_int(wire *w, int field, uint64_t v);
void wire_bytes(wire *w, int field, const void *data, size_t n);
void wire_str(wire *w, int field, const char *s);

enum { ONNX_F32 = 1, ONNX_I32 = 6, ONNX_I64 = 7, ONNX_BOOL = 9 };

/** "x" of ONNX element type; dims are numbers or names, "n 3". */
void onnx_io(wire *graph, bool output, const char *name, int type, const char *dims);
/** Names separated by spaces. */
void onnx_node(wire *graph, const char *op, const char *in, const char *out);
void onnx_const(wire *graph, const char *name, int type, int rank, const int64_t *dim, const void *data, size_t bytes);
/** Write the graph as a model of opset 17; yields the path in the test's own folder. */
const char *onnx_save(const wire *graph, const char *name);

/** A path in a folder of this process, removed with what is in it when the process ends. */
const char *scratch(const char *name);

/** y = Relu(x): f32[n,3], n open. */
const char *relu_model(void);
/** z[b,s,4] = table[16,4] gathered at ids[b,s] (i64), times mask[b,s] (i64): inputs that must fit. */
const char *lookup_model(void);
/** y = Relu applied many times to f32[side,side]: long enough to be cancelled, wide enough for a memory ceiling. */
const char *deep_model(int side, int depth);
/** Where x holds non-zeros: the output's size depends on data. */
const char *nonzero_model(void);

/** Load, build by the cost model, open; options may be NULL. Fails the test with the error's text. */
hone_model *load(const char *path, const hone_model_options *o);
hone_engine *engine_of(const char *model, const hone_model_options *o);
hone_context *context_of(hone_engine *e);
/** The error must be of this status and its text hold `part`; frees it. */
void expect_error(hone_status got, hone_error *err, hone_status want, const char *part);
/** Must be HONE_OK. */
void expect_ok(hone_status got, hone_error *err);
/** The same of a call that is given &err: the call comes first, then err is looked at. */
#define EXPECT_ERROR(call, want, part)              \
    do {                                            \
        err = NULL;                                 \
        const hone_status got_ = (call);            \
        expect_error(got_, err, (want), (part));    \
    } while (0)
#define EXPECT_OK(call)                  \
    do {                                 \
        err = NULL;                      \
        const hone_status got_ = (call); \
        expect_ok(got_, err);            \
    } while (0)

#endif
