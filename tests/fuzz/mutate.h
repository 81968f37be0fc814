/* Mutations for fuzzing: of any bytes, and of protobuf messages with their structure kept in order. */
#ifndef HN_TESTS_FUZZ_MUTATE_H
#define HN_TESTS_FUZZ_MUTATE_H

#include <stddef.h>
#include <stdint.h>

#include "base/os.h"

/** A heap buffer that owns its bytes. */
typedef struct fuzz_buf {
    uint8_t *at;
    size_t n;
} fuzz_buf;

void fuzz_buf_done(fuzz_buf *b);
fuzz_buf fuzz_buf_copy(const void *data, size_t n);

/**
 * Change a protobuf message in a way that leaves it mostly well-formed: fields are dropped, doubled, swapped, moved,
 * renumbered, given extreme numbers or each other's contents; the lengths around them are put right. One time in eight
 * the result is damaged as plain bytes instead. The schema is not known: a length-delimited field counts as a message
 * when its bytes parse as one.
 */
void fuzz_mutate_message(fuzz_buf *b, hn_rng *rng);

/** Flip, drop, double or overwrite a few bytes, or cut the end off. */
void fuzz_mutate_bytes(fuzz_buf *b, hn_rng *rng);

/** Change text: pieces dropped, doubled, swapped, numbers made extreme, brackets unbalanced. Stays NUL-terminated. */
void fuzz_mutate_text(fuzz_buf *b, hn_rng *rng);

#endif
