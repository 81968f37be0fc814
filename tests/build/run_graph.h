/* Build a graph given as text, run the engine, compare with evaluation. */
#ifndef HN_TESTS_BUILD_RUN_GRAPH_H
#define HN_TESTS_BUILD_RUN_GRAPH_H

#include "build/build.h"
#include "eval/eval.h"

typedef struct hn_run_opts {
    const char *route;      /* NULL: default */
    bool measure;           /* race candidates */
    int64_t sym;            /* extent for every symbol; 0: its opt */
    const char *cache_dir;  /* of compiled kernels; NULL: none */
    double tol;             /* relative L2 bound; 0: 1e-5 */
    uint64_t seed;
    struct hn_compile_pool *pool; /* for many small graphs; NULL: one each */
    const hn_tensor *in;    /* inputs, in order; NULL: random ones */
    const char *target;     /* NULL: $HONE_TEST_TARGET, else this machine */
    const char *fails;      /* the run must fail, as evaluation does, with a message that holds this; NULL: neither does */
} hn_run_opts;

/** What tests build for: $HONE_TEST_TARGET, else this machine. */
hn_target hn_test_target(void);
/** Builds, runs and compares every output; fails the test with the output's name and error. */
void hn_check_graph(const char *text, const hn_run_opts *o);
/** The same for a graph in memory. */
void hn_check_graph_of(hn_arena *a, hn_graph *g, const hn_run_opts *o);
/** Engines of both graphs yield the same on the same inputs; `changed` may have more outputs, behind. */
void hn_check_same(hn_arena *a, const hn_graph *g, const hn_graph *changed, const hn_run_opts *o);

#endif
