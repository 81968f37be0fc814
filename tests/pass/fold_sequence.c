#include "pass_test.h"

TEST(fold_sequence_fires)
{
    hn_graph *g;
    CHECK_EQ(hn_test_pass(t, "fold_sequence", "in x f32[2]  in z f32[3]  const i i64[] = {-1}\n"
                                              "s = seq_construct(x, z)\na = seq_at(s, i)\ny = neg(a)\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_seq_at) + hn_test_count_ops(g, HN_OP_seq_construct), 0);
    CHECK_EQ(g->out[0].value->type.dim[0], 3);
    CHECK_EQ(hn_test_pass(t, "fold_sequence", "in x f32[6,2]  const i i64[] = {1}  const k i64[] = {4}\n"
                                              "s = seq_split(x, k) {axis=0}\na = seq_at(s, i)\nn = seq_length(s)\nout a\nout n", &g), 2);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_slice), 1);
    CHECK_EQ(g->out[0].value->type.dim[0], 2);
    CHECK_EQ(hn_test_pass(t, "fold_sequence", "in x f32[2,3]  in z f32[2,3]  const i i64[] = {0}\n"
                                              "s = seq_construct(x)\nu = seq_insert(s, z, i)\n"
                                              "y = seq_concat(u) {axis=1, new_axis=1}\nout y", &g), 1);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_concat), 1);
    CHECK_EQ(hn_test_pass(t, "fold_sequence", "in x f32[2]\no = opt_make(x)\nh = opt_has(o)\ny = opt_get(o)\nz = neg(y)\nout z\nout h", &g), 2);
    CHECK_EQ(hn_test_count_ops(g, HN_OP_opt_make), 0);
}

TEST(fold_sequence_does_not_fire)
{
    static const char *const text[] = {
        "in x f32[2]  in z f32[2]  in m f32[1]\nc = cast(m) {to=i64}\nd = mul(c, c)\n"
        "const o i64[1] = {0}\ni = mul(d, o)\ns = seq_construct(x, z)\ny = seq_at(s, i)\nout y",     /* computed position */
        "in x f32[6]  in m f32[]\nc = cast(m) {to=i64}\nconst o i64[] = {0}  const two i64[] = {2}  const i i64[] = {1}\n"
        "d = mul(c, o)\nk = add(d, two)\ns = seq_split(x, k) {axis=0}\na = seq_at(s, i)\nr = reduce_sum(a) {axes=[0]}\nout r", /* computed size */
    };
    hn_graph *g;
    for (int i = 0; i < HN_COUNT(text); i++) CHECK_EQ(hn_test_pass(t, "fold_sequence", text[i], &g), 0);
}
