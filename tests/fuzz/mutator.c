/* The mutator itself: most of what it makes still parses as a message, and differs from its source. */
#include <stdlib.h>
#include <string.h>

#include "harness.h"
#include "mutate.h"

/* message { 1: 5, 2: "abcdefgh", 3: { 1: 7, 2: { 4: "deep inside" } }, 5: fixed32 } */
static const uint8_t sample[] = { 0x08, 5,   0x12, 8,   'a', 'b', 'c',  'd', 'e', 'f',  'g', 'h',  0x1a, 17,
                                  0x08, 7,   0x12, 13,  0x22, 11, 'd',  'e', 'e', 'p',  ' ', 'i',  'n',  's',
                                  'i',  'd', 'e',  0x2d, 1,   2,   3,    4 };

static bool varint(const fuzz_buf *b, size_t *at, uint64_t *v)
{
    *v = 0;
    for (int shift = 0; shift < 64 && *at < b->n; shift += 7) {
        const uint8_t byte = b->at[(*at)++];
        *v |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

/* Written apart from the mutator's own parser: the top level only. */
static bool well_formed(const fuzz_buf *b)
{
    size_t at = 0;
    while (at < b->n) {
        uint64_t tag, v;
        if (!varint(b, &at, &tag) || tag >> 3 == 0) return false;
        switch (tag & 7) {
        case 0:
            if (!varint(b, &at, &v)) return false;
            break;
        case 1: at += 8; break;
        case 2:
            if (!varint(b, &at, &v) || v > b->n - at) return false;
            at += (size_t)v;
            break;
        case 5: at += 4; break;
        default: return false;
        }
        if (at > b->n) return false;
    }
    return true;
}

TEST(mutations_keep_the_structure)
{
    int changed = 0, formed = 0, longer = 0, shorter = 0;
    for (uint64_t seed = 0; seed < 2000; seed++) {
        hn_rng rng;
        hn_rng_init(&rng, seed);
        fuzz_buf b = fuzz_buf_copy(sample, sizeof sample);
        CHECK(well_formed(&b));
        fuzz_mutate_message(&b, &rng);
        changed += b.n != sizeof sample || memcmp(b.at, sample, b.n) != 0;
        formed += well_formed(&b);
        longer += b.n > sizeof sample;
        shorter += b.n < sizeof sample;
        fuzz_buf_done(&b);
    }
    CHECK(changed > 1500);
    CHECK(formed > 1500 && formed < 2000); /* a few are damaged on purpose */
    CHECK(longer > 200 && shorter > 200);
}

TEST(mutations_repeat_by_seed)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        fuzz_buf b[2];
        for (int i = 0; i < 2; i++) {
            hn_rng rng;
            hn_rng_init(&rng, seed);
            b[i] = fuzz_buf_copy(sample, sizeof sample);
            for (int k = 0; k < 20; k++)
                fuzz_mutate_message(&b[i], &rng);
        }
        CHECK_EQ(b[0].n, b[1].n);
        CHECK(memcmp(b[0].at, b[1].at, b[0].n) == 0);
        fuzz_buf_done(&b[0]);
        fuzz_buf_done(&b[1]);
    }
}

TEST(mutations_survive_anything)
{
    hn_rng rng;
    hn_rng_init(&rng, 7);
    fuzz_buf b = fuzz_buf_copy("", 0), text = fuzz_buf_copy("-gemm:split_k=[1|2..8:2]", 24);
    for (int k = 0; k < 20000; k++) {
        fuzz_mutate_message(&b, &rng);
        fuzz_mutate_text(&text, &rng);
        CHECK(text.at[text.n] == 0);
        if (b.n > 4096 || b.n == 0) {
            fuzz_buf_done(&b);
            b = fuzz_buf_copy(sample, sizeof sample);
        }
        if (text.n > 4096) {
            fuzz_buf_done(&text);
            text = fuzz_buf_copy("a", 1);
        }
    }
    fuzz_buf_done(&b);
    fuzz_buf_done(&text);
}
