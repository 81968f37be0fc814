/* Kernel IR: loop programs that tactics build, tests interpret, and code generators compile.
 *
 * A program is a flat list of instructions in program order; an instruction's place is its value's id. Blocks
 * (FOR, LOOP, IF) are opened and closed in that list, a value is visible from its instruction to the end of
 * its block, and mutable state lives in VARs and buffers. Types are a dtype times 1..64 lanes. Arithmetic
 * dtypes are f32 f64, i8..i64, u8..u64 and bool (masks and conditions); f16, bf16 and bool are also storage:
 * loading f16 or bf16 yields f32, storing f32 there rounds to nearest even; a bool is a byte, non-zero is
 * true, stores write 0 or 1. Smaller dtypes are u8 buffers plus shifts.
 *
 * THE CALLING CONVENTION, the same for every CPU kernel:
 *
 *     void kernel(void *const *buf, const int64_t *arg, int64_t lo, int64_t hi, void *scratch);
 *
 * buf[i] is the i-th parameter buffer in declaration order, arg[i] the i-th argument. [lo,hi) are the
 * iterations of the parallel loop that this call runs; any split of [0, hn_kfunc_parallel()) over threads
 * gives the same result. A kernel without a parallel loop runs once, as [0,1). scratch is
 * hn_kfunc_scratch_bytes() bytes, 64-byte aligned, private to the call; its content is undefined on entry. It
 * may be NULL when that size is 0. Buffers hold naturally aligned elements. Kernels use the caller's float
 * environment (round to nearest, denormals on) and call nothing.
 *
 * GPU programs have block loops outermost and thread loops inside them; a thread loop's body runs once a
 * thread, all of them at a time, threads numbered x fastest. What follows an inner thread loop is nothing but
 * ends. Buffers and arguments are the CPU's, but a buffer begins at a multiple of 16 bytes; launch grid[] blocks of threads[] threads.
 *
 * MMA multiplies tiles that 32 threads of a warp hold together, m16n8: thread t, with g = t / 4 and q = t % 4, has of
 *
 *     a [16][k], words 0..3:  row g, bytes 4q.. of a row | row g + 8, the same | row g, bytes 16 + 4q.. | row g + 8, the same
 *     b [k][8],  words 0..1:  column g, bytes 4q.. of a column | bytes 16 + 4q..
 *     c [16][8], lanes 0..3:  (g, 2q), (g, 2q + 1), (g + 8, 2q), (g + 8, 2q + 1)
 *
 * A row of a and a column of b are 32 bytes: k is 16 for f16 and bf16, 8 for f32, 32 for i8 and u8, where only a is unsigned. f32 operands are rounded to tf32
 * (11 significant bits, ties away from zero), products are exact, and how their sum with c rounds is the target's (the
 * interpreter: once). Bytes sum into i32 and wrap.
 *
 * LDMATRIX reads such words: thread t gets of matrix j (row i of it at the index that thread 8j + i gives) the two elements
 * (t / 4, 2 (t % 4)) and beside it; transposed, elements (2 (t % 4), t / 4) and below it.
 *
 * A variable set inside a parallel, each, block or thread loop must be declared inside it.
 *
 * CAST: int to int wraps or extends by the source's sign; int to float rounds to nearest even; float to int
 * truncates, saturates out of range, NaN gives 0; f64 to f32 rounds to nearest even; anything to bool is x !=
 * 0 (NaN is true); bool to a number is 0 or 1.
 */
#ifndef HN_KIR_KIR_H
#define HN_KIR_KIR_H

#include "base/arena.h"
#include "base/diag.h"
#include "base/hash.h"
#include "base/os.h"
#include "base/str.h"
#include "core/core.h"

typedef enum hn_kop {
#define X(name, number, text) HN_KOP_##name = number,
#include "kir/kops.def"
#undef X
} hn_kop;

typedef struct hn_ktype {
    uint8_t dtype; /* hn_dtype; HN_NONE: no value */
    uint8_t lanes; /* 1..64 */
} hn_ktype;

/** A value: the place of the instruction that made it. A struct, so that numbers and values cannot be mixed
 * up. */
typedef struct hn_kv {
    int32_t at;
} hn_kv;
#define HN_KV_NONE ((hn_kv){ -1 })
static inline bool hn_kv_is(hn_kv v)
{
    return v.at >= 0;
}

/** A mutable variable. */
typedef struct hn_kvar {
    int32_t at;
} hn_kvar;

typedef enum hn_kfor {
    HN_KFOR_SERIAL,
    HN_KFOR_PARALLEL, /* one at most, outermost: its iterations [lo,hi) come with the call */
    HN_KFOR_UNROLL,   /* literal bounds; the body is emitted once an iteration */
    HN_KFOR_EACH,     /* iterations know nothing of each other: serial on a CPU, threads of a block on a gpu */
    HN_KFOR_BLOCK_X,  /* gpu grid */
    HN_KFOR_BLOCK_Y,
    HN_KFOR_BLOCK_Z,
    HN_KFOR_THREAD_X, /* gpu block; literal bounds */
    HN_KFOR_THREAD_Y,
    HN_KFOR_THREAD_Z,
} hn_kfor;

typedef enum hn_kmem_flag {
    HN_KMEM_RAW = 1,    /* bits of the stated type at that address, no storage conversion */
    HN_KMEM_STREAM = 2, /* store: not to be read again soon (non-temporal; address aligned to the vector) */
    HN_KMEM_ALIGNED = 4, /* place in the buffer is a multiple of the access's size, or of 16 bytes if that is larger */
} hn_kmem_flag;

typedef enum hn_kcast_flag {
    HN_KCAST_IN_RANGE = 1, /* float to int: the program promises a number that fits; spares the saturation */
} hn_kcast_flag;

/** One instruction, 32 bytes, no padding. Unused operands are -1, unused fields 0. */
typedef struct hn_kins {
    uint8_t op, dtype, lanes, flags;
    int32_t a[5];
    int64_t imm;
} hn_kins;

/** An extent that a host can compute from the arguments: ceil((mul * arg[a] * arg[b] + add) / div); absent
 * args count as 1. */
typedef struct hn_kext {
    int32_t a, b; /* argument numbers or -1 */
    int64_t mul, add, div;
} hn_kext;
hn_kext hn_kext_const(int64_t n);
/** ceil(arg / div), the number of blocks of div. */
hn_kext hn_kext_arg(int arg, int64_t div);
int64_t hn_kext_eval(const hn_kext *e, const int64_t *arg);

typedef enum hn_kbuf_kind {
    HN_KBUF_PARAM,   /* given by the caller */
    HN_KBUF_SCRATCH, /* per call, inside the scratch block, 64-byte aligned */
    HN_KBUF_TABLE,   /* constant bytes, part of the code */
    HN_KBUF_SHARED,  /* gpu: per block */
} hn_kbuf_kind;

typedef enum hn_kbuf_flag {
    HN_KBUF_WRITE = 1, /* may be written; otherwise it is read-only */
    HN_KBUF_ALIAS = 2, /* may overlap other buffers that carry this flag; others overlap nothing */
} hn_kbuf_flag;

typedef struct hn_kbuf {
    int32_t name; /* offset into names */
    uint8_t kind, dtype, flags, pad;
    int32_t slot;       /* PARAM: place in buf[] */
    int32_t align;      /* bytes the base is known to be aligned to; at least the element's size */
    int32_t tail_bytes; /* bytes past the end that may be read (never written) */
    int32_t pad2;
    int64_t data;  /* TABLE: offset into data */
    hn_kext elems; /* SCRATCH, SHARED, TABLE */
} hn_kbuf;

typedef struct hn_karg {
    int32_t name, pad;
    int64_t lo, hi; /* inclusive; the program may rely on them */
    int64_t div;    /* the argument is a multiple of this; 1: no fact */
} hn_karg;

typedef enum hn_kfunc_flag {
    HN_KFUNC_OPTIMISE = 1, /* plain scalar loops: let the code generator vectorise and unroll */
} hn_kfunc_flag;

/** A finished program: arrays in an arena (or in the bytes it was read from), all references by index. */
typedef struct hn_kfunc {
    const char *name; /* a tactic's name; not part of the digest */
    uint32_t flags;
    int32_t n_buf, n_arg, n_ins, n_pool;
    int64_t n_data;
    int32_t n_names;
    int32_t parallel_at; /* the parallel FOR, or -1 */
    hn_kext parallel;    /* its trip count; constant 1 without one */
    hn_kext grid[3];     /* gpu: blocks along x, y, z; constant 1 where no loop says more */
    int32_t threads[3];  /* gpu: threads of a block along x, y, z; all 0: not a gpu program */
    const hn_kbuf *buf;
    const hn_karg *arg;
    const hn_kins *ins;
    const int32_t *pool;
    const uint8_t *data;
    const char *names;
} hn_kfunc;

/* ---- looking at programs ---- */
const char *hn_kop_name(int op); /* "add"; "?" when unknown */
/** Bytes of scratch that one call needs for these arguments: each array rounded up to 64. */
int64_t hn_kfunc_scratch_bytes(const hn_kfunc *f, const int64_t *arg);
/** Iterations of the parallel loop for these arguments; 1 without one. */
int64_t hn_kfunc_parallel(const hn_kfunc *f, const int64_t *arg);
int hn_kfunc_n_params(const hn_kfunc *f);
/** Content without names. Stable across machines. */
hn_digest hn_kfunc_digest(const hn_kfunc *f);
void hn_kfunc_print(const hn_kfunc *f, hn_str *out);
/** Types, scopes, nesting, literal indices, buffer rights. Errors: HONE_E_INTERNAL naming the instruction. */
hone_status hn_kfunc_verify(const hn_kfunc *f, hn_diag *dg);
/** Bytes that hn_kfunc_read takes, in the arena; n = 0 when out of memory. */
hn_bytes hn_kfunc_write(hn_arena *a, const hn_kfunc *f);
/** Copies into the arena and verifies. Errors: HONE_E_FORMAT for damaged bytes, else as hn_kfunc_verify. */
hone_status hn_kfunc_read(hn_arena *a, const void *data, size_t n, hn_kfunc *ret, hn_diag *dg);

/* ---- interpreter: for tests ---- */
typedef struct hn_kmem {
    void *at;
    int64_t
        bytes; /* what the kernel may touch; a declared tail comes on top of it for reading and must exist */
} hn_kmem;

/**
 * Run iterations [lo,hi) of the parallel loop, checking every access against the buffer sizes and rights.
 *
 * Shapes:  one hn_kmem a parameter buffer, one int64 an argument
 * Errors:  HONE_E_INVALID   an argument breaks its facts
 *          HONE_E_INTERNAL  out-of-bounds access, write to a read-only buffer, read of scratch never written;
 * names it HONE_E_LIMIT     max_steps instructions passed (0: 2^40)
 */
hone_status hn_kfunc_run(const hn_kfunc *f, const hn_kmem *buf, const int64_t *arg, int64_t lo, int64_t hi,
                         int64_t max_steps, hn_diag *dg);

/* ---- builder ----
 * Appends at the end. Mistakes (types, nesting, unknown buffers) are kept, first one wins, and hn_kb_finish
 * raises it; until then calls stay harmless, so emitters need no checks. Where a binary operation meets a
 * scalar and a vector of one dtype, the scalar is splatted. Integer constants fold, as do x+0, x*1, x*0,
 * select on constants, and arguments with lo == hi. */
typedef struct hn_kb hn_kb;

/** NULL when out of memory (every call takes NULL). name is copied. */
hn_kb *hn_kb_new(hn_arena *a, const char *name);
void hn_kb_flag(hn_kb *b, hn_kfunc_flag flag);
/** Close, verify, and yield the program, which lives in the builder's arena. */
hone_status hn_kb_finish(hn_kb *b, hn_kfunc *ret, hn_diag *dg);

/** Parameter buffers, in calling order; each yields a buffer number. */
int hn_kb_in(hn_kb *b, const char *name, hn_dtype t);
int hn_kb_out(hn_kb *b, const char *name, hn_dtype t); /* may be read as well */
/** Facts about a buffer; call before its first use. align_bytes: power of two. */
void hn_kb_align(hn_kb *b, int buf, int align_bytes);
void hn_kb_tail(hn_kb *b, int buf, int tail_bytes);
/** This buffer may share storage with every other one marked so (in-place operation). */
void hn_kb_alias(hn_kb *b, int buf);
/** Scratch array of `elems` elements. */
int hn_kb_scratch(hn_kb *b, const char *name, hn_dtype t, hn_kext elems);
/** Constant table; data is copied. */
int hn_kb_table(hn_kb *b, const char *name, hn_dtype t, const void *data, int64_t elems);
int hn_kb_shared(hn_kb *b, const char *name, hn_dtype t, int64_t elems); /* gpu */

/** An int64 argument within [lo,hi] and a multiple of div. */
hn_kv hn_kb_arg(hn_kb *b, const char *name, int64_t lo, int64_t hi, int64_t div);
/** The number of an argument, for hn_kext; -1 when it folded to a constant or is something else. */
int hn_kb_arg_no(const hn_kb *b, hn_kv arg);
/** ceil(v / div) as an extent; v a constant or an argument. */
hn_kext hn_kb_ext(hn_kb *b, hn_kv v, int64_t div);

/* types of values */
hn_ktype hn_kb_type(const hn_kb *b, hn_kv v);
hn_dtype hn_kb_dtype(const hn_kb *b, hn_kv v);
int hn_kb_lanes(const hn_kb *b, hn_kv v);
bool hn_kb_is_const(const hn_kb *b, hn_kv v, int64_t *ret); /* integer or bool constants */

/* constants */
hn_kv hn_kb_i(hn_kb *b, int64_t v);                               /* i64 */
hn_kv hn_kb_f(hn_kb *b, float v);                                 /* f32 */
hn_kv hn_kb_int(hn_kb *b, hn_dtype t, int lanes, int64_t v);      /* wraps to t */
hn_kv hn_kb_float(hn_kb *b, hn_dtype t, int lanes, double v);     /* f32 or f64; rounds to t */
hn_kv hn_kb_bits(hn_kb *b, hn_dtype t, int lanes, uint64_t bits); /* any type from its bits */
hn_kv hn_kb_like(hn_kb *b, hn_kv v, double x);                    /* x in v's type, ints included */

/* structure */
hn_kv hn_kb_parallel(hn_kb *b, hn_kext extent);              /* index 0, 1, ...; at top level, once */
hn_kv hn_kb_for(hn_kb *b, hn_kv lo, hn_kv hi, int64_t step); /* step > 0; index < hi */
hn_kv hn_kb_for_kind(hn_kb *b, hn_kfor kind, hn_kv lo, hn_kv hi, hn_kv step);
hn_kv hn_kb_each(hn_kb *b, hn_kv lo, hn_kv hi, int64_t step); /* as hn_kb_for; iterations in any order */
hn_kv hn_kb_forn(hn_kb *b, hn_kv n);                  /* 0 .. n-1 */
hn_kv hn_kb_fori(hn_kb *b, int64_t n);                /* 0 .. n-1, literal */
hn_kv hn_kb_grid(hn_kb *b, int axis, hn_kext extent); /* gpu: block index along x, y or z (0..2) */
hn_kv hn_kb_threads(hn_kb *b, int axis, int64_t n);   /* gpu: thread index; innermost loops, n literal */
void hn_kb_loop(hn_kb *b);                            /* until hn_kb_break_if */
void hn_kb_break_if(hn_kb *b, hn_kv cond);            /* innermost for or loop */
void hn_kb_if(hn_kb *b, hn_kv cond);
void hn_kb_else(hn_kb *b);
void hn_kb_end(hn_kb *b); /* closes for, loop, if */

/* mutable variables */
hn_kvar hn_kb_var(hn_kb *b, hn_kv init);
hn_kv hn_kb_get(hn_kb *b, hn_kvar v);
void hn_kb_set(hn_kb *b, hn_kvar v, hn_kv x);

/* memory: index is i64, in elements of the buffer's dtype */
hn_kv hn_kb_load(hn_kb *b, int buf, hn_kv index, int lanes);
/** mask: bool of `lanes`, or HN_KV_NONE. Lanes that are off read as 0 and touch nothing. */
hn_kv hn_kb_loadm(hn_kb *b, int buf, hn_kv index, int lanes, hn_kv mask);
/** One element in every lane. */
hn_kv hn_kb_load_splat(hn_kb *b, int buf, hn_kv index, int lanes);
/** Bits of type t at the address of element `index`, whatever the buffer's dtype: 4 bytes of an i8 buffer as
 * i32, u16 of f16. */
hn_kv hn_kb_load_as(hn_kb *b, int buf, hn_kv index, hn_dtype t, int lanes, hn_kv mask);
/** The same, at a place that is a multiple of all it reads. */
hn_kv hn_kb_load_as_aligned(hn_kb *b, int buf, hn_kv index, hn_dtype t, int lanes);
/** Elements index, index+stride, ...; stride is an i64 value (literal 1 becomes a plain load, 0 a splat). */
hn_kv hn_kb_load_strided(hn_kb *b, int buf, hn_kv index, hn_kv stride, int lanes, hn_kv mask);
/** index: i32 or i64 vector. */
hn_kv hn_kb_gather(hn_kb *b, int buf, hn_kv index, hn_kv mask);
void hn_kb_store(hn_kb *b, int buf, hn_kv index, hn_kv v);
void hn_kb_storem(hn_kb *b, int buf, hn_kv index, hn_kv v, hn_kv mask);
void hn_kb_store_as(hn_kb *b, int buf, hn_kv index, hn_kv v,
                    hn_kv mask); /* bits of v, whatever the buffer's dtype */
void hn_kb_store_stream(hn_kb *b, int buf, hn_kv index, hn_kv v);
void hn_kb_store_strided(hn_kb *b, int buf, hn_kv index, hn_kv stride, hn_kv v, hn_kv mask);
void hn_kb_scatter(hn_kb *b, int buf, hn_kv index, hn_kv v, hn_kv mask);
/** locality 3: nearest cache ... 0: stream. May point anywhere. */
void hn_kb_prefetch(hn_kb *b, int buf, hn_kv index, int locality, bool for_write);
void hn_kb_barrier(hn_kb *b); /* gpu: every thread of the block must come by */
/** gpu: x of the thread whose index within the warp of 32 is this one's, xor mask or plus distance (own value
 * past the end). The whole warp must come by. */
hn_kv hn_kb_shfl_xor(hn_kb *b, hn_kv x, int mask);
hn_kv hn_kb_shfl_down(hn_kb *b, hn_kv x, int distance);

/** gpu: copy 4, 8 or 16 bytes to shared memory without waiting; mask a bool scalar or NONE: off, zeros arrive. */
void hn_kb_copy(hn_kb *b, int to, hn_kv to_index, int from, hn_kv from_index, int bytes, hn_kv mask);
void hn_kb_commit(hn_kb *b);
/** gpu: wait for the kernels before this one: once, by every thread. Constants may be read, or begin to be copied, before. */
void hn_kb_depend(hn_kb *b);
void hn_kb_await(hn_kb *b, int groups);
/** gpu: the whole warp must come by. t: F16, BF16, F32 (as tf32), I8, U8 (of x; y is I8). */
hn_kv hn_kb_mma(hn_kb *b, hn_dtype t, hn_kv x, hn_kv y, hn_kv acc);
hn_kv hn_kb_ldmatrix(hn_kb *b, int buf, hn_kv index, int matrices, bool transposed);
/** gpu, f32: 2^x and 1/x as the processor has them (kops.def says how close). */
hn_kv hn_kb_exp2a(hn_kb *b, hn_kv x);
hn_kv hn_kb_rcpa(hn_kb *b, hn_kv x);
/** Vectors at a place that is a multiple of their size in the buffer, in the buffer's own dtype. */
hn_kv hn_kb_load_aligned(hn_kb *b, int buf, hn_kv index, int lanes);
void hn_kb_store_aligned(hn_kb *b, int buf, hn_kv index, hn_kv v);

/* arithmetic (kops.def says what each means) */
hn_kv hn_kb_bin(hn_kb *b, hn_kop op, hn_kv x, hn_kv y); /* ADD .. MAXR, AND .. SHR, MULHI, EQ .. GE */
hn_kv hn_kb_un(hn_kb *b, hn_kop op, hn_kv x);           /* NEG .. TRUNC, NOT, CLZ, POPCNT, RADD .. ROR */
hn_kv hn_kb_add(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_sub(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_mul(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_div(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_min(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_max(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_neg(hn_kb *b, hn_kv x);
hn_kv hn_kb_abs(hn_kb *b, hn_kv x);
hn_kv hn_kb_sqrt(hn_kb *b, hn_kv x);
hn_kv hn_kb_and(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_or(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_not(hn_kb *b, hn_kv x);
hn_kv hn_kb_fma(hn_kb *b, hn_kv x, hn_kv y, hn_kv z); /* x*y + z */
hn_kv hn_kb_addi(hn_kb *b, hn_kv x, int64_t y);       /* any integer x */
hn_kv hn_kb_muli(hn_kb *b, hn_kv x, int64_t y);
hn_kv hn_kb_shl(hn_kb *b, hn_kv x, int n);
hn_kv hn_kb_shr(hn_kb *b, hn_kv x, int n);
hn_kv hn_kb_eq(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_ne(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_lt(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_le(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_gt(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_ge(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_select(hn_kb *b, hn_kv cond, hn_kv x, hn_kv y);
/** Index arithmetic: x >= 0 and y > 0 are promised, which is cheaper than signed division. i64. */
hn_kv hn_kb_idiv(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_imod(hn_kb *b, hn_kv x, hn_kv y);
/** Any integers: quotient toward minus infinity; remainder with the divisor's sign. */
hn_kv hn_kb_floordiv(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_floormod(hn_kb *b, hn_kv x, hn_kv y);
/** sum of index[i] * stride[i]; i64. */
hn_kv hn_kb_index(hn_kb *b, int n, const hn_kv *index, const int64_t *stride);

/* conversion and lanes */
hn_kv hn_kb_cast(hn_kb *b, hn_kv x, hn_dtype t);
/** As cast from a float that is known to fit t; undefined otherwise. */
hn_kv hn_kb_cast_in_range(hn_kb *b, hn_kv x, hn_dtype t);
/** Float to a narrower int clamped to its range, nearest even: what QuantizeLinear does. NaN goes to the
 * lower end for 8 and 16 bits. */
hn_kv hn_kb_cast_rint(hn_kb *b, hn_kv x, hn_dtype t);
hn_kv hn_kb_bitcast(hn_kb *b, hn_kv x, hn_dtype t, int lanes);
hn_kv hn_kb_splat(hn_kb *b, hn_kv x, int lanes); /* itself when it has these lanes already */
hn_kv hn_kb_ramp(hn_kb *b, hn_kv base, int64_t step, int lanes);
hn_kv hn_kb_extract(hn_kb *b, hn_kv x, int lane);
hn_kv hn_kb_insert(hn_kb *b, hn_kv x, hn_kv scalar, int lane);
hn_kv hn_kb_shuffle(hn_kb *b, hn_kv x, hn_kv y, const int *lane, int lanes);
hn_kv hn_kb_concat(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_slice(hn_kb *b, hn_kv x, int first, int lanes);
hn_kv hn_kb_unhalf(hn_kb *b, hn_kv bits, hn_dtype half); /* u16 to f32 */
hn_kv hn_kb_half(hn_kb *b, hn_kv x, hn_dtype half);      /* f32 to u16 */
/** What storing x as t (f16, bf16) and loading it again yields; x f32. */
hn_kv hn_kb_round_to(hn_kb *b, hn_kv x, hn_dtype t);
/** Lanes i with first + i < n; i64 scalars in, bool of `lanes` out. */
hn_kv hn_kb_tail_mask(hn_kb *b, hn_kv first, hn_kv n, int lanes);
hn_kv hn_kb_dot4(hn_kb *b, hn_kv acc, hn_kv u8, hn_kv i8);
hn_kv hn_kb_dot2(hn_kb *b, hn_kv acc, hn_kv x, hn_kv y);
hn_kv hn_kb_maddubs(hn_kb *b, hn_kv u8, hn_kv i8);
hn_kv hn_kb_dot2bf(hn_kb *b, hn_kv acc, hn_kv x, hn_kv y);

/* ---- gpu form of a program for the CPU ---- */
enum { HN_KGRID_MAX_SCRATCH = 8 };

/** Scratch of the CPU's program as a parameter buffer of the gpu's: copies * elems elements. */
typedef struct hn_kgrid_scratch {
    hn_kext elems; /* of one copy */
    hn_dtype dtype;
    int64_t copies;
} hn_kgrid_scratch;

typedef struct hn_kgrid {
    hn_kfunc func;
    int n_scratch; /* parameters after the program's own, in this order */
    hn_kgrid_scratch scratch[HN_KGRID_MAX_SCRATCH];
} hn_kgrid;

/**
 * Turn a program with a parallel loop, or none, into one with blocks and threads.
 *
 * Trips of the parallel loop become blocks; EACH loops inside are dealt out to the threads of a block, several
 * trips share a block where those loops are short, several blocks share a trip where they are long. Without
 * EACH loops, and where a trip reads what it wrote, a thread runs a whole trip.
 *
 * Owns:   *ret lives in `a`
 * Units:  max_threads: threads that may keep a copy of the scratch
 * Errors: HONE_E_UNSUPPORTED the program is for a gpu already, or has too many scratch buffers
 */
hone_status hn_kfunc_to_grid(hn_arena *a, const hn_kfunc *f, int64_t max_threads, hn_kgrid *ret, hn_diag *dg);
/** Blocks of a gpu program for these arguments: the product along x, y and z. */
int64_t hn_kfunc_blocks(const hn_kfunc *f, const int64_t *arg);
static inline bool hn_kfunc_is_gpu(const hn_kfunc *f)
{
    return f->threads[0] > 0;
}

/* ---- ready-made loops ---- */
/** Body of a vector loop: elements [i, i+lanes) of which `mask` are live (HN_KV_NONE: all of them). */
typedef void (*hn_kb_body)(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user);
typedef enum hn_ktail {
    HN_KTAIL_MASK,   /* one masked vector; cheap for 4- and 8-byte elements, and for all with AVX-512 */
    HN_KTAIL_SCALAR, /* one lane at a time */
} hn_ktail;
/** Cover [lo,hi) by vectors of `lanes`, the rest by the tail, as EACH loops; none is emitted where the trip count is a known
 * multiple. */
void hn_kb_vector_loop(hn_kb *b, hn_kv lo, hn_kv hi, int lanes, hn_ktail tail, hn_kb_body body, void *user);

/* ---- functions, expanded into the program: no call, any lanes, f32 and f64, every special value right ----
 */
typedef enum hn_kmath {
#define X(name, number, text, ulp32, ulp64) HN_KMATH_##name = number,
#include "kir/kmath.def"
#undef X
} hn_kmath;
hn_kv hn_kb_math(hn_kb *b, hn_kmath fn, hn_kv x);
hn_kv hn_kb_pow(hn_kb *b, hn_kv x, hn_kv y);
/** C's fmod (sign of x), exact; loops. The floor form has the sign of y, as Python's %. */
hn_kv hn_kb_fmod(hn_kb *b, hn_kv x, hn_kv y);
hn_kv hn_kb_floor_fmod(hn_kb *b, hn_kv x, hn_kv y);
const char *hn_kmath_name(hn_kmath fn);
/** Stated error bound in units in the last place. */
double hn_kmath_ulp(hn_kmath fn, hn_dtype t);

#endif
