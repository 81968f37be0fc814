/* Spelled-out ops through the whole build: engines with and without fusing are different ones and compute the same. */
#include "harness.h"
#include "run_graph.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct built {
    hn_digest payload;
    int n_region;
} built;

static built build(const char *text, const char *route)
{
    hn_diag dg = { 0 };
    hn_arena *a = hn_arena_create();
    hn_graph *g;
    const hn_target t = hn_test_target();
    hn_route r;
    hn_build_report report;
    void *data;
    size_t bytes;
    CHECK_OK(hn_parse(a, text, &g, &dg), &dg);
    CHECK_OK(hn_route_parse(a, route, &r, &dg), &dg);
    const hn_build_opts o = { .target = &t, .route = &r, .threads = 1, .frozen = true, .model_name = "test" };
    CHECK_OK(hn_build_engine(a, g, &o, &data, &bytes, &report, &dg), &dg);
    const built made = { report.payload, report.n_region };
    free(data);
    hn_arena_destroy(a);
    return made;
}

static hn_digest payload(const char *text, const char *route)
{
    return build(text, route).payload;
}

static void knob_is_real(const char *text, const char *off)
{
    CHECK(!hn_digest_eq(payload(text, ""), payload(text, off)));
    CHECK(hn_digest_eq(payload(text, ""), payload(text, "")));
    for (uint64_t seed = 0; seed < 2; seed++) {
        hn_check_graph(text, &(hn_run_opts){ .seed = seed });
        hn_check_graph(text, &(hn_run_opts){ .seed = seed, .route = off });
    }
}

TEST(fuse_layer_norm_is_a_choice)
{
    knob_is_real("in x f32[3,5,40]  const w f32[40]  const b f32[40]  const e f32[] = {1e-5}  const two f32[] = {2}\n"
                 "m = reduce_mean(x) {axes=[2]}  d = sub(x, m)  q = pow(d, two)  v = reduce_mean(q) {axes=[2]}\n"
                 "ve = add(v, e)  s = sqrt(ve)  y = div(d, s)  z = mul(y, w)  o = add(z, b)\nout o",
                 "-fuse:layer_norm=0");
}

TEST(fuse_rms_norm_is_a_choice)
{
    knob_is_real("sym n [1,7,20]\nin x f32[n,5,40]  const w f32[40]  const e f32[] = {1e-5}  const one f32[] = {1}\n"
                 "q = mul(x, x)  v = reduce_mean(q) {axes=[2]}  ve = add(v, e)  s = sqrt(ve)  i = div(one, s)\n"
                 "y = mul(x, i)  z = mul(w, y)\nout z",
                 "-fuse:rms_norm=0");
}

#define ATTENTION(mask_) \
    "sym n [1,9,40]\nin q f32[2,3,n,20]  in x f32[2,n,3,20]  in v f32[2,3,n,33]  const a f32[] = {0.22}\n" \
    "kt = transpose(x) {perm=[0,2,3,1]}  qa = mul(q, a)  s = matmul(qa, kt)\n" mask_ "w = softmax(z)  y = matmul(w, v)\nout y"

TEST(fuse_attention_is_a_choice)
{
    knob_is_real(ATTENTION("in m f32[n]  z = add(s, m)  "), "-fuse:attention=0");
    knob_is_real(ATTENTION("in c bool[n,n]  const far f32[] = {-2}  z = select(c, s, far)  "), "-fuse:attention=0");
}

/* Rows whose softmax is undefined: all keys hidden, NaN, +inf. */
TEST(attention_of_undefined_rows)
{
    static const char *const rows[] = { "zero", "nan", "guard" };
    char text[512];
    for (int i = 0; i < 3; i++) {
        snprintf(text, sizeof text,
                 "in q f32[1,2,4,8]  in k f32[1,2,3,8]  in v f32[1,2,3,5]\n"
                 "const m f32[4,3] = {-inf, -inf, -inf, nan, 0, 0, inf, 0, -inf, 0, -inf, 0}\n"
                 "y = attention(q, k, v, m) {rows=%s}\nout y", rows[i]);
        hn_check_graph(text, NULL);
    }
}

TEST(fuse_softmax_is_a_choice)
{
    knob_is_real("in x f32[6,40]\nm = reduce_max(x) {axes=[1]}  d = sub(x, m)  e = exp(d)  s = reduce_sum(e) {axes=[1]}  y = div(e, s)\nout y",
                 "-fuse:softmax=0");
}

TEST(fuse_gelu_is_a_choice)
{
    knob_is_real("in x f32[6,40]  const three f32[] = {3}  const k f32[] = {0.044715}  const c f32[] = {0.797884583}\n"
                 "const h f32[] = {0.5}  const one f32[] = {1}\n"
                 "p = pow(x, three)  q = mul(p, k)  s = add(x, q)  u = mul(s, c)  e = tanh(u)  a = add(e, one)  m = mul(x, h)\n"
                 "y = mul(m, a)\nout y",
                 "-fuse:gelu=0");
}

TEST(fuse_silu_is_a_choice)
{
    knob_is_real("in x f32[6,40]\ns = sigmoid(x)  y = mul(x, s)\nout y", "-fuse:silu=0");
    knob_is_real("in x f32[6,40]\ns = softplus(x)  u = tanh(s)  y = mul(x, u)\nout y", "-fuse:silu=0");
    /* results of halves round by 2^-11 */
    hn_check_graph("in x f16[6,40]\ns = sigmoid(x)  y = mul(x, s)\nout y", &(hn_run_opts){ .tol = 0x1p-11 });
}

#define HALVES "h = slice(x) {start=[0,0,0,4], step=[1,1,1,1], dim=[2,3,2,4]}  g = neg(h)  l = slice(x) {start=[0,0,0,0], step=[1,1,1,1], dim=[2,3,2,4]}\n" \
               "j = concat(g, l) {axis=3}  p = mul(x, c)  q = mul(j, s)  y = add(p, q)\nout y"

TEST(fuse_rotary_is_a_choice)
{
    static const char text[] = "in x f32[2,3,2,8]  in f f32[2,4]\na = concat(f, f) {axis=1}  c = cos(a)  s = sin(a)\n" HALVES;
    knob_is_real(text, "-fuse:rotary=0");
    CHECK_EQ(build(text, "").n_region + 3, build(text, "-fuse:rotary=0").n_region);
}

/* Queries, keys and results stay where [b,s,h,d] has them; one of the keys' readers wants them as they are said to be. */
TEST(attention_reads_rows_where_they_lie)
{
    static const char *const text[] = {
        "sym b [1,2,3]\nsym s [1,9,40]\nin x f32[b,s,4,20]  in k f32[b,7,2,20]  in v f32[b,2,7,33]\n"
        "q = transpose(x) {perm=[0,2,1,3]}  kt = transpose(k) {perm=[0,2,1,3]}  a = attention(q, kt, v) {rows=nan}\n"
        "z = transpose(a) {perm=[0,2,1,3]}  y = relu(z)\nout y",
        "in x f32[5,2,3,20]  in k f32[2,3,7,20]  in v f32[2,3,7,8]  in m f32[5,7]\n"
        "q = transpose(x) {perm=[1,2,0,3]}  a = attention(q, k, v, m)  z = transpose(a) {perm=[2,0,1,3]}  w = attention(q, q, q)\nout z\nout w",
        "in x f32[2,5,3,20]  in v f32[2,3,5,8]\n"
        "q = transpose(x) {perm=[0,2,1,3]}  a = attention(q, q, v)  n = neg(q)  z = transpose(a) {perm=[0,2,1,3]}\nout z\nout n\nout a",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], NULL);
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 3, .route = "-layout:heads=0" });
        hn_check_graph(text[i], &(hn_run_opts){ .sym = 1 });
    }
}

/* Channels go behind the image for a norm and a product, and back: stored channels last, nothing is moved. */
TEST(images_stay_where_products_leave_them)
{
    static const char *const block =
        "sym b [1,1,3]\nin x f32[b,4,6,5]  const k f32[8,4,1,1]  const d f32[8,1,3,3]  const g f32[8]  const o f32[8]\n"
        "const w f32[8,16]  const v f32[16,8]  const c f32[8]  const s f32[8,1,1]\n"
        "a = conv(x, k) {stride=[1,1], dilation=[1,1], pad_begin=[0,0], pad_end=[0,0]}\n"
        "e = conv(a, d) {stride=[1,1], dilation=[1,1], pad_begin=[1,1], pad_end=[1,1], group=8}\n"
        "p = transpose(e) {perm=[0,2,3,1]}  n = layer_norm(p, g, o) {axis=3}\n"
        "m = matmul(n, w)  r = relu(m)  q = matmul(r, v)  i = add(c, q)\n"
        "t = transpose(i) {perm=[0,3,1,2]}  u = mul(s, t)  y = add(u, a)\n"
        "z = conv(y, d) {stride=[1,1], dilation=[1,1], pad_begin=[1,1], pad_end=[1,1], group=8}\nout y\nout z";
    for (int i = 0; i < 3; i++) {
        static const char *const route[] = { "", "-layout:image=0", "-pass:sink_transpose=0" };
        hn_check_graph(block, &(hn_run_opts){ .route = route[i] });
        hn_check_graph(block, &(hn_run_opts){ .route = route[i], .sym = 3, .seed = 1 });
    }
    CHECK_EQ(build(block, "").n_region, 8); /* six, and both results as the model has them */
    CHECK_EQ(build(block, "-pass:sink_transpose=0").n_region, 9);
}

TEST(norms_over_several_axes)
{
    hn_check_graph("in x f32[3,4,5,6]  const s f32[4,5,6]  const b f32[6]\ny = layer_norm(x, s, b) {axis=1}\nout y", NULL);
    hn_check_graph("sym n [1,4,9]\nin x f32[n,4,n,6]  const s f32[4]  const b f32[4]\ny = instance_norm(x, s, b)  r = relu(y)\nout r",
                   &(hn_run_opts){ .sym = 5 });
    hn_check_graph("in x f32[2,6,5,7]  const s f32[6]  const b f32[6]\ny = group_norm(x, s, b) {groups=3}\nout y", NULL);
}
