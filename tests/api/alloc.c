/* Running allocates nothing, through the whole public API. */
#include "count_alloc.h"
#include "models.h"

TEST(running_allocates_nothing)
{
    hone_error *err = NULL;
    hone_tensor x;
    const int before_all = count_alloc_calls;
    hone_engine *e = engine_of(deep_model(32, 6), NULL);
    hone_context *c = context_of(e);
    CHECK(count_alloc_calls > before_all + 100); /* the counter counts */
    EXPECT_OK(hone_context_make_input(c, 0, 1, &x, NULL, &err));
    EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
    EXPECT_OK(hone_context_run(c, &err)); /* the outputs that the context owns */
    const int before = count_alloc_calls;
    for (int i = 0; i < 50; i++) {
        EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
        EXPECT_OK(hone_context_run(c, &err));
        CHECK(hone_context_output(c, 1, NULL));
    }
    CHECK_EQ(count_alloc_calls, before);
    hone_context_free(c);
    hone_engine_free(e);
    hone_tensor_free(&x);
}
