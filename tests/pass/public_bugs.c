/* What optimisers elsewhere got wrong, with the right values: graphs of arithmetic, shapes and views. */
#include "pass/bug_case.h"

TEST(products_and_their_neighbours)
{
    static const hn_bug rows[] = {
        { "ORT 32228: transpose that moves nothing before a square product became trans_a", 13,
          "in x f32 2,2; const W f32 2,2 1,2,3,4; const c f32 2 10,20;"
          "node Transpose x xt perm=is:0,1; node MatMul xt,W m; node Add m,c y; out y",
          "1,2,3,5", "[2,2] 17,30,28,46" },
        { "ORT 32228: the same where the operands are not square", 13,
          "in x f32 1,2; const W f32 2,3 1,2,3,4,5,6; const c f32 3 10,20,30;"
          "node Transpose x xt perm=is:0,1; node MatMul xt,W m; node Add m,c y; out y",
          "1,2", "[1,3] 19,32,45" },
        { "ORT 12071: transposed addend toggled the operands of a Gemm", 13,
          "in a f32 2,2; in b f32 2,2; in c f32 2,2; node Transpose c ct perm=is:1,0; node Gemm a,b,ct y; out y",
          "1,2,3,4|1,0,0,2|10,20,30,40", "[2,2] 11,34,23,48" },
        { "ORT 31980: scale wider than the normalised axis made a layer norm", 13,
          "in x f32 1,1; const two f32 - 2; const eps f32 - 0.00001; const s f32 2 3,5;"
          "node ReduceMean x m axes=is:-1 keepdims=i:1; node Sub x,m d; node Pow d,two q; node ReduceMean q v axes=is:-1 keepdims=i:1;"
          "node Add v,eps ve; node Sqrt ve r; node Div d,r n; node Mul n,s y; out y",
          "7", "[1,2] 0,0" },
        { "ORT 3764: product, product with a vector, sum is no Gemm", 13,
          "in a f32 3,3; in b f32 3,1; in s f32 -; in v f32 1,4; node MatMul a,b m; node Mul s,v w; node Add m,w y; out y",
          "1,0,0,0,1,0,0,0,1|1,2,3|2|1,2,3,4", "[3,4] 3,5,7,9,4,6,8,10,5,7,9,11" },
        { "ORT 10950: product plus a scalar without rank", 13,
          "in a f32 1,2; const b f32 2,2 1,2,3,4; const s f32 - 0.5; node MatMul a,b m; node Add s,m y; out y",
          "1,1", "[1,2] 4.5,6.5" },
        { "ORT 32416: cast to the same type before a product beside a quotient", 13,
          "in x f32 3; const k f32 - 2; node Cast k k1 to=i:1; node Mul k1,k1 k2; node Cast x xc to=i:1; node Mul xc,k2 m;"
          "node Div m,k2 y; out y",
          "1,-2,0.5", "1,-2,0.5" },
        { "own: x*1 that grows the shape is no identity", 13,
          "in x f32 2; const k f32 2,1 1,1; node Mul x,k y; out y", "1,2", "[2,2] 1,2,1,2" },
        { "own: K of 0 gives zeros", 13,
          "in a f32 2,n; in b f32 n,3; node MatMul a,b y; out y", "[2,0] | [0,3]", "[2,3] 0,0,0,0,0,0" },
        { "own: quotient by a channel's constant before a product", 13,
          "in x f32 1,2; const d f32 2 2,3; const w f32 2,1 4,9; node Div x,d q; node MatMul q,w y; out y", "1,1", "[1,1] 5" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(kept_results)
{
    static const hn_bug rows[] = {
        { "ORT 13425: constant that is an output itself was dropped", 13,
          "in x f32 2; const k f32 2 3,4; node Add x,k y; out y; out k f32", "1,2", "4,6|3,4" },
        { "ORT 4110: middle of a fused pattern is an output too", 13,
          "in x f32 1,2; const w f32 2,2 1,2,3,4; const b f32 2 1,1; node MatMul x,w m; node Add m,b a; node Relu a y; out y; out m; out a",
          "1,-1", "0,0|-2,-2|-1,-1" },
        { "ORT 4110: scaled convolution whose own result is read", 13,
          "in x f32 1,1,2; const w f32 1,1,1 2; const k f32 - 3; node Conv x,w c; node Mul c,k y; out y; out c", "1,2", "6,12|2,4" },
        { "ORT 28228: quantised weights that are an output", 13,
          "in x f32 1,2; const q i8 2,2 1,2,3,4; const s f32 2 0.5,2; const z i8 2 0,1; node DequantizeLinear q,s,z w axis=i:1;"
          "node MatMul x,w y; out y; out q i8",
          "1,1", "2,8|1,2,3,4" },
        { "own: an input is an output", 13, "in x f32 2; node Relu x y; out y; out x", "1,-2", "1,0|1,-2" },
        { "own: one value is two outputs", 13, "in x f32 2; node Relu x y; node Identity y z; out y; out z", "1,-2", "1,0|1,0" },
        { "own: nodes of one name", 13, "in x f32 1; node Neg x a; node Neg a y; out y", "3", "3" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(casts_and_clips)
{
    static const hn_bug rows[] = {
        { "ORT 11994: float to int32 to bool lost the truncation", 13,
          "in x f32 4; node Cast x i to=i:6; node Cast i y to=i:9; out y", "0.5,-0.25,1.5,0", "0,0,1,0" },
        { "TVM 13048: bool to int kept the -1", 13,
          "in x i32 3; node Cast x b to=i:9; node Cast b y to=i:6; out y", "-1,0,7", "1,0,1" },
        { "TVM 19542, TensorRT 4775: what no int8 and no int32 holds", 13,
          "in x f32 6; node Cast x a to=i:3; node Cast x b to=i:6; node Cast a y to=i:1; out y; out b", "300,nan,inf,-inf,50,-50",
          "44,0,0,0,50,-50|300,0,2147483647,-2147483648,50,-50" },
        { "TensorRT 4775: the same of constants, which are folded", 13,
          "in x f32 6; const k f32 6 300,nan,inf,-inf,50,-50; node Cast k a to=i:3; node Cast a f to=i:1; node Add x,f y; out y", "0,0,0,0,0,0",
          "44,0,0,0,50,-50" },
        { "onnx 6220: infinities to float8, saturated", 19,
          "in x f32 3; node Cast x a to=i:17 saturate=i:1; node Cast x b to=i:19 saturate=i:1; node Cast a y to=i:1; node Cast b z to=i:1; out y; out z",
          "inf,-inf,1e9", "448,-448,448|57344,-57344,57344" },
        { "onnx 6220: and not", 19,
          "in x f32 3; node Cast x a to=i:17 saturate=i:0; node Cast x b to=i:19 saturate=i:0; node Cast a y to=i:1; node Cast b z to=i:1; out y; out z",
          "inf,-inf,1e9", "nan,nan,nan|inf,-inf,inf" },
        { "own: f32 between integers loses digits", 13,
          "in x i32 2; node Cast x f to=i:1; node Cast f y to=i:6; out y", "16777217,5", "16777216,5" },
        { "ORT 9753: relu then clip from a positive bound", 13,
          "in x f32 5; const lo f32 - 1; const hi f32 - 3; node Relu x r; node Clip r,lo,hi y; out y", "-1,0,0.5,2,9", "1,1,1,2,3" },
        { "ORT 10936: relu then clip of integers", 14,
          "in x i32 4; const lo i32 - 1; const hi i32 - 3; node Relu x r; node Clip r,lo,hi y; out y", "-1,0,2,9", "1,1,2,3" },
        { "own: clip to negative numbers then relu", 13,
          "in x f32 3; const hi f32 - -1; node Clip x,,hi c; node Relu c y; out y", "-5,0,5", "0,0,0" },
        { "TensorRT 4758: NaN through min, max, clip and relu, either way round, long enough for vectors and tails", 13,
          "in x f32 19; const k f32 - 0.5; node Min x,k a; node Min k,x b; node Max x,k c; node Max k,x d; node Clip x,k e; node Relu x f;"
          "node Add a,b s1; node Add c,d s2; node Add e,f s3; node Add s1,s2 s4; node Add s4,s3 y; out y",
          "nan,1,nan,1,1,1,1,1,1,1,1,1,1,1,1,1,nan,1,nan", "nan,5,nan,5,5,5,5,5,5,5,5,5,5,5,5,5,nan,5,nan" },
        { "TensorRT 4512: or of integers cast to bool", 13,
          "in x i32 3; in z i32 3; node Cast x a to=i:9; node Cast z b to=i:9; node Or a,b o; node Cast o y to=i:6; out y", "2,0,0|0,0,-4", "1,0,1" },
        { "onnx 3637: uint8 products wrap, integer quotients truncate", 14,
          "in x u8 1; in z u8 1; in a i32 2; in b i32 2; node Mul x,z y; node Div a,b q; out y; out q", "22|21|-7,7|2,-2", "206|-3,-3" },
        { "own: powers that become products keep sign and infinity", 13,
          "in x f32 4; const two f32 - 2; const three f32 - 3; const half f32 - 0.5; node Pow x,two a; node Pow x,three b; node Pow x,half c; out a; out b; out c",
          "-2,3,-inf,4", "4,9,inf,16|-8,27,-inf,64|nan,1.7320508,inf,2" },
        { "own: quotient by a tiny constant, whose reciprocal overflows", 13,
          "in x f32 2; const k f32 - 1e-39; node Div x,k y; out y", "1e-39,0", "1,0" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(shapes_made_of_shapes)
{
    static const hn_bug rows[] = {
        { "ORT 29788: extents merged wrongly where a concat feeds Reshape", 13,
          "in x f32 n,4; const zero i64 1 0; const one i64 1 1; const m i64 1 -1; node Shape x s; node Slice s,zero,one b; node Concat b,m,one c axis=i:0;"
          "node Reshape x,c y; out y",
          "[2,4] 1,2,3,4,5,6,7,8", "[2,4,1] 1,2,3,4,5,6,7,8" },
        { "ORT 11870: Expand against an extent known only while running", 13,
          "in x f32 n,1; in s i64 2; node Expand x,s y; node Add y,x z; out z", "[2,1] 1,2|1,3", "[2,3] 2,2,2,4,4,4" },
        { "pytorch 74142: flatten at both ends", 13,
          "in x f32 2,3; node Flatten x a axis=i:0; node Flatten x b axis=i:2; out a; out b", "1,2,3,4,5,6", "[1,6] 1,2,3,4,5,6|[6,1] 1,2,3,4,5,6" },
        { "pytorch 74142: flatten of a scalar", 13, "in x f32 -; node Flatten x y axis=i:0; out y", "7", "[1,1] 7" },
        { "TVM 19966: squeeze takes the named axis alone", 11, "in x f32 1,3,1,2; node Squeeze x y axes=is:2; out y", "1,2,3,4,5,6", "[1,3,2] 1,2,3,4,5,6" },
        { "own: extents whose product passes 2^31 and that hold nothing", 14,
          "in x f32 n,65536; const s i64 3 65536,65536,0; node Reshape x,s r allowzero=i:1; node Shape r y; out y", "[0,65536]", "65536,65536,0" },
        { "own: nothing joined with something", 13, "in x f32 n,2; in z f32 1,2; node Concat x,z y axis=i:0; out y", "[0,2] | 1,2", "[1,2] 1,2" },
        { "own: softmax of nothing", 13, "in x f32 2,n; node Softmax x y; out y", "[2,0]", "[2,0]" },
        { "own: maximum of nothing is the least number", 13, "in x f32 2,n; node ReduceMax x y axes=is:1 keepdims=i:0; out y", "[2,0]", "-inf,-inf" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(slices)
{
    static const hn_bug rows[] = {
        { "ORT 11107: from -1 to INT_MAX backwards is empty", 13,
          "in x f32 3; const s i64 1 -1; const e i64 1 2147483647; const a i64 1 0; const p i64 1 -1; node Slice x,s,e,a,p y; out y", "1,2,3", "[0]" },
        { "ORT 11107: from -1 to INT_MIN backwards is all of it", 13,
          "in x f32 3; const s i64 1 -1; const e i64 1 -2147483648; const a i64 1 0; const p i64 1 -1; node Slice x,s,e,a,p y; out y", "1,2,3", "3,2,1" },
        { "ORT 11107: the same in int32", 13,
          "in x f32 3; const s i32 1 -1; const e i32 1 -2147483648; const a i32 1 0; const p i32 1 -1; node Slice x,s,e,a,p y; out y", "1,2,3", "3,2,1" },
        { "TVM 19532: forwards bounds with a backwards step", 13,
          "in x f32 10; const s i64 1 0; const e i64 1 5; const a i64 1 0; const p i64 1 -1; node Slice x,s,e,a,p y; out y", "0,1,2,3,4,5,6,7,8,9", "[0]" },
        { "TVM 20263: start from a run on a symbolic axis", 13,
          "in x f32 n; in s i64 1; const e i64 1 9223372036854775807; node Slice x,s,e y; out y", "[5] 1,2,3,4,5|-2", "[2] 4,5" },
        { "TVM 6263: ends that int32 would make -1", 13,
          "in x f32 2,3; const s i64 2 0,1; const e i64 2 9223372036854775807,2147483647; node Slice x,s,e y; out y", "1,2,3,4,5,6", "[2,2] 2,3,5,6" },
        { "ORT 918: negative bounds are no identity", 13,
          "in x f32 4; const s i64 1 -3; const e i64 1 -1; node Slice x,s,e y; out y", "1,2,3,4", "2,3" },
        { "TensorRT forum 215793: every other element of a bool constant", 13,
          "in x f32 3; const b bool 5 1,1,0,0,1; const s i64 1 0; const e i64 1 5; const a i64 1 0; const p i64 1 2; node Slice b,s,e,a,p m;"
          "const z f32 - 0; node Where m,x,z y; out y",
          "1,2,3", "1,0,3" },
        { "own: split and concat in another order", 13,
          "in x f32 4; const h i64 2 2,2; node Split x,h a,b axis=i:0; node Concat b,a y axis=i:0; out y", "1,2,3,4", "3,4,1,2" },
        { "own: split and concat in order", 13,
          "in x f32 4; const h i64 2 1,3; node Split x,h a,b axis=i:0; node Concat a,b y axis=i:0; node Neg y z; out z", "1,2,3,4", "-1,-2,-3,-4" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(reductions_by_version)
{
    static const hn_bug rows[] = {
        { "OpenVINO 37823: softmax before opset 13 is over all later axes", 11,
          "in x f32 1,2,2; node Softmax x y axis=i:1; out y", "0,0,0,0", "0.25,0.25,0.25,0.25" },
        { "TVM 20183: and so it is where the axis is not said", 11, "in x f32 1,2,2; node Softmax x y; out y", "0,0,0,0", "0.25,0.25,0.25,0.25" },
        { "onnx 4529: an old softmax of unknown extents", 11,
          "in x f32 a,b,c; node Softmax x y axis=i:1; out y", "[1,2,2] 0,0,0,0", "0.25,0.25,0.25,0.25" },
        { "OpenVINO 37823: from opset 13 along one axis", 13, "in x f32 1,2,2; node Softmax x y axis=i:1; out y", "0,0,0,0", "0.5,0.5,0.5,0.5" },
        { "OpenVINO 37823: log softmax and hardmax of old", 11,
          "in x f32 1,2,2; node LogSoftmax x y axis=i:1; node Hardmax x h axis=i:1; out y; out h", "0,0,0,1",
          "-1.7436684,-1.7436684,-1.7436684,-0.7436684|0,0,0,1" },
        { "OpenVINO 38238: axes as an attribute", 13,
          "in x f32 1,4; node ReduceL1 x a axes=is:1; node ReduceLogSum x b axes=is:1; node ReduceLogSumExp x c axes=is:1; out a; out b; out c", "1,2,3,3",
          "9|2.1972246|3.9175758" },
        { "TVM 18072: axes absent, empty, and empty that mean nothing", 18,
          "in x f32 2,2; const e i64 0 ,; node ReduceMax x a keepdims=i:0; node ReduceMax x,e b keepdims=i:0 noop_with_empty_axes=i:0;"
          "node ReduceMax x,e c keepdims=i:0 noop_with_empty_axes=i:1; out a; out b; out c",
          "1,2,3,4", "4|4|[2,2] 1,2,3,4" },
        { "ORT 32130: comparisons of old opsets fold like new ones", 13,
          "in x f32 2,3; const k i64 1 3; const zero i64 - 0; node Shape x s; node Gather s,zero g; node GreaterOrEqual g,k c; const p f32 - 1; const q f32 - 2;"
          "node Where c,p,q w; node Add x,w y; out y",
          "0,0,0,0,0,0", "2,2,2,2,2,2" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(scatters_and_detection)
{
    static const hn_bug rows[] = {
        { "onnx-mlir 3611: rows written by an index of two columns", 16,
          "in x f32 2,3; const i i64 2,2 0,1,1,2; in u f32 2; node ScatterND x,i,u y; out y", "0,0,0,0,0,0|5,7", "0,5,0,0,0,7" },
        { "onnx 8096: three-axis index, whole blocks", 16,
          "in x f32 2,2,2; const i i64 1,1,1 0; in u f32 1,1,2,2; node ScatterND x,i,u y; out y", "0,1,2,3,4,5,6,7|100,101,102,103", "100,101,102,103,4,5,6,7" },
        { "onnx 6019: repeated positions add up", 16,
          "in x f32 3; const i i64 3,1 1,1,2; in u f32 3; node ScatterND x,i,u y reduction=s:add; node ScatterND x,i,u z reduction=s:mul; out y; out z",
          "1,2,3|10,20,30", "1,32,33|1,400,90" },
        { "onnx 8096: least and greatest", 18,
          "in x f32 3; const i i64 2,1 1,1; in u f32 2; node ScatterND x,i,u y reduction=s:min; node ScatterND x,i,u z reduction=s:max; out y; out z",
          "1,2,3|5,-4", "1,-4,3|1,5,3" },
        { "ORT 1610: a second batch that equals the first gives the same picks", 11,
          "in b f32 2,2,4; in s f32 2,1,2; const m i64 1 2; const o f32 1 0.5; node NonMaxSuppression b,s,m,o y; out y",
          "0,0,1,1,0,5,1,6,0,0,1,1,0,5,1,6|0.9,0.8,0.9,0.8", "[4,3] 0,0,0,0,0,1,1,0,0,1,0,1" },
        { "onnx-mlir 1035: boxes with swapped corners", 11,
          "in b f32 1,3,4; in s f32 1,1,3; const m i64 1 1501274884; const o f32 1 0.5; node NonMaxSuppression b,s,m,o y; out y",
          "1,1,0,0,0,0.1,1,1.1,0,10,1,11|0.9,0.75,0.6", "[2,3] 0,0,0,0,0,2" },
        { "tract 2849: scale and zero point of each column", 13,
          "in q i8 2,3; const s f32 3 0.5,2,10; const z i8 3 0,1,-1; node DequantizeLinear q,s,z y axis=i:1; out y", "1,1,1,4,4,4", "0.5,0,20,2,6,50" },
        { "ORT 4032: dequantising with a scale computed from the data", 13,
          "in x f32 4; const k f32 - 127; node ReduceMax x m keepdims=i:0; node Div m,k s; node QuantizeLinear x,s,z q; const z i8 - 0;"
          "node DequantizeLinear q,s y; out y",
          "127,-5.2,0.4,2", "127,-5,0,2" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}
