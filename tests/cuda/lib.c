/* Calls of libraries from end to end on simulated ones: what is fused, what follows in a kernel, what is refused and why. */
#include <stdlib.h>
#include <string.h>

#include "../build/run_graph.h"
#include "core/libcall.h"
#include "core/image.h"
#include "dev/dev.h"
#include "engine/engine.h"
#include "harness.h"
#include "lib_built.h"
#include "simulate.h"

static void check(const char *text, int n_call, int n_kernel)
{
    hn_check_calls(text, "-tactic:matrix_units=0", n_call, n_kernel);
}

/* ---- products ---- */
TEST(lib_products_alone)
{
    hn_simulate(/* libraries= */ true);
    check("in x f32[70,64]  const w f32[64,96]\ny = matmul(x, w)\nout y", 1, 0);
    check("in x f16[70,64]  in w f16[96,64]\ny = matmul(x, w) {trans_b=1}\nout y", 1, 0);
    check("in x bf16[64,70]  in w bf16[64,96]\ny = matmul(x, w) {trans_a=1}\nout y", 1, 0);
    check("in x f16[33,134]  in w f16[65,33]\ny = matmul(x, w) {trans_a=1, trans_b=1}\nout y", 1, 0);
    check("in x f16[2,3,40,48]  in w f16[2,3,48,56]\ny = matmul(x, w)\nout y", 1, 0);
    check("in x f16[3,40,48]  in w f16[48,56]\ny = matmul(x, w)\nout y", 1, 0);
    check("in x f16[1,40,48]  in w f16[5,48,56]\ny = matmul(x, w)\nout y", 1, 0);
    check("in x f16[4,40,48]  in w f16[4,56,48]\ny = matmul(x, w) {trans_b=1}\nout y", 1, 0);
}

TEST(lib_products_with_what_the_library_fuses)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[70,64]  const w f16[64,96]  const b f16[96]\nm = matmul(x, w)  y = add(m, b)\nout y", 1, 0);
    check("in x f16[70,64]  const w f16[64,96]  const b f16[96]\nm = matmul(x, w)  a = add(b, m)  y = relu(a)\nout y", 1, 0);
    check("in x f16[70,64]  const w f16[64,96]  const b f16[1,96]\nm = matmul(x, w)  y = add(m, b)\nout y", 1, 0);
    check("in x f32[70,64]  const w f32[64,96]  in c f32[70,96]\nm = matmul(x, w)  y = add(c, m)\nout y", 1, 0);
    check("in x f16[2,70,64]  const w f16[64,96]  const b f16[96]  in c f16[2,70,96]\n"
          "m = matmul(x, w)  a = add(m, b)  d = add(a, c)  y = relu(d)\nout y", 1, 0);
}

TEST(lib_products_with_a_kernel_for_the_rest)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[70,64]  const w f16[64,96]  const b f16[96]\nm = matmul(x, w)  a = add(m, b)  y = gelu(a)\nout y", 1, 1);
    check("in x f32[135,64]  const w f32[64,133]\nm = matmul(x, w)  y = sigmoid(m)  z = exp(m)\nout y  out z  out m", 1, 1);
    /* an addend behind the activation is not the library's */
    check("in x f16[70,64]  const w f16[64,96]  in c f16[70,96]\nm = matmul(x, w)  r = relu(m)  y = add(r, c)\nout y", 1, 1);
    /* along rows, not columns: no bias */
    check("in x f16[96,64]  const w f16[64,96]  const b f16[96,1]\nm = matmul(x, w)  y = add(m, b)\nout y", 1, 1);
}

/* One formula of gelu is the library's; the other one is a kernel's. */
TEST(lib_products_with_gelu)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[70,64]  const w f16[64,96]\nm = matmul(x, w)  y = gelu(m) {tanh=1}\nout y", 1, 0);
    check("in x bf16[70,64]  const w bf16[64,96]  const b bf16[96]\nm = matmul(x, w)  a = add(m, b)  y = gelu(a) {tanh=1}\nout y", 1, 0);
    check("in x f32[2,70,64]  const w f32[64,96]  in c f32[2,70,96]\nm = matmul(x, w)  a = add(m, c)  y = gelu(a) {tanh=1}\nout y", 1, 0);
    check("in x f16[70,64]  const w f16[64,96]\nm = matmul(x, w)  y = gelu(m)\nout y", 1, 1);
    check("in x f16[70,64]  const w f16[64,96]\nm = matmul(x, w)  y = gelu(m) {tanh=1}\nout y  out m", 1, 1);
    hn_check_calls("in x f16[70,64]  const w f16[64,96]  const b f16[96]\nm = matmul(x, w)  a = add(m, b)  y = relu(a)\nout y",
                "-tactic:matrix_units=0 -core:exact=1", 1, 1); /* the sum is rounded before the bias is added */
    check("in x f16[2,64,1,1]  const w f16[96,64,1,1]  const b f16[96]\ny = conv(x, w, b)  z = gelu(y) {tanh=1}\nout z", 1, 0);
}

/* Lines that are no whole 16 bytes are filled up, if that makes all lines whole; a kernel takes the result from there. */
TEST(lib_products_of_odd_widths)
{
    static const char route[] = "-tactic:matrix_units=0 -gemm:lines=on";
    hn_simulate(/* libraries= */ true);
    hn_check_calls("in x f16[70,64]  const w f16[64,97]\ny = matmul(x, w)\nout y", route, 1, 1);
    hn_check_calls("in x f16[70,64]  const w f16[97,64]\ny = matmul(x, w) {trans_b=1}\nout y", route, 1, 1);
    hn_check_calls("in x f16[2,35,64]  const w f16[97,64]\ny = matmul(x, w) {trans_b=1}\nout y", route, 1, 1);
    hn_check_calls("in x f16[2,36,64]  const w f16[97,64]\ny = matmul(x, w) {trans_b=1}\nout y", route, 1, 1); /* vectors of two lines */
    hn_check_calls("in x f32[66,64]  const w f32[64,39]\ny = matmul(x, w)\nout y", route, 1, 1);
    hn_check_calls("in x f32[70,64]  const w f32[64,97]  const b f32[97]\nm = matmul(x, w)  a = add(m, b)  y = gelu(a) {tanh=1}\nout y", route, 1, 1);
    hn_check_calls("in x f16[70,64]  const w f16[64,97]  const b f16[97]  in c f16[70,97]\nm = matmul(x, w)  a = add(m, b)  d = add(a, c)  y = relu(d)\n"
          "out y", route, 1, 1);
    hn_check_calls("in x f16[2,64,1,1]  const w f16[99,64,1,1]\ny = conv(x, w)  z = relu(y)\nout z", route, 1, 1);
    /* what runs make has the columns it has, rows of the left operand and biases too */
    hn_check_calls("in x f16[2,64,1,1]  const w f16[99,64,1,1]  const b f16[99]\ny = conv(x, w, b)  z = relu(y)\nout z", route, 1, 0);
    hn_check_calls("in x f16[70,64]  in w f16[64,97]\ny = matmul(x, w)\nout y", route, 1, 0);
    hn_check_calls("in x f16[70,64]  in w f16[97,64]\ny = matmul(x, w) {trans_b=1}\nout y", route, 1, 0);
    hn_check_calls("in x f16[70,65]  const w f16[65,97]\ny = matmul(x, w)\nout y", route, 1, 0);
    hn_check_calls("in x f16[3,70,64]  in w f16[3,97,64]\ny = matmul(x, w) {trans_b=1}\nout y", route, 1, 0);
    check("in x f16[70,64]  const w f16[64,97]\ny = matmul(x, w)\nout y", 1, 0); /* too small for it to pay */
}

/* Rows that begin at one place of 16 bytes are a product each, whatever is left of them at both edges another one: nothing is copied. */
TEST(lib_products_in_turns)
{
    static const char route[] = "-tactic:matrix_units=0 -gemm:lines=turns";
    static const struct {
        const char *text;
        int turns; /* of so deep a product that so many launches pay; 0: the rows cannot take any */
    } all[] = {
        { "in x f16[72,2048]  const w f16[2048,97]\ny = matmul(x, w)\nout y", 8 },
        { "in x f16[72,2048]  in w f16[97,2048]\ny = matmul(x, w) {trans_b=1}\nout y", 8 },
        { "in x bf16[2,36,2048]  const w bf16[98,2048]\nm = matmul(x, w) {trans_b=1}  y = relu(m)\nout y", 4 },
        { "in x f16[8,2048]  const w f16[2048,20]\nm = matmul(x, w)  y = gelu(m) {tanh=1}\nout y", 2 },
        { "in x f32[12,2044]  const w f32[2044,39]\ny = matmul(x, w)\nout y", 4 },
        { "in x f16[16,2048]  const w f16[2048,31]\ny = matmul(x, w)\nout y", 8 }, /* edges as wide as what is between them */
        { "in x f16[70,64]  const w f16[64,97]\ny = matmul(x, w)\nout y", 0 },
        { "in x f16[72,64]  const w f16[64,96]\ny = matmul(x, w)\nout y", 0 },
        { "in x f16[72,64]  in w f16[64,97]\ny = matmul(x, w)\nout y", 0 },
        { "in x f16[72,65]  const w f16[65,97]\ny = matmul(x, w)\nout y", 0 },
        { "in x f16[72,64]  const w f16[64,97]  const b f16[97]\nm = matmul(x, w)  y = add(m, b)\nout y", 0 },
        { "in x f16[3,72,64]  in w f16[3,97,64]\ny = matmul(x, w) {trans_b=1}\nout y", 0 },
    };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(all); i++) {
        if (all[i].turns) {
            hn_check_calls(all[i].text, route, 1 + all[i].turns, 0);
            continue;
        }
        hn_gpu_build b = hn_build_for_gpu(t, all[i].text, "-gemm:lines=turns", false);
        CHECK(!strstr(b.r.region[0].tactic, "lines2"));
        free(b.data);
    }
}

/* The route decides, and so do predictions: a model's last layer gets whole lines. */
TEST(lib_odd_widths_are_a_choice)
{
    static const char text[] = "in x f16[512,768]  const w f16[5025,768]\ny = matmul(x, w) {trans_b=1}\nout y";
    hn_simulate(/* libraries= */ true);
    hn_gpu_build best = hn_build_for_gpu(t, text, "-tactic:matrix_units=0", false), off = hn_build_for_gpu(t, text, "-tactic:matrix_units=0 -gemm:lines=off", false);
    CHECK(strstr(best.r.region[0].tactic, "lines2") != NULL);
    CHECK(strstr(off.r.region[0].tactic, "lines0") != NULL);
    CHECK(!hn_digest_eq(best.r.payload, off.r.payload));
    free(best.data);
    free(off.data);
}

#define CUT(name, y, n, from) name " = slice(" y ") {start=[0," from "], step=[1,1], dim=[70," n "]}  " name "_ = softmax(" name ") {axis=1}\n"

/* Each slice is a piece of the product as it lies, and three kernels read one each. */
TEST(lib_products_whose_columns_are_cut_apart)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[70,64]  const w f16[64,192]  const b f16[192]\nm = matmul(x, w)  y = add(m, b)\n" CUT("q", "y", "64", "0")
          CUT("k", "y", "64", "64") CUT("v", "y", "64", "128") "out q_  out k_  out v_", 1, 3);
    check("in x f16[70,64]  const w f16[192,64]\nm = matmul(x, w) {trans_b=1}\n" CUT("q", "m", "64", "0") CUT("v", "m", "64", "128")
          "out q_  out v_", 1, 2);
    check("in x f16[70,64]  const w f16[64,192]  in c f16[70,192]\nm = matmul(x, w)  y = add(m, c)\n" CUT("q", "y", "64", "0")
          CUT("k", "y", "64", "64") "out q_  out k_", 1, 3);
}

/* Images come and go as the model has them, channels first; layouts around put reorders, of which the counts tell. */
TEST(lib_convolutions_of_one_tap)
{
    hn_simulate(/* libraries= */ true);
    check("in x f16[2,64,1,1]  const w f16[96,64,1,1]  const b f16[96]\ny = conv(x, w, b)  z = relu(y)\nout z", 1, 0);
    check("in x f16[2,64,9,7]  const w f16[96,64,1,1]\ny = conv(x, w)\nout y", 1, 2);
    check("in x f32[1,64,9,7]  const w f32[96,64,1,1]  const b f32[96]\ny = conv(x, w, b)  z = relu(y)\nout z", 1, 2);
    check("in x f16[1,64,9,7]  const w f16[64,64,1,1]  const b f16[64]\ny = conv(x, w, b)  a = add(y, x)  z = relu(a)\nout z", 1, 2);
    check("in x f16[1,64,9,7]  const w f16[96,64,1,1]  const b f16[96]\ny = conv(x, w, b)  z = sigmoid(y)\nout z", 1, 3);
}

#define PRODUCT "in x f16[70,64]  const w f16[64,96]\ny = matmul(x, w)\nout y"

/* The library's way with tf32 wants both knobs, and is the quicker one where it is allowed. */
TEST(lib_products_of_tf32)
{
    static const char text[] = "in x f32[128,1024]  const w f32[1024,128]\ny = matmul(x, w)\nout y", tactic[] = "gemm_tf32_cublaslt__lib";
    hn_simulate(/* libraries= */ true);
    hn_gpu_build off = hn_build_for_gpu(t, text, "-tactic:matrix_units=0", false), on = hn_build_for_gpu(t, text, "-tactic:matrix_units=0 -math:tf32=1", false),
          no_library = hn_build_for_gpu(t, text, "-tactic:cublaslt=0 -math:tf32=1", false);
    CHECK(strstr(hn_why_not(&off.r, tactic), "numbers") != NULL);
    CHECK(strncmp(on.r.region[0].tactic, tactic, strlen(tactic)) == 0);
    CHECK(strstr(hn_why_not(&no_library.r, tactic), "knob") != NULL);
    free(off.data), free(on.data), free(no_library.data);
    static const char *const all[] = { text, "in x f32[96,1024,1,1]  const w f32[128,1024,1,1]  const b f32[128]\ny = conv(x, w, b)  z = relu(y)\nout z" };
    for (int i = 0; i < HN_COUNT(all); i++) {
        const int before = hn_sim_counts()->library_calls;
        hn_check_graph(all[i], &(hn_run_opts){ .target = "sm_90a", .route = "-tactic:matrix_units=0 -math:tf32=1", .tol = 1e-3 });
        CHECK_EQ(hn_sim_counts()->library_calls, before + 1);
    }
    hn_gpu_build half = hn_build_for_gpu(t, PRODUCT, "-math:tf32=1", false);
    CHECK(strstr(hn_why_not(&half.r, tactic), "data type") != NULL);
    free(half.data);
}

/* ---- choosing ---- */

TEST(lib_engines_say_what_they_need)
{
    hn_diag dg = { 0 };
    hn_engine_file *f;
    hn_simulate(/* libraries= */ true);
    hn_gpu_build b = hn_build_for_gpu(t, PRODUCT, "-tactic:matrix_units=0", false);
    CHECK(hn_calls_library(&b.r));
    CHECK_OK(hn_engine_file_open_memory(b.data, b.bytes, NULL, &f, &dg), &dg);
    CHECK(strstr(hn_engine_file_manifest(f), "cuBLASLt 13.1.0") != NULL);
    hn_engine_file_close(f);
    free(b.data);
}

TEST(lib_a_source_is_switched_off)
{
    static const struct {
        const char *tactic, *route;
    } all[] = { { "gemm_float_cublaslt__lib", "-tactic:cublaslt=0" }, { "gemm_half_mma__cuda", "-tactic:matrix_units=0" } };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(all); i++) {
        const char *others = all[1 - i].route;
        hn_gpu_build on = hn_build_for_gpu(t, PRODUCT, others, false);
        hn_gpu_build off = hn_build_for_gpu(t, PRODUCT, hn_arena_printf(t->arena, "%s %s", others, all[i].route), false);
        CHECK(strncmp(on.r.region[0].tactic, all[i].tactic, strlen(all[i].tactic)) == 0);
        CHECK(!hn_digest_eq(on.r.payload, off.r.payload));
        CHECK(strstr(hn_why_not(&off.r, all[i].tactic), "knob") != NULL);
        free(on.data);
        free(off.data);
    }
}

TEST(lib_a_missing_library_is_named)
{
    hn_simulate(/* libraries= */ false);
    hn_gpu_build b = hn_build_for_gpu(t, PRODUCT, "", false);
    CHECK(!hn_calls_library(&b.r));
    CHECK(strstr(hn_why_not(&b.r, "gemm_float_cublaslt__lib"), "cuBLASLt") != NULL);
    for (int i = 0; i < b.r.n_read; i++) /* and the knob makes no difference, so nobody searches it */
        CHECK(b.r.read[i].knob != HN_KNOB_tactic_cublaslt);
    free(b.data);
}

/* What no one timed is not called by a frozen build, wherever it is made. */
TEST(lib_frozen_builds_trust_times_alone)
{
    hn_simulate(/* libraries= */ true);
    hn_gpu_build b = hn_build_for_gpu(t, PRODUCT, "", true);
    CHECK(!hn_calls_library(&b.r));
    free(b.data);
}

/* ---- loading ---- */
typedef struct section {
    hn_image h;
    hn_libcall c;
} section;

static section product_call(void)
{
    return (section){ { .magic = HN_CALL_MAGIC, .bytes = sizeof(hn_libcall), .threads = { 1, 1, 1 }, .n_buf = 4 },
                      { .kind = HN_CALL_MATMUL, .library = HN_LIB_CUBLASLT, .dtype = HN_F32, .n_buf = 4, .workspace_bytes = 4 << 20,
                        .u.matmul = { .m = 8, .n = 8, .k = 8, .groups = 1 } } };
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

TEST(lib_algorithms_of_elsewhere_are_chosen_anew)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    section s = product_call();
    CHECK_OK(load(&s, &dg), &dg);
    s.c.rank = 7; /* fewer are proposed here */
    CHECK_OK(load(&s, &dg), &dg);
    s.c.version = 1, s.c.n_algo = 64;
    CHECK_OK(load(&s, &dg), &dg);
    s.c.version = 130100; /* of this version, and of no use on this GPU */
    CHECK_OK(load(&s, &dg), &dg);
}

TEST(lib_algorithms_are_kept_where_the_route_says_so)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    hn_gpu_build free_one = hn_build_for_gpu(t, PRODUCT, "-tactic:matrix_units=0", false);
    hn_gpu_build fixed = hn_build_for_gpu(t, PRODUCT, "-tactic:matrix_units=0 -core:deterministic=1", false);
    CHECK(hn_calls_library(&fixed.r) && !hn_digest_eq(fixed.r.payload, free_one.r.payload));
    free(free_one.data);
    free(fixed.data);
    hn_check_calls(PRODUCT, "-tactic:matrix_units=0 -core:deterministic=1", 1, 0);
    hn_gpu_build frozen = hn_build_for_gpu(t, PRODUCT, "-core:deterministic=1", true);
    CHECK(strstr(hn_why_not(&frozen.r, "gemm_float_cublaslt__lib"), "chosen where") != NULL);
    free(frozen.data);

    section s = product_call();
    s.c.flags = HN_CALL_FIXED, s.c.version = 120000, s.c.n_algo = 64;
    CHECK_ERR(load(&s, &dg), HONE_E_VERSION, &dg, "algorithms of cuBLASLt 12.0.0, and 13.1.0 is here");
    s.c.version = 130100; /* of this version, and of no use on this GPU */
    CHECK_ERR(load(&s, &dg), HONE_E_DEVICE, &dg, "does not take");
}

TEST(lib_damaged_calls_are_refused)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ true);
    section s = product_call();
    s.c.n_algo = 4000;
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.c.kind = HN_CALL_ATTENTION; /* not what this library does */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.c.n_buf = 2;
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.c.u.matmul.turns = 4; /* eight columns of f32 are whole 16 bytes, and rows of b are not what turns need */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s.c.u.matmul = (hn_libcall_matmul){ .m = 8, .n = 39, .k = 8, .groups = 1, .trans_b = 1, .turns = 4 };
    CHECK_OK(load(&s, &dg), &dg);
    s.c.dtype = 99; /* of no size, which turns are counted by */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s.c.dtype = HN_F32;
    s.c.u.matmul.n = INT64_MAX; /* odd, and no line of it has a size */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.c.u.matmul = (hn_libcall_matmul){ .m = 8, .n = 16, .k = 16, .groups = 1, .trans_b = 1, .a_dtype = HN_F8E4M3FN, .b_dtype = HN_F8E5M2, .scale = 2 };
    CHECK_OK(load(&s, &dg), &dg);
    s.c.u.matmul.b_dtype = 0; /* one operand of f8, another of what the result is */
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s.c.u.matmul.b_dtype = HN_I8;
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.h.bytes = 40;
    CHECK(load(&s, &dg) == HONE_E_FORMAT);
    s = product_call();
    s.c.library = 99;
    CHECK(load(&s, &dg) == HONE_E_VERSION);
}

TEST(lib_engines_without_their_library_say_so)
{
    hn_diag dg = { 0 };
    hn_simulate(/* libraries= */ false);
    const section s = product_call();
    CHECK(load(&s, &dg) == HONE_E_NOTFOUND);
    CHECK(strstr(dg.message, "cuBLASLt") != NULL && strstr(dg.hint, "/nonexistent/library.so") != NULL);
}
