#include "op_test.h"

TEST(unary_values)
{
    EXPECT("const x f32[5] = {-1.5, -0.5, 0.5, 1.5, 2.5}  y = round(x)  out y",
           "const y f32[5] = {-2, -0, 0, 2, 2}");
    EXPECT("const x f32[3] = {-1.5, 0, 1.5}  y = trunc(x)  out y", "const y f32[3] = {-1, 0, 1}");
    EXPECT("const x f32[2] = {-1.5, 1.5}  a = floor(x)  b = ceil(x)  out a  out b",
           "const a f32[2] = {-2, 1}  const b f32[2] = {-1, 2}");
    EXPECT("const x f32[4] = {-3, 0, 2, nan}  y = sign(x)  out y", "const y f32[4] = {-1, 0, 1, nan}");
    EXPECT("const x f32[4] = {-3, 0, 2, nan}  y = relu(x)  out y", "const y f32[4] = {0, 0, 2, nan}");
    EXPECT("const x i32[3] = {-3, 0, 2}  y = relu(x)  out y", "const y i32[3] = {0, 0, 2}");
    EXPECT_NEAR("const x f64[3] = {0, 1, -inf}  y = exp(x)  out y",
                "const y f64[3] = {1, 2.718281828459045, 0}", 1e-15);
    EXPECT_NEAR("const x f32[3] = {0, -1000, 1000}  y = sigmoid(x)  out y", "const y f32[3] = {0.5, 0, 1}",
                1e-7);
    EXPECT_NEAR("const x f64[2] = {0.5, -2}  y = erf(x)  out y",
                "const y f64[2] = {0.5204998778130465, -0.9953222650189527}", 1e-15);
    EXPECT("const x f32[3] = {4, -1, inf}  y = sqrt(x)  out y", "const y f32[3] = {2, nan, inf}");
    EXPECT("const x f32[3] = {4, 0, inf}  y = reciprocal(x)  out y", "const y f32[3] = {0.25, inf, 0}");
    EXPECT("const x f32[3] = {0, -1, 1}  y = log(x)  out y", "const y f32[3] = {-inf, nan, 0}");
    EXPECT("const x f32[0,3] = {}  y = tanh(x)  out y", "const y f32[0,3] = {}");
}

TEST(unary_integers_wrap)
{
    EXPECT("const x i8[3] = {-128, 5, 127}  a = neg(x)  b = abs(x)  out a  out b",
           "const a i8[3] = {-128, -5, -127}  const b i8[3] = {-128, 5, 127}");
    EXPECT("const x i64[1] = {-9223372036854775808}  a = neg(x)  out a",
           "const a i64[1] = {-9223372036854775808}");
    EXPECT("const x u8[2] = {200, 0}  a = sign(x)  b = abs(x)  c = neg(x)  out a  out b  out c",
           "const a u8[2] = {1, 0}  const b u8[2] = {200, 0}  const c u8[2] = {56, 0}");
    EXPECT("const x u8[2] = {1, 255}  a = bit_not(x)  out a", "const a u8[2] = {254, 0}");
    EXPECT("const x bool[2] = {1, 0}  a = not(x)  out a", "const a bool[2] = {0, 1}");
}

TEST(unary_halves_round)
{
    EXPECT("const x f16[1] = {0.1}  y = neg(x)  out y", "const y f16[1] = {-0.1}");
    EXPECT("const x bf16[1] = {1.5}  y = exp(x)  out y", "const y bf16[1] = {4.46875}");
}

TEST(unary_refuses)
{
    REFUSES("in x i32[2]  y = exp(x)  out y", "operand 0 is i32 where a float is needed");
    REFUSES("in x bool[2]  y = neg(x)  out y", "bool where a number is needed");
    REFUSES("in x f32[2]  y = not(x)  out y", "bool is needed");
    REFUSES("in x f32[2]  y = bit_not(x)  out y", "integer is needed");
    INFERS("in x f32[n,3]  y = tanh(x)  out y", "f32[n,3]");
}

TEST(predicates)
{
    EXPECT("const x f32[4] = {1, nan, inf, -inf}  a = is_nan(x)  b = is_inf(x)  out a  out b",
           "const a bool[4] = {0, 1, 0, 0}  const b bool[4] = {0, 0, 1, 1}");
    EXPECT(
        "const x f32[2] = {inf, -inf}  a = is_inf(x) {positive=0}  b = is_inf(x) {negative=0}  out a  out b",
        "const a bool[2] = {0, 1}  const b bool[2] = {1, 0}");
}

TEST(binary_broadcasts)
{
    EXPECT("const a f32[2,1] = {1, 2}  const b f32[3] = {10, 20, 30}  y = add(a, b)  out y",
           "const y f32[2,3] = {11, 21, 31, 12, 22, 32}");
    EXPECT("const a f32[] = {2}  const b f32[1,2] = {3, 4}  y = mul(a, b)  out y",
           "const y f32[1,2] = {6, 8}");
    EXPECT("const a f32[0,1] = {}  const b f32[3] = {1, 2, 3}  y = sub(a, b)  out y",
           "const y f32[0,3] = {}");
    REFUSES("in a f32[2]  in b f32[3]  y = add(a, b)  out y", "f32[3]");
    REFUSES("in a f32[2]  in b f64[2]  y = add(a, b)  out y", "differ in dtype: f32 and f64");
    INFERS("in a f32[n,1]  in b f32[m]  y = add(a, b)  out y", "f32[n,m]");
}

TEST(binary_integers)
{
    EXPECT("const a u8[1] = {22}  const b u8[1] = {21}  y = mul(a, b)  out y", "const y u8[1] = {206}");
    EXPECT("const a i32[4] = {7, -7, 7, 5}  const b i32[4] = {2, 2, -2, 0}  y = div(a, b)  out y",
           "const y i32[4] = {3, -3, -3, 0}");
    EXPECT("const a i64[1] = {-9223372036854775808}  const b i64[1] = {-1}  y = div(a, b)  out y",
           "const y i64[1] = {-9223372036854775808}");
    EXPECT("const a i32[4] = {7, -7, 7, -7}  const b i32[4] = {3, 3, -3, 0}  y = mod(a, b)  z = mod(a, b) "
           "{fmod=1}"
           "  out y  out z",
           "const y i32[4] = {1, 2, -2, 0}  const z i32[4] = {1, -1, 1, 0}");
    EXPECT("const a u64[2] = {18446744073709551615, 4}  const b u64[2] = {2, 8}  y = div(a, b)  z = max(a, "
           "b)  w = gt(a, b)"
           "  out y  out z  out w",
           "const y u64[2] = {9223372036854775807, 0}  const z u64[2] = {18446744073709551615, 8}  const w "
           "bool[2] = {1, 0}");
}

TEST(binary_floats)
{
    EXPECT("const a f32[3] = {1, -1, 0}  const b f32[3] = {0, 0, 0}  y = div(a, b)  out y",
           "const y f32[3] = {inf, -inf, nan}");
    EXPECT("const a f32[4] = {-4.5, 4.5, 1, 3}  const b f32[4] = {3, -3, 0, inf}  y = mod(a, b)  z = mod(a, "
           "b) {fmod=1}"
           "  out y  out z",
           "const y f32[4] = {1.5, -1.5, nan, 3}  const z f32[4] = {-1.5, 1.5, nan, 3}");
    /* NaN propagates from either side */
    EXPECT("const a f32[3] = {nan, 1, 2}  const b f32[3] = {1, nan, 1}  y = min(a, b)  z = max(a, b)  out y  "
           "out z",
           "const y f32[3] = {nan, nan, 1}  const z f32[3] = {nan, nan, 2}");
    EXPECT("const x f32[3] = {-2, 0, 3}  const s f32[] = {0.5}  y = prelu(x, s)  out y",
           "const y f32[3] = {-1, 0, 3}");
    EXPECT_NEAR("const a f64[2] = {1, -1}  const b f64[2] = {1, -1}  y = atan2(a, b)  out y",
                "const y f64[2] = {0.7853981633974483, -2.356194490192345}", 1e-15);
}

TEST(pow_dtypes)
{
    EXPECT("const a f32[3] = {2, -2, 0}  const b i32[3] = {3, 3, 0}  y = pow(a, b)  out y",
           "const y f32[3] = {8, -8, 1}");
    EXPECT("const a i32[4] = {3, 2, -1, 1}  const b i64[4] = {4, -1, -3, -5}  y = pow(a, b)  out y",
           "const y i32[4] = {81, 0, -1, 1}");
    EXPECT("const a i32[2] = {4, 9}  const b f32[2] = {0.5, 0.5}  y = pow(a, b)  out y",
           "const y i32[2] = {2, 3}");
    EXPECT("const a f32[2] = {-8, 4}  const b f32[2] = {0.5, 0.5}  y = pow(a, b)  out y",
           "const y f32[2] = {nan, 2}");
}

TEST(bits_and_shifts)
{
    EXPECT("const a u8[3] = {1, 128, 255}  const b u8[3] = {3, 1, 8}  y = shift_left(a, b)  z = "
           "shift_right(a, b)"
           "  out y  out z",
           "const y u8[3] = {8, 0, 0}  const z u8[3] = {0, 64, 0}");
    EXPECT(
        "const a u8[1] = {12}  const b u8[1] = {10}  y = bit_and(a, b)  z = bit_or(a, b)  w = bit_xor(a, b)"
        "  out y  out z  out w",
        "const y u8[1] = {8}  const z u8[1] = {14}  const w u8[1] = {6}");
    EXPECT("const a bool[4] = {0, 0, 1, 1}  const b bool[4] = {0, 1, 0, 1}  y = and(a, b)  z = or(a, b)  w = "
           "xor(a, b)"
           "  out y  out z  out w",
           "const y bool[4] = {0, 0, 0, 1}  const z bool[4] = {0, 1, 1, 1}  const w bool[4] = {0, 1, 1, 0}");
    REFUSES("in a i8[1]  in b i8[1]  y = shift_left(a, b)  out y", "shifts take unsigned integers");
    REFUSES("in a f32[1]  in b f32[1]  y = and(a, b)  out y", "bool is needed");
}

TEST(compare_values)
{
    EXPECT(
        "const a f32[3] = {1, nan, 2}  const b f32[3] = {1, nan, 1}  y = eq(a, b)  z = ge(a, b)  w = lt(a, b)"
        "  out y  out z  out w",
        "const y bool[3] = {1, 0, 0}  const z bool[3] = {1, 0, 1}  const w bool[3] = {0, 0, 0}");
    EXPECT("const a bool[2] = {1, 0}  const b bool[2] = {1, 1}  y = eq(a, b)  out y",
           "const y bool[2] = {1, 0}");
    REFUSES("in a bool[1]  in b bool[1]  y = lt(a, b)  out y", "bool where a number is needed");
}

TEST(select_and_clip)
{
    EXPECT("const c bool[2,1] = {1, 0}  const a f32[2] = {1, 2}  const b f32[] = {9}  y = select(c, a, b)  "
           "out y",
           "const y f32[2,2] = {1, 2, 9, 9}");
    EXPECT("const x f32[4] = {-2, nan, 5, 1}  const lo f32[] = {-1}  const hi f32[] = {2}  y = clip(x, lo, "
           "hi)  out y",
           "const y f32[4] = {-1, nan, 2, 1}");
    EXPECT("const x i32[2] = {-5, 5}  const hi i32[] = {2}  y = clip(x, _, hi)  out y",
           "const y i32[2] = {-5, 2}");
    /* lo > hi gives hi */
    EXPECT("const x f32[1] = {0}  const lo f32[] = {3}  const hi f32[] = {2}  y = clip(x, lo, hi)  out y",
           "const y f32[1] = {2}");
    REFUSES("in x f32[2]  in lo f32[2]  y = clip(x, lo)  out y", "must hold one element");
    REFUSES("in c i32[2]  in a f32[2]  y = select(c, a, a)  out y", "bool is needed");
}

TEST(cast_to_integers)
{
    EXPECT("const x f32[6] = {300, nan, inf, -inf, 50, -50}  y = cast(x) {to=i8}  z = cast(x) {to=i32}  out "
           "y  out z",
           "const y i8[6] = {44, 0, 0, 0, 50, -50}  const z i32[6] = {300, 0, 2147483647, -2147483648, 50, "
           "-50}");
    EXPECT("const x f32[3] = {-1.9, 2.9, 3e9}  y = cast(x) {to=i16}  z = cast(x) {to=u32}  out y  out z",
           "const y i16[3] = {-1, 2, 0}  const z u32[3] = {0, 2, 3000000000}");
    EXPECT("const x f32[2] = {1e30, -1e30}  y = cast(x) {to=i64}  z = cast(x) {to=u64}  out y  out z",
           "const y i64[2] = {9223372036854775807, -9223372036854775808}  const z u64[2] = "
           "{18446744073709551615, 0}");
    /* 0.5 truncates on the way through an integer, but is true as it stands */
    EXPECT("const x f32[2] = {0.5, nan}  i = cast(x) {to=i32}  y = cast(i) {to=bool}  z = cast(x) {to=bool}  "
           "out y  out z",
           "const y bool[2] = {0, 0}  const z bool[2] = {1, 1}");
    EXPECT("const x i32[2] = {-1, 0}  b = cast(x) {to=bool}  y = cast(b) {to=i32}  out y",
           "const y i32[2] = {1, 0}");
    EXPECT("const x i32[3] = {300, -129, 7}  y = cast(x) {to=i8}  z = cast(x) {to=u4}  out y  out z",
           "const y i8[3] = {44, 127, 7}  const z u4[3] = {12, 15, 7}");
}

TEST(cast_to_floats)
{
    EXPECT("const x u64[1] = {18446744073709551615}  y = cast(x) {to=f32}  out y",
           "const y f32[1] = {1.8446744073709552e19}");
    EXPECT("const x f32[2] = {1e6, 0.1}  y = cast(x) {to=f16}  out y",
           "const y f16[2] = {inf, 0.0999755859375}");
    EXPECT("const x f32[2] = {1e6, -1e6}  y = cast(x) {to=f8e4m3fn}  z = cast(x) {to=f8e4m3fn, saturate=0}  "
           "w = is_nan(z)"
           "  out y  out w",
           "const y f8e4m3fn[2] = {448, -448}  const w bool[2] = {1, 1}");
    REFUSES("in x f32[2]  y = cast(x)  out y", "to");
}

TEST(bitcast_moves_bits)
{
    EXPECT("const x f32[2] = {1, -0}  y = bitcast(x) {to=u32}  out y",
           "const y u32[2] = {1065353216, 2147483648}");
    EXPECT("const x i16[1] = {15360}  y = bitcast(x) {to=f16}  out y", "const y f16[1] = {1}");
    REFUSES("in x f32[2]  y = bitcast(x) {to=i16}  out y", "f32 has 32 bits but i16 has 16");
}

TEST(contents_flow)
{
    CONTENT("in x f32[n,3]  d = dims(x) {dim=[n, 3]}  const k i64[2] = {2, 1}  y = mul(d, k)  out y",
            "2*n 3");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  const k i64[] = {2}  y = div(d, k)  out y", "floordiv(n,2)");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  const k i64[] = {-1}  a = add(d, k)  y = neg(a)  out y",
            "-n+1");
    CONTENT("const a i64[2] = {7, -7}  const b i64[] = {2}  y = div(a, b)  out y", "3 -3");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  const k i64[1] = {4}  y = min(d, k)  out y", "min(4,n)");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  const k i64[1] = {0}  c = eq(d, k)  const s i64[1] = {3}"
            "  y = select(c, s, d)  out y",
            "select(eq(n,0),3,n)");
    CONTENT("const c bool[2] = {1, 0}  y = not(c)  out y", "0 1");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  c = cast(d) {to=f32}  out c", "?");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  c = cast(d) {to=i32}  y = cast(c) {to=i64}  out y", "n");
}
