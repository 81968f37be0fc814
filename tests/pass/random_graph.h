/* Random graphs of float views and arithmetic for the passes to work on. */
#ifndef HN_TESTS_PASS_RANDOM_GRAPH_H
#define HN_TESTS_PASS_RANDOM_GRAPH_H

#include "base/os.h"
#include "harness.h"
#include "ir/ir.h"

/**
 * Elementwise work, views, reductions and contractions of f32 over small extents, some of them symbols; the values that
 * nobody reads are the outputs. `smooth` leaves out ops that make a step of a rounding (floor, comparisons, casts).
 */
hn_graph *hn_random_float_graph(hn_test *t, uint64_t seed, int n_node, bool smooth);

#endif
