/* The builder's state, shared by plan_builder.c and plan_finish.c. */
#ifndef HN_ENGINE_PLAN_BUILDER_INT_H
#define HN_ENGINE_PLAN_BUILDER_INT_H

#include "engine/plan_builder.h"

typedef enum hn_pb_reg_kind {
    REG_CONST,
    REG_FRESH,  /* from hn_pb_reg, not written yet */
    REG_PREFIX, /* written by the prefix */
    REG_VAR,    /* written by steps */
    REG_BAD,
} hn_pb_reg_kind;

typedef struct hn_pb_reg_info {
    int64_t init;
    hn_pb_reg_kind kind;
} hn_pb_reg_info;

typedef enum hn_pb_block_kind { BLOCK_THEN, BLOCK_ELSE, BLOCK_BODY } hn_pb_block_kind;

typedef struct hn_pb_block {
    hn_pb_block_kind kind;
    int step;  /* the IF or LOOP */
    int first; /* first step inside */
} hn_pb_block;

/* Open-addressing table from hashes to indices; slot 0 is empty, else index + 1. */
typedef struct hn_pb_index {
    uint32_t *slot;
    uint64_t *hash;
    uint32_t n, cap;
} hn_pb_index;

struct hn_pb {
    hn_arena *arena;
    uint32_t target_arch;
    uint64_t target_feat;
    HN_VEC(char) string;
    HN_VEC(hn_pb_reg_info) reg;
    HN_VEC(hn_sinst) prefix;
    HN_VEC(hn_sinst) segment; /* SHAPE steps index it until hn_pb_finish puts it behind the prefix */
    HN_VEC(hn_plan_io) io;
    HN_VEC(hn_plan_sym) sym;
    HN_VEC(hn_plan_bound) bound;
    HN_VEC(hn_plan_buf) buf;
    HN_VEC(hn_plan_kernel) kernel;
    HN_VEC(hn_step) step;
    HN_VEC(uint32_t) list;
    hn_pb_index strings, consts, insts, kernels;
    uint32_t n_profile;
    unsigned place_orders; /* 0: all */
    uint32_t n_stream;     /* 0 as 1 */
    hn_pb_block block[HN_PLAN_MAX_DEPTH];
    int depth;          /* of block; -1 outside any */
    bool shape_open;    /* the last step is a SHAPE that may take more */
    const char *misuse; /* first misuse of the interface; hn_pb_finish raises it */
    hn_step spare;      /* written to when out of memory */
};

/** After lifetimes: those of buffers whose users may run beside later steps grow. */
void hn_pb_keep_apart(hn_pb *b);

#endif
