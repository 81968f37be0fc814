#include "count_alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_aligned_alloc(size_t align, size_t n);
void *__real_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);
void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_aligned_alloc(size_t align, size_t n);
void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset);

atomic_int count_alloc_calls, count_alloc_fail_in;

static bool fails(void)
{
    count_alloc_calls++;
    return count_alloc_fail_in && (count_alloc_fail_in == 1 || count_alloc_fail_in-- == 1);
}

void *__wrap_malloc(size_t n)
{
    if (fails()) return NULL;
    return __real_malloc(n);
}

void *__wrap_calloc(size_t n, size_t size)
{
    if (fails()) return NULL;
    return __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t n)
{
    if (fails()) return NULL;
    return __real_realloc(p, n);
}

void *__wrap_aligned_alloc(size_t align, size_t n)
{
    if (fails()) return NULL;
    return __real_aligned_alloc(align, n);
}

void *__wrap_mmap(void *at, size_t n, int prot, int flags, int fd, off_t offset)
{
    if (fails()) return MAP_FAILED;
    return __real_mmap(at, n, prot, flags, fd, offset);
}
