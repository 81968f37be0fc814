/* Screening: what may be done to the regions of the leading engine is tried in many at once, and judged by what all trials say. */
#include "tune/tune_int.h"

#include <math.h>
#include <string.h>

enum {
    ROUNDS = 1, /* of a trial of the design; more trials tell more than more rounds of each */
    UNLIMITED = HN_EFFECTS_MOST,
};
static const double TIME_SHARE = 0.7;  /* of what is left for the search; the best guess's race needs some, and other knobs */
static const double WORTH = 0.002;     /* of the log ratio: what is still to be gained where it ends */

typedef struct screening {
    hn_effects e;
    hn_change change[HN_EFFECTS_MOST];
    int n;
    const char *from; /* the route that all changes are made to */
    uint64_t leads;   /* the incumbent's changes */
    int64_t end_ns;   /* 0: none */
    int n_lost;       /* t's when it began */
} screening;

/* Of a trial of the design, in seconds, by those that ran: less what they compiled and timed, for that is cached now. */
static double cost_of_trial(const hn_tuner *t)
{
    double sum = 0, guess = 0.7;
    int n = 0;
    for (int i = 1; i < t->r->trials.n; i++) {
        const hn_trial_cost *c = &t->r->trials.at[i].cost;
        if (c->rounds == 0) continue;
        sum += c->build_s - c->compile_s - c->timing_s - c->library_s + c->judge_s + ROUNDS * c->race_s / c->rounds;
        n++;
    }
    return n ? sum / n : guess;
}

/* Half as many more than a design has room for that the time is enough for: simulated with equal gains, 25 trials find 95% of
 * what 24 changes gain, 82% of what 32 do, 66% of 48, which is ever more; and what comes last in the order of promise is less. */
static int changes_in_time(const hn_tuner *t, double seconds)
{
    int n = 0;
    hn_effects e = { 0 };
    while (n < UNLIMITED && hn_effects_add(&e, n, 0, 1) && hn_effects_rows(&e) * cost_of_trial(t) <= seconds) n++;
    return HN_MIN(n + n / 2, (int)UNLIMITED);
}

static bool goes_on(const hn_tuner *t, const screening *s)
{
    return !hn_strategy_enough(t) && t->n_lost == s->n_lost && !(s->end_ns && hn_now_ns() >= s->end_ns);
}

static bool changes_of(hn_tuner *t, screening *s, const char *route, uint64_t *ret)
{
    *ret = 0;
    if (strcmp(route, s->from) == 0) return true;
    for (int i = 0; i < s->e.n_tried; i++) {
        const char *text = hn_search_with(t->a, s->from, s->change, s->n, *ret = s->e.tried[i]);
        if (text && strcmp(text, route) == 0) return true;
    }
    return false;
}

/* Another route made the same engine: what tells the two apart changes nothing. */
static void learn_twin(hn_tuner *t, screening *s, uint64_t on, const hn_trial *trial)
{
    uint64_t other;
    for (int i = 0; i < t->r->trials.n; i++) {
        const hn_trial *x = &t->r->trials.at[i];
        if (x == trial || strcmp(x->payload, trial->payload) != 0 || !changes_of(t, s, x->route, &other)) continue;
        hn_effects_observe(&s->e, on, other, 0, 0.0005);
        return;
    }
}

static void learn(hn_tuner *t, screening *s, uint64_t on, const hn_trial *trial)
{
    if (trial->outcome == HN_OUT_SAME_ENGINE) learn_twin(t, s, on, trial);
    else if (trial->ratio > 0) hn_effects_observe(&s->e, on, s->leads, log(trial->ratio), hn_trial_error(t, trial));
    else hn_effects_broke(&s->e, on);
    if (trial->outcome == HN_OUT_FASTER) s->leads = on;
}

static hone_status try(hn_tuner *t, screening *s, uint64_t on, bool decides, hn_diag *dg)
{
    const hn_trial *trial;
    const char *route = hn_search_with(t->a, s->from, s->change, s->n, on);
    const char *note = hn_arena_printf(t->a, "screening: %d of %d changes at once", __builtin_popcountll(on), s->e.n_group);
    if (!route || !note) return HN_NOMEM(dg);
    if (!hn_tune_step(t, "screening", s->e.n_tried, hn_effects_rows(&s->e))) return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
    HN_TRY(hn_tune_catch_up(t, /* wait= */ false, dg));
    if (t->n_lost > s->n_lost) return HONE_OK;
    HN_TRY(hn_trial_survey(t, route, decides ? 0 : ROUNDS, decides ? "" : note, &trial, dg));
    if (trial) learn(t, s, on, trial);
    return HONE_OK;
}

/* What these changes gain over those of the incumbent. */
static double ahead(screening *s, uint64_t on)
{
    return hn_effects_sum(&s->e, on) - hn_effects_sum(&s->e, s->leads);
}

/* The best guess races until it is clear; trials of the design and draws are for the estimates. */
static hone_status run(hn_tuner *t, screening *s, hn_diag *dg)
{
    uint64_t on;
    bool designed;
    while (goes_on(t, s) && hn_effects_next(&s->e, &t->rng, &on, &designed)) {
        const bool decides = !designed && on == hn_effects_best(&s->e) && ahead(s, on) > WORTH;
        HN_TRY(try(t, s, on, decides, dg));
        if (!designed && hn_effects_left(&s->e) < WORTH && hn_effects_best(&s->e) == on) break;
    }
    return HONE_OK;
}

/* Whatever ended it, what it says is best gets its race. */
static hone_status conclude(hn_tuner *t, screening *s, hn_diag *dg)
{
    const uint64_t best = hn_effects_best(&s->e);
    if (best && ahead(s, best) > 0 && !hn_strategy_enough(t) && t->n_lost == s->n_lost) HN_TRY(try(t, s, best, true, dg));
    for (int i = 0; i < s->n; i++) {
        hn_effect x = { .setting = hn_search_change_text(t->a, &s->change[i]), .taken = s->leads >> i & 1 };
        x.gain = hn_effects_gain(&s->e, i, &x.sd);
        if (!x.setting || !hn_vec_push(t->a, &t->r->effects, x)) return HN_NOMEM(dg);
    }
    return HONE_OK;
}

hone_status hn_screen_run(hn_tuner *t, hn_diag *dg)
{
    screening *s = HN_NEW(t->a, screening);
    int most = UNLIMITED;
    if (!s) return HN_NOMEM(dg);
    if (t->lead_deadline_ns) {
        const int64_t now = hn_now_ns(), left = t->lead_deadline_ns - now;
        most = changes_in_time(t, TIME_SHARE * (double)left * 1e-9);
        s->end_ns = now + (int64_t)(TIME_SHARE * (double)left);
    }
    s->n_lost = t->n_lost;
    s->from = t->route;
    s->n = hn_search_changes(t->a, &t->s, t->lead.runners_up, s->from, most, s->change);
    if (s->n < 0) return HN_NOMEM(dg);
    for (int i = 0; i < s->n; i++) hn_effects_add(&s->e, s->change[i].group, s->change[i].mean, s->change[i].sd);
    if (s->n == 0) return HONE_OK;
    HN_TRY(run(t, s, dg));
    return conclude(t, s, dg);
}
