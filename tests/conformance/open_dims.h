/* Models with as many extents of their inputs left open as their ops allow. */
#ifndef CONFORMANCE_OPEN_DIMS_H
#define CONFORMANCE_OPEN_DIMS_H

#include "api/api_int.h"
#include "import/import.h"

typedef struct open_dims {
    int n, n_open;      /* extents of tensors that the model fixes, and those of them that are symbols now */
    char refusal[300];  /* why the first of the others is not */
} open_dims;

/**
 * Read m's file again with every fixed extent of an input a symbol of its own; where that is refused, extent by extent with what
 * is accepted. opts: as m was read.
 */
void open_all_dims(hone_model *m, const hn_import_opts *opts, open_dims *ret);

#endif
