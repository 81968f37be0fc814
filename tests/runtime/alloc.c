/* A run allocates nothing: every allocator call of the program is counted (see meson.build). */
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "handmade.h"

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

static atomic_int n_alloc;

void *__wrap_malloc(size_t n)
{
    n_alloc++;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    n_alloc++;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    n_alloc++;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    n_alloc++;
    return __real_aligned_alloc(align, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    n_alloc++;
    return __real_mmap(at, n, prot, flags, fd, offset);
}

TEST(runtime_run_does_not_allocate)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, &(hn_context_opts){ .max_threads = 4 });
    static float x[4096];
    hn_diag dg = { 0 };

    CHECK(n_alloc > 0); /* the counter counts */
    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg); /* makes its output */
    const int before = n_alloc;
    for (int k = 0; k < 1000; k++)
        CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(n_alloc, before);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

TEST(runtime_heap_is_kept_between_runs)
{
    hn_engine *const e = hm_engine(t, hm_loop(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    int64_t trip = 1000, v;
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, &trip, 8, &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, &v, 8, &dg), &dg);
    CHECK_OK(hn_context_run(c, &dg), &dg);
    const int before = n_alloc;
    for (trip = 1000; trip > 0; trip -= 50)
        CHECK_OK(hn_context_run(c, &dg), &dg);
    CHECK_EQ(n_alloc, before);
    hn_context_destroy(c);
    hn_engine_unref(e);
}

/* Nothing is lost by sizes that shrink and grow again within what was allocated. */
TEST(runtime_set_shape_allocates_only_to_grow)
{
    hn_engine *const e = hm_engine(t, hm_add_scale(t), NULL);
    hn_context *const c = hm_context(e, NULL);
    static float x[4096];
    hn_diag dg = { 0 };

    CHECK_OK(hn_context_bind(c, 0, x, sizeof(x), &dg), &dg);
    CHECK_OK(hn_context_bind(c, 1, x, sizeof(x), &dg), &dg);
    int before = 0;
    for (int64_t n = 4096; n > 0; n = n * 2 / 3) {
        CHECK_OK(hn_context_set_input_shape(c, 0, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_set_input_shape(c, 1, 1, &n, &dg), &dg);
        CHECK_OK(hn_context_run(c, &dg), &dg);
        if (n == 4096) before = n_alloc;
        CHECK_EQ(n_alloc, before);
    }
    hn_context_destroy(c);
    hn_engine_unref(e);
}
