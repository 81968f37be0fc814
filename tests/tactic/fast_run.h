/* Runs points of one tactic over one small graph, compiled in process, against evaluation. */
#ifndef HN_TESTS_TACTIC_FAST_RUN_H
#define HN_TESTS_TACTIC_FAST_RUN_H

#include "harness.h"
#include "tactic/tactic.h"

/** Inputs whose names start with w or b are constants of the region. */
typedef struct fast_case {
    const char *text;
    const char *root;   /* op of the root */
    const char *layout; /* of every value of the rank that it has letters for, "acdb"; NULL: plain */
    const char *plain;  /* names, by spaces, of values that stay plain all the same */
    int64_t sym;        /* value of every symbol; 0: opt */
    double tol;         /* relative L2; 0: 2e-6 */
    int n_point;        /* points tried, spread over the ranking; 0: 8 */
} fast_case;

/** Check on AVX2 and AVX-512 where the machine has them; fails unless the tactic fits and has a point. */
void fast_check(hn_test *t, const fast_case *c, const char *tactic);
/**
 * Every tactic that fits the region, points spread over its ranking: compiled as fast_check does, and in the interpreter, which
 * sees reads past an end and scratch read before it is written. For a GPU in the interpreter alone, where
 * one must fit as well unless the root can be expanded. Fails when none fits. Numbers in operands whose names start
 * with i are 0..3.
 */
void fast_every(hn_test *t, const fast_case *c);
/** The tactic must refuse for this reason. */
void fast_refuses(hn_test *t, const fast_case *c, const char *tactic, hn_fit why);
/** With $HONE_BENCH set: time the best-ranked points in turns, print percent of the peak measured beside
 * them. */
void fast_bench(hn_test *t, const fast_case *c, const char *tactic);

#endif
