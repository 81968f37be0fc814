/* What each operation does to one lane. The builder folds with it and the interpreter runs on it, so they
 * cannot differ. */
#include "kir/kir_int.h"

#include <math.h>

static int bits_of(int dtype)
{
    return dtype == HN_BOOL ? 1 : hn_dtype_bits((hn_dtype)dtype);
}

uint64_t hn_klane_norm(int dtype, uint64_t v)
{
    const int n = bits_of(dtype);

    if (n >= 64) return v;
    if (hn_dtype_is_signed((hn_dtype)dtype) && hn_dtype_is_int((hn_dtype)dtype))
        return (uint64_t)((int64_t)(v << (64 - n)) >> (64 - n));
    return v & ((1ull << n) - 1);
}

static uint64_t int_div(int dtype, uint64_t x, uint64_t y, bool rem)
{
    if (y == 0) return rem ? x : 0;
    if (!hn_dtype_is_signed((hn_dtype)dtype)) return rem ? x % y : x / y;
    if ((int64_t)y == -1) return rem ? 0 : 0 - x; /* min / -1 wraps */
    return (uint64_t)(rem ? (int64_t)x % (int64_t)y : (int64_t)x / (int64_t)y);
}

static uint64_t int_shift(int op, int dtype, uint64_t x, uint64_t n)
{
    const bool sign = hn_dtype_is_signed((hn_dtype)dtype);

    if (n >= (uint64_t)bits_of(dtype)) return op == HN_KOP_SHR && sign && (int64_t)x < 0 ? ~0ull : 0;
    if (op == HN_KOP_SHL) return x << n;
    return sign ? (uint64_t)((int64_t)x >> n) : x >> n;
}

static uint64_t int_mulhi(int dtype, uint64_t x, uint64_t y)
{
    __extension__ typedef __int128 wide;
    __extension__ typedef unsigned __int128 uwide;
    const int n = bits_of(dtype);
    const bool sign = hn_dtype_is_signed((hn_dtype)dtype);
    const uwide product = sign ? (uwide)(wide)(int64_t)x * (uwide)(wide)(int64_t)y : (uwide)x * y;

    if (n == 64) return (uint64_t)(product >> 64);
    return sign ? (uint64_t)((int64_t)product >> n) : (uint64_t)product >> n; /* of at most 32 bits: 64 hold it */
}

static bool int_less(int dtype, uint64_t x, uint64_t y)
{
    return hn_dtype_is_signed((hn_dtype)dtype) ? (int64_t)x < (int64_t)y : x < y;
}

static uint64_t int_bin(int op, int dtype, uint64_t x, uint64_t y)
{
    switch (op) {
    case HN_KOP_ADD:
        return x + y;
    case HN_KOP_SUB:
        return x - y;
    case HN_KOP_MUL:
        return x * y;
    case HN_KOP_DIV:
        return int_div(dtype, x, y, false);
    case HN_KOP_REM:
        return int_div(dtype, x, y, true);
    case HN_KOP_MIN:
    case HN_KOP_MINR:
        return int_less(dtype, x, y) ? x : y;
    case HN_KOP_MAX:
    case HN_KOP_MAXR:
        return int_less(dtype, y, x) ? x : y;
    case HN_KOP_AND:
        return x & y;
    case HN_KOP_OR:
        return x | y;
    case HN_KOP_XOR:
        return x ^ y;
    case HN_KOP_SHL:
    case HN_KOP_SHR:
        return int_shift(op, dtype, x, y);
    case HN_KOP_MULHI:
        return int_mulhi(dtype, x, y);
    case HN_KOP_EQ:
        return x == y;
    case HN_KOP_NE:
        return x != y;
    case HN_KOP_LT:
        return int_less(dtype, x, y);
    case HN_KOP_LE:
        return !int_less(dtype, y, x);
    case HN_KOP_GT:
        return int_less(dtype, y, x);
    case HN_KOP_GE:
        return !int_less(dtype, x, y);
    default:
        return 0;
    }
}

static double ieee_min(double x, double y)
{
    if (x != x) return x;
    if (y != y) return y;
    if (x == y) return signbit(x) ? x : y;
    return x < y ? x : y;
}

/* f32 goes through here widened: comparisons, min and max are exact that way, and so are rounding and sign
 * operations. */
static double float_pick(int op, double x, double y)
{
    switch (op) {
    case HN_KOP_MIN:
        return ieee_min(x, y);
    case HN_KOP_MAX:
        return -ieee_min(-x, -y);
    case HN_KOP_MINR:
        return x < y ? x : y;
    default:
        return x > y ? x : y;
    }
}

static bool float_compare(int op, double x, double y)
{
    switch (op) {
    case HN_KOP_EQ:
        return x == y;
    case HN_KOP_NE:
        return x != y;
    case HN_KOP_LT:
        return x < y;
    case HN_KOP_LE:
        return x <= y;
    case HN_KOP_GT:
        return x > y;
    default:
        return x >= y;
    }
}

static float f32_arith(int op, float x, float y)
{
    switch (op) {
    case HN_KOP_ADD:
        return x + y;
    case HN_KOP_SUB:
        return x - y;
    case HN_KOP_MUL:
        return x * y;
    default:
        return x / y;
    }
}

static double f64_arith(int op, double x, double y)
{
    switch (op) {
    case HN_KOP_ADD:
        return x + y;
    case HN_KOP_SUB:
        return x - y;
    case HN_KOP_MUL:
        return x * y;
    default:
        return x / y;
    }
}

uint64_t hn_klane_bin(int op, int dtype, uint64_t x, uint64_t y)
{
    const bool compare = op >= HN_KOP_EQ && op <= HN_KOP_GE;

    if (!hn_dtype_is_float((hn_dtype)dtype)) {
        const uint64_t r = int_bin(op, dtype, x, y);
        return compare ? r : hn_klane_norm(dtype, r);
    }
    if (compare) return float_compare(op, hn_klane_f64(dtype, x), hn_klane_f64(dtype, y));
    if (op == HN_KOP_MIN || op == HN_KOP_MAX || op == HN_KOP_MINR || op == HN_KOP_MAXR)
        return hn_klane_from_f64(dtype, float_pick(op, hn_klane_f64(dtype, x), hn_klane_f64(dtype, y)));
    if (dtype == HN_F32) return hn_f32_lane(f32_arith(op, hn_lane_f32(x), hn_lane_f32(y)));
    return hn_f64_lane(f64_arith(op, hn_lane_f64(x), hn_lane_f64(y)));
}

static uint64_t int_un(int op, int dtype, uint64_t x)
{
    const int n = bits_of(dtype);
    const uint64_t in_width = n >= 64 ? x : x & ((1ull << n) - 1);

    switch (op) {
    case HN_KOP_NEG:
        return 0 - x;
    case HN_KOP_ABS:
        return hn_dtype_is_signed((hn_dtype)dtype) && (int64_t)x < 0 ? 0 - x : x;
    case HN_KOP_NOT:
        return ~x;
    case HN_KOP_CLZ:
        return in_width == 0 ? (uint64_t)n : (uint64_t)(__builtin_clzll(in_width) - (64 - n));
    case HN_KOP_POPCNT:
        return (uint64_t)__builtin_popcountll(in_width);
    default:
        return x; /* floor and kin */
    }
}

uint64_t hn_klane_un(int op, int dtype, uint64_t x)
{
    const uint64_t sign = dtype == HN_F32 ? 1ull << 31 : 1ull << 63;

    if (!hn_dtype_is_float((hn_dtype)dtype)) return hn_klane_norm(dtype, int_un(op, dtype, x));
    switch (op) {
    case HN_KOP_NEG:
        return x ^ sign;
    case HN_KOP_ABS:
        return x & ~sign;
    case HN_KOP_SQRT:
        return dtype == HN_F32 ? hn_f32_lane(sqrtf(hn_lane_f32(x))) : hn_f64_lane(sqrt(hn_lane_f64(x)));
    case HN_KOP_FLOOR:
        return hn_klane_from_f64(dtype, floor(hn_klane_f64(dtype, x)));
    case HN_KOP_CEIL:
        return hn_klane_from_f64(dtype, ceil(hn_klane_f64(dtype, x)));
    case HN_KOP_RINT:
        return hn_klane_from_f64(dtype, rint(hn_klane_f64(dtype, x)));
    case HN_KOP_TRUNC:
        return hn_klane_from_f64(dtype, trunc(hn_klane_f64(dtype, x)));
    case HN_KOP_EXP2A:
        return hn_klane_from_f64(dtype, exp2(hn_klane_f64(dtype, x)));
    case HN_KOP_RCPA:
        return hn_klane_from_f64(dtype, 1 / hn_klane_f64(dtype, x));
    default:
        return x;
    }
}

uint64_t hn_klane_fma(int dtype, uint64_t x, uint64_t y, uint64_t z)
{
    if (dtype == HN_F32) return hn_f32_lane(fmaf(hn_lane_f32(x), hn_lane_f32(y), hn_lane_f32(z)));
    if (dtype == HN_F64) return hn_f64_lane(fma(hn_lane_f64(x), hn_lane_f64(y), hn_lane_f64(z)));
    return hn_klane_norm(dtype, x * y + z);
}

double hn_klane_f64(int dtype, uint64_t x)
{
    if (dtype == HN_F32) return (double)hn_lane_f32(x);
    if (dtype == HN_F64) return hn_lane_f64(x);
    return hn_dtype_is_signed((hn_dtype)dtype) ? (double)(int64_t)x : (double)x;
}

/* Truncate with saturation; NaN gives 0. */
static uint64_t int_from_f64(int dtype, double v)
{
    const int n = bits_of(dtype);

    if (v != v) return 0;
    v = trunc(v);
    if (hn_dtype_is_signed((hn_dtype)dtype)) {
        const double lim = ldexp(1.0, n - 1);
        if (v >= lim) return (uint64_t)(INT64_MAX >> (64 - n));
        if (v <= -lim) return (uint64_t)(INT64_MIN >> (64 - n));
        return (uint64_t)(int64_t)v;
    }
    if (v >= ldexp(1.0, n)) return n >= 64 ? UINT64_MAX : (1ull << n) - 1;
    return v <= 0 ? 0 : (uint64_t)v;
}

uint64_t hn_klane_from_f64(int dtype, double v)
{
    if (dtype == HN_F32) return hn_f32_lane((float)v);
    if (dtype == HN_F64) return hn_f64_lane(v);
    if (dtype == HN_BOOL) return v != 0;
    return int_from_f64(dtype, v);
}

uint64_t hn_klane_cast(int from, int to, uint64_t x)
{
    if (from == to) return x;
    if (hn_dtype_is_float((hn_dtype)from)) return hn_klane_from_f64(to, hn_klane_f64(from, x));
    if (to == HN_BOOL) return x != 0;
    if (to == HN_F32) /* one rounding, not two */
        return hn_f32_lane(hn_dtype_is_signed((hn_dtype)from) ? (float)(int64_t)x : (float)x);
    if (to == HN_F64) return hn_f64_lane(hn_klane_f64(from, x));
    return hn_klane_norm(to, x);
}

uint16_t hn_half_from_f32(int half, float v)
{
    const uint32_t u = (uint32_t)hn_f32_lane(v), sign = u >> 16 & 0x8000, mag = u & 0x7fffffff;

    if (half == HN_BF16) {
        if (mag > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
        return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
    }
    if (mag > 0x7f800000) return (uint16_t)(sign | 0x7e00 | (mag >> 13 & 0x3ff));
    if (mag >= 0x477ff000) return (uint16_t)(sign | 0x7c00); /* rounds past 65504 */
    if (mag >= 0x38800000) {                                 /* normal: rebias the exponent by 127 - 15 */
        const uint32_t r = mag - 0x38000000;
        return (uint16_t)(sign | (r + 0xfff + (r >> 13 & 1)) >> 13);
    }
    /* subnormal: adding 0.5 puts the unit of 2^-24 at the last place of the sum */
    const float s = hn_lane_f32(mag) + 0.5f;
    return (uint16_t)(sign | ((uint32_t)hn_f32_lane(s) - 0x3f000000));
}

float hn_half_to_f32(int half, uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, mag = h & 0x7fff;

    if (half == HN_BF16) return hn_lane_f32((uint32_t)h << 16);
    if (mag > 0x7c00) return hn_lane_f32(sign | 0x7fc00000 | (mag & 0x3ff) << 13);
    if (mag == 0x7c00) return hn_lane_f32(sign | 0x7f800000);
    if (mag >= 0x400) return hn_lane_f32(sign | ((mag << 13) + 0x38000000));
    const float s = (float)mag * 0x1p-24f;
    return hn_lane_f32(sign | (uint32_t)hn_f32_lane(s));
}
