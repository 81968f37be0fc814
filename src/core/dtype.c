/* Dtypes: sizes, names, and conversion between storage and the wide types that references compute in. */
#include <math.h>
#include <string.h>

#include "core/core.h"

enum dtype_class { CLASS_NONE, CLASS_F, CLASS_I, CLASS_U, CLASS_B };

static const struct {
    const char *name;
    int bits;
    enum dtype_class cls;
} info[HN_NDTYPES] = {
    [HN_NONE] = { "none", 0, CLASS_NONE },
#define X(name, number, text, bits, cls) [number] = { text, bits, CLASS_##cls },
#include "core/dtypes.def"
#undef X
};

#define X(name, number, text, bits, cls)                                                                     \
    _Static_assert(number > 0 && number < HN_NDTYPES, "raise HN_NDTYPES");
#include "core/dtypes.def"
#undef X

static bool is_known(hn_dtype t)
{
    return (unsigned)t < HN_NDTYPES && info[t].name;
}

const char *hn_dtype_name(hn_dtype t)
{
    return is_known(t) ? info[t].name : "?";
}

hn_dtype hn_dtype_parse(const char *text, size_t n)
{
    for (int i = 1; i < HN_NDTYPES; i++)
        if (info[i].name && strlen(info[i].name) == n && memcmp(info[i].name, text, n) == 0)
            return (hn_dtype)i;
    return HN_NONE;
}

int hn_dtype_bits(hn_dtype t)
{
    return is_known(t) ? info[t].bits : 0;
}

static enum dtype_class class_of(hn_dtype t)
{
    return is_known(t) ? info[t].cls : CLASS_NONE;
}

bool hn_dtype_is_float(hn_dtype t)
{
    return class_of(t) == CLASS_F;
}

bool hn_dtype_is_int(hn_dtype t)
{
    return class_of(t) == CLASS_I || class_of(t) == CLASS_U;
}

bool hn_dtype_is_signed(hn_dtype t)
{
    return class_of(t) == CLASS_I || class_of(t) == CLASS_F;
}

int64_t hn_dtype_bytes(hn_dtype t, int64_t n)
{
    const int bits = hn_dtype_bits(t);
    int64_t bytes;
    if (n < 0) return -1;
    if (bits == 0) return 0; /* an absent operand takes no bytes */
    if (bits < 8) return n / (8 / bits) + (n % (8 / bits) != 0);
    return hn_mul_size(n, bits / 8, &bytes) ? bytes : -1;
}

/* ---- small floats ---- */

/* A binary format narrower than f32. Codes without the sign run 0..max_code through the finite values. */
struct small_float {
    int bits, man, bias;
    unsigned max_code; /* largest finite */
    unsigned inf_code; /* 0: the format has none */
    unsigned nan_code; /* written for NaN */
    unsigned nan_min;  /* codes without sign from here on are NaN; past the sign bit: none */
    bool fnuz;         /* no negative zero: that code is the only NaN */
    bool saturates;    /* obeys the saturate flag */
};

static const struct small_float f16 = { 16, 10, 15, 0x7BFF, 0x7C00, 0x7E00, 0x7C01, false, false };
static const struct small_float bf16 = { 16, 7, 127, 0x7F7F, 0x7F80, 0x7FC0, 0x7F81, false, false };
static const struct small_float e4m3fn = { 8, 3, 7, 0x7E, 0, 0x7F, 0x7F, false, true };
static const struct small_float e4m3fnuz = { 8, 3, 8, 0x7F, 0, 0x80, 0x80, true, true };
static const struct small_float e5m2 = { 8, 2, 15, 0x7B, 0x7C, 0x7E, 0x7D, false, true };
static const struct small_float e5m2fnuz = { 8, 2, 16, 0x7F, 0, 0x80, 0x80, true, true };

static double from_bits(uint64_t bits)
{
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t to_bits(double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

static inline double decode(const struct small_float *f, unsigned code)
{
    const unsigned sign = code >> (f->bits - 1), mag = code & ((1u << (f->bits - 1)) - 1);
    const uint64_t sign_bit = (uint64_t)sign << 63;
    if (f->fnuz ? code == f->nan_code : mag >= f->nan_min) return from_bits(sign_bit | 0x7FF8000000000000u);
    if (f->inf_code && mag == f->inf_code) return from_bits(sign_bit | 0x7FF0000000000000u);
    const unsigned exponent = mag >> f->man, man = mag & ((1u << f->man) - 1);
    if (exponent == 0) {
        const double tiny = from_bits((uint64_t)(1023 + 1 - f->bias - f->man) << 52);
        return from_bits(to_bits(tiny * man) | sign_bit);
    }
    return from_bits(sign_bit | (uint64_t)(exponent + 1023 - (unsigned)f->bias) << 52 |
                     (uint64_t)man << (52 - f->man));
}

/* Nearest-even code without sign, as if exponents had no upper bound; mag_bits are a double's, finite. */
static inline uint64_t round_code(const struct small_float *f, uint64_t mag_bits)
{
    const int exponent = (int)(mag_bits >> 52);
    uint64_t man = mag_bits & 0xFFFFFFFFFFFFFu;
    if (exponent == 0) return 0; /* subnormal doubles lie far below every small float */
    man |= (uint64_t)1 << 52;
    const int e = exponent - 1023, e_min = 1 - f->bias;
    const int shift = 52 - f->man + (e < e_min ? e_min - e : 0);
    if (shift > 53) return 0; /* below half of the smallest */
    const uint64_t half = (uint64_t)1 << (shift - 1), rest = man & ((half << 1) - 1);
    uint64_t q = man >> shift;
    q += rest > half || (rest == half && (q & 1));
    if (e < e_min) return q; /* a carry into the first normal is the right code by itself */
    return ((uint64_t)(e + f->bias - 1) << f->man) + q;
}

static inline unsigned encode(const struct small_float *f, double v, bool saturate)
{
    const uint64_t bits = to_bits(v), mag_bits = bits & ~((uint64_t)1 << 63);
    const unsigned sign = (unsigned)(bits >> 63) << (f->bits - 1);
    if (mag_bits > 0x7FF0000000000000u) return f->fnuz ? f->nan_code : sign | f->nan_code;
    const uint64_t code = mag_bits == 0x7FF0000000000000u ? UINT64_MAX : round_code(f, mag_bits);
    if (code > f->max_code) {
        if (saturate && f->saturates) return sign | f->max_code;
        if (f->inf_code) return sign | f->inf_code;
        return f->fnuz ? f->nan_code : sign | f->nan_code;
    }
    if (f->fnuz && code == 0) return 0;
    return sign | (unsigned)code;
}

/* ---- formats of their own ---- */
static double decode_e8m0(unsigned code)
{
    return code == 0xFF ? NAN : ldexp(1.0, (int)code - 127);
}

unsigned hn_e8m0_from_f64(double v, hn_e8m0_round mode, bool saturate)
{
    int exponent;
    if (isnan(v)) return 0xFF;
    if (isinf(v)) return saturate ? 0xFE : 0xFF;
    if (v == 0) return 0;
    const double fraction = frexp(fabs(v), &exponent); /* in [0.5, 1) */
    int code = exponent - 1 + 127;
    if (mode == HN_E8M0_UP ? fraction > 0.5 : mode == HN_E8M0_NEAREST && fraction >= 0.75) code++;
    if (code < 0) return 0;
    if (code > 0xFE) return saturate ? 0xFE : 0xFF;
    return (unsigned)code;
}

static const double f4_value[8] = { 0, 0.5, 1, 1.5, 2, 3, 4, 6 };

static double decode_f4(unsigned code)
{
    return code & 8 ? -f4_value[code & 7] : f4_value[code & 7];
}

/* ONNX has no NaN here: it becomes -0, and everything out of range the largest value. */
static unsigned encode_f4(double v)
{
    static const double midpoint[7] = { 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 };
    const double mag = fabs(v);
    unsigned code = 0;
    if (isnan(v)) return 8;
    while (code < 7 && (mag > midpoint[code] || (mag == midpoint[code] && (code & 1))))
        code++;
    return code | (signbit(v) ? 8u : 0u);
}

/* ---- packed elements ---- */
static inline unsigned get_packed(const void *src, int bits, int64_t i)
{
    const int per_byte = 8 / bits;
    const unsigned byte = ((const uint8_t *)src)[i / per_byte];
    return byte >> (int)(i % per_byte) * bits & ((1u << bits) - 1);
}

static inline void put_packed(void *dst, int bits, int64_t i, unsigned code)
{
    const int per_byte = 8 / bits, at = (int)(i % per_byte) * bits;
    const unsigned mask = ((1u << bits) - 1) << at;
    uint8_t *byte = (uint8_t *)dst + i / per_byte;
    *byte = (uint8_t)((*byte & ~mask) | (code << at & mask));
}

/* ---- floats to and from double ---- */

/* Storage may be unaligned (sections of files): every access goes through memcpy. */
#define LOAD(type, src, i, into)                                                                             \
    memcpy(&(into), (const char *)(src) + (i) * (int64_t)sizeof(type), sizeof(type))
#define STORE(type, dst, i, from) memcpy((char *)(dst) + (i) * (int64_t)sizeof(type), &(from), sizeof(type))

static void widen16(const struct small_float *f, const void *src, int64_t first, int64_t n, double *dst)
{
    for (int64_t i = 0; i < n; i++) {
        uint16_t code;
        LOAD(uint16_t, src, first + i, code);
        dst[i] = decode(f, code);
    }
}

static void widen8(const struct small_float *f, const void *src, int64_t first, int64_t n, double *dst)
{
    const uint8_t *at = (const uint8_t *)src + first;
    for (int64_t i = 0; i < n; i++)
        dst[i] = decode(f, at[i]);
}

static void widen_f32(const void *src, int64_t first, int64_t n, double *dst)
{
    for (int64_t i = 0; i < n; i++) {
        float v;
        LOAD(float, src, first + i, v);
        dst[i] = v;
    }
}

/* Integers to double: u64 apart, every other value fits int64. */
static void widen_int_f64(hn_dtype t, const void *src, int64_t first, int64_t n, double *dst)
{
    enum { CHUNK = 256 };
    int64_t wide[CHUNK];
    for (int64_t done = 0; done < n; done += CHUNK) {
        const int64_t m = HN_MIN(n - done, (int64_t)CHUNK);
        hn_widen_i64(t, src, first + done, m, wide);
        for (int64_t i = 0; i < m; i++)
            dst[done + i] = t == HN_U64 ? (double)(uint64_t)wide[i] : (double)wide[i];
    }
}

void hn_widen_f64(hn_dtype t, const void *src, int64_t first, int64_t n, double *dst)
{
    switch (t) {
    case HN_F64:
        if (n > 0) memcpy(dst, (const char *)src + first * 8, (size_t)n * 8);
        return;
    case HN_F32:
        widen_f32(src, first, n, dst);
        return;
    case HN_F16:
        widen16(&f16, src, first, n, dst);
        return;
    case HN_BF16:
        widen16(&bf16, src, first, n, dst);
        return;
    case HN_F8E4M3FN:
        widen8(&e4m3fn, src, first, n, dst);
        return;
    case HN_F8E4M3FNUZ:
        widen8(&e4m3fnuz, src, first, n, dst);
        return;
    case HN_F8E5M2:
        widen8(&e5m2, src, first, n, dst);
        return;
    case HN_F8E5M2FNUZ:
        widen8(&e5m2fnuz, src, first, n, dst);
        return;
    case HN_F8E8M0:
        for (int64_t i = 0; i < n; i++)
            dst[i] = decode_e8m0(((const uint8_t *)src)[first + i]);
        return;
    case HN_F4E2M1:
        for (int64_t i = 0; i < n; i++)
            dst[i] = decode_f4(get_packed(src, 4, first + i));
        return;
    default:
        widen_int_f64(t, src, first, n, dst);
    }
}

static void narrow16(const struct small_float *f, const double *src, int64_t n, void *dst, int64_t first,
                     bool saturate)
{
    for (int64_t i = 0; i < n; i++) {
        const uint16_t code = (uint16_t)encode(f, src[i], saturate);
        STORE(uint16_t, dst, first + i, code);
    }
}

static void narrow8(const struct small_float *f, const double *src, int64_t n, void *dst, int64_t first,
                    bool saturate)
{
    uint8_t *at = (uint8_t *)dst + first;
    for (int64_t i = 0; i < n; i++)
        at[i] = (uint8_t)encode(f, src[i], saturate);
}

static void narrow_f32(const double *src, int64_t n, void *dst, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        const float v = (float)src[i];
        STORE(float, dst, first + i, v);
    }
}

int64_t hn_f64_to_i64(double v)
{
    if (isnan(v)) return 0;
    if (v >= 0x1p63) return INT64_MAX;
    return v <= -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* Truncates; what int64 (uint64 for u64) cannot hold becomes INT64_MIN, as x86 does it; then wraps. */
static int64_t trunc_to_i64(hn_dtype t, double v)
{
    if (t == HN_BOOL) return v != 0;
    if (t == HN_U64 && v >= 0x1p63 && v < 0x1p64) return (int64_t)(uint64_t)v;
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}

static void narrow_int_f64(hn_dtype t, const double *src, int64_t n, void *dst, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t v = trunc_to_i64(t, src[i]);
        hn_narrow_i64(t, &v, 1, dst, first + i);
    }
}

void hn_narrow_f64(hn_dtype t, const double *src, int64_t n, void *dst, int64_t first, bool saturate)
{
    switch (t) {
    case HN_F64:
        if (n > 0) memcpy((char *)dst + first * 8, src, (size_t)n * 8);
        return;
    case HN_F32:
        narrow_f32(src, n, dst, first);
        return;
    case HN_F16:
        narrow16(&f16, src, n, dst, first, saturate);
        return;
    case HN_BF16:
        narrow16(&bf16, src, n, dst, first, saturate);
        return;
    case HN_F8E4M3FN:
        narrow8(&e4m3fn, src, n, dst, first, saturate);
        return;
    case HN_F8E4M3FNUZ:
        narrow8(&e4m3fnuz, src, n, dst, first, saturate);
        return;
    case HN_F8E5M2:
        narrow8(&e5m2, src, n, dst, first, saturate);
        return;
    case HN_F8E5M2FNUZ:
        narrow8(&e5m2fnuz, src, n, dst, first, saturate);
        return;
    case HN_F8E8M0:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[first + i] = (uint8_t)hn_e8m0_from_f64(src[i], HN_E8M0_NEAREST, saturate);
        return;
    case HN_F4E2M1:
        for (int64_t i = 0; i < n; i++)
            put_packed(dst, 4, first + i, encode_f4(src[i]));
        return;
    default:
        narrow_int_f64(t, src, n, dst, first);
    }
}

/* ---- integers to and from int64 ---- */
#define WIDEN_LOOP(type)                                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        type v;                                                                                              \
        LOAD(type, src, first + i, v);                                                                       \
        dst[i] = (int64_t)v;                                                                                 \
    }                                                                                                        \
    return
#define NARROW_LOOP(type)                                                                                    \
    for (int64_t i = 0; i < n; i++) {                                                                        \
        const type v = (type)src[i];                                                                         \
        STORE(type, dst, first + i, v);                                                                      \
    }                                                                                                        \
    return

static void widen_packed(hn_dtype t, const void *src, int64_t first, int64_t n, int64_t *dst)
{
    const int bits = hn_dtype_bits(t);
    for (int64_t i = 0; i < n; i++)
        dst[i] = hn_wrap_i64(t, (int64_t)get_packed(src, bits, first + i));
}

static void widen_float_i64(hn_dtype t, const void *src, int64_t first, int64_t n, int64_t *dst)
{
    for (int64_t i = 0; i < n; i++) {
        double v;
        hn_widen_f64(t, src, first + i, 1, &v);
        dst[i] = trunc_to_i64(HN_I64, v);
    }
}

void hn_widen_i64(hn_dtype t, const void *src, int64_t first, int64_t n, int64_t *dst)
{
    switch (t) {
    case HN_I64:
    case HN_U64:
        WIDEN_LOOP(int64_t);
    case HN_I32:
        WIDEN_LOOP(int32_t);
    case HN_I16:
        WIDEN_LOOP(int16_t);
    case HN_I8:
        WIDEN_LOOP(int8_t);
    case HN_U32:
        WIDEN_LOOP(uint32_t);
    case HN_U16:
        WIDEN_LOOP(uint16_t);
    case HN_U8:
        WIDEN_LOOP(uint8_t);
    case HN_I4:
    case HN_I2:
    case HN_U4:
    case HN_U2:
        widen_packed(t, src, first, n, dst);
        return;
    case HN_BOOL:
        for (int64_t i = 0; i < n; i++)
            dst[i] = ((const uint8_t *)src)[first + i] != 0;
        return;
    default:
        widen_float_i64(t, src, first, n, dst);
    }
}

static void narrow_packed(hn_dtype t, const int64_t *src, int64_t n, void *dst, int64_t first)
{
    const int bits = hn_dtype_bits(t);
    for (int64_t i = 0; i < n; i++)
        put_packed(dst, bits, first + i, (unsigned)src[i]);
}

static void narrow_float_i64(hn_dtype t, const int64_t *src, int64_t n, void *dst, int64_t first)
{
    for (int64_t i = 0; i < n; i++) {
        const double v = (double)src[i];
        hn_narrow_f64(t, &v, 1, dst, first + i, true);
    }
}

void hn_narrow_i64(hn_dtype t, const int64_t *src, int64_t n, void *dst, int64_t first)
{
    switch (t) {
    case HN_I64:
    case HN_U64:
        NARROW_LOOP(int64_t);
    case HN_I32:
    case HN_U32:
        NARROW_LOOP(uint32_t);
    case HN_I16:
    case HN_U16:
        NARROW_LOOP(uint16_t);
    case HN_I8:
    case HN_U8:
        NARROW_LOOP(uint8_t);
    case HN_I4:
    case HN_I2:
    case HN_U4:
    case HN_U2:
        narrow_packed(t, src, n, dst, first);
        return;
    case HN_BOOL:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)dst)[first + i] = src[i] != 0;
        return;
    default:
        narrow_float_i64(t, src, n, dst, first);
    }
}

double hn_round_f64(hn_dtype t, double v, bool saturate)
{
    uint64_t cell = 0;
    double back;
    if (t == HN_F64) return v;
    if (t == HN_F32) return (double)(float)v;
    hn_narrow_f64(t, &v, 1, &cell, 0, saturate);
    hn_widen_f64(t, &cell, 0, 1, &back);
    return back;
}

int64_t hn_wrap_i64(hn_dtype t, int64_t v)
{
    const int bits = hn_dtype_bits(t);
    if (t == HN_BOOL) return v != 0;
    if (bits == 0 || bits >= 64) return v;
    const uint64_t low = (uint64_t)v << (64 - bits);
    return hn_dtype_is_signed(t) ? (int64_t)low >> (64 - bits) : (int64_t)(low >> (64 - bits));
}
