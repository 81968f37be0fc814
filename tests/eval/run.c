/* Evaluation of whole graphs: modes, symbols, control flow, lists, limits. */
#include "eval/eval_test.h"

#include <math.h>
#include <string.h>

TEST(eval_adds)
{
    const hn_evaluated e = hn_test_eval(t, "in x f32[2,2]  const c f32[2] = {10, 20}  y = add(x, c)  out y",
                                        HN_EVAL_OWN, "f32[2,2] 1 2 3 4");
    CHECK_STR(e.text, "f32[2,2] 11 22 13 24\n");
}

TEST(eval_rounds_as_the_mode_says)
{
    static const char g[] = "in x f32[1]  const c f32 = {0.1}  y = mul(x, c)  z = mul(y, c)  out z";
    const hn_evaluated own = hn_test_eval(t, g, HN_EVAL_OWN, "f32[1] 0.1"),
                       exact = hn_test_eval(t, g, HN_EVAL_F64, "f32[1] 0.1");
    const float c = 0.1f, y = c * c, z = y * c;
    const double zd = (double)c * (double)c * (double)c;
    CHECK_EQ(own.out[0].type.dtype, HN_F32);
    CHECK_EQ(exact.out[0].type.dtype, HN_F64);
    CHECK(*(float *)own.out[0].data == z);
    CHECK(*(double *)exact.out[0].data == zd && (double)z != zd);
}

TEST(eval_f64_keeps_casts)
{
    static const char g[] =
        "in x f32[1]  const c f32 = {0.1}  y = mul(x, c)  h = cast(y) {to=f16}  f = cast(h) {to=f32}  out f";
    const hn_evaluated e = hn_test_eval(t, g, HN_EVAL_F64, "f32[1] 0.1");
    const double want = hn_round_f64(HN_F16, (double)0.1f * (double)0.1f, false);
    CHECK(*(double *)e.out[0].data == want);
}

TEST(eval_integers_wrap_in_both_modes)
{
    static const char g[] = "in x i8[2]  y = add(x, x)  z = div(y, x)  out y  out z";
    for (hn_eval_mode mode = HN_EVAL_F64; mode <= HN_EVAL_OWN; mode++) {
        const hn_evaluated e = hn_test_eval(t, g, mode, "i8[2] 100 -3");
        CHECK_STR(e.text, "i8[2] -56 -6\ni8[2] 0 2\n");
    }
}

TEST(eval_packed_types)
{
    const hn_evaluated e = hn_test_eval(t, "in x i4[3]  y = neg(x)  out y", HN_EVAL_OWN, "i4[3] -8 3 7");
    CHECK_STR(e.text, "i4[3] -8 -3 -7\n");
    CHECK_EQ(e.out[0].bytes, 2);
}

TEST(eval_symbolic_reshape)
{
    static const char g[] =
        "sym n  sym m  in x f32[n,m,2]  y = reshape(x) {dim=[n*m,2]}  z = transpose(y) {perm=[1,0]}  out z";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[1,2,2] 1 2 3 4").text, "f32[2,2] 1 3 2 4\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[0,2,2]").text, "f32[2,0]\n");
}

TEST(eval_checks_inputs)
{
    static const char g[] = "sym n  in x f32[n,2]  in y f32[n,n]  z = add(x, y)  out z";
    hn_test_eval_fails(t, g, NULL, HONE_E_SHAPE, "already 3", "f32[3,2] 1 2 3 4 5 6", "f32[2,2] 1 2 3 4",
                       NULL);
    hn_test_eval_fails(t, g, NULL, HONE_E_TYPE, "f32 is declared", "f16[2,2] 1 2 3 4", "f32[2,2] 1 2 3 4",
                       NULL);
    hn_test_eval_fails(t, g, NULL, HONE_E_SHAPE, "rank 1", "f32[2] 1 2", "f32[2,2] 1 2 3 4", NULL);
    hn_test_eval_fails(t, "in x f32[3]  y = relu(x)  out y", NULL, HONE_E_SHAPE, "3 was promised",
                       "f32[2] 1 2", NULL);
}

TEST(eval_data_dependent_extents)
{
    static const char g[] =
        "in x f32[2,3]  i, c = nonzero(x)  r = transpose(i) {perm=[1,0]}  y = gather_nd(x, r)\n"
        "d = dims(i) {dim=[7]}  out y  out c";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[2,3] 0 5 0 7 0 9").text, "f32[3] 5 7 9\ni64[] 3\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[2,3] 0 0 0 0 0 0").text, "f32[0]\ni64[] 0\n");
}

/* ---- control flow ---- */

TEST(eval_if)
{
    static const char g[] = "in c bool  in x f32[2]\n"
                            "y = if(c) { a = neg(x)  out a } { out x }  out y";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "bool[] 1", "f32[2] 1 -2").text, "f32[2] -1 2\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "bool[] 0", "f32[2] 1 -2").text, "f32[2] 1 -2\n");
}

TEST(eval_if_takes_one_branch)
{
    /* the other one would fail: an index out of range */
    static const char g[] =
        "in c bool  in x f32[2]  const i i64 = {9}\n"
        "y = if(c) { a = gather(x, i) {axis=0}  out a } { const z f32 = {5}  out z }  out y";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "bool[] 0", "f32[2] 1 -2").text, "f32[] 5\n");
    hn_test_eval_fails(t, g, NULL, HONE_E_MODEL, "then branch", "bool[] 1", "f32[2] 1 2", NULL);
}

static const char powers[] = "in n i64  in x f32[2]  const one f32[2] = {1, 1}\n"
                             "v, s, trips = loop(n, _, one) { in i i64  in k bool  in p f32[2]\n"
                             "  q = mul(p, x)  out k  out q  out p }\n"
                             "out v  out s  out trips";

TEST(eval_loop_carries_and_scans)
{
    CHECK_STR(hn_test_eval(t, powers, HN_EVAL_OWN, "i64[] 3", "f32[2] 2 3").text,
              "f32[2] 8 27\nf32[3,2] 1 1 2 3 4 9\ni64[] 3\n");
    CHECK_STR(hn_test_eval(t, powers, HN_EVAL_OWN, "i64[] 0", "f32[2] 2 3").text,
              "f32[2] 1 1\nf32[0,2]\ni64[] 0\n");
    CHECK_STR(hn_test_eval(t, powers, HN_EVAL_OWN, "i64[] -4", "f32[2] 2 3").text,
              "f32[2] 1 1\nf32[0,2]\ni64[] 0\n");
}

TEST(eval_loop_stops_on_condition)
{
    static const char g[] = "in x i64  const t bool = {1}  const one i64 = {1}  const lim i64 = {100}\n"
                            "v, trips = loop(_, t, one) { in i i64  in k bool  in p i64\n"
                            "  q = mul(p, x)  c = lt(q, lim)  out c  out q }\n"
                            "out v  out trips";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 3").text, "i64[] 243\ni64[] 5\n");
}

TEST(eval_nested_loops_capture)
{
    /* sum over i < n of sum over j < i of x: n(n-1)/2 x */
    static const char g[] = "in n i64  in x f32  const zero f32 = {0}\n"
                            "v, trips = loop(n, _, zero) { in i i64  in k bool  in s f32\n"
                            "  u, ti = loop(i, k, s) { in j i64  in k2 bool  in r f32\n"
                            "    a = add(r, x)  out k2  out a }\n"
                            "  out k  out u }\n"
                            "out v";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 5", "f32[] 2").text, "f32[] 20\n");
}

TEST(eval_if_of_two_shapes)
{
    static const char g[] =
        "in c bool  in x f32[2]  y = if(c) { a = concat(x, x) {axis=0}  out a } { out x }\n"
        "z = reduce_sum(y) {axes=[0]}  out y  out z";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "bool[] 1", "f32[2] 1 2").text, "f32[4] 1 2 1 2\nf32[1] 6\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "bool[] 0", "f32[2] 1 2").text, "f32[2] 1 2\nf32[1] 3\n");
}

TEST(eval_loop_carry_grows)
{
    static const char g[] = "sym k = p#0\nin n i64  in x f32[1]\n"
                            "v, trips = loop(n, _, x) { in i i64  in c bool  in p f32[k]\n"
                            "  q = concat(p, x) {axis=0}  out c  out q }\n"
                            "d = dims() {dim=[7]}  out v";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 3", "f32[1] 5").text, "f32[4] 5 5 5 5\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 0", "f32[1] 5").text, "f32[1] 5\n");
}

TEST(eval_loop_scans_must_be_alike)
{
    static const char g[] = "sym k = p#0\nin n i64  in x f32[1]\n"
                            "v, s, trips = loop(n, _, x) { in i i64  in c bool  in p f32[k]\n"
                            "  q = concat(p, x) {axis=0}  out c  out q  out q }\n"
                            "out s";
    hn_test_eval_fails(t, g, NULL, HONE_E_SHAPE, "item 1 differs", "i64[] 2", "f32[1] 5", NULL);
}

TEST(eval_loop_sees_changing_symbols)
{
    /* the reshape's extent is the carry's, which differs in every iteration */
    static const char g[] = "sym k = p#0\nin n i64  in x f32[1]\n"
                            "v, trips = loop(n, _, x) { in i i64  in c bool  in p f32[k]\n"
                            "  r = reshape(p) {dim=[1,k]}  q = concat(r, r) {axis=1}  f = reshape(q) "
                            "{dim=[2*k]}  out c  out f }\n"
                            "out v";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 2", "f32[1] 5").text, "f32[4] 5 5 5 5\n");
}

/* ---- lists ---- */

TEST(eval_sequences)
{
    static const char g[] =
        "in x f32[1]  in y f32[2]  const zero i64 = {0}  const last i64 = {-1}\n"
        "s = seq_construct(x, y)  s2 = seq_insert(s, y, zero)  s3 = seq_erase(s2, last)  n = seq_length(s3)\n"
        "a = seq_at(s3, last)  c = seq_concat(s2) {axis=0}  out s3  out n  out a  out c";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[1] 1", "f32[2] 2 3").text,
              "(2; f32[2] 2 3; f32[1] 1)\ni64[] 2\nf32[1] 1\nf32[5] 2 3 1 2 3\n");
}

TEST(eval_sequence_positions)
{
    static const char at[] = "in i i64  in x f32[1]  s = seq_construct(x, x)  a = seq_at(s, i)  out a";
    hn_test_eval_fails(t, at, NULL, HONE_E_MODEL, "position 2 is outside a sequence of 2", "i64[] 2",
                       "f32[1] 1", NULL);
    hn_test_eval_fails(t, at, NULL, HONE_E_MODEL, "position -3", "i64[] -3", "f32[1] 1", NULL);
    hn_test_eval_fails(t, "in i i64  s = seq_construct() {dtype=f32}  a = seq_at(s, i)  out a", NULL,
                       HONE_E_MODEL, "outside", "i64[] 0", NULL);
}

TEST(eval_splits)
{
    CHECK_STR(hn_test_eval(t,
                           "in x f32[2,3]  s = seq_split(x) {axis=1, keepdims=0}  c = seq_concat(s) {axis=0, "
                           "new_axis=1}  out s  out c",
                           HN_EVAL_OWN, "f32[2,3] 1 2 3 4 5 6")
                  .text,
              "(3; f32[2] 1 4; f32[2] 2 5; f32[2] 3 6)\nf32[3,2] 1 4 2 5 3 6\n");
    CHECK_STR(hn_test_eval(t, "in x f32[5]  const two i64 = {2}  s = seq_split(x, two)  out s", HN_EVAL_OWN,
                           "f32[5] 1 2 3 4 5")
                  .text,
              "(3; f32[2] 1 2; f32[2] 3 4; f32[1] 5)\n");
    hn_test_eval_fails(t, "in x f32[5]  const k i64[2] = {2, 2}  s = seq_split(x, k)  out s", NULL,
                       HONE_E_MODEL, "4 of 5", "f32[5] 1 2 3 4 5", NULL);
}

TEST(eval_loop_carries_sequence)
{
    static const char g[] = "in n i64  in x f32[1]  e = seq_construct() {dtype=f32}\n"
                            "v, trips = loop(n, _, e) { in i i64  in c bool  in s seq(f32[1])\n"
                            "  f = cast(i) {to=f32}  y = add(x, f)  r = seq_insert(s, y)  out c  out r }\n"
                            "out v";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 3", "f32[1] 5").text,
              "(3; f32[1] 5; f32[1] 6; f32[1] 7)\n");
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "i64[] 0", "f32[1] 5").text, "(0)\n");
}

TEST(eval_optionals)
{
    static const char g[] = "in x f32[1]  o = opt_make(x)  e = opt_make() {dtype=f32}  a = opt_has(o)  b = "
                            "opt_has(e)  y = opt_get(o)\n"
                            "i = identity(e)  out a  out b  out y  out i  out o";
    CHECK_STR(hn_test_eval(t, g, HN_EVAL_OWN, "f32[1] 5").text,
              "bool[] 1\nbool[] 0\nf32[1] 5\n(0)\n(1; f32[1] 5)\n");
    hn_test_eval_fails(t,
                       "in x f32[1]  e = opt_make() {dtype=f32}  y = opt_get(e)  z = add(x, x)  out y  out z",
                       NULL, HONE_E_MODEL, "empty", "f32[1] 5", NULL);
}

/* ---- limits ---- */

static bool stop_at_two(void *user, int done, int total)
{
    (void)total;
    *(int *)user = done;
    return done < 2;
}

TEST(eval_can_be_cancelled)
{
    int done = 0;
    const hn_eval_opts o = {.progress = stop_at_two, .user = &done};
    hn_test_eval_fails(t, "in x f32[2]  a = relu(x)  b = neg(a)  c = neg(b)  out c", &o, HONE_E_CANCELLED,
                       "cancelled", "f32[2] 1 2", NULL);
    CHECK_EQ(done, 2);
}

TEST(eval_obeys_the_memory_limit)
{
    const hn_eval_opts o = {.memory_limit_bytes = 100};
    hn_test_eval_fails(t, "in x f32[2,2]  c = concat(x, x, x, x) {axis=0}  out c", &o, HONE_E_LIMIT,
                       "\"c\" needs 128", "f32[2,2] 1 2 3 4", NULL);
}

/* A chain of 100 results of 8 KiB each never needs more than three of them at once. */
TEST(eval_frees_after_the_last_reader)
{
    hn_str s = {0};
    hn_str_add(&s, "in x f32[1024]  v0 = neg(x)\n");
    for (int i = 1; i < 100; i++)
        hn_str_addf(&s, "v%d = neg(v%d)\n", i, i - 1);
    hn_str_add(&s, "out v99");
    hn_graph *g = hn_test_graph(t, hn_str_get(&s));
    hn_tensor in = {0}, out;
    hn_diag dg = {0};
    CHECK_OK(hn_tensor_init(&in, &g->in[0]->type, &dg), &dg);
    const hn_eval_opts o = {.mode = HN_EVAL_OWN, .memory_limit_bytes = 3 * 8192};
    CHECK_OK(hn_eval_run(g, &o, &in, &out, &dg), &dg);
    hn_tensor_done(&in);
    hn_tensor_done(&out);
    hn_str_done(&s);
}

static void count_tap(void *user, const hn_value *v, const hn_view *x)
{
    CHECK(v->type.dtype == x->type.dtype);
    ++*(int *)user;
}

TEST(eval_tap_sees_every_result)
{
    int n = 0;
    const hn_eval_opts o = {.mode = HN_EVAL_OWN, .tap = count_tap, .user = &n};
    hn_graph *g = hn_test_graph(t, powers);
    hn_tensor in[2] = {hn_test_tensor(t, "i64[] 3"), hn_test_tensor(t, "f32[2] 1 2")}, out[3];
    hn_diag dg = {0};
    CHECK_OK(hn_eval_run(g, &o, in, out, &dg), &dg);
    CHECK_EQ(n, 3 + 3); /* three muls, three results of the loop */
    for (int i = 0; i < 3; i++)
        hn_tensor_done(&out[i]);
}

/* ---- folding ---- */

TEST(eval_node_folds_constants)
{
    hn_graph *g = hn_test_graph(
        t,
        "const a f32[2] = {0.1, 2}  const b f32 = {3}  in x f32  y = mul(a, b)  z = mul(x, b)  out y  out z");
    hn_tensor out;
    hn_diag dg = {0};
    CHECK_OK(hn_eval_node(g->first, &out, &dg), &dg);
    CHECK_EQ(out.type.dtype, HN_F32);
    CHECK(((float *)out.data)[0] == 0.1f * 3.0f && ((float *)out.data)[1] == 6);
    hn_tensor_done(&out);
    CHECK_ERR(hn_eval_node(g->last, &out, &dg), HONE_E_INVALID, &dg, "not constant");
}

/* Sums of 2^40 products, and of no element: whoever walked along them would never end. Indices are looked at all the same. */
TEST(eval_computes_nothing_where_nothing_is_asked)
{
    hn_graph *g = hn_test_graph(t, "const a f32[0,1099511627776] = {}  const b f32[1099511627776,0] = {}  const i i64[1] = {0}\n"
                                   "const e f32[0] = {}  const u f32[1] = {1}\n"
                                   "y = matmul(a, b)  z = scatter_elements(e, i, u) {axis=0}  out y  out z");
    hn_tensor out;
    hn_diag dg = {0};
    CHECK_OK(hn_eval_node(g->first, &out, &dg), &dg);
    CHECK(out.type.rank == 2 && out.type.dim[0] == 0 && out.type.dim[1] == 0);
    hn_tensor_done(&out);
    CHECK_ERR(hn_eval_node(g->last, &out, &dg), HONE_E_MODEL, &dg, "out of range for extent 0");
}
