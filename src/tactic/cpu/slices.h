/* Slices of an operand along an axis, or its elements in row-major order: what compress and unique choose
 * among. */
#ifndef HN_TACTIC_CPU_SLICES_H
#define HN_TACTIC_CPU_SLICES_H

#include "tactic/cpu/loops.h"

typedef struct hn_slices {
    hn_lower *l;
    const hn_value *x;
    bool flat;
    int axis;
    hn_kv n;            /* how many slices */
    hn_kv outer, inner; /* elements of one before and behind the axis; 1 and 1 when flat */
} hn_slices;

/** From the attributes axis and flat of the region's root; declares the sizes as arguments. */
void hn_slices_init(hn_slices *s, hn_lower *l, const hn_region *r);
/** Element (o, i) of slice k, in its computing type. */
hn_kv hn_slices_at(const hn_slices *s, hn_kv k, hn_kv o, hn_kv i);
/** Copy slice `from` to place `to` of `count` in result buffer `buf`, row-major. */
void hn_slices_copy(const hn_slices *s, int buf, hn_kv count, hn_kv from, hn_kv to);

#endif
