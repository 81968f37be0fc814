#include "pass/pass_test.h"

#define CONV "in x f32[2,2,3,3]  const w f32[3,2,1,1] = {1,-2,0.5,4,3,-1}  const b f32[3] = {1,2,3}\n"

TEST(absorb_scale_fires)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "absorb_scale", CONV "const s f32[3,1,1] = {2,-1,0.25}\nc = conv(x, w, b)\ny = mul(c, s)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_mul), 0);
    CHECK_EQ(hn_test_pass(t, "absorb_scale", CONV "const s f32[] = {2}\nc = conv(x, w)\ny = mul(s, c)\nout y", &g), 1);
    CHECK_EQ(hn_test_pass(t, "absorb_scale", "in x f32[2,4,2]  const w f32[2,3] = {1,2,3,4,5,6}  const s f32[3] = {2,3,4}\n"
                          "c = matmul(x, w)\ny = mul(c, s)\nout y", &g), 1);
    CHECK_EQ(hn_test_pass(t, "absorb_scale", "in x f32[4,2]  const w f32[3,2] = {1,2,3,4,5,6}  const s f32[1,3] = {2,3,4}\n"
                          "c = matmul(x, w) {trans_b=1}\ny = mul(c, s)\nout y", &g), 1);
}

TEST(absorb_scale_does_not_fire)
{
    static const char *const text[] = {
        CONV "const s f32[3,1,1] = {2,-1,0.25}\nc = conv(x, w, b)\ny = mul(c, s)\nout y\nout c",  /* another reader */
        CONV "const s f32[3] = {2,-1,0.25}\nc = conv(x, w, b)\ny = mul(c, s)\nout y",             /* along the last axis */
        CONV "const s f32[3,1,1] = {2,inf,0.25}\nc = conv(x, w, b)\ny = mul(c, s)\nout y",        /* not finite */
        CONV "in s f32[3,1,1]\nc = conv(x, w, b)\ny = mul(c, s)\nout y",                          /* computed scale */
        "in x f32[1,2,3]  in w f32[4,2,1]  const s f32[] = {2}\nc = conv(x, w)\ny = mul(c, s)\nout y", /* computed weights */
        CONV "const s f32[1,2,3,1,1] = {1,2,3,4,5,6}\nc = conv(x, w, b)\ny = mul(c, s)\nout y",   /* grows the result */
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "absorb_scale", text[i], &g), 0);
}

TEST(absorb_bias_fires)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "absorb_bias", CONV "const s f32[3,1,1] = {2,-1,0.25}\nc = conv(x, w, b)\ny = add(c, s)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_add), 0);
    CHECK_EQ(hn_test_pass(t, "absorb_bias", CONV "const s f32[1] = {2}\nc = conv(x, w)\ny = sub(c, s)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_sub), 0);
}

TEST(absorb_bias_does_not_fire)
{
    static const char *const text[] = {
        CONV "const s f32[3,1,1] = {2,-1,0.25}\nc = conv(x, w, b)\ny = sub(s, c)\nout y",         /* the other way round */
        CONV "const s f32[3,1,1] = {2,-1,0.25}\nc = conv(x, w, b)\ny = add(c, s)\nout y\nout c",
        CONV "const s f32[3] = {2,-1,0.25}\nc = conv(x, w, b)\ny = add(c, s)\nout y",
        CONV "in q f32[3]  const s f32[] = {2}\nc = conv(x, w, q)\ny = add(c, s)\nout y",         /* computed bias */
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "absorb_bias", text[i], &g), 0);
}
