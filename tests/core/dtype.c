#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "core/core.h"

static const hn_dtype small[] = { HN_F16,    HN_BF16,       HN_F8E4M3FN, HN_F8E4M3FNUZ,
                                  HN_F8E5M2, HN_F8E5M2FNUZ, HN_F8E8M0,   HN_F4E2M1 };

static double load(hn_dtype t, unsigned code)
{
    double v;
    hn_widen_f64(t, &code, 0, 1, &v);
    return v;
}

static unsigned store(hn_dtype t, double v, bool saturate)
{
    unsigned code = 0;
    hn_narrow_f64(t, &v, 1, &code, 0, saturate);
    return code;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

TEST(dtype_names_and_sizes)
{
    for (int i = 1; i < HN_NDTYPES; i++) {
        const hn_dtype d = (hn_dtype)i;
        CHECK_EQ(hn_dtype_parse(hn_dtype_name(d), strlen(hn_dtype_name(d))), d);
        CHECK(hn_dtype_is_float(d) + hn_dtype_is_int(d) + (d == HN_BOOL) == 1);
    }
    CHECK_EQ(hn_dtype_parse("f3", 2), HN_NONE);
    CHECK_EQ(hn_dtype_parse("f32x", 3), HN_F32);
    CHECK_EQ(hn_dtype_parse("none", 4), HN_NONE);
    CHECK_STR(hn_dtype_name(HN_NONE), "none");
    CHECK(hn_dtype_name((hn_dtype)77) != NULL);
    CHECK_EQ(hn_dtype_bits((hn_dtype)-1), 0);
    CHECK_EQ(hn_dtype_bytes(HN_F32, 3), 12);
    CHECK_EQ(hn_dtype_bytes(HN_I4, 3), 2);
    CHECK_EQ(hn_dtype_bytes(HN_U2, 5), 2);
    CHECK_EQ(hn_dtype_bytes(HN_I4, INT64_MAX), INT64_MAX / 2 + 1);
    CHECK_EQ(hn_dtype_bytes(HN_F64, INT64_MAX / 4), -1);
    CHECK_EQ(hn_dtype_bytes(HN_F32, -1), -1);
    CHECK_EQ(hn_dtype_bytes(HN_NONE, 7), 0);
    CHECK(!hn_dtype_is_signed(HN_U8) && hn_dtype_is_signed(HN_I4) && !hn_dtype_is_int(HN_BOOL));
}

/* Every code reads, writes back to itself (NaN to a NaN), and each finite value's neighbours round as they
 * must. */
TEST(dtype_small_floats_exhaustive)
{
    for (int k = 0; k < HN_COUNT(small); k++) {
        const hn_dtype d = small[k];
        const unsigned n = 1u << hn_dtype_bits(d);
        for (unsigned code = 0; code < n; code++) {
            hn_test_note("%s code 0x%x", hn_dtype_name(d), code);
            const double v = load(d, code);
            if (isnan(v)) {
                CHECK(isnan(load(d, store(d, v, true))));
                continue;
            }
            CHECK_EQ(store(d, v, false), code);
            if (!isinf(v)) CHECK_EQ(store(d, v, true), code);
            CHECK(same(hn_round_f64(d, v, false), v));
        }
    }
}

/* Between neighbours the nearer wins, and at the midpoint the even code: checked against midpoints in plain
 * arithmetic. */
TEST(dtype_small_floats_round_to_nearest_even)
{
    for (int k = 0; k < HN_COUNT(small); k++) {
        const hn_dtype d = small[k];
        if (d == HN_F8E8M0) continue;
        const unsigned n = 1u << (hn_dtype_bits(d) - 1);
        for (unsigned code = 0; code + 1 < n; code++) {
            const double a = load(d, code), b = load(d, code + 1);
            if (!isfinite(a) || !isfinite(b)) continue;
            const double mid = (a + b) / 2;
            hn_test_note("%s code 0x%x", hn_dtype_name(d), code);
            CHECK(a < b);
            CHECK_EQ(store(d, mid, false), code & 1 ? code + 1 : code);
            CHECK_EQ(store(d, nextafter(mid, 0), false), code);
            CHECK_EQ(store(d, nextafter(mid, INFINITY), false), code + 1);
            if (code) CHECK(same(hn_round_f64(d, -nextafter(mid, INFINITY), false), -b));
        }
    }
}

/* f16 against the compiler's own conversions over many doubles, subnormal results included. */
TEST(dtype_f16_matches_the_compiler)
{
#ifdef __FLT16_MAX__
    __extension__ typedef _Float16 half;
    hn_rng r;
    hn_rng_init(&r, 11);
    for (int i = 0; i < 300000; i++) {
        const double v = ldexp(hn_rng_unit(&r) * 2 - 1, (int)hn_rng_below(&r, 48) - 28);
        const half h = (half)v;
        uint16_t want;
        memcpy(&want, &h, 2);
        CHECK_EQ(store(HN_F16, v, false), want);
        CHECK(same(load(HN_F16, want), (double)h));
    }
#else
    SKIP("this compiler has no _Float16");
#endif
}

TEST(dtype_float8_edges_follow_onnx)
{
    static const struct {
        hn_dtype d;
        unsigned nan, inf_sat, inf_raw, neg_inf_sat, neg_inf_raw, neg_tiny;
        double max, first_over; /* smallest double that overflows */
    } c[] = {
        { HN_F8E4M3FN, 0x7F, 0x7E, 0x7F, 0xFE, 0xFF, 0x80, 448, 464 },
        { HN_F8E4M3FNUZ, 0x80, 0x7F, 0x80, 0xFF, 0x80, 0x00, 240, 248 },
        { HN_F8E5M2, 0x7E, 0x7B, 0x7C, 0xFB, 0xFC, 0x80, 57344, 61440 },
        { HN_F8E5M2FNUZ, 0x80, 0x7F, 0x80, 0xFF, 0x80, 0x00, 57344, 61440 },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        const hn_dtype d = c[i].d;
        hn_test_note("%s", hn_dtype_name(d));
        CHECK_EQ(store(d, NAN, true), c[i].nan);
        CHECK_EQ(store(d, INFINITY, true), c[i].inf_sat);
        CHECK_EQ(store(d, INFINITY, false), c[i].inf_raw);
        CHECK_EQ(store(d, -INFINITY, true), c[i].neg_inf_sat);
        CHECK_EQ(store(d, -INFINITY, false), c[i].neg_inf_raw);
        CHECK_EQ(store(d, 1e300, true), c[i].inf_sat);
        CHECK_EQ(store(d, -1e300, false), c[i].neg_inf_raw);
        CHECK_EQ(store(d, -1e-300, true), c[i].neg_tiny);
        CHECK_EQ(store(d, -0.0, true), c[i].neg_tiny);
        CHECK_EQ(store(d, 5e-324, true), 0);
        CHECK(load(d, store(d, c[i].max, false)) == c[i].max);
        CHECK(load(d, store(d, nextafter(c[i].first_over, 0), false)) == c[i].max);
        CHECK(!isfinite(load(d, store(d, nextafter(c[i].first_over, INFINITY), false))));
        CHECK(load(d, store(d, c[i].first_over * 2, true)) == c[i].max);
    }
    /* a tie goes to the even code: 448 is even in e4m3fn, 57344 is odd in e5m2 */
    CHECK(load(HN_F8E4M3FN, store(HN_F8E4M3FN, 464, false)) == 448);
    CHECK(isinf(load(HN_F8E5M2, store(HN_F8E5M2, 61440, false))));
}

TEST(dtype_wider_floats_never_saturate)
{
    CHECK_EQ(store(HN_F16, 65520, true), 0x7C00);
    CHECK_EQ(store(HN_F16, nextafter(65520, 0), true), 0x7BFF);
    CHECK_EQ(store(HN_BF16, -1e39, true), 0xFF80);
    CHECK_EQ(store(HN_BF16, 0x1.fep127, true), 0x7F7F);
    CHECK(isinf(hn_round_f64(HN_F32, 1e39, true)));
    CHECK_EQ(store(HN_BF16, NAN, true) & 0x7FFF, 0x7FC0);
    CHECK(hn_round_f64(HN_F32, 0.1, false) == (double)0.1f);
}

TEST(dtype_f4_and_e8m0)
{
    static const double in[] = { 0.48, 0.25, 1.05,     -3.5,      -8, 9,    1e6,
                                 1e-7, NAN,  INFINITY, -INFINITY, -4, 0.01, -0.0 };
    static const unsigned want[] = { 1, 0, 2, 0xE, 0xF, 7, 7, 0, 8, 7, 0xF, 0xE, 0, 8 };
    for (int i = 0; i < HN_COUNT(in); i++)
        CHECK_EQ(store(HN_F4E2M1, in[i], i & 1), want[i]);

    static const double up_in[] = { 0, 0.124, 0.25, 0.5, 1.1, 2, 4, 8 };
    static const unsigned up[] = { 0, 0x7C, 0x7D, 0x7E, 0x80, 0x80, 0x81, 0x82 };
    for (int i = 0; i < HN_COUNT(up_in); i++)
        CHECK_EQ(hn_e8m0_from_f64(up_in[i], HN_E8M0_UP, true), up[i]);
    CHECK_EQ(hn_e8m0_from_f64(1.9, HN_E8M0_DOWN, true), 0x7F);
    CHECK_EQ(hn_e8m0_from_f64(1.49, HN_E8M0_NEAREST, true), 0x7F);
    CHECK_EQ(hn_e8m0_from_f64(-1.5, HN_E8M0_NEAREST, true), 0x80);
    CHECK_EQ(hn_e8m0_from_f64(1e300, HN_E8M0_UP, true), 0xFE);
    CHECK_EQ(hn_e8m0_from_f64(1e300, HN_E8M0_UP, false), 0xFF);
    CHECK_EQ(hn_e8m0_from_f64(1e-300, HN_E8M0_UP, false), 0);
    CHECK_EQ(hn_e8m0_from_f64(NAN, HN_E8M0_UP, true), 0xFF);
}

TEST(dtype_integers_wrap)
{
    for (int d = HN_I64; d <= HN_BOOL; d++) {
        const int bits = hn_dtype_bits((hn_dtype)d);
        for (int64_t v = -70000; v <= 70000; v++) {
            uint64_t cell = 0;
            int64_t back;
            hn_narrow_i64((hn_dtype)d, &v, 1, &cell, 0);
            hn_widen_i64((hn_dtype)d, &cell, 0, 1, &back);
            CHECK_EQ(back, hn_wrap_i64((hn_dtype)d, v));
            if (d == HN_BOOL)
                CHECK_EQ(back, v != 0);
            else
                CHECK_EQ((uint64_t)(back ^ v) << (64 - bits), 0);
            if (d != HN_BOOL && bits < 64) {
                const int64_t lo = hn_dtype_is_signed((hn_dtype)d) ? -((int64_t)1 << (bits - 1)) : 0;
                CHECK(back >= lo && back < lo + ((int64_t)1 << bits));
            }
        }
    }
    CHECK_EQ(hn_wrap_i64(HN_I8, 200), -56);
    CHECK_EQ(hn_wrap_i64(HN_U2, -1), 3);
    CHECK_EQ(hn_wrap_i64(HN_I2, 2), -2);
    CHECK_EQ(hn_wrap_i64(HN_U32, -1), 4294967295LL);
}

TEST(dtype_packed_elements_keep_their_neighbours)
{
    static const hn_dtype packed[] = { HN_I4, HN_U4, HN_I2, HN_U2 };
    for (int k = 0; k < HN_COUNT(packed); k++) {
        uint8_t store_at[8];
        int64_t want[16], got[16];
        memset(store_at, 0xA5, sizeof store_at);
        hn_widen_i64(packed[k], store_at, 0, 16, want);
        for (int64_t i = 0; i < 200; i++) {
            const int64_t at = i * 7 % 15;
            const int64_t v[2] = { i * 5 - 300, i * 11 };
            hn_narrow_i64(packed[k], v, 2, store_at, at);
            want[at] = hn_wrap_i64(packed[k], v[0]);
            want[at + 1] = hn_wrap_i64(packed[k], v[1]);
            hn_widen_i64(packed[k], store_at, 0, 16, got);
            CHECK(memcmp(want, got, sizeof want) == 0);
        }
    }
    const uint8_t nibbles = 0xE2; /* low nibble first: 2, then -2 */
    int64_t two[2];
    hn_widen_i64(HN_I4, &nibbles, 0, 2, two);
    CHECK_EQ(two[0], 2);
    CHECK_EQ(two[1], -2);
    double f[2];
    hn_widen_f64(HN_F4E2M1, &nibbles, 0, 2, f);
    CHECK(f[0] == 1 && f[1] == -4);
}

TEST(dtype_across_forms)
{
    static const struct {
        hn_dtype d;
        double v;
        int64_t want;
    } c[] = {
        { HN_I32, -2.9, -2 },          { HN_I8, 300.7, 44 },
        { HN_U8, -1.5, 255 },          { HN_I64, 1e300, INT64_MIN },
        { HN_I64, NAN, INT64_MIN },    { HN_BOOL, 0.1, 1 },
        { HN_BOOL, NAN, 1 },           { HN_BOOL, -0.0, 0 },
        { HN_U64, 0x1p63, INT64_MIN }, { HN_U64, 0x1.8p63, (int64_t)0xC000000000000000u },
    };
    for (int i = 0; i < HN_COUNT(c); i++) {
        uint64_t cell = 0;
        int64_t got;
        hn_test_note("case %d", i);
        hn_narrow_f64(c[i].d, &c[i].v, 1, &cell, 0, true);
        hn_widen_i64(c[i].d, &cell, 0, 1, &got);
        CHECK_EQ(got, c[i].want);
    }
    const uint64_t big = UINT64_MAX;
    double v;
    hn_widen_f64(HN_U64, &big, 0, 1, &v);
    CHECK(v == 0x1p64);
    const int64_t seven = 7;
    uint16_t half;
    hn_narrow_i64(HN_F16, &seven, 1, &half, 0);
    hn_widen_f64(HN_F16, &half, 0, 1, &v);
    CHECK(v == 7);
}

TEST(dtype_bulk_equals_single_and_unaligned)
{
    enum { N = 1000 };
    unsigned char *raw = malloc(N * 8 + 1), *out = malloc(N * 8 + 1);
    double *wide = malloc(N * sizeof *wide);
    hn_rng r;
    hn_rng_init(&r, 5);
    for (int d = 1; d < HN_NDTYPES; d++) {
        const int64_t bytes = hn_dtype_bytes((hn_dtype)d, N);
        for (int64_t i = 0; i < bytes + 1; i++)
            raw[i] = (unsigned char)hn_rng_u64(&r);
        hn_widen_f64((hn_dtype)d, raw + 1, 0, N, wide);
        for (int64_t i = 0; i < N; i++) {
            double one;
            hn_widen_f64((hn_dtype)d, raw + 1, i, 1, &one);
            CHECK(same(one, wide[i]));
        }
        memset(out, 0, (size_t)bytes + 1);
        hn_narrow_f64((hn_dtype)d, wide, N, out + 1, 0, false);
        for (int64_t i = 0; i < N; i++) {
            double again;
            hn_widen_f64((hn_dtype)d, out + 1, i, 1, &again);
            if (hn_dtype_is_float((hn_dtype)d)) CHECK(same(again, wide[i]));
        }
    }
    free(raw);
    free(out);
    free(wide);
}
