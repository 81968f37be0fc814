/* What must hold of any bytes that are imported as a model; the mutating tests and libFuzzer both ask it. */
#ifndef HN_TESTS_FUZZ_IMPORT_HOLDS_H
#define HN_TESTS_FUZZ_IMPORT_HOLDS_H

#include <stdbool.h>
#include <stddef.h>

/** An import either succeeds with a valid graph or says what is wrong and leaves none. False: why says how it did neither. */
bool fuzz_import_holds(const void *bytes, size_t n, char *why, size_t why_n);

#endif
