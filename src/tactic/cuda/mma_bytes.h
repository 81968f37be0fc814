/* Products of bytes on a GPU's matrix units: zero points, and what they take off the sums. The instruction multiplies a as it is,
 * i8 or u8, by signed b: an unsigned b is moved down by 128 as it is stored, its zero points with it. int8.h has the formula.
 */
#ifndef HN_TACTIC_CUDA_MMA_BYTES_H
#define HN_TACTIC_CUDA_MMA_BYTES_H

#include "tactic/cpu/int8.h"
#include "tactic/cuda/mma.h"

/** Blobs of a tactic's emission: rows of b, sums of these rows, zero points of b. */
enum { HN_MMA_BLOB_ROWS, HN_MMA_BLOB_SUMS, HN_MMA_BLOB_ZEROS };

typedef struct hn_mma_bytes {
    hn_int8 q;
    hn_lower *l;
    int64_t rows, groups; /* of b in a group; groups */
    int64_t depth;        /* products of one sum that count, those with a's zero point included */
    bool moves;           /* a has a zero point other than 0 */
    bool padded;          /* it stands where there is no a, so that there the difference is 0 */
    int sums, zeros;      /* buffers; -1 until they are needed */
    hn_kv za;             /* as i32, from hn_mma_bytes_ready on */
} hn_mma_bytes;

/** Of the root, a matmul_int or conv_int, with constant plain b of `rows` rows a group. */
hn_fit hn_mma_bytes_fit(const hn_region *r, int64_t rows, int64_t groups, hn_mma_bytes *ret);
/** Declare the emission's blobs besides the rows. */
hone_status hn_mma_bytes_add(const hn_region *r, const hn_mma_bytes *q, hn_emission *e, const char *what, hn_diag *dg);
/** Write blob i of them all; from: the rows, as hn_mma_store_rows takes them. */
void hn_mma_bytes_pack(const hn_region *r, const hn_mma_bytes *q, const hn_mma_source *from, int i, void *dst);

/** A kernel begins. */
void hn_mma_bytes_start(hn_mma_bytes *q, hn_lower *l);
/** Read a's zero point: once the kernels before this one have ended, where all that follows sees it. */
void hn_mma_bytes_ready(hn_mma_bytes *q);
/** a's zero point as a byte of a's type. */
hn_kv hn_mma_bytes_fill(const hn_mma_bytes *q);
/** Sums of neighbouring n less what zero points added. row_sum: of a, i32 scalar; used where q.row_sums alone. */
hn_kv hn_mma_bytes_settle(hn_mma_bytes *q, hn_kv g, hn_kv n, hn_kv sums, hn_kv row_sum);

#endif
