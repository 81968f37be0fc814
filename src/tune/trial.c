/* One trial: build, dedupe, judge, race, record. */
#include "tune/tune_int.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MAX_ROUNDS = 24 }; /* three times what separates 5% from a spread of 2% between pairs of processes */

/* ---- one trial ---- */
hone_status hn_publish(const char *from, const char *to, hn_diag *dg)
{
    hn_bytes file = { 0 };
    HN_TRY(hn_map_file(from, &file, dg));
    const hone_status s = hn_write_file_atomic(to, file.at, file.n, dg);
    hn_unmap(&file);
    return s;
}

static hone_status judge_and_race(hn_tuner *t, const char *engine, hn_trial *trial, char how[64], hn_diag *why)
{
    hn_verdict v;
    const char *broken;
    const int64_t t0 = hn_now_ns();
    broken = NULL;
    if (!t->unjudged) HN_TRY(hn_judge(t, engine, trial, &broken, how, why));
    const int64_t t1 = hn_now_ns();
    trial->cost.judge_s = (double)(t1 - t0) * 1e-9;
    if (broken) {
        trial->outcome = HN_OUT_INACCURATE;
        trial->reason = broken;
        return HONE_OK;
    }
    const hn_contest c = { .old = t->incumbent, .new = engine, .rounds = t->survey ? t->survey : MAX_ROUNDS,
                           .survey = t->survey > 0, .fresh = !t->o->standing };
    const hone_status s = hn_contest_run(t, &c, &v, why);
    memcpy(how, v.how, sizeof v.how);
    trial->cost.race_s = (double)(hn_now_ns() - t1) * 1e-9;
    trial->cost.rounds = v.race.n;
    trial->clock_mhz = v.clock_mhz;
    HN_TRY(s);
    trial->ratio = exp(v.race.mean);
    trial->lo = exp(v.lo);
    trial->hi = exp(v.hi);
    trial->outcome = v.lo > 0 ? HN_OUT_FASTER : t->survey ? HN_OUT_SCREENED : HN_OUT_NOT_FASTER;
    return HONE_OK;
}

static const hn_trial *seen_payload(const hn_tuner *t, const hn_trial *trial)
{
    for (int i = 0; i < t->r->trials.n; i++) {
        const hn_trial *x = &t->r->trials.at[i];
        if (strcmp(x->payload, trial->payload) == 0 && strcmp(x->route, trial->route) != 0) return x;
    }
    return NULL;
}

/* What went wrong in the trial's own processes says how it ended. */
static void note_accident(hn_tuner *t, hn_trial *trial, const hn_diag *why, const char *how)
{
    const bool memory = why->code == HONE_E_NOMEM || strstr(how, "SIGKILL");
    trial->outcome = why->code == HONE_E_TIMEOUT ? HN_OUT_TIMED_OUT : memory ? HN_OUT_OUT_OF_MEMORY : HN_OUT_CRASHED;
    const bool told = why->code != HONE_E_TIMEOUT && *how;
    trial->reason = why->code == HONE_E_TIMEOUT
                        ? "time limit passed while running"
                        : hn_arena_printf(t->a, "while running: %s%s%s", why->message, told ? ": " : "", told ? how : "");
}

static hone_status take_lead(hn_tuner *t, const hn_trial *trial, const char *engine, hn_diag *dg)
{
    if (t->incumbent != t->default_engine) remove(t->incumbent);
    t->incumbent = hn_arena_strdup(t->a, engine);
    t->route = trial->route;
    t->lead = *trial;
    t->deadline_ns = t->lead_deadline_ns;
    t->lead_ratio *= trial->ratio;
    t->lead_lo *= trial->lo;
    t->lead_hi *= trial->hi;
    if (!t->incumbent) return HN_NOMEM(dg);
    return t->unjudged ? HONE_OK : hn_publish(engine, t->engine_path, dg);
}

static hone_status measure(hn_tuner *t, const char *engine, hn_trial *trial, hn_diag *dg)
{
    hn_diag why = { 0 };
    char how[64] = "";
    const hn_trial *twin = seen_payload(t, trial);
    if (twin) {
        trial->outcome = HN_OUT_SAME_ENGINE;
        trial->err = twin->err;
        trial->reason = hn_arena_printf(t->a, "as \"%s\"", *twin->route ? twin->route : "the default");
        return HONE_OK;
    }
    const hone_status s = judge_and_race(t, engine, trial, how, &why);
    if (s == HONE_E_CANCELLED) {
        *dg = why;
        return s;
    }
    if (s != HONE_OK) note_accident(t, trial, &why, how);
    return HONE_OK;
}

static hone_status run_trial(hn_tuner *t, hn_trial *trial, hn_diag *dg)
{
    char engine[PATH_MAX];
    snprintf(engine, sizeof engine, "%s/%d.hone", t->dir, t->n_engine++);
    trial->outcome = HN_OUT_NOT_FASTER;
    hone_status s = hn_drive_build(t, trial->route, engine, trial, dg);
    if (s == HONE_OK && trial->outcome == HN_OUT_NOT_FASTER) s = measure(t, engine, trial, dg);
    if (s == HONE_OK && trial->outcome == HN_OUT_FASTER) return take_lead(t, trial, engine, dg);
    remove(engine);
    return s;
}

static hn_trial *tried(const hn_tuner *t, const char *route)
{
    for (int i = 0; i < t->r->trials.n; i++)
        if (strcmp(t->r->trials.at[i].route, route) == 0) return &t->r->trials.at[i];
    return NULL;
}

hone_status hn_trial_learn(hn_tuner *t, const hn_trial *trial, hn_diag *dg)
{
    for (const char *at = trial->knobs; at && *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        const hn_knob_def *k = hn_knob_find(at, n);
        if (k) HN_TRY(hn_search_grow(t->a, &t->s, k, dg));
        at += n;
    }
    return HONE_OK;
}

/* A winner is built and raced anew: its engine is gone. */
static hone_status restore(hn_tuner *t, hn_trial *trial, bool *ret_found, hn_diag *dg)
{
    hn_trial old;
    bool found;
    *ret_found = false;
    if (!t->store || !t->o->resume) return HONE_OK;
    HN_TRY(hn_store_get(t->store, t->a, trial->route, &old, &found, dg));
    if (!found || old.outcome == HN_OUT_FASTER || (old.outcome == HN_OUT_SCREENED && !t->survey)) return HONE_OK;
    *trial = old;
    *ret_found = true;
    t->r->n_restored++;
    return HONE_OK;
}

/* A trial that the budget cuts off leaves no trace: it is no outcome of its route. */
hone_status hn_trial_survey(hn_tuner *t, const char *route, int rounds, const char *note, const hn_trial **ret, hn_diag *dg)
{
    hn_trial *known = tried(t, route);
    *ret = known;
    if (known && (known->outcome != HN_OUT_SCREENED || rounds)) return HONE_OK;
    hn_trial trial = { .route = route, .reason = "", .err = -1, .knobs = "", .runners_up = "" };
    bool restored;
    *ret = NULL;
    t->survey = rounds;
    HN_TRY(restore(t, &trial, &restored, dg));
    if (!restored) HN_TRY(run_trial(t, &trial, dg));
    if (!restored && hn_tune_out_of_time(t) && trial.outcome != HN_OUT_FASTER) return HONE_OK;
    if (trial.outcome == HN_OUT_SCREENED) trial.reason = note;
    if (known) *known = trial;
    else if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    HN_TRY(hn_trial_learn(t, &trial, dg));
    if (trial.outcome == HN_OUT_FASTER) HN_TRY(hn_search_grow_regions(t->a, &t->s, trial.runners_up, dg));
    *ret = known ? known : &t->r->trials.at[t->r->trials.n - 1];
    return t->store && !restored ? hn_store_put(t->store, &trial, dg) : HONE_OK;
}

hone_status hn_trial_run(hn_tuner *t, const char *route, hn_outcome *ret, hn_diag *dg)
{
    const hn_trial *trial;
    HN_TRY(hn_trial_survey(t, route, /* rounds= */ 0, "", &trial, dg));
    *ret = trial ? trial->outcome : HN_OUT_NOT_FASTER;
    return HONE_OK;
}

double hn_trial_error(const hn_tuner *t, const hn_trial *trial)
{
    static const double UNKNOWN = 0.005, LEAST = 0.0005; /* of a round; of what repeats in all rounds */
    const double sd = hn_contest_noise(t);
    return fmax((isfinite(sd) ? sd : UNKNOWN) / sqrt(HN_MAX(trial->cost.rounds, 1)), LEAST);
}
