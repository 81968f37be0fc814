/* One node: which handler, its operands, the handler's answer, its names. */
#include "import/import_int.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- the op table ---- */

static const hn_im_domain *const domains[] = { &hn_im_onnx, &hn_im_ms, &hn_im_ml, &hn_im_preview, &hn_im_training };

static const char *plain_domain(const char *d)
{
    return !d || strcmp(d, "ai.onnx") == 0 ? "" : d;
}

const hn_im_entry *hn_im_find(const char *domain, const char *op, int64_t version, const char **ret_why)
{
    const hn_im_domain *d = NULL;
    for (int i = 0; i < HN_COUNT(domains); i++)
        if (strcmp(domains[i]->name, domain) == 0) d = domains[i];
    if (!d) {
        *ret_why = "the domain is not known here";
        return NULL;
    }
    const hn_im_entry *best = NULL;
    bool named = false;
    for (int i = 0; i < d->n; i++) {
        if (strcmp(d->row[i].name, op) != 0) continue;
        named = true;
        if (d->row[i].since <= version && (!best || best->since < d->row[i].since)) best = &d->row[i];
    }
    *ret_why =
        named ? "the op is newer than the opset version that the model names" : "the op is not known here";
    return best;
}

/* By domain, for what a model and each of its functions import; the first of a domain counts. */
bool hn_im_index_opsets(hn_im *m, Onnx__OperatorSetIdProto *const *opset, size_t n, hn_im_map *ret)
{
    for (size_t i = 0; i < n; i++)
        (void)hn_im_map_put(m->scratch, ret, plain_domain(opset[i]->domain), opset[i]);
    return !hn_arena_oom(m->scratch);
}

static int64_t opset_of(const hn_im_frame *f, const char *domain)
{
    const Onnx__OperatorSetIdProto *o = f ? hn_im_map_get(f->opsets, domain) : NULL;
    return o ? o->version : 1; /* files before opset imports, and domains without versions */
}

static const char *function_key(hn_im *m, const char *domain, const char *name, const char *overload)
{
    domain = plain_domain(domain); /* lengths tell apart where one name ends and the next begins */
    return hn_arena_printf(m->scratch, "%zu.%zu.%s%s%s", strlen(domain), strlen(name), domain, name, overload ? overload : "");
}

bool hn_im_index_functions(hn_im *m)
{
    for (size_t i = 0; i < m->model->n_functions; i++) {
        const Onnx__FunctionProto *f = m->model->functions[i];
        hn_im_function *x = HN_NEW(m->scratch, hn_im_function);
        const char *key = f->name ? function_key(m, f->domain, f->name, f->overload) : NULL;
        if (!x || !key) continue;
        x->p = f;
        if (hn_im_map_put(m->scratch, &m->functions, key, x))
            (void)hn_im_index_opsets(m, f->opset_import, f->n_opset_import, &x->opsets);
    }
    return !hn_arena_oom(m->scratch);
}

static const hn_im_function *function_of(hn_im *m, const Onnx__NodeProto *p)
{
    if (!m->functions.n) return NULL;
    const char *key = function_key(m, p->domain, p->op_type, p->overload);
    return key ? hn_im_map_get(&m->functions, key) : NULL;
}

/* ---- results ---- */

static void mark_bad(hn_im *m, hn_im_scope *s, const Onnx__NodeProto *p)
{
    for (size_t i = 0; i < p->n_output; i++) {
        hn_im_name *n = HN_NEW(m->scratch, hn_im_name);
        if (!n || !p->output[i][0]) continue;
        n->bad = true;
        (void)hn_im_map_put(m->scratch, &s->names, p->output[i], n);
    }
}

static hone_status name_outputs(hn_im_call *c)
{
    for (int i = 0; i < c->n_out; i++) {
        if (!hn_im_wants(c, i)) continue;
        hn_value *v = c->out[i];
        if (!v) return HN_RAISE(c->dg, HONE_E_UNSUPPORTED, "output %d is not computed here", i);
        if (v->auto_name) {
            hn_value_rename(v, c->p->output[i]);
            if (v->def && v->def_index == 0) v->def->name = v->name;
        }
        if (!hn_im_define(c->m, c->scope, c->p->output[i], v, c->dg)) return c->dg->code;
    }
    return HONE_OK;
}

static hone_status check_attrs(hn_im_call *c)
{
    if (c->attr_dg.code != HONE_OK) {
        *c->dg = c->attr_dg;
        return c->dg->code;
    }
    for (size_t i = 0; i < c->p->n_attribute && i < 64; i++) {
        if (c->attr_seen >> i & 1) continue;
        hn_hint(c->dg, "the standard's version in force gives this op no such attribute");
        return HN_RAISE(c->dg, HONE_E_UNSUPPORTED, "attribute \"%s\" is not known here",
                        c->p->attribute[i]->name ? c->p->attribute[i]->name : "");
    }
    return HONE_OK;
}

const char *hn_im_place(const hn_im_call *c, const char *label)
{
    return hn_arena_printf(c->m->scratch, "%s/%zu%s", c->scope->place, c->index, label);
}

/* ---- functions of the model's own ---- */

static hone_status call_function(hn_im_call *c, const hn_im_function *fn)
{
    hn_im *m = c->m;
    const Onnx__FunctionProto *f = fn->p;
    hn_im_frame *frame = HN_NEW(m->scratch, hn_im_frame);
    hn_im_scope *s = hn_im_scope_new(m, NULL, c->scope->g, c->path);
    if (!frame || !s) return HN_NOMEM(c->dg);
    if (c->p->n_input > f->n_input || c->p->n_output > f->n_output)
        return HN_RAISE(c->dg, HONE_E_MODEL, "the function has %zu inputs and %zu outputs", f->n_input,
                        f->n_output);
    *frame = (hn_im_frame){ .up = c->scope->frame,
                            .fn = f,
                            .attr = c->p->attribute,
                            .n_attr = c->p->n_attribute,
                            .opsets = &fn->opsets };
    for (const hn_im_frame *up = c->scope->frame; up; up = up->up)
        if (up->fn == f) return HN_RAISE(c->dg, HONE_E_MODEL, "the function calls itself");
    s->frame = frame;
    s->place = hn_im_place(c, "function");
    if (!s->place) return HN_NOMEM(c->dg);
    s->depth = c->scope->depth + 1;
    if (s->depth > HN_IM_MAX_SCOPES)
        return HN_RAISE(c->dg, HONE_E_LIMIT, "functions call each other deeper than %d levels",
                        HN_IM_MAX_SCOPES);
    for (size_t i = 0; i < f->n_input; i++)
        if (!hn_im_define(m, s, f->input[i], hn_im_in(c, (int)i), c->dg)) return c->dg->code;

    const int before = m->n_problem;
    hn_im_nodes(m, s, f->node, f->n_node);
    for (int i = 0; i < c->n_out; i++) {
        bool bad = false;
        if (!hn_im_wants(c, i)) continue;
        c->out[i] = hn_im_lookup(m, s, f->output[i], &bad, c->dg);
        if (c->dg->code != HONE_OK) return c->dg->code;
        if (bad && m->n_problem == before)
            return HN_RAISE(c->dg, HONE_E_MODEL, "output \"%s\" is bad", f->output[i]);
    }
    c->attr_seen = ~(uint64_t)0;
    return HONE_OK;
}

/* ---- one node ---- */

static const char *node_path(hn_im *m, const hn_im_scope *s, const Onnx__NodeProto *p, size_t index)
{
    const char *name = p->name ? p->name : "";
    if (!name[0]) return hn_arena_printf(m->arena, "%s/%s_%zu", s->path, p->op_type ? p->op_type : "", index);
    return hn_arena_printf(m->arena, "%s%s%s", s->path, name[0] == '/' ? "" : "/", name);
}

static void frame_of(hn_im_call *c)
{
    const char *domain = plain_domain(c->p->domain);
    hn_diag_frame(c->dg, "node \"%s\" (%s%s%s, opset %" PRId64 ")", c->path ? c->path : "", domain,
                  domain[0] ? "." : "", c->p->op_type ? c->p->op_type : "", c->opset);
}

/* Operands; false when one is bad already or missing (reported). */
static bool operands(hn_im_call *c)
{
    bool bad = false;
    while (c->n_in > 0 && !c->p->input[c->n_in - 1][0])
        c->n_in--; /* absent operands at the end are as good as not written */
    for (int i = 0; i < c->n_in; i++) {
        if (!c->p->input[i][0]) continue;
        c->in[i] = hn_im_lookup(c->m, c->scope, c->p->input[i], &bad, c->dg);
        if (c->dg->code != HONE_OK) {
            frame_of(c);
            hn_im_problem(c->m, c->dg);
            bad = true;
        }
    }
    return !bad;
}

/* The leading inputs of a row are required; these alone may be left out by an empty name. */
static bool may_be_absent(const hn_im_call *c, int i)
{
    if (c->entry->fn == hn_im_on_loop) return i < 2;
    if (c->entry->fn == hn_im_on_scan8) return i == 0;
    if (c->entry->fn == hn_im_on_ms_gqa || c->entry->fn == hn_im_on_ms_mha)
        return i >= 1;                              /* packed in the first */
    return plain_domain(c->p->domain)[0] && i >= 2; /* contrib ops have gaps, which their handlers mind */
}

static hone_status check_arity(const hn_im_call *c)
{
    const hn_im_entry *e = c->entry;
    const int written = (int)c->p->n_input;
    if (written < e->min_in && e->max_in == HN_IM_ANY)
        return HN_RAISE(c->dg, HONE_E_MODEL, "the op takes at least %d inputs and has %d", e->min_in,
                        written);
    if (written < e->min_in || (e->max_in != HN_IM_ANY && c->n_in > e->max_in))
        return HN_RAISE(c->dg, HONE_E_MODEL, "the op takes %d to %d inputs and has %d", e->min_in, e->max_in,
                        written);
    if (e->max_out != HN_IM_ANY && c->n_out > e->max_out)
        return HN_RAISE(c->dg, HONE_E_MODEL, "the op gives %d outputs at most and %d are named", e->max_out,
                        c->n_out);
    for (int i = 0; i < e->min_in; i++)
        if (!c->in[i] && !may_be_absent(c, i)) return HN_RAISE(c->dg, HONE_E_MODEL, "input %d is absent", i);
    if (c->n_out < 1) return HN_RAISE(c->dg, HONE_E_MODEL, "the node has no outputs");
    return HONE_OK;
}

static hone_status run_handler(hn_im_call *c, const hn_im_function *f)
{
    hn_node *mark = c->b->g->last;
    if (!f) HN_TRY(check_arity(c));
    const hone_status s = f ? call_function(c, f) : c->entry->fn(c);
    if (c->attr_dg.code != HONE_OK) { /* what the handler made of a bad attribute does not matter */
        hn_diag_clear(c->dg);
        return check_attrs(c);
    }
    HN_TRY(s);
    HN_TRY(c->b->status);
    HN_TRY(c->dg->code);
    HN_TRY(check_attrs(c));
    hn_im_fold_since(c, mark);
    return name_outputs(c);
}

static bool alloc_call(hn_im_call *c)
{
    const Onnx__NodeProto *p = c->p;
    if (p->n_input > HN_IM_MAX_OPERANDS || p->n_output > HN_IM_MAX_OPERANDS) {
        HN_RAISE(c->dg, HONE_E_LIMIT, "the node has %zu inputs and %zu outputs", p->n_input, p->n_output);
        return false;
    }
    c->n_in = (int)p->n_input;
    c->n_out = (int)p->n_output;
    c->in = HN_NEW_N(c->m->scratch, hn_value *, c->n_in + 1);
    c->out = HN_NEW_N(c->m->scratch, hn_value *, c->n_out + 1);
    if (c->in && c->out && c->path) return true;
    HN_NOMEM(c->dg);
    return false;
}

static void unknown_op(hn_im_call *c, const char *why)
{
    hn_hint(c->dg, "replace the op, run it outside the model, or ask for it to be added");
    HN_RAISE(c->dg, HONE_E_UNSUPPORTED, "%s", why);
}

/* Bodies and functions stand in the file once and may be built many times: a small file can ask for more than any memory holds. */
void hn_im_spend(hn_im *m, const hn_im_scope *s, size_t n_nodes)
{
    if (s->depth) m->spent += (int64_t)n_nodes;
}

/* What this node's bodies hold that is not supported, when the node itself is not built. */
static void report_unknown(hn_im *m, hn_im_scope *s, const Onnx__NodeProto *p, const char *path);

static void report_in_graph(hn_im *m, hn_im_scope *s, const Onnx__GraphProto *g, const char *path)
{
    hn_im_scope *inner = hn_im_scope_new(m, s, s->g, path);
    if (!inner || inner->depth > HN_IM_MAX_SCOPES) return;
    hn_im_spend(m, s, g->n_node);
    for (size_t i = 0; i < g->n_node; i++)
        report_unknown(m, inner, g->node[i], node_path(m, inner, g->node[i], i));
}

static void report_unknown(hn_im *m, hn_im_scope *s, const Onnx__NodeProto *p, const char *path)
{
    hn_diag dg = { 0 };
    const char *why;
    hn_im_call c = { .m = m, .scope = s, .p = p, .dg = &dg, .path = path };
    c.opset = opset_of(s->frame, plain_domain(p->domain));
    if (p->op_type && !function_of(m, p) && !hn_im_find(plain_domain(p->domain), p->op_type, c.opset, &why)) {
        unknown_op(&c, why);
        frame_of(&c);
        hn_im_problem(m, &dg);
    }
    for (size_t i = 0; i < p->n_attribute; i++)
        if (p->attribute[i]->g) report_in_graph(m, s, p->attribute[i]->g, path);
}

enum { USUAL_OPERANDS = 8, OPERANDS_A_NODE = 4 }; /* what a node has for nothing; so many more are as dear as another node */

static size_t price_of(const Onnx__NodeProto *p)
{
    size_t n = p->n_input + p->n_output + p->n_attribute, n_number = 0;
    for (size_t i = 0; i < p->n_attribute; i++) {
        const Onnx__AttributeProto *a = p->attribute[i];
        n_number += a->n_ints + a->n_floats + a->n_strings;
        if (a->g) n += a->g->n_initializer + a->g->n_sparse_initializer + a->g->n_input + a->g->n_output;
    }
    return 1 + (n > USUAL_OPERANDS ? (n - USUAL_OPERANDS) / OPERANDS_A_NODE : 0) + n_number / HN_IM_NUMBERS_A_NODE;
}

static bool within_limit(hn_im_call *c)
{
    hn_im *m = c->m;
    if (c->scope->depth == 0) return true;
    hn_im_spend(m, c->scope, price_of(c->p));
    if (m->spent <= m->budget) return true;
    hn_hint(c->dg, "bodies and functions that call others more than once multiply: spell some out, or split the model");
    HN_RAISE(c->dg, HONE_E_LIMIT, "bodies and functions come to more than %" PRId64 " nodes once they are spelled out", m->budget);
    frame_of(c);
    hn_im_problem(m, c->dg);
    m->stop = true;
    return false;
}

void hn_im_node(hn_im *m, hn_im_scope *s, const Onnx__NodeProto *p, size_t index)
{
    hn_diag dg = { 0 };
    hn_builder b;
    const char *why = "the node has no op type";
    hn_im_call c = { .m = m, .scope = s, .p = p, .b = &b, .dg = &dg, .index = index };
    const hn_im_function *f = p->op_type ? function_of(m, p) : NULL;

    c.path = node_path(m, s, p, index);
    c.opset = opset_of(s->frame, plain_domain(p->domain));
    if (!within_limit(&c)) return;
    hn_builder_init(&b, s->g, &dg);
    const char **origin = HN_NEW(m->arena, const char *);
    if (origin) {
        *origin = c.path;
        b.origin = origin;
        b.n_origin = 1;
    }
    if (p->op_type && !f) c.entry = hn_im_find(plain_domain(p->domain), p->op_type, c.opset, &why);
    const int before = m->n_problem;
    bool ok = alloc_call(&c);
    if (ok && !f && !c.entry) {
        unknown_op(&c, why);
        ok = false;
    }
    if (ok && !operands(&c)) {
        mark_bad(m, s, p);
        report_unknown(m, s, p, c.path);
        return;
    }
    const bool outer = m->read_bad;
    m->read_bad = false;
    if (ok) ok = run_handler(&c, f) == HONE_OK;
    const bool follows =
        m->read_bad; /* a body that read a bad name fails for a reason that is listed already */
    m->read_bad = outer || follows;
    if (ok && m->n_problem == before) return;
    if (dg.code == HONE_OK && m->n_problem == before && !follows)
        HN_RAISE(&dg, b.status ? b.status : HONE_E_INTERNAL, "the op was not imported");
    if (dg.code != HONE_OK) {
        frame_of(&c);
        hn_im_problem(m, &dg);
    }
    mark_bad(m, s, p);
}
