#include "cuda_host.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "codegen/cuda/cuda_text.h"

/* In place of the PTX: what a GPU's instructions are defined to do, and coordinates that the driver sets. */
static const char host_prelude[] =
    "#include <cmath>\n#include <cstdint>\n#include <cstring>\nusing namespace std;\n"
    "typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;\n"
    "typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;\n"
    "typedef float f32; typedef double f64;\n"
    "#define __device__\n#define __global__\n#define __shared__ static\n#define __launch_bounds__(n)\n"
    "#define __align__(n) alignas(n)\n#define __restrict__ __restrict\n#define HN_FN static inline\n"
    "struct at { u32 x, y, z; };\nstatic at blockIdx, threadIdx;\n"
    "HN_FN f32 hn_f32(u32 b) { f32 x; memcpy(&x, &b, 4); return x; }\n"
    "HN_FN f64 hn_f64(u64 b) { f64 x; memcpy(&x, &b, 8); return x; }\n"
    "HN_FN u32 hn_bits(f32 x) { u32 b; memcpy(&b, &x, 4); return b; }\n"
    "HN_FN u64 hn_bits(f64 x) { u64 b; memcpy(&b, &x, 8); return b; }\n"
    "HN_FN f32 hn_fma(f32 x, f32 y, f32 z) { return fmaf(x, y, z); }\n"
    "HN_FN f64 hn_fma(f64 x, f64 y, f64 z) { return fma(x, y, z); }\n"
    "HN_FN f32 hn_fmin(f32 x, f32 y) { if (x != x) return x; if (y != y) return y;\n"
    "  if (x == y) return hn_f32(hn_bits(x) | hn_bits(y)); return x < y ? x : y; }\n"
    "HN_FN f32 hn_fmax(f32 x, f32 y) { if (x != x) return x; if (y != y) return y;\n"
    "  if (x == y) return hn_f32(hn_bits(x) & hn_bits(y)); return x > y ? x : y; }\n"
    "HN_FN f32 hn_from_f16(u16 h) { _Float16 v; memcpy(&v, &h, 2); return (f32)v; }\n"
    "HN_FN u16 hn_to_f16(f32 x) { _Float16 v = (_Float16)x; u16 h; memcpy(&h, &v, 2); return h; }\n"
    "HN_FN u16 hn_to_bf16(f32 x) { const u32 b = hn_bits(x); if (x != x) return (u16)(b >> 16 | 64);\n"
    "  return (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16); }\n"
    "HN_FN i32 hn_clz32(u32 x) { return x ? __builtin_clz(x) : 32; }\n"
    "HN_FN i32 hn_clz64(u64 x) { return x ? __builtin_clzll(x) : 64; }\n"
    "HN_FN i32 hn_popc32(u32 x) { return __builtin_popcount(x); }\n"
    "HN_FN i32 hn_popc64(u64 x) { return __builtin_popcountll(x); }\n"
    "HN_FN i64 hn_mulhi64(i64 x, i64 y) { return (i64)(((__int128)x * y) >> 64); }\n"
    "HN_FN u64 hn_mulhi64(u64 x, u64 y) { return (u64)(((unsigned __int128)x * y) >> 64); }\n"
    "template <class T> HN_FN T hn_shfl_xor(T x, int m) { return x; }\n"
    "template <class T> HN_FN T hn_shfl_down(T x, int d) { return x; }\n";

static void add_call(hn_str *s, int k, const hn_kfunc *f)
{
    const char *comma = "";

    hn_str_addf(s, "extern \"C\" void run%d(void **b, const i64 *a, const u32 *block, const u32 *thread) {\n", k);
    hn_str_add(s, "  blockIdx = { block[0], 0, 0 }; threadIdx = { thread[0], thread[1], thread[2] };\n");
    hn_str_addf(s, "  n%d::kernel%d(", k, k);
    for (int i = 0; i < f->n_buf; i++) {
        if (f->buf[i].kind != HN_KBUF_PARAM) continue;
        hn_str_addf(s, "%s(decltype(type%d_%d))b[%d]", comma, k, i, f->buf[i].slot);
        comma = ", ";
    }
    for (int i = 0; i < f->n_arg; i++) {
        hn_str_addf(s, "%sa[%d]", comma, i);
        comma = ", ";
    }
    hn_str_add(s, "); }\n");
}

/* The kernel's text under a name of its own. */
static void add_kernel(hn_test *t, hn_str *s, int k, const hn_kfunc *f)
{
    int64_t shared;
    hn_diag dg = { 0 };

    hn_str_addf(s, "#define %s kernel%d\nnamespace n%d {\n", HN_CU_KERNEL_NAME, k, k);
    CHECK_OK(hn_cu_emit(f, t->arena, s, &shared, &dg), &dg);
    hn_str_addf(s, "}\n#undef %s\n", HN_CU_KERNEL_NAME);
    for (int i = 0; i < f->n_buf; i++) {
        if (f->buf[i].kind != HN_KBUF_PARAM) continue;
        const char *storage = f->buf[i].dtype == HN_F16 || f->buf[i].dtype == HN_BF16 ? "u16"
                              : f->buf[i].dtype == HN_BOOL                           ? "u8"
                                                             : hn_dtype_name((hn_dtype)f->buf[i].dtype);
        hn_str_addf(s, "extern %s *type%d_%d;\n", storage, k, i);
    }
    add_call(s, k, f);
}

static bool run(const char *const *argv)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

const char *cuda_host_compiler(void)
{
    static const char *const known[] = { "g++", "clang++", "clang++-19", "c++" };

    for (int i = 0; i < HN_COUNT(known); i++) {
        char find[64];
        snprintf(find, sizeof(find), "command -v %s >/dev/null", known[i]);
        if (run((const char *const[]){ "sh", "-c", find, NULL })) return known[i];
    }
    return NULL;
}

/* One library of all programs; its files go at once. */
static void *build(hn_test *t, const cuda_batch *b, const char *cxx)
{
    char dir[] = "/tmp/hone_cuda_XXXXXX";
    hn_str s = { 0 };
    hn_diag dg = { 0 };

    CHECK(mkdtemp(dir) != NULL);
    hn_str_add(&s, host_prelude);
    hn_cu_prelude(&s);
    for (int i = 0; i < b->at.n; i++)
        add_kernel(t, &s, i, &b->at.at[i].f);
    const char *src = hn_arena_printf(t->arena, "%s/k.cc", dir), *so = hn_arena_printf(t->arena, "%s/k.so", dir);
    CHECK_OK(hn_write_file_atomic(src, s.s, s.n, &dg), &dg);
    hn_str_done(&s);
    const char *const cmd[] = { cxx,  "-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-ffp-contract=off",
                                "-fno-strict-aliasing", "-o", so, src, NULL };
    if (!run(cmd)) FAIL("%s does not compile %s", cxx, src);
    void *lib = dlopen(so, RTLD_NOW | RTLD_LOCAL);
    if (!lib) FAIL("%s", dlerror());
    unlink(src);
    unlink(so);
    rmdir(dir);
    return lib;
}

static void launch(void *lib, int k, const hn_kfunc *f, void *const *buf)
{
    char name[32];
    void (*call)(void *const *, const int64_t *, const uint32_t *, const uint32_t *);

    snprintf(name, sizeof(name), "run%d", k);
    void *at = dlsym(lib, name);
    CHECK(at != NULL);
    memcpy(&call, &at, sizeof(call));
    const int64_t blocks = hn_kfunc_blocks(f, NULL);
    for (uint32_t b = 0; b < blocks; b++)
        for (uint32_t z = 0; z < (uint32_t)f->threads[2]; z++)
            for (uint32_t y = 0; y < (uint32_t)f->threads[1]; y++)
                for (uint32_t x = 0; x < (uint32_t)f->threads[0]; x++)
                    call(buf, NULL, &b, (uint32_t[]){ x, y, z });
}

static bool is_nan(const uint8_t *p, hn_dtype t)
{
    float f;
    double d;

    memcpy(&f, p, 4);
    if (t == HN_F32) return f != f;
    if (t != HN_F64) return false;
    memcpy(&d, p, 8);
    return d != d;
}

static void compare(const cuda_case *c, int buf, const uint8_t *got)
{
    const uint8_t *want = c->want[buf];
    const int size = hn_dtype_bits(c->out_type[buf]) / 8;

    for (int64_t i = 0; i < c->bytes[buf]; i += size)
        if (memcmp(want + i, got + i, (size_t)size) && !(is_nan(want + i, c->out_type[buf]) && is_nan(got + i, c->out_type[buf])))
            FAIL("%s as CUDA C: result %d, element %d", c->f.name, buf - c->n_in, (int)(i / size));
}

void cuda_later(hn_test *t, cuda_batch *b, const hn_kfunc *cpu, const hn_kmem *mem, int n_in, int n_buf,
                const hn_dtype *out_type, const void *const *before)
{
    hn_kgrid g;
    hn_diag dg = { 0 };
    cuda_case c = { .n_buf = n_buf, .n_in = n_in };

    CHECK_OK(hn_kfunc_to_grid(t->arena, cpu, 1, &g, &dg), &dg);
    CHECK_EQ(g.n_scratch, 0);
    c.f = g.func;
    for (int i = 0; i < n_buf; i++) {
        c.bytes[i] = mem[i].bytes;
        c.out_type[i] = i < n_in ? HN_NONE : out_type[i - n_in];
        c.in[i] = hn_arena_memdup(t->arena, i < n_in ? mem[i].at : before[i - n_in], (size_t)mem[i].bytes);
        c.want[i] = hn_arena_memdup(t->arena, mem[i].at, (size_t)mem[i].bytes);
    }
    CHECK(hn_vec_push(t->arena, &b->at, c));
}

void cuda_check(hn_test *t, cuda_batch *b)
{
    const char *cxx = cuda_host_compiler();

    if (!cxx || b->at.n == 0) return;
    void *lib = build(t, b, cxx);
    for (int i = 0; i < b->at.n; i++) {
        const cuda_case *c = &b->at.at[i];
        hn_test_note("kernel %s as CUDA C", c->f.name);
        launch(lib, i, &c->f, c->in);
        for (int k = c->n_in; k < c->n_buf; k++)
            compare(c, k, c->in[k]);
    }
    dlclose(lib);
    b->at.n = 0;
}
