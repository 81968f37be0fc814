/* The tuner: routes in, the proven fastest engine out. Every trial builds and runs in processes of its own. */
#ifndef HN_TUNE_TUNE_H
#define HN_TUNE_TUNE_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/os.h"
#include "core/knob.h"
#include "eval/eval.h"
#include "ir/ir.h"

/** False ends the search: what is proven so far stays, and the result says that it was stopped. Called several times a second. */
typedef bool (*hn_tune_progress)(void *user, const char *phase, int64_t done, int64_t total);

/** How far an output may be from the reference. Mismatched NaN or infinity breaks every bound. */
typedef struct hn_bound {
    hn_norm norm;
    const char *output; /* NULL: every output of floats that no bound of this norm names */
    double limit;       /* at most; for cosine and SNR at least */
} hn_bound;

typedef struct hn_tune_opts {
    const char *model_path;
    hn_digest model_digest;
    const char *program;       /* the hone program that trials run; NULL: found beside this program or library */
    const char *base_route;    /* what every route starts from; NULL: the default */
    const char *tools;         /* digest or name of what builds: part of the store's key; NULL: unknown */
    const char *expression;    /* NULL: every tunable knob that a default build reads */
    const char *strategy;      /* "fast", "full", "mixed", "random"; NULL: mixed */
    const char *const *build_arg; /* further words for every `hone build` (shapes, threads, caches); NULL-terminated */
    int threads;
    double budget_s;           /* 0: none */
    bool standing;             /* processes that build or run engines stay and take one after the other, where starting one is dear: on GPUs */
    int64_t start_ns;          /* when the budget began, hn_now_ns(); 0: now */
    int max_trials;            /* 0: none */
    const char *store;         /* SQLite file; NULL: none */
    bool resume;               /* trials that the store holds are not run again */
    const hn_bound *bound;     /* none stated: knobs that change numbers stay, and outputs keep near the default's error */
    int n_bound;
    const char *judge;         /* shell command; gets the folder of outputs as its last word, prints a number; NULL: none */
    double judge_limit;        /* that number is at most this */
    double trial_timeout_s;    /* 0: 60; the default's own build gets ten times that */
    int64_t trial_memory_bytes;
    /** Called once the default engine stands, for want and own of hn_tune to be there when it returns; NULL: they are. */
    hone_status (*references)(void *user, hn_diag *dg);
    /** Would that return at once? Where standing, the search begins without them. NULL: it would. */
    bool (*references_ready)(void *user);
    void *references_user;
    uint64_t seed;
    bool dry_run;
    hn_tune_progress progress;
    void *progress_user;
} hn_tune_opts;

typedef enum hn_outcome { /* numbers reach the store */
    HN_OUT_FASTER = 1,   /* than the incumbent, proven */
    HN_OUT_NOT_FASTER = 2,
    HN_OUT_SAME_ENGINE = 3, /* the payload of an earlier trial: not measured again */
    HN_OUT_INACCURATE = 4,
    HN_OUT_BUILD_FAILED = 5,
    HN_OUT_CRASHED = 6,
    HN_OUT_TIMED_OUT = 7,
    HN_OUT_LISTED = 8,   /* dry run */
    HN_OUT_OUT_OF_MEMORY = 9,
    HN_OUT_SCREENED = 10, /* measured for what its changes gain, together with others; whether it is faster was not asked */
} hn_outcome;
const char *hn_outcome_name(hn_outcome o);

/** Where a trial's time went, in seconds. */
typedef struct hn_trial_cost {
    double build_s, judge_s, race_s;
    double compile_s, timing_s, library_s, write_s; /* of build_s: kernels, races of candidates, libraries' proposals, plan and file */
    int n_compiled, n_timed;               /* kernels, candidates */
    int rounds;                            /* of the race */
} hn_trial_cost;

typedef struct hn_trial {
    const char *route;
    hn_outcome outcome;
    const char *reason;     /* "" or why */
    char payload[HN_DIGEST_TEXT];
    double ratio, lo, hi;   /* incumbent's time over this one's, with its interval; 0: not raced */
    double err;             /* worst output's relative L2 error; negative: not judged */
    const char *knobs;      /* names of the knobs that its build read, with spaces between; "" unknown */
    const char *runners_up; /* regions and times of candidates as its build's JSON has them, {"label":[share,2nd,3rd,...],...}; "" unknown */
    int clock_mhz;          /* the lowest that the GPU showed behind a round of its race; 0: unknown */
    hn_trial_cost cost;     /* zeros where the store gave the trial */
} hn_trial;

/** What a screening says of one change. */
typedef struct hn_effect {
    const char *setting; /* "-tactic:rank@region:0123=1" */
    double gain, sd;     /* log of the old time over the new */
    bool taken;          /* it is in the route that led behind the screening */
} hn_effect;

typedef struct hn_tune_result {
    const char *route;      /* the winner's; "" for the default */
    double speedup, lo, hi; /* over the default, from the confirming race; 1 when nothing was proven */
    double confidence;      /* of every interval here, and what "proven" means */
    bool confirmed;         /* false with a route: stopped before the confirming race; the ratios are those of the search */
    bool stopped;           /* progress said so */
    const char *note;       /* why less was done than asked; "" */
    double err;
    double bound;           /* on the relative L2 error of outputs that no stated bound covers */
    double start_s;         /* until the default engine stood */
    HN_VEC(hn_trial) trials;
    HN_VEC(hn_effect) effects; /* empty where nothing was screened */
    double elapsed_s;
    int n_restored;         /* taken from the store */
} hn_tune_result;

/**
 * Tune. The engine at engine_path is always the best that is proven so far; it is replaced whole.
 *
 * in: the graph's inputs; want, own: its outputs evaluated in double and in its own dtypes (own without data: want is somebody's
 * reference and says where NaN and infinities belong). read: knobs that a default build
 * reads, for a dry run; otherwise the builds themselves say what they read. The default build is made whatever the budget says;
 * the budget ends everything after it.
 *
 * Errors: HONE_E_INVALID the expression, strategy or a bound; HONE_E_NOTFOUND no program; what the default build raises;
 *         HONE_E_ACCURACY the base route breaks a bound; HONE_E_CANCELLED stopped before there was an engine
 */
hone_status hn_tune(hn_arena *a, const hn_graph *g, const hn_tensor *in, const hn_tensor *want, const hn_tensor *own,
                    const hn_tune_opts *o, const hn_knob_read *read, int n_read, const char *engine_path,
                    hn_tune_result *ret, hn_diag *dg);

/* ---- the race's statistic ---- */
/**
 * Paired log-ratios, one a round of fresh processes, with an interval that holds at every round at once: the t-test
 * martingale of Perez-Ortiz, Lardy, de Heide and Gruenwald, "E-statistics, group invariance and anytime-valid testing" (2022);
 * see also Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown variance" (2023).
 */
typedef struct hn_race {
    int n;
    double mean, m2; /* Welford's running moments of the log-ratios */
} hn_race;
void hn_race_add(hn_race *r, double log_ratio);
double hn_race_sd(const hn_race *r);
/** Bounds of the mean log-ratio at error rate alpha; false while the rounds are too few to bound it. */
bool hn_race_interval(const hn_race *r, double alpha, double *ret_lo, double *ret_hi);

/* ---- many small changes at once ---- */
enum { HN_EFFECTS_MOST = 64, HN_EFFECTS_TRIED = 512 };
/** Zeroed to begin with. A set of changes is a word with a bit for each, in the order in which they were added. */
typedef struct hn_effects {
    int n, n_group;
    int group[HN_EFFECTS_MOST];                          /* at most one change of a group is made at a time */
    double mean[HN_EFFECTS_MOST], sd[HN_EFFECTS_MOST];   /* of the log ratio that it gains, as far as is known beforehand */
    double precision[HN_EFFECTS_MOST][HN_EFFECTS_MOST], moment[HN_EFFECTS_MOST], energy; /* of the observations */
    double root[HN_EFFECTS_MOST][HN_EFFECTS_MOST];
    double gain[HN_EFFECTS_MOST], gain_sd[HN_EFFECTS_MOST], scale; /* where fitted; scale: on sd, as the observations have it */
    uint64_t seen;                                       /* changes of trials that ran */
    uint64_t tried[HN_EFFECTS_TRIED];
    int made[HN_EFFECTS_MOST], broke[HN_EFFECTS_MOST];
    int n_tried, row;
    bool fitted;
} hn_effects;
/** One more change; groups count from 0. False where there is no room. */
bool hn_effects_add(hn_effects *e, int group, double mean, double sd);
/** Trials of the design, which come first. */
int hn_effects_rows(const hn_effects *e);
/** The changes of the next trial: the design's, then the best guess or, where that was given out, a draw. False: nothing new. */
bool hn_effects_next(hn_effects *e, hn_rng *rng, uint64_t *ret_on, bool *ret_designed);
/** A trial with these changes gained so much (log of old time over new) against one with those, give or take sd. */
void hn_effects_observe(hn_effects *e, uint64_t on, uint64_t against, double gain, double sd);
/** A trial with these changes gave no time. */
void hn_effects_broke(hn_effects *e, uint64_t on);
/** What change i gains, give or take *ret_sd. */
double hn_effects_gain(hn_effects *e, int i, double *ret_sd);
/** What a set of changes gains. */
double hn_effects_sum(hn_effects *e, uint64_t on);
uint64_t hn_effects_best(hn_effects *e);
/** What knowing all effects would gain beyond the best guess, on average. */
double hn_effects_left(hn_effects *e);

/* ---- the trial store as text ---- */
/** Every trial of a store as JSON lines. HONE_E_NOTFOUND when there is no such file. */
hone_status hn_tune_store_export(const char *path, hn_str *out, hn_diag *dg);
/** Take in such lines, all or none; trials that are there stay. HONE_E_FORMAT names the line. */
hone_status hn_tune_store_import(const char *path, const char *lines, int *ret_added, hn_diag *dg);

/* ---- the routes to try ---- */
typedef struct hn_space_axis {
    hn_knob knob;
    const char *pattern;
    int64_t base;
    int64_t value[32]; /* without the base value */
    int n;
    int turn;          /* in a space that grows: less goes earlier */
    int taken;         /* values that hn_search_next gave out */
} hn_space_axis;
enum { HN_TUNE_MAX_AXES = 256 };
typedef struct hn_search {
    hn_space_axis *axis; /* in the order in which they came: indices stay when more come */
    int n_axis, cap;
    const char *fixed;   /* settings that stand in every route */
    bool grows;          /* no expression: every tunable knob that a build reads */
    bool allow_numbers;
    bool screens;        /* regions' choices are screened together ahead of ordinary knobs, not turned one at a time: on a GPU, where
                          * a trial costs little and most ordinary knobs make the same engine */
    hn_route base;       /* what every route starts from */
} hn_search;
/** Axes from an expression; text NULL: none yet, hn_search_grow adds what builds read. base: a route's text, "" for the default. */
hone_status hn_search_make(hn_arena *a, const char *text, const char *base, bool allow_numbers, hn_search *ret, hn_diag *dg);
/** A build read this knob: an axis for it, unless it is there, is not tunable, or changes numbers without a bound. */
hone_status hn_search_grow(hn_arena *a, hn_search *s, const hn_knob_def *k, hn_diag *dg);
/**
 * A build's regions: for each that takes a share of the time worth turning an axis of tactic:rank, over candidates nearly as fast
 * alone as the first (none where they are screened), and for the largest one of tactic:width. text: "label":[share,2nd,3rd,...] with
 * commas between, times over the first's.
 */
hone_status hn_search_grow_regions(hn_arena *a, hn_search *s, const char *text, hn_diag *dg);
/** One thing that may be done to a region. */
typedef struct hn_change {
    hn_knob knob;
    const char *pattern;
    int64_t value;
    int group;       /* a region's, of which one at most is done: its candidates are others where launches overlap */
    double mean, sd; /* of the log ratio that it gains in the whole engine, as far as is known beforehand */
} hn_change;
/**
 * What may be done to the regions of a build by this route, the `most` that promise most: launches that overlap where they did not and the
 * other way round, candidates nearly as fast alone. Groups count from 0. Returns how many, HN_EFFECTS_MOST at most; -1: out of memory.
 */
int hn_search_changes(hn_arena *a, const hn_search *s, const char *regions, const char *route, int most,
                      hn_change ret[HN_EFFECTS_MOST]);
/** Is there an axis whose next value goes before all screening? */
bool hn_search_has_early(const hn_search *s);
/** One change as a route writes it. */
const char *hn_search_change_text(hn_arena *a, const hn_change *c);
/** Canonical text of `from` with those of the changes over it that `on` has a bit for. NULL: out of memory. */
const char *hn_search_with(hn_arena *a, const char *from, const hn_change *c, int n, uint64_t on);
/** Number of routes that change one axis alone; of the whole product (capped at INT64_MAX), the base route left out. */
int64_t hn_search_n_single(const hn_search *s);
int64_t hn_search_n_product(const hn_search *s, const bool *use);
/** The next change of one axis alone, as text in the arena, and whose it is; NULL when none is left. A stated space is gone
 *  through as it was written. One that grows takes a value of each axis in turn, so that a short budget sees every knob:
 *  sizes from the middle of what is sensible outward, and switches that are on by default two turns later, for turning a
 *  rewrite off gains least often. */
const char *hn_search_next(hn_arena *a, hn_search *s, int *ret_axis);
/** The i-th route of the product. use: axes that take part; NULL: all. The first axis turns fastest, so that a product which
 *  grows goes on where it was. */
const char *hn_search_product(hn_arena *a, const hn_search *s, const bool *use, int64_t i);
/** Canonical text of `from` with the settings of `change` put over it. NULL: out of memory, or either does not parse. */
const char *hn_search_over(hn_arena *a, const char *from, const char *change);

#endif
