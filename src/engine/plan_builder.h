/*
 * Makes plans: appends to growing arrays, interns constants and strings, computes lifetimes, places static
 * arenas.
 *
 *     hn_pb *b = hn_pb_new(arena);
 *     const uint32_t n = hn_pb_reg(b);                          a register for a symbol
 *     const uint32_t x = hn_pb_input(b, "x", HN_F32, 2, (uint32_t[]){ n, hn_pb_const(b, 64) });
 *     hn_pb_input_dim(b, n, x, 0);                              n = x.dim[0]
 *     ...
 *     HN_TRY(hn_pb_finish(b, &plan, dg));
 *
 * Out of memory shows as the arena's sticky bit; appenders then return 0 and hn_pb_finish raises.
 */
#ifndef HN_ENGINE_PLAN_BUILDER_H
#define HN_ENGINE_PLAN_BUILDER_H

#include "base/arena.h"
#include "engine/plan.h"

typedef struct hn_pb hn_pb;

hn_pb *hn_pb_new(hn_arena *a);
void hn_pb_target(hn_pb *b, uint32_t arch, uint64_t feat);

/* ---- strings and registers ---- */
uint32_t hn_pb_str(hn_pb *b, const char *s); /* interned; NULL and "" are 0 */
uint32_t hn_pb_const(hn_pb *b, int64_t v);   /* interned register that nothing may write */
/** Fresh register for what shapes alone decide: write it once, by hn_pb_input_dim or hn_pb_calc_to, before it
 * is read. */
uint32_t hn_pb_reg(hn_pb *b);
/** Fresh register that steps may write any number of times; each run starts it at `init`. What is computed
 * from it is computed again wherever it is asked for. */
uint32_t hn_pb_var(hn_pb *b, int64_t init);

/* ---- shape program ---- */
/**
 * dst = op(a, b, c) in a fresh register; unused operands 0. Folds constants and reuses equal instructions.
 * Goes to the prefix (run when shapes are set) whenever its operands are known there, at any time, else
 * becomes part of a SHAPE step here.
 */
uint32_t hn_pb_calc(hn_pb *b, hn_sop op, uint32_t x, uint32_t y, uint32_t z);
/** As hn_pb_calc but into a given register: in a SHAPE step here for one from hn_pb_var, in the prefix for
 * one from hn_pb_reg. */
void hn_pb_calc_to(hn_pb *b, uint32_t dst, hn_sop op, uint32_t x, uint32_t y, uint32_t z);
/** dst = extent of an input's axis, in the prefix. */
void hn_pb_input_dim(hn_pb *b, uint32_t dst, uint32_t io, uint32_t axis);
/** HN_S_CHECK_EQ or HN_S_CHECK_LE with what to say when it fails ("input \"x\" axis 1 and input \"y\" axis
 * 0"). In the prefix where that is possible; inside a block, where the block runs. */
void hn_pb_check(hn_pb *b, hn_sop op, uint32_t x, uint32_t y, const char *what);
/** True when the register is known once shapes are set: a constant, or written by the prefix. */
bool hn_pb_in_prefix(const hn_pb *b, uint32_t reg);

/* ---- I/O, symbols, profiles ---- */
/** dims are registers; the I/O buffer is made too: hn_pb_io_buf. size: register of bytes, HN_NO: computed
 * from dims and dtype in the prefix (outputs whose dims are known only while running pass their own with
 * GROWS). */
uint32_t hn_pb_input(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim);
/** What made-up values of an input should be (HN_HINT_*). */
void hn_pb_input_hint(hn_pb *b, uint32_t io, uint32_t hint);
uint32_t hn_pb_output(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim);
/** An output sized while running: dims registers are written by segments; size is the byte register for
 * ALLOC. */
uint32_t hn_pb_output_grows(hn_pb *b, const char *name, uint32_t dtype, uint32_t rank, const uint32_t *dim,
                            uint32_t size);
uint32_t hn_pb_io_buf(hn_pb *b, uint32_t io);
uint32_t hn_pb_sym(hn_pb *b, const char *name, uint32_t reg, uint32_t io, uint32_t axis, int64_t usual);
/** bound: one entry per symbol, in order; all symbols must have been added. */
void hn_pb_profile(hn_pb *b, const hn_plan_bound *bound);

/* ---- buffers; sizes are registers ---- */
uint32_t hn_pb_arena_buf(hn_pb *b, const char *name, uint32_t size, uint32_t align);
uint32_t hn_pb_heap_buf(hn_pb *b, const char *name, uint32_t size);
/** What a launch tells of indices outside their axes. */
uint32_t hn_pb_fault_buf(hn_pb *b);
/** A buffer of the arena that is no part of another. */
bool hn_pb_is_arena(const hn_pb *b, uint32_t buf);
/** parent may itself be a part (offsets are added up); offset: register, HN_NO for 0. In-place results are
 * parts at 0. */
uint32_t hn_pb_part(hn_pb *b, const char *name, uint32_t parent, uint32_t offset, uint32_t size);
/** weight: index from hn_engine_writer_weight. */
uint32_t hn_pb_weight_buf(hn_pb *b, const char *name, uint32_t weight, uint64_t bytes);

/* ---- kernels and steps ---- */
/** Interned by entry. */
uint32_t hn_pb_kernel(hn_pb *b, const char *name, uint64_t entry, uint32_t n_buf, uint32_t n_arg);

typedef struct hn_pb_call {
    uint32_t kernel;
    const uint32_t *buf; /* buffer | HN_ARG_READ | HN_ARG_WRITE */
    const uint32_t *arg; /* registers */
    uint32_t n_buf, n_arg;
    uint32_t extent;  /* register; hn_pb_const(b, 1) when there is no parallel loop */
    uint32_t grain;   /* 0 means 1 */
    uint32_t trip_ps; /* register */
    uint32_t scratch; /* register or HN_NO */
    uint32_t max_threads;
    const char *origin;
} hn_pb_call;
void hn_pb_step_kernel(hn_pb *b, const hn_pb_call *c);
void hn_pb_step_copy(hn_pb *b, uint32_t dst, uint32_t dst_off, uint32_t src, uint32_t src_off,
                     uint32_t bytes);
/** Fresh variable register holding element elem (register or HN_NO) of buf; i64, i32, u8 or bool. */
uint32_t hn_pb_step_read(hn_pb *b, uint32_t buf, uint32_t elem, uint32_t dtype);
/** As hn_pb_step_read into a given register. */
void hn_pb_step_read_to(hn_pb *b, uint32_t reg, uint32_t buf, uint32_t elem, uint32_t dtype);
void hn_pb_step_alloc(hn_pb *b, const uint32_t *buf, uint32_t n);
void hn_pb_step_append(hn_pb *b, uint32_t dst, uint32_t src, uint32_t bytes);
typedef struct hn_pb_image {
    uint32_t what, src, bytes, dst, order, h, w; /* as hn_step's */
    const char *origin;
} hn_pb_image;
void hn_pb_step_image(hn_pb *b, const hn_pb_image *s);
/** if_begin, steps, if_else (always; the block may stay empty), steps, if_end. */
void hn_pb_if_begin(hn_pb *b, uint32_t cond, const char *origin);
void hn_pb_if_else(hn_pb *b);
void hn_pb_if_end(hn_pb *b);
typedef struct hn_pb_loop {
    uint32_t trip, cond, iter, iter_buf; /* each may be HN_NO; iter from hn_pb_var */
    const uint32_t *carry;               /* n_carry pairs in, out */
    uint32_t n_carry;
    const char *origin;
} hn_pb_loop;
void hn_pb_loop_begin(hn_pb *b, const hn_pb_loop *l);
void hn_pb_loop_end(hn_pb *b);

/** True when hn_pb_finish will place buffers itself: every size is known, and there are two to place. */
bool hn_pb_places(const hn_pb *b);
/** Orders in which it may place them (bits of hn_mp_order); all by default, the smallest arena wins. */
void hn_pb_place_orders(hn_pb *b, unsigned orders);

/** Two steps near each other may run at once: a run may spread over streams. */
bool hn_pb_branches(hn_pb *b);
/** Spread recorded runs over so many streams, and let buffers live until steps that may run beside their users are over. */
void hn_pb_streams(hn_pb *b, uint32_t n);

/**
 * Close the plan: lifetimes of ARENA buffers (from accesses; a buffer that a loop body may read before it
 * writes it, or that is used in and outside a loop, lives for the whole loop), static placement when all
 * sizes are constant, flags.
 *
 * Owns:   the plan's arrays live in the builder's arena. weight is empty until hn_engine_writer_finish fills
 *         its own copy
 * Errors: HONE_E_NOMEM; HONE_E_LIMIT when sizes overflow; HONE_E_INTERNAL for unbalanced blocks
 */
hone_status hn_pb_finish(hn_pb *b, hn_plan *ret, hn_diag *dg);

#endif
