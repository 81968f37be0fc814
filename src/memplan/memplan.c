/*
 * Greedy best-fit placement under several orders (after Pisarchyk and Lee, "Efficient Memory Management for
 * Deep Neural Net Inference", 2020: greedy by size and by breadth); the smallest arena wins. Offset
 * assignment is NP-complete, the lower bound says how far we may be from the best.
 */
#include "memplan/memplan.h"

#include <assert.h>
#include <string.h>

/* A root with its parts folded in; parts have bytes 0. */
typedef struct span {
    int64_t bytes; /* rounded up to HN_MP_ALIGN */
    int32_t first, last;
    int64_t align;
} span;

/* What has been placed so far, by ascending offset; first and last stand here to keep the scan in one array.
 */
typedef struct placed {
    int64_t offset, end;
    int32_t first, last;
} placed;

typedef struct work {
    span *span;
    placed *placed;
    int64_t *key, *offset, *best;
    int32_t *order;
} work;

size_t hn_memplan_work_bytes(int n)
{
    const size_t each = sizeof(span) + sizeof(placed) + 3 * sizeof(int64_t) + sizeof(int32_t);
    return (size_t)(n > 0 ? n : 0) * each + 16;
}

static work carve(void *mem, int n)
{
    work w;
    w.span = mem;
    w.placed = (placed *)(void *)(w.span + n);
    w.key = (int64_t *)(void *)(w.placed + n);
    w.offset = w.key + n;
    w.best = w.offset + n;
    w.order = (int32_t *)(void *)(w.best + n);
    return w;
}

static bool round_up(int64_t v, int64_t to, int64_t *ret)
{
    if (v > INT64_MAX - (to - 1)) return false;
    *ret = (v + to - 1) & ~(to - 1);
    return true;
}

static bool item_ok(const hn_mp_item *item, int n, int i)
{
    const hn_mp_item *x = &item[i];

    if (x->bytes < 0 || x->first > x->last) return false;
    if (x->root < 0)
        return x->root == -1 && (x->align == 0 || ((x->align & (x->align - 1)) == 0 &&
                                                   x->align >= HN_MP_ALIGN && x->align <= 4096));
    return x->root < n && x->root != i && item[x->root].root == -1 && x->root_offset >= 0 &&
           x->root_offset <= INT64_MAX - x->bytes;
}

/* Fold parts into their roots and round sizes. */
static bool make_spans(const hn_mp_item *item, int n, span *s)
{
    for (int i = 0; i < n; i++) {
        if (!item_ok(item, n, i)) return false;
        s[i] = (span){ item[i].root < 0 ? item[i].bytes : 0, item[i].first, item[i].last,
                       item[i].align ? item[i].align : HN_MP_ALIGN };
    }
    for (int i = 0; i < n; i++) {
        if (item[i].root < 0) continue;
        span *const r = &s[item[i].root];
        const int64_t end = item[i].root_offset + item[i].bytes;
        if (end > r->bytes) r->bytes = end;
        if (item[i].first < r->first) r->first = item[i].first;
        if (item[i].last > r->last) r->last = item[i].last;
    }
    int64_t total = 0; /* every sum of sizes below is at most this, so it cannot overflow */
    for (int i = 0; i < n; i++) {
        if (!round_up(s[i].bytes, HN_MP_ALIGN, &s[i].bytes)) return false;
        if (s[i].bytes > INT64_MAX / 2 - 8192 - total) return false;
        total += s[i].bytes + (s[i].align > HN_MP_ALIGN ? s[i].align : 0);
    }
    return true;
}

static bool conflict(const span *a, const span *b)
{
    return a->first <= b->last && b->first <= a->last;
}

/* Descending by key, ascending by index; a heap sort because qsort may allocate. */
static bool goes_after(const int64_t *key, int32_t a, int32_t b)
{
    return key[a] < key[b] || (key[a] == key[b] && a > b);
}

static void sift(int32_t *at, int n, int i, const int64_t *key)
{
    for (int child; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && goes_after(key, at[child + 1], at[child])) child++;
        if (!goes_after(key, at[child], at[i])) return;
        const int32_t t = at[i];
        at[i] = at[child], at[child] = t;
    }
}

static void sort_by_key(int32_t *at, int n, const int64_t *key)
{
    for (int i = n / 2 - 1; i >= 0; i--)
        sift(at, n, i, key);
    for (int i = n - 1; i > 0; i--) {
        const int32_t t = at[0];
        at[0] = at[i], at[i] = t;
        sift(at, i, 0, key);
    }
}

/* Saturating: keys only rank. */
static int64_t area(const span *s)
{
    const int64_t life = (int64_t)s->last - s->first + 1;
    return s->bytes > INT64_MAX / life ? INT64_MAX : s->bytes * life;
}

static int64_t conflict_bytes(const span *s, int n, int i)
{
    int64_t sum = 0;
    for (int k = 0; k < n; k++)
        if (conflict(&s[i], &s[k])) sum += s[k].bytes;
    return sum;
}

static void make_keys(const span *s, int n, hn_mp_order order, int64_t *key)
{
    for (int i = 0; i < n; i++)
        switch (order) {
        case HN_MP_AREA: key[i] = area(&s[i]); break;
        case HN_MP_LIFETIME: key[i] = (int64_t)s[i].last - s[i].first; break;
        case HN_MP_CONFLICT: key[i] = conflict_bytes(s, n, i); break;
        case HN_MP_START: key[i] = -(int64_t)s[i].first; break;
        case HN_MP_SIZE:
        case HN_MP_NORDERS: key[i] = s[i].bytes; break;
        }
}

/* Largest total live at one step. The maximum is reached at some buffer's first step. */
static int64_t lower_bound(const span *s, int n, work *w)
{
    int32_t *const by_first = w->order, *const by_last =
                                            (int32_t *)(void *)w->offset; /* free until placing */
    int64_t live = 0, peak = 0;

    for (int i = 0; i < n; i++)
        by_first[i] = by_last[i] = i;
    for (int i = 0; i < n; i++)
        w->key[i] = -(int64_t)s[i].first;
    sort_by_key(by_first, n, w->key);
    for (int i = 0; i < n; i++)
        w->key[i] = -(int64_t)s[i].last;
    sort_by_key(by_last, n, w->key);
    for (int i = 0, k = 0; i < n; i++) {
        while (s[by_last[k]].last < s[by_first[i]].first)
            live -= s[by_last[k++]].bytes;
        live += s[by_first[i]].bytes;
        if (live > peak) peak = live;
    }
    return peak;
}

/* The tightest gap between conflicting neighbours that holds s, else the end of the last of them. */
static int64_t best_fit(const span *s, const placed *p, int n_placed)
{
    int64_t end = 0, best = -1, best_room = INT64_MAX;

    for (int i = 0; i < n_placed; i++) {
        if (p[i].first > s->last || p[i].last < s->first) continue;
        const int64_t at = (end + s->align - 1) & ~(s->align - 1);
        const int64_t room = p[i].offset - at;
        if (room >= s->bytes && room < best_room) best = at, best_room = room;
        if (p[i].end > end) end = p[i].end;
    }
    return best >= 0 ? best : (end + s->align - 1) & ~(s->align - 1);
}

static void insert(placed *p, int n, placed x)
{
    int at = n;
    while (at > 0 && p[at - 1].offset > x.offset)
        at--;
    memmove(&p[at + 1], &p[at], (size_t)(n - at) * sizeof(*p));
    p[at] = x;
}

/* Returns the arena size this order needs, or limit as soon as it is not below it. */
static int64_t place(const span *s, int n, work *w, int64_t limit)
{
    int64_t arena = 0;
    int n_placed = 0;

    for (int k = 0; k < n; k++) {
        const int i = w->order[k];
        w->offset[i] = 0;
        if (s[i].bytes == 0) continue;
        const int64_t at = best_fit(&s[i], w->placed, n_placed);
        const int64_t end = at + s[i].bytes;
        w->offset[i] = at;
        insert(w->placed, n_placed++, (placed){ at, end, s[i].first, s[i].last });
        if (end > arena) arena = end;
        if (arena >= limit) return limit;
    }
    return arena;
}

bool hn_memplan(hn_mp_item *item, int n, unsigned orders, void *mem, hn_mp_result *ret)
{
    assert(((uintptr_t)mem & 7) == 0);
    if (n <= 0 || !(orders & HN_MP_ALL)) {
        *ret = (hn_mp_result){ 0, 0, HN_MP_SIZE };
        return n == 0;
    }
    work w = carve(mem, n);
    if (!make_spans(item, n, w.span)) return false;

    const int64_t bound = lower_bound(w.span, n, &w);
    hn_mp_result best = { INT64_MAX, bound, HN_MP_SIZE };
    for (int o = 0; o < HN_MP_NORDERS && best.arena_bytes > bound; o++) {
        if (!(orders >> o & 1)) continue;
        make_keys(w.span, n, (hn_mp_order)o, w.key);
        for (int i = 0; i < n; i++)
            w.order[i] = i;
        sort_by_key(w.order, n, w.key);
        const int64_t arena = place(w.span, n, &w, best.arena_bytes);
        if (arena >= best.arena_bytes) continue;
        best.arena_bytes = arena, best.order = (hn_mp_order)o;
        memcpy(w.best, w.offset, (size_t)n * sizeof(*w.best));
    }
    for (int i = 0; i < n; i++)
        item[i].offset = item[i].root < 0 ? w.best[i] : w.best[item[i].root] + item[i].root_offset;
    *ret = best;
    return true;
}

static bool placed_ok(const hn_mp_item *item, int i, int64_t arena_bytes)
{
    const hn_mp_item *x = &item[i];
    const int64_t align = x->align ? x->align : HN_MP_ALIGN;

    if (x->bytes == 0) return true;
    if (x->offset < 0 || x->offset > arena_bytes - x->bytes) return false;
    return x->root >= 0 ? x->offset == item[x->root].offset + x->root_offset : x->offset % align == 0;
}

static int root_of(const hn_mp_item *item, int i)
{
    return item[i].root < 0 ? i : item[i].root;
}

bool hn_memplan_check(const hn_mp_item *item, int n, int64_t arena_bytes, int *ret_a, int *ret_b)
{
    for (int i = 0; i < n; i++) {
        const hn_mp_item *x = &item[i];
        *ret_a = i, *ret_b = -1;
        if (!placed_ok(item, i, arena_bytes)) return false;
        for (int k = 0; k < i; k++) {
            const hn_mp_item *y = &item[k];
            if (root_of(item, i) == root_of(item, k)) continue;
            if (x->first > y->last || y->first > x->last) continue;
            if (x->offset < y->offset + y->bytes && y->offset < x->offset + x->bytes) {
                *ret_b = k;
                return false;
            }
        }
    }
    return true;
}
