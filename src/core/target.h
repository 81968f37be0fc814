/* What code is generated for: instruction set, caches, cores, measured peaks. Named targets are frozen tables. */
#ifndef HN_CORE_TARGET_H
#define HN_CORE_TARGET_H

#include "base/diag.h"
#include "base/hash.h"
#include "base/str.h"

typedef enum hn_feat { /* bits; numbers reach engine files */
    HN_FEAT_SSE42 = 1 << 0,
    HN_FEAT_AVX = 1 << 1,
    HN_FEAT_AVX2 = 1 << 2,
    HN_FEAT_FMA = 1 << 3,
    HN_FEAT_F16C = 1 << 4,
    HN_FEAT_BMI2 = 1 << 5,
    HN_FEAT_AVX512 = 1 << 6, /* F, BW, DQ, VL, CD together */
    HN_FEAT_AVX512_VNNI = 1 << 7,
    HN_FEAT_AVX512_BF16 = 1 << 8,
    HN_FEAT_AVX512_FP16 = 1 << 9,
    HN_FEAT_AMX_TILE = 1 << 10,
    HN_FEAT_AMX_INT8 = 1 << 11,
    HN_FEAT_AMX_BF16 = 1 << 12,
    HN_FEAT_AVX_VNNI = 1 << 13,
    HN_FEAT_SM_80 = 1 << 20, /* GPUs of compute capability 8.x */
    HN_FEAT_SM_90A = 1 << 21, /* of 9.0 alone */
} hn_feat;

typedef enum hn_arch { HN_ARCH_X86_64 = 1, HN_ARCH_AARCH64 = 2, HN_ARCH_SM = 3 } hn_arch;

typedef struct hn_target {
    char name[32]; /* "x86-64-v3", "znver4", "host" */
    hn_arch arch;
    uint64_t feat;
    int vec_bytes; /* widest vector to generate: 16, 32 or 64 */
    int n_vreg;    /* architectural vector registers at that width: 16 or 32 */
    int n_core;
    int64_t l1d_bytes, l2_bytes, l3_bytes; /* of one core; L3: the core's share of what it shares */
    int line_bytes;
    double peak_gflops;   /* f32 multiply-add peak of one core, measured (host) or frozen (named) */
    double bandwidth_gbs; /* one core's streaming read bandwidth from memory */
    int64_t shared_bytes; /* GPU: shared memory that one block may ask for */
    char cpu_name[64];    /* for people */
} hn_target;

/** Frozen table by name; "host" detects. HONE_E_NOTFOUND lists the known names. */
hone_status hn_target_get(const char *name, hn_target *ret, hn_diag *dg);
int hn_target_n_named(void);
const hn_target *hn_target_named(int i);
/** Features, caches, cores of this machine; peaks measured once per process (about 30 ms) when measure is set. $HONE_CPU_FEATURES
 *  ("avx2", "avx512", "scalar", or "-avx512_vnni,...") masks what is found, for tests. */
void hn_target_detect(hn_target *ret, bool measure);
/** Can this machine run code built for t? On failure *dg names the missing features. */
hone_status hn_target_check_runs_here(const hn_target *t, hn_diag *dg);
/** Peaks that machines of these features usually have: where nothing is or may be measured. */
void hn_target_usual_peaks(hn_target *t);
bool hn_target_has(const hn_target *t, uint64_t feat);
/** For timing caches: cpu name, features, caches; not the measured peaks. */
hn_digest hn_target_fingerprint(const hn_target *t);
void hn_target_print(const hn_target *t, hn_str *out);
void hn_feat_print(uint64_t feat, hn_str *out); /* "avx2,fma,f16c" */

#endif
