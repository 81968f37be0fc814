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
    const char *onnx, *save, *load, *expression, *help_knob, *algorithm, *target;
    const char *half; /* setting of the route for 16 bits, or NULL */
    double threshold;
    words build, tune, bench; /* beside build, what tuning and measuring take; shapes come with them */
    shape shape[MAX_SHAPES];
    int n_shape;
    trt_report report;
    double duration_s, warmup_s;
    int64_t iterations;
    bool no_tf32, help_route, tune_it, dry_run, skip, dump_output, json;
} plan;

typedef enum kind {
    TO_BUILD, /* becomes the option `ours` of hone build, and so of hone tune */
    TO_TUNE,
    TO_BENCH,
    ON_GPU,  /* a setting of the route where a GPU is built for */
    SPECIAL, /* handled in special() */
    IGNORED  /* `ours` says why */
} kind;

typedef struct flag {
    const char *name;
    kind kind;
    const char *ours;
    bool alone; /* takes no value */
} flag;

static const char by_model[] = "precision follows the model and the route: export the model in the types it is to run in";
static const char no_such_switch[] = "there is nothing of that kind to switch";
static const char no_such_device[] = "engines run on one processor or GPU as a whole";
static const char no_copies[] = "copies are part of a run, and no time is taken of them alone";
static const char one_reference[] = "trials are judged on one set of inputs";
static const char no_plugins[] = "there are no plugins";
static const char no_budget[] = "hone run and hone bench --weight-budget keep weights of any engine with the host";
static const char no_strip[] = "engines hold their weights";

static const flag flags[] = {
    { "onnx", SPECIAL, NULL, false },
    { "saveEngine", SPECIAL, NULL, false },
    { "loadEngine", SPECIAL, NULL, false },
    { "minShapes", SPECIAL, NULL, false },
    { "optShapes", SPECIAL, NULL, false },
    { "maxShapes", SPECIAL, NULL, false },
    { "shapes", SPECIAL, NULL, false },
    { "loadInputs", SPECIAL, NULL, false },
    { "memPoolSize", SPECIAL, NULL, false },
    { "workspace", SPECIAL, NULL, false },
    { "helpBuildRoute", SPECIAL, NULL, true },
    { "tuneBuildRoutes", SPECIAL, NULL, false },
    { "tuneBuildRouteFile", SPECIAL, NULL, false },
    { "accuracyAlgorithm", SPECIAL, NULL, false },
    { "tuningTimeOut", SPECIAL, NULL, false },
    { "iterations", SPECIAL, NULL, false },
    { "duration", SPECIAL, NULL, false },
    { "warmUp", SPECIAL, NULL, false },
    { "percentile", SPECIAL, NULL, false },
    { "exportTimes", SPECIAL, NULL, false },
    { "exportProfile", SPECIAL, NULL, false },
    { "exportOutput", SPECIAL, NULL, false },
    { "exportLayerInfo", SPECIAL, NULL, false },
    { "dryRun", SPECIAL, NULL, true },
    { "skipInference", SPECIAL, NULL, true },
    { "buildOnly", SPECIAL, NULL, true },
    { "dumpOutput", SPECIAL, NULL, true },
    { "dumpProfile", SPECIAL, NULL, true },
    { "dumpLayerInfo", SPECIAL, NULL, true },
    { "json", SPECIAL, NULL, true },
    { "setBuildRoute", TO_BUILD, "--set", false },
    { "timingCacheFile", TO_BUILD, "--timing-cache", false },
    { "builderOptimizationLevel", TO_BUILD, "--opt-level", false },
    { "verbose", TO_BUILD, "--verbose", true },
    { "tuningSearch", TO_TUNE, "--strategy", false },
    { "tuningCacheFile", TO_TUNE, "--store", false },
    { "continue", TO_TUNE, "--resume", true },
    { "accuracyThreshold", SPECIAL, NULL, false },
    { "infStreams", TO_BENCH, "--streams", false },
    { "streams", TO_BENCH, "--streams", false },
    { "fp16", ON_GPU, "-math:half=f16", true },
    { "bf16", ON_GPU, "-math:half=bf16", true },
    { "best", ON_GPU, "-math:half=f16", true },
    { "noTF32", SPECIAL, NULL, true },
    { "target", SPECIAL, NULL, false }, /* our own */
    { "int8", IGNORED, by_model, false },
    { "fp8", IGNORED, by_model, false },
    { "int4", IGNORED, by_model, false },
    { "precisionConstraints", IGNORED, by_model, false },
    { "layerPrecisions", IGNORED, by_model, false },
    { "layerOutputTypes", IGNORED, by_model, false },
    { "layerDeviceTypes", IGNORED, by_model, false },
    { "calib", IGNORED, by_model, false },
    { "calibProfile", IGNORED, by_model, false },
    { "stronglyTyped", IGNORED, "models are always strongly typed", false },
    { "loadRefOutputs", SPECIAL, NULL, false },
    { "refPair", IGNORED, one_reference, false },
    { "atol", IGNORED, "a share of elements is judged at the tuner's own tolerances", false },
    { "rtol", IGNORED, "a share of elements is judged at the tuner's own tolerances", false },
    { "saveAllEngines", IGNORED, "only the winner's engine is kept", false },
    { "avgRuns", IGNORED, "every run is timed by itself", false },
    { "avgTiming", IGNORED, "kernels are timed until their medians settle", false },
    { "maxTactics", IGNORED, "--builderOptimizationLevel bounds what is timed", false },
    { "errorOnTimingCacheMiss", IGNORED, "hone build --frozen never measures: it asks the cost model", false },
    { "noBuilderCache", IGNORED, "hone build --cache-dir= keeps no compiled kernels", false },
    { "noCompilationCache", IGNORED, "hone build --cache-dir= keeps no compiled kernels", false },
    { "profilingVerbosity", IGNORED, "engines always name their nodes", false },
    { "useCudaGraph", IGNORED, "runs on a GPU are always recorded as CUDA graphs", false },
    { "device", IGNORED, "CUDA_VISIBLE_DEVICES chooses the GPU", false },
    { "useDLACore", IGNORED, no_such_device, false },
    { "allowGPUFallback", IGNORED, no_such_device, false },
    { "buildDLAStandalone", IGNORED, no_such_device, false },
    { "useSpinWait", IGNORED, "a call waits for its results", false },
    { "tacticSources", IGNORED, "knobs switch libraries: --setBuildRoute=-tactic:cublaslt=0, -tactic:cudnn=0", false },
    { "maxAuxStreams", IGNORED, "a knob spreads branches over streams: --setBuildRoute=-plan:streams=4", false },
    { "persistentCacheRatio", IGNORED, no_such_switch, false },
    { "tilingOptimizationLevel", IGNORED, no_such_switch, false },
    { "l2LimitForTiling", IGNORED, no_such_switch, false },
    { "safe", IGNORED, no_such_switch, false },
    { "consistency", IGNORED, no_such_switch, false },
    { "restricted", IGNORED, no_such_switch, false },
    { "hardwareCompatibilityLevel", IGNORED, "hone build --target names another machine", false },
    { "runtimePlatform", IGNORED, "hone build --target names another machine", false },
    { "versionCompatible", IGNORED, "an engine says which version it needs", false },
    { "vc", IGNORED, "an engine says which version it needs", false },
    { "useRuntime", IGNORED, "an engine says which version it needs", false },
    { "leanDLLPath", IGNORED, "an engine says which version it needs", false },
    { "excludeLeanRuntime", IGNORED, "an engine says which version it needs", false },
    { "getPlanVersionOnly", IGNORED, "an engine says which version it needs", false },
    { "noDataTransfers", IGNORED, no_copies, false },
    { "exposeDMA", IGNORED, no_copies, false },
    { "useManagedMemory", IGNORED, no_copies, false },
    { "threads", IGNORED, "streams always have threads of their own", false },
    { "separateProfileRun", IGNORED, "profiles always come from runs of their own", false },
    { "sparsity", IGNORED, "structured sparsity is not used", false },
    { "inputIOFormats", IGNORED, "inputs have the model's types, row-major", false },
    { "outputIOFormats", IGNORED, "outputs have the model's types, row-major", false },
    { "sleepTime", IGNORED, "runs follow each other at once", false },
    { "idleTime", IGNORED, "runs follow each other at once", false },
    { "timeDeserialize", IGNORED, "loading an engine maps a file", false },
    { "timeRefit", IGNORED, "loading an engine maps a file", false },
    { "refit", IGNORED, no_strip, false },
    { "stripWeights", IGNORED, no_strip, false },
    { "stripAllWeights", IGNORED, no_strip, false },
    { "refitFromOnnx", IGNORED, no_strip, false },
    { "dumpRefit", IGNORED, no_strip, false },
    { "allowWeightStreaming", IGNORED, no_budget, false },
    { "weightStreamingBudget", IGNORED, no_budget, false },
    { "plugins", IGNORED, no_plugins, false },
    { "staticPlugins", IGNORED, no_plugins, false },
    { "dynamicPlugins", IGNORED, no_plugins, false },
    { "setPluginsToSerialize", IGNORED, no_plugins, false },
    { "ignoreParsedPluginLibs", IGNORED, no_plugins, false },
    { "markDebug", IGNORED, "hone run -o DIR writes outputs; inner tensors are not kept", false },
    { "markUnfusedTensorsAsDebugTensors", IGNORED, "hone run -o DIR writes outputs; inner tensors are not kept", false },
    { "saveDebugTensors", IGNORED, "hone run -o DIR writes outputs; inner tensors are not kept", false },
    { "saveAllDebugTensors", IGNORED, "hone run -o DIR writes outputs; inner tensors are not kept", false },
    { "dumpRawBindingsToFile", IGNORED, "hone run -o DIR writes outputs; inner tensors are not kept", false },
    { "dumpOptimizationProfile", IGNORED, "an engine has one profile, given by --minShapes, --optShapes and --maxShapes", false },
    { "useProfile", IGNORED, "an engine has one profile, given by --minShapes, --optShapes and --maxShapes", false },
    { "profile", IGNORED, "an engine has one profile, given by --minShapes, --optShapes and --maxShapes", false },
    { "preview", IGNORED, no_such_switch, false },
    { "allocationStrategy", IGNORED, no_such_switch, false },
    { "decomposableAttentions", IGNORED, no_such_switch, false },
    { "monitorMemory", IGNORED, no_such_switch, false },
    { "tempdir", IGNORED, "an engine is one file, mapped where it lies", false },
    { "tempfileControls", IGNORED, "an engine is one file, mapped where it lies", false },
    { "asyncFileReader", IGNORED, "an engine is one file, mapped where it lies", false },
    { "explicitBatch", IGNORED, "batches are the model's own first extent", false },
    { "batch", IGNORED, "batches are the model's own first extent", false },
    { "maxBatch", IGNORED, "batches are the model's own first extent", false },
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

/* Inputs and references: "x:x.raw,mask:mask.raw" */
static bool take_tensors(plan *p, const char *list, bool reference)
{
    char *text = cli_keep(strdup(list)), *save = NULL, *name, *file, word[4096];
    if (!text) return false;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        if (!split(item, &name, &file)) return false;
        snprintf(word, sizeof word, "%s=%s", name, file);
        if (!add2(&p->tune, reference ? "--reference" : "--input", word)) return false;
        if (!reference && !add2(&p->bench, "--input", word)) return false;
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
            fprintf(stderr, "hone trtexec: ignoring --memPoolSize=%s: %s\n", name, no_such_device);
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

/* "90,95,99" */
static bool take_percentiles(trt_report *r, const char *list)
{
    char *text = cli_keep(strdup(list)), *save = NULL;
    if (!text) return false;
    r->n_percentile = 0;
    for (char *item = strtok_r(text, ",", &save); item; item = strtok_r(NULL, ",", &save)) {
        double *p = &r->percentile[r->n_percentile];
        if (r->n_percentile++ == sizeof r->percentile / sizeof r->percentile[0]) return false;
        if (strcmp(item, "0") == 0) *p = 0;
        else if (cli_real(item, 0, p) || *p > 100) return false;
    }
    return r->n_percentile > 0;
}

static bool take_seconds(const char *v, double unit_s, double *ret)
{
    if (strcmp(v, "0") == 0) *ret = 0;
    else if (cli_real(v, 0, ret)) return false;
    *ret *= unit_s;
    return true;
}

/* Flags that stand alone. */
static bool special_alone(plan *p, const char *name, const char *v)
{
    const struct {
        const char *name;
        bool *at;
    } alone[] = { { "dryRun", &p->dry_run }, { "skipInference", &p->skip }, { "buildOnly", &p->skip },
                  { "dumpOutput", &p->dump_output }, { "dumpProfile", &p->report.print_profile },
                  { "dumpLayerInfo", &p->report.print_layers }, { "json", &p->json }, { "noTF32", &p->no_tf32 } };
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        if (strcmp(name, alone[i].name) == 0) return *alone[i].at = true;
    p->help_knob = v; /* helpBuildRoute, of one knob or of all */
    return p->help_route = true;
}

/* Flags whose value is a path or a name, taken as it is. */
static const char **text_of(plan *p, const char *name)
{
    const struct {
        const char *name, **at;
    } text[] = { { "onnx", &p->onnx }, { "saveEngine", &p->save }, { "loadEngine", &p->load }, { "target", &p->target },
                 { "accuracyAlgorithm", &p->algorithm },
                 { "exportTimes", &p->report.times }, { "exportProfile", &p->report.profile },
                 { "exportOutput", &p->report.outputs }, { "exportLayerInfo", &p->report.layers } };
    for (size_t i = 0; i < sizeof text / sizeof text[0]; i++)
        if (strcmp(name, text[i].name) == 0) return text[i].at;
    return NULL;
}

/* False: v does not fit. */
static bool special(plan *p, const char *name, const char *v)
{
    const char **text = text_of(p, name);
    if (text) return (*text = v);
    if (strcmp(name, "minShapes") == 0) return take_shapes(p, v, 0, 0);
    if (strcmp(name, "optShapes") == 0) return take_shapes(p, v, 1, 1);
    if (strcmp(name, "maxShapes") == 0) return take_shapes(p, v, 2, 2);
    if (strcmp(name, "shapes") == 0) return take_shapes(p, v, 0, 2);
    if (strcmp(name, "loadInputs") == 0) return take_tensors(p, v, /* reference= */ false);
    if (strcmp(name, "loadRefOutputs") == 0) return take_tensors(p, v, /* reference= */ true);
    if (strcmp(name, "memPoolSize") == 0) return take_pools(p, v);
    if (strcmp(name, "workspace") == 0) return add2(&p->build, "--workspace", v);
    if (strcmp(name, "percentile") == 0) return take_percentiles(&p->report, v);
    if (strcmp(name, "iterations") == 0) return !cli_whole(v, 0, INT32_MAX, &p->iterations);
    if (strcmp(name, "duration") == 0) return take_seconds(v, 1, &p->duration_s);
    if (strcmp(name, "warmUp") == 0) return take_seconds(v, 1e-3, &p->warmup_s);
    if (strcmp(name, "accuracyThreshold") == 0) return !cli_real(v, 0, &p->threshold);
    if (strcmp(name, "tuningTimeOut") == 0) return strcmp(v, "-1") == 0 || add2(&p->tune, "--budget", v);
    p->tune_it = true;
    p->expression = strcmp(name, "tuneBuildRouteFile") == 0 ? read_text(v) : v;
    return p->expression != NULL;
}

/* A slip is told; what is near to nothing may be a flag of some version that is not known here. */
static int unknown(const cli_options *o, const char *word)
{
    enum { N = sizeof flags / sizeof flags[0] };
    const char *names[N], *name = cli_text("%.*s", (int)strcspn(word + 2, "="), word + 2);
    for (int i = 0; i < N; i++) names[i] = flags[i].name;
    const char *near = name ? cli_nearest(name, names, N) : NULL;
    if (near) return cli_misuse(o, "--%s is no flag; --%s is", name, near);
    fprintf(stderr, "hone trtexec: ignoring %s: it is unknown here\n", word);
    return 0;
}

/* One word of the command line; 0 or an exit status. */
static int take(plan *p, const char *word, bool *json)
{
    cli_options o = { .json = *json };
    if (strncmp(word, "--", 2) != 0) return cli_misuse(&o, "\"%s\" is no flag; trtexec's flags are --name=value", word);
    const char *name = word + 2, *eq = strchr(name, '='), *v = eq ? eq + 1 : NULL;
    const flag *f = find(name, eq ? (size_t)(eq - name) : strlen(name));
    bool ok = true;
    if (!f) return unknown(&o, word);
    if (f->kind != IGNORED && !f->alone && (!v || !*v)) return cli_misuse(&o, "--%s needs a value: --%s=VALUE", f->name, f->name);
    switch (f->kind) {
    case TO_BUILD: ok = add(&p->build, f->ours) && (f->alone || add(&p->build, v)); break;
    case TO_TUNE: ok = add(&p->tune, f->ours) && (f->alone || add(&p->tune, v)); break;
    case TO_BENCH: ok = add(&p->bench, f->ours) && (f->alone || add(&p->bench, v)); break;
    case ON_GPU: p->half = f->ours; break;
    case SPECIAL: ok = f->alone ? special_alone(p, f->name, v) : special(p, f->name, v); break;
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

/* Does a route that was given speak of the knob? It goes before the flags. */
static bool routes(const words *w, const char *knob)
{
    for (int i = 0; i + 1 < w->n; i++)
        if (strcmp(w->at[i], "--set") == 0 && strstr(w->at[i + 1], knob)) return true;
    return false;
}

/* A GPU that is here is what scripts for trtexec mean; f32 runs there as they expect it, through TF32. */
static bool choose_target(plan *p)
{
    const char *here = hone_gpu_target(), *target = p->target ? p->target : here ? "gpu" : "host";
    const bool gpu = strcmp(target, "gpu") == 0 || strncmp(target, "sm_", 3) == 0;
    if (!p->target && here) fprintf(stderr, "hone trtexec: building for the GPU (%s); --target=host is this processor\n", here);
    if (!gpu) {
        if (p->half) fprintf(stderr, "hone trtexec: ignoring 16 bits (%s): %s\n", p->half, by_model);
        return add2(&p->build, "--target", target);
    }
    const bool tf32 = !p->no_tf32 && !routes(&p->build, "math:tf32"), half = p->half && !routes(&p->build, "math:half");
    if (tf32) fprintf(stderr, "hone trtexec: f32 may run as TF32; --noTF32 forbids it\n");
    return add2(&p->build, "--target", target) && (!tf32 || add2(&p->build, "--set", "-math:tf32=1")) &&
           (!half || add2(&p->build, "--set", p->half));
}

static int make(plan *p, const char *engine)
{
    if (!choose_target(p)) return cli_misuse(NULL, "too many flags");
    if (!p->tune_it) return call(&cli_build, p->onnx, &p->build, NULL, engine, p);
    words t = p->tune;
    if (!add2(&t, "--search", p->expression) || !add_bound(p, &t) || (p->dry_run && !add(&t, "--dry-run"))) return HONE_E_NOMEM;
    return call(&cli_tune, p->onnx, &p->build, &t, engine, p);
}

/* In our words under --json, else in trtexec's. */
static int bench(const plan *p, const char *engine)
{
    words w = { 0 };
    cli_options o;
    int status = HONE_E_NOMEM;
    bool ok = add2(&w, "bench", engine);
    for (int i = 0; i < p->bench.n; i++) ok &= add(&w, p->bench.at[i]);
    ok &= add_shapes(p, &w, true) && (!p->json || add(&w, "--json"));
    if (!ok) return cli_misuse(NULL, "too many flags");
    w.at[w.n] = NULL;
    if (!cli_parse(&cli_bench, w.n, w.at, &o, &status)) return status;
    o.seconds = p->duration_s; /* trtexec runs for both: so long, and so many */
    o.warmup_s = p->warmup_s;
    o.least = (int)p->iterations;
    return p->json ? cli_bench_engine(&o) : cli_trt_measure(&o, &p->report, engine);
}

static int measure(const plan *p, const char *engine)
{
    words in = { 0 }; /* of what hone bench takes, what hone run takes as well */
    for (int i = 0; i + 1 < p->bench.n; i++)
        if (strcmp(p->bench.at[i], "--input") == 0) add2(&in, "--input", p->bench.at[i + 1]);
    const int status = bench(p, engine);
    return status || !p->dump_output ? status : call(&cli_run, engine, &in, NULL, NULL, p);
}

static int follow(plan *p)
{
    if (p->help_route) {
        const char *name = p->help_knob;
        words w = { 0 };
        bool ok = add2(&w, "knobs", "--json");
        if (name) ok &= add2(&w, "--", name);
        w.at[w.n] = NULL;
        return ok ? cli_knobs.run(w.n, w.at) : HONE_E_NOMEM;
    }
    if (p->load) {
        if (p->half) fprintf(stderr, "hone trtexec: ignoring 16 bits (%s): the engine is built already\n", p->half);
        return measure(p, p->load);
    }
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
    plan p = { .duration_s = 3, .warmup_s = 0.2, .iterations = 10, .report = { .percentile = { 90, 95, 99 }, .n_percentile = 3 } };
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
