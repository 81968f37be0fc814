/*
 * The plan: everything that was decided, as flat arrays of plain data with indices. What is written is what
 * is run: the reader checks the arrays once and the runtime walks them in place. docs/engine-format.md
 * specifies the bytes.
 *
 * Numbers: every size, extent, dim, offset and kernel argument that may depend on shapes is the index of an
 * int64 *register*. A constant is a register that nothing writes; its value is in reg_init. A context has its
 * own registers, copied from reg_init.
 *
 * Steps: one array in program order. A block is a run of steps; IF and LOOP are followed directly by the
 * steps of their blocks (IF: n_then steps, then n_else; LOOP: n_body), so a step's index is its place in
 * time: lifetimes are step indices.
 */
#ifndef HN_ENGINE_PLAN_H
#define HN_ENGINE_PLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/hash.h"

#define HN_NO UINT32_MAX /* "none" where an index may be absent */

enum {
    HN_TAIL_BYTES = 64,     /* kernels may read, never write, this far past a buffer the planner made */
    HN_PLAN_MAX_RANK = 10,  /* as HN_MAX_RANK */
    HN_PLAN_MAX_DEPTH = 32, /* nesting of IF and LOOP */
    HN_PLAN_MAX_ARGS = 256, /* buffers, and int64 arguments, of one kernel call */
    HN_PLAN_MAX_STREAMS = 8,
};

/* ---- shape program ---- */
/* Numbers reach files. */
typedef enum hn_sop {
    HN_S_INPUT_DIM = 1, /* dst = extent of axis b of I/O entry a; only in the prefix */
    HN_S_MOVE = 2,      /* dst = a */
    HN_S_ADD = 3,       /* arithmetic traps on overflow: HONE_E_SHAPE */
    HN_S_SUB = 4,
    HN_S_MUL = 5,
    HN_S_FLOORDIV = 6, /* toward minus infinity; by 0: HONE_E_SHAPE */
    HN_S_MOD = 7,      /* sign of the divisor; by 0: HONE_E_SHAPE */
    HN_S_MIN = 8,
    HN_S_MAX = 9,
    HN_S_EQ = 10, /* 1 or 0 */
    HN_S_LT = 11,
    HN_S_SELECT = 12,   /* dst = a != 0 ? b : c */
    HN_S_CEILDIV = 13,  /* toward plus infinity; by 0: HONE_E_SHAPE */
    HN_S_CHECK_EQ = 32, /* checks: HONE_E_SHAPE unless a == b; c is the string that names what disagrees */
    HN_S_CHECK_LE = 33, /* unless a <= b */
} hn_sop;

typedef struct hn_sinst {
    uint32_t op;      /* hn_sop */
    uint32_t dst;     /* register; 0 for checks */
    uint32_t a, b, c; /* registers, except as said above */
} hn_sinst;

/* ---- inputs, outputs, profiles ---- */
enum { HN_IO_INPUT = 1, HN_IO_OUTPUT = 2 };

typedef struct hn_plan_io {
    uint32_t name;  /* string */
    uint32_t flags; /* HN_IO_INPUT or HN_IO_OUTPUT */
    uint32_t dtype; /* hn_dtype */
    uint32_t rank;
    uint32_t dim[HN_PLAN_MAX_RANK]; /* registers. Inputs: a constant is a fixed extent, any other register is
                                       the symbol's */
    uint32_t buf;                   /* of kind HN_BUF_INPUT or HN_BUF_OUTPUT */
    uint32_t hint;                  /* inputs: which values make sense, when a caller has to make some up */
} hn_plan_io;

/* Values of hint; HN_HINT_BELOW + n stands for indices from 0 to n. Numbers reach files. */
enum { HN_HINT_NONE = 0, HN_HINT_ONES = 1, HN_HINT_BELOW = 2 };

/** An input symbol: what profiles bound. reg must be written by the prefix; io and axis say where the caller
 * meets it. */
typedef struct hn_plan_sym {
    uint32_t name; /* string: "batch" */
    uint32_t reg;
    uint32_t io, axis;
    int64_t usual; /* the extent that kernels were chosen for, at which every size is there */
} hn_plan_sym;

/** min <= opt <= max, inclusive. Profile p of symbol s is bound[p * n_sym + s]. No profile: any size runs. */
typedef struct hn_plan_bound {
    int64_t min, opt, max;
} hn_plan_bound;

/* ---- buffers ---- */
/* Numbers reach files. */
typedef enum hn_buf_kind {
    HN_BUF_WEIGHT = 1, /* read-only bytes of weight `ref`; constants too */
    HN_BUF_INPUT = 2,  /* the caller's memory for I/O entry `ref`; no step writes it (in place: bind it as an
                          output too) */
    HN_BUF_OUTPUT = 3, /* the caller's or the context's memory for I/O entry `ref` */
    HN_BUF_ARENA = 4,  /* planned: `offset` when the plan is static, else placed when shapes are set */
    HN_BUF_HEAP = 5,   /* sized by ALLOC and APPEND while running; retained by the context between runs */
    HN_BUF_PART = 6,   /* bytes [offset_reg, offset_reg + size) of buffer `ref`, itself not a PART: views,
                          in-place results */
    HN_BUF_FAULT = 7,  /* HN_FAULT_BYTES of the context's, zero until a launch tells of an index outside its axis
                          (core.h): the run fails then */
} hn_buf_kind;

enum {
    HN_BUF_GROWS = 1, /* OUTPUT: its size is known only while running; ALLOC or APPEND sizes it (context-owned
                         unless bound) */
};

typedef struct hn_plan_buf {
    uint32_t kind; /* hn_buf_kind */
    uint32_t flags;
    uint32_t size;       /* register: bytes. HEAP and GROWS: the register ALLOC reads */
    uint32_t align;      /* bytes, power of two, 1..4096; bound memory is not held to it */
    uint32_t ref;        /* weight, I/O entry or buffer, by kind; HN_NO for ARENA and HEAP */
    uint32_t offset_reg; /* PART: register; else HN_NO */
    /* ARENA: steps during which the bytes matter, inclusive; loop-carried ones span the loop */
    uint32_t first, last;
    uint32_t name; /* string: the tensor's, for errors and profiles */
    uint32_t pad;
    uint64_t offset; /* ARENA in a static plan: bytes from the arena's start, below arena_bytes; else 0 */
} hn_plan_buf;

/* ---- weights ---- */
enum { HN_WEIGHT_EXTERNAL = 1 }; /* bytes lie in the store beside the engine, in the file named by key */

typedef struct hn_plan_weight {
    hn_digest source; /* of the model's bytes */
    hn_digest key;    /* hn_weight_key(source, recipe): names the packed bytes */
    uint64_t sum;     /* xxh3 of the packed bytes */
    uint64_t offset;  /* in the weight section, 64-byte aligned; 0 when external */
    uint64_t bytes;
    uint32_t recipe; /* string: how the bytes were packed, "" for as they are */
    uint32_t flags;
} hn_plan_weight;

/* ---- kernels ---- */
typedef struct hn_plan_kernel {
    uint64_t entry;        /* offset of the first instruction in the code section */
    uint32_t n_buf, n_arg; /* what every call must pass */
    uint32_t name;         /* string: the tactic's name with its parameters */
    uint32_t pad;
} hn_plan_kernel;

/* ---- steps ---- */
/* Numbers reach files; 16..47 are kept */
typedef enum hn_step_kind {
    HN_STEP_KERNEL = 1,
    HN_STEP_COPY = 2,   /* dst[dst_off..+bytes) = src[src_off..+bytes); may not overlap */
    HN_STEP_READ = 3,   /* reg = element of an i64, i32, u8 or bool buffer, waiting for it where the device is
                           not the host */
    HN_STEP_SHAPE = 4,  /* run a range of the shape program */
    HN_STEP_ALLOC = 5,  /* size HEAP and GROWS buffers by their size registers; contents become undefined */
    HN_STEP_APPEND = 6, /* grow dst by src's first `bytes` bytes; an ALLOC with size 0 starts it */
    HN_STEP_IF = 7, /* also guarded variants: a chain of IFs on registers that the shape program computed */
    HN_STEP_LOOP = 8,
    HN_STEP_IMAGE = 9, /* the host reads an encoded image */
} hn_step_kind;

/* What an IMAGE step computes; numbers reach files. */
enum {
    HN_IMAGE_STEP_SIZE = 1,   /* dst = height, width: i64[2] */
    HN_IMAGE_STEP_DECODE = 2, /* dst = pixels, u8[h, w, 3 or 1] */
};

/** Access bits in the buffer list of a kernel call: entry = buffer index | bits. */
#define HN_ARG_READ   0x40000000u
#define HN_ARG_WRITE  0x80000000u
#define HN_ARG_BUF(e) ((e)&0x3fffffffu)

typedef struct hn_step {
    uint32_t kind;   /* hn_step_kind */
    uint32_t origin; /* string: import paths of the nodes this came from, comma-separated */
    union {
        struct {
            uint32_t kernel;
            uint32_t buf, n_buf; /* list[buf..]: buffer index | access bits, in the kernel's order */
            uint32_t arg, n_arg; /* list[arg..]: registers */
            uint32_t extent;     /* register: trip count of the parallel loop; 0 or less: nothing to do */
            uint32_t grain;      /* trips: slices are multiples of it, except the last; >= 1 */
            uint32_t trip_ps; /* register: estimated picoseconds of one trip on one core; decides the threads.
                                 0: unknown */
            uint32_t scratch; /* register: bytes of scratch each thread needs; HN_NO: none (a null pointer) */
            uint32_t max_threads; /* 0: no limit; 1: never split */
        } kernel;
        struct {
            uint32_t dst, dst_off, src, src_off, bytes; /* buffers; registers, offsets HN_NO for 0 */
        } copy;
        struct {
            uint32_t reg, buf, elem, dtype; /* elem: register, HN_NO for 0 */
        } read;
        struct {
            uint32_t first, n; /* instructions */
        } shape;
        struct {
            uint32_t first, n; /* list[first..]: buffers */
        } alloc;
        struct {
            uint32_t dst, src, bytes; /* buffers; register */
        } append;
        struct {
            uint32_t cond; /* register: non-zero takes the first block */
            uint32_t n_then, n_else;
        } branch;
        /*
         * for (i = 0; (trip == HN_NO || i < trip) && (cond == HN_NO || cond != 0); i++) {
         *     iter = i;
         *     body;
         *     carries;
         * }
         * iter = i;
         *
         * trip and cond are read before each turn. iter_buf, where present, is an i64 scalar set to i for the
         * body and after the loop. A carry is a pair of buffers (in, out) of one kind, ARENA or HEAP, that trade places after
         * each turn: what the body wrote to `out` is what it reads from `in` next time. Readers after the
         * loop read `in`.
         */
        struct {
            uint32_t n_body;
            uint32_t trip, cond, iter; /* registers; each may be HN_NO */
            uint32_t iter_buf;         /* buffer or HN_NO */
            uint32_t carry, n_carry;   /* list[carry..]: n_carry pairs in, out */
        } loop;
        struct {
            uint32_t what;       /* HN_IMAGE_STEP_* */
            uint32_t src, bytes; /* buffer; register */
            uint32_t dst;        /* buffer */
            uint32_t order;      /* hn_image_order (src/image); DECODE alone, as h and w */
            uint32_t h, w;       /* registers; HN_NO for SIZE */
        } image;
        uint32_t word[14];
    } u;
} hn_step;

_Static_assert(sizeof(hn_step) == 64, "a step is one cache line");
_Static_assert(sizeof(hn_sinst) == 20 && sizeof(hn_plan_io) == 64 && sizeof(hn_plan_buf) == 48,
               "file layout");
_Static_assert(sizeof(hn_plan_weight) == 64 && sizeof(hn_plan_kernel) == 24 && sizeof(hn_plan_sym) == 24,
               "file layout");

enum {
    HN_PLAN_STATIC = 1, /* every ARENA size is constant and offset is filled in; arena_bytes holds */
    HN_PLAN_STREAMS_AT = 8, /* bits 8 to 11: streams that a recorded run spreads over; 0 as 1 */
    HN_PLAN_STREAMS_MASK = 15 << HN_PLAN_STREAMS_AT,
};

/** Views into arrays owned by whoever made the plan (an engine file, or an arena). */
typedef struct hn_plan {
    uint32_t flags;
    uint32_t target_arch; /* hn_arch */
    uint64_t target_feat; /* hn_feat bits the code needs */
    uint64_t arena_bytes; /* static plans; tail included */
    uint32_t n_prefix;    /* instructions [0, n_prefix) run when shapes are set */
    uint32_t n_reg, n_inst, n_io, n_sym, n_profile, n_buf, n_weight, n_kernel, n_step, n_list;
    size_t n_string; /* bytes */
    const int64_t *reg_init;
    const hn_sinst *inst;
    const hn_plan_io *io;
    const hn_plan_sym *sym;
    const hn_plan_bound *bound; /* n_profile * n_sym */
    const hn_plan_buf *buf;
    const hn_plan_weight *weight;
    const hn_plan_kernel *kernel;
    const hn_step *step;
    const uint32_t *list;
    const char *string; /* terminated strings back to back, the first empty */
} hn_plan;

/** Streams that a run may be spread over, at least 1: steps of which one writes what the other touches keep their order. */
uint32_t hn_plan_streams(const hn_plan *p);
/** The string at an offset; "" for HN_NO. The plan must be valid. */
const char *hn_plan_str(const hn_plan *p, uint32_t at);
const char *hn_step_kind_name(uint32_t kind); /* "kernel"; "unknown" */

/**
 * Check every index, range, count, nesting, access and constant size of a plan against itself and the sizes
 * of the code and weight sections. After HONE_OK the runtime walks it without further checks of structure.
 *
 * Errors: HONE_E_FORMAT with the array and entry at fault; HONE_E_VERSION for step and instruction kinds
 *         newer than ours; HONE_E_NOMEM
 */
hone_status hn_plan_validate(const hn_plan *p, uint64_t code_bytes, uint64_t weight_bytes, hn_diag *dg);

/** Digest of what a plan does with this code: arrays and weight keys, never names, origins or manifest. Two
 * engines with one payload digest are one candidate. */
hn_digest hn_plan_payload_digest(const hn_plan *p, const void *code, size_t code_bytes);

#endif
