#include "pass/pass_test.h"

TEST(merge_transpose_fires)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "merge_transpose", "in x f32[2,3,4]\na = transpose(x) {perm=[1,2,0]}\n"
                          "y = transpose(a) {perm=[2,1,0]}\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_transpose), 1);
    CHECK_EQ(hn_test_pass(t, "merge_transpose", "in x f32[2,3,4]\na = transpose(x) {perm=[1,2,0]}\n"
                          "b = transpose(a) {perm=[2,0,1]}\ny = neg(b)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_transpose), 0);
}

TEST(merge_transpose_does_not_fire)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "merge_transpose", "in x f32[2,3]\na = transpose(x) {perm=[1,0]}\nb = neg(a)\n"
                          "y = transpose(b) {perm=[1,0]}\nout y", &g), 0);
}

TEST(transpose_operand_fires)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "transpose_operand", "in a f32[2,3,4]  in k f32[2,5,4]\nb = transpose(k) {perm=[0,2,1]}\n"
                          "y = matmul(a, b)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_transpose), 0);
    CHECK_EQ(hn_test_pass(t, "transpose_operand", "in a f32[2,3,5,4]  in k f32[2,6,3,4]\nb = transpose(k) {perm=[0,2,3,1]}\n"
                          "y = matmul(a, b)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_transpose), 1);
    CHECK_EQ(hn_test_pass(t, "transpose_operand", "in a f32[4,3]  in k f32[4,5]\nb = transpose(a) {perm=[1,0]}\n"
                          "y = matmul(b, k)\nout y", &g), 1);
}

TEST(transpose_operand_does_not_fire)
{
    static const char *const text[] = {
        "in a f32[2,3,4]  in k f32[4,2,5]\nb = transpose(k) {perm=[1,0,2]}\ny = matmul(a, b)\nout y", /* rows stay rows */
        "in a f32[2,3]  const w f32[2,1] = {1,2}\nb = transpose(a) {perm=[1,0]}\ny = matmul(b, w)\nout y", /* packed weights */
        "in a f32[2,3,5,4]  in k f32[2,6,3,4]\nb = transpose(k) {perm=[0,2,3,1]}\ny = matmul(a, b)\nout y\nout b", /* kept anyway */
        "in a f16[3,4]  in k f16[5,4]\nb = transpose(k) {perm=[1,0]}\ny = matmul(a, b)\nout y",       /* no kernel */
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "transpose_operand", text[i], &g), 0);
}
