/* Whole builds of small graphs: what the engine computes is what evaluation computes. */
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
