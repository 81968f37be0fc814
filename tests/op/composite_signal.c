/* Fourier transforms, determinants. */
#include "composite_test.h"

#include <stdio.h>

TEST(dft_expands)
{
    static const char *const lengths[] = { "1", "2", "5", "8", "60", "128", "150", "67", "n" };
    char text[256];

    for (int i = 0; i < HN_COUNT(lengths); i++)
        for (int inverse = 0; inverse < 2; inverse++) {
            snprintf(text, sizeof(text), "sym n  in x f32[2,%s,2]  y = dft(x) {axis=1, inverse=%d}  out y",
                     lengths[i], inverse);
            EXPANDS(text, "n=9", i < 4 ? E_HALF : 0);
            snprintf(text, sizeof(text),
                     "sym n  in x f32[%s,2,1]  y = dft(x) {axis=0, inverse=%d, onesided=%d}  out y",
                     lengths[i], inverse, !inverse);
            EXPANDS(text, "n=6", 0);
        }
    EXPANDS("in x f32[2,3,4,2]  y = dft(x) {axis=-2}  out y", "", 0);
    EXPANDS("in x f32[2,9,2]  y = dft(x) {axis=1, dim=5}  out y", "", 0);
    REFUSES("sym p  in x f32[2,9,p]  y = dft(x) {axis=1}  out y", "known number of parts");
    REFUSES("in x f32[2,9,3]  y = dft(x) {axis=1}  out y", "1 or 2 parts");
    EXPANDS("in x f32[2,9,2]  y = dft(x) {axis=1, dim=14, inverse=1}  out y", "", 0);
    EXPANDS("sym n  sym m  in x f32[2,n,1]  in pin f32[m]  y = dft(x) {axis=1, dim=m, onesided=1}  out y  "
            "out pin",
            "n=4 m=7", 0);
    EXPANDS("sym n  sym m  in x f32[2,n,1]  in pin f32[m]  y = dft(x) {axis=1, dim=m, onesided=1}  out y  "
            "out pin",
            "n=8 m=6", 0);
}

/* A half spectrum back to real numbers: the half's first (and, for even lengths, last) element is taken as it
 * stands. */
TEST(dft_onesided_inverse_expands)
{
    EXPANDS("in x f32[2,5,2]  y = dft(x) {axis=1, inverse=1, onesided=1}  out y", "", E_HALF);
    EXPANDS("in x f32[2,5,2]  y = dft(x) {axis=1, inverse=1, onesided=1, dim=9}  out y", "", 0);
    EXPANDS("sym n  in x f32[2,n,2]  y = dft(x) {axis=1, inverse=1, onesided=1}  out y", "n=4", 0);
    EXPANDS("in x f32[2,4,2]  y = dft(x) {axis=1, inverse=1, onesided=1, dim=9}  out y", "", 0);
    EXPECT_NEAR(
        "const x f32[1,3,2] = {10, 0, -2, 2, -2, 0}  y = dft(x) {axis=1, inverse=1, onesided=1}  out y",
        "const y f32[1,4,1] = {1, 2, 3, 4}", 1e-6);
}

TEST(dft_by_hand)
{
    EXPECT_NEAR("const x f32[4,1] = {1, 2, 3, 4}  y = dft(x) {axis=0}  z = dft(y) {axis=0, inverse=1}  h = "
                "dft(x) {axis=0, onesided=1}  out y  out z  out h",
                "const y f32[4,2] = {10, 0, -2, 2, -2, 0, -2, -2}  const z f32[4,2] = {1, 0, 2, 0, 3, 0, 4, "
                "0}  const h f32[3,2] = {10, 0, -2, 2, -2, 0}",
                1e-6);
    REFUSES("in x f32[4,2]  y = dft(x) {axis=1}  out y", "imaginary");
    REFUSES("in x f32[4,3]  y = dft(x) {axis=0}  out y", "parts");
    REFUSES("in x f32[4,2]  y = dft(x) {axis=0, onesided=1}  out y", "half");
    REFUSES("in x f32[4,2]  y = dft(x) {axis=2}  out y", "axis");
}

TEST(stft_expands)
{
    EXPANDS("in x f32[2,20,1]  in w f32[8]  y = stft(x, w) {step=3, length=8}  out y", "", E_HALF);
    EXPANDS("sym n  in x f32[2,n]  y = stft(x) {step=4, length=5}  out y", "n=21", 0);
    EXPANDS("in x f32[1,12,2]  in w f32[6]  y = stft(x, w) {step=2, length=6, onesided=0}  out y", "", 0);
    INFERS("sym n  in x f32[1,n,1]  y = stft(x) {step=2, length=4}  out y", "f32[1,floordiv(n,2)-1,3,2]");
    REFUSES("in x f32[1,12,2]  y = stft(x) {step=2, length=6}  out y", "half");
    REFUSES("in x f32[1,12,1]  in w f32[5]  y = stft(x, w) {step=2, length=6}  out y", "window");
    REFUSES("in x f32[1,12,1]  y = stft(x) {step=0, length=6}  out y", "step");
    REFUSES("in x f32[1,3,1]  y = stft(x) {step=1, length=6}  out y", "frames");
}

TEST(det_expands)
{
    static const char *const sizes[] = { "0", "1", "2", "3", "4", "7", "m" };
    char text[256];

    for (int i = 0; i < HN_COUNT(sizes); i++) {
        snprintf(text, sizeof(text), "sym m  in x f32[2,3,%s,%s]  y = det(x)  out y", sizes[i], sizes[i]);
        EXPANDS(text, "m=5", E_HALF);
        snprintf(text, sizeof(text), "sym m  in x f32[%s,%s]  y = det(x)  out y", sizes[i], sizes[i]);
        EXPANDS(text, "m=2", 0);
    }
    EXPECT("const x f32[2,2,2] = {1, 2, 3, 4, 0, 1, 1, 0}  y = det(x)  out y", "const y f32[2] = {-2, -1}");
    EXPECT_NEAR("const x f32[4,4] = {0,0,0,2, 0,0,3,0, 0,5,0,0, 7,0,0,0}  y = det(x)  out y",
                "const y f32 = {210}", 1e-6);
    REFUSES("in x f32[2,3]  y = det(x)  out y", "square");
    REFUSES("in x f32[2]  y = det(x)  out y", "rank");
    REFUSES("in x i32[2,2]  y = det(x)  out y", "");
}
