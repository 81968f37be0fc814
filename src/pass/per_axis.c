/* Constants that vary along one axis. */
#include "pass/pass_int.h"

#include <math.h>

static bool all_finite(const hn_value *s, int64_t n)
{
    enum { STEP = 64 };
    double x[STEP];
    for (int64_t i = 0; i < n; i += STEP) {
        const int64_t k = n - i < STEP ? n - i : STEP;
        hn_widen_f64(s->type.dtype, s->data->at, i, k, x);
        for (int64_t j = 0; j < k; j++)
            if (!isfinite(x[j])) return false;
    }
    return true;
}

bool hn_pass_per_axis(const hn_value *s, const hn_value *y, int axis)
{
    const hn_tdesc *st = &s->type, *yt = &y->type;
    if (!hn_is_const(s) || st->dtype != yt->dtype || !hn_dtype_is_float(st->dtype) || st->rank > yt->rank) return false;
    for (int i = 0; i < st->rank; i++) {
        const int at = yt->rank - st->rank + i;
        if (st->dim[i] != 1 && (at != axis || st->dim[i] != yt->dim[at])) return false;
    }
    return all_finite(s, hn_tdesc_numel_static(st));
}

hn_value *hn_pass_along(hn_builder *b, hn_value *s, int rank, int axis)
{
    hn_dim dim[HN_MAX_RANK];
    for (int i = 0; i < rank; i++) dim[i] = i == axis ? hn_tdesc_numel_static(&s->type) : 1;
    return hn_reshape(b, s, rank, dim);
}

bool hn_pass_with_const(const hn_node *n, hn_value **ret_x, hn_value **ret_const)
{
    const int c = hn_is_const(hn_in(n, 1)) ? 1 : 0;
    *ret_x = hn_in(n, !c);
    *ret_const = hn_in(n, c);
    return hn_is_const(*ret_const) && !hn_is_const(*ret_x);
}
