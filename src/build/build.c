/* One build from route to engine: pipeline, regions, choice, plan, file. */
#include "build/build_int.h"

#include <stdlib.h>
#include <string.h>

bool hn_build_step(hn_job *b, const char *phase, int64_t done, int64_t total)
{
    return !b->o->progress || b->o->progress(b->o->progress_user, phase, done, total);
}

/* Composites that a tactic takes whole stay; the others are expanded. */
static bool keep_composite(void *user, const hn_node *n)
{
    return hn_takes_whole(user, n);
}

static hone_status run_passes(hn_job *b, hn_diag *dg)
{
    hn_arena *scratch = hn_arena_create();
    const int max = hn_pass_count();
    hn_pass_stat *stat = HN_NEW_N(b->a, hn_pass_stat, max + 1);
    if (!scratch || !stat) {
        hn_arena_destroy(scratch);
        return HN_NOMEM(dg);
    }
    const int64_t t0 = hn_now_ns();
    const bool needed = hn_knob_read_model(b->knobs, HN_KNOB_core_passes) != 0;
    int n = max;
    hn_pass_ctx c = { .knobs = b->knobs, .target = b->t, .scratch = scratch, .allow_inexact = !hn_knob_read_model(b->knobs, HN_KNOB_core_exact),
                      .keep = keep_composite, .keep_user = b };
    const hone_status s = hn_pipeline_run(b->g, hn_pipeline_find(needed ? "none" : "default"), &c, b->o->debug, stat, &n, dg);
    hn_arena_destroy(scratch);
    b->report->pass = stat;
    b->report->n_pass = n;
    b->report->pass_ns = hn_now_ns() - t0;
    return s;
}

/* ---- manifest ---- */
static void manifest_digest(hn_json *j, const char *key, hn_digest d)
{
    char text[HN_DIGEST_TEXT];
    hn_json_key(j, key);
    hn_json_str(j, hn_digest_text(d, text));
}

/* What must be there where the engine runs; a frozen build does not say which version. */
static void manifest_libraries(const hn_job *b, hn_json *j)
{
    static const char *const name[HN_LIB_COUNT] = { [HN_LIB_CUBLASLT] = "cuBLASLt", [HN_LIB_CUDNN] = "cuDNN" };
    bool any = false;
    for (int i = 0; i < HN_LIB_COUNT; i++) {
        if (!b->library[i].used) continue;
        if (!any) hn_json_key(j, "libraries"), hn_json_array(j);
        any = true;
        hn_json_str(j, b->library[i].version ? b->library[i].version : name[i]);
    }
    if (any) hn_json_array_end(j);
}

static void manifest(hn_job *b, hn_str *out)
{
    hn_json j;
    hn_str route = { 0 }, feat = { 0 };
    if (b->o->route) hn_route_print(b->o->route, &route);
    hn_feat_print(b->t->feat, &feat);
    hn_json_init(&j, out, false);
    hn_json_object(&j);
    hn_json_key(&j, "hone");
    hn_json_str(&j, HN_VERSION);
    hn_json_key(&j, "model");
    hn_json_str(&j, b->o->model_name);
    manifest_digest(&j, "model_digest", b->o->model_digest);
    hn_json_key(&j, "route");
    hn_json_str(&j, hn_str_get(&route));
    manifest_digest(&j, "knob_registry", hn_knob_registry_digest());
    hn_json_key(&j, "target");
    hn_json_str(&j, b->t->name);
    hn_json_key(&j, "features");
    hn_json_str(&j, hn_str_get(&feat));
    manifest_digest(&j, "device_fingerprint", hn_target_fingerprint(b->t));
    hn_json_key(&j, "threads");
    hn_json_i64(&j, b->t->n_core);
    manifest_libraries(b, &j);
    hn_json_key(&j, "regions");
    hn_json_i64(&j, b->regions.n);
    hn_json_object_end(&j);
    hn_str_done(&route);
    hn_str_done(&feat);
}

static hone_status write_engine(hn_job *b, void **ret_data, size_t *ret_bytes, hn_diag *dg)
{
    hn_plan plan;
    const int64_t t0 = hn_now_ns();
    HN_TRY(hn_engine_writer_create(b->o->out_path, b->o->store_dir, &b->writer, dg));
    if (b->o->draft) hn_engine_writer_draft(b->writer);
    HN_TRY(hn_plan_make(b, &plan, dg));
    hn_str text = { 0 };
    manifest(b, &text);
    hone_status s = text.oom ? HN_NOMEM(dg) : HONE_OK;
    const void *code = b->code.n ? b->code.s : "";
    if (s == HONE_OK && b->o->out_path)
        s = hn_engine_writer_finish(b->writer, &plan, code, b->code.n, text.s, dg);
    else if (s == HONE_OK)
        s = hn_engine_writer_finish_memory(b->writer, &plan, code, b->code.n, text.s, ret_data, ret_bytes, dg);
    hn_str_done(&text);
    b->report->plan_ns = hn_now_ns() - t0;
    b->report->payload = hn_plan_payload_digest(&plan, code, b->code.n);
    b->report->code_bytes = (int64_t)b->code.n;
    b->report->arena_bytes = (int64_t)plan.arena_bytes;
    return s;
}

static hone_status open_tools(hn_job *b, hn_diag *dg)
{
    const hn_compile_options c = { .worker_path = b->o->worker, .cache = { .dir = b->o->cache_dir } };
    b->pool = b->o->pool;
    if (b->pool) b->pool_before = hn_compile_pool_stats(b->pool);
    else HN_TRY(hn_compile_pool_create(&c, &b->pool, dg));
    if (b->o->measure && !b->o->frozen) HN_TRY(hn_measure_create(b, &b->measure, dg));
    return HONE_OK;
}

/* Extents that no profile bounds stand at 1, and everything would be chosen for images of one place and texts of one word. They
 * get usual values, which choose tactics and nothing else: any extent still runs. */
static hone_status expect_usual_extents(hn_job *b, hn_diag *dg)
{
    hn_graph *g = b->g;
    const int n = hn_sym_count(g->syms);
    int64_t *value = HN_NEW_N(b->a, int64_t, n + 1);
    if (!value) return HN_NOMEM(dg);
    if (hn_input_extents(g, /* given= */ NULL, value, NULL) != HONE_OK) return HONE_OK; /* whoever runs it will say which extents there are */
    for (int i = 0; i < n; i++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, i));
        const bool unbounded = s->kind == HN_SYM_INPUT && s->min <= 1 && s->max == INT64_MAX && s->opt == 1;
        if (unbounded) hn_sym_set_bounds(g->syms, hn_sym_at(g->syms, i), s->min, value[i], s->max);
    }
    return HONE_OK;
}

static hone_status read_hints(hn_job *b, hn_diag *dg)
{
    uint32_t *hint = HN_NEW_N(b->a, uint32_t, b->g->n_in + 1);
    if (!hint) return HN_NOMEM(dg);
    for (int i = 0; i < b->g->n_in; i++) hint[i] = hn_input_hint(b->g->in[i]);
    b->hint = hint;
    return HONE_OK;
}

static hone_status build(hn_job *b, void **ret_data, size_t *ret_bytes, hn_diag *dg)
{
    b->report->n_node_in = hn_graph_count_nodes(b->g);
    if (b->o->timing_cache) HN_TRY(hn_timing_open(b->a, b->o->timing_cache, b->o->frozen, &b->timing, dg));
    hn_timing_settle_peaks(b->timing, &b->target, b->o->frozen);
    HN_TRY(read_hints(b, dg));
    HN_TRY(expect_usual_extents(b, dg));
    HN_TRY(run_passes(b, dg));
    HN_TRY(hn_layout_assign(b, b->g, dg));
    HN_TRY(hn_duplicate_cheap(b, b->g, dg));
    b->report->n_node_out = hn_graph_count_nodes(b->g);
    HN_TRY(open_tools(b, dg));
    const int64_t t0 = hn_now_ns();
    HN_TRY(hn_choose_all(b, dg));
    b->report->choose_ns = hn_now_ns() - t0;
    HN_TRY(write_engine(b, ret_data, ret_bytes, dg));
    return b->o->frozen ? HONE_OK : hn_timing_save(b->timing, dg);
}

static void close_build(hn_job *b)
{
    const hn_compile_stats s = b->pool ? hn_compile_pool_stats(b->pool) : (hn_compile_stats){ 0 };
    b->report->kernels_compiled = s.n_compiled - b->pool_before.n_compiled;
    b->report->kernels_cached = s.n_cached - b->pool_before.n_cached;
    b->report->n_kernel = b->placed.n;
    b->report->region = b->regions.at;
    b->report->n_region = b->regions.n;
    b->report->n_read = hn_knobs_n_read(b->knobs);
    hn_knob_read *read = HN_NEW_N(b->a, hn_knob_read, b->report->n_read + 1);
    for (int i = 0; read && i < b->report->n_read; i++) read[i] = *hn_knobs_read_at(b->knobs, i);
    b->report->read = read;
    b->report->peak_rss_bytes = hn_peak_rss_bytes();
    hn_measure_destroy(b->measure);
    if (b->o->pool) hn_compile_pool_drop(b->pool);
    else hn_compile_pool_destroy(b->pool);
    hn_engine_writer_destroy(b->writer);
    hn_str_done(&b->code);
}

hone_status hn_build_engine(hn_arena *a, hn_graph *g, const hn_build_opts *o, void **ret_data, size_t *ret_bytes,
                            hn_build_report *ret, hn_diag *dg)
{
    *ret = (hn_build_report){ 0 };
    hn_job b = { .a = a, .o = o, .target = *o->target, .g = g, .report = ret };
    b.t = &b.target;
    if (o->threads > 0) b.target.n_core = o->threads;
    static const hn_route none = { 0 };
    b.knobs = hn_knobs_new(a, o->route ? o->route : &none);
    if (!b.knobs) return HN_NOMEM(dg);
    const int64_t t0 = hn_now_ns();
    hone_status s = build(&b, ret_data, ret_bytes, dg);
    if (s == HONE_OK && hn_arena_oom(a)) s = HN_NOMEM(dg);
    close_build(&b);
    ret->total_ns = hn_now_ns() - t0;
    return s;
}
