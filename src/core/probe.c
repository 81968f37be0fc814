/*
 * Peaks of this machine, measured. The loops are assembly: what they reach must not depend on how this file
 * was compiled, and they name instructions that the rest of the program is not built for.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "base/os.h"
#include "core/target_int.h"

/* Twelve independent chains: two pipes times a latency of four to five, and a spare. All registers hold zero:
 * no denormals, no overflow, and power draw does not matter in a millisecond. */
#if defined(__x86_64__)
#define CLOBBERS                                                                                             \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11",        \
        "xmm12", "cc"
#define FMA_LOOP(n, reg)                                                                                     \
    __asm__ volatile(".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12\n\tvxorps %%xmm\\i, %%xmm\\i, %%xmm\\i\n\t.endr\n" \
                     "1:\n\t"                                                                                \
                     ".irp i,0,1,2,3,4,5,6,7,8,9,10,11\n\t"                                                  \
                     "vfmadd231ps %%" reg "12, %%" reg "12, %%" reg "\\i\n\t.endr\n\t"                       \
                     "dec %0\n\tjnz 1b\n\tvzeroupper"                                                        \
                     : "+r"(n)                                                                               \
                     :                                                                                       \
                     : CLOBBERS)

static double flops_avx512(int64_t n)
{
    const double flops = (double)n * 12 * 16 * 2;
    FMA_LOOP(n, "zmm");
    return flops;
}

static double flops_fma(int64_t n)
{
    const double flops = (double)n * 12 * 8 * 2;
    FMA_LOOP(n, "ymm");
    return flops;
}

/* Without FMA a multiply and an add go side by side. */
static double flops_sse(int64_t n)
{
    const double flops = (double)n * 12 * 4;
    __asm__ volatile(".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12\n\txorps %%xmm\\i, %%xmm\\i\n\t.endr\n"
                     "1:\n\t"
                     ".irp i,0,1,2,3,4,5\n\tmulps %%xmm12, %%xmm\\i\n\t.endr\n\t"
                     ".irp i,6,7,8,9,10,11\n\taddps %%xmm12, %%xmm\\i\n\t.endr\n\t"
                     "dec %0\n\tjnz 1b"
                     : "+r"(n)
                     :
                     : CLOBBERS);
    return flops;
}

typedef double (*flops_fn)(int64_t n);

static flops_fn loop_for(uint64_t feat)
{
    if (feat & HN_FEAT_AVX512) return flops_avx512;
    return feat & HN_FEAT_FMA ? flops_fma : flops_sse;
}
#elif defined(__aarch64__)
static double flops_neon(int64_t n)
{
    const double flops = (double)n * 20 * 4 * 2;
    __asm__ volatile(
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20\n\tmovi v\\i\\().4s, #0\n\t.endr\n"
        "1:\n\t"
        ".irp i,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19\n\t"
        "fmla v\\i\\().4s, v20.4s, v20.4s\n\t.endr\n\t"
        "subs %0, %0, #1\n\tb.ne 1b"
        : "+r"(n)
        :
        : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14",
          "v15", "v16", "v17", "v18", "v19", "v20", "cc");
    return flops;
}

typedef double (*flops_fn)(int64_t n);

static flops_fn loop_for(uint64_t feat)
{
    (void)feat;
    return flops_neon;
}
#else
#error "no multiply-add probe for this processor"
#endif

double hn_probe_peak_(uint64_t feat)
{
    enum { BLOCKS = 8, ITERATIONS = 100000 }; /* a block takes about 1.2 million cycles */
    const flops_fn loop = loop_for(feat);
    double best = 0;
    loop(ITERATIONS); /* the clock and wide units wake up */
    for (int i = 0; i < BLOCKS; i++) {
        const int64_t t0 = hn_now_ns();
        const double flops = loop(ITERATIONS);
        const int64_t ns = hn_now_ns() - t0;
        if (ns > 0) best = HN_MAX(best, flops / (double)ns);
    }
    return best;
}

/* Reads n bytes, a multiple of 64, aligned. */
static void stream(const void *at, size_t n)
{
    const char *end = (const char *)at + n;
#if defined(__x86_64__)
    __asm__ volatile("1:\n\t"
                     "movaps (%0), %%xmm0\n\tmovaps 16(%0), %%xmm1\n\t"
                     "movaps 32(%0), %%xmm2\n\tmovaps 48(%0), %%xmm3\n\t"
                     "add $64, %0\n\tcmp %1, %0\n\tjb 1b"
                     : "+r"(at)
                     : "r"(end)
                     : "xmm0", "xmm1", "xmm2", "xmm3", "cc", "memory");
#else
    __asm__ volatile("1:\n\t"
                     "ldp q0, q1, [%0]\n\tldp q2, q3, [%0, #32]\n\t"
                     "add %0, %0, #64\n\tcmp %0, %1\n\tb.lo 1b"
                     : "+r"(at)
                     : "r"(end)
                     : "v0", "v1", "v2", "v3", "cc", "memory");
#endif
}

double hn_probe_bandwidth_(int64_t l3_bytes)
{
    enum { MIB = 1 << 20 };
    const size_t bytes = (size_t)HN_MAX(HN_MIN(2 * l3_bytes, (int64_t)128 * MIB), (int64_t)32 * MIB);
    uint64_t *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    double best = 0;
    if (at == MAP_FAILED) return 0;
    madvise(at, bytes, MADV_HUGEPAGE);
    for (size_t i = 0; i < bytes / 8; i += 512) /* pages come into being when written */
        at[i] = i;
    for (int i = 0; i < 2; i++) {
        const int64_t t0 = hn_now_ns();
        stream(at, bytes);
        const int64_t ns = hn_now_ns() - t0;
        if (ns > 0) best = HN_MAX(best, (double)bytes / (double)ns);
    }
    munmap(at, bytes);
    return best;
}
