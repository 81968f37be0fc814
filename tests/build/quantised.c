/* Quantised graphs: what the engine computes is what evaluation computes. */
#include "harness.h"
#include "run_graph.h"

/* Scales are powers of two: every sum and quotient is exact, so no bin may differ. */
#define QUANTISED                                                                                                         \
    "in f u8[1,16,9,10]  const w i8[24,16,3,3]  const v i8[24,1,3,3]  const s f32[] = {0.0625}  const t f32[] = {0.25}\n"  \
    "const u f32[] = {16}  const z u8[] = {131}\n"                                                                         \
    "x = dequantize(f, s, z)  a = dequantize(w, t)  p = conv(x, a) {pad_begin=[1,1], pad_end=[1,1]}\n"                     \
    "q = quantize(p, u, z) {to=u8}  d = dequantize(q, u, z)  b = dequantize(v, t)\n"                                       \
    "c = conv(d, b) {group=24, pad_begin=[1,1], pad_end=[1,1]}  e = quantize(c, u, z) {to=u8}  g = dequantize(e, u, z)\n"

TEST(quantised_blocks)
{
    static const char *const text[] = {
        QUANTISED "r = add(d, g)  y = quantize(r, u, z) {to=u8}\nout y",
        QUANTISED "r = add(g, d)  y = quantize(r, u, z) {to=u8}  h = dequantize(y, u, z)  m = relu(h)\nout y  out m  out e",
        QUANTISED "r = add(d, g)  y = quantize(r, u, z) {to=u8}  h = dequantize(y, u, z)\n"
                  "m = avg_pool(h) {kernel=[2,2], stride=[2,2], dim=[4,5]}  n = quantize(m, u, z) {to=u8}\nout n",
        QUANTISED "r = add(d, g)  y = quantize(r, u, z) {to=u8}  h = dequantize(y, u, z)\n"
                  "m = max_pool(h) {kernel=[3,3], stride=[2,2], pad_begin=[1,1], pad_end=[1,1], dim=[5,5]}\n"
                  "n = quantize(m, u, z) {to=u8}\nout n",
        QUANTISED "y = dequantize(e, u, z)  r = reduce_sum(y) {axes=[2,3]}\nout r  out d",
        QUANTISED "i = reshape(g) {dim=[1,24,90]}  k = reshape(d) {dim=[1,24,90]}  y = mul(i, k)\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        hn_check_graph(text[i], &(hn_run_opts){ .tol = 1e-7 });
        hn_check_graph(text[i], &(hn_run_opts){ .tol = 1e-7, .route = "-region:widen=0 -layout:image=2" });
        hn_check_graph(text[i], &(hn_run_opts){ .tol = 1e-7, .route = "-pass:quantized=0" });
    }
}

/* Regions of one form share an emission: what it packs of operands is each region's own. */
TEST(zero_points_of_equal_regions)
{
    hn_check_graph("in x u8[5,8]  in y u8[5,8]  const w u8[8,3]  const a u8[3] = {1,200,3}  const b u8[3] = {128,128,128}\n"
                   "const z u8[] = {7}\np = matmul_int(x, w, z, a)  q = matmul_int(y, w, z, b)\nout p  out q",
                   NULL);
    hn_check_graph("in x i8[1,4,5,6]  in y i8[1,4,5,6]  const w u8[8,4,1,1]  const a u8[8] = {1,200,3,4,5,6,7,8}\n"
                   "const b u8[8] = {128,128,128,128,128,128,128,128}\n"
                   "const z i8[] = {3}\np = conv_int(x, w, z, a)  q = conv_int(y, w, z, b)\nout p  out q",
                   NULL);
}
