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

/** Tensors of a call by the library's unique ids, in the order of the call's buffers. */
enum { HN_DNN_ID = 1, HN_DNN_SCALE_ID = 50 /* of attention's scale, a float of the host's */ };
/** The call's work as an operation graph; NULL: m has the reason. */
dnn_desc *hn_dnn_graph(dnn_maker *m, const hn_libcall *c);

#endif
