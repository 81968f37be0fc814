/* Activations, softmax, normalisations. */
#include "composite_test.h"

#include <stdio.h>

TEST(activations_expand)
{
    static const char *const ops[] = {
        "gelu(x)",
        "gelu(x) {tanh=1}",
        "silu(x)",
        "silu(x) {beta=1.5}",
        "hard_swish(x)",
        "hard_sigmoid(x)",
        "hard_sigmoid(x) {alpha=0.5, beta=0.25}",
        "leaky_relu(x)",
        "leaky_relu(x) {alpha=-0.5}",
        "elu(x)",
        "elu(x) {alpha=0.5}",
        "selu(x)",
        "selu(x) {alpha=2, gamma=3}",
        "celu(x)",
        "celu(x) {alpha=2}",
        "softplus(x)",
        "softsign(x)",
        "mish(x)",
        "thresholded_relu(x)",
        "thresholded_relu(x) {alpha=0}",
        "shrink(x)",
        "shrink(x) {bias=0.25, lambd=0.25}",
    };
    char text[256];

    for (int i = 0; i < HN_COUNT(ops); i++) {
        snprintf(text, sizeof(text), "in x f32[3,7]  y = %s  out y", ops[i]);
        EXPANDS(text, "", E_HALF | E_HOSTILE);
        EXPANDS(text, "x=-6..6", E_HALF);
        snprintf(text, sizeof(text), "sym n  in x f32[n,0]  y = %s  out y", ops[i]);
        EXPANDS(text, "n=2", 0);
    }
    EXPANDS("in x i32[9]  y = shrink(x) {bias=1.5, lambd=2}  out y", "", E_AS_IS);
    EXPANDS("in x u8[9]  y = shrink(x) {bias=1, lambd=2}  out y", "", E_AS_IS);
}

TEST(activations_by_hand)
{
    EXPECT_NEAR("const x f32[4] = {-1, 0, 1, 3}  y = gelu(x)  out y",
                "const y f32[4] = {-0.15865525, 0, 0.84134475, 2.9959502}", 1e-6);
    EXPECT_NEAR("const x f32[3] = {-1, 0, 2}  y = elu(x) {alpha=2}  out y",
                "const y f32[3] = {-1.2642411, 0, 2}", 1e-6);
    EXPECT_NEAR("const x f32[3] = {-1, 0, 1}  y = softplus(x)  out y",
                "const y f32[3] = {0.31326169, 0.69314718, 1.3132617}", 1e-6);
    EXPECT_NEAR("const x f32[3] = {-1, 0, 2}  y = hard_swish(x)  out y",
                "const y f32[3] = {-0.33333333, 0, 1.6666667}", 1e-6);
    EXPECT("const x f32[5] = {-2, -0.5, 0, 0.5, 2}  y = shrink(x) {bias=1, lambd=1}  out y",
           "const y f32[5] = {-1, 0, 0, 0, 1}");
    EXPECT("const x f32[3] = {-1, 1, 2}  y = thresholded_relu(x)  out y", "const y f32[3] = {0, 0, 2}");
}

TEST(activations_refuse)
{
    REFUSES("in x i32[3]  y = gelu(x)  out y", "");
    REFUSES("in x bool[3]  y = shrink(x)  out y", "");
}

TEST(softmax_expands)
{
    static const char *const ops[] = { "softmax", "log_softmax", "hardmax" };
    static const char *const shapes[] = { "f32[5]",     "f32[2,3,4]", "f32[2,n,3]",
                                          "f32[1,1,1]", "f32[3,0,2]", "f32[0,4,2]" };
    char text[256];

    for (int i = 0; i < HN_COUNT(ops); i++)
        for (int s = 0; s < HN_COUNT(shapes); s++)
            for (int axis = s == 0 ? -1 : -3; axis < (s == 0 ? 1 : 3); axis++) {
                snprintf(text, sizeof(text), "sym n  in x %s  y = %s(x) {axis=%d}  out y", shapes[s], ops[i],
                         axis);
                EXPANDS(text, "n=7", E_HALF | E_HOSTILE);
                EXPANDS(text, "n=7 x=-30..30", 0);
            }
}

TEST(softmax_by_hand)
{
    EXPECT_NEAR("const x f32[3] = {-1, 0, 1}  y = softmax(x)  out y",
                "const y f32[3] = {0.09003058, 0.24472848, 0.66524094}", 1e-6);
    EXPECT_NEAR("const x f32[2,2] = {0, 1, 10000, 10001}  y = log_softmax(x)  out y",
                "const y f32[2,2] = {-1.3132616, -0.3132617, -1.3132616, -0.3132617}", 1e-6);
    EXPECT("const x f32[2,3] = {3, 3, 1, 0, 1, 2}  y = hardmax(x)  out y",
           "const y f32[2,3] = {1, 0, 0, 0, 0, 1}");
    REFUSES("in x f32[3]  y = softmax(x) {axis=1}  out y", "axis");
    REFUSES("in x i32[3]  y = softmax(x)  out y", "");
    REFUSES("in x f32  y = softmax(x) {axis=0}  out y", "rank");
}

TEST(layer_norms_expand)
{
    EXPANDS("in x f32[2,3,8]  y = layer_norm(x)  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[n,3,8]  in s f32[8]  in b f32[8]  y = layer_norm(x, s, b) {eps=0.01}  out y",
            "n=4", E_HALF);
    EXPANDS("in x f32[2,3,8]  in s f32[3,8]  y, m, i = layer_norm(x, s) {axis=1}  out y  out m  out i", "",
            E_HALF);
    EXPANDS(
        "sym n  in x f32[2,3,n]  in b f32[n]  y, m, i = layer_norm(x, _, b) {axis=0}  out y  out m  out i",
        "n=5", 0);
    EXPANDS("in x f32[2,3,8]  in s f32[8]  y = rms_norm(x, s)  out y", "", E_HALF);
    EXPANDS("in x f32[2,3,8]  y = rms_norm(x) {axis=-2, eps=0.1}  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[2,n,8]  in s f32[n,8]  in b f32[8]  y = layer_norm(x, s, b) {axis=1}  out y", "n=3", E_HALF);
    EXPANDS("in x f32[2,3,8]  in s f32[1,1,8]  in b f32[3,1]  y = layer_norm(x, s, b) {axis=1}  out y", "", 0);
    EXPANDS("in x f32[2,3,8]  in s f32[2,1,8]  y = rms_norm(x, s) {axis=1}  out y", "", 0); /* differs between lines */
    INFERS("in x f16[2,3,8]  y, m, i = layer_norm(x) {axis=1}  out y  out m  out i",
           "f16[2,3,8] f32[2,1,1] f32[2,1,1]");
    REFUSES("in x f32[2,3]  in s f32[2]  y = layer_norm(x, s)  out y", "broadcast");
    REFUSES("in x f32[2,3]  in s f16[3]  y = layer_norm(x, s)  out y", "");
    REFUSES("in x f32[2,3]  y = rms_norm(x) {axis=2}  out y", "axis");
}

TEST(channel_norms_expand)
{
    EXPANDS("in x f32[2,4,3,3]  in s f32[4]  in b f32[4]  in m f32[4]  in v f32[4]  y = batch_norm(x, s, b, "
            "m, v)  out y",
            "v=0.1..2", E_HALF);
    EXPANDS("sym c  in x f32[5,c]  in s f32[c]  in b f32[c]  in m f32[c]  in v f32[c]  y = batch_norm(x, s, "
            "b, m, v) {eps=0.1}  out y",
            "v=0.1..2 c=3", 0);
    EXPANDS("in x f32[6]  in s f32[1]  in b f32[1]  in m f32[1]  in v f32[1]  y = batch_norm(x, s, b, m, v)  "
            "out y",
            "v=0.1..2", 0);
    EXPANDS("in x f32[2,4,3,5]  in s f32[4]  in b f32[4]  y = instance_norm(x, s, b) {eps=0.01}  out y", "",
            E_HALF);
    EXPANDS("sym h  in x f32[2,4,h]  in s f32[4]  in b f32[4]  y = instance_norm(x, s, b) {eps=0.01}  out y",
            "h=6", 0);
    EXPANDS(
        "in x f32[2,4,3,5]  in s f32[4]  in b f32[4]  y = group_norm(x, s, b) {groups=2, eps=0.01}  out y",
        "", E_HALF);
    EXPANDS("sym h  sym n  in x f32[n,6,h,2]  in s f32[6]  in b f32[6]  y = group_norm(x, s, b) {groups=3}  "
            "out y",
            "h=3 n=2", 0);
    REFUSES("in x f32[2,4,3]  in s f32[3]  in b f32[4]  y = instance_norm(x, s, b)  out y", "channels");
    REFUSES("in x f32[2,4,3]  in s f32[4]  in b f32[4]  y = group_norm(x, s, b) {groups=3}  out y", "groups");
    REFUSES("in x f32[2,4,3]  in s f32[4]  in b f32[4]  y = group_norm(x, s, b)  out y", "groups");
}

TEST(other_norms_expand)
{
    EXPANDS("in x f32[3,4]  y = lp_norm(x)  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[3,n,2]  y = lp_norm(x) {axis=1, p=1}  out y", "n=5", E_HALF);
    EXPECT("const x f32[2,2] = {0, 0, 3, 4}  y = lp_norm(x)  out y", "const y f32[2,2] = {0, 0, 0.6, 0.8}");
    EXPANDS("in x f32[2,7,3,2]  y = lrn(x) {size=3}  out y", "", E_HALF);
    EXPANDS("sym c  in x f32[2,c,3]  y = lrn(x) {size=4, alpha=0.5, beta=0.5, bias=2}  out y", "c=6", 0);
    EXPANDS("in x f32[1,2,3]  y = lrn(x) {size=9, alpha=0.5}  out y", "", 0);
    EXPANDS("in x f32[2,3,4,5]  y = mvn(x)  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[n,3,4]  y = mvn(x) {axes=[-1,1]}  out y", "n=3", 0);
    EXPANDS("in x f32[2,3]  y = mvn(x)  out y", "", 0);
    REFUSES("in x f32[2,3]  y = lp_norm(x) {p=3}  out y", "");
    REFUSES("in x f32[2,3]  y = lrn(x) {size=0}  out y", "");
    REFUSES("in x f32[2,3]  y = mvn(x) {axes=[2]}  out y", "axis");
}

TEST(reductions_expand)
{
    EXPANDS("in x f32[3,4]  y = reduce_l1(x) {axes=[1]}  out y", "", E_HALF | E_HOSTILE);
    EXPANDS("sym n  in x f32[3,n,2]  y = reduce_l2(x) {axes=[0,2], keepdims=0}  out y", "n=5", E_HALF);
    EXPANDS("in x f32[3,4]  y = reduce_sum_square(x) {axes=[0]}  out y", "", E_HALF);
    EXPANDS("in x f32[2,3]  a = abs(x)  y = reduce_log_sum(a) {axes=[1]}  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[n,3]  y = reduce_log_sum_exp(x) {axes=[0], keepdims=0}  out y", "n=4", E_HALF | E_HOSTILE);
    EXPANDS("in x i32[3,4]  y = reduce_l1(x) {axes=[1]}  out y", "", 0);
    EXPANDS("in x i64[3,4]  y = reduce_l2(x) {axes=[1]}  out y", "", 0);
    EXPANDS("in x i32[3,4]  y = reduce_sum_square(x) {axes=[1]}  out y", "", 0);
    EXPECT("const x f32[2,2] = {inf, 1, -inf, -inf}  y = reduce_log_sum_exp(x) {axes=[1]}  out y",
           "const y f32[2,1] = {inf, -inf}");
    EXPECT("const x f32[2] = {1000, 1000}  y = reduce_log_sum_exp(x) {axes=[0]}  out y", "const y f32[1] = {1000.693147}");
}
