/* The routes to try: single changes and products over axes. */
#include "tune/tune.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_VALUES = 8 }; /* of a wide domain when nobody said which */

static bool push_axis(hn_arena *a, hn_search *s, hn_space_axis x)
{
    if (x.n == 0 || s->n_axis == HN_TUNE_MAX_AXES) return true;
    if (s->n_axis == s->cap) {
        const int cap = s->cap ? 2 * s->cap : 16;
        hn_space_axis *p = HN_NEW_N(a, hn_space_axis, cap);
        if (!p) return false;
        if (s->n_axis) memcpy(p, s->axis, (size_t)s->n_axis * sizeof *p);
        s->axis = p;
        s->cap = cap;
    }
    s->axis[s->n_axis++] = x;
    return true;
}

/* What the base route says of a knob where no pattern narrows it. */
static int64_t base_value(const hn_route *base, const hn_knob_def *k)
{
    int64_t v = k->dflt;
    for (int i = 0; i < base->n; i++)
        if (base->at[i].knob == k->id && !base->at[i].pattern) v = base->at[i].value;
    return v;
}

static hn_space_axis axis_of(const hn_search *s, hn_knob id, const char *pattern, const int64_t *value, int n)
{
    hn_space_axis x = { .knob = id, .pattern = pattern, .base = base_value(&s->base, hn_knob_get(id)) };
    for (int i = 0; i < n && x.n < HN_COUNT(x.value); i++)
        if (value[i] != x.base) x.value[x.n++] = value[i];
    return x;
}

/* Values that lie around position `at` first: at, at + 1, at - 1, at + 2, ... */
static void order_around(hn_space_axis *x, int at)
{
    int64_t v[HN_COUNT(x->value)];
    memcpy(v, x->value, sizeof v);
    for (int i = 0, lo = at, hi = at + 1; i < x->n; i++) {
        const bool down = lo >= 0 && (hi >= x->n || i % 2 == 0);
        x->value[i] = down ? v[lo--] : v[hi++];
    }
}

/* What a tactic chooses for itself by default, an enum's auto, lies somewhere in the middle; numbers start near their default. */
static void order_values(hn_space_axis *x, const hn_knob_def *k)
{
    int below = 0;
    while (below < x->n && x->value[below] < x->base) below++;
    order_around(x, HN_MIN(k->type == HN_KNOB_ENUM ? x->n / 2 : below, x->n - 1));
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

static hone_status from_expression(hn_arena *a, const char *text, hn_search *s, hn_str *fixed, hn_diag *dg)
{
    hn_expr_route e = { 0 };
    HN_TRY(hn_route_expr_parse(a, text, &e, dg));
    for (int i = 0; i < e.n; i++) {
        const hn_axis *x = &e.at[i];
        if (!s->allow_numbers) HN_TRY(refuse_unbounded(x, dg));
        if (s->n_axis == HN_TUNE_MAX_AXES) return HN_RAISE(dg, HONE_E_LIMIT, "more than %d knobs to search", HN_TUNE_MAX_AXES);
        if (x->fixed) add_setting(fixed, x->knob, x->pattern, x->value[0]);
        else if (!push_axis(a, s, axis_of(s, x->knob, x->pattern, x->value, x->n_value))) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

hone_status hn_search_make(hn_arena *a, const char *text, const char *base, bool allow_numbers, hn_search *ret, hn_diag *dg)
{
    hn_search s = { .allow_numbers = allow_numbers, .grows = !text };
    hn_str fixed = { 0 };
    HN_TRY_IN(dg, hn_route_parse(a, base ? base : "", &s.base, dg), "the base route");
    const hone_status made = text ? from_expression(a, text, &s, &fixed, dg) : HONE_OK;
    if (made == HONE_OK) s.fixed = hn_arena_strdup(a, hn_str_get(&fixed));
    hn_str_done(&fixed);
    HN_TRY(made);
    *ret = s;
    return hn_arena_oom(a) ? HN_NOMEM(dg) : HONE_OK;
}

/* On a GPU, whose builds alone read them: how launches overlap moves a whole engine. */
static const hn_knob whole_engine[] = { HN_KNOB_plan_early, HN_KNOB_plan_streams };
enum { WHOLE_ENGINE_TURN = -6, SCREEN_TURN = -3 };

/* Turning a rewrite off, or kernels of some source, gains least often. */
static int turn_for(const hn_knob_def *k)
{
    for (int i = 0; i < HN_COUNT(whole_engine); i++)
        if (k->id == whole_engine[i]) return WHOLE_ENGINE_TURN + i;
    return k->type == HN_KNOB_BOOL && k->dflt ? 2 : 0;
}

hone_status hn_search_grow(hn_arena *a, hn_search *s, const hn_knob_def *k, hn_diag *dg)
{
    int64_t value[MAX_VALUES];
    if (!s->grows || !k->tunable || (k->changes_numbers && !s->allow_numbers)) return HONE_OK;
    for (int i = 0; i < s->n_axis; i++)
        if (s->axis[i].knob == k->id) return HONE_OK;
    if (k->id == HN_KNOB_tactic_rank || k->id == HN_KNOB_tactic_width) return HONE_OK; /* one region at a time */
    hn_space_axis x = axis_of(s, k->id, NULL, value, hn_knob_domain(k, value, MAX_VALUES));
    x.turn = turn_for(k);
    if (x.n > 0 && x.turn >= 0) order_values(&x, k); /* else as they rise: one stream first */
    return push_axis(a, s, x) ? HONE_OK : HN_NOMEM(dg);
}

/* ---- candidates that nearly won their race ---- */
static const double NEAR = 1.15, LEAST_SHARE = 0.02, WIDE_SHARE = 0.05;
enum { MOST_RANKS = 3, MOST_REGIONS = 16, WIDE = 32 /* four times what is timed by default */ };

static hn_space_axis *region_axis(const hn_search *s, hn_knob knob, const char *label)
{
    for (int i = 0; i < s->n_axis; i++)
        if (s->axis[i].knob == knob && s->axis[i].pattern && strcmp(s->axis[i].pattern, label) == 0) return &s->axis[i];
    return NULL;
}

/* A region of a build. */
typedef struct contended {
    const char *label;
    double share;
    int timed, near; /* candidates behind the first; of those the ones near it */
    double ratio[MOST_RANKS]; /* of the first few, time over that of the first */
} contended;

/* One entry of the text; what is behind it, NULL at the end. */
static const char *read_region(hn_arena *a, const char *at, contended *ret)
{
    const char *open = strchr(at, '"'), *close = open ? strchr(open + 1, '"') : NULL, *list = close ? strchr(close, '[') : NULL;
    char *end;
    if (!list) return NULL;
    *ret = (contended){ .label = hn_arena_strndup(a, open + 1, (size_t)(close - open - 1)), .share = strtod(list + 1, &end) };
    while (*end == ',') {
        const double ratio = strtod(end + 1, &end);
        if (ret->timed < MOST_RANKS) ret->ratio[ret->timed] = ratio;
        ret->timed++;
        ret->near += ratio <= NEAR;
    }
    return ret->label && *end == ']' ? end + 1 : NULL;
}

/* A region that takes much of the time is worth a look at more candidates. */
static bool push_width(hn_arena *a, hn_search *s, const contended *c)
{
    const hn_space_axis x = { .knob = HN_KNOB_tactic_width, .pattern = c->label, .value = { WIDE }, .n = 1,
                              .turn = s->screens ? 0 : 1 };
    return c->share < WIDE_SHARE || c->timed == 0 || region_axis(s, x.knob, c->label) || push_axis(a, s, x);
}

static bool push_ranks(hn_arena *a, hn_search *s, const contended *c)
{
    hn_space_axis x = { .knob = HN_KNOB_tactic_rank, .pattern = c->label };
    hn_space_axis *known = region_axis(s, HN_KNOB_tactic_rank, c->label);
    if (s->screens) return true; /* hn_search_changes has them */
    while (x.n < HN_MIN(c->near, (int)MOST_RANKS)) {
        x.value[x.n] = x.n + 1;
        x.n++;
    }
    if (!known) return push_axis(a, s, x); /* none near: no axis */
    if (known->taken == 0) *known = x; /* by other times than before */
    return true;
}

hone_status hn_search_grow_regions(hn_arena *a, hn_search *s, const char *text, hn_diag *dg)
{
    contended top[MOST_REGIONS], c;
    int n = 0;
    if (!s->grows) return HONE_OK;
    while ((text = read_region(a, text, &c)) != NULL) {
        if (c.share < LEAST_SHARE) continue;
        int at = n < MOST_REGIONS ? n++ : c.share > top[n - 1].share ? n - 1 : n;
        for (; at > 0 && at < n && top[at - 1].share < c.share; at--) top[at] = top[at - 1];
        if (at < n) top[at] = c;
    }
    for (int i = 0; i < n; i++)
        if (!push_width(a, s, &top[i]) || !push_ranks(a, s, &top[i])) return HN_NOMEM(dg);
    return HONE_OK;
}

/* ---- changes that are screened together ---- */
typedef HN_VEC(hn_change) changes;

/* Mean of the positive part of a normal value. */
static double positive_part(double mean, double sd)
{
    const double z = mean / sd;
    return mean * erfc(-z / sqrt(2)) / 2 + sd * exp(-z * z / 2) / sqrt(2 * 3.141592653589793);
}

/* Of launches the gain is up to a microsecond each, and regions with more of the time have more launches; measured: from 11% lost to 8%
 * won over some 20 regions. */
static bool add_early(hn_arena *a, changes *to, int region, const contended *c, int64_t base)
{
    const double sd = 0.003 + 0.01 * sqrt(c->share);
    const hn_knob_def *k = hn_knob_get(HN_KNOB_plan_early);
    int64_t value[MAX_VALUES];
    for (int i = 0, n = hn_knob_domain(k, value, MAX_VALUES); i < n; i++)
        if (value[i] != base && !hn_vec_push(a, to, ((hn_change){ k->id, c->label, value[i], .group = region, .sd = sd }))) return false;
    return true;
}

/* The times of candidates alone hold in the engine by half, and miss by a few percent of the region's time. */
static bool add_ranks(hn_arena *a, changes *to, int region, const contended *c)
{
    for (int i = 0; i < HN_MIN(c->near, (int)MOST_RANKS); i++) {
        const hn_change x = { HN_KNOB_tactic_rank, c->label, i + 1, .group = region, .mean = -0.5 * c->share * (c->ratio[i] - 1),
                              .sd = 0.0005 + 0.05 * c->share };
        if (!hn_vec_push(a, to, x)) return false;
    }
    return true;
}

static bool has_axis(const hn_search *s, hn_knob id)
{
    for (int i = 0; i < s->n_axis; i++)
        if (s->axis[i].knob == id) return true;
    return false;
}

/* What a change gains on average, were it known whether it does. */
static int by_worth(const void *x, const void *y)
{
    const hn_change *c = x, *d = y;
    const double a = positive_part(c->mean, c->sd), b = positive_part(d->mean, d->sd);
    return a != b ? (a < b) - (a > b) : c->group != d->group ? c->group - d->group : (c->value > d->value) - (c->value < d->value);
}

/* Regions that take part, counted from 0. */
static void number_groups(hn_change *c, int n)
{
    int n_group = 0, region[HN_EFFECTS_MOST];
    for (int i = 0; i < n; i++) {
        int g = 0;
        while (g < n_group && region[g] != c[i].group) g++;
        if (g == n_group) region[n_group++] = c[i].group;
        c[i].group = g;
    }
}

int hn_search_changes(hn_arena *a, const hn_search *s, const char *regions, const char *route, int most,
                      hn_change ret[HN_EFFECTS_MOST])
{
    static const double LEAST_OVERLAPPED = 0.0005; /* of the time; smaller regions are hardly launched at all */
    changes all = { 0 };
    hn_route from = { 0 };
    contended c;
    if (!s->grows) return 0;
    if (hn_route_parse(a, route, &from, NULL) != HONE_OK) return -1;
    const bool early = has_axis(s, HN_KNOB_plan_early);
    const int64_t base = base_value(&from, hn_knob_get(HN_KNOB_plan_early));
    for (int region = 0; (regions = read_region(a, regions, &c)) != NULL; region++) {
        if (early && c.share >= LEAST_OVERLAPPED && !add_early(a, &all, region, &c, base)) return -1;
        if (c.share >= LEAST_SHARE && !add_ranks(a, &all, region, &c)) return -1;
    }
    if (all.n) qsort(all.at, (size_t)all.n, sizeof *all.at, by_worth);
    const int n = HN_MIN(HN_MIN(all.n, most), (int)HN_EFFECTS_MOST);
    if (n > 0) memcpy(ret, all.at, (size_t)n * sizeof *ret);
    number_groups(ret, n);
    return HN_MAX(n, 0);
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

/* Smaller goes first. */
static int turn_of(const hn_search *s, const hn_space_axis *x)
{
    return !s->grows ? 0 : x->taken + x->turn;
}

static int next_axis(const hn_search *s)
{
    int best = -1;
    for (int i = 0; i < s->n_axis; i++)
        if (s->axis[i].taken < s->axis[i].n && (best < 0 || turn_of(s, &s->axis[i]) < turn_of(s, &s->axis[best]))) best = i;
    return best;
}

bool hn_search_has_early(const hn_search *s)
{
    const int i = next_axis(s);
    return i >= 0 && turn_of(s, &s->axis[i]) < SCREEN_TURN;
}

const char *hn_search_next(hn_arena *a, hn_search *s, int *ret_axis)
{
    hn_str text = { 0 };
    const int best = next_axis(s);
    if (best < 0) return NULL;
    hn_space_axis *x = &s->axis[best];
    hn_str_add(&text, s->fixed);
    add_setting(&text, x->knob, x->pattern, x->value[x->taken++]);
    *ret_axis = best;
    return finish(a, &text);
}

/* Mixed radix, the first axis fastest; digit 0 is the base value, so route 0 would be the base itself. */
const char *hn_search_product(hn_arena *a, const hn_search *s, const bool *use, int64_t i)
{
    hn_str text = { 0 };
    hn_str_add(&text, s->fixed);
    i++;
    for (int k = 0; k < s->n_axis; k++) {
        const hn_space_axis *x = &s->axis[k];
        if (use && !use[k]) continue;
        const int64_t digit = i % (x->n + 1);
        i /= x->n + 1;
        if (digit) add_setting(&text, x->knob, x->pattern, x->value[digit - 1]);
    }
    return finish(a, &text);
}

const char *hn_search_over(hn_arena *a, const char *from, const char *change)
{
    hn_route r = { 0 }, over = { 0 };
    hn_str text = { 0 };
    if (hn_route_parse(a, from, &r, NULL) != HONE_OK || hn_route_parse(a, change, &over, NULL) != HONE_OK) return NULL;
    for (int i = 0; i < over.n; i++)
        if (!hn_route_set(a, &r, over.at[i].knob, over.at[i].pattern, over.at[i].value)) return NULL;
    hn_route_print(&r, &text);
    return finish(a, &text);
}

const char *hn_search_change_text(hn_arena *a, const hn_change *c)
{
    hn_str text = { 0 };
    add_setting(&text, c->knob, c->pattern, c->value);
    return finish(a, &text);
}

const char *hn_search_with(hn_arena *a, const char *from, const hn_change *c, int n, uint64_t on)
{
    hn_route r = { 0 };
    hn_str text = { 0 };
    if (hn_route_parse(a, from, &r, NULL) != HONE_OK) return NULL;
    for (int i = 0; i < n; i++)
        if ((on >> i & 1) && !hn_route_set(a, &r, c[i].knob, c[i].pattern, c[i].value)) return NULL;
    hn_route_print(&r, &text);
    return finish(a, &text);
}
