/* A weighted sum of gathers: one for each combination of taps along the axes. */
#include "op/sample_int.h"

static const double CUBIC_A = -0.75; /* grid_sample fixes it */

/* Fold v into [lo, hi] by mirroring; size 1 has no room to mirror and is left to the clamp that follows. */
static hn_value *x_reflect(hn_builder *b, const sampler *s, int axis, hn_value *v)
{
    hn_value *size = s->size[axis];
    hn_value *lo = x_k(b, v, s->align_corners ? 0 : -0.5),
             *range = s->align_corners ? x_add_k(b, size, -1) : size;

    range = x_select(b, x_eq_k(b, range, 0), x_k(b, range, 1), range);
    hn_value *d = x_abs(b, x_sub(b, v, lo)), *twice = x_mul_k(b, range, 2);
    hn_value *m = x_sub(b, d, x_mul(b, x_floor(b, x_div(b, d, twice)), twice));
    return x_add(b, x_select(b, x_gt(b, m, range), x_sub(b, twice, m), m), lo);
}

static hn_value *x_clamp(hn_builder *b, hn_value *v, hn_value *size)
{
    return x_min(b, x_max(b, v, x_k(b, v, 0)), x_add_k(b, size, -1));
}

/* The place as sampling starts from: rounded for nearest, brought inside for border and reflection. (Border clamps a
 * cubic's taps instead.) */
static hn_value *x_start(hn_builder *b, const sampler *s, int axis)
{
    hn_value *v = s->place[axis];

    if (s->mode == SAMPLE_NEAREST) v = x_round(b, v);
    if (s->padding == SAMPLE_BORDER && s->mode != SAMPLE_CUBIC) return x_clamp(b, v, s->size[axis]);
    if (s->padding != SAMPLE_REFLECTION) return v;
    hn_value *last = x_add_k(b, s->size[axis], s->align_corners ? -1 : -0.5);
    hn_value *outside = x_or(b, x_lt(b, v, x_k(b, v, s->align_corners ? 0 : -0.5)), x_gt(b, v, last));
    return x_select(b, outside, x_reflect(b, s, axis, v), v);
}

/* Cubic convolution weights for taps -1, 0, 1, 2 at fraction f. */
static hn_value *x_cubic_weight(hn_builder *b, hn_value *f, int tap)
{
    const double a = CUBIC_A;
    hn_value *t = tap <= 0 ? x_add_k(b, f, -tap) : x_sub(b, x_k(b, f, tap), f);

    if (tap == 0 || tap == 1) {
        hn_value *p = x_mul(b, x_mul(b, x_add_k(b, x_mul_k(b, t, a + 2), -(a + 3)), t), t);
        return x_add_k(b, p, 1);
    }
    hn_value *p = x_add_k(b, x_mul(b, x_add_k(b, x_mul_k(b, t, a), -5 * a), t), 8 * a);
    return x_add_k(b, x_mul(b, p, t), -4 * a);
}

typedef struct tap {
    hn_value *index;  /* i64 [batch, points, 1], in range */
    hn_value *inside; /* bool, NULL when always */
    hn_value *weight; /* NULL for 1 */
} tap;

static tap x_tap(hn_builder *b, const sampler *s, int axis, hn_value *start, hn_value *low, int k)
{
    tap t = {0};
    hn_value *at = s->mode == SAMPLE_NEAREST ? start : x_add_k(b, low, k), *f = x_sub(b, start, low);

    if (s->padding == SAMPLE_ZEROS) t.inside = x_and(b, x_ge_k(b, at, 0), x_lt(b, at, s->size[axis]));
    if (s->mode == SAMPLE_LINEAR) t.weight = k == 0 ? x_sub(b, x_k(b, f, 1), f) : f;
    if (s->mode == SAMPLE_CUBIC) t.weight = x_cubic_weight(b, f, k);
    if (s->padding == SAMPLE_REFLECTION && s->mode == SAMPLE_CUBIC) at = x_reflect(b, s, axis, at);
    t.index = x_cast(b, x_clamp(b, at, s->size[axis]), HN_I64);
    return t;
}

/* One combination of taps: its elements times the product of its weights, 0 where any tap lies outside. */
static hn_value *x_combination(hn_builder *b, const sampler *s, hn_value *data, const tap *const *pick)
{
    hn_value *index[SAMPLE_MAX_AXES], *weight = NULL, *inside = NULL;

    for (int a = 0; a < s->n_axis; a++) {
        const tap *t = pick[a];
        index[a] = t->index;
        if (t->weight) weight = weight ? x_mul(b, weight, t->weight) : t->weight;
        if (t->inside) inside = inside ? x_and(b, inside, t->inside) : t->inside;
    }
    hn_value *v = hn_b2(b, HN_OP_gather_nd, data, x_concat(b, s->n_axis, index, 2),
                        HN_ATTRS_ARG(HN_A_I("batch_dims", 1)));
    if (weight) v = x_mul(b, v, weight);
    return inside ? x_select(b, inside, v, x_k(b, v, 0)) : v;
}

hn_value *x_sample(hn_builder *b, const sampler *s, hn_value *data)
{
    const int n_tap = s->mode == SAMPLE_NEAREST  ? 1
                      : s->mode == SAMPLE_LINEAR ? 2
                                                 : 4,
              first = n_tap == 4 ? -1 : 0;
    tap t[SAMPLE_MAX_AXES][4];
    const tap *pick[SAMPLE_MAX_AXES];
    hn_value *sum = NULL;
    int n = 1;

    for (int a = 0; a < s->n_axis; a++) {
        hn_value *start = x_start(b, s, a), *low = x_floor(b, start);
        for (int k = 0; k < n_tap; k++)
            t[a][k] = x_tap(b, s, a, start, low, first + k);
        n *= n_tap;
    }
    for (int i = 0; i < n; i++) {
        for (int a = s->n_axis - 1, rest = i; a >= 0; a--, rest /= n_tap)
            pick[a] = &t[a][rest % n_tap];
        hn_value *v = x_combination(b, s, data, pick);
        sum = sum ? x_add(b, sum, v) : v;
    }
    return sum;
}
