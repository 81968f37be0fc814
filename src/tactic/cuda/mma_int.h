/* Inside mma.c and mma_cost.c: a block's tile, and a kernel being written. */
#ifndef HN_TACTIC_CUDA_MMA_INT_H
#define HN_TACTIC_CUDA_MMA_INT_H

#include "tactic/cuda/mma_bytes.h"

enum {
    PAD = 8,        /* elements between rows of sums in shared memory, for the banks' sake */
    MAX_TILES = 16, /* of a warp along one side */
    MAX_SLOT = 16,  /* chunks of one operand that a thread copies in a step */
    MAX_STAGES = 4,
    MAX_BATCH = 4,
    MANY_NODES = 16, /* fused: shorter runs keep the code short */
};

typedef struct tile {
    int bm, bn, bk; /* bk in bytes */
    int stages, split, wm, wn /* warps along each side */, mi, ni /* tiles of a warp */;
    int threads, stage_bytes, shared_bytes;
} tile;

/** False where the warps cannot share the block evenly. */
bool hn_mma_tile_of(const int64_t *p, tile *ret);

typedef struct side {
    const hn_mma_operand *op;
    bool turned;
    int rows, line_bytes, first_word, slots;
    hn_kv word[MAX_SLOT], row[MAX_SLOT], k[MAX_SLOT], held[MAX_SLOT];
} side;

typedef struct kernel {
    hn_mma *d;
    hn_kb *b;
    tile w;
    int shared, parts, step_elems;
    bool even_n;
    side side[2];
    hn_kv m, n, groups; /* extents */
    hn_kv g, m0, n0, part, step_first, step_end;
    hn_kv tid, lane, warp_m, warp_n;
    hn_kv fill; /* words of a chunk that stands for what a lacks, or NONE: zeros */
    hn_kvar acc[MAX_TILES][MAX_TILES];
    hn_kv ones; /* of a tile whose sums are those of rows */
    hn_kvar row_sum[MAX_TILES];
} kernel;

/* Neighbouring results on their way out. */
typedef struct run {
    hn_kidx idx;
    hn_kv x[64];
} run;

#endif
