/* One trial: build, dedupe, judge, race, record. */
#include "dev/dev.h"
#include "tune/tune_int.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_ROUNDS = 24, /* three times what separates 5% from a spread of 2% between pairs of processes */
    LOOK = 3,        /* rounds before a race may be given up */
    PAIRS = 3,       /* of blocks in one round */
    MOST_PAIRS = 9,  /* where starting the processes took longer than these */
};
static const double BLOCK_S = 0.02;     /* of one contestant: outlasts timer ticks and wake-ups */
static const double LEAST_GAIN = 0.005; /* a race ends when gains above this are excluded */

/* ---- racing ---- */
/* Blocks alternate, the order turns each pair, so that a drift cancels. r[0] runs the old engine. A GPU that waited for engines to
 * load runs slower for a while: there a pair goes ahead that does not count. */
static hone_status alternate(hn_tuner *t, hn_runner *r, int pairs, double *ret_log_ratio, hn_diag *dg)
{
    double ratio[MOST_PAIRS], ns[2];
    for (int i = t->o->standing ? -1 : 0; i < pairs; i++) {
        const int first = i & 1;
        HN_TRY(hn_runner_block(t, &r[first], BLOCK_S, &ns[first], dg));
        HN_TRY(hn_runner_block(t, &r[!first], BLOCK_S, &ns[!first], dg));
        if (i >= 0) ratio[i] = log(ns[0] / ns[1]);
    }
    *ret_log_ratio = hn_median(ratio, pairs);
    return HONE_OK;
}

/* One after the other, in random order; side by side on a GPU, for there the order of host memory means nothing. */
static hone_status load_both(hn_tuner *t, const hn_contest *c, hn_runner *r, hn_diag *dg)
{
    const char *const engine[2] = { c->old, c->new };
    const bool together = t->o->standing;
    const int first = (int)hn_rng_below(&t->rng, 2);
    HN_TRY(hn_runner_load(t, engine[first], &r[first], dg));
    if (!together) HN_TRY(hn_runner_loaded(t, &r[first], dg));
    HN_TRY(hn_runner_load(t, engine[!first], &r[!first], dg));
    HN_TRY(hn_runner_loaded(t, &r[!first], dg));
    return together ? hn_runner_loaded(t, &r[first], dg) : HONE_OK;
}

/* Figures of two clocks do not compare: a card that grows hot or lacks power slows down. */
static void note_clock(const hn_tuner *t, hn_verdict *v)
{
    hn_device *d;
    if (!t->o->standing || hn_device_for(HN_ARCH_SM, &d, NULL) != HONE_OK) return;
    const int mhz = hn_device_clock_mhz(d);
    if (mhz > 0 && (v->clock_mhz == 0 || mhz < v->clock_mhz)) v->clock_mhz = mhz;
}

/* A round is a pair of fresh processes: where memory lies is a bias that more blocks of one process never remove, so it must vary
 * within the sample. Processes that stand load both engines anew, each beside the last one, which moves them in memory as well. */
static hone_status one_round(hn_tuner *t, const hn_contest *c, hn_verdict *v, hn_diag *dg)
{
    hn_runner own[2] = { 0 }, *r = c->fresh ? own : t->standing;
    double log_ratio = 0;
    hone_status s = load_both(t, c, r, dg);
    const bool dear = c->fresh && t->o->standing;
    if (s == HONE_OK) s = alternate(t, r, dear ? MOST_PAIRS : PAIRS, &log_ratio, dg);
    if (s == HONE_OK) note_clock(t, v);
    for (int i = 0; i < 2 && (s != HONE_OK || c->fresh); i++) hn_runner_stop(&r[i]);
    memcpy(v->how, r[1].how, sizeof v->how);
    if (s == HONE_OK) hn_race_add(&v->race, log_ratio);
    return s;
}

/* The spread of a round in the races of this session, as those of one long race; HUGE_VAL while few rounds tell of it. */
static double usual_sd(const hn_tuner *t)
{
    enum { ENOUGH = 8 };
    return t->noise.n > ENOUGH ? hn_race_sd(&t->noise) : HUGE_VAL;
}

static void learn_noise(hn_tuner *t, const hn_race *r)
{
    if (r->n < 2) return;
    t->noise.n += t->noise.n ? r->n - 1 : r->n;
    t->noise.m2 += r->m2;
}

/* Hopeless: no gain worth having below the 93rd percentile of what Student's t leaves possible, which is 1.5 standard errors
 * of many rounds and 2.5 of three (1.5 + 2/(n - 1) is within 0.1 of it); or, before its own rounds tell, 3.5 standard errors of a
 * usual round below that. This can lose a winner, never make one. */
static bool is_hopeless(const hn_tuner *t, const hn_race *r)
{
    if (r->mean + 3.5 * usual_sd(t) / sqrt(r->n) < LEAST_GAIN) return true;
    if (r->n == 1) return r->mean < -0.25; /* a quarter slower: no noise that we know of */
    return r->n >= LOOK && r->mean + (1.5 + 2.0 / (r->n - 1)) * hn_race_sd(r) / sqrt(r->n) < LEAST_GAIN;
}

/* Ends when the interval excludes "no gain" or every gain worth having, when it is hopeless, or with the time. */
static hone_status race(hn_tuner *t, const hn_contest *c, hn_verdict *v, hn_diag *dg)
{
    *v = (hn_verdict){ .lo = -HUGE_VAL, .hi = HUGE_VAL };
    for (int i = 0; i < c->rounds && !hn_tune_out_of_time(t); i++) {
        const hone_status s = one_round(t, c, v, dg);
        if (s == HONE_E_TIMEOUT && hn_tune_out_of_time(t)) {
            hn_diag_clear(dg);
            return HONE_OK;
        }
        HN_TRY(s);
        if (!hn_tune_step(t, "race", i, c->rounds)) return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
        if (is_hopeless(t, &v->race)) break;
        if (hn_race_interval(&v->race, HN_TUNE_ALPHA, &v->lo, &v->hi) && (v->lo > 0 || v->hi < LEAST_GAIN)) break;
    }
    return HONE_OK;
}

hone_status hn_trial_race(hn_tuner *t, const hn_contest *c, hn_verdict *v, hn_diag *dg)
{
    const hone_status s = race(t, c, v, dg);
    learn_noise(t, &v->race);
    return s;
}

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
    HN_TRY(hn_judge(t, engine, trial, &broken, how, why));
    const int64_t t1 = hn_now_ns();
    trial->cost.judge_s = (double)(t1 - t0) * 1e-9;
    if (broken) {
        trial->outcome = HN_OUT_INACCURATE;
        trial->reason = broken;
        return HONE_OK;
    }
    const hn_contest c = { .old = t->incumbent, .new = engine, .rounds = MAX_ROUNDS, .fresh = !t->o->standing };
    const hone_status s = hn_trial_race(t, &c, &v, why);
    memcpy(how, v.how, sizeof v.how);
    trial->cost.race_s = (double)(hn_now_ns() - t1) * 1e-9;
    trial->cost.rounds = v.race.n;
    trial->clock_mhz = v.clock_mhz;
    HN_TRY(s);
    trial->ratio = exp(v.race.mean);
    trial->lo = exp(v.lo);
    trial->hi = exp(v.hi);
    trial->outcome = v.lo > 0 ? HN_OUT_FASTER : HN_OUT_NOT_FASTER;
    return HONE_OK;
}

static const hn_trial *seen_payload(const hn_tuner *t, const char *payload)
{
    for (int i = 0; i < t->r->trials.n; i++)
        if (strcmp(t->r->trials.at[i].payload, payload) == 0) return &t->r->trials.at[i];
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
    return t->incumbent ? hn_publish(engine, t->engine_path, dg) : HN_NOMEM(dg);
}

static hone_status measure(hn_tuner *t, const char *engine, hn_trial *trial, hn_diag *dg)
{
    hn_diag why = { 0 };
    char how[64] = "";
    const hn_trial *twin = seen_payload(t, trial->payload);
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

static const hn_trial *tried(const hn_tuner *t, const char *route)
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
    if (!found || old.outcome == HN_OUT_FASTER) return HONE_OK;
    *trial = old;
    *ret_found = true;
    t->r->n_restored++;
    return HONE_OK;
}

/* A trial that the budget cuts off leaves no trace: it is no outcome of its route. */
hone_status hn_trial_run(hn_tuner *t, const char *route, hn_outcome *ret, hn_diag *dg)
{
    const hn_trial *known = tried(t, route);
    *ret = known ? known->outcome : HN_OUT_NOT_FASTER;
    if (known) return HONE_OK;
    hn_trial trial = { .route = route, .reason = "", .err = -1, .knobs = "", .runners_up = "" };
    bool restored;
    HN_TRY(restore(t, &trial, &restored, dg));
    if (!restored) HN_TRY(run_trial(t, &trial, dg));
    if (!restored && hn_tune_out_of_time(t) && trial.outcome != HN_OUT_FASTER) return HONE_OK;
    *ret = trial.outcome;
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    HN_TRY(hn_trial_learn(t, &trial, dg));
    if (trial.outcome == HN_OUT_FASTER) HN_TRY(hn_search_grow_regions(t->a, &t->s, trial.runners_up, dg));
    return t->store && !restored ? hn_store_put(t->store, &trial, dg) : HONE_OK;
}
