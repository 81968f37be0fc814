/* A tuning session: the default engine, the search, the confirming race, what is said at the end. */
#include "tune/tune_int.h"

#include "core/target.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONFIRM_ROUNDS = 40,
    DEFAULT_PATIENCE = 10,
};

const char *hn_outcome_name(hn_outcome o)
{
    static const char *const name[] = { "?", "faster", "not faster", "same engine", "inaccurate", "build failed",
                                        "crashed", "timed out", "listed", "out of memory", "screened" };
    return (unsigned)o < HN_COUNT(name) ? name[o] : name[0];
}

bool hn_tune_out_of_time(const hn_tuner *t)
{
    return t->deadline_ns && hn_now_ns() >= t->deadline_ns;
}

bool hn_tune_pulse(hn_tuner *t)
{
    return !t->o->progress || t->o->progress(t->o->progress_user, t->phase ? t->phase : "", t->done, t->total);
}

bool hn_tune_step(hn_tuner *t, const char *phase, int64_t done, int64_t total)
{
    t->phase = phase;
    t->done = done;
    t->total = total;
    return hn_tune_pulse(t);
}

static hone_status stopped(hn_diag *dg)
{
    return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
}

/* ---- begin and end ---- */
static hone_status judge_default(hn_tuner *t, const char *engine, hn_trial *trial, hn_diag *dg)
{
    char how[64];
    const char *broken;
    if (t->o->references) HN_TRY(t->o->references(t->o->references_user, dg));
    const int64_t t0 = hn_now_ns();
    HN_TRY_IN(dg, hn_judge(t, engine, trial, &broken, how, dg), "running the default engine");
    trial->cost.judge_s = (double)(hn_now_ns() - t0) * 1e-9;
    /* Where no bound is stated a route may not be worse than reassociation makes it: four times the default's error. */
    t->r->bound = fmax(4 * trial->err, 1e-6);
    if (!broken && isfinite(trial->err)) return HONE_OK;
    hn_hint(dg, "Allow a larger error, or start from a route that keeps the bound.");
    return HN_RAISE(dg, HONE_E_ACCURACY, "the base route is not accurate enough: %s",
                    broken ? broken : "its outputs cannot be compared");
}

static hone_status status_of(hn_outcome o)
{
    switch (o) {
    case HN_OUT_TIMED_OUT: return HONE_E_TIMEOUT;
    case HN_OUT_OUT_OF_MEMORY: return HONE_E_NOMEM;
    case HN_OUT_CRASHED: return HONE_E_CRASH;
    default: return HONE_E_UNSUPPORTED;
    }
}

/* Whatever the budget says there has to be an engine: the default's build has no deadline. */
static hone_status start(hn_tuner *t, int64_t t0, hn_diag *dg)
{
    hn_trial trial = { .route = t->base, .reason = "", .outcome = HN_OUT_NOT_FASTER, .knobs = "", .runners_up = "" };
    const int64_t deadline = t->deadline_ns;
    t->default_engine = t->incumbent = NULL;
    const char *engine = hn_arena_printf(t->a, "%s/default.hone", t->dir);
    if (!engine) return HN_NOMEM(dg);
    if (!hn_tune_step(t, "default build", 0, 0)) return stopped(dg);
    t->patience = DEFAULT_PATIENCE;
    t->deadline_ns = 0;
    HN_TRY(hn_drive_build(t, t->base, engine, &trial, dg));
    if (trial.outcome != HN_OUT_NOT_FASTER)
        return HN_RAISE(dg, status_of(trial.outcome), "the default route does not build: %s", trial.reason);
    t->unjudged = t->o->standing && t->o->references && t->o->references_ready && !t->o->references_ready(t->o->references_user);
    if (!t->unjudged) HN_TRY(judge_default(t, engine, &trial, dg));
    t->patience = 1;
    t->deadline_ns = deadline;
    t->route = t->base;
    t->lead = trial;
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    if (!t->unjudged) HN_TRY(hn_publish(engine, t->engine_path, dg));
    t->default_engine = t->incumbent = engine;
    t->r->err = trial.err;
    t->r->start_s = (double)(hn_now_ns() - t0) * 1e-9;
    if (hn_tune_out_of_time(t))
        t->r->note = hn_arena_printf(t->a, "the references and the default engine took %.1f s of the %.1f s allowed: no route was tried",
                                     t->r->start_s, t->o->budget_s);
    HN_TRY(hn_trial_learn(t, &trial, dg));
    return hn_search_grow_regions(t->a, &t->s, trial.runners_up, dg);
}

static void announce(hn_tuner *t, double ratio, double lo, double hi, bool confirmed)
{
    t->r->route = t->route;
    t->r->speedup = ratio;
    t->r->lo = lo;
    t->r->hi = hi;
    t->r->err = t->lead.err;
    t->r->confirmed = confirmed;
}

static void end_standing(hn_tuner *t)
{
    hn_runner_stop(&t->builder);
    for (int i = 0; i < HN_COUNT(t->standing); i++) hn_runner_stop(&t->standing[i]);
}

/* The lead goes back to the default. */
static void lose_lead(hn_tuner *t, const char *why)
{
    for (int i = 0; i < t->r->trials.n; i++) {
        hn_trial *x = &t->r->trials.at[i];
        if (strcmp(x->route, t->route) == 0) x->outcome = HN_OUT_INACCURATE, x->reason = why;
    }
    remove(t->incumbent);
    t->incumbent = t->default_engine;
    t->route = t->base;
    t->lead = t->r->trials.at[0];
    t->lead_ratio = t->lead_lo = t->lead_hi = 1;
    t->deadline_ns = t->end_ns;
    t->n_lost++;
}

/* References that take longer than the budget leave the race that confirms its time. */
static void keep_time_to_confirm(hn_tuner *t)
{
    if (t->end_ns) t->end_ns = HN_MAX(t->end_ns, hn_now_ns() + t->end_ns - t->lead_deadline_ns);
}

hone_status hn_tune_catch_up(hn_tuner *t, bool wait, hn_diag *dg)
{
    char how[64];
    const char *broken = NULL;
    if (!t->unjudged || (!wait && !t->o->references_ready(t->o->references_user))) return HONE_OK;
    if (wait) t->deadline_ns = 0;
    HN_TRY(judge_default(t, t->default_engine, &t->r->trials.at[0], dg));
    t->unjudged = false;
    t->r->err = t->r->trials.at[0].err;
    if (t->incumbent != t->default_engine) {
        hn_diag why = { 0 };
        const hone_status s = hn_judge(t, t->incumbent, &t->lead, &broken, how, &why);
        if (s == HONE_E_CANCELLED) return stopped(dg);
        if (s != HONE_OK) broken = hn_arena_printf(t->a, "while running: %s", why.message);
        if (broken) lose_lead(t, broken);
    }
    if (wait) keep_time_to_confirm(t);
    return hn_publish(t->incumbent, t->engine_path, dg);
}

/* Fresh processes, fresh samples: the winner stands only when the interval excludes "no gain", else the default returns. */
static hone_status confirm(hn_tuner *t, hn_diag *dg)
{
    hn_verdict v;
    HN_TRY(hn_tune_catch_up(t, /* wait= */ true, dg));
    if (t->incumbent == t->default_engine) return HONE_OK;
    t->deadline_ns = t->end_ns;
    if (!hn_tune_step(t, "confirm", 0, 0)) return stopped(dg);
    hn_diag why = { 0 }; /* a winner that breaks now is none */
    const hn_contest c = { .old = t->default_engine, .new = t->incumbent, .rounds = CONFIRM_ROUNDS, .fresh = true };
    end_standing(t);
    const hone_status s = hn_contest_run(t, &c, &v, &why);
    if (s == HONE_E_CANCELLED) return stopped(dg);
    if (s == HONE_OK && v.lo > 0) {
        announce(t, exp(v.race.mean), exp(v.lo), exp(v.hi), true);
        return hn_publish(t->incumbent, t->engine_path, dg);
    }
    t->r->note = hn_arena_printf(t->a, "\"%s\" led, but fresh samples did not prove it faster: %s", t->route,
                                 s == HONE_OK ? "the interval holds \"no gain\", or the time was up" : why.message);
    return hn_publish(t->default_engine, t->engine_path, dg);
}

static hone_status write_inputs(hn_tuner *t, const hn_tensor *in, hn_diag *dg)
{
    t->input = HN_NEW_N(t->a, const char *, t->g->n_in + 1);
    if (!t->input) return HN_NOMEM(dg);
    for (int i = 0; i < t->g->n_in; i++) {
        t->input[i] = hn_arena_printf(t->a, "%s/input_%d.npy", t->dir, i);
        if (!t->input[i]) return HN_NOMEM(dg);
        HN_TRY(hn_write_npy(t->input[i], &in[i], dg));
    }
    return HONE_OK;
}

/* What a stored trial's outcome depends on, beside its route. */
static void print_key(const hn_tuner *t, const hn_tensor *in, hn_str *key)
{
    hn_target target;
    hn_hasher h;
    char d[HN_DIGEST_TEXT];
    hn_target_detect(&target, false);
    hn_hasher_init(&h);
    for (int i = 0; i < t->g->n_in; i++) hn_hasher_bytes(&h, in[i].data, in[i].bytes);
    for (int i = 0; i < t->g->n_out; i++)
        if (t->want[i].data && !t->own[i].data) hn_hasher_bytes(&h, t->want[i].data, t->want[i].bytes); /* somebody's own reference */
    hn_str_addf(key, "%s", hn_digest_text(t->o->model_digest, d));
    hn_str_addf(key, " %s", hn_digest_text(hn_target_fingerprint(&target), d));
    hn_str_addf(key, " %s %d", hn_digest_text(hn_knob_registry_digest(), d), t->o->threads);
    hn_str_addf(key, " %s", t->o->tools ? t->o->tools : "?");
    for (int i = 0; t->o->build_arg && t->o->build_arg[i]; i++) hn_str_addf(key, " %s", t->o->build_arg[i]);
    hn_str_addf(key, " base=%s inputs=%s", t->base, hn_digest_text(hn_hasher_end(&h), d));
    for (int i = 0; i < t->o->n_bound; i++) {
        const hn_bound *b = &t->o->bound[i];
        hn_str_addf(key, " %s%s%s=%g", hn_norm_name(b->norm), b->output ? ":" : "", b->output ? b->output : "", b->limit);
    }
    if (t->o->judge) hn_str_addf(key, " judge=%g %s", t->o->judge_limit, t->o->judge);
}

static hone_status open_store(hn_tuner *t, const hn_tensor *in, hn_diag *dg)
{
    hn_str key = { 0 };
    if (!t->o->store) return HONE_OK;
    print_key(t, in, &key);
    const hone_status s = key.oom ? HN_NOMEM(dg) : hn_store_open(t->o->store, hn_str_get(&key), &t->store, dg);
    hn_str_done(&key);
    return s;
}

enum { CONFIRM_SHARE = 6 }; /* one part in six of the budget is kept for the confirming race, once there is something to confirm */
enum { CONFIRM_SHARE_GPU = 4 }; /* processes take longer to start there, and trials less long: a winner is found sooner than proven */
enum { END_NS = 300000000 }; /* to end processes and write the engine */

static void set_limits(hn_tuner *t)
{
    if (t->o->budget_s <= 0) return;
    const int64_t budget = (int64_t)(t->o->budget_s * 1e9), start = t->o->start_ns ? t->o->start_ns : hn_now_ns();
    t->end_ns = start + budget - HN_MIN(END_NS, budget / 10);
    t->deadline_ns = t->end_ns;
    t->lead_deadline_ns = t->end_ns - budget / (t->o->standing ? CONFIRM_SHARE_GPU : CONFIRM_SHARE);
}

static hone_status session(hn_tuner *t, const hn_tensor *in, int64_t t0, hn_diag *dg)
{
    HN_TRY(write_inputs(t, in, dg));
    HN_TRY(open_store(t, in, dg));
    HN_TRY(start(t, t0, dg));
    HN_TRY(hn_strategy_run(t, dg));
    return confirm(t, dg);
}

/* Stopped is no failure once there is an engine: what was proven before lies on disk and in the store. */
static hone_status end_early(hn_tuner *t, hone_status s, hn_diag *dg)
{
    if (s != HONE_E_CANCELLED || !t->default_engine || t->unjudged) return s;
    hn_diag_clear(dg);
    t->r->stopped = true;
    if (t->incumbent == t->default_engine) return HONE_OK;
    announce(t, t->lead_ratio, t->lead_lo, t->lead_hi, false);
    t->r->note = "stopped before the winner was confirmed on fresh samples";
    return hn_publish(t->incumbent, t->engine_path, dg);
}

static hone_status tune(hn_tuner *t, const hn_tensor *in, int64_t t0, hn_diag *dg)
{
    hn_scratch scratch = { 0 };
    HN_TRY(hn_judge_check_bounds(t, dg));
    HN_TRY(hn_scratch_create("hone-tune-", &scratch, dg));
    t->dir = scratch.path;
    const hone_status s = end_early(t, session(t, in, t0, dg), dg);
    end_standing(t);
    hn_store_close(t->store);
    hn_scratch_remove(&scratch);
    return s;
}

static hone_status learn_reads(hn_tuner *t, const hn_knob_read *read, int n, hn_diag *dg)
{
    for (int i = 0; i < n; i++) HN_TRY(hn_search_grow(t->a, &t->s, hn_knob_get(read[i].knob), dg));
    return HONE_OK;
}

hone_status hn_tune(hn_arena *a, const hn_graph *g, const hn_tensor *in, const hn_tensor *want, const hn_tensor *own,
                    const hn_tune_opts *o, const hn_knob_read *read, int n_read, const char *engine_path,
                    hn_tune_result *ret, hn_diag *dg)
{
    const int64_t t0 = o->start_ns ? o->start_ns : hn_now_ns();
    *ret = (hn_tune_result){ .route = "", .speedup = 1, .lo = 1, .hi = 1, .confidence = 1 - HN_TUNE_ALPHA, .note = "" };
    if (!hn_strategy_known(o->strategy)) {
        hn_hint(dg, "strategies are mixed, fast, full and random");
        return HN_RAISE(dg, HONE_E_INVALID, "there is no strategy \"%s\"", o->strategy);
    }
    hn_tuner t = { .a = a, .o = o, .g = g, .want = want, .own = own, .r = ret, .engine_path = engine_path, .lead_ratio = 1,
                   .lead_lo = 1, .lead_hi = 1 };
    HN_TRY(hn_search_make(a, o->expression, o->base_route, o->n_bound > 0 || o->judge, &t.s, dg));
    t.s.screens = o->standing;
    t.base = hn_search_over(a, o->base_route ? o->base_route : "", "");
    if (!t.base) return HN_NOMEM(dg);
    HN_TRY(learn_reads(&t, read, n_read, dg));
    set_limits(&t);
    hn_rng_init(&t.rng, o->seed + 1);
    if (o->dry_run) return hn_strategy_list(&t, dg);
    t.program = hn_find_program(o->program);
    if (!t.program) {
        hn_hint(dg, "set HONE_PROGRAM to the path of the hone program");
        return HN_RAISE(dg, HONE_E_NOTFOUND, "trials need the hone program, which is not beside this one");
    }
    const hone_status r = tune(&t, in, t0, dg);
    free(t.program);
    ret->elapsed_s = (double)(hn_now_ns() - t0) * 1e-9;
    return r;
}
