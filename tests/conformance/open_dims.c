#include "open_dims.h"

#include <stdio.h>
#include <string.h>

enum { MAX_DIM = 256 };

typedef struct list {
    hn_arena *a;
    hn_import_dim at[MAX_DIM];
    int n;
} list;

static void add_fixed(list *l, const hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        for (int k = 0; k < g->in[i]->type.rank && l->n < MAX_DIM; k++)
            if (hn_dim_is_const(g->in[i]->type.dim[k]))
                l->at[l->n++] = (hn_import_dim){ hn_arena_printf(l->a, "%s.%d", g->in[i]->name, k), HN_IMPORT_OPEN };
}

/* False: refused, and m is as before. */
static bool read_again(hone_model *m, const hn_import_opts *opts, const hn_import_dim *dim, int n, hn_diag *dg)
{
    hn_import_opts o = *opts;
    hn_arena *a = hn_arena_create();
    hn_graph *g;
    char *path = hn_arena_strdup(a, m->path);
    o.dim = dim, o.n_dim = n;
    if (!path || hn_import_file(a, path, &o, &g, NULL, dg) != HONE_OK) {
        hn_arena_destroy(a);
        return false;
    }
    hn_arena_destroy(m->a);
    *m = (hone_model){ .a = a, .g = g, .path = path, .digest = hn_graph_digest(g) };
    return true;
}

void open_all_dims(hone_model *m, const hn_import_opts *opts, open_dims *ret)
{
    hn_arena *a = hn_arena_create();
    list all = { .a = a };
    hn_import_dim dim[MAX_DIM];
    add_fixed(&all, m->g);
    *ret = (open_dims){ .n = all.n };
    hn_diag whole = { 0 };
    if (read_again(m, opts, all.at, all.n, &whole)) ret->n_open = all.n;
    for (int i = 0; ret->n_open < all.n && i < all.n; i++) {
        hn_diag dg = { 0 };
        dim[ret->n_open] = all.at[i];
        if (read_again(m, opts, dim, ret->n_open + 1, &dg)) ret->n_open++;
        else if (!ret->refusal[0]) snprintf(ret->refusal, sizeof ret->refusal, "%.60s: %.220s", all.at[i].name, dg.message);
    }
    hn_arena_destroy(a);
}
