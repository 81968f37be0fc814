/* Words of the command line: strict numbers, and the name that was probably meant. */
#include "cli.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

char *cli_text(const char *fmt, ...)
{
    char *s = NULL;
    va_list ap;
    va_start(ap, fmt);
    if (vasprintf(&s, fmt, ap) < 0) s = NULL;
    va_end(ap);
    return cli_keep(s);
}

static const char *whole_range(int64_t lo, int64_t hi)
{
    if (hi == INT64_MAX) return cli_text("it is not a whole number of %lld or more", (long long)lo);
    return cli_text("it is not a whole number from %lld to %lld", (long long)lo, (long long)hi);
}

const char *cli_whole(const char *s, int64_t lo, int64_t hi, int64_t *ret)
{
    const size_t n = strlen(s), sign = *s == '-' || *s == '+';
    int64_t v = 0;
    bool fits = n > sign && strspn(s + sign, "0123456789") == n - sign;
    for (size_t i = sign; fits && i < n; i++) {
        const int64_t digit = *s == '-' ? '0' - s[i] : s[i] - '0';
        fits = !__builtin_mul_overflow(v, 10, &v) && !__builtin_add_overflow(v, digit, &v);
    }
    if (!fits || v < lo || v > hi) return whole_range(lo, hi);
    *ret = v;
    return NULL;
}

const char *cli_real(const char *s, double above, double *ret)
{
    char *end;
    const double v = strtod(s, &end);
    /* strtod also takes spaces, hexadecimal, inf and nan */
    const bool plain = *s && strspn(s, "0123456789+-.eE") == strlen(s) && *end == 0;
    if (!plain || !isfinite(v) || v <= above) return cli_text("it is not a number above %g", above);
    *ret = v;
    return NULL;
}

/* Insertions, deletions and replacements that turn a into b. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    const size_t na = strlen(a), nb = strlen(b);
    size_t row[MAX + 1];
    if (na > MAX || nb > MAX) return SIZE_MAX;
    for (size_t k = 0; k <= nb; k++) row[k] = k;
    for (size_t i = 1; i <= na; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t k = 1; k <= nb; k++) {
            const size_t replaced = corner + (a[i - 1] != b[k - 1]);
            const size_t added = (row[k] < row[k - 1] ? row[k] : row[k - 1]) + 1;
            corner = row[k];
            row[k] = replaced < added ? replaced : added;
        }
    }
    return row[nb];
}

const char *cli_nearest(const char *word, const char *const *names, int n)
{
    const char *best = NULL;
    size_t least = strlen(word) / 3 + 2; /* further away it was no slip of the finger */
    for (int i = 0; i < n; i++) {
        const size_t d = distance(word, names[i]);
        if (d >= least) continue;
        least = d;
        best = names[i];
    }
    return best;
}
