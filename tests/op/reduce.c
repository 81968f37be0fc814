#include "op_test.h"

#define X23 "const x f32[2,3] = {1, 2, 3, 4, 5, 6}  "

TEST(reduce_values)
{
    EXPECT(X23 "a = reduce_sum(x) {axes=[1]}  b = reduce_sum(x) {axes=[0], keepdims=0}  c = reduce_sum(x) "
               "{axes=[0, 1], keepdims=0}"
               "  out a  out b  out c",
           "const a f32[2,1] = {6, 15}  const b f32[3] = {5, 7, 9}  const c f32[] = {21}");
    EXPECT(X23 "a = reduce_prod(x) {axes=[1]}  b = reduce_max(x) {axes=[0]}  c = reduce_min(x) {axes=[1]}  d "
               "= reduce_mean(x) {axes=[1]}"
               "  out a  out b  out c  out d",
           "const a f32[2,1] = {6, 120}  const b f32[1,3] = {4, 5, 6}  const c f32[2,1] = {1, 4}  const d "
           "f32[2,1] = {2, 5}");
    EXPECT_NEAR(X23 "a = reduce_l1(x) {axes=[1]}  b = reduce_l2(x) {axes=[1]}  c = reduce_sum_square(x) "
                    "{axes=[1]}  out a  out b  out c",
                "const a f32[2,1] = {6, 15}  const b f32[2,1] = {3.7416573867739413, 8.774964387392123}"
                "  const c f32[2,1] = {14, 77}",
                1e-6);
    EXPECT_NEAR(X23 "a = reduce_log_sum(x) {axes=[1]}  b = reduce_log_sum_exp(x) {axes=[1]}  out a  out b",
                "const a f32[2,1] = {1.791759469228055, 2.70805020110221}  const b f32[2,1] = "
                "{3.40760596444438, 6.40760596444438}",
                1e-6);
    /* no axes: every element alone */
    EXPECT("const x f32[2] = {-3, 4}  a = reduce_l1(x)  b = reduce_sum(x)  out a  out b",
           "const a f32[2] = {3, 4}  const b f32[2] = {-3, 4}");
    EXPECT("const x f32[2,2,2] = {1, 2, 3, 4, 5, 6, 7, 8}  a = reduce_sum(x) {axes=[0, 2]}  out a",
           "const a f32[1,2,1] = {14, 22}");
}

TEST(reduce_by_report)
{
    /* ReduceL1 and LogSum over [3] of [1,1,4,4] */
    EXPECT_NEAR("const x f32[1,1,4,4] = {1, 3, 2, 3, 2, 2, 2, 3, 4, 3, 2, 3, 1, 2, 3, 3}"
                "  a = reduce_l1(x) {axes=[3], keepdims=0}  b = reduce_log_sum(x) {axes=[3], keepdims=0}  "
                "out a  out b",
                "const a f32[1,1,4] = {9, 9, 12, 9}"
                "  const b f32[1,1,4] = {2.1972245773, 2.1972245773, 2.4849066498, 2.1972245773}",
                1e-6);
}

TEST(reduce_of_nothing)
{
    EXPECT(
        "const x f32[2,0] = {}  a = reduce_sum(x) {axes=[1]}  b = reduce_prod(x) {axes=[1]}  c = "
        "reduce_max(x) {axes=[1]}"
        "  d = reduce_min(x) {axes=[1]}  e = reduce_mean(x) {axes=[1]}  f = reduce_log_sum_exp(x) {axes=[1]}"
        "  out a  out b  out c  out d  out e  out f",
        "const a f32[2,1] = {0, 0}  const b f32[2,1] = {1, 1}  const c f32[2,1] = {-inf, -inf}"
        "  const d f32[2,1] = {inf, inf}  const e f32[2,1] = {nan, nan}  const f f32[2,1] = {-inf, -inf}");
    EXPECT("const x i8[0] = {}  a = reduce_max(x) {axes=[0]}  b = reduce_min(x) {axes=[0]}  out a  out b",
           "const a i8[1] = {-128}  const b i8[1] = {127}");
    EXPECT("const x bool[0] = {}  a = reduce_max(x) {axes=[0]}  b = reduce_min(x) {axes=[0]}  out a  out b",
           "const a bool[1] = {0}  const b bool[1] = {1}");
    EXPECT("const x f32[0,3] = {}  a = reduce_sum(x) {axes=[1]}  out a", "const a f32[0,1] = {}");
}

TEST(reduce_specials)
{
    EXPECT("const x f32[3] = {1, nan, 2}  a = reduce_max(x) {axes=[0]}  b = reduce_min(x) {axes=[0]}  c = "
           "reduce_log_sum_exp(x) {axes=[0]}"
           "  out a  out b  out c",
           "const a f32[1] = {nan}  const b f32[1] = {nan}  const c f32[1] = {nan}");
    EXPECT_NEAR("const x f32[2] = {1000, 1000}  a = reduce_log_sum_exp(x) {axes=[0]}  out a",
                "const a f32[1] = {1000.6931}", 1e-6);
    EXPECT("const x f32[2] = {inf, 1}  a = reduce_log_sum_exp(x) {axes=[0]}  out a",
           "const a f32[1] = {inf}");
    EXPECT("const x f32[2] = {-inf, -inf}  a = reduce_log_sum_exp(x) {axes=[0]}  out a",
           "const a f32[1] = {-inf}");
    EXPECT_NEAR("const x f32[2] = {-inf, 1}  a = reduce_log_sum_exp(x) {axes=[0]}  out a",
                "const a f32[1] = {1}", 1e-7);
}

TEST(reduce_integers)
{
    EXPECT("const x u8[3] = {200, 100, 7}  a = reduce_sum(x) {axes=[0]}  b = reduce_max(x) {axes=[0]}  c = "
           "reduce_mean(x) {axes=[0]}"
           "  out a  out b  out c",
           "const a u8[1] = {51}  const b u8[1] = {200}  const c u8[1] = {102}");
    EXPECT("const x i64[3] = {-3, 4, 0}  a = reduce_l1(x) {axes=[0]}  b = reduce_l2(x) {axes=[0]}  c = "
           "reduce_sum_square(x) {axes=[0]}"
           "  out a  out b  out c",
           "const a i64[1] = {7}  const b i64[1] = {5}  const c i64[1] = {25}");
    EXPECT(
        "const x bool[2] = {1, 0}  a = reduce_max(x) {axes=[0]}  b = reduce_min(x) {axes=[0]}  out a  out b",
        "const a bool[1] = {1}  const b bool[1] = {0}");
}

TEST(reduce_refuses)
{
    REFUSES("in x f32[2,3]  y = reduce_sum(x) {axes=[2]}  out y", "axes must rise within 0 to 1");
    REFUSES("in x f32[2,3]  y = reduce_sum(x) {axes=[1, 0]}  out y", "axes must rise");
    REFUSES("in x f32[2,3]  y = reduce_sum(x) {axes=[1, 1]}  out y", "axes must rise");
    REFUSES("in x bool[2]  y = reduce_sum(x) {axes=[0]}  out y", "bool");
    INFERS(
        "in x f32[n,m]  y = reduce_sum(x) {axes=[0]}  z = reduce_max(x) {axes=[1], keepdims=0}  out y  out z",
        "f32[1,m] f32[n]");
    CONTENT("in x f32[n,m]  d = dims(x) {dim=[n, m, 2]}  y = reduce_prod(d) {axes=[0], keepdims=0}  out y",
            "2*m*n");
    CONTENT("in x f32[n,m]  d = dims(x) {dim=[n, 3]}  y = reduce_sum(d) {axes=[0]}  out y", "n+3");
}

TEST(arg_extremes)
{
    EXPECT("const x f32[2,3] = {1, 3, 3, 2, 2, 0}  a = arg_max(x) {axis=1}  b = arg_max(x) {axis=1, last=1, "
           "keepdims=0}"
           "  c = arg_min(x) {axis=0, keepdims=0}  out a  out b  out c",
           "const a i64[2,1] = {1, 0}  const b i64[2] = {2, 1}  const c i64[3] = {0, 1, 1}");
    EXPECT("const x f32[3] = {1, nan, 5}  a = arg_max(x) {axis=0, keepdims=0}  b = arg_min(x) {axis=-1, "
           "keepdims=0}  out a  out b",
           "const a i64[] = {1}  const b i64[] = {0}");
    EXPECT("const x u64[2] = {18446744073709551615, 1}  a = arg_max(x) {axis=0, keepdims=0}  out a",
           "const a i64[] = {0}");
    REFUSES("in x f32[2,0]  y = arg_max(x) {axis=1}  out y", "axis 1 is empty");
    REFUSES("in x f32[2]  y = arg_max(x) {axis=1}  out y", "out of range");
    INFERS("in x f32[n,m]  y = arg_max(x) {axis=1, keepdims=0}  out y", "i64[n]");
}

TEST(cumulate_runs)
{
    EXPECT("const x f32[2,3] = {1, 2, 3, 4, 5, 6}  a = cumsum(x) {axis=1}  b = cumsum(x) {axis=0, reverse=1}"
           "  c = cumsum(x) {axis=1, exclusive=1}  d = cumsum(x) {axis=1, exclusive=1, reverse=1}  out a  "
           "out b  out c  out d",
           "const a f32[2,3] = {1, 3, 6, 4, 9, 15}  const b f32[2,3] = {5, 7, 9, 4, 5, 6}"
           "  const c f32[2,3] = {0, 1, 3, 0, 4, 9}  const d f32[2,3] = {5, 3, 0, 11, 6, 0}");
    EXPECT("const x i32[4] = {1, 2, 3, 4}  a = cumprod(x) {axis=0}  b = cumprod(x) {axis=0, exclusive=1}  "
           "out a  out b",
           "const a i32[4] = {1, 2, 6, 24}  const b i32[4] = {1, 1, 2, 6}");
    EXPECT("const x f32[2,0] = {}  a = cumsum(x) {axis=1}  out a", "const a f32[2,0] = {}");
    REFUSES("in x f32[2]  y = cumsum(x) {axis=1}  out y", "out of range");
}
