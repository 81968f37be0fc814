/* Fetching the next panel of packed weights while tiles pass over this one. Inside a network weights are
 * cold: without it a product of 768 cubed loses a fifth of its speed, and a test that
 * repeats one product does not see it. */
#ifndef HN_TACTIC_CPU_AHEAD_H
#define HN_TACTIC_CPU_AHEAD_H

#include "tactic/tactic.h"

typedef struct hn_ahead {
    int buf;
    bool on;
    int shift; /* 2^shift tiles share the next panel among them */
    int lines; /* to fetch at a step */
    int64_t line_elems;
    hn_kv from; /* of the tile under way */
} hn_ahead;

/**
 * Plan for panels of `panel` elements of `size` bytes, `n_panel` of them, each passed over by `tiles` tiles
 * that take `step` elements between two calls of hn_ahead_step. Off where all panels stay cached anyway, or
 * where a panel is passed over once and its fetches would bunch up.
 */
void hn_ahead_init(hn_ahead *a, const hn_target *t, int buf, int size, int64_t panel, int64_t n_panel,
                   int64_t tiles, int64_t step);
/** A tile begins: its number over this panel, and where the next panel starts. */
void hn_ahead_tile(hn_kb *b, hn_ahead *a, int64_t panel, hn_kv next, hn_kv tile);
/** `done` elements of this panel are behind. */
void hn_ahead_step(hn_kb *b, const hn_ahead *a, hn_kv done);

#endif
