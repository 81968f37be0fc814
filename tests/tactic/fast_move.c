/* Copies that turn matrices over: layouts of images, transposes, extents that squares do not divide. */
#include "fast_run.h"

#define SQUARE "transpose_b32_square__cpu"

TEST(square_reorders)
{
    static const char *const shape[] = { "2,20,7,9", "1,3,16,33", "1,48,5,16", "3,16,1,40" };
    for (int i = 0; i < HN_COUNT(shape); i++) {
        const char *text = hn_arena_printf(t->arena, "in x f32[%s]\ny = reorder(x)\nout y", shape[i]);
        fast_check(t, &(fast_case){ .text = text, .root = "reorder", .layout = "acdb", .plain = "x" },
                   SQUARE);
        fast_check(t, &(fast_case){ .text = text, .root = "reorder", .layout = "acdb", .plain = "y" },
                   SQUARE);
    }
    static const char blocked[] = "in x f32[2,32,5,7]\ny = reorder(x)\nout y";
    fast_check(t, &(fast_case){ .text = blocked, .root = "reorder", .layout = "abcd16b", .plain = "x" },
               SQUARE);
    fast_check(t, &(fast_case){ .text = blocked, .root = "reorder", .layout = "abcd8b", .plain = "y" },
               SQUARE);
}

TEST(square_transposes)
{
    static const char *const text[] = {
        "in x f32[50,33]\ny = transpose(x) {perm=[1,0]}\nout y",
        "in x i32[4,5,33]\ny = transpose(x) {perm=[0,2,1]}\nout y",
        "in x f32[3,4,5,6]\ny = transpose(x) {perm=[2,3,0,1]}\nout y",
    };
    for (int i = 0; i < HN_COUNT(text); i++)
        fast_check(t, &(fast_case){ .text = text[i], .root = "transpose" }, SQUARE);
}

TEST(square_symbolic)
{
    static const char text[] =
        "sym h [1,14,99]\nin x f32[2,h,24,h]\ny = transpose(x) {perm=[0,2,3,1]}\nout y";
    for (int64_t s = 1; s < 40; s += 7)
        fast_check(t, &(fast_case){ .text = text, .root = "transpose", .sym = s }, SQUARE);
}

TEST(square_refuses)
{
    fast_refuses(t,
                 &(fast_case){ .text = "in x f32[6,7,8,9]\ny = transpose(x) {perm=[2,1,3,0]}\nout y",
                               .root = "transpose" },
                 SQUARE, HN_FIT_SHAPE);
    fast_refuses(
        t, &(fast_case){ .text = "in x f16[6,7]\ny = transpose(x) {perm=[1,0]}\nout y", .root = "transpose" },
        SQUARE, HN_FIT_DTYPE);
}
