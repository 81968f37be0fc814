/* Search expressions: routes whose values may be lists, ranges or whole domains. */
#include <string.h>

#include "core/route_int.h"

enum { MAX_VALUES = 4096 };

struct list {
    hn_arena *arena;
    const struct route_token *token;
    const char *whole;
    HN_VEC(int64_t) v;
};

static hone_status add(struct list *l, int64_t v, const char *text, size_t n, hn_diag *dg)
{
    const size_t offset = (size_t)(text - l->whole);
    for (int i = 0; i < l->v.n; i++)
        if (l->v.at[i] == v)
            return HN_RAISE(dg, HONE_E_INVALID, "\"%.*s\" at offset %zu is twice in the list of \"-%s\"",
                            (int)HN_MIN(n, (size_t)200), text, offset, l->token->knob->name);
    if (l->v.n == MAX_VALUES)
        return HN_RAISE(dg, HONE_E_INVALID, "more than %d values of \"-%s\" at offset %zu", MAX_VALUES,
                        l->token->knob->name, offset);
    return hn_vec_push(l->arena, &l->v, v) ? HONE_OK : HN_NOMEM(dg);
}

static void trim(const char **text, size_t *n)
{
    while (*n && strchr(" \t\r\n", (*text)[0])) {
        ++*text;
        --*n;
    }
    while (*n && strchr(" \t\r\n", (*text)[*n - 1]))
        --*n;
}

static const char *find_dots(const char *text, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++)
        if (text[i] == '.' && text[i + 1] == '.') return text + i;
    return NULL;
}

static hone_status parse_step(const struct list *l, const char *text, size_t n, int64_t *ret, hn_diag *dg)
{
    char number[32] = { 0 };
    trim(&text, &n);
    if (n < sizeof number) memcpy(number, text, n);
    if (n < sizeof number && hn_parse_i64(number, ret) && *ret > 0 && l->token->knob->type == HN_KNOB_INT)
        return HONE_OK;
    if (l->token->knob->type != HN_KNOB_INT) hn_hint(dg, "Only integer knobs take a step.");
    return HN_RAISE(dg, HONE_E_INVALID, "\"%.*s\" at offset %zu is not a step of \"-%s\"",
                    (int)HN_MIN(n, (size_t)200), text, (size_t)(text - l->whole), l->token->knob->name);
}

static hone_status add_range(struct list *l, int64_t lo, int64_t hi, int64_t step, const char *text, size_t n,
                             hn_diag *dg)
{
    const hn_knob_def *k = l->token->knob;
    if (lo > hi)
        return HN_RAISE(dg, HONE_E_INVALID, "the range at offset %zu runs from %lld down to %lld",
                        (size_t)(text - l->whole), (long long)lo, (long long)hi);
    for (int64_t v = lo;;) {
        if (hn_knob_in_domain(k, v)) HN_TRY(add(l, v, text, n, dg));
        if (k->type == HN_KNOB_POW2) step = v ? v : 1;
        if (step > hi - v) return HONE_OK;
        v += step;
    }
}

/* "lo..hi" or "lo..hi:step", brackets off. */
static hone_status parse_range(struct list *l, const char *text, size_t n, const char *dots, hn_diag *dg)
{
    const hn_knob_def *k = l->token->knob;
    const char *end = text + n, *high = dots + 2, *colon = memchr(high, ':', (size_t)(end - high));
    const char *low = text;
    size_t n_low = (size_t)(dots - text), n_high = (size_t)((colon ? colon : end) - high);
    int64_t lo, hi, step = 1;
    if (k->type == HN_KNOB_ENUM || k->type == HN_KNOB_BOOL)
        return HN_RAISE(dg, HONE_E_INVALID, "\"-%s\" at offset %zu has no order, so it takes no range",
                        k->name, l->token->offset);
    trim(&low, &n_low);
    trim(&high, &n_high);
    HN_TRY(hn_route_value_(l->token, l->whole, low, n_low, &lo, dg));
    HN_TRY(hn_route_value_(l->token, l->whole, high, n_high, &hi, dg));
    if (colon) HN_TRY(parse_step(l, colon + 1, (size_t)(end - colon - 1), &step, dg));
    return add_range(l, lo, hi, step, text, n, dg);
}

/* Alternatives between '|'. */
static hone_status parse_list(struct list *l, const char *text, size_t n, hn_diag *dg)
{
    for (const char *end = text + n; text <= end;) {
        const char *bar = memchr(text, '|', (size_t)(end - text)), *stop = bar ? bar : end, *item = text;
        size_t len = (size_t)(stop - text);
        int64_t v;
        trim(&item, &len);
        if (len) {
            HN_TRY(hn_route_value_(l->token, l->whole, item, len, &v, dg));
            HN_TRY(add(l, v, item, len, dg));
        }
        text = stop + 1;
    }
    if (l->v.n) return HONE_OK;
    return HN_RAISE(dg, HONE_E_INVALID, "empty list for \"-%s\" at offset %zu", l->token->knob->name,
                    l->token->offset);
}

static hone_status add_domain(struct list *l, hn_diag *dg)
{
    enum { CAP = 64 }; /* more values of one knob than a search looks at */
    int64_t v[CAP];
    const int n = hn_knob_domain(l->token->knob, v, CAP);
    for (int i = 0; i < n; i++)
        HN_TRY(add(l, v[i], l->token->value, 1, dg));
    return HONE_OK;
}

static hone_status parse_values(struct list *l, bool *ret_fixed, hn_diag *dg)
{
    const char *text = l->token->value;
    const size_t n = l->token->n_value;
    int64_t v;
    *ret_fixed = false;
    if (n == 1 && *text == '*') return add_domain(l, dg);
    if (n && *text == '[') {
        if (text[n - 1] != ']') {
            const char *close = memchr(text, ']', n);
            if (!close)
                return HN_RAISE(dg, HONE_E_INVALID, "\"[\" at offset %zu is never closed",
                                l->token->value_offset);
            return HN_RAISE(dg, HONE_E_INVALID, "\"%.*s\" at offset %zu follows a closed list",
                            (int)HN_MIN((size_t)(text + n - close - 1), (size_t)200), close + 1,
                            (size_t)(close + 1 - l->whole));
        }
        const char *dots = find_dots(text + 1, n - 2);
        return dots ? parse_range(l, text + 1, n - 2, dots, dg) : parse_list(l, text + 1, n - 2, dg);
    }
    *ret_fixed = true;
    HN_TRY(hn_route_value_(l->token, l->whole, text, n, &v, dg));
    return add(l, v, text, n, dg);
}

static hone_status add_axis(hn_arena *a, const char *text, const struct route_token *t, hn_expr_route *r,
                            hn_diag *dg)
{
    struct list l = { .arena = a, .token = t, .whole = text };
    hn_axis axis = { .knob = t->knob->id, .pattern = t->pattern };
    for (int i = 0; i < r->n; i++)
        if (r->at[i].knob == axis.knob && hn_same_pattern_(r->at[i].pattern, axis.pattern))
            return HN_RAISE(dg, HONE_E_INVALID, "\"-%s\" at offset %zu is repeated for %s", t->knob->name,
                            t->offset, t->pattern ? t->pattern : "the whole model");
    HN_TRY(parse_values(&l, &axis.fixed, dg));
    axis.value = l.v.at;
    axis.n_value = l.v.n;
    return hn_vec_push(a, r, axis) ? HONE_OK : HN_NOMEM(dg);
}

hone_status hn_route_expr_parse(hn_arena *a, const char *text, hn_expr_route *ret, hn_diag *dg)
{
    hn_expr_route r = { 0 };
    struct route_token t;
    bool any;
    for (size_t at = 0;;) {
        HN_TRY(hn_route_token_(a, text, &at, /* brackets= */ true, &t, &any, dg));
        if (!any) break;
        HN_TRY(add_axis(a, text, &t, &r, dg));
    }
    *ret = r;
    return HONE_OK;
}
