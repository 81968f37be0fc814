/* Matrix products on a GPU's matrix units: f16 and bf16 as the model has them, f32 as tf32 where the route allows, bytes by constant
 * bytes. Operands whose
 * rows are whole chunks are copied as they lie, transposed or not; others, and what is fused before, are computed a chunk at a
 * time. Constant right operands whose rows are not are stored [n][k] when building, rows filled up with zeros. */
#include "tactic/cpu/loops.h"
#include "tactic/cuda/mma_bytes.h"

enum { MAX_SLOT = 16, A = 0, B = 1 };

typedef struct product product;

/* One operand: which axis of it are rows (m or n) and which k. */
typedef struct factor {
    product *of;
    const hn_value *v;
    int row_axis, k_axis;
    bool check_k;
    hn_kv base[MAX_SLOT], inside[MAX_SLOT];
} factor;

struct product {
    hn_lower *l;
    const hn_region *r;
    const hn_value *y;
    hn_dtype type;
    factor f[2];
    hn_mma_rows rows; /* the right operand's, where they are stored anew */
    hn_mma_bytes bytes;
};

static bool of_bytes(const hn_region *r)
{
    return r->root->op == HN_OP_matmul_int;
}

static hn_dtype type_of(const hn_region *r)
{
    const hn_dtype t = hn_in(r->root, A)->type.dtype;
    return of_bytes(r) || hn_in(r->root, B)->type.dtype == t ? t : HN_NONE;
}

static hn_fit fits(const hn_region *r, hn_dtype one, hn_dtype other)
{
    if (r->root->op != HN_OP_matmul) return HN_FIT_OP;
    const hn_dtype t = type_of(r);
    if ((t != one && t != other) || hn_lower_compute_type(r->root->out[0]->type.dtype) != HN_F32 || !hn_lower_can(r, r->root))
        return HN_FIT_DTYPE;
    return hn_in(r->root, A)->type.rank < 2 || hn_in(r->root, B)->type.rank < 2 ? HN_FIT_SHAPE : HN_FIT_YES;
}

static hn_fit fits_half(const hn_region *r, const hn_target *t)
{
    (void)t;
    return fits(r, HN_F16, HN_BF16);
}

static hn_fit fits_tf32(const hn_region *r, const hn_target *t)
{
    (void)t;
    return fits(r, HN_F32, HN_F32);
}

static void axes_of(const hn_region *r, int which, int *row, int *k)
{
    const int rank = hn_in(r->root, which)->type.rank;
    const bool turned = !of_bytes(r) && hn_attr_i(r->root, which == A ? "trans_a" : "trans_b");
    const bool k_last = which == A ? !turned : turned;
    *row = rank - (k_last ? 2 : 1);
    *k = rank - (k_last ? 1 : 2);
}

/* Chunks can be copied: the densest axis is whole chunks of what is multiplied. Only elements of 16 bits turn over on the way. */
static bool is_copied(const hn_region *r, int which)
{
    const hn_value *v = hn_in(r->root, which);
    const hn_dtype type = type_of(r);
    int row, k;
    axes_of(r, which, &row, &k);
    const int dense = hn_loops_dense_axis(v);
    if (hn_region_operand(r, v) < 0 || !hn_loops_unblocked(v) || (dense != row && dense != k)) return false;
    if (dense == row && hn_dtype_bits(type) != 16) return false;
    return hn_dim_is_const(v->type.dim[dense]) && v->type.dim[dense] % hn_mma_elems(type) == 0;
}

/* Stored anew when building. */
static bool is_packed(const hn_region *r, int which)
{
    const hn_value *v = hn_in(r->root, which);
    const int operand = hn_region_operand(r, v);
    return which == B && !is_copied(r, B) && operand >= 0 && r->data[operand] && v->type.rank == 2 && hn_layout_is_plain(&v->layout) &&
           hn_tdesc_is_static(&v->type);
}

/* Elements of a packed row. */
static int64_t packed_row(const hn_region *r)
{
    int row, k;
    axes_of(r, B, &row, &k);
    return hn_mma_row_elems(type_of(r), hn_in(r->root, B)->type.dim[k]);
}

static hn_fit bytes_of(const hn_region *r, hn_mma_bytes *ret)
{
    if (!of_bytes(r)) return HN_FIT_OP;
    const hn_value *a = hn_in(r->root, A), *b = hn_in(r->root, B);
    if (a->type.rank < 2 || b->type.rank != 2) return HN_FIT_SHAPE;
    const hn_fit fit = hn_mma_bytes_fit(r, b->type.dim[1], 1, ret);
    ret->depth = b->type.dim[0];
    return fit == HN_FIT_YES && (b->type.dim[0] <= 0 || b->type.dim[1] <= 0) ? HN_FIT_SHAPE : fit;
}

static hn_fit fits_bytes(const hn_region *r, const hn_target *t)
{
    hn_mma_bytes q;
    (void)t;
    return bytes_of(r, &q);
}

void hn_mma_gemm_size(const hn_region *r, hn_mma_size *ret)
{
    const hn_value *y = r->root->out[0];
    const int rank = y->type.rank;
    int row, k;
    hn_work w;
    hn_region_work(r, &w);
    axes_of(r, A, &row, &k);
    *ret = (hn_mma_size){ .type = type_of(r), .groups = 1, .m = (double)hn_region_opt(r, y->type.dim[rank - 2]),
                          .n = (double)hn_region_opt(r, y->type.dim[rank - 1]), .bytes = w.bytes,
                          .k = (double)hn_region_opt(r, hn_in(r->root, A)->type.dim[k]),
                          .computed = { !is_copied(r, A), !is_copied(r, B) && !is_packed(r, B) } };
    for (int i = 0; i < rank - 2; i++) ret->groups *= (double)hn_region_opt(r, y->type.dim[i]);
    hn_mma_bytes q;
    ret->row_sums = bytes_of(r, &q) == HN_FIT_YES && q.q.row_sums;
}

/* ---- operands ---- */
/* Batch axes of the result that group g names. */
static void batch_at(const product *p, hn_lower *l, hn_kv g, hn_kv *at)
{
    const uint32_t axes = hn_loops_all(p->y) & ~(3u << (p->y->type.rank - 2));
    if (axes) hn_loops_split(l, p->y, axes, g, at);
}

static void at_row(const factor *f, hn_kv g, hn_kv row, hn_kv k, hn_kv *at)
{
    const product *p = f->of;
    const int rank = f->v->type.rank, shift = p->y->type.rank - rank;
    hn_kv batch[HN_MAX_RANK];
    batch_at(p, p->l, g, batch);
    for (int i = 0; i < rank - 2; i++) at[i] = hn_lower_stretch(p->l, batch[i + shift], f->v->type.dim[i], p->y->type.dim[i + shift]);
    at[f->row_axis] = row;
    at[f->k_axis] = k;
}

static void begin(void *user, int slot, hn_kv g, hn_kv row)
{
    factor *f = user;
    hn_kb *b = hn_lower_kb(f->of->l);
    hn_kv at[HN_MAX_RANK];
    at_row(f, g, row, hn_kb_i(b, 0), at);
    f->base[slot] = hn_loops_place(f->of->l, f->v, at);
    f->inside[slot] = hn_kb_lt(b, row, hn_lower_dim(f->of->l, f->v->type.dim[f->row_axis]));
}

static hn_kv place(void *user, int slot, hn_kv k, hn_kv *ok)
{
    factor *f = user;
    hn_lower *l = f->of->l;
    hn_kb *b = hn_lower_kb(l);
    *ok = f->inside[slot];
    if (f->check_k) *ok = hn_kb_and(b, *ok, hn_kb_lt(b, k, hn_lower_dim(l, f->v->type.dim[f->k_axis])));
    return hn_kb_add(b, f->base[slot], hn_kb_mul(b, k, hn_loops_stride(l, f->v, f->k_axis)));
}

/* Element (n, k) of a right operand stored [n][k], and [k][n]. */
static int64_t lying_at(const void *user, int64_t n, int64_t k)
{
    const hn_value *v = user;
    return n * v->type.dim[1] + k;
}

static int64_t standing_at(const void *user, int64_t n, int64_t k)
{
    const hn_value *v = user;
    return k * v->type.dim[1] + n;
}

static hone_status pack(const hn_region *r, const hn_target *t, const int64_t *p, int i, void *dst, hn_diag *dg)
{
    (void)t, (void)p, (void)dg;
    int row_axis, k_axis;
    axes_of(r, B, &row_axis, &k_axis);
    const hn_value *v = hn_in(r->root, B);
    const hn_mma_source from = { .data = r->data[hn_region_operand(r, v)], .type = v->type.dtype, .rows = v->type.dim[row_axis],
                                 .depth = v->type.dim[k_axis], .user = v, .at = k_axis ? lying_at : standing_at };
    hn_mma_bytes q;
    if (bytes_of(r, &q) == HN_FIT_YES) hn_mma_bytes_pack(r, &q, &from, i, dst);
    else hn_mma_store_rows(&from, dst);
    return HONE_OK;
}

static hn_kv chunk(void *user, hn_kv g, hn_kv row, hn_kv k, int elems, hn_kv ok)
{
    factor *f = user;
    hn_kv at[HN_MAX_RANK];
    at_row(f, g, row, k, at);
    return hn_mma_read_chunk(f->of->l, f->v, at, f->k_axis, elems, ok);
}

static hn_mma_operand operand(product *p, int which)
{
    enum { MOST_STEP = 128 }; /* bytes of k: where it divides, no chunk lies past the end */
    factor *f = &p->f[which];
    *f = (factor){ .of = p, .v = hn_in(p->r->root, which) };
    axes_of(p->r, which, &f->row_axis, &f->k_axis);
    const hn_dim k = f->v->type.dim[f->k_axis];
    f->check_k = !hn_dim_is_const(k) || k * hn_dtype_bits(p->type) / 8 % MOST_STEP;
    if (is_packed(p->r, which)) {
        p->rows = (hn_mma_rows){ .l = p->l, .rows = f->v->type.dim[f->row_axis], .stride = packed_row(p->r) };
        return hn_mma_stored_rows(&p->rows, hn_lower_blob(p->l, HN_MMA_BLOB_ROWS, f->v->type.dtype == HN_U8 ? HN_I8 : f->v->type.dtype));
    }
    const int dense = hn_loops_dense_axis(f->v), number = hn_region_operand(p->r, f->v);
    return (hn_mma_operand){ .user = f, .buf = is_copied(p->r, which) ? hn_lower_in(p->l, number) : -1,
                             .constant = number >= 0 && p->r->data[number], .turned = dense == f->row_axis, .row_fast = dense == f->row_axis,
                             .begin = begin, .place = place, .chunk = chunk };
}

static void index_y(void *user, hn_lower *l, hn_kv g, hn_kv m, hn_kv n, hn_kv *at)
{
    const product *p = user;
    batch_at(p, l, g, at);
    at[p->y->type.rank - 2] = m;
    at[p->y->type.rank - 1] = n;
}

static void start(void *user, hn_lower *l, int which, hn_mma *d)
{
    product *p = user;
    const int rank = p->y->type.rank;
    p->l = l;
    d->type = p->type;
    if (of_bytes(p->r)) {
        d->bytes = &p->bytes;
        hn_mma_bytes_start(d->bytes, l);
    }
    d->y = p->y;
    d->groups = hn_loops_extent(p->r, p->y, hn_loops_all(p->y) & ~(3u << (rank - 2)));
    d->m = p->y->type.dim[rank - 2];
    d->n = p->y->type.dim[rank - 1];
    int row, k;
    axes_of(p->r, A, &row, &k);
    d->k = hn_in(p->r->root, A)->type.dim[k];
    d->n_axis = rank - 1;
    d->user = p;
    d->index = index_y;
    if (which) return;
    d->a = operand(p, A);
    d->b = operand(p, B);
}

static hone_status emit(const hn_region *r, const hn_target *t, const int64_t *prm, hn_emission *ret, hn_diag *dg)
{
    product p = { .r = r, .y = r->root->out[0], .type = type_of(r) };
    const bool bytes = bytes_of(r, &p.bytes) == HN_FIT_YES;
    const hn_mma_maker how = { .user = &p, .start = start,
                               .name = bytes ? "gemm_int8_mma__cuda" : p.type == HN_F32 ? "gemm_tf32_mma__cuda" : "gemm_half_mma__cuda" };
    if (is_packed(r, B)) {
        int row, k;
        axes_of(r, B, &row, &k);
        const hn_value *v = hn_in(r->root, B);
        HN_TRY(hn_mma_add_rows(ret, hn_region_operand(r, v), k ? "gemm_mma" : v->type.dtype == HN_U8 ? "gemm_mma_turned_u8" : "gemm_mma_turned",
                               p.type, v->type.dim[row], packed_row(r), dg));
    }
    if (bytes) HN_TRY(hn_mma_bytes_add(r, &p.bytes, ret, "gemm_mma", dg));
    return hn_mma_emit(&how, r, t, prm, ret, dg);
}

const hn_tactic_def hn_tactic_gemm_half_mma__cuda = {
    .name = "gemm_half_mma__cuda", .rev = 5, .arch = HN_ARCH_SM,
    .fits = fits_half, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_matrix_units,
};

const hn_tactic_def hn_tactic_gemm_tf32_mma__cuda = {
    .name = "gemm_tf32_mma__cuda", .rev = 5, .arch = HN_ARCH_SM,
    .fits = fits_tf32, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .changes_numbers = true, .source = HN_KNOB_math_tf32, .source_too = HN_KNOB_tactic_matrix_units,
};

const hn_tactic_def hn_tactic_gemm_int8_mma__cuda = {
    .name = "gemm_int8_mma__cuda", .rev = 1, .arch = HN_ARCH_SM,
    .fits = fits_bytes, .space = hn_mma_space, .legal = hn_mma_legal, .cost = hn_mma_cost, .emit = emit, .pack = pack,
    .source = HN_KNOB_tactic_matrix_units,
};
