/* Screening: what many trials of many changes tell of each. */
#include "harness.h"

#include "tune/tune.h"

#include <math.h>

enum { MOST = HN_EFFECTS_MOST };

static uint64_t bit(int i)
{
    return (uint64_t)1 << i;
}

/* Each change in half of the trials, each two together in a quarter: what makes effects tell apart. */
TEST(designs_are_orthogonal)
{
    for (int n = 1; n <= 60; n++) {
        hn_effects *e = HN_NEW(t->arena, hn_effects);
        uint64_t row[MOST + 8], on;
        hn_rng rng;
        bool designed;
        int n_row = 0;
        hn_rng_init(&rng, 1);
        for (int i = 0; i < n; i++) CHECK(hn_effects_add(e, i, 0, 0.01));
        const int all = hn_effects_rows(e);
        while (n_row < all && hn_effects_next(e, &rng, &on, &designed) && designed) row[n_row++] = on;
        if (n > 2) CHECK_EQ(n_row, all); /* of few changes rows repeat */
        for (int i = 0; n > 2 && i < n; i++)
            for (int k = 0; k <= i; k++) {
                int both = 0;
                for (int r = 0; r < n_row; r++) both += (row[r] >> i & 1) && (row[r] >> k & 1);
                CHECK_EQ(both, i == k ? (all + 1) / 2 : (all + 1) / 4);
            }
    }
}

TEST(a_fit_finds_what_was_put_in)
{
    enum { N = 23 };
    hn_effects *e = HN_NEW(t->arena, hn_effects);
    double truth[N], sd;
    uint64_t on;
    bool designed;
    hn_rng rng;
    hn_rng_init(&rng, 7);
    for (int i = 0; i < N; i++) {
        truth[i] = 0.01 * hn_rng_normal(&rng);
        hn_effects_add(e, i, 0, 0.01);
    }
    for (int r = 0; r < hn_effects_rows(e) && hn_effects_next(e, &rng, &on, &designed); r++) {
        double gain = 0;
        for (int i = 0; i < N; i++) gain += on >> i & 1 ? truth[i] : 0;
        hn_effects_observe(e, on, 0, gain, 1e-5);
    }
    for (int i = 0; i < N; i++) {
        CHECK_NEAR(hn_effects_gain(e, i, &sd), truth[i], 1e-4);
        CHECK(sd < 1e-4);
        CHECK_EQ(hn_effects_best(e) >> i & 1, truth[i] > 0);
    }
    CHECK(hn_effects_left(e) < 1e-4);
}

/* Trials against one that leads tell as much as those against the base. */
TEST(trials_against_a_leader_count)
{
    hn_effects *e = HN_NEW(t->arena, hn_effects);
    double sd;
    for (int i = 0; i < 3; i++) hn_effects_add(e, i, 0, 1);
    hn_effects_observe(e, 1, 0, 0.02, 1e-4);
    hn_effects_observe(e, 1 | 2, 1, -0.01, 1e-4);
    hn_effects_observe(e, 4, 1, 0.03 - 0.02, 1e-4);
    CHECK_NEAR(hn_effects_gain(e, 0, &sd), 0.02, 1e-4);
    CHECK_NEAR(hn_effects_gain(e, 1, &sd), -0.01, 1e-4);
    CHECK_NEAR(hn_effects_gain(e, 2, &sd), 0.03, 1e-4);
    CHECK_EQ(hn_effects_best(e), 1 | 4);
}

/* One candidate of a region at a time; one that was only in trials that broke is not chosen. */
TEST(groups_and_what_breaks)
{
    hn_effects *e = HN_NEW(t->arena, hn_effects);
    hn_rng rng;
    uint64_t on;
    bool designed;
    hn_rng_init(&rng, 3);
    for (int i = 0; i < 12; i++) hn_effects_add(e, i / 3, 0.001, 0.01);
    int n = 0, made[12] = { 0 };
    for (; n < 40 && hn_effects_next(e, &rng, &on, &designed); n++) {
        for (int g = 0; g < 4; g++) CHECK(__builtin_popcountll(on >> 3 * g & 7) <= 1);
        for (int i = 0; designed && i < 12; i++) made[i] += on >> i & 1;
        if (on & bit(5)) hn_effects_broke(e, on);
        else hn_effects_observe(e, on, 0, on & bit(7) ? 0.01 : 0, 0.001);
    }
    CHECK(n > 8);
    for (int i = 0; i < 12; i++) CHECK(made[i] >= 1);
    CHECK(!(hn_effects_best(e) & bit(5)));
    CHECK(hn_effects_best(e) & bit(7));
}

/* ---- the search itself: gains of 20 regions, trials that are off by 0.4% ---- */
enum { REGIONS = 20, TRIALS = 40 };
static const double NOISE = 0.004;

typedef struct truth {
    double gain[REGIONS], possible;
    hn_rng rng;
} truth;

static truth make_truth(uint64_t seed)
{
    truth x = { 0 };
    hn_rng_init(&x.rng, seed);
    for (int i = 0; i < REGIONS; i++) {
        const double size = 0.001 + 0.005 * hn_rng_unit(&x.rng);
        x.gain[i] = hn_rng_unit(&x.rng) < 0.45 ? size : -size;
        x.possible += fmax(x.gain[i], 0);
    }
    return x;
}

static double true_gain(const truth *x, uint64_t on)
{
    double sum = 0;
    for (int i = 0; i < REGIONS; i++) sum += on >> i & 1 ? x->gain[i] : 0;
    return sum;
}

static double share_by_screening(hn_test *t, uint64_t seed)
{
    truth x = make_truth(seed);
    hn_effects *e = HN_NEW(t->arena, hn_effects);
    uint64_t on;
    bool designed;
    hn_rng rng;
    hn_rng_init(&rng, seed + 1000);
    for (int i = 0; i < REGIONS; i++) hn_effects_add(e, i, 0, 0.006);
    for (int n = 0; n < TRIALS && hn_effects_next(e, &rng, &on, &designed); n++)
        hn_effects_observe(e, on, 0, true_gain(&x, on) + NOISE * hn_rng_normal(&x.rng), NOISE);
    return true_gain(&x, hn_effects_best(e)) / x.possible;
}

/* Each change against what stands, as often as there are trials for; what looks faster stays. */
static double share_one_at_a_time(uint64_t seed)
{
    truth x = make_truth(seed);
    uint64_t on = 0;
    for (int i = 0; i < REGIONS; i++) {
        double seen = 0;
        for (int n = 0; n < TRIALS / REGIONS; n++) seen += x.gain[i] + NOISE * hn_rng_normal(&x.rng);
        if (seen > 0) on |= bit(i);
    }
    return true_gain(&x, on) / x.possible;
}

TEST(screening_finds_most_of_the_gain)
{
    enum { SEEDS = 40 };
    double screened = 0, single = 0;
    int good = 0;
    for (int i = 0; i < SEEDS; i++) {
        const double share = share_by_screening(t, (uint64_t)i);
        good += share >= 0.8;
        screened += share / SEEDS;
        single += share_one_at_a_time((uint64_t)i) / SEEDS;
    }
    hn_test_note("of the possible gain: %.3f by screening (%d of %d at least 0.8), %.3f one at a time", screened, good, SEEDS, single);
    CHECK(good >= SEEDS * 9 / 10);
    CHECK(screened > single + 0.1);
}

TEST(screening_is_the_same_for_a_seed)
{
    CHECK(share_by_screening(t, 5) == share_by_screening(t, 5));
}

/* Effects five times as large as expected, of more changes than trials: the trials say so. */
TEST(a_prior_that_is_too_narrow_gives_way)
{
    enum { N = 19, TRIALS_MADE = 19 };
    int wrong = 0;
    for (uint64_t seed = 0; seed < 8; seed++) {
        hn_effects *e = HN_NEW(t->arena, hn_effects);
        double effect[N], sd;
        uint64_t on;
        bool designed;
        hn_rng rng;
        hn_rng_init(&rng, seed);
        for (int i = 0; i < N; i++) {
            effect[i] = 0.02 * hn_rng_normal(&rng);
            hn_effects_add(e, i / 2, 0, 0.004);
        }
        for (int r = 0; r < TRIALS_MADE && hn_effects_next(e, &rng, &on, &designed); r++) {
            double gain = 0;
            for (int i = 0; i < N; i++) gain += on >> i & 1 ? effect[i] : 0;
            hn_effects_observe(e, on, 0, gain + 0.004 * hn_rng_normal(&rng), 0.004);
        }
        for (int i = 0; i < N; i++) wrong += fabs(hn_effects_gain(e, i, &sd) - effect[i]) > 4 * sd;
        CHECK(e->scale > 2);
    }
    CHECK(wrong <= 2); /* of 152 */
}
