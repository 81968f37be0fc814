#include "sim_prelude.h"

#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

const char sim_prelude[] =
    "#include <cmath>\n#include <cstdint>\n#include <cstdlib>\n#include <cstring>\n#include <ucontext.h>\n#include <utility>\n"
    "using namespace std;\n"
    "typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;\n"
    "typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;\n"
    "typedef float f32; typedef double f64;\n"
    "#define __device__\n#define __global__\n#define __shared__ static\n#define __launch_bounds__(n)\n"
    "#define __align__(n) __attribute__((aligned(n)))\n#define __restrict__ __restrict\n#define HN_FN static inline\n"
    "struct sim_at { u32 x, y, z; };\nstatic sim_at blockIdx, threadIdx;\n"
    /* fibers: a thread that waits lets the others run */
    "struct sim_fiber { ucontext_t c; sim_at at; bool done; char *stack; };\n"
    "static sim_fiber *sim_all; static int sim_n, sim_now, sim_arrived, sim_turn; static ucontext_t sim_main;\n"
    "static int sim_warp_arrived[32], sim_warp_turn[32]; static u64 sim_slot[1024];\n"
    "static void sim_yield() { const int me = sim_now; sim_all[me].at = threadIdx;\n"
    "  swapcontext(&sim_all[me].c, &sim_main); threadIdx = sim_all[me].at; }\n"
    "static void sim_meet(int *arrived, int *turn, int all) { const int t = *turn;\n"
    "  if (++*arrived == all) { *arrived = 0; ++*turn; return; } while (*turn == t) sim_yield(); }\n"
    "static void __syncthreads() { sim_meet(&sim_arrived, &sim_turn, sim_n); }\n"
    "template <class T> static T sim_swap(T x, int other) { const int me = sim_now, w = me / 32, n = sim_n - 32 * w;\n"
    "  T y; memcpy(&sim_slot[me], &x, sizeof(x)); sim_meet(&sim_warp_arrived[w], &sim_warp_turn[w], n < 32 ? n : 32);\n"
    "  memcpy(&y, &sim_slot[other / 32 == w && other < sim_n ? other : me], sizeof(y));\n"
    "  sim_meet(&sim_warp_arrived[w], &sim_warp_turn[w], n < 32 ? n : 32); return y; }\n"
    "template <class T> HN_FN T hn_shfl_xor(T x, int m) { return sim_swap(x, sim_now ^ m); }\n"
    "template <class T> HN_FN T hn_shfl_down(T x, int d) { return sim_swap(x, sim_now + d); }\n"
    "HN_FN void hn_depend() {}\n"
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
    "HN_FN f32 hn_exp2a(f32 x) { return (f32)exp2((f64)x); }\nHN_FN f32 hn_rcpa(f32 x) { return (f32)(1 / (f64)x); }\n"
    "HN_FN f32 hn_from_f16(u16 h) { _Float16 v; memcpy(&v, &h, 2); return (f32)v; }\n"
    "HN_FN u16 hn_to_f16(f32 x) { _Float16 v = (_Float16)x; u16 h; memcpy(&h, &v, 2); return h; }\n"
    "HN_FN u16 hn_to_bf16(f32 x) { const u32 b = hn_bits(x); if (x != x) return (u16)(b >> 16 | 64);\n"
    "  return (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16); }\n"
    "HN_FN i32 hn_clz32(u32 x) { return x ? __builtin_clz(x) : 32; }\n"
    "HN_FN i32 hn_clz64(u64 x) { return x ? __builtin_clzll(x) : 64; }\n"
    "HN_FN i32 hn_popc32(u32 x) { return __builtin_popcount(x); }\n"
    "HN_FN i32 hn_popc64(u64 x) { return __builtin_popcountll(x); }\n"
    "HN_FN i64 hn_mulhi64(i64 x, i64 y) { return (i64)(((__int128)x * y) >> 64); }\n"
    "HN_FN u64 hn_mulhi64(u64 x, u64 y) { return (u64)(((unsigned __int128)x * y) >> 64); }\n";

const char sim_warps[] =
    /* what a warp does with its threads' registers: each leaves its own, all meet, each takes what it needs */
    "static u32 sim_word[1024][10]; static const u8 *sim_row[1024];\n"
    "static void sim_join() { const int w = sim_now / 32; sim_meet(&sim_warp_arrived[w], &sim_warp_turn[w], 32); }\n"
    "HN_FN f32 sim_tf32(u32 b) { return hn_f32((b & 0x7f800000u) != 0x7f800000u ? (b + 0x1000u) & ~0x1fffu : b); }\n"
    "HN_FN f64 sim_element(i32, u32 w, int k) { return (i8)(w >> 8 * k); }\n"
    "HN_FN f64 sim_element(u32, u32 w, int k) { return (u8)(w >> 8 * k); }\n"
    "template <class E> struct sim_other { typedef E t; }; template <> struct sim_other<u32> { typedef i32 t; };\n" /* u8 by i8 */
    "HN_FN f64 sim_element(f32, u32 w, int) { return sim_tf32(w); }\n"
    "struct sim_f16 {}; HN_FN f64 sim_element(sim_f16, u32 w, int k) { return hn_from_f16((u16)(w >> 16 * k)); }\n"
    "struct sim_bf16 {}; HN_FN f64 sim_element(sim_bf16, u32 w, int k) { return hn_f32(w >> 16 * k << 16); }\n"
    "template <class E, int N, class D> static void sim_mma(D (&d)[4], u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {\n"
    "  const int me = sim_now, first = me / 32 * 32, g = me % 32 / 4, q = me % 4; const u32 own[6] = { a0, a1, a2, a3, b0, b1 };\n"
    "  memcpy(sim_word[me], own, sizeof(own)); sim_join();\n"
    "  for (int i = 0; i < 4; i++) { f64 s = 0; for (int h = 0; h < 2; h++) for (int t = 0; t < 4; t++) for (int k = 0; k < N; k++)\n"
    "    s += sim_element(E(), sim_word[first + 4 * g + t][2 * h + i / 2], k) *\n"
    "         sim_element(typename sim_other<E>::t(), sim_word[first + 4 * (2 * q + i % 2) + t][4 + h], k);\n"
    "    d[i] = N == 4 ? (D)(i32)((u32)(i32)d[i] + (u32)(i32)s) : (D)(s + (f64)d[i]); }\n"
    "  sim_join(); }\n"
    "#define SIM_MMA(name, E, N, D) HN_FN void hn_mma_##name(D &d0, D &d1, D &d2, D &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) \\\n"
    "  { D d[4] = { d0, d1, d2, d3 }; sim_mma<E, N>(d, a0, a1, a2, a3, b0, b1); d0 = d[0]; d1 = d[1]; d2 = d[2]; d3 = d[3]; }\n"
    "SIM_MMA(f16, sim_f16, 2, f32)\nSIM_MMA(bf16, sim_bf16, 2, f32)\nSIM_MMA(tf32, f32, 1, f32)\nSIM_MMA(i8, i32, 4, i32)\nSIM_MMA(u8, u32, 4, i32)\n"
    "template <int N> static void sim_ldmatrix(u32 (&d)[N], const void *p, bool turned) {\n"
    "  const int me = sim_now, first = me / 32 * 32, g = me % 32 / 4, q = me % 4; sim_row[me] = (const u8 *)p;\n"
    "  if ((u64)p % 16) abort(); sim_join();\n"
    "  for (int j = 0; j < N; j++) { u16 x[2]; for (int i = 0; i < 2; i++)\n"
    "    memcpy(&x[i], turned ? sim_row[first + 8 * j + 2 * q + i] + 2 * g : sim_row[first + 8 * j + g] + 2 * (2 * q + i), 2);\n"
    "    d[j] = (u32)x[1] << 16 | x[0]; }\n"
    "  sim_join(); }\n"
    "template <int N> HN_FN void hn_ldmatrix(u32 (&d)[N], const void *p) { sim_ldmatrix(d, p, false); }\n"
    "template <int N> HN_FN void hn_ldmatrix_t(u32 (&d)[N], const void *p) { sim_ldmatrix(d, p, true); }\n"
    "template <int B> HN_FN void hn_copy(void *to, const void *from, bool ok) { if (ok) memcpy(to, from, B); else memset(to, 0, B); }\n"
    "HN_FN void hn_commit() {}\ntemplate <int N> HN_FN void hn_await() {}\n";

const char sim_launcher[] =
    "template <class... A, size_t... I> static void sim_apply(void (*f)(A...), void **p, index_sequence<I...>)\n"
    "{ f(*(A *)p[I]...); }\n"
    "template <class... A> static void sim_call(void (*f)(A...), void **p) { sim_apply(f, p, index_sequence_for<A...>{}); }\n"
    "template <class... A> static int sim_count(void (*f)(A...)) { return (int)sizeof...(A); }\n"
    "template <class F> struct sim_job { F *f; void **p; };\n"
    "template <class F> static void sim_enter(u32 lo, u32 hi) { sim_job<F> *j = (sim_job<F> *)((u64)hi << 32 | lo);\n"
    "  threadIdx = sim_all[sim_now].at; sim_call(j->f, j->p); sim_all[sim_now].done = true; }\n"
    "template <class F> static void sim_block(F *f, const u32 *t, void **p) {\n"
    "  sim_job<F> job = { f, p }; sim_n = (int)(t[0] * t[1] * t[2]); sim_arrived = 0;\n"
    "  sim_all = new sim_fiber[sim_n]; enum { STACK = 64 << 10 };\n"
    "  for (int i = 0; i < sim_n; i++) { sim_fiber &x = sim_all[i];\n"
    "    x.at = { i % t[0], i / t[0] % t[1], i / t[0] / t[1] }; x.done = false; x.stack = (char *)malloc(STACK);\n"
    "    getcontext(&x.c); x.c.uc_stack.ss_sp = x.stack; x.c.uc_stack.ss_size = STACK; x.c.uc_link = &sim_main;\n"
    "    makecontext(&x.c, (void (*)())sim_enter<F>, 2, (u32)(u64)&job, (u32)((u64)&job >> 32)); }\n"
    "  for (int left = sim_n; left > 0;) { left = 0;\n"
    "    for (sim_now = 0; sim_now < sim_n; sim_now++) if (!sim_all[sim_now].done) {\n"
    "      swapcontext(&sim_main, &sim_all[sim_now].c); left += !sim_all[sim_now].done; } }\n"
    "  for (int i = 0; i < sim_n; i++) free(sim_all[i].stack);\n"
    "  delete[] sim_all; }\n"
    "template <class F> static void sim_go(F *f, bool waits, u32 grid, const u32 *t, void **p) {\n"
    "  for (blockIdx = { 0, 0, 0 }; blockIdx.x < grid; blockIdx.x++) {\n"
    "    if (waits) { sim_block(f, t, p); continue; }\n"
    "    for (u32 z = 0; z < t[2]; z++) for (u32 y = 0; y < t[1]; y++) for (u32 x = 0; x < t[0]; x++) {\n"
    "      threadIdx = { x, y, z }; sim_call(f, p); } } }\n";

bool sim_run_program(const char *const *argv)
{
    int status;
    const pid_t pid = fork();

    if (pid == 0) {
        execvp(argv[0], (char *const *)(uintptr_t)argv);
        _exit(127);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
