#include "pass/pass_test.h"
#include "eval/eval.h"

#include <math.h>

int hn_test_count_ops(const hn_graph *g, hn_op op)
{
    int count = 0;
    HN_FOR_NODES (n, g) count += n->op == op;
    return count;
}

void hn_test_fill(hn_rng *r, hn_tensor *x, bool hostile)
{
    static const double odd[] = { 0.0, -0.0, INFINITY, -INFINITY, NAN, 1e-40, 3e4 };
    const int64_t n = hn_tensor_numel(x);
    for (int64_t i = 0; i < n; i++) {
        double v = (double)hn_rng_below(r, 2001) / 1000 - 1;
        if (hostile && hn_rng_below(r, 8) == 0) v = odd[hn_rng_below(r, HN_COUNT(odd))];
        hn_narrow_f64(x->type.dtype, &v, 1, x->data, i, false);
    }
}

static void compare(hn_test *t, const hn_tensor *a, const hn_tensor *b)
{
    const int64_t n = hn_tensor_numel(a);
    CHECK_EQ(n, hn_tensor_numel(b));
    double *x = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *x), *y = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *y);
    hn_tensor_to_f64(a, x);
    hn_tensor_to_f64(b, y);
    for (int64_t i = 0; i < n; i++) CHECK_NEAR(x[i], y[i], isfinite(x[i]) ? 1e-6 * (1 + fabs(x[i])) : 0);
}

hn_tdesc hn_test_input_type(hn_test *t, const hn_graph *g, int i, int64_t extent)
{
    const int n = hn_sym_count(g->syms);
    int64_t *v = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *v * 2);
    hn_tdesc d = g->in[i]->type;
    for (int k = 0; k < n; k++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, k));
        v[k] = HN_MIN(HN_MAX(extent, s->min), s->max);
    }
    for (int a = 0; a < d.rank; a++) CHECK(hn_dim_eval(g->syms, d.dim[a], v, &d.dim[a]));
    return d;
}

static void same_numbers(hn_test *t, const hn_graph *a, const hn_graph *b, uint64_t seed)
{
    hn_rng r;
    hn_diag dg = { 0 };
    hn_tensor in[8] = { 0 }, x[8] = { 0 }, y[8] = { 0 };
    hn_rng_init(&r, seed);
    CHECK(a->n_in <= 8 && a->n_out <= 8);
    for (int i = 0; i < a->n_in; i++) {
        const hn_tdesc d = hn_test_input_type(t, a, i, 1 + (int64_t)seed % 4);
        CHECK_OK(hn_tensor_init(&in[i], &d, &dg), &dg);
        hn_test_fill(&r, &in[i], seed % 2);
    }
    const hn_eval_opts opts = { .mode = HN_EVAL_F64 };
    const hone_status s = hn_eval_run(a, &opts, in, x, &dg);
    hn_diag after = { 0 };
    CHECK_EQ(s, hn_eval_run(b, &opts, in, y, &after)); /* what fails must go on failing */
    for (int i = 0; i < a->n_out && s == HONE_OK; i++) compare(t, &x[i], &y[i]);
    for (int i = 0; i < 8; i++) hn_tensor_done(&in[i]), hn_tensor_done(&x[i]), hn_tensor_done(&y[i]);
}

static int fires(hn_test *t, const char *pass, const char *text, bool (*keep)(void *user, const hn_node *n), hn_graph **ret)
{
    const hn_pipeline_step step[] = { { pass, 0 }, { "fold_constants", 0 }, { "fold_identity", 0 }, { NULL, 0 } };
    const hn_pipeline p = { "test", step, 8 };
    const hn_pass_debug debug = { .validate = true };
    hn_diag dg = { 0 };
    hn_pass_stat stat[4];
    int n = 4, fired = 0;
    *ret = hn_test_graph(t, text);
    hn_pass_ctx c = { .knobs = hn_knobs_new(t->arena, NULL), .scratch = hn_arena_create(), .allow_inexact = true,
                      .keep = keep };
    CHECK_OK(hn_pipeline_run(*ret, &p, &c, &debug, stat, &n, &dg), &dg);
    hn_arena_destroy(c.scratch);
    for (int i = 0; i < n; i++)
        if (stat[i].pass == hn_pass_find(pass)->name) fired = stat[i].fired;
    return fired;
}

int hn_test_fires(hn_test *t, const char *pass, const char *text, hn_graph **ret)
{
    return fires(t, pass, text, /* keep= */ NULL, ret);
}

int hn_test_pass(hn_test *t, const char *pass, const char *text, hn_graph **ret)
{
    const hn_graph *before = hn_test_graph(t, text);
    const int fired = hn_test_fires(t, pass, text, ret);
    for (uint64_t seed = 0; seed < 8; seed++) same_numbers(t, before, *ret, seed);
    return fired;
}

static bool keep_all(void *user, const hn_node *n)
{
    (void)user, (void)n;
    return true;
}

int hn_test_pass_keeping(hn_test *t, const char *pass, const char *text, hn_graph **ret)
{
    const hn_graph *before = hn_test_graph(t, text);
    const int fired = fires(t, pass, text, keep_all, ret);
    for (uint64_t seed = 0; seed < 8; seed++) same_numbers(t, before, *ret, seed);
    return fired;
}

void hn_test_none_fires(hn_test *t, const char *pass, const char *const *text, int n)
{
    hn_graph *g;
    for (int i = 0; i < n; i++) {
        hn_test_note("case %d:\n%s", i, text[i]);
        CHECK_EQ(hn_test_pass(t, pass, text[i], &g), 0);
    }
}
