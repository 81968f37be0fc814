/* The hone program: one file a subcommand; sees hone.h alone. */
#ifndef HONE_CLI_H
#define HONE_CLI_H

#include <hone/hone.h>

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdio.h>

/* Bits: an option says which commands take it. */
enum {
    CLI_BUILD = 1, CLI_RUN = 2, CLI_BENCH = 4, CLI_TUNE = 8, CLI_KNOBS = 16, CLI_EXPLAIN = 32, CLI_INSPECT = 64,
    CLI_VERIFY = 128, CLI_DOCTOR = 256, CLI_TRIALS = 512
};

/** A subcommand: exit status is a hone_status; 2 (invalid argument) for misuse. */
typedef struct cli_command {
    const char *name, *summary, *usage; /* usage: --help between the summary and the options */
    int (*run)(int argc, char **argv);
    unsigned id; /* 0: its flags are its own affair */
} cli_command;

extern const cli_command cli_build, cli_run, cli_bench, cli_tune, cli_knobs, cli_explain, cli_inspect, cli_verify, cli_doctor,
    cli_trtexec, cli_trials;

enum { CLI_MAX_IO = 256, CLI_MAX_NAMED = 64 };

/** Options as given; the table in options.c says which command takes which. */
typedef struct cli_options {
    hone_build_options build;
    hone_model_options model;
    const char *output, *reference_out, *positional, *engine;
    char *const *word; /* every word that is no option; positional is the first */
    int n_word;
    hone_profile profile[CLI_MAX_NAMED];
    int64_t profile_dim[CLI_MAX_NAMED][3][HONE_MAX_RANK];
    const char *input_name[CLI_MAX_NAMED], *input_file[CLI_MAX_NAMED]; /* name NULL: a .npz file that names inputs itself */
    const char *reference_name[CLI_MAX_NAMED], *reference_file[CLI_MAX_NAMED];
    int n_input, n_reference;
    double seconds, warmup_s, budget_s, threshold;
    int iterations; /* runs of each stream; 0: for `seconds`, and `least` runs */
    int least, streams, max_trials;
    int64_t seed, trial_memory_bytes, weight_budget;
    const char *strategy, *expression, *store, *metric, *judge, *export_file, *import_file;
    hone_accuracy accuracy[CLI_MAX_NAMED];
    int n_accuracy;
    double judge_bound, trial_timeout_s;
    bool json, worker, dry_run, resume, verbose, names, stats, judge_bounded;
} cli_options;

/** Parse argv (argv[0] is the subcommand). False: *ret_status holds the exit status (0 after --help). */
bool cli_parse(const cli_command *c, int argc, char **argv, cli_options *o, int *ret_status);

/** Print an error as text or as {"error": ...} and give its status; frees it. */
int cli_fail(const cli_options *o, hone_error *err);
int cli_misuse(const cli_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Print a JSON object on one line and free it. */
void cli_print_json(cJSON *j);
/** A progress callback: a line that rewrites itself on a terminal, nothing in a pipe. */
bool cli_progress(void *user, const char *phase, int64_t done, int64_t total, double elapsed_s, double remaining_s);
/** SIGINT and SIGTERM were seen: long work should end with HONE_E_CANCELLED. A second signal ends the program at once. */
bool cli_interrupted(void);
double cli_now(void);

/* ---- words ---- */
/** NULL and *ret, or why not. Nothing but digits and a sign is a whole number. */
const char *cli_whole(const char *s, int64_t lo, int64_t hi, int64_t *ret);
const char *cli_real(const char *s, double above, double *ret);
/** The name that `word` was probably meant to be; NULL when none is near. */
const char *cli_nearest(const char *word, const char *const *names, int n);
/** A formatted text that lives as long as the program; NULL without memory. */
char *cli_text(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** Hold a text until the program ends (options and words that outlive their maker); yields it, NULL too. */
char *cli_keep(char *text);

/* ---- files: each yields NULL or why not ---- */
/** A file beside `path` that cli_close_new() puts in its place; NULL and *ret_why otherwise. */
FILE *cli_open_new(const char *path, char **ret_temporary, const char **ret_why);
/** Put a new file in place, or drop it when `why` says it is not whole; yields why. */
const char *cli_close_new(FILE *f, const char *temporary, const char *path, const char *why);
const char *cli_write_text(const char *path, const char *text);
const char *cli_make_folder(const char *dir);
/** Say that a file cannot be written: HONE_E_IO. */
int cli_unwritable(const cli_options *o, const char *path, const char *why);

/** data is malloc'd. */
const char *cli_npy_read(const char *path, hone_tensor *ret);
/** As cli_npy_read from an open file of so many bytes. */
const char *cli_npy_take(FILE *f, size_t file_bytes, hone_tensor *ret);
const char *cli_npy_write(const char *path, const hone_tensor *t);
const char *cli_npy_put(FILE *f, const hone_tensor *t);
/** The array `name` of an archive; *ret stays as it is when there is none. */
const char *cli_npz_read(const char *path, const char *name, hone_tensor *ret);
const char *cli_npz_write(const char *path, const char *const *name, const hone_tensor *t, int n);

/* ---- tensors ---- */
/** Inputs of a model by io index, from --input files and made-up values that fit them for the rest; *ret_note, with
 *  hone_string_free, says what was made. ret comes zeroed and is the caller's to free, also after an error. */
hone_status cli_model_inputs(const cli_options *o, hone_model *m, hone_tensor *ret, char **ret_note, hone_error **err);
/** The --reference files of a model's outputs, by output; data stays NULL where there is none. Freed by the caller. */
hone_status cli_model_references(const cli_options *o, const hone_model *m, hone_tensor *ret, hone_error **err);
/** The files of --input alone: ret[i] stays empty where input i has none. */
hone_status cli_model_files(const cli_options *o, const hone_model *m, hone_tensor *ret, hone_error **err);
/** Open an engine with the options that say how. */
hone_status cli_open(const cli_options *o, hone_engine **ret, hone_error **err);
/** Bind inputs to a context: files, else made-up values, which are said on standard error. Tensors stay the caller's. */
hone_status cli_engine_inputs(const cli_options *o, hone_engine *e, hone_context *c, hone_tensor *ret, hone_error **err);
/** A view of an output after run. */
hone_status cli_output(hone_engine *e, hone_context *c, int io, hone_tensor *ret, hone_error **err);
/** Element i as a number; false for types that have none here (packed and 8-bit floats). */
bool cli_element(const hone_tensor *t, size_t i, double *ret);
size_t cli_count(const hone_tensor *t);
/** {"name", "dtype", "dims"} of an input or output; an open extent is its symbol's name, or -1. */
cJSON *cli_io_json(const hone_io *io);
void cli_free_tensors(hone_tensor *t, int n);
/** An error of the program itself (status HONE_E_INVALID). */
hone_error *cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- measuring ---- */
typedef struct cli_times {
    double *start_ms, *ms; /* of every run, from when all streams started; streams one after another */
    int n, streams;
    double wall_s;
} cli_times;
/** Run an engine on every stream for the time or the runs that the options ask; an exit status. */
int cli_measure(const cli_options *o, hone_engine *e, cli_times *ret);
void cli_times_free(cli_times *t);
/** Copy and sort, for percentiles: p[(int)(q * (n - 1) + 0.5)]. */
double *cli_sorted(const double *x, int n);
/** hone bench with options that are parsed already. */
int cli_bench_engine(const cli_options *o);
int cli_bench_worker(void);
/** hone knobs --stats over the models and trial stores that o->word names. */
int cli_knob_stats(const cli_options *o);

/** What hone trtexec reports beside the summary; paths are NULL for what is not exported. */
typedef struct trt_report {
    const char *times, *profile, *outputs, *layers;
    double percentile[16];
    int n_percentile;
    bool print_profile, print_layers;
} trt_report;
/** Measure an engine and print and export in trtexec's words; an exit status. */
int cli_trt_measure(const cli_options *o, const trt_report *r, const char *engine);

#endif
