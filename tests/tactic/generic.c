/* Tactics that always fit, point by point, compiled and interpreted: tile edges, axes of one and none,
 * layouts, dtypes. */
#include <string.h>

#include "fast_run.h"

/* The case's text with `n` for every %d. */
static void sized(hn_test *t, const char *form, const char *root, const int *n, int count)
{
    for (int i = 0; i < count; i++) {
        const char *text = hn_arena_printf(t->arena, form, n[i], n[i], n[i], n[i], n[i], n[i]);
        fast_every(t, &(fast_case){ .text = text, .root = root, .tol = 1e-5 });
    }
}
#define SIZES(form, root, ...)                                                                               \
    do {                                                                                                     \
        static const int size_[] = { __VA_ARGS__ };                                                          \
        sized(t, form, root, size_, HN_COUNT(size_));                                                        \
    } while (0)
#define EDGES 1, 2, 15, 16, 17, 31, 67

TEST(pointwise_edges)
{
    SIZES("in x f32[3,%d]  in y f32[3,%d]\na = add(x, y)  b = exp(a)  c = mul(b, x)\nout c  out a", "mul",
          EDGES, 0);
    SIZES("in x f32[3,%d]  in y f32[3,1]\na = add(x, y)  b = tanh(a)\nout b", "tanh", EDGES);
    SIZES("in x f64[%d]  in y f64[%d]\na = sub(x, y)\nout a", "sub", EDGES, 8);
    fast_every(t, &(fast_case){ .text = "in x f16[5,33]\na = sigmoid(x)  b = cast(a) {to=f32}\nout b",
                                .root = "cast",
                                .tol = 1e-3 });
}

TEST(view_edges)
{
    SIZES("in x f32[7,%d,3]\na = transpose(x) {perm=[2,1,0]}  b = neg(a)\nout b", "neg", EDGES);
    SIZES("in x f32[4,%d]\na = pad(x) {before=[1,2], after=[0,3]}  b = neg(a)\nout b", "neg", EDGES);
    SIZES("in x f32[%d,6]  in i i64[5]\na = gather(x, i) {axis=1}  b = neg(a)\nout b", "neg", EDGES);
}

TEST(reduction_edges)
{
    SIZES("in x f32[5,%d]  in y f32[5,%d]\nm = mul(x, y)  a = reduce_sum(m) {axes=[1]}  b = relu(a)\nout b",
          "reduce_sum", EDGES, 129);
    SIZES("in x f32[5,%d,3]\na = reduce_max(x) {axes=[1]}\nout a", "reduce_max", EDGES);
    SIZES("in x f32[5,7,%d]\na = reduce_min(x) {axes=[0,1], keepdims=0}\nout a", "reduce_min", EDGES, 300);
    SIZES("in x i32[5,%d]\na = reduce_prod(x) {axes=[1]}\nout a", "reduce_prod", 3, 17);
}

/* One partial sum for 262,144 terms would be off by 1e-5. */
TEST(long_sums)
{
    static const char *const shape[] = { "262144,16", "512,512,16", "3,262144", "3,512,512" };
    static const char *const axes[] = { "0", "0,1", "1", "1,2" };
    for (int i = 0; i < HN_COUNT(shape); i++) {
        const char *text = hn_arena_printf(
            t->arena, "in x f32[%s]\nm = mul(x, x)  a = reduce_sum(m) {axes=[%s]}\nout a", shape[i], axes[i]);
        fast_check(t, &(fast_case){ .text = text, .root = "reduce_sum", .tol = 2e-6 }, "reduce_any_loop__cpu");
    }
}

TEST(argument_edges)
{
    SIZES("in x f32[5,%d]\na = arg_max(x) {axis=1}\nout a", "arg_max", EDGES);
    SIZES("in x f32[5,%d]\na = arg_min(x) {axis=0, keepdims=0}\nout a", "arg_min", EDGES);
    SIZES("in i i64[5,%d]\na = arg_max(i) {axis=1, last=1}\nout a", "arg_max", EDGES);
}

TEST(line_edges)
{
    SIZES("in x f32[5,%d]\na = softmax(x) {axis=1}\nout a", "softmax", EDGES, 64, 129);
    SIZES("in x f32[5,%d]\na = log_softmax(x) {axis=0}\nout a", "log_softmax", EDGES);
    SIZES("in x f32[5,%d]  in s f32[%d]  in c f32[%d]\na = layer_norm(x, s, c)\nout a", "layer_norm", 2, 15,
          16, 17, 67, 128);
    SIZES("in x f32[5,%d]  in s f32[%d]\na = rms_norm(x, s)\nout a", "rms_norm", EDGES);
    SIZES("in x f32[4,%d]\na = cumsum(x) {axis=1}\nout a", "cumsum", EDGES);
    SIZES("in x f32[4,%d]\na = cumsum(x) {axis=0, reverse=1}\nout a", "cumsum", EDGES);
}

TEST(sorting_edges)
{
    SIZES("in x f32[3,%d]\na, b = topk(x) {axis=1, dim=1}\nout a  out b", "topk", EDGES);
    SIZES("in x f32[3,%d]\na, b = topk(x) {axis=1, dim=%d}\nout a  out b", "topk", EDGES);
}

TEST(scatter_edges)
{
    SIZES("in x f32[4,%d]  in i i64[9,1]  in u f32[9,%d]\ny = scatter_nd(x, i, u) {reduction=add}\nout y",
          "scatter_nd", EDGES);
    SIZES("in x f32[4,%d]  in i i64[3,%d]  in u f32[3,%d]\ny = scatter_elements(x, i, u) {axis=0}\nout y",
          "scatter_elements", EDGES);
}

TEST(joining_edges)
{
    SIZES("in x f32[3,%d]  in y f32[3,%d]  in z f32[3,2]\na = concat(x, y, z) {axis=1}\nout a", "concat",
          EDGES);
    SIZES("in x f32[2,%d,5]  in y f32[2,3,5]\na = concat(x, y) {axis=1}\nout a", "concat", EDGES);
}

#define ANGLES(b, s, half) "in c f32[" b "," s "," half "]  in s f32[" b "," s "," half "]\n"
TEST(rotary_edges)
{
    static const char *const text[] = {
        "in x f32[2,3,5,8]  " ANGLES("2", "5", "4") "y = rotary(x, c, s)\nout y",
        "in x f32[2,3,5,64]  " ANGLES("1", "5", "32") "y = rotary(x, c, s)  z = neg(y)\nout z",
        "in x f32[1,1,1,2]  " ANGLES("1", "1", "1") "y = rotary(x, c, s)\nout y",
        "in x f32[2,2,3,30]  " ANGLES("1", "3", "15") "y = rotary(x, c, s)\nout y",
        "in x f32[2,2,3,40]  " ANGLES("2", "3", "8") "y = rotary(x, c, s) {rotary_dim=16}\nout y",
        "in x f32[2,2,3,19]  " ANGLES("1", "3", "6") "y = rotary(x, c, s) {rotary_dim=12}\nout y",
        "in x f32[2,5,3,16]  " ANGLES("1", "5", "8") "t = transpose(x) {perm=[0,2,1,3]}  y = rotary(t, c, s)\nout y",
        "in x f32[2,3,4,16]  in z f32[2,3,4,16]  " ANGLES("2", "4", "8") "m = mul(x, z)  y = rotary(m, c, s)  q = add(y, x)\nout q",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        for (int k = 0; k < 2; k++)
            fast_every(t, &(fast_case){ .text = text[i], .root = "rotary", .layout = k ? "acbd" : NULL, .tol = 1e-5 });
    fast_every(t, &(fast_case){ .text = "sym n [1,7,40]\nin x f32[2,3,n,16]  in c f32[1,n,8]  in s f32[1,n,8]\ny = rotary(x, c, s)\nout y",
                                .root = "rotary", .sym = 9, .tol = 1e-5 });
    fast_every(t, &(fast_case){ .text = "in x f16[2,3,5,32]  in c f16[1,5,16]  in s f16[1,5,16]\ny = rotary(x, c, s)\nout y", .root = "rotary", .tol = 1e-3 });
}

TEST(pool_edges)
{
    static const char *const layout[] = { NULL, "acdb" };
    for (int i = 0; i < 2; i++) {
        const char *text = "in x f32[2,17,9,8]\nm = max_pool(x) {kernel=[3,2], stride=[2,2], "
                           "pad_begin=[1,0], pad_end=[1,0], dim=[5,4]}\n"
                           "r = relu(m)\nout r";
        fast_every(t, &(fast_case){ .text = text, .root = "max_pool", .layout = layout[i] });
        text = "in x f32[2,17,9,8]\nm = avg_pool(x) {kernel=[3,3], stride=[1,2], pad_begin=[1,1], "
               "pad_end=[1,1], dim=[9,4]}\nout m";
        fast_every(t, &(fast_case){ .text = text, .root = "avg_pool", .layout = layout[i] });
    }
    /* No window outside, all windows at an end, a window that meets no element, more taps than are written out. */
    static const char *const shapes[] = {
        "in x f32[2,17,9,8]\nm = avg_pool(x) {kernel=[3,2], stride=[3,2], dim=[3,4]}\nout m",
        "in x f32[1,33,3,3]\nm = max_pool(x) {kernel=[3,3], stride=[1,1], pad_begin=[2,2], pad_end=[2,2], dim=[5,5]}\nout m",
        "in x f32[1,5,4,4]\nm = max_pool(x) {kernel=[2,2], stride=[3,3], dilation=[3,3], pad_begin=[1,1], pad_end=[4,4], "
        "dim=[2,2]}\nout m",
        "in x f32[1,18,9,9]\nm = avg_pool(x) {kernel=[7,7], stride=[1,2], pad_begin=[3,3], pad_end=[3,3], dim=[9,5], "
        "count_include_pad=1}\nout m",
        "sym h [1,9,30]\nin x f32[1,18,h,h]\nm = max_pool(x) {kernel=[3,3], stride=[1,1], pad_begin=[1,1], pad_end=[1,1], "
        "dim=[h,h]}\nout m",
        "in x f32[1,18,5,4,6]\nm = lp_pool(x) {kernel=[2,2,2], stride=[1,2,3], dim=[4,2,2], p=2}\nout m",
    };
    for (int i = 0; i < HN_COUNT(shapes); i++) {
        const char *root = strstr(shapes[i], "avg") ? "avg_pool" : strstr(shapes[i], "lp_") ? "lp_pool" : "max_pool";
        fast_every(t, &(fast_case){ .text = shapes[i], .root = root, .layout = "acdb", .sym = 7, .tol = 1e-5 });
        fast_every(t, &(fast_case){ .text = shapes[i], .root = root, .sym = 2, .tol = 1e-5 });
    }
    static const char *const byte[] = { "u8", "i8", "i16" };
    for (int i = 0; i < 3; i++) {
        const char *text = hn_arena_printf(t->arena,
                                           "in x %s[2,83,9,8]\nm = max_pool(x) {kernel=[3,2], stride=[2,2], pad_begin=[1,0], "
                                           "pad_end=[1,0], dim=[5,4]}\nout m",
                                           byte[i]);
        fast_every(t, &(fast_case){ .text = text, .root = "max_pool", .layout = "acdb" });
    }
    fast_every(
        t, &(fast_case){
               .text = "in x f32[2,3,9]\ny, k = max_pool(x) {kernel=[3], stride=[3], dim=[3]}\nout y  out k",
               .root = "max_pool" });
}

TEST(recurrent_edges)
{
    static const char form[] = "in x f32[4,3,5]  in w f32[1,%s,5]  in r f32[1,%s,%d]  in b f32[1,%s]\n"
                               "y, h, c = lstm(x, w, r, b)\nout y  out h  out c";
    static const struct {
        const char *g, *b;
        int h;
    } at[] = { { "64", "128", 16 }, { "68", "136", 17 }, { "4", "8", 1 } };
    for (int i = 0; i < HN_COUNT(at); i++) {
        const char *text = hn_arena_printf(t->arena, form, at[i].g, at[i].g, at[i].h, at[i].b);
        fast_every(t, &(fast_case){ .text = text, .root = "lstm", .tol = 1e-5, .n_point = 4 });
    }
    fast_every(
        t, &(fast_case){
               .text = "sym s [1,4,9]\nin x f32[s,3,5]  in w f32[2,60,5]  in r f32[2,60,20]\n"
                       "y, h = gru(x, w, r) {direction=bidirectional, linear_before_reset=1}\nout y  out h",
               .root = "gru",
               .tol = 1e-5,
               .sym = 1 });
}

TEST(attention_edges)
{
    SIZES("in q f32[2,3,%d,20]  in k f32[2,3,7,20]  in v f32[2,3,7,33]\ny = attention(q, k, v)\nout y",
          "attention", 1, 5, 6, 7);
    SIZES("in q f32[1,4,5,16]  in k f32[1,2,%d,16]  in v f32[1,2,%d,16]  in m f32[5,%d]\ny = attention(q, k, "
          "v, m) {scale=0.3}\n"
          "z = relu(y)\nout z",
          "attention", EDGES, 64, 65);
    SIZES("in q f32[1,2,%d,8]  in k f32[1,2,19,8]  in v f32[1,2,19,8]\ny = attention(q, k, v) "
          "{causal=lower_right, softcap=2}\nout y",
          "attention", 1, 7, 19);
    SIZES("in q f32[1,2,%d,8]  in k f32[1,2,19,8]  in v f32[1,2,19,8]  in i bool[1,1,%d,19]\n"
          "y = attention(q, k, v, i) {causal=upper_left}\nout y",
          "attention", 1, 7, 19);
    fast_every(t, &(fast_case){ .text = "sym s [1,9,40]\nin q f32[1,2,s,8]  in k f32[1,2,s,8]  in v "
                                        "f32[1,2,s,8]\ny = attention(q, k, v)\n"
                                        "out y",
                                .root = "attention",
                                .tol = 1e-5,
                                .sym = 37,
                                .n_point = 6 });
}

TEST(clipped_casts)
{
    static const char *const to[] = { "u8", "i8", "i16", "u16" };
    static const char *const bound[] = { "0", "-128", "-32768", "0" }, *const top[] = { "255", "127", "32767",
                                                                                        "65535" };
    for (int i = 0; i < HN_COUNT(to); i++) {
        const char *text =
            hn_arena_printf(t->arena,
                            "const lo f32[] = {%s}  const hi f32[] = {%s}  const s f32[] = {1000}\n"
                            "in x f32[3,37]\na = mul(x, s)  z = sqrt(x)  y = add(a, z)  c = clip(y, lo, hi)  "
                            "d = cast(c) {to=%s}\n"
                            "out d",
                            bound[i], top[i], to[i]);
        fast_every(t, &(fast_case){ .text = text, .root = "cast" }); /* roots of negative numbers make NaN */
    }
}
