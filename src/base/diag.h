/* Statuses and diagnostics: one fact, raised once where it is known, framed on the way up. */
#ifndef HN_BASE_DIAG_H
#define HN_BASE_DIAG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

#ifndef HONE_STATUS_DEFINED
#define HONE_STATUS_DEFINED
typedef enum hone_status {
#define X(name, number, text) HONE_E_##name = number,
#include "base/status.def"
#undef X
    HONE_OK = HONE_E_OK,
} hone_status;
#endif

/** Constant text for a status; never NULL. */
const char *hn_status_text(hone_status s);
/** Constant identifier for a status such as "E_SHAPE"; never NULL. */
const char *hn_status_name(hone_status s);

/**
 * One diagnosis. Zero-initialise (`hn_diag dg = {0}`); needs no release and no heap, so it can carry "out of memory".
 * Message: lower case, no full stop, user text in double quotes, says what and why. Advice goes in the hint.
 * First error wins: raising on a dirty diag keeps the first and asserts in debug builds.
 */
typedef struct hn_diag {
    hone_status code; /* HONE_OK while clean */
    int n_frame;
    int line;          /* source line that raised */
    const char *file;  /* source file that raised */
    char message[512];
    char hint[384];
    char frames[768];  /* newline-separated, innermost first */
} hn_diag;

hone_status hn_diag_raise(hn_diag *dg, hone_status code, const char *file, int line, const char *fmt, ...)
    HN_PRINTF(5, 6);
/** Advice: what to do about it. May be called before or after the raise. */
void hn_hint(hn_diag *dg, const char *fmt, ...) HN_PRINTF(2, 3);
/** Add one context line ("node \"sm\" (Softmax)") on the way up. */
void hn_diag_frame(hn_diag *dg, const char *fmt, ...) HN_PRINTF(2, 3);
/** Forget everything. */
void hn_diag_clear(hn_diag *dg);
/** Multi-line text: message, frames, hint. Writes at most n bytes with the terminator; returns dst. */
char *hn_diag_format(const hn_diag *dg, char *dst, size_t n);

/** Raise and yield the status: `return HN_RAISE(dg, HONE_E_SHAPE, "rank %d ...", r);` dg may be NULL. */
#define HN_RAISE(dg, code, ...) hn_diag_raise((dg), (code), __FILE__, __LINE__, __VA_ARGS__)
#define HN_NOMEM(dg)            HN_RAISE((dg), HONE_E_NOMEM, "out of memory")

#define HN_TRY(expr)                                                                                         \
    do {                                                                                                     \
        const hone_status hn_try_status_ = (expr);                                                           \
        if (HN_UNLIKELY(hn_try_status_ != HONE_OK)) return hn_try_status_;                                   \
    } while (0)

/** As HN_TRY, adding one context frame on failure. */
#define HN_TRY_IN(dg, expr, ...)                                                                             \
    do {                                                                                                     \
        const hone_status hn_try_status_ = (expr);                                                           \
        if (HN_UNLIKELY(hn_try_status_ != HONE_OK)) {                                                        \
            hn_diag_frame((dg), __VA_ARGS__);                                                                \
            return hn_try_status_;                                                                           \
        }                                                                                                    \
    } while (0)

/** Our own bug, but survive it: asserts in debug builds, takes the branch in release. */
#ifdef NDEBUG
#define HN_NEVER(x) HN_UNLIKELY(x)
#else
#include <assert.h>
#define HN_NEVER(x) (assert(!(x) && "HN_NEVER"), (x))
#endif

/** A list of diagnoses where the user wants every problem at once (import, preflight). */
typedef struct hn_diags {
    hn_diag *at;
    int n, cap;
    bool oom;
} hn_diags;

/** Append a copy; keeps at most 1,000 and counts the rest in a last entry. */
void hn_diags_add(hn_diags *list, const hn_diag *dg);
void hn_diags_done(hn_diags *list);

#endif
