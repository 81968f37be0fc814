/* Error metrics. */
#include "eval/eval_test.h"

#include <math.h>

static hn_metric compare(hn_test *t, const char *got, const char *want)
{
    const hn_tensor a = hn_test_tensor(t, got), b = hn_test_tensor(t, want);
    hn_metric m;
    hn_diag dg = {0};
    CHECK_OK(hn_metric_compare(&a, &b, NULL, 0.01, 0.1, &m, &dg), &dg);
    return m;
}

TEST(metric_equal)
{
    const hn_metric m = compare(t, "f32[3] 1 -2 nan", "f32[3] 1 -2 nan");
    CHECK_EQ(m.n, 3);
    CHECK_EQ(m.worst, -1);
    CHECK(m.l0 == 0 && m.linf == 0 && m.rel_l2 == 0 && m.cosine == 1 && m.snr_db == (double)INFINITY);
}

TEST(metric_by_hand)
{
    const hn_metric m = compare(t, "f32[2] 3 5", "f32[2] 3 4");
    CHECK_NEAR(m.l0, 0.5, 0);
    CHECK_NEAR(m.l1, 0.5, 0);
    CHECK_NEAR(m.l2, sqrt(0.5), 1e-15);
    CHECK_NEAR(m.linf, 1, 0);
    CHECK_NEAR(m.rel_l2, 0.2, 1e-15);
    CHECK_NEAR(m.cosine, 29 / (5 * sqrt(34)), 1e-15);
    CHECK_NEAR(m.snr_db, 20 * log10(5), 1e-12);
    CHECK_EQ(m.worst, 1);
    CHECK(m.worst_got == 5 && m.worst_want == 4);
}

TEST(metric_tolerance_is_mixed)
{
    CHECK(compare(t, "f32[1] 1.1", "f32[1] 1").l0 == 0);
    CHECK(compare(t, "f32[1] 1.12", "f32[1] 1").l0 == 1);
    CHECK(compare(t, "f32[1] 0.009", "f32[1] 0").l0 == 0);
}

TEST(metric_nonfinite_mismatch_fails)
{
    static const char *const bad[][2] = {{"f32[2] nan 1", "f32[2] 0 1"},
                                         {"f32[2] 0 1", "f32[2] nan 1"},
                                         {"f32[2] inf 1", "f32[2] -inf 1"},
                                         {"f32[2] inf 1", "f32[2] nan 1"},
                                         {"f32[2] 3e38 1", "f32[2] inf 1"}};
    for (int i = 0; i < HN_COUNT(bad); i++) {
        const hn_metric m = compare(t, bad[i][0], bad[i][1]);
        CHECK_EQ(m.n_nonfinite, 1);
        CHECK_EQ(m.worst, 0);
        CHECK(m.l0 >= 0.5 && isinf(m.linf) && isinf(m.rel_l2) && m.cosine == -1 && m.snr_db < 0);
    }
    CHECK_EQ(compare(t, "f32[2] inf -inf", "f32[2] inf -inf").n_nonfinite, 0);
}

TEST(metric_zero_reference)
{
    CHECK(compare(t, "f32[1] 0", "f32[1] 0").cosine == 1);
    CHECK(compare(t, "f32[1] 1", "f32[1] 0").rel_l2 == (double)INFINITY);
    CHECK(compare(t, "f32[1] 1", "f32[1] 0").cosine == 0);
    CHECK_EQ(compare(t, "f32[0]", "f32[0]").n, 0);
}

TEST(metric_own_run_judges_nonfinites)
{
    const hn_tensor got = hn_test_tensor(t, "f32[2] -inf 1"), want = hn_test_tensor(t, "f64[2] -6e38 1"),
                    own = hn_test_tensor(t, "f32[2] -inf 1");
    hn_metric m;
    hn_diag dg = {0};
    CHECK_OK(hn_metric_compare(&got, &want, &own, 0, 0, &m, &dg), &dg);
    CHECK_EQ(m.n_nonfinite, 0);
    CHECK(m.linf == 0);
    CHECK_OK(hn_metric_compare(&got, &want, NULL, 0, 0, &m, &dg), &dg);
    CHECK_EQ(m.n_nonfinite, 1);
}

TEST(metric_shapes_must_agree)
{
    const hn_tensor a = hn_test_tensor(t, "f32[2] 1 2"), b = hn_test_tensor(t, "f32[3] 1 2 3"),
                    c = hn_test_tensor(t, "f32[1,2] 1 2"), d = hn_test_tensor(t, "i32[2] 1 2");
    hn_metric m;
    hn_diag dg = {0};
    CHECK_ERR(hn_metric_compare(&a, &b, NULL, 0, 0, &m, &dg), HONE_E_SHAPE, &dg, "extent 0");
    CHECK_ERR(hn_metric_compare(&a, &c, NULL, 0, 0, &m, &dg), HONE_E_SHAPE, &dg, "rank");
    CHECK_ERR(hn_metric_compare(&a, &d, NULL, 0, 0, &m, &dg), HONE_E_TYPE, &dg, "i32");
}
