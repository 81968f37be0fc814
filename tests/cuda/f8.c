/* Products of 8-bit floats: a simulated cuBLASLt's where it takes them, and the products that the model spells everywhere else. */
#include <stdlib.h>
#include <string.h>

#include "../build/run_graph.h"
#include "engine/engine.h"
#include "harness.h"
#include "lib_built.h"
#include "simulate.h"
#include "tactic/tactic.h"

/* x of a dtype, as bytes of another and back, by one scale; weights as bytes. */
#define ACROSS(dtype, f8, rows, k) \
    "in x " dtype "[" rows "," k "]  const s " dtype "[] = {0.0078125}  const z " f8 "[] = {0}\n" \
    "q = quantize(x, s, z) {to=" f8 "}  d = dequantize(q, s, z)\n"
#define WEIGHTS(dtype, f8, dims) "const w " f8 "[" dims "]  const t " dtype "[] = {0.03125}\ne = dequantize(w, t)\n"
#define HALVES ACROSS("f16", "f8e4m3fn", "70", "64")
#define NO_OWN "-tactic:matrix_units=0"

static void check(const char *text, int n_call, int n_kernel)
{
    hn_check_calls(text, NO_OWN, n_call, n_kernel);
}

/* A kernel makes the bytes, the library's call the rest. */
TEST(f8_products)
{
    hn_simulate(/* libraries= */ true);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "y = matmul(d, e)\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "96,64") "y = matmul(d, e) {trans_b=1}\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "96,64") "v = transpose(e) {perm=[1,0]}  y = matmul(d, v)\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e5m2", "64,96") "y = matmul(d, e)\nout y", 1, 1);
    check(ACROSS("bf16", "f8e5m2", "3,20", "64") WEIGHTS("bf16", "f8e4m3fn", "64,48") "y = matmul(d, e)\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,1000") "y = matmul(d, e)\nout y", 1, 1);
    check(ACROSS("f16", "f8e4m3fn", "1", "16") WEIGHTS("f16", "f8e4m3fn", "16,16") "y = matmul(d, e)\nout y", 1, 1);
}

TEST(f8_products_with_what_the_library_fuses)
{
    hn_simulate(/* libraries= */ true);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "const b f16[96]  m = matmul(d, e)  y = add(m, b)\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "const b f16[96]  m = matmul(d, e)  a = add(m, b)  y = gelu(a) {tanh=1}\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "in c f16[70,96]  m = matmul(d, e)  a = add(m, c)  y = relu(a)\nout y", 1, 1);
    check(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "m = matmul(d, e)  y = sigmoid(m)\nout y", 1, 2);
}

/* The next product's bytes come from the kernel behind the call. */
TEST(f8_products_in_a_row)
{
    hn_simulate(/* libraries= */ true);
    const sim_counts before = *hn_sim_counts();
    hn_check_graph(HALVES WEIGHTS("f16", "f8e4m3fn", "64,96")
                   "m = matmul(d, e)  r = relu(m)  q2 = quantize(r, s) {to=f8e4m3fn}  d2 = dequantize(q2, s)\n"
                   "const w2 f8e4m3fn[96,32]  e2 = dequantize(w2, t)  y = matmul(d2, e2)\nout y",
                   &(hn_run_opts){ .target = "sm_90a", .route = NO_OWN, .tol = 2e-2 /* where f16 between both moves a byte to the next */ });
    CHECK_EQ(hn_sim_counts()->library_calls - before.library_calls, 2);
    CHECK_EQ(hn_sim_counts()->launches - before.launches, 2);
}

/* Sums keep fewer bits than f32 has: both knobs must allow that. */
TEST(f8_products_of_f32)
{
    static const char text[] = ACROSS("f32", "f8e4m3fn", "70", "64") WEIGHTS("f32", "f8e4m3fn", "64,96") "const b f32[96]\n"
                               "m = matmul(d, e)  y = add(m, b)\nout y";
    hn_simulate(/* libraries= */ true);
    hn_check_calls(text, NO_OWN " -math:tf32=1", 1, 2);
    hn_gpu_build off = hn_build_for_gpu(t, text, NO_OWN, false), none = hn_build_for_gpu(t, text, "-tactic:cublaslt=0 -math:tf32=1", false);
    for (int i = 0; i < off.r.n_region; i++) CHECK(!strstr(off.r.region[i].tactic, "_f8_"));
    for (int i = 0; i < none.r.n_region; i++) CHECK(!strstr(none.r.region[i].tactic, "_f8_"));
    free(off.data), free(none.data);
}

/* ---- products that it does not take ---- */
static bool same_engine(hn_test *t, const char *text, const char *route, const char *other)
{
    hn_gpu_build a = hn_build_for_gpu(t, text, route, false), b = hn_build_for_gpu(t, text, other, false);
    const bool same = hn_digest_eq(a.r.payload, b.r.payload);
    for (int i = 0; same && i < a.r.n_region; i++) CHECK(!strstr(a.r.region[i].tactic, "_f8_"));
    free(a.data), free(b.data);
    return same;
}

static const char taken[] = HALVES WEIGHTS("f16", "f8e4m3fn", "64,96") "y = matmul(d, e)\nout y";

/* The engine is the one of a build that does not look for them. */
TEST(f8_products_that_stay_as_they_are)
{
    static const char *const all[] = {
        HALVES WEIGHTS("f16", "f8e4m3fn", "64,90") "y = matmul(d, e)\nout y",                               /* no whole lines */
        ACROSS("f16", "f8e4m3fn", "70", "72") WEIGHTS("f16", "f8e4m3fn", "72,96") "y = matmul(d, e)\nout y",
        ACROSS("f16", "f8e5m2", "70", "64") WEIGHTS("f16", "f8e5m2", "64,96") "y = matmul(d, e)\nout y",    /* not both */
        HALVES "const w f8e4m3fn[64,96]  const t f16[96]\ne = dequantize(w, t) {axis=1}  y = matmul(d, e)\nout y",
        "sym n [1,40,90]\n" ACROSS("f16", "f8e4m3fn", "n", "64") WEIGHTS("f16", "f8e4m3fn", "64,96") "y = matmul(d, e)\nout y",
    };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < HN_COUNT(all); i++) {
        hn_test_note("%s", all[i]);
        CHECK(same_engine(t, all[i], "", "-pass:quantized=0"));
    }
    CHECK(same_engine(t, taken, "-tactic:cublaslt=0", "-tactic:cublaslt=0 -pass:quantized=0"));
    CHECK(!same_engine(t, taken, NO_OWN, NO_OWN " -pass:quantized=0"));
    check(taken, 1, 1);
    hn_check_calls(taken, NO_OWN " -pass:quantized=0", 1, 1); /* of halves, behind a kernel that makes them */
}

TEST(f8_products_want_a_gpu_that_has_them)
{
    hn_diag dg = { 0 };
    hn_target g;
    CHECK_OK(hn_target_get("sm_80", &g, &dg), &dg);
    CHECK(!hn_tactic_serves(hn_tactic_find("gemm_f8_cublaslt__lib"), &g));
    CHECK(hn_tactic_serves(hn_tactic_find("gemm_float_cublaslt__lib"), &g));
}

TEST(f8_products_without_the_library)
{
    hn_simulate(/* libraries= */ false);
    CHECK(same_engine(t, taken, "", "-pass:quantized=0"));
    hn_check_graph(taken, &(hn_run_opts){ .target = "sm_90a", .tol = 3e-3 });
}

/* Largest and smallest numbers, zeros, NaN: as evaluation has them. */
TEST(f8_hostile_values)
{
    enum { ROWS = 3, K = 32 };
    static const uint8_t odd[] = { 0x7e, 0xfe, 0x01, 0x81, 0x00, 0x80, 0x08, 0x07, 0x38, 0xb8 };
    static uint8_t x[ROWS * K];
    const hn_tensor in = { .type = { .dtype = HN_F8E4M3FN, .rank = 2, .dim = { ROWS, K } }, .data = x };
    hn_simulate(/* libraries= */ true);
    for (int i = 0; i < ROWS * K; i++) x[i] = odd[i % HN_COUNT(odd)];
    x[2 * K + 5] = 0x7f; /* the last row's results are no numbers */
    const int before = hn_sim_counts()->library_calls;
    hn_check_graph("in x f8e4m3fn[3,32]  const s f16[] = {0.0078125}\nd = dequantize(x, s)\n" WEIGHTS("f16", "f8e4m3fn", "32,16")
                   "y = matmul(d, e)\nout y",
                   &(hn_run_opts){ .target = "sm_90a", .route = NO_OWN, .tol = 3e-3, .in = &in });
    CHECK_EQ(hn_sim_counts()->library_calls, before + 1);
}
