/* Inputs made from a model: ranges that fit what reads them. */
#include "api/api_int.h"
#include "eval/eval.h"

#include <stdlib.h>
#include <string.h>

enum { DEFAULT_OPEN_EXTENT = 1, MAX_WALK = 8 };

/* Greatest index that a table read through v bears, following moves and casts; 0: none found. */
static int64_t table_extent(const hn_value *v, int depth)
{
    int64_t least = 0;
    if (depth == MAX_WALK) return 0;
    HN_FOR_USES (u, v) {
        int64_t n = 0;
        if (!u->node) continue;
        switch (u->node->op) {
        case HN_OP_gather:
            if (u->index == 1) n = hn_in(u->node, 0)->type.dim[hn_attr_i(u->node, "axis")];
            break;
        case HN_OP_one_hot: n = u->index == 0 ? hn_attr_i(u->node, "dim") : 0; break;
        case HN_OP_reshape: case HN_OP_transpose: case HN_OP_cast: case HN_OP_broadcast: case HN_OP_slice:
        case HN_OP_identity: case HN_OP_clip: case HN_OP_concat:
            n = table_extent(u->node->out[0], depth + 1);
            break;
        default: break;
        }
        if (n > 0 && (!least || n < least)) least = n;
    }
    return least;
}

typedef struct maker {
    hn_rng rng;
    hn_str note;
} maker;

static bool is_mask(const hn_value *v)
{
    return strstr(v->name, "mask") != NULL;
}

static void fill_ints(maker *k, const hn_value *v, hn_tensor *t)
{
    const int64_t n = hn_tensor_numel(t), table = table_extent(v, 0);
    const bool ones = is_mask(v) || v->type.dtype == HN_BOOL;
    hn_str_addf(&k->note, "%s\"%s\": ", k->note.n ? "; " : "", v->name);
    if (ones) hn_str_add(&k->note, "ones");
    else if (table) hn_str_addf(&k->note, "indices below %lld", (long long)table);
    else hn_str_add(&k->note, "0 or 1");
    for (int64_t i = 0; i < n; i++) {
        const int64_t x = ones ? 1 : hn_rng_below(&k->rng, table ? table : 2);
        hn_narrow_i64(t->type.dtype, &x, 1, t->data, i);
    }
}

static void fill_floats(maker *k, const hn_value *v, hn_tensor *t)
{
    const int64_t n = hn_tensor_numel(t);
    hn_str_addf(&k->note, "%s\"%s\": uniform in [0,1)", k->note.n ? "; " : "", v->name);
    for (int64_t i = 0; i < n; i++) {
        const double x = hn_rng_unit(&k->rng);
        hn_narrow_f64(t->type.dtype, &x, 1, t->data, i, true);
    }
}

/* Open extents take the profile's optimum, or 1. */
static hone_status concrete(const hn_graph *g, const hn_value *v, hn_tdesc *ret, hn_diag *dg)
{
    int64_t value[256];
    const int n = HN_MIN(hn_sym_count(g->syms), 256);
    for (int i = 0; i < n; i++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, i));
        value[i] = s->max == INT64_MAX ? HN_MAX(s->min, DEFAULT_OPEN_EXTENT) : s->opt;
    }
    *ret = v->type;
    for (int a = 0; a < ret->rank; a++)
        if (!hn_dim_is_const(ret->dim[a]) && !hn_dim_eval(g->syms, v->type.dim[a], value, &ret->dim[a]))
            return HN_RAISE(dg, HONE_E_SHAPE, "extent %d of input \"%s\" has no value", a, v->name);
    return HONE_OK;
}

static hone_status make(hone_model *m, uint64_t seed, hone_tensor *out, maker *k, hn_diag *dg)
{
    for (int i = 0; i < m->g->n_in; i++) {
        const hn_value *v = m->g->in[i];
        hn_tdesc d;
        hn_tensor t = { 0 };
        if (v->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "input \"%s\" is no tensor; give it", v->name);
        HN_TRY(concrete(m->g, v, &d, dg));
        HN_TRY(hn_tensor_init(&t, &d, dg));
        hn_rng_init(&k->rng, seed * 1000003 + (uint64_t)i);
        if (hn_dtype_is_float(d.dtype)) fill_floats(k, v, &t);
        else fill_ints(k, v, &t);
        out[i] = (hone_tensor){ .dtype = (hone_dtype)d.dtype, .rank = d.rank, .data = t.data, .bytes = t.bytes };
        for (int a = 0; a < d.rank; a++) out[i].dim[a] = d.dim[a];
    }
    return HONE_OK;
}

hone_status hone_model_make_inputs(hone_model *m, uint64_t seed, hone_tensor *out, char **ret_note, hone_error **err)
{
    hn_diag dg = { 0 };
    maker k = { 0 };
    const hone_status s = make(m, seed, out, &k, &dg);
    if (s == HONE_OK && ret_note) *ret_note = hn_api_string(&k.note);
    hn_str_done(&k.note);
    return s == HONE_OK ? s : hn_api_fail(err, &dg, NULL);
}
