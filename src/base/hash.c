#include "base/hash.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t hn_hash64(const void *data, size_t n, uint64_t seed)
{
    return XXH3_64bits_withSeed(data, n, seed);
}

static hn_digest from_xxh(XXH128_hash_t h)
{
    return (hn_digest){ .lo = h.low64, .hi = h.high64 };
}

hn_digest hn_hash128(const void *data, size_t n)
{
    return from_xxh(XXH3_128bits(data, n));
}

bool hn_digest_eq(hn_digest a, hn_digest b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

char *hn_digest_text(hn_digest d, char dst[HN_DIGEST_TEXT])
{
    snprintf(dst, HN_DIGEST_TEXT, "%016llx%016llx", (unsigned long long)d.hi, (unsigned long long)d.lo);
    return dst;
}

bool hn_digest_parse(const char *text, hn_digest *ret)
{
    uint64_t half[2] = { 0, 0 };
    for (int i = 0; i < HN_DIGEST_TEXT - 1; i++) {
        const char c = text[i];
        int digit;
        if (c >= '0' && c <= '9')
            digit = c - '0';
        else if (c >= 'a' && c <= 'f')
            digit = c - 'a' + 10;
        else
            return false;
        half[i / 16] = half[i / 16] << 4 | (uint64_t)digit;
    }
    if (text[HN_DIGEST_TEXT - 1]) return false;
    *ret = (hn_digest){ .lo = half[1], .hi = half[0] };
    return true;
}

_Static_assert(sizeof(hn_hasher) >= sizeof(XXH3_state_t) + 64 - _Alignof(uint64_t),
               "room to align the state");

static XXH3_state_t *state_of(hn_hasher *h)
{
    return (XXH3_state_t *)(((uintptr_t)h->opaque + 63) & ~(uintptr_t)63);
}

void hn_hasher_init(hn_hasher *h)
{
    memset(h, 0, sizeof *h);
    XXH3_128bits_reset(state_of(h));
}

void hn_hasher_bytes(hn_hasher *h, const void *data, size_t n)
{
    if (n) XXH3_128bits_update(state_of(h), data, n);
}

void hn_hasher_i64(hn_hasher *h, int64_t v)
{
    unsigned char le[8];
    for (int i = 0; i < 8; i++)
        le[i] = (unsigned char)((uint64_t)v >> (8 * i));
    hn_hasher_bytes(h, le, sizeof le);
}

void hn_hasher_str(hn_hasher *h, const char *s)
{
    hn_hasher_i64(h, s ? (int64_t)strlen(s) : -1);
    if (s) hn_hasher_bytes(h, s, strlen(s));
}

hn_digest hn_hasher_end(const hn_hasher *h)
{
    return from_xxh(XXH3_128bits_digest(state_of((hn_hasher *)(uintptr_t)h)));
}
