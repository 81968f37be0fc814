/* Passes: graph to graph rewrites, one idea a file; the runner owns walking, fixpoints, validation, printing and timing. */
#ifndef HN_PASS_PASS_H
#define HN_PASS_PASS_H

#include "core/knob.h"
#include "core/target.h"
#include "ir/ir.h"
#include "ir/op.h"

/** What passes may consult besides the graph. */
typedef struct hn_pass_ctx {
    hn_knobs *knobs;         /* read only after a match has fired */
    const hn_target *target; /* NULL: target-independent use (tests) */
    hn_arena *scratch;       /* reset after each pass */
    bool allow_inexact;      /* reassociation allowed (math_exact off) */
    /** Does a tactic take this composite whole? NULL: none does, every composite is expanded. */
    bool (*keep)(void *user, const hn_node *n);
    void *keep_user;
} hn_pass_ctx;

/** The knob's value for node n (all its origins); the read is recorded. */
int64_t hn_pass_knob(hn_pass_ctx *c, hn_knob id, const hn_node *n);

enum { /* what a pass leaves true; the runner checks the claim in debug builds */
    HN_KEEP_SHAPES = 1 << 0, /* types of surviving values */
    HN_KEEP_NUMBERS = 1 << 1 /* results to the bit */
};

typedef struct hn_pass_def {
    const char *name;
    const char *summary;
    hn_op on;     /* node passes: which op is visited; HN_OP_NONE: all */
    int keeps;
    bool exact;   /* false: runs only where reassociation is allowed */
    /** Node pass: true when it changed the graph. May replace and create nodes; the runner sweeps dead ones. */
    bool (*visit)(hn_builder *b, hn_node *n, hn_pass_ctx *c);
    /** Whole-graph pass (instead of visit); *fired counts changes. Called for the root and each body, innermost first. */
    hone_status (*run)(hn_graph *g, hn_pass_ctx *c, int *fired, hn_diag *dg);
} hn_pass_def;

/** All passes (registry: passes.def). */
int hn_pass_count(void);
const hn_pass_def *hn_pass_at(int i);
const hn_pass_def *hn_pass_find(const char *name);

/** A named sequence of pass groups; a group repeats until nothing fires (at most `rounds`). Data, so that it can be printed. */
typedef struct hn_pipeline_step {
    const char *pass; /* NULL ends the pipeline */
    int group;        /* steps of one group stand together */
} hn_pipeline_step;
typedef struct hn_pipeline {
    const char *name;
    const hn_pipeline_step *step;
    int rounds;
} hn_pipeline;
const hn_pipeline *hn_pipeline_find(const char *name); /* "default", "none" (only what building needs), ... */
int hn_pipeline_count(void);
const hn_pipeline *hn_pipeline_at(int i);

typedef struct hn_pass_stat {
    const char *pass;
    int runs, fired;
    int64_t ns;
} hn_pass_stat;

typedef struct hn_pass_debug { /* switches named in base debug.def style; all off by default */
    bool validate;   /* full validation after each pass that fired */
    bool print;      /* log the graph after each pass that fired */
    bool roundtrip;  /* print, parse, compare digests after each pass */
    const char *stop_after;
} hn_pass_debug;

/**
 * Run a pipeline on a root graph and its bodies.
 *
 * Errors: HONE_E_NOMEM; HONE_E_INTERNAL when a pass breaks the graph (names the pass and every broken invariant); whatever a
 *         pass raises
 */
hone_status hn_pipeline_run(hn_graph *g, const hn_pipeline *p, hn_pass_ctx *c, const hn_pass_debug *debug,
                            hn_pass_stat *ret_stat, int *n_stat, hn_diag *dg);

#endif
