/* Lifetimes to offsets: where in one arena each buffer lives. Pure functions over arrays; no allocation, no
 * state. */
#ifndef HN_MEMPLAN_MEMPLAN_H
#define HN_MEMPLAN_MEMPLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HN_MP_ALIGN = 64 }; /* bytes; a cache line and a zmm register */

/** One buffer. Two buffers conflict when their closed lifetimes [first,last] share a step and neither is
 * inside the other. */
typedef struct hn_mp_item {
    int64_t bytes;       /* >= 0; 0 takes no room and gets offset 0 */
    int32_t first, last; /* step order, inclusive; first <= last */
    int32_t root;        /* -1, or the index of the item this one is a part of (whose own root is -1) */
    int32_t align;       /* power of two, 64..4096; 0 means HN_MP_ALIGN. Ignored for parts */
    int64_t root_offset; /* bytes from the root's start; parts only */
    int64_t offset;      /* result: bytes from the arena's start */
} hn_mp_item;

/* in which order buffers are placed */
typedef enum hn_mp_order {
    HN_MP_SIZE,     /* largest first */
    HN_MP_AREA,     /* largest size * lifetime first */
    HN_MP_LIFETIME, /* longest-lived first, then size */
    HN_MP_CONFLICT, /* largest total size of conflicting buffers first */
    HN_MP_START,    /* earliest first step first, then size */
    HN_MP_NORDERS
} hn_mp_order;
enum { HN_MP_ALL = (1 << HN_MP_NORDERS) - 1, HN_MP_QUICK = 1 << HN_MP_SIZE | 1 << HN_MP_AREA };

typedef struct hn_mp_result {
    int64_t arena_bytes; /* size of the arena, a multiple of HN_MP_ALIGN */
    int64_t bound_bytes; /* lower bound: the largest total of buffers live at one step; arena/bound >= 1 is
                            the quality */
    hn_mp_order order;   /* the one that won */
} hn_mp_result;

/** Bytes of workspace hn_memplan needs for n items, 16-byte aligned by the caller. */
size_t hn_memplan_work_bytes(int n);

/**
 * Place every item, trying each order in the bit set `orders` with best fit (the tightest gap that holds the
 * buffer) and keeping the smallest arena; stops early when the lower bound is met. Ties are broken by index:
 * equal input, equal output.
 *
 * A root's lifetime and size are widened to cover its parts before placing. Items' `offset` are written only
 * on success.
 *
 * Owns:   nothing; work is scratch of hn_memplan_work_bytes(n) bytes
 * Errors: false when an item is malformed (negative size, first > last, bad root, part past INT64_MAX) or
 *         sizes overflow
 * Cost:   O(n^2) an order at worst; well under 1 ms for 500 buffers
 */
bool hn_memplan(hn_mp_item *item, int n, unsigned orders, void *work, hn_mp_result *ret);

/** True when no two conflicting items overlap, all lie in [0, arena_bytes) and are aligned; else *ret_a,
 * *ret_b name a pair (ret_b = -1: item a alone is wrong). O(n^2). */
bool hn_memplan_check(const hn_mp_item *item, int n, int64_t arena_bytes, int *ret_a, int *ret_b);

#endif
