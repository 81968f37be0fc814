/* Lazy lowering: the walk from a value at an index to kernel IR; loads, stores, arguments, memory of subexpressions. */
#include "tactic/lower_int.h"

#include <string.h>

hn_dtype hn_lower_compute_type(hn_dtype t)
{
    if (t == HN_F16 || t == HN_BF16) return HN_F32;
    if (!hn_small_is(t)) return t;
    return hn_dtype_is_float(t) ? HN_F32 : hn_dtype_is_signed(t) ? HN_I8 : HN_U8;
}

static hn_dtype storage_type(hn_dtype t)
{
    return hn_small_is(t) ? HN_U8 : t;
}

bool hn_lower_dtype_ok(hn_dtype t)
{
    switch (t) {
    case HN_F32: case HN_F64: case HN_F16: case HN_BF16: case HN_BOOL:
    case HN_I8: case HN_I16: case HN_I32: case HN_I64:
    case HN_U8: case HN_U16: case HN_U32: case HN_U64:
        return true;
    default:
        return hn_small_is(t) && !hn_small_is_packed(t);
    }
}

/* Packed elements are read anywhere, but written only by the pointwise tactic, which keeps bytes whole. */
static bool readable(hn_dtype t)
{
    return hn_lower_dtype_ok(t) || hn_small_is(t);
}

int hn_lower_lanes(const hn_target *t, hn_dtype dtype)
{
    const int bytes = hn_dtype_bits(hn_lower_compute_type(dtype)) / 8;
    /* a GPU's lanes are registers of their own, but memory moves in whole vectors */
    if (t->arch == HN_ARCH_SM && hn_dtype_bits(dtype) == 16) return t->vec_bytes / 2;
    const int lanes = t->vec_bytes / HN_MAX(bytes, 4);
    return HN_MAX(lanes, 1);
}

void hn_kidx_init(hn_kidx *i, int rank, const hn_kv *at)
{
    memset(i, 0, sizeof *i);
    i->rank = rank;
    i->lanes = 1;
    for (int a = 0; a < HN_MAX_RANK; a++) {
        i->at[a] = a < rank ? at[a] : HN_KV_NONE;
        i->vec[a] = i->outer[a] = i->inner[a] = HN_KV_NONE;
    }
}

void hn_kidx_vector(hn_kidx *i, int axis, int lanes)
{
    i->lanes = lanes;
    i->step[axis] = lanes > 1;
}

bool hn_kidx_uniform(const hn_kidx *idx, int a)
{
    return !hn_kv_is(idx->vec[a]) && idx->step[a] == 0;
}

void hn_kidx_set(hn_kidx *idx, int a, hn_kv x, int64_t step, bool is_vec)
{
    idx->at[a] = is_vec ? HN_KV_NONE : x;
    idx->vec[a] = is_vec ? x : HN_KV_NONE;
    idx->step[a] = is_vec ? 0 : step;
    idx->block[a] = 0;
    idx->outer[a] = idx->inner[a] = HN_KV_NONE;
}

hn_kv hn_kidx_axis(hn_lower *l, const hn_kidx *idx, int a)
{
    if (hn_kv_is(idx->vec[a])) return idx->vec[a];
    if (idx->lanes == 1) return idx->at[a];
    if (idx->step[a] == 0) return hn_kb_splat(l->b, idx->at[a], idx->lanes);
    return hn_kb_ramp(l->b, idx->at[a], idx->step[a], idx->lanes);
}

/* ---- creation, parameters ---- */
static hn_kv declare_dim(hn_lower *l, hn_dim d)
{
    int64_t lo, hi;
    hn_str name = { 0 };
    hn_dim_bounds(l->r->g->syms, d, &lo, &hi);
    hn_dim_print(l->r->g->syms, d, &name);
    const hn_kv v = hn_kb_arg(l->b, hn_str_get(&name), lo, hi, 1);
    hn_str_done(&name);
    hn_vec_push(l->a, &l->args, d);
    hn_vec_push(l->a, &l->dims, ((hn_dim_arg){ d, v }));
    return v;
}

hn_kv hn_lower_dim(hn_lower *l, hn_dim d)
{
    int64_t known;
    if (hn_dim_known(l->r->g->syms, d, &known)) return hn_kb_i(l->b, known);
    for (int i = 0; i < l->dims.n; i++)
        if (l->dims.at[i].dim == d) return l->dims.at[i].value;
    return declare_dim(l, d);
}

/* Arguments must stand at the top of the program to be seen everywhere: declare every dim the region mentions. */
static void declare_attr_dims(hn_lower *l, const hn_node *n)
{
    const hn_op_def *op = hn_op_of(n);
    for (int i = 0; i < op->n_attr; i++) {
        const hn_attr *at = &n->attr[i];
        if (!at->set) continue;
        if (op->attrs[i].kind == HN_ATTR_DIM) hn_lower_dim(l, at->i);
        if (op->attrs[i].kind == HN_ATTR_DIMS)
            for (int k = 0; k < at->n; k++) hn_lower_dim(l, at->is[k]);
    }
}

static void declare_dims(hn_lower *l, const hn_value *v)
{
    for (int a = 0; v && a < v->type.rank; a++) hn_lower_dim(l, v->type.dim[a]);
}

hn_lower *hn_lower_new(hn_arena *a, hn_kb *b, const hn_region *r, const hn_target *t)
{
    hn_lower *l = HN_NEW(a, hn_lower);
    if (!l) return NULL;
    *l = (hn_lower){ .a = a, .b = b, .r = r, .t = t, .fault_buf = -1 };
    l->in_buf = HN_NEW_N(a, int, r->g->n_in + 1);
    l->out_buf = HN_NEW_N(a, int, r->g->n_out + 1);
    if (!l->in_buf || !l->out_buf) return NULL;
    for (int i = 0; i < r->g->n_in; i++) {
        l->in_buf[i] = -1;
        declare_dims(l, r->g->in[i]);
    }
    for (int i = 0; i < r->g->n_out; i++) l->out_buf[i] = -1;
    HN_FOR_NODES (n, r->g) {
        declare_attr_dims(l, n);
        /* What a data-dependent op counts while running is no argument of its kernel. */
        if (hn_op_of(n)->traits & HN_TRAIT_DYNAMIC) continue;
        for (int i = 0; i < n->n_out; i++) declare_dims(l, n->out[i]);
    }
    return l;
}

hn_kb *hn_lower_kb(hn_lower *l)
{
    return l->b;
}

/* Planner buffers are 64-byte aligned, but an operand may be a caller's buffer: on a CPU no alignment is promised. */
static int declare_buf(hn_lower *l, hn_ref ref, const char *name, hn_dtype t, bool write)
{
    const int buf = write ? hn_kb_out(l->b, name, t) : hn_kb_in(l->b, name, t);
    hn_vec_push(l->a, &l->params, ref);
    return buf;
}

int hn_lower_in(hn_lower *l, int operand)
{
    if (l->in_buf[operand] < 0) {
        const hn_value *v = l->r->g->in[operand];
        l->in_buf[operand] = declare_buf(l, (hn_ref){ HN_REF_IN, operand }, hn_arena_printf(l->a, "in%d", operand),
                                         storage_type(v->type.dtype), false);
        hn_kb_alias(l->b, l->in_buf[operand]);
    }
    return l->in_buf[operand];
}

int hn_lower_out(hn_lower *l, int result)
{
    if (l->out_buf[result] < 0) {
        const hn_value *v = l->r->g->out[result].value;
        l->out_buf[result] = declare_buf(l, (hn_ref){ HN_REF_OUT, result }, hn_arena_printf(l->a, "out%d", result),
                                         storage_type(v->type.dtype), true);
        hn_kb_alias(l->b, l->out_buf[result]);
    }
    return l->out_buf[result];
}

int hn_lower_temp(hn_lower *l, int temp, hn_dtype t, bool write)
{
    return declare_buf(l, (hn_ref){ HN_REF_TEMP, temp }, hn_arena_printf(l->a, "temp%d", temp), t, write);
}

int hn_lower_blob(hn_lower *l, int blob, hn_dtype t)
{
    return declare_buf(l, (hn_ref){ HN_REF_BLOB, blob }, hn_arena_printf(l->a, "blob%d", blob), t, false);
}

/* ---- faults ---- */
static int fault_site(hn_lower *l, const hn_node *node, int axis)
{
    for (int i = 0; i < l->faults.n; i++)
        if (l->faults.at[i].node == node && l->faults.at[i].axis == axis) return HN_MIN(i, HN_FAULT_SITES - 1);
    hn_vec_push(l->a, &l->faults, ((hn_fault_site){ node, axis }));
    return HN_MIN(l->faults.n, HN_FAULT_SITES) - 1;
}

/* Threads may meet here: each stores a pair that is true by itself, of one extent. */
void hn_lower_check(hn_lower *l, const hn_node *node, int axis, hn_kv i, hn_kv good, hn_kv extent)
{
    hn_kb *b = l->b;
    const int lanes = hn_kb_lanes(b, good);
    int64_t known;
    if (hn_kb_is_const(b, good, &known) && known) return;
    if (l->fault_buf < 0) l->fault_buf = declare_buf(l, (hn_ref){ HN_REF_FAULT, 0 }, "fault", HN_I64, true);
    const int at = 2 * fault_site(l, node, axis);
    hn_kb_if(b, hn_kb_not(b, lanes > 1 ? hn_kb_un(b, HN_KOP_RAND, good) : good));
    if (lanes > 1) i = hn_kb_un(b, HN_KOP_RMAX, hn_kb_select(b, good, hn_kb_int(b, HN_I64, lanes, INT64_MIN), i));
    hn_kb_store(b, l->fault_buf, hn_kb_i(b, at + 1), i);
    hn_kb_store(b, l->fault_buf, hn_kb_i(b, at), hn_kb_addi(b, extent, 1));
    hn_kb_end(b);
}

hone_status hn_lower_finish(hn_lower *l, hn_emission *e, double flops, double bytes, hn_diag *dg)
{
    hn_kcall launch = { .flops = flops, .bytes = bytes, .buf = l->params.at, .arg = l->args.at };
    HN_TRY(hn_kb_finish(l->b, &launch.func, dg));
    if (!hn_vec_push(e->arena, &e->launches, launch) || hn_arena_oom(l->a)) return HN_NOMEM(dg);
    return HONE_OK;
}

hone_status hn_lower_finish_whole(hn_lower *l, hn_emission *e, hn_diag *dg)
{
    hn_work w;
    hn_region_work(l->r, &w);
    return hn_lower_finish(l, e, w.flops, w.bytes, dg);
}

/* ---- places in storage ---- */
/* Row-major order written out, so that every layout is walked the same way. */
static hn_layout layout_of(const hn_value *v)
{
    hn_layout l = v->layout;
    if (l.n) return l;
    l.n = v->type.rank;
    for (int i = 0; i < l.n; i++) {
        l.at[i].axis = (int8_t)i;
        l.at[i].block = 0;
    }
    return l;
}

void hn_lower_strides(hn_lower *l, const hn_value *v, hn_kv *ret)
{
    const hn_layout lay = layout_of(v);
    hn_kv s = hn_kb_i(l->b, 1);
    for (int i = lay.n - 1; i >= 0; i--) {
        ret[i] = s;
        const int axis = lay.at[i].axis, block = hn_layout_block_of(&lay, axis);
        hn_kv extent;
        if (lay.at[i].block) extent = hn_kb_i(l->b, lay.at[i].block);
        else if (!block) extent = hn_lower_dim(l, v->type.dim[axis]);
        else extent = hn_kb_idiv(l->b, hn_kb_addi(l->b, hn_lower_dim(l, v->type.dim[axis]), block - 1), hn_kb_i(l->b, block));
        s = hn_kb_mul(l->b, s, extent);
    }
}

/* One layout entry's share of the place: the scalar index and how much one lane adds; or a general vector. */
typedef struct place {
    hn_kv base;      /* i64 scalar */
    hn_kv lane;      /* i64 scalar added per lane; NONE: 0 */
    hn_kv vec;       /* i64 vector of further offsets; NONE: none */
    bool whole;      /* lanes are neighbours, and the first one's number is a multiple of them */
} place;

static void add_to(hn_lower *l, hn_kv *acc, hn_kv x)
{
    *acc = hn_kv_is(*acc) ? hn_kb_add(l->b, *acc, x) : x;
}

static void place_plain(hn_lower *l, const hn_kidx *idx, int a, hn_kv stride, place *p)
{
    if (hn_kv_is(idx->vec[a])) {
        add_to(l, &p->vec, hn_kb_mul(l->b, idx->vec[a], stride));
        return;
    }
    add_to(l, &p->base, hn_kb_mul(l->b, idx->at[a], stride));
    if (idx->step[a]) add_to(l, &p->lane, hn_kb_muli(l->b, stride, idx->step[a]));
}

/* Lanes stay inside one block when the block is known to the index, or the run is aligned and the block holds whole runs. */
static bool lanes_in_block(const hn_kidx *idx, int a, int block)
{
    if (idx->block[a] == block) return true;
    return idx->step[a] == 0 || (idx->step[a] == 1 && idx->aligned && block % idx->lanes == 0);
}

static void place_blocked(hn_lower *l, const hn_kidx *idx, int a, int block, bool inner, hn_kv stride, place *p)
{
    hn_kb *b = l->b;
    const hn_kv kb = hn_kb_i(b, block);
    if (hn_kv_is(idx->vec[a]) || !lanes_in_block(idx, a, block)) {
        const hn_kv v = hn_kidx_axis(l, idx, a), n = hn_kb_splat(b, kb, idx->lanes);
        add_to(l, &p->vec, hn_kb_mul(b, inner ? hn_kb_imod(b, v, n) : hn_kb_idiv(b, v, n), stride));
        return;
    }
    const bool known = idx->block[a] == block;
    const hn_kv at = known ? (inner ? idx->inner[a] : idx->outer[a])
                           : (inner ? hn_kb_imod(b, idx->at[a], kb) : hn_kb_idiv(b, idx->at[a], kb));
    add_to(l, &p->base, hn_kb_mul(b, at, stride));
    if (inner && idx->step[a]) add_to(l, &p->lane, hn_kb_muli(b, stride, idx->step[a]));
}

/* Every axis but the one that the lanes run along moves by whole vectors. Only a GPU's kernels can tell the difference. */
static bool lies_whole(const hn_lower *l, const hn_layout *lay, const hn_kidx *idx, const hn_kv *stride)
{
    int64_t n;
    bool along = false;
    if (l->t->arch != HN_ARCH_SM || !idx->aligned || idx->lanes < 2 || (idx->lanes & (idx->lanes - 1))) return false;
    for (int i = 0; i < lay->n; i++) {
        const int a = lay->at[i].axis;
        if (lay->at[i].block || hn_layout_block_of(lay, a) || hn_kv_is(idx->vec[a]) || !hn_kb_is_const(l->b, stride[i], &n)) return false;
        if (idx->step[a] ? idx->step[a] != 1 || n != 1 : n % idx->lanes != 0) return false;
        along |= idx->step[a] == 1;
    }
    return along;
}

static place place_of(hn_lower *l, const hn_value *v, const hn_kidx *idx)
{
    const hn_layout lay = layout_of(v);
    hn_kv stride[HN_MAX_RANK + 2];
    hn_lower_strides(l, v, stride);
    place p = { hn_kb_i(l->b, 0), HN_KV_NONE, HN_KV_NONE, lies_whole(l, &lay, idx, stride) };
    for (int i = 0; i < lay.n; i++) {
        const int a = lay.at[i].axis, block = hn_layout_block_of(&lay, a);
        if (block) place_blocked(l, idx, a, block, lay.at[i].block != 0, stride[i], &p);
        else place_plain(l, idx, a, stride[i], &p);
    }
    return p;
}

/* General vectors take the lane progression and the base in as well. */
static hn_kv place_vector(hn_lower *l, const place *p, int lanes)
{
    hn_kv v = hn_kb_add(l->b, p->vec, hn_kb_splat(l->b, p->base, lanes));
    if (!hn_kv_is(p->lane)) return v;
    const hn_kv ramp = hn_kb_ramp(l->b, hn_kb_i(l->b, 0), 1, lanes);
    return hn_kb_add(l->b, v, hn_kb_mul(l->b, ramp, hn_kb_splat(l->b, p->lane, lanes)));
}

static hn_kv load_scalar(hn_lower *l, int buf, hn_kv index, hn_kv mask)
{
    return hn_kv_is(mask) ? hn_kb_loadm(l->b, buf, index, 1, mask) : hn_kb_load(l->b, buf, index, 1);
}

static hn_kv load_stored(hn_lower *l, int buf, const place *p, int lanes, hn_kv mask)
{
    if (lanes == 1) {
        const hn_kv at = hn_kv_is(p->vec) ? hn_kb_add(l->b, p->base, p->vec) : p->base;
        return load_scalar(l, buf, at, mask);
    }
    if (hn_kv_is(p->vec)) return hn_kb_gather(l->b, buf, place_vector(l, p, lanes), mask);
    if (!hn_kv_is(p->lane)) {
        /* One element for all lanes: read it when any lane is on. */
        if (!hn_kv_is(mask)) return hn_kb_load_splat(l->b, buf, p->base, lanes);
        const hn_kv any = hn_kb_un(l->b, HN_KOP_ROR, mask);
        return hn_kb_splat(l->b, hn_kb_loadm(l->b, buf, p->base, 1, any), lanes);
    }
    if (p->whole && !hn_kv_is(mask)) return hn_kb_load_aligned(l->b, buf, p->base, lanes);
    return hn_kb_load_strided(l->b, buf, p->base, p->lane, lanes, mask);
}

/* Element numbers of a place, one a lane. */
static hn_kv place_numbers(hn_lower *l, place p, int lanes)
{
    if (lanes == 1) return hn_kv_is(p.vec) ? hn_kb_add(l->b, p.base, p.vec) : p.base;
    if (!hn_kv_is(p.vec)) p.vec = hn_kb_int(l->b, HN_I64, lanes, 0);
    return place_vector(l, &p, lanes);
}

static hn_kv load(hn_lower *l, int operand, const hn_kidx *idx, hn_kv mask)
{
    const hn_dtype t = l->r->g->in[operand]->type.dtype;
    const place p = place_of(l, l->r->g->in[operand], idx);
    const int buf = hn_lower_in(l, operand);
    if (hn_small_is_packed(t)) return hn_small_load_packed(l, buf, place_numbers(l, p, idx->lanes), t, mask);
    const hn_kv x = load_stored(l, buf, &p, idx->lanes, mask);
    return hn_small_is(t) ? hn_small_decode(l, x, t) : x;
}

/* Lanes of a blocked axis that pad the last block must hold zero: they are written, as zeros. */
static bool writes_padding(const hn_value *v, const hn_kidx *idx)
{
    const hn_layout lay = layout_of(v);
    const int last = lay.n - 1;
    return last >= 0 && lay.at[last].block && idx->step[lay.at[last].axis] == 1 &&
           lanes_in_block(idx, lay.at[last].axis, lay.at[last].block);
}

void hn_lower_store_value(hn_lower *l, int out, const hn_kidx *idx, hn_kv x, hn_kv mask)
{
    const hn_value *v = l->r->g->out[out].value;
    const int buf = hn_lower_out(l, out), lanes = idx->lanes;
    x = hn_kb_splat(l->b, x, lanes);
    if (hn_small_is_packed(v->type.dtype)) {
        hn_small_store_packed(l, buf, place_numbers(l, place_of(l, v, idx), 1), x, v->type.dtype);
        return;
    }
    if (hn_small_is(v->type.dtype)) x = hn_small_encode(l, x, v->type.dtype, false);
    if (hn_kv_is(mask) && writes_padding(v, idx)) {
        x = hn_kb_select(l->b, mask, x, hn_kb_like(l->b, x, 0));
        mask = HN_KV_NONE;
    }
    const place p = place_of(l, v, idx);
    if (lanes == 1) {
        hn_kb_storem(l->b, buf, hn_kv_is(p.vec) ? hn_kb_add(l->b, p.base, p.vec) : p.base, x, mask);
        return;
    }
    if (p.whole && !hn_kv_is(mask)) hn_kb_store_aligned(l->b, buf, p.base, x);
    else if (hn_kv_is(p.vec)) hn_kb_scatter(l->b, buf, place_vector(l, &p, lanes), x, mask);
    else hn_kb_store_strided(l->b, buf, p.base, hn_kv_is(p.lane) ? p.lane : hn_kb_i(l->b, 0), x, mask);
}

/* ---- evaluation ---- */
static bool same_idx(const hn_kidx *a, const hn_kidx *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

void hn_lower_forget(hn_lower *l)
{
    l->memo.n = 0;
}

void hn_lower_seed(hn_lower *l, const hn_value *v, hn_kv x)
{
    hn_lower_forget(l);
    for (int i = 0; i < l->seeds.n; i++)
        if (l->seeds.at[i].value == v) {
            l->seeds.at[i].x = x;
            return;
        }
    hn_vec_push(l->a, &l->seeds, ((hn_memo){ .value = v, .x = x }));
}

static hn_kv find_seed(const hn_lower *l, const hn_value *v)
{
    for (int i = 0; i < l->seeds.n; i++)
        if (l->seeds.at[i].value == v) return l->seeds.at[i].x;
    return HN_KV_NONE;
}

static hn_kv constant(hn_lower *l, const hn_value *v, int lanes)
{
    const hn_dtype t = hn_lower_compute_type(v->type.dtype);
    if (hn_dtype_is_float(t)) {
        double x = 0;
        hn_widen_f64(v->type.dtype, v->data->at, 0, 1, &x);
        return hn_kb_float(l->b, t, lanes, x);
    }
    int64_t x = 0;
    hn_widen_i64(v->type.dtype, v->data->at, 0, 1, &x);
    return hn_kb_int(l->b, t, lanes, x);
}

static hn_kv evaluate_node(hn_lower *l, const hn_node *n, const hn_kidx *idx, hn_kv mask)
{
    if (hn_lower_is_view(n)) return hn_lower_view(l, n, idx, mask);
    hn_kv operand[8];
    for (int i = 0; i < n->n_in && i < 8; i++) {
        const hn_value *x = hn_in(n, i);
        operand[i] = HN_KV_NONE;
        if (!x) continue;
        hn_kidx at;
        hn_lower_broadcast_idx(l, x, n->out[0], idx, &at);
        operand[i] = hn_lower_value(l, x, &at, mask);
    }
    return hn_lower_op(l, n, operand);
}

hn_kv hn_lower_value(hn_lower *l, const hn_value *v, const hn_kidx *idx, hn_kv mask)
{
    const hn_kv seed = find_seed(l, v);
    if (hn_kv_is(seed)) return seed;
    for (int i = 0; i < l->memo.n; i++) {
        const hn_memo *m = &l->memo.at[i];
        if (m->value == v && m->mask.at == mask.at && same_idx(&m->idx, idx)) return m->x;
    }
    hn_kv x;
    const int operand = hn_region_operand(l->r, v);
    if (v->data) x = constant(l, v, idx->lanes);
    else if (operand >= 0) x = load(l, operand, idx, mask);
    else x = evaluate_node(l, v->def, idx, mask);
    hn_vec_push(l->a, &l->memo, ((hn_memo){ v, *idx, mask, x }));
    return x;
}

void hn_lower_store(hn_lower *l, const hn_kidx *idx, hn_kv mask)
{
    hn_lower_forget(l);
    hn_kv x[64];
    const int n = HN_MIN(l->r->g->n_out, 64);
    for (int i = 0; i < n; i++) x[i] = hn_lower_value(l, l->r->g->out[i].value, idx, mask);
    for (int i = 0; i < n; i++) hn_lower_store_value(l, i, idx, x[i], mask);
    hn_lower_forget(l);
}

bool hn_lower_can(const hn_region *r, const hn_node *root)
{
    for (int i = 0; i < r->g->n_in; i++)
        if (!readable(r->g->in[i]->type.dtype)) return false;
    for (int i = 0; root && i < r->g->n_out; i++)
        if (!hn_lower_dtype_ok(r->g->out[i].value->type.dtype)) return false;
    HN_FOR_NODES (n, r->g) {
        if (n == root) continue;
        if (!hn_lower_is_pointwise(n) && !hn_lower_is_view(n)) return false;
        if (!readable(n->out[0]->type.dtype)) return false;
    }
    return true;
}
