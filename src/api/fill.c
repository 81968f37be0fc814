/* Values for inputs that nobody gives: what the hint says fits, the same from a model and from its engine. */
#include "api/api_int.h"
#include "engine/plan.h"

#include <stdlib.h>

static void fill_ints(hn_rng *rng, hn_dtype t, int64_t n, uint32_t hint, void *data)
{
    const int64_t below = hint >= HN_HINT_BELOW ? (int64_t)hint - HN_HINT_BELOW + 1 : 2;
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = hint == HN_HINT_ONES ? 1 : hn_rng_below(rng, below);
        hn_narrow_i64(t, &x, 1, data, i);
    }
}

static void fill_floats(hn_rng *rng, hn_dtype t, int64_t n, uint32_t hint, void *data)
{
    for (int64_t i = 0; i < n; i++) {
        const double x = hint == HN_HINT_ONES ? 1 : hn_rng_unit(rng);
        hn_narrow_f64(t, &x, 1, data, i, true);
    }
}

void hn_api_fill(const char *name, int input, hn_dtype t, int64_t n, uint32_t hint, uint64_t seed, void *data, hn_str *note)
{
    hn_rng rng;
    hn_rng_init(&rng, seed * 1000003 + (uint64_t)input);
    if (hn_dtype_is_float(t)) fill_floats(&rng, t, n, hint, data);
    else fill_ints(&rng, t, n, hint, data);
    hn_str_addf(note, "%s\"%s\": ", note->n ? "; " : "", name);
    if (hint == HN_HINT_ONES) hn_str_add(note, "ones");
    else if (hn_dtype_is_float(t)) hn_str_add(note, "uniform in [0,1)");
    else if (hint >= HN_HINT_BELOW) hn_str_addf(note, "indices below %lld", (long long)hint - HN_HINT_BELOW + 1);
    else hn_str_add(note, "0 or 1");
}

void hone_tensor_free(hone_tensor *t)
{
    if (!t) return;
    free(t->data);
    t->data = NULL;
}
