/* Counts every call of the allocator that the program makes, and lets calls fail. A test program that lists count_alloc among
 * its sources and dep_count_alloc among its deps is linked with --wrap. */
#ifndef HN_TESTS_COUNT_ALLOC_H
#define HN_TESTS_COUNT_ALLOC_H

#include <stdatomic.h>

/** malloc, calloc, realloc, aligned_alloc and mmap since the program began. */
extern atomic_int count_alloc_calls;
/** The n-th call from now fails, and all after it; 0: none. */
extern atomic_int count_alloc_fail_in;

#endif
