/* Options shared by the subcommands. */
#include "cli.h"

#include <stdlib.h>
#include <string.h>

enum {
    OPT_HELP = 256, OPT_JSON, OPT_THREADS, OPT_ROUTE, OPT_OPT_LEVEL, OPT_TARGET, OPT_SHAPE, OPT_INPUT, OPT_CACHE_DIR,
    OPT_TIMING, OPT_FROZEN, OPT_WORKSPACE, OPT_REFERENCE, OPT_SECONDS, OPT_ITERATIONS, OPT_STREAMS, OPT_WORKER, OPT_BUDGET,
    OPT_STRATEGY, OPT_EXPR, OPT_STORE, OPT_METRIC, OPT_THRESHOLD, OPT_DRY_RUN, OPT_RESUME, OPT_SEED, OPT_PROFILE,
    OPT_TRIALS, OPT_ENGINE, OPT_NAMES, OPT_EXACT,
};

static const struct option table[] = {
    { "help", no_argument, NULL, OPT_HELP },
    { "json", no_argument, NULL, OPT_JSON },
    { "verbose", no_argument, NULL, 'v' },
    { "output", required_argument, NULL, 'o' },
    { "threads", required_argument, NULL, OPT_THREADS },
    { "set", required_argument, NULL, OPT_ROUTE },
    { "route", required_argument, NULL, OPT_ROUTE },
    { "opt-level", required_argument, NULL, OPT_OPT_LEVEL },
    { "target", required_argument, NULL, OPT_TARGET },
    { "shape", required_argument, NULL, OPT_SHAPE },
    { "input", required_argument, NULL, OPT_INPUT },
    { "cache-dir", required_argument, NULL, OPT_CACHE_DIR },
    { "timing-cache", required_argument, NULL, OPT_TIMING },
    { "frozen", no_argument, NULL, OPT_FROZEN },
    { "workspace", required_argument, NULL, OPT_WORKSPACE },
    { "reference-out", required_argument, NULL, OPT_REFERENCE },
    { "duration", required_argument, NULL, OPT_SECONDS },
    { "iterations", required_argument, NULL, OPT_ITERATIONS },
    { "streams", required_argument, NULL, OPT_STREAMS },
    { "worker", no_argument, NULL, OPT_WORKER },
    { "budget", required_argument, NULL, OPT_BUDGET },
    { "max-trials", required_argument, NULL, OPT_TRIALS },
    { "strategy", required_argument, NULL, OPT_STRATEGY },
    { "search", required_argument, NULL, OPT_EXPR },
    { "store", required_argument, NULL, OPT_STORE },
    { "metric", required_argument, NULL, OPT_METRIC },
    { "threshold", required_argument, NULL, OPT_THRESHOLD },
    { "dry-run", no_argument, NULL, OPT_DRY_RUN },
    { "resume", no_argument, NULL, OPT_RESUME },
    { "seed", required_argument, NULL, OPT_SEED },
    { "profile", no_argument, NULL, OPT_PROFILE },
    { "engine", required_argument, NULL, OPT_ENGINE },
    { "names", no_argument, NULL, OPT_NAMES },
    { "exact", no_argument, NULL, OPT_EXACT },
    { NULL, 0, NULL, 0 },
};

static void to_stderr(void *user, hone_log_level level, const char *text)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", text);
}

/* "1x3x48x320" into dims; yields the rank or -1. */
static int parse_dims(const char *s, const char *end, int64_t *dim)
{
    int n = 0;
    if (s == end) return 0; /* a scalar */
    for (;;) {
        char *stop;
        const long long v = strtoll(s, &stop, 10);
        if (stop == s || v < 0 || n == HONE_MAX_RANK || stop > end) return -1;
        dim[n++] = v;
        if (stop == end) return n;
        if (*stop != 'x' && *stop != ',') return -1;
        s = stop + 1;
    }
}

/* NAME=DIMS, or NAME=MIN:OPT:MAX. Names may hold colons and equals signs: the last '=' divides. */
static bool parse_shape(cli_options *o, const char *text)
{
    const int i = o->model.n_profile;
    const char *eq = strrchr(text, '=');
    if (!eq || i == 32) return false;
    const char *part[3], *end[3];
    int n = 0;
    for (const char *s = eq + 1; n < 3; n++) {
        part[n] = s;
        end[n] = strchr(s, ':') ? strchr(s, ':') : s + strlen(s);
        if (!*end[n]) {
            n++;
            break;
        }
        s = end[n] + 1;
    }
    if (n != 1 && n != 3) return false;
    int rank = -1;
    for (int k = 0; k < 3; k++) {
        const int r = parse_dims(part[n == 1 ? 0 : k], end[n == 1 ? 0 : k], o->profile_dim[i][k]);
        if (r < 0 || (rank >= 0 && r != rank)) return false;
        rank = r;
    }
    char *name = cli_keep(strndup(text, (size_t)(eq - text)));
    o->profile[i] = (hone_profile){ name, rank, o->profile_dim[i][0], o->profile_dim[i][1], o->profile_dim[i][2] };
    o->model.n_profile++;
    return name != NULL;
}

static bool parse_input(cli_options *o, const char *text)
{
    const char *eq = strrchr(text, '=');
    if (!eq || o->n_input == 64) return false;
    o->input_name[o->n_input] = cli_keep(strndup(text, (size_t)(eq - text)));
    o->input_file[o->n_input++] = eq + 1;
    return true;
}

/* Several --set join into one route. */
static const char *join(const char *a, const char *b)
{
    if (!a) return b;
    const size_t n = strlen(a) + strlen(b) + 2;
    char *s = cli_keep(malloc(n));
    if (s) snprintf(s, n, "%s %s", a, b);
    return s;
}

static bool take(cli_options *o, int opt)
{
    const char *v = optarg;
    switch (opt) {
    case OPT_JSON: o->json = true; return true;
    case 'v': o->verbose = true; return true;
    case 'o': o->output = v; return true;
    case OPT_THREADS: o->build.threads = atoi(v); return o->build.threads > 0;
    case OPT_ROUTE: o->build.route = join(o->build.route, v); return o->build.route != NULL;
    case OPT_OPT_LEVEL: o->build.opt_level = atoi(v); return true;
    case OPT_TARGET: o->build.target = v; return true;
    case OPT_SHAPE: return parse_shape(o, v);
    case OPT_INPUT: return parse_input(o, v);
    case OPT_CACHE_DIR: o->build.cache_dir = v; return true;
    case OPT_TIMING: o->build.timing_cache = v; return true;
    case OPT_FROZEN: o->build.frozen = true; return true;
    case OPT_WORKSPACE: o->build.workspace_bytes = atoll(v) << 20; return true;
    case OPT_REFERENCE: o->reference_out = v; return true;
    case OPT_SECONDS: o->seconds = atof(v); return o->seconds > 0;
    case OPT_ITERATIONS: o->iterations = atoi(v); return o->iterations > 0;
    case OPT_STREAMS: o->streams = atoi(v); return o->streams > 0 && o->streams <= 256;
    case OPT_WORKER: o->worker = true; return true;
    case OPT_BUDGET: o->budget_s = atof(v); return o->budget_s > 0;
    case OPT_TRIALS: o->max_trials = atoi(v); return o->max_trials > 0;
    case OPT_STRATEGY: o->strategy = v; return true;
    case OPT_EXPR: o->expression = v; return true;
    case OPT_STORE: o->store = v; return true;
    case OPT_METRIC: o->metric = v; return true;
    case OPT_THRESHOLD: o->threshold = atof(v); return o->threshold > 0;
    case OPT_DRY_RUN: o->dry_run = true; return true;
    case OPT_RESUME: o->resume = true; return true;
    case OPT_SEED: o->seed = strtoull(v, NULL, 10); return true;
    case OPT_PROFILE: o->profile_steps = true; return true;
    case OPT_ENGINE: o->engine = v; return true;
    case OPT_NAMES: o->names = true; return true;
    case OPT_EXACT: o->build.route = join(o->build.route, "-core:exact=1"); return o->build.route != NULL;
    default: return false;
    }
}

static const char *option_name(int opt)
{
    for (const struct option *p = table; p->name; p++)
        if (p->val == opt) return p->name;
    return "?";
}

bool cli_parse(const cli_command *c, int argc, char **argv, cli_options *o, int *ret_status)
{
    static const hone_build_options build = HONE_BUILD_OPTIONS_INIT;
    static const hone_model_options model = HONE_MODEL_OPTIONS_INIT;
    memset(o, 0, sizeof *o);
    o->build = build;
    o->model = model;
    o->model.profile = o->profile;
    optind = 0; /* start afresh: trtexec calls several subcommands */
    int opt;
    while ((opt = getopt_long(argc, argv, "o:vh", table, NULL)) != -1) {
        if (opt == OPT_HELP || opt == 'h') {
            printf("hone %s: %s\n\n%s", c->name, c->summary, c->usage);
            *ret_status = 0;
            return false;
        }
        if (opt == '?') {
            *ret_status = HONE_E_INVALID;
            return false;
        }
        if (take(o, opt)) continue;
        *ret_status = cli_misuse(o, "--%s does not take \"%s\"; hone %s --help says what it takes", option_name(opt),
                                 optarg ? optarg : "", c->name);
        return false;
    }
    o->positional = optind < argc ? argv[optind] : NULL;
    if (optind + 1 < argc) {
        *ret_status = cli_misuse(o, "\"%s\" is one file too many", argv[optind + 1]);
        return false;
    }
    if (o->verbose) hone_set_log(to_stderr, NULL, HONE_LOG_VERBOSE);
    o->build.progress = cli_progress;
    return true;
}
