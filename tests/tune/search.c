/* Routes to try: from expressions and from read-traces. */
#include "harness.h"

#include "tune/tune.h"

#include <string.h>

TEST(singles_change_one_axis)
{
    hn_diag dg = { 0 };
    hn_search s;
    int axis = -1;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=* -layout:image=[0..2]", NULL, false, &s, &dg), &dg);
    CHECK_EQ(hn_search_n_single(&s), 3);
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-region:chain=0");
    CHECK_EQ(axis, 0);
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-layout:image=0");
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-layout:image=2");
    CHECK_EQ(axis, 1);
    CHECK(!hn_search_next(t->arena, &s, &axis));
}

TEST(the_product_holds_every_combination_once)
{
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=* -layout:image=[0..2] -region:views=*", NULL, false, &s, &dg), &dg);
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
    CHECK_OK(hn_search_make(t->arena, "-region:views=0 -region:chain=*", NULL, false, &s, &dg), &dg);
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-region:views=0 -region:chain=0");
}

static void grow(hn_test *t, hn_search *s, hn_knob id)
{
    hn_diag dg = { 0 };
    CHECK_OK(hn_search_grow(t->arena, s, hn_knob_get(id), &dg), &dg);
}

TEST(only_knobs_that_were_read_are_searched)
{
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    CHECK_EQ(hn_search_n_single(&s), 0);
    grow(t, &s, HN_KNOB_region_chain);
    grow(t, &s, HN_KNOB_region_chain);  /* once is enough */
    grow(t, &s, HN_KNOB_core_threads);  /* not tunable */
    grow(t, &s, HN_KNOB_math_winograd); /* changes numbers */
    CHECK_EQ(s.n_axis, 1);
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, true, &s, &dg), &dg);
    grow(t, &s, HN_KNOB_math_winograd);
    CHECK_EQ(s.n_axis, 1);
    CHECK_OK(hn_search_make(t->arena, "-region:chain=*", NULL, true, &s, &dg), &dg);
    grow(t, &s, HN_KNOB_math_winograd); /* an expression says what is searched */
    CHECK_EQ(s.n_axis, 1);
}

/* A minute is about 25 trials of 90 knobs: every knob gets one before any gets its third. */
TEST(a_space_that_grows_is_searched_a_value_of_each_in_turn)
{
    static const char *const want[] = { "-gemm:mr=6" /* the middle of auto|1|2|4|6|8|12|14 */,
                                        "-plan:align=128" /* next to the default */, "-gemm:mr=8", "-plan:align=256" };
    hn_diag dg = { 0 };
    hn_search s;
    int axis, n = 0;
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    grow(t, &s, HN_KNOB_region_chain);
    grow(t, &s, HN_KNOB_gemm_mr);
    grow(t, &s, HN_KNOB_plan_align);
    for (int i = 0; i < 4; i++) CHECK_STR(hn_search_next(t->arena, &s, &axis), want[i]);
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-region:chain=0");
    grow(t, &s, HN_KNOB_code_passes); /* a late knob is not made to wait */
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-code:passes=full");
    CHECK_EQ(axis, 3);
    while (hn_search_next(t->arena, &s, &axis)) n++;
    CHECK_EQ(n + 6, hn_search_n_single(&s));
}

TEST(a_product_that_grows_keeps_its_indices)
{
    hn_diag dg = { 0 };
    hn_search s;
    const char *before[64];
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    grow(t, &s, HN_KNOB_region_chain);
    grow(t, &s, HN_KNOB_layout_image);
    const int64_t n = hn_search_n_product(&s, NULL);
    CHECK(n < 64);
    for (int64_t i = 0; i < n; i++) before[i] = hn_search_product(t->arena, &s, NULL, i);
    grow(t, &s, HN_KNOB_region_views);
    CHECK(hn_search_n_product(&s, NULL) > n);
    for (int64_t i = 0; i < n; i++) CHECK_STR(hn_search_product(t->arena, &s, NULL, i), before[i]);
}

TEST(a_base_route_is_where_changes_start)
{
    hn_diag dg = { 0 };
    hn_search s;
    int axis;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=*", "-region:chain=0", false, &s, &dg), &dg);
    CHECK_EQ(hn_search_n_single(&s), 1);
    const char *one = hn_search_next(t->arena, &s, &axis);
    CHECK_STR(one, "-region:chain=1");
    CHECK_STR(hn_search_over(t->arena, "-region:chain=0 -region:views=0", one), "-region:views=0");
    CHECK_STR(hn_search_over(t->arena, "-layout:image=0", "-layout:image=2"), "-layout:image=2"); /* not both */
    CHECK(!hn_search_over(t->arena, "-no:such=1", one));
}

TEST(knobs_that_change_numbers_need_a_bound)
{
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_ERR(hn_search_make(t->arena, "-math:winograd=*", NULL, false, &s, &dg), HONE_E_INVALID, &dg, "winograd");
    CHECK_ERR(hn_search_make(t->arena, "-math:winograd=1", NULL, false, &s, &dg), HONE_E_INVALID, &dg, "winograd");
    CHECK_OK(hn_search_make(t->arena, "-math:winograd=*", NULL, true, &s, &dg), &dg);
}

/* ---- candidates that nearly won ---- */
static const char regions[] = "\"region:small\":[0.001,1.01],\"region:b\":[0.2,1.05,1.1,1.14,1.15,1.3],\"region:a\":[0.5,1.02,1.4],"
                              "\"region:clear\":[0.25,1.5],\"region:only\":[0.06]";

TEST(near_winners_of_large_regions_are_tried)
{
    static const char *const want[] = { "-layout:image=2", "-tactic:rank@region:a=1", "-tactic:rank@region:b=1", "-layout:image=0",
                                        "-tactic:width@region:a=32", "-tactic:width@region:clear=32", "-tactic:width@region:b=32",
                                        "-tactic:rank@region:b=2", "-tactic:rank@region:b=3" };
    hn_diag dg = { 0 };
    hn_search s;
    int axis;
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    grow(t, &s, HN_KNOB_layout_image);
    grow(t, &s, HN_KNOB_tactic_rank); /* for all regions at once: no */
    CHECK_OK(hn_search_grow_regions(t->arena, &s, regions, &dg), &dg);
    CHECK_OK(hn_search_grow_regions(t->arena, &s, regions, &dg), &dg); /* once is enough */
    CHECK_EQ(s.n_axis, 1 + 3 + 2);
    CHECK_OK(hn_search_grow_regions(t->arena, &s, "\"region:b\":[0.2,1.05,1.1,1.14,1.15]", &dg), &dg); /* as another lead was timed */
    CHECK_EQ(s.n_axis, 1 + 3 + 2);
    for (int i = 0; i < HN_COUNT(want); i++) CHECK_STR(hn_search_next(t->arena, &s, &axis), want[i]);
}

/* On a GPU they are no axes of their own, and wait for what moves the whole engine. */
TEST(choices_of_regions_are_screened)
{
    hn_diag dg = { 0 };
    hn_search s;
    hn_change c[HN_EFFECTS_MOST];
    int axis, last = -1;
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    s.screens = true;
    grow(t, &s, HN_KNOB_plan_early);
    CHECK_OK(hn_search_grow_regions(t->arena, &s, regions, &dg), &dg);
    CHECK_EQ(s.n_axis, 1 + 3);
    CHECK(hn_search_has_early(&s));
    CHECK_STR(hn_search_next(t->arena, &s, &axis), "-plan:early=1");
    CHECK(!hn_search_has_early(&s));
    /* five regions with launches, two of them with candidates near the first */
    const int n = hn_search_changes(t->arena, &s, regions, "", HN_EFFECTS_MOST, c);
    CHECK_EQ(n, 5 + 1 + 3);
    for (int i = 0; i < n; i++) {
        CHECK(c[i].group <= last + 1); /* counted as they come */
        last = c[i].group > last ? c[i].group : last;
        CHECK(c[i].sd > 0 && c[i].mean <= 0);
        if (c[i].knob == HN_KNOB_plan_early) CHECK_EQ(c[i].value, 1);
        for (int k = 0; k < i; k++) CHECK_EQ(c[i].group == c[k].group, strcmp(c[i].pattern, c[k].pattern) == 0);
    }
    CHECK_EQ(last, 5 - 1);
    CHECK_STR(hn_search_change_text(t->arena, &c[0]), "-tactic:rank@region:a=1");
    const char *all = hn_search_with(t->arena, "-region:chain=0", c, n, 1 | 1 << (n - 1));
    CHECK(strstr(all, hn_search_change_text(t->arena, &c[0])) && strstr(all, hn_search_change_text(t->arena, &c[n - 1])));
    CHECK(strstr(all, "-region:chain=0") && !strstr(all, hn_search_change_text(t->arena, &c[1])));
    /* where all launches overlap each may stop to; the time may be enough for a few */
    CHECK_EQ(hn_search_changes(t->arena, &s, regions, "-plan:early=1", HN_EFFECTS_MOST, c), n);
    for (int i = 0; i < n; i++) CHECK(c[i].knob != HN_KNOB_plan_early || c[i].value == 0);
    CHECK_EQ(hn_search_changes(t->arena, &s, regions, "", 3, c), 3);
}

TEST(a_stated_space_and_damaged_regions_add_no_ranks)
{
    static const char *const damaged[] = { "", "\"region:a\"", "\"region:a\":[0.5,1.02", "\"region:a", "[0.5,1.1]", "\"a\":[x,1.1]" };
    hn_diag dg = { 0 };
    hn_search s;
    CHECK_OK(hn_search_make(t->arena, "-region:chain=*", NULL, false, &s, &dg), &dg);
    CHECK_OK(hn_search_grow_regions(t->arena, &s, "\"region:a\":[0.5,1.02]", &dg), &dg);
    CHECK_EQ(s.n_axis, 1);
    CHECK_OK(hn_search_make(t->arena, NULL, NULL, false, &s, &dg), &dg);
    for (int i = 0; i < HN_COUNT(damaged); i++) CHECK_OK(hn_search_grow_regions(t->arena, &s, damaged[i], &dg), &dg);
    CHECK_EQ(s.n_axis, 0);
}
