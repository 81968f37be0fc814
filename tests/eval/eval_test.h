/* Evaluating texts in tests. */
#ifndef HN_TESTS_EVAL_TEST_H
#define HN_TESTS_EVAL_TEST_H

#include "eval/eval.h"
#include "harness.h"
#include "ir/graphs.h"

typedef struct hn_evaluated {
    hn_tensor *out;
    const char *text; /* one line an output: "f32[2] 1 2" */
} hn_evaluated;

/** "f32[2,2] 1 2 3 4"; lives as long as the process of the test. */
hn_tensor hn_test_tensor(hn_test *t, const char *text);
const char *hn_test_tensor_text(hn_test *t, const hn_tensor *x);
/** Evaluate; the inputs are texts. */
hn_evaluated hn_test_eval_n(hn_test *t, const char *graph, hn_eval_mode mode, const char *const *in);
#define hn_test_eval(t, graph, mode, ...)                                                                    \
    hn_test_eval_n(t, graph, mode, (const char *const[]){__VA_ARGS__, NULL})
/** Must fail with that status and text; inputs end with NULL. */
void hn_test_eval_fails(hn_test *t, const char *graph, const hn_eval_opts *opts, hone_status want,
                        const char *part, ...);

#endif
