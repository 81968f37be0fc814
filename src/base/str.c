#include "base/str.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void hn_str_done(hn_str *t)
{
    free(t->s);
    memset(t, 0, sizeof *t);
}

void hn_str_clear(hn_str *t)
{
    t->n = 0;
    t->oom = false;
    if (t->s) t->s[0] = '\0';
}

/* Room for extra more bytes and the terminator. */
static bool reserve(hn_str *t, size_t extra)
{
    if (t->oom) return false;
    if (extra < t->cap - t->n && t->s) return true;
    size_t need, cap = t->cap ? t->cap : 64;
    if (__builtin_add_overflow(t->n, extra, &need) || need > SIZE_MAX / 4) {
        t->oom = true;
        return false;
    }
    while (cap <= need)
        cap *= 2;
    char *s = realloc(t->s, cap);
    if (!s) {
        t->oom = true;
        return false;
    }
    t->s = s;
    t->cap = cap;
    t->s[t->n] = '\0';
    return true;
}

void hn_str_add_n(hn_str *t, const char *s, size_t n)
{
    if (!reserve(t, n)) return;
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = '\0';
}

void hn_str_add(hn_str *t, const char *s)
{
    hn_str_add_n(t, s, strlen(s));
}

void hn_str_vaddf(hn_str *t, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) {
        t->oom = true;
        return;
    }
    if (!reserve(t, (size_t)n)) return;
    vsnprintf(t->s + t->n, (size_t)n + 1, fmt, ap);
    t->n += (size_t)n;
}

void hn_str_addf(hn_str *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    hn_str_vaddf(t, fmt, ap);
    va_end(ap);
}

const char *hn_str_get(const hn_str *t)
{
    return t->s ? t->s : "";
}

/* ---- matching ---- */
enum { EDIT_CAP = 64 };

int hn_edit_distance(const char *a, const char *b)
{
    const int na = (int)strnlen(a, EDIT_CAP), nb = (int)strnlen(b, EDIT_CAP);
    int row[EDIT_CAP + 1];
    for (int j = 0; j <= nb; j++)
        row[j] = j;
    for (int i = 1; i <= na; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= nb; j++) {
            const int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = HN_MIN(change, HN_MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[nb];
}

const char *hn_nearest(const char *name, const char *const *names, int n)
{
    const int limit = HN_MAX((int)strnlen(name, EDIT_CAP) / 3, 1);
    const char *best = NULL;
    int best_distance = limit + 1;
    for (int i = 0; i < n; i++) {
        const int d = hn_edit_distance(name, names[i]);
        if (d >= best_distance) continue;
        best_distance = d;
        best = names[i];
    }
    return best;
}

bool hn_glob_match(const char *pattern, const char *text)
{
    const char *star = NULL, *resume = NULL; /* last '*' and the text it has swallowed up to */
    while (*text) {
        if (*pattern == '*') {
            star = ++pattern;
            resume = text;
        } else if (*pattern && (*pattern == '?' || *pattern == *text)) {
            pattern++;
            text++;
        } else if (star) {
            pattern = star;
            text = ++resume;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

/* ---- numbers ---- */
bool hn_parse_i64(const char *s, int64_t *ret)
{
    const bool negative = *s == '-';
    int64_t v = 0;
    s += negative;
    if (!*s) return false;
    for (; *s; s++) {
        const int digit = *s - '0';
        if (digit < 0 || digit > 9) return false;
        if (__builtin_mul_overflow(v, 10, &v)) return false;
        if (negative ? __builtin_sub_overflow(v, digit, &v) : __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *ret = v;
    return true;
}

/* The host program may have set a locale with a decimal comma: ours never follows it. */
static locale_t c_locale;
static pthread_once_t c_locale_once = PTHREAD_ONCE_INIT;

static void make_c_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double c_strtod(const char *s, char **end)
{
    pthread_once(&c_locale_once, make_c_locale);
    return c_locale ? strtod_l(s, end, c_locale) : strtod(s, end);
}

bool hn_parse_f64(const char *s, double *ret)
{
    char *end;
    const char *body = s + (*s == '-' || *s == '+');
    const bool word = strcmp(body, "inf") == 0 || strcmp(body, "nan") == 0;
    if (!word && (*body == '\0' || strspn(body, "0123456789.eE+-") != strlen(body))) return false;
    errno = 0;
    const double v = c_strtod(s, &end);
    if (end == s || *end) return false;
    if (!word && isinf(v)) return false; /* overflow, not something the text says */
    *ret = v;
    return true;
}

/* ---- JSON ---- */
enum { JSON_MAX_DEPTH = 64 };

void hn_json_init(hn_json *j, hn_str *out, bool indent)
{
    *j = (hn_json){ .out = out, .indent = indent };
}

static void new_line(hn_json *j)
{
    if (!j->indent) return;
    hn_str_add(j->out, "\n");
    for (int i = 0; i < j->depth; i++)
        hn_str_add(j->out, "  ");
}

/* Comma and place before an item; a value after its key needs neither. */
static void begin_item(hn_json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->depth == 0) return;
    const uint64_t bit = (uint64_t)1 << (j->depth - 1);
    if (j->has_item & bit) hn_str_add(j->out, ",");
    j->has_item |= bit;
    new_line(j);
}

static void open_level(hn_json *j, const char *bracket)
{
    begin_item(j);
    hn_str_add(j->out, bracket);
    if (j->depth == JSON_MAX_DEPTH) { /* our bug: no writer of ours nests so deep */
        j->out->oom = true;
        return;
    }
    j->has_item &= ~((uint64_t)1 << j->depth);
    j->depth++;
}

static void close_level(hn_json *j, const char *bracket)
{
    if (j->depth == 0) return;
    j->depth--;
    if (j->has_item & (uint64_t)1 << j->depth) new_line(j);
    hn_str_add(j->out, bracket);
    if (j->depth == 0 && j->indent) hn_str_add(j->out, "\n");
}

void hn_json_object(hn_json *j)
{
    open_level(j, "{");
}

void hn_json_object_end(hn_json *j)
{
    close_level(j, "}");
}

void hn_json_array(hn_json *j)
{
    open_level(j, "[");
}

void hn_json_array_end(hn_json *j)
{
    close_level(j, "]");
}

/* Length of the valid UTF-8 sequence at s, or 0. */
static int utf8_len(const unsigned char *s)
{
    int n = 0;
    if (s[0] < 0x80)
        n = 1;
    else if (s[0] >= 0xC2 && s[0] <= 0xDF)
        n = 2;
    else if (s[0] >= 0xE0 && s[0] <= 0xEF)
        n = 3;
    else if (s[0] >= 0xF0 && s[0] <= 0xF4)
        n = 4;
    for (int i = 1; i < n; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    if (s[0] == 0xE0 && s[1] < 0xA0) return 0; /* overlong */
    if (s[0] == 0xED && s[1] > 0x9F) return 0; /* surrogate */
    if (s[0] == 0xF0 && s[1] < 0x90) return 0; /* overlong */
    if (s[0] == 0xF4 && s[1] > 0x8F) return 0; /* past U+10FFFF */
    return n;
}

static void add_escaped(hn_str *out, const char *text)
{
    static const char shorthand[] = "\"\"\\\\\nn\tt\rr\bb\ff";
    const unsigned char *s = (const unsigned char *)text;
    while (*s) {
        const int n = utf8_len(s);
        const char *sh = NULL;
        for (int i = 0; i < (int)sizeof shorthand - 1 && !sh; i += 2)
            if ((unsigned char)shorthand[i] == *s) sh = &shorthand[i + 1];
        if (sh)
            hn_str_addf(out, "\\%c", *sh);
        else if (n == 0)
            hn_str_add(out, "\\ufffd"); /* names in models need not be UTF-8; JSON must be */
        else if (*s < 0x20 || *s == 0x7F)
            hn_str_addf(out, "\\u%04x", *s);
        else
            hn_str_add_n(out, (const char *)s, (size_t)n);
        s += HN_MAX(n, 1);
    }
}

static void add_quoted(hn_str *out, const char *text)
{
    hn_str_add(out, "\"");
    add_escaped(out, text);
    hn_str_add(out, "\"");
}

void hn_json_key(hn_json *j, const char *key)
{
    begin_item(j);
    add_quoted(j->out, key);
    hn_str_add(j->out, j->indent ? ": " : ":");
    j->after_key = true;
}

void hn_json_str(hn_json *j, const char *s)
{
    begin_item(j);
    if (s)
        add_quoted(j->out, s);
    else
        hn_str_add(j->out, "null");
}

void hn_json_i64(hn_json *j, int64_t v)
{
    begin_item(j);
    hn_str_addf(j->out, "%lld", (long long)v);
}

/* Shortest of 15 to 17 digits that reads back as v. */
void hn_json_f64(hn_json *j, double v)
{
    char text[40];
    begin_item(j);
    if (!isfinite(v)) {
        hn_str_add(j->out, "null");
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, v);
        for (char *p = text; *p; p++)
            if (!strchr("0123456789+-e", *p)) *p = '.';
        if (c_strtod(text, NULL) == v) break;
    }
    hn_str_add(j->out, text);
}

void hn_json_bool(hn_json *j, bool v)
{
    begin_item(j);
    hn_str_add(j->out, v ? "true" : "false");
}

void hn_json_null(hn_json *j)
{
    begin_item(j);
    hn_str_add(j->out, "null");
}

void hn_json_put_str(hn_json *j, const char *key, const char *s)
{
    hn_json_key(j, key);
    hn_json_str(j, s);
}

void hn_json_put_i64(hn_json *j, const char *key, int64_t v)
{
    hn_json_key(j, key);
    hn_json_i64(j, v);
}

void hn_json_put_f64(hn_json *j, const char *key, double v)
{
    hn_json_key(j, key);
    hn_json_f64(j, v);
}

void hn_json_put_bool(hn_json *j, const char *key, bool v)
{
    hn_json_key(j, key);
    hn_json_bool(j, v);
}
