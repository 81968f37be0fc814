/* What tactics that call libraries share. */
#include "tactic/lib/lib.h"

#include <math.h>

#include "tactic/cpu/loops.h"

bool hn_lib_is_fixed(const hn_value *v)
{
    for (int a = 0; a < v->type.rank; a++)
        if (!hn_dim_is_const(v->type.dim[a]) || v->type.dim[a] < 1) return false;
    return true;
}

int64_t hn_lib_elems(const hn_value *v)
{
    int64_t n = 1;
    for (int a = 0; a < v->type.rank; a++)
        n *= v->type.dim[a];
    return n;
}

/* ---- what the library does itself ---- */
/* The only node that reads v; NULL where there are others, or v is a result. */
static hn_node *only_reader(const hn_value *v)
{
    return v->n_uses == 1 ? v->uses->node : NULL;
}

/* A vector along one axis of y. */
static bool is_bias(const hn_value *v, const hn_value *y, int axis)
{
    const int shift = y->type.rank - v->type.rank;
    if (shift < 0 || v->type.rank < 1 || v->type.dtype != y->type.dtype || !hn_layout_is_plain(&v->layout)) return false;
    for (int a = 0; a < v->type.rank; a++)
        if (v->type.dim[a] != (a + shift == axis ? y->type.dim[axis] : 1)) return false;
    return axis >= shift;
}

static bool is_addend(const hn_value *v, const hn_value *y)
{
    return v->type.dtype == y->type.dtype && hn_tdesc_same_dims(&v->type, &y->type) && hn_layout_eq(&v->layout, &y->layout);
}

static bool take_add(const hn_region *r, const hn_node *n, uint32_t can, int axis, hn_lib_fused *f)
{
    const int side = hn_in(n, 0) == f->last;
    const hn_value *v = hn_in(n, side), *y = r->root->out[0];
    const int operand = hn_region_operand(r, v);
    if (operand < 0) return false;
    if ((can & HN_CALL_BIAS) && !(f->flags & (HN_CALL_BIAS | HN_CALL_ADD)) && is_bias(v, y, axis)) {
        f->flags |= HN_CALL_BIAS;
        f->bias = operand;
        return true;
    }
    if (!(can & HN_CALL_ADD) || (f->flags & HN_CALL_ADD) || !is_addend(v, y)) return false;
    f->flags |= HN_CALL_ADD;
    f->addend = operand;
    return true;
}

void hn_lib_match(const hn_region *r, uint32_t can, int bias_axis, const hn_value *bias, hn_lib_fused *ret)
{
    const hn_value *y = r->root->out[0];
    *ret = (hn_lib_fused){ .flags = bias ? HN_CALL_BIAS : 0, .bias = bias ? hn_region_operand(r, bias) : -1, .addend = -1, .last = y };
    for (const hn_node *n = only_reader(y); n; n = only_reader(ret->last)) {
        if (n->out[0]->type.dtype != y->type.dtype || !hn_tdesc_same_dims(&n->out[0]->type, &y->type)) break;
        const uint32_t act = n->op == HN_OP_relu ? HN_CALL_RELU & can : 0;
        if (!act && !(n->op == HN_OP_add && take_add(r, n, can, bias_axis, ret))) break;
        ret->last = n->out[0];
        ret->flags |= act;
        if (act) break;
    }
    ret->only = r->g->n_out == 1 && r->g->out[0].value == ret->last && ret->last->n_uses == 1;
    ret->whole = ret->only && hn_layout_eq(&ret->last->layout, &y->layout);
}

/* ---- the kernel for the rest ---- */
static int lanes_for(int64_t extent)
{
    return extent % 8 == 0 ? 8 : extent % 4 == 0 ? 4 : extent % 2 == 0 ? 2 : 1;
}

/* A trip reads a few neighbours along the densest axis, as the call stored them. */
static hone_status emit_rest(const hn_region *r, const hn_target *t, const hn_value *last, int temp, hn_emission *ret, hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "rest_any_lazy__lib");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *y = r->root->out[0];
    const int dense = hn_loops_dense_axis(y), lanes = lanes_for(y->type.dim[dense]);
    const int64_t elems = hn_lib_elems(y);
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    const int from = hn_lower_temp(l, temp, y->type.dtype, false);
    const hn_kv trip = hn_kb_parallel(b, hn_kext_const(elems / lanes)), flat = hn_kb_muli(b, trip, lanes);
    const hn_kv line = hn_kb_i(b, y->type.dim[dense]);
    at[dense] = hn_kb_imod(b, flat, line);
    hn_loops_split(l, y, hn_loops_all(y) & ~(1u << dense), hn_kb_idiv(b, flat, line), at);
    hn_kidx_init(&idx, y->type.rank, at);
    idx.aligned = lanes > 1;
    if (lanes > 1) hn_kidx_vector(&idx, dense, lanes);
    hn_lower_seed(l, last, hn_kb_load(b, from, flat, lanes));
    hn_lower_store(l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    const double bytes = (double)hn_dtype_bytes(y->type.dtype, elems);
    return hn_lower_finish(l, ret, (double)elems * r->g->n_node, 2 * bytes, dg);
}

static bool add_temp(const hn_region *r, hn_emission *e, int64_t bytes, hn_ref *ret)
{
    *ret = (hn_ref){ HN_REF_TEMP, e->temp_bytes.n };
    return hn_vec_push(e->arena, &e->temp_bytes, hn_dim_const(r->g->syms, bytes));
}

hone_status hn_lib_emit(const hn_region *r, const hn_target *t, const hn_libcall *c, const hn_lib_fused *f, const hn_ref *operand,
                        int n_operand, hn_emission *ret, hn_diag *dg)
{
    const hn_value *y = r->root->out[0];
    hn_libcall *call = HN_NEW(ret->arena, hn_libcall);
    hn_ref *buf = HN_NEW_N(ret->arena, hn_ref, HN_CALL_MAX_BUF), result = { HN_REF_OUT, 0 };
    int n = 0;
    hn_work w;
    if (!call || !buf) return HN_NOMEM(dg);
    for (int i = 0; i < n_operand; i++) buf[n++] = operand[i];
    if (f->bias >= 0) buf[n++] = (hn_ref){ HN_REF_IN, f->bias };
    if (f->addend >= 0) buf[n++] = (hn_ref){ HN_REF_IN, f->addend };
    if (!f->whole && !add_temp(r, ret, hn_dtype_bytes(y->type.dtype, hn_lib_elems(y)), &result)) return HN_NOMEM(dg);
    buf[n++] = result;
    if (!add_temp(r, ret, c->workspace_bytes + HN_CALL_WORKSPACE_ALIGN, &buf[n++])) return HN_NOMEM(dg);
    *call = *c;
    call->n_buf = (uint32_t)n;
    call->flags |= f->flags;
    hn_region_work(r, &w);
    const hn_kcall k = { .call = call, .buf = buf, .flops = w.flops, .bytes = w.bytes };
    if (!hn_vec_push(ret->arena, &ret->launches, k)) return HN_NOMEM(dg);
    return f->whole ? HONE_OK : emit_rest(r, t, f->last, result.index, ret, dg);
}

/* ---- products ---- */
enum { WORKSPACE = 32 << 20, PROPOSALS = 8 }; /* what NVIDIA recommends on Hopper; where most of the good ones are */

bool hn_lib_product_type(hn_dtype t)
{
    return t == HN_F16 || t == HN_BF16 || t == HN_F32;
}

void hn_lib_product_space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    (void)r, (void)t;
    hn_space_add(ret, "algo", 0, PROPOSALS - 1, 1);
}

static hn_lib_product product_of(const hn_region *r)
{
    return r->root->op == HN_OP_conv ? hn_lib_conv_product(r) : hn_lib_gemm_product(r);
}

/* Matrix units: at half the dtype's rate over the f32 rate that targets state; tiles of 128 x 128 keep multiprocessors busy. Proposals
 * come best first: the next one is taken for a tenth slower, so that all of them do not crowd others out of a race. */
double hn_lib_product_cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    enum { HALF_SPEED = 10, TILE = 128 };
    const hn_lib_product c = product_of(r);
    const hn_value *y = r->root->out[0];
    const double launch = 1000.0 * t->n_core; /* of the kernel behind the call: what others do in theirs */
    const double tiles = ceil((double)c.m.m / TILE) * ceil((double)c.m.n / TILE) * (double)c.m.groups;
    const double rate = t->peak_gflops * (y->type.dtype == HN_F32 ? 0.8 : HALF_SPEED) * fmin(1, tiles / t->n_core);
    const double elems = (double)hn_dtype_bytes(y->type.dtype, hn_lib_elems(y));
    hn_work w;
    hn_region_work(r, &w);
    const double call = fmax(w.flops / rate, w.bytes / (t->bandwidth_gbs * 0.7));
    const double rest = c.f.whole ? 0 : 2 * elems / (t->bandwidth_gbs * 0.7) + launch;
    return call * (1 + 0.1 * (double)p[0]) + rest;
}

hone_status hn_lib_product_emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    const hn_lib_product c = product_of(r);
    const hn_ref operand[] = { { HN_REF_IN, hn_region_operand(r, hn_in(r->root, 0)) },
                               { HN_REF_IN, hn_region_operand(r, hn_in(r->root, 1)) } };
    const hn_libcall call = { .kind = HN_CALL_MATMUL, .library = HN_LIB_CUBLASLT, .rank = (uint32_t)p[0],
                           .dtype = (uint32_t)r->root->out[0]->type.dtype, .workspace_bytes = WORKSPACE, .u.matmul = c.m };
    return hn_lib_emit(r, t, &call, &c.f, operand, HN_COUNT(operand), ret, dg);
}
