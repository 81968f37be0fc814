#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "core/target_int.h"

static const char *feats(uint64_t f)
{
    static char kept[300];
    hn_str s = { 0 };
    hn_feat_print(f, &s);
    strncpy(kept, hn_str_get(&s), sizeof kept - 1);
    hn_str_done(&s);
    return kept;
}

TEST(target_named_tables)
{
    static const char *const names[] = { "x86-64-v2",   "x86-64-v3",      "x86-64-v4",      "znver3",
                                         "znver4",      "skylake-avx512", "sapphirerapids", "neoverse-n1",
                                         "neoverse-v1", "sm_80",          "sm_90a" };
    hn_diag dg = { 0 };
    hn_target x;
    CHECK_EQ(hn_target_n_named(), HN_COUNT(names));
    for (int i = 0; i < HN_COUNT(names); i++) {
        CHECK_OK(hn_target_get(names[i], &x, &dg), &dg);
        CHECK_STR(hn_target_named(i)->name, names[i]);
        CHECK(x.vec_bytes >= 16 && x.n_vreg >= 16 && x.n_core > 0 && x.l1d_bytes > 0 &&
              x.l2_bytes > x.l1d_bytes);
        CHECK(x.peak_gflops > 0 && x.bandwidth_gbs > 0 && x.line_bytes >= 64 && x.cpu_name[0]);
        CHECK_EQ(hn_target_mask_(x.feat, ""), x.feat); /* no feature without what it needs */
        for (int j = 0; j < i; j++)
            CHECK(!hn_digest_eq(hn_target_fingerprint(&x), hn_target_fingerprint(hn_target_named(j))));
    }
    CHECK(hn_target_named(-1) == NULL && hn_target_named(HN_COUNT(names)) == NULL);
    CHECK_ERR(hn_target_get("znver9", &x, &dg), HONE_E_NOTFOUND, &dg, "x86-64-v3, ");
    CHECK_ERR(hn_target_get("", &x, &dg), HONE_E_NOTFOUND, &dg, NULL);
}

TEST(target_feature_texts)
{
    CHECK_STR(feats(0), "");
    CHECK_STR(feats(HN_FEAT_AVX2 | HN_FEAT_FMA | HN_FEAT_F16C), "avx2,fma,f16c");
    hn_target v3;
    hn_diag dg = { 0 };
    CHECK_OK(hn_target_get("x86-64-v3", &v3, &dg), &dg);
    CHECK(hn_target_has(&v3, HN_FEAT_AVX2 | HN_FEAT_FMA) &&
          !hn_target_has(&v3, HN_FEAT_AVX512 | HN_FEAT_AVX2));
    CHECK(hn_target_has(&v3, 0));
}

TEST(target_masks)
{
    hn_target spr;
    hn_diag dg = { 0 };
    CHECK_OK(hn_target_get("sapphirerapids", &spr, &dg), &dg);
    const uint64_t all = spr.feat;
    CHECK_EQ(hn_target_mask_(all, "scalar"), 0);
    CHECK_STR(feats(hn_target_mask_(all, "avx2")), "sse42,avx,avx2,fma,f16c,bmi2");
    CHECK_STR(feats(hn_target_mask_(all, "avx512")), "sse42,avx,avx2,fma,f16c,bmi2,avx512");
    CHECK_EQ(hn_target_mask_(all, "-avx512_vnni,-amx_tile") &
                 (HN_FEAT_AVX512_VNNI | HN_FEAT_AMX_TILE | HN_FEAT_AMX_INT8),
             0);
    CHECK(hn_target_mask_(all, "-avx512_vnni") & HN_FEAT_AVX512_BF16);
    CHECK_EQ(hn_target_mask_(all, "-avx") & ~(uint64_t)(HN_FEAT_SSE42 | HN_FEAT_BMI2 | HN_FEAT_AMX_TILE |
                                                        HN_FEAT_AMX_INT8 | HN_FEAT_AMX_BF16),
             0);
    CHECK_EQ(hn_target_mask_(all, "nonsense"), all);
    CHECK_EQ(hn_target_mask_(0, "avx512"), 0); /* a mask takes away, it never grants */
}

TEST(target_detect_this_machine)
{
    hn_target a, b;
    hn_diag dg = { 0 };
    unsetenv("HONE_CPU_FEATURES");
    hn_target_detect(&a, false);
    hn_target_detect(&b, true);
    CHECK_EQ(a.feat, b.feat);
    CHECK_STR(a.name, "host");
    CHECK(a.cpu_name[0] && a.n_core >= 1 && a.n_core <= hn_cpu_count());
    CHECK(a.l1d_bytes >= 8 << 10 && a.l1d_bytes <= 1 << 20 && a.l2_bytes >= a.l1d_bytes &&
          a.line_bytes >= 16);
    CHECK(a.peak_gflops == 0 && b.peak_gflops > 1 && b.peak_gflops < 2000);
    CHECK(b.bandwidth_gbs > 0.2 && b.bandwidth_gbs < 1000);
    CHECK(hn_digest_eq(hn_target_fingerprint(&a), hn_target_fingerprint(&b)));
    CHECK_OK(hn_target_check_runs_here(&a, &dg), &dg);
#if defined(__x86_64__)
    CHECK_EQ(!!(a.feat & HN_FEAT_AVX2), !!__builtin_cpu_supports("avx2"));
    CHECK_EQ(!!(a.feat & HN_FEAT_FMA), !!__builtin_cpu_supports("fma"));
    CHECK_EQ(!!(a.feat & HN_FEAT_AVX512),
             __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"));
    CHECK_EQ(!!(a.feat & HN_FEAT_AVX512_VNNI), !!__builtin_cpu_supports("avx512vnni"));
#endif
    hn_str s = { 0 };
    hn_target_print(&b, &s);
    printf("    %s\n", hn_str_get(&s));
    hn_str_done(&s);
}

TEST(target_masked_detection_and_run_check)
{
#if defined(__x86_64__)
    hn_target t2, masked;
    hn_diag dg = { 0 };
    setenv("HONE_CPU_FEATURES", "scalar", 1);
    hn_target_detect(&masked, true);
    CHECK(masked.feat == 0 && masked.vec_bytes == 16 && masked.n_vreg == 16 && masked.peak_gflops > 0);
    CHECK_OK(hn_target_get("znver4", &t2, &dg), &dg);
    CHECK_ERR(hn_target_check_runs_here(&t2, &dg), HONE_E_TARGET, &dg, "lacks: sse42,avx,avx2");
    CHECK_OK(hn_target_get("neoverse-n1", &t2, &dg), &dg);
    CHECK_ERR(hn_target_check_runs_here(&t2, &dg), HONE_E_TARGET, &dg, "aarch64");
    CHECK_OK(hn_target_get("sm_90a", &t2, &dg), &dg);
    CHECK_ERR(hn_target_check_runs_here(&t2, &dg), HONE_E_TARGET, &dg, "GPU");
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        double scalar = masked.peak_gflops;
        setenv("HONE_CPU_FEATURES", "avx2", 1);
        hn_target_detect(&masked, true);
        CHECK(masked.vec_bytes == 32 && masked.n_vreg == 16 && !(masked.feat & HN_FEAT_AVX512));
        CHECK(masked.peak_gflops > 1.5 * scalar);
        CHECK_OK(hn_target_get("x86-64-v3", &t2, &dg), &dg);
        CHECK_OK(hn_target_check_runs_here(&t2, &dg), &dg);
    }
#endif
}
