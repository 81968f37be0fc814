/* Whole builds of small graphs: what the engine computes is what evaluation computes. */
#include <stdio.h>

#include "base/os.h"
#include "harness.h"
#include "run_graph.h"

TEST(pointwise_chain)
{
    hn_check_graph("in x f32[2,3,5,7]  in y f32[2,3,5,7]\n"
                 "a = add(x, y)  b = mul(a, x)  c = exp(b)  d = tanh(c)\n"
                 "out d", NULL);
}

TEST(broadcasts)
{
    hn_check_graph("in x f32[2,8,5,7]  in b f32[1,8,1,1]  in s f32[7]\n"
                 "a = add(x, b)  c = mul(a, s)  d = relu(c)\n"
                 "out d", NULL);
}

TEST(views_fold_into_readers)
{
    hn_check_graph("in x f32[4,6,33]  in y f32[33,4,6]\n"
                 "t = transpose(x) {perm=[2,0,1]}  z = add(t, y)\n"
                 "s = slice(z) {start=[1,0,2], step=[2,1,1], dim=[16,4,4]}  n = neg(s)\n"
                 "out z  out n", NULL);
}

TEST(reshape_is_free)
{
    hn_check_graph("in x f32[4,6,33]\n"
                 "r = reshape(x) {dim=[24,33]}  e = exp(r)  q = reshape(e) {dim=[4,198]}\n"
                 "out q", NULL);
}

TEST(symbolic_extents)
{
    static const char text[] = "sym n [1,16,64]\nin x f32[n,5]  in y f32[n,5]\n"
                               "a = add(x, y)  t = transpose(a) {perm=[1,0]}  b = relu(t)\nout b";
    for (int64_t n = 1; n <= 33; n += 8) hn_check_graph(text, &(hn_run_opts){ .sym = n });
}

TEST(integers_and_bools)
{
    hn_check_graph("in x i32[3,17]  in y i32[3,17]\n"
                 "a = add(x, y)  c = lt(a, y)  s = select(c, x, y)  f = cast(s) {to=f32}\n"
                 "out s  out f  out c", NULL);
}

TEST(pads_by_every_mode)
{
    static const char *const mode[] = { "constant", "reflect", "edge", "wrap" };
    for (int i = 0; i < 4; i++)
        for (int axis = 0; axis < 2; axis++) {
            char text[256];
            snprintf(text, sizeof text,
                     "in x f32[5,33]\ny = pad(x) {mode=%s, before=[%d,%d], after=[%d,%d]}  z = neg(y)\nout z", mode[i],
                     axis ? 0 : 3, axis ? 4 : 0, axis ? 1 : 2, axis ? 2 : -1);
            hn_check_graph(text, NULL);
        }
}

TEST(reductions_with_work_around_them)
{
    hn_check_graph("in x f32[3,37,50]  in y f32[3,37,50]\n"
                   "m = mul(x, y)  s = reduce_sum(m) {axes=[2], keepdims=1}  r = relu(s)\n"
                   "n = reduce_max(x) {axes=[1], keepdims=0}  p = reduce_min(y) {axes=[0,2], keepdims=1}\n"
                   "out r  out n  out p", NULL);
}

TEST(products_by_constant_weights)
{
    static const char text[] = "sym n [1,40,64]\nin x f32[n,2,70]  const w f32[70,50]  const b f32[50]  in z f32[n,2,50]\n"
                               "m = matmul(x, w)  a = add(m, b)  r = relu(a)  q = add(r, z)\nout q";
    for (int64_t n = 1; n < 60; n += 9) hn_check_graph(text, &(hn_run_opts){ .sym = n, .measure = n == 1 });
}

/* Extents of the batch of each operand; the run shows which broadcast. */
static void batches(const char *text, int64_t p, int64_t q, const char *fails)
{
    hn_diag dg = { 0 };
    hn_tensor in[2] = { 0 };
    hn_tdesc d[2] = { { .dtype = HN_F32, .rank = 3, .dim = { p, 3, 20 } }, { .dtype = HN_F32, .rank = 3, .dim = { q, 20, 7 } } };
    hn_rng r;
    hn_rng_init(&r, 3);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hn_tensor_init(&in[i], &d[i], &dg), &dg);
        for (int64_t k = 0; k < hn_tensor_numel(&in[i]); k++) ((float *)in[i].data)[k] = (float)hn_rng_normal(&r);
    }
    hn_check_graph(text, &(hn_run_opts){ .in = in, .fails = fails });
    for (int i = 0; i < 2; i++) hn_tensor_done(&in[i]);
}

TEST(batches_that_the_run_shows_to_broadcast)
{
    static const char product[] = "sym p\nsym q\nin x f32[p,3,20]  in y f32[q,20,7]\nm = matmul(x, y)  r = relu(m)\nout r";
    static const char fixed[] = "sym q\nin x f32[5,3,20]  in y f32[q,20,7]\nm = matmul(x, y)\nout m";
    static const struct {
        int64_t p, q;
    } fit[] = { { 5, 5 }, { 1, 5 }, { 5, 1 }, { 1, 1 }, { 0, 1 } };
    for (int i = 0; i < HN_COUNT(fit); i++) batches(product, fit[i].p, fit[i].q, NULL);
    batches(product, 5, 3, "does not broadcast");
    batches(fixed, 5, 1, NULL);
    batches(fixed, 5, 5, NULL);
    batches(fixed, 5, 2, "does not broadcast");
}

/* Queries of grouped heads that an exporter folded into four rows, and a mask of as many rows as there are tokens: one or four. */
TEST(masks_that_the_run_shows_to_broadcast)
{
#define FOLDED "sym s\nin q f32[2,1,4,16]  in k f32[2,1,7,16]  in v f32[2,1,7,16]  in c bool[s,7]\nconst low f32[] = {-3}\n" \
               "kt = transpose(k) {perm=[0,1,3,2]}  p = matmul(q, kt)\n"
#define WEIGHED "w = softmax(z)\ny = matmul(w, v)\nout y"
    static const char *const text[] = {
        FOLDED "in m f32[2,1,s,7]\nz = add(p, m)\n" WEIGHED,
        FOLDED "z = select(c, p, low)\n" WEIGHED,
        FOLDED "in m f32[2,1,s,7]  in m2 f32[s,1]\nx = add(p, m)  z = add(x, m2)\n" WEIGHED,
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 1 });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 4 });
    }
}

TEST(scales_of_norms_that_the_run_shows_to_broadcast)
{
    static const char *const text[] = {
        "sym s\nin x f32[3,8]  in g f32[s]  in b f32[s]\ny = layer_norm(x, g, b) {axis=1, eps=0.1}\nout y",
        "sym s\nin x f32[3,8]  in g f32[s]\ny = rms_norm(x, g) {axis=1, eps=0.1}\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 1 });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 8 });
    }
}

TEST(transposed_convolutions_of_open_channels)
{
    static const char text[] = "sym c [1,3,64]\nsym m [1,3,64]\nin x f32[2,c,5]  in w f32[c,m,3]  in b f32[m]\n"
                               "y = conv_transpose(x, w, b) {stride=[2], dilation=[1], pad_begin=[1], pad_end=[0]}  z = relu(y)\nout z";
    for (int64_t n = 1; n < 12; n += 5) hn_check_graph(text, &(hn_run_opts){ .sym = n });
}

TEST(convolutions_of_open_kernels)
{
    static const char *const text[] = {
        "in x f32[2,4,9,11]  in w f32[6,4,k,k]  in b f32[6]\nc = conv(x, w, b) {stride=[2,1], pad_begin=[1,2], pad_end=[0,1]}  r = relu(c)\nout r",
        "in x f32[1,8,20]  in w f32[8,2,k]\nc = conv(x, w) {dilation=[3], pad_begin=[2], pad_end=[2], group=4}\nout c",
        "in x f16[2,4,9,11]  in w f16[4,1,k,3]\nc = conv(x, w) {group=4}\nout c",
        "in x u8[1,4,9,9]  in w i8[4,4,k,k]  in z u8[]\nc = conv_int(x, w, z) {pad_begin=[1,1], pad_end=[1,1]}\nout c",
        "in x f32[1,4,5,6]  in w f32[4,3,k,k]\nc = conv_transpose(x, w) {stride=[2,3], pad_begin=[0,1], pad_end=[0,0], out_pad=[1,0]}  t = tanh(c)\nout t",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        for (int64_t k = 1; k < 6; k += 2) hn_check_graph(text[i], &(hn_run_opts){ .sym = k, .tol = 1e-3 }); /* f16 */
    hn_check_graph("in x f32[1,2,4]  in w f32[3,2,k]\nc = conv(x, w)\nout c", &(hn_run_opts){ .sym = 6, .fails = "at most -" });
    hn_check_graph("in x f32[1,2,4,4]  in w f32[3,2,k,k]\nc = conv(x, w)\nout c", &(hn_run_opts){ .sym = 6, .fails = "at most -" });
}

TEST(products_of_computed_operands)
{
    hn_check_graph("in x f32[2,3,17,20]  in y f32[2,1,33,20]\n"
                   "m = matmul(x, y) {trans_b=1}  e = exp(m)\nout e", &(hn_run_opts){ .tol = 1e-4 });
}

TEST(convolutions)
{
    static const char text[] = "sym n [1,1,4]\nin x f32[n,8,9,11]  const w f32[16,8,3,3]  const b f32[16]\n"
                               "c = conv(x, w, b) {stride=[2,1], dilation=[1,1], pad_begin=[1,1], pad_end=[1,1], group=1}\n"
                               "r = relu(c)\n"
                               "p = max_pool(r) {kernel=[2,2], stride=[2,2], dim=[2,5]}\n"
                               "s = reduce_sum(r) {axes=[2,3], keepdims=1}\nout p  out s";
    for (int64_t n = 1; n < 4; n++) hn_check_graph(text, &(hn_run_opts){ .sym = n });
    hn_check_graph(text, &(hn_run_opts){ .route = "-layout:image=0" });
    hn_check_graph(text, &(hn_run_opts){ .route = "-layout:image=2" });
}

TEST(grouped_and_one_dimensional_convolutions)
{
    hn_check_graph("in x f32[2,6,30]  const w f32[4,3,5]\n"
                   "c = conv(x, w) {stride=[1], dilation=[2], pad_begin=[4], pad_end=[4], group=2}\nout c", NULL);
    hn_check_graph("in x f32[1,32,7,7]  const w f32[32,1,3,3]\n"
                   "c = conv(x, w) {pad_begin=[1,1], pad_end=[1,1], group=32}\nout c", NULL);
}

TEST(concatenation_and_slices)
{
    hn_check_graph("in x f32[2,5,40]  in y f32[2,3,40]\n"
                   "c = concat(x, y) {axis=1}  s = slice(c) {start=[0,2,0], step=[1,1,1], dim=[2,4,40]}  t = neg(s)\n"
                   "out c  out t", NULL);
}

TEST(gathers)
{
    hn_check_graph("in x f32[4,33]  in i i64[2,3]\n"
                   "g = gather(x, i) {axis=0}  e = exp(g)\nout e", NULL);
}

/* What ONNX leaves open (docs/onnx-decisions.md) comes out alike from kernels; x * 0 keeps the numbers from folding. */
TEST(casts_at_the_edges)
{
    static const char *const to[] = { "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "bool" };
    for (int i = 0; i < HN_COUNT(to); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in x f32[12]  const k f32[12] = {300, nan, inf, -inf, 50, -50, -1.9, 3e9, -3e9, 1e30, 70000.5, 0.5}\n"
                 "const zero f32[] = {0}  z = mul(x, zero)  e = add(z, k)  y = cast(e) {to=%s}\nout y",
                 to[i]);
        hn_test_note("%s", to[i]);
        hn_check_graph(text, NULL);
    }
}

TEST(integer_division_at_the_edges)
{
    static const char *const op[] = { "div", "mod", "pow" };
    for (int i = 0; i < HN_COUNT(op); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 "in x i32[8]  const a i32[8] = {7, -7, 7, -7, 5, 0, -2147483648, 1}\n"
                 "const b i32[8] = {2, 2, -2, -2, 0, 3, -1, 5}  const zero i32[] = {0}  z = mul(x, zero)  c = add(z, a)\n"
                 "d = add(z, b)  y = %s(c, d)\nout y",
                 op[i]);
        hn_test_note("%s", op[i]);
        hn_check_graph(text, NULL);
    }
}

TEST(transposed_convolutions)
{
    for (int i = 0; i < 3; i++) {
        char route[32];
        snprintf(route, sizeof route, "-layout:image=%d", i);
        hn_check_graph("in x f32[2,20,5,6]  const w f32[20,18,3,2]  const b f32[18]\n"
                       "y = conv_transpose(x, w, b) {stride=[2,2], pad_begin=[1,0], pad_end=[1,0], out_pad=[1,0], group=1}\n"
                       "r = relu(y)\nout r", &(hn_run_opts){ .route = route });
    }
    hn_check_graph("in x f32[1,6,9]  const w f32[6,4,3]\n"
                   "y = conv_transpose(x, w) {stride=[3], dilation=[2], group=3}\nout y", NULL);
}

TEST(products_and_convolutions_of_bytes)
{
    hn_check_graph("in a u8[2,5,19]  in b i8[19,33]  in za u8[]  in zb i8[33]\n"
                   "y = matmul_int(a, b, za, zb)  f = cast(y) {to=f32}\nout y  out f", NULL);
    hn_check_graph("in x u8[1,3,6,7]  in w i8[4,3,3,3]  in zx u8[]  in zw i8[4]\n"
                   "y = conv_int(x, w, zx, zw) {pad_begin=[1,1], pad_end=[1,1], group=1}\nout y", NULL);
}

TEST(reversed_axes_are_no_views_in_place)
{
    hn_check_graph("in x f32[5,3]\ns = slice(x) {start=[4,0], step=[-1,1], dim=[5,3]}\nout s", NULL);
    hn_check_graph("in x f32[5,3]\ns = slice(x) {start=[1,0], step=[1,1], dim=[3,3]}  r = reshape(s) {dim=[9]}\nout r", NULL);
}

/* Two nodes that differ in nothing but which symbol they read. */
TEST(sizes_in_attributes_are_told_apart)
{
    hn_check_graph("sym m [1,3,9]  sym n [1,5,9]\nin x f32[m,n]\n"
                   "a = dims(x) {dim=[m]}  b = dims(x) {dim=[n]}  s = cast(a) {to=f32}  t = cast(b) {to=f32}\nout s  out t", NULL);
}

TEST(dynamic_quantisation)
{
    for (int64_t n = 0; n < 5000; n = n * 7 + 1)
        hn_check_graph("sym n [0,400,5000]\nin x f32[n,3]\nq, s, z = dynamic_quantize(x)\nout q  out s  out z", &(hn_run_opts){ .sym = n });
    hn_check_graph("in x f32[40,64]  const k f32[] = {3}\na = mul(x, x)  m = mul(a, k)\nq, s, z = dynamic_quantize(m)\nd = dequantize(q, s, z)\nout d", NULL);
    hn_check_graph("in x f32[300]  const k f32[] = {0}\nm = mul(x, k)\nq, s, z = dynamic_quantize(m)\nout q  out s", NULL);
    hn_check_graph("const x f32[5] = {1, inf, 3, -2, 0}\nin y f32[5]\nm = min(x, y)  a = max(m, x)\nq, s, z = dynamic_quantize(a)\nout q  out z", NULL);
}

/* An infinity or NaN reaches what is computed of it and nothing else: no weight of 0 meets it that the model does not have. */
TEST(infinities_stay_where_they_belong)
{
    static const char *const deconv[] = {
        "stride=[2,1], pad_begin=[1,1], pad_end=[2,2], out_pad=[1,0]", "stride=[2,2]", "stride=[4,2]", "stride=[1,5]", "stride=[4,4], out_pad=[2,1]",
    };
    static const char *const resize[] = {
        "dim=[1,3*h], mode=cubic", "dim=[1,3*h], mode=cubic, exclude_outside=1", "dim=[1,h], mode=cubic, antialias=1", "dim=[1,3*h], mode=linear",
        "dim=[1,h], mode=linear, antialias=1",
    };
    char text[600];
    for (int i = 0; i < HN_COUNT(deconv); i++)
        for (int few = 0; few < 2; few++) {
            snprintf(text, sizeof text, "in x f32[2,9,5,4]  const z f32[1,1,1,4] = {0, nan, 0, 0}  const p f32[1,1,5,1] = {0, 0, 0, inf, 0}\n"
                     "const w f32[9,%d,3,3]\na = add(x, z)  b = add(a, p)\ny = conv_transpose(b, w) {%s}\nout y", few ? 2 : 20, deconv[i]);
            hn_check_graph(text, NULL);
        }
    hn_check_graph("sym w\nin x f32[1,8,9]  in z f32[2,6,w]  const k f32[8,1] = {0, nan, 0, 0, 0, 0, inf, 0}  const j f32[6,1] = {0, 0, inf, 0, 0, 0}\n"
                   "a = add(x, k)  y = col2im(a) {image=[4,4], block=[2,2]}\n"
                   "b = add(z, j)  v = col2im(b) {image=[3*w+1], block=[3], stride=[3], pad_begin=[1]}\nout y  out v", &(hn_run_opts){ .sym = 5 });
    hn_check_graph("in x f32[3,4]  const k f32[4] = {0, 0, nan, 0}\na = add(x, k)\nq, s, z = dynamic_quantize(a)\nout q  out s  out z", NULL);
    hn_check_graph("in q f32[1,1,2,4]  in k f32[1,1,3,4]  in v f32[1,1,3,4]  const m f32[2,3] = {-inf, -inf, -inf, 0, 0, -inf}\n"
                   "const j f32[4] = {0, inf, 0, nan}\nw = add(v, j)  y = attention(q, k, w, m)\nout y", NULL);
    for (int i = 0; i < HN_COUNT(resize); i++) {
        snprintf(text, sizeof text, "sym h [1,4,9]\nin x f32[1,h]  const k f32[1,1] = {inf}\nc = concat(k, x, k) {axis=1}\ny = resize(c) {%s}\nout y", resize[i]);
        hn_check_graph(text, &(hn_run_opts){ .sym = 5 });
    }
}

TEST(extents_that_turn_out_to_be_one)
{
    static const char *const text[] = {
        "in x f32[7,n]  in c f32[4]\ny = add(c, x)\nz = mul(y, x)\nout z",
        "in x f32[n,5]  in c f32[4,5]\ny = lt(x, c)\nout y",
        "in x f32[n,1,9]  in c f32[4,3,1]\ny = max(x, c)\ns = reduce_sum(y) {axes=[0]}\nout y\nout s",
        "in x f32[2,n]\ny = broadcast(x) {dim=[3,2,4]}\nz = neg(y)\nout z",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 1 });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 4 });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 3, .fails = "not broadcast" });
    }
}

TEST(extents_that_must_agree)
{
    static const char *const text[] = {
        "in x f32[4,n]  in w f32[3,5]\ny = matmul(x, w)\nout y",
        "in x f32[4,n]  in w f32[5,3]\ny = matmul(x, w) {trans_b=1}\nz = neg(y)\nout z",
        "in x f32[n,4]  in y f32[3,2]\nz = concat(x, y) {axis=1}\nw = neg(z)\nout w",
        "in x f32[1,n,5]  in w f32[2,3,2]\ny = conv(x, w)\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 3 });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 2, .fails = "2" });
    }
}
