/* Building through the public API: options, reports, knobs. */
#include "api/api_int.h"
#include "build/heat.h"
#include "codegen/codegen.h"
#include "dev/dev.h"

#include <stdlib.h>
#include <string.h>

static const char *cache_dir(hn_arena *a, const char *given)
{
    if (given) return given[0] ? given : NULL;
    char *dir = hn_cache_dir();
    const char *r = dir ? hn_arena_strdup(a, dir) : NULL;
    free(dir);
    return r;
}

static hone_status set_opt_level(hn_arena *a, int level, hn_route *route, hn_diag *dg)
{
    if (level < 0) return HONE_OK;
    if (level > 5) return HN_RAISE(dg, HONE_E_INVALID, "opt level %d is outside 0..5", level);
    return hn_route_set(a, route, HN_KNOB_core_opt_level, NULL, level) ? HONE_OK : HN_NOMEM(dg);
}

/* Where the engine would run: this processor, or a GPU that is here. */
static bool can_measure(const hn_target *t, bool fits)
{
    hn_device *d;
    hn_diag dg = { 0 };
    if (t->arch != HN_ARCH_SM) return fits && hn_target_check_runs_here(t, NULL) == HONE_OK;
    return hn_device_cuda(&d, &dg) == HONE_OK && hn_device_check_target(d, t, &dg) == HONE_OK;
}

hone_status hn_api_build_options(hn_arena *a, const hone_build_options *given, hn_api_build *ret, hn_diag *dg)
{
    static const hone_build_options dflt = HONE_BUILD_OPTIONS_INIT;
    hone_build_options filled;
    HN_TRY(hn_api_options(&filled, &dflt, sizeof filled, given, dg));
    const hone_build_options *in = &filled;
    *ret = (hn_api_build){ 0 };
    const bool host = hn_api_is_host(in->target);
    HN_TRY(hn_api_target(in->target, &ret->target, dg));
    if (in->route) HN_TRY_IN(dg, hn_route_parse(a, in->route, &ret->route, dg), "the route");
    HN_TRY(set_opt_level(a, in->opt_level, &ret->route, dg));
    ret->progress = (hn_api_progress){ in->progress, in->progress_user, hn_now_ns() };
    hn_build_opts *o = &ret->o;
    o->target = &ret->target;
    o->route = &ret->route;
    o->threads = in->threads > 0 ? in->threads : ret->target.n_core;
    o->cache_dir = cache_dir(a, in->cache_dir);
    o->timing_cache = in->timing_cache && in->timing_cache[0] ? in->timing_cache : NULL;
    if (!in->timing_cache && o->cache_dir) o->timing_cache = hn_arena_printf(a, "%s/timing.txt", o->cache_dir);
    if (o->cache_dir) HN_TRY(hn_make_dirs(o->cache_dir, dg));
    o->frozen = in->frozen;
    o->draft = in->draft;
    ret->keep_tools = in->keep_tools;
    /* More threads than cores would time the scheduler, unless that is what somebody asks of this machine. */
    const bool fits = host || o->threads <= hn_cpu_count();
    o->measure = !in->frozen && can_measure(&ret->target, fits);
    o->workspace_bytes = in->workspace_bytes;
    o->progress = hn_api_step;
    o->progress_user = &ret->progress;
    return hn_arena_oom(a) ? HN_NOMEM(dg) : HONE_OK;
}

/* ---- report ---- */
static void put_candidates(hn_json *j, const hn_region_report *r)
{
    hn_json_key(j, "candidates");
    hn_json_array(j);
    for (int i = 0; i < r->n_candidate; i++) {
        const hn_candidate_report *c = &r->candidate[i];
        hn_json_object(j);
        hn_json_put_str(j, "tactic", c->tactic);
        if (c->reason) hn_json_put_str(j, "reason", c->reason);
        if (c->predicted_ns > 0) hn_json_put_f64(j, "predicted_us", c->predicted_ns * 1e-3);
        if (c->measured_ns > 0) hn_json_put_f64(j, "measured_us", c->measured_ns * 1e-3);
        hn_json_object_end(j);
    }
    hn_json_array_end(j);
}

static void put_region(hn_json *j, const hn_region_report *r)
{
    char digest[HN_DIGEST_TEXT];
    hn_json_object(j);
    hn_json_put_str(j, "name", r->name);
    hn_json_put_str(j, "ops", r->ops);
    hn_json_put_str(j, "tactic", r->tactic);
    hn_json_put_f64(j, "us", r->ns * 1e-3);
    hn_json_put_bool(j, "measured", r->measured);
    hn_json_put_f64(j, "flops", r->flops);
    hn_json_put_f64(j, "bytes", r->bytes);
    hn_json_put_str(j, "digest", hn_digest_text(r->digest, digest));
    hn_json_put_str(j, "label", r->label);
    put_candidates(j, r);
    hn_json_object_end(j);
}

static void put_times(hn_json *j, const hn_build_report *r)
{
    hn_json_put_f64(j, "build_s", (double)r->total_ns * 1e-9);
    hn_json_put_f64(j, "pass_s", (double)r->pass_ns * 1e-9);
    hn_json_put_f64(j, "choose_s", (double)r->choose_ns * 1e-9);
    hn_json_put_f64(j, "compile_s", (double)r->compile_ns * 1e-9);
    hn_json_put_f64(j, "race_s", (double)r->race_ns * 1e-9);
    hn_json_put_f64(j, "library_s", (double)r->library_ns * 1e-9);
    hn_json_put_f64(j, "plan_s", (double)r->plan_ns * 1e-9);
    hn_json_put_i64(j, "kernels", r->n_kernel);
    hn_json_put_i64(j, "kernels_compiled", r->kernels_compiled);
    hn_json_put_i64(j, "kernels_cached", r->kernels_cached);
    hn_json_put_i64(j, "timings_measured", r->timings_measured);
    hn_json_put_i64(j, "timings_cached", r->timings_cached);
    hn_json_put_i64(j, "code_bytes", r->code_bytes);
    hn_json_put_i64(j, "arena_bytes", r->arena_bytes);
    hn_json_put_i64(j, "peak_rss_bytes", r->peak_rss_bytes);
}

static void put_setting(hn_json *j, const hn_knob_def *k, int64_t v)
{
    hn_str text = { 0 };
    hn_str_addf(&text, "-%s=", k->name);
    hn_knob_print_value(k, v, &text);
    hn_json_put_str(j, "setting", hn_str_get(&text));
    hn_str_done(&text);
}

static void put_reads(hn_json *j, const hn_build_report *r)
{
    hn_json_key(j, "knobs_read");
    hn_json_array(j);
    for (int i = 0; i < r->n_read; i++) {
        const hn_knob_def *k = hn_knob_get(r->read[i].knob);
        hn_json_object(j);
        hn_json_put_str(j, "knob", k ? k->name : "?");
        hn_json_put_str(j, "where", r->read[i].where);
        hn_json_put_i64(j, "value", r->read[i].value);
        if (k) put_setting(j, k, r->read[i].value);
        hn_json_object_end(j);
    }
    hn_json_array_end(j);
}

static void put_passes(hn_json *j, const hn_build_report *r)
{
    hn_json_key(j, "passes");
    hn_json_array(j);
    for (int i = 0; i < r->n_pass; i++) {
        hn_json_object(j);
        hn_json_put_str(j, "pass", r->pass[i].pass);
        hn_json_put_i64(j, "runs", r->pass[i].runs);
        hn_json_put_i64(j, "fired", r->pass[i].fired);
        hn_json_put_f64(j, "ms", (double)r->pass[i].ns * 1e-6);
        hn_json_object_end(j);
    }
    hn_json_array_end(j);
}

void hn_api_report_json(const hn_build_report *r, const hone_model *m, hn_str *out)
{
    hn_json j;
    char digest[HN_DIGEST_TEXT];
    hn_json_init(&j, out, true);
    hn_json_object(&j);
    hn_json_put_str(&j, "model", m->path);
    hn_json_put_str(&j, "model_digest", hn_digest_text(m->digest, digest));
    hn_json_put_str(&j, "payload", hn_digest_text(r->payload, digest));
    hn_json_put_i64(&j, "nodes_in", r->n_node_in);
    hn_json_put_i64(&j, "nodes_out", r->n_node_out);
    put_times(&j, r);
    put_passes(&j, r);
    put_reads(&j, r);
    hn_json_key(&j, "regions");
    hn_json_array(&j);
    for (int i = 0; i < r->n_region; i++) put_region(&j, &r->region[i]);
    hn_json_array_end(&j);
    hn_json_object_end(&j);
}

hone_status hn_api_build_model(hn_arena *a, hn_api_build *b, const hone_model *m, const char *path, hn_build_report *ret, hn_diag *dg)
{
    b->o.out_path = path;
    b->o.model_name = m->path;
    b->o.model_digest = m->digest;
    hn_graph *g = hn_clone(a, m->g, NULL);
    return g ? hn_build_engine(a, g, &b->o, NULL, NULL, ret, dg) : HN_NOMEM(dg);
}

void hn_api_drop_tools(hone_model *m)
{
    hn_compile_pool_destroy(m->pool);
    hn_heat_worker_destroy(m->heat);
    free(m->pool_cache);
    m->pool = NULL, m->heat = NULL, m->pool_cache = NULL;
}

static bool same_folder(const char *x, const char *y)
{
    return x && y ? strcmp(x, y) == 0 : x == y;
}

static hone_status start_tools(hone_model *m, const hn_build_opts *o, hn_diag *dg)
{
    char *program = NULL;
    HN_TRY(hn_worker_find(o->worker, &program, dg));
    const hn_compile_options c = { .worker_path = program, .cache = { .dir = o->cache_dir } };
    hone_status s = hn_compile_pool_create(&c, &m->pool, dg);
    if (s == HONE_OK) s = hn_heat_worker_create(program, o->candidate_timeout_ns, &m->heat, dg);
    if (s == HONE_OK && o->cache_dir && !(m->pool_cache = strdup(o->cache_dir))) s = HN_NOMEM(dg);
    free(program);
    if (s != HONE_OK) hn_api_drop_tools(m);
    return s;
}

static hone_status take_tools(hone_model *m, hn_build_opts *o, hn_diag *dg)
{
    if (m->pool && !same_folder(m->pool_cache, o->cache_dir)) hn_api_drop_tools(m);
    if (!m->pool) HN_TRY(start_tools(m, o, dg));
    o->pool = m->pool;
    o->heat = m->heat;
    return HONE_OK;
}

static hone_status build(hn_arena *a, hone_model *m, const hone_build_options *opts, const char *path,
                         hone_report **ret_report, hn_diag *dg)
{
    hn_api_build b;
    hn_build_report r;
    if (!m || !path) return HN_RAISE(dg, HONE_E_INVALID, "a model and a path for the engine are needed");
    HN_TRY(hn_api_build_options(a, opts, &b, dg));
    if (b.keep_tools) HN_TRY(take_tools(m, &b.o, dg));
    HN_TRY(hn_api_build_model(a, &b, m, path, &r, dg));
    hn_str json = { 0 };
    hn_api_report_json(&r, m, &json);
    const hone_status s = hn_api_report(&json, ret_report, dg);
    hn_str_done(&json);
    return s;
}

hone_status hone_build(hone_model *m, const hone_build_options *opts, const char *engine_path, hone_report **ret_report,
                       hone_error **err)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    const hone_status s = a ? build(a, m, opts, engine_path, ret_report, &dg) : HN_NOMEM(&dg);
    if (a) hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

/* ---- knobs ---- */
char *hone_knobs_json(void)
{
    hn_str s = { 0 };
    hn_knob_list_json(&s);
    char *r = hn_api_string(&s);
    hn_str_done(&s);
    return r;
}

hone_status hn_api_trace(hn_arena *a, const hone_model *m, hn_api_build *b, hn_build_report *ret, hn_diag *dg)
{
    void *engine = NULL;
    size_t n = 0;
    b->o.measure = false;
    b->o.model_name = m->path;
    hn_graph *g = hn_clone(a, m->g, NULL);
    if (!g) return HN_NOMEM(dg);
    const hone_status s = hn_build_engine(a, g, &b->o, &engine, &n, ret, dg);
    free(engine);
    return s;
}

/* The knobs that a build by the cost model reads. */
static hone_status model_knobs(hn_arena *a, hone_model *m, const hone_build_options *opts, char **ret, hn_diag *dg)
{
    hn_api_build b;
    hn_build_report r;
    if (!m || !ret) return HN_RAISE(dg, HONE_E_INVALID, "a model and a place for the result are needed");
    HN_TRY(hn_api_build_options(a, opts, &b, dg));
    HN_TRY(hn_api_trace(a, m, &b, &r, dg));
    hn_str s = { 0 };
    hn_json j;
    hn_json_init(&j, &s, true);
    hn_json_object(&j);
    put_reads(&j, &r);
    hn_json_object_end(&j);
    *ret = hn_api_string(&s);
    hn_str_done(&s);
    return *ret ? HONE_OK : HN_NOMEM(dg);
}

hone_status hone_model_knobs_json(hone_model *m, const hone_build_options *opts, char **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    const hone_status s = a ? model_knobs(a, m, opts, ret, &dg) : HN_NOMEM(&dg);
    if (a) hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}

static hone_status canonical(hn_arena *a, const char *route, char **ret, hn_diag *dg)
{
    hn_route r = { 0 };
    if (!route || !ret) return HN_RAISE(dg, HONE_E_INVALID, "a route and a place for the result are needed");
    HN_TRY(hn_route_parse(a, route, &r, dg));
    hn_str s = { 0 };
    hn_route_print(&r, &s);
    *ret = hn_api_string(&s);
    hn_str_done(&s);
    return *ret ? HONE_OK : HN_NOMEM(dg);
}

hone_status hone_route_canonical(const char *route, char **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    const hone_status s = a ? canonical(a, route, ret, &dg) : HN_NOMEM(&dg);
    if (a) hn_arena_destroy(a);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}
