/* One kernel through LLVM: emit, verify, a short pass pipeline, object code in memory, flatten. */
#include "codegen/llvm/llvm_int.h"

#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* Kernels say themselves what is vector and what is unrolled, so the pipeline only cleans up: registers for
 * variables, common addresses, invariants out of loops. Loop-invariant motion runs before the last
 * simplification so that hoisted splats fold. */
static const char explicit_passes[] =
    "function(sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,simplifycfg,loop-mssa("
    "licm),gvn,dse,instcombine<no-verify-fixpoint>,early-cse<memssa>,"
    "simplifycfg,adce)";
static const char scalar_passes[] = "default<O3>";

typedef struct session {
    emitter e;
    LLVMTargetMachineRef machine;
    char problem[384]; /* first error that LLVM reported */
} session;

static void on_diagnostic(LLVMDiagnosticInfoRef info, void *user)
{
    session *s = user;

    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || s->problem[0]) return;
    char *text = LLVMGetDiagInfoDescription(info);
    snprintf(s->problem, sizeof(s->problem), "%s", text);
    LLVMDisposeMessage(text);
}

static hone_status make_machine(session *s, hn_diag *dg)
{
    static const char triple[] = "x86_64-unknown-linux-gnu";
    LLVMTargetRef target;
    char *text = NULL;

    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86Disassembler();
    if (LLVMGetTargetFromTriple(triple, &target, &text)) {
        const hone_status st = HN_RAISE(dg, HONE_E_TARGET, "LLVM has no x86-64 code generator: %s", text);
        LLVMDisposeMessage(text);
        return st;
    }
    s->machine = LLVMCreateTargetMachine(target, triple, "x86-64", hn_ll_features(s->e.t, s->e.arena),
                                         LLVMCodeGenLevelAggressive, LLVMRelocPIC, LLVMCodeModelSmall);
    if (!s->machine)
        return HN_RAISE(dg, HONE_E_TARGET, "LLVM cannot make a code generator for \"%s\"", s->e.t->name);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(s->machine);
    LLVMSetModuleDataLayout(s->e.mod, layout);
    LLVMDisposeTargetData(layout);
    LLVMSetTarget(s->e.mod, triple);
    return HONE_OK;
}

static hone_status build_module(session *s, hn_diag *dg)
{
    char *text = NULL;

    if (!hn_ll_emit(&s->e)) return HN_NOMEM(dg);
    const bool broken = LLVMVerifyModule(s->e.mod, LLVMReturnStatusAction, &text);
    hone_status st = HONE_OK;
    if (broken)
        st = HN_RAISE(dg, HONE_E_INTERNAL, "kernel \"%s\" makes wrong LLVM IR: %.300s", s->e.f->name,
                      text ? text : "");
    LLVMDisposeMessage(text);
    return st;
}

static hone_status optimise(session *s, hn_diag *dg)
{
    LLVMPassBuilderOptionsRef o = LLVMCreatePassBuilderOptions();
    const bool scalar = s->e.f->flags & HN_KFUNC_OPTIMISE;

    LLVMErrorRef err = LLVMRunPasses(s->e.mod, scalar ? scalar_passes : explicit_passes, s->machine, o);
    LLVMDisposePassBuilderOptions(o);
    if (!err) return HONE_OK;
    char *text = LLVMGetErrorMessage(err);
    const hone_status st =
        HN_RAISE(dg, HONE_E_INTERNAL, "LLVM's passes failed on kernel \"%s\": %.300s", s->e.f->name, text);
    LLVMDisposeErrorMessage(text);
    return st;
}

static hone_status to_object(session *s, LLVMMemoryBufferRef *ret, hn_diag *dg)
{
    char *text = NULL;

    if (!LLVMTargetMachineEmitToMemoryBuffer(s->machine, s->e.mod, LLVMObjectFile, &text, ret)) {
        if (!s->problem[0]) return HONE_OK;
        LLVMDisposeMemoryBuffer(*ret);
        return HN_RAISE(dg, HONE_E_INTERNAL, "LLVM reports on kernel \"%s\": %.300s", s->e.f->name,
                        s->problem);
    }
    const hone_status st =
        HN_RAISE(dg, HONE_E_INTERNAL, "LLVM made no code for kernel \"%s\": %.300s", s->e.f->name, text);
    LLVMDisposeMessage(text);
    return st;
}

static hone_status check_target(const hn_kfunc *f, const hn_target *t, hn_diag *dg)
{
    if (t->arch != HN_ARCH_X86_64)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "the CPU code generator makes x86-64 code, not for \"%s\"",
                        t->name);
    if (!hn_ll_has(t, HN_FEAT_SSE42))
        return HN_RAISE(dg, HONE_E_TARGET, "target \"%s\" lacks sse4.2, the least that kernels need",
                        t->name);
    for (int i = 0; i < f->n_ins; i++)
        if ((f->ins[i].op == HN_KOP_FOR && f->ins[i].flags >= HN_KFOR_BLOCK_X) ||
            f->ins[i].op == HN_KOP_BARRIER || f->ins[i].op >= HN_KOP_SHFL_XOR)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "kernel \"%s\" is for a gpu", f->name);
    return HONE_OK;
}

static void open_session(session *s, const hn_kfunc *f, const hn_target *t, hn_arena *a)
{
    memset(s, 0, sizeof(*s));
    s->e.f = f;
    s->e.t = t;
    s->e.arena = a;
    s->e.ctx = LLVMContextCreate();
    LLVMContextSetDiagnosticHandler(s->e.ctx, on_diagnostic, s);
    s->e.mod = LLVMModuleCreateWithNameInContext("kernel", s->e.ctx);
    s->e.at = LLVMCreateBuilderInContext(s->e.ctx);
}

static void close_session(session *s)
{
    if (s->machine) LLVMDisposeTargetMachine(s->machine);
    LLVMDisposeBuilder(s->e.at);
    LLVMDisposeModule(s->e.mod);
    LLVMContextDispose(s->e.ctx);
}

static hone_status prepare(session *s, hn_diag *dg)
{
    HN_TRY(make_machine(s, dg));
    HN_TRY(build_module(s, dg));
    return optimise(s, dg);
}

static hone_status finish(session *s, hn_arena *a, hn_code *ret, hn_diag *dg)
{
    LLVMMemoryBufferRef object;

    HN_TRY(to_object(s, &object, dg));
    const hone_status st = hn_ll_flatten((const uint8_t *)LLVMGetBufferStart(object),
                                         LLVMGetBufferSize(object), HN_LLVM_KERNEL_NAME, a, ret, dg);
    LLVMDisposeMemoryBuffer(object);
    return st;
}

static hone_status compile(const hn_kfunc *f, const hn_target *t, hn_arena *a, hn_code *ret, hn_diag *dg)
{
    const int64_t start = hn_now_ns();
    hn_code code = { 0 };
    session s;

    HN_TRY(check_target(f, t, dg));
    hn_arena *tmp = hn_arena_create();
    if (!tmp) return HN_NOMEM(dg);
    open_session(&s, f, t, tmp);
    hone_status st = prepare(&s, dg);
    if (st == HONE_OK) st = finish(&s, a, &code, dg);
    close_session(&s);
    hn_arena_destroy(tmp);
    if (st != HONE_OK) return st;
    code.compile_ns = hn_now_ns() - start;
    *ret = code;
    return HONE_OK;
}

static hone_status dump(const hn_kfunc *f, const hn_target *t, bool optimised_ir, hn_str *out, hn_diag *dg)
{
    hn_code code = { 0 };
    session s;

    HN_TRY(check_target(f, t, dg));
    hn_arena *tmp = hn_arena_create();
    if (!tmp) return HN_NOMEM(dg);
    open_session(&s, f, t, tmp);
    hone_status st = prepare(&s, dg);
    if (st == HONE_OK && optimised_ir) {
        char *text = LLVMPrintModuleToString(s.e.mod);
        hn_str_add(out, text);
        LLVMDisposeMessage(text);
    } else if (st == HONE_OK) {
        st = finish(&s, tmp, &code, dg);
        if (st == HONE_OK) hn_ll_inspect(&code, code.n, out);
    }
    close_session(&s);
    hn_arena_destroy(tmp);
    return st;
}

static const char *version(void)
{
    return HN_LLVM_VERSION;
}

static void on_fatal(void (*say)(const char *reason))
{
    LLVMInstallFatalErrorHandler(say);
}

const hn_codegen hn_codegen_llvm = {
    .name = "llvm",
    .version = version,
    .rev = HN_CODEGEN_REV,
    .on_fatal = on_fatal,
    .compile = compile,
    .dump = dump,
};
