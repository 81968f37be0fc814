/* Bodies of control flow: built where the node stands (a known branch) or as graphs of their own. */
#include "import/import_int.h"

#include <stdio.h>
#include <string.h>

static const char *join(hn_im *m, const char *path, const char *label)
{
    const char *s = hn_arena_printf(m->arena, "%s/%s", path, label);
    return s ? s : "";
}

/* Initializers, parameters, nodes; then the outputs. */
static bool run(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *p, int n_in, hn_value *const *in,
                hn_value **out, hn_diag *dg)
{
    const int before = m->n_problem;
    if (s->depth > HN_IM_MAX_SCOPES) {
        HN_RAISE(dg, HONE_E_LIMIT, "bodies nest deeper than %d levels", HN_IM_MAX_SCOPES);
        return false;
    }
    hn_im_initializers(m, s, p);
    for (int i = 0; i < n_in; i++) {
        const char *name = (size_t)i < p->n_input ? p->input[i]->name : NULL;
        if (name && name[0] && !hn_im_define(m, s, name, in[i], dg)) return false;
    }
    hn_im_nodes(m, s, p->node, p->n_node);
    for (size_t i = 0; i < p->n_output; i++) {
        bool bad = false;
        out[i] = hn_im_lookup(m, s, p->output[i]->name ? p->output[i]->name : "", &bad, dg);
        if (dg->code != HONE_OK) return false;
        if (!out[i] && !bad) HN_RAISE(dg, HONE_E_MODEL, "output %zu of the body is absent", i);
        if (!out[i]) return false;
    }
    return m->n_problem == before;
}

bool hn_im_inline(hn_im_call *c, const Onnx__GraphProto *p, const char *label, int n_in, hn_value *const *in,
                  int n_out, hn_value **out)
{
    hn_im_scope *s = hn_im_scope_new(c->m, c->scope, c->b->g, join(c->m, c->path, label));
    hn_value **all = HN_NEW_N(c->m->scratch, hn_value *, p->n_output + 1);
    if (s) s->place = hn_im_place(c, label);
    if (!s || !s->place || !all) {
        HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
        return false;
    }
    if (p->n_output < (size_t)n_out) {
        HN_IM_RAISE(c, HONE_E_MODEL, "the body gives %zu outputs, the node names %d", p->n_output, n_out);
        return false;
    }
    if (!run(c->m, s, p, n_in, in, all, c->dg)) return false;
    memcpy(out, all, (size_t)n_out * sizeof *out);
    return true;
}

hone_status hn_im_body_new(hn_im_call *c, const char *label, hn_im_body *ret)
{
    hn_graph *g = hn_subgraph_new(c->b->g, label);
    hn_im_scope *s = g ? hn_im_scope_new(c->m, c->scope, g, join(c->m, c->path, label)) : NULL;
    if (s) s->place = hn_im_place(c, label);
    if (!s || !s->place) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    ret->g = g;
    ret->scope = s;
    ret->first_id = g->root->next_id;
    memset(&ret->is_output, 0, sizeof ret->is_output);
    hn_builder_init(&ret->b, g, c->dg);
    ret->b.origin = c->b->origin;
    ret->b.n_origin = c->b->n_origin;
    ret->c = *c;
    ret->c.b = &ret->b;
    ret->c.scope = s;
    return HONE_OK;
}

void hn_im_body_drop(hn_graph *g)
{
    for (hn_node *n = g->last; n; n = n->prev) {
        for (int i = 0; i < n->n_in; i++) hn_set_in(n, i, NULL);
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) hn_im_body_drop(n->body[i]);
    }
}

bool hn_im_body_run(hn_im_body *body, const Onnx__GraphProto *p, int n_in, hn_value *const *in,
                    hn_value **out)
{
    return run(body->c.m, body->scope, p, n_in, in, out, body->c.dg);
}

/* Is this value of the body an output for the first time? */
static bool first_time(hn_im_body *body, const hn_value *v)
{
    const int at = (int)(v->id - body->first_id);
    while (body->is_output.n <= at)
        if (!hn_vec_push(body->c.m->scratch, &body->is_output, false)) return true;
    const bool first = !body->is_output.at[at];
    body->is_output.at[at] = true;
    return first;
}

void hn_im_body_output(hn_im_body *body, hn_value *v, const char *name)
{
    const bool own = v && v->graph == body->g && v->def; /* not a parameter, nor a constant */
    if (v && (!own || !first_time(body, v))) v = hn_b1(&body->b, HN_OP_identity, v, HN_NO_ATTRS);
    if (v) hn_graph_output(body->g, v, name);
}
