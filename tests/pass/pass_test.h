/* Running passes on texts in tests. */
#ifndef HN_TESTS_PASS_TEST_H
#define HN_TESTS_PASS_TEST_H

#include "eval/eval.h"
#include "harness.h"
#include "ir/graphs.h"
#include "pass/pass.h"

/** Run the pass, fold constants and identities, and validate; yields how often the pass fired. */
int hn_test_fires(hn_test *t, const char *pass, const char *text, hn_graph **ret);
/**
 * hn_test_fires; then evaluate both graphs on inputs that are random, and on
 * inputs with infinities and NaN, and compare (relative difference 1e-6 of double results). Yields how often it fired.
 */
int hn_test_pass(hn_test *t, const char *pass, const char *text, hn_graph **ret);
/** hn_test_pass for a target that has a tactic for every composite. */
int hn_test_pass_keeping(hn_test *t, const char *pass, const char *text, hn_graph **ret);
/** hn_test_pass on each text; fails where the pass fires. */
void hn_test_none_fires(hn_test *t, const char *pass, const char *const *text, int n);
int hn_test_count_ops(const hn_graph *g, hn_op op);
/** The type of input i when every symbol stands for `extent`, or its bound where that lies outside. */
hn_tdesc hn_test_input_type(hn_test *t, const hn_graph *g, int i, int64_t extent);
/** Random values in [-1, 1]; hostile: every eighth is an infinity, NaN, zero of either sign, tiny or large. */
void hn_test_fill(hn_rng *r, hn_tensor *x, bool hostile);

#endif
