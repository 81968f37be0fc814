/*
 * Sequences and optionals. A sequence's type is that of its elements; an extent in which they may differ is
 * the symbol
 * "_any", which nothing binds, and elements taken out get extents of their own. An empty sequence has rank 0
 * until something is put in. Lists have no working form: the evaluator runs these ops.
 */
#include "op/op_int.h"

hn_dim hn_op_any(const hn_call *c)
{
    const hn_dim d = hn_sym_find(c->syms, HN_SYM_ANY);

    return d ? d : hn_sym_add(c->syms, HN_SYM_ANY, HN_SYM_VALUE);
}

static hn_vkind kind_of(const hn_call *c, int i)
{
    return c->in_kind && i < c->n_in ? c->in_kind[i] : HN_TENSOR;
}

static hone_status want_sequence(const hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    if (kind_of(c, 0) != HN_SEQUENCE) return HN_RAISE(dg, HONE_E_TYPE, "operand 0 is no sequence");
    return HONE_OK;
}

static hone_status want_position(const hn_call *c, int i, hn_diag *dg)
{
    if (!hn_op_has(c, i)) return HONE_OK;
    HN_TRY(hn_op_want_int(c, i, dg));
    return hn_op_want_scalar(c, i, dg);
}

/* Element type of a sequence that holds elements of type `have` and one of type x. */
static hone_status admit(const hn_call *c, hn_tdesc *have, const hn_tdesc *x, bool empty, hn_diag *dg)
{
    if (have->dtype != x->dtype)
        return HN_RAISE(dg, HONE_E_TYPE, "a sequence of %s cannot hold %s", hn_dtype_name(have->dtype),
                        hn_dtype_name(x->dtype));
    if (empty || have->rank == 0) {
        *have = *x;
        return HONE_OK;
    }
    if (have->rank != x->rank)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "elements of rank %d and %d in one sequence", have->rank,
                        x->rank);
    for (int d = 0; d < x->rank; d++)
        if (have->dim[d] != x->dim[d]) have->dim[d] = hn_op_any(c);
    return HONE_OK;
}

/* An element on its own: known extents stay, others are found while running. */
static hone_status release(hn_call *c, const hn_tdesc *element, hn_diag *dg)
{
    c->out[0] = *element;
    for (int d = 0; d < element->rank; d++)
        if (!hn_dim_is_const(element->dim[d]))
            HN_TRY(hn_op_value_dim(c, 0, HN_DIM_OF_AXIS(d), hn_dim_const(c->syms, INT64_MAX),
                                   &c->out[0].dim[d], dg));
    return HONE_OK;
}

/* ---- sequences ---- */
static hone_status infer_construct(hn_call *c, hn_diag *dg)
{
    enum { DTYPE };

    c->out_kind[0] = HN_SEQUENCE;
    if (c->n_in == 0) {
        HN_TRY(hn_op_want_dtype_attr(c, DTYPE, dg));
        c->out[0] = (hn_tdesc){ .dtype = (hn_dtype)c->attr[DTYPE].i };
        return HONE_OK;
    }
    for (int i = 0; i < c->n_in; i++) {
        HN_TRY(hn_op_want_tensor(c, i, dg));
        if (i == 0) c->out[0] = c->in[0];
        HN_TRY(admit(c, &c->out[0], &c->in[i], i == 0, dg));
    }
    return HONE_OK;
}

static hone_status infer_at(hn_call *c, hn_diag *dg)
{
    HN_TRY(want_sequence(c, dg));
    HN_TRY(hn_op_want(c, 1, dg));
    HN_TRY(want_position(c, 1, dg));
    return release(c, &c->in[0], dg);
}

static hone_status infer_insert(hn_call *c, hn_diag *dg)
{
    HN_TRY(want_sequence(c, dg));
    HN_TRY(hn_op_want_tensor(c, 1, dg));
    HN_TRY(want_position(c, 2, dg));
    c->out[0] = c->in[0];
    c->out_kind[0] = HN_SEQUENCE;
    return admit(c, &c->out[0], &c->in[1], false, dg);
}

static hone_status infer_erase(hn_call *c, hn_diag *dg)
{
    HN_TRY(want_sequence(c, dg));
    HN_TRY(want_position(c, 1, dg));
    c->out[0] = c->in[0];
    c->out_kind[0] = HN_SEQUENCE;
    return HONE_OK;
}

static hone_status infer_length(hn_call *c, hn_diag *dg)
{
    HN_TRY(want_sequence(c, dg));
    c->out[0] = (hn_tdesc){ .dtype = HN_I64 };
    return HONE_OK;
}

static hone_status infer_concat(hn_call *c, hn_diag *dg)
{
    enum { AXIS, NEW_AXIS };
    const bool grow = c->attr[NEW_AXIS].i;
    hn_tdesc y;
    int axis, n = 0;

    HN_TRY(want_sequence(c, dg));
    const int rank = c->in[0].rank + (grow ? 1 : 0);
    if (rank > HN_MAX_RANK) return HN_RAISE(dg, HONE_E_SHAPE, "the result would have rank %d", rank);
    HN_TRY(hn_op_want_axis(c, AXIS, rank, false, &axis, dg));
    y.dtype = c->in[0].dtype;
    y.rank = rank;
    for (int d = 0; d < rank; d++) {
        if (d != axis)
            y.dim[d] = c->in[0].dim[n++];
        else {
            y.dim[d] = hn_op_any(c);
            if (!grow) n++;
        }
    }
    return release(c, &y, dg);
}

static hone_status infer_split(hn_call *c, hn_diag *dg)
{
    enum { AXIS, KEEPDIMS };
    int axis, n = 0;

    HN_TRY(hn_op_want_tensor(c, 0, dg));
    HN_TRY(hn_op_want_axis(c, AXIS, c->in[0].rank, false, &axis, dg));
    const bool sizes = hn_op_has(c, 1), drop = !sizes && !c->attr[KEEPDIMS].i;
    if (sizes) {
        HN_TRY(hn_op_want_int(c, 1, dg));
        HN_TRY(hn_op_want_ranks(c, 1, 0, 1, dg));
    }
    c->out_kind[0] = HN_SEQUENCE;
    c->out[0].dtype = c->in[0].dtype;
    for (int d = 0; d < c->in[0].rank; d++) {
        if (d != axis)
            c->out[0].dim[n++] = c->in[0].dim[d];
        else if (!drop)
            c->out[0].dim[n++] = sizes ? hn_op_any(c) : 1;
    }
    c->out[0].rank = n;
    return HONE_OK;
}

/* ---- optionals ---- */
static hone_status infer_make(hn_call *c, hn_diag *dg)
{
    enum { DTYPE };

    c->out_kind[0] = HN_OPTIONAL;
    if (hn_op_has(c, 0)) {
        if (kind_of(c, 0) != HN_TENSOR) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "an optional list");
        c->out[0] = c->in[0];
        return HONE_OK;
    }
    HN_TRY(hn_op_want_dtype_attr(c, DTYPE, dg));
    c->out[0] = (hn_tdesc){ .dtype = (hn_dtype)c->attr[DTYPE].i };
    return HONE_OK;
}

static hone_status infer_get(hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_op_want(c, 0, dg));
    if (kind_of(c, 0) == HN_OPTIONAL) return release(c, &c->in[0], dg);
    c->out[0] = c->in[0]; /* ONNX lets a plain value stand for a present optional; a sequence may be an optional one's */
    c->out_kind[0] = kind_of(c, 0);
    return HONE_OK;
}

static hone_status infer_has(hn_call *c, hn_diag *dg)
{
    (void)dg;
    c->out[0] = (hn_tdesc){ .dtype = HN_BOOL };
    return HONE_OK;
}

static bool content_has(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    if (out != 0 || (hn_op_has(c, 0) && kind_of(c, 0) != HN_TENSOR)) return false;
    ret[0] = hn_op_has(c, 0) ? 1 : 0;
    *ret_n = 1;
    return true;
}

/* ---- lists as two tensors, as they come into and leave a model ---- */
static hone_status infer_unpack(hn_call *c, hn_diag *dg)
{
    enum { KIND, DIM };
    const hn_attr *dim = &c->attr[DIM];

    HN_TRY(hn_op_want_rank(c, 0, 1, dg));
    HN_TRY(hn_op_want_dtype(c, 1, HN_I64, dg));
    HN_TRY(hn_op_want_rank(c, 1, 2, dg));
    if (c->in[1].dim[1] != HN_LIST_COLUMNS) return HN_RAISE(dg, HONE_E_SHAPE, "shapes of elements have %d columns", HN_LIST_COLUMNS);
    if (dim->n > HN_MAX_RANK) return HN_RAISE(dg, HONE_E_SHAPE, "elements of rank %d", dim->n);
    c->out_kind[0] = c->attr[KIND].i == HN_LIST_OPTIONAL ? HN_OPTIONAL : HN_SEQUENCE;
    c->out[0] = (hn_tdesc){ .dtype = c->in[0].dtype, .rank = dim->n };
    for (int d = 0; d < dim->n; d++)
        c->out[0].dim[d] = dim->is[d] >= 0 ? hn_dim_const(c->syms, dim->is[d]) : hn_op_any(c);
    return HONE_OK;
}

static hone_status infer_pack(hn_call *c, hn_diag *dg)
{
    const hn_dim most = hn_dim_const(c->syms, INT64_MAX);

    HN_TRY(hn_op_want(c, 0, dg));
    if (kind_of(c, 0) == HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "operand 0 is no list");
    c->out[0] = (hn_tdesc){ .dtype = c->in[0].dtype, .rank = 1 };
    c->out[1] = (hn_tdesc){ .dtype = HN_I64, .rank = 2, .dim = { 0, hn_dim_const(c->syms, HN_LIST_COLUMNS) } };
    for (int i = 0; i < 2; i++)
        HN_TRY(hn_op_value_dim(c, i, HN_DIM_OF_AXIS(0), most, &c->out[i].dim[0], dg));
    return HONE_OK;
}

#define LIST_OP(name_, doc_, lo_, hi_, infer_, content_, ...)                                                \
    const hn_op_def hn_op_##name_ = { HN_OP_ID(name_, lo_, hi_, 1, 1),                                       \
                                      .doc = doc_,                                                           \
                                      .traits = HN_TRAIT_PURE | HN_TRAIT_LISTS,                                               \
                                      .infer = infer_,                                                       \
                                      .content = content_,                                                   \
                                      __VA_ARGS__ };
LIST_OP(seq_construct, "a sequence of the operands; an empty one of the dtype", 0, HN_VARIADIC,
        infer_construct, NULL, HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_F32), HN_S_INT("absent", 0)))
LIST_OP(seq_at, "one element; negative positions count from the end", 2, 2, infer_at, NULL, .work = NULL)
LIST_OP(seq_insert, "the sequence with an element more, at a position or the end", 2, 3, infer_insert, NULL,
        .work = NULL)
LIST_OP(seq_erase, "the sequence without the element at a position, or the last", 1, 2, infer_erase, NULL,
        .work = NULL)
LIST_OP(seq_length, "how many elements", 1, 1, infer_length, NULL, .work = NULL)
LIST_OP(seq_concat, "the elements joined along an axis, or stacked on a new one", 1, 1, infer_concat, NULL,
        HN_OP_ATTRS(HN_S_INT_REQ("axis"), HN_S_INT("new_axis", 0)))
LIST_OP(seq_split, "a tensor cut along an axis: by sizes, by one size, or into single slices", 1, 2,
        infer_split, NULL, HN_OP_ATTRS(HN_S_INT("axis", 0), HN_S_INT("keepdims", 1)))
LIST_OP(opt_make, "a present optional of the operand; an absent one of the dtype", 0, 1, infer_make, NULL,
        HN_OP_ATTRS(HN_S_DTYPE("dtype", HN_F32)))
LIST_OP(opt_get, "what an optional holds", 1, 1, infer_get, NULL, .work = NULL)
LIST_OP(opt_has, "whether an optional holds something", 0, 1, infer_has, content_has, .work = NULL)
LIST_OP(list_unpack, "a list out of its elements, one after another, and their shapes", 2, 2, infer_unpack, NULL,
        HN_OP_ATTRS(HN_S_ENUM("kind", 0, "sequence|optional|maybe_sequence"), HN_S_INTS("dim")))
const hn_op_def hn_op_list_pack = { HN_OP_ID(list_pack, 1, 1, 2, 2),
                                    .doc = "a list's elements, one after another, and their shapes",
                                    .traits = HN_TRAIT_PURE | HN_TRAIT_LISTS,
                                    .infer = infer_pack };
