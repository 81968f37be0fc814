/* Which routes are tried, in which order. The space grows while a strategy runs: a route may open knobs that the base never reads. */
#include "tune/tune_int.h"

#include <string.h>

enum { RANDOM_TRIALS = 64 };

bool hn_strategy_enough(const hn_tuner *t)
{
    return hn_tune_out_of_time(t) || (t->o->max_trials && t->r->trials.n > t->o->max_trials);
}

/* Ahead of each trial. */
static hone_status tell(hn_tuner *t, int64_t done, int64_t total, hn_diag *dg)
{
    if (!hn_tune_step(t, "trials", done, total)) return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
    return hn_tune_catch_up(t, /* wait= */ false, dg);
}

static hone_status try_over(hn_tuner *t, const char *from, const char *change, hn_outcome *ret, hn_diag *dg)
{
    const char *route = change ? hn_search_over(t->a, from, change) : NULL;
    return route ? hn_trial_run(t, route, ret, dg) : HN_NOMEM(dg);
}

/* Regions are screened when what moves the whole engine is settled. */
static hone_status screen_in_time(hn_tuner *t, hn_diag *dg)
{
    if (!t->s.screens || t->screened || hn_strategy_enough(t) || hn_search_has_early(&t->s)) return HONE_OK;
    t->screened = true;
    return hn_screen_run(t, dg);
}

/* One knob at a time over the incumbent's route: what helped stays. */
static hone_status singles(hn_tuner *t, bool *helped, hn_diag *dg)
{
    const char *one;
    int axis = 0;
    for (int64_t i = 0; !hn_strategy_enough(t); i++) {
        hn_outcome o;
        HN_TRY(screen_in_time(t, dg));
        if ((one = hn_search_next(t->a, &t->s, &axis)) == NULL || hn_strategy_enough(t)) break;
        HN_TRY(tell(t, i, hn_search_n_single(&t->s), dg));
        HN_TRY(try_over(t, t->route, one, &o, dg));
        if (o == HN_OUT_FASTER) helped[axis] = true;
    }
    return HONE_OK;
}

static hone_status product(hn_tuner *t, const bool *use, hn_diag *dg)
{
    for (int64_t i = 0; i < hn_search_n_product(&t->s, use) && !hn_strategy_enough(t); i++) {
        hn_outcome o;
        HN_TRY(tell(t, i, hn_search_n_product(&t->s, use), dg));
        HN_TRY(try_over(t, t->base, hn_search_product(t->a, &t->s, use, i), &o, dg));
    }
    return HONE_OK;
}

/* Draws until RANDOM_TRIALS routes were tried; a small space is drawn empty with all but certainty. */
static hone_status random_routes(hn_tuner *t, hn_diag *dg)
{
    enum { DRAWS = 32 }; /* a route: one stays undrawn once in exp(32) */
    const int64_t before = t->r->trials.n;
    for (int64_t draw = 0; !hn_strategy_enough(t); draw++) {
        const int64_t all = hn_search_n_product(&t->s, NULL), n = HN_MIN(all, (int64_t)RANDOM_TRIALS);
        const int64_t done = t->r->trials.n - before;
        hn_outcome o;
        if (done >= n || draw >= n * DRAWS) break;
        HN_TRY(tell(t, done, n, dg));
        HN_TRY(try_over(t, t->base, hn_search_product(t->a, &t->s, NULL, hn_rng_below(&t->rng, all)), &o, dg));
    }
    return HONE_OK;
}

static hone_status fast(hn_tuner *t, hn_diag *dg)
{
    bool helped[HN_TUNE_MAX_AXES] = { false };
    return singles(t, helped, dg);
}

static hone_status full(hn_tuner *t, hn_diag *dg)
{
    return product(t, NULL, dg);
}

static hone_status mixed(hn_tuner *t, hn_diag *dg)
{
    bool helped[HN_TUNE_MAX_AXES] = { false };
    int n = 0;
    HN_TRY(singles(t, helped, dg));
    for (int i = 0; i < t->s.n_axis; i++) n += helped[i];
    return n > 1 ? product(t, helped, dg) : HONE_OK;
}

static const struct {
    const char *name;
    hone_status (*run)(hn_tuner *t, hn_diag *dg);
} strategies[] = { { "mixed", mixed }, { "fast", fast }, { "full", full }, { "random", random_routes } };

static int find(const char *name)
{
    for (int i = 0; name && i < HN_COUNT(strategies); i++)
        if (strcmp(strategies[i].name, name) == 0) return i;
    return name ? -1 : 0;
}

bool hn_strategy_known(const char *name)
{
    return find(name) >= 0;
}

hone_status hn_strategy_run(hn_tuner *t, hn_diag *dg)
{
    return strategies[find(t->o->strategy)].run(t, dg);
}

hone_status hn_strategy_list(hn_tuner *t, hn_diag *dg)
{
    enum { MOST = 100000 };
    const bool one_by_one = find(t->o->strategy) < 2;
    const int64_t n = one_by_one ? hn_search_n_single(&t->s) : hn_search_n_product(&t->s, NULL);
    for (int64_t i = 0; i < HN_MIN(n, (int64_t)MOST); i++) {
        int axis;
        const char *change = one_by_one ? hn_search_next(t->a, &t->s, &axis) : hn_search_product(t->a, &t->s, NULL, i);
        const char *route = change ? hn_search_over(t->a, t->base, change) : NULL;
        const hn_trial x = { .route = route, .outcome = HN_OUT_LISTED, .reason = "", .err = -1, .knobs = "" };
        if (!route || !hn_vec_push(t->a, &t->r->trials, x)) return HN_NOMEM(dg);
    }
    return HONE_OK;
}
