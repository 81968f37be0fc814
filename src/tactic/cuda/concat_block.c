/* Concatenation on a GPU in one launch: threads are counted through all operands, one after another, each putting a few neighbours in
 * their place. */
#include "tactic/cpu/loops.h"

enum { MOST_OPERANDS = 16 };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    const hn_node *n = r->root;
    if (n->op != HN_OP_concat) return HN_FIT_OP;
    if (r->g->n_out != 1 || r->g->out[0].value != n->out[0] || !hn_lower_can(r, n)) return HN_FIT_EPILOGUE;
    const hn_value *y = n->out[0];
    if (!hn_lower_dtype_ok(y->type.dtype) || hn_dtype_bits(y->type.dtype) < 8) return HN_FIT_DTYPE;
    if (y->type.rank == 0 || n->n_in > MOST_OPERANDS) return HN_FIT_SHAPE;
    if (hn_loops_dense_axis(y) < 0 || !hn_loops_unblocked(y)) return HN_FIT_LAYOUT;
    for (int i = 0; i < n->n_in; i++)
        for (int a = 0; a < y->type.rank; a++)
            if (!hn_dim_is_const(hn_in(n, i)->type.dim[a])) return HN_FIT_SYMBOLIC;
    for (int a = 0; a < y->type.rank; a++)
        if (y->type.dim[a] == 0) return HN_FIT_SHAPE;
    return HN_FIT_YES;
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    (void)p;
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, 0, w.bytes, 1, 0.8);
}

/* Neighbours of one trip: 16 bytes where every operand's lines are multiples of that. */
static int lanes_of(const hn_region *r, int dense)
{
    int lanes = 16 * 8 / (int)hn_dtype_bits(r->root->out[0]->type.dtype);
    for (int i = 0; i < r->root->n_in; i++)
        while (hn_in(r->root, i)->type.dim[dense] % lanes) lanes /= 2;
    return lanes;
}

typedef struct part {
    const hn_value *x;
    int64_t first; /* place along the axis */
    int64_t trips; /* threads */
} part;

/* Trip number `trip` of one operand. */
static void move(hn_lower *l, const part *p, int axis, int dense, int lanes, hn_kv trip)
{
    hn_kb *b = hn_lower_kb(l);
    const hn_kv flat = hn_kb_muli(b, trip, lanes), line = hn_kb_i(b, p->x->type.dim[dense]);
    hn_kv at[HN_MAX_RANK];
    hn_kidx from, to;
    at[dense] = hn_kb_imod(b, flat, line);
    hn_loops_split(l, p->x, hn_loops_all(p->x) & ~(1u << dense), hn_kb_idiv(b, flat, line), at);
    hn_kidx_init(&from, p->x->type.rank, at);
    from.aligned = lanes > 1;
    if (lanes > 1) hn_kidx_vector(&from, dense, lanes);
    hn_lower_forget(l);
    const hn_kv x = hn_lower_value(l, p->x, &from, HN_KV_NONE);
    hn_lower_forget(l);
    to = from;
    to.at[axis] = hn_kb_addi(b, to.at[axis], p->first);
    hn_lower_store_value(l, 0, &to, x, HN_KV_NONE);
}

static int list_parts(const hn_region *r, int axis, int lanes, part *ret)
{
    int64_t first = 0;
    int n = 0;
    for (int i = 0; i < r->root->n_in; i++) {
        const hn_value *x = hn_in(r->root, i);
        int64_t elems = 1;
        for (int a = 0; a < x->type.rank; a++) elems *= x->type.dim[a];
        if (elems) ret[n++] = (part){ .x = x, .first = first, .trips = elems / lanes };
        first += x->type.dim[axis];
    }
    return n;
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    (void)p;
    hn_kb *b = hn_kb_new(ret->arena, "concat_any_block__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const int axis = (int)hn_attr_i(r->root, "axis"), dense = hn_loops_dense_axis(r->root->out[0]), lanes = lanes_of(r, dense);
    part all[MOST_OPERANDS];
    int64_t trips = 0, begin = 0;
    const int n = list_parts(r, axis, lanes, all);
    for (int i = 0; i < n; i++) trips += all[i].trips;
    const hn_kv trip = hn_kb_parallel(b, hn_kext_const(trips));
    for (int i = 0; i < n; i++) {
        if (i + 1 < n) hn_kb_if(b, hn_kb_lt(b, trip, hn_kb_i(b, begin + all[i].trips)));
        move(l, &all[i], axis, dense, lanes, hn_kb_addi(b, trip, -begin));
        if (i + 1 < n) hn_kb_else(b);
        begin += all[i].trips;
    }
    for (int i = 0; i < n; i++) hn_kb_end(b); /* of the conditions, and of the loop */
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_concat_any_block__cuda = {
    .name = "concat_any_block__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .cost = cost, .emit = emit,
};
