/* Models in a few words, for tables of what other compilers got wrong. */
#ifndef HN_TESTS_PASS_BUG_CASE_H
#define HN_TESTS_PASS_BUG_CASE_H

#include "harness.h"

/**
 * model: statements parted by `;`
 *     in NAME TYPE DIMS         an input; f32 i64 i32 u8 i8 bool; DIMS "-" is a scalar, letters are symbols
 *     const NAME TYPE DIMS VALUES
 *     node OP IN OUT [ATTR...]  as g_node of tests/import/make.h
 *     body NAME ... end         a graph, for the attribute of the node that follows it
 *     out NAME [TYPE]
 * in:   values of each input in order, parted by `|`; "[2,3]" before them where extents are symbols
 * want: values of each output, parted by `|`; "[2,3]" before them also checks the shape; or "error: TEXT", which importing or
 *       running must say
 */
typedef struct hn_bug {
    const char *from; /* where it was reported, and what went wrong there */
    int opset;
    const char *model, *in, *want;
} hn_bug;

/** Evaluate unoptimised and optimised, build and run an engine, and compare all three with `want` (relative 1e-5). */
void hn_check_bugs(hn_test *t, const hn_bug *bug, int n);

#endif
