#include "op_test.h"

TEST(gather_values)
{
    EXPECT("const x f32[3,2] = {1, 2, 3, 4, 5, 6}  const i i64[2] = {2, -3}  y = gather(x, i)  out y",
           "const y f32[2,2] = {5, 6, 1, 2}");
    EXPECT(
        "const x f32[2,3] = {1, 2, 3, 4, 5, 6}  const i i32[1,2] = {0, 2}  y = gather(x, i) {axis=1}  out y",
        "const y f32[2,1,2] = {1, 3, 4, 6}");
    EXPECT("const x f32[3] = {1, 2, 3}  const i i64[] = {-1}  y = gather(x, i)  out y",
           "const y f32[] = {3}");
    EXPECT("const x f32[3,0] = {}  const i i64[2] = {7, 8}  y = gather(x, i)  out y",
           "const y f32[2,0] = {}");
    EXPECT("const x f32[3] = {1, 2, 3}  const i i64[0] = {}  y = gather(x, i)  out y", "const y f32[0] = {}");
    FAILS("const x f32[3] = {1, 2, 3}  const i i64[2] = {0, 3}  y = gather(x, i)  out y",
          "index 3 is out of range for extent 3");
    FAILS("const x f32[3] = {1, 2, 3}  const i i64[1] = {-4}  y = gather(x, i)  out y", "index -4");
    REFUSES("in x f32[3]  in i f32[1]  y = gather(x, i)  out y", "integer");
    REFUSES("in x f32[3]  in i i64[1]  y = gather(x, i) {axis=1}  out y", "out of range");
    REFUSES("in x f32[]  in i i64[1]  y = gather(x, i)  out y", "out of range for rank 0");
    INFERS("in x f32[n,3]  in i i64[b,s]  y = gather(x, i)  out y", "f32[b,s,3]");
    CONTENT("in x f32[n,m]  d = dims(x) {dim=[n, m]}  const i i64[2] = {-1, 0}  y = gather(d, i)  out y",
            "m n");
    CONTENT("in x f32[n,m]  d = dims(x) {dim=[n, m]}  const i i64[] = {1}  y = gather(d, i)  out y", "m");
}

TEST(gather_elements_values)
{
    EXPECT("const x f32[2,2] = {1, 2, 3, 4}  const i i64[2,2] = {0, 0, 1, 0}  y = gather_elements(x, i) "
           "{axis=1}  out y",
           "const y f32[2,2] = {1, 1, 4, 3}");
    EXPECT("const x f32[3,3] = {1, 2, 3, 4, 5, 6, 7, 8, 9}  const i i64[2,3] = {-1, -2, 0, -2, 0, 0}  y = "
           "gather_elements(x, i)  out y",
           "const y f32[2,3] = {7, 5, 3, 4, 2, 3}");
    FAILS("const x f32[2] = {1, 2}  const i i64[1] = {2}  y = gather_elements(x, i)  out y", "index 2");
    REFUSES("in x f32[2,2]  in i i64[2]  y = gather_elements(x, i)  out y", "rank 1 where rank 2");
    REFUSES("in x f32[2,2]  in i i64[2,3]  y = gather_elements(x, i) {axis=0}  out y",
            "3 elements on axis 1");
}

TEST(gather_nd_values)
{
    REFUSES("in x f32[2,2]  in i i64[2,9223372036854775807]  y = gather_nd(x, i) {batch_dims=1}  out y", "exceed rank 2");
    EXPECT("const x i32[2,2] = {0, 1, 2, 3}  const i i64[2,2] = {0, 0, 1, -1}  y = gather_nd(x, i)  out y",
           "const y i32[2] = {0, 3}");
    EXPECT("const x i32[2,2,2] = {0, 1, 2, 3, 4, 5, 6, 7}  const i i64[2,1] = {1, 0}  y = gather_nd(x, i) "
           "{batch_dims=1}  out y",
           "const y i32[2,2] = {2, 3, 4, 5}");
    EXPECT("const x i32[2,2] = {0, 1, 2, 3}  const i i64[2,1,1] = {1, 0}  y = gather_nd(x, i)  out y",
           "const y i32[2,1,2] = {2, 3, 0, 1}");
    FAILS("const x i32[2,2] = {0, 1, 2, 3}  const i i64[1,2] = {0, 2}  y = gather_nd(x, i)  out y",
          "index 2");
    REFUSES("in x f32[2,2]  in i i64[2,3]  y = gather_nd(x, i)  out y", "exceed rank 2");
    REFUSES("in x f32[2,2]  in i i64[2,k]  y = gather_nd(x, i)  out y", "must be known");
    REFUSES("in x f32[3,2]  in i i64[2,1]  y = gather_nd(x, i) {batch_dims=1}  out y", "axis 0");
}

TEST(scatter_elements_values)
{
    EXPECT("const x f32[1,5] = {1, 2, 3, 4, 5}  const i i64[1,2] = {1, -2}  const u f32[1,2] = {9, 8}"
           "  y = scatter_elements(x, i, u) {axis=1}  out y",
           "const y f32[1,5] = {1, 9, 3, 8, 5}");
    EXPECT("const x f32[5] = {1, 2, 3, 4, 5}  const i i64[2] = {1, 1}  const u f32[2] = {10, 2}"
           "  a = scatter_elements(x, i, u) {reduction=add}  m = scatter_elements(x, i, u) {reduction=mul}"
           "  lo = scatter_elements(x, i, u) {reduction=min}  hi = scatter_elements(x, i, u) {reduction=max}"
           "  last = scatter_elements(x, i, u)  out a  out m  out lo  out hi  out last",
           "const a f32[5] = {1, 14, 3, 4, 5}  const m f32[5] = {1, 40, 3, 4, 5}  const lo f32[5] = {1, 2, "
           "3, 4, 5}"
           "  const hi f32[5] = {1, 10, 3, 4, 5}  const last f32[5] = {1, 2, 3, 4, 5}");
    EXPECT("const x u8[1] = {250}  const i i64[1] = {0}  const u u8[1] = {10}  y = scatter_elements(x, i, u) "
           "{reduction=add}  out y",
           "const y u8[1] = {4}");
    FAILS("const x f32[2] = {1, 2}  const i i64[1] = {2}  const u f32[1] = {0}  y = scatter_elements(x, i, "
          "u)  out y",
          "index 2");
    REFUSES("in x f32[2]  in i i64[1]  in u f32[2]  y = scatter_elements(x, i, u)  out y",
            "axis 0 of operand 1 is 1");
    REFUSES("in x f32[2]  in i i64[1]  in u f64[1]  y = scatter_elements(x, i, u)  out y", "differ in dtype");
    REFUSES("in x bool[2]  in i i64[1]  in u bool[1]  y = scatter_elements(x, i, u) {reduction=add}  out y",
            "bools do not combine");
}

TEST(scatter_nd_values)
{
    EXPECT("const x f32[4,2] = {1, 2, 3, 4, 5, 6, 7, 8}  const i i64[2,1] = {3, 0}  const u f32[2,2] = {9, "
           "9, 8, 8}"
           "  y = scatter_nd(x, i, u)  out y",
           "const y f32[4,2] = {8, 8, 3, 4, 5, 6, 9, 9}");
    /* tuples of full depth: onnx-mlir 3611 */
    EXPECT("const x f32[4,5] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}  const i "
           "i64[3,2] = {0, 1, 1, 2, 3, 4}"
           "  const u f32[3] = {1, 2, 3}  y = scatter_nd(x, i, u)  out y",
           "const y f32[4,5] = {0, 1, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3}");
    /* a three-dimensional index: onnx 8096 */
    EXPECT("const x f32[2,2,2] = {1, 1, 2, 3, 4, 5, 6, 7}  const i i64[1,1,2] = {0, 0}  const u f32[1,1,2] = "
           "{100, 101}"
           "  y = scatter_nd(x, i, u)  z = scatter_nd(x, i, u) {reduction=max}  out y  out z",
           "const y f32[2,2,2] = {100, 101, 2, 3, 4, 5, 6, 7}  const z f32[2,2,2] = {100, 101, 2, 3, 4, 5, "
           "6, 7}");
    EXPECT("const x f32[2] = {1, 2}  const i i64[2,1] = {1, 1}  const u f32[2] = {3, 4}  y = scatter_nd(x, "
           "i, u) {reduction=add}"
           "  z = scatter_nd(x, i, u) {reduction=mul}  out y  out z",
           "const y f32[2] = {1, 9}  const z f32[2] = {1, 24}");
    FAILS("const x f32[2] = {1, 2}  const i i64[1,1] = {-3}  const u f32[1] = {3}  y = scatter_nd(x, i, u)  "
          "out y",
          "index -3");
    REFUSES("in x f32[4,2]  in i i64[2,1]  in u f32[2]  y = scatter_nd(x, i, u)  out y",
            "rank 1 where rank 2");
    REFUSES("in x f32[4,2]  in i i64[2,3]  in u f32[2]  y = scatter_nd(x, i, u)  out y", "exceed rank 2");
    REFUSES("in x f32[4,2]  in i i64[2,1]  in u f32[2,3]  y = scatter_nd(x, i, u)  out y",
            "axis 1 of operand 2 is 3");
}

TEST(one_hot_values)
{
    EXPECT("const i i64[3] = {0, -1, 5}  const v f32[2] = {2, 5}  y = one_hot(i, v) {dim=3}  out y",
           "const y f32[3,3] = {5, 2, 2, 2, 2, 5, 2, 2, 2}");
    EXPECT("const i f32[2] = {1, 0.5}  const v i32[2] = {0, 1}  y = one_hot(i, v) {axis=0, dim=2}  out y",
           "const y i32[2,2] = {0, 0, 1, 0}");
    INFERS("in i i64[n]  in v f32[2]  y = one_hot(i, v) {axis=1, dim=7}  out y", "f32[n,7]");
    REFUSES("in i i64[n]  in v f32[3]  y = one_hot(i, v) {dim=7}  out y", "3 elements where off and on");
    REFUSES("in i i64[n]  in v f32[2]  y = one_hot(i, v) {axis=2, dim=7}  out y", "out of range");
}

TEST(topk_orders)
{
    EXPECT("const x f32[2,4] = {1, 4, 4, 2, nan, 0, -inf, inf}  v, i = topk(x) {dim=3}  s, j = topk(x) "
           "{dim=2, largest=0}"
           "  out v  out i  out s  out j",
           "const v f32[2,3] = {4, 4, 2, nan, inf, 0}  const i i64[2,3] = {1, 2, 3, 0, 3, 1}"
           "  const s f32[2,2] = {1, 2, -inf, 0}  const j i64[2,2] = {0, 3, 2, 1}");
    EXPECT("const x i32[3,2] = {1, 6, 5, 4, 3, 2}  v, i = topk(x) {axis=0, dim=1}  out v  out i",
           "const v i32[1,2] = {5, 6}  const i i64[1,2] = {1, 0}");
    EXPECT("const x f32[3] = {1, 2, 3}  v, i = topk(x) {dim=0}  out v  out i",
           "const v f32[0] = {}  const i i64[0] = {}");
    REFUSES("in x f32[3]  v, i = topk(x) {dim=4}  out v", "k is 4 but axis 0 has 3");
    INFERS("in x f32[n,9]  v, i = topk(x) {dim=k}  out v  out i", "f32[n,k] i64[n,k]");
}

TEST(nonzero_finds)
{
    EXPECT("const x f32[2,2] = {1, 0, nan, -0}  i, n = nonzero(x)  out i  out n",
           "const i i64[2,2] = {0, 1, 0, 0}  const n i64[] = {2}");
    EXPECT("const x bool[3] = {0, 0, 0}  i, n = nonzero(x)  out i  out n",
           "const i i64[1,0] = {}  const n i64[] = {0}");
    /* what follows sees the extent */
    EXPECT("const x i32[4] = {0, 3, 0, 5}  i, n = nonzero(x)  y = neg(i)  out y",
           "const y i64[1,2] = {-1, -3}");
    INFERS("in x f32[2,3]  i, c = nonzero(x)  out i", "i64[2,c_0]");
}

TEST(compress_picks)
{
    EXPECT("const x f32[3,2] = {1, 2, 3, 4, 5, 6}  const c bool[3] = {0, 1, 1}  y, n = compress(x, c)  out y "
           " out n",
           "const y f32[2,2] = {3, 4, 5, 6}  const n i64[] = {2}");
    EXPECT("const x f32[3,2] = {1, 2, 3, 4, 5, 6}  const c bool[2] = {0, 1}  y, n = compress(x, c) {axis=1}  "
           "out y  out n",
           "const y f32[3,1] = {2, 4, 6}  const n i64[] = {1}");
    EXPECT("const x f32[3,2] = {1, 2, 3, 4, 5, 6}  const c bool[5] = {0, 1, 0, 0, 1}  y, n = compress(x, c) "
           "{flat=1}  out y",
           "const y f32[2] = {2, 5}");
    REFUSES("in x f32[3]  in c bool[4]  y, n = compress(x, c)  out y", "4 entries for 3 elements");
    REFUSES("in x f32[3]  in c i32[3]  y, n = compress(x, c)  out y", "bool");
}

TEST(unique_sorts)
{
    EXPECT(
        "const x f32[6] = {2, 1, 1, 3, 4, 3}  y, f, i, c, n = unique(x)  out y  out f  out i  out c  out n",
        "const y f32[4] = {1, 2, 3, 4}  const f i64[4] = {1, 0, 3, 4}  const i i64[6] = {1, 0, 0, 2, 3, 2}"
        "  const c i64[4] = {2, 1, 2, 1}  const n i64[] = {4}");
    EXPECT("const x f32[6] = {2, 1, 1, 3, 4, 3}  y, f, i, c, n = unique(x) {sorted=0}  out y  out f  out i  "
           "out c",
           "const y f32[4] = {2, 1, 3, 4}  const f i64[4] = {0, 1, 3, 4}  const i i64[6] = {0, 1, 1, 2, 3, "
           "2}  const c i64[4] = {1, 2, 2, 1}");
    EXPECT("const x f32[3,3] = {1, 0, 0, 1, 0, 0, 2, 3, 4}  y, f, i, c, n = unique(x) {axis=0, flat=0}  out "
           "y  out f  out i  out c",
           "const y f32[2,3] = {1, 0, 0, 2, 3, 4}  const f i64[2] = {0, 2}  const i i64[3] = {0, 0, 1}  "
           "const c i64[2] = {2, 1}");
    EXPECT("const x f32[2,2] = {3, 3, 1, 1}  y, f, i, c, n = unique(x) {axis=1, flat=0}  out y",
           "const y f32[2,1] = {3, 1}");
    EXPECT("const x f32[0] = {}  y, f, i, c, n = unique(x)  out y  out n",
           "const y f32[0] = {}  const n i64[] = {0}");
    EXPECT("const x f32[3] = {nan, 1, nan}  y, f, i, c, n = unique(x)  out y  out c",
           "const y f32[2] = {1, nan}  const c i64[2] = {1, 2}");
}

#define BOXES                                                                                                \
    "const b f32[1,6,4] = {0, 0, 1, 1,  0, 0.1, 1, 1.1,  0, -0.1, 1, 0.9,  0, 10, 1, 11,  0, 10.1, 1, 11.1," \
    "  0, 100, 1, 101}  "
#define SCORES "const s f32[1,1,6] = {0.9, 0.75, 0.6, 0.95, 0.5, 0.3}  "

TEST(nms_suppresses)
{
    EXPECT(BOXES SCORES "const m i64[1] = {3}  const u f32[1] = {0.5}  const t f32[1] = {0}  y, n = nms(b, "
                        "s, m, u, t)  out y  out n",
           "const y i64[3,3] = {0, 0, 3, 0, 0, 0, 0, 0, 5}  const n i64[] = {3}");
    EXPECT(BOXES SCORES "const m i64[1] = {3}  const u f32[1] = {0.5}  const t f32[1] = {0.4}  y, n = nms(b, "
                        "s, m, u, t)  out y",
           "const y i64[2,3] = {0, 0, 3, 0, 0, 0}");
    EXPECT(BOXES SCORES "y, n = nms(b, s)  out y", "const y i64[0,3] = {}");
    /* corners swapped, and a count far beyond the boxes: onnx-mlir 1035 */
    EXPECT("const b f32[1,6,4] = {1, 1, 0, 0,  0, 0.1, 1, 1.1,  0, 0.9, 1, -0.1,  0, 10, 1, 11,  1, 10.1, 0, "
           "11.1,  1, 101, 0, 100}  " SCORES
           "const m i64[] = {1501274884}  const u f32[] = {0.5}  y, n = nms(b, s, m, u)  out y",
           "const y i64[3,3] = {0, 0, 3, 0, 0, 0, 0, 0, 5}");
    EXPECT("const b f32[1,2,4] = {0.5, 0.5, 1, 1,  0.5, 0.6, 1, 1}  const s f32[1,1,2] = {0.5, 0.9}  const m "
           "i64[] = {9}"
           "  const u f32[] = {0.5}  y, n = nms(b, s, m, u) {center_point_box=1}  out y",
           "const y i64[1,3] = {0, 0, 1}");
    REFUSES("in b f32[1,6,4]  in s f32[1,2,5]  y, n = nms(b, s)  out y", "axis 1 of operand 0 is 6");
    REFUSES("in b f32[1,6,3]  in s f32[1,2,6]  y, n = nms(b, s)  out y", "3 coordinates");
}

TEST(nms_batches_alike)
{
    /* equal batches give equal picks: ORT 1610 */
    EXPECT("const b f32[2,2,4] = {0, 0, 1, 1,  0, 5, 1, 6,  0, 0, 1, 1,  0, 5, 1, 6}  const s f32[2,1,2] = "
           "{0.2, 0.8, 0.2, 0.8}"
           "  const m i64[] = {2}  const u f32[] = {0.5}  y, n = nms(b, s, m, u)  out y",
           "const y i64[4,3] = {0, 0, 1, 0, 0, 0, 1, 0, 1, 1, 0, 0}");
}
