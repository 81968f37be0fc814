/* What tactics that call libraries share. */
#include "tactic/lib/lib.h"

#include <math.h>
#include <string.h>

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

bool hn_lib_rows_of_channels(const hn_value *v)
{
    int64_t pixels = 1;
    for (int a = 2; a < v->type.rank; a++)
        pixels *= v->type.dim[a];
    if (hn_layout_is_plain(&v->layout)) return pixels == 1;
    if (v->layout.n != v->type.rank || v->layout.at[v->layout.n - 1].axis != 1) return false;
    for (int i = 0; i < v->layout.n - 1; i++)
        if (v->layout.at[i].block || v->layout.at[i].axis != (i ? i + 1 : 0)) return false;
    return v->layout.at[v->layout.n - 1].block == 0;
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

/* ---- gelu, which stands here as its expansion: y = x/2 * (1 + tanh(x * (c0 + c1 * x * x))), halves in between as f32 ---- */
/* v times, or plus, a constant near k, by its only reader; NULL: not that. */
static const hn_value *with_number(const hn_value *v, hn_op op, double k)
{
    const hn_node *n = v ? only_reader(v) : NULL;
    double got;
    if (!n || n->op != op || !hn_const_scalar(hn_in(n, hn_in(n, 0) == v), &got)) return NULL;
    return fabs(got - k) <= 1e-6 * k ? n->out[0] : NULL;
}

static const hn_value *cast_of(const hn_value *v, hn_dtype to)
{
    const hn_node *n = v && v->type.dtype != to ? only_reader(v) : NULL;
    if (v && v->type.dtype == to) return v;
    return n && n->op == HN_OP_cast && n->out[0]->type.dtype == to ? n->out[0] : NULL;
}

/* x squared, halved, and times something else: who else reads x, there is no gelu. */
typedef struct products {
    const hn_node *square, *half, *other;
} products;

static bool products_of(const hn_value *x, products *ret)
{
    enum { USES = 4 };
    double k;
    *ret = (products){ 0 };
    if (x->n_uses != USES) return false;
    HN_FOR_USES (u, x) {
        const hn_node *n = u->node;
        if (!n || n->op != HN_OP_mul) return false;
        const hn_value *with = hn_in(n, hn_in(n, 0) == x);
        if (with == x) ret->square = n;
        else if (hn_const_scalar(with, &k)) ret->half = n;
        else ret->other = n;
    }
    return ret->square && ret->half && ret->other;
}

/* What is gelu of v by the formula with tanh, the only one that libraries know; NULL: nothing is. */
static const hn_value *gelu_of(const hn_value *v)
{
    const double c0 = 0.79788456080286536, c1 = 0.044715 * c0;
    const hn_value *x = cast_of(v, HN_F32);
    products p;
    double half;
    if (!x || !products_of(x, &p)) return NULL;
    const hn_value *slope = with_number(with_number(p.square->out[0], HN_OP_mul, c1), HN_OP_add, c0);
    if (!slope || only_reader(slope) != p.other) return NULL;
    const hn_node *t = only_reader(p.other->out[0]);
    const hn_value *one_more = t && t->op == HN_OP_tanh ? with_number(t->out[0], HN_OP_add, 1) : NULL;
    const hn_node *y = one_more ? only_reader(one_more) : NULL;
    if (!y || y->op != HN_OP_mul || only_reader(p.half->out[0]) != y) return NULL;
    if (!hn_const_scalar(hn_in(p.half, hn_in(p.half, 0) == x), &half) || half != 0.5) return NULL;
    return cast_of(y->out[0], v->type.dtype);
}

/* What the library can make of v next, and what that is. */
static uint32_t activation(const hn_value *v, const hn_value **ret)
{
    const hn_node *n = only_reader(v);
    if (n && n->op == HN_OP_relu) return *ret = n->out[0], HN_CALL_RELU;
    *ret = gelu_of(v);
    return *ret ? HN_CALL_GELU : 0;
}

/* Sums of the library's are f32 until they are stored: a route that wants the model's own roundings gets no more of it. */
static uint32_t allowed(const hn_region *r, uint32_t can)
{
    if (!r->exact) return can;
    return can & (r->root->out[0]->type.dtype == HN_F32 ? HN_CALL_RELU | HN_CALL_BIAS | HN_CALL_ADD : HN_CALL_RELU);
}

/* ---- a chain of it ---- */
static bool fits_result(const hn_value *v, const hn_value *y)
{
    return v->type.dtype == y->type.dtype && hn_tdesc_same_dims(&v->type, &y->type);
}

void hn_lib_match(const hn_region *r, uint32_t can, int bias_axis, const hn_value *bias, hn_lib_fused *ret)
{
    const hn_value *y = r->root->out[0];
    *ret = (hn_lib_fused){ .flags = bias ? HN_CALL_BIAS : 0, .bias = bias ? hn_region_operand(r, bias) : -1, .addend = -1, .last = y };
    can = allowed(r, can);
    for (const hn_node *n = only_reader(y); n && n->op == HN_OP_add && fits_result(n->out[0], y); n = only_reader(ret->last)) {
        if (!take_add(r, n, can, bias_axis, ret)) break;
        ret->last = n->out[0];
    }
    const hn_value *active;
    const uint32_t act = activation(ret->last, &active) & can;
    if (act && fits_result(active, y)) {
        ret->last = active;
        ret->flags |= act;
    }
    ret->only = r->g->n_out == 1 && r->g->out[0].value == ret->last && ret->last->n_uses == 1;
    ret->whole = ret->only && hn_layout_eq(&ret->last->layout, &y->layout);
}

/* ---- the kernel for the rest ---- */
static int lanes_for(int64_t extent)
{
    return extent % 8 == 0 ? 8 : extent % 4 == 0 ? 4 : extent % 2 == 0 ? 2 : 1;
}

/* Elements that lie behind one another in the result, from place on: those past the end of their line stand behind a gap. */
static hn_kv load_across(hn_kb *b, int from, hn_kv place, hn_kv left, int64_t gap, int lanes)
{
    hn_kv part[8];
    for (int e = 0; e < lanes; e++) {
        const hn_kv at = hn_kb_addi(b, place, e), next = hn_kb_addi(b, place, e + gap);
        part[e] = hn_kb_load(b, from, hn_kb_select(b, hn_kb_lt(b, hn_kb_i(b, e), left), at, next), 1);
    }
    for (int n = lanes; n > 1; n /= 2)
        for (int e = 0; e < n / 2; e++) part[e] = hn_kb_concat(b, part[2 * e], part[2 * e + 1]);
    return part[0];
}

/* A trip reads a few neighbours along the densest axis, as the call stored them; where they are stored on as they are, neighbours
 * in the result, which may lie in two lines. */
static hone_status emit_rest(const hn_region *r, const hn_target *t, const hn_lib_fused *f, int temp, int64_t line, hn_emission *ret,
                             hn_diag *dg)
{
    hn_kb *b = hn_kb_new(ret->arena, "rest_any_lazy__lib");
    hn_lower *l = hn_lower_new(ret->arena, b, r, t);
    if (!b || !l) return HN_NOMEM(dg);
    const hn_value *y = r->root->out[0];
    const int64_t elems = hn_lib_elems(y);
    const bool across = line && f->only && hn_layout_is_plain(&f->last->layout);
    const int dense = hn_loops_dense_axis(y), lanes = lanes_for(across ? elems : y->type.dim[dense]);
    hn_kv at[HN_MAX_RANK];
    hn_kidx idx;
    const int from = hn_lower_temp(l, temp, y->type.dtype, false);
    const hn_kv trip = hn_kb_parallel(b, hn_kext_const(elems / lanes)), flat = hn_kb_muli(b, trip, lanes);
    const hn_kv extent = hn_kb_i(b, y->type.dim[dense]), row = hn_kb_idiv(b, flat, extent);
    at[dense] = hn_kb_imod(b, flat, extent);
    hn_loops_split(l, y, hn_loops_all(y) & ~(1u << dense), row, at);
    hn_kidx_init(&idx, y->type.rank, at);
    idx.aligned = lanes > 1;
    if (lanes > 1) hn_kidx_vector(&idx, dense, lanes);
    const hn_kv place = line ? hn_kb_add(b, hn_kb_muli(b, row, line), at[dense]) : flat, left = hn_kb_sub(b, extent, at[dense]);
    hn_lower_seed(l, f->last, across ? load_across(b, from, place, left, line - y->type.dim[dense], lanes) : hn_kb_load(b, from, place, lanes));
    hn_lower_store(l, &idx, HN_KV_NONE);
    hn_kb_end(b);
    const double bytes = (double)hn_dtype_bytes(y->type.dtype, elems);
    return hn_lower_finish(l, ret, (double)elems * r->g->n_node, 2 * bytes, dg);
}

bool hn_lib_temp(const hn_region *r, hn_emission *e, int64_t bytes, hn_ref *ret)
{
    *ret = (hn_ref){ HN_REF_TEMP, e->temp_bytes.n };
    return hn_vec_push(e->arena, &e->temp_bytes, hn_dim_const(r->g->syms, bytes));
}

hone_status hn_lib_emit(const hn_region *r, const hn_target *t, const hn_libcall *c, const hn_lib_fused *f, const hn_ref *operand,
                        int n_operand, int64_t line, hn_emission *ret, hn_diag *dg)
{
    const hn_value *y = r->root->out[0];
    const int64_t elems = hn_lib_elems(y), stored = line ? elems / y->type.dim[hn_loops_dense_axis(y)] * line : elems;
    hn_libcall *call = HN_NEW(ret->arena, hn_libcall);
    hn_ref *buf = HN_NEW_N(ret->arena, hn_ref, HN_CALL_MAX_BUF), result = { HN_REF_OUT, 0 };
    int n = 0;
    hn_work w;
    if (!call || !buf) return HN_NOMEM(dg);
    for (int i = 0; i < n_operand; i++) buf[n++] = operand[i];
    if (f->bias >= 0) buf[n++] = (hn_ref){ HN_REF_IN, f->bias };
    if (f->addend >= 0) buf[n++] = (hn_ref){ HN_REF_IN, f->addend };
    if (!f->whole && !hn_lib_temp(r, ret, hn_dtype_bytes(y->type.dtype, stored), &result)) return HN_NOMEM(dg);
    buf[n++] = result;
    if (!hn_lib_temp(r, ret, c->workspace_bytes + HN_CALL_WORKSPACE_ALIGN, &buf[n++])) return HN_NOMEM(dg);
    *call = *c;
    call->n_buf = (uint32_t)n;
    call->flags |= f->flags;
    hn_region_work(r, &w);
    const hn_kcall k = { .call = call, .buf = buf, .flops = w.flops, .bytes = w.bytes };
    if (!hn_vec_push(ret->arena, &ret->launches, k)) return HN_NOMEM(dg);
    return f->whole ? HONE_OK : emit_rest(r, t, f, result.index, line, ret, dg);
}

/* ---- products ---- */
enum { WORKSPACE = 32 << 20, PROPOSALS = 8 }; /* what NVIDIA recommends on Hopper; where most of the good ones are */

bool hn_lib_product_type(hn_dtype t)
{
    return t == HN_F16 || t == HN_BF16 || t == HN_F32;
}

hn_fit hn_lib_fit_tf32(const hn_region *r, hn_fit fit)
{
    return fit == HN_FIT_YES && r->root->out[0]->type.dtype != HN_F32 ? HN_FIT_DTYPE : fit;
}

static hn_lib_product product_of(const hn_region *r, const int64_t *p)
{
    const hn_lib_lines lines = (hn_lib_lines)p[HN_LIB_LINES];
    switch (r->root->op) {
    case HN_OP_conv: return hn_lib_conv_product(r, lines);
    case HN_OP_matmul_f8: return hn_lib_f8_product(r);
    default: return hn_lib_gemm_product(r, lines);
    }
}

void hn_lib_product_space(const hn_region *r, const hn_target *t, hn_space *ret)
{
    int64_t lines[3];
    int n = 0;
    (void)t;
    hn_space_add(ret, "algo", 0, PROPOSALS - 1, 1);
    if (product_of(r, (const int64_t[]){ 0, HN_LIB_LINES_IN_TURNS }).m.turns) lines[n++] = HN_LIB_LINES_IN_TURNS;
    if (product_of(r, (const int64_t[]){ 0, HN_LIB_LINES_FILLED }).fill_from) lines[n++] = HN_LIB_LINES_FILLED;
    lines[n++] = HN_LIB_LINES_AS_THEY_ARE;
    if (n > 1) hn_space_add_list(ret, "lines", n, lines);
}

/* ---- lines of whole 16 bytes ---- */
int64_t hn_lib_line_elems(const hn_region *r)
{
    return 16 * 8 / hn_dtype_bits(r->root->out[0]->type.dtype);
}

bool hn_lib_can_store(const hn_region *r, const hn_value *v)
{
    const int operand = hn_region_operand(r, v);
    return operand >= 0 && r->data && r->data[operand] && (v->type.rank == 2 || r->root->op == HN_OP_conv);
}

/* The library looks at how many columns there are, not only at where lines begin: so many are computed. */
bool hn_lib_fill_lines(const hn_region *r, hn_lib_product *c)
{
    const int64_t whole = hn_lib_line_elems(r);
    hn_libcall_matmul *m = &c->m;
    if (m->n % whole == 0 || m->n < whole || m->groups != 1 || !hn_lower_can(r, r->root)) return false; /* nothing to fill, or too little */
    if ((m->trans_a ? m->m : m->k) % whole || (m->trans_b && m->k % whole)) return false; /* other lines are no better */
    if (!hn_lib_can_store(r, hn_in(r->root, 1)) || (r->root->op == HN_OP_conv && hn_in(r->root, 2))) return false; /* its bias has n elements */
    c->fill_from = m->n;
    m->n = (m->n + whole - 1) / whole * whole;
    m->d_step = m->m * m->n;
    return true;
}

/* Columns of zeros: rows of them where the product takes b transposed. */
static void pack_filled(const hn_lib_product *c, size_t size, const uint8_t *src, uint8_t *dst)
{
    const int64_t lines = c->m.trans_b ? 1 : c->m.k, wide = c->m.trans_b ? c->m.k : 1;
    const size_t line = (size_t)(c->fill_from * wide) * size, filled = (size_t)(c->m.n * wide) * size;
    for (int64_t k = 0; k < lines; k++, dst += filled, src += line) {
        memcpy(dst, src, line);
        memset(dst + line, 0, filled - line);
    }
}

/* Squares of both, so that neither is walked through a column at a time. */
static void pack_exchanged(const hn_lib_product *c, size_t size, const uint8_t *src, uint8_t *dst)
{
    enum { SIDE = 32 };
    const size_t k = (size_t)c->m.k, n = (size_t)c->m.n;
    for (size_t k0 = 0; k0 < k; k0 += SIDE)
        for (size_t n0 = 0; n0 < n; n0 += SIDE)
            for (size_t j = n0; j < HN_MIN(n, n0 + SIDE); j++)
                for (size_t i = k0; i < HN_MIN(k, k0 + SIDE); i++) memcpy(dst + (j * k + i) * size, src + (i * n + j) * size, size);
}

/* The right operand as the call takes it. */
hone_status hn_lib_product_pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)i, (void)dg;
    const hn_lib_product c = product_of(r, p);
    const hn_value *b = hn_in(r->root, 1);
    (c.exchange ? pack_exchanged : pack_filled)(&c, (size_t)hn_dtype_bits(b->type.dtype) / 8, r->data[hn_region_operand(r, b)]->at, dst);
    return HONE_OK;
}

/* Turns are launches, and each fills the card with fewer tiles.
 * Matrix units: at half the dtype's rate over the f32 rate that targets state; tiles of 128 x 128 keep multiprocessors busy. Proposals
 * come best first: the next one is taken for a tenth slower, so that all of them do not crowd others out of a race. */
static double product_cost(const hn_region *r, const hn_target *t, const int64_t *p, double speed)
{
    enum { TILE = 128, ODD_LINES = 3 /* times as slow */ };
    const hn_lib_product c = product_of(r, p);
    const bool odd = c.m.n % hn_lib_line_elems(r) != 0 && !c.m.turns;
    const hn_value *y = r->root->out[0];
    const double launch = 1000.0 * t->n_core; /* of the kernel behind the call: what others do in theirs */
    const double tiles = ceil((double)(c.m.m / HN_MAX(c.m.turns, 1)) / TILE) * ceil((double)c.m.n / TILE) * (double)c.m.groups;
    const double rate = t->peak_gflops * speed * fmin(1, tiles / t->n_core);
    const double elems = (double)hn_dtype_bytes(y->type.dtype, hn_lib_elems(y));
    hn_work w;
    hn_region_work(r, &w);
    const double call = fmax((odd ? ODD_LINES : 1) * w.flops / rate, w.bytes / (t->bandwidth_gbs * 0.7));
    const double rest = c.f.whole ? (double)c.m.turns * launch : 2 * elems / (t->bandwidth_gbs * 0.7) + launch;
    return call * (1 + 0.1 * (double)p[HN_LIB_ALGO]) + rest;
}

static const double plain_speed = 0.8, tf32_speed = 5, half_speed = 10, f8_speed = 18; /* times the f32 rate */

double hn_lib_product_cost(const hn_region *r, const hn_target *t, const int64_t *p)
{
    const double speed = r->root->op == HN_OP_matmul_f8 ? f8_speed : r->root->out[0]->type.dtype == HN_F32 ? plain_speed : half_speed;
    return product_cost(r, t, p, speed);
}

double hn_lib_product_cost_tf32(const hn_region *r, const hn_target *t, const int64_t *p)
{
    return product_cost(r, t, p, tf32_speed);
}

static hone_status product_emit(const hn_region *r, const hn_target *t, const int64_t *p, uint32_t flags, hn_emission *ret, hn_diag *dg)
{
    const hn_lib_product c = product_of(r, p);
    const hn_value *b = hn_in(r->root, 1);
    const char *recipe = c.exchange ? "exchanged" : hn_arena_printf(ret->arena, "filled_%lld", (long long)c.m.n);
    hn_ref operand[] = { { HN_REF_IN, hn_region_operand(r, hn_in(r->root, 0)) }, { HN_REF_IN, hn_region_operand(r, b) } };
    const hn_blob stored = { .operand = operand[1].index, .recipe = recipe, .bytes = (size_t)hn_dtype_bytes(b->type.dtype, c.m.k * c.m.n) };
    if (c.fill_from || c.exchange) {
        if (!recipe || !hn_vec_push(ret->arena, &ret->blobs, stored)) return HN_NOMEM(dg);
        operand[1] = (hn_ref){ HN_REF_BLOB, 0 };
    }
    const hn_libcall call = { .kind = HN_CALL_MATMUL, .library = HN_LIB_CUBLASLT, .rank = (uint32_t)p[HN_LIB_ALGO],
                           .dtype = (uint32_t)r->root->out[0]->type.dtype, .flags = flags, .workspace_bytes = WORKSPACE, .u.matmul = c.m };
    return hn_lib_emit(r, t, &call, &c.f, operand, HN_COUNT(operand), c.fill_from ? c.m.n : 0, ret, dg);
}

hone_status hn_lib_product_emit(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    return product_emit(r, t, p, 0, ret, dg);
}

hone_status hn_lib_product_emit_tf32(const hn_region *r, const hn_target *t, const int64_t *p, hn_emission *ret, hn_diag *dg)
{
    return product_emit(r, t, p, HN_CALL_TF32, ret, dg);
}
