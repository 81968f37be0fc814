/* The routes to try: single changes and products over axes. */
#include "tune/tune.h"

#include <string.h>

enum { MAX_VALUES = 8 }; /* of a wide domain when nobody said which */

static bool push_axis(hn_arena *a, void *list, hn_space_axis x)
{
    HN_VEC(hn_space_axis) *v = list;
    return x.n == 0 || hn_vec_push(a, v, x);
}

static hn_space_axis axis_of(hn_knob id, const char *pattern, const int64_t *value, int n)
{
    hn_space_axis x = { .knob = id, .pattern = pattern, .base = hn_knob_get(id)->dflt };
    for (int i = 0; i < n && x.n < HN_COUNT(x.value); i++)
        if (value[i] != x.base) x.value[x.n++] = value[i];
    return x;
}

static void add_setting(hn_str *s, hn_knob id, const char *pattern, int64_t v)
{
    const hn_knob_def *k = hn_knob_get(id);
    hn_str_addf(s, "%s-%s%s%s=", s->n ? " " : "", k->name, pattern ? "@" : "", pattern ? pattern : "");
    hn_knob_print_value(k, v, s);
}

/* A bound is what makes a change of numbers judgeable. */
static hone_status refuse_unbounded(const hn_axis *x, hn_diag *dg)
{
    const hn_knob_def *k = hn_knob_get(x->knob);
    if (!k->changes_numbers || (x->n_value == 1 && x->value[0] == k->dflt)) return HONE_OK;
    hn_hint(dg, "State how much error is allowed (a threshold), or leave the knob out.");
    return HN_RAISE(dg, HONE_E_INVALID, "\"-%s\" changes numbers beyond reassociation and is searched under a stated bound only",
                    k->name);
}

static hone_status from_expression(hn_arena *a, const char *text, bool allow_numbers, void *list, hn_str *fixed, hn_diag *dg)
{
    hn_expr_route e = { 0 };
    HN_TRY(hn_route_expr_parse(a, text, &e, dg));
    for (int i = 0; i < e.n; i++) {
        const hn_axis *x = &e.at[i];
        if (!allow_numbers) HN_TRY(refuse_unbounded(x, dg));
        if (x->fixed) add_setting(fixed, x->knob, x->pattern, x->value[0]);
        else if (!push_axis(a, list, axis_of(x->knob, x->pattern, x->value, x->n_value))) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

static bool was_read(const hn_knob_read *read, int n, hn_knob id)
{
    for (int i = 0; i < n; i++)
        if (read[i].knob == id) return true;
    return false;
}

static hone_status from_reads(hn_arena *a, const hn_knob_read *read, int n_read, bool allow_numbers, void *list, hn_diag *dg)
{
    for (int i = 0; i < hn_knob_count(); i++) {
        const hn_knob_def *k = hn_knob_at(i);
        int64_t value[MAX_VALUES];
        if (!k->tunable || (k->changes_numbers && !allow_numbers) || !was_read(read, n_read, k->id)) continue;
        const int n = hn_knob_domain(k, value, MAX_VALUES);
        if (!push_axis(a, list, axis_of(k->id, NULL, value, n))) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

hone_status hn_search_make(hn_arena *a, const char *text, const hn_knob_read *read, int n_read, bool allow_numbers,
                           hn_search *ret, hn_diag *dg)
{
    HN_VEC(hn_space_axis) list = { 0 };
    hn_str fixed = { 0 };
    const hone_status made = text ? from_expression(a, text, allow_numbers, &list, &fixed, dg)
                                  : from_reads(a, read, n_read, allow_numbers, &list, dg);
    if (made != HONE_OK) hn_str_done(&fixed);
    HN_TRY(made);
    *ret = (hn_search){ list.at, list.n, hn_arena_strdup(a, hn_str_get(&fixed)) };
    hn_str_done(&fixed);
    return hn_arena_oom(a) ? HN_NOMEM(dg) : HONE_OK;
}

int64_t hn_search_n_single(const hn_search *s)
{
    int64_t n = 0;
    for (int i = 0; i < s->n_axis; i++) n += s->axis[i].n;
    return n;
}

int64_t hn_search_n_product(const hn_search *s, const bool *use)
{
    int64_t n = 1;
    for (int i = 0; i < s->n_axis; i++)
        if ((!use || use[i]) && __builtin_mul_overflow(n, (int64_t)s->axis[i].n + 1, &n)) return INT64_MAX;
    return n - 1;
}

static const char *finish(hn_arena *a, hn_str *s)
{
    const char *text = hn_arena_strdup(a, hn_str_get(s));
    hn_str_done(s);
    return text;
}

const char *hn_search_single(hn_arena *a, const hn_search *s, int64_t i, int *ret_axis)
{
    hn_str text = { 0 };
    hn_str_add(&text, s->fixed);
    for (int k = 0; k < s->n_axis; k++) {
        const hn_space_axis *x = &s->axis[k];
        if (i < x->n) {
            add_setting(&text, x->knob, x->pattern, x->value[i]);
            *ret_axis = k;
            break;
        }
        i -= x->n;
    }
    return finish(a, &text);
}

/* Mixed radix, the last axis fastest; digit 0 is the base value, so route 0 would be the base itself. */
const char *hn_search_product(hn_arena *a, const hn_search *s, const bool *use, int64_t i)
{
    int64_t digit[256] = { 0 };
    hn_str text = { 0 };
    i++;
    for (int k = HN_MIN(s->n_axis, 256) - 1; k >= 0; k--) {
        if (use && !use[k]) continue;
        digit[k] = i % (s->axis[k].n + 1);
        i /= s->axis[k].n + 1;
    }
    hn_str_add(&text, s->fixed);
    for (int k = 0; k < HN_MIN(s->n_axis, 256); k++)
        if (digit[k]) add_setting(&text, s->axis[k].knob, s->axis[k].pattern, s->axis[k].value[digit[k] - 1]);
    return finish(a, &text);
}
