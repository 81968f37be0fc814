/* Inputs made from a model: ranges that fit what reads them. */
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

static hone_status make(const hone_model *m, const int64_t *value, uint64_t seed, hone_tensor *out, hn_str *note, hn_diag *dg)
{
    for (int i = 0; i < m->g->n_in; i++) {
        const hn_value *v = m->g->in[i];
        hn_tdesc d;
        hn_tensor t = { 0 };
        if (v->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "input \"%s\" is no tensor; give it", v->name);
        HN_TRY(concrete(m->g, v, value, &d, dg));
        HN_TRY(hn_tensor_init(&t, &d, dg));
        hn_api_fill(v->name, i, d.dtype, hn_tensor_numel(&t), hn_input_hint(v), seed, t.data, note);
        out[i] = (hone_tensor){ .dtype = (hone_dtype)d.dtype, .rank = d.rank, .data = t.data, .bytes = t.bytes };
        for (int a = 0; a < d.rank; a++) out[i].dim[a] = d.dim[a];
    }
    return HONE_OK;
}

hone_status hone_model_make_inputs(hone_model *m, uint64_t seed, hone_tensor *out, char **ret_note, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_str note = { 0 };
    if (!m || !out) return hn_api_misuse(err, "a model and room for its inputs are needed");
    for (int i = 0; i < m->g->n_in; i++) out[i] = (hone_tensor){ 0 };
    int64_t *value = calloc((size_t)hn_sym_count(m->g->syms) + 1, sizeof *value);
    hone_status s = value ? hn_input_extents(m->g, value, &dg) : HN_NOMEM(&dg);
    if (s == HONE_OK) s = make(m, value, seed, out, &note, &dg);
    if (s == HONE_OK && ret_note && !(*ret_note = hn_api_string(&note))) s = HN_NOMEM(&dg);
    for (int i = 0; s != HONE_OK && i < m->g->n_in; i++) hone_tensor_free(&out[i]);
    free(value);
    hn_str_done(&note);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}
