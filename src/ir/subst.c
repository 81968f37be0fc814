/* Putting dims in the place of symbols throughout a graph. */
#include "ir/ir_int.h"

typedef struct substitution {
    hn_graph *root;
    const hn_dim *sub;
    bool oom;
} substitution;

static const hn_dim *replaced(substitution *s, const hn_dim *d, int n)
{
    hn_dim *to = HN_NEW_N(s->root->arena, hn_dim, n + 1);
    if (!to) {
        s->oom = true;
        return d;
    }
    for (int i = 0; i < n; i++)
        to[i] = d[i] < 0 ? hn_dim_subst(s->root->syms, d[i], s->sub) : d[i];
    return to;
}

static void subst_value(substitution *s, hn_value *v)
{
    for (int i = 0; i < v->type.rank; i++)
        if (v->type.dim[i] < 0) v->type.dim[i] = hn_dim_subst(s->root->syms, v->type.dim[i], s->sub);
    if (v->content) v->content = replaced(s, v->content, v->n_content);
}

static void subst_attrs(substitution *s, hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; op && i < op->n_attr; i++) {
        hn_attr *a = &n->attr[i];
        if (!a->set) continue;
        if (op->attrs[i].kind == HN_ATTR_DIM) a->i = *replaced(s, &a->i, 1);
        if (op->attrs[i].kind == HN_ATTR_DIMS) a->is = replaced(s, a->is, a->n);
    }
}

static void subst_graph(substitution *s, hn_graph *g)
{
    for (int i = 0; i < g->n_in; i++)
        subst_value(s, g->in[i]);
    HN_FOR_NODES (n, g) {
        subst_attrs(s, n);
        for (int i = 0; i < n->n_out; i++)
            subst_value(s, n->out[i]);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) subst_graph(s, n->body[i]);
    }
}

hone_status hn_graph_subst(hn_graph *g, const hn_dim *sub, hn_diag *dg)
{
    substitution s = {.root = g->root, .sub = sub};
    subst_graph(&s, g->root);
    if (s.oom || hn_arena_oom(g->arena)) return HN_NOMEM(dg);
    return hn_reinfer(g->root, dg);
}
