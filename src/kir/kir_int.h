/* Inside src/kir: the builder's state, lane arithmetic shared by folding and interpreter, the type rules. */
#ifndef HN_KIR_KIR_INT_H
#define HN_KIR_KIR_INT_H

#include "kir/kir.h"

enum { HN_KIR_MAX_LANES = 64, HN_KIR_MAX_DEPTH = 64 };

struct hn_kb {
    hn_arena *arena;
    const char *name;
    uint32_t flags;
    HN_VEC(hn_kins) ins;
    HN_VEC(hn_kbuf) buf;
    HN_VEC(hn_karg) arg;
    HN_VEC(int32_t) pool;
    HN_VEC(uint8_t) data;
    HN_VEC(char) names;
    int32_t open[HN_KIR_MAX_DEPTH]; /* open blocks, outermost first */
    int depth;
    int32_t parallel_at;
    hn_kext parallel, grid[3];
    int32_t threads[3];
    int32_t n_param;
    char error[256]; /* "" while none */
};

/** Keep the first mistake. */
void hn_kb_fail(hn_kb *b, const char *fmt, ...) HN_PRINTF(2, 3);
/** Append one instruction after checking its types; HN_KV_NONE on a mistake. */
hn_kv hn_kb_emit(hn_kb *b, hn_kins x);
const hn_kins *hn_kb_ins(const hn_kb *b, hn_kv v); /* NULL unless v is an instruction */
/** An extent as a value, from its own formula. */
hn_kv hn_kb_extent_value(hn_kb *b, const hn_kext *e);
/** An instruction with every operand absent. */
hn_kins hn_kins_make(hn_kop op, hn_ktype t);
hn_ktype hn_ktype_make(hn_dtype t, int lanes);

/** The program as it stands, for checks while building. */
hn_kfunc hn_kb_view(const hn_kb *b);

/** NULL when the instruction's types, flags, literals and buffer rights are right, else what is wrong. No
 * scopes. */
const char *hn_kir_check(const hn_kfunc *f, const hn_kins *x);
/** How many of a[] an operation must have, and how many more it may have (a mask). */
int hn_kir_n_operands(int op, int *ret_optional);
bool hn_kir_has_value(int op);
/** Can the dtype be computed with (not only stored)? */
bool hn_kir_is_value_dtype(int dtype);
/** The dtype that loading this storage yields without RAW. */
hn_dtype hn_kir_loaded(int storage);

/* ---- lanes: 64 bits each. Ints sign- or zero-extended from their width, floats their bits, bool 0 or 1.
 * ---- */
uint64_t hn_klane_norm(int dtype, uint64_t v); /* wraps an integer to its width and extends it again */
uint64_t hn_klane_bin(int op, int dtype, uint64_t x, uint64_t y);
uint64_t hn_klane_un(int op, int dtype, uint64_t x);
uint64_t hn_klane_fma(int dtype, uint64_t x, uint64_t y, uint64_t z); /* fused */
uint64_t hn_klane_cast(int from, int to, uint64_t x);
uint64_t hn_klane_from_f64(int dtype, double v); /* rounds; ints truncate */
double hn_klane_f64(int dtype, uint64_t x);
uint16_t hn_half_from_f32(int half, float v);
float hn_half_to_f32(int half, uint16_t bits);

/* ---- what a warp does together (warp.c) ---- */
/** All threads of the warp must come by. */
bool hn_kir_by_warp(int op);
/** MMA: operands and results of the 32 threads. */
void hn_kwarp_mma(int dtype, const uint64_t *in[32][3], uint64_t out[32][4]);
/** LDMATRIX: the word of thread t of an 8x8 matrix of 16-bit elements. */
uint32_t hn_kwarp_matrix_word(const uint8_t *const row[8], int t, bool transposed);

static inline float hn_lane_f32(uint64_t x)
{
    union {
        uint32_t u;
        float f;
    } v = { (uint32_t)x };
    return v.f;
}
static inline uint64_t hn_f32_lane(float f)
{
    union {
        float f;
        uint32_t u;
    } v = { f };
    return v.u;
}
static inline double hn_lane_f64(uint64_t x)
{
    union {
        uint64_t u;
        double f;
    } v = { x };
    return v.f;
}
static inline uint64_t hn_f64_lane(double f)
{
    union {
        double f;
        uint64_t u;
    } v = { f };
    return v.u;
}

#endif
