/* Where mutations start from, and the settings that every fuzz program takes. */
#ifndef HN_TESTS_FUZZ_SEEDS_H
#define HN_TESTS_FUZZ_SEEDS_H

#include <stdint.h>
#include <sys/types.h>

#include "mutate.h"

enum { FUZZ_MAX_SEEDS = 2048 };

typedef struct fuzz_seeds {
    char *path[FUZZ_MAX_SEEDS];
    int n;
} fuzz_seeds;

/** Every <kind>/<case>/model.onnx of Debian's libonnx-testdata up to max_bytes, in order of name; skips the test when none is there. */
void fuzz_find_seeds(fuzz_seeds *s, const char *kind, off_t max_bytes);
/**
 * Hand out mutated copies of the seeds, one a round, each changed up to `most` times; a round repeats from its seed alone. rounds
 * and salt give way to $FUZZ_ROUNDS and $FUZZ_SEED. Yields how many rounds there were.
 */
int64_t fuzz_mutated(const fuzz_seeds *s, int64_t rounds, int64_t salt, int64_t most, void (*one)(void *user, const fuzz_buf *b),
                     void *user);
/** $FUZZ_ROUNDS and $FUZZ_SEED lengthen and move a run. */
int64_t fuzz_setting(const char *name, int64_t otherwise);
/** What a failure prints: a sanitizer ends the process before the harness can say which seed it was. */
void fuzz_at(const char *path, int64_t seed);

#endif
