/* The knob registry: the rows of knobs.def as a table. */
#include "core/knob.h"

#include <stdlib.h>
#include <string.h>

/* ENUM(a|b|c) in the type column becomes a type and its names: pasting turns it into a call of one of these.
 */
#define TYPE_BOOL          HN_KNOB_BOOL
#define TYPE_INT           HN_KNOB_INT
#define TYPE_POW2          HN_KNOB_POW2
#define TYPE_ENUM(names)   HN_KNOB_ENUM
#define VALUES_BOOL        NULL
#define VALUES_INT         NULL
#define VALUES_POW2        NULL
#define VALUES_ENUM(names) #names
#define SCOPE_M            false
#define SCOPE_O            true

static const hn_knob_def defs[] = {
#define X(id_, group, name_, type_, dflt_, lo_, hi_, flags_, scope_, doc_)                                   \
    { .id = HN_KNOB_##group##_##name_,                                                                       \
      .name = #group ":" #name_,                                                                             \
      .type = TYPE_##type_,                                                                                  \
      .dflt = dflt_,                                                                                         \
      .lo = lo_,                                                                                             \
      .hi = hi_,                                                                                             \
      .values = VALUES_##type_,                                                                              \
      .tunable = ((flags_)&HN_KNOB_T) != 0,                                                                  \
      .changes_numbers = ((flags_)&HN_KNOB_N) != 0,                                                          \
      .per_node = SCOPE_##scope_,                                                                            \
      .doc = doc_ },
#include "core/knobs.def"
#undef X
};

enum row {
#define X(id_, group, name_, type_, dflt_, lo_, hi_, flags_, scope_, doc_) ROW_##group##_##name_,
#include "core/knobs.def"
#undef X
};

#define X(id_, group, name_, type_, dflt_, lo_, hi_, flags_, scope_, doc_)                                   \
    _Static_assert(id_ > 0 && lo_ <= dflt_ && dflt_ <= hi_,                                                  \
                   "default outside the bounds of " #group ":" #name_);
#include "core/knobs.def"
#undef X

int hn_knob_count(void)
{
    return HN_COUNT(defs);
}

const hn_knob_def *hn_knob_at(int i)
{
    return i >= 0 && i < HN_COUNT(defs) ? &defs[i] : NULL;
}

const hn_knob_def *hn_knob_get(hn_knob id)
{
    switch (id) { /* a repeated id does not compile */
    case HN_KNOB_NONE:
        break;
#define X(id_, group, name_, type_, dflt_, lo_, hi_, flags_, scope_, doc_)                                   \
    case HN_KNOB_##group##_##name_:                                                                          \
        return &defs[ROW_##group##_##name_];
#include "core/knobs.def"
#undef X
    }
    return NULL;
}

const hn_knob_def *hn_knob_find(const char *name, size_t n)
{
    if (n && *name == '-') {
        name++;
        n--;
    }
    for (int i = 0; i < HN_COUNT(defs); i++)
        if (strlen(defs[i].name) == n && memcmp(defs[i].name, name, n) == 0) return &defs[i];
    return NULL;
}

static bool is_pow2(int64_t v)
{
    return v > 0 && (v & (v - 1)) == 0;
}

bool hn_knob_in_domain(const hn_knob_def *k, int64_t v)
{
    if (v < k->lo || v > k->hi) return false;
    return k->type != HN_KNOB_POW2 || v == 0 || is_pow2(v);
}

/* ---- domains ---- */
static int compare_i64(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int add_value(const hn_knob_def *k, int64_t v, int64_t *at, int n, int cap)
{
    if (n == cap || !hn_knob_in_domain(k, v)) return n;
    for (int i = 0; i < n; i++)
        if (at[i] == v) return n;
    at[n] = v;
    return n + 1;
}

int hn_knob_domain(const hn_knob_def *k, int64_t *ret, int cap)
{
    int n = 0;
    if (k->type != HN_KNOB_POW2 && (uint64_t)k->hi - (uint64_t)k->lo < (uint64_t)cap) {
        for (int64_t v = k->lo; n <= k->hi - k->lo; v++)
            ret[n++] = v;
        return n;
    }
    n = add_value(k, k->lo, ret, n, cap);
    n = add_value(k, k->hi, ret, n, cap);
    n = add_value(k, k->dflt, ret, n, cap);
    n = add_value(k, 0, ret, n, cap);
    for (int bit = 0; bit < 63; bit++)
        n = add_value(k, (int64_t)1 << bit, ret, n, cap);
    qsort(ret, (size_t)n, sizeof *ret, compare_i64);
    return n;
}

/* ---- values as text ---- */
static const char *enum_name(const char *values, int64_t v, size_t *ret_n)
{
    for (; v > 0; v--) {
        values += strcspn(values, "|");
        if (*values) values++;
    }
    while (*values == ' ')
        values++;
    *ret_n = strcspn(values, "| ");
    return values;
}

void hn_knob_print_value(const hn_knob_def *k, int64_t v, hn_str *out)
{
    size_t n;
    if (k->type == HN_KNOB_ENUM && hn_knob_in_domain(k, v)) {
        const char *name = enum_name(k->values, v, &n);
        hn_str_add_n(out, name, n);
    } else {
        hn_str_addf(out, "%lld", (long long)v);
    }
}

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

bool hn_knob_parse_value(const hn_knob_def *k, const char *text, size_t n, int64_t *ret)
{
    char number[32];
    int64_t v;
    if (k->type == HN_KNOB_ENUM) {
        for (v = k->lo; v <= k->hi; v++) {
            size_t len;
            const char *name = enum_name(k->values, v, &len);
            if (len != n || memcmp(name, text, n) != 0) continue;
            *ret = v;
            return true;
        }
        return false;
    }
    const bool yes = is_word(text, n, "on") || is_word(text, n, "true");
    const bool no = is_word(text, n, "off") || is_word(text, n, "false");
    if (k->type == HN_KNOB_BOOL && (yes || no)) {
        *ret = yes;
        return true;
    }
    if (n >= sizeof number) return false;
    memcpy(number, text, n);
    number[n] = '\0';
    if (strlen(number) != n || !hn_parse_i64(number, &v) || !hn_knob_in_domain(k, v)) return false;
    *ret = v;
    return true;
}

bool hn_knob_pin(const hn_knob_def *k, int64_t v, int64_t *ret)
{
    size_t n;
    char number[16] = "";
    if (v == 0 || k->type != HN_KNOB_ENUM || !hn_knob_in_domain(k, v)) return false;
    const char *name = enum_name(k->values, v, &n);
    if (n < sizeof number) memcpy(number, name, n);
    if (!hn_parse_i64(number, ret)) *ret = v - 1;
    return true;
}

void hn_knob_print_domain(const hn_knob_def *k, hn_str *out)
{
    switch (k->type) {
    case HN_KNOB_BOOL:
        hn_str_add(out, "0|1");
        return;
    case HN_KNOB_INT:
        hn_str_addf(out, "%lld..%lld", (long long)k->lo, (long long)k->hi);
        return;
    case HN_KNOB_POW2:
        hn_str_addf(out, "pow2 %lld..%lld", (long long)k->lo, (long long)k->hi);
        return;
    case HN_KNOB_ENUM:
        for (int64_t v = k->lo; v <= k->hi; v++) {
            if (v > k->lo) hn_str_add(out, "|");
            hn_knob_print_value(k, v, out);
        }
        return;
    }
}

/* ---- the registry as a whole ---- */
hn_digest hn_knob_registry_digest(void)
{
    hn_hasher h;
    hn_hasher_init(&h);
    for (int i = 0; i < HN_COUNT(defs); i++) {
        const hn_knob_def *k = &defs[i];
        const int64_t number[] = { k->id, k->type, k->dflt, k->lo, k->hi, k->changes_numbers, k->per_node };
        for (int j = 0; j < HN_COUNT(number); j++)
            hn_hasher_i64(&h, number[j]);
        hn_hasher_str(&h, k->name);
        hn_hasher_str(&h, k->values);
    }
    return hn_hasher_end(&h);
}

static void json_text(hn_json *j, const char *key, const hn_knob_def *k,
                      void (*print)(const hn_knob_def *k, int64_t v, hn_str *out), int64_t v)
{
    hn_str text = { 0 };
    print(k, v, &text);
    hn_json_put_str(j, key, hn_str_get(&text));
    hn_str_done(&text);
}

static void print_domain(const hn_knob_def *k, int64_t unused, hn_str *out)
{
    (void)unused;
    hn_knob_print_domain(k, out);
}

static void json_knob(hn_json *j, const hn_knob_def *k)
{
    static const char *const types[] = { "bool", "int", "pow2", "enum" };
    hn_json_object(j);
    hn_json_put_i64(j, "id", k->id);
    hn_json_put_str(j, "name", k->name);
    hn_json_put_str(j, "type", types[k->type]);
    json_text(j, "default", k, hn_knob_print_value, k->dflt);
    json_text(j, "domain", k, print_domain, 0);
    hn_json_put_str(j, "scope", k->per_node ? "node" : "model");
    hn_json_put_bool(j, "tunable", k->tunable);
    hn_json_put_bool(j, "changes_numbers", k->changes_numbers);
    hn_json_put_str(j, "doc", k->doc);
    hn_json_object_end(j);
}

void hn_knob_list_json(hn_str *out)
{
    char digest[HN_DIGEST_TEXT];
    hn_json j;
    hn_json_init(&j, out, true);
    hn_json_object(&j);
    hn_json_put_str(&j, "registry", hn_digest_text(hn_knob_registry_digest(), digest));
    hn_json_key(&j, "knobs");
    hn_json_array(&j);
    for (int i = 0; i < HN_COUNT(defs); i++)
        json_knob(&j, &defs[i]);
    hn_json_array_end(&j);
    hn_json_object_end(&j);
}
