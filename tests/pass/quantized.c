#include "pass/pass_test.h"

/* Inputs -1..1 spread over the bytes; the same graph with other words for %s. */
#define BYTES(dtype, zero) "in f f32[2,4,5,6]  const s f32[] = {0.008}  const z " dtype "[] = {" zero "}\n" \
                           "x = quantize(f, s, z) {to=" dtype "}  d = dequantize(x, s, z)\n"
#define WEIGHTS "const w i8[3,4,1,2] = {1,-2,127,4,5,-128,7,8,-9,10,11,-12,13,14,15,16,17,-18,19,20,21,22,-23,24}\n"
#define ROWS "in f f32[3,5,4]  const s f32[] = {0.008}  const z i8[] = {-7}\n" \
             "x = quantize(f, s, z) {to=i8}  d = dequantize(x, s, z)\n"

TEST(quantized_convolutions)
{
    static const char *const text[] = {
        BYTES("u8", "131") WEIGHTS "const t f32[] = {0.5}\ne = dequantize(w, t)\ny = conv(d, e) {pad_begin=[1,0], pad_end=[0,1]}\nout y",
        BYTES("i8", "-3") WEIGHTS "const t f32[3] = {0.5,0.25,2}  const u i8[3] = {0,0,0}  const c f32[3] = {1,2,3}\n"
                          "e = dequantize(w, t, u) {axis=0}\ny = conv(d, e, c) {stride=[2,1]}\nout y",
        BYTES("u8", "0") "const w u8[4,2,1,1] = {1,2,130,255,5,6,0,8}  const t f32[4] = {0.5,0.25,2,1}  const u u8[4] = {1,128,255,0}\n"
                         "e = dequantize(w, t, u) {axis=0}\ny = conv(d, e) {group=2}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) {
        CHECK_EQ(hn_test_pass(t, "quantized", text[i], &g), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_conv_int), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_conv), 0);
    }
}

TEST(quantized_products)
{
    static const char *const text[] = {
        ROWS "const w i8[4,2] = {1,-2,127,4,5,-128,7,8}  const t f32[2] = {0.5,0.25}\ne = dequantize(w, t) {axis=1}\n"
             "y = matmul(d, e)\nout y",
        ROWS "const w u8[2,4] = {1,2,127,4,5,128,7,8}  const t f32[] = {0.5}  const u u8[] = {9}\ne = dequantize(w, t, u)\n"
             "y = matmul(d, e) {trans_b=1}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) {
        CHECK_EQ(hn_test_pass(t, "quantized", text[i], &g), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_matmul_int), 1);
    }
}

TEST(quantized_does_not_fire)
{
    static const char *const text[] = {
        "in d f32[2,4,5,6]\n" WEIGHTS "const t f32[] = {0.5}\ne = dequantize(w, t)\ny = conv(d, e)\nout y", /* x is no byte */
        BYTES("u8", "3") "in e f32[3,4,1,2]\ny = conv(d, e)\nout y",                                         /* nor are weights */
        BYTES("u8", "3") "in w i8[3,4,1,2]  const t f32[] = {0.5}\ne = dequantize(w, t)\ny = conv(d, e)\nout y", /* computed */
        BYTES("u8", "3") WEIGHTS "in t f32[]\ne = dequantize(w, t)\ny = conv(d, e)\nout y",
        BYTES("u8", "3") WEIGHTS "const t f32[4] = {1,2,3,4}\ne = dequantize(w, t) {axis=1}\ny = conv(d, e)\nout y", /* inputs' scale */
        ROWS "const w i8[4,2] = {1,-2,127,4,5,-128,7,8}  const t f32[4] = {1,2,3,4}\ne = dequantize(w, t) {axis=0}\n"
             "y = matmul(d, e)\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "quantized", text[i], &g), 0);
}

#define F8_ROWS(dtype, f8) "in f " dtype "[3,5,4]  const s " dtype "[1] = {0.25}  const z " f8 "[1] = {0}\n" \
                           "x = quantize(f, s, z) {to=" f8 "}  d = dequantize(x, s, z)\n"
#define F8_WEIGHTS "const w f8e4m3fn[4,2] = {1,-2,448,4,nan,-0.001953125,7,-0.0}  const t f16[] = {0.5}\ne = dequantize(w, t)\n"
#define F8_TURNED "const w f8e5m2[2,4] = {1,2,57344,4,5,inf,7,8}  const t f32[] = {0.125}\ne = dequantize(w, t)\n"

TEST(quantized_products_of_floats)
{
    static const char *const text[] = {
        F8_ROWS("f16", "f8e4m3fn") F8_WEIGHTS "y = matmul(d, e)\nout y",
        F8_ROWS("f32", "f8e4m3fn") F8_TURNED "y = matmul(d, e) {trans_b=1}\nout y",
        F8_ROWS("f32", "f8e5m2") F8_TURNED "v = transpose(e) {perm=[1,0]}\ny = matmul(d, v)\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_test_note("case %d", i);
        CHECK_EQ(hn_test_pass(t, "quantized", text[i], &g), 0); /* no tactic takes it */
        CHECK_EQ(hn_test_count_ops(g, HN_OP_matmul_f8), 0);
        CHECK_EQ(hn_test_pass_keeping(t, "quantized", text[i], &g), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_matmul_f8), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_matmul), 0);
    }
}

TEST(quantized_floats_do_not_fire)
{
    static const char *const text[] = {
        F8_ROWS("f16", "f8e4m3fn") "in w f8e4m3fn[4,2]  const t f16[] = {0.5}\ne = dequantize(w, t)\ny = matmul(d, e)\nout y", /* computed */
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fn[4,2]  const t f16[2] = {0.5,2}\ne = dequantize(w, t) {axis=1}\ny = matmul(d, e)\nout y",
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fn[4,2]  in t f16[]\ne = dequantize(w, t)\ny = matmul(d, e)\nout y",
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fn[4,2]  const t f16[] = {0}\ne = dequantize(w, t)\ny = matmul(d, e)\nout y",
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fn[4,2]  const t f16[] = {1}  const u f8e4m3fn[] = {1}\n"
                                   "e = dequantize(w, t, u)\ny = matmul(d, e)\nout y",
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fnuz[4,2]  const t f16[] = {1}\ne = dequantize(w, t)\ny = matmul(d, e)\nout y",
        F8_ROWS("f16", "f8e4m3fn") "const w f8e4m3fn[3,4,2]  const t f16[] = {1}\ne = dequantize(w, t)\ny = matmul(d, e)\nout y",
        F8_ROWS("f64", "f8e4m3fn") "const w f8e4m3fn[4,2]  const t f64[] = {1}\ne = dequantize(w, t)\ny = matmul(d, e)\nout y", /* result */
        "in d f16[3,4]\n" F8_WEIGHTS "y = matmul(d, e)\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_test_note("case %d", i);
        CHECK_EQ(hn_test_pass_keeping(t, "quantized", text[i], &g), 0);
    }
}

TEST(drop_requantize_fires)
{
    static const char *const text[] = {
        BYTES("u8", "131") "y = quantize(d, s, z) {to=u8}\nout y",
        BYTES("i8", "-3") "m = max_pool(d) {kernel=[2,2], stride=[1,2], pad_begin=[1,1], pad_end=[0,1], dim=[5,4]}\n"
                          "y = quantize(m, s, z) {to=i8}\nout y",
        BYTES("u8", "0") "a = reshape(d) {dim=[8,30]}\nb = transpose(a) {perm=[1,0]}\ny = quantize(b, s, z) {to=u8}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) {
        CHECK_EQ(hn_test_pass(t, "drop_requantize", text[i], &g), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_quantize), 1);
        CHECK_EQ(hn_test_count_ops(g, HN_OP_dequantize), 0);
    }
}

TEST(drop_requantize_does_not_fire)
{
    static const char *const text[] = {
        BYTES("u8", "131") "const r f32[] = {0.009}\ny = quantize(d, r, z) {to=u8}\nout y",               /* another scale */
        BYTES("u8", "131") "const r u8[] = {130}\ny = quantize(d, s, r) {to=u8}\nout y",                  /* another zero point */
        BYTES("u8", "0") "const r i8[] = {0}\ny = quantize(d, s, r) {to=i8}\nout y",                      /* another type */
        BYTES("u8", "131") "a = relu(d)\ny = quantize(a, s, z) {to=u8}\nout y",                           /* computes */
        BYTES("u8", "131") "a = reshape(d) {dim=[8,30]}\ny = quantize(a, s, z) {to=u8}\nout y\nout a",    /* another reader */
        "in x u8[4]  const s f32[] = {-0.5}  const z u8[] = {9}\nd = dequantize(x, s, z)\ny = quantize(d, s, z) {to=u8}\nout y",
        "in x u8[4]  const s f32[] = {1e-40}  const z u8[] = {9}\nd = dequantize(x, s, z)\ny = quantize(d, s, z) {to=u8}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "drop_requantize", text[i], &g), 0);
}

TEST(merge_scale_fires)
{
    static const char *const text[] = {
        "in x f32[2,3]  const k f32[3] = {2,0,-5}  const c f32[] = {3}\na = mul(x, k)\ny = div(a, c)\nout y",
        "in x f32[2,3]  const k f32[] = {7}  const c f32[2,1] = {3,-2}\na = div(x, k)\ny = mul(c, a)\nout y",
        "in x f32[2,3]  const k f32[] = {7}  const c f32[] = {3}\na = div(x, k)\ny = div(a, c)\nout y",
        "in x f32[2,3]  const k f32[] = {7}  const d f32[3] = {1,0,-4}  const c f32[] = {3}\n"
        "a = mul(x, k)\nb = sub(a, d)\ny = div(b, c)\nout y",
        "in x f32[2,3]  const k f32[] = {7}\na = mul(x, k)\ny = reduce_sum(a) {axes=[1]}\nout y",
        "in x f32[1,2,5,5]  const k f32[1] = {7}\na = mul(x, k)\n"
        "y = avg_pool(a) {kernel=[2,2], stride=[2,2], pad_begin=[1,1], dim=[3,3]}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "merge_scale", text[i], &g), 1);
}

TEST(merge_scale_does_not_fire)
{
    static const char *const text[] = {
        "in x f32[2,3]  const k f32[] = {7}  const c f32[] = {3}\na = mul(x, k)\ny = div(a, c)\nout y\nout a",
        "in x f32[2,3]  const k f32[] = {7}  const c f32[] = {3}\na = mul(x, k)\ny = div(c, a)\nout y",
        "in x f32[2,3]  const k f32[] = {1e20}  const c f32[] = {1e20}\na = mul(x, k)\ny = mul(c, a)\nout y",
        "in x f32[2,3]  const k f32[] = {7}  const c f32[] = {inf}\na = mul(x, k)\ny = mul(c, a)\nout y",
        "in x f32[2,3]  const k f32[] = {0}  const c f32[] = {3}\na = mul(x, c)\ny = div(a, k)\nout y",
        "in x f32[2,3]  const k f32[4,1,1] = {1,2,3,4}  const c f32[] = {3}\na = mul(x, k)\ny = mul(c, a)\nout y",
        "in x i32[2,3]  const k i32[] = {7}  const c i32[] = {3}\na = mul(x, k)\ny = div(a, c)\nout y",
        "in x f32[2,3]  const k f32[3] = {1,2,3}\na = mul(x, k)\ny = reduce_sum(a) {axes=[1]}\nout y",
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "merge_scale", text[i], &g), 0);
}
