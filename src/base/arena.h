/* Region allocator: everything lives until the arena dies. Out of memory is a sticky bit, checked once by whoever runs. */
#ifndef HN_BASE_ARENA_H
#define HN_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attr.h"

typedef struct hn_arena hn_arena;

/** NULL when out of memory. Not thread-safe; one owner. */
hn_arena *hn_arena_create(void);
void hn_arena_destroy(hn_arena *a);
/** Drop every block but the first; pointers into the arena die. */
void hn_arena_reset(hn_arena *a);
/** True once any allocation failed or overflowed. */
bool hn_arena_oom(const hn_arena *a);
/** Bytes handed out so far. */
size_t hn_arena_used(const hn_arena *a);

/** Zeroed memory, 16-byte aligned; NULL (and the sticky bit) on failure. count * size is overflow-checked. */
void *hn_arena_alloc(hn_arena *a, size_t count, size_t size) HN_MUST_USE;
/** As hn_arena_alloc with an alignment, a power of two up to 4096. */
void *hn_arena_alloc_aligned(hn_arena *a, size_t bytes, size_t align) HN_MUST_USE;
char *hn_arena_strdup(hn_arena *a, const char *s);
char *hn_arena_strndup(hn_arena *a, const char *s, size_t n);
void *hn_arena_memdup(hn_arena *a, const void *src, size_t bytes);
char *hn_arena_printf(hn_arena *a, const char *fmt, ...) HN_PRINTF(2, 3);
char *hn_arena_vprintf(hn_arena *a, const char *fmt, va_list ap) HN_PRINTF(2, 0);

#define HN_NEW(a, type)      ((type *)hn_arena_alloc((a), 1, sizeof(type)))
#define HN_NEW_N(a, type, n) ((type *)hn_arena_alloc((a), (size_t)(n), sizeof(type)))

/**
 * Growable array in an arena (old storage is abandoned, growth doubles): declare `HN_VEC(int) v = {0};`, then
 * hn_vec_push(arena, &v, 3). Yields false and leaves v alone when out of memory.
 */
#define HN_VEC(type)                                                                                         \
    struct {                                                                                                 \
        type *at;                                                                                            \
        int n, cap;                                                                                          \
    }
#define hn_vec_push(a, v, item)                                                                              \
    (((v)->n < (v)->cap || hn_vec_grow_((a), (void **)&(v)->at, &(v)->cap, sizeof(*(v)->at)))                \
         ? ((v)->at[(v)->n++] = (item), true)                                                                \
         : false)
bool hn_vec_grow_(hn_arena *a, void **at, int *cap, size_t item_bytes);

/** Overflow-checked int64 arithmetic for sizes: false on overflow or a negative operand, *ret untouched. */
bool hn_mul_size(int64_t a, int64_t b, int64_t *ret) HN_MUST_USE;
bool hn_add_size(int64_t a, int64_t b, int64_t *ret) HN_MUST_USE;

#endif
