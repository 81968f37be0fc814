/* Shared by dft.c and dft_expand.c. */
#ifndef HN_OP_DFT_INT_H
#define HN_OP_DFT_INT_H

#include "op/expand_int.h"

enum { DFT_AXIS, DFT_INVERSE, DFT_ONESIDED, DFT_DIM };
enum { STFT_STEP, STFT_LENGTH, STFT_ONESIDED };

/** N: what the attribute gives, or what the data's extent implies. */
hn_dim dft_length(hn_symtab *t, hn_dim given, hn_dim n, bool inverse, bool onesided);

hone_status dft_expand(hn_builder *b, const hn_node *n, hn_value **out);
hone_status stft_expand(hn_builder *b, const hn_node *n, hn_value **out);

#endif
