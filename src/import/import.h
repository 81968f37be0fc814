/* ONNX models to graphs. Every op of every opset version is normalised to the ops of ir/ops.def on the way.
 */
#ifndef HN_IMPORT_IMPORT_H
#define HN_IMPORT_IMPORT_H

#include "ir/ir.h"

enum {
    HN_ONNX_OPSET_MAX = 28, /* newest ai.onnx opset whose ops are known */
    HN_ONNX_IR_MAX = 14,    /* newest file-format version */
};

enum { HN_IMPORT_OPEN = -1 };

/** An extent given by name: a symbol ("batch") or one axis of an input ("x.0"). HN_IMPORT_OPEN makes a symbol of an axis that the
 * model fixes. */
typedef struct hn_import_dim {
    const char *name;
    int64_t value;
} hn_import_dim;

/** Bounds of one input's extents, as an optimisation profile gives them. min == opt == max fixes an extent.
 */
typedef struct hn_import_profile {
    const char *input;
    int rank;
    const int64_t *min, *opt, *max; /* rank entries each */
} hn_import_profile;

/** The value of an input, given now: the input becomes a constant and is none any more. */
typedef struct hn_import_value {
    const char *input;
    hn_tdesc type;    /* static */
    const void *data; /* row-major, sub-byte types packed; copied */
} hn_import_value;

typedef struct hn_import_opts {
    const hn_import_dim *dim;
    int n_dim;
    const hn_import_profile *profile;
    int n_profile;
    const char *const *keep_input; /* inputs with a default (initializer) that stay inputs */
    int n_keep_input;
    const hn_import_value
        *value; /* such as a sampling rate, or axes and scales that a model takes as inputs */
    int n_value;
} hn_import_opts;

/**
 * Read a model into a new graph.
 *
 * Owns:    the graph and its constants live in arena a; weights kept in other files are read into it, so the
 * files may change or go once this returns Errors:  every problem found goes to *problems (may be NULL), one
 * entry a problem, with the node's path as frame; dg gets the first of them with the count HONE_E_FORMAT not
 * an ONNX file, or cut short HONE_E_MODEL        the model contradicts itself or the standard
 *          HONE_E_UNSUPPORTED  an op, version, type or use that is not known here, each named
 *          HONE_E_LIMIT        nesting, counts or sizes past what a sane model needs
 * opts may be NULL.
 */
hone_status hn_import_file(hn_arena *a, const char *path, const hn_import_opts *opts, hn_graph **ret,
                           hn_diags *problems, hn_diag *dg);
/** As hn_import_file from memory; base_dir is where external data may be read from (NULL: nowhere). */
hone_status hn_import_mem(hn_arena *a, const void *bytes, size_t n, const char *base_dir,
                          const hn_import_opts *opts, hn_graph **ret, hn_diags *problems, hn_diag *dg);

#endif
