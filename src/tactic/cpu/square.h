/* Square blocks of elements turned over in registers. */
#ifndef HN_TACTIC_CPU_SQUARE_H
#define HN_TACTIC_CPU_SQUARE_H

#include "kir/kir.h"

enum { HN_SQUARE_MAX = 16 };

/** x[i] lane j becomes x[j] lane i; `lanes` vectors of `lanes`, a power of two. */
void hn_square_transpose(hn_kb *b, hn_kv *x, int lanes);

#endif
