/* Long sums in blocks: registers hold the sum of a block, memory the total of the blocks before it, so that the rounding of n additions
 * grows with the block and with the number of blocks, not with n. */
#ifndef HN_TACTIC_CPU_TOTALS_H
#define HN_TACTIC_CPU_TOTALS_H

#include "kir/kir.h"

enum {
    HN_TOTALS_BLOCK = 256, /* steps: a sum of them rounds as much as 50 such blocks; one load, add and store a sum is 1% of their work */
};

typedef struct hn_totals {
    hn_kb *b;
    int buf; /* scratch; -1: the sum is too short to be cut */
    int lanes;
    int64_t block; /* steps of a sum */
} hn_totals;

/** Totals for at most n vectors of sums over about `depth` steps, cut where there are two blocks or more; declares the scratch. */
hn_totals hn_totals_new(hn_kb *b, int n, int lanes, int64_t depth, int64_t block);
/** All totals are zero. */
void hn_totals_clear(const hn_totals *t, int n);
/** A block is done: its sums go to the totals and are zero again. */
void hn_totals_add(const hn_totals *t, hn_kvar *sum, int n);
/** The sums become those of all blocks and of what they hold. */
void hn_totals_take(const hn_totals *t, hn_kvar *sum, int n);

#endif
