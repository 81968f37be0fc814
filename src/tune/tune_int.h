/* Inside the tuner: the programs it drives, trials and the store. */
#ifndef HN_TUNE_TUNE_INT_H
#define HN_TUNE_TUNE_INT_H

#include "base/os.h"
#include "tune/tune.h"

#define HN_TUNE_ALPHA 0.01 /* a false winner in an A/A race, by design; of every interval that is shown */

/** A process that holds one engine and runs blocks of it: `hone bench --worker`. */
typedef struct hn_runner {
    hn_proc proc;
    bool alive;
    char how[64]; /* it ended; "" while alive */
} hn_runner;

typedef struct hn_tuner {
    hn_arena *a;
    const hn_tune_opts *o;
    const hn_graph *g;
    const hn_tensor *want, *own;
    hn_search s;
    const char *dir;       /* temporary folder of engines, inputs, outputs */
    char *program;
    int64_t deadline_ns;   /* of the present phase; 0: none */
    int64_t end_ns;        /* of the budget; 0: none */
    int64_t lead_deadline_ns; /* of the search once a route leads; 0: none */
    int survey;            /* rounds of each trial's race, whatever they say; 0: until it is clear */
    bool screened;
    bool unjudged;         /* the references are not there yet: nothing is published */
    int n_lost;            /* leads that broke a bound when the references came */
    int patience;          /* factor on the trial's time limit: the default builds with cold caches */
    const char **input;    /* .npy file of each input */
    hn_tune_result *r;
    struct hn_store *store;
    hn_rng rng;
    const char *phase;     /* as last told */
    int64_t done, total;
    /* the contest */
    const char *incumbent, *default_engine; /* engine files; NULL until the default stands */
    const char *route;     /* the incumbent's; the base route's for the default */
    const char *base;      /* canonical text of the base route */
    const char *engine_path;
    hn_trial lead;         /* the incumbent's */
    double lead_lo, lead_hi, lead_ratio; /* the won races' ratios multiplied */
    int n_engine;
    hn_race noise;         /* deviations of rounds from their race's mean, of all races; its mean says nothing */
    hn_runner builder;     /* `hone build --worker`, likewise */
    hn_runner standing[2]; /* of the incumbent and the candidate, where o->standing says so */
} hn_tuner;

/* tune.c */
/** Tell progress where the search is; false: stop. */
bool hn_tune_step(hn_tuner *t, const char *phase, int64_t done, int64_t total);
bool hn_tune_pulse(hn_tuner *t); /* the same place again */
bool hn_tune_out_of_time(const hn_tuner *t);
/** Where the search began without references and they are there by now (wait: once they are): judge the default engine and the one that
 *  leads, which loses the lead when it breaks a bound, and publish. Errors: HONE_E_ACCURACY the base route breaks a bound. */
hone_status hn_tune_catch_up(hn_tuner *t, bool wait, hn_diag *dg);

/* drive.c */
char *hn_find_program(const char *given);
/** Build a route. An accident is an outcome of the trial; HONE_E_CANCELLED, HONE_E_NOMEM and no process are errors. */
hone_status hn_drive_build(hn_tuner *t, const char *route, const char *engine, hn_trial *trial, hn_diag *dg);
/** Ask for the engine and the inputs, without waiting; a process that does not run is started. An error ends the process. */
hone_status hn_runner_load(hn_tuner *t, const char *engine, hn_runner *r, hn_diag *dg);
/** Wait until they are there, after the first run. An error ends the process. */
hone_status hn_runner_loaded(hn_tuner *t, hn_runner *r, hn_diag *dg);
void hn_runner_stop(hn_runner *r);
/** Median ns of a block of about `seconds`. */
hone_status hn_runner_block(hn_tuner *t, hn_runner *r, double seconds, double *ret_ns, hn_diag *dg);
/** Run once and write every output to dir/output_<io index>.npy. */
hone_status hn_runner_outputs(hn_tuner *t, hn_runner *r, const char *dir, hn_diag *dg);
/** What the user's command says of the outputs in dir: its last number, NaN when there is none or it failed (how). */
hone_status hn_drive_judge(hn_tuner *t, const char *dir, double *ret, char how[64], hn_diag *dg);
hone_status hn_write_npy(const char *path, const hn_tensor *x, hn_diag *dg);

/* judge.c */
hone_status hn_judge_check_bounds(const hn_tuner *t, hn_diag *dg); /* HONE_E_INVALID: an output that is not there */
/** Run once and judge every output. *ret_why: NULL, or which bound is broken; trial->err is set. t->r->bound 0 judges nothing
 *  that no stated bound covers. */
hone_status hn_judge(hn_tuner *t, const char *engine, hn_trial *trial, const char **ret_why, char how[64], hn_diag *dg);

/* contest.c */
typedef struct hn_verdict {
    hn_race race;
    double lo, hi; /* of log(old / new) */
    char how[64];  /* the new engine's last process ended */
    int clock_mhz; /* the lowest that showed behind a round; 0: unknown */
} hn_verdict;
typedef struct hn_contest {
    const char *old, *new; /* engine files */
    int rounds;
    bool survey; /* all rounds, for an estimate: whether it is faster is asked of others */
    bool fresh;  /* each round starts processes, whatever o->standing says */
} hn_contest;
/** Race two engine files until the answer is clear, the rounds are used up or the time is. */
hone_status hn_contest_run(hn_tuner *t, const hn_contest *c, hn_verdict *v, hn_diag *dg);
/** The spread of a round in the races of this session; HUGE_VAL while few rounds tell of it. */
double hn_contest_noise(const hn_tuner *t);

/* trial.c */
hone_status hn_publish(const char *from, const char *to, hn_diag *dg);
/** Build, judge and race one route, given whole and in canonical text, unless it was tried; a winner leads from then on. */
hone_status hn_trial_run(hn_tuner *t, const char *route, hn_outcome *ret, hn_diag *dg);
/** So many rounds for an estimate alone, and what such a trial says of itself; rounds 0: until it is clear, also where it was surveyed.
 *  *ret: the trial, until the next; NULL: the time was up. */
hone_status hn_trial_survey(hn_tuner *t, const char *route, int rounds, const char *note, const hn_trial **ret, hn_diag *dg);
/** Standard error of a trial's log ratio, by the session's noise. */
double hn_trial_error(const hn_tuner *t, const hn_trial *trial);

/* screen.c */
/** Screen the choices of the leading engine's regions, together; what it estimates is added to the result. */
hone_status hn_screen_run(hn_tuner *t, hn_diag *dg);
/** Axes for what a build read. */
hone_status hn_trial_learn(hn_tuner *t, const hn_trial *trial, hn_diag *dg);

/* strategy.c */
bool hn_strategy_enough(const hn_tuner *t); /* of trials, or of time */
bool hn_strategy_known(const char *name);
hone_status hn_strategy_run(hn_tuner *t, hn_diag *dg);
hone_status hn_strategy_list(hn_tuner *t, hn_diag *dg); /* dry run: what would be tried, as far as it is known */

/* store.c */
typedef struct hn_store hn_store;
hone_status hn_store_open(const char *path, const char *key, hn_store **ret, hn_diag *dg);
void hn_store_close(hn_store *s);
/** One transaction a trial. */
hone_status hn_store_put(hn_store *s, const hn_trial *t, hn_diag *dg);
hone_status hn_store_get(hn_store *s, hn_arena *a, const char *route, hn_trial *ret, bool *ret_found, hn_diag *dg);

#endif
