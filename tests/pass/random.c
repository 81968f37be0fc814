/*
 * Random graphs before and after passes.
 *
 * Three promises, from the strictest: what claims HN_KEEP_NUMBERS keeps every bit; what runs under core:exact keeps every
 * value (the sign of a zero may go); the default pipeline keeps results to rounding. The first two are put to hostile values.
 */
#include "pass/pass_test.h"
#include "pass/random_graph.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPHS = 1000, MAX_IO = 8 };

typedef struct results {
    hn_tensor in[MAX_IO], out[MAX_IO];
    hone_status status;
} results;

/* How often each pass fired, over all graphs of a test. */
typedef struct fires {
    const char *pass[64];
    int fired[64], n;
} fires;

static void count_fires(fires *f, const hn_pass_stat *stat, int n)
{
    for (int i = 0; i < n; i++) {
        int k = 0;
        while (k < f->n && strcmp(f->pass[k], stat[i].pass) != 0) k++;
        if (k == f->n) f->pass[f->n++] = stat[i].pass;
        f->fired[k] += stat[i].fired;
    }
}

static void optimise(hn_test *t, hn_graph *g, const hn_pipeline *p, bool allow_inexact, fires *f)
{
    hn_pass_stat stat[64];
    int n = HN_COUNT(stat);
    hn_diag dg = { 0 };
    const hn_pass_debug debug = { .validate = true };
    hn_pass_ctx c = { .knobs = hn_knobs_new(t->arena, NULL), .scratch = hn_arena_create(), .allow_inexact = allow_inexact };
    CHECK_OK(hn_pipeline_run(g, p, &c, &debug, stat, &n, &dg), &dg);
    if (f) count_fires(f, stat, n);
    hn_arena_destroy(c.scratch);
}

static void evaluate(hn_test *t, const hn_graph *g, hn_eval_mode mode, uint64_t seed, bool hostile, results *r)
{
    hn_rng rng;
    hn_diag dg = { 0 };
    const hn_eval_opts o = { .mode = mode };
    *r = (results){ 0 };
    hn_rng_init(&rng, seed);
    for (int i = 0; i < g->n_in; i++) {
        const hn_tdesc d = hn_test_input_type(t, g, i, 1 + (int64_t)seed % 4);
        CHECK_OK(hn_tensor_init(&r->in[i], &d, &dg), &dg);
        hn_test_fill(&rng, &r->in[i], hostile);
    }
    CHECK_OK(hn_eval_run(g, &o, r->in, r->out, &dg), &dg);
}

static void release(results *r)
{
    for (int i = 0; i < MAX_IO; i++) hn_tensor_done(&r->in[i]), hn_tensor_done(&r->out[i]);
}

typedef enum bound { BITS, VALUES, ROUNDING } bound;

static bool close_enough(double x, double y, double scale, bound b)
{
    if (isnan(x) || isnan(y)) return isnan(x) && isnan(y);
    if (b == BITS) return x == y && signbit(x) == signbit(y); /* which NaN says nothing */
    /* f32 constants multiplied together first, a few dozen times over, and cancellation against the largest element. */
    return x == y || (b == ROUNDING && fabs(x - y) <= 2e-5 * scale);
}

static void same(hn_test *t, const results *a, const results *b, int n_out, bound how)
{
    for (int i = 0; i < n_out; i++) {
        const int64_t n = hn_tensor_numel(&a->out[i]);
        CHECK_EQ(n, hn_tensor_numel(&b->out[i]));
        double *x = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *x), *y = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *y);
        double scale = 1;
        hn_tensor_to_f64(&a->out[i], x);
        hn_tensor_to_f64(&b->out[i], y);
        for (int64_t k = 0; k < n; k++) scale = isfinite(x[k]) ? fmax(scale, fabs(x[k])) : scale;
        for (int64_t k = 0; k < n; k++)
            if (!close_enough(x[k], y[k], scale, how)) FAIL("output %d, element %lld: %.17g became %.17g", i, (long long)k, x[k], y[k]);
    }
}

/* One graph, `first` against `second` pipeline. */
static void compare_pipelines(hn_test *t, uint64_t seed, const hn_pipeline *first, const hn_pipeline *second, bound how,
                              fires *f)
{
    const bool smooth = how == ROUNDING;
    results x, y;
    hn_test_note("seed %llu:\n%s", (unsigned long long)seed, hn_test_text(t, hn_random_float_graph(t, seed, 12, smooth)));
    hn_graph *a = hn_random_float_graph(t, seed, 12, smooth), *b = hn_random_float_graph(t, seed, 12, smooth);
    optimise(t, a, first, false, NULL);
    optimise(t, b, second, smooth, f);
    for (uint64_t run = 0; run < 3; run++) {
        evaluate(t, a, smooth ? HN_EVAL_F64 : HN_EVAL_OWN, seed + run, !smooth, &x);
        evaluate(t, b, smooth ? HN_EVAL_F64 : HN_EVAL_OWN, seed + run, !smooth, &y);
        same(t, &x, &y, a->n_out, how);
        release(&x);
        release(&y);
    }
}

/* Every pass of the default pipeline that claims to keep each bit. */
static const hn_pipeline *bit_exact(hn_test *t)
{
    const hn_pipeline *all = hn_pipeline_find("default");
    int n = 0, kept = 0;
    while (all->step[n].pass) n++;
    hn_pipeline_step *step = hn_arena_alloc(t->arena, (size_t)n + 1, sizeof *step * 2);
    hn_pipeline *p = hn_arena_alloc(t->arena, 1, sizeof *p * 2);
    for (int i = 0; i < n; i++)
        if (hn_pass_find(all->step[i].pass)->keeps & HN_KEEP_NUMBERS) step[kept++] = all->step[i];
    step[kept] = (hn_pipeline_step){ NULL, 0 };
    *p = (hn_pipeline){ "bits", step, 8 };
    return p;
}

static uint64_t how_many(void)
{
    const char *many = getenv("HONE_LONG");
    return many && many[0] ? 30 * GRAPHS : GRAPHS;
}

static const hn_pipeline_step nothing[] = { { NULL, 0 } };
static const hn_pipeline untouched = { "untouched", nothing, 1 };

TEST(random_graphs_keep_bits)
{
    const hn_pipeline *p = bit_exact(t);
    for (uint64_t seed = 0; seed < how_many(); seed++) compare_pipelines(t, seed, &untouched, p, BITS, NULL);
}

TEST(random_graphs_keep_values_when_exact)
{
    for (uint64_t seed = 0; seed < how_many(); seed++)
        compare_pipelines(t, seed, hn_pipeline_find("none"), hn_pipeline_find("default"), VALUES, NULL);
}

TEST(random_graphs_keep_results)
{
    static const char *const must[] = {
        "fold_constants", "fold_identity", "fold_neutral", "fold_unit_axes", "merge_equal", "merge_reshape", "merge_cast",
        "merge_slice", "merge_concat", "merge_clip", "merge_transpose", "slice_gather", "slice_concat", "drop_broadcast",
        "cheaper_math", "sink_transpose", "sink_reshape", "transpose_operand", "absorb_scale", "absorb_bias", "absorb_input",
        "absorb_pad", "expand_composites", "merge_broadcast", "regroup_transpose",
    };
    fires f = { .n = 0 };
    for (uint64_t seed = 0; seed < how_many(); seed++)
        compare_pipelines(t, seed, &untouched, hn_pipeline_find("default"), ROUNDING, &f);
    for (int i = 0; i < HN_COUNT(must); i++) {
        int k = 0;
        while (k < f.n && strcmp(f.pass[k], must[i]) != 0) k++;
        if (k == f.n || f.fired[k] == 0) FAIL("%s never fired: the graphs do not try it", must[i]);
    }
}
