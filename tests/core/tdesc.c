#include "harness.h"

#include <string.h>

#include "core/core.h"

static hn_tdesc desc(hn_symtab *st, const char *dims)
{
    hn_tdesc d = { .dtype = HN_F32 };
    while (*dims) {
        const size_t n = hn_dim_parse(st, dims, &d.dim[d.rank++]);
        CHECK(n > 0);
        dims += n + (dims[n] == ',');
    }
    return d;
}

static const char *text(hn_symtab *st, const hn_tdesc *d)
{
    static char kept[400];
    hn_str s = { 0 };
    hn_tdesc_print(st, d, &s);
    strncpy(kept, hn_str_get(&s), sizeof kept - 1);
    hn_str_done(&s);
    return kept;
}

TEST(tdesc_print_eq_numel)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_tdesc a = desc(st, "1,3,n"), b = desc(st, "1,3,m"), scalar = { .dtype = HN_I64 }, none = { 0 };
    CHECK_STR(text(st, &a), "f32[1,3,n]");
    CHECK_STR(text(st, &scalar), "i64[]");
    CHECK_STR(text(st, &none), "none");
    CHECK(hn_tdesc_eq(&a, &a) && !hn_tdesc_eq(&a, &b) && !hn_tdesc_eq(&a, &scalar));
    CHECK(!hn_tdesc_is_static(&a) && hn_tdesc_is_static(&scalar));
    CHECK_EQ(hn_tdesc_numel(st, &a), hn_dim_mul(st, hn_sym_find(st, "n"), 3));
    CHECK_EQ(hn_tdesc_numel_static(&a), -1);
    CHECK_EQ(hn_tdesc_numel_static(&scalar), 1);
    const hn_tdesc huge = { .dtype = HN_F32, .rank = 3, .dim = { INT64_MAX, 2, 1 } };
    const hn_tdesc empty = { .dtype = HN_F32, .rank = 3, .dim = { INT64_MAX, 2, 0 } };
    CHECK_EQ(hn_tdesc_numel_static(&huge), -1);
    CHECK_EQ(hn_tdesc_numel_static(&empty), 0);
}

TEST(tdesc_broadcast)
{
    static const struct {
        const char *a, *b, *want;
    } c[] = {
        { "2,3", "3", "f32[2,3]" },
        { "", "3", "f32[3]" },
        { "", "", "f32[]" },
        { "1,4", "5,1", "f32[5,4]" },
        { "0", "1", "f32[0]" },
        { "n", "1", "f32[n]" },
        { "n", "n", "f32[n]" },
        { "n,4", "m,1,4", "f32[m,n,4]" },
        { "n", "7", "f32[7]" },
        { "2*n+2", "m", "f32[2*n+2]" },
        { "n", "m", "f32[select(eq(n,1),m,n)]" },
        { "3", "4", NULL },
        { "3,1", "1,0,3,2", "f32[1,0,3,2]" },
        { "0", "2", NULL },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        hn_symtab *st = hn_symtab_new(t->arena);
        const hn_tdesc a = desc(st, c[i].a), b = desc(st, c[i].b);
        hn_diag dg = { 0 };
        hn_tdesc r;
        hn_test_note("%s with %s", c[i].a, c[i].b);
        const hone_status s = hn_broadcast_dims(st, &a, &b, &r, &dg);
        if (!c[i].want) {
            CHECK_ERR(s, HONE_E_SHAPE, &dg, text(st, &a));
            continue;
        }
        CHECK_OK(s, &dg);
        CHECK_STR(text(st, &r), c[i].want);
    }
}

TEST(tdesc_axis)
{
    int a = -7;
    CHECK(hn_axis_resolve(-1, 3, &a) && a == 2);
    CHECK(hn_axis_resolve(0, 3, &a) && a == 0);
    CHECK(hn_axis_resolve(-3, 3, &a) && a == 0);
    a = 9;
    CHECK(!hn_axis_resolve(3, 3, &a) && !hn_axis_resolve(-4, 3, &a) && !hn_axis_resolve(0, 0, &a));
    CHECK(!hn_axis_resolve(INT64_MIN, 3, &a) && !hn_axis_resolve(INT64_MAX, 3, &a));
    CHECK_EQ(a, 9);
}

static const char *layout_text(const hn_layout *l, int rank)
{
    static char kept[100];
    hn_str s = { 0 };
    hn_layout_print(l, rank, &s);
    strncpy(kept, hn_str_get(&s), sizeof kept - 1);
    hn_str_done(&s);
    return kept;
}

TEST(layout_text_round_trip)
{
    static const char *const good[] = { "abcd", "acdb", "abcd16b",    "a",
                                        "",     "ba8a", "abcdefghij", "abcdefghij4a" };
    static const char *const bad[] = { "ac",      "aa",   "a16b", "16a",      "a0a", "abcdk",
                                       "ab16b8b", "abc1", "A",    "ab99999b", "a b", "abcdefghij4a4b4c" };
    for (int i = 0; i < HN_COUNT(good); i++) {
        hn_layout l;
        hn_test_note("%s", good[i]);
        CHECK(hn_layout_parse(good[i], strlen(good[i]), &l));
        CHECK_STR(layout_text(&l, 0), good[i]);
    }
    for (int i = 0; i < HN_COUNT(bad); i++) {
        hn_layout l;
        hn_test_note("%s", bad[i]);
        CHECK(!hn_layout_parse(bad[i], strlen(bad[i]), &l));
    }
}

TEST(layout_builders_and_equality)
{
    const hn_layout plain = { 0 }, nhwc = hn_layout_channels_last(4), b16 = hn_layout_blocked(4, 1, 16);
    hn_layout abcd;
    CHECK(hn_layout_parse("abcd", 4, &abcd));
    CHECK(hn_layout_eq(&plain, &abcd) && hn_layout_is_plain(&abcd) && hn_layout_is_plain(&plain));
    CHECK(!hn_layout_eq(&nhwc, &abcd) && !hn_layout_is_plain(&nhwc) && !hn_layout_is_plain(&b16));
    CHECK_STR(layout_text(&plain, 3), "abc");
    CHECK_STR(layout_text(&nhwc, 4), "acdb");
    CHECK_STR(layout_text(&b16, 4), "abcd16b");
    const hn_layout flat = hn_layout_channels_last(2), seq = hn_layout_channels_last(3);
    CHECK(hn_layout_is_plain(&flat));
    CHECK_STR(layout_text(&seq, 3), "acb");
}

TEST(layout_physical_extents)
{
    hn_symtab *st = hn_symtab_new(t->arena);
    const hn_tdesc d = desc(st, "n,35,h,7");
    const hn_layout b16 = hn_layout_blocked(4, 1, 16), nhwc = hn_layout_channels_last(4), plain = { 0 };
    const hn_layout over_h = hn_layout_blocked(4, 2, 8);
    hn_tdesc r;
    hn_layout_dims(st, &b16, &d, &r);
    CHECK_STR(text(st, &r), "f32[n,3,h,7,16]");
    hn_layout_dims(st, &nhwc, &d, &r);
    CHECK_STR(text(st, &r), "f32[n,h,7,35]");
    hn_layout_dims(st, &plain, &d, &r);
    CHECK_STR(text(st, &r), "f32[n,35,h,7]");
    hn_layout_dims(st, &over_h, &d, &r);
    CHECK_STR(text(st, &r), "f32[n,35,floordiv(h+7,8),7,8]");
}
