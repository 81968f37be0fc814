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
    memcpy(s->at[s->n].value, value, (size_t)n * sizeof *value);
    s->n++;
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
    for (int i = 0; i < s->n; i++) hn_str_addf(out, "_%s%lld", s->at[i].name, (long long)p[i]);
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

int hn_tactic_points(const hn_tactic_def *td, const hn_region *r, const hn_target *t, int cap,
                     int64_t (*ret_p)[HN_MAX_PARAM], double *ret_ns)
{
    hn_space s = { 0 };
    if (td->space) td->space(r, t, &s);
    const int64_t total = space_size(&s);
    point *all = calloc((size_t)total, sizeof *all);
    if (!all) return 0;
    int n = 0;
    for (int64_t k = 0; k < total; k++) {
        point *x = &all[n];
        nth_point(&s, k, x->p);
        if (td->legal && !td->legal(r, t, x->p)) continue;
        x->ns = td->cost(r, t, x->p);
        x->order = n++;
    }
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
