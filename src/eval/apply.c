/* One node by its reference: a call with everything static, inference again, storage, the reference,
 * rounding. */
#include "eval/eval_int.h"

#include <stdio.h>
#include <string.h>

enum { CONTENT_MAX = 64 }; /* as ir tracks: elements of integer operands that inference may look at */

/* ---- symbols ---- */

static int sym_index(const hn_run *r, hn_dim sym)
{
    const int k = hn_sym_index(r->root->syms, sym);
    return k < r->n_sym ? k : -1;
}

static bool sym_is_bound(void *user, hn_dim sym)
{
    const hn_run *r = user;
    const int i = sym_index(r, sym);
    return i >= 0 && r->bound[i];
}

bool hn_run_dim(const hn_run *r, hn_dim d, int64_t *ret)
{
    if (d >= 0) {
        *ret = d;
        return true;
    }
    return hn_dim_each_sym(r->root->syms, d, sym_is_bound, (void *)(uintptr_t)r) &&
           hn_dim_eval(r->root->syms, d, r->sym, ret);
}

static hone_status value_dim_of(const hn_value *v, const hn_cell *c, int elem, int64_t *ret, hn_diag *dg)
{
    if (elem < 0) {
        const int axis = -1 - elem;
        if (c->kind != HN_TENSOR || axis >= c->view.type.rank)
            return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" has no axis %d, though an extent refers to it", v->name,
                            axis);
        *ret = c->view.type.dim[axis];
        return HONE_OK;
    }
    if (c->kind != HN_TENSOR || hn_dtype_is_float(c->view.type.dtype) || elem >= c->view.numel)
        return HN_RAISE(dg, HONE_E_SHAPE, "\"%s\" has no integer element %d, though an extent refers to it",
                        v->name, elem);
    *ret = c->view.i[elem];
    return HONE_OK;
}

hone_status hn_run_bind(hn_run *r, const hn_value *v, const hn_cell *c, hn_diag *dg)
{
    HN_FOR_DIMS_OF_VALUE (d, v) {
        const int k = sym_index(r, d->sym);
        if (k < 0) continue;
        HN_TRY(value_dim_of(v, c, d->elem, &r->sym[k], dg));
        r->bound[k] = true;
    }
    return HONE_OK;
}

/* ---- a call with everything static ---- */

static hn_dim static_value_dim(void *user, int out, int elem)
{
    hn_symtab *t = user;
    char name[48];
    snprintf(name, sizeof name, "r%d_%d%s", out, elem < 0 ? -1 - elem : elem, elem < 0 ? "_d" : "");
    const hn_dim d = hn_sym_find(t, name);
    return d ? d : hn_sym_add(t, name, HN_SYM_VALUE);
}

static hone_status static_dim(const hn_run *r, hn_symtab *to, hn_dim d, const char *attr, hn_dim *ret,
                              hn_diag *dg)
{
    int64_t x;
    if (!hn_run_dim(r, d, &x) && !hn_dim_known(r->root->syms, d, &x))
        return HN_RAISE(dg, HONE_E_SHAPE, "attribute \"%s\" depends on an extent that nothing binds", attr);
    *ret = hn_dim_const(to, x);
    return HONE_OK;
}

static hone_status static_attr(const hn_run *r, hn_symtab *to, const hn_attr_schema *s, hn_attr *a,
                               hn_diag *dg)
{
    if (s->kind == HN_ATTR_DIM) {
        hn_dim d = a->i;
        if (a->set)
            HN_TRY(static_dim(r, to, d, s->name, &d, dg));
        else
            d = hn_dim_const(to, a->i);
        a->i = d;
    }
    if (s->kind == HN_ATTR_DIMS && a->n) {
        hn_dim *d = HN_NEW_N(r->scratch, hn_dim, a->n);
        if (!d) return HN_NOMEM(dg);
        for (int i = 0; i < a->n; i++)
            HN_TRY(static_dim(r, to, a->is[i], s->name, &d[i], dg));
        a->is = d;
    }
    return HONE_OK;
}

static hone_status static_content(const hn_run *r, hn_symtab *to, const hn_cell *c, const hn_dim **ret,
                                  int *ret_n, hn_diag *dg)
{
    *ret = NULL;
    *ret_n = 0;
    if (c->kind != HN_TENSOR || hn_dtype_is_float(c->view.type.dtype)) return HONE_OK;
    if (c->view.type.rank > 1 || c->view.numel > CONTENT_MAX) return HONE_OK;
    hn_dim *d = HN_NEW_N(r->scratch, hn_dim, c->view.numel + 1);
    if (!d) return HN_NOMEM(dg);
    for (int64_t i = 0; i < c->view.numel; i++)
        d[i] = hn_dim_const(to, c->view.i[i]);
    *ret = d;
    *ret_n = (int)c->view.numel;
    return HONE_OK;
}

/* The node's call with the types that its operands really have; the lists are the run's scratch, so writing
 * is fine. */
static hone_status static_call(hn_run *r, const hn_node *n, hn_cell *const *in, hn_call *c, hn_diag *dg)
{
    HN_TRY(hn_call_of_node(n, r->scratch, c, dg));
    hn_symtab *syms = hn_symtab_new(r->scratch);
    hn_attr *attr = hn_arena_memdup(r->scratch, c->attr, (size_t)(c->op->n_attr + 1) * sizeof *attr);
    hn_tdesc *type = HN_NEW_N(r->scratch, hn_tdesc, n->n_in + 1);
    hn_vkind *kind = HN_NEW_N(r->scratch, hn_vkind, n->n_in + 1);
    const hn_dim **content = HN_NEW_N(r->scratch, const hn_dim *, n->n_in + 1);
    int *n_content = HN_NEW_N(r->scratch, int, n->n_in + 1);
    if (!syms || !attr || !type || !kind || !content || !n_content) return HN_NOMEM(dg);
    for (int i = 0; i < c->op->n_attr; i++)
        HN_TRY(static_attr(r, syms, &c->op->attrs[i], &attr[i], dg));
    for (int i = 0; i < n->n_in; i++) {
        if (!in[i]) continue;
        type[i] = in[i]->view.type;
        kind[i] = in[i]->kind;
        HN_TRY(static_content(r, syms, in[i], &content[i], &n_content[i], dg));
    }
    c->attr = attr;
    c->in = type;
    c->in_kind = kind;
    c->content = content;
    c->n_content = n_content;
    c->syms = syms;
    c->value_dim = static_value_dim;
    c->user = syms;
    return HONE_OK;
}

/* ---- results ---- */

/* Known extents, or for those that only the reference finds their upper bound. */
static hone_status storage_type(const hn_call *c, int i, hn_tdesc *ret, hn_diag *dg)
{
    *ret = c->out[i];
    for (int k = 0; k < ret->rank; k++) {
        int64_t lo, hi;
        if (hn_dim_known(c->syms, ret->dim[k], &hi)) continue;
        hn_dim_bounds(c->syms, ret->dim[k], &lo, &hi);
        if (hi < 0 || hi == INT64_MAX)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "extent %d of result %d of %s has no upper bound", k, i,
                            c->op->name);
        ret->dim[k] = hi;
    }
    return HONE_OK;
}

static hone_status make_results(hn_run *r, const hn_node *n, const hn_call *c, hn_cell **out, hn_diag *dg)
{
    for (int i = 0; i < n->n_out; i++) {
        hn_tdesc type;
        if (c->out_kind[i] != HN_TENSOR)
            return HN_RAISE(dg, HONE_E_UNSUPPORTED, "%s yields a list, which no reference does", c->op->name);
        HN_TRY(storage_type(c, i, &type, dg));
        HN_TRY(hn_cell_new(r, &type, n->out[i]->name, &out[i], dg));
    }
    return HONE_OK;
}

/* No result has an element, as was known beforehand: there is nothing to compute, however many products there would be to sum. */
static bool yields_nothing(const hn_node *n, const hn_call *c)
{
    for (int i = 0; i < n->n_out; i++) {
        bool empty = false;
        for (int k = 0; k < c->out[i].rank; k++) {
            int64_t extent;
            if (!hn_dim_known(c->syms, c->out[i].dim[k], &extent)) return false;
            empty |= extent == 0;
        }
        if (!empty) return false;
    }
    return true;
}

/* Integers that may be indices, which are looked at whatever is read by them. */
static bool may_index(const hn_node *n, hn_cell *const *in)
{
    for (int i = 0; i < n->n_in; i++)
        if (in[i] && in[i]->view.numel && !hn_dtype_is_float(in[i]->view.type.dtype)) return true;
    return false;
}

static hone_status call_reference(hn_run *r, const hn_node *n, const hn_call *c, hn_cell *const *in,
                                  hn_cell **out, hn_diag *dg)
{
    hn_view *vin = HN_NEW_N(r->scratch, hn_view, n->n_in + 1),
            *vout = HN_NEW_N(r->scratch, hn_view, n->n_out + 1);
    hn_tdesc *type = HN_NEW_N(r->scratch, hn_tdesc, n->n_out + 1);
    if (!vin || !vout || !type) return HN_NOMEM(dg);
    for (int i = 0; i < n->n_in; i++)
        if (in[i]) vin[i] = in[i]->view;
    for (int i = 0; i < n->n_out; i++) {
        vout[i] = out[i]->view;
        type[i] = out[i]->view.type;
    }
    hn_call call = *c;
    call.out = type; /* static from here on */
    HN_TRY(c->op->ref(&call, vin, vout, dg));
    for (int i = 0; i < n->n_out; i++) {
        const int64_t numel = hn_tdesc_numel_static(&vout[i].type);
        if (HN_NEVER(numel < 0 || numel > out[i]->view.numel))
            return HN_RAISE(dg, HONE_E_INTERNAL, "%s yields more elements than it declared", c->op->name);
        out[i]->view.type = vout[i].type;
        out[i]->view.numel = numel;
    }
    return HONE_OK;
}

/* In double, floats are rounded only where the model changes dtype. */
static bool is_rounded(const hn_run *r, const hn_call *c, hn_dtype out)
{
    if (r->opts->mode == HN_EVAL_OWN || !hn_dtype_is_float(out)) return true;
    if (c->op->id == HN_OP_cast || c->op->id == HN_OP_quantize) return true;
    if (c->op->id == HN_OP_matmul_f8) return false; /* its operands are numbers of the result's dtype, stored as bytes */
    for (int i = 0; i < c->n_in; i++)
        if (hn_dtype_is_float(c->in[i].dtype)) return c->in[i].dtype != out;
    return false;
}

static bool saturates(const hn_call *c)
{
    const int i = hn_attr_index(c->op, "saturate");
    return i >= 0 && c->attr[i].i != 0;
}

static hone_status apply(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    hn_call c;
    HN_TRY(static_call(r, n, in, &c, dg));
    if (!c.op->ref || !c.op->infer)
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "%s has no reference", c.op->name);
    for (int i = 0; i < n->n_out; i++) {
        c.out[i] = (hn_tdesc){0};
        c.out_kind[i] = HN_TENSOR;
    }
    HN_TRY(c.op->infer(&c, dg));
    HN_TRY(make_results(r, n, &c, out, dg));
    if (!yields_nothing(n, &c) || may_index(n, in)) HN_TRY(call_reference(r, n, &c, in, out, dg));
    for (int i = 0; i < n->n_out; i++)
        if (is_rounded(r, &c, out[i]->view.type.dtype)) hn_cell_round(out[i], saturates(&c));
    return HONE_OK;
}

static bool passes_list(const hn_node *n, hn_cell *const *in)
{
    return n->op == HN_OP_identity && in[0] && in[0]->kind != HN_TENSOR;
}

hone_status hn_apply(hn_run *r, const hn_node *n, hn_cell *const *in, hn_cell **out, hn_diag *dg)
{
    hone_status st;
    if (n->op == HN_OP_if)
        st = hn_apply_if(r, n, in, out, dg);
    else if (n->op == HN_OP_loop)
        st = hn_apply_loop(r, n, in, out, dg);
    else if (hn_is_list_op(n->op))
        st = hn_apply_list_op(r, n, in, out, dg);
    else if (passes_list(n, in)) {
        out[0] = hn_cell_ref(in[0]);
        st = HONE_OK;
    } else
        st = apply(r, n, in, out, dg);
    for (int i = 0; i < n->n_out && st != HONE_OK; i++) {
        hn_cell_unref(r, out[i]);
        out[i] = NULL;
    }
    return st;
}
