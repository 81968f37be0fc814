/* What routes and search expressions share when parsed. */
#ifndef HN_CORE_ROUTE_INT_H
#define HN_CORE_ROUTE_INT_H

#include "core/knob.h"

/* One token, cut into parts. */
struct route_token {
    size_t offset; /* of the token in the whole text */
    const hn_knob_def *knob;
    const char *pattern; /* in the arena; NULL without one */
    const char *value;   /* in the text */
    size_t n_value;
    size_t value_offset;
};

/**
 * Next token from *at, which moves past it. *ret_any is false at the end of the text. With brackets set,
 * white space inside
 * "=[...]" belongs to the token.
 */
hone_status hn_route_token_(hn_arena *a, const char *text, size_t *at, bool brackets, struct route_token *ret,
                            bool *ret_any, hn_diag *dg);
/** A value of t's knob; raises with the offset, the domain as the hint. text points into the whole text. */
hone_status hn_route_value_(const struct route_token *t, const char *whole, const char *text, size_t n,
                            int64_t *ret, hn_diag *dg);
bool hn_same_pattern_(const char *a, const char *b); /* either may be NULL */

#endif
