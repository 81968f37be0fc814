/* Tuning through the public API. */
#include "api/api_int.h"
#include "tune/tune.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void put_cost(hn_json *j, const hn_trial_cost *c)
{
    const struct {
        const char *key;
        double value;
    } cost[] = { { "build_s", c->build_s },   { "judge_s", c->judge_s },     { "race_s", c->race_s },
                 { "compile_s", c->compile_s }, { "timing_s", c->timing_s }, { "library_s", c->library_s },
                 { "write_s", c->write_s }, { "kernels_compiled", c->n_compiled }, { "timings_measured", c->n_timed }, { "rounds", c->rounds } };
    hn_json_key(j, "cost");
    hn_json_object(j);
    for (int i = 0; i < HN_COUNT(cost); i++) {
        hn_json_put_f64(j, cost[i].key, cost[i].value);
    }
    hn_json_object_end(j);
}

static void put_trial(hn_json *j, const hn_trial *t)
{
    hn_json_object(j);
    hn_json_put_str(j, "route", t->route);
    hn_json_put_str(j, "outcome", hn_outcome_name(t->outcome));
    hn_json_put_str(j, "reason", t->reason);
    hn_json_put_str(j, "payload", t->payload);
    hn_json_put_f64(j, "ratio", t->ratio);
    hn_json_put_f64(j, "lo", t->lo);
    hn_json_put_f64(j, "hi", t->hi);
    hn_json_put_f64(j, "err", t->err);
    hn_json_put_str(j, "knobs_read", t->knobs);
    hn_json_key(j, "clock_mhz");
    if (t->clock_mhz) hn_json_i64(j, t->clock_mhz);
    else hn_json_null(j);
    put_cost(j, &t->cost);
    hn_json_object_end(j);
}

static void put_effect(hn_json *j, const hn_effect *e)
{
    hn_json_object(j);
    hn_json_put_str(j, "setting", e->setting);
    hn_json_put_f64(j, "gain", e->gain);
    hn_json_put_f64(j, "sd", e->sd);
    hn_json_put_bool(j, "taken", e->taken);
    hn_json_object_end(j);
}

static void put_result(const hn_tune_result *r, hn_str *out)
{
    hn_json j;
    hn_json_init(&j, out, false);
    hn_json_object(&j);
    hn_json_put_str(&j, "route", r->route);
    hn_json_put_f64(&j, "speedup", r->speedup);
    hn_json_put_f64(&j, "speedup_lo", r->lo);
    hn_json_put_f64(&j, "speedup_hi", r->hi);
    hn_json_put_f64(&j, "confidence", r->confidence);
    hn_json_put_bool(&j, "confirmed", r->confirmed);
    hn_json_put_bool(&j, "stopped", r->stopped);
    hn_json_put_str(&j, "note", r->note);
    hn_json_put_f64(&j, "err", r->err);
    hn_json_put_f64(&j, "bound", r->bound);
    hn_json_put_i64(&j, "trials", r->trials.n);
    hn_json_put_i64(&j, "restored", r->n_restored);
    hn_json_put_f64(&j, "start_s", r->start_s);
    hn_json_put_f64(&j, "elapsed_s", r->elapsed_s);
    hn_json_key(&j, "effects");
    hn_json_array(&j);
    for (int i = 0; i < r->effects.n; i++) put_effect(&j, &r->effects.at[i]);
    hn_json_array_end(&j);
    hn_json_key(&j, "trial_list");
    hn_json_array(&j);
    for (int i = 0; i < r->trials.n; i++) put_trial(&j, &r->trials.at[i]);
    hn_json_array_end(&j);
    hn_json_object_end(&j);
}

/* What a trial's `hone build` is told beside its route. */
static void add_dims(hn_str *s, int rank, const int64_t *dim)
{
    for (int i = 0; i < rank; i++) hn_str_addf(s, "%s%lld", i ? "x" : "", (long long)dim[i]);
}

static const char **build_args(hn_arena *a, const hone_model_options *m, const hone_build_options *b)
{
    HN_VEC(const char *) v = { 0 };
    for (int i = 0; m && i < m->n_profile; i++) {
        const hone_profile *p = &m->profile[i];
        hn_str s = { 0 };
        hn_str_addf(&s, "%s=", p->input);
        add_dims(&s, p->rank, p->min);
        hn_str_add(&s, ":");
        add_dims(&s, p->rank, p->opt);
        hn_str_add(&s, ":");
        add_dims(&s, p->rank, p->max);
        hn_vec_push(a, &v, "--shape");
        hn_vec_push(a, &v, hn_arena_strdup(a, hn_str_get(&s)));
        hn_str_done(&s);
    }
    const struct {
        const char *flag, *value;
    } words[] = { { "--threads", b->threads > 0 ? hn_arena_printf(a, "%d", b->threads) : NULL },
                  { "--opt-level", b->opt_level >= 0 ? hn_arena_printf(a, "%d", b->opt_level) : NULL },
                  { "--workspace", b->workspace_bytes > 0 ? hn_arena_printf(a, "%lld", (long long)(b->workspace_bytes >> 20)) : NULL },
                  { "--target", b->target }, { "--timing-cache", b->timing_cache }, { "--cache-dir", b->cache_dir } };
    for (int i = 0; i < HN_COUNT(words); i++) {
        if (!words[i].value) continue;
        hn_vec_push(a, &v, words[i].flag);
        hn_vec_push(a, &v, words[i].value);
    }
    if (b->frozen) hn_vec_push(a, &v, "--frozen");
    hn_vec_push(a, &v, (const char *)NULL);
    return v.at;
}

static hone_status raise_error(hone_error *err, hn_diag *dg)
{
    const hone_status s = HN_RAISE(dg, hone_error_status(err), "%s", hone_error_message(err));
    hone_error_free(err);
    return s;
}

/* One evaluation of the model, in a thread of its own: the default engine is built meanwhile. */
typedef struct evaluation {
    hone_model *m; /* its own where two run: an evaluation writes to its graph */
    hn_eval_mode mode;
    const hn_tensor *in;
    hn_tensor *out;
    pthread_t thread;
    bool running;
    atomic_bool stop, over;
    atomic_int done, total;
    hone_status status;
    hn_diag why;
} evaluation;

typedef struct data {
    hone_tensor in[256]; /* the caller's where it gave them */
    hn_tensor x[256], *want, *own;
    int n_in, n_out;
    evaluation f64, rounded;
    hone_model *copy; /* for `rounded` */
    hn_api_progress *progress;
} data;

static bool eval_step(void *user, int done, int total)
{
    evaluation *e = user;
    atomic_store(&e->done, done);
    atomic_store(&e->total, total);
    return !atomic_load(&e->stop);
}

static void *evaluate(void *user)
{
    evaluation *e = user;
    const hn_eval_opts o = { .mode = e->mode, .progress = eval_step, .user = e };
    e->status = hn_eval_run(e->m->g, &o, e->in, e->out, &e->why);
    atomic_store(&e->over, true);
    return NULL;
}

static hone_status start_evaluation(evaluation *e, hone_model *m, hn_eval_mode mode, const data *d, hn_diag *dg)
{
    e->m = m;
    e->mode = mode;
    e->in = d->x;
    e->out = calloc((size_t)d->n_out + 1, sizeof *e->out);
    if (!e->out) return HN_NOMEM(dg);
    if (pthread_create(&e->thread, NULL, evaluate, e)) return HN_RAISE(dg, HONE_E_NOMEM, "no thread to evaluate the model in");
    e->running = true;
    return HONE_OK;
}

static void end_evaluation(evaluation *e)
{
    if (e->running) pthread_join(e->thread, NULL);
    e->running = false;
}

/* Both runs are needed whatever the budget says: without them no engine can be judged. */
static hone_status wait_for(evaluation *e, hn_api_progress *progress, hn_diag *dg)
{
    enum { PULSE_NS = 20000000 };
    while (e->running && !atomic_load(&e->over)) {
        hn_sleep_ns(PULSE_NS);
        if (!hn_api_step(progress, "evaluate", atomic_load(&e->done), atomic_load(&e->total)))
            return HN_RAISE(dg, HONE_E_CANCELLED, "stopped");
    }
    end_evaluation(e);
    if (e->status != HONE_OK) *dg = e->why;
    return e->status;
}

static bool is_given(const hone_tune_options *o, int output)
{
    return o->reference && o->reference[output].data;
}

/* A reference of the caller's in an output's place. */
static hone_status take_reference(const hone_model *m, const hone_tensor *given, int i, data *d, hn_diag *dg)
{
    const hn_tdesc *want = &m->g->out[i].value->type;
    const char *name = m->g->out_name[i];
    hn_tensor x;
    HN_TRY(hn_api_tensor_check(given, "a reference", dg));
    hn_api_tensor(given, &x);
    if (x.type.rank != want->rank) return HN_RAISE(dg, HONE_E_SHAPE, "the reference of output \"%s\" has rank %d, the output %d", name,
                                                   x.type.rank, want->rank);
    for (int k = 0; k < want->rank; k++)
        if (hn_dim_is_const(want->dim[k]) && want->dim[k] != x.type.dim[k])
            return HN_RAISE(dg, HONE_E_SHAPE, "axis %d of the reference of output \"%s\" is %lld, of the output %lld", k, name,
                            (long long)x.type.dim[k], (long long)want->dim[k]);
    if (hn_dtype_is_float(x.type.dtype) != hn_dtype_is_float(want->dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "the reference of output \"%s\" is %s, the output %s", name, hn_dtype_name(x.type.dtype),
                        hn_dtype_name(want->dtype));
    d->want[i] = x;
    return HONE_OK;
}

/* What the caller did not give is evaluated, in double and in the model's own types. */
static hone_status start_references(hone_model *m, const hone_model_options *mo, const hone_tune_options *opts, data *d, hn_diag *dg)
{
    hone_error *err = NULL;
    int n_given = 0;
    for (int i = 0; i < d->n_out; i++) {
        n_given += is_given(opts, i);
        if (is_given(opts, i)) HN_TRY(take_reference(m, &opts->reference[i], i, d, dg));
    }
    if (n_given == d->n_out) return HONE_OK;
    if (hone_model_load(m->path, mo, &d->copy, &err) != HONE_OK) return raise_error(err, dg);
    HN_TRY(start_evaluation(&d->f64, m, HN_EVAL_F64, d, dg));
    return start_evaluation(&d->rounded, d->copy, HN_EVAL_OWN, d, dg);
}

static bool references_are_there(void *user)
{
    data *d = user;
    return (!d->f64.running || atomic_load(&d->f64.over)) && (!d->rounded.running || atomic_load(&d->rounded.over));
}

/* The tuner asks for them when the default engine stands. */
static hone_status finish_references(void *user, hn_diag *dg)
{
    data *d = user;
    HN_TRY(wait_for(&d->f64, d->progress, dg));
    HN_TRY(wait_for(&d->rounded, d->progress, dg));
    for (int i = 0; d->f64.out && i < d->n_out; i++) {
        if (d->want[i].data) continue; /* somebody's own */
        d->want[i] = d->f64.out[i];
        d->own[i] = d->rounded.out[i];
        d->f64.out[i] = d->rounded.out[i] = (hn_tensor){ 0 };
    }
    return HONE_OK;
}

static hone_status gather_data(hone_model *m, const hone_model_options *mo, const hone_tune_options *o, data *d, hn_diag *dg)
{
    hone_error *err = NULL;
    d->n_in = m->g->n_in;
    d->n_out = m->g->n_out;
    if (d->n_in > 256) return HN_RAISE(dg, HONE_E_LIMIT, "the model has more than 256 inputs");
    d->want = calloc((size_t)d->n_out + 1, sizeof *d->want);
    d->own = calloc((size_t)d->n_out + 1, sizeof *d->own);
    if (!d->want || !d->own) return HN_NOMEM(dg);
    for (int i = 0; o->input && i < d->n_in; i++) d->in[i] = o->input[i];
    if (hone_model_make_inputs(m, o->seed, d->in, NULL, &err) != HONE_OK) return raise_error(err, dg);
    for (int i = 0; i < d->n_in; i++) hn_api_tensor(&d->in[i], &d->x[i]);
    return start_references(m, mo, o, d, dg);
}

static void drop_evaluation(evaluation *e, int n_out)
{
    end_evaluation(e);
    for (int i = 0; e->out && i < n_out; i++) hn_tensor_done(&e->out[i]);
    free(e->out);
}

static void free_data(data *d, const hone_tune_options *o)
{
    atomic_store(&d->f64.stop, true);
    atomic_store(&d->rounded.stop, true);
    drop_evaluation(&d->f64, d->n_out);
    drop_evaluation(&d->rounded, d->n_out);
    hone_model_free(d->copy);
    for (int i = 0; i < d->n_in && i < 256; i++)
        if (!o->input || !o->input[i].data) hone_tensor_free(&d->in[i]);
    for (int i = 0; i < d->n_out; i++) {
        if (d->want) hn_tensor_done(&d->want[i]);
        if (d->own) hn_tensor_done(&d->own[i]);
    }
    free(d->want);
    free(d->own);
}

static hone_status add_bound(hn_arena *a, hn_tune_opts *t, hn_bound *list, const char *metric, const char *output, double limit,
                             hn_diag *dg)
{
    hn_bound b = { .output = output ? hn_arena_strdup(a, output) : NULL, .limit = limit };
    if (!hn_norm_find(metric, &b.norm)) {
        hn_hint(dg, "Metrics: rel_l2, l0, l1, l2, linf (at most), cosine, snr (at least).");
        return HN_RAISE(dg, HONE_E_INVALID, "there is no metric \"%s\"", metric);
    }
    if (isnan(limit)) return HN_RAISE(dg, HONE_E_INVALID, "the bound on %s is no number", metric);
    list[t->n_bound++] = b;
    return HONE_OK;
}

static hone_status take_bounds(hn_arena *a, const hone_tune_options *o, hn_tune_opts *t, hn_diag *dg)
{
    const int n = HN_MAX(o->n_accuracy, 0);
    hn_bound *list = HN_NEW_N(a, hn_bound, n + 1);
    if (!list) return HN_NOMEM(dg);
    if (o->threshold != 0) HN_TRY(add_bound(a, t, list, o->metric ? o->metric : "rel_l2", NULL, o->threshold, dg));
    for (int i = 0; i < n; i++)
        HN_TRY(add_bound(a, t, list, o->accuracy[i].metric, o->accuracy[i].output, o->accuracy[i].bound, dg));
    t->bound = list;
    t->judge = o->judge;
    t->judge_limit = o->judge_bound;
    return HONE_OK;
}

/* The compiler's own bytes: another build of it may make other engines. "" when they cannot be read. */
static const char *tools_digest(hn_arena *a)
{
    static const char here;
    char text[HN_DIGEST_TEXT];
    Dl_info info;
    hn_bytes b;
    if (!dladdr(&here, &info) || !info.dli_fname || hn_map_file(info.dli_fname, &b, NULL) != HONE_OK) return "";
    hn_digest_text(hn_hash128(b.at, b.n), text);
    hn_unmap(&b);
    return hn_arena_strdup(a, text);
}

static hone_status tune(hn_arena *a, hone_model *m, const hone_model_options *mo, const hone_tune_options *o,
                        const char *engine_path, hone_report **ret, hn_diag *dg)
{
    static const hone_build_options dflt = HONE_BUILD_OPTIONS_INIT;
    data *d = HN_NEW(a, data);
    hone_build_options bo;
    hn_build_report report = { 0 };
    hn_tune_result r;
    hn_api_build b;
    const int64_t start = hn_now_ns();
    if (!d) return HN_NOMEM(dg);
    HN_TRY(hn_api_options(&bo, &dflt, sizeof bo, o->build, dg));
    hn_api_progress progress = { bo.progress, bo.progress_user, start };
    HN_TRY(hn_api_build_options(a, &bo, &b, dg)); /* a bad route or target is said before anything is built */
    b.o.progress_user = &progress;
    hn_tune_opts t = {
        .model_path = m->path, .model_digest = m->digest, .base_route = bo.route, .expression = o->expression,
        .strategy = o->strategy, .build_arg = build_args(a, mo, &bo), .threads = b.o.threads, .budget_s = o->budget_s,
        .max_trials = o->max_trials, .resume = o->resume, .trial_timeout_s = o->trial_timeout_s,
        .trial_memory_bytes = o->trial_memory_bytes, .seed = o->seed, .dry_run = o->dry_run, .progress = hn_api_step,
        .progress_user = &progress, .start_ns = start, .standing = b.target.arch == HN_ARCH_SM, .tools = tools_digest(a) };
    t.store = o->store ? o->store : b.o.cache_dir ? hn_arena_printf(a, "%s/trials.db", b.o.cache_dir) : NULL;
    if (t.store && !*t.store) t.store = NULL;
    HN_TRY(take_bounds(a, o, &t, dg));
    hone_status s = HONE_OK;
    if (o->dry_run && !o->expression) s = hn_api_trace(a, m, &b, &report, dg);
    d->progress = &progress;
    t.references = finish_references;
    t.references_ready = references_are_there;
    t.references_user = d;
    if (!o->dry_run) s = gather_data(m, mo, o, d, dg);
    if (s == HONE_OK)
        s = hn_tune(a, m->g, d->x, d->want, d->own, &t, report.read, report.n_read, engine_path, &r, dg);
    free_data(d, o);
    HN_TRY(s);
    hn_str json = { 0 };
    put_result(&r, &json);
    s = hn_api_report(&json, ret, dg);
    hn_str_done(&json);
    return s;
}

static hone_status check_options(const hone_model_options *m, const hone_tune_options *o, const char *engine_path, hn_diag *dg)
{
    static const hone_model_options dflt = HONE_MODEL_OPTIONS_INIT;
    hone_model_options mo;
    HN_TRY(hn_api_options(&mo, &dflt, sizeof mo, m, dg));
    if (mo.n_value > 0)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "tuning takes no values of inputs: its trials read the model anew");
    if (o->metric && o->threshold == 0) {
        hn_hint(dg, "Give the threshold that it must keep.");
        return HN_RAISE(dg, HONE_E_INVALID, "a metric without a threshold bounds nothing");
    }
    if (!engine_path && !o->dry_run) return HN_RAISE(dg, HONE_E_INVALID, "a path for the engine is needed");
    return HONE_OK;
}

hone_status hone_tune(const char *model_path, const hone_model_options *model_opts, const hone_tune_options *given,
                      const char *engine_path, hone_report **ret_report, hone_error **err)
{
    static const hone_tune_options dflt = HONE_TUNE_OPTIONS_INIT;
    hone_tune_options opts;
    hn_diag dg = { 0 };
    hone_model *m = NULL;
    if (hn_api_options(&opts, &dflt, sizeof opts, given, &dg) || check_options(model_opts, &opts, engine_path, &dg))
        return hn_api_fail(err, &dg, NULL);
    const hone_status loaded = hone_model_load(model_path, model_opts, &m, err);
    if (loaded != HONE_OK) return loaded;
    hn_arena *a = hn_arena_create();
    const hone_status s = a ? tune(a, m, model_opts, &opts, engine_path, ret_report, &dg) : HN_NOMEM(&dg);
    hone_model_free(m);
    if (a) hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

/* ---- the trial store as text ---- */
hone_status hone_trials_export(const char *store, char **ret_lines, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_str s = { 0 };
    hone_status r = store && ret_lines ? hn_tune_store_export(store, &s, &dg)
                                       : HN_RAISE(&dg, HONE_E_INVALID, "a store and a place for its lines are needed");
    char *text = r == HONE_OK ? hn_api_string(&s) : NULL;
    if (r == HONE_OK && !text) r = HN_NOMEM(&dg);
    hn_str_done(&s);
    if (r != HONE_OK) return hn_api_fail(err, &dg, NULL);
    *ret_lines = text;
    return HONE_OK;
}

hone_status hone_trials_import(const char *store, const char *lines, int *ret_added, hone_error **err)
{
    hn_diag dg = { 0 };
    int added = 0;
    const hone_status r = store && lines ? hn_tune_store_import(store, lines, &added, &dg)
                                         : HN_RAISE(&dg, HONE_E_INVALID, "a store and lines are needed");
    if (r != HONE_OK) return hn_api_fail(err, &dg, NULL);
    if (ret_added) *ret_added = added;
    return HONE_OK;
}
