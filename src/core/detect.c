/* This machine: features and names from the processor, caches from the kernel or the processor. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/os.h"
#include "core/target_int.h"

struct caches {
    int64_t l1d, l2, l3; /* l3: this core's share */
    int line;
};

#if defined(__x86_64__)
#include <cpuid.h>

struct regs {
    unsigned a, b, c, d;
};

static struct regs cpuid(unsigned leaf, unsigned sub)
{
    struct regs r = { 0 };
    __get_cpuid_count(leaf, sub, &r.a, &r.b, &r.c, &r.d);
    return r;
}

static uint64_t enabled_state(void) /* which register files the kernel saves */
{
    unsigned lo, hi;
    if (!(cpuid(1, 0).c & 1u << 27)) return 0; /* OSXSAVE */
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Linux hands out AMX tiles on request; granted once, for the process. */
static bool may_use_tiles(void)
{
    enum { REQUEST_PERMISSION = 0x1023, TILE_DATA = 18 };
    return syscall(SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0;
}

static bool bit(unsigned word, int i)
{
    return word >> i & 1;
}

static uint64_t detect_features(void)
{
    const struct regs one = cpuid(1, 0), seven = cpuid(7, 0), seven_1 = cpuid(7, 1);
    const uint64_t saved = enabled_state();
    const bool ymm = (saved & 6) == 6, zmm = (saved & 0xE6) == 0xE6, tiles = (saved & 3u << 17) == 3u << 17;
    uint64_t f = 0;
    if (bit(one.c, 20)) f |= HN_FEAT_SSE42;
    if (bit(seven.b, 8)) f |= HN_FEAT_BMI2;
    if (ymm && bit(one.c, 28)) f |= HN_FEAT_AVX;
    if (ymm && bit(one.c, 12)) f |= HN_FEAT_FMA;
    if (ymm && bit(one.c, 29)) f |= HN_FEAT_F16C;
    if (ymm && bit(seven.b, 5)) f |= HN_FEAT_AVX2;
    if (ymm && bit(seven_1.a, 4)) f |= HN_FEAT_AVX_VNNI;
    const unsigned base = 1u << 16 | 1u << 17 | 1u << 28 | 1u << 30 | 1u << 31; /* F, DQ, CD, BW, VL */
    if (zmm && (seven.b & base) == base) {
        f |= HN_FEAT_AVX512;
        if (bit(seven.c, 11)) f |= HN_FEAT_AVX512_VNNI;
        if (bit(seven_1.a, 5)) f |= HN_FEAT_AVX512_BF16;
        if (bit(seven.d, 23)) f |= HN_FEAT_AVX512_FP16;
    }
    if (tiles && bit(seven.d, 24) && may_use_tiles()) {
        f |= HN_FEAT_AMX_TILE;
        if (bit(seven.d, 25)) f |= HN_FEAT_AMX_INT8;
        if (bit(seven.d, 22)) f |= HN_FEAT_AMX_BF16;
    }
    return f;
}

/* The brand text alone is vague in virtual machines: family and model tell cores apart. */
static void detect_name(char *dst, size_t n)
{
    char brand[49] = "x86-64";
    if (cpuid(0x80000000u, 0).a >= 0x80000004u)
        for (unsigned i = 0; i < 3; i++) {
            const struct regs r = cpuid(0x80000002u + i, 0);
            memcpy(brand + 16 * i, &r, 16);
        }
    brand[48] = '\0';
    size_t len = strlen(brand);
    while (len && brand[len - 1] == ' ')
        brand[--len] = '\0';
    const unsigned v = cpuid(1, 0).a, family = v >> 8 & 15, model = v >> 4 & 15;
    snprintf(dst, n, "%.40s (family %u model %u)", brand + strspn(brand, " "),
             family == 15 ? family + (v >> 20 & 255) : family,
             family == 6 || family == 15 ? model | (v >> 16 & 15) << 4 : model);
}

/* Intel's leaf 4 and AMD's 0x8000001D have one format. */
static void caches_from_cpu(struct caches *c)
{
    const bool amd = (cpuid(0x80000001u, 0).c & 1u << 22) != 0; /* topology extensions */
    for (unsigned i = 0; i < 8; i++) {
        const struct regs r = cpuid(amd ? 0x8000001Du : 4, i);
        const unsigned type = r.a & 31, level = r.a >> 5 & 7;
        if (type == 0) break;
        if (type == 2) continue; /* instructions */
        const int64_t line = (r.b & 0xFFF) + 1, parts = (r.b >> 12 & 0x3FF) + 1, ways = (r.b >> 22) + 1;
        const int64_t bytes = line * parts * ways * ((int64_t)r.c + 1), sharing = (r.a >> 14 & 0xFFF) + 1;
        c->line = (int)line;
        if (level == 1) c->l1d = bytes;
        if (level == 2) c->l2 = bytes;
        if (level == 3) c->l3 = bytes / sharing;
    }
}
#else
static uint64_t detect_features(void)
{
    return 0;
}

static void detect_name(char *dst, size_t n)
{
    snprintf(dst, n, "aarch64");
    FILE *f = fopen("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", "re");
    char midr[32];
    if (!f) return;
    if (fscanf(f, "%31s", midr) == 1) snprintf(dst, n, "aarch64 midr %s", midr);
    fclose(f);
}

static void caches_from_cpu(struct caches *c)
{
    (void)c;
}
#endif

/* ---- caches as the kernel lists them ---- */
static bool read_cache_file(int index, const char *name, char *dst, size_t n)
{
    char path[128];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu0/cache/index%d/%s", index, name);
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool ok = fgets(dst, (int)n, f) != NULL;
    fclose(f);
    if (ok) dst[strcspn(dst, "\n")] = '\0';
    return ok;
}

/* How many processors a list like "0-3,8" names. */
static int count_list(const char *s)
{
    int n = 0, lo, hi, used;
    while (sscanf(s, "%d%n", &lo, &used) == 1) {
        s += used;
        hi = lo;
        if (*s == '-' && sscanf(s + 1, "%d%n", &hi, &used) == 1) s += 1 + used;
        n += hi - lo + 1;
        if (*s != ',') break;
        s++;
    }
    return HN_MAX(n, 1);
}

static int64_t parse_size(const char *s)
{
    char *end;
    const long long v = strtoll(s, &end, 10);
    return v * (*end == 'K' ? 1024 : *end == 'M' ? 1024 * 1024 : 1);
}

static void caches_from_kernel(struct caches *c)
{
    char level[16], type[32], size[32], line[16], shared[256];
    int threads_a_core = 1;
    for (int i = 0; i < 8 && read_cache_file(i, "level", level, sizeof level); i++) {
        if (!read_cache_file(i, "type", type, sizeof type) || strcmp(type, "Instruction") == 0) continue;
        if (!read_cache_file(i, "size", size, sizeof size)) continue;
        const int sharing =
            read_cache_file(i, "shared_cpu_list", shared, sizeof shared) ? count_list(shared) : 1;
        const int64_t bytes = parse_size(size);
        if (level[0] == '1') {
            c->l1d = bytes;
            threads_a_core = sharing;
            if (read_cache_file(i, "coherency_line_size", line, sizeof line)) c->line = atoi(line);
        }
        if (level[0] == '2') c->l2 = bytes;
        if (level[0] == '3') c->l3 = bytes / HN_MAX(sharing / threads_a_core, 1);
    }
}

/* ---- together ---- */
static hn_target bare; /* without mask and measurements */
static pthread_once_t bare_once = PTHREAD_ONCE_INIT;

static void detect_bare(void)
{
    struct caches c = { .l1d = 32 << 10, .l2 = 512 << 10, .l3 = 2 << 20, .line = 64 };
    caches_from_cpu(&c);
    caches_from_kernel(&c);
    strcpy(bare.name, "host");
#if defined(__x86_64__)
    bare.arch = HN_ARCH_X86_64;
#else
    bare.arch = HN_ARCH_AARCH64;
#endif
    bare.feat = detect_features();
    bare.l1d_bytes = c.l1d;
    bare.l2_bytes = c.l2;
    bare.l3_bytes = c.l3;
    bare.line_bytes = c.line > 0 ? c.line : 64;
    detect_name(bare.cpu_name, sizeof bare.cpu_name);
}

enum { N_WIDTH = 3 };
static double peak[N_WIDTH]; /* by the widest unit that a mask leaves; 0: not measured yet */
static double bandwidth;
static pthread_mutex_t measure_lock = PTHREAD_MUTEX_INITIALIZER;

static void measure(hn_target *t)
{
    const int width = t->feat & HN_FEAT_AVX512 ? 2 : t->feat & HN_FEAT_FMA ? 1 : 0;
    pthread_mutex_lock(&measure_lock);
    if (peak[width] == 0) peak[width] = hn_probe_peak_(t->feat);
    if (bandwidth == 0) bandwidth = hn_probe_bandwidth_(t->l3_bytes * t->n_core);
    t->peak_gflops = peak[width];
    t->bandwidth_gbs = bandwidth;
    pthread_mutex_unlock(&measure_lock);
}

void hn_target_detect(hn_target *ret, bool with_peaks)
{
    const char *mask = hn_env("HONE_CPU_FEATURES");
    pthread_once(&bare_once, detect_bare);
    hn_target t = bare;
    if (mask) t.feat = hn_target_mask_(t.feat, mask);
    t.n_core = hn_cpu_count();
    t.vec_bytes = t.feat & HN_FEAT_AVX512 ? 64 : t.feat & HN_FEAT_AVX ? 32 : 16;
    t.n_vreg = t.arch == HN_ARCH_AARCH64 || t.vec_bytes == 64 ? 32 : 16;
    if (with_peaks) measure(&t);
    *ret = t;
}
