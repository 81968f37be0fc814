/* One call of a vendor's library in an engine's code section: what follows an hn_image of magic HN_CALL_MAGIC. Tactics describe
 * the work, the device chooses the algorithm, the engine keeps both. What the library compiled for that may follow: the image is that
 * much longer. docs/engine-format.md has the table. */
#ifndef HN_CORE_LIBCALL_H
#define HN_CORE_LIBCALL_H

#include <stdbool.h>
#include <stdint.h>

enum { HN_CALL_MAGIC = 0x31434e48, HN_CALL_MAX_BUF = 8, HN_CALL_ALGO_BYTES = 448 }; /* "HNC1" */
enum { HN_CALL_WORKSPACE_ALIGN = 256 }; /* what libraries ask for; the buffer is that much longer, and its first multiple is taken */

/* Numbers reach files. */
typedef enum hn_library { HN_LIB_NONE = 0, HN_LIB_CUBLASLT = 1, HN_LIB_CUDNN = 2, HN_LIB_COUNT } hn_library;
typedef enum hn_libcall_kind { HN_CALL_MATMUL = 1, HN_CALL_CONV = 2, HN_CALL_ATTENTION = 3 } hn_libcall_kind;

/** Work that the call does on its result before it stores it: + bias and + addend (of a convolution the addend first), activation. */
enum {
    HN_CALL_BIAS = 1, /* a vector along the result's last axis (matmul) or channels (conv) */
    HN_CALL_ADD = 2,  /* a tensor stored as the result is */
    HN_CALL_RELU = 4,
    HN_CALL_CAUSAL = 8, /* attention: query i sees keys up to i */
    HN_CALL_GELU = 16, /* by the formula with tanh */
    HN_CALL_TF32 = 64, /* f32 operands may be rounded to 11 significant bits */
    HN_CALL_CAUSAL_LATE = 128, /* beside causal: up to i + keys - queries */
    HN_CALL_FIXED = 32, /* the algorithm is the engine's: where it does not serve, loading fails */
};

/** d[g,m,n] = sum over k of a[g,m,k] * b[g,k,n], row-major, steps in elements between groups; trans: stored with the last two axes
 *  exchanged. A line of 0 elements: rows lie behind one another. */
typedef struct hn_libcall_matmul {
    int64_t m, n, k, groups, a_step, b_step, d_step;
    uint32_t trans_a, trans_b;
    int64_t b_line;    /* elements from a row of b as stored to the next */
    int64_t bias_step; /* elements between the groups' biases */
    int64_t a_line, d_line;
    int64_t turns; /* rows of d so many apart begin at the same place of 16 bytes, and are a product of their own; 0: all are one */
    uint32_t a_dtype, b_dtype; /* hn_dtype of a and b, floats of 8 bits; 0: as d's */
    double scale;              /* of the sums, before bias and addend, as f32; 0: 1 */
} hn_libcall_matmul;

/** y = conv(x, w) over two spatial axes; every tensor by its extents [n c h w], [m c/g r s] and its strides in elements. */
typedef struct hn_libcall_conv {
    int64_t x[4], w[4], y[4], x_stride[4], w_stride[4], y_stride[4];
    int64_t stride[2], dilation[2], before[2], after[2], group;
} hn_libcall_conv;

/** y = softmax(q k' * scale) v; extents [b h s d] and strides in elements. */
typedef struct hn_libcall_attention {
    int64_t q[4], k[4], v[4], y[4], q_stride[4], k_stride[4], v_stride[4], y_stride[4];
    double scale;
} hn_libcall_attention;

/** Buffers: operands (a, b; x, w; q, k, v), bias, addend, result, workspace: those that are there, in this order. */
typedef struct hn_libcall {
    uint32_t kind, library;
    uint32_t version; /* of the library that `algo` is for; 0: none is chosen yet */
    uint32_t rank;    /* place of the algorithm among those that the library proposes, best first */
    uint32_t dtype;   /* hn_dtype of every tensor that the work does not give another; sums are f32 */
    uint32_t flags;
    uint32_t n_buf;
    uint32_t n_algo; /* bytes of algo */
    int64_t workspace_bytes;
    union {
        hn_libcall_matmul matmul;
        hn_libcall_conv conv;
        hn_libcall_attention attention;
        int64_t word[40];
    } u;
    uint8_t algo[HN_CALL_ALGO_BYTES];
} hn_libcall;

_Static_assert(sizeof(hn_libcall) == 808, "file layout");
_Static_assert(sizeof(hn_libcall_attention) <= 320 && sizeof(hn_libcall_conv) <= 320, "file layout");

/** Buffer i of the call is the one that it writes, or scratches in. */
static inline bool hn_libcall_writes(const hn_libcall *c, uint32_t i)
{
    return i + 2 >= c->n_buf;
}

#endif
