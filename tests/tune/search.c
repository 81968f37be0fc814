/* Routes to try: from expressions and from read-traces. */
#include "harness.h"

#include "tune/tune.h"

#include <string.h>

TEST(singles_change_one_axis)
{
    hn_diag dg = { 0 };
    hn_search s;
    int axis = -1;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=* -layout:image=[0..2]", NULL, 0, false, &s, &dg), &dg);
    CHECK_EQ(hn_search_n_single(&s), 3);
    CHECK_STR(hn_search_single(t->arena, &s, 0, &axis), "-region:chain=0");
    CHECK_EQ(axis, 0);
    CHECK_STR(hn_search_single(t->arena, &s, 2, &axis), "-layout:image=2");
    CHECK_EQ(axis, 1);
}

TEST(the_product_holds_every_combination_once)
{
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=* -layout:image=[0..2] -region:views=*", NULL, 0, false, &s, &dg), &dg);
    const int64_t n = hn_search_n_product(&s, NULL);
    CHECK_EQ(n, 2 * 3 * 2 - 1);
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < i; k++)
            CHECK(strcmp(hn_search_product(t->arena, &s, NULL, i), hn_search_product(t->arena, &s, NULL, k)) != 0);
}

TEST(bare_values_stand_in_every_route)
{
    hn_diag dg = { 0 };
    hn_search s;
    int axis;
    CHECK_OK(hn_search_make(t->arena, "-region:views=0 -region:chain=*", NULL, 0, false, &s, &dg), &dg);
    CHECK_STR(hn_search_single(t->arena, &s, 0, &axis), "-region:views=0 -region:chain=0");
}

TEST(only_knobs_that_were_read_are_searched)
{
    hn_diag dg = { 0 };
    hn_search s;
    const hn_knob_read read[] = { { .knob = HN_KNOB_region_chain, .where = "", .value = 1 },
                                  { .knob = HN_KNOB_core_threads, .where = "", .value = 0 },
                                  { .knob = HN_KNOB_math_winograd, .where = "/c", .value = 0 } };
    CHECK_OK(hn_search_make(t->arena, NULL, read, HN_COUNT(read), false, &s, &dg), &dg);
    CHECK_EQ(s.n_axis, 1);
    CHECK_OK(hn_search_make(t->arena, NULL, read, HN_COUNT(read), true, &s, &dg), &dg);
    CHECK_EQ(s.n_axis, 2);
}

TEST(knobs_that_change_numbers_need_a_bound)
{
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_ERR(hn_search_make(t->arena, "-math:winograd=*", NULL, 0, false, &s, &dg), HONE_E_INVALID, &dg, "winograd");
    CHECK_ERR(hn_search_make(t->arena, "-math:winograd=1", NULL, 0, false, &s, &dg), HONE_E_INVALID, &dg, "winograd");
    CHECK_OK(hn_search_make(t->arena, "-math:winograd=*", NULL, 0, true, &s, &dg), &dg);
}
