#include "op_test.h"

#include <stdlib.h>

#include "op/op_int.h"

TEST(matmul_values)
{
    EXPECT("const a f32[2,3] = {1, 2, 3, 4, 5, 6}  const b f32[3,2] = {1, 2, 3, 4, 5, 6}  y = matmul(a, b)  "
           "out y",
           "const y f32[2,2] = {22, 28, 49, 64}");
    EXPECT("const a f32[3,2] = {1, 4, 2, 5, 3, 6}  const b f32[2,3] = {1, 3, 5, 2, 4, 6}"
           "  y = matmul(a, b) {trans_a=1, trans_b=1}  out y",
           "const y f32[2,2] = {22, 28, 49, 64}");
    /* batches broadcast */
    EXPECT("const a f32[2,1,1,2] = {1, 2, 3, 4}  const b f32[2,2,1] = {1, 1, 2, 2}  y = matmul(a, b)  out y",
           "const y f32[2,2,1,1] = {3, 6, 7, 14}");
    EXPECT("const a i8[1,2] = {100, 100}  const b i8[2,1] = {1, 1}  y = matmul(a, b)  out y",
           "const y i8[1,1] = {-56}");
    /* nothing to contract: zeros; no rows: nothing */
    EXPECT("const a f32[2,0] = {}  const b f32[0,3] = {}  y = matmul(a, b)  out y",
           "const y f32[2,3] = {0, 0, 0, 0, 0, 0}");
    EXPECT("const a f32[0,2] = {}  const b f32[2,3] = {1, 2, 3, 4, 5, 6}  y = matmul(a, b)  out y",
           "const y f32[0,3] = {}");
    EXPECT("const a f32[1,2] = {inf, 1}  const b f32[2,2] = {0, 1, nan, 2}  y = matmul(a, b)  out y",
           "const y f32[1,2] = {nan, inf}");
}

TEST(matmul_refuses)
{
    REFUSES("in a f32[2,3]  in b f32[2,3]  y = matmul(a, b)  out y", "the contracted axes");
    REFUSES("in a f32[3]  in b f32[3,2]  y = matmul(a, b)  out y", "rank 1 where rank 2");
    REFUSES("in a f32[2,2,3]  in b f32[3,3,2]  y = matmul(a, b)  out y", "broadcast");
    REFUSES("in a f32[2,3]  in b f64[3,2]  y = matmul(a, b)  out y", "differ in dtype");
    REFUSES("in a bool[2,3]  in b bool[3,2]  y = matmul(a, b)  out y", "number");
    INFERS("in a f32[b,m,k]  in w f32[k,n]  y = matmul(a, w)  z = matmul(w, w) {trans_a=1}  out y  out z",
           "f32[b,m,n] f32[n,n]");
}

TEST(matmul_int_zero_points)
{
    /* ONNX's example */
    EXPECT("const a u8[4,3] = {11, 7, 3, 10, 6, 2, 9, 5, 1, 8, 4, 0}  const b u8[3,2] = {1, 4, 2, 5, 3, 6}"
           "  const za u8[] = {12}  const zb u8[] = {0}  y = matmul_int(a, b, za, zb)  out y",
           "const y i32[4,2] = {-38, -83, -44, -98, -50, -113, -56, -128}");
    EXPECT("const a i8[2,1] = {5, 5}  const b i8[1,2] = {10, 20}  const za i8[2] = {1, 2}  const zb i8[2] = "
           "{0, 10}"
           "  y = matmul_int(a, b, za, zb)  out y",
           "const y i32[2,2] = {40, 40, 30, 30}");
    EXPECT("const a u8[2,1] = {5, 5}  const b i8[1,1] = {-3}  y = matmul_int(a, b)  out y",
           "const y i32[2,1] = {-15, -15}");
    REFUSES("in a u8[2,3]  in b u8[3,2]  in z u8[3]  y = matmul_int(a, b, z)  out y", "zero point");
    REFUSES("in a f32[2,3]  in b u8[3,2]  y = matmul_int(a, b)  out y", "i8 or u8");
}

/* 448, the smallest numbers of either kind, zeros, NaN; sums above what f16 holds before they are scaled. */
TEST(matmul_f8_values)
{
    EXPECT("const a f8e4m3fn[2,3] = {1, 2, 3, -4, 5, 6}  const b f8e4m3fn[3,2] = {1, 2, 3, 4, 5, 6}"
           "  y = matmul_f8(a, b) {a_scale=0.5, b_scale=4, to=f32}  z = matmul_f8(a, b) {to=f16, trans_b=0}  out y  out z",
           "const y f32[2,2] = {44, 56, 82, 96}  const z f16[2,2] = {22, 28, 41, 48}");
    EXPECT("const a f8e4m3fn[1,1,2] = {448, 448}  const b f8e4m3fn[2,2] = {448, 448, 0.001953125, -0.0}"
           "  y = matmul_f8(a, b) {a_scale=0.0078125, b_scale=0.0078125, to=f16, trans_b=1}  out y",
           "const y f16[1,1,2] = {24.5, 0.000053405761718750}");
    EXPECT("const a f8e5m2[2,1] = {0.0000152587890625, 57344}  const b f8e4m3fn[1,3] = {0, nan, -2}"
           "  y = matmul_f8(a, b) {to=f32}  out y",
           "const y f32[2,3] = {0, nan, -0.000030517578125, 0, nan, -114688}");
    EXPECT("const a f8e4m3fn[2,0] = {}  const b f8e4m3fn[0,1] = {}  y = matmul_f8(a, b) {to=bf16}  out y", "const y bf16[2,1] = {0, 0}");
    EXPECT("const a f8e4m3fn[0,2] = {}  const b f8e4m3fn[2,0] = {}  y = matmul_f8(a, b) {to=f32}  out y", "const y f32[0,0] = {}");
    INFERS("in a f8e4m3fn[b,m,k]  in w f8e5m2[n,k]  y = matmul_f8(a, w) {to=bf16, trans_b=1}  out y", "bf16[b,m,n]");
    REFUSES("in a f8e4m3fn[2,3]  in b f8e4m3fn[2,3]  y = matmul_f8(a, b) {to=f32}  out y", "the contracted axes");
    REFUSES("in a f8e4m3fn[2,3]  in b f8e4m3fnuz[3,2]  y = matmul_f8(a, b) {to=f32}  out y", "f8e5m2 is needed");
    REFUSES("in a f8e4m3fn[2,3]  in b f8e4m3fn[4,3,2]  y = matmul_f8(a, b) {to=f32}  out y", "rank");
    REFUSES("in a f8e4m3fn[2,3]  in b f8e4m3fn[3,2]  y = matmul_f8(a, b) {to=i32}  out y", "not defined");
}

TEST(conv_values)
{
    EXPECT("const x f32[1,1,3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}  const w f32[1,1,2,2] = {1, 0, 0, 1}  const b "
           "f32[1] = {100}"
           "  y = conv(x, w, b)  out y",
           "const y f32[1,1,2,2] = {106, 108, 112, 114}");
    EXPECT("const x f32[1,1,3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}  const w f32[1,1,3,3] = {1, 1, 1, 1, 1, 1, 1, "
           "1, 1}"
           "  y = conv(x, w) {pad_begin=[1, 1], pad_end=[1, 1]}  z = conv(x, w) {stride=[2, 2], "
           "pad_begin=[1, 1], pad_end=[1, 1]}"
           "  out y  out z",
           "const y f32[1,1,3,3] = {12, 21, 16, 27, 45, 33, 24, 39, 28}  const z f32[1,1,2,2] = {12, 16, 24, "
           "28}");
    EXPECT("const x f32[1,1,5] = {1, 2, 3, 4, 5}  const w f32[1,1,2] = {1, 10}  y = conv(x, w) "
           "{dilation=[3]}  out y",
           "const y f32[1,1,2] = {41, 52}");
    /* groups: depthwise with a multiplier of two */
    EXPECT("const x f32[1,2,2] = {1, 2, 3, 4}  const w f32[4,1,1] = {1, 10, 100, 1000}  y = conv(x, w) "
           "{group=2}  out y",
           "const y f32[1,4,2] = {1, 2, 10, 20, 300, 400, 3000, 4000}");
    EXPECT("const x f32[0,1,3] = {}  const w f32[1,1,1] = {1}  y = conv(x, w)  out y",
           "const y f32[0,1,3] = {}");
    /* no channels: the bias alone */
    EXPECT("const x f32[1,0,2] = {}  const w f32[1,0,1] = {}  const b f32[1] = {7}  y = conv(x, w, b)  out y",
           "const y f32[1,1,2] = {7, 7}");
}

TEST(conv_refuses)
{
    REFUSES("in x f32[1,3,8,8]  in w f32[4,2,3,3]  y = conv(x, w)  out y",
            "3 channels but the filters take 2");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,2,3,3]  y = conv(x, w) {group=2}  out y",
            "3 filters do not divide into 2 groups");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,4,3,3]  y = conv(x, w) {group=0}  out y", "group is 0");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,4,3]  y = conv(x, w)  out y", "rank 3 where rank 4");
    REFUSES("in x f32[1,4,2,8]  in w f32[3,4,3,3]  y = conv(x, w)  out y", "reaches 1 elements beyond");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,4,3,3]  y = conv(x, w) {stride=[0, 1]}  out y",
            "stride of spatial axis 0 is 0");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,4,3,3]  y = conv(x, w) {stride=[1]}  out y",
            "stride has 1 entries");
    REFUSES("in x f32[1,4,8,8]  in w f32[3,4,3,3]  in b f32[4]  y = conv(x, w, b)  out y",
            "axis 0 of operand 2 is 4");
    REFUSES("in x f32[1,4]  in w f32[3,4]  y = conv(x, w)  out y", "rank 2");
    INFERS("in x f32[n,3,h,8]  in w f32[4,3,3,3]  y = conv(x, w) {stride=[2, 2], pad_begin=[1, 1], "
           "pad_end=[1, 1]}  out y",
           "f32[n,4,floordiv(h+1,2),4]");
}

/* Every position by the definition, against the blocked reference; sizes straddle its block of positions. */
static double conv_at(const double *x, const double *w, const int64_t *d, int64_t m, int64_t oy, int64_t ox,
                      int64_t s, int64_t pad)
{
    double sum = 0;
    for (int64_t c = 0; c < d[0]; c++)
        for (int64_t ky = 0; ky < 3; ky++)
            for (int64_t kx = 0; kx < 3; kx++) {
                const int64_t y = oy * s + ky - pad, xx = ox * s + kx - pad;
                if (y < 0 || y >= d[1] || xx < 0 || xx >= d[2]) continue;
                sum += x[(c * d[1] + y) * d[2] + xx] * w[((m * d[0] + c) * 3 + ky) * 3 + kx];
            }
    return sum;
}

TEST(conv_matches_definition)
{
    enum { C = 5, H = 37, W = 61, M = 6 };
    static double x[C * H * W], w[M * C * 9];
    for (int i = 0; i < C * H * W; i++)
        x[i] = (i * 37 % 101) / 50.0 - 1;
    for (int i = 0; i < M * C * 9; i++)
        w[i] = (i * 53 % 97) / 48.0 - 1;
    for (int64_t s = 1; s <= 3; s++) {
        const int64_t oh = (H + 2 - 3) / s + 1, ow = (W + 2 - 3) / s + 1, d[3] = { C, H, W };
        const int64_t stride[2] = { s, s }, pads[2] = { 1, 1 };
        const hn_attr attr[5] = { { .set = true, .n = 2, .is = stride },
                                  { 0 },
                                  { .set = true, .n = 2, .is = pads },
                                  { .set = true, .n = 2, .is = pads },
                                  { .set = true, .i = 1 } };
        hn_tdesc in[2] = { { HN_F64, 4, { 1, C, H, W } }, { HN_F64, 4, { M, C, 3, 3 } } },
                 out = { HN_F64, 4, { 1, M, oh, ow } };
        const hn_call c = { .op = &hn_op_conv,
                            .attr = attr,
                            .n_in = 2,
                            .n_out = 1,
                            .in = in,
                            .out = &out,
                            .syms = hn_symtab_new(t->arena) };
        double *y = malloc((size_t)(M * oh * ow) * sizeof(*y));
        const hn_view vin[2] = { { .type = in[0], .f = x, .numel = C * H * W },
                                 { .type = in[1], .f = w, .numel = M * C * 9 } };
        hn_view vout = { .type = out, .f = y, .numel = M * oh * ow };
        hn_diag dg = { 0 };
        CHECK_OK(hn_op_conv.ref(&c, vin, &vout, &dg), &dg);
        for (int64_t m = 0; m < M; m++)
            for (int64_t i = 0; i < oh * ow; i++)
                CHECK_NEAR(y[m * oh * ow + i], conv_at(x, w, d, m, i / ow, i % ow, s, 1), 1e-12);
        free(y);
    }
}

TEST(conv_int_zero_points)
{
    EXPECT("const x u8[1,1,3,3] = {2, 3, 4, 5, 6, 7, 8, 9, 10}  const w u8[1,1,2,2] = {1, 1, 1, 1}  const z "
           "u8[] = {1}"
           "  y = conv_int(x, w, z)  p = conv_int(x, w, z) {pad_begin=[1, 1], pad_end=[1, 1]}  out y  out p",
           "const y i32[1,1,2,2] = {12, 16, 24, 28}"
           "  const p i32[1,1,4,4] = {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}");
    EXPECT("const x i8[1,1,2] = {1, 2}  const w i8[2,1,1] = {5, 5}  const zw i8[2] = {1, 2}  y = conv_int(x, "
           "w, _, zw)  out y",
           "const y i32[1,2,2] = {4, 8, 3, 6}");
    REFUSES("in x u8[1,1,3]  in w u8[1,1,2]  in z u8[2]  y = conv_int(x, w, z)  out y", "one element");
    REFUSES("in x u8[1,1,3]  in w u8[3,1,2]  in z u8[2]  y = conv_int(x, w, _, z)  out y", "one per filter");
}

TEST(conv_transpose_values)
{
    /* ONNX's example */
    EXPECT("const x f32[1,1,3,3] = {0, 1, 2, 3, 4, 5, 6, 7, 8}"
           "  const w f32[1,2,3,3] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}  y = "
           "conv_transpose(x, w)  out y",
           "const y f32[1,2,5,5] = {0, 1, 3, 3, 2, 3, 8, 15, 12, 7, 9, 21, 36, 27, 15, 9, 20, 33, 24, 13, 6, "
           "13, 21, 15, 8,"
           " 0, 1, 3, 3, 2, 3, 8, 15, 12, 7, 9, 21, 36, 27, 15, 9, 20, 33, 24, 13, 6, 13, 21, 15, 8}");
    EXPECT("const x f32[1,1,2] = {1, 2}  const w f32[1,1,3] = {1, 10, 100}  const b f32[1] = {0.5}"
           "  y = conv_transpose(x, w, b) {stride=[2], out_pad=[1], pad_begin=[1], pad_end=[0]}  out y",
           "const y f32[1,1,5] = {10.5, 102.5, 20.5, 200.5, 0.5}");
    EXPECT("const x f32[1,2,1] = {1, 2}  const w f32[2,1,2] = {1, 10, 100, 1000}  y = conv_transpose(x, w) "
           "{group=2}  out y",
           "const y f32[1,2,2] = {1, 10, 200, 2000}");
    EXPECT("const x f32[1,1,2] = {1, 2}  const w f32[1,1,2] = {1, 10}  y = conv_transpose(x, w) "
           "{dilation=[2]}  out y",
           "const y f32[1,1,4] = {1, 2, 10, 20}");
    INFERS("in x f32[n,2,h,3]  in w f32[2,4,3,3]  y = conv_transpose(x, w) {stride=[2, 2], out_pad=[1, 1], "
           "pad_begin=[1, 1], pad_end=[1, 1]}"
           "  out y",
           "f32[n,4,2*h,6]");
    REFUSES("in x f32[1,3,4]  in w f32[2,1,3]  y = conv_transpose(x, w)  out y", "axis 1 of operand 0 is 3");
    REFUSES("in x f32[1,3,4]  in w f32[3,1,3]  y = conv_transpose(x, w) {group=2}  out y",
            "do not divide into 2 groups");
    REFUSES("in x f32[1,1,1]  in w f32[1,1,1]  y = conv_transpose(x, w) {pad_begin=[1], pad_end=[1]}  out y",
            "negative");
    REFUSES("in x f32[1,1,1]  in w f32[1,1,1]  in b f32[2]  y = conv_transpose(x, w, b)  out y",
            "the bias has 2 elements");
}

TEST(max_pool_values)
{
    EXPECT("const x f32[1,1,4] = {1, 5, 2, 5}  y, i = max_pool(x) {kernel=[2], stride=[2], dim=[2]}  out y  "
           "out i",
           "const y f32[1,1,2] = {5, 5}  const i i64[1,1,2] = {1, 3}");
    EXPECT("const x f32[1,2,2,2] = {-1, -2, -3, -4, 1, 2, 3, 4}"
           "  y, i = max_pool(x) {kernel=[3, 3], stride=[1, 1], pad_begin=[1, 1], pad_end=[1, 1], dim=[2, "
           "2]}  out y  out i",
           "const y f32[1,2,2,2] = {-1, -1, -1, -1, 4, 4, 4, 4}  const i i64[1,2,2,2] = {0, 0, 0, 0, 7, 7, "
           "7, 7}");
    EXPECT("const x f32[1,1,2,3] = {1, 2, 3, 4, 5, 6}  y, i = max_pool(x) {kernel=[1, 2], dim=[2, 2], "
           "column_major=1}  out y  out i",
           "const y f32[1,1,2,2] = {2, 3, 5, 6}  const i i64[1,1,2,2] = {2, 4, 3, 5}");
    EXPECT("const x f32[1,1,3] = {1, nan, 2}  y = max_pool(x) {kernel=[2], dim=[2]}  out y",
           "const y f32[1,1,2] = {nan, nan}");
    EXPECT("const x i8[1,1,3] = {-5, -7, -9}  y = max_pool(x) {kernel=[2], pad_begin=[1], dim=[3]}  out y",
           "const y i8[1,1,3] = {-5, -5, -7}");
    EXPECT("const x f32[1,1,5] = {5, 1, 2, 1, 4}  y = max_pool(x) {kernel=[2], dilation=[3], dim=[2]}  out y",
           "const y f32[1,1,2] = {5, 4}");
}

TEST(avg_and_lp_pool_values)
{
    EXPECT("const x f32[1,1,3] = {3, 6, 9}  y = avg_pool(x) {kernel=[2], pad_begin=[1], dim=[3]}"
           "  z = avg_pool(x) {kernel=[2], pad_begin=[1], dim=[3], count_include_pad=1}  out y  out z",
           "const y f32[1,1,3] = {3, 4.5, 7.5}  const z f32[1,1,3] = {1.5, 4.5, 7.5}");
    /* a window that the rounding up pushed beyond the padding counts the elements that are there */
    EXPECT(
        "const x f32[1,1,4] = {2, 4, 6, 9}  y = avg_pool(x) {kernel=[3], stride=[3], ceil_mode=1, dim=[2]}"
        "  z = avg_pool(x) {kernel=[3], stride=[3], ceil_mode=1, dim=[2], count_include_pad=1}  out y  out z",
        "const y f32[1,1,2] = {4, 9}  const z f32[1,1,2] = {4, 9}");
    EXPECT("const x f32[1,1,3] = {3, -4, 0}  y = lp_pool(x) {kernel=[2], dim=[2]}  z = lp_pool(x) "
           "{kernel=[3], dim=[1], p=1}  out y  out z",
           "const y f32[1,1,2] = {5, 4}  const z f32[1,1,1] = {7}");
    REFUSES("in x f32[1,1,4]  y = avg_pool(x) {kernel=[2], stride=[2], dim=[3]}  out y",
            "3 windows on spatial axis 0 run past the 4");
    REFUSES("in x f32[1,1,4]  y = avg_pool(x) {kernel=[0], dim=[3]}  out y", "kernel of spatial axis 0 is 0");
    REFUSES("in x i32[1,1,4]  y = avg_pool(x) {kernel=[2], dim=[3]}  out y", "float");
    REFUSES("in x f32[1,4]  y = max_pool(x) {kernel=[2], dim=[3]}  out y", "rank 2");
    REFUSES("in x f32[1,1,4]  y = lp_pool(x) {kernel=[2], dim=[3], p=0}  out y", "p is 0");
    INFERS("in x f32[n,3,h]  y, i = max_pool(x) {kernel=[2], dim=[h-1]}  out y  out i",
           "f32[n,3,h-1] i64[n,3,h-1]");
}
