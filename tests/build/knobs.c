/* Every knob is real: on a small graph two of its values give different engines, and both compute what evaluation computes.
 *
 * Payloads are compared for a named target without measuring, so that no machine matters; numbers are checked by running
 * on this one.
 */
#include "harness.h"
#include "run_graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- graphs ---- */
#define GEMM       "in x f32[40,96]  const w f32[96,160]  const b f32[160]\nm = matmul(x, w)  a = add(m, b)  r = relu(a)\nout r"
#define GEMM_TALL  "in x f32[200,1024]  const w f32[1024,64]\nm = matmul(x, w)\nout m"
#define GEMM_HEAVY "in x f32[48,1024]  const w f32[1024,256]\nm = matmul(x, w)\nout m"
#define MATMUL     "in x f32[2,40,48]  in y f32[2,48,96]\nm = matmul(x, y)\nout m"
#define INT8       "in x u8[40,64]  const w i8[64,160]\nm = matmul_int(x, w)\nout m"
#define INT8_WIDE  "in x u8[40,64]  const w i8[64,2048]\nm = matmul_int(x, w)\nout m"
#define QUANTISED  "in x u8[1,16,14,14]  const w i8[64,16,3,3]  const s f32[] = {0.1}  const t f32[] = {0.2}\n" \
                   "a = dequantize(x, s)  b = dequantize(w, t)  c = conv(a, b)\nout c"
#define RESIDUAL                                                                                                          \
    "in f u8[1,16,14,14]  const w i8[16,16,1,1]  const s f32[] = {0.05}  const t f32[] = {0.2}  const z u8[] = {99}\n"     \
    "x = dequantize(f, s, z)  b = dequantize(w, t)  p = conv(x, b)  q = quantize(p, s, z) {to=u8}\n"                       \
    "d = dequantize(q, s, z)  c = conv(d, b)  e = quantize(c, s, z) {to=u8}  g = dequantize(e, s, z)  r = add(d, g)\nout r"
#define CONV_INT8  "in x u8[1,16,14,14]  const w i8[64,16,3,3]\nc = conv_int(x, w) {pad_begin=[1,1], pad_end=[1,1]}\nout c"
#define CONV                                                                                                              \
    "in x f32[1,16,14,14]  const w f32[64,16,3,3]\nc = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}  r = relu(c)\nout r"
#define CONV_HEAVY "in x f32[1,128,14,14]  const w f32[128,128,3,3]\nc = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}\nout c"
#define CONV_WIDE  "in x f32[1,16,56,56]  const w f32[32,16,3,3]\nc = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}\nout c"
#define DEPTHWISE                                                                                                         \
    "in x f32[1,64,28,28]  const w f32[64,1,3,3]\nc = conv(x, w) {group=64, pad_begin=[1,1], pad_end=[1,1]}\nout c"
#define POINTWISE   "in x f32[300000]  in y f32[300000]\na = add(x, y)  e = exp(a)\nout e"
#define ROWS        "in x f32[33,257]  in y f32[257]\na = add(x, y)  e = exp(a)\nout e"
#define SUM_ALONG   "in x f32[40,500]\ns = reduce_sum(x) {axes=[1], keepdims=0}\nout s"
#define SUM_ACROSS  "in x f32[40,2048]\ns = reduce_sum(x) {axes=[0], keepdims=0}\nout s"
#define SOFTMAX     "in x f32[40,500]\ns = softmax(x) {axis=1}\nout s"
#define POOL        "in x f32[1,32,14,14]\np = max_pool(x) {kernel=[2,2], stride=[2,2], dim=[7,7]}\nout p"
#define TRANSPOSE   "in x f32[70,90]\nt = transpose(x) {perm=[1,0]}\nout t"
#define ATTENTION   "in q f32[1,2,40,32]  in k f32[1,2,48,32]  in v f32[1,2,48,32]\na = attention(q, k, v)\nout a"
#define LSTM        "in x f32[9,4,24]  const w f32[1,128,24]  const r f32[1,128,32]\n" \
                    "y, yh, yc = lstm(x, w, r) {hidden=32}\nout y"

#define PADDED      "in x f32[1,16,12,12]  const w f32[64,16,3,3]\n" \
                    "p = pad(x) {before=[0,0,1,1], after=[0,0,1,1]}  c = conv(p, w)\nout c"
#define SCALED      "in x f32[40,96]  const w f32[96,160]  const s f32[96]\nm = mul(x, s)  y = matmul(m, w)\nout y"
#define BATCHED     "in x f32[5,8,48]  in w f32[48,96]\ny = matmul(x, w)\nout y"
#define TURNED      "in x f32[70,90]  in y f32[70,90]\na = transpose(x) {perm=[1,0]}  b = transpose(y) {perm=[1,0]}\n" \
                    "c = add(a, b)  s = softmax(c) {axis=1}\nout s"
#define RESHAPED    "in x f32[40,96]  const w f32[96,160]\nm = matmul(x, w)  a = reshape(m) {dim=[40,10,16]}  r = relu(a)\nout r"
#define DIVIDED     "in x f32[3000]  const k f32[] = {3}\nd = div(x, k)\nout d"
#define LOOP        "in x f32[300]  const n i64 = {4}\n" \
                    "v, trips = loop(n, _, x) {\n  in i i64  in go bool  in p f32[300]\n  q = mul(p, x)\n  out go  out q\n}\nout v"
#define KEYS        "in x f32[2,40,48]  in y f32[2,96,48]\nk = transpose(y) {perm=[0,2,1]}  m = matmul(x, k)\nout m"
#define CHAIN                                                                                                             \
    "in x f32[40,96]  const w f32[96,160]  const v f32[160,33]  const u f32[33,500]\n"                                    \
    "a = matmul(x, w)  r = relu(a)  b = matmul(r, v)  c = matmul(b, u)  d = reduce_sum(c) {axes=[1]}  e = reduce_max(r) {axes=[1]}\n" \
    "f = add(d, e)\nout f"

#define FIRST                                                                                                             \
    "in x f32[1,3,30,30]  const w f32[16,3,3,3]\nc = conv(x, w) {stride=[2,2], pad_begin=[1,1], pad_end=[1,1]}\nout c"
#define LONG "in x f32[9,70]\na = exp(x)  b = neg(a)  c = tanh(b)  d = relu(c)  e = abs(d)  f = sqrt(e)\nout f"
#define TWO  "in x f32[9,70]  in y f32[9,70]\na = softmax(x) {axis=1}  b = log_softmax(y) {axis=1}  c = add(a, b)\nout c"
#define SHARED_VIEW                                                                                                       \
    "in x f32[6,70]  in y f32[70,6]\nt = transpose(x) {perm=[1,0]}  a = add(t, y)  s = cumsum(a)  b = mul(t, s)\nout b"
#define SHARED_WORK "in x f32[9,70]\nr = relu(x)  a = reduce_sum(r) {axes=[1]}  b = reduce_max(r) {axes=[1]}\nout a  out b"

#define HEADS       "in x f32[1,40,2,32]  in k f32[1,2,48,32]  in v f32[1,2,48,32]\nq = transpose(x) {perm=[0,2,1,3]}\n" \
                    "a = attention(q, k, v)  z = transpose(a) {perm=[0,2,1,3]}\nout z"

static const struct row {
    const char *knob, *graph, *base; /* base: settings without which the graph does not read the knob */
    const char *value[2];
} rows[] = {
    { "code:vectors", POINTWISE, "", { "auto", "v128" } },
    { "code:passes", POINTWISE, "", { "tidy", "full" } },
    { "plan:order", CHAIN, "", { "size", "start" } },
    { "plan:align", CHAIN, "", { "64", "4096" } },
    { "plan:inplace", CHAIN, "-region:epilogue=0", { "0", "1" } },
    { "thread:max", GEMM, "", { "0", "1" } },
    { "thread:grain", GEMM, "", { "1", "4" } },
    { "thread:cost", GEMM, "", { "even", "dear" } },
    { "layout:heads", HEADS, "", { "0", "1" } },
    { "layout:image", CONV, "", { "0", "1" } },
    { "layout:block", CONV, "-layout:image=2", { "8", "16" } },
    { "layout:plain_channels", FIRST, "", { "0", "4" } },
    { "layout:pools", POOL, "", { "0", "1" } },
    { "math:winograd", CONV_WIDE, "", { "0", "1" } },
    { "region:chain", ROWS, "", { "0", "1" } },
    { "region:epilogue", GEMM, "", { "0", "1" } },
    { "region:reduce_epilogue", "in x f32[9,70]\ns = reduce_sum(x) {axes=[1]}  r = relu(s)\nout r", "", { "0", "1" } },
    { "region:chain_max", LONG, "", { "4", "96" } },
    { "region:outputs", "in x f32[9,70]\na = exp(x)  b = neg(a)  c = tanh(b)\nout a  out b  out c", "", { "1", "4" } },
    { "region:follow", TWO, "", { "first", "last" } },
    { "region:copy_views", SHARED_VIEW, "", { "0", "1" } },
    { "region:recompute", SHARED_WORK, "", { "0", "1" } },
    { "region:widen", RESIDUAL, "", { "0", "1" } },
    { "region:prologue", "in x f32[9,70]\ne = exp(x)  s = reduce_sum(e) {axes=[1]}\nout s", "", { "0", "1" } },
    { "region:views", "in x f32[6,70]  in y f32[70,6]\nt = transpose(x) {perm=[1,0]}  a = add(t, y)\nout a", "", { "0", "1" } },
    { "tactic:gemm_packed", GEMM, "", { "0", "1" } },
    { "tactic:gemm_runtime", MATMUL, "", { "0", "1" } },
    { "tactic:gemm_int8", INT8, "", { "0", "1" } },
    { "tactic:conv_int8", CONV_INT8, "", { "0", "1" } },
    { "tactic:conv_direct", CONV, "", { "0", "1" } },
    { "tactic:depthwise", DEPTHWISE, "", { "0", "1" } },
    { "tactic:norm_line", SOFTMAX, "", { "0", "1" } },
    { "tactic:attention", ATTENTION, "", { "0", "1" } },
    { "tactic:recurrent", LSTM, "", { "0", "1" } },
    { "tactic:dynamic_quantize", "in x f32[6,70]\nq, s, z = dynamic_quantize(x)\nout q  out s  out z", "", { "0", "1" } },
    { "tactic:transpose", TRANSPOSE, "", { "0", "1" } },
    { "tactic:rank", GEMM, "", { "0", "1" } },
    { "pass:quantized", QUANTISED, "", { "0", "1" } },
    { "pass:absorb_pad", PADDED, "", { "0", "1" } },
    { "pass:absorb_input", SCALED, "", { "0", "1" } },
    { "pass:flatten_matmul", BATCHED, "", { "0", "1" } },
    { "pass:sink_transpose", TURNED, "", { "0", "1" } },
    { "pass:sink_reshape", RESHAPED, "", { "0", "1" } },
    { "pass:cheaper_math", DIVIDED, "", { "0", "1" } },
    { "pass:unroll", LOOP, "", { "0", "8" } },
    { "pass:transpose_operand", KEYS, "", { "0", "1" } },
    { "gemm:mr", GEMM, "", { "4", "8" } },
    { "gemm:nv", GEMM, "", { "2", "1" } },
    { "gemm:pack", GEMM_TALL, "", { "off", "on" } },
    { "gemm:unroll", GEMM, "", { "auto", "2" } },
    { "gemm:ahead", GEMM_HEAVY, "", { "auto", "off" } },
    { "gemm:rows", GEMM_TALL, "", { "24", "384" } },
    { "gemm:tiles", GEMM, "", { "auto", "1" } },
    { "matmul:mr", MATMUL, "", { "4", "8" } },
    { "matmul:nv", MATMUL, "", { "1", "2" } },
    { "matmul:pack", MATMUL, "", { "off", "on" } },
    { "conv:mr", CONV, "", { "6", "14" } },
    { "conv:nv", CONV, "", { "1", "2" } },
    { "conv:lanes", CONV, "", { "8", "16" } },
    { "conv:flat", CONV, "", { "off", "on" } },
    { "conv:tiles", CONV_WIDE, "", { "1", "16" } },
    { "conv:ahead", CONV_HEAVY, "", { "auto", "off" } },
    { "depthwise:places", DEPTHWISE, "", { "4", "8" } },
    { "depthwise:nv", DEPTHWISE, "", { "1", "2" } },
    { "depthwise:lanes", DEPTHWISE, "", { "8", "16" } },
    { "depthwise:copy", DEPTHWISE, "", { "off", "on" } },
    { "depthwise:tiles", DEPTHWISE, "", { "1", "16" } },
    { "wino:tile", CONV_WIDE, "-math:winograd=1", { "2", "4" } },
    { "wino:mr", CONV_WIDE, "-math:winograd=1", { "6", "14" } },
    { "wino:nv", CONV_WIDE, "-math:winograd=1", { "1", "2" } },
    { "wino:tiles", CONV_WIDE, "-math:winograd=1", { "1", "16" } },
    { "int8:mr", INT8, "", { "4", "8" } },
    { "int8:nv", INT8, "", { "1", "2" } },
    { "int8:tiles", INT8_WIDE, "", { "1", "16" } },
    { "attention:mr", ATTENTION, "", { "2", "6" } },
    { "attention:nv", ATTENTION, "", { "1", "2" } },
    { "norm:chains", SOFTMAX, "", { "1", "4" } },
    { "reduce:chains", SUM_ALONG, "", { "1", "4" } },
    { "reduce:slice", SUM_ACROSS, "", { "64", "1024" } },
    { "recurrent:nb", LSTM, "", { "1", "2" } },
    { "recurrent:mb", LSTM, "", { "1", "4" } },
    { "recurrent:mr", LSTM, "", { "1", "6" } },
    { "pointwise:lanes", POINTWISE, "", { "1", "16" } },
    { "pointwise:chunk", POINTWISE, "", { "auto", "4096" } },
    { "pointwise:unroll", POINTWISE, "", { "auto", "4" } },
    { "pool:lanes", POOL, "", { "1", "16" } },
};

/* ---- building ---- */
static void build(hn_arena *a, const char *graph, const char *route, hn_build_report *ret)
{
    hn_diag dg = { 0 };
    hn_target target;
    hn_route r = { 0 };
    hn_graph *g = NULL;
    void *data = NULL;
    size_t bytes = 0;
    CHECK_OK(hn_target_get("znver4", &target, &dg), &dg);
    CHECK_OK(hn_route_parse(a, route, &r, &dg), &dg);
    CHECK_OK(hn_parse(a, graph, &g, &dg), &dg);
    const hn_build_opts o = { .target = &target, .route = &r, .threads = 4, .cache_dir = getenv("HONE_CACHE_DIR"),
                              .model_name = "test" };
    CHECK_OK(hn_build_engine(a, g, &o, &data, &bytes, ret, &dg), &dg);
    free(data);
}

static const char *route_of(hn_arena *a, const struct row *r, int i)
{
    return hn_arena_printf(a, "%s -%s=%s", r->base, r->knob, r->value[i]);
}

static bool was_read(const hn_build_report *r, hn_knob k)
{
    for (int i = 0; i < r->n_read; i++)
        if (r->read[i].knob == k) return true;
    return false;
}

TEST(every_tunable_knob_changes_an_engine)
{
    for (int i = 0; i < HN_COUNT(rows); i++) {
        const hn_knob_def *k = hn_knob_find(rows[i].knob, strlen(rows[i].knob));
        hn_build_report r[2];
        hn_test_note("%s", rows[i].knob);
        CHECK(k);
        for (int v = 0; v < 2; v++) {
            build(t->arena, rows[i].graph, route_of(t->arena, &rows[i], v), &r[v]);
            CHECK(was_read(&r[v], k->id));
        }
        if (hn_digest_eq(r[0].payload, r[1].payload))
            FAIL("-%s=%s and =%s give one engine", rows[i].knob, rows[i].value[0], rows[i].value[1]);
    }
}

/* Knobs of GPUs have graphs of their own in tests/cuda. */
static const char *const of_gpus[] = { "tactic:cublaslt", "tactic:cudnn", "tactic:matrix_units", "plan:early", "plan:streams", "layout:columns",
                                       "gemm:lines" };

/* How candidates are timed: tests/cuda/race.c. */
static const char *const of_races[] = { "tactic:operands", "tactic:width" };

TEST(every_tunable_knob_has_a_graph)
{
    for (int i = 0; i < hn_knob_count(); i++) {
        const hn_knob_def *k = hn_knob_at(i);
        /* Recognition has tests of its own, a graph a knob: fuse.c here. What GPUs alone read: tests/cuda. */
        bool found = !k->tunable || strncmp(k->name, "fuse:", 5) == 0 || k->id == HN_KNOB_math_tf32 || k->id == HN_KNOB_math_half;
        for (int j = 0; j < HN_COUNT(rows) && !found; j++) found = strcmp(rows[j].knob, k->name) == 0;
        for (int j = 0; j < HN_COUNT(of_gpus) && !found; j++) found = strcmp(of_gpus[j], k->name) == 0;
        for (int j = 0; j < HN_COUNT(of_races) && !found; j++) found = strcmp(of_races[j], k->name) == 0;
        if (!found) FAIL("no row shows that \"-%s\" is real", k->name);
    }
}

/* Both values of every third row compute what evaluation does, whatever this machine's kernels are. */
static void compute_alike(hn_arena *a, int first)
{
    for (int i = first; i < HN_COUNT(rows); i += 3)
        for (int v = 0; v < 2; v++) {
            const char *route = route_of(a, &rows[i], v);
            hn_test_note("%s", route);
            hn_check_graph(rows[i].graph, &(hn_run_opts){ .route = route, .cache_dir = getenv("HONE_CACHE_DIR"), .tol = 1e-4 });
        }
}

TEST(every_value_computes_the_same_1)
{
    compute_alike(t->arena, 0);
}

TEST(every_value_computes_the_same_2)
{
    compute_alike(t->arena, 1);
}

TEST(every_value_computes_the_same_3)
{
    compute_alike(t->arena, 2);
}

/* ---- when a knob is read ---- */
TEST(a_model_does_not_read_what_it_cannot_use)
{
    static const char *const others[] = { "gemm:mr", "conv:mr", "depthwise:copy", "wino:tile", "int8:nv", "attention:mr",
                                          "recurrent:nb", "tactic:gemm_packed", "layout:image", "math:winograd",
                                          "reduce:chains", "region:epilogue" };
    hn_build_report r;
    build(t->arena, POINTWISE, "", &r);
    for (int i = 0; i < HN_COUNT(others); i++) {
        hn_test_note("%s", others[i]);
        CHECK(!was_read(&r, hn_knob_find(others[i], strlen(others[i]))->id));
    }
    build(t->arena, CONV_WIDE, "", &r);
    CHECK(was_read(&r, HN_KNOB_math_winograd));
    CHECK(!was_read(&r, HN_KNOB_wino_tile)); /* only once Winograd is allowed */
    CHECK(!was_read(&r, HN_KNOB_gemm_mr));
}

static const hn_candidate_report *refused(const hn_build_report *r, const char *tactic)
{
    for (int i = 0; i < r->region[0].n_candidate; i++) {
        const hn_candidate_report *c = &r->region[0].candidate[i];
        if (strcmp(c->tactic, tactic) == 0 && c->reason) return c;
    }
    return NULL;
}

TEST(a_pin_that_no_point_meets_does_not_apply)
{
    static const char few[] = "in x f32[8,96]  const w f32[96,160]\nm = matmul(x, w)\nout m";
    hn_build_report r[2];
    build(t->arena, few, "", &r[0]);
    build(t->arena, few, "-gemm:mr=14", &r[1]); /* more rows than there are */
    CHECK(hn_digest_eq(r[0].payload, r[1].payload));
    const hn_candidate_report *c = refused(&r[1], "gemm_f32_packed__cpu");
    CHECK(c && strstr(c->reason, "-gemm:mr=14"));
    CHECK(!refused(&r[0], "gemm_f32_packed__cpu"));
}

TEST(a_switched_off_tactic_says_so)
{
    hn_build_report r;
    build(t->arena, GEMM_TALL, "-tactic:gemm_packed=0", &r);
    const hn_candidate_report *c = refused(&r, "gemm_f32_packed__cpu");
    CHECK(c && strstr(c->reason, "knob"));
    CHECK(strncmp(r.region[0].tactic, "gemm_f32_packed", 15) != 0);
}

/* Two equal regions of which a pattern names one. */
/* A result takes its operand's place only where nothing else reads the operand. */
TEST(results_over_operands)
{
    static const char *const text[] = {
        "in x f32[40,96]  in y f32[40,96]\na = cumsum(x)  b = add(a, y)  c = cumsum(b)\nout c",
        "in x f32[40,96]\na = cumsum(x)  b = exp(a)  c = cumsum(b)  d = cumsum(a)\nout c  out d",
        "in x f32[40,40]\na = cumsum(x)  t = transpose(a) {perm=[1,0]}  b = add(a, t)  c = cumsum(b)\nout c",
        "in x f32[40,96]\na = cumsum(x)  b = exp(a)  n = neg(a)  c = cumsum(b)  d = cumsum(n)\nout c  out d",
        "in x f32[40,96]\na = cumsum(x)  s = slice(a) {start=[1,0], step=[1,1], dim=[4,96]}  b = exp(a)  c = cumsum(b)\nout c  out s",
        "sym n [1,9,64]\nin x f32[n,33]\na = cumsum(x)  b = exp(a)  c = cumsum(b)  d = relu(c)  e = cumsum(d)\nout e",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        for (int chain = 0; chain < 2; chain++) {
            hn_test_note("%s", text[i]);
            hn_check_graph(text[i], &(hn_run_opts){ .route = chain ? "" : "-region:chain=0", .tol = 1e-4 });
        }
}

TEST(a_pattern_reaches_one_of_two_equal_regions)
{
    static const char twins[] = "in x f32[40,96]  const w f32[96,96]  const v f32[96,96]\n"
                                "m = matmul(x, w) from \"/body/m\"\nn = matmul(m, v) from \"/head/n\"\nout n";
    hn_build_report r;
    build(t->arena, twins, "-gemm:mr@/head/*=12", &r);
    CHECK_EQ(r.n_region, 2);
    hn_test_note("%s, %s", r.region[0].tactic, r.region[1].tactic);
    CHECK(!strstr(r.region[0].tactic, "_mr12_") && strstr(r.region[1].tactic, "_mr12_"));
}

/* ---- one region by its digest ---- */
TEST(a_label_names_a_region_wherever_it_stands)
{
    static const char two[] = "in x f32[40,96]  const w f32[96,96]  const v f32[96,96]  const u f32[96,160]\n"
                              "a = matmul(x, w)  b = matmul(a, v)  c = matmul(b, u)\nout c";
    hn_build_report plain, ranked;
    build(t->arena, two, "", &plain);
    CHECK_EQ(plain.n_region, 3);
    CHECK_STR(plain.region[0].label, plain.region[1].label);
    CHECK(strcmp(plain.region[0].label, plain.region[2].label) != 0);
    build(t->arena, two, hn_arena_printf(t->arena, "-tactic:rank@%s=1", plain.region[0].label), &ranked);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(strcmp(plain.region[i].tactic, ranked.region[i].tactic) != 0, i < 2);
        CHECK_STR(plain.region[i].label, ranked.region[i].label);
    }
    build(t->arena, two, "-tactic:rank=7", &ranked); /* and where there are fewer, the last of them */
    CHECK(strcmp(plain.region[0].tactic, ranked.region[0].tactic) != 0);
}
