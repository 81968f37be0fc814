/* Arithmetic, conversions and lanes: each operation as kir/kops.def defines it, with LLVM's undefined cases
 * closed. */
#include "codegen/llvm/llvm_int.h"

#include <string.h>

#include "kir/kir.h"

static bool is_float(int dtype)
{
    return dtype == HN_F32 || dtype == HN_F64;
}

static bool is_signed(int dtype)
{
    return dtype != HN_BOOL && hn_dtype_is_signed((hn_dtype)dtype);
}

LLVMValueRef hn_ll_call(const emitter *e, const char *name, LLVMTypeRef *types, int n_type,
                        LLVMValueRef *args, int n_arg)
{
    const unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMValueRef fn = LLVMGetIntrinsicDeclaration(e->mod, id, types, (size_t)n_type);

    return LLVMBuildCall2(e->at, LLVMIntrinsicGetType(e->ctx, id, types, (size_t)n_type), fn, args,
                          (unsigned)n_arg, "");
}

/* An intrinsic overloaded on its first operand's type. */
static LLVMValueRef call1(const emitter *e, const char *name, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return hn_ll_call(e, name, &t, 1, &x, 1);
}

static LLVMValueRef call2(const emitter *e, const char *name, LLVMValueRef x, LLVMValueRef y)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    return hn_ll_call(e, name, &t, 1, (LLVMValueRef[]){ x, y }, 2);
}

LLVMValueRef hn_ll_const(const emitter *e, int dtype, int lanes, uint64_t bits)
{
    LLVMTypeRef t = hn_ll_elem(e, dtype);
    LLVMValueRef one, all[64];

    if (is_float(dtype))
        one = LLVMConstBitCast(LLVMConstInt(LLVMIntTypeInContext(e->ctx, dtype == HN_F32 ? 32 : 64), bits, 0),
                               t);
    else
        one = LLVMConstInt(t, bits, 0);
    if (lanes == 1) return one;
    for (int i = 0; i < lanes; i++)
        all[i] = one;
    return LLVMConstVector(all, (unsigned)lanes);
}

LLVMValueRef hn_ll_shuffle(const emitter *e, LLVMValueRef x, LLVMValueRef y, const int *lane, int lanes)
{
    LLVMTypeRef i32 = LLVMInt32TypeInContext(e->ctx);
    LLVMValueRef mask[64];

    for (int i = 0; i < lanes; i++)
        mask[i] = LLVMConstInt(i32, (uint64_t)lane[i], 0);
    return LLVMBuildShuffleVector(e->at, x, y, LLVMConstVector(mask, (unsigned)lanes), "");
}

static LLVMValueRef lane_no(const emitter *e, int64_t i)
{
    return LLVMConstInt(LLVMInt32TypeInContext(e->ctx), (uint64_t)i, 0);
}

static LLVMValueRef as_vector(const emitter *e, LLVMValueRef scalar)
{
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(scalar), 1);
    return LLVMBuildInsertElement(e->at, LLVMGetPoison(t), scalar, lane_no(e, 0), "");
}

LLVMValueRef hn_ll_splat(const emitter *e, LLVMValueRef scalar, int lanes)
{
    int zero[64] = { 0 };
    LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(scalar), (unsigned)lanes);

    if (lanes == 1) return scalar;
    LLVMValueRef v = LLVMBuildInsertElement(e->at, LLVMGetPoison(t), scalar, lane_no(e, 0), "");
    return hn_ll_shuffle(e, v, LLVMGetPoison(t), zero, lanes);
}

/* ---- integers ---- */
typedef struct both {
    LLVMValueRef x, y;
    int dtype, lanes;
} both;

static LLVMValueRef lit(const emitter *e, const both *o, int64_t v)
{
    return hn_ll_const(e, o->dtype, o->lanes, (uint64_t)v);
}

static LLVMValueRef icmp(const emitter *e, LLVMIntPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildICmp(e->at, p, x, y, "");
}

static LLVMValueRef pick(const emitter *e, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(e->at, c, x, y, "");
}

static LLVMValueRef plain_div(const emitter *e, const both *o, LLVMValueRef y, bool rem)
{
    if (is_signed(o->dtype))
        return rem ? LLVMBuildSRem(e->at, o->x, y, "") : LLVMBuildSDiv(e->at, o->x, y, "");
    return rem ? LLVMBuildURem(e->at, o->x, y, "") : LLVMBuildUDiv(e->at, o->x, y, "");
}

/* x/0 = 0, x%0 = x, min/-1 wraps: the divisor is replaced where the machine would trap. */
static LLVMValueRef int_div(const emitter *e, const both *o, const hn_kins *divisor, bool rem)
{
    const bool literal = divisor->op == HN_KOP_CONST;

    if (literal && divisor->imm != 0 && divisor->imm != -1) return plain_div(e, o, o->y, rem);
    LLVMValueRef zero = icmp(e, LLVMIntEQ, o->y, lit(e, o, 0)), bad = zero;
    LLVMValueRef minus = is_signed(o->dtype) ? icmp(e, LLVMIntEQ, o->y, lit(e, o, -1)) : NULL;
    if (minus) bad = LLVMBuildOr(e->at, zero, minus, "");
    LLVMValueRef q = plain_div(e, o, pick(e, bad, lit(e, o, 1), o->y), rem);
    if (minus) q = pick(e, minus, rem ? lit(e, o, 0) : LLVMBuildNeg(e->at, o->x, ""), q);
    return pick(e, zero, rem ? o->x : lit(e, o, 0), q);
}

static LLVMValueRef int_shift(const emitter *e, const both *o, const hn_kins *amount, int op)
{
    const int bits = hn_dtype_bits((hn_dtype)o->dtype);
    const bool arithmetic = op == HN_KOP_SHR && is_signed(o->dtype);
    const bool literal = amount->op == HN_KOP_CONST && (uint64_t)amount->imm < (uint64_t)bits;
    LLVMValueRef n = o->y;

    if (!literal) n = call2(e, "llvm.umin", n, lit(e, o, bits - 1));
    LLVMValueRef v = arithmetic         ? LLVMBuildAShr(e->at, o->x, n, "")
                     : op == HN_KOP_SHL ? LLVMBuildShl(e->at, o->x, n, "")
                                        : LLVMBuildLShr(e->at, o->x, n, "");
    if (literal || arithmetic) return v;
    return pick(e, icmp(e, LLVMIntULT, o->y, lit(e, o, bits)), v, lit(e, o, 0));
}

static LLVMValueRef int_mulhi(const emitter *e, const both *o)
{
    const unsigned bits = (unsigned)hn_dtype_bits((hn_dtype)o->dtype);
    LLVMTypeRef narrow = LLVMTypeOf(o->x), wide = LLVMIntTypeInContext(e->ctx, 2 * bits);
    LLVMValueRef shift = LLVMConstInt(wide, bits, 0), all[64];
    const bool s = is_signed(o->dtype);

    if (o->lanes > 1) {
        for (int i = 0; i < o->lanes; i++)
            all[i] = shift;
        shift = LLVMConstVector(all, (unsigned)o->lanes);
        wide = LLVMVectorType(wide, (unsigned)o->lanes);
    }
    LLVMValueRef x = s ? LLVMBuildSExt(e->at, o->x, wide, "") : LLVMBuildZExt(e->at, o->x, wide, "");
    LLVMValueRef y = s ? LLVMBuildSExt(e->at, o->y, wide, "") : LLVMBuildZExt(e->at, o->y, wide, "");
    return LLVMBuildTrunc(e->at, LLVMBuildLShr(e->at, LLVMBuildMul(e->at, x, y, ""), shift, ""), narrow, "");
}

static LLVMIntPredicate int_predicate(int op, bool s)
{
    switch (op) {
    case HN_KOP_EQ:
        return LLVMIntEQ;
    case HN_KOP_NE:
        return LLVMIntNE;
    case HN_KOP_LT:
        return s ? LLVMIntSLT : LLVMIntULT;
    case HN_KOP_LE:
        return s ? LLVMIntSLE : LLVMIntULE;
    case HN_KOP_GT:
        return s ? LLVMIntSGT : LLVMIntUGT;
    default:
        return s ? LLVMIntSGE : LLVMIntUGE;
    }
}

static LLVMValueRef int_bin(const emitter *e, int op, const both *o, const hn_kins *right)
{
    const bool s = is_signed(o->dtype);

    switch (op) {
    case HN_KOP_ADD:
        return LLVMBuildAdd(e->at, o->x, o->y, "");
    case HN_KOP_SUB:
        return LLVMBuildSub(e->at, o->x, o->y, "");
    case HN_KOP_MUL:
        return LLVMBuildMul(e->at, o->x, o->y, "");
    case HN_KOP_DIV:
        return int_div(e, o, right, false);
    case HN_KOP_REM:
        return int_div(e, o, right, true);
    case HN_KOP_MIN:
    case HN_KOP_MINR:
        return call2(e, s ? "llvm.smin" : "llvm.umin", o->x, o->y);
    case HN_KOP_MAX:
    case HN_KOP_MAXR:
        return call2(e, s ? "llvm.smax" : "llvm.umax", o->x, o->y);
    case HN_KOP_AND:
        return LLVMBuildAnd(e->at, o->x, o->y, "");
    case HN_KOP_OR:
        return LLVMBuildOr(e->at, o->x, o->y, "");
    case HN_KOP_XOR:
        return LLVMBuildXor(e->at, o->x, o->y, "");
    case HN_KOP_SHL:
    case HN_KOP_SHR:
        return int_shift(e, o, right, op);
    case HN_KOP_MULHI:
        return int_mulhi(e, o);
    default:
        return icmp(e, int_predicate(op, s), o->x, o->y);
    }
}

/* ---- floats ---- */
static LLVMRealPredicate real_predicate(int op)
{
    switch (op) {
    case HN_KOP_EQ:
        return LLVMRealOEQ;
    case HN_KOP_NE:
        return LLVMRealUNE;
    case HN_KOP_LT:
        return LLVMRealOLT;
    case HN_KOP_LE:
        return LLVMRealOLE;
    case HN_KOP_GT:
        return LLVMRealOGT;
    default:
        return LLVMRealOGE;
    }
}

static LLVMValueRef fcmp(const emitter *e, LLVMRealPredicate p, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildFCmp(e->at, p, x, y, "");
}

static LLVMValueRef float_bin(const emitter *e, int op, const both *o)
{
    switch (op) {
    case HN_KOP_ADD:
        return LLVMBuildFAdd(e->at, o->x, o->y, "");
    case HN_KOP_SUB:
        return LLVMBuildFSub(e->at, o->x, o->y, "");
    case HN_KOP_MUL:
        return LLVMBuildFMul(e->at, o->x, o->y, "");
    case HN_KOP_DIV:
        return LLVMBuildFDiv(e->at, o->x, o->y, "");
    case HN_KOP_MIN:
        return call2(e, "llvm.minimum", o->x, o->y);
    case HN_KOP_MAX:
        return call2(e, "llvm.maximum", o->x, o->y);
    case HN_KOP_MINR:
        return pick(e, fcmp(e, LLVMRealOLT, o->x, o->y), o->x, o->y);
    case HN_KOP_MAXR:
        return pick(e, fcmp(e, LLVMRealOGT, o->x, o->y), o->x, o->y);
    default:
        return fcmp(e, real_predicate(op), o->x, o->y);
    }
}

static LLVMValueRef float_un(const emitter *e, int op, LLVMValueRef x)
{
    switch (op) {
    case HN_KOP_NEG:
        return LLVMBuildFNeg(e->at, x, "");
    case HN_KOP_ABS:
        return call1(e, "llvm.fabs", x);
    case HN_KOP_SQRT:
        return call1(e, "llvm.sqrt", x);
    case HN_KOP_FLOOR:
        return call1(e, "llvm.floor", x);
    case HN_KOP_CEIL:
        return call1(e, "llvm.ceil", x);
    case HN_KOP_RINT:
        return call1(e, "llvm.roundeven", x);
    default:
        return call1(e, "llvm.trunc", x);
    }
}

static LLVMValueRef int_un(const emitter *e, int op, int dtype, LLVMValueRef x)
{
    LLVMTypeRef t = LLVMTypeOf(x);
    LLVMValueRef no = LLVMConstInt(LLVMInt1TypeInContext(e->ctx), 0, 0);

    switch (op) {
    case HN_KOP_NEG:
        return LLVMBuildNeg(e->at, x, "");
    case HN_KOP_ABS:
        return !is_signed(dtype) ? x : hn_ll_call(e, "llvm.abs", &t, 1, (LLVMValueRef[]){ x, no }, 2);
    case HN_KOP_NOT:
        return LLVMBuildNot(e->at, x, "");
    case HN_KOP_CLZ:
        return hn_ll_call(e, "llvm.ctlz", &t, 1, (LLVMValueRef[]){ x, no }, 2);
    case HN_KOP_POPCNT:
        return call1(e, "llvm.ctpop", x);
    default:
        return x;
    }
}

static LLVMValueRef fma_value(const emitter *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    LLVMTypeRef t = LLVMTypeOf(x);

    if (hn_ll_has(e->t, HN_FEAT_FMA)) return hn_ll_call(e, "llvm.fma", &t, 1, (LLVMValueRef[]){ x, y, z }, 3);
    return LLVMBuildFAdd(e->at, LLVMBuildFMul(e->at, x, y, ""), z, "");
}

/* ---- conversions ---- */
static LLVMValueRef float_to_int(const emitter *e, LLVMValueRef x, int to, LLVMTypeRef t, bool in_range)
{
    if (in_range) return is_signed(to) ? LLVMBuildFPToSI(e->at, x, t, "") : LLVMBuildFPToUI(e->at, x, t, "");
    return hn_ll_call(e, is_signed(to) ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                      (LLVMTypeRef[]){ t, LLVMTypeOf(x) }, 2, &x, 1);
}

static LLVMValueRef cast(const emitter *e, LLVMValueRef x, int from, const hn_kins *i)
{
    const int to = i->dtype;
    LLVMTypeRef t = hn_ll_type(e, to, i->lanes);

    if (from == to) return x;
    if (to == HN_BOOL)
        return is_float(from) ? fcmp(e, LLVMRealUNE, x, LLVMConstNull(LLVMTypeOf(x)))
                              : icmp(e, LLVMIntNE, x, LLVMConstNull(LLVMTypeOf(x)));
    if (is_float(from) && is_float(to))
        return to == HN_F64 ? LLVMBuildFPExt(e->at, x, t, "") : LLVMBuildFPTrunc(e->at, x, t, "");
    if (is_float(from)) return float_to_int(e, x, to, t, i->flags & 1);
    if (is_float(to))
        return is_signed(from) ? LLVMBuildSIToFP(e->at, x, t, "") : LLVMBuildUIToFP(e->at, x, t, "");
    return LLVMBuildIntCast2(e->at, x, t, is_signed(from), "");
}

/* ---- lanes ---- */
static LLVMValueRef ramp(const emitter *e, LLVMValueRef base, const hn_kins *x)
{
    LLVMTypeRef t = hn_ll_elem(e, x->dtype);
    LLVMValueRef step[64];

    for (int i = 0; i < x->lanes; i++)
        step[i] = LLVMConstInt(t, (uint64_t)x->imm * (uint64_t)i, 0);
    if (x->lanes == 1) return base;
    return LLVMBuildAdd(e->at, hn_ll_splat(e, base, x->lanes), LLVMConstVector(step, x->lanes), "");
}

static LLVMValueRef shuffle(const emitter *e, LLVMValueRef a, LLVMValueRef b, const hn_kins *x)
{
    const int32_t *lane = e->f->pool + x->imm;

    if (e->f->ins[x->a[0]].lanes == 1) {
        a = as_vector(e, a);
        b = as_vector(e, b);
    }
    LLVMValueRef v = hn_ll_shuffle(e, a, b, lane, x->lanes);
    return x->lanes == 1 ? LLVMBuildExtractElement(e->at, v, lane_no(e, 0), "") : v;
}

static LLVMValueRef any_or_all(const emitter *e, LLVMValueRef v, int lanes, bool all)
{
    LLVMTypeRef t = LLVMIntTypeInContext(e->ctx, (unsigned)lanes);
    LLVMValueRef bits = LLVMBuildBitCast(e->at, v, t, "");

    return all ? icmp(e, LLVMIntEQ, bits, LLVMConstAllOnes(t)) : icmp(e, LLVMIntNE, bits, LLVMConstNull(t));
}

/* Fold the upper half onto the lower until one lane is left, so that the order of float sums is the
 * interpreter's. */
static LLVMValueRef reduce(const emitter *e, LLVMValueRef v, const hn_kins *x)
{
    static const int as[] = { HN_KOP_ADD, HN_KOP_MIN, HN_KOP_MAX };
    const int lanes = e->f->ins[x->a[0]].lanes;

    if (lanes == 1) return v;
    if (x->op == HN_KOP_RAND || x->op == HN_KOP_ROR) return any_or_all(e, v, lanes, x->op == HN_KOP_RAND);
    for (int half = lanes / 2; half >= 1; half /= 2) {
        int lo[64], hi[64];
        for (int i = 0; i < half; i++) {
            lo[i] = i;
            hi[i] = half + i;
        }
        const both o = { hn_ll_shuffle(e, v, v, lo, half), hn_ll_shuffle(e, v, v, hi, half), x->dtype, half };
        v = is_float(x->dtype) ? float_bin(e, as[x->op - HN_KOP_RADD], &o)
                               : int_bin(e, as[x->op - HN_KOP_RADD], &o, x);
    }
    return LLVMBuildExtractElement(e->at, v, lane_no(e, 0), "");
}

static LLVMValueRef lanes_value(const emitter *e, const hn_kins *x, LLVMValueRef a, LLVMValueRef b)
{
    switch (x->op) {
    case HN_KOP_SPLAT:
        return hn_ll_splat(e, a, x->lanes);
    case HN_KOP_RAMP:
        return ramp(e, a, x);
    case HN_KOP_EXTRACT:
        return e->f->ins[x->a[0]].lanes == 1 ? a : LLVMBuildExtractElement(e->at, a, lane_no(e, x->imm), "");
    case HN_KOP_INSERT:
        return x->lanes == 1 ? b : LLVMBuildInsertElement(e->at, a, b, lane_no(e, x->imm), "");
    case HN_KOP_SHUFFLE:
        return shuffle(e, a, b, x);
    default:
        return reduce(e, a, x);
    }
}

LLVMValueRef hn_ll_value(const emitter *e, const hn_kins *x)
{
    LLVMValueRef o[3] = { NULL, NULL, NULL };
    const hn_kins *left = x->a[0] >= 0 ? &e->f->ins[x->a[0]] : NULL,
                  *right = x->a[1] >= 0 ? &e->f->ins[x->a[1]] : NULL;

    for (int i = 0; i < 3; i++)
        if (x->a[i] >= 0) o[i] = e->val[x->a[i]];
    switch (x->op) {
    case HN_KOP_CONST:
        return hn_ll_const(e, x->dtype, x->lanes, (uint64_t)x->imm);
    case HN_KOP_FMA:
        return fma_value(e, o[0], o[1], o[2]);
    case HN_KOP_SELECT:
        return pick(e, o[0], o[1], o[2]);
    case HN_KOP_CAST:
        return cast(e, o[0], left->dtype, x);
    case HN_KOP_BITCAST:
        return LLVMBuildBitCast(e->at, o[0], hn_ll_type(e, x->dtype, x->lanes), "");
    case HN_KOP_UNHALF:
        return hn_ll_unhalf(e, o[0], x->flags, x->lanes);
    case HN_KOP_HALF:
        return hn_ll_half(e, o[0], x->flags, x->lanes);
    case HN_KOP_DOT4:
    case HN_KOP_DOT2:
    case HN_KOP_MADDUBS:
    case HN_KOP_DOT2BF:
        return hn_ll_dot(e, x);
    default:
        break;
    }
    if (x->op >= HN_KOP_SPLAT) return lanes_value(e, x, o[0], o[1]);
    if (!right) return is_float(left->dtype) ? float_un(e, x->op, o[0]) : int_un(e, x->op, left->dtype, o[0]);
    const both two = { o[0], o[1], left->dtype, left->lanes };
    return is_float(left->dtype) ? float_bin(e, x->op, &two) : int_bin(e, x->op, &two, right);
}
