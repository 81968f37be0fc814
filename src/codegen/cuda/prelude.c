/* What emitted kernels call. */
#include "codegen/cuda/cuda_text.h"

/* clang-format off */
#define MMA(name, type, letter, shape, before)                                                                            \
    "HN_FN void hn_mma_" name "(" type " &d0, " type " &d1, " type " &d2, " type " &d3, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1)\n" \
    "{ " before "asm volatile(\"mma.sync.aligned." shape " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\"\n"    \
    "  : \"+" letter "\"(d0), \"+" letter "\"(d1), \"+" letter "\"(d2), \"+" letter "\"(d3)\n"                            \
    "  : \"r\"(a0), \"r\"(a1), \"r\"(a2), \"r\"(a3), \"r\"(b0), \"r\"(b1)); }\n"
#define LDMATRIX(n, out, list)                                                                                             \
    "HN_FN void hn_ldmatrix(u32 (&d)[" #n "], const void *p) { asm volatile(\"ldmatrix.sync.aligned.m8n8.x" #n ".shared.b16 {" out "}, [%" #n "];\"\n" \
    "  : " list " : \"r\"(hn_shared_at(p)) : \"memory\"); }\n"                                                           \
    "HN_FN void hn_ldmatrix_t(u32 (&d)[" #n "], const void *p) { asm volatile(\"ldmatrix.sync.aligned.m8n8.x" #n ".trans.shared.b16 {" out "}, [%" #n "];\"\n" \
    "  : " list " : \"r\"(hn_shared_at(p)) : \"memory\"); }\n"

static const char warp[] =
"HN_FN u32 hn_to_tf32(u32 x) { u32 r; asm(\"cvt.rna.tf32.f32 %0, %1;\" : \"=r\"(r) : \"f\"(hn_f32(x))); return r; }\n"
"HN_FN u32 hn_shared_at(const void *p) { return (u32)__cvta_generic_to_shared(p); }\n"
MMA("f16", "f32", "f", "m16n8k16.row.col.f32.f16.f16.f32", "")
MMA("bf16", "f32", "f", "m16n8k16.row.col.f32.bf16.bf16.f32", "")
MMA("tf32", "f32", "f", "m16n8k8.row.col.f32.tf32.tf32.f32",
    "a0 = hn_to_tf32(a0); a1 = hn_to_tf32(a1); a2 = hn_to_tf32(a2); a3 = hn_to_tf32(a3); b0 = hn_to_tf32(b0); b1 = hn_to_tf32(b1);\n  ")
MMA("i8", "i32", "r", "m16n8k32.row.col.s32.s8.s8.s32", "")
MMA("u8", "i32", "r", "m16n8k32.row.col.s32.u8.s8.s32", "")
LDMATRIX(1, "%0", "\"=r\"(d[0])")
LDMATRIX(2, "%0,%1", "\"=r\"(d[0]), \"=r\"(d[1])")
LDMATRIX(4, "%0,%1,%2,%3", "\"=r\"(d[0]), \"=r\"(d[1]), \"=r\"(d[2]), \"=r\"(d[3])")
"template <int B> HN_FN void hn_copy(void *to, const void *from, bool ok)\n"
"{ const u64 g = (u64)__cvta_generic_to_global(from); const u32 n = ok ? B : 0;\n"
"  if (B == 16) asm volatile(\"cp.async.cg.shared.global [%0], [%1], 16, %2;\" :: \"r\"(hn_shared_at(to)), \"l\"(g), \"r\"(n) : \"memory\");\n"
"  else asm volatile(\"cp.async.ca.shared.global [%0], [%1], %2, %3;\" :: \"r\"(hn_shared_at(to)), \"l\"(g), \"n\"(B), \"r\"(n) : \"memory\"); }\n"
"HN_FN void hn_commit() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n"
"template <int N> HN_FN void hn_await() { asm volatile(\"cp.async.wait_group %0;\" :: \"n\"(N) : \"memory\"); }\n";

static const char ptx[] =
"typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;\n"
"typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;\n"
"typedef float f32; typedef double f64;\n"
"#define HN_FN static __device__ __forceinline__\n"
/* A kernel that may start early waits for all before it, and then lets the next one start, which waits likewise: were it let go
 * ahead of the wait, a chain of kernels that only wait would hold room on the multiprocessors, and what runs would lie unevenly. */
"HN_FN void hn_depend()\n{\n#if __CUDA_ARCH__ >= 900\n  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\");\n"
"  asm volatile(\"griddepcontrol.launch_dependents;\");\n#endif\n}\n"
"HN_FN f32 hn_f32(u32 b) { return __uint_as_float(b); }\n"
"HN_FN f64 hn_f64(u64 b) { return __longlong_as_double((i64)b); }\n"
"HN_FN u32 hn_bits(f32 x) { return __float_as_uint(x); }\n"
"HN_FN u64 hn_bits(f64 x) { return (u64)__double_as_longlong(x); }\n"
"HN_FN f32 hn_fma(f32 x, f32 y, f32 z) { return __fmaf_rn(x, y, z); }\n"
"HN_FN f64 hn_fma(f64 x, f64 y, f64 z) { return __fma_rn(x, y, z); }\n"
"HN_FN f32 hn_fmin(f32 x, f32 y) { f32 r; asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(x), \"f\"(y)); return r; }\n"
"HN_FN f32 hn_fmax(f32 x, f32 y) { f32 r; asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(r) : \"f\"(x), \"f\"(y)); return r; }\n"
"HN_FN f32 hn_exp2a(f32 x) { f32 r; asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(x)); return r; }\n"
"HN_FN f32 hn_rcpa(f32 x) { f32 r; asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(r) : \"f\"(x)); return r; }\n"
"HN_FN f32 hn_from_f16(u16 h) { f32 r; asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(r) : \"h\"(h)); return r; }\n"
"HN_FN u16 hn_to_f16(f32 x) { u16 r; asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x)); return r; }\n"
"HN_FN u16 hn_to_bf16(f32 x) { u16 r; asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(r) : \"f\"(x)); return r; }\n"
"HN_FN i32 hn_clz32(u32 x) { return __clz((int)x); }\n"
"HN_FN i32 hn_clz64(u64 x) { return __clzll((i64)x); }\n"
"HN_FN i32 hn_popc32(u32 x) { return __popc(x); }\n"
"HN_FN i32 hn_popc64(u64 x) { return __popcll(x); }\n"
"HN_FN i64 hn_mulhi64(i64 x, i64 y) { return __mul64hi(x, y); }\n"
"HN_FN u64 hn_mulhi64(u64 x, u64 y) { return __umul64hi(x, y); }\n"
"#define HN_WARP 0xffffffffu\n"
"template <class T> HN_FN T hn_shfl_xor(T x, int m) { return (T)__shfl_xor_sync(HN_WARP, x, m); }\n"
"template <class T> HN_FN T hn_shfl_down(T x, int d) { return (T)__shfl_down_sync(HN_WARP, x, d); }\n"
"template <> __device__ __forceinline__ bool hn_shfl_xor(bool x, int m) { return __shfl_xor_sync(HN_WARP, (int)x, m) != 0; }\n"
"template <> __device__ __forceinline__ bool hn_shfl_down(bool x, int d) { return __shfl_down_sync(HN_WARP, (int)x, d) != 0; }\n";

static const char numbers[] =
"HN_FN f64 hn_fmin(f64 x, f64 y)\n"
"{ if (x != x) return x; if (y != y) return y; if (x == y) return hn_f64(hn_bits(x) | hn_bits(y)); return x < y ? x : y; }\n"
"HN_FN f64 hn_fmax(f64 x, f64 y)\n"
"{ if (x != x) return x; if (y != y) return y; if (x == y) return hn_f64(hn_bits(x) & hn_bits(y)); return x > y ? x : y; }\n"
"HN_FN f32 hn_neg(f32 x) { return hn_f32(hn_bits(x) ^ 0x80000000u); }\n"
"HN_FN f64 hn_neg(f64 x) { return hn_f64(hn_bits(x) ^ 0x8000000000000000ull); }\n"
"HN_FN f32 hn_abs(f32 x) { return hn_f32(hn_bits(x) & 0x7fffffffu); }\n"
"HN_FN f64 hn_abs(f64 x) { return hn_f64(hn_bits(x) & 0x7fffffffffffffffull); }\n"
"HN_FN f32 hn_sqrt(f32 x) { return sqrtf(x); }\n"
"HN_FN f64 hn_sqrt(f64 x) { return sqrt(x); }\n"
"HN_FN f32 hn_floor(f32 x) { return floorf(x); }\n"
"HN_FN f64 hn_floor(f64 x) { return floor(x); }\n"
"HN_FN f32 hn_ceil(f32 x) { return ceilf(x); }\n"
"HN_FN f64 hn_ceil(f64 x) { return ceil(x); }\n"
"HN_FN f32 hn_rint(f32 x) { return rintf(x); }\n"
"HN_FN f64 hn_rint(f64 x) { return rint(x); }\n"
"HN_FN f32 hn_trunc(f32 x) { return truncf(x); }\n"
"HN_FN f64 hn_trunc(f64 x) { return trunc(x); }\n"
"HN_FN f32 hn_from_bf16(u16 h) { return hn_f32((u32)h << 16); }\n"
/* integers: x/0 = 0, x%0 = x, least/-1 wraps; short operands take the short division */
"template <class T> HN_FN T hn_div(T x, T y)\n"
"{ if (y == 0) return 0; if ((T)-1 < (T)0 && y == (T)-1) return (T)(0 - (u64)x);\n"
"  if (sizeof(T) == 8 && (((u64)x | (u64)y) >> 32) == 0) return (T)((u32)x / (u32)y); return (T)(x / y); }\n"
"template <class T> HN_FN T hn_rem(T x, T y)\n"
"{ if (y == 0) return x; if ((T)-1 < (T)0 && y == (T)-1) return 0;\n"
"  if (sizeof(T) == 8 && (((u64)x | (u64)y) >> 32) == 0) return (T)((u32)x % (u32)y); return (T)(x % y); }\n"
"template <class T> HN_FN T hn_imin(T x, T y) { return x < y ? x : y; }\n"
"template <class T> HN_FN T hn_imax(T x, T y) { return x > y ? x : y; }\n"
"template <class T> HN_FN T hn_shl(T x, u64 n) { return n >= 8 * sizeof(T) ? (T)0 : (T)((u64)x << n); }\n"
"template <class T> HN_FN T hn_shr(T x, u64 n)\n"
"{ if (n >= 8 * sizeof(T)) return (T)-1 < (T)0 && x < 0 ? (T)-1 : (T)0; return (T)(x >> n); }\n"
"template <class T> HN_FN T hn_mulhi(T x, T y)\n"
"{ if (sizeof(T) == 8) return (T)-1 < (T)0 ? (T)hn_mulhi64((i64)x, (i64)y) : (T)hn_mulhi64((u64)x, (u64)y);\n"
"  return (T)-1 < (T)0 ? (T)(((i64)x * (i64)y) >> (8 * sizeof(T) % 64)) : (T)(((u64)x * (u64)y) >> (8 * sizeof(T) % 64)); }\n"
"template <class T> HN_FN T hn_clz(T x)\n"
"{ if (sizeof(T) == 8) return (T)hn_clz64((u64)x); const u32 m = sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1;\n"
"  return (T)(hn_clz32((u32)x & m) - (32 - 8 * (int)sizeof(T))); }\n"
"template <class T> HN_FN T hn_popc(T x)\n"
"{ if (sizeof(T) == 8) return (T)hn_popc64((u64)x); const u32 m = sizeof(T) == 4 ? ~0u : (1u << (8 * sizeof(T) % 32)) - 1;\n"
"  return (T)hn_popc32((u32)x & m); }\n"
/* from `lo` down the least, from `end` up the greatest, NaN to zero */
"template <class T, class F> HN_FN T hn_saturate(F x, F lo, F end, T least, T most)\n"
"{ return x != x ? (T)0 : x <= lo ? least : x >= end ? most : (T)x; }\n"
"HN_FN i16 hn_sat16(i32 x) { return (i16)(x < -32768 ? -32768 : x > 32767 ? 32767 : x); }\n";

static const char memory[] =
"template <class T> HN_FN T hn_raw(const void *p)\n"
"{ T v; if ((u64)p % sizeof(T) == 0) return *(const T *)p;\n"
"  for (int i = 0; i < (int)sizeof(T); i++) ((u8 *)&v)[i] = ((const u8 *)p)[i]; return v; }\n"
"template <class T> HN_FN T hn_rawa(const void *p) { return *(const T *)p; }\n"
"template <class T> HN_FN void hn_raw_put(void *p, T v)\n"
"{ if ((u64)p % sizeof(T) == 0) { *(T *)p = v; return; }\n"
"  for (int i = 0; i < (int)sizeof(T); i++) ((u8 *)p)[i] = ((const u8 *)&v)[i]; }\n"
/* runs of 4, 8 or 16 bytes go at once where they lie so */
"template <class T, int N> struct __align__(sizeof(T) * N) hn_pack { T v[N]; };\n"
"template <int N, class T> HN_FN void hn_vload(T (&d)[N], const T *p)\n"
"{ enum { B = N * sizeof(T), P = B % 16 == 0 ? 16 / sizeof(T) : N };\n"
"  if (P > 1 && (P & (P - 1)) == 0 && (u64)p % (P * sizeof(T)) == 0) {\n"
"    for (int k = 0; k < N / P; k++) { const auto q = ((const hn_pack<T, (P & (P - 1)) == 0 ? P : 1> *)p)[k];\n"
"      for (int i = 0; i < P; i++) d[k * P + i] = q.v[i]; }\n"
"    return; }\n"
"  for (int i = 0; i < N; i++) d[i] = p[i]; }\n"
"template <int N, class T> HN_FN void hn_vloada(T (&d)[N], const T *p)\n"
"{ enum { P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N };\n"
"  for (int k = 0; k < N / P; k++) { const auto q = ((const hn_pack<T, P> *)p)[k]; for (int i = 0; i < P; i++) d[k * P + i] = q.v[i]; } }\n"
"template <int N, class T> HN_FN void hn_vstorea(T *p, const T (&s)[N])\n"
"{ enum { P = N * sizeof(T) > 16 ? 16 / sizeof(T) : N };\n"
"  for (int k = 0; k < N / P; k++) { hn_pack<T, P> q; for (int i = 0; i < P; i++) q.v[i] = s[k * P + i]; ((hn_pack<T, P> *)p)[k] = q; } }\n"
"template <int N, class T> HN_FN void hn_vstore(T *p, const T (&s)[N])\n"
"{ enum { B = N * sizeof(T), P = B % 16 == 0 ? 16 / sizeof(T) : N };\n"
"  if (P > 1 && (P & (P - 1)) == 0 && (u64)p % (P * sizeof(T)) == 0) {\n"
"    for (int k = 0; k < N / P; k++) { hn_pack<T, (P & (P - 1)) == 0 ? P : 1> q;\n"
"      for (int i = 0; i < P; i++) q.v[i] = s[k * P + i];\n"
"      ((hn_pack<T, (P & (P - 1)) == 0 ? P : 1> *)p)[k] = q; }\n"
"    return; }\n"
"  for (int i = 0; i < N; i++) p[i] = s[i]; }\n"
"template <class D, class S, int M, int N> HN_FN void hn_bitcast(D (&d)[M], const S (&s)[N]) { memcpy(d, s, sizeof(d)); }\n";
/* clang-format on */

void hn_cu_ptx_prelude(hn_str *out)
{
    hn_str_add(out, ptx);
    hn_str_add(out, warp);
}

void hn_cu_prelude(hn_str *out)
{
    hn_str_add(out, numbers);
    hn_str_add(out, memory);
}
