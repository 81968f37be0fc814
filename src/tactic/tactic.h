/* Tactics: ways to run one region on one device. A tactic sees a region and a target, never the graph; it is a pure
 * function of region, target and parameters: it measures nothing, chooses nothing, allocates no device memory. */
#ifndef HN_TACTIC_TACTIC_H
#define HN_TACTIC_TACTIC_H

#include "base/arena.h"
#include "base/diag.h"
#include "core/libcall.h"
#include "core/core.h"
#include "core/knob.h"
#include "core/target.h"
#include "ir/ir.h"
#include "ir/op.h"
#include "kir/kir.h"

/**
 * A group of nodes that one tactic call computes: a graph of its own whose inputs are the operands and whose outputs are
 * the results. Values carry the physical layouts chosen for them; single-element constants stand inside the graph, larger
 * constants are operands with `data`. The root gives the loops their shape; nodes before it are prologue, nodes after it
 * epilogue; both are pointwise or views. A pointwise region's root is its last node.
 */
typedef struct hn_region {
    hn_graph *g;
    hn_node *root;
    hn_data *const *data; /* per g->in[i]: constant bytes, or NULL */
    const char *name;     /* for people: origin of the root */
    const char *ops;      /* for people: "conv+add+relu"; may be NULL */
    bool exact;           /* every op rounds as the model says, whatever is fused */
    hn_digest digest;     /* of the graph with layouts and which operands are constant; not of constants' bytes */
} hn_region;

/** Why a tactic does not take a region; shown by `hone explain`. */
typedef enum hn_fit {
#define X(name, text) HN_FIT_##name,
#include "tactic/fits.def"
#undef X
} hn_fit;
const char *hn_fit_text(hn_fit f);

enum { HN_MAX_PARAM = 8, HN_MAX_PARAM_VALUE = 16 };

/** The tactic's own parameter space: a product of small lists, filtered by legal(). */
typedef struct hn_space {
    int n;
    struct {
        const char *name;
        int n;
        int64_t value[HN_MAX_PARAM_VALUE];
        bool settled; /* stands at value[0] unless a knob asks for another: too many points would crowd the race */
    } at[HN_MAX_PARAM];
} hn_space;
void hn_space_add(hn_space *s, const char *name, int64_t lo, int64_t hi, int64_t step);
void hn_space_add_list(hn_space *s, const char *name, int n, const int64_t *value);
/** A parameter that the arithmetic of the tactic settles at value[0]; the others are for routes. */
void hn_space_add_settled(hn_space *s, const char *name, int n, const int64_t *value);

/* ---- what emit() yields ---- */
typedef enum hn_ref_kind {
    HN_REF_IN,   /* operand i of the region */
    HN_REF_OUT,  /* result i */
    HN_REF_TEMP, /* temporary i, shared by the launches of this emission */
    HN_REF_BLOB, /* packed constant i */
    HN_REF_FAULT, /* HN_FAULT_BYTES of the launch's own, zero before it: hn_lower_check writes them */
} hn_ref_kind;

typedef struct hn_ref {
    hn_ref_kind kind;
    int index;
} hn_ref;

/** One kernel call, or one call of a vendor's library. Launches run in order. */
typedef struct hn_kcall {
    hn_kfunc func;
    const hn_libcall *call; /* a library's: func stays empty, and the buffers are the call's */
    const hn_ref *buf;   /* hn_kcall_n_buf of them, in calling order */
    const hn_dim *arg; /* func.n_arg of them, over the region's symbols */
    double flops;      /* of the whole launch at the symbols' opt values, for threading decisions */
    double bytes;
} hn_kcall;

int hn_kcall_n_buf(const hn_kcall *k);

/** Constant bytes that the tactic derives from an operand at build time; stored once per (operand digest, recipe). */
typedef struct hn_blob {
    int operand;         /* whose data; -1: a table of the tactic's own */
    const char *recipe;  /* e.g. "gemm_b_k256_n16_f32": equal recipe and operand mean equal bytes */
    size_t bytes;
} hn_blob;

typedef struct hn_emission {
    hn_arena *arena;
    HN_VEC(hn_kcall) launches;
    HN_VEC(hn_dim) temp_bytes;
    HN_VEC(hn_blob) blobs;
    /** Pairs: result `out` may share storage with operand `in` (same bytes, read before written at every element). */
    HN_VEC(struct hn_inplace { int out; int in; }) inplace;
} hn_emission;

typedef struct hn_tactic_def {
    const char *name;  /* grammar: <op>_<dtypes>_<idea>__<target> */
    int rev;           /* bump when emitted code changes */
    uint64_t needs;    /* hn_feat bits */
    hn_arch arch;
    hn_library library; /* that it calls: taken only where the library is here */
    bool portable; /* plain loops, for other architectures too: hn_tactic_emit gives them the form that each needs */
    /** HN_FIT_YES or a named reason. Cheap. Layouts of the region's values are given: refuse what is not understood. */
    hn_fit (*fits)(const hn_region *r, const hn_target *t);
    void (*space)(const hn_region *r, const hn_target *t, hn_space *ret);               /* NULL: no parameters */
    bool (*legal)(const hn_region *r, const hn_target *t, const int64_t *p);            /* NULL: all points */
    /** Predicted nanoseconds on one core at the symbols' opt values; ranks candidates and serves alone without a device. */
    double (*cost)(const hn_region *r, const hn_target *t, const int64_t *p);
    hone_status (*emit)(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg);
    /** Write blob `i` of the emission for these parameters; dst has blobs[i].bytes. NULL: the tactic makes no blobs. */
    hone_status (*pack)(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg);
    bool changes_numbers; /* class above "reassociated": Winograd, low precision; taken only where knobs allow */
    hn_knob source;              /* switches the tactic off where another takes the region; NONE: always asked */
    hn_knob source_too;          /* another one that does: of a library's call that also changes numbers */
    hn_knob pin[HN_MAX_PARAM];   /* pins the parameter with this index; NONE: no knob does */
} hn_tactic_def;

/** What a route asks of parameters. */
typedef struct hn_pins {
    void *user;
    bool (*get)(void *user, hn_knob k, int64_t *ret);  /* the value that k pins its parameter to; false: none */
    void (*miss)(void *user, hn_knob k, int64_t value); /* no legal point has it: the pin does not apply */
} hn_pins;

/** Can the tactic make code for this target? Whether it fits a region is another question. */
bool hn_tactic_serves(const hn_tactic_def *td, const hn_target *t);
/** It makes code for that architecture, given a target that has what it needs. */
bool hn_tactic_knows(const hn_tactic_def *td, hn_arch arch);
/** td->emit; loops for the CPU then become blocks and threads where the target is a GPU, and their scratch temporaries. */
hone_status hn_tactic_emit(const hn_tactic_def *td, const hn_region *r, const hn_target *t, const int64_t *p,
                           hn_emission *ret, hn_diag *dg);

/** All tactics, in a fixed order (registry: tactics.def). */
int hn_tactic_count(void);
const hn_tactic_def *hn_tactic_at(int i);
const hn_tactic_def *hn_tactic_find(const char *name);
/** Print and parse "name_mr6_nr16": the tactic with its parameters, named after its space. */
void hn_tactic_print(const hn_tactic_def *t, const hn_space *s, const int64_t *p, hn_str *out);

/**
 * Visit the legal points of a tactic for a region, best predicted cost first, at most cap; yields how many. ret_p holds
 * cap rows of HN_MAX_PARAM; ret_ns the predictions. Knobs are read through pins (NULL: none) in the order of the
 * parameters, each only where the points that are left differ in its parameter.
 */
int hn_tactic_points(const hn_tactic_def *td, const hn_region *r, const hn_target *t, const hn_pins *pins, int cap,
                     int64_t (*ret_p)[HN_MAX_PARAM], double *ret_ns);

/* ---- region helpers ---- */
/** Wrap an extracted graph: finds nothing, computes the digest. data has one entry per input. */
void hn_region_init(hn_region *r, hn_graph *g, hn_node *root, hn_data *const *data, const char *name);
/** Index of v among the region's inputs, or -1. */
int hn_region_operand(const hn_region *r, const hn_value *v);
/** Result `out` reads operand `in` at its own index alone, and both are stored alike: it may be written over it. */
bool hn_region_in_place(const hn_region *r, int in, int out);
/** Extent at the symbol's opt value. */
int64_t hn_region_opt(const hn_region *r, hn_dim d);
/** Sum of the ops' work models at opt sizes. */
void hn_region_work(const hn_region *r, hn_work *ret);
/** Roofline: max(flops / peak, bytes / bandwidth), in ns on one core, with the given efficiencies in (0,1]. */
double hn_roofline_ns(const hn_target *t, double flops, double bytes, double eff_flops, double eff_bytes);

/**
 * What a GPU takes for threads that do `steps` one after another, each waiting ns_step for what it reads; 0 on a CPU. In ns on one
 * core, as costs are.
 */
double hn_threads_ns(const hn_target *t, double threads, double steps, double ns_step);

#endif
