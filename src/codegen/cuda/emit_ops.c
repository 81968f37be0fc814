/* Arithmetic, conversions and lanes as CUDA C expressions. kops.def says what each must yield. */
#include "codegen/cuda/cuda_int.h"

#include <inttypes.h>

static bool is_float(int dtype)
{
    return hn_dtype_is_float((hn_dtype)dtype);
}

static bool is_signed(int dtype)
{
    return dtype != HN_BOOL && hn_dtype_is_signed((hn_dtype)dtype);
}

static int bits_of(int dtype)
{
    return dtype == HN_BOOL ? 8 : hn_dtype_bits((hn_dtype)dtype);
}

static const char *lane(cu_emitter *e, const hn_kins *x, int k, int i)
{
    return hn_cu_lane(e, x->a[k], e->f->ins[x->a[k]].lanes > 1 ? i : 0);
}

/* ---- two operands ---- */
static const char *infix(int op)
{
    switch (op) {
    case HN_KOP_ADD: return "+";
    case HN_KOP_SUB: return "-";
    case HN_KOP_MUL: return "*";
    case HN_KOP_DIV: return "/";
    case HN_KOP_REM: return "%";
    case HN_KOP_AND: return "&";
    case HN_KOP_OR: return "|";
    case HN_KOP_XOR: return "^";
    case HN_KOP_EQ: return "==";
    case HN_KOP_NE: return "!=";
    case HN_KOP_LT:
    case HN_KOP_MIN:
    case HN_KOP_MINR: return "<";
    case HN_KOP_LE: return "<=";
    case HN_KOP_GT:
    case HN_KOP_MAX:
    case HN_KOP_MAXR: return ">";
    default: return ">=";
    }
}

/* Integers of the type that the expression is computed in: int where operands and result are narrow. */
static const char *int_bin(cu_emitter *e, const hn_kins *x, int at, const char *p, const char *q)
{
    const hn_kins *right = &e->f->ins[x->a[1]];
    const int dtype = e->f->ins[x->a[0]].dtype;
    const bool compare = x->op >= HN_KOP_EQ && x->op <= HN_KOP_GE;
    const bool narrow = e->narrow[x->a[0]] && e->narrow[x->a[1]] && (compare || e->narrow[at]);
    const char *t = narrow ? "i32" : hn_cu_type(dtype), *u = bits_of(dtype) > 32 && !narrow ? "u64" : "u32";
    const char *o = infix(x->op);

    switch (x->op) {
    case HN_KOP_ADD:
    case HN_KOP_SUB:
    case HN_KOP_MUL:
        if (narrow) return hn_arena_printf(e->arena, "%s %s %s", p, o, q);
        return hn_arena_printf(e->arena, "(%s)((%s)(%s)%s %s (%s)(%s)%s)", t, u, t, p, o, u, t, q);
    case HN_KOP_DIV:
    case HN_KOP_REM:
        if (narrow && right->op == HN_KOP_CONST && right->imm > 0)
            return hn_arena_printf(e->arena, dtype == HN_U64 ? "(i32)((u32)%s %s %s)" : "%s %s %s", p, o, q);
        return hn_arena_printf(e->arena, "hn_%s<%s>(%s, %s)", x->op == HN_KOP_DIV ? "div" : "rem", t, p, q);
    case HN_KOP_MIN:
    case HN_KOP_MINR:
    case HN_KOP_MAX:
    case HN_KOP_MAXR:
        return hn_arena_printf(e->arena, "(%s)%s %s (%s)%s ? (%s)%s : (%s)%s", t, p, o, t, q, t, p, t, q);
    case HN_KOP_SHL:
    case HN_KOP_SHR:
        if (right->op == HN_KOP_CONST && x->op == HN_KOP_SHR && narrow && right->imm < 31)
            return hn_arena_printf(e->arena, "%s >> %s", p, q);
        if (narrow) t = hn_cu_type(dtype);
        return hn_arena_printf(e->arena, "hn_%s<%s>(%s, (u64)%s)", x->op == HN_KOP_SHL ? "shl" : "shr", t, p, q);
    case HN_KOP_MULHI:
        return hn_arena_printf(e->arena, "hn_mulhi<%s>(%s, %s)", hn_cu_type(dtype), p, q);
    default: /* bitwise, comparisons */
        return hn_arena_printf(e->arena, "(%s)((%s)%s %s (%s)%s)", compare ? "bool" : t, t, p, o, t, q);
    }
}

static const char *float_bin(cu_emitter *e, const hn_kins *x, const char *p, const char *q)
{
    switch (x->op) {
    case HN_KOP_MIN:
        return hn_arena_printf(e->arena, "hn_fmin(%s, %s)", p, q);
    case HN_KOP_MAX:
        return hn_arena_printf(e->arena, "hn_fmax(%s, %s)", p, q);
    case HN_KOP_MINR:
    case HN_KOP_MAXR:
        return hn_arena_printf(e->arena, "%s %s %s ? %s : %s", p, infix(x->op), q, p, q);
    default:
        return hn_arena_printf(e->arena, "%s %s %s", p, infix(x->op), q);
    }
}

/* ---- one operand ---- */
static const char *float_un(int op)
{
    switch (op) {
    case HN_KOP_NEG: return "hn_neg";
    case HN_KOP_ABS: return "hn_abs";
    case HN_KOP_SQRT: return "hn_sqrt";
    case HN_KOP_FLOOR: return "hn_floor";
    case HN_KOP_CEIL: return "hn_ceil";
    case HN_KOP_RINT: return "hn_rint";
    case HN_KOP_EXP2A: return "hn_exp2a";
    case HN_KOP_RCPA: return "hn_rcpa";
    default: return "hn_trunc";
    }
}

static const char *int_un(cu_emitter *e, int op, int dtype, const char *p)
{
    const char *t = hn_cu_type(dtype), *u = bits_of(dtype) > 32 ? "u64" : "u32";

    switch (op) {
    case HN_KOP_NEG:
        return hn_arena_printf(e->arena, "(%s)(0 - (%s)(%s)%s)", t, u, t, p);
    case HN_KOP_ABS:
        if (!is_signed(dtype)) return p;
        return hn_arena_printf(e->arena, "%s < 0 ? (%s)(0 - (%s)(%s)%s) : (%s)%s", p, t, u, t, p, t, p);
    case HN_KOP_NOT:
        return dtype == HN_BOOL ? hn_arena_printf(e->arena, "!%s", p) : hn_arena_printf(e->arena, "(%s)~(%s)%s", t, t, p);
    case HN_KOP_CLZ:
        return hn_arena_printf(e->arena, "hn_clz<%s>(%s)", t, p);
    case HN_KOP_POPCNT:
        return hn_arena_printf(e->arena, "hn_popc<%s>(%s)", t, p);
    default:
        return p;
    }
}

/* ---- conversions ---- */
static const char *float_to_int(cu_emitter *e, const hn_kins *x, const char *p)
{
    const int to = x->dtype, n = bits_of(to), from = e->f->ins[x->a[0]].dtype;
    const char *t = hn_cu_type(to), *f = hn_cu_type(from);

    if (x->flags & HN_KCAST_IN_RANGE) return hn_arena_printf(e->arena, "(%s)%s", t, p);
    if (!is_signed(to))
        return hn_arena_printf(e->arena, "hn_saturate<%s, %s>(%s, (%s)0, (%s)%.1f, (%s)0, (%s)~(%s)0)", t, f, p, f, f,
                               n == 64 ? 0x1p64 : (double)(1ull << n), t, t, t);
    const uint64_t least = (uint64_t)1 << (n - 1);
    const double end = n == 64 ? 0x1p63 : (double)(1ull << (n - 1));
    return hn_arena_printf(e->arena, "hn_saturate<%s, %s>(%s, (%s)%.1f, (%s)%.1f, (%s)0x%" PRIx64 "ull, (%s)0x%" PRIx64 "ull)",
                           t, f, p, f, -end, f, end, t, least, t, least - 1);
}

static const char *cast(cu_emitter *e, const hn_kins *x, const char *p)
{
    const int from = e->f->ins[x->a[0]].dtype;

    if (x->dtype == HN_BOOL) return hn_arena_printf(e->arena, "(%s != 0)", p);
    if (is_float(from) && !is_float(x->dtype)) return float_to_int(e, x, p);
    return hn_arena_printf(e->arena, "(%s)%s", hn_cu_type(x->dtype), p);
}

/* Through arrays that the compiler keeps in registers. */
static void bitcast(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at], *a = &e->f->ins[x->a[0]];

    hn_cu_line(e, "%s c%d[%d];", hn_cu_type(a->dtype), at, a->lanes);
    for (int i = 0; i < a->lanes; i++)
        hn_cu_line(e, "c%d[%d] = (%s)%s;", at, i, hn_cu_type(a->dtype), hn_cu_lane(e, x->a[0], i));
    hn_cu_line(e, "%s w%d[%d];", hn_cu_type(x->dtype), at, x->lanes);
    hn_cu_line(e, "hn_bitcast(w%d, c%d);", at, at);
    for (int i = 0; i < x->lanes; i++)
        hn_cu_line(e, "const %s %s = (%s)w%d[%d];", hn_cu_value_type(e, at), hn_cu_lane(e, at, i),
                   hn_cu_value_type(e, at), at, i);
}

/* ---- across lanes ---- */
/* The upper half onto the lower until one is left, as the interpreter does. */
static void reduce(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const int n = e->f->ins[x->a[0]].lanes, k = x->op - HN_KOP_RADD;
    const char *t = hn_cu_type(x->dtype);
    const bool f = is_float(x->dtype);

    hn_cu_line(e, "%s w%d[%d];", t, at, n);
    for (int i = 0; i < n; i++)
        hn_cu_line(e, "w%d[%d] = %s;", at, i, hn_cu_lane(e, x->a[0], i));
    for (int half = n / 2; half >= 1; half /= 2)
        for (int i = 0; i < half; i++) {
            const char *p = hn_arena_printf(e->arena, "w%d[%d]", at, i),
                       *q = hn_arena_printf(e->arena, "w%d[%d]", at, i + half);
            if (k == 1 || k == 2)
                hn_cu_line(e, f ? "%s = hn_f%s(%s, %s);" : "%s = hn_i%s(%s, %s);", p, k == 1 ? "min" : "max", p, q);
            else if (k == 0 && !f)
                hn_cu_line(e, "%s = (%s)((%s)%s + (%s)%s);", p, t, bits_of(x->dtype) > 32 ? "u64" : "u32", p,
                           bits_of(x->dtype) > 32 ? "u64" : "u32", q);
            else if (k == 0)
                hn_cu_line(e, "%s = %s + %s;", p, p, q);
            else
                hn_cu_line(e, "%s = %s %s %s;", p, p, k == 3 ? "&&" : "||", q);
        }
    hn_cu_line(e, "const %s v%d = w%d[0];", hn_cu_value_type(e, at), at, at);
}

static const char *dot(cu_emitter *e, const hn_kins *x, int i)
{
    hn_arena *a = e->arena;

    if (x->op == HN_KOP_MADDUBS) {
        const char *p = hn_arena_printf(a, "(i32)%s * (i32)%s", hn_cu_lane(e, x->a[0], 2 * i), hn_cu_lane(e, x->a[1], 2 * i));
        return hn_arena_printf(a, "hn_sat16(%s + (i32)%s * (i32)%s)", p, hn_cu_lane(e, x->a[0], 2 * i + 1),
                               hn_cu_lane(e, x->a[1], 2 * i + 1));
    }
    if (x->op == HN_KOP_DOT2BF) {
        const char *s = hn_arena_printf(a, "hn_fma(hn_from_bf16(%s), hn_from_bf16(%s), %s)",
                                        hn_cu_lane(e, x->a[1], 2 * i + 1), hn_cu_lane(e, x->a[2], 2 * i + 1),
                                        hn_cu_lane(e, x->a[0], i));
        return hn_arena_printf(a, "hn_fma(hn_from_bf16(%s), hn_from_bf16(%s), %s)", hn_cu_lane(e, x->a[1], 2 * i),
                               hn_cu_lane(e, x->a[2], 2 * i), s);
    }
    const int n = x->op == HN_KOP_DOT4 ? 4 : 2;
    const char *s = hn_arena_printf(a, "(u32)%s", hn_cu_lane(e, x->a[0], i));
    for (int k = 0; k < n; k++)
        s = hn_arena_printf(a, "%s + (u32)(i32)%s * (u32)(i32)%s", s, hn_cu_lane(e, x->a[1], n * i + k),
                            hn_cu_lane(e, x->a[2], n * i + k));
    return hn_arena_printf(a, "(i32)(%s)", s);
}

static const char *shuffled(cu_emitter *e, const hn_kins *x, int i)
{
    const int n = e->f->ins[x->a[0]].lanes, from = e->f->pool[x->imm + i];
    return from < n ? hn_cu_lane(e, x->a[0], from) : hn_cu_lane(e, x->a[1], from - n);
}

static const char *ramped(cu_emitter *e, const hn_kins *x, int at, int i)
{
    const char *t = hn_cu_type(x->dtype), *u = bits_of(x->dtype) > 32 ? "u64" : "u32";
    const int64_t step = x->imm * i;

    if (i == 0) return hn_cu_lane(e, x->a[0], 0);
    if (e->narrow[at] && e->narrow[x->a[0]])
        return hn_arena_printf(e->arena, "%s + %" PRId64, hn_cu_lane(e, x->a[0], 0), step);
    return hn_arena_printf(e->arena, "(%s)((%s)(%s)%s + (%s)0x%" PRIx64 "ull)", t, u, t, hn_cu_lane(e, x->a[0], 0), u,
                           (uint64_t)step);
}

/* The result begins as the sum so far, and is added to in place. */
void hn_cu_mma(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const char *suffix = x->flags == HN_F32 ? "tf32" : hn_dtype_name((hn_dtype)x->flags);

    for (int i = 0; i < 4; i++)
        hn_cu_line(e, "%s %s = %s;", hn_cu_type(x->dtype), hn_cu_lane(e, at, i), hn_cu_lane(e, x->a[2], i));
    hn_cu_line(e, "hn_mma_%s(%s, %s, %s, %s, %s, %s, %s, %s, %s, %s);", suffix, hn_cu_lane(e, at, 0), hn_cu_lane(e, at, 1),
               hn_cu_lane(e, at, 2), hn_cu_lane(e, at, 3), hn_cu_lane(e, x->a[0], 0), hn_cu_lane(e, x->a[0], 1),
               hn_cu_lane(e, x->a[0], 2), hn_cu_lane(e, x->a[0], 3), hn_cu_lane(e, x->a[1], 0), hn_cu_lane(e, x->a[1], 1));
}

/* ---- dispatch ---- */
static const char *expression(cu_emitter *e, const hn_kins *x, int at, int i)
{
    hn_arena *a = e->arena;

    switch (x->op) {
    case HN_KOP_FMA:
        if (!is_float(x->dtype))
            return hn_arena_printf(a, "(%s)((u64)%s * (u64)%s + (u64)%s)", hn_cu_type(x->dtype), lane(e, x, 0, i),
                                   lane(e, x, 1, i), lane(e, x, 2, i));
        return hn_arena_printf(a, "hn_fma(%s, %s, %s)", lane(e, x, 0, i), lane(e, x, 1, i), lane(e, x, 2, i));
    case HN_KOP_SELECT:
        return hn_arena_printf(a, "%s ? (%s)%s : (%s)%s", lane(e, x, 0, i), hn_cu_value_type(e, at), lane(e, x, 1, i),
                               hn_cu_value_type(e, at), lane(e, x, 2, i));
    case HN_KOP_CAST:
        return cast(e, x, lane(e, x, 0, i));
    case HN_KOP_UNHALF:
        return hn_arena_printf(a, "hn_from_%s(%s)", hn_dtype_name((hn_dtype)x->flags), lane(e, x, 0, i));
    case HN_KOP_HALF:
        return hn_arena_printf(a, "hn_to_%s(%s)", hn_dtype_name((hn_dtype)x->flags), lane(e, x, 0, i));
    case HN_KOP_BITCAST: /* of integers lane by lane */
        return hn_arena_printf(a, "(%s)%s", hn_cu_type(x->dtype), lane(e, x, 0, i));
    case HN_KOP_SPLAT:
        return hn_cu_lane(e, x->a[0], 0);
    case HN_KOP_RAMP:
        return ramped(e, x, at, i);
    case HN_KOP_EXTRACT:
        return hn_cu_lane(e, x->a[0], (int)x->imm);
    case HN_KOP_INSERT:
        return i == x->imm ? hn_cu_lane(e, x->a[1], 0) : hn_cu_lane(e, x->a[0], i);
    case HN_KOP_SHUFFLE:
        return shuffled(e, x, i);
    case HN_KOP_DOT4:
    case HN_KOP_DOT2:
    case HN_KOP_MADDUBS:
    case HN_KOP_DOT2BF:
        return dot(e, x, i);
    case HN_KOP_SHFL_XOR:
    case HN_KOP_SHFL_DOWN:
        return hn_arena_printf(a, "hn_shfl_%s<%s>(%s, %d)", x->op == HN_KOP_SHFL_XOR ? "xor" : "down",
                               hn_cu_type(x->dtype), lane(e, x, 0, i), (int)x->imm);
    default:
        break;
    }
    const int from = e->f->ins[x->a[0]].dtype;
    if (x->a[1] >= 0 && is_float(from)) return float_bin(e, x, lane(e, x, 0, i), lane(e, x, 1, i));
    if (x->a[1] >= 0) return int_bin(e, x, at, lane(e, x, 0, i), lane(e, x, 1, i));
    if (is_float(from)) return hn_arena_printf(a, "%s(%s)", float_un(x->op), lane(e, x, 0, i));
    return int_un(e, x->op, from, lane(e, x, 0, i));
}

static bool is_plain_bitcast(const hn_kfunc *f, const hn_kins *x)
{
    const hn_kins *a = &f->ins[x->a[0]];
    return a->lanes == x->lanes && !is_float(a->dtype) && !is_float(x->dtype);
}

void hn_cu_value(cu_emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    if (x->op == HN_KOP_BITCAST && !is_plain_bitcast(e->f, x)) {
        bitcast(e, at);
        return;
    }
    if (x->op >= HN_KOP_RADD && x->op <= HN_KOP_ROR) {
        reduce(e, at);
        return;
    }
    for (int i = 0; i < x->lanes; i++) {
        const char *v = expression(e, x, at, i);
        hn_cu_line(e, "const %s %s = %s;", hn_cu_value_type(e, at), hn_cu_lane(e, at, i), v);
    }
}
