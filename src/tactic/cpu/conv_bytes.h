/* Images of bytes for convolutions in integers: their shape, and padded rows in scratch.
 *
 * Scratch is [row][column][channel] whatever the image's storage, unsigned, with the zero point where there is no
 * input: a tap outside then adds what one of zero would. */
#ifndef HN_TACTIC_CPU_CONV_BYTES_H
#define HN_TACTIC_CPU_CONV_BYTES_H

#include "tactic/cpu/conv.h"
#include "tactic/cpu/int8.h"

/** A convolution over rows and columns. One of rank 3 has columns only; where taps, padding and strides allow, an
 *  image is one column of places, which lie side by side. */
typedef struct hn_conv_bytes {
    hn_conv c;
    hn_int8 q;
    bool linear;
    hn_dim width;     /* of the output: linear places are split by it */
    int64_t run;      /* bytes side by side that one run of taps reads: a kernel row, or the channels of a tap */
    int64_t runs_row; /* runs a kernel row */
} hn_conv_bytes;

/** Takes channels last, and plain images, which copying turns. */
hn_fit hn_conv_bytes_of(const hn_region *r, hn_conv_bytes *ret);
/** Rows must be copied: padding, plain storage, runs that end within four bytes. */
bool hn_conv_bytes_must_copy(const hn_conv_bytes *s);
/** Output index; linear places are split. */
void hn_conv_bytes_index(hn_lower *l, const hn_conv_bytes *s, hn_kv n, hn_kv ch, hn_kv row, hn_kv col, hn_kidx *ret);
/** Bytes of a row in scratch, as a value and at usual sizes. */
hn_kv hn_conv_bytes_row(hn_lower *l, const hn_conv_bytes *s);
int64_t hn_conv_bytes_row_opt(const hn_conv_bytes *s);
/** Scratch for the input rows of `rows` output rows, and what may be read and written past them. */
int hn_conv_bytes_scratch(hn_lower *l, const hn_conv_bytes *s, int64_t rows);
/** Fill it for output rows row0 .. row0+count of image n. zero: the zero point as unsigned i32; must not exceed 255. */
void hn_conv_bytes_copy(hn_lower *l, const hn_conv_bytes *s, const hn_target *t, int scratch, hn_kv n, hn_kv row0,
                        hn_kv count, hn_kv zero);

#endif
