#include "pass/pass_test.h"

#define IN "in x f32[2,3,8]  const two f32[] = {2}  const half f32[] = {0.5}  const one f32[] = {1}  const e f32[] = {0.001}\n" \
           "const n f32[] = {8}  const r f32[] = {0.125}  const w f32[8] = {1,2,3,4,-5,6,7,0}  const b f32[8] = {1,0,-1,0,1,0,-1,0}\n"
#define MEAN " = reduce_mean(x) {axes=[2]}\n"
#define CENTRED "m" MEAN "d = sub(x, m)\n"
#define STD(x_) "q = pow(" x_ ", two)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ns = sqrt(ve)\n"

static void fires(hn_test *t, const char *pass, hn_op op, int times, const char *text)
{
    hn_graph *g;
    hn_test_note("%s", text);
    CHECK_EQ(hn_test_pass(t, pass, text, &g), times);
    CHECK_EQ(hn_test_count_ops(g, op), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_reduce_mean) + hn_test_count_ops(g, HN_OP_reduce_sum), 0);
    CHECK_EQ(g->n_node, 1);
}

TEST(fuse_layer_norm_fires_on_every_spelling)
{
    static const char *const text[] = {
        IN CENTRED STD("d") "y = div(d, s)\nout y",
        IN CENTRED "q = mul(d, d)\nv = reduce_mean(q) {axes=[2]}\nve = add(e, v)\ns = sqrt(ve)\ni = reciprocal(s)\ny = mul(i, d)\nout y",
        IN CENTRED STD("d") "i = div(one, s)\ny = mul(d, i)\nout y",
        IN CENTRED "q = pow(d, two)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ns = pow(ve, half)\ny = div(d, s)\nout y",
        IN CENTRED "const k f32[] = {-0.5}\nq = pow(d, two)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ni = pow(ve, k)\ny = mul(d, i)\nout y",
        /* sums over counts */
        IN "u = reduce_sum(x) {axes=[2]}\nm = div(u, n)\nd = sub(x, m)\nq = mul(d, d)\nz = reduce_sum(q) {axes=[2]}\nv = mul(z, r)\n"
           "ve = add(v, e)\ns = sqrt(ve)\ny = div(d, s)\nout y",
        /* axes dropped and put back */
        IN "u = reduce_mean(x) {axes=[2], keepdims=0}\nm = reshape(u) {dim=[2,3,1]}\nd = sub(x, m)\n" STD("d") "y = div(d, s)\nout y",
        "sym k [1,4,9]\nin x f32[k,3,8]  const two f32[] = {2}  const e f32[] = {0.001}\n" CENTRED STD("d") "y = div(d, s)\nout y",
    };
    for (int i = 0; i < HN_COUNT(text) - 1; i++) fires(t, "fuse_layer_norm", HN_OP_layer_norm, 1, text[i]);
    hn_graph *g;
    CHECK_EQ(hn_test_fires(t, "fuse_layer_norm", text[HN_COUNT(text) - 1], &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_layer_norm), 1);
    fires(t, "fuse_layer_norm", HN_OP_layer_norm, 3, IN CENTRED STD("d") "y = div(d, s)\ny1 = mul(w, y)\ny2 = add(y1, b)\nout y2");
    fires(t, "fuse_layer_norm", HN_OP_layer_norm, 2, IN "y = layer_norm(x) {axis=2, eps=0.01}\ny1 = mul(y, w)\ny2 = add(b, y1)\nout y2");
    /* two axes at once */
    fires(t, "fuse_layer_norm", HN_OP_layer_norm, 1, IN "m = reduce_mean(x) {axes=[1,2]}\nd = sub(x, m)\nq = mul(d, d)\n"
          "v = reduce_mean(q) {axes=[1,2]}\nve = add(v, e)\ns = sqrt(ve)\ny = div(d, s)\nout y");
}

TEST(fuse_layer_norm_fires_on_the_spread_out_form)
{
    static const char *const text[] = {
        IN CENTRED STD("d") "i = reciprocal(s)\nk = mul(i, w)\nxk = mul(x, k)\nmk = mul(m, k)\nc = sub(b, mk)\ny = add(xk, c)\nout y",
        IN CENTRED STD("d") "i = reciprocal(s)\nk = mul(w, i)\nxk = mul(k, x)\nmk = mul(k, m)\nc = sub(b, mk)\ny = add(c, xk)\nout y",
        IN CENTRED STD("d") "i = reciprocal(s)\nxk = mul(x, i)\nmk = mul(m, i)\ny = sub(xk, mk)\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) fires(t, "fuse_layer_norm", HN_OP_layer_norm, 1, text[i]);
}

TEST(fuse_layer_norm_does_not_fire)
{
    static const char *const text[] = {
        IN CENTRED STD("d") "y = div(d, s)\nout y\nout d",                                  /* other readers */
        IN CENTRED STD("d") "y = div(d, s)\nout y\nout s",
        IN CENTRED "q = mul(d, d)\nv = reduce_mean(q) {axes=[2]}\ns = sqrt(v)\nse = add(s, e)\ny = div(d, se)\nout y", /* outside the root */
        IN CENTRED STD("x") "y = div(d, s)\nout y",                                         /* not the variance */
        IN CENTRED STD("d") "y = div(x, s)\nout y",
        IN CENTRED "const three f32[] = {3}\nq = pow(d, three)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ns = sqrt(ve)\ny = div(d, s)\nout y",
        IN "m = reduce_mean(x) {axes=[1]}\nd = sub(x, m)\n" STD("d") "y = div(d, s)\nout y", /* another axis */
        IN "m = reduce_mean(x) {axes=[1]}\nd = sub(x, m)\nq = mul(d, d)\nv = reduce_mean(q) {axes=[1]}\nve = add(v, e)\ns = sqrt(ve)\ny = div(d, s)\nout y",
        IN "const n7 f32[] = {7}\nu = reduce_sum(x) {axes=[2]}\nm = div(u, n7)\nd = sub(x, m)\n" STD("d") "y = div(d, s)\nout y",
        IN CENTRED "const neg f32[] = {-0.001}\nq = mul(d, d)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, neg)\ns = sqrt(ve)\ny = div(d, s)\nout y",
        IN "in p f32[2,3,8]\ny = layer_norm(x) {axis=2}\nz = mul(y, p)\nout z",             /* not alike in every line */
        IN "y = layer_norm(x) {axis=2}\nz = mul(y, w)\nout z\nout y",
        IN "y = layer_norm(x) {axis=2}\nz = sub(y, b)\nout z",
        IN "const w2 f32[4,1,1,8] = {1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8,1,2,3,4,5,6,7,8}\ny = layer_norm(x) {axis=2}\n"
           "z = mul(y, w2)\nout z",                                                          /* the result grows */
        IN "y = layer_norm(x, w, b) {axis=2}\nz = mul(y, w)\nout z",
    };
    hn_test_none_fires(t, "fuse_layer_norm", text, HN_COUNT(text));
}

TEST(fuse_rms_norm_fires)
{
    static const char *const text[] = {
        IN STD("x") "y = div(x, s)\nout y",
        IN STD("x") "i = div(one, s)\ny = mul(x, i)\nout y",
        IN "q = mul(x, x)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ns = sqrt(ve)\ni = reciprocal(s)\ny = mul(i, x)\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) fires(t, "fuse_rms_norm", HN_OP_rms_norm, 1, text[i]);
    fires(t, "fuse_rms_norm", HN_OP_rms_norm, 2, IN STD("x") "y = div(x, s)\nz = mul(w, y)\nout z");
}

/* Statistics in f32 beside a tensor of halves. */
TEST(fuse_rms_norm_takes_wider_statistics)
{
#define HALVES(eps) "in x f16[2,3,8]  const two f32[] = {2}  const e f32[] = {" eps "}\nxw = cast(x) {to=f32}\n" STD("xw") \
                    "i = reciprocal(s)\n"
    hn_graph *g;
    CHECK_EQ(hn_test_fires(t, "fuse_rms_norm", HALVES("1e-6") "h = cast(i) {to=f16}\ny = mul(x, h)\nout y", &g), 1);
    CHECK_EQ(g->n_node, 1);
    CHECK_EQ(hn_test_fires(t, "fuse_rms_norm", HALVES("1e-6") "yw = mul(xw, i)\ny = cast(yw) {to=f16}\nout y", &g), 1);
    CHECK_EQ(g->n_node, 3); /* the casts stay: the engine reads and writes through them */
    /* 1/sqrt(1e-12) is infinite in f16, and so would the model's result be */
    CHECK_EQ(hn_test_fires(t, "fuse_rms_norm", HALVES("1e-12") "h = cast(i) {to=f16}\ny = mul(x, h)\nout y", &g), 0);
}

TEST(fuse_rms_norm_does_not_fire)
{
    static const char *const text[] = {
        IN STD("x") "y = div(x, s)\nout y\nout v",
        IN STD("x") "y = div(s, x)\nout y",
        IN "in z f32[2,3,8]\n" STD("z") "y = div(x, s)\nout y",
        IN STD("x") "y = mul(x, s)\nout y",
        IN "q = mul(x, w)\nv = reduce_mean(q) {axes=[2]}\nve = add(v, e)\ns = sqrt(ve)\ny = div(x, s)\nout y",
    };
    hn_test_none_fires(t, "fuse_rms_norm", text, HN_COUNT(text));
}
