/* Images as inputs: the run finds how large they are; what the engine yields is what evaluation yields. */
#include <string.h>

#include "harness.h"
#include "run_graph.h"

static void check(hn_test *t, const char *order, const char *channels, const char *file, const char *fails)
{
    hn_graph *g = NULL;
    hn_diag dg = { 0 };
    hn_tensor in = { 0 };
    const char *text = hn_arena_printf(t->arena,
                                       "sym n\nsym h = s[0]\nsym w = s[1]\nin x u8[n]\ns = image_size(x)\n"
                                       "y = image_decode(x) {order=%s, dim=[h,w,%s]}\nf = cast(y) {to=f32}\n"
                                       "m = reduce_sum(f) {axes=[2], keepdims=0}\nout y\nout m",
                                       order, channels);
    hn_test_note("%s: %s", order, file);
    CHECK_OK(hn_parse(t->arena, text, &g, &dg), &dg);
    const hn_tdesc d = { .dtype = HN_U8, .rank = 1, .dim = { (int64_t)strlen(file) } };
    CHECK_OK(hn_tensor_init(&in, &d, &dg), &dg);
    memcpy(in.data, file, in.bytes);
    hn_check_graph_of(t->arena, g, &(hn_run_opts){ .in = &in, .fails = fails });
    hn_tensor_done(&in);
}

TEST(images_of_any_size)
{
    check(t, "rgb", "3", "P3 2 1 255 1 2 3 4 5 6", NULL);
    check(t, "bgr", "3", "P3 1 3 255 1 2 3 4 5 6 200 100 50", NULL);
    check(t, "gray", "1", "P3 3 1 15 1 2 3 4 5 6 15 15 0", NULL);
}

TEST(bytes_that_are_no_image)
{
    check(t, "rgb", "3", "P3 2 1 255 1 2 3 4 5", "portable image: damaged or cut short");
    check(t, "rgb", "3", "GIF89a", "6 bytes are no image");
}

/* Known when the engine is built: nothing is left to decode. */
TEST(constant_images)
{
    hn_check_graph("const x u8[22] = {80,51,32,50,32,49,32,50,53,53,32,49,32,50,32,51,32,52,32,53,32,54}\n"
                   "y = image_decode(x) {order=rgb, dim=[1,2,3]}\nz = cast(y) {to=f32}\nout z", NULL);
}
