/* Processor odds and ends: pauses and the float environment. */
#ifndef HN_DEV_CPU_CPU_INT_H
#define HN_DEV_CPU_CPU_INT_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

static inline void hn_cpu_pause(void)
{
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb"); /* about as long as a pause; yield is a no-op on most cores */
#endif
}

/** This thread's float environment as one word. */
uint64_t hn_cpu_float_get(void);
void hn_cpu_float_set(uint64_t v);
/** Round to nearest, denormals kept, exceptions masked. */
void hn_cpu_float_default(void);

#endif
