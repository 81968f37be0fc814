/* Helpers that op files share. */
#include "op/op_int.h"

/* ---- checks ---- */
hone_status hn_op_want(const hn_call *c, int i, hn_diag *dg)
{
    if (!hn_op_has(c, i)) return HN_RAISE(dg, HONE_E_MODEL, "operand %d is missing", i);
    return HONE_OK;
}

hone_status hn_op_want_float(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (!hn_dtype_is_float(c->in[i].dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where a float is needed", i,
                        hn_dtype_name(c->in[i].dtype));
    return HONE_OK;
}

hone_status hn_op_want_int(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (!hn_dtype_is_int(c->in[i].dtype))
        return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where an integer is needed", i,
                        hn_dtype_name(c->in[i].dtype));
    return HONE_OK;
}

hone_status hn_op_want_number(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (c->in[i].dtype == HN_BOOL)
        return HN_RAISE(dg, HONE_E_TYPE, "operand %d is bool where a number is needed", i);
    return HONE_OK;
}

hone_status hn_op_want_dtype(const hn_call *c, int i, hn_dtype t, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (c->in[i].dtype != t)
        return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where %s is needed", i,
                        hn_dtype_name(c->in[i].dtype), hn_dtype_name(t));
    return HONE_OK;
}

hone_status hn_op_want_same(const hn_call *c, int i, int j, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    HN_TRY(hn_op_want(c, j, dg));
    if (c->in[i].dtype != c->in[j].dtype)
        return HN_RAISE(dg, HONE_E_TYPE, "operands %d and %d differ in dtype: %s and %s", i, j,
                        hn_dtype_name(c->in[i].dtype), hn_dtype_name(c->in[j].dtype));
    return HONE_OK;
}

hone_status hn_op_want_tensor(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, i, dg));
    if (c->in_kind && c->in_kind[i] != HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "operand %d is a list where a tensor is needed", i);
    return HONE_OK;
}

hone_status hn_op_want_rank(const hn_call *c, int i, int rank, hn_diag *dg)
{
    HN_TRY(hn_op_want_tensor(c, i, dg));
    if (c->in[i].rank != rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "operand %d has rank %d where rank %d is needed", i, c->in[i].rank,
                        rank);
    return HONE_OK;
}

hone_status hn_op_want_ranks(const hn_call *c, int i, int lo, int hi, hn_diag *dg)
{
    HN_TRY(hn_op_want_tensor(c, i, dg));
    if (c->in[i].rank < lo || c->in[i].rank > hi)
        return HN_RAISE(dg, HONE_E_SHAPE, "operand %d has rank %d where rank %d to %d is needed", i,
                        c->in[i].rank, lo, hi);
    return HONE_OK;
}

hone_status hn_op_want_scalar(const hn_call *c, int i, hn_diag *dg)
{
    int64_t n;

    HN_TRY(hn_op_want_tensor(c, i, dg));
    if (c->in[i].rank == 0) return HONE_OK;
    if (c->in[i].rank == 1 && (!hn_op_known(c, c->in[i].dim[0], &n) || n == 1)) return HONE_OK;
    return HN_RAISE(dg, HONE_E_SHAPE, "operand %d must hold one element", i);
}

hone_status hn_op_want_axis(const hn_call *c, int attr, int rank, bool end_ok, int *ret, hn_diag *dg)
{
    const int64_t axis = c->attr[attr].i;
    const int n = rank + (end_ok ? 1 : 0);

    if (axis < -rank || axis >= n) {
        hn_hint(dg, "an axis counts from 0 at the front or from -1 at the back");
        return HN_RAISE(dg, HONE_E_SHAPE, "%s %lld is out of range for rank %d", c->op->attrs[attr].name,
                        (long long)axis, rank);
    }
    *ret = (int)(axis < 0 ? axis + rank : axis);
    return HONE_OK;
}

hone_status hn_op_want_attr(const hn_call *c, int attr, int64_t lo, int64_t hi, hn_diag *dg)
{
    const int64_t v = c->attr[attr].i;

    if (v < lo || v > hi)
        return HN_RAISE(dg, HONE_E_INVALID, "%s is %lld, outside %lld to %lld", c->op->attrs[attr].name,
                        (long long)v, (long long)lo, (long long)hi);
    return HONE_OK;
}

hone_status hn_op_want_list(const hn_call *c, int attr, int n, hn_diag *dg)
{
    if (c->attr[attr].n != n)
        return HN_RAISE(dg, HONE_E_SHAPE, "%s has %d entries where %d are needed", c->op->attrs[attr].name,
                        c->attr[attr].n, n);
    return HONE_OK;
}

hone_status hn_op_want_dtype_attr(const hn_call *c, int attr, hn_diag *dg)
{
    const int64_t t = c->attr[attr].i;

    if (t <= HN_NONE || t >= HN_NDTYPES)
        return HN_RAISE(dg, HONE_E_TYPE, "%s is no dtype", c->op->attrs[attr].name);
    return HONE_OK;
}

bool hn_op_meet(const hn_call *c, hn_dim a, hn_dim b, hn_dim *ret)
{
    int64_t va, vb;
    const bool ka = hn_op_known(c, a, &va), kb = hn_op_known(c, b, &vb);

    if (ka && kb && va != vb) return false;
    if (!ka || !kb) hn_op_promise(c, a, b, /* at_most= */ false);
    *ret = ka || !kb ? a : b;
    return true;
}

void hn_op_promise(const hn_call *c, hn_dim a, hn_dim b, bool at_most)
{
    if (c->promise && a != b) c->promise(c->promise_user, a, b, at_most);
}

void hn_op_promise_some(const hn_call *c, const hn_tdesc *result, hn_dim extent)
{
    int64_t lo, hi;
    if (!c->promise) return;
    hn_dim_bounds(c->syms, extent, &lo, &hi);
    if (lo < 1) hn_op_promise(c, hn_dim_min(c->syms, hn_tdesc_numel(c->syms, result), 1), extent, /* at_most= */ true);
}

hone_status hn_op_want_index_within(const hn_call *c, int d, hn_dim index, hn_dim x, hn_diag *dg)
{
    int64_t ni, nx;
    if (!hn_op_known(c, index, &ni) || !hn_op_known(c, x, &nx)) {
        hn_op_promise(c, index, x, /* at_most= */ true);
        return HONE_OK;
    }
    if (ni <= nx) return HONE_OK;
    return HN_RAISE(dg, HONE_E_SHAPE, "the index reaches %lld elements on axis %d but x has %lld", (long long)ni, d, (long long)nx);
}

hone_status hn_op_want_meet(const hn_call *c, int i, int x, int j, int y, hn_dim *ret, hn_diag *dg)
{
    const hn_dim a = c->in[i].dim[x], b = c->in[j].dim[y];
    hn_dim d;

    if (!hn_op_meet(c, a, b, &d))
        return HN_RAISE(dg, HONE_E_SHAPE, "axis %d of operand %d is %lld but axis %d of operand %d is %lld",
                        x, i, (long long)a, y, j, (long long)b);
    if (ret) *ret = d;
    return HONE_OK;
}

hone_status hn_op_want_extent(const hn_call *c, hn_dim d, const char *what, hn_diag *dg)
{
    int64_t lo, hi;

    hn_dim_bounds(c->syms, d, &lo, &hi);
    if (lo == hi && lo < 0)
        return HN_RAISE(dg, HONE_E_SHAPE, "%s comes out as %lld, which is negative", what, (long long)lo);
    if (lo < 0) hn_op_promise(c, 0, d, /* at_most= */ true); /* two that are negative would make up for each other */
    return HONE_OK;
}

hone_status hn_op_dims_attr(const hn_call *c, int attr, hn_tdesc *ret, hn_diag *dg)
{
    const hn_attr *a = &c->attr[attr];

    if (a->n > HN_MAX_RANK) return HN_RAISE(dg, HONE_E_SHAPE, "rank %d is more than %d", a->n, HN_MAX_RANK);
    ret->rank = a->n;
    for (int i = 0; i < a->n; i++) {
        HN_TRY(hn_op_want_extent(c, a->is[i], "an extent", dg));
        ret->dim[i] = a->is[i];
    }
    return HONE_OK;
}

hone_status hn_op_want_broadcast(const hn_call *c, int n, hn_tdesc *ret, hn_diag *dg)
{
    const hn_dtype t = ret->dtype;
    bool first = true;

    for (int i = 0; i < n; i++) {
        if (!hn_op_has(c, i)) continue;
        if (first)
            *ret = c->in[i];
        else {
            const hn_tdesc have = *ret;
            HN_TRY(hn_broadcast_dims(c->syms, &have, &c->in[i], ret, dg));
        }
        first = false;
    }
    ret->dtype = t;
    return HONE_OK;
}

bool hn_op_broadcasts_to(const hn_call *c, const hn_tdesc *x, const hn_tdesc *to)
{
    if (x->rank > to->rank) return false;
    for (int i = 0; i < x->rank; i++) {
        int64_t a, b;
        const bool ka = hn_op_known(c, x->dim[i], &a);
        const bool kb = hn_op_known(c, to->dim[to->rank - x->rank + i], &b);
        if (ka && a == 1) continue;
        if (ka && kb && a != b) return false;
    }
    return true;
}

hone_status hn_op_infer_same(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

hone_status hn_op_infer_same_float(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_float(c, 0, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

hone_status hn_op_infer_same_number(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want_number(c, 0, dg));
    c->out[0] = c->in[0];
    return HONE_OK;
}

hone_status hn_op_value_dim(const hn_call *c, int out, int elem, hn_dim hi, hn_dim *ret, hn_diag *dg)
{
    int64_t lo, top;

    if (!c->value_dim)
        return HN_RAISE(dg, HONE_E_INTERNAL,
                        "the extent of a data-dependent result was asked without a graph");
    hn_dim_bounds(c->syms, hi, &lo, &top);
    const hn_dim d = c->value_dim(c->user, out, elem);
    const hn_sym *s = hn_sym_get(c->syms, d);
    if (s) {
        const int64_t max = HN_MIN(s->max, HN_MAX(top, 0));
        hn_sym_set_bounds(c->syms, d, 0, HN_MIN(s->opt, max), max);
    }
    *ret = d;
    return HONE_OK;
}

/* ---- known values ---- */
hone_status hn_op_dims_known(const hn_call *c, int attr, int64_t *ret, hn_diag *dg)
{
    const hn_attr *a = &c->attr[attr];

    for (int i = 0; i < a->n; i++)
        if (HN_NEVER(!hn_op_known(c, a->is[i], &ret[i])))
            return HN_RAISE(dg, HONE_E_INTERNAL, "entry %d of %s is not known while running", i,
                            c->op->attrs[attr].name);
    return HONE_OK;
}

hone_status hn_op_dim_known(const hn_call *c, int attr, int64_t *ret, hn_diag *dg)
{
    if (HN_NEVER(!hn_op_known(c, c->attr[attr].i, ret)))
        return HN_RAISE(dg, HONE_E_INTERNAL, "%s is not known while running", c->op->attrs[attr].name);
    return HONE_OK;
}

bool hn_op_const_i(const hn_call *c, int i, int64_t elem, int64_t *ret)
{
    if (!hn_op_has(c, i) || hn_dtype_is_float(c->in[i].dtype)) return false;
    const int64_t numel = hn_tdesc_numel_static(&c->in[i]);
    if (!c->data || !c->data[i] || elem < 0 || elem >= numel) return false;
    hn_widen_i64(c->in[i].dtype, c->data[i]->at, elem, 1, ret);
    return true;
}

bool hn_op_const_f(const hn_call *c, int i, int64_t elem, double *ret)
{
    int64_t v;

    if (!hn_op_has(c, i)) return false;
    if (!hn_dtype_is_float(c->in[i].dtype)) {
        if (!hn_op_const_i(c, i, elem, &v)) return false;
        *ret = hn_op_to_f(c->in[i].dtype, v);
        return true;
    }
    const int64_t numel = hn_tdesc_numel_static(&c->in[i]);
    if (!c->data || !c->data[i] || elem < 0 || elem >= numel) return false;
    hn_widen_f64(c->in[i].dtype, c->data[i]->at, elem, 1, ret);
    return true;
}

enum { MAX_CONTENT = 64 };

bool hn_op_content(const hn_call *c, int i, hn_dim *ret, int *ret_n)
{
    if (!hn_op_has(c, i) || c->in[i].rank > 1 || hn_dtype_is_float(c->in[i].dtype)) return false;
    if (c->content && c->content[i]) {
        const int n = c->n_content[i];
        if (n > MAX_CONTENT) return false;
        memcpy(ret, c->content[i], (size_t)n * sizeof(*ret));
        *ret_n = n;
        return true;
    }
    const int64_t n = hn_tdesc_numel_static(&c->in[i]);
    if (n < 0 || n > MAX_CONTENT || !c->data || !c->data[i]) return false;
    for (int64_t k = 0; k < n; k++) {
        int64_t v;
        if (!hn_op_const_i(c, i, k, &v)) return false;
        ret[k] = hn_dim_const(c->syms, v);
    }
    *ret_n = (int)n;
    return true;
}

bool hn_op_content_same(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    return out == 0 && c->out[0].rank <= 1 && hn_op_content(c, 0, ret, ret_n);
}

/* ---- walking ---- */

void hn_op_strides(const hn_tdesc *t, int64_t *ret)
{
    int64_t s = 1;

    for (int i = t->rank - 1; i >= 0; i--) {
        ret[i] = s;
        s = hn_extent_times(s, t->dim[i]);
    }
}

hn_split3 hn_op_split(const hn_tdesc *t, int axis)
{
    hn_split3 s = { 1, t->dim[axis], 1 };

    for (int i = 0; i < axis; i++)
        s.outer = hn_extent_times(s.outer, t->dim[i]);
    for (int i = axis + 1; i < t->rank; i++)
        s.inner = hn_extent_times(s.inner, t->dim[i]);
    return s;
}

void hn_walk_init(hn_walk *w, const hn_tdesc *space)
{
    memset(w, 0, sizeof(*w));
    w->rank = space->rank;
    memcpy(w->dim, space->dim, sizeof(w->dim));
}

void hn_walk_add(hn_walk *w, const hn_tdesc *operand)
{
    int64_t own[HN_MAX_RANK], stride[HN_MAX_RANK] = { 0 };
    const int lead = w->rank - operand->rank;

    hn_op_strides(operand, own);
    for (int i = 0; i < operand->rank; i++)
        stride[lead + i] = operand->dim[i] == 1 ? 0 : own[i];
    hn_walk_add_strided(w, 0, stride);
}

void hn_walk_add_strided(hn_walk *w, int64_t start, const int64_t *stride)
{
    assert(w->n_op < HN_WALK_MAX);
    w->at[w->n_op] = start;
    memcpy(w->stride[w->n_op], stride, (size_t)w->rank * sizeof(*stride));
    w->n_op++;
}

static void walk_drop_axis(hn_walk *w, int axis)
{
    for (int i = axis; i + 1 < w->rank; i++) {
        w->dim[i] = w->dim[i + 1];
        for (int k = 0; k < w->n_op; k++)
            w->stride[k][i] = w->stride[k][i + 1];
    }
    w->rank--;
}

/* Axis i joins its successor when every operand steps over both as over one. */
static bool walk_mergeable(const hn_walk *w, int i)
{
    for (int k = 0; k < w->n_op; k++)
        if (w->stride[k][i] != w->stride[k][i + 1] * w->dim[i + 1]) return false;
    return true;
}

static bool walk_start(hn_walk *w)
{
    w->started = true;
    for (int i = 0; i < w->rank; i++)
        if (w->dim[i] == 0) return false;
    for (int i = w->rank - 1; i >= 0; i--)
        if (w->dim[i] == 1) walk_drop_axis(w, i);
    for (int i = w->rank - 2; i >= 0; i--)
        if (walk_mergeable(w, i)) {
            w->dim[i + 1] = hn_extent_times(w->dim[i + 1], w->dim[i]);
            walk_drop_axis(w, i);
        }
    w->run = w->rank ? w->dim[w->rank - 1] : 1;
    for (int k = 0; k < w->n_op; k++)
        w->step[k] = w->rank ? w->stride[k][w->rank - 1] : 0;
    return true;
}

bool hn_walk_next(hn_walk *w)
{
    if (!w->started) return walk_start(w);
    w->pos += w->run;
    for (int i = w->rank - 2; i >= 0; i--) {
        for (int k = 0; k < w->n_op; k++)
            w->at[k] += w->stride[k][i];
        if (++w->index[i] < w->dim[i]) return true;
        for (int k = 0; k < w->n_op; k++)
            w->at[k] -= w->stride[k][i] * w->dim[i];
        w->index[i] = 0;
    }
    return false;
}

hone_status hn_op_scratch(int64_t n, size_t size, void **ret, hn_diag *dg)
{
    void *p = n < 0 ? NULL : calloc(n ? (size_t)n : 1, size);

    if (!p) return HN_NOMEM(dg);
    *ret = p;
    return HONE_OK;
}

/* ---- work ---- */
enum { MAX_SYMS = 64 };

double hn_op_extent(const hn_call *c, hn_dim d)
{
    int64_t value[MAX_SYMS], v;
    const int n = hn_dim_is_const(d) ? 0 : hn_sym_count(c->syms);

    if (hn_dim_is_const(d)) return (double)d;
    if (n > MAX_SYMS) {
        int64_t lo;
        hn_dim_bounds(c->syms, d, &lo, &v);
        return (double)HN_MAX(lo, 1);
    }
    for (int i = 0; i < n; i++)
        value[i] = hn_sym_get(c->syms, hn_sym_at(c->syms, i))->opt;
    return hn_dim_eval(c->syms, d, value, &v) ? (double)v : 1;
}

double hn_op_count(const hn_call *c, const hn_tdesc *t)
{
    double n = 1;

    for (int i = 0; i < t->rank; i++)
        n *= hn_op_extent(c, t->dim[i]);
    return n;
}

double hn_op_bytes(const hn_call *c)
{
    double bytes = 0;

    for (int i = 0; i < c->n_in; i++)
        if (hn_op_has(c, i)) bytes += hn_op_count(c, &c->in[i]) * hn_dtype_bits(c->in[i].dtype) / 8;
    for (int i = 0; i < c->n_out; i++)
        if (c->out[i].dtype != HN_NONE)
            bytes += hn_op_count(c, &c->out[i]) * hn_dtype_bits(c->out[i].dtype) / 8;
    return bytes;
}

void hn_op_work_pointwise(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = hn_op_count(c, &c->out[0]), .bytes = hn_op_bytes(c) };
}

void hn_op_work_math(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = 10 * hn_op_count(c, &c->out[0]), .bytes = hn_op_bytes(c) };
}

void hn_op_work_move(const hn_call *c, hn_work *ret)
{
    *ret = (hn_work){ .flops = 0, .bytes = hn_op_bytes(c) };
}
