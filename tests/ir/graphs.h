/* Graphs for tests: from text, and random ones. */
#ifndef HN_TESTS_IR_GRAPHS_H
#define HN_TESTS_IR_GRAPHS_H

#include "base/os.h"
#include "harness.h"
#include "ir/ir.h"
#include "ir/op.h"

/** Parse or fail the test. */
hn_graph *hn_test_graph(hn_test *t, const char *text);
/** Text of a graph, in the test's arena. */
const char *hn_test_text(hn_test *t, const hn_graph *g);
/** Fails with the first problem unless g is valid in full. */
void hn_test_valid(const hn_graph *g);
/** A random valid graph of float, integer and control-flow nodes with odd names, layouts, origins and
 * symbols. */
hn_graph *hn_test_random_graph(hn_test *t, uint64_t seed, int n_node);

#endif
