/* Kernel IR to LLVM IR: the function's frame and its control flow. Instructions are walked in order; an
 * unrolled loop's body is walked once an iteration, which its values survive because nothing outside the body
 * may use them. */
#include "codegen/llvm/llvm_int.h"

#include <string.h>

LLVMTypeRef hn_ll_elem(const emitter *e, int dtype)
{
    switch (dtype) {
    case HN_BOOL:
        return LLVMInt1TypeInContext(e->ctx);
    case HN_F32:
        return LLVMFloatTypeInContext(e->ctx);
    case HN_F64:
        return LLVMDoubleTypeInContext(e->ctx);
    default:
        return LLVMIntTypeInContext(e->ctx, (unsigned)hn_dtype_bits((hn_dtype)dtype));
    }
}

LLVMTypeRef hn_ll_type(const emitter *e, int dtype, int lanes)
{
    LLVMTypeRef t = hn_ll_elem(e, dtype);
    return lanes > 1 ? LLVMVectorType(t, (unsigned)lanes) : t;
}

static LLVMBasicBlockRef block(const emitter *e, const char *name)
{
    return LLVMAppendBasicBlockInContext(e->ctx, e->fn, name);
}

static LLVMValueRef operand(const emitter *e, const hn_kins *x, int i)
{
    return e->val[x->a[i]];
}

static void emit_range(emitter *e, int from, int to);

/* ---- loops ---- */
static void emit_unrolled(emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const int64_t lo = e->f->ins[x->a[0]].imm, hi = e->f->ins[x->a[1]].imm, step = e->f->ins[x->a[2]].imm;
    LLVMBasicBlockRef out = block(e, "out");

    e->leave[at] = out;
    for (int64_t i = lo; i < hi; i += step) {
        e->val[at] = hn_ll_const(e, HN_I64, 1, (uint64_t)i);
        emit_range(e, at + 1, (int)x->imm);
    }
    LLVMBuildBr(e->at, out);
    LLVMPositionBuilderAtEnd(e->at, out);
}

/* if (lo < hi) { i = lo; do { body } while ((i += step) < hi); } */
static void emit_for(emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];
    const bool parallel = x->flags == HN_KFOR_PARALLEL;
    LLVMValueRef lo = parallel ? LLVMGetParam(e->fn, 2) : operand(e, x, 0);
    LLVMValueRef hi = parallel ? LLVMGetParam(e->fn, 3) : operand(e, x, 1);
    LLVMBasicBlockRef body = block(e, "body"), out = block(e, "out"), before = LLVMGetInsertBlock(e->at);

    e->leave[at] = out;
    LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSLT, lo, hi, ""), body, out);
    LLVMPositionBuilderAtEnd(e->at, body);
    LLVMValueRef i = LLVMBuildPhi(e->at, hn_ll_elem(e, HN_I64), "i");
    e->val[at] = i;
    emit_range(e, at + 1, (int)x->imm);
    LLVMValueRef next = LLVMBuildNSWAdd(e->at, i, operand(e, x, 2), "");
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->at);
    LLVMBuildCondBr(e->at, LLVMBuildICmp(e->at, LLVMIntSLT, next, hi, ""), body, out);
    LLVMAddIncoming(i, (LLVMValueRef[]){ lo, next }, (LLVMBasicBlockRef[]){ before, latch }, 2);
    LLVMPositionBuilderAtEnd(e->at, out);
}

static void emit_loop(emitter *e, int at)
{
    LLVMBasicBlockRef body = block(e, "loop"), out = block(e, "out");

    e->leave[at] = out;
    LLVMBuildBr(e->at, body);
    LLVMPositionBuilderAtEnd(e->at, body);
    emit_range(e, at + 1, (int)e->f->ins[at].imm);
    LLVMBuildBr(e->at, body);
    LLVMPositionBuilderAtEnd(e->at, out);
}

static void emit_break(emitter *e, int at)
{
    LLVMBasicBlockRef on = block(e, "on");

    LLVMBuildCondBr(e->at, operand(e, &e->f->ins[at], 0), e->leave[e->loop_of[at]], on);
    LLVMPositionBuilderAtEnd(e->at, on);
}

/* Yields the END's place. */
static int emit_if(emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at], *other = &e->f->ins[x->imm];
    const bool has_else = other->op == HN_KOP_ELSE;
    LLVMBasicBlockRef yes = block(e, "then"), no = has_else ? block(e, "else") : NULL, out = block(e, "out");

    LLVMBuildCondBr(e->at, operand(e, x, 0), yes, has_else ? no : out);
    LLVMPositionBuilderAtEnd(e->at, yes);
    emit_range(e, at + 1, (int)x->imm);
    LLVMBuildBr(e->at, out);
    if (has_else) {
        LLVMPositionBuilderAtEnd(e->at, no);
        emit_range(e, (int)x->imm + 1, (int)other->imm);
        LLVMBuildBr(e->at, out);
    }
    LLVMPositionBuilderAtEnd(e->at, out);
    return (int)(has_else ? other->imm : x->imm);
}

/* Allocas stand in the entry block, where LLVM turns them into registers. */
static LLVMValueRef variable(emitter *e, LLVMValueRef init)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(e->ctx);

    LLVMPositionBuilderBefore(b, LLVMGetFirstInstruction(e->entry));
    LLVMValueRef v = LLVMBuildAlloca(b, LLVMTypeOf(init), "var");
    LLVMDisposeBuilder(b);
    LLVMBuildStore(e->at, init, v);
    return v;
}

/* Emit one instruction and, for a block, all of it; yields the next place. */
static int emit_at(emitter *e, int at)
{
    const hn_kins *x = &e->f->ins[at];

    switch (x->op) {
    case HN_KOP_FOR:
        if (x->flags == HN_KFOR_UNROLL)
            emit_unrolled(e, at);
        else
            emit_for(e, at);
        return (int)x->imm + 1;
    case HN_KOP_LOOP:
        emit_loop(e, at);
        return (int)x->imm + 1;
    case HN_KOP_IF:
        return emit_if(e, at) + 1;
    case HN_KOP_BREAK_IF:
        emit_break(e, at);
        break;
    case HN_KOP_VAR:
        e->val[at] = variable(e, operand(e, x, 0));
        break;
    case HN_KOP_SET:
        LLVMBuildStore(e->at, operand(e, x, 1), operand(e, x, 0));
        break;
    case HN_KOP_GET:
        e->val[at] = LLVMBuildLoad2(e->at, hn_ll_type(e, x->dtype, x->lanes), operand(e, x, 0), "");
        break;
    case HN_KOP_STORE:
    case HN_KOP_SCATTER:
        hn_ll_store(e, x);
        break;
    case HN_KOP_PREFETCH:
        hn_ll_prefetch(e, x);
        break;
    case HN_KOP_LOAD:
    case HN_KOP_GATHER:
        e->val[at] = hn_ll_load(e, x);
        break;
    case HN_KOP_ARG:
        break; /* loaded on entry */
    default:
        e->val[at] = hn_ll_value(e, x);
        break;
    }
    return at + 1;
}

static void emit_range(emitter *e, int from, int to)
{
    for (int at = from; at < to;)
        at = emit_at(e, at);
}

/* ---- the frame ---- */
static void find_loops(emitter *e)
{
    int32_t open[64];
    int depth = 0;

    for (int i = 0; i < e->f->n_ins; i++) {
        const int op = e->f->ins[i].op;
        if (op == HN_KOP_END || op == HN_KOP_ELSE) depth--;
        if (op == HN_KOP_FOR || op == HN_KOP_LOOP || op == HN_KOP_IF || op == HN_KOP_ELSE) open[depth++] = i;
        for (int d = depth - 1; op == HN_KOP_BREAK_IF && d >= 0; d--) {
            if (e->f->ins[open[d]].op != HN_KOP_FOR && e->f->ins[open[d]].op != HN_KOP_LOOP) continue;
            e->loop_of[i] = open[d];
            break;
        }
    }
}

/* What is known of an argument: its range as metadata, its divisibility as an assumption. */
static void state_facts(emitter *e, const hn_karg *a, LLVMValueRef v)
{
    LLVMTypeRef i64 = hn_ll_elem(e, HN_I64);

    if (a->hi < INT64_MAX) {
        LLVMValueRef lohi[2] = { LLVMConstInt(i64, (uint64_t)a->lo, 1),
                                 LLVMConstInt(i64, (uint64_t)a->hi + 1, 1) };
        LLVMMetadataRef md[2] = { LLVMValueAsMetadata(lohi[0]), LLVMValueAsMetadata(lohi[1]) };
        LLVMSetMetadata(v, e->md_range, LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, md, 2)));
    }
    if (a->div <= 1 || (a->div & (a->div - 1))) return;
    LLVMValueRef low = LLVMBuildAnd(e->at, v, LLVMConstInt(i64, (uint64_t)a->div - 1, 0), "");
    LLVMValueRef is = LLVMBuildICmp(e->at, LLVMIntEQ, low, LLVMConstInt(i64, 0, 0), "");
    hn_ll_call(e, "llvm.assume", NULL, 0, &is, 1);
}

static void load_args(emitter *e)
{
    LLVMTypeRef i64 = hn_ll_elem(e, HN_I64);
    LLVMValueRef *arg = HN_NEW_N(e->arena, LLVMValueRef, e->f->n_arg + 1);
    LLVMValueRef empty = LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, NULL, 0));

    if (!arg) return;
    for (int i = 0; i < e->f->n_arg; i++) {
        LLVMValueRef at = LLVMConstInt(i64, (uint64_t)i, 0);
        arg[i] =
            LLVMBuildLoad2(e->at, i64, LLVMBuildGEP2(e->at, i64, LLVMGetParam(e->fn, 1), &at, 1, ""), "");
        LLVMSetMetadata(arg[i], e->md_invariant, empty);
        state_facts(e, &e->f->arg[i], arg[i]);
    }
    for (int i = 0; i < e->f->n_ins; i++)
        if (e->f->ins[i].op == HN_KOP_ARG) e->val[i] = arg[e->f->ins[i].imm];
}

static void add_attr(const emitter *e, const char *name, const char *value)
{
    LLVMAttributeRef a =
        LLVMCreateStringAttribute(e->ctx, name, (unsigned)strlen(name), value, (unsigned)strlen(value));
    LLVMAddAttributeAtIndex(e->fn, LLVMAttributeFunctionIndex, a);
}

static void add_flag(const emitter *e, const char *name, unsigned index)
{
    const unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(e->fn, index, LLVMCreateEnumAttribute(e->ctx, kind, 0));
}

static void declare(emitter *e)
{
    LLVMTypeRef ptr = LLVMPointerTypeInContext(e->ctx, 0), i64 = hn_ll_elem(e, HN_I64);
    LLVMTypeRef params[] = { ptr, ptr, i64, i64, ptr };
    const char *bits = e->t->vec_bytes >= 64 ? "512" : e->t->vec_bytes >= 32 ? "256" : "128";

    e->fn = LLVMAddFunction(e->mod, HN_LLVM_KERNEL_NAME,
                            LLVMFunctionType(LLVMVoidTypeInContext(e->ctx), params, 5, 0));
    add_flag(e, "nounwind", LLVMAttributeFunctionIndex);
    add_flag(e, "noalias", 5);
    for (unsigned i = 1; i <= 2; i++) {
        add_flag(e, "noalias", i);
        add_flag(e, "readonly", i);
    }
    /* Both, or the legaliser splits zmm into ymm. */
    add_attr(e, "prefer-vector-width", bits);
    add_attr(e, "min-legal-vector-width", bits);
    add_attr(e, "frame-pointer", "none");
    add_attr(e, "no-builtins", "");
    add_attr(e, "target-features", hn_ll_features(e->t, e->arena));
    add_attr(e, "tune-cpu", hn_ll_tune(e->t));
}

bool hn_ll_emit(emitter *e)
{
    const int n = e->f->n_ins + 1;

    e->val = HN_NEW_N(e->arena, LLVMValueRef, n);
    e->leave = HN_NEW_N(e->arena, LLVMBasicBlockRef, n);
    e->loop_of = HN_NEW_N(e->arena, int32_t, n);
    if (!e->val || !e->leave || !e->loop_of) return false;
    e->md_scope = LLVMGetMDKindIDInContext(e->ctx, "alias.scope", 11);
    e->md_noalias = LLVMGetMDKindIDInContext(e->ctx, "noalias", 7);
    e->md_nontemporal = LLVMGetMDKindIDInContext(e->ctx, "nontemporal", 11);
    e->md_range = LLVMGetMDKindIDInContext(e->ctx, "range", 5);
    e->md_invariant = LLVMGetMDKindIDInContext(e->ctx, "invariant.load", 14);
    find_loops(e);
    declare(e);
    e->entry = block(e, "entry");
    LLVMPositionBuilderAtEnd(e->at, e->entry);
    LLVMBasicBlockRef start = block(e, "start");
    LLVMPositionBuilderAtEnd(e->at, start);
    load_args(e);
    hn_ll_bases(e);
    if (hn_arena_oom(e->arena)) return false;
    /* entry holds allocas alone and ends in this branch, so that it never is empty when one is put in */
    LLVMBuilderRef first = LLVMCreateBuilderInContext(e->ctx);
    LLVMPositionBuilderAtEnd(first, e->entry);
    LLVMBuildBr(first, start);
    LLVMDisposeBuilder(first);
    emit_range(e, 0, e->f->n_ins);
    LLVMBuildRetVoid(e->at);
    return !hn_arena_oom(e->arena);
}
