/* Control flow with shapes that the run decides, and lists of known length: what the engine computes is what evaluation computes. */
#include "harness.h"
#include "run_graph.h"

#include <stdio.h>

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

/* As import writes a branch that contradicts the model's shapes: whichever it is, taking it fails and the other runs. */
TEST(branches_that_only_fail)
{
    static const char then_fails[] =
        "y = if(c) { i = cast(c) {to=i64}  a = gather(z, i) {axis=0}  b = reshape(a) {dim=[1]}  d = add(b, x)  out d }\n"
        "  { e = neg(x)  out e }\n";
    static const char else_fails[] =
        "y = if(c) { p = exp(x)  out p }\n"
        "  { f = cast(c) {to=i64}  g = sub(one, f)  h = gather(z, g) {axis=0}  k = reshape(h) {dim=[1]}  out k }\n";
    const struct {
        const char *cond, *branches, *fails;
    } row[] = { { "eq", then_fails, "does not fit" }, { "lt", then_fails, NULL },
                { "eq", else_fails, NULL }, { "lt", else_fails, "does not fit" } };
    for (int i = 0; i < HN_COUNT(row); i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "const one i64[] = {1}  const z f32[1] = {0}\nin x f32[1]  in n i64[]\nc = %s(n, n)\n%sout y", row[i].cond,
                 row[i].branches);
        hn_check_graph(text, &(hn_run_opts){ .fails = row[i].fails });
    }
}

TEST(branches_nobody_reads)
{
    by_seeds("in c bool[]  in x f32[3]\n"
             "w = if(c) { a = exp(x)  b = neg(a)  out b } { d = neg(x)  out d }\n"
             "y = tanh(x)  out y", 0);
}

/* Results of a size that the run shows, over operands of any size. */
TEST(counts_over_symbolic_operands)
{
    static const char text[] = "sym n [1,4,64]\nin x i32[n,3]  in y f32[n]  in m bool[n]\n"
                               "p, u = nonzero(x)  c, v = compress(y, m) {axis=0}  e = exp(c)  s = reduce_sum(c) {axes=[0]}\n"
                               "out p  out u  out e  out s";
    for (int64_t n = 1; n < 40; n += 13) by_seeds(text, n);
}

/* Sorting as many as another sort left: room that no shape tells beforehand. */
TEST(scratch_of_a_size_that_the_run_shows)
{
    by_seeds("in y f32[40]  in m bool[40]\nc, v = compress(y, m) {axis=0}\nu, f, i, k, n = unique(c) {sorted=1}\ne = exp(u)  out e  out k", 0);
}

/* An element that stands for an extent is computed before anything that mentions the extent, be it in an attribute alone. */
TEST(extents_mentioned_in_attributes)
{
    by_seeds("sym r = k[0]\nin h i64[1]  in x f32[9]  in m i64[]\n"
             "t = tanh(x)  g = mul(h, h)  k = add(g, h)  d = dims() {dim=[r]}  e = cast(d) {to=f32}  y = add(e, t)\n"
             "z, q = loop(m, _, x) { in i i64[]  in go bool[]  in a f32[9]  p = dims() {dim=[r+1]}  c = cast(p) {to=f32}\n"
             "  b = add(a, c)  out go  out b }\n"
             "out y  out z", 0);
}

TEST(lists_of_known_length)
{
    by_seeds("in x f32[7,3]  in y f32[2,3]  in z f32[7,3]\n"
             "const sizes i64[3] = {2, 1, 4}  const last i64[] = {-1}  const one i64[] = {1}  const three i64[] = {3}\n"
             "s = seq_split(x, sizes) {axis=0}  t = seq_insert(s, y)  u = seq_erase(t, one)\n"
             "n = seq_length(u)  a = seq_at(u, last)  b = seq_at(u, one)\n"
             "j = seq_concat(u) {axis=0}  e = exp(j)  m = add(a, a)  r = reduce_sum(b) {axes=[0]}\n"
             "v = seq_split(z) {axis=1, keepdims=0}  w = seq_concat(v) {axis=0, new_axis=1}  q = neg(w)\n"
             "p = seq_split(z, three) {axis=0}  h = seq_at(p, last)  g = tanh(h)\n"
             "out n  out m  out e  out r  out q  out g", 0);
}

TEST(optionals_that_are_known)
{
    by_seeds("in x f32[4]\n"
             "o = opt_make(x)  h = opt_has(o)  g = opt_get(o)  p = opt_make() {dtype=f32}  k = opt_has(p)\n"
             "y = neg(g)\n"
             "out h  out k  out y", 0);
}

TEST(lists_read_in_loops)
{
    by_seeds("in m i64[]  in x f32[3,2]  in y f32[3,2]  const one i64[] = {1}\n"
             "s = seq_construct(x, y)\n"
             "z, k = loop(m, _, x) { in i i64[]  in go bool[]  in a f32[3,2]\n"
             "  b = seq_at(s, one)  c = add(a, b)  d = tanh(c)  out go  out d }\n"
             "out z", 0);
}
