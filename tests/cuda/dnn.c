/* Convolutions by a simulated cuDNN from end to end: what is fused, what follows in a kernel, which engines are taken, what an engine
 * file keeps. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/image.h"
#include "core/libcall.h"
#include "dev/dev.h"
#include "engine/engine.h"
#include "lib_built.h"
#include "simulate.h"

#define ALONE "-tactic:matrix_units=0 -tactic:cublaslt=0"

static void check(const char *text, int n_call, int n_kernel)
{
    hn_check_calls(text, ALONE, n_call, n_kernel);
}

/* Images of one pixel need no reorders around them; of others the counts tell. */
TEST(dnn_convolutions_alone)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[2,64,9,7]  const w f16[32,64,3,3]\ny = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}\nout y", 1, 2);
    check("in x bf16[1,64,9,7]  const w bf16[40,64,3,3]\ny = conv(x, w)\nout y", 1, 2);
    check("in x f32[1,64,9,7]  const w f32[40,64,2,3]\ny = conv(x, w)\nout y", 1, 2);
    check("in x f16[128,256,1,1]  const w f16[512,256,1,1]\ny = conv(x, w)\nout y", 1, 0);
    check("in x f16[2,64,29]  const w f16[32,64,3]\ny = conv(x, w) {pad_begin=[1], pad_end=[1]}\nout y", 1, 2);
}

TEST(dnn_windows)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[1,64,11,9]  const w f16[32,64,3,3]\ny = conv(x, w) {stride=[2,1], pad_begin=[1,0], pad_end=[0,2]}\nout y", 1, 2);
    check("in x f16[1,64,11,9]  const w f16[32,64,3,2]\ny = conv(x, w) {dilation=[2,3], pad_begin=[2,1], pad_end=[1,3]}\nout y", 1, 2);
    check("in x f16[1,64,12,12]  const w f16[32,64,5,5]\ny = conv(x, w) {stride=[3,2], dilation=[2,1], pad_begin=[0,3], pad_end=[4,0]}\nout y", 1, 2);
    check("in x f16[1,96,11]  const w f16[64,96,4]\ny = conv(x, w) {stride=[2], dilation=[2], pad_begin=[3], pad_end=[0]}\nout y", 1, 2);
}

TEST(dnn_groups)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[1,128,9,8]  const w f16[128,64,3,3]  const b f16[128]\n"
          "y = conv(x, w, b) {group=2, pad_begin=[1,1], pad_end=[1,1]}  z = relu(y)\nout z", 1, 2);
}

/* A first layer's image is stored anew ahead of the call, its few channels filled up where that pays. */
TEST(dnn_images_stored_ahead)
{
    static const char *const last = "y = conv(x, w, b) {stride=[2,2], pad_begin=[3,3], pad_end=[3,3]}  z = relu(y)\nout z";
    hn_simulate(/* libraries= */ true);
    check(hn_arena_printf(t->arena, "in x f16[2,3,30,31]  const w f16[64,3,7,7]  const b f16[64]\n%s", last), 1, 2);
    check(hn_arena_printf(t->arena, "in x f16[1,5,30,31]  const w f16[64,5,7,7]  const b f16[64]\n%s", last), 1, 2);
    check(hn_arena_printf(t->arena, "in x bf16[1,36,30,31]  const w bf16[64,36,7,7]  const b bf16[64]\n%s", last), 1, 2);
    static const char small[] = "in x f16[1,3,17,16]  const w f16[64,3,7,7]\ny = conv(x, w)\nout y";
    hn_gpu_build b = hn_build_for_gpu(t, small, ALONE, false);
    CHECK(strstr(b.r.region[0].tactic, "channels4") != NULL);
    free(b.data);
    check(small, 1, 2);
}

#define FUSES "in x f16[1,64,9,8]  const w f16[64,64,3,3]  const b f16[64]\ny = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}  "
#define FUSES_BARE "in x f16[1,64,9,8]  const w f16[64,64,3,3]  const b f16[1,64,1,1]\ny = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}  "

TEST(dnn_what_the_library_fuses)
{
    hn_simulate(/* libraries= */ true);
    check(FUSES "z = relu(y)\nout z", 1, 2);
    check(FUSES "a = add(y, x)\nout a", 1, 2);
    check(FUSES "a = add(x, y)  z = relu(a)\nout z", 1, 2);
    check(FUSES_BARE "a = add(y, b)  c = add(a, x)  z = relu(c)\nout z", 1, 2);
    check("in x f32[1,64,9,8]  const w f32[64,64,3,3]  const b f32[64]\n"
          "y = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}  a = add(y, x)  z = relu(a)\nout z", 1, 2);
}

TEST(dnn_with_a_kernel_for_the_rest)
{
    hn_simulate(/* libraries= */ true);
    check(FUSES "z = sigmoid(y)\nout z", 1, 3);
    check(FUSES "s = sigmoid(y)  z = mul(y, s)\nout z", 1, 3);
    check(FUSES "z = relu(y)  a = add(z, x)\nout a", 1, 3); /* behind the activation: no addend of the library's */
    check(FUSES_BARE "z = relu(y)\nout z", 1, 3);           /* without a bias it has nothing ready */
    check(FUSES_BARE "a = add(y, x)\nout a", 1, 3);
    check(FUSES "z = relu(y)\nout z  out y", 1, 4);
    hn_check_calls(FUSES "a = add(y, x)  z = relu(a)\nout z", ALONE " -core:exact=1", 1, 3); /* the sum is rounded before the addend */
}

/* ---- attention ---- */
#define QKV(b, h, hk, s, keys, d, dv) \
    "in q f16[" b "," h "," s "," d "]  in k f16[" b "," hk "," keys "," d "]  in v f16[" b "," hk "," keys "," dv "]\n"

#define BY_IT ALONE " -tactic:attention=0" /* our own may be predicted to be as fast */

TEST(dnn_attention)
{
    hn_simulate(/* libraries= */ true);
    hn_check_calls(QKV("2", "4", "4", "160", "160", "64", "64") "y = attention(q, k, v)\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "4", "4", "150", "301", "32", "48") "y = attention(q, k, v) {scale=0.25}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "4", "2", "160", "160", "64", "64") "y = attention(q, k, v)\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "8", "8", "250", "250", "64", "64") "y = attention(q, k, v)  z = exp(y)\nout z", BY_IT, 1, 1);
    hn_check_calls("in q bf16[1,4,160,64]  in k bf16[1,4,160,64]  in v bf16[1,4,160,64]\ny = attention(q, k, v)\nout y", BY_IT, 1, 0);
    /* heads behind one another in each row, as projections leave them */
    hn_check_calls("in q f16[1,160,4,64]  in k f16[1,160,4,64]  in v f16[1,160,4,64]\n"
          "a = transpose(q) {perm=[0,2,1,3]}  b = transpose(k) {perm=[0,2,1,3]}  c = transpose(v) {perm=[0,2,1,3]}\n"
          "y = attention(a, b, c)  z = transpose(y) {perm=[0,2,1,3]}\nout z", BY_IT, 1, 0);
}

/* A query sees keys up to its own number; counted from the last ones where fewer queries than keys are there and the model says so. */
TEST(dnn_causal_attention)
{
    hn_simulate(/* libraries= */ true);
    hn_check_calls(QKV("2", "4", "4", "160", "160", "64", "64") "y = attention(q, k, v) {causal=upper_left}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("2", "4", "4", "160", "160", "64", "64") "y = attention(q, k, v) {causal=lower_right}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "4", "2", "150", "301", "32", "48") "y = attention(q, k, v) {causal=upper_left, scale=0.25}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "4", "2", "150", "301", "32", "48") "y = attention(q, k, v) {causal=lower_right}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "2", "2", "301", "150", "64", "64") "y = attention(q, k, v) {causal=upper_left}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("4", "8", "8", "1", "512", "64", "64") "y = attention(q, k, v) {causal=lower_right}\nout y", BY_IT, 1, 0);
    hn_check_calls(QKV("1", "8", "8", "250", "250", "64", "64") "y = attention(q, k, v) {causal=upper_left}  z = exp(y)\nout z", BY_IT, 1, 1);
    hn_check_calls("in q bf16[1,4,160,64]  in k bf16[1,4,160,64]  in v bf16[1,4,160,64]\ny = attention(q, k, v) {causal=upper_left}\nout y", BY_IT, 1, 0);
    hn_check_calls("in q f16[1,160,4,64]  in k f16[1,160,2,64]  in v f16[1,160,2,64]\n"
          "a = transpose(q) {perm=[0,2,1,3]}  b = transpose(k) {perm=[0,2,1,3]}  c = transpose(v) {perm=[0,2,1,3]}\n"
          "y = attention(a, b, c) {causal=lower_right}  z = transpose(y) {perm=[0,2,1,3]}\nout z", BY_IT, 1, 0);
}

/* What a causal query does not see does not reach it: no number of the keys' or the values', however large. */
TEST(dnn_causal_attention_hides)
{
    enum { ROWS = 130, WIDTH = 16, HIDDEN = (ROWS - 1) * WIDTH };
    static const double large[] = { 300 /* queries */, 6e4, -6e4 };
    static double x[ROWS * WIDTH];
    static uint16_t half[3][ROWS * WIDTH];
    hn_tensor in[3];
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < ROWS * WIDTH; k++) x[k] = (double)((k * 7 + i) % 13 - 6) / 8;
        for (int k = 0; k < WIDTH; k++) x[i == 0 ? k : HIDDEN + k] = large[i];
        hn_narrow_f64(HN_F16, x, ROWS * WIDTH, half[i], 0, /* saturate= */ false);
        in[i] = (hn_tensor){ .type = { .dtype = HN_F16, .rank = 4, .dim = { 1, 1, ROWS, WIDTH } }, .data = half[i] };
    }
    const int before = hn_sim_counts()->library_calls;
    hn_check_graph("in q f16[1,1,130,16]  in k f16[1,1,130,16]  in v f16[1,1,130,16]\ny = attention(q, k, v) {causal=upper_left}\nout y",
                   &(hn_run_opts){ .target = "sm_90a", .route = BY_IT, .tol = 2e-3, .in = in });
    CHECK_EQ(hn_sim_counts()->library_calls, before + 1);
}

/* Other masks are other tactics', and queries that see no key. */
TEST(dnn_attention_that_it_has_not)
{
    static const char *const all[] = { QKV("1", "2", "2", "64", "64", "64", "64") "y = attention(q, k, v) {softcap=3}\nout y",
                                       QKV("1", "2", "2", "65", "64", "64", "64") "y = attention(q, k, v) {causal=lower_right}\nout y",
                                       QKV("1", "2", "2", "64", "64", "64", "64") "in m f16[64,64]\ny = attention(q, k, v, m)\nout y" };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(all); i++) {
        hn_gpu_build b = hn_build_for_gpu(t, all[i], ALONE, false);
        CHECK(strstr(hn_why_not(&b.r, "attention_half_cudnn__lib"), "attribute") != NULL);
        free(b.data);
    }
}

/* What is not stored is no number: padding is zero beside it, and relu lets it through. */
TEST(dnn_hostile_values)
{
    enum { PIXELS = 9 * 8, CHANNELS = 64 };
    static float x[CHANNELS * PIXELS];
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(x); i++) x[i] = (float)(i % 13 - 6) / 8;
    x[5] = NAN, x[PIXELS + 7] = INFINITY, x[3 * PIXELS] = -INFINITY, x[20 * PIXELS + 71] = -0.0f, x[40] = 1e-42f, x[90] = 1e30f;
    hn_tensor in = { .type = { .dtype = HN_F32, .rank = 4, .dim = { 1, CHANNELS, 9, 8 } }, .data = x };
    const int before = hn_sim_counts()->library_calls;
    hn_check_graph("in x f32[1,64,9,8]  const w f32[64,64,3,3]  const b f32[64]\n"
                   "y = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}  z = relu(y)\nout z",
                   &(hn_run_opts){ .target = "sm_90a", .route = ALONE, .tol = 1e-4, .in = &in });
    CHECK_EQ(hn_sim_counts()->library_calls, before + 1);
}

TEST(dnn_of_tf32)
{
    static const char text[] = "in x f32[128,512,1,1]  const w f32[512,512,1,1]  const b f32[512]\ny = conv(x, w, b)  z = relu(y)\nout z";
    hn_simulate(/* libraries= */ true);
    hn_gpu_build off = hn_build_for_gpu(t, text, ALONE, false), on = hn_build_for_gpu(t, text, ALONE " -math:tf32=1", false);
    CHECK(strstr(hn_why_not(&off.r, "conv_tf32_cudnn__lib"), "numbers") != NULL);
    CHECK(strncmp(on.r.region[0].tactic, "conv_tf32_cudnn__lib", 20) == 0);
    CHECK(strncmp(off.r.region[0].tactic, "conv_float_cudnn__lib", 21) == 0);
    free(off.data), free(on.data);
    const int before = hn_sim_counts()->library_calls;
    hn_check_graph("in x f32[1,64,9,7]  const w f32[64,64,3,3]\ny = conv(x, w)\nout y",
                   &(hn_run_opts){ .target = "sm_90a", .route = ALONE " -math:tf32=1", .tol = 1e-3 });
    CHECK_EQ(hn_sim_counts()->library_calls, before + 1);
}

/* ---- choosing ---- */
#define SHORT "in x f16[1,64,9,7]  const w f16[64,64,3,3]  const b f16[64]\ny = conv(x, w, b)  z = relu(y)\nout z"

TEST(dnn_engines_say_what_they_need)
{
    hn_diag dg = { 0 };
    hn_engine_file *f;
    hn_simulate(/* libraries= */ true);
    hn_gpu_build b = hn_build_for_gpu(t, SHORT, ALONE, false), off = hn_build_for_gpu(t, SHORT, ALONE " -tactic:cudnn=0", false);
    CHECK_OK(hn_engine_file_open_memory(b.data, b.bytes, NULL, &f, &dg), &dg);
    CHECK(strstr(hn_engine_file_manifest(f), "cuDNN 9.19.0") != NULL);
    hn_engine_file_close(f);
    CHECK(!hn_digest_eq(b.r.payload, off.r.payload));
    free(b.data), free(off.data);
}

TEST(dnn_a_missing_library_is_named)
{
    hn_simulate(/* libraries= */ false);
    hn_gpu_build b = hn_build_for_gpu(t, SHORT, "", false);
    for (int i = 0; i < b.r.n_region; i++) CHECK(strstr(b.r.region[i].tactic, "cudnn") == NULL);
    for (int i = 0; i < b.r.n_read; i++) CHECK(b.r.read[i].knob != HN_KNOB_tactic_cudnn);
    free(b.data);
}

/* Heads that are too wide for our own attention are the library's, and spelt out where it is not here. */
#define WIDE QKV("1", "2", "2", "65", "65", "256", "256") "y = attention(q, k, v) {causal=upper_left}\nout y"

TEST(dnn_wide_heads)
{
    hn_simulate(/* libraries= */ true);
    check(WIDE, 1, 0);
}

TEST(dnn_wide_heads_without_it)
{
    hn_simulate(/* libraries= */ false);
    hn_gpu_build b = hn_build_for_gpu(t, WIDE, ALONE, false);
    CHECK(b.r.n_region > 1);
    free(b.data);
}

/* All that is stated of it fits, and the library has no engine: this version knows no causal mask over one query. */
TEST(dnn_refused_when_asked)
{
    static const char one[] = QKV("1", "2", "2", "1", "65", "256", "256") "y = attention(q, k, v) {causal=upper_left}\nout y";
    hn_simulate(/* libraries= */ true);
    check(one, 1, 0);
    CHECK(setenv("HONE_SIM_CUDNN", "90900", 1) == 0);
    hn_gpu_build b = hn_build_for_gpu(t, one, ALONE, false);
    CHECK(b.r.n_region > 1);
    for (int i = 0; i < b.r.n_region; i++) CHECK(strstr(b.r.region[i].tactic, "cudnn") == NULL);
    free(b.data);
    CHECK(unsetenv("HONE_SIM_CUDNN") == 0);
}

/* Nobody can be asked: what the library once took stays, what is not known is spelt out, or there would be no engine. */
TEST(dnn_asked_by_a_frozen_build)
{
    char dir[] = "/tmp/hone-test-XXXXXX";
    CHECK(mkdtemp(dir) != NULL);
    const char *cache = hn_arena_printf(t->arena, "%s/timing", dir);
    hn_simulate(/* libraries= */ true);
    hn_gpu_build unknown = hn_build_for_gpu_by(t, WIDE, ALONE, /* frozen= */ true, cache);
    CHECK(unknown.r.n_region > 1);
    hn_gpu_build asked = hn_build_for_gpu_by(t, WIDE, ALONE, /* frozen= */ false, cache);
    CHECK(asked.r.n_region == 1 && hn_calls_library(&asked.r));
    hn_gpu_build known = hn_build_for_gpu_by(t, WIDE, ALONE, /* frozen= */ true, cache);
    CHECK(known.r.n_region == 1 && hn_calls_library(&known.r));
    free(unknown.data), free(asked.data), free(known.data);
    CHECK(remove(cache) == 0 && rmdir(dir) == 0);
}

/* ---- loading ---- */
typedef struct section {
    hn_image h;
    hn_libcall c;
} section;

/* 8 channels to 8, a pixel each. */
static section conv_call(hn_dtype t, uint32_t rank)
{
    return (section){ { .magic = HN_CALL_MAGIC, .bytes = sizeof(hn_libcall), .threads = { 1, 1, 1 }, .n_buf = 4 },
                      { .kind = HN_CALL_CONV, .library = HN_LIB_CUDNN, .dtype = t, .n_buf = 4, .rank = rank, .workspace_bytes = 4 << 20,
                        .u.conv = { .x = { 1, 8, 1, 1 }, .w = { 8, 8, 1, 1 }, .y = { 1, 8, 1, 1 }, .x_stride = { 8, 1, 8, 8 }, .group = 1,
                                    .w_stride = { 8, 1, 8, 8 }, .y_stride = { 8, 1, 8, 8 }, .stride = { 1, 1 }, .dilation = { 1, 1 } } } };
}

static hone_status choose(section *s, hn_diag *dg)
{
    hn_device *d;
    hn_diag_clear(dg);
    CHECK_OK(hn_device_get("cuda", &d, dg), dg);
    return hn_device_choose_call(d, &s->c, /* ret_plan= */ NULL, dg);
}

static hone_status load(const section *s, hn_diag *dg)
{
    hn_device *d;
    hn_module *m;
    hn_diag_clear(dg);
    CHECK_OK(hn_device_get("cuda", &d, dg), dg);
    const hone_status r = hn_device_load_code(d, s, sizeof(*s), &m, dg);
    if (r == HONE_OK) hn_device_unload(d, m);
    return r;
}

static int64_t engine_in(const section *s)
{
    int64_t v;
    memcpy(&v, s->c.algo, sizeof(v));
    return v;
}

/* The simulator's engines 22, 25, 26 and 27 do; the others differ from run to run, sum halves, or want too much memory. */
TEST(dnn_engines_that_will_do)
{
    static const struct {
        hn_dtype t;
        uint32_t flags, rank;
        int64_t engine; /* 0: none */
    } all[] = { { HN_F16, 0, 0, 22 }, { HN_F16, 0, 1, 25 }, { HN_F16, 0, 2, 26 }, { HN_F16, 0, 3, 27 }, { HN_F16, 0, 4, 0 },
                { HN_F32, 0, 0, 27 }, { HN_F32, 0, 1, 0 }, { HN_F32, HN_CALL_TF32, 0, 22 }, { HN_BF16, 0, 2, 26 } };
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(all); i++) {
        section s = conv_call(all[i].t, all[i].rank);
        s.c.flags = all[i].flags;
        hn_test_note("row %d", i);
        const hone_status r = choose(&s, &dg);
        CHECK(r == (all[i].engine ? HONE_OK : HONE_E_UNSUPPORTED));
        if (r != HONE_OK) continue;
        CHECK_EQ(engine_in(&s), all[i].engine);
        CHECK(s.c.version == 91900 && s.c.n_algo > 0);
        CHECK_OK(load(&s, &dg), &dg);
    }
    section s = conv_call(HN_F16, 2);
    s.c.workspace_bytes = 1000; /* less than the third one wants */
    CHECK_OK(choose(&s, &dg), &dg);
    CHECK_EQ(engine_in(&s), 27);
}

/* What is compiled stands in the engine file behind the call; loading compiles where that is of no use. */
TEST(dnn_compiled_engines_travel)
{
    hn_diag dg = { 0 };
    hn_device *d;
    hn_module *m;
    hn_str plan = { 0 };
    hn_simulate(/* libraries= */ true);
    CHECK_OK(hn_device_get("cuda", &d, &dg), &dg);
    section s = conv_call(HN_F16, 1);
    CHECK_OK(hn_device_choose_call(d, &s.c, &plan, &dg), &dg);
    CHECK_EQ(hn_sim_counts()->compiled, 1);
    CHECK(engine_in(&s) == 25 && plan.n > 0);
    s.h.bytes = (uint32_t)(sizeof(s.c) + plan.n);
    uint8_t *code = HN_NEW_N(t->arena, uint8_t, sizeof(s) + plan.n);
    memcpy(code, &s, sizeof(s));
    memcpy(code + sizeof(s), plan.s, plan.n);
    CHECK_OK(hn_device_load_code(d, code, sizeof(s) + plan.n, &m, &dg), &dg);
    hn_device_unload(d, m);
    CHECK_EQ(hn_sim_counts()->compiled, 1);
    code[sizeof(s)] = 99; /* not a plan */
    CHECK_OK(hn_device_load_code(d, code, sizeof(s) + plan.n, &m, &dg), &dg);
    hn_device_unload(d, m);
    CHECK_EQ(hn_sim_counts()->compiled, 2);
    CHECK_OK(load(&(section){ .h = conv_call(HN_F16, 0).h, .c = s.c }, &dg), &dg); /* no plan came along */
    CHECK_EQ(hn_sim_counts()->compiled, 3);
    hn_str_done(&plan);
}

TEST(dnn_engines_of_elsewhere_are_chosen_anew)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    section s = conv_call(HN_F16, 7), good = conv_call(HN_F16, 0);
    CHECK_OK(load(&s, &dg), &dg); /* fewer are proposed here */
    CHECK_OK(choose(&good, &dg), &dg);
    s = good;
    s.c.version = 90100; /* of another version */
    s.c.algo[0] = 99;
    CHECK_OK(load(&s, &dg), &dg);
    s.c.version = good.c.version; /* of this one, and of no use on this GPU */
    CHECK_OK(load(&s, &dg), &dg);
    s.c.flags = HN_CALL_FIXED;
    CHECK_ERR(load(&s, &dg), HONE_E_DEVICE, &dg, "does not take");
    s = good;
    s.c.flags = HN_CALL_FIXED;
    CHECK_OK(load(&s, &dg), &dg);
    s.c.algo[24]++; /* another setting than the one that was proposed */
    CHECK_ERR(load(&s, &dg), HONE_E_DEVICE, &dg, "does not take");
    s.c.version = 90100;
    CHECK_ERR(load(&s, &dg), HONE_E_VERSION, &dg, "algorithms of cuDNN 9.1.0, and 9.19.0 is here");
}

/* The engine that was raced is kept in another version that has it, whatever that one proposes at the place. */
TEST(dnn_engines_are_kept_across_versions)
{
    hn_diag dg = { 0 };
    hn_device *d;
    hn_str plan = { 0 };
    hn_simulate(/* libraries= */ true);
    section s = conv_call(HN_F16, 1);
    CHECK_OK(choose(&s, &dg), &dg);
    CHECK_EQ(engine_in(&s), 25);
    s.c.version = 90100;
    s.c.rank = 0; /* where this version proposes another one */
    CHECK_OK(hn_device_get("cuda", &d, &dg), &dg);
    CHECK_OK(hn_device_choose_call(d, &s.c, &plan, &dg), &dg);
    CHECK(engine_in(&s) == 25 && s.c.version == 91900 && plan.n > 0);
    hn_str_clear(&plan);
    s.c.version = 90100;
    s.c.algo[0] = 20; /* it is here, and gives other bits every time */
    CHECK_OK(hn_device_choose_call(d, &s.c, &plan, &dg), &dg);
    CHECK(engine_in(&s) == 22 && s.c.version == 91900);
    hn_str_done(&plan);
}

TEST(dnn_damaged_calls_are_refused)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    section good = conv_call(HN_F16, 0), s = good;
    CHECK_OK(choose(&good, &dg), &dg);
    s.c.kind = HN_CALL_MATMUL; /* not what this library does */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = good;
    s.c.flags = HN_CALL_BIAS; /* and no buffer for it */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = good;
    s.c.n_algo = 8;
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = good;
    s.c.algo[8] = 200; /* settings that the bytes do not hold */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = good;
    s.c.u.conv.y[3] = 5; /* no such result */
    CHECK(load(&s, &dg) == HONE_E_UNSUPPORTED);
    CHECK(strstr(dg.message, "cuDNN failed while") != NULL);
}

TEST(dnn_engines_without_their_library_say_so)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    const section s = conv_call(HN_F16, 0);
    CHECK(load(&s, &dg) == HONE_E_NOTFOUND);
    CHECK(strstr(dg.message, "cuDNN") != NULL && strstr(dg.hint, "/nonexistent/library.so") != NULL);
}

TEST(dnn_other_versions_are_refused)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    setenv("HONE_SIM_CUDNN", "8907", 1);
    const section s = conv_call(HN_F16, 0);
    CHECK_ERR(load(&s, &dg), HONE_E_VERSION, &dg, "cuDNN 8.9.7 is here");
}

/* Without it the library would end the process. */
TEST(dnn_wants_the_cublaslt_it_was_built_for)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    setenv("HONE_SIM_CUDART", "99000", 1);
    const section s = conv_call(HN_F16, 0);
    CHECK_ERR(load(&s, &dg), HONE_E_NOTFOUND, &dg, "cuBLASLt 99");
}
