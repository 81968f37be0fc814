/* Knobs: typed compiler decisions; routes: sets of settings; the read-trace. Grammar: DESIGN section 8, docs/routes.md. */
#ifndef HN_CORE_KNOB_H
#define HN_CORE_KNOB_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"

typedef enum hn_knob {
    HN_KNOB_NONE = 0,
#define X(id, group, name, type, dflt, lo, hi, flags, scope, doc) HN_KNOB_##group##_##name = id,
#include "core/knobs.def"
#undef X
} hn_knob; /* HN_KNOB_gemm_split_k: lower case after the prefix so that the enum is the text form */

typedef enum hn_knob_type { HN_KNOB_BOOL, HN_KNOB_INT, HN_KNOB_POW2, HN_KNOB_ENUM } hn_knob_type;

typedef struct hn_knob_def {
    hn_knob id;
    const char *name; /* "gemm:split_k" */
    hn_knob_type type;
    int64_t dflt, lo, hi; /* bool and enum: 0..count-1 */
    const char *values;   /* enum: "a|b|c"; else NULL */
    bool tunable, changes_numbers, per_node;
    const char *doc;
} hn_knob_def;

/** Registry version: a digest over ids, names, domains and defaults; part of trial-store keys. */
hn_digest hn_knob_registry_digest(void);
int hn_knob_count(void);
const hn_knob_def *hn_knob_at(int i); /* sorted by id */
const hn_knob_def *hn_knob_get(hn_knob id);
const hn_knob_def *hn_knob_find(const char *name, size_t n); /* leading dash optional */
bool hn_knob_in_domain(const hn_knob_def *k, int64_t v);
/** Every value of the domain in rising order, at most cap >= 3 of them; returns how many. Ranges wider than cap are sampled:
 *  ends, default, powers of two from small to large. */
int hn_knob_domain(const hn_knob_def *k, int64_t *ret, int cap);
/** The value as routes write it: a number, or an enum's name. */
void hn_knob_print_value(const hn_knob_def *k, int64_t v, hn_str *out);
/** Value from route text: numbers; on/off, true/false for bools; names for enums. False when it is none or not in the domain. */
bool hn_knob_parse_value(const hn_knob_def *k, const char *text, size_t n, int64_t *ret);
/** The number that a value stands for where a knob pins a parameter of a tactic: of an enum that starts with auto, the number
 *  that is the value's name, else its place behind auto (off 0, on 1). False for auto. */
bool hn_knob_pin(const hn_knob_def *k, int64_t v, int64_t *ret);
/** "0|1", "0..64", "pow2 0..64", "plain|nhwc". */
void hn_knob_print_domain(const hn_knob_def *k, hn_str *out);
/** {"registry": digest, "knobs": [{id, option, group, name, type, default, domain, ...}]} */
void hn_knob_list_json(hn_str *out);

typedef struct hn_setting {
    hn_knob knob;
    const char *pattern; /* NULL: everywhere */
    int64_t value;
} hn_setting;

/** A route in its arena: the settings in written order (later wins where several match). */
typedef struct hn_route {
    hn_setting *at;
    int n, cap;
} hn_route;

/** Parse "-gemm:split_k=2 -conv:winograd@head*=0". Unknown, out-of-domain, repeated or contradictory settings raise with
 *  the offset and the nearest name. */
hone_status hn_route_parse(hn_arena *a, const char *text, hn_route *ret, hn_diag *dg);
/** Canonical text: sorted by id, written order within one knob, without settings that a later one covers and without
 *  defaults that override nothing. Parses back to a route with the same effect; "" is the default route. */
void hn_route_print(const hn_route *r, hn_str *out);
/** Put a setting last, so that it wins; an older one with the same knob and pattern goes. False when the value is outside the
 *  domain, the knob takes no pattern, or memory is out. pattern is copied. */
bool hn_route_set(hn_arena *a, hn_route *r, hn_knob knob, const char *pattern, int64_t value);
hn_digest hn_route_digest(const hn_route *r); /* of the canonical text */

/** One axis of a search expression. */
typedef struct hn_axis {
    hn_knob knob;
    const char *pattern;
    int64_t *value;
    int n_value;
    bool fixed; /* a bare value: the same in every route */
} hn_axis;
typedef struct hn_expr_route {
    hn_axis *at;
    int n, cap;
} hn_expr_route;
/** Parse the tuner's expression grammar (lists, ranges, `*`; spaces or newlines between tokens, spaces allowed inside
 *  brackets; empty alternatives are dropped). A range over a POW2 knob runs over its powers of two. Errors as hn_route_parse. */
hone_status hn_route_expr_parse(hn_arena *a, const char *text, hn_expr_route *ret, hn_diag *dg);

/**
 * What a build reads knobs through. Every read is recorded with the node it was read for: from that trace come relevance,
 * explanation and the cache key. Thread: one build, one thread.
 */
typedef struct hn_knobs hn_knobs;
typedef struct hn_knob_read {
    hn_knob knob;
    const char *where; /* node path, "" for the model */
    int64_t value;
} hn_knob_read;
hn_knobs *hn_knobs_new(hn_arena *a, const hn_route *route); /* route: NULL for the default; must outlive the build */
/** Value of a knob for the model as a whole (settings with a pattern do not count), or for a node with these import paths (any
 *  may match; the last matching setting wins). A node is recorded under its first path. */
int64_t hn_knob_read_model(hn_knobs *k, hn_knob id);
int64_t hn_knob_read_node(hn_knobs *k, hn_knob id, const char *const *origin, int n_origin);
/** Which settings with a pattern hold for a node: nodes of one digest read every knob alike. */
hn_digest hn_knobs_digest_at(const hn_knobs *k, const char *const *origin, int n_origin);
int hn_knobs_n_read(const hn_knobs *k);
const hn_knob_read *hn_knobs_read_at(const hn_knobs *k, int i); /* deduplicated, in first-read order */

#endif
