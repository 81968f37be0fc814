#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"

/* ASan builds leave a poisoned gap behind every allocation, so that running off its end is reported. */
#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif
#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(at, n)   ASAN_POISON_MEMORY_REGION((at), (n))
#define UNPOISON(at, n) ASAN_UNPOISON_MEMORY_REGION((at), (n))
enum { RED_ZONE = 32 };
#else
#define POISON(at, n)   ((void)(at), (void)(n))
#define UNPOISON(at, n) ((void)(at), (void)(n))
enum { RED_ZONE = 0 };
#endif

enum { FIRST_BLOCK = 16 << 10, MAX_BLOCK = 1 << 20, MIN_ALIGN = 16, MAX_ALIGN = 4096 };

struct block {
    struct block *next; /* towards the first block */
    size_t cap, used;   /* of data[] */
    _Alignas(MIN_ALIGN) unsigned char data[];
};

struct hn_arena {
    struct block *top; /* newest block: allocations come from it */
    size_t handed_out;
    size_t next_cap;
    bool oom;
};

static struct block *block_create(size_t cap)
{
    struct block *b = malloc(sizeof *b + cap);
    if (!b) return NULL;
    b->next = NULL;
    b->cap = cap;
    b->used = 0;
    POISON(b->data, cap);
    return b;
}

static void block_destroy(struct block *b)
{
    UNPOISON(b->data, b->cap);
    free(b);
}

hn_arena *hn_arena_create(void)
{
    hn_arena *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->top = block_create(FIRST_BLOCK);
    a->next_cap = 2 * FIRST_BLOCK;
    if (a->top) return a;
    free(a);
    return NULL;
}

void hn_arena_destroy(hn_arena *a)
{
    if (!a) return;
    for (struct block *b = a->top, *next; b; b = next) {
        next = b->next;
        block_destroy(b);
    }
    free(a);
}

void hn_arena_reset(hn_arena *a)
{
    while (a->top->next) {
        struct block *b = a->top;
        a->top = b->next;
        block_destroy(b);
    }
    a->top->used = 0;
    POISON(a->top->data, a->top->cap);
    a->handed_out = 0;
    a->next_cap = 2 * FIRST_BLOCK;
    a->oom = false;
}

bool hn_arena_oom(const hn_arena *a)
{
    return a->oom;
}

size_t hn_arena_used(const hn_arena *a)
{
    return a->handed_out;
}

static void *fail(hn_arena *a)
{
    a->oom = true;
    return NULL;
}

static size_t pad_to(const unsigned char *at, size_t align)
{
    return (size_t)(-(uintptr_t)at & (align - 1));
}

static bool add_block(hn_arena *a, size_t need)
{
    const size_t cap = HN_MAX(need, a->next_cap);
    struct block *b = block_create(cap);
    if (!b) return false;
    if (a->next_cap < MAX_BLOCK) a->next_cap *= 2;
    b->next = a->top;
    a->top = b;
    return true;
}

void *hn_arena_alloc_aligned(hn_arena *a, size_t bytes, size_t align)
{
    if (a->oom) return NULL;
    if (HN_NEVER(align == 0 || (align & (align - 1)) || align > MAX_ALIGN)) return fail(a);
    if (bytes > PTRDIFF_MAX - MAX_ALIGN - RED_ZONE) return fail(a);
    if (align < MIN_ALIGN) align = MIN_ALIGN;

    const size_t need = HN_MAX(bytes, (size_t)1) + RED_ZONE; /* distinct addresses even for empty requests */
    struct block *b = a->top;
    size_t pad = pad_to(b->data + b->used, align);
    if (b->cap - b->used < need + pad) {
        if (!add_block(a, need + align)) return fail(a);
        b = a->top;
        pad = pad_to(b->data, align);
    }
    unsigned char *p = b->data + b->used + pad;
    b->used += pad + need;
    a->handed_out += bytes;
    UNPOISON(p, bytes);
    return memset(p, 0, bytes);
}

void *hn_arena_alloc(hn_arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return fail(a);
    return hn_arena_alloc_aligned(a, bytes, MIN_ALIGN);
}

char *hn_arena_strndup(hn_arena *a, const char *s, size_t n)
{
    n = strnlen(s, n);
    char *p = hn_arena_alloc(a, n + 1, 1);
    return p ? memcpy(p, s, n) : NULL;
}

char *hn_arena_strdup(hn_arena *a, const char *s)
{
    return hn_arena_strndup(a, s, strlen(s));
}

void *hn_arena_memdup(hn_arena *a, const void *src, size_t bytes)
{
    void *p = hn_arena_alloc(a, bytes, 1);
    return p && bytes ? memcpy(p, src, bytes) : p;
}

char *hn_arena_vprintf(hn_arena *a, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    const int n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    if (n < 0) return fail(a);
    char *p = hn_arena_alloc(a, (size_t)n + 1, 1);
    if (p) vsnprintf(p, (size_t)n + 1, fmt, ap);
    return p;
}

char *hn_arena_printf(hn_arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    char *p = hn_arena_vprintf(a, fmt, ap);
    va_end(ap);
    return p;
}

bool hn_vec_grow_(hn_arena *a, void **at, int *cap, size_t item_bytes)
{
    if (*cap > INT32_MAX / 2) {
        a->oom = true;
        return false;
    }
    const int new_cap = *cap ? 2 * *cap : 8;
    void *p = hn_arena_alloc(a, (size_t)new_cap, item_bytes);
    if (!p) return false;
    if (*cap) memcpy(p, *at, (size_t)*cap * item_bytes);
    *at = p;
    *cap = new_cap;
    return true;
}

bool hn_mul_size(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (a < 0 || b < 0 || __builtin_mul_overflow(a, b, &r)) return false;
    *ret = r;
    return true;
}

bool hn_add_size(int64_t a, int64_t b, int64_t *ret)
{
    int64_t r;
    if (a < 0 || b < 0 || __builtin_add_overflow(a, b, &r)) return false;
    *ret = r;
    return true;
}
