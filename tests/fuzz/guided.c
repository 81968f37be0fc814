/* libFuzzer's entry points: mutations led by coverage, most of them by the mutator that knows protobuf. scripts/fuzz.py --guided
 * builds and runs this. */
#include "import_holds.h"
#include "mutate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t cap, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t n, size_t cap);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    char why[512];
    if (fuzz_import_holds(bytes, n, why, sizeof why)) return 0;
    fprintf(stderr, "%s\n", why);
    abort();
}

/* One time in four libFuzzer's own mutator: it compares with what the code compares, and copies from other files. */
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t n, size_t cap, unsigned seed)
{
    hn_rng rng;
    hn_rng_init(&rng, seed);
    if (hn_rng_below(&rng, 4) == 0) return LLVMFuzzerMutate(bytes, n, cap);
    fuzz_buf b = fuzz_buf_copy(bytes, n);
    for (int64_t k = 1 + hn_rng_below(&rng, 3); k > 0; k--) fuzz_mutate_message(&b, &rng);
    const size_t got = b.n < cap ? b.n : cap;
    if (got) memcpy(bytes, b.at, got);
    fuzz_buf_done(&b);
    return got;
}
