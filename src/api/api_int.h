/* Inside the edge: handles behind the public names. */
#ifndef HN_API_API_INT_H
#define HN_API_API_INT_H

#include <hone/hone.h>

#include "base/diag.h"
#include "base/os.h"
#include "build/build.h"
#include "core/core.h"
#include "eval/eval.h"
#include "ir/ir.h"

struct hone_model {
    hn_arena *a;
    hn_graph *g;
    char *path;
    hn_digest digest;
    struct hn_compile_pool *pool; /* of builds that keep their tools; NULL: none did */
    struct hn_heat_worker *heat;
    char *pool_cache;             /* the pool's cache folder; NULL: none */
};
/** End the tools that builds kept. */
void hn_api_drop_tools(hone_model *m);

struct hone_report {
    char *json;
};

/** Hand a diag (and what was found with it) to the caller as an error; yields dg->code. problems may be NULL. */
hone_status hn_api_fail(hone_error **err, const hn_diag *dg, const hn_diags *problems);
/** HONE_E_INVALID: what the caller got wrong. */
hone_status hn_api_misuse(hone_error **err, const char *what);
/**
 * Options of this build's size: the caller's as far as they go, dflt beyond. given may be NULL; its first member is its size.
 *
 * Errors: HONE_E_INVALID the size is none
 */
hone_status hn_api_options(void *ret, const void *dflt, size_t bytes, const void *given, hn_diag *dg);
/** Fill n elements with made-up values (HN_HINT_*) and add what they are to the note. `input` moves the seed. */
void hn_api_fill(const char *name, int input, hn_dtype t, int64_t n, uint32_t hint, uint64_t seed, void *data, hn_str *note);
/** Fill *ret from a value's name and type. */
void hn_api_io(hone_io *ret, const char *name, bool is_output, const hn_tdesc *t, const hn_symtab *syms, hn_arena *a);
hone_status hn_api_report(const hn_str *json, hone_report **ret, hn_diag *dg);
char *hn_api_string(const hn_str *s); /* malloc'd copy */
/** Is it a tensor whose bytes are those of its shape? `what` names it in the message. */
hone_status hn_api_tensor_check(const hone_tensor *t, const char *what, hn_diag *dg);
/** The caller's tensor as evaluation takes it; owns nothing. */
void hn_api_tensor(const hone_tensor *t, hn_tensor *ret);
/** A progress callback with times added. */
typedef struct hn_api_progress {
    hone_progress_fn fn;
    void *user;
    int64_t start_ns;
} hn_api_progress;
bool hn_api_step(void *progress, const char *phase, int64_t done, int64_t total);

/** NULL, "" and "host" are this processor. */
bool hn_api_is_host(const char *target);
/**
 * The target of this name: this processor's (its peaks unmeasured), the GPU's that is here ("gpu"), or one of the table.
 *
 * Errors: HONE_E_NOTFOUND no such name; HONE_E_TARGET and what looking for a GPU says: there is none that engines run on
 */
hone_status hn_api_target(const char *name, hn_target *ret, hn_diag *dg);
/** Options with defaults filled in; strings live in `a`. */
typedef struct hn_api_build {
    hn_target target;
    hn_route route;
    hn_build_opts o;
    bool keep_tools;
    hn_api_progress progress;
} hn_api_build;
hone_status hn_api_build_options(hn_arena *a, const hone_build_options *given, hn_api_build *ret, hn_diag *dg);
/** Build the model, which is not changed, into the engine file at path. */
hone_status hn_api_build_model(hn_arena *a, hn_api_build *b, const hone_model *m, const char *path, hn_build_report *ret, hn_diag *dg);
/** Build by the cost model and keep the report alone: what a build reads. */
hone_status hn_api_trace(hn_arena *a, const hone_model *m, hn_api_build *b, hn_build_report *ret, hn_diag *dg);
void hn_api_report_json(const hn_build_report *r, const hone_model *m, hn_str *out);

#endif
