/* Ops under test, written as graph text and run by their references. */
#ifndef HN_TESTS_OP_OP_TEST_H
#define HN_TESTS_OP_OP_TEST_H

#include "harness.h"
#include "ir/ir.h"

/**
 * Evaluate graph text in the model's dtypes; outputs must equal the constants of `want`, in order, in dtype, shape and
 * value: |got - want| <= tol * (1 + |want|), NaN and infinities alike.
 */
void op_expect_at(const char *file, int line, hn_test *t, const char *text, const char *want, double tol);
/** Parsing the text must fail with a diagnosis that holds `part`. */
void op_refuses_at(const char *file, int line, hn_test *t, const char *text, const char *part);
/** The text parses but evaluation fails with a diagnosis that holds `part`. */
void op_fails_at(const char *file, int line, hn_test *t, const char *text, const char *part);
/** Types of the outputs as printed, separated by spaces: "f32[n,3] i64[]". */
void op_infers_at(const char *file, int line, hn_test *t, const char *text, const char *types);
/** The first output's known contents, separated by spaces ("2 n+1"); "?" when unknown. */
void op_content_at(const char *file, int line, hn_test *t, const char *text, const char *content);

#define EXPECT(text, want)           op_expect_at(__FILE__, __LINE__, t, text, want, 0)
#define EXPECT_NEAR(text, want, tol) op_expect_at(__FILE__, __LINE__, t, text, want, tol)
#define REFUSES(text, part)          op_refuses_at(__FILE__, __LINE__, t, text, part)
#define FAILS(text, part)            op_fails_at(__FILE__, __LINE__, t, text, part)
#define INFERS(text, types)          op_infers_at(__FILE__, __LINE__, t, text, types)
#define CONTENT(text, content)       op_content_at(__FILE__, __LINE__, t, text, content)

#endif
