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

/* A table of shapes of a list's elements: ones throughout are vectors of one element. */
static bool is_shapes(const hn_value *v)
{
    HN_FOR_USES (u, v)
        if (u->node && u->node->op == HN_OP_list_unpack && u->index == 1) return true;
    return false;
}

uint32_t hn_input_hint(const hn_value *v)
{
    /* a factor near zero asks a resize for images without end, and a division for infinities */
    const bool factor = v->type.rank <= 1 && strstr(v->name, "scale");
    if (hn_dtype_is_float(v->type.dtype)) return factor ? HN_HINT_ONES : HN_HINT_NONE;
    if (v->type.dtype == HN_BOOL || strstr(v->name, "mask") || is_shapes(v)) return HN_HINT_ONES;
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

/* ---- candidates ---- */
/* Is symbol s the leading extent of an input: a batch, which rarely is what makes a size fit? */
static bool leads(const hn_graph *g, hn_dim s)
{
    for (int i = 0; i < g->n_in; i++)
        if (g->in[i]->type.rank > 0 && g->in[i]->type.dim[0] == s) return true;
    return false;
}

typedef struct search {
    const hn_graph *g;
    const int64_t *given; /* a symbol each, -1: not given; NULL: none is */
    int64_t *value;       /* a symbol each: the candidate */
    int n;
} search;

static const hn_sym *sym_at(const search *s, int i)
{
    return hn_sym_get(s->g->syms, hn_sym_at(s->g->syms, i));
}

static bool is_given(const search *s, int i)
{
    return s->given && s->given[i] >= 0;
}

static bool is_open(const search *s, int i)
{
    return sym_at(s, i)->kind == HN_SYM_INPUT && sym_at(s, i)->max == INT64_MAX && !is_given(s, i);
}

/* Open symbol `only`, or all of them (-1) but batches unless asked for, get `extent`; other open ones 1. */
static void try_extent(search *s, int64_t extent, int only, bool batch_too)
{
    for (int i = 0; i < s->n; i++) {
        if (!is_open(s, i)) continue;
        const bool raised = only < 0 ? batch_too || !leads(s->g, hn_sym_at(s->g->syms, i)) : only == i;
        s->value[i] = HN_MAX(raised ? extent : 1, sym_at(s, i)->min);
    }
}

/* A batch of one, an image's side, a short text: by rank and axis of the input where the symbol stands. */
static void try_places(search *s)
{
    enum { BATCH = 1, IMAGE = 224, OTHER = 64 };
    try_extent(s, OTHER, -1, false);
    for (int i = 0; i < s->n; i++)
        for (int k = 0; k < s->g->n_in; k++) {
            const hn_tdesc *d = &s->g->in[k]->type;
            for (int a = 0; a < d->rank; a++)
                if (d->dim[a] == hn_sym_at(s->g->syms, i) && is_open(s, i))
                    s->value[i] = HN_MAX(a == 0 ? BATCH : d->rank == 4 ? IMAGE : OTHER, sym_at(s, i)->min);
        }
}

/* Profiles say what bounded symbols are that nobody gave; what only running decides is taken to be plenty: nothing here can choose it. */
static void fixed_values(search *s)
{
    enum { PLENTY = 1 << 16 };
    for (int i = 0; i < s->n; i++) {
        const hn_sym *y = sym_at(s, i);
        s->value[i] = is_given(s, i) ? s->given[i] : y->kind == HN_SYM_VALUE ? HN_MIN(PLENTY, y->max) : y->opt;
    }
}

/* ---- judging ---- */
/* Does every op take the extents? */
static bool infers(const search *s)
{
    hn_arena *a = hn_arena_create();
    hn_graph *g = a ? hn_clone(a, s->g, NULL) : NULL;
    hn_dim *sub = g ? HN_NEW_N(a, hn_dim, s->n + 1) : NULL;
    for (int i = 0; sub && i < s->n; i++)
        sub[i] = sym_at(s, i)->kind == HN_SYM_INPUT ? hn_dim_const(g->syms, s->value[i]) : hn_sym_at(g->syms, i);
    const bool yes = sub && hn_graph_subst(g, sub, NULL) == HONE_OK;
    hn_arena_destroy(a);
    return yes;
}

typedef struct demand {
    int64_t least; /* every tensor has at least this many elements on each axis */
    bool strict;   /* and every op takes them */
} demand;

static bool any_open(const search *s)
{
    for (int i = 0; i < s->n; i++)
        if (is_open(s, i)) return true;
    return false;
}

/* What no choice can change was inferred on import. */
static bool meets(const search *s, const demand *d)
{
    int axis;
    return !misfit(s->g, s->value, d->least, &axis) && (!d->strict || !any_open(s) || infers(s));
}

static bool find(search *s, const demand *d)
{
    /* Powers of two past what audio models cut their input into, and the side of an image. */
    static const int64_t usual[] = { 1, 64, 224, 256, 512, 1024, 2048, 4096, 16384 };
    try_places(s);
    if (meets(s, d)) return true;
    for (int batch_too = 0; batch_too < 2; batch_too++)
        for (int i = 0; i < HN_COUNT(usual); i++) {
            try_extent(s, usual[i], -1, batch_too);
            if (meets(s, d)) return true;
            for (int k = 0; k < s->n; k++) {
                if (!is_open(s, k) || leads(s->g, hn_sym_at(s->g->syms, k)) != batch_too) continue;
                try_extent(s, usual[i], k, false);
                if (meets(s, d)) return true;
            }
        }
    return false;
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

hone_status hn_input_extents(const hn_graph *g, const int64_t *given, int64_t *value, hn_diag *dg)
{
    /* An op that refuses may stand in a branch that is not taken, and an empty tensor is better than none. */
    static const demand demands[] = { { 1, true }, { 1, false }, { 0, false } };
    search s = { g, given, value, hn_sym_count(g->syms) };
    int axis = 0;
    fixed_values(&s);
    for (int i = 0; i < HN_COUNT(demands); i++)
        if (find(&s, &demands[i])) return HONE_OK;
    const hn_value *bad = misfit(g, value, 0, &axis); /* of the last candidate */
    return no_extents(g, bad, axis, dg);
}
