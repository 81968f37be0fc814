/* Shared libraries that may or may not be there. */
#ifndef HN_BASE_DL_H
#define HN_BASE_DL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/diag.h"
#include "base/str.h"

/** One function wanted of a library: where its address goes, and whether the library is of use without it. */
typedef struct hn_dl_fn {
    const char *name;
    void (**to)(void);
    bool optional;
} hn_dl_fn;

/**
 * Open the first of several names or paths that loads. Entries with '*' are glob patterns; the last match in
 * sorted order is the newest. Entries may be NULL.
 *
 * Owns:   the library stays open for the life of the process
 * Errors: HONE_E_NOTFOUND lists what was tried and why each failed
 */
hone_status hn_dl_open(const char *what, const char *const *path, int n_path, void **ret, hn_str *ret_path,
                       hn_diag *dg);
/** Look up all functions. HONE_E_VERSION names the first that is missing. */
hone_status hn_dl_bind(const char *what, void *lib, const hn_dl_fn *fn, int n_fn, hn_diag *dg);
/** The first of several files that exists, as hn_dl_open looks for them, without loading it. "" when none. */
void hn_dl_find(const char *const *path, int n_path, hn_str *ret);

#endif
