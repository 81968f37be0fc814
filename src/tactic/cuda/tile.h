/* Tiles of a matrix product on a GPU: a block of 16 by 16 threads, operands through shared memory, sums in registers. */
#ifndef HN_TACTIC_CUDA_TILE_H
#define HN_TACTIC_CUDA_TILE_H

#include "tactic/lower.h"

enum { HN_TILE_SIDE = 16, HN_TILE_DEPTH = 16, HN_TILE_MAX = 8 /* results of a thread along one side */ };

/** y[g][m][n] = sum over k of a[g][m][k] * b[g][k][n]; what a and b are, and where y goes, the callbacks say. */
typedef struct hn_tile {
    hn_lower *l;
    hn_dim groups, m, n, k;
    int bm, bn;      /* results of a block: multiples of HN_TILE_SIDE */
    bool a_m_dense;  /* neighbouring threads read neighbouring m of a, rather than k */
    bool b_k_dense;  /* neighbouring k of b, rather than n */
    void *user;
    /** Element in f32; `ok` false: outside, touch nothing. g, m, k, n are i64. */
    hn_kv (*a)(void *user, hn_kv g, hn_kv m, hn_kv k, hn_kv ok);
    hn_kv (*b)(void *user, hn_kv g, hn_kv k, hn_kv n, hn_kv ok);
    /** One result, inside. */
    void (*store)(void *user, hn_kv g, hn_kv m, hn_kv n, hn_kv sum);
} hn_tile;

/** Emit the kernel's whole body. */
void hn_tile_emit(hn_kb *b, hn_tile *t, hn_symtab *syms);

/** The parameters "bm" and "bn", p[0] and p[1], and which of them are legal: slots of a tactic. Cost of the padded
 *  product. */
void hn_tile_space(const hn_region *r, const hn_target *t, hn_space *ret);
bool hn_tile_legal(const hn_region *r, const hn_target *t, const int64_t *p);
double hn_tile_cost(const hn_target *t, const int64_t *p, double groups, double m, double n, double k, double bytes);

#endif
