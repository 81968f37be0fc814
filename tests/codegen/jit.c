#include "jit.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void add(hn_target *ret, int cap, int *n, const char *name, uint64_t feat, int vec_bytes, int n_vreg)
{
    if (*n == cap) return;
    hn_target *t = &ret[(*n)++];
    memset(t, 0, sizeof(*t));
    strcpy(t->name, name);
    t->arch = HN_ARCH_X86_64;
    t->feat = feat;
    t->vec_bytes = vec_bytes;
    t->n_vreg = n_vreg;
    t->n_core = 1;
}

int jit_targets(hn_target *ret, int cap)
{
    uint64_t feat = HN_FEAT_SSE42;
    int n = 0;

    __builtin_cpu_init();
    add(ret, cap, &n, "x86-64-v2", feat, 16, 16);
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return n;
    feat |= HN_FEAT_AVX | HN_FEAT_AVX2 | HN_FEAT_FMA | HN_FEAT_F16C | HN_FEAT_BMI2;
    add(ret, cap, &n, "x86-64-v3", feat, 32, 16);
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) return n;
    feat |= HN_FEAT_AVX512;
    add(ret, cap, &n, "x86-64-v4", feat, 64, 32);
    if (__builtin_cpu_supports("avx512vnni")) feat |= HN_FEAT_AVX512_VNNI;
    if (__builtin_cpu_supports("avx512bf16")) feat |= HN_FEAT_AVX512_BF16;
    add(ret, cap, &n, "host", feat, 64, 32);
    return n;
}

jit jit_make(hn_test *t, const hn_kfunc *f, const hn_target *target)
{
    hn_diag dg = { 0 };
    jit j = { 0 };

    hn_test_note("kernel %s on %s", f->name, target->name);
    CHECK_OK(hn_codegen_llvm.compile(f, target, t->arena, &j.code, &dg), &dg);
    j.map_bytes = (j.code.n + 4095) / 4096 * 4096;
    j.map = mmap(NULL, j.map_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(j.map != MAP_FAILED);
    memcpy(j.map, j.code.at, j.code.n);
    CHECK(mprotect(j.map, j.map_bytes, PROT_READ | PROT_EXEC) == 0);
    const uintptr_t entry = (uintptr_t)j.map + j.code.entry;
    memcpy(&j.fn, &entry, sizeof(j.fn));
    return j;
}

void jit_done(jit *j)
{
    munmap(j->map, j->map_bytes);
    *j = (jit){ 0 };
}

void jit_run(const jit *j, const hn_kfunc *f, void *const *buf, const int64_t *arg)
{
    const size_t n = (size_t)hn_kfunc_scratch_bytes(f, arg);
    void *scratch = n ? aligned_alloc(64, n) : NULL;

    if (n) memset(scratch, 0xa5, n);
    j->fn(buf, arg, 0, hn_kfunc_parallel(f, arg), scratch);
    free(scratch);
}

bool jit_is_nan(const void *p, hn_dtype t)
{
    float f;
    double d;

    memcpy(&f, p, 4);
    if (t == HN_F32) return f != f;
    if (t != HN_F64) return false;
    memcpy(&d, p, 8);
    return d != d;
}
