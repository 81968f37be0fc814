/* Matrix product kernels against evaluation: every edge of tiles, batches, transposes, fused work. */
#include <stdio.h>

#include "fast_run.h"

#define PACKED "gemm_f32_packed__cpu"

static const char *product(hn_test *t, int m, int k, int n)
{
    return hn_arena_printf(
        t->arena, "in x f32[%d,%d]  in w f32[%d,%d]  in b f32[%d]\nc = matmul(x, w)  y = add(c, b)\nout y", m,
        k, k, n, n);
}

TEST(gemm_packed_edges)
{
    static const int shape[][3] = {
        { 1, 64, 48 }, { 7, 33, 17 }, { 29, 70, 96 }, { 61, 5, 130 }, { 200, 16, 33 }
    };
    for (int i = 0; i < HN_COUNT(shape); i++)
        fast_check(t,
                   &(fast_case){ .text = product(t, shape[i][0], shape[i][1], shape[i][2]),
                                 .root = "matmul",
                                 .n_point = 8 },
                   PACKED);
}

/* Sums of few columns are split: their partial sums hide latency. Long ones are cut into blocks and round no more than short ones:
 * one sum of 9,000 terms would be 1.7e-6 off. */
TEST(gemm_packed_long_sums)
{
    static const int shape[][3] = { { 1, 9216, 10 }, { 1, 4099, 40 }, { 2, 4097, 17 }, { 3, 37, 9 }, { 1, 15, 20 }, { 40, 9000, 70 } };
    for (int i = 0; i < HN_COUNT(shape); i++)
        fast_check(t,
                   &(fast_case){ .text = product(t, shape[i][0], shape[i][1], shape[i][2]), .root = "matmul", .tol = 4e-7 },
                   PACKED);
}

TEST(gemm_packed_transposed_and_fused)
{
    static const char text[] =
        "in x f32[3,11,40]  in w f32[50,40]  in b f32[50]  in z f32[3,11,50]\n"
        "c = matmul(x, w) {trans_b=1}  d = add(c, b)  e = add(d, z)  y = tanh(e)\nout y";
    fast_check(t, &(fast_case){ .text = text, .root = "matmul" }, PACKED);
}

TEST(gemm_packed_symbolic)
{
    static const char text[] =
        "sym m [1,128,512]\nin x f32[m,2,40]  in w f32[40,50]\nc = matmul(x, w)  y = relu(c)\nout y";
    for (int64_t m = 1; m < 80; m += 13)
        fast_check(t, &(fast_case){ .text = text, .root = "matmul", .sym = m, .n_point = 4 }, PACKED);
}

#define RUNTIME "gemm_f32_runtime__cpu"

TEST(gemm_runtime_plain)
{
    static const char *const text[] = {
        "in x f32[37,20]  in y f32[20,50]\nz = matmul(x, y)\nout z",
        "in x f32[2,3,16,64]  in y f32[2,3,64,48]\nz = matmul(x, y)  q = relu(z)\nout q",
        "in x f32[4,1,5,13]  in y f32[3,13,9]\nz = matmul(x, y)\nout z",
        "in x f32[1,7]  in y f32[7,100]\nz = matmul(x, y)\nout z",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "matmul" }, RUNTIME);
}

TEST(gemm_runtime_transposed)
{
    static const char *const text[] = {
        "in x f32[3,37,20]  in y f32[3,50,20]  in s f32[3,37,50]\nz = matmul(x, y) {trans_b=1}  q = mul(z, s)\nout q",
        "in x f32[3,20,37]  in y f32[3,20,50]\nz = matmul(x, y) {trans_a=1}\nout z",
        "in x f32[2,33,40]  in y f32[64,33]\nz = matmul(x, y) {trans_a=1, trans_b=1}\nout z",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "matmul" }, RUNTIME);
}

/* Attention: every extent but the heads' size unknown. */
TEST(gemm_runtime_long_sums)
{
    static const char *const text[] = { "in x f32[24,9000]  in w f32[9000,40]\ny = matmul(x, w)\nout y",
                                        "in x f32[2,3,5001]  in w f32[2,17,5001]\ny = matmul(x, w) {trans_b=1}\nout y" };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "matmul", .tol = 4e-7, .n_point = 4 }, RUNTIME);
    static const char open[] = "sym k [1,900,9000]\nin x f32[7,k]  in w f32[k,40]\ny = matmul(x, w)\nout y";
    for (int64_t k = 7; k < 2000; k += 635) fast_check(t, &(fast_case){ .text = open, .root = "matmul", .sym = k, .n_point = 3 }, RUNTIME);
}

/* What takes any product and convolution sums in blocks too. */
TEST(naive_long_sums)
{
    static const char product[] = "sym n [1,3,5]\nin x f32[n,3000]  in w f32[3000,9]\ny = matmul(x, w)\nout y";
    fast_check(t, &(fast_case){ .text = product, .root = "matmul", .tol = 4e-7, .n_point = 2 }, "matmul_any_naive__cpu");
    static const char image[] = "in x f32[1,700,4,5]  in w f32[3,700,3,3]  in b f32[3]\ny = conv(x, w, b) {pad_begin=[1,1]}\nout y";
    fast_check(t, &(fast_case){ .text = image, .root = "conv", .tol = 4e-7 }, "conv_any_naive__cpu");
}

TEST(gemm_runtime_symbolic)
{
    static const char scores[] =
        "sym s [1,64,512]\nin x f32[2,s,32]  in y f32[2,s,32]\nz = matmul(x, y) {trans_b=1}\nout z";
    static const char values[] =
        "sym s [1,64,512]\nin x f32[2,s,s]  in y f32[2,s,32]\nz = matmul(x, y)\nout z";
    for (int64_t s = 1; s < 90; s += 11) {
        fast_check(t, &(fast_case){ .text = scores, .root = "matmul", .sym = s, .n_point = 3 }, RUNTIME);
        fast_check(t, &(fast_case){ .text = values, .root = "matmul", .sym = s, .n_point = 3 }, RUNTIME);
    }
}

#define BYTES "gemm_int8_dot__cpu"

/* Every pairing of signs, zero points absent, scalar and a column each; K no multiple of four. */
TEST(gemm_bytes)
{
    static const char *const text[] = {
        "in x u8[37,64]  in w i8[64,50]\nz = matmul_int(x, w)\nout z",
        "in x i8[5,33]  in w i8[33,17]  in a i8[1]\nz = matmul_int(x, w, a)\nout z",
        "in x u8[2,9,30]  in w u8[30,40]  in a u8[1]  in bz u8[1]\nz = matmul_int(x, w, a, bz)\nout z",
        "in x i8[20,71]  in w u8[71,70]  in a i8[1]  in bz u8[70]\nz = matmul_int(x, w, a, bz)\nout z",
        ("in x u8[20,71]  in w i8[71,70]  in a u8[1]  in bz i8[70]  in s f32[70]\n"
         "z = matmul_int(x, w, a, bz)  f = cast(z) {to=f32}  y = mul(f, s)\nout y"),
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "matmul_int", .tol = 1e-7 }, BYTES);
}

TEST(gemm_bytes_symbolic)
{
    static const char text[] =
        "sym m [1,128,512]\nin x u8[m,64]  in w i8[64,96]  in a u8[1]\nz = matmul_int(x, w, a)\nout z";
    for (int64_t m = 1; m < 80; m += 13)
        fast_check(t, &(fast_case){ .text = text, .root = "matmul_int", .sym = m, .tol = 1e-9, .n_point = 4 },
                   BYTES);
}

TEST(bench_gemm_bytes)
{
    fast_bench(t,
               &(fast_case){
                   .text = "in x u8[64,512]  in w i8[512,1024]  in a u8[1]\nz = matmul_int(x, w, a)\nout z",
                   .root = "matmul_int" },
               BYTES);
    fast_bench(t,
               &(fast_case){
                   .text = "in x u8[768,768]  in w i8[768,768]  in a u8[1]\nz = matmul_int(x, w, a)\nout z",
                   .root = "matmul_int" },
               BYTES);
    fast_bench(t,
               &(fast_case){
                   .text = "in x u8[1,1024]  in w i8[1024,1024]  in a u8[1]\nz = matmul_int(x, w, a)\nout z",
                   .root = "matmul_int" },
               BYTES);
}

TEST(bench_gemm_attention)
{
    printf("12 heads, 128 tokens of 64\n");
    fast_bench(
        t,
        &(fast_case){ .text = "in x f32[12,128,64]  in y f32[12,128,64]\nz = matmul(x, y) {trans_b=1}\nout z",
                      .root = "matmul" },
        RUNTIME);
    fast_bench(t,
               &(fast_case){ .text = "in x f32[12,128,128]  in y f32[12,128,64]\nz = matmul(x, y)\nout z",
                             .root = "matmul" },
               RUNTIME);
}

/* ---- timed by hand: HONE_BENCH=6 test_tactic_fast --filter bench_gemm ---- */
static void bench(hn_test *t, int m, int k, int n)
{
    printf("%dx%dx%d\n", m, n, k);
    fast_bench(t, &(fast_case){ .text = product(t, m, k, n), .root = "matmul" }, PACKED);
}

TEST(bench_gemm_768)
{
    bench(t, 768, 768, 768);
}

TEST(bench_gemm_128)
{
    bench(t, 128, 768, 768);
    bench(t, 128, 768, 3072);
    bench(t, 128, 3072, 768);
}

TEST(bench_gemm_197)
{
    bench(t, 197, 768, 768);
}

TEST(bench_gemm_small)
{
    bench(t, 1, 1024, 1024);
    bench(t, 4, 1024, 1024);
    bench(t, 6, 1024, 1024);
    bench(t, 24, 1024, 1024);
    bench(t, 48, 4608, 512);
}
