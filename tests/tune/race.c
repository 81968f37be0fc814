/* The statistic of a race: false winners on synthetic noise, power, and bounds that cover. */
#include "harness.h"

#include "base/os.h"
#include "tune/tune.h"

#include <math.h>

/* One observation: a pair of processes. Each has a placement bias; blocks inside share a drift; a few readings are spikes. */
typedef struct noise {
    hn_rng rng;
    double drift;
} noise;

static double reading(noise *n, double bias)
{
    n->drift = 0.95 * n->drift + 0.02 * hn_rng_normal(&n->rng); /* autocorrelated, sd 6% */
    const double spike = hn_rng_unit(&n->rng) < 0.03 ? hn_rng_unit(&n->rng) : 0;
    return bias + n->drift + 0.02 * hn_rng_normal(&n->rng) + spike;
}

static double observation(noise *n, double gain)
{
    enum { PAIRS = 3 };
    const double a = 0.01 * hn_rng_normal(&n->rng), b = 0.01 * hn_rng_normal(&n->rng);
    double r[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        const double first = reading(n, i % 2 ? b : a), second = reading(n, i % 2 ? a : b);
        r[i] = gain + (i % 2 ? second - first : first - second);
    }
    const double lo = fmin(fmin(r[0], r[1]), r[2]), hi = fmax(fmax(r[0], r[1]), r[2]);
    return r[0] + r[1] + r[2] - lo - hi; /* median of three */
}

/* Rounds until the interval excludes no gain, looking after each; 0: never. */
static int race(noise *n, double gain, int most)
{
    hn_race r = { 0 };
    double lo, hi;
    for (int i = 1; i <= most; i++) {
        hn_race_add(&r, observation(n, gain));
        if (hn_race_interval(&r, 0.01, &lo, &hi) && lo > 0) return i;
    }
    return 0;
}

TEST(equal_engines_are_told_apart_at_most_once_in_a_hundred)
{
    enum { RACES = 4000, ROUNDS = 40 };
    noise n = { 0 };
    int wrong = 0;
    hn_rng_init(&n.rng, 11);
    for (int i = 0; i < RACES; i++) wrong += race(&n, 0, ROUNDS) != 0;
    hn_test_note("%d false winners in %d races", wrong, RACES);
    CHECK(wrong <= RACES / 100);
}

TEST(a_tenth_is_found)
{
    enum { RACES = 200 };
    noise n = { 0 };
    int found = 0;
    hn_rng_init(&n.rng, 12);
    for (int i = 0; i < RACES; i++) found += race(&n, log(1.1), 40) != 0;
    hn_test_note("%d of %d found", found, RACES);
    CHECK(found >= RACES * 95 / 100);
}

/* All rounds at once: an anytime-valid interval may leave the truth only once in 1 / alpha runs, whenever one looks. */
TEST(intervals_cover_at_every_round)
{
    enum { RUNS = 2000, ROUNDS = 100 };
    int left = 0;
    hn_rng g;
    hn_rng_init(&g, 13);
    for (int i = 0; i < RUNS; i++) {
        hn_race r = { 0 };
        double lo, hi;
        bool out = false;
        for (int k = 0; k < ROUNDS && !out; k++) {
            hn_race_add(&r, 0.3 + hn_rng_normal(&g));
            out = hn_race_interval(&r, 0.05, &lo, &hi) && (lo > 0.3 || hi < 0.3);
        }
        left += out;
    }
    hn_test_note("%d of %d left the truth", left, RUNS);
    CHECK(left <= RUNS / 20);
}

TEST(one_reading_says_nothing)
{
    hn_race r = { 0 };
    double lo = 0, hi = 0;
    hn_race_add(&r, 1);
    CHECK(!hn_race_interval(&r, 0.05, &lo, &hi));
}

TEST(equal_readings_are_no_certainty)
{
    hn_race r = { 0 };
    double lo, hi;
    for (int i = 0; i < 30; i++) hn_race_add(&r, 0);
    CHECK(hn_race_interval(&r, 0.01, &lo, &hi));
    CHECK(lo < 0 && hi > 0);
}
