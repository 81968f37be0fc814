/* Inputs made from a model: ranges that fit what reads them, extents that fit the inputs that are there. */
#include "api/api_int.h"
#include "eval/eval.h"

#include <stdlib.h>
#include <string.h>

static hone_status concrete(const hn_graph *g, const hn_value *v, const int64_t *value, hn_tdesc *ret, hn_diag *dg)
{
    *ret = v->type;
    for (int a = 0; a < ret->rank; a++)
        if (!hn_dim_is_const(ret->dim[a]) && !hn_dim_eval(g->syms, v->type.dim[a], value, &ret->dim[a]))
            return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" has no value", a, v->name);
    return HONE_OK;
}

/* ---- inputs that are there ---- */
/* The extent stands for the symbol wherever it occurs. */
static hone_status keep_extent(const hn_graph *g, const hn_value *v, int axis, int64_t extent, int64_t *given, hn_diag *dg)
{
    const hn_dim d = v->type.dim[axis];
    const hn_sym *sym = hn_sym_get(g->syms, d);
    hn_dim at[3];
    if (hn_dim_is_const(d) && d != extent)
        return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" is %lld where the model has %lld", axis, v->name, (long long)extent,
                        (long long)d);
    if (!sym) return HONE_OK; /* an expression, which is compared when its symbols are known */
    hn_dim_expr(g->syms, d, at);
    if (given[at[0]] >= 0 && given[at[0]] != extent)
        return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" is %lld, but \"%s\" is already %lld", axis, v->name,
                        (long long)extent, sym->name, (long long)given[at[0]]);
    given[at[0]] = extent;
    return HONE_OK;
}

static hone_status keep(const hn_graph *g, const hn_value *v, const hone_tensor *t, int64_t *given, hn_diag *dg)
{
    if (v->kind != HN_TENSOR) return HONE_OK;
    if ((hn_dtype)t->dtype != v->type.dtype)
        return HN_RAISE(dg, HONE_E_TYPE, "input \"%s\" is %s where the model has %s", v->name, hn_dtype_name((hn_dtype)t->dtype),
                        hn_dtype_name(v->type.dtype));
    if (t->rank != v->type.rank)
        return HN_RAISE(dg, HONE_E_SHAPE, "input \"%s\" has rank %d where the model has %d", v->name, t->rank, v->type.rank);
    for (int a = 0; a < t->rank; a++) HN_TRY(keep_extent(g, v, a, t->dim[a], given, dg));
    return HONE_OK;
}

static hone_status same_extents(const hn_value *v, const hn_tdesc *d, const hone_tensor *t, hn_diag *dg)
{
    for (int a = 0; a < d->rank; a++)
        if (d->dim[a] != t->dim[a])
            return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" is %lld where the other extents make it %lld", a, v->name,
                            (long long)t->dim[a], (long long)d->dim[a]);
    return HONE_OK;
}

/* ---- the others ---- */
typedef struct wants {
    const hn_graph *g;
    uint64_t seed;
    int64_t *given, *value; /* a symbol each: -1 where no tensor says; the extent chosen */
    hone_tensor *out;
    bool *made; /* an input each: out[i] is ours */
    hn_str note;
} wants;

static hone_status make(wants *w, int i, const hn_tdesc *d, hn_diag *dg)
{
    const hn_value *v = w->g->in[i];
    hn_tensor t = { 0 };
    HN_TRY(hn_tensor_init(&t, d, dg));
    hn_api_fill(v->name, i, d->dtype, hn_tensor_numel(&t), hn_input_hint(v), w->seed, t.data, &w->note);
    w->out[i] = (hone_tensor){ .dtype = (hone_dtype)d->dtype, .rank = d->rank, .data = t.data, .bytes = t.bytes };
    for (int a = 0; a < d->rank; a++) w->out[i].dim[a] = d->dim[a];
    w->made[i] = true;
    return HONE_OK;
}

static hone_status complete(wants *w, hn_diag *dg)
{
    const hn_graph *g = w->g;
    for (int i = 0; i < hn_sym_count(g->syms); i++) w->given[i] = -1;
    for (int i = 0; i < g->n_in; i++)
        if (w->out[i].data) HN_TRY(keep(g, g->in[i], &w->out[i], w->given, dg));
    HN_TRY(hn_input_extents(g, w->given, w->value, dg));
    for (int i = 0; i < g->n_in; i++) {
        const hn_value *v = g->in[i];
        const bool is_given = w->out[i].data;
        hn_tdesc d;
        if (v->kind != HN_TENSOR && is_given) continue;
        if (v->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "input \"%s\" is no tensor; give it", v->name);
        HN_TRY(concrete(g, v, w->value, &d, dg));
        HN_TRY(is_given ? same_extents(v, &d, &w->out[i], dg) : make(w, i, &d, dg));
    }
    return HONE_OK;
}

hone_status hone_model_make_inputs(hone_model *m, uint64_t seed, hone_tensor *out, char **ret_note, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!m || !out) return hn_api_misuse(err, "a model and room for its inputs are needed");
    const size_t n_sym = (size_t)hn_sym_count(m->g->syms);
    int64_t *extents = calloc(2 * n_sym + 1, sizeof *extents);
    wants w = { .g = m->g, .seed = seed, .out = out, .made = calloc((size_t)m->g->n_in + 1, sizeof *w.made) };
    hone_status s = extents && w.made ? HONE_OK : HN_NOMEM(&dg);
    w.given = extents;
    w.value = extents ? extents + n_sym : NULL;
    if (s == HONE_OK) s = complete(&w, &dg);
    if (s == HONE_OK && ret_note && !(*ret_note = hn_api_string(&w.note))) s = HN_NOMEM(&dg);
    for (int i = 0; s != HONE_OK && w.made && i < m->g->n_in; i++)
        if (w.made[i]) hone_tensor_free(&out[i]);
    free(extents);
    free(w.made);
    hn_str_done(&w.note);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}
