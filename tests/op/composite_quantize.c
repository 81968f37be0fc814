/* Quantisation, moves between channels and space. */
#include "composite_test.h"

#include <stdio.h>

TEST(quantize_expands)
{
    static const char *const to[] = { "u8", "i8", "u16", "i16", "i4", "u4", "u2", "i2" };
    char text[256];

    for (int i = 0; i < HN_COUNT(to); i++) {
        snprintf(text, sizeof(text), "in x f32[3,5]  in s f32  in z %s  y = quantize(x, s, z) {to=%s}  out y",
                 to[i], to[i]);
        EXPANDS(text, "s=0.1..1 x=-3..3 z=0..1", E_HALF | E_HOSTILE);
        snprintf(
            text, sizeof(text),
            "sym n  in x f32[3,n]  in s f32[3]  in z %s[3]  y = quantize(x, s, z) {to=%s, axis=0}  out y",
            to[i], to[i]);
        EXPANDS(text, "s=0.01..1 x=-3..3 z=0..1 n=4", 0);
        snprintf(text, sizeof(text),
                 "in x f32[2,6,3]  in s f32[2,3,3]  in z %s[2,3,3]  y = quantize(x, s, z) {to=%s, axis=-2, "
                 "block=2}  out y",
                 to[i], to[i]);
        EXPANDS(text, "s=0.01..1 x=-3..3 z=0..1", 0);
    }
    EXPANDS("in x f32[2,5]  in s f32[2,3]  y = quantize(x, s) {to=i8, axis=1, block=2}  out y", "s=0.01..1",
            0);
    EXPANDS("sym n  in x f32[n,2]  in s f32[floordiv(n+2,3),2]  y = quantize(x, s) {to=i8, axis=0, block=3}  "
            "out y",
            "s=0.01..1 n=7", 0);
    EXPANDS("in x i32[2,5]  in s f32  y = quantize(x, s) {to=i8}  out y", "s=0.3..1 x=-300..300", E_AS_IS);
    EXPANDS("in x f32[2,5]  in s f32[1]  y = quantize(x, s) {to=f8e4m3fn}  out y", "s=0.001..1",
            E_HALF | E_HOSTILE);
    EXPANDS("in x f32[2,5]  in s f32[1,1]  y = quantize(x, s) {to=f8e5m2, saturate=0}  out y",
            "s=0.00001..0.0001", E_HOSTILE);
    EXPANDS("in x f32[2,5]  in s f32  y = quantize(x, s) {to=f4e2m1}  out y", "s=0.1..1", 0);
}

TEST(quantize_by_hand)
{
    EXPECT("const x f32[6] = {0, 2, 3, 1000, -254, -1000}  const s f32 = {2}  const z u8 = {128}  y = "
           "quantize(x, s, z) {to=u8}  out y",
           "const y u8[6] = {128, 129, 130, 255, 1, 0}");
    EXPECT("const x f32[4] = {0.5, 1.5, 2.5, -0.5}  const s f32 = {1}  y = quantize(x, s) {to=i8}  out y",
           "const y i8[4] = {0, 2, 2, 0}");
    EXPECT("const x f32[2] = {nan, 3}  const s f32 = {2}  y = quantize(x, s) {to=i8}  out y",
           "const y i8[2] = {0, 2}");
    /* the quotient is 2.5 in f32, which rounds to 2, but 2.50000008 in double */
    EXPECT("const x f32[1] = {15.725000381469727}  const s f32 = {6.289999961853027}  y = quantize(x, s) "
           "{to=i8}  out y",
           "const y i8[1] = {2}");
}

TEST(matmul_f8_expands)
{
    static const char *const to[] = { "f32", "f16", "bf16" };
    char text[256];

    for (int i = 0; i < HN_COUNT(to); i++) {
        snprintf(text, sizeof(text), "in a f8e4m3fn[3,17]  in b f8e4m3fn[17,5]  y = matmul_f8(a, b) {to=%s, a_scale=0.3, b_scale=0.7}  out y", to[i]);
        EXPANDS(text, "", E_AS_IS | E_HOSTILE);
        snprintf(text, sizeof(text), "sym n  in a f8e5m2[2,n,6]  in b f8e4m3fn[4,6]  y = matmul_f8(a, b) {to=%s, b_scale=0.001, trans_b=1}  out y", to[i]);
        EXPANDS(text, "n=3", E_AS_IS | E_HOSTILE);
    }
}

TEST(dequantize_expands)
{
    static const char *const from[] = { "u8", "i8", "u16",      "i16",    "i32",   "i4",
                                        "u4", "i2", "f8e4m3fn", "f8e5m2", "f4e2m1" };
    char text[256];

    for (int i = 0; i < HN_COUNT(from); i++) {
        snprintf(
            text, sizeof(text),
            "in x %s[3,5]  in s f32[1]  y = dequantize(x, s) {to=f16}  z = dequantize(x, s)  out y  out z",
            from[i]);
        EXPANDS(text, "s=0.1..1 x=0..1", E_HALF);
        snprintf(text, sizeof(text),
                 "sym n  in x %s[n,5]  in s f32[5]  in z %s[5]  y = dequantize(x, s, z)  out y", from[i],
                 from[i]);
        EXPANDS(text, "s=0.1..1 n=3 x=0..1 z=0..1", 0);
        snprintf(
            text, sizeof(text),
            "in x %s[5,2]  in s f32[2,2]  in z %s[2,2]  y = dequantize(x, s, z) {axis=0, block=3}  out y",
            from[i], from[i]);
        EXPANDS(text, "s=0.1..1 x=0..1 z=0..1", 0);
    }
}

/* Also a row of reports that runtimes got wrong: one scale a column, negative zero point. */
TEST(dequantize_by_hand)
{
    EXPECT("const x i8[2,3] = {1, 1, 1, 4, 4, 4}  const s f32[3] = {0.5, 2, 10}  const z i8[3] = {0, 1, -1}\n"
           "y = dequantize(x, s, z) {axis=1}  out y",
           "const y f32[2,3] = {0.5, 0, 20, 2, 6, 50}");
}

TEST(quantize_refuses)
{
    REFUSES("in x f32[2,3]  in s f32  y = quantize(x, s)  out y", "to");
    REFUSES("in x f32[2,3]  in s f32  y = quantize(x, s) {to=i32}  out y", "i32");
    REFUSES("in x f32[2,3]  in s f32[2]  y = quantize(x, s) {to=i8}  out y", "");
    REFUSES("in x f32[2,3]  in s f32[3]  in z u8[3]  y = quantize(x, s, z) {to=i8}  out y", "");
    REFUSES("in x f32[2,3]  in s f32[3]  in z i8[2]  y = quantize(x, s, z) {to=i8}  out y", "");
    REFUSES("in x f32[2,5]  in s f32[2,2]  y = quantize(x, s) {to=i8, block=2}  out y", "blocks");
    REFUSES("in x f32[2,5]  in s f32[5]  y = quantize(x, s) {to=i8, axis=2}  out y", "axis");
    REFUSES("in x f32[2,5]  in s f32  y = dequantize(x, s)  out y", "f32");
    REFUSES("in x i8[2,5]  in s f32  y = dequantize(x, s) {to=i32}  out y", "i32");
    REFUSES("in x f16[2,5]  y = dynamic_quantize(x)  out y", "f32");
}

TEST(dynamic_quantize_expands)
{
    EXPANDS("sym n  in x f32[3,n]  y, s, z = dynamic_quantize(x)  out y  out s  out z", "n=17 x=-3..5",
            E_AS_IS);
    EXPANDS("in x f32[7]  y, s, z = dynamic_quantize(x)  out y  out s  out z", "x=1..2", E_AS_IS);
    EXPANDS("in x f32[7]  y, s, z = dynamic_quantize(x)  out y  out s  out z", "x=-2..-1", E_AS_IS);
    EXPANDS("in x f32[0]  y, s, z = dynamic_quantize(x)  out y  out s  out z", "", E_AS_IS);
    EXPECT("const x f32[6] = {0, 2, -3, -2.5, 1.34, 0.5}  y, s, z = dynamic_quantize(x)  out y  out s  out z",
           "const y u8[6] = {153, 255, 0, 26, 221, 179}  const s f32 = {0.019607844}  const z u8 = {153}");
    EXPECT("const x f32[2] = {0, 0}  y, s, z = dynamic_quantize(x)  out y  out s  out z",
           "const y u8[2] = {0, 0}  const s f32 = {1}  const z u8 = {0}");
}

TEST(depth_and_space_expand)
{
    EXPANDS(
        "in x f32[2,8,2,3]  y = depth_to_space(x) {block=2}  z = space_to_depth(y) {block=2}  out y  out z",
        "", E_HALF);
    EXPANDS("sym n  sym h  in x f32[n,18,h,2]  y = depth_to_space(x) {block=3, mode=crd}  out y", "n=2 h=3",
            E_HOSTILE);
    EXPANDS("sym h  in pin i8[h]  in x i8[1,3,4*h,6]  y = space_to_depth(x) {block=2}  out y  out pin", "h=2",
            E_AS_IS);
    EXPECT(
        "const x f32[1,4,1,2] = {0, 1, 2, 3, 4, 5, 6, 7}  y = depth_to_space(x) {block=2}  z = "
        "space_to_depth(y) {block=2}  out y  out z",
        "const y f32[1,1,2,4] = {0, 2, 1, 3, 4, 6, 5, 7}  const z f32[1,4,1,2] = {0, 1, 2, 3, 4, 5, 6, 7}");
    EXPECT(
        "const x f32[1,8,1,1] = {0, 1, 2, 3, 4, 5, 6, 7}  y = depth_to_space(x) {block=2}  z = "
        "depth_to_space(x) {block=2, mode=crd}  out y  out z",
        "const y f32[1,2,2,2] = {0, 2, 4, 6, 1, 3, 5, 7}  const z f32[1,2,2,2] = {0, 1, 2, 3, 4, 5, 6, 7}");
    REFUSES("in x f32[1,6,1,1]  y = depth_to_space(x) {block=2}  out y", "split");
    REFUSES("in x f32[1,6,3,2]  y = space_to_depth(x) {block=2}  out y", "split");
    REFUSES("in x f32[1,6,2]  y = space_to_depth(x) {block=2}  out y", "rank");
    REFUSES("in x f32[1,6,2,2]  y = space_to_depth(x) {block=0}  out y", "");
}

TEST(reorder_keeps_the_value)
{
    EXPECT("const x i64[3] = {3, -1, 9223372036854775807}  y = reorder(x)  out y",
           "const y i64[3] = {3, -1, 9223372036854775807}");
    INFERS("sym n  in x f16[n,2]  y = reorder(x)  out y", "f16[n,2]");
}
