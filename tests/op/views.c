#include "op_test.h"

TEST(reshape_keeps_order)
{
    EXPECT("const x f32[2,3] = {1, 2, 3, 4, 5, 6}  y = reshape(x) {dim=[3, 2]}  out y",
           "const y f32[3,2] = {1, 2, 3, 4, 5, 6}");
    EXPECT("const x f32[0,3] = {}  y = reshape(x) {dim=[0, 7]}  out y", "const y f32[0,7] = {}");
    EXPECT("const x f32[1,1] = {5}  y = reshape(x)  out y", "const y f32[] = {5}");
    INFERS("in x f32[n,3]  y = reshape(x) {dim=[3, n]}  out y", "f32[3,n]");
    REFUSES("in x f32[2,3]  y = reshape(x) {dim=[4]}  out y", "6 elements does not reshape to 4");
    CONTENT("in x f32[n,3]  d = dims(x) {dim=[n]}  y = reshape(d)  out y", "n");
}

TEST(transpose_permutes)
{
    EXPECT("const x f32[2,3] = {1, 2, 3, 4, 5, 6}  y = transpose(x) {perm=[1, 0]}  out y",
           "const y f32[3,2] = {1, 4, 2, 5, 3, 6}");
    EXPECT("const x i8[1,2,2] = {1, 2, 3, 4}  y = transpose(x) {perm=[2, 0, 1]}  out y",
           "const y i8[2,1,2] = {1, 3, 2, 4}");
    EXPECT("const x f32[] = {3}  y = transpose(x)  out y", "const y f32[] = {3}");
    INFERS("in x f32[n,3,m]  y = transpose(x) {perm=[2, 0, 1]}  out y", "f32[m,n,3]");
    REFUSES("in x f32[2,3]  y = transpose(x) {perm=[0, 0]}  out y", "no permutation");
    REFUSES("in x f32[2,3]  y = transpose(x) {perm=[0]}  out y", "1 entries where 2 are needed");
    REFUSES("in x f32[2,3]  y = transpose(x) {perm=[0, 2]}  out y", "no permutation");
}

TEST(broadcast_repeats)
{
    EXPECT("const x f32[2,1] = {1, 2}  y = broadcast(x) {dim=[2, 2, 3]}  out y",
           "const y f32[2,2,3] = {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2}");
    EXPECT("const x f32[1] = {1}  y = broadcast(x) {dim=[0]}  out y", "const y f32[0] = {}");
    REFUSES("in x f32[2]  y = broadcast(x) {dim=[3]}  out y", "does not broadcast");
    REFUSES("in x f32[2,2]  y = broadcast(x) {dim=[2]}  out y", "does not broadcast");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  y = broadcast(d) {dim=[3]}  out y", "n n n");
}

TEST(slice_steps)
{
    EXPECT("const x i64[5] = {0, 1, 2, 3, 4}  y = slice(x) {start=[1], step=[2], dim=[2]}  out y",
           "const y i64[2] = {1, 3}");
    EXPECT("const x i64[5] = {0, 1, 2, 3, 4}  y = slice(x) {start=[4], step=[-1], dim=[5]}  out y",
           "const y i64[5] = {4, 3, 2, 1, 0}");
    EXPECT("const x bool[2,4] = {1, 0, 1, 0, 0, 1, 0, 1}  y = slice(x) {start=[0, 0], step=[1, 2], dim=[2, "
           "2]}  out y",
           "const y bool[2,2] = {1, 1, 0, 0}");
    EXPECT("const x i64[5] = {0, 1, 2, 3, 4}  y = slice(x) {start=[0], step=[-1], dim=[0]}  out y",
           "const y i64[0] = {}");
    REFUSES("in x f32[5]  y = slice(x) {start=[3], step=[1], dim=[3]}  out y", "the extent is 5");
    REFUSES("in x f32[5]  y = slice(x) {start=[0], step=[0], dim=[1]}  out y", "step of axis 0 is 0");
    REFUSES("in x f32[5]  y = slice(x) {start=[0, 0], step=[1], dim=[1]}  out y", "start has 2 entries");
    INFERS("in x f32[n]  y = slice(x) {start=[1], step=[1], dim=[n-1]}  out y", "f32[n-1]");
    CONTENT(
        "in x f32[n,m,3]  d = dims(x) {dim=[n, m, 3]}  y = slice(d) {start=[2], step=[-2], dim=[2]}  out y",
        "3 n");
}

TEST(pad_modes)
{
    EXPECT("const x f32[3] = {1, 2, 3}  const v f32[] = {9}  y = pad(x, v) {before=[1], after=[2]}  out y",
           "const y f32[6] = {9, 1, 2, 3, 9, 9}");
    EXPECT("const x f32[3] = {1, 2, 3}  y = pad(x) {mode=reflect, before=[2], after=[1]}  out y",
           "const y f32[6] = {3, 2, 1, 2, 3, 2}");
    EXPECT("const x f32[3] = {1, 2, 3}  y = pad(x) {mode=edge, before=[2], after=[1]}  out y",
           "const y f32[6] = {1, 1, 1, 2, 3, 3}");
    EXPECT("const x f32[3] = {1, 2, 3}  y = pad(x) {mode=wrap, before=[2], after=[1]}  out y",
           "const y f32[6] = {2, 3, 1, 2, 3, 1}");
    /* a reflection longer than the axis repeats, as numpy's does */
    EXPECT("const x f32[2] = {1, 2}  y = pad(x) {mode=reflect, before=[0], after=[3]}  out y",
           "const y f32[5] = {1, 2, 1, 2, 1}");
    EXPECT("const x f32[2,2] = {1, 2, 3, 4}  y = pad(x) {before=[-1, 1], after=[1, 0]}  out y",
           "const y f32[2,3] = {0, 3, 4, 0, 0, 0}");
    EXPECT("const x f32[0] = {}  y = pad(x) {before=[1], after=[1]}  out y", "const y f32[2] = {0, 0}");
    REFUSES("in x f32[4]  y = pad(x) {mode=reflect, before=[-3], after=[3]}  out y",
            "too few elements (1) to reflect");
    REFUSES("in x f32[4]  y = pad(x) {before=[-3], after=[-2]}  out y", "crop more than the 4 elements");
    REFUSES("in x f32[0]  y = pad(x) {mode=edge, before=[1], after=[0]}  out y", "too few");
    REFUSES("in x f32[4]  in v f32[2]  y = pad(x, v) {before=[0], after=[0]}  out y", "one element");
    INFERS("in x f32[n]  y = pad(x) {before=[1], after=[n]}  out y", "f32[2*n+1]");
}

TEST(concat_joins)
{
    EXPECT("const a f32[2,1] = {1, 2}  const b f32[2,2] = {3, 4, 5, 6}  y = concat(a, b) {axis=-1}  out y",
           "const y f32[2,3] = {1, 3, 4, 2, 5, 6}");
    EXPECT("const a f32[0] = {}  const b f32[2] = {3, 4}  y = concat(a, b) {axis=0}  out y",
           "const y f32[2] = {3, 4}");
    INFERS("in a f32[n,2]  in b f32[m,2]  y = concat(a, b, a) {axis=0}  out y", "f32[m+2*n,2]");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  const k i64[2] = {5, -1}  y = concat(k, d) {axis=0}  out y",
            "5 -1 n");
    REFUSES("in a f32[2]  in b f32[2,2]  y = concat(a, b) {axis=0}  out y", "rank 2 where rank 1");
    REFUSES("in a f32[2,2]  in b f32[3,3]  y = concat(a, b) {axis=0}  out y", "extent 3 on axis 1");
    REFUSES("in a f32[2]  in b i32[2]  y = concat(a, b) {axis=0}  out y", "differ in dtype");
    REFUSES("in a f32[2]  y = concat(a) {axis=1}  out y", "out of range for rank 1");
    REFUSES("in a f32[]  y = concat(a) {axis=0}  out y", "scalars");
}

TEST(diag_mask_triangles)
{
    EXPECT("const x f32[2,3] = {1, 2, 3, 4, 5, 6}  a = diag_mask(x) {upper=1, k=1}  b = diag_mask(x) "
           "{upper=0}  out a  out b",
           "const a f32[2,3] = {0, 2, 3, 0, 0, 6}  const b f32[2,3] = {1, 0, 0, 4, 5, 0}");
    EXPECT("const x f32[2,2] = {1, 2, 3, 4}  a = diag_mask(x) {upper=1, k=-5}  b = diag_mask(x) {upper=0, "
           "k=-1}  out a  out b",
           "const a f32[2,2] = {1, 2, 3, 4}  const b f32[2,2] = {0, 0, 3, 0}");
    EXPECT("const x f32[2,0] = {}  a = diag_mask(x)  out a", "const a f32[2,0] = {}");
    REFUSES("in x f32[2]  y = diag_mask(x)  out y", "rank 1 where rank 2");
}

TEST(dims_yields_shapes)
{
    EXPECT("const x f32[2,3] = {1, 2, 3, 4, 5, 6}  y = dims(x) {dim=[2, 3]}  out y",
           "const y i64[2] = {2, 3}");
    EXPECT("y = dims() {dim=[]}  out y", "const y i64[0] = {}");
    CONTENT("in x f32[n,3]  y = dims(x) {dim=[n+1, 3]}  out y", "n+1 3");
}

TEST(range_and_iota)
{
    EXPECT("const s i64[] = {10}  const d i64[] = {-3}  y = range(s, d) {dim=3}  out y",
           "const y i64[3] = {10, 7, 4}");
    EXPECT("const s f32[] = {0.5}  const d f32[] = {0.25}  y = range(s, d) {dim=3}  out y",
           "const y f32[3] = {0.5, 0.75, 1}");
    EXPECT("y = iota() {dtype=i32, dim=[2, 3], axis=0}  z = iota() {dtype=f32, dim=[2, 2], axis=-1}  out y  "
           "out z",
           "const y i32[2,3] = {0, 0, 0, 1, 1, 1}  const z f32[2,2] = {0, 1, 0, 1}");
    CONTENT("in x f32[n]  d = dims(x) {dim=[n]}  s = reshape(d)  const e i64[] = {2}  y = range(s, e) "
            "{dim=2}  out y",
            "n n+2");
    REFUSES("in s f32[]  in d i32[]  y = range(s, d) {dim=3}  out y", "differ in dtype");
    REFUSES("y = iota() {dtype=bool, dim=[2], axis=0}  out y", "does not fit bool");
    REFUSES("y = iota() {dim=[2], axis=1}  out y", "out of range");
}
