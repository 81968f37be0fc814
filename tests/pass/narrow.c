/* narrow_float: what a route narrows, what stays, and how far the numbers go. */
#include <math.h>

#include "pass/pass_test.h"

static int run(hn_test *t, const char *text, const char *target, const char *route, hn_graph **ret)
{
    static const hn_pipeline_step step[] = { { "narrow_float", 0 }, { "merge_cast", 0 }, { "fold_constants", 0 }, { NULL, 0 } };
    const hn_pipeline p = { "test", step, 8 };
    const hn_pass_debug debug = { .validate = true };
    hn_diag dg = { 0 };
    hn_target g;
    hn_route r = { 0 };
    hn_pass_stat stat[4];
    int n = 4, fired = 0;
    *ret = hn_test_graph(t, text);
    CHECK_OK(hn_target_get(target, &g, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &r, &dg), &dg);
    hn_pass_ctx c = { .knobs = hn_knobs_new(t->arena, &r), .target = &g, .scratch = hn_arena_create(), .allow_inexact = true };
    CHECK_OK(hn_pipeline_run(*ret, &p, &c, &debug, stat, &n, &dg), &dg);
    hn_arena_destroy(c.scratch);
    for (int i = 0; i < n; i++)
        if (stat[i].pass == hn_pass_find("narrow_float")->name) fired = stat[i].fired;
    return fired;
}

static int count_type(const hn_graph *g, hn_dtype d)
{
    int n = 0;
    HN_FOR_NODES (x, g) n += x->out[0]->type.dtype == d;
    return n;
}

#define LAYER                                                                                                          \
    "in x f32[3,8]  const w f32[8,6]  const b f32[6]  const v f32[6,4]\n"                                                \
    "e = exp(x)  m = matmul(e, w)  a = add(m, b)  r = relu(a)  t = transpose(r) {perm=[1,0]}  p = matmul(t, v) {trans_a=1}\n" \
    "s = softmax(p) {axis=1}  q = reduce_sum(s) {axes=[1]}  c = gt(s, q)\nout s  out q  out c"

TEST(narrow_float_fires)
{
    static const hn_dtype type[] = { HN_F16, HN_BF16 };
    static const char *const route[] = { "-math:half=f16", "-math:half=bf16" };
    for (int i = 0; i < 2; i++) {
        hn_graph *g;
        CHECK_EQ(run(t, LAYER, "sm_90a", route[i], &g), 6); /* two products, add, relu, transpose, softmax */
        CHECK_EQ(count_type(g, type[i]), 7); /* those, and what enters the first product */
        CHECK_EQ(hn_test_count_ops(g, HN_OP_cast), 2); /* in, and out again for what stays f32 */
        CHECK_EQ(hn_producer(g->out[1].value)->op, HN_OP_reduce_sum);
        CHECK_EQ(g->out[0].value->type.dtype, HN_F32);
        HN_FOR_NODES (n, g)
            if (n->op == HN_OP_exp || n->op == HN_OP_reduce_sum) CHECK_EQ(n->out[0]->type.dtype, HN_F32);
    }
}

TEST(narrow_float_does_not_fire)
{
    static const struct {
        const char *text, *target, *route;
    } all[] = {
        { LAYER, "sm_90a", "" },
        { LAYER, "znver4", "-math:half=f16" },
        { "in x f32[3,8]  e = exp(x)  s = softmax(e) {axis=1}\nout s", "sm_90a", "-math:half=f16" }, /* no contraction before */
        { "in x f64[3,8]  in y f64[8,2]  e = matmul(x, y)\nout e", "sm_90a", "-math:half=f16" },
        { "in x f16[3,8]  in y f16[8,2]  e = matmul(x, y)  f = cast(e) {to=f32}  g = exp(f)\nout g", "sm_90a", "-math:half=bf16" },
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(all); i++) {
        hn_test_note("case %d", i);
        CHECK_EQ(run(t, all[i].text, all[i].target, all[i].route, &g), 0);
    }
}

/* A pattern narrows some nodes; the others, and what lies between, stay as they are. */
TEST(narrow_float_by_node)
{
    static const char text[] = "in x f32[3,8]  const w f32[8,6]  const v f32[6,4]\n"
                               "m = matmul(x, w) from \"/a/m\"\nr = relu(m) from \"/a/r\"\np = matmul(r, v) from \"/b/p\"\nout p";
    hn_graph *g;
    CHECK_EQ(run(t, text, "sm_90a", "-math:half@/b/*=f16", &g), 1);
    HN_FOR_NODES (n, g)
        if (n->op == HN_OP_matmul) CHECK_EQ(n->out[0]->type.dtype == HN_F16, n->out[0]->n_uses == 1 && hn_in(n, 1)->type.dim[1] == 4);
    CHECK_EQ(run(t, text, "sm_90a", "-math:half=f16 -math:half@/a/r=off", &g), 2);
}

/* Errors stay within what 11 and 8 significant bits leave of sums of six to eight. */
TEST(narrow_float_numbers)
{
    static const char *const route[] = { "-math:half=f16", "-math:half=bf16" };
    static const double bound[] = { 0x1p-9, 0x1p-6 };
    for (int i = 0; i < 2; i++) {
        hn_graph *g;
        hn_diag dg = { 0 };
        hn_tensor in = { 0 }, x[3] = { 0 }, y[3] = { 0 };
        hn_rng r;
        hn_rng_init(&r, 3);
        run(t, LAYER, "sm_90a", route[i], &g);
        CHECK_OK(hn_tensor_init(&in, &g->in[0]->type, &dg), &dg);
        hn_test_fill(&r, &in, false);
        CHECK_OK(hn_eval_run(hn_test_graph(t, LAYER), &(hn_eval_opts){ .mode = HN_EVAL_OWN }, &in, x, &dg), &dg);
        CHECK_OK(hn_eval_run(g, &(hn_eval_opts){ .mode = HN_EVAL_OWN }, &in, y, &dg), &dg);
        double worst = 0, a[12], b[12];
        hn_tensor_to_f64(&x[0], a);
        hn_tensor_to_f64(&y[0], b);
        for (int k = 0; k < 12; k++) worst = fmax(worst, fabs(a[k] - b[k]));
        CHECK(worst > 0 && worst < bound[i] * 8);
        hn_tensor_done(&in);
        for (int k = 0; k < 3; k++) hn_tensor_done(&x[k]), hn_tensor_done(&y[k]);
    }
}
