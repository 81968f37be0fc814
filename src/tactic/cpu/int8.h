/* What products of bytes share: the signs that the instruction wants, and what zero points cost.
 *
 *     sum_k (a - za)(b - zb)  =  sum_k a'b'  -  za' sum_k b'  -  zb' (sum_k a'  -  K za')
 *
 * The instruction multiplies unsigned a by signed b: a signed A is moved up by 128 as it is read and an unsigned
 * B down by 128 as it is packed, zero points with them (the primes). Column sums of b' are packed beside B; row
 * sums of a' cost one more accumulator a row, and only where some zb' may differ from zero. All sums wrap as i32
 * does. */
#ifndef HN_TACTIC_CPU_INT8_H
#define HN_TACTIC_CPU_INT8_H

#include "tactic/lower.h"

enum { HN_INT8_QUAD = 4 }; /* products an instruction and lane */

typedef struct hn_int8 {
    const hn_value *za, *zb; /* zero points, or NULL */
    bool a_signed, b_signed;
    bool row_sums;
} hn_int8;

/** Of a matmul_int or conv_int with constant B of n columns (output channels). */
hn_fit hn_int8_of(const hn_region *r, int64_t n, hn_int8 *ret);
/** The target multiplies four bytes a lane and instruction. */
bool hn_int8_has_dot(const hn_target *t);
/** One of B's stored bytes, signed. */
int8_t hn_int8_signed(const hn_int8 *q, uint8_t stored);
/** A's zero point as i32, unsigned as A is read. Call inside the parallel loop: lowering forgets across blocks. */
hn_kv hn_int8_zero_of_a(hn_lower *l, const hn_int8 *q);
/** Four bytes of A in an i32, made unsigned; `count` of them are there, the others stay zero. */
hn_kv hn_int8_unsigned(hn_kb *b, const hn_int8 *q, hn_kv x, int count);
/** acc less what the zero points added over `depth` products; sum is used with row_sums only. */
hn_kv hn_int8_corrected(hn_kb *b, const hn_int8 *q, hn_kv acc, hn_kv za, hn_kv sums, hn_kv zeros, hn_kv sum,
                        int64_t depth);
/** Add the blob of B's n zero points, an i32 a column. They come in groups of `group`, each filled up to `columns` with
 *  zeros. */
bool hn_int8_add_zeros(const hn_region *r, const hn_int8 *q, int64_t n, int64_t group, int64_t columns, hn_emission *ret);
void hn_int8_pack_zeros(const hn_region *r, const hn_int8 *q, int64_t n, int64_t group, int64_t columns, int32_t *dst);

#endif
