/* Models of f32 in fewer bits on a simulated GPU: what a route makes of them, and that a bound on the error tells routes apart. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../build/run_graph.h"
#include "../import/make.h"
#include "eval/eval.h"
#include "harness.h"
#include "runtime/runtime.h"
#include "simulate.h"

#define NET                                                                                                          \
    "in x f32[24,64]  const w f32[64,96]  const b f32[96]  const v f32[96,32]\n"                                      \
    "m = matmul(x, w)  a = add(m, b)  r = relu(a)  p = matmul(r, v)  s = softmax(p) {axis=1}\nout p  out s"

typedef struct made {
    hn_build_report r;
    double err; /* relative L2 of the first result */
} made;

static void run(hn_engine *e, hn_tensor *in, hn_tensor *y)
{
    hn_diag dg = { 0 };
    hn_context *c;
    CHECK_OK(hn_context_create(e, NULL, &c, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 0, in->data, in->bytes, &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    memcpy(y->data, hn_context_output_data(c, 1), y->bytes);
    hn_context_destroy(c);
}

static made make(hn_test *t, const char *route)
{
    hn_diag dg = { 0 };
    hn_target g;
    hn_graph *graph, *plain;
    hn_route parsed = { 0 };
    hn_engine *e;
    hn_tensor in = { 0 }, want[2] = { 0 }, got = { 0 };
    hn_metric err;
    made m = { 0 };
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(hn_target_get("sm_90a", &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, NET, &graph, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, NET, &plain, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &parsed, &dg), &dg);
    const hn_build_opts o = { .target = &g, .threads = 1, .model_name = "test", .route = &parsed, .cache_dir = getenv("HONE_CACHE_DIR") };
    CHECK_OK(hn_build_engine(t->arena, graph, &o, &data, &bytes, &m.r, &dg), &dg);
    CHECK_OK(hn_engine_from_memory(data, bytes, NULL, &e, &dg), &dg);
    CHECK_OK(hn_tensor_init(&in, &plain->in[0]->type, &dg), &dg);
    CHECK_OK(hn_tensor_init(&got, &plain->out[0].value->type, &dg), &dg);
    for (int i = 0; i < 24 * 64; i++) ((float *)in.data)[i] = (float)(i * 37 % 101) / 50 - 1;
    CHECK_OK(hn_eval_run(plain, &(hn_eval_opts){ .mode = HN_EVAL_F64 }, &in, want, &dg), &dg);
    run(e, &in, &got);
    CHECK_OK(hn_metric_compare(&got, &want[0], &want[0], 0, 0, &err, &dg), &dg);
    CHECK_EQ(err.n_nonfinite, 0);
    m.err = err.rel_l2;
    hn_engine_unref(e);
    hn_tensor_done(&in), hn_tensor_done(&want[0]), hn_tensor_done(&want[1]), hn_tensor_done(&got);
    return m;
}

static bool was_read(const hn_build_report *r, hn_knob k)
{
    for (int i = 0; i < r->n_read; i++)
        if (r->read[i].knob == k) return true;
    return false;
}

/* A bound of 1e-5 lets none of them through, one of 1e-3 f16 and tf32, one of 1e-2 all. */
TEST(precision_is_a_knob)
{
    hn_simulate(/* libraries= */ false);
    const made f32 = make(t, ""), tf32 = make(t, "-math:tf32=1"), f16 = make(t, "-math:half=f16"), bf16 = make(t, "-math:half=bf16");
    CHECK(f32.err < 1e-5);
    CHECK(tf32.err > 1e-5 && tf32.err < 1e-3);
    CHECK(f16.err > 1e-5 && f16.err < 1e-3);
    CHECK(bf16.err > 1e-3 && bf16.err < 1e-2);
    CHECK(!hn_digest_eq(f32.r.payload, f16.r.payload) && !hn_digest_eq(f16.r.payload, bf16.r.payload));
    CHECK(was_read(&f32.r, HN_KNOB_math_half)); /* so that the tuner tries it, where it is given a bound */
    CHECK(hn_knob_get(HN_KNOB_math_half)->changes_numbers);
}

/* Values between narrowed layers are 16 bits, and casts between them are parts of kernels; weights are half as large. */
TEST(precision_casts_are_fused)
{
    hn_simulate(/* libraries= */ false);
    const made f32 = make(t, ""), f16 = make(t, "-math:half=f16");
    CHECK_EQ(f16.r.n_region, f32.r.n_region + 1); /* the input is cast once */
    CHECK(f16.r.weight_bytes <= f32.r.weight_bytes * 6 / 10);
    bool half = false;
    for (int i = 0; i < f16.r.n_region; i++) half |= strncmp(f16.r.region[i].tactic, "gemm_half_mma", 13) == 0;
    CHECK(half);
}

/* ---- the tuner ---- */
static void write_model(const char *path)
{
    enum { DEPTH = 12, WIDTH = 12 };
    hn_str g = { 0 }, m = { 0 }, values = { 0 };
    FILE *f = fopen(path, "wb");
    for (int i = 0; i < DEPTH * WIDTH; i++) hn_str_addf(&values, "%s%.3f", i ? "," : "", (i * 37 % 101) / 101.0 - 0.5);
    g_floats(&g, "w", "12,12", hn_str_get(&values));
    g_input(&g, "x", F32, "40,12");
    g_node(&g, "MatMul", "x,w", "m", "");
    g_node(&g, "Relu", "m", "y", "");
    g_output(&g, "y", F32, "40,12");
    m_model(&m, &g, 17);
    CHECK(f && fwrite(m.s, 1, m.n, f) == m.n && fclose(f) == 0);
    hn_str_done(&m), hn_str_done(&values);
}

/* What a session says of a route that narrows the model, under this bound on the error; one line a trial. */
static bool is_rejected(hn_test *t, const char *dir, const char *bound)
{
    const char *command = hn_arena_printf(t->arena, "HONE_CACHE_DIR=%s '%s' tune %s/m.onnx -o %s/e.hone --store %s/%s.db --target sm_90a --budget 40 "
                                          "--strategy full --set=-core:opt_level=0 '--search=-math:half=[off|f16]' --accuracy rel_l2=%s 2>&1",
                                          dir, HONE_PROGRAM, dir, dir, dir, bound, bound);
    char line[1024], all[8192] = "";
    bool rejected = false, raced = false;
    FILE *f = popen(command, "r");
    CHECK(f);
    while (fgets(line, sizeof line, f)) {
        const bool of_f16 = strstr(line, "-math:half=f16") != NULL;
        rejected |= of_f16 && strncmp(line, "inaccurate", 10) == 0;
        raced |= of_f16 && (strncmp(line, "not faster", 10) == 0 || strncmp(line, "faster", 6) == 0);
        strncat(all, line, sizeof all - strlen(all) - 1);
    }
    if (pclose(f) != 0 || rejected == raced) FAIL("%s", all);
    return rejected;
}

TEST(precision_is_tuned_under_a_bound)
{
    char dir[] = "/tmp/hone_precision_XXXXXX";
    hn_simulate(/* libraries= */ false);
    CHECK(mkdtemp(dir));
    write_model(hn_arena_printf(t->arena, "%s/m.onnx", dir));
    CHECK(is_rejected(t, dir, "1e-5"));
    CHECK(!is_rejected(t, dir, "1e-2"));
    CHECK(system(hn_arena_printf(t->arena, "rm -r %s", dir)) == 0);
}
