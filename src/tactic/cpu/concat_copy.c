/* Concatenation: one launch an operand, each putting it, computed on the way where the region says how, in its place. */
#include "tactic/cpu/loops.h"

enum { P_LANES };

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_concat) return HN_FIT_OP;
    if (r->g->n_out != 1 || r->g->out[0].value != r->root->out[0] || !hn_lower_can(r, r->root)) return HN_FIT_EPILOGUE;
    return hn_lower_dtype_ok(r->root->out[0]->type.dtype) ? HN_FIT_YES : HN_FIT_DTYPE;
}

static void space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    const int64_t wide = hn_lower_lanes(t, r->root->out[0]->type.dtype), lanes[] = { 1, wide };
    hn_space_add_list(ret, "lanes", wide > 1 && r->root->out[0]->type.rank ? 2 : 1, lanes);
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    hn_work w;
    hn_region_work(r, &w);
    return hn_roofline_ns(t, 0, w.bytes, 1, p[P_LANES] > 1 ? 0.7 : 0.1) + 100 * r->root->n_in;
}

typedef struct part {
    hn_lower *l;
    const hn_region *r;
    const hn_value *x;
    int axis, dense;
    hn_kv first; /* place of the operand along the axis */
    hn_kv at[HN_MAX_RANK];
} part;

static void body(hn_kb *b, hn_kv i, int lanes, hn_kv mask, void *user)
{
    part *p = user;
    hn_kidx from, to;
    p->at[p->dense] = i;
    hn_kidx_init(&from, p->x->type.rank, p->at);
    hn_kidx_vector(&from, p->dense, lanes);
    hn_lower_forget(p->l);
    const hn_kv x = hn_lower_value(p->l, p->x, &from, mask);
    hn_lower_forget(p->l);
    to = from;
    to.at[p->axis] = hn_kb_add(b, to.at[p->axis], p->first);
    hn_lower_store_value(p->l, 0, &to, x, mask);
}

static hone_status emit_part(const hn_region *r, const hn_target *t, int lanes, int i, hn_dim first, hn_emission *ret,
                             hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "concat_any_copy__cpu");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    part p = { .l = l, .r = r, .x = hn_in(r->root, i), .axis = (int)hn_attr_i(r->root, "axis") };
    p.dense = hn_loops_dense_axis(r->root->out[0]);
    p.first = hn_lower_dim(l, first);
    const uint32_t outer = hn_loops_all(p.x) & ~(1u << p.dense);
    const hn_kv rows = hn_lower_dim(l, hn_loops_extent(r, p.x, outer));
    hn_loops_split(l, p.x, outer, hn_kb_parallel(b, hn_kb_ext(b, rows, 1)), p.at);
    hn_kb_vector_loop(b, hn_kb_i(b, 0), hn_lower_dim(l, p.x->type.dim[p.dense]), lanes, HN_KTAIL_MASK, body, &p);
    hn_kb_end(b);
    hn_work w;
    hn_region_work(r, &w);
    return hn_lower_finish(l, ret, 0, w.bytes / r->root->n_in, dg);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    hn_dim first = 0;
    const int axis = (int)hn_attr_i(r->root, "axis");
    for (int i = 0; i < r->root->n_in; i++) {
        const hn_dim n = hn_in(r->root, i)->type.dim[axis];
        if (n != 0) HN_TRY(emit_part(r, t, (int)p[P_LANES], i, first, ret, dg));
        first = hn_dim_add(r->g->syms, first, n);
    }
    return HONE_OK;
}

const hn_tactic_def hn_tactic_concat_any_copy__cpu = {
    .name = "concat_any_copy__cpu", .rev = 2, .arch = HN_ARCH_X86_64, .portable = true,
    .fits = fits, .space = space, .cost = cost, .emit = emit,
};
