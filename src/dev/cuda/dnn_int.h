/* Inside cuDNN's part: the library's functions, and descriptors made one after another. */
#ifndef HN_DEV_CUDA_DNN_INT_H
#define HN_DEV_CUDA_DNN_INT_H

#include "core/libcall.h"
#include "dev/cuda/cuda_int.h"
#include "dev/cuda/dnn.h"

/** The library, open. */
typedef struct dnn_library {
    dnn_handle *handle; /* one call at a time: hold the lock of dnn.c */
#define X(field, type, symbol, parameters) type(*field) parameters;
#include "dev/cuda/dnn.def"
#undef X
} dnn_library;

extern dnn_library hn_dnn;

/** Open the library without taking a GPU: hn_dnn has all but the handle. */
hone_status hn_dnn_open(hn_diag *dg);

enum { HN_DNN_MOST = 512 }; /* descriptors of one call, with all that heuristics yield */

/** Makes descriptors and owns them. After the first failure the other functions do nothing and yield NULL or 0. */
typedef struct dnn_maker {
    dnn_desc *at[HN_DNN_MOST];
    int n;
    hone_status status; /* of the first failure; what the library says of it is in dg */
    hone_status means;  /* what a failure is; 0: HONE_E_UNSUPPORTED */
    hn_diag *dg;        /* may be NULL */
} dnn_maker;

/** Remember that the library answered so while doing that; yields whether it is a failure. */
bool hn_dnn_failed(dnn_maker *m, int answer, const char *doing);
dnn_desc *hn_dnn_new(dnn_maker *m, int kind);
void hn_dnn_set(dnn_maker *m, dnn_desc *d, int attribute, int type, int64_t n, const void *v);
void hn_dnn_set_int(dnn_maker *m, dnn_desc *d, int attribute, int type, int v); /* the library's enumerations */
void hn_dnn_set_desc(dnn_maker *m, dnn_desc *d, int attribute, dnn_desc *v);
/** Complete it: attributes hold from here on. Yields d. */
dnn_desc *hn_dnn_finish(dnn_maker *m, dnn_desc *d, const char *what);
/** Elements that the attribute has, at most n of them in ret; -1: the library does not say. */
int64_t hn_dnn_get(dnn_maker *m, dnn_desc *d, int attribute, int type, int64_t n, void *ret);
void hn_dnn_drop_all(dnn_maker *m);

/* ---- graphs ---- */
enum { HN_DNN_RANK = 4, HN_DNN_MOST_OPS = 16 };

/** Tensors by the library's unique ids: the call's buffers in their order, numbers of the host's, what is stored nowhere. */
enum { HN_DNN_ID = 1, HN_DNN_NUMBER_ID = 50, HN_DNN_VIRTUAL_ID = 100 };

int hn_dnn_type(uint32_t dtype);
/** Virtual ones pass between operations and are stored nowhere. */
dnn_desc *hn_dnn_tensor(dnn_maker *m, int type, int64_t id, const int64_t *dim, const int64_t *stride, bool is_virtual);
/** A number of 4 bytes that is handed over when the work is done. */
dnn_desc *hn_dnn_number(dnn_maker *m, int type, int64_t id);

/** y = mode(x, b, t), element by element; NULL: the mode has no such operand. */
typedef struct dnn_pointwise {
    int mode, compute; /* compute: the type that it is done in */
    int64_t axis;      /* of DNN_INDEX */
    dnn_desc *x, *b, *t, *y;
} dnn_pointwise;

dnn_desc *hn_dnn_pointwise(dnn_maker *m, const dnn_pointwise *p);

/** The call's work as operations in op, room for HN_DNN_MOST_OPS; yields how many there are. */
int hn_dnn_operations(dnn_maker *m, const hn_libcall *c, dnn_desc **op);
/** The same as an operation graph; NULL: m has the reason. */
dnn_desc *hn_dnn_graph(dnn_maker *m, const hn_libcall *c);

/* ---- attention ---- */
/** Its operations in op, room for HN_DNN_MOST_OPS; yields how many there are. */
int hn_dnn_attention(dnn_maker *m, const hn_libcall *c, dnn_desc **op);

/** Numbers that its graph reads, in the order of their ids. */
enum { HN_DNN_SCALE, HN_DNN_HIDDEN, HN_DNN_KEYS, HN_DNN_QUERIES, HN_DNN_N_NUMBER };
typedef union dnn_number {
    float f;
    int32_t i;
} dnn_number;
/** The numbers of the call; yields how many of them there are, the first ones. */
int hn_dnn_attention_numbers(const hn_libcall *c, dnn_number *ret);

#endif
