#include "pass/pass_test.h"

static hn_node *becomes(hn_test *t, const char *pass, hn_op op, const char *text)
{
    hn_graph *g;
    hn_test_note("%s", text);
    CHECK_EQ(hn_test_pass(t, pass, text, &g), 1);
    CHECK_EQ(g->n_node, 1);
    CHECK_EQ((int)g->first->op, (int)op);
    return g->first;
}

#define IN "in x f32[3,5]  const h f32[] = {0.5}  const one f32[] = {1}  const two f32[] = {2}  const r2 f32[] = {1.41421354}\n" \
           "const c f32[] = {0.797884583}  const k f32[] = {0.044715}  const three f32[] = {3}  const i2 f32[] = {0.707106769}\n"

TEST(fuse_gelu_fires_in_every_order)
{
    static const char *const by_erf[] = {
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y",
        IN "d = mul(i2, x)\ne = erf(d)\na = add(one, e)\nm = mul(h, x)\ny = mul(a, m)\nout y",
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(a, h)\ny = mul(x, m)\nout y",
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = div(m, two)\nout y",
        IN "d = div(x, r2)\ne = erf(d)\nb = mul(e, h)\na = add(b, h)\ny = mul(x, a)\nout y",
        IN "d = div(x, r2)\ne = erf(d)\nm = mul(x, h)\nb = mul(m, e)\ny = add(m, b)\nout y",
    };
    static const char *const by_tanh[] = {
        IN "p = pow(x, three)\nq = mul(p, k)\ns = add(x, q)\nu = mul(s, c)\ne = tanh(u)\na = add(e, one)\nm = mul(x, h)\ny = mul(m, a)\nout y",
        IN "p2 = mul(x, x)\np = mul(x, p2)\nq = mul(k, p)\ns = add(q, x)\nu = mul(c, s)\ne = tanh(u)\na = add(one, e)\nm = mul(h, a)\ny = mul(x, m)\nout y",
        IN "p2 = pow(x, two)\nq = mul(k, p2)\ns = add(one, q)\nv = mul(x, c)\nu = mul(v, s)\ne = tanh(u)\na = add(one, e)\nm = mul(h, x)\ny = mul(m, a)\nout y",
    };
    for (int i = 0; i < HN_COUNT(by_erf); i++) CHECK_EQ(hn_attr_i(becomes(t, "fuse_gelu", HN_OP_gelu, by_erf[i]), "tanh"), 0);
    for (int i = 0; i < HN_COUNT(by_tanh); i++) CHECK_EQ(hn_attr_i(becomes(t, "fuse_gelu", HN_OP_gelu, by_tanh[i]), "tanh"), 1);
}

TEST(fuse_gelu_stops_at_its_operand)
{
    hn_graph *g;
    /* x is a product, and the result is gated */
    CHECK_EQ(hn_test_pass(t, "fuse_gelu", "in z f32[3,5]  in w f32[3,5]\n" IN "x2 = mul(z, three)\nd = div(x2, r2)\ne = erf(d)\na = add(e, one)\n"
                          "m = mul(x2, a)\nn = mul(m, h)\ny = mul(n, w)\nout y\nin unused f32[1]\nq = mul(x, one)\nout q", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_gelu), 1);
    /* constants as halves hold them */
    CHECK_EQ(hn_test_fires(t, "fuse_gelu", "in x f16[4]  const r f16[] = {1.414}  const one f16[] = {1}  const h f16[] = {0.5}\n"
                           "d = div(x, r)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y", &g), 1);
}

TEST(fuse_gelu_does_not_fire)
{
    static const char *const text[] = {
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y\nout e",    /* another reader */
        IN "d = div(x, two)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y",          /* another argument */
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, two)\nout y",         /* another factor */
        IN "d = div(x, r2)\ne = erf(d)\na = add(e, two)\nm = mul(x, a)\ny = mul(m, h)\nout y",
        IN "d = div(x, r2)\ne = tanh(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y",
        IN "in z f32[3,5]\nd = div(z, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y",
        IN "p = mul(x, x)\nq = mul(p, k)\ns = add(x, q)\nu = mul(s, c)\ne = tanh(u)\na = add(e, one)\nm = mul(x, h)\ny = mul(m, a)\nout y",
        IN "in z f32[1,5]\nd = div(z, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, h)\nout y",
        IN "const b f32[2,1,1] = {0.5,0.5}\nd = div(x, r2)\ne = erf(d)\na = add(e, one)\nm = mul(x, a)\ny = mul(m, b)\nout y",
    };
    hn_test_none_fires(t, "fuse_gelu", text, HN_COUNT(text));
}

TEST(fuse_silu_fires)
{
    const hn_node *n = becomes(t, "fuse_silu", HN_OP_silu, IN "s = sigmoid(x)\ny = mul(s, x)\nout y");
    CHECK_EQ(hn_attr_f(n, "beta"), 1);
    n = becomes(t, "fuse_silu", HN_OP_silu, IN "const b f32[] = {1.702}\nm = mul(b, x)\ns = sigmoid(m)\ny = mul(x, s)\nout y");
    CHECK_NEAR(hn_attr_f(n, "beta"), 1.702, 1e-6);
    n = becomes(t, "fuse_silu", HN_OP_silu, IN "m = div(x, two)\ns = sigmoid(m)\ny = mul(x, s)\nout y");
    CHECK_EQ(hn_attr_f(n, "beta"), 0.5);
    becomes(t, "fuse_silu", HN_OP_mish, IN "p = softplus(x)\ns = tanh(p)\ny = mul(x, s)\nout y");
}

TEST(fuse_silu_does_not_fire)
{
    static const char *const text[] = {
        IN "s = sigmoid(x)\ny = mul(s, x)\nout y\nout s",
        IN "in z f32[3,5]\ns = sigmoid(z)\ny = mul(s, x)\nout y",
        IN "in z f32[2,3,5]\ns = sigmoid(x)\nw = mul(x, z)\ny = mul(s, w)\nout y",
        IN "m = add(x, one)\ns = sigmoid(m)\ny = mul(x, s)\nout y",
        IN "m = div(two, x)\ns = sigmoid(m)\ny = mul(x, s)\nout y",
        IN "s = sigmoid(x)\nt = tanh(s)\ny = mul(x, t)\nout y",
        IN "in z f32[3,5]\np = softplus(z)\ns = tanh(p)\ny = mul(x, s)\nout y",
    };
    hn_test_none_fires(t, "fuse_silu", text, HN_COUNT(text));
}

#define X "in x f32[2,4,3]  const low f32[] = {-inf}\n"

TEST(fuse_softmax_fires)
{
    const hn_node *n = becomes(t, "fuse_softmax", HN_OP_softmax, X "m = reduce_max(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\n"
                               "s = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y");
    CHECK_EQ(hn_attr_i(n, "axis"), 2);
    n = becomes(t, "fuse_softmax", HN_OP_softmax, X "m = reduce_max(x) {axes=[1]}\nd = sub(x, m)\ne = exp(d)\n"
                "s = reduce_sum(e) {axes=[1]}\nr = reciprocal(s)\ny = mul(r, e)\nout y");
    CHECK_EQ(hn_attr_i(n, "axis"), 1);
    becomes(t, "fuse_softmax", HN_OP_softmax, X "m0 = reduce_max(x) {axes=[2], keepdims=0}\nm1 = reshape(m0) {dim=[2,4,1]}\nm = max(low, m1)\n"
            "d = sub(x, m)\ne = exp(d)\ns0 = reduce_sum(e) {axes=[2], keepdims=0}\ns = reshape(s0) {dim=[2,4,1]}\ny = div(e, s)\nout y");
    n = becomes(t, "fuse_softmax", HN_OP_log_softmax, X "m = reduce_max(x) {axes=[0]}\nd = sub(x, m)\ne = exp(d)\n"
                "s = reduce_sum(e) {axes=[0]}\nl = log(s)\ny = sub(d, l)\nout y");
    CHECK_EQ(hn_attr_i(n, "axis"), 0);
}

TEST(fuse_softmax_does_not_fire)
{
    static const char *const text[] = {
        X "e = exp(x)\ns = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y",                                            /* overflows */
        X "m = reduce_max(x) {axes=[1]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y", /* other axes */
        X "m = reduce_max(x) {axes=[1,2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[1,2]}\ny = div(e, s)\nout y",
        X "m = reduce_max(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y\nout e",
        X "m = reduce_max(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\ny = div(s, e)\nout y",
        X "m = reduce_min(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y",
        X "m = reduce_max(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(d) {axes=[2]}\ny = div(e, s)\nout y",
        X "in z f32[2,4,3]\nm = reduce_max(z) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\ny = div(e, s)\nout y",
        X "m = reduce_max(x) {axes=[2]}\nd = sub(x, m)\ne = exp(d)\ns = reduce_sum(e) {axes=[2]}\nl = log(s)\ny = sub(x, l)\nout y",
    };
    hn_test_none_fires(t, "fuse_softmax", text, HN_COUNT(text));
}
