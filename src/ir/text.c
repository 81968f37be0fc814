/* Words of the text form. */
#include "ir/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const keywords[] = {"_", "as", "const", "from", "graph", "in", "opt", "out", "seq", "sym"};

bool hn_text_is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c && strchr("_./:$%", c));
}

bool hn_text_is_plain(const char *name)
{
    for (int i = 0; i < HN_COUNT(keywords); i++)
        if (strcmp(name, keywords[i]) == 0) return false;
    for (const char *s = name; *s; s++)
        if (!hn_text_is_name_char(*s)) return false;
    return *name != '\0';
}

/* SplitMix64 (Steele, Lea and Flood 2014) from a hash of the name. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* Floats lie in [-1, 1) and integers within [-8, 7], or [0, 7] where unsigned: sums of products stay well in
 * range. */
void hn_text_fill(const char *name, hn_dtype t, int64_t n, void *at)
{
    uint64_t state = hn_hash64(name, strlen(name), 1);
    for (int64_t i = 0; i < n; i++) {
        const uint64_t r = next_random(&state);
        const double f = (double)(r >> 11) * 0x1p-52 - 1;
        int64_t v = (int64_t)(r >> 60);
        if (t == HN_BOOL)
            v &= 1;
        else
            v = hn_dtype_is_signed(t) ? v - 8 : v & 7;
        if (hn_dtype_is_float(t))
            hn_narrow_f64(t, &f, 1, at, i, true);
        else
            hn_narrow_i64(t, &v, 1, at, i);
    }
}

void hn_text_float(hn_dtype t, double v, char *dst)
{
    if (isnan(v)) {
        strcpy(dst, "nan");
        return;
    }
    for (int digits = 1; digits <= 17; digits++) {
        double back;
        snprintf(dst, 40, "%.*g", digits, v);
        for (char *s = dst; *s; s++) /* the host program may have set a locale with decimal commas */
            if (*s == ',') *s = '.';
        if (hn_parse_f64(dst, &back) && hn_round_f64(t, back, true) == v) return;
    }
}

const char *hn_text_enum_name(const char *values, int64_t i, int *ret_n)
{
    for (; i > 0 && values; i--) {
        values = strchr(values, '|');
        if (values) values++;
    }
    *ret_n = values ? (int)strcspn(values, "|") : 0;
    return values;
}

int hn_text_enum_index(const char *values, const char *name, size_t n)
{
    int len;
    for (int i = 0;; i++) {
        const char *s = hn_text_enum_name(values, i, &len);
        if (!s) return -1;
        if ((size_t)len == n && memcmp(s, name, n) == 0) return i;
    }
}
