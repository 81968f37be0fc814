/* If. A branch that is known now is built in place. */
#include "import/import_int.h"

#include <stdio.h>
#include <string.h>

#include "base/os.h"

/* ---- If ---- */

static bool known_bool(hn_im_call *c, hn_value *v, bool *ret)
{
    double x;
    int64_t i;
    if (hn_const_scalar(v, &x)) {
        *ret = x != 0;
        return true;
    }
    if (!hn_im_int(c, v, &i)) return false;
    *ret = i != 0;
    return true;
}

static hone_status branch(hn_im_call *c, const Onnx__GraphProto *p, const char *label, hn_graph **ret)
{
    hn_im_body body;
    hn_value **out = HN_NEW_N(c->m->scratch, hn_value *, p->n_output + 1);
    if (!out) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    HN_TRY(hn_im_body_new(c, label, &body));
    *ret = body.g;
    if (!hn_im_body_run(&body, p, 0, NULL, out)) return c->dg->code != HONE_OK ? c->dg->code : HONE_E_MODEL;
    for (size_t i = 0; i < p->n_output; i++)
        hn_im_body_output(&body, out[i], p->output[i]->name);
    return body.b.status;
}

static bool ranks_differ(const hn_graph *a, const hn_graph *b)
{
    for (int i = 0; i < a->n_out && i < b->n_out; i++) {
        const hn_value *x = a->out[i].value, *y = b->out[i].value;
        if (x->kind == HN_TENSOR && y->kind == HN_TENSOR && x->type.rank != y->type.rank) return true;
    }
    return false;
}

static bool has_squeeze(const Onnx__GraphProto *p)
{
    for (size_t i = 0; i < p->n_node; i++)
        if (p->node[i]->op_type && strcmp(p->node[i]->op_type, "Squeeze") == 0) return true;
    return false;
}

static hone_status take_branch(hn_im_call *c, const Onnx__GraphProto *p, const char *label)
{
    const bool ok = hn_im_inline(c, p, label, 0, NULL, c->n_out, c->out);
    return ok ? HONE_OK : c->dg->code != HONE_OK ? c->dg->code : HONE_E_MODEL;
}

/*
 * Exporters write "squeeze the axis if its extent is 1" as a choice between results of two ranks. A compiled
 * graph has one: the squeezed, which the rest of such models is made for. A run whose extent is not 1 fails
 * there with an error.
 */
static hone_status choose_rank(hn_im_call *c, const Onnx__GraphProto *then_g, const Onnx__GraphProto *else_g)
{
    const bool squeeze_then = has_squeeze(then_g), squeeze_else = has_squeeze(else_g);
    if (squeeze_then == squeeze_else) {
        hn_hint(c->dg, "fix the input's extents or values that the condition depends on");
        return hn_im_refuse(
            c, "the branches give results of different ranks and the condition is known only while running");
    }
    hn_log(HN_LOG_WARN,
           "node \"%s\": the squeezed branch is compiled; other extents than 1 there will be an error",
           c->path);
    return take_branch(c, squeeze_then ? then_g : else_g, squeeze_then ? "then_branch" : "else_branch");
}

/* One branch on trial: its problems go to a list of their own. */
typedef struct trial {
    const Onnx__GraphProto *p;
    const char *label;
    hn_graph *body;
    hn_diags caught;
    bool ok;
} trial;

static void try_branch(hn_im_call *c, trial *r)
{
    hn_im *m = c->m;
    hn_diags *const list = m->problems;
    const hn_diag first = m->first;
    const int n = m->n_problem;
    m->problems = &r->caught;
    m->n_problem = 0;
    const hone_status s = branch(c, r->p, r->label, &r->body);
    if (c->dg->code != HONE_OK) hn_im_problem(m, c->dg);
    r->ok = s == HONE_OK && m->n_problem == 0;
    m->problems = list;
    m->first = first;
    m->n_problem = n;
}

/* A branch that the extents at hand contradict can only fail when it is taken. */
static bool only_shapes(const trial *r)
{
    bool shapes = r->caught.n > 0;
    for (int i = 0; i < r->caught.n; i++)
        shapes &= r->caught.at[i].code == HONE_E_SHAPE || r->caught.at[i].code == HONE_E_TYPE;
    return shapes;
}

static void report(hn_im_call *c, trial *r)
{
    for (int i = 0; i < r->caught.n; i++)
        hn_im_problem(c->m, &r->caught.at[i]);
}

/*
 * In its place a body of the other's result types that fails when run: it reads element 1 of one. The index
 * is made of the condition, so that nobody computes it beforehand.
 */
static hone_status trap_body(hn_im_call *c, trial *r, const hn_graph *like, hn_value *cond, bool when)
{
    hn_im_body b;
    hn_im_body_drop(r->body);
    HN_TRY(hn_im_body_new(c, r->label, &b));
    hn_value *at = hn_cast(&b.b, cond, HN_I64), *one = hn_const_i(&b.b, HN_I64, 1);
    if (!when) at = hn_b2(&b.b, HN_OP_sub, one, at, HN_NO_ATTRS);
    for (int i = 0; i < like->n_out; i++) {
        const hn_value *v = like->out[i].value;
        hn_dim dim[HN_MAX_RANK];
        if (v->kind != HN_TENSOR)
            return hn_im_refuse(c, "a branch that yields a list contradicts the shapes");
        for (int k = 0; k < v->type.rank;
             k++) /* extents that the other branch finds while running are not known here */
            dim[k] = hn_im_dim_of_inputs(c, v->type.dim[k]) ? v->type.dim[k] : 0;
        hn_value *x = hn_reshape(&b.b, hn_const_i(&b.b, v->type.dtype, 0), 1, (hn_dim[]){ 1 });
        x = hn_b2(&b.b, HN_OP_gather, x, at, HN_ATTRS_ARG(HN_A_I("axis", 0)));
        hn_im_body_output(&b, hn_broadcast_to(&b.b, x, v->type.rank, dim), like->out_name[i]);
    }
    hn_log(HN_LOG_WARN, "node \"%s\": %s does not fit these shapes (%s); a run that takes it will fail",
           c->path, r->label, r->caught.at[0].message);
    r->body = b.g;
    return b.b.status;
}

static hone_status both_branches(hn_im_call *c, trial r[2], hn_value *cond)
{
    for (int i = 0; i < 2; i++)
        try_branch(c, &r[i]);
    if (c->m->stop) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (r[0].ok && r[1].ok) return HONE_OK;
    const int bad = r[0].ok ? 1 : 0;
    if (!r[1 - bad].ok || !only_shapes(&r[bad])) {
        report(c, &r[0]);
        report(c, &r[1]);
        return HONE_E_MODEL;
    }
    return trap_body(c, &r[bad], r[1 - bad].body, cond, /* when= */ bad == 0);
}

static hone_status build_if(hn_im_call *c, trial r[2], hn_value *cond)
{
    if (cond->type.rank) cond = hn_reshape(c->b, cond, 0, NULL);
    HN_TRY(c->b->status);
    const char *place = hn_im_place(c, "if");
    if (!place) return HN_IM_RAISE(c, HONE_E_NOMEM, "out of memory");
    if (hn_im_map_get(&c->m->of_two_ranks, place)) return choose_rank(c, r[0].p, r[1].p);
    HN_TRY(both_branches(c, r, cond));
    if (ranks_differ(r[0].body, r[1].body)) {
        hn_im_body_drop(r[0].body);
        hn_im_body_drop(r[1].body);
        (void)hn_im_map_put(c->m->scratch, &c->m->of_two_ranks, place, c->m); /* read once more without trying, however often */
        return choose_rank(c, r[0].p, r[1].p);
    }
    hn_node *n =
        hn_build_bodies(c->b, HN_OP_if, 1, &cond, HN_NO_ATTRS, 0, 2, (hn_graph *[]){ r[0].body, r[1].body });
    for (int i = 0; n && i < c->n_out; i++)
        c->out[i] = n->out[i];
    return c->b->status;
}

hone_status hn_im_on_if(hn_im_call *c)
{
    const Onnx__GraphProto *then_g = hn_im_graph(c, "then_branch"), *else_g = hn_im_graph(c, "else_branch");
    hn_value *cond = hn_im_in(c, 0);
    bool yes;

    if (!then_g || !else_g) return HN_IM_RAISE(c, HONE_E_MODEL, "a branch is missing");
    if (then_g->n_output != else_g->n_output || (size_t)c->n_out > then_g->n_output)
        return HN_IM_RAISE(c, HONE_E_MODEL, "the branches give %zu and %zu outputs, the node %d",
                           then_g->n_output, else_g->n_output, c->n_out);
    if (known_bool(c, cond, &yes))
        return take_branch(c, yes ? then_g : else_g, yes ? "then_branch" : "else_branch");
    trial r[2] = { { .p = then_g, .label = "then_branch" }, { .p = else_g, .label = "else_branch" } };
    const hone_status s = build_if(c, r, cond);
    hn_diags_done(&r[0].caught);
    hn_diags_done(&r[1].caught);
    return s;
}
