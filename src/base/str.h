/* A growable text on the heap; the out-of-memory bit is sticky. */
#ifndef HN_BASE_STR_H
#define HN_BASE_STR_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

typedef struct hn_str {
    char *s; /* always terminated once non-NULL */
    size_t n, cap;
    bool oom;
} hn_str;

void hn_str_done(hn_str *t);
void hn_str_clear(hn_str *t);
void hn_str_add(hn_str *t, const char *s);
void hn_str_add_n(hn_str *t, const char *s, size_t n);
void hn_str_addf(hn_str *t, const char *fmt, ...) HN_PRINTF(2, 3);
void hn_str_vaddf(hn_str *t, const char *fmt, va_list ap) HN_PRINTF(2, 0);
/** "" while empty; never NULL. */
const char *hn_str_get(const hn_str *t);

/** Levenshtein distance, capped at 64 characters a side; used to suggest the nearest name. */
int hn_edit_distance(const char *a, const char *b);
/** Nearest of n names within a third of its length, or NULL. */
const char *hn_nearest(const char *name, const char *const *names, int n);
/** Shell-like match: * any run, ? one character; '/' is an ordinary character. */
bool hn_glob_match(const char *pattern, const char *text);
/** Strict decimal int64 over the whole text; false on junk or overflow. */
bool hn_parse_i64(const char *s, int64_t *ret);
bool hn_parse_f64(const char *s, double *ret);

/** JSON writer over a hn_str: commas and escapes are its business. Depth up to 64. Non-finite doubles become null. */
typedef struct hn_json {
    hn_str *out;
    int depth;
    bool indent;          /* two spaces a level, else compact */
    uint64_t has_item;    /* bit per level */
    bool after_key;
} hn_json;

void hn_json_init(hn_json *j, hn_str *out, bool indent);
void hn_json_object(hn_json *j);
void hn_json_object_end(hn_json *j);
void hn_json_array(hn_json *j);
void hn_json_array_end(hn_json *j);
void hn_json_key(hn_json *j, const char *key);
void hn_json_str(hn_json *j, const char *s); /* NULL becomes null */
void hn_json_i64(hn_json *j, int64_t v);
void hn_json_f64(hn_json *j, double v);
void hn_json_bool(hn_json *j, bool v);
void hn_json_null(hn_json *j);
/** A key and its value. */
void hn_json_put_str(hn_json *j, const char *key, const char *s);
void hn_json_put_i64(hn_json *j, const char *key, int64_t v);
void hn_json_put_f64(hn_json *j, const char *key, double v);
void hn_json_put_bool(hn_json *j, const char *key, bool v);

#endif
