/* The hone program: one file a subcommand; sees hone.h alone. */
#ifndef HONE_CLI_H
#define HONE_CLI_H

#include <hone/hone.h>

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdio.h>

/** A subcommand: exit status is a hone_status; 2 (invalid argument) for misuse. */
typedef struct cli_command {
    const char *name, *summary, *usage; /* usage: the text of --help below the summary */
    int (*run)(int argc, char **argv);
} cli_command;

extern const cli_command cli_build, cli_run, cli_bench, cli_tune, cli_knobs, cli_explain, cli_inspect, cli_verify, cli_doctor,
    cli_trtexec;

/** Options that most subcommands share, as given. */
typedef struct cli_options {
    hone_build_options build;
    hone_model_options model;
    const char *output, *reference_out, *positional, *engine;
    hone_profile profile[32];
    int64_t profile_dim[32][3][HONE_MAX_RANK];
    const char *input_name[64], *input_file[64];
    int n_input;
    double seconds, budget_s, threshold;
    int iterations, streams, max_trials;
    uint64_t seed;
    const char *strategy, *expression, *store, *metric;
    bool json, worker, dry_run, resume, profile_steps, verbose, names;
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
double cli_now(void);
/** Hold a text until the program ends (options and words that outlive their maker); yields it, NULL too. */
char *cli_keep(char *text);

/* ---- tensors and .npy files ---- */
/** NULL or why not. data is malloc'd. */
const char *cli_npy_read(const char *path, hone_tensor *ret);
const char *cli_npy_write(const char *path, const hone_tensor *t);
/** Inputs of a model by io index, from --input files and made-up values for the rest; *ret_note says what was made (malloc'd). */
hone_status cli_model_inputs(const cli_options *o, hone_model *m, hone_tensor *ret, char **ret_note, hone_error **err);
/** The --input file of one input, where there is one; ret stays empty otherwise. */
hone_status cli_file_input(const cli_options *o, const hone_io *io, hone_tensor *ret, hone_error **err);
/** Bind inputs to a context: files, else values made up from the engine's types. Tensors stay the caller's. */
hone_status cli_engine_inputs(const cli_options *o, hone_engine *e, hone_context *c, hone_tensor *ret, int *ret_n,
                              hone_error **err);
/** A view of an output after run. */
hone_status cli_output(hone_engine *e, hone_context *c, int io, hone_tensor *ret, hone_error **err);
void cli_free_tensors(hone_tensor *t, int n);
/** An error of the program itself (status HONE_E_INVALID). */
hone_error *cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

int cli_bench_worker(void);

enum { CLI_MAX_IO = 256 };

#endif
