/* Content hashes: XXH3, 128 bits, with a text form. Not cryptographic: they tell contents apart, they prove nothing. */
#ifndef HN_BASE_HASH_H
#define HN_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct hn_digest {
    uint64_t lo, hi;
} hn_digest;

#define HN_DIGEST_TEXT 33 /* 32 hex digits and the terminator */

uint64_t hn_hash64(const void *data, size_t n, uint64_t seed);
hn_digest hn_hash128(const void *data, size_t n);
bool hn_digest_eq(hn_digest a, hn_digest b);
char *hn_digest_text(hn_digest d, char dst[HN_DIGEST_TEXT]);
bool hn_digest_parse(const char *text, hn_digest *ret);

/** Streaming form; a hasher in use must not be copied or moved. Integers enter little-endian, strings with their length, so
 *  that no two sequences collide by joining. */
typedef struct hn_hasher {
    uint64_t opaque[80]; /* an XXH3 state, 64-byte aligned inside */
} hn_hasher;
void hn_hasher_init(hn_hasher *h);
void hn_hasher_bytes(hn_hasher *h, const void *data, size_t n);
void hn_hasher_i64(hn_hasher *h, int64_t v);
void hn_hasher_str(hn_hasher *h, const char *s); /* NULL is distinct from "" */
hn_digest hn_hasher_end(const hn_hasher *h);

#endif
