/* Lowering of views, generators and gathers: they rewrite the index and ask their operand there. */
#include "tactic/lower_int.h"

enum { PAD_CONSTANT, PAD_REFLECT, PAD_EDGE, PAD_WRAP }; /* as src/op/pad.c orders its modes */

bool hn_lower_is_view(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_transpose: case HN_OP_broadcast: case HN_OP_slice: case HN_OP_reshape: case HN_OP_diag_mask:
    case HN_OP_iota: case HN_OP_range: case HN_OP_dims: case HN_OP_gather: case HN_OP_gather_elements: case HN_OP_one_hot:
    case HN_OP_reorder: case HN_OP_pad: case HN_OP_gather_nd:
    case HN_OP_random_uniform: case HN_OP_random_normal: case HN_OP_bernoulli:
        return true;
    default:
        return false;
    }
}

static hn_kidx index_of_rank(const hn_kidx *idx, int rank)
{
    hn_kidx r;
    hn_kv none[HN_MAX_RANK];
    for (int i = 0; i < HN_MAX_RANK; i++) none[i] = HN_KV_NONE;
    hn_kidx_init(&r, rank, none);
    r.lanes = idx->lanes;
    r.aligned = idx->aligned;
    return r;
}

static void copy_axis(hn_kidx *dst, int a, const hn_kidx *src, int s)
{
    dst->at[a] = src->at[s];
    dst->step[a] = src->step[s];
    dst->vec[a] = src->vec[s];
    dst->block[a] = src->block[s];
    dst->outer[a] = src->outer[s];
    dst->inner[a] = src->inner[s];
}

static bool may_be_one(const hn_lower *l, hn_dim d)
{
    int64_t lo, hi;
    hn_dim_bounds(l->r->g->syms, d, &lo, &hi);
    return lo <= 1 && hi >= 1;
}

/* 0 where the extent is 1, else 1. */
static hn_kv more_than_one(hn_lower *l, hn_dim own)
{
    return hn_kb_sub(l->b, hn_kb_min(l->b, hn_lower_dim(l, own), hn_kb_i(l->b, 2)), hn_kb_i(l->b, 1));
}

hn_kv hn_lower_stretch(hn_lower *l, hn_kv at, hn_dim own, hn_dim whole)
{
    if (own == whole) return at;
    if (own == 1) return hn_kb_i(l->b, 0);
    return hn_dim_is_const(own) || !may_be_one(l, own) ? at : hn_kb_mul(l->b, at, more_than_one(l, own));
}

/* An extent that the run may show to be 1: the index, or 0 then. (The plan checks that it is nothing else.) */
static void stretch_axis(hn_lower *l, hn_kidx *dst, int a, const hn_kidx *src, int s, hn_dim own)
{
    const hn_kv more = more_than_one(l, own);
    const bool lanes = src->lanes > 1 && (hn_kv_is(src->vec[s]) || src->step[s]);
    hn_kv at = hn_kidx_axis(l, src, s);
    if (!lanes) at = src->at[s];
    hn_kidx_set(dst, a, hn_kb_mul(l->b, at, lanes ? hn_kb_splat(l->b, more, src->lanes) : more), 0, lanes);
}

void hn_lower_broadcast_idx(hn_lower *l, const hn_value *operand, const hn_value *result, const hn_kidx *idx, hn_kidx *ret)
{
    const int rank = operand->type.rank, shift = idx->rank - rank;
    *ret = index_of_rank(idx, rank);
    for (int a = 0; a < rank; a++) {
        const hn_dim own = operand->type.dim[a], whole = result->type.dim[a + shift];
        if (own == 1 && whole != 1) hn_kidx_set(ret, a, hn_kb_i(l->b, 0), 0, false);
        else if (own != whole && !hn_dim_is_const(own) && may_be_one(l, own)) stretch_axis(l, ret, a, idx, a + shift, own);
        else copy_axis(ret, a, idx, a + shift);
    }
}

static hn_kv lower_transpose(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    int rank;
    const int64_t *perm = hn_attr_is(n, "perm", &rank);
    hn_kidx in = index_of_rank(idx, rank);
    for (int a = 0; a < rank; a++) copy_axis(&in, (int)perm[a], idx, a);
    return hn_lower_value(l, hn_in(n, 0), &in, mask);
}

static hn_kv lower_slice(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    int rank;
    const hn_dim *start = hn_attr_is(n, "start", &rank);
    const int64_t *step = hn_attr_is(n, "step", &rank);
    hn_kidx in = *idx;
    for (int a = 0; a < rank; a++) {
        const hn_kv first = hn_lower_dim(l, start[a]);
        int64_t zero;
        if (step[a] == 1 && hn_kb_is_const(l->b, first, &zero) && zero == 0) continue;
        const bool vec = hn_kv_is(idx->vec[a]);
        const hn_kv at = hn_kb_add(l->b, hn_kb_muli(l->b, vec ? idx->vec[a] : idx->at[a], step[a]), first);
        if (idx->step[a] == 1) in.aligned = false;
        hn_kidx_set(&in, a, at, idx->step[a] * step[a], vec);
    }
    return hn_lower_value(l, hn_in(n, 0), &in, mask);
}

/* ---- reshape: match runs of axes whose products agree, linearise over one side, split over the other ---- */
typedef struct linear {
    hn_kv at;       /* scalar, when !is_vec */
    int64_t step;   /* per lane */
    bool is_vec, aligned;
    hn_kv vec;
} linear;

static linear linearise(hn_lower *l, const hn_kidx *idx, const hn_dim *dim, int first, int end)
{
    hn_kb *b = l->b;
    linear r = { .at = hn_kb_i(b, 0), .vec = HN_KV_NONE };
    for (int a = first; a < end; a++) {
        const hn_kv extent = hn_lower_dim(l, dim[a]);
        int64_t e = 0;
        const bool known = hn_kb_is_const(b, extent, &e);
        if (r.step && !known) { /* a lane step scaled by an unknown extent: go general */
            r.vec = hn_kb_ramp(b, r.at, r.step, idx->lanes);
            r.is_vec = true;
            r.step = 0;
        }
        r.at = r.is_vec ? r.at : hn_kb_mul(b, r.at, extent);
        if (r.is_vec) r.vec = hn_kb_mul(b, r.vec, hn_kb_splat(b, extent, idx->lanes));
        r.step *= e;
        if (hn_kv_is(idx->vec[a]) && !r.is_vec) {
            r.vec = r.step ? hn_kb_ramp(b, r.at, r.step, idx->lanes) : hn_kb_splat(b, r.at, idx->lanes);
            r.is_vec = true;
            r.step = 0;
        }
        if (r.is_vec) r.vec = hn_kb_add(b, r.vec, hn_kb_splat(b, hn_kidx_axis(l, idx, a), idx->lanes));
        else r.at = hn_kb_add(b, r.at, idx->at[a]);
        if (!r.is_vec) r.step += idx->step[a];
        /* The run stays aligned when every outer axis moves by whole runs. */
        if (idx->step[a] == 1) r.aligned = idx->aligned && a == end - 1 && (a == first || (known && e % idx->lanes == 0));
    }
    return r;
}

static void split_scalar(hn_lower *l, hn_kidx *in, const hn_dim *dim, int first, int end, hn_kv at, int64_t step)
{
    hn_kb *b = l->b;
    for (int a = end - 1; a > first; a--) {
        const hn_kv extent = hn_lower_dim(l, dim[a]);
        hn_kidx_set(in, a, hn_kb_imod(b, at, extent), a == end - 1 ? step : 0, false);
        at = hn_kb_idiv(b, at, extent);
    }
    hn_kidx_set(in, first, at, end - 1 == first ? step : 0, false);
}

static void split_vector(hn_lower *l, hn_kidx *in, const hn_dim *dim, int first, int end, hn_kv v)
{
    hn_kb *b = l->b;
    for (int a = end - 1; a > first; a--) {
        const hn_kv extent = hn_kb_splat(b, hn_lower_dim(l, dim[a]), in->lanes);
        hn_kidx_set(in, a, hn_kb_imod(b, v, extent), 0, true);
        v = hn_kb_idiv(b, v, extent);
    }
    hn_kidx_set(in, first, v, 0, true);
}

static void split(hn_lower *l, hn_kidx *in, const hn_dim *dim, int first, int end, const linear *x)
{
    const bool one = end - 1 == first;
    if (x->is_vec && in->lanes > 1) {
        split_vector(l, in, dim, first, end, x->vec);
        return;
    }
    /* Lanes that stay within the innermost axis keep their step; others need an index a lane. */
    int64_t inner = 0;
    const bool whole = hn_dim_known(l->r->g->syms, dim[end - 1], &inner) && x->step == 1 && x->aligned &&
                       inner % in->lanes == 0;
    if (x->step == 0 || one || whole) {
        split_scalar(l, in, dim, first, end, x->is_vec ? x->vec : x->at, x->step);
        if (x->step == 1) in->aligned = x->aligned;
    } else {
        split_vector(l, in, dim, first, end, hn_kb_ramp(l->b, x->at, x->step, in->lanes));
    }
}

static hn_dim product(hn_lower *l, const hn_dim *dim, int first, int end)
{
    hn_dim p = 1;
    for (int a = first; a < end; a++) p = hn_dim_mul(l->r->g->syms, p, dim[a]);
    return p;
}

/* Smallest runs [o0,o1) of out and [i0,i1) of in with equal products; to the ends when none is found. */
static void next_run(hn_lower *l, const hn_tdesc *out, int o0, int *o1, const hn_tdesc *in, int i0, int *i1)
{
    for (int n = 2; n <= out->rank - o0 + in->rank - i0; n++)
        for (int no = HN_MAX(1, n - (in->rank - i0)); no < n && no <= out->rank - o0; no++) {
            const int ni = n - no;
            if (ni > in->rank - i0) continue;
            if (product(l, out->dim, o0, o0 + no) != product(l, in->dim, i0, i0 + ni)) continue;
            *o1 = o0 + no;
            *i1 = i0 + ni;
            return;
        }
    *o1 = out->rank;
    *i1 = in->rank;
}

static void run_index(hn_lower *l, const hn_kidx *idx, const hn_tdesc *out, int o0, int o1, hn_kidx *in, const hn_tdesc *it,
                      int i0, int i1)
{
    if (i0 == i1) return; /* only ones are left in out */
    if (o1 - o0 == 1 && i1 - i0 == 1) {
        copy_axis(in, i0, idx, o0);
        return;
    }
    const linear x = linearise(l, idx, out->dim, o0, o1);
    split(l, in, it->dim, i0, i1, &x);
}

static void zero_axis(hn_lower *l, hn_kidx *in, int a)
{
    hn_kidx_set(in, a, hn_kb_i(l->b, 0), 0, false);
}

static hn_kv lower_reshape(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    const hn_tdesc *out = &n->out[0]->type, *it = &hn_in(n, 0)->type;
    hn_kidx in = index_of_rank(idx, it->rank);
    int o = 0, i = 0;
    while (o < out->rank || i < it->rank) {
        if (o < out->rank && out->dim[o] == 1 && !(i < it->rank && it->dim[i] == 1)) {
            o++;
        } else if (i < it->rank && it->dim[i] == 1 && !(o < out->rank && out->dim[o] == 1)) {
            zero_axis(l, &in, i++);
        } else if (o == out->rank) {
            zero_axis(l, &in, i++);
        } else if (i == it->rank) {
            o++;
        } else {
            int o1, i1;
            next_run(l, out, o, &o1, it, i, &i1);
            run_index(l, idx, out, o, o1, &in, it, i, i1);
            o = o1;
            i = i1;
        }
    }
    return hn_lower_value(l, hn_in(n, 0), &in, mask);
}

/* ---- masks over an axis ---- */
static hn_kv axis_cmp(hn_lower *l, hn_kop op, const hn_kidx *idx, int a, hn_kv bound)
{
    const hn_kv x = hn_kidx_uniform(idx, a) ? idx->at[a] : hn_kidx_axis(l, idx, a);
    return hn_kb_bin(l->b, op, x, hn_kb_splat(l->b, bound, hn_kb_lanes(l->b, x)));
}

static hn_kv and_mask(hn_lower *l, hn_kv m, hn_kv x, int lanes)
{
    x = hn_kb_splat(l->b, x, lanes);
    return hn_kv_is(m) ? hn_kb_and(l->b, hn_kb_splat(l->b, m, lanes), x) : x;
}

static hn_kv pad_value(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv like)
{
    if (!hn_in(n, 1)) return hn_kb_like(l->b, like, 0);
    hn_kidx scalar = index_of_rank(idx, 0);
    return hn_kb_splat(l->b, hn_lower_value(l, hn_in(n, 1), &scalar, HN_KV_NONE), idx->lanes);
}

static hn_kv lower_pad(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    int rank;
    const hn_dim *before = hn_attr_is(n, "before", &rank), *after = hn_attr_is(n, "after", &rank);
    hn_kidx in = *idx;
    hn_kv inside = HN_KV_NONE;
    for (int a = 0; a < rank; a++) {
        if (before[a] == 0 && after[a] == 0) continue;
        const hn_kv shift = hn_lower_dim(l, before[a]);
        const bool vec = hn_kv_is(idx->vec[a]);
        const hn_kv x = vec ? idx->vec[a] : idx->at[a];
        if (idx->step[a] == 1 && before[a] != 0) in.aligned = false;
        hn_kidx_set(&in, a, hn_kb_sub(l->b, x, hn_kb_splat(l->b, shift, hn_kb_lanes(l->b, x))), idx->step[a], vec);
        inside = and_mask(l, inside, axis_cmp(l, HN_KOP_GE, &in, a, hn_kb_i(l->b, 0)), idx->lanes);
        inside = and_mask(l, inside, axis_cmp(l, HN_KOP_LT, &in, a, hn_lower_dim(l, hn_in(n, 0)->type.dim[a])), idx->lanes);
    }
    if (!hn_kv_is(inside)) return hn_lower_value(l, hn_in(n, 0), &in, mask);
    const hn_kv all = hn_kv_is(mask) ? and_mask(l, inside, mask, idx->lanes) : inside;
    const hn_kv x = hn_lower_value(l, hn_in(n, 0), &in, all);
    return hn_kb_select(l->b, inside, x, pad_value(l, n, idx, x));
}

/* Where a place outside the cropped operand reads from: its mirror image, its nearest edge, or its place one turn on. */
static hn_kv outside_index(hn_lower *l, int64_t mode, hn_kv i, hn_kv n)
{
    hn_kb *b = l->b;
    const int lanes = hn_kb_lanes(b, i);
    const hn_kv one = hn_kb_int(b, HN_I64, lanes, 1), zero = hn_kb_int(b, HN_I64, lanes, 0), last = hn_kb_sub(b, n, one);
    if (mode == PAD_EDGE) return hn_kb_min(b, hn_kb_max(b, i, zero), last);
    if (mode == PAD_WRAP) return hn_kb_floormod(b, i, n);
    const hn_kv period = hn_kb_max(b, hn_kb_add(b, last, last), one); /* mirrors repeat, as NumPy's do */
    const hn_kv m = hn_kb_floormod(b, i, period);
    return hn_kb_min(b, hn_kb_select(b, hn_kb_lt(b, m, n), m, hn_kb_sub(b, period, m)), last);
}

static hn_kv lower_pad_copy(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    int rank;
    hn_kb *b = l->b;
    const hn_dim *before = hn_attr_is(n, "before", &rank), *after = hn_attr_is(n, "after", &rank);
    hn_kidx in = *idx;
    for (int a = 0; a < rank; a++) {
        if (before[a] == 0 && after[a] == 0) continue;
        const bool vec = !hn_kidx_uniform(idx, a) && idx->lanes > 1;
        const hn_kv x = vec ? hn_kidx_axis(l, idx, a) : idx->at[a], zero = hn_kb_i(b, 0);
        const hn_kv pb = hn_lower_dim(l, before[a]), pa = hn_lower_dim(l, after[a]);
        const hn_kv crop = hn_kb_max(b, hn_kb_neg(b, pb), zero), cut = hn_kb_max(b, hn_kb_neg(b, pa), zero);
        const hn_kv extent = hn_kb_sub(b, hn_lower_dim(l, hn_in(n, 0)->type.dim[a]), hn_kb_add(b, crop, cut));
        const hn_kv i = hn_kb_sub(b, x, hn_kb_splat(b, hn_kb_max(b, pb, zero), hn_kb_lanes(b, x)));
        const hn_kv from = outside_index(l, hn_attr_i(n, "mode"), i, hn_kb_splat(b, extent, hn_kb_lanes(b, x)));
        hn_kidx_set(&in, a, hn_kb_add(b, from, hn_kb_splat(b, crop, hn_kb_lanes(b, x))), 0, vec);
        if (vec) in.aligned = false;
    }
    return hn_lower_value(l, hn_in(n, 0), &in, mask);
}

static hn_kv lower_diag_mask(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    hn_kb *b = l->b;
    const int row = idx->rank - 2, col = idx->rank - 1;
    const hn_kv r = hn_kidx_axis(l, idx, row), c = hn_kidx_axis(l, idx, col);
    const hn_kv k = hn_kb_splat(b, hn_lower_dim(l, hn_attr_i(n, "k")), idx->lanes);
    const hn_kv d = hn_kb_sub(b, c, r);
    const hn_kv keep = hn_attr_i(n, "upper") ? hn_kb_ge(b, d, k) : hn_kb_le(b, d, k);
    const hn_kv x = hn_lower_value(l, hn_in(n, 0), idx, mask);
    return hn_kb_select(b, keep, x, hn_kb_like(b, x, 0));
}

/* ---- generators ---- */
static hn_kv index_as(hn_lower *l, const hn_kidx *idx, int a, hn_dtype t)
{
    return hn_kb_cast(l->b, hn_kidx_axis(l, idx, a), hn_lower_compute_type(t));
}

static hn_kv lower_range(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    (void)mask;
    hn_kidx scalar = index_of_rank(idx, 0);
    const hn_kv start = hn_lower_value(l, hn_in(n, 0), &scalar, HN_KV_NONE);
    const hn_kv delta = hn_lower_value(l, hn_in(n, 1), &scalar, HN_KV_NONE);
    const hn_kv i = index_as(l, idx, 0, n->out[0]->type.dtype);
    return hn_kb_add(l->b, hn_kb_mul(l->b, i, hn_kb_splat(l->b, delta, idx->lanes)), hn_kb_splat(l->b, start, idx->lanes));
}

/* ---- random numbers: SplitMix64 of the element's number, as src/op/random.c defines ---- */
static hn_kv u64_of(hn_lower *l, hn_kv like, uint64_t x)
{
    return hn_kb_int(l->b, HN_U64, hn_kb_lanes(l->b, like), (int64_t)x);
}

static hn_kv shift_xor(hn_lower *l, hn_kv z, int n)
{
    return hn_kb_bin(l->b, HN_KOP_XOR, z, hn_kb_shr(l->b, z, n));
}

/* In [0, 1), 24 bits. */
hn_kv hn_lower_uniform(hn_lower *l, int64_t seed, hn_kv i, hn_dtype t)
{
    hn_kb *b = l->b;
    hn_kv z = hn_kb_mul(b, hn_kb_add(b, hn_kb_cast(b, i, HN_U64), u64_of(l, i, 1)), u64_of(l, i, 0x9E3779B97F4A7C15u));
    z = hn_kb_add(b, z, u64_of(l, i, (uint64_t)seed));
    z = hn_kb_mul(b, shift_xor(l, z, 30), u64_of(l, i, 0xBF58476D1CE4E5B9u));
    z = hn_kb_mul(b, shift_xor(l, z, 27), u64_of(l, i, 0x94D049BB133111EBu));
    const hn_kv top = hn_kb_cast(b, hn_kb_shr(b, shift_xor(l, z, 31), 40), HN_I32);
    const hn_kv f = hn_kb_cast(b, top, t);
    return hn_kb_mul(b, f, hn_kb_like(b, f, 0x1p-24));
}

/* Row-major number of the element, i64. */
static hn_kv flat_index(hn_lower *l, const hn_tdesc *d, const hn_kidx *idx)
{
    hn_kv flat = hn_kb_int(l->b, HN_I64, idx->lanes, 0);
    for (int a = 0; a < d->rank; a++) {
        const hn_kv extent = hn_kb_splat(l->b, hn_lower_dim(l, d->dim[a]), idx->lanes);
        flat = hn_kb_add(l->b, hn_kb_mul(l->b, flat, extent), hn_kidx_axis(l, idx, a));
    }
    return flat;
}

static hn_kv affine(hn_lower *l, hn_kv x, double scale, double shift)
{
    return hn_kb_add(l->b, hn_kb_mul(l->b, x, hn_kb_like(l->b, x, scale)), hn_kb_like(l->b, x, shift));
}

static hn_kv lower_random(hn_lower *l, const hn_node *n, const hn_kidx *idx)
{
    hn_kb *b = l->b;
    const hn_tdesc *d = &n->out[0]->type;
    const hn_dtype t = hn_lower_compute_type(d->dtype);
    const int64_t seed = hn_attr_i(n, "seed");
    const hn_kv i = flat_index(l, d, idx);
    if (n->op == HN_OP_random_uniform) {
        const double lo = hn_attr_f(n, "lo"), hi = hn_attr_f(n, "hi");
        return affine(l, hn_lower_uniform(l, seed, i, t), hi - lo, lo);
    }
    const hn_kv i2 = hn_kb_shl(b, i, 1);
    hn_kv u = hn_lower_uniform(l, seed, i2, t);
    const hn_kv v = hn_lower_uniform(l, seed, hn_kb_addi(b, i2, 1), t);
    u = hn_kb_math(b, HN_KMATH_LOG, hn_kb_add(b, u, hn_kb_like(b, u, 0x1p-24)));
    const hn_kv r = hn_kb_sqrt(b, hn_kb_mul(b, u, hn_kb_like(b, u, -2)));
    const hn_kv c = hn_kb_math(b, HN_KMATH_COS, hn_kb_mul(b, v, hn_kb_like(b, v, 6.283185307179586)));
    return affine(l, hn_kb_mul(b, r, c), hn_attr_f(n, "scale"), hn_attr_f(n, "mean"));
}

static hn_kv lower_bernoulli(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    hn_kb *b = l->b;
    const hn_kv p = hn_kb_splat(b, hn_lower_value(l, hn_in(n, 0), idx, mask), idx->lanes);
    const hn_kv u = hn_lower_uniform(l, hn_attr_i(n, "seed"), flat_index(l, &n->out[0]->type, idx), hn_kb_dtype(b, p));
    return hn_kb_cast(b, hn_kb_lt(b, u, p), hn_lower_compute_type(n->out[0]->type.dtype));
}

static hn_kv lower_dims(hn_lower *l, const hn_node *n, const hn_kidx *idx)
{
    int count;
    const hn_dim *d = hn_attr_is(n, "dim", &count);
    hn_kv x = hn_kb_int(l->b, HN_I64, idx->lanes, 0);
    const hn_kv at = idx->rank ? hn_kidx_axis(l, idx, 0) : hn_kb_i(l->b, 0);
    for (int i = 0; i < count; i++) {
        const hn_kv hit = hn_kb_eq(l->b, at, hn_kb_int(l->b, HN_I64, hn_kb_lanes(l->b, at), i));
        x = hn_kb_select(l->b, hit, hn_kb_splat(l->b, hn_lower_dim(l, d[i]), idx->lanes), x);
    }
    return x;
}

/* ---- reading through an index tensor: negative counts from the end; out of range is told and reads the first element or none ---- */
/* Whether lanes that are off cost a load of operand 0 nothing: a gather takes its mask from the comparison as it is. */
static bool skips_lanes(const hn_lower *l, const hn_node *n, int lanes)
{
    const hn_value *x = hn_in(n, 0);
    const int bits = hn_dtype_bits(x->type.dtype);
    return lanes > 1 && (l->t->feat & HN_FEAT_AVX512) && (bits == 32 || bits == 64) && hn_region_operand(l->r, x) >= 0;
}

/* The index of node n into an axis of its operand 0, where *mask is on. (The plan sees to it that there is a first element.) */
static hn_kv wrap_index(hn_lower *l, const hn_node *n, int axis, hn_kv index, hn_kv *mask)
{
    hn_kb *b = l->b;
    index = hn_kb_cast(b, index, HN_I64);
    const int lanes = hn_kb_lanes(b, index);
    const hn_kv extent = hn_lower_dim(l, hn_in(n, 0)->type.dim[axis]), end = hn_kb_splat(b, extent, lanes);
    const hn_kv zero = hn_kb_int(b, HN_I64, lanes, 0);
    const hn_kv i = hn_kb_select(b, hn_kb_lt(b, index, zero), hn_kb_add(b, index, end), index);
    if (hn_attr_i(n, "in_range")) return i;
    hn_kv good = hn_kb_lt(b, hn_kb_cast(b, i, HN_U64), hn_kb_cast(b, end, HN_U64)); /* negative ones are large */
    hn_lower_check(l, n, axis, index, hn_kv_is(*mask) ? hn_kb_or(b, good, hn_kb_not(b, hn_kb_splat(b, *mask, lanes))) : good, extent);
    if (!skips_lanes(l, n, lanes)) return hn_kb_select(b, good, i, zero);
    *mask = hn_kv_is(*mask) ? hn_kb_and(b, hn_kb_splat(b, *mask, lanes), good) : good;
    return i;
}

static bool all_uniform(const hn_kidx *idx)
{
    for (int a = 0; a < idx->rank; a++)
        if (!hn_kidx_uniform(idx, a)) return false;
    return true;
}

/* Element `at` of node n's index, into an axis of its operand 0: a scalar when all lanes agree, else a vector, of which *mask then
 * leaves out what is out of range. */
static hn_kv index_operand(hn_lower *l, const hn_node *n, int axis, hn_kidx *at, hn_kv *mask, bool *is_vec)
{
    const hn_value *v = hn_in(n, 1);
    *is_vec = at->lanes > 1 && !all_uniform(at);
    if (*is_vec) return wrap_index(l, n, axis, hn_lower_value(l, v, at, *mask), mask);
    hn_kv one = *mask;
    at->lanes = 1;
    if (hn_kv_is(one) && hn_kb_lanes(l->b, one) > 1) one = hn_kb_un(l->b, HN_KOP_ROR, one);
    return wrap_index(l, n, axis, hn_lower_value(l, v, at, one), &one);
}

static hn_kv lower_gather(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    const hn_value *x = hn_in(n, 0), *ix = hn_in(n, 1);
    const int axis = (int)hn_attr_i(n, "axis"), k = ix->type.rank;
    hn_kidx at = index_of_rank(idx, k), in = index_of_rank(idx, x->type.rank);
    for (int a = 0; a < k; a++) copy_axis(&at, a, idx, axis + a);
    bool is_vec;
    const hn_kv i = index_operand(l, n, axis, &at, &mask, &is_vec);
    for (int a = 0; a < x->type.rank; a++)
        if (a != axis) copy_axis(&in, a, idx, a < axis ? a : a + k - 1);
    hn_kidx_set(&in, axis, i, 0, is_vec);
    return hn_lower_value(l, x, &in, mask);
}

static hn_kv lower_gather_elements(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    const hn_value *x = hn_in(n, 0);
    const int axis = (int)hn_attr_i(n, "axis");
    hn_kidx at = *idx, in = *idx;
    bool is_vec;
    const hn_kv i = index_operand(l, n, axis, &at, &mask, &is_vec);
    hn_kidx_set(&in, axis, i, 0, is_vec);
    in.aligned = false;
    return hn_lower_value(l, x, &in, mask);
}

static hn_kv lower_gather_nd(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    const hn_value *x = hn_in(n, 0), *ix = hn_in(n, 1);
    const int batch = (int)hn_attr_i(n, "batch_dims"), lead = ix->type.rank - 1;
    const int depth = (int)ix->type.dim[lead]; /* known: inference saw to it */
    hn_kidx at = index_of_rank(idx, lead + 1), in = index_of_rank(idx, x->type.rank);
    for (int a = 0; a < lead; a++) copy_axis(&at, a, idx, a);
    for (int a = 0; a < batch; a++) copy_axis(&in, a, idx, a);
    for (int k = 0; k < depth; k++) {
        hn_kidx tuple = at;
        bool is_vec;
        hn_kidx_set(&tuple, lead, hn_kb_i(l->b, k), 0, false);
        const hn_kv i = index_operand(l, n, batch + k, &tuple, &mask, &is_vec);
        hn_kidx_set(&in, batch + k, i, 0, is_vec);
    }
    for (int a = batch + depth; a < x->type.rank; a++) copy_axis(&in, a, idx, lead + a - batch - depth);
    return hn_lower_value(l, x, &in, mask);
}

static hn_kv lower_one_hot(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    hn_kb *b = l->b;
    const int axis = (int)hn_attr_i(n, "axis");
    hn_kidx at = index_of_rank(idx, idx->rank - 1), vi = index_of_rank(idx, 1);
    for (int a = 0, k = 0; a < idx->rank; a++)
        if (a != axis) copy_axis(&at, k++, idx, a);
    const hn_kv depth = hn_kb_splat(b, hn_lower_dim(l, hn_attr_i(n, "dim")), idx->lanes);
    hn_kv i = hn_kb_cast(b, hn_lower_value(l, hn_in(n, 0), &at, mask), HN_I64);
    i = hn_kb_select(b, hn_kb_lt(b, i, hn_kb_like(b, i, 0)), hn_kb_add(b, i, depth), i);
    zero_axis(l, &vi, 0);
    const hn_kv off = hn_lower_value(l, hn_in(n, 1), &vi, HN_KV_NONE);
    hn_kidx_set(&vi, 0, hn_kb_i(b, 1), 0, false);
    const hn_kv on = hn_lower_value(l, hn_in(n, 1), &vi, HN_KV_NONE);
    return hn_kb_select(b, hn_kb_eq(b, i, hn_kidx_axis(l, idx, axis)), on, off);
}

hn_kv hn_lower_view(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    hn_kidx at;
    switch (n->op) {
    case HN_OP_transpose: return lower_transpose(l, n, idx, mask);
    case HN_OP_slice: return lower_slice(l, n, idx, mask);
    case HN_OP_reshape: return lower_reshape(l, n, idx, mask);
    case HN_OP_pad:
        return hn_attr_i(n, "mode") == PAD_CONSTANT ? lower_pad(l, n, idx, mask) : lower_pad_copy(l, n, idx, mask);
    case HN_OP_diag_mask: return lower_diag_mask(l, n, idx, mask);
    case HN_OP_range: return lower_range(l, n, idx, mask);
    case HN_OP_iota: return index_as(l, idx, (int)hn_attr_i(n, "axis"), n->out[0]->type.dtype);
    case HN_OP_dims: return lower_dims(l, n, idx);
    case HN_OP_gather: return lower_gather(l, n, idx, mask);
    case HN_OP_gather_elements: return lower_gather_elements(l, n, idx, mask);
    case HN_OP_gather_nd: return lower_gather_nd(l, n, idx, mask);
    case HN_OP_one_hot: return lower_one_hot(l, n, idx, mask);
    case HN_OP_random_uniform: case HN_OP_random_normal: return lower_random(l, n, idx);
    case HN_OP_bernoulli: return lower_bernoulli(l, n, idx, mask);
    case HN_OP_reorder: return hn_lower_value(l, hn_in(n, 0), idx, mask);
    case HN_OP_broadcast:
        hn_lower_broadcast_idx(l, hn_in(n, 0), n->out[0], idx, &at);
        return hn_lower_value(l, hn_in(n, 0), &at, mask);
    default: return HN_KV_NONE;
    }
}
