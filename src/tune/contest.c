/* Two engine files against each other, in processes that start or load anew for every observation. */
#include "dev/dev.h"
#include "tune/tune_int.h"

#include <math.h>
#include <string.h>

enum {
    LOOK = 3,          /* rounds before a race may be given up */
    PAIRS = 3,         /* of blocks in one round */
    CROSSED_PAIRS = 2, /* of each half: on an H200 blocks of a loading differ by 0.3%, loadings by 0.3-1% */
    MOST_WAITING = 4,  /* pairs of processes that start at once */
};
static const double BLOCK_S = 0.02;     /* of one contestant: outlasts timer ticks and wake-ups */
static const double LEAST_GAIN = 0.005; /* a race ends when gains above this are excluded */
static const int64_t WAITING_BYTES = (int64_t)1 << 30; /* of engine files that are loaded at once for processes that wait their turn */

/* Processes that loaded and wait their turn. */
typedef struct waiting {
    hn_runner r[MOST_WAITING][2];
    int n;
} waiting;

/* Blocks alternate, the order turns each pair, so that a drift cancels. r[crossed] runs the old engine. A GPU that waited for engines
 * to load runs slower for a while: there a pair goes ahead that does not count. */
static hone_status alternate(hn_tuner *t, hn_runner *r, bool crossed, int pairs, double *ret_log_ratio, hn_diag *dg)
{
    double ratio[PAIRS], ns[2];
    for (int i = t->o->standing ? -1 : 0; i < pairs; i++) {
        const int first = i & 1;
        HN_TRY(hn_runner_block(t, &r[first], BLOCK_S, &ns[first], dg));
        HN_TRY(hn_runner_block(t, &r[!first], BLOCK_S, &ns[!first], dg));
        if (i >= 0) ratio[i] = log(ns[crossed] / ns[!crossed]);
    }
    *ret_log_ratio = hn_median(ratio, pairs);
    return HONE_OK;
}

/* One after the other, in random order; side by side on a GPU, for there the order of host memory means nothing. */
static hone_status ask_to_load(hn_tuner *t, const hn_contest *c, hn_runner *r, bool crossed, hn_diag *dg)
{
    const char *const engine[2] = { crossed ? c->new : c->old, crossed ? c->old : c->new };
    const int first = (int)hn_rng_below(&t->rng, 2);
    HN_TRY(hn_runner_load(t, engine[first], &r[first], dg));
    if (!t->o->standing) HN_TRY(hn_runner_loaded(t, &r[first], dg));
    HN_TRY(hn_runner_load(t, engine[!first], &r[!first], dg));
    return t->o->standing ? HONE_OK : hn_runner_loaded(t, &r[!first], dg);
}

static hone_status wait_for(hn_tuner *t, hn_runner *r, hn_diag *dg)
{
    for (int i = 0; i < 2 && t->o->standing; i++) HN_TRY(hn_runner_loaded(t, &r[i], dg));
    return HONE_OK;
}

static hone_status load_both(hn_tuner *t, const hn_contest *c, hn_runner *r, bool crossed, hn_diag *dg)
{
    HN_TRY(ask_to_load(t, c, r, crossed, dg));
    return wait_for(t, r, dg);
}

static void stop_both(hn_runner *r)
{
    for (int i = 0; i < 2; i++) hn_runner_stop(&r[i]);
}

/* How the new engine's process ended; where both ran both, the one that did not end well. */
static void note_end(const hn_runner *r, char how[64])
{
    memcpy(how, r[strcmp(r[1].how, "exit status 0") == 0 && *r[0].how ? 0 : 1].how, sizeof r->how);
}

/* ---- fresh processes on a GPU ---- */
static void stop_waiting(waiting *w)
{
    while (w->n > 0) stop_both(w->r[--w->n]);
}

static hone_status start_pairs(hn_tuner *t, const hn_contest *c, waiting *w, int n, hn_diag *dg)
{
    memset(w, 0, sizeof *w);
    hone_status s = HONE_OK;
    for (int i = 0; i < n && s == HONE_OK; i++) {
        s = ask_to_load(t, c, w->r[i], false, dg);
        w->n++;
    }
    for (int i = 0; i < n && s == HONE_OK; i++) s = wait_for(t, w->r[i], dg);
    if (s != HONE_OK) stop_waiting(w);
    return s;
}

static int64_t file_bytes(const char *path)
{
    hn_bytes file = { 0 };
    if (hn_map_file(path, &file, NULL) != HONE_OK) return INT64_MAX;
    const int64_t n = (int64_t)file.n;
    hn_unmap(&file);
    return n;
}

/* Several start at once, for that takes longer than to run; where memory is short each by itself. */
static hone_status start_waiting(hn_tuner *t, const hn_contest *c, waiting *w, hn_diag *dg)
{
    const int64_t room = WAITING_BYTES / HN_MAX(file_bytes(c->old), 1);
    const int n = (int)HN_MIN(HN_MAX(room, 1), (int64_t)MOST_WAITING);
    hn_diag why = { 0 };
    const hone_status s = start_pairs(t, c, w, n, &why);
    const bool again = s != HONE_OK && n > 1 && s != HONE_E_TIMEOUT && s != HONE_E_CANCELLED;
    if (!again) *dg = why;
    return again ? start_pairs(t, c, w, 1, dg) : s;
}

/* Each process runs each engine: what one of them costs, by where it and its memory lie, is in both halves and cancels. */
static hone_status crossed(hn_tuner *t, const hn_contest *c, hn_runner *r, bool loaded, double *ret_log_ratio, hn_diag *dg)
{
    double half[2];
    if (!loaded) HN_TRY(load_both(t, c, r, /* crossed= */ false, dg));
    HN_TRY(alternate(t, r, false, CROSSED_PAIRS, &half[0], dg));
    HN_TRY(load_both(t, c, r, /* crossed= */ true, dg));
    HN_TRY(alternate(t, r, true, CROSSED_PAIRS, &half[1], dg));
    *ret_log_ratio = (half[0] + half[1]) / 2;
    return HONE_OK;
}

/* ---- one observation ---- */
/* A pair of fresh processes: where memory lies is a bias that more blocks of one process never remove, so it must vary within the
 * sample. */
static hone_status fresh_round(hn_tuner *t, const hn_contest *c, waiting *w, double *ret, char how[64], hn_diag *dg)
{
    hn_runner own[2] = { 0 }, *r = own;
    hone_status s;
    if (t->o->standing) {
        if (w->n == 0) HN_TRY(start_waiting(t, c, w, dg));
        r = w->r[--w->n];
        s = crossed(t, c, r, /* loaded= */ true, ret, dg);
    } else {
        s = load_both(t, c, r, false, dg);
        if (s == HONE_OK) s = alternate(t, r, false, PAIRS, ret, dg);
    }
    stop_both(r);
    note_end(r, how);
    return s;
}

/* Processes that stand load both engines anew, each beside the last one, which moves them in memory as well. */
static hone_status standing_round(hn_tuner *t, const hn_contest *c, double *ret, char how[64], hn_diag *dg)
{
    hn_runner *r = t->standing;
    const hone_status s = crossed(t, c, r, /* loaded= */ false, ret, dg);
    if (s != HONE_OK) stop_both(r);
    note_end(r, how);
    return s;
}

/* Figures of two clocks do not compare: a card that grows hot or lacks power slows down. */
static void note_clock(const hn_tuner *t, hn_verdict *v)
{
    hn_device *d;
    if (!t->o->standing || hn_device_for(HN_ARCH_SM, &d, NULL) != HONE_OK) return;
    const int mhz = hn_device_clock_mhz(d);
    if (mhz > 0 && (v->clock_mhz == 0 || mhz < v->clock_mhz)) v->clock_mhz = mhz;
}

static hone_status one_round(hn_tuner *t, const hn_contest *c, waiting *w, hn_verdict *v, hn_diag *dg)
{
    double log_ratio = 0;
    HN_TRY(c->fresh ? fresh_round(t, c, w, &log_ratio, v->how, dg) : standing_round(t, c, &log_ratio, v->how, dg));
    note_clock(t, v);
    hn_race_add(&v->race, log_ratio);
    return HONE_OK;
}

/* The spread of a round in the races of this session, as those of one long race; HUGE_VAL while few rounds tell of it. */
double hn_contest_noise(const hn_tuner *t)
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

/* A quarter: no noise that we know of. */
static bool is_far_slower(const hn_race *r)
{
    return r->n == 1 && r->mean < -0.25;
}

/* Hopeless: no gain worth having below the 93rd percentile of what Student's t leaves possible, which is 1.5 standard errors
 * of many rounds and 2.5 of three (1.5 + 2/(n - 1) is within 0.1 of it); or, before its own rounds tell, 3.5 standard errors of a
 * usual round below that. This can lose a winner, never make one. */
static bool is_hopeless(const hn_tuner *t, const hn_race *r)
{
    if (r->mean + 3.5 * hn_contest_noise(t) / sqrt(r->n) < LEAST_GAIN) return true;
    if (r->n == 1) return is_far_slower(r);
    return r->n >= LOOK && r->mean + (1.5 + 2.0 / (r->n - 1)) * hn_race_sd(r) / sqrt(r->n) < LEAST_GAIN;
}

/* Ends when the interval excludes "no gain" or every gain worth having, when it is hopeless, or with the time. */
static hone_status race(hn_tuner *t, const hn_contest *c, waiting *w, hn_verdict *v, hn_diag *dg)
{
    *v = (hn_verdict){ .lo = -HUGE_VAL, .hi = HUGE_VAL };
    for (int i = 0; i < c->rounds && !hn_tune_out_of_time(t); i++) {
        const hone_status s = one_round(t, c, w, v, dg);
        if (s == HONE_E_TIMEOUT && hn_tune_out_of_time(t)) {
            hn_diag_clear(dg);
            return HONE_OK;
        }
        HN_TRY(s);
        if (!hn_tune_step(t, "race", i, c->rounds)) return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
        if (c->survey ? is_far_slower(&v->race) : is_hopeless(t, &v->race)) break;
        if (hn_race_interval(&v->race, HN_TUNE_ALPHA, &v->lo, &v->hi) && (v->lo > 0 || v->hi < LEAST_GAIN) && !c->survey) break;
    }
    return HONE_OK;
}

hone_status hn_contest_run(hn_tuner *t, const hn_contest *c, hn_verdict *v, hn_diag *dg)
{
    waiting w = { 0 };
    const hone_status s = race(t, c, &w, v, dg);
    stop_waiting(&w);
    learn_noise(t, &v->race);
    return s;
}
