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

enum {
    MAX_ROUNDS = 24, /* three times what separates 5% from a spread of 2% between pairs of processes */
    CONFIRM_ROUNDS = 40,
    LOOK = 6,        /* rounds before a race may be given up */
    PAIRS = 3,       /* of blocks in one round */
    RANDOM_TRIALS = 64,
    DEFAULT_PATIENCE = 5,
};
static const double BLOCK_S = 0.02;       /* of one contestant: outlasts timer ticks and wake-ups */
static const double ALPHA = 0.01;         /* a false winner in an A/A race, by design */
static const double REPORT_ALPHA = 0.05;  /* of the intervals that are shown */
static const double LEAST_GAIN = 0.005;   /* a race ends when gains above this are excluded */

const char *hn_outcome_name(hn_outcome o)
{
    static const char *const name[] = { "?", "faster", "not faster", "same engine", "inaccurate", "build failed",
                                        "crashed", "timed out", "listed", "out of memory" };
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
    char how[64];  /* the new engine's last process ended */
} verdict;

static double median(double *v)
{
    _Static_assert(PAIRS == 3, "written out for three");
    return fmax(fmin(v[0], v[1]), fmin(fmax(v[0], v[1]), v[2]));
}

/* Blocks alternate, the order turns each pair, so that a drift cancels. r[0] runs the old engine. */
static hone_status alternate(hn_tuner *t, hn_runner *r, double *ret_log_ratio, hn_diag *dg)
{
    double ratio[PAIRS], ns[2];
    for (int i = 0; i < PAIRS; i++) {
        const int first = i & 1;
        HN_TRY(hn_runner_block(t, &r[first], BLOCK_S, &ns[first], dg));
        HN_TRY(hn_runner_block(t, &r[!first], BLOCK_S, &ns[!first], dg));
        ratio[i] = log(ns[0] / ns[1]);
    }
    *ret_log_ratio = median(ratio);
    return HONE_OK;
}

/* A round is a pair of fresh processes, loaded in random order: where memory lies is a bias that more blocks of one process
 * never remove, so it must vary within the sample. */
static hone_status one_round(hn_tuner *t, const char *old, const char *new, verdict *v, hn_diag *dg)
{
    hn_runner r[2] = { 0 };
    const char *const engine[2] = { old, new };
    const int first = (int)hn_rng_below(&t->rng, 2);
    double log_ratio = 0;
    hone_status s = hn_runner_start(t, engine[first], &r[first], dg);
    if (s == HONE_OK) s = hn_runner_start(t, engine[!first], &r[!first], dg);
    if (s == HONE_OK) s = alternate(t, r, &log_ratio, dg);
    hn_runner_stop(&r[0]);
    hn_runner_stop(&r[1]);
    memcpy(v->how, r[1].how, sizeof v->how);
    if (s == HONE_OK) hn_race_add(&v->race, log_ratio);
    return s;
}

/* Hopeless: no gain worth having within one and a half standard errors. This can lose a winner, never make one. */
static bool is_hopeless(const hn_race *r)
{
    if (r->n == 1) return r->mean < -0.25; /* a quarter slower: no noise that we know of */
    return r->n >= LOOK && r->mean + 1.5 * hn_race_sd(r) / sqrt(r->n) < LEAST_GAIN;
}

/* Ends when the interval excludes "no gain" or every gain worth having, when it is hopeless, or with the time. */
static hone_status race(hn_tuner *t, const char *old, const char *new, int rounds, verdict *v, hn_diag *dg)
{
    *v = (verdict){ .lo = -HUGE_VAL, .hi = HUGE_VAL };
    for (int i = 0; i < rounds && !out_of_time(t); i++) {
        const hone_status s = one_round(t, old, new, v, dg);
        if (s == HONE_E_TIMEOUT && out_of_time(t)) {
            hn_diag_clear(dg);
            return HONE_OK;
        }
        HN_TRY(s);
        if (!step(t, "race", i, rounds)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        if (is_hopeless(&v->race)) break;
        if (hn_race_interval(&v->race, ALPHA, &v->lo, &v->hi) && (v->lo > 0 || v->hi < LEAST_GAIN)) break;
    }
    return HONE_OK;
}

static void show_interval(const hn_race *r, double *ret_lo, double *ret_hi)
{
    double lo = -HUGE_VAL, hi = HUGE_VAL;
    hn_race_interval(r, REPORT_ALPHA, &lo, &hi);
    *ret_lo = exp(lo);
    *ret_hi = exp(hi);
}

/* ---- one trial ---- */
static hone_status publish(const char *from, const char *to, hn_diag *dg)
{
    hn_bytes file = { 0 };
    HN_TRY(hn_map_file(from, &file, dg));
    const hone_status s = hn_write_file_atomic(to, file.at, file.n, dg);
    hn_unmap(&file);
    return s;
}

typedef struct contest {
    char *incumbent, *default_engine; /* engine files */
    const char *route;                /* the incumbent's */
    const char *engine_path;          /* where the best proven lies */
    double incumbent_err;
    int n_engine;
} contest;

static void reject(hn_tuner *t, hn_trial *trial)
{
    trial->outcome = HN_OUT_INACCURATE;
    trial->reason = isinf(trial->err) ? "NaN, infinity or whole numbers in the outputs differ from the reference's"
                                      : hn_arena_printf(t->a, "relative L2 error %.3g, bound %.3g", trial->err, t->r->bound);
}

static hone_status judge(hn_tuner *t, const char *engine, hn_trial *trial, char how[64], hn_diag *why)
{
    hn_runner r = { 0 };
    hone_status s = hn_runner_start(t, engine, &r, why);
    if (s == HONE_OK) s = hn_runner_judge(t, &r, &trial->err, why);
    hn_runner_stop(&r);
    memcpy(how, r.how, sizeof r.how);
    return s;
}

static hone_status judge_and_race(hn_tuner *t, contest *c, const char *engine, hn_trial *trial, char how[64], hn_diag *why)
{
    verdict v;
    HN_TRY(judge(t, engine, trial, how, why));
    if (!(trial->err <= t->r->bound)) {
        reject(t, trial);
        return HONE_OK;
    }
    const hone_status s = race(t, c->incumbent, engine, MAX_ROUNDS, &v, why);
    memcpy(how, v.how, sizeof v.how);
    HN_TRY(s);
    trial->ratio = exp(v.race.mean);
    show_interval(&v.race, &trial->lo, &trial->hi);
    trial->outcome = v.lo > 0 ? HN_OUT_FASTER : HN_OUT_NOT_FASTER;
    return HONE_OK;
}

static bool seen_payload(const hn_tuner *t, const char *payload)
{
    for (int i = 0; i < t->r->trials.n; i++)
        if (strcmp(t->r->trials.at[i].payload, payload) == 0) return true;
    return false;
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

static hone_status take_lead(hn_tuner *t, contest *c, const hn_trial *trial, const char *engine, hn_diag *dg)
{
    if (strcmp(c->incumbent, c->default_engine) != 0) remove(c->incumbent);
    c->incumbent = hn_arena_strdup(t->a, engine);
    c->route = trial->route;
    c->incumbent_err = trial->err;
    return c->incumbent ? publish(engine, c->engine_path, dg) : HN_NOMEM(dg);
}

static hone_status run_trial(hn_tuner *t, contest *c, hn_trial *trial, hn_diag *dg)
{
    hn_diag why = { 0 };
    char engine[PATH_MAX], how[64] = "";
    snprintf(engine, sizeof engine, "%s/%d.hone", t->dir, c->n_engine++);
    trial->outcome = HN_OUT_NOT_FASTER;
    HN_TRY(hn_drive_build(t, trial->route, engine, trial, dg));
    hone_status s = HONE_OK;
    if (trial->outcome == HN_OUT_NOT_FASTER) {
        if (seen_payload(t, trial->payload)) trial->outcome = HN_OUT_SAME_ENGINE;
        else s = judge_and_race(t, c, engine, trial, how, &why);
    }
    if (s == HONE_E_CANCELLED) {
        *dg = why;
        return s;
    }
    if (s != HONE_OK) note_accident(t, trial, &why, how);
    if (trial->outcome == HN_OUT_FASTER) return take_lead(t, c, trial, engine, dg);
    remove(engine);
    return HONE_OK;
}

static const hn_trial *tried(const hn_tuner *t, const char *route)
{
    for (int i = 0; i < t->r->trials.n; i++)
        if (strcmp(t->r->trials.at[i].route, route) == 0) return &t->r->trials.at[i];
    return NULL;
}

/* The same settings in one spelling: "-a=1 -b=2" and "-b=2 -a=1" are one route. */
static const char *canonical(hn_tuner *t, const char *route)
{
    hn_route r = { 0 };
    hn_str text = { 0 };
    if (hn_route_parse(t->a, route, &r, NULL) != HONE_OK) return route; /* the build says why */
    hn_route_print(&r, &text);
    const char *s = hn_arena_strdup(t->a, hn_str_get(&text));
    hn_str_done(&text);
    return s;
}

/* A trial that the budget cuts off leaves no trace: it is no outcome of its route. */
static hone_status try_route(hn_tuner *t, contest *c, const char *spelling, hn_outcome *ret, hn_diag *dg)
{
    const char *route = canonical(t, spelling);
    const hn_trial *known = route ? tried(t, route) : NULL;
    if (!route) return HN_NOMEM(dg);
    *ret = known ? known->outcome : HN_OUT_NOT_FASTER;
    if (known) return HONE_OK;
    hn_trial trial = { .route = route, .reason = "", .err = -1 };
    const bool restored = t->store && t->o->resume && hn_store_get(t->store, t->a, route, &trial) &&
                          trial.outcome != HN_OUT_FASTER; /* a winner is built and raced anew */
    if (restored) t->r->n_restored++;
    else HN_TRY(run_trial(t, c, &trial, dg));
    if (!restored && out_of_time(t) && trial.outcome != HN_OUT_FASTER) return HONE_OK;
    *ret = trial.outcome;
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    return t->store && !restored ? hn_store_put(t->store, &trial, dg) : HONE_OK;
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

static hone_status product(hn_tuner *t, contest *c, const hn_search *s, const bool *use, hn_diag *dg)
{
    const int64_t n = hn_search_n_product(s, use);
    for (int64_t i = 0; i < n && !enough(t); i++) {
        hn_outcome o;
        if (!step(t, "trials", i, n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        HN_TRY(try_route(t, c, hn_search_product(t->a, s, use, i), &o, dg));
    }
    return HONE_OK;
}

/* Draws until RANDOM_TRIALS routes were tried; a small space is drawn empty with all but certainty. */
static hone_status random_routes(hn_tuner *t, contest *c, const hn_search *s, hn_diag *dg)
{
    enum { DRAWS = 32 }; /* a route: one stays undrawn once in exp(32) */
    const int64_t all = hn_search_n_product(s, NULL), n = HN_MIN(all, (int64_t)RANDOM_TRIALS), before = t->r->trials.n;
    for (int64_t draw = 0; draw < n * DRAWS && t->r->trials.n - before < n && !enough(t); draw++) {
        hn_outcome o;
        if (!step(t, "trials", t->r->trials.n - before, n)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
        HN_TRY(try_route(t, c, hn_search_product(t->a, s, NULL, hn_rng_below(&t->rng, all)), &o, dg));
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
    if (strcmp(how, "full") == 0) return product(t, c, s, NULL, dg);
    if (strcmp(how, "random") == 0) return random_routes(t, c, s, dg);
    HN_TRY(singles(t, c, s, helped, dg));
    if (strcmp(how, "fast") == 0 || count(helped, s->n_axis) < 2) return HONE_OK;
    return product(t, c, s, helped, dg);
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
static hone_status start(hn_tuner *t, contest *c, hn_diag *dg)
{
    hn_trial trial = { .route = "", .reason = "", .outcome = HN_OUT_NOT_FASTER };
    char engine[PATH_MAX];
    snprintf(engine, sizeof engine, "%s/default.hone", t->dir);
    if (!step(t, "default build", 0, 0)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
    t->patience = DEFAULT_PATIENCE;
    HN_TRY(hn_drive_build(t, "", engine, &trial, dg));
    if (trial.outcome != HN_OUT_NOT_FASTER)
        return HN_RAISE(dg, trial.outcome == HN_OUT_TIMED_OUT ? HONE_E_TIMEOUT : HONE_E_UNSUPPORTED,
                        "the default route does not build: %s", trial.reason);
    c->default_engine = c->incumbent = hn_arena_strdup(t->a, engine);
    c->route = "";
    char how[64];
    HN_TRY_IN(dg, judge(t, engine, &trial, how, dg), "running the default engine");
    t->patience = 1;
    c->incumbent_err = trial.err;
    /* Without a stated bound a route may not be worse than reassociation makes it: four times the default's error. */
    t->r->bound = t->o->threshold > 0 ? t->o->threshold : fmax(4 * trial.err, 1e-6);
    if (!hn_vec_push(t->a, &t->r->trials, trial)) return HN_NOMEM(dg);
    if (!(trial.err <= t->r->bound)) {
        hn_hint(dg, "Allow a larger error, or start from a route that keeps the bound.");
        return HN_RAISE(dg, HONE_E_ACCURACY, "the base route's relative L2 error is %.3g, the bound %.3g", trial.err, t->r->bound);
    }
    return publish(engine, c->engine_path, dg);
}

/* Fresh processes, fresh samples: the winner stands only when the interval excludes "no gain", else the default returns. */
static hone_status confirm(hn_tuner *t, contest *c, hn_diag *dg)
{
    verdict v;
    t->r->route = "";
    t->r->speedup = t->r->lo = t->r->hi = 1;
    t->r->err = t->r->trials.at[0].err;
    if (strcmp(c->incumbent, c->default_engine) == 0) return HONE_OK;
    t->deadline_ns = t->end_ns; /* the search stopped early enough to leave this its time */
    if (!step(t, "confirm", 0, 0)) return HN_RAISE(dg, HONE_E_CANCELLED, "cancelled");
    hn_diag why = { 0 }; /* a winner that breaks now is none */
    const hone_status s = race(t, c->default_engine, c->incumbent, CONFIRM_ROUNDS, &v, &why);
    if (s == HONE_E_CANCELLED) return HN_RAISE(dg, s, "cancelled");
    if (s != HONE_OK || !(v.lo > 0)) return publish(c->default_engine, c->engine_path, dg);
    t->r->route = c->route;
    t->r->speedup = exp(v.race.mean);
    show_interval(&v.race, &t->r->lo, &t->r->hi);
    t->r->err = c->incumbent_err;
    return publish(c->incumbent, c->engine_path, dg);
}

static void remove_dir(const char *dir)
{
    char path[PATH_MAX + 272]; /* a folder, a slash, a name */
    DIR *d = opendir(dir);
    if (!d) return;
    for (const struct dirent *e; (e = readdir(d));) {
        if (e->d_name[0] == '.') continue;
        if (snprintf(path, sizeof path, "%s/%s", dir, e->d_name) >= (int)sizeof path) continue;
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
    hn_str_addf(&key, " %s", t->o->tools ? t->o->tools : "?");
    for (int i = 0; t->o->build_arg && t->o->build_arg[i]; i++) hn_str_addf(&key, " %s", t->o->build_arg[i]);
    hn_str_addf(&key, " base=%s", t->o->base_route ? t->o->base_route : "");
    const hone_status s = hn_store_open(t->o->store, hn_str_get(&key), &t->store, dg);
    hn_str_done(&key);
    return s;
}

enum { CONFIRM_SHARE = 6 }; /* one part in six of the budget is kept for the confirming race */
enum { END_NS = 300000000 }; /* to end processes and write the engine */

static void set_limits(hn_tuner *t)
{
    if (t->o->budget_s <= 0) return;
    const int64_t budget = (int64_t)(t->o->budget_s * 1e9), start = t->o->start_ns ? t->o->start_ns : hn_now_ns();
    t->end_ns = start + budget - HN_MIN(END_NS, budget / 10);
    t->deadline_ns = t->end_ns - budget / CONFIRM_SHARE;
}

static hone_status tune(hn_tuner *t, const hn_tensor *in, const hn_search *s, const char *engine_path, hn_diag *dg)
{
    contest c = { .engine_path = engine_path };
    char dir[] = "/tmp/hone-tune-XXXXXX";
    if (!mkdtemp(dir)) return HN_RAISE(dg, HONE_E_IO, "no temporary folder can be made");
    t->dir = dir;
    hone_status r = write_inputs(t, in, dg);
    if (r == HONE_OK) r = open_store(t, dg);
    if (r == HONE_OK) r = start(t, &c, dg);
    if (r == HONE_OK) r = search(t, &c, s, dg);
    if (r == HONE_OK) r = confirm(t, &c, dg);
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
    const int64_t t0 = o->start_ns ? o->start_ns : hn_now_ns();
    hn_search s;
    *ret = (hn_tune_result){ .route = "", .speedup = 1, .lo = 1, .hi = 1 };
    if (!known_strategy(o->strategy)) {
        hn_hint(dg, "strategies are mixed, fast, full and random");
        return HN_RAISE(dg, HONE_E_INVALID, "there is no strategy \"%s\"", o->strategy);
    }
    HN_TRY(hn_search_make(a, o->expression, read, n_read, o->threshold > 0, &s, dg));
    hn_tuner t = { .a = a, .o = o, .g = g, .want = want, .own = own, .r = ret };
    set_limits(&t);
    hn_rng_init(&t.rng, o->seed + 1);
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
