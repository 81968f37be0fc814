/* Routes: parsing, the canonical text, setting. */
#include <stdlib.h>
#include <string.h>

#include "core/route_int.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool hn_same_pattern_(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* ---- tokens ---- */

/* Where the token at `at` ends, exclusive. */
static size_t token_end(const char *text, size_t at, bool brackets)
{
    bool inside = false;
    for (; text[at]; at++) {
        if (inside)
            inside = text[at] != ']';
        else if (is_space(text[at]))
            break;
        else if (brackets && text[at] == '[' && at && text[at - 1] == '=')
            inside = true;
    }
    return at;
}

static size_t last_equals(const char *text, size_t from, size_t to)
{
    for (size_t i = to; i > from; i--)
        if (text[i - 1] == '=') return i - 1;
    return to;
}

static hone_status unknown_knob(hn_diag *dg, const char *name, size_t n, size_t offset)
{
    const char **names = malloc(sizeof *names * (size_t)hn_knob_count());
    char *copy = strndup(name, n);
    const char *near = NULL;
    for (int i = 0; i < hn_knob_count() && names; i++)
        names[i] = hn_knob_at(i)->name;
    if (names && copy) near = hn_nearest(copy, names, hn_knob_count());
    if (near)
        hn_hint(dg, "Did you mean -%s?", near);
    else
        hn_hint(dg, "List the knobs with: hone knobs");
    free(copy);
    free(names);
    return HN_RAISE(dg, HONE_E_INVALID, "unknown knob \"-%.*s\" at offset %zu", (int)HN_MIN(n, (size_t)200),
                    name, offset);
}

static hone_status cut_pattern(hn_arena *a, const char *at, size_t n, struct route_token *t, hn_diag *dg)
{
    if (n == 0) return HN_RAISE(dg, HONE_E_INVALID, "empty pattern after \"@\" at offset %zu", t->offset);
    if (!t->knob->per_node) {
        hn_hint(dg, "Write -%s=... without a pattern.", t->knob->name);
        return HN_RAISE(dg, HONE_E_INVALID,
                        "\"-%s\" at offset %zu holds for the whole model and takes no pattern", t->knob->name,
                        t->offset);
    }
    t->pattern = hn_arena_strndup(a, at, n);
    return t->pattern ? HONE_OK : HN_NOMEM(dg);
}

static hone_status cut(hn_arena *a, const char *text, size_t end, struct route_token *t, hn_diag *dg)
{
    const size_t start = t->offset;
    if (text[start] != '-') {
        hn_hint(dg, "Settings look like -group:name=value.");
        return HN_RAISE(dg, HONE_E_INVALID, "\"%.*s\" at offset %zu does not start with \"-\"",
                        (int)HN_MIN(end - start, (size_t)200), text + start, start);
    }
    const char *bracket = memchr(text + start, '[', end - start);
    while (bracket && bracket[-1] != '=') /* part of a pattern */
        bracket = memchr(bracket + 1, '[', (size_t)(text + end - bracket - 1));
    const size_t equals = last_equals(text, start, bracket ? (size_t)(bracket - text) : end);
    if (text[equals] != '=' || equals == end) {
        hn_hint(dg, "Settings look like -group:name=value.");
        return HN_RAISE(dg, HONE_E_INVALID, "no \"=\" in \"%.*s\" at offset %zu",
                        (int)HN_MIN(end - start, (size_t)200), text + start, start);
    }
    const char *name = text + start + 1, *sign = memchr(name, '@', equals - start - 1);
    const size_t n_name = sign ? (size_t)(sign - name) : equals - start - 1;
    t->knob = n_name && *name != '-' ? hn_knob_find(name, n_name) : NULL;
    if (!t->knob) return unknown_knob(dg, name, n_name, start);
    t->value_offset = equals + 1;
    t->value = text + t->value_offset;
    t->n_value = end - t->value_offset;
    return sign ? cut_pattern(a, sign + 1, (size_t)(text + equals - sign - 1), t, dg) : HONE_OK;
}

hone_status hn_route_token_(hn_arena *a, const char *text, size_t *at, bool brackets, struct route_token *ret,
                            bool *ret_any, hn_diag *dg)
{
    while (is_space(text[*at]))
        ++*at;
    *ret_any = text[*at] != '\0';
    if (!*ret_any) return HONE_OK;
    *ret = (struct route_token){ .offset = *at };
    *at = token_end(text, *at, brackets);
    return cut(a, text, *at, ret, dg);
}

hone_status hn_route_value_(const struct route_token *t, const char *whole, const char *text, size_t n,
                            int64_t *ret, hn_diag *dg)
{
    hn_str domain = { 0 };
    if (hn_knob_parse_value(t->knob, text, n, ret)) return HONE_OK;
    hn_knob_print_domain(t->knob, &domain);
    hn_hint(dg, "Values of -%s: %s (default %lld).", t->knob->name, hn_str_get(&domain),
            (long long)t->knob->dflt);
    hn_str_done(&domain);
    return HN_RAISE(dg, HONE_E_INVALID, "\"%.*s\" at offset %zu is not a value of \"-%s\"",
                    (int)HN_MIN(n, (size_t)200), text, (size_t)(text - whole), t->knob->name);
}

/* ---- routes ---- */
static const hn_setting *find_setting(const hn_route *r, hn_knob knob, const char *pattern)
{
    for (int i = 0; i < r->n; i++)
        if (r->at[i].knob == knob && hn_same_pattern_(r->at[i].pattern, pattern)) return &r->at[i];
    return NULL;
}

static hone_status add_setting(hn_arena *a, hn_route *r, const struct route_token *t, int64_t value,
                               hn_diag *dg)
{
    const hn_setting *before = find_setting(r, t->knob->id, t->pattern);
    const char *what = t->pattern ? t->pattern : "the whole model";
    if (before && before->value == value)
        return HN_RAISE(dg, HONE_E_INVALID, "\"-%s\" at offset %zu is repeated for %s", t->knob->name,
                        t->offset, what);
    if (before)
        return HN_RAISE(dg, HONE_E_INVALID, "\"-%s\" at offset %zu contradicts an earlier value for %s",
                        t->knob->name, t->offset, what);
    const hn_setting s = { .knob = t->knob->id, .pattern = t->pattern, .value = value };
    return hn_vec_push(a, r, s) ? HONE_OK : HN_NOMEM(dg);
}

hone_status hn_route_parse(hn_arena *a, const char *text, hn_route *ret, hn_diag *dg)
{
    hn_route r = { 0 };
    struct route_token t;
    int64_t value;
    bool any;
    for (size_t at = 0;;) {
        HN_TRY(hn_route_token_(a, text, &at, /* brackets= */ false, &t, &any, dg));
        if (!any) break;
        HN_TRY(hn_route_value_(&t, text, t.value, t.n_value, &value, dg));
        HN_TRY(add_setting(a, &r, &t, value, dg));
    }
    *ret = r;
    return HONE_OK;
}

bool hn_route_set(hn_arena *a, hn_route *r, hn_knob knob, const char *pattern, int64_t value)
{
    const hn_knob_def *k = hn_knob_get(knob);
    if (!k || !hn_knob_in_domain(k, value) || (pattern && !k->per_node)) return false;
    hn_setting s = { .knob = knob, .pattern = pattern ? hn_arena_strdup(a, pattern) : NULL, .value = value };
    if (pattern && !s.pattern) return false;
    const hn_setting *before = find_setting(r, knob, pattern);
    if (!before) return hn_vec_push(a, r, s);
    const int i = (int)(before - r->at);
    memmove(&r->at[i], &r->at[i + 1], (size_t)(r->n - 1 - i) * sizeof *r->at);
    r->at[r->n - 1] = s;
    return true;
}

/* ---- canonical text ---- */

/* A later setting of the knob covers setting i whole. */
static bool is_covered(const hn_route *r, int i)
{
    for (int j = i + 1; j < r->n; j++)
        if (r->at[j].knob == r->at[i].knob &&
            (!r->at[j].pattern || hn_same_pattern_(r->at[j].pattern, r->at[i].pattern)))
            return true;
    return false;
}

/* Nothing that counts comes before setting i, and it asks for the default. */
static bool is_idle(const hn_route *r, int i)
{
    if (r->at[i].value != hn_knob_get(r->at[i].knob)->dflt) return false;
    for (int j = 0; j < i; j++)
        if (r->at[j].knob == r->at[i].knob && !is_covered(r, j) && !is_idle(r, j)) return false;
    return true;
}

static void print_setting(const hn_setting *s, hn_str *out)
{
    const hn_knob_def *k = hn_knob_get(s->knob);
    if (out->n) hn_str_add(out, " ");
    hn_str_addf(out, "-%s", k->name);
    if (s->pattern) hn_str_addf(out, "@%s", s->pattern);
    hn_str_add(out, "=");
    hn_knob_print_value(k, s->value, out);
}

void hn_route_print(const hn_route *r, hn_str *out)
{
    hn_str text = { 0 };
    for (int k = 0; k < hn_knob_count(); k++)
        for (int i = 0; i < r->n; i++)
            if (r->at[i].knob == hn_knob_at(k)->id && !is_covered(r, i) && !is_idle(r, i))
                print_setting(&r->at[i], &text);
    hn_str_add(out, hn_str_get(&text));
    if (text.oom) out->oom = true;
    hn_str_done(&text);
}

hn_digest hn_route_digest(const hn_route *r)
{
    hn_str text = { 0 };
    hn_route_print(r, &text);
    const hn_digest d = hn_hash128(hn_str_get(&text), text.n);
    hn_str_done(&text);
    return d;
}
