/* Names to things: open addressing, keys borrowed. */
#include "import/import_int.h"

#include <string.h>

static struct hn_im_slot *slot_of(const hn_im_map *m, const char *key)
{
    uint64_t i = hn_hash64(key, strlen(key), 0);
    for (;; i++) {
        struct hn_im_slot *s = &m->at[i & (uint64_t)(m->cap - 1)];
        if (!s->key || strcmp(s->key, key) == 0) return s;
    }
}

void *hn_im_map_get(const hn_im_map *m, const char *key)
{
    return m->cap ? slot_of(m, key)->item : NULL;
}

static bool grow(hn_arena *a, hn_im_map *m)
{
    hn_im_map to = { .cap = m->cap ? 2 * m->cap : 16, .n = m->n };
    to.at = hn_arena_alloc(a, (size_t)to.cap, sizeof *to.at);
    if (!to.at) return false;
    for (int i = 0; i < m->cap; i++)
        if (m->at[i].key) *slot_of(&to, m->at[i].key) = m->at[i];
    *m = to;
    return true;
}

bool hn_im_map_put(hn_arena *a, hn_im_map *m, const char *key, void *item)
{
    if (2 * (m->n + 1) > m->cap && !grow(a, m)) return false;
    struct hn_im_slot *s = slot_of(m, key);
    if (s->key) return false;
    *s = (struct hn_im_slot){ key, item };
    m->n++;
    return true;
}
