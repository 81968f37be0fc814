/* Real code for each named GPU, where NVRTC is installed: every tactic that serves one compiles, and none spills. */
#include <stdlib.h>
#include <string.h>

#include "base/cuda_find.h"
#include "base/dl.h"
#include "build/build.h"
#include "core/image.h"
#include "engine/engine.h"
#include "harness.h"

static void need_nvrtc(void)
{
    hn_cuda_paths p;
    hn_str found = { 0 };

    hn_cuda_find_nvrtc(&p);
    hn_dl_find(p.path, HN_CUDA_N_PATH, &found);
    const bool none = found.n == 0;
    hn_str_done(&found);
    if (none) SKIP("no NVRTC");
}

/* Every image of the code section, by the layout that docs/engine-format.md states. */
static int check_images(const uint8_t *code, size_t bytes, const char *target)
{
    hn_image h;
    int n = 0;

    for (uint64_t at = 0; at < bytes; at = (at + sizeof(h) + h.bytes + 63) / 64 * 64, n++) {
        CHECK(bytes - at > sizeof(h));
        memcpy(&h, code + at, sizeof(h));
        CHECK_EQ(h.magic, HN_IMAGE_MAGIC);
        CHECK(h.n_reg > 0 && h.n_reg <= 255);
        if (h.spill_bytes) FAIL("kernel %d spills %u bytes on %s", n, h.spill_bytes, target);
    }
    return n;
}

/* Some region of what was built last runs by this tactic. */
static bool takes(const hn_build_report *r, const char *tactic)
{
    for (int i = 0; i < r->n_region; i++)
        if (strncmp(r->region[i].tactic, tactic, strlen(tactic)) == 0) return true;
    return false;
}

static hn_build_report built;

/* threads 0: the target as it is named, with all its multiprocessors. */
static hn_digest build_for(hn_test *t, const char *text, const char *target, const char *route, int threads)
{
    hn_diag dg = { 0 };
    hn_target g;
    hn_graph *graph;
    hn_engine_file *f;
    hn_route how = { 0 };
    void *data = NULL;
    size_t bytes = 0, n_code;

    hn_test_note("%s: %.200s", target, text);
    CHECK_OK(hn_target_get(target, &g, &dg), &dg);
    CHECK_OK(hn_parse(t->arena, text, &graph, &dg), &dg);
    CHECK_OK(hn_route_parse(t->arena, route, &how, &dg), &dg);
    const hn_build_opts o = { .target = &g, .route = &how, .threads = threads, .model_name = "test", .cache_dir = getenv("HONE_CACHE_DIR") };
    CHECK_OK(hn_build_engine(t->arena, graph, &o, &data, &bytes, &built, &dg), &dg);
    CHECK_OK(hn_engine_file_open_memory(data, bytes, NULL, &f, &dg), &dg);
    const uint8_t *code = hn_engine_file_code(f, &n_code);
    CHECK(check_images(code, n_code, target) > 0);
    hn_engine_file_close(f);
    free(data);
    return built.payload;
}

static hn_digest build_with(hn_test *t, const char *text, const char *target, const char *route)
{
    return build_for(t, text, target, route, 1);
}

static void build(hn_test *t, const char *text, const char *target)
{
    build_with(t, text, target, "");
}

static void both(hn_test *t, const char *const *text, int n)
{
    need_nvrtc();
    for (int i = 0; i < n; i++) {
        build(t, text[i], "sm_80");
        build(t, text[i], "sm_90a");
    }
}
#define BOTH(...)                                                                                                      \
    do {                                                                                                               \
        static const char *const text_[] = { __VA_ARGS__ };                                                            \
        both(t, text_, HN_COUNT(text_));                                                                               \
    } while (0)

TEST(nvrtc_products_and_convolutions)
{
    BOTH("in x f32[512,768]  const w f32[768,768]\ny = matmul(x, w)  z = gelu(y)\nout z",
         "in x f16[64,96]  const w f16[96,48]\ny = matmul(x, w)\nout y", "in x f64[9,7]  in y f64[7,5]\nz = matmul(x, y)\nout z",
         "in x f32[1,64,56,56]  const w f32[64,64,3,3]  const b f32[64]\ny = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}  z = "
         "relu(y)\nout z",
         "in x f32[1,32,14,14]  const w f32[32,1,3,3]\ny = conv(x, w) {group=32}\nout y");
}

TEST(nvrtc_matrix_units)
{
    BOTH("in x f16[512,768]  const w f16[768,3072]  const b f16[3072]\ny = matmul(x, w)  c = add(y, b)  z = relu(c)\nout z",
         "in x bf16[1,2048]  const w bf16[2048,1000]\ny = matmul(x, w)\nout y",
         "in x f16[12,128,64]  in y f16[12,128,64]\nz = matmul(x, y) {trans_b=1}\nout z",
         "in x f16[1,64,56,56]  const w f16[64,64,3,3]  const b f16[64]  in r f16[1,64,56,56]\ny = conv(x, w, b) {pad_begin=[1,1], "
         "pad_end=[1,1]}  s = add(y, r)  z = relu(s)\nout z",
         "in x f16[1,3,224,224]  const w f16[64,3,7,7]\ny = conv(x, w) {pad_begin=[3,3], pad_end=[3,3], stride=[2,2]}\nout y",
         "in x f16[1,96,56,56]  const w f16[96,1,7,7]\ny = conv(x, w) {group=96, pad_begin=[3,3], pad_end=[3,3]}\nout y",
         "in x f16[8,512,7,7]  const w f16[2048,512,1,1]\ny = conv(x, w)\nout y",
         "in q f16[1,12,128,64]  in k f16[1,12,128,64]  in v f16[1,12,128,64]\ny = attention(q, k, v)\nout y",
         "in q f16[32,12,512,64]  in k f16[32,12,512,64]  in v f16[32,12,512,64]\ny = attention(q, k, v) {causal=upper_left}\nout y",
         "in q f16[32,12,128,64]  in k f16[32,12,128,64]  in v f16[32,12,128,64]  in m bool[32,1,1,128]\ny = attention(q, k, v, m)\nout y",
         "sym s [1,512,1024]\nin q bf16[1,8,s,128]  in k bf16[1,2,s,128]  in v bf16[1,2,s,128]\ny = attention(q, k, v) {causal=upper_left}\n"
         "out y");
}

#define SCALED "  f = cast(a) {to=f32}  g = mul(f, s)  h = add(g, b)  r = relu(h)  y = quantize(r, s, z) {to=u8}\nout y"

TEST(nvrtc_bytes_on_matrix_units)
{
    BOTH("in x u8[512,768]  const w i8[768,3072]  const b f32[3072]  const s f32[] = {0.02}  const z u8[] = {120}\na = matmul_int(x, w, z)" SCALED,
         "in x i8[128,384]  const w u8[384,1536]  const v u8[1536]  in z i8[]\ny = matmul_int(x, w, z, v)\nout y",
         "in x u8[1,64,56,56]  const w i8[64,64,3,3]  const b f32[64,1,1]  const s f32[] = {0.02}  const z u8[] = {120}\n"
         "a = conv_int(x, w, z) {pad_begin=[1,1], pad_end=[1,1]}" SCALED,
         "in x u8[1,3,224,224]  const w i8[64,3,7,7]  in z u8[]\ny = conv_int(x, w, z) {pad_begin=[3,3], pad_end=[3,3], stride=[2,2]}\nout y",
         "in x i8[8,512,7,7]  const w i8[2048,512,1,1]\ny = conv_int(x, w)\nout y",
         "in x u8[1,128,28,28]  const w u8[128,64,3,3]  const v u8[128]  in z u8[]\ny = conv_int(x, w, z, v) {group=2, pad_begin=[1,1], pad_end=[1,1]}\nout y");
    CHECK(takes(&built, "conv_int8_mma__cuda"));
    build(t, "in x u8[40,64]  const w i8[64,160]\nm = matmul_int(x, w)\nout m", "sm_80");
    CHECK(takes(&built, "gemm_int8_mma__cuda"));
    build(t, "in x u8[1,96,56,56]  const w i8[96,1,3,3]  const b f32[96,1,1]  const s f32[] = {0.02}  const z u8[] = {120}\n"
             "a = conv_int(x, w, z) {group=96, pad_begin=[1,1], pad_end=[1,1]}" SCALED, "sm_90a");
    CHECK(takes(&built, "depthwise_int8_rows__cuda"));
}

TEST(nvrtc_tf32_is_asked_for)
{
    static const char text[] = "in x f32[512,768]  const w f32[768,768]\ny = matmul(x, w)\nout y";
    need_nvrtc();
    const hn_digest off = build_with(t, text, "sm_90a", "-math:tf32=0"), on = build_with(t, text, "sm_90a", "-math:tf32=1");
    CHECK(hn_digest_eq(off, build_with(t, text, "sm_90a", "")));
    CHECK(!hn_digest_eq(off, on));
}

/* Models of f32 in 16 bits: casts in kernels of every kind. */
TEST(nvrtc_narrowed_models)
{
    static const char *const text[] = {
        "in x f32[512,768]  const w f32[768,3072]  const b f32[3072]  const v f32[3072,768]\n"
        "m = matmul(x, w)  a = add(m, b)  g = gelu(a)  p = matmul(g, v)  r = add(p, x)  s = softmax(r) {axis=1}\nout s  out r",
        "in x f32[1,64,56,56]  const w f32[64,64,3,3]  const b f32[64]  const u f32[64,32,2,2]\n"
        "c = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}  r = relu(c)  p = max_pool(r) {kernel=[2,2], stride=[2,2], dim=[28,28]}\n"
        "y = conv_transpose(p, u) {stride=[2,2]}\nout y",
        "in q f32[1,12,128,64]  in k f32[1,12,128,64]  in v f32[1,12,128,64]\ny = attention(q, k, v)\nout y" };
    need_nvrtc();
    for (int i = 0; i < HN_COUNT(text); i++) {
        build_with(t, text[i], "sm_80", "-math:half=f16");
        build_with(t, text[i], "sm_90a", "-math:half=f16");
        build_with(t, text[i], "sm_90a", "-math:half=bf16");
    }
}

/* Chains of halves are rounded where they are stored; a route that wants the model's own numbers gets them at every op. */
TEST(nvrtc_exact_halves_are_other_kernels)
{
    static const char text[] = "in x f16[64,96]\na = exp(x)  b = sigmoid(a)  c = mul(a, b)\nout c";
    need_nvrtc();
    CHECK(!hn_digest_eq(build_with(t, text, "sm_90a", ""), build_with(t, text, "sm_90a", "-core:exact=1")));
}

TEST(nvrtc_lines_reductions_pools)
{
    BOTH("in x f32[64,768]  in s f32[768]  in c f32[768]\na = softmax(x) {axis=1}  b = layer_norm(x, s, c)  d = softmax(x) {axis=0}\n"
         "out a  out b  out d",
         "in x f32[4,300]\na = reduce_sum(x) {axes=[1]}  b = reduce_max(x) {axes=[0]}  c = arg_max(x) {axis=1}\nout a  out b  out c",
         "in x f32[3000,70]  in y f16[2,900,40]\na = reduce_sum(x) {axes=[0]}  b = exp(y)  c = reduce_sum(b) {axes=[1]}\nout a  out c",
         "in x f64[500,2,9]\na = reduce_prod(x) {axes=[0]}  b = reduce_min(x) {axes=[0]}\nout a  out b",
         "in x f32[1,6,9,8]\ny = max_pool(x) {kernel=[3,3], stride=[2,2], dim=[4,3]}\nout y");
}

TEST(nvrtc_searching_sorting_scattering)
{
    BOTH("in x f32[3,40]\nv, i = topk(x) {axis=1, dim=5}  a = cumsum(x) {axis=1}  n, k = nonzero(x)\nout v  out i  out a  out n  out k",
         "in x f32[5,9]  in i i64[3,7]  in u f32[3,7]\ny = scatter_elements(x, i, u) {axis=1, reduction=add}\nout y",
         "in b f32[2,30,4]  in s f32[2,3,30]  const m i64[] = {7}  const t f32[] = {0.3}  const q f32[] = {0.1}\n"
         "y, n = nms(b, s, m, t, q)\nout y  out n",
         "sym n [1,40,90]\nin x f32[n,33]  in y f16[n,33]\na = erf(x)  c = cast(y) {to=f32}  d = pow(a, c)  e = cast(d) {to=bf16}\nout e");
}

/* 512 MiB move at some 4 TB/s, and 275 GFLOP at some 600 TFLOP/s: of the whole card, not of one multiprocessor. */
TEST(nvrtc_predicted_times_are_a_whole_cards)
{
    need_nvrtc();
    build_for(t, "in x f32[8192,8192]\ny = exp(x)\nout y", "sm_90a", "", 0);
    CHECK(built.region[0].ns > 60e3 && built.region[0].ns < 600e3);
    build_for(t, "in x f16[4096,8192]  in w f16[8192,4096]\ny = matmul(x, w)\nout y", "sm_90a", "", 0);
    CHECK(built.region[0].ns > 250e3 && built.region[0].ns < 2500e3);
}
