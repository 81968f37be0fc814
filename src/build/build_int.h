/* Inside building: groups, regions, choices and the state that the phases hand on. */
#ifndef HN_BUILD_BUILD_INT_H
#define HN_BUILD_BUILD_INT_H

#include "build/build.h"
#include "build/heat.h"
#include "codegen/codegen.h"
#include "engine/engine.h"
#include "engine/plan_builder.h"
#include "tactic/tactic.h"

typedef enum hn_group_kind {
    HN_GROUP_REGION,  /* one tactic call */
    HN_GROUP_ALIAS,   /* the result is bytes of its operand: no work */
    HN_GROUP_CONTROL, /* if, loop: child blocks */
    HN_GROUP_HOST,    /* a library of the host: a step */
} hn_group_kind;

/** Nodes of one graph that run as one step. */
typedef struct hn_group {
    hn_group_kind kind;
    HN_VEC(hn_node *) nodes; /* in graph order */
    hn_node *root;
    int id, order;           /* order: place in the schedule */
    bool closed;             /* takes no more nodes */
    bool dead;               /* merged into another */
    /* filled by region forming */
    hn_region region;
    hn_digest key;           /* region digest with the names of its symbols: equal keys share an emission */
    hn_value **in;           /* outside value of each region input */
    hn_value **out;          /* outside value of each region output */
    int n_in, n_out;
    struct hn_choice *choice;
} hn_group;

typedef struct hn_groups {
    HN_VEC(hn_group *) all;   /* live groups in schedule order once hn_group_form is done */
} hn_groups;

typedef struct hn_choice {
    hn_symtab *syms;          /* what the emission's dims refer to */
    const hn_target *t;       /* that it was emitted for: the build's, or one with narrower vectors */
    const hn_tactic_def *tactic;
    int64_t p[HN_MAX_PARAM];
    const char *name;               /* tactic with parameters */
    hn_emission *emission;
    double ns;
    bool measured, cached;
    bool early;                     /* its kernels are launched while what precedes them still runs */
    const hn_candidate_report *candidate;
    int n_candidate;
} hn_choice;

/** State of one build. */
typedef struct hn_job {
    hn_arena *a;       /* report strings, everything that lives as long as the build */
    const hn_build_opts *o;
    const hn_target *t; /* of this job: as many cores as the engine has threads, peaks from the timing cache */
    hn_target target;
    hn_graph *g;
    const uint32_t *hint; /* of every input, from before the passes */
    hn_knobs *knobs;
    hn_compile_pool *pool;
    hn_compile_stats pool_before; /* what a pool of the caller's had done already */
    hn_build_report *report;
    HN_VEC(hn_region_report) regions;
    HN_VEC(hn_choice *) choices; /* by key, so that equal regions share one */
    /* code */
    hn_str code;
    HN_VEC(struct hn_code_at { hn_digest digest; bool early; uint64_t entry; }) placed;
    HN_VEC(struct hn_compiled { hn_digest digest; hn_code code; }) compiled;
    HN_VEC(struct hn_ticket { hn_digest digest; int ticket; const hn_kfunc *func; }) tickets;
    struct hn_library_state {
        bool asked, used;
        const char *version, *why; /* "cuBLASLt 13.1.0"; why it is not here */
    } library[HN_LIB_COUNT];
    struct hn_timing *timing; /* measured times; NULL: none kept */
    struct hn_measure *measure;
    hn_engine_writer *writer;
    HN_VEC(struct hn_graph_groups *) formed; /* root and bodies */
    HN_VEC(const hn_target *) narrow; /* the target with narrower vectors */
} hn_job;

bool hn_build_step(hn_job *b, const char *phase, int64_t done, int64_t total); /* false: cancelled */

/* group.c */
hone_status hn_group_form(hn_job *b, hn_graph *g, hn_groups *ret, hn_diag *dg);
bool hn_group_alias_offset(const hn_job *b, hn_graph *g, const hn_node *n, hn_dim *ret_bytes);

/** Computes pointwise work on its operand 0 as it reads it. */
bool hn_group_takes_prologue(const hn_node *n);

/* duplicate.c: cheap producers, one for each reader that can fold them in. */
hone_status hn_duplicate_cheap(hn_job *b, hn_graph *g, hn_diag *dg);

/* region_form.c */
hone_status hn_region_form(hn_job *b, hn_graph *g, hn_group *group, hn_diag *dg);
void hn_region_canonicalise(hn_arena *a, hn_graph *g);

/* layout.c: physical layouts for values, reorders where they meet. */
hone_status hn_layout_assign(hn_job *b, hn_graph *g, hn_diag *dg);

/* choose.c: a tactic for every region of every graph; regions that none takes are split. */
hone_status hn_choose_all(hn_job *b, hn_diag *dg);

/* pins.c: what a route asks of the region with this root. */
typedef struct hn_pin_reader {
    hn_job *b;
    const hn_node *root;
    const char *missed; /* of the last points asked for: a pin that no legal point meets; NULL: none */
} hn_pin_reader;
const hn_target *hn_pin_target(const hn_pin_reader *p);
/** HN_FIT_YES, or why the tactic stays out of a region that it fits. */
hn_fit hn_pin_source(const hn_pin_reader *p, const hn_tactic_def *td);
hn_pins hn_pin_params(hn_pin_reader *p); /* refers to p */

/* measure.c: wall time of emissions on random operands, in one interleaved race. */
typedef struct hn_measure hn_measure;
hone_status hn_measure_create(hn_job *b, hn_measure **ret, hn_diag *dg);
void hn_measure_destroy(hn_measure *m);
typedef struct hn_contender {
    const hn_emission *e;
    const char *name; /* for messages about faults */
    double ns;          /* out: median */
    bool failed;        /* out: it did not compile, or the device did not run it to its end */
    const char *reason; /* out: why it failed */
} hn_contender;
hone_status hn_measure_race(hn_measure *m, const hn_region *r, hn_heat_memory memory, hn_contender *c, int n, hn_diag *dg);

/* timing.c: the timing cache, one text line an entry. First entry wins. A time of infinity stands for a candidate that failed. */
typedef struct hn_timing hn_timing;
hone_status hn_timing_open(hn_arena *a, const char *path, bool read_only, hn_timing **ret, hn_diag *dg);
bool hn_timing_get(const hn_timing *t, hn_digest key, double *ret_ns);
void hn_timing_put(hn_timing *t, hn_digest key, double ns, const char *note);
hone_status hn_timing_save(hn_timing *t, hn_diag *dg);
/** This machine's peaks as the cache first saw them. Predictions rank candidates, so peaks that vary would vary the choice. */
void hn_timing_settle_peaks(hn_timing *t, hn_target *target, bool frozen);

/* code.c: compile (or take from the cache) and place a kernel in the code section. */
hone_status hn_code_get(hn_job *b, const hn_kcall *k, const hn_code **ret, hn_diag *dg);
/** early: a kernel is launched while what precedes it still runs. */
hone_status hn_code_place(hn_job *b, const hn_kcall *k, bool early, uint64_t *ret_entry, hn_diag *dg);
/** Why calls of this library cannot be made here; NULL: they can. */
const char *hn_library_missing(hn_job *b, hn_library which);
hone_status hn_code_submit(hn_job *b, const hn_emission *e, hn_diag *dg);
hone_status hn_code_collect(hn_job *b, hn_diag *dg);

/* plan.c */
/** Groups of one graph or body; found again by graph when the plan is made. */
typedef struct hn_graph_groups {
    hn_graph *g;
    hn_groups groups;
} hn_graph_groups;

typedef struct hn_planner {
    hn_job *b;
    hn_pb *pb;
    uint32_t *buf; /* value id -> buffer, HN_NO until made */
    HN_VEC(struct hn_dim_reg { hn_dim dim; uint32_t reg; }) regs; /* known registers; shortened when a block ends */
} hn_planner;

hone_status hn_plan_make(hn_job *b, hn_plan *ret, hn_diag *dg);
hone_status hn_plan_graph(hn_planner *p, hn_graph *g, hn_diag *dg);
/* plan_size.c: registers for dims and sizes */
/** A dim of a region's own table, in the model's; symbols keep their names. */
hn_dim hn_plan_translate(hn_symtab *to, const hn_symtab *from, hn_dim d);
uint32_t hn_plan_dim(hn_planner *p, hn_dim d);
uint32_t hn_plan_bytes(hn_planner *p, const hn_value *v);
uint32_t hn_plan_calc(hn_planner *p, hn_sop op, uint32_t x, uint32_t y);
void hn_plan_bind_inputs(hn_planner *p, hn_graph *g);
void hn_plan_know(hn_planner *p, hn_dim d, uint32_t reg);
/* plan_extents.c: what kernels take for granted of extents */
void hn_plan_check_extents(hn_planner *p, const hn_group *group);
/** Checks for what inference promised of a node's open extents. */
hone_status hn_plan_check_promises(hn_planner *p, hn_node *n, hn_diag *dg);
/* plan_call.c: kernel calls of one region */
hone_status hn_plan_region(hn_planner *p, hn_group *group, hn_diag *dg);
/* plan_control.c */
hone_status hn_plan_control(hn_planner *p, hn_node *n, hn_diag *dg);
/* plan_host.c: what libraries of the host compute */
hone_status hn_plan_host(hn_planner *p, hn_node *n, hn_diag *dg);
/* plan.c: buffers */
uint32_t hn_plan_value(hn_planner *p, hn_value *v, hn_diag *dg); /* of a computed or constant value; HN_NO raised */
uint32_t hn_plan_new_buf(hn_planner *p, hn_value *v, uint32_t size); /* arena, or heap with its ALLOC */
hn_groups *hn_build_groups(hn_job *b, const hn_graph *g);

/* whole.c */
/** Does a tactic of the target take a region of this node alone, with its values' layouts and the route's choice of tactics? Where
 *  only calls of libraries do, the library is asked for an algorithm; its answer stands in the timing cache. */
bool hn_takes_whole(hn_job *b, const hn_node *n);

#endif
