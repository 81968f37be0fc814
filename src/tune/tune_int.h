/* Inside the tuner: the programs it drives and the store. */
#ifndef HN_TUNE_TUNE_INT_H
#define HN_TUNE_TUNE_INT_H

#include "base/os.h"
#include "tune/tune.h"

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
    char *dir;             /* temporary folder of engines, inputs, outputs */
    char *program;
    int64_t deadline_ns;   /* of the present phase; 0: none */
    int64_t end_ns;        /* of the budget; 0: none */
    int patience;          /* factor on the trial's time limit: the default builds with cold caches */
    const char **input;    /* .npy file of each input */
    hn_tune_result *r;
    struct hn_store *store;
    hn_rng rng;
} hn_tuner;

/* drive.c */
char *hn_find_program(const char *given);
hone_status hn_drive_build(hn_tuner *t, const char *route, const char *engine, hn_trial *trial, hn_diag *dg);
hone_status hn_runner_start(hn_tuner *t, const char *engine, hn_runner *ret, hn_diag *dg);
void hn_runner_stop(hn_runner *r);
/** Median ns of a block of about `seconds`. */
hone_status hn_runner_block(hn_tuner *t, hn_runner *r, double seconds, double *ret_ns, hn_diag *dg);
/** Run once and judge every output: *ret_err gets the worst relative L2 error, HUGE_VAL when non-finite values mismatch. */
hone_status hn_runner_judge(hn_tuner *t, hn_runner *r, double *ret_err, hn_diag *dg);
hone_status hn_write_npy(const char *path, const hn_tensor *x, hn_diag *dg);

/* store.c */
typedef struct hn_store hn_store;
hone_status hn_store_open(const char *path, const char *key, hn_store **ret, hn_diag *dg);
void hn_store_close(hn_store *s);
/** One transaction a trial. */
hone_status hn_store_put(hn_store *s, const hn_trial *t, hn_diag *dg);
bool hn_store_get(hn_store *s, hn_arena *a, const char *route, hn_trial *ret);

#endif
