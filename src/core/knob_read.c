/* Reading knobs while building, and the trace of what was read. */
#include <string.h>

#include "core/knob.h"

struct hn_knobs {
    hn_arena *arena;
    const hn_route *route;
    HN_VEC(hn_knob_read) read;
    int32_t *bucket; /* index into read + 1; open addressing by knob and place */
    uint32_t n_bucket;
};

hn_knobs *hn_knobs_new(hn_arena *a, const hn_route *route)
{
    static const hn_route none;
    hn_knobs *k = HN_NEW(a, hn_knobs);
    if (!k) return NULL;
    k->arena = a;
    k->route = route ? route : &none;
    return k;
}

static uint32_t hash_read(hn_knob id, const char *where)
{
    return (uint32_t)hn_hash64(where, strlen(where), (uint64_t)id);
}

static bool rehash(hn_knobs *k)
{
    const uint32_t n = k->n_bucket ? 2 * k->n_bucket : 64;
    int32_t *bucket = HN_NEW_N(k->arena, int32_t, n);
    if (!bucket) return false;
    for (int i = 0; i < k->read.n; i++) {
        uint32_t h = hash_read(k->read.at[i].knob, k->read.at[i].where) & (n - 1);
        while (bucket[h])
            h = (h + 1) & (n - 1);
        bucket[h] = i + 1;
    }
    k->bucket = bucket;
    k->n_bucket = n;
    return true;
}

static void record(hn_knobs *k, hn_knob id, const char *where, int64_t value)
{
    if ((uint32_t)k->read.n * 2 >= k->n_bucket && !rehash(k)) return;
    uint32_t h = hash_read(id, where) & (k->n_bucket - 1);
    for (; k->bucket[h]; h = (h + 1) & (k->n_bucket - 1)) {
        const hn_knob_read *r = &k->read.at[k->bucket[h] - 1];
        if (r->knob == id && strcmp(r->where, where) == 0) return;
    }
    const hn_knob_read r = { .knob = id, .where = hn_arena_strdup(k->arena, where), .value = value };
    if (r.where && hn_vec_push(k->arena, &k->read, r)) k->bucket[h] = k->read.n;
}

static bool matches(const hn_setting *s, const char *const *origin, int n_origin)
{
    if (!s->pattern) return true;
    for (int i = 0; i < n_origin; i++)
        if (hn_glob_match(s->pattern, origin[i])) return true;
    return false;
}

static int64_t look_up(const hn_knobs *k, hn_knob id, const char *const *origin, int n_origin)
{
    for (int i = k->route->n - 1; i >= 0; i--)
        if (k->route->at[i].knob == id && matches(&k->route->at[i], origin, n_origin))
            return k->route->at[i].value;
    return hn_knob_get(id)->dflt;
}

int64_t hn_knob_read_model(hn_knobs *k, hn_knob id)
{
    return hn_knob_read_node(k, id, NULL, 0);
}

int64_t hn_knob_read_node(hn_knobs *k, hn_knob id, const char *const *origin, int n_origin)
{
    if (HN_NEVER(!hn_knob_get(id))) return 0;
    if (!hn_knob_get(id)->per_node) n_origin = 0;
    const int64_t v = look_up(k, id, origin, n_origin);
    record(k, id, n_origin ? origin[0] : "", v);
    return v;
}

hn_digest hn_knobs_digest_at(const hn_knobs *k, const char *const *origin, int n_origin)
{
    hn_hasher h;
    hn_hasher_init(&h);
    for (int i = 0; i < k->route->n; i++)
        if (k->route->at[i].pattern && matches(&k->route->at[i], origin, n_origin)) hn_hasher_i64(&h, i);
    return hn_hasher_end(&h);
}

int hn_knobs_n_read(const hn_knobs *k)
{
    return k->read.n;
}

const hn_knob_read *hn_knobs_read_at(const hn_knobs *k, int i)
{
    return i >= 0 && i < k->read.n ? &k->read.at[i] : NULL;
}
