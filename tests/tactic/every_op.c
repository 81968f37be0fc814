/* Operations that search, sort, scatter and draw: whole builds against evaluation. */
#include <stdio.h>
#include <string.h>

#include "../build/run_graph.h"
#include "harness.h"

static void each(const char *form, const char *const *word, int n)
{
    for (int i = 0; i < n; i++) {
        char text[600];
        snprintf(text, sizeof text, form, word[i], word[i], word[i], word[i]);
        hn_check_graph(text, strstr(text, "f16") ? &(hn_run_opts){ .tol = strstr(text, "bf16") ? 1e-2 : 2e-3 }
                                                 : NULL);
    }
}
#define EACH(form, ...)                                                                                      \
    do {                                                                                                     \
        static const char *const word_[] = { __VA_ARGS__ };                                                  \
        each(form, word_, HN_COUNT(word_));                                                                  \
    } while (0)

TEST(arg_along_and_across)
{
    EACH("in x f32[3,37,50]\na = arg_max(x) {axis=%s}  b = arg_min(x) {axis=%s, keepdims=0}\n"
         "c = arg_max(x) {axis=%s, last=1}\nout a  out b  out c",
         "0", "1", "2");
}

TEST(arg_of_every_dtype)
{
    EACH("in x %s[5,19]\na = arg_max(x) {axis=1, last=1}  b = arg_min(x) {axis=0}\nout a  out b", "f16",
         "bf16", "f64", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64");
}

TEST(cumulated)
{
    EACH("in x f32[4,9,21]\na = cumsum(x) {axis=%s}  b = cumsum(x) {axis=%s, exclusive=1}  c = cumsum(x) "
         "{axis=%s, reverse=1}\n"
         "d = cumprod(x) {axis=%s, exclusive=1, reverse=1}\nout a  out b  out c  out d",
         "0", "1", "2");
    EACH("in x %s[3,11]\na = cumsum(x) {axis=1}  b = cumprod(x) {axis=0}\nout a  out b", "f64", "i32", "i64",
         "u32", "u64");
}

TEST(best_of_lines)
{
    EACH("in x f32[3,40,7]\nv, i = topk(x) {axis=1, dim=%s}\nout v  out i", "1", "5", "39", "40");
    EACH("in x f32[3,40]\nv, i = topk(x) {axis=1, dim=%s, largest=0}\nout v  out i", "0", "7", "40");
    EACH("in x %s[4,33]\nv, i = topk(x) {axis=-1, dim=9}\nout v  out i", "f16", "f64", "i8", "u8", "i32",
         "u32", "i64", "u64");
}

TEST(best_of_lines_raced)
{
    hn_check_graph("sym n [20,60,90]\nin x f32[4,n]\nv, i = topk(x) {axis=1, dim=17}\nout v  out i",
                   &(hn_run_opts){ .measure = true, .sym = 45 });
}

TEST(gather_by_tuples)
{
    hn_check_graph("in x f32[4,5,6]  in i i64[3,2]\ny = gather_nd(x, i)  z = neg(y)\nout z", NULL);
    hn_check_graph("in x f32[2,4,5,6]  in i i32[2,7,1]\ny = gather_nd(x, i) {batch_dims=1}\nout y", NULL);
    hn_check_graph("in x i64[4,5]  in i i64[3,3,2]\ny = gather_nd(x, i)\nout y", NULL);
    hn_check_graph("sym n [1,2,9]\nin x f32[n,4,5]  in i i64[n,1]\ny = gather_nd(x, i) {batch_dims=1}\nout y",
                   &(hn_run_opts){ .sym = 3 });
}

TEST(scatter_by_elements)
{
    EACH("in x f32[5,9]  in i i64[3,7]  in u f32[3,7]\ny = scatter_elements(x, i, u) {axis=1, "
         "reduction=%s}\nout y",
         "none", "add", "mul", "min", "max");
    EACH("in x %s[5,9]  in i i32[4,9]  in u %s[4,9]\ny = scatter_elements(x, i, u) {axis=0, "
         "reduction=add}\nout y",
         "f16", "i8", "u64", "i32");
}

TEST(scatter_by_tuples)
{
    EACH("in x f32[4,5,37]  in i i64[6,1]  in u f32[6,5,37]\ny = scatter_nd(x, i, u) {reduction=%s}\nout y",
         "none", "add", "mul", "min", "max");
    EACH("in x %s[4,5]  in i i64[2,3,2]  in u %s[2,3]\ny = scatter_nd(x, i, u)\nout y", "f32", "i64", "bool");
}

TEST(counted_results)
{
    EACH("in x %s[3,5,7]\na, n = nonzero(x)\nout a  out n", "f32", "bool", "i64");
    hn_check_graph("in x f32[5,7]  in c bool[4]\na, n = compress(x, c) {axis=0}\nout a  out n", NULL);
    hn_check_graph("in x f32[5,7]  in c bool[7]\na, n = compress(x, c) {axis=1}\nout a  out n", NULL);
    hn_check_graph("in x f32[5,7]  in c bool[20]\na, n = compress(x, c) {flat=1}\nout a  out n", NULL);
}

TEST(distinct)
{
    EACH("in f f32[60]\nx = cast(f) {to=i32}  y, a, b, c, n = unique(x) {sorted=%s}\nout y  out a  out b  "
         "out c  out n",
         "0", "1");
    EACH("in f f32[9,2]\ng = round(f)  y, a, b, c, n = unique(g) {flat=0, axis=%s}\nout y  out a  out b  out "
         "c  out n",
         "0", "1");
}

TEST(suppressed)
{
    EACH("in b f32[2,30,4]  in s f32[2,3,30]  const m i64[] = {7}  const t f32[] = {0.3}  const q f32[] = "
         "{0.1}\n"
         "y, n = nms(b, s, m, t, q) {center_point_box=%s}\nout y  out n",
         "0", "1");
}

TEST(random_numbers)
{
    EACH("in x %s[5,33]\na = random_uniform() {dtype=%s, dim=[5,33], lo=-2, hi=3, seed=7}\n"
         "b = random_normal() {dtype=%s, dim=[5,33], mean=1, scale=2, seed=9}\nc = add(a, x)  d = mul(b, "
         "c)\nout c  out d",
         "f32", "f64", "f16");
    hn_check_graph("in x f32[5,33]\np = sigmoid(x)  y = bernoulli(p) {seed=3}\nout y", NULL);
    hn_check_graph("in x f32[5,33]\ny = multinomial(x) {dim=9, seed=3}\nout y", NULL);
}

TEST(norms_and_logarithms_of_sums)
{
    EACH("in x f32[3,7,20]\na = reduce_l1(x) {axes=[%s]}  b = reduce_l2(x) {axes=[%s], keepdims=0}\n"
         "c = reduce_sum_square(x) {axes=[%s]}  d = reduce_log_sum_exp(x) {axes=[%s], keepdims=0}\nout a  "
         "out b  out c  out d",
         "0", "1", "2");
    EACH("in x %s[5,9]\na = reduce_l1(x) {axes=[1]}  b = reduce_l2(x) {axes=[0]}  c = reduce_log_sum(x) "
         "{axes=[0,1]}\n"
         "d = reduce_log_sum_exp(x) {axes=[1]}\nout a  out b  out c  out d",
         "i32", "i64", "u8", "f64");
}

TEST(pools_with_indices)
{
    EACH("in x f32[2,3,9,8]\ny, i = max_pool(x) {kernel=[3,2], stride=[2,2], pad_begin=[1,0], pad_end=[1,0], "
         "dim=[5,4], column_major=%s}\n"
         "out y  out i",
         "0", "1");
    EACH("in x %s[2,3,9]\ny, i = max_pool(x) {kernel=[3], stride=[3], dim=[3]}\nout y  out i", "i8", "u8",
         "f16", "f64");
}

TEST(norms_of_windows)
{
    EACH("in x f32[2,16,9,8]\ny = lp_pool(x) {kernel=[3,2], stride=[2,2], pad_begin=[1,0], pad_end=[1,0], "
         "dim=[5,4], p=%s}\nout y",
         "1", "2", "3");
}

TEST(small_floats_and_packed_integers)
{
    EACH("in x f32[3,37]\ns = mul(x, x)  t = mul(s, s)  u = mul(t, x)  y = cast(u) {to=%s}  z = cast(y) "
         "{to=f32}\nout y  out z",
         "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz", "f8e8m0", "f4e2m1", "i4", "u4", "i2", "u2");
    EACH("in x f32[3,37]\nt = exp(x)  s = mul(t, t)  u = mul(s, s)  v = mul(u, u)  y = cast(v) {to=%s, "
         "saturate=0}\nout y",
         "f8e4m3fn", "f8e4m3fnuz", "f8e5m2", "f8e5m2fnuz");
    EACH("in x %s[3,37]\ny = cast(x) {to=f32}  t = transpose(x) {perm=[1,0]}  z = cast(t) {to=f32}\nout y  "
         "out z  out t",
         "f8e4m3fn", "f4e2m1", "i4", "u4", "i2", "u2");
    EACH("in x f16[3,37]\ny = bitcast(x) {to=%s}\nout y", "u16", "bf16");
    EACH("in x f8e5m2[3,37]\ny = bitcast(x) {to=%s}\nout y", "u8", "f8e4m3fn");
}

TEST(normalised_lines)
{
    EACH("in x f32[3,5,37]\na = softmax(x) {axis=%s}  b = log_softmax(x) {axis=%s}\nout a  out b", "0", "1",
         "2");
    EACH("in x f32[3,5,%s]  in y f32[3,5,%s]\nz = mul(x, y)  a = softmax(z) {axis=2}  b = mul(a, y)\nout b",
         "1", "15", "16", "17", "64", "131");
    EACH("in x %s[4,50]\na = softmax(x) {axis=1}\nout a", "f16", "bf16", "f64");
    EACH("in x f32[3,5,70]  in s f32[70]  in c f32[70]  in z f32[3,5,70]\na = add(x, z)  n = layer_norm(a, "
         "s, c) {axis=%s}  g = relu(n)\n"
         "r = rms_norm(x, s) {axis=-1}\nout g  out r",
         "-1", "2");
    hn_check_graph(
        "sym n [1,40,90]\nin x f32[6,n]  in m f32[6,n]\ny = layer_norm(x)  z = softmax(m)\nout y  out z",
        &(hn_run_opts){ .sym = 77, .measure = true });
}

TEST(recurrent_layers)
{
    EACH("in x f32[7,3,10]  const w f32[1,80,10]  const r f32[1,80,20]  const b f32[1,160]  in h f32[1,3,20] "
         " in c f32[1,3,20]\n"
         "y, yh, yc = lstm(x, w, r, b, _, h, c) {hidden=20, direction=%s}\nout y  out yh  out yc",
         "forward", "reverse");
    hn_check_graph("in x f32[7,3,10]  const w f32[2,128,10]  const r f32[2,128,32]  const b f32[2,256]\n"
                   "y, yh, yc = lstm(x, w, r, b) {hidden=32, direction=bidirectional, "
                   "acts=\"Sigmoid,Tanh,Tanh\"}\nout y  out yh",
                   NULL);
    hn_check_graph("in x f32[7,3,10]  in w f32[1,80,10]  in r f32[1,80,20]  in b f32[1,160]\n"
                   "y, yh, yc = lstm(x, w, r, b)\nout y  out yh  out yc",
                   NULL);
    EACH("in x f32[6,5,11]  const w f32[2,48,11]  const r f32[2,48,16]  %s b f32[2,96]  in h f32[2,5,16]\n"
         "y, yh = gru(x, w, r, b, _, h) {hidden=16, direction=bidirectional, linear_before_reset=1}\nout y  "
         "out yh",
         "const", "in");
    hn_check_graph("sym s [1,9,30]\nin x f32[s,1,24]  const w f32[1,256,24]  const r f32[1,256,64]\n"
                   "y, yh, yc = lstm(x, w, r)\nout y  out yh",
                   &(hn_run_opts){ .sym = 5, .measure = true });
}
