/* Tensors, sequences and optionals stored one to a file, as the ONNX test data are. */
#ifndef HN_IMPORT_TENSOR_FILE_H
#define HN_IMPORT_TENSOR_FILE_H

#include "ir/ir.h"

typedef struct hn_file_tensor {
    hn_tdesc type;  /* static */
    const void *at; /* row-major, sub-byte types packed */
    size_t bytes;
} hn_file_tensor;

typedef struct hn_file_value {
    hn_vkind kind;
    const char *name; /* "" when the file has none */
    int n;            /* tensors: 1; an optional: 0 or 1; a sequence: its length */
    hn_file_tensor *at;
    bool absent; /* an optional sequence that is not there */
} hn_file_value;

/**
 * Read a value file (.pb). The file does not say what it holds: kind does.
 *
 * Owns:    everything in *ret lives in arena a
 * Errors:  HONE_E_FORMAT damaged; HONE_E_UNSUPPORTED strings, complex numbers, maps
 */
hone_status hn_import_value_file(hn_arena *a, const char *path, hn_vkind kind, hn_file_value *ret,
                                 hn_diag *dg);

#endif
