/* Models: loading, inputs and outputs. */
#include "api/api_int.h"
#include "import/import.h"

#include <stdlib.h>
#include <string.h>

static hone_status take_profiles(hn_arena *a, const hone_model_options *opts, hn_import_opts *ret, hn_diag *dg)
{
    hn_import_profile *p = HN_NEW_N(a, hn_import_profile, opts->n_profile + 1);
    if (!p) return HN_NOMEM(dg);
    for (int i = 0; i < opts->n_profile; i++) {
        const hone_profile *x = &opts->profile[i];
        if (!x->input || x->rank < 0 || x->rank > HN_MAX_RANK || (x->rank > 0 && (!x->min || !x->opt || !x->max)))
            return HN_RAISE(dg, HONE_E_INVALID, "profile %d lacks its input or its shapes", i);
        p[i] = (hn_import_profile){ x->input, x->rank, x->min, x->opt, x->max };
    }
    ret->profile = p;
    ret->n_profile = opts->n_profile;
    return HONE_OK;
}

static hone_status take_values(hn_arena *a, const hone_model_options *opts, hn_import_opts *ret, hn_diag *dg)
{
    hn_import_value *v = HN_NEW_N(a, hn_import_value, opts->n_value + 1);
    if (!v) return HN_NOMEM(dg);
    for (int i = 0; i < opts->n_value; i++) {
        const hone_tensor *t = &opts->value[i].value;
        if (!opts->value[i].input) return HN_RAISE(dg, HONE_E_INVALID, "value %d lacks its input", i);
        if (t->rank < 0 || t->rank > HN_MAX_RANK || !t->dtype || (int)t->dtype >= HN_NDTYPES || (!t->data && t->bytes))
            return HN_RAISE(dg, HONE_E_INVALID, "the value of input \"%s\" is no tensor", opts->value[i].input);
        v[i] = (hn_import_value){ .input = opts->value[i].input, .data = t->data };
        v[i].type.dtype = (hn_dtype)t->dtype;
        v[i].type.rank = t->rank;
        for (int k = 0; k < t->rank; k++) v[i].type.dim[k] = t->dim[k];
        const int64_t n = hn_tdesc_numel_static(&v[i].type);
        if (hn_dtype_bytes(v[i].type.dtype, n) != (int64_t)t->bytes)
            return HN_RAISE(dg, HONE_E_INVALID, "the value of input \"%s\" has %zu bytes", opts->value[i].input, t->bytes);
    }
    ret->value = v;
    ret->n_value = opts->n_value;
    return HONE_OK;
}

static hone_status load(hone_model *m, const char *path, const hone_model_options *given, hn_diags *problems, hn_diag *dg)
{
    static const hone_model_options dflt = HONE_MODEL_OPTIONS_INIT;
    hone_model_options opts;
    hn_import_opts o = { 0 };
    HN_TRY(hn_api_options(&opts, &dflt, sizeof opts, given, dg));
    if (opts.n_profile > 0) HN_TRY(take_profiles(m->a, &opts, &o, dg));
    if (opts.n_value > 0) HN_TRY(take_values(m->a, &opts, &o, dg));
    HN_TRY(hn_import_file(m->a, path, &o, &m->g, problems, dg));
    m->digest = hn_graph_digest(m->g);
    m->path = hn_arena_strdup(m->a, path);
    return hn_arena_oom(m->a) ? HN_NOMEM(dg) : HONE_OK;
}

hone_status hone_model_load(const char *path, const hone_model_options *opts, hone_model **ret, hone_error **err)
{
    hn_diag dg = { 0 };
    hn_diags problems = { 0 };
    hone_model *m = path && ret ? calloc(1, sizeof *m) : NULL;
    if (m) m->a = hn_arena_create();
    hone_status s = HONE_OK;
    if (!path || !ret) s = HN_RAISE(&dg, HONE_E_INVALID, "a model path and a place for the result are needed");
    else if (!m || !m->a) s = HN_NOMEM(&dg);
    else s = load(m, path, opts, &problems, &dg);
    if (s != HONE_OK) {
        hn_api_fail(err, &dg, &problems);
        hone_model_free(m);
    } else {
        *ret = m;
    }
    hn_diags_done(&problems);
    return s;
}

void hone_model_free(hone_model *m)
{
    if (!m) return;
    hn_api_drop_tools(m);
    if (m->a) hn_arena_destroy(m->a);
    free(m);
}

int hone_model_node_count(const hone_model *m)
{
    return !m ? 0 : hn_graph_count_nodes(m->g);
}

int hone_model_io_count(const hone_model *m)
{
    return !m ? 0 : m->g->n_in + m->g->n_out;
}

void hn_api_io(hone_io *ret, const char *name, bool is_output, const hn_tdesc *t, const hn_symtab *syms, hn_arena *a)
{
    memset(ret, 0, sizeof *ret);
    ret->name = name;
    ret->is_output = is_output;
    ret->dtype = (hone_dtype)t->dtype;
    ret->rank = t->rank;
    for (int i = 0; i < t->rank; i++) {
        ret->symbol[i] = "";
        ret->dim[i] = t->dim[i];
        if (hn_dim_is_const(t->dim[i])) continue;
        hn_str s = { 0 };
        hn_dim_print(syms, t->dim[i], &s);
        ret->dim[i] = -1;
        ret->symbol[i] = hn_arena_strdup(a, hn_str_get(&s));
        hn_str_done(&s);
    }
}

hone_status hone_model_io(const hone_model *m, int i, hone_io *ret, hone_error **err)
{
    hn_diag dg = { 0 };
    if (!m || !ret) return hn_api_misuse(err, "a model and a place for the description are needed");
    if (i < 0 || i >= hone_model_io_count(m)) {
        HN_RAISE(&dg, HONE_E_INVALID, "there is no input or output %d", i);
        return hn_api_fail(err, &dg, NULL);
    }
    const bool out = i >= m->g->n_in;
    const hn_value *v = out ? m->g->out[i - m->g->n_in].value : m->g->in[i];
    hn_api_io(ret, out ? m->g->out_name[i - m->g->n_in] : v->name, out, &v->type, m->g->syms, m->a);
    return HONE_OK;
}
