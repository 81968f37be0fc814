/* Where mutations start from, and the settings that every fuzz program takes. */
#ifndef HN_TESTS_FUZZ_SEEDS_H
#define HN_TESTS_FUZZ_SEEDS_H

#include <stdint.h>
#include <sys/types.h>

enum { FUZZ_MAX_SEEDS = 2048 };

typedef struct fuzz_seeds {
    char *path[FUZZ_MAX_SEEDS];
    int n;
} fuzz_seeds;

/** Every <kind>/<case>/model.onnx of Debian's libonnx-testdata up to max_bytes, in order of name; skips the test when none is there. */
void fuzz_find_seeds(fuzz_seeds *s, const char *kind, off_t max_bytes);
/** $FUZZ_ROUNDS and $FUZZ_SEED lengthen and move a run. */
int64_t fuzz_setting(const char *name, int64_t otherwise);
/** What a failure prints: a sanitizer ends the process before the harness can say which seed it was. */
void fuzz_at(const char *path, int64_t seed);

#endif
