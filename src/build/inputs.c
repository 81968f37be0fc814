/* What inputs want when nobody says: values that fit what reads them, and extents that every size of the model survives. */
#include <string.h>

#include "build/build.h"
#include "engine/plan.h"

enum { MAX_WALK = 8 };

/* ---- values ---- */
/* Extent of the table that is read at v, following moves and casts; 0: none found. */
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

uint32_t hn_input_hint(const hn_value *v)
{
    /* a factor near zero asks a resize for images without end, and a division for infinities */
    const bool factor = v->type.rank <= 1 && strstr(v->name, "scale");
    if (hn_dtype_is_float(v->type.dtype)) return factor ? HN_HINT_ONES : HN_HINT_NONE;
    if (v->type.dtype == HN_BOOL || strstr(v->name, "mask")) return HN_HINT_ONES;
    const int64_t table = table_extent(v, 0);
    return table > 0 && table <= INT32_MAX ? (uint32_t)(HN_HINT_BELOW + table - 1) : HN_HINT_NONE;
}

/* ---- extents ---- */
/* An open axis of v whose size is below `least` or has no value; -1 when all fit. */
static int misfit_axis(const hn_value *v, const hn_symtab *syms, const int64_t *sym_value, int64_t least)
{
    for (int a = 0; v->kind == HN_TENSOR && a < v->type.rank; a++) {
        int64_t x = 0;
        if (hn_dim_is_const(v->type.dim[a])) continue;
        if (!hn_dim_eval(syms, v->type.dim[a], sym_value, &x) || x < least) return a;
    }
    return -1;
}

/* The first value that does not fit, bodies included; NULL when all do. */
static const hn_value *misfit(const hn_graph *g, const int64_t *sym_value, int64_t least, int *ret_axis)
{
    for (const hn_node *n = g->first; n; n = n->next) {
        for (int k = 0; k < n->n_out; k++) {
            *ret_axis = misfit_axis(n->out[k], g->syms, sym_value, least);
            if (*ret_axis >= 0) return n->out[k];
        }
        for (int k = 0; k < n->n_body; k++) {
            const hn_value *v = misfit(n->body[k], sym_value, least, ret_axis);
            if (v) return v;
        }
    }
    return NULL;
}

static bool is_open(const hn_sym *s)
{
    return s->kind == HN_SYM_INPUT && s->max == INT64_MAX;
}

/* Is symbol s the leading extent of an input: a batch, which rarely is what makes a size fit? */
static bool leads(const hn_graph *g, hn_dim s)
{
    for (int i = 0; i < g->n_in; i++)
        if (g->in[i]->type.rank > 0 && g->in[i]->type.dim[0] == s) return true;
    return false;
}

static void try_extent(const hn_graph *g, int64_t extent, bool batch_too, int64_t *value)
{
    for (int i = 0; i < hn_sym_count(g->syms); i++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, i));
        if (is_open(s) && (batch_too || !leads(g, hn_sym_at(g->syms, i)))) value[i] = HN_MAX(extent, s->min);
    }
}

static hone_status no_extents(const hn_graph *g, const hn_value *v, int axis, hn_diag *dg)
{
    hn_str open = { 0 };
    for (int i = 0; i < g->n_in; i++)
        for (int a = 0; a < g->in[i]->type.rank; a++)
            if (!hn_dim_is_const(g->in[i]->type.dim[a]))
                hn_str_addf(&open, "%saxis %d of \"%s\"", open.n ? ", " : "", a, g->in[i]->name);
    hn_hint(dg, "Give the sizes of the inputs that leave them open: %s.", hn_str_get(&open));
    hn_str_done(&open);
    return HN_RAISE(dg, HONE_E_SHAPE, "no usual size of the open inputs gives axis %d of \"%s\" an extent", axis, v->name);
}

/* What only running decides is taken to be plenty: nothing here can choose it. */
static void assume_values(const hn_graph *g, int64_t *value)
{
    enum { PLENTY = 1 << 16 };
    for (int i = 0; i < hn_sym_count(g->syms); i++) {
        const hn_sym *s = hn_sym_get(g->syms, hn_sym_at(g->syms, i));
        if (s->kind == HN_SYM_VALUE) value[i] = HN_MIN(PLENTY, s->max);
    }
}

hone_status hn_input_extents(const hn_graph *g, int64_t *value, hn_diag *dg)
{
    /* Powers of two past what audio models cut their input into, and the side of an image. */
    static const int64_t usual[] = { 64, 224, 256, 512, 1024, 2048, 4096, 16384 };
    int axis = 0;
    assume_values(g, value);
    const hn_value *bad = misfit(g, value, 1, &axis);
    for (int both = 0; bad && both < 2; both++)
        for (int i = 0; bad && i < HN_COUNT(usual); i++) {
            try_extent(g, usual[i], both, value);
            bad = misfit(g, value, 1, &axis);
        }
    if (!bad) return HONE_OK;
    try_extent(g, usual[0], false, value);
    bad = misfit(g, value, 0, &axis); /* an empty tensor is better than none */
    return bad ? no_extents(g, bad, axis, dg) : HONE_OK;
}
