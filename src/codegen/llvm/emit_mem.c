/* Loads, stores and where buffers are. */
#include "codegen/llvm/llvm_int.h"

#include <stdio.h>
#include <string.h>

static LLVMTypeRef i8(const emitter *e)
{
    return LLVMInt8TypeInContext(e->ctx);
}

static LLVMValueRef i64(const emitter *e, int64_t v)
{
    return LLVMConstInt(hn_ll_elem(e, HN_I64), (uint64_t)v, 1);
}

static int bytes_of(int dtype)
{
    return hn_dtype_bits((hn_dtype)dtype) / 8;
}

/* ---- bases ---- */
static LLVMValueRef table_base(emitter *e, const hn_kbuf *b)
{
    const unsigned n = (unsigned)(b->elems.mul * bytes_of(b->dtype));
    LLVMValueRef data = LLVMConstStringInContext2(e->ctx, (const char *)e->f->data + b->data, n, 1);
    LLVMValueRef g = LLVMAddGlobal(e->mod, LLVMTypeOf(data), "table");

    LLVMSetInitializer(g, data);
    LLVMSetGlobalConstant(g, 1);
    LLVMSetLinkage(g, LLVMPrivateLinkage);
    LLVMSetUnnamedAddress(g, LLVMGlobalUnnamedAddr);
    LLVMSetAlignment(g, 64);
    return g;
}

/* ceil((mul*a*b + add) / div) elements, rounded up to 64 bytes; the same sum as hn_kfunc_scratch_bytes. */
static LLVMValueRef scratch_size(emitter *e, const hn_kbuf *b)
{
    const hn_kext *x = &b->elems;
    LLVMValueRef v = i64(e, x->mul);

    for (int i = 0; i < 2; i++) {
        const int32_t arg = i ? x->b : x->a;
        if (arg < 0) continue;
        LLVMValueRef at = i64(e, arg);
        LLVMValueRef p = LLVMBuildGEP2(e->at, hn_ll_elem(e, HN_I64), LLVMGetParam(e->fn, 1), &at, 1, "");
        v = LLVMBuildMul(e->at, v, LLVMBuildLoad2(e->at, hn_ll_elem(e, HN_I64), p, ""), "");
    }
    v = LLVMBuildAdd(e->at, v, i64(e, x->add), "");
    LLVMTypeRef type = hn_ll_elem(e, HN_I64);
    v = hn_ll_call(e, "llvm.smax", &type, 1, (LLVMValueRef[]){ v, i64(e, 0) }, 2);
    if (x->div > 1)
        v = LLVMBuildUDiv(e->at, LLVMBuildAdd(e->at, v, i64(e, x->div - 1), ""), i64(e, x->div), "");
    v = LLVMBuildMul(e->at, v, i64(e, bytes_of(b->dtype)), "");
    return LLVMBuildAnd(e->at, LLVMBuildAdd(e->at, v, i64(e, 63), ""), i64(e, -64), "");
}

static LLVMMetadataRef text(const emitter *e, const char *s)
{
    return LLVMMDStringInContext2(e->ctx, s, strlen(s));
}

/* One scope a buffer that overlaps nothing, one shared scope for those that may overlap each other. */
static void alias_facts(emitter *e)
{
    const int n = e->f->n_buf;
    LLVMMetadataRef name = text(e, "buffers"), domain = LLVMMDNodeInContext2(e->ctx, &name, 1);
    LLVMMetadataRef *scope = HN_NEW_N(e->arena, LLVMMetadataRef, n + 1),
                    *list = HN_NEW_N(e->arena, LLVMMetadataRef, n + 1);

    if (!scope || !list) return;
    for (int i = 0; i < n; i++) {
        char id[32];
        snprintf(id, sizeof(id), "b%d", e->f->buf[i].flags & HN_KBUF_ALIAS ? -1 : i);
        scope[i] = LLVMMDNodeInContext2(e->ctx, (LLVMMetadataRef[]){ text(e, id), domain }, 2);
    }
    for (int i = 0; i < n; i++) {
        size_t k = 0;
        for (int j = 0; j < n; j++)
            if (scope[j] != scope[i]) list[k++] = scope[j];
        e->scope[i] = LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, &scope[i], 1));
        if (k) e->others[i] = LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, list, k));
    }
}

static LLVMValueRef param_base(emitter *e, const hn_kbuf *b, LLVMValueRef empty)
{
    LLVMTypeRef ptr = LLVMPointerTypeInContext(e->ctx, 0);
    LLVMValueRef slot = i64(e, b->slot);
    LLVMValueRef v =
        LLVMBuildLoad2(e->at, ptr, LLVMBuildGEP2(e->at, ptr, LLVMGetParam(e->fn, 0), &slot, 1, ""), "");

    LLVMSetMetadata(v, e->md_invariant, empty);
    return v;
}

void hn_ll_bases(emitter *e)
{
    const int n = e->f->n_buf + 1;
    LLVMValueRef scratch = LLVMGetParam(e->fn, 4),
                 empty = LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, NULL, 0));

    e->base = HN_NEW_N(e->arena, LLVMValueRef, n);
    e->scope = HN_NEW_N(e->arena, LLVMValueRef, n);
    e->others = HN_NEW_N(e->arena, LLVMValueRef, n);
    if (!e->base || !e->scope || !e->others) return;
    for (int i = 0; i < e->f->n_buf; i++) {
        const hn_kbuf *b = &e->f->buf[i];
        if (b->kind == HN_KBUF_PARAM) {
            e->base[i] = param_base(e, b, empty);
        } else if (b->kind == HN_KBUF_TABLE) {
            e->base[i] = table_base(e, b);
        } else {
            e->base[i] = scratch;
            LLVMValueRef size = scratch_size(e, b);
            scratch = LLVMBuildGEP2(e->at, i8(e), scratch, &size, 1, "");
        }
    }
    alias_facts(e);
}

/* ---- access ---- */
static LLVMValueRef address(const emitter *e, const hn_kins *x)
{
    LLVMValueRef index = e->val[x->a[0]];
    const hn_kbuf *b = &e->f->buf[x->imm];
    LLVMTypeRef elem = LLVMIntTypeInContext(e->ctx, (unsigned)bytes_of(b->dtype) * 8);

    return LLVMBuildGEP2(e->at, elem, e->base[x->imm], &index, 1, "");
}

static void mark(const emitter *e, LLVMValueRef v, int64_t buf)
{
    LLVMSetMetadata(v, e->md_scope, e->scope[buf]);
    if (e->others[buf]) LLVMSetMetadata(v, e->md_noalias, e->others[buf]);
}

/* The integer or float type that memory holds. */
static LLVMTypeRef stored_type(const emitter *e, int storage, int lanes)
{
    LLVMTypeRef t = storage == HN_BOOL                        ? i8(e)
                    : storage == HN_F16 || storage == HN_BF16 ? LLVMInt16TypeInContext(e->ctx)
                                                              : hn_ll_elem(e, storage);
    return lanes > 1 ? LLVMVectorType(t, (unsigned)lanes) : t;
}

static int storage_of(const emitter *e, const hn_kins *x, int value)
{
    return x->flags & HN_KMEM_RAW ? value : e->f->buf[x->imm].dtype;
}

/* An address is a multiple of the buffer's element size, whatever is read there. */
static unsigned align_of(const emitter *e, const hn_kins *x, int storage)
{
    return (unsigned)HN_MIN(bytes_of(storage), bytes_of(e->f->buf[x->imm].dtype));
}

static LLVMValueRef all_lanes(const emitter *e, int lanes)
{
    return hn_ll_const(e, HN_BOOL, lanes, 1);
}

/* One lane with a condition: a branch. */
static LLVMValueRef load_if(const emitter *e, const hn_kins *x, LLVMTypeRef t, LLVMValueRef p,
                            LLVMValueRef mask, unsigned align)
{
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "on");
    LLVMBasicBlockRef out = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "out"),
                      before = LLVMGetInsertBlock(e->at);

    LLVMBuildCondBr(e->at, mask, yes, out);
    LLVMPositionBuilderAtEnd(e->at, yes);
    LLVMValueRef v = LLVMBuildLoad2(e->at, t, p, "");
    LLVMSetAlignment(v, align);
    mark(e, v, x->imm);
    LLVMBuildBr(e->at, out);
    LLVMPositionBuilderAtEnd(e->at, out);
    LLVMValueRef phi = LLVMBuildPhi(e->at, t, "");
    LLVMAddIncoming(phi, (LLVMValueRef[]){ LLVMConstNull(t), v }, (LLVMBasicBlockRef[]){ before, yes }, 2);
    return phi;
}

static LLVMValueRef gather_index(const emitter *e, const hn_kins *x, int lanes)
{
    LLVMValueRef index = e->val[x->a[0]];

    if (e->f->ins[x->a[0]].dtype == HN_I64) return index;
    return LLVMBuildSExt(e->at, index, hn_ll_type(e, HN_I64, lanes), "");
}

static LLVMValueRef places(const emitter *e, const hn_kins *x, int lanes)
{
    LLVMValueRef index = gather_index(e, x, lanes);
    LLVMTypeRef elem = LLVMIntTypeInContext(e->ctx, (unsigned)bytes_of(e->f->buf[x->imm].dtype) * 8);

    return LLVMBuildGEP2(e->at, elem, e->base[x->imm], &index, 1, "");
}

static LLVMValueRef load_raw(const emitter *e, const hn_kins *x, LLVMTypeRef t, int storage)
{
    LLVMValueRef mask = x->a[1] >= 0 ? e->val[x->a[1]] : NULL, v;
    const unsigned align = align_of(e, x, storage);
    LLVMValueRef align_arg = LLVMConstInt(LLVMInt32TypeInContext(e->ctx), align, 0);

    if (x->op == HN_KOP_GATHER && x->lanes > 1) {
        LLVMValueRef p = places(e, x, x->lanes);
        v = hn_ll_call(
            e, "llvm.masked.gather", (LLVMTypeRef[]){ t, LLVMTypeOf(p) }, 2,
            (LLVMValueRef[]){ p, align_arg, mask ? mask : all_lanes(e, x->lanes), LLVMConstNull(t) }, 4);
        mark(e, v, x->imm);
        return v;
    }
    LLVMValueRef p = x->op == HN_KOP_GATHER ? places(e, x, 1) : address(e, x);
    if (mask && x->lanes == 1) return load_if(e, x, t, p, mask, align);
    if (mask) {
        v = hn_ll_call(e, "llvm.masked.load", (LLVMTypeRef[]){ t, LLVMTypeOf(p) }, 2,
                       (LLVMValueRef[]){ p, align_arg, mask, LLVMConstNull(t) }, 4);
    } else {
        v = LLVMBuildLoad2(e->at, t, p, "");
        LLVMSetAlignment(v, align);
    }
    mark(e, v, x->imm);
    return v;
}

LLVMValueRef hn_ll_load(const emitter *e, const hn_kins *x)
{
    const int storage = storage_of(e, x, x->dtype);
    LLVMTypeRef t = stored_type(e, storage, x->lanes);
    LLVMValueRef v = load_raw(e, x, t, storage);

    if (storage == HN_F16 || storage == HN_BF16) return hn_ll_unhalf(e, v, storage, x->lanes);
    if (storage == HN_BOOL) return LLVMBuildICmp(e->at, LLVMIntNE, v, LLVMConstNull(t), "");
    return v;
}

static void store_if(const emitter *e, const hn_kins *x, LLVMValueRef v, LLVMValueRef p, LLVMValueRef mask,
                     unsigned align)
{
    LLVMBasicBlockRef yes = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "on");
    LLVMBasicBlockRef out = LLVMAppendBasicBlockInContext(e->ctx, e->fn, "out");

    LLVMBuildCondBr(e->at, mask, yes, out);
    LLVMPositionBuilderAtEnd(e->at, yes);
    LLVMValueRef s = LLVMBuildStore(e->at, v, p);
    LLVMSetAlignment(s, align);
    mark(e, s, x->imm);
    LLVMBuildBr(e->at, out);
    LLVMPositionBuilderAtEnd(e->at, out);
}

static void store_stream(const emitter *e, LLVMValueRef s, int bytes)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(LLVMConstInt(LLVMInt32TypeInContext(e->ctx), 1, 0));

    if (bytes & (bytes - 1)) return;
    LLVMSetAlignment(s, (unsigned)HN_MIN(bytes, 64));
    LLVMSetMetadata(s, e->md_nontemporal, LLVMMetadataAsValue(e->ctx, LLVMMDNodeInContext2(e->ctx, &one, 1)));
}

static void store_raw(const emitter *e, const hn_kins *x, LLVMValueRef v, int storage, int lanes)
{
    LLVMValueRef mask = x->a[2] >= 0 ? e->val[x->a[2]] : NULL, s;
    const unsigned align = align_of(e, x, storage);
    LLVMValueRef align_arg = LLVMConstInt(LLVMInt32TypeInContext(e->ctx), align, 0);
    LLVMTypeRef t = LLVMTypeOf(v);

    if (x->op == HN_KOP_SCATTER && lanes > 1) {
        LLVMValueRef p = places(e, x, lanes);
        s = hn_ll_call(e, "llvm.masked.scatter", (LLVMTypeRef[]){ t, LLVMTypeOf(p) }, 2,
                       (LLVMValueRef[]){ v, p, align_arg, mask ? mask : all_lanes(e, lanes) }, 4);
        mark(e, s, x->imm);
        return;
    }
    LLVMValueRef p = x->op == HN_KOP_SCATTER ? places(e, x, 1) : address(e, x);
    if (mask && lanes == 1) {
        store_if(e, x, v, p, mask, align);
        return;
    }
    if (mask) {
        s = hn_ll_call(e, "llvm.masked.store", (LLVMTypeRef[]){ t, LLVMTypeOf(p) }, 2,
                       (LLVMValueRef[]){ v, p, align_arg, mask }, 4);
    } else {
        s = LLVMBuildStore(e->at, v, p);
        LLVMSetAlignment(s, align);
        if (x->flags & HN_KMEM_STREAM) store_stream(e, s, lanes * bytes_of(storage));
    }
    mark(e, s, x->imm);
}

void hn_ll_store(const emitter *e, const hn_kins *x)
{
    const hn_kins *value = &e->f->ins[x->a[1]];
    const int storage = storage_of(e, x, value->dtype), lanes = value->lanes;
    LLVMValueRef v = e->val[x->a[1]];

    if (storage == HN_F16 || storage == HN_BF16) v = hn_ll_half(e, v, storage, lanes);
    if (storage == HN_BOOL) v = LLVMBuildZExt(e->at, v, stored_type(e, storage, lanes), "");
    store_raw(e, x, v, storage, lanes);
}

void hn_ll_prefetch(const emitter *e, const hn_kins *x)
{
    LLVMValueRef p = address(e, x);
    LLVMTypeRef t = LLVMTypeOf(p), i32 = LLVMInt32TypeInContext(e->ctx);
    LLVMValueRef args[] = { p, LLVMConstInt(i32, x->flags >> 2 & 1, 0), LLVMConstInt(i32, x->flags & 3, 0),
                            LLVMConstInt(i32, 1, 0) };

    hn_ll_call(e, "llvm.prefetch", &t, 1, args, 4);
}
