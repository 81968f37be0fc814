/* What convolution tactics share: the shape of a region's convolution, how its image lies in memory, padded
 * copies. */
#ifndef HN_TACTIC_CPU_CONV_H
#define HN_TACTIC_CPU_CONV_H

#include "tactic/lower.h"

/**
 * How an image is stored, one form for all layouts: element (n, plane, row, column, e) with `e` innermost.
 *
 *     layout         planes   elements a place   channel
 *     plain          C        1                  plane
 *     channels last  1        C                  e
 *     blocked by B   C/B      B                  plane*B + e
 */
typedef struct hn_conv_image {
    bool ok;
    int64_t planes, elems;
    int block; /* 0 unless blocked */
} hn_conv_image;

/** A convolution over rows and columns; one of rank 3 has rows only (columns 1 wide). */
typedef struct hn_conv {
    const hn_value *x, *w, *bias, *y;
    int x_operand, w_operand;
    bool has_columns; /* rank 4 */
    hn_dim n, xh, xw, oh, ow;
    int64_t c, oc, group, cg, og; /* channels in all and a group */
    int64_t kh, kw, sh, sw, dh, dw;
    hn_dim ph, pw; /* padding before */
    bool padded;   /* some tap may fall outside */
    hn_conv_image xi, yi;
    int64_t n_opt, oh_opt, ow_opt;
    /* A transposed convolution as one that is not: every place yields up_h * up_w outputs, one a phase, each
     * with a kernel of its own over the same input. oh and ow count places; output row = place * up_h + phase
     * - crop_h where that exists. */
    bool transposed;
    int64_t up_h, up_w, crop_h, crop_w;
    int64_t full_kh, full_kw; /* of the stored filters */
} hn_conv;

/** False when the node is no 1-d or 2-d f32 convolution with known channels and constant weights in an
 * operand. */
hn_fit hn_conv_of(const hn_region *r, hn_conv *c);
/** The same for a conv_int of bytes; its zero points are int8.h's. */
hn_fit hn_conv_int_of(const hn_region *r, hn_conv *c);
/** The same for conv_transpose without groups or dilation: group counts phases, og is all output channels. */
hn_fit hn_conv_transpose_of(const hn_region *r, hn_conv *c);
/** Either, by the root's op. */
hn_fit hn_conv_any_of(const hn_region *r, hn_conv *c);
/** Weight of output channel o (of group or phase g), input channel ic (of the group), tap (i, j). */
float hn_conv_weight(const hn_conv *c, const float *w, int64_t g, int64_t o, int64_t ic, int64_t i,
                     int64_t j);
hn_conv_image hn_conv_image_of(const hn_value *v);
/** Index of one output place: at[] = n, channel, row, column. */
void hn_conv_index(const hn_conv *c, hn_kv n, hn_kv ch, hn_kv row, hn_kv col, hn_kidx *ret);

/** Where taps are read from: strides in elements of `buf`. */
typedef struct hn_conv_source {
    int buf;
    hn_kv base;       /* of the first row of the block in image n */
    hn_kv plane, row; /* strides */
    int64_t column;   /* stride */
} hn_conv_source;

/** The operand itself; block starts at output row `row0`. Only when nothing is padded. */
void hn_conv_direct(hn_lower *l, const hn_conv *c, hn_kv n, hn_kv row0, hn_conv_source *ret);

/** Scratch that holds the input rows of up to `rows` output rows, padding included. `column`: stride of a
 * place there. */
int hn_conv_scratch(hn_lower *l, const hn_conv *c, int64_t rows, int64_t column);
/** Fill it with the input of output rows row0 .. row0+count of image n, zeros where there is no input. */
void hn_conv_copy(hn_lower *l, const hn_conv *c, int scratch, int64_t column, int64_t rows, hn_kv n,
                  hn_kv row0, hn_kv count);
void hn_conv_copied(hn_lower *l, const hn_conv *c, int scratch, int64_t column, int64_t rows,
                    hn_conv_source *ret);
/** Input rows that `rows` output rows touch. */
int64_t hn_conv_rows_in(const hn_conv *c, int64_t rows);

#endif
