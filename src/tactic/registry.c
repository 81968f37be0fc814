/* The table of tactics, reasons as text, parameter spaces. */
#include "tactic/tactic.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define X(name) extern const hn_tactic_def hn_tactic_##name;
#include "tactic/tactics.def"
#undef X

static const hn_tactic_def *const table[] = {
#define X(name) &hn_tactic_##name,
#include "tactic/tactics.def"
#undef X
};

int hn_tactic_count(void)
{
    return HN_COUNT(table);
}

const hn_tactic_def *hn_tactic_at(int i)
{
    return table[i];
}

const hn_tactic_def *hn_tactic_find(const char *name)
{
    for (int i = 0; i < HN_COUNT(table); i++)
        if (strcmp(table[i]->name, name) == 0) return table[i];
    return NULL;
}

const char *hn_fit_text(hn_fit f)
{
    static const char *const text[] = {
#define X(name, text_) text_,
#include "tactic/fits.def"
#undef X
    };
    return (unsigned)f < HN_COUNT(text) ? text[f] : "unknown";
}

void hn_space_add_list(hn_space *s, const char *name, int n, const int64_t *value)
{
    if (HN_NEVER(s->n >= HN_MAX_PARAM || n > HN_MAX_PARAM_VALUE || n < 1)) return;
    s->at[s->n].name = name;
    s->at[s->n].n = n;
    s->at[s->n].settled = false;
    memcpy(s->at[s->n].value, value, (size_t)n * sizeof *value);
    s->n++;
}

void hn_space_add_settled(hn_space *s, const char *name, int n, const int64_t *value)
{
    hn_space_add_list(s, name, n, value);
    s->at[s->n - 1].settled = true;
}

void hn_space_add(hn_space *s, const char *name, int64_t lo, int64_t hi, int64_t step)
{
    int64_t v[HN_MAX_PARAM_VALUE];
    int n = 0;
    for (int64_t x = lo; x <= hi && n < HN_MAX_PARAM_VALUE; x += step) v[n++] = x;
    hn_space_add_list(s, name, n, v);
}

void hn_tactic_print(const hn_tactic_def *t, const hn_space *s, const int64_t *p, hn_str *out)
{
    hn_str_add(out, t->name);
    for (int i = 0; i < s->n; i++)
        if (!s->at[i].settled || p[i] != s->at[i].value[0])
            hn_str_addf(out, "_%s%lld", s->at[i].name, (long long)p[i]);
}

/* ---- points, best predicted first ---- */
typedef struct point {
    int64_t p[HN_MAX_PARAM];
    double ns;
    int order;
} point;

static int by_cost(const void *x, const void *y)
{
    const point *a = x, *b = y;
    if (a->ns != b->ns) return a->ns < b->ns ? -1 : 1;
    return a->order - b->order;
}

static int64_t space_size(const hn_space *s)
{
    int64_t n = 1;
    for (int i = 0; i < s->n; i++) n *= s->at[i].n;
    return n;
}

static void nth_point(const hn_space *s, int64_t k, int64_t *p)
{
    for (int i = s->n - 1; i >= 0; i--) {
        p[i] = s->at[i].value[k % s->at[i].n];
        k /= s->at[i].n;
    }
}

/* ---- pins ---- */
static bool pinned(const hn_tactic_def *td, const hn_pins *pins, int i, int64_t *ret)
{
    return pins && td->pin[i] && pins->get(pins->user, td->pin[i], ret);
}

static bool has_value(const hn_space *s, int i, int64_t v)
{
    for (int k = 0; k < s->at[i].n; k++)
        if (s->at[i].value[k] == v) return true;
    return false;
}

/* Settled parameters shrink to one value before points are counted: the route's, else their own. */
static void settle(const hn_tactic_def *td, const hn_pins *pins, hn_space *s)
{
    for (int i = 0; i < s->n; i++) {
        int64_t v;
        if (!s->at[i].settled || s->at[i].n == 1) continue;
        if (pinned(td, pins, i, &v)) {
            if (has_value(s, i, v)) s->at[i].value[0] = v;
            else pins->miss(pins->user, td->pin[i], v);
        }
        s->at[i].n = 1;
    }
}

static bool varies(const point *all, int n, int i)
{
    for (int k = 1; k < n; k++)
        if (all[k].p[i] != all[0].p[i]) return true;
    return false;
}

/* Points whose parameter i is v, moved to the front; 0 when there is none, and then nothing has moved. */
static int keep_value(point *all, int n, int i, int64_t v)
{
    int m = 0;
    for (int k = 0; k < n; k++)
        if (all[k].p[i] == v) all[m++] = all[k];
    return m;
}

static int apply_pins(const hn_tactic_def *td, const hn_pins *pins, const hn_space *s, point *all, int n)
{
    for (int i = 0; i < s->n; i++) {
        int64_t v;
        if (s->at[i].settled || !varies(all, n, i) || !pinned(td, pins, i, &v)) continue;
        const int m = keep_value(all, n, i, v);
        if (m == 0) pins->miss(pins->user, td->pin[i], v);
        else n = m;
    }
    return n;
}

static int legal_points(const hn_tactic_def *td, const hn_region *r, const hn_target *t, const hn_space *s, point *all)
{
    const int64_t total = space_size(s);
    int n = 0;
    for (int64_t k = 0; k < total; k++) {
        point *x = &all[n];
        nth_point(s, k, x->p);
        if (td->legal && !td->legal(r, t, x->p)) continue;
        x->ns = td->cost(r, t, x->p);
        x->order = n++;
    }
    return n;
}

int hn_tactic_points(const hn_tactic_def *td, const hn_region *r, const hn_target *t, const hn_pins *pins, int cap,
                     int64_t (*ret_p)[HN_MAX_PARAM], double *ret_ns)
{
    hn_space s = { 0 }, own;
    if (td->space) td->space(r, t, &s);
    own = s;
    settle(td, pins, &s);
    settle(td, NULL, &own);
    point *all = calloc((size_t)space_size(&s), sizeof *all);
    if (!all) return 0;
    int n = legal_points(td, r, t, &s, all);
    if (n == 0) { /* what the route settled is legal nowhere */
        for (int i = 0; i < s.n; i++)
            if (s.at[i].settled && s.at[i].value[0] != own.at[i].value[0])
                pins->miss(pins->user, td->pin[i], s.at[i].value[0]);
        n = legal_points(td, r, t, &own, all);
    }
    n = apply_pins(td, pins, &s, all, n);
    qsort(all, (size_t)n, sizeof *all, by_cost);
    n = HN_MIN(n, cap);
    for (int i = 0; i < n; i++) {
        memcpy(ret_p[i], all[i].p, sizeof all[i].p);
        ret_ns[i] = all[i].ns;
    }
    free(all);
    return n;
}

double hn_roofline_ns(const hn_target *t, double flops, double bytes, double eff_flops, double eff_bytes)
{
    const double compute = flops / (t->peak_gflops * eff_flops);
    const double memory = bytes / (t->bandwidth_gbs * eff_bytes);
    return fmax(compute, memory);
}
