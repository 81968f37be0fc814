/* Matrix products on a GPU in f32 from any float storage: tiles through shared memory, anything pointwise before and behind. */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/tile.h"

static hn_fit fits(const hn_region *r, const hn_target *t)
{
    (void)t;
    if (r->root->op != HN_OP_matmul) return HN_FIT_OP;
    const hn_value *y = r->root->out[0];
    if (hn_lower_compute_type(y->type.dtype) != HN_F32 || !hn_lower_can(r, r->root)) return HN_FIT_DTYPE;
    if (hn_in(r->root, 0)->type.rank < 2 || hn_in(r->root, 1)->type.rank < 2) return HN_FIT_SHAPE;
    return HN_FIT_YES;
}

typedef struct product {
    hn_lower *l;
    const hn_value *a, *b, *y;
    bool ta, tb;
} product;

static hn_dim depth_of(const hn_region *r)
{
    const hn_value *a = hn_in(r->root, 0);
    return a->type.dim[a->type.rank - (hn_attr_i(r->root, "trans_a") ? 2 : 1)];
}

static double cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const hn_value *y = r->root->out[0];
    const int rank = y->type.rank;
    double groups = 1;
    hn_work w;
    hn_region_work(r, &w);
    for (int i = 0; i < rank - 2; i++)
        groups *= (double)hn_region_opt(r, y->type.dim[i]);
    return hn_tile_cost(t, p, groups, (double)hn_region_opt(r, y->type.dim[rank - 2]),
                        (double)hn_region_opt(r, y->type.dim[rank - 1]), (double)hn_region_opt(r, depth_of(r)), w.bytes);
}

/* Batch axes of the result that group g names. */
static void batch_at(product *p, hn_kv g, hn_kv *at)
{
    const uint32_t axes = hn_loops_all(p->y) & ~(3u << (p->y->type.rank - 2));
    if (axes) hn_loops_split(p->l, p->y, axes, g, at);
}

static hn_kv operand(product *p, const hn_value *v, hn_kv g, hn_kv row, hn_kv col, hn_kv ok)
{
    const int rank = v->type.rank, shift = p->y->type.rank - rank;
    hn_kv at[HN_MAX_RANK], batch[HN_MAX_RANK];
    hn_kidx idx;
    batch_at(p, g, batch);
    for (int i = 0; i < rank - 2; i++)
        at[i] = hn_lower_stretch(p->l, batch[i + shift], v->type.dim[i], p->y->type.dim[i + shift]);
    at[rank - 2] = row;
    at[rank - 1] = col;
    hn_kidx_init(&idx, rank, at);
    return hn_lower_value(p->l, v, &idx, ok);
}

static hn_kv element_a(void *user, hn_kv g, hn_kv m, hn_kv k, hn_kv ok)
{
    product *p = user;
    return operand(p, p->a, g, p->ta ? k : m, p->ta ? m : k, ok);
}

static hn_kv element_b(void *user, hn_kv g, hn_kv k, hn_kv n, hn_kv ok)
{
    product *p = user;
    return operand(p, p->b, g, p->tb ? n : k, p->tb ? k : n, ok);
}

static void store(void *user, hn_kv g, hn_kv m, hn_kv n, hn_kv sum)
{
    product *p = user;
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    batch_at(p, g, at);
    at[p->y->type.rank - 2] = m;
    at[p->y->type.rank - 1] = n;
    hn_kidx_init(&idx, p->y->type.rank, at);
    hn_lower_seed(p->l, p->y, sum);
    hn_lower_store(p->l, &idx, HN_KV_NONE);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *prm, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "gemm_float_tile__cuda");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    product p = { .l = l, .a = hn_in(r->root, 0), .b = hn_in(r->root, 1), .y = r->root->out[0],
                  .ta = hn_attr_i(r->root, "trans_a"), .tb = hn_attr_i(r->root, "trans_b") };
    const int rank = p.y->type.rank;
    hn_tile tile = { .l = l, .m = p.y->type.dim[rank - 2], .n = p.y->type.dim[rank - 1], .k = depth_of(r),
                     .bm = (int)prm[0], .bn = (int)prm[1], .a_m_dense = p.ta, .b_k_dense = p.tb,
                     .user = &p, .a = element_a, .b = element_b, .store = store };
    tile.groups = hn_loops_extent(r, p.y, hn_loops_all(p.y) & ~(3u << (rank - 2)));
    hn_tile_emit(b, &tile, r->g->syms);
    return hn_lower_finish_whole(l, ret, dg);
}

const hn_tactic_def hn_tactic_gemm_float_tile__cuda = {
    .name = "gemm_float_tile__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits, .space = hn_tile_space, .legal = hn_tile_legal, .cost = cost, .emit = emit,
};
