/* Targets: frozen tables by name, features as text, comparison with this machine. */
#include "core/target.h"

#include <string.h>

#include "base/attr.h"
#include "core/target_int.h"

#define KIB 1024LL
#define MIB (1024LL * 1024)

enum {
    LEVEL_2 = HN_FEAT_SSE42,
    LEVEL_3 = LEVEL_2 | HN_FEAT_AVX | HN_FEAT_AVX2 | HN_FEAT_FMA | HN_FEAT_F16C | HN_FEAT_BMI2,
    LEVEL_4 = LEVEL_3 | HN_FEAT_AVX512,
    ZEN_4 = LEVEL_4 | HN_FEAT_AVX512_VNNI | HN_FEAT_AVX512_BF16,
    SAPPHIRE = ZEN_4 | HN_FEAT_AVX512_FP16 | HN_FEAT_AMX_TILE | HN_FEAT_AMX_INT8 | HN_FEAT_AMX_BF16 |
               HN_FEAT_AVX_VNNI,
};

/*
 * Frozen: a payload built with --frozen depends on these numbers, so they are not edited, only added to.
 * Peaks are lanes * 2 * multiply-add pipes * a usual all-core clock; bandwidth is what one core usually
 * streams. For sm targets a core is a multiprocessor and the device's bandwidth is divided among them.
 */
/* clang-format off */
static const hn_target named[] = {
    { .name = "x86-64-v2", .arch = HN_ARCH_X86_64, .feat = LEVEL_2, .vec_bytes = 16, .n_vreg = 16, .n_core = 4,
      .l1d_bytes = 32 * KIB, .l2_bytes = 256 * KIB, .l3_bytes = 2 * MIB, .line_bytes = 64, .peak_gflops = 24,
      .bandwidth_gbs = 8, .cpu_name = "generic x86-64-v2" },
    { .name = "x86-64-v3", .arch = HN_ARCH_X86_64, .feat = LEVEL_3, .vec_bytes = 32, .n_vreg = 16, .n_core = 4,
      .l1d_bytes = 32 * KIB, .l2_bytes = 512 * KIB, .l3_bytes = 2 * MIB, .line_bytes = 64, .peak_gflops = 96,
      .bandwidth_gbs = 12, .cpu_name = "generic x86-64-v3" },
    { .name = "x86-64-v4", .arch = HN_ARCH_X86_64, .feat = LEVEL_4, .vec_bytes = 64, .n_vreg = 32, .n_core = 4,
      .l1d_bytes = 32 * KIB, .l2_bytes = 1 * MIB, .l3_bytes = 2 * MIB, .line_bytes = 64, .peak_gflops = 128,
      .bandwidth_gbs = 12, .cpu_name = "generic x86-64-v4" },
    { .name = "znver3", .arch = HN_ARCH_X86_64, .feat = LEVEL_3, .vec_bytes = 32, .n_vreg = 16, .n_core = 8,
      .l1d_bytes = 32 * KIB, .l2_bytes = 512 * KIB, .l3_bytes = 4 * MIB, .line_bytes = 64, .peak_gflops = 98,
      .bandwidth_gbs = 20, .cpu_name = "AMD Zen 3" },
    { .name = "znver4", .arch = HN_ARCH_X86_64, .feat = ZEN_4, .vec_bytes = 64, .n_vreg = 32, .n_core = 8,
      .l1d_bytes = 32 * KIB, .l2_bytes = 1 * MIB, .l3_bytes = 4 * MIB, .line_bytes = 64, .peak_gflops = 117,
      .bandwidth_gbs = 22, .cpu_name = "AMD Zen 4" },
    { .name = "skylake-avx512", .arch = HN_ARCH_X86_64, .feat = LEVEL_4, .vec_bytes = 64, .n_vreg = 32, .n_core = 8,
      .l1d_bytes = 32 * KIB, .l2_bytes = 1 * MIB, .l3_bytes = 1408 * KIB, .line_bytes = 64, .peak_gflops = 150,
      .bandwidth_gbs = 12, .cpu_name = "Intel Skylake server" },
    { .name = "sapphirerapids", .arch = HN_ARCH_X86_64, .feat = SAPPHIRE, .vec_bytes = 64, .n_vreg = 32, .n_core = 16,
      .l1d_bytes = 48 * KIB, .l2_bytes = 2 * MIB, .l3_bytes = 1920 * KIB, .line_bytes = 64, .peak_gflops = 166,
      .bandwidth_gbs = 14, .cpu_name = "Intel Sapphire Rapids" },
    { .name = "neoverse-n1", .arch = HN_ARCH_AARCH64, .feat = 0, .vec_bytes = 16, .n_vreg = 32, .n_core = 8,
      .l1d_bytes = 64 * KIB, .l2_bytes = 1 * MIB, .l3_bytes = 1 * MIB, .line_bytes = 64, .peak_gflops = 40,
      .bandwidth_gbs = 16, .cpu_name = "Arm Neoverse N1" },
    { .name = "neoverse-v1", .arch = HN_ARCH_AARCH64, .feat = 0, .vec_bytes = 16, .n_vreg = 32, .n_core = 8,
      .l1d_bytes = 64 * KIB, .l2_bytes = 1 * MIB, .l3_bytes = 1 * MIB, .line_bytes = 64, .peak_gflops = 83,
      .bandwidth_gbs = 22, .cpu_name = "Arm Neoverse V1" },
    { .name = "sm_80", .arch = HN_ARCH_SM, .feat = HN_FEAT_SM_80, .vec_bytes = 16, .n_vreg = 255, .n_core = 108,
      .l1d_bytes = 192 * KIB, .l2_bytes = 40 * MIB, .l3_bytes = 0, .line_bytes = 128, .peak_gflops = 180,
      .bandwidth_gbs = 14.4, .shared_bytes = 163 * KIB, .cpu_name = "NVIDIA A100" },
    { .name = "sm_90a", .arch = HN_ARCH_SM, .feat = HN_FEAT_SM_90A, .vec_bytes = 16, .n_vreg = 255, .n_core = 132,
      .l1d_bytes = 256 * KIB, .l2_bytes = 60 * MIB, .l3_bytes = 0, .line_bytes = 128, .peak_gflops = 507,
      .bandwidth_gbs = 32.6, .shared_bytes = 227 * KIB, .cpu_name = "NVIDIA H200" }, /* a copy moves 4.3 TB/s in all */
};
/* clang-format on */

void hn_target_usual_peaks(hn_target *t)
{
    const hn_target *like = NULL;
    for (int i = 0; i < HN_COUNT(named); i++) /* the list rises: the last one that it covers is the nearest */
        if (named[i].arch == t->arch && (named[i].feat & ~t->feat) == 0 && (!like || strncmp(named[i].name, "x86-64-v", 8) == 0))
            like = &named[i];
    t->peak_gflops = like ? like->peak_gflops : 12;
    t->bandwidth_gbs = like ? like->bandwidth_gbs : 8;
}

int hn_target_n_named(void)
{
    return HN_COUNT(named);
}

const hn_target *hn_target_named(int i)
{
    return i >= 0 && i < HN_COUNT(named) ? &named[i] : NULL;
}

hone_status hn_target_get(const char *name, hn_target *ret, hn_diag *dg)
{
    hn_str known = { 0 };
    if (strcmp(name, "host") == 0) {
        hn_target_detect(ret, /* measure= */ true);
        return HONE_OK;
    }
    for (int i = 0; i < HN_COUNT(named); i++) {
        if (strcmp(named[i].name, name) != 0) continue;
        *ret = named[i];
        return HONE_OK;
    }
    for (int i = 0; i < HN_COUNT(named); i++)
        hn_str_addf(&known, ", %s", named[i].name);
    hn_hint(dg, "Known targets: host%s.", hn_str_get(&known));
    hn_str_done(&known);
    return HN_RAISE(dg, HONE_E_NOTFOUND, "unknown target \"%s\"", name);
}

/* ---- features ---- */
static const struct {
    const char *name;
    uint64_t bit, needs;
} features[] = {
    { "sse42", HN_FEAT_SSE42, 0 },
    { "avx", HN_FEAT_AVX, HN_FEAT_SSE42 },
    { "avx2", HN_FEAT_AVX2, HN_FEAT_AVX },
    { "fma", HN_FEAT_FMA, HN_FEAT_AVX },
    { "f16c", HN_FEAT_F16C, HN_FEAT_AVX },
    { "bmi2", HN_FEAT_BMI2, 0 },
    { "avx512", HN_FEAT_AVX512, HN_FEAT_AVX2 | HN_FEAT_FMA | HN_FEAT_F16C },
    { "avx512_vnni", HN_FEAT_AVX512_VNNI, HN_FEAT_AVX512 },
    { "avx512_bf16", HN_FEAT_AVX512_BF16, HN_FEAT_AVX512 },
    { "avx512_fp16", HN_FEAT_AVX512_FP16, HN_FEAT_AVX512 },
    { "amx_tile", HN_FEAT_AMX_TILE, 0 },
    { "amx_int8", HN_FEAT_AMX_INT8, HN_FEAT_AMX_TILE },
    { "amx_bf16", HN_FEAT_AMX_BF16, HN_FEAT_AMX_TILE },
    { "avx_vnni", HN_FEAT_AVX_VNNI, HN_FEAT_AVX2 },
    { "sm_80", HN_FEAT_SM_80, 0 },
    { "sm_90a", HN_FEAT_SM_90A, 0 },
};

/* Features whose prerequisites are missing go too. In table order one pass is enough: needs point upwards. */
static uint64_t close_over(uint64_t feat)
{
    for (int i = 0; i < HN_COUNT(features); i++)
        if ((features[i].needs & feat) != features[i].needs) feat &= ~features[i].bit;
    return feat;
}

static uint64_t feature_bit(const char *name, size_t n)
{
    for (int i = 0; i < HN_COUNT(features); i++)
        if (strlen(features[i].name) == n && memcmp(features[i].name, name, n) == 0) return features[i].bit;
    return 0;
}

uint64_t hn_target_mask_(uint64_t feat, const char *mask)
{
    static const struct {
        const char *name;
        uint64_t keep;
    } levels[] = { { "scalar", 0 }, { "avx2", LEVEL_3 }, { "avx512", LEVEL_4 } };
    while (*mask) {
        const size_t n = strcspn(mask, ", ");
        for (int i = 0; i < HN_COUNT(levels); i++)
            if (strlen(levels[i].name) == n && memcmp(levels[i].name, mask, n) == 0) feat &= levels[i].keep;
        if (*mask == '-') feat &= ~feature_bit(mask + 1, n - 1);
        mask += n;
        mask += strspn(mask, ", ");
    }
    return close_over(feat);
}

void hn_feat_print(uint64_t feat, hn_str *out)
{
    const char *comma = "";
    for (int i = 0; i < HN_COUNT(features); i++) {
        if (!(feat & features[i].bit)) continue;
        hn_str_addf(out, "%s%s", comma, features[i].name);
        comma = ",";
    }
}

bool hn_target_has(const hn_target *t, uint64_t feat)
{
    return (t->feat & feat) == feat;
}

static const char *arch_name(hn_arch a)
{
    switch (a) {
    case HN_ARCH_X86_64:
        return "x86-64";
    case HN_ARCH_AARCH64:
        return "aarch64";
    case HN_ARCH_SM:
        return "NVIDIA GPU";
    }
    return "unknown";
}

hone_status hn_target_check_runs_here(const hn_target *t, hn_diag *dg)
{
    hn_target here;
    hn_target_detect(&here, /* measure= */ false);
    if (t->arch != here.arch)
        return HN_RAISE(dg, HONE_E_TARGET, "code for target \"%s\" (%s) cannot run on this processor (%s)",
                        t->name, arch_name(t->arch), arch_name(here.arch));
    if (hn_target_has(&here, t->feat)) return HONE_OK;
    hn_str missing = { 0 };
    hn_feat_print(t->feat & ~here.feat, &missing);
    hn_hint(dg, "Build the engine on this machine, or for a smaller target such as x86-64-v3.");
    const hone_status s =
        HN_RAISE(dg, HONE_E_TARGET, "target \"%s\" needs features that this processor lacks: %s", t->name,
                 hn_str_get(&missing));
    hn_str_done(&missing);
    return s;
}

hn_digest hn_target_fingerprint(const hn_target *t)
{
    const int64_t number[] = { t->arch,      (int64_t)t->feat, t->vec_bytes, t->n_vreg,
                               t->l1d_bytes, t->l2_bytes,      t->l3_bytes,  t->line_bytes };
    hn_hasher h;
    hn_hasher_init(&h);
    hn_hasher_str(&h, t->cpu_name);
    for (int i = 0; i < HN_COUNT(number); i++)
        hn_hasher_i64(&h, number[i]);
    return hn_hasher_end(&h);
}

void hn_target_print(const hn_target *t, hn_str *out)
{
    hn_str_addf(out, "%s: %s, %d core%s", t->name, t->cpu_name, t->n_core, t->n_core == 1 ? "" : "s");
    if (t->feat) hn_str_add(out, ", ");
    hn_feat_print(t->feat, out);
    hn_str_addf(out, ", %d-bit vectors, L1d %lld KiB, L2 %lld KiB, L3 %lld KiB", t->vec_bytes * 8,
                (long long)(t->l1d_bytes / KIB), (long long)(t->l2_bytes / KIB),
                (long long)(t->l3_bytes / KIB));
    if (t->peak_gflops > 0)
        hn_str_addf(out, ", %.0f GFLOP/s and %.1f GB/s a core", t->peak_gflops, t->bandwidth_gbs);
}
