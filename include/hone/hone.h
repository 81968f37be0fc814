/*
 * Hone: an inference compiler and global performance tuner. The whole public C API.
 *
 *     hone_error *err = NULL;
 *     hone_model *m = NULL;
 *     hone_engine *e = NULL;
 *     if (hone_model_load("resnet50.onnx", NULL, &m, &err) || hone_build(m, NULL, "resnet50.hone", NULL, &err)
 *         || hone_engine_open("resnet50.hone", NULL, &e, &err))
 *         fprintf(stderr, "%s\n", hone_error_text(err));
 *
 * Handles are opaque. Functions that can fail return a hone_status and, when `err` is not NULL and the status is not
 * HONE_OK, set *err to an error that the caller frees with hone_error_free(). Outputs are written on success only. Strings
 * are UTF-8. The library never prints; see hone_set_log(). Structs that callers fill start with their own size, so that they
 * can grow: initialise them with their INIT macro.
 *
 * Versions: functions and numbers are only ever added; see hone_version().
 */
#ifndef HONE_HONE_H
#define HONE_HONE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HONE_VERSION_MAJOR 0
#define HONE_VERSION_MINOR 1
#define HONE_VERSION_PATCH 0

#if defined(__GNUC__)
#define HONE_API __attribute__((visibility("default")))
#else
#define HONE_API
#endif

/* ---- statuses and errors ---- */
#ifndef HONE_STATUS_DEFINED
#define HONE_STATUS_DEFINED
/** What a fallible call answers. Numbers are stable and are the program's exit codes. */
typedef enum hone_status {
    HONE_OK = 0,
    HONE_E_OK = 0,
    HONE_E_NOMEM = 1,        /* out of memory */
    HONE_E_INVALID = 2,      /* invalid argument */
    HONE_E_IO = 3,           /* input or output failed */
    HONE_E_FORMAT = 4,       /* damaged or foreign file */
    HONE_E_MODEL = 5,        /* the model contradicts itself or its standard */
    HONE_E_UNSUPPORTED = 6,  /* not supported */
    HONE_E_SHAPE = 7,        /* shapes do not fit */
    HONE_E_TYPE = 8,         /* types do not fit */
    HONE_E_VERSION = 9,      /* version mismatch */
    HONE_E_TARGET = 10,      /* the machine lacks what the engine needs */
    HONE_E_DEVICE = 11,      /* device fault */
    HONE_E_TIMEOUT = 12,     /* time limit passed */
    HONE_E_CANCELLED = 13,   /* cancelled */
    HONE_E_CRASH = 14,       /* a worker process died */
    HONE_E_UNBOUND = 15,     /* a binding has no buffer */
    HONE_E_LIMIT = 16,       /* a stated limit would be exceeded */
    HONE_E_ACCURACY = 17,    /* the accuracy bound is broken */
    HONE_E_NOTFOUND = 18,    /* no such thing */
    HONE_E_INTERNAL = 19     /* internal error */
} hone_status;
#endif

typedef struct hone_error hone_error;
/** One line, lower case, without a full stop. NULL err gives "". Lives as long as the error. */
HONE_API const char *hone_error_message(const hone_error *err);
/** What to do about it; "" when there is nothing to advise. */
HONE_API const char *hone_error_hint(const hone_error *err);
/** Message, context and hint, several lines; for showing to people. */
HONE_API const char *hone_error_text(const hone_error *err);
HONE_API hone_status hone_error_status(const hone_error *err);
/** Problems found together (an import names every unsupported node at once): how many, and each as text. */
HONE_API int hone_error_count(const hone_error *err);
HONE_API const char *hone_error_item(const hone_error *err, int i);
/** An error of the caller's own, to hand on beside the library's; NULL text is "". */
HONE_API hone_error *hone_error_create(hone_status status, const char *message);
HONE_API void hone_error_free(hone_error *err);
/** Constant text of a status. */
HONE_API const char *hone_status_text(hone_status s);
/** "0.1.0". */
HONE_API const char *hone_version(void);

/* ---- log, progress, cancel ---- */
typedef enum hone_log_level { HONE_LOG_ERROR, HONE_LOG_WARN, HONE_LOG_INFO, HONE_LOG_VERBOSE, HONE_LOG_DEBUG } hone_log_level;
typedef void (*hone_log_fn)(void *user, hone_log_level level, const char *text);
/** Process-wide. fn may be called by any thread, one at a time. NULL drops messages. */
HONE_API void hone_set_log(hone_log_fn fn, void *user, hone_log_level max_level);
/**
 * Called now and then by long work: what is being done, how far it is (total 0: unknown), seconds gone and expected to
 * remain (negative: unknown). Return false to cancel: the call ends with HONE_E_CANCELLED and keeps what is done.
 */
typedef bool (*hone_progress_fn)(void *user, const char *phase, int64_t done, int64_t total, double elapsed_s,
                                 double remaining_s);

/* ---- data types ---- */
typedef enum hone_dtype {
    HONE_DTYPE_NONE = 0,
    HONE_DTYPE_F32 = 1, HONE_DTYPE_F64 = 2, HONE_DTYPE_F16 = 3, HONE_DTYPE_BF16 = 4,
    HONE_DTYPE_F8E4M3FN = 5, HONE_DTYPE_F8E4M3FNUZ = 6, HONE_DTYPE_F8E5M2 = 7, HONE_DTYPE_F8E5M2FNUZ = 8,
    HONE_DTYPE_F8E8M0 = 9, HONE_DTYPE_F4E2M1 = 10,
    HONE_DTYPE_I64 = 11, HONE_DTYPE_I32 = 12, HONE_DTYPE_I16 = 13, HONE_DTYPE_I8 = 14, HONE_DTYPE_I4 = 15, HONE_DTYPE_I2 = 16,
    HONE_DTYPE_U64 = 17, HONE_DTYPE_U32 = 18, HONE_DTYPE_U16 = 19, HONE_DTYPE_U8 = 20, HONE_DTYPE_U4 = 21, HONE_DTYPE_U2 = 22,
    HONE_DTYPE_BOOL = 23
} hone_dtype;
/** "f32"; "none" when unknown. */
HONE_API const char *hone_dtype_name(hone_dtype t);
HONE_API int hone_dtype_bits(hone_dtype t);

enum { HONE_MAX_RANK = 10 };

/* ---- models ---- */
typedef struct hone_model hone_model;

/** Bounds for one input's shape: an engine then takes any shape between min and max and is tuned for opt. */
typedef struct hone_profile {
    const char *input;
    int rank;
    const int64_t *min, *opt, *max;
} hone_profile;

/** A tensor in caller memory, row-major. */
typedef struct hone_tensor {
    hone_dtype dtype;
    int rank;
    int64_t dim[10];
    void *data;
    size_t bytes;
} hone_tensor;

/** What an input holds, given when the model is read: it becomes a constant and is no input any more. For what a compiler has to
 * know and some models take as inputs: axes, scales, a training flag. The data are copied. */
typedef struct hone_input_value {
    const char *input;
    hone_tensor value;
} hone_input_value;

typedef struct hone_model_options {
    size_t size;
    const hone_profile *profile; /* inputs not named keep what the model says */
    int n_profile;
    const hone_input_value *value; /* hone_tune does not take any */
    int n_value;
} hone_model_options;
#define HONE_MODEL_OPTIONS_INIT { sizeof(hone_model_options), NULL, 0, NULL, 0 }

/**
 * Read an ONNX model. opts may be NULL.
 *
 * Owns:   *ret, freed with hone_model_free
 * Errors: HONE_E_NOTFOUND, HONE_E_IO, HONE_E_FORMAT; HONE_E_INVALID a profile or a value that fits no input; HONE_E_MODEL,
 *         HONE_E_SHAPE, HONE_E_TYPE and HONE_E_UNSUPPORTED with every problem listed (hone_error_item)
 * Thread: any; a model may be built from by several threads at once
 */
HONE_API hone_status hone_model_load(const char *path, const hone_model_options *opts, hone_model **ret, hone_error **err);
HONE_API void hone_model_free(hone_model *m);
HONE_API int hone_model_node_count(const hone_model *m);

/** An input or output. dim: -1 where it is symbolic, symbol then names it ("" otherwise). Strings live as long as the owner. */
typedef struct hone_io {
    const char *name;
    bool is_output;
    hone_dtype dtype;
    int rank;
    int64_t dim[10];
    const char *symbol[10];
} hone_io;
/** Inputs first, then outputs. */
HONE_API int hone_model_io_count(const hone_model *m);
HONE_API hone_status hone_model_io(const hone_model *m, int i, hone_io *ret, hone_error **err);

/* ---- building ---- */
typedef struct hone_build_options {
    size_t size;
    const char *target;        /* NULL or "host": this processor; "gpu": the GPU that is here; else a named one ("znver4", "sm_90a", ...) */
    const char *route;         /* knob settings, "-conv:layout=1 -region:chain@/head/x=0"; NULL: all at default */
    int opt_level;             /* 0..5 as trtexec's builderOptimizationLevel; -1: the route's or 3 */
    int threads;               /* 0: the usable cores; of a named target its table's */
    int64_t workspace_bytes;   /* limit of temporary memory a kernel may take; 0: none */
    const char *cache_dir;     /* compiled kernels; NULL: the user's cache folder; "": none */
    const char *timing_cache;  /* file of measured kernel times; NULL: one in cache_dir; "": none */
    bool frozen;               /* never measure: timing-cache misses are answered by the cost model */
    hone_progress_fn progress;
    void *progress_user;
    bool keep_tools;           /* compilers and the process that times candidates wait for the model's next such build, which is the same
                                  thread's; they end with the model */
    bool draft;                /* the engine file is of the moment: nothing waits until it would outlast a power cut */
} hone_build_options;
#define HONE_BUILD_OPTIONS_INIT { sizeof(hone_build_options), NULL, NULL, -1, 0, 0, NULL, NULL, false, NULL, NULL, false, false }

/** A report as JSON text: what was built, how long it took, which tactic runs each region and why, which knobs were read. */
typedef struct hone_report hone_report;
HONE_API const char *hone_report_json(const hone_report *r);
HONE_API void hone_report_free(hone_report *r);

/**
 * Build an engine file from a model. The model is not changed.
 *
 * Owns:   *ret_report (ret_report may be NULL), freed with hone_report_free
 * Errors: HONE_E_INVALID a route that does not parse; HONE_E_UNSUPPORTED naming the node; HONE_E_CRASH a compiler worker died;
 *         HONE_E_NOTFOUND no such target, no GPU or driver, or no compiler worker; HONE_E_DEVICE, HONE_E_VERSION, HONE_E_TARGET a GPU
 *         that engines do not run on; HONE_E_IO, HONE_E_LIMIT, HONE_E_CANCELLED, HONE_E_NOMEM
 */
HONE_API hone_status hone_build(hone_model *m, const hone_build_options *opts, const char *engine_path,
                                hone_report **ret_report, hone_error **err);

/* ---- knobs and routes ---- */
/** The registry as JSON: id, name, type, domain, default, flags, help of every knob. Free with hone_string_free. */
HONE_API char *hone_knobs_json(void);
/**
 * Every build route of this model that could matter, as JSON: the knobs that a default build reads, with where they were read.
 * Free with hone_string_free.
 */
HONE_API hone_status hone_model_knobs_json(hone_model *m, const hone_build_options *opts, char **ret, hone_error **err);
/** Canonical form of a route: defaults dropped, sorted. HONE_E_INVALID says where it does not parse. */
HONE_API hone_status hone_route_canonical(const char *route, char **ret, hone_error **err);
HONE_API void hone_string_free(char *s);

/* ---- engines ---- */
typedef struct hone_engine hone_engine;
typedef struct hone_context hone_context;

typedef struct hone_engine_options {
    size_t size;
    bool trust_weights; /* skip the weights' checksums: faster loading of a file known to be whole */
    bool inspect;       /* read alone, whatever machine the engine is for: it says what it is, and has no contexts */
    int64_t weight_budget; /* bytes of a GPU's memory for weights, one context's share of those that pass through included; weights
                              over it stay with the host and are copied ahead of the steps that read them. 0: all of them are there */
} hone_engine_options;
#define HONE_ENGINE_OPTIONS_INIT { sizeof(hone_engine_options), false, false, 0 }

/**
 * Load an engine. It is native code: loading one is trusting it, like a shared library; the checks are for accidents.
 *
 * Owns:   *ret, one reference; hone_engine_free drops it; contexts hold their own
 * Errors: HONE_E_NOTFOUND, HONE_E_IO; HONE_E_FORMAT damaged; HONE_E_VERSION; HONE_E_TARGET names what this machine lacks;
 *         HONE_E_LIMIT the weights do not fit the budget
 */
HONE_API hone_status hone_engine_open(const char *path, const hone_engine_options *opts, hone_engine **ret, hone_error **err);
HONE_API void hone_engine_free(hone_engine *e);
HONE_API int hone_engine_io_count(const hone_engine *e);
HONE_API hone_status hone_engine_io(const hone_engine *e, int i, hone_io *ret, hone_error **err);
HONE_API int hone_engine_find_io(const hone_engine *e, const char *name); /* -1: none */
/** Manifest as JSON: model digest, route, target, versions. Lives as long as the engine. */
HONE_API const char *hone_engine_manifest(const hone_engine *e);
/** 32 hex digits: what the engine does. Two engines with one digest are the same program. */
HONE_API const char *hone_engine_payload(const hone_engine *e);
HONE_API int64_t hone_engine_bytes(const hone_engine *e);

/* ---- running ---- */
typedef struct hone_context_options {
    size_t size;
    int threads;            /* 0: the usable cores */
    int64_t memory_ceiling; /* bytes of activations; 0: none */
} hone_context_options;
#define HONE_CONTEXT_OPTIONS_INIT { sizeof(hone_context_options), 0, 0 }

/** One caller's state. Thread: one at a time; any number of contexts of one engine run at once and come and go freely. */
HONE_API hone_status hone_context_create(hone_engine *e, const hone_context_options *opts, hone_context **ret,
                                         hone_error **err);
HONE_API void hone_context_free(hone_context *c);
/** Fix an input's shape; HONE_E_SHAPE names input, axis and bounds when it does not fit. */
HONE_API hone_status hone_context_set_shape(hone_context *c, int io, int rank, const int64_t *dim, hone_error **err);
/**
 * Give inputs that have no shape yet one that works, and prepare. Extents that other inputs fix are kept; the rest are the least of
 * some usual ones that leave every tensor of the model a size. hone_context_shape() says what was chosen.
 *
 * Errors: HONE_E_SHAPE none works: names the axes to set; as hone_context_prepare
 */
HONE_API hone_status hone_context_choose_shapes(hone_context *c, hone_error **err);
/** Compute all sizes and take all memory now, so that run need not. */
HONE_API hone_status hone_context_prepare(hone_context *c, hone_error **err);
/** Shape of an input or output at the present shapes; outputs whose size depends on data: after run. */
HONE_API hone_status hone_context_shape(const hone_context *c, int io, int *ret_rank, int64_t *ret_dim, hone_error **err);
/**
 * Values for an input that the caller has none for, at its present shape: an engine remembers what its model's integers mean, and
 * hone_model_make_inputs() makes the same from the same seed.
 *
 * Owns:   ret->data and *ret_note (may be NULL; says what was made), freed with hone_tensor_free and hone_string_free
 * Errors: HONE_E_INVALID no such input, or no shape yet; HONE_E_NOMEM, HONE_E_LIMIT
 */
HONE_API hone_status hone_context_make_input(const hone_context *c, int io, uint64_t seed, hone_tensor *ret, char **ret_note,
                                             hone_error **err);
/** Use the caller's memory; it must stay alive until unbound (data NULL) or the context is freed. Outputs may stay unbound. Memory
 *  is aligned to its elements, a GPU's own to 16 bytes. */
HONE_API hone_status hone_context_bind(hone_context *c, int io, void *data, size_t capacity_bytes, hone_error **err);
/** Bytes of an output after run; NULL before. */
HONE_API const void *hone_context_output(const hone_context *c, int io, size_t *ret_bytes);
/**
 * Run one inference; done on return.
 *
 * Errors: HONE_E_UNBOUND, HONE_E_SHAPE, HONE_E_LIMIT, HONE_E_DEVICE, HONE_E_CANCELLED; HONE_E_MODEL an index that the model
 *         computes or is given lies outside its axis: outputs are not to be used; HONE_E_FORMAT, HONE_E_UNSUPPORTED, HONE_E_NOTFOUND
 *         an encoded image cannot be read
 * Cost:   no allocation and no process-wide lock once prepared, except where sizes depend on data
 */
HONE_API hone_status hone_context_run(hone_context *c, hone_error **err);
/** Ask a run in progress to end. Thread: any. */
HONE_API void hone_context_cancel(hone_context *c);
/**
 * Whether a run on a device with memory of its own copies inputs there and outputs back, as it does at first. Off, to measure
 * the engine alone: an input is sent once after it was bound, and outputs in host memory are undefined until a run with
 * transfers on. Elsewhere it changes nothing.
 */
HONE_API hone_status hone_context_set_transfers(hone_context *c, bool on, hone_error **err);
/** Times of every step since profiling was switched on, as JSON. Free with hone_string_free. */
HONE_API hone_status hone_context_set_profiling(hone_context *c, bool on, hone_error **err);
HONE_API hone_status hone_context_profile_json(const hone_context *c, char **ret, hone_error **err);

/* ---- sequences and optionals ---- */
/**
 * A sequence or an optional that a model takes or gives stands as two tensors, one after the other among inputs or outputs:
 *
 *     x          [total]      its elements one after another, each row-major
 *     x.shapes   i64[n, 11]   a row an element: its rank, its extents, ones to the end
 *
 * An optional has at most one element. An optional sequence that is absent has one row of rank -1.
 */
/**
 * Make the two tensors of n elements, all of the dtype; n -1: an absent sequence.
 *
 * Owns:   ret[i].data, freed with hone_tensor_free (or free)
 * Errors: HONE_E_TYPE an element of another dtype; HONE_E_INVALID one whose bytes do not fit its shape; HONE_E_NOMEM
 */
HONE_API hone_status hone_list_pack(const hone_tensor *item, int n, hone_dtype dtype, hone_tensor ret[2], hone_error **err);
/**
 * The elements of a list; *ret_n -1: an absent sequence.
 *
 * Owns:   *ret and its data, freed with hone_list_free
 * Errors: HONE_E_INVALID, HONE_E_SHAPE the two tensors are no list; HONE_E_NOMEM
 */
HONE_API hone_status hone_list_unpack(const hone_tensor packed[2], hone_tensor **ret, int *ret_n, hone_error **err);
HONE_API void hone_list_free(hone_tensor *item, int n);

/* ---- evaluation: the judge ---- */

/**
 * Evaluate a model by its references, in double (f64 true: float outputs are F64) or in its own types. Slow.
 *
 * Owns:   out[i].data is allocated; free with hone_tensor_free
 */
HONE_API hone_status hone_model_evaluate(hone_model *m, bool f64, const hone_tensor *in, hone_tensor *out,
                                         hone_progress_fn progress, void *user, hone_error **err);
HONE_API void hone_tensor_free(hone_tensor *t);
/**
 * Inputs made from the model: ranges that fit (token ids inside their table, masks of ones).
 *
 * out, zeroed by the caller, has room for every input. Tensors that it holds (data is not NULL) are kept, and the others get extents
 * that fit theirs. note, may be NULL, says what was made; it is empty where all were given.
 *
 * Owns:   what was made in out, freed with hone_tensor_free, and *ret_note, with hone_string_free
 * Errors: HONE_E_TYPE, HONE_E_SHAPE a tensor that is there is none of the model's, or no usual extents fit it; HONE_E_UNSUPPORTED
 *         an input that is no tensor has to be given; HONE_E_NOMEM, HONE_E_LIMIT. Nothing is made then.
 */
HONE_API hone_status hone_model_make_inputs(hone_model *m, uint64_t seed, hone_tensor *out, char **ret_note,
                                            hone_error **err);

typedef struct hone_difference {
    double l0, l1, l2, linf, cosine, snr_db;
    double rel_l2;        /* ||got - want|| / ||want|| */
    int64_t n, n_nonfinite; /* elements; mismatching NaN or infinity: a failure whatever the metric */
} hone_difference;
HONE_API hone_status hone_compare(const hone_tensor *got, const hone_tensor *want, double atol, double rtol,
                                  hone_difference *ret, hone_error **err);

/* ---- this machine ---- */
/**
 * Processor, features, caches, measured peaks, cache folder, devices, as JSON. "findings" lists what is wrong: each with "grade"
 * ("broken": models cannot be built or kept; "slow"), "what", "why" and "todo"; "broken" counts those of that grade. An engine of
 * one operation is built to see that the compiler works. Free with hone_string_free.
 */
HONE_API hone_status hone_doctor_json(char **ret, hone_error **err);
/** Name of the target that is the GPU of this machine ("sm_90a"), static; NULL: there is none that engines run on. Any thread. */
HONE_API const char *hone_gpu_target(void);

/* ---- tuning ---- */
/** How far an output may be from the model evaluated in float64. Several may be stated; all hold. Mismatched NaN or infinity
 *  breaks any bound; outputs of whole numbers must be equal unless a bound names them. */
typedef struct hone_accuracy {
    const char *metric; /* "rel_l2", "l0", "l1", "l2", "linf": at most; "cosine", "snr" (dB): at least */
    const char *output; /* NULL: every output that no bound of this metric names */
    double bound;
} hone_accuracy;

typedef struct hone_tune_options {
    size_t size;
    const hone_build_options *build; /* what every trial starts from, its route the base route; NULL: the defaults */
    const char *expression;       /* knobs and values to search; NULL: every tunable knob that the builds read */
    const char *strategy;         /* "mixed", "fast", "full", "random"; NULL: "mixed" */
    double budget_s;              /* kept within 5% or 2 s once the default engine stands, which it always will; 0: none */
    int max_trials;               /* 0: none */
    const char *store;            /* SQLite trial store; NULL: trials.db in the cache folder; "": none */
    bool resume;                  /* take up what the store holds for this model */
    const char *metric;           /* of threshold; NULL: "rel_l2" */
    double threshold;             /* one bound for every output; 0: none. No bound stated: the default route's class is kept */
    double trial_timeout_s;       /* 0: 60; the default's own build gets ten times that */
    int64_t trial_memory_bytes;   /* 0: none */
    uint64_t seed;
    bool dry_run;                 /* list routes, build nothing */
    const hone_tensor *input;     /* one an input of the model, data NULL where it is to be made up; NULL: all made up */
    const hone_accuracy *accuracy;
    int n_accuracy;
    const char *judge;            /* shell command: gets a folder with the outputs (.npy files, outputs.json names them) as its */
    double judge_bound;           /* last word, and the last number that it prints must be at most this; NULL: none */
    const hone_tensor *reference; /* one an output of the model: what it should be; data NULL, or NULL: evaluated in float64 */
} hone_tune_options;
#define HONE_TUNE_OPTIONS_INIT                                                                                   \
    { sizeof(hone_tune_options), NULL, NULL, NULL, 0, 0, NULL, false, NULL, 0, 0, 0, 0, false, NULL, NULL, 0, \
      NULL, 0, NULL }

/**
 * Search build routes by measuring whole engines; write the proven winner (or the default, when nothing is proven faster).
 *
 * Each trial builds and runs in a process of its own: a crash, a hang, exhausted memory or a broken bound is an outcome with
 * its reason. The report holds every trial, the winner's route and its speed-up with the interval that proved it and its
 * confidence. build->progress is called several times a second; when it returns false the search ends: the best proven engine
 * is on disk, the report says "stopped" (before there is an engine: HONE_E_CANCELLED).
 */
HONE_API hone_status hone_tune(const char *model_path, const hone_model_options *model_opts, const hone_tune_options *opts,
                               const char *engine_path, hone_report **ret_report, hone_error **err);

/**
 * A trial store as JSON lines, one a trial, and back. Import takes all lines or none; trials that are there already stay.
 *
 * Owns:   *ret_lines, freed with hone_string_free
 * Errors: HONE_E_NOTFOUND no such store; HONE_E_FORMAT a damaged store, or the line that is no trial
 */
HONE_API hone_status hone_trials_export(const char *store, char **ret_lines, hone_error **err);
HONE_API hone_status hone_trials_import(const char *store, const char *lines, int *ret_added, hone_error **err);

#ifdef __cplusplus
}
#endif

#endif
