/* Types and contents of nodes: the call view that op definitions see, and what is done with their answers. */
#include "ir/ir_int.h"

#include <string.h>

/* ---- the call view ---- */

static hn_dim value_dim(void *user, int out, int elem)
{
    const hn_node *n = user;
    if (HN_NEVER(out < 0 || out >= n->n_out)) return 0;
    return hn_graph_value_dim(n->out[out]->graph, n->out[out], elem);
}

static hn_attr attr_or_default(const hn_attr_schema *s, const hn_attr *a)
{
    hn_attr r = *a;
    if (r.set) return r;
    switch (s->kind) {
    case HN_ATTR_INT:
    case HN_ATTR_DIM:
    case HN_ATTR_DTYPE:
        r.i = s->dflt_i;
        break;
    case HN_ATTR_FLOAT:
        r.f = s->dflt_f;
        break;
    case HN_ATTR_STR:
        r.s = s->dflt_s ? s->dflt_s : "";
        break;
    case HN_ATTR_INTS:
    case HN_ATTR_DIMS:
        r.is = NULL;
        break;
    case HN_ATTR_FLOATS:
        r.fs = NULL;
        break;
    }
    return r;
}

typedef struct call_arrays {
    hn_attr *attr;
    hn_tdesc *in, *out;
    hn_vkind *in_kind, *out_kind;
    const hn_dim **content;
    int *n_content;
    const hn_data **data;
} call_arrays;

static bool alloc_arrays(hn_arena *a, const hn_node *n, const hn_op_def *op, call_arrays *r)
{
    r->attr = HN_NEW_N(a, hn_attr, op->n_attr + 1);
    r->in = HN_NEW_N(a, hn_tdesc, n->n_in + 1);
    r->in_kind = HN_NEW_N(a, hn_vkind, n->n_in + 1);
    r->content = HN_NEW_N(a, const hn_dim *, n->n_in + 1);
    r->n_content = HN_NEW_N(a, int, n->n_in + 1);
    r->data = HN_NEW_N(a, const hn_data *, n->n_in + 1);
    r->out = HN_NEW_N(a, hn_tdesc, n->n_out + 1);
    r->out_kind = HN_NEW_N(a, hn_vkind, n->n_out + 1);
    return r->attr && r->in && r->in_kind && r->content && r->n_content && r->data && r->out && r->out_kind;
}

hone_status hn_call_of_node(const hn_node *n, hn_arena *a, hn_call *ret, hn_diag *dg)
{
    const hn_op_def *op = hn_op_of(n);
    call_arrays r;
    if (!op) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "op %d is not known", (int)n->op);
    if (!alloc_arrays(a, n, op, &r)) return HN_NOMEM(dg);

    for (int i = 0; i < op->n_attr; i++)
        r.attr[i] = attr_or_default(&op->attrs[i], &n->attr[i]);
    for (int i = 0; i < n->n_in; i++) {
        const hn_value *v = n->in[i].value;
        if (!v) continue;
        r.in[i] = v->type;
        r.in_kind[i] = v->kind;
        r.content[i] = v->content;
        r.n_content[i] = v->n_content;
        r.data[i] = v->data;
    }
    for (int i = 0; i < n->n_out; i++) {
        r.out[i] = n->out[i]->type;
        r.out_kind[i] = n->out[i]->kind;
    }
    *ret = (hn_call){
        .op = op,
        .attr = r.attr,
        .n_in = n->n_in,
        .n_out = n->n_out,
        .in = r.in,
        .in_kind = r.in_kind,
        .out = r.out,
        .out_kind = r.out_kind,
        .content = r.content,
        .n_content = r.n_content,
        .data = r.data,
        .syms = n->graph ? n->graph->syms : NULL,
        .body = n->body,
        .value_dim = value_dim,
        .user = (void *)(uintptr_t)n,
    };
    return HONE_OK;
}

static const hn_attr *call_attr(const hn_call *c, const char *name)
{
    const int i = hn_attr_index(c->op, name);
    return HN_NEVER(i < 0) ? NULL : &c->attr[i];
}

int64_t hn_call_i(const hn_call *c, const char *name)
{
    const hn_attr *a = call_attr(c, name);
    return a ? a->i : 0;
}

double hn_call_f(const hn_call *c, const char *name)
{
    const hn_attr *a = call_attr(c, name);
    return a ? a->f : 0;
}

const int64_t *hn_call_is(const hn_call *c, const char *name, int *ret_n)
{
    const hn_attr *a = call_attr(c, name);
    *ret_n = a ? a->n : 0;
    return a ? a->is : NULL;
}

const double *hn_call_fs(const hn_call *c, const char *name, int *ret_n)
{
    const hn_attr *a = call_attr(c, name);
    *ret_n = a ? a->n : 0;
    return a ? a->fs : NULL;
}

const char *hn_call_s(const hn_call *c, const char *name)
{
    const hn_attr *a = call_attr(c, name);
    return a ? a->s : NULL;
}

/* ---- contents ---- */

/* Elements of a small tensor of rank 0 or 1; -1 when it is not one. */
static int content_size(const hn_value *v)
{
    if (v->kind != HN_TENSOR || v->type.dtype == HN_NONE || hn_dtype_is_float(v->type.dtype)) return -1;
    if (v->type.rank > 1) return -1;
    const int64_t n = hn_tdesc_numel_static(&v->type);
    return n >= 0 && n <= HN_CONTENT_MAX ? (int)n : -1;
}

static void set_content(hn_value *v, const hn_dim *d, int n)
{
    if (v->content && v->n_content == n && memcmp(v->content, d, (size_t)n * sizeof *d) == 0) return;
    hn_dim *to = HN_NEW_N(v->graph->arena, hn_dim, n + 1); /* one more: an empty content is known, not NULL */
    if (!to) return;
    memcpy(to, d, (size_t)n * sizeof *d);
    v->content = to;
    v->n_content = n;
}

void hn_content_of_const(hn_value *v)
{
    int64_t x[HN_CONTENT_MAX];
    hn_dim d[HN_CONTENT_MAX];
    const int n = content_size(v);
    if (n < 0 || hn_dtype_bytes(v->type.dtype, n) > (int64_t)v->data->bytes) return;
    if (n) hn_widen_i64(v->type.dtype, v->data->at, 0, n, x);
    for (int i = 0; i < n; i++)
        d[i] = hn_dim_const(v->graph->syms, x[i]);
    set_content(v, d, n);
}

static void update_content(hn_node *n, const hn_call *c, int i)
{
    hn_dim d[HN_CONTENT_MAX];
    hn_value *v = n->out[i];
    const int size = content_size(v);
    int got = 0;
    if (size >= 0 && c->op->content && c->op->content(c, i, d, &got) && got == size) {
        set_content(v, d, got);
        return;
    }
    v->content = NULL;
    v->n_content = 0;
}

/* ---- inference ---- */

static hone_status want_tensors(const hn_call *c, hn_diag *dg)
{
    for (int i = 0; i < c->n_in && !(c->op->traits & HN_TRAIT_LISTS); i++)
        if (c->in_kind[i] != HN_TENSOR)
            return HN_RAISE(dg, HONE_E_TYPE, "operand %d is %s where a tensor is needed", i,
                            c->in_kind[i] == HN_SEQUENCE ? "a sequence" : "an optional");
    return HONE_OK;
}

/* Extents that are plain numbers and whose product, in bytes, no 64 bits hold. */
static hone_status want_countable(const hn_call *c, hn_diag *dg)
{
    enum { MOST_BYTES = 8 }; /* of an element */
    for (int i = 0; i < c->n_out; i++) {
        if (c->out_kind[i] != HN_TENSOR || !hn_tdesc_is_static(&c->out[i])) continue;
        const int64_t n = hn_tdesc_numel_static(&c->out[i]);
        if (n < 0 || n > INT64_MAX / MOST_BYTES)
            return HN_RAISE(dg, HONE_E_LIMIT, "result %d of %s would have more elements than 64 bits count", i, c->op->name);
    }
    return HONE_OK;
}

static hone_status infer_in(hn_node *n, hn_arena *scratch, hn_diag *dg)
{
    hn_call c;
    HN_TRY(hn_call_of_node(n, scratch, &c, dg));
    HN_TRY(want_tensors(&c, dg));
    for (int i = 0; i < n->n_out; i++) {
        c.out[i] = (hn_tdesc){0};
        c.out_kind[i] = HN_TENSOR;
    }
    if (!c.op->infer) return HN_RAISE(dg, HONE_E_UNSUPPORTED, "%s has no inference", c.op->name);
    HN_TRY(c.op->infer(&c, dg));
    HN_TRY(want_countable(&c, dg));
    for (int i = 0; i < n->n_out; i++) {
        n->out[i]->type = c.out[i];
        n->out[i]->kind = c.out_kind[i];
    }
    for (int i = 0; i < n->n_out; i++)
        update_content(n, &c, i);
    return hn_arena_oom(n->graph->arena) ? HN_NOMEM(dg) : HONE_OK;
}

hone_status hn_node_promises(hn_node *n, void (*promise)(void *user, hn_dim a, hn_dim b, bool at_most), void *user, hn_diag *dg)
{
    hn_call c;
    hn_arena *scratch = hn_arena_create();
    if (!scratch) return HN_NOMEM(dg);
    hone_status s = hn_call_of_node(n, scratch, &c, dg);
    for (int i = 0; s == HONE_OK && i < n->n_out; i++) {
        c.out[i] = (hn_tdesc){0};
        c.out_kind[i] = HN_TENSOR;
    }
    c.promise = promise;
    c.promise_user = user;
    if (s == HONE_OK && c.op->infer) s = c.op->infer(&c, dg);
    hn_arena_destroy(scratch);
    return s;
}

static hone_status infer_framed(hn_node *n, hn_arena *scratch, hn_diag *dg)
{
    const hn_op_def *op = hn_op_of(n);
    HN_TRY_IN(dg, infer_in(n, scratch, dg), "node \"%s\" (%s)", n->name ? n->name : "", op ? op->name : "?");
    return HONE_OK;
}

hone_status hn_infer_node(hn_node *n, hn_diag *dg)
{
    hn_arena *scratch = hn_arena_create();
    if (!scratch) return HN_NOMEM(dg);
    const hone_status st = infer_framed(n, scratch, dg);
    hn_arena_destroy(scratch);
    return st;
}

static hone_status reinfer(hn_graph *g, hn_arena *scratch, hn_diag *dg)
{
    HN_FOR_NODES (n, g) {
        for (int i = 0; i < n->n_body; i++)
            if (n->body[i]) HN_TRY(reinfer(n->body[i], scratch, dg));
        HN_TRY(infer_framed(n, scratch, dg));
        hn_arena_reset(scratch);
    }
    return HONE_OK;
}

hone_status hn_reinfer(hn_graph *g, hn_diag *dg)
{
    hn_arena *scratch = hn_arena_create();
    if (!scratch) return HN_NOMEM(dg);
    const hone_status st = reinfer(g, scratch, dg);
    hn_arena_destroy(scratch);
    return st;
}
