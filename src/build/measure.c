/* Timing candidates: interleaved, on operands that were not just touched, the median of a few rounds.
 *
 * Operands rotate through a pool of memory larger than the last-level cache share, so that a candidate meets its weights as
 * it would inside a network: not hot from its own previous call.
 */
#include "build/build_int.h"
#include "dev/dev.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROTATE_BYTES = 48 << 20, /* beyond the last-level share of the machines we know (32 MiB) */
    GPU_ROTATE_BYTES = 256 << 20, /* beyond the second-level caches of GPUs (50 MiB) */
    MAX_SETS = 8,
    ROUNDS = 9,
    TURNS = 8, /* of one recorded run: starting it and waiting for it cost several microseconds */
};

struct hn_measure {
    hn_job *b;
    hn_device *dev;
    hn_queue *queue;
    uint8_t *pool; /* of the device: ROTATE_BYTES of values near 1, shared by all operands */
    size_t pool_bytes;
};

/* f32 values in [0.5, 1.5): as any dtype these bytes are harmless numbers, none of them denormal or NaN as f32, f16, bf16. */
static void fill(uint8_t *p, size_t n)
{
    hn_rng r;
    hn_rng_init(&r, 7);
    float *f = (float *)(void *)p;
    for (size_t i = 0; i < n / 4; i++) f[i] = 0.5f + (float)(hn_rng_u64(&r) >> 40) * 0x1p-24f;
}

hone_status hn_measure_create(hn_job *b, hn_measure **ret, hn_diag *dg)
{
    hn_measure *m = HN_NEW(b->a, hn_measure);
    if (!m) return HN_NOMEM(dg);
    m->b = b;
    HN_TRY(hn_device_for(b->t->arch, &m->dev, dg));
    HN_TRY(hn_queue_create(m->dev, &(hn_queue_opts){ .max_threads = b->t->n_core }, &m->queue, dg));
    *ret = m;
    return HONE_OK;
}

void hn_measure_destroy(hn_measure *m)
{
    if (!m) return;
    hn_queue_destroy(m->queue);
    hn_device_free(m->dev, m->pool, m->pool_bytes);
}

/* ---- one prepared contender ---- */
typedef struct ready_call {
    hn_launch l;
    int n_buf;
    const hn_kcall *k;
} ready_call;

typedef struct ready {
    hn_module **module; /* one a launch */
    ready_call *call;
    int n;
    double sample[ROUNDS];
} ready;

static int64_t ref_bytes(const hn_region *r, const hn_emission *e, hn_ref ref)
{
    switch (ref.kind) {
    case HN_REF_TEMP: return hn_region_opt(r, e->temp_bytes.at[ref.index]);
    case HN_REF_BLOB: return (int64_t)e->blobs.at[ref.index].bytes;
    case HN_REF_FAULT: return HN_FAULT_BYTES;
    default: break;
    }
    const hn_value *v = ref.kind == HN_REF_IN ? r->g->in[ref.index] : r->g->out[ref.index].value;
    hn_tdesc stored;
    hn_layout_dims(r->g->syms, &v->layout, &v->type, &stored);
    int64_t n = 1;
    for (int a = 0; a < stored.rank; a++) n *= hn_region_opt(r, stored.dim[a]);
    return hn_dtype_bytes(v->type.dtype, n);
}

enum { GAP = 4096 + 64 }; /* between operands: a page for over-reads, a line against 4 KiB aliasing */

static int64_t set_bytes(const hn_region *r, const hn_emission *e)
{
    int64_t n = 0;
    for (int i = 0; i < r->g->n_in; i++) n += ref_bytes(r, e, (hn_ref){ HN_REF_IN, i }) + GAP;
    for (int i = 0; i < r->g->n_out; i++) n += ref_bytes(r, e, (hn_ref){ HN_REF_OUT, i }) + GAP;
    for (int i = 0; i < e->temp_bytes.n; i++) n += ref_bytes(r, e, (hn_ref){ HN_REF_TEMP, i }) + GAP;
    for (int i = 0; i < e->blobs.n; i++) n += ref_bytes(r, e, (hn_ref){ HN_REF_BLOB, i }) + GAP;
    n += HN_FAULT_BYTES + GAP;
    return (n + 4095) / 4096 * 4096;
}

static int64_t offset_of(const hn_region *r, const hn_emission *e, hn_ref want)
{
    const struct {
        hn_ref_kind kind;
        int n;
    } order[] = { { HN_REF_IN, r->g->n_in }, { HN_REF_OUT, r->g->n_out }, { HN_REF_TEMP, e->temp_bytes.n },
                  { HN_REF_BLOB, e->blobs.n }, { HN_REF_FAULT, 1 } };
    int64_t at = 0;
    for (int k = 0; k < HN_COUNT(order); k++)
        for (int i = 0; i < order[k].n; i++) {
            if (order[k].kind == want.kind && i == want.index) return at;
            at += (ref_bytes(r, e, (hn_ref){ order[k].kind, i }) + GAP + 63) / 64 * 64;
        }
    return at;
}

static hone_status prepare_call(hn_measure *m, const hn_region *r, const hn_kcall *k, hn_module **ret_module,
                                ready_call *c, hn_diag *dg)
{
    const hn_code *code;
    HN_TRY(hn_code_get(m->b, k, &code, dg));
    HN_TRY(hn_device_load_code(m->dev, code->at, code->n, ret_module, dg));
    c->k = k;
    c->n_buf = hn_kcall_n_buf(k);
    int64_t *arg = HN_NEW_N(m->b->a, int64_t, k->func.n_arg + 1);
    void **buf = HN_NEW_N(m->b->a, void *, c->n_buf + 1);
    if (!arg || !buf) return HN_NOMEM(dg);
    for (int i = 0; i < k->func.n_arg; i++) arg[i] = hn_region_opt(r, k->arg[i]);
    const int64_t extent = k->call ? 1 : hn_kfunc_is_gpu(&k->func) ? hn_kfunc_blocks(&k->func, arg) : hn_kfunc_parallel(&k->func, arg);
    c->l = (hn_launch){ .entry = code->entry, .buf = buf, .arg = arg, .n_buf = (uint32_t)c->n_buf,
                        .n_arg = (uint32_t)k->func.n_arg, .extent = extent, .grain = 1,
                        .scratch_bytes = hn_kfunc_scratch_bytes(&k->func, arg) };
    const double ns = hn_roofline_ns(m->b->t, k->flops, k->bytes, 0.5, 0.5);
    c->l.trip_ps = (int64_t)(1000 * ns / (double)HN_MAX(extent, 1)) + 1;
    return hn_queue_reserve(m->queue, (size_t)c->l.scratch_bytes, dg);
}

static hone_status prepare(hn_measure *m, const hn_region *r, const hn_contender *c, ready *x, hn_diag *dg)
{
    const hn_emission *e = c->e;
    x->call = HN_NEW_N(m->b->a, ready_call, e->launches.n + 1);
    x->module = HN_NEW_N(m->b->a, hn_module *, e->launches.n + 1);
    if (!x->call || !x->module) return HN_NOMEM(dg);
    for (x->n = 0; x->n < e->launches.n; x->n++) {
        HN_TRY(prepare_call(m, r, &e->launches.at[x->n], &x->module[x->n], &x->call[x->n], dg));
        x->call[x->n].l.name = c->name;
    }
    return HONE_OK;
}

static void point(hn_measure *m, const hn_region *r, const hn_emission *e, ready *x, int64_t base)
{
    for (int i = 0; i < x->n; i++)
        for (int k = 0; k < x->call[i].n_buf; k++)
            ((void **)(uintptr_t)x->call[i].l.buf)[k] = m->pool + base + offset_of(r, e, x->call[i].k->buf[k]);
}

static hone_status launch_all(hn_measure *m, ready *x, hn_diag *dg)
{
    for (int i = 0; i < x->n; i++)
        if (x->call[i].l.extent > 0) HN_TRY(hn_queue_launch(m->queue, x->module[i], &x->call[i].l, dg));
    return HONE_OK;
}

static hone_status run_once(hn_measure *m, ready *x, double *ret_ns, hn_diag *dg)
{
    const int64_t t0 = hn_now_ns();
    hn_queue_begin(m->queue);
    hone_status s = launch_all(m, x, dg);
    if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    *ret_ns = (double)(hn_now_ns() - t0);
    return s;
}

/* Sets of operands in the pool. */
typedef struct rotation {
    const hn_region *r;
    int64_t bytes; /* of a set */
    int sets, at;
} rotation;

static void next_set(hn_measure *m, const hn_emission *e, ready *x, rotation *o)
{
    point(m, o->r, e, x, (int64_t)(o->at++ % o->sets) * o->bytes);
}

static hone_status record_turns(hn_measure *m, const hn_emission *e, ready *x, rotation *o, hn_replay **ret, hn_diag *dg)
{
    hone_status s = HONE_OK;
    hn_diag ended = { 0 };
    HN_TRY(hn_queue_record(m->queue, dg));
    for (int k = 0; k < TURNS && s == HONE_OK; k++) {
        next_set(m, e, x, o);
        s = launch_all(m, x, dg);
    }
    const hone_status end = hn_queue_record_end(m->queue, ret, s ? &ended : dg);
    return s ? s : end;
}

/* The second of two runs of one recording: the first brings it to the device. */
static hone_status run_recorded(hn_measure *m, const hn_emission *e, ready *x, rotation *o, double *ret_ns, hn_diag *dg)
{
    hn_replay *p = NULL;
    int64_t t0 = 0;
    hn_queue_begin(m->queue);
    hone_status s = record_turns(m, e, x, o, &p, dg);
    for (int k = 0; k < 2 && s == HONE_OK; k++) {
        t0 = hn_now_ns();
        s = hn_queue_replay(m->queue, p, dg);
        if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    }
    *ret_ns = (double)(hn_now_ns() - t0) / TURNS;
    hn_queue_end(m->queue);
    hn_device_replay_destroy(m->dev, p);
    return s;
}

static hone_status time_one(hn_measure *m, const hn_emission *e, ready *x, rotation *o, double *ret_ns, hn_diag *dg)
{
    if (hn_device_records(m->dev)) return run_recorded(m, e, x, o, ret_ns, dg);
    next_set(m, e, x, o);
    return run_once(m, x, ret_ns, dg);
}

static hone_status fill_device(hn_measure *m, size_t n, hn_diag *dg)
{
    if (m->dev->vt->host_memory) {
        fill(m->pool, n);
        return HONE_OK;
    }
    uint8_t *host = malloc(n);
    if (!host) return HN_NOMEM(dg);
    fill(host, n);
    hn_queue_begin(m->queue);
    hone_status s = hn_queue_write(m->queue, m->pool, host, n, dg);
    if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    free(host);
    return s;
}

static hone_status grow_pool(hn_measure *m, int64_t need, hn_diag *dg)
{
    const int64_t least = m->dev->vt->host_memory ? ROTATE_BYTES : GPU_ROTATE_BYTES;
    const size_t want = (size_t)(HN_MAX(need, least) + 4095) / 4096 * 4096;
    void *p;
    if (m->pool_bytes >= want) return HONE_OK;
    hn_device_free(m->dev, m->pool, m->pool_bytes);
    m->pool = NULL, m->pool_bytes = 0;
    HN_TRY(hn_device_alloc(m->dev, want, 4096, &p, dg));
    m->pool = p, m->pool_bytes = want;
    return fill_device(m, want, dg);
}

/* A contender that the device refuses to run is out; a device that is of no use afterwards ends the race. */
static hone_status time_or_drop(hn_measure *m, hn_contender *c, ready *x, rotation *o, double *ret_ns, hn_diag *dg)
{
    hn_diag why = { 0 };
    if (time_one(m, c->e, x, o, ret_ns, &why) == HONE_OK) return HONE_OK;
    hn_log(HN_LOG_WARN, "%s is out for %s: %s%s%s", c->name, o->r->name, why.message, why.hint[0] ? "; " : "", why.hint);
    c->failed = true;
    hn_queue_begin(m->queue);
    const hone_status s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    return s;
}

/* ---- indices ---- */
static bool is_indexed(const hn_node *n)
{
    switch (n->op) {
    case HN_OP_gather: case HN_OP_gather_elements: case HN_OP_gather_nd: case HN_OP_scatter_elements: case HN_OP_scatter_nd:
        return true;
    default: return false;
    }
}

/* Integers of a region that reads or writes by index: kernels do not look at those that building found to be in range. */
static bool is_index(const hn_region *r, int in)
{
    if (hn_dtype_is_float(r->g->in[in]->type.dtype)) return false;
    if (r->data && r->data[in]) return true;
    HN_FOR_NODES (n, r->g)
        if (is_indexed(n)) return true;
    return false;
}

/* Least extent of the axes that a node reads by operand 1. */
static int64_t least_extent(const hn_region *r, const hn_node *n)
{
    const hn_value *x = hn_in(n, 0);
    int axis = 0;
    if (n->op != HN_OP_gather_nd && n->op != HN_OP_scatter_nd && hn_axis_resolve(hn_attr_i(n, "axis"), x->type.rank, &axis))
        return hn_region_opt(r, x->type.dim[axis]);
    int64_t least = INT64_MAX;
    for (int a = 0; a < x->type.rank; a++) least = HN_MIN(least, hn_region_opt(r, x->type.dim[a]));
    return least;
}

/* Numbers that operand `in` may hold lie below this: 1 where it is more than an index, as every range that was proved holds 0. */
static int64_t index_limit(const hn_region *r, int in)
{
    int64_t limit = INT64_MAX;
    HN_FOR_USES (u, r->g->in[in]) {
        if (!u->node || !is_indexed(u->node) || u->index != 1) return 1;
        limit = HN_MIN(limit, least_extent(r, u->node));
    }
    return HN_MAX(1, HN_MIN(limit, 127)); /* of any dtype */
}

static void make_up(const hn_region *r, int in, uint8_t *dst, int64_t bytes)
{
    const hn_dtype t = r->g->in[in]->type.dtype;
    const int64_t limit = index_limit(r, in), n = bytes * 8 / hn_dtype_bits(t);
    memset(dst, 0, (size_t)bytes);
    for (int64_t i = 0; i < n && limit > 1; i++) {
        const int64_t v = i * 61 % limit;
        hn_narrow_i64(t, &v, 1, dst, i);
    }
}

static hone_status put(hn_measure *m, int64_t at, const void *from, int64_t bytes, hn_diag *dg)
{
    if (m->dev->vt->host_memory) {
        memcpy(m->pool + at, from, (size_t)bytes);
        return HONE_OK;
    }
    hn_queue_begin(m->queue);
    hone_status s = hn_queue_write(m->queue, m->pool + at, from, (size_t)bytes, dg);
    if (s == HONE_OK) s = hn_queue_sync(m->queue, dg);
    hn_queue_end(m->queue);
    return s;
}

/* What indices may be into every set of operands, or harmless numbers again. Operands lie alike for all candidates. */
static hone_status put_indices(hn_measure *m, const rotation *o, const hn_emission *e, bool real, hn_diag *dg)
{
    for (int i = 0; i < o->r->g->n_in; i++) {
        const hn_ref in = { HN_REF_IN, i };
        if (!is_index(o->r, i)) continue;
        const hn_data *own = o->r->data ? o->r->data[i] : NULL;
        const int64_t room = ref_bytes(o->r, e, in), bytes = own ? HN_MIN(room, (int64_t)own->bytes) : room;
        uint8_t *made = malloc((size_t)bytes + 4);
        if (!made) return HN_NOMEM(dg);
        if (real) make_up(o->r, i, made, bytes);
        else fill(made, (size_t)bytes + 3);
        hone_status s = HONE_OK;
        for (int k = 0; k < o->sets && s == HONE_OK; k++)
            s = put(m, k * o->bytes + offset_of(o->r, e, in), real && own ? own->at : made, bytes, dg);
        free(made);
        HN_TRY(s);
    }
    return HONE_OK;
}

hone_status hn_measure_race(hn_measure *m, const hn_region *r, hn_contender *c, int n, hn_diag *dg)
{
    int64_t bytes = 0;
    for (int i = 0; i < n; i++) bytes = HN_MAX(bytes, set_bytes(r, c[i].e));
    HN_TRY(grow_pool(m, bytes, dg));
    const int sets = (int)HN_MAX(1, HN_MIN(MAX_SETS, (int64_t)m->pool_bytes / HN_MAX(bytes, 1)));
    rotation turn = { .r = r, .bytes = bytes, .sets = sets };
    ready *x = HN_NEW_N(m->b->a, ready, n + 1);
    if (!x) return HN_NOMEM(dg);
    for (int i = 0; i < n; i++) {
        hn_diag why = { 0 };
        c[i].failed = prepare(m, r, &c[i], &x[i], &why) != HONE_OK;
    }
    HN_TRY(put_indices(m, &turn, c[0].e, /* real= */ true, dg));
    for (int round = -1; round < ROUNDS; round++)
        for (int k = 0; k < n; k++) {
            const int i = (k + round + n) % n; /* another order each round */
            double ns;
            if (c[i].failed) continue;
            turn.at = k + round + 1;
            HN_TRY(time_or_drop(m, &c[i], &x[i], &turn, &ns, dg));
            if (round >= 0) x[i].sample[round] = ns;
        }
    HN_TRY(put_indices(m, &turn, c[0].e, /* real= */ false, dg));
    for (int i = 0; i < n; i++) {
        c[i].ns = hn_median(x[i].sample, ROUNDS);
        for (int k = 0; k < x[i].n; k++) hn_device_unload(m->dev, x[i].module[k]);
    }
    return HONE_OK;
}
