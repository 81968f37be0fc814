/* Tuning through the public API. */
#include "api/api_int.h"
#include "tune/tune.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static void put_trial(hn_json *j, const hn_trial *t)
{
    hn_json_object(j);
    hn_json_key(j, "route");
    hn_json_str(j, t->route);
    hn_json_key(j, "outcome");
    hn_json_str(j, hn_outcome_name(t->outcome));
    hn_json_key(j, "reason");
    hn_json_str(j, t->reason);
    hn_json_key(j, "payload");
    hn_json_str(j, t->payload);
    hn_json_key(j, "ratio");
    hn_json_f64(j, t->ratio);
    hn_json_key(j, "lo");
    hn_json_f64(j, t->lo);
    hn_json_key(j, "hi");
    hn_json_f64(j, t->hi);
    hn_json_key(j, "err");
    hn_json_f64(j, t->err);
    hn_json_object_end(j);
}

static void put_result(const hn_tune_result *r, hn_str *out)
{
    hn_json j;
    hn_json_init(&j, out, false);
    hn_json_object(&j);
    hn_json_key(&j, "route");
    hn_json_str(&j, r->route);
    hn_json_key(&j, "speedup");
    hn_json_f64(&j, r->speedup);
    hn_json_key(&j, "speedup_lo");
    hn_json_f64(&j, r->lo);
    hn_json_key(&j, "speedup_hi");
    hn_json_f64(&j, r->hi);
    hn_json_key(&j, "err");
    hn_json_f64(&j, r->err);
    hn_json_key(&j, "bound");
    hn_json_f64(&j, r->bound);
    hn_json_key(&j, "trials");
    hn_json_i64(&j, r->trials.n);
    hn_json_key(&j, "restored");
    hn_json_i64(&j, r->n_restored);
    hn_json_key(&j, "elapsed_s");
    hn_json_f64(&j, r->elapsed_s);
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
                  { "--timing-cache", b->timing_cache }, { "--cache-dir", b->cache_dir } };
    for (int i = 0; i < HN_COUNT(words); i++) {
        if (!words[i].value) continue;
        hn_vec_push(a, &v, words[i].flag);
        hn_vec_push(a, &v, words[i].value);
    }
    hn_vec_push(a, &v, (const char *)NULL);
    return v.at;
}

typedef struct data {
    hone_tensor in[256];
    hn_tensor x[256], *want, *own;
    int n_in, n_out;
} data;

/* What comes before the first trial counts against the budget as well. */
typedef struct limit {
    hn_api_progress progress;
    int64_t end_ns; /* 0: none */
    bool passed;
} limit;

static bool limited_step(void *user, const char *phase, int64_t done, int64_t total)
{
    limit *l = user;
    l->passed = l->end_ns && hn_now_ns() >= l->end_ns;
    return !l->passed && hn_api_step(&l->progress, phase, done, total);
}

static bool limited_eval_step(void *user, int done, int total)
{
    return limited_step(user, "evaluate", done, total);
}

static hone_status budget_passed(const limit *l, const char *doing, hone_status s, hn_diag *dg)
{
    if (s != HONE_E_CANCELLED || !l->passed) return s;
    hn_diag_clear(dg);
    hn_hint(dg, "Allow a larger budget.");
    return HN_RAISE(dg, HONE_E_TIMEOUT, "the budget ended while %s", doing);
}

static hone_status evaluate(hone_model *m, data *d, limit *l, hn_diag *dg)
{
    hn_eval_opts o = { .mode = HN_EVAL_F64, .progress = limited_eval_step, .user = l };
    hone_status s = hn_eval_run(m->g, &o, d->x, d->want, dg);
    o.mode = HN_EVAL_OWN;
    if (s == HONE_OK) s = hn_eval_run(m->g, &o, d->x, d->own, dg);
    return budget_passed(l, "evaluating references", s, dg);
}

static hone_status gather_data(hone_model *m, const hone_tune_options *o, data *d, limit *l, hn_diag *dg)
{
    hone_error *err = NULL;
    d->n_in = m->g->n_in;
    d->n_out = m->g->n_out;
    if (d->n_in > 256) return HN_RAISE(dg, HONE_E_LIMIT, "the model has more than 256 inputs");
    d->want = calloc((size_t)d->n_out + 1, sizeof *d->want);
    d->own = calloc((size_t)d->n_out + 1, sizeof *d->own);
    if (!d->want || !d->own) return HN_NOMEM(dg);
    if (hone_model_make_inputs(m, o->seed, d->in, NULL, &err) != HONE_OK) {
        HN_RAISE(dg, hone_error_status(err), "%s", hone_error_message(err));
        hone_error_free(err);
        return dg->code;
    }
    for (int i = 0; i < d->n_in; i++) {
        hn_api_tensor(o->input && o->input[i].data ? &o->input[i] : &d->in[i], &d->x[i]);
    }
    return evaluate(m, d, l, dg);
}

static void free_data(data *d)
{
    for (int i = 0; i < d->n_in && i < 256; i++) hone_tensor_free(&d->in[i]);
    for (int i = 0; i < d->n_out; i++) {
        if (d->want) hn_tensor_done(&d->want[i]);
        if (d->own) hn_tensor_done(&d->own[i]);
    }
    free(d->want);
    free(d->own);
}

static hone_status read_trace(hn_arena *a, hone_model *m, const hone_build_options *opts, limit *l, hn_build_report *r,
                              hn_diag *dg)
{
    hn_api_build b;
    HN_TRY(hn_api_build_options(a, opts, &b, dg));
    b.o.progress = limited_step;
    b.o.progress_user = l;
    const hone_status s = hn_api_trace(a, m, &b, r, dg);
    return budget_passed(l, "finding the knobs that matter", s, dg);
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
    data *d = HN_NEW(a, data);
    hn_build_report report = { 0 };
    hn_tune_result r;
    const int64_t start = hn_now_ns();
    limit l = { .progress = { o->build.progress, o->build.progress_user, start } };
    if (o->budget_s > 0) l.end_ns = start + (int64_t)(o->budget_s * 1e9);
    if (!d) return HN_NOMEM(dg);
    const hn_tune_opts t = {
        .model_path = m->path, .model_digest = m->digest, .base_route = o->build.route, .expression = o->expression,
        .strategy = o->strategy, .build_arg = build_args(a, mo, &o->build),
        .threads = o->build.threads > 0 ? o->build.threads : hn_cpu_count(), .budget_s = o->budget_s,
        .max_trials = o->max_trials, .store = o->store, .resume = o->resume, .threshold = o->threshold,
        .trial_timeout_s = o->trial_timeout_s, .trial_memory_bytes = o->trial_memory_bytes, .seed = o->seed,
        .dry_run = o->dry_run, .progress = hn_api_step, .progress_user = &l.progress,
        .start_ns = start, .tools = tools_digest(a) };
    hone_status s = o->expression ? HONE_OK : read_trace(a, m, &o->build, &l, &report, dg);
    if (s == HONE_OK && !o->dry_run) s = gather_data(m, o, d, &l, dg);
    if (s == HONE_OK)
        s = hn_tune(a, m->g, d->x, d->want, d->own, &t, report.read, report.n_read, engine_path, &r, dg);
    free_data(d);
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
    if (o->metric && strcmp(o->metric, "rel_l2") != 0)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "metric \"%s\" is not there yet; \"rel_l2\" is", o->metric);
    if (mo.n_value > 0)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "tuning takes no values of inputs: its trials read the model anew");
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
