#include "run_graph.h"


#include "base/os.h"
#include "harness.h"
#include "runtime/runtime.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

hn_target hn_test_target(void)
{
    const char *name = getenv("HONE_TEST_TARGET");
    hn_target t;
    hn_diag dg = { 0 };
    CHECK_OK(hn_target_get(name ? name : "host", &t, &dg), &dg);
    return t;
}

static void fill(hn_tensor *t, hn_rng *r)
{
    const int64_t n = hn_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        if (hn_dtype_is_float(t->type.dtype)) {
            const double x = hn_rng_normal(r);
            hn_narrow_f64(t->type.dtype, &x, 1, t->data, i, true);
        } else {
            const int64_t x = hn_rng_below(r, t->type.dtype == HN_BOOL ? 2 : 4);
            hn_narrow_i64(t->type.dtype, &x, 1, t->data, i);
        }
    }
}

static hn_tdesc concrete(const hn_graph *g, const hn_tdesc *d, int64_t sym)
{
    hn_tdesc r = *d;
    int64_t value[64];
    for (int i = 0; i < hn_sym_count(g->syms); i++)
        value[i] = sym ? sym : hn_sym_get(g->syms, hn_sym_at(g->syms, i))->opt;
    for (int a = 0; a < r.rank; a++)
        if (!hn_dim_is_const(r.dim[a])) CHECK(hn_dim_eval(g->syms, r.dim[a], value, &r.dim[a]));
    return r;
}

static void run_engine(hn_engine *e, hn_tensor *in, int n_in, hn_tensor *out, int n_out, const char *fails, hn_diag *dg)
{
    hn_context *c = NULL;
    const hone_status made = hn_context_create(e, &(hn_context_opts){ .profile = -1 }, &c, dg);
    if (fails && made) { /* shapes alone show it */
        if (!strstr(dg->message, fails)) FAIL("\"%s\" does not say \"%s\"", dg->message, fails);
        return;
    }
    CHECK_OK(made, dg);
    if (getenv("HONE_TEST_NO_RECORDING")) CHECK_OK(hn_context_set_profiling(c, true, dg), dg);
    for (int i = 0; i < n_in; i++) {
        CHECK_OK(hn_context_set_input_shape(c, i, in[i].type.rank, in[i].type.dim, dg), dg);
        CHECK_OK(hn_context_bind(c, i, in[i].data, in[i].bytes, dg), dg);
    }
    for (int k = 0; fails && k < 2; k++) {
        hn_diag_clear(dg);
        CHECK(hn_context_run(c, dg) != HONE_OK);
        if (!strstr(dg->message, fails)) FAIL("\"%s\" does not say \"%s\"", dg->message, fails);
    }
    for (int k = 0; k < 2 && !fails; k++) CHECK_OK(hn_context_run(c, dg), dg);
    for (int i = 0; i < n_out && !fails; i++) {
        const hn_plan_io *io = &hn_engine_get_plan(e)->io[n_in + i];
        int rank;
        memset(&out[i], 0, sizeof out[i]);
        out[i].type.dtype = (hn_dtype)io->dtype;
        CHECK_OK(hn_context_shape(c, n_in + i, &rank, out[i].type.dim, dg), dg);
        out[i].type.rank = rank;
        out[i].bytes = (size_t)hn_context_io_bytes(c, n_in + i);
        out[i].data = malloc(out[i].bytes + 1);
        memcpy(out[i].data, hn_context_output_data(c, n_in + i), out[i].bytes);
        out[i].owned = true;
    }
    hn_context_destroy(c);
}

static void compare(const hn_graph *g, const hn_tensor *got, const hn_tensor *want, const hn_tensor *own, double tol)
{
    hn_diag dg = { 0 };
    for (int i = 0; i < g->n_out; i++) {
        hn_metric m;
        CHECK_OK(hn_metric_compare(&got[i], &want[i], &own[i], 0, 0, &m, &dg), &dg);
        const double limit = hn_dtype_is_float(got[i].type.dtype) ? tol : 0;
        if (m.n_nonfinite == 0 && m.rel_l2 <= limit) continue;
        fprintf(stderr, "output \"%s\": relative L2 error %g (bound %g), worst at %lld: got %g, want %g; %lld non-finite\n",
                g->out_name[i], m.rel_l2, limit, (long long)m.worst, m.worst_got, m.worst_want, (long long)m.n_nonfinite);
        CHECK(!"engine and evaluation differ");
    }
}

static void evaluate(const hn_graph *g, hn_tensor *in, hn_tensor *want, hn_tensor *own, const char *fails)
{
    hn_diag dg = { 0 };
    if (fails) {
        CHECK(hn_eval_run(g, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, in, own, &dg) != HONE_OK);
        return;
    }
    CHECK_OK(hn_eval_run(g, &(hn_eval_opts){ .mode = HN_EVAL_F64 }, in, want, &dg), &dg);
    CHECK_OK(hn_eval_run(g, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, in, own, &dg), &dg);
}

static hn_tensor *tensors(int n)
{
    hn_tensor *t = calloc((size_t)n + 1, sizeof *t);
    CHECK(t);
    return t;
}

static void release(hn_tensor *t, int n)
{
    for (int i = 0; i < n; i++) hn_tensor_done(&t[i]);
    free(t);
}

static hn_tensor *inputs_of(const hn_graph *g, const hn_run_opts *o)
{
    hn_tensor *in = tensors(g->n_in);
    hn_rng rng;
    hn_diag dg = { 0 };
    hn_rng_init(&rng, o->seed + 1);
    for (int i = 0; i < g->n_in; i++) {
        const hn_tdesc d = o->in ? o->in[i].type : concrete(g, &g->in[i]->type, o->sym);
        CHECK_OK(hn_tensor_init(&in[i], &d, &dg), &dg);
        if (o->in) memcpy(in[i].data, o->in[i].data, in[i].bytes);
        else fill(&in[i], &rng);
    }
    return in;
}

/* Outputs of an engine of the graph, which stays as it is. */
static hn_tensor *outputs_of(hn_arena *a, const hn_graph *g, const hn_run_opts *o, hn_tensor *in)
{
    const char *target = o->target ? o->target : getenv("HONE_TEST_TARGET");
    hn_diag dg = { 0 };
    hn_target t = hn_test_target();
    if (o->target) CHECK_OK(hn_target_get(o->target, &t, &dg), &dg);
    hn_route route = { 0 };
    if (o->route) CHECK_OK(hn_route_parse(a, o->route, &route, &dg), &dg);
    const hn_build_opts b = { .target = &t, .route = &route, .threads = 2,
                              .measure = o->measure && (!target || o->target),
                              .cache_dir = target ? getenv("HONE_CACHE_DIR") : o->cache_dir,
                              .pool = o->pool,
                              .model_name = "test",
                              .debug = &(hn_pass_debug){ .validate = true } };
    hn_build_report r;
    void *data = NULL;
    size_t bytes = 0;
    hn_graph *copy = hn_clone(a, g, NULL);
    CHECK_OK(hn_build_engine(a, copy, &b, &data, &bytes, &r, &dg), &dg);
    hn_engine *e = NULL;
    CHECK_OK(hn_engine_from_memory(data, bytes, NULL, &e, &dg), &dg);
    hn_tensor *got = tensors(g->n_out);
    run_engine(e, in, g->n_in, got, g->n_out, o->fails, &dg);
    hn_engine_unref(e);
    return got;
}

static double tolerance(const hn_run_opts *o)
{
    return o->tol > 0 ? o->tol : 1e-5;
}

void hn_check_graph_of(hn_arena *a, hn_graph *g, const hn_run_opts *o)
{
    static const hn_run_opts none = { 0 };
    if (!o) o = &none;
    hn_tensor *in = inputs_of(g, o), *want = tensors(g->n_out), *own = tensors(g->n_out);
    evaluate(g, in, want, own, o->fails);
    hn_tensor *got = outputs_of(a, g, o, in);
    if (!o->fails) compare(g, got, want, own, tolerance(o));
    release(in, g->n_in);
    release(got, g->n_out);
    release(want, g->n_out);
    release(own, g->n_out);
}

void hn_check_same(hn_arena *a, const hn_graph *g, const hn_graph *changed, const hn_run_opts *o)
{
    CHECK_EQ(changed->n_in, g->n_in);
    CHECK(changed->n_out >= g->n_out);
    hn_tensor *in = inputs_of(g, o), *want = outputs_of(a, g, o, in), *got = outputs_of(a, changed, o, in);
    compare(g, got, want, want, tolerance(o));
    release(in, g->n_in);
    release(want, g->n_out);
    release(got, changed->n_out);
}

void hn_check_graph(const char *text, const hn_run_opts *o)
{
    hn_diag dg = { 0 };
    hn_graph *g = NULL;
    hn_arena *a = hn_arena_create();
    CHECK(a);
    CHECK_OK(hn_parse(a, text, &g, &dg), &dg);
    hn_check_graph_of(a, g, o);
    hn_arena_destroy(a);
}
