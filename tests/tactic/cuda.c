/* Tactics written for a GPU: tile edges, fused work, layouts, storage types, in the interpreter with its threads and barriers. */
#include "fast_run.h"

static void every(hn_test *t, const char *text, const char *root, const char *layout, double tol)
{
    fast_every(t, &(fast_case){ .text = text, .root = root, .layout = layout, .tol = tol > 0 ? tol : 1e-5, .n_point = 3 });
}

TEST(gpu_products)
{
    static const int m[] = { 1, 33, 64 }, n[] = { 17, 70, 32 }, k[] = { 5, 16, 40 };
    for (int i = 0; i < 3; i++)
        every(t, hn_arena_printf(t->arena, "in x f32[%d,%d]  in w f32[%d,%d]\ny = matmul(x, w)  z = relu(y)\nout z", m[i], k[i], k[i], n[i]),
              "matmul", NULL, 0);
    every(t, "in x f32[9,20]  in w f32[30,9]\ny = matmul(x, w) {trans_a=1, trans_b=1}\nout y", "matmul", NULL, 0);
    every(t, "in x f32[2,3,9,20]  in y f32[3,20,7]  in c f32[7]\na = exp(x)  p = matmul(a, y)  q = add(p, c)\nout q", "matmul", NULL, 0);
    every(t, "in x f16[19,20]  in w f16[20,18]\ny = matmul(x, w)\nout y", "matmul", NULL, 1e-3);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x f32[n,24]  in w f32[24,n]\ny = matmul(x, w)\nout y",
                                .root = "matmul", .tol = 1e-5, .sym = 21, .n_point = 2 });
}

TEST(gpu_convolutions)
{
    static const char *const layout[] = { NULL, "acdb" };
    for (int i = 0; i < 2; i++) {
        every(t, "in x f32[2,5,7,6]  in w f32[18,5,3,3]  in b f32[18]\n"
                 "y = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1], stride=[2,1]}  z = relu(y)\nout z", "conv", layout[i], 0);
        every(t, "in x f32[1,8,5,5]  in w f32[16,4,3,3]\ny = conv(x, w) {group=2, dilation=[2,1]}\nout y", "conv", layout[i], 0);
        every(t, "in x f32[1,16,4,5]  in w f32[33,16,1,1]  in r f32[1,33,4,5]\ny = conv(x, w)  s = add(y, r)\nout s", "conv",
              layout[i], 0);
    }
    every(t, "in x f32[2,6,19]  in w f32[9,6,5]\ny = conv(x, w) {pad_begin=[2], pad_end=[2]}\nout y", "conv", NULL, 0);
}

TEST(gpu_lines)
{
    static const int n[] = { 16, 33, 200, 700 };
    for (int i = 0; i < 4; i++) {
        every(t, hn_arena_printf(t->arena, "in x f32[3,%d]  in z f32[3,%d]\ns = add(x, z)  a = softmax(s) {axis=1}  b = neg(a)\nout b", n[i], n[i]),
              "softmax", NULL, 0);
        every(t, hn_arena_printf(t->arena, "in x f32[3,%d]\na = log_softmax(x) {axis=1}\nout a", n[i]), "log_softmax", NULL, 0);
        every(t, hn_arena_printf(t->arena, "in x f32[3,%d]  in s f32[%d]  in c f32[%d]\na = layer_norm(x, s, c)\nout a", n[i], n[i], n[i]),
              "layer_norm", NULL, 0);
        every(t, hn_arena_printf(t->arena, "in x f32[2,3,%d]\na = reduce_sum(x) {axes=[2], keepdims=0}\nout a", n[i]), "reduce_sum", NULL, 0);
    }
    every(t, "in x f16[3,100]  in s f16[100]\na = rms_norm(x, s)\nout a", "rms_norm", NULL, 1e-3);
    every(t, "in x f32[4,50]\na = reduce_max(x) {axes=[1]}\nout a", "reduce_max", NULL, 0);
}

/* Vectors along a line, lines beside each other, lines longer than a block holds. */
TEST(gpu_lines_of_every_kind)
{
    static const int n[] = { 1, 5, 16, 70 };
    for (int i = 0; i < 4; i++) {
        every(t, hn_arena_printf(t->arena, "in x f32[2,%d,35]\na = softmax(x) {axis=1}  b = neg(a)\nout b", n[i]), "softmax", NULL, 0);
        every(t, hn_arena_printf(t->arena, "in x f16[2,4,3,%d]\na = log_softmax(x) {axis=3}\nout a", n[i]), "log_softmax", "acdb", 2e-3);
    }
    every(t, "in x f16[3,768]  in r f16[3,768]  in s f16[768]  in c f16[768]\nz = add(x, r)  a = layer_norm(z, s, c)\nout a", "layer_norm", NULL, 2e-3);
    every(t, "in x f32[3,516]  in s f32[516]\na = rms_norm(x, s)\nout a", "rms_norm", NULL, 0);
    every(t, "in x f32[2,5000]\na = softmax(x) {axis=1}\nout a", "softmax", NULL, 0);
    every(t, "in x f32[3000,3]\na = softmax(x) {axis=0}\nout a", "softmax", NULL, 0);
    every(t, "in x bf16[2,520]\na = reduce_max(x) {axes=[1]}  b = exp(a)\nout b", "reduce_max", NULL, 1e-2);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x f32[3,n,9]\nz = softmax(x) {axis=1}\nout z", .root = "softmax", .tol = 1e-5,
                                .sym = 21, .n_point = 4 });
}

/* Several to a block: as many as fill it, some past the last line, an unknown number of them. */
TEST(gpu_short_lines)
{
    static const int n[] = { 31, 96 }, lines[] = { 137, 270 };
    for (int i = 0; i < 2; i++) {
        const char *const norm = hn_arena_printf(t->arena, "in x f16[%d,%d]  in s f16[%d]  in c f16[%d]\na = layer_norm(x, s, c)\nout a",
                                                 lines[i], n[i], n[i], n[i]);
        const char *const soft = hn_arena_printf(t->arena, "in x f32[%d,%d]\na = softmax(x) {axis=1}  b = neg(a)\nout b", lines[i], n[i]);
        const char *const sum = hn_arena_printf(t->arena, "in x f32[%d,%d]\na = reduce_sum(x) {axes=[1]}\nout a", lines[i], n[i]);
        const char *const open = hn_arena_printf(t->arena, "sym n [1,150,270]\nin x f32[n,%d]\na = log_softmax(x) {axis=1}\nout a", n[i]);
        fast_every(t, &(fast_case){ .text = norm, .root = "layer_norm", .tol = 2e-3, .n_point = 6 });
        fast_every(t, &(fast_case){ .text = soft, .root = "softmax", .tol = 1e-5, .n_point = 6 });
        fast_every(t, &(fast_case){ .text = sum, .root = "reduce_sum", .tol = 1e-5, .n_point = 6 });
        fast_every(t, &(fast_case){ .text = open, .root = "log_softmax", .tol = 1e-5, .sym = 141, .n_point = 6 });
    }
}

TEST(gpu_columns)
{
    static const int c[] = { 1, 8, 33, 70 }, h[] = { 4, 5, 16, 33 }, w[] = { 4, 13, 16, 40 };
    static const char *const op[] = { "reduce_sum", "reduce_max", "reduce_min", "reduce_prod" };
    for (int i = 0; i < 4; i++) {
        every(t, hn_arena_printf(t->arena, "in x f32[2,%d,%d,%d]  in z f32[2,%d,%d,%d]\na = mul(x, z)  y = %s(a) {axes=[2,3]}  e = relu(y)\nout e",
                                 c[i], h[i], w[i], c[i], h[i], w[i], op[i]), op[i], "acdb", 0);
        every(t, hn_arena_printf(t->arena, "in x f32[%d,2,%d]\ny = %s(x) {axes=[0], keepdims=0}\nout y", h[i] * 4, c[i], op[(i + 1) % 4]),
              op[(i + 1) % 4], NULL, 0);
    }
    every(t, "in x f32[40,3,60,5]\ny = reduce_sum(x) {axes=[0,2], keepdims=0}\nout y", "reduce_sum", NULL, 0);
    every(t, "in x f16[1,20,9,9]\ny = reduce_sum(x) {axes=[2,3]}\nout y", "reduce_sum", "acdb", 1e-3);
    every(t, "in x f32[5000,9]\ny = reduce_sum(x) {axes=[0]}\nout y", "reduce_sum", NULL, 0);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x f32[n,24,n]\nz = reduce_sum(x) {axes=[0,1]}\nout z",
                                .root = "reduce_sum", .tol = 1e-5, .sym = 21, .n_point = 4 });
}

/* Matrix units: edges of tiles, operands copied as they lie, turned over, and computed. */
static const int half_m[] = { 1, 17, 70, 128 }, half_n[] = { 8, 40, 72, 31 }, half_k[] = { 8, 40, 96, 200 };

TEST(gpu_half_products)
{
    for (int i = 0; i < 4; i++)
        every(t, hn_arena_printf(t->arena, "in x f16[%d,%d]  in w f16[%d,%d]\ny = matmul(x, w)  z = relu(y)\nout z",
                                 half_m[i], half_k[i], half_k[i], half_n[i]), "matmul", NULL, 1e-3);
    every(t, "in x f16[9,19]  in w f16[19,13]\ny = matmul(x, w)\nout y", "matmul", NULL, 1e-3);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x f16[n,24]  in w f16[24,n]\ny = matmul(x, w)\nout y",
                                .root = "matmul", .tol = 1e-3, .sym = 21, .n_point = 3 });
}

TEST(gpu_half_products_of_rows)
{
    for (int i = 0; i < 4; i++)
        every(t, hn_arena_printf(t->arena, "in x bf16[%d,%d]  in w bf16[%d,%d]  in r bf16[%d,%d]\n"
                                 "y = matmul(x, w) {trans_b=1}  z = add(y, r)\nout z",
                                 half_m[i], half_k[i], half_n[i], half_k[i], half_m[i], half_n[i]), "matmul", NULL, 6e-3);
}

TEST(gpu_half_products_turned_over)
{
    for (int i = 0; i < 4; i++)
        every(t, hn_arena_printf(t->arena, "in x f16[%d,%d]  in w f16[%d,%d]\ny = matmul(x, w) {trans_a=1}\nout y",
                                 half_k[i], half_m[i], half_k[i], half_n[i]), "matmul", NULL, 1e-3);
    every(t, "in x f16[2,3,9,24]  in y f16[3,24,16]  in c f16[16]\na = exp(x)  p = matmul(a, y)  q = add(p, c)  e = tanh(q)\nout e  out q",
          "matmul", NULL, 1e-3);
}

TEST(gpu_half_convolutions)
{
    static const char *const layout[] = { NULL, "acdb" };
    for (int i = 0; i < 2; i++) {
        every(t, "in x f16[2,16,7,6]  in w f16[24,16,3,3]  in b f16[24]\n"
                 "y = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1], stride=[2,1]}  z = relu(y)\nout z", "conv", layout[i], 1e-3);
        every(t, "in x f16[1,16,5,5]  in w f16[32,8,3,3]\ny = conv(x, w) {group=2, dilation=[2,1]}\nout y", "conv", layout[i], 1e-3);
        every(t, "in x f16[1,16,4,5]  in w f16[33,16,1,1]  in r f16[1,33,4,5]\ny = conv(x, w)  s = add(y, r)\nout s", "conv",
              layout[i], 1e-3);
        every(t, "in x bf16[1,3,9,8]  in w bf16[16,3,3,3]\na = relu(x)  y = conv(a, w) {pad_begin=[0,1], pad_end=[1,1]}\nout y", "conv",
              layout[i], 6e-3);
    }
    every(t, "in x f16[2,8,19]  in w f16[9,8,5]\ny = conv(x, w) {pad_begin=[2], pad_end=[2]}\nout y", "conv", NULL, 1e-3);
}

/* Bytes on matrix units, bit for bit: every pair of signs, zero points that are known, computed, alike for all columns or not. */
static void bytes(hn_test *t, const char *text, const char *root, const char *layout)
{
    fast_every(t, &(fast_case){ .text = text, .root = root, .layout = layout, .tol = 1e-15, .n_point = 2 });
}

TEST(gpu_byte_products)
{
    static const int m[] = { 1, 17, 40, 33 }, n[] = { 8, 40, 24, 31 }, k[] = { 16, 40, 96, 99 };
    for (int i = 0; i < 4; i++) {
        const char *a = i % 2 ? "u8" : "i8", *b = i / 2 ? "u8" : "i8";
        bytes(t, hn_arena_printf(t->arena, "in x %s[%d,%d]  in w %s[%d,%d]\ny = matmul_int(x, w)\nout y", a, m[i], k[i], b, k[i], n[i]),
              "matmul_int", NULL);
        bytes(t, hn_arena_printf(t->arena, "in x %s[%d,%d]  in w %s[%d,%d]  in z %s[]  const v %s[] = {77}\ny = matmul_int(x, w, z, v)\nout y", a,
                                 m[i], k[i], b, k[i], n[i], a, b), "matmul_int", NULL);
        bytes(t, hn_arena_printf(t->arena, "in x %s[2,%d,%d]  in w %s[%d,%d]  in wz %s[%d]  const z %s[] = {3}\ny = matmul_int(x, w, z, wz)\nout y",
                                 a, m[i] / 2 + 1, k[i], b, k[i], n[i], b, n[i], a), "matmul_int", NULL);
    }
}

/* Sums split over blocks; what follows and precedes in one kernel. */
TEST(gpu_byte_products_scaled)
{
    every(t, "in x u8[5,1600]  in w i8[1600,16]  const z u8[] = {128}\ny = matmul_int(x, w, z)\nout y", "matmul_int", NULL, 1e-15);
    bytes(t, "in x u8[33,64]  in w i8[64,48]  in z u8[]  const s f32[] = {0.0078125}  const p f32[] = {120}  const lo f32[] = {0}  const hi f32[] = {255}\n"
             "a = matmul_int(x, w, z)  f = cast(a) {to=f32}  g = mul(f, s)  r = round(g)  h = add(r, p)  c = max(h, lo)  d = min(c, hi)  e = cast(d) {to=u8}\nout e",
          "matmul_int", NULL);
    bytes(t, "in x i32[9,64]  in w i8[64,24]  const z i8[] = {5}\nq = cast(x) {to=i8}  a = matmul_int(q, w, z)\nout a", "matmul_int", NULL);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x u8[n,48]  in w u8[48,24]  in z u8[]\ny = matmul_int(x, w, z)\nout y",
                                .root = "matmul_int", .tol = 1e-15, .sym = 21, .n_point = 2 });
}

static void byte_convolutions(hn_test *t, const char *a, const char *b, const char *layout)
{
    bytes(t, hn_arena_printf(t->arena, "in x %s[2,16,7,6]  in w %s[24,16,3,3]  const z %s[] = {9}\n"
             "y = conv_int(x, w, z) {pad_begin=[1,1], pad_end=[1,1], stride=[2,1]}\nout y", a, b, a), "conv_int", layout);
    bytes(t, hn_arena_printf(t->arena, "in x %s[1,32,5,4]  in w %s[32,16,3,3]  in z %s[]  in wz %s[32]\n"
             "y = conv_int(x, w, z, wz) {group=2, dilation=[2,1], pad_begin=[1,1], pad_end=[2,1]}\nout y", a, b, a, b), "conv_int", layout);
    bytes(t, hn_arena_printf(t->arena, "in x %s[1,16,4,5]  in w %s[33,16,1,1]\ny = conv_int(x, w)\nout y", a, b), "conv_int", layout);
    bytes(t, hn_arena_printf(t->arena, "in x %s[1,3,5,6]  in w %s[16,3,3,3]  in z %s[]\ny = conv_int(x, w, z) {pad_begin=[0,1], pad_end=[1,1]}\nout y",
             a, b, a), "conv_int", layout);
}

TEST(gpu_byte_convolutions)
{
    byte_convolutions(t, "u8", "i8", "acdb");
    byte_convolutions(t, "i8", "i8", NULL);
}

TEST(gpu_byte_convolutions_of_unsigned_weights)
{
    byte_convolutions(t, "u8", "u8", "acdb");
    bytes(t, "in x i8[1,32,6,5]  in w u8[16,32,3,3]  in z i8[]\ny = conv_int(x, w, z) {pad_begin=[1,1], pad_end=[1,1]}\nout y", "conv_int", "acdb");
    bytes(t, "in x u8[2,16,19]  in w i8[9,16,5]  in z u8[]\ny = conv_int(x, w, z) {pad_begin=[2], pad_end=[2]}\nout y", "conv_int", NULL);
}

TEST(gpu_byte_depthwise)
{
    static const int c[] = { 8, 6, 20, 33 };
    for (int i = 0; i < 4; i++) {
        const char *a = i % 2 ? "u8" : "i8", *b = i / 2 ? "u8" : "i8";
        bytes(t, hn_arena_printf(t->arena, "in x %s[2,%d,7,9]  in w %s[%d,1,3,3]  in z %s[]  in wz %s[%d]\n"
                 "y = conv_int(x, w, z, wz) {group=%d, pad_begin=[1,1], pad_end=[2,1], stride=[1,%d]}\nout y", a, c[i], b, c[i], a, b, c[i], c[i],
                 i % 2 + 1), "conv_int", "acdb");
    }
    bytes(t, "in x u8[1,16,19]  in w i8[16,1,5]  const z u8[] = {200}  const wz i8[] = {3}\n"
             "y = conv_int(x, w, z, wz) {group=16, pad_begin=[2], pad_end=[2], dilation=[2]}  f = cast(y) {to=f32}\nout f", "conv_int", "acb");
    bytes(t, "in x i8[1,8,5,6]  in w i8[8,1,1,2]\ny = conv_int(x, w) {group=8}\nout y", "conv_int", "acdb");
}

TEST(gpu_half_attention)
{
    every(t, "in q f16[1,2,20,16]  in k f16[1,2,33,16]  in v f16[1,2,33,32]\ny = attention(q, k, v)\nout y", "attention", NULL, 2e-3);
    every(t, "in q f16[2,4,17,32]  in k f16[2,2,64,32]  in v f16[2,2,64,32]\ny = attention(q, k, v) {scale=0.3}  z = relu(y)\nout z",
          "attention", "acbd", 2e-3);
    every(t, "in q f16[1,1,150,16]  in k f16[1,1,150,16]  in v f16[1,1,150,16]\ny = attention(q, k, v) {causal=upper_left}\nout y", "attention",
          NULL, 2e-3); /* tiles that all rows see whole, tiles that are cut */
    every(t, "in q bf16[1,1,70,48]  in k bf16[1,1,70,48]  in v bf16[1,1,70,48]\ny = attention(q, k, v) {causal=upper_left, softcap=3}\nout y",
          "attention", NULL, 1e-2);
    every(t, "in q f16[2,2,9,16]  in k f16[2,2,40,16]  in v f16[2,2,40,16]  in m f16[2,1,1,40]\ny = attention(q, k, v, m) {causal=lower_right}\nout y",
          "attention", NULL, 2e-3);
    every(t, "in q f16[1,2,9,16]  in k f16[1,2,7,16]  in v f16[1,2,7,16]  in m bool[9,7]\ny = attention(q, k, v, m) {causal=lower_right}\nout y",
          "attention", NULL, 2e-3);
    fast_every(t, &(fast_case){ .text = "sym s [1,40,90]\nin q f16[1,2,s,16]  in k f16[1,2,s,16]  in v f16[1,2,s,16]\n"
                                        "y = attention(q, k, v) {causal=upper_left}\nout y",
                                .root = "attention", .tol = 2e-3, .sym = 35, .n_point = 3 });
}

/* Every tile: one and two groups of rows to a warp, rows past the last one, warps that see nothing of a tile. */
TEST(gpu_half_attention_tiles)
{
    static const char *const text[] = {
        "in q f16[1,1,140,16]  in k f16[1,1,140,16]  in v f16[1,1,140,16]\ny = attention(q, k, v) {causal=upper_left}\nout y",
        "in q f16[1,2,37,16]  in k f16[1,1,70,16]  in v f16[1,1,70,48]  in m f16[1,1,37,70]\ny = attention(q, k, v, m) {causal=lower_right}\nout y",
    };
    for (int i = 0; i < 2; i++) fast_every(t, &(fast_case){ .text = text[i], .root = "attention", .tol = 2e-3, .n_point = 24 });
}

/* Masks by pairs of keys and one by one, for all rows alike and not; rows that hide every key by a finite number weigh them alike. */
TEST(gpu_half_attention_masks)
{
#define QKV(type, s, t) "in q " type "[2,2," s ",16]  in k " type "[2,2," t ",16]  in v " type "[2,2," t ",16]  "
    every(t, QKV("f16", "20", "128") "in m f16[2,1,1,128]\ny = attention(q, k, v, m)\nout y", "attention", NULL, 2e-3);
    every(t, QKV("f16", "20", "128") "in m bool[2,1,20,128]\ny = attention(q, k, v, m) {rows=nan}\nout y", "attention", NULL, 2e-3);
    every(t, QKV("f16", "20", "128") "in m bool[128]  in n bool[128]\no = or(m, n)  y = attention(q, k, v, o) {scale=-0.4}\nout y", "attention", NULL, 2e-3);
    every(t, QKV("bf16", "20", "65") "in m bf16[20,65]\ny = attention(q, k, v, m) {softcap=2, causal=upper_left}\nout y", "attention", NULL, 1e-2);
    every(t, QKV("f16", "5", "64") "in m bool[5,1]\ny = attention(q, k, v, m) {hide=-3e38}\nout y", "attention", NULL, 2e-3);
    every(t, QKV("f16", "5", "33") "in m bool[5,1]\ny = attention(q, k, v, m) {hide=-65504}\nout y", "attention", NULL, 2e-3);
    static const char least[] = "const low bf16[] = {-3e38}  const zero bf16[] = {0}\nm = select(c, zero, low)  y = attention(q, k, v, m)\nout y";
    every(t, hn_arena_printf(t->arena, QKV("bf16", "5", "64") "in c bool[5,1]  %s", least), "attention", NULL, 1e-2);
    every(t, hn_arena_printf(t->arena, QKV("bf16", "5", "33") "in c bool[5,33]  %s", least), "attention", NULL, 1e-2);
}

TEST(gpu_depthwise)
{
    static const int c[] = { 1, 6, 8, 20 }, k[] = { 3, 5, 1, 7 };
    for (int i = 0; i < 4; i++) {
        every(t, hn_arena_printf(t->arena, "in x f32[2,%d,9,11]  in w f32[%d,1,%d,3]  in b f32[%d]\ny = conv(x, w, b) {group=%d, pad_begin=[1,1], "
                                 "pad_end=[2,1]}  z = relu(y)\nout z", c[i], c[i], k[i], c[i], c[i]), "conv", "acdb", 0);
        every(t, hn_arena_printf(t->arena, "in x f16[1,%d,12,13]  in w f16[%d,1,3,%d]\ny = conv(x, w) {group=%d, stride=[2,2], pad_begin=[0,3], "
                                 "pad_end=[0,3]}\nout y", c[i], c[i], k[i], c[i]), "conv", "acdb", 1e-3);
    }
    every(t, "in x f32[1,8,15,14]  in w f32[8,1,3,3]\ny = conv(x, w) {group=8, dilation=[2,3], pad_begin=[2,3], pad_end=[2,3]}\nout y", "conv",
          "acdb", 0);
    every(t, "in x f16[2,8,21]  in w f16[8,1,5]\ny = conv(x, w) {group=8, pad_begin=[2], pad_end=[2]}\nout y", "conv", "acb", 1e-3);
    fast_every(t, &(fast_case){ .text = "sym n [1,40,90]\nin x f32[1,8,n,n]  in w f32[8,1,3,3]\ny = conv(x, w) {group=8, pad_begin=[1,1], "
                                        "pad_end=[1,1]}\nout y", .root = "conv", .layout = "acdb", .tol = 1e-5, .sym = 9, .n_point = 4 });
}

TEST(gpu_half_transposed_convolutions)
{
    static const char *const layout[] = { NULL, "acdb" };
    for (int i = 0; i < 2; i++) {
        every(t, "in x f16[2,16,3,5]  in w f16[16,24,2,2]  in b f16[24]\ny = conv_transpose(x, w, b) {stride=[2,2]}  z = relu(y)\nout z",
              "conv_transpose", layout[i], 1e-3);
        every(t, "in x f16[1,9,4,3]  in w f16[9,5,3,1]\ny = conv_transpose(x, w) {stride=[3,1]}\nout y", "conv_transpose", layout[i], 1e-3);
    }
    every(t, "in x bf16[1,8,4,4]  in w bf16[8,8,3,3]\ny = conv_transpose(x, w) {stride=[2,2], pad_begin=[1,1], pad_end=[1,1]}\nout y",
          "conv_transpose", NULL, 6e-3);
}

/* Vendors' libraries too can be left alone. */
TEST(gpu_libraries_have_sources)
{
    int n = 0;
    for (int i = 0; i < hn_tactic_count(); i++) {
        const hn_tactic_def *td = hn_tactic_at(i);
        n += td->library != HN_LIB_NONE;
        if (td->library && !td->source) FAIL("%s calls a library and has no source", td->name);
    }
    CHECK(n > 0);
}
