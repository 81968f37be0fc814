/* Running allocates nothing, through the whole public API: every allocator call of the program is counted (see meson.build). */
#include "models.h"

#include <stdlib.h>
#include <sys/mman.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);

static _Atomic int calls;

void *__wrap_malloc(size_t n)
{
    calls++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    calls++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    calls++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    calls++;
    return __real_aligned_alloc(align, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    calls++;
    return __real_mmap(at, n, prot, flags, fd, offset);
}

TEST(running_allocates_nothing)
{
    hone_error *err = NULL;
    hone_tensor x;
    const int before_all = calls;
    hone_engine *e = engine_of(deep_model(32, 6), NULL);
    hone_context *c = context_of(e);
    CHECK(calls > before_all + 100); /* the counter counts */
    EXPECT_OK(hone_context_make_input(c, 0, 1, &x, NULL, &err));
    EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
    EXPECT_OK(hone_context_run(c, &err)); /* the outputs that the context owns */
    const int before = calls;
    for (int i = 0; i < 50; i++) {
        EXPECT_OK(hone_context_bind(c, 0, x.data, x.bytes, &err));
        EXPECT_OK(hone_context_run(c, &err));
        CHECK(hone_context_output(c, 1, NULL));
    }
    CHECK_EQ(calls, before);
    hone_context_free(c);
    hone_engine_free(e);
    hone_tensor_free(&x);
}
