/*
 * Expansion of resize, one axis after another. A place in the input is (o + shift) * num / den + base for
 * every coordinate rule. With known extents the taps are tables made here: a slice where the
 * pattern allows, up to MANY_TAPS gathers and a weighted sum, or a product with a dense matrix. With symbolic
 * extents the same tables are computed by index arithmetic in f64 (f32 would misplace ties), and in a loop
 * over taps where their number is not known.
 */
#include "op/resize_int.h"

enum { MANY_TAPS = 4 };

typedef struct axis_job {
    const hn_node *n;
    int axis;
    hn_dim n_in, n_out;
    double scale;      /* as given; 0: n_out / n_in, or what `given` says */
    double start, end; /* region */
    hn_value *given;   /* what only a run shows; NULL: all is known of this axis */
    bool region;       /* start and end are known */
    int64_t mode, coord, rule;
    double a;
    bool exclude, antialias;
} axis_job;

static axis_job job_of(const hn_node *n, int axis)
{
    int n_scale, n_roi;
    const double *scale = hn_attr_fs(n, "scale", &n_scale), *roi = hn_attr_fs(n, "roi", &n_roi);
    const int rank = hn_in(n, 0)->type.rank;
    const bool crop = hn_attr_i(n, "coord") == RS_TF_CROP, region = !crop || n_roi == 2 * rank;
    hn_value *given = n->n_in > 1 ? hn_in(n, 1) : NULL;

    return (axis_job){
        .n = n,
        .axis = axis,
        .n_in = hn_in(n, 0)->type.dim[axis],
        .n_out = hn_out(n, 0)->type.dim[axis],
        .scale = n_scale ? scale[axis] : 0,
        .start = n_roi == 2 * rank ? roi[axis] : 0,
        .end = n_roi == 2 * rank ? roi[rank + axis] : 1,
        .given = region && n_scale && scale[axis] > 0 ? NULL : given,
        .region = region || !given,
        .mode = hn_attr_i(n, "mode"),
        .coord = hn_attr_i(n, "coord"),
        .rule = hn_attr_i(n, "nearest"),
        .a = hn_attr_f(n, "cubic_a"),
        .exclude = hn_attr_i(n, "exclude_outside") != 0,
        .antialias = hn_attr_i(n, "antialias") != 0,
    };
}

/* Same extent, unit scale, whole region: every rule places o at o. */
static bool is_identity(const axis_job *j)
{
    return !j->given && j->n_in == j->n_out && (j->scale == 0 || j->scale == 1) &&
           (j->coord != RS_TF_CROP || (j->start == 0 && j->end == 1));
}

/* ---- known extents ---- */

typedef struct line {
    double shift, num, den, base;
} line;

static line line_of(const axis_job *j, double n_in, double n_out)
{
    const double scale = j->scale > 0 ? j->scale : n_out / n_in,
                 width = j->scale > 0 ? j->scale * n_in : n_out;
    const line half = {0.5, 1, scale, -0.5};

    switch (j->coord) {
    case RS_PYTORCH_HALF_PIXEL:
        return n_out > 1 ? half : (line){0, 0, 1, 0};
    case RS_ALIGN_CORNERS:
        return width == 1 ? (line){0, 0, 1, 0} : (line){0, n_in - 1, width - 1, 0};
    case RS_ASYMMETRIC:
        return (line){0, 1, scale, 0};
    case RS_TF_CROP:
        if (width == 1) return (line){0, 0, 1, (j->start + j->end) * 0.5 * (n_in - 1)};
        return (line){0, (j->end - j->start) * (n_in - 1), width - 1, j->start * (n_in - 1)};
    case RS_HALF_PIXEL_SYMMETRIC:
        return (line){0.5, 1, scale, n_in / 2 * (1 - n_out / width) - 0.5};
    default:
        return half;
    }
}

static double line_at(const line *l, int64_t o)
{
    return ((double)o + l->shift) * l->num / l->den + l->base;
}

static int64_t nearest_index(int64_t rule, double x, int64_t n)
{
    double i;

    if (rule == RS_PREFER_FLOOR)
        i = ceil(x - 0.5);
    else if (rule == RS_PREFER_CEIL)
        i = floor(x + 0.5);
    else
        i = rule == RS_FLOOR ? floor(x) : ceil(x);
    return i < 0 ? 0 : i > (double)(n - 1) ? n - 1 : (int64_t)i;
}

/* y = x[index] along the axis: a slice when the indices are evenly spaced. Elements that repeat are gathered too, although a
 * broadcast between two reshapes would do: x keeps its rank, and with it the layout that images are stored in. */
static hn_value *x_pick(hn_builder *b, hn_value *x, int axis, const int64_t *index, int64_t n)
{
    const int64_t step = n > 1 ? index[1] - index[0] : 1;
    bool even = step >= 1;
    for (int64_t i = 0; i < n; i++) even = even && index[i] == index[0] + i * step;
    return even ? x_slice_step(b, x, axis, index[0], step, n) : x_gather(b, x, hn_const_is(b, (int)n, index), axis);
}

static double kernel(const axis_job *j, double t)
{
    t = fabs(t);
    if (j->mode == RS_MODE_LINEAR) return fmax(0, 1 - t);
    if (t <= 1) return ((j->a + 2) * t - (j->a + 3)) * t * t + 1;
    return t < 2 ? ((j->a * t - 5 * j->a) * t + 8 * j->a) * t - 4 * j->a : 0;
}

/* Taps of every output: index[k * n_out + o], weight likewise; each output's weights sum to 1. */
typedef struct taps {
    int n;
    int64_t *index;
    double *weight;
} taps;

/* Taps of output o that the edge moved to one element become one: of opposite signs, an infinity there would make NaN of them. */
static void merge_taps(taps *t, int64_t n_out, int64_t o)
{
    for (int k = 1; k < t->n; k++)
        for (int i = 0; i < k; i++) {
            if (t->index[i * n_out + o] != t->index[k * n_out + o]) continue;
            t->weight[i * n_out + o] += t->weight[k * n_out + o];
            t->weight[k * n_out + o] = 0;
            break;
        }
}

static bool make_taps(hn_builder *b, const axis_job *j, int64_t n_in, int64_t n_out, taps *t)
{
    const line l = line_of(j, (double)n_in, (double)n_out);
    const double scale = j->scale > 0 ? j->scale : (double)n_out / (double)n_in;
    const double stretch = j->antialias && scale < 1 ? scale : 1;
    const int half = (int)fmin(ceil((j->mode == RS_MODE_LINEAR ? 1 : 2) / stretch), (double)(1 << 20));

    t->n = 2 * half;
    t->index = HN_NEW_N(b->g->arena, int64_t, t->n * n_out + 1);
    t->weight = HN_NEW_N(b->g->arena, double, t->n *n_out + 1);
    if (!t->index || !t->weight) return false;
    for (int64_t o = 0; o < n_out; o++) {
        const double x = line_at(&l, o);
        double sum = 0;
        for (int k = 0; k < t->n; k++) {
            const double p = floor(x) + 1 - half + k;
            const bool outside = p < 0 || p > (double)(n_in - 1);
            t->index[k * n_out + o] = p < 0 ? 0 : p > (double)(n_in - 1) ? n_in - 1 : (int64_t)p;
            t->weight[k * n_out + o] = j->exclude && outside ? 0 : kernel(j, stretch * (p - x));
            sum += t->weight[k * n_out + o];
        }
        for (int k = 0; k < t->n; k++)
            t->weight[k * n_out + o] /= sum;
        if (t->n > 2) merge_taps(t, n_out, o);
    }
    return true;
}

/* part * w along an axis; a weight of 0 yields 0 whatever lies there, so that infinities stay where they are. */
static hn_value *x_weighted(hn_builder *b, hn_value *part, hn_value *w, int axis, bool zeros)
{
    if (!part || !w) return NULL;
    w = x_along(b, w, part->type.rank, axis);
    hn_value *y = x_mul(b, part, w);
    return zeros ? x_select(b, x_eq_k(b, w, 0), x_k(b, y, 0), y) : y;
}

static bool any_zero(const double *w, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (w[i] == 0) return true;
    return false;
}

static hn_value *x_weighted_gathers(hn_builder *b, hn_value *x, int axis, const taps *t, int64_t n_out)
{
    hn_value *sum = NULL;

    for (int k = 0; x && k < t->n; k++) {
        hn_value *w = hn_const_fs(b, x->type.dtype, 1, &n_out, t->weight + k * n_out);
        hn_value *part = x_gather(b, x, hn_const_is(b, (int)n_out, t->index + k * n_out), axis);
        part = x_weighted(b, part, w, axis, any_zero(t->weight + k * n_out, n_out));
        sum = sum ? x_add(b, sum, part) : part;
    }
    return sum;
}

static hn_value *x_dense(hn_builder *b, hn_value *x, int axis, const taps *t, int64_t n_out)
{
    const int64_t n_in = x->type.dim[axis], shape[2] = {n_out, n_in};
    double *w = HN_NEW_N(b->g->arena, double, n_in *n_out + 1);
    const int rank = x->type.rank;

    if (!w) return NULL;
    for (int64_t i = 0; i < t->n * n_out; i++)
        w[i % n_out * n_in + t->index[i]] += t->weight[i];
    hn_value *m = hn_const_fs(b, x->type.dtype, 2, shape, w);
    if (rank >= 2 && axis == rank - 2) return x_matmul(b, m, x, false, false);
    if (rank == 1) return x_squeeze(b, x_matmul(b, x_unsqueeze(b, x, 0), m, false, true), 0);
    return x_swap(b, x_matmul(b, x_swap(b, x, axis, rank - 1), m, false, true), axis, rank - 1);
}

static hn_value *x_known(hn_builder *b, const axis_job *j, hn_value *x)
{
    const int64_t n_in = j->n_in, n_out = j->n_out;
    taps t;

    if (j->mode == RS_MODE_NEAREST) {
        const line l = line_of(j, (double)n_in, (double)n_out);
        int64_t *index = HN_NEW_N(b->g->arena, int64_t, n_out + 1);
        for (int64_t o = 0; index && o < n_out; o++)
            index[o] = nearest_index(j->rule, line_at(&l, o), n_in);
        return index ? x_pick(b, x, j->axis, index, n_out) : NULL;
    }
    if (!make_taps(b, j, n_in, n_out, &t)) return NULL;
    return t.n <= MANY_TAPS ? x_weighted_gathers(b, x, j->axis, &t, n_out)
                            : x_dense(b, x, j->axis, &t, n_out);
}

/* bool[n_out]: places outside the input. */
static hn_value *x_known_outside(hn_builder *b, const axis_job *j)
{
    const line l = line_of(j, (double)j->n_in, (double)j->n_out);
    double *out = HN_NEW_N(b->g->arena, double, j->n_out + 1);

    if (!out) return NULL;
    for (int64_t o = 0; o < j->n_out; o++)
        out[o] = line_at(&l, o) < 0 || line_at(&l, o) > (double)(j->n_in - 1);
    return hn_const_fs(b, HN_BOOL, 1, &j->n_out, out);
}

/* ---- symbolic extents ---- */

/* Everything that the taps of one axis are computed from; vectors are f64[n_out]. */
typedef struct places {
    const axis_job *j;
    hn_value *x, *data;                 /* places; what is gathered */
    hn_value *floor_x, *stretch, *last; /* stretch: f64[] or NULL for 1; last: n_in - 1 */
} places;

/* Number `what` of those that only a run shows, of this axis: 0 its scale, 1 where its region starts, 2 where that ends. */
static hn_value *x_given(hn_builder *b, const axis_job *j, int what)
{
    const int64_t rank = hn_in(j->n, 0)->type.rank;
    return x_squeeze(b, x_slice_step(b, j->given, 0, what * rank + j->axis, 1, 1), 0);
}

/* f64[]: the scale, and what it makes of the extent, which the result's cuts off; of a scale of 0 both follow from the result. */
static hn_value *x_scale(hn_builder *b, const axis_job *j, hn_value **ret_width)
{
    hn_value *n_in = x_dim(b, HN_F64, j->n_in), *n_out = x_dim(b, HN_F64, j->n_out);
    hn_value *told = j->scale > 0 ? hn_const_f(b, HN_F64, j->scale) : j->given ? x_given(b, j, 0) : NULL;
    hn_value *quotient = j->scale > 0 ? NULL : x_div(b, n_out, n_in), *none = quotient && told ? x_eq_k(b, told, 0) : NULL;

    *ret_width = !told ? n_out : none ? x_select(b, none, n_out, x_mul(b, n_in, told)) : x_mul(b, n_in, told);
    return !told ? quotient : none ? x_select(b, none, quotient, told) : told;
}

/* 0 where the width is 1, else v. */
static hn_value *x_unless_one(hn_builder *b, hn_value *width, hn_value *v)
{
    return x_select(b, x_eq_k(b, width, 1), x_k(b, v, 0), v);
}

static hn_value *x_places(hn_builder *b, const axis_job *j)
{
    hn_value *o = x_iota(b, HN_F64, 1, 0, j->n_out), *n_in = x_dim(b, HN_F64, j->n_in),
             *n_out = x_dim(b, HN_F64, j->n_out);
    hn_value *width, *scale = x_scale(b, j, &width), *span = x_add_k(b, n_in, -1);
    hn_value *half = x_add_k(b, x_div(b, x_add_k(b, o, 0.5), scale), -0.5);
    /* (width - 1), kept from 0 so that nothing divides by it */
    hn_value *steps = x_select(b, x_eq_k(b, width, 1), x_k(b, width, 1), x_add_k(b, width, -1));

    switch (j->coord) {
    case RS_PYTORCH_HALF_PIXEL:
        return x_unless_one(b, n_out, half);
    case RS_ALIGN_CORNERS:
        return x_unless_one(b, width, x_div(b, x_mul(b, o, span), steps));
    case RS_ASYMMETRIC:
        return x_div(b, o, scale);
    case RS_TF_CROP: {
        hn_value *start = j->region ? hn_const_f(b, HN_F64, j->start) : x_given(b, j, 1),
                 *end = j->region ? hn_const_f(b, HN_F64, j->end) : x_given(b, j, 2);
        hn_value *walk = x_div(b, x_mul(b, o, x_mul(b, span, x_sub(b, end, start))), steps);
        hn_value *many = x_add(b, walk, x_mul(b, span, start));
        return x_select(b, x_eq_k(b, width, 1), x_mul(b, span, x_mul_k(b, x_add(b, start, end), 0.5)), many);
    }
    case RS_HALF_PIXEL_SYMMETRIC: {
        hn_value *rest = x_sub(b, x_k(b, width, 1), x_div(b, n_out, width));
        return x_add(b, half, x_mul(b, x_mul_k(b, n_in, 0.5), rest));
    }
    default:
        return half;
    }
}

static hn_value *x_index(hn_builder *b, hn_value *at, hn_value *last)
{
    hn_value *zero = x_k(b, at, 0);
    return x_cast(b, x_min(b, x_max(b, at, zero), last), HN_I64);
}

static hn_value *x_kernel(hn_builder *b, const axis_job *j, hn_value *t)
{
    const double a = j->a;

    t = x_abs(b, t);
    if (j->mode == RS_MODE_LINEAR) return x_relu(b, x_sub(b, x_k(b, t, 1), t));
    hn_value *near = x_mul(b, x_mul(b, x_add_k(b, x_mul_k(b, t, a + 2), -(a + 3)), t), t);
    hn_value *far =
        x_add_k(b, x_mul(b, x_add_k(b, x_mul(b, x_add_k(b, x_mul_k(b, t, a), -5 * a), t), 8 * a), t), -4 * a);
    far = x_select(b, x_lt_k(b, t, 2), far, x_k(b, t, 0));
    return x_select(b, x_le_k(b, t, 1), x_add_k(b, near, 1), far);
}

/* One tap of every output: where it reads, i64[n_out], and its weight, f64[n_out]. */
typedef struct tap {
    hn_value *index, *weight;
} tap;

/* The tap at floor(x) + k. */
static tap x_tap(hn_builder *b, const places *p, hn_value *k)
{
    hn_value *at = x_add(b, p->floor_x, k), *t = x_sub(b, at, p->x);
    hn_value *w = x_kernel(b, p->j, p->stretch ? x_mul(b, t, p->stretch) : t);

    if (p->j->exclude) {
        hn_value *inside = x_and(b, x_ge_k(b, at, 0), x_le(b, at, p->last));
        w = x_select(b, inside, w, x_k(b, w, 0));
    }
    return (tap){ x_index(b, at, p->last), w };
}

static hn_value *x_tapped(hn_builder *b, const places *p, const tap *t)
{
    hn_value *part = x_gather(b, p->data, t->index, p->j->axis);
    return x_weighted(b, part, x_cast(b, t->weight, p->data->type.dtype), p->j->axis, true);
}

/* As merge_taps(): the weight of a tap that reads what the next one reads goes to that. */
static void x_hand_on(hn_builder *b, hn_value *same, tap *t, tap *next)
{
    hn_value *none = x_k(b, t->weight, 0);
    next->weight = x_add(b, next->weight, x_select(b, same, t->weight, none));
    t->weight = x_select(b, same, none, t->weight);
}

static hn_value *x_few_taps(hn_builder *b, const places *p, int half, hn_value **ret_sum)
{
    hn_value *sum = NULL, *total = NULL;
    tap t[4];

    for (int i = 0; i < 2 * half; i++) {
        t[i] = x_tap(b, p, hn_const_f(b, HN_F64, i + 1 - half));
        total = total ? x_add(b, total, t[i].weight) : t[i].weight;
    }
    for (int i = 0; i < 2 * half; i++) {
        if (p->j->mode == RS_MODE_CUBIC && i + 1 < 2 * half)
            x_hand_on(b, x_eq(b, t[i].index, t[i + 1].index), &t[i], &t[i + 1]);
        hn_value *part = x_tapped(b, p, &t[i]);
        sum = sum ? x_add(b, sum, part) : part;
    }
    *ret_sum = total;
    return sum;
}

typedef struct tap_loop {
    const places *p;
    hn_value *first, *count; /* f64[]: 1 - half; taps in all */
} tap_loop;

/* Carried: the sum, the weights' sum, and the weight that the taps before handed on. */
static void fill(x_loop_ctx *l)
{
    const tap_loop *u = l->user;
    hn_builder *b = l->b;
    hn_value *i = x_cast(b, l->iter, HN_F64), *k = x_add(b, i, u->first), *after = x_add_k(b, i, 1);
    tap t = x_tap(b, u->p, k), next = { x_tap(b, u->p, x_add_k(b, k, 1)).index, x_k(b, t.weight, 0) };

    l->next[1] = x_add(b, l->carried[1], t.weight);
    t.weight = x_add(b, t.weight, l->carried[2]);
    x_hand_on(b, x_and(b, x_eq(b, t.index, next.index), x_lt(b, after, u->count)), &t, &next);
    l->next[0] = x_add(b, l->carried[0], x_tapped(b, u->p, &t));
    l->next[2] = next.weight;
}

/* The filter's reach depends on a scale known only when running: loop over as many taps as it needs. */
static hn_value *x_any_taps(hn_builder *b, const places *p, hn_value **ret_sum)
{
    hn_value *reach = x_k(b, p->stretch, p->j->mode == RS_MODE_LINEAR ? 1 : 2);
    hn_value *half = x_ceil(b, x_div(b, reach, p->stretch)), *count = x_mul_k(b, half, 2);
    const tap_loop user = {p, x_sub(b, x_k(b, half, 1), half), count};
    hn_tdesc type = p->data->type;
    hn_value *init[3], *ret[3];

    type.dim[p->j->axis] = p->j->n_out;
    init[0] = x_full(b, type.dtype, type.rank, type.dim, 0);
    init[1] = x_full(b, HN_F64, 1, &p->j->n_out, 0);
    init[2] = x_full(b, HN_F64, 1, &p->j->n_out, 0);
    x_loop(b, &(x_loop_spec){x_cast(b, count, HN_I64), 3, 0, init, fill, &user}, ret);
    *ret_sum = ret[1];
    return ret[0];
}

static hn_value *x_symbolic_nearest(hn_builder *b, const axis_job *j, hn_value *x, hn_value *at)
{
    hn_value *i;

    if (j->rule == RS_PREFER_FLOOR)
        i = x_ceil(b, x_add_k(b, at, -0.5));
    else if (j->rule == RS_PREFER_CEIL)
        i = x_floor(b, x_add_k(b, at, 0.5));
    else
        i = j->rule == RS_FLOOR ? x_floor(b, at) : x_ceil(b, at);
    return x_gather(b, x, x_index(b, i, x_dim(b, HN_F64, x_dsub(b, j->n_in, 1))), j->axis);
}

static hn_value *x_symbolic(hn_builder *b, const axis_job *j, hn_value *x)
{
    hn_value *at = x_places(b, j), *sum, *total;

    if (!x || !at) return NULL;
    if (j->mode == RS_MODE_NEAREST) return x_symbolic_nearest(b, j, x, at);
    places p = {.j = j,
                .x = at,
                .data = x,
                .floor_x = x_floor(b, at),
                .last = x_dim(b, HN_F64, x_dsub(b, j->n_in, 1))};
    const int reach = j->mode == RS_MODE_LINEAR ? 1 : 2;
    const bool shrinks = j->antialias && (j->scale == 0 || j->scale < 1);
    if (shrinks) {
        hn_value *width;
        p.stretch = x_min_k(b, x_scale(b, j, &width), 1);
    }
    if (b->status != HONE_OK) return NULL;
    sum = shrinks ? x_any_taps(b, &p, &total) : x_few_taps(b, &p, reach, &total);
    if (!shrinks && !j->exclude) return sum; /* the weights sum to 1 as they are */
    return x_div(b, sum, x_along(b, x_cast(b, total, x->type.dtype), x->type.rank, j->axis));
}

static hn_value *x_symbolic_outside(hn_builder *b, const axis_job *j)
{
    hn_value *at = x_places(b, j);
    return x_or(b, x_lt_k(b, at, 0), x_gt(b, at, x_dim(b, HN_F64, x_dsub(b, j->n_in, 1))));
}

/* ---- both ---- */

/* Tables are made here where they are of a size that images have. */
static bool known(const axis_job *j)
{
    enum { LONGEST = 1 << 20 };
    return !j->given && hn_dim_is_const(j->n_in) && hn_dim_is_const(j->n_out) && j->n_in <= LONGEST && j->n_out <= LONGEST;
}

/* Elements placed outside along any axis become the extrapolation value. */
static hn_value *x_extrapolate(hn_builder *b, const hn_node *n, hn_value *y)
{
    hn_value *outside = NULL;

    for (int axis = 0; y && axis < y->type.rank; axis++) {
        const axis_job j = job_of(n, axis);
        if (is_identity(&j)) continue;
        hn_value *o =
            x_along(b, known(&j) ? x_known_outside(b, &j) : x_symbolic_outside(b, &j), y->type.rank, axis);
        outside = outside ? x_or(b, outside, o) : o;
    }
    return outside ? x_select(b, outside, x_k(b, y, hn_attr_f(n, "extrapolation")), y) : y;
}

/* Integers interpolate in floating point and are clamped before the cast truncates. */
static hn_value *x_back(hn_builder *b, hn_value *y, hn_dtype t)
{
    double lo, hi;

    if (!y || hn_dtype_is_float(t) || y->type.dtype == t) return x_cast(b, y, t);
    rs_int_range(t, &lo, &hi);
    return x_cast(b, x_clip(b, y, lo, hi), t);
}

hone_status rs_expand(hn_builder *b, const hn_node *n, hn_value **out)
{
    hn_value *x = hn_in(n, 0);
    const hn_dtype t = x->type.dtype;
    const hn_tdesc to = hn_out(n, 0)->type;

    if (hn_attr_i(n, "mode") != RS_MODE_NEAREST)
        x = hn_dtype_is_float(t) ? x_up(b, x) : x_cast(b, x, hn_dtype_bits(t) <= 16 ? HN_F32 : HN_F64);
    for (int axis = 0; x && axis < to.rank; axis++) {
        const axis_job j = job_of(n, axis);
        if (is_identity(&j)) continue;
        if (j.n_in == 0 || j.n_out == 0) { /* nothing to place */
            x = x_full(b, x->type.dtype, to.rank, to.dim, 0);
            break;
        }
        x = known(&j) ? x_known(b, &j, x) : x_symbolic(b, &j, x);
    }
    if (hn_attr_i(n, "coord") == RS_TF_CROP) x = x_extrapolate(b, n, x);
    out[0] = x_back(b, x, t);
    if (!out[0] && b->status == HONE_OK) b->status = HN_NOMEM(b->dg);
    return x_done(b);
}
