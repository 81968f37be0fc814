/* Direct and depthwise convolution kernels against evaluation: layouts, strides, padding, groups, edges of
 * tiles. */
#include <stdio.h>
#include <string.h>

#include "fast_run.h"

static const char *text_of(hn_test *t, const char *x, const char *w, const char *attrs, int oc)
{
    return hn_arena_printf(
        t->arena, "in x f32[%s]  in w f32[%s]  in b f32[%d]\nc = conv(x, w, b) {%s}\ny = relu(c)\nout y", x,
        w, oc, attrs);
}

#define DIRECT    "conv_f32_direct__cpu"
#define DEPTHWISE "depthwise_f32_rows__cpu"

TEST(direct_three_by_three)
{
    const char *text = text_of(t, "2,20,13,15", "40,20,3,3", "pad_begin=[1,1], pad_end=[1,1]", 40);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .n_point = 14 }, DIRECT);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .n_point = 4 }, DIRECT);
}

/* Cut into blocks at every level of the loops over taps: inside a run of channels, at its rows, at the planes. */
TEST(direct_long_sums)
{
    const struct {
        const char *x, *w, *attrs;
        double tol;
    } row[] = { { "1,2300,4,5", "24,2300,1,1", "", 4e-7 },
                { "1,130,6,7", "24,130,3,3", "pad_begin=[1,1], pad_end=[1,1]", 4e-7 },
                { "1,41,9,9", "24,41,5,5", "stride=[2,1]", 4e-7 },
                { "1,50,9,9", "24,50,3,3", "", 2.4e-7 }, /* of 450 taps: in blocks of 128 */
                { "1,500,5,5", "24,500,1,1", "", 2.4e-7 } };
    for (int i = 0; i < HN_COUNT(row); i++) {
        const char *text = text_of(t, row[i].x, row[i].w, row[i].attrs, 24);
        fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .tol = row[i].tol, .n_point = 5 }, DIRECT);
        fast_check(t, &(fast_case){ .text = text, .root = "conv", .tol = row[i].tol, .n_point = 3 }, DIRECT);
    }
}

TEST(direct_strided_and_dilated)
{
    const char *text = text_of(t, "1,17,19,23", "33,17,3,5",
                               "stride=[2,3], dilation=[2,1], pad_begin=[2,1], pad_end=[1,3]", 33);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DIRECT);
    text = text_of(t, "1,9,12,17", "16,9,3,3", "stride=[1,2], dilation=[1,3]", 16);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DIRECT);
}

TEST(direct_one_by_one)
{
    const char *text = text_of(t, "3,37,7,9", "50,37,1,1", "", 50);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .n_point = 14 }, DIRECT);
    text = text_of(t, "1,24,14,14", "24,24,1,1", "stride=[2,2]", 24);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DIRECT);
}

TEST(direct_first_layer)
{
    const char *text =
        text_of(t, "1,3,31,33", "24,3,7,7", "stride=[2,2], pad_begin=[3,3], pad_end=[3,3]", 24);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .plain = "x" }, DIRECT);
    text = text_of(t, "2,1,16,20", "8,1,3,3", "stride=[1,1]", 8);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .plain = "x" }, DIRECT);
}

TEST(direct_blocked)
{
    const char *text = text_of(t, "2,32,9,10", "48,32,3,3", "pad_begin=[1,1], pad_end=[1,1]", 48);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "abcd16b" }, DIRECT);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "abcd8b", .n_point = 4 }, DIRECT);
    text = text_of(t, "1,64,7,7", "32,32,1,3", "group=2, pad_begin=[0,1], pad_end=[0,1]", 32);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "abcd16b", .n_point = 4 }, DIRECT);
}

TEST(direct_groups_and_few_channels)
{
    const char *text = text_of(t, "1,12,11,11", "30,4,3,3", "group=3, pad_begin=[1,1], pad_end=[1,1]", 30);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DIRECT);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .n_point = 4 }, DIRECT);
    text = text_of(t, "1,32,12,12", "2,32,3,3", "pad_begin=[1,1], pad_end=[1,1]", 2);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DIRECT);
}

TEST(direct_one_dimension)
{
    const char *text =
        text_of(t, "2,18,57", "20,18,5", "stride=[2], dilation=[2], pad_begin=[4], pad_end=[3]", 20);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acb" }, DIRECT);
    text = text_of(t, "1,1,400", "16,1,25", "stride=[5], pad_begin=[12], pad_end=[12]", 16);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acb", .plain = "x" }, DIRECT);
}

/* One kernel for every extent: rows shorter and longer than its tiles. */
TEST(direct_symbolic)
{
    static const char text[] = "sym h [1,14,99]  sym n [1,1,9]\nin x f32[n,16,h,h]  in w f32[32,16,3,3]  in "
                               "b f32[32]  in z f32[n,32,h,h]\n"
                               "c = conv(x, w, b) {pad_begin=[1,1], pad_end=[1,1]}\ny = add(c, z)\nout y";
    for (int64_t s = 1; s <= 31; s += 6)
        fast_check(t,
                   &(fast_case){
                       .text = text, .root = "conv", .layout = "acdb", .sym = s > 4 ? 0 : s, .n_point = 3 },
                   DIRECT);
    static const char one[] =
        "sym h [1,14,99]\nin x f32[2,16,h,h]  in w f32[32,16,1,1]\nc = conv(x, w)\ny = relu(c)\nout y";
    for (int64_t s = 1; s <= 31; s += 6)
        fast_check(t, &(fast_case){ .text = one, .root = "conv", .layout = "acdb", .sym = s, .n_point = 3 },
                   DIRECT);
}

TEST(direct_transposed)
{
    static const char *const text[] = {
        "in x f32[2,24,5,6]  in w f32[24,20,2,2]  in b f32[20]\nc = conv_transpose(x, w, b) {stride=[2,2]}  "
        "y = relu(c)\nout y",
        "in x f32[1,16,7,5]  in w f32[16,9,3,3]\nc = conv_transpose(x, w) {stride=[2,1], pad_begin=[1,1], "
        "pad_end=[1,1], out_pad=[1,0]}\nout c",
        "in x f32[1,8,4,4]  in w f32[8,12,5,4]\nc = conv_transpose(x, w) {stride=[3,2], pad_begin=[2,0], "
        "pad_end=[1,1]}\nout c",
        "in x f32[1,8,4,4]  in w f32[8,12,1,2]\nc = conv_transpose(x, w) {stride=[2,3], out_pad=[1,2]}\nout "
        "c",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "conv_transpose", .layout = "acdb" }, DIRECT);
    fast_check(t, &(fast_case){ .text = text[0], .root = "conv_transpose" }, DIRECT);
    fast_check(t,
               &(fast_case){ .text = "in x f32[2,8,14]  in w f32[8,12,8]\nc = conv_transpose(x, w) "
                                     "{stride=[4], pad_begin=[2], pad_end=[2]}\nout c",
                             .root = "conv_transpose",
                             .layout = "acb" },
               DIRECT);
}

TEST(direct_transposed_symbolic)
{
    static const char text[] =
        "sym h [1,14,99]\nin x f32[1,8,h,h]  in w f32[8,12,4,2]\n"
        "c = conv_transpose(x, w) {stride=[2,2], pad_begin=[1,0], pad_end=[1,0]}\nout c";
    for (int64_t s = 1; s < 20; s += 5)
        fast_check(
            t,
            &(fast_case){ .text = text, .root = "conv_transpose", .layout = "acdb", .sym = s, .n_point = 3 },
            DIRECT);
}

TEST(direct_refuses)
{
    fast_refuses(
        t,
        &(fast_case){ .text = "in x f32[1,8,4,4]  in w f32[8,1,3,3]\nc = conv(x, w) {group=8}\nout c",
                      .root = "conv" },
        DIRECT, HN_FIT_TOO_SMALL);
    fast_refuses(
        t,
        &(fast_case){ .text = "in x f32[1,8,4,4]  in k f32[8,8,3,3]\nc = conv(x, k)\nout c", .root = "conv" },
        DIRECT, HN_FIT_NOT_CONST);
    fast_refuses(
        t,
        &(fast_case){ .text = "in x f16[1,8,4,4]  in w f16[8,8,3,3]\nc = conv(x, w)\nout c", .root = "conv" },
        DIRECT, HN_FIT_DTYPE);
}

#define WINOGRAD "conv_f32_winograd__cpu"

TEST(winograd)
{
    const char *text = text_of(t, "2,24,13,15", "40,24,3,3", "pad_begin=[1,1], pad_end=[1,1]", 40);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .tol = 1e-5, .n_point = 16 },
               WINOGRAD);
    text = text_of(t, "1,9,12,9", "20,9,3,3", "pad_begin=[0,2], pad_end=[1,0]", 20);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .tol = 1e-5, .n_point = 16 },
               WINOGRAD);
    text = text_of(t, "1,512,8,8", "32,512,3,3", "pad_begin=[1,1], pad_end=[1,1]", 32);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .tol = 2e-5, .n_point = 3 },
               WINOGRAD);
}

TEST(winograd_symbolic)
{
    static const char text[] = "sym h [1,14,99]\nin x f32[2,16,h,h]  in w f32[16,16,3,3]\n"
                               "c = conv(x, w) {pad_begin=[1,1], pad_end=[1,1]}  y = relu(c)\nout y";
    for (int64_t s = 1; s <= 31; s += 6)
        fast_check(t,
                   &(fast_case){
                       .text = text, .root = "conv", .layout = "acdb", .sym = s, .tol = 1e-5, .n_point = 3 },
                   WINOGRAD);
}

TEST(winograd_refuses)
{
    fast_refuses(
        t,
        &(fast_case){ .text = text_of(t, "1,16,9,9", "16,16,5,5", "", 16), .root = "conv", .layout = "acdb" },
        WINOGRAD, HN_FIT_SHAPE);
    fast_refuses(t,
                 &(fast_case){ .text = text_of(t, "1,16,9,9", "16,16,3,3", "stride=[2,2]", 16),
                               .root = "conv",
                               .layout = "acdb" },
                 WINOGRAD, HN_FIT_SHAPE);
    fast_refuses(t, &(fast_case){ .text = text_of(t, "1,16,9,9", "16,16,3,3", "", 16), .root = "conv" },
                 WINOGRAD, HN_FIT_LAYOUT);
}

TEST(depthwise_three_by_three)
{
    const char *text = text_of(t, "2,40,13,15", "40,1,3,3", "group=40, pad_begin=[1,1], pad_end=[1,1]", 40);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .n_point = 20 }, DEPTHWISE);
    text = text_of(t, "1,32,9,9", "32,1,3,3", "group=32, stride=[2,2], pad_begin=[0,0], pad_end=[1,1]", 32);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "abcd16b" }, DEPTHWISE);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DEPTHWISE);
}

TEST(depthwise_wide_windows)
{
    const char *text = text_of(t, "1,24,7,7", "24,1,7,7", "group=24, pad_begin=[3,3], pad_end=[3,3]", 24);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DEPTHWISE);
    text = text_of(t, "1,20,30,5", "20,1,5,3",
                   "group=20, stride=[3,1], dilation=[2,2], pad_begin=[4,2], pad_end=[3,2]", 20);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb" }, DEPTHWISE);
    text = text_of(t, "2,20,30", "20,1,5", "group=20, pad_begin=[2], pad_end=[2]", 20);
    fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acb" }, DEPTHWISE);
}

TEST(depthwise_symbolic)
{
    static const char text[] =
        "sym h [1,14,99]\nin x f32[2,16,h,h]  in w f32[16,1,5,5]  in b f32[16]\n"
        "c = conv(x, w, b) {group=16, pad_begin=[2,2], pad_end=[2,2]}\ny = relu(c)\nout y";
    for (int64_t s = 1; s <= 31; s += 3)
        fast_check(t, &(fast_case){ .text = text, .root = "conv", .layout = "acdb", .sym = s, .n_point = 3 },
                   DEPTHWISE);
}

TEST(depthwise_refuses)
{
    fast_refuses(
        t,
        &(fast_case){ .text = "in x f32[1,8,4,4]  in w f32[8,1,3,3]\nc = conv(x, w) {group=8}\nout c",
                      .root = "conv" },
        DEPTHWISE, HN_FIT_LAYOUT);
    fast_refuses(
        t,
        &(fast_case){ .text = "in x f32[1,8,4,4]  in w f32[8,2,3,3]\nc = conv(x, w) {group=4}\nout c",
                      .root = "conv",
                      .layout = "acdb" },
        DEPTHWISE, HN_FIT_SHAPE);
}

#define BYTES "conv_int8_dot__cpu"

/* Signs and zero points in every pairing, sums left as they are: equal to the last bit. */
static void bytes_check_with(hn_test *t, const char *x, const char *w, const char *zeros, const char *attrs,
                             const char *layout, const char *plain, const char *tactic)
{
    const char *names = strstr(zeros, " bz ") ? "x, w, a, bz" : strstr(zeros, " a ") ? "x, w, a" : "x, w";
    const char *text = hn_arena_printf(t->arena, "in x %s  in w %s%s\nc = conv_int(%s) {%s}\nout c", x, w, zeros, names, attrs);
    fast_check(t, &(fast_case){ .text = text, .root = "conv_int", .layout = layout, .plain = plain, .tol = 1e-12 }, tactic);
}

static void bytes_check(hn_test *t, const char *x, const char *w, const char *zeros, const char *attrs, const char *layout,
                        const char *plain)
{
    bytes_check_with(t, x, w, zeros, attrs, layout, plain, BYTES);
}

TEST(bytes_three_by_three)
{
    static const char pad[] = "pad_begin=[1,1], pad_end=[1,1]";
    bytes_check(t, "u8[2,20,13,15]", "i8[40,20,3,3]", "", pad, "acdb", NULL);
    bytes_check(t, "i8[2,17,13,15]", "i8[33,17,3,3]", "  in a i8[1]", pad, "acdb", NULL);
    bytes_check(t, "u8[1,3,9,8]", "u8[5,3,3,3]", "  in a u8[1]  in bz u8[1]", pad, "acdb", NULL);
    bytes_check(t, "i8[1,5,9,8]", "u8[40,5,3,3]", "  in a i8[1]  in bz u8[40]", pad, "acdb", NULL);
}

TEST(bytes_first_layer)
{
    static const char pad[] = "stride=[2,2], pad_begin=[3,3], pad_end=[3,3]";
    bytes_check(t, "u8[2,3,31,33]", "i8[24,3,7,7]", "  in a u8[1]", pad, "acdb", "x");
    bytes_check(t, "i8[1,1,49,10]", "i8[64,1,10,4]", "  in a i8[1]", "pad_begin=[4,1], pad_end=[5,2]", "acdb", "x");
}

TEST(bytes_one_by_one)
{
    bytes_check(t, "u8[3,36,7,9]", "i8[50,36,1,1]", "  in a u8[1]", "", "acdb", NULL);
    bytes_check(t, "i8[3,37,7,9]", "i8[50,37,1,1]", "  in a i8[1]", "", "acdb", NULL);
    bytes_check(t, "i8[1,64,5,5]", "i8[16,64,1,1]", "  in a i8[1]", "", "acdb", NULL);
    bytes_check(t, "u8[1,24,14,14]", "i8[24,24,1,1]", "", "stride=[2,2]", "acdb", NULL);
}

TEST(bytes_groups_and_dilation)
{
    bytes_check(t, "u8[1,12,11,11]", "i8[30,4,3,3]", "  in a u8[1]", "group=3, pad_begin=[1,1], pad_end=[1,1]", "acdb", NULL);
    bytes_check(t, "u8[1,15,11,11]", "u8[30,5,3,3]", "  in a u8[1]  in bz u8[30]", "group=3", "acdb", NULL);
    bytes_check(t, "i8[1,17,19,23]", "i8[33,17,3,5]", "  in a i8[1]",
                "stride=[2,3], dilation=[2,2], pad_begin=[2,1], pad_end=[1,3]", "acdb", NULL);
}

TEST(bytes_one_dimension)
{
    bytes_check(t, "u8[2,18,57]", "i8[20,18,5]", "  in a u8[1]", "stride=[2], dilation=[2], pad_begin=[4], pad_end=[3]", "acb",
                NULL);
    bytes_check(t, "i8[1,1,400]", "i8[16,1,25]", "", "stride=[5], pad_begin=[12], pad_end=[12]", "acb", "x");
}

TEST(bytes_requantised)
{
    static const char text[] =
        "const z f32[] = {3}  const lo f32[] = {0}  const hi f32[] = {255}\n"
        "in x u8[1,24,9,11]  in w i8[24,24,3,3]  in a u8[1]  in b i32[1,24,1,1]  in s f32[1,24,1,1]\n"
        "c = conv_int(x, w, a) {pad_begin=[1,1], pad_end=[1,1]}  d = add(c, b)  e = cast(d) {to=f32}  f = mul(e, s)\n"
        "g = round(f)  h = add(g, z)  k = clip(h, lo, hi)  y = cast(k) {to=u8}\nout y";
    fast_check(t, &(fast_case){ .text = text, .root = "conv_int", .layout = "acdb", .n_point = 12 }, BYTES);
}

TEST(bytes_symbolic)
{
    static const char text[] = "sym h [1,14,99]\nin x u8[2,16,h,h]  in w i8[32,16,3,3]  in a u8[1]\n"
                               "c = conv_int(x, w, a) {pad_begin=[1,1], pad_end=[1,1]}\nout c";
    static const char one[] = "sym h [1,14,99]\nin x i8[2,16,h,h]  in w i8[32,16,1,1]\nc = conv_int(x, w)\nout c";
    for (int64_t s = 1; s <= 31; s += 6) {
        fast_check(t, &(fast_case){ .text = text, .root = "conv_int", .layout = "acdb", .sym = s, .tol = 1e-12, .n_point = 3 },
                   BYTES);
        fast_check(t, &(fast_case){ .text = one, .root = "conv_int", .layout = "acdb", .sym = s, .tol = 1e-12, .n_point = 3 },
                   BYTES);
    }
}

#define DEPTHWISE_BYTES "depthwise_int8_columns__cpu"

static void depthwise_bytes(hn_test *t, const char *x, const char *w, const char *zeros, const char *attrs)
{
    bytes_check_with(t, x, w, zeros, attrs, "acdb", NULL, DEPTHWISE_BYTES);
}

TEST(bytes_depthwise)
{
    depthwise_bytes(t, "u8[2,40,13,15]", "i8[40,1,3,3]", "  in a u8[1]", "group=40, pad_begin=[1,1], pad_end=[1,1]");
    depthwise_bytes(t, "i8[1,33,9,9]", "i8[33,1,3,3]", "  in a i8[1]", "group=33, stride=[2,2], pad_end=[1,1]");
    depthwise_bytes(t, "u8[1,16,7,7]", "u8[16,1,5,5]", "  in a u8[1]  in bz u8[16]", "group=16, pad_begin=[2,2], pad_end=[2,2]");
    depthwise_bytes(t, "i8[1,5,12,10]", "u8[5,1,3,2]", "  in a i8[1]  in bz u8[1]", "group=5, stride=[1,3]");
    depthwise_bytes(t, "u8[1,20,30,11]", "i8[20,1,5,3]", "",
                    "group=20, stride=[3,1], dilation=[2,3], pad_begin=[4,2], pad_end=[3,2]");
    bytes_check_with(t, "u8[2,20,31]", "i8[20,1,7]", "  in a u8[1]", "group=20, pad_begin=[3], pad_end=[3]", "acb", NULL,
                     DEPTHWISE_BYTES);
}

TEST(bytes_depthwise_symbolic)
{
    static const char text[] = "sym h [1,14,99]\nin x u8[2,24,h,h]  in w i8[24,1,3,3]  in a u8[1]\n"
                               "c = conv_int(x, w, a) {group=24, pad_begin=[1,1], pad_end=[1,1]}\nout c";
    for (int64_t s = 1; s <= 31; s += 3)
        fast_check(t, &(fast_case){ .text = text, .root = "conv_int", .layout = "acdb", .sym = s, .tol = 1e-12 },
                   DEPTHWISE_BYTES);
}

/* Reads past an end show in the interpreter alone. */
TEST(bytes_interpreted)
{
    fast_every(t, &(fast_case){ .text = "in x i8[2,5,6,7]  in w i8[9,5,3,3]  in a i8[1]\n"
                                        "c = conv_int(x, w, a) {pad_begin=[1,1], pad_end=[1,1]}\nout c",
                                .root = "conv_int", .layout = "acdb", .tol = 1e-12, .n_point = 4 });
    fast_every(t, &(fast_case){ .text = "in x u8[2,21,6,7]  in w i8[21,1,3,3]  in a u8[1]\n"
                                        "c = conv_int(x, w, a) {group=21, pad_begin=[1,1], pad_end=[1,1]}\nout c",
                                .root = "conv_int", .layout = "acdb", .tol = 1e-12, .n_point = 6 });
    fast_every(t, &(fast_case){ .text = "in x u8[2,8,6,7]  in w i8[20,8,2,2]\nc = conv_int(x, w)\nout c",
                                .root = "conv_int", .layout = "acdb", .tol = 1e-12, .n_point = 4 });
}

/* ---- timed by hand: HONE_BENCH=6 test_tactic_fast --filter bench_conv ---- */
static void bench(hn_test *t, const char *x, const char *w, const char *attrs, int oc, const char *tactic)
{
    printf("%s * %s {%s}\n", x, w, attrs);
    fast_bench(t, &(fast_case){ .text = text_of(t, x, w, attrs, oc), .root = "conv", .layout = "acdb" },
               tactic);
}

TEST(bench_conv_3x3_56)
{
    bench(t, "1,64,56,56", "64,64,3,3", "pad_begin=[1,1], pad_end=[1,1]", 64, DIRECT);
}

TEST(bench_conv_3x3_7)
{
    bench(t, "1,512,7,7", "512,512,3,3", "pad_begin=[1,1], pad_end=[1,1]", 512, DIRECT);
}

TEST(bench_conv_1x1_14)
{
    bench(t, "1,1024,14,14", "256,1024,1,1", "", 256, DIRECT);
}

TEST(bench_conv_1x1_56)
{
    bench(t, "1,64,56,56", "256,64,1,1", "", 256, DIRECT);
}

TEST(bench_depthwise_56)
{
    bench(t, "1,96,56,56", "96,1,3,3", "group=96, pad_begin=[1,1], pad_end=[1,1]", 96, DEPTHWISE);
}

TEST(bench_depthwise_14)
{
    bench(t, "1,480,14,14", "480,1,5,5", "group=480, pad_begin=[2,2], pad_end=[2,2]", 480, DEPTHWISE);
}

TEST(bench_winograd)
{
    bench(t, "1,64,56,56", "64,64,3,3", "pad_begin=[1,1], pad_end=[1,1]", 64, WINOGRAD);
    bench(t, "1,32,256,256", "32,32,3,3", "pad_begin=[1,1], pad_end=[1,1]", 32, WINOGRAD);
    bench(t, "1,128,64,64", "128,128,3,3", "pad_begin=[1,1], pad_end=[1,1]", 128, WINOGRAD);
    bench(t, "1,256,14,14", "256,256,3,3", "pad_begin=[1,1], pad_end=[1,1]", 256, WINOGRAD);
    bench(t, "1,512,16,16", "512,512,3,3", "pad_begin=[1,1], pad_end=[1,1]", 512, WINOGRAD);
}

TEST(bench_bytes)
{
    static const char *const text[] = {
        "in x u8[1,64,25,5]  in w i8[64,64,10,4]  in a u8[1]\nc = conv_int(x, w, a) {pad_begin=[4,1], pad_end=[5,2]}\nout c",
        "in x u8[1,64,56,56]  in w i8[64,64,3,3]  in a u8[1]\nc = conv_int(x, w, a) {pad_begin=[1,1], pad_end=[1,1]}\nout c",
        "in x u8[1,1024,14,14]  in w i8[256,1024,1,1]  in a u8[1]\nc = conv_int(x, w, a)\nout c",
        ("in x u8[1,3,224,224]  in w i8[64,3,7,7]  in a u8[1]\n"
         "c = conv_int(x, w, a) {stride=[2,2], pad_begin=[3,3], pad_end=[3,3]}\nout c"),
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        printf("%s\n", text[i]);
        fast_bench(t, &(fast_case){ .text = text[i], .root = "conv_int", .layout = "acdb" }, BYTES);
    }
}

TEST(bench_bytes_depthwise)
{
    static const char *const text[] = {
        "in x u8[1,128,56,56]  in w i8[128,1,3,3]  in a u8[1]\nc = conv_int(x, w, a) {group=128, pad_begin=[1,1], "
        "pad_end=[1,1]}\nout c",
        "in x u8[1,480,14,14]  in w i8[480,1,5,5]  in a u8[1]\nc = conv_int(x, w, a) {group=480, pad_begin=[2,2], "
        "pad_end=[2,2]}\nout c",
    };
    for (int i = 0; i < HN_COUNT(text); i++) {
        printf("%s\n", text[i]);
        fast_bench(t, &(fast_case){ .text = text[i], .root = "conv_int", .layout = "acdb" }, DEPTHWISE_BYTES);
    }
}
