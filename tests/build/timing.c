/* The timing cache: entries are found by key however many there are, the first one wins, failures are infinite times. */
#include "harness.h"

#include "build/build_int.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { MANY = 5000 };

static hn_digest key_of(int i)
{
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_i64(&h, i);
    return hn_hasher_end(&h);
}

static hn_timing *open_cache(hn_test *t, const char *path)
{
    hn_diag dg = { 0 };
    hn_timing *c = NULL;
    CHECK_OK(hn_timing_open(t->arena, path, /* read_only= */ false, &c, &dg), &dg);
    return c;
}

TEST(times_are_found_again_by_key)
{
    const char *path = hn_arena_printf(t->arena, "/tmp/hone-test-%d.timing", (int)getpid());
    hn_diag dg = { 0 };
    double ns = 0;
    unlink(path);
    hn_timing *c = open_cache(t, path);
    CHECK(!hn_timing_get(c, key_of(0), &ns));
    for (int i = 0; i < MANY; i++) hn_timing_put(c, key_of(i), i + 1, "note");
    hn_timing_put(c, key_of(7), 99, "again"); /* the first stands */
    hn_timing_put(c, key_of(MANY), HUGE_VAL, "failed");
    CHECK_OK(hn_timing_save(c, &dg), &dg);
    for (int again = 0; again < 2; again++, c = open_cache(t, path)) {
        for (int i = 0; i < MANY; i++) {
            CHECK(hn_timing_get(c, key_of(i), &ns));
            CHECK(ns == i + 1);
        }
        CHECK(hn_timing_get(c, key_of(MANY), &ns) && isinf(ns));
        CHECK(!hn_timing_get(c, key_of(MANY + 1), &ns));
    }
    CHECK(!hn_timing_get(NULL, key_of(0), &ns));
    unlink(path);
}
