/*
 * if and loop: inference over their bodies. Running them is the evaluator's and the run-time's business,
 * since bodies read values around them.
 *
 *     if:    cond -> the outputs of the branch taken
 *     loop:  trip?, cond?, carried... -> carried..., scans stacked on a new axis 0, trips
 */
#include "op/op_int.h"

/* An extent that both ways give alike, else one bound while running from the result itself. */
static hone_status merge_dim(const hn_call *c, int out, int axis, hn_dim a, hn_dim b, hn_dim *ret,
                             hn_diag *dg)
{
    if (a == b) {
        *ret = a;
        return HONE_OK;
    }
    return hn_op_value_dim(c, out, HN_DIM_OF_AXIS(axis), hn_dim_max(c->syms, a, b), ret, dg);
}

static hone_status check_alike(const hn_tdesc *a, hn_vkind ka, const hn_tdesc *b, hn_vkind kb,
                               const char *what, int i, hn_diag *dg)
{
    if (ka != kb) return HN_RAISE(dg, HONE_E_TYPE, "%s %d is a tensor one way and a list the other", what, i);
    if (a->dtype != b->dtype)
        return HN_RAISE(dg, HONE_E_TYPE, "%s %d is %s one way and %s the other", what, i,
                        hn_dtype_name(a->dtype), hn_dtype_name(b->dtype));
    if (ka == HN_TENSOR && a->rank != b->rank) {
        hn_hint(dg, "a value whose rank depends on the path taken has no fixed shape to compile for");
        return HN_RAISE(dg, HONE_E_UNSUPPORTED, "%s %d has rank %d one way and rank %d the other", what, i,
                        a->rank, b->rank);
    }
    return HONE_OK;
}

static hone_status want_flag(const hn_call *c, int i, hn_diag *dg)
{
    HN_TRY(hn_op_want_dtype(c, i, HN_BOOL, dg));
    return hn_op_want_scalar(c, i, dg);
}

/* ---- if ---- */
static hone_status merge_branches(hn_call *c, int i, const hn_value *a, const hn_value *b, hn_diag *dg)
{
    if (!a || !b) return HN_RAISE(dg, HONE_E_MODEL, "a branch lacks output %d", i);
    HN_TRY(check_alike(&a->type, a->kind, &b->type, b->kind, "output", i, dg));
    c->out_kind[i] = a->kind;
    c->out[i] = a->type;
    if (a->kind != HN_TENSOR && a->type.rank != b->type.rank)
        c->out[i] = a->type.rank ? a->type : b->type;
    else if (a->kind != HN_TENSOR)
        for (int d = 0; d < a->type.rank; d++)
            c->out[i].dim[d] = a->type.dim[d] == b->type.dim[d] ? a->type.dim[d] : hn_op_any(c);
    else
        for (int d = 0; d < a->type.rank; d++)
            HN_TRY(merge_dim(c, i, d, a->type.dim[d], b->type.dim[d], &c->out[i].dim[d], dg));
    return HONE_OK;
}

static hone_status infer_if(hn_call *c, hn_diag *dg)
{
    hn_dim cond[64];
    int64_t v;
    int n;

    HN_TRY(want_flag(c, 0, dg));
    if (!c->body || !c->body[0] || !c->body[1]) return HN_RAISE(dg, HONE_E_MODEL, "if needs two branches");
    for (int k = 0; k < 2; k++)
        if (c->body[k]->n_out != c->n_out)
            return HN_RAISE(dg, HONE_E_MODEL, "the %s branch yields %d values where %d are taken",
                            k ? "else" : "then", c->body[k]->n_out, c->n_out);
    const bool known = hn_op_content(c, 0, cond, &n) && hn_op_known(c, cond[0], &v);
    for (int i = 0; i < c->n_out; i++) {
        const hn_value *a = c->body[0]->out[i].value, *b = c->body[1]->out[i].value;
        HN_TRY(known ? merge_branches(c, i, v ? a : b, v ? a : b, dg) : merge_branches(c, i, a, b, dg));
    }
    return HONE_OK;
}

/* The extra body work is counted where bodies are planned. */
const hn_op_def hn_op_if = {
    HN_OP_ID(if, 1, 1, 0, HN_VARIADIC),
    .doc = "the outputs of one of two bodies",
    .traits = HN_TRAIT_CONTROL | HN_TRAIT_LISTS,
    .infer = infer_if,
};

/* ---- loop ---- */
enum { TRIP, COND, FIRST_CARRIED };
enum { N_CARRIED };

/* The body keeps going by itself: its condition output is constant true or the condition it was given. */
static bool goes_on(const hn_graph *body)
{
    const hn_value *v = body->out[0].value;
    int64_t one;

    while (v && v->def && v->def->op == HN_OP_identity)
        v = hn_in(v->def, 0);
    return v && (v == body->in[1] || (hn_const_i64(v, 0, &one) && one));
}

/* The number of trips when it is known before the loop runs. */
static bool trips_known(const hn_call *c, hn_dim *ret)
{
    hn_dim trip[64], cond[64];
    int64_t v;
    int n;

    if (!hn_op_has(c, TRIP) || !goes_on(c->body[0]) || !hn_op_content(c, TRIP, trip, &n)) return false;
    if (hn_op_has(c, COND) && !(hn_op_content(c, COND, cond, &n) && hn_op_known(c, cond[0], &v) && v))
        return false;
    *ret = hn_dim_max(c->syms, trip[0], 0);
    return true;
}

static hone_status check_loop(const hn_call *c, hn_diag *dg)
{
    const int n_carried = c->n_in - FIRST_CARRIED;
    const hn_graph *body = c->body ? c->body[0] : NULL;

    if (!body) return HN_RAISE(dg, HONE_E_MODEL, "loop needs a body");
    if (n_carried < 0) return HN_RAISE(dg, HONE_E_INVALID, "loop needs places for trip count and condition");
    if (c->attr[N_CARRIED].i >= 0 && c->attr[N_CARRIED].i != n_carried)
        return HN_RAISE(dg, HONE_E_INVALID, "n_carried is %lld but %d values are carried",
                        (long long)c->attr[N_CARRIED].i, n_carried);
    if (hn_op_has(c, TRIP)) {
        HN_TRY(hn_op_want_dtype(c, TRIP, HN_I64, dg));
        HN_TRY(hn_op_want_scalar(c, TRIP, dg));
    }
    if (hn_op_has(c, COND)) HN_TRY(want_flag(c, COND, dg));
    if (body->n_in != c->n_in)
        return HN_RAISE(dg, HONE_E_MODEL,
                        "the body takes %d values where iteration, condition and %d carried make %d",
                        body->n_in, n_carried, c->n_in);
    if (body->n_out < 1 + n_carried)
        return HN_RAISE(dg, HONE_E_MODEL,
                        "the body yields %d values where condition and %d carried are needed", body->n_out,
                        n_carried);
    if (c->n_out != body->n_out)
        return HN_RAISE(dg, HONE_E_MODEL, "loop yields %d values where carried, scans and trips make %d",
                        c->n_out, body->n_out);
    const hn_value *go = body->out[0].value;
    if (!go || go->type.dtype != HN_BOOL) return HN_RAISE(dg, HONE_E_TYPE, "the body's condition is no bool");
    return HONE_OK;
}

/* What it starts as, unless an iteration may change its extents. */
static hone_status infer_carried(hn_call *c, int i, hn_diag *dg)
{
    const hn_tdesc *init = &c->in[FIRST_CARRIED + i];
    const hn_vkind kind = c->in_kind ? c->in_kind[FIRST_CARRIED + i] : HN_TENSOR;
    const hn_value *param = c->body[0]->in[2 + i], *next = c->body[0]->out[1 + i].value;

    HN_TRY(hn_op_want(c, FIRST_CARRIED + i, dg));
    if (!next) return HN_RAISE(dg, HONE_E_MODEL, "the body lacks carried value %d", i);
    HN_TRY(check_alike(init, kind, &next->type, next->kind, "carried value", i, dg));
    c->out_kind[i] = kind;
    c->out[i] = *init;
    if (kind != HN_TENSOR) {
        if (init->rank != next->type.rank && !init->rank) c->out[i] = next->type;
        for (int d = 0; init->rank == next->type.rank && d < init->rank; d++)
            if (init->dim[d] != next->type.dim[d]) c->out[i].dim[d] = hn_op_any(c);
        return HONE_OK;
    }
    for (int d = 0; d < init->rank; d++) {
        /* An extent handed through unchanged stays what it was at the start. */
        const bool kept = param && param->type.rank == init->rank && next->type.dim[d] == param->type.dim[d];
        const hn_dim b = kept ? init->dim[d] : next->type.dim[d];
        HN_TRY(merge_dim(c, i, d, init->dim[d], b, &c->out[i].dim[d], dg));
    }
    return HONE_OK;
}

static bool is_from_outside(void *user, hn_dim sym)
{
    const hn_graph *body = user, *root = body->root;

    HN_FOR_DIMS_OF_SYM (d, root, sym)
        if (hn_graph_encloses(body, d->value->graph)) return false;
    return true;
}

/* An extent that means something around the body: one found in a turn is bound from the result itself. */
static hone_status outside_dim(const hn_call *c, int out, int axis, hn_dim d, hn_dim *ret, hn_diag *dg)
{
    *ret = d;
    if (hn_dim_each_sym(c->syms, d, is_from_outside, c->body[0])) return HONE_OK;
    return hn_op_value_dim(c, out, HN_DIM_OF_AXIS(axis), d, ret, dg);
}

static hone_status infer_scan(hn_call *c, int i, hn_dim trips, hn_diag *dg)
{
    const hn_value *v = c->body[0]->out[1 + i].value;

    if (!v) return HN_RAISE(dg, HONE_E_MODEL, "the body lacks scan output %d", i);
    if (v->kind != HN_TENSOR) return HN_RAISE(dg, HONE_E_TYPE, "scan output %d is a list", i);
    if (v->type.rank + 1 > HN_MAX_RANK)
        return HN_RAISE(dg, HONE_E_SHAPE, "stacked scan output %d would have rank %d", i, v->type.rank + 1);
    c->out[i].dtype = v->type.dtype;
    c->out[i].rank = v->type.rank + 1;
    c->out[i].dim[0] = trips;
    for (int d = 0; d < v->type.rank; d++)
        HN_TRY(outside_dim(c, i, 1 + d, v->type.dim[d], &c->out[i].dim[1 + d], dg));
    return HONE_OK;
}

static hone_status infer_loop(hn_call *c, hn_diag *dg)
{
    hn_dim trips, trip[64], bound;
    int n;

    HN_TRY(check_loop(c, dg));
    const int n_carried = c->n_in - FIRST_CARRIED, last = c->n_out - 1;
    if (!trips_known(c, &trips)) {
        bound = hn_op_content(c, TRIP, trip, &n) ? hn_dim_max(c->syms, trip[0], 0)
                                                 : hn_dim_const(c->syms, INT64_MAX);
        HN_TRY(hn_op_value_dim(c, last, 0, bound, &trips, dg));
    }
    for (int i = 0; i < n_carried; i++)
        HN_TRY(infer_carried(c, i, dg));
    for (int i = n_carried; i < last; i++)
        HN_TRY(infer_scan(c, i, trips, dg));
    c->out[last] = (hn_tdesc){ .dtype = HN_I64 };
    return HONE_OK;
}

static bool content_loop(const hn_call *c, int out, hn_dim *ret, int *ret_n)
{
    *ret_n = 1;
    return out == c->n_out - 1 && trips_known(c, &ret[0]);
}

const hn_op_def hn_op_loop = {
    HN_OP_ID(loop, 2, HN_VARIADIC, 1, HN_VARIADIC),
    .doc = "a body repeated; what it carries, what it collects, and how often it ran",
    .traits = HN_TRAIT_CONTROL | HN_TRAIT_DYNAMIC | HN_TRAIT_LISTS,
    HN_OP_ATTRS(HN_S_INT("n_carried", -1)), /* -1: as the operands tell */
    .infer = infer_loop,
    .content = content_loop,
};
