/* Whether a case's outputs are what its files want. */
#ifndef CONFORMANCE_JUDGE_H
#define CONFORMANCE_JUDGE_H

#include <hone/hone.h>

#include "base/attr.h"

enum { MAX_IO = 64 };

typedef struct result {
    const char *verdict; /* NULL while all is well */
    char reason[400];
} result;

/** The first verdict stays. */
void say(result *r, const char *verdict, const char *fmt, ...) HN_PRINTF(3, 4);
/** A refusal as unsupported is a skip, anything else a failure. Frees the error. */
void say_error(result *r, const char *what, hone_error *err);

typedef struct io_set {
    const char *name; /* of the case */
    hone_io io[MAX_IO];
    hone_tensor file[MAX_IO]; /* inputs: what to feed; outputs: what is wanted */
    bool has_file[MAX_IO];
    bool is_list[MAX_IO]; /* this and the next entry are one list */
    bool cut_off[MAX_IO]; /* the file's bfloat16 were cut off, not rounded */
    bool loose;           /* tolerances for random graphs: see judge.c */
    double noise[MAX_IO]; /* loose: how far the model's own rounding carries the output */
    hone_dtype narrowest; /* loose: float type inside the model */
    bool foreign;         /* loose: whoever made the files may have computed wider than in halves */
    int n, n_in;
    bool owned; /* data of the outputs' files is to be freed */
    bool given; /* some of the model's inputs got their values when it was read */
} io_set;

/** Run with the inputs of s; got[] by entry, data freed with hone_tensor_free. False: r says why. */
typedef bool (*run_fn)(void *user, const io_set *s, hone_tensor *got, result *r);

/** Run once, or as often as telling takes where outputs are drawn at random, and judge. */
void judge(io_set *s, run_fn run, void *user, result *r);

#endif
