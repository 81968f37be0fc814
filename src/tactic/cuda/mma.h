/* Matrix products on a GPU's matrix units: blocks of warps, operands through shared memory in stages that arrive while others are
 * multiplied, sums in registers.
 *
 * A chunk is 16 bytes: of k at one row ([row][k], rows are m of a and n of b), or of rows at one k where the operand is `turned`
 * ([k][row]). Chunks lie in shared memory where swizzling puts them, so that neither copying nor reading meets a bank twice.
 */
#ifndef HN_TACTIC_CUDA_MMA_H
#define HN_TACTIC_CUDA_MMA_H

#include "tactic/lower.h"

enum { HN_MMA_CHUNK = 16 };

/** Parameters of a tactic, in this order. */
enum { HN_MMA_BM, HN_MMA_BN, HN_MMA_BK, HN_MMA_STAGES, HN_MMA_WARPS, HN_MMA_SPLIT };

struct hn_mma_bytes;

typedef struct hn_mma_operand {
    void *user;
    int buf;     /* whose chunks are copied as they lie; -1: chunk() computes them */
    bool turned; /* for copied chunks */
    bool constant; /* nothing that runs before writes it */
    bool row_fast; /* for computed ones: neighbouring threads take neighbouring rows, rather than k */
    /** Once, before the loop over k: the place of chunk number `slot` of this thread, k apart. g: group. */
    void (*begin)(void *user, int slot, hn_kv g, hn_kv row);
    /** Element of buf where the chunk at k starts; *ok false: it is zeros. */
    hn_kv (*place)(void *user, int slot, hn_kv k, hn_kv *ok);
    /** `elems` elements from k on, f32 or bytes; zeros outside (hn_mma_bytes: or the zero point), and nothing is touched where
     *  `ok` is false. */
    hn_kv (*chunk)(void *user, hn_kv g, hn_kv row, hn_kv k, int elems, hn_kv ok);
} hn_mma_operand;

/** y[g][m][n] = sum over k of a[g][m][k] * b[g][n][k] (+ bias[n]); then whatever the region fuses behind. */
typedef struct hn_mma {
    hn_lower *l;
    const hn_region *r;
    const hn_target *t;
    hn_dtype type; /* of what is multiplied: F16, BF16, F32, which is rounded to tf32, or I8 or U8, of a alone: b is I8 */
    struct hn_mma_bytes *bytes; /* where it is bytes; sums are i32 then */
    hn_dim groups, m, n, k;
    hn_mma_operand a, b;
    const hn_value *y, *bias; /* bias: one element an n of all groups, or NULL */
    int n_axis;               /* of y: along which n runs */
    hn_dim run;               /* n that lie together there, again and again; 0: all of them */
    void *user;
    void (*index)(void *user, hn_lower *l, hn_kv g, hn_kv m, hn_kv n, hn_kv *at); /* into y */
} hn_mma;

/** Elements of a chunk. */
int hn_mma_elems(hn_dtype type);

/**
 * Emit the product, and where it is split a second launch that adds the parts.
 *
 * start() begins a kernel: it declares buffers and fills the lowering, operands and callbacks of `ret`, for launch `which`
 * (0: the product, 1: the sum of the parts, which needs no operands).
 */
typedef struct hn_mma_maker {
    void *user;
    void (*start)(void *user, hn_lower *l, int which, hn_mma *ret);
    const char *name;
} hn_mma_maker;
hone_status hn_mma_emit(const hn_mma_maker *how, const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg);

/** Constant rows stored [group][row][k] when building, k filled up with zeros to whole chunks. */
typedef struct hn_mma_rows {
    hn_lower *l;
    int64_t rows, stride; /* of a group; elements of a row */
    bool grouped;         /* every group has rows of its own */
    hn_kv base[16], live[16];
} hn_mma_rows;
/** Such rows in buffer `buf` as an operand; *rows stays in use while the kernel is emitted. */
hn_mma_operand hn_mma_stored_rows(hn_mma_rows *rows, int buf);
/** k filled up to whole chunks. */
int64_t hn_mma_row_elems(hn_dtype type, int64_t k);
/** Declare such rows of an operand as the emission's next blob; `recipe` is what tells them from others, the row length apart. */
hone_status hn_mma_add_rows(hn_emission *e, int operand, const char *recipe, hn_dtype type, int64_t rows, int64_t row, hn_diag *dg);

/** Where constant rows come from when they are stored. */
typedef struct hn_mma_source {
    const hn_data *data;
    hn_dtype type;
    uint8_t flip;        /* bits that change in every byte, of bytes */
    int64_t rows, depth; /* depth: of k, without what fills a row up */
    const void *user;
    int64_t (*at)(const void *user, int64_t row, int64_t k); /* element of the data */
} hn_mma_source;
void hn_mma_store_rows(const hn_mma_source *from, void *dst);
/** `elems` elements of v along k from `at` on, zeros past the end or where `ok` is false: a computed chunk. */
hn_kv hn_mma_read_chunk(hn_lower *l, const hn_value *v, const hn_kv *at, int k_axis, int elems, hn_kv ok);

/** Whether the root's operands 0 and 1 are both of one of the two types, and operand 1 constant weights as the model has them. */
hn_fit hn_mma_weights_fit(const hn_region *r, hn_dtype one, hn_dtype other);

/** Pixels of an image: every axis but the channels'. */
uint32_t hn_mma_pixels(const hn_value *image);
/** Its channels can be copied in chunks, `channels` of them a group. */
bool hn_mma_channels_lie(const hn_region *r, const hn_value *image, hn_dtype type, int64_t channels);

/** Extents of a product at the symbols' opt values. */
typedef struct hn_mma_size {
    hn_dtype type;
    double groups, m, n, k;
    double bytes;      /* moved at least */
    bool computed[2];  /* a, b: chunks are computed */
    bool row_sums;     /* of a, besides */
} hn_mma_size;
/** One a root op; the tactic that takes it says how large the product is. */
void hn_mma_gemm_size(const hn_region *r, hn_mma_size *ret);
void hn_mma_conv_size(const hn_region *r, hn_mma_size *ret);
void hn_mma_conv_transpose_size(const hn_region *r, hn_mma_size *ret);
/** Slots of a tactic. */
void hn_mma_space(const hn_region *r, const hn_target *t, hn_space *ret);
bool hn_mma_legal(const hn_region *r, const hn_target *t, const int64_t *p);
double hn_mma_cost(const hn_region *r, const hn_target *t, const int64_t *p);

#endif
