#include "harness.h"

#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "memplan/memplan.h"

/* A small generator of its own keeps these tests independent of base's. */
static uint64_t next(uint64_t *s)
{
    *s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
    return *s;
}

static void plan(hn_test *t, hn_mp_item *item, int n, unsigned orders, hn_mp_result *ret)
{
    void *const work = hn_arena_alloc_aligned(t->arena, hn_memplan_work_bytes(n), 16);
    int a, b;

    CHECK(hn_memplan(item, n, orders, work, ret));
    if (!hn_memplan_check(item, n, ret->arena_bytes, &a, &b))
        FAIL("items %d and %d of %d are badly placed", a, b, n);
    CHECK(ret->arena_bytes >= ret->bound_bytes);
}

TEST(memplan_nothing_and_one)
{
    hn_mp_result r;
    hn_mp_item one = { .bytes = 100, .first = 0, .last = 0, .root = -1 };

    CHECK(hn_memplan(NULL, 0, HN_MP_ALL, t->arena, &r));
    CHECK_EQ(r.arena_bytes, 0);
    plan(t, &one, 1, HN_MP_ALL, &r);
    CHECK_EQ(r.arena_bytes, 128);
    CHECK_EQ(r.bound_bytes, 128);
}

/* A chain needs only the largest neighbouring pair. */
TEST(memplan_chain_reuses)
{
    hn_mp_item item[50];
    hn_mp_result r;

    for (int i = 0; i < 50; i++)
        item[i] = (hn_mp_item){ .bytes = 640, .first = i, .last = i + 1, .root = -1 };
    plan(t, item, 50, HN_MP_ALL, &r);
    CHECK_EQ(r.arena_bytes, 1280);
}

/* Sum of live bytes at each step, the obvious way. */
static int64_t peak(const hn_mp_item *item, int n, int n_step)
{
    int64_t top = 0;
    for (int s = 0; s < n_step; s++) {
        int64_t live = 0;
        for (int i = 0; i < n; i++)
            if (item[i].first <= s && s <= item[i].last) live += (item[i].bytes + 63) / 64 * 64;
        if (live > top) top = live;
    }
    return top;
}

TEST(memplan_random)
{
    uint64_t seed = 88172645463325252u;
    double worst = 1, sum = 0;
    hn_mp_item item[200];
    hn_mp_result r;

    for (int round = 0; round < 300; round++) {
        const int n = 1 + (int)(next(&seed) % 200);
        for (int i = 0; i < n; i++) {
            const int first = (int)(next(&seed) % (unsigned)n);
            const int life = next(&seed) % 8 == 0 ? (int)(next(&seed) % (unsigned)n) : (int)(next(&seed) % 4);
            item[i] = (hn_mp_item){ .bytes = (int64_t)(next(&seed) % 100000),
                                    .first = first,
                                    .last = first + life < n ? first + life : n - 1,
                                    .root = -1,
                                    .align = next(&seed) % 16 == 0 ? 256 : 0 };
        }
        plan(t, item, n, HN_MP_ALL, &r);
        CHECK_EQ(r.bound_bytes, peak(item, n, n));
        const double ratio = (double)r.arena_bytes / (double)(r.bound_bytes ? r.bound_bytes : 1);
        if (ratio > worst) worst = ratio;
        sum += ratio;
    }
    hn_test_note("mean ratio %.3f, worst %.3f", sum / 300, worst);
    CHECK(sum / 300 < 1.08);
    CHECK(worst < 1.6);
}

TEST(memplan_more_orders_are_never_worse)
{
    uint64_t seed = 12345;
    hn_mp_item item[64];
    hn_mp_result all, quick;

    for (int round = 0; round < 100; round++) {
        for (int i = 0; i < 64; i++) {
            const int first = (int)(next(&seed) % 64);
            item[i] = (hn_mp_item){ .bytes = (int64_t)(next(&seed) % 5000),
                                    .first = first,
                                    .last = first + (int)(next(&seed) % 10),
                                    .root = -1 };
        }
        plan(t, item, 64, HN_MP_QUICK, &quick);
        plan(t, item, 64, HN_MP_ALL, &all);
        CHECK(all.arena_bytes <= quick.arena_bytes);
    }
}

/* Parts live inside their root and keep it alive. */
TEST(memplan_parts)
{
    hn_mp_item item[] = {
        { .bytes = 256, .first = 0, .last = 1, .root = -1 },
        { .bytes = 64, .first = 3, .last = 5, .root = 0, .root_offset = 192 },
        { .bytes = 128, .first = 2, .last = 2, .root = -1 },
        { .bytes = 128, .first = 4, .last = 4, .root = -1 },
        { .bytes = 64, .first = 6, .last = 6, .root = -1 },
    };
    hn_mp_result r;

    plan(t, item, 5, HN_MP_ALL, &r);
    CHECK_EQ(item[1].offset, item[0].offset + 192);
    CHECK_EQ(r.arena_bytes, 384);
    for (int i = 2; i < 4; i++)
        CHECK(item[i].offset + 128 <= item[0].offset || item[i].offset >= item[0].offset + 256);
}

TEST(memplan_refuses_malformed)
{
    const hn_mp_item good = { .bytes = 64, .first = 1, .last = 2, .root = -1 };
    hn_mp_item item[2];
    hn_mp_result r = { .arena_bytes = 77 };
    void *const work = hn_arena_alloc(t->arena, hn_memplan_work_bytes(2), 1);

#define REFUSED(field, value)                                                                                \
    item[0] = item[1] = good, item[1].field = (value), CHECK(!hn_memplan(item, 2, HN_MP_ALL, work, &r))
    REFUSED(bytes, -1);
    REFUSED(bytes, INT64_MAX);
    REFUSED(bytes, INT64_MAX / 2);
    REFUSED(first, 3);
    REFUSED(root, 1);
    REFUSED(root, 2);
    REFUSED(root, -2);
    REFUSED(align, 96);
    REFUSED(align, 8192);
#undef REFUSED
    CHECK_EQ(r.arena_bytes, 77);
}

TEST(memplan_check_sees_overlap)
{
    hn_mp_item item[] = {
        { .bytes = 64, .first = 0, .last = 2, .root = -1, .offset = 0 },
        { .bytes = 64, .first = 2, .last = 3, .root = -1, .offset = 0 },
    };
    int a = 0, b = 0;

    CHECK(!hn_memplan_check(item, 2, 128, &a, &b));
    CHECK(a == 1 && b == 0);
    item[1].offset = 64;
    CHECK(hn_memplan_check(item, 2, 128, &a, &b));
    CHECK(!hn_memplan_check(item, 2, 127, &a, &b));
    item[1].offset = 32, item[0].first = item[0].last = 0;
    CHECK(!hn_memplan_check(item, 2, 128, &a, &b)); /* misaligned */
}

/* What set-shape pays. A bound ten times the usual cost, so that a busy machine does not fail it. */
TEST(memplan_is_fast)
{
    uint64_t seed = 7;
    hn_mp_item item[500];
    hn_mp_result r;
    int64_t best = INT64_MAX;

    for (int i = 0; i < 500; i++)
        item[i] = (hn_mp_item){ .bytes = (int64_t)(next(&seed) % 1000000),
                                .first = i,
                                .last = i + 1 + (int)(next(&seed) % 6),
                                .root = -1 };
    void *const work = hn_arena_alloc(t->arena, hn_memplan_work_bytes(500), 1);
    for (int k = 0; k < 5; k++) {
        const int64_t t0 = hn_now_ns();
        CHECK(hn_memplan(item, 500, HN_MP_ALL, work, &r));
        best = HN_MIN(best, hn_now_ns() - t0);
    }
    hn_test_note("500 buffers: %lld ns", (long long)best);
    CHECK(best < 50 * 1000 * 1000); /* a hundredth of it where nothing else runs */
}
