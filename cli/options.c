/* The options of every subcommand: one table gives what is parsed, what --help prints and what each command refuses. */
#include "cli.h"

#include <float.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

typedef enum kind {
    FLAG,
    TEXT,
    COUNT, /* int in [lo, hi] */
    WHOLE, /* int64_t in [lo, hi] */
    MIB,   /* whole mebibytes, kept in bytes */
    REAL,  /* double above lo */
    OTHER  /* take() does it */
} kind;

typedef struct option_row {
    const char *name, *value; /* value: what --help calls it; NULL for a flag */
    char letter;              /* 0: none */
    unsigned commands;        /* the ids of the commands that take it */
    kind kind;
    size_t at; /* the field of cli_options */
    int64_t lo, hi;
    const char *help; /* lines after the first are indented by the printer */
    const char *(*take)(cli_options *o, const char *v);
} option_row;

enum {
    BUILDS = CLI_BUILD | CLI_TUNE | CLI_VERIFY | CLI_EXPLAIN,
    RUNS = CLI_RUN | CLI_BENCH | CLI_EXPLAIN | CLI_VERIFY,
    FEEDS = RUNS | CLI_TUNE,
    ALL = CLI_BUILD | CLI_RUN | CLI_BENCH | CLI_TUNE | CLI_KNOBS | CLI_EXPLAIN | CLI_INSPECT | CLI_VERIFY | CLI_DOCTOR |
          CLI_TRIALS,
};

static const char *take_shape(cli_options *o, const char *v);
static const char *take_input(cli_options *o, const char *v);
static const char *take_route(cli_options *o, const char *v);
static const char *take_exact(cli_options *o, const char *v);
static const char *take_deterministic(cli_options *o, const char *v);
static const char *take_accuracy(cli_options *o, const char *v);
static const char *take_reference(cli_options *o, const char *v);

#define AT(field) offsetof(cli_options, field)

static const option_row rows[] = {
    { "output", "FILE", 'o', CLI_BUILD, TEXT, AT(output), 0, 0,
      "engine to write (default: the model's name with .hone, in this folder)", NULL },
    { "output", "FILE", 'o', CLI_TUNE, TEXT, AT(output), 0, 0, "engine to write", NULL },
    { "output", "DIR|FILE.npz", 'o', CLI_RUN, TEXT, AT(output), 0, 0,
      "write outputs as DIR/output_I.npy, or into one .npz file by name", NULL },
    { "shape", "NAME=SHAPE", 0, CLI_BUILD | CLI_TUNE | CLI_INSPECT, OTHER, 0, 0, 0,
      "1x3x48x320 fixes an input's shape; MIN:OPT:MAX gives a range to take\nand a shape to tune for", take_shape },
    { "shape", "NAME=SHAPE", 0, RUNS, OTHER, 0, 0, 0, "shape of an input whose extents are open, 1x64; MIN:OPT:MAX runs OPT",
      take_shape },
    { "input", "NAME=FILE", 0, FEEDS, OTHER, 0, 0, 0,
      "an input from a .npy file, a .npz file, or a file of its bare bytes;\nFILE.npz alone gives every input that it "
      "names; others are made up to fit",
      take_input },
    { "seed", "N", 0, FEEDS, WHOLE, AT(seed), 0, INT64_MAX, "seed of what is made up (default 0)", NULL },
    { "threads", "N", 0, BUILDS | RUNS, COUNT, AT(build.threads), 1, 4096, "threads of one run (default: the usable cores)",
      NULL },
    { "set", "'-knob=VALUE'", 0, BUILDS, OTHER, 0, 0, 0, "a build route; may be repeated (hone knobs lists what there is)",
      take_route },
    { "route", "ROUTE", 0, BUILDS, OTHER, 0, 0, 0, "the same as --set", take_route },
    { "exact", NULL, 0, BUILDS, OTHER, 0, 0, 0,
      "round where the model rounds: no rewrite that computes otherwise\n(-core:exact=1)", take_exact },
    { "deterministic", NULL, 0, BUILDS, OTHER, 0, 0, 0,
      "the same bits wherever the engine runs on such a GPU, or it is not\nloaded (-core:deterministic=1)", take_deterministic },
    { "opt-level", "0..5", 0, BUILDS, COUNT, AT(build.opt_level), 0, 5,
      "how much of kernel choice is measured: 0 cost model alone, 3 default,\n5 everything", NULL },
    { "target", "NAME", 0, CLI_BUILD | CLI_EXPLAIN | CLI_TUNE, TEXT, AT(build.target), 0, 0,
      "\"gpu\", the one that is here; or a named target, by the cost model where\nit is not (hone doctor lists them)", NULL },
    { "frozen", NULL, 0, CLI_BUILD | CLI_EXPLAIN | CLI_VERIFY | CLI_TUNE, FLAG, AT(build.frozen), 0, 0,
      "never measure: the same payload from the same inputs on any machine", NULL },
    { "workspace", "MIB", 0, BUILDS, MIB, AT(build.workspace_bytes), 1, INT32_MAX,
      "greatest temporary memory a kernel may take", NULL },
    { "timing-cache", "FILE", 0, BUILDS, TEXT, AT(build.timing_cache), 0, 0,
      "measured kernel times (default: in the cache folder)", NULL },
    { "cache-dir", "DIR", 0, BUILDS | CLI_KNOBS, TEXT, AT(build.cache_dir), 0, 0, "compiled kernels (default: ~/.cache/hone)", NULL },
    { "budget", "S", 0, CLI_TUNE, REAL, AT(budget_s), 0, 0, "stop after S seconds; the default engine is built all the same", NULL },
    { "search", "EXPR", 0, CLI_TUNE, TEXT, AT(expression), 0, 0,
      "knobs and values to search, '-region:chain=[0|1] -layout:image=*'\n(default: all that are read)", NULL },
    { "strategy", "NAME", 0, CLI_TUNE, TEXT, AT(strategy), 0, 0, "mixed (default), fast, full, random", NULL },
    { "accuracy", "METRIC[:OUTPUT]=X", 0, CLI_TUNE, OTHER, 0, 0, 0,
      "accuracy bound; may be repeated. rel_l2, l0, l1, l2, linf: at most;\ncosine, snr (dB): at least. Without any, knobs that "
      "change numbers stay",
      take_accuracy },
    { "reference", "NAME=FILE", 0, CLI_TUNE, OTHER, 0, 0, 0,
      "what an output should be, as --input takes files; the others are\nevaluated in float64",
      take_reference },
    { "threshold", "X", 0, CLI_TUNE, REAL, AT(threshold), 0, 0, "the same as --accuracy rel_l2=X, or the metric of --metric", NULL },
    { "metric", "NAME", 0, CLI_TUNE, TEXT, AT(metric), 0, 0, "what --threshold bounds (default rel_l2)", NULL },
    { "judge", "COMMAND", 0, CLI_TUNE, TEXT, AT(judge), 0, 0,
      "shell command that gets a folder of outputs and prints a number, which\n--accuracy judge=X bounds", NULL },
    { "trial-timeout", "S", 0, CLI_TUNE, REAL, AT(trial_timeout_s), 0, 0, "time limit of one step of a trial (default 60)", NULL },
    { "trial-memory", "MIB", 0, CLI_TUNE, MIB, AT(trial_memory_bytes), 1, INT32_MAX, "memory limit of a trial's processes", NULL },
    { "threshold", "X", 0, CLI_VERIFY, REAL, AT(threshold), 0, 0,
      "greatest relative L2 error of an output (default 0.001)", NULL },
    { "max-trials", "N", 0, CLI_TUNE, COUNT, AT(max_trials), 1, INT32_MAX, "stop after N trials", NULL },
    { "store", "FILE", 0, CLI_TUNE, TEXT, AT(store), 0, 0, "trial store (default: trials.db in the cache folder)", NULL },
    { "resume", NULL, 0, CLI_TUNE, FLAG, AT(resume), 0, 0, "trials that the store holds are not run again", NULL },
    { "dry-run", NULL, 0, CLI_TUNE, FLAG, AT(dry_run), 0, 0, "list the routes, build nothing", NULL },
    { "engine", "FILE", 0, CLI_VERIFY, TEXT, AT(engine), 0, 0, "the engine to judge (default: one built now)", NULL },
    { "reference-out", "DIR", 0, CLI_VERIFY, TEXT, AT(reference_out), 0, 0,
      "write the float64 outputs as .npy files instead", NULL },
    { "weight-budget", "BYTES", 0, CLI_RUN | CLI_BENCH, WHOLE, AT(weight_budget), 1, INT64_MAX,
      "memory of a GPU for weights: those over it stay with the host and are\ncopied ahead of their steps (default: all are there)", NULL },
    { "duration", "S", 0, CLI_BENCH, REAL, AT(seconds), 0, 0, "measure for S seconds (default 3)", NULL },
    { "warmup", "S", 0, CLI_BENCH, REAL, AT(warmup_s), 0, 0, "run for S seconds before (default: once)", NULL },
    { "iterations", "N", 0, CLI_BENCH, COUNT, AT(iterations), 1, INT32_MAX, "or for N runs of each stream", NULL },
    { "streams", "N", 0, CLI_BENCH, COUNT, AT(streams), 1, 256, "contexts that run at once, each on a thread of its own",
      NULL },
    { "worker", NULL, 0, CLI_BENCH | CLI_BUILD, FLAG, AT(worker), 0, 0, "take commands as JSON lines on stdin (docs/benchmarking.md)",
      NULL },
    { "export", "FILE", 0, CLI_TRIALS, TEXT, AT(export_file), 0, 0,
      "write every trial as one line of JSON (default: to standard output)", NULL },
    { "import", "FILE", 0, CLI_TRIALS, TEXT, AT(import_file), 0, 0,
      "take in such lines, all or none; trials that are there stay.\n'-' is standard input", NULL },
    { "stats", NULL, 0, CLI_KNOBS, FLAG, AT(stats), 0, 0,
      "which knobs the models read, how many engines they make of them, and\nwhat the trials of stores proved of them", NULL },
    { "names", NULL, 0, CLI_KNOBS, FLAG, AT(names), 0, 0, "names alone, one a line", NULL },
    { "json", NULL, 0, ALL, FLAG, AT(json), 0, 0, "one JSON object as the last line of standard output", NULL },
    { "verbose", NULL, 'v', BUILDS, FLAG, AT(verbose), 0, 0, "say what is timed and what was taken, and why", NULL },
    { "help", NULL, 'h', ALL, OTHER, 0, 0, 0, "print this", NULL },
};

enum { N_ROW = sizeof rows / sizeof rows[0], FIRST_VALUE = 256 };

static void to_stderr(void *user, hone_log_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

/* "1x3x48x320" into dims; yields the rank or -1. */
static int parse_dims(char *s, int64_t *dim)
{
    int n = 0;
    char *save = NULL;
    if (!*s) return 0; /* a scalar */
    if (s[strlen(s) - 1] == 'x' || *s == 'x' || strstr(s, "xx")) return -1;
    for (char *d = strtok_r(s, "x,", &save); d; d = strtok_r(NULL, "x,", &save))
        if (n == HONE_MAX_RANK || cli_whole(d, 0, INT64_MAX, &dim[n++])) return -1;
    return n;
}

static const char no_shape[] = "it is not NAME=1x3x224x224 or NAME=MIN:OPT:MAX";

/* Names may hold colons and equals signs: the last '=' divides. */
static const char *take_shape(cli_options *o, const char *text)
{
    const int i = o->model.n_profile;
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text) return no_shape;
    if (i == CLI_MAX_NAMED) return "there are too many of them";
    const char *name = cli_text("%.*s", (int)(eq - text), text);
    char *list = cli_text("%s", eq + 1), *part[3] = { list, NULL, NULL };
    if (!name || !list) return "there is no memory for it";
    for (int k = 0; k < i; k++)
        if (strcmp(o->profile[k].input, name) == 0) return "that input has a shape already";
    int n = 1, rank = -1;
    for (char *colon = strchr(list, ':'); colon; colon = strchr(colon + 1, ':')) {
        if (n == 3) return no_shape;
        *colon = 0;
        part[n++] = colon + 1;
    }
    if (n == 2) return no_shape;
    for (int k = 0; k < n; k++) {
        const int r = parse_dims(part[k], o->profile_dim[i][k]);
        if (r < 0) return no_shape;
        if (rank >= 0 && r != rank) return "its shapes differ in rank";
        rank = r;
    }
    for (int k = n; k < 3; k++) memcpy(o->profile_dim[i][k], o->profile_dim[i][0], sizeof o->profile_dim[i][0]);
    for (int a = 0; a < rank; a++)
        if (o->profile_dim[i][0][a] > o->profile_dim[i][1][a] || o->profile_dim[i][1][a] > o->profile_dim[i][2][a])
            return "its shapes do not stand as MIN <= OPT <= MAX";
    o->profile[i] = (hone_profile){ name, rank, o->profile_dim[i][0], o->profile_dim[i][1], o->profile_dim[i][2] };
    o->model.n_profile++;
    return NULL;
}

static const char *take_input(cli_options *o, const char *text)
{
    const char *eq = strrchr(text, '=');
    const bool archive = !eq && strlen(text) > 4 && strcmp(text + strlen(text) - 4, ".npz") == 0;
    if ((!eq && !archive) || eq == text) return "it is not NAME=FILE or FILE.npz";
    if (o->n_input == CLI_MAX_NAMED) return "there are too many of them";
    const char *name = eq ? cli_text("%.*s", (int)(eq - text), text) : NULL;
    for (int i = 0; name && i < o->n_input; i++)
        if (o->input_name[i] && strcmp(o->input_name[i], name) == 0) return "that input has a file already";
    o->input_name[o->n_input] = name;
    o->input_file[o->n_input++] = eq ? eq + 1 : text;
    return !eq || name ? NULL : "there is no memory for it";
}

static const char *take_reference(cli_options *o, const char *text)
{
    const char *eq = strrchr(text, '=');
    if (!eq || eq == text) return "it is not NAME=FILE";
    if (o->n_reference == CLI_MAX_NAMED) return "there are too many of them";
    const char *name = cli_text("%.*s", (int)(eq - text), text);
    for (int i = 0; name && i < o->n_reference; i++)
        if (strcmp(o->reference_name[i], name) == 0) return "that output has a file already";
    o->reference_name[o->n_reference] = name;
    o->reference_file[o->n_reference++] = eq + 1;
    return name ? NULL : "there is no memory for it";
}

/* METRIC=BOUND or METRIC:OUTPUT=BOUND; output names may hold colons and equals signs. "judge" bounds --judge's number. */
static const char *take_accuracy(cli_options *o, const char *text)
{
    const char *eq = strrchr(text, '='), *colon = strchr(text, ':');
    double bound;
    if (!eq || eq == text) return "it is not METRIC=BOUND or METRIC:OUTPUT=BOUND";
    if (o->n_accuracy == CLI_MAX_NAMED) return "there are too many of them";
    if (colon > eq) colon = NULL;
    const char *why = cli_real(eq + 1, -DBL_MAX, &bound);
    if (why) return "its bound is no number";
    const char *metric = cli_text("%.*s", (int)((colon ? colon : eq) - text), text);
    const char *output = colon ? cli_text("%.*s", (int)(eq - colon - 1), colon + 1) : NULL;
    if (!metric || (colon && !output)) return "there is no memory for it";
    if (strcmp(metric, "judge") == 0 && !colon) {
        o->judge_bound = bound;
        o->judge_bounded = true;
    } else {
        o->accuracy[o->n_accuracy++] = (hone_accuracy){ metric, output, bound };
    }
    return NULL;
}

/* Several join into one route. */
static const char *take_route(cli_options *o, const char *v)
{
    o->build.route = o->build.route ? cli_text("%s %s", o->build.route, v) : v;
    return o->build.route ? NULL : "there is no memory for it";
}

static const char *take_exact(cli_options *o, const char *v)
{
    (void)v;
    return take_route(o, "-core:exact=1");
}

static const char *take_deterministic(cli_options *o, const char *v)
{
    (void)v;
    return take_route(o, "-core:deterministic=1");
}

/* NULL, or why not. */
static const char *take(cli_options *o, const option_row *r, const char *v)
{
    void *at = (char *)o + r->at;
    int64_t whole = 0;
    const char *why = NULL;
    switch (r->kind) {
    case FLAG: *(bool *)at = true; break;
    case TEXT: *(const char **)at = v; break;
    case COUNT:
        why = cli_whole(v, r->lo, r->hi, &whole);
        if (!why) *(int *)at = (int)whole;
        break;
    case WHOLE: why = cli_whole(v, r->lo, r->hi, at); break;
    case MIB:
        why = cli_whole(v, r->lo, r->hi, &whole);
        if (!why) *(int64_t *)at = whole << 20;
        break;
    case REAL: why = cli_real(v, (double)r->lo, at); break;
    case OTHER: why = r->take(o, v); break;
    }
    return why;
}

/* ---- help ---- */
static void print_row(const option_row *r)
{
    enum { COLUMN = 28 };
    int n = r->letter ? printf("  -%c, --%s", r->letter, r->name) : printf("  --%s", r->name);
    if (r->value) n += printf(" %s", r->value);
    if (n >= COLUMN) n = printf("\n") - 1;
    for (const char *line = r->help; line;) {
        const char *end = strchr(line, '\n');
        printf("%*s%.*s\n", COLUMN - n, "", end ? (int)(end - line) : (int)strlen(line), line);
        line = end ? end + 1 : NULL;
        n = 0;
    }
}

static void help(const cli_command *c)
{
    printf("hone %s: %s\n\n%s\n", c->name, c->summary, c->usage);
    for (int i = 0; i < N_ROW; i++)
        if (rows[i].commands & c->id) print_row(&rows[i]);
}

/* ---- parsing ---- */
/* What getopt is told of one command. */
typedef struct spec {
    struct option longs[N_ROW + 1];
    char shorts[2 * N_ROW + 2];
} spec;

static void describe(const cli_command *c, spec *ret)
{
    struct option *l = ret->longs;
    char *s = ret->shorts;
    *s++ = ':'; /* a missing argument is told from an unknown option */
    for (int i = 0; i < N_ROW; i++) {
        const option_row *r = &rows[i];
        if (!(r->commands & c->id)) continue;
        *l++ = (struct option){ r->name, r->value ? required_argument : no_argument, NULL, FIRST_VALUE + i };
        if (r->letter) *s++ = r->letter;
        if (r->letter && r->value) *s++ = ':';
    }
    *l = (struct option){ 0 };
    *s = 0;
}

static const option_row *row_of(const cli_command *c, int opt)
{
    if (opt >= FIRST_VALUE && opt < FIRST_VALUE + N_ROW) return &rows[opt - FIRST_VALUE];
    for (int i = 0; i < N_ROW; i++)
        if (opt && rows[i].letter == opt && rows[i].commands & c->id) return &rows[i];
    return NULL;
}

/* Some other command's option of that name, for the message. */
static const char *taker(const char *name)
{
    static const cli_command *const all[] = { &cli_build, &cli_tune, &cli_bench, &cli_run, &cli_verify, &cli_explain,
                                              &cli_knobs, &cli_trials };
    for (int i = 0; i < N_ROW; i++)
        for (size_t k = 0; k < sizeof all / sizeof all[0] && strcmp(rows[i].name, name) == 0; k++)
            if (rows[i].commands & all[k]->id) return all[k]->name;
    return NULL;
}

static int unknown(const cli_command *c, const cli_options *o, const spec *s, const char *word, int letter)
{
    if (strncmp(word, "--", 2) != 0)
        return cli_misuse(o, "-%c is no option of hone %s; hone %s --help lists them", letter, c->name, c->name);
    const char *names[N_ROW], *name = cli_text("%.*s", (int)strcspn(word + 2, "="), word + 2);
    int n = 0, starts = 0;
    for (; s->longs[n].name; n++) {
        names[n] = s->longs[n].name;
        starts += name && strncmp(names[n], name, strlen(name)) == 0;
    }
    const char *near = name ? cli_nearest(name, names, n) : NULL, *elsewhere = name ? taker(name) : NULL;
    if (starts > 1) return cli_misuse(o, "%s fits several options; hone %s --help lists them", word, c->name);
    if (elsewhere) return cli_misuse(o, "--%s is an option of hone %s, not of hone %s", name, elsewhere, c->name);
    if (near) return cli_misuse(o, "--%s is no option of hone %s; --%s is", name, c->name, near);
    return cli_misuse(o, "--%s is no option of hone %s; hone %s --help lists them", name, c->name, c->name);
}

/* A word that getopt did not take. */
static int refuse(const cli_command *c, const cli_options *o, const spec *s, int opt, char **argv)
{
    const option_row *r = row_of(c, optopt);
    if (opt == ':' && r) return cli_misuse(o, "--%s needs a value, %s", r->name, r->value);
    if (r) return cli_misuse(o, "--%s takes no value", r->name);
    return unknown(c, o, s, argv[optind - 1], optopt);
}

/* One option: true to go on. */
static bool follow(const cli_command *c, cli_options *o, const spec *s, int opt, char **argv, int *ret_status)
{
    const option_row *r = opt == '?' || opt == ':' ? NULL : row_of(c, opt);
    if (!r) {
        *ret_status = refuse(c, o, s, opt, argv);
        return false;
    }
    if (strcmp(r->name, "help") == 0) {
        help(c);
        *ret_status = 0;
        return false;
    }
    const char *why = take(o, r, optarg);
    if (why) *ret_status = cli_misuse(o, "--%s does not take \"%s\": %s", r->name, optarg ? optarg : "", why);
    return !why;
}

bool cli_parse(const cli_command *c, int argc, char **argv, cli_options *o, int *ret_status)
{
    static const hone_build_options build = HONE_BUILD_OPTIONS_INIT;
    static const hone_model_options model = HONE_MODEL_OPTIONS_INIT;
    spec s;
    int opt;
    memset(o, 0, sizeof *o);
    o->build = build;
    o->model = model;
    o->model.profile = o->profile;
    o->seconds = 3;
    for (int i = 1; i < argc; i++) o->json |= strcmp(argv[i], "--json") == 0; /* what is wrong before it is told in JSON too */
    describe(c, &s);
    optind = 0; /* start afresh: trtexec calls several subcommands */
    opterr = 0;
    while ((opt = getopt_long(argc, argv, s.shorts, s.longs, NULL)) != -1)
        if (!follow(c, o, &s, opt, argv, ret_status)) return false;
    const int most = c->id & CLI_DOCTOR ? 0 : o->stats ? argc : 1;
    if (optind + most < argc) {
        *ret_status = cli_misuse(o, "\"%s\" is one word too many; hone %s --help says what it takes", argv[optind + most],
                                 c->name);
        return false;
    }
    o->positional = optind < argc ? argv[optind] : NULL;
    o->word = argv + optind;
    o->n_word = argc - optind;
    if (o->verbose) hone_set_log(to_stderr, NULL, HONE_LOG_VERBOSE);
    o->build.progress = cli_progress;
    return true;
}
