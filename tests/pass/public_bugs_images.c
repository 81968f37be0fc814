/* What optimisers elsewhere got wrong, with the right values: windows, resizing, padding, control flow, recurrence. */
#include "pass/bug_case.h"

#define ONES25 "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"
#define NINE_CENTRED "-4,-3,-2,-1,0,1,2,3,4"

TEST(transposed_convolutions)
{
    static const hn_bug rows[] = {
        { "ORT 11927: SAME_UPPER with output padding", 11,
          "in x f32 1,2,3,3; const w f32 2,1,3,3 -3,-2.5,-2,-1.5,-1,-0.5,0,0.5,1,1.5,2,2.5,3,3.5,4,4.5,5,5.5;"
          "node ConvTranspose x,w y strides=is:2,2 auto_pad=s:SAME_UPPER output_padding=is:1,1; out y",
          "-4,-3,-2,-1,0,1,2,3,4,5,6,7,8,9,10,11,12,13",
          "[1,1,6,6] 21.5,44.5,24,49.5,26.5,29,41.5,86,46.5,96,51.5,59.5,29,59.5,31.5,64.5,34,39.5,56.5,116,61.5,126,66.5,80.5,36.5,74.5,"
          "39,79.5,41.5,50,56,116.5,61.5,127.5,67,75.5" },
        { "ORT 26271, TVM 11076: extents of the result given", 11,
          "in x f32 1,1,3,3; const w f32 1,1,3,3 1,2,3,4,5,6,7,8,9; node ConvTranspose x,w y strides=is:3,2 output_shape=is:8,7; out y", NINE_CENTRED,
          "[1,1,8,7] -16,-20,-36,-15,-26,-10,-12,-28,-32,-57,-24,-41,-16,-18,-1,-2,-3,0,1,2,3,-4,-5,-6,0,4,5,6,-7,-8,-9,0,7,8,9,2,4,9,6,13,"
          "8,12,8,10,24,15,34,20,24,14,16,39,24,55,32,36" },
        { "OpenVINO 20848: two filters, pads", 11,
          "in x f32 1,1,3,3; const w f32 1,2,3,3 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; node ConvTranspose x,w y strides=is:3,2 pads=is:1,2,1,2; out y",
          NINE_CENTRED,
          "[1,2,7,3] -29,-12,-21,-50,-21,-36,-2,0,0,-5,0,3,-8,0,6,4,3,6,19,12,27,-92,-39,-66,-113,-48,-81,-11,0,9,-14,0,12,-17,0,15,49,30,69,64,39,90" },
        { "OpenVINO 20848: and output padding", 11,
          "in x f32 1,1,3,3; const w f32 1,2,3,3 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17;"
          "node ConvTranspose x,w y strides=is:3,2 pads=is:1,2,1,2 output_padding=is:1,1; out y",
          NINE_CENTRED,
          "[1,2,8,4] -29,-12,-21,-8,-50,-21,-36,-14,-2,0,0,1,-5,0,3,4,-8,0,6,7,4,3,6,4,19,12,27,16,34,21,48,28,-92,-39,-66,-26,-113,-48,-81,-32,"
          "-11,0,9,10,-14,0,12,13,-17,0,15,16,49,30,69,40,64,39,90,52,79,48,111,64" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(windows)
{
    static const hn_bug rows[] = {
        { "TVM 20404: SAME_LOWER pads at the start", 12, "in x f32 1,1,5; node MaxPool x y kernel_shape=is:2 strides=is:2 auto_pad=s:SAME_LOWER; out y",
          "1,2,3,4,5", "[1,1,3] 1,3,5" },
        { "TVM 20404: dilated mean with SAME_LOWER", 19,
          "in x f32 1,1,7; node AveragePool x y kernel_shape=is:2 strides=is:2 dilations=is:2 auto_pad=s:SAME_LOWER; out y", "1,2,3,4,5,6,7", "[1,1,4] 2,3,5,6" },
        { "onnx 4958: a last window wholly in the padding is dropped (maximum)", 12,
          "in x f32 1,1,6; node MaxPool x y kernel_shape=is:1 strides=is:5 ceil_mode=i:1 pads=is:0,5; out y", "-1,-2,-3,-4,-5,-6", "[1,1,2] -1,-6" },
        { "onnx 4958: and for means", 19,
          "in x f32 1,1,4; node AveragePool x y kernel_shape=is:2 strides=is:3 ceil_mode=i:1 pads=is:0,2; out y", "-1,-2,-3,-4", "[1,1,2] -1.5,-4" },
        { "ORT 10083: VALID rounds down", 12, "in x f32 1,1,5; node MaxPool x y kernel_shape=is:2 strides=is:2 auto_pad=s:VALID; out y", "1,2,3,4,5", "[1,1,2] 2,4" },
        { "NNFusion 192: depthwise, stride 2, four different pads", 11,
          "in x f32 1,2,6,6; const w f32 2,1,5,5 " ONES25 ",0,0.1,0.2,0.3,0.4,0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5,1.6,1.7,1.8,1.9,2,2.1,2.2,2.3,2.4;"
          "const k f32 - 0.25; node Mul x,k xs; node Conv xs,w y group=i:2 strides=is:2,2 pads=is:1,2,2,3; out y",
          "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31,32,33,34,35,36,37,38,39,40,41,42,43,44,45,46,47,48,49,"
          "50,51,52,53,54,55,56,57,58,59,60,61,62,63,64,65,66,67,68,69,70,71",
          "[1,2,3,4] 30,55,50,27,71.25,125,107.5,56.25,56.25,97.5,82.5,42.75,225.35,360.5,287.1,136.25,290.875,458.75,361.25,168.625,114.45,171,130.2,56.25" },
        { "own: padding with another value than 0 is not the convolution's", 13,
          "in x f32 1,1,2; const p i64 6 0,0,1,0,0,1; const v f32 - 5; const w f32 1,1,2 1,10; node Pad x,p,v q; node Conv q,w y; out y", "1,2", "[1,1,3] 15,21,52" },
        { "own: padding with 0 before one that pads itself", 13,
          "in x f32 1,1,2; const p i64 6 0,0,1,0,0,0; const w f32 1,1,2 1,10; node Pad x,p q; node Conv q,w y pads=is:0,1; out y", "1,2", "[1,1,3] 10,21,2" },
        { "own: shift before a padded convolution must not reach the padding", 13,
          "in x f32 1,1,2; const s f32 - 2; const w f32 1,1,3 1,10,100; node Add x,s a; node Conv a,w y pads=is:1,1; out y", "1,2", "[1,1,2] 430,43" },
        { "own: shift and scale before a convolution without padding", 13,
          "in x f32 1,2,2; const s f32 2,1 2,3; const k f32 2,1 5,7; const w f32 1,2,2 1,10,100,1000; node Mul x,k m; node Add m,s a; node Conv a,w y; out y",
          "1,2,3,4", "[1,1,1] 33527" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(pools_of_many_elements)
{
    /* TensorRT 2094: a kernel longer than 317. */
    static const hn_bug rows[] = {
        { "TensorRT 2094: pooling kernel longer than 317", 12,
          "in x f32 1,1,4; const r i64 3 1,1,100; node Tile x,r l; node MaxPool l m kernel_shape=is:330 strides=is:70;"
          "node AveragePool l a kernel_shape=is:400; out m; out a",
          "1,2,3,4", "[1,1,2] 4,4|[1,1,1] 2.5" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(resizes)
{
    static const hn_bug rows[] = {
        { "ORT 17564: channels last, align_corners", 13,
          "in x f32 1,3,2,1; const s f32 4 1,2,2,1; node Resize x,,s y mode=s:linear coordinate_transformation_mode=s:align_corners; out y", "1,2,3,5,7,4",
          "1,1.33333333,1.66666667,2,1.8,2.26666667,2.73333333,3.2,2.6,3.2,3.8,4.4,3.8,4.13333333,4.46666667,4.8,5.4,5.06666667,4.73333333,4.4,7,6,5,4" },
        { "ORT 17564: channels last, asymmetric", 13,
          "in x f32 1,3,2,1; const s f32 4 1,2,2,1; node Resize x,,s y mode=s:linear coordinate_transformation_mode=s:asymmetric; out y", "1,2,3,5,7,4",
          "1,1.5,2,2,2,2.75,3.5,3.5,3,4,5,5,5,4.75,4.5,4.5,7,5.5,4,4,7,5.5,4,4" },
        { "ORT 25264: antialiased cubic of another coefficient, whose edge repeats", 18,
          "in x f32 1,1,8; const s f32 3 1,1,0.5; node Resize x,,s y mode=s:cubic cubic_coeff_a=f:-0.5 antialias=i:1; out y",
          "0,10,200,30,255,60,7,90", "[1,1,4] 22.9492188,127.554688,129.40625,45.515625" },
        { "onnxscript 2916: the same as torch has it, without what lies outside", 18,
          "in x f32 1,1,8; const s f32 3 1,1,0.5; node Resize x,,s y mode=s:cubic cubic_coeff_a=f:-0.5 antialias=i:1 exclude_outside=i:1; out y",
          "0,10,200,30,255,60,7,90", "[1,1,4] 24.58159,126.07722,128.949807,42.3514644" },
        { "ORT 25264: antialiasing says nothing where the image grows", 18,
          "in x f32 1,1,3; const s f32 3 1,1,2; node Resize x,,s y mode=s:cubic cubic_coeff_a=f:-0.5 antialias=i:1; out y",
          "0,10,200", "[1,1,6] -0.703125,-2.421875,-5.390625,49.296875,161.640625,213.359375" },
        { "TIM-VX 263: half_pixel", 13,
          "in x f32 1,1,2,4; const s f32 4 1,1,0.6,0.6; node Resize x,,s y mode=s:linear; out y", "1,2,3,4,5,6,7,8", "[1,1,1,2] 2.6666665,4.3333331" },
        { "TIM-VX 263: align_corners", 13,
          "in x f32 1,1,2,4; const s f32 4 1,1,0.6,0.6; node Resize x,,s y mode=s:linear coordinate_transformation_mode=s:align_corners; out y",
          "1,2,3,4,5,6,7,8", "[1,1,1,2] 1,3.142857" },
        { "TIM-VX 263: nearest to extents", 13,
          "in x f32 1,1,2,4; const z i64 4 1,1,1,3; node Resize x,,,z y; out y", "1,2,3,4,5,6,7,8", "[1,1,1,3] 1,2,4" },
        { "ORT 12098: where .5 goes", 13,
          "in x f32 1,1,4; const s f32 3 1,1,0.5;"
          "node Resize x,,s a mode=s:nearest nearest_mode=s:round_prefer_floor; node Resize x,,s b mode=s:nearest nearest_mode=s:round_prefer_ceil;"
          "node Resize x,,s c mode=s:nearest nearest_mode=s:floor; node Resize x,,s d mode=s:nearest nearest_mode=s:ceil; out a; out b; out c; out d",
          "1,2,3,4", "1,3|2,4|1,3|2,4" },
        { "pytorch 79361: one element left, half_pixel and pytorch_half_pixel", 13,
          "in x f32 1,1,4; const z i64 3 1,1,1; node Resize x,,,z a mode=s:linear coordinate_transformation_mode=s:half_pixel;"
          "node Resize x,,,z b mode=s:linear coordinate_transformation_mode=s:pytorch_half_pixel; out a; out b",
          "1,2,3,4", "2.5|1" },
        { "own: an extent times a quotient of extents, 22 / 7 rounded down, is 22", 13,
          "in x f32 1,7; const s f32 2 1,3.142857075; node Resize x,,s y coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor; out y",
          "1,2,3,4,5,6,7", "[1,22] 1,1,1,1,2,2,2,3,3,3,4,4,4,5,5,5,6,6,6,7,7,7" },
        { "own: the same where only the run shows it", 13,
          "in x f32 1,n; in s f32 2; node Resize x,,s y coordinate_transformation_mode=s:asymmetric nearest_mode=s:floor; out y",
          "[1,7] 1,2,3,4,5,6,7|1,3.142857075", "[1,22] 1,1,1,1,2,2,2,3,3,3,4,4,4,5,5,5,6,6,6,7,7,7" },
        { "own: scales as exporters of opset 10 divide them out", 10,
          "in x f32 1,1,h,w; in t i64 2; const a i64 1 2; const b i64 1 4; const o f32 2 1,1; node Shape x sh; node Slice sh,a,b hw;"
          "node Cast hw hwf to=i:1; node Cast t tf to=i:1; node Div tf,hwf q; node Concat o,q s axis=i:0; node Resize x,s y mode=s:linear; out y",
          "[1,1,1,2] 1,3|2,4", "[1,1,2,4] 1,2,3,3,1,2,3,3" },
        { "own: a scale of nothing", 13, "in x f32 1,n; in s f32 2; node Resize x,,s y; out y", "[1,2] 1,2|1,0", "[1,0]" },
        { "own: a scale below nothing", 13, "in x f32 1,n; in s f32 2; node Resize x,,s y; out y", "[1,2] 1,2|1,-1", "error: -" },
        { "own: part of an image that only a run shows", 13,
          "in x f32 4; in r f32 2; const z i64 1 4; node Resize x,r,,z y mode=s:linear coordinate_transformation_mode=s:tf_crop_and_resize"
          " extrapolation_value=f:9; out y",
          "1,2,3,4|0.5,1.5", "2.5,3.5,9,9" },
        { "own: one scale for extents that only a run shows", 18,
          "in x f32 h,w; const z i64 2 4,4; node Resize x,,,z a mode=s:nearest keep_aspect_ratio_policy=s:not_larger;"
          "node Resize x,,,z b mode=s:nearest keep_aspect_ratio_policy=s:not_smaller; out a; out b",
          "[1,2] 1,2", "[2,4] 1,1,2,2,1,1,2,2|[4,8] 1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2,1,1,1,1,2,2,2,2" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

/* ONNX's reference clamps the place of a sample too; PyTorch and ONNX Runtime only what its taps read, which these values are. */
TEST(cubic_samples_at_a_border)
{
#define CUBIC_SAMPLES \
    "1,7,2,9,4,3,8,5,6,0,2,7,3,1,9,4,8,2,6,2,5,7,1,9|-0.95,-0.9,1.3,0.2,-1.7,1.6,0.1,-2.5,0.97,0.93"
    static const hn_bug rows[] = {
        { "own: border", 16,
          "in x f32 1,1,4,6; in g f32 1,1,5,2; node GridSample x,g y mode=s:bicubic padding_mode=s:border align_corners=i:0; out y",
          CUBIC_SAMPLES, "-0.547234,2.01175,6,8.128,10.7962" },
        { "own: border, corners aligned", 16,
          "in x f32 1,1,4,6; in g f32 1,1,5,2; node GridSample x,g y mode=s:bicubic padding_mode=s:border align_corners=i:1; out y",
          CUBIC_SAMPLES, "2.515348,2.118937,6.02025,7.765625,7.933699" },
        { "own: reflection", 16,
          "in x f32 1,1,4,6; in g f32 1,1,5,2; node GridSample x,g y mode=s:bicubic padding_mode=s:reflection align_corners=i:0; out y",
          CUBIC_SAMPLES, "-1.368111,4.627388,5.493502,6.34825,12.099903" },
        { "own: reflection, corners aligned", 16,
          "in x f32 1,1,4,6; in g f32 1,1,5,2; node GridSample x,g y mode=s:bicubic padding_mode=s:reflection align_corners=i:1; out y",
          CUBIC_SAMPLES, "1.628163,6.694031,7.399938,5.993988,8.684961" },
    };
#undef CUBIC_SAMPLES
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(pads)
{
    static const hn_bug rows[] = {
        { "ORT 16401: reflection longer than the axis repeats", 13,
          "in x f32 1,2; const p i64 4 0,2,0,0; node Pad x,p y mode=s:reflect; out y", "1,2", "[1,4] 1,2,1,2" },
        { "onnx 6735: on both sides", 13, "in x f32 3; const p i64 2 4,5; node Pad x,p y mode=s:reflect; out y", "1,2,3", "1,2,3,2,1,2,3,2,1,2,3,2" },
        { "ORT 11828: cropped to one element, nothing to reflect", 13,
          "in x f32 3; const p i64 2 -2,2; node Pad x,p y mode=s:reflect; out y", "1,2,3", "error: too few elements" },
        { "rten 1406: crops more than there is", 13, "in x f32 3; const p i64 2 -4,0; node Pad x,p y; out y", "1,2,3", "error: crop more" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

/* OpenVINO 37820: batch first, in what goes in and in all that comes out. */
TEST(recurrence_with_the_batch_first)
{
#define STEPS "1,2,3,-1,0.5,2|0.5,-0.5,0,1"
#define GATES_W ".1,-.2,.3,.2,-.1,.4"
#define GATES_R ".3,.1,-.1,.2,.2,-.3,.1,.1,.5,-.2,.3,.3"
    static const hn_bug rows[] = {
        { "OpenVINO 37820: RNN", 14,
          "in x f32 2,3,1; in h f32 2,1,2; const w f32 1,2,1 .1,-.2; const r f32 1,2,2 .3,.1,-.1,.2; const b f32 1,4 .05,-.05,.1,.2;"
          "node RNN x,w,r,b,,h y,z hidden_size=i:2 layout=i:1; out y; out z",
          STEPS,
          "[2,3,1,2] 0.336375544,-0.19737532,0.406302915,-0.31231865,0.49348665,-0.502835524,0.148885034,0.500520211,0.286471025,0.134397462,"
          "0.421390098,-0.246579521|[2,1,2] 0.49348665,-0.502835524,0.421390098,-0.246579521" },
        { "OpenVINO 37820: GRU", 14,
          "in x f32 2,3,1; in h f32 2,1,2; const w f32 1,6,1 " GATES_W "; const r f32 1,6,2 " GATES_R ";"
          "node GRU x,w,r,,,h y,z hidden_size=i:2 layout=i:1; out y; out z",
          STEPS,
          "[2,3,1,2] 0.325800251,0.0225099055,0.146678172,0.433042487,-0.032818085,0.705242141,0.00249789797,0.497577069,-0.0473634319,"
          "0.385477087,-0.139845667,0.565801157|[2,1,2] -0.032818085,0.705242141,-0.139845667,0.565801157" },
        { "OpenVINO 37820: LSTM", 14,
          "in x f32 2,3,1; in h f32 2,1,2; in c f32 2,1,2; const w f32 1,8,1 " GATES_W ",.25,-.35; const r f32 1,8,2 " GATES_R ",-.4,.1,.2,.6;"
          "node LSTM x,w,r,,,h,c y,z,v hidden_size=i:2 layout=i:1; out y; out z; out v",
          STEPS "|.2,.3,-1,.4",
          "[2,3,1,2] 0.0710002893,-0.0150067175,0.186242098,-0.151849654,0.32034561,-0.285617306,-0.177213617,0.266035822,-0.0696247616,"
          "0.166567424,0.132219654,0.00176883578|[2,1,2] 0.32034561,-0.285617306,0.132219654,0.00176883578|"
          "[2,1,2] 0.472526359,-0.474501466,0.212722742,0.00294309155" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}

TEST(control_flow_and_recurrence)
{
    static const hn_bug rows[] = {
        { "onnx-tensorrt 891: loop as while", 13,
          "in x f32 2; const true bool - 1; const m i64 - 1000; const n0 f32 - 0; const ten f32 - 10; const one f32 - 1;"
          "body body; in i i64 -; in go bool -; in v f32 2; in n f32 -; node Add v,one v1; node Add n,one n1; node ReduceSum v1 s keepdims=i:0;"
          "node Less s,ten c; out c bool; out v1 f32; out n1 f32; end; node Loop m,true,x,n0 y,k; out y; out k",
          "2.2,3.3", "5.2,6.3|3" },
        { "onnx-tensorrt 543: trip count and condition, nothing carried", 13,
          "in x f32 2; const true bool - 1; const m i64 - 3; body body; in i i64 -; in go bool -; node Cast i f to=i:1; node Mul x,f y; node Identity go c;"
          "out c bool; out y f32; end; node Loop m,true z; out z",
          "1,2", "[3,2] 0,0,1,2,2,4" },
        { "ORT 3794: the body's first input counts from 0", 13,
          "in x i64 1; const true bool - 1; const m i64 - 5; body body; in i i64 -; in go bool -; in v i64 1; node Add v,i w; node Identity go c;"
          "out c bool; out w i64; end; node Loop m,true,x y; out y",
          "100", "110" },
        { "ORT 3755: branch in a loop hands the carried value on", 13,
          "in x f32 1; const true bool - 1; const m i64 - 4; const two i64 - 2; body body; in i i64 -; in go bool -; in v f32 1; node Less i,two c1;"
          "body then_branch; node Identity v t; out t f32; end; body else_branch; node Add v,v e; out e f32; end; node If c1 w; node Identity go c;"
          "out c bool; out w f32; end; node Loop m,true,x y; out y",
          "3", "12" },
        { "own: a body's constant of an outer name is the body's", 13,
          "in x f32 1; in b bool -; const k f32 1 1; node Add x,k a; body then_branch; const k2 f32 1 5; node Add a,k2 t; out t f32; end;"
          "body else_branch; node Sub a,k e; out e f32; end; node If b y; out y",
          "3|1", "9" },
        { "onnx-tf 409: two directions, lengths, initial states", 14,
          "in x f32 2,2,4; in k f32 -; const ws i64 3 2,12,4; const rs i64 3 2,12,3; const hs i64 3 2,2,3; const l i32 2 2,1;"
          "const a f32 - 0.2; const b f32 - 0.3; node Expand k,ws w; node Expand k,rs r; node Expand a,hs h; node Expand b,hs c;"
          "node LSTM x,w,r,,l,h,c Y,H,C hidden_size=i:3 direction=s:bidirectional; out Y; out H; out C",
          "1,2,3,4,5,6,7,8,-0.5,-1,-1.5,-2,-2.5,-3,-3.5,-4|0.1",
          "[2,2,2,3] 0.495783748,0.495783748,0.495783748,0.780830929,0.780830929,0.780830929,0.34979128,0.34979128,0.34979128,0.780830929,0.780830929,"
          "0.780830929,0.0790094805,0.0790094805,0.0790094805,0,0,0,-0.0174284756,-0.0174284756,-0.0174284756,0,0,0|0.0790094805,0.0790094805,"
          "0.0790094805,0.780830929,0.780830929,0.780830929,0.34979128,0.34979128,0.34979128,0.780830929,0.780830929,0.780830929|0.193656286,"
          "0.193656286,0.193656286,1.20591082,1.20591082,1.20591082,0.521876339,0.521876339,0.521876339,1.20591082,1.20591082,1.20591082" },
    };
    hn_check_bugs(t, rows, HN_COUNT(rows));
}
