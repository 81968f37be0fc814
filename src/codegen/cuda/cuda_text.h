/* Kernel IR as CUDA C text: pure, no NVRTC and no GPU needed. */
#ifndef HN_CODEGEN_CUDA_TEXT_H
#define HN_CODEGEN_CUDA_TEXT_H

#include "base/arena.h"
#include "base/str.h"
#include "kir/kir.h"

/** Helpers that emitted kernels call: portable C++17, on top of what the next one has. */
void hn_cu_prelude(hn_str *out);
/** What only a GPU has: conversions and minima as PTX, shuffles, products by warps, bit counts. Tests put another in its place. */
void hn_cu_ptx_prelude(hn_str *out);

#define HN_CU_KERNEL_NAME "hn_kernel"

/**
 * Append one kernel of the name above: buffers, then arguments, each a parameter of its own.
 *
 * Blocks are numbered along x alone, hn_kfunc_blocks() of them; the kernel splits the number itself.
 *
 * Errors: HONE_E_UNSUPPORTED the program is not a gpu's, or shuffles among threads that fill no warps
 */
hone_status hn_cu_emit(const hn_kfunc *f, hn_arena *a, hn_str *out, int64_t *ret_shared_bytes, hn_diag *dg);

#endif
