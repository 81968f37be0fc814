/* Inside src/codegen/cuda: one kernel being written as CUDA C, and NVRTC as we declare it. */
#ifndef HN_CODEGEN_CUDA_INT_H
#define HN_CODEGEN_CUDA_INT_H

#include "codegen/codegen.h"
#include "codegen/cuda/cuda_text.h"

typedef struct cu_emitter {
    const hn_kfunc *f;
    hn_arena *arena;
    hn_str *out;
    bool *narrow; /* of each i64 or u64 value: it fits int, and is computed and held as one */
    int depth;    /* of indentation */
    int n_name;
    char name[16][48]; /* ring of operand texts */
} cu_emitter;

/** C type of a dtype in registers: "f32", "i64", "bool". */
const char *hn_cu_type(int dtype);
/** C type of an instruction's value: "int" where it is narrow. */
const char *hn_cu_value_type(const cu_emitter *e, int at);
/** Text of one lane of a value: a name or a literal. Good until fifteen more are asked for. */
const char *hn_cu_lane(cu_emitter *e, int at, int lane);
/** Begin a line at the present indentation. */
void hn_cu_line(cu_emitter *e, const char *fmt, ...) HN_PRINTF(2, 3);

/* emit_ops.c */
/** Everything that computes a value from values. */
void hn_cu_value(cu_emitter *e, int at);
void hn_cu_mma(cu_emitter *e, int at);

/* emit_mem.c */
void hn_cu_load(cu_emitter *e, int at);
void hn_cu_store(cu_emitter *e, int at);
void hn_cu_copy(cu_emitter *e, const hn_kins *x);
void hn_cu_ldmatrix(cu_emitter *e, int at);
/** Tables before the kernel; shared arrays inside it. Yields the bytes of dynamic shared memory. */
void hn_cu_tables(cu_emitter *e);
int64_t hn_cu_shared(cu_emitter *e);
/** C type of a buffer's elements in memory. */
const char *hn_cu_storage(int dtype);

/* range.c */
/** Which 64-bit integers fit 32 bits, by interval arithmetic from the arguments' facts. */
bool hn_cu_find_narrow(const hn_kfunc *f, hn_arena *a, bool *ret);

/* nvrtc.c */
typedef struct hn_nvrtc_log {
    int n_reg, stack_bytes, spill_bytes, shared_bytes;
} hn_nvrtc_log;
/**
 * CUDA C to a cubin.
 *
 * Owns:   *ret lives in `a`
 * Errors: HONE_E_NOTFOUND no NVRTC, saying where it was looked for; HONE_E_VERSION one too old for the target;
 *         HONE_E_INTERNAL with the first lines of the compiler's log
 */
hone_status hn_nvrtc_compile(const char *source, const char *name, const char *arch, hn_arena *a, hn_bytes *ret,
                             hn_nvrtc_log *ret_log, hn_diag *dg);
/** "13.0"; "" when there is none. */
const char *hn_nvrtc_version(void);

#endif
