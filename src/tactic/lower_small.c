/* Dtypes that the kernel IR does not know: floats of 8 and 4 bits, integers of 4 and 2. They are stored in u8
 * buffers, whole or packed, and computed in f32, i8 and u8. A code is an element's bits in the low end of a
 * u8. */
#include "tactic/lower_int.h"

bool hn_small_is(hn_dtype t)
{
    switch (t) {
    case HN_F8E4M3FN:
    case HN_F8E4M3FNUZ:
    case HN_F8E5M2:
    case HN_F8E5M2FNUZ:
    case HN_F8E8M0:
    case HN_F4E2M1:
    case HN_I4:
    case HN_U4:
    case HN_I2:
    case HN_U2:
        return true;
    default:
        return false;
    }
}

bool hn_small_is_packed(hn_dtype t)
{
    return hn_dtype_bits(t) < 8;
}

/* ---- codes to values ---- */
/* All values of the format, by code. */
static int table_of(hn_lower *l, hn_dtype t)
{
    if (l->small_table[t]) return l->small_table[t] - 1;
    float value[256];
    const int n = 1 << hn_dtype_bits(t);
    for (int i = 0; i < n; i++) {
        double x;
        const uint8_t code = (uint8_t)i;
        hn_widen_f64(t, &code, 0, 1, &x);
        value[i] = (float)x;
    }
    const int buf = hn_kb_table(l->b, hn_dtype_name(t), HN_F32, value, n);
    l->small_table[t] = buf + 1;
    return buf;
}

static hn_kv sign_extend(hn_lower *l, hn_kv x, int bits)
{
    x = hn_kb_cast(l->b, x, HN_I8);
    return hn_kb_shr(l->b, hn_kb_shl(l->b, x, 8 - bits), 8 - bits);
}

hn_kv hn_small_decode(hn_lower *l, hn_kv code, hn_dtype t)
{
    hn_kb *b = l->b;
    if (!hn_dtype_is_float(t)) return hn_dtype_is_signed(t) ? sign_extend(l, code, hn_dtype_bits(t)) : code;
    const int table = table_of(l, t);
    if (hn_kb_lanes(b, code) == 1) return hn_kb_load(b, table, hn_kb_cast(b, code, HN_I64), 1);
    return hn_kb_gather(b, table, hn_kb_cast(b, code, HN_I32), HN_KV_NONE);
}

/* ---- values to codes; as src/core/dtype.c rounds ---- */
typedef struct format {
    int man, bias, max, inf, nan; /* inf 0: none */
    bool fnuz;                    /* no negative zero: its code is the only NaN */
} format;

static format format_of(hn_dtype t)
{
    switch (t) {
    case HN_F8E4M3FN:
        return (format){ 3, 7, 0x7E, 0, 0x7F, false };
    case HN_F8E4M3FNUZ:
        return (format){ 3, 8, 0x7F, 0, 0x80, true };
    case HN_F8E5M2:
        return (format){ 2, 15, 0x7B, 0x7C, 0x7E, false };
    default:
        return (format){ 2, 16, 0x7F, 0, 0x80, true };
    }
}

static hn_kv i32_of(hn_lower *l, hn_kv like, int64_t x)
{
    return hn_kb_int(l->b, HN_I32, hn_kb_lanes(l->b, like), x);
}

static hn_kv magnitude_bits(hn_lower *l, hn_kv x)
{
    return hn_kb_and(l->b, hn_kb_bitcast(l->b, x, HN_I32, hn_kb_lanes(l->b, x)), i32_of(l, x, INT32_MAX));
}

static hn_kv sign_bit(hn_lower *l, hn_kv x, int place)
{
    hn_kb *b = l->b;
    const hn_kv minus = hn_kb_lt(b, hn_kb_bitcast(b, x, HN_I32, hn_kb_lanes(b, x)), i32_of(l, x, 0));
    return hn_kb_select(b, minus, i32_of(l, x, (int64_t)1 << place), i32_of(l, x, 0));
}

/* Nearest-even code of |x| as if exponents had no end: normal numbers by adding half of what is cut off to
 * the bits, subnormal ones by rounding to a multiple of the smallest. */
static hn_kv round_code(hn_lower *l, hn_kv x, const format *f)
{
    hn_kb *b = l->b;
    const int cut = 23 - f->man;
    const hn_kv a = magnitude_bits(l, x), odd = hn_kb_and(b, hn_kb_shr(b, a, cut), i32_of(l, x, 1));
    const hn_kv up = hn_kb_add(b, hn_kb_add(b, a, i32_of(l, x, ((int64_t)1 << (cut - 1)) - 1)), odd);
    const hn_kv normal =
        hn_kb_sub(b, hn_kb_shr(b, up, cut), i32_of(l, x, (int64_t)(127 - f->bias) << f->man));
    const hn_kv is_tiny = hn_kb_lt(b, a, i32_of(l, x, (int64_t)(128 - f->bias) << 23));
    const hn_kv near = hn_kb_select(b, is_tiny, hn_kb_abs(b, x), hn_kb_like(b, x, 0));
    const hn_kv steps =
        hn_kb_un(b, HN_KOP_RINT, hn_kb_mul(b, near, hn_kb_like(b, x, (double)(1 << (f->bias - 1 + f->man)))));
    return hn_kb_select(b, is_tiny, hn_kb_cast(b, steps, HN_I32), normal);
}

static hn_kv encode_f8(hn_lower *l, hn_kv x, hn_dtype t, bool saturate)
{
    hn_kb *b = l->b;
    const format f = format_of(t);
    hn_kv sign = sign_bit(l, x, 7), code = round_code(l, x, &f);
    /* Infinite bits round to a code beyond the largest too. */
    const hn_kv over = hn_kb_gt(b, code, i32_of(l, x, f.max)), nan = hn_kb_ne(b, x, x);
    const int64_t end = saturate ? f.max : f.inf ? f.inf : f.nan;
    code = hn_kb_select(b, over, i32_of(l, x, end), code);
    code = hn_kb_select(b, nan, i32_of(l, x, f.nan), code);
    if (f.fnuz) sign = hn_kb_select(b, hn_kb_eq(b, code, i32_of(l, x, 0)), code, sign);
    return hn_kb_or(b, sign, code);
}

/* Powers of two; the nearest by ratio to 1.5, 0 for what is below the smallest. */
static hn_kv encode_e8m0(hn_lower *l, hn_kv x, bool saturate)
{
    hn_kb *b = l->b;
    const hn_kv a = magnitude_bits(l, x), limit = i32_of(l, x, saturate ? 0xFE : 0xFF);
    hn_kv code = hn_kb_shr(b, hn_kb_add(b, a, i32_of(l, x, 0x400000)), 23);
    code = hn_kb_select(b, hn_kb_lt(b, a, i32_of(l, x, 0x600000)), i32_of(l, x, 0), code);
    code = hn_kb_select(b, hn_kb_gt(b, code, i32_of(l, x, 0xFE)), limit, code);
    return hn_kb_select(b, hn_kb_ne(b, x, x), i32_of(l, x, 0xFF), code);
}

/* How many midpoints |x| has passed; ties go to the even code. ONNX makes NaN -0. */
static hn_kv encode_f4(hn_lower *l, hn_kv x)
{
    hn_kb *b = l->b;
    static const double midpoint[7] = { 0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5 };
    const hn_kv mag = hn_kb_abs(b, x), one = i32_of(l, x, 1), zero = i32_of(l, x, 0);
    hn_kv code = zero;
    for (int i = 0; i < HN_COUNT(midpoint); i++) {
        const hn_kv m = hn_kb_like(b, x, midpoint[i]);
        const hn_kv past = i & 1 ? hn_kb_ge(b, mag, m) : hn_kb_gt(b, mag, m);
        code = hn_kb_add(b, code, hn_kb_select(b, past, one, zero));
    }
    code = hn_kb_or(b, code, sign_bit(l, x, 3));
    return hn_kb_select(b, hn_kb_ne(b, x, x), i32_of(l, x, 8), code);
}

hn_kv hn_small_encode(hn_lower *l, hn_kv x, hn_dtype t, bool saturate)
{
    hn_kb *b = l->b;
    hn_kv code;
    if (!hn_dtype_is_float(t)) {
        code = hn_kb_cast(b, x, HN_U8);
        const int64_t mask = (1 << hn_dtype_bits(t)) - 1;
        return hn_kb_and(b, code, hn_kb_int(b, HN_U8, hn_kb_lanes(b, x), mask));
    }
    if (t == HN_F8E8M0)
        code = encode_e8m0(l, x, saturate);
    else if (t == HN_F4E2M1)
        code = encode_f4(l, x);
    else
        code = encode_f8(l, x, t, saturate);
    return hn_kb_cast(b, code, HN_U8);
}

hn_kv hn_small_round(hn_lower *l, hn_kv x, hn_dtype t, bool saturate)
{
    return hn_small_decode(l, hn_small_encode(l, x, t, saturate), t);
}

/* ---- packed elements ---- */
static int log2_per_byte(hn_dtype t)
{
    return hn_dtype_bits(t) == 4 ? 1 : 2;
}

/* Bits by which element `at` stands above the low end of its byte, as i32. */
static hn_kv shift_of(hn_lower *l, hn_kv at, hn_dtype t)
{
    hn_kb *b = l->b;
    const int64_t per = (int64_t)1 << log2_per_byte(t);
    const hn_kv place = hn_kb_and(b, at, hn_kb_int(b, HN_I64, hn_kb_lanes(b, at), per - 1));
    return hn_kb_cast(b, hn_kb_muli(b, place, hn_dtype_bits(t)), HN_I32);
}

hn_kv hn_small_load_packed(hn_lower *l, int buf, hn_kv at, hn_dtype t, hn_kv mask)
{
    hn_kb *b = l->b;
    const hn_kv byte = hn_kb_shr(b, at, log2_per_byte(t));
    const hn_kv x =
        hn_kb_lanes(b, at) > 1 ? hn_kb_gather(b, buf, byte, mask) : hn_kb_loadm(b, buf, byte, 1, mask);
    const hn_kv low = hn_kb_bin(b, HN_KOP_SHR, hn_kb_cast(b, x, HN_I32), shift_of(l, at, t));
    const hn_kv code = hn_kb_and(b, low, i32_of(l, low, (1 << hn_dtype_bits(t)) - 1));
    return hn_small_decode(l, hn_kb_cast(b, code, HN_U8), t);
}

void hn_small_store_packed(hn_lower *l, int buf, hn_kv at, hn_kv x, hn_dtype t)
{
    hn_kb *b = l->b;
    const hn_kv byte = hn_kb_shr(b, at, log2_per_byte(t)), shift = shift_of(l, at, t);
    const hn_kv first = hn_kb_eq(b, shift, hn_kb_int(b, HN_I32, 1, 0));
    const hn_kv old = hn_kb_loadm(b, buf, byte, 1, hn_kb_not(b, first));
    const hn_kv code = hn_kb_cast(b, hn_small_encode(l, x, t, false), HN_I32);
    const hn_kv up = hn_kb_cast(b, hn_kb_bin(b, HN_KOP_SHL, code, shift), HN_U8);
    hn_kb_store(b, buf, byte, hn_kb_or(b, old, up));
}
