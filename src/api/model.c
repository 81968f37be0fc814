/* Models: loading, inputs and outputs. */
#include "api/api_int.h"
#include "import/import.h"

#include <stdlib.h>
#include <string.h>

static hone_status load(hone_model *m, const char *path, const hone_model_options *opts, hn_diags *problems, hn_diag *dg)
{
    hn_import_opts o = { 0 };
    hn_import_profile *p = NULL;
    if (opts && opts->n_profile > 0) {
        p = HN_NEW_N(m->a, hn_import_profile, opts->n_profile);
        if (!p) return HN_NOMEM(dg);
        for (int i = 0; i < opts->n_profile; i++) {
            const hone_profile *x = &opts->profile[i];
            p[i] = (hn_import_profile){ x->input, x->rank, x->min, x->opt, x->max };
        }
        o.profile = p;
        o.n_profile = opts->n_profile;
    }
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
    if (m->a) hn_arena_destroy(m->a);
    free(m);
}

static int count_nodes(const hn_graph *g)
{
    int n = 0;
    HN_FOR_NODES (x, g) {
        n++;
        for (int i = 0; i < x->n_body; i++) n += count_nodes(x->body[i]);
    }
    return n;
}

int hone_model_node_count(const hone_model *m)
{
    return count_nodes(m->g);
}

int hone_model_io_count(const hone_model *m)
{
    return m->g->n_in + m->g->n_out;
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
    if (i < 0 || i >= hone_model_io_count(m)) {
        HN_RAISE(&dg, HONE_E_INVALID, "there is no input or output %d", i);
        return hn_api_fail(err, &dg, NULL);
    }
    const bool out = i >= m->g->n_in;
    const hn_value *v = out ? m->g->out[i - m->g->n_in].value : m->g->in[i];
    hn_api_io(ret, out ? m->g->out_name[i - m->g->n_in] : v->name, out, &v->type, m->g->syms, m->a);
    return HONE_OK;
}
