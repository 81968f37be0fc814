/**
 * Write out a loop that runs a few times.
 *
 *     y, s, _ = loop({2}, _, x) { (i, go, p) => q = f(p, i)  out go, q, p }
 *         =>   q0 = f(x, 0)  q1 = f(q0, 1)  y = q1  s = concat(x, q0)   (each with a new first axis)
 *
 * Fires where the number of trips is known, no greater than the knob says, and nothing changes its type from trip to trip.
 */
#include "pass/pass_int.h"

#include <string.h>

enum { MAX_NODES = 512, FIRST = 2 }; /* operands and parameters before the carried values */

/* How often n runs; -1 unless known. */
static int64_t known_trips(const hn_node *n)
{
    const hn_value *trips = n->out[n->n_out - 1];
    int64_t v;
    return trips->content && hn_dim_known(n->graph->syms, trips->content[0], &v) ? v : -1;
}

static bool same_tensor(const hn_value *a, const hn_value *b)
{
    return a && b && a->kind == HN_TENSOR && b->kind == HN_TENSOR && hn_tdesc_eq(&a->type, &b->type);
}

static bool is_random(const hn_graph *body)
{
    HN_FOR_NODES (n, body)
        if (hn_op_of(n)->traits & HN_TRAIT_RANDOM) return true; /* each trip draws its own numbers */
    return false;
}

/* Carried values keep their types; what is collected is as long as the trips and else as in the body. */
static bool types_hold(const hn_node *n, int n_carried)
{
    const hn_graph *body = n->body[0];
    for (int i = 0; i < n_carried; i++) {
        const hn_value *out = n->out[i];
        if (!same_tensor(out, hn_in(n, FIRST + i)) || !same_tensor(out, body->in[FIRST + i]) || !same_tensor(out, body->out[1 + i].value))
            return false;
    }
    for (int i = n_carried; i < n->n_out - 1; i++) {
        const hn_tdesc *whole = &n->out[i]->type, *one = &body->out[1 + i].value->type;
        for (int a = 0; a < one->rank; a++)
            if (whole->dim[1 + a] != one->dim[a]) return false;
    }
    return true;
}

/* One result of a trip with a first axis of extent 1. */
static hn_value *slab(hn_builder *b, hn_value *v)
{
    hn_dim dim[HN_MAX_RANK] = { 1 };
    if (!v || v->type.rank == HN_MAX_RANK) return NULL;
    memcpy(dim + 1, v->type.dim, (size_t)v->type.rank * sizeof *dim);
    return hn_reshape(b, v, v->type.rank + 1, dim);
}

typedef struct unrolled {
    hn_value **at;       /* body values of the trip under way */
    size_t at_bytes;
    hn_value **carried;
    hn_value ***scan;    /* [output][trip] */
    int n_carried, n_scan;
} unrolled;

static bool one_trip(hn_builder *b, const hn_graph *body, unrolled *u, int64_t trip)
{
    memset(u->at, 0, u->at_bytes);
    u->at[body->in[0]->id] = hn_const_i(b, HN_I64, trip);
    u->at[body->in[1]->id] = hn_const_i(b, HN_BOOL, 1);
    for (int i = 0; i < u->n_carried; i++) u->at[body->in[FIRST + i]->id] = u->carried[i];
    if (!hn_pass_inline(b, body, u->at)) return false;
    for (int i = 0; i < u->n_scan; i++)
        u->scan[i][trip] = slab(b, hn_pass_inlined(b, body, u->at, body->out[1 + u->n_carried + i].value));
    for (int i = 0; i < u->n_carried; i++) u->carried[i] = hn_pass_inlined(b, body, u->at, body->out[1 + i].value);
    return true;
}

static bool prepare(unrolled *u, const hn_node *n, int64_t trips, hn_arena *scratch)
{
    const size_t ids = (size_t)n->graph->root->next_id + 1;
    u->n_carried = n->n_in - FIRST;
    u->n_scan = n->n_out - 1 - u->n_carried;
    u->at_bytes = ids * sizeof(hn_value *);
    u->at = HN_NEW_N(scratch, hn_value *, ids);
    u->carried = HN_NEW_N(scratch, hn_value *, u->n_carried + 1);
    u->scan = HN_NEW_N(scratch, hn_value **, u->n_scan + 1);
    if (!u->at || !u->carried || !u->scan) return false;
    for (int i = 0; i < u->n_scan; i++)
        if (!(u->scan[i] = HN_NEW_N(scratch, hn_value *, trips + 1))) return false;
    for (int i = 0; i < u->n_carried; i++) u->carried[i] = hn_in(n, FIRST + i);
    return true;
}

static void replace_results(hn_builder *b, hn_node *n, const unrolled *u, int64_t trips)
{
    for (int i = 0; i < u->n_carried; i++) hn_replace(b, n->out[i], u->carried[i]);
    for (int i = 0; i < u->n_scan; i++) {
        hn_value *y = u->scan[i][0];
        if (trips > 1) {
            const hn_node *all = hn_build(b, HN_OP_concat, (int)trips, u->scan[i], HN_ATTRS_ARG(HN_A_I("axis", 0)), 1);
            y = all ? all->out[0] : NULL;
        }
        if (y) hn_replace(b, n->out[u->n_carried + i], y);
    }
    hn_value *count = hn_const_i(b, HN_I64, trips);
    if (count) hn_replace(b, n->out[n->n_out - 1], count);
}

static bool visit(hn_builder *b, hn_node *n, hn_pass_ctx *c)
{
    unrolled u = { 0 };
    const int64_t trips = known_trips(n);
    if (trips < 1 || n->body[0]->n_node * trips > MAX_NODES) return false;
    if (!hn_pass_can_inline(n->body[0]) || is_random(n->body[0]) || !types_hold(n, n->n_in - FIRST)) return false;
    if (trips > hn_pass_knob(c, HN_KNOB_pass_unroll, n) || !prepare(&u, n, trips, c->scratch)) return false;
    for (int64_t i = 0; i < trips; i++)
        if (!one_trip(b, n->body[0], &u, i)) return false;
    if (b->status != HONE_OK) return false;
    replace_results(b, n, &u, trips);
    return true;
}

const hn_pass_def hn_pass_unroll_loop = {
    .name = "unroll_loop", .summary = "write out loops that run a few times",
    .on = HN_OP_loop, .keeps = HN_KEEP_SHAPES | HN_KEEP_NUMBERS, .exact = true, .visit = visit,
};
