#include "op_test.h"

TEST(if_takes_a_branch)
{
    EXPECT("const c bool[] = {1}  const x f32[2] = {1, 2}  y = if(c) { a = neg(x)  out a } { out x }  out y",
           "const y f32[2] = {-1, -2}");
    EXPECT("const c bool[1] = {0}  const x f32[2] = {1, 2}  y = if(c) { a = neg(x)  out a } { out x }  out y",
           "const y f32[2] = {1, 2}");
    INFERS("in c bool[]  in x f32[n,3]  in z f32[m,3]  y = if(c) { out x } { out z }  out y", "f32[y_d0,3]");
    /* a known condition needs no agreement */
    INFERS("const c bool[] = {0}  in x f32[n,3]  in z f32[m]  y = if(c) { out x } { out z }  out y",
           "f32[m]");
    REFUSES("in c bool[]  in x f32[n,3]  in z f32[m]  y = if(c) { out x } { out z }  out y",
            "rank 2 one way and rank 1 the other");
    REFUSES("in c bool[]  in x f32[n]  in z i32[n]  y = if(c) { out x } { out z }  out y",
            "f32 one way and i32");
    REFUSES("in c bool[2]  in x f32[n]  y = if(c) { out x } { out x }  out y", "one element");
    REFUSES("in c i32[]  in x f32[n]  y = if(c) { out x } { out x }  out y", "bool");
    REFUSES("in c bool[]  in x f32[n]  y = if(c) { out x } { out x  out x }  out y", "else branch yields 2");
}

TEST(loop_counts)
{
    /* input += i for i < 5; the iteration number is scanned */
    EXPECT("const m i64[] = {5}  const x i64[] = {10}"
           "  y, s, n = loop(m, _, x) { in i i64[]  in c bool[]  in a i64[]  b = add(a, i)  out c  out b  "
           "out i }  out y  out s  out n",
           "const y i64[] = {20}  const s i64[5] = {0, 1, 2, 3, 4}  const n i64[] = {5}");
    /* while sum(x) < 10: exactly three trips, onnx-tensorrt 891 */
    EXPECT("const x f32[2] = {2.2, 3.3}  const ten f32[] = {10}  const one f32[] = {1}  const go bool[] = {1}"
           "  y, n = loop(_, go, x) { in i i64[]  in c bool[]  in a f32[2]  b = add(a, one)"
           "  s = reduce_sum(b) {axes=[0], keepdims=0}  d = lt(s, ten)  out d  out b }  out y  out n",
           "const y f32[2] = {5.2, 6.3}  const n i64[] = {3}");
    /* no carried value, only a scan: onnx-tensorrt 543 */
    EXPECT("const m i64[] = {2}  const go bool[] = {1}  const x f32[1] = {7}"
           "  s, n = loop(m, go) { in i i64[]  in c bool[]  out c  out x }  out s  out n",
           "const s f32[2,1] = {7, 7}  const n i64[] = {2}");
    EXPECT("const m i64[] = {0}  const x f32[1] = {7}  y, s, n = loop(m, _, x) { in i i64[]  in c bool[]  in "
           "a f32[1]  out c  out a  out a }"
           "  out y  out s",
           "const y f32[1] = {7}  const s f32[0,1] = {}");
}

TEST(loop_infers)
{
    /* trips are known when nothing in the loop can stop it */
    INFERS("in x f32[n,3]  d = dims(x) {dim=[n]}  m = reshape(d)"
           "  y, s, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[n,3]  b = neg(a)  out c  out b  "
           "out b }  out y  out s",
           "f32[n,3] f32[n,n,3]");
    INFERS("in x f32[n]  in m i64[]"
           "  y, s, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[n]  out c  out a  out a }  out y  "
           "out s",
           "f32[n] f32[k_0,n]");
    /* a carried extent that grows */
    INFERS("in x f32[n]  in m i64[]  const one f32[1] = {1}"
           "  y, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[p]  b = concat(a, one) {axis=0}  out "
           "c  out b }  out y",
           "f32[y_d0]");
    REFUSES("in x f32[n]  in m i64[]  y, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[n]  b = "
            "cast(a) {to=f64}  out c  out b }  out y",
            "carried value 0 is f32 one way and f64");
    REFUSES("in x f32[n]  in m i64[]  y, k = loop(m, _, x) { in i i64[]  in c bool[]  out c  out x }  out y",
            "the body takes 2 values");
    REFUSES("in x f32[n]  in m i32[]  y, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[n]  out c  "
            "out a }  out y",
            "i64 is needed");
    REFUSES("in x f32[n]  in m i64[]  y, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[n]  out i  "
            "out a }  out y",
            "no bool");
}

TEST(loop_grows_a_carry)
{
    EXPECT("const x f32[1] = {5}  const m i64[] = {3}  const one f32[1] = {1}"
           "  y, k = loop(m, _, x) { in i i64[]  in c bool[]  in a f32[p]  b = concat(a, one) {axis=0}  out "
           "c  out b }  z = neg(y)  out z",
           "const z f32[4] = {-5, -1, -1, -1}");
}

TEST(sequences_hold_tensors)
{
    EXPECT("const a f32[2] = {1, 2}  const b f32[1] = {3}  const i i64[] = {-1}  s = seq_construct(a, b)  y "
           "= seq_at(s, i)  n = seq_length(s)"
           "  z = seq_concat(s) {axis=0}  out y  out n  out z",
           "const y f32[1] = {3}  const n i64[] = {2}  const z f32[3] = {1, 2, 3}");
    EXPECT("const a f32[2] = {1, 2}  const b f32[2] = {3, 4}  const i i64[] = {0}  s = seq_construct(a)  q = "
           "seq_insert(s, b, i)"
           "  e = seq_erase(q)  y = seq_concat(q) {axis=0, new_axis=1}  z = seq_concat(e) {axis=0}  out y  "
           "out z",
           "const y f32[2,2] = {3, 4, 1, 2}  const z f32[2] = {3, 4}");
    EXPECT("const x f32[5] = {1, 2, 3, 4, 5}  const k i64[] = {2}  const i i64[] = {2}  s = seq_split(x, k)  "
           "y = seq_at(s, i)"
           "  r = seq_split(x) {keepdims=0}  z = seq_at(r, i)  out y  out z",
           "const y f32[1] = {5}  const z f32[] = {3}");
    EXPECT("const b f32[2] = {3, 4}  s = seq_construct() {dtype=f32}  q = seq_insert(s, b)  n = "
           "seq_length(s)  y = seq_concat(q) {axis=0}"
           "  out n  out y",
           "const n i64[] = {0}  const y f32[2] = {3, 4}");
    FAILS("const a f32[1] = {1}  const i i64[] = {3}  s = seq_construct(a)  y = seq_at(s, i)  out y",
          "position 3");
    REFUSES("in a f32[1]  in b i32[1]  s = seq_construct(a, b)  n = seq_length(s)  out n", "cannot hold i32");
    REFUSES("in a f32[1]  n = seq_length(a)  out n", "no sequence");
    REFUSES("in a f32[1]  s = seq_construct(a)  y = add(s, a)  out y", "operand 0 is a sequence where a tensor is needed");
    REFUSES("in a f32[1]  o = opt_make(a)  y = neg(o)  out y", "operand 0 is an optional where a tensor is needed");
    REFUSES("in a i64[]  s = seq_construct(a)  y = seq_at(s, s)  out y", "operand 1 is a list where a tensor is needed");
    REFUSES("in a f32[1]  s = seq_construct(a)  q = seq_insert(s, s)  n = seq_length(q)  out n", "operand 1 is a list");
    REFUSES("in a f32[1]  in b f32[1,1]  s = seq_construct(a, b)  n = seq_length(s)  out n", "rank 1 and 2");
}

TEST(optionals)
{
    EXPECT("const a f32[2] = {1, 2}  o = opt_make(a)  y = opt_get(o)  h = opt_has(o)  out y  out h",
           "const y f32[2] = {1, 2}  const h bool[] = {1}");
    EXPECT("o = opt_make() {dtype=f32}  h = opt_has(o)  k = opt_has()  out h  out k",
           "const h bool[] = {0}  const k bool[] = {0}");
    FAILS("o = opt_make() {dtype=f32}  y = opt_get(o)  out y", "empty");
    CONTENT("in x f32[2]  h = opt_has(x)  out h", "1");
}

TEST(random_repeats_and_fits)
{
    /* the same seed, the same numbers; another seed, others */
    EXPECT("a = random_uniform() {dim=[64], seed=1}  b = random_uniform() {dim=[64], seed=1}  c = "
           "random_uniform() {dim=[64], seed=2}"
           "  e = eq(a, b)  f = reduce_min(e) {axes=[0], keepdims=0}  g = eq(a, c)  h = reduce_max(g) "
           "{axes=[0], keepdims=0}  out f  out h",
           "const f bool[] = {1}  const h bool[] = {0}");
    /* 4096 samples: mean within 5 sigma = 5 / sqrt(12 * 4096), and 5 / 64 for the normal */
    EXPECT_NEAR(
        "u = random_uniform() {dim=[4096], seed=7, lo=-1, hi=1}  m = reduce_mean(u) {axes=[0], keepdims=0}"
        "  q = random_normal() {dim=[4096], seed=7, dtype=f64}  k = reduce_mean(q) {axes=[0], keepdims=0}"
        "  v = reduce_sum_square(q) {axes=[0], keepdims=0}  const n f64[] = {4096}  s = div(v, n)  out m  "
        "out k  out s",
        "const m f32[] = {0}  const k f64[] = {0}  const s f64[] = {1}", 0.08);
    EXPECT("u = random_uniform() {dim=[4096], seed=3, lo=2, hi=3}  a = reduce_min(u) {axes=[0], keepdims=0}  "
           "b = reduce_max(u) {axes=[0], keepdims=0}"
           "  const lo f32[] = {2}  const hi f32[] = {3}  c = ge(a, lo)  d = lt(b, hi)  out c  out d",
           "const c bool[] = {1}  const d bool[] = {1}");
    EXPECT("const p f32[3] = {0, 1, 0}  y = bernoulli(p) {dtype=i32, seed=5}  z = bernoulli(p)  out y  out z",
           "const y i32[3] = {0, 1, 0}  const z f32[3] = {0, 1, 0}");
    EXPECT("const x f32[2,3] = {-inf, 0, -inf, 0, -inf, -inf}  y = multinomial(x) {dim=4}  out y",
           "const y i32[2,4] = {1, 1, 1, 1, 0, 0, 0, 0}");
    REFUSES("y = random_normal() {dim=[2], dtype=i32}  out y", "floats, not i32");
    REFUSES("in x f32[2,3]  y = multinomial(x) {dim=4, dtype=f32}  out y", "i32 or i64");
}
