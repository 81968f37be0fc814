/* hone trtexec: the flags that scripts for trtexec have, said in our words and handed to build, tune, bench and run. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_WORDS = 128, MAX_SHAPES = 32, SHAPE_KINDS = 3 };

typedef struct words {
    char *at[MAX_WORDS + 1];
    int n;
} words;

typedef struct shape {
    const char *name;
    const char *dims[SHAPE_KINDS]; /* min, opt, max */
} shape;

/* What the flags asked for, in our words. */
typedef struct plan {
    const char *onnx, *save, *load, *expression, *help_knob, *algorithm;
    double threshold;
    words build, tune, bench; /* beside build, what tuning and measuring take; shapes and inputs come with them */
    shape shape[MAX_SHAPES];
    int n_shape;
    bool help_route, tune_it, dry_run, skip, dump_output, dump_profile, json;
} plan;

typedef enum kind {
    TO_BUILD, /* becomes the option `ours` of hone build, and so of hone tune */
    TO_TUNE,
    TO_BENCH,
    SPECIAL, /* handled in special() */
    IGNORED  /* `ours` says why */
} kind;

typedef struct flag {
    const char *name;
    kind kind;
    const char *ours;
} flag;

static const char by_model[] = "precision follows the model and the route: export the model in the types it is to run in";
static const char no_cuda[] = "it is about a CUDA device, and the engine runs on this processor";
static const char no_copies[] = "nothing is copied between host and device";
static const char own_reference[] = "every trial is judged against the model evaluated in float64";

static const flag flags[] = {
    { "onnx", SPECIAL, NULL },
    { "saveEngine", SPECIAL, NULL },
    { "loadEngine", SPECIAL, NULL },
    { "minShapes", SPECIAL, NULL },
    { "optShapes", SPECIAL, NULL },
    { "maxShapes", SPECIAL, NULL },
    { "shapes", SPECIAL, NULL },
    { "loadInputs", SPECIAL, NULL },
    { "memPoolSize", SPECIAL, NULL },
    { "helpBuildRoute", SPECIAL, NULL },
    { "tuneBuildRoutes", SPECIAL, NULL },
    { "tuneBuildRouteFile", SPECIAL, NULL },
    { "accuracyAlgorithm", SPECIAL, NULL },
    { "tuningTimeOut", SPECIAL, NULL },
    { "dryRun", SPECIAL, NULL },
    { "skipInference", SPECIAL, NULL },
    { "buildOnly", SPECIAL, NULL },
    { "dumpOutput", SPECIAL, NULL },
    { "dumpProfile", SPECIAL, NULL },
    { "json", SPECIAL, NULL },
    { "setBuildRoute", TO_BUILD, "--set" },
    { "timingCacheFile", TO_BUILD, "--timing-cache" },
    { "builderOptimizationLevel", TO_BUILD, "--opt-level" },
    { "verbose", TO_BUILD, "--verbose" },
    { "tuningSearch", TO_TUNE, "--strategy" },
    { "tuningCacheFile", TO_TUNE, "--store" },
    { "continue", TO_TUNE, "--resume" },
    { "accuracyThreshold", SPECIAL, NULL },
    { "iterations", TO_BENCH, "--iterations" },
    { "duration", TO_BENCH, "--duration" },
    { "infStreams", TO_BENCH, "--streams" },
    { "fp16", IGNORED, by_model },
    { "bf16", IGNORED, by_model },
    { "int8", IGNORED, by_model },
    { "fp8", IGNORED, by_model },
    { "int4", IGNORED, by_model },
    { "best", IGNORED, by_model },
    { "noTF32", IGNORED, "TF32 is never used" },
    { "stronglyTyped", IGNORED, "models are always strongly typed" },
    { "precisionConstraints", IGNORED, by_model },
    { "layerPrecisions", IGNORED, by_model },
    { "layerOutputTypes", IGNORED, by_model },
    { "calib", IGNORED, by_model },
    { "loadRefOutputs", IGNORED, own_reference },
    { "refPair", IGNORED, own_reference },
    { "atol", IGNORED, "a share of elements is judged at the tuner's own tolerances" },
    { "rtol", IGNORED, "a share of elements is judged at the tuner's own tolerances" },
    { "saveAllEngines", IGNORED, "only the winner's engine is kept" },
    { "warmUp", IGNORED, "one run comes before the clock starts" },
    { "avgRuns", IGNORED, "every run is timed by itself" },
    { "percentile", IGNORED, "p50, p90 and p99 are always printed" },
    { "avgTiming", IGNORED, "kernels are timed until their medians settle" },
    { "maxTactics", IGNORED, "--builderOptimizationLevel bounds what is timed" },
    { "errorOnTimingCacheMiss", IGNORED, "hone build --frozen never measures: it asks the cost model" },
    { "profilingVerbosity", IGNORED, "engines always name their nodes" },
    { "useCudaGraph", IGNORED, no_cuda },
    { "device", IGNORED, no_cuda },
    { "useDLACore", IGNORED, no_cuda },
    { "allowGPUFallback", IGNORED, no_cuda },
    { "useSpinWait", IGNORED, no_cuda },
    { "tacticSources", IGNORED, no_cuda },
    { "hardwareCompatibilityLevel", IGNORED, "hone build --target names another machine" },
    { "versionCompatible", IGNORED, "an engine says which version it needs" },
    { "noDataTransfers", IGNORED, no_copies },
    { "exposeDMA", IGNORED, no_copies },
    { "useManagedMemory", IGNORED, no_copies },
    { "threads", IGNORED, "streams always have threads of their own" },
    { "separateProfileRun", IGNORED, "profiles always come from runs of their own" },
    { "sparsity", IGNORED, "structured sparsity is not used" },
    { "inputIOFormats", IGNORED, "inputs have the model's types, row-major" },
    { "outputIOFormats", IGNORED, "outputs have the model's types, row-major" },
    { "exportTimes", IGNORED, "hone bench --json prints the times' summary" },
    { "exportOutput", IGNORED, "hone run -o DIR writes outputs" },
    { "exportProfile", IGNORED, "hone explain ENGINE --json prints the profile" },
    { "exportLayerInfo", IGNORED, "hone inspect ENGINE --json prints the engine" },
    { "dumpLayerInfo", IGNORED, "hone explain ENGINE shows the steps" },
};

static bool add(words *w, const char *s)
{
    if (!s || w->n == MAX_WORDS) return false;
    w->at[w->n] = cli_keep(strdup(s));
    return w->at[w->n++] != NULL;
}

static bool add2(words *w, const char *a, const char *b)
{
    return add(w, a) && add(w, b);
}

static const flag *find(const char *name, size_t n)
{
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (strlen(flags[i].name) == n && memcmp(flags[i].name, name, n) == 0) return &flags[i];
    return NULL;
}

/* NAME:REST with quotes around NAME dropped; the last colon divides, since names may hold some. */
static bool split(char *item, char **ret_name, char **ret_rest)
{
    char *colon = strrchr(item, ':');
    if (!colon || colon == item) return false;
    *colon = 0;
    *ret_name = item;
    *ret_rest = colon + 1;
    const size_t n = strlen(item);
    if (n > 1 && (item[0] == '\'' || item[0] == '"') && item[n - 1] == item[0]) {
        item[n - 1] = 0;
        ++*ret_name;
    }
    return true;
}

static shape *shape_of(plan *p, const char *name)
{
    for (int i = 0; i < p->n_shape; i++)
        if (strcmp(p->shape[i].name, name) == 0) return &p->shape[i];
    if (p->n_shape == MAX_SHAPES) return NULL;
    p->shape[p->n_shape].name = name;
    return &p->shape[p->n_shape++];
}

/* "x:1x3x224x224,mask:1x64" for the kinds of bound from lo to hi. */
static bool take_shapes(plan *p, const char *list, int lo, int hi)
{
    char *text = cli_keep(strdup(list)), *save = NULL, *name, *dims;
    if (!text) return false;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        if (!split(item, &name, &dims)) return false;
        shape *s = shape_of(p, name);
        if (!s) return false;
        for (int k = lo; k <= hi; k++) s->dims[k] = dims;
    }
    return true;
}

static bool take_inputs(plan *p, const char *list)
{
    char *text = cli_keep(strdup(list)), *save = NULL, *name, *file, word[4096];
    if (!text) return false;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        if (!split(item, &name, &file)) return false;
        snprintf(word, sizeof word, "%s=%s", name, file);
        if (!add2(&p->tune, "--input", word) || !add2(&p->bench, "--input", word)) return false;
    }
    return true;
}

/* "workspace:512" in MiB, or with a suffix B, K, M or G; other pools are a device's. */
static bool take_pools(plan *p, const char *list)
{
    char *text = cli_keep(strdup(list)), *save = NULL, *name, *size, word[32];
    if (!text) return false;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        if (!split(item, &name, &size)) return false;
        char *end;
        double mb = strtod(size, &end);
        if (end == size || mb < 0) return false;
        if (*end == 'B') mb /= 1 << 20;
        else if (*end == 'K') mb /= 1 << 10;
        else if (*end == 'G') mb *= 1 << 10;
        else if (*end && *end != 'M') return false;
        if (strcmp(name, "workspace") != 0) {
            fprintf(stderr, "hone trtexec: ignoring --memPoolSize=%s: %s\n", name, no_cuda);
            continue;
        }
        snprintf(word, sizeof word, "%.0f", mb < 1 && mb > 0 ? 1 : mb);
        if (!add2(&p->build, "--workspace", word)) return false;
    }
    return true;
}

static const char *read_text(const char *path)
{
    FILE *f = fopen(path, "r");
    char *s = f ? cli_keep(calloc(1, 65536)) : NULL;
    if (s) {
        s[fread(s, 1, 65535, f)] = 0;
        s[strcspn(s, "\r\n")] = 0;
    }
    if (f) fclose(f);
    return s;
}

/* Its losses in our metrics: cos is 1 - cosine, l2 the mean square, where ours is the root of it. */
static bool add_bound(const plan *p, words *w)
{
    const char *name = p->algorithm ? p->algorithm : "l0";
    char word[64];
    if (p->threshold <= 0) return true;
    const double loss = p->threshold;
    if (strcmp(name, "cos") == 0) snprintf(word, sizeof word, "cosine=%.17g", 1 - loss);
    else if (strcmp(name, "l2") == 0) snprintf(word, sizeof word, "l2=%.17g", sqrt(loss));
    else snprintf(word, sizeof word, "%s=%.17g", strcmp(name, "lInf") == 0 ? "linf" : name, loss);
    return add2(w, "--accuracy", word);
}

/* False: v does not fit. Flags that stand alone have v NULL. */
static bool special(plan *p, const char *name, const char *v)
{
    if (strcmp(name, "helpBuildRoute") == 0) {
        p->help_knob = v;
        return p->help_route = true;
    }
    const struct {
        const char *name;
        bool *at;
    } alone[] = { { "dryRun", &p->dry_run }, { "skipInference", &p->skip }, { "buildOnly", &p->skip },
                  { "dumpOutput", &p->dump_output }, { "dumpProfile", &p->dump_profile }, { "json", &p->json } };
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (strcmp(name, alone[i].name) == 0) return *alone[i].at = true;
    if (!v || !*v) return false;
    if (strcmp(name, "onnx") == 0) return (p->onnx = v);
    if (strcmp(name, "saveEngine") == 0) return (p->save = v);
    if (strcmp(name, "loadEngine") == 0) return (p->load = v);
    if (strcmp(name, "minShapes") == 0) return take_shapes(p, v, 0, 0);
    if (strcmp(name, "optShapes") == 0) return take_shapes(p, v, 1, 1);
    if (strcmp(name, "maxShapes") == 0) return take_shapes(p, v, 2, 2);
    if (strcmp(name, "shapes") == 0) return take_shapes(p, v, 0, 2);
    if (strcmp(name, "loadInputs") == 0) return take_inputs(p, v);
    if (strcmp(name, "memPoolSize") == 0) return take_pools(p, v);
    if (strcmp(name, "accuracyAlgorithm") == 0) return (p->algorithm = v);
    if (strcmp(name, "accuracyThreshold") == 0) return (p->threshold = atof(v)) > 0;
    if (strcmp(name, "tuningTimeOut") == 0) return atof(v) <= 0 || add2(&p->tune, "--budget", v);
    p->tune_it = true;
    p->expression = strcmp(name, "tuneBuildRouteFile") == 0 ? read_text(v) : v;
    return p->expression != NULL;
}

/* One word of the command line; 0 or an exit status. */
static int take(plan *p, const char *word, bool *json)
{
    cli_options o = { .json = *json };
    if (strncmp(word, "--", 2) != 0) return cli_misuse(&o, "\"%s\" is no flag; trtexec's flags are --name=value", word);
    const char *name = word + 2, *eq = strchr(name, '='), *v = eq ? eq + 1 : NULL;
    const flag *f = find(name, eq ? (size_t)(eq - name) : strlen(name));
    bool ok = true;
    if (!f) {
        fprintf(stderr, "hone trtexec: ignoring %s: it is unknown here\n", word);
        return 0;
    }
    switch (f->kind) {
    case TO_BUILD: ok = add(&p->build, f->ours) && (!v || add(&p->build, v)); break;
    case TO_TUNE: ok = add(&p->tune, f->ours) && (!v || add(&p->tune, v)); break;
    case TO_BENCH: ok = add(&p->bench, f->ours) && (!v || add(&p->bench, v)); break;
    case SPECIAL: ok = special(p, f->name, v); break;
    case IGNORED: fprintf(stderr, "hone trtexec: ignoring --%s: %s\n", f->name, f->ours); break;
    }
    *json = p->json;
    return ok ? 0 : cli_misuse(&o, "--%s does not take \"%s\"", f->name, v ? v : "");
}

/* A bound that was not given is the nearest that was, as trtexec has it. */
static bool add_shapes(const plan *p, words *w, bool opt_only)
{
    for (int i = 0; i < p->n_shape; i++) {
        const char *const *d = p->shape[i].dims;
        const char *opt = d[1] ? d[1] : d[2] ? d[2] : d[0];
        char word[1024];
        if (opt_only) snprintf(word, sizeof word, "%s=%s", p->shape[i].name, opt);
        else
            snprintf(word, sizeof word, "%s=%s:%s:%s", p->shape[i].name, d[0] ? d[0] : opt, opt, d[2] ? d[2] : opt);
        if (!add2(w, "--shape", word)) return false;
    }
    return true;
}

static int call(const cli_command *c, const char *file, const words *a, const words *b, const char *out, const plan *p)
{
    words w = { 0 };
    bool ok = add2(&w, c->name, file);
    for (int i = 0; a && i < a->n; i++) ok &= add(&w, a->at[i]);
    for (int i = 0; b && i < b->n; i++) ok &= add(&w, b->at[i]);
    if (out) ok &= add2(&w, "-o", out);
    if (p->json) ok &= add(&w, "--json");
    ok &= add_shapes(p, &w, c != &cli_build && c != &cli_tune);
    if (!ok) return cli_misuse(NULL, "too many flags");
    w.at[w.n] = NULL;
    return c->run(w.n, w.at);
}

static int make(const plan *p, const char *engine)
{
    if (!p->tune_it) return call(&cli_build, p->onnx, &p->build, NULL, engine, p);
    words t = p->tune;
    if (!add2(&t, "--search", p->expression) || !add_bound(p, &t) || (p->dry_run && !add(&t, "--dry-run"))) return HONE_E_NOMEM;
    return call(&cli_tune, p->onnx, &p->build, &t, engine, p);
}

static int measure(const plan *p, const char *engine)
{
    words in = { 0 }; /* of what hone bench takes, what hone run and explain take as well */
    for (int i = 0; i + 1 < p->bench.n; i++)
        if (strcmp(p->bench.at[i], "--input") == 0) add2(&in, "--input", p->bench.at[i + 1]);
    int status = call(&cli_bench, engine, &p->bench, NULL, NULL, p);
    if (!status && p->dump_output) status = call(&cli_run, engine, &in, NULL, NULL, p);
    if (!status && p->dump_profile) status = call(&cli_explain, engine, &in, NULL, NULL, p);
    return status;
}

static int follow(const plan *p)
{
    if (p->help_route) {
        const char *name = p->help_knob;
        words w = { 0 };
        bool ok = add2(&w, "knobs", "--json");
        if (name) ok &= add2(&w, "--", name);
        w.at[w.n] = NULL;
        return ok ? cli_knobs.run(w.n, w.at) : HONE_E_NOMEM;
    }
    if (p->load) return measure(p, p->load);
    cli_options o = { .json = p->json };
    if (!p->onnx) return cli_misuse(&o, "--onnx=MODEL or --loadEngine=FILE is needed");
    char made[] = "/tmp/hone-trtexec-XXXXXX";
    const int fd = p->save ? -1 : mkstemp(made);
    if (!p->save && fd < 0) return cli_misuse(&o, "no temporary file can be made for the engine");
    const char *engine = p->save ? p->save : made;
    int status = make(p, engine);
    if (!status && !p->skip && !p->dry_run) status = measure(p, engine);
    if (fd >= 0) {
        close(fd);
        remove(made);
    }
    return status;
}

static void usage(const cli_command *c)
{
    printf("hone trtexec: %s\n\n%s\nFlags that are followed:\n", c->summary, c->usage);
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].kind != IGNORED) printf("  --%s\n", flags[i].name);
    printf("\nFlags that are known and ignored, which is said when they are given:\n");
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (flags[i].kind == IGNORED) printf("  --%-26s %s\n", flags[i].name, flags[i].ours);
}

/* The frame that scripts look for around a run. */
static void banner(const char *what, int argc, char **argv)
{
    printf("&&&& %s hone.trtexec [hone %s] #", what, hone_version());
    for (int i = 0; i < argc; i++) printf(" %s", argv[i]);
    printf("\n");
    fflush(stdout);
}

static int run(int argc, char **argv)
{
    plan p = { 0 };
    bool json = false;
    int status = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            usage(&cli_trtexec);
            return 0;
        }
        if (strcmp(argv[i], "--json") == 0) json = true;
    }
    if (!json) banner("RUNNING", argc, argv);
    for (int i = 1; !status && i < argc; i++) status = take(&p, argv[i], &json);
    if (!status) status = follow(&p);
    if (!json) banner(status ? "FAILED" : "PASSED", argc, argv);
    return status;
}

const cli_command cli_trtexec = {
    "trtexec", "take the flags that scripts for trtexec have",
    "Usage: hone trtexec --onnx=MODEL [--saveEngine=FILE] [FLAG]... | hone trtexec --loadEngine=FILE [FLAG]...\n"
    "A model is built (tuned, with --tuneBuildRoutes) and its engine measured. Routes and knobs are ours: hone knobs.\n"
    "Raw tensors (--loadInputs) are read as the input's type, row-major; .npy files are taken as well.\n",
    run, 0,
};
