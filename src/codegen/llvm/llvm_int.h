/* Inside src/codegen/llvm: one kernel being emitted. No LLVM type leaves this folder. */
#ifndef HN_CODEGEN_LLVM_INT_H
#define HN_CODEGEN_LLVM_INT_H

#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

#include "codegen/codegen.h"

/* What differs between LLVM majors stands here alone. */
#define HN_LLVM_KERNEL_NAME "hn_kernel"

typedef struct emitter {
    const hn_kfunc *f;
    const hn_target *t;
    hn_arena *arena;
    LLVMContextRef ctx;
    LLVMModuleRef mod;
    LLVMBuilderRef at;
    LLVMValueRef fn;
    LLVMBasicBlockRef entry;
    LLVMValueRef *val;            /* of each instruction; a VAR's is its alloca */
    LLVMBasicBlockRef *leave;     /* of each FOR or LOOP: where BREAK_IF goes */
    int32_t *loop_of;             /* of each BREAK_IF: the block it leaves */
    LLVMValueRef *base;           /* of each buffer */
    LLVMValueRef *scope, *others; /* alias.scope and noalias lists of each buffer; NULL: none */
    unsigned md_scope, md_noalias, md_nontemporal, md_range, md_invariant;
} emitter;

static inline bool hn_ll_has(const hn_target *t, uint64_t feat)
{
    return (t->feat & feat) == feat;
}

/* emit.c */
LLVMTypeRef hn_ll_elem(const emitter *e, int dtype);
LLVMTypeRef hn_ll_type(const emitter *e, int dtype, int lanes);
/** Build the module's one function; the module is verified by the caller. */
bool hn_ll_emit(emitter *e);

/* emit_ops.c */
LLVMValueRef hn_ll_const(const emitter *e, int dtype, int lanes, uint64_t bits);
LLVMValueRef hn_ll_splat(const emitter *e, LLVMValueRef scalar, int lanes);
LLVMValueRef hn_ll_shuffle(const emitter *e, LLVMValueRef x, LLVMValueRef y, const int *lane, int lanes);
/** Call an intrinsic overloaded on `types`, by its base name. */
LLVMValueRef hn_ll_call(const emitter *e, const char *name, LLVMTypeRef *types, int n_type,
                        LLVMValueRef *args, int n_arg);
LLVMValueRef hn_ll_value(const emitter *e, const hn_kins *x);

/* emit_mem.c */
void hn_ll_bases(emitter *e);
LLVMValueRef hn_ll_load(const emitter *e, const hn_kins *x);
void hn_ll_store(const emitter *e, const hn_kins *x);
void hn_ll_prefetch(const emitter *e, const hn_kins *x);

/* emit_x86.c */
LLVMValueRef hn_ll_dot(const emitter *e, const hn_kins *x);
LLVMValueRef hn_ll_unhalf(const emitter *e, LLVMValueRef bits, int half, int lanes);
LLVMValueRef hn_ll_half(const emitter *e, LLVMValueRef v, int half, int lanes);
/** "+avx2,+fma,..." for the target's features; "" when it lacks the baseline. */
const char *hn_ll_features(const hn_target *t, hn_arena *a);
/** The CPU that LLVM should schedule for. */
const char *hn_ll_tune(const hn_target *t);

/* flatten.c */
/** Lay out an ELF object's code and constants in one piece and resolve what points between them. */
hone_status hn_ll_flatten(const uint8_t *elf, size_t n, const char *kernel, hn_arena *a, hn_code *ret,
                          hn_diag *dg);

/* disasm.c */
/** Fill frame_bytes and n_stack_ref by reading the code; `out` may be NULL, else gets the listing. */
void hn_ll_inspect(hn_code *code, size_t text_bytes, hn_str *out);

#endif
