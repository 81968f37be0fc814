#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/os.h"

static int64_t read_clock(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int64_t hn_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t hn_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void hn_sleep_ns(int64_t ns)
{
    if (ns <= 0) return;
    struct timespec ts = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

/* splitmix64 spreads a seed over the state, which must not be all zero (Blackman and Vigna). */
void hn_rng_init(hn_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += 0x9E3779B97F4A7C15u);
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
        r->s[i] = z ^ (z >> 31);
    }
}

static uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t hn_rng_u64(hn_rng *r)
{
    uint64_t *s = r->s;
    const uint64_t result = rotl(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

double hn_rng_unit(hn_rng *r)
{
    return (double)(hn_rng_u64(r) >> 11) * 0x1p-53;
}

/* Box-Muller; the second variate is dropped so that a draw depends on the state alone. */
double hn_rng_normal(hn_rng *r)
{
    const double u = 1.0 - hn_rng_unit(r), v = hn_rng_unit(r);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

/* Unbiased by rejection of the incomplete last stretch. */
int64_t hn_rng_below(hn_rng *r, int64_t n)
{
    if (HN_NEVER(n <= 0)) return 0;
    const uint64_t un = (uint64_t)n, reject = -un % un;
    uint64_t x = hn_rng_u64(r);
    while (x < reject)
        x = hn_rng_u64(r);
    return (int64_t)(x % un);
}

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double hn_median(double *v, int n)
{
    if (n < 1) return 0;
    qsort(v, (size_t)n, sizeof *v, ascending);
    return v[n / 2];
}
