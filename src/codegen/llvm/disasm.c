/* Reads a kernel's own code back: how much stack it takes and how often it touches it. Tactics reject
 * variants that spill. */
#include "codegen/llvm/llvm_int.h"

#include <llvm-c/Disassembler.h>
#include <stdlib.h>
#include <string.h>

/* "subq $136, %rsp" */
static int32_t stack_taken(const char *text)
{
    const char *p = strstr(text, "subq\t$");

    if (strstr(text, "pushq")) return 8;
    if (!p || !strstr(p, "%rsp")) return 0;
    return (int32_t)strtol(p + 6, NULL, 0);
}

static bool touches_stack(const char *text)
{
    return (strstr(text, "(%rsp") || strstr(text, "(%rbp")) && !strstr(text, "leaq");
}

void hn_ll_inspect(hn_code *code, size_t text_bytes, hn_str *out)
{
    LLVMDisasmContextRef d =
        LLVMCreateDisasmCPUFeatures("x86_64-unknown-linux-gnu", "", "+64bit", NULL, 0, NULL, NULL);
    char text[256];

    if (!d) return;
    LLVMSetDisasmOptions(d, LLVMDisassembler_Option_PrintImmHex);
    code->frame_bytes = code->n_stack_ref = 0;
    for (size_t at = 0; at < text_bytes;) {
        /* the disassembler does not write through the pointer, its prototype only lacks const */
        const size_t n = LLVMDisasmInstruction(d, (uint8_t *)(uintptr_t)(code->at + at), text_bytes - at, at,
                                               text, sizeof(text));
        if (n == 0) break;
        code->frame_bytes += stack_taken(text);
        code->n_stack_ref += touches_stack(text);
        if (out) hn_str_addf(out, "%6zx:%s\n", at, text);
        at += n;
    }
    LLVMDisasmDispose(d);
}
