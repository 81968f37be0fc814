#include "harness.h"

#include <string.h>

TEST(arena_gives_zeroed_aligned_memory)
{
    hn_arena *a = hn_arena_create();
    for (int i = 0; i < 5000; i++) {
        unsigned char *p = hn_arena_alloc(a, (size_t)i % 97, 3);
        CHECK(p && (uintptr_t)p % 16 == 0);
        for (int k = 0; k < i % 97 * 3; k++)
            CHECK(p[k] == 0);
        memset(p, 0xEE, (size_t)(i % 97) * 3);
    }
    for (size_t align = 1; align <= 4096; align *= 2) {
        void *p = hn_arena_alloc_aligned(a, 100, align);
        CHECK(p && (uintptr_t)p % align == 0);
    }
    CHECK(!hn_arena_oom(a));
    CHECK(hn_arena_used(a) > 0);
    hn_arena_reset(a);
    CHECK_EQ(hn_arena_used(a), 0);
    const unsigned char *again = hn_arena_alloc(a, 4096, 2);
    for (int i = 0; i < 8192; i++)
        CHECK(again[i] == 0);
    hn_arena_destroy(a);
    hn_arena_destroy(NULL);
}

TEST(arena_out_of_memory_sticks)
{
    hn_arena *a = hn_arena_create();
    CHECK(hn_arena_alloc(a, SIZE_MAX / 2, 3) == NULL);
    CHECK(hn_arena_oom(a));
    CHECK(hn_arena_alloc(a, 1, 1) == NULL);
    CHECK(hn_arena_strdup(a, "x") == NULL);
    hn_arena_reset(a);
    CHECK(!hn_arena_oom(a));
    CHECK(hn_arena_alloc_aligned(a, SIZE_MAX - 4, 16) == NULL);
    hn_arena_reset(a);
    CHECK(hn_arena_alloc(a, (size_t)1 << 62, 1) == NULL);
    CHECK(hn_arena_oom(a));
    hn_arena_destroy(a);
}

TEST(arena_texts)
{
    hn_arena *a = t->arena;
    CHECK_STR(hn_arena_strdup(a, "hello"), "hello");
    CHECK_STR(hn_arena_strndup(a, "hello", 3), "hel");
    CHECK_STR(hn_arena_strndup(a, "hi", 30), "hi");
    CHECK_STR(hn_arena_printf(a, "%s-%d", "x", 7), "x-7");
    CHECK(memcmp(hn_arena_memdup(a, "a\0b", 3), "a\0b", 3) == 0);
}

TEST(arena_vectors_grow)
{
    HN_VEC(int64_t) v = { 0 };
    for (int i = 0; i < 10000; i++)
        CHECK(hn_vec_push(t->arena, &v, (int64_t)i * i));
    CHECK_EQ(v.n, 10000);
    for (int i = 0; i < v.n; i++)
        CHECK_EQ(v.at[i], (int64_t)i * i);
}

TEST(arena_checked_sizes)
{
    int64_t r = 5;
    CHECK(hn_mul_size(INT64_MAX / 2, 2, &r) && r == INT64_MAX - 1);
    CHECK(!hn_mul_size(INT64_MAX / 2 + 1, 2, &r) && r == INT64_MAX - 1);
    CHECK(!hn_mul_size(-1, 2, &r) && !hn_mul_size(2, -1, &r));
    CHECK(hn_add_size(INT64_MAX - 1, 1, &r) && r == INT64_MAX);
    CHECK(!hn_add_size(INT64_MAX, 1, &r) && !hn_add_size(-1, 5, &r));
}
