/* What handlers share: reading known operands, dims, small graph idioms. */
#include "import/import_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool hn_im_wants(const hn_im_call *c, int i)
{
    return i < c->n_out && c->p->output[i] && c->p->output[i][0];
}

hn_symtab *hn_im_syms(const hn_im_call *c)
{
    return c->b->g->syms;
}

hone_status hn_im_same(hn_im_call *c, hn_op op, const hn_attr_set *attrs)
{
    hn_node *n = hn_build(c->b, op, c->n_in, c->in, attrs, c->n_out);
    for (int i = 0; n && i < c->n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

hone_status hn_im_ret(hn_im_call *c, hn_value *v)
{
    c->out[0] = v;
    return c->b->status;
}

hone_status hn_im_done(hn_im_call *c, hn_value *v)
{
    c->out[0] = v;
    HN_TRY(c->dg->code);
    return c->b->status;
}

hone_status hn_im_refuse(hn_im_call *c, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (c->dg->code != HONE_OK) return c->dg->code;
    return HN_IM_RAISE(c, HONE_E_UNSUPPORTED, "%s", text);
}

/* ---- known operands ---- */

bool hn_im_ints(hn_im_call *c, hn_value *v, const int64_t **ret, int *ret_n)
{
    if (!v || v->kind != HN_TENSOR) return false;
    const int64_t n = hn_tdesc_numel_static(&v->type);
    if (n < 0 || n > HN_IM_MAX_OPERANDS || hn_dtype_is_float(v->type.dtype)) return false;
    int64_t *x = HN_NEW_N(c->m->scratch, int64_t, n + 1);
    if (!x) return false;
    for (int64_t i = 0; i < n; i++) {
        if (v->content && i < v->n_content) {
            if (!hn_dim_known(hn_im_syms(c), v->content[i], &x[i])) return false;
        } else if (!hn_const_i64(v, i, &x[i])) {
            return false;
        }
    }
    *ret = x;
    *ret_n = (int)n;
    return true;
}

bool hn_im_int(hn_im_call *c, hn_value *v, int64_t *ret)
{
    const int64_t *x;
    int n;
    if (!hn_im_ints(c, v, &x, &n) || n != 1) return false;
    *ret = x[0];
    return true;
}

bool hn_im_floats(hn_im_call *c, hn_value *v, const double **ret, int *ret_n)
{
    if (!hn_is_const(v)) return false;
    const int64_t n = hn_tdesc_numel_static(&v->type);
    if (n < 0 || n > HN_IM_MAX_OPERANDS) return false;
    double *x = HN_NEW_N(c->m->scratch, double, n + 1);
    if (!x) return false;
    hn_widen_f64(v->type.dtype, v->data->at, 0, n, x);
    *ret = x;
    *ret_n = (int)n;
    return true;
}

hone_status hn_im_axis(hn_im_call *c, int64_t axis, int rank, int *ret)
{
    if (hn_axis_resolve(axis, rank, ret)) return HONE_OK;
    hn_hint(c->dg, "ONNX allows -rank <= axis < rank; check the exporter's axis");
    return HN_IM_RAISE(c, HONE_E_SHAPE, "axis %" PRId64 " is out of range for rank %d", axis, rank);
}

static int by_value(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

hone_status hn_im_axes(hn_im_call *c, const char *name, int operand, int rank, bool sorted, int64_t *ret,
                       int *ret_n, bool *ret_given)
{
    const int64_t *x = NULL;
    hn_value *v = operand >= 0 ? hn_im_in(c, operand) : NULL;
    bool used[HN_MAX_RANK + 1] = { false };
    int n = 0;

    *ret_given = false;
    *ret_n = 0;
    if (name && hn_im_has(c, name)) {
        x = hn_im_is(c, name, &n);
        *ret_given = true;
    } else if (v) {
        if (!hn_im_ints(c, v, &x, &n)) {
            hn_hint(c->dg,
                    "make the axes a constant; shapes of rank unknown until the run cannot be compiled");
            return HN_IM_RAISE(c, HONE_E_UNSUPPORTED, "the axes are known only while running");
        }
        *ret_given = true;
    }
    if (n > HN_MAX_RANK) return HN_IM_RAISE(c, HONE_E_MODEL, "%d axes are given for rank %d", n, rank);
    for (int i = 0; i < n; i++) {
        int axis;
        HN_TRY(hn_im_axis(c, x[i], rank, &axis));
        if (used[axis]) return HN_IM_RAISE(c, HONE_E_MODEL, "axis %d is given twice", axis);
        used[axis] = true;
        ret[i] = axis;
    }
    if (sorted && n > 1) qsort(ret, (size_t)n, sizeof *ret, by_value);
    *ret_n = n;
    return HONE_OK;
}

/* ---- dims ---- */

hn_dim hn_im_dadd(hn_im_call *c, hn_dim a, hn_dim b)
{
    return hn_dim_add(hn_im_syms(c), a, b);
}
hn_dim hn_im_dsub(hn_im_call *c, hn_dim a, hn_dim b)
{
    return hn_dim_sub(hn_im_syms(c), a, b);
}
hn_dim hn_im_dmul(hn_im_call *c, hn_dim a, hn_dim b)
{
    return hn_dim_mul(hn_im_syms(c), a, b);
}
hn_dim hn_im_ddiv(hn_im_call *c, hn_dim a, hn_dim b)
{
    return hn_dim_floordiv(hn_im_syms(c), a, b);
}
hn_dim hn_im_dconst(hn_im_call *c, int64_t v)
{
    return hn_dim_const(hn_im_syms(c), v);
}

bool hn_im_dim_nonneg(hn_im_call *c, hn_dim d)
{
    int64_t lo, hi;
    hn_dim_bounds(hn_im_syms(c), d, &lo, &hi);
    return lo >= 0;
}

bool hn_im_dim_neg(hn_im_call *c, hn_dim d)
{
    int64_t lo, hi;
    hn_dim_bounds(hn_im_syms(c), d, &lo, &hi);
    return hi < 0;
}

static bool is_input_symbol(void *user, hn_dim sym)
{
    return hn_sym_get(user, sym)->kind == HN_SYM_INPUT;
}

bool hn_im_dim_of_inputs(hn_im_call *c, hn_dim d)
{
    return hn_dim_each_sym(hn_im_syms(c), d, is_input_symbol, hn_im_syms(c));
}

static bool elem_of(hn_im_call *c, hn_value *v, int64_t i, int depth, hn_dim *ret);

static bool concat_elem(hn_im_call *c, const hn_node *n, int64_t i, int depth, hn_dim *ret)
{
    for (int k = 0; k < n->n_in; k++) {
        const int64_t len = hn_tdesc_numel_static(&hn_in(n, k)->type);
        if (len < 0) return false;
        if (i < len) return elem_of(c, hn_in(n, k), i, depth, ret);
        i -= len;
    }
    return false;
}

static bool binary_elem(hn_im_call *c, const hn_node *n, int64_t i, int depth, hn_dim *ret)
{
    hn_dim x[2];
    for (int k = 0; k < 2; k++) {
        hn_value *v = hn_in(n, k);
        const int64_t len = hn_tdesc_numel_static(&v->type);
        if (len < 1 || v->type.rank > 1 || !elem_of(c, v, len == 1 ? 0 : i, depth, &x[k])) return false;
    }
    *ret = n->op == HN_OP_add   ? hn_im_dadd(c, x[0], x[1])
           : n->op == HN_OP_sub ? hn_im_dsub(c, x[0], x[1])
                                : hn_im_dmul(c, x[0], x[1]);
    return true;
}

/* Content is known for a value as a whole or not at all; one element of it may be found further up. */
static bool elem_of(hn_im_call *c, hn_value *v, int64_t i, int depth, hn_dim *ret)
{
    int64_t x, start;
    int n_start;
    if (!v || depth > 64) return false;
    if (v->content && i < v->n_content) {
        *ret = v->content[i];
        return true;
    }
    if (hn_const_i64(v, i, &x)) {
        *ret = hn_im_dconst(c, x);
        return true;
    }
    hn_node *n = v->def;
    if (!n || v->kind != HN_TENSOR) return false;
    switch (n->op) {
    case HN_OP_identity:
    case HN_OP_reshape:
        return elem_of(c, hn_in(n, 0), i, depth + 1, ret);
    case HN_OP_cast:
        if (hn_dtype_bits(v->type.dtype) < 32 || !hn_dtype_is_int(v->type.dtype)) return false;
        if (!hn_dtype_is_int(hn_in(n, 0)->type.dtype)) return false;
        return elem_of(c, hn_in(n, 0), i, depth + 1, ret);
    case HN_OP_concat:
        return v->type.rank == 1 && concat_elem(c, n, i, depth + 1, ret);
    case HN_OP_slice:
        if (v->type.rank != 1) return false;
        start = hn_attr_is(n, "start", &n_start)[0];
        if (!hn_dim_known(hn_im_syms(c), start, &x)) return false;
        return elem_of(c, hn_in(n, 0), x + i * hn_attr_is(n, "step", &n_start)[0], depth + 1, ret);
    case HN_OP_gather:
        if (hn_in(n, 0)->type.rank != 1 || !hn_const_i64(hn_in(n, 1), i, &x)) return false;
        if (x < 0) x += hn_tdesc_numel_static(&hn_in(n, 0)->type);
        return x >= 0 && elem_of(c, hn_in(n, 0), x, depth + 1, ret);
    case HN_OP_add:
    case HN_OP_sub:
    case HN_OP_mul:
        if (hn_dtype_bits(v->type.dtype) < 32 || !hn_dtype_is_int(v->type.dtype)) return false;
        return binary_elem(c, n, i, depth + 1, ret);
    default:
        return false;
    }
}

bool hn_im_known_dim(hn_im_call *c, hn_value *v, int i, hn_dim *ret)
{
    return elem_of(c, v, i, 0, ret);
}

hn_value *hn_im_i64(hn_im_call *c, hn_value *v)
{
    if (!v || v->type.dtype == HN_I64) return v;
    HN_FOR_USES (u, v) {
        if (u->node && u->node->op == HN_OP_cast && u->node->graph == c->b->g &&
            u->node->out[0]->type.dtype == HN_I64)
            return u->node->out[0];
    }
    return hn_im_folded(hn_cast(c->b, v, HN_I64));
}

hn_dim hn_im_dim(hn_im_call *c, hn_value *v, int i)
{
    hn_dim d;
    if (elem_of(c, v, i, 0, &d)) return d;
    v = hn_im_i64(c, v);
    return v ? hn_graph_value_dim(c->b->g, v, i) : 0;
}

hone_status hn_im_vector_len(hn_im_call *c, hn_value *v, const char *what, int cap, int *ret)
{
    const int64_t n = v && v->kind == HN_TENSOR ? hn_tdesc_numel_static(&v->type) : -1;
    if (v && (v->type.rank > 1 || !hn_dtype_is_int(v->type.dtype)))
        return HN_IM_RAISE(c, HONE_E_MODEL, "the %s must be an integer vector, not %s of rank %d", what,
                           hn_dtype_name(v->type.dtype), v->type.rank);
    if (n < 0) {
        hn_hint(c->dg, "a tensor's rank must be known before the model runs");
        return HN_IM_RAISE(c, HONE_E_UNSUPPORTED, "the length of the %s is known only while running", what);
    }
    if (n > cap)
        return HN_IM_RAISE(c, HONE_E_UNSUPPORTED, "the %s has %" PRId64 " entries, above the limit of %d",
                           what, n, cap);
    *ret = (int)n;
    return HONE_OK;
}

hone_status hn_im_dims(hn_im_call *c, hn_value *v, hn_dim *ret, int cap, int *ret_n)
{
    int n;
    HN_TRY(hn_im_vector_len(c, v, "shape", cap, &n));
    for (int i = 0; i < n; i++)
        ret[i] = hn_im_dim(c, v, i);
    *ret_n = n;
    return c->b->status;
}

/* ---- idioms ---- */

hn_value *hn_im_unary(hn_im_call *c, hn_op op, hn_value *x)
{
    return hn_im_folded(hn_b1(c->b, op, x, HN_NO_ATTRS));
}

hn_value *hn_im_binary(hn_im_call *c, hn_op op, hn_value *x, hn_value *y)
{
    return hn_im_folded(hn_b2(c->b, op, x, y, HN_NO_ATTRS));
}

hn_value *hn_im_reduce(hn_im_call *c, hn_op op, hn_value *x, int n, const int64_t *axes, bool keepdims)
{
    return hn_im_folded(
        hn_b1(c->b, op, x, HN_ATTRS_ARG(HN_A_IS("axes", n, axes), HN_A_I("keepdims", keepdims))));
}

hn_value *hn_im_unsqueeze(hn_im_call *c, hn_value *x, int axis)
{
    hn_dim dim[HN_MAX_RANK + 1];
    if (!x) return NULL;
    const int rank = x->type.rank;
    if (rank == HN_MAX_RANK) {
        if (c->b->status == HONE_OK)
            c->b->status =
                HN_IM_RAISE(c, HONE_E_UNSUPPORTED, "rank %d is above the limit of %d", rank + 1, HN_MAX_RANK);
        return NULL;
    }
    memcpy(dim, x->type.dim, (size_t)axis * sizeof *dim);
    dim[axis] = 1;
    memcpy(dim + axis + 1, x->type.dim + axis, (size_t)(rank - axis) * sizeof *dim);
    return hn_reshape(c->b, x, rank + 1, dim);
}

hn_value *hn_im_squeeze(hn_im_call *c, hn_value *x, int axis)
{
    hn_dim dim[HN_MAX_RANK];
    if (!x) return NULL;
    memcpy(dim, x->type.dim, (size_t)axis * sizeof *dim);
    memcpy(dim + axis, x->type.dim + axis + 1, (size_t)(x->type.rank - axis - 1) * sizeof *dim);
    return hn_reshape(c->b, x, x->type.rank - 1, dim);
}

hn_value *hn_im_wide(hn_im_call *c, hn_value *x)
{
    return x && hn_dtype_bits(x->type.dtype) < 32 ? hn_cast(c->b, x, HN_F32) : x;
}

void hn_im_split3(hn_im_call *c, hn_value *x, int axis, const hn_dim len[3], hn_value *ret[3])
{
    hn_dim at = 0;
    for (int i = 0; i < 3; i++) {
        ret[i] = hn_slice(c->b, x, axis, at, len[i]);
        at = hn_im_dadd(c, at, len[i]);
    }
}

hone_status hn_im_qkv_lengths(hn_im_call *c, hn_dim whole, hn_dim ret[3])
{
    int n;
    const int64_t *sizes = hn_im_is(c, "qkv_hidden_sizes", &n);
    if (sizes && n != 3) return HN_IM_RAISE(c, HONE_E_MODEL, "qkv_hidden_sizes has %d entries", n);
    const hn_dim third = hn_im_ddiv(c, whole, 3);
    for (int i = 0; i < 3; i++) {
        if (sizes && sizes[i] < 0) return HN_IM_RAISE(c, HONE_E_MODEL, "qkv_hidden_sizes has the entry %" PRId64, sizes[i]);
        ret[i] = sizes ? sizes[i] : third;
    }
    return HONE_OK;
}

hn_value *hn_im_concat(hn_im_call *c, int axis, int n, hn_value *const *v)
{
    enum { AT_ONCE = 256 }; /* operands of one kernel: more of them are joined in groups first */
    if (n == 1) return v[0];
    if (n > AT_ONCE) {
        hn_value **group = HN_NEW_N(c->m->scratch, hn_value *, n / AT_ONCE + 1);
        int n_group = 0;
        for (int i = 0; group && i < n; i += AT_ONCE)
            if (!(group[n_group++] = hn_im_concat(c, axis, HN_MIN(AT_ONCE, n - i), v + i))) return NULL;
        return group ? hn_im_concat(c, axis, n_group, group) : NULL;
    }
    hn_node *r = hn_build(c->b, HN_OP_concat, n, v, HN_ATTRS_ARG(HN_A_I("axis", axis)), 1);
    return r ? r->out[0] : NULL;
}

hn_value *hn_im_matmul(hn_im_call *c, hn_value *a, hn_value *b, bool trans_a, bool trans_b)
{
    return hn_b2(c->b, HN_OP_matmul, a, b,
                 HN_ATTRS_ARG(HN_A_I("trans_a", trans_a), HN_A_I("trans_b", trans_b)));
}

hn_value *hn_im_gather(hn_im_call *c, hn_value *x, hn_value *index, int axis)
{
    return hn_b2(c->b, HN_OP_gather, x, index, HN_ATTRS_ARG(HN_A_I("axis", axis)));
}

hn_value *hn_im_like_f(hn_im_call *c, hn_value *x, double v)
{
    return x ? hn_const_f(c->b, x->type.dtype, v) : NULL;
}

hn_value *hn_im_scale(hn_im_call *c, hn_value *x, double k)
{
    return k == 1 || !x ? x : hn_im_binary(c, HN_OP_mul, x, hn_im_like_f(c, x, k));
}

hn_value *hn_im_const_bool(hn_im_call *c, bool v)
{
    return hn_const_i(c->b, HN_BOOL, v);
}

hn_value *hn_im_shape(hn_im_call *c, hn_value *x)
{
    return x ? hn_const_dims(c->b, x->type.rank, x->type.dim) : NULL;
}

hn_value *hn_im_fill(hn_im_call *c, hn_value *scalar, int rank, const hn_dim *dim)
{
    if (scalar && scalar->type.rank) scalar = hn_reshape(c->b, scalar, 0, NULL);
    return hn_broadcast_to(c->b, scalar, rank, dim);
}

hn_value *hn_im_along(hn_im_call *c, hn_value *v, int rank, int axis)
{
    hn_dim dim[HN_MAX_RANK];
    if (!v || v->type.rank != 1) return v;
    for (int i = 0; i < rank; i++)
        dim[i] = i == axis ? v->type.dim[0] : 1;
    return hn_reshape(c->b, v, rank, dim);
}

hn_value *hn_im_iota(hn_im_call *c, hn_dtype t, int rank, const hn_dim *dim, int axis)
{
    hn_node *n =
        hn_build(c->b, HN_OP_iota, 0, NULL,
                 HN_ATTRS_ARG(HN_A_T("dtype", t), HN_A_DIMS("dim", rank, dim), HN_A_I("axis", axis)), 1);
    return n ? n->out[0] : NULL;
}

hn_value *hn_im_select(hn_im_call *c, hn_value *cond, hn_value *a, hn_value *b)
{
    return hn_im_folded(hn_b3(c->b, HN_OP_select, cond, a, b, HN_NO_ATTRS));
}

hn_value *hn_im_slice(hn_im_call *c, hn_value *x, int axis, hn_dim start, int64_t step, hn_dim len)
{
    hn_dim from[HN_MAX_RANK] = { 0 }, dim[HN_MAX_RANK];
    int64_t steps[HN_MAX_RANK];
    if (!x) return NULL;
    const int rank = x->type.rank;
    for (int i = 0; i < rank; i++) {
        dim[i] = i == axis ? len : x->type.dim[i];
        steps[i] = i == axis ? step : 1;
    }
    from[axis] = start;
    return hn_b1(c->b, HN_OP_slice, x,
                 HN_ATTRS_ARG(HN_A_DIMS("start", rank, from), HN_A_IS("step", rank, steps),
                              HN_A_DIMS("dim", rank, dim)));
}

hn_value *hn_im_flip(hn_im_call *c, hn_value *x, int axis)
{
    if (!x) return NULL;
    return hn_im_slice(c, x, axis, hn_im_dsub(c, x->type.dim[axis], 1), -1, x->type.dim[axis]);
}

/* ---- reshape as ONNX writes it ---- */

/* Entries known: plain arithmetic on dims. */
static hone_status reshape_known(hn_im_call *c, hn_value *x, hn_dim *d, int n, bool allow_zero)
{
    hn_symtab *t = hn_im_syms(c);
    hn_dim rest = hn_tdesc_numel(t, &x->type), others = 1;
    int hole = -1;
    for (int i = 0; i < n; i++) {
        int64_t k = 1;
        const bool known = hn_dim_known(t, d[i], &k);
        if (known && k == -1) {
            if (hole >= 0) return HN_IM_RAISE(c, HONE_E_MODEL, "the shape has two entries of -1");
            hole = i;
            continue;
        }
        if (known && k < -1) return HN_IM_RAISE(c, HONE_E_MODEL, "entry %d of the shape is %" PRId64, i, k);
        if (known && k == 0 && !allow_zero) {
            if (i >= x->type.rank)
                return HN_IM_RAISE(c, HONE_E_MODEL,
                                   "entry %d of the shape copies an axis that rank %d has not", i,
                                   x->type.rank);
            d[i] = x->type.dim[i];
        }
        /* The same extent on both sides cancels exactly; a quotient of products need not. */
        others = hn_im_dmul(c, others, d[i]);
    }
    if (hole < 0) return HONE_OK;
    int64_t r, o;
    if (hn_dim_known(t, rest, &r) && hn_dim_known(t, others, &o)) {
        if (o == 0 ? r != 0 : r % o != 0)
            return HN_IM_RAISE(c, HONE_E_SHAPE, "%" PRId64 " elements do not divide into rows of %" PRId64, r,
                               o);
        d[hole] = o == 0 ? 0 : r / o;
        return HONE_OK;
    }
    /* Leave out factors that stand on both sides unchanged. */
    rest = 1;
    others = 1;
    bool used[HN_MAX_RANK] = { false };
    for (int i = 0; i < n; i++) {
        int k = 0;
        if (i == hole) continue;
        while (k < x->type.rank && (used[k] || x->type.dim[k] != d[i]))
            k++;
        if (k < x->type.rank)
            used[k] = true;
        else
            others = hn_im_dmul(c, others, d[i]);
    }
    for (int k = 0; k < x->type.rank; k++)
        if (!used[k]) rest = hn_im_dmul(c, rest, x->type.dim[k]);
    d[hole] = others == 1 ? rest : hn_im_ddiv(c, rest, others);
    return HONE_OK;
}

/* Entries that only a run shows may be 0 or -1 then: the extents are computed by nodes. */
static hn_value *resolve_shape(hn_im_call *c, hn_value *x, hn_value *shape, int n, bool allow_zero)
{
    hn_dim own[HN_MAX_RANK];
    for (int i = 0; i < n; i++)
        own[i] = i < x->type.rank ? x->type.dim[i] : 0;
    hn_value *zero = hn_const_i(c->b, HN_I64, 0), *s = hn_im_i64(c, shape);
    if (!allow_zero) s = hn_im_select(c, hn_im_binary(c, HN_OP_eq, s, zero), hn_const_dims(c->b, n, own), s);
    hn_value *one = hn_const_i(c->b, HN_I64, 1);
    hn_value *hole = hn_im_binary(c, HN_OP_lt, s, zero);
    hn_value *others =
        hn_im_reduce(c, HN_OP_reduce_prod, hn_im_select(c, hole, one, s), 1, (int64_t[]){ 0 }, false);
    hn_value *total = hn_reshape(
        c->b, hn_const_dims(c->b, 1, (hn_dim[]){ hn_tdesc_numel(hn_im_syms(c), &x->type) }), 0, NULL);
    hn_value *rest = hn_im_binary(c, HN_OP_div, total, hn_im_binary(c, HN_OP_max, others, one));
    return hn_im_select(c, hole, rest, s);
}

/* A helper that yields a value raised: builders are told, so that nothing more is built on it. */
static hn_value *failed(hn_im_call *c)
{
    if (c->b->status == HONE_OK) c->b->status = c->dg->code;
    return NULL;
}

hn_value *hn_im_reshape_onnx(hn_im_call *c, hn_value *x, hn_value *shape, bool allow_zero)
{
    hn_dim d[HN_MAX_RANK];
    bool all = true;
    int n;
    if (c->b->status != HONE_OK || !x) return NULL;
    if (hn_im_vector_len(c, shape, "shape", HN_MAX_RANK, &n) != HONE_OK) return failed(c);
    if (shape->type.rank != 1) {
        HN_IM_RAISE(c, HONE_E_MODEL, "the shape must be a vector");
        return failed(c);
    }
    for (int i = 0; i < n; i++) {
        hn_dim e;
        all &= elem_of(c, shape, i, 0, &e);
        if (!all) break;
        d[i] = e;
    }
    if (all) {
        if (reshape_known(c, x, d, n, allow_zero) != HONE_OK) return failed(c);
    } else {
        hn_value *s = resolve_shape(c, x, shape, n, allow_zero);
        for (int i = 0; s && i < n; i++) {
            int64_t k;
            hn_dim e;
            if (elem_of(c, shape, i, 0, &e) && hn_dim_known(hn_im_syms(c), e, &k) && k > 0)
                d[i] = k;
            else
                d[i] = hn_im_dim(c, s, i);
        }
        if (!s) return NULL;
    }
    return hn_reshape(c->b, x, n, d);
}
