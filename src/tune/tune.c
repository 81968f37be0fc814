/* The loop: build, dedupe, judge, race, record, confirm. */
#include "tune/tune_int.h"

#include "core/target.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ROUNDS = 40, CONFIRM_ROUNDS = 60, RANDOM_TRIALS = 64 };
static const double BLOCK_S = 0.06;       /* of one contestant in one round */
static const double ALPHA = 0.01;         /* a false winner in an A/A race, by design */
static const double LEAST_GAIN = 0.005;   /* a race ends when gains above this are excluded */

const char *hn_outcome_name(hn_outcome o)
{
    static const char *const name[] = { "?", "faster", "not faster", "same engine", "inaccurate", "build failed",
                                        "crashed", "timed out", "listed" };
    return (unsigned)o < HN_COUNT(name) ? name[o] : name[0];
}

static bool out_of_time(const hn_tuner *t)
{
    return t->deadline_ns && hn_now_ns() >= t->deadline_ns;
}

static bool step(hn_tuner *t, const char *phase, int64_t done, int64_t total)
{
    return !t->o->progress || t->o->progress(t->o->progress_user, phase, done, total);
}

/* ---- racing ---- */
typedef struct verdict {
    hn_race race;
    double lo, hi; /* of log(old / new) */
    bool decided;
} verdict;

/* Blocks alternate, the order turns each round; the statistic is log(old's median / new's median). */
static hone_status one_round(hn_tuner *t, hn_runner *old, hn_runner *new, int round, verdict *v, hn_diag *dg)
{
    double a = 0, b = 0;
    hn_runner *first = round % 2 ? new : old, *second = round % 2 ? old : new;
    HN_TRY(hn_runner_block(t, first, BLOCK_S, round % 2 ? &b : &a, dg));
    HN_TRY(hn_runner_block(t, second, BLOCK_S, round % 2 ? &a : &b, dg));
    hn_race_add(&v->race, log(a / b));
    return HONE_OK;
}

/* Ends when the interval excludes "no gain" or every gain worth having. */
static hone_status race(hn_tuner *t, hn_runner *old, hn_runner *new, int rounds, bool to_the_end, verdict *v, hn_diag *dg)
{
    *v = (verdict){ .lo = -HUGE_VAL, .hi = HUGE_VAL };
    for (int i = 0; i < rounds && !out_of_time(t); i++) {
        HN_TRY(one_round(t, old, new, i, v, dg));
        if (!hn_race_interval(&v->race, ALPHA, &v->lo, &v->hi)) continue;
        v->decided = v->lo > 0 || v->hi < LEAST_GAIN;
        if (v->decided && !to_the_end) break;
    }
    return HONE_OK;
}

/* ---- one trial ---- */
typedef struct contest {
    char *incumbent, *default_engine; /* engine files */
    const char *route;                /* the incumbent's */
    double incumbent_err;
    int n_engine;
} contest;

static hone_status judge_and_race(hn_tuner *t, contest *c, const char *engine, hn_trial *trial, hn_diag *why)
{
    hn_runner old = { 0 }, new = { 0 };
    verdict v;
    hone_status s = hn_runner_start(t, engine, &new, why);
    if (s == HONE_OK) s = hn_runner_judge(t, &new, &trial->err, why);
    if (s == HONE_OK && !(trial->err <= t->r->bound)) {
        trial->outcome = HN_OUT_INACCURATE;
        trial->reason = hn_arena_printf(t->a, "relative L2 error %.3g, bound %.3g", trial->err, t->r->bound);
    } else if (s == HONE_OK) {
        s = hn_runner_start(t, c->incumbent, &old, why);
        if (s == HONE_OK) s = race(t, &old, &new, MAX_ROUNDS, false, &v, why);
        if (s == HONE_OK) {
            trial->ratio = exp(v.race.mean);
            trial->lo = exp(v.lo);
            trial->hi = exp(v.hi);
            trial->outcome = v.lo > 0 ? HN_OUT_FASTER : HN_OUT_NOT_FASTER;
        }
    }
    hn_runner_stop(&old);
    hn_runner_stop(&new);
    return s;
}

static bool seen_payload(const hn_tuner *t, const char *payload)
{
    for (int i = 0; i < t->r->trials.n; i++)
        if (strcmp(t->r->trials.at[i].payload, payload) == 0) return true;
    return false;
}

static void run_trial(hn_tuner *t, contest *c, hn_trial *trial)
{
    hn_diag why = { 0 };
    char engine[PATH_MAX];
    snprintf(engine, sizeof engine, "%s/%d.hone", t->dir, c->n_engine++);
    trial->outcome = HN_OUT_NOT_FASTER;
    hone_status s = hn_drive_build(t, trial->route, engine, trial, &why);
    if (s == HONE_OK && trial->outcome == HN_OUT_NOT_FASTER) {
        if (seen_payload(t, trial->payload)) trial->outcome = HN_OUT_SAME_ENGINE;
        else s = judge_and_race(t, c, engine, trial, &why);
    }
    if (s != HONE_OK) {
        trial->outcome = s == HONE_E_TIMEOUT ? HN_OUT_TIMED_OUT : HN_OUT_CRASHED;
        trial->reason = hn_arena_strdup(t->a, why.message);
    }
    if (trial->outcome != HN_OUT_FASTER) {
        remove(engine);
        return;
    }
    if (strcmp(c->incumbent, c->default_engine) != 0) remove(c->incumbent);
    c->incumbent = hn_arena_strdup(t->a, engine);
    c->route = trial->route;
    c->incumbent_err = trial->err;
}

/* A trial cut off by the budget is no outcome: it is not stored. */
static hone_status try_route(hn_tuner *t, contest *c, const char *route, hn_outcome *ret, hn_diag *dg)
{
    hn_trial trial = { .route = route, .reason = "", .err = -1 };
    const bool restored = t->store && t->o->resume && hn_store_get(t->store, t->a, route, &trial) &&
                          trial.outcome != HN_OUT_FASTER; /* a winner is built and raced anew */
    if (restored) t->r->n_restored++;
    else run_trial(t, c, &trial);
    *ret = trial.outcome;
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    if (t->store && !restored && !out_of_time(t)) HN_TRY(hn_store_put(t->store, &trial, dg));
    return HONE_OK;
}

static bool enough(const hn_tuner *t)
{
    return out_of_time(t) || (t->o->max_trials && t->r->trials.n > t->o->max_trials);
}

/* ---- strategies ---- */
static hone_status singles(hn_tuner *t, contest *c, const hn_search *s, bool *helped, hn_diag *dg)
{
    const int64_t n = hn_search_n_single(s);
    for (int64_t i = 0; i < n && !enough(t); i++) {
        int axis = 0;
        hn_outcome o;
        if (!step(t, "trials", i, n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        /* Changes build on the incumbent's route: what helped stays. */
        const char *one = hn_search_single(t->a, s, i, &axis);
        const char *route = *c->route ? hn_arena_printf(t->a, "%s %s", c->route, one) : one;
        HN_TRY(try_route(t, c, route, &o, dg));
        if (o == HN_OUT_FASTER) helped[axis] = true;
    }
    return HONE_OK;
}

static hone_status product(hn_tuner *t, contest *c, const hn_search *s, const bool *use, bool random, hn_diag *dg)
{
    hn_rng rng;
    hn_rng_init(&rng, t->o->seed + 1);
    const int64_t all = hn_search_n_product(s, use), n = random ? HN_MIN(all, (int64_t)RANDOM_TRIALS) : all;
    for (int64_t i = 0; i < n && !enough(t); i++) {
        hn_outcome o;
        if (!step(t, "trials", i, n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        HN_TRY(try_route(t, c, hn_search_product(t->a, s, use, random ? hn_rng_below(&rng, all) : i), &o, dg));
    }
    return HONE_OK;
}

static int count(const bool *use, int n)
{
    int k = 0;
    for (int i = 0; i < n; i++) k += use[i];
    return k;
}

static hone_status search(hn_tuner *t, contest *c, const hn_search *s, hn_diag *dg)
{
    const char *how = t->o->strategy ? t->o->strategy : "mixed";
    bool *helped = HN_NEW_N(t->a, bool, s->n_axis + 1);
    if (!helped) return HN_NOMEM(dg);
    if (strcmp(how, "full") == 0) return product(t, c, s, NULL, false, dg);
    if (strcmp(how, "random") == 0) return product(t, c, s, NULL, true, dg);
    HN_TRY(singles(t, c, s, helped, dg));
    if (strcmp(how, "fast") == 0 || count(helped, s->n_axis) < 2) return HONE_OK;
    return product(t, c, s, helped, false, dg);
}

static hone_status list_only(hn_tuner *t, const hn_search *s, hn_diag *dg)
{
    const char *how = t->o->strategy ? t->o->strategy : "mixed";
    const bool whole = strcmp(how, "full") == 0;
    const int64_t n = HN_MIN(whole ? hn_search_n_product(s, NULL) : hn_search_n_single(s), (int64_t)100000);
    for (int64_t i = 0; i < n; i++) {
        int axis;
        const char *route = whole ? hn_search_product(t->a, s, NULL, i) : hn_search_single(t->a, s, i, &axis);
        if (!hn_vec_push(t->a, &t->r->trials, ((hn_trial){ .route = route, .outcome = HN_OUT_LISTED, .reason = "", .err = -1 })))
            return HN_NOMEM(dg);
    }
    return HONE_OK;
}

/* ---- begin and end ---- */
static hone_status publish(const char *from, const char *to, hn_diag *dg)
{
    hn_bytes file = { 0 };
    HN_TRY(hn_map_file(from, &file, dg));
    const hone_status s = hn_write_file_atomic(to, file.at, file.n, dg);
    hn_unmap(&file);
    return s;
}

static hone_status start(hn_tuner *t, contest *c, const char *engine_path, hn_diag *dg)
{
    hn_trial trial = { .route = "", .reason = "", .outcome = HN_OUT_NOT_FASTER };
    char engine[PATH_MAX];
    snprintf(engine, sizeof engine, "%s/default.hone", t->dir);
    if (!step(t, "default build", 0, 0)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
    HN_TRY(hn_drive_build(t, "", engine, &trial, dg));
    if (trial.outcome != HN_OUT_NOT_FASTER)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the default route does not build: %s", trial.reason);
    c->default_engine = c->incumbent = hn_arena_strdup(t->a, engine);
    c->route = "";
    hn_runner r = { 0 };
    HN_TRY_IN(dg, hn_runner_start(t, engine, &r, dg), "running the default engine");
    const hone_status s = hn_runner_judge(t, &r, &trial.err, dg);
    hn_runner_stop(&r);
    HN_TRY(s);
    c->incumbent_err = trial.err;
    /* Without a stated bound a route may not be worse than reassociation makes it: four times the default's error. */
    t->r->bound = t->o->threshold > 0 ? t->o->threshold : fmax(4 * trial.err, 1e-6);
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    return publish(engine, engine_path, dg);
}

/* Fresh processes, fresh samples; the winner stands only when the interval excludes "no gain". */
static hone_status confirm(hn_tuner *t, contest *c, const char *engine_path, hn_diag *dg)
{
    t->r->route = "";
    t->r->speedup = t->r->lo = t->r->hi = 1;
    t->r->err = t->r->trials.at[0].err;
    if (strcmp(c->incumbent, c->default_engine) == 0) return HONE_OK;
    hn_runner old = { 0 }, new = { 0 };
    verdict v;
    t->deadline_ns = 0; /* the search stopped early enough to leave this its time */
    step(t, "confirm", 0, 0);
    hone_status s = hn_runner_start(t, c->default_engine, &old, dg);
    if (s == HONE_OK) s = hn_runner_start(t, c->incumbent, &new, dg);
    if (s == HONE_OK) s = race(t, &old, &new, CONFIRM_ROUNDS, false, &v, dg);
    hn_runner_stop(&old);
    hn_runner_stop(&new);
    HN_TRY(s);
    if (!(v.lo > 0)) return HONE_OK;
    t->r->route = c->route;
    t->r->speedup = exp(v.race.mean);
    t->r->lo = exp(v.lo);
    t->r->hi = exp(v.hi);
    t->r->err = c->incumbent_err;
    return publish(c->incumbent, engine_path, dg);
}

static void remove_dir(const char *dir)
{
    char path[PATH_MAX];
    DIR *d = opendir(dir);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
        if (remove(path) != 0) remove_dir(path);
    }
    closedir(d);
    rmdir(dir);
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

static hone_status open_store(hn_tuner *t, hn_diag *dg)
{
    hn_target target;
    hn_str key = { 0 };
    char d[HN_DIGEST_TEXT];
    if (!t->o->store) return HONE_OK;
    hn_target_detect(&target, false);
    hn_str_addf(&key, "%s", hn_digest_text(t->o->model_digest, d));
    hn_str_addf(&key, " %s", hn_digest_text(hn_target_fingerprint(&target), d));
    hn_str_addf(&key, " %s %d", hn_digest_text(hn_knob_registry_digest(), d), t->o->threads);
    const hone_status s = hn_store_open(t->o->store, hn_str_get(&key), &t->store, dg);
    hn_str_done(&key);
    return s;
}

enum { CONFIRM_SHARE = 8 }; /* one part in eight of the budget is kept for the confirming race */

static hone_status tune(hn_tuner *t, const hn_tensor *in, const hn_search *s, const char *engine_path, hn_diag *dg)
{
    contest c = { 0 };
    char dir[] = "/tmp/hone-tune-XXXXXX";
    if (!mkdtemp(dir)) return HN_RAISE(dg, HONE_E_IO, "no temporary folder can be made");
    t->dir = dir;
    hone_status r = write_inputs(t, in, dg);
    if (r == HONE_OK) r = open_store(t, dg);
    if (r == HONE_OK) r = start(t, &c, engine_path, dg);
    if (r == HONE_OK) r = search(t, &c, s, dg);
    if (r == HONE_OK) r = confirm(t, &c, engine_path, dg);
    hn_store_close(t->store);
    remove_dir(dir);
    return r;
}

static bool known_strategy(const char *s)
{
    return !s || strcmp(s, "mixed") == 0 || strcmp(s, "fast") == 0 || strcmp(s, "full") == 0 || strcmp(s, "random") == 0;
}

hone_status hn_tune(hn_arena *a, const hn_graph *g, const hn_tensor *in, const hn_tensor *want, const hn_tensor *own,
                    const hn_tune_opts *o, const hn_knob_read *read, int n_read, const char *engine_path,
                    hn_tune_result *ret, hn_diag *dg)
{
    const int64_t t0 = hn_now_ns();
    hn_search s;
    *ret = (hn_tune_result){ .route = "", .speedup = 1, .lo = 1, .hi = 1 };
    if (!known_strategy(o->strategy)) {
        hn_hint(dg, "strategies are mixed, fast, full and random");
        return HN_RAISE(dg, HONE_E_INVALID, "there is no strategy \"%s\"", o->strategy);
    }
    HN_TRY(hn_search_make(a, o->expression, read, n_read, o->threshold > 0, &s, dg));
    hn_tuner t = { .a = a, .o = o, .g = g, .want = want, .own = own, .r = ret };
    if (o->budget_s > 0) t.deadline_ns = t0 + (int64_t)(o->budget_s * 1e9 * (CONFIRM_SHARE - 1) / CONFIRM_SHARE);
    if (o->dry_run) return list_only(&t, &s, dg);
    t.program = hn_find_program(o->program);
    if (!t.program) {
        hn_hint(dg, "set HONE_PROGRAM to the path of the hone program");
        return HN_RAISE(dg, HONE_E_NOTFOUND, "trials need the hone program, which is not beside this one");
    }
    const hone_status r = tune(&t, in, &s, engine_path, dg);
    free(t.program);
    ret->elapsed_s = (double)(hn_now_ns() - t0) * 1e-9;
    return r;
}
