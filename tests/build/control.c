/* Control flow with shapes that the run decides: what the engine computes is what evaluation computes. */
#include "harness.h"
#include "run_graph.h"

/* Inputs are drawn anew by each seed: conditions go both ways, counts go from 0 to 3. */
static void by_seeds(const char *text, int64_t sym)
{
    for (uint64_t seed = 0; seed < 6; seed++) hn_check_graph(text, &(hn_run_opts){ .seed = seed, .sym = sym });
}

TEST(branches_of_different_shape)
{
    by_seeds("in c bool[]  in x f32[3,5]\n"
             "y = if(c) { a = slice(x) {start=[0,0], step=[1,1], dim=[2,5]}  b = neg(a)  out b } { d = exp(x)  out d }\n"
             "z = add(y, y)  s = reduce_sum(z) {axes=[0]}\n"
             "out y  out z  out s", 0);
}

TEST(branches_of_different_shape_inside_a_loop)
{
    by_seeds("sym n [1,4,64]\nin m i64[]  in f i64[]  in x f32[n,2]  const start f32[2] = {0, 0}\n"
             "y, k = loop(m, _, start) { in i i64[]  in go bool[]  in a f32[2]\n"
             "  t = lt(i, f)\n"
             "  b = if(t) { p = concat(x, x) {axis=0}  out p } { q = neg(x)  out q }\n"
             "  r = reduce_sum(b) {axes=[0], keepdims=0}  s = add(a, r)  out go  out s }\n"
             "out y  out k", 5);
}

TEST(carries_that_grow)
{
    by_seeds("sym p = a#0\nin m i64[]  in x f32[2,3]  in w f32[1,3]\n"
             "y, k = loop(m, _, x) { in i i64[]  in go bool[]  in a f32[p,3]\n"
             "  b = concat(a, w) {axis=0}  c = tanh(b)  out go  out c }\n"
             "z = mul(y, y)  out y  out z  out k", 0);
}

/* What one hands on is another's shape. */
TEST(carries_that_trade_shapes)
{
    by_seeds("sym p = a#0\nsym q = b#0\nin m i64[]  in x f32[2]  in z f32[5]\n"
             "y, w, k = loop(m, _, x, z) { in i i64[]  in go bool[]  in a f32[p]  in b f32[q]\n"
             "  c = neg(b)  d = exp(a)  out go  out c  out d }\n"
             "out y  out w", 0);
}

TEST(scans_of_slices_sized_in_the_loop)
{
    by_seeds("sym p = a#0\nsym r = h[0]\nin m i64[]  in x f32[7]  in h i64[1]\n"
             "s, t, k = loop(m, _) { in i i64[]  in go bool[]\n"
             "  a = slice(x) {start=[0], step=[1], dim=[r]}  b = exp(a)  j = neg(i)  out go  out b  out j }\n"
             "u = add(s, s)  out s  out u  out t", 0);
}

TEST(loops_inside_loops)
{
    by_seeds("sym p = a#0\nsym q = e#0\nin m i64[]  in o i64[]  in x f32[1]  in w f32[1]\n"
             "y, s, k = loop(m, _, x) { in i i64[]  in go bool[]  in a f32[p]\n"
             "  g, n = loop(o, _, a) { in j i64[]  in on bool[]  in e f32[q]\n"
             "    f = concat(e, w) {axis=0}  out on  out f }\n"
             "  h = neg(g)  v = reduce_sum(h) {axes=[0]}  out go  out h  out v }\n"
             "z = add(y, y)  out z  out s  out k", 0);
}

/* A reshape that holds for one branch alone, and a slice of fewer than no elements: the other branch runs all the same. */
TEST(untaken_branches_may_not_fit)
{
    static const char text[] =
        "sym n [1,4,64]\nin x f32[n]\nconst three i64[] = {3}\n"
        "d = dims(x) {dim=[n]}  s = reshape(d)  c = lt(three, s)\n"
        "y = if(c) { a = slice(x) {start=[0], step=[1], dim=[n-3]}  b = reduce_sum(a) {axes=[0]}  out b }\n"
        "  { e = reduce_max(x) {axes=[0]}  out e }\n"
        "z = if(c) { f = exp(x)  out f } { p = neg(x)  q = reshape(p) {dim=[3,1]}  r = reshape(q) {dim=[n]}  out r }\n"
        "out y  out z";
    hn_check_graph(text, &(hn_run_opts){ .sym = 3 });
    hn_check_graph(text, &(hn_run_opts){ .sym = 9 });
}
