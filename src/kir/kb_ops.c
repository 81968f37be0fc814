/* The builder: constants, arithmetic with folding, conversions, lanes. */
#include "kir/kir_int.h"

hn_ktype hn_kb_type(const hn_kb *b, hn_kv v)
{
    const hn_kins *x = hn_kb_ins(b, v);
    return x ? (hn_ktype){ x->dtype, x->lanes } : (hn_ktype){ 0, 0 };
}

hn_dtype hn_kb_dtype(const hn_kb *b, hn_kv v)
{
    return (hn_dtype)hn_kb_type(b, v).dtype;
}

int hn_kb_lanes(const hn_kb *b, hn_kv v)
{
    return hn_kb_type(b, v).lanes;
}

/* ---- constants ---- */
static bool const_bits(const hn_kb *b, hn_kv v, uint64_t *ret)
{
    const hn_kins *x = hn_kb_ins(b, v);

    if (!x || x->op != HN_KOP_CONST) return false;
    *ret = (uint64_t)x->imm;
    return true;
}

bool hn_kb_is_const(const hn_kb *b, hn_kv v, int64_t *ret)
{
    uint64_t bits;

    if (!const_bits(b, v, &bits) || hn_dtype_is_float(hn_kb_dtype(b, v))) return false;
    *ret = (int64_t)bits;
    return true;
}

static bool is_literal(const hn_kb *b, hn_kv v, int64_t want)
{
    int64_t x;
    return hn_kb_is_const(b, v, &x) && x == want;
}

hn_kv hn_kb_bits(hn_kb *b, hn_dtype t, int lanes, uint64_t bits)
{
    hn_kins x = hn_kins_make(HN_KOP_CONST, hn_ktype_make(t, lanes));

    x.imm = (int64_t)(t == HN_F32 ? bits & 0xffffffff : t == HN_F64 ? bits : hn_klane_norm((int)t, bits));
    return hn_kb_emit(b, x);
}

hn_kv hn_kb_i(hn_kb *b, int64_t v)
{
    return hn_kb_bits(b, HN_I64, 1, (uint64_t)v);
}

hn_kv hn_kb_f(hn_kb *b, float v)
{
    return hn_kb_bits(b, HN_F32, 1, hn_f32_lane(v));
}

hn_kv hn_kb_int(hn_kb *b, hn_dtype t, int lanes, int64_t v)
{
    return hn_kb_bits(b, t, lanes, t == HN_BOOL ? v != 0 : (uint64_t)v);
}

hn_kv hn_kb_float(hn_kb *b, hn_dtype t, int lanes, double v)
{
    return hn_kb_bits(b, t, lanes, hn_klane_from_f64((int)t, v));
}

hn_kv hn_kb_like(hn_kb *b, hn_kv v, double x)
{
    const hn_ktype t = hn_kb_type(b, v);
    return hn_kb_float(b, (hn_dtype)t.dtype, t.lanes, x);
}

/* ---- emission ---- */
static hn_kv emit(hn_kb *b, hn_kop op, hn_ktype t, hn_kv x, hn_kv y, hn_kv z)
{
    hn_kins i = hn_kins_make(op, t);

    i.a[0] = x.at;
    i.a[1] = y.at;
    i.a[2] = z.at;
    return hn_kb_emit(b, i);
}

static hn_kv emit_imm(hn_kb *b, hn_kop op, hn_ktype t, hn_kv x, hn_kv y, int64_t imm)
{
    hn_kins i = hn_kins_make(op, t);

    i.a[0] = x.at;
    i.a[1] = y.at;
    i.imm = imm;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_splat(hn_kb *b, hn_kv x, int lanes)
{
    const hn_ktype t = hn_kb_type(b, x);
    uint64_t bits;

    if (t.lanes == lanes) return x;
    if (t.lanes == 1 && const_bits(b, x, &bits)) return hn_kb_bits(b, (hn_dtype)t.dtype, lanes, bits);
    return emit(b, HN_KOP_SPLAT, hn_ktype_make((hn_dtype)t.dtype, lanes), x, HN_KV_NONE, HN_KV_NONE);
}

/* Bring a scalar to the other operand's lanes. */
static void match(hn_kb *b, hn_kv *x, hn_kv *y)
{
    const int lx = hn_kb_lanes(b, *x), ly = hn_kb_lanes(b, *y);

    if (lx == 1 && ly > 1) *x = hn_kb_splat(b, *x, ly);
    if (ly == 1 && lx > 1) *y = hn_kb_splat(b, *y, lx);
}

static hn_kv fold_neutral(hn_kb *b, hn_kop op, hn_kv x, hn_kv y)
{
    switch (op) {
    case HN_KOP_ADD:
    case HN_KOP_OR:
    case HN_KOP_XOR:
        if (is_literal(b, x, 0)) return y;
        return is_literal(b, y, 0) ? x : HN_KV_NONE;
    case HN_KOP_SUB:
    case HN_KOP_SHL:
    case HN_KOP_SHR:
        return is_literal(b, y, 0) ? x : HN_KV_NONE;
    case HN_KOP_MUL:
        if (is_literal(b, x, 1) || is_literal(b, y, 0)) return y;
        return is_literal(b, y, 1) || is_literal(b, x, 0) ? x : HN_KV_NONE;
    case HN_KOP_DIV:
        return is_literal(b, y, 1) ? x : HN_KV_NONE;
    case HN_KOP_AND: {
        const bool bools = hn_kb_dtype(b, x) == HN_BOOL;
        if (is_literal(b, x, 0) || (bools && is_literal(b, y, 1))) return x;
        return is_literal(b, y, 0) || (bools && is_literal(b, x, 1)) ? y : HN_KV_NONE;
    }
    default:
        return HN_KV_NONE;
    }
}

/* (v + c1) + c2 => v + (c1+c2), so that addresses stay flat. */
static hn_kv fold_add_chain(hn_kb *b, hn_kv x, hn_kv y)
{
    const hn_kins *i = hn_kb_ins(b, x);
    int64_t c1, c2;

    if (!i || i->op != HN_KOP_ADD || !hn_kb_is_const(b, y, &c2)) return HN_KV_NONE;
    const hn_kv inner = { i->a[0] };
    if (!hn_kb_is_const(b, (hn_kv){ i->a[1] }, &c1)) return HN_KV_NONE;
    const hn_ktype t = hn_kb_type(b, x);
    return hn_kb_add(b, inner, hn_kb_bits(b, (hn_dtype)t.dtype, t.lanes, (uint64_t)c1 + (uint64_t)c2));
}

static bool is_compare(hn_kop op)
{
    return op >= HN_KOP_EQ && op <= HN_KOP_GE;
}

hn_kv hn_kb_bin(hn_kb *b, hn_kop op, hn_kv x, hn_kv y)
{
    uint64_t cx, cy;

    if (!b) return HN_KV_NONE;
    match(b, &x, &y);
    const hn_ktype t = hn_kb_type(b, x), ty = hn_kb_type(b, y);
    const hn_ktype r = is_compare(op) ? hn_ktype_make(HN_BOOL, t.lanes) : t;
    if (t.dtype == ty.dtype && t.lanes == ty.lanes) {
        if (const_bits(b, x, &cx) && const_bits(b, y, &cy))
            return hn_kb_bits(b, (hn_dtype)r.dtype, r.lanes, hn_klane_bin((int)op, t.dtype, cx, cy));
        hn_kv f = fold_neutral(b, op, x, y);
        if (hn_kv_is(f)) return f;
        if (op == HN_KOP_ADD && const_bits(b, x, &cx)) { /* constants to the right */
            const hn_kv swap = x;
            x = y;
            y = swap;
        }
        if (op == HN_KOP_ADD && hn_kv_is(f = fold_add_chain(b, x, y))) return f;
    }
    return emit(b, op, r, x, y, HN_KV_NONE);
}

hn_kv hn_kb_un(hn_kb *b, hn_kop op, hn_kv x)
{
    const hn_ktype t = hn_kb_type(b, x);
    uint64_t c;

    if (op >= HN_KOP_RADD) {
        if (t.lanes == 1) return x;
        return emit(b, op, hn_ktype_make((hn_dtype)t.dtype, 1), x, HN_KV_NONE, HN_KV_NONE);
    }
    if (const_bits(b, x, &c))
        return hn_kb_bits(b, (hn_dtype)t.dtype, t.lanes,
                          op == HN_KOP_NOT && t.dtype == HN_BOOL ? !c : hn_klane_un((int)op, t.dtype, c));
    if (!hn_dtype_is_float((hn_dtype)t.dtype) && op >= HN_KOP_FLOOR && op <= HN_KOP_TRUNC) return x;
    return emit(b, op, t, x, HN_KV_NONE, HN_KV_NONE);
}

#define BIN(name, OP)                                                                                        \
    hn_kv hn_kb_##name(hn_kb *b, hn_kv x, hn_kv y)                                                           \
    {                                                                                                        \
        return hn_kb_bin(b, HN_KOP_##OP, x, y);                                                              \
    }
BIN(add, ADD)
BIN(sub, SUB)
BIN(mul, MUL)
BIN(div, DIV)
BIN(min, MIN)
BIN(max, MAX)
BIN(and, AND)
BIN(or, OR)
BIN(eq, EQ)
BIN(ne, NE)
BIN(lt, LT)
BIN(le, LE)
BIN(gt, GT)
BIN(ge, GE)
#undef BIN

#define UN(name, OP)                                                                                         \
    hn_kv hn_kb_##name(hn_kb *b, hn_kv x)                                                                    \
    {                                                                                                        \
        return hn_kb_un(b, HN_KOP_##OP, x);                                                                  \
    }
UN(neg, NEG)
UN(abs, ABS)
UN(sqrt, SQRT)
UN(not, NOT)
#undef UN

hn_kv hn_kb_fma(hn_kb *b, hn_kv x, hn_kv y, hn_kv z)
{
    if (hn_dtype_is_int(hn_kb_dtype(b, x))) return hn_kb_add(b, hn_kb_mul(b, x, y), z);
    match(b, &x, &y);
    match(b, &x, &z);
    match(b, &y, &z);
    return emit(b, HN_KOP_FMA, hn_kb_type(b, x), x, y, z);
}

static hn_kv int_like(hn_kb *b, hn_kv x, int64_t v)
{
    const hn_ktype t = hn_kb_type(b, x);

    if (b && t.lanes && !hn_dtype_is_int((hn_dtype)t.dtype))
        hn_kb_fail(b, "an integer literal beside %s", hn_dtype_name((hn_dtype)t.dtype));
    return hn_kb_int(b, (hn_dtype)t.dtype, t.lanes, v);
}

hn_kv hn_kb_addi(hn_kb *b, hn_kv x, int64_t y)
{
    return hn_kb_add(b, x, int_like(b, x, y));
}

hn_kv hn_kb_muli(hn_kb *b, hn_kv x, int64_t y)
{
    return hn_kb_mul(b, x, int_like(b, x, y));
}

hn_kv hn_kb_shl(hn_kb *b, hn_kv x, int n)
{
    return hn_kb_bin(b, HN_KOP_SHL, x, int_like(b, x, n));
}

hn_kv hn_kb_shr(hn_kb *b, hn_kv x, int n)
{
    return hn_kb_bin(b, HN_KOP_SHR, x, int_like(b, x, n));
}

hn_kv hn_kb_select(hn_kb *b, hn_kv cond, hn_kv x, hn_kv y)
{
    int64_t c;

    match(b, &x, &y);
    const int lanes = hn_kb_lanes(b, cond);
    if (lanes > 1 && hn_kb_lanes(b, x) == 1) {
        x = hn_kb_splat(b, x, lanes);
        y = hn_kb_splat(b, y, lanes);
    }
    if (hn_kb_is_const(b, cond, &c)) return c ? x : y;
    return emit(b, HN_KOP_SELECT, hn_kb_type(b, x), cond, x, y);
}

static hn_kv unsigned_op(hn_kb *b, hn_kop op, hn_kv x, hn_kv y)
{
    const int lanes = hn_kb_lanes(b, x);
    const hn_kv ux = hn_kb_bitcast(b, x, HN_U64, lanes), uy = hn_kb_bitcast(b, y, HN_U64, hn_kb_lanes(b, y));

    return hn_kb_bitcast(b, hn_kb_bin(b, op, ux, uy), HN_I64, lanes);
}

hn_kv hn_kb_idiv(hn_kb *b, hn_kv x, hn_kv y)
{
    int64_t c;

    match(b, &x, &y);
    if (hn_kb_is_const(b, y, &c) && c > 0 && (c & (c - 1)) == 0)
        return hn_kb_shr(b, x, __builtin_ctzll((uint64_t)c));
    return unsigned_op(b, HN_KOP_DIV, x, y);
}

hn_kv hn_kb_imod(hn_kb *b, hn_kv x, hn_kv y)
{
    int64_t c;

    match(b, &x, &y);
    if (hn_kb_is_const(b, y, &c) && c > 0 && (c & (c - 1)) == 0)
        return hn_kb_and(b, x, int_like(b, x, c - 1));
    return unsigned_op(b, HN_KOP_REM, x, y);
}

hn_kv hn_kb_floormod(hn_kb *b, hn_kv x, hn_kv y)
{
    match(b, &x, &y);
    const hn_kv r = hn_kb_bin(b, HN_KOP_REM, x, y), zero = hn_kb_like(b, x, 0);
    if (!hn_dtype_is_signed(hn_kb_dtype(b, x))) return r;
    const hn_kv differ = hn_kb_lt(b, hn_kb_bin(b, HN_KOP_XOR, r, y), zero);
    return hn_kb_select(b, hn_kb_and(b, hn_kb_ne(b, r, zero), differ), hn_kb_add(b, r, y), r);
}

hn_kv hn_kb_floordiv(hn_kb *b, hn_kv x, hn_kv y)
{
    match(b, &x, &y);
    const hn_kv q = hn_kb_div(b, x, y), zero = hn_kb_like(b, x, 0);
    if (!hn_dtype_is_signed(hn_kb_dtype(b, x))) return q;
    const hn_kv r = hn_kb_bin(b, HN_KOP_REM, x, y);
    const hn_kv differ = hn_kb_lt(b, hn_kb_bin(b, HN_KOP_XOR, x, y), zero);
    const hn_kv down = hn_kb_and(b, hn_kb_and(b, hn_kb_ne(b, r, zero), hn_kb_ne(b, y, zero)), differ);
    return hn_kb_select(b, down, hn_kb_addi(b, q, -1), q);
}

hn_kv hn_kb_index(hn_kb *b, int n, const hn_kv *index, const int64_t *stride)
{
    hn_kv v = hn_kb_i(b, 0);

    for (int i = 0; i < n; i++)
        v = hn_kb_add(b, v, hn_kb_muli(b, index[i], stride[i]));
    return v;
}

/* ---- conversion ---- */
hn_kv hn_kb_cast(hn_kb *b, hn_kv x, hn_dtype t)
{
    const hn_ktype from = hn_kb_type(b, x);
    uint64_t c;

    if (from.dtype == t) return x;
    if (const_bits(b, x, &c) && hn_kir_is_value_dtype((int)t))
        return hn_kb_bits(b, t, from.lanes, hn_klane_cast(from.dtype, (int)t, c));
    return emit(b, HN_KOP_CAST, hn_ktype_make(t, from.lanes), x, HN_KV_NONE, HN_KV_NONE);
}

hn_kv hn_kb_cast_in_range(hn_kb *b, hn_kv x, hn_dtype t)
{
    hn_kins i = hn_kins_make(HN_KOP_CAST, hn_ktype_make(t, hn_kb_lanes(b, x)));

    if (!hn_dtype_is_float(hn_kb_dtype(b, x)) || !hn_dtype_is_int(t)) return hn_kb_cast(b, x, t);
    i.a[0] = x.at;
    i.flags = HN_KCAST_IN_RANGE;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_cast_rint(hn_kb *b, hn_kv x, hn_dtype t)
{
    const int bits = hn_dtype_bits(t);

    if (!hn_dtype_is_int(t) || bits > 16)
        return hn_kb_cast(b, hn_kb_un(b, HN_KOP_RINT, x), t); /* the cast saturates */
    /* clamped in float, so that a plain 32-bit conversion and a pack do the rest; MAXR sends NaN to the lower
     * end */
    const double hi = hn_dtype_is_signed(t) ? (double)((1 << (bits - 1)) - 1) : (double)((1 << bits) - 1);
    const double lo = hn_dtype_is_signed(t) ? -hi - 1 : 0;
    const hn_kv r = hn_kb_un(b, HN_KOP_RINT, x);
    const hn_kv clamped =
        hn_kb_bin(b, HN_KOP_MINR, hn_kb_bin(b, HN_KOP_MAXR, r, hn_kb_like(b, x, lo)), hn_kb_like(b, x, hi));
    return hn_kb_cast(b, hn_kb_cast_in_range(b, clamped, HN_I32), t);
}

hn_kv hn_kb_bitcast(hn_kb *b, hn_kv x, hn_dtype t, int lanes)
{
    const hn_ktype from = hn_kb_type(b, x);
    uint64_t c;

    if (from.dtype == t && from.lanes == lanes) return x;
    if (from.lanes == lanes && hn_dtype_bits(t) == hn_dtype_bits((hn_dtype)from.dtype) &&
        from.dtype != HN_BOOL && const_bits(b, x, &c))
        return hn_kb_bits(b, t, lanes, c);
    return emit(b, HN_KOP_BITCAST, hn_ktype_make(t, lanes), x, HN_KV_NONE, HN_KV_NONE);
}

hn_kv hn_kb_ramp(hn_kb *b, hn_kv base, int64_t step, int lanes)
{
    if (lanes == 1) return base;
    return emit_imm(b, HN_KOP_RAMP, hn_ktype_make(hn_kb_dtype(b, base), lanes), base, HN_KV_NONE, step);
}

hn_kv hn_kb_extract(hn_kb *b, hn_kv x, int lane)
{
    if (hn_kb_lanes(b, x) == 1 && lane == 0) return x;
    return emit_imm(b, HN_KOP_EXTRACT, hn_ktype_make(hn_kb_dtype(b, x), 1), x, HN_KV_NONE, lane);
}

hn_kv hn_kb_insert(hn_kb *b, hn_kv x, hn_kv scalar, int lane)
{
    return emit_imm(b, HN_KOP_INSERT, hn_kb_type(b, x), x, scalar, lane);
}

hn_kv hn_kb_shuffle(hn_kb *b, hn_kv x, hn_kv y, const int *lane, int lanes)
{
    if (!b || b->error[0]) return HN_KV_NONE;
    const int64_t at = b->pool.n;
    for (int i = 0; i < lanes; i++)
        if (!hn_vec_push(b->arena, &b->pool, lane[i])) return HN_KV_NONE;
    return emit_imm(b, HN_KOP_SHUFFLE, hn_ktype_make(hn_kb_dtype(b, x), lanes), x, y, at);
}

static hn_kv lane_run(hn_kb *b, hn_kv x, hn_kv y, int first, int lanes)
{
    int lane[HN_KIR_MAX_LANES];

    if (lanes < 1 || lanes > HN_KIR_MAX_LANES) {
        hn_kb_fail(b, "%d lanes", lanes);
        return HN_KV_NONE;
    }
    for (int i = 0; i < lanes; i++)
        lane[i] = first + i;
    return hn_kb_shuffle(b, x, y, lane, lanes);
}

hn_kv hn_kb_concat(hn_kb *b, hn_kv x, hn_kv y)
{
    return lane_run(b, x, y, 0, hn_kb_lanes(b, x) + hn_kb_lanes(b, y));
}

hn_kv hn_kb_slice(hn_kb *b, hn_kv x, int first, int lanes)
{
    if (first == 0 && lanes == hn_kb_lanes(b, x)) return x;
    return lane_run(b, x, x, first, lanes);
}

static hn_kv half_op(hn_kb *b, hn_kop op, hn_dtype to, hn_kv x, hn_dtype half)
{
    hn_kins i = hn_kins_make(op, hn_ktype_make(to, hn_kb_lanes(b, x)));

    i.a[0] = x.at;
    i.flags = (uint8_t)half;
    return hn_kb_emit(b, i);
}

hn_kv hn_kb_unhalf(hn_kb *b, hn_kv bits, hn_dtype half)
{
    return half_op(b, HN_KOP_UNHALF, HN_F32, bits, half);
}

hn_kv hn_kb_half(hn_kb *b, hn_kv x, hn_dtype half)
{
    return half_op(b, HN_KOP_HALF, HN_U16, x, half);
}

hn_kv hn_kb_round_to(hn_kb *b, hn_kv x, hn_dtype t)
{
    if (t != HN_F16 && t != HN_BF16) return x;
    return hn_kb_unhalf(b, hn_kb_half(b, x, t), t);
}

hn_kv hn_kb_tail_mask(hn_kb *b, hn_kv first, hn_kv n, int lanes)
{
    /* Narrow lanes compare faster: one byte compare covers 64 lanes, dwords match the masks of 4-byte loads.
     */
    const hn_dtype t = lanes >= 32 ? HN_I8 : HN_I32;
    const hn_kv left = hn_kb_min(b, hn_kb_max(b, hn_kb_sub(b, n, first), hn_kb_i(b, 0)), hn_kb_i(b, lanes));

    return hn_kb_lt(b, hn_kb_ramp(b, hn_kb_int(b, t, 1, 0), 1, lanes), hn_kb_cast(b, left, t));
}

hn_kv hn_kb_dot4(hn_kb *b, hn_kv acc, hn_kv u8, hn_kv i8)
{
    return emit(b, HN_KOP_DOT4, hn_kb_type(b, acc), acc, u8, i8);
}

hn_kv hn_kb_dot2(hn_kb *b, hn_kv acc, hn_kv x, hn_kv y)
{
    return emit(b, HN_KOP_DOT2, hn_kb_type(b, acc), acc, x, y);
}

hn_kv hn_kb_maddubs(hn_kb *b, hn_kv u8, hn_kv i8)
{
    return emit(b, HN_KOP_MADDUBS, hn_ktype_make(HN_I16, hn_kb_lanes(b, u8) / 2), u8, i8, HN_KV_NONE);
}

hn_kv hn_kb_dot2bf(hn_kb *b, hn_kv acc, hn_kv x, hn_kv y)
{
    return emit(b, HN_KOP_DOT2BF, hn_kb_type(b, acc), acc, x, y);
}
