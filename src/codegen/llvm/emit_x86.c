/* What x86 has instructions for and LLVM IR has no words for: byte and word dot products, half conversions by
 * integer steps where F16C is missing, and the names of features. */
#include "codegen/llvm/llvm_int.h"

#include <string.h>

/* ---- features ---- */
static const struct {
    uint64_t feat;
    const char *llvm;
} feature[] = {
    { HN_FEAT_SSE42, "+sse4.2,+popcnt,+cx16,+sahf" },
    { HN_FEAT_AVX, "+avx" },
    { HN_FEAT_AVX2, "+avx2" },
    { HN_FEAT_FMA, "+fma" },
    { HN_FEAT_F16C, "+f16c" },
    { HN_FEAT_BMI2, "+bmi,+bmi2,+lzcnt,+movbe" },
    { HN_FEAT_AVX512, "+avx512f,+avx512bw,+avx512dq,+avx512vl,+avx512cd" },
    { HN_FEAT_AVX512_VNNI, "+avx512vnni" },
    { HN_FEAT_AVX512_BF16, "+avx512bf16" },
    { HN_FEAT_AVX512_FP16, "+avx512fp16" },
    { HN_FEAT_AVX_VNNI, "+avxvnni" },
};

const char *hn_ll_features(const hn_target *t, hn_arena *a)
{
    const char *s = "";

    for (int i = 0; i < HN_COUNT(feature); i++)
        if (hn_ll_has(t, feature[i].feat))
            s = hn_arena_printf(a, "%s%s%s", s ? s : "", s && *s ? "," : "", feature[i].llvm);
    return s ? s : "";
}

/* Scheduling and idiom choice only; never what may be executed. */
const char *hn_ll_tune(const hn_target *t)
{
    static const char *const known[] = { "znver3", "znver4", "skylake-avx512", "sapphirerapids",
                                         "x86-64-v2" };

    for (int i = 0; i < HN_COUNT(known); i++)
        if (!strcmp(t->name, known[i])) return known[i];
    if (hn_ll_has(t, HN_FEAT_AMX_TILE)) return "sapphirerapids";
    if (strstr(t->cpu_name, "AMD")) return hn_ll_has(t, HN_FEAT_AVX512) ? "znver4" : "znver3";
    if (hn_ll_has(t, HN_FEAT_AVX512)) return "skylake-avx512";
    return hn_ll_has(t, HN_FEAT_AVX2) ? "haswell" : "x86-64";
}

/* ---- instructions that exist at 128, 256 and 512 bits ---- */
typedef struct sized {
    const char *name[3]; /* NULL: not on this target */
} sized;

/* Cut lanes [first, first+n) of v, padding with its last lane when v ends earlier. */
static LLVMValueRef cut(const emitter *e, LLVMValueRef v, int have, int first, int n)
{
    int lane[64];

    if (have == n && first == 0) return v;
    for (int i = 0; i < n; i++)
        lane[i] = first + i < have ? first + i : have - 1;
    if (have == 1) {
        LLVMTypeRef t = LLVMVectorType(LLVMTypeOf(v), 1);
        v = LLVMBuildInsertElement(e->at, LLVMGetPoison(t), v,
                                   LLVMConstInt(LLVMInt32TypeInContext(e->ctx), 0, 0), "");
    }
    return hn_ll_shuffle(e, v, v, lane, n);
}

static LLVMValueRef join(const emitter *e, LLVMValueRef *piece, int n_piece, int each, int lanes)
{
    int lane[64];
    LLVMValueRef v = piece[0];

    for (int i = 1; i < n_piece; i++) { /* grow by one piece at a time; LLVM folds the chain */
        for (int k = 0; k < (i + 1) * each; k++)
            lane[k] = k;
        int widen[64];
        for (int k = 0; k < i * each; k++)
            widen[k] = k < each ? k : 0;
        v = hn_ll_shuffle(e, v, hn_ll_shuffle(e, piece[i], piece[i], widen, i * each), lane, (i + 1) * each);
    }
    if (lanes == 1)
        return LLVMBuildExtractElement(e->at, v, LLVMConstInt(LLVMInt32TypeInContext(e->ctx), 0, 0), "");
    if (n_piece * each == lanes) return v;
    for (int k = 0; k < lanes; k++)
        lane[k] = k;
    return hn_ll_shuffle(e, v, v, lane, lanes);
}

static int pick_size(const sized *s, int result_bits)
{
    int best = -1;

    for (int i = 0; i < 3; i++)
        if (s->name[i] && (best < 0 || result_bits >= 128 << i)) best = i;
    return best;
}

/* Call an instruction on operands of any lane count: each operand has arg_lanes[i] lanes for one result lane
 * of `bits`. */
static LLVMValueRef call_sized(const emitter *e, const sized *s, int bits, int lanes, LLVMValueRef *arg,
                               const int *per, int n_arg)
{
    const int size = pick_size(s, bits * lanes), each = (128 << size) / bits,
              n_piece = (lanes + each - 1) / each;
    LLVMValueRef piece[16] = { NULL }, part[3];

    for (int p = 0; p < n_piece; p++) {
        for (int i = 0; i < n_arg; i++)
            part[i] = cut(e, arg[i], lanes * per[i], p * each * per[i], each * per[i]);
        piece[p] = hn_ll_call(e, s->name[size], NULL, 0, part, n_arg);
    }
    return join(e, piece, n_piece, each, lanes);
}

static sized by_features(const emitter *e, const char *sse, const char *avx2, const char *avx512)
{
    return (sized){ { sse, hn_ll_has(e->t, HN_FEAT_AVX2) ? avx2 : NULL,
                      hn_ll_has(e->t, HN_FEAT_AVX512) && e->t->vec_bytes >= 64 ? avx512 : NULL } };
}

static LLVMValueRef pmaddwd(const emitter *e, LLVMValueRef x, LLVMValueRef y, int lanes)
{
    const sized s =
        by_features(e, "llvm.x86.sse2.pmadd.wd", "llvm.x86.avx2.pmadd.wd", "llvm.x86.avx512.pmaddw.d.512");
    return call_sized(e, &s, 32, lanes, (LLVMValueRef[]){ x, y }, (int[]){ 2, 2 }, 2);
}

static LLVMValueRef recast(const emitter *e, LLVMValueRef v, int dtype, int lanes)
{
    return LLVMBuildBitCast(e->at, v, hn_ll_type(e, dtype, lanes), "");
}

/* Even and odd bytes as words: exact, where vpmaddubsw would saturate. */
static LLVMValueRef dot4_by_words(const emitter *e, LLVMValueRef acc, LLVMValueRef u8, LLVMValueRef i8, int n)
{
    LLVMValueRef u = recast(e, u8, HN_I16, 2 * n), s = recast(e, i8, HN_I16, 2 * n);
    LLVMValueRef eight = hn_ll_const(e, HN_I16, 2 * n, 8);
    LLVMValueRef u_even = LLVMBuildAnd(e->at, u, hn_ll_const(e, HN_I16, 2 * n, 255), "");
    LLVMValueRef u_odd = LLVMBuildLShr(e->at, u, eight, "");
    LLVMValueRef s_even = LLVMBuildAShr(e->at, LLVMBuildShl(e->at, s, eight, ""), eight, "");
    LLVMValueRef s_odd = LLVMBuildAShr(e->at, s, eight, "");
    LLVMValueRef sum = LLVMBuildAdd(e->at, pmaddwd(e, u_even, s_even, n), pmaddwd(e, u_odd, s_odd, n), "");

    return LLVMBuildAdd(e->at, acc, sum, "");
}

static LLVMValueRef dot4(const emitter *e, LLVMValueRef acc, LLVMValueRef u8, LLVMValueRef i8, int n)
{
    const bool evex = hn_ll_has(e->t, HN_FEAT_AVX512 | HN_FEAT_AVX512_VNNI);
    const bool wide = evex && e->t->vec_bytes >= 64;
    const sized s = { { "llvm.x86.avx512.vpdpbusd.128", "llvm.x86.avx512.vpdpbusd.256",
                        wide ? "llvm.x86.avx512.vpdpbusd.512" : NULL } };

    if (!evex && !hn_ll_has(e->t, HN_FEAT_AVX_VNNI)) return dot4_by_words(e, acc, u8, i8, n);
    LLVMValueRef arg[] = { acc, recast(e, u8, HN_I32, n), recast(e, i8, HN_I32, n) };
    return call_sized(e, &s, 32, n, arg, (int[]){ 1, 1, 1 }, 3);
}

static LLVMValueRef maddubs(const emitter *e, LLVMValueRef u8, LLVMValueRef i8, int n)
{
    const sized s = by_features(e, "llvm.x86.ssse3.pmadd.ub.sw.128", "llvm.x86.avx2.pmadd.ub.sw",
                                "llvm.x86.avx512.pmaddubs.w.512");
    return call_sized(e, &s, 16, n, (LLVMValueRef[]){ u8, i8 }, (int[]){ 2, 2 }, 2);
}

static LLVMValueRef fused(const emitter *e, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    LLVMTypeRef t = LLVMTypeOf(x);

    if (!hn_ll_has(e->t, HN_FEAT_FMA)) return LLVMBuildFAdd(e->at, LLVMBuildFMul(e->at, x, y, ""), z, "");
    return hn_ll_call(e, "llvm.fma", &t, 1, (LLVMValueRef[]){ x, y, z }, 3);
}

static LLVMTypeRef bf_vector(const emitter *e, int lanes)
{
    return LLVMVectorType(LLVMBFloatTypeInContext(e->ctx), (unsigned)lanes);
}

static LLVMValueRef dot2bf(const emitter *e, LLVMValueRef acc, LLVMValueRef x, LLVMValueRef y, int n)
{
    const sized s = { { "llvm.x86.avx512bf16.dpbf16ps.128", "llvm.x86.avx512bf16.dpbf16ps.256",
                        e->t->vec_bytes >= 64 ? "llvm.x86.avx512bf16.dpbf16ps.512" : NULL } };
    LLVMValueRef half[2][2];

    if (hn_ll_has(e->t, HN_FEAT_AVX512 | HN_FEAT_AVX512_BF16)) {
        LLVMTypeRef t = bf_vector(e, 2 * n);
        LLVMValueRef arg[] = { acc, LLVMBuildBitCast(e->at, x, t, ""), LLVMBuildBitCast(e->at, y, t, "") };
        return call_sized(e, &s, 32, n, arg, (int[]){ 1, 2, 2 }, 3);
    }
    for (int i = 0; i < 2; i++) {
        LLVMValueRef v = recast(e, i ? y : x, HN_I32, n);
        half[i][0] = LLVMBuildShl(e->at, v, hn_ll_const(e, HN_I32, n, 16), "");
        half[i][1] = LLVMBuildAnd(e->at, v, hn_ll_const(e, HN_I32, n, 0xffff0000), "");
    }
    for (int k = 1; k >= 0; k--)
        acc = fused(e, recast(e, half[0][k], HN_F32, n), recast(e, half[1][k], HN_F32, n), acc);
    return acc;
}

LLVMValueRef hn_ll_dot(const emitter *e, const hn_kins *x)
{
    LLVMValueRef a = e->val[x->a[0]], p = e->val[x->a[1]], q = x->a[2] >= 0 ? e->val[x->a[2]] : NULL;

    switch (x->op) {
    case HN_KOP_DOT4:
        return dot4(e, a, p, q, x->lanes);
    case HN_KOP_DOT2:
        return LLVMBuildAdd(e->at, a, pmaddwd(e, p, q, x->lanes), "");
    case HN_KOP_MADDUBS:
        return maddubs(e, a, p, x->lanes);
    default:
        return dot2bf(e, a, p, q, x->lanes);
    }
}

/* ---- halves ---- */
typedef struct words { /* 32-bit integer arithmetic on `lanes` */
    const emitter *e;
    int lanes;
} words;

static LLVMValueRef w_const(words w, uint32_t v)
{
    return hn_ll_const(w.e, HN_U32, w.lanes, v);
}

static LLVMValueRef w_and(words w, LLVMValueRef x, uint32_t v)
{
    return LLVMBuildAnd(w.e->at, x, w_const(w, v), "");
}

static LLVMValueRef w_or(words w, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildOr(w.e->at, x, y, "");
}

static LLVMValueRef w_shl(words w, LLVMValueRef x, uint32_t n)
{
    return LLVMBuildShl(w.e->at, x, w_const(w, n), "");
}

static LLVMValueRef w_shr(words w, LLVMValueRef x, uint32_t n)
{
    return LLVMBuildLShr(w.e->at, x, w_const(w, n), "");
}

static LLVMValueRef w_add(words w, LLVMValueRef x, uint32_t v)
{
    return LLVMBuildAdd(w.e->at, x, w_const(w, v), "");
}

static LLVMValueRef w_above(words w, LLVMValueRef x, uint32_t v)
{
    return LLVMBuildICmp(w.e->at, LLVMIntUGT, x, w_const(w, v), "");
}

static LLVMValueRef w_pick(words w, LLVMValueRef c, LLVMValueRef x, LLVMValueRef y)
{
    return LLVMBuildSelect(w.e->at, c, x, y, "");
}

/* Multiplying by 2^112 rebiases normal numbers and normalises subnormal ones in one step. */
static LLVMValueRef unhalf_by_words(words w, LLVMValueRef h)
{
    const emitter *e = w.e;
    LLVMValueRef mag = w_and(w, h, 0x7fff), sign = w_shl(w, w_and(w, h, 0x8000), 16);
    LLVMValueRef scaled = LLVMBuildFMul(e->at, recast(e, w_shl(w, mag, 13), HN_F32, w.lanes),
                                        hn_ll_const(e, HN_F32, w.lanes, 0x77800000), "");
    LLVMValueRef special = w_or(w, w_shl(w, mag, 13), w_const(w, 0x7f800000));
    special = w_pick(w, w_above(w, mag, 0x7c00), w_or(w, special, w_const(w, 0x400000)), special);
    LLVMValueRef r = w_pick(w, w_above(w, mag, 0x7bff), special, recast(e, scaled, HN_U32, w.lanes));
    return recast(e, w_or(w, r, sign), HN_F32, w.lanes);
}

LLVMValueRef hn_ll_unhalf(const emitter *e, LLVMValueRef bits, int half, int lanes)
{
    const words w = { e, lanes };

    if (half == HN_F16 && hn_ll_has(e->t, HN_FEAT_F16C)) {
        LLVMTypeRef h = LLVMHalfTypeInContext(e->ctx);
        if (lanes > 1) h = LLVMVectorType(h, (unsigned)lanes);
        LLVMTypeRef f = hn_ll_type(e, HN_F32, lanes);
        LLVMValueRef v = LLVMBuildFPExt(e->at, LLVMBuildBitCast(e->at, bits, h, ""), f, "");
        /* LLVM would compute in halves what is made of halves, an element at a time, and loses a NaN that meets +0 in
         * min and max. */
        return hn_ll_call(e, "llvm.arithmetic.fence", &f, 1, &v, 1);
    }
    LLVMValueRef wide = LLVMBuildZExt(e->at, bits, hn_ll_type(e, HN_U32, lanes), "");
    if (half == HN_BF16) return recast(e, w_shl(w, wide, 16), HN_F32, lanes);
    return unhalf_by_words(w, wide);
}

static LLVMValueRef half_by_words(words w, LLVMValueRef u)
{
    const emitter *e = w.e;
    LLVMValueRef mag = w_and(w, u, 0x7fffffff), sign = w_and(w, w_shr(w, u, 16), 0x8000);
    LLVMValueRef odd = w_and(w, w_shr(w, mag, 13), 1);
    LLVMValueRef normal =
        w_shr(w, w_add(w, LLVMBuildAdd(e->at, w_add(w, mag, 0u - 0x38000000u), odd, ""), 0xfff), 13);
    LLVMValueRef sum = LLVMBuildFAdd(e->at, recast(e, mag, HN_F32, w.lanes),
                                     hn_ll_const(e, HN_F32, w.lanes, 0x3f000000), "");
    LLVMValueRef small = w_add(w, recast(e, sum, HN_U32, w.lanes), 0u - 0x3f000000u);
    LLVMValueRef nan = w_or(w, w_and(w, w_shr(w, mag, 13), 0x3ff), w_const(w, 0x7e00));
    LLVMValueRef r = w_pick(w, w_above(w, mag, 0x387fffff), normal, small);

    r = w_pick(w, w_above(w, mag, 0x477fefff), w_const(w, 0x7c00), r);
    r = w_pick(w, w_above(w, mag, 0x7f800000), nan, r);
    return w_or(w, r, sign);
}

static LLVMValueRef bf_by_words(words w, LLVMValueRef u)
{
    LLVMValueRef odd = w_and(w, w_shr(w, u, 16), 1), mag = w_and(w, u, 0x7fffffff);
    LLVMValueRef r = w_shr(w, w_add(w, LLVMBuildAdd(w.e->at, u, odd, ""), 0x7fff), 16);

    return w_pick(w, w_above(w, mag, 0x7f800000), w_or(w, w_shr(w, u, 16), w_const(w, 0x40)), r);
}

LLVMValueRef hn_ll_half(const emitter *e, LLVMValueRef v, int half, int lanes)
{
    const words w = { e, lanes };
    LLVMTypeRef narrow = hn_ll_type(e, HN_U16, lanes);

    if (half == HN_F16 && hn_ll_has(e->t, HN_FEAT_F16C)) {
        LLVMTypeRef h = LLVMHalfTypeInContext(e->ctx);
        if (lanes > 1) h = LLVMVectorType(h, (unsigned)lanes);
        return LLVMBuildBitCast(e->at, LLVMBuildFPTrunc(e->at, v, h, ""), narrow, "");
    }
    LLVMValueRef u = recast(e, v, HN_U32, lanes);
    return LLVMBuildTrunc(e->at, half == HN_BF16 ? bf_by_words(w, u) : half_by_words(w, u), narrow, "");
}
