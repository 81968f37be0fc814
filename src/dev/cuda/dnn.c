/* Convolutions and attention by cuDNN: the graph of a call's operations, the engine that computes it, a plan that runs. An engine that
 * the library compiles travels as the plan's text, compiled code and all: loading compiles nothing. */
#include "dev/cuda/dnn.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cuda_find.h"
#include "base/dl.h"
#include "core/core.h"
#include "dev/cuda/call.h"
#include "dev/cuda/dnn_int.h"

enum { LEAST_VERSION = 90000, MOST_CONFIGS = 64 };

dnn_library hn_dnn;

static struct {
    pthread_mutex_t busy; /* the handle serves one call at a time */
    size_t version_seen;
} state = { .busy = PTHREAD_MUTEX_INITIALIZER };

/* ---- opening ---- */
/* The library ends the process when it wants cuBLASLt, of the CUDA version that it was built for, and does not find it by that name. */
static hone_status hold_cublaslt(hn_diag *dg)
{
    const int major = (int)(hn_dnn.cudart() / 1000);
    char name[32], what[80];
    const char *const by_name[] = { name };
    hn_cuda_paths p;
    void *lib;

    if (major == 0) return HONE_OK; /* built for none: nothing to call */
    snprintf(name, sizeof(name), "libcublasLt.so.%d", major);
    snprintf(what, sizeof(what), "cuBLASLt %d, which the cuDNN that is here calls,", major);
    hn_cuda_find("libcublasLt", "HONE_CUBLASLT", major, major, &p);
    (void)hn_dl_open(what, p.path, HN_CUDA_N_PATH, &lib, NULL, NULL); /* one that is loaded is found by its name */
    return hn_dl_open(what, by_name, HN_COUNT(by_name), &lib, NULL, dg);
}

static void print_version(uint32_t v, char *dst, size_t n)
{
    if (v < LEAST_VERSION) snprintf(dst, n, "%u.%u.%u", v / 1000, v / 100 % 10, v % 100);
    else snprintf(dst, n, "%u.%u.%u", v / 10000, v / 100 % 100, v % 100);
}

hone_status hn_dnn_open(hn_diag *dg)
{
    static const hn_dl_fn fn[] = {
#define X(field, type, symbol, parameters) { symbol, (void (**)(void))(void *)&hn_dnn.field, false },
#include "dev/cuda/dnn.def"
#undef X
    };
    hn_cuda_paths p;
    char text[32];
    void *lib;

    hn_cuda_find("libcudnn", "HONE_CUDNN", 9, 9, &p);
    HN_TRY(hn_dl_open("cuDNN, NVIDIA's library of networks' layers,", p.path, HN_CUDA_N_PATH, &lib, NULL, dg));
    HN_TRY(hn_dl_bind("cuDNN", lib, fn, HN_COUNT(fn), dg));
    state.version_seen = hn_dnn.version();
    print_version((uint32_t)state.version_seen, text, sizeof(text));
    if (state.version_seen / 10000 != LEAST_VERSION / 10000)
        return HN_RAISE(dg, HONE_E_VERSION, "cuDNN %s is here, and 9.0 or newer of version 9 is needed", text);
    return hold_cublaslt(dg);
}

static hone_status load(hn_diag *dg)
{
    dnn_maker m = { .dg = dg };

    HN_TRY(hn_dnn_open(dg));
    return hn_dnn_failed(&m, hn_dnn.create(&hn_dnn.handle), "starting") ? m.status : HONE_OK;
}

static uint32_t version(void)
{
    return (uint32_t)state.version_seen;
}

/* ---- engines ---- */
/* An engine and its settings: what an engine file keeps of a plan. */
typedef struct algo {
    int64_t engine, n_choice;
    struct choice {
        int64_t knob, value;
    } choice[(HN_CALL_ALGO_BYTES - 2 * sizeof(int64_t)) / (2 * sizeof(int64_t))];
} algo;

_Static_assert(sizeof(algo) <= HN_CALL_ALGO_BYTES, "engine file");

static size_t algo_bytes(const algo *a)
{
    return offsetof(algo, choice) + (size_t)a->n_choice * sizeof(a->choice[0]);
}

static bool refuses(const hn_libcall *c, int note)
{
    const bool rounds = c->flags & HN_CALL_TF32, narrow = c->dtype != HN_F32;

    if (note == DNN_NOTE_MATRIX_UNITS || note == DNN_NOTE_NARROWER_INPUTS) return !narrow && !rounds;
    return note == DNN_NOTE_NARROWER_SUMS || note == DNN_NOTE_FFT || note == DNN_NOTE_NOT_REPEATABLE ||
           (note >= DNN_NOTE_WINOGRAD && note <= DNN_NOTE_WINOGRAD_LAST);
}

/* Notes that the library has on an engine, all of them; -1: it does not say, or has more. */
static int64_t notes_of(dnn_maker *m, dnn_desc *engine, int attribute, int type, int *ret)
{
    const int64_t n = hn_dnn_get(m, engine, attribute, type, DNN_NOTE_MOST, ret);
    return n <= DNN_NOTE_MOST ? n : -1;
}

/* The same bits every time, and sums in f32. */
static bool suits(dnn_maker *m, const hn_libcall *c, dnn_desc *engine)
{
    int note[DNN_NOTE_MOST];
    const int64_t n = notes_of(m, engine, DNN_ENGINE_NUMERIC_NOTES, DNN_OF_NUMERIC_NOTE, note);

    for (int64_t i = 0; i < n; i++)
        if (refuses(c, note[i])) return false;
    return n >= 0;
}

static bool compiles(dnn_maker *m, dnn_desc *engine)
{
    int note[DNN_NOTE_MOST];
    const int64_t n = notes_of(m, engine, DNN_ENGINE_BEHAVIOUR_NOTES, DNN_OF_BEHAVIOUR_NOTE, note);

    for (int64_t i = 0; i < n; i++)
        if (note[i] == DNN_NOTE_COMPILES) return true;
    return n < 0;
}

static dnn_desc *engine_of(dnn_maker *m, dnn_desc *config)
{
    dnn_desc *e = hn_dnn_new(m, DNN_ENGINE);

    return hn_dnn_get(m, config, DNN_CONFIG_ENGINE, DNN_OF_DESC, 1, &e) == 1 ? e : NULL;
}

/* A plan of the configuration, or of its own text; NULL: the library makes none, or it would take too much memory. */
static dnn_desc *plan_of(dnn_maker *m, const hn_libcall *c, dnn_desc *config, const hn_str *text)
{
    int64_t bytes = 0;
    dnn_desc *p = hn_dnn_new(m, DNN_PLAN);

    hn_dnn_set(m, p, DNN_PLAN_HANDLE, DNN_OF_HANDLE, 1, &hn_dnn.handle);
    if (text) hn_dnn_set(m, p, DNN_PLAN_TEXT, DNN_OF_CHAR, (int64_t)text->n, text->s);
    else hn_dnn_set_desc(m, p, DNN_PLAN_CONFIG, config);
    hn_dnn_finish(m, p, "making a plan");
    const bool known = hn_dnn_get(m, p, DNN_PLAN_WORKSPACE, DNN_OF_INT64, 1, &bytes) == 1;
    return known && bytes <= c->workspace_bytes ? p : NULL;
}

/* ---- proposals ---- */
typedef struct search {
    dnn_maker *m;
    const hn_libcall *c;
    dnn_desc *graph;
    uint32_t to_go; /* proposals that suit before the one that is wanted */
    int n_seen;
    bool compiled; /* the engine's code, not there before */
    dnn_desc *engine, *config, *plan; /* found */
} search;

static bool accepts(search *s, dnn_desc *config)
{
    dnn_maker *m = s->m, quiet = { .n = 0 };

    s->engine = engine_of(m, config);
    if (!s->engine || !suits(m, s->c, s->engine)) return false;
    s->compiled = compiles(m, s->engine);
    if (s->compiled && s->to_go > 0) { /* taken to serve: finding out takes a part of a second */
        s->to_go--;
        return false;
    }
    s->plan = plan_of(&quiet, s->c, config, /* text= */ NULL);
    if (!s->plan || s->to_go > 0) {
        s->to_go -= s->plan != NULL;
        s->plan = NULL;
        hn_dnn_drop_all(&quiet);
        return false;
    }
    s->config = config;
    for (int i = 0; i < quiet.n && m->n < HN_DNN_MOST; i++) m->at[m->n++] = quiet.at[i];
    return true;
}

/* Configurations by one of the library's heuristics, best first. A graph that it has nothing for yields none. */
static bool search_by(search *s, int mode)
{
    dnn_maker *m = s->m;
    dnn_desc *config[MOST_CONFIGS], *h = hn_dnn_new(m, DNN_HEURISTICS);

    hn_dnn_set_desc(m, h, DNN_HEURISTICS_GRAPH, s->graph);
    hn_dnn_set_int(m, h, DNN_HEURISTICS_MODE, DNN_OF_HEURISTICS_MODE, mode);
    hn_dnn_finish(m, h, "asking for engines");
    int64_t want = hn_dnn_get(m, h, DNN_HEURISTICS_CONFIGS, DNN_OF_DESC, 0, NULL);
    want = HN_MIN(want, MOST_CONFIGS);
    for (int64_t i = 0; i < want; i++) config[i] = hn_dnn_new(m, DNN_CONFIG);
    if (want <= 0 || m->status != HONE_OK) return false;
    const int64_t n = hn_dnn_get(m, h, DNN_HEURISTICS_CONFIGS, DNN_OF_DESC, want, config); /* may be more: all that there are */
    for (int64_t i = 0; i < n && i < want && m->status == HONE_OK; i++, s->n_seen++)
        if (accepts(s, config[i])) return true;
    return false;
}

static dnn_desc *propose(dnn_maker *m, const hn_libcall *c, dnn_desc *graph, uint32_t rank, search *ret)
{
    static const int mode[] = { DNN_BY_TREE, DNN_BY_FALLBACK };

    *ret = (search){ .m = m, .c = c, .graph = graph, .to_go = rank };
    for (int i = 0; i < HN_COUNT(mode) && m->status == HONE_OK; i++)
        if (search_by(ret, mode[i])) return ret->plan;
    if (m->status == HONE_OK)
        m->status = HN_RAISE(m->dg, HONE_E_UNSUPPORTED, "cuDNN has no such engine for this (%d proposed)", ret->n_seen);
    return NULL;
}

static bool read_choices(dnn_maker *m, dnn_desc *config, algo *ret)
{
    dnn_desc *all[DNN_KNOB_MOST];

    for (int i = 0; i < DNN_KNOB_MOST; i++) all[i] = hn_dnn_new(m, DNN_CHOICE);
    const int64_t n = hn_dnn_get(m, config, DNN_CONFIG_CHOICES, DNN_OF_DESC, DNN_KNOB_MOST, all);
    if (n < 0 || n > HN_COUNT(ret->choice)) return false;
    for (ret->n_choice = 0; ret->n_choice < n; ret->n_choice++) {
        struct choice *x = &ret->choice[ret->n_choice];
        int knob = 0;
        if (hn_dnn_get(m, all[ret->n_choice], DNN_CHOICE_KNOB, DNN_OF_KNOB, 1, &knob) != 1) return false;
        if (hn_dnn_get(m, all[ret->n_choice], DNN_CHOICE_VALUE, DNN_OF_INT64, 1, &x->value) != 1) return false;
        x->knob = knob;
    }
    return m->status == HONE_OK;
}

/* Add the plan's text. */
static hone_status write_plan(dnn_maker *m, dnn_desc *plan, hn_str *ret)
{
    const int64_t n = hn_dnn_get(m, plan, DNN_PLAN_TEXT, DNN_OF_CHAR, 0, NULL);
    char *text = n > 0 && n < INT32_MAX ? malloc((size_t)n) : NULL;

    if (text && hn_dnn_get(m, plan, DNN_PLAN_TEXT, DNN_OF_CHAR, n, text) == n) hn_str_add_n(ret, text, (size_t)n);
    else m->status = HN_RAISE(m->dg, HONE_E_UNSUPPORTED, "cuDNN does not say what it compiled");
    free(text);
    return m->status;
}

/* ---- an algorithm that stands in an engine file ---- */
static hone_status check_algo(const hn_libcall *c, hn_diag *dg)
{
    algo a;

    if (c->n_algo < offsetof(algo, choice) || c->n_algo > sizeof(a)) return HN_RAISE(dg, HONE_E_FORMAT, "an algorithm of %u bytes", c->n_algo);
    memcpy(&a, c->algo, c->n_algo);
    if (a.n_choice >= 0 && a.n_choice <= HN_COUNT(a.choice) && algo_bytes(&a) == c->n_algo) return HONE_OK;
    return HN_RAISE(dg, HONE_E_FORMAT, "an algorithm of %u bytes", c->n_algo);
}

static dnn_desc *choice_of(dnn_maker *m, const struct choice *x)
{
    dnn_desc *d = hn_dnn_new(m, DNN_CHOICE);

    hn_dnn_set_int(m, d, DNN_CHOICE_KNOB, DNN_OF_KNOB, (int)x->knob);
    hn_dnn_set(m, d, DNN_CHOICE_VALUE, DNN_OF_INT64, 1, &x->value);
    return hn_dnn_finish(m, d, "describing an engine's settings");
}

/* The engine that the call's algorithm names, of this library; NULL: it has none such. */
static dnn_desc *engine_again(dnn_maker *m, const hn_libcall *c, dnn_desc *graph)
{
    algo a;
    dnn_desc *e = hn_dnn_new(m, DNN_ENGINE);

    memcpy(&a, c->algo, c->n_algo);
    hn_dnn_set_desc(m, e, DNN_ENGINE_GRAPH, graph);
    hn_dnn_set(m, e, DNN_ENGINE_INDEX, DNN_OF_INT64, 1, &a.engine);
    return hn_dnn_finish(m, e, "describing an engine");
}

/* The plan that the call's algorithm describes; NULL: this library or this GPU does not take it. */
static dnn_desc *plan_again(dnn_maker *m, const hn_libcall *c, dnn_desc *e)
{
    algo a = { .engine = 0 };
    dnn_desc *choice[HN_COUNT(a.choice)], *config;

    memcpy(&a, c->algo, c->n_algo);
    for (int i = 0; i < a.n_choice; i++) choice[i] = choice_of(m, &a.choice[i]);
    config = hn_dnn_new(m, DNN_CONFIG);
    hn_dnn_set_desc(m, config, DNN_CONFIG_ENGINE, e);
    if (a.n_choice) hn_dnn_set(m, config, DNN_CONFIG_CHOICES, DNN_OF_DESC, a.n_choice, choice);
    hn_dnn_finish(m, config, "describing an engine's settings");
    return plan_of(m, c, config, /* text= */ NULL);
}

/* Engines and settings keep their numbers in most versions: the same kernel in another one, rather than whatever is proposed at its place.
 * An engine that has come to compute otherwise is none. */
static bool keeps_algorithm(dnn_maker *m, hn_libcall *c, hn_str *text)
{
    if (!c->n_algo || c->version == version() || check_algo(c, NULL) != HONE_OK) return false;
    dnn_desc *graph = hn_dnn_graph(m, c), *e = graph ? engine_again(m, c, graph) : NULL, *plan;

    if (!e || !suits(m, c, e)) return false;
    const bool compiled = compiles(m, e);
    plan = plan_again(m, c, e);
    if (!plan || (compiled && text && write_plan(m, plan, text) != HONE_OK)) return false;
    c->version = version();
    return true;
}

static hone_status choose_locked(dnn_maker *m, hn_libcall *c, hn_str *plan)
{
    search found;
    algo a = { .engine = -1 };
    dnn_maker quiet = { .n = 0 };

    const bool kept = keeps_algorithm(&quiet, c, plan);
    hn_dnn_drop_all(&quiet);
    if (kept) return HONE_OK;
    dnn_desc *graph = hn_dnn_graph(m, c);
    if (!graph || !propose(m, c, graph, c->rank, &found)) return m->status;
    if (hn_dnn_get(m, found.engine, DNN_ENGINE_INDEX, DNN_OF_INT64, 1, &a.engine) != 1 || !read_choices(m, found.config, &a))
        return m->status ? m->status : HN_RAISE(m->dg, HONE_E_UNSUPPORTED, "cuDNN does not say what it proposes");
    if (found.compiled && plan) HN_TRY(write_plan(m, found.plan, plan));
    memset(c->algo, 0, sizeof(c->algo));
    memcpy(c->algo, &a, algo_bytes(&a));
    c->n_algo = (uint32_t)algo_bytes(&a);
    c->version = version();
    return HONE_OK;
}

static hone_status check_call(const hn_libcall *c, hn_diag *dg)
{
    const uint32_t n_extra = (c->flags & HN_CALL_BIAS ? 1 : 0) + (c->flags & HN_CALL_ADD ? 1 : 0);
    const bool attends = c->kind == HN_CALL_ATTENTION;

    if (c->kind != HN_CALL_CONV && !attends) return HN_RAISE(dg, HONE_E_FORMAT, "cuDNN is asked for convolutions and attention alone");
    return c->n_buf == (attends ? 5 : 4 + n_extra) ? HONE_OK : HN_RAISE(dg, HONE_E_FORMAT, "damaged library call");
}

static hone_status choose(cuda_device *d, hn_libcall *c, hn_str *plan, hn_diag *dg)
{
    dnn_maker m = { .dg = dg };

    (void)d;
    HN_TRY(check_call(c, dg));
    pthread_mutex_lock(&state.busy);
    const hone_status s = choose_locked(&m, c, plan);
    hn_dnn_drop_all(&m);
    pthread_mutex_unlock(&state.busy);
    return s;
}

/* ---- a call made ready ---- */
typedef struct ready {
    dnn_maker m;
    dnn_desc *plan;
} ready;

static hone_status refuse(hn_diag *dg)
{
    hn_hint(dg, "Build it anew here, or without -core:deterministic=1.");
    return HN_RAISE(dg, HONE_E_DEVICE, "the engine keeps to an algorithm of cuDNN that this GPU does not take");
}

static hone_status make_locked(ready *x, const hn_libcall *c, const hn_str *plan, hn_diag *dg)
{
    search found;
    dnn_desc *graph, *e;

    if (plan->n) x->plan = plan_of(&x->m, c, NULL, plan);
    if (x->plan) return HONE_OK;
    hn_dnn_drop_all(&x->m);
    graph = hn_dnn_graph(&x->m, c);
    e = graph ? engine_again(&x->m, c, graph) : NULL;
    if (e) x->plan = plan_again(&x->m, c, e);
    if (x->plan) return HONE_OK;
    if (c->flags & HN_CALL_FIXED) return refuse(dg);
    hn_dnn_drop_all(&x->m); /* another GPU: its own best one */
    x->m.dg = dg;
    graph = hn_dnn_graph(&x->m, c);
    if (graph) x->plan = propose(&x->m, c, graph, 0, &found);
    return x->m.status;
}

static void drop_locked(ready *x)
{
    hn_dnn_drop_all(&x->m);
    free(x);
}

static hone_status make(cuda_device *d, const hn_libcall *c, const hn_str *plan, void **ret, hn_diag *dg)
{
    (void)d;
    HN_TRY(check_call(c, dg));
    HN_TRY(check_algo(c, dg));
    ready *x = calloc(1, sizeof(*x));
    if (!x) return HN_NOMEM(dg);
    pthread_mutex_lock(&state.busy);
    const hone_status s = make_locked(x, c, plan, dg);
    if (s == HONE_OK) x->m.dg = NULL, *ret = x;
    else drop_locked(x);
    pthread_mutex_unlock(&state.busy);
    return s;
}

static void drop(cuda_device *d, void *x)
{
    (void)d;
    pthread_mutex_lock(&state.busy);
    drop_locked(x);
    pthread_mutex_unlock(&state.busy);
}

/* ---- runs ---- */
static hone_status run_locked(const ready *x, const hn_libcall *c, void *const *buf, cu_stream *s, hn_diag *dg)
{
    const uintptr_t low = HN_CALL_WORKSPACE_ALIGN - 1;
    void *const workspace = (void *)(((uintptr_t)buf[c->n_buf - 1] + low) & ~low);
    dnn_number number[HN_DNN_N_NUMBER];
    void *at[HN_CALL_MAX_BUF + HN_COUNT(number)];
    int64_t id[HN_CALL_MAX_BUF + HN_COUNT(number)], n = 0;
    dnn_maker m = { .dg = dg, .means = HONE_E_DEVICE };

    for (; n < c->n_buf - 1; n++) id[n] = HN_DNN_ID + n, at[n] = buf[n];
    const int n_number = c->kind == HN_CALL_ATTENTION ? hn_dnn_attention_numbers(c, number) : 0;
    for (int i = 0; i < n_number; i++, n++) id[n] = HN_DNN_NUMBER_ID + i, at[n] = &number[i];
    dnn_desc *pack = hn_dnn_new(&m, DNN_PACK);
    hn_dnn_set(&m, pack, DNN_PACK_IDS, DNN_OF_INT64, n, id);
    hn_dnn_set(&m, pack, DNN_PACK_POINTERS, DNN_OF_POINTER, n, at);
    hn_dnn_set(&m, pack, DNN_PACK_WORKSPACE, DNN_OF_POINTER, 1, &workspace);
    hn_dnn_finish(&m, pack, "naming operands");
    if (m.status == HONE_OK) hn_dnn_failed(&m, hn_dnn.set_stream(hn_dnn.handle, s), "taking a stream");
    if (m.status == HONE_OK) hn_dnn_failed(&m, hn_dnn.execute(hn_dnn.handle, x->plan, pack), "computing");
    const hone_status r = m.status;
    hn_dnn_drop_all(&m);
    return r;
}

static hone_status run(cuda_device *d, void *x, const hn_libcall *c, void *const *buf, cu_stream *s, hn_diag *dg)
{
    (void)d;
    pthread_mutex_lock(&state.busy);
    const hone_status r = run_locked(x, c, buf, s, dg);
    pthread_mutex_unlock(&state.busy);
    return r;
}

const cuda_library hn_cuda_dnn = {
    .name = "cuDNN",
    .load = load,
    .version = version,
    .print_version = print_version,
    .choose = choose,
    .make = make,
    .drop = drop,
    .run = run,
};
