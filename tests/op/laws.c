/* Laws that tie ops to one another, on pseudo-random constants: each op against others that share none of its
 * code. */
#include "op_test.h"

#include <stdio.h>

/* The graph's f64 values `a` and `b`, of this rank, differ by at most tol anywhere. */
static void equal(hn_test *t, int line, const char *text, int rank, double tol)
{
    static const char *const axes[] = { "[]", "[0]", "[0, 1]", "[0, 1, 2]", "[0, 1, 2, 3]" };
    char whole[4096];

    snprintf(whole, sizeof(whole),
             "%s\ndiff = sub(a, b)  far = abs(diff)  most = reduce_max(far) {axes=%s, keepdims=0}  out most",
             text, axes[rank]);
    op_expect_at(__FILE__, line, t, whole, "const y f64[] = {0}", tol);
}

#define EQUAL(rank, text)       equal(t, __LINE__, text, rank, 0)
#define NEARLY(rank, tol, text) equal(t, __LINE__, text, rank, tol)

TEST(matmul_is_products_summed)
{
    NEARLY(3, 1e-12,
           "const x f64[3,5,7]  const w f64[7,4]  a = matmul(x, w)  p = reshape(x) {dim=[3, 5, 7, 1]}"
           "  q = reshape(w) {dim=[1, 1, 7, 4]}  r = mul(p, q)  b = reduce_sum(r) {axes=[2], keepdims=0}");
    NEARLY(3, 1e-12,
           "const x f64[2,7,5]  const w f64[1,300,7]  a = matmul(x, w) {trans_a=1, trans_b=1}"
           "  xt = transpose(x) {perm=[0, 2, 1]}  wt = transpose(w) {perm=[0, 2, 1]}  b = matmul(xt, wt)");
    NEARLY(2, 1e-11,
           "const x f64[9,130]  const w f64[130,270]  a = matmul(x, w)  p = reshape(x) {dim=[9, 130, 1]}"
           "  q = reshape(w) {dim=[1, 130, 270]}  r = mul(p, q)  b = reduce_sum(r) {axes=[1], keepdims=0}");
}

/* <conv(x), y> == <x, conv_transpose(y)> over strides, dilations, pads and groups. */
TEST(conv_transpose_is_the_adjoint)
{
    static const struct {
        int stride, dilation, begin, end, group, out_pad;
    } at[] = { { 1, 1, 0, 0, 1, 0 }, { 2, 1, 1, 1, 1, 1 }, { 2, 2, 2, 1, 2, 0 },
               { 3, 1, 0, 2, 2, 0 }, { 1, 3, 3, 3, 1, 0 }, { 2, 1, 1, 1, 4, 1 } };
    for (int i = 0; i < HN_COUNT(at); i++) {
        const int h = 12, reach = 2 * at[i].dilation + 1;
        const int out = (h + at[i].begin + at[i].end - reach) / at[i].stride + 1;
        const int back = (out - 1) * at[i].stride + reach - at[i].begin - at[i].end;
        char text[2048];
        snprintf(text, sizeof(text),
                 "const x f64[2,4,%d,%d]  const w f64[8,%d,3,3]  const g f64[2,8,%d,%d]\n"
                 "c = conv(x, w) {stride=[%d, %d], dilation=[%d, %d], pad_begin=[%d, %d], pad_end=[%d, %d], "
                 "group=%d}\n"
                 "p = mul(c, g)  a = reduce_sum(p) {axes=[0, 1, 2, 3], keepdims=0}\n"
                 "v = conv_transpose(g, w) {stride=[%d, %d], dilation=[%d, %d], pad_begin=[%d, %d], "
                 "pad_end=[%d, %d],"
                 " group=%d, out_pad=[%d, %d]}\n"
                 "q = mul(x, v)  b = reduce_sum(q) {axes=[0, 1, 2, 3], keepdims=0}",
                 h, h, 4 / at[i].group, out, out, at[i].stride, at[i].stride, at[i].dilation, at[i].dilation,
                 at[i].begin, at[i].begin, at[i].end, at[i].end, at[i].group, at[i].stride, at[i].stride,
                 at[i].dilation, at[i].dilation, at[i].begin, at[i].begin, at[i].end, at[i].end, at[i].group,
                 h - back, h - back);
        equal(t, __LINE__, text, 0, 1e-9);
    }
}

TEST(conv_of_one_is_a_product)
{
    NEARLY(3, 1e-12,
           "const x f64[2,5,9]  const w f64[4,5,1]  a = conv(x, w)  m = reshape(w) {dim=[1, 4, 5]}  b = "
           "matmul(m, x)");
    NEARLY(3, 1e-12,
           "const x f64[1,6,9]  const w f64[4,3,2]  a = conv(x, w) {group=2}"
           "  x0 = slice(x) {start=[0, 0, 0], step=[1, 1, 1], dim=[1, 3, 9]}"
           "  x1 = slice(x) {start=[0, 3, 0], step=[1, 1, 1], dim=[1, 3, 9]}"
           "  w0 = slice(w) {start=[0, 0, 0], step=[1, 1, 1], dim=[2, 3, 2]}"
           "  w1 = slice(w) {start=[2, 0, 0], step=[1, 1, 1], dim=[2, 3, 2]}"
           "  c0 = conv(x0, w0)  c1 = conv(x1, w1)  b = concat(c0, c1) {axis=1}");
}

TEST(pools_are_known_otherwise)
{
    NEARLY(4, 1e-12,
           "const x f64[1,1,7,9]  const w f64[1,1,2,3] = {1, 1, 1, 1, 1, 1}  const six f64[] = {6}"
           "  a = avg_pool(x) {kernel=[2, 3], stride=[2, 1], pad_begin=[1, 1], pad_end=[0, 1], dim=[4, 9], "
           "count_include_pad=1}"
           "  c = conv(x, w) {stride=[2, 1], pad_begin=[1, 1], pad_end=[0, 1]}  b = div(c, six)");
    /* the indices point at the maxima */
    EQUAL(4, "const x f64[2,3,6,5]"
             "  a, i = max_pool(x) {kernel=[3, 2], stride=[2, 2], dilation=[2, 1], pad_begin=[1, 0], "
             "pad_end=[1, 1], dim=[2, 3]}"
             "  f = reshape(x) {dim=[180]}  b = gather(f, i)");
    EQUAL(3, "const x f64[1,2,8]  a = max_pool(x) {kernel=[2], stride=[2], dim=[4]}  r = reshape(x) {dim=[1, "
             "2, 4, 2]}"
             "  b = reduce_max(r) {axes=[3], keepdims=0}");
    NEARLY(3, 1e-12,
           "const x f64[1,2,8]  a = lp_pool(x) {kernel=[2], stride=[2], dim=[4]}  r = reshape(x) {dim=[1, 2, "
           "4, 2]}"
           "  b = reduce_l2(r) {axes=[3], keepdims=0}");
}

TEST(views_undo_one_another)
{
    EQUAL(3, "const b f64[3,4,5]  p = transpose(b) {perm=[2, 0, 1]}  a = transpose(p) {perm=[1, 2, 0]}");
    EQUAL(2, "const b f64[3,4]  p = pad(b) {mode=wrap, before=[2, 1], after=[0, 5]}  a = pad(p) {before=[-2, "
             "-1], after=[0, -5]}");
    EQUAL(2, "const b f64[3,4]  p = slice(b) {start=[0, 0], step=[1, 1], dim=[3, 1]}"
             "  q = slice(b) {start=[0, 1], step=[1, 1], dim=[3, 3]}  a = concat(p, q) {axis=1}");
    EQUAL(2, "const b f64[3,4]  p = slice(b) {start=[2, 3], step=[-1, -1], dim=[3, 4]}"
             "  a = slice(p) {start=[2, 3], step=[-1, -1], dim=[3, 4]}");
    EQUAL(2, "const x f64[4,1]  p = broadcast(x) {dim=[4, 3]}  a = reduce_max(p) {axes=[1]}  b = "
             "reduce_min(x) {axes=[1]}");
    EQUAL(
        2,
        "const b f64[5,5]  u = diag_mask(b) {upper=1, k=1}  l = diag_mask(b) {upper=0, k=0}  a = add(u, l)");
}

TEST(reductions_split)
{
    NEARLY(0, 1e-11,
           "const x f64[4,5,6]  a = reduce_sum(x) {axes=[0, 1, 2], keepdims=0}  p = reduce_sum(x) {axes=[1], "
           "keepdims=0}"
           "  b = reduce_sum(p) {axes=[0, 1], keepdims=0}");
    EQUAL(1,
          "const x f64[4,5,6]  a = reduce_max(x) {axes=[0, 2], keepdims=0}  q = transpose(x) {perm=[1, 0, 2]}"
          "  r = reshape(q) {dim=[5, 24]}  b = reduce_max(r) {axes=[1], keepdims=0}");
    NEARLY(1, 1e-12,
           "const x f64[4,5]  a = reduce_log_sum_exp(x) {axes=[1], keepdims=0}  p = exp(x)  b = "
           "reduce_log_sum(p) {axes=[1], keepdims=0}");
    NEARLY(2, 1e-12,
           "const x f64[3,6]  a = cumsum(x) {axis=1}  const one f64[] = {1}  o = broadcast(one) {dim=[6, 6]}"
           "  u = diag_mask(o) {upper=1}  b = matmul(x, u)");
    EQUAL(2, "const x f64[3,6]  a = reduce_max(x) {axes=[1]}  i = arg_max(x) {axis=1}  b = "
             "gather_elements(x, i) {axis=1}");
    EQUAL(2, "const x f64[3,6]  a = reduce_min(x) {axes=[0]}  i = arg_min(x) {axis=0}  b = "
             "gather_elements(x, i) {axis=0}");
}

TEST(indices_round_trip)
{
    EQUAL(2, "const x f64[4,6]  b, i = topk(x) {axis=1, dim=6}  a = gather_elements(x, i) {axis=1}");
    EQUAL(2, "const x f64[4,6]  b, i = topk(x) {axis=0, dim=3, largest=0}  n = neg(x)  p, j = topk(n) "
             "{axis=0, dim=3}  a = neg(p)");
    EQUAL(2, "const b f64[4,6]  const x f64[4,6]  s, i = topk(x) {axis=1, dim=6}  u = gather_elements(b, i) "
             "{axis=1}"
             "  a = scatter_elements(x, i, u) {axis=1}");
    EQUAL(1, "const x f64[3,4]  const z f64[] = {0}  c = gt(x, z)  i, n = nonzero(c)  q = transpose(i) "
             "{perm=[1, 0]}"
             "  a = gather_nd(x, q)  f = reshape(c) {dim=[12]}  b, k = compress(x, f) {flat=1}");
    EQUAL(1, "const b f64[9]  u, f, v, c, n = unique(b)  a = gather(u, v)");
    EQUAL(2, "const k i64[5] = {3, 0, 2, 2, 1}  const v f64[2] = {0, 1}  a = one_hot(k, v) {dim=4}"
             "  i = iota() {dtype=i64, dim=[1, 4], axis=1}  r = reshape(k) {dim=[5, 1]}  e = eq(r, i)  b = "
             "cast(e) {to=f64}");
    EQUAL(3, "const x f64[4,6]  const k i64[2,3] = {1, -1, 0, 5, 2, 3}  a = gather(x, k) {axis=1}"
             "  q = transpose(x) {perm=[1, 0]}  r = reshape(k) {dim=[2, 3, 1]}  g = gather_nd(q, r)  b = "
             "transpose(g) {perm=[2, 0, 1]}");
}

TEST(integers_agree_with_floats)
{
    EQUAL(2, "const x i8[7,33]  const w i8[33,5]  const zx i8[7]  const zw i8[5]  m = matmul_int(x, w, zx, "
             "zw)  a = cast(m) {to=f64}"
             "  p = cast(x) {to=f64}  q = cast(w) {to=f64}  r = cast(zx) {to=f64}  s = cast(zw) {to=f64}"
             "  k = reshape(r) {dim=[7, 1]}  u = sub(p, k)  v = sub(q, s)  b = matmul(u, v)");
    EQUAL(4, "const x u8[1,4,6,6]  const w i8[6,2,3,3]  const z u8[]  m = conv_int(x, w, z) {group=2, "
             "pad_begin=[1, 1], pad_end=[1, 1]}"
             "  a = cast(m) {to=f64}  p = cast(x) {to=f64}  q = cast(w) {to=f64}  r = cast(z) {to=f64}  u = "
             "sub(p, r)"
             "  b = conv(u, q) {group=2, pad_begin=[1, 1], pad_end=[1, 1]}");
}
